//! The consequences of a change: jobs that follow, are skipped or give way.

use super::Board;
use crate::machine::{Concurrency, JobId, JobState, LeaseJob, Member, Refusal, Why, job::Then};
use std::collections::VecDeque;

/// A consequence of a change that is still to be handled.
#[derive(Debug)]
pub(super) enum GrantStep {
    Ended(JobId),
    Turn(Member),
    /// A later member of its concurrency group takes this job's place.
    Supersede(JobId),
}

impl Board {
    /// Handles the consequences of changes, and theirs in turn. Chains of jobs may be long, so this
    /// uses a queue instead of recursion.
    pub(super) fn settle(&mut self, mut steps: VecDeque<GrantStep>, now: u64) {
        while let Some(step) = steps.pop_front() {
            match step {
                GrantStep::Ended(id) => {
                    let went = self.jobs[&id].went();
                    for other in self.needed_by.remove(&id).into_iter().flatten() {
                        let told = self.apply(&other, now, &mut steps, |job, now| {
                            Ok(((), job.need_ended(&id, went, now)))
                        });
                        told.expect("a job that needs another exists and accepts its end");
                    }
                    steps.extend(self.leave_groups(&id).into_iter().map(GrantStep::Turn));
                }
                GrantStep::Turn(Member::Job(id)) => self.admit(&id, &mut steps),
                GrantStep::Turn(Member::Run(run)) => {
                    for id in self.runs.get(&run).cloned().unwrap_or_default() {
                        self.admit(&id, &mut steps);
                    }
                }
                GrantStep::Supersede(id) => {
                    let config = self.config;
                    // An error means that it has ended since.
                    let _ = self.apply(&id, now, &mut steps, |job, now| {
                        Ok(((), job.cancel(&config, Why::Superseded, now)?))
                    });
                }
            }
        }
    }

    pub(super) fn apply<T>(
        &mut self,
        id: &JobId,
        now: u64,
        steps: &mut VecDeque<GrantStep>,
        change: impl FnOnce(&mut LeaseJob, u64) -> Result<(T, Then), Refusal>,
    ) -> Result<T, Refusal> {
        let job = self.jobs.get_mut(id).ok_or(Refusal::NotFound)?;
        let (state, attempt) = (job.state(), job.attempt());
        let (position, wake) = (job.position(), job.wake(&self.config));
        let (answer, then) = change(job, now)?;
        if let Some(at) = wake {
            self.wakes.remove(&(at, id.clone()));
        }
        if let Some(position) = position.filter(|position| job.position() != Some(*position)) {
            self.queue.remove(&job.rules().requires, position);
        }
        match then {
            Then::Stays => {}
            Then::Requeue => {
                job.resume();
                self.admit(id, steps);
            }
            Then::Ends => {
                self.queue.close(&job.rules().requires);
                steps.push_back(GrantStep::Ended(id.clone()));
            }
        }
        let job = &self.jobs[id];
        let entered = job.state();
        self.wakes.extend(job.wake(&self.config).map(|at| (at, id.clone())));
        if entered != state {
            *self.states.entry(entered).or_default() += 1;
            self.leaves(state);
        }
        let job = &self.jobs[id];
        if (entered, job.attempt()) == (state, attempt) {
            self.changes.jobs.insert(id.clone());
        } else {
            self.note(id, now);
        }
        Ok(answer)
    }

    pub(super) fn leaves(&mut self, state: JobState) {
        if let Some(count) = self.states.get_mut(&state) {
            *count -= 1;
        }
    }

    /// Queues a job that waits for no other job, unless another member of one of its concurrency
    /// groups has its turn.
    pub(super) fn admit(&mut self, id: &JobId, steps: &mut VecDeque<GrantStep>) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.waits_for_turn()) else { return };
        let turns = &self.turns;
        let waits = |(group, ticket, member): (&str, u64, Member)| {
            turns.before(group, ticket, &member).next().is_some()
        };
        if job.turns().any(waits) {
            return;
        }
        let own = job.rules().concurrency.clone();
        if let Some(Concurrency { group, cancel }) = own.filter(|_| !job.has_joined()) {
            let member = Member::Job(id.clone());
            let ticket = self.turns.join(&group, member.clone());
            job.join(ticket);
            self.changes.jobs.insert(id.clone());
            if cancel {
                self.supersede(&group, ticket, &member, steps);
            }
            if self.turns.before(&group, ticket, &member).next().is_some() {
                return;
            }
        }
        if let Some(job) = self.jobs.get_mut(id) {
            let position = self.queue.push(&job.rules().requires, id.clone());
            job.queue(position);
            self.changes.jobs.insert(id.clone());
        }
    }

    /// Cancels the members that joined the group before, last first, so that none that waits gets
    /// its turn.
    pub(super) fn supersede(
        &self,
        group: &str,
        ticket: u64,
        member: &Member,
        steps: &mut VecDeque<GrantStep>,
    ) {
        for before in self.turns.before(group, ticket, member).rev() {
            match before {
                Member::Job(id) => steps.push_back(GrantStep::Supersede(id.clone())),
                Member::Run(run) => {
                    let jobs = self.runs.get(run).into_iter().flatten();
                    steps.extend(jobs.cloned().map(GrantStep::Supersede));
                }
            }
        }
    }

    /// Removes an ended job from its group, and its run from its group when it was the run's last
    /// job. Returns the members that have their turn now.
    fn leave_groups(&mut self, id: &JobId) -> Vec<Member> {
        let Some(job) = self.jobs.get(id) else { return Vec::new() };
        let ended = |job: &JobId| self.jobs[job].state().is_terminal();
        let left = job.turns().filter(|(.., member)| match member {
            Member::Job(_) => true,
            Member::Run(run) => self.runs.get(run).into_iter().flatten().all(ended),
        });
        let left: Vec<_> =
            left.map(|(group, ticket, member)| (group.to_owned(), ticket, member)).collect();
        let turns = &mut self.turns;
        left.iter()
            .filter_map(|(group, ticket, member)| turns.leave(group, *ticket, member))
            .collect()
    }

    /// Adds a restored job to the indexes. Returns whether its tickets are unique.
    pub(super) fn enter(&mut self, job: &LeaseJob) -> bool {
        let id = job.id();
        self.runs.entry(job.run().clone()).or_default().insert(id.clone());
        *self.states.entry(job.state()).or_default() += 1;
        if !job.state().is_terminal() {
            self.queue.open(&job.rules().requires);
        }
        if let Some(position) = job.position() {
            self.queue.put(&job.rules().requires, position, id.clone());
        }
        for need in job.needs() {
            self.needed_by.entry(need.clone()).or_default().insert(id.clone());
        }
        self.wakes.extend(job.wake(&self.config).map(|at| (at, id.clone())));
        // An open job's run keeps its ticket too.
        job.state().is_terminal() || {
            let mut joined = job.turns();
            joined.all(|(group, ticket, member)| self.turns.put(group, ticket, member))
        }
    }
}
