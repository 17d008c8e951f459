//! Queries of `slt/` with parameters in the places of their literals: a kept plan answers as one that is made for the
//! values.

use std::sync::atomic::{AtomicUsize, Ordering};

use mainstem::{Connection, Decimal, ToValue};
use sqllogictest::{DefaultColumnType, Record};

use super::stage::{names_in, slt_folder};
use super::support::quiet;

/// A literal of a text.
#[derive(Debug)]
enum Literal {
    Whole(i64),
    Decimal(Decimal),
    Text(String),
}

impl Literal {
    fn value(&self) -> &dyn ToValue {
        match self {
            Self::Whole(value) => value,
            Self::Decimal(value) => value,
            Self::Text(value) => value,
        }
    }
}

/// Which literals become parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Taken {
    Numbers,
    Texts,
    All,
    /// The one at this place.
    Only(usize),
}

/// `sql` with parameters in the places of literals, and those; literals of a type, and what is part of a word or a
/// quoted name, stay.
fn with_parameters(sql: &str, taken: Taken) -> (String, Vec<Literal>) {
    let bytes = sql.as_bytes();
    let (mut text, mut literals, mut at, mut seen) = (String::new(), Vec::new(), 0, 0);
    while at < bytes.len() {
        let start = at;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        let end_of = |from: usize, fits: &dyn Fn(u8) -> bool| {
            bytes[from..].iter().position(|byte| !fits(*byte)).map_or(bytes.len(), |length| from + length)
        };
        let literal = match bytes[at] {
            quote @ (b'\'' | b'"') => {
                let end = bytes[at + 1..].iter().position(|byte| *byte == quote);
                at = end.map_or(bytes.len(), |length| at + length + 2);
                // Two quotes in one another, and literals of a type.
                let before = sql[..start].trim_end().chars().next_back().unwrap_or(' ');
                let is_plain = quote == b'\'' && bytes.get(at) != Some(&b'\'') && !before.is_alphabetic();
                (is_plain && at > start + 1).then(|| Literal::Text(sql[start + 1..at - 1].to_owned()))
            }
            b'0'..=b'9' => {
                at = end_of(at, &|byte| is_word(byte) || byte == b'.');
                let number = &sql[start..at];
                let whole = number.parse().ok().map(Literal::Whole);
                whole.or_else(|| number.parse().ok().map(Literal::Decimal))
            }
            byte if is_word(byte) => {
                at = end_of(at, &is_word);
                None
            }
            _ => {
                at = end_of(at, &|byte| !is_word(byte) && byte != b'\'' && byte != b'"');
                None
            }
        };
        let is_text = matches!(literal, Some(Literal::Text(_)));
        seen += usize::from(literal.is_some());
        let is_taken = match taken {
            Taken::Numbers => !is_text,
            Taken::Texts => is_text,
            Taken::All => true,
            Taken::Only(place) => seen == place + 1,
        };
        match literal.filter(|_| is_taken) {
            Some(literal) => {
                literals.push(literal);
                text.push_str(&format!("${}", literals.len()));
            }
            None => text.push_str(&sql[start..at]),
        }
    }
    (text, literals)
}

/// The rows of `sql` with `values`, sorted, or the SQLSTATE of its error.
fn answer(connection: &Connection, sql: &str, values: &[Literal]) -> Result<Vec<String>, String> {
    let values: Vec<&dyn ToValue> = values.iter().map(Literal::value).collect();
    let rows = connection.query_with(sql, values).map_err(|e| e.sqlstate().to_owned())?;
    let shown = rows.map(|row| row.map(|row| format!("{:?}", row.values())).map_err(|e| e.sqlstate().to_owned()));
    let mut shown = shown.collect::<Result<Vec<_>, _>>()?;
    shown.sort();
    Ok(shown)
}

/// What came of comparing.
#[derive(Default)]
struct Compared {
    runs: usize,
    kept: usize,
    wrong: Vec<String>,
}

/// Whether `sql` gives the same rows each time.
fn is_query(sql: &str) -> bool {
    let starts = ["select", "with", "values", "("].iter().any(|word| sql.to_ascii_lowercase().starts_with(word));
    starts && !["$", "random", "clock_timestamp"].iter().any(|word| sql.contains(word))
}

fn compare(file: &str, all: &[Taken], compared: &mut Compared) {
    let script = std::fs::read_to_string(slt_folder().join(format!("{file}.slt"))).unwrap();
    let (of_values, of_kept) = (quiet(), quiet());
    let (of_values, of_kept) = (of_values.connect().unwrap(), of_kept.connect().unwrap());
    for (connection, mode) in [(&of_values, "force_custom_plan"), (&of_kept, "force_generic_plan")] {
        connection.execute_batch(&format!("SET plan_cache_mode = {mode}; SET point_path = off")).unwrap();
    }
    for record in sqllogictest::parser::parse_with_name::<DefaultColumnType>(&script, file).unwrap() {
        match record {
            Record::Statement { sql, .. } if !sql.contains("__TEST_DIR__") => {
                for connection in [&of_values, &of_kept] {
                    let _ = connection.execute(&sql);
                }
            }
            Record::Query { sql, loc, .. } if is_query(&sql) => {
                for taken in all {
                    let (text, literals) = with_parameters(&sql, *taken);
                    if literals.is_empty() {
                        continue;
                    }
                    let expected = answer(&of_values, &text, &literals);
                    let before = of_kept.kept_plan_runs();
                    let found = answer(&of_kept, &text, &literals);
                    compared.runs += 1;
                    compared.kept += usize::from(of_kept.kept_plan_runs() > before);
                    if found != expected {
                        let what = format!("{loc}: {text} of {literals:?}: {found:?}, not {expected:?}");
                        compared.wrong.push(what);
                    }
                }
            }
            _ => {}
        }
    }
}

/// All literals at once, or also some of them and each alone if `MAINSTEM_SLT_LITERALS` is set.
#[test]
fn kept_plans_answer_as_plans_of_the_values() {
    let mut all = vec![Taken::All];
    if std::env::var_os("MAINSTEM_SLT_LITERALS").is_some() {
        all.extend([Taken::Numbers, Taken::Texts]);
        all.extend((0..12).map(Taken::Only));
    }
    let files = names_in(&slt_folder(), "slt");
    let (next, all) = (AtomicUsize::new(0), all.as_slice());
    let work = || {
        let mut compared = Compared::default();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            compare(file, all, &mut compared);
        }
        compared
    };
    let parts = std::thread::scope(|scope| [scope.spawn(work), scope.spawn(work)].map(|part| part.join().unwrap()));
    let wrong: Vec<&str> = parts.iter().flat_map(|part| part.wrong.iter().map(String::as_str)).collect();
    let (runs, kept) = parts.iter().fold((0, 0), |sums, part| (sums.0 + part.runs, sums.1 + part.kept));
    assert!(wrong.is_empty(), "{} of {runs}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(kept * 3 > runs, "{kept} of {runs} runs were by kept plans");
}
