//! Events of the components as the journal records them: with names, and without secrets.

use super::Core;
use crate::{
    agent::{self, journal::About},
    types::HashText,
};
use cowboy_engine::{
    primitives::{Hash, Wei},
    speculation::{SpeculationEventKind, TaskId},
};
use serde_json::{Map, Value, json};

impl Core {
    pub(in crate::agent) fn tell(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            let about = self.about(event.task.as_ref());
            let data = self.data(&event.kind);
            self.journal.push(event.kind.name(), event.at, about, data);
        }
    }

    /// Records one of the agent's own events about a task, after the machine's earlier ones.
    pub(super) fn tell_of(&mut self, task: &TaskId, kind: &str, data: Value, now: u64) {
        self.tell();
        let about = self.about(Some(task));
        self.journal.push(kind, now, about, fields(data));
    }

    fn about(&self, task: Option<&TaskId>) -> About {
        let found = task.and_then(|task| self.task(task));
        About {
            pipeline: found.map(|(run, _)| run.number),
            task: found.map(|(run, at)| run.entry(at).id.clone()),
            task_id: task.map(|task| HashText::from(*task)),
        }
    }

    /// An event's fields without its task and pipeline. The submission's number is left out because
    /// only the agent can use it.
    fn data(&self, kind: &SpeculationEventKind) -> Map<String, Value> {
        let wei = |amount: &Wei| amount.to_string();
        let hash = |hash: &Hash| hash.to_string();
        let time = |ms: u64| agent::time(ms).to_string();
        fields(match kind {
            SpeculationEventKind::TaskScheduled { depth, bond, attempt } => {
                json!({ "depth": depth, "bond": wei(bond), "attempt": attempt })
            }
            SpeculationEventKind::TaskRejected { reason, depth, bond } => json!({
                "reason": reason.name(), "depth": depth, "bond": bond.as_ref().map(wei),
            }),
            SpeculationEventKind::TaskCompleted { output_commitment } => {
                json!({ "output_commitment": hash(output_commitment) })
            }
            SpeculationEventKind::TaskFailed { reason } => json!({ "reason": reason.name() }),
            SpeculationEventKind::NodeAdded { parents } => json!({ "parents": parents }),
            SpeculationEventKind::NodeChanged { status } => json!({ "status": status.to_string() }),
            SpeculationEventKind::CommitmentCreated { output_commitment, expires_at } => json!({
                "output_commitment": hash(output_commitment), "expires_at": time(*expires_at),
            }),
            SpeculationEventKind::CommitmentUpdated { status } => {
                json!({ "status": status.to_string() })
            }
            SpeculationEventKind::ProofMoved { attempt, .. }
            | SpeculationEventKind::ProofSubmitted { attempt }
                if *attempt > 0 =>
            {
                json!({ "attempt": attempt })
            }
            SpeculationEventKind::AncestorConfirmed { unblocked } => {
                json!({ "unblocked": unblocked })
            }
            SpeculationEventKind::RollbackPlanned { reason, tasks, bonded } => {
                json!({ "reason": reason.name(), "tasks": tasks, "bonded": wei(bonded) })
            }
            SpeculationEventKind::TaskRolledBack { trigger } => {
                let named = self.task(trigger).map(|(run, at)| run.entry(at).id.clone());
                json!({ "trigger": named.unwrap_or_else(|| hash(trigger)) })
            }
            SpeculationEventKind::RollbackCompleted { tasks } => json!({ "tasks": tasks }),
            SpeculationEventKind::StakeLocked { amount }
            | SpeculationEventKind::StakeReleased { amount }
            | SpeculationEventKind::StakeSlashed { amount } => json!({ "amount": wei(amount) }),
            SpeculationEventKind::BreakerChanged { state } => json!({ "state": state.name() }),
            SpeculationEventKind::ChainBack { away_ms } => json!({ "away_ms": away_ms }),
            SpeculationEventKind::TaskConfirmed
            | SpeculationEventKind::ProofMoved { .. }
            | SpeculationEventKind::ProofSubmitted { .. }
            | SpeculationEventKind::ProofFailed
            | SpeculationEventKind::RollbackExecuting
            | SpeculationEventKind::BreakerProbe
            | SpeculationEventKind::ChainLost => json!({}),
        })
    }
}

fn fields(data: Value) -> Map<String, Value> {
    match data {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
