//! The governed parameters of connections and of the MRU preference: the effect of each, and how a
//! running chain changes them.

use super::*;
use crate::{
    job::selection::Favoured,
    presence::{Connectivity, ThresholdRule},
    timer::ProposedValue,
};
use event::{ConnectivityActivated, ConnectivityProposed, ParameterSet, SubsetEpochAdvanced};
use transaction::{SetParameter, UpdateTimerConfig};

const ACK: &str = "system:cip11:ack_timeout_blocks";
const MULTIPLIER: &str = "system:cip11:mru_multiplier";
const PRESENCE: &str = "system:cip11:presence_timeout_blocks";
const SUBSET: &str = "system:cip11:subset_epoch_blocks";
const OVERLAP: &str = "system:cip11:overlap_blocks";
const STALE: &str = "system:cip11:stale_heartbeat_blocks";
const TTL: &str = "system:cip11:mru_ttl_blocks";
const LANE: &str = "system:cip5:lane_timer_cycles";

/// A chain that bob governs.
fn with(connectivity: Connectivity) -> Chain {
    let params =
        Params { connectivity, system_deployers: vec![key("bob").address()], ..Params::default() };
    Chain::new(&Genesis { params, ..genesis(4) })
}

fn settings(of: &[(&str, u64)]) -> Vec<ProposedValue> {
    of.iter().map(|(key, value)| ProposedValue { key: (*key).to_owned(), value: *value }).collect()
}

fn propose(of: &[(&str, u64)], height: Option<u64>) -> Payload {
    let height = height.map(Height::new);
    Payload::SysUpdateTimerConfig(UpdateTimerConfig { settings: settings(of), height })
}

impl Chain {
    fn set(&mut self, key: &str, value: u64) -> Execution {
        self.accepted(Payload::SetParameter(SetParameter { key: key.to_owned(), value }))
    }

    /// Pushes empty blocks until the head is at `height`; returns the advances of the subset epoch.
    fn advances(&mut self, height: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        while self.state.height().get() < height {
            let foreseen = self.state.subset_epoch_at(self.state.height().next());
            let execution = self.push(vec![]);
            let at = self.state.height();
            assert_eq!(foreseen, Some(self.state.head().subset_epoch), "at {at}");
            assert_eq!(self.state.subset_epoch_at(at), foreseen);
            found.extend(execution.events.iter().filter_map(|event| match event.kind {
                EventKind::SubsetEpochAdvanced(SubsetEpochAdvanced { epoch }) => {
                    Some((at.get(), epoch))
                }
                _ => None,
            }));
        }
        found
    }
}

fn told(execution: &Execution) -> Vec<&EventKind> {
    let kinds = execution.events.iter().map(|event| &event.kind);
    let of_connectivity = |kind: &&EventKind| {
        matches!(
            kind,
            EventKind::ConnectivityProposed(_)
                | EventKind::ConnectivityActivated(_)
                | EventKind::TimerConfigProposed(_)
                | EventKind::TimerConfigActivated(_)
        )
    };
    kinds.filter(of_connectivity).collect()
}

#[test]
fn values_hold_from_the_block_on_that_was_proposed_on_every_validator() {
    let mut chain = with(Connectivity::DEFAULT);
    let bob = key("bob").address();
    let both = [(ACK, 9), (LANE, 300_000), (MULTIPLIER, 7)];
    let proposed = chain.accepted(propose(&both, Some(6)));
    let height = Height::new(6);
    let given = settings(&[(ACK, 9), (MULTIPLIER, 7)]);
    // Other parameters are reported in their own event.
    assert_eq!(told(&proposed).len(), 2);
    let expected = ConnectivityProposed { by: bob, height, settings: given.clone() };
    assert!(told(&proposed).contains(&&expected.into()));
    let mut other = State::from_bytes(&chain.state.to_bytes()).unwrap();
    while chain.state.height().get() < 5 {
        assert_eq!(*chain.state.connectivity(), Connectivity::DEFAULT);
        let block = chain.block(vec![]);
        other = State::from_bytes(&execute(&other, &block).unwrap().state.to_bytes()).unwrap();
        chain.push(vec![]);
        assert_eq!(other.root(), chain.state.root());
    }
    let now = Connectivity { ack_timeout_blocks: 9, mru_multiplier: 7, ..Connectivity::DEFAULT };
    assert_eq!(*chain.state.connectivity(), now, "as the next block finds it");
    assert_eq!((*other.connectivity(), other.root()), (now, chain.state.root()));
    let activated = chain.push(vec![]);
    let expected = ConnectivityActivated { by: Some(bob), settings: given };
    assert!(told(&activated).contains(&&expected.into()));
    assert_eq!(told(&chain.push(vec![])), [] as [&EventKind; 0]);

    let execution = chain.set(ACK, 4);
    let expected = ParameterSet { key: ACK.to_owned(), before: 9, after: 4 };
    assert!(execution.events.iter().any(|event| event.kind == expected.clone().into()));
    assert_eq!(chain.state.connectivity().ack_timeout_blocks, 4);
}

/// Two states that differ in one value have different roots, and a snapshot contains each value.
#[test]
fn the_root_covers_every_value() {
    let mut chain = with(Connectivity::DEFAULT);
    let root = chain.state.root();
    let default = Connectivity::DEFAULT;
    for changed in [
        Connectivity { subset_epoch_blocks: 64, ..default },
        Connectivity { overlap_blocks: 8, ..default },
        Connectivity { heartbeat_blocks: 2, ..default },
        Connectivity { presence_timeout_blocks: 5, ..default },
        Connectivity { ack_timeout_blocks: 5, ..default },
        Connectivity { stale_heartbeat_blocks: 64, ..default },
        Connectivity { mru_ttl_blocks: 8, ..default },
        Connectivity { mru_multiplier: 9, ..default },
    ] {
        chain.state.connectivity = changed;
        assert_ne!(chain.state.root(), root, "{changed:?}");
        let snapshot = State::from_bytes(&chain.state.to_bytes()).unwrap();
        assert_eq!((*snapshot.connectivity(), snapshot.root()), (changed, chain.state.root()));
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut chain = with(Connectivity::DEFAULT);
    for (of, error) in [
        (&[(SUBSET, 7)][..], "ParameterOutOfRange: system:cip11:subset_epoch_blocks is from 8 to"),
        (&[(MULTIPLIER, 0)], "ParameterOutOfRange: system:cip11:mru_multiplier is from 1 to 100,"),
        (&[(PRESENCE, 61)], "ParameterOutOfRange: system:cip11:presence_timeout_blocks is from 2"),
        (&[(STALE, 63)], "ParameterOutOfRange: system:cip11:stale_heartbeat_blocks is from 64 to"),
        (
            &[(SUBSET, 32)],
            "ParameterConflict: system:cip11:overlap_blocks would be 32, not below \
             system:cip11:subset_epoch_blocks, which would be 32",
        ),
        (
            &[("system:cip11:heartbeat_blocks", 3)],
            "ParameterConflict: system:cip11:heartbeat_blocks would be 3, not below \
             system:cip11:presence_timeout_blocks, which would be 3",
        ),
        (
            &[("system:cip11:heartbeat_blocks", 2), (ACK, 1)],
            "ParameterConflict: system:cip11:heartbeat_blocks would be 2, above \
             system:cip11:ack_timeout_blocks, which would be 1",
        ),
    ] {
        chain.turned_down(propose(of, None), error);
    }
    assert_eq!(*chain.state.connectivity(), Connectivity::DEFAULT);
    assert_eq!(chain.state.lane().pending, []);
    let execution = chain.one("alice", propose(&[(ACK, 4)], None));
    assert!(execution.receipts[0].status.error().unwrap().starts_with("Unauthorized: "));

    let connectivity = Connectivity { overlap_blocks: 8_192, ..Connectivity::DEFAULT };
    let params = Params { connectivity, ..Params::default() };
    let error = Genesis { params, ..genesis(1) }.state().unwrap_err().to_string();
    assert!(error.starts_with("connectivity: ParameterConflict: "), "{error}");
}

#[test]
fn a_subset_epoch_of_64_blocks_advances_at_64() {
    let connectivity = Connectivity { subset_epoch_blocks: 64, ..Connectivity::DEFAULT };
    let mut chain = with(connectivity);
    assert_eq!(chain.state.params().epoch_blocks, 256, "whatever consensus epochs have");
    assert_eq!(chain.advances(200), [(64, 1), (128, 2), (192, 3)]);
    let ahead = |height| chain.state.subset_epoch_at(Height::new(height));
    assert_eq!((ahead(255), ahead(63)), (Some(3), Some(0)));
    assert_eq!(ahead(256), None, "of the next consensus epoch's committee nothing is known");
    let counting = |height| -> Vec<u64> {
        let epochs = chain.state.subset_epochs_at(Height::new(height));
        epochs.iter().map(|epoch| epoch.number).collect()
    };
    assert_eq!((counting(192), counting(223), counting(224)), (vec![3, 2], vec![3, 2], vec![3]));
}

/// All voters of an epoch know a new length before the epoch begins.
#[test]
fn another_length_of_subset_epochs_counts_from_the_next_consensus_epoch_on() {
    let mut chain = with(Connectivity::DEFAULT);
    chain.accepted(propose(&[(SUBSET, 16), (OVERLAP, 4)], Some(40)));
    assert_eq!(chain.advances(255), []);
    assert_eq!(chain.state.connectivity().subset_epoch_blocks, 16);
    assert_eq!(chain.advances(280), [(256, 1), (272, 2)]);
    let counting = |height| chain.state.subset_epochs_at(Height::new(height)).len();
    assert_eq!((counting(275), counting(276)), (2, 1));
    // A voter that lags behind uses the same length as the chain.
    chain.accepted(propose(&[(SUBSET, 100)], None));
    assert_eq!(
        chain.advances(520),
        [
            (288, 3),
            (304, 4),
            (320, 5),
            (336, 6),
            (352, 7),
            (368, 8),
            (384, 9),
            (400, 10),
            (416, 11),
            (432, 12),
            (448, 13),
            (464, 14),
            (480, 15),
            (496, 16),
        ]
    );
    assert_eq!(chain.advances(700), [(596, 17), (696, 18)]);
}

/// The committee has changed by less than a tenth, so only time brings the change into the subsets.
#[test]
fn a_subset_epoch_that_time_ends_takes_the_committee_of_its_first_block() {
    let params = Params {
        connectivity: Connectivity { subset_epoch_blocks: 40, ..Connectivity::DEFAULT },
        epoch_blocks: 16,
        threshold_rule: ThresholdRule::Subset,
        system_deployers: vec![key("bob").address()],
        ..Params::default()
    };
    let mut chain = Chain::new(&Genesis { params, validators: validators(20), ..genesis(3) });
    chain.certify = false;
    let leaves = transaction::RemoveValidator { validator: key("validator-3").address() };
    chain.accepted(Payload::RemoveValidator(leaves));
    chain.advances(39);
    assert_eq!(chain.state.validators().len(), 19);
    assert_eq!(chain.state.subset_epochs().0.validators.len(), 20);
    assert_eq!(chain.advances(40), [(40, 1)]);
    assert_eq!(chain.state.subset_epochs().0.validators.len(), 19);
}

#[test]
fn a_p_of_h_counts_for_as_long_as_is_governed() {
    for presence_timeout_blocks in [2, 3, 6] {
        let mut chain = with(Connectivity { presence_timeout_blocks, ..Connectivity::DEFAULT });
        chain.push(vec![]);
        chain.push(vec![]);
        chain.certify = false;
        // P(1) is known from block 2 on, and block H reads it as long as H − 1 − 1 does not exceed
        // the timeout.
        let mut last = chain.state.height().get();
        while !kinds(&chain.push(vec![])).contains(&"PresenceUnavailable") {
            last = chain.state.height().get();
        }
        assert_eq!(last, presence_timeout_blocks + 2);
    }
    // On a running chain a longer timeout applies immediately.
    let mut chain = with(Connectivity::DEFAULT);
    chain.push(vec![]);
    chain.set(PRESENCE, 8);
    chain.certify = false;
    while chain.state.height().get() < 10 {
        let told = kinds(&chain.push(vec![]));
        assert!(!told.contains(&"PresenceUnavailable"), "{}", chain.state.height());
    }
    assert_eq!(kinds(&chain.push(vec![])), ["PresenceUnavailable"]);
}

#[test]
fn a_heartbeat_is_stale_when_it_is_governed_to_be() {
    let mut chain = with(Connectivity { stale_heartbeat_blocks: 64, ..Connectivity::DEFAULT });
    chain.advances(63);
    let dropped = |execution: &Execution| execution.draws[0].verdicts[0].dropped_by.is_some();
    let submit = || Payload::SubmitJob(Arc::new(spec()));
    assert!(!dropped(&chain.one("alice", submit())), "64 blocks old");
    assert!(dropped(&chain.one("alice", submit())), "65 blocks old");
    chain.set(STALE, 70);
    assert!(!dropped(&chain.one("alice", submit())));
}

/// Runs a job and returns its draw.
fn job(chain: &mut Chain) -> (Hash, Option<Favoured>, u64) {
    let nonce = chain.state.account(&key("alice").address()).nonce;
    let id = spec().job_id(&key("alice").address(), nonce);
    let execution = chain.one("alice", Payload::SubmitJob(Arc::new(spec())));
    let draw = &execution.draws[0];
    (id, draw.favoured(chain.state.height()), draw.selection.draws[0].total)
}

fn finish(chain: &mut Chain, id: Hash) -> Address {
    let runner = chain.committee(&id)[0];
    let payload = chain.result(id, &name_of(&runner), &runner, b"hi");
    chain.accepted(payload);
    runner
}

#[test]
fn an_mru_record_of_8_blocks_expires_at_8() {
    for (later, live) in [(8, true), (9, false)] {
        let mut chain = with(Connectivity { mru_ttl_blocks: 8, ..Connectivity::DEFAULT });
        chain.push(vec![]);
        chain.push(vec![]);
        let (id, ..) = job(&mut chain);
        let runner = finish(&mut chain, id);
        let set_at = chain.state.height().get();
        chain.advances(set_at + later - 1);
        let (_, mru, _) = job(&mut chain);
        assert_eq!(chain.state.height().get(), set_at + later);
        let expected = live.then_some(Favoured { runner, multiplier: 4 });
        assert_eq!(mru, expected, "{later} blocks later");
        assert_eq!(chain.state.mru().count(), usize::from(live), "read past its time it goes");
    }
}

#[test]
fn the_mru_runner_weighs_what_is_governed() {
    let mut chain = with(Connectivity::DEFAULT);
    chain.push(vec![]);
    chain.push(vec![]);
    // Four runners weigh 2 each.
    let (id, mru, total) = job(&mut chain);
    assert_eq!((mru, total), (None, 8));
    let runner = finish(&mut chain, id);
    let (id, mru, total) = job(&mut chain);
    assert_eq!((mru, total), (Some(Favoured { runner, multiplier: 4 }), 14));
    let runner = finish(&mut chain, id);
    chain.set(MULTIPLIER, 10);
    let (id, mru, total) = job(&mut chain);
    assert_eq!((mru, total), (Some(Favoured { runner, multiplier: 10 }), 26));
    finish(&mut chain, id);
    chain.set(MULTIPLIER, 1);
    assert_eq!(job(&mut chain).2, 8, "no preference");
    chain.set(TTL, 1);
    chain.push(vec![]);
    assert_eq!(job(&mut chain).1, None, "a shorter life counts for what there is");
}
