//! SQLSTATEs: those of storage, and those that only SQL needs.

pub use mainstem_storage::error::sqlstate::*;

/// invalid_recursion
pub const INVALID_RECURSION: &str = "42P19";
/// invalid_schema_name
pub const UNDEFINED_SCHEMA: &str = "3F000";
/// insufficient_privilege
pub const READ_ONLY_TABLE: &str = "42501";
/// undefined_object
pub const UNDEFINED_OBJECT: &str = "42704";
/// duplicate_object
pub const DUPLICATE_OBJECT: &str = "42710";
/// undefined_function
pub const UNDEFINED_FUNCTION: &str = "42883";
/// undefined_parameter
pub const UNDEFINED_PARAMETER: &str = "42P02";
/// protocol_violation: parameters and values differ in number
pub const PARAMETER_COUNT: &str = "08P01";
/// invalid_sql_statement_name
pub const UNDEFINED_STATEMENT: &str = "26000";
/// duplicate_prepared_statement
pub const DUPLICATE_STATEMENT: &str = "42P05";
/// ambiguous_column
pub const AMBIGUOUS_COLUMN: &str = "42702";
/// ambiguous_alias
pub const AMBIGUOUS_ALIAS: &str = "42P09";
/// grouping_error
pub const GROUPING: &str = "42803";
/// duplicate_alias
pub const DUPLICATE_ALIAS: &str = "42712";
/// invalid_savepoint_specification
pub const UNDEFINED_SAVEPOINT: &str = "3B001";
/// windowing_error
pub const WINDOWING: &str = "42P20";
/// invalid_column_reference: no key on the columns that ON CONFLICT names
pub const NO_SUCH_KEY: &str = "42P10";
/// A position behind the last select item.
pub const INVALID_REFERENCE: &str = "42P10";
/// LIMIT below 0.
pub const NEGATIVE_LIMIT: &str = "2201W";
/// OFFSET below 0.
pub const NEGATIVE_OFFSET: &str = "2201X";
/// invalid_regular_expression
pub const INVALID_REGEX: &str = "2201B";
/// statement_too_complex
pub const TOO_COMPLEX: &str = "54001";
/// A rule of SQL is broken and no code of its own exists: syntax_error_or_access_rule_violation
pub const RULE_VIOLATION: &str = "42000";
/// datetime_field_overflow
pub const DATETIME_RANGE: &str = "22008";
/// invalid_datetime_format
pub const BAD_DATETIME: &str = "22007";
