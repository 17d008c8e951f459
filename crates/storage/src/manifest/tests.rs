//! The file: round trip, damage of every byte, interrupted writing.

use std::sync::Arc;

use super::*;
use crate::catalog::{ColumnDefinition, TableChange, TableDefinition};
use crate::database::{Database, testing};
use crate::disk::MemDisk;
use crate::row::Value;
use crate::schema::{DataType, Identity, RelationName};

/// The manifest of a database with a run, deletes, deltas of two schema versions, a namespace, a view, and a column
/// that counts.
fn written() -> MemDisk {
    let disk = MemDisk::new();
    let db = Database::open_on(Arc::new(disk.clone()), testing::options()).unwrap();
    let t = testing::on(db, 7);
    t.insert(0..20);
    t.flush();
    t.insert(20..24);
    t.delete(&[3, 21]);
    let identity = Some(Identity { always: true, start: 1, increment: 1 });
    let id = ColumnDefinition { identity, ..ColumnDefinition::new("id", DataType::BigInt, false) };
    let name = RelationName::new("n", "v");
    let view = View { name: name.clone(), columns: vec!["a".into()], query: "SELECT 1".into() };
    let mut txn = t.begin();
    let column = ColumnDefinition::new("c", DataType::BigInt, true);
    txn.alter_table(t.id, &[TableChange::AddColumn { column, missing_value: Value::Int(7) }]).unwrap();
    txn.create_namespace("n").unwrap();
    txn.create_view(view).unwrap();
    let numbered =
        txn.create_table(TableDefinition { name: RelationName::new("n", "t"), ..TableDefinition::new("t", vec![id]) });
    txn.next_identity_values(numbered.unwrap(), ColumnId(0), 3).unwrap();
    txn.commit().unwrap();
    t.db.checkpoint_now().unwrap();
    t.db.close().unwrap();
    disk
}

fn bytes_of(disk: &MemDisk) -> Vec<u8> {
    disk.get(MANIFEST_FILE).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let disk = written();
    let manifest = Manifest::read(&disk).unwrap().unwrap();
    let [table, numbered] = manifest.tables.as_slice() else { panic!("{manifest:?}") };
    let versions: Vec<_> = table.deltas.iter().map(|(_, schema)| (schema.version.0, schema.columns.len())).collect();
    assert_eq!((versions, table.older_schemas().len()), (vec![(1, 2), (2, 3)], 1));
    assert_eq!((manifest.namespaces.as_slice(), manifest.views.len()), (&["n".to_owned()][..], 1));
    assert_eq!(manifest.numbers, [(numbered.schema.id, ColumnId(0), 3)]);
    assert_eq!(table.runs.iter().map(|run| run.segments.len()).sum::<usize>(), 3);
    let deletes: Vec<_> = manifest
        .deletes
        .inline
        .iter()
        .map(|(id, set)| (table.deltas.iter().any(|(delta, _)| delta == id), set.len()))
        .collect();
    assert_eq!(deletes, [(true, 1), (false, 1)]);
    assert_eq!(manifest.deletes.files, []);
    let copy = MemDisk::new();
    manifest.write(&copy).unwrap();
    assert_eq!(bytes_of(&copy), bytes_of(&disk), "one state, one file");
    assert!(!copy.exists(MANIFEST_ASIDE).unwrap());
    assert!(Manifest::read(&MemDisk::new()).unwrap().is_none());
}

#[test]
fn damage_of_any_byte_is_named() {
    let good = bytes_of(&written());
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let error = Manifest::decode_file(&bytes).unwrap_err();
            assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "byte {at}, bit {bit}: {error}");
            assert!(error.message().contains(MANIFEST_FILE), "{error}");
        }
    }
}

#[test]
fn a_manifest_of_any_other_length_is_damage() {
    let good = bytes_of(&written());
    for len in 0..good.len() {
        let disk = MemDisk::new();
        disk.put(MANIFEST_FILE, good[..len].to_vec());
        assert_eq!(Manifest::read(&disk).unwrap_err().sqlstate(), sqlstate::CORRUPT, "{len} bytes");
    }
    let longer = [good.as_slice(), &[0]].concat();
    assert_eq!(Manifest::decode_file(&longer).unwrap_err().sqlstate(), sqlstate::CORRUPT);
}

/// Structure is checked apart from the checksum: a payload that is whole but makes no sense is an error too, never a
/// panic.
#[test]
fn a_payload_cut_anywhere_makes_no_sense() {
    let good = bytes_of(&written());
    let payload = &good[HEADER_BYTES..];
    for len in 0..payload.len() {
        assert_eq!(Manifest::decode(&payload[..len]).unwrap_err().sqlstate(), sqlstate::CORRUPT, "{len} bytes");
    }
    for at in 0..payload.len() {
        let mut bytes = payload.to_vec();
        bytes[at] = !bytes[at];
        let _ = Manifest::decode(&bytes);
    }
}

#[test]
fn another_version_is_refused_as_such() {
    let good = bytes_of(&written());
    let refused = |version: u32, seal: bool| {
        let mut bytes = good.clone();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        if seal {
            let checksum = crc32c::crc32c(&bytes[..HEADER_CHECKED]).to_le_bytes();
            bytes[HEADER_CHECKED..HEADER_BYTES].copy_from_slice(&checksum);
        }
        let error = Manifest::decode_file(&bytes).unwrap_err();
        (error.sqlstate(), error.message().contains("newer Mainstem"))
    };
    for newer in [FORMAT_VERSION + 1, FORMAT_VERSION + 60] {
        assert_eq!(refused(newer, true), (sqlstate::FEATURE_NOT_SUPPORTED, true));
        assert_eq!(refused(newer, false), (sqlstate::CORRUPT, false), "a newer program would have sealed it");
    }
    // Their headers had no checksum: what stands in its place is not that of a newer one.
    for older in 1..FIRST_CHECKED_VERSION {
        assert_eq!(refused(older, true), (sqlstate::FEATURE_NOT_SUPPORTED, false));
        assert_eq!(refused(older, false), (sqlstate::CORRUPT, false), "a flipped bit");
    }
    assert_eq!(refused(0, true), (sqlstate::CORRUPT, false));
}

#[test]
fn what_was_written_aside_and_never_renamed_is_swept() {
    let disk = written();
    disk.put(MANIFEST_ASIDE, vec![1, 2, 3]);
    let db = Database::open_on(Arc::new(disk.clone()), testing::options()).unwrap();
    db.close().unwrap();
    assert!(!disk.exists(MANIFEST_ASIDE).unwrap());
}
