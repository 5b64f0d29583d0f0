//! Migration phases: who may change them, when they take effect, and their effect on draws.

use super::*;
use crate::{
    job::filter::Filter,
    presence::{Connectivity, Migration, Phase},
    registry::Health,
};
use transaction::SetPhase;

/// Three runners, none of which is present in P(H); `bob` governs.
fn chain(phase: Phase) -> Chain {
    let mut genesis = genesis(3);
    genesis.params.phase = phase;
    genesis.params.system_deployers = vec![key("bob").address()];
    Chain { certify: false, ..Chain::new(&genesis) }
}

fn set(phase: Phase) -> Payload {
    Payload::SetPhase(SetPhase { phase })
}

/// The filter that dropped each runner in the block's only draw.
fn dropped(execution: &Execution) -> Vec<Option<&'static str>> {
    let [draw] = execution.draws.as_slice() else { panic!("{:?}", execution.draws) };
    draw.verdicts.iter().map(|verdict| verdict.dropped_by.map(Filter::name)).collect()
}

fn submit(chain: &mut Chain) -> Execution {
    chain.one("alice", Payload::SubmitJob(Arc::new(spec())))
}

#[test]
fn a_phase_holds_from_the_next_block_on() {
    let mut chain = chain(Phase::HotPath);
    assert_eq!(
        chain.state.migration(),
        Migration { phase: Phase::HotPath, since: Height::GENESIS }
    );
    // The change and a job in one block: the job is still drawn under the previous phase.
    let change = chain.sign("bob", set(Phase::Shadow));
    let job = chain.sign("alice", Payload::SubmitJob(Arc::new(spec())));
    let execution = chain.push(vec![change, job]);
    assert_eq!(dropped(&execution), [Some("presence"); 3]);
    assert_eq!(execution.draws[0].phase, Phase::HotPath);
    let changed = execution.events.iter().find(|event| event.kind.name() == "PhaseChanged");
    let expected = event::PhaseChanged { from: Phase::HotPath, to: Phase::Shadow };
    assert_eq!(changed.unwrap().kind, expected.into());
    let since = Height::new(2);
    assert_eq!(chain.state.migration(), Migration { phase: Phase::Shadow, since });

    let execution = chain.push(vec![]);
    assert_eq!(dropped(&execution), [None; 3]);
    assert_eq!(execution.draws[0].selection.committee.len(), 1);
    // Setting the present phase has no effect.
    let execution = chain.one("bob", set(Phase::Shadow));
    assert!(!kinds(&execution).contains(&"PhaseChanged"));
    assert_eq!(chain.state.migration(), Migration { phase: Phase::Shadow, since });
}

#[test]
fn only_a_system_deployer_changes_the_phase() {
    let mut chain = chain(Phase::HotPath);
    let execution = chain.one("alice", set(Phase::Sunset));
    let error = execution.receipts[0].status.error().unwrap();
    assert!(error.starts_with("Unauthorized: "), "{error}");
    assert_eq!(chain.state.phase(), Phase::HotPath);
    chain.one("bob", set(Phase::Sunset));
    assert_eq!(chain.state.phase(), Phase::Sunset);
}

#[test]
fn the_phase_decides_whether_absent_runners_are_drawn() {
    let check = |phase, expected: Option<&str>| {
        let mut chain = chain(phase);
        let execution = submit(&mut chain);
        assert_eq!(dropped(&execution), [expected; 3], "{phase}");
        let draw = &execution.draws[0];
        assert_eq!((draw.phase, draw.presence), (phase, None));
        assert_eq!(draw.selection.committee.is_empty(), expected.is_some(), "{phase}");
        for verdict in &draw.verdicts {
            // The record shows what the filter would have done in the other case.
            assert!(!verdict.present);
            assert_eq!(verdict.dropped_where(true), Some(Filter::Presence));
            assert_eq!(verdict.dropped_where(false), None);
        }
    };
    check(Phase::Shadow, None);
    check(Phase::HotPath, Some("presence"));
    check(Phase::Sunset, Some("presence"));
}

#[test]
fn presence_is_derived_in_every_phase() {
    for phase in Phase::ALL {
        let mut chain = Chain { certify: true, ..chain(phase) };
        chain.push(vec![]);
        assert!(kinds(&chain.push(vec![])).contains(&"PresenceDerived"), "{phase}");
        let execution = submit(&mut chain);
        assert_eq!(execution.draws[0].presence, Some(Height::new(2)));
        assert!(execution.draws[0].verdicts.iter().all(|verdict| verdict.present));
        assert_eq!(dropped(&execution), [None; 3], "{phase}");
    }
}

#[test]
fn filters_behind_presence_are_recorded_too() {
    let check = |phase, present: bool, drops: Option<&str>| {
        let mut chain = Chain { certify: present, ..chain(phase) };
        chain.push(vec![]);
        let wanting = JobSpec { tee_required: true, ..spec() };
        let execution = chain.one("alice", Payload::SubmitJob(Arc::new(wanting)));
        assert_eq!(dropped(&execution), [drops; 3], "{phase}");
        let verdict = &execution.draws[0].verdicts[0];
        assert_eq!(verdict.else_by, Some(Filter::Tee));
        let expected = if present { Filter::Tee } else { Filter::Presence };
        assert_eq!(verdict.dropped_where(true), Some(expected));
        assert_eq!(verdict.dropped_where(false), Some(Filter::Tee));
    };
    check(Phase::Shadow, false, Some("tee"));
    check(Phase::HotPath, false, Some("presence"));
    check(Phase::HotPath, true, Some("tee"));
}

#[test]
fn a_stale_heartbeat_counts_until_sunset() {
    let mut chain = chain(Phase::Shadow);
    let stale = Connectivity::DEFAULT.stale_heartbeat_blocks;
    for _ in 0..=stale {
        chain.push(vec![]);
    }
    assert_eq!(dropped(&submit(&mut chain)), [Some("health"); 3]);
    let runner = chain.state.registry().iter().next().unwrap().1.clone();
    let height = chain.state.height();
    assert_eq!(runner.health(height, Phase::HotPath, stale), Health::Unhealthy);
    assert_eq!(runner.health(height, Phase::Sunset, stale), Health::Healthy);
    // Health is checked before presence; without a health check, presence decides.
    assert_eq!(dropped(&chain.one("bob", set(Phase::Sunset))), [Some("health"); 3]);
    assert_eq!(dropped(&chain.push(vec![])), [Some("presence"); 3]);
}

#[test]
fn heartbeats_are_accepted_and_paid_for_in_sunset() {
    let mut genesis = genesis(0);
    genesis.params.phase = Phase::Sunset;
    let mut chain = Chain::new(&genesis);
    chain.one("bob", {
        Payload::RegisterRunner(transaction::RegisterRunner {
            pubkey: key("bob").public_key(),
            stake: MIN_STAKE,
            capabilities: capabilities(),
            price_per_second: Wei::cby(1),
        })
    });
    let (before, nonce) = (chain.balance("bob"), chain.state.account(&key("bob").address()).nonce);
    let execution = chain.one("bob", Payload::RunnerHeartbeat);
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    assert!(chain.balance("bob") < before);
    assert_eq!(chain.state.account(&key("bob").address()).nonce, nonce + 1);
    let record = chain.state.registry().get(&key("bob").address()).unwrap();
    assert_eq!(record.last_heartbeat, chain.state.height());
}

#[test]
fn the_chain_id_depends_on_the_phase() {
    let id = |phase| {
        let mut genesis = genesis(1);
        genesis.params.phase = phase;
        genesis.chain_id()
    };
    assert_ne!(id(Phase::Shadow), id(Phase::HotPath));
    assert_ne!(id(Phase::HotPath), id(Phase::Sunset));
}
