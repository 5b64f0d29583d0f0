//! Timers: the waiting ones in the order in which they would fire, the prices of the lane, and
//! fairness.

mod opened;
mod view;

use crate::{
    dashboard::{
        arrangement::Column,
        drawing::page,
        look::Look,
        news::{Answer, Ask},
        pane::{Cx, Pane},
        rows::{Cursor, Detail, Pick},
    },
    output::{
        grouped,
        timer::{has_ended, next},
    },
};
use cowboy_devnet::types::{
    DueFate, DueTimers, Fairness, FairnessMember, HashText, LaneBlock, Timer, TimerQueue,
    TimerStatus, TimerSummary,
};
use cowboy_engine::timer::Policy;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position, style::Style};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listed {
    #[default]
    Timers,
    /// How often each owner fired, and whom that favours.
    Fairness,
}

/// The place of a timer in the lane of the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneOrder {
    /// Its turn, from 1.
    Rank(u64),
    /// It is due and has no rank: its fate in the next block.
    Unranked(DueFate),
    /// It is due, and its rank is not known (yet).
    Due,
    /// It is due in this many blocks.
    In(u64),
    Ended,
}

impl LaneOrder {
    fn text(self) -> String {
        match self {
            Self::Rank(rank) => format!("#{}", grouped(rank.into())),
            Self::Unranked(fate) => next(fate).to_owned(),
            Self::Due => "due".to_owned(),
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
    /// The due timers in the order of the next block's lane.
    pub due: Option<DueTimers>,
    /// Waiting timers, then the latest ends; `None` before the first answer.
    pub timers: Option<Vec<TimerSummary>>,
    pub refused: Option<String>,
    pick: Pick<HashText>,
    member: Cursor,
    pub listed: Listed,
    pub waiting_only: bool,
    pub opened: Option<OpenedTimer>,
    /// The timer under the cursor, which is shown below the list if there is room.
    preview: Option<OpenedTimer>,
}

impl Timers {
    /// The policy of the next block.
    pub fn policy(&self) -> Option<Policy> {
        let told = self.fairness.as_ref().map(|fairness| fairness.policy.as_str());
        Policy::named(told.or_else(|| self.lane.last().map(|block| block.policy.as_str()))?)
    }

    /// All timers: those that are due by rank, then those that could not fire, then the others by
    /// height, then the ended ones.
    pub fn standings(&self, cx: &Cx<'_>) -> Vec<Standing<'_>> {
        let due = self.due.iter().flat_map(|due| &due.timers).enumerate();
        let due: BTreeMap<_, _> =
            due.map(|(index, timer)| (timer.timer_id, (index, timer))).collect();
        let (mut next, mut rest) = (Vec::new(), Vec::new());
        for timer in self.timers.iter().flatten() {
            let standing = |place, weight| Standing { timer, place, weight };
            match (timer.status, due.get(&timer.timer_id)) {
                (TimerStatus::Due, Some((index, due))) => {
                    let place = due.rank.map_or(LaneOrder::Unranked(due.next), LaneOrder::Rank);
                    next.push((*index, standing(place, due.weight_per_mille)));
                }
                (TimerStatus::Due, None) => {
                    next.push((usize::MAX, standing(LaneOrder::Due, None)));
                }
                (TimerStatus::Scheduled, _) => {
                    let blocks = timer.height.saturating_sub(cx.shared.height);
                    rest.push(standing(LaneOrder::In(blocks), None));
                }
                _ => rest.push(standing(LaneOrder::Ended, None)),
            }
        }
        next.sort_by_key(|(index, _)| *index);
        next.into_iter().map(|(_, standing)| standing).chain(rest).collect()
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
        cx.arrangement.sort(&mut standings, view::key);
        standings
    }

    /// The areas of the pane.
    pub fn shape(&self, cx: &Cx<'_>) -> view::TimerAreas {
        view::shape(self.listed, self.timers.as_ref().map_or(0, Vec::len), cx)
    }

    /// The timer under the cursor, if it is known.
    fn preview(&self, cx: &Cx<'_>) -> Option<&OpenedTimer> {
        let chosen = self.chosen(cx)?;
        self.preview.as_ref().filter(|preview| preview.key == chosen)
    }

    fn chosen(&self, cx: &Cx<'_>) -> Option<HashText> {
        self.pick.chosen(&ids(&self.accepted(cx)))
    }

    /// The opened timer, or the one under the cursor, if it has this id.
    fn shown(&mut self, id: &str, chosen: Option<HashText>) -> Option<&mut OpenedTimer> {
        if self.opened.is_some() {
            return self.opened.as_mut().filter(|opened| opened.key.to_string() == id);
        }
        let chosen = chosen.filter(|chosen| chosen.to_string() == id)?;
        if self.preview.as_ref().is_none_or(|preview| preview.key != chosen) {
            self.preview = Some(Detail::new(chosen));
        }
        self.preview.as_mut()
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

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = Vec::new();
        let (shown, key) = match &self.opened {
            Some(opened) => (Some(opened), Some(opened.key)),
            None if self.shape(cx).below.height > 0 => (self.preview(cx), self.chosen(cx)),
            None => (None, None),
        };
        if let Some(key) = key {
            let known = shown.and_then(|shown| shown.known.as_ref());
            // An ended timer does not change.
            if known.is_none_or(|timer| !has_ended(timer.status)) {
                wants.push(Ask::Timer(key.to_string()));
            }
        }
        wants.extend([Ask::Timers, Ask::Due, Ask::TimerQueue, Ask::Lane, Ask::Fairness]);
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (_, Answer::Timers(timers)) => {
                self.timers = Some(timers.clone());
                self.refused = None;
            }
            (_, Answer::TimerQueue(queue)) => self.queue = Some(queue.clone()),
            (_, Answer::Lane(lane)) => self.lane = lane.clone(),
            (_, Answer::Due(due)) => self.due = Some(due.clone()),
            (_, Answer::Fairness(fairness)) => self.fairness = Some(fairness.clone()),
            (Ask::Timer(id), Answer::Timer(timer)) => {
                if let Some(opened) = self.shown(id, self.chosen(cx)) {
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
                if let Some(opened) = self.shown(id, id.parse().ok()) {
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
        let fit = self.shape(cx).rows();
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
        let shape = self.shape(cx);
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
        let Some(id) = self.chosen(cx) else { return false };
        self.pick.go(id);
        let preview = self.preview.take().filter(|preview| preview.key == id);
        self.opened = Some(preview.unwrap_or_else(|| Detail::new(id)));
        true
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn columns(&self) -> &'static [Column] {
        match (&self.opened, self.listed) {
            (None, Listed::Timers) => &view::COLUMNS,
            _ => &[],
        }
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
            None => {
                view::draw(self, cx, buffer);
                let below = self.shape(cx).below;
                if let Some(preview) = self.preview(cx).filter(|_| below.height > 0) {
                    opened::draw(self, preview, &Cx { area: below, ..*cx }, buffer);
                }
            }
        }
    }
}
