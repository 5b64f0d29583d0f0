//! Costs of a block's state: `cargo bench -p cowboy-engine --bench engine`.

use cowboy_engine::{
    chain::{
        Block, Endowment, Genesis, GenesisValidator, Header, Params, Payload, SignedTransaction,
        Transaction, block::transactions_root, execute, transaction::Transfer,
    },
    primitives::{Address, Height, SecretKey, Wei, keccak256, merkle::Map},
};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Pseudo-random, the same in every run.
fn random(n: u32) -> [u8; 32] {
    keccak256(&[&n.to_be_bytes()]).0
}

const ENTRIES: u32 = 10_000;

fn key(i: u32) -> Address {
    Address(*random(i).first_chunk().expect("20 of 32 bytes"))
}

fn merkle(c: &mut Criterion) {
    let mut group = c.benchmark_group("merkle");
    let map: Map<Address, Vec<u8>> = (0..ENTRIES).map(|i| (key(i), vec![0; 64])).collect();
    map.root();
    let mut at = 0;
    let mut next = || {
        at = (at + 7_919) % ENTRIES;
        at
    };
    group.bench_function("get", |b| {
        b.iter_batched(
            || key(next()),
            |key| black_box(&map).get(&key).is_some(),
            BatchSize::SmallInput,
        );
    });
    // On its own map, as within a block, and on a fork, as a block's first change.
    group.bench_function("insert, own", |b| {
        let mut map: Map<Address, Vec<u8>> = map.iter().map(|(k, v)| (*k, v.clone())).collect();
        b.iter_batched(
            || (key(next()), vec![1; 64]),
            |(key, value)| map.insert(key, value),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("insert, fork", |b| {
        b.iter_batched(
            || (map.clone(), key(next()), vec![1; 64]),
            |(mut map, key, value)| {
                map.insert(key, value);
                map
            },
            BatchSize::SmallInput,
        );
    });
    for changes in [1, 100] {
        group.bench_function(BenchmarkId::new("root after changes", changes), |b| {
            b.iter_batched(
                || {
                    let mut map = map.clone();
                    for _ in 0..changes {
                        map.insert(key(next()), vec![2; 64]);
                    }
                    map
                },
                |map| map.root(),
                BatchSize::SmallInput,
            );
        });
    }
    group.bench_function("root of everything", |b| {
        b.iter_batched(
            || map.iter().map(|(k, v)| (*k, v.clone())).collect::<Map<_, _>>(),
            |map| map.root(),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// A block of 500 transfers between 10,000 accounts on its parent's state: a validator's work once
/// the block is final, with senders known (as after its own mempool) and unknown (as from disk),
/// and the root that its child commits to. Compared with the bare cost of 500 key recoveries.
fn execution(c: &mut Criterion) {
    let senders: Vec<SecretKey> =
        (0..500).map(|i| SecretKey::derive(b"bench", &format!("sender-{i}"))).collect();
    let endow = |account| Endowment { account, balance: Wei::cby(1_000_000) };
    let rest = (0..9_500).map(|i| endow(key(i)));
    let genesis = Genesis {
        name: "bench".into(),
        timestamp_ms: 0,
        params: Params::default(),
        validators: vec![GenesisValidator {
            pubkey: senders[0].public_key(),
            consensus_key: [1; 32],
        }],
        runners: vec![],
        endowments: senders.iter().map(|k| endow(k.address())).chain(rest).collect(),
    };
    let state = genesis.state().expect("a chain");
    let transactions: Vec<SignedTransaction> = senders
        .iter()
        .zip(0..)
        .map(|(sender, i)| {
            let payload = Payload::Transfer(Transfer { to: key(i), amount: Wei::new(1) });
            let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
            Transaction::with_limits(state.chain_id(), 0, cycle, cell, payload).sign(sender)
        })
        .collect();
    let header = Header {
        height: Height::new(1),
        parent: state.head_hash(),
        transactions_root: transactions_root(&transactions),
        proposer: [1; 32],
        ..state.head().clone()
    };
    let block = Block { header, certificates: vec![], transactions };
    let bytes = block.to_bytes();
    let executed = execute(&state, &block).expect("a child").state;
    assert_eq!(executed.account(&key(0)).balance, Wei::cby(1_000_000).saturating_add(Wei::new(1)));

    let mut group = c.benchmark_group("execute 500 transfers");
    group.sample_size(20).throughput(Throughput::Elements(500));
    group.bench_function("senders known", |b| b.iter(|| execute(&state, black_box(&block))));
    group.bench_function("senders known, and root", |b| {
        b.iter(|| execute(&state, black_box(&block)).map(|e| e.state.root()));
    });
    group.bench_function("from bytes, and root", |b| {
        b.iter(|| {
            let block = Block::from_bytes(black_box(&bytes)).expect("a block");
            execute(&state, &block).map(|e| e.state.root())
        });
    });
    group.bench_function("bare recovery of 500 keys", |b| {
        b.iter(|| {
            for signed in &block.transactions {
                black_box(signed.signature.recover(&signed.transaction.digest()));
            }
        });
    });
    group.finish();
}

criterion_group!(engine, merkle, execution);
criterion_main!(engine);
