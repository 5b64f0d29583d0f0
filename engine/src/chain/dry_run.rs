//! Dry runs: what a call of an actor would do on any state, without changing it.
//!
//! A dry run executes the transition's own call on a fork of the state, which is then dropped. It
//! runs in a block of its own after the state's head: one higher, one millisecond later. It has no
//! transaction, so nothing is signed, no fee is paid and no nonce is used; `randomness` is drawn as
//! for a transaction whose hash is zero.

pub use super::transition::actors::{StoreChange, Traced, TracedCall};

use super::{
    actors::{Language, StoreKey},
    event::EventKind,
    state::State,
    transition::{
        actors::{self, ActorEffects, BlockContext, CallFailure, PendingCall},
        agents,
    },
};
use crate::{
    actor::{self, Budget, Usage},
    primitives::{Address, Hash, Height, Wei},
    pvm::Pvm,
    timer::{Ids, eip1559},
};

/// A call to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The caller; need not be an account.
    pub sender: Address,
    pub actor: Address,
    pub handler: String,
    pub payload: Vec<u8>,
    /// Paid to the actor from the sender's balance.
    pub value: Wei,
    /// The budget on top of the intrinsic part of a transaction.
    pub budget: Budget,
    /// The most that timers scheduled by the call may take from the sender.
    pub timer_allowance: Wei,
    pub traced: Traced,
    /// Code to run in place of the actor's own, in the actor's language, as if it had been put
    /// there before. All else of the actor stays, `init` does not run, and loading the code is not
    /// part of the usage, except where every call loads it. `None` is the actor's own.
    pub code: Option<String>,
}

/// The outcome of a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRun {
    pub height: Height,
    /// Usage on top of the intrinsic part of a transaction, whether or not the call succeeded.
    pub usage: Usage,
    /// The language of the actor.
    pub language: Language,
    /// The handler's return value as JSON, or any bytes in Python, or why it failed.
    pub result: Result<Vec<u8>, CallFailure>,
    /// Log lines with their actors, in order; kept on failure.
    pub log: Vec<(Address, String)>,
    /// Number of calls begun: the first one and one per message.
    pub deliveries: u32,
    /// Empty on failure.
    pub events: Vec<EventKind>,
    /// Changes to stores, by actor and key; empty on failure.
    pub changes: Vec<StoreChange>,
    /// Every call, in the order in which they began, if the trial traces them; kept on failure.
    pub calls: Vec<TracedCall>,
}

/// Executes `trial` in the block after `state`'s head, without a machine for actors in Python.
pub fn dry_run(state: &State, trial: &Trial) -> DryRun {
    dry_run_on(None, state, trial)
}

/// Executes `trial` in the block after `state`'s head. `pvm` runs actors in Python.
pub fn dry_run_on(pvm: Option<&dyn Pvm>, state: &State, trial: &Trial) -> DryRun {
    let Trial {
        sender,
        actor,
        ref handler,
        ref payload,
        value,
        budget,
        timer_allowance,
        traced,
        ref code,
    } = *trial;
    let place = BlockContext { traced, ..state.next_place(pvm, Hash::ZERO, Some(sender)) };
    let ids = Ids::of_transaction(state.account(&sender).nonce, Hash::ZERO, timer_allowance);
    let (handler, payload) = (handler.clone(), payload.clone());
    let mut after = state.clone();
    let first = PendingCall { sender, to: actor, handler, payload, value };
    let ActorEffects {
        usage, language, result, log, deliveries, mut events, written, calls, ..
    } = actors::call_on_code(&mut after, (&place, &ids), code.as_deref(), first, budget);
    let mut changes = Vec::new();
    if result.is_err() {
        events.clear();
    } else {
        let change =
            |(actor, key): &(Address, StoreKey)| StoreChange::between(state, &after, *actor, key);
        changes.extend(written.iter().filter_map(change));
    }
    let height = place.height;
    DryRun { height, usage, language, result, log, deliveries, events, changes, calls }
}

impl State {
    /// Where actors run in a block of its own after this state: one higher, one millisecond later.
    pub(super) fn next_place<'a>(
        &self,
        pvm: Option<&'a dyn Pvm>,
        cause: Hash,
        sender: Option<Address>,
    ) -> BlockContext<'a> {
        let height = self.height().next();
        BlockContext {
            parent: self.head_hash(),
            height,
            timestamp_ms: self.head().timestamp_ms.saturating_add(1),
            cause,
            sender,
            terms: self.timer_terms(height),
            pvm,
            watched: false,
            traced: Traced::Nothing,
        }
    }
}

/// A trial call of a gas bidding agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTrial {
    /// The owner of the timer that the agent bids for; the context describes it.
    pub owner: Address,
    pub agent: Address,
    /// Overrides of context fields, in the order of the fields; `None` keeps the next block's
    /// value.
    pub given: [Option<u128>; 8],
}

/// Calls `getGasBid` of an agent in the block after `state`'s head, within the limits that the
/// chain sets. The timer is taken to be due in that block, unless the given context says otherwise.
pub fn dry_run_agent(state: &State, trial: &AgentTrial) -> DryRun {
    let place = state.next_place(None, Hash::ZERO, None);
    let mut context = agents::context(state, &place, trial.owner, place.height);
    for (field, given) in context.iter_mut().zip(trial.given) {
        *field = given.unwrap_or(*field);
    }
    let parties = (trial.agent, trial.owner);
    let agents::AgentAnswer { usage, bid, .. } = agents::ask(state, &place, parties, &context);
    let json = |bid: eip1559::TxFeeParams| {
        let values = [
            bid.max_fee_per_cycle,
            bid.max_priority_fee_per_cycle,
            bid.max_fee_per_cell,
            bid.max_priority_fee_per_cell,
        ];
        let fields = actor::TX_FEE_PARAMS_FIELDS.iter().zip(values);
        let fields: Vec<_> =
            fields.map(|(name, value)| format!("\"{name}\":{}", value.get())).collect();
        format!("{{{}}}", fields.join(",")).into_bytes()
    };
    DryRun {
        language: Language::Starlark,
        height: place.height,
        usage,
        result: bid.map(json).map_err(CallFailure::from),
        log: Vec::new(),
        deliveries: 1,
        events: Vec::new(),
        changes: Vec::new(),
        calls: Vec::new(),
    }
}
