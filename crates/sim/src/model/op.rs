//! Operations, and random lists of them.

use mainstem_storage::settings::Synchronous;
use rand::Rng;
use rand::rngs::StdRng;

use super::shape::Shape;

/// What is wrong with an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing on purpose; keys may still collide.
    None,
    /// A NULL where none may be.
    Null,
    /// A key twice.
    Duplicate,
    /// Rows so long that they are written aside as segments.
    Bulky,
}

/// One operation. `slot` names a session, `table` picks among the tables there are; what does not apply is skipped.
/// Details come from the operation's own seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the statement")]
pub enum Op {
    /// BEGIN.
    Begin { slot: u8, synchronous: Synchronous, read_only: bool, applied: bool },
    /// INSERT of some rows.
    Insert { slot: u8, table: u8, rows: u16, flaw: Flaw, seed: u64 },
    /// INSERT ... ON CONFLICT of some rows, by one of the keys: rows that have it are changed, or left alone.
    Upsert { slot: u8, table: u8, rows: u16, seed: u64 },
    /// UPDATE of some columns, keys among them, where a condition holds.
    Update { slot: u8, table: u8, seed: u64 },
    /// UPDATE that passes the keys of the rows it meets around among them.
    Permute { slot: u8, table: u8, seed: u64 },
    /// DELETE where a condition holds.
    Delete { slot: u8, table: u8, seed: u64 },
    /// SELECT ... FOR UPDATE where a condition holds.
    Lock { slot: u8, table: u8, seed: u64 },
    /// CREATE TABLE.
    Create { slot: u8, name: u8, shape: Shape, segment_rows: u32, delta_rows: u32 },
    /// DROP TABLE.
    Drop { slot: u8, table: u8 },
    /// ALTER TABLE: columns come and go.
    Alter { slot: u8, table: u8, seed: u64 },
    /// TRUNCATE.
    Truncate { slot: u8, table: u8 },
    /// SAVEPOINT.
    Savepoint { slot: u8 },
    /// ROLLBACK TO one of the savepoints.
    RollbackTo { slot: u8, mark: u8 },
    /// RELEASE one of the savepoints.
    Release { slot: u8, mark: u8 },
    /// COMMIT.
    Commit { slot: u8 },
    /// ROLLBACK.
    Rollback { slot: u8 },
    /// The active delta is frozen.
    Freeze { table: u8 },
    /// Frozen deltas become a run.
    Flush { table: u8 },
    /// Everything becomes one run.
    Merge { table: u8 },
    /// A manifest is written.
    Checkpoint,
    /// The database is closed and opened.
    Reopen { background: bool },
}

/// How often which operation comes.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// Sessions.
    pub slots: u8,
    /// Share of freezes, flushes and merges, in percent.
    pub structural: u32,
    /// Share of schema changes, in percent.
    pub ddl: u32,
    /// Share of restarts, in percent.
    pub reopen: u32,
    /// Share of inserts written aside, in percent of inserts.
    pub bulky: u32,
    /// Whether restarts may turn background work on.
    pub background: bool,
    /// Whether commits may be `normal` and `off`.
    pub lazy: bool,
}

impl Default for Weights {
    fn default() -> Self {
        Self { slots: 4, structural: 16, ddl: 6, reopen: 2, bulky: 1, background: true, lazy: true }
    }
}

/// `count` operations.
#[must_use]
pub fn generate(rng: &mut StdRng, count: usize, weights: &Weights) -> Vec<Op> {
    let mut ops = vec![create(rng, 0, 0), Op::Commit { slot: 0 }, create(rng, 0, 1), Op::Commit { slot: 0 }];
    while ops.len() < count {
        if rng.random_ratio(1, 40) && weights.ddl > 0 {
            beside_a_writer(rng, weights, &mut ops);
        } else if rng.random_ratio(1, 40) {
            beside_a_lock(rng, weights, &mut ops);
        } else {
            ops.push(operation(rng, weights));
        }
    }
    ops
}

fn create(rng: &mut StdRng, slot: u8, name: u8) -> Op {
    Op::Create {
        slot,
        name,
        shape: Shape::ALL[rng.random_range(0..Shape::ALL.len())],
        segment_rows: [1, 7, 7, 16, 64][rng.random_range(0..5)],
        delta_rows: [3, 10, 40, 1_000][rng.random_range(0..4)],
    }
}

/// A schema change that is the whole of its transaction, while another one writes to the table.
fn beside_a_writer(rng: &mut StdRng, weights: &Weights, ops: &mut Vec<Op>) {
    let slot = rng.random_range(0..weights.slots);
    let (other, table) = ((slot + 1) % weights.slots, rng.random_range(0..8));
    let change = match rng.random_range(0..8) {
        0 => Op::Drop { slot, table },
        1..4 => Op::Truncate { slot, table },
        _ => Op::Alter { slot, table, seed: rng.random() },
    };
    let insert = Op::Insert { slot: other, table, rows: rng.random_range(1..6), flaw: Flaw::None, seed: rng.random() };
    ops.extend([Op::Commit { slot: other }, Op::Commit { slot }, change]);
    if other != slot {
        ops.extend([insert, Op::Commit { slot: other }]);
    }
    ops.push(Op::Commit { slot });
}

/// Rows are read FOR UPDATE while another one changes some, mostly the same ones. A savepoint may take that back.
fn beside_a_lock(rng: &mut StdRng, weights: &Weights, ops: &mut Vec<Op>) {
    let slot = rng.random_range(0..weights.slots);
    let (other, table, seed) = ((slot + 1) % weights.slots, rng.random_range(0..8), rng.random());
    let undone = rng.random_ratio(1, 3);
    let begin = Op::Begin { slot, synchronous: Synchronous::Full, read_only: false, applied: false };
    ops.extend([Op::Commit { slot: other }, Op::Commit { slot }, begin, Op::Savepoint { slot }]);
    // Of the same rows the same seed picks the same ones.
    ops.push(Op::Lock { slot, table, seed });
    ops.push(Op::Delete { slot: other, table, seed: if rng.random_ratio(1, 4) { rng.random() } else { seed } });
    if undone {
        ops.push(Op::RollbackTo { slot, mark: 0 });
    }
    if rng.random() {
        ops.push(Op::Insert { slot, table, rows: 1, flaw: Flaw::None, seed: rng.random() });
    }
    ops.push(Op::Commit { slot: other });
    if weights.structural > 0 && rng.random() {
        ops.push(Op::Flush { table });
    }
    ops.push(Op::Commit { slot });
}

fn operation(rng: &mut StdRng, weights: &Weights) -> Op {
    let slot = rng.random_range(0..weights.slots);
    let table = rng.random_range(0..8);
    let share = rng.random_range(0..100);
    let (ddl, structural) = (weights.ddl, weights.ddl + weights.structural);
    if share < ddl {
        return match rng.random_range(0..12) {
            0..3 => {
                let name = rng.random_range(0..4);
                create(rng, slot, name)
            }
            3 => Op::Drop { slot, table },
            4..7 => Op::Truncate { slot, table },
            _ => Op::Alter { slot, table, seed: rng.random() },
        };
    }
    if share < structural {
        return match rng.random_range(0..8) {
            0..3 => Op::Freeze { table },
            3..6 => Op::Flush { table },
            6 => Op::Merge { table },
            _ => Op::Checkpoint,
        };
    }
    if share < structural + weights.reopen {
        return Op::Reopen { background: weights.background && rng.random() };
    }
    write(rng, weights, slot, table)
}

fn write(rng: &mut StdRng, weights: &Weights, slot: u8, table: u8) -> Op {
    let seed = rng.random();
    match rng.random_range(0..100) {
        0..12 => Op::Begin {
            slot,
            synchronous: if weights.lazy {
                [Synchronous::Full, Synchronous::Normal, Synchronous::Off][rng.random_range(0..3)]
            } else {
                Synchronous::Full
            },
            read_only: rng.random_ratio(1, 4),
            applied: rng.random_ratio(1, 6),
        },
        12..38 => {
            let flaw = match rng.random_range(0..100) {
                n if n < weights.bulky => Flaw::Bulky,
                0..6 => Flaw::Null,
                6..12 => Flaw::Duplicate,
                _ => Flaw::None,
            };
            Op::Insert { slot, table, rows: rng.random_range(1..14), flaw, seed }
        }
        38..44 => Op::Lock { slot, table, seed },
        44..50 => Op::Upsert { slot, table, rows: rng.random_range(1..10), seed },
        50..56 => Op::Update { slot, table, seed },
        56..62 => Op::Permute { slot, table, seed },
        62..76 => Op::Delete { slot, table, seed },
        76..92 => Op::Commit { slot },
        92..94 => Op::Rollback { slot },
        94..97 => Op::Savepoint { slot },
        97..99 => Op::RollbackTo { slot, mark: rng.random_range(0..4) },
        _ => Op::Release { slot, mark: rng.random_range(0..4) },
    }
}

/// What kind of statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    Insert(u16, Flaw),
    Upsert(u16),
    Update,
    Permute,
    Delete,
    /// SELECT ... FOR UPDATE.
    Lock,
}
