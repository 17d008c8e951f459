//! Tests of whole databases.
