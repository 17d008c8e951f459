//! Functions against PostgreSQL's answers, call by call, without a database.

mod calls;
mod evaluate;
mod page;
