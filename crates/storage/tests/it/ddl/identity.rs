//! Numbers of IDENTITY columns.

use std::collections::BTreeSet;

use mainstem_storage::catalog::{ColumnDefinition, TableChange};
use mainstem_storage::point::PointTable;
use mainstem_storage::schema::{DataType, Identity};

use super::*;
use crate::held_disk::HeldDisk;

fn numbered(data_type: DataType, start: i64, increment: i64) -> TableDefinition {
    numbered_as("t", data_type, start, increment)
}

fn numbered_as(name: &str, data_type: DataType, start: i64, increment: i64) -> TableDefinition {
    let identity = Some(Identity { always: false, start, increment });
    let column = ColumnDefinition { identity, ..ColumnDefinition::new("id", data_type, false) };
    TableDefinition::new(name, vec![column, ColumnDefinition::new("v", DataType::BigInt, true)])
}

const ID: ColumnId = ColumnId(0);

fn draw(stage: &Stage, n: usize) -> Vec<i64> {
    stage.begin().next_identity_values(stage.t, ID, n).unwrap()
}

#[test]
fn numbers_follow_one_another_and_outlive_every_end() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(numbered(DataType::BigInt, 10, 5), placement);
        assert_eq!(draw(&stage, 3), [10, 15, 20]);
        assert_eq!(draw(&stage, 0), [] as [i64; 0]);
        let rolled_back = stage.begin();
        assert_eq!(rolled_back.next_identity_values(stage.t, ID, 2).unwrap(), [25, 30]);
        drop(rolled_back);
        assert_eq!(draw(&stage, 1), [35]);
        stage.place();
        let next = draw(&stage, 40);
        assert!(next[0] >= 40 && next.is_sorted(), "{placement:?}: {next:?}");
        assert_eq!(
            next[0] == 40,
            matches!(placement, Placement::Delta | Placement::Frozen | Placement::Runs | Placement::Run)
        );
        // A clean end gives back what nobody drew.
        stage.db.close().unwrap();
        stage.crash();
        assert_eq!(draw(&stage, 1), [next[39] + 5]);
    }
}

#[test]
fn a_column_that_has_no_more_says_so_and_loses_none() {
    let stage = Stage::new(numbered(DataType::SmallInt, 32_760, 1), Placement::Delta);
    assert_eq!(draw(&stage, 5).len(), 5);
    let error = stage.begin().next_identity_values(stage.t, ID, 4).unwrap_err();
    assert_eq!(error.sqlstate(), "2200H");
    assert_eq!(error.message(), "nextval: reached maximum value of sequence \"t_id_seq\" (32767)");
    assert_eq!(draw(&stage, 3), [32_765, 32_766, 32_767]);
    assert_eq!(state(stage.begin().next_identity_values(stage.t, ID, 1)), "2200H");
    let down = Stage::new(numbered(DataType::BigInt, i64::MIN + 10, -7), Placement::Delta);
    assert_eq!(draw(&down, 2), [i64::MIN + 10, i64::MIN + 3]);
    assert_eq!(state(down.begin().next_identity_values(down.t, ID, 1)), "2200H");
    let wide = Stage::new(numbered(DataType::BigInt, i64::MIN, i64::MAX), Placement::Delta);
    assert_eq!(draw(&wide, 3), [i64::MIN, -1, i64::MAX - 1]);
    let none = Stage::new(numbered(DataType::SmallInt, 40_000, 1), Placement::Delta);
    assert_eq!(state(none.begin().next_identity_values(none.t, ID, 1)), "2200H");
    assert_eq!(state(none.begin().next_identity_values(none.t, ColumnId(1), 1)), "XX000");
}

#[test]
fn sessions_never_get_the_same_number() {
    let stage = Stage::new(numbered(DataType::BigInt, 1, 1), Placement::Delta);
    let before = stage.db.begin(Default::default()).unwrap().read_ts().0;
    let drawn: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let session = |seed: usize| {
            let stage = &stage;
            scope.spawn(move || (0..400).flat_map(|turn| draw(stage, 1 + (turn * 7 + seed) % 5)).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..4).map(session).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let all: Vec<i64> = drawn.concat();
    let distinct: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!((distinct.len(), *distinct.last().unwrap()), (all.len(), all.len() as i64), "no gap either");
    assert!(drawn.iter().all(|drawn| drawn.is_sorted()));
    let records = begin(&stage.db).read_ts().0 - before;
    assert!(records <= 12, "{records} records for {} numbers", all.len());
}

/// Whatever the session's `synchronous`: a number that somebody has is below a mark on the disk.
#[test]
fn a_crash_never_gives_a_number_again() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let mut stage = Stage {
        disk: disk.live.clone(),
        t: create_as(&db, numbered(DataType::BigInt, 1, 1)),
        db,
        placement: Placement::Delta,
    };
    let mut last = 0;
    for turn in 0..60 {
        let drawn = draw(&stage, 1 + turn % 40);
        assert!(drawn[0] > last, "{drawn:?} after {last}");
        last = *drawn.last().unwrap();
        if turn % 3 == 0 {
            stage.crash();
        }
    }
    // Nobody has one before its record is fsynced.
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    disk.hold("wal/");
    std::thread::scope(|scope| {
        let drawing = scope.spawn(|| begin(&db).next_identity_values(stage.t, ID, 1).unwrap());
        disk.wait_for_sync("wal/");
        assert!(!drawing.is_finished());
        disk.release("wal/");
        drawing.join().unwrap();
    });
}

#[test]
fn truncate_can_begin_anew() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(numbered(DataType::BigInt, 1, 1), placement);
        let t = stage.t;
        assert_eq!(draw(&stage, 5), [1, 2, 3, 4, 5]);
        stage.commit(|txn| txn.truncate(t, false)).unwrap();
        assert_eq!(draw(&stage, 1), [6]);
        // Undone, it has never been.
        let mut undone = stage.begin();
        let mark = undone.savepoint();
        undone.truncate(t, true).unwrap();
        assert_eq!(undone.next_identity_values(t, ID, 2).unwrap(), [1, 2]);
        undone.rollback_to(&mark).unwrap();
        assert_eq!(undone.next_identity_values(t, ID, 2).unwrap(), [7, 8]);
        undone.commit().unwrap();
        // In the transaction at once, for others when it commits.
        let mut txn = stage.begin();
        txn.truncate(t, true).unwrap();
        assert_eq!(txn.next_identity_values(t, ID, 3).unwrap(), [1, 2, 3]);
        assert_eq!(draw(&stage, 1), [9]);
        put_blindly(&mut txn, t, &[vec![int(1), int(1)]]).unwrap();
        txn.commit().unwrap();
        stage.place();
        assert_eq!(draw(&stage, 2), [4, 5], "{placement:?}");
        stage.commit(|txn| txn.truncate(t, true)).unwrap();
        stage.place();
        assert_eq!(draw(&stage, 1), [1], "{placement:?}");
    }
}

/// Others draw these numbers again: rows that have them must not be committed beside theirs.
#[test]
fn numbers_from_before_counting_begins_anew_cannot_be_committed_after_it() {
    let values = |ids: &[i64]| ids.iter().map(|id| vec![int(*id), int(1)]).collect::<Vec<_>>();
    for placement in PLACEMENTS {
        let mut stage = Stage::new(numbered(DataType::BigInt, 1, 1), placement);
        let t = stage.t;
        let other = create_as(&stage.db, numbered_as("other", DataType::BigInt, 1, 1));
        let insert_drawn = |txn: &mut Transaction| {
            let drawn = txn.next_identity_values(t, ID, 2).unwrap();
            put_blindly(txn, t, &values(&drawn)).unwrap();
        };
        let (mut writer, mut later, mut drawer, mut given) =
            (stage.begin(), stage.begin(), stage.begin(), stage.begin());
        let mut undone = stage.begin();
        let mark = undone.savepoint();
        insert_drawn(&mut writer);
        insert_drawn(&mut undone);
        undone.rollback_to(&mark).unwrap();
        let kept = later.next_identity_values(t, ID, 2).unwrap();
        drawer.next_identity_values(t, ID, 2).unwrap();
        put_blindly(&mut given, t, &values(&[100])).unwrap();
        // Rows go, numbers go on; and another table begins anew.
        let mut goes_on = stage.begin();
        insert_drawn(&mut goes_on);
        stage.commit(|txn| txn.truncate(t, false)).unwrap();
        stage.commit(|txn| txn.truncate(other, true)).unwrap();
        goes_on.commit().unwrap();
        let mut older = stage.begin();
        stage.commit(|txn| txn.truncate(t, true)).unwrap();

        assert_eq!(state(writer.commit()), "40001", "{placement:?}");
        put_blindly(&mut later, t, &values(&kept)).unwrap();
        assert_eq!(state(later.commit()), "40001", "{placement:?}");
        // Drawn since, though the snapshot is older; drawn and given to no row; not drawn at all.
        let new = older.next_identity_values(t, ID, 3).unwrap();
        assert_eq!(new, [1, 2, 3]);
        put_blindly(&mut older, t, &values(&new)).unwrap();
        older.commit().unwrap();
        put_blindly(&mut drawer, other, &values(&[9])).unwrap();
        drawer.commit().unwrap();
        undone.commit().unwrap();
        given.commit().unwrap();
        stage.place();
        let mut again = stage.begin();
        insert_drawn(&mut again);
        again.commit().unwrap();
        stage.check();
        assert!(draw(&stage, 1)[0] >= 6, "{placement:?}");
    }
}

/// More rows than a commit takes under the lock; and counting that begins anew while the commit is prepared.
#[test]
fn a_load_with_numbers_from_before_counting_began_anew_is_a_conflict() {
    let stage = Stage::new(numbered(DataType::BigInt, 1, 1), Placement::Delta);
    let t = stage.t;
    let mut txn = stage.begin();
    let drawn = txn.next_identity_values(t, ID, 20_000).unwrap();
    put_blindly(&mut txn, t, &drawn.iter().map(|id| vec![int(*id), int(1)]).collect::<Vec<_>>()).unwrap();
    stage.commit(|txn| txn.truncate(t, true)).unwrap();
    assert_eq!(state(txn.commit()), "40001");
    stage.check();
}

/// The same for a row that is written by itself: any TRUNCATE has it run again.
#[test]
fn a_single_row_with_a_number_from_before_counting_began_anew_is_a_conflict() {
    let definition = TableDefinition { primary_key: vec!["id".into()], ..numbered(DataType::BigInt, 1, 1) };
    let stage = Stage::new(definition, Placement::Delta);
    let t = stage.t;
    let keyed = PointTable::new(stage.begin().catalog().table(t).unwrap()).unwrap();
    let write = |txn: Transaction, id: i64| {
        let (mut rows, mut key) = (keyed.new_rows(), Vec::new());
        rows.push_values(&[int(id), int(1)]).unwrap();
        keyed.encode_key_of(rows.row(0), &mut key);
        let view = txn.view(t).unwrap();
        state(txn.write_row(&keyed, &view, &key, None, rows))
    };
    let numbered = || {
        let txn = stage.begin();
        let id = txn.next_identity_values(t, ID, 1).unwrap()[0];
        (txn, id)
    };
    let (first, late) = (numbered(), numbered());
    assert_eq!((write(first.0, first.1), first.1, late.1), ("ok", 1, 2));
    stage.commit(|txn| txn.truncate(t, true)).unwrap();
    assert_eq!(write(late.0, late.1), "40001");
    let again = numbered();
    assert_eq!((write(again.0, again.1), again.1), ("ok", 1));
}

/// A transaction that counts by itself comes back to a savepoint: what it drew before is taken, whatever began anew
/// since.
#[test]
fn numbers_of_a_transaction_outlive_its_savepoints() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(numbered(DataType::BigInt, 1, 1), placement);
        let t = stage.t;
        assert_eq!(draw(&stage, 5), [1, 2, 3, 4, 5]);
        let mut txn = stage.begin();
        txn.truncate(t, true).unwrap();
        assert_eq!(txn.next_identity_values(t, ID, 3).unwrap(), [1, 2, 3]);
        let mark = txn.savepoint();
        txn.truncate(t, true).unwrap();
        assert_eq!(txn.next_identity_values(t, ID, 1).unwrap(), [1]);
        txn.truncate(t, true).unwrap();
        txn.rollback_to(&mark).unwrap();
        put_blindly(&mut txn, t, &[vec![int(3), int(1)]]).unwrap();
        txn.commit().unwrap();
        stage.place();
        assert_eq!(draw(&stage, 1), [4], "{placement:?}");
    }
}

/// A TRUNCATE takes the rows as they are; numbers it drew for a column that is gone by then would be of no use to a
/// restart.
#[test]
fn numbers_for_a_column_that_goes_meanwhile_are_a_conflict() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(numbered(DataType::BigInt, 1, 1), placement);
        let t = stage.t;
        let identity = Some(Identity { always: true, start: 1, increment: 1 });
        let column = ColumnDefinition { identity, ..ColumnDefinition::new("n", DataType::BigInt, true) };
        let add = TableChange::AddColumn { column, missing_value: Value::Null };
        stage.commit(|txn| txn.alter_table(t, &[add]).map(drop)).unwrap();
        let mut txn = stage.begin();
        let n = column_id(&txn, t);
        txn.truncate(t, true).unwrap();
        assert_eq!(txn.next_identity_values(t, n, 1).unwrap(), [1]);
        stage.commit(|txn| txn.alter_table(t, &[TableChange::DropColumn(n)]).map(drop)).unwrap();
        assert_eq!(state(txn.commit()), "40001");
        stage.place();
        stage.check();
        assert_eq!(draw(&stage, 1), [1]);
    }
}

#[test]
fn a_table_counts_from_its_first_transaction_on() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(definition("other", true, 7), placement);
        let mut txn = stage.begin();
        let t = txn.create_table(numbered(DataType::Integer, 1, 1)).unwrap();
        assert_eq!(txn.next_identity_values(t, ID, 3).unwrap(), [1, 2, 3]);
        let identity = Some(Identity { always: true, start: -1, increment: -1 });
        let column = ColumnDefinition { identity, ..ColumnDefinition::new("n", DataType::BigInt, true) };
        txn.alter_table(t, &[TableChange::AddColumn { column, missing_value: Value::Null }]).unwrap();
        let n = column_id(&txn, t);
        assert_eq!(txn.next_identity_values(t, n, 1).unwrap(), [-1]);
        txn.commit().unwrap();
        stage.t = t;
        stage.place();
        assert_eq!(draw(&stage, 1), [4]);
        assert_eq!(stage.begin().next_identity_values(t, n, 1).unwrap(), [-2]);
        stage.commit(|txn| txn.alter_table(t, &[TableChange::DropColumn(n)]).map(drop)).unwrap();
        stage.place();
        assert_eq!(state(stage.begin().next_identity_values(t, n, 1)), "XX000");
        let mut late = stage.begin();
        late.drop_table(t).unwrap();
        let reader = stage.begin();
        late.commit().unwrap();
        let answer = (0..100).map(|_| reader.next_identity_values(t, ID, 40)).find(Result::is_err);
        assert_eq!(state(answer.unwrap()), "40001", "its numbers end with it");
    }
}

fn column_id(txn: &Transaction, table: TableId) -> ColumnId {
    column(txn, table, "n")
}
