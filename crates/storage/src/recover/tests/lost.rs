//! A torn tail is cut: what it may have named is set aside, and what nobody can need is removed.

use super::*;
use crate::ids::{FileId, TableId};
use crate::limits::COMMIT_ROWS_MAX;
use crate::recover::lost;

const LOADED: i64 = COMMIT_ROWS_MAX as i64 + 100;

fn newest_log(disk: &MemDisk) -> String {
    format!("wal/{}", disk.list(WAL_DIR).unwrap().pop().unwrap())
}

/// The disk of a killed process whose last record has lost its last byte.
fn torn(disk: &MemDisk) -> MemDisk {
    let copy = disk.copy();
    let path = newest_log(&copy);
    let whole = copy.get(&path).unwrap();
    copy.put(&path, whole[..whole.len() - 1].to_vec());
    copy
}

/// A row, then a bulk load; what is left when the record of the load is torn.
fn torn_load() -> (TableId, Vec<String>, MemDisk) {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 1_000);
    t.insert([-1]);
    t.insert(0..LOADED);
    let segments = disk.list(DATA_DIR).unwrap();
    assert!(segments.len() > 3 && segments.iter().all(|name| name.ends_with(".seg")), "{segments:?}");
    (t.id, segments, torn(&disk))
}

fn open(disk: &MemDisk, id: TableId) -> Table {
    Table { db: open_at(disk).unwrap(), id }
}

#[test]
fn segments_of_a_torn_commit_are_set_aside_and_named() {
    let (id, segments, disk) = torn_load();
    let bytes = |disk: &MemDisk| -> Vec<Vec<u8>> {
        let names = disk.list(DATA_DIR).unwrap();
        names.iter().map(|name| disk.get(&format!("data/{name}")).unwrap()).collect()
    };
    let before = bytes(&disk);
    let t = open(&disk, id);
    assert_eq!(ids(&t), [-1]);
    let lost = t.db.lost_files().unwrap();
    assert_eq!(lost.iter().map(|(file, _)| file.name.clone()).collect::<Vec<_>>(), segments);
    assert_eq!(bytes(&disk), before, "nothing of them is lost");
    assert_eq!(lost.iter().map(|(_, bytes)| *bytes).sum::<u64>(), before.iter().map(|b| b.len() as u64).sum::<u64>());
    let [of_tail, of_files] = t.db.notices() else { panic!("{:?}", t.db.notices()) };
    assert!(of_tail.contains("wal/0000000001.log") && of_tail.contains("is cut off"), "{of_tail}");
    assert!(lost.iter().all(|(file, _)| of_files.contains(&file.path())), "{of_files}");
    assert!(t.db.verify().is_empty());

    // They are in nobody's way, however often the database is opened, killed, written and dropped.
    let mut t = t;
    let mut disk = disk;
    for round in 0..3 {
        t.insert(round * LOADED..(round + 1) * LOADED);
        disk = disk.copy();
        t = open(&disk, id);
        assert_eq!(ids(&t).len() as i64, 1 + (round + 1) * LOADED);
        assert_eq!(t.db.lost_files().unwrap(), lost);
        assert_eq!(t.db.notices(), [""; 0]);
        assert!(t.db.verify().is_empty());
    }
    t.db.checkpoint().unwrap();
    let mut txn = t.begin();
    txn.drop_table(id).unwrap();
    txn.commit().unwrap();
    drop(t);
    assert_eq!(open_at(&disk).unwrap().lost_files().unwrap(), lost);
    assert_eq!(disk.list(DATA_DIR).unwrap().len(), lost.len());
}

/// Contract 1: neither their numbers nor their containers' are given out again, not even by the opening that sets them
/// aside.
#[test]
fn ids_of_files_set_aside_are_never_given_out_again() {
    let (id, _, disk) = torn_load();
    let t = open(&disk, id);
    let lost: Vec<_> = t.db.lost_files().unwrap().into_iter().map(|(file, _)| file).collect();
    let containers: Vec<_> = lost.iter().map(|file| file.container.unwrap()).collect();
    t.insert(0..LOADED);
    t.flush();
    let check = |t: &Table| {
        let present = t.db.containers();
        assert!(present.len() > 3);
        assert!(present.iter().all(|container| !containers.contains(&container.id)), "{present:?}");
    };
    check(&t);
    let last = lost.iter().map(|file| file.file).max().unwrap();
    let names = disk.list(DATA_DIR).unwrap();
    let numbers: Vec<FileId> = names.iter().filter_map(|name| crate::segment::parse_segment_name(name)).collect();
    assert!(!numbers.is_empty() && numbers.iter().all(|number| *number > last), "{names:?}");
    // Of a restart that knows them by their names only.
    let again = open(&disk.copy(), id);
    again.insert(2 * LOADED..3 * LOADED);
    check(&again);
}

/// Only a file with its final name may have been named by a record: whatever a killed merge or load has left goes, torn
/// tail or not.
#[test]
fn what_no_record_can_have_named_is_removed() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 1_000);
    t.insert(0..LOADED);
    let listed = disk.list(DATA_DIR).unwrap();
    let mut txn = t.begin();
    t.insert_in(&mut txn, LOADED..LOADED + 60_000);
    let unfinished: Vec<_> = disk.list(DATA_DIR).unwrap().into_iter().filter(|name| !listed.contains(name)).collect();
    assert!(unfinished.len() > 5, "{unfinished:?}");
    assert!(unfinished.iter().all(|name| name.ends_with(".seg.tmp")), "{unfinished:?}");
    t.insert([-1]);
    let disk = torn(&disk);
    let again = open(&disk, t.id);
    assert_eq!(ids(&again).len() as i64, LOADED);
    assert!(again.db.notices().len() == 1 && again.db.lost_files().unwrap().is_empty(), "{:?}", again.db.notices());
    assert_eq!(disk.list(DATA_DIR).unwrap(), listed);
    drop(txn);
}

/// A merge was installed, and its inputs could not be removed yet: the log has dropped them.
#[test]
fn what_the_log_has_dropped_is_removed() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 1_000);
    t.insert(0..LOADED);
    let inputs = disk.list(DATA_DIR).unwrap();
    let reader = t.begin();
    let view = reader.view(t.id).unwrap();
    t.delete(&[5]);
    t.db.merge(t.id).unwrap();
    assert!(inputs.iter().all(|name| disk.exists(&format!("data/{name}")).unwrap()), "a reader holds them");
    t.insert([5]);
    let disk = torn(&disk);
    let again = open(&disk, t.id);
    assert_eq!(ids(&again).len() as i64, LOADED - 1);
    assert!(again.db.lost_files().unwrap().is_empty());
    assert!(inputs.iter().any(|name| !disk.exists(&format!("data/{name}")).unwrap()));
    drop(view);
}

/// What was dropped is known as such when no record is left that names it, whoever still reads it.
#[test]
fn what_a_reader_holds_is_removed_when_the_log_knows_it_no_more() {
    for released_before in [false, true] {
        let disk = MemDisk::new();
        let t = testing::on(open_at(&disk).unwrap(), 1_000);
        t.insert(0..LOADED);
        let inputs = disk.list(DATA_DIR).unwrap();
        let reader = t.begin();
        let view = reader.view(t.id).unwrap();
        let mut txn = t.begin();
        txn.truncate(t.id, false).unwrap();
        txn.commit().unwrap();
        if released_before {
            t.db.engine().release_unneeded().unwrap();
        }
        t.db.checkpoint_now().unwrap();
        assert_eq!(rows_of(&view).len() as i64, LOADED, "a reader reads them");
        assert_eq!(disk.list(DATA_DIR).unwrap().len(), inputs.len());
        t.insert([7]);
        let crashed = torn(&disk);
        let again = open(&crashed, t.id);
        assert!(ids(&again).is_empty() && again.db.notices().len() == 1, "{:?}", again.db.notices());
        assert_eq!(again.db.lost_files().unwrap(), []);
        assert_eq!(crashed.list(DATA_DIR).unwrap(), [""; 0]);
        assert_eq!(rows_of(&view).len() as i64, LOADED);
        drop((reader, view));
        assert_eq!(disk.list(DATA_DIR).unwrap(), [""; 0], "they go with the last reader");
    }
}

/// Without a torn tail nothing can have been named: orphans are removed.
#[test]
fn nothing_is_set_aside_without_a_torn_tail() {
    let (id, segments, torn) = torn_load();
    drop(open_at(&torn).unwrap());
    let lost: Vec<String> = torn.list(DATA_DIR).unwrap();
    assert_eq!(lost.len(), segments.len());
    torn.put("data/0000000900.seg", vec![1; 40]);
    let t = open(&torn, id);
    assert_eq!(torn.list(DATA_DIR).unwrap(), lost);
    assert_eq!(t.db.notices(), [""; 0]);
}

#[test]
fn a_reader_says_what_would_be_set_aside_and_changes_nothing() {
    let (id, segments, disk) = torn_load();
    let before = files_of(&disk);
    let t = Table { db: Database::open_on(Arc::new(disk.clone()), read_only()).unwrap(), id };
    assert_eq!(ids(&t), [-1]);
    let [of_tail, of_files] = t.db.notices() else { panic!("{:?}", t.db.notices()) };
    assert!(of_tail.contains("is left out"), "{of_tail}");
    assert!(segments.iter().all(|name| of_files.contains(&format!("data/{name}"))), "{of_files}");
    assert!(files_of(&disk) == before);
}

/// A file that is listed goes only when the record that dropped it is fsynced. So the tail that is torn here was
/// durable once.
#[test]
fn a_listed_file_that_is_gone_says_that_the_tail_was_durable() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 1_000);
    t.insert(0..LOADED);
    t.delete(&[5]);
    let before = disk.get(&newest_log(&disk)).unwrap().len();
    let inputs = disk.list(DATA_DIR).unwrap();
    t.db.merge(t.id).unwrap();
    t.db.engine().log.sync_all().unwrap();
    t.db.engine().release_unneeded().unwrap();
    assert!(inputs.iter().any(|name| !disk.exists(&format!("data/{name}")).unwrap()));
    let cut = disk.copy();
    let bytes = cut.get(&newest_log(&cut)).unwrap();
    assert!(bytes.len() > before + 10);
    cut.put(&newest_log(&cut), bytes[..before + 10].to_vec());
    let files = files_of(&cut);
    let error = open_at(&cut).unwrap_err();
    assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "{error}");
    assert!(error.message().contains("file data/") && error.message().contains("wal/0000000001.log"), "{error}");
    assert!(files_of(&cut) == files, "files were changed");
    // Rows of other tables can still be read.
    let reader = Database::open_on(Arc::new(cut.clone()), read_only()).unwrap();
    assert!(!reader.verify().is_empty());
}

#[test]
fn names_of_lost_files_say_what_they_were() {
    let lost = |name: &str, container| LostFile { name: name.to_owned(), file: FileId(17), log_file: 4, container };
    let (segment, deletes) = (lost("0000000017.seg", Some(crate::ids::ContainerId(33))), lost("0000000017.del", None));
    assert_eq!(segment.path(), "data/0000000017.seg.lost-0000000004-0000000033");
    assert_eq!(deletes.path(), "data/0000000017.del.lost-0000000004");
    for file in [segment, deletes] {
        assert_eq!(LostFile::parse(file.path().strip_prefix("data/").unwrap()), Some(file));
    }
    for other in
        ["0000000017.seg", "0000000017.seg.lost-4", "17.seg.lost-0000000004", "0000000017.seg.lost-0000000004-33"]
    {
        assert_eq!(LostFile::parse(other), None, "{other}");
    }
}

/// Those of the last cut always stay; of earlier ones as many as there is room for, newest first.
#[test]
fn crash_after_crash_does_not_fill_the_disk() {
    let disk = MemDisk::new();
    disk.create_dir(DATA_DIR).unwrap();
    let of_cut = |log_file: u64| LostFile {
        name: format!("{log_file:010}.seg"),
        file: FileId(log_file),
        log_file,
        container: None,
    };
    let all: Vec<_> = (1..5).map(of_cut).collect();
    all.iter().for_each(|file| disk.put(&file.path(), vec![0; 100]));
    let left = || -> Vec<u64> { lost_files(&disk).unwrap().iter().map(|file| file.log_file).collect() };
    assert_eq!(lost::bound(&disk, &all, 400).unwrap(), None);
    assert_eq!(left(), [1, 2, 3, 4]);
    let notice = lost::bound(&disk, &all, 399).unwrap().unwrap();
    assert!(notice.contains("data/0000000001.seg.lost-") && !notice.contains("data/0000000002.seg"), "{notice}");
    assert_eq!(left(), [2, 3, 4]);
    lost::bound(&disk, &all[1..], 0).unwrap().unwrap();
    assert_eq!(left(), [4]);
    assert_eq!(lost::bound(&disk, &all[3..], 0).unwrap(), None);
    assert_eq!(left(), [4]);
}

/// Each cut has a number of its own, though the record that was torn is the first of its log file again and again.
#[test]
fn cuts_of_first_records_are_cuts_of_their_own() {
    let (id, segments, mut disk) = torn_load();
    for cuts in 1..5 {
        let t = open(&disk, id);
        assert_eq!(ids(&t), [-1]);
        let lost: Vec<_> = t.db.lost_files().unwrap().into_iter().map(|(file, _)| file).collect();
        let numbers: std::collections::BTreeSet<u64> = lost.iter().map(|file| file.log_file).collect();
        assert_eq!((lost.len(), numbers.len()), (cuts * segments.len(), cuts), "{numbers:?}");
        let bounded = disk.copy();
        assert_eq!(lost::bound(&bounded, &lost, 0).unwrap().is_some(), cuts > 1);
        let left = lost_files(&bounded).unwrap();
        assert_eq!(left.len(), segments.len());
        assert!(left.iter().all(|file| Some(&file.log_file) == numbers.last()), "{left:?}");
        t.insert(0..LOADED);
        disk = torn(&disk);
    }
}

/// An opening may fail behind the renames, some or all: the next one goes on with the same cut, and names all of its
/// files.
#[test]
fn what_an_interrupted_opening_has_set_aside_is_named_by_the_next_one() {
    // In the second log file, whose first record is torn.
    let (id, segments, disk) = torn_load();
    let t = open(&disk, id);
    t.insert(0..LOADED);
    let disk = torn(&disk);
    let whole = disk.copy();
    drop(open_at(&whole).unwrap());
    let of_both = lost_files(&whole).unwrap();
    let of_cut: Vec<_> = of_both.iter().filter(|file| file.log_file == 2).collect();
    assert_eq!((of_both.len(), of_cut.len()), (2 * segments.len(), segments.len()));
    for renamed in 0..=of_cut.len() {
        let disk = disk.copy();
        of_cut[..renamed].iter().for_each(|file| disk.rename(&file.old_path(), &file.path()).unwrap());
        let t = open(&disk, id);
        assert_eq!(lost_files(&disk).unwrap(), of_both, "{renamed} renamed before");
        let [_, notice] = t.db.notices() else { panic!("{:?}", t.db.notices()) };
        for file in &of_both {
            assert_eq!(notice.contains(&file.path()), file.log_file == 2, "{notice}");
        }
        drop(t);
        assert_eq!(open(&disk, id).db.notices(), [""; 0]);
    }
}

#[test]
fn files_that_somebody_removes_meanwhile_do_not_keep_the_database_closed() {
    let disk = MemDisk::new();
    disk.create_dir(DATA_DIR).unwrap();
    let all = [1, 2, 3].map(|log_file| LostFile {
        name: format!("{log_file:010}.seg"),
        file: FileId(log_file),
        log_file,
        container: None,
    });
    all[1..].iter().for_each(|file| disk.put(&file.path(), vec![0; 100]));
    let notice = lost::bound(&disk, &all, 0).unwrap().unwrap();
    assert!(notice.contains(&all[1].path()) && !notice.contains(&all[0].path()), "{notice}");
    assert_eq!(lost_files(&disk).unwrap(), all[2..]);
}

/// A log file that was ended, and the next one without its header: no byte is torn.
#[test]
fn a_log_file_without_header_is_named() {
    let (id, segments, disk) = torn_load();
    let path = newest_log(&disk);
    let t = open(&disk.copy(), id);
    assert!(t.db.notices()[1].contains("for the torn tail of wal/0000000001.log may have named them"));
    // Ended before the load.
    let young = MemDisk::new();
    let t = testing::on(open_at(&young).unwrap(), 1_000);
    t.insert([-1]);
    let ended = young.copy();
    drop(open_at(&ended).unwrap());
    disk.put(&path, ended.get("wal/0000000001.log").unwrap());
    disk.put("wal/0000000002.log", Vec::new());
    for (options, said) in [(read_only(), "sets them aside"), (testing::options(), "were set aside")] {
        let db = Database::open_on(Arc::new(disk.clone()), options).unwrap();
        let [notice] = db.notices() else { panic!("{:?}", db.notices()) };
        assert!(notice.contains("wal/0000000002.log, which has no header,") && notice.contains(said), "{notice}");
        assert!(segments.iter().all(|name| notice.contains(&format!("data/{name}"))), "{notice}");
    }
}
