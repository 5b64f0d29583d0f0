//! Blocks of random transactions about tasks: rewards and bonds add up exactly, to the wei.

use super::*;
use crate::speculation::Slashing;
use std::collections::BTreeMap;

/// A small pseudorandom generator, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The distribution of money according to receipts and events.
#[derive(Default)]
struct Ledger {
    balances: BTreeMap<Address, Wei>,
    burned: Wei,
    /// The escrow for each task, with its creator.
    rewards: BTreeMap<Hash, (Address, Wei)>,
    /// The bond of each task's commitment, with its agent.
    bonds: BTreeMap<Hash, (Address, Wei)>,
    /// How often each kind of event occurred.
    seen: BTreeMap<&'static str, u32>,
    /// How often commitments ended for each reason.
    reasons: BTreeMap<Option<RollbackReason>, u32>,
}

impl Ledger {
    fn of(state: &State) -> Self {
        let balances = state.accounts().map(|(address, account)| (*address, account.balance));
        Self { balances: balances.collect(), burned: state.supply().burned, ..Self::default() }
    }

    fn take(&mut self, from: Address, amount: Wei) {
        let balance = self.balances.entry(from).or_default();
        *balance = balance.checked_sub(amount).expect("an account pays what it has");
    }

    fn give(&mut self, to: Address, amount: Wei) {
        let balance = self.balances.entry(to).or_default();
        *balance = balance.saturating_add(amount);
    }

    fn book(&mut self, block: &Block, execution: &Execution, proposer: Address) {
        for receipt in &execution.receipts {
            self.take(receipt.sender, receipt.burned.saturating_add(receipt.tip));
            self.burned = self.burned.saturating_add(receipt.burned);
            self.give(proposer, receipt.tip);
        }
        for event in &execution.events {
            *self.seen.entry(event.kind.name()).or_default() += 1;
            match &event.kind {
                EventKind::TaskCreated(event::TaskCreated { task_id, creator, reward, .. }) => {
                    self.take(*creator, *reward);
                    assert_eq!(self.rewards.insert(*task_id, (*creator, *reward)), None);
                }
                EventKind::CommitmentCreated(made) => {
                    let event::CommitmentCreated { task_id, agent, bond, .. } = made;
                    self.take(*agent, *bond);
                    assert_eq!(self.bonds.insert(*task_id, (*agent, *bond)), None);
                }
                EventKind::TaskCompleted(event::TaskCompleted { task_id, agent, paid }) => {
                    let (_, reward) = self.rewards.remove(task_id).expect("it is held once");
                    assert_eq!(reward, *paid);
                    self.give(*agent, *paid);
                }
                EventKind::TaskExpired(event::TaskExpired { task_id, refunded }) => {
                    let (creator, reward) = self.rewards.remove(task_id).expect("it is held once");
                    assert_eq!(reward, *refunded);
                    self.give(creator, *refunded);
                }
                EventKind::CommitmentResolved(resolved) => self.resolve(resolved),
                _ => {}
            }
        }
        assert_eq!(execution.receipts.len(), block.transactions.len());
    }

    fn resolve(&mut self, resolved: &event::CommitmentResolved) {
        let event::CommitmentResolved { task_id, agent, reason, released, slashed } = *resolved;
        let Some((whose, bond)) = self.bonds.remove(&task_id) else {
            assert_eq!((released, slashed), (Wei::ZERO, Wei::ZERO), "a claim without commitment");
            return;
        };
        assert_eq!(whose, agent);
        let points = match reason {
            Some(RollbackReason::ProofFailed) => 1_237,
            Some(RollbackReason::AncestorFailed) => 3,
            Some(RollbackReason::ManualCancel) => 777,
            None => 0,
            Some(_) => 500,
        };
        assert_eq!(slashed.get(), bond.get() * points / 10_000);
        *self.reasons.entry(reason).or_default() += 1;
        assert_eq!(released.checked_add(slashed), Some(bond));
        self.give(agent, released);
        self.burned = self.burned.saturating_add(slashed);
    }

    fn check(&self, state: &State) {
        let here = Self::of(state);
        let rich = |balances: &BTreeMap<Address, Wei>| -> Vec<_> {
            balances.iter().map(|(a, b)| (*a, *b)).filter(|(_, b)| !b.is_zero()).collect()
        };
        assert_eq!(rich(&here.balances), rich(&self.balances), "block {}", state.height());
        let sum = |held: &BTreeMap<Hash, (Address, Wei)>| {
            held.values().fold(Wei::ZERO, |sum, (_, amount)| sum.saturating_add(*amount))
        };
        let supply = state.supply();
        assert_eq!((supply.escrow, supply.bonds), (sum(&self.rewards), sum(&self.bonds)));
        assert_eq!(supply.burned, self.burned);
        // The tasks' own records, and the index of those that have not ended.
        let open = |task: &&Task| !task.has_ended();
        let (mut rewards, mut bonds) = (Wei::ZERO, Wei::ZERO);
        for (_, task) in state.tasks() {
            let reward = Some(task).filter(open).map_or(Wei::ZERO, |task| task.reward);
            rewards = rewards.saturating_add(reward);
            let bond = task.commitment.map_or(Wei::ZERO, |commitment| commitment.bond);
            bonds = bonds.saturating_add(bond);
            assert_eq!(task.status == TaskStatus::Claimed, task.claim.is_some() && open(&task));
        }
        assert_eq!((supply.escrow, supply.bonds), (rewards, bonds));
        assert_eq!(state.open_tasks().count(), self.rewards.len());
    }
}

const NAMES: [&str; 3] = ["alice", "bob", "carol"];

/// A transaction about one of the newest of `made` tasks, so that transactions meet on the same
/// tasks. Prefers a task that `who` has claimed; three times out of four it is the task's next
/// step.
fn payload(random: &mut Random, state: &State, who: &str, made: u64) -> Payload {
    let height = state.height().get();
    let mut newest = (1..=9).map(|back| format!("task {}", made.saturating_sub(back)));
    let own = |name: &String| {
        let claim = state.task(&id(name)).and_then(|task| task.claim);
        claim.is_some_and(|claim| {
            claim.agent == key(who).address() && !claim.is_past(state.height())
        })
    };
    let any = random.below(9) as usize;
    let name = match random.below(3) {
        0 => newest.nth(any),
        _ => newest.clone().find(own).or_else(|| newest.nth(any)),
    };
    let name = name.expect("any is below nine");
    let Some(task) = state.task(&id(&name)) else { return claim(&name, height + 9) };
    // A claimant blames an ancestor where it can.
    let blames = task.commitment.is_some_and(|commitment| {
        let parents = task.depends_on.iter().filter_map(|parent| state.task(parent));
        let mut failed = parents.filter_map(|parent| parent.failed_at);
        commitment.agent == key(who).address() && failed.any(|at| at >= commitment.created_at)
    });
    if blames && random.below(2) == 0 {
        return resolve(&name, Some(RollbackReason::AncestorFailed));
    }
    // Now and then an agent gives up a task when another of its commitments depends on it.
    let is_own = |parent: &&Hash| {
        let commitment = state.task(parent).and_then(|parent| parent.commitment);
        commitment.is_some_and(|commitment| commitment.agent == key(who).address())
    };
    if task.commitment.is_some()
        && let Some(parent) = task.depends_on.iter().find(is_own)
        && random.below(4) == 0
    {
        let (task_id, reason) = (*parent, Some(RollbackReason::ManualCancel));
        return Payload::ResolveCommitment(ResolveCommitment { task_id, reason });
    }
    let next = match (task.status, &task.commitment) {
        (TaskStatus::Open | TaskStatus::Expired, _) => 0,
        (TaskStatus::Claimed, None) => 1,
        (TaskStatus::Claimed, Some(_)) => 2,
        (TaskStatus::Completed, _) => 3,
    };
    match if random.below(4) == 0 { random.below(6) } else { next } {
        0 => claim(&name, task.deadline.get().min(height + 3 + random.below(20))),
        1 => Payload::CreateCommitment(CreateCommitment {
            task_id: id(&name),
            output_commitment: output_commitment(&name),
            inputs: inputs_now(state, &id(&name)),
            bond: Wei::new(u128::from(random.below(1_000_000))),
            expires_at: None,
        }),
        2 => {
            let inputs = task.commitment.map_or(Hash::ZERO, |commitment| commitment.inputs);
            let mut proof = proof_from(&name, &inputs, who, &witness(&name), false);
            if random.below(12) == 0 {
                proof[random.below(PROOF_BYTES as u64) as usize] ^= 4;
            }
            let parents = task.depends_on.clone();
            Payload::CompleteTask(CompleteTask { task_id: id(&name), parents, proof })
        }
        3 => resolve(&name, None),
        4 => claim(&name, height + 2 + random.below(60)),
        _ => {
            let reasons = RollbackReason::ALL;
            resolve(&name, Some(reasons[random.below(reasons.len() as u64) as usize]))
        }
    }
}

/// Creates task number `n`, on up to three of the newest tasks before it.
fn creation(random: &mut Random, height: u64, n: u64) -> Payload {
    let parents = (0..random.below(4).min(n)).map(|back| id(&format!("task {}", n - 1 - back)));
    let name = format!("task {n}");
    Payload::CreateTask(CreateTask {
        task_id: id(&name),
        depends_on: parents.collect(),
        order_only: vec![],
        constraint_hash: (random.below(2) == 0).then(|| hash_4(witness(&name).output)),
        requirements: vec![],
        reward: Wei::new(u128::from(random.below(1_000_000_000))),
        deadline: Height::new(height + 4 + random.below(40)),
    })
}

#[test]
fn rewards_and_bonds_add_up_whatever_is_sent() {
    const BLOCKS: u64 = 900;
    let slashing = Slashing {
        proof_failed: 1_237,
        ancestor_failed: 3,
        manual_cancel: 777,
        ..Slashing::SOURCE
    };
    let bonds = Bonds { base: 1_003, per_depth: 501, slashing };
    let mut tasks = Tasks::with(Scheme::Mock([0; 32]), bonds);
    let proposer = key("validator-0").address();
    let mut random = Random(11);
    let (mut made, mut sent) = (0, 0);
    let mut ledger = Ledger::of(&tasks.chain.state);
    for _ in 0..BLOCKS {
        let state = &tasks.chain.state;
        let height = state.height().next().get();
        let mut transactions = Vec::new();
        for who in NAMES {
            let nonce = state.account(&key(who).address()).nonce;
            for n in 0..random.below(5) {
                let payload = match random.below(16) {
                    0 => {
                        made += 1;
                        creation(&mut random, height, made - 1)
                    }
                    _ => payload(&mut random, state, who, made),
                };
                transactions.push(tasks.chain.sign_at(who, nonce + n, payload));
            }
        }
        sent += transactions.len();
        let block = tasks.chain.block(transactions);
        let execution = execute(state, &block).unwrap();
        ledger.book(&block, &execution, proposer);
        ledger.check(&execution.state);
        assert_eq!(execution.state.supply().total(), tasks.chain.supply);
        if height.is_multiple_of(100) {
            let snapshot = State::from_bytes(&execution.state.to_bytes()).unwrap();
            assert_eq!(snapshot.root(), execution.state.root());
        }
        tasks.chain.state = execution.state;
    }
    let seen = |kind: &str| ledger.seen.get(kind).copied().unwrap_or(0);
    let kinds = [
        "TaskCreated",
        "TaskClaimed",
        "CommitmentCreated",
        "TaskCompleted",
        "CommitmentResolved",
        "TaskExpired",
    ];
    let counts = kinds.map(seen);
    assert!(sent > 3_000 && counts.iter().all(|count| *count > 50), "{sent} sent, {counts:?}");
    let reasons = RollbackReason::ALL.iter().copied().map(Some).chain([None]);
    let missing = reasons.filter(|reason| !ledger.reasons.contains_key(reason));
    assert_eq!(missing.collect::<Vec<_>>(), [], "{:?}", ledger.reasons);
    // All deadlines pass and all commitments are confirmed, so nothing is held in the end.
    let end = tasks.next() + 60;
    tasks.wait(end);
    let left: Vec<Hash> = tasks.chain.state.tasks().map(|(task_id, _)| *task_id).collect();
    for task_id in left {
        if tasks.chain.state.task(&task_id).unwrap().commitment.is_some() {
            let resolve = ResolveCommitment { task_id, reason: None };
            tasks.done("alice", Payload::ResolveCommitment(resolve));
        }
    }
    let supply = tasks.chain.state.supply();
    assert_eq!((supply.escrow, supply.bonds), (Wei::ZERO, Wei::ZERO));
}
