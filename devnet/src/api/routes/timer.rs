//! Timers, the lane in which they fire, and the parameters that govern them.
//!
//! Lists are answered from the store, which has an index for each, so that their cost is
//! proportional to their length. Counts come from the calendar. No list reads a payload.

use super::{
    actor,
    deferral::{self, Clamp, Subject},
};
use crate::{
    api::{
        convert,
        error::{ApiError, shown},
        ids,
        route::{Route, many, one},
        view::View,
    },
    storage::{StoredEvent, StoredTimer, TimerEnd, TimerFilter},
    topology::field_of,
    types::{
        Bytes, Deferral, Fairness, FairnessMember, GovernedParameter, LANE_PAGE, LANE_PAGE_LIMIT,
        LaneBlock, LaneQuery, NamedKind, PendingSetting, Setting, TIMER_PAGE, TIMER_PAGE_LIMIT,
        Text, Timer, TimerQuery, TimerQueue, TimerStatus, TimerSummary,
    },
};
use cowboy_engine::{
    chain::{
        EventKind, Fire,
        event::{TimerCancelled, TimerExtended, TimerGasClamped, TimerScheduled},
        outlook::per_mille,
    },
    job::SeedRule,
    presence::Phase,
    primitives::{Address, Hash, Height, Wei},
    timer::{
        self, EPOCH_BLOCKS, Governed, Key, Notice, Policy, Proposal, fairness::weight_numerator,
        lane::Room, queue::epoch,
    },
};
use std::{cmp::Reverse, collections::BTreeSet};

/// Maximum number of blocks for which a timer's deferrals are derived: the last ones.
const DEFERRED_BLOCKS: u64 = 10_000;
/// Maximum number of events listed for a timer: the newest ones.
const EVENTS: usize = 1_000;
const MEMBERS: usize = 1_000;

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/chain/governance", "The governed parameters", governance),
        many(
            "/v1/timers",
            "Timers: those that wait by height, then those that have ended, newest first",
            |view: &View, (), query: TimerQuery| list(view, &query),
        ),
        one("/v1/timers/queue", "The calendar queue, tier by tier", queue),
        many(
            "/v1/timers/fees",
            "Reports of blocks' timer lanes, oldest first",
            |view: &View, (), query: LaneQuery| fees(view, &query),
        ),
        one(
            "/v1/timers/fairness",
            "The weights of accounts in the next block's timer lane",
            fairness,
        ),
        one(
            "/v1/timers/{timer}",
            "A timer, its outcome, and the reasons why it did not fire",
            |view: &View, timer: String| show(view, &timer),
        ),
    ]
}

/// `GET /v1/timers`: reads at most `limit` rows of each requested status.
fn list(view: &View, query: &TimerQuery) -> Result<Vec<TimerSummary>, ApiError> {
    let actor = query.actor.as_deref().map(|text| actor::find(view, &view.state, text));
    let actor = actor.transpose()?.map(|(address, _)| address);
    let payer = query.payer.as_deref().map(|text| view.resolve("account", text)).transpose()?;
    let limit = convert::timer::limit(query.limit, TIMER_PAGE, TIMER_PAGE_LIMIT);
    let limit = limit as usize;
    let (filter, head) = (TimerFilter { actor, payer, limit }, view.head());
    let wanted = |status| match query.status {
        Some(only) => only == status,
        None => {
            query.all == Some(true) || matches!(status, TimerStatus::Scheduled | TimerStatus::Due)
        }
    };
    let mut timers = Vec::new();
    let last = Height::new(u64::MAX);
    for (status, heights) in
        [(TimerStatus::Due, (Height::GENESIS, head)), (TimerStatus::Scheduled, (head.next(), last))]
    {
        if wanted(status) {
            timers.extend(waiting(view, filter, heights));
        }
    }
    let mut ended = Vec::new();
    for &end in TimerEnd::ALL.iter().filter(|end| wanted(convert::timer::ended(**end))) {
        ended.extend(view.store().ended_timers(filter, end, head)?);
    }
    ended.sort_by_key(|stored| Reverse((stored.ended.map(|(height, _)| height), stored.timer.seq)));
    timers.extend(ended);
    timers.truncate(limit);
    Ok(timers.iter().map(|stored| summary(view, stored, head)).collect())
}

/// The waiting timers that are due from one height to another, both included, by height and then
/// by when they were scheduled. One pass over the waiting timers, unless the limit or the actor's
/// last timer ends it.
fn waiting(view: &View, filter: TimerFilter, (from, to): (Height, Height)) -> Vec<StoredTimer> {
    let queue = view.state.timers();
    let mut left = filter.actor.map_or(u64::MAX, |actor| queue.count_of(&actor));
    let mut found: Vec<timer::Timer> = Vec::new();
    for (height, id) in queue.range(from, to) {
        let full = found.len() >= filter.limit;
        if left == 0 || full && found.last().is_none_or(|last| last.height < height) {
            break;
        }
        let timer = view.state.timer(&id).expect("the queue has what its heights list");
        left -= u64::from(filter.actor == Some(timer.actor));
        if filter.accepts(&timer) {
            found.push(timer);
        }
    }
    found.sort_by_key(|timer| (timer.height, timer.seq));
    found.truncate(filter.limit);
    found.into_iter().map(|timer| StoredTimer { timer, ended: None }).collect()
}

fn summary(view: &View, stored: &StoredTimer, head: Height) -> TimerSummary {
    let StoredTimer { timer, ended } = stored;
    let (status, fired_at) = status(stored, head);
    TimerSummary {
        timer_id: timer.id.into(),
        name: view.backend.labels.name(NamedKind::Timer, &timer.id),
        actor: timer.actor.into(),
        actor_name: view.backend.names.get(&timer.actor),
        height: timer.height.get(),
        expires_at: timer.expires_at.get(),
        handler: view.state.called_by(timer).0,
        status,
        tier: ended.is_none().then(|| convert::timer::tier(timer, head)),
        fired_at,
        fee_payer: timer.fee_payer.into(),
        gas_limit: timer.gas_limit,
        cell_limit: timer.cell_limit,
        max_fee_per_cycle: timer.max_fee_per_cycle.into(),
        max_priority_fee_per_cycle: timer.max_priority_fee_per_cycle.into(),
    }
}

fn status(stored: &StoredTimer, head: Height) -> (TimerStatus, Option<u64>) {
    match stored.ended {
        None => (convert::timer::waiting(&stored.timer, head), None),
        Some((height, end)) => {
            let fired = matches!(end, TimerEnd::Fired | TimerEnd::Failed).then(|| height.get());
            (convert::timer::ended(end), fired)
        }
    }
}

fn show(view: &View, text: &str) -> Result<Timer, ApiError> {
    let stored = find(view, text)?;
    let (head, id) = (view.head(), stored.timer.id);
    let fire = match stored.ended {
        Some((height, TimerEnd::Fired | TimerEnd::Failed)) => {
            view.store().fires(height)?.into_iter().find(|fire| fire.timer_id == id)
        }
        _ => None,
    };
    let events = events(view, &stored)?;
    let (deferrals, deferred_blocks) = deferrals(view, &stored, &events)?;
    let (status, fired_at) = status(&stored, head);
    let StoredTimer { timer, ended } = &stored;
    Ok(Timer {
        timer_id: id.into(),
        name: view.backend.labels.name(NamedKind::Timer, &id),
        actor: timer.actor.into(),
        actor_name: view.backend.names.get(&timer.actor),
        height: timer.height.get(),
        tier: ended.is_none().then(|| convert::timer::tier(timer, head)),
        status,
        scheduled_at: timer.scheduled_at.get(),
        expires_at: timer.expires_at.get(),
        fired_at,
        ended_at: ended.map(|(height, _)| height.get()),
        handler: view.state.called_by(timer).0,
        payload_text: convert::job::text(&timer.payload),
        payload: Text(Bytes(timer.payload.clone())),
        fee_payer: timer.fee_payer.into(),
        gas_limit: timer.gas_limit,
        cell_limit: timer.cell_limit,
        promised: timer.promised.map(Text),
        max_fee_per_cycle: timer.max_fee_per_cycle.into(),
        max_priority_fee_per_cycle: timer.max_priority_fee_per_cycle.into(),
        gba: timer.gba.map(Text),
        bid: timer.bid.map(convert::timer::bid),
        max_cost: if ended.is_none() { max_cost(view, timer).map(Text) } else { None },
        payer_balance: view.state.account(&timer.fee_payer).balance.into(),
        deferrals,
        deferred_blocks,
        charged: fire.as_ref().map(|fire| convert::timer::charge(fire.charged)),
        cycles: fire.as_ref().map(|fire| fire.cycles.get()),
        cells: fire.as_ref().map(|fire| fire.cells.get()),
        result: fire.as_ref().and_then(convert::timer::result),
        result_bytes: fire.as_ref().and_then(convert::timer::result_bytes),
        error: fire.as_ref().and_then(|fire| fire.status.error()).map(str::to_owned),
        log: fire.map(log).unwrap_or_default(),
        events: events.iter().map(convert::event::event).collect(),
    })
}

fn log(fire: Fire) -> Vec<String> {
    fire.outcome.log.into_iter().map(|(_, line)| line).collect()
}

/// Finds a timer by name, id, unambiguous beginning of an id, or `latest`.
pub(super) fn find(view: &View, text: &str) -> Result<StoredTimer, ApiError> {
    if text == "latest" {
        return newest(view)?.ok_or_else(|| {
            ApiError::not_found("there is no timer so far")
                .hint("schedule one: cowboyctl timer schedule ACTOR --in BLOCKS")
        });
    }
    let named = view.backend.labels.id(NamedKind::Timer, text);
    let text = named.as_deref().unwrap_or(text);
    let lower = ids::beginning("timer", text)?;
    let first = ids::hash("timer id", &format!("{lower:0<66}"))?;
    let begins = |stored: &StoredTimer| stored.timer.id.to_string().starts_with(&lower);
    let mut found = timers_from(view, &first, 2)?.into_iter().filter(begins);
    match (found.next(), found.next()) {
        (Some(stored), None) => Ok(stored),
        (None, _) => Err(unknown(view, &first, lower.len() == ids::WHOLE, &shown(text))?),
        (Some(one), Some(other)) => Err(ids::ambiguous(text, &one.timer.id, &other.timer.id)),
    }
}

/// Timers in order of their ids, from a given id on. While the state has a timer, it has not ended:
/// the store may be a block ahead.
fn timers_from(view: &View, id: &Hash, limit: usize) -> Result<Vec<StoredTimer>, ApiError> {
    let waiting = view.state.timers().range_from(id).take(limit);
    let mut timers: Vec<_> = waiting.map(|timer| StoredTimer { timer, ended: None }).collect();
    timers.extend(view.store().timers_from(id, limit)?);
    timers.sort_by_key(|stored| (stored.timer.id, stored.ended));
    timers.dedup_by_key(|stored| stored.timer.id);
    timers.truncate(limit);
    Ok(timers)
}

/// The timer that was scheduled last, of those that a block left in the queue.
fn newest(view: &View) -> Result<Option<StoredTimer>, ApiError> {
    const BLOCKS: u32 = 64;
    for height in view.store().blocks_with("TimerScheduled", view.head(), BLOCKS)? {
        for stored in view.store().events_at(height)?.iter().rev() {
            let EventKind::TimerScheduled(TimerScheduled { timer_id, .. }) = &stored.event.kind
            else {
                continue;
            };
            if let Some(timer) = view.state.timer(timer_id) {
                return Ok(Some(StoredTimer { timer, ended: None }));
            }
            if let Some(ended) = view.store().timer(timer_id)? {
                return Ok(Some(ended));
            }
        }
    }
    // The blocks that scheduled the waiting ones are no longer kept.
    let newest = view.state.timers().iter().max_by_key(|timer| timer.seq);
    Ok(newest.map(|timer| StoredTimer { timer, ended: None }))
}

fn unknown(view: &View, id: &Hash, whole: bool, shown: &str) -> Result<ApiError, ApiError> {
    let hint = "list them: cowboyctl timer ls";
    if !whole {
        return Ok(ApiError::not_found(format!("no timer's id begins with {shown}")).hint(hint));
    }
    let gone = view.store().events_of_timer(id, &[], 1)?.pop();
    Ok(match gone {
        Some(StoredEvent { height, .. }) => ApiError::not_found(format!(
            "timer {id} was scheduled and cancelled in block {height}: it never waited"
        ))
        .hint(format!("see the block's events: cowboyctl chain block {height}")),
        None => ApiError::not_found(format!("there is no timer {id}")).hint(hint),
    })
}

fn events(view: &View, stored: &StoredTimer) -> Result<Vec<StoredEvent>, ApiError> {
    let id = stored.timer.id;
    let ended = stored.ended.map(|(height, _)| height);
    let lived: Vec<_> = std::iter::once(stored.timer.scheduled_at).chain(ended).collect();
    let mut events = view.store().events_of_timer(&id, &lived, EVENTS)?;
    if let Some((height, TimerEnd::Fired | TimerEnd::Failed)) = stored.ended {
        // `events_of_timer` does not return its fire's events that are not about this timer.
        let of_fire = |found: &StoredEvent| {
            found.event.timer == Some(id) && found.event.timer_id() != Some(id)
        };
        events.extend(view.store().events_at(height)?.into_iter().filter(of_fire));
        events.sort_by_key(|stored| (stored.height, stored.position));
        events.drain(..events.len().saturating_sub(EVENTS));
    }
    events.retain(|event| event.height <= view.head());
    Ok(events)
}

/// The reasons why a timer did not fire while it was due, and the number of such blocks.
fn deferrals(
    view: &View,
    stored: &StoredTimer,
    events: &[StoredEvent],
) -> Result<(Vec<Deferral>, u64), ApiError> {
    let timer = &stored.timer;
    let last = match stored.ended {
        None => Some(view.head()),
        // Under `gba-auction` transactions come after the timers, so the lane deferred it once
        // more.
        Some((height, TimerEnd::Cancelled)) if cancelled_after_lane(view, height, events)? => {
            Some(height)
        }
        Some((height, _)) => height.previous(),
    };
    let Some(last) = last.filter(|last| *last >= timer.height) else {
        return Ok((Vec::new(), 0));
    };
    let oldest = Height::new(last.get().saturating_sub(DEFERRED_BLOCKS - 1));
    let lanes = view.store().lanes(timer.height.max(oldest), last)?;
    let (mut lives, mut clamps, mut unanswered) = (Vec::new(), Vec::new(), BTreeSet::new());
    for StoredEvent { height, event, .. } in events {
        match &event.kind {
            EventKind::TimerScheduled(TimerScheduled { timer_id, expires_at, .. })
            | EventKind::TimerExtended(TimerExtended { timer_id, expires_at, .. })
                if *timer_id == timer.id =>
            {
                lives.push((*height, *expires_at));
            }
            EventKind::TimerGasClamped(clamped) => {
                let TimerGasClamped { gas_limit, cell_limit, gas_cap, cell_cap, .. } = *clamped;
                clamps.push(Clamp {
                    at: *height,
                    before: Room { cycles: gas_limit, cells: cell_limit },
                    after: Room { cycles: gas_cap, cells: cell_cap },
                });
            }
            EventKind::GbaFailed(_) => {
                unanswered.insert(*height);
            }
            _ => {}
        }
    }
    let subject = Subject { timer, lives: &lives, clamps: &clamps, unanswered: &unanswered };
    Ok((deferral::explain(&subject, &lanes), last.since(timer.height) + 1))
}

/// Whether the block at `height` cancelled a timer after its lane had deferred it.
fn cancelled_after_lane(
    view: &View,
    height: Height,
    events: &[StoredEvent],
) -> Result<bool, ApiError> {
    let cancelled = |stored: &&StoredEvent| {
        matches!(stored.event.kind, EventKind::TimerCancelled(TimerCancelled { .. }))
    };
    let by_transaction = events.iter().rfind(cancelled).is_some_and(|s| s.event.timer.is_none());
    let lane = view.store().lanes(height, height)?.pop();
    Ok(by_transaction && lane.is_some_and(|lane| lane.report.policy == Policy::GbaAuction))
}

/// The maximum cost of a fire in the next block; `None` if its cap does not cover the price.
fn max_cost(view: &View, timer: &timer::Timer) -> Option<Wei> {
    let state = &view.state;
    let prices = state.lane_prices(&state.timer_terms(state.height().next()));
    let priority = prices.priority(&Notice::of(timer).due)?;
    Some(prices.max_cost(timer.gas_limit, timer.cell_limit, priority))
}

/// `GET /v1/timers/queue`: at most 4,095 heights and 720 epochs.
fn queue(view: &View) -> Result<TimerQueue, ApiError> {
    let (state, queue) = (&view.state, view.state.timers());
    let buckets = state.timer_buckets();
    Ok(TimerQueue {
        height: state.height().get(),
        epoch: epoch(state.height()),
        epoch_blocks: EPOCH_BLOCKS,
        root: queue.root().into(),
        timers: queue.len() as u64,
        ring: convert::timer::buckets(buckets.ring.into_iter().map(|(h, n)| (h.get(), n))),
        epochs: convert::timer::buckets(buckets.epochs),
        overflow: buckets.overflow,
        carry_over: buckets.carry_over,
    })
}

fn fees(view: &View, query: &LaneQuery) -> Result<Vec<LaneBlock>, ApiError> {
    let limit = convert::timer::limit(query.limit, LANE_PAGE, LANE_PAGE_LIMIT);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let (head, blocks) = (view.head().get(), u64::from(limit));
    let from = query.from.unwrap_or_else(|| (head + 1).saturating_sub(blocks));
    let to = head.min(from.saturating_add(blocks - 1));
    let lanes = view.store().lanes(Height::new(from), Height::new(to))?;
    Ok(lanes.iter().map(convert::timer::lane).collect())
}

/// `GET /v1/timers/fairness`: one pass over the accounts that fired in the window or have a weight
/// of their own.
fn fairness(view: &View) -> Result<Fairness, ApiError> {
    let state = &view.state;
    let (next, params) = (state.height().next(), &state.params().timers);
    let lane = state.lane();
    let (policy, window) = (lane.policy_at(next), lane.config.fairness_window_blocks);
    // As the next block will find it.
    let mut known = state.fairness().clone();
    known.slide(next, window);
    let twice_median = known.twice_median();
    let fires = || known.iter().map(|(account, n)| (Reverse(n), *account));
    let mut members: Vec<(Reverse<u64>, Address)> = match policy {
        Policy::Eip1559 => fires().collect(),
        Policy::Fifo => Vec::new(),
        Policy::GbaAuction => {
            let weighed = state.auction().weights().map(|(account, _)| *account);
            let idle = weighed.filter(|account| known.recent(account) == 0);
            fires().chain(idle.map(|account| (Reverse(0), account))).collect()
        }
    };
    if members.len() > MEMBERS {
        members.select_nth_unstable(MEMBERS);
        members.truncate(MEMBERS);
    }
    members.sort_unstable();
    let member = |(Reverse(recent), account): (Reverse<u64>, Address)| {
        let weight_per_mille = match policy {
            Policy::GbaAuction => state.auction().weight(&account) / 1_000,
            Policy::Eip1559 | Policy::Fifo => {
                per_mille(weight_numerator(recent, twice_median), twice_median)
            }
        };
        FairnessMember { account: account.into(), recent, weight_per_mille }
    };
    Ok(Fairness {
        height: state.height().get(),
        policy: policy.name().to_owned(),
        scope: params.scope.name().to_owned(),
        window_blocks: window,
        twice_median,
        members: members.into_iter().map(member).collect(),
    })
}

fn governance(view: &View) -> Result<Vec<GovernedParameter>, ApiError> {
    let lane = view.state.lane();
    let params = view.state.params();
    let now = view.state.governed();
    let genesis = Governed::first(&params.timers, params.connectivity, params.tasks.bonds);
    // A proposal for the next block is already its value.
    let next = view.state.height().next();
    let later = || lane.pending.iter().filter(|proposal| proposal.height > next);
    let parameter = |key: &Key| {
        let setting = |value| match key.word(value) {
            Some(word) => Setting::Word(word.to_owned()),
            None => Setting::Number(value),
        };
        let value = |governed: &Governed| setting(governed.get(key.name).unwrap_or_default());
        let pending = later().filter_map(|Proposal { height, by, settings }| {
            let proposed = settings.iter().find(|proposed| proposed.key == key.name)?;
            let (value, by) = (setting(proposed.value), by.map(Text::from));
            Some(PendingSetting { height: height.get(), value, by })
        });
        let (number, policy) = (key.words.is_empty(), key.name == Key::POLICY);
        GovernedParameter {
            key: key.name.to_owned(),
            name: field_of(key.name),
            value: value(&now),
            genesis: value(&genesis),
            unit: key.unit.to_owned(),
            source: key.source().to_owned(),
            min: number.then_some(key.min),
            max: number.then_some(key.max),
            choices: key.words.iter().map(|word| (*word).to_owned()).collect(),
            since: policy.then(|| lane.policy_since.get()),
            pending: pending.collect(),
            about: key.about.to_owned(),
        }
    };
    let about = "the role of presence and polling: shadow, hot-path or sunset";
    let phases = [view.state.phase().to_string(), params.phase.to_string()];
    let phase = GovernedParameter {
        choices: Phase::ALL.map(|phase| phase.to_string()).to_vec(),
        since: Some(view.state.migration().since.get()),
        ..word(Phase::KEY, "CIP-11 §14", about, phases)
    };
    // The source of the draws' seeds does not change on a running chain.
    let about = "the source of the seeds of draws, fixed at genesis: parent or certificate";
    let rules = [params.selection_seed.to_string(), params.selection_seed.to_string()];
    let seed = word(SeedRule::KEY, "CIP-11 §9", about, rules);
    Ok(Governed::KEYS.iter().map(parameter).chain([phase, seed]).collect())
}

/// A parameter that is a word, and not one of timers.
fn word(key: &str, source: &str, about: &str, [value, genesis]: [String; 2]) -> GovernedParameter {
    GovernedParameter {
        key: key.to_owned(),
        name: field_of(key),
        value: Setting::Word(value),
        genesis: Setting::Word(genesis),
        unit: "word".to_owned(),
        source: source.to_owned(),
        min: None,
        max: None,
        choices: Vec::new(),
        since: None,
        pending: Vec::new(),
        about: about.to_owned(),
    }
}
