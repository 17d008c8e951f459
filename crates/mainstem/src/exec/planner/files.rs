//! The files that a statement reads: its tree names tables in their places, of a schema that only it has.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Statement as Ast, TableAlias, TableFactor, VisitorMut,
};
use mainstem_postgres::types::field_type;
use mainstem_storage::{Error, Result};

use super::Source;
use crate::analyze::KnownTable;
use crate::exec::runtime::Cancel;
use crate::provider::{FileCache, FileTable, Progress};
use crate::sql::{FILES_SCHEMA, FileRequest};
use crate::walk::walk_mut;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct StatementFiles {
    /// By the numbers that are their names.
    tables: Vec<Arc<FileTable>>,
    /// Whether the statement cannot be run again when a type turns out to be another.
    is_certain: bool,
}

impl StatementFiles {
    /// Opens the files of `statement`, and puts tables in their places.
    ///
    /// # Errors
    /// Those of arguments and of files; 42501 where files are not to be read.
    pub(super) fn open(&mut self, statement: &mut Ast, source: &Source<'_>, cancel: &Cancel) -> Result<()> {
        let mut opener = Opener { files: self, source, cancel };
        walk_mut(statement, &mut opener).break_value().map_or(Ok(()), Err)
    }

    /// From now on types are those of all values.
    pub(crate) fn need_certain(&mut self) {
        self.is_certain = true;
    }

    /// Whether there are any.
    pub(crate) fn are_any(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Whether the types of some may turn out to be others.
    pub(crate) fn are_uncertain(&self) -> bool {
        self.tables.iter().any(|table| table.is_uncertain())
    }

    /// Looks at all values of the files that have misled a run, or with `all` of all that may; whether types are
    /// others.
    fn find_types(&self, all: bool, cache: &FileCache, cancel: &Cancel) -> Result<bool> {
        let mut differ = false;
        for table in &self.tables {
            if table.is_uncertain() && (all || table.has_misled()) {
                differ |= table.find_types(cache, &|| cancel.check())?;
            }
        }
        Ok(differ)
    }

    /// Looks at all values of the files that have misled a run. Whether types are others.
    ///
    /// # Errors
    /// Of the files, and 57014.
    pub(crate) fn has_found_types(&mut self, cache: &FileCache, cancel: &Cancel) -> Result<bool> {
        let differ = self.find_types(false, cache, cancel)?;
        if differ {
            self.tables.clear();
        }
        Ok(differ)
    }

    /// Looks at all values of all files whose types may turn out to be others. Whether they are.
    ///
    /// # Errors
    /// Of the files, and 57014.
    pub(crate) fn turn_out_otherwise(&mut self, cache: &FileCache, cancel: &Cancel) -> Result<bool> {
        let differ = self.find_types(true, cache, cancel)?;
        if differ {
            self.tables.clear();
        }
        Ok(differ)
    }

    /// What was found out about them, for people.
    pub(crate) fn descriptions(&self) -> Vec<String> {
        self.tables.iter().filter_map(|table| table.description()).collect()
    }

    /// By the names that stand for them.
    pub(super) fn tables(&self) -> HashMap<String, Arc<FileTable>> {
        self.tables.iter().enumerate().map(|(number, table)| (number.to_string(), table.clone())).collect()
    }

    /// What names need of the table that stands for one.
    pub(super) fn known(&self, name: &str) -> Option<KnownTable> {
        let table = self.tables.get(name.parse::<usize>().ok()?)?;
        let fields = table.columns().fields();
        let columns = fields.iter().map(|field| field.name().clone()).collect();
        let types = fields.iter().map(|field| field_type(field)).collect();
        Some(KnownTable { types, ..KnownTable::of_columns(FILES_SCHEMA, columns) })
    }

    /// The statement has ended.
    pub(super) fn clear(&mut self) {
        if self.are_any() || self.is_certain {
            *self = Self::default();
        }
    }
}

struct Opener<'f, 's> {
    files: &'f mut StatementFiles,
    source: &'f Source<'s>,
    cancel: &'f Cancel,
}

impl Opener<'_, '_> {
    fn table(&mut self, request: FileRequest) -> Result<usize> {
        let Source { settings, file_cache, progress, .. } = self.source;
        settings.check_file_access(&request.paths.join(", "))?;
        let limits = (settings.threads(), settings.row_limit());
        let open = || FileTable::open(request.clone(), file_cache, limits, Progress::clone(progress));
        let mut table = open()?;
        if self.files.is_certain && table.is_uncertain() && table.find_types(file_cache, &|| self.cancel.check())? {
            table = open()?;
        }
        self.files.tables.push(Arc::new(table));
        Ok(self.files.tables.len() - 1)
    }
}

impl VisitorMut for Opener<'_, '_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let request = match FileRequest::of(factor) {
            Ok(Some(request)) => request,
            Ok(None) => return ControlFlow::Continue(()),
            Err(error) => return ControlFlow::Break(error),
        };
        let called = request.function.name();
        let number = match self.table(request) {
            Ok(number) => number,
            Err(error) => return ControlFlow::Break(error),
        };
        if let TableFactor::Table { name, alias, args, .. } = factor {
            let part = |text: String| ObjectNamePart::Identifier(Ident::with_quote('"', text));
            *name = ObjectName(vec![part(FILES_SCHEMA.to_owned()), part(number.to_string())]);
            *args = None;
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: Ident::with_quote('"', called),
                columns: Vec::new(),
                at: None,
            });
        }
        ControlFlow::Continue(())
    }
}
