use super::*;

fn definition(primary_key: &[&str], sort_key: Option<&[&str]>, layout: Option<Layout>) -> TableDefinition {
    let own = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    TableDefinition {
        primary_key: own(primary_key),
        sort_key: sort_key.map(own),
        layout,
        ..TableDefinition::new("t", ["a", "b"].map(|name| ColumnDefinition::new(name, DataType::BigInt, true)).to_vec())
    }
}

#[test]
fn a_key_makes_its_columns_not_null_and_sorts_the_table() {
    let schema = definition(&["b", "a"], None, None).into_schema(TableId(7)).unwrap();
    assert_eq!(schema.sort_key, vec![ColumnId(1), ColumnId(0)]);
    assert_eq!(schema.layout, Layout::Sorted);
    assert!(schema.columns.iter().all(|c| !c.nullable));
}

#[test]
fn without_a_key_rows_stay_in_arrival_order() {
    let schema = definition(&[], None, None).into_schema(TableId(7)).unwrap();
    assert_eq!(schema.layout, Layout::Insertion);
    assert!(schema.columns.iter().all(|c| c.nullable));
}

#[test]
fn a_key_need_not_be_the_order() {
    let table = |sort_key, layout| definition(&["a"], sort_key, layout).into_schema(TableId(7)).unwrap();
    let by_b = table(Some(&["b"][..]), None);
    assert_eq!((by_b.primary_key.clone(), by_b.sort_key.clone()), (vec![ColumnId(0)], vec![ColumnId(1)]));
    assert_eq!(by_b.layout, Layout::Sorted);
    assert!(!by_b.columns[0].nullable && by_b.columns[1].nullable);
    let arrival = table(None, Some(Layout::Insertion));
    assert_eq!((arrival.sort_key.clone(), arrival.layout), (vec![], Layout::Insertion));
    let keys = |schema: &TableSchema| (schema.ordered_key(), schema.indexed_keys().collect::<Vec<_>>());
    let primary = KeyId::PRIMARY;
    assert_eq!((keys(&by_b), keys(&arrival)), ((None, vec![primary]), (None, vec![primary])));
    let by_key = [table(None, None), table(Some(&["a"][..]), None)];
    assert!(by_key.iter().all(|schema| keys(schema) == (Some(primary), vec![])));
}

#[test]
fn bad_definitions_are_refused_with_their_sqlstate() {
    let state = |d: TableDefinition| d.into_schema(TableId(1)).unwrap_err().sqlstate();
    assert_eq!(state(definition(&["c"], None, None)), sqlstate::UNDEFINED_COLUMN);
    assert_eq!(state(definition(&["a", "a"], None, None)), sqlstate::DUPLICATE_COLUMN);
    assert_eq!(state(definition(&[], None, Some(Layout::Sorted))), sqlstate::INVALID_TABLE);
    assert_eq!(state(definition(&[], Some(&["a"]), Some(Layout::Insertion))), sqlstate::INVALID_TABLE);
    let mut twice = definition(&[], None, None);
    twice.columns[1].name = "a".into();
    assert_eq!(state(twice), sqlstate::DUPLICATE_COLUMN);
}

#[test]
fn old_versions_keep_their_tables() {
    let table = Arc::new(definition(&["a"], None, None).into_schema(TableId(1)).unwrap());
    let empty = Catalog::default();
    let one = empty.with_table(table.clone()).unwrap();
    let none = one.without_table(TableId(1)).unwrap();
    assert!(empty.table_named("t").is_none() && none.table_named("t").is_none());
    assert!(one.table_named("t").is_some());
    assert_eq!(one.with_table(table).unwrap_err().sqlstate(), sqlstate::DUPLICATE_TABLE);
    assert_eq!(none.without_table(TableId(1)).unwrap_err().sqlstate(), sqlstate::UNDEFINED_TABLE);
}
