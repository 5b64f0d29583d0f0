//! Proofs over the queue of timers: `cargo bench -p cowboy-engine --bench state_proof`, with ten
//! thousand and a million timers over 30 days, and 1,000 more at one height.
//!
//! * **timer**, **absent**, **range**: proving one id, an id that does not exist, and the heights
//!   of 1,000 timers; and the check of each: tree and queue, without header and certificate. Their
//!   sizes are printed first.
//! * **update**: a root after one timer is removed and one scheduled.
//! * **fire**: a root after the 1,000 of one height are removed, as a block that fires them does.

#![expect(clippy::print_stdout, reason = "sizes are lines before criterion's")]

use cowboy_engine::{
    primitives::{Address, Hash, Height, Wei, keccak256},
    timer::{Queue, Timer, book, heights},
};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use std::{cell::LazyCell, hint::black_box};

const SIZES: [u64; 2] = [10_000, 1_000_000];
const SPAN: u64 = 2_592_000;
const TOGETHER: u64 = 1_000;
const DUE: Height = Height::new(5_000_000);

fn id(n: u64) -> Hash {
    keccak256(&[&n.to_be_bytes()])
}

fn timer(n: u64, height: Height) -> Timer {
    let actor = Address([n as u8; 20]);
    Timer {
        id: id(n),
        seq: n,
        actor,
        height,
        payload: vec![0; 32],
        handler: None,
        fee_payer: actor,
        gas_limit: 250_000,
        cell_limit: 50_048,
        promised: None,
        expires_at: Height::new(2 * DUE.get()),
        max_fee_per_cycle: Wei::new(2_000),
        max_priority_fee_per_cycle: Wei::new(u128::from(n % 1_000)),
        scheduled_at: Height::GENESIS,
        gba: None,
        bid: None,
    }
}

fn spread(n: u64) -> Timer {
    timer(n, Height::new(1 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % SPAN))
}

fn queue(size: u64) -> Queue {
    let mut queue = Queue::default();
    let together = (size..size + TOGETHER).map(|n| timer(n, DUE));
    for timer in (0..size).map(spread).chain(together) {
        queue.schedule(timer);
    }
    queue.root();
    queue
}

fn proofs(c: &mut Criterion) {
    for size in SIZES {
        let mut group = c.benchmark_group(format!("{size} timers"));
        let queue = LazyCell::new(|| {
            let queue = queue(size);
            let some: Vec<usize> = (0..1_000).map(|n| one(&queue, n).len()).collect();
            let (sum, most) = (some.iter().sum::<usize>(), some.iter().max().expect("1,000"));
            println!("{size} timers: a tree of {} bytes on average, {most} at most", sum / 1_000);
            println!("{size} timers: 1,000 at one height in {} bytes", together(&queue).len());
            queue
        });
        let mut n = 0;
        let mut next = || {
            n = (n + 7_919) % size;
            n
        };
        group.bench_function("prove a timer", |b| b.iter(|| one(&queue, next())));
        group.bench_function("check a timer", |b| {
            let trees: Vec<_> = (0..64).map(|n| (id(n), one(&queue, n))).collect();
            let mut at = 0;
            b.iter(|| {
                at = (at + 1) % trees.len();
                let (id, tree) = &trees[at];
                book::check(black_box(tree), id).expect("a proof").1.map(<[u8]>::len)
            });
        });
        group.bench_function("check an absent timer", |b| {
            let stranger = id(u64::MAX);
            let tree = queue.prove(&stranger, usize::MAX).expect("no bound");
            b.iter(|| book::check(black_box(&tree), &stranger).expect("a proof").1.is_none());
        });
        group.bench_function("prove a height of 1,000", |b| b.iter(|| together(&queue)));
        group.bench_function("check a height of 1,000", |b| {
            let tree = together(&queue);
            b.iter(|| heights::check(black_box(&tree), DUE, DUE).expect("a proof").1.len());
        });
        group.bench_function("update", |b| {
            b.iter_batched(
                || (queue.clone(), next()),
                |(mut queue, n)| {
                    queue.remove(&id(n));
                    queue.schedule(spread(n + 2 * size));
                    (queue.root(), queue)
                },
                BatchSize::SmallInput,
            );
        });
        group.sample_size(20);
        group.bench_with_input(BenchmarkId::new("fire", TOGETHER), &size, |b, size| {
            b.iter_batched(
                || queue.clone(),
                |mut queue| {
                    (*size..size + TOGETHER).for_each(|n| drop(queue.remove(&id(n))));
                    (queue.root(), queue)
                },
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

fn one(queue: &Queue, n: u64) -> Vec<u8> {
    queue.prove(&id(n), usize::MAX).expect("no bound")
}

fn together(queue: &Queue) -> Vec<u8> {
    queue.prove_range(DUE, DUE, usize::MAX).expect("no bound")
}

criterion_group!(benches, proofs);
criterion_main!(benches);
