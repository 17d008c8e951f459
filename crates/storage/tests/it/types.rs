//! TIME, UUID and CHAR(n) as keys, sort keys and plain columns, wherever rows live, against a plain map.

use std::collections::BTreeMap;

use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::point::PointTable;
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::{Value, value_of};
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::{DataType, Layout, TableOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{begin, begin_applied, create_as, options};

const COLUMNS: [(&str, DataType); 4] =
    [("u", DataType::Uuid), ("t", DataType::Time), ("c", DataType::Char { chars: 6 }), ("n", DataType::BigInt)];
const U: usize = 0;
const T: usize = 1;
const C: usize = 2;

/// The table in several orders; each names the positions of its key.
fn definitions() -> Vec<(Vec<usize>, TableDefinition)> {
    let make = |key: &[usize], sort_key: Option<&[usize]>, layout| {
        let names = |at: &[usize]| at.iter().map(|at| COLUMNS[*at].0.to_owned()).collect::<Vec<_>>();
        let columns = COLUMNS.iter().enumerate();
        let columns = columns.map(|(at, (name, ty))| ColumnDefinition::new(*name, *ty, !key.contains(&at)));
        let definition = TableDefinition {
            primary_key: names(key),
            sort_key: sort_key.map(names),
            layout,
            options: TableOptions { segment_rows: 7, ..TableOptions::default() },
            ..TableDefinition::new("t", columns.collect())
        };
        (key.to_vec(), definition)
    };
    vec![
        make(&[U], None, None),
        make(&[C], None, None),
        make(&[T, C], None, None),
        make(&[U], Some(&[C, T]), None),
        make(&[C, U], Some(&[T]), None),
        make(&[C], None, Some(Layout::Insertion)),
        make(&[U, T], None, Some(Layout::Insertion)),
    ]
}

/// What a program may hand over: text with blanks at its end.
fn row(rng: &mut StdRng, key: &[usize]) -> Vec<Value> {
    let few = rng.random_range(0..30_u64);
    let uuid = [0, u128::MAX, 1 << 127, (1 << 127) - 1].get(few as usize).copied();
    let values = [
        Value::Uuid(uuid.unwrap_or_else(|| u128::from(few).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))),
        Value::Int([0, 86_399_999_999].get(few as usize).copied().unwrap_or(few as i64 * 1_234_567_891)),
        Value::Text(format!("{:x}{}", few % 7 * 251, " ".repeat(few as usize % 4)).into()),
        Value::Int(rng.random_range(0..1_000)),
    ];
    let or_null = |(at, v)| if !key.contains(&at) && rng.random_range(0..5) == 0 { Value::Null } else { v };
    values.into_iter().enumerate().map(or_null).collect()
}

fn stored(row: &[Value]) -> Vec<Value> {
    let trimmed = |v: &Value| match v {
        Value::Text(v) => Value::Text(v.trim_end_matches(' ').into()),
        other => other.clone(),
    };
    row.iter().map(trimmed).collect()
}

fn scanned(db: &Database, table: TableId, predicates: Vec<Predicate>) -> Vec<Vec<Value>> {
    let view = begin(db).view(table).unwrap();
    let columns = view.schema().column_ids();
    let scan = view.scan(&ScanRequest { predicates, ..ScanRequest::all(columns) }).unwrap();
    let mut rows = Vec::new();
    for batch in scan.worker() {
        let batch = batch.unwrap();
        let value = |at: usize, i| value_of(batch.column(at).as_ref(), COLUMNS[at].1, i).unwrap();
        rows.extend((0..batch.num_rows()).map(|i| (0..COLUMNS.len()).map(|at| value(at, i)).collect::<Vec<_>>()));
    }
    rows.sort();
    rows
}

/// Every comparison with the values of one row, and a list of several, as rows are selected by hand.
fn check_predicates(db: &Database, table: TableId, expected: &[Vec<Value>], with: &[Vec<Value>]) {
    let view = begin(db).view(table).unwrap();
    let ids = view.schema().column_ids();
    for (at, column) in ids.iter().copied().enumerate().take(3) {
        let constants: Vec<Value> = with.iter().map(|row| row[at].clone()).collect();
        let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
        let mut predicates: Vec<Predicate> =
            ops.iter().map(|op| Predicate::Compare { column, op: *op, value: constants[0].clone() }).collect();
        predicates.push(Predicate::In { column, values: constants });
        for predicate in predicates {
            let wanted: Vec<_> = expected.iter().filter(|row| predicate.matches(&row[at])).cloned().collect();
            assert_eq!(scanned(db, table, vec![predicate.clone()]), wanted, "{predicate:?}");
        }
    }
}

#[test]
fn rows_are_those_of_a_map_in_every_order() {
    for (number, (key_at, definition)) in definitions().into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Database::open(dir.path(), options()).unwrap();
        let t = create_as(&db, definition);
        let mut rng = StdRng::seed_from_u64(number as u64);
        let mut model: BTreeMap<Vec<Value>, Vec<Value>> = BTreeMap::new();
        for step in 0..250 {
            let new = row(&mut rng, &key_at);
            let txn = begin_applied(&db);
            let keyed = PointTable::new(txn.catalog().table(t).unwrap()).unwrap();
            let view = txn.view(t).unwrap();
            let key_values: Vec<Value> = key_at.iter().map(|at| new[*at].clone()).collect();
            let mut key = Vec::new();
            keyed.encode(&key_values, &mut key).unwrap();
            let found = txn.find_key(&view, keyed.found_by().unwrap(), &key).unwrap();
            let known = stored(&key_values);
            assert_eq!(found.is_some(), model.contains_key(&known), "step {step}: {known:?}");
            if let Some(found) = found {
                let mut old = Vec::new();
                view.read_row(found, &[0, 1, 2, 3], &mut old).unwrap();
                assert_eq!(Some(&old), model.get(&known), "step {step}");
            }
            if found.is_some() && rng.random_range(0..3) == 0 {
                txn.write_row(&keyed, &view, &key, found, keyed.new_rows()).unwrap();
                model.remove(&known);
            } else {
                // A key that is there is refused whatever blanks it ends in.
                if found.is_some() {
                    let again = txn.check_free(&keyed, &view, &key);
                    assert_eq!(again.unwrap_err().sqlstate(), "23505");
                }
                let mut rows = keyed.new_rows();
                rows.push_values(&new).unwrap();
                txn.write_row(&keyed, &view, &key, found, rows).unwrap();
                model.insert(known, stored(&new));
            }
            match rng.random_range(0..40) {
                0 => db.freeze(t).unwrap(),
                1 => db.flush(t).unwrap(),
                2 => db.merge(t).unwrap(),
                3 => db.checkpoint().unwrap(),
                4 => {
                    db.close().unwrap();
                    drop(db);
                    db = Database::open(dir.path(), options()).unwrap();
                }
                _ => {}
            }
            if step % 20 == 0 {
                let mut expected: Vec<_> = model.values().cloned().collect();
                expected.sort();
                assert_eq!(scanned(&db, t, Vec::new()), expected, "step {step}");
                let constants: Vec<_> = (0..4).map(|_| stored(&row(&mut rng, &key_at))).collect();
                check_predicates(&db, t, &expected, &constants);
            }
        }
        assert!(db.verify().is_empty());
    }
}
