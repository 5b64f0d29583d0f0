//! A timer in full: its place, why it was deferred, its cost, its effects.

use super::{LaneOrder, OpenedTimer, Timers, status, style};
use crate::{
    dashboard::{
        drawing::{page::Page, section},
        pane::Cx,
        panes::events::happened,
    },
    output::{
        amount, cut, grouped,
        timer::{has_ended, tier, weight, why},
        wei,
    },
};
use cowboy_devnet::types::{Deferral, Timer};
use ratatui::{buffer::Buffer, style::Style};

/// The longest payload shown, in characters; JSON output is not cut.
const PAYLOAD: usize = 200;

pub fn draw(pane: &Timers, opened: &OpenedTimer, cx: &Cx<'_>, buffer: &mut Buffer) {
    let area = section(&format!("timer {}", opened.key), cx.area, cx.look, buffer);
    page(pane, opened, cx).draw(opened.first, area, buffer);
}

pub fn page(pane: &Timers, opened: &OpenedTimer, cx: &Cx<'_>) -> Page {
    let mut page = Page::new(cx.area.width, cx.look);
    let Some(timer) = &opened.known else {
        page.text(opened.refused.as_deref().unwrap_or("asking"), cx.look.faint());
        return page;
    };
    standing(timer, pane, cx, &mut page);
    deferrals(timer, cx, &mut page);
    terms(timer, cx, &mut page);
    charge(timer, &mut page);
    outcome(timer, &mut page);
    if !timer.events.is_empty() {
        page.title("events");
        let events = timer.events.iter();
        happened(&mut page, events.map(|event| (event.height, &*event.kind, &event.data)));
    }
    page
}

fn standing(timer: &Timer, pane: &Timers, cx: &Cx<'_>, page: &mut Page) {
    let standings = pane.standings(cx);
    let standing = standings.iter().find(|known| known.timer.timer_id == timer.timer_id);
    let ranked = grouped(pane.due.as_ref().map_or(0, |due| due.ranked).into());
    let mut text = status(timer.status);
    if let Some(tier) = timer.tier.map(tier) {
        text += &format!(", in the {tier}");
    }
    match standing.map(|standing| standing.place) {
        Some(at @ LaneOrder::Rank(_)) => {
            text += &format!(", {} of {ranked} in the next block's order", at.text());
        }
        Some(at @ LaneOrder::Unranked(_)) => text += &format!(", {}", at.text()),
        Some(at @ LaneOrder::In(_)) => text += &format!(", {} blocks", at.text()),
        Some(LaneOrder::Due | LaneOrder::Ended) | None => {}
    }
    page.fact("status", &text, style(timer.status, cx.look));
    let mut text = grouped(timer.height.into());
    if let Some(height) = timer.fired_at.or(timer.ended_at) {
        let verb = if timer.fired_at.is_some() { "fired" } else { "ended" };
        text += &format!(", {verb} at {}", grouped(height.into()));
        match height.saturating_sub(timer.height) {
            0 => {}
            1 => text += ", 1 block late",
            late => text += &format!(", {} blocks late", grouped(late.into())),
        }
    }
    page.plain("due at", &text);
    let (from, to) = (grouped(timer.scheduled_at.into()), grouped(timer.expires_at.into()));
    page.plain("lives", &format!("from {from}, where it was scheduled, to {to}"));
    if let Some(error) = &timer.error {
        page.fact("error", error, cx.look.bad());
    }
    if let Some(per_mille) = standing.and_then(|standing| standing.weight) {
        page.plain("weight", &weight(per_mille));
    }
}

/// Adds the reasons why it did not fire, newest first.
fn deferrals(timer: &Timer, cx: &Cx<'_>, page: &mut Page) {
    match timer.deferred_blocks {
        _ if timer.deferrals.is_empty() => return,
        1 => page.title("deferred in 1 block"),
        blocks => page.title(&format!("deferred in {} blocks", grouped(blocks.into()))),
    }
    for Deferral { from, to, reason, explanation } in timer.deferrals.iter().rev() {
        let blocks = match from == to {
            true => grouped((*from).into()),
            false => format!("{} to {}", grouped((*from).into()), grouped((*to).into())),
        };
        page.text(&format!("{blocks}: {}", why(*reason)), cx.look.warn());
        page.plain("", explanation);
    }
}

/// Adds what was requested, and who pays.
fn terms(timer: &Timer, cx: &Cx<'_>, page: &mut Page) {
    page.title("terms");
    page.plain("actor", &timer.actor.to_string());
    page.plain("handler", &timer.handler);
    let payload = timer.payload_text.clone().unwrap_or_else(|| timer.payload.to_string());
    if !payload.is_empty() && payload != "0x" {
        page.plain("payload", &cut(&payload.replace(char::is_control, " "), PAYLOAD));
    }
    let (cycles, cells) = (grouped(timer.gas_limit.into()), grouped(timer.cell_limit.into()));
    page.plain("gas limit", &format!("{cycles} cycles, {cells} cells"));
    let fees = |max_fee, priority| {
        format!("{} per cycle at most, {} of it as priority", wei(max_fee), wei(priority))
    };
    match (&timer.gba, &timer.bid) {
        (Some(gba), Some(bid)) => {
            page.plain("bid", &fees(*bid.max_fee_per_cycle, *bid.max_priority_fee_per_cycle));
            let failed = if bid.failed { " (failed; this is the default bid)" } else { "" };
            page.plain("bidding agent", &format!("{gba}{failed}"));
        }
        (Some(gba), None) => {
            let asked = if has_ended(timer.status) { "never asked" } else { "not asked yet" };
            page.plain("bidding agent", &format!("{gba} ({asked}; the default bid counts)"));
        }
        (None, _) => {
            let text = fees(*timer.max_fee_per_cycle, *timer.max_priority_fee_per_cycle);
            page.plain("fee", &text);
        }
    }
    page.plain("payer", &timer.fee_payer.to_string());
    if let Some(promised) = &timer.promised {
        page.plain("promised", &format!("{} at most", amount(**promised)));
    }
    let has = amount(*timer.payer_balance);
    match &timer.max_cost {
        Some(cost) if **cost > *timer.payer_balance => {
            let text = format!("{} at most, and the payer has {has}", amount(**cost));
            page.fact("costs", &text, cx.look.bad());
        }
        Some(cost) => {
            page.plain("costs", &format!("{} at most; the payer has {has}", amount(**cost)));
        }
        None => page.plain("payer has", &has),
    }
}

fn charge(timer: &Timer, page: &mut Page) {
    let Some(charge) = &timer.charged else { return };
    page.title("charged");
    let units = |units: Option<u64>| grouped(units.unwrap_or_default().into());
    page.plain("used", &format!("{} cycles, {} cells", units(timer.cycles), units(timer.cells)));
    let parts = [
        ("cycle basefee", charge.burned_cycle, "burned"),
        ("lane basefee", charge.burned_lane, "burned"),
        ("cells", charge.cells, "burned"),
        ("tip", charge.tip, "to the proposer"),
        ("refunded", charge.refunded, "to the payer"),
    ];
    for (name, part, to) in parts {
        page.plain(name, &format!("{}, {to}", amount(*part)));
    }
}

fn outcome(timer: &Timer, page: &mut Page) {
    if let Some(result) = &timer.result {
        page.title("result");
        page.text(&result.to_string(), Style::new());
    }
    if !timer.log.is_empty() {
        page.title("log");
        for line in &timer.log {
            page.text(line, Style::new());
        }
    }
}
