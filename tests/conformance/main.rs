//! The engine against the vectors that the reference formulas wrote: one test per file of this
//! folder, every field of every case.
//!
//! `CONFORMANCE_DIR` names another folder to read; a relative path begins at this package's folder.
//! Only in such a folder may a file be missing.

mod attacks;
mod cases;
mod lease;
mod speculation;

use cowboy_engine::{
    actor::{self, Budget, Module},
    chain::{Setup, Suite},
    fees::basefee,
    job::selection::{self, Favoured},
    presence::{Bitmap, Connectivity, ThresholdRule, canonical, subset},
    primitives::{Address, Hash, Height, PublicKey, SecretKey, Wei},
    proof::{self, Element, Statement, Witness},
    session::backoff,
    timer::{
        Due, Fairness, Policy, Tier, TimerConfig, eip1559,
        fairness::weight_numerator,
        lane::{self, Buffers, LaneAccounts, Prices, Room},
        record,
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::{self, Debug},
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

/// Reads a family of vectors; `None` if it is missing in the folder that `CONFORMANCE_DIR` names.
fn vectors<T: DeserializeOwned>(family: &str) -> Option<T> {
    let chosen = env::var_os("CONFORMANCE_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let own = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance"));
    let path = chosen.clone().unwrap_or_else(own).join(family).with_extension("json");
    match fs::read_to_string(&path) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(vectors) => Some(vectors),
            Err(error) => panic!("{}: not of the expected shape: {error}", path.display()),
        },
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && chosen.is_some_and(|dir| dir.is_dir()) =>
        {
            // Not by macro, because the test harness captures the macros' output of a passing test.
            let _ = writeln!(io::stderr(), "{}: not there, nothing checked", path.display());
            None
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Runs `check` on every case and names the failed ones. A family without cases fails, too.
fn check_all<T>(what: &str, cases: &[T], check: impl Fn(&T) -> Result<(), String>) {
    assert!(!cases.is_empty(), "{what}: no cases");
    let failed: Vec<_> = cases
        .iter()
        .enumerate()
        .filter_map(|(i, case)| check(case).err().map(|why| format!("{what}[{i}]: {why}")))
        .collect();
    assert!(failed.is_empty(), "{} of {} failed\n{}", failed.len(), cases.len(), failed.join("\n"));
}

fn equal<T: PartialEq + Debug>(field: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected {
        return Ok(());
    }
    Err(format!("{field}: got {got:?}, expected {expected:?}"))
}

/// Bytes in lower-case hex without 0x.
#[derive(Clone, PartialEq, Eq)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn array<const N: usize>(&self) -> Result<[u8; N], String> {
        let got = self.0.len();
        self.0.as_slice().try_into().map_err(|_| format!("{got} bytes where {N} are expected"))
    }

    fn hash(&self) -> Result<Hash, String> {
        self.array().map(Hash)
    }

    fn address(&self) -> Result<Address, String> {
        self.array().map(Address)
    }

    fn public_key(&self) -> Result<PublicKey, String> {
        PublicKey::from_bytes(&self.array()?).map_err(|error| format!("{self:?}: {error}"))
    }
}

impl Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::decode(&text).map_err(D::Error::custom)?;
        if hex::encode(&bytes) != text {
            return Err(D::Error::custom(format!("`{text}` is not lower-case hex")));
        }
        Ok(Self(bytes))
    }
}

/// An amount: decimal digits in a string, which no JSON reader rounds.
#[derive(Clone, Copy)]
struct Amount(Wei);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(|wei| Self(Wei::new(wei))).map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressCase {
    secret_key: Bytes,
    pubkey: Bytes,
    address: Bytes,
}

#[test]
fn address() {
    let Some(cases) = vectors::<Vec<AddressCase>>("address") else { return };
    check_all("address", &cases, |case| {
        let secret = SecretKey::from_bytes(&case.secret_key.array()?).map_err(|e| e.to_string())?;
        let public = case.pubkey.public_key()?;
        equal("pubkey", secret.public_key(), public.clone())?;
        equal("address of secret_key", secret.address(), case.address.address()?)?;
        equal("address of pubkey", public.address(), case.address.address()?)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubsetCase {
    runner_pubkey: Bytes,
    validator_pubkeys: Vec<Bytes>,
    k: usize,
    subset_pubkeys: Vec<Bytes>,
}

#[test]
fn subset() {
    let Some(cases) = vectors::<Vec<SubsetCase>>("subset") else { return };
    check_all("subset", &cases, |case| {
        let keys = &case.validator_pubkeys;
        let validators = keys.iter().map(Bytes::public_key).collect::<Result<Vec<_>, _>>()?;
        equal("k", subset::size(validators.len()), case.k)?;
        let subset = subset::of(&case.runner_pubkey.public_key()?, &validators);
        let subset: Vec<_> = subset.into_iter().map(|i| keys[i].clone()).collect();
        equal("subset_pubkeys", &subset, &case.subset_pubkeys)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Presence {
    derivation: Vec<Derivation>,
    feasibility: Vec<Feasibility>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Derivation {
    validators: u32,
    registry_len: u32,
    votes: Vec<Vote>,
    present_counts: Vec<u32>,
    committee: Derived,
    quorum: Derived,
    /// Absent for large registries.
    subset: Option<DerivedBySubset>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vote {
    validator: u32,
    bit_length: u32,
    bytes: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Derived {
    threshold: u32,
    presence: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DerivedBySubset {
    members: Vec<Vec<u32>>,
    presence: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Feasibility {
    validators: u32,
    /// The rule of that name; `out_of` is the number of votes in a quorum.
    quorum: Visibility,
    k: u32,
    committee: Visibility,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Visibility {
    threshold: u32,
    visible: u128,
    out_of: u128,
}

#[test]
fn presence() {
    let Some(vectors) = vectors::<Presence>("presence") else { return };
    check_all("presence.derivation", &vectors.derivation, |case| {
        let read = |vote: &Vote| {
            let bitmap = Bitmap::from_bytes(vote.bit_length, &vote.bytes.0);
            bitmap.map(|b| (vote.validator, b)).map_err(|e| format!("{}: {e}", vote.validator))
        };
        let votes = case.votes.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let votes: Vec<_> = votes.iter().map(|(v, bitmap)| (*v, bitmap)).collect();
        let counts = canonical::counts(&votes, case.registry_len);
        equal("present_counts", &counts, &case.present_counts)?;

        let derive = |rule, members: &[Vec<u32>]| {
            let p = canonical(&votes, case.registry_len, case.validators, rule, members);
            (p.len(), Bytes(p.as_bytes().to_vec()))
        };
        let presence = |expected: &Bytes| (case.registry_len, expected.clone());
        let committee = derive(ThresholdRule::Committee, &[]);
        equal("committee.presence", committee, presence(&case.committee.presence))?;
        let need = canonical::of(case.validators);
        equal("committee.threshold", need, case.committee.threshold)?;
        let quorum = derive(ThresholdRule::Quorum, &[]);
        equal("quorum.presence", quorum, presence(&case.quorum.presence))?;
        let need = canonical::of(votes.len() as u32);
        equal("quorum.threshold", need, case.quorum.threshold)?;
        equal("votes", votes.len() as u32, canonical::quorum(case.validators))?;
        if let Some(by_subset) = &case.subset {
            let subset = derive(ThresholdRule::Subset, &by_subset.members);
            equal("subset.presence", subset, presence(&by_subset.presence))?;
        }
        Ok(())
    });
    check_all("presence.feasibility", &vectors.feasibility, |row| {
        let n = row.validators;
        equal("k", subset::size(n as usize) as u32, row.k)?;
        let check = |rule: &str, base: u32, expected: &Visibility| {
            let need = canonical::of(base);
            equal(&format!("{rule}.threshold"), need, expected.threshold)?;
            let visibility = canonical::visibility(n, row.k, need);
            let expected = Some((expected.visible, expected.out_of));
            equal(&format!("{rule}.visible and out_of"), visibility, expected)
        };
        check("committee", n, &row.committee)?;
        check("quorum", canonical::quorum(n), &row.quorum)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectionCase {
    block_hash: Bytes,
    job_id: Bytes,
    submitted_at: u64,
    seed: Bytes,
    candidates: Vec<Candidate>,
    runners: usize,
    mru: Option<Bytes>,
    committee: Vec<Bytes>,
    retry_count: u32,
    retry_seed: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Candidate {
    address: Bytes,
    stake: Amount,
    weight: u64,
}

#[test]
fn selection() {
    let Some(cases) = vectors::<Vec<SelectionCase>>("selection") else { return };
    check_all("selection", &cases, |case| {
        let at = Height::new(case.submitted_at);
        let seed = selection::seed(case.block_hash.hash()?, case.job_id.hash()?, at);
        equal("seed", seed, case.seed.hash()?)?;
        let retry = selection::retry_seed(seed, case.retry_count);
        equal("retry_seed", retry, case.retry_seed.hash()?)?;
        let mut candidates = Vec::new();
        for (i, candidate) in case.candidates.iter().enumerate() {
            let weight = selection::stake_to_weight(candidate.stake.0);
            equal(&format!("candidates[{i}].weight"), weight, candidate.weight)?;
            candidates.push((candidate.address.address()?, candidate.stake.0));
        }
        let mru = case.mru.as_ref().map(Bytes::address).transpose()?;
        let multiplier = Connectivity::DEFAULT.mru_multiplier;
        let mru = mru.map(|runner| Favoured { runner, multiplier });
        let drawn = selection::draw(&candidates, seed, case.runners, mru);
        let committee = case.committee.iter().map(Bytes::address).collect::<Result<Vec<_>, _>>()?;
        equal("committee", &drawn.committee, &committee)?;
        let picked: Vec<_> = drawn.draws.iter().map(|draw| draw.picked).collect();
        equal("picked, draw by draw", &picked, &committee)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Basefee {
    dual: Vec<Dual>,
    lane: Vec<Lane>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dual {
    start: Amount,
    target: u64,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    used: u64,
    next: Amount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lane {
    start: Amount,
    lane: u64,
    steps: Vec<LaneStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneStep {
    consumed: u64,
    next: Amount,
}

#[test]
fn basefee() {
    let Some(vectors) = vectors::<Basefee>("basefee") else { return };
    check_all("basefee.dual", &vectors.dual, |case| {
        let mut fee = case.start.0;
        for (i, step) in case.steps.iter().enumerate() {
            fee = basefee::next(fee, step.used, case.target);
            equal(&format!("steps[{i}].next"), fee, step.next.0)?;
        }
        Ok(())
    });
    check_all("basefee.lane", &vectors.lane, |case| {
        let mut fee = case.start.0;
        for (i, step) in case.steps.iter().enumerate() {
            fee = basefee::next_lane(fee, step.consumed, case.lane, 8);
            equal(&format!("steps[{i}].next"), fee, step.next.0)?;
        }
        Ok(())
    });
}

/// A field element: decimal digits in a string.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Decimal(Element);

impl Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0u8; 32];
        for digit in text.chars() {
            let digit = digit.to_digit(10);
            let mut carry =
                digit.ok_or_else(|| D::Error::custom(format!("`{text}` is not a number")))?;
            for byte in bytes.iter_mut().rev() {
                carry += 10 * u32::from(*byte);
                *byte = carry as u8;
                carry >>= 8;
            }
            if carry != 0 {
                return Err(D::Error::custom(format!("`{text}` is beyond 256 bits")));
            }
        }
        let element = Element::from_bytes(&bytes).map(Self);
        element.ok_or_else(|| D::Error::custom(format!("`{text}` is not below the modulus")))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Poseidon2 {
    permutation: Vec<Permutation>,
    commitments: Vec<Commitment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Permutation {
    r#in: [Decimal; 4],
    out: [Decimal; 4],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commitment {
    output: [Decimal; 4],
    salt: Decimal,
    task_id: Decimal,
    agent_key: Bytes,
    agent: Decimal,
    constraint_hash: Decimal,
    output_commitment: Decimal,
    binding: Decimal,
}

#[test]
fn poseidon2() {
    let Some(vectors) = vectors::<Poseidon2>("poseidon2") else { return };
    check_all("poseidon2.permutation", &vectors.permutation, |case| {
        let out = case.out.map(|number| number.0);
        let input = case.r#in.map(|number| number.0);
        equal("out", proof::permute(input), out)?;
        equal("hash_4", proof::hash_4(input), out[0])
    });
    check_all("poseidon2.commitments", &vectors.commitments, |case| {
        let witness = Witness { output: case.output.map(|number| number.0), salt: case.salt.0 };
        let task_id = case.task_id.0.to_bytes();
        let statement = Statement::of(&task_id, &case.agent_key.array()?, &witness);
        equal("task_id", statement.task_id, case.task_id.0)?;
        equal("agent", statement.agent, case.agent.0)?;
        equal("constraint_hash", statement.constraint_hash, case.constraint_hash.0)?;
        equal("output_commitment", statement.output_commitment, case.output_commitment.0)?;
        equal("binding", statement.binding(), case.binding.0)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimerCases {
    timer_ids: Vec<TimerId>,
    max_cost: Vec<MaxCost>,
    default_gba: Vec<DefaultGba>,
    p50: Vec<P50>,
    reconnect_backoff: Vec<Backoff>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimerId {
    actor: Bytes,
    height: u64,
    payload: Bytes,
    nonce: u64,
    timer_id: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaxCost {
    gas_limit: u64,
    basefee_cycle: u64,
    basefee_lane: u64,
    priority: u64,
    max_cells: u64,
    basefee_cell: u64,
    max_cost: Amount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultGba {
    basefee_lane: u64,
    basefee_cell: u64,
    p50_tip: u64,
    bid: DefaultBid,
    tiers: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultBid {
    max_fee_per_cycle: u64,
    max_priority_fee_per_cycle: u64,
    max_fee_per_cell: u64,
    max_priority_fee_per_cell: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct P50 {
    tips: Vec<u64>,
    p50: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Backoff {
    attempt: u32,
    min_ms: u64,
    max_ms: u64,
}

fn wei(wei: u64) -> Wei {
    Wei::new(wei.into())
}

/// The prices that a block's timers pay under the policy `eip1559`.
fn prices(basefee_cycle: u64, basefee_lane: u64, basefee_cell: u64, config: TimerConfig) -> Prices {
    Prices {
        policy: Policy::Eip1559,
        basefee_cycle: wei(basefee_cycle),
        basefee_lane: wei(basefee_lane),
        basefee_cell: wei(basefee_cell),
        p50: Wei::ZERO,
        config,
    }
}

#[test]
fn timer() {
    let Some(vectors) = vectors::<TimerCases>("timer") else { return };
    check_all("timer.timer_ids", &vectors.timer_ids, |case| {
        let height = Height::new(case.height);
        let id = record::timer_id(&case.actor.address()?, height, &case.payload.0, case.nonce);
        equal("timer_id", id, case.timer_id.hash()?)
    });
    check_all("timer.max_cost", &vectors.max_cost, |case| {
        let config = TimerConfig::default();
        let prices = prices(case.basefee_cycle, case.basefee_lane, case.basefee_cell, config);
        let cost = prices.max_cost(case.gas_limit, case.max_cells, wei(case.priority));
        equal("max_cost", cost, case.max_cost.0)
    });
    check_all("timer.default_gba", &vectors.default_gba, |case| {
        let p50 = wei(case.p50_tip);
        let bid = eip1559::default_bid(wei(case.basefee_lane), wei(case.basefee_cell), p50);
        let expected = eip1559::TxFeeParams {
            max_fee_per_cycle: wei(case.bid.max_fee_per_cycle),
            max_priority_fee_per_cycle: wei(case.bid.max_priority_fee_per_cycle),
            max_fee_per_cell: wei(case.bid.max_fee_per_cell),
            max_priority_fee_per_cell: wei(case.bid.max_priority_fee_per_cell),
        };
        equal("bid", bid, expected)?;
        let multipliers = TimerConfig::default().priority_tier_multipliers;
        let tier = |tier: &Tier| {
            let priority = eip1559::tier_priority(p50, *tier, &multipliers);
            (tier.name().to_owned(), priority)
        };
        let tiers: BTreeMap<_, _> = Tier::ALL.iter().map(tier).collect();
        let expected = case.tiers.iter().map(|(name, tip)| (name.clone(), wei(*tip))).collect();
        equal("tiers", tiers, expected)
    });
    check_all("timer.p50", &vectors.p50, |case| {
        let mut tips: Vec<_> = case.tips.iter().copied().map(wei).collect();
        equal("p50", eip1559::p50(&mut tips), wei(case.p50))
    });
    check_all("timer.reconnect_backoff", &vectors.reconnect_backoff, |case| {
        let span = case.max_ms - case.min_ms;
        equal("min_ms", backoff::delay_ms(case.attempt, 0), case.min_ms)?;
        equal("max_ms", backoff::delay_ms(case.attempt, span), case.max_ms)?;
        equal("the range", backoff::delay_ms(case.attempt, span + 1), case.min_ms)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneCase {
    lane_basefee: u64,
    lane: u64,
    recent_executions: BTreeMap<String, u32>,
    twice_median: u64,
    timers: Vec<LaneTimer>,
    fired: Vec<Bytes>,
    deferred: Vec<Bytes>,
    consumed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneTimer {
    id: Bytes,
    actor: String,
    scheduled_at: u32,
    max_fee: u64,
    max_priority: u64,
    gas_limit: u32,
    uses: u64,
}

/// Actors with unlimited balances, by number.
struct Rich<'a> {
    fairness: &'a Fairness,
    actors: Vec<Address>,
}

impl LaneAccounts for Rich<'_> {
    fn balance(&mut self, _: u32) -> Wei {
        Wei::new(u128::MAX)
    }

    fn weight(&mut self, number: u32) -> u64 {
        let recent = self.fairness.recent(&self.actors[number as usize]);
        weight_numerator(recent, self.fairness.twice_median())
    }
}

#[test]
fn lane() {
    let Some(cases) = vectors::<Vec<LaneCase>>("lane") else { return };
    check_all("lane", &cases, |case| {
        let numbers: BTreeMap<&str, u32> =
            case.recent_executions.keys().map(String::as_str).zip(0..).collect();
        let actors: Vec<_> = (0..numbers.len()).map(|n| Address([n as u8; 20])).collect();
        let mut fairness = Fairness::default();
        let fires = actors.iter().copied().zip(case.recent_executions.values().copied());
        fairness.record(Height::new(1), &fires.collect());
        equal("twice_median", fairness.twice_median(), case.twice_median)?;

        let mut due = Vec::new();
        for (seq, timer) in (0..).zip(&case.timers) {
            let id = timer.id.hash()?;
            let actor = numbers.get(timer.actor.as_str()).copied();
            let actor = actor.ok_or_else(|| format!("{} has no fires listed", timer.actor))?;
            due.push(Due {
                id_and_cells: Due::id_and_cells(&id, 0),
                max_fee: timer.max_fee,
                max_priority: timer.max_priority,
                seq,
                height: timer.scheduled_at + 1,
                expires_at: u32::MAX,
                gas_limit: timer.gas_limit,
                actor,
                payer: actor,
            });
        }
        let config = TimerConfig { lane_timer_cycles: case.lane, ..TimerConfig::default() };
        let prices = prices(0, case.lane_basefee, 0, config);
        let mut accounts = Rich { fairness: &fairness, actors };
        let mut buffers = Buffers::default();
        let mut scan = lane::scan(&due, Height::new(1_000), &prices, &mut accounts, &mut buffers);
        equal("removed", (scan.expired, scan.insolvent), (Vec::new(), Vec::new()))?;
        let mut fired = Vec::new();
        let consumed = scan.ranking.fill(prices.room(), |pick| {
            let timer = &case.timers[pick.index as usize];
            fired.push(timer.id.clone());
            Some(Room { cycles: timer.uses, cells: 0 })
        });
        // The vectors break ties by id alone. Here the greater weight and the lower height come
        // before the id, so timers that the vectors rank equal are compared as a set.
        let most = config.max_cycles_per_fire_auction_phase;
        let mut alike: BTreeMap<Reverse<u128>, BTreeSet<&[u8]>> = BTreeMap::new();
        for timer in case.timers.iter().filter(|timer| u64::from(timer.gas_limit) <= most) {
            let Some(room) = timer.max_fee.checked_sub(case.lane_basefee) else { continue };
            let weight = accounts.weight(numbers[timer.actor.as_str()]);
            let rank = u128::from(room.min(timer.max_priority)) * u128::from(weight);
            alike.entry(Reverse(rank)).or_default().insert(&timer.id.0);
        }
        if alike.values().all(|ids| ids.len() == 1) {
            equal("fired", &fired, &case.fired)?;
        }
        let mut from = 0;
        for ids in alike.into_values() {
            let run = |list: &[Bytes]| -> BTreeSet<Vec<u8>> {
                let fires = list[from..].iter().map(|id| &id.0);
                fires.take_while(|id| ids.contains(id.as_slice())).cloned().collect()
            };
            let (got, expected) = (run(&fired), run(&case.fired));
            if got != expected {
                // Only some of a tie fit, other ones here, and from here on the room differs.
                let chosen = (ids.len() > 1, got.is_empty(), expected.is_empty());
                return equal("a tie of which some fire", chosen, (true, false, false));
            }
            from += got.len();
        }
        equal("consumed", consumed.cycles, case.consumed)?;
        let ids = case.timers.iter().map(|timer| timer.id.clone());
        let mut deferred: Vec<_> = ids.filter(|id| !fired.contains(id)).collect();
        deferred.sort_by(|a, b| a.0.cmp(&b.0));
        equal("deferred", &deferred, &case.deferred)
    });
}

#[test]
fn actor_attacks() {
    let Some(mut attacks) = vectors::<attacks::Attacks>("actor-attacks") else { return };
    attacks.cases.extend(attacks::own());
    let params = actor::ActorParams::default();
    let budget = Budget { cycles: 1_000_000, cells: 1_000_000 };
    check_all("actor-attacks", &attacks.cases, |case| {
        let source = case.source();
        let run = || match Module::load(&source, &params, budget) {
            (_, Err(error)) => (0, Some(error)),
            (usage, Ok(module)) => {
                let suite = Suite::new(&source, (&usage, &module), &Setup::default());
                let report = suite.expect("a chain can begin so").test("f", budget);
                (report.usage.cycles(), report.error)
            }
        };
        let (cycles, error) = run();
        equal("the same end twice", run(), (cycles, error.clone()))?;
        if cycles > budget.cycles {
            return Err(format!("{}: used {cycles} cycles", case.name));
        }
        if !case.allows(error.as_ref().map(|error| &error.kind)) {
            let got = error.map_or("success".to_owned(), |error| error.to_string());
            return Err(format!("{}: expected {}, got {got}", case.name, case.stopped_by));
        }
        Ok(())
    });
}

#[test]
fn lease() {
    let Some(vectors) = vectors::<lease::Vectors>("lease") else { return };
    check_all("lease", &vectors.cases, |case| lease::check(&vectors, case));
}

#[test]
fn speculation() {
    let Some(vectors) = vectors::<speculation::Vectors>("speculation") else { return };
    check_all("speculation", &vectors.cases, |case| speculation::check(&vectors, case));
}
