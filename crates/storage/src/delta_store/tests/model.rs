//! A generation against a list of rows with begin and end, at random snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{delta, key, rows, table};
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, KeyId};
use crate::row::{Value, array_of};
use crate::schema::{DataType, TableSchema};

fn schema() -> Arc<TableSchema> {
    table(
        &[
            (DataType::Integer, false),
            (DataType::Text { max_chars: None }, false),
            (DataType::Boolean, true),
            (DataType::SmallInt, true),
            (DataType::BigInt, false),
            (DataType::Real, true),
            (DataType::Double, true),
            (DataType::Decimal { precision: 12, scale: 2 }, true),
            (DataType::Decimal { precision: 38, scale: 0 }, true),
            (DataType::Date, true),
            (DataType::Timestamp, true),
            (DataType::TimestampTz, true),
            (DataType::Text { max_chars: None }, true),
            (DataType::Bytea, true),
            (DataType::Time, true),
            (DataType::Uuid, true),
            (DataType::Char { chars: 40 }, true),
        ],
        &[0, 1],
        &[3, 0],
    )
}

/// The key columns from `key`, the others from `seed`; one in five is NULL.
fn row(key: u32, seed: u64) -> Vec<Value> {
    let text = |n: u64| Value::Text("ab\0xyz, and so on".repeat(3)[..(n % 40) as usize].into());
    let pick = |column: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left((column * 5) as u32 & 63) ^ column;
    let or_null = |column: u64, value: Value| if pick(column + 20) % 5 == 0 { Value::Null } else { value };
    vec![
        Value::Int(i64::from(key / 3) - 50),
        text(u64::from(key) * 13 + 1),
        or_null(2, Value::Boolean(pick(2) % 2 == 0)),
        or_null(3, Value::Int((pick(3) % 50) as i64 - 25)),
        Value::Int(pick(4) as i64),
        or_null(5, Value::Real((pick(5) % 1000) as f32 / 8.0)),
        or_null(6, Value::Double((pick(6) % 1000) as f64 / 8.0)),
        or_null(7, Value::Decimal(i128::from(pick(7) % 1_000_000))),
        or_null(8, Value::Decimal(i128::from(pick(8)) << 40)),
        or_null(9, Value::Int((pick(9) % 40_000) as i64)),
        or_null(10, Value::Int((pick(10) >> 16) as i64)),
        or_null(11, Value::Int(-((pick(11) >> 16) as i64))),
        or_null(12, text(pick(12))),
        or_null(13, Value::Bytes(vec![pick(13) as u8; (pick(13) % 30) as usize].into())),
        or_null(14, Value::Int((pick(14) % 86_400_000_000) as i64)),
        or_null(15, Value::Uuid(u128::from(pick(15)) << 64 | u128::from(key))),
        or_null(16, Value::Text(format!("{:x}", pick(16) % 300).into())),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    /// A commit that gives each of these keys a new row; one that has a row gets an update.
    Write(Vec<u32>),
    /// A commit of this many rows with new keys.
    WriteMany(u32),
    /// A commit that deletes the rows of these keys.
    Delete(Vec<u32>),
    Pin,
    Fold,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => prop::collection::btree_set(0..40u32, 1..6).prop_map(|keys| Step::Write(keys.into_iter().collect())),
        1 => (1_500..5_500u32).prop_map(Step::WriteMany),
        2 => prop::collection::vec(0..60u32, 1..6).prop_map(Step::Delete),
        2 => Just(Step::Pin),
        1 => Just(Step::Fold),
    ]
}

struct Model {
    schema: Arc<TableSchema>,
    delta: DeltaGeneration,
    /// Values, begin, end.
    rows: Vec<(Vec<Value>, u64, u64)>,
    /// Live offset of each key number.
    live: BTreeMap<u32, u32>,
    pins: Vec<u64>,
    now: u64,
    next_key: u32,
}

impl Model {
    fn new() -> Self {
        let schema = schema();
        let delta = delta(&schema);
        Self { schema, delta, rows: vec![], live: BTreeMap::new(), pins: vec![], now: 10, next_key: 100 }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Write(keys) => self.commit(keys, keys),
            Step::WriteMany(count) => {
                let keys: Vec<u32> = (self.next_key..self.next_key + count).collect();
                self.next_key += count;
                self.commit(&[], &keys);
            }
            Step::Delete(keys) => self.commit(keys, &[]),
            Step::Pin => self.pins.push(self.now),
            Step::Fold => {
                let needed: Vec<CommitTs> = self.pins.iter().copied().chain([self.now]).map(CommitTs).collect();
                self.delta.deletes().fold(&needed);
            }
        }
    }

    fn commit(&mut self, deleted: &[u32], written: &[u32]) {
        self.now += 1;
        let gone: Vec<u32> = deleted.iter().filter_map(|key| self.live.remove(key)).collect();
        gone.iter().for_each(|&offset| self.rows[offset as usize].2 = self.now);
        self.delta.deletes().record(CommitTs(self.now), &gone.into_iter().collect::<DeleteSet>());
        let new: Vec<Vec<Value>> = written.iter().map(|&key| row(key, self.now * 7_919 + u64::from(key))).collect();
        let range = self.delta.append(&rows(&self.schema, &new), CommitTs(self.now)).unwrap();
        assert_eq!(range, self.rows.len() as u32..(self.rows.len() + new.len()) as u32);
        self.live.extend(written.iter().copied().zip(range));
        self.rows.extend(new.into_iter().map(|values| (values, self.now, u64::MAX)));
    }

    /// Key numbers whose rows are looked up: all small ones, and some of the others.
    fn probed(&self) -> impl Iterator<Item = u32> {
        (0..60).chain((100..self.next_key + 3).step_by(997))
    }

    fn check_at(&self, at: u64) {
        let ts = CommitTs(at);
        let begun = self.rows.iter().take_while(|(_, begin, _)| *begin <= at).count() as u32;
        assert_eq!(self.delta.rows_at(ts), begun);
        let live = |&(_, begin, end): &&(Vec<Value>, u64, u64)| *begin <= at && *end > at;
        assert_eq!(u64::from(begun) - self.delta.deletes().count_at(ts), self.rows.iter().filter(live).count() as u64);
        let mut by_key: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for (offset, stored) in self.rows.iter().enumerate().filter(|(_, stored)| live(stored)) {
            assert!(self.delta.is_visible(offset as u32, ts));
            by_key.insert(key(&self.schema, &stored.0[..2]), offset as u32);
        }
        for number in self.probed() {
            let probe = key(&self.schema, &row(number, 0)[..2]);
            assert_eq!(
                self.delta.lookup(KeyId::PRIMARY, &probe, ts),
                by_key.get(&probe).copied(),
                "key {number} at {at}"
            );
        }
        self.check_order(begun);
    }

    fn check_order(&self, upto: u32) {
        let mut expected: Vec<u32> = (0..upto).collect();
        // The order of values is NULL last, as that of keys.
        expected.sort_by_key(|&offset| (&self.rows[offset as usize].0[3], &self.rows[offset as usize].0[0], offset));
        assert_eq!(*self.delta.sorted_offsets(upto).unwrap(), expected);
    }

    fn check_columns(&self, picks: &[prop::sample::Index]) {
        let all = self.rows.len();
        let offsets: Vec<u32> = picks.iter().filter(|_| all > 0).map(|pick| pick.index(all) as u32).collect();
        let bounds = picks.windows(2).map(|two| (two[0].index(all + 1), two[1].index(all + 1)));
        let mut ranges: Vec<(usize, usize)> = bounds.map(|(a, b)| (a.min(b), a.max(b))).take(4).collect();
        ranges.extend(self.delta.block_ranges(u32::MAX).map(|r| (r.start as usize, r.end as usize)));
        for (position, column) in self.schema.columns.iter().enumerate() {
            let expected = |offsets: &mut dyn Iterator<Item = usize>| {
                array_of(offsets.map(|offset| &self.rows[offset].0[position]), column.data_type).unwrap()
            };
            for &(from, to) in &ranges {
                let read = self.delta.read(column, from as u32..to as u32).unwrap();
                assert_eq!(&read, &expected(&mut (from..to)), "column {position}, rows {from}..{to}");
                read.to_data().validate_full().unwrap();
            }
            let gathered = self.delta.gather(column, &offsets).unwrap();
            assert_eq!(&gathered, &expected(&mut offsets.iter().map(|&offset| offset as usize)));
            for &offset in &offsets {
                assert_eq!(self.delta.value(column, offset).unwrap(), self.rows[offset as usize].0[position]);
            }
        }
        for &offset in &offsets {
            let mut out = Vec::new();
            self.delta.key_of(KeyId::PRIMARY, offset, &mut out).unwrap();
            assert_eq!(out, key(&self.schema, &self.rows[offset as usize].0[..2]));
            assert_eq!(self.delta.begin_of(offset), Some(CommitTs(self.rows[offset as usize].1)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_list_of_rows(
        steps in prop::collection::vec(step(), 1..40),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut model = Model::new();
        for (number, step) in steps.iter().enumerate() {
            model.run(step);
            if number % 16 == 7 {
                model.check_columns(&picks);
                model.check_order(model.rows.len() as u32);
            }
        }
        model.check_columns(&picks);
        for at in model.pins.iter().copied().chain([model.now]) {
            model.check_at(at);
        }
        for number in model.probed() {
            let probe = key(&model.schema, &row(number, 0)[..2]);
            prop_assert_eq!(model.delta.lookup_live(KeyId::PRIMARY, &probe), model.live.get(&number).copied());
        }
    }
}
