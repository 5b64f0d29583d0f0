//! The outlook for the timer lane: each due timer's fate in the next block, without executing it.
//!
//! The block is assumed to have no transactions. Under `gba-auction` timers come before them
//! anyway; under the other policies transactions may change the result. Agents are not asked: each
//! timer counts with its last bid, or with the default one. The usage of a fire is not known in
//! advance; [`Fate::Fires`] and [`Fate::LaneFull`] assume that each fire uses all that it asked
//! for.
//!
//! One pass over all timers of the state, so the cost grows with their number.

use super::{
    state::State,
    transition::{FailureKind, agents, lane},
};
use crate::{
    primitives::{Address, Hash, Height, Wei},
    timer::{
        Due, EPOCH_BLOCKS, MIN_BID_CYCLES, Notice, Policy, Timer,
        eip1559::TxFeeParams,
        lane::{Buffers, LaneAccounts, Prices, Room, Way, scan, way},
    },
};
use std::collections::BTreeMap;

/// The lane of the next block.
#[derive(Clone, Debug)]
pub struct Outlook {
    pub height: Height,
    pub prices: Prices,
    /// The timers due in it: first those with a rank, in order, then the others, longest waiting
    /// first.
    pub timers: Vec<Prospect>,
}

/// A due timer in the next block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// The timer, within the limits of that block and without its payload.
    pub timer: Timer,
    /// Its position, from 1; absent if it is not ranked.
    pub rank: Option<u64>,
    /// Its actor's weight, per mille; absent under `fifo`, which has no weights.
    pub weight_per_mille: Option<u64>,
    /// Priority paid to the proposer, in wei per cycle; absent if the cap is below the price.
    pub priority: Option<Wei>,
    /// The most that the fire may cost; without priority if the cap is below the price.
    pub max_cost: Wei,
    pub fate: Fate,
    /// Why its agent is not asked in that block; absent if it is asked or if there is no agent.
    pub unasked: Option<Unasked>,
}

/// The fate of a due timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// There is room for it if all timers before it use all that they ask for. If they use less, a
    /// larger timer that was passed over may take that room first.
    Fires,
    /// There is no room for it if those before it use all that they ask for.
    LaneFull {
        /// Room left by all timers that fire.
        left: Room,
    },
    /// The payer's balance, or its promise, is below the most that the fire may cost.
    Unfunded {
        /// The balance or promise that remains after the timers before it.
        has: Wei,
    },
    /// Its cap is below the price of a cycle.
    PricedOut,
    /// It asks for more cycles than a fire gets, or for more cells than the lane has.
    OverCap,
    Expired,
}

/// Why an agent is not asked for a bid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// Under `fifo` no agent is asked.
    Policy,
    NotDue,
    Expired,
    /// Its limits are above what a fire gets.
    OverCap,
    /// Its payer cannot pay for the fire, even without priority.
    Payer,
    /// Its owner cannot pay for the most expensive question.
    Owner,
}

struct Numbered<'a> {
    state: &'a State,
    addresses: &'a [Address],
    policy: Policy,
    twice_median: u64,
}

impl LaneAccounts for Numbered<'_> {
    fn balance(&mut self, number: u32) -> Wei {
        self.state.account(&self.addresses[number as usize]).balance
    }

    fn weight(&mut self, number: u32) -> u64 {
        let actor = self.addresses[number as usize];
        self.state.timer_weight(self.policy, self.twice_median, actor)
    }
}

/// Cost to the timer's owner of a question that takes `cycles` cycles, in wei.
pub(super) fn question(prices: &Prices, cycles: u64) -> Wei {
    prices.cycle_price(Wei::ZERO).saturating_mul(u128::from(cycles))
}

/// Why the next block does not ask a timer's agent; `None` if it does.
pub(super) fn unasked(
    state: &State,
    timer: &Timer,
    prices: &Prices,
    now: Height,
) -> Option<Unasked> {
    let (room, gas) = (prices.room(), timer.gas_limit);
    let balance = |of: &Address| state.account(of).balance;
    if prices.policy == Policy::Fifo {
        Some(Unasked::Policy)
    } else if timer.height > now {
        Some(Unasked::NotDue)
    } else if timer.expires_at < now {
        Some(Unasked::Expired)
    } else if gas > prices.cap() || gas > room.cycles || timer.cell_limit > room.cells {
        Some(Unasked::OverCap)
    } else if balance(&timer.fee_payer) < prices.max_cost(gas, timer.cell_limit, Wei::ZERO) {
        Some(Unasked::Payer)
    } else if balance(&timer.actor) < question(prices, agents::MOST_CYCLES) {
        Some(Unasked::Owner)
    } else {
        None
    }
}

/// Predicts the fate of the timers due in the block after `state`. `extra`, if any, replaces the
/// timer with its id and counts as due.
pub fn outlook(state: &State, extra: Option<Timer>) -> Outlook {
    let height = state.height().next();
    let terms = state.timer_terms(height);
    let prices = state.lane_prices(&terms);
    let mut state = state.clone();
    if prices.policy != Policy::Fifo {
        state.timers.fairness.slide(height, terms.config.fairness_window_blocks);
    }
    if prices.policy == Policy::GbaAuction && height.get().is_multiple_of(EPOCH_BLOCKS) {
        state.timers.auction.rollover(&terms.config.weights);
    }
    let other = |timer: &Timer| extra.as_ref().is_none_or(|extra| extra.id != timer.id);
    let ids = state.timers().range(Height::GENESIS, height).map(|(_, id)| id);
    let due = ids.filter_map(|id| state.timer(&id));
    let mut timers: Vec<_> = due.filter(other).collect();
    timers.extend(extra.clone().map(|extra| Timer { height: extra.height.min(height), ..extra }));
    for timer in &mut timers {
        timer.payload = Vec::new();
        lane::hold_to_limits(timer, &prices, state.limits_since(), height);
    }
    timers.sort_by_key(|timer| (timer.height, timer.seq));

    let mut numbers = BTreeMap::new();
    let mut addresses = Vec::new();
    let mut number = |address: Address| {
        *numbers.entry(address).or_insert_with(|| {
            addresses.push(address);
            addresses.len() as u32 - 1
        })
    };
    let entries: Vec<Due> = timers
        .iter()
        .map(|timer| {
            let (actor, payer) = (number(timer.actor), number(timer.fee_payer));
            Due { actor, payer, ..Notice::of(timer).due }
        })
        .collect();
    let policy = prices.policy;
    let twice_median = state.fairness().twice_median();
    let mut accounts = Numbered { state: &state, addresses: &addresses, policy, twice_median };
    let mut buffers = Buffers::default();
    let all = |due: &Due| Room { cycles: u64::from(due.gas_limit), cells: due.cell_limit() };

    // Rank all timers first, regardless of the lane's room.
    let endless = Room { cycles: u64::MAX, cells: u64::MAX };
    let mut turns = Vec::new();
    scan(&entries, height, &prices, &mut accounts, &mut buffers).ranking.fill(endless, |pick| {
        let asks = all(&entries[pick.index as usize]);
        // A timer that does not fit into an empty lane is not ranked.
        let fits = asks.cycles <= prices.room().cycles;
        fits.then(|| turns.push(pick.index as usize));
        fits.then_some(asks)
    });
    // Divide the room, assuming that each timer uses all that it asked for.
    let (mut left, mut used) = (BTreeMap::new(), Room::default());
    let mut fates: Vec<Option<Fate>> = vec![None; entries.len()];
    scan(&entries, height, &prices, &mut accounts, &mut buffers).ranking.fill(
        prices.room(),
        |pick| {
            let index = pick.index as usize;
            let timer = &timers[index];
            let payer = timer.fee_payer;
            let balance = left.entry(payer).or_insert_with(|| state.account(&payer).balance);
            let needs = prices.max_cost(timer.gas_limit, timer.cell_limit, pick.priority);
            let has = timer.promised.map_or(*balance, |promised| promised.min(*balance));
            if has < needs {
                fates[index] = Some(Fate::Unfunded { has });
                return None;
            }
            *balance = balance.saturating_sub(needs);
            fates[index] = Some(Fate::Fires);
            let asks = all(&entries[index]);
            used = used.plus(asks);
            Some(asks)
        },
    );

    let mut ranks = vec![None; entries.len()];
    for (rank, index) in (1..).zip(&turns) {
        ranks[*index] = Some(rank);
    }
    let unranked = (0..entries.len()).filter(|index| ranks[*index].is_none());
    let order: Vec<_> = turns.iter().copied().chain(unranked).collect();
    let prospect = |index: usize| {
        let (timer, due) = (timers[index].clone(), &entries[index]);
        let balance = state.account(&timer.fee_payer).balance;
        let fate = match way(due, height, &prices, balance) {
            Way::Expired => Fate::Expired,
            Way::Unfunded { .. } => Fate::Unfunded { has: balance },
            Way::PricedOut => Fate::PricedOut,
            Way::OverCycles | Way::OverCells => Fate::OverCap,
            Way::Ranked { .. } => {
                fates[index].unwrap_or(Fate::LaneFull { left: prices.room().less(used) })
            }
        };
        let priority = prices.priority(due);
        let weight = state.timer_weight(policy, twice_median, timer.actor);
        let (gas, cells) = (timer.gas_limit, timer.cell_limit);
        Prospect {
            rank: ranks[index],
            weight_per_mille: match policy {
                Policy::Eip1559 => Some(per_mille(weight, twice_median)),
                Policy::Fifo => None,
                Policy::GbaAuction => Some(weight / 1_000),
            },
            priority,
            max_cost: prices.max_cost(gas, cells, priority.unwrap_or_default()),
            fate,
            unasked: timer.gba.and_then(|_| unasked(&state, &timer, &prices, height)),
            timer,
        }
    };
    Outlook { height, prices, timers: order.into_iter().map(prospect).collect() }
}

/// A weight per mille, from its numerator and denominator.
pub fn per_mille(numerator: u64, twice_median: u64) -> u64 {
    let weight = u128::from(numerator) * 1_000 / u128::from(twice_median.max(1));
    u64::try_from(weight).unwrap_or(u64::MAX)
}

/// An agent's bid for a timer in the next block.
#[derive(Clone, Debug)]
pub struct Quote {
    pub height: Height,
    pub prices: Prices,
    pub gba: Address,
    /// The context given to the agent: the fields of `GBAContext` in order.
    pub context: [u128; 8],
    pub cycles: u64,
    /// Cycles that the timer's owner would pay for: at least the minimum of a question.
    pub paid_cycles: u64,
    pub cost: Wei,
    /// The bid, or why the agent gave none and the default bid counts.
    pub answer: Result<TxFeeParams, FailureKind>,
    /// The timer with the bid that would count, as if it were due in that block.
    pub prospect: Prospect,
    /// Number of timers that would be ranked in that block, including this one.
    pub ranked: u64,
}

/// Why there is no quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    #[error("UnknownTimer: no timer {0} is waiting")]
    UnknownTimer(Hash),
    #[error("NoAgent: timer {0} names no agent; it pays the fees that it was scheduled with")]
    NoAgent(Hash),
}

/// Asks a timer's agent as the block after `state` would, without changing the state.
pub fn quote(state: &State, id: &Hash) -> Result<Quote, QuoteError> {
    let mut timer = state.timer(id).ok_or(QuoteError::UnknownTimer(*id))?;
    let gba = timer.gba.ok_or(QuoteError::NoAgent(*id))?;
    let place = state.next_place(None, *id, None);
    let context = agents::context(state, &place, timer.actor, timer.height);
    let agents::AgentAnswer { usage, bid: answer, .. } =
        agents::ask(state, &place, (gba, timer.actor), &context);
    let counts = *answer.as_ref().unwrap_or(&agents::default_bid(&place.terms));
    let height = timer.height;
    timer.bid = Some(agents::bid(&counts, answer.is_err()));
    let unasked = {
        let prices = state.lane_prices(&place.terms);
        unasked(state, &timer, &prices, place.height)
    };
    let Outlook { height: next, prices, timers } = outlook(state, Some(timer));
    let ranked = timers.iter().filter(|prospect| prospect.rank.is_some()).count() as u64;
    let found = timers.into_iter().find(|prospect| prospect.timer.id == *id);
    let mut prospect = found.expect("an outlook has the timer that it was given");
    prospect.timer.height = height;
    prospect.unasked = unasked;
    let paid_cycles = usage.cycles().max(MIN_BID_CYCLES);
    Ok(Quote {
        height: next,
        prices,
        gba,
        context,
        cycles: usage.cycles(),
        paid_cycles,
        cost: question(&prices, paid_cycles),
        answer,
        prospect,
        ranked,
    })
}
