//! The fate of due timers in the next block's lane, and the bids that their agents would make in
//! it.
//!
//! Both work on the newest state and change nothing. A page of due timers costs one pass over all
//! waiting timers; a quote costs the same plus one question, which the chain's own limit bounds.

use super::{
    actor,
    deferral::{Subject, explain},
    timer,
};
use crate::{
    api::{
        convert,
        error::ApiError,
        route::{Route, one},
        view::View,
    },
    storage::StoredLane,
    types::{
        AgentState, DUE_PAGE, DUE_PAGE_LIMIT, DeferralReason, DueFate, DueQuery, DueTimer,
        DueTimers, GbaContext, TimerQuote,
    },
};
use cowboy_engine::{
    chain::{self, EventKind, Fate, Outlook, Prospect, Quote, QuoteError, Unasked},
    primitives::{Hash, Height, InCby, Wei},
    timer::{Policy, Timer, lane::Prices},
};
use std::collections::BTreeSet;

pub(super) fn table() -> Vec<Route> {
    vec![
        one(
            "/v1/timers/due",
            "The timers due in the next block: rank, weight, reasons for waiting",
            |view: &View, (), query: DueQuery| list(view, &query),
        ),
        one(
            "/v1/timers/{timer}/bid",
            "The bid of a timer's agent for the next block, and the timer's rank with it",
            |view: &View, timer: String| bid(view, &timer),
        ),
    ]
}

fn list(view: &View, query: &DueQuery) -> Result<DueTimers, ApiError> {
    let actor = query.actor.as_deref().map(|text| actor::find(view, &view.state, text));
    let actor = actor.transpose()?.map(|(address, _)| address);
    let limit = query.limit.unwrap_or(DUE_PAGE).min(DUE_PAGE_LIMIT);
    let offset = query.offset.unwrap_or(0);
    let Outlook { height, prices, timers } = chain::outlook(&view.state, None);
    let (due, ranked) = (timers.len(), timers.iter().filter(|of| of.rank.is_some()).count());
    let newest = Newest::of(view)?;
    let mut wanted = timers.iter().filter(|of| actor.is_none_or(|actor| of.timer.actor == actor));
    let page: Vec<_> = wanted.by_ref().skip(offset).take(limit).collect();
    let next = (wanted.next().is_some() && limit > 0).then(|| (offset + page.len()) as u64);
    Ok(DueTimers {
        height: height.get(),
        policy: prices.policy.name().to_owned(),
        capacity: prices.room().cycles,
        cell_capacity: prices.room().cells,
        cycle_price: prices.cycle_price(Wei::ZERO).into(),
        due: due as u64,
        ranked: ranked as u64,
        timers: page.into_iter().map(|of| row(of, &prices, &newest)).collect(),
        next,
    })
}

/// The newest block's lane and events, which tell why timers did not fire in it.
struct Newest {
    height: Height,
    lane: Option<StoredLane>,
    /// Timers with an event that their agents gave no bid.
    unanswered: BTreeSet<Hash>,
}

impl Newest {
    fn of(view: &View) -> Result<Self, ApiError> {
        let height = view.head();
        let events = view.store().events_at(height)?;
        let unanswered = events.iter().filter_map(|stored| match &stored.event.kind {
            EventKind::GbaFailed(failed) => Some(failed.timer_id),
            _ => None,
        });
        let unanswered = unanswered.collect();
        Ok(Self { height, lane: view.store().lanes(height, height)?.pop(), unanswered })
    }

    fn reason(&self, timer: &Timer) -> Option<(DeferralReason, String)> {
        let lane = self.lane.filter(|_| timer.height <= self.height)?;
        let told = self.unanswered.contains(&timer.id).then_some(self.height);
        let unanswered = told.into_iter().collect();
        let subject = Subject { timer, lives: &[], clamps: &[], unanswered: &unanswered };
        let run = explain(&subject, &[lane]).pop()?;
        Some((run.reason, run.explanation))
    }
}

fn row(prospect: &Prospect, prices: &Prices, newest: &Newest) -> DueTimer {
    let timer = &prospect.timer;
    let (reason, explanation) = newest.reason(timer).unzip();
    DueTimer {
        timer_id: timer.id.into(),
        actor: timer.actor.into(),
        height: timer.height.get(),
        rank: prospect.rank,
        weight_per_mille: prospect.weight_per_mille,
        effective_tip: prospect.priority.map(Into::into),
        max_cost: prospect.max_cost.into(),
        agent: match (timer.gba, timer.bid) {
            (None, _) => AgentState::None,
            (Some(_), None) => AgentState::NotAsked,
            (Some(_), Some(bid)) if bid.failed => AgentState::Failed,
            (Some(_), Some(_)) => AgentState::Asked,
        },
        gba: timer.gba.map(Into::into),
        not_asked: prospect.unasked.map(unasked),
        reason,
        explanation,
        next: fate(prospect.fate),
        outlook: in_words(prospect, prices),
    }
}

const fn fate(fate: Fate) -> DueFate {
    match fate {
        Fate::Fires => DueFate::Fires,
        Fate::LaneFull { .. } => DueFate::LaneFull,
        Fate::Unfunded { .. } => DueFate::InsufficientFunds,
        Fate::PricedOut => DueFate::PricedOut,
        Fate::OverCap => DueFate::OverCap,
        Fate::Expired => DueFate::Expired,
    }
}

fn unasked(why: Unasked) -> String {
    let text = match why {
        Unasked::Policy => "under fifo no agent is asked",
        Unasked::NotDue => "the timer is not due in that block",
        Unasked::Expired => "the timer's time has passed",
        Unasked::OverCap => "the timer asks for more than a fire gets",
        Unasked::Payer => "the timer's payer cannot pay for the fire",
        Unasked::Owner => "the timer's owner cannot pay for the dearest question",
    };
    text.to_owned()
}

fn in_words(prospect: &Prospect, prices: &Prices) -> String {
    let (timer, room) = (&prospect.timer, prices.room());
    let (gas, cells, cap) = (timer.gas_limit, timer.cell_limit, prices.cap());
    match prospect.fate {
        Fate::Fires => "there is room for it if those before it use all they ask for".to_owned(),
        Fate::LaneFull { .. } if gas > room.cycles => {
            format!("it asks for {gas} cycles, and the lane has {} in all", room.cycles)
        }
        Fate::LaneFull { left } => format!(
            "if each fire uses all that it asks for, {} of {} cycles and {} of {} cells are left; \
             it asks for {gas} and {cells}",
            left.cycles, room.cycles, left.cells, room.cells
        ),
        Fate::Unfunded { has } => {
            let then = match prices.policy {
                Policy::GbaAuction if timer.promised.is_none() => "it waits for funds",
                _ => "it is removed",
            };
            let (has, cost) = (InCby(has), InCby(prospect.max_cost));
            format!("its payer has, or has promised, {has}, and the fire may cost {cost}: {then}")
        }
        Fate::PricedOut => {
            let (price, what) = match prices.policy {
                Policy::Eip1559 => (prices.basefee_lane, "the lane basefee"),
                Policy::Fifo | Policy::GbaAuction => (prices.basefee_cycle, "the cycle basefee"),
            };
            let bid = timer.bid.filter(|_| timer.gba.is_some());
            let cap = bid.map_or(timer.max_fee_per_cycle, |bid| bid.max_fee_per_cycle);
            format!("its cap of {cap} wei per cycle is below {what} of {price} wei")
        }
        Fate::OverCap if gas > cap => {
            let policy = prices.policy.name();
            format!("it asks for {gas} cycles, and under {policy} a fire gets at most {cap}")
        }
        Fate::OverCap => {
            format!("it asks for {cells} cells, and the lane has {} in all", room.cells)
        }
        Fate::Expired => format!("its time passed at {}: it is removed", timer.expires_at),
    }
}

fn bid(view: &View, text: &str) -> Result<TimerQuote, ApiError> {
    let stored = timer::find(view, text)?;
    let id = stored.timer.id;
    let quote = chain::quote(&view.state, &id).map_err(|error| {
        let what = error.to_string();
        match error {
            QuoteError::UnknownTimer(_) => ApiError::conflict(what)
                .hint(format!("see what became of it: cowboyctl timer show {id}")),
            QuoteError::NoAgent(_) => ApiError::conflict(what)
                .hint("schedule one with an agent: cowboyctl timer schedule ACTOR --gba AGENT"),
        }
    })?;
    let Quote { height, prices, gba, context, cycles, paid_cycles, cost, answer, .. } = quote;
    let Prospect { timer, weight_per_mille, priority, max_cost, rank, .. } = &quote.prospect;
    Ok(TimerQuote {
        timer_id: id.into(),
        actor: timer.actor.into(),
        gba: gba.into(),
        height: height.get(),
        policy: prices.policy.name().to_owned(),
        not_asked: quote.prospect.unasked.map(unasked),
        context: told(context),
        success: answer.is_ok(),
        error: answer.err().map(|error| error.to_string()),
        bid: convert::timer::bid(timer.bid.expect("a quote has the bid that counts")),
        cycles,
        paid_cycles,
        cost: cost.into(),
        cycle_price: prices.cycle_price(Wei::ZERO).into(),
        effective_tip: priority.map(Into::into),
        weight_per_mille: *weight_per_mille,
        rank: *rank,
        ranked: quote.ranked,
        max_cost: (*max_cost).into(),
        next: fate(quote.prospect.fate),
        outlook: in_words(&quote.prospect, &prices),
    })
}

fn told(context: [u128; 8]) -> GbaContext {
    let [trigger, current, cycle, cell, lane, usage, p50, balance] = context;
    let number = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
    let amount = |wide: u128| Wei::new(wide).into();
    GbaContext {
        trigger_block_height: number(trigger),
        current_block_height: number(current),
        basefee_cycle: amount(cycle),
        basefee_cell: amount(cell),
        basefee_lane_timer: amount(lane),
        last_block_cycle_usage: number(usage),
        previous_block_p50_priority_tip_per_cycle: amount(p50),
        owner_actor_balance: amount(balance),
    }
}
