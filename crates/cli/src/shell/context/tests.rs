use super::{Named, Place, Wanted, place};

/// What is at the `^` of `marked`, and where the word there begins.
fn at(marked: &str) -> (Wanted, String) {
    let Place { wanted, start, .. } = place(&marked.replace('^', ""), marked.find('^').unwrap());
    let text = marked.replace('^', "");
    (wanted, text[start..marked.find('^').unwrap()].to_owned())
}

fn tables(marked: &str) -> Vec<String> {
    let Place { tables, .. } = place(&marked.replace('^', ""), marked.find('^').unwrap());
    let one = |Named { schema, name, alias }: Named| {
        format!("{}{name} {}", schema.map_or(String::new(), |s| s + "."), alias.unwrap_or_default()).trim().to_owned()
    };
    tables.into_iter().map(one).collect()
}

#[test]
fn a_word_is_told_by_what_stands_before_it() {
    let relation = |schema: Option<&str>| Wanted::Relation { schema: schema.map(str::to_owned) };
    let member = |of: &str| Wanted::Member { of: of.to_owned() };
    for (marked, wanted, typed) in [
        ("SEL^", Wanted::Any, "SEL"),
        ("SELECT na^ FROM t", Wanted::Any, "na"),
        ("SELECT (na^", Wanted::Any, "na"),
        ("SELECT a,na^", Wanted::Any, "na"),
        ("SELECT \"My c^", Wanted::Any, "\"My c"),
        ("SELECT * FROM ^", relation(None), ""),
        ("SELECT * FROM or^", relation(None), "or"),
        ("SELECT * FROM a JOIN or^", relation(None), "or"),
        ("SELECT * FROM a x, b AS y, or^", relation(None), "or"),
        ("SELECT a, b^", Wanted::Any, "b"),
        ("SELECT a FROM t ORDER BY a, b^", Wanted::Any, "b"),
        ("SELECT * FROM sales.or^", relation(Some("sales")), "or"),
        ("SELECT * FROM sales.^", relation(Some("sales")), ""),
        ("SELECT * FROM \"My S\".or^", relation(Some("My S")), "or"),
        ("INSERT INTO or^", relation(None), "or"),
        ("UPDATE or^", relation(None), "or"),
        ("DROP TABLE or^", relation(None), "or"),
        ("COPY or^", relation(None), "or"),
        ("SELECT t.na^ FROM t", member("t"), "na"),
        ("SELECT t.^ FROM t", member("t"), ""),
        ("SELECT a FROM t WHERE a IS DISTINCT FROM b^", Wanted::Any, "b"),
        ("SET th^", Wanted::Setting, "th"),
        ("SHOW ^", Wanted::Setting, ""),
        ("SET LOCAL th^", Wanted::Setting, "th"),
        ("SELECT 1; SET th^", Wanted::Setting, "th"),
        ("UPDATE t SET na^", Wanted::Any, "na"),
        ("\\t^", Wanted::Command, "\\t"),
        ("\\d or^", relation(None), "or"),
        ("\\d sales.or^", relation(Some("sales")), "or"),
        ("\\i da^", Wanted::File, "da"),
        ("\\o a b/c^", Wanted::File, "a b/c"),
        ("\\x o^", Wanted::Switch, "o"),
        ("\\q x^", Wanted::Nothing, ""),
    ] {
        assert_eq!(at(marked), (wanted, typed.to_owned()), "{marked}");
    }
}

#[test]
fn nothing_is_known_in_texts_comments_and_numbers() {
    for marked in [
        "^",
        "SELECT ^",
        "SELECT a,^",
        "SELECT 'na^",
        "SELECT 'it''s na^",
        "SELECT $$na^",
        "SELECT $a$ $$ na^",
        "SELECT 30^",
        "SELECT 3.5^",
        "SELECT a -- na^",
        "SELECT a /* na^",
        "SELECT * FROM\t^",
        "SELECT * FROM t\n^",
        "SELECT * FROM t ^",
    ] {
        assert_eq!(at(marked).0, Wanted::Nothing, "{marked}");
    }
}

#[test]
fn tables_are_found_around_the_cursor() {
    assert_eq!(tables("SELECT na^ FROM t"), ["t"]);
    assert_eq!(
        tables("SELECT na^ FROM t AS x, sales.\"Or ders\" y JOIN u ON x.a = y.b"),
        ["t x", "sales.Or ders y", "u"]
    );
    assert_eq!(tables("SELECT * FROM t WHERE na^; SELECT * FROM u"), ["t"]);
    assert_eq!(tables("SELECT * FROM u; SELECT na^ FROM t"), ["t"]);
    assert_eq!(tables("UPDATE t SET na^"), ["t"]);
    assert_eq!(tables("INSERT INTO t (na^"), ["t"]);
    assert_eq!(tables("SELECT 'FROM u', na^ FROM t LEFT JOIN v USING (a)"), ["t", "v"]);
    // A text that is still open behind the cursor hides what is in it.
    assert_eq!(tables("SELECT * FROM t WHERE na^ = '"), ["t"]);
}
