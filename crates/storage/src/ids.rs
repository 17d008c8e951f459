//! Identifiers and positions. Each is a newtype, so that a row offset is never taken for a container or a timestamp.

use std::fmt;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A point on the database's one time line. Commits, installs and DDL draw consecutive values under the commit lock
    /// (contract 1). 0 is "before everything".
    CommitTs(u64)
}
id! {
    /// A table, for as long as the database lives; never reused.
    TableId(u64)
}
id! {
    /// A column of one table; never reused within it (contract 1).
    ColumnId(u32)
}
id! {
    /// A key of one table, the PRIMARY KEY or a UNIQUE constraint; never reused within it.
    KeyId(u32)
}
id! {
    /// A delta generation or a segment: whatever rows live in. Never reused; at most [`ContainerId::MAX`].
    ContainerId(u64)
}
id! {
    /// A sorted (or, in layout `insertion`, arrival-ordered) run of segments.
    RunId(u64)
}
id! {
    /// A file of the data directory; never reused.
    FileId(u64)
}
id! {
    /// One version of a table's schema; grows with every DDL statement on the table.
    SchemaVersion(u64)
}
id! {
    /// A byte of the log, counted over all its files since the database was made; never reused, except above a torn
    /// tail.
    LogPosition(u64)
}

impl KeyId {
    /// The PRIMARY KEY of every table that has one.
    pub const PRIMARY: Self = Self(0);
}

impl CommitTs {
    /// Later than every commit: "still live".
    pub const INFINITY: Self = Self(u64::MAX);
    /// Before every commit.
    pub const ZERO: Self = Self(0);

    /// The next point on the time line.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl ContainerId {
    /// Largest id of a stored container: ids have 40 bits inside a [`RowRef`], and those above it name a transaction's
    /// own rows.
    pub const MAX: Self = Self((1 << 39) - 1);

    /// The rows that a transaction has buffered in one table, which are in no store yet: its `nth` container of them. A
    /// reference to one before names nothing afterwards.
    #[must_use]
    pub fn own_rows(nth: u64) -> Self {
        Self(Self::MAX.0 + 1 + nth % (1 << 39))
    }

    /// Whether it is one of [`ContainerId::own_rows`].
    #[must_use]
    pub fn is_own_rows(self) -> bool {
        self > Self::MAX
    }
}

/// Where a row version lives: container (40 bits) and offset in it (24 bits). Valid until the row moves; opaque to
/// users. Orders by container, then offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowRef(u64);

impl RowRef {
    /// Bits of the offset.
    pub const OFFSET_BITS: u32 = 24;
    /// Rows one container can hold.
    pub const OFFSETS: u32 = 1 << Self::OFFSET_BITS;

    /// Names row `offset` of `container`.
    #[must_use]
    pub fn new(container: ContainerId, offset: u32) -> Self {
        debug_assert!(offset < Self::OFFSETS && container.0 < 1 << 40);
        Self(container.0 << Self::OFFSET_BITS | u64::from(offset))
    }

    /// The container the row lives in.
    #[must_use]
    pub fn container(self) -> ContainerId {
        ContainerId(self.0 >> Self::OFFSET_BITS)
    }

    /// The row's offset in its container.
    #[must_use]
    pub fn offset(self) -> u32 {
        (self.0 & u64::from(Self::OFFSETS - 1)) as u32
    }

    /// The 64-bit form that travels in a UInt64 column of a scan that asks for row references.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Back from [`RowRef::to_bits`].
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Debug for RowRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowRef({}:{})", self.container().0, self.offset())
    }
}
