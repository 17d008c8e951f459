use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mainstem-bench")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(feature = "sql")]
#[test]
fn list_names_experiments_and_parts() {
    let output = bench(&["list"]);
    let listed = text(&output.stdout);
    assert!(output.status.success());
    for name in ["hybrid: ", "    select ", "    full ", "plan: ", "    planning ", "transactions: ", "    tpcc "] {
        assert!(listed.contains(name), "{name:?} in\n{listed}");
    }
}

#[test]
fn what_cannot_be_run_is_no_wrong_answer() {
    for (arguments, why) in [
        (&["run", "nonsense"][..], "no experiment is named \"nonsense\""),
        (&["run"][..], "required"),
        (&["run", "hybrid", "--quick", "--paper"][..], "cannot be used with"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(why), "{why} in\n{}", text(&output.stderr));
    }
}

#[cfg(feature = "sql")]
#[test]
fn parts_and_directories_have_to_be_there() {
    for (arguments, why) in [
        (&["run", "hybrid", "--part", "nonsense"][..], "no part is named \"nonsense\""),
        (&["run", "hybrid", "--quick", "--no-peers", "--directory", "no/such/folder"][..], "no/such/folder"),
        (&["run", "hybrid", "--json", "no/such/folder/file"][..], "No such file"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{why} in\n{}", text(&output.stderr));
    }
}
