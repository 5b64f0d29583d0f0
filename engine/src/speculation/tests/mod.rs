//! Tests beyond the shared cases: policies, limits, pruning, invalid snapshots, size, random
//! operations.

mod away;
mod chaos;
mod events;
mod large;
mod limits;
mod oracle;
mod policies;
mod proofs;
mod snapshots;

use super::{
    Config, DependencyStatus, EngineOutput, Opening, PROOF_BYTES, ParentLink, Plan, Refused,
    RunRequest, Scheduled, Speculation, TaskId, engine::reads,
};
use crate::primitives::{Hash, Wei, keccak256};

/// The proof for all tasks.
const PROOF: [u8; PROOF_BYTES] = [7; PROOF_BYTES];
/// A claim that outlasts every test.
const CLAIM: u64 = 1 << 40;

/// A task's id from a name.
fn id(name: &str) -> TaskId {
    keccak256(&[name.as_bytes()])
}

fn opening(output: TaskId) -> Opening {
    let constraint_hash = Hash([1; 32]);
    Opening { output_commitment: output, constraint_hash, salt: [2; 32] }
}

/// A machine that speculates, with plenty of stake, and `settings` on top.
fn machine(settings: &[(&str, &str)]) -> Speculation {
    let usual = [
        ("enabled", "true"),
        ("maxParallelBranches", "16"),
        ("stake.minStake", "1000000"),
        ("stake.stakePerDepth", "500000"),
    ];
    let usual = usual.iter().filter(|(name, _)| settings.iter().all(|(other, _)| other != name));
    let config = Config::default().with(usual.chain(settings).copied()).unwrap();
    let mut machine = Speculation::new(config, 0);
    machine.set_stake(Wei::new(1_000_000_000));
    machine
}

/// The names of a plan's tasks, out of `names`.
fn undone(plan: &Plan, names: &[&str]) -> Vec<String> {
    let name = |task: &TaskId| names.iter().find(|name| id(name) == *task).unwrap().to_string();
    plan.tasks.iter().map(name).collect()
}

impl Speculation {
    fn try_task(&mut self, name: &str, parents: &[&str]) -> Result<Scheduled, Refused> {
        let parents: Vec<_> = parents.iter().map(|parent| id(parent)).collect();
        self.schedule(RunRequest::new(id(name), &reads(&parents), CLAIM), self.now())
    }

    /// Schedules a task that reads its parents' outputs, and completes it.
    fn done(&mut self, name: &str, parents: &[&str]) {
        self.try_task(name, parents).unwrap();
        self.complete(id(name), opening(id(name)), &PROOF, self.now()).unwrap();
    }

    /// Schedules and completes a task that only comes after its parents.
    fn done_after(&mut self, name: &str, parents: &[&str]) {
        let parents: Vec<_> = parents.iter().map(|one| (id(one), ParentLink::OrderOnly)).collect();
        self.schedule(RunRequest::new(id(name), &parents, CLAIM), self.now()).unwrap();
        self.complete(id(name), opening(id(name)), &PROOF, self.now()).unwrap();
    }

    fn status(&self, name: &str) -> DependencyStatus {
        self.graph().status(&id(name)).unwrap()
    }

    fn take(&mut self) -> Vec<EngineOutput> {
        std::iter::from_fn(|| self.poll_output()).collect()
    }

    fn plans(&mut self) -> Vec<Plan> {
        let plan = |output| match output {
            EngineOutput::RolledBack(plan) => Some(plan),
            _ => None,
        };
        self.take().into_iter().filter_map(plan).collect()
    }

    /// The pending submissions: task and number.
    fn submissions(&mut self) -> Vec<(TaskId, u64)> {
        let submission = |output| match output {
            EngineOutput::Submit { task, submission, .. } => Some((task, submission)),
            _ => None,
        };
        self.take().into_iter().filter_map(submission).collect()
    }
}
