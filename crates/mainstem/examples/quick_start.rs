//! The first ten minutes: a database in a directory, a table, rows in and out, a transaction, Arrow batches.
//!
//! `cargo run -p mainstem --example quick_start`

#![allow(clippy::unwrap_used, reason = "an example ends where it does not show what it is to show")]

use mainstem::{Database, Result};

fn main() -> Result<()> {
    // A directory of its own; it is made if it is not there. `Database::in_memory()` needs none.
    let directory = std::env::temp_dir().join(format!("mainstem-quick-start-{}", std::process::id()));
    let database = Database::open(&directory)?;
    let connection = database.connect()?;
    connection.execute_batch(
        "CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER NOT NULL, founded DATE);
         INSERT INTO city VALUES ('Ulm', 128928, '0854-07-22'), ('Jena', 111343, NULL)",
    )?;

    // One row, by position or name.
    let row = connection.query_row("SELECT people, founded FROM city WHERE name = $1", ["Jena"])?;
    assert_eq!(row.get::<i32>("people")?, 111_343);
    assert_eq!(row.get::<Option<mainstem::Date>>("founded")?, None);

    // Many rows, streamed.
    for row in connection.query("SELECT name, people FROM city ORDER BY people DESC")?.rows() {
        let row = row?;
        println!("{}: {} people", row.get::<&str>("name")?, row.get::<i32>("people")?);
    }

    // A transaction: all of it or nothing. Dropping the guard rolls it back.
    let transaction = connection.transaction()?;
    transaction.execute("UPDATE city SET people = people + 1 WHERE name = 'Ulm'")?;
    transaction.execute("DELETE FROM city WHERE name = 'Jena'")?;
    transaction.commit()?;

    // The same as Arrow batches, for analytics.
    let batches = connection.query("SELECT name, people FROM city")?.collect_batches()?;
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);

    // Errors carry a SQLSTATE and say what to do.
    let error = connection.execute("INSERT INTO city VALUES ('Ulm', 1, NULL)").unwrap_err();
    assert_eq!(error.sqlstate(), "23505");
    println!("refused: {error}");

    // What was committed is there when the database is opened again.
    drop(connection);
    database.close()?;
    drop(database);
    let connection = Database::open(&directory)?.connect()?;
    let people: i32 = connection.query_row("SELECT people FROM city WHERE name = 'Ulm'", ())?.get(0)?;
    assert_eq!(people, 128_929);
    drop(connection);
    std::fs::remove_dir_all(&directory).map_err(|e| mainstem::Error::io("remove", directory.display(), e))
}
