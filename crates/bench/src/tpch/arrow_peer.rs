//! Plain DataFusion over the same rows as Arrow batches in memory, in the same build: what the engine under ours does
//! without a store.

use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use mainstem::arrow::array::RecordBatch;
use tokio::runtime::Runtime;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use crate::experiment::Failure;
use crate::suite::Local;

/// As the report names it.
pub const NAME: &str = "DataFusion over Arrow";
const BATCH_ROWS: usize = 8_192;

/// DataFusion with the eight tables.
pub struct ArrowPeer {
    runtime: Runtime,
    context: SessionContext,
}

impl ArrowPeer {
    /// Makes the tables of tpchgen at scale factor `factor`.
    ///
    /// # Errors
    /// When there is no runtime, or DataFusion does not take a table.
    pub fn load(factor: f64) -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Runtime::new()?;
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(cores));
        macro_rules! table {
            ($name:literal, $arrow:ident, $generator:ident) => {
                let batches = $arrow::new($generator::new(factor, 1, 1)).with_batch_size(BATCH_ROWS);
                let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>().map_err(broken)?;
                let schema = batches.first().map(RecordBatch::schema).ok_or_else(|| broken("a table without rows"))?;
                let mut partitions: Vec<Vec<RecordBatch>> = vec![Vec::new(); cores];
                for (number, batch) in batches.into_iter().enumerate() {
                    if let Some(partition) = partitions.get_mut(number % cores) {
                        partition.push(batch);
                    }
                }
                let table = MemTable::try_new(schema, partitions).map_err(broken)?;
                context.register_table($name, Arc::new(table)).map_err(broken)?;
            };
        }
        table!("region", RegionArrow, RegionGenerator);
        table!("nation", NationArrow, NationGenerator);
        table!("supplier", SupplierArrow, SupplierGenerator);
        table!("part", PartArrow, PartGenerator);
        table!("partsupp", PartSuppArrow, PartSuppGenerator);
        table!("customer", CustomerArrow, CustomerGenerator);
        table!("orders", OrderArrow, OrderGenerator);
        table!("lineitem", LineItemArrow, LineItemGenerator);
        Ok(Self { runtime, context })
    }
}

impl Local for ArrowPeer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn query(&self, sql: &str) -> Result<Vec<RecordBatch>, Failure> {
        let answer = async { self.context.sql(sql).await?.collect().await };
        self.runtime.block_on(answer).map_err(broken)
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Broken(format!("{NAME}: {error}"))
}
