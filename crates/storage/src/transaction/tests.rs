//! Tests of transactions over a whole database.
