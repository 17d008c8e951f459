//! Random operations on the engine and on the reference model, from one printed seed.
//!
//! `MAINSTEM_SIM_SEED` sets the first seed and `MAINSTEM_SIM_SECONDS` how long it goes on; seeds follow one another. A
//! failure prints its seed and a short list of operations that still fails, for which it looks
//! `MAINSTEM_SIM_SHRINK_SECONDS`.

use std::time::{Duration, Instant};

use mainstem_sim::model::{Cause, Flaw, Op, Seen, Settings, Shape, Weights, generate, run, shrink};
use rand::SeedableRng;
use rand::rngs::StdRng;

const FIRST_SEED: u64 = 1;
const SECONDS: u64 = 20;
const OPERATIONS: usize = 150;
/// Lists run at least, however slow the machine is; and so many while they have not met what they are to meet.
const LISTS_MIN: u64 = 24;
const LISTS_MAX: u64 = 400;

/// A number from the environment, or `default`.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn operations(seed: u64) -> (Vec<Op>, Settings) {
    let mut rng = StdRng::seed_from_u64(seed);
    let background = seed.is_multiple_of(3);
    let weights = match seed % 4 {
        0 => Weights { structural: 40, slots: 8, ..Weights::default() },
        1 => Weights { ddl: 12, ..Weights::default() },
        2 => Weights { bulky: 8, reopen: 6, ..Weights::default() },
        _ => Weights::default(),
    };
    let ops = generate(&mut rng, OPERATIONS, &Weights { background, ..weights });
    let default = Settings::default().inline_delete_bytes;
    let inline_delete_bytes = if seed.is_multiple_of(5) { 0 } else { default };
    let inline_run_bytes = if seed.is_multiple_of(3) { 0 } else { Settings::default().inline_run_bytes };
    (ops, Settings { background, inline_delete_bytes, inline_run_bytes, ..Settings::default() })
}

/// A transaction that was open while a merge was installed commits: its rows are found where they went.
#[test]
fn a_merge_does_not_make_an_open_transaction_fail() {
    let ops = [
        Op::Create { slot: 0, name: 1, shape: Shape::Floats, segment_rows: 1, delta_rows: 10 },
        Op::Insert { slot: 0, table: 2, rows: 6, flaw: Flaw::None, seed: 2_428_051_206_968_946_188 },
        Op::Commit { slot: 0 },
        Op::Update { slot: 0, table: 4, seed: 13_597_260_731_924_604_784 },
        Op::Flush { table: 2 },
        Op::Merge { table: 2 },
        Op::Commit { slot: 0 },
    ];
    run(&ops, Settings::default()).unwrap();
}

#[test]
fn random_operations_agree_with_the_model() {
    let (first, seconds) = (number("MAINSTEM_SIM_SEED", FIRST_SEED), number("MAINSTEM_SIM_SECONDS", SECONDS));
    println!("MAINSTEM_SIM_SEED={first}, {seconds} s");
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut seen) = (first, Seen::default());
    while Instant::now() < end || seed < first + LISTS_MIN || seed < first + LISTS_MAX && !has_met_all(&seen) {
        let (ops, settings) = operations(seed);
        match run(&ops, settings) {
            Ok(met) => seen.add(&met),
            Err(message) => report(seed, &ops, settings, &message),
        }
        seed += 1;
    }
    println!("{} lists of {OPERATIONS} operations: {seen:?}", seed - first);
    // What the lists never meet they do not show.
    assert!(has_met_all(&seen), "{seen:?}");
}

fn has_met_all(seen: &Seen) -> bool {
    let causes = [Cause::Table, Cause::Row, Cause::LockedRow, Cause::IndexedKey];
    let counts = [
        seen.beside_writers,
        seen.rollbacks,
        seen.duplicates,
        seen.indexed_duplicates,
        seen.indexed_rows,
        seen.upserted,
    ];
    causes.iter().all(|cause| seen.conflicts.contains_key(cause)) && counts.iter().all(|count| *count > 0)
}

/// Fails with a short list of operations that shows what is wrong.
fn report(seed: u64, ops: &[Op], settings: Settings, message: &str) -> ! {
    let limit = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_SHRINK_SECONDS", 60));
    let short = shrink(ops, limit, |ops| run(ops, settings).is_err());
    let list: Vec<String> = short.iter().map(|op| format!("    {op:?},")).collect();
    let again = run(&short, settings).err();
    let again = again.unwrap_or_else(|| "does not fail each time".into());
    panic!("MAINSTEM_SIM_SEED={seed}: {message}\nshort: {again}\n{settings:?}\n{}", list.join("\n"));
}
