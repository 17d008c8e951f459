//! Namespaces and views.

use mainstem_storage::schema::{RelationName, View};

use super::*;

fn view(name: &str) -> View {
    View { name: RelationName::new("n", name), columns: vec!["a".into()], query: "SELECT 1".into() }
}

#[test]
fn namespaces_and_views_come_and_go_with_their_transaction() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(definition("t", true, 7), placement);
        let mut txn = stage.begin();
        txn.create_namespace("n").unwrap();
        assert_eq!(state(txn.create_namespace("n")), "42P06");
        assert_eq!(state(txn.create_namespace("public")), "42P06");
        txn.create_view(view("v")).unwrap();
        assert_eq!(state(txn.create_view(view("v"))), "42P07");
        let mark = txn.savepoint();
        txn.drop_view(&view("v").name).unwrap();
        assert_eq!(state(txn.drop_view(&view("v").name)), "42P01");
        txn.drop_namespace("n").unwrap();
        assert_eq!(state(txn.drop_namespace("n")), "3F000");
        txn.rollback_to(&mark).unwrap();
        let table = TableDefinition { name: RelationName::new("n", "t"), ..definition("t", true, 7) };
        let t = txn.create_table(table).unwrap();
        put(&mut txn, t, &[], &simple(0..3)).unwrap();
        assert_eq!(state(txn.drop_namespace("n")), "2BP01");
        assert!(!stage.begin().catalog().has_namespace("n"));
        txn.commit().unwrap();
        let first = std::mem::replace(&mut stage.t, t);
        for _ in 0..2 {
            stage.place();
            let catalog = stage.begin().catalog();
            assert_eq!(catalog.namespaces().collect::<Vec<_>>(), ["n"]);
            assert_eq!(catalog.view_called(&view("v").name).map(|found| (**found).clone()), Some(view("v")));
            assert_eq!(catalog.table_named("t").map(|table| table.id), Some(first));
            assert_eq!(catalog.table_called(&RelationName::new("n", "t")).map(|table| table.id), Some(t));
            assert_eq!(stage.rows(), expect(&simple(0..3)));
        }
        stage
            .commit(|txn| {
                txn.drop_view(&view("v").name)?;
                txn.drop_table(t)?;
                txn.drop_namespace("n")
            })
            .unwrap();
        stage.t = first;
        stage.place();
        let catalog = stage.begin().catalog();
        assert_eq!((catalog.namespaces().count(), catalog.views().count(), catalog.tables().count()), (0, 0, 1));
    }
}

#[test]
fn first_committer_wins_a_name_and_what_hangs_on_it() {
    let stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let t = stage.t;
    let begin = || stage.begin();
    // The same name twice.
    let (mut a, mut b) = (begin(), begin());
    a.create_namespace("n").unwrap();
    b.create_namespace("n").unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
    // Something is put where nothing is any more, and the other way round.
    let (mut a, mut b) = (begin(), begin());
    a.drop_namespace("n").unwrap();
    b.create_view(view("v")).unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
    stage.commit(|txn| txn.create_namespace("n")).unwrap();
    let (mut a, mut b) = (begin(), begin());
    a.create_view(view("v")).unwrap();
    b.drop_namespace("n").unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
    // A view is made of something that goes, and something goes that a view was made of.
    let (mut a, mut b, mut c) = (begin(), begin(), begin());
    a.create_view(view("w")).unwrap();
    b.drop_table(t).unwrap();
    c.drop_view(&view("v").name).unwrap();
    a.commit().unwrap();
    assert_eq!((state(b.commit()), state(c.commit())), ("40001", "40001"));
    let (mut a, mut b) = (begin(), begin());
    a.drop_table(t).unwrap();
    b.create_view(view("x")).unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
}

/// Whichever commits first: the other's catalog was made without it.
#[test]
fn schema_changes_of_others_stay() {
    let stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let (mut a, mut b, mut c) = (stage.begin(), stage.begin(), stage.begin());
    a.create_namespace("n").unwrap();
    let made = b.create_table(definition("u", true, 7)).unwrap();
    insert(&mut b, made, &rows(0..3)).unwrap();
    let public = View { name: RelationName::public("v"), ..view("v") };
    c.create_view(public.clone()).unwrap();
    c.create_namespace("m").unwrap();
    for txn in [a, b, c] {
        txn.commit().unwrap();
    }
    let (txn, db) = (stage.begin(), &stage.db);
    let catalog = txn.catalog();
    assert_eq!(catalog.namespaces().collect::<Vec<_>>(), ["m", "n"]);
    assert!(catalog.view_called(&public.name).is_some());
    assert_eq!(catalog.tables().map(|table| table.id).collect::<Vec<_>>(), [stage.t, made]);
    assert_eq!(contents(db, made).len(), 3);
    assert_eq!(db.verify().len(), 0);
}
