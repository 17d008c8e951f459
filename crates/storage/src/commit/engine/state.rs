//! What only the holder of the commit lock touches.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::commit::conflict::table_conflict;
use crate::commit::ddl::ended_numbers::EndedNumbers;
use crate::commit::delta_starts::DeltaStarts;
use crate::commit::recent::RecentDeletes;
use crate::disk::AsideFile;
use crate::error::Result;
use crate::ids::{ColumnId, CommitTs, TableId};
use crate::main_store::Run;
use crate::schema::TableSchema;
use crate::segment::Segment;

/// When a table was last changed by a commit (not by an install).
#[derive(Clone, Copy, Debug, Default)]
pub struct TableStamp {
    /// The last commit that inserted into, deleted from, altered or emptied the table.
    pub last_write: CommitTs,
    /// The last one that began the numbers of its IDENTITY columns anew.
    pub numbers_restarted: CommitTs,
}

/// Segments that left a table.
#[derive(Debug)]
pub(in crate::commit) enum Dropped {
    /// Some that a merge read.
    Segments(Vec<Arc<Segment>>),
    /// All of these runs, by name: to list their segments is not for the commit lock.
    Runs(Vec<Arc<Run>>),
}

/// What only the holder of the commit lock touches.
#[derive(Debug, Default)]
pub struct CommitState {
    /// Per table, its last write.
    pub(in crate::commit) stamps: BTreeMap<TableId, TableStamp>,
    /// Segments that left the current versions, with the timestamp of the record that dropped them: their files go when
    /// that record is fsynced and nobody reads them.
    pub(in crate::commit) dropped: Vec<(CommitTs, Dropped)>,
    /// Where the last commits deleted rows.
    pub(in crate::commit) recent_deletes: RecentDeletes,
    /// Where the rows of deltas begin in the log: replay must start at or before the oldest.
    pub(in crate::commit) delta_starts: DeltaStarts,
    /// Files aside that records name, with the records' timestamps: a replay reads them until a manifest covers the
    /// record.
    pub(in crate::commit) asides: Vec<(CommitTs, Arc<AsideFile>)>,
    /// Numbers taken of each IDENTITY column.
    pub(in crate::commit) numbers: BTreeMap<(TableId, ColumnId), u64>,
    /// And until they began anew, or their columns went, for those who see rows of before.
    pub(in crate::commit) ended_numbers: BTreeMap<(TableId, ColumnId), EndedNumbers>,
    /// The last commit that made a view.
    pub(in crate::commit) view_made: CommitTs,
    /// The last commit that dropped or altered what a view may read.
    pub(in crate::commit) relation_changed: CommitTs,
}

impl CommitState {
    /// A commit has written to `table`.
    pub(in crate::commit) fn note_write(&mut self, table: TableId, ts: CommitTs) -> &mut TableStamp {
        let stamp = self.stamps.entry(table).or_default();
        stamp.last_write = ts;
        stamp
    }

    /// Refuses rows for `schema`'s table with numbers that others draw again: counting has begun anew since they were
    /// `drawn`.
    pub(in crate::commit) fn check_numbers(&self, schema: &TableSchema, drawn: Option<CommitTs>) -> Result<()> {
        let Some(drawn) = drawn else { return Ok(()) };
        let restarted = self.stamps.get(&schema.id).map_or(CommitTs::ZERO, |stamp| stamp.numbers_restarted);
        if drawn < restarted { Err(table_conflict(schema)) } else { Ok(()) }
    }
}
