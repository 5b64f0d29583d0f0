//! The timer lane of a block (spec timers.md §3 to §6).
//!
//! Upon block H:
//! 1. The calendar moves on: timers for H are due, beside those that were due before and wait.
//! 2. Agents of due timers are asked for bids, those of the longest-waiting first, on a budget.
//! 3. Each due timer is classified. One past its time, or whose payer cannot pay, is removed, as
//!    far as the GC budget goes; the others stay, and those that may run are ranked.
//! 4. In the order of their rank, those that still fit the lane fire. The most that a fire may
//!    cost is set aside first, which a payer may turn out to be unable to do by then; what it used
//!    is paid, the rest goes back. A handler that fails keeps nothing it wrote, and is paid for.
//! 5. What fires used sets the next lane basefee; who fired enters the fairness window.

use super::{
    MAX_ERROR_BYTES, Run,
    actors::{self, Delivery, Seen},
    shortened,
};
use crate::{
    actor::{Budget, Call},
    chain::{
        State,
        event::{
            GbaFailed, TimerCancelledInsufficientFunds, TimerExpired, TimerFired,
            TimerPolicyActivated,
        },
        receipt::{Charged, Fire, LaneReport, Status},
        timers::{Desk, Parked},
    },
    fees::basefee,
    primitives::{Address, Cells, Cycles, Wei},
    timer::{
        BID_CYCLES, BLOCK_BID_CYCLES, Bid, Calendar, EPOCH_BLOCKS, Ids, MIN_BID_CYCLES, Policy,
        Timer, eip1559,
        fairness::weight_numerator,
        lane::{Accounts, Pick, Prices, scan},
    },
};
use std::collections::BTreeMap;

/// The function that an agent is asked through (CIP-1 §7.2).
const BID_HANDLER: &str = "getGasBid";
/// Bytes of an agent's error that its event keeps.
const MAX_REASON_BYTES: usize = 256;

/// What a lane used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub cycles: Cycles,
    pub cells: Cells,
}

/// The lane of the block under execution.
pub(super) struct OpenLane {
    desk: Box<Desk>,
    till: Till,
}

/// What the lane's timers pay and do.
struct Till {
    prices: Prices,
    used: Used,
    report: LaneReport,
    /// Removals that the GC budget still pays for once the scan has had its own.
    removals: u64,
    /// Priorities of the timers that fired.
    tips: Vec<Wei>,
    /// Fires by whom they count for.
    fires: BTreeMap<Address, u32>,
}

/// Accounts as the scan asks for them.
struct Known<'a> {
    state: &'a State,
    calendar: &'a Calendar,
    policy: Policy,
    twice_median: u64,
}

impl Accounts for Known<'_> {
    fn balance(&mut self, number: u32) -> Wei {
        self.state.account(&self.calendar.address(number)).balance
    }

    fn weight(&mut self, number: u32) -> u64 {
        let actor = self.calendar.address(number);
        match self.policy {
            Policy::Eip1559 => {
                let recent = self.state.fairness().recent(&self.state.fairness_key(actor));
                weight_numerator(recent, self.twice_median)
            }
            Policy::Fifo => 1,
            Policy::GbaAuction => self.state.auction().weight(&actor),
        }
    }
}

impl Run<'_> {
    /// Moves the calendar on to this block.
    pub(super) fn open_lane(&mut self) -> OpenLane {
        let (height, policy) = (self.height(), self.terms.policy);
        let mut desk = self.state.timers.take_desk(self.parent.height());
        desk.calendar.advance(height, &mut self.state.timers.queue);
        if self.parent.params.timers.activation.is_some_and(|a| a.height == height) {
            self.emit(TimerPolicyActivated { policy });
        }
        if policy == Policy::GbaAuction && height.get().is_multiple_of(EPOCH_BLOCKS) {
            self.state.timers.auction.rollover();
        }
        let config = self.terms.config;
        let prices = Prices {
            policy,
            basefee_cycle: self.parent.basefee_cycle,
            basefee_lane: self.parent.lane_basefee(height),
            basefee_cell: self.parent.basefee_cell,
            p50: self.terms.p50,
            config,
        };
        let report = LaneReport {
            policy,
            basefee: prices.basefee_lane,
            capacity: config.lane_timer_cycles,
            consumed: 0,
            fired: 0,
            deferred: 0,
            priced_out: 0,
            over_cap: 0,
            expired: 0,
            insolvent: 0,
            p50: Wei::ZERO,
            least_priority: None,
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

    /// Asks for bids, removes, fires.
    pub(super) fn fire_timers(&mut self, lane: &mut OpenLane) {
        let (height, policy) = (self.height(), self.terms.policy);
        let OpenLane { desk, till } = lane;
        let Desk { calendar, buffers } = &mut **desk;
        calendar.apply(&mut self.state.timers.queue);
        if policy == Policy::Eip1559 {
            let window = self.terms.config.fairness_window_blocks;
            self.state.timers.fairness.slide(height, window);
        }
        if policy != Policy::Fifo {
            self.ask_agents(calendar);
            calendar.apply(&mut self.state.timers.queue);
        }

        let twice_median = self.state.fairness().twice_median();
        let mut accounts = Known { state: &self.state, calendar, policy, twice_median };
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
                let required = till.prices.max_cost(timer.gas_limit, priority);
                self.give_up(&timer, required, till);
            }
        }
        till.report.consumed = scanned.ranking.fill(till.report.capacity, |pick| {
            let timer = self.due(calendar, pick.index)?;
            self.fire(timer, pick, till)
        });
        if policy == Policy::GbaAuction {
            let standings = scanned.ranking.standings();
            let block = standings.map(|(number, standing)| (calendar.address(number), standing));
            self.state.timers.auction.record(till.report.capacity, block);
        }
    }

    /// The timer of a due entry; one that a fire before it cancelled is none.
    fn due(&self, calendar: &Calendar, index: u32) -> Option<Timer> {
        let due = &calendar.due()[index as usize];
        self.state.timers.queue.find(due.id, due.seq)
    }

    /// Asks the agents of due timers for bids, as far as the budget goes.
    fn ask_agents(&mut self, calendar: &Calendar) {
        let mut budget = BLOCK_BID_CYCLES;
        for index in calendar.agents() {
            if budget < BID_CYCLES {
                break;
            }
            let Some(mut timer) = self.due(calendar, index) else { continue };
            let Some(gba) = timer.gba else { continue };
            let (cycles, answer) = self.ask(&timer, gba);
            budget -= cycles.max(MIN_BID_CYCLES);
            let (max_fee_per_cycle, max_priority_fee_per_cycle) = answer.unwrap_or_else(|reason| {
                let reason = shortened(reason, MAX_REASON_BYTES);
                self.emit(GbaFailed { timer_id: timer.id, gba, reason });
                let bid = self.default_bid();
                (bid.max_fee_per_cycle, bid.max_priority_fee_per_cycle)
            });
            let bid = Some(Bid { max_fee_per_cycle, max_priority_fee_per_cycle, cycles });
            if timer.bid != bid {
                timer.bid = bid;
                self.state.timers.queue.replace(&timer);
            }
        }
    }

    fn default_bid(&self) -> eip1559::TxFeeParams {
        let terms = &self.terms;
        eip1559::default_bid(terms.lane_price, self.parent.basefee_cell, terms.p50)
    }

    /// Asks one agent: what that used, and the most that it pays per cycle, in all and as
    /// priority; or why it does not say.
    fn ask(&self, timer: &Timer, gba: Address) -> (u64, Result<(Wei, Wei), String>) {
        let state = &self.state;
        let Some(actor) = state.actor(&gba) else {
            return (0, Err(format!("UnknownActor: no actor {gba}")));
        };
        let code = state.code(&actor.code).expect("an actor has code");
        let params = &state.params.actors;
        let module = match code.module(params) {
            Ok(module) => module,
            Err(error) => return (0, Err(error.to_string())),
        };
        let context = [
            u128::from(timer.height.get()),
            u128::from(self.height().get()),
            self.parent.basefee_cycle.get(),
            self.parent.basefee_cell.get(),
            self.terms.lane_price.get(),
            u128::from(self.parent.timers.lane.last_cycles),
            self.terms.p50.get(),
            state.account(&timer.actor).balance.get(),
        ];
        let place = self.place(timer.id, None);
        let call = Call {
            handler: BID_HANDLER,
            payload: &[],
            sender: timer.actor,
            this: gba,
            value: Wei::ZERO,
            height: place.height,
            timestamp_ms: place.timestamp_ms,
            seed: place.seed(0),
        };
        let seen =
            Seen { state, actor: gba, height: place.height, seed: place.seed(0), asking: None };
        // Cells bound what it logs, which nobody keeps.
        let budget = Budget { cycles: BID_CYCLES, cells: BID_CYCLES };
        let (usage, bid) = module.bid(params, &context, &call, &seen, budget);
        let bid =
            bid.map(|[max_fee, max_priority, ..]| (Wei::new(max_fee), Wei::new(max_priority)));
        (usage.cycles(), bid.map_err(|error| error.to_string()))
    }

    /// Removes a timer past its time.
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
        let Timer { id: timer_id, fee_payer, .. } = *timer;
        let available = self.state.account(&fee_payer).balance;
        let gone = TimerCancelledInsufficientFunds { timer_id, fee_payer, required, available };
        self.emit(gone);
    }

    /// Runs a timer's handler and has it paid. Yields the cycles paid for; `None` where its payer
    /// can no longer pay.
    fn fire(&mut self, timer: Timer, pick: Pick, till: &mut Till) -> Option<u64> {
        let (prices, priority) = (till.prices, pick.priority);
        let required = prices.max_cost(timer.gas_limit, priority);
        if self.state.debit(timer.fee_payer, required).is_err() {
            // Under `gba-auction` it waits, as does what the GC budget cannot reach.
            if prices.policy != Policy::GbaAuction && till.removals > 0 {
                till.removals -= 1;
                self.give_up(&timer, required, till);
            }
            return None;
        }
        self.state.timers.queue.remove(&timer.id);
        self.timer = Some(timer.id);
        let height = self.height();
        let asked = timer.bid.map_or(0, |bid| bid.cycles);
        let (handler, payload) = timer.call();
        let (place, ids) = (self.place(timer.id, None), Ids::of_fire(height, timer.id));
        let actor = timer.actor;
        let first = Delivery {
            sender: actor,
            to: actor,
            handler: handler.clone(),
            payload,
            value: Wei::ZERO,
        };
        let budget = Budget {
            cycles: timer.gas_limit.saturating_sub(asked),
            cells: prices.config.max_cells_per_fire,
        };
        let before = self.state.clone();
        let done = actors::call(&mut self.state, (&place, &ids), first, budget);
        let (events, outcome, ended) = done.told();
        let status = match ended {
            Ok(()) => {
                self.emit_all(events);
                Status::Success
            }
            Err(failure) => {
                self.state = before;
                Status::Failed(shortened(failure.to_string(), MAX_ERROR_BYTES))
            }
        };
        let cycles = outcome.usage.cycles().saturating_add(asked).min(timer.gas_limit);
        let cells = outcome.usage.cells.min(prices.config.max_cells_per_fire);
        let charged = self.charge(timer.fee_payer, required, &prices, (cycles, cells, priority));
        let success = status == Status::Success;
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
        if prices.policy == Policy::Eip1559 {
            *till.fires.entry(self.state.fairness_key(actor)).or_default() += 1;
        }
        Some(cycles)
    }

    /// Divides what was set aside for a fire between the burned, the proposer and the payer.
    fn charge(
        &mut self,
        payer: Address,
        set_aside: Wei,
        prices: &Prices,
        (cycles, cells, priority): (u64, u64, Wei),
    ) -> Charged {
        let lane = match prices.policy {
            Policy::Eip1559 => prices.basefee_lane,
            Policy::Fifo | Policy::GbaAuction => Wei::ZERO,
        };
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
        self.state.burned = self.state.burned.saturating_add(charged.burned());
        let lane = &mut self.state.timers.lane;
        lane.burned = lane.burned.saturating_add(charged.burned_lane);
        self.tips = self.tips.saturating_add(charged.tip);
        charged
    }

    /// What the lane's timers leave to the next block.
    pub(super) fn close_lane(&mut self, lane: OpenLane) -> (Used, LaneReport) {
        let OpenLane { mut desk, till } = lane;
        let Till { used, mut report, mut tips, fires, .. } = till;
        let height = self.height();
        let timers = &mut self.state.timers;
        // Transactions after the timers, or handlers, have scheduled and cancelled.
        desk.calendar.apply(&mut timers.queue);
        report.deferred = desk.calendar.counts().carry_over;
        report.p50 = eip1559::p50(&mut tips);
        timers.lane.p50 = report.p50;
        if report.policy == Policy::Eip1559 {
            timers.fairness.record(height, &fires);
            timers.lane.basefee =
                basefee::next_lane(timers.lane.basefee, report.consumed, report.capacity);
        }
        timers.desk = Parked::new(desk);
        (used, report)
    }
}
