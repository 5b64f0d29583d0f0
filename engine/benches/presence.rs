//! From votes to P(H), and from P(H) to a committee, each compared with the obvious
//! implementations: `cargo bench -p cowboy-engine --bench presence`.

use bitvec::{order::Lsb0, view::BitView as _};
use cowboy_engine::{
    job::selection::{self, Draw, Favoured, Selection, stake_to_weight},
    presence::{Bitmap, Connectivity, ThresholdRule, canonical},
    primitives::{Address, Hash, Wei, keccak256},
    registry::MIN_STAKE,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Pseudo-random, the same in every run.
fn random(n: u32) -> [u8; 32] {
    keccak256(&[&n.to_be_bytes()]).0
}

type Votes<'a> = [(u32, &'a Bitmap)];

/// P(H) by asking `bitvec` for each bit of each vote.
fn by_bits(votes: &Votes<'_>, bits: u32, need: u32) -> Bitmap {
    let votes: Vec<_> = votes.iter().map(|(_, vote)| vote.as_bytes().view_bits::<Lsb0>()).collect();
    Bitmap::from_fn(bits, |i| votes.iter().filter(|vote| vote[i as usize]).count() as u32 >= need)
}

/// P(H) from a table that spreads each byte into eight counters of a byte: for up to 255 votes.
fn by_bytes(votes: &Votes<'_>, bits: u32, need: u32, spread: &[u64; 256]) -> Bitmap {
    let mut counts = vec![0u64; bits.div_ceil(8) as usize];
    for (_, vote) in votes {
        for (counts, byte) in counts.iter_mut().zip(vote.as_bytes()) {
            *counts += spread[usize::from(*byte)];
        }
    }
    let reached = |counts: &u64| {
        let counts = counts.to_le_bytes().into_iter().enumerate();
        counts.fold(0, |byte, (bit, count)| byte | u8::from(u32::from(count) >= need) << bit)
    };
    let bytes: Vec<u8> = counts.iter().map(reached).collect();
    Bitmap::from_bytes(bits, &bytes).expect("no vote sets a bit beyond its end")
}

/// Reads every vote once.
fn read(votes: &Votes<'_>) -> u64 {
    let words = votes.iter().flat_map(|(_, vote)| vote.as_bytes().as_chunks().0);
    words.fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

fn presence(c: &mut Criterion) {
    let spread: [u64; 256] =
        std::array::from_fn(|byte| (0..8).map(|bit| (byte as u64 >> bit & 1) << (8 * bit)).sum());
    let mut group = c.benchmark_group("presence");
    for (votes, bits) in [(3u32, 1_000u32), (23, 10_000), (67, 100_000)] {
        let bytes = |vote: u32| {
            let words = (0..bits.div_ceil(256)).map(move |word| random(vote << 16 | word));
            words.flatten().collect::<Vec<u8>>()
        };
        let owned: Vec<_> = (0..votes)
            .map(|vote| {
                let bytes = bytes(vote);
                let bit = |i: u32| bytes[(i / 8) as usize] >> (i % 8) & 1 == 1;
                (vote, Bitmap::from_fn(bits, bit))
            })
            .collect();
        let votes_by_ref: Vec<_> = owned.iter().map(|(vote, bitmap)| (*vote, bitmap)).collect();
        // The set of validators whose quorum is this many votes.
        let validators =
            (votes..=2 * votes).find(|n| canonical::quorum(*n) == votes).expect("some set");
        let need = canonical::of(validators);
        let derive = |votes: &Votes<'_>, rule, members: &[Vec<u32>]| {
            canonical(votes, bits, validators, rule, members)
        };
        let derived = derive(&votes_by_ref, ThresholdRule::Committee, &[]);
        assert_eq!(derived, by_bits(&votes_by_ref, bits, need));
        assert_eq!(derived, by_bytes(&votes_by_ref, bits, need, &spread));

        let size = format!("{votes} votes, {bits} bits");
        group.throughput(Throughput::Bytes(u64::from(votes) * u64::from(bits.div_ceil(8))));
        group.bench_function(BenchmarkId::new("committee", &size), |b| {
            b.iter(|| derive(black_box(&votes_by_ref), ThresholdRule::Committee, &[]));
        });
        group.bench_function(BenchmarkId::new("quorum", &size), |b| {
            b.iter(|| derive(black_box(&votes_by_ref), ThresholdRule::Quorum, &[]));
        });
        let nearest = |i: u32| (0..8).map(|n| (i * 7 + n) % validators).collect();
        let members: Vec<Vec<u32>> = (0..bits).map(nearest).collect();
        group.bench_function(BenchmarkId::new("subset", &size), |b| {
            let (votes, members) = black_box((&votes_by_ref, &members));
            b.iter(|| derive(votes, ThresholdRule::Subset, members));
        });
        group.bench_function(BenchmarkId::new("bits", &size), |b| {
            b.iter(|| by_bits(black_box(&votes_by_ref), bits, need));
        });
        group.bench_function(BenchmarkId::new("byte table", &size), |b| {
            b.iter(|| by_bytes(black_box(&votes_by_ref), bits, need, &spread));
        });
        group.bench_function(BenchmarkId::new("read", &size), |b| {
            b.iter(|| read(black_box(&votes_by_ref)));
        });
    }
    group.finish();
}

/// The draw as in the specification's reference: weights are looked up once, then summed and
/// scanned from the first that is left for each draw.
fn scan(candidates: &[(Address, Wei)], seed: Hash, m: usize, mru: Option<Favoured>) -> Selection {
    let mut pool = candidates.to_vec();
    pool.sort_unstable();
    let mut weights: Vec<u64> = pool.iter().map(|(_, stake)| stake_to_weight(*stake)).collect();
    let mut favoured = mru.and_then(|mru| {
        let at = pool.iter().position(|(address, _)| *address == mru.runner)?;
        Some((at, mru.multiplier))
    });
    let mut selection = Selection::default();
    let mut state = seed;
    for i in 0..m.min(pool.len()) {
        let bonus = favoured.take().map(|(at, multiplier)| (at, weights[at], multiplier));
        if let Some((at, weight, multiplier)) = bonus {
            weights[at] = weight * multiplier;
        }
        let total = weights[i..].iter().sum();
        state = keccak256(&[state.as_bytes(), &(i as u64).to_le_bytes()]);
        let low = state.as_bytes().first_chunk().expect("8 of 32 bytes");
        let r = u64::from_le_bytes(*low) % total;
        let (mut rest, mut at) = (r, i);
        while rest >= weights[at] {
            rest -= weights[at];
            at += 1;
        }
        if let Some((at, weight, _)) = bonus {
            weights[at] = weight;
        }
        pool.swap(i, at);
        weights.swap(i, at);
        selection.committee.push(pool[i].0);
        selection.draws.push(Draw { draw: i as u64, r, total, picked: pool[i].0 });
    }
    selection
}

fn draw(c: &mut Criterion) {
    let mut group = c.benchmark_group("draw");
    for n in [100u32, 1_000, 10_000, 100_000] {
        let candidate = |i: u32| {
            let [stake, address @ ..] = random(i);
            let address = *address.first_chunk().expect("20 of 31 bytes");
            (Address(address), Wei::new(MIN_STAKE.get() << (stake % 8)))
        };
        // In the order in which the filters leave them.
        let mut candidates: Vec<_> = (0..n).map(candidate).collect();
        candidates.sort_unstable();
        let runner = candidates[candidates.len() / 2].0;
        let multiplier = Connectivity::DEFAULT.mru_multiplier;
        let mru = Some(Favoured { runner, multiplier });
        let seed = keccak256(&[b"seed"]);
        for m in [1, 3, 9] {
            let drawn = selection::draw(&candidates, seed, m, mru);
            assert_eq!(drawn, scan(&candidates, seed, m, mru));
            group.bench_function(BenchmarkId::new(format!("{m} of"), n), |b| {
                b.iter(|| selection::draw(black_box(&candidates), seed, m, mru));
            });
            group.bench_function(BenchmarkId::new(format!("{m} by scan of"), n), |b| {
                b.iter(|| scan(black_box(&candidates), seed, m, mru));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, presence, draw);
criterion_main!(benches);
