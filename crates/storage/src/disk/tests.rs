use std::path::Path;
use std::sync::Arc;

use super::{DeferredDisk, Disk, MemDisk, RealDisk};
use crate::error::{ErrorKind, sqlstate};

fn each_disk(test: impl Fn(&dyn Disk)) {
    let dir = tempfile::tempdir().unwrap();
    test(&RealDisk::open(dir.path(), false).unwrap());
    test(&MemDisk::new());
}

#[test]
fn files_are_written_read_cut_renamed_and_removed() {
    each_disk(|disk| {
        disk.create_dir("a/b").unwrap();
        disk.create_dir("a/b").unwrap();
        let file = disk.create("a/b/one").unwrap();
        file.reserve(1 << 20).unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        file.sync().unwrap();
        disk.sync_dir("a/b").unwrap();
        assert_eq!(file.len().unwrap(), 11);

        let read = disk.open("a/b/one").unwrap();
        let mut five = [0; 5];
        read.read_at(6, &mut five).unwrap();
        assert_eq!(&five, b"world");
        assert_eq!(read.read_at(7, &mut five).unwrap_err().kind(), ErrorKind::Corrupt);
        for room in [0, 3, 100] {
            let mut bytes = Vec::with_capacity(room);
            bytes.extend_from_slice(b"say ");
            read.read_into(1, 5, &mut bytes).unwrap();
            read.read_into(6, 0, &mut bytes).unwrap();
            read.read_into(10, 1, &mut bytes).unwrap();
            assert_eq!(bytes, b"say ello d");
            assert_eq!(read.read_into(7, 5, &mut bytes).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        assert_eq!(read.len().unwrap(), 11);

        file.cut(2).unwrap();
        file.append(b"!").unwrap();
        disk.rename("a/b/one", "a/b/two").unwrap();
        assert!(!disk.exists("a/b/one").unwrap() && disk.exists("a/b/two").unwrap());
        disk.truncate("a/b/two", 1).unwrap();
        assert_eq!(disk.open("a/b/two").unwrap().len().unwrap(), 1);
        assert_eq!(disk.list("a/b").unwrap(), ["two"]);
        assert!(disk.list("a").unwrap().is_empty() && disk.list("nowhere").unwrap().is_empty());
        disk.remove("a/b/two").unwrap();
        for error in [
            disk.remove("a/b/two").unwrap_err(),
            disk.open("a/b/two").unwrap_err(),
            disk.rename("a/b/two", "x").unwrap_err(),
            disk.truncate("a/b/two", 0).unwrap_err(),
            disk.create("nowhere/x").unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::NotFound, sqlstate::UNDEFINED_FILE), "{error}");
        }
    });
}

#[test]
fn who_holds_a_replaced_file_keeps_its_bytes() {
    each_disk(|disk| {
        let old = disk.create("f").unwrap();
        old.append(b"old").unwrap();
        let new = disk.create("f").unwrap();
        new.append(b"newer").unwrap();
        let mut three = [0; 3];
        old.read_at(0, &mut three).unwrap();
        assert_eq!(&three, b"old");
        assert_eq!(disk.open("f").unwrap().len().unwrap(), 5);
    });
}

#[test]
fn one_writer_or_many_readers() {
    each_disk(|disk| {
        let locked = |exclusive| {
            let error = disk.lock(exclusive).unwrap_err();
            assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Closed, sqlstate::LOCKED));
            error
        };
        let writer = disk.lock(true).unwrap();
        let message = locked(false).message().to_owned();
        assert!(message.contains("this process"), "{message}");
        locked(true);
        drop(writer);
        let readers = [disk.lock(false).unwrap(), disk.lock(false).unwrap()];
        locked(true);
        drop(readers);
        disk.lock(true).unwrap();
        assert!(disk.list("").unwrap().is_empty(), "the lock file is nobody's orphan");
    });
}

#[test]
fn a_wrong_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("x/y");
    let error = RealDisk::open(&missing, false).unwrap_err();
    assert_eq!(error.sqlstate(), sqlstate::UNDEFINED_FILE);
    assert!(error.message().contains("x/y"));
    RealDisk::open(&missing, true).unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let error = RealDisk::open(&dir.path().join("file"), true).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Invalid, sqlstate::INVALID_PARAMETER));
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path(), false).unwrap());
    assert_eq!(disk.create("../x").unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_full_disk_is_full() {
    // A device that is always full, where the system has one.
    if Path::new("/dev/full").exists() {
        let error = std::fs::write("/dev/full", "x").map_err(|e| crate::Error::io("write", "x", e)).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::DISK_FULL));
    }
}

/// Not a test of its own: what the process below runs, to hold a directory until its input ends.
#[test]
fn hold_directory_for_another_process() {
    let Ok(dir) = std::env::var("MAINSTEM_TEST_HOLD") else { return };
    let exclusive = std::env::var("MAINSTEM_TEST_EXCLUSIVE").is_ok();
    let _lock = RealDisk::open(Path::new(&dir), false).unwrap().lock(exclusive).unwrap();
    std::fs::write(Path::new(&dir).join("held"), "").unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn the_process_that_holds_a_directory_is_named() {
    for exclusive in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path(), false).unwrap();
        drop(disk.lock(true).unwrap());
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "disk::tests::hold_directory_for_another_process"]);
        command.env("MAINSTEM_TEST_HOLD", dir.path()).stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::null());
        if exclusive {
            command.env("MAINSTEM_TEST_EXCLUSIVE", "1");
        }
        let mut child = command.spawn().unwrap();
        while !dir.path().join("held").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the other process ended early");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let error = disk.lock(true).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::LOCKED);
        let names_it = error.message().contains(&format!("process {}", child.id()));
        // Who reads is known only where the system tells.
        assert!(names_it || (!exclusive && error.message().contains("another process")), "{error}");
        assert_eq!(error.message().contains("read-only"), !exclusive, "{error}");
        assert_eq!(disk.lock(false).is_ok(), !exclusive);
        child.kill().unwrap();
        child.wait().unwrap();
        disk.lock(true).unwrap();
    }
}

/// Whatever came in which way: the bytes are those of one file, and a buffer is read without a copy while it is whole.
#[test]
fn a_file_in_memory_is_one_row_of_bytes() {
    use arrow_buffer::Buffer;
    let disk = MemDisk::new();
    let file = disk.create("one").unwrap();
    let mut expected: Vec<u8> = Vec::new();
    let buffers: Vec<Buffer> = (0..5).map(|n: u8| Buffer::from_vec(vec![n; 700_000])).collect();
    for (n, buffer) in buffers.iter().enumerate() {
        let small = vec![100 + n as u8; 400_000 + n];
        file.append(&small).unwrap();
        file.append(b"").unwrap();
        file.append_buffer(buffer).unwrap();
        expected.extend(small);
        expected.extend(buffer.as_slice());
    }
    let mut wide = Vec::with_capacity(1_000);
    wide.push(9u8);
    file.append_buffer(&Buffer::from_vec(wide)).unwrap();
    expected.push(9);
    let first = 400_000;
    for cut in [expected.len() + 1, expected.len(), 3_000_000, 1_200_000, first + 10, first, 7, 0] {
        file.cut(cut as u64).unwrap();
        expected.truncate(cut);
        assert_eq!(file.len().unwrap(), expected.len() as u64);
        assert_eq!(disk.get("one").unwrap(), expected);
        assert_eq!(disk.copy().get("one").unwrap(), expected);
        for (from, len) in
            [(0, 7), (first - 1, 2), (399_000, 800_000), (first, 10), (first + 5, 5), (2_900_000, 50_000)]
        {
            let mut bytes = vec![0; len];
            match expected.get(from..from + len) {
                Some(expected) => {
                    file.read_at(from as u64, &mut bytes).unwrap();
                    assert_eq!(bytes, expected);
                    assert!(file.shared(from as u64, len).is_none_or(|shared| shared.as_slice() == expected));
                }
                None => {
                    assert_eq!(file.read_at(from as u64, &mut bytes).unwrap_err().kind(), ErrorKind::Corrupt);
                    assert_eq!(file.shared(from as u64, len), None);
                }
            }
        }
        let shared = file.shared(first as u64 + 5, 5).map(|shared| shared.as_ptr());
        let is_there = expected.len() >= first + 10;
        assert_eq!(shared, is_there.then(|| buffers[0].as_slice()[5..].as_ptr()));
    }
    file.append(b"again").unwrap();
    assert_eq!(disk.get("one").unwrap(), b"again");
}

/// Files of a load are made durable together until that fails: then, and from then on, each by itself.
#[test]
fn files_are_synced_one_by_one_where_their_file_system_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let real = Arc::new(RealDisk::open(dir.path(), false).unwrap());
    let syncs_of = |files: usize| {
        let disk = DeferredDisk::new(real.clone());
        for number in 0..files {
            let file = disk.create(&number.to_string()).unwrap();
            file.append(b"bytes").unwrap();
            file.sync().unwrap();
        }
        let before = disk.syncs();
        disk.sync_all().unwrap();
        disk.syncs() - before
    };
    assert_eq!(syncs_of(7), 7, "few files");
    if super::syncs_together(dir.path()) {
        assert_eq!(syncs_of(8), 1);
        let mut file_system = real.file_system.lock();
        file_system.as_mut().unwrap().sync = |_| Err(std::io::ErrorKind::Other.into());
        drop(file_system);
        assert_eq!(syncs_of(8), 1 + 8, "an error says nothing of any one file");
        assert_eq!(syncs_of(8), 8);
        *real.file_system.lock() = super::real::FileSystem::of(dir.path());
        assert_eq!(syncs_of(8), 1);
        // Another file system below the directory.
        std::os::unix::fs::symlink("/proc/self", dir.path().join("link")).unwrap();
        assert_eq!(syncs_of(8), 1 + 8);
    }
}
