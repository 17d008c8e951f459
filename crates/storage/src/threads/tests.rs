use std::sync::Barrier;

use super::*;
use crate::error::Error;

#[test]
fn each_part_is_done_once_and_in_its_place() {
    for (threads, parts) in [(1, 5), (2, 0), (3, 1), (2, 2), (4, 100)] {
        let begun: Vec<_> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        let squares = in_parallel(threads, parts, |part| {
            begun[part].fetch_add(1, Ordering::Relaxed);
            Ok(part * part)
        });
        assert_eq!(squares.unwrap(), (0..parts).map(|part| part * part).collect::<Vec<_>>());
        assert!(begun.iter().all(|begun| begun.load(Ordering::Relaxed) == 1));
    }
}

#[test]
fn threads_work_at_once() {
    let all_there = Barrier::new(3);
    let wait = |_| {
        all_there.wait();
        Ok(())
    };
    in_parallel(3, 3, wait).unwrap();
    in_parallel_alone(3, 3, wait).unwrap();
}

/// Calls whose parts take long leave the threads that help to others.
#[test]
fn long_parts_keep_nobody_waiting() {
    let threads = 2 * cores().max(limits::LOAD_THREADS_MAX);
    let (begun, ended) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            in_parallel_alone(threads, threads, |part| {
                begun.wait();
                ended.wait();
                Ok(part)
            })
        });
        begun.wait();
        assert_eq!(in_parallel(3, 30, Ok).unwrap().len(), 30);
        ended.wait();
        assert_eq!(long.join().unwrap().unwrap().len(), threads);
    });
}

#[test]
fn the_first_error_is_told_and_ends_it() {
    let begun = AtomicUsize::new(0);
    let outcome = in_parallel(2, 1_000, |part| {
        begun.fetch_add(1, Ordering::Relaxed);
        if part >= 7 { Err(Error::internal(format!("part {part}"))) } else { Ok(part) }
    });
    assert!(outcome.unwrap_err().message().contains("part 7"));
    assert!(begun.load(Ordering::Relaxed) < 12);
}

#[test]
#[should_panic(expected = "of a part")]
fn a_panic_is_passed_on() {
    let both = Barrier::new(2);
    let _ = in_parallel(2, 2, |part| {
        both.wait();
        assert!(part == 0, "of a part");
        Ok(())
    });
}

#[test]
fn a_stream_is_taken_in_its_order_and_never_far_ahead() {
    for (threads, ahead) in [(1, 1), (2, 1), (2, 2), (3, 8)] {
        let (made, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let parts = (0..200_usize).map(|part| {
            made.fetch_add(1, Ordering::Relaxed);
            Ok(part)
        });
        let work = |part: usize| {
            // The first of each ten takes its time.
            if part.is_multiple_of(10) {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            Ok(part * 2)
        };
        in_order(threads, ahead, parts, work, |done| {
            assert_eq!(done, 2 * taken.fetch_add(1, Ordering::Relaxed));
            assert!(made.load(Ordering::Relaxed) - taken.load(Ordering::Relaxed) <= ahead);
            Ok(())
        })
        .unwrap();
        assert_eq!(taken.load(Ordering::Relaxed), 200);
    }
}

#[test]
fn an_error_of_a_stream_is_that_of_the_first_part() {
    let failing = |at: usize, part: usize| {
        if part >= at { Err(Error::internal(format!("part {part}"))) } else { Ok(part) }
    };
    for threads in [1, 3] {
        let mut taken = Vec::new();
        let outcome = in_order(
            threads,
            4,
            (0..50).map(Ok),
            |part| failing(7, part),
            |part| {
                taken.push(part);
                Ok(())
            },
        );
        assert!(outcome.unwrap_err().message().contains("part 7"));
        assert_eq!(taken, (0..7).collect::<Vec<_>>());
        let outcome = in_order(threads, 4, (0..50).map(|part| failing(9, part)), Ok, |_| Ok(()));
        assert!(outcome.unwrap_err().message().contains("part 9"));
        let outcome = in_order(threads, 4, (0..50).map(Ok), Ok, |part| failing(5, part).map(drop));
        assert!(outcome.unwrap_err().message().contains("part 5"));
    }
}

#[test]
#[should_panic]
fn a_panic_of_a_stream_is_passed_on() {
    let work = |part: usize| {
        assert!(part != 3, "part 3");
        Ok(part)
    };
    let _ = in_order(2, 2, (0..50).map(Ok), work, |_| Ok(()));
}
