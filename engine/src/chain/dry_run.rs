//! Calls of actors that change nothing: what a call would do, on any state.
//!
//! A dry run is the transition's own call on a fork of the state that is dropped. It stands in a
//! block of its own after the state's head: one higher, one millisecond later. What it lacks is a
//! transaction: it is not signed, pays no fee and has no nonce, and `randomness` is drawn as for a
//! transaction whose hash is zero.

use super::{
    event::EventKind,
    state::State,
    transition::{
        actors::{self, Delivery, Done, Failure, Place},
        agents,
    },
};
use crate::{
    actor::{self, Budget, Usage},
    primitives::{Address, Hash, Height, Wei},
    timer::{Ids, eip1559},
};

/// A call to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Who calls; need not be an account.
    pub sender: Address,
    /// The actor.
    pub actor: Address,
    /// The handler.
    pub handler: String,
    /// Its second argument.
    pub payload: Vec<u8>,
    /// What goes with it, from the sender's balance.
    pub value: Wei,
    /// What it may use beside the intrinsic part of a transaction.
    pub budget: Budget,
    /// What timers that it schedules may take from the sender.
    pub timer_allowance: Wei,
}

/// What a call would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRun {
    /// The height it saw.
    pub height: Height,
    /// What it used beside the intrinsic part of a transaction, however it ended.
    pub usage: Usage,
    /// What the handler returned, JSON; or why it fails.
    pub result: Result<Vec<u8>, Failure>,
    /// Lines of log with their actors, in order, kept on failure.
    pub log: Vec<(Address, String)>,
    /// Calls begun: its own and one per message.
    pub deliveries: u32,
    /// What happened; nothing on failure.
    pub events: Vec<EventKind>,
    /// What is stored differently, by actor and key; nothing on failure.
    pub changes: Vec<Change>,
}

/// A key of an actor's store, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The actor.
    pub actor: Address,
    /// The key.
    pub key: String,
    /// Its value before, JSON; absent: none.
    pub before: Option<Vec<u8>>,
    /// Its value after, JSON; absent: none.
    pub after: Option<Vec<u8>>,
}

/// What `trial` would do in the block after `state`'s head.
pub fn dry_run(state: &State, trial: &Trial) -> DryRun {
    let Trial { sender, actor, ref handler, ref payload, value, budget, timer_allowance } = *trial;
    let place = state.next_place(Hash::ZERO, Some(sender));
    let ids = Ids::of_transaction(state.account(&sender).nonce, Hash::ZERO, timer_allowance);
    let (handler, payload) = (handler.clone(), payload.clone());
    let mut after = state.clone();
    let first = Delivery { sender, to: actor, handler, payload, value };
    let Done { usage, result, log, deliveries, mut events, written, .. } =
        actors::call(&mut after, (&place, &ids), first, budget);
    let mut changes = Vec::new();
    if result.is_err() {
        events.clear();
    } else {
        changes.extend(written.into_iter().filter_map(|(actor, key)| {
            let stored = |state: &State| state.stored_at(&actor, &key).map(<[u8]>::to_vec);
            let (before, after) = (stored(state), stored(&after));
            (before != after).then_some(Change { actor, key, before, after })
        }));
    }
    DryRun { height: place.height, usage, result, log, deliveries, events, changes }
}

impl State {
    /// Where actors run in a block of its own after this state: one higher, one millisecond later.
    pub(super) fn next_place(&self, cause: Hash, sender: Option<Address>) -> Place {
        let height = self.height().next();
        Place {
            parent: self.head_hash(),
            height,
            timestamp_ms: self.head().timestamp_ms.saturating_add(1),
            cause,
            sender,
            terms: self.timer_terms(height),
            watched: false,
        }
    }
}

/// An agent's function to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTrial {
    /// Whose timer it is asked for: what it has is in the context.
    pub owner: Address,
    /// The agent.
    pub agent: Address,
    /// Fields of its context that are other than in the next block, in their order.
    pub given: [Option<u128>; 8],
}

/// What `getGasBid` of an agent would answer in the block after `state`'s head, within the limits
/// that the chain asks it under. A timer that is due in that block is asked for, unless the context
/// that is given says otherwise.
pub fn dry_run_agent(state: &State, trial: &AgentTrial) -> DryRun {
    let place = state.next_place(Hash::ZERO, None);
    let mut context = agents::context(state, &place, trial.owner, place.height);
    for (field, given) in context.iter_mut().zip(trial.given) {
        *field = given.unwrap_or(*field);
    }
    let parties = (trial.agent, trial.owner);
    let agents::Answer { usage, bid, .. } = agents::ask(state, &place, parties, &context);
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
        height: place.height,
        usage,
        result: bid.map(json).map_err(Failure::from),
        log: Vec::new(),
        deliveries: 1,
        events: Vec::new(),
        changes: Vec::new(),
    }
}
