//! Rates of the CSV kernels by one thread: `cargo run --release -p mainstem-kernels --example csv`. Rows are like the
//! numbers, dates and texts of TPC-H's line items.

use std::hint::black_box;
use std::time::Instant;

use mainstem_kernels::csv::{
    Fields, Marks, Quoting, dates, decimals, find_separators, integers, scalar, summarise, texts,
};

const COLUMNS: usize = 8;
const ROUNDS: usize = 15;

fn main() {
    let mut text = String::new();
    for row in 0..8_000u64 {
        let mixed = mainstem_kernels::hash::hash_u64(row);
        let (year, month, day) = (1992 + mixed % 7, 1 + mixed / 7 % 12, 1 + mixed / 84 % 28);
        let (part, cents, digit) = (mixed % 200_000, mixed % 10_000_000, mixed % 10);
        let date = format!("{year}-{month:02}-{day:02}");
        let price = format!("{}.{:02}", cents / 100, cents % 100);
        text +=
            &format!("{row},{part},{digit},{price},0.0{digit},{date},TRUCK,\"furiously regular, final deposits\"\n");
    }
    let bytes = text.as_bytes();
    let marks = Marks { delimiter: b',', quote: b'"' };
    let rate = |name: &str, work: &mut dyn FnMut()| {
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            (0..20).for_each(|_| work());
            best = best.min(begun.elapsed().as_secs_f64() / 20.0);
        }
        println!("{name:<34} {:6.2} GB/s", bytes.len() as f64 / best / 1e9);
    };
    let mut ends = Vec::with_capacity(bytes.len());
    rate("quotes and line feeds", &mut || {
        black_box(summarise(bytes, b'"'));
    });
    rate("separators", &mut || {
        ends.clear();
        find_separators(black_box(bytes), marks, false, &mut ends);
    });
    let mut slow = Vec::with_capacity(bytes.len());
    rate("separators, scalar", &mut || {
        slow.clear();
        scalar::find_separators(black_box(bytes), marks, false, &mut slow);
    });
    let quoting = Quoting { quote: b'"', null: b"" };
    let fields = |column| Fields::new(bytes, &ends, 0, (COLUMNS, column), false);
    rate("three columns of integers", &mut || {
        for column in 0..3 {
            let (mut values, mut nulls) = (Vec::<i64>::new(), Vec::new());
            assert!(integers(fields(column), quoting, &mut values, &mut nulls));
            black_box(values);
        }
    });
    rate("two columns of decimals", &mut || {
        for column in 3..5 {
            let (mut values, mut nulls) = (Vec::<i64>::new(), Vec::new());
            assert!(decimals(fields(column), quoting, (15, 2), &mut values, &mut nulls));
            black_box(values);
        }
    });
    rate("a column of dates", &mut || {
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        assert!(dates(fields(5), quoting, &mut values, &mut nulls));
        black_box(values);
    });
    rate("a column of texts of one byte", &mut || {
        let (mut heap, mut ends, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
        assert!(texts(fields(2), quoting, true, &mut heap, &mut ends, &mut nulls));
        black_box(heap);
    });
    rate("two columns of texts", &mut || {
        for column in 6..8 {
            let (mut heap, mut ends, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
            assert!(texts(fields(column), quoting, true, &mut heap, &mut ends, &mut nulls));
            black_box(heap);
        }
    });
}
