use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::{Gates, Turns};
use crate::error::Error;
use crate::ids::TableId;

const T: TableId = TableId(1);
const OTHER: TableId = TableId(2);
/// Long enough for a thread that does not wait to be seen.
const A_WHILE: Duration = Duration::from_millis(60);
/// Only what waits for ever takes so long.
const LONG: Duration = Duration::from_secs(120);

/// Runs `wait` beside `release`, and proves that it ends only after it.
fn ends_only_after(wait: impl FnOnce() + Send, release: impl FnOnce()) {
    let (done, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            wait();
            done.send(()).unwrap();
        });
        assert!(ended.recv_timeout(A_WHILE).is_err(), "it did not wait");
        release();
        ended.recv_timeout(LONG).expect("it waits for ever");
    });
}

#[test]
fn a_gate_goes_from_holder_to_holder_before_it_opens() {
    let gates = Arc::new(Gates::default());
    let first = gates.close(T, || Ok(())).unwrap();
    let (closed, order) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut open = Vec::new();
        for number in 0..3_usize {
            let (gates, closed) = (&gates, closed.clone());
            let (open_it, wait) = mpsc::channel::<()>();
            open.push(open_it);
            scope.spawn(move || {
                let gate = gates.close(T, || Ok(())).unwrap();
                closed.send(number).unwrap();
                wait.recv().unwrap();
                drop(gate);
            });
            while gates.queues.lock().of_table[&T].len() < number + 2 {
                std::thread::yield_now();
            }
        }
        let passes = scope.spawn(|| gates.pass(T, || Ok(())));
        gates.pass(OTHER, || Ok(())).unwrap();
        drop(first);
        for (number, open_it) in open.iter().enumerate() {
            assert_eq!(order.recv_timeout(LONG), Ok(number), "in the order in which they asked");
            assert!(order.recv_timeout(A_WHILE).is_err() && gates.is_closed(T), "one at a time");
            assert!(!passes.is_finished());
            open_it.send(()).unwrap();
        }
        passes.join().unwrap().unwrap();
    });
    assert!(!gates.is_closed(T) && gates.queues.lock().of_table.is_empty());
}

#[test]
fn who_is_canceled_at_a_gate_leaves_nothing_behind() {
    let gates = Arc::new(Gates::default());
    let gate = gates.close(T, || Ok(())).unwrap();
    let mut asked = 0;
    let canceled = gates.pass(T, || {
        asked += 1;
        if asked < 3 { Ok(()) } else { Err(Error::internal("canceled")) }
    });
    assert_eq!((canceled.unwrap_err().message(), asked), ("canceled", 3));
    gates.close(T, || Err(Error::internal("canceled"))).unwrap_err();
    assert_eq!(gates.queues.lock().of_table[&T].len(), 1);
    drop(gate);
    gates.pass(T, || unreachable!("it is open")).unwrap();
}

/// Whoever gives up his place takes nobody else's.
#[test]
fn who_is_canceled_in_line_leaves_the_others_theirs() {
    let gates = Arc::new(Gates::default());
    let first = gates.close(T, || Ok(())).unwrap();
    let line = || gates.queues.lock().of_table[&T].clone();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| drop(gates.close(T, || Ok(())).unwrap()));
        while line().len() < 2 {
            std::thread::yield_now();
        }
        let before = line();
        gates.close(T, || Err(Error::internal("canceled"))).unwrap_err();
        assert_eq!(line(), before);
        drop(first);
        second.join().unwrap();
    });
    assert!(!gates.is_closed(T));
}

#[test]
fn installs_wait_for_those_entered_before_unless_somebody_waits_for_them() {
    let turns = Turns::default();
    turns.pass_install(T, || false);
    // Two at once: neither waits for the other.
    let (one, two) = (turns.enter(vec![T, OTHER]), turns.enter(vec![T]));
    turns.pass(&[T]);
    turns.pass_install(TableId(3), || false);
    turns.pass_install(T, || true);
    let waited_for = AtomicBool::new(false);
    ends_only_after(
        || turns.pass_install(T, || waited_for.load(Ordering::Acquire)),
        || waited_for.store(true, Ordering::Release),
    );
    let mut one = Some(one);
    ends_only_after(|| turns.pass_install(OTHER, || false), || one = None);
    // An install that has come waits for none that is entered later.
    let ((come, asked), (done, ended)) = (mpsc::channel(), mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            turns.pass_install(T, || {
                let _ = come.send(());
                false
            });
            done.send(()).unwrap();
        });
        asked.recv_timeout(LONG).expect("it does not wait");
        let _later = turns.enter(vec![T]);
        assert!(ended.try_recv().is_err());
        drop(two);
        ended.recv_timeout(LONG).expect("it waits for a later one");
    });
}

#[test]
fn one_has_the_turn_and_all_wait_for_it() {
    let turns = Turns::default();
    let (first, second, third) = (turns.enter(vec![T]), turns.enter(vec![OTHER]), turns.enter(vec![T]));
    first.take_turn();
    turns.pass(&[OTHER, TableId(3)]);
    turns.pass_install(OTHER, || true);
    std::thread::scope(|scope| {
        let install = scope.spawn(|| turns.pass_install(T, || true));
        let commit = scope.spawn(|| turns.pass(&[OTHER, T]));
        let wants = |number: u64| turns.state.lock().entered[&number].wants_turn;
        // The later one asks first.
        let last = scope.spawn(move || {
            third.take_turn();
            third
        });
        while !wants(2) {
            std::thread::yield_now();
        }
        let next = scope.spawn(move || {
            second.take_turn();
            second
        });
        while !wants(1) {
            std::thread::yield_now();
        }
        std::thread::sleep(A_WHILE);
        assert!(!install.is_finished() && !commit.is_finished() && !next.is_finished() && !last.is_finished());
        drop(first);
        let second = next.join().unwrap();
        install.join().unwrap();
        std::thread::sleep(A_WHILE);
        assert!(
            !last.is_finished() && !commit.is_finished(),
            "it is the second one's turn, which writes to one of the tables"
        );
        drop(second);
        let third = last.join().unwrap();
        assert!(turns.state.lock().turn == Some(2) && !commit.is_finished());
        drop(third);
        commit.join().unwrap();
    });
    assert_eq!(turns.entered.load(Ordering::Acquire), 0);
}
