//! Write gates: a closed one holds up who writes later, one closer after the other, and lets all go on when it opens
//! (contract 2).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use mainstem_storage::Error;

use crate::support::*;

/// Long enough for a thread that does not wait to be seen.
const A_WHILE: Duration = Duration::from_millis(100);
/// Only what waits for ever takes so long.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn writers_wait_at_a_closed_gate_and_go_on_when_it_opens() {
    let db = memory();
    let (t, other) = (create(&db, "t", true, 7), create(&db, "other", true, 7));
    let gate = db.close_write_gate(t, || Ok(())).unwrap();
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        // What a transaction has written before makes no difference: it waits for its turn with the others.
        for writer in 0..4 {
            let (db, send) = (&db, send.clone());
            scope.spawn(move || {
                let mut txn = begin(db);
                if writer % 2 == 1 {
                    insert(&mut txn, other, &rows([writer])).unwrap();
                }
                txn.pass_gate(t, || Ok(())).unwrap();
                insert(&mut txn, t, &rows([writer])).unwrap();
                txn.commit().unwrap();
                send.send(writer).unwrap();
            });
        }
        assert!(receive.recv_timeout(A_WHILE).is_err(), "a writer went through a closed gate");
        // Another table's gate is open.
        let mut txn = begin(&db);
        txn.pass_gate(other, || Ok(())).unwrap();
        insert(&mut txn, other, &rows([9])).unwrap();
        txn.commit().unwrap();
        drop(gate);
        for _ in 0..4 {
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
                    let gate = db.close_write_gate(t, || Ok(())).unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(gate);
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
    begin(&db).pass_gate(t, || Ok(())).unwrap();
}

/// No wait at a gate outlasts the database, or the patience of whoever waits.
#[test]
fn a_wait_at_a_gate_ends_when_it_is_canceled_or_the_database_closes() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let gate = db.close_write_gate(t, || Ok(())).unwrap();
    let canceled = begin(&db).pass_gate(t, || Err(Error::internal("enough"))).unwrap_err();
    assert_eq!(canceled.message(), "enough");
    let (comes, come) = mpsc::channel();
    std::thread::scope(|scope| {
        let waits = |who: &'static str| {
            let comes = comes.clone();
            move || {
                let _ = comes.send(who);
                Ok(())
            }
        };
        let (go_on, writer) = (waits("passes"), begin(&db));
        let passes = scope.spawn(move || state(writer.pass_gate(t, go_on)));
        let go_on = waits("closes");
        let closes = scope.spawn(|| state(db.close_write_gate(t, go_on)));
        for who in ["passes", "closes"] {
            while come.recv_timeout(LONG).expect("both wait") != who {}
        }
        assert!(!passes.is_finished() && !closes.is_finished());
        db.close().unwrap();
        assert_eq!((passes.join().unwrap(), closes.join().unwrap()), ("57P01", "57P01"));
    });
    drop(gate);
}

/// Loads, merges and small commits without end: a large commit is validated a bounded number of times.
#[test]
fn a_large_commit_is_overtaken_a_bounded_number_of_times() {
    const LOADERS: i64 = 2;
    const MERGERS: u32 = 1;
    const SMALL: u32 = 2;
    let db = memory();
    let t = create(&db, "t", true, 500);
    insert_and_commit(&db, t, 0..5_000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, done) = (&db, &done);
        let going = || !done.load(Ordering::Acquire);
        for loader in 0..LOADERS {
            scope.spawn(move || {
                let keys = |round: i64| (1 + loader) * 10_000_000 + round * 5_000;
                (0..).take_while(|_| going()).for_each(|round| insert_and_commit(db, t, keys(round)..keys(round + 1)));
            });
        }
        scope.spawn(move || {
            while going() {
                db.flush(t).unwrap();
            }
        });
        for writer in 0..i64::from(SMALL) {
            scope.spawn(move || {
                let keys = (1 + writer) * 1_000_000..;
                keys.take_while(|_| going()).for_each(|key| insert_and_commit(db, t, [key]));
            });
        }
        for round in 0..6 {
            let mut txn = begin(db);
            insert(&mut txn, t, &rows(100_000 + round * 20_000..100_000 + (round + 1) * 20_000)).unwrap();
            delete(&mut txn, t, &[round]).unwrap();
            txn.commit().unwrap();
        }
        done.store(true, Ordering::Release);
    });
    let rounds = db.take_commit_rounds_max();
    println!("at most {rounds} validations");
    // Twice openly, once in its turn, and once more for whatever was under way then.
    assert!(rounds <= 3 + LOADERS as u32 + MERGERS + SMALL, "{rounds} validations of one commit");
}
