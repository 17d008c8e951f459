//! Connections.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use adbc_core::error::{Result, Status};
use adbc_core::options::{InfoCode, IsolationLevel, ObjectDepth, OptionConnection, OptionValue};
use adbc_core::{Connection, Optionable};
use mainstem::arrow::datatypes::Schema;
use mainstem::{SharedDatabase, TransactionStatus};

use crate::errors::{adbc, misuse, refused};
use crate::objects::Wanted;
use crate::options::{PREFIX, VIEWS};
use crate::results::Reader;
use crate::session::{CATALOG, Session, literal, quoted};
use crate::statement::MainstemStatement;
use crate::{info, objects, options};

/// A connection: a session with its own transaction and settings.
#[derive(Debug)]
pub struct MainstemConnection(Arc<Session>);

impl MainstemConnection {
    pub(crate) fn new(database: SharedDatabase, read_only: bool) -> Result<Self> {
        Session::new(database, read_only).map(|session| Self(Arc::new(session)))
    }

    /// Sets the setting `name`, as SET does.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<()> {
        self.execute(&format!("SET {} = {}", quoted(name), literal(value)))
    }

    fn execute(&self, sql: &str) -> Result<()> {
        let _turn = self.0.turn()?;
        self.0.connection.execute(sql).map(|_| ()).map_err(|error| adbc(&error))
    }

    /// The text that `sql` gives.
    fn text(&self, sql: &str) -> Result<String> {
        let _turn = self.0.turn()?;
        let row = self.0.connection.query_row(sql, ()).map_err(|error| adbc(&error))?;
        row.get::<String>(0).map_err(|error| adbc(&error))
    }

    fn set_autocommit(&self, autocommit: bool) -> Result<()> {
        let _turn = self.0.turn()?;
        // As other drivers: what is open is committed when autocommit comes back.
        if autocommit && self.0.connection.status() != TransactionStatus::Idle {
            self.0.connection.commit().map_err(|error| adbc(&error))?;
        }
        self.0.autocommit.store(autocommit, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a transaction is open; an error where each statement is one of its own.
    fn is_open(&self) -> Result<bool> {
        let is_open = self.0.connection.status() != TransactionStatus::Idle;
        if !is_open && self.0.autocommit.load(Ordering::Relaxed) {
            return Err(misuse(Status::InvalidState, "there is no transaction: autocommit is on"));
        }
        Ok(is_open)
    }
}

impl Optionable for MainstemConnection {
    type Option = OptionConnection;

    fn set_option(&mut self, key: Self::Option, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_owned();
        match key {
            OptionConnection::AutoCommit => self.set_autocommit(options::truth(&name, value)?),
            OptionConnection::ReadOnly => {
                if options::truth(&name, value)? == self.0.read_only {
                    return Ok(());
                }
                Err(misuse(Status::NotImplemented, "a database is opened for reading alone: mainstem.read_only"))
            }
            OptionConnection::CurrentCatalog => {
                let catalog = options::text(&name, value)?;
                if catalog == CATALOG {
                    return Ok(());
                }
                Err(misuse(Status::NotFound, format!("there is no catalog {catalog}; the only one is {CATALOG}")))
            }
            OptionConnection::CurrentSchema => {
                let schema = options::text(&name, value)?;
                let known = "SELECT count(*)::text FROM information_schema.schemata WHERE schema_name = $1";
                let known = self.0.connection.query_row(known, [schema.as_str()]).map_err(|error| adbc(&error))?;
                if known.get::<&str>(0).map_err(|error| adbc(&error))? == "0" {
                    return Err(refused(Status::NotFound, "3F000", format!("schema \"{schema}\" does not exist")));
                }
                self.execute(&format!("SET search_path = {}", quoted(&schema)))
            }
            OptionConnection::IsolationLevel => {
                let level = options::text(&name, value)?;
                let served = [IsolationLevel::Default, IsolationLevel::Snapshot, IsolationLevel::RepeatableRead];
                if served.into_iter().any(|served| String::from(served) == level) {
                    return Ok(());
                }
                Err(misuse(Status::NotImplemented, format!("isolation level {level}: transactions are snapshots")))
            }
            _ if name == VIEWS => {
                self.0.keeps_views.store(options::truth(&name, value)?, Ordering::Relaxed);
                Ok(())
            }
            _ => match name.strip_prefix(PREFIX) {
                Some(setting) => self.set(setting, &options::text(&name, value)?),
                None => Err(options::unknown(&name)),
            },
        }
    }

    fn get_option_string(&self, key: Self::Option) -> Result<String> {
        let name = key.as_ref();
        match &key {
            OptionConnection::AutoCommit => Ok(options::shown(self.0.autocommit.load(Ordering::Relaxed))),
            OptionConnection::ReadOnly => Ok(options::shown(self.0.read_only)),
            OptionConnection::CurrentCatalog => Ok(CATALOG.to_owned()),
            OptionConnection::CurrentSchema => self.text("SELECT current_schema()"),
            OptionConnection::IsolationLevel => Ok(IsolationLevel::Snapshot.into()),
            _ if name == VIEWS => Ok(options::shown(self.0.keeps_views.load(Ordering::Relaxed))),
            _ => match name.strip_prefix(PREFIX) {
                Some(setting) => self.text(&format!("SHOW {}", quoted(setting))),
                None => Err(options::not_found(name)),
            },
        }
    }

    fn get_option_double(&self, key: Self::Option) -> Result<f64> {
        Err(options::not_found(key.as_ref()))
    }

    options::no_other_types!();
}

impl Connection for MainstemConnection {
    type StatementType = MainstemStatement;

    fn new_statement(&mut self) -> Result<Self::StatementType> {
        Ok(MainstemStatement::new(self.0.clone()))
    }

    fn cancel(&mut self) -> Result<()> {
        self.0.interrupt();
        Ok(())
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Reader> {
        info::get(codes.as_ref())
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Reader> {
        let _turn = self.0.turn()?;
        objects::get(&self.0.connection, &Wanted { depth, catalog, db_schema, table_name, table_type, column_name })
    }

    fn get_table_schema(&self, catalog: Option<&str>, db_schema: Option<&str>, table_name: &str) -> Result<Schema> {
        let _turn = self.0.turn()?;
        let keeps_views = self.0.keeps_views.load(Ordering::Relaxed);
        objects::table_schema(&self.0.connection, catalog, db_schema, table_name, keeps_views)
    }

    fn get_table_types(&self) -> Result<Reader> {
        objects::table_types()
    }

    fn get_statistic_names(&self) -> Result<Reader> {
        Err(misuse(Status::NotImplemented, "statistics are not given"))
    }

    fn get_statistics(&self, _: Option<&str>, _: Option<&str>, _: Option<&str>, _: bool) -> Result<Reader> {
        Err(misuse(Status::NotImplemented, "statistics are not given"))
    }

    fn commit(&mut self) -> Result<()> {
        let _turn = self.0.turn()?;
        if !self.is_open()? {
            return Ok(());
        }
        self.0.connection.commit().map_err(|error| adbc(&error))
    }

    fn rollback(&mut self) -> Result<()> {
        let _turn = self.0.turn()?;
        if !self.is_open()? {
            return Ok(());
        }
        self.execute("ROLLBACK")
    }

    fn read_partition(&self, _: impl AsRef<[u8]>) -> Result<Reader> {
        Err(misuse(Status::NotImplemented, "results have no partitions"))
    }
}
