//! Callbacks to actors about the ends of jobs (spec chain.md, step 6; jobs.md §2).
//!
//! The dispatcher calls the handler that a job names with a JSON object. The job's submitter pays
//! for it at the block's basefees: the price of the maximum is set aside, and the unused rest is
//! returned. Callbacks beyond the block's limit wait for the next block.

use super::{
    MAX_ERROR_BYTES, Run, Told,
    actors::{self, PendingCall},
    shortened,
};
use crate::{
    actor::{Budget, effect::MAX_PAYLOAD_BYTES},
    chain::{event::CallbackMade, receipt::ActorReceipt, state::PendingCallback},
    fees::meter::{CALLBACK_CELLS, CALLBACK_CYCLES, MAX_BLOCK_CYCLES},
    job::spec::{self, Continuation, Job, JobStatus, Outcome},
    primitives::{Address, Cells, Cycles, Hash, Wei, json::quoted},
    timer::Ids,
};
use std::sync::Arc;

/// Maximum number of cycles that a block's callbacks may use.
const BLOCK_CYCLES: u64 = MAX_BLOCK_CYCLES / 4;

/// Address of the dispatcher, system actor 0x02: the sender of callbacks.
pub const DISPATCHER: Address = Address::DISPATCHER;

impl Run<'_> {
    /// Makes the callbacks that this block has room for.
    pub(super) fn call_back(&mut self) {
        if self.state.callbacks.is_empty() {
            return;
        }
        let mut left = BLOCK_CYCLES;
        let fit = |callback: &&PendingCallback| {
            left.checked_sub(self.budget(callback).cycles).map(|less| left = less).is_some()
        };
        let fitting = self.state.callbacks.iter().take_while(fit).count();
        let waiting = Arc::make_mut(&mut self.state.callbacks);
        let now: Vec<PendingCallback> = waiting.drain(..fitting).collect();
        for callback in now {
            self.tell_of_end(&callback);
        }
    }

    /// What a callback may use.
    fn budget(&self, callback: &PendingCallback) -> Budget {
        let job = self.state.jobs.get(&callback.job_id);
        match job.and_then(|job| job.spec.callback.as_ref()?.resume.as_ref()) {
            Some(Continuation { cycles, cells, .. }) => Budget { cycles: *cycles, cells: *cells },
            None => Budget { cycles: CALLBACK_CYCLES, cells: CALLBACK_CELLS },
        }
    }

    /// Queues the callback of a job, to be made after the block's jobs.
    pub(super) fn queue_callback(&mut self, job_id: Hash, result: Option<Arc<Vec<u8>>>) {
        Arc::make_mut(&mut self.state.callbacks).push(PendingCallback { job_id, result });
    }

    fn tell_of_end(&mut self, callback: &PendingCallback) {
        let job_id = callback.job_id;
        let job = self.state.jobs.get(&job_id).expect("jobs are never removed").clone();
        let Some(spec::Callback { actor, handler, resume }) = job.spec.callback.clone() else {
            return;
        };
        let budget = self.budget(callback);
        let most = self.parent.price(budget.cycles, budget.cells);
        let (mut cycles, mut charged, mut error) = (0, Wei::ZERO, None);
        let mut did = ActorReceipt::none(actor);
        match self.state.debit(job.submitter, most) {
            Err(poor) => error = Some(poor.to_string()),
            Ok(()) => {
                let (place, ids) = (self.place(job_id, None), Ids::of_fire(self.height(), job_id));
                // A continuation is resumed by the actor itself.
                let result = callback.result.as_ref().map_or(&[][..], |result| result.as_slice());
                let (sender, payload) = match &resume {
                    Some(resume) => (actor, actors::reply((&job_id, &resume.cid), &job, result)),
                    None => (DISPATCHER, payload(callback, &job)),
                };
                let first = PendingCall {
                    sender,
                    to: actor,
                    handler: handler.clone(),
                    payload,
                    value: Wei::ZERO,
                };
                let before = self.state.clone();
                let mut done = actors::call(&mut self.state, (&place, &ids), first, budget);
                self.show(&mut done);
                let (events, outcome, ended) = done.told();
                match ended {
                    Ok(()) => self.emit_all(events),
                    Err(failure) => {
                        self.state = before;
                        error = Some(shortened(failure.to_string(), MAX_ERROR_BYTES));
                    }
                }
                cycles = outcome.usage.cycles().min(budget.cycles);
                let cells = outcome.usage.cells.min(budget.cells);
                charged = self.parent.price(cycles, cells);
                let rest = most.saturating_sub(charged);
                self.state.credit(job.submitter, rest).expect("what was set aside fits again");
                self.state.burned.callbacks = self.state.burned.callbacks.saturating_add(charged);
                self.cycles = self.cycles.saturating_add(Cycles::new(cycles));
                self.cells = self.cells.saturating_add(Cells::new(cells));
                did = outcome;
            }
        }
        self.told.push(Told { job_id, outcome: did, error: error.clone() });
        self.emit(CallbackMade { job_id, actor, handler, cycles, charged, error });
    }
}

/// The payload: `job_id` and `status`; for a verified job also `runner`, `result_hash` and
/// `result`; for a failed job also `reason`. `result` is the text itself if it is UTF-8, else
/// 0x-hex; null if it does not fit into a payload.
fn payload(callback: &PendingCallback, job: &Job) -> Vec<u8> {
    let PendingCallback { job_id, result } = callback;
    let mut json = format!("{{\"job_id\":\"{job_id}\",\"status\":\"{}\"", job.status.name());
    match &job.status {
        JobStatus::Verified(_, Outcome { runner, result_hash, .. }) => {
            json.push_str(&format!(",\"runner\":\"{runner}\",\"result_hash\":\"{result_hash}\""));
            json.push_str(",\"result\":");
            let bytes = result.as_ref().map_or(&[][..], |result| result.as_slice());
            let text = match std::str::from_utf8(bytes) {
                Ok(text) => quoted(text),
                Err(_) => format!("\"0x{}\"", hex::encode(bytes)),
            };
            let fits = json.len() + text.len() < MAX_PAYLOAD_BYTES;
            json.push_str(if fits { &text } else { "null" });
        }
        JobStatus::Failed(failure) => {
            json.push_str(&format!(",\"reason\":\"{}\"", failure.reason.name()));
        }
        _ => {}
    }
    json.push('}');
    json.into_bytes()
}
