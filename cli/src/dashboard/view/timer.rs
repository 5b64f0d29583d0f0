//! A timer in full: where it stands, why it was deferred, what it cost, what it did.

use super::{
    lines as draw_lines, section,
    timers::{place, status, style, weight},
    wrapped,
};
use crate::{
    dashboard::{
        look::Look,
        panes::{Cx, Opened, Place, Timers, fields},
        text::fit,
    },
    output::{amount, grouped, wei},
};
use cowboy_devnet::api::types::{Deferral, DeferralReason, Event, Timer, TimerTier};
use ratatui::{
    buffer::Buffer,
    style::Style,
    text::{Line, Span},
};

/// The width of the names of facts.
const NAME: usize = 15;

/// The longest payload shown; JSON output has it whole.
const PAYLOAD: usize = 200;

/// Rows of a timer that fit.
pub fn rows(cx: &Cx<'_>) -> usize {
    cx.area.height.saturating_sub(1).into()
}

/// Draws it.
pub fn draw(pane: &Timers, opened: &Opened, cx: &Cx<'_>, buffer: &mut Buffer) {
    let room = usize::from(cx.area.width).saturating_sub(12);
    let title = format!("timer {}", fit(&opened.id.to_string(), room));
    let area = section(&title, cx.area, cx.look, buffer);
    let all = lines(pane, opened, cx);
    let last = all.len().saturating_sub(rows(cx));
    draw_lines(all.into_iter().skip(opened.first.of(last + 1)), area, buffer);
}

/// All of it, in lines.
pub fn lines(pane: &Timers, opened: &Opened, cx: &Cx<'_>) -> Vec<Line<'static>> {
    let Some(timer) = &opened.timer else {
        let text = opened.refused.clone().unwrap_or_else(|| "asking".to_owned());
        return vec![Line::styled(text, cx.look.faint())];
    };
    let mut sheet = Sheet { look: cx.look, width: cx.area.width, lines: Vec::new() };
    sheet.standing(timer, pane, cx);
    sheet.deferrals(timer);
    sheet.terms(timer);
    sheet.charge(timer);
    sheet.outcome(timer);
    sheet.events(&timer.events);
    sheet.lines
}

const fn tier(tier: TimerTier) -> &'static str {
    match tier {
        TimerTier::Ring => "block ring",
        TimerTier::Epoch => "epoch queue",
        TimerTier::Overflow => "overflow tree",
        TimerTier::CarryOver => "carry-over",
    }
}

const fn why(reason: DeferralReason) -> &'static str {
    match reason {
        DeferralReason::PricedOut => "priced out",
        DeferralReason::OverCap => "over the cap",
        DeferralReason::LaneFull => "lane full",
        DeferralReason::InsufficientFunds => "payer short of funds",
        DeferralReason::GcWaiting => "too late, not removed yet",
    }
}

/// Lines that are written one after the other.
struct Sheet {
    look: Look,
    width: u16,
    lines: Vec<Line<'static>>,
}

impl Sheet {
    /// A name and what it stands for, which goes on below where it is too long.
    fn fact(&mut self, name: &str, value: &str) {
        self.styled(name, value, Style::new());
    }

    fn styled(&mut self, name: &str, value: &str, style: Style) {
        let room = self.width.saturating_sub(NAME as u16);
        // A hash stays on its line.
        let parts = match value.contains(' ') {
            true => wrapped(value, room),
            false => vec![fit(value, room.into())],
        };
        for (index, part) in parts.into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let name = Span::styled(format!("{name:<NAME$}"), self.look.faint());
            self.lines.push(Line::from(vec![name, Span::styled(part, style)]));
        }
    }

    fn heading(&mut self, text: &str) {
        self.lines.push(Line::default());
        self.lines.push(Line::styled(text.to_owned(), self.look.title()));
    }

    fn standing(&mut self, timer: &Timer, pane: &Timers, cx: &Cx<'_>) {
        let standings = pane.standings(cx);
        let standing = standings.iter().find(|known| known.timer.timer_id == timer.timer_id);
        let ranked = standings.iter().filter(|s| matches!(s.place, Place::Rank(_))).count();
        let mut text = status(timer.status).to_owned();
        if let Some(tier) = timer.tier.map(tier) {
            text += &format!(", in the {tier}");
        }
        match standing.map(|standing| standing.place) {
            Some(Place::Rank(rank)) => {
                text += &format!(
                    ", {} of {ranked} in the next block's order",
                    place(Place::Rank(rank))
                );
            }
            Some(at @ (Place::PricedOut | Place::Late)) => text += &format!(", {}", place(at)),
            Some(at @ Place::In(_)) => text += &format!(", {} blocks", place(at)),
            Some(Place::Ended) | None => {}
        }
        self.styled("status", &text, style(timer.status, cx.look));
        let mut text = grouped(timer.height.into());
        if let Some(height) = timer.fired_at.or(timer.ended_at) {
            let verb = if timer.fired_at.is_some() { "fired" } else { "ended" };
            text += &format!(", {verb} at {}", grouped(height.into()));
            match height.saturating_sub(timer.height) {
                0 => {}
                late => text += &format!(", {} blocks late", grouped(late.into())),
            }
        }
        self.fact("due at", &text);
        let (from, to) = (grouped(timer.scheduled_at.into()), grouped(timer.expires_at.into()));
        self.fact("lives", &format!("from {from}, where it was scheduled, to {to}"));
        if let Some(error) = &timer.error {
            self.styled("error", error, self.look.bad());
        }
        if let Some(per_mille) = standing.and_then(|standing| standing.weight) {
            self.fact("weight", &weight(per_mille));
        }
    }

    /// Why it did not fire, the newest first.
    fn deferrals(&mut self, timer: &Timer) {
        if timer.deferrals.is_empty() {
            return;
        }
        let blocks = grouped(timer.deferred_blocks.into());
        self.heading(&format!("deferred in {blocks} blocks"));
        for Deferral { from, to, reason, explanation } in timer.deferrals.iter().rev() {
            let blocks = match from == to {
                true => grouped((*from).into()),
                false => format!("{} to {}", grouped((*from).into()), grouped((*to).into())),
            };
            let name = Span::styled(format!("{blocks:<14} "), self.look.faint());
            let why = Span::styled(why(*reason), self.look.warn());
            self.lines.push(Line::from(vec![name, why]));
            self.fact("", explanation);
        }
    }

    /// What was asked for, and who pays.
    fn terms(&mut self, timer: &Timer) {
        self.heading("terms");
        self.fact("actor", &timer.actor.to_string());
        self.fact("handler", &timer.handler);
        let payload = timer.payload_text.clone().unwrap_or_else(|| timer.payload.to_string());
        if !payload.is_empty() && payload != "0x" {
            let payload: String =
                payload.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.fact("payload", &fit(&payload, PAYLOAD));
        }
        self.fact("gas limit", &format!("{} cycles", grouped(timer.gas_limit.into())));
        let fees = |max_fee, priority| {
            format!("{} per cycle at most, {} of it as priority", wei(max_fee), wei(priority))
        };
        match (&timer.gba, &timer.bid) {
            (Some(gba), Some(bid)) => {
                self.fact("bid", &fees(*bid.max_fee_per_cycle, *bid.max_priority_fee_per_cycle));
                let cycles = grouped(bid.cycles.into());
                self.fact("bidding agent", &format!("{gba} ({cycles} cycles)"));
            }
            (Some(gba), None) => self.fact("bidding agent", &format!("{gba} (not asked yet)")),
            (None, _) => {
                let text = fees(*timer.max_fee_per_cycle, *timer.max_priority_fee_per_cycle);
                self.fact("fee", &text);
            }
        }
        self.fact("payer", &timer.fee_payer.to_string());
        let has = amount(*timer.payer_balance);
        match &timer.max_cost {
            Some(cost) if **cost > *timer.payer_balance => {
                let text = format!("{} at most, and the payer has {has}", amount(**cost));
                self.styled("costs", &text, self.look.bad());
            }
            Some(cost) => {
                self.fact("costs", &format!("{} at most; the payer has {has}", amount(**cost)));
            }
            None => self.fact("payer has", &has),
        }
    }

    /// Where the money went.
    fn charge(&mut self, timer: &Timer) {
        let Some(charge) = &timer.charged else { return };
        self.heading("charged");
        let units = |units: Option<u64>| grouped(units.unwrap_or_default().into());
        let used = format!("{} cycles, {} cells", units(timer.cycles), units(timer.cells));
        self.fact("used", &used);
        let parts = [
            ("cycle basefee", charge.burned_cycle, "burned"),
            ("lane basefee", charge.burned_lane, "burned"),
            ("cells", charge.cells, "burned"),
            ("tip", charge.tip, "to the proposer"),
            ("refunded", charge.refunded, "to the payer"),
        ];
        for (name, part, to) in parts {
            self.fact(name, &format!("{}, {to}", amount(*part)));
        }
    }

    fn outcome(&mut self, timer: &Timer) {
        if let Some(result) = &timer.result {
            self.heading("result");
            let parts = wrapped(&result.to_string(), self.width);
            self.lines.extend(parts.into_iter().map(Line::raw));
        }
        if !timer.log.is_empty() {
            self.heading("log");
            for line in &timer.log {
                let parts = wrapped(line, self.width);
                self.lines.extend(parts.into_iter().map(Line::raw));
            }
        }
    }

    fn events(&mut self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        self.heading("events");
        for event in events {
            let height = grouped(event.height.into());
            let told = fields(&event.data);
            let room = usize::from(self.width).saturating_sub(NAME + 26);
            let name = Span::styled(format!("{height:<NAME$}"), self.look.faint());
            let kind = Span::raw(format!("{:<25} ", event.kind));
            let told = Span::styled(fit(&told, room), self.look.faint());
            self.lines.push(Line::from(vec![name, kind, told]));
        }
    }
}
