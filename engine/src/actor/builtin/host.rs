//! `pvm_host`: reads of the chain, and effects that a call asks for (CIP-1 §6).
//!
//! Keys and values of the store, data of events and specs of jobs are JSON; amounts are wei;
//! addresses, ids and hashes are 0x-hex.

use super::text::text_argument;
use crate::{
    actor::{
        effect::{EVENT_BYTES, Effect, JobRequest, TimerCall},
        error::{Fault, failed},
        eval::{Args, Machine},
        gas::{Cause, Meter},
        host::{Host, HostCall},
        value::{Builtin, Value, known},
    },
    primitives::{Address, Hash, Height, Wei, keccak256},
};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// The longest name of a handler or event, in bytes (timers.md §1).
const MAX_NAME: u64 = 256;

impl<'a> Machine<'a> {
    pub(in crate::actor) fn host(&mut self) -> Result<&mut HostCall<'a>, Fault> {
        match &mut self.host {
            Host::Call(call) => Ok(call),
            Host::Loading => {
                failed("there is no host while the module loads: call it in a function")
            }
        }
    }

    /// An attribute of `ctx`.
    pub(in crate::actor) fn context(&mut self, name: &str) -> Result<Option<Value>, Fault> {
        let left = self.meter.cycles_left();
        let host = self.host()?;
        Ok(Some(match name {
            "height" => Value::Int(host.height.get() as i64),
            "timestamp_ms" => Value::Int(host.timestamp_ms as i64),
            "sender" => {
                let sender = host.sender;
                self.address(sender)?
            }
            "value" => {
                let value = host.value;
                self.wei(value)?
            }
            "self" => {
                let this = host.this;
                self.address(this)?
            }
            "cycles_left" => Value::Int(i64::try_from(left).unwrap_or(i64::MAX)),
            _ => return Ok(None),
        }))
    }

    pub(super) fn address(&mut self, address: Address) -> Result<Value, Fault> {
        self.new_text(&address.to_string())
    }

    pub(super) fn hash_value(&mut self, hash: Hash) -> Result<Value, Fault> {
        self.new_text(&hash.to_string())
    }

    pub(super) fn wei(&mut self, amount: Wei) -> Result<Value, Fault> {
        self.new_integer(BigInt::from(amount.get()))
    }

    pub(super) fn address_in(&self, value: Option<Value>, what: &str) -> Result<Address, Fault> {
        // The error of an invalid address contains the text, so the length is checked first.
        if let Some(Value::Text(id)) = value
            && self.heap.str(id).len() == "0x".len() + 2 * size_of::<Address>()
            && let Ok(address) = self.heap.str(id).parse()
        {
            return Ok(address);
        }
        failed(format!("{what} must be an address: a string of 0x and 40 hex digits"))
    }

    fn hash_in(&self, value: Option<Value>, what: &str) -> Result<Hash, Fault> {
        if let Some(Value::Text(id)) = value {
            let digits = self.heap.str(id).strip_prefix("0x");
            let mut hash = [0; 32];
            if digits.is_some_and(|digits| hex::decode_to_slice(digits, &mut hash).is_ok()) {
                return Ok(Hash(hash));
            }
        }
        failed(format!("{what} must be a string of 0x and 64 hex digits"))
    }

    pub(super) fn wei_in(&self, value: Value, what: &str) -> Result<Wei, Fault> {
        match self.heap.big(value).and_then(|int| int.to_u128()) {
            Some(wei) => Ok(Wei::new(wei)),
            None => failed(format!("{what} must be an amount in wei: an int from 0 to 2^128 - 1")),
        }
    }

    pub(super) fn u64_in(&self, value: Value, what: &str) -> Result<u64, Fault> {
        match self.heap.big(value).and_then(|int| int.to_u64()) {
            Some(int) => Ok(int),
            None => failed(format!("{what} must be an int from 0 to 2^64 - 1")),
        }
    }

    fn name_in(&mut self, value: Option<Value>, what: &'static str) -> Result<String, Fault> {
        if let Some(Value::Text(id)) = value {
            Meter::fits(what, self.heap.str(id).len() as u64, MAX_NAME)?;
        }
        self.long_name_in(value, what)
    }

    /// A name of any length: the chain checks its limit.
    fn long_name_in(&mut self, value: Option<Value>, what: &str) -> Result<String, Fault> {
        let Some(Value::Text(id)) = value else {
            return failed(format!("{what} must be a string"));
        };
        let len = self.heap.str(id).len();
        self.meter.bytes(len)?;
        if len == 0 {
            return failed(format!("{what} must not be empty"));
        }
        Ok(self.heap.str(id).to_owned())
    }

    fn key_in(&mut self, value: Option<Value>) -> Result<String, Fault> {
        let Some(Value::Text(id)) = value else {
            return failed("a key of the store must be a string");
        };
        let len = self.heap.str(id).len();
        Meter::fits("a key of the store", len as u64, self.meter.limits.key)?;
        self.meter.bytes(len)?;
        Ok(self.heap.str(id).to_owned())
    }

    /// The payload for a handler: text as is, any other value as JSON.
    fn payload_in(&mut self, value: Option<Value>) -> Result<Vec<u8>, Fault> {
        let payload = self.payload_bytes(value)?;
        Meter::fits("a payload", payload.len() as u64, self.meter.limits.value)?;
        Ok(payload)
    }

    /// The same without a limit: the chain checks it.
    pub(super) fn payload_bytes(&mut self, value: Option<Value>) -> Result<Vec<u8>, Fault> {
        let payload = match value {
            None => Vec::new(),
            Some(Value::Text(id)) => {
                let len = self.heap.str(id).len();
                self.meter.bytes(len)?;
                self.heap.str(id).as_bytes().to_vec()
            }
            Some(other) => self.encoded(other)?.into_bytes(),
        };
        // The payload is kept until the call ends.
        self.meter.alloc(payload.len() as u64)?;
        Ok(payload)
    }

    fn ask(&mut self, effect: Effect) -> Result<(), Fault> {
        let limit = self.meter.limits.effects;
        let effects = &mut self.host()?.asked.effects;
        if effects.len() as u64 >= limit {
            return failed(format!("a call has at most {limit} effects"));
        }
        effects.push(effect);
        Ok(())
    }

    pub(in crate::actor) fn log_line(&mut self, line: String) -> Result<(), Fault> {
        self.meter.pay(Cause::Effects, self.meter.schedule.emit)?;
        // While a module loads there is no log to write to.
        if let Host::Call(_) = self.host {
            self.meter.cells(line.len())?;
            let limit = self.meter.limits.effects;
            let log = &mut self.host()?.asked.log;
            if log.len() as u64 >= limit {
                return failed(format!("a call logs at most {limit} lines"));
            }
            log.push(line);
        }
        Ok(())
    }

    pub(super) fn keccak256(&mut self, args: &Args) -> Result<Value, Fault> {
        let [data] = self.parameters(args, "keccak256", [""], 1)?;
        let id = text_argument(data, "keccak256")?;
        let text = self.heap.str(id);
        self.meter.keccak(text.len())?;
        self.meter.text(text.len())?;
        let hash = match text.strip_prefix("0x").map(hex::decode) {
            Some(Ok(bytes)) => keccak256(&[&bytes]),
            _ => keccak256(&[text.as_bytes()]),
        };
        self.hash_value(hash)
    }

    pub(super) fn host_function(&mut self, function: Builtin, args: &Args) -> Result<Value, Fault> {
        self.host()?;
        let (name, schedule) = (function.name(), self.meter.schedule);
        match function {
            Builtin::GetState => {
                let [key, default] = self.parameters(args, name, ["key", "default"], 1)?;
                let key = self.key_in(key)?;
                self.meter.pay(Cause::Storage, schedule.storage_read)?;
                let host = self.host()?;
                let len = match host.asked.state.get(&key) {
                    Some(written) => written.as_ref().map(Vec::len),
                    None => host.world().state_len(&key),
                };
                let Some(len) = len else { return Ok(default.unwrap_or(Value::None)) };
                self.meter.bytes(len)?;
                let host = self.host()?;
                let stored = match host.asked.state.get(&key) {
                    Some(written) => written.clone(),
                    None => host.world().state(&key),
                };
                match std::str::from_utf8(&stored.unwrap_or_default()) {
                    Ok(json) => self.decode_json(json),
                    Err(_) => failed("the stored value is not JSON"),
                }
            }
            Builtin::SetState => {
                let [key, value] = self.parameters(args, name, ["key", "value"], 2)?;
                let key = self.key_in(key)?;
                self.meter.pay(Cause::Storage, schedule.storage_write)?;
                let value = self.encoded(value.unwrap_or(Value::None))?.into_bytes();
                Meter::fits("a value of the store", value.len() as u64, self.meter.limits.value)?;
                self.meter.cells(key.len() + value.len())?;
                self.host()?.asked.state.insert(key, Some(value));
                Ok(Value::None)
            }
            Builtin::DeleteState => {
                let [key] = self.parameters(args, name, ["key"], 1)?;
                let key = self.key_in(key)?;
                self.meter.pay(Cause::Storage, schedule.storage_write)?;
                self.host()?.asked.state.insert(key, None);
                Ok(Value::None)
            }
            Builtin::GetBalance => {
                let [account] = self.parameters(args, name, ["account"], 0)?;
                self.meter.pay(Cause::Storage, schedule.storage_read)?;
                let account = match account {
                    None | Some(Value::None) => self.host()?.this,
                    account => self.address_in(account, "account")?,
                };
                let balance = self.host()?.balance(&account);
                self.wei(balance)
            }
            Builtin::Transfer => {
                let [to, amount] = self.parameters(args, name, ["to", "amount"], 2)?;
                let to = self.address_in(to, "to")?;
                let amount = self.wei_in(amount.unwrap_or(Value::None), "amount")?;
                self.meter.pay(Cause::Effects, schedule.message)?;
                self.meter.cells(EVENT_BYTES)?;
                let host = self.host()?;
                host.pay(host.this, to, amount)?;
                self.ask(Effect::Transfer { to, amount })?;
                Ok(Value::None)
            }
            Builtin::SendMessage => {
                let names = ["to", "handler", "payload", "value"];
                let [to, handler, payload, value] = self.parameters(args, name, names, 2)?;
                let to = self.address_in(to, "to")?;
                let handler = self.name_in(handler, "a handler's name")?;
                self.meter.pay(Cause::Effects, schedule.message)?;
                self.meter.cells(EVENT_BYTES + handler.len())?;
                let payload = self.payload_in(payload)?;
                let value = match value {
                    None => Wei::ZERO,
                    Some(value) => self.wei_in(value, "value")?,
                };
                let host = self.host()?;
                host.pay(host.this, to, value)?;
                self.ask(Effect::Message { to, handler, payload, value })?;
                Ok(Value::None)
            }
            Builtin::Emit => {
                let [event, data] = self.parameters(args, name, ["name", "data"], 1)?;
                let event = self.name_in(event, "an event's name")?;
                self.meter.pay(Cause::Effects, schedule.emit)?;
                let data = self.encoded(data.unwrap_or(Value::None))?.into_bytes();
                self.meter.cells(event.len() + data.len())?;
                self.ask(Effect::Emit { name: event, data })?;
                Ok(Value::None)
            }
            Builtin::Log => self.print(args),
            Builtin::GetBlockHeight => {
                let [] = self.parameters(args, name, [], 0)?;
                Ok(Value::Int(self.host()?.height.get() as i64))
            }
            Builtin::GetTimestampMs => {
                let [] = self.parameters(args, name, [], 0)?;
                Ok(Value::Int(self.host()?.timestamp_ms as i64))
            }
            Builtin::Randomness => {
                let [domain] = self.parameters(args, name, ["domain"], 0)?;
                let domain = match domain {
                    None => None,
                    domain => Some(text_argument(domain, name)?),
                };
                let seed = self.host()?.seed.hash();
                let domain = domain.map_or("", |id| self.heap.str(id));
                self.meter.keccak(32 + domain.len())?;
                let drawn = keccak256(&[&seed.0, domain.as_bytes()]);
                self.hash_value(drawn)
            }
            Builtin::GetMru => {
                let [kind, submitter] = self.parameters(args, name, ["kind", "submitter"], 1)?;
                let kind = self.name_in(kind, "a kind of job")?;
                self.meter.pay(Cause::Storage, schedule.storage_read)?;
                let submitter = match submitter {
                    None | Some(Value::None) => self.host()?.this,
                    submitter => self.address_in(submitter, "submitter")?,
                };
                match self.host()?.world().mru(&submitter, &kind) {
                    Some(runner) => self.address(runner),
                    None => Ok(Value::None),
                }
            }
            Builtin::ScheduleTimer | Builtin::ScheduleTimerEx => {
                self.schedule_timer(function, args)
            }
            Builtin::SetTimeout => self.set_timeout(args),
            Builtin::CancelTimer => {
                let [id] = self.parameters(args, name, ["timer_id"], 1)?;
                let id = self.hash_in(id, "timer_id")?;
                self.meter.pay(Cause::Effects, schedule.timer)?;
                self.ask(Effect::CancelTimer(id))?;
                Ok(Value::None)
            }
            Builtin::ExtendTimer => {
                let [id, until] = self.parameters(args, name, ["timer_id", "expires_at"], 2)?;
                let id = self.hash_in(id, "timer_id")?;
                let expires_at = self.u64_in(until.unwrap_or(Value::None), "expires_at")?;
                self.meter.pay(Cause::Effects, schedule.timer)?;
                self.ask(Effect::ExtendTimer { id, expires_at: Height::new(expires_at) })?;
                Ok(Value::None)
            }
            Builtin::SubmitJob => {
                let [spec, callback] = self.parameters(args, name, ["spec", "callback"], 1)?;
                self.meter.pay(Cause::Effects, schedule.job)?;
                let spec = self.encoded(spec.unwrap_or(Value::None))?.into_bytes();
                Meter::fits("a job's spec", spec.len() as u64, self.meter.limits.value)?;
                self.meter.cells(spec.len())?;
                let callback = match callback {
                    None | Some(Value::None) => None,
                    callback => Some(self.name_in(callback, "a handler's name")?),
                };
                let job = JobRequest { spec, callback };
                // The id is a hash of the job.
                self.meter.keccak(job.spec.len())?;
                let host = self.host()?;
                let numbered = host.world().job(&job, host.asked.numbered);
                let (id, nonce) = numbered.or_else(failed)?;
                host.asked.numbered += 1;
                self.ask(Effect::SubmitJob { id, nonce, job })?;
                self.hash_value(id)
            }
            other => unreachable!("{} is not of the host", other.name()),
        }
    }

    /// Both names take the same arguments: earlier chains named the longer form
    /// `schedule_timer_ex`.
    fn schedule_timer(&mut self, function: Builtin, args: &Args) -> Result<Value, Fault> {
        let names = [
            "height",
            "payload",
            "fee_payer",
            "gas_limit",
            "expires_at",
            "max_fee_per_cycle",
            "max_priority_fee_per_cycle",
            "handler",
            "gba",
            "priority_tier_hint",
            "bid",
            "cell_limit",
        ];
        let [height, payload, payer, gas, expires, fee, priority, handler, gba, tier, bid, cells] =
            self.parameters(args, function.name(), names, 2)?
                .map(|value| value.filter(|value| *value != Value::None));
        self.meter.pay(Cause::Effects, self.meter.schedule.timer)?;
        let payload = self.payload_bytes(payload)?;
        let u64_of = |value: Option<Value>, what: &str| {
            value.map(|value| self.u64_in(value, what)).transpose()
        };
        let wei_of = |value: Option<Value>, what: &str| {
            value.map(|value| self.wei_in(value, what)).transpose()
        };
        let address_of = |value: Option<Value>, what: &str| {
            value.map(|value| self.address_in(Some(value), what)).transpose()
        };
        let height = u64_of(height, "height")?.unwrap_or_default();
        let (gas_limit, expires_at) = (u64_of(gas, "gas_limit")?, u64_of(expires, "expires_at")?);
        let cell_limit = u64_of(cells, "cell_limit")?;
        let max_fee_per_cycle = wei_of(fee, "max_fee_per_cycle")?;
        let max_priority_fee_per_cycle = wei_of(priority, "max_priority_fee_per_cycle")?;
        let (fee_payer, gba) = (address_of(payer, "fee_payer")?, address_of(gba, "gba")?);
        let handler = handler
            .map(|handler| self.long_name_in(Some(handler), "a handler's name"))
            .transpose()?;
        let tier = tier.map(|tier| self.name_in(Some(tier), "a priority tier")).transpose()?;
        let timer = TimerCall {
            height: Height::new(height),
            payload,
            handler,
            fee_payer,
            gas_limit,
            cell_limit,
            expires_at: expires_at.map(Height::new),
            max_fee_per_cycle,
            max_priority_fee_per_cycle,
            gba,
            tier,
            bid: bid.is_some(),
        };
        self.ask_for_timer(timer)
    }

    /// A timer `blocks` blocks from now, priced by an agent, which is required (the original CIP-1
    /// §3, step 6).
    fn set_timeout(&mut self, args: &Args) -> Result<Value, Fault> {
        let names =
            ["blocks", "gba", "payload", "handler", "gas_limit", "cell_limit", "expires_at"];
        let [blocks, gba, payload, handler, gas, cells, expires] = self
            .parameters(args, "set_timeout", names, 2)?
            .map(|value| value.filter(|value| *value != Value::None));
        self.meter.pay(Cause::Effects, self.meter.schedule.timer)?;
        let payload = self.payload_bytes(payload)?;
        let u64_of = |value: Option<Value>, what: &str| {
            value.map(|value| self.u64_in(value, what)).transpose()
        };
        let blocks = self.u64_in(blocks.unwrap_or(Value::None), "blocks")?;
        let (gas_limit, cell_limit) = (u64_of(gas, "gas_limit")?, u64_of(cells, "cell_limit")?);
        let expires_at = u64_of(expires, "expires_at")?.map(Height::new);
        if gba.is_none() {
            return failed("set_timeout needs the agent that bids for the timer: gba");
        }
        let gba = self.address_in(gba, "gba")?;
        let handler = handler
            .map(|handler| self.long_name_in(Some(handler), "a handler's name"))
            .transpose()?;
        let timer = TimerCall {
            height: self.host()?.height.after(blocks),
            payload,
            handler,
            fee_payer: None,
            gas_limit,
            cell_limit,
            expires_at,
            max_fee_per_cycle: None,
            max_priority_fee_per_cycle: None,
            gba: Some(gba),
            tier: None,
            bid: false,
        };
        self.ask_for_timer(timer)
    }

    fn ask_for_timer(&mut self, timer: TimerCall) -> Result<Value, Fault> {
        // The id is a hash of the timer.
        self.meter.keccak(timer.payload.len())?;
        let host = self.host()?;
        let id = host.world().timer(&timer, host.asked.numbered);
        let id = id.or_else(failed)?;
        host.asked.numbered += 1;
        self.meter.cells(timer.payload.len())?;
        self.ask(Effect::ScheduleTimer { id, timer })?;
        self.hash_value(id)
    }

    pub(in crate::actor) fn amount(&self, value: Value) -> Result<u128, Fault> {
        self.wei_in(value, "each field of a bid").map(Wei::get)
    }

    /// The context for a gas bidding agent: amounts and heights in the order of the fields.
    pub(in crate::actor) fn gba_context(&mut self, fields: &[u128; 8]) -> Result<Value, Fault> {
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            values.push(self.new_integer(BigInt::from(*field))?);
        }
        let Value::RecordType(of) = self.as_seen(Value::RecordType(known::GBA_CONTEXT)) else {
            unreachable!("it is a record type")
        };
        self.known_record(of, values)
    }
}
