//! The 22 queries of TPC-H at scale factor 0.01 answer as an independent engine did (`slt/tpch/`), wherever the rows
//! are.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use mainstem::arrow::array::RecordBatch;
use mainstem::{Connection, Database, Encodings, OpenOptions};
use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use super::printing::printed;
use super::stage::slt_folder;
use super::support::quiet;

const SCALE: f64 = 0.01;
/// Small enough that a flush of the appender goes to the delta.
const BATCH_ROWS: usize = 1_000;

/// The rows of each table, once for all tests.
fn tables() -> &'static [(&'static str, Vec<RecordBatch>)] {
    static TABLES: OnceLock<Vec<(&str, Vec<RecordBatch>)>> = OnceLock::new();
    macro_rules! table {
        ($name:literal, $arrow:ident, $generator:ident) => {{
            let batches = $arrow::new($generator::new(SCALE, 1, 1)).with_batch_size(BATCH_ROWS);
            ($name, batches.map(Result::unwrap).collect())
        }};
    }
    TABLES.get_or_init(|| {
        vec![
            table!("region", RegionArrow, RegionGenerator),
            table!("nation", NationArrow, NationGenerator),
            table!("supplier", SupplierArrow, SupplierGenerator),
            table!("part", PartArrow, PartGenerator),
            table!("partsupp", PartSuppArrow, PartSuppGenerator),
            table!("customer", CustomerArrow, CustomerGenerator),
            table!("orders", OrderArrow, OrderGenerator),
            table!("lineitem", LineItemArrow, LineItemGenerator),
        ]
    })
}

/// Writes each table as a CSV file with a header.
fn write_csv(folder: &Path) {
    macro_rules! table {
        ($name:literal, $csv:ident, $generator:ident) => {{
            let mut text = format!("{}\n", $csv::header());
            for row in $generator::new(SCALE, 1, 1).iter() {
                text.push_str(&format!("{}\n", $csv::new(row)));
            }
            std::fs::write(folder.join(concat!($name, ".csv")), text).unwrap();
        }};
    }
    table!("region", RegionCsv, RegionGenerator);
    table!("nation", NationCsv, NationGenerator);
    table!("supplier", SupplierCsv, SupplierGenerator);
    table!("part", PartCsv, PartGenerator);
    table!("partsupp", PartSuppCsv, PartSuppGenerator);
    table!("customer", CustomerCsv, CustomerGenerator);
    table!("orders", OrderCsv, OrderGenerator);
    table!("lineitem", LineItemCsv, LineItemGenerator);
}

fn create(connection: &Connection) {
    connection.execute(&read("schema.sql")).unwrap();
}

fn read(file: &str) -> String {
    let path = slt_folder().join("tpch").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Inserts those batches of every table that `wanted` picks by number, each in a commit of its own.
fn append(connection: &Connection, wanted: impl Fn(usize) -> bool) {
    for (name, batches) in tables() {
        let mut appender = connection.appender(name).unwrap();
        for (_, batch) in batches.iter().enumerate().filter(|(number, _)| wanted(*number)) {
            appender.append_batch(batch).unwrap();
            assert_eq!(appender.flush().unwrap(), batch.num_rows() as u64);
        }
    }
}

/// The kinds of containers the rows are in.
fn kinds(database: &Database) -> Vec<&'static str> {
    let containers = database.storage().containers();
    let mut kinds: Vec<_> = containers.iter().filter(|c| c.rows > 0).map(|c| c.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn merge_all(database: &Database) {
    let look = database.storage().begin(mainstem_storage::transaction::TransactionMode::default()).unwrap();
    for table in look.catalog().tables() {
        database.storage().merge(table.id).unwrap();
    }
}

/// Runs queries `numbers` and compares their answers with the recorded ones.
fn check(connection: &Connection, numbers: impl IntoIterator<Item = usize>, when: &str) {
    let wrong: Vec<String> =
        numbers.into_iter().filter_map(|n| wrong(connection, n).map(|w| format!("Q{n} {when}: {w}"))).collect();
    assert!(wrong.is_empty(), "{} answers differ\n{}", wrong.len(), wrong.join("\n"));
}

/// What is wrong with the answer to query `number`.
fn wrong(connection: &Connection, number: usize) -> Option<String> {
    let expected = read(&format!("sf0.01/q{number:02}.tsv"));
    let mut lines = expected.lines();
    let columns: Vec<(&str, &str)> =
        lines.next().unwrap().split('\t').map(|column| column.rsplit_once(':').unwrap()).collect();
    let batches = match connection.query(&read(&format!("q{number:02}.sql"))).and_then(|rows| {
        let names: Vec<String> = rows.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names, columns.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "columns of Q{number}");
        rows.collect_batches()
    }) {
        Ok(batches) => batches,
        Err(e) => return Some(format!("{e:?}")),
    };
    let rows: Vec<Vec<String>> = batches.iter().flat_map(printed).collect();
    let expected: Vec<&str> = lines.collect();
    if rows.len() != expected.len() {
        return Some(format!("{} rows instead of {}", rows.len(), expected.len()));
    }
    for (row, line) in rows.iter().zip(expected) {
        let values: Vec<&str> = line.split('\t').collect();
        let equal = row.len() == values.len()
            && columns.iter().zip(row.iter().zip(values)).all(|((_, kind), (got, want))| same(kind, got, want));
        if !equal {
            return Some(format!("got {row:?}, expected {line}"));
        }
    }
    None
}

/// Whether a value equals the recorded one, as `slt/tpch/README.md` says for its kind.
fn same(kind: &str, got: &str, want: &str) -> bool {
    if got == want {
        return true;
    }
    match kind {
        "int" => got.strip_suffix(".0") == Some(want),
        "decimal" => digits(got) == digits(want),
        "double" => match (got.parse::<f64>(), want.parse::<f64>()) {
            (Ok(got), Ok(want)) => (got - want).abs() <= 1e-6 * want.abs().max(1.0),
            _ => false,
        },
        "date" | "text" => false,
        other => panic!("unknown kind {other}"),
    }
}

/// A number without zeros that do not count.
fn digits(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[test]
fn answers_are_compared_by_their_kind() {
    for (kind, got, want, equal) in [
        ("int", "1995", "1995", true),
        ("int", "1995.0", "1995", true),
        ("int", "1996", "1995", false),
        ("decimal", "1.50", "1.5000", true),
        ("decimal", "100", "1", false),
        ("decimal", "1.51", "1.5", false),
        ("double", "0.1000000001", "0.1", true),
        ("double", "0.10001", "0.1", false),
        ("double", "NULL", "0.1", false),
        ("date", "1995-03-15", "1995-03-16", false),
        ("text", "a", "b", false),
    ] {
        assert_eq!(same(kind, got, want), equal, "{kind} {got} {want}");
    }
}

#[test]
fn all_rows_in_deltas_then_in_segments() {
    let database = quiet();
    let connection = database.connect().unwrap();
    create(&connection);
    append(&connection, |_| true);
    assert_eq!(kinds(&database), ["delta"]);
    check(&connection, 1..=22, "in deltas");
    merge_all(&database);
    assert_eq!(kinds(&database), ["segment"]);
    check(&connection, 1..=22, "in segments");
}

#[test]
fn loaded_from_csv() {
    let files = tempfile::tempdir().unwrap();
    write_csv(files.path());
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    create(&connection);
    for (name, batches) in tables() {
        let file = files.path().join(format!("{name}.csv"));
        let copied = connection.execute(&format!("COPY {name} FROM '{}' (FORMAT csv, HEADER)", file.display()));
        assert_eq!(copied.unwrap(), batches.iter().map(|b| b.num_rows() as u64).sum::<u64>(), "{name}");
    }
    check(&connection, 1..=22, "loaded from CSV");
}

/// A writer changes rows all the time, in ways that change no answer; freezes and merges run beside it.
#[test]
fn while_rows_are_updated() {
    let options = OpenOptions::new().delta_rows(2_000).segment_rows(5_000);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    create(&connection);
    append(&connection, |_| true);
    connection.execute("CREATE TABLE notes (id BIGINT PRIMARY KEY, note TEXT)").unwrap();
    let kept =
        read("schema.sql").split_once("CREATE TABLE lineitem").map(|(_, rest)| format!("CREATE TABLE kept{rest}"));
    connection.execute(&kept.unwrap()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let writer = database.connect().unwrap();
            let mut round = 0_u64;
            let begun = Instant::now();
            // Until deltas are merged, however late the writer, or whoever merges, gets a core.
            let is_merged = || !database.storage().merges().is_empty() || begun.elapsed().as_secs() > 600;
            while !done.load(Ordering::Relaxed) || round < 3 || !is_merged() {
                write_round(&writer, round);
                round += 1;
            }
        });
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check(&connection, 1..=22, "beside a writer");
        }));
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(!database.storage().merges().is_empty());
    check(&connection, [1, 3, 5, 18], "after the writer");
}

/// Commits that change no answer: rows written as they are; line items that go and come back within a transaction, and
/// changes that are rolled back; another table.
fn write_round(writer: &Connection, round: u64) {
    let key = round * 97 % 59_000;
    let items = format!("l_orderkey BETWEEN {key} AND {}", key + 200);
    let run = |sql: &str| writer.execute(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    run(&format!("UPDATE lineitem SET l_comment = l_comment WHERE {items}"));
    run(&format!("UPDATE orders SET o_totalprice = o_totalprice WHERE o_orderkey % 500 = {}", key % 500));
    run(&format!("INSERT INTO notes VALUES ({round}, 'round {round}')"));
    run(&format!("DELETE FROM notes WHERE id < {}", round.saturating_sub(5)));
    run("BEGIN");
    run(&format!("INSERT INTO kept SELECT * FROM lineitem WHERE {items}"));
    run(&format!("DELETE FROM lineitem WHERE {items}"));
    run("INSERT INTO lineitem SELECT * FROM kept");
    run("DELETE FROM kept");
    run("COMMIT");
    run("BEGIN");
    run(&format!("UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0 WHERE {items}"));
    run(&format!("DELETE FROM orders WHERE o_orderkey < {key}"));
    run("ROLLBACK");
}

/// Half of the rows are loaded and merged, the database is closed, opened, and gets the other half, which stays in the
/// log; between the queries it is closed and opened again.
#[test]
fn with_restarts_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let options = OpenOptions::new().background(false);
        Database::open_with(folder.path().join("tpch"), options).unwrap()
    };
    let database = open();
    let connection = database.connect().unwrap();
    create(&connection);
    append(&connection, |number| number % 2 == 0);
    merge_all(&database);
    database.close().unwrap();

    let database = open();
    let connection = database.connect().unwrap();
    append(&connection, |number| number % 2 == 1);
    connection.execute("UPDATE lineitem SET l_comment = l_comment WHERE l_orderkey % 50 = 3").unwrap();
    assert_eq!(kinds(&database), ["delta", "segment"]);
    check(&connection, 1..=11, "before the restart");
    database.close().unwrap();

    let database = open();
    let connection = database.connect().unwrap();
    check(&connection, 12..=22, "after the restart");
    merge_all(&database);
    database.close().unwrap();

    let database = open();
    check(&database.connect().unwrap(), [1, 6, 13, 18, 21], "after merge and restart");
    assert_eq!(database.storage().verify().len(), 0);
}

/// Joins and limits tell their keys and bounds to every scan, of small segments with encodings that are chosen seldom;
/// a part of two tables was changed, so that deltas and deleted rows reach into all of their segments.
#[test]
fn with_filters_of_every_join_and_forced_encodings() {
    for encodings in [Encodings::Decoded, Encodings::DecodedDictionaries] {
        let mut options = OpenOptions::new().background(false).segment_rows(1_500);
        options.encodings = encodings;
        let database = Database::in_memory_with(options).unwrap();
        let connection = database.connect().unwrap();
        create(&connection);
        append(&connection, |_| true);
        merge_all(&database);
        connection.execute("UPDATE lineitem SET l_tax = l_tax WHERE l_orderkey % 50 = 3").unwrap();
        connection.execute("UPDATE orders SET o_clerk = o_clerk WHERE o_orderkey % 50 = 7").unwrap();
        connection.execute("SET dynamic_filter_min_rows = 1").unwrap();
        assert_eq!(kinds(&database), ["delta", "segment"]);
        check(&connection, 1..=22, "with filters of every join");
        connection.execute("SET dynamic_filter_min_rows = 1000000; SET merge_join_min_rows = 1").unwrap();
        check(&connection, [3, 4, 5, 9, 12, 18, 21], "with joins in the order of keys merged");
    }
}
