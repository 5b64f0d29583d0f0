//! The devnet at a glance.

use super::Overview;
use crate::{
    dashboard::{
        drawing::{
            Cell, Column, Page,
            chart::Chart,
            facts::{self, Facts},
            grid, lines, list_rows, plain, section, split, unlike,
        },
        look::Look,
        pane::Cx,
        rows::Cursor,
        shared::SeenBlock,
        trouble::marks,
    },
    output::{amount, grouped, millis, or_dash, seconds_since, share, wei},
};
use cowboy_devnet::types::{RunnerState, RunnerStatus, Validator, ValidatorState, ValidatorStatus};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

/// The minimum width to show charts next to the validators.
const WIDE: u16 = 120;

/// Number of blocks that averages are about.
const AVERAGED: usize = 60;

/// Rows of facts, including their rule.
const FACTS: u16 = 6;

const COLUMNS: [Column; 6] = [
    Column::text("validator"),
    Column::text("status"),
    FAULTS,
    Column::number("height"),
    Column::number("behind"),
    Column::long("address"),
];

const RUNNERS: [Column; 4] =
    [Column::text("runner"), Column::text("status"), FAULTS, Column::long("connected to")];

/// The faults that concern a node, if any is in force.
const FAULTS: Column = Column::long("faults");

const BLOCKS: [Column; 7] = [
    Column::number("block"),
    Column::number("ago"),
    Column::number("transactions"),
    Column::number("fires"),
    Column::number("events"),
    Column::number("present"),
    Column::number("finality"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverviewAreas {
    facts: Rect,
    charts: Vec<Rect>,
    /// The validators, including their rule and header.
    pub validators: Rect,
    /// The runners, if there is room for them.
    runners: Rect,
    /// The newest blocks, if there is room for them.
    blocks: Rect,
}

/// The minimum rows of runners, including their rule and header.
const RUNNER_ROWS: u16 = 3;

/// The minimum rows of the newest blocks, including their rule and header.
const BLOCK_ROWS: u16 = 6;

/// The minimum rows of the pane for all facts, and below them for charts.
const LOW: u16 = 14;
const CHARTED: u16 = 12;

/// The minimum width for two charts side by side.
const TWO_CHARTS: u16 = 70;

pub fn shape(cx: &Cx<'_>) -> OverviewAreas {
    let area = cx.area;
    let status = cx.shared.status.as_ref();
    let known = status.map_or(0, |status| status.validators.len()).min(1_000) as u16;
    let (facts, rest) = split(area, if area.height < LOW { area.height / 2 } else { FACTS });
    if area.width >= WIDE {
        let left = rest.width / 2 - 1;
        let right = Rect { x: rest.x + left + 2, width: rest.width - left - 2, ..rest };
        let count = (rest.height / 4).clamp(1, 5);
        let height = rest.height / count;
        let chart = |index| Rect { y: right.y + index * height, height, ..right };
        let left = Rect { width: left, ..rest };
        // All validators, up to half of the height; then runners, then blocks if there is room.
        let (validators, left) = split(left, (known + 3).min(left.height / 2));
        let members = status.map_or(0, |status| status.runners.len()).min(1_000) as u16;
        let rows = match left.height.saturating_sub(members + 3) {
            0..BLOCK_ROWS => left.height,
            _ => members + 3,
        };
        let (runners, blocks) = split(left, rows);
        let charts = (0..count).map(chart).collect();
        return OverviewAreas { facts, charts, validators, runners, blocks };
    }
    let (above, rest) =
        split(rest, if rest.height < CHARTED { 0 } else { (rest.height / 3).min(8) });
    let half = (rest.width / 2).saturating_sub(1);
    let charts = match rest.width {
        0..TWO_CHARTS => vec![above],
        _ => vec![
            Rect { width: half, ..above },
            Rect { x: above.x + half + 2, width: above.width - half - 2, ..above },
        ],
    };
    // Runners, if all validators leave room for them.
    let left = rest.height.saturating_sub(known + 2);
    let left = if left < RUNNER_ROWS || known == 0 { 0 } else { left };
    let (validators, runners) = split(rest, rest.height - left);
    let blocks = Rect { height: 0, ..runners };
    OverviewAreas { facts, charts, validators, runners, blocks }
}

pub const fn state(state: ValidatorState) -> &'static str {
    match state {
        ValidatorState::Starting => "starting",
        ValidatorState::Running => "running",
        ValidatorState::CatchingUp => "catching up",
        ValidatorState::Paused => "paused",
        ValidatorState::Stopped => "stopped",
        ValidatorState::Died => "died",
    }
}

fn style(state: ValidatorState, look: Look) -> Style {
    match state {
        ValidatorState::Running => look.good(),
        ValidatorState::Starting | ValidatorState::CatchingUp => look.warn(),
        ValidatorState::Paused | ValidatorState::Stopped | ValidatorState::Died => look.bad(),
    }
}

pub fn draw(pane: &Overview, cx: &Cx<'_>, buffer: &mut Buffer) {
    if let Some(name) = &pane.opened {
        return validator(name, pane.validator(), cx, buffer);
    }
    let shape = shape(cx);
    draw_facts(cx, shape.facts, buffer);
    for (area, chart) in shape.charts.iter().zip(charts(cx)) {
        chart.draw(*area, cx.look, buffer);
    }
    validators(pane, cx, &shape, buffer);
    runners(cx, shape.runners, buffer);
    blocks(cx, shape.blocks, buffer);
}

/// The heights of the newest blocks and the milliseconds since the block before, ascending.
fn intervals(cx: &Cx<'_>) -> Vec<(u64, u64)> {
    let blocks = cx.shared.blocks.iter().zip(cx.shared.blocks.iter().skip(1));
    let between = blocks.filter(|(a, b)| a.height + 1 == b.height).map(|(a, b)| {
        let elapsed = b.finalized_at.duration_since(a.finalized_at).as_millis();
        (b.height, u64::try_from(elapsed).unwrap_or(0))
    });
    between.collect()
}

/// The average of the newest values.
fn average(values: &[(u64, u64)]) -> Option<u64> {
    let recent = &values[values.len().saturating_sub(AVERAGED)..];
    let count = recent.len() as u64;
    recent.iter().map(|(_, value)| value).sum::<u64>().checked_div(count)
}

/// The charts, the most important first.
fn charts(cx: &Cx<'_>) -> Vec<Chart> {
    let of = |value: fn(&SeenBlock) -> u64| {
        cx.shared.blocks.iter().map(|block| (block.height, value(block))).collect::<Vec<_>>()
    };
    let latencies = cx.shared.latencies();
    let count: fn(u64) -> String = |value| grouped(value.into());
    vec![
        Chart::newest("finality", latencies, millis),
        Chart::newest("between blocks", intervals(cx), millis),
        Chart::newest("runners present", of(|block| block.present.into()), count),
        Chart::newest("transactions and fires", of(|b| u64::from(b.transactions + b.fires)), count),
        Chart::newest("events", of(|block| block.events as u64), count),
    ]
}

fn draw_facts(cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    let look = cx.look;
    let area = section("chain", area, look, buffer);
    facts::draw(&chain(cx), &prices(cx), area, look, buffer);
}

fn chain(cx: &Cx<'_>) -> Facts {
    let (look, shared) = (cx.look, cx.shared);
    let unknown = || vec![Span::raw("?")];
    let head = shared.blocks.back().map_or_else(unknown, |block| {
        let ago = seconds_since(block.finalized_at, cx.now);
        let height = Span::styled(grouped(block.height.into()), look.strong());
        vec![height, Span::raw(format!(", final {ago} ago"))]
    });
    let rate = average(&intervals(cx)).filter(|ms| *ms > 0).map_or_else(unknown, |ms| {
        let centi = 100_000 / ms;
        let text = format!("{}.{:02} a second, one in {}", centi / 100, centi % 100, millis(ms));
        vec![Span::raw(text)]
    });
    let latencies = cx.shared.latencies();
    let finality = average(&latencies).map_or_else(unknown, |ms| {
        let last = latencies.last().map_or(0, |(_, ms)| *ms);
        vec![Span::raw(format!("{} now, {} on average", millis(last), millis(ms)))]
    });
    let runners = shared.blocks.back().map_or_else(unknown, |block| {
        let all = block.present == block.registry_len;
        let style = if all { look.good() } else { look.warn() };
        let present = format!("{} of {}", block.present, block.registry_len);
        let mut spans = vec![Span::styled(present, style), Span::raw(" present")];
        let states = shared.status.iter().flat_map(|status| &status.runners);
        let connected = states.filter(|runner| runner.status == RunnerState::Connected).count();
        spans.push(Span::raw(format!(", {connected} connected")));
        spans
    });
    let faults = shared.status.as_ref().map_or_else(unknown, |status| match status.faults.len() {
        0 => vec![Span::raw("none")],
        count => vec![Span::styled(format!("{count} in force"), look.bad())],
    });
    vec![
        ("head", head),
        ("blocks", rate),
        ("finality", finality),
        ("runners", runners),
        ("faults", faults),
    ]
}

fn prices(cx: &Cx<'_>) -> Facts {
    let shared = cx.shared;
    let unknown = || vec![Span::raw("?")];
    let parameters = shared.parameters.as_ref();
    let price = |price: Option<String>| price.map_or_else(unknown, |text| vec![Span::raw(text)]);
    let cycle = price(parameters.map(|known| wei(known.cycle_basefee.0)));
    let cell = price(parameters.map(|known| wei(known.cell_basefee.0)));
    let newest = shared.blocks.iter().rev().find_map(|block| shared.figures(block.height));
    let load = match (parameters, newest) {
        (Some(limits), Some(block)) => {
            let cycles = share(block.cycles, limits.cycle_limit);
            let cells = share(block.cells, limits.cell_limit);
            vec![Span::raw(format!("cycles {cycles}, cells {cells}"))]
        }
        _ => unknown(),
    };
    let supply = shared.status.as_ref().and_then(|status| status.supply.as_ref());
    let burned = price(supply.map(|supply| amount(supply.burned.0)));
    let rule = price(parameters.map(|known| format!("{}, {}", known.threshold_rule, known.phase)));
    vec![
        ("cycle fee", cycle),
        ("cell fee", cell),
        ("block load", load),
        ("burned", burned),
        ("presence", rule),
    ]
}

fn validators(pane: &Overview, cx: &Cx<'_>, shape: &OverviewAreas, buffer: &mut Buffer) {
    let accepted = Overview::accepted(cx);
    let running = accepted.iter().filter(|v| v.status == ValidatorState::Running).count();
    let title = format!("validators: {running} of {} running", accepted.len());
    let area = section(&title, shape.validators, cx.look, buffer);
    if accepted.is_empty() {
        let text = match &cx.shared.status {
            Some(_) => unlike("validator", None, cx),
            None => "asking".to_owned(),
        };
        return lines([Line::styled(text, cx.look.faint())], area, buffer);
    }
    let highest = accepted.iter().map(|validator| validator.height).max().unwrap_or(0);
    let (seen, selected) = pane.cursor().seen(&accepted, list_rows(shape.validators));
    let row = |validator: &&ValidatorStatus| -> Vec<Cell> {
        vec![
            plain(validator.name.clone()),
            (state(validator.status).to_owned(), style(validator.status, cx.look)),
            (marks(cx.shared.faults(), &validator.name), cx.look.bad()),
            plain(grouped(validator.height.into())),
            plain((highest - validator.height).to_string()),
            plain(validator.address.to_string()),
        ]
    };
    let rows: Vec<_> = seen.iter().map(row).collect();
    marked(&COLUMNS, rows, selected, area, cx, buffer);
}

/// Draws nodes as a grid, without the column of faults if none is in force.
fn marked(
    columns: &[Column],
    mut rows: Vec<Vec<Cell>>,
    selected: Option<usize>,
    area: Rect,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let mut columns = columns.to_vec();
    if cx.shared.faults().is_empty()
        && let Some(faults) = columns.iter().position(|column| *column == FAULTS)
    {
        columns.remove(faults);
        for row in &mut rows {
            row.remove(faults);
        }
    }
    grid(&columns, &rows, selected, area, cx.look, buffer);
}

/// The runners, those that need attention first.
fn runners(cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let rank = |state: RunnerState| match state {
        RunnerState::Stopped => 0,
        RunnerState::Connecting => 1,
        RunnerState::Connected => 2,
    };
    let all = cx.shared.status.iter().flat_map(|status| &status.runners);
    let mut shown: Vec<_> = all.filter(|runner| cx.filter.accepts(&runner.name)).collect();
    // Between names with numbers, the shorter one has the smaller number.
    let is_well = |name: &str| marks(cx.shared.faults(), name).is_empty();
    shown.sort_by_key(|runner| {
        (rank(runner.status), is_well(&runner.name), runner.name.len(), &runner.name)
    });
    let (all, fit) = (shown.len(), usize::from(area.height.saturating_sub(2)));
    let title = match all > fit {
        true => format!("runners: {}, {fit} of them here", grouped(all as u128)),
        false => format!("runners: {}", grouped(all as u128)),
    };
    let area = section(&title, area, cx.look, buffer);
    let row = |runner: &&RunnerStatus| -> Vec<Cell> {
        let (word, style) = match runner.status {
            RunnerState::Connected => ("connected", cx.look.good()),
            RunnerState::Connecting => ("connecting", cx.look.warn()),
            RunnerState::Stopped => ("stopped", cx.look.bad()),
        };
        vec![
            plain(runner.name.clone()),
            (word.to_owned(), style),
            (marks(cx.shared.faults(), &runner.name), cx.look.bad()),
            plain(runner.connected_validators.join(" ")),
        ]
    };
    let rows: Vec<_> = shown.iter().take(fit).map(row).collect();
    marked(&RUNNERS, rows, None, area, cx, buffer);
}

/// The newest blocks, the newest first.
fn blocks(cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let fit = list_rows(area);
    let area = section("newest blocks", area, cx.look, buffer);
    let row = |block: &SeenBlock| -> Vec<Cell> {
        let latency = cx.shared.figures(block.height).and_then(|figures| figures.latency);
        let all = block.present == block.registry_len;
        let present = format!("{} of {}", block.present, block.registry_len);
        vec![
            plain(grouped(block.height.into())),
            plain(seconds_since(block.finalized_at, cx.now)),
            plain(grouped(block.transactions.into())),
            plain(grouped(block.fires.into())),
            plain(grouped(block.events as u128)),
            (present, if all { Style::new() } else { cx.look.warn() }),
            plain(or_dash(latency.map(millis))),
        ]
    };
    let rows: Vec<_> = cx.shared.blocks.iter().rev().take(fit).map(row).collect();
    grid(&BLOCKS, &rows, None, area, cx.look, buffer);
}

fn validator(name: &str, known: Option<&Validator>, cx: &Cx<'_>, buffer: &mut Buffer) {
    let area = section(name, cx.area, cx.look, buffer);
    let Some(validator) = known else {
        return lines([Line::styled("asking", cx.look.faint())], area, buffer);
    };
    let list = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => format!("{}: {}", names.len(), names.join(" ")),
    };
    let seat = validator.index.map(|index| format!("place {index} in the committee"));
    let mut page = Page::new(area.width, cx.look);
    page.fact("status", state(validator.status), style(validator.status, cx.look));
    let facts = [
        ("height", grouped(validator.height.into())),
        ("votes", seat.unwrap_or_else(|| "no: it follows the chain only".to_owned())),
        ("address", validator.address.to_string()),
        ("public key", validator.pubkey.to_string()),
        ("consensus", validator.consensus_key.to_string()),
        ("quic", or_dash(validator.quic.clone())),
        ("p2p", or_dash(validator.p2p.clone())),
        ("subset of", list(&validator.subset_of)),
        ("connected", list(&validator.connected_runners)),
    ];
    for (name, value) in facts {
        page.plain(name, &value);
    }
    page.draw(Cursor::default(), area, buffer);
}
