//! Every interleaving of a few threads, by loom. See the module for the command.

use super::*;
use loom::thread;

#[test]
fn readers_see_whole_values() {
    loom::model(|| {
        let buffer = Arc::new(AppendBuffer::with_capacity(3));
        // Claimed before the threads run, because loom tells races apart by the last access only: a load of the length
        // by the writer itself would hide its race with the reader's.
        let mut writer = buffer.owned_writer().unwrap();
        let appends = thread::spawn(move || {
            writer.push(1).unwrap();
            writer.extend_from_slice(&[2, 3]).unwrap();
        });
        let first = buffer.as_slice().len();
        let bytes = buffer.bytes();
        assert!(bytes.values().len() >= first);
        assert!([&[][..], &[1], &[1, 2, 3]].contains(&bytes.values()));
        appends.join().unwrap();
        assert_eq!(buffer.as_slice(), [1, 2, 3]);
    });
}

#[test]
fn one_of_two_writers_wins_each_place() {
    loom::model(|| {
        let buffer = Arc::new(AppendBuffer::with_capacity(2));
        let other = Arc::clone(&buffer);
        let rival = thread::spawn(move || other.push(2).is_ok());
        let mine = buffer.owned_writer().is_some_and(|mut writer| writer.push(1).is_ok());
        let theirs = rival.join().unwrap();
        let mut values = buffer.as_slice().to_vec();
        values.sort_unstable();
        match (mine, theirs) {
            (true, true) => assert_eq!(values, [1, 2]),
            (true, false) => assert_eq!(values, [1]),
            (false, true) => assert_eq!(values, [2]),
            (false, false) => panic!("nobody wrote"),
        }
    });
}
