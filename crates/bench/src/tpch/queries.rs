//! The queries: those of TPC-H, and shapes that it lacks, over `lineitem`.

/// A name and a text.
pub type Query = (&'static str, &'static str);

macro_rules! queries {
    ($($number:literal)*) => { [$((concat!("Q", $number), include_str!(concat!("../../../../slt/tpch/q", $number, ".sql")))),*] };
}

/// The queries, by name.
pub const TPCH: [Query; 22] = queries!("01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11" "12" "13" "14" "15" "16" "17" "18" "19" "20" "21" "22");
/// The tables.
pub const SCHEMA: &str = include_str!("../../../../slt/tpch/schema.sql");

/// Shapes of queries that TPC-H lacks. Each answers with a few numbers, so that no engine is timed handing over rows.
pub const SHAPES: [Query; 11] = [
    (
        "ORDER BY, LIMIT 10 OFFSET 3,000,000",
        "SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem \
         ORDER BY l_extendedprice, l_shipdate, l_comment, l_orderkey, l_linenumber \
         LIMIT 10 OFFSET 3000000",
    ),
    (
        "ORDER BY, LIMIT 1,000,000",
        "SELECT count(*), sum(l_extendedprice) FROM (SELECT l_extendedprice FROM lineitem \
         ORDER BY l_extendedprice, l_shipdate, l_comment LIMIT 1000000) s",
    ),
    (
        "ORDER BY, LIMIT 10,000",
        "SELECT count(*), sum(l_extendedprice) FROM (SELECT l_extendedprice FROM lineitem \
         ORDER BY l_extendedprice, l_shipdate, l_comment LIMIT 10000) s",
    ),
    (
        "ORDER BY, LIMIT 100",
        "SELECT count(*), sum(l_extendedprice) FROM (SELECT l_extendedprice FROM lineitem \
         ORDER BY l_extendedprice, l_shipdate, l_comment LIMIT 100) s",
    ),
    (
        "self-join on l_partkey, a hundredth of the orders",
        "SELECT count(*), sum(c) FROM (SELECT a.l_orderkey, count(*) AS c FROM lineitem a \
         JOIN lineitem b ON a.l_partkey = b.l_partkey WHERE a.l_orderkey % 100 = 1 GROUP BY a.l_orderkey) s",
    ),
    (
        "self-join on dates, a thousandth of the orders",
        "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_shipdate = b.l_receiptdate AND a.l_suppkey = b.l_suppkey \
         WHERE a.l_orderkey % 1000 = 1",
    ),
    ("count(DISTINCT)", "SELECT count(DISTINCT l_partkey), count(DISTINCT l_suppkey) FROM lineitem"),
    (
        "GROUP BY four columns, two thirds of the rows",
        "SELECT count(*), sum(q) FROM (SELECT l_partkey, l_suppkey, l_returnflag, l_shipmode, sum(l_quantity) AS q \
         FROM lineitem GROUP BY l_partkey, l_suppkey, l_returnflag, l_shipmode) s",
    ),
    (
        "GROUP BY the leading column of the key",
        "SELECT count(*), sum(q) FROM (SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey) s",
    ),
    (
        "row_number() by part and date",
        "SELECT count(*), sum(r) FROM \
         (SELECT row_number() OVER (PARTITION BY l_partkey ORDER BY l_shipdate) AS r FROM lineitem) s",
    ),
    ("text search", "SELECT count(*) FROM lineitem WHERE l_comment LIKE '%express%pack%'"),
];
