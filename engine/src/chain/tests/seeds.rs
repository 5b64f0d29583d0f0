//! The sources of the seeds of draws, and a proposer's influence on them.

use super::*;
use crate::job::{SeedRule, selection};

fn chain(rule: SeedRule) -> Chain {
    let mut genesis = genesis(4);
    genesis.params.selection_seed = rule;
    Chain::new(&genesis)
}

/// A block's certificate after `change`.
fn changed(chain: &Chain, change: impl FnOnce(&mut Certificate)) -> Certificate {
    let mut certificate = chain.certificate();
    change(&mut certificate);
    certificate
}

/// The next block, with this certificate of its parent and this time after it.
fn with(
    chain: &Chain,
    certificate: Certificate,
    later_ms: u64,
    transactions: Vec<SignedTransaction>,
) -> Block {
    let mut block = chain.block(transactions);
    block.certificates = vec![certificate];
    block.header.certificates_root = certificates_root(&block.certificates);
    block.header.timestamp_ms += later_ms;
    block
}

fn apply(chain: &mut Chain, block: &Block) -> Execution {
    let execution = execute(&chain.state, block).unwrap();
    chain.state = execution.state.clone();
    execution
}

/// The draw of a job in block 4. `third` and `fourth` build those blocks.
fn drawn(
    rule: SeedRule,
    third: impl FnOnce(&Chain) -> Block,
    fourth: impl FnOnce(&Chain, Vec<SignedTransaction>) -> Block,
) -> (Chain, DrawRecord) {
    let mut chain = chain(rule);
    chain.push(vec![]);
    chain.push(vec![]);
    let block = third(&chain);
    apply(&mut chain, &block);
    let signed = chain.sign("alice", Payload::SubmitJob(Arc::new(spec())));
    let block = fourth(&chain, vec![signed]);
    let mut execution = apply(&mut chain, &block);
    (chain, execution.draws.remove(0))
}

fn sound(chain: &Chain) -> Block {
    chain.block(vec![])
}

#[test]
fn the_parent_s_proposer_can_try_hashes_under_one_rule_and_not_under_the_other() {
    let later = |chain: &Chain| with(chain, chain.certificate(), 1, vec![]);
    let seeds = |rule| {
        let (chain, first) = drawn(rule, sound, Chain::block);
        let (_, second) = drawn(rule, later, Chain::block);
        assert_ne!(first.parent, second.parent);
        let job = chain.state.job(&first.job_id).unwrap();
        assert_eq!(job.status.assignment().unwrap().seed, first.seed);
        let made = |draw: &DrawRecord| selection::seed(draw.made_of(), draw.job_id, Height::new(4));
        assert_eq!([made(&first), made(&second)], [first.seed, second.seed]);
        (first, second)
    };
    let (first, second) = seeds(SeedRule::Parent);
    assert_eq!((first.certificate, first.made_of()), (None, first.parent));
    assert_ne!(first.seed, second.seed);
    let (first, second) = seeds(SeedRule::Certificate);
    // Block 3 embeds the certificate of block 2.
    assert_eq!(first.certificate.unwrap().height, Height::new(2));
    assert_eq!(first.made_of(), first.certificate.unwrap().digest);
    assert_eq!(first.seed, second.seed);
}

#[test]
fn votes_of_others_make_the_seed_and_the_embedder_s_own_does_not() {
    let draw = |change: fn(&mut Certificate)| {
        let third = |chain: &Chain| with(chain, changed(chain, change), 0, vec![]);
        drawn(SeedRule::Certificate, third, Chain::block).1
    };
    let sound = draw(|_| ());
    // Validator 0, whose key is [1; 32], proposes every block of these chains.
    let own = draw(|certificate| certificate.votes[0].signature[5] = 1);
    assert_eq!(own.seed, sound.seed);
    let without = draw(|certificate| certificate.votes[0].validator = 3);
    assert_ne!(without.seed, sound.seed, "another quorum is another seed: it can choose");
    let other = draw(|certificate| certificate.votes[1].signature[5] = 1);
    assert_ne!(other.seed, sound.seed);
    let [certificate, other] = [sound, other].map(|draw| draw.certificate.unwrap());
    assert_eq!(certificate.height, other.height);
}

#[test]
fn the_proposer_of_the_block_that_draws_chooses_no_seed() {
    let fourth = |change: fn(&mut Certificate)| {
        move |chain: &Chain, signed| with(chain, changed(chain, change), 7, signed)
    };
    let draw = |change| drawn(SeedRule::Certificate, sound, fourth(change)).1;
    let first = draw(|_| ());
    let second = draw(|certificate| certificate.votes[1].signature[5] = 1);
    assert_eq!(first, second);
    assert_eq!(first.presence, Some(Height::new(3)), "presence is that of the parent");
}

#[test]
fn a_seed_is_of_the_parent_until_a_certificate_is_known_and_of_the_newest_then() {
    let mut chain = chain(SeedRule::Certificate);
    for _ in 0..2 {
        chain.push(vec![]);
    }
    // Block 2 embeds the first certificate: only draws from block 3 on can use it.
    assert_eq!(chain.state.seed_certificate().unwrap().height, Height::new(1));
    chain.certify = false;
    let before = chain.state.seed_certificate();
    chain.push(vec![]);
    assert_eq!(chain.state.seed_certificate(), before, "a block without certificate changes none");
    let root = chain.state.root();
    let mut other = chain.state.clone();
    other.seed_certificate = None;
    assert_ne!(other.root(), root, "later blocks depend on it");

    let mut early = self::chain(SeedRule::Certificate);
    early.push(vec![]);
    let execution = early.one("alice", Payload::SubmitJob(Arc::new(spec())));
    let draw = &execution.draws[0];
    assert_eq!((draw.certificate, draw.made_of()), (None, draw.parent));
    assert_eq!(draw.selection.committee.len(), 1);
}

#[test]
fn retries_are_seeded_by_the_first_seed() {
    let (mut chain, first) = drawn(SeedRule::Certificate, sound, Chain::block);
    let mut retry = None;
    while retry.is_none() {
        retry = chain.push(vec![]).draws.pop();
    }
    let retry = retry.unwrap();
    assert_eq!(retry.seed, selection::retry_seed(first.seed, 1));
    assert!(retry.certificate.unwrap().height > first.certificate.unwrap().height);
}
