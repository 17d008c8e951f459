use super::*;

const SIZE: Size = Size { customers: 30, items: 100 };

/// What `work` makes of a loaded database, on which `sql` was run.
fn after<T>(sql: &str, work: impl FnOnce(&Session<'_>) -> T) -> T {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    let ours = Ours::new(&connection).unwrap();
    let side = Side::load(&ours, SIZE).unwrap();
    connection.execute(sql).unwrap();
    work(&side.session)
}

#[test]
fn broken_conditions_are_found() {
    for (sql, why) in [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1", "the warehouse has"),
        ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3", "district 3 has order 30, and 32"),
        ("DELETE FROM orders WHERE o_d_id = 4 AND o_id = 30", "district 4 has order 29, and 31"),
        ("DELETE FROM new_order WHERE no_d_id = 5 AND no_o_id = 30", "new ones up to 29"),
        ("DELETE FROM new_order WHERE no_d_id = 6 AND no_o_id = 25", "district 6 has 8 new orders from 22 to 30"),
    ] {
        let checked = after(sql, check::check);
        assert!(checked.as_ref().is_err_and(|e| e.to_string().contains(why)), "{sql}: {checked:?}");
    }
    assert_eq!(after("SELECT 1", check::check), Ok(()));
    assert_eq!(after("DELETE FROM new_order WHERE no_d_id = 7", check::check), Ok(()));
}

#[test]
fn another_number_in_one_engine_is_found() {
    let plan = Plan { size: SIZE, compared: 200, ..Plan::tiny() };
    let compared = |sql: &str| {
        let directory = tempfile::tempdir().unwrap();
        let file = sqlite::open(&directory.path().join("file")).unwrap();
        let sqlite = Sqlite::new(&file).unwrap();
        let theirs = Side::load(&sqlite, SIZE).unwrap();
        after(sql, |ours| compare(plan, ours, &theirs.session))
    };
    assert_eq!(compared("SELECT 1"), Ok(()));
    for sql in [
        "UPDATE item SET i_price = i_price + 1",
        "UPDATE customer SET c_balance = 0",
        "UPDATE stock SET s_quantity = 9",
        "DELETE FROM order_line WHERE ol_number = 5",
    ] {
        assert!(matches!(compared(sql), Err(Failure::Wrong(_))), "{sql}");
    }
}

#[test]
fn an_order_of_what_is_not_there_leaves_nothing_behind() {
    after("SELECT 1", |session| {
        let orders = |session: &Session<'_>| {
            (1..=10)
                .map(|d| session.one::<1>(schema::Query::OrdersLast, &engine::numbers([1, d])).unwrap()[0])
                .sum::<i64>()
        };
        let before = orders(session);
        let mut inputs = Inputs::new(SIZE, 1);
        let mut refused = std::iter::repeat_with(|| inputs.draw())
            .filter(|input| input.lines.iter().any(|line| line.item > SIZE.items));
        mix::run(session, &refused.next().unwrap()).unwrap();
        assert_eq!(orders(session), before);
        check::check(session).unwrap();
    });
}
