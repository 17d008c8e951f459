//! The engine's one error type: what happened, where, what to do, with a SQLSTATE and a kind by what the caller should
//! do (contract 7).

use std::fmt;
use std::sync::Arc;

use crate::ids::KeyId;

/// Result of a storage operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller should do about an error. Later versions may have more kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong; change it.
    Invalid,
    /// Another transaction committed first; run the transaction again.
    Conflict,
    /// The data breaks a constraint of the table.
    Constraint,
    /// A named thing does not exist.
    NotFound,
    /// A file is damaged.
    Corrupt,
    /// The operating system failed a file operation.
    Io,
    /// Disk or memory is exhausted; free some, then try again.
    Full,
    /// The database is closed, locked by another process, or no longer takes writes.
    Closed,
    /// A defect of the engine.
    Internal,
}

/// SQLSTATE codes the engine uses, by the names PostgreSQL gives them.
pub mod sqlstate {
    /// feature_not_supported
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    /// transaction_resolution_unknown
    pub const OUTCOME_UNKNOWN: &str = "08007";
    /// string_data_right_truncation
    pub const STRING_TOO_LONG: &str = "22001";
    /// numeric_value_out_of_range
    pub const OUT_OF_RANGE: &str = "22003";
    /// datetime_field_overflow
    pub const DATETIME_OVERFLOW: &str = "22008";
    /// division_by_zero
    pub const DIVISION_BY_ZERO: &str = "22012";
    /// invalid_text_representation
    pub const INVALID_TEXT: &str = "22P02";
    /// bad_copy_file_format
    pub const BAD_COPY_FORMAT: &str = "22P04";
    /// cardinality_violation
    pub const ROW_TWICE: &str = "21000";
    /// not_null_violation
    pub const NOT_NULL: &str = "23502";
    /// unique_violation
    pub const UNIQUE: &str = "23505";
    /// read_only_sql_transaction
    pub const READ_ONLY: &str = "25006";
    /// active_sql_transaction
    pub const ACTIVE_TRANSACTION: &str = "25001";
    /// no_active_sql_transaction
    pub const NO_TRANSACTION: &str = "25P01";
    /// in_failed_sql_transaction
    pub const FAILED_TRANSACTION: &str = "25P02";
    /// serialization_failure
    pub const CONFLICT: &str = "40001";
    /// syntax_error
    pub const SYNTAX: &str = "42601";
    /// undefined_column
    pub const UNDEFINED_COLUMN: &str = "42703";
    /// duplicate_column
    pub const DUPLICATE_COLUMN: &str = "42701";
    /// datatype_mismatch
    pub const TYPE_MISMATCH: &str = "42804";
    /// undefined_table
    pub const UNDEFINED_TABLE: &str = "42P01";
    /// duplicate_table
    pub const DUPLICATE_TABLE: &str = "42P07";
    /// A schema (namespace) of that name exists.
    pub const DUPLICATE_SCHEMA: &str = "42P06";
    /// There is no such schema (namespace).
    pub const UNDEFINED_SCHEMA: &str = "3F000";
    /// Something else depends on what is to be dropped.
    pub const DEPENDENT_OBJECTS: &str = "2BP01";
    /// A row does not fulfil a CHECK.
    pub const CHECK: &str = "23514";
    /// A value for a column that only the engine fills.
    pub const GENERATED_ALWAYS: &str = "428C9";
    /// Something of that name exists.
    pub const DUPLICATE_OBJECT: &str = "42710";
    /// There is nothing of that name.
    pub const UNDEFINED_OBJECT: &str = "42704";
    /// The relation is of another kind.
    pub const WRONG_OBJECT_TYPE: &str = "42809";
    /// An IDENTITY column has no numbers left.
    pub const SEQUENCE_EXHAUSTED: &str = "2200H";
    /// invalid_table_definition
    pub const INVALID_TABLE: &str = "42P16";
    /// invalid_parameter_value
    pub const INVALID_PARAMETER: &str = "22023";
    /// program_limit_exceeded
    pub const LIMIT_EXCEEDED: &str = "54000";
    /// disk_full
    pub const DISK_FULL: &str = "53100";
    /// out_of_memory
    pub const OUT_OF_MEMORY: &str = "53200";
    /// object_in_use: locked by another process
    pub const LOCKED: &str = "55006";
    /// admin_shutdown: closed
    pub const CLOSED: &str = "57P01";
    /// query_canceled
    pub const CANCELED: &str = "57014";
    /// io_error
    pub const IO: &str = "58030";
    /// undefined_file
    pub const UNDEFINED_FILE: &str = "58P01";
    /// data_corrupted
    pub const CORRUPT: &str = "XX001";
    /// internal_error
    pub const INTERNAL: &str = "XX000";
}

/// An error of the engine. Cheap to clone: one failed write may have to be told to every waiting commit.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    sqlstate: &'static str,
    message: String,
    source: Option<Arc<std::io::Error>>,
    /// Of 23505.
    key: Option<(KeyId, Box<[u8]>)>,
    object: Option<NamedObject>,
    position: Option<usize>,
}

impl Inner {
    fn new(kind: ErrorKind, sqlstate: &'static str, message: String) -> Self {
        Self { kind, sqlstate, message, source: None, key: None, object: None, position: None }
    }
}

/// What kind of object a name in a statement is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A column.
    Column,
    /// A table or a view.
    Table,
    /// A table in front of its column, `t` of `t.c`.
    Qualifier,
    /// A schema.
    Schema,
    /// A function.
    Function,
    /// A type.
    Type,
    /// A setting, a constraint, a prepared statement and so on.
    Other,
}

/// The object that an error is about, as the statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject {
    /// What the name is taken for.
    pub kind: ObjectKind,
    /// The parts of its name, as SQL folds them: `["s", "t"]` of `S.t`.
    pub name: Vec<String>,
    /// Line and column, from 1, at which the planner read the name. It may have read another text than the user wrote.
    pub location: Option<(u64, u64)>,
}

impl NamedObject {
    /// The object of `kind` that is called `name`.
    pub fn new<N: Into<String>>(kind: ObjectKind, name: impl IntoIterator<Item = N>) -> Self {
        Self { kind, name: name.into_iter().map(Into::into).collect(), location: None }
    }
}

impl Error {
    /// An error of `kind` with SQLSTATE `sqlstate` (see [`sqlstate`]) and a message that says what, where and what to
    /// do.
    pub fn new(kind: ErrorKind, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner::new(kind, sqlstate, message.into())))
    }

    /// A wrong request.
    pub fn invalid(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, sqlstate, message)
    }

    /// Something the engine does not do (0A000): refused, never ignored.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// First committer wins: the transaction has to be run again (40001).
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, sqlstate::CONFLICT, message)
    }

    /// A broken constraint.
    pub fn constraint(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Constraint, sqlstate, message)
    }

    /// A key that is there twice (23505): `key`, the bytes of key `id`.
    pub fn duplicate(id: KeyId, key: &[u8], message: impl Into<String>) -> Self {
        let inner = Inner::new(ErrorKind::Constraint, sqlstate::UNIQUE, message.into());
        Self(Arc::new(Inner { key: Some((id, key.into())), ..inner }))
    }

    /// Damage found in `file` at byte `offset`.
    pub fn corrupt(file: impl fmt::Display, offset: u64, message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt, sqlstate::CORRUPT, format!("file {file} is damaged at byte {offset}: {message}"))
    }

    /// A failed file operation; a full disk becomes [`ErrorKind::Full`].
    pub fn io(operation: &str, file: impl fmt::Display, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let (kind, sqlstate) = match source.kind() {
            Io::StorageFull | Io::QuotaExceeded => (ErrorKind::Full, sqlstate::DISK_FULL),
            Io::NotFound => (ErrorKind::NotFound, sqlstate::UNDEFINED_FILE),
            _ => (ErrorKind::Io, sqlstate::IO),
        };
        let inner = Inner::new(kind, sqlstate, format!("could not {operation} {file}: {source}"));
        Self(Arc::new(Inner { source: Some(Arc::new(source)), ..inner }))
    }

    /// The database is closed or no longer takes writes.
    pub fn closed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, sqlstate::CLOSED, message)
    }

    /// A defect of the engine.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, sqlstate::INTERNAL, message)
    }

    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The five-character SQLSTATE.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate
    }

    /// The message without the SQLSTATE.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Of a key that is there twice: which key of the table, and its bytes.
    #[must_use]
    pub fn key(&self) -> Option<(KeyId, &[u8])> {
        self.0.key.as_ref().map(|(id, key)| (*id, &**key))
    }

    /// The object that the error is about, if it is about one that the statement names.
    #[must_use]
    pub fn object(&self) -> Option<&NamedObject> {
        self.0.object.as_ref()
    }

    /// Where in the text that was run the error is, if that is known: the number of the character, from 1. The text may
    /// be of several statements; it is counted from the beginning of the first.
    ///
    /// A position is that of a token. PostgreSQL has the same in the field `P` of its messages.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The same error with `context: ` in front of its message.
    #[must_use]
    pub fn context(&self, context: impl fmt::Display) -> Self {
        self.clone().with(|inner| inner.message = format!("{context}: {}", inner.message))
    }

    /// The same error with another message.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Self {
        self.with(|inner| inner.message = message.into())
    }

    /// The same error, which is about `object`.
    #[must_use]
    pub fn with_object(self, object: NamedObject) -> Self {
        self.with(|inner| inner.object = Some(object))
    }

    /// The same error, which is at character `position` of the text that was run; nowhere, if there is none.
    #[must_use]
    pub fn with_position(self, position: Option<usize>) -> Self {
        self.with(|inner| inner.position = position)
    }

    /// The error after `change`.
    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: {}", self.0.kind, self.0.sqlstate, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(e: arrow_schema::ArrowError) -> Self {
        use arrow_schema::ArrowError as A;
        match &e {
            A::DivideByZero => Self::invalid(sqlstate::DIVISION_BY_ZERO, "division by zero"),
            A::ArithmeticOverflow(m) => Self::invalid(sqlstate::OUT_OF_RANGE, m.clone()),
            A::CastError(m) | A::ParseError(m) => Self::invalid(sqlstate::INVALID_TEXT, m.clone()),
            A::MemoryError(m) => Self::new(ErrorKind::Full, sqlstate::OUT_OF_MEMORY, m.clone()),
            _ => Self::internal(e.to_string()),
        }
    }
}
