//! One writer, several readers: prefixes, chains, strings and order stay right while commits go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::{delta, key, note, notes, rows};
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, KeyId};
use crate::row::Value;
use crate::schema::TableSchema;

/// Commits; each appends two rows, so ten blocks are filled.
const COMMITS: u64 = 20_000;
/// Keys that are updated in turn.
const HOT: u64 = 61;
/// The row that commit `t` inserts for good has this key less `t`: in falling order, so that sorting has work to do.
const COLD: i64 = 1 << 40;

/// Of the commit that wrote it; every third is long.
fn text(t: u64) -> String {
    if t.is_multiple_of(3) { format!("the text that commit {t} wrote, not inline") } else { format!("{t}") }
}

/// What any snapshot at `at` must see. Commit `t` stands at offsets `2t - 2` (hot) and `2t - 1` (cold).
fn check(delta: &DeltaGeneration, schema: &TableSchema, at: u64, salt: u64) {
    let ts = CommitTs(at);
    let rows = delta.rows_at(ts);
    assert_eq!(u64::from(rows), 2 * at, "the prefix of commit {at}");
    for k in [salt % HOT, (salt + 7) % HOT] {
        let wanted = (1..=at).rev().take(HOT as usize).find(|t| t % HOT == k);
        let found = delta.lookup(KeyId::PRIMARY, &key(schema, &[Value::Int(k as i64)]), ts);
        assert_eq!(found.map(u64::from), wanted.map(|t| 2 * t - 2), "hot key {k} at {at}");
        if let (Some(offset), Some(t)) = (found, wanted) {
            assert_eq!(delta.value(&schema.columns[1], offset).unwrap(), Value::Text(text(t).into()));
            assert_eq!(delta.begin_of(offset), Some(CommitTs(t)));
        }
    }
    for t in [salt % (at + 1), at, at + 1] {
        let found = delta.lookup(KeyId::PRIMARY, &key(schema, &[Value::Int(COLD - t as i64)]), ts);
        assert_eq!(found.map(u64::from), (1..=at).contains(&t).then(|| 2 * t - 1), "cold key of {t} at {at}");
    }
    assert_eq!(delta.deletes().count_at(ts), at.saturating_sub(HOT));
    if let Some(range) = delta.block_ranges(rows).nth((salt % 11) as usize) {
        let keys = delta.read(&schema.columns[0], range.clone()).unwrap();
        let texts = delta.read(&schema.columns[1], range.clone()).unwrap();
        for (row, offset) in range.enumerate().step_by(1 + salt as usize % 5) {
            let t = u64::from(offset) / 2 + 1;
            let id = if offset % 2 == 0 { (t % HOT) as i64 } else { COLD - t as i64 };
            assert_eq!(keys.as_primitive::<Int64Type>().value(row), id);
            assert_eq!(texts.as_string_view().value(row), text(t));
        }
    }
}

/// What any thread may read without a snapshot: whole commits.
fn check_published(delta: &DeltaGeneration, schema: &TableSchema) {
    let rows = delta.rows();
    assert_eq!(rows % 2, 0, "half a commit");
    let Some(last) = rows.checked_sub(1) else { return };
    let t = u64::from(rows) / 2;
    assert_eq!(delta.begin_of(last), Some(CommitTs(t)));
    assert_eq!(delta.value(&schema.columns[1], last).unwrap(), Value::Text(text(t).into()));
    assert_eq!(delta.read(&schema.columns[1], last..rows).unwrap().as_string_view().value(0), text(t));
    assert!(delta.lookup(KeyId::PRIMARY, &key(schema, &[Value::Int(COLD - t as i64)]), CommitTs(t)).is_some());
}

fn check_order(delta: &DeltaGeneration, at: u64) {
    let rows = delta.rows_at(CommitTs(at));
    let order = delta.sorted_offsets(rows).unwrap();
    assert_eq!(order.len(), rows as usize);
    let place = |&offset: &u32| {
        let t = u64::from(offset) / 2 + 1;
        (if offset % 2 == 0 { (t % HOT) as i64 } else { COLD - t as i64 }, offset)
    };
    assert!(order.is_sorted_by(|a, b| place(a) < place(b)));
}

#[test]
fn readers_see_whole_commits_while_one_writer_appends() {
    let schema = notes();
    let delta = delta(&schema);
    let (applied, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 0..3u64 {
            let (schema, delta, applied, done) = (&schema, &delta, &applied, &done);
            scope.spawn(move || {
                let mut salt = reader;
                let mut old = 0;
                while !done.load(Ordering::Relaxed) {
                    salt = salt.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = applied.load(Ordering::Acquire);
                    check_published(delta, schema);
                    check(delta, schema, at, salt >> 33);
                    check(delta, schema, old, salt >> 33);
                    if salt >> 60 == 0 {
                        check_order(delta, at);
                        old = at;
                    }
                }
            });
        }
        let mut newest = [None; HOT as usize];
        for t in 1..=COMMITS {
            let slot = &mut newest[(t % HOT) as usize];
            // As a commit does it: end stamps and rows in any order, and only then the mark that readers start from.
            let former: Option<u32> = slot.replace((2 * t - 2) as u32);
            if t % 2 == 0 {
                delta.deletes().record(CommitTs(t), &former.into_iter().collect::<DeleteSet>());
            }
            let new = [note((t % HOT) as i64, &text(t)), note(COLD - t as i64, &text(t))];
            delta.append(&rows(&schema, &new), CommitTs(t)).unwrap();
            if t % 2 == 1 {
                delta.deletes().record(CommitTs(t), &former.into_iter().collect::<DeleteSet>());
            }
            applied.store(t, Ordering::Release);
            if t % 256 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    (0..40).for_each(|salt| check(&delta, &schema, COMMITS, salt * 7));
    check_order(&delta, COMMITS);
    check_order(&delta, COMMITS / 3);
}
