//! Runs `slt/*.slt` under every configuration of `slt/configs/`: a query's answer never depends on where a row lives.
//!
//! A failing test names every record that fails, by file and line. One file: `cargo t slt::joins`; one configuration:
//! `cargo t many_runs`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sqllogictest::{DB, DBOutput, DefaultColumnType, Normalizer, Record, Runner, StatementExpect};

use super::stage::{Answer, Config, Stage, names_in, placement_matrix, slt_folder};

/// An error as the records name it: SQLSTATE first.
#[derive(Debug)]
struct Failure(mainstem::Error);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.sqlstate(), self.0.message())
    }
}

impl std::error::Error for Failure {}

/// One session of a file.
struct Session {
    stage: Arc<Mutex<Stage>>,
    name: String,
}

impl DB for Session {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        Ok(match self.stage.lock().unwrap().run(&self.name, sql).map_err(Failure)? {
            Answer::Done(count) => DBOutput::StatementComplete(count),
            Answer::Rows(letters, rows) => {
                DBOutput::Rows { types: letters.into_iter().map(column_type).collect(), rows }
            }
        })
    }
}

fn column_type(letter: char) -> DefaultColumnType {
    match letter {
        'I' => DefaultColumnType::Integer,
        'R' => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

/// Whether numbers stand where numbers are expected. Which results are integers is an engine's own choice (sums, parts
/// of dates), and shows in the text where it matters: `1` or `1.0`.
#[expect(clippy::ptr_arg, reason = "the crate's signature")]
fn types_fit(actual: &Vec<DefaultColumnType>, expected: &Vec<DefaultColumnType>) -> bool {
    let is_text = |t: &DefaultColumnType| *t == DefaultColumnType::Text;
    actual.iter().map(is_text).eq(expected.iter().map(is_text))
}

/// Whether the rows, values joined by one space, are the expected lines; runs of blanks count as one.
fn rows_are_equal(normalize: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let actual: Vec<String> = actual.iter().map(|row| normalize(&row.join(" "))).collect();
    actual.iter().eq(expected.iter().map(normalize).collect::<Vec<_>>().iter())
}

/// Runs the records of `script`; returns what fails.
fn run_script(script: &str, name: &str, config: &Config) -> Vec<String> {
    let records = match sqllogictest::parser::parse_with_name(script, name) {
        Ok(records) => records,
        Err(e) => return vec![e.to_string()],
    };
    let stage = Arc::new(Mutex::new(Stage::new(config)));
    let folder = stage.lock().unwrap().file_folder();
    let next = AtomicUsize::new(0);
    let mut runner = Runner::new(|| {
        let name = format!("session {}", next.fetch_add(1, Ordering::Relaxed));
        let stage = stage.clone();
        async move { Ok(Session { stage, name }) }
    });
    runner.add_label(&config.name);
    runner.with_column_validator(types_fit);
    runner.with_validator(rows_are_equal);
    let mut failures = Vec::new();
    for mut record in records {
        let mut line = None;
        match &mut record {
            Record::Statement { sql, expected, loc, .. } => {
                line = Some(loc.line());
                if !matches!(expected, StatementExpect::Error(_)) {
                    *sql = config.create_table(sql);
                }
                *sql = in_folder(sql, &folder);
            }
            Record::Query { sql, .. } => *sql = in_folder(sql, &folder),
            _ => {}
        }
        if let Err(e) = runner.run(record) {
            failures.push(e.to_string());
        }
        if let Some(line) = line
            && let Err(e) = stage.lock().unwrap().after_statement()
        {
            failures.push(format!("{e:?}\nat {name}:{line}"));
        }
    }
    failures
}

fn in_folder(sql: &str, folder: &Path) -> String {
    sql.replace("__TEST_DIR__", folder.to_str().unwrap())
}

/// Whether the first comment of `script` lets it run under configuration `config`.
fn runs_under(script: &str, config: &str) -> bool {
    let mut head = script.lines().take_while(|line| line.starts_with('#'));
    head.all(|line| match line.strip_prefix("# only-configs ").and_then(|rest| rest.split_once(':')) {
        Some((configs, _)) => configs.split(',').any(|name| name.trim() == config),
        None => !line.starts_with(&format!("# skip-config {config}:")),
    })
}

fn run_file(file: &str, config: &str) {
    let config = Config::named(config);
    let name = format!("{file}.slt");
    let script = std::fs::read_to_string(slt_folder().join(&name)).unwrap();
    if !runs_under(&script, &config.name) {
        return;
    }
    let failures = run_script(&script, &name, &config);
    assert!(failures.is_empty(), "{} records of {name} fail:\n\n{}", failures.len(), failures.join("\n"));
}

/// The files of `slt/random/`, or of the folder that `MAINSTEM_SLT_RANDOM` names, under every configuration, or those
/// that `MAINSTEM_SLT_CONFIGS` lists with commas between.
#[test]
fn random_files() {
    let folder = std::env::var_os("MAINSTEM_SLT_RANDOM").map_or_else(|| slt_folder().join("random"), PathBuf::from);
    let configs = std::env::var("MAINSTEM_SLT_CONFIGS").map_or_else(
        |_| names_in(&slt_folder().join("configs"), "json"),
        |list| list.split(',').map(str::to_owned).collect(),
    );
    let configs: Vec<Config> = configs.iter().map(|name| Config::named(name)).collect();
    let files = names_in(&folder, "slt");
    assert!(!files.is_empty(), "no file in {}", folder.display());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = format!("{file}.slt");
                    let script = std::fs::read_to_string(folder.join(&name)).unwrap();
                    for config in &configs {
                        let found = run_script(&script, &name, config);
                        let found = found.into_iter().map(|failure| format!("{}: {failure}", config.name));
                        failures.lock().unwrap().extend(found);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} records fail:\n\n{}", failures.len(), failures.join("\n"));
}

/// The runner notices what is wrong: each of these records fails.
#[test]
fn wrong_answers_are_noticed() {
    let script = "\
statement ok
CREATE TABLE t (a INTEGER, b TEXT) ORDER BY (a)

statement count 3
INSERT INTO t VALUES (1, 'x'), (2, 'y')

statement ok
SELECT nothing FROM t

statement error 23505
INSERT INTO nowhere VALUES (1)

statement error 23505
DELETE FROM t WHERE a = 2

query IT
SELECT a, b FROM t
----
1 y

query I
SELECT a, b FROM t
----
1 x

query TT
SELECT a, b FROM t
----
1 x

connection other
query I
SELECT count(*) FROM t
----
2

query error 42703
SELECT a FROM t
";
    for config in names_in(&slt_folder().join("configs"), "json") {
        let failures = run_script(script, "wrong.slt", &Config::named(&config));
        let lines: Vec<&str> = failures.iter().map(|f| f.rsplit(':').next().unwrap().trim()).collect();
        assert_eq!(lines, ["4", "7", "10", "13", "16", "21", "26", "32", "37"], "{config}: {failures:#?}");
    }
}

/// Files about expressions run under the configurations that they name, which are there; all others under all.
#[test]
fn files_name_their_configurations() {
    let configs = names_in(&slt_folder().join("configs"), "json");
    let (mut all, mut some) = (0, 0);
    for file in names_in(&slt_folder(), "slt") {
        let script = std::fs::read_to_string(slt_folder().join(format!("{file}.slt"))).unwrap();
        match configs.iter().filter(|config| runs_under(&script, config)).count() {
            0 => panic!("{file} runs under no configuration"),
            count if count + 1 >= configs.len() => all += 1,
            _ => some += 1,
        }
        let named = script.lines().filter_map(|line| line.strip_prefix("# only-configs ")?.split_once(':'));
        for name in named.flat_map(|(configs, _)| configs.split(',')) {
            assert!(configs.iter().any(|config| config == name.trim()), "{file} names {name}");
        }
    }
    assert!(all > 10 && some > 10, "{all} files run everywhere, {some} do not");
}

#[test]
fn create_table_is_changed_as_the_configuration_says() {
    let (insertion, sorted) = (Config::named("insertion_layout"), Config::named("sorted_layout"));
    for (sql, as_insertion, as_sorted) in [
        ("CREATE TABLE t (a INTEGER)", "CREATE TABLE t (a INTEGER)", "CREATE TABLE t (a INTEGER) ORDER BY (a)"),
        (
            "CREATE TABLE t (\"a b\" DECIMAL(3, 1), b TEXT) ORDER BY (b, \"a b\") WITH (segment_rows = 5)",
            "CREATE TABLE t (\"a b\" DECIMAL(3, 1), b TEXT)  WITH (segment_rows = 5)",
            "CREATE TABLE t (\"a b\" DECIMAL(3, 1), b TEXT) ORDER BY (b, \"a b\") WITH (segment_rows = 5)",
        ),
        (
            "CREATE TABLE t (\"a b\" INTEGER) WITH (segment_rows = 5)",
            "CREATE TABLE t (\"a b\" INTEGER) WITH (segment_rows = 5)",
            "CREATE TABLE t (\"a b\" INTEGER) ORDER BY (\"a b\") WITH (segment_rows = 5)",
        ),
    ] {
        assert_eq!(insertion.create_table(sql), as_insertion);
        assert_eq!(sorted.create_table(sql), as_sorted);
    }
    for sql in [
        "CREATE TABLE t (a INTEGER PRIMARY KEY) ORDER BY (a)",
        "CREATE TABLE t (a INTEGER) WITH (layout = 'insertion')",
        "INSERT INTO t VALUES (1)",
    ] {
        assert_eq!(insertion.create_table(sql), sql);
        assert_eq!(sorted.create_table(sql), sql);
    }
}

placement_matrix!(
    run_file,
    slt_folder(),
    "slt",
    [
        aggregates,
        aggregates_of_one_row,
        alter,
        arrays,
        assigned_values,
        casts_in_comparisons,
        checks,
        copy,
        copy_keys,
        correlated,
        correlated_guards,
        create_as,
        create_drop,
        date_parts,
        datetimes,
        decorrelated_subqueries,
        defaults,
        delete,
        derived_properties,
        distinct_on,
        errors,
        everyday,
        everyday_filters,
        exponents,
        expressions,
        extensions,
        files,
        filters_with_bounds,
        floats,
        for_update,
        functions,
        functions_more,
        grouping_sets,
        guards,
        identity,
        in_lists,
        information_schema,
        insert,
        intervals,
        joins,
        joins_using,
        key_order,
        keys,
        lag_lead,
        merge_joins,
        metadata_aggregates,
        names,
        not_in_nested,
        nulls,
        numbers,
        offsets,
        outer_items,
        output_names,
        predicates,
        prepared_nulls,
        prepared_statistics,
        ranges_of_keys,
        reals,
        recursive,
        refused,
        returning,
        rewrites,
        rows,
        same_names,
        savepoints,
        schemas,
        search_path,
        set_operations,
        sort_key,
        sorted_unions,
        subqueries,
        subqueries_without_from,
        sums_beside_distinct,
        system_tables,
        temporary,
        time_precision,
        to_date,
        transactions,
        types,
        types_bytea,
        types_char,
        types_time,
        types_uuid,
        unique,
        unique_upsert,
        unrepeatable_rows,
        update,
        update_from,
        upsert,
        views,
        windows,
    ]
);
