use super::*;

/// The wrong answers to `case` when SQLite's tables were changed by `sql`.
fn wrong_after(sql: &str, case: &str) -> Vec<String> {
    let plan = Plan::tiny();
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    for sql in tables::script(plan.users, tables::series) {
        connection.execute(&sql).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::load(plan.users, directory.path()).unwrap();
    sqlite.change(sql);
    let mut report = Report::new("plan", "tiny", None);
    let inputs = Inputs::new(plan.users);
    let (sqlite, report_of) = (Some(sqlite), &mut report);
    let mut bench = Bench { plan, connection: &connection, sqlite, peers: Peers::none(), inputs, report: report_of };
    let all = PARTS.iter().flat_map(|(_, cases)| cases.iter());
    bench.measure_or_note(*all.clone().find(|c| c.name == case).unwrap()).unwrap();
    report.wrong_answers().to_vec()
}

#[test]
fn other_rows_and_other_numbers_are_wrong_answers() {
    for (sql, case) in [
        ("UPDATE u SET n = n + 1", "key"),
        ("DELETE FROM o", "prefix, count"),
        ("DELETE FROM o WHERE n = 3", "prefix, UPDATE"),
        ("UPDATE s SET n = n + 1 WHERE g = 0", "group"),
        ("DELETE FROM s WHERE k % 2 = 0", "top, prepared"),
        ("DELETE FROM u", "first call"),
    ] {
        assert_eq!(wrong_after("SELECT 1", case), [""; 0], "{case}");
        let wrong = wrong_after(sql, case);
        assert!(wrong.len() == 1 && wrong[0].starts_with(case), "{sql}: {wrong:?}");
    }
}

#[test]
fn texts_have_literals_and_fresh_numbers() {
    let mut inputs = Inputs::new(10);
    let [filter, .., first] = cases::PLANNING else { panic!("no cases") };
    let (one, two) = (inputs.operation(*filter), inputs.operation(*filter));
    assert!(one.text != two.text && !one.text.contains(['@', '$']) && one.parameter.is_none(), "{one:?} {two:?}");
    let call = inputs.operation(*first);
    assert!(!call.text.contains('@') && call.text.ends_with("id = $1") && call.parameter == call.value, "{call:?}");
}
