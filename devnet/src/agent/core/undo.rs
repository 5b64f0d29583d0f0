//! Tasks that end without being confirmed: the consequences, and which are tried again.

use super::{AgentAction, AskError, Core, Count, MAX_OPEN, NAMED, ROLLBACKS, Undone};
use crate::{agent::chain_message::MessageKind, types::TaskStatus};
use cowboy_engine::speculation::{Plan, RollbackReason, TaskId};
use std::collections::BTreeSet;

impl Core {
    pub(in crate::agent) fn fails(&mut self, place: (u64, usize), reason: String, now: u64) {
        let id = self.runs[&place.0].tasks[place.1].id;
        self.change(place, |task| task.reason = Some(reason));
        self.undo(id, RollbackReason::ManualCancel, now);
    }

    pub(in crate::agent) fn undo(&mut self, task: TaskId, reason: RollbackReason, now: u64) {
        self.spans.stirs();
        if let Err(error) = self.machine.fail(task, reason, now) {
            tracing::debug!(%task, %error, "not rolled back");
        }
        self.heed_all(now);
        self.stirred = true;
    }

    pub(in crate::agent) fn cancel(
        &mut self,
        number: u64,
        task: Option<&str>,
        now: u64,
    ) -> Result<u64, AskError> {
        let run = self.runs.get(&number).ok_or(AskError::NoPipeline(number))?;
        let before = run.open;
        let named = |name: &str| {
            run.position(name).ok_or_else(|| AskError::NoTask(number, name.to_owned()))
        };
        let mut wanted: Vec<usize> = match task {
            Some(name) => vec![named(name)?],
            None => run.pipeline.order.clone(),
        };
        if let (Some(name), [at]) = (task, &wanted[..])
            && run.tasks[*at].status.is_final()
        {
            return Err(AskError::Final(name.to_owned(), run.tasks[*at].status));
        }
        wanted.retain(|at| !run.tasks[*at].status.is_final());
        for at in wanted {
            if self.runs[&number].tasks[at].status.is_final() {
                continue;
            }
            let waiting = self.runs[&number].tasks[at].status == TaskStatus::Waiting;
            let id = self.runs[&number].tasks[at].id;
            self.change((number, at), |task| {
                task.cancelled = true;
                task.reason = Some("cancelled".to_owned());
            });
            if waiting {
                self.ended(number, at, TaskStatus::Cancelled, now);
            } else {
                self.undo(id, RollbackReason::ManualCancel, now);
            }
        }
        self.go_on(now);
        let after = self.runs.get(&number).map_or(0, |run| run.open);
        Ok((before - after) as u64)
    }

    /// Retries failed or rolled back tasks, each as a new attempt: the named ones and what was
    /// rolled back below them, or all. Returns their names, parents first.
    pub(in crate::agent) fn retry(
        &mut self,
        number: u64,
        names: &[String],
        now: u64,
    ) -> Result<Vec<String>, AskError> {
        let run = self.runs.get(&number).ok_or(AskError::NoPipeline(number))?;
        let status = |at: usize| run.tasks[at].status;
        let failed =
            |at: &usize| matches!(status(*at), TaskStatus::Failed | TaskStatus::RolledBack);
        let mut named = BTreeSet::new();
        for name in names {
            let missing = || AskError::NoTask(number, name.clone());
            let at = run.position(name).ok_or_else(missing)?;
            match status(at) {
                _ if failed(&at) => named.insert(at),
                status if status.is_final() => {
                    return Err(AskError::NotFailed(name.clone(), status));
                }
                status => return Err(AskError::StillRuns(name.clone(), status)),
            };
        }
        let mut wanted = match names {
            [] => (0..run.tasks.len()).filter(failed).collect(),
            _ => named.clone(),
        };
        let mut again = Vec::new();
        for at in &run.pipeline.order {
            let parents = run.pipeline.tasks[*at].parents.iter().map(|(parent, _)| *parent);
            let with_parent = status(*at) == TaskStatus::RolledBack
                && parents.clone().any(|parent| wanted.contains(&parent));
            if !wanted.contains(at) && !with_parent {
                continue;
            }
            let ended = |parent: &usize| {
                let status = status(*parent);
                let failed = status.is_final() && status != TaskStatus::Confirmed;
                failed && !wanted.contains(parent)
            };
            match parents.clone().find(ended) {
                None => {
                    wanted.insert(*at);
                    again.push(*at);
                }
                Some(parent) if named.contains(at) => {
                    let name = |at: usize| run.entry(at).id.clone();
                    let (task, parent, status) = (name(*at), name(parent), status(parent));
                    return Err(AskError::ParentEnded { task, parent, status });
                }
                // It is below a cancelled task.
                Some(_) => drop(wanted.remove(at)),
            }
        }
        if again.is_empty() {
            return Err(AskError::NothingFailed(number));
        }
        let open = self.open();
        if open + again.len() > MAX_OPEN {
            return Err(AskError::Full(open));
        }
        let again_names = again.iter().map(|at| run.entry(*at).id.clone()).collect();
        for at in &again {
            self.change((number, *at), |task| {
                task.status = TaskStatus::Waiting;
                task.reason = None;
                task.failures = 0;
                task.retried_at = Some(now);
            });
        }
        if let Some(run) = self.runs.get_mut(&number) {
            (run.ended_at, run.synchronous_ms) = (None, None);
            self.dirty_runs.insert(number);
        }
        self.trace(number);
        for at in again {
            let able = self.runs[&number].can_run(at);
            self.set_ready(number, at, able);
        }
        self.stirred = true;
        self.go_on(now);
        Ok(again_names)
    }

    /// Keeps a pipeline's trace open while one of its tasks is not final.
    pub(in crate::agent) fn trace(&mut self, number: u64) {
        let run = &self.runs[&number];
        if run.open > 0 {
            self.spans.pipeline(number, &run.pipeline.name, run.tasks.len(), run.begun_at());
        }
    }

    pub(in crate::agent) fn rolled_back(&mut self, plan: &Plan, now: u64) {
        let summary = &plan.summary;
        let Some((number, trigger)) = self.place(&summary.trigger) else { return };
        let span = self.spans.rollback(number, summary);
        let _within = span.enter();
        let name = |core: &Self, task: &TaskId| {
            core.task(task).map_or_else(|| task.to_string(), |(run, at)| run.entry(at).id.clone())
        };
        let number_of_rollback = self.rollbacks.back().map_or(1, |last| last.number + 1);
        let (mut slashed, mut released) = (0_u64, 0_u64);
        for task in &plan.tasks {
            let Some(place) = self.place(task) else { continue };
            let Some((lost, back)) = self.runs[&place.0].tasks[place.1].resolved else { continue };
            self.change(place, |task| task.resolved = None);
            (slashed, released) = (slashed.saturating_add(lost), released.saturating_add(back));
        }
        let undone = Undone {
            number: number_of_rollback,
            at: now,
            pipeline: number,
            task: name(self, &summary.trigger),
            task_id: summary.trigger.into(),
            reason: summary.reason.to_string(),
            tasks: summary.tasks,
            undone: plan.tasks.iter().take(NAMED).map(|task| name(self, task)).collect(),
            // The chain's events add what is still to come.
            slashed,
            released,
        };
        if self.rollbacks.len() >= ROLLBACKS {
            self.rollbacks.pop_front();
        }
        self.new_rollbacks.push(undone.clone());
        self.rollbacks.push_back(undone);
        self.counts.push(Count::RolledBack(summary.clone()));
        let run = &self.runs[&number];
        // A task that fails because an ancestor's output is gone does not use up an attempt.
        let own = summary.reason != RollbackReason::AncestorFailed;
        let again = !run.tasks[trigger].cancelled
            && (!own || run.tasks[trigger].failures + 1 < run.entry(trigger).attempts);
        let because = run.entry(trigger).id.clone();
        // The trigger goes to the chain first, because its failure is the reason for the others.
        for task in plan.tasks.iter().rev() {
            let Some(place) = self.place(task) else { continue };
            let attempt = self.runs[&place.0].tasks[place.1].attempt;
            let failed = *task == summary.trigger;
            let reason = if failed { summary.reason } else { RollbackReason::AncestorFailed };
            self.change(place, |task| task.undone_by = Some(number_of_rollback));
            self.send(*task, attempt, MessageKind::Resolve(Some(reason)));
        }
        for task in &plan.tasks {
            let Some(place) = self.place(task) else { continue };
            let is_trigger = *task == summary.trigger;
            let run = &self.runs[&place.0];
            let (attempt, status) = (run.tasks[place.1].attempt, run.tasks[place.1].status);
            // A refused output is useless; an output that may still be on the chain must be kept.
            let refused = is_trigger && summary.reason == RollbackReason::ProofFailed;
            let landed = run.tasks[place.1].landed;
            let undecided = run.tasks[place.1].may_have_landed() && !refused;
            let keep = run.entry(place.1).checkpoint || landed || undecided;
            self.actions.push(AgentAction::Stop { task: *task, attempt });
            let of_it = if is_trigger { summary.reason } else { RollbackReason::AncestorFailed };
            self.spans.all_done(task, Err(of_it.name()));
            if status.is_final() {
                continue;
            }
            if !keep {
                self.drop_output(place);
            }
            self.change(place, |task| {
                task.times.ended = Some(now);
                if is_trigger {
                    task.failures += u32::from(own);
                    task.lost_ms = task.lost_ms.saturating_add(task.times.own_ms(now));
                    task.reason = task.reason.take().or_else(|| Some(summary.reason.to_string()));
                } else {
                    task.reason = Some(format!("`{because}` failed: {}", summary.reason));
                }
                if again {
                    task.status = TaskStatus::Waiting;
                }
            });
        }
        // Parents first: a task can run when all of its parents have outputs.
        for task in plan.tasks.iter().rev() {
            let Some((number, at)) = self.place(task) else { continue };
            let run = &self.runs[&number];
            if run.tasks[at].status.is_final() {
                continue;
            }
            if again && !run.is_hopeless(at) {
                let (able, children) = (run.can_run(at), run.children[at].clone());
                self.set_ready(number, at, able);
                for child in children {
                    self.set_ready(number, child, false);
                }
                continue;
            }
            let status = match (*task == summary.trigger, run.tasks[at].cancelled) {
                (_, true) => TaskStatus::Cancelled,
                (true, false) if !run.is_hopeless(at) => TaskStatus::Failed,
                (_, false) => TaskStatus::RolledBack,
            };
            self.ended(number, at, status, now);
        }
    }

    pub(in crate::agent) fn drop_output(&mut self, place: (u64, usize)) {
        let Some(run) = self.runs.get_mut(&place.0) else { return };
        let task = &mut run.tasks[place.1];
        if let Some(output) = task.output.take() {
            task.inputs = None;
            self.output_bytes -= output.len() as u64;
            self.dirty_outputs.insert(place);
            self.dirty.insert(place);
        }
    }

    /// A task ends without being confirmed, and so do the tasks that wait for it.
    pub(in crate::agent) fn ended(&mut self, number: u64, at: usize, status: TaskStatus, now: u64) {
        let because = self.runs[&number].entry(at).id.clone();
        let why = if status == TaskStatus::Cancelled { "was cancelled" } else { "failed" };
        let mut left = vec![(at, status)];
        while let Some((task, status)) = left.pop() {
            self.set_ready(number, task, false);
            let id = self.runs[&number].tasks[task].id;
            self.refused.remove(&id);
            self.change((number, task), |run| {
                run.status = status;
                run.times.ended = run.times.ended.or(Some(now));
                if task != at {
                    run.reason = Some(format!("`{because}` {why}"));
                }
            });
            let run = &self.runs[&number];
            for child in &run.children[task] {
                match run.tasks[*child].status {
                    TaskStatus::Waiting => left.push((*child, TaskStatus::RolledBack)),
                    status if status.is_final() => {}
                    _ => self.doomed.push(run.tasks[*child].id),
                }
            }
        }
        self.stirred = true;
        self.end_run(number, now);
    }

    pub(in crate::agent) fn end_run(&mut self, number: u64, now: u64) {
        if let Some(run) = self.runs.get_mut(&number)
            && run.open == 0
            && run.ended_at.is_none()
        {
            run.ended_at = Some(now);
            self.dirty_runs.insert(number);
            self.spans.ended(number, run.status());
            let synchronous = self.synchronous_ms(&self.runs[&number], now);
            if let Some(run) = self.runs.get_mut(&number) {
                run.synchronous_ms = synchronous;
            }
            self.forget();
        }
    }
}
