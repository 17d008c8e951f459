//! Delete files: round trip, damage of every kind, lifetime.

use std::sync::Arc;

use crate::deletes::{DeleteCollector, DeleteFileWriter, DeleteSet, read_deletes};
use crate::disk::{AsideFile, AsideKind, DATA_DIR, Disk, MemDisk};
use crate::error::{ErrorKind, Result, sqlstate};
use crate::ids::{ContainerId, FileId};
use crate::limits;

fn disk() -> (MemDisk, Arc<dyn Disk>) {
    let memory = MemDisk::new();
    memory.create_dir(DATA_DIR).unwrap();
    (memory.clone(), Arc::new(memory))
}

fn write(disk: &Arc<dyn Disk>, sets: &[(ContainerId, DeleteSet)]) -> Arc<AsideFile> {
    let mut writer = DeleteFileWriter::new(disk.clone(), FileId(7)).unwrap();
    sets.iter().for_each(|(id, set)| writer.push(*id, set).unwrap());
    writer.finish().unwrap()
}

fn read(file: &AsideFile) -> Result<Vec<(ContainerId, DeleteSet)>> {
    let mut sets = Vec::new();
    read_deletes(file, |id, set| {
        sets.push((id, set));
        Ok(())
    })?;
    Ok(sets)
}

fn some_sets() -> Vec<(ContainerId, DeleteSet)> {
    let sets = [
        DeleteSet::One(9),
        (0..200).map(|i| i * 3).collect(),
        (0..4_000).map(|i| i * 5).collect(),
        DeleteSet::range(10..100_000),
    ];
    (1..).map(ContainerId).zip(sets).collect()
}

#[test]
fn sets_come_back_over_several_blocks() {
    let (memory, disk) = disk();
    let scattered: DeleteSet = (0..131_072).step_by(2).collect();
    let mut sets = some_sets();
    sets.extend((100..200).map(|id| (ContainerId(id), scattered.clone())));
    let file = write(&disk, &sets);
    assert!(file.at().bytes > limits::ASIDE_BLOCK_BYTES as u64 + (1 << 16), "more than one block");
    assert_eq!(file.at().items, sets.iter().map(|(_, set)| set.len() as u64).sum::<u64>());
    assert_eq!(file.at().bytes, memory.get(&AsideKind::Deletes.path(FileId(7))).unwrap().len() as u64);
    assert_eq!(read(&file).unwrap(), sets);
    file.verify().unwrap();
}

#[test]
fn damage_of_any_byte_is_named() {
    let (memory, disk) = disk();
    let file = write(&disk, &some_sets());
    let path = AsideKind::Deletes.path(FileId(7));
    let good = memory.get(&path).unwrap();
    let damaged = |bytes: Vec<u8>, what: String| {
        memory.put(&path, bytes);
        let error = file.verify().expect_err(&what);
        assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "{what}: {error}");
        assert!(error.message().contains(&path), "{what}: {error}");
    };
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        damaged(bytes, format!("byte {at}"));
    }
    for len in (0..good.len()).step_by(13) {
        damaged(good[..len].to_vec(), format!("cut to {len}"));
    }
    damaged([good.as_slice(), &[0; 40]].concat(), "rubbish at the end".into());
    memory.remove(&path).unwrap();
    let missing = file.verify().unwrap_err();
    assert!(missing.kind() == ErrorKind::Corrupt && missing.message().contains("missing"), "{missing}");
    memory.put(&path, good);
    file.verify().unwrap();
}

#[test]
fn another_file_of_the_same_shape_is_damage() {
    let (memory, disk) = disk();
    let file = write(&disk, &some_sets());
    let path = AsideKind::Deletes.path(FileId(7));
    let first = memory.get(&path).unwrap();
    let mut others = some_sets();
    others[0].1 = DeleteSet::One(8);
    let other = write(&disk, &others);
    assert_eq!(memory.get(&path).unwrap().len(), first.len());
    other.verify().unwrap();
    assert_eq!(file.verify().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_file_goes_with_its_last_handle_unless_it_is_kept() {
    let (memory, disk) = disk();
    let there = || memory.exists(&AsideKind::Deletes.path(FileId(7))).unwrap();
    let mut unfinished = DeleteFileWriter::new(disk.clone(), FileId(7)).unwrap();
    unfinished.push(ContainerId(1), &DeleteSet::One(1)).unwrap();
    assert!(there());
    drop(unfinished);
    assert!(!there());
    let file = write(&disk, &some_sets());
    let reader = file.clone();
    drop(file);
    assert!(there());
    drop(reader);
    assert!(!there());
    let file = write(&disk, &some_sets());
    file.keep();
    drop(file.clone());
    let at = file.at();
    drop(file);
    assert!(there(), "a record names it");
    let named = AsideFile::named(disk.clone(), AsideKind::Deletes, at);
    named.verify().unwrap();
    named.release();
    drop(named);
    assert!(!there());
}

#[test]
fn only_what_does_not_fit_goes_to_a_file() {
    let (memory, disk) = disk();
    let next_file = || FileId(3);
    for (room, aside) in [(0, true), (40, true), (100_000, false)] {
        let mut collector = DeleteCollector::new(&disk, &next_file, room);
        for (id, set) in some_sets() {
            collector.push(id, &set).unwrap();
            collector.push(id, &DeleteSet::empty()).unwrap();
        }
        let (inline, file) = collector.finish().unwrap();
        assert_eq!((inline.is_empty(), file.is_some()), (aside, aside), "room {room}");
        let sets = file.map_or(inline, |file| read(&file).unwrap());
        assert_eq!(sets, some_sets());
    }
    let empty = DeleteCollector::new(&disk, &next_file, 0).finish().unwrap();
    assert!(empty.0.is_empty() && empty.1.is_none());
    assert_eq!(memory.list(DATA_DIR).unwrap(), Vec::<String>::new());
}
