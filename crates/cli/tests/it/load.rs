//! `mainstem load`.

use std::fs;
use std::path::Path;

use crate::program::{command, run, text};

fn query(database: &Path, sql: &str) -> String {
    run([text(database), "--format", "csv", "-c", sql]).ok()
}

#[test]
fn files_make_a_table_and_fill_it() {
    let dir = tempfile::tempdir().unwrap();
    let (database, one, two) = (dir.path().join("db"), dir.path().join("o'ne.csv"), dir.path().join("two.csv"));
    fs::write(&one, "Id;Name\n1;a\n2;b\n").unwrap();
    fs::write(&two, "Id;Name\n3.5;c\n").unwrap();
    let loaded = run(["load", text(&database), "t", text(&one), text(&two)]);
    assert_eq!((loaded.status, loaded.out.as_str()), (0, ""), "{loaded:?}");
    assert!(loaded.err.contains("delimiter ';'") && loaded.err.contains("3 rows into the new table t"), "{loaded:?}");
    assert_eq!(query(&database, "SELECT * FROM t"), "id,name\n1.0,a\n2.0,b\n3.5,c\n");
    // Into a table that is there: its types, the columns that the header names.
    query(&database, "CREATE TABLE u (name TEXT, id TEXT, n INTEGER DEFAULT 7)");
    fs::write(&two, "id,name\n007,x\n").unwrap();
    let loaded = run(["load", text(&database), "public.u", text(&one), text(&two)]);
    assert!(loaded.status == 0 && loaded.err.contains("3 rows into public.u"), "{loaded:?}");
    assert_eq!(query(&database, "SELECT id, name, n FROM u ORDER BY name"), "id,name,n\n1,a,7\n2,b,7\n007,x,7\n");
    query(&database, &format!("COPY (SELECT 'p' AS id) TO '{}'", text(&dir.path().join("p.parquet"))));
    query(&database, "CREATE TABLE \"V w\" (id TEXT)");
    let loaded = run(["load", text(&database), "V w", text(&dir.path().join("p.parquet"))]);
    assert!(loaded.status == 0 && loaded.err.contains("1 rows into \"V w\""), "{loaded:?}");
}

/// All files are loaded, or none.
#[test]
fn a_load_that_fails_leaves_the_database_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (database, good, bad) = (dir.path().join("db"), dir.path().join("good.csv"), dir.path().join("bad.csv"));
    fs::write(&good, "k\n1\n2\n").unwrap();
    fs::write(&bad, "k\n3\nx\n").unwrap();
    query(&database, "CREATE TABLE t (k INTEGER)");
    let told = run(["load", text(&database), "t", text(&good), text(&bad)]).failed("22P02");
    assert!(told.contains("line 3"), "{told}");
    assert_eq!(query(&database, "SELECT count(*) AS n FROM t"), "n\n0\n");
    let missing = dir.path().join("missing.csv");
    assert!(run(["load", text(&database), "t", text(&missing)]).failed("58P01").contains("missing.csv"));
    assert!(run(["load", text(&database), "new", text(&good), text(&missing)]).failed("58P01").contains("missing.csv"));
    assert_eq!(query(&database, "SHOW TABLES"), "name\nt\n");
    assert_eq!(command().args(["load", text(&database), "t"]).output().unwrap().status.code(), Some(2));
}
