//! What PostgreSQL's types, operators and functions are, on Arrow's arrays.
//!
//! Comes in: values as arrays or constants, or the types of arguments. Goes out: results, or an error with PostgreSQL's
//! SQLSTATE. In folders: `types` (values, their text forms, names of types), `cast`, `operator`, `function`,
//! `aggregate`, `window`; `registry` lists all functions.
//!
//! It does not own: which function a name means, and which types operands get (`analyze` of the SQL crate). It knows no
//! planner, and of storage only column types and errors.

pub mod aggregate;
pub mod cast;
pub mod error;
mod evaluate;
pub mod function;
pub mod operator;
pub mod registry;
pub mod sqlstate;
pub mod types;
pub mod window;
