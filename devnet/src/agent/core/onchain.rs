//! The chain's answers about tasks, and resuming after an earlier process.

use super::{AgentAction, Core, Count};
use crate::{
    agent::{
        chain_message::{ChainMessage, MessageKind},
        output_on_chain,
        spans::TaskStage,
    },
    chain::ledger::Ledger,
    speculation::pipeline::TaskFault,
    storage::EventFilter,
    types::{HashText, TaskStatus},
};
use cowboy_engine::{
    chain::{self, EventKind, State, event::CommitmentResolved},
    primitives::{Address, Hash, Height, Wei},
    speculation::{Confirmation, RollbackReason, SubmissionResult, TaskId},
};
use serde_json::json;

/// The name at the start of one of the chain's errors.
fn name(error: &str) -> &str {
    error.split(':').next().unwrap_or_default()
}

impl Core {
    pub(in crate::agent) fn sent(&mut self, message: &ChainMessage, transaction: Hash, now: u64) {
        let Some(place) = self.place(&message.task) else { return };
        self.change(place, |task| task.remember(message.kind.name(), transaction));
        if let MessageKind::Complete { submission, .. } = message.kind {
            let since = self.runs[&place.0].tasks[place.1].times.submitted.unwrap_or(now);
            let took_ms = now.saturating_sub(since);
            self.counts.push(Count::ProofDelivered { task: message.task, took_ms });
            let attempt = self.machine.task(&message.task).map_or(0, |task| task.submissions);
            self.spans.done(&message.task, TaskStage::Submit, Ok(()));
            self.spans.begin(place.0, &message.task, TaskStage::Wait, attempt);
            self.change(place, |task| task.times.delivered = task.times.delivered.or(Some(now)));
            // Stale if the task was undone since.
            let _ = self.machine.submitted(message.task, submission, now);
        }
        self.go_on(now);
    }

    pub(in crate::agent) fn lost(&mut self, task: TaskId, submission: u64, now: u64) {
        if let Ok(answered) = self.machine.answer(task, submission, SubmissionResult::Lost, now) {
            tracing::warn!(%task, submission, retry_in_ms = answered.retry_in_ms, "proof not delivered");
            self.spans.done(&task, TaskStage::Submit, Err("no validator takes it"));
            if answered.retry_in_ms.is_none() {
                self.counts.push(Count::ProofFailed { task });
            }
        }
        self.go_on(now);
    }

    pub(in crate::agent) fn refused(&mut self, message: &ChainMessage, error: &str, now: u64) {
        tracing::info!(task = %message.task, kind = message.kind.name(), error, "the chain refuses");
        let Some(place) = self.place(&message.task) else { return };
        let present = self.runs[&place.0].tasks[place.1].attempt == message.attempt;
        if present && matches!(message.kind, MessageKind::Complete { .. }) {
            self.spans.done(&message.task, TaskStage::Submit, Err(error));
            self.spans.done(&message.task, TaskStage::Wait, Err(error));
        }
        match message.kind {
            // Its commitment was refused before it and is sent again, so this is too.
            MessageKind::Complete { .. } if present && name(error) == "NoCommitment" => {
                let attempt = self.machine.task(&message.task).map_or(0, |task| task.submissions);
                self.spans.begin(place.0, &message.task, TaskStage::Submit, attempt);
                self.send(message.task, message.attempt, message.kind);
            }
            // Its inputs are outputs that its parents no longer have: the task is run again.
            MessageKind::Complete { .. } | MessageKind::Commit
                if present && ["StaleInputs", "ParentNotCommitted"].contains(&name(error)) =>
            {
                self.change(place, |task| task.reason = Some(error.to_owned()));
                self.drop_output(place);
                self.undo(message.task, RollbackReason::AncestorFailed, now);
            }
            MessageKind::Complete { submission, .. } => {
                if present {
                    self.change(place, |task| task.reason = Some(error.to_owned()));
                }
                self.counts.push(Count::ProofFailed { task: message.task });
                // Stale if the task was undone since.
                let _ =
                    self.machine.answer(message.task, submission, SubmissionResult::Rejected, now);
            }
            // The bond price has risen since the task was accepted.
            MessageKind::Commit
                if present && name(error) == "BondTooLow" && self.raises(place, now) =>
            {
                self.send(message.task, message.attempt, MessageKind::Commit);
            }
            // For the chain nothing has failed: it took the ancestor's proof after all. Cancelling
            // releases the bond, unless another attempt uses it.
            MessageKind::Resolve(Some(RollbackReason::AncestorFailed))
                if present && name(error) == "NoAncestorFailed" =>
            {
                let cancel = MessageKind::Resolve(Some(RollbackReason::ManualCancel));
                self.send(message.task, message.attempt, cancel);
            }
            // An earlier process has committed to another output.
            MessageKind::Commit if present && error.starts_with("CommitmentExists") => {
                let until = self.runs[&place.0].tasks[place.1].claim_expires_at;
                let cancel = MessageKind::Resolve(Some(RollbackReason::ManualCancel));
                for kind in [cancel, MessageKind::Claim { until }, MessageKind::Commit] {
                    self.send(message.task, message.attempt, kind);
                }
            }
            // An earlier attempt has created it.
            MessageKind::Create if message.attempt > 1 => {}
            MessageKind::Create | MessageKind::Claim { .. } | MessageKind::Commit if present => {
                self.change(place, |task| task.reason = Some(error.to_owned()));
                let reason = match message.kind {
                    MessageKind::Claim { .. } => RollbackReason::ClaimExpired,
                    _ => RollbackReason::ManualCancel,
                };
                self.undo(message.task, reason, now);
            }
            // The bond stays as the chain has it.
            _ => {}
        }
        self.go_on(now);
    }

    /// Raises a task's bond to the chain's current price, if that is higher and enough stake is
    /// free.
    fn raises(&mut self, place: (u64, usize), now: u64) -> bool {
        let task = &self.runs[&place.0].tasks[place.1];
        let (id, before) = (task.id, task.bond.unwrap_or(0));
        let Some(wanted) = self.machine.price(task.depth.into()) else { return false };
        if wanted <= before || !self.machine.raise_bond(&id, wanted, now) {
            return false;
        }
        self.change(place, |task| task.bond = Some(wanted));
        true
    }

    /// Books what blocks below `next` resolved while this agent did not see them.
    pub(in crate::agent) fn book_missed(&mut self, ledger: &Ledger, next: Height, now: u64) {
        const PAGE: u32 = 1_000;
        while self.booked.next() < next {
            let from = self.booked.next();
            let filter = EventFilter { from, kind: Some("CommitmentResolved"), limit: PAGE };
            let page = match ledger.store().events(filter) {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, %from, "slashes since this block are unknown");
                    return;
                }
            };
            // A page may end within a block, which is then read again as a whole. No block fills a
            // page.
            let last = page.rows.last().filter(|_| page.more).map(|event| event.height);
            let until = last.map_or(next, |last| last.max(from.next())).min(next);
            for event in page.rows.iter().filter(|event| event.height < until) {
                if let EventKind::CommitmentResolved(resolved) = &event.event.kind {
                    self.resolved(resolved, now);
                }
            }
            self.booked = Height::new(until.get().saturating_sub(1)).max(self.booked);
        }
    }

    /// The chain has resolved a commitment and says how much it slashed and released.
    pub(in crate::agent) fn resolved(&mut self, event: &CommitmentResolved, now: u64) {
        let CommitmentResolved { task_id, agent, reason, released, slashed } = event;
        if *agent != self.agent {
            return;
        }
        self.dirty_books = true;
        self.machine.book_slash(*slashed, now);
        if !slashed.is_zero() {
            let (task, reason, amount) = (*task_id, *reason, *slashed);
            self.counts.push(Count::Slashed { task, reason, amount });
            let named = reason.map(RollbackReason::name);
            let data = json!({ "amount": amount.to_string(), "reason": named });
            self.tell_of(&task, "stake:slashed", data, now);
        }
        let Some(place) = self.place(task_id) else { return };
        let wei = |amount: &Wei| u64::try_from(amount.get()).unwrap_or(u64::MAX);
        let (slashed, released) = (wei(slashed), wei(released));
        let Some(number) = self.runs[&place.0].tasks[place.1].undone_by else {
            if reason.is_some() {
                self.change(place, |task| {
                    let (before, back) = task.resolved.unwrap_or_default();
                    let sums = (before.saturating_add(slashed), back.saturating_add(released));
                    task.resolved = Some(sums);
                });
            }
            return;
        };
        self.change(place, |task| task.undone_by = None);
        let mut rollbacks = self.rollbacks.iter_mut();
        if let Some(undone) = rollbacks.find(|one| one.number == number && reason.is_some()) {
            undone.slashed = undone.slashed.saturating_add(slashed);
            undone.released = undone.released.saturating_add(released);
            self.new_rollbacks.push(undone.clone());
        }
        self.heed_all(now);
    }

    /// `commitment` is the output commitment on the chain, if known.
    pub(in crate::agent) fn completed(
        &mut self,
        task: &TaskId,
        commitment: Option<Hash>,
        now: u64,
    ) {
        let Some(place) = self.place(task) else { return };
        self.change(place, |task| {
            task.landed = true;
            task.taken = commitment.map(HashText::from).or(task.taken);
        });
        let run = &self.runs[&place.0];
        let known = self.machine.commitment(task).map(|one| one.opening.output_commitment);
        match run.tasks[place.1].status {
            // Its output is compared when it arrives.
            TaskStatus::Running => return,
            status if status.is_final() || status == TaskStatus::Waiting => {}
            _ if commitment.is_some_and(|taken| Some(taken) != known) => {
                self.is_another(place, now);
                return self.go_on(now);
            }
            _ => {}
        }
        let submitted = run.tasks[place.1].times.submitted.unwrap_or(now);
        let late = match run.pipeline.tasks[place.1].fault {
            Some(TaskFault::LateEvent(ms)) if run.tasks[place.1].attempt == 1 => ms,
            _ => 0,
        };
        let at = submitted.saturating_add(self.options.confirmation_latency_ms).max(now);
        self.actions.push(AgentAction::ConfirmAt { task: *task, at: at.saturating_add(late) });
    }

    /// The chain has another output of the task than this agent, for example after a kill before
    /// that output was stored. The task fails for good, because its descendants here are built on
    /// an output that the chain does not have.
    pub(super) fn is_another(&mut self, (number, at): (u64, usize), now: u64) {
        let attempts = self.runs[&number].entry(at).attempts;
        self.change((number, at), |task| task.failures = attempts);
        let reason = "the chain has another output of it, which is lost here".to_owned();
        self.fails((number, at), reason, now);
    }

    pub(in crate::agent) fn confirm(&mut self, task: &TaskId, now: u64) {
        match self.machine.confirm(*task, now) {
            Ok(Confirmation::Held) => {
                tracing::info!(%task, "confirmed before its parents: held");
            }
            Ok(_) => {}
            Err(error) => tracing::info!(%task, %error, "confirmation does not count"),
        }
        self.go_on(now);
    }

    fn undone_for(&self, place: (u64, usize)) -> RollbackReason {
        let task = &self.runs[&place.0].tasks[place.1];
        let undone = self.rollbacks.iter().rev().find(|one| Some(one.number) == task.undone_by);
        let reason = undone.and_then(|undone| match undone.task_id.0 == task.id {
            true => RollbackReason::named(&undone.reason),
            false => Some(RollbackReason::AncestorFailed),
        });
        reason.unwrap_or(RollbackReason::ManualCancel)
    }

    /// Resumes where an earlier process stopped, with the chain at `state`: does unfinished work
    /// again, and sends the chain what it does not know yet.
    pub(in crate::agent) fn resume(&mut self, state: &State, now: u64) {
        self.resuming = true;
        if self.machine.away().is_some() {
            // The chain was reachable up to its last block, whatever was stored here later.
            self.machine.chain_lost(state.proposed_ms(), now);
        }
        // At the first block, claims are extended by the same time.
        let longer = self.machine.away().map_or(0, |away| now.saturating_sub(away.since));
        // The chain too wants parents before their children.
        let tasks = self.runs.values().flat_map(|run| {
            run.pipeline.order.iter().map(|at| (run.tasks[*at].id, (run.number, *at)))
        });
        for (id, (number, at)) in tasks.collect::<Vec<_>>() {
            let Some(run) = self.runs.get(&number) else { continue };
            let task = &run.tasks[at];
            let (attempt, status) = (task.attempt, task.status);
            let on_chain = state.task(&id);
            let completed = on_chain.is_some_and(|t| t.status == chain::TaskStatus::Completed);
            let committed = on_chain.and_then(|task| task.commitment.as_ref());
            let of_agent = |address: &Address| *address == self.agent;
            let claimed = on_chain.and_then(|task| task.claim.as_ref());
            let held = committed.is_some_and(|one| of_agent(&one.agent))
                || (!completed && claimed.is_some_and(|one| of_agent(&one.agent)));
            if status.is_final() || status == TaskStatus::Waiting {
                if held {
                    let reason = Some(self.undone_for((number, at))).filter(|_| !completed);
                    self.send(id, attempt, MessageKind::Resolve(reason));
                }
                continue;
            }
            let wanted = self.commitment(&id);
            let other = on_chain.is_some_and(|task| task.commitment.is_some() && !wanted.is(task));
            let until = task.claim_expires_at;
            if other && !completed {
                self.send(id, attempt, MessageKind::Resolve(Some(RollbackReason::ManualCancel)));
            }
            self.send(id, attempt, MessageKind::Create);
            self.send(id, attempt, MessageKind::Claim { until });
            if status == TaskStatus::Running {
                let Some(run) = self.runs.get(&number) else { continue };
                match run.pipeline.tasks[at].work(&run.inputs(at)) {
                    Ok(spec) => {
                        let (task, spec) = (id, Box::new(spec));
                        let until = until.saturating_add(longer);
                        self.actions.push(AgentAction::Execute { task, attempt, spec, until });
                    }
                    Err(error) => {
                        self.fails((number, at), format!("its job cannot be built: {error}"), now);
                    }
                }
                continue;
            }
            self.send(id, attempt, MessageKind::Commit);
            if completed {
                self.completed(&id, output_on_chain(state, &id), now);
            }
        }
        self.stirred = true;
        self.go_on(now);
        self.resuming = false;
    }

    /// The chain may have accepted proofs in blocks that this agent did not see.
    pub(in crate::agent) fn catch_up(&mut self, state: &State, now: u64) {
        let open = self.runs.values().filter(|run| run.open > 0).flat_map(|run| &run.tasks);
        let taken = |id: &TaskId| {
            state.task(id).is_some_and(|task| task.status == chain::TaskStatus::Completed)
        };
        let live = open.filter(|task| !task.status.is_final() && !task.landed);
        let landed: Vec<_> = live.map(|task| task.id).filter(taken).collect();
        for id in landed {
            self.completed(&id, output_on_chain(state, &id), now);
        }
    }
}
