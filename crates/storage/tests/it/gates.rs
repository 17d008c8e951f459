//! Write gates: a closed one holds up who writes later, one closer after the other, and lets all go on when it opens
//! (contract 2).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::*;

/// Long enough for a thread that does not wait to be seen.
const A_WHILE: Duration = Duration::from_millis(100);
/// Far less than a writer waits at most.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn writers_wait_at_a_closed_gate_and_go_on_when_it_opens() {
    let db = memory();
    let (t, other) = (create(&db, "t", true, 7), create(&db, "other", true, 7));
    let gate = db.close_write_gate(t);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (db, send) = (&db, send.clone());
            scope.spawn(move || {
                let mut txn = begin(db);
                txn.pass_gate(t);
                insert(&mut txn, t, &rows([writer])).unwrap();
                txn.commit().unwrap();
                send.send(writer).unwrap();
            });
        }
        assert!(receive.recv_timeout(A_WHILE).is_err(), "a writer went through a closed gate");
        // Another table's gate is open, and who has written already waits at none: it would hold others up.
        let mut txn = begin(&db);
        txn.pass_gate(other);
        insert(&mut txn, other, &rows([1])).unwrap();
        txn.pass_gate(t);
        insert(&mut txn, t, &rows([9])).unwrap();
        txn.commit().unwrap();
        drop(gate);
        for _ in 0..3 {
            receive.recv_timeout(LONG).expect("all that waited go on");
        }
    });
    assert_eq!(contents(&db, t).len(), 4);
}

#[test]
fn one_has_a_gate_closed_at_a_time() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let gate = db.close_write_gate(t);
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(gate);
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
    begin(&db).pass_gate(t);
}
