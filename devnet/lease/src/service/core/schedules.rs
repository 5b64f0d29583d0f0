//! Runs that are submitted by timers of the chain.
//!
//! When a fire matches a schedule, the run, the schedule's count and the position after the fire
//! are one message's change, so that either all or none of it is written. A fire before that
//! position is ignored, so that reporting it again does nothing. If the run is refused, the fire is
//! skipped and the schedule records the reason; if the run cannot be written, the fire must be
//! reported again.

use super::{Answer, Core, ServiceResult, json, refused};
use crate::{
    fire::Fire,
    machine::{Board, JobId, Refusal, RunId, board::MAX_OPEN_JOBS},
    messages::{MAX_SCHEDULES, NewRun, NewSchedule},
    service::{ChainHead, ServiceError, spec},
    store::{NewRow, RunSecrets, ScheduleChange, StoreError, Trigger, hidden},
    tokens::new_id,
};
use cowboy_engine::primitives::Address;

impl Trigger {
    fn awaits(&self, fire: &Fire) -> bool {
        let called = self.handler.as_ref().is_none_or(|handler| *handler == fire.handler);
        self.actor == fire.actor && called && fire.place() >= self.next
    }
}

impl Core {
    /// Adds a schedule whose run has been checked. Returns its id.
    pub fn add_schedule(&mut self, actor: Address, new: NewSchedule) -> ServiceResult<String> {
        let head = *self.shared.chain();
        let since = match head {
            ChainHead::None => return Err(ServiceError::NoChain),
            ChainHead::Unknown => return Err(ServiceError::ChainBegins),
            ChainHead::At(height) => height,
        };
        if self.schedules.len() >= MAX_SCHEDULES {
            return Err(ServiceError::SchedulesFull);
        }
        self.would_take(&new.run).map_err(|error| match error {
            ServiceError::Fault(fault) => fault.within("run").into(),
            other => other,
        })?;
        let id = new_id("sched")?;
        let NewSchedule { handler, mut run, .. } = new;
        let mut secrets = RunSecrets::new();
        let jobs = run.jobs.into_iter().map(|job| {
            let (job, values) = spec::without_secrets(job);
            if !values.is_empty() {
                secrets.insert(job.name.clone(), values);
            }
            job
        });
        run.jobs = jobs.collect();
        let next = (since + 1, 0);
        self.schedules.push(Trigger { id: id.clone(), actor, handler: handler.clone(), next });
        self.record.schedules.push(ScheduleChange::Made(Box::new(NewRow {
            id: id.clone(),
            name: run.name.clone(),
            jobs: run.jobs.len() as u64,
            actor,
            handler,
            run: json(&run),
            secrets: hidden(&secrets),
            at: self.now,
            since,
        })));
        Ok(id)
    }

    /// Refuses a run that would be refused even with an empty queue.
    fn would_take(&self, run: &NewRun) -> ServiceResult<()> {
        spec::known_artifacts(run, &self.board)?;
        let ids = run.jobs.iter().map(|job| (job.name.clone(), JobId(job.name.clone())));
        let ids = ids.collect();
        let jobs = run.jobs.iter().map(|spec| self.new_job(spec, &ids)).collect();
        let mut empty = Board::new(self.shared.config).map_err(|_| ServiceError::Failed)?;
        let taken = empty.submit(RunId("run".to_owned()), None, jobs, self.now);
        taken.map_err(|error| refused(&error, run, &ids))
    }

    pub fn remove_schedule(&mut self, id: &str) -> ServiceResult<()> {
        let at = self.schedules.iter().position(|schedule| schedule.id == id);
        self.schedules.remove(at.ok_or(Refusal::NotFound)?);
        self.record.schedules.push(ScheduleChange::Gone(id.to_owned()));
        Ok(())
    }

    /// The first block of which a schedule has not processed all fires.
    pub fn schedules_go_on_at(&self) -> Option<u64> {
        self.schedules.iter().map(|schedule| schedule.next.0).min()
    }

    /// The schedules for which these fires are due: by fire, then in the order in which the
    /// schedules were added.
    pub fn due_schedules(&self, fires: Vec<Fire>) -> Vec<(String, Fire)> {
        let due = fires.into_iter().flat_map(|fire| {
            let awaiting = self.schedules.iter().filter(|schedule| schedule.awaits(&fire));
            awaiting.map(|schedule| (schedule.id.clone(), fire.clone())).collect::<Vec<_>>()
        });
        due.collect()
    }

    /// Submits a schedule's run for a fire, unless the schedule is gone or has processed the fire.
    pub fn scheduled(&mut self, id: &str, fire: Fire) -> ServiceResult<()> {
        let awaits = |schedule: &Trigger| schedule.id == id && schedule.awaits(&fire);
        let Some(at) = self.schedules.iter().position(awaits) else { return Ok(()) };
        let made = match self.store.scheduled_run(id) {
            Ok(run) => self.submit(run).map_err(|error| match error {
                ServiceError::Full => format!("{MAX_OPEN_JOBS} jobs are open, the maximum"),
                other => other.to_string(),
            }),
            Err(StoreError::Damaged { .. }) => Err("its stored run is damaged".to_owned()),
            Err(error) => return Err(self.not_read(&error)),
        };
        if self.failed {
            return Err(ServiceError::Failed);
        }
        let next = (fire.height, fire.position.saturating_add(1));
        self.schedules[at].next = next;
        let (schedule, height, timer) = (id.to_owned(), fire.height, fire.timer);
        let outcome = made.clone().map_err(|reason| (self.now, reason));
        self.answers.push(Answer::Done(Box::new({
            let schedule = schedule.clone();
            move |written| match made {
                _ if !written => {}
                Ok(run) => tracing::info!(%schedule, %run, height, %timer, "run by a schedule"),
                Err(reason) => {
                    tracing::warn!(%schedule, height, %timer, reason, "no run by a schedule");
                }
            }
        })));
        self.record.schedules.push(ScheduleChange::Fired { schedule, fire, next, outcome });
        Ok(())
    }

    /// Marks all blocks up to this one as processed: fires that were not reported do not match or,
    /// if `missed` gives a reason, are lost.
    pub fn followed(&mut self, height: u64, missed: Option<&'static str>) -> ServiceResult<()> {
        let behind = self.schedules.iter_mut().filter(|schedule| schedule.next.0 <= height);
        let count = behind.map(|schedule| schedule.next = (height + 1, 0)).count();
        if count > 0 {
            let missed = missed.map(|reason| (self.now, reason));
            self.record.schedules.push(ScheduleChange::Followed { height, missed });
        }
        Ok(())
    }
}
