//! The cases of speculative execution, played against the machine. The invariants are checked
//! after every operation.
//!
//! A task's id is the hash of its name in the case. The submitter answers when an operation says
//! so; only `advance_ms` and `restore` move the clock.

use crate::cases::{self, Cases};
use cowboy_engine::{
    primitives::{Hash, Wei, keccak256},
    speculation::{
        Bonds, Config, Confirmation, DependencyStatus, EngineOutput, Graph, GraphError, Opening,
        PROOF_BYTES, ParentLink, Plan, ProofStatus, RollbackReason, RunRequest, Slashing,
        Speculation, SubmissionResult, TaskId,
        breaker::{Breaker, BreakerState, TaskFailure},
        engine::reads,
        reason::Reason,
        view::TaskView,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub type Vectors = Cases<Op, Then>;
pub type Case = cases::Case<Op, Then>;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Op {
    op: String,
    id: String,
    parents: Vec<String>,
    child: String,
    parent: String,
    what: String,
    claim_expires_in_ms: Option<u64>,
    output: Option<String>,
    proof_bytes: Option<usize>,
    result: String,
    retryable: Option<bool>,
    reason: String,
    ms: u64,
    amount: u64,
    key: String,
    value: Value,
    config: Map<String, Value>,
    downtime_ms: u64,
    times: Option<u64>,
    ops: Vec<Self>,
    expect: Map<String, Value>,
    expect_set: Option<BTreeSet<String>>,
    expect_order: Vec<(String, String)>,
    expect_size: Option<usize>,
    expect_empty: bool,
}

type ByName<T> = BTreeMap<String, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Then {
    status: Option<ByName<String>>,
    depth: Option<ByName<u32>>,
    submitted: Option<Vec<String>>,
    submitted_before: Option<Vec<(String, String)>>,
    confirmed_order: Option<Vec<String>>,
    rollbacks: Option<Vec<Rollback>>,
    rollback_order: Option<Vec<String>>,
    rollback_constraints: Option<Vec<(String, String)>>,
    rollback_sets: Option<Vec<BTreeSet<String>>>,
    available: Option<u128>,
    locked: Option<u128>,
    total_slashed: Option<u128>,
    bonds: Option<ByName<u128>>,
    proofs: Option<ByName<String>>,
    attempts: Option<ByName<usize>>,
    counts: Option<ByName<usize>>,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Rollback {
    trigger: String,
    reason: String,
    tasks: Vec<String>,
    slashed: u128,
    released: u128,
}

/// Plays a case; the error names the first mismatch.
pub fn check(vectors: &Vectors, case: &Case) -> Result<(), String> {
    let mut world = World::new(&vectors.defaults, case)?;
    for (at, op) in case.given.ops.iter().enumerate() {
        let in_op = |why: String| format!("{}, operation {at} ({}): {why}", case.id, op.op);
        world.step(op).map_err(in_op)?;
    }
    world.check(&case.then).map_err(|why| format!("{}: {why}", case.id))
}

fn is(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn id(name: &str) -> TaskId {
    keccak256(&[name.as_bytes()])
}

/// The machine's name and value of an option.
fn setting(key: &str, value: &Value) -> Vec<(String, String)> {
    let name = match key {
        // These are not options of the machine.
        "proof_bytes" | "slash_percent" => return Vec::new(),
        "min_stake" => "stake.minStake".to_owned(),
        "stake_per_depth" => "stake.stakePerDepth".to_owned(),
        "max_stake" => "stake.maxStake".to_owned(),
        "max_concurrent_submissions" => "maxConcurrent".to_owned(),
        "max_attempts" => "maxRetries".to_owned(),
        "retry_base_ms" => "retryDelayMs".to_owned(),
        "breaker_threshold" => "breaker.threshold".to_owned(),
        "breaker_reset_ms" => "breaker.resetMs".to_owned(),
        key => camel(key),
    };
    let text = match value {
        Value::Null => u64::MAX.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    vec![(name, text)]
}

fn camel(snake: &str) -> String {
    let mut parts = snake.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1);
        name += &first.to_uppercase();
        name += rest;
    }
    name
}

fn settings(config: &Map<String, Value>) -> Vec<(String, String)> {
    let of = config.iter().filter(|(key, _)| !key.starts_with('_'));
    of.flat_map(|(key, value)| setting(key, value)).collect()
}

/// Overrides the shares by reason with those of a case.
fn slashing(mut shares: Slashing, config: &Map<String, Value>) -> Result<Slashing, String> {
    let by_reason = config.get("slash_percent").and_then(Value::as_object);
    for (reason, percent) in by_reason.into_iter().flatten() {
        let points = percent.as_u64().ok_or("a share is whole per cent")? * 100;
        let share = match RollbackReason::named(reason).ok_or("an unknown reason")? {
            RollbackReason::ProofFailed => &mut shares.proof_failed,
            RollbackReason::ProofTimeout => &mut shares.proof_timeout,
            RollbackReason::AncestorFailed => &mut shares.ancestor_failed,
            RollbackReason::ClaimExpired => &mut shares.claim_expired,
            RollbackReason::ManualCancel => &mut shares.manual_cancel,
            RollbackReason::CommitmentExpired => &mut shares.commitment_expired,
        };
        *share = points;
    }
    Ok(shares)
}

fn pairs(settings: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    settings.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

struct World {
    machine: Speculation,
    /// For cases about the graph alone.
    graph: Option<Graph>,
    /// For cases about the breaker alone.
    breaker: Breaker,
    now: u64,
    names: BTreeMap<TaskId, String>,
    snapshot: Vec<u8>,
    /// The last submission of each task.
    submissions: BTreeMap<TaskId, u64>,
    submitted: Vec<String>,
    confirmed: Vec<String>,
    rollbacks: Vec<Plan>,
    /// The expected sum of available and slashed stake, in wei.
    deposited: u128,
    /// Depths at the last check, by task and attempt.
    depths: BTreeMap<(TaskId, u32), u32>,
}

impl World {
    fn new(defaults: &Map<String, Value>, case: &Case) -> Result<Self, String> {
        let wrong = |wrong: Vec<_>| format!("{}: {wrong:?}", case.id);
        let config = Config::default().with(pairs(&settings(defaults))).map_err(wrong)?;
        let config = config.with(pairs(&settings(&case.given.config))).map_err(wrong)?;
        let graph = case.given.ops.iter().any(|op| op.op == "add_task").then(Graph::default);
        let shares = slashing(slashing(Slashing::NONE, defaults)?, &case.given.config)?;
        let mut machine = Speculation::new(config, 0);
        machine.set_bonds(Bonds { slashing: shares, ..Bonds::UNBOUND });
        Ok(Self {
            machine,
            graph,
            breaker: Breaker::default(),
            now: 0,
            names: BTreeMap::new(),
            snapshot: Vec::new(),
            submissions: BTreeMap::new(),
            submitted: Vec::new(),
            confirmed: Vec::new(),
            rollbacks: Vec::new(),
            deposited: 0,
            depths: BTreeMap::new(),
        })
    }

    fn id(&mut self, name: &str) -> TaskId {
        self.names.insert(id(name), name.to_owned());
        id(name)
    }

    fn name(&self, id: &TaskId) -> String {
        self.names.get(id).cloned().unwrap_or_else(|| id.to_string())
    }

    fn names(&self, ids: &[TaskId]) -> Vec<String> {
        ids.iter().map(|id| self.name(id)).collect()
    }

    fn graph(&self) -> &Graph {
        self.graph.as_ref().unwrap_or_else(|| self.machine.graph())
    }

    fn views(&self) -> Vec<TaskView> {
        self.graph().tasks().filter_map(|(id, _)| self.machine.task(id)).collect()
    }

    /// Applies an operation and compares its result.
    fn step(&mut self, op: &Op) -> Result<(), String> {
        let before = (self.views(), *self.machine.stake(), self.graph().len());
        let got = self.apply(op)?;
        self.drain()?;
        let refused = [got.get("ok"), got.get("accepted")].contains(&Some(&Value::Bool(false)));
        let after = (self.views(), *self.machine.stake(), self.graph().len());
        is(!refused || before == after, || "it was refused and changed something".to_owned())?;
        self.invariants()?;

        for (key, expected) in &op.expect {
            is(got.get(key) == Some(expected), || {
                format!("got {got}, expected {key}: {expected}")
            })?;
        }
        let list = || -> Vec<String> {
            let value = got.get("value").and_then(Value::as_array).into_iter().flatten();
            value.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if let Some(expected) = &op.expect_set {
            let got: BTreeSet<_> = list().into_iter().collect();
            is(got == *expected, || format!("got {got:?}, expected {expected:?}"))?;
        }
        in_order(&list(), &op.expect_order)?;
        if let Some(size) = op.expect_size {
            is(list().len() == size, || format!("got {}, expected {size}", list().len()))?;
        }
        is(!op.expect_empty || list().is_empty(), || format!("got {:?}", list()))
    }

    fn apply(&mut self, op: &Op) -> Result<Value, String> {
        let now = self.now;
        let task = self.id(&op.id);
        let parents: Vec<TaskId> = op.parents.iter().map(|parent| self.id(parent)).collect();
        let refused = |error: &str| json!({"ok": false, "error": error});
        Ok(match op.op.as_str() {
            "add_task" => {
                let links: Vec<_> = parents.iter().map(|&one| (one, ParentLink::Reads)).collect();
                let graph = self.graph.as_mut().ok_or("no graph")?;
                match graph.add(task, &links) {
                    Ok(depth) => json!({"ok": true, "depth": depth}),
                    Err(error) => refused(graph_error(error)),
                }
            }
            "would_cycle" => {
                let (child, parent) = (self.id(&op.child), self.id(&op.parent));
                json!({"cycle": self.graph().would_cycle(&child, &parent)})
            }
            "remove_subtree" => {
                let graph = self.graph.as_mut().ok_or("no graph")?;
                json!({"removed": graph.remove_subtree(&task)})
            }
            "query" => {
                let graph = self.graph();
                let found = match op.what.as_str() {
                    "ancestors" => graph.ancestors(&task),
                    "unconfirmed_ancestors" => graph.unconfirmed_ancestors(&task),
                    "descendants" => graph.descendants(&task),
                    "roots" => graph.roots(),
                    "leaves" => graph.leaves(),
                    "topological_order" => graph.topological_order(),
                    other => return Err(format!("unknown query `{other}`")),
                };
                json!({"value": self.names(&found)})
            }
            "schedule" => {
                let lasts = op.claim_expires_in_ms.unwrap_or(10_000_000);
                let claim_expires_at = now.saturating_add(lasts);
                let parents = reads(&parents);
                let request = RunRequest::new(task, &parents, claim_expires_at);
                match self.machine.schedule(request, now) {
                    Ok(scheduled) => {
                        let most = self.machine.config().max_depth;
                        is(u64::from(scheduled.depth) <= most, || "too deep".to_owned())?;
                        let bond = scheduled.bond.get() as u64;
                        json!({"accepted": true, "depth": scheduled.depth, "bond": bond})
                    }
                    Err(refused) => json!({
                        "accepted": false,
                        "reason": refused.reason.name(),
                        "depth": refused.depth,
                        "bond": refused.bond.map(|bond| bond.get() as u64),
                    }),
                }
            }
            "complete" => {
                let output = op.output.as_ref().unwrap_or(&op.id);
                let proof = vec![7; op.proof_bytes.unwrap_or(PROOF_BYTES)];
                match self.machine.complete(task, opening(output), &proof, now) {
                    Ok(bond) => json!({"ok": true, "bond": bond.get() as u64}),
                    Err(error) => refused(error.name()),
                }
            }
            "proof_result" => {
                let answer = match (op.result.as_str(), op.retryable.unwrap_or(true)) {
                    ("ok", _) => SubmissionResult::Confirmed,
                    ("fail", true) => SubmissionResult::Lost,
                    ("fail", false) => SubmissionResult::Rejected,
                    (other, _) => return Err(format!("unknown result `{other}`")),
                };
                let submission = self.submissions.get(&task).copied().unwrap_or(u64::MAX);
                match self.machine.answer(task, submission, answer, now) {
                    Ok(answered) => json!({"ok": true, "retry_in_ms": answered.retry_in_ms}),
                    Err(_) => refused("stale_result"),
                }
            }
            "confirm" => match self.machine.confirm(task, now) {
                Ok(done) => json!({
                    "ok": true,
                    "held": done == Confirmation::Held,
                    "duplicate": done == Confirmation::Duplicate,
                }),
                Err(error) => refused(error.name()),
            },
            "fail" | "cancel" => {
                let reason = reason(op)?;
                match self.machine.fail(task, reason, now) {
                    Ok(count) => json!({"ok": true, "rolled_back": count}),
                    Err(error) => refused(error.name()),
                }
            }
            "simultaneously" => {
                for one in &op.ops {
                    let task = self.id(&one.id);
                    let requested = self.machine.request_rollback(task, reason(one)?);
                    requested.map_err(|error| error.to_string())?;
                }
                self.machine.advance(now);
                json!({"ok": true})
            }
            "advance_ms" => {
                self.now += op.ms;
                while let Some(due) = self.machine.next_deadline().filter(|&at| at <= self.now) {
                    self.machine.advance(due);
                    self.drain()?;
                }
                self.machine.advance(self.now);
                json!({"ok": true})
            }
            "set_stake" => {
                self.machine.set_stake(Wei::new(op.amount.into()));
                self.deposited = u128::from(op.amount) + self.machine.stake().slashed.get();
                json!({"ok": true})
            }
            "set_config" => {
                let wanted = setting(&op.key, &op.value);
                match self.machine.configure(pairs(&wanted), now) {
                    Ok(()) => json!({"ok": true}),
                    Err(wrong) => refused(wrong[0].problem.name()),
                }
            }
            "validate_config" => {
                let given: BTreeMap<String, &String> =
                    op.config.keys().map(|key| (camel(key), key)).collect();
                let wrong = Config::default().with(pairs(&settings(&op.config))).err();
                let wrong = wrong.unwrap_or_default();
                let mut keys: Vec<_> =
                    wrong.iter().map(|error| given[&error.option].clone()).collect();
                keys.sort();
                json!({"valid": keys.is_empty(), "invalid_keys": keys})
            }
            "snapshot" => {
                self.snapshot = self.machine.snapshot();
                json!({"ok": true})
            }
            "restore" => {
                self.now += op.downtime_ms;
                let restored = Speculation::restore(&self.snapshot, self.now);
                self.machine = restored.map_err(|error| error.to_string())?;
                json!({"ok": true})
            }
            "breaker_failure" => {
                let limits = self.machine.config().breaker;
                let failure = TaskFailure { task, reason: RollbackReason::ProofFailed, at: now };
                (0..op.times.unwrap_or(1))
                    .for_each(|_| self.breaker.record_failure(limits, failure, &[task]));
                json!({"ok": true})
            }
            "breaker_success" => {
                self.breaker.record_success(task);
                json!({"ok": true})
            }
            "can_proceed" => {
                let limits = self.machine.config().breaker;
                let state = self.breaker.state(limits, now);
                let value = self.breaker.can_proceed(limits, now);
                if state == BreakerState::HalfOpen && value {
                    // The task that asks is the probe.
                    self.breaker.proceed(limits, now, task);
                }
                json!({"value": value, "state": state.name()})
            }
            other => return Err(format!("unknown operation `{other}`")),
        })
    }

    /// Drains the machine's outputs, and checks that each is allowed.
    fn drain(&mut self) -> Result<(), String> {
        while let Some(output) = self.machine.poll_output() {
            match output {
                EngineOutput::Submit { task, submission, .. } => {
                    let early = self.graph().ancestors(&task);
                    let early = early.iter().any(|one| !self.is_confirmed(one));
                    is(!early, || format!("{} went out early", self.name(&task)))?;
                    self.submissions.insert(task, submission);
                    self.submitted.push(self.name(&task));
                }
                EngineOutput::Confirmed { task, .. } => {
                    let early = self.graph().ancestors(&task);
                    let early = early.iter().any(|one| !self.confirmed.contains(&self.name(one)));
                    is(!early, || format!("{} is confirmed early", self.name(&task)))?;
                    self.confirmed.push(self.name(&task));
                }
                EngineOutput::RolledBack(plan) => {
                    self.check_plan(&plan)?;
                    self.rollbacks.push(plan);
                }
                EngineOutput::Prove { .. }
                | EngineOutput::LateSuccess { .. }
                | EngineOutput::Breaker(_)
                | EngineOutput::TryChain { .. }
                | EngineOutput::ChainBack { .. } => {}
            }
        }
        Ok(())
    }

    fn is_confirmed(&self, id: &TaskId) -> bool {
        self.graph().status(id) == Some(DependencyStatus::Confirmed)
    }

    fn check_plan(&self, plan: &Plan) -> Result<(), String> {
        let place: BTreeMap<&TaskId, usize> = plan.tasks.iter().zip(0..).collect();
        is(place.len() == plan.tasks.len(), || "a task is undone twice".to_owned())?;
        is(plan.tasks.last() == Some(&plan.summary.trigger), || "the trigger is not last".into())?;
        for (task, at) in &place {
            for (parent, _) in self.graph().parents(task) {
                let before = place.get(&parent).is_some_and(|parent_at| parent_at < at);
                is(!before, || format!("{} goes after its parent", self.name(task)))?;
            }
        }
        for below in self.graph().descendants(&plan.summary.trigger) {
            let live = self.graph().status(&below).is_some_and(DependencyStatus::is_live);
            is(!live, || format!("{} outlives its ancestor", self.name(&below)))?;
        }
        Ok(())
    }

    fn invariants(&mut self) -> Result<(), String> {
        let graph = self.graph();
        is(graph.topological_order().len() == graph.len(), || "the graph has a cycle".into())?;
        let mut depths: BTreeMap<TaskId, u32> = BTreeMap::new();
        for task in graph.topological_order() {
            let open = graph.parents(&task).into_iter().filter(|(one, _)| !self.is_confirmed(one));
            let depth = open.map(|(parent, _)| depths[&parent] + 1).max().unwrap_or(0);
            depths.insert(task, depth);
            let got = graph.depth(&task);
            is(got == Some(depth), || format!("{}: depth {got:?}", self.name(&task)))?;
        }
        let views = self.views();
        let live = views.iter().filter(|view| view.status.is_live());
        let bonds: u128 = live.map(|view| view.bond.get()).sum();
        let stake = *self.machine.stake();
        is(stake.locked.get() == bonds, || format!("{stake:?}, bonds {bonds}"))?;
        let total = stake.available.get() + stake.slashed.get();
        is(total == self.deposited, || format!("{stake:?} of {}", self.deposited))?;
        let (ready, in_flight) = self.machine.proofs();
        let most = self.machine.config().max_concurrent as usize;
        is(in_flight <= most, || format!("{in_flight} in flight"))?;
        is(ready == 0 || in_flight == most, || format!("{ready} ready, {in_flight} in flight"))?;
        for view in views {
            let before = self.depths.insert((view.id, view.attempt), view.depth);
            let rose = before.is_some_and(|before| before < view.depth);
            is(!rose, || format!("{} is deeper than before", self.name(&view.id)))?;
        }
        Ok(())
    }

    fn check(&self, then: &Then) -> Result<(), String> {
        each("status", then.status.as_ref(), |id| {
            self.graph().status(id).map(|status| status.name().to_owned())
        })?;
        each("depth", then.depth.as_ref(), |id| self.graph().depth(id))?;
        each("bond", then.bonds.as_ref(), |id| Some(self.machine.task(id)?.bond.get()))?;
        each("proof", then.proofs.as_ref(), |id| {
            // These cases do not distinguish a proof that backs off from a ready one.
            let status = self.machine.task(id)?.proof;
            let status = if status == ProofStatus::BackOff { ProofStatus::Ready } else { status };
            Some(status.name().to_owned())
        })?;
        each("attempts", then.attempts.as_ref(), |id| {
            let name = self.name(id);
            Some(self.submitted.iter().filter(|one| **one == name).count())
        })?;
        same("submitted", &self.submitted, then.submitted.as_ref())?;
        same("confirmed_order", &self.confirmed, then.confirmed_order.as_ref())?;
        in_order(&self.submitted, then.submitted_before.as_deref().unwrap_or_default())?;
        let plan = |plan: &Plan| {
            let mut tasks = self.names(&plan.tasks);
            tasks.sort();
            Rollback {
                trigger: self.name(&plan.summary.trigger),
                reason: plan.summary.reason.name().to_owned(),
                tasks,
                slashed: plan.summary.slashed.get(),
                released: plan.summary.released.get(),
            }
        };
        let plans: Vec<_> = self.rollbacks.iter().map(plan).collect();
        same("rollbacks", &plans, then.rollbacks.as_ref())?;
        let sets: Vec<BTreeSet<_>> =
            plans.iter().map(|plan| plan.tasks.iter().cloned().collect()).collect();
        same("rollback_sets", &sets, then.rollback_sets.as_ref())?;
        let undone: Vec<_> =
            self.rollbacks.iter().flat_map(|plan| self.names(&plan.tasks)).collect();
        same("rollback_order", &undone, then.rollback_order.as_ref())?;
        in_order(&undone, then.rollback_constraints.as_deref().unwrap_or_default())?;
        let stake = self.machine.stake();
        same("available", &stake.available.get(), then.available.as_ref())?;
        same("locked", &stake.locked.get(), then.locked.as_ref())?;
        same("total_slashed", &stake.slashed.get(), then.total_slashed.as_ref())?;
        for (what, expected) in then.counts.iter().flatten() {
            let got = match what.as_str() {
                "tasks" => self.graph().len(),
                "live" => self.graph().live(),
                "branches" => self.graph().branches(),
                "confirmed" => self.confirmed.len(),
                "submitted" => self.submitted.len(),
                "rollbacks" => self.rollbacks.len(),
                "rolled_back" => undone.len(),
                other => return Err(format!("unknown count `{other}`")),
            };
            same(what, &got, Some(expected))?;
        }
        Ok(())
    }
}

fn each<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: Option<&ByName<T>>,
    got: impl Fn(&Hash) -> Option<T>,
) -> Result<(), String> {
    for (name, expected) in expected.into_iter().flatten() {
        let got = got(&id(name));
        is(got.as_ref() == Some(expected), || {
            format!("{what} of {name}: got {got:?}, expected {expected:?}")
        })?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    got: &T,
    expected: Option<&T>,
) -> Result<(), String> {
    is(expected.is_none_or(|expected| expected == got), || {
        format!("{what}: got {got:?}, expected {expected:?}")
    })
}

fn in_order(list: &[String], pairs: &[(String, String)]) -> Result<(), String> {
    for (first, second) in pairs {
        let place = |name: &String| list.iter().position(|one| one == name);
        let ordered = place(first).zip(place(second)).is_some_and(|(a, b)| a < b);
        is(ordered, || format!("{first} does not come before {second} in {list:?}"))?;
    }
    Ok(())
}

fn opening(output: &str) -> Opening {
    Opening {
        output_commitment: keccak256(&[b"output", output.as_bytes()]),
        constraint_hash: keccak256(&[b"constraint", output.as_bytes()]),
        salt: [0; 32],
    }
}

fn reason(op: &Op) -> Result<RollbackReason, String> {
    let name = if op.op == "cancel" { "manual_cancel" } else { op.reason.as_str() };
    RollbackReason::named(name).ok_or_else(|| format!("unknown reason `{name}`"))
}

fn graph_error(error: GraphError) -> &'static str {
    Reason::from(error).name()
}
