//! What CREATE TABLE says, once it is read.

use datafusion::sql::sqlparser::ast::OnCommit as AstOnCommit;
use mainstem_storage::catalog::UniqueDefinition;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{Check, DataType, Identity, Layout};
use mainstem_storage::{Error, Result};

use crate::sql::TableName;

/// A column of a new table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewColumn {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    /// DEFAULT, as SQL.
    pub(crate) default: Option<String>,
    pub(crate) identity: Option<Identity>,
}

/// CREATE TABLE, checked for everything that can be known without the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreateTable {
    pub(crate) name: TableName,
    pub(crate) temporary: bool,
    pub(crate) on_commit: OnCommit,
    pub(crate) if_not_exists: bool,
    pub(crate) columns: Vec<NewColumn>,
    pub(crate) primary_key: Vec<String>,
    pub(crate) primary_key_name: Option<String>,
    pub(crate) unique_keys: Vec<UniqueDefinition>,
    pub(crate) checks: Vec<Check>,
    pub(crate) sort_key: Option<Vec<String>>,
    pub(crate) layout: Option<Layout>,
    pub(crate) segment_rows: Option<u32>,
    pub(crate) delta_rows: Option<u32>,
}

/// What the end of a transaction does to a temporary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCommit {
    PreserveRows,
    DeleteRows,
    Drop,
}

impl CreateTable {
    pub(super) fn set_temporary(&mut self, temporary: bool, on_commit: Option<&AstOnCommit>) -> Result<()> {
        self.temporary = temporary;
        if on_commit.is_some() && !temporary {
            return Err(Error::invalid(sqlstate::INVALID_TABLE, "ON COMMIT can only be used on temporary tables"));
        }
        self.on_commit = match on_commit {
            None | Some(AstOnCommit::PreserveRows) => OnCommit::PreserveRows,
            Some(AstOnCommit::DeleteRows) => OnCommit::DeleteRows,
            Some(AstOnCommit::Drop) => OnCommit::Drop,
        };
        Ok(())
    }

    pub(super) fn new(name: TableName, if_not_exists: bool) -> Self {
        Self {
            name,
            temporary: false,
            on_commit: OnCommit::PreserveRows,
            if_not_exists,
            columns: Vec::new(),
            primary_key: Vec::new(),
            primary_key_name: None,
            unique_keys: Vec::new(),
            checks: Vec::new(),
            sort_key: None,
            layout: None,
            segment_rows: None,
            delta_rows: None,
        }
    }
}
