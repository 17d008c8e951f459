//! Names in a statement's tree: those that DataFusion takes for others, does not know, or wants to differ.
//!
//! Comes in: a statement's tree, and what is known of its tables ([`KnownTable`]). Goes out: the same tree, whose names
//! mean the same to DataFusion as to SQL. It does not own: other rewrites of the tree (`ast`).

mod cast_labels;
pub(super) mod column_names;
mod duplicate_names;
mod functional_dependencies;
mod known_table;
mod output_names;
mod relation_names;
pub(super) mod resolution;

pub(crate) use cast_labels::{cast_label, without_label};
pub(crate) use column_names::BesideStar;
pub(crate) use duplicate_names::{Naming, is_same, name_duplicates, name_repeated};
pub(crate) use functional_dependencies::add_dependent_columns;
pub(crate) use known_table::KnownTable;
pub(crate) use output_names::OutputNames;
pub(crate) use relation_names::{mark_relations, rows_without_marks};
pub(crate) use resolution::resolve_names;
