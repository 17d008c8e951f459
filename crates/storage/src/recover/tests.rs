//! See `tests/it` for whole databases.
