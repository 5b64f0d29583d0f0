//! The timer lane of a block (spec timers.md §3 to §6).
//!
//! Executing block H:
//! 1. The calendar advances: timers for H become due, in addition to due timers that still wait.
//! 2. Timers scheduled before a limit was lowered are held to it. Agents of timers that could fire
//!    are asked for bids, within a budget and taking turns by owner; the owner pays for the answer.
//! 3. Each due timer is classified. One that has expired, or whose payer cannot pay, is removed, as
//!    far as the GC budget goes. The others stay, and those that may run are ranked.
//! 4. In rank order, each timer that still fits the lane fires. The maximum cost of a fire is set
//!    aside first, which its payer may no longer be able to afford; usage is then paid and the rest
//!    returned. A handler that fails keeps none of its writes, and is paid for.
//! 5. Usage by fires sets the next lane basefee; the actors that fired enter the fairness window.

use super::{
    MAX_ERROR_BYTES, Run,
    actors::{self, PendingCall},
    agents::{self, AgentAnswer},
    shortened,
};
use crate::{
    actor::Budget,
    chain::{
        State,
        event::{
            AgentsAsked, GbaFailed, TimerCancelledInsufficientFunds, TimerExpired, TimerFired,
            TimerGasClamped,
        },
        receipt::{Charged, Fire, LaneReport, ReceiptStatus},
        timers::{Desk, Parked},
    },
    primitives::{Address, Cells, Cycles, Height, Wei},
    timer::{
        BLOCK_BID_CYCLES, Calendar, EPOCH_BLOCKS, Ids, MIN_BID_CYCLES, Policy, Timer, eip1559,
        lane::{LaneAccounts, Pick, Prices, Room, scan},
    },
};
use std::collections::{BTreeMap, VecDeque};

/// Maximum length of an agent's error in its event, in bytes.
const MAX_REASON_BYTES: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub cycles: Cycles,
    pub cells: Cells,
}

pub(super) struct OpenLane {
    desk: Box<Desk>,
    till: Till,
}

/// Prices and running totals of the lane's timers.
struct Till {
    prices: Prices,
    used: Used,
    report: LaneReport,
    /// Removals that the GC budget still allows after the scan.
    removals: u64,
    tips: Vec<Wei>,
    /// Number of fires, by fairness key.
    fires: BTreeMap<Address, u32>,
}

struct KnownAccounts<'a> {
    state: &'a State,
    calendar: &'a Calendar,
    policy: Policy,
    twice_median: u64,
}

impl LaneAccounts for KnownAccounts<'_> {
    fn balance(&mut self, number: u32) -> Wei {
        self.state.account(&self.calendar.address(number)).balance
    }

    fn weight(&mut self, number: u32) -> u64 {
        self.state.timer_weight(self.policy, self.twice_median, self.calendar.address(number))
    }
}

/// Holds a due timer that was scheduled before `from` to the limits that apply from `from` on.
/// Returns whether that changes it. A timer that was due before the block at `now` is changed only
/// in the block `from`.
pub(in crate::chain) fn hold_to_limits(
    timer: &mut Timer,
    prices: &Prices,
    from: Height,
    now: Height,
) -> bool {
    let gas_limit = timer.gas_limit.min(prices.cap().min(prices.room().cycles));
    let cell_limit = timer.cell_limit.min(prices.config.cell_cap());
    let over = gas_limit < timer.gas_limit || cell_limit < timer.cell_limit;
    let held = over && timer.scheduled_at < from && (from == now || timer.height >= now);
    if held {
        (timer.gas_limit, timer.cell_limit) = (gas_limit, cell_limit);
    }
    held
}

impl Till {
    /// Charges an owner for a question to its agent: the price of a fire's cycles, all of it
    /// burned.
    fn asked(&mut self, run: &mut Run<'_>, cycles: u64, bill: &mut AgentsAsked) {
        let of = |price: Wei| price.saturating_mul(u128::from(cycles));
        let lane = of(self.prices.lane());
        let paid = of(self.prices.basefee_cycle).saturating_add(lane);
        run.state.debit(bill.actor, paid).expect("it can pay for the dearest question");
        run.state.burned.questions = run.state.burned.questions.saturating_add(paid);
        run.state.timers.lane.burned = run.state.timers.lane.burned.saturating_add(lane);
        self.used.cycles = self.used.cycles.saturating_add(Cycles::new(cycles));
        self.report.asked += 1;
        self.report.questions = self.report.questions.saturating_add(paid);
        bill.timers += 1;
        bill.cycles += cycles;
        bill.paid = bill.paid.saturating_add(paid);
    }
}

impl Run<'_> {
    /// Advances the calendar to this block.
    pub(super) fn open_lane(&mut self) -> OpenLane {
        let (height, policy) = (self.height(), self.terms.policy);
        let mut desk = self.state.timers.take_desk(self.parent.height());
        desk.calendar.advance(height, &mut self.state.timers.queue);
        if policy == Policy::GbaAuction && height.get().is_multiple_of(EPOCH_BLOCKS) {
            self.state.timers.auction.rollover(&self.terms.config.weights);
        }
        let config = self.terms.config;
        let prices = self.parent.lane_prices(&self.terms);
        let report = LaneReport {
            policy,
            basefee: prices.basefee_lane,
            capacity: config.lane_timer_cycles,
            cell_capacity: config.lane_timer_cells,
            ..LaneReport::default()
        };
        let till = Till {
            prices,
            used: Used::default(),
            report,
            removals: 0,
            tips: Vec::new(),
            fires: BTreeMap::new(),
        };
        OpenLane { desk, till }
    }

    /// Asks for bids, removes timers and fires timers.
    pub(super) fn fire_timers(&mut self, lane: &mut OpenLane) {
        let (height, policy) = (self.height(), self.terms.policy);
        let OpenLane { desk, till } = lane;
        let Desk { calendar, buffers } = &mut **desk;
        calendar.apply(&mut self.state.timers.queue);
        self.clamp(calendar, &till.prices);
        if policy != Policy::Fifo {
            let window = self.terms.config.fairness_window_blocks;
            self.state.timers.fairness.slide(height, window);
            self.ask_agents(calendar, till);
        }
        calendar.apply(&mut self.state.timers.queue);

        let twice_median = self.state.fairness().twice_median();
        let mut accounts = KnownAccounts { state: &self.state, calendar, policy, twice_median };
        let mut scanned = scan(calendar.due(), height, &till.prices, &mut accounts, buffers);
        till.removals = scanned.gc_left;
        till.report.priced_out = scanned.counts.priced_out;
        till.report.over_cap = scanned.counts.over_cap;
        for index in scanned.expired {
            if let Some(timer) = self.due(calendar, index) {
                self.expire(&timer, till);
            }
        }
        for index in scanned.insolvent {
            if let Some(timer) = self.due(calendar, index) {
                let due = &calendar.due()[index as usize];
                let priority = till.prices.priority(due).unwrap_or_default();
                let required = till.prices.max_cost(timer.gas_limit, timer.cell_limit, priority);
                self.give_up(&timer, required, till);
            }
        }
        let consumed = scanned.ranking.fill(till.prices.room(), |pick| {
            let timer = self.due(calendar, pick.index)?;
            self.fire(timer, pick, till)
        });
        (till.report.consumed, till.report.cells) = (consumed.cycles, consumed.cells);
        if policy == Policy::GbaAuction {
            let standings = scanned.ranking.standings();
            let block = standings.map(|(number, standing)| (calendar.address(number), standing));
            self.state.timers.auction.record(till.report.capacity, block);
        }
    }

    /// The timer of a due entry; `None` if an earlier fire cancelled it.
    fn due(&self, calendar: &Calendar, index: u32) -> Option<Timer> {
        self.state.timers.queue.find(&calendar.due()[index as usize])
    }

    /// Holds due timers to limits that were lowered since they were scheduled: those due from this
    /// block on, or all of them if the limits are new.
    fn clamp(&mut self, calendar: &Calendar, prices: &Prices) {
        let now = self.height();
        let from = self.state.limits_since();
        let (gas_cap, cell_cap) =
            (prices.cap().min(prices.room().cycles), prices.config.cell_cap());
        let due = calendar.due();
        let first = match from == now {
            true => 0,
            false => due.partition_point(|due| u64::from(due.height) < now.get()),
        };
        for due in &due[first..] {
            let over = u64::from(due.gas_limit) > gas_cap || due.cell_limit() > cell_cap;
            if !due.is_live() || !over {
                continue;
            }
            let Some(mut timer) = self.state.timers.queue.find(due) else { continue };
            let Timer { id: timer_id, actor, gas_limit, cell_limit, .. } = timer;
            if !hold_to_limits(&mut timer, prices, from, now) {
                continue;
            }
            self.state.timers.queue.replace(&timer);
            self.emit(TimerGasClamped {
                timer_id,
                actor,
                gas_limit,
                cell_limit,
                gas_cap: timer.gas_limit,
                cell_cap: timer.cell_limit,
            });
        }
    }

    /// Asks agents for bids, within the budget. Owners of timers that could fire in this block take
    /// turns, and the longest waiting timer of an owner comes first. The first owner is the one
    /// after the last that was asked.
    fn ask_agents(&mut self, calendar: &Calendar, till: &mut Till) {
        let prices = till.prices;
        let price = prices.cycle_price(Wei::ZERO);
        let most = agents::MOST_CYCLES;
        let question = price.saturating_mul(u128::from(most));
        let mut turns: VecDeque<(Address, VecDeque<u32>)> =
            self.askable(calendar, &prices).into_iter().collect();
        let last = self.state.timers.lane.asked;
        turns.rotate_left(turns.partition_point(|(owner, _)| *owner <= last) % turns.len().max(1));
        let mut bills = BTreeMap::new();
        let mut budget = BLOCK_BID_CYCLES;
        while budget >= most
            && let Some((owner, mut timers)) = turns.pop_front()
        {
            let Some(index) = timers.pop_front() else { continue };
            if self.state.account(&owner).balance < question {
                continue;
            }
            turns.push_back((owner, timers));
            let Some(mut timer) = self.due(calendar, index) else { continue };
            let Some(gba) = timer.gba else { continue };
            let AgentAnswer { usage, bid: answer, called } = self.ask(&timer, gba);
            if let Some(called) = called {
                self.state.actors.insert(gba, called);
            }
            let cycles = usage.cycles().max(MIN_BID_CYCLES);
            budget -= cycles;
            self.state.timers.lane.asked = owner;
            let none = AgentsAsked { actor: owner, timers: 0, cycles: 0, paid: Wei::ZERO };
            till.asked(self, cycles, bills.entry(owner).or_insert(none));
            let failed = answer.is_err();
            let bid = answer.unwrap_or_else(|error| {
                if timer.bid.is_none_or(|bid| !bid.failed) {
                    let reason = shortened(error.to_string(), MAX_REASON_BYTES);
                    self.emit(GbaFailed { timer_id: timer.id, actor: owner, gba, reason });
                }
                agents::default_bid(&self.terms)
            });
            let bid = agents::bid(&bid, failed);
            self.bids.push((timer.id, bid));
            if timer.bid != Some(bid) {
                timer.bid = Some(bid);
                self.state.timers.queue.replace(&timer);
            }
        }
        for bill in bills.into_values() {
            self.emit(bill);
        }
    }

    /// Due timers with agents that could fire in this block, whatever their agents answer: by
    /// owner, longest waiting first.
    fn askable(&self, calendar: &Calendar, prices: &Prices) -> BTreeMap<Address, VecDeque<u32>> {
        let (now, room, cap) = (self.height().get(), prices.room(), prices.cap());
        let mut owners: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
        for index in calendar.agents() {
            let due = &calendar.due()[index as usize];
            let gas_limit = u64::from(due.gas_limit);
            let fits = gas_limit <= cap && gas_limit <= room.cycles;
            if u64::from(due.expires_at) < now || !fits || due.cell_limit() > room.cells {
                continue;
            }
            let least = prices.max_cost(gas_limit, due.cell_limit(), Wei::ZERO);
            if self.state.account(&calendar.address(due.payer)).balance >= least {
                owners.entry(due.actor).or_default().push_back(index);
            }
        }
        owners.into_iter().map(|(number, due)| (calendar.address(number), due)).collect()
    }

    fn ask(&self, timer: &Timer, gba: Address) -> AgentAnswer {
        let place = self.place(timer.id, None);
        let context = agents::context(&self.state, &place, timer.actor, timer.height);
        agents::ask(&self.state, &place, (gba, timer.actor), &context)
    }

    fn expire(&mut self, timer: &Timer, till: &mut Till) {
        self.state.timers.queue.remove(&timer.id);
        till.report.expired += 1;
        let Timer { id: timer_id, actor, expires_at, .. } = *timer;
        self.emit(TimerExpired { timer_id, actor, expires_at });
    }

    /// Removes a timer whose payer has less than `required`.
    fn give_up(&mut self, timer: &Timer, required: Wei, till: &mut Till) {
        self.state.timers.queue.remove(&timer.id);
        till.report.insolvent += 1;
        let Timer { id: timer_id, actor, fee_payer, promised, .. } = *timer;
        let balance = self.state.account(&fee_payer).balance;
        let available = promised.map_or(balance, |promised| balance.min(promised));
        self.emit(TimerCancelledInsufficientFunds {
            timer_id,
            actor,
            fee_payer,
            required,
            available,
        });
    }

    /// Runs a timer's handler and charges its payer. Returns the usage paid for; `None` if the
    /// payer can no longer pay, or has not promised enough.
    fn fire(&mut self, timer: Timer, pick: Pick, till: &mut Till) -> Option<Room> {
        let (prices, priority) = (till.prices, pick.priority);
        let required = prices.max_cost(timer.gas_limit, timer.cell_limit, priority);
        let beyond = timer.promised.is_some_and(|promised| required > promised);
        if beyond || self.state.debit(timer.fee_payer, required).is_err() {
            // Under `gba-auction` it waits for funds, as do timers beyond the GC budget.
            if (beyond || prices.policy != Policy::GbaAuction) && till.removals > 0 {
                till.removals -= 1;
                self.give_up(&timer, required, till);
            }
            return None;
        }
        self.state.timers.queue.remove(&timer.id);
        self.timer = Some(timer.id);
        let height = self.height();
        let (handler, payload) = self.state.called_by(&timer);
        let (place, ids) = (self.place(timer.id, None), Ids::of_fire(height, timer.id));
        let actor = timer.actor;
        let first = PendingCall {
            sender: actor,
            to: actor,
            handler: handler.clone(),
            payload,
            value: Wei::ZERO,
        };
        let budget = Budget { cycles: timer.gas_limit, cells: timer.cell_limit };
        let before = self.state.clone();
        let mut done = actors::call(&mut self.state, (&place, &ids), first, budget);
        self.show(&mut done);
        let (events, outcome, ended) = done.told();
        let status = match ended {
            Ok(()) => {
                self.emit_all(events);
                ReceiptStatus::Success
            }
            Err(failure) => {
                self.state = before;
                ReceiptStatus::Failed(shortened(failure.to_string(), MAX_ERROR_BYTES))
            }
        };
        let cycles = outcome.usage.cycles().min(timer.gas_limit);
        let cells = outcome.usage.cells.min(timer.cell_limit);
        let charged = self.charge(timer.fee_payer, required, &prices, (cycles, cells, priority));
        let success = status == ReceiptStatus::Success;
        self.emit(TimerFired {
            timer_id: timer.id,
            actor,
            success,
            cycles,
            priority_per_cycle: priority,
        });
        self.timer = None;
        self.fires.push(Fire {
            timer_id: timer.id,
            actor,
            fee_payer: timer.fee_payer,
            handler,
            due_at: timer.height,
            status,
            cycles: Cycles::new(cycles),
            cells: Cells::new(cells),
            priority_per_cycle: priority,
            charged,
            outcome,
        });
        till.used.cycles = till.used.cycles.saturating_add(Cycles::new(cycles));
        till.used.cells = till.used.cells.saturating_add(Cells::new(cells));
        till.report.fired += 1;
        let least = till.report.least_priority;
        till.report.least_priority = Some(least.map_or(priority, |least| least.min(priority)));
        till.tips.push(priority);
        if prices.policy != Policy::Fifo {
            *till.fires.entry(self.state.fairness_key(actor)).or_default() += 1;
        }
        Some(Room { cycles, cells })
    }

    fn charge(
        &mut self,
        payer: Address,
        set_aside: Wei,
        prices: &Prices,
        (cycles, cells, priority): (u64, u64, Wei),
    ) -> Charged {
        let lane = prices.lane();
        let of = |price: Wei, units: u64| price.saturating_mul(u128::from(units));
        let mut charged = Charged {
            burned_cycle: of(prices.basefee_cycle, cycles),
            burned_lane: of(lane, cycles),
            tip: of(priority, cycles),
            cells: of(prices.basefee_cell, cells),
            refunded: Wei::ZERO,
        };
        charged.refunded = set_aside.saturating_sub(charged.total());
        self.state.credit(payer, charged.refunded).expect("what was set aside fits again");
        self.state.burned.fires = self.state.burned.fires.saturating_add(charged.burned());
        let lane = &mut self.state.timers.lane;
        lane.burned = lane.burned.saturating_add(charged.burned_lane);
        self.tips = self.tips.saturating_add(charged.tip);
        charged
    }

    /// Carries the lane's results over to the next block.
    pub(super) fn close_lane(&mut self, lane: OpenLane) -> (Used, LaneReport) {
        let OpenLane { mut desk, till } = lane;
        let Till { used, mut report, mut tips, fires, .. } = till;
        let height = self.height();
        let timers = &mut self.state.timers;
        // Later transactions and handlers have scheduled and cancelled timers.
        desk.calendar.apply(&mut timers.queue);
        report.deferred = desk.calendar.counts().carry_over;
        report.p50 = eip1559::p50(&mut tips);
        timers.lane.p50 = report.p50;
        timers.fairness.record(height, &fires);
        if report.policy == Policy::Eip1559 {
            let curve = &self.terms.config.lane_basefee;
            let (basefee, consumed) = (timers.lane.basefee, report.consumed);
            timers.lane.basefee = curve.next(basefee, consumed, report.capacity);
        }
        timers.desk = Parked::new(desk);
        (used, report)
    }
}
