//! The AVX2 twins.
