//! Checking a root against itself, for `mainstem check`: the catalog and the containers say the same of every table.

use crate::error::Error;
use crate::version::{Root, TableVersion};

impl Root {
    /// What is wrong, a line each; nothing is read.
    #[must_use]
    pub fn verify(&self) -> Vec<Error> {
        let mut wrong = Vec::new();
        for table in self.catalog.tables() {
            match self.tables.get(&table.id) {
                None => wrong.push(defect(&table.name, "it has no containers")),
                Some(version) if version.schema != *table => {
                    wrong.push(defect(&table.name, "its containers stand under another schema than the catalog's"));
                }
                Some(version) => version.verify_schemas(&mut wrong),
            }
        }
        for (id, version) in self.tables.iter().filter(|(id, _)| self.catalog.table(**id).is_none()) {
            wrong.push(defect(&version.schema.name, &format!("the catalog has no table {id}")));
        }
        wrong
    }
}

impl TableVersion {
    /// Each container was written under a version of the schema, none newer than the present one; the delta that takes
    /// rows under the present one (contract 1).
    fn verify_schemas(&self, wrong: &mut Vec<Error>) {
        let schema = &self.schema;
        let mut add = |what: String| wrong.push(defect(&schema.name, &what));
        for delta in &self.deltas {
            let theirs = delta.schema();
            if theirs.id != schema.id || theirs.version > schema.version {
                add(format!("delta {} has rows of version {} of table {}", delta.id(), theirs.version, theirs.id));
            }
        }
        if !self.deltas.is_sorted_by_key(|delta| delta.schema().version) {
            add("a delta is older than rows of a newer schema version".to_owned());
        }
        if self.active_delta().is_none_or(|delta| delta.schema().version != schema.version) {
            add("no delta takes rows of the present schema version".to_owned());
        }
        for segment in self.runs.iter().flat_map(|run| run.segments()).map(|part| &part.segment) {
            if segment.schema_version() > schema.version {
                add(format!("segment {} has a newer schema version", segment.id()));
            }
            if let Some(column) = segment.meta().columns.iter().find(|column| column.id >= schema.next_column) {
                add(format!("segment {} has column {}, which the table never had", segment.id(), column.id));
            }
        }
    }
}

fn defect(table: &str, what: &str) -> Error {
    Error::internal(format!("table \"{table}\": {what}"))
}
