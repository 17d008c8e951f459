//! Bytes flipped, zeroed, cut off or put in the wrong place: a Corrupt error or a clean torn tail, as the rule says;
//! never a panic, never wrong records, never silence about what was fsynced.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{START, new_log, payload, put, read};
use crate::disk::{Disk, MemDisk};
use crate::error::ErrorKind;
use crate::ids::{CommitTs, LogPosition};
use crate::settings::Synchronous::{self, Full, Off};
use crate::wal::{Log, LogReader, LogRecord, LogStart};

const FILE: &str = "wal/0000000001.log";

/// Many small records and a few that cross blocks; with `Full`, each is fsynced before the next one is appended.
fn written(level: Synchronous) -> (MemDisk, Vec<LogRecord>) {
    let disk = MemDisk::new();
    let log = new_log(&disk);
    for ts in 11..80 {
        let bytes = if ts % 20 == 0 { 40_000 } else { 17 * (ts as usize % 13) };
        put(&log, ts, level, &payload(ts, bytes)).unwrap();
        log.wait_visible(CommitTs(ts)).unwrap();
    }
    log.flush(Off).unwrap();
    let (records, _) = read(&disk, START.position).unwrap();
    assert_eq!(records.len(), 69);
    (disk, records)
}

/// File 1 with `change` made to its bytes, on a disk of its own.
fn changed(disk: &MemDisk, change: impl FnOnce(&mut Vec<u8>)) -> MemDisk {
    let mut bytes = disk.get(FILE).unwrap();
    change(&mut bytes);
    let copy = disk.copy();
    copy.put(FILE, bytes);
    copy
}

/// Bytes worth trying one by one: headers, their surroundings, and a sample of the rest.
fn places(records: &[LogRecord]) -> Vec<usize> {
    let mut rng = StdRng::seed_from_u64(1);
    let offset = |position: LogPosition| (position.0 - START.position.0) as usize;
    let mut places: Vec<usize> = records.iter().flat_map(|r| offset(r.position)..offset(r.position) + 50).collect();
    let end = offset(records.last().unwrap().end_position);
    places.extend((0..1_000).map(|_| rng.random_range(64..end)));
    places.retain(|&place| place < end);
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn a_flipped_bit_below_what_was_fsynced_is_named() {
    let (disk, records) = written(Full);
    let last = records.last().unwrap();
    for (i, place) in places(&records).into_iter().enumerate() {
        let position = START.position.0 + place as u64;
        let damaged = changed(&disk, |bytes| bytes[place] ^= 1 << (i % 8));
        let hit = records.iter().find(|r| r.position.0 <= position && position < r.end_position.0);
        match (hit, read(&damaged, START.position)) {
            // Padding means nothing.
            (None, Ok((found, _))) => assert_eq!(found, records),
            (Some(hit), Ok((found, tail))) if hit.ts == last.ts => {
                assert_eq!(found, records[..records.len() - 1]);
                assert!(tail.torn_bytes > 0 && tail.valid_end == records[records.len() - 2].end_position);
            }
            (Some(hit), Err(e)) if hit.ts < last.ts => {
                assert_eq!(e.kind(), ErrorKind::Corrupt);
                assert!(e.message().contains(FILE), "{e}");
            }
            (hit, found) => panic!("byte {place}, record {:?}: {:?}", hit.map(|r| r.ts), found.map(|f| f.1)),
        }
        // Whoever knows from elsewhere what was fsynced learns of the last one, too.
        let reader =
            LogReader::open(&damaged, START.position).unwrap().known_fsynced(last.end_position, "a checkpoint");
        assert_eq!(reader.finish().is_err(), hit.is_some());
    }
}

#[test]
fn a_flipped_bit_above_what_was_fsynced_is_a_torn_tail() {
    let (disk, records) = written(Off);
    for (i, place) in places(&records).into_iter().enumerate() {
        let position = START.position.0 + place as u64;
        let damaged = changed(&disk, |bytes| bytes[place] ^= 1 << (i % 8));
        let whole = records.iter().take_while(|r| r.end_position.0 <= position).count();
        let padding = !records.iter().any(|r| r.position.0 <= position && position < r.end_position.0);
        let (found, tail) = read(&damaged, START.position).unwrap();
        let expected = if padding { &records[..] } else { &records[..whole] };
        assert_eq!(found, expected, "byte {place}");
        assert_eq!(tail.last_ts, expected.last().map(|r| r.ts));
        assert_eq!(tail.torn_bytes > 0, !padding);
    }
}

#[test]
fn a_file_cut_off_anywhere_ends_at_a_whole_record() {
    for level in [Off, Full] {
        let (disk, records) = written(level);
        for place in places(&records) {
            let position = START.position.0 + place as u64;
            let damaged = changed(&disk, |bytes| bytes.truncate(place));
            let whole = records.iter().take_while(|r| r.end_position.0 <= position).count();
            let (found, tail) = read(&damaged, START.position).unwrap();
            assert_eq!(found, records[..whole]);
            // Cut off there, the log goes on: what is appended follows what was read.
            let ts = tail.last_ts.unwrap_or(START.ts);
            let log = Log::create(std::sync::Arc::new(damaged.clone()), tail.next_start(99, ts)).unwrap();
            put(&log, 500, Full, b"next").unwrap();
            log.wait_visible(CommitTs(500)).unwrap();
            let (again, _) = read(&damaged, START.position).unwrap();
            assert_eq!(again.len(), whole + 1);
            // A checkpoint knew better.
            let from = records.last().unwrap().end_position;
            assert_eq!(
                LogReader::open(&changed(&disk, |b| b.truncate(place)), from).unwrap_err().kind(),
                ErrorKind::Corrupt
            );
        }
    }
}

/// Anything at all: never a panic, and what is read is what was written, from the start on.
#[test]
fn rubbish_never_becomes_records() {
    let mut rng = StdRng::seed_from_u64(2);
    for level in [Off, Full] {
        let (disk, records) = written(level);
        for _ in 0..2_000 {
            let damaged = changed(&disk, |bytes| {
                for _ in 0..rng.random_range(1..4) {
                    let start = rng.random_range(0..bytes.len());
                    let end = (start + rng.random_range(1..3_000usize)).min(bytes.len());
                    match rng.random_range(0..5) {
                        0 => bytes[start..end].fill(0),
                        1 => rng.fill(&mut bytes[start..end]),
                        2 => drop(bytes.drain(start..end)),
                        3 => bytes.truncate(start.max(1)),
                        // The same bytes elsewhere: checksums know their place.
                        _ => {
                            let to = rng.random_range(0..=bytes.len() - (end - start));
                            bytes.copy_within(start..end, to);
                        }
                    }
                    if bytes.is_empty() {
                        bytes.push(0);
                    }
                }
            });
            match LogReader::open(&damaged, START.position) {
                Err(e) => assert_eq!(e.kind(), ErrorKind::Corrupt),
                Ok(mut reader) => {
                    let found: Vec<_> = reader.by_ref().collect();
                    let whole = found.iter().take_while(|r| r.is_ok()).count();
                    for (found, expected) in found.iter().zip(&records) {
                        match found {
                            Ok(found) => assert_eq!(found, expected),
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Corrupt),
                        }
                    }
                    assert!(found.len() - whole <= 1);
                    assert_eq!(reader.finish().is_err(), whole < found.len(), "finish tells what reading told");
                }
            }
        }
    }
}

/// Three files; the last two bytes of evidence a rule could miss.
fn three_files() -> (MemDisk, Vec<LogRecord>) {
    let disk = MemDisk::new();
    let log = new_log(&disk);
    for ts in 11..18 {
        put(&log, ts, Off, &payload(ts, 6 << 20)).unwrap();
    }
    log.flush(Off).unwrap();
    assert_eq!(disk.list("wal").unwrap().len(), 3);
    let (records, _) = read(&disk, START.position).unwrap();
    (disk, records)
}

#[test]
fn a_closed_file_has_no_torn_tail() {
    let (disk, records) = three_files();
    let corrupt = |damaged: &MemDisk, what: &str| {
        let error = read(damaged, START.position).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}");
        error.message().to_owned()
    };
    for place in [0, 63, 64, 70, 1 << 20, 18 << 20] {
        let message = corrupt(&changed(&disk, |bytes| bytes[place] ^= 4), "flipped");
        assert!(message.contains("wal"), "{message}");
    }
    corrupt(&changed(&disk, |bytes| bytes.truncate(bytes.len() - 1)), "cut off");
    corrupt(&changed(&disk, |bytes| bytes.push(0)), "too long");
    let missing = disk.copy();
    missing.remove("wal/0000000002.log").unwrap();
    assert!(corrupt(&missing, "missing").contains("0000000002"));
    let swapped = disk.copy();
    swapped.put("wal/0000000002.log", disk.get("wal/0000000003.log").unwrap());
    corrupt(&swapped, "another file's bytes");

    // What lies below the start of the replay is not looked at.
    let from = records[5].position;
    let damaged = changed(&disk, |bytes| bytes[100] ^= 1);
    assert_eq!(read(&damaged, from).unwrap().0, records[5..]);
    damaged.remove(FILE).unwrap();
    assert_eq!(read(&damaged, from).unwrap().0, records[5..]);
}

/// Each file says that another follows; the last one's records are missed only if somebody knows of them.
#[test]
fn a_log_that_lost_its_last_file_is_no_shorter_log() {
    let (disk, records) = three_files();
    let reopened = disk.copy();
    let (_, tail) = read(&reopened, START.position).unwrap();
    drop(Log::create(std::sync::Arc::new(reopened.clone()), tail.next_start(9, CommitTs(17))).unwrap());
    for (disk, number) in [(disk.clone(), 3), (reopened, 4)] {
        let (_, tail) = read(&disk, START.position).unwrap();
        assert_eq!((tail.file_number, tail.torn_bytes), (number, 0));
        let name = format!("wal/{number:010}.log");
        disk.remove(&name).unwrap();
        let error = read(&disk, START.position).map(|_| ()).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.message().contains(&name), "{error}");
    }
    let third = "wal/0000000003.log";
    let last = records[6].position;
    let in_third = (last.0 - records[5].end_position.0) as usize;
    assert!(in_third < 1_000, "the seventh record is the first of the third file");
    let cut = disk.copy();
    cut.put(third, three_files().0.get(third).unwrap()[..64].to_vec());
    assert_eq!(read(&cut, START.position).unwrap().0.len(), 6);
    let end = records[6].end_position;
    for (known, whole) in [(last, true), (end, false)] {
        let reader = LogReader::open(&cut, START.position).unwrap().known_fsynced(known, "a checkpoint");
        assert_eq!(reader.finish().is_ok(), whole);
    }
}

#[test]
fn a_file_without_a_record_is_begun_anew() {
    let disk = MemDisk::new();
    drop(new_log(&disk));
    for round in 0..3u64 {
        let before = disk.get(FILE).unwrap();
        let (records, tail) = read(&disk, START.position).unwrap();
        assert!(records.is_empty());
        drop(Log::create(std::sync::Arc::new(disk.clone()), tail.next_start(round, START.ts)).unwrap());
        assert_eq!(disk.list("wal").unwrap(), ["0000000001.log"]);
        let after = disk.get(FILE).unwrap();
        assert!(after.len() == before.len() && after != before, "another log id");
    }
    let log = Log::create(std::sync::Arc::new(disk.clone()), LogStart { log_id: 3, ..START }).unwrap();
    put(&log, 11, Full, b"x").unwrap();
    log.sync_all().unwrap();
    let mut end = None;
    for round in 4..7 {
        let (records, tail) = read(&disk, START.position).unwrap();
        assert_eq!(records.len(), 1);
        let log = Log::create(std::sync::Arc::new(disk.clone()), tail.next_start(round, CommitTs(11))).unwrap();
        assert_eq!(disk.list("wal").unwrap(), ["0000000001.log", "0000000002.log"]);
        assert_eq!(*end.get_or_insert(log.position_of_next()), log.position_of_next());
    }
}

/// However often the header of the next file is lost before it is fsynced.
#[test]
fn a_file_is_ended_once() {
    let disk = MemDisk::new();
    let log = new_log(&disk);
    put(&log, 11, Full, b"x").unwrap();
    log.sync_all().unwrap();
    let mut ended = None;
    for round in 0..3 {
        let (records, tail) = read(&disk, START.position).unwrap();
        assert_eq!((records.len(), tail.file_number), (1, 1));
        drop(Log::create(std::sync::Arc::new(disk.clone()), tail.next_start(round, CommitTs(11))).unwrap());
        disk.put("wal/0000000002.log", Vec::new());
        let bytes = disk.get(FILE).unwrap();
        assert_eq!(*ended.get_or_insert(bytes.clone()), bytes);
    }
}

#[test]
fn a_last_file_without_header_is_not_begun_unless_bytes_stand_behind_it() {
    let (disk, records) = three_files();
    let third = "wal/0000000003.log";
    let in_third = records.iter().filter(|r| r.position >= records[6].position).count();
    for change in 0..4 {
        let damaged = disk.copy();
        let mut bytes = disk.get(third).unwrap();
        match change {
            0 => bytes.clear(),
            1 => bytes.truncate(30),
            2 => bytes[20] ^= 1,
            _ => bytes[..70_000].fill(0),
        }
        damaged.put(third, bytes);
        if change >= 2 {
            // Records are written only when the header before them is fsynced.
            let error = read(&damaged, START.position).unwrap_err();
            assert!(error.message().contains("0000000003") && error.kind() == ErrorKind::Corrupt, "{error}");
            continue;
        }
        // Its header may be torn.
        let (found, tail) = read(&damaged, START.position).unwrap();
        assert_eq!(found, records[..records.len() - in_third]);
        assert_eq!((tail.file_number, tail.torn_bytes > 0), (2, change > 0));
        let log = Log::create(std::sync::Arc::new(damaged.clone()), tail.next_start(5, CommitTs(16))).unwrap();
        put(&log, 600, Full, b"next").unwrap();
        log.sync_all().unwrap();
        assert_eq!(read(&damaged, START.position).unwrap().1.last_ts, Some(CommitTs(600)));
    }

    // Fsynced, and a later record says so: the header is damaged.
    let log_disk = MemDisk::new();
    let log = new_log(&log_disk);
    for ts in 11..16 {
        put(&log, ts, Off, &payload(ts, 6 << 20)).unwrap();
    }
    log.sync_all().unwrap();
    put(&log, 16, Full, b"knows").unwrap();
    log.sync_all().unwrap();
    let second = "wal/0000000002.log";
    let mut bytes = log_disk.get(second).unwrap();
    bytes[20] ^= 1;
    log_disk.put(second, bytes);
    assert_eq!(read(&log_disk, START.position).map(|_| ()).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (disk, _) = written(Full);
    let damaged = changed(&disk, |bytes| {
        bytes[8] += 1;
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    });
    let error = LogReader::open(&damaged, START.position).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("version 3"), "{error}");
}

#[test]
fn no_log_or_a_start_outside_it_is_corrupt() {
    let (disk, records) = written(Full);
    let end = records.last().unwrap().end_position;
    for from in [LogPosition(0), LogPosition(end.0 + 1)] {
        assert_eq!(LogReader::open(&disk, from).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert_eq!(LogReader::open(&MemDisk::new(), LogPosition(0)).unwrap_err().kind(), ErrorKind::Corrupt);
    // In the middle of a record.
    assert!(read(&disk, LogPosition(records[3].position.0 + 1)).is_err());
}

/// Whole, intact records that stand elsewhere, or were left by an earlier log in the same place, are no records of this
/// one.
#[test]
fn a_checksum_holds_for_one_place_of_one_log() {
    let written_by = |log_id| {
        let disk = MemDisk::new();
        let log = Log::create(std::sync::Arc::new(disk.clone()), LogStart { log_id, ..START }).unwrap();
        for ts in 11..20 {
            put(&log, ts, Off, &payload(ts, 100)).unwrap();
        }
        log.flush(Off).unwrap();
        disk
    };
    let (disk, other) = (written_by(1), written_by(2));
    let (records, _) = read(&disk, START.position).unwrap();
    let range =
        |r: &LogRecord| (r.position.0 - START.position.0) as usize..(r.end_position.0 - START.position.0) as usize;
    let moved = changed(&disk, |bytes| {
        bytes.copy_within(range(&records[7]), range(&records[4]).start);
        bytes.truncate(range(&records[4]).end);
    });
    assert_eq!(read(&moved, START.position).unwrap().0, records[..4]);
    let old = other.get(FILE).unwrap();
    let left_over = changed(&disk, |bytes| bytes[range(&records[4])].copy_from_slice(&old[range(&records[4])]));
    assert_eq!(read(&left_over, START.position).unwrap().0, records[..4]);
}
