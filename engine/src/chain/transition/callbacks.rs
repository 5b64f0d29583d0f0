//! Actors are told of the ends of jobs (spec chain.md, step 6; jobs.md §2).
//!
//! The handler that a job names is called with a JSON object, by the dispatcher, and paid by the
//! job's submitter at the block's basefees: the most that it may use is set aside, the rest goes
//! back. What does not fit the block's budget waits for the next.

use super::{
    MAX_ERROR_BYTES, Run, Told,
    actors::{self, Delivery},
    shortened,
};
use crate::{
    actor::Budget,
    chain::{event::CallbackMade, receipt::ActorReceipt, transaction::MAX_PAYLOAD_BYTES},
    job::spec::{self, Job, JobStatus, Outcome},
    primitives::{Address, Cells, Cycles, Hash, Wei},
    record,
    timer::Ids,
};
use std::sync::Arc;

/// Cycles that a callback may use.
pub const CALLBACK_CYCLES: u64 = 1_000_000;
/// Cells that a callback may use.
pub const CALLBACK_CELLS: u64 = 100_000;
/// Callbacks of a block at most: a quarter of its cycles.
const CALLBACKS: usize = 5;

/// Address of the dispatcher, system actor 0x02: the sender of callbacks.
pub const DISPATCHER: Address = {
    let mut address = [0; 20];
    address[19] = 0x02;
    Address(address)
};

/// The end of a job that its actor is not told of yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chain) struct Callback {
    job_id: Hash,
    /// The verified result.
    result: Option<Arc<Vec<u8>>>,
}
record!(Callback { job_id, result });

impl Run<'_> {
    /// Tells as many actors as a block tells.
    pub(super) fn call_back(&mut self) {
        if self.state.callbacks.is_empty() {
            return;
        }
        let waiting = Arc::make_mut(&mut self.state.callbacks);
        let now: Vec<Callback> = waiting.drain(..waiting.len().min(CALLBACKS)).collect();
        for callback in now {
            self.tell_of_end(&callback);
        }
    }

    /// Has the actor told that a job names, once the block's jobs are done with.
    pub(super) fn queue_callback(&mut self, job_id: Hash, result: Option<Arc<Vec<u8>>>) {
        Arc::make_mut(&mut self.state.callbacks).push(Callback { job_id, result });
    }

    fn tell_of_end(&mut self, callback: &Callback) {
        let job_id = callback.job_id;
        let job = self.state.jobs.get(&job_id).expect("a job stays known").clone();
        let Some(spec::Callback { actor, handler }) = job.spec.callback.clone() else { return };
        let (cycle, cell) = (self.parent.basefee_cycle, self.parent.basefee_cell);
        let price = |cycles: u64, cells: u64| {
            let cells = cell.saturating_mul(u128::from(cells));
            cycle.saturating_mul(u128::from(cycles)).saturating_add(cells)
        };
        let most = price(CALLBACK_CYCLES, CALLBACK_CELLS);
        let (mut cycles, mut charged, mut error) = (0, Wei::ZERO, None);
        let mut did = ActorReceipt::none(actor);
        match self.state.debit(job.submitter, most) {
            Err(poor) => error = Some(poor.to_string()),
            Ok(()) => {
                let (place, ids) = (self.place(job_id, None), Ids::of_fire(self.height(), job_id));
                let payload = payload(callback, &job);
                let first = Delivery {
                    sender: DISPATCHER,
                    to: actor,
                    handler: handler.clone(),
                    payload,
                    value: Wei::ZERO,
                };
                let budget = Budget { cycles: CALLBACK_CYCLES, cells: CALLBACK_CELLS };
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
                cycles = outcome.usage.cycles().min(CALLBACK_CYCLES);
                let cells = outcome.usage.cells.min(CALLBACK_CELLS);
                charged = price(cycles, cells);
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

/// What the handler is given: `job_id`, `status`, and of a verified job `runner`, `result_hash` and
/// `result`: as it is where it is text, else 0x-hex; null where a payload has no room for it. Of a
/// failed one `reason`.
fn payload(callback: &Callback, job: &Job) -> Vec<u8> {
    let Callback { job_id, result } = callback;
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

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
