use mainstem_storage::disk::Disk;
use mainstem_storage::error::ErrorKind;

use super::{FaultKind, SimDisk};

fn content(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(path).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

/// A disk with file `f` of which `synced` bytes of 1 are synced, and `unsynced` bytes of 2 are not.
fn disk_with(synced: usize, unsynced: usize) -> SimDisk {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    file.append(&vec![1; synced]).unwrap();
    file.sync().unwrap();
    disk.sync_dir("").unwrap();
    file.append(&vec![2; unsynced]).unwrap();
    disk
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_any_part_of_the_rest() {
    let (mut all, mut none, mut part, mut torn) = (0, 0, 0, 0);
    for seed in 0..300 {
        let disk = disk_with(700, 2_000);
        let after = disk.power_cut(seed);
        let bytes = content(&after, "f").unwrap();
        assert!(bytes.len() >= 700 && bytes.len() <= 2_700 && bytes[..700].iter().all(|&b| b == 1));
        match bytes.len() {
            _ if bytes[700..].iter().any(|&b| b != 2) => torn += 1,
            700 => none += 1,
            2_700 => all += 1,
            _ => part += 1,
        }
        assert_eq!(content(&disk_with(700, 2_000).power_cut(seed), "f").unwrap(), bytes, "a seed is a seed");
        assert_eq!(disk.open("f").unwrap_err().kind(), ErrorKind::Io, "the old disk is gone");
    }
    assert!(all > 0 && none > 0 && part > 0 && torn > 0, "{all} {none} {part} {torn}");
}

#[test]
fn names_are_durable_with_their_folder_only() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new();
        disk.create_dir("d").unwrap();
        disk.sync_dir("").unwrap();
        for name in ["d/old", "d/gone"] {
            let file = disk.create(name).unwrap();
            file.append(name.as_bytes()).unwrap();
            file.sync().unwrap();
        }
        disk.sync_dir("d").unwrap();
        let new = disk.create("d/new").unwrap();
        new.append(b"new").unwrap();
        new.sync().unwrap();
        disk.rename("d/new", "d/old").unwrap();
        disk.remove("d/gone").unwrap();
        let after = disk.power_cut(seed);
        let old = content(&after, "d/old").unwrap();
        assert!(old == b"d/old" || old == b"new", "a rename happens whole or not at all");
        seen.insert((old == b"new", after.exists("d/gone").unwrap()));
    }
    assert_eq!(seen.len(), 4, "changes happen independently: {seen:?}");

    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    disk.create("d/f").unwrap().sync().unwrap();
    disk.sync_dir("d").unwrap();
    let lost = (0..50).filter(|&seed| !disk.power_cut(seed).exists("d/f").unwrap()).count();
    assert!(lost > 0, "the folder itself was never synced");
}

#[test]
fn an_unsynced_cut_may_or_may_not_have_happened() {
    let mut lens = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let disk = disk_with(1_000, 0);
        disk.open("f").unwrap().cut(400).unwrap();
        let bytes = content(&disk.power_cut(seed), "f").unwrap();
        assert!(bytes.len() >= 400 && bytes[..400].iter().all(|&b| b == 1));
        lens.insert(bytes.len());
    }
    assert!(lens.contains(&400) && lens.contains(&1_000));
}

#[test]
fn faults_strike_where_they_are_told_to() {
    let disk = disk_with(10, 0);
    let file = disk.open("f").unwrap();
    disk.fail_at(disk.calls() + 2, FaultKind::Full);
    file.append(b"ok").unwrap();
    assert_eq!(file.append(b"abcdef").unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(content(&disk, "f").unwrap().len(), 12, "the end has not moved");
    file.append(b"xy").unwrap();
    disk.fail_all_from(disk.calls() + 1, FaultKind::Full);
    assert_eq!(file.append(b"x").unwrap_err().kind(), ErrorKind::Full);
    file.sync().unwrap();
    disk.create("g").unwrap_err();
    disk.fail_all_from(disk.calls() + 1, FaultKind::Io);
    assert_eq!(disk.list("").unwrap_err().kind(), ErrorKind::Io);
    disk.repair();
    assert_eq!(disk.list("").unwrap(), ["f"]);
}

#[test]
fn after_a_failed_sync_later_ones_lie() {
    let disk = disk_with(10, 0);
    let file = disk.open("f").unwrap();
    file.append(b"lost").unwrap();
    disk.fail_at(disk.calls() + 1, FaultKind::Io);
    file.sync().unwrap_err();
    file.sync().unwrap();
    let lost = (0..50).filter(|&seed| content(&disk.power_cut(seed), "f").unwrap().len() == 10).count();
    assert!(lost > 0);
}

#[test]
fn the_power_goes_at_a_sync() {
    let disk = disk_with(10, 0);
    let file = disk.open("f").unwrap();
    disk.cut_at_sync(disk.syncs() + 2);
    file.append(b"a").unwrap();
    file.sync().unwrap();
    file.append(b"b").unwrap();
    file.sync().unwrap_err();
    assert!(file.append(b"c").is_err() && disk.create("g").is_err() && !disk.is_powered());
    for seed in 0..50 {
        let bytes = content(&disk.power_cut(seed), "f").unwrap();
        assert!((11..=12).contains(&bytes.len()));
    }
}

#[test]
fn a_killed_process_loses_nothing_written() {
    let disk = disk_with(10, 20);
    let next = disk.process_kill();
    assert_eq!(content(&next, "f").unwrap().len(), 30);
    assert!(disk.open("f").is_err());
    let lost = (0..50).filter(|&seed| content(&next.power_cut(seed), "f").unwrap().len() == 10).count();
    assert!(lost > 0, "it is still not durable");
}

#[test]
fn a_small_disk_is_full_unless_space_was_set_aside() {
    let disk = disk_with(100, 0);
    // Three blocks.
    disk.limit_capacity(12_288);
    let file = disk.open("f").unwrap();
    assert_eq!(file.reserve(12_289).unwrap_err().kind(), ErrorKind::Full);
    file.reserve(8_000).unwrap();
    let other = disk.create("g").unwrap();
    assert_eq!(other.append(&[0; 4_097]).unwrap_err().kind(), ErrorKind::Full);
    other.append(&[0; 4_096]).unwrap();
    file.append(&[0; 8_092]).unwrap();
    assert_eq!(file.append(&[0]).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(disk.used_bytes(), 12_288);
}

#[test]
fn one_writer_or_many_readers() {
    let disk = SimDisk::new();
    let writer = disk.lock(true).unwrap();
    assert!(disk.lock(false).is_err());
    drop(writer);
    let _readers = [disk.lock(false).unwrap(), disk.lock(false).unwrap()];
    assert!(disk.lock(true).is_err());
}
