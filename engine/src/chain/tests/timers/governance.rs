//! Parameters that change on a running chain: who may change them, the block from which they apply,
//! and the effect on due timers.

use super::*;
use crate::timer::{
    Governed, Key, Params as TimerParams, Proposal, ProposedValue,
    auction::{Standing, Weighting},
};
use event::{TimerConfigActivated, TimerConfigProposed, TimerGasClamped, TimerPolicyActivated};
use transaction::{SetParameter, UpdateTimerConfig};

const LANE: &str = "system:cip5:lane_timer_cycles";
const WINDOW: &str = "system:cip1:fairness_window_blocks";

fn settings(of: &[(&str, u64)]) -> Vec<ProposedValue> {
    of.iter().map(|(key, value)| ProposedValue { key: (*key).to_owned(), value: *value }).collect()
}

fn propose(of: &[(&str, u64)], height: Option<u64>) -> Payload {
    let height = height.map(Height::new);
    Payload::SysUpdateTimerConfig(UpdateTimerConfig { settings: settings(of), height })
}

fn to(policy: Policy) -> (&'static str, u64) {
    (Key::POLICY, policy.number())
}

impl Chain {
    fn proposes(&mut self, of: &[(&str, u64)], height: Option<u64>) -> Execution {
        let execution = self.one("bob", propose(of, height));
        assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
        execution
    }

    fn governed(&self) -> Governed {
        self.state.governed()
    }

    /// A timer at `height` that costs about its gas limit and waits indefinitely.
    fn spins(&mut self, actor: Address, height: u64, gas_limit: u64) -> Hash {
        self.schedule(TimerRequest {
            gas_limit: Some(gas_limit),
            max_fee_per_cycle: Some(Wei::new(1_000_000)),
            max_priority_fee_per_cycle: Some(Wei::ZERO),
            ..request(actor, height, "spin")
        })
    }
}

/// The events of a block about proposals.
fn told(execution: &Execution) -> Vec<&EventKind> {
    let kinds = execution.events.iter().map(|event| &event.kind);
    let of_proposals = |kind: &&EventKind| {
        matches!(
            kind,
            EventKind::TimerConfigProposed(_)
                | EventKind::TimerConfigActivated(_)
                | EventKind::TimerPolicyActivated(_)
        )
    };
    kinds.filter(of_proposals).collect()
}

#[test]
fn values_hold_from_the_block_on_that_was_proposed() {
    let mut chain = chain();
    let at = chain.here() + 6;
    let proposed = chain.proposes(&[(LANE, 300_000), (WINDOW, 7)], Some(at));
    let bob = key("bob").address();
    let (height, given) = (Height::new(at), settings(&[(LANE, 300_000), (WINDOW, 7)]));
    let expected = TimerConfigProposed { by: bob, height, settings: given };
    assert_eq!(told(&proposed), [&expected.into()]);
    let kept = settings(&[(WINDOW, 7), (LANE, 300_000)]);
    let entry = Proposal { height, by: Some(bob), settings: kept.clone() };
    assert_eq!(chain.state.lane().pending, [entry]);
    while chain.here() + 1 < at {
        let execution = chain.push(vec![]);
        assert_eq!((execution.lane.capacity, told(&execution).len()), (2_000_000, 0));
    }
    // The state has the next block's values; the event is in that block.
    assert_eq!(chain.state.lane().config.fairness_window_blocks, 7);
    let execution = chain.push(vec![]);
    assert_eq!(execution.lane.capacity, 300_000);
    let expected = TimerConfigActivated { by: Some(bob), settings: kept };
    assert_eq!(told(&execution), [&expected.into()]);
    assert_eq!(chain.state.lane().pending, []);
    assert_eq!(told(&chain.push(vec![])), [] as [&EventKind; 0]);
}

#[test]
fn governed_parameters_change_alone_or_together() {
    let mut chain = chain();
    let key = || "system:cip5:gc_cycles_per_block".to_owned();
    let set = |value| Payload::SetParameter(SetParameter { key: key(), value });
    // Several proposals in one block are combined, and the last one for each key counts.
    let both = [
        chain.sign_at("bob", 0, set(400)),
        chain.sign_at("bob", 1, propose(&[(LANE, 5), (WINDOW, 6)], None)),
        chain.sign_at("bob", 2, set(500)),
    ];
    let execution = chain.push(both.to_vec());
    assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
    let before: Vec<_> = execution
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ParameterSet(set) => Some((set.before, set.after)),
            _ => None,
        })
        .collect();
    assert_eq!(before, [(5_000_000, 400), (400, 500)]);
    let config = chain.state.lane().config;
    assert_eq!((config.gc_cycles_per_block, config.lane_timer_cycles), (500, 5));
    assert_eq!(config.fairness_window_blocks, 6);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut chain = chain();
    chain.proposes(&[("system:cip1:weight_min", 900_000)], Some(60));
    let before = (chain.governed(), chain.state.lane().pending.clone());
    let here = chain.here();
    for (of, height, error) in [
        (&[(LANE, 0)][..], None, "ParameterOutOfRange: system:cip5:lane_timer_cycles is from 1"),
        (&[("system:cip1:nothing", 1)], None, "UnknownParameter: "),
        (&[], Some(40), "EmptyProposal: "),
        (&[(LANE, 5), (LANE, 5)], Some(40), "ParameterRepeated: system:cip5:lane_timer_cycles "),
        (&[(LANE, 5)], Some(here), "ActivationInPast: "),
        (&[(LANE, 5)], Some(here + 3_000_000), "ActivationTooFar: "),
        (&[to(Policy::Fifo), ("system:cip1:lane_basefee_max", 0)], None, "ParameterOutOfRange: "),
        (&[(Key::POLICY, 3)], None, "ParameterOutOfRange: system:cip1:policy is from 0 to 2"),
        // Valid by itself, but not together with a proposal pending for a later block.
        (&[("system:cip1:weight_starvation_floor", 800_000)], Some(50), "ParameterConflict: "),
    ] {
        let refused = chain.refused("bob", propose(of, height));
        assert!(refused.starts_with(error), "{refused}");
    }
    let refused = chain.refused("alice", propose(&[(LANE, 5)], None));
    assert!(refused.starts_with("Unauthorized: "), "{refused}");
    let key = "system:cip1:weight_starvation_floor".to_owned();
    let set = chain.refused("bob", Payload::SetParameter(SetParameter { key, value: 600_000 }));
    assert!(set.ends_with("from block 60 on, with what is pending"), "{set}");
    assert_eq!((chain.governed(), chain.state.lane().pending.clone()), before);
    for n in 1..16 {
        chain.proposes(&[(LANE, 5)], Some(100 + n));
    }
    let many = chain.refused("bob", propose(&[(LANE, 5)], Some(99)));
    assert!(many.starts_with("TooManyProposals: proposals are pending for 16 heights"), "{many}");
    chain.proposes(&[(LANE, 6)], Some(101));
    chain.proposes(&[(LANE, 7)], None);
}

#[test]
fn a_genesis_document_has_the_bounds_of_every_later_value() {
    let refused = |change: fn(&mut TimerParams)| {
        let mut genesis = genesis(1);
        change(&mut genesis.params.timers);
        genesis.state().unwrap_err().to_string()
    };
    let out = refused(|params| params.config.lane_timer_cycles = 0);
    assert_eq!(
        out,
        "timers: ParameterOutOfRange: system:cip5:lane_timer_cycles is from 1 to 1000000000, not 0"
    );
    let out = refused(|params| params.config.weights.min = 999_999_999);
    assert!(out.contains("system:cip1:weight_min is from 1 to 1000000"), "{out}");
    let out = refused(|params| params.config.weights.starvation_floor = 5_000_000);
    assert!(out.starts_with("timers: ParameterConflict: "), "{out}");
    let out = refused(|params| params.genesis_lane_basefee = Wei::ZERO);
    assert!(out.contains("genesis_lane_basefee is from 1 to "), "{out}");
}

/// Two proposals for different blocks, then another one for the first block.
#[test]
fn proposals_hold_one_after_the_other() {
    let mut chain = chain();
    let at = chain.here() + 8;
    chain.proposes(&[to(Policy::Fifo), (LANE, 400_000)], Some(at + 3));
    chain.proposes(&[to(Policy::GbaAuction)], Some(at));
    chain.proposes(&[(LANE, 300_000)], Some(at));
    let mut seen = Vec::new();
    while chain.here() < at + 4 {
        let planned = chain.state.lane().policy_at(chain.state.height().next());
        let execution = chain.push(vec![]);
        assert_eq!(execution.lane.policy, planned);
        seen.push((chain.here(), execution.lane.policy, execution.lane.capacity));
    }
    let last: Vec<_> = seen.into_iter().filter(|(height, ..)| height + 2 > at).collect();
    assert_eq!(
        last,
        [
            (at - 1, Policy::Eip1559, 2_000_000),
            (at, Policy::GbaAuction, 300_000),
            (at + 1, Policy::GbaAuction, 300_000),
            (at + 2, Policy::GbaAuction, 300_000),
            (at + 3, Policy::Fifo, 400_000),
            (at + 4, Policy::Fifo, 400_000),
        ]
    );
}

/// Timers wait for a small lane when the policy changes, for each pair of policies. None is lost or
/// stranded, and each pays by the block's policy.
#[test]
fn a_busy_lane_goes_on_under_another_policy() {
    for (from, into) in [
        (Policy::Eip1559, Policy::Fifo),
        (Policy::Eip1559, Policy::GbaAuction),
        (Policy::Fifo, Policy::Eip1559),
        (Policy::GbaAuction, Policy::Eip1559),
        (Policy::GbaAuction, Policy::Fifo),
        (Policy::Fifo, Policy::GbaAuction),
    ] {
        let mut chain = with(|params| {
            params.timers.config.lane_timer_cycles = 400_000;
        });
        let clock = chain.clock();
        let at = chain.here() + 30;
        let ids: Vec<_> = (0..12).map(|_| chain.spins(clock, at, 150_000)).collect();
        // Above the cap of eip1559: it can fire only under the others, or clamped.
        let large = chain.spins(clock, at, 350_000);
        chain.proposes(&[to(from)], None);
        chain.proposes(&[to(into)], Some(at + 2));
        let mut fired = Vec::new();
        while chain.here() < at + 1 {
            fired.extend(chain.push(vec![]).fires);
        }
        let (waiting, due) = (chain.state.timers().len(), chain.state.timers().root());
        assert!(waiting > 6, "{from} {into}: the lane is busy");
        let execution = chain.push(vec![]);
        let policy = TimerPolicyActivated { policy: into };
        assert!(told(&execution).contains(&&policy.into()), "{from} {into}");
        assert_eq!(execution.lane.policy, into);
        assert_ne!(chain.state.timers().root(), due);
        let prices = execution.fires.iter().map(|fire| fire.charged.burned_lane > Wei::ZERO);
        let priced: Vec<_> = prices.collect();
        assert!(!priced.is_empty() && priced.iter().all(|lane| *lane == (into == Policy::Eip1559)));
        let clamped = execution.events.iter().any(|event| {
            matches!(&event.kind, EventKind::TimerGasClamped(TimerGasClamped { timer_id, .. })
                if *timer_id == large)
        });
        let waits = fired.iter().all(|fire| fire.timer_id != large);
        assert_eq!(clamped, waits && into == Policy::Eip1559, "{from} {into}");
        fired.extend(execution.fires);
        for _ in 0..12 {
            fired.extend(chain.push(vec![]).fires);
        }
        let mut all: Vec<_> = fired.iter().map(|fire| fire.timer_id).collect();
        all.sort_unstable();
        let mut expected = [&ids[..], &[large]].concat();
        expected.sort_unstable();
        assert_eq!(all, expected, "{from} {into}: each fires once");
    }
}

#[test]
fn fires_count_on_under_another_policy() {
    let mut chain = chain();
    let [busy, quiet] = [chain.clock(), chain.clock()];
    let fires = |chain: &mut Chain, actor, times: u64| {
        let at = chain.here() + times + 2;
        for _ in 0..times {
            chain.spins(actor, at, 50_000);
        }
        chain.until(at);
    };
    fires(&mut chain, busy, 3);
    fires(&mut chain, quiet, 1);
    let counts = |chain: &Chain| [busy, quiet].map(|actor| chain.state.fairness().recent(&actor));
    assert_eq!(counts(&chain), [3, 1]);
    // Timers scheduled earlier fire under the auction, which counts them too.
    let at = chain.here() + 5;
    chain.spins(busy, at, 50_000);
    chain.proposes(&[to(Policy::GbaAuction)], None);
    chain.until(at);
    assert_eq!(counts(&chain), [4, 1]);
    let at = chain.here() + 5;
    chain.proposes(&[to(Policy::Fifo)], None);
    chain.proposes(&[to(Policy::Eip1559)], Some(at));
    chain.until(at);
    assert_eq!(counts(&chain), [4, 1], "fifo neither counts nor forgets");
}

/// Weights belong to the auction: they are reset when it begins, and keep within their bounds.
#[test]
fn weights_begin_again_with_the_auction() {
    let mut chain = policy(Policy::GbaAuction);
    let clock = chain.clock();
    // The state after an epoch in which one of its timers waited too long.
    let starved = Standing { due: 1, fresh: 1, starved: 1, ..Standing::default() };
    let (auction, rules) = (&mut chain.state.timers.auction, Weighting::default());
    auction.record(1_000, [(clock, starved)]);
    auction.rollover(&rules);
    assert_eq!(auction.weight(&clock), rules.starvation_floor);
    let bounds =
        [("system:cip1:weight_max", 1_200_000), ("system:cip1:weight_starvation_floor", 1_100_000)];
    chain.proposes(&bounds, None);
    assert_eq!(chain.state.auction().weight(&clock), 1_200_000);
    chain.proposes(&[to(Policy::Eip1559)], None);
    assert_eq!(chain.state.auction().weights().count(), 0);
}

#[test]
fn the_lane_costs_what_is_governed() {
    let mut chain = chain();
    let clock = chain.clock();
    chain.proposes(&[("system:cip3:lane_fee_multiplier", 500)], None);
    let at = chain.here() + 3;
    let id = chain.spins(clock, at, 50_000);
    let next = Height::new(at);
    chain.until(at - 1);
    let (basefee, price) = (chain.state.lane().basefee, chain.state.lane_basefee(next));
    assert_eq!(price.get(), basefee.get() / 2);
    let execution = chain.push(vec![]);
    let fire = execution.fires.iter().find(|fire| fire.timer_id == id).unwrap();
    assert_eq!(fire.charged.burned_lane, price.saturating_mul(fire.cycles.get().into()));
    // Bounds apply immediately, and a block lowers the basefee by at most half.
    chain.proposes(
        &[
            ("system:cip1:lane_basefee_min", 40_000),
            ("system:cip1:lane_basefee_max", 90_000),
            ("system:cip1:lane_basefee_change_denominator", 2),
        ],
        None,
    );
    assert_eq!(chain.state.lane().basefee.get(), 40_000);
    chain.proposes(&[("system:cip1:lane_basefee_min", 1)], None);
    assert_eq!(chain.state.lane().basefee.get(), 40_000);
    chain.push(vec![]);
    assert_eq!(chain.state.lane().basefee.get(), 20_000);
}

/// Two validators, one of which restores a snapshot of the other in the middle of a proposal.
#[test]
fn a_snapshot_in_the_middle_of_a_proposal_gives_the_same_roots() {
    let mut chain = with(|params| params.timers.config.lane_timer_cycles = 400_000);
    let clock = chain.clock();
    let at = chain.here() + 20;
    for n in 0..8 {
        chain.spins(clock, at - 2 + n % 3, 150_000);
    }
    chain.proposes(&[to(Policy::GbaAuction), (LANE, 350_000)], Some(at));
    chain.proposes(&[to(Policy::Fifo)], Some(at + 2));
    let mut other = State::from_bytes(&chain.state.to_bytes()).unwrap();
    while chain.here() < at + 4 {
        let block = chain.block(vec![]);
        // As after a restart: nothing in memory except what was stored.
        other = State::from_bytes(&other.to_bytes()).unwrap();
        other = execute(&other, &block).unwrap().state;
        chain.push(vec![]);
        assert_eq!(other.root(), chain.state.root());
        assert_eq!(other.lane(), chain.state.lane());
    }
    assert_eq!(chain.governed().policy, Policy::Fifo);
}

/// Pending proposals are part of the root: two states that differ only in them have different
/// roots.
#[test]
fn the_root_covers_what_is_pending() {
    let mut chain = chain();
    let root = |chain: &Chain| chain.state.root();
    chain.proposes(&[(LANE, 5)], Some(40));
    let one = root(&chain);
    chain.state.timers.lane.pending[0].settings[0].value = 6;
    assert_ne!(root(&chain), one);
    chain.state.timers.lane.pending.clear();
    assert_ne!(root(&chain), one);
}
