//! Statements of the SQL logic tests with words taken out, doubled, swapped and exchanged: nothing a user types can
//! break the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mainstem::{Connection, ErrorKind};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sqllogictest::{DefaultColumnType, Record};

use super::stage::{names_in, slt_folder};
use super::support::{quiet, rows};

/// A longer campaign: `MAINSTEM_MANGLED_SEED=1 MAINSTEM_MANGLED_TRIES=5000 cargo t mangled`.
const SEED: u64 = 20_260_101;
/// Statements tried in each file's database.
const TRIES: u64 = 60;
/// A statement that takes longer is canceled: a join may have lost its condition.
const PATIENCE: Duration = Duration::from_millis(500);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The statements of a file, without those that touch files.
fn statements(file: &str) -> Vec<String> {
    let path = slt_folder().join(format!("{file}.slt"));
    sqllogictest::parse_file::<DefaultColumnType>(path)
        .unwrap()
        .into_iter()
        .filter_map(|record| match record {
            Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql),
            _ => None,
        })
        .filter(|sql| sql.len() < 2_000 && !sql.to_uppercase().contains("COPY"))
        .collect()
}

fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in sql.chars() {
        if c.is_alphanumeric() || c == '_' || c == '.' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        words.push(c.into());
    }
    words.push(word);
    words
}

/// `sql` with up to three changes; `other` lends words.
fn mangle(sql: &str, other: &str, rng: &mut StdRng) -> String {
    const ODD: &[&str] = &[
        "NULL",
        "''",
        "0",
        "-1",
        "9223372036854775807",
        "1e308",
        "'NaN'",
        "(",
        ")",
        ",",
        "'",
        "\"",
        ";",
        "*",
        "k",
        "DISTINCT",
        "NOT",
        "SELECT",
        "FROM",
        "OVER ()",
        "::DATE",
        "::TEXT",
        "::SMALLINT",
        "INTERVAL '1 month'",
        "\u{e9}",
        "--",
    ];
    let mut words = words(sql);
    let lent = self::words(other);
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(0..words.len());
        match rng.random_range(0..6) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at].clone()),
            2 => {
                let with = rng.random_range(0..words.len());
                words.swap(at, with);
            }
            3 => words[at] = lent.choose(rng).unwrap().clone(),
            4 => words[at] = (*ODD.choose(rng).unwrap()).into(),
            _ => words.insert(at, format!(" {} ", ODD.choose(rng).unwrap())),
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat()
}

/// Runs `sql`, interrupted when it takes long; the error if it is the engine's fault.
fn broken(connection: &Connection, sql: &str) -> Option<String> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            thread::park_timeout(PATIENCE);
            while !done.load(Ordering::Relaxed) {
                connection.interrupt_handle().interrupt();
                thread::park_timeout(Duration::from_millis(20));
            }
        });
        let outcome = connection.execute(sql);
        done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        match outcome {
            Err(e) if e.kind() == ErrorKind::Internal => Some(format!("{e:?}\n{sql}")),
            _ => None,
        }
    })
}

/// Runs the statements of `file` as they are, then mangled ones; returns what broke.
fn try_file(file: &str, seed: u64) -> Vec<String> {
    let statements = statements(file);
    let database = quiet();
    let connection = database.connect().unwrap();
    for sql in &statements {
        if !sql.to_uppercase().starts_with("DROP") {
            let _ = connection.execute(sql);
        }
    }
    let _ = connection.execute("ROLLBACK");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut found = Vec::new();
    for _ in 0..setting("MAINSTEM_MANGLED_TRIES", TRIES) {
        let (sql, other) = (statements.choose(&mut rng).unwrap(), statements.choose(&mut rng).unwrap());
        found.extend(broken(&connection, &mangle(sql, other, &mut rng)));
        let _ = connection.execute("ROLLBACK");
    }
    assert_eq!(rows(&connection, "SELECT 1"), ["1"]);
    found
}

#[test]
fn mangled_statements_never_break_the_engine() {
    let seed = setting("MAINSTEM_MANGLED_SEED", SEED);
    let found: Vec<String> = names_in(&slt_folder(), "slt").iter().flat_map(|file| try_file(file, seed)).collect();
    assert!(found.is_empty(), "{} internal errors, seed {seed}\n{}", found.len(), found.join("\n\n"));
}
