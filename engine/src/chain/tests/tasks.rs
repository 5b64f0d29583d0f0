//! Tasks: who may do what and when, invalid proofs of every kind, and the flow of money.

use super::*;
use crate::{
    chain::tasks::{
        MAX_DEADLINE_BLOCKS, MAX_EXPIRED_PER_BLOCK, MAX_PARENTS, MAX_REQUIREMENT_BYTES,
        MAX_REQUIREMENTS, inputs_digest,
    },
    primitives::keccak256,
    proof::{Element, PROOF_BYTES, Prover, ProvingKey, Witness, hash_2, hash_4, mock},
    speculation::{Bonds, RollbackReason},
};
use std::sync::LazyLock;

mod bonds;
mod conservation;
mod formats;
mod inputs;
mod proofs;

/// The reward of every task in these tests.
const REWARD: Wei = Wei::cby(7);
/// The bond of every commitment in these tests: its shares are whole numbers of wei.
const BOND: Wei = Wei::new(20_000);
/// The bond parameters of the chains in these tests.
const BONDS: Bonds = Bonds { base: 10_000, per_depth: 1_000, slashing: Bonds::DEFAULT.slashing };
/// Lifetime of tasks and claims in these tests, in blocks.
const LASTING: u64 = 50;

static PROVER: LazyLock<Prover> = LazyLock::new(|| Prover::new(ProvingKey::setup(&[1; 32])));

/// A task's id from a name.
fn id(name: &str) -> Hash {
    keccak256(&[name.as_bytes()])
}

/// The witness of the output of the task with this name.
fn witness(name: &str) -> Witness {
    let element = |n: u8| Element::reduce(&keccak256(&[name.as_bytes(), &[n]]).0);
    Witness { output: [1, 2, 3, 4].map(element), salt: element(5) }
}

fn output_commitment(name: &str) -> Element {
    let Witness { output, salt } = witness(name);
    hash_2(hash_4(output), salt)
}

/// The digest of the outputs of the tasks with these names.
fn inputs(parents: &[&str]) -> Hash {
    inputs_digest(parents.iter().map(|parent| (id(parent), output_commitment(parent))))
}

/// A proof by `agent` for a task with these inputs and this output: with `real` proofs, or with
/// those of [`TaskParams::default`].
fn proof_from(name: &str, inputs: &Hash, agent: &str, witness: &Witness, real: bool) -> Vec<u8> {
    let agent = statement_agent(&key(agent).address());
    let task = statement_task(&id(name), inputs);
    let proof = match real {
        true => PROVER.prove(&task, &agent, witness, &[9; 32]).to_bytes(),
        false => mock::prove(&[0; 32], &crate::proof::Statement::of(&task, &agent, witness)),
    };
    proof.to_vec()
}

/// The same for a task that reads the outputs of these parents.
fn proof_of(name: &str, parents: &[&str], agent: &str, real: bool) -> Vec<u8> {
    proof_from(name, &inputs(parents), agent, &witness(name), real)
}

/// A chain with money for `alice`, who creates tasks, and for `bob` and `carol`, who work on them.
struct Tasks {
    chain: Chain,
    real: bool,
}

impl Tasks {
    fn new() -> Self {
        Self::with(Scheme::Mock([0; 32]), BONDS)
    }

    /// With real proofs.
    fn real() -> Self {
        Self::with(Scheme::Groth16(PROVER.key().verifying_key().clone()), BONDS)
    }

    fn with(scheme: Scheme, bonds: Bonds) -> Self {
        let mut genesis = genesis(1);
        let real = matches!(scheme, Scheme::Groth16(_));
        genesis.params.tasks = TaskParams { scheme, bonds };
        let account = key("carol").address();
        genesis.endowments.push(Endowment { account, balance: Wei::cby(1_000_000) });
        Self { chain: Chain::new(&genesis), real }
    }

    /// The height of the next block.
    fn next(&self) -> u64 {
        self.chain.state.height().next().get()
    }

    fn task(&self, name: &str) -> &Task {
        self.chain.state.task(&id(name)).unwrap()
    }

    /// Pushes empty blocks until the next one is at `height`.
    fn wait(&mut self, height: u64) -> Vec<EventKind> {
        let mut events = Vec::new();
        while self.next() < height {
            events.extend(self.chain.push(vec![]).events.into_iter().map(|event| event.kind));
        }
        events
    }

    /// Sends a payload that must succeed, and returns its events.
    fn done(&mut self, name: &str, payload: Payload) -> Vec<EventKind> {
        let execution = self.chain.one(name, payload);
        let receipt = &execution.receipts[0];
        assert_eq!(receipt.status, ReceiptStatus::Success);
        let own = execution.events.into_iter().filter(|e| e.transaction.is_some());
        own.map(|event| event.kind).collect()
    }

    /// Sends a payload that must fail with this error; only fee and nonce change.
    fn refused(&mut self, name: &str, payload: Payload, error: &str) {
        let (tasks, supply) = (self.chain.state.tasks.clone(), self.chain.state.supply());
        let execution = self.chain.one(name, payload);
        let status = &execution.receipts[0].status;
        assert_eq!(status.name(), "failed", "{error}");
        let text = status.error().unwrap();
        assert_eq!(text.split(':').next(), Some(error), "{text}");
        let after = self.chain.state.supply();
        assert_eq!((after.escrow, after.bonds), (supply.escrow, supply.bonds));
        assert_eq!(self.chain.state.tasks.by_id, tasks.by_id);
        assert_eq!(self.chain.state.tasks.open, tasks.open);
    }

    /// Sends a proof that must be refused, and returns the end of its commitment.
    fn refused_proof(&mut self, name: &str, complete: CompleteTask) -> event::CommitmentResolved {
        let execution = self.chain.one(name, Payload::CompleteTask(complete));
        let receipt = &execution.receipts[0];
        let text = receipt.status.error().expect("it is refused");
        assert!(text.starts_with("BadProof: "), "{text}");
        let own = execution.events.iter().filter(|e| e.transaction == Some(receipt.transaction));
        match own.map(|event| &event.kind).collect::<Vec<_>>()[..] {
            [EventKind::CommitmentResolved(resolved)] => resolved.clone(),
            ref other => panic!("{other:?}"),
        }
    }

    /// Creates a task of alice's.
    fn create(&mut self, name: &str, parents: &[&str]) -> Vec<EventKind> {
        let create = create(name, parents, self.next() + LASTING);
        self.done("alice", create)
    }

    fn claim(&mut self, name: &str, agent: &str) -> Vec<EventKind> {
        let expires_at = self.task(name).deadline;
        self.done(agent, claim(name, expires_at.get()))
    }

    fn commit(&mut self, name: &str, agent: &str) -> Vec<EventKind> {
        let commit = self.commitment(name);
        self.done(agent, commit)
    }

    /// A commitment to a task, based on its parents' commitments.
    fn commitment(&self, name: &str) -> Payload {
        Payload::CreateCommitment(CreateCommitment {
            task_id: id(name),
            output_commitment: output_commitment(name),
            inputs: inputs_now(&self.chain.state, &id(name)),
            bond: BOND,
            expires_at: None,
        })
    }

    /// Creates a task, and claims and commits to it for an agent.
    fn committed(&mut self, name: &str, parents: &[&str], agent: &str) {
        self.create(name, parents);
        self.claim(name, agent);
        self.commit(name, agent);
    }

    /// The completion of a task by `agent`, based on its commitment's inputs.
    fn completion(&self, name: &str, agent: &str) -> CompleteTask {
        let parents = self.task(name).depends_on.clone();
        let inputs = self.task(name).commitment.map_or_else(|| inputs(&[]), |one| one.inputs);
        let proof = proof_from(name, &inputs, agent, &witness(name), self.real);
        CompleteTask { task_id: id(name), parents, proof }
    }

    fn complete(&mut self, name: &str, agent: &str) -> Vec<EventKind> {
        let payload = Payload::CompleteTask(self.completion(name, agent));
        self.done(agent, payload)
    }
}

fn create(name: &str, parents: &[&str], deadline: u64) -> Payload {
    Payload::CreateTask(CreateTask {
        task_id: id(name),
        depends_on: parents.iter().map(|parent| id(parent)).collect(),
        order_only: vec![],
        constraint_hash: Some(hash_4(witness(name).output)),
        requirements: vec![],
        reward: REWARD,
        deadline: Height::new(deadline),
    })
}

fn claim(name: &str, expires_at: u64) -> Payload {
    Payload::ClaimTask(ClaimTask { task_id: id(name), expires_at: Height::new(expires_at) })
}

/// A commitment to a task without parents.
fn commit(name: &str) -> Payload {
    Payload::CreateCommitment(CreateCommitment {
        task_id: id(name),
        output_commitment: output_commitment(name),
        inputs: inputs(&[]),
        bond: BOND,
        expires_at: None,
    })
}

/// The digest of the commitments of a task's parents that have one.
fn inputs_now(state: &State, task_id: &Hash) -> Hash {
    let reads = state.task(task_id).into_iter().flat_map(Task::reads);
    inputs_digest(reads.filter_map(|one| Some((*one, state.task(one)?.output_commitment()?))))
}

fn resolve(name: &str, reason: Option<RollbackReason>) -> Payload {
    Payload::ResolveCommitment(ResolveCommitment { task_id: id(name), reason })
}

fn names(events: &[EventKind]) -> Vec<&'static str> {
    events.iter().map(EventKind::name).collect()
}

/// The fees that a receipt's sender paid.
fn fee(execution: &Execution) -> Wei {
    let receipt = &execution.receipts[0];
    receipt.burned.saturating_add(receipt.tip)
}

#[test]
fn a_parent_and_its_child_are_claimed_proved_and_paid() {
    let mut tasks = Tasks::real();
    let created = tasks.create("parent", &[]);
    let creator = key("alice").address();
    let event = |tasks: &Tasks, name: &str, depends_on, depth| {
        event::TaskCreated {
            task_id: id(name),
            creator,
            depends_on,
            order_only: vec![],
            depth,
            constraint_hash: Some(hash_4(witness(name).output)),
            requirements: vec![],
            reward: REWARD,
            deadline: tasks.task(name).deadline,
        }
        .into()
    };
    assert_eq!(created, [event(&tasks, "parent", vec![], 0)]);
    let created = tasks.create("child", &["parent"]);
    assert_eq!(created, [event(&tasks, "child", vec![id("parent")], 1)]);
    assert_eq!(tasks.chain.state.supply().escrow, REWARD.saturating_mul(2));

    let (bob, carol) = (key("bob").address(), key("carol").address());
    let deadline = tasks.task("parent").deadline;
    let claimed = event::TaskClaimed { task_id: id("parent"), agent: bob, expires_at: deadline };
    assert_eq!(tasks.claim("parent", "bob"), [claimed.into()]);
    tasks.claim("child", "carol");
    let event = event::CommitmentCreated {
        task_id: id("parent"),
        agent: bob,
        output_commitment: output_commitment("parent"),
        inputs: inputs(&[]),
        bond: BOND,
        expires_at: None,
    };
    assert_eq!(tasks.commit("parent", "bob"), [event.into()]);
    tasks.commit("child", "carol");
    assert_eq!(tasks.chain.state.supply().bonds, BOND.saturating_mul(2));
    assert_eq!(tasks.task("child").commitment.unwrap().depth, 1);

    let child = Payload::CompleteTask(tasks.completion("child", "carol"));
    tasks.refused("carol", child, "ParentNotCompleted");
    let before = tasks.chain.balance("bob");
    let execution =
        tasks.chain.one("bob", Payload::CompleteTask(tasks.completion("parent", "bob")));
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    let paid = before.saturating_add(REWARD).saturating_sub(fee(&execution));
    assert_eq!(tasks.chain.balance("bob"), paid);
    let event = event::TaskCompleted { task_id: id("child"), agent: carol, paid: REWARD };
    assert_eq!(tasks.complete("child", "carol"), [event.into()]);

    let supply = tasks.chain.state.supply();
    assert_eq!((supply.escrow, supply.bonds), (Wei::ZERO, BOND.saturating_mul(2)));
    assert_eq!(tasks.chain.state.open_tasks().count(), 0);
    let parent = tasks.task("parent");
    assert_eq!(parent.status, TaskStatus::Completed);
    assert_eq!(parent.completed_at.map(Height::get), Some(tasks.next() - 2));
    assert_eq!(parent.claim.map(|claim| claim.agent), Some(bob));
    // Any account may ask for it: the bond goes to its agent.
    let before = tasks.chain.balance("bob");
    let event = event::CommitmentResolved {
        task_id: id("parent"),
        agent: bob,
        reason: None,
        released: BOND,
        slashed: Wei::ZERO,
    };
    assert_eq!(tasks.done("alice", resolve("parent", None)), [event.into()]);
    assert_eq!(tasks.chain.balance("bob"), before.saturating_add(BOND));
    tasks.refused("alice", resolve("parent", None), "NoCommitment");
    tasks.done("carol", resolve("child", None));
    assert_eq!(tasks.chain.state.supply().bonds, Wei::ZERO);
}

#[test]
fn payloads_are_called_what_the_source_calls_them() {
    let tasks = |parents: &[&str]| create("a", parents, 9).name();
    assert_eq!((tasks(&[]), tasks(&["b"])), ("create_task", "create_dependent_task"));
    assert_eq!(claim("a", 9).name(), "claim_task");
    assert_eq!(commit("a").name(), "create_commitment");
    assert_eq!(resolve("a", None).name(), "resolve_commitment");
    let complete = CompleteTask { task_id: id("a"), parents: vec![], proof: vec![] };
    assert_eq!(Payload::CompleteTask(complete).name(), "complete_task_private");
}

#[test]
fn what_cannot_be_created_is_refused() {
    let mut tasks = Tasks::new();
    let many: Vec<String> = (0..=MAX_PARENTS).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for name in &many {
        tasks.create(name, &[]);
    }
    let next = tasks.next();
    tasks.refused("alice", create("0", &[], next + 9), "TaskExists");
    tasks.refused("alice", create("x", &many, next + 9), "TooManyParents");
    tasks.refused("alice", create("x", &["0", "x"], next + 9), "DependsOnItself");
    tasks.refused("alice", create("x", &["0", "1", "0"], next + 9), "RepeatedParent");
    tasks.refused("alice", create("x", &["0", "nobody"], next + 9), "UnknownParent");
    let next = tasks.next();
    tasks.refused("alice", create("x", &[], next), "DeadlineOutOfRange");
    let next = tasks.next();
    let beyond = next + MAX_DEADLINE_BLOCKS + 1;
    tasks.refused("alice", create("x", &[], beyond), "DeadlineOutOfRange");
    let Payload::CreateTask(dear) = create("x", &[], next + 9) else { unreachable!("it is") };
    let dear = CreateTask { reward: Wei::cby(2_000_000), ..dear };
    assert_eq!(Payload::CreateTask(dear.clone()).value(), dear.reward);
    tasks.refused("alice", Payload::CreateTask(dear), "InsufficientBalance");
    // The limits themselves are allowed.
    let next = tasks.next();
    tasks.done("alice", create("soon", &many[1..], next + 1));
    let next = tasks.next();
    tasks.done("alice", create("late", &[], next + MAX_DEADLINE_BLOCKS));
    let past = tasks.next() + 2;
    tasks.wait(past);
    assert_eq!(tasks.task("soon").status, TaskStatus::Expired);
    tasks.refused("alice", create("x", &["soon"], past + 9), "ParentExpired");
}

#[test]
fn depth_counts_what_is_not_completed_on_the_longest_path() {
    let mut tasks = Tasks::new();
    let mut depth = |name: &str, parents: &[&str], expected: u32| {
        tasks.create(name, parents);
        assert_eq!(tasks.task(name).speculation_depth, expected, "{name}");
    };
    depth("a", &[], 0);
    depth("b", &["a"], 1);
    depth("c", &["b"], 2);
    depth("side", &[], 0);
    depth("d", &["side", "c", "a"], 3);
    tasks.claim("a", "bob");
    tasks.commit("a", "bob");
    tasks.complete("a", "bob");
    let mut depth = |name: &str, parents: &[&str], expected: u32| {
        tasks.create(name, parents);
        assert_eq!(tasks.task(name).speculation_depth, expected, "{name}");
    };
    depth("e", &["a"], 0);
    depth("f", &["a", "side"], 1);
    depth("g", &["e", "f"], 2);
}

#[test]
fn who_may_claim_and_until_when() {
    let mut tasks = Tasks::new();
    tasks.refused("bob", claim("nobody", 9), "UnknownTask");
    tasks.create("a", &[]);
    let deadline = tasks.task("a").deadline.get();
    tasks.refused("bob", claim("a", deadline + 1), "ClaimOutOfRange");
    let next = tasks.next();
    tasks.refused("bob", claim("a", next), "ClaimOutOfRange");
    let until = tasks.next() + 8;
    tasks.done("bob", claim("a", until));
    tasks.refused("carol", claim("a", until + 9), "AlreadyClaimed");
    // An agent can extend its own claim, never shorten it.
    tasks.refused("bob", claim("a", until - 1), "ClaimOutOfRange");
    tasks.commit("a", "bob");
    tasks.done("bob", claim("a", until + 1));
    assert_eq!(tasks.task("a").commitment.unwrap().bond, BOND, "it stays");
    tasks.wait(until + 1);
    tasks.refused("carol", claim("a", until + 9), "AlreadyClaimed");
    assert_eq!(tasks.next(), until + 2);
    let taken = tasks.done("carol", claim("a", until + 9));
    assert_eq!(names(&taken), ["CommitmentResolved", "TaskClaimed"]);
    assert_eq!(tasks.task("a").claim.unwrap().agent, key("carol").address());
    tasks.commit("a", "carol");
    tasks.complete("a", "carol");
    tasks.refused("bob", claim("a", until + 9), "TaskEnded");
}

#[test]
fn a_claim_that_is_past_can_be_taken_over_and_its_agent_is_too_late() {
    let mut tasks = Tasks::real();
    tasks.create("a", &[]);
    let until = tasks.next() + 3;
    tasks.done("bob", claim("a", until));
    tasks.commit("a", "bob");
    tasks.wait(until + 1);
    let late = Payload::CompleteTask(tasks.completion("a", "bob"));
    tasks.refused("bob", late.clone(), "ClaimPast");
    tasks.refused("bob", commit("a"), "ClaimPast");
    let (before, burned) =
        (tasks.chain.balance("bob"), BONDS.slashed(BOND, RollbackReason::ClaimExpired));
    tasks.claim("a", "carol");
    let released = BOND.saturating_sub(burned);
    assert_eq!(tasks.chain.balance("bob"), before.saturating_add(released));
    tasks.refused("bob", late, "NotClaimant");
    // The former agent's commitment is gone: carol's proof needs a commitment of hers.
    let own = Payload::CompleteTask(tasks.completion("a", "carol"));
    tasks.refused("carol", own, "NoCommitment");
    tasks.commit("a", "carol");
    tasks.complete("a", "carol");
    // An agent loses its own expired claim in the same way.
    tasks.create("b", &[]);
    let until = tasks.next() + 2;
    tasks.done("bob", claim("b", until));
    tasks.commit("b", "bob");
    tasks.wait(until + 1);
    assert_eq!(names(&tasks.claim("b", "bob")), ["CommitmentResolved", "TaskClaimed"]);
    assert_eq!(tasks.task("b").commitment, None);
}

#[test]
fn one_commitment_of_the_claimant_s_alone() {
    let mut tasks = Tasks::new();
    tasks.refused("bob", commit("a"), "UnknownTask");
    tasks.create("a", &[]);
    tasks.refused("bob", commit("a"), "NotClaimed");
    tasks.claim("a", "bob");
    tasks.refused("carol", commit("a"), "NotClaimant");
    let dear = |bond| {
        let (output_commitment, inputs) = (output_commitment("a"), inputs(&[]));
        let task_id = id("a");
        Payload::CreateCommitment(CreateCommitment {
            task_id,
            output_commitment,
            inputs,
            bond,
            expires_at: None,
        })
    };
    assert_eq!(dear(BOND).value(), BOND);
    tasks.refused("bob", dear(Wei::cby(2_000_000)), "InsufficientBalance");
    tasks.refused("bob", dear(Wei::ZERO), "BondTooLow");
    tasks.done("bob", dear(BOND));
    tasks.refused("bob", commit("a"), "CommitmentExists");
    tasks.complete("a", "bob");
    tasks.refused("bob", commit("a"), "TaskEnded");
}

#[test]
fn parents_are_named_all_of_them_once_and_no_others() {
    let mut tasks = Tasks::new();
    for name in ["a", "b", "c", "other"] {
        tasks.committed(name, &[], "bob");
        tasks.complete(name, "bob");
    }
    tasks.committed("child", &["a", "b", "c"], "carol");
    let with = |tasks: &Tasks, parents: &[&str]| {
        let parents = parents.iter().map(|parent| id(parent)).collect();
        Payload::CompleteTask(CompleteTask { parents, ..tasks.completion("child", "carol") })
    };
    let check = |tasks: &mut Tasks, parents: &[&str], error: &str, names: &str| {
        let payload = with(tasks, parents);
        let Payload::CompleteTask(complete) = &payload else { unreachable!("it is one") };
        let agent = key("carol").address();
        let text = check_completion(&tasks.chain.state, &agent, complete).unwrap_err().to_string();
        assert!(text.contains(&id(names).to_string()), "{text}");
        tasks.refused("carol", payload, error);
    };
    check(&mut tasks, &[], "MissingParent", "a");
    check(&mut tasks, &["c", "a"], "MissingParent", "b");
    check(&mut tasks, &["a", "b", "b", "c"], "RepeatedParent", "b");
    check(&mut tasks, &["a", "b", "c", "other"], "StrangeParent", "other");
    check(&mut tasks, &["a", "b", "c", "nobody"], "StrangeParent", "nobody");
    let payload = with(&tasks, &["c", "a", "b"]);
    tasks.done("carol", payload);
}

#[test]
fn who_may_give_up_what_and_why() {
    let mut tasks = Tasks::new();
    let cancel = Some(RollbackReason::ManualCancel);
    tasks.refused("bob", resolve("a", cancel), "UnknownTask");
    tasks.refused("bob", resolve("a", None), "UnknownTask");
    tasks.create("a", &[]);
    tasks.refused("bob", resolve("a", cancel), "NotClaimed");
    let until = tasks.next() + 20;
    tasks.done("bob", claim("a", until));
    // A claim without a commitment is given up in the same way.
    assert_eq!(names(&tasks.done("bob", resolve("a", cancel))), ["CommitmentResolved"]);
    assert_eq!((tasks.task("a").status, tasks.task("a").claim), (TaskStatus::Open, None));
    tasks.done("bob", claim("a", until));
    tasks.commit("a", "bob");
    tasks.refused("bob", resolve("a", None), "NotCompleted");
    tasks.refused("carol", resolve("a", cancel), "Unauthorized");
    let blame = Some(RollbackReason::AncestorFailed);
    tasks.refused("bob", resolve("a", blame), "NoAncestorFailed");
    for reason in RollbackReason::ALL {
        let error = match reason {
            RollbackReason::ClaimExpired => "ClaimCounts",
            RollbackReason::CommitmentExpired => "CommitmentCounts",
            _ => "NotForCreator",
        };
        tasks.refused("alice", resolve("a", Some(*reason)), error);
    }
    tasks.wait(until + 1);
    tasks.done("alice", resolve("a", Some(RollbackReason::ClaimExpired)));
    assert_eq!(tasks.task("a").status, TaskStatus::Open);
    // A completed task cannot be given up, by any account.
    tasks.claim("a", "alice");
    tasks.commit("a", "alice");
    tasks.complete("a", "alice");
    tasks.refused("alice", resolve("a", cancel), "TaskEnded");
    tasks.committed("child", &["a"], "bob");
    tasks.refused("bob", resolve("child", blame), "NoAncestorFailed");
}

#[test]
fn a_deadline_ends_a_task_with_all_that_hangs_on_it() {
    let mut tasks = Tasks::new();
    let deadline = tasks.next() + 12;
    for name in ["open", "claimed", "committed", "completed", "late"] {
        tasks.done("alice", create(name, &[], deadline));
    }
    tasks.claim("claimed", "bob");
    for name in ["committed", "completed"] {
        tasks.claim(name, "bob");
        tasks.commit(name, "bob");
    }
    tasks.complete("completed", "bob");
    assert!(tasks.next() <= deadline);
    let told = tasks.wait(deadline + 1);
    assert!(!names(&told).contains(&"TaskExpired"), "the deadline itself counts");
    let supply = tasks.chain.state.supply();
    assert_eq!(supply.escrow, REWARD.saturating_mul(4));
    let alice = tasks.chain.balance("alice");
    let mut told = names(&tasks.wait(deadline + 2));
    told.sort_unstable();
    told.retain(|name| !name.starts_with("Presence"));
    assert_eq!(
        told,
        ["CommitmentResolved", "TaskExpired", "TaskExpired", "TaskExpired", "TaskExpired"]
    );
    assert_eq!(tasks.chain.balance("alice"), alice.saturating_add(REWARD.saturating_mul(4)));
    let after = tasks.chain.state.supply();
    assert_eq!((after.escrow, after.bonds), (Wei::ZERO, BOND), "one bond is of a completed task");
    let lost = BONDS.slashed(BOND, RollbackReason::ClaimExpired);
    assert_eq!(after.burned, supply.burned.saturating_add(lost));
    for name in ["open", "claimed", "committed", "late"] {
        let task = tasks.task(name);
        assert_eq!((task.status, task.claim, task.commitment), (TaskStatus::Expired, None, None));
    }
    assert_eq!(tasks.task("completed").status, TaskStatus::Completed);
    let late = Payload::CompleteTask(tasks.completion("committed", "bob"));
    tasks.refused("bob", late, "TaskEnded");
    tasks.refused("bob", claim("open", deadline + 9), "TaskEnded");
    tasks.refused("bob", resolve("claimed", Some(RollbackReason::ManualCancel)), "TaskEnded");
    tasks.refused("bob", resolve("claimed", None), "NotCompleted");
}

#[test]
fn many_deadlines_at_once_take_several_blocks() {
    let mut tasks = Tasks::new();
    let (count, deadline) = (MAX_EXPIRED_PER_BLOCK + 9, tasks.next() + 9);
    let nonce = tasks.chain.state.account(&key("alice").address()).nonce;
    let mut made = 0;
    for chunk in [count / 2, count - count / 2] {
        let transactions = (made..made + chunk).map(|n| {
            let payload = create(&n.to_string(), &[], deadline);
            tasks.chain.sign_at("alice", nonce + n as u64, payload)
        });
        let transactions = transactions.collect();
        let execution = tasks.chain.push(transactions);
        assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
        made += chunk;
    }
    assert_eq!(tasks.chain.state.open_tasks().count(), count);
    tasks.wait(deadline + 1);
    let expired = |told: &[EventKind]| {
        told.iter().filter(|kind| matches!(kind, EventKind::TaskExpired(_))).count()
    };
    assert_eq!(expired(&tasks.wait(deadline + 2)), MAX_EXPIRED_PER_BLOCK);
    // Tasks left over can be neither claimed nor completed.
    let (&left, _) = tasks.chain.state.open_tasks().next().unwrap();
    let late = ClaimTask { task_id: left, expires_at: Height::new(deadline) };
    let execution = tasks.chain.one("bob", Payload::ClaimTask(late));
    let error = execution.receipts[0].status.error().unwrap();
    assert!(error.starts_with("ClaimOutOfRange: "), "{error}");
    assert_eq!(tasks.chain.state.open_tasks().count(), 0);
    assert_eq!(tasks.chain.state.supply().escrow, Wei::ZERO);
}

/// A commitment to a task without parents, with its own expiry.
fn commit_until(name: &str, expires_at: u64) -> Payload {
    let Payload::CreateCommitment(commitment) = commit(name) else { unreachable!("it is one") };
    let expires_at = Some(Height::new(expires_at));
    Payload::CreateCommitment(CreateCommitment { expires_at, ..commitment })
}

#[test]
fn a_commitment_with_an_end_of_its_own_completes_nothing_after_it() {
    let mut tasks = Tasks::new();
    tasks.create("a", &[]);
    let here = tasks.next();
    tasks.done("bob", claim("a", here + 20));
    let here = tasks.next();
    tasks.refused("bob", commit_until("a", here), "CommitmentOutOfRange");
    tasks.refused("bob", commit_until("a", here + 60), "CommitmentOutOfRange");
    let last = tasks.next() + 4;
    tasks.done("bob", commit_until("a", last));
    let expired = || resolve("a", Some(RollbackReason::CommitmentExpired));
    tasks.refused("alice", expired(), "CommitmentCounts");
    tasks.wait(last + 1);
    let late = Payload::CompleteTask(tasks.completion("a", "bob"));
    tasks.refused("bob", late, "CommitmentPast");
    let cheap = resolve("a", Some(RollbackReason::ManualCancel));
    tasks.refused("bob", cheap, "CommitmentPast");
    tasks.refused("carol", expired(), "Unauthorized");
    let ended = tasks.done("alice", expired());
    assert_eq!(names(&ended), ["CommitmentResolved"]);
    let task = tasks.task("a");
    assert_eq!((task.status, task.commitment, task.claim), (TaskStatus::Open, None, None));
}

#[test]
fn requirements_are_few_short_and_of_plain_letters() {
    let mut tasks = Tasks::new();
    let asking = |name: &str, labels: &[&str]| {
        let Payload::CreateTask(task) = create(name, &[], 900) else { unreachable!("it is one") };
        let requirements = labels.iter().map(|label| (*label).to_owned()).collect();
        Payload::CreateTask(CreateTask { requirements, ..task })
    };
    tasks.refused("alice", asking("a", &["gpu"; MAX_REQUIREMENTS + 1]), "TooManyRequirements");
    let long = "x".repeat(MAX_REQUIREMENT_BYTES + 1);
    for label in ["", "a b", "a,b", "ä", "\u{1b}[31m", &long] {
        tasks.refused("alice", asking("a", &[label]), "BadRequirement");
    }
    tasks.done("alice", asking("a", &["a", &long[1..]]));
    assert_eq!(tasks.task("a").requirements, ["a", &long[1..]]);
}
