//! The same calls as futures: no thread of the program's runtime is blocked.
//!
//! `cargo run -p mainstem --example asynchronous`

use std::time::Duration;

use mainstem::{Database, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let database = Database::in_memory()?;
    let connection = database.connect_async()?;
    connection.execute("CREATE TABLE visit (page TEXT, visitor BIGINT)").await?;

    // Many tasks, each with a connection of its own.
    let mut tasks = Vec::new();
    for visitor in 0..10_i64 {
        let connection = database.connect_async()?;
        tasks.push(tokio::spawn(async move {
            let insert = connection.prepare("INSERT INTO visit VALUES ($1, $2)").await?;
            for page in ["/", "/about", "/shop"] {
                insert.execute((page, visitor)).await?;
            }
            Ok::<(), mainstem::Error>(())
        }));
    }
    for task in tasks {
        task.await.map_err(|e| mainstem::Error::internal(e.to_string()))??;
    }

    // Rows are awaited as they come.
    let mut rows =
        connection.query_with("SELECT page, count(*) AS n FROM visit GROUP BY page ORDER BY page", ()).await?;
    let mut pages = Vec::new();
    while let Some(row) = rows.next_row().await? {
        pages.push((row.get::<String>("page")?, row.get::<i64>("n")?));
    }
    assert_eq!(pages, [("/".to_string(), 10), ("/about".to_string(), 10), ("/shop".to_string(), 10)]);

    // A transaction that is dropped is rolled back before anything else runs.
    let transaction = connection.transaction().await?;
    transaction.execute("DELETE FROM visit").await?;
    drop(transaction);

    // A future that is dropped cancels its statement: here, because a time limit ran out.
    let endless =
        "SELECT count(*) FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y)
                   WHERE x * 7 % 1000003 < y * 11 % 1000033";
    assert!(tokio::time::timeout(Duration::from_millis(50), connection.execute(endless)).await.is_err());
    let row = connection.query_row("SELECT count(*) FROM visit", ()).await?;
    assert_eq!(row.get::<i64>(0)?, 30);
    Ok(())
}
