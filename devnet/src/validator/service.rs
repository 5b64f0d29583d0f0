//! A validator's service to its runners: from its chain to them and back.

use super::{
    committees::{CommitteeAction, Committees, ResultSource},
    evidence::Evidence,
    gateway::{Gateway, Submission},
    node,
    submitter::{ChainSubmission, Submitter},
};
use crate::{
    chain::{anchor::Anchor, ledger::ExecutedBlock, reveals::Revealed},
    transport::Listen,
};
use commonware_macros::select;
use commonware_runtime::{Clock, Spawner, reschedule};
use cowboy_engine::{
    chain::{
        Payload, State,
        transaction::{CommitResult, ReportEquivocation},
        transition::check_commit,
    },
    job::{needs, spec::JobStatus},
    presence::view::Label,
    primitives::{Height, SecretKey},
};
use futures::future::OptionFuture;
use rand_core::CryptoRng;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{broadcast::error::RecvError, mpsc};

/// The maximum delay after a block until runners are told of it. Each of them answers with a ping,
/// and the block's assignments must not wait behind those.
const TELL_AFTER: Duration = Duration::from_millis(10);
/// The delay as a part of the block time: pings must arrive before the next block's votes.
const TELL_AFTER_PART: u32 = 10;

/// The service for [`ValidatorConfig::gateway`](node::ValidatorConfig::gateway): `gateway` serves
/// the connections of `listener` and follows the validator's chain, and what runners deliver
/// (`handed_in`) is submitted with `key`. `block_time` is the chain's block time.
pub fn serve<E: Clock + Spawner + CryptoRng, L: Listen>(
    gateway: Gateway,
    handed_in: mpsc::Receiver<Submission>,
    key: SecretKey,
    listener: L,
    block_time: Duration,
) -> node::RunnerService<E> {
    Box::new(move |context, services| {
        Box::pin(async move {
            let desk = ServiceDesk {
                gateway: gateway.clone(),
                committees: Committees::new(key.public_key()),
                evidence: Evidence::default(),
                submitter: Submitter::new(key, services.clone()),
                services,
            };
            let clock = context.child("follow");
            let tell_after = TELL_AFTER.min(block_time / TELL_AFTER_PART);
            select! {
                () = gateway.serve(context, listener) => {},
                () = follow(&clock, tell_after, desk, handed_in) => {},
            }
        })
    })
}

struct ServiceDesk {
    gateway: Gateway,
    committees: Committees,
    evidence: Evidence,
    submitter: Submitter,
    services: node::Services,
}

impl ServiceDesk {
    fn advance(&mut self, state: &State) {
        self.gateway.advance(state.clone());
        let actions = self.committees.advance(state);
        self.act(actions);
        self.submitter.settle(state);
        if let Some(since) = self.gateway.waiting_since() {
            match Anchor::newest(&self.services.ledger, since) {
                Ok(Some(anchor)) => self.gateway.prove(&anchor),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "cannot prove assignments"),
            }
        }
        if self.gateway.has_withdrawals() {
            self.gateway.needed(needed(&self.services, state));
        }
    }

    fn executed(&mut self, block: &ExecutedBlock) {
        self.gateway.drew(block.block.header.height, &block.execution.draws);
        let reports = self.evidence.advance(&block.execution.state, &block.block);
        for report in reports {
            self.accuse(report);
        }
    }

    /// Takes a commitment that its runner has signed.
    fn committed(&mut self, commit: CommitResult, deadline_block: Height) {
        if let Some(report) = self.evidence.see(&commit, deadline_block) {
            self.accuse(report);
        }
        match check_commit(&self.services.ledger.head(), &commit) {
            Ok(_) => self.submitter.take(ChainSubmission::Commit(commit)),
            Err(error) => {
                let CommitResult { job_id, runner, .. } = commit;
                tracing::debug!(%runner, %job_id, %error, "commitment not wanted");
            }
        }
    }

    fn accuse(&mut self, report: ReportEquivocation) {
        let ReportEquivocation { job_id, runner, .. } = report;
        tracing::warn!(%runner, %job_id, "runner has signed two commitments");
        self.submitter.take(ChainSubmission::Equivocation(report));
    }

    fn take(&mut self, submission: Submission) {
        match submission {
            Submission::Result(result) => self.submitter.take(ChainSubmission::Result(result)),
            Submission::Commit { commit, deadline_block } => self.committed(commit, deadline_block),
            Submission::Failure(report) => self.submitter.take(ChainSubmission::Failure(report)),
            Submission::Reveal { job_id, reveal } => {
                self.revealed(Arc::new(Revealed { job_id, reveal }), ResultSource::Runner);
            }
            Submission::Aggregated { job_id, digest, signature } => {
                let state = self.services.ledger.head();
                let actions = self.committees.aggregated(&state, job_id, &digest, signature);
                self.act(actions);
            }
        }
    }

    fn revealed(&mut self, revealed: Arc<Revealed>, source: ResultSource) {
        let state = self.services.ledger.head();
        let actions = self.committees.revealed(&state, revealed, source);
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<CommitteeAction>) {
        for action in actions {
            match action {
                CommitteeAction::AskReveal { runner, job_id } => {
                    self.gateway.ask_reveal(&runner, job_id);
                }
                CommitteeAction::AskAggregate { aggregator, job_id } => {
                    let reveals = || self.committees.reveals(&job_id);
                    self.gateway.ask_aggregate(&aggregator, job_id, reveals);
                }
                CommitteeAction::Pass(revealed) => self.services.reveals.send(revealed),
                CommitteeAction::Submit(reveals) => {
                    self.submitter.take(ChainSubmission::Reveals(reveals));
                }
            }
        }
    }
}

async fn follow(
    clock: &impl Clock,
    tell_after: Duration,
    mut desk: ServiceDesk,
    mut handed_in: mpsc::Receiver<Submission>,
) {
    let mut blocks = desk.services.ledger.subscribe();
    let mut reveals = desk.services.reveals.subscribe();
    desk.gateway.advance(desk.services.ledger.head());
    let (mut tell, mut arrived) = (None, VecDeque::new());
    loop {
        let due = OptionFuture::from(tell.map(|at| clock.sleep_until(at)));
        tokio::select! {
            biased;
            block = blocks.recv() => {
                match &block {
                    Ok(block) => desk.executed(block),
                    // The newest state replaces the missed ones.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
                let state = desk.services.ledger.head();
                tell = tell.or_else(|| Some(clock.current() + tell_after));
                desk.advance(&state);
            }
            Some(submission) = handed_in.recv() => desk.take(submission),
            // Each may cost two signature checks, so blocks and runners do not wait for all of
            // them.
            () = reschedule(), if !arrived.is_empty() => {
                if let Some(revealed) = arrived.pop_front() {
                    desk.revealed(revealed, ResultSource::Validator);
                }
            }
            // Missed results are sent again.
            Ok(batch) = reveals.recv(), if arrived.is_empty() => {
                arrived.extend(batch.iter().cloned());
            }
            Some(()) = due => {
                tell = None;
                desk.gateway.tell();
            }
        }
    }
}

/// The needs of jobs that have no runner yet: those in the mempool, and those that the chain draws
/// again with each block.
fn needed(services: &node::Services, state: &State) -> BTreeSet<Label> {
    let pending = state.open_jobs().filter(|(_, job)| job.status == JobStatus::Pending);
    let mut abilities: BTreeSet<_> = pending.flat_map(|(_, job)| needs::of(&job.spec)).collect();
    services.mempool.with(|pool| {
        for transaction in pool.iter() {
            if let Payload::SubmitJob(spec) = &transaction.transaction.payload {
                abilities.extend(needs::of(spec));
            }
        }
    });
    abilities.iter().map(Label::from).collect()
}
