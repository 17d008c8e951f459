//! The program against all partitionings of few blocks, and against the plain program of N^2 steps.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use mainstem_layout::{Limits, Partitioning, Terms, optimum};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn terms(random: &mut StdRng, blocks: usize) -> Terms {
    // Whole numbers, so that costs compare exactly; many zeros, so that ties are common.
    let span = [2, 10, 1_000][random.random_range(0..3)];
    let mut draw = |low: i32| {
        let value = random.random_range(low..span);
        f64::from(if random.random_bool(0.3) { 0 } else { value })
    };
    Terms {
        fixed: vec![1.0; blocks],
        backward: (0..blocks).map(|_| draw(0)).collect(),
        forward: (0..blocks).map(|_| draw(0)).collect(),
        partitions: (0..blocks).map(|_| draw(-span / 2)).collect(),
    }
}

fn limits(random: &mut StdRng, blocks: usize) -> Limits {
    let up_to = |random: &mut StdRng| random.random_bool(0.5).then(|| random.random_range(1..=blocks));
    let cuts = random.random_bool(0.3).then(|| (0..blocks).map(|_| random.random_bool(0.7)).collect());
    Limits { partition_blocks_max: up_to(random), partitions_max: up_to(random), cuts }
}

fn keeps(partitioning: &Partitioning, limits: &Limits, blocks: usize) -> bool {
    let may_end = |last: usize| last + 1 == blocks || limits.cuts.as_ref().is_none_or(|cuts| cuts[last]);
    partitioning.last_blocks().last() == Some(&(blocks - 1))
        && partitioning.len() <= limits.partitions_max.unwrap_or(usize::MAX)
        && partitioning.last_blocks().iter().all(|last| may_end(*last))
        && partitioning.ranges().all(|(first, last)| last - first < limits.partition_blocks_max.unwrap_or(usize::MAX))
}

/// The least cost over all partitionings.
fn by_brute_force(terms: &Terms, limits: &Limits) -> Option<f64> {
    let blocks = terms.len();
    let all = (0..1_usize << (blocks - 1)).map(|bits| {
        let inner = (0..blocks - 1).filter(|block| bits >> block & 1 == 1);
        Partitioning::new(inner.chain([blocks - 1]).collect()).unwrap()
    });
    let costs = all.filter(|one| keeps(one, limits, blocks)).map(|one| terms.cost(&one));
    costs.min_by(f64::total_cmp)
}

/// The least cost by the plain program, of each number of partitions if that is limited.
fn by_plain_program(terms: &Terms, limits: &Limits) -> Option<f64> {
    let blocks = terms.len();
    let layers = limits.partitions_max.unwrap_or(1).min(blocks);
    let size = limits.partition_blocks_max.unwrap_or(usize::MAX);
    let infinite = f64::INFINITY;
    let mut paying = vec![0.0; blocks + 1];
    for block in 0..blocks {
        paying[block + 1] = paying[block] + terms.partitions[block];
    }
    let mut before = vec![infinite; blocks + 1];
    before[0] = 0.0;
    let mut least = infinite;
    for _ in 0..layers {
        let mut best = vec![infinite; blocks + 1];
        if limits.partitions_max.is_none() {
            best[0] = 0.0;
        }
        for end in 1..=blocks {
            if end < blocks && limits.cuts.as_ref().is_some_and(|cuts| !cuts[end - 1]) {
                continue;
            }
            // Growing the partition by a block in front moves all later blocks.
            let (mut cost, mut backward, mut forward) = (0.0, 0.0, 0.0);
            for begin in (end.saturating_sub(size)..end).rev() {
                cost += backward;
                forward = (end - 1 - begin) as f64 * terms.forward[begin];
                cost += forward;
                backward += terms.backward[begin];
                let front = if limits.partitions_max.is_none() { best[begin] } else { before[begin] };
                best[end] = f64::min(best[end], front + cost + paying[end]);
            }
            let _ = forward;
        }
        least = f64::min(least, best[blocks]);
        before = best;
    }
    (least < infinite).then(|| least + terms.fixed.iter().sum::<f64>())
}

#[test]
fn no_partitioning_of_few_blocks_is_cheaper() {
    let mut random = StdRng::seed_from_u64(7);
    for round in 0..10_000 {
        let blocks = random.random_range(1..=11);
        let (terms, limits) = (terms(&mut random, blocks), limits(&mut random, blocks));
        match (optimum(&terms, &limits), by_brute_force(&terms, &limits)) {
            (Ok(found), Some(least)) => {
                assert!(keeps(&found.partitioning, &limits, blocks), "round {round}: {limits:?} {found:?}");
                assert_eq!(found.cost, least, "round {round}: {terms:?} {limits:?} {found:?}");
            }
            (Err(_), None) => {}
            (found, least) => panic!("round {round}: {limits:?} {found:?} {least:?}"),
        }
    }
}

#[test]
fn many_blocks_cost_what_the_plain_program_says() {
    let mut random = StdRng::seed_from_u64(11);
    for round in 0..60 {
        let blocks = random.random_range(100..=600);
        let (terms, mut limits) = (terms(&mut random, blocks), limits(&mut random, blocks));
        limits.partitions_max = limits.partitions_max.map(|most| most.min(40));
        match (optimum(&terms, &limits), by_plain_program(&terms, &limits)) {
            (Ok(found), Some(least)) => {
                assert!(keeps(&found.partitioning, &limits, blocks), "round {round}: {limits:?}");
                assert_eq!(found.cost, least, "round {round}: {limits:?}");
            }
            (Err(_), None) => {}
            (found, least) => panic!("round {round}: {limits:?} {found:?} {least:?}"),
        }
    }
}

#[test]
fn it_is_never_dearer_than_partitions_of_one_size() {
    let mut random = StdRng::seed_from_u64(13);
    for _ in 0..200 {
        let blocks = random.random_range(1..=500);
        let terms = terms(&mut random, blocks);
        let partitions = random.random_range(1..=blocks);
        let limits = Limits { partitions_max: Some(partitions), ..Limits::default() };
        let found = optimum(&terms, &limits).unwrap();
        assert!(found.cost <= terms.cost(&Partitioning::equi_width(blocks, partitions)));
    }
}

#[test]
fn what_cannot_be_kept_is_told() {
    let terms = terms(&mut StdRng::seed_from_u64(1), 10);
    let limits = Limits { partition_blocks_max: Some(3), partitions_max: Some(3), cuts: None };
    let told = optimum(&terms, &limits).unwrap_err();
    assert_eq!((told.partition_blocks_least, told.partitions_least), (1, 4));
    let cuts = Some((0..10).map(|block| block % 5 == 4).collect());
    let told = optimum(&terms, &Limits { partition_blocks_max: Some(3), partitions_max: None, cuts }).unwrap_err();
    assert_eq!(told.partition_blocks_least, 5);
    let none = optimum(&Terms::default(), &Limits::default()).unwrap();
    assert!(none.partitioning.is_empty() && none.cost == 0.0);
}

#[test]
fn workloads_of_one_kind_have_the_layouts_that_one_expects() {
    let reads =
        Terms { backward: vec![1.0; 64], forward: vec![1.0; 64], fixed: vec![0.0; 64], partitions: vec![0.0; 64] };
    assert_eq!(optimum(&reads, &Limits::default()).unwrap().partitioning.len(), 64);
    let writes =
        Terms { backward: vec![0.0; 64], forward: vec![0.0; 64], fixed: vec![0.0; 64], partitions: vec![1.0; 64] };
    assert_eq!(optimum(&writes, &Limits::default()).unwrap().partitioning.len(), 1);
}
