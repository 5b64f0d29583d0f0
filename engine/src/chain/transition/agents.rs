//! Questions to gas bidding agents (CIP-1 §7.2; timers.md §4): read-only calls of `getGasBid`.
//!
//! The lane asks with the state that the current block has reached. A dry run of an agent asks in
//! the same way, with the state of the newest block.

use super::actors::{BlockContext, FailureKind, StateView};
use crate::{
    actor::{Budget, Call, ErrorKind, Usage},
    chain::{
        State,
        actors::{Actor, Language},
    },
    primitives::{Address, Height, Wei},
    timer::{BID_CYCLES, Bid, ScheduleTerms, eip1559},
};

/// The function through which an agent is asked (CIP-1 §7.2).
pub(in crate::chain) const HANDLER: &str = "getGasBid";
/// Maximum number of cycles for loading an agent's module, in addition to its answer.
const LOADING_CYCLES: u64 = 80_000;
pub(in crate::chain) const MOST_CYCLES: u64 = BID_CYCLES + LOADING_CYCLES;

#[derive(Debug)]
pub(in crate::chain) struct AgentAnswer {
    /// Usage, including loading the module.
    pub usage: Usage,
    pub bid: Result<eip1559::TxFeeParams, FailureKind>,
    /// The agent's record after the call, if it changed.
    pub called: Option<Actor>,
}

/// The context given to an agent, from the state before its call: the fields of `GBAContext` in
/// order.
pub(in crate::chain) fn context(
    state: &State,
    place: &BlockContext<'_>,
    owner: Address,
    trigger: Height,
) -> [u128; 8] {
    let terms = &place.terms;
    [
        u128::from(trigger.get()),
        u128::from(place.height.get()),
        terms.basefee_cycle.get(),
        terms.basefee_cell.get(),
        terms.lane_price.get(),
        u128::from(state.lane().last_cycles),
        terms.p50.get(),
        state.account(&owner).balance.get(),
    ]
}

/// Asks an agent for a bid for an owner's timer. A module that takes too long to load must first be
/// loaded by another call.
pub(in crate::chain) fn ask(
    state: &State,
    place: &BlockContext<'_>,
    (gba, owner): (Address, Address),
    context: &[u128; 8],
) -> AgentAnswer {
    let refused =
        |error: FailureKind| AgentAnswer { usage: Usage::default(), bid: Err(error), called: None };
    let Some(actor) = state.actor(&gba).copied() else {
        return refused(FailureKind::UnknownActor(gba));
    };
    let loading = actor.loading_at(place.height);
    if loading > LOADING_CYCLES {
        let what = format!(
            "NotLoaded: its module takes {loading} cycles to load, an agent gets at most \
             {LOADING_CYCLES}"
        );
        return refused(FailureKind::Actor(ErrorKind::Failed(what).into()));
    }
    let called = actor.called_at(place.height);
    let code = state.code(&actor.code).expect("an actor has code");
    if code.language() == Language::Python {
        let what = "NotAnAgent: an actor in Python gives no bids";
        return refused(FailureKind::Actor(ErrorKind::Failed(what.to_owned()).into()));
    }
    let params = &state.params().actors;
    let module = match code.module(params) {
        Ok(module) => module,
        Err(error) => {
            let error = FailureKind::Actor(error.clone());
            return AgentAnswer { called, ..refused(error) };
        }
    };
    let call = Call {
        handler: HANDLER,
        payload: &[],
        sender: owner,
        this: gba,
        value: Wei::ZERO,
        height: place.height,
        timestamp_ms: place.timestamp_ms,
        seed: place.seed(0),
    };
    let seen =
        StateView { state, actor: gba, height: place.height, seed: place.seed(0), asking: None };
    // Cells bound the log, which is not kept.
    let budget = Budget { cycles: BID_CYCLES, cells: BID_CYCLES };
    let (mut usage, bid) = module.bid(params, context, &call, &seen, budget);
    usage.loading = usage.loading.saturating_add(loading);
    let bid = bid.map_err(FailureKind::Actor).map(|fields| {
        let [max_fee_per_cycle, max_priority_fee_per_cycle, max_fee_per_cell, max_priority] =
            fields.map(Wei::new);
        eip1559::TxFeeParams {
            max_fee_per_cycle,
            max_priority_fee_per_cycle,
            max_fee_per_cell,
            max_priority_fee_per_cell: max_priority,
        }
    });
    AgentAnswer { usage, bid, called }
}

pub(in crate::chain) fn default_bid(terms: &ScheduleTerms) -> eip1559::TxFeeParams {
    eip1559::default_bid(terms.lane_price, terms.basefee_cell, terms.p50)
}

/// The part of a bid that a timer stores.
pub(in crate::chain) const fn bid(bid: &eip1559::TxFeeParams, failed: bool) -> Bid {
    Bid {
        max_fee_per_cycle: bid.max_fee_per_cycle,
        max_priority_fee_per_cycle: bid.max_priority_fee_per_cycle,
        failed,
    }
}
