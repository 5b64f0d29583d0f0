//! The messages of runners and clients: a lease and its life, and new runs.

use super::{Answer, Core, ServiceResult, json};
use crate::{
    files::AttemptPlace,
    machine::{self, Beat, Done, JobId, LeaseKey, NewJob, Refusal, RunId, RunnerId, WorkRequest},
    messages::{
        AckLease, CONTAINER, CancelAck, Complete, CompleteStatus, Heartbeat, JobSpec, LeaseGranted,
        LeaseGrantedTag, LeaseRequest, NewRun, RetryOn, RunIf, Timings,
    },
    service::{
        Active, Reply, ServiceError,
        spec::{ends, group, known_artifacts, refused, with_secrets, without_secrets},
        waiting::Waiter,
    },
    store::{Hidden, Report, Spec, StoreError, Submitted, Underway},
    tokens::{new_id, new_secret},
};
use cowboy_engine::primitives::{Hash, keccak256};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const SAID_DOMAIN: &[u8] = b"cowboy/lease/said/v1";

fn known(timings: Timings) -> Option<String> {
    let any = timings.started_at.is_some() || timings.finished_at.is_some();
    any.then(|| json(&timings))
}

/// The hash of a final message, which identifies a repeated one.
fn said(what: &impl Serialize) -> Hash {
    keccak256(&[SAID_DOMAIN, json(what).as_bytes()])
}

impl Core {
    pub fn lease(
        &mut self,
        runner: RunnerId,
        request: LeaseRequest,
        reply: Reply<Option<LeaseGranted>>,
    ) {
        let asked = self.act(|core| {
            if let Some(before) = core.waiters.of(&runner) {
                core.answer(before.reply, Ok(None));
            }
            Ok(())
        });
        if let Err(error) = asked {
            return self.answer(reply, Err(error));
        }
        if reply.is_closed() {
            return;
        }
        let capabilities = request.capabilities.into_iter().collect();
        self.runners.asks(&runner, &capabilities, self.now);
        let wait = Duration::from_secs(request.wait_seconds);
        let _ = self.act(|core| {
            let Some(reply) = core.grant_to(runner.clone(), &capabilities, reply) else {
                return Ok(());
            };
            if wait.is_zero() || core.closing {
                core.answer(reply, Ok(None));
                return Ok(());
            }
            let until = core.clock().after(wait);
            if let Err(full) = core.waiters.push(Waiter { runner, capabilities, until, reply }) {
                core.answer(full.reply, Err(ServiceError::Full));
            }
            Ok(())
        });
    }

    /// Grants a runner the first job that it can do; otherwise returns `reply`.
    pub(super) fn grant_to(
        &mut self,
        runner: RunnerId,
        capabilities: &BTreeSet<String>,
        reply: Reply<Option<LeaseGranted>>,
    ) -> Option<Reply<Option<LeaseGranted>>> {
        match self.grant(&runner, capabilities) {
            Ok(Some(leased)) => {
                self.answers.push(Answer::Granted(reply, Box::new(leased)));
                None
            }
            Ok(None) => Some(reply),
            Err(error) => {
                self.answer(reply, Err(error));
                None
            }
        }
    }

    fn grant(
        &mut self,
        runner: &RunnerId,
        capabilities: &BTreeSet<String>,
    ) -> ServiceResult<Option<LeaseGranted>> {
        if self.board.heads().next().is_none() {
            return Ok(None);
        }
        let lease_id = new_secret("lease")?;
        let lease = LeaseKey::of(&lease_id);
        let request = WorkRequest { runner, capabilities, lease };
        let Some(granted) = self.board.lease(request, self.now) else { return Ok(None) };
        let (spec, secrets) = self.spec(&granted.job)?;
        let ends = ends(&spec, &granted.run.0, &self.board, &self.store, &self.record);
        let ends = ends.map_err(|error| self.not_read(&error))?;
        let config = self.shared.config;
        Ok(Some(LeaseGranted {
            tag: LeaseGrantedTag::default(),
            job_id: granted.job.0,
            run_id: granted.run.0,
            lease_id,
            attempt: granted.attempt,
            lease_ttl_seconds: config.lease_ttl_seconds,
            heartbeat_interval_seconds: config.heartbeat_interval_seconds,
            max_runtime_seconds: granted.max_runtime_seconds,
            grace_seconds: config.grace_seconds,
            job_spec: with_secrets(spec, secrets, &ends),
        }))
    }

    /// A job as it was submitted, possibly by the current message.
    fn spec(&mut self, job: &JobId) -> ServiceResult<Spec> {
        let submitted = self.record.submitted.iter().flat_map(|submitted| &submitted.jobs);
        if let Some((_, _, spec, secrets)) = submitted.into_iter().find(|(id, ..)| *id == job.0) {
            let spec = serde_json::from_str(spec).map_err(|_| ServiceError::Failed)?;
            let secrets = secrets.as_ref().map(|secrets| serde_json::from_str(&secrets.0));
            let secrets = secrets.transpose().map_err(|_| ServiceError::Failed)?;
            return Ok((spec, secrets.unwrap_or_default()));
        }
        self.store.spec(&job.0).map_err(|error| self.not_read(&error))
    }

    /// Fails the turn, because data for a grant could not be read and the grant must be undone.
    pub(super) fn not_read(&mut self, error: &StoreError) -> ServiceError {
        tracing::error!(%error, "a job or a token could not be read");
        self.failed = true;
        ServiceError::Failed
    }

    pub fn submit(&mut self, run: NewRun) -> ServiceResult<String> {
        known_artifacts(&run, &self.board)?;
        let id = new_id("run")?;
        let mut ids = BTreeMap::new();
        for job in &run.jobs {
            ids.insert(job.name.clone(), JobId(new_id("job")?));
        }
        let jobs = run.jobs.iter().map(|spec| self.new_job(spec, &ids)).collect();
        let group = run.concurrency.as_ref().map(group);
        let board = self.board.submit(RunId(id.clone()), group, jobs, self.now);
        board.map_err(|error| refused(&error, &run, &ids))?;
        self.runs.add(self.runs.next, RunId(id.clone()), run.jobs.len());
        let jobs = run.jobs.into_iter().map(|spec| {
            let (name, id) = (spec.name.clone(), ids[&spec.name].0.clone());
            let (spec, secrets) = without_secrets(spec);
            let secrets = (!secrets.is_empty()).then(|| Hidden(json(&secrets)));
            (id, name, json(&spec), secrets)
        });
        let jobs = jobs.collect();
        let concurrency = run.concurrency.as_ref().map(json);
        self.record.submitted =
            Some(Submitted { run: id.clone(), name: run.name, concurrency, at: self.now, jobs });
        Ok(id)
    }

    pub(super) fn new_job(&self, spec: &JobSpec, ids: &BTreeMap<String, JobId>) -> NewJob {
        let config = &self.shared.config;
        let retry = spec.retry.as_ref();
        let on = retry.and_then(|retry| retry.on.as_ref());
        let retry_on = on.map_or_else(machine::RetryOn::default, |on| machine::RetryOn {
            lease_lost: on.contains(&RetryOn::LeaseLost),
            failure: on.contains(&RetryOn::Failure),
            timeout: on.contains(&RetryOn::Timeout),
        });
        let container = spec.image.as_ref().map(|_| CONTAINER.to_owned());
        let requires: BTreeSet<_> = spec.requires.iter().cloned().chain(container).collect();
        let attempts = retry.and_then(|retry| retry.max_attempts);
        NewJob {
            id: ids[&spec.name].clone(),
            rules: machine::Rules {
                requires: requires.into_iter().collect(),
                max_runtime_seconds: spec.max_runtime_seconds.unwrap_or(config.max_runtime_seconds),
                max_attempts: attempts.unwrap_or(config.max_attempts),
                retry_on,
                backoff_seconds: retry.and_then(|retry| retry.backoff_seconds),
                run_if: spec.run_if.map(|run_if| match run_if {
                    RunIf::Success => machine::RunIf::Success,
                    RunIf::Failure => machine::RunIf::Failure,
                    RunIf::Always => machine::RunIf::Always,
                }),
                allow_failure: spec.allow_failure.then_some(true),
                concurrency: spec.concurrency.as_ref().map(group),
            },
            needs: spec.needs.iter().map(|need| ids[need].clone()).collect(),
        }
    }

    pub fn ack(&mut self, runner: &RunnerId, message: &AckLease) -> ServiceResult<()> {
        let lease = LeaseKey::of(&message.lease_id);
        self.board.ack(&lease, runner, &message.job_id, self.now)?;
        if message.accepted_at.is_some() {
            let (job, number) = self.board.active(&lease, runner, self.now)?;
            let accepted_at = message.accepted_at.clone();
            let underway = Underway { job: job.0, number, accepted_at, ..Underway::default() };
            self.record.underway = Some(underway);
        }
        Ok(())
    }

    pub fn heartbeat(&mut self, runner: &RunnerId, message: Heartbeat) -> ServiceResult<Beat> {
        let Heartbeat { lease_id, progress, log_cursor, ts, .. } = message;
        let lease = LeaseKey::of(&lease_id);
        let beat = self.board.heartbeat(&lease, runner, self.now)?;
        if progress.is_some() || log_cursor.is_some() || ts.is_some() {
            let (job, number) = self.board.active(&lease, runner, self.now)?;
            self.record.underway = Some(Underway {
                job: job.0,
                number,
                accepted_at: None,
                progress: progress.as_ref().map(json),
                heartbeat_at: ts,
                log_cursor: log_cursor.map(|cursor| cursor.bytes_sent),
            });
        }
        Ok(beat)
    }

    pub fn complete(&mut self, runner: &RunnerId, message: Complete) -> ServiceResult<()> {
        let Complete { lease_id, status, timed_out, exit_code, artifacts, summary, .. } = message;
        let Complete { timings, started_at, finished_at, mut outputs, .. } = message;
        let lease = LeaseKey::of(&lease_id);
        let done = match status {
            _ if timed_out => Done::TimedOut,
            CompleteStatus::Succeeded => Done::Succeeded,
            CompleteStatus::Failed => Done::Failed,
        };
        let said = match outputs.is_empty() {
            true => said(&(status, exit_code, &artifacts, &summary)),
            false => said(&(status, exit_code, &artifacts, &summary, &outputs)),
        };
        let place = self.board.active(&lease, runner, self.now);
        let news = self.board.complete(&lease, runner, done, said, self.now)?;
        if let (true, Ok((job, number))) = (news, place) {
            let (job, artifacts) = (job.0, json(&artifacts));
            // Writers that omit zeros leave out this one.
            let exit_code = exit_code.or((status == CompleteStatus::Succeeded).then_some(0));
            let timings = timings.unwrap_or(Timings { started_at: None, finished_at: None });
            let timings = known(Timings {
                started_at: timings.started_at.or(started_at),
                finished_at: timings.finished_at.or(finished_at),
            });
            if !outputs.is_empty() {
                let (spec, _) = self.spec(&JobId(job.clone()))?;
                outputs.retain(|name, _| spec.outputs.contains(name));
            }
            let outputs = (!outputs.is_empty()).then(|| json(&outputs));
            let report = Report { job, number, exit_code, summary, artifacts, timings, outputs };
            self.record.report = Some(report);
        }
        Ok(())
    }

    pub fn cancel_ack(&mut self, runner: &RunnerId, message: CancelAck) -> ServiceResult<()> {
        let CancelAck { lease_id, final_status, ts, artifacts, summary, .. } = message;
        let lease = LeaseKey::of(&lease_id);
        let said = said(&(final_status, &artifacts, &summary));
        let place = self.board.active(&lease, runner, self.now);
        let news = self.board.cancel_ack(&lease, runner, said, self.now)?;
        if let (true, Ok((job, number))) = (news, place) {
            let (job, artifacts) = (job.0, json(&artifacts));
            let timings = known(Timings { started_at: None, finished_at: ts });
            let (exit_code, outputs) = (None, None);
            let report = Report { job, number, exit_code, summary, artifacts, timings, outputs };
            self.record.report = Some(report);
        }
        Ok(())
    }

    pub fn active(&mut self, runner: &RunnerId, lease_id: &str) -> ServiceResult<Active> {
        let (id, attempt) = self.board.active(&LeaseKey::of(lease_id), runner, self.now)?;
        let job = self.board.job(&id.0).ok_or(Refusal::NotFound)?;
        let cancel = job.canceling();
        let cancel = cancel.map(|(deadline, why)| (deadline.saturating_sub(self.now), why.into()));
        Ok(Active { place: AttemptPlace { run: job.run().0.clone(), job: id.0, attempt }, cancel })
    }
}
