//! Traces (AgenC §8.2): one for each pipeline. The root span is the pipeline; its children are the
//! stages of its tasks, each from its begin to its end.
//!
//! | span | begins | ends |
//! |---|---|---|
//! | `pipeline` | the pipeline is accepted | its last task is final and all children have ended |
//! | `schedule` | a task asks to run | it is accepted, or refused for a new reason |
//! | `proof_generate` | a prover begins | the proof is made, or its prover is gone |
//! | `proof_submit` | a proof is handed out | a validator has it, or none accepts it |
//! | `confirm_wait` | a validator has it | it is confirmed, refused or undone |
//! | `rollback` | a failure is noticed | its tasks are undone and their work is stopped |
//!
//! Their names begin with `speculation.`.
//!
//! The ids of a trace and its root derive from the devnet's agent, the pipeline's number and the
//! time it was accepted, so a process that resumes a pipeline adds to the same trace. Spans open
//! when the devnet stops end with an error; spans open when it is killed are lost.
//!
//! Spans contain the task, depth, bond and names of reasons. They contain no salt, output, proof or
//! key.

use crate::{
    telemetry::{Exporter, Span, SpanId, TraceId, Value},
    types::{HashText, PipelineStatus},
};
use cowboy_engine::{
    primitives::{Address, Wei},
    speculation::{Refused, Summary, TaskId},
};
use std::{
    collections::BTreeMap,
    time::{Instant, SystemTime},
};
use tracing::info_span;

const NS: u64 = 1_000_000;

/// Timed stages of a task, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TaskStage {
    Generate,
    Submit,
    Wait,
}

impl TaskStage {
    const ALL: [Self; 3] = [Self::Generate, Self::Submit, Self::Wait];

    const fn name(self) -> &'static str {
        match self {
            Self::Generate => "speculation.proof_generate",
            Self::Submit => "speculation.proof_submit",
            Self::Wait => "speculation.confirm_wait",
        }
    }
}

/// An open span. Log lines within it belong to the span `log`.
pub(super) struct OpenSpan {
    pipeline: u64,
    task: TaskId,
    name: &'static str,
    log: tracing::Span,
    start_ns: u64,
    attributes: Vec<(&'static str, Value)>,
}

struct Trace {
    id: TraceId,
    root: SpanId,
    log: tracing::Span,
    start_ns: u64,
    attributes: Vec<(&'static str, Value)>,
    open: usize,
    ended: Option<PipelineStatus>,
}

pub(super) struct Spans {
    exporter: Option<Exporter>,
    chain_id: u64,
    agent: Address,
    /// The creation time by both clocks: spans use the monotonic one.
    since: (u64, Instant),
    count: u64,
    traces: BTreeMap<u64, Trace>,
    stages: BTreeMap<(TaskId, TaskStage), OpenSpan>,
    begun_ns: u64,
    /// Rollbacks that are done except for stopping work.
    rollbacks: Vec<OpenSpan>,
}

impl Spans {
    /// Spans without pipelines. Without an exporter nothing is exported.
    pub(super) fn new(chain_id: u64, agent: Address, exporter: Option<Exporter>) -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        Self {
            exporter,
            chain_id,
            agent,
            since: (unix, Instant::now()),
            count: 0,
            traces: BTreeMap::new(),
            stages: BTreeMap::new(),
            begun_ns: unix,
            rollbacks: Vec::new(),
        }
    }

    fn now_ns(&self) -> u64 {
        let passed = u64::try_from(self.since.1.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.since.0.saturating_add(passed)
    }

    pub(super) fn stirs(&mut self) {
        self.begun_ns = self.now_ns();
    }

    /// A pipeline was accepted or retried at `begun_at` (Unix ms), by this process or an earlier
    /// one. An existing trace is kept.
    pub(super) fn pipeline(&mut self, number: u64, name: &str, tasks: usize, begun_at: u64) {
        if let Some(trace) = self.traces.get_mut(&number) {
            trace.ended = None;
            return;
        }
        let (chain, of) = (self.chain_id.to_be_bytes(), number.to_be_bytes());
        let id = TraceId::of(&[&chain, &self.agent.0, &of, &begun_at.to_be_bytes()]);
        let log = info_span!(parent: None, "speculation.pipeline", pipeline = number);
        if self.exporter.is_some() {
            log.in_scope(|| tracing::info!(traceId = %id, "Trace of a pipeline"));
        }
        let attributes = vec![
            ("pipeline.number", number_value(number)),
            ("pipeline.name", Value::Text(name.to_owned())),
            ("pipeline.tasks", number_value(tasks as u64)),
        ];
        let (root, start_ns) = (SpanId::of(id, &[]), begun_at.saturating_mul(NS));
        let trace = Trace { id, root, log, start_ns, attributes, open: 0, ended: None };
        self.traces.insert(number, trace);
    }

    pub(super) fn ended(&mut self, number: u64, status: PipelineStatus) {
        if let Some(trace) = self.traces.get_mut(&number) {
            trace.ended = Some(status);
            // A late message of an undone task may have opened a stage that nothing ends.
            let left = self.stages.extract_if(.., |_, open| open.pipeline == number);
            for (_, open) in left.collect::<Vec<_>>() {
                self.end(open, Some("its pipeline has ended".to_owned()));
            }
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        let over = |trace: &Trace| trace.open == 0 && trace.ended.is_some();
        if !self.traces.get(&number).is_some_and(over) {
            return;
        }
        let Some(mut trace) = self.traces.remove(&number) else { return };
        let status = trace.ended.unwrap_or(PipelineStatus::Completed);
        trace.attributes.push(("pipeline.status", Value::Text(status.to_string())));
        let failed = status == PipelineStatus::Failed;
        let span = Span {
            trace: trace.id,
            id: trace.root,
            parent: None,
            name: "speculation.pipeline",
            start_ns: trace.start_ns,
            end_ns: self.now_ns().max(trace.start_ns),
            attributes: trace.attributes,
            error: failed.then(|| "one of its tasks failed for good".to_owned()),
        };
        self.export(span);
    }

    fn export(&self, span: Span) {
        if let Some(exporter) = &self.exporter {
            exporter.export(span);
        }
    }

    fn open(
        &mut self,
        (pipeline, task): (u64, &TaskId),
        name: &'static str,
        log: impl FnOnce(&tracing::Span) -> tracing::Span,
        more: Vec<(&'static str, Value)>,
    ) -> Option<OpenSpan> {
        let start_ns = self.now_ns();
        let trace = self.traces.get_mut(&pipeline)?;
        trace.open += 1;
        let (log, start_ns) = (log(&trace.log), start_ns.max(trace.start_ns));
        let mut attributes = vec![("task.id", text(task))];
        attributes.extend(more);
        Some(OpenSpan { pipeline, task: *task, name, log, start_ns, attributes })
    }

    fn end(&mut self, open: OpenSpan, error: Option<String>) {
        let OpenSpan { pipeline, name, start_ns, attributes, .. } = open;
        let end_ns = self.now_ns().max(start_ns);
        let Some(trace) = self.traces.get_mut(&pipeline) else { return };
        trace.open -= 1;
        self.count += 1;
        let parts = [&self.since.0.to_be_bytes()[..], &self.count.to_be_bytes()];
        let (id, parent) = (SpanId::of(trace.id, &parts), Some(trace.root));
        let trace = trace.id;
        self.export(Span { trace, id, parent, name, start_ns, end_ns, attributes, error });
        self.close(pipeline);
    }

    fn discard(&mut self, open: OpenSpan) {
        if let Some(trace) = self.traces.get_mut(&open.pipeline) {
            trace.open -= 1;
        }
    }

    pub(super) fn schedule(&mut self, pipeline: u64, task: &TaskId) -> Option<OpenSpan> {
        let log = |parent: &tracing::Span| {
            info_span!(
                parent: parent, "speculation.schedule", task.id = %task,
                task.parent_id = tracing::field::Empty,
                speculation.accepted = tracing::field::Empty,
                speculation.depth = tracing::field::Empty,
                speculation.required_bond = tracing::field::Empty,
            )
        };
        self.open((pipeline, task), "speculation.schedule", log, Vec::new())
    }

    pub(super) fn accepted(
        &mut self,
        open: Option<OpenSpan>,
        parents: &str,
        depth: u32,
        bond: Wei,
    ) {
        let Some(mut open) = open else { return };
        open.decided(parents, true, Some(depth), Some(bond));
        open.log.in_scope(|| {
            tracing::info!(
                taskId = %open.task, parentTaskId = parents, depth, requiredBond = %bond,
                "Task scheduled for speculation"
            );
        });
        self.end(open, None);
    }

    /// Ends the span of a refused task; `parents` is `None` if the refusal is not new.
    pub(super) fn refused(&mut self, open: Option<OpenSpan>, parents: Option<&str>, why: &Refused) {
        let Some(mut open) = open else { return };
        let Some(parents) = parents else { return self.discard(open) };
        open.decided(parents, false, why.depth, why.bond);
        open.attributes.push(("speculation.reason", text(&why.reason)));
        open.log.in_scope(|| {
            let (task, reason) = (open.task, why.reason);
            tracing::debug!(taskId = %task, %reason, error = %why, "Task refused");
        });
        self.end(open, None);
    }

    /// Opens a stage of a task unless it is open; `attempt` counts the task's attempts or the
    /// proof's submissions.
    pub(super) fn begin(&mut self, pipeline: u64, task: &TaskId, stage: TaskStage, attempt: u32) {
        if self.stages.contains_key(&(*task, stage)) {
            return;
        }
        let log = |parent: &tracing::Span| match stage {
            TaskStage::Generate => {
                info_span!(parent: parent, "speculation.proof_generate", task.id = %task)
            }
            TaskStage::Submit => {
                info_span!(parent: parent, "speculation.proof_submit", task.id = %task)
            }
            TaskStage::Wait => {
                info_span!(parent: parent, "speculation.confirm_wait", task.id = %task)
            }
        };
        let attempt = vec![("speculation.attempt", number_value(attempt.into()))];
        if let Some(open) = self.open((pipeline, task), stage.name(), log, attempt) {
            self.stages.insert((*task, stage), open);
        }
    }

    pub(super) fn done(&mut self, task: &TaskId, stage: TaskStage, outcome: Result<(), &str>) {
        if let Some(open) = self.stages.remove(&(*task, stage)) {
            self.end(open, outcome.err().map(str::to_owned));
        }
    }

    pub(super) fn all_done(&mut self, task: &TaskId, outcome: Result<(), &str>) {
        for stage in TaskStage::ALL {
            self.done(task, stage, outcome);
        }
    }

    /// Ends the stages of a confirmed task; `transaction` is the agent's own, if it was that.
    pub(super) fn confirmed(
        &mut self,
        task: &TaskId,
        transaction: Option<HashText>,
        waited_ms: Option<u64>,
    ) {
        let open = self.stages.get(&(*task, TaskStage::Wait));
        let log = open.map_or_else(tracing::Span::none, |open| open.log.clone());
        log.in_scope(|| {
            tracing::info!(
                taskId = %task,
                txSignature = transaction.map(|hash| hash.to_string()),
                confirmationLatencyMs = waited_ms,
                "Speculative proof confirmed"
            );
        });
        self.all_done(task, Ok(()));
    }

    /// Opens a rollback's span at the time when its cause was noticed. Returns the log's span.
    pub(super) fn rollback(&mut self, pipeline: u64, summary: &Summary) -> tracing::Span {
        let trigger = &summary.trigger;
        let log = |parent: &tracing::Span| {
            let id = trigger;
            info_span!(parent: parent, "speculation.rollback", task.id = %id)
        };
        let bonds = summary.slashed.saturating_add(summary.released);
        let more = vec![
            ("speculation.reason", text(&summary.reason)),
            ("speculation.affected_tasks", number_value(summary.tasks)),
            ("speculation.bonded_stake", text(&bonds)),
        ];
        let open = self.open((pipeline, trigger), "speculation.rollback", log, more);
        let Some(mut open) = open else { return tracing::Span::none() };
        let earliest = self.traces.get(&pipeline).map_or(0, |trace| trace.start_ns);
        open.start_ns = self.begun_ns.clamp(earliest, open.start_ns);
        let log = open.log.clone();
        log.in_scope(|| {
            tracing::warn!(
                triggerTaskId = %trigger,
                reason = %summary.reason,
                affectedTasks = summary.tasks,
                totalBondedStake = %bonds,
                slashAmount = %summary.slashed,
                "Triggering rollback"
            );
        });
        self.rollbacks.push(open);
        log
    }

    /// Ends the spans of rollbacks: the undone work is stopped.
    pub(super) fn rolled_back(&mut self) {
        for open in std::mem::take(&mut self.rollbacks) {
            self.end(open, None);
        }
    }

    /// Ends all open spans because the devnet stops. Returns the exporter, which the caller must
    /// close.
    pub(super) fn stop(&mut self) -> Option<Exporter> {
        self.rolled_back();
        for open in std::mem::take(&mut self.stages).into_values() {
            self.end(open, Some("the devnet stopped: it is done again after a restart".to_owned()));
        }
        self.exporter.take()
    }
}

impl OpenSpan {
    /// Adds the decision's attributes, in the order of the source.
    fn decided(&mut self, parents: &str, accepted: bool, depth: Option<u32>, bond: Option<Wei>) {
        if !parents.is_empty() {
            self.attributes.push(("task.parent_id", text(&parents)));
            self.log.record("task.parent_id", parents);
        }
        self.attributes.push(("speculation.accepted", Value::Flag(accepted)));
        self.log.record("speculation.accepted", accepted);
        if let Some(depth) = depth {
            self.attributes.push(("speculation.depth", number_value(depth.into())));
            self.log.record("speculation.depth", depth);
        }
        if let Some(bond) = bond {
            self.attributes.push(("speculation.required_bond", text(&bond)));
            self.log.record("speculation.required_bond", tracing::field::display(bond));
        }
    }
}

fn text(value: &impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn number_value(number: u64) -> Value {
    Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
}
