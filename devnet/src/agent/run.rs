//! An accepted pipeline: its tasks and their progress.

use crate::{
    speculation::pipeline::{Checked, CheckedTask, Pipeline, TaskEntry, TaskFault, task_id},
    types::{HashText, PipelineStatus, TaskStatus},
};
use cowboy_engine::{
    primitives::{Address, Hash},
    speculation::TaskId,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// Maximum number of transactions kept per task; the oldest go first.
const TRANSACTIONS: usize = 32;

pub(super) struct Run {
    pub(super) number: u64,
    pub(super) pipeline: Checked,
    pub(super) children: Vec<Vec<usize>>,
    pub(super) rank: Vec<usize>,
    /// Tasks with memory faults, and the MiB that they take.
    pub(super) memory_faults: Vec<(usize, u64)>,
    pub(super) tasks: Vec<TaskRun>,
    /// Unix ms.
    pub(super) submitted_at: u64,
    /// When its last task became final, Unix ms.
    pub(super) ended_at: Option<u64>,
    pub(super) open: usize,
    /// Whether one of its tasks was accepted before its parents were confirmed.
    pub(super) speculated: bool,
    /// Time that this devnet would take with speculation off, in ms; known once all are confirmed.
    pub(super) synchronous_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) submitted_at: u64,
    pub(super) ended_at: Option<u64>,
    pub(super) speculated: bool,
    pub(super) synchronous_ms: Option<u64>,
}

/// A task's progress: everything stored of it except its output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskRun {
    #[serde(skip)]
    pub(super) id: TaskId,
    pub(super) status: TaskStatus,
    pub(super) reason: Option<String>,
    /// Attempts that failed by the task's own fault.
    pub(super) failures: u32,
    pub(super) attempt: u32,
    pub(super) depth: u32,
    /// Wei; `None` before it was accepted.
    pub(super) bond: Option<u64>,
    pub(super) claim_expires_at: u64,
    pub(super) runner: Option<String>,
    pub(super) times: StageTimes,
    /// Time that its proof took to make, in ms.
    pub(super) proof_ms: Option<u64>,
    /// Total time of its own failed attempts, without their waits for ancestors, in ms.
    pub(super) lost_ms: u64,
    pub(super) sent: Vec<(String, HashText)>,
    /// Whether the chain has accepted its proof, whatever happened to the task here.
    pub(super) landed: bool,
    /// The output commitment that the chain has, if known.
    pub(super) taken: Option<HashText>,
    pub(super) cancelled: bool,
    /// When it was last retried after its end, Unix ms.
    pub(super) retried_at: Option<u64>,
    /// The digest of the inputs that its output was made from, which a commitment covers. The
    /// output is valid for these inputs only.
    pub(super) inputs: Option<HashText>,
    /// The last rollback that undid it, until the chain has reported the cost.
    pub(super) undone_by: Option<u64>,
    /// Wei that the chain slashed and released for its commitment while the task was live here, for
    /// example because the process was killed before it heard of a refusal. The next rollback
    /// accounts for it.
    pub(super) resolved: Option<(u64, u64)>,
    /// Its output, while it is valid or may be reused.
    #[serde(skip)]
    pub(super) output: Option<Arc<Vec<u8>>>,
}

/// When its last attempt reached each stage, Unix ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageTimes {
    pub(super) scheduled: Option<u64>,
    pub(super) executed: Option<u64>,
    pub(super) proved: Option<u64>,
    pub(super) submitted: Option<u64>,
    /// When a validator received its proof.
    pub(super) delivered: Option<u64>,
    pub(super) confirmed: Option<u64>,
    pub(super) ended: Option<u64>,
}

impl StageTimes {
    /// The attempt's time until `now`, without its wait for ancestors, in ms.
    pub(super) fn own_ms(self, now: u64) -> u64 {
        let waited = self.submitted.unwrap_or(now).saturating_sub(self.proved.unwrap_or(now));
        now.saturating_sub(self.scheduled.unwrap_or(now)).saturating_sub(waited)
    }
}

impl Run {
    pub(super) fn new(agent: &Address, number: u64, pipeline: Checked, submitted_at: u64) -> Self {
        let fresh = |task: &CheckedTask| TaskRun {
            id: task_id(agent, number, &pipeline.name, &task.entry.id),
            ..TaskRun::default()
        };
        let tasks: Vec<TaskRun> = pipeline.tasks.iter().map(fresh).collect();
        let open = tasks.len();
        let course =
            Course { submitted_at, ended_at: None, speculated: false, synchronous_ms: None };
        Self::of(number, pipeline, tasks, course, open)
    }

    pub(super) fn restored(
        agent: &Address,
        number: u64,
        pipeline: Checked,
        mut tasks: Vec<TaskRun>,
        course: Course,
    ) -> Option<Self> {
        if tasks.len() != pipeline.tasks.len() {
            return None;
        }
        for (run, task) in tasks.iter_mut().zip(&pipeline.tasks) {
            run.id = task_id(agent, number, &pipeline.name, &task.entry.id);
        }
        let open = tasks.iter().filter(|task| !task.status.is_final()).count();
        Some(Self::of(number, pipeline, tasks, course, open))
    }

    fn of(
        number: u64,
        pipeline: Checked,
        tasks: Vec<TaskRun>,
        Course { submitted_at, ended_at, speculated, synchronous_ms }: Course,
        open: usize,
    ) -> Self {
        let mut children = vec![Vec::new(); tasks.len()];
        let mut rank = vec![0; tasks.len()];
        for (place, at) in pipeline.order.iter().enumerate() {
            rank[*at] = place;
            for (parent, _) in &pipeline.tasks[*at].parents {
                children[*parent].push(*at);
            }
        }
        let faults = pipeline.tasks.iter().enumerate();
        let memory = faults.filter_map(|(at, task)| match task.fault {
            Some(TaskFault::Memory(mb)) => Some((at, mb)),
            _ => None,
        });
        let memory_faults = memory.collect();
        Self {
            number,
            pipeline,
            children,
            rank,
            memory_faults,
            tasks,
            submitted_at,
            ended_at,
            open,
            speculated,
            synchronous_ms,
        }
    }

    pub(super) const fn course(&self) -> Course {
        let Self { submitted_at, ended_at, speculated, synchronous_ms, .. } = *self;
        Course { submitted_at, ended_at, speculated, synchronous_ms }
    }

    pub(super) fn entry(&self, at: usize) -> &TaskEntry {
        &self.pipeline.tasks[at].entry
    }

    pub(super) fn written(&self) -> Pipeline {
        let tasks = self.pipeline.tasks.iter().map(|task| task.entry.clone()).collect();
        Pipeline { name: self.pipeline.name.clone(), tasks }
    }

    /// When it was submitted, or when one of its tasks was last retried.
    pub(super) fn begun_at(&self) -> u64 {
        let retried = self.tasks.iter().filter_map(|task| task.retried_at).max();
        retried.unwrap_or(self.submitted_at)
    }

    pub(super) fn output_bytes(&self) -> u64 {
        let outputs = self.tasks.iter().filter_map(|task| task.output.as_ref());
        outputs.map(|output| output.len() as u64).sum()
    }

    pub(super) fn position(&self, task: &str) -> Option<usize> {
        self.pipeline.tasks.iter().position(|one| one.entry.id == task)
    }

    pub(super) fn status(&self) -> PipelineStatus {
        let any = |status| self.tasks.iter().any(|task| task.status == status);
        if self.open > 0 {
            PipelineStatus::Running
        } else if any(TaskStatus::Cancelled) {
            PipelineStatus::Cancelled
        } else if any(TaskStatus::Failed) || any(TaskStatus::RolledBack) {
            PipelineStatus::Failed
        } else {
            PipelineStatus::Completed
        }
    }

    pub(super) fn can_run(&self, at: usize) -> bool {
        self.pipeline.tasks[at].parents.iter().all(|(parent, _)| self.tasks[*parent].is_executed())
    }

    pub(super) fn is_hopeless(&self, at: usize) -> bool {
        let mut parents = self.pipeline.tasks[at].parents.iter();
        parents.any(|(parent, _)| {
            let status = self.tasks[*parent].status;
            status.is_final() && status != TaskStatus::Confirmed
        })
    }

    pub(super) fn inputs(&self, at: usize) -> BTreeMap<String, Vec<u8>> {
        let reads = self.pipeline.tasks[at].parents.iter().filter(|(_, order_only)| !order_only);
        let output = |at: usize| self.tasks[at].output.as_deref().cloned().unwrap_or_default();
        reads.map(|(parent, _)| (self.entry(*parent).id.clone(), output(*parent))).collect()
    }

    /// Time from its submission to its last output, in ms.
    pub(super) fn outputs_ms(&self) -> Option<u64> {
        let executed = self.tasks.iter().map(|task| task.times.executed);
        let last: Option<Vec<u64>> = executed.collect();
        last?.into_iter().max().map(|at| at.saturating_sub(self.submitted_at))
    }
}

impl TaskRun {
    /// Whether the chain has, or may have, a proof of its output. If so, another output would not
    /// match the chain.
    pub(super) const fn may_have_landed(&self) -> bool {
        self.landed || self.times.delivered.is_some()
    }

    pub(super) const fn is_executed(&self) -> bool {
        matches!(
            self.status,
            TaskStatus::Proving
                | TaskStatus::Proved
                | TaskStatus::Submitted
                | TaskStatus::Confirmed
        )
    }

    pub(super) fn remember(&mut self, kind: &str, hash: Hash) {
        if self.sent.len() >= TRANSACTIONS {
            self.sent.remove(0);
        }
        self.sent.push((kind.to_owned(), hash.into()));
    }
}
