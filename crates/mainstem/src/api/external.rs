//! Tables of the program, which queries of a connection read.

use std::sync::Arc;

use mainstem_storage::{Error, Result};

use super::Connection;
use crate::provider::{ExternalTable, TableResolver};

impl Connection {
    /// From now on queries of this connection read `table` by `name`, as SQL folds it: lower case unless it stands in
    /// quotes. Tables and views of the database win over it. Returns what the name meant before. Nothing is copied: the
    /// table is asked for its rows each time a query reads it.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// use std::sync::Arc;
    ///
    /// use mainstem::arrow::array::{Int64Array, RecordBatch};
    /// use mainstem::arrow::datatypes::SchemaRef;
    /// use mainstem::{ExternalBatches, ExternalTable};
    ///
    /// #[derive(Debug)]
    /// struct Numbers(RecordBatch);
    ///
    /// impl ExternalTable for Numbers {
    ///     fn schema(&self) -> SchemaRef {
    ///         self.0.schema()
    ///     }
    ///
    ///     fn scan(&self, columns: &[usize]) -> mainstem::Result<ExternalBatches> {
    ///         Ok(Box::new(std::iter::once(self.0.project(columns).map_err(mainstem::Error::from))))
    ///     }
    /// }
    ///
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// let column = Arc::new(Int64Array::from(vec![1, 2, 4])) as _;
    /// let batch = RecordBatch::try_from_iter([("n", column)])?;
    /// connection.register("numbers", Arc::new(Numbers(batch)))?;
    /// assert_eq!(connection.query_row("SELECT sum(n) FROM numbers", ())?.get::<i64>(0)?, 7);
    /// connection.unregister("numbers");
    /// assert_eq!(connection.query("SELECT n FROM numbers").unwrap_err().sqlstate(), "42P01");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 42602 for a name that is empty.
    pub fn register(&self, name: &str, table: Arc<dyn ExternalTable>) -> Result<Option<Arc<dyn ExternalTable>>> {
        if name.is_empty() {
            return Err(Error::invalid("42602", "a table of the program needs a name"));
        }
        Ok(self.session.lock().externals().register(name, Some(table)))
    }

    /// Takes back [`Connection::register`]; what `name` meant.
    pub fn unregister(&self, name: &str) -> Option<Arc<dyn ExternalTable>> {
        self.session.lock().externals().register(name, None)
    }

    /// From now on `resolver` is asked for names in FROM that nothing else has; or nobody is.
    pub fn set_table_resolver(&self, resolver: Option<Arc<dyn TableResolver>>) {
        self.session.lock().externals().set_resolver(resolver);
    }
}
