//! How long the optimum takes: `cargo run --release -p mainstem-layout --example solve`. One chunk of a million
//! blocks, then 10^9 values of eight bytes in chunks of a million, blocks of 4 KB, on all cores (figure 11 of the
//! paper).

#![allow(clippy::expect_used, reason = "an example")]

use std::time::Instant;

use mainstem_layout::{Limits, Terms, optimum};

fn terms(blocks: usize, seed: u64) -> Terms {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64
    };
    Terms {
        fixed: vec![0.0; blocks],
        backward: (0..blocks).map(|_| draw()).collect(),
        forward: (0..blocks).map(|_| draw()).collect(),
        partitions: (0..blocks).map(|_| draw() / blocks as f64 * 100.0).collect(),
    }
}

fn main() {
    let terms_of_all = terms(1_000_000, 1);
    for (what, limits) in [
        ("no limit", Limits::default()),
        ("partitions of at most 20 blocks", Limits { partition_blocks_max: Some(20), ..Limits::default() }),
        ("at most 10,000 partitions", Limits { partitions_max: Some(10_000), ..Limits::default() }),
    ] {
        let began = Instant::now();
        let found = optimum(&terms_of_all, &limits).expect("the limits can be kept");
        println!(
            "one chunk of 10^6 blocks, {what}: {:.2} s, {} partitions",
            began.elapsed().as_secs_f64(),
            found.partitioning.len()
        );
    }
    let chunks = 1_000_u64;
    let inputs: Vec<Terms> = (0..chunks).map(|chunk| terms(1_954, chunk)).collect();
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    let began = Instant::now();
    let partitions: usize = std::thread::scope(|scope| {
        let parts = inputs.chunks(inputs.len().div_ceil(cores));
        let running: Vec<_> = parts
            .map(|part| {
                scope.spawn(move || {
                    part.iter()
                        .map(|terms| optimum(terms, &Limits::default()).expect("there is no limit").partitioning.len())
                        .sum::<usize>()
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
    });
    println!(
        "10^9 values in {chunks} chunks on {cores} cores: {:.2} s, {partitions} partitions",
        began.elapsed().as_secs_f64()
    );
}
