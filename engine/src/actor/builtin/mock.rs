//! `mock`: the chain that tests run on. Its height is virtual, its accounts have what a test gives
//! them, timers fire when a test goes on, and what a handler asks for is there to be looked at.

use super::{
    Builtin,
    host::{bytes_of, is_ordinary},
    text::text_argument,
};
use crate::{
    actor::{
        effect::{Effect, JobRequest, Timer, World},
        error::{Fault, failed},
        eval::{Args, Machine},
        value::Value,
    },
    primitives::{Address, Hash, Wei, keccak256},
};
use std::borrow::Cow;

/// Milliseconds between blocks of a test.
const BLOCK_MS: u64 = 1_000;
/// The most blocks that one `advance` goes on.
const MAX_ADVANCE: u64 = 1_000_000;
/// Bytes of what was asked for that a function copies without a charge beside that of its call.
const PAID_BYTES: usize = 1024;

/// Timers that have not fired, by when they were scheduled.
#[derive(Clone, Debug, Default)]
pub(in crate::actor) struct Mock {
    timers: Vec<(Hash, Timer)>,
    /// How many of the effects are known to be in `timers`.
    seen: usize,
}

/// What a test finds before it has done anything: nothing.
#[derive(Debug)]
pub(in crate::actor) struct MockWorld {
    pub(in crate::actor) actor: Address,
}

impl World for MockWorld {
    fn state(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn balance(&self, _: &Address) -> Wei {
        Wei::ZERO
    }

    fn mru(&self, _: &Address, _: &str) -> Option<Address> {
        None
    }

    fn timer(&self, timer: &Timer, index: u64) -> Result<Hash, String> {
        let height = timer.height.to_be_bytes();
        Ok(keccak256(&[&self.actor.0, &height, &timer.payload, &index.to_be_bytes()]))
    }

    fn job(&self, job: &JobRequest, index: u64) -> Result<Hash, String> {
        Ok(keccak256(&[&self.actor.0, &job.spec, &index.to_be_bytes()]))
    }
}

/// The address of a test's account.
pub(in crate::actor) fn account(name: &str) -> Address {
    let hash = keccak256(&[b"mock-account", name.as_bytes()]);
    let mut address = [0; 20];
    address.copy_from_slice(&hash.0[12..]);
    Address(address)
}

impl Machine<'_> {
    pub(super) fn mock_function(&mut self, function: Builtin, args: &Args) -> Result<Value, Fault> {
        let name = function.name();
        if self.host()?.mock.is_none() {
            return failed(format!("mock.{name} is there in `actor test` alone"));
        }
        match function {
            Builtin::MockAccount => {
                let [of] = self.parameters(args, name, [""], 1)?;
                let id = text_argument(of, name)?;
                self.meter.keccak(self.heap.str(id).len())?;
                let address = account(self.heap.str(id));
                self.address(address)
            }
            Builtin::MockFund => {
                let [to, amount] = self.parameters(args, name, ["account", "amount"], 2)?;
                let to = self.address_in(to, "account")?;
                let amount = self.wei_in(amount.unwrap_or(Value::None), "amount")?;
                let host = self.host()?;
                let sum = host.balance(&to).saturating_add(amount);
                host.set_balance(to, sum);
                Ok(Value::None)
            }
            Builtin::MockCall => self.mock_call(name, args),
            Builtin::MockFails => self.mock_fails(name, args),
            Builtin::MockAdvance => self.mock_advance(name, args),
            Builtin::MockLog => {
                let lines = self.host()?.asked.log.len();
                self.meter.elements(4 * lines)?;
                let mut items = Vec::with_capacity(lines);
                for index in 0..lines {
                    let len = self.host()?.asked.log[index].len();
                    self.take_text(len)?;
                    let line = self.host()?.asked.log[index].clone();
                    items.push(self.paid_text(line));
                }
                self.new_list(items)
            }
            Builtin::MockTimers => {
                self.note_timers()?;
                let mut items = Vec::new();
                for index in 0..self.mock()?.timers.len() {
                    let len = self.mock()?.timers[index].1.payload.len();
                    self.pay_copy(len)?;
                    let (id, timer) = self.mock()?.timers[index].clone();
                    let id = self.hash_value(id)?;
                    let payload = self.text_of(&timer.payload)?;
                    let handler = self.new_text(&timer.call().0)?;
                    let height = Value::Int(timer.height.get() as i64);
                    items.push(self.entry(&[
                        ("timer_id", id),
                        ("height", height),
                        ("payload", payload),
                        ("handler", handler),
                    ])?);
                }
                self.new_list(items)
            }
            _ => self.mock_effects(function),
        }
    }

    fn mock(&mut self) -> Result<&mut Mock, Fault> {
        let Some(mock) = &mut self.host()?.mock else {
            return failed("mock is there in `actor test` alone");
        };
        Ok(mock)
    }

    /// Pays for a copy of what was asked for.
    fn pay_copy(&mut self, bytes: usize) -> Result<(), Fault> {
        self.meter.bytes(bytes.saturating_sub(PAID_BYTES))
    }

    /// A dict of text keys.
    fn entry(&mut self, fields: &[(&str, Value)]) -> Result<Value, Fault> {
        let dict = self.new_dict()?;
        let Value::Dict(id) = dict else { unreachable!("it was made here") };
        for (key, value) in fields {
            let key = self.new_text(key)?;
            self.dict_put(id, key, *value)?;
        }
        Ok(dict)
    }

    /// What was asked for of one kind.
    fn mock_effects(&mut self, function: Builtin) -> Result<Value, Fault> {
        let mut items = Vec::new();
        let count = self.host()?.asked.effects.len();
        for index in 0..count {
            self.meter.elements(1)?;
            let effect = &self.host()?.asked.effects[index];
            let wanted = matches!(
                (function, effect),
                (Builtin::MockEvents, Effect::Emit { .. })
                    | (Builtin::MockTransfers, Effect::Transfer { .. })
                    | (Builtin::MockMessages, Effect::Message { .. })
                    | (Builtin::MockJobs, Effect::SubmitJob { .. })
            );
            if !wanted {
                continue;
            }
            let bytes = bytes_of(effect);
            self.pay_copy(bytes)?;
            let effect = self.host()?.asked.effects[index].clone();
            match (function, effect) {
                (Builtin::MockEvents, Effect::Emit { name, data }) => {
                    let name = self.new_text(&name)?;
                    let data = self.decode_json(&String::from_utf8_lossy(&data))?;
                    items.push(self.entry(&[("name", name), ("data", data)])?);
                }
                (Builtin::MockTransfers, Effect::Transfer { to, amount }) => {
                    let (to, amount) = (self.address(to)?, self.wei(amount)?);
                    items.push(self.entry(&[("to", to), ("amount", amount)])?);
                }
                (Builtin::MockMessages, Effect::Message { to, handler, payload, value }) => {
                    let (to, value) = (self.address(to)?, self.wei(value)?);
                    let handler = self.new_text(&handler)?;
                    let payload = self.text_of(&payload)?;
                    items.push(self.entry(&[
                        ("to", to),
                        ("handler", handler),
                        ("payload", payload),
                        ("value", value),
                    ])?);
                }
                (Builtin::MockJobs, Effect::SubmitJob { id, job }) => {
                    let id = self.hash_value(id)?;
                    let spec = self.decode_json(&String::from_utf8_lossy(&job.spec))?;
                    let callback = match job.callback {
                        Some(callback) => self.new_text(&callback)?,
                        None => Value::None,
                    };
                    items.push(self.entry(&[
                        ("job_id", id),
                        ("spec", spec),
                        ("callback", callback),
                    ])?);
                }
                _ => {}
            }
        }
        self.new_list(items)
    }

    /// Calls a handler of the module as a transaction of `sender` would.
    fn mock_call(&mut self, function: &str, args: &Args) -> Result<Value, Fault> {
        let names = ["handler", "payload", "sender", "value"];
        let [handler, payload, sender, value] = self.parameters(args, function, names, 1)?;
        let handler = match handler {
            Some(Value::Text(id)) => {
                self.pay_copy(self.heap.str(id).len())?;
                Cow::Owned(self.heap.str(id).to_owned())
            }
            // A function of the module says its own name.
            Some(Value::Function(id)) => {
                let code = &self.program.functions[self.heap.function(id).code as usize];
                Cow::Borrowed(self.name(code.name))
            }
            _ => return failed("a handler is a function of the module, or its name"),
        };
        let payload = self.payload_in(payload)?;
        let sender = match sender {
            None | Some(Value::None) => self.host()?.sender,
            sender => self.address_in(sender, "sender")?,
        };
        let value = match value {
            None => Wei::ZERO,
            Some(value) => self.wei_in(value, "value")?,
        };
        let host = self.host()?;
        host.pay(sender, host.this, value)?;
        self.call_as(sender, value, &handler, &payload)
    }

    fn call_as(
        &mut self,
        sender: Address,
        value: Wei,
        handler: &str,
        payload: &[u8],
    ) -> Result<Value, Fault> {
        let host = self.host()?;
        let before = (host.sender, host.value);
        (host.sender, host.value) = (sender, value);
        let result = self.handle(handler, payload);
        let host = self.host()?;
        (host.sender, host.value) = before;
        result
    }

    /// A call that fails: the error's text. Nothing that it did is left.
    fn mock_fails(&mut self, function: &str, args: &Args) -> Result<Value, Fault> {
        // A copy of each is made, and dropped.
        let entries = self.host()?.asked.entries();
        self.meter.elements(4 * entries)?;
        let bytes = self.host()?.asked.bytes();
        self.meter.bytes(bytes)?;
        let host = self.host()?;
        let before = (host.asked.clone(), host.sender, host.value);
        let mark = self.mark();
        match self.mock_call(function, args) {
            Ok(_) => failed("this call was expected to fail and did not"),
            Err(fault) if is_ordinary(&fault) => {
                self.rewind(mark);
                let host = self.host()?;
                (host.asked, host.sender, host.value) = before;
                self.new_text(&fault.kind.to_string())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Timers that were asked for since, less those cancelled.
    fn note_timers(&mut self) -> Result<(), Fault> {
        let host = self.host()?;
        let Some(mock) = &mut host.mock else { return Ok(()) };
        // A call that failed took its effects with it.
        mock.seen = mock.seen.min(host.asked.effects.len());
        let (mut waiting, mut bytes) = (mock.timers.len(), 0);
        for effect in &host.asked.effects[mock.seen..] {
            match effect {
                Effect::ScheduleTimer { .. } => {
                    waiting += 1;
                    bytes += bytes_of(effect);
                }
                // It is looked for among all that wait, by the first bytes of ids.
                Effect::CancelTimer(_) | Effect::ExtendTimer { .. } => bytes += 8 * waiting,
                _ => {}
            }
        }
        self.pay_copy(bytes)?;
        let host = self.host()?;
        let Some(mock) = &mut host.mock else { return Ok(()) };
        for effect in &host.asked.effects[mock.seen..] {
            match effect {
                Effect::ScheduleTimer { id, timer } => mock.timers.push((*id, timer.clone())),
                Effect::CancelTimer(id) => mock.timers.retain(|(known, _)| known != id),
                Effect::ExtendTimer { id, expires_at } => {
                    for (_, timer) in mock.timers.iter_mut().filter(|(known, _)| known == id) {
                        timer.expires_at = Some(*expires_at);
                    }
                }
                _ => {}
            }
        }
        mock.seen = host.asked.effects.len();
        Ok(())
    }

    /// Goes on by blocks, and calls the handlers of timers that are due.
    fn mock_advance(&mut self, function: &str, args: &Args) -> Result<Value, Fault> {
        let [blocks] = self.parameters(args, function, ["blocks"], 0)?;
        let blocks = match blocks {
            None => 1,
            Some(blocks) => self.u64_in(blocks, "blocks")?,
        };
        if blocks > MAX_ADVANCE {
            return failed(format!("a test goes on by at most {MAX_ADVANCE} blocks at once"));
        }
        for _ in 0..blocks {
            self.meter.step(self.meter.schedule.step)?;
            self.note_timers()?;
            let waiting = self.host()?.mock.as_ref().map_or(0, |mock| mock.timers.len());
            self.meter.elements(waiting)?;
            let host = self.host()?;
            host.height = host.height.next();
            host.timestamp_ms += BLOCK_MS;
            let (height, this) = (host.height, host.this);
            let Some(mock) = &mut host.mock else { continue };
            mock.timers.retain(|(_, timer)| timer.expires_at.is_none_or(|at| height <= at));
            let is_due = |(_, timer): &mut (Hash, Timer)| timer.height <= height;
            let due: Vec<_> = mock.timers.extract_if(.., is_due).collect();
            for (_, timer) in due {
                self.pay_copy(timer.payload.len())?;
                let (handler, payload) = timer.call();
                self.call_as(this, Wei::ZERO, &handler, &payload)?;
            }
        }
        Ok(Value::Int(self.host()?.height.get() as i64))
    }
}
