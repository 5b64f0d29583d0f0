//! One validator of a runner: dials it, keeps it connected, and acts on its frames.

use super::{ATTEMPT_AFTER_DUPLICATE, COMMANDS};
use crate::{
    runner::{
        core::{Activity, LinkHandle, RunnerCommand, RunnerCore},
        worker::{TaskProgress, Worker},
    },
    transport::{
        Connection as _, Dial, TransportError,
        driver::{self, Service, now_ms},
    },
};
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{
    job::spec::JobSpec,
    presence::view::Label,
    primitives::{Hash, Height, PublicKey},
    registry::Ability,
    session::{
        End, Session as _, StreamId, backoff,
        jobs::{Decided, JobReport, JobTable, Offer, ProposedAttempt},
        runner::{self, RunnerEvent},
    },
    wire::{
        Body, CancelReason, CapabilityChange, Errand, GoodbyeReason, JobAggregate, JobAssignment,
        JobIds, Labels, Percent, RejectReason, Text,
    },
};
use rand_core::CryptoRng;
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};
use tokio::sync::mpsc;

pub(super) struct Upkeep<E, D, W> {
    pub(super) core: Arc<RunnerCore>,
    pub(super) jobs: Arc<E>,
    pub(super) worker: Arc<W>,
    pub(super) dialer: D,
    pub(super) validator: PublicKey,
}

impl<E: Clock + Spawner + CryptoRng, D: Dial, W: Worker> Upkeep<E, D, W> {
    /// Keeps the validator connected for as long as it is one of the runner's validators.
    pub(super) async fn run(self, mut context: E) {
        let mut attempt = 0;
        let mut named = false;
        let key = &self.validator;
        while let Some(address) = self.address() {
            let reason = match self.dialer.dial(address, key).await {
                Ok(connection) => {
                    let (end, established) = self.connection(&mut context, connection).await;
                    if established {
                        (attempt, named) = (0, false);
                    }
                    if end == End::Peer(GoodbyeReason::DuplicateConnection) {
                        attempt = ATTEMPT_AFTER_DUPLICATE;
                    }
                    end.to_string()
                }
                Err(error @ TransportError::NoCommonVersion { .. }) => {
                    if !named {
                        let validator = key.address();
                        tracing::error!(%validator, %address, %error, "a validator is not connected");
                    }
                    named = true;
                    error.to_string()
                }
                Err(error) => error.to_string(),
            };
            self.core.say(Activity::Disconnected { validator: key.clone(), reason });
            let delay = backoff::delay_ms(attempt, context.next_u64());
            attempt = attempt.saturating_add(1);
            context.sleep(Duration::from_millis(delay)).await;
        }
    }

    /// `None` when it has left the runner's validators; it then no longer has an upkeep task.
    fn address(&self) -> Option<SocketAddr> {
        let mut shared = self.core.shared.lock();
        let address = shared.targets.get(&self.validator).copied().filter(|_| !shared.closing);
        if address.is_none() {
            shared.kept.remove(&self.validator);
        }
        address
    }

    /// Runs one connection; returns how it ended and whether its handshake was completed.
    async fn connection(&self, context: &mut E, connection: D::Connection) -> (End, bool) {
        let core = &self.core;
        let mut nonce = [0; 32];
        context.fill_bytes(&mut nonce);
        let (serial, head) = {
            let mut shared = core.shared.lock();
            shared.serial += 1;
            (shared.serial, shared.head)
        };
        let config = runner::RunnerConfig {
            chain_id: core.chain_id,
            key: core.key.clone(),
            validator: self.validator.clone(),
            certified: connection.peer().clone(),
            heartbeats: connection.heartbeats(),
            nonce,
            head,
        };
        let session = runner::Runner::new(config, now_ms(context));
        let (commands, received) = mpsc::channel(COMMANDS);
        let mut link = ValidatorLink {
            core: core.clone(),
            jobs: self.jobs.clone(),
            worker: self.worker.clone(),
            validator: self.validator.clone(),
            serial,
            commands,
            established: false,
            told: BTreeSet::new(),
            refuted: BTreeSet::new(),
        };
        let end = driver::drive(context, connection, session, &mut link, received).await;
        link.ended();
        (end, link.established)
    }
}

/// Number of jobs remembered per connection for a refuted proof of their end.
const MAX_REFUTED: usize = 256;

struct ValidatorLink<E, W> {
    core: Arc<RunnerCore>,
    jobs: Arc<E>,
    worker: Arc<W>,
    validator: PublicKey,
    serial: u64,
    commands: mpsc::Sender<RunnerCommand>,
    established: bool,
    told: BTreeSet<Ability>,
    /// Jobs for whose end it sent a proof that does not hold.
    refuted: BTreeSet<Hash>,
}

impl<E: Clock + Spawner, W: Worker> Service for ValidatorLink<E, W> {
    type Session = runner::Runner;
    type Command = RunnerCommand;

    fn event(&mut self, session: &mut runner::Runner, event: RunnerEvent) {
        match event {
            RunnerEvent::Established => self.established(session),
            RunnerEvent::Told { head } => {
                let mut shared = self.core.shared.lock();
                self.core.told(&mut shared, &self.validator, head);
            }
            RunnerEvent::Assigned { stream, assignment } => {
                self.assigned(session, stream, &assignment);
            }
            RunnerEvent::Sent { stream, errand } => self.sent(session, stream, &errand),
            RunnerEvent::Proved { stream, job_id, proof } => {
                self.proved(session, (stream, job_id), &proof);
            }
            RunnerEvent::EndProved { job_id, proof } => self.end_proved(job_id, &proof),
            RunnerEvent::Cancelled { job_id, deadline, reason } => {
                self.cancelled(&job_id, deadline, reason);
            }
            RunnerEvent::Released { job_id } => {
                let mut shared = self.core.shared.lock();
                if shared.holders.get(&job_id) == Some(&self.validator) {
                    shared.holders.remove(&job_id);
                }
            }
            RunnerEvent::Delivered { job_id } => {
                let mut shared = self.core.shared.lock();
                shared.landed(&job_id, &self.validator);
                shared.holders.remove(&job_id);
                shared.table.delivered(&job_id, Some(&self.validator));
            }
            // Retried with the next block or the next connection.
            RunnerEvent::Undelivered { job_id } => {
                self.core.shared.lock().landed(&job_id, &self.validator);
            }
            RunnerEvent::RevealWanted { stream, job_id } => {
                let result = self.core.shared.lock().table.reveal(&job_id, Some(&self.validator));
                session.reveal(stream, result.as_deref());
            }
            RunnerEvent::AggregateWanted { stream, aggregate } => {
                session.aggregate(stream, self.agrees(&aggregate));
            }
        }
    }

    fn command(&mut self, session: &mut runner::Runner, command: RunnerCommand) {
        match command {
            RunnerCommand::Head(head) => {
                session.handle_head(head);
                // The command to tell the load may have found no room.
                self.tell_abilities(session);
            }
            RunnerCommand::Progress(job_id, TaskProgress { percent, detail }) => {
                if let Ok(percent) = Percent::new(percent.into()) {
                    session.progress(job_id, percent, detail.as_deref().map(Text::truncated));
                }
            }
            RunnerCommand::Deliver(delivery) => self.deliver(session, &delivery),
            RunnerCommand::Answer(job_id, status) => session.answer_waiting(&job_id, status),
            RunnerCommand::TellLoad => session.backpressure(&self.core.shared.lock().load()),
            RunnerCommand::TellAbilities => self.tell_abilities(session),
            RunnerCommand::Close => session.close(GoodbyeReason::ShuttingDown),
        }
    }
}

impl<E: Clock + Spawner, W: Worker> ValidatorLink<E, W> {
    fn established(&mut self, session: &mut runner::Runner) {
        self.established = true;
        let (head, load, open) = {
            let mut shared = self.core.shared.lock();
            let commands = self.commands.clone();
            let link = LinkHandle { serial: self.serial, commands, told: Height::GENESIS };
            shared.links.insert(self.validator.clone(), link);
            self.core.count.send_replace(shared.links.len());
            shared.deliver_all();
            if shared.closing {
                session.close(GoodbyeReason::ShuttingDown);
            }
            (shared.head, shared.load(), JobIds::first(shared.table.open_jobs()))
        };
        session.handle_head(head);
        session.backpressure(&load);
        self.tell_abilities(session);
        session.name_open(open);
        self.core.say(Activity::Connected { validator: self.validator.clone() });
    }

    fn tell_abilities(&mut self, session: &mut runner::Runner) {
        if !self.established {
            return;
        }
        let now = self.core.withdrawn.lock().clone();
        let removed: Vec<_> = now.difference(&self.told).map(Label::from).collect();
        let added: Vec<_> = self.told.difference(&now).map(Label::from).collect();
        let parts = added.len().max(removed.len()).div_ceil(Labels::LIMIT);
        for part in 0..parts {
            let [add, remove] = [&added, &removed].map(|labels| {
                let part = labels.iter().skip(part * Labels::LIMIT).take(Labels::LIMIT);
                split(part)
            });
            session.capabilities(CapabilityChange {
                added_capabilities: add.0,
                removed_capabilities: remove.0,
                added_entitlements: add.1,
                removed_entitlements: remove.1,
            });
        }
        self.told = now;
    }

    fn assigned(&self, session: &mut runner::Runner, stream: StreamId, assignment: &JobAssignment) {
        let JobAssignment { job_id, block_height, deadline_block, .. } = *assignment;
        let attempt =
            ProposedAttempt { job_id, assigned_at: block_height, deadline: deadline_block };
        // The specification may be long, so it is hashed without the lock.
        let is_of_its_job = assignment.is_of_its_job();
        self.decide(session, stream, attempt, |table, head, spec| {
            table.offer(&self.validator, attempt, head, || match is_of_its_job {
                true => {
                    *spec = Some(self.core.check(assignment.job_spec.as_bytes())?);
                    Ok(())
                }
                false => Err(RejectReason::InvalidSpec),
            })
        });
    }

    fn sent(&self, session: &mut runner::Runner, stream: StreamId, errand: &Errand) {
        let agent = errand.agent_pubkey.address();
        let attempt = ProposedAttempt {
            job_id: errand.errand_id,
            assigned_at: Height::GENESIS,
            deadline: errand.deadline_block,
        };
        let has_its_id = errand.has_its_id();
        self.decide(session, stream, attempt, |table, head, spec| {
            table.offer_errand(&self.validator, attempt, head, || {
                if !self.core.agents.contains(&agent) {
                    tracing::info!(%agent, "errand refused: the operator has not named its agent");
                    return Err(RejectReason::MissingEntitlement);
                }
                if !has_its_id {
                    return Err(RejectReason::InvalidSpec);
                }
                *spec = Some(self.core.check(errand.errand_spec.as_bytes())?);
                Ok(())
            })
        });
    }

    /// A validator proves that the chain assigns a job that too few validators have assigned.
    fn proved(
        &self,
        session: &mut runner::Runner,
        (stream, job_id): (StreamId, Hash),
        proof: &Body,
    ) {
        let (validator, runner) = (self.validator.address(), self.core.public.address());
        let shown = self.core.read_proof(&job_id, proof.as_bytes());
        match shown.and_then(|shown| shown.assignment(&job_id)) {
            Ok((attempt, encoded)) => {
                self.decide(session, stream, attempt, |table, head, spec| {
                    table.offer_proved(attempt, head, || {
                        *spec = Some(self.core.check(&encoded)?);
                        Ok(())
                    })
                });
            }
            Err(error) => tracing::warn!(%runner, %validator, %error, "a proof does not hold"),
        }
    }

    /// A validator proves that the chain no longer assigns a job to the runner, although too few
    /// validators have cancelled it. Checking a proof costs one signature per vote, so after one
    /// proof that does not hold this connection may show no other for the same job.
    fn end_proved(&mut self, job_id: Hash, proof: &Body) {
        let running = self.core.shared.lock().table.is_running(&job_id);
        if !running || self.refuted.contains(&job_id) {
            return;
        }
        let shown = self.core.read_proof(&job_id, proof.as_bytes());
        let height = match shown.and_then(|shown| shown.end(&job_id)) {
            Ok(height) => height,
            Err(error) => {
                let (validator, runner) = (self.validator.address(), self.core.public.address());
                tracing::warn!(%runner, %validator, %error, "a proof does not hold");
                while self.refuted.len() >= MAX_REFUTED {
                    self.refuted.pop_first();
                }
                self.refuted.insert(job_id);
                return;
            }
        };
        let mut shared = self.core.shared.lock();
        if shared.table.end_proved(&job_id, height) {
            shared.abandon(&job_id);
            self.core.clear(&mut shared);
            self.core.say(Activity::Stopped { job_id, reason: Some(CancelReason::Reassigned) });
            shared.tell_load();
        }
    }

    /// Lets the table decide about an attempt that came on `stream`, and answers it.
    fn decide(
        &self,
        session: &mut runner::Runner,
        stream: StreamId,
        ProposedAttempt { job_id, .. }: ProposedAttempt,
        offer: impl FnOnce(&mut JobTable, Height, &mut Option<JobSpec>) -> Decided,
    ) {
        let mut spec = None;
        let decided = {
            let mut guard = self.core.shared.lock();
            let shared = &mut *guard;
            let decided = offer(&mut shared.table, shared.head, &mut spec);
            match &decided.offer {
                Offer::Accept => {
                    shared.holders.insert(job_id, self.validator.clone());
                }
                Offer::HandOver(_) => {
                    shared.in_flight.insert(job_id, self.validator.clone());
                }
                Offer::Wait | Offer::Duplicate | Offer::Reject(_) => {}
            }
            self.core.start((&self.jobs, &self.worker), shared, &decided, (job_id, spec));
            decided
        };
        if let Some(status) = decided.offer.status() {
            session.answer(stream, status);
        }
        if let Offer::HandOver(delivery) = decided.offer {
            self.deliver(session, &delivery);
        }
    }

    fn deliver(&self, session: &mut runner::Runner, delivery: &JobReport) {
        let sent = match delivery {
            JobReport::Result(result) => session.deliver(result),
            JobReport::Commit(commit) => session.commit(commit),
            JobReport::Failure(failure) => session.fail(failure),
        };
        if !sent {
            self.core.shared.lock().landed(&delivery.job_id(), &self.validator);
        }
    }

    fn agrees(&self, aggregate: &JobAggregate) -> bool {
        let mut shared = self.core.shared.lock();
        let head = shared.head;
        shared.table.aggregate(&self.core.public.address(), aggregate, head)
    }

    fn cancelled(&self, job_id: &Hash, deadline: Height, reason: CancelReason) {
        let mut shared = self.core.shared.lock();
        let stopped = shared.table.cancel(job_id, deadline, &self.validator);
        self.core.clear(&mut shared);
        shared.landed(job_id, &self.validator);
        if shared.holders.get(job_id) == Some(&self.validator) {
            shared.holders.remove(job_id);
        }
        if stopped {
            shared.abandon(job_id);
            self.core.say(Activity::Stopped { job_id: *job_id, reason: Some(reason) });
        }
        shared.tell_load();
    }

    fn ended(&self) {
        let mut shared = self.core.shared.lock();
        if shared.links.get(&self.validator).is_none_or(|link| link.serial != self.serial) {
            return;
        }
        shared.links.remove(&self.validator);
        self.core.count.send_replace(shared.links.len());
        shared.holders.retain(|_, holder| *holder != self.validator);
        // This includes results that its task had not sent yet.
        shared.in_flight.retain(|_, validator| *validator != self.validator);
        shared.table.lost(&self.validator);
        shared.deliver_all();
    }
}

/// Splits labels into capabilities and entitlements. Takes at most as many as a frame's list holds.
fn split<'a>(labels: impl Iterator<Item = &'a Label>) -> (Labels, Labels) {
    let (mut capabilities, mut pools) = (Vec::new(), Vec::new());
    for label in labels {
        match label {
            Label::Capability(name) => capabilities.push(name.as_str()),
            Label::Entitlement(pool) => pools.push(pool.as_str()),
        }
    }
    let list = |names| Labels::new(names).expect("a label is short, and so is the list");
    (list(capabilities), list(pools))
}
