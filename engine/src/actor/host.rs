//! The host of a machine: the chain that a call reads, and the effects that it asks for.

use super::{
    effect::{Call, Effect, Seed, World},
    error::{Fault, failed},
    testing::{Chain, Fired},
};
use crate::primitives::{Address, Height, Shortfall, Wei};
use std::collections::BTreeMap;

pub(super) enum Host<'a> {
    /// A module loads: there is no chain.
    Loading,
    /// A call, or a test.
    Call(Box<HostCall<'a>>),
}

impl Host<'_> {
    /// Whether a test has refused its input.
    pub(super) fn discarded(&self) -> bool {
        let Self::Call(call) = self else { return false };
        matches!(&call.around, Around::Test(mock) if mock.discarded)
    }
}

/// A call's view of the world, and its effects so far.
pub(super) struct HostCall<'a> {
    pub(super) around: Around<'a>,
    pub(super) sender: Address,
    pub(super) this: Address,
    pub(super) value: Wei,
    pub(super) height: Height,
    pub(super) timestamp_ms: u64,
    pub(super) seed: Seed,
    pub(super) asked: Asked,
}

pub(super) enum Around<'a> {
    /// The state before the call.
    World(&'a dyn World),
    /// The chain that a test controls.
    Test(Mock<'a>),
}

#[derive(Default)]
pub(super) struct Asked {
    /// Written values, by key; absent: removed.
    pub(super) state: BTreeMap<String, Option<Vec<u8>>>,
    /// Balances that the call's payments changed.
    pub(super) balances: BTreeMap<Address, Wei>,
    pub(super) effects: Vec<Effect>,
    pub(super) log: Vec<String>,
    /// Number of timers and jobs so far, which their ids depend on.
    pub(super) numbered: u64,
}

impl Asked {
    /// Logs and effects: writes first, by key, then the others in the order in which they were
    /// asked for.
    pub(super) fn finish(self) -> (Vec<String>, Vec<Effect>) {
        let Self { state, effects, log, .. } = self;
        let writes = state.into_iter().map(|(key, value)| Effect::SetState { key, value });
        (log, writes.chain(effects).collect())
    }
}

/// Length in bytes of the part of an effect that can be long.
pub(super) fn bytes_of(effect: &Effect) -> usize {
    match effect {
        Effect::Message { payload, .. } => payload.len(),
        Effect::Emit { data, .. } => data.len(),
        Effect::ScheduleTimer { timer, .. } => timer.payload.len(),
        Effect::SubmitJob { job, .. } => job.spec.len(),
        Effect::SetState { .. }
        | Effect::Transfer { .. }
        | Effect::CancelTimer(_)
        | Effect::ExtendTimer { .. } => 0,
    }
}

impl<'a> HostCall<'a> {
    pub(super) fn new(call: &Call<'_>, around: Around<'a>) -> Self {
        Self {
            around,
            sender: call.sender,
            this: call.this,
            value: call.value,
            height: call.height,
            timestamp_ms: call.timestamp_ms,
            seed: call.seed,
            asked: Asked::default(),
        }
    }

    pub(super) fn world(&self) -> &dyn World {
        match &self.around {
            Around::World(world) => *world,
            Around::Test(mock) => &*mock.chain,
        }
    }

    pub(super) fn balance(&self, account: &Address) -> Wei {
        let changed = self.asked.balances.get(account).copied();
        changed.unwrap_or_else(|| self.world().balance(account))
    }

    pub(super) fn set_balance(&mut self, account: Address, balance: Wei) {
        self.asked.balances.insert(account, balance);
    }

    pub(super) fn pay(&mut self, from: Address, to: Address, amount: Wei) -> Result<(), Fault> {
        let have = self.balance(&from);
        let Some(rest) = have.checked_sub(amount) else {
            let short = Shortfall { payer: from, need: amount, have };
            return failed(short.to_string());
        };
        self.set_balance(from, rest);
        match self.balance(&to).checked_add(amount) {
            Some(sum) => self.set_balance(to, sum),
            None => return failed("BalanceOverflow: the receiver would hold more than 2^128 wei"),
        }
        Ok(())
    }

    /// Logs, effects, and the timers of a test that fired or were removed.
    pub(super) fn finish(self) -> (Vec<String>, Vec<Effect>, Vec<Fired>) {
        let (since, effects) = self.asked.finish();
        match self.around {
            Around::World(_) => (since, effects, Vec::new()),
            Around::Test(mock) => {
                let (mut log, fires) = mock.finish();
                log.extend(since);
                (log, effects, fires)
            }
        }
    }
}

/// The chain of a test, and its history.
pub(super) struct Mock<'a> {
    pub(super) chain: &'a mut dyn Chain,
    /// Effects of the actor, except writes to its store.
    pub(super) effects: Vec<Effect>,
    pub(super) log: Vec<String>,
    pub(super) fires: Vec<Fired>,
    /// Whether the test has refused its input.
    pub(super) discarded: bool,
}

impl<'a> Mock<'a> {
    pub(super) fn new(chain: &'a mut dyn Chain) -> Self {
        Self { chain, effects: Vec::new(), log: Vec::new(), fires: Vec::new(), discarded: false }
    }

    /// Logged lines, and the timers that fired or were removed.
    pub(super) fn finish(self) -> (Vec<String>, Vec<Fired>) {
        (self.log, self.fires)
    }
}
