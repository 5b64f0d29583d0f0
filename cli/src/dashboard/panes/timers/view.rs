//! The queue, the lane, and the timers in the order in which they would fire.

use super::{LaneOrder, Listed, Standing, Timers, status, style};
use crate::{
    dashboard::{
        arrangement::SortKey,
        drawing::{
            Cell, Column, beneath,
            chart::{Chart, ChartEnd},
            facts::{self, Facts},
            grid, lines, list_grid, plain, section, unlike, wrapped,
        },
        look::Look,
        pane::Cx,
    },
    output::{
        grouped,
        timer::{evenly, has_ended, median, weight},
        wei,
    },
};
use cowboy_devnet::types::{Fairness, LaneBlock, TimerBucket, TimerStatus};
use cowboy_engine::timer::Policy;
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};

/// The minimum rows of the pane for facts.
const LOW: u16 = 16;

/// The minimum rows of a chart, including its rule.
const CHART_ROWS: u16 = 4;

/// Columns for the scale of a chart.
const SCALE: u16 = 8;

/// Rows of facts, including their rule.
const FACTS: u16 = 6;

/// The minimum width to show charts and fairness next to the list.
const WIDE: u16 = 160;

/// The width of these charts.
const SIDE: u16 = 66;

const CHART: u16 = 38;

/// The columns of timers, the most important first; narrow terminals show fewer.
pub const COLUMNS: [Column; 10] = [
    Column::number("rank"),
    Column::long("timer"),
    Column::text("status"),
    Column::number("height"),
    Column::long("handler"),
    Column::number("max fee"),
    Column::number("priority"),
    Column::number("weight"),
    Column::number("expires"),
    Column::long("actor"),
];

const MEMBERS: [Column; 3] =
    [Column::long("account"), Column::number("fires"), Column::number("weight")];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerAreas {
    facts: Rect,
    charts: Vec<Rect>,
    /// The list, including its rule and header.
    pub list: Rect,
    fairness: Option<Rect>,
    /// The timer under the cursor, if there is room below the list.
    pub below: Rect,
}

impl TimerAreas {
    pub fn rows(&self) -> usize {
        self.list.height.saturating_sub(2).into()
    }
}

/// The areas, with a list of `rows` timers.
pub fn shape(listed: Listed, rows: usize, cx: &Cx<'_>) -> TimerAreas {
    let rows = if listed == Listed::Timers { rows } else { 0 };
    let area = cx.area;
    if area.width >= WIDE {
        let left = Rect { width: area.width - SIDE - 2, ..area };
        let side = Rect { x: left.right() + 2, width: SIDE, ..area };
        let facts = Rect { height: FACTS.min(left.height), ..left };
        let list = Rect { y: facts.bottom(), height: left.height - facts.height, ..left };
        // The list may be the fairness list itself.
        let height = if listed == Listed::Timers { side.height / 6 } else { side.height / 4 };
        let charts = (0..4).map(|row| Rect { y: side.y + row * height, height, ..side }).collect();
        let below = 4 * height;
        let fairness = Rect { y: side.y + below, height: side.height - below, ..side };
        let fairness = Some(fairness).filter(|_| listed == Listed::Timers);
        let (list, below) = beneath(list, rows);
        return TimerAreas { facts, charts, list, fairness, below };
    }
    let facts = if area.height < LOW { 0 } else { FACTS };
    let facts = Rect { height: facts, ..area };
    let rest = Rect { y: facts.bottom(), height: area.height - facts.height, ..area };
    let height = match (rest.height / 4).min(9) {
        0..CHART_ROWS => 0,
        height => height,
    };
    let count = (area.width / CHART).max(1);
    let width = area.width / count;
    let chart = |column: u16| {
        let gap = u16::from(column + 1 < count) * 2;
        Rect { x: rest.x + column * width, width: width.saturating_sub(gap), height, ..rest }
    };
    let list = Rect { y: rest.y + height, height: rest.height - height, ..rest };
    let (list, below) = beneath(list, rows);
    TimerAreas { facts, charts: (0..count).map(chart).collect(), list, fairness: None, below }
}

fn percent(per_mille: u64) -> String {
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

pub fn draw(pane: &Timers, cx: &Cx<'_>, buffer: &mut Buffer) {
    let shape = pane.shape(cx);
    draw_facts(pane, cx, shape.facts, buffer);
    draw_charts(pane, &shape.charts, cx, buffer);
    match pane.listed {
        Listed::Timers => draw_timers(pane, &shape, cx, buffer),
        Listed::Fairness => {
            let cursor = pane.member();
            let count = pane.members(cx).len();
            let window = cursor.window(count, shape.rows());
            let selected = cursor.of(count).checked_sub(window.start);
            draw_members(pane, (window.start, selected), shape.list, cx, buffer);
        }
    }
    if let Some(area) = shape.fairness {
        draw_members(pane, (0, None), area, cx, buffer);
    }
}

fn draw_facts(pane: &Timers, cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    let look = cx.look;
    let height = pane.queue.as_ref().map(|queue| grouped(queue.height.into()));
    let title = height.map_or_else(|| "queue".to_owned(), |h| format!("queue after block {h}"));
    let area = section(&title, area, look, buffer);
    facts::draw(&queue(pane), &lane(pane), area, look, buffer);
}

fn counted(buckets: &[TimerBucket]) -> u64 {
    buckets.iter().map(|bucket| bucket.timers).sum()
}

fn queue(pane: &Timers) -> Facts {
    let text = |count: u64, more: Option<String>| match more.filter(|_| count > 0) {
        Some(more) => format!("{}, {more}", grouped(count.into())),
        None => grouped(count.into()),
    };
    let Some(queue) = &pane.queue else {
        let reason = pane.refused.clone().unwrap_or_else(|| "asking".to_owned());
        return vec![("timers", facts::raw(reason))];
    };
    let next = queue.ring.iter().find(|bucket| bucket.timers > 0);
    let next = next.map(|bucket| format!("next at {}", grouped(bucket.at.into())));
    let blocks = queue.epoch_blocks.max(1);
    let epoch = blocks - queue.height % blocks;
    let facts = [
        ("carry-over", text(queue.carry_over, Some("due, not fired yet".to_owned()))),
        ("block ring", text(counted(&queue.ring), next)),
        (
            "epoch queue",
            text(counted(&queue.epochs), Some(format!("next in {} blocks", grouped(epoch.into())))),
        ),
        ("overflow", text(queue.overflow, Some("beyond the epochs".to_owned()))),
        ("fairness", pane.fairness.as_ref().map_or_else(String::new, |f| fairness(f, pane))),
    ];
    facts.map(|(name, text)| (name, facts::raw(text))).into()
}

fn fairness(fairness: &Fairness, pane: &Timers) -> String {
    match pane.policy() {
        Some(Policy::Eip1559) => {
            let median = median(fairness.twice_median);
            let median = median.trim_end_matches(".0");
            let window = grouped(fairness.window_blocks.into());
            format!("median {median} in {window} blocks")
        }
        Some(Policy::GbaAuction) => {
            const EVEN: u64 = 1_000;
            let members = fairness.members.iter();
            let weighed = members.filter(|member| member.weight_per_mille != EVEN).count();
            format!("{weighed} weights that are not 1")
        }
        Some(Policy::Fifo) => "first come, first served".to_owned(),
        None => fairness.policy.clone(),
    }
}

fn lane(pane: &Timers) -> Facts {
    let Some(block) = pane.lane.last() else { return vec![("lane", facts::raw("no block yet"))] };
    let number = |value: u64| grouped(value.into());
    let mut waited = number(block.deferred);
    if block.priced_out > 0 {
        waited += &format!(", {} priced out", number(block.priced_out));
    }
    if block.over_cap > 0 {
        waited += &format!(", {} over the cap", number(block.over_cap));
    }
    let removed = match (block.expired, block.insolvent) {
        (0, 0) => "0".to_owned(),
        (expired, insolvent) => {
            format!("{} too late, {} without funds", number(expired), number(insolvent))
        }
    };
    let facts = [
        ("lane fee", format!("{} per cycle, {}", wei(*block.lane_basefee), block.policy)),
        ("lane used", {
            let used = percent(block.utilisation_per_mille);
            format!("{used} of {} cycles", number(block.capacity))
        }),
        ("fired", format!("{}, median tip {}", number(block.fired), wei(*block.p50_tip))),
        ("deferred", waited),
        ("removed", removed),
    ];
    facts.map(|(name, text)| (name, facts::raw(text))).into()
}

fn draw_charts(pane: &Timers, areas: &[Rect], cx: &Cx<'_>, buffer: &mut Buffer) {
    let of = |value: fn(&LaneBlock) -> u64| {
        pane.lane.iter().map(|block| (block.height, value(block))).collect::<Vec<_>>()
    };
    let fee = |block: &LaneBlock| u64::try_from(block.lane_basefee.get()).unwrap_or(u64::MAX);
    let widest = areas.iter().map(|area| area.width).max().unwrap_or(0);
    let charts = [
        Chart::newest("lane fee", of(fee), |value| format!("{} wei", grouped(value.into()))),
        Chart::newest("lane used", of(|block| block.utilisation_per_mille), percent),
        coming(pane, cx.shared.height, widest),
        Chart::newest("fired", of(|block| block.fired), |value| grouped(value.into())),
    ];
    for (area, chart) in areas.iter().zip(charts) {
        chart.draw(*area, cx.look, buffer);
    }
}

/// Number of timers due in each coming block, as far as the ring knows and the chart is wide.
fn coming(pane: &Timers, head: u64, width: u16) -> Chart {
    let width = width.saturating_sub(SCALE);
    let ring = pane.queue.iter().flat_map(|queue| &queue.ring);
    let mut values = vec![0; width.into()];
    for bucket in ring {
        let place = bucket.at.checked_sub(head + 1).and_then(|place| usize::try_from(place).ok());
        if let Some(value) = place.and_then(|place| values.get_mut(place)) {
            *value += bucket.timers;
        }
    }
    let total: u64 = values.iter().sum();
    Chart {
        title: format!("due in the next {width} blocks: {}", grouped(total.into())),
        values: (head + 1..).zip(values).collect(),
        unit: |value| grouped(value.into()),
        end: ChartEnd::Next,
    }
}

/// The number of columns that fit if ids are long enough to be told apart.
const fn most(width: u16) -> usize {
    match width {
        0..90 => 6,
        90..110 => 8,
        110..130 => 9,
        _ => COLUMNS.len(),
    }
}

/// A timer's value in a column.
pub fn key(standing: &Standing<'_>, column: usize) -> SortKey {
    let timer = standing.timer;
    match COLUMNS[column].name {
        "rank" => SortKey::number(match standing.place {
            LaneOrder::Rank(rank) => u128::from(rank),
            LaneOrder::Due | LaneOrder::Unranked(_) => u64::MAX.into(),
            LaneOrder::In(blocks) => u128::from(u64::MAX) + u128::from(blocks),
            LaneOrder::Ended => u128::MAX,
        }),
        "timer" => SortKey::text(timer.timer_id),
        "status" => SortKey::text(status(timer.status)),
        "height" => SortKey::number(timer.fired_at.unwrap_or(timer.height)),
        "handler" => SortKey::text(&timer.handler),
        "max fee" => SortKey::number(timer.max_fee_per_cycle.get()),
        "priority" => SortKey::number(timer.max_priority_fee_per_cycle.get()),
        "weight" => SortKey::of(standing.weight),
        "expires" => SortKey::number(timer.expires_at),
        _ => SortKey::text(timer.actor),
    }
}

fn title(pane: &Timers, accepted: &[Standing<'_>], cx: &Cx<'_>) -> String {
    let count = |status: fn(TimerStatus) -> bool| {
        let all = pane.timers.iter().flatten();
        grouped(all.filter(|timer| status(timer.status)).count() as u128)
    };
    let due = count(|status| status == TimerStatus::Due);
    let scheduled = count(|status| status == TimerStatus::Scheduled);
    let ended = count(has_ended);
    let mut title = format!("timers: {due} due, {scheduled} scheduled, {ended} ended");
    if !cx.filter.is_empty() {
        title += &format!("; {} match", grouped(accepted.len() as u128));
    }
    let listed = pane.timers.iter().flatten().filter(|timer| !has_ended(timer.status)).count();
    match pane.queue.as_ref().map(|queue| queue.timers) {
        Some(all) if all > listed as u64 && listed >= 200 => {
            format!("{title}; the first {listed} of {} that wait", grouped(all.into()))
        }
        _ => title,
    }
}

fn draw_timers(pane: &Timers, shape: &TimerAreas, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    let accepted = pane.accepted(cx);
    let area = section(&title(pane, &accepted, cx), shape.list, look, buffer);
    if accepted.is_empty() {
        return lines(nothing(pane, cx, area.width), area, buffer);
    }
    let cursor = pane.cursor(&accepted);
    let window = cursor.window(accepted.len(), shape.rows());
    let selected = cursor.of(accepted.len()).checked_sub(window.start);
    let rows: Vec<_> = accepted[window].iter().map(|standing| row(standing, look)).collect();
    list_grid(&COLUMNS, most(area.width), &rows, selected, area, cx, buffer);
}

fn nothing(pane: &Timers, cx: &Cx<'_>, width: u16) -> Vec<Line<'static>> {
    let text = match (&pane.timers, &pane.refused) {
        (_, Some(reason)) => format!("no timers: {reason}"),
        (None, None) => "asking".to_owned(),
        (Some(all), None) if all.is_empty() => {
            "no timers yet: cowboyctl actor deploy FILE, then cowboyctl timer schedule ACTOR --in 5"
                .to_owned()
        }
        (Some(_), None) if pane.waiting_only && cx.filter.is_empty() => {
            "no timer waits: a shows those that have ended".to_owned()
        }
        (Some(_), None) => {
            unlike("timer", pane.waiting_only.then_some("a shows those that have ended"), cx)
        }
    };
    wrapped(&text, width).into_iter().map(|line| Line::styled(line, cx.look.faint())).collect()
}

fn row(standing: &Standing<'_>, look: Look) -> Vec<Cell> {
    let timer = standing.timer;
    let placed = match standing.place {
        LaneOrder::Rank(_) => look.strong(),
        LaneOrder::Unranked(_) => look.warn(),
        LaneOrder::Due | LaneOrder::In(_) | LaneOrder::Ended => Style::new(),
    };
    let height = match timer.fired_at {
        Some(height) => height,
        None => timer.height,
    };
    vec![
        (standing.place.text(), placed),
        plain(timer.timer_id.to_string()),
        (status(timer.status), style(timer.status, look)),
        plain(grouped(height.into())),
        plain(timer.handler.clone()),
        plain(wei(*timer.max_fee_per_cycle)),
        plain(wei(*timer.max_priority_fee_per_cycle)),
        plain(standing.weight.map_or_else(|| "-".to_owned(), weight)),
        plain(grouped(timer.expires_at.into())),
        plain(timer.actor.to_string()),
    ]
}

/// Draws how often each owner fired, from a row on; one of the visible rows is under the cursor.
fn draw_members(
    pane: &Timers,
    (first, selected): (usize, Option<usize>),
    area: Rect,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let members = pane.members(cx);
    let fairness = pane.fairness.as_ref();
    let title = match (fairness, pane.policy()) {
        (Some(fairness), Some(Policy::Eip1559)) => format!(
            "fairness by {}, {} blocks: {}",
            fairness.scope,
            grouped(fairness.window_blocks.into()),
            grouped(members.len() as u128),
        ),
        _ => format!("fairness: {}", grouped(members.len() as u128)),
    };
    let area = section(&title, area, cx.look, buffer);
    if members.is_empty() {
        let text = match fairness {
            None => "asking".to_owned(),
            Some(fairness) if !fairness.members.is_empty() => unlike("account", None, cx),
            Some(fairness) => evenly(&fairness.policy).to_owned(),
        };
        let text = wrapped(&text, area.width).into_iter();
        return lines(text.map(|line| Line::styled(line, cx.look.faint())), area, buffer);
    }
    let fit = usize::from(area.height.saturating_sub(1));
    let rows: Vec<_> = members
        .iter()
        .skip(first)
        .take(fit)
        .map(|member| {
            vec![
                plain(member.account.to_string()),
                plain(grouped(member.recent.into())),
                plain(weight(member.weight_per_mille)),
            ]
        })
        .collect();
    grid(&MEMBERS, &rows, selected, area, cx.look, buffer);
}
