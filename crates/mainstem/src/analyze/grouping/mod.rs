//! GROUP BY, HAVING and `grouping` where DataFusion reads them otherwise than SQL.
//!
//! Comes in: a SELECT of a statement's tree (`sets`, `grand_total`), later its plan (`arguments`). Goes out: the same
//! with groups that DataFusion knows. It does not own: names of groups (`names`), columns that a key determines
//! (`names::functional_dependencies`).

mod arguments;
mod grand_total;
mod sets;

pub(crate) use arguments::grouping_arguments;
pub(super) use grand_total::grand_total;
pub(super) use sets::normalize_members;
