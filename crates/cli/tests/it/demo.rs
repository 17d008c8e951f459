//! `mainstem demo`, tiny.

use std::fs;

use crate::program::{run, text};

#[test]
fn a_tiny_demo_verifies_itself_and_leaves_a_sound_database() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("demo");
    let arguments = ["demo", text(&place), "--scale-factor", "0.001", "--seconds", "1", "--synchronous", "normal"];
    let said = run(arguments).ok();
    for part in ["8,595", "Q18", "commits", "time to reopen", "OK: equals what was loaded and committed"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let database = place.join("database");
    run(["check", text(&database)]).ok();
    let made =
        run([text(&database), "--read-only", "-c", "SELECT count(*) > 0 AS some FROM orders WHERE o_shippriority > 0"]);
    assert_eq!(made.ok(), "some\ntrue\n");
    // Again in the same place.
    assert!(run(arguments).ok().contains("OK: equals"));
}

#[test]
fn a_demo_without_a_place_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = crate::program::command();
    command
        .args(["demo", "--scale-factor", "0.001", "--seconds", "0.2", "--synchronous", "off"])
        .env("TMPDIR", dir.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn bad_arguments_and_foreign_directories_are_refused() {
    for arguments in [["--scale-factor", "0"], ["--scale-factor", "x"], ["--seconds", "-1"], ["--synchronous", "maybe"]]
    {
        assert_eq!(run(["demo"].into_iter().chain(arguments)).status, 2, "{arguments:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("letter.txt"), "Dear Sir").unwrap();
    run(["demo", text(dir.path())]).failed("58P02");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let file = dir.path().join("letter.txt");
    assert!(run(["demo", text(&file)]).failed("58P02").contains("is a file, not a directory"));
}
