//! The rows of functions of one value: numbers, texts, dates and times, and what a session knows of itself.

use datafusion_expr::Volatility::{Stable, Volatile};

use super::Fails::{Divisor, Never, Overflow, Value};
use super::Function;
use super::Kernel::{Adapted, DataFusion, OfStatement, Own};
use crate::function::{coalesce, datetime, float, pg_typeof, session, string, to_char, uuid};
use crate::operator;

/// Functions of one chapter.
pub(super) struct Group {
    /// Its heading.
    pub(super) title: &'static str,
    pub(super) functions: &'static [Function],
}

/// The chapters of the page, in its order, but for those of arrays, aggregates and windows.
pub(super) const GROUPS: &[Group] = &[
    Group { title: "Numbers", functions: NUMBERS },
    Group { title: "Texts and bytes", functions: TEXTS },
    Group { title: "Patterns", functions: PATTERNS },
    Group { title: "Dates and times", functions: DATETIMES },
    Group { title: "Conditions", functions: CONDITIONS },
    Group { title: "Sessions", functions: SESSIONS },
];

const NUMBERS: &[Function] = &[
    Function::new(&["abs"], "(number) -> its type", Overflow, DataFusion),
    Function::new(&["acos"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["acosh"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["asin"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["asinh"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["atan"], "(double) -> double", Never, Adapted(float::checked)),
    Function::new(&["atan2"], "(double, double) -> double", Never, Adapted(float::checked)),
    Function::new(&["atanh"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["cbrt"], "(double) -> double", Never, Adapted(float::checked)),
    Function::new(&["ceil", "ceiling"], "(number) -> its type", Overflow, Adapted(float::checked)),
    Function::new(&["cos"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["cosh"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["cot"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["degrees"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["div"], "(number, number) -> numeric, the whole quotient", Divisor(1), Own(operator::div)),
    Function::new(&["exp"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["factorial"], "(bigint) -> bigint", Value, DataFusion),
    Function::new(&["floor"], "(number) -> its type", Overflow, Adapted(float::checked)),
    Function::new(&["gcd"], "(bigint, bigint) -> bigint", Overflow, DataFusion),
    Function::new(&["isnan"], "(double) -> boolean", Never, DataFusion),
    Function::new(&["lcm"], "(bigint, bigint) -> bigint", Overflow, DataFusion),
    Function::new(&["ln"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["log"], "([base double,] double) -> double", Value, Adapted(float::checked)),
    Function::new(&["log10"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["log2"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["pi"], "() -> double", Never, DataFusion),
    Function::new(&["power", "pow"], "(number, number) -> its type", Value, Adapted(float::checked)),
    Function::new(&["radians"], "(double) -> double", Never, Adapted(float::checked)),
    Function::new(&["random", "rand"], "() -> double, from 0 to 1", Never, DataFusion).volatility(Volatile),
    Function::new(&["round"], "(number [, digits integer]) -> its type", Overflow, Adapted(float::checked))
        .literals(&[1]),
    Function::new(&["signum", "sign"], "(double) -> double", Never, Adapted(float::checked)),
    Function::new(&["sin"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["sinh"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["sqrt"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["tan"], "(double) -> double", Value, Adapted(float::checked)),
    Function::new(&["tanh"], "(double) -> double", Never, Adapted(float::checked)),
    Function::new(&["to_hex"], "(bigint) -> text", Never, DataFusion),
    Function::new(&["trunc"], "(number [, digits integer]) -> its type", Overflow, Adapted(float::truncation))
        .literals(&[1]),
];

const TEXTS: &[Function] = &[
    Function::new(&["ascii"], "(text) -> integer", Never, DataFusion),
    Function::new(&["bit_length"], "(text or bytea) -> integer", Never, Adapted(string::lengths)),
    Function::new(&["btrim", "trim"], "(text [, characters text]) -> text", Never, DataFusion),
    Function::new(
        &["character_length", "length", "char_length"],
        "(text or bytea) -> integer",
        Never,
        Adapted(string::lengths),
    ),
    Function::new(&["chr"], "(integer) -> text", Value, DataFusion),
    Function::new(&["concat"], "(any, ...) -> text", Never, DataFusion),
    Function::new(&["concat_ws"], "(separator text, any, ...) -> text", Never, DataFusion),
    Function::new(&["contains"], "(text, part text) -> boolean", Never, DataFusion),
    Function::new(&["decode"], "(text, format text) -> bytea", Value, DataFusion).literals(&[1]),
    Function::new(&["digest"], "(text, algorithm text) -> bytea", Value, DataFusion).literals(&[1]),
    Function::new(&["encode"], "(bytea, format text) -> text", Value, DataFusion).literals(&[1]),
    Function::new(&["ends_with"], "(text, end text) -> boolean", Never, DataFusion),
    Function::new(&["gen_random_uuid", "uuid"], "() -> uuid", Never, Adapted(uuid::random_uuid)).volatility(Volatile),
    Function::new(&["initcap"], "(text) -> text", Never, DataFusion),
    Function::new(&["left"], "(text, count integer) -> text", Never, DataFusion),
    Function::new(&["levenshtein"], "(text, text) -> integer", Never, DataFusion),
    Function::new(&["lower"], "(text) -> text", Never, DataFusion),
    Function::new(&["lpad"], "(text, length integer [, fill text]) -> text", Value, Adapted(string::bounded)),
    Function::new(&["ltrim"], "(text [, characters text]) -> text", Never, DataFusion),
    Function::new(&["md5"], "(text) -> text", Never, DataFusion),
    Function::new(&["octet_length"], "(text or bytea) -> integer", Never, Adapted(string::lengths)),
    Function::new(&["overlay"], "(text, new text, start integer [, count integer]) -> text", Value, DataFusion),
    Function::new(&["quote_ident"], "(text) -> text", Never, Own(string::quoted)),
    Function::new(&["quote_literal"], "(any) -> text", Never, Own(string::quoted)),
    Function::new(&["quote_nullable"], "(any) -> text", Never, Own(string::quoted)),
    Function::new(&["repeat"], "(text, count integer) -> text", Value, Adapted(string::bounded)),
    Function::new(&["replace"], "(text, from text, to text) -> text", Never, DataFusion),
    Function::new(&["reverse"], "(text) -> text", Never, DataFusion),
    Function::new(&["right"], "(text, count integer) -> text", Never, DataFusion),
    Function::new(&["rpad"], "(text, length integer [, fill text]) -> text", Value, Adapted(string::bounded)),
    Function::new(&["rtrim"], "(text [, characters text]) -> text", Never, DataFusion),
    Function::new(&["sha224"], "(bytea) -> bytea", Never, DataFusion),
    Function::new(&["sha256"], "(bytea) -> bytea", Never, DataFusion),
    Function::new(&["sha384"], "(bytea) -> bytea", Never, DataFusion),
    Function::new(&["sha512"], "(bytea) -> bytea", Never, DataFusion),
    Function::new(&["split_part"], "(text, delimiter text, n integer) -> text", Value, DataFusion),
    Function::new(&["starts_with"], "(text, start text) -> boolean", Never, DataFusion),
    Function::new(&["strpos", "instr", "position"], "(text, part text) -> integer", Never, DataFusion),
    Function::new(&["substr", "substring"], "(text, start integer [, count integer]) -> text", Value, DataFusion),
    Function::new(&["translate"], "(text, from text, to text) -> text", Never, DataFusion),
    Function::new(&["upper"], "(text) -> text", Never, DataFusion),
];

const PATTERNS: &[Function] = &[
    Function::new(&["like_escape"], "(pattern text, escape text) -> text", Value, Own(string::quoted)),
    Function::new(
        &["regexp_count"],
        "(text, pattern text [, start integer [, flags text]]) -> integer",
        Value,
        DataFusion,
    ),
    Function::new(&["regexp_instr"], "(text, pattern text [, start integer, ...]) -> integer", Value, DataFusion),
    Function::new(&["regexp_like"], "(text, pattern text [, flags text]) -> boolean", Value, DataFusion),
    Function::new(&["regexp_match"], "(text, pattern text [, flags text]) -> text[]", Value, DataFusion),
    Function::new(&["regexp_replace"], "(text, pattern text, new text [, flags text]) -> text", Value, DataFusion),
    Function::new(&["similar_to_escape"], "(pattern text [, escape text]) -> text", Value, Own(string::quoted)),
];

const DATETIMES: &[Function] = &[
    Function::new(&["age"], "(timestamp [, timestamp]) -> interval", Overflow, Own(datetime::of_calendar)),
    Function::new(&["clock_timestamp"], "() -> timestamptz", Never, Own(datetime::of_calendar)).volatility(Volatile),
    Function::new(&["current_date", "today"], "() -> date", Never, DataFusion).volatility(Stable),
    Function::new(
        &["date_bin"],
        "(interval, timestamp [, origin timestamp]) -> timestamp",
        Value,
        Own(|_| datetime::date_bin()),
    ),
    Function::new(
        &["date_part"],
        "(field text, date, time, timestamp or interval) -> double",
        Value,
        Own(|_| datetime::date_part()),
    )
    .literals(&[0]),
    Function::new(
        &["date_trunc"],
        "(field text, timestamp or interval) -> its type",
        Value,
        Own(|_| datetime::date_trunc()),
    )
    .literals(&[0]),
    Function::new(
        &["make_date"],
        "(year integer, month integer, day integer) -> date",
        Value,
        Own(datetime::of_calendar),
    ),
    Function::new(
        &["make_time"],
        "(hour integer, minute integer, second double) -> time",
        Value,
        Own(datetime::of_calendar),
    ),
    Function::new(
        &["make_timestamp"],
        "(year, month, day, hour, minute integer, second double) -> timestamp",
        Value,
        Own(datetime::of_calendar),
    ),
    Function::new(
        &["make_timestamptz"],
        "(year, month, day, hour, minute integer, second double) -> timestamptz",
        Value,
        Own(datetime::of_calendar),
    ),
    Function::new(&["isfinite"], "(date, timestamp or interval) -> boolean", Never, Own(datetime::of_calendar)),
    Function::new(&["localtime", "current_time"], "() -> time", Never, Own(datetime::beginning)).volatility(Stable),
    Function::new(&["localtimestamp"], "() -> timestamp", Never, Own(datetime::beginning)).volatility(Stable),
    Function::new(
        &["now", "current_timestamp", "statement_timestamp", "transaction_timestamp"],
        "() -> timestamptz",
        Never,
        Own(datetime::beginning),
    )
    .volatility(Stable),
    Function::new(
        &["timezone"],
        "(zone text or interval, timestamp or timestamptz) -> the other",
        Value,
        Own(datetime::timezone),
    ),
    Function::new(&["to_char"], "(date or timestamp, pattern text) -> text", Value, Own(to_char::to_char)),
    Function::new(&["to_date"], "(text, pattern text) -> date", Value, Own(to_char::reads)),
    Function::new(
        &["to_timestamp"],
        "(text, pattern text) or (seconds double) -> timestamptz",
        Value,
        Own(to_char::reads),
    ),
];

const CONDITIONS: &[Function] = &[
    Function::new(&["coalesce"], "(any, ...) -> their type", Never, Adapted(coalesce::coalesce)),
    Function::new(&["greatest"], "(any, ...) -> their type", Never, DataFusion),
    Function::new(&["least"], "(any, ...) -> their type", Never, DataFusion),
    Function::new(&["nullif"], "(any, any) -> the type of the first", Never, DataFusion),
    Function::new(&["nvl", "ifnull"], "(any, any) -> their type", Never, DataFusion),
];

const SESSIONS: &[Function] = &[
    Function::new(&["current_catalog"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["current_database"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["current_role"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["current_schema"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["current_schemas"], "(implicit boolean) -> text[]", Never, Own(session::of_session))
        .volatility(Stable),
    Function::new(&["current_setting"], "(name text [, missing boolean]) -> text", Value, Own(session::setting))
        .volatility(Stable)
        .literals(&[0, 1]),
    Function::new(&["current_user"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["pg_sleep"], "(seconds double) -> text, when they are over", Value, OfStatement)
        .volatility(Volatile),
    Function::new(&["pg_typeof"], "(any) -> text", Never, Own(pg_typeof::pg_typeof)).volatility(Stable).literals(&[0]),
    Function::new(&["session_user"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["user"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
    Function::new(&["version"], "() -> text", Never, Own(session::of_session)).volatility(Stable),
];
