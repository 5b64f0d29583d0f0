//! Timers: the waiting ones in the order in which they would fire, the prices of the lane, and
//! fairness.

mod opened;
mod view;

use crate::{
    dashboard::{
        drawing::page,
        look::Look,
        news::{Answer, Ask},
        pane::{Cx, Pane},
        rows::{Cursor, Detail, Pick},
    },
    output::{grouped, timer::has_ended},
};
use cowboy_devnet::types::{
    AddressText, Fairness, FairnessMember, HashText, LaneBlock, Timer, TimerQueue, TimerStatus,
    TimerSummary,
};
use cowboy_engine::{primitives::Wei, timer::Policy};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position, style::Style};
use std::{cmp::Reverse, collections::BTreeMap};

/// The weight of an owner that did not fire in the window, per mille, under `eip1559`.
const UNTOUCHED: u64 = 2_000;

/// The weight of an owner that is not listed, per mille, under `gba-auction`.
const EVEN: u64 = 1_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listed {
    #[default]
    Timers,
    /// How often each owner fired, and whom that favours.
    Fairness,
}

/// The place of a timer in the order of the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneOrder {
    /// It is due, and this is its rank, from 1.
    Rank(usize),
    /// It is due, and its cap is below the price.
    PricedOut,
    /// Its time has passed, and it will be removed.
    Late,
    /// It is due in this many blocks.
    In(u64),
    Ended,
}

impl LaneOrder {
    fn text(self) -> String {
        match self {
            Self::Rank(rank) => format!("#{rank}"),
            Self::PricedOut => "priced out".to_owned(),
            Self::Late => "too late".to_owned(),
            Self::In(blocks) => format!("in {}", grouped(blocks.into())),
            Self::Ended => "-".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing<'a> {
    pub timer: &'a TimerSummary,
    pub place: LaneOrder,
    /// Its weight per mille, if it is due and the policy weighs.
    pub weight: Option<u64>,
}

pub type OpenedTimer = Detail<HashText, Timer>;

#[derive(Debug, Default)]
pub struct Timers {
    pub queue: Option<TimerQueue>,
    /// The lane's figures by block, ascending.
    pub lane: Vec<LaneBlock>,
    pub fairness: Option<Fairness>,
    /// Weights by account, per mille.
    weights: BTreeMap<AddressText, u64>,
    /// The deployer of each actor; empty if actors are counted separately.
    deployers: BTreeMap<AddressText, AddressText>,
    /// Waiting timers, then the latest ends; `None` before the first answer.
    pub timers: Option<Vec<TimerSummary>>,
    pub refused: Option<String>,
    pick: Pick<HashText>,
    member: Cursor,
    pub listed: Listed,
    pub waiting_only: bool,
    pub opened: Option<OpenedTimer>,
}

impl Timers {
    /// The policy of the next block.
    pub fn policy(&self) -> Option<Policy> {
        let told = self.fairness.as_ref().map(|fairness| fairness.policy.as_str());
        Policy::named(told.or_else(|| self.lane.last().map(|block| block.policy.as_str()))?)
    }

    /// The price that a timer's cap has to reach, at the newest block.
    pub fn price(&self, cx: &Cx<'_>) -> Wei {
        match self.policy() {
            Some(Policy::Eip1559) => self.lane.last().map(|block| *block.lane_basefee),
            Some(Policy::GbaAuction) => {
                cx.shared.parameters.as_ref().map(|parameters| *parameters.cycle_basefee)
            }
            Some(Policy::Fifo) | None => None,
        }
        .unwrap_or(Wei::ZERO)
    }

    /// An actor's weight, per mille, if the policy weighs.
    fn weight(&self, actor: &AddressText) -> Option<u64> {
        let counted = self.deployers.get(actor).unwrap_or(actor);
        let listed = self.weights.get(counted).copied();
        match self.policy()? {
            Policy::Eip1559 => Some(listed.unwrap_or(UNTOUCHED)),
            Policy::GbaAuction => Some(listed.unwrap_or(EVEN)),
            Policy::Fifo => None,
        }
    }

    /// All timers: those that are due by rank, then those that could not fire, then the others by
    /// height, then the ended ones.
    ///
    /// Ranks are the lane's order of the declared fees, at the price of the newest block. A bidding
    /// agent may bid something else, and the lane takes what fits.
    pub fn standings(&self, cx: &Cx<'_>) -> Vec<Standing<'_>> {
        let (policy, price, head) = (self.policy(), self.price(cx), cx.shared.height);
        let (mut ranked, mut stuck, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for timer in self.timers.iter().flatten() {
            let standing = |place, weight| Standing { timer, place, weight };
            match timer.status {
                TimerStatus::Scheduled => {
                    rest.push(standing(LaneOrder::In(timer.height.saturating_sub(head)), None));
                }
                TimerStatus::Due if timer.expires_at <= head => {
                    stuck.push(standing(LaneOrder::Late, None));
                }
                TimerStatus::Due => {
                    let weight = self.weight(&timer.actor);
                    match timer.max_fee_per_cycle.checked_sub(price) {
                        None => stuck.push(standing(LaneOrder::PricedOut, weight)),
                        Some(left) => {
                            let priority = left.min(*timer.max_priority_fee_per_cycle).get();
                            let weight_or_even = u128::from(weight.unwrap_or(EVEN));
                            let key = match policy {
                                Some(Policy::Eip1559) => {
                                    (priority.saturating_mul(weight_or_even), weight_or_even)
                                }
                                Some(Policy::GbaAuction) => (priority, weight_or_even),
                                Some(Policy::Fifo) | None => (0, 0),
                            };
                            ranked.push((Reverse(key), timer, weight));
                        }
                    }
                }
                _ => rest.push(standing(LaneOrder::Ended, None)),
            }
        }
        // Under first come, first served, the order is that of the list.
        if !matches!(policy, Some(Policy::Fifo) | None) {
            ranked.sort_by_key(|(key, timer, _)| (*key, timer.height, timer.timer_id));
        }
        let ranked = ranked.into_iter().enumerate().map(|(index, (_, timer, weight))| Standing {
            timer,
            place: LaneOrder::Rank(index + 1),
            weight,
        });
        ranked.chain(stuck).chain(rest).collect()
    }

    pub fn accepted(&self, cx: &Cx<'_>) -> Vec<Standing<'_>> {
        let mut standings = self.standings(cx);
        standings.retain(|standing| {
            let timer = standing.timer;
            !(self.waiting_only && standing.place == LaneOrder::Ended)
                && cx.filter.accepts(&format!(
                    "{} {} {} {} {}",
                    timer.timer_id,
                    timer.actor,
                    timer.handler,
                    status(timer.status),
                    standing.place.text(),
                ))
        });
        standings
    }

    /// Members of the fairness list that the filter accepts.
    pub fn members<'a>(&'a self, cx: &Cx<'_>) -> Vec<&'a FairnessMember> {
        let all = self.fairness.iter().flat_map(|fairness| &fairness.members);
        all.filter(|member| cx.filter.accepts(&member.account.to_string())).collect()
    }

    pub fn cursor(&self, accepted: &[Standing<'_>]) -> Cursor {
        self.pick.cursor(&ids(accepted))
    }

    pub const fn member(&self) -> Cursor {
        self.member
    }
}

fn status(status: TimerStatus) -> String {
    match status {
        TimerStatus::InsufficientFunds => "no funds".to_owned(),
        other => other.to_string(),
    }
}

fn style(status: TimerStatus, look: Look) -> Style {
    match status {
        TimerStatus::Scheduled => Style::new(),
        TimerStatus::Due => look.busy(),
        TimerStatus::Fired => look.good(),
        TimerStatus::Cancelled => look.warn(),
        TimerStatus::Failed | TimerStatus::Expired | TimerStatus::InsufficientFunds => look.bad(),
    }
}

fn ids(standings: &[Standing<'_>]) -> Vec<HashText> {
    standings.iter().map(|standing| standing.timer.timer_id).collect()
}

impl Pane for Timers {
    fn name(&self) -> &'static str {
        "timers"
    }

    fn short(&self) -> &'static str {
        "timer"
    }

    fn wants(&self, _cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = Vec::new();
        if let Some(opened) = &self.opened {
            let known = opened.known.as_ref();
            // An ended timer does not change.
            if known.is_none_or(|timer| !has_ended(timer.status)) {
                wants.push(Ask::Timer(opened.key.to_string()));
            }
        }
        wants.extend([Ask::Timers, Ask::TimerQueue, Ask::Lane, Ask::Fairness]);
        if self.fairness.as_ref().is_some_and(|fairness| fairness.scope == "deployer") {
            wants.push(Ask::Actors);
        }
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, _cx: &Cx<'_>) {
        match (ask, answer) {
            (_, Answer::Timers(timers)) => {
                self.timers = Some(timers.clone());
                self.refused = None;
            }
            (_, Answer::TimerQueue(queue)) => self.queue = Some(queue.clone()),
            (_, Answer::Lane(lane)) => self.lane = lane.clone(),
            (_, Answer::Fairness(fairness)) => {
                let weights = fairness.members.iter();
                self.weights = weights.map(|m| (m.account, m.weight_per_mille)).collect();
                if fairness.scope != "deployer" {
                    self.deployers.clear();
                }
                self.fairness = Some(fairness.clone());
            }
            (_, Answer::Actors(actors)) => {
                self.deployers = actors.iter().map(|actor| (actor.actor, actor.deployer)).collect();
            }
            (Ask::Timer(id), Answer::Timer(timer)) => {
                if let Some(opened) = self.opened.as_mut().filter(|o| o.key.to_string() == *id) {
                    opened.hear(timer.clone());
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Timers => self.refused = Some(reason.to_owned()),
            Ask::Timer(id) => {
                if let Some(opened) = self.opened.as_mut().filter(|o| o.key.to_string() == *id) {
                    opened.refuse(reason);
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        if let Some(opened) = &self.opened {
            let fit = page::rows(cx.area);
            let places = opened::page(self, opened, cx).places(fit);
            return self.opened.as_mut().is_some_and(|opened| opened.first.key(key, places, fit));
        }
        let fit = view::shape(self.listed, cx).rows();
        match (key.code, self.listed) {
            (KeyCode::Char('f'), listed) => {
                self.listed = match listed {
                    Listed::Timers => Listed::Fairness,
                    Listed::Fairness => Listed::Timers,
                };
                (self.pick, self.member) = (Pick::default(), Cursor::default());
                true
            }
            (KeyCode::Char('a'), _) => {
                self.waiting_only = !self.waiting_only;
                true
            }
            (_, Listed::Timers) => {
                let rows = ids(&self.accepted(cx));
                self.pick.key(key, &rows, fit)
            }
            (_, Listed::Fairness) => {
                let count = self.members(cx).len();
                self.member.key(key, count, fit)
            }
        }
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let shape = view::shape(self.listed, cx);
        if self.opened.is_some() || !shape.list.contains(at) {
            return false;
        }
        let Some(line) = at.y.checked_sub(shape.list.y + 2) else { return false };
        match self.listed {
            Listed::Timers => {
                let rows = ids(&self.accepted(cx));
                self.pick.click(line.into(), &rows, shape.rows())
            }
            Listed::Fairness => {
                let count = self.members(cx).len();
                self.member.click(line.into(), count, shape.rows())
            }
        }
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        if self.opened.is_some() || self.listed == Listed::Fairness {
            return false;
        }
        let Some(id) = self.pick.chosen(&ids(&self.accepted(cx))) else { return false };
        self.pick.go(id);
        self.opened = Some(Detail::new(id));
        true
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        let opened = self.opened.as_ref().map(|opened| opened.key);
        Some(match (opened, self.listed) {
            (Some(id), _) => format!("cowboyctl timer show {id}"),
            (None, Listed::Fairness) => "cowboyctl timer fairness".to_owned(),
            (None, Listed::Timers) => match self.pick.chosen(&ids(&self.accepted(cx))) {
                Some(id) => format!("cowboyctl timer show {id}"),
                None => "cowboyctl timer queue".to_owned(),
            },
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move; at the top it stays with the first"),
            ("f", "the fairness list, or the timers"),
            ("a", "only timers that wait, or those that have ended, too"),
            ("enter", "a timer: its place, why it was deferred, what it cost"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        match &self.opened {
            Some(opened) => opened::draw(self, opened, cx, buffer),
            None => view::draw(self, cx, buffer),
        }
    }
}
