//! What is kept of statements counts towards `memory_limit`, and is bounded.

use mainstem::{Connection, Database, OpenOptions};

use crate::support::rows;

/// With one share of plans: a 64th of it, 1 MiB.
const MEMORY_LIMIT: u64 = 64 << 20;

fn database(memory_limit: u64) -> (Database, Connection) {
    let database = Database::in_memory_with(OpenOptions::new().memory_limit(memory_limit).background(false)).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER, s TEXT)").unwrap();
    connection.execute("INSERT INTO t SELECT x, x % 7, 'text ' || x FROM generate_series(1, 100) AS g (x)").unwrap();
    (database, connection)
}

/// Bytes of plans, and their share.
fn plans(database: &Database) -> (u64, u64) {
    let all = database.storage().memory();
    let plans = all.iter().find(|status| status.kind.name() == "plans").unwrap();
    (plans.bytes, plans.limit)
}

/// A text like no other that is short, and one that is planned and kept.
fn texts(number: u32) -> [String; 2] {
    [
        format!("SELECT n AS n{number} FROM t WHERE k = $1"),
        format!("SELECT n + {number} AS x, count(*) FROM t WHERE n <> $1 GROUP BY n ORDER BY count(*) DESC, 1"),
    ]
}

/// A text that comes once is kept with its tree and its short statement: some 5 kB here (64 bytes for each of 40 bytes
/// of text, and 2 kB); one that is planned with some 30 kB (40 expressions of 400 bytes, 8 nodes of 2 kB). So 1 MiB
/// holds some 200 or 35 of them. What comes in when there is no room is kept, and the next one makes room: hence one
/// statement beyond the share.
#[test]
fn thousands_of_texts_take_no_more_than_the_share() {
    const ONE: u64 = 64 << 10;
    let (database, connection) = database(MEMORY_LIMIT);
    let other = database.connect().unwrap();
    assert_eq!(plans(&database).1, MEMORY_LIMIT / 64);
    let mut most = 0;
    for number in 0..20_000 {
        let [short, planned] = texts(number);
        connection.query_row(&short, [1]).unwrap();
        if number % 100 == 0 {
            for connection in [&connection, &other] {
                (0..3).for_each(|_| assert_eq!(connection.query_with(&planned, [1]).unwrap().count(), 6));
            }
        }
        let (bytes, share) = plans(&database);
        assert!(bytes <= share + ONE, "{bytes} of {share} at {number}");
        most = most.max(bytes);
    }
    assert!(most > MEMORY_LIMIT / 64 / 2, "most is kept of what there is room for: {most}");
    let kept = rows(&connection, "SELECT count(*) > 0, count(*) < 1000, min(bytes) > 1000 FROM mainstem.plans");
    assert_eq!(kept, ["true|true|true"]);
    // What was kept goes with whoever kept it.
    let held = connection.prepare(&texts(20_001)[0]).unwrap();
    drop((held, other));
    connection.execute("DROP TABLE t").unwrap();
    drop(connection);
    let last = database.connect().unwrap();
    (0..2).for_each(|_| drop(rows(&last, "SELECT 1")));
    drop(last);
    assert!(plans(&database).0 < 128 << 10, "{:?}", plans(&database));
}

/// With room for all of them it is their number that is bounded: two generations of 1,024 texts.
#[test]
fn thousands_of_texts_are_at_most_two_generations() {
    let (database, connection) = database(8 << 30);
    for number in 0..5_000 {
        connection.query_row(&texts(number)[0], [1]).unwrap();
        if number % 500 == 0 {
            let count: u64 = connection.query_row("SELECT count(*) FROM mainstem.plans", ()).unwrap().get(0).unwrap();
            assert!(count <= 2 * 1_024, "{count} at {number}");
        }
    }
    let (bytes, share) = plans(&database);
    assert!(bytes < share, "{bytes} of {share}");
    let all = rows(&connection, "SELECT count(*) > 1024, sum(bytes) FROM mainstem.plans");
    let (is_most, counted) = all[0].split_once('|').unwrap();
    assert_eq!(is_most, "true");
    // The connection has 512 of them itself, most of which are the same.
    assert!(counted.parse::<u64>().unwrap() <= bytes, "{counted} of {bytes}");
}

/// Statements that a program holds are counted for as long as it does, and stay usable when all else is forgotten.
#[test]
fn prepared_statements_are_counted_while_they_are_held() {
    let (database, connection) = database(MEMORY_LIMIT);
    let before = plans(&database).0;
    let held: Vec<_> = (0..400).map(|number| connection.prepare(&texts(number)[0]).unwrap()).collect();
    let (bytes, share) = plans(&database);
    assert!(bytes > share && bytes - before >= 400 * 2_048, "{bytes} of {share}");
    for statement in &held {
        assert_eq!(statement.query_row([3]).unwrap().get::<i32>(0).unwrap(), 3);
    }
    for _ in 0..3 {
        assert_eq!(connection.query_with(&texts(1)[1], [1]).unwrap().count(), 6);
    }
    drop(held);
    (0..2).for_each(|number| drop(connection.query_row(&texts(number)[0], [1]).unwrap()));
    assert!(plans(&database).0 < share, "{:?}", plans(&database));
}
