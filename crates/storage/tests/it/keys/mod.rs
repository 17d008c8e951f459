//! Keys: one in every order that a table can have, several beside one another, single rows by key.

mod key_index;
mod row_writes;
mod several;
