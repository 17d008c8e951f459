//! Every threshold of the engine, with its derivation. Nothing else in the crate hard-codes a size.

use crate::ids::RowRef;

/// Rows of a full segment unless the table says otherwise: 16 batches of 8,192; a column of 8-byte values is 1 MiB
/// plain, so one block read is worth its seek and a merge of 8 inputs decodes at most 8 MiB a column.
pub const SEGMENT_ROWS_DEFAULT: u32 = 131_072;
/// Fewest rows a segment may be asked to have: tests use 7 to make many segments of few rows.
pub const SEGMENT_ROWS_MIN: u32 = 1;
/// Most rows a segment may be asked to have; bounded by the offset bits of a row reference.
pub const SEGMENT_ROWS_MAX: u32 = 1 << 22;

/// Most bytes of one column block: 2 GiB of text behind 31-bit offsets, and what stands before it. A larger length in
/// metadata is damage.
pub const SEGMENT_BLOCK_BYTES_MAX: u64 = 3 << 30;
/// Bytes of text in one column at which a segment gets fewer rows: wide rows should not make merges hold gigabytes.
pub const SEGMENT_TEXT_BYTES_MAX: u64 = 128 << 20;
/// Bits of key filter per row: about 0.7 % of probes for absent keys read a segment in vain, for 1.5 bytes a row.
pub const KEY_FILTER_BITS: usize = 12;
/// Bytes of a text in a zone map; longer bounds are shortened. Metadata of every segment stays in memory.
pub const ZONE_TEXT_BYTES_MAX: usize = 32;
/// Bytes of an encoded key in a segment's key bounds; longer ones are shortened.
pub const KEY_BOUND_BYTES_MAX: usize = 256;
/// Segment files that are open at once: an opened one saves three microseconds a look-up, and processes may often have
/// no more than 1,024.
pub const SEGMENT_FILES_OPEN_MAX: usize = 128;
/// Bytes of a block that is opened for a single row: two pages, which the row might need anyway.
pub const SMALL_BLOCK_BYTES: u64 = 8 << 10;
/// While the cache has room, a block is opened when 1 / this of its bytes were read in pages: for a full segment that
/// is after 16 rows.
pub const PAGES_BEFORE_OPENING_SHARE: u64 = 8;
/// When others would have to go for it, a block is opened after this many times its bytes were read in pages: what is
/// opened, and perhaps evicted before it was worth it, costs at most a quarter of what pages cost.
pub const PAGES_BEFORE_EVICTING: u64 = 4;
/// Bytes of blocks of the segment being written that are kept until it is opened: those of 32 columns of 8-byte values.
pub const WRITTEN_BLOCKS_KEPT_BYTES: usize = 32 << 20;
/// Rows of a column that are gathered from pages, at most; for more its block is opened.
pub const GATHER_PAGES_MAX: usize = 16;

/// Rows of a scan's Arrow batch (contract 5).
pub const BATCH_ROWS: usize = 8_192;

/// Rows of a table that are worth waiting for the keys of a join, unless a session sets another number.
pub const DYNAMIC_FILTER_MIN_ROWS: u32 = 16_384;

/// Rows of a block of a delta generation: a permutation inside a block fits `u16`, and a column of 8-byte values is 32
/// KiB, the size of a first-level cache.
pub const DELTA_BLOCK_ROWS: u32 = 4_096;
/// Rows at which a delta generation is frozen unless the table says otherwise. Sorting and merging that many takes tens
/// of milliseconds; a scan pays for at most about two generations of unsorted rows.
pub const DELTA_ROWS_DEFAULT: u32 = 131_072;
/// Bytes at which a delta generation is frozen, whatever its rows.
pub const DELTA_BYTES_MAX: u64 = 64 << 20;
/// Bytes that no delta generation exceeds, though its freeze be late.
pub const DELTA_BYTES_HARD_MAX: u64 = 4 << 30;

/// Partitions of a delta generation's key hash, each growing alone: a generation of 2 M small rows has 8,192 rows in
/// each, which are moved to a larger table in 40 us (contract 2b).
pub const DELTA_KEY_PARTITIONS: usize = 256;
/// Slots of a key partition when it gets its first row.
pub const DELTA_KEY_SLOTS_MIN: usize = 16;
/// Bytes of the first chunk of long strings of a column block; each further one is twice as large, up to
/// [`DELTA_HEAP_CHUNK_BYTES_MAX`].
pub const DELTA_HEAP_CHUNK_BYTES_MIN: usize = 4 << 10;
/// Bytes of a full-grown chunk of long strings; a longer string has a chunk of its own.
pub const DELTA_HEAP_CHUNK_BYTES_MAX: usize = 1 << 20;
/// Bytes of one row in row format: a value of PostgreSQL's largest size (1 GiB) fits, and every offset in a row fits
/// `u32`.
pub const ROW_BYTES_MAX: usize = 1 << 30;

/// Rows of a table with one key that a commit may append to deltas under the commit lock, over all its tables, as far
/// as their keys go: 0.1 us each. A larger write set is written aside as segments before the lock.
pub const COMMIT_ROWS_MAX: usize = 4_096;
/// Values that it may append there, of all columns together: up to 30 ns each, with what a row costs besides, so 0.75
/// ms (contract 2b; 4,096 rows of eight columns took 0.7 to 1.0 ms).
pub const COMMIT_CELLS_MAX: usize = 24_576;

/// The same for a table with `keys` keys and `columns` columns: each row is put into the hash of each key, and into
/// each column.
#[must_use]
pub const fn commit_rows_max(keys: usize, columns: usize) -> usize {
    let keys = if keys == 0 { 1 } else { keys };
    let columns = if columns == 0 { 1 } else { columns };
    let by_keys = COMMIT_ROWS_MAX / keys;
    let by_columns = COMMIT_CELLS_MAX / columns;
    let rows = if by_keys < by_columns { by_keys } else { by_columns };
    if rows == 0 { 1 } else { rows }
}

/// Keys that validation under the lock may look up, over all keys and containers of all tables: 50 to 100 ns each. With
/// more it starts over outside.
pub const VALIDATE_KEYS_MAX: usize = 4_096;
/// Bytes of rows a commit may append under the lock: copying 1 MiB takes about 0.1 ms.
pub const COMMIT_BYTES_MAX: usize = 1 << 20;
/// Rows that a short statement, a transaction of its own, may update or delete without a write set: each is looked at
/// under the commit lock.
pub const SHORT_UPDATE_ROWS_MAX: usize = 1_024;
/// Rows that such a statement may insert: the keys of each are compared with those of the others.
pub const SHORT_INSERT_ROWS_MAX: usize = 16;
/// Row references that a commit marks as deleted one by one under the lock, at most: 2 ns each. With more it has an
/// intent in each container before the lock, makes them true at once, and marks the rows afterwards.
pub const COMMIT_DELETES_MAX: usize = 4_096;
/// Containers in which it marks rows one by one, at most: 1 us each, above all for memory that the first marks of a
/// container need.
pub const COMMIT_DELETE_CONTAINERS_MAX: usize = 256;
/// Encoded bytes of deletes that a log record, or the manifest, holds itself; what is more is written aside as a delete
/// file. 4,096 row references in as many containers just fit; to copy and checksum them takes 20 us under the lock.
pub const INLINE_DELETE_BYTES: usize = 64 << 10;
/// Encoded bytes of runs (the metadata of their segments, about 100 a column and segment) that a commit or install
/// record holds itself; what is more is written aside: to copy and checksum as much takes 20 us under the lock.
pub const INLINE_RUN_BYTES: usize = 64 << 10;
/// Bytes at which a block of a file aside ends: replay holds one in memory.
pub const ASIDE_BLOCK_BYTES: usize = 1 << 20;
/// Most bytes of a block of a file aside: its last set may be the bitmap of a whole container (2 MiB). More is damage.
pub const ASIDE_BLOCK_BYTES_MAX: usize = 4 << 20;
/// Rows that validation under the lock may look up in what was deleted after the validation point, 10 to 20 ns each
/// (bitmaps are compared by words, for less); with more it starts over outside.
pub const VALIDATE_LOOKUPS_MAX: usize = 32_768;
/// Containers whose deletes by the last commits an install can look at under the lock, 0.1 us each; with more it has
/// another round outside.
pub const RECENT_DELETES: usize = 4_096;
/// Commits after the validation point that validation under the lock may look at; with more it starts over outside.
pub const VALIDATE_COMMITS_MAX: u64 = 1_024;
/// Times a commit is validated while others may overtake it, before it takes a turn (`commit::gate`): the second time
/// is for the usual case, one merge that came between.
pub const COMMIT_ROUNDS_OPEN: u32 = 2;
/// Times a single-statement transaction is run again before its table's write gate is closed for it (contract 2).
pub const STATEMENT_ATTEMPTS_OPEN: u32 = 2;

/// Numbers of an IDENTITY column that are reserved at first, in one fsynced record: what a crash loses of a seldom used
/// column.
pub const IDENTITY_BLOCK_MIN: u64 = 32;
/// And at most, when the column is drawn from again and again: an fsync of 1 ms is then 0.1 us a number.
pub const IDENTITY_BLOCK_MAX: u64 = 8_192;

/// Rows a bulk load sorts in memory at once: 8 segments become one run.
pub const LOAD_SORT_ROWS: usize = 8 * SEGMENT_ROWS_DEFAULT as usize;
/// Threads of a bulk load: encoding, gathering and joining columns is most of its work, and writing them, by one, the
/// rest.
pub const LOAD_THREADS_MAX: usize = 4;
/// Bytes of values at which a bulk load sorts what it has: wide rows come in smaller sorts.
pub const LOAD_SORT_BYTES: usize = 256 << 20;

/// Bytes of a block of rows that a load puts aside are 1 / this of those of a whole sort: 94 KiB with the default
/// limit, some 700 line items. Fewer blocks in this crate's own tests, where there are few rows, and smaller ones.
pub const SPILL_BLOCKS: usize = if cfg!(test) { 320 } else { 2_048 };
/// Bytes of such a block at least: what is known of it, and of its columns, has some 400.
pub const SPILL_BLOCK_BYTES_MIN: usize = if cfg!(test) { 64 } else { 4 << 10 };
/// Blocks that are gathered, and written, at once: 1.5 MiB with the default limit.
pub const SPILL_BLOCKS_AT_ONCE: usize = 16;
/// A range of keys reads a block of each sort beside its own: together they may have 1 / this of a whole sort's bytes,
/// so that a load goes on in a quarter of the share of loads, where another holds the rest. There are about 130 sorts
/// then; with the default limit the first third has a chunk of a file each, and all have 60 M line items. A run is made
/// of them, then others follow.
pub const SPILL_REACHING_SHARE: usize = 16;
/// What is known of blocks may have 1 / this of a whole sort's bytes: 180 KiB for a sort with keys of 14 bytes.
pub const SPILL_KNOWN_SHARE: usize = 4;
/// Texts of a column that rows put aside name by codes, at most, and the bytes of one: a load holds them beside its
/// rows.
pub const SPILL_TEXTS_MAX: usize = 1 << 12;
/// See [`SPILL_TEXTS_MAX`].
pub const SPILL_TEXT_BYTES: usize = 64;
/// While there are few sorts they take 1 / this of the memory of a whole one, if so small batches come.
pub const SPILL_SORT_SHARE: usize = 8;
/// Rows of a range of keys that one thread sorts: a few MiB, which its cache holds.
pub const SPILL_RANGE_ROWS: usize = if cfg!(test) { 64 } else { 32 << 10 };

/// Segments up to which a load makes a run longer: 128 M rows. A list of so many is made in 0.1 ms.
pub const EXTENDED_RUN_SEGMENTS_MAX: u64 = 1_024;

/// Bytes of files that one load makes durable together at most, and how many files: their descriptors are open until
/// then, those of each load that runs.
pub const SYNC_PHASE_BYTES: u64 = 256 << 20;
/// See [`SYNC_PHASE_BYTES`].
pub const SYNC_PHASE_FILES: usize = 64;

/// Bytes that are worth a sort of their own, when many loads share memory: 40,000 rows of 100 bytes. With the default
/// share of loads 64 of them collect at once.
pub const LOAD_PIECE_BYTES_MIN: u64 = 4 << 20;
/// A load leaves 1 / this of what it holds to those that begin: alone it sorts three quarters of the share of loads
/// (192 MiB with the default limit), and three loads can stand still with all they may have before there is less than a
/// piece left.
pub const LOAD_LEAVES_SHARE: u64 = 3;

/// Bytes of an entry of a key index in memory, whose key is a number of 8 bytes: that, and the row reference.
pub const KEY_INDEX_ENTRY_BYTES: u64 = 16;
/// Bytes of entries of a key index that are sorted in memory at once, and of what their sort takes, by
/// [`KEY_INDEX_ENTRY_BYTES`]: 64 MiB, a quarter of the reserve with the default limit, for 2 M entries with numbers.
/// With a smaller limit they are fewer.
pub const KEY_INDEX_SORT_ENTRIES: usize = 4 << 20;
/// Sorted runs of entries that are merged at once: a load of 64 M rows has as many with the default limit, so its
/// entries are written twice. Each costs a merge the keys of one segment, 1 MiB if they are numbers.
pub const KEY_INDEX_FAN_IN: usize = 32;

/// Bits of the name of an entry of an index in memory: 2 G entries, over all that are merged into one. The one bit left
/// tells it from a node.
pub const INDEX_LEAF_BITS: u32 = 31;
/// Bits of the name of a node, of each kind; three tell the kind.
pub const INDEX_NODE_BITS: u32 = 28;
/// Entries of a page, as a power of two: 4 MiB of keys and rows of 4 bytes each, so that at least one large page of
/// memory (2 MiB) lies in it wherever it begins. There are names for 4,096 pages, so for as many indexes that are
/// merged: threads go on in one index from chunk to chunk. An index of few entries has one small page.
pub const INDEX_LEAF_PAGE_BITS: u32 = 19;
/// The same of nodes for 4 children: 4.5 MiB with keys of 4 bytes.
pub const INDEX_NODE4_PAGE_BITS: u32 = 17;
/// The same of nodes for 16 children: 3 MiB.
pub const INDEX_NODE16_PAGE_BITS: u32 = 15;
/// The same of nodes for 48 children: 3.8 MiB.
pub const INDEX_NODE48_PAGE_BITS: u32 = 13;
/// The same of nodes for 256 children: 4 MiB.
pub const INDEX_NODE256_PAGE_BITS: u32 = 12;
/// Bytes of a page of keys, as a power of two: of 32 bits that name a key so many are its place in the page, and all
/// pages have 4 GiB. A longer key has a page of its own.
pub const INDEX_KEY_PAGE_BITS: u32 = 16;
/// Bits of the places of a hash table's directory, at most: 2 GiB of them.
pub const INDEX_DIRECTORY_BITS_MAX: u32 = 29;
/// Keys that are looked for in an index at once, a level after the other, so that what is not in a cache comes for all
/// of them together: a core waits for about as many lines at a time.
pub const INDEX_KEYS_AHEAD: usize = 16;
/// Parts of a merge of indexes, about, at least: with 4 threads each has 16, so that the last one of each costs the
/// others 6 % at most.
pub const INDEX_MERGE_PARTS: usize = 64;
/// Nodes below one another that building and merging go down at once: a few hundred bytes of stack each. Keys of
/// numbers have 8 at most; those that are the beginnings of so many others are rare.
pub const INDEX_DEPTH_MAX: usize = 64;

/// Single delete-log entries that are folded into a bitmap at once.
pub const DELETE_LOG_FOLD_ENTRIES: usize = 512;
/// Bitmaps a delete log keeps for scans at timestamps nobody folded for: the last few, since readers start at the
/// present.
pub const DELETE_LOG_RECENT_BITMAPS: usize = 4;
/// Offsets up to which a set of deletes is a sorted list (1 KiB, eight steps to search); a larger one is a compressed
/// bitmap.
pub const DELETE_SET_FEW_MAX: usize = 256;

/// Sorted runs a merge takes in at once (MemSQL section V: fan-in 8).
pub const MERGE_FAN_IN: usize = 8;
/// Each run is at most this share (1 / ratio) of the next larger one (MemSQL section IV.A: 8).
pub const RUN_DECAY_RATIO: u64 = 8;
/// Segments of older rows up to which a merge is short (MemSQL section VI.A: the fast merger's bound): at 2 M rows a
/// second it takes less than a second, and a flush waits for one at most.
pub const FLUSH_SEGMENTS_MAX: u64 = 10;
/// A run is rewritten when more than 1 / this of its rows are deleted: a rewrite then costs 3 live rows for each row it
/// frees.
pub const DEAD_SHARE: u64 = 4;
/// Dead rows of a delta that readers of ranges step over in about the time in which a flush writes a row: each is
/// looked up by its key.
pub const DELTA_DEAD_STEPS_OF_ROW: u64 = 4;
/// The same of a segment: when a row was deleted is looked up in its log.
pub const SEGMENT_DEAD_STEPS_OF_ROW: u64 = 2;
/// Fewer steps than so many are not worth a file.
pub const DEAD_STEPS_MIN: u64 = 8_192;

/// Bytes of a log block; a reader that meets damage goes on at the next block (contract 4).
pub const WAL_BLOCK_BYTES: usize = 32 << 10;
/// Bytes of a log file before the next one begins.
pub const WAL_FILE_BYTES: u64 = 16 << 20;
/// Bytes of disk space set aside at a time for the log file being written: 1 MiB holds about 8,000 one-row commits, and
/// a small database does not look large.
pub const WAL_RESERVE_BYTES: u64 = 1 << 20;
/// Bytes of it that no record takes: an opening cuts the file, and on a full disk has them back for the end of that
/// file, the header of the next one and their metadata, a block of most file systems each.
pub const WAL_ROOM_KEPT_BYTES: u64 = 16 << 10;
/// Bytes of appended records not yet handed to the operating system at which a writer hands them on before it appends:
/// `synchronous = off` must not outrun the disk by more.
pub const WAL_BUFFER_BYTES: usize = 8 << 20;
/// Bytes of one record's payload: replay holds one in memory. What is larger is written aside and named (contract 4).
pub const WAL_RECORD_BYTES_MAX: usize = 64 << 20;
/// Bytes of log that a restart may have to replay (contract 4): default of `log_tail_bytes_max`.
pub const WAL_TAIL_BYTES_MAX: u64 = 256 << 20;
/// Log files at which opening makes a checkpoint: each opening that wrote leaves one, however little is in it, and each
/// costs the next opening a few calls of the system. A tail of [`WAL_TAIL_BYTES_MAX`] has half as many.
pub const WAL_FILES_MAX: u64 = 32;
/// Log tail at which a checkpoint is made in the background.
pub const WAL_CHECKPOINT_BYTES: u64 = 64 << 20;
/// Bytes of files that stay set aside from openings before the last one that set some aside, which are always kept:
/// what somebody has not looked at for so long should not fill the disk.
pub const LOST_FILES_BYTES_MAX: u64 = 1 << 30;
/// Milliseconds within which `synchronous = normal` commits are fsynced.
pub const WAL_NORMAL_SYNC_MS: u64 = 1_000;
/// Bytes of log in the operating system's hands that are fsynced before that second is over: at the end of a log file
/// all who write wait until the disk has it, and then there is not more left to do than 20 ms of a disk that takes 200
/// MB/s.
pub const WAL_SYNC_AHEAD_BYTES: u64 = 4 << 20;
/// Milliseconds within which `synchronous = off` commits are handed to the operating system.
pub const WAL_OFF_WRITE_MS: u64 = 10;

/// Default of `memory_limit`, in bytes, where the memory of the machine is not known.
pub const MEMORY_LIMIT_DEFAULT: u64 = 4 << 30;
/// Least that `memory_limit` can be set to while the database is open: the smallest share of rows then is half a MiB, a
/// batch of eight columns of 8-byte values, and queries have ten times that.
pub const MEMORY_LIMIT_MIN: u64 = 16 << 20;
/// What each [`MemoryKind`] may take of `memory_limit`, in units of 1 / [`MEMORY_UNITS`], in their order: active
/// deltas, frozen deltas, old deltas, write sets, loads, forwarding, delete logs, block cache, queries, plans, files,
/// reserve.
/// Together they are all of it, so that each may take its share whatever the others do. What queries leave of theirs is
/// lent to the block cache until they take it.
///
/// The reserve is for those who free memory: a merge holds a column of [`MERGE_FAN_IN`] segments and of the one it
/// writes (9 MiB of 8-byte values), the codes of two and what [`WRITTEN_BLOCKS_KEPT_BYTES`] says; a commit the record
/// it logs (at most [`WAL_RECORD_BYTES_MAX`]); recovery one record. Rows that a transaction writes aside are sorted in
/// what is left of it, a quarter at a time; one transaction at a time merges runs of its own, as a merge does; a load
/// that others wait for at a write gate takes a piece ([`LOAD_PIECE_BYTES_MIN`]); and sorted entries of key indexes are
/// merged in it ([`KEY_INDEX_FAN_IN`] segments of them). It is held by being nobody's share: what limits the others
/// leaves it free.
///
/// [`MemoryKind`]: crate::memory::MemoryKind
pub const MEMORY_SHARES: [u64; 12] = [4, 8, 2, 6, 4, 2, 2, 9, 20, 1, 2, 4];
/// A load that finds nothing left of the share of files has 1 / this of it, beyond the share: it would not go on else.
pub const FILE_MEMORY_PART: u64 = 8;
/// Units of [`MEMORY_SHARES`].
pub const MEMORY_UNITS: u64 = 64;
/// Bytes of buffered rows that are worth a run of their own, when write sets take too much: smaller ones would make
/// many runs, all of which later look-ups ask.
pub const SPILL_BYTES_MIN: u64 = 4 << 20;
/// Runs of one table that a transaction may have written aside before it merges some: every look-up asks each of them.
/// More than one merge takes: what is committed at once is left to the merges of all, which nobody waits for. Fewer
/// than those that hold up flushes (`merge::policy`).
pub const OWN_RUNS_MAX: usize = MERGE_FAN_IN + MERGE_FAN_IN / 2;
/// Rows at which a chunk of buffered rows is full: scans take it at once, and that many pointers less are shared.
pub const OWN_CHUNK_ROWS: usize = BATCH_ROWS;
/// Bytes at which it is.
pub const OWN_CHUNK_BYTES: usize = 1 << 20;
/// Longest time, in milliseconds, that a writer waits for merges to free memory (53200), or for a shorter log tail
/// (53100), before its statement fails. Longer in this crate's own tests: they show what is waited for, on a machine as
/// slow as may be.
pub const BACK_PRESSURE_MS_MAX: u64 = if cfg!(test) { 600_000 } else { 10_000 };

const _: () = assert!(SEGMENT_ROWS_MAX <= RowRef::OFFSETS);
const _: () = {
    let (mut all, mut at) = (0, 0);
    while at < MEMORY_SHARES.len() {
        all += MEMORY_SHARES[at];
        at += 1;
    }
    assert!(all == MEMORY_UNITS);
};
const _: () = assert!(MEMORY_LIMIT_DEFAULT / MEMORY_UNITS * MEMORY_SHARES[11] >= 2 * WAL_RECORD_BYTES_MAX as u64);
const _: () = assert!(MEMORY_LIMIT_MIN / MEMORY_UNITS * MEMORY_SHARES[2] >= 8 * 8 * BATCH_ROWS as u64);
const _: () = assert!(OWN_CHUNK_ROWS >= 2 * COMMIT_ROWS_MAX);
const _: () = assert!(DELTA_BLOCK_ROWS <= 1 << 16);
const _: () = assert!(DELTA_BLOCK_ROWS.is_multiple_of(64) && RowRef::OFFSETS.is_multiple_of(DELTA_BLOCK_ROWS));
const _: () = assert!(DELTA_KEY_PARTITIONS.is_power_of_two() && DELTA_KEY_SLOTS_MIN.is_power_of_two());
const _: () = assert!(WAL_CHECKPOINT_BYTES < WAL_TAIL_BYTES_MAX && WAL_FILE_BYTES <= WAL_CHECKPOINT_BYTES);
const _: () = assert!(WAL_TAIL_BYTES_MAX / WAL_FILE_BYTES < WAL_FILES_MAX);
const _: () = assert!(WAL_RESERVE_BYTES < WAL_FILE_BYTES && COMMIT_BYTES_MAX < WAL_BUFFER_BYTES);
const _: () = assert!(WAL_ROOM_KEPT_BYTES <= WAL_RESERVE_BYTES / 64);
const _: () = assert!(2 * WAL_SYNC_AHEAD_BYTES <= WAL_FILE_BYTES);
const _: () = assert!(WAL_BLOCK_BYTES <= 1 << 16);
const _: () = assert!(ASIDE_BLOCK_BYTES + RowRef::OFFSETS as usize / 8 < ASIDE_BLOCK_BYTES_MAX);
const _: () = assert!(COMMIT_DELETES_MAX * 16 <= INLINE_DELETE_BYTES && INLINE_DELETE_BYTES < WAL_BUFFER_BYTES);
const _: () = assert!(INLINE_DELETE_BYTES + INLINE_RUN_BYTES + COMMIT_BYTES_MAX < WAL_BUFFER_BYTES);
