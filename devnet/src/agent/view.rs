//! The API's answers about pipelines.

use super::{
    Agent,
    core::{AskError, Core},
    now,
    run::Run,
    time,
};
use crate::{
    api::{backend::Speculation, error::ApiError},
    speculation::metrics::GaugeValues,
    types::{
        BreakerFailure, BreakerOpened, BreakerProbe, Bytes, ChainAway, ConfigureRequest,
        OfPipelineQuery, Pipeline, PipelineAccepted, PipelineQuery, PipelineRequest,
        PipelineStatus, PipelineSummary, ProofCounts, RetryRequest, Rollback, SPECULATION_PAGE,
        SPECULATION_PAGE_LIMIT, SpeculationEventPage, SpeculationEventQuery, SpeculationOption,
        SpeculationStatus, SpeculativeCommitment, SpeculativeProof, SpeculativeTask, TaskDetail,
        TaskParent, TaskStatus, TaskTimes, TaskTransaction, TasksCancelled, TasksRetried, Text,
    },
};
use cowboy_engine::{
    primitives::{Hash, Wei},
    speculation::{
        ConfigError, OutputCommitment, ProofStatus, Reason, RollbackReason,
        breaker::{Opened, TaskFailure},
        config::Setting,
    },
};
use std::collections::BTreeMap;
use tokio::sync::watch;

/// Maximum number of ancestors listed that a proof waits for.
const NAMED: usize = 8;
/// Completed pipelines in the status answer.
const COMPLETED: usize = 10;
/// Running pipelines in the status answer.
const RUNNING: usize = 10;

impl Speculation for Agent {
    fn submit(&self, pipeline: PipelineRequest) -> Result<PipelineAccepted, ApiError> {
        let refused = |error: String| {
            ApiError::bad_request(format!("pipeline: {error}"))
                .hint("docs/speculation.md has the fields of a pipeline")
        };
        let checked = pipeline.check().map_err(|error| refused(error.to_string()))?;
        let (name, tasks) = (checked.name.clone(), checked.tasks.len() as u64);
        if self.is_closed() {
            return Err(ApiError::unavailable("the devnet is stopping"));
        }
        let number = self.act(|core, now| core.submit(checked, now))?;
        // Stored before the answer, so that the pipeline survives a kill.
        self.write().map_err(|error| {
            ApiError::internal(format!("pipeline {number} is taken but cannot be stored: {error}"))
        })?;
        Ok(PipelineAccepted { pipeline: number, name, tasks })
    }

    fn pipelines(&self, query: &PipelineQuery) -> Vec<PipelineSummary> {
        let wanted = |run: &&Run| {
            query.status.is_none_or(|status| run.status() == status)
                && query.name.as_ref().is_none_or(|name| run.pipeline.name == *name)
        };
        let core = &self.0.books.lock().core;
        let runs = core.runs.values().rev().filter(wanted);
        runs.take(limit(query.limit)).map(|run| summary(core, run)).collect()
    }

    fn pipeline(&self, number: u64) -> Result<Pipeline, ApiError> {
        let core = &self.0.books.lock().core;
        let run = core.runs.get(&number).ok_or(AskError::NoPipeline(number))?;
        let graph = (0..run.tasks.len()).map(|at| task(core, run, at)).collect();
        Ok(Pipeline { summary: summary(core, run), graph })
    }

    fn task(&self, number: u64, name: &str) -> Result<TaskDetail, ApiError> {
        let core = &self.0.books.lock().core;
        let run = core.runs.get(&number).ok_or(AskError::NoPipeline(number))?;
        let at = run.position(name).ok_or_else(|| AskError::NoTask(number, name.to_owned()))?;
        let output = run.tasks[at].output.as_deref();
        let text = output.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let sent = run.tasks[at].sent.iter();
        Ok(TaskDetail {
            task: task(core, run, at),
            output_text: text.map(str::to_owned),
            proof: core.machine.proof(&run.tasks[at].id).map(|p| Text(Bytes(p.to_vec()))),
            output: output.map(|bytes| Text(Bytes(bytes.clone()))),
            transactions: sent
                .map(|(kind, hash)| TaskTransaction { kind: kind.clone(), transaction: *hash })
                .collect(),
        })
    }

    fn commitments(&self, query: &OfPipelineQuery) -> Result<Vec<SpeculativeCommitment>, ApiError> {
        let core = &self.0.books.lock().core;
        known(core, query)?;
        let all = tasks(core, query).filter_map(|(run, at)| {
            let commitment = core.machine.commitment(&run.tasks[at].id)?;
            Some(describe_commitment(run, at, commitment))
        });
        Ok(all.take(limit(query.limit)).collect())
    }

    fn proofs(&self, query: &OfPipelineQuery) -> Result<Vec<SpeculativeProof>, ApiError> {
        let core = &self.0.books.lock().core;
        known(core, query)?;
        let all = tasks(core, query).filter_map(|(run, at)| proof(core, run, at));
        Ok(all.take(limit(query.limit)).collect())
    }

    fn rollbacks(&self, query: &OfPipelineQuery) -> Result<Vec<Rollback>, ApiError> {
        let core = &self.0.books.lock().core;
        known(core, query)?;
        let of = |number: u64| query.pipeline.is_none_or(|wanted| wanted == number);
        let all = core.rollbacks.iter().rev().filter(|undone| of(undone.pipeline));
        let rollback = |undone: &super::core::Undone| Rollback {
            at: time(undone.at),
            pipeline: undone.pipeline,
            task: undone.task.clone(),
            task_id: undone.task_id,
            reason: undone.reason.clone(),
            tasks: undone.tasks,
            undone: undone.undone.clone(),
            slashed: Wei::new(undone.slashed.into()).into(),
            released: Wei::new(undone.released.into()).into(),
        };
        Ok(all.take(limit(query.limit)).map(rollback).collect())
    }

    fn events(&self, query: &SpeculationEventQuery) -> SpeculationEventPage {
        self.0.books.lock().core.journal.page(query)
    }

    fn told(&self) -> watch::Receiver<u64> {
        self.0.told.subscribe()
    }

    fn cancel(&self, number: u64, task: Option<&str>) -> Result<TasksCancelled, ApiError> {
        let tasks = self.act(|core, now| core.cancel(number, task, now))?;
        Ok(TasksCancelled { tasks })
    }

    fn retry(&self, number: u64, request: &RetryRequest) -> Result<TasksRetried, ApiError> {
        if self.is_closed() {
            return Err(ApiError::unavailable("the devnet is stopping"));
        }
        let tasks = self.act(|core, now| core.retry(number, &request.tasks, now))?;
        // Stored before the answer, so that the retry survives a kill.
        self.write().map_err(|error| {
            ApiError::internal(format!("tasks are retried, but that cannot be stored: {error}"))
        })?;
        Ok(TasksRetried { pipeline: number, tasks })
    }

    fn status(&self) -> SpeculationStatus {
        // Advances first, so that the answer shows whether the chain is reachable now.
        self.act(Core::advance);
        let core = &self.0.books.lock().core;
        let (machine, config) = (&core.machine, core.machine.config());
        let gauges = machine.gauges();
        let (recent_rollbacks, recent_tasks) = machine.breaker().rate();
        let (stake, counters) = (machine.stake(), machine.counters());
        let named = |counts: &[u64], name: fn(usize) -> &'static str| {
            let counts = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            counts.map(|(at, count)| (name(at).to_owned(), *count)).collect::<BTreeMap<_, _>>()
        };
        let completed = core.runs.values().rev();
        let completed = completed.filter(|run| run.status() == PipelineStatus::Completed);
        let open = core.runs.values().rev().filter(|run| run.open > 0);
        let running = open.clone().count();
        SpeculationStatus {
            agent: core.agent.into(),
            enabled: config.enabled,
            mode: config.mode.to_string(),
            policy: config.rollback_policy.to_string(),
            generator: self.0.provers.generator().to_owned(),
            breaker: machine.breaker_state().to_string(),
            breaker_opened: machine.breaker().opened().map(|opened| breaker(core, opened)),
            chain_away: machine.away().map(|away| ChainAway {
                since: time(away.since),
                tries: away.tries,
                paused: away.is_paused(),
            }),
            recent_rollbacks,
            recent_tasks,
            stake_available: stake.available.into(),
            stake_locked: stake.locked.into(),
            stake_slashed: stake.slashed.into(),
            tasks_live: machine.graph().live() as u64,
            tasks_waiting: core.waiting() as u64,
            branches: machine.graph().branches() as u64,
            max_depth_current: gauges.max_depth_current,
            proofs_queued: gauges.queued_proofs,
            proofs_proving: gauges.proving,
            proofs_waiting: gauges.waiting_proofs,
            proofs_ready: gauges.ready_proofs,
            proofs_in_flight: gauges.submitting_proofs,
            memory_bytes: machine.memory(),
            tasks_scheduled: counters.tasks_scheduled,
            tasks_confirmed: counters.proofs_confirmed,
            tasks_rolled_back: counters.tasks_rolled_back,
            tasks_rejected: named(&counters.tasks_rejected, |at| Reason::ALL[at].name()),
            rollbacks: named(&counters.rollbacks, |at| RollbackReason::ALL[at].name()),
            pipelines_running: running as u64,
            pipelines_done: (core.runs.len() - running) as u64,
            running: open.take(RUNNING).map(|run| summary(core, run)).collect(),
            completed: completed.take(COMPLETED).map(|run| summary(core, run)).collect(),
        }
    }

    fn options(&self) -> Vec<SpeculationOption> {
        let standing = self.0.books.lock().core.options.settings().into_iter();
        let option = |one: Setting| SpeculationOption {
            option: one.option.to_owned(),
            value: one.value,
            range: one.range,
            explicit: one.explicit,
        };
        standing.map(option).collect()
    }

    fn configure(&self, request: &ConfigureRequest) -> Result<Vec<SpeculationOption>, ApiError> {
        let refused = |wrong: Vec<ConfigError>| {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            ApiError::bad_request(wrong.join("; "))
                .hint("options and their ranges: cowboyctl speculation config")
        };
        let options = self.0.books.lock().core.options.clone();
        let all = request.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let wanted = options.with(all).map_err(refused)?.config.generator;
        let chain = self.0.provers.generator();
        if wanted.name() != chain {
            return Err(ApiError::conflict(format!(
                "speculation.proof.generator: this chain's proofs are `{chain}` from its first \
                 block on; `{wanted}` needs a new chain"
            ))
            .hint("set it in the topology and start over: cowboyctl devnet reset"));
        }
        let changed = self.act(|core, now| core.configure(&request.options, now));
        changed.map_err(refused)?;
        let workers = self.0.books.lock().core.options.config.worker_threads;
        self.0.provers.set_workers(workers);
        Ok(self.options())
    }

    fn metrics(&self) -> String {
        let standing = self.act(|core, now| {
            core.advance(now);
            GaugeValues::of(&core.machine)
        });
        self.0.metrics.set(&standing);
        self.0.metrics.encode()
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        let text = error.to_string();
        match error {
            AskError::NoPipeline(_) => {
                Self::not_found(text).hint("list all pipelines: cowboyctl speculation ls")
            }
            AskError::NoTask(number, _) => Self::not_found(text)
                .hint(format!("its tasks: cowboyctl speculation graph {number}")),
            AskError::ShortClaim { .. } => Self::bad_request(text)
                .hint("show or set it: cowboyctl speculation config claimBufferMs"),
            AskError::NothingFailed(number) => Self::conflict(text)
                .hint(format!("see where its tasks are: cowboyctl speculation show {number}")),
            AskError::ParentEnded { ref parent, .. } => {
                Self::conflict(text).hint(format!("retry `{parent}` as well"))
            }
            AskError::Final(..)
            | AskError::Full(_)
            | AskError::StillRuns(..)
            | AskError::NotFailed(..) => Self::conflict(text),
        }
    }
}

fn limit(asked: Option<usize>) -> usize {
    asked.unwrap_or(SPECULATION_PAGE).min(SPECULATION_PAGE_LIMIT)
}

fn breaker(core: &Core, opened: &Opened) -> BreakerOpened {
    let named = |id: &Hash| {
        let found = core.task(id);
        let pipeline = found.map(|(run, _)| run.number);
        (pipeline, found.map(|(run, at)| run.entry(at).id.clone()))
    };
    let failure = |failure: &TaskFailure| {
        let (pipeline, task) = named(&failure.task);
        let (task_id, reason) = (failure.task.into(), failure.reason.to_string());
        BreakerFailure { at: time(failure.at), pipeline, task, task_id, reason }
    };
    let probe = |id: Hash| {
        let (pipeline, task) = named(&id);
        BreakerProbe { pipeline, task, task_id: id.into() }
    };
    let at = core.machine.breaker().lets_through_at(core.machine.config().breaker);
    BreakerOpened {
        cause: opened.cause.to_string(),
        since: time(opened.since),
        failures: opened.failures.iter().map(failure).collect(),
        rolled_back: opened.rolled_back,
        resolved: opened.resolved,
        lets_one_through_at: at.map(time),
        probe: opened.probe.map(probe),
    }
}

fn known(core: &Core, query: &OfPipelineQuery) -> Result<(), AskError> {
    let missing = query.pipeline.filter(|number| !core.runs.contains_key(number));
    missing.map_or(Ok(()), |number| Err(AskError::NoPipeline(number)))
}

/// All tasks that match the query, the newest pipelines first.
fn tasks<'a>(
    core: &'a Core,
    query: &OfPipelineQuery,
) -> impl Iterator<Item = (&'a Run, usize)> + use<'a> {
    let wanted = query.pipeline;
    let runs = core.runs.values().rev();
    let runs = runs.filter(move |run| wanted.is_none_or(|wanted| wanted == run.number));
    runs.flat_map(|run| run.pipeline.order.iter().map(move |at| (run, *at)))
}

fn proof_counts(core: &Core, run: &Run) -> ProofCounts {
    let mut counts = ProofCounts::default();
    for task in run.tasks.iter().filter(|task| run.open > 0 && task.is_executed()) {
        let Some(live) = core.machine.task(&task.id) else { continue };
        match live.proof {
            ProofStatus::Queued => counts.queued += 1,
            ProofStatus::Proving => counts.proving += 1,
            ProofStatus::Waiting => counts.waiting += 1,
            ProofStatus::Ready | ProofStatus::BackOff => counts.ready += 1,
            ProofStatus::Submitting => counts.in_flight += 1,
            ProofStatus::None
            | ProofStatus::Held
            | ProofStatus::Confirmed
            | ProofStatus::Cancelled => {}
        }
    }
    counts
}

fn summary(core: &Core, run: &Run) -> PipelineSummary {
    let count = |wanted: fn(TaskStatus) -> bool| {
        run.tasks.iter().filter(|task| wanted(task.status)).count() as u64
    };
    let status = run.status();
    let whole = status == PipelineStatus::Completed;
    PipelineSummary {
        pipeline: run.number,
        name: run.pipeline.name.clone(),
        status,
        tasks: run.tasks.len() as u64,
        confirmed: count(|status| status == TaskStatus::Confirmed),
        undone: count(|status| status.is_final() && status != TaskStatus::Confirmed),
        submitted_at: time(run.submitted_at),
        elapsed_ms: run.ended_at.unwrap_or_else(now).saturating_sub(run.submitted_at),
        outputs_ms: run.outputs_ms(),
        synchronous_ms: run.synchronous_ms.filter(|_| whole),
        proofs: proof_counts(core, run),
    }
}

fn task(core: &Core, run: &Run, at: usize) -> SpeculativeTask {
    let (task, written) = (&run.tasks[at], &run.pipeline.tasks[at]);
    let live = core.machine.task(&task.id).filter(|live| live.status.is_live());
    let since = |at: Option<u64>| at.map(|at| at.saturating_sub(run.submitted_at));
    let parent = |(parent, order_only): &(usize, bool)| TaskParent {
        task: run.entry(*parent).id.clone(),
        order_only: *order_only,
    };
    let commitment = core.machine.commitment(&task.id);
    let accepted = task.attempt > 0;
    SpeculativeTask {
        pipeline: run.number,
        task: written.entry.id.clone(),
        task_id: task.id.into(),
        kind: written.kind.to_owned(),
        depends_on: written.parents.iter().map(parent).collect(),
        status: task.status,
        reason: task.reason.clone(),
        depth: live.map(|live| live.depth).or_else(|| accepted.then_some(0)),
        bond: task.bond.map(|bond| Wei::new(bond.into()).into()),
        attempt: task.attempt,
        runner: task.runner.clone(),
        fault: written.fault.map(crate::speculation::pipeline::TaskFault::describe),
        output_bytes: task.output.as_ref().map(|output| output.len() as u64),
        output_commitment: commitment.map(|one| one.opening.output_commitment.into()),
        claim_expires_at: accepted.then(|| time(task.claim_expires_at)),
        times: TaskTimes {
            scheduled_ms: since(task.times.scheduled),
            executed_ms: since(task.times.executed),
            proved_ms: since(task.times.proved),
            submitted_ms: since(task.times.submitted),
            confirmed_ms: since(task.times.confirmed),
            ended_ms: since(task.times.ended),
        },
    }
}

fn describe_commitment(
    run: &Run,
    at: usize,
    commitment: &OutputCommitment,
) -> SpeculativeCommitment {
    SpeculativeCommitment {
        pipeline: run.number,
        task: run.entry(at).id.clone(),
        task_id: run.tasks[at].id.into(),
        output_commitment: commitment.opening.output_commitment.into(),
        constraint_hash: commitment.opening.constraint_hash.into(),
        status: commitment.status.to_string(),
        depth: commitment.depth.into(),
        bond: Wei::new(run.tasks[at].bond.unwrap_or(0).into()).into(),
        created_at: time(commitment.created_at),
        expires_at: time(commitment.expires_at),
    }
}

fn proof(core: &Core, run: &Run, at: usize) -> Option<SpeculativeProof> {
    let task = &run.tasks[at];
    let live = core.machine.task(&task.id)?;
    if matches!(live.proof, ProofStatus::None | ProofStatus::Cancelled) {
        return None;
    }
    let waits = matches!(live.proof, ProofStatus::Waiting | ProofStatus::Held);
    let name = |id: &Hash| core.task(id).map(|(run, at)| run.entry(at).id.clone());
    let ancestors = waits.then(|| core.machine.graph().unconfirmed_ancestors(&task.id));
    Some(SpeculativeProof {
        pipeline: run.number,
        task: run.entry(at).id.clone(),
        task_id: task.id.into(),
        status: live.proof.to_string(),
        generator: core.options.config.generator.to_string(),
        took_ms: task.proof_ms,
        submissions: live.submissions,
        waits_for: ancestors.iter().flatten().take(NAMED).filter_map(name).collect(),
    })
}
