//! Connections to a database of ours, threads that work on one each, and copies of its folder.

use std::path::Path;
use std::sync::Barrier;

use mainstem::{Connection, Database};

use crate::experiment::Failure;

/// A connection whose transactions are as durable as `synchronous` says.
pub(crate) fn connect(database: &Database, synchronous: &str) -> Result<Connection, Failure> {
    let connection = database.connect()?;
    connection.execute(&format!("SET synchronous = {synchronous}"))?;
    Ok(connection)
}

/// What `threads` threads give that work at once, in their order: each on a connection of its own, with its number.
/// They begin when all are connected.
pub(crate) fn together<T: Send>(
    threads: u64,
    connect: impl Fn() -> Result<Connection, Failure> + Sync,
    work: impl Fn(&Connection, u64) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let ready = Barrier::new(threads as usize);
    let thread = |number: u64| {
        let connection = connect();
        // Whatever became of it: the others wait here.
        ready.wait();
        work(&connection?, number)
    };
    let thread = &thread;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || thread(number))).collect();
        let ended = running.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Wrong("a thread that ran statements panicked".into())))
        });
        // All of them end before the first failure is told.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Copies the folder `from` of a database that is not open, with all that is in it, to `to`.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &copy)?,
            false => std::fs::copy(entry.path(), copy).map(drop)?,
        }
    }
    Ok(())
}
