//! Which waiting tasks start, in which order, and what the machine says to each.

use super::{AgentAction, Core, Count};
use crate::{
    agent::{CLAIM_MS, REFUSALS, chain_message::MessageKind, run::StageTimes},
    types::TaskStatus,
};
use cowboy_engine::speculation::{ParentLink, Reason, Refused, RunRequest, TaskId};
use std::{mem, ops::Bound};

fn names(parents: &[(TaskId, ParentLink)]) -> String {
    parents.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>().join(",")
}

impl Core {
    pub(super) fn schedule_ready(&mut self, now: u64) {
        // A limit on new branches need not stop tasks that open none.
        for kind in 0..self.ready.len() {
            let (mut refused, mut from) = (0, Bound::Unbounded);
            while refused < REFUSALS {
                let next = self.ready[kind].range((from, Bound::Unbounded)).next().copied();
                let Some((number, rank, at)) = next else { break };
                from = Bound::Excluded((number, rank, at));
                // If it fails at once, it may be ready again by then.
                self.ready[kind].remove(&(number, rank, at));
                let Err(error) = self.schedule(number, at, now) else { continue };
                refused += 1;
                self.refuse((number, at), &error);
                if error.reason == Reason::ClaimTooSoon {
                    // A retry would fail too: its claim never gets longer.
                    self.ended(number, at, TaskStatus::Failed, now);
                } else {
                    self.ready[kind].insert((number, rank, at));
                }
            }
        }
    }

    fn refuse(&mut self, place: (u64, usize), error: &Refused) {
        let run = &self.runs[&place.0];
        let task = &run.tasks[place.1];
        let (id, text) = (task.id, error.to_string());
        let told = task.reason.as_ref() == Some(&text);
        // Only a new reason counts.
        if self.refused.insert(id, error.reason) != Some(error.reason) {
            self.counts.push(Count::Rejected { reason: error.reason });
        }
        if !told {
            self.change(place, |task| task.reason = Some(text));
        }
    }

    pub(super) fn set_ready(&mut self, number: u64, at: usize, ready: bool) {
        let run = &self.runs[&number];
        let kind = usize::from(run.pipeline.tasks[at].parents.is_empty());
        let key = (number, run.rank[at], at);
        if ready {
            self.ready[kind].insert(key);
        } else {
            self.ready[kind].remove(&key);
        }
    }

    fn schedule(&mut self, number: u64, at: usize, now: u64) -> Result<(), Refused> {
        let run = &self.runs[&number];
        let (id, written) = (run.tasks[at].id, &run.pipeline.tasks[at]);
        let parent = |(parent, order_only): &(usize, bool)| {
            let link = if *order_only { ParentLink::OrderOnly } else { ParentLink::Reads };
            let task = &run.tasks[*parent];
            // The machine may have forgotten confirmed tasks.
            let known = task.status != TaskStatus::Confirmed
                || self.machine.graph().status(&task.id).is_some();
            known.then_some((task.id, link))
        };
        let parents: Vec<_> = written.parents.iter().filter_map(parent).collect();
        let buffer = self.machine.config().claim_buffer_ms;
        let long = CLAIM_MS.max(buffer.saturating_mul(2));
        let until = now.saturating_add(written.entry.claim_ms.unwrap_or(long));
        let inputs = self.inputs_of(number, at);
        let refused = self.refused.get(&id).copied();
        let request = RunRequest { inputs, refused, ..RunRequest::new(id, &parents, until) };
        let span = self.spans.schedule(number, &id);
        let scheduled = match self.machine.schedule(request, now) {
            Ok(scheduled) => scheduled,
            Err(error) => {
                let news = refused != Some(error.reason);
                self.spans.refused(span, news.then(|| names(&parents)).as_deref(), &error);
                return Err(error);
            }
        };
        self.spans.accepted(span, &names(&parents), scheduled.depth, scheduled.bond);
        self.refused.remove(&id);
        // An output made from other inputs is not reused.
        let task = &self.runs[&number].tasks[at];
        let usable = task.may_have_landed() || scheduled.checkpoint.is_some();
        let again = task.output.clone();
        let again = again.filter(|_| usable && task.inputs.map(|one| one.0) == Some(inputs));
        // The machine has forgotten the attempts of a task resolved long ago.
        let attempt = scheduled.attempt.max(task.attempt.saturating_add(1));
        self.counts.push(Count::Scheduled { depth: scheduled.depth });
        self.change((number, at), |task| {
            task.status = TaskStatus::Running;
            task.reason = None;
            task.attempt = attempt;
            task.depth = scheduled.depth;
            task.bond = u64::try_from(scheduled.bond.get()).ok();
            task.claim_expires_at = until;
            task.runner = None;
            task.proof_ms = None;
            task.times = StageTimes { scheduled: Some(now), ..StageTimes::default() };
        });
        if scheduled.depth > 0
            && let Some(run) = self.runs.get_mut(&number)
            && !mem::replace(&mut run.speculated, true)
        {
            self.dirty_runs.insert(number);
        }
        self.send(id, attempt, MessageKind::Create);
        self.send(id, attempt, MessageKind::Claim { until });
        if let Some(output) = again {
            // Its inputs stay as recorded, whatever its parents have put out since.
            self.executed(number, at, output, now);
            return Ok(());
        }
        self.drop_output((number, at));
        self.change((number, at), |task| task.inputs = Some(inputs.into()));
        let run = &self.runs[&number];
        match run.pipeline.tasks[at].work(&run.inputs(at)) {
            Ok(spec) => {
                let spec = Box::new(spec);
                self.actions.push(AgentAction::Execute { task: id, attempt, spec, until });
            }
            Err(error) => {
                self.fails((number, at), format!("its job cannot be built: {error}"), now);
            }
        }
        Ok(())
    }
}
