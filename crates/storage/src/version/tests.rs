//! Tests of versions and marks.
