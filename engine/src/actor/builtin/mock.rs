//! `mock`: controls the chain that a test runs on, and shows what happened on it. All rules are the
//! chain's own: effects that a test asks for outside of calls become a call of its actor as soon as
//! the chain is used.

use super::{number::is_int, text::text_argument};
use crate::{
    actor::{
        effect::Effect,
        error::{ErrorKind, Fault, failed},
        eval::{Args, Machine},
        gas::Budget,
        host::{Around, Mock, bytes_of},
        syntax::BinOp,
        testing::{Ending, Fired, Ran, TestBid, TestCall, account, within},
        value::{Builtin, Value},
    },
    primitives::Wei,
};
use std::{borrow::Cow, cmp::Ordering, mem};

/// The maximum number of blocks that one `advance` adds.
const MAX_ADVANCE: u64 = 1_000_000;
/// Cycles that a test pays for a block: roughly the processor time of executing it.
const BLOCK_CYCLES: u64 = 400;
/// Bytes of effects that a function copies for the charge of its call; further bytes cost extra.
const PAID_BYTES: usize = 1024;

impl<'a> Machine<'a> {
    pub(super) fn mock_function(&mut self, function: Builtin, args: &Args) -> Result<Value, Fault> {
        let name = function.name();
        if !matches!(self.host()?.around, Around::Test(_)) {
            return failed(format!(
                "mock.{name} is available only in a test, not in a call of a handler"
            ));
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
                self.settle()?;
                self.mock()?.chain.fund(to, amount).or_else(failed)?;
                Ok(Value::None)
            }
            Builtin::MockDeploy => {
                let [of, source] = self.parameters(args, name, ["name", "source"], 2)?;
                let of = text_argument(of, name)?;
                let source = text_argument(source, name)?;
                self.meter.keccak(self.heap.str(of).len())?;
                self.meter.keccak(self.heap.str(source).len())?;
                self.settle()?;
                let (at, budget) = (account(self.heap.str(of)), self.left()?);
                let source = self.heap.str(source).to_owned();
                let ran = self.mock()?.chain.deploy(at, &source, budget);
                self.take(ran)?;
                self.address(at)
            }
            Builtin::MockPolicy => {
                let [policy] = self.parameters(args, name, [""], 1)?;
                let id = text_argument(policy, name)?;
                self.pay_copy(self.heap.str(id).len())?;
                let policy = self.heap.str(id).to_owned();
                self.settle()?;
                self.mock()?.chain.set_policy(&policy).or_else(failed)?;
                Ok(Value::None)
            }
            Builtin::MockCharge => {
                let [] = self.parameters(args, name, [], 0)?;
                self.settle()?;
                self.mock()?.chain.charge();
                Ok(Value::None)
            }
            Builtin::MockCall => {
                let ran = self.made(name, args)?;
                self.returned(ran)
            }
            Builtin::MockFails => self.mock_fails(name, args),
            Builtin::MockAdvance => self.mock_advance(name, args),
            Builtin::MockAssume => {
                let [condition] = self.parameters(args, name, ["condition"], 1)?;
                if condition.is_some_and(|condition| self.truth(condition)) {
                    return Ok(Value::None);
                }
                self.mock()?.discarded = true;
                failed("mock.assume: the condition is false")
            }
            Builtin::MockBound => self.mock_bound(name, args),
            Builtin::MockLog => {
                let lines = self.mock()?.log.len() + self.host()?.asked.log.len();
                self.meter.elements(4 * lines)?;
                let mut items = Vec::with_capacity(lines);
                for index in 0..lines {
                    let len = self.logged(index)?.len();
                    self.take_text(len)?;
                    let line = self.logged(index)?.clone();
                    items.push(self.paid_text(line));
                }
                self.new_list(items)
            }
            Builtin::MockTimers => self.mock_timers(),
            Builtin::MockFires => self.mock_fires(),
            _ => self.mock_effects(function),
        }
    }

    fn mock(&mut self) -> Result<&mut Mock<'a>, Fault> {
        match &mut self.host()?.around {
            Around::Test(mock) => Ok(mock),
            Around::World(_) => failed("mock is available only in a test"),
        }
    }

    /// A line of the log: first the chain's lines, then those that the test has written since.
    fn logged(&mut self, index: usize) -> Result<&String, Fault> {
        let before = self.mock()?.log.len();
        Ok(match index.checked_sub(before) {
            Some(since) => &self.host()?.asked.log[since],
            None => &self.mock()?.log[index],
        })
    }

    fn pay_copy(&mut self, bytes: usize) -> Result<(), Fault> {
        self.meter.bytes(bytes.saturating_sub(PAID_BYTES))
    }

    /// A dict of text keys.
    fn entry(&mut self, fields: &[(&str, Value)]) -> Result<Value, Fault> {
        let (dict, id) = self.new_dict()?;
        for (key, value) in fields {
            let key = self.new_text(key)?;
            self.dict_put(id, key, *value)?;
        }
        Ok(dict)
    }

    /// The budget for a call: the rest of the test's, up to what a block holds.
    fn left(&mut self) -> Result<Budget, Fault> {
        let (left, most) = (self.meter.budget_left(), self.mock()?.chain.most());
        Ok(Budget { cycles: left.cycles.min(most.cycles), cells: left.cells.min(most.cells) })
    }

    /// Has the chain apply the effects that the test itself asked for since the chain was last
    /// used.
    pub(in crate::actor) fn settle(&mut self) -> Result<(), Fault> {
        let budget = self.left()?;
        let asked = mem::take(&mut self.host()?.asked);
        let (log, effects) = asked.finish();
        let mock = self.mock()?;
        mock.log.extend(log);
        if effects.is_empty() {
            return Ok(());
        }
        let ran = mock.chain.apply(effects, budget);
        self.take(ran).map(drop)
    }

    /// Pays for a call on the chain and records its effects. Yields its return value as JSON.
    fn take(&mut self, ran: Ran) -> Result<Vec<u8>, Fault> {
        let mock = self.mock()?;
        mock.log.extend(ran.log);
        mock.effects.extend(ran.effects);
        self.meter.absorb(&ran.usage)?;
        ran.result.map_err(within)
    }

    fn returned(&mut self, ran: Ran) -> Result<Value, Fault> {
        let json = self.take(ran)?;
        match std::str::from_utf8(&json) {
            Ok(json) => self.decode_json(json),
            Err(_) => failed("the handler's return value is not JSON"),
        }
    }

    fn mock_timers(&mut self) -> Result<Value, Fault> {
        self.settle()?;
        let timers = self.mock()?.chain.timers();
        self.meter.elements(64 * timers.len())?;
        let mut items = Vec::with_capacity(timers.len());
        for timer in timers {
            self.pay_copy(timer.payload.len())?;
            let gba = match timer.gba {
                Some(gba) => self.address(gba)?,
                None => Value::None,
            };
            let fields = [
                ("timer_id", self.hash_value(timer.timer_id)?),
                ("actor", self.address(timer.actor)?),
                ("height", Value::Int(timer.height.get() as i64)),
                ("expires_at", Value::Int(timer.expires_at.get() as i64)),
                ("payload", self.text_of(&timer.payload)?),
                ("handler", self.new_text(&timer.handler)?),
                ("fee_payer", self.address(timer.fee_payer)?),
                ("gas_limit", Value::Int(timer.gas_limit as i64)),
                ("cell_limit", Value::Int(timer.cell_limit as i64)),
                ("max_fee_per_cycle", self.wei(timer.max_fee_per_cycle)?),
                ("max_priority_fee_per_cycle", self.wei(timer.max_priority_fee_per_cycle)?),
                ("gba", gba),
                ("bid", self.bid_value(timer.bid)?),
            ];
            items.push(self.entry(&fields)?);
        }
        self.new_list(items)
    }

    fn bid_value(&mut self, bid: Option<TestBid>) -> Result<Value, Fault> {
        let Some(TestBid { max_fee_per_cycle, max_priority_fee_per_cycle, failed }) = bid else {
            return Ok(Value::None);
        };
        let fields = [
            ("max_fee_per_cycle", self.wei(max_fee_per_cycle)?),
            ("max_priority_fee_per_cycle", self.wei(max_priority_fee_per_cycle)?),
            ("failed", Value::Bool(failed)),
        ];
        self.entry(&fields)
    }

    fn mock_fires(&mut self) -> Result<Value, Fault> {
        let count = self.mock()?.fires.len();
        self.meter.elements(64 * count)?;
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            let fired = &self.mock()?.fires[index];
            let bytes = fired.handler.len() + fired.error.len();
            self.pay_copy(bytes)?;
            let fired = self.mock()?.fires[index].clone();
            let fields = [
                ("timer_id", self.hash_value(fired.timer_id)?),
                ("actor", self.address(fired.actor)?),
                ("handler", self.new_text(&fired.handler)?),
                ("height", Value::Int(fired.height.get() as i64)),
                ("outcome", self.new_text(fired.ending.name())?),
                ("error", self.new_text(&fired.error)?),
                ("cycles", Value::Int(fired.cycles as i64)),
                ("cells", Value::Int(fired.cells as i64)),
                ("priority_per_cycle", self.wei(fired.priority_per_cycle)?),
                ("charged", self.wei(fired.charged)?),
                ("bid", self.bid_value(fired.bid)?),
            ];
            items.push(self.entry(&fields)?);
        }
        self.new_list(items)
    }

    fn mock_effects(&mut self, function: Builtin) -> Result<Value, Fault> {
        self.settle()?;
        let mut items = Vec::new();
        let count = self.mock()?.effects.len();
        for index in 0..count {
            self.meter.elements(1)?;
            let effect = &self.mock()?.effects[index];
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
            let effect = self.mock()?.effects[index].clone();
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
                (Builtin::MockJobs, Effect::SubmitJob { id, job, .. }) => {
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

    /// Makes a test's call of a handler of the module. A fault is the test's own, for example if it
    /// has too little budget left for the call.
    fn made(&mut self, function: &str, args: &Args) -> Result<Ran, Fault> {
        let names = ["handler", "payload", "sender", "value", "timer_allowance", "cycles", "cells"];
        let [handler, payload, sender, value, allowance, cycles, cells] =
            self.parameters(args, function, names, 1)?;
        let handler = match handler {
            Some(Value::Text(id)) => {
                self.pay_copy(self.heap.str(id).len())?;
                Cow::Owned(self.heap.str(id).to_owned())
            }
            // A function of the module has its own name.
            Some(Value::Function(id)) => {
                let code = &self.program.functions[self.heap.function(id).code as usize];
                Cow::Borrowed(self.name(code.name))
            }
            _ => return failed("a handler must be a function of the module, or its name"),
        };
        let handler = handler.into_owned();
        let payload = self.payload_bytes(payload)?;
        let sender = match sender {
            None | Some(Value::None) => self.host()?.sender,
            sender => self.address_in(sender, "sender")?,
        };
        let wei = |value: Option<Value>, what: &str| match value {
            None => Ok(Wei::ZERO),
            Some(value) => self.wei_in(value, what),
        };
        let value = wei(value, "value")?;
        let timer_allowance = wei(allowance, "timer_allowance")?;
        let most = |value: Option<Value>, what: &str| match value {
            None | Some(Value::None) => Ok(u64::MAX),
            Some(value) => self.u64_in(value, what),
        };
        let (cycles, cells) = (most(cycles, "cycles")?, most(cells, "cells")?);
        self.settle()?;
        let most = self.left()?;
        let budget = Budget { cycles: cycles.min(most.cycles), cells: cells.min(most.cells) };
        let call = TestCall { sender, handler, payload, value, timer_allowance };
        let mut ran = self.mock()?.chain.call(call, budget);
        let (whole, left) = (self.meter.budget(), self.meter.budget_left());
        if let Err(error) = &mut ran.result {
            match &mut error.kind {
                ErrorKind::OutOfCycles { limit, .. } if budget.cycles == left.cycles => {
                    *limit = whole.cycles;
                }
                ErrorKind::OutOfCells { limit, .. } if budget.cells == left.cells => {
                    *limit = whole.cells;
                }
                _ => return Ok(ran),
            }
            return Err(self.take(ran).expect_err("the call failed"));
        }
        Ok(ran)
    }

    /// A call that must fail. Returns the error's text; the call is undone.
    fn mock_fails(&mut self, function: &str, args: &Args) -> Result<Value, Fault> {
        let ran = self.made(function, args)?;
        match &ran.result {
            Ok(_) => failed("this call was expected to fail and did not"),
            Err(error) => {
                let text = error.kind.to_string();
                let ran = Ran { result: Ok(Vec::new()), ..ran };
                self.take(ran)?;
                self.new_text(&text)
            }
        }
    }

    /// An int within bounds: the int itself if it is, else counted on from the low bound.
    fn mock_bound(&mut self, function: &str, args: &Args) -> Result<Value, Fault> {
        let bounds = self.parameters(args, function, ["x", "low", "high"], 3)?;
        let [x, low, high] = bounds.map(|bound| bound.unwrap_or(Value::None));
        if let Some(other) = [x, low, high].into_iter().find(|value| !is_int(*value)) {
            return failed(format!("mock.bound takes ints, not {}", other.kind()));
        }
        if self.order(low, high)? == Some(Ordering::Greater) {
            let (low, high) = (self.shown(low)?, self.shown(high)?);
            return failed(format!("mock.bound: no int is from {low} to {high}"));
        }
        let is_below = self.order(x, low)? == Some(Ordering::Less);
        if !is_below && self.order(x, high)? != Some(Ordering::Greater) {
            return Ok(x);
        }
        let steps = self.binary(BinOp::Subtract, high, low)?;
        let count = self.binary(BinOp::Add, steps, Value::Int(1))?;
        let rest = self.binary(BinOp::Percent, x, count)?;
        self.binary(BinOp::Add, low, rest)
    }

    fn mock_advance(&mut self, function: &str, args: &Args) -> Result<Value, Fault> {
        let [blocks, may_fail] = self.parameters(args, function, ["blocks", "may_fail"], 0)?;
        let may_fail = super::flag(may_fail, function, "may_fail")?;
        let blocks = match blocks {
            None => 1,
            Some(blocks) => self.u64_in(blocks, "blocks")?,
        };
        if blocks > MAX_ADVANCE {
            return failed(format!("a test advances by at most {MAX_ADVANCE} blocks at once"));
        }
        self.settle()?;
        for _ in 0..blocks {
            self.meter.step(BLOCK_CYCLES)?;
            let mock = self.mock()?;
            let done = mock.chain.advance();
            let (height, timestamp_ms) = (mock.chain.height(), mock.chain.timestamp_ms());
            mock.log.extend(done.log);
            mock.effects.extend(done.effects);
            let failed_fire = done.fires.iter().find(|fired| fired.ending == Ending::Failed);
            let mut problem = failed_fire.map(|fired| {
                let Fired { handler, height, error, .. } = fired;
                format!("the timer that calls {handler} failed at {height}: {error}")
            });
            if let Some(error) = done.failed_callbacks.first() {
                problem.get_or_insert(format!("the callback of a job failed: {error}"));
            }
            mock.fires.extend(done.fires);
            let host = self.host()?;
            (host.height, host.timestamp_ms) = (height, timestamp_ms);
            self.meter.absorb(&done.usage)?;
            if let Some(problem) = problem.filter(|_| !may_fail) {
                return failed(problem);
            }
        }
        Ok(Value::Int(self.host()?.height.get() as i64))
    }
}
