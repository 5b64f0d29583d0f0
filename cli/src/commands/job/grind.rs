//! The work that a proposer needs to change a draw by choosing among seeds.
//!
//! If seeds are made of the parent's hash, each other hash of that block is a try: here its
//! timestamp is moved, by one millisecond for each. If they are made of a certificate, there is
//! nothing to hash again: the proposer that embeds it chooses among sets of votes, which are
//! counted.

use crate::{
    error::{CliError, Exit},
    output::{fields, millis, or_dash, table},
};
use cowboy_devnet::{
    client::Client,
    types::{AddressText, EvidenceQuery, Explanation, ExplanationQuery},
};
use cowboy_engine::{
    chain::{Block, Header},
    job::{
        odds::{Fraction, Odds, odds},
        seed::{self, SeedRule},
        selection::{self, Favoured},
    },
    presence::canonical,
    primitives::{Address, Hash, Height, Wei},
};
use serde::Serialize;
use std::{collections::BTreeMap, time::Instant};

/// Maximum number of tries, which take some seconds.
pub const MOST_TRIES: u32 = 1_000_000;
/// Number of hashes that measure the speed of hashing.
const MEASURED: u32 = 20_000;

/// The work that it takes to change a draw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Grind {
    /// The source of the seeds: `parent` or `certificate`.
    rule: String,
    /// Number of seeds that one proposer can choose among: the certificates possible with the
    /// validators' votes, and the one before. A decimal number; absent if the only limit is how
    /// fast it hashes.
    choices: Option<String>,
    /// Number of other hashes of the parent block that were tried here.
    tries: u32,
    /// Hashes of that block's header per second, by one thread of this machine.
    hashes_per_second: Option<f64>,
    /// Tries per second, each a hash, the seed and the draw.
    tries_per_second: Option<f64>,
    /// The runners that passed the filters.
    candidates: Vec<Chances>,
}

/// The work that it takes to have a candidate drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Chances {
    runner: String,
    address: AddressText,
    /// The share of seeds that draw it first: an exact fraction in lowest terms.
    first: String,
    /// The share of seeds that draw it at all; absent if the numbers are too large.
    drawn: Option<String>,
    /// Average number of seeds until one draws it.
    expected_tries: Option<f64>,
    /// Seconds for that many tries at the speed measured here.
    expected_seconds: Option<f64>,
    /// Number of tried seeds that draw it.
    hits: Option<u32>,
    /// The first try that draws it, from 1.
    first_hit: Option<u32>,
    /// The chance that one of the available seeds draws it.
    chance: Option<f64>,
}

/// A draw that is repeated with other seeds.
struct Again {
    candidates: Vec<(Address, Wei)>,
    job: Hash,
    submitted_at: Height,
    /// The number of the retry; 0 is the first draw.
    retry: u32,
    wanted: usize,
    mru: Option<Favoured>,
}

impl Again {
    fn with(&self, made_of: Hash) -> selection::Selection {
        let first = selection::seed(made_of, self.job, self.submitted_at);
        let seed = match self.retry {
            0 => first,
            retry => selection::retry_seed(first, retry),
        };
        selection::committee(&self.candidates, seed, self.wanted, self.mru)
    }
}

#[derive(Default)]
struct Tried {
    hits: BTreeMap<Address, u32>,
    first: BTreeMap<Address, u32>,
    seconds: f64,
}

/// Computes the work for a draw; if its seed is made of the parent block, tries other hashes of it.
pub async fn grind(client: &Client, said: &Explanation, tries: u32) -> Result<Grind, CliError> {
    if said.draws.is_empty() {
        let what = format!("job {} has no draw in block {}", said.job_id, said.height);
        return Err(CliError::new(Exit::Conflict, what)
            .detail(format!("{} runners pass, {} wanted", said.passed, said.wanted))
            .hint("explain it again once it is drawn"));
    }
    let first = match said.attempt {
        0 | 1 => said.clone(),
        _ => {
            let query = ExplanationQuery { attempt: Some(1) };
            client.explain(&said.job_id.to_string(), &query).await?
        }
    };
    let candidates: Vec<_> =
        said.candidates.iter().filter(|candidate| candidate.filter.is_none()).collect();
    let favoured = said.mru_record.as_ref().filter(|read| read.applied);
    let place = |address: AddressText| candidates.iter().position(|c| c.address == address);
    let times = |times: u64| u16::try_from(times).unwrap_or(u16::MAX);
    let place = favoured
        .and_then(|read| Some((place(read.runner_address)?, times(read.multiplier.max(1)))));
    let stakes = candidates.iter().map(|c| c.stake.map_or(Wei::ZERO, |stake| *stake));
    let weights: Vec<u16> =
        stakes.clone().map(|stake| times(selection::stake_to_weight(stake))).collect();
    let odds = odds(&weights, place, said.wanted as usize);

    let source = first.seed_source.as_ref();
    let by_certificate = source.is_some_and(|source| source.certificate_of.is_some());
    let (choices, tried, hashes) = if by_certificate {
        let validators = client.parameters().await?.validators;
        (seed::choices(validators, canonical::quorum(validators)), None, None)
    } else {
        let again = Again {
            candidates: candidates.iter().map(|c| *c.address).zip(stakes).collect(),
            job: *said.job_id,
            submitted_at: Height::new(client.job(&said.job_id.to_string()).await?.submitted_at),
            retry: said.attempt.saturating_sub(1),
            wanted: said.wanted as usize,
            mru: favoured
                .map(|read| Favoured { runner: *read.runner_address, multiplier: read.multiplier }),
        };
        let header = parent(client, &first).await?;
        (None, Some(try_hashes(&again, &header, tries)), Some(hashes_per_second(&header)))
    };
    let tries = if by_certificate { 0 } else { tries };
    let speed = tried.as_ref().map(|tried| f64::from(tries) / tried.seconds);
    let candidates = candidates
        .iter()
        .zip(odds)
        .map(|(candidate, Odds { first, any })| {
            let share = any.map(ratio);
            let expected_tries = share.map(|share| 1.0 / share);
            let hits = tried.as_ref().map(|tried| tried.hits.get(&*candidate.address).copied());
            let at = tried.as_ref().and_then(|tried| tried.first.get(&*candidate.address).copied());
            Chances {
                runner: candidate.runner.clone(),
                address: candidate.address,
                first: shown(first),
                drawn: any.map(shown),
                expected_tries,
                expected_seconds: expected_tries.zip(speed).map(|(tries, speed)| tries / speed),
                hits: hits.map(Option::unwrap_or_default),
                first_hit: at,
                chance: share.zip(choices).map(|(share, choices)| at_least_one(share, choices)),
            }
        })
        .collect();
    let rule = if by_certificate { SeedRule::Certificate } else { SeedRule::Parent };
    Ok(Grind {
        rule: rule.to_string(),
        choices: choices.map(|choices| choices.to_string()),
        tries,
        hashes_per_second: hashes,
        tries_per_second: speed,
        candidates,
    })
}

/// The header of the block whose hash is the seed.
async fn parent(client: &Client, first: &Explanation) -> Result<Header, CliError> {
    let height = first.height.saturating_sub(1);
    let wrong = |detail: String| {
        let what = format!("block {height} is not the source of the seed");
        CliError::new(Exit::Unverified, what).detail(detail)
    };
    if height == 0 {
        return Err(wrong("genesis has no proposer that could try other hashes".to_owned()));
    }
    let query = EvidenceQuery { from: Some(height), limit: Some(1) };
    let page = client.evidence_page(&query).await?;
    let bytes = page.blocks.first().map(|block| block.block_bytes.0.0.as_slice());
    let block = Block::from_bytes(bytes.unwrap_or_default())
        .map_err(|error| wrong(format!("the devnet serves no block there: {error}")))?;
    if block.hash() != *first.block_hash {
        return Err(wrong(format!("it has hash {}, not {}", block.hash(), first.block_hash)));
    }
    Ok(block.header)
}

/// Draws `tries` times, each time with a later timestamp in the header.
fn try_hashes(again: &Again, header: &Header, tries: u32) -> Tried {
    let mut tried = Tried::default();
    let mut header = header.clone();
    let start = Instant::now();
    for number in 1..=tries {
        header.timestamp_ms = header.timestamp_ms.saturating_add(1);
        for runner in again.with(header.hash()).committee {
            *tried.hits.entry(runner).or_default() += 1;
            tried.first.entry(runner).or_insert(number);
        }
    }
    tried.seconds = start.elapsed().as_secs_f64().max(1e-9);
    tried
}

fn hashes_per_second(header: &Header) -> f64 {
    let mut header = header.clone();
    let start = Instant::now();
    for _ in 0..MEASURED {
        header.timestamp_ms = header.timestamp_ms.saturating_add(1);
        std::hint::black_box(header.hash());
    }
    f64::from(MEASURED) / start.elapsed().as_secs_f64().max(1e-9)
}

fn shown(fraction: Fraction) -> String {
    format!("{}/{}", fraction.of, fraction.all)
}

fn ratio(fraction: Fraction) -> f64 {
    fraction.of as f64 / fraction.all as f64
}

/// The chance that a runner is drawn at least once in `draws` draws, if each draws it with the
/// chance `share`.
fn at_least_one(share: f64, draws: u128) -> f64 {
    1.0 - (1.0 - share).powf(draws as f64)
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => millis((s * 1e3) as u64),
    }
}

impl Grind {
    pub fn text(&self) -> String {
        let mut head = vec![("seeds made of", self.rule.clone())];
        head.push(match &self.choices {
            Some(choices) => ("one proposer chooses", format!("among {choices} seeds")),
            None => ("one proposer chooses", "among all that it can hash".to_owned()),
        });
        if let (Some(hashes), Some(tries)) = (self.hashes_per_second, self.tries_per_second) {
            head.push(("hashes a second", format!("{hashes:.0} (one thread of this machine)")));
            head.push(("tries a second", format!("{tries:.0} (hash, seed and draw)")));
            head.push(("tried here", format!("{} other hashes", self.tries)));
        }
        let rows = self.candidates.iter().map(|c| {
            let tries = c.expected_tries.map(|tries| format!("{tries:.1}"));
            let mut row = vec![c.runner.clone(), c.first.clone()];
            row.extend([or_dash(c.drawn.clone()), or_dash(tries)]);
            match self.choices.is_some() {
                true => {
                    row.push(or_dash(c.chance.map(|chance| format!("{:.1} %", chance * 100.0))));
                }
                false => row.extend([
                    or_dash(c.expected_seconds.map(time)),
                    or_dash(c.hits),
                    or_dash(c.first_hit),
                ]),
            }
            row
        });
        let (before, after): (_, &[&str]) = (
            ["to draw", ">first", ">at all", ">tries"],
            match self.choices.is_some() {
                true => &[">chance"],
                false => &[">time", ">hits", ">first hit"],
            },
        );
        let columns = [&before, after].concat();
        format!("{}\n\n{}", fields(&head), table(&columns, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{
        chain::{Executed, Round},
        registry::MIN_STAKE,
    };

    #[test]
    fn tries_come_to_what_the_odds_say() {
        let header = Header {
            height: Height::new(7),
            parent: Hash([1; 32]),
            round: Round::default(),
            proposer: [2; 32],
            timestamp_ms: 1_000,
            subset_epoch: 0,
            transactions_root: Hash([3; 32]),
            certificates_root: Hash([4; 32]),
            open: Vec::new(),
            executed: Executed { height: Height::new(6), state_root: Hash([5; 32]) },
        };
        for retry in [0, 2] {
            let again = Again {
                candidates: (0..4).map(|i| (Address([i; 20]), MIN_STAKE)).collect(),
                job: Hash([6; 32]),
                submitted_at: Height::new(8),
                retry,
                wanted: 2,
                mru: Some(Favoured { runner: Address([0; 20]), multiplier: 4 }),
            };
            let tried = try_hashes(&again, &header, 4_000);
            for (place, odds) in odds(&[2; 4], Some((0, 4)), 2).into_iter().enumerate() {
                let hits = tried.hits[&Address([place as u8; 20])];
                let expected = ratio(odds.any.unwrap());
                let got = f64::from(hits) / 4_000.0;
                assert!((expected - got).abs() < 0.05, "{expected} {got}");
            }
            assert!(tried.first.values().all(|first| *first < 100));
        }
    }

    #[test]
    fn one_of_some_seeds_is_likelier_than_one() {
        assert!((at_least_one(0.25, 5) - 0.762_695_312_5).abs() < 1e-12);
        assert!(at_least_one(1.0, 2) > 1.0 - 1e-12);
        assert_eq!([2.5e-6, 0.0025, 62.0].map(time), ["2.5 us", "2.5 ms", "1 m 2 s"]);
    }
}
