//! How a database is opened, and kinds of errors: both may grow.

use mainstem::{ErrorKind, OpenOptions, Synchronous};

use crate::support::quiet;

/// What a program does about an error. The last arm is no arm too many: the enum may grow.
#[deny(unreachable_patterns)]
fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Conflict => "run it again",
        ErrorKind::Full => "free some",
        ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::Closed | ErrorKind::Internal => "stop",
        ErrorKind::Invalid | ErrorKind::Constraint | ErrorKind::NotFound => "change it",
        _ => "show it",
    }
}

#[test]
fn kinds_of_errors_may_grow() {
    let connection = quiet().connect().unwrap();
    for (sql, expected) in [("SELECT * FROM nowhere", "change it"), ("SELECT 1 / 0", "change it")] {
        assert_eq!(advice(connection.execute(sql).unwrap_err().kind()), expected, "{sql}");
    }
    assert_eq!(advice(ErrorKind::Conflict), "run it again");
}

#[test]
fn each_option_is_set_by_its_name_and_no_other_with_it() {
    let default = OpenOptions::default();
    assert_eq!(OpenOptions::new(), default);
    let mut all = OpenOptions::new();
    macro_rules! set {
        ($($option:ident: $value:expr),* $(,)?) => {
            $(
                let alone = OpenOptions::new().$option($value);
                assert_ne!(alone, default, "{} has another value", stringify!($option));
                assert_eq!(alone.$option, $value);
                let mut back = alone;
                back.$option = default.$option;
                assert_eq!(back, default, "{} alone was set", stringify!($option));
                all = all.$option($value);
            )*
            $(assert_eq!(all.$option, $value, "{}", stringify!($option));)*
        };
    }
    set! {
        create: false,
        read_only: true,
        memory_limit: 7 << 20,
        synchronous: Synchronous::Off,
        background: false,
        segment_rows: 77,
        delta_rows: 78,
        checkpoint_bytes: 79,
        inline_delete_bytes: 80,
        inline_run_bytes: 81,
        log_tail_bytes_max: 82,
    }
}
