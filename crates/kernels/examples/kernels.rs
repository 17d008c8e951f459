//! Nanoseconds a value, scalar twin against the twin that this processor gets.
//!
//! `cargo run --release -p mainstem-kernels --example kernels`

use mainstem_kernels::append_buffer::AppendBuffer;
use mainstem_kernels::filter::BlockedBloom;
use mainstem_kernels::hash::hash_u64;
use mainstem_kernels::{bitmap, bitpack, compare, filter, gather};
use std::hint::black_box;
use std::time::Instant;

const ROWS: usize = 8192;

/// The best of several runs, in nanoseconds per value.
fn time(values: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..15 {
        let started = Instant::now();
        for _ in 0..20 {
            work();
        }
        best = best.min(started.elapsed().as_nanos() as f64 / 20.0 / values as f64);
    }
    best
}

fn line(name: &str, scalar: f64, fast: f64) {
    println!("{name:<34} {scalar:>8.3} {fast:>8.3} {:>6.1}x", scalar / fast);
}

fn packed_kernels() {
    for width in [1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 16, 17, 20, 24, 25, 29, 32, 40, 48, 57, 60, 64] {
        let codes: Vec<u64> = (0..ROWS as u64).map(|i| hash_u64(i) >> (64 - width)).collect();
        let mut packed = Vec::new();
        bitpack::pack(&codes, width, &mut packed);
        let mut again = Vec::with_capacity(packed.len());
        let pack = time(ROWS, || {
            again.clear();
            bitpack::pack(black_box(&codes), width, &mut again);
        });
        line(&format!("pack {width}"), pack, pack);
        let mut wide = vec![0u64; ROWS];
        line(
            &format!("unpack_u64 {width}"),
            time(ROWS, || bitpack::scalar::unpack_u64(black_box(&packed), width, 0, &mut wide)),
            time(ROWS, || bitpack::unpack_u64(black_box(&packed), width, 0, &mut wide)),
        );
        if width <= 32 {
            let mut out = vec![0i32; ROWS];
            line(
                &format!("unpack_for_i32 {width}"),
                time(ROWS, || bitpack::scalar::unpack_for_i32(black_box(&packed), width, 0, 5, &mut out)),
                time(ROWS, || bitpack::unpack_for_i32(black_box(&packed), width, 0, 5, &mut out)),
            );
        }
        if width <= 16 {
            let mut out = vec![0u16; ROWS];
            line(
                &format!("unpack_u16 {width}"),
                time(ROWS, || bitpack::scalar::unpack_u16(black_box(&packed), width, 0, &mut out)),
                time(ROWS, || bitpack::unpack_u16(black_box(&packed), width, 0, &mut out)),
            );
        }
        let mut out = vec![0u64; bitmap::words(ROWS)];
        let largest = u64::MAX >> (64 - width);
        let (lo, hi) = (largest / 4 + 1, largest / 2 + 1);
        line(
            &format!("select_range {width}"),
            time(ROWS, || compare::scalar::select_range(black_box(&packed), width, 0, ROWS, lo, hi, &mut out)),
            time(ROWS, || compare::select_range(black_box(&packed), width, 0, ROWS, lo, hi, &mut out)),
        );
        if width <= 20 {
            let members: Vec<u64> = (0..bitmap::words(1 << width) as u64).map(hash_u64).collect();
            line(
                &format!("select_members {width}"),
                time(ROWS, || compare::scalar::select_members(&packed, width, 0, ROWS, &members, &mut out)),
                time(ROWS, || compare::select_members(&packed, width, 0, ROWS, &members, &mut out)),
            );
        }
        let indices: Vec<u32> = (0..ROWS as u32 / 4).map(|i| i * 4 + i % 3).collect();
        line(
            &format!("gather_packed {width}"),
            time(indices.len(), || {
                wide.clear();
                gather::scalar::gather_packed(black_box(&packed), width, &indices, &mut wide);
            }),
            time(indices.len(), || {
                wide.clear();
                gather::gather_packed(black_box(&packed), width, &indices, &mut wide);
            }),
        );
        wide.resize(ROWS, 0);
    }
}

fn plain_kernels() {
    let mut out = vec![0u64; bitmap::words(ROWS)];
    macro_rules! plain {
        ($t:ty, $lo:expr, $hi:expr) => {{
            let values: Vec<$t> = (0..ROWS as u64).map(|i| hash_u64(i) as $t).collect();
            line(
                concat!("select_range_plain ", stringify!($t)),
                time(ROWS, || compare::scalar::select_range_plain(black_box(&values), $lo, $hi, &mut out)),
                time(ROWS, || compare::select_range_plain(black_box(&values), $lo, $hi, &mut out)),
            );
        }};
    }
    plain!(i16, -100, 9000);
    plain!(i32, -100, 1 << 30);
    plain!(i64, -100, 1 << 62);
    plain!(i128, 100, 1 << 62);
    plain!(f32, 100.0, 1e18);
    plain!(f64, 100.0, 1e18);
}

fn selections() {
    let values: Vec<i64> = (0..ROWS as i64).collect();
    let narrow: Vec<i32> = (0..ROWS as i32).collect();
    for percent in [1, 10, 50, 90, 99, 100] {
        let mut bits = vec![0; bitmap::words(ROWS)];
        (0..ROWS).filter(|&i| hash_u64(i as u64) % 100 < percent).for_each(|i| bitmap::set(&mut bits, i));
        let mut rows = Vec::with_capacity(ROWS + 8);
        line(
            &format!("indices {percent} % (per row)"),
            time(ROWS, || {
                rows.clear();
                bitmap::scalar::indices(black_box(&bits), &mut rows);
            }),
            time(ROWS, || {
                rows.clear();
                bitmap::indices(black_box(&bits), &mut rows);
            }),
        );
        let mut out = Vec::with_capacity(ROWS + 8);
        line(
            &format!("filter i64 {percent} % (per row)"),
            time(ROWS, || {
                out.clear();
                gather::scalar::filter(black_box(&values), &bits, &mut out);
            }),
            time(ROWS, || {
                out.clear();
                gather::filter(black_box(&values), &bits, &mut out);
            }),
        );
        let mut out = Vec::with_capacity(ROWS + 8);
        line(
            &format!("filter i32 {percent} % (per row)"),
            time(ROWS, || {
                out.clear();
                gather::scalar::filter(black_box(&narrow), &bits, &mut out);
            }),
            time(ROWS, || {
                out.clear();
                gather::filter(black_box(&narrow), &bits, &mut out);
            }),
        );
    }
    let bits: Vec<u64> = (0..128).map(hash_u64).collect();
    line(
        "count_ones (per row)",
        time(ROWS, || {
            black_box(bitmap::scalar::count_ones(black_box(&bits)));
        }),
        time(ROWS, || {
            black_box(bitmap::count_ones(black_box(&bits)));
        }),
    );
    let rank = bitmap::Rank::new((0..1 << 14).map(hash_u64).collect::<Vec<_>>(), 1 << 20);
    let probes: Vec<usize> = (0..ROWS as u64).map(|i| hash_u64(i) as usize % (1 << 19)).collect();
    let ns = time(ROWS, || {
        black_box(probes.iter().map(|&at| rank.rank(at)).sum::<usize>());
    });
    line("rank", ns, ns);
    let ns = time(ROWS, || {
        black_box(probes.iter().map(|&at| rank.select(at).unwrap_or(0)).sum::<usize>());
    });
    line("select", ns, ns);
}

fn others() {
    let keys: Vec<u64> = (0..100_000).map(hash_u64).collect();
    let bloom = BlockedBloom::build(&keys, 12);
    let probes: Vec<u64> = (50_000..50_000 + ROWS as u64).map(|i| hash_u64(i * 3)).collect();
    let mut out = vec![0; bitmap::words(ROWS)];
    let bytes = bloom.to_le_bytes();
    let blocks: Vec<[u32; 8]> = mainstem_kernels::cast::from_le_bytes::<u32>(&bytes).as_chunks::<8>().0.to_vec();
    line(
        "may_contain_many",
        time(ROWS, || filter::scalar::may_contain_many(&blocks, &probes, &mut out)),
        time(ROWS, || bloom.may_contain_many(&probes, &mut out)),
    );
    let mut hits = 0;
    line(
        "may_contain",
        time(ROWS, || hits += probes.iter().filter(|&&p| filter::scalar::may_contain(&blocks, p)).count()),
        time(ROWS, || hits += probes.iter().filter(|&&p| bloom.may_contain(p)).count()),
    );
    black_box(hits);
    let push = time_appends(|buffer| {
        for value in 0..ROWS as u64 {
            black_box(buffer.push(value)).ok();
        }
    });
    let claimed = time_appends(|buffer| {
        let Some(mut writer) = buffer.writer() else { return };
        for value in 0..ROWS as u64 {
            black_box(writer.push(value)).ok();
        }
    });
    line("AppendBuffer push / claimed push", push, claimed);
}

/// The best of several runs on a fresh buffer each, in nanoseconds per value.
fn time_appends(work: impl Fn(&AppendBuffer<u64>)) -> f64 {
    (0..50).fold(f64::MAX, |best, _| {
        let buffer = AppendBuffer::with_capacity(ROWS);
        let started = Instant::now();
        work(&buffer);
        best.min(started.elapsed().as_nanos() as f64 / ROWS as f64)
    })
}

fn main() {
    println!("{:<34} {:>8} {:>8} {:>7}", "ns per value", "scalar", "fast", "ratio");
    packed_kernels();
    plain_kernels();
    selections();
    others();
}
