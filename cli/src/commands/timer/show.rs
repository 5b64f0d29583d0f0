//! Text output for timers.

use crate::output::{
    Document, Row, amount, any_rows, any_table, columns, decoded, fields, named, or_dash,
    paragraphs, short, table,
    timer::{evenly, has_ended, median, tier, weight, why},
    wei,
};
use cowboy_devnet::types::{
    Deferral, Fairness, Timer, TimerBucket, TimerCharge, TimerQueue, TimerStatus, TimerSummary,
};
use cowboy_engine::timer::Policy;

pub fn standing(timer: &Timer) -> String {
    match (timer.status, timer.deferrals.last()) {
        (TimerStatus::Scheduled, _) => format!("scheduled for {}", timer.height),
        (TimerStatus::Due, Some(Deferral { to, reason, .. })) => {
            format!("due since {}, {} in block {to}", timer.height, why(*reason))
        }
        (TimerStatus::Due, None) => format!("due since {}", timer.height),
        (ended, _) => ended.to_string(),
    }
}

/// The parts of the payer's charge, as fields; empty if the timer did not fire.
pub fn charge_fields(
    charge: Option<&TimerCharge>,
    cycles: Option<u64>,
    cells: Option<u64>,
) -> Vec<(&'static str, String)> {
    let Some(charge) = charge else { return Vec::new() };
    let TimerCharge { burned_cycle, burned_lane, tip, cells: of_cells, refunded } = charge;
    let paid = [burned_lane, tip, of_cells]
        .into_iter()
        .fold(**burned_cycle, |sum, part| sum.saturating_add(**part));
    let units = |units: Option<u64>| units.unwrap_or_default();
    let parts =
        [("basefee", burned_cycle), ("lane", burned_lane), ("tip", tip), ("cells", of_cells)];
    let parts = parts.map(|(name, part)| format!("{name} {}", amount(**part)));
    vec![
        ("used", format!("{} cycles, {} cells", units(cycles), units(cells))),
        ("paid", format!("{} ({})", amount(paid), parts.join(", "))),
        ("refunded", amount(**refunded)),
    ]
}

impl Row for TimerSummary {
    columns! { self;
        "timer" => self.timer_id.to_string(),
        "name" => or_dash(self.name.clone()),
        "actor" => self.actor_name.clone().unwrap_or_else(|| short(&self.actor)),
        "handler" => self.handler.clone(),
        ">height" => self.height.to_string(),
        ">expires at" => self.expires_at.to_string(),
        "status" => self.status.to_string(),
        "tier" => or_dash(self.tier.map(tier)),
        ">fired at" => or_dash(self.fired_at),
        ">max fee" => wei(*self.max_fee_per_cycle),
    }
    const LEAST: &'static [&'static str] = &["max fee", "expires at", "tier", "actor"];

    fn id(&self) -> String {
        self.timer_id.to_string()
    }
}

/// The longest payload shown, in characters; JSON output is not cut.
const PAYLOAD_CHARS: usize = 200;

fn brief(text: &str) -> String {
    match text.char_indices().nth(PAYLOAD_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Document for Timer {
    fn text(&self) -> String {
        let payload = &self.payload.0.0;
        let payload = if payload.is_empty() { String::new() } else { decoded(payload) };
        let per_cycle =
            |wei_per: cowboy_engine::primitives::Wei| format!("{} per cycle at most", wei(wei_per));
        let mut lines = vec![
            ("timer", named(self.name.as_deref(), &self.timer_id)),
            ("actor", named(self.actor_name.as_deref(), &self.actor)),
            ("handler", self.handler.clone()),
            ("payload", brief(&payload)),
            ("status", standing(self)),
            ("height", self.height.to_string()),
            ("scheduled at", self.scheduled_at.to_string()),
            ("expires at", self.expires_at.to_string()),
        ];
        lines.extend(self.tier.map(|place| ("tier", tier(place).to_owned())));
        if let Some(height) = self.fired_at.or(self.ended_at) {
            let late = height.saturating_sub(self.height);
            let late = if late > 0 { format!(" ({late} blocks late)") } else { String::new() };
            let name = if self.fired_at.is_some() { "fired at" } else { "ended at" };
            lines.push((name, format!("{height}{late}")));
        }
        lines.push(("gas limit", format!("{} cycles", self.gas_limit)));
        lines.push(("cell limit", format!("{} cells", self.cell_limit)));
        match (&self.gba, &self.bid) {
            (Some(gba), Some(bid)) => {
                let failed = if bid.failed { " (failed: the default bid)" } else { "" };
                lines.push(("bids", format!("{gba}{failed}")));
                lines.push(("fee", per_cycle(*bid.max_fee_per_cycle)));
                lines.push(("priority", per_cycle(*bid.max_priority_fee_per_cycle)));
            }
            (gba, _) => {
                if let Some(gba) = gba {
                    let asked =
                        if has_ended(self.status) { "never asked" } else { "not asked yet" };
                    lines.push(("bids", format!("{gba} ({asked}: the default bid)")));
                }
                lines.push(("fee", per_cycle(*self.max_fee_per_cycle)));
                lines.push(("priority", per_cycle(*self.max_priority_fee_per_cycle)));
            }
        }
        lines.push(("payer", self.fee_payer.to_string()));
        if let Some(promised) = &self.promised {
            lines.push(("promised", format!("{} at most", amount(**promised))));
        }
        if let Some(max_cost) = &self.max_cost {
            let has = amount(*self.payer_balance);
            lines.push(("costs at most", format!("{} (the payer has {has})", amount(**max_cost))));
        }
        lines.extend(charge_fields(self.charged.as_ref(), self.cycles, self.cells));
        lines.extend(self.error.as_ref().map(|error| ("error", error.clone())));
        lines.extend(self.result.as_ref().map(|result| ("result", result.to_string())));
        if self.deferred_blocks > 0 {
            lines.push(("deferred", format!("in {} blocks", self.deferred_blocks)));
        }
        let deferrals = self.deferrals.iter().map(|deferral| {
            let Deferral { from, to, reason, explanation } = deferral;
            let blocks = if from == to { from.to_string() } else { format!("{from}-{to}") };
            vec![blocks, why(*reason).to_owned(), explanation.clone()]
        });
        paragraphs([
            fields(&lines),
            any_table(&[">blocks", "deferred", "why"], deferrals),
            any_table(&["log"], self.log.iter().map(|line| vec![line.clone()])),
            any_rows(&self.events),
        ])
    }

    fn id(&self) -> String {
        self.timer_id.to_string()
    }
}

/// The number of buckets shown per tier; JSON output has all.
const BUCKETS: usize = 20;

impl Document for TimerQueue {
    fn text(&self) -> String {
        let count =
            |buckets: &[TimerBucket]| buckets.iter().map(|bucket| bucket.timers).sum::<u64>();
        let next = self.epoch_blocks - self.height % self.epoch_blocks;
        let tiers = [
            ("carry-over", self.carry_over, "due, and not fired yet".to_owned()),
            ("block ring", count(&self.ring), "by height".to_owned()),
            (
                "epoch queue",
                count(&self.epochs),
                format!("by epoch; the next begins in {next} blocks"),
            ),
            ("overflow tree", self.overflow, "beyond the epoch queue".to_owned()),
        ];
        let head = fields(&[
            ("after block", self.height.to_string()),
            ("epoch", format!("{} of {} blocks", self.epoch, self.epoch_blocks)),
            ("root", self.root.to_string()),
            ("timers", self.timers.to_string()),
        ]);
        let rows =
            tiers.map(|(tier, timers, what)| vec![tier.to_owned(), timers.to_string(), what]);
        let buckets = |name: &str, buckets: &[TimerBucket]| {
            let shown = buckets.iter().take(BUCKETS);
            let rows = shown.map(|bucket| vec![bucket.at.to_string(), bucket.timers.to_string()]);
            let text = any_table(&[name, ">timers"], rows);
            match buckets.len().saturating_sub(BUCKETS) {
                0 => text,
                more => format!("{text}\nand {more} more: -o json has all"),
            }
        };
        paragraphs([
            head,
            table(&["tier", ">timers", "what"], rows),
            buckets(">height", &self.ring),
            buckets(">epoch", &self.epochs),
        ])
    }

    fn id(&self) -> String {
        self.timers.to_string()
    }
}

impl Document for Fairness {
    fn text(&self) -> String {
        let (priced, counted) =
            (self.policy == Policy::Eip1559.name(), self.policy != Policy::Fifo.name());
        let mut lines =
            vec![("after block", self.height.to_string()), ("policy", self.policy.clone())];
        if counted {
            lines.push(("counted by", self.scope.clone()));
            lines.push(("window", format!("{} blocks", self.window_blocks)));
        }
        if priced {
            lines.push((
                "median",
                format!("{} fires, of those that fired", median(self.twice_median)),
            ));
        }
        let mut text = fields(&lines) + "\n\n";
        if self.members.is_empty() {
            return text + evenly(&self.policy);
        }
        let rows = self.members.iter().map(|member| {
            vec![
                member.account.to_string(),
                member.recent.to_string(),
                weight(member.weight_per_mille),
            ]
        });
        text += &table(&[&self.scope, ">fires", ">weight"], rows);
        text
    }

    fn id(&self) -> String {
        self.members.iter().map(|member| member.account.to_string()).collect::<Vec<_>>().join("\n")
    }
}
