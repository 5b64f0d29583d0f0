//! The devnet at a glance.

use super::Overview;
use crate::{
    dashboard::{
        drawing::{
            Cell, Column, Page,
            chart::{chart, titled},
            facts::{self, Facts},
            grid, lines, list_rows, plain, section, unlike,
        },
        look::Look,
        pane::Cx,
        rows::Cursor,
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

/// Rows of facts, including their rule.
const FACTS: u16 = 6;

const COLUMNS: [Column; 5] = [
    Column::text("validator"),
    Column::text("status"),
    Column::number("height"),
    Column::number("behind"),
    Column::long("address"),
];

const RUNNERS: [Column; 3] =
    [Column::text("runner"), Column::text("status"), Column::long("connected to")];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverviewAreas {
    facts: Rect,
    charts: Vec<Rect>,
    /// The validators, including their rule and header.
    pub validators: Rect,
    /// The runners, if there is room for them.
    runners: Rect,
}

/// The minimum rows of runners, including their rule and header.
const RUNNER_ROWS: u16 = 3;

pub fn shape(cx: &Cx<'_>) -> OverviewAreas {
    let area = cx.area;
    let known = cx.shared.status.as_ref().map_or(0, |status| status.validators.len()) as u16;
    let facts = Rect { height: FACTS.min(area.height), ..area };
    let rest = Rect { y: facts.bottom(), height: area.height - facts.height, ..area };
    if area.width >= WIDE {
        let left = rest.width / 2 - 1;
        let right = Rect { x: rest.x + left + 2, width: rest.width - left - 2, ..rest };
        let count = (rest.height / 4).clamp(1, 5);
        let height = rest.height / count;
        let chart = |index| Rect { y: right.y + index * height, height, ..right };
        let left = Rect { width: left, ..rest };
        // All validators, up to half of the height.
        let upper = known.saturating_add(3).min(left.height / 2);
        let runners = Rect { y: left.y + upper, height: left.height - upper, ..left };
        return OverviewAreas {
            facts,
            charts: (0..count).map(chart).collect(),
            validators: Rect { height: upper, ..left },
            runners,
        };
    }
    let height = (rest.height / 3).min(8);
    let half = (rest.width / 2).saturating_sub(1);
    let charts = vec![
        Rect { height, width: half, ..rest },
        Rect { height, x: rest.x + half + 2, width: rest.width.saturating_sub(half + 2), ..rest },
    ];
    let rest = Rect { y: rest.y + height, height: rest.height - height, ..rest };
    // Runners, if all validators leave room for them.
    let left = rest.height.saturating_sub(known.saturating_add(2));
    let left = if left < RUNNER_ROWS || known == 0 { 0 } else { left };
    let validators = Rect { height: rest.height - left, ..rest };
    let runners = Rect { y: validators.bottom(), height: left, ..rest };
    OverviewAreas { facts, charts, validators, runners }
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
    draw_facts(pane, cx, shape.facts, buffer);
    for (area, (title, values)) in shape.charts.iter().zip(charts(pane, cx)) {
        chart(&title, &values, *area, cx.look, buffer);
    }
    validators(pane, cx, &shape, buffer);
    runners(cx, shape.runners, buffer);
}

/// Milliseconds between the newest blocks, ascending.
fn intervals(cx: &Cx<'_>) -> Vec<u64> {
    let blocks = cx.shared.blocks.iter().zip(cx.shared.blocks.iter().skip(1));
    let between = blocks.filter(|(a, b)| a.height + 1 == b.height).map(|(a, b)| {
        let elapsed = b.finalized_at.duration_since(a.finalized_at).as_millis();
        u64::try_from(elapsed).unwrap_or(0)
    });
    between.collect()
}

fn average(values: &[u64]) -> Option<u64> {
    let count = values.len() as u64;
    values.iter().sum::<u64>().checked_div(count)
}

/// The charts with their titles, the most important first.
fn charts(pane: &Overview, cx: &Cx<'_>) -> Vec<(String, Vec<u64>)> {
    let of = |value: fn(&crate::dashboard::shared::SeenBlock) -> u64| {
        cx.shared.blocks.iter().map(value).collect::<Vec<_>>()
    };
    let latencies = pane.latencies();
    let count: fn(u64) -> String = |value| grouped(value.into());
    vec![
        titled("finality", latencies, millis),
        titled("between blocks", intervals(cx), millis),
        titled("runners present", of(|block| block.present.into()), count),
        titled("transactions and fires", of(|b| u64::from(b.transactions + b.fires)), count),
        titled("events", of(|block| block.events as u64), count),
    ]
}

fn draw_facts(pane: &Overview, cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    let look = cx.look;
    let area = section("chain", area, look, buffer);
    facts::draw(&chain(pane, cx), &prices(pane, cx), area, look, buffer);
}

fn chain(pane: &Overview, cx: &Cx<'_>) -> Facts {
    let (look, shared) = (cx.look, cx.shared);
    let unknown = || vec![Span::raw("?")];
    let head = shared.blocks.back().map_or_else(unknown, |block| {
        let ago = seconds_since(block.finalized_at, cx.now);
        let height = Span::styled(grouped(block.height.into()), look.strong());
        vec![height, Span::raw(format!(", final {ago} ago"))]
    });
    let intervals = intervals(cx);
    let recent = &intervals[intervals.len().saturating_sub(60)..];
    let rate = average(recent).filter(|ms| *ms > 0).map_or_else(unknown, |ms| {
        let centi = 100_000 / ms;
        let text = format!("{}.{:02} a second, one in {}", centi / 100, centi % 100, millis(ms));
        vec![Span::raw(text)]
    });
    let latencies = pane.latencies();
    let recent = &latencies[latencies.len().saturating_sub(60)..];
    let finality = average(recent).map_or_else(unknown, |ms| {
        let last = latencies.last().copied().unwrap_or(0);
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

fn prices(pane: &Overview, cx: &Cx<'_>) -> Facts {
    let shared = cx.shared;
    let unknown = || vec![Span::raw("?")];
    let parameters = shared.parameters.as_ref();
    let price = |price: Option<String>| price.map_or_else(unknown, |text| vec![Span::raw(text)]);
    let cycle = price(parameters.map(|known| wei(known.cycle_basefee.0)));
    let cell = price(parameters.map(|known| wei(known.cell_basefee.0)));
    let newest = shared.blocks.iter().rev().find_map(|block| pane.measured(block.height));
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
            plain(grouped(validator.height.into())),
            plain((highest - validator.height).to_string()),
            plain(validator.address.to_string()),
        ]
    };
    let rows: Vec<_> = seen.iter().map(row).collect();
    grid(&COLUMNS, &rows, selected, area, cx.look, buffer);
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
    shown.sort_by_key(|runner| (rank(runner.status), runner.name.len(), &runner.name));
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
            plain(runner.connected_validators.join(" ")),
        ]
    };
    let rows: Vec<_> = shown.iter().take(fit).map(row).collect();
    grid(&RUNNERS, &rows, None, area, cx.look, buffer);
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
