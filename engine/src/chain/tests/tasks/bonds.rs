//! Least bonds, the share of a bond that each reason costs, proofs refused in a block, cascades.

use super::*;
use crate::{
    chain::transaction::{SetParameter, UpdateTimerConfig},
    speculation::Slashing,
    timer::ProposedValue,
};
use event::{ParameterSet, TaskTermsActivated, TaskTermsProposed};

fn bonded(tasks: &Tasks, name: &str, bond: u128) -> Payload {
    let Payload::CreateCommitment(commitment) = tasks.commitment(name) else {
        unreachable!("it is one")
    };
    Payload::CreateCommitment(CreateCommitment { bond: Wei::new(bond), ..commitment })
}

#[test]
fn the_least_bond_grows_with_what_is_not_completed_above() {
    let mut tasks = Tasks::new();
    let names = ["a", "b", "c", "d"];
    for (at, name) in names.iter().enumerate() {
        let parent = at.checked_sub(1).map(|parent| names[parent]);
        tasks.create(name, parent.as_slice());
        tasks.claim(name, "bob");
        let least = 10_000 + 1_000 * at as u128;
        assert_eq!(tasks.chain.state.least_bond(&id(name)), Some(Wei::new(least)));
        for bond in [0, least - 1] {
            let low = bonded(&tasks, name, bond);
            tasks.refused("bob", low, "BondTooLow");
        }
        let enough = bonded(&tasks, name, least);
        tasks.done("bob", enough);
        assert_eq!(tasks.task(name).commitment.unwrap().depth, at as u32);
    }
    // The depth of a child falls as tasks above it are completed, even after its creation.
    tasks.create("e", &["d", "a"]);
    tasks.claim("e", "bob");
    for (at, name) in names.iter().enumerate() {
        let least = tasks.chain.state.least_bond(&id("e"));
        assert_eq!(least, Some(Wei::new(10_000 + 1_000 * (4 - at as u128))));
        tasks.complete(name, "bob");
    }
    assert_eq!(tasks.task("e").speculation_depth, 4, "as it was created");
    let low = bonded(&tasks, "e", 9_999);
    tasks.refused("bob", low, "BondTooLow");
    let enough = bonded(&tasks, "e", 10_000);
    tasks.done("bob", enough);
    assert_eq!(tasks.chain.state.least_bond(&id("nobody")), None);
}

/// Layers of sixteen tasks, each of which depends on the whole layer above: following every path
/// would never end.
#[test]
fn depth_is_counted_with_bounded_work() {
    let mut tasks = Tasks::new();
    let mut above: Vec<String> = Vec::new();
    for layer in 0..30 {
        let names: Vec<String> = (0..16).map(|n| format!("{layer}.{n}")).collect();
        let parents: Vec<&str> = above.iter().map(String::as_str).collect();
        let nonce = tasks.chain.state.account(&key("alice").address()).nonce;
        let deadline = tasks.next() + LASTING;
        let transactions = (nonce..).zip(&names).map(|(nonce, name)| {
            tasks.chain.sign_at("alice", nonce, create(name, &parents, deadline))
        });
        let transactions = transactions.collect();
        let execution = tasks.chain.push(transactions);
        assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
        let depth = tasks.chain.state.depth_now(tasks.task(&names[0]));
        // 128 tasks are eight layers.
        assert_eq!(depth, layer.min(8), "layer {layer}");
        above = names;
    }
}

#[test]
fn each_reason_costs_its_share() {
    let slashing = Slashing {
        proof_failed: 5_000,
        proof_timeout: 1_111,
        ancestor_failed: 7,
        claim_expired: 333,
        manual_cancel: 1,
        commitment_expired: 0,
    };
    let bonds = Bonds { slashing, ..BONDS };
    let mut tasks = Tasks::with(Scheme::Mock([0; 32]), bonds);
    let cost = [
        (RollbackReason::ProofFailed, 10_000),
        (RollbackReason::ProofTimeout, 2_222),
        (RollbackReason::AncestorFailed, 14),
        (RollbackReason::ClaimExpired, 666),
        (RollbackReason::ManualCancel, 2),
        (RollbackReason::CommitmentExpired, 0),
    ];
    assert_eq!(cost.map(|(reason, _)| reason), *RollbackReason::ALL);
    for (reason, lost) in cost {
        let (parent, name) = (format!("parent of {reason}"), reason.name());
        tasks.committed(&parent, &[], "carol");
        tasks.committed(name, &[&parent], "bob");
        tasks.done("carol", resolve(&parent, Some(RollbackReason::ManualCancel)));
        let before = (tasks.chain.balance("bob"), tasks.chain.state.supply().burned);
        let execution = tasks.chain.one("bob", resolve(name, Some(reason)));
        let (slashed, released) = (Wei::new(lost), BOND.saturating_sub(Wei::new(lost)));
        let event = event::CommitmentResolved {
            task_id: id(name),
            agent: key("bob").address(),
            reason: Some(reason),
            released,
            slashed,
        };
        assert_eq!(execution.events.last().unwrap().kind, event.into());
        let balance = before.0.saturating_add(released).saturating_sub(fee(&execution));
        assert_eq!(tasks.chain.balance("bob"), balance, "{reason}");
        let burned = before.1.saturating_add(slashed);
        let burned = burned.saturating_add(execution.receipts[0].burned);
        assert_eq!(tasks.chain.state.supply().burned, burned, "{reason}");
        let task = tasks.task(name);
        assert_eq!((task.status, task.claim, task.commitment), (TaskStatus::Open, None, None));
        // Any agent can claim it again.
        tasks.claim(name, "carol");
    }
}

#[test]
fn a_proof_that_a_block_refuses_is_slashed_for_in_that_block() {
    for mut tasks in [Tasks::real(), Tasks::new()] {
        tasks.committed("a", &[], "bob");
        let good = tasks.completion("a", "bob");
        // A refusal before the proof is checked costs only a fee.
        let strange = CompleteTask { parents: vec![id("b")], ..good.clone() };
        tasks.refused("bob", Payload::CompleteTask(strange), "StrangeParent");
        tasks.refused("carol", Payload::CompleteTask(good.clone()), "NotClaimant");

        let mut proof = good.proof.clone();
        proof[..64].copy_from_slice(&[0; 64]);
        let before = (tasks.chain.balance("bob"), tasks.chain.state.supply());
        let execution =
            tasks.chain.one("bob", Payload::CompleteTask(CompleteTask { proof, ..good.clone() }));
        let receipt = &execution.receipts[0];
        assert_eq!(receipt.status.name(), "failed");
        let slashed = Wei::new(2_000);
        let released = BOND.saturating_sub(slashed);
        let resolved = event::CommitmentResolved {
            task_id: id("a"),
            agent: key("bob").address(),
            reason: Some(RollbackReason::ProofFailed),
            released,
            slashed,
        };
        let told = execution.events.iter().find(|event| event.kind == resolved.clone().into());
        assert_eq!(told.unwrap().transaction, Some(receipt.transaction));
        let after = tasks.chain.state.supply();
        assert_eq!(after.bonds, Wei::ZERO);
        let burned = before.1.burned.saturating_add(receipt.burned).saturating_add(slashed);
        assert_eq!(after.burned, burned);
        let balance = before.0.saturating_add(released).saturating_sub(fee(&execution));
        assert_eq!(tasks.chain.balance("bob"), balance);
        let task = tasks.task("a");
        assert_eq!((task.status, task.claim, task.commitment), (TaskStatus::Open, None, None));
        assert_eq!(task.failed_at, Some(tasks.chain.state.height()));
        // There is nothing left to resolve, and the task can be done again.
        tasks.refused("bob", resolve("a", Some(RollbackReason::ManualCancel)), "NotClaimed");
        tasks.claim("a", "bob");
        tasks.commit("a", "bob");
        tasks.done("bob", Payload::CompleteTask(good));
    }
}

#[test]
fn a_cascade_is_told_from_a_cancellation() {
    let blame = Some(RollbackReason::AncestorFailed);
    let cancel = Some(RollbackReason::ManualCancel);
    let mut tasks = Tasks::new();
    tasks.committed("a", &[], "bob");
    tasks.committed("b", &["a"], "bob");
    tasks.committed("c", &["b"], "bob");
    // Nothing has failed yet. A task can blame only its direct parents, so they come first.
    tasks.refused("bob", resolve("b", blame), "NoAncestorFailed");
    let bad = CompleteTask { proof: vec![0; PROOF_BYTES], ..tasks.completion("a", "bob") };
    assert_eq!(tasks.refused_proof("bob", bad).slashed, Wei::new(2_000));
    tasks.refused("bob", resolve("c", blame), "NoAncestorFailed");
    let burned = tasks.chain.state.burned().penalties;
    for name in ["b", "c"] {
        tasks.done("bob", resolve(name, blame));
    }
    assert_eq!(tasks.chain.state.burned().penalties, burned, "a cascade is free by default");

    // An ancestor that failed before the commitment does not justify giving it up.
    tasks.claim("a", "bob");
    tasks.commit("a", "bob");
    tasks.claim("b", "bob");
    tasks.commit("b", "bob");
    tasks.refused("bob", resolve("b", blame), "NoAncestorFailed");
    tasks.done("bob", resolve("b", cancel));
    let lost = tasks.chain.state.burned().penalties.saturating_sub(burned);
    assert_eq!(lost, Wei::new(400), "a cancellation is not");

    // Giving up a claim without a commitment is not a failure, because nothing was lost.
    tasks.create("open", &[]);
    let Payload::CreateTask(after) = create("after", &["open"], tasks.next() + 40) else {
        unreachable!("it is one")
    };
    let order_only = vec![id("open")];
    tasks.done("alice", Payload::CreateTask(CreateTask { order_only, ..after }));
    tasks.claim("after", "bob");
    tasks.commit("after", "bob");
    tasks.claim("open", "bob");
    tasks.done("bob", resolve("open", cancel));
    tasks.refused("bob", resolve("after", blame), "NoAncestorFailed");
    // A claim without a commitment can be given up because a parent has no output.
    tasks.create("waits", &["open"]);
    tasks.claim("waits", "bob");
    tasks.done("bob", resolve("waits", blame));
    assert_eq!(tasks.task("waits").failed_at, None);
}

#[test]
fn an_expired_parent_is_a_failed_one() {
    let mut tasks = Tasks::new();
    let deadline = tasks.next() + 6;
    tasks.done("alice", create("parent", &[], deadline));
    tasks.claim("parent", "bob");
    tasks.commit("parent", "bob");
    tasks.committed("child", &["parent"], "carol");
    tasks.wait(deadline + 2);
    assert_eq!(tasks.task("parent").status, TaskStatus::Expired);
    tasks.done("carol", resolve("child", Some(RollbackReason::AncestorFailed)));
}

#[test]
fn bonds_are_governed() {
    let mut genesis = genesis(1);
    genesis.params.system_deployers = vec![key("bob").address()];
    genesis.params.tasks.bonds = BONDS;
    let mut tasks = Tasks { chain: Chain::new(&genesis), real: false };
    tasks.create("a", &[]);
    tasks.claim("a", "bob");
    let key_of = |name: &str| format!("system:tasks:{name}");
    let set = |name: &str, value| Payload::SetParameter(SetParameter { key: key_of(name), value });
    tasks.refused("alice", set("bond_base", 30_000), "Unauthorized");
    for (name, value) in [
        ("bond_base", 0),
        ("bond_base", Bonds::MAX + 1),
        ("bond_per_depth", Bonds::MAX + 1),
        ("slash_proof_failed", 5_001),
        ("slash_manual_cancel", 10_000),
    ] {
        tasks.refused("bob", set(name, value), "ParameterOutOfRange");
    }
    let told = tasks.done("bob", set("bond_base", 30_000));
    let changed = ParameterSet { key: key_of("bond_base"), before: 10_000, after: 30_000 };
    assert_eq!(told, [changed.into()]);
    let low = tasks.commitment("a");
    tasks.refused("bob", low, "BondTooLow");
    let enough = bonded(&tasks, "a", 30_000);
    tasks.done("bob", enough);

    // Several at a height, together with timer parameters.
    let height = Height::new(tasks.next() + 3);
    let setting = |name: &str, value| ProposedValue { key: key_of(name), value };
    let settings = vec![setting("slash_manual_cancel", 5_000), setting("slash_proof_failed", 1)];
    let update = UpdateTimerConfig { settings: settings.clone(), height: Some(height) };
    let told = tasks.done("bob", Payload::SysUpdateTimerConfig(update));
    let by = key("bob").address();
    let proposed = TaskTermsProposed { by, height, settings: settings.clone() };
    assert_eq!(told, [proposed.into()]);
    let events = tasks.wait(height.get() + 1);
    let activated = TaskTermsActivated { by: Some(by), settings };
    assert!(events.contains(&activated.into()), "{events:?}");
    let (now, root) = (*tasks.chain.state.bonds(), tasks.chain.state.root());
    assert_eq!((now.slashing.manual_cancel, now.slashing.proof_failed), (5_000, 1));
    let again = State::from_bytes(&tasks.chain.state.to_bytes()).unwrap();
    assert_eq!((*again.bonds(), again.root()), (now, root));
    let told = tasks.done("bob", resolve("a", Some(RollbackReason::ManualCancel)));
    let EventKind::CommitmentResolved(resolved) = &told[0] else { panic!("{told:?}") };
    assert_eq!(resolved.slashed, Wei::new(15_000), "the shares of now count");
}

#[test]
fn a_genesis_document_has_bonds_within_bounds() {
    let mut genesis = genesis(1);
    genesis.params.tasks.bonds.base = 0;
    let error = genesis.state().unwrap_err().to_string();
    let expected = "tasks: ParameterOutOfRange: system:tasks:bond_base is from 1 to \
                    1000000000000000000, not 0";
    assert_eq!(error, expected);
}
