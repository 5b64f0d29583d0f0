//! The heat map of runners by block, and the votes behind one of its cells.

use super::{HeatMapArea, Presence, PresenceCell, PresenceDetail, bit};
use crate::{
    dashboard::{
        drawing::{
            Cell, Column, chart::spark, grid, grid::aligned, lines, plain, section, unlike, wrapped,
        },
        look::Look,
        pane::Cx,
    },
    output::{cut, grouped},
};
use cowboy_devnet::topology::Feasibility;
use cowboy_engine::presence::ThresholdRule;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

/// Rows below the map, including their rule.
const ABOUT: u16 = 7;

const COLUMNS: [Column; 5] = [
    Column::text("validator"),
    Column::text("in its subset"),
    Column::text("vote"),
    Column::text("bit"),
    Column::long("runners it saw"),
];

/// The areas: the line of sums, the rows, and the text about the cell under the cursor.
pub fn parts(area: Rect) -> [Rect; 3] {
    let about = ABOUT.min(area.height);
    let rest = area.height - about;
    let sums = rest.min(2);
    [
        Rect { height: sums, ..area },
        Rect { y: area.y + sums, height: rest - sums, ..area },
        Rect { y: area.y + rest, height: about, ..area },
    ]
}

fn word(cell: PresenceCell, look: Look) -> Span<'static> {
    match cell {
        PresenceCell::Present => Span::styled("present", look.good()),
        PresenceCell::Absent => Span::styled("absent", look.bad()),
        PresenceCell::Unknown => Span::styled("not registered", look.warn()),
    }
}

pub fn draw(pane: &Presence, cx: &Cx<'_>, buffer: &mut Buffer) {
    let accepted = pane.accepted(cx);
    let runner = pane.runner(&accepted);
    if let (Some(detail), Some(height), Some(runner)) = (&pane.opened, pane.height(), runner) {
        return draw_detail(pane, detail, height, runner, cx, buffer);
    }
    let shape = pane.shape(cx, &accepted);
    draw_sums(pane, &shape, accepted.len(), cx, buffer);
    draw_cells(pane, &shape, runner, cx, buffer);
    draw_about(pane, &shape, runner, cx, buffer);
}

fn draw_sums(pane: &Presence, shape: &HeatMapArea, rows: usize, cx: &Cx<'_>, buffer: &mut Buffer) {
    let [area, ..] = parts(cx.area);
    let only = if pane.absent_only { " that were absent" } else { "" };
    let all = cx.shared.runners();
    let mut title = format!("{} of {} runners{only}", grouped(rows as u128), grouped(all as u128));
    if let (Some(first), Some(last)) = (shape.heights.first(), shape.heights.last()) {
        title += &format!(", blocks {first} to {last}");
    }
    let area = section(&title, area, cx.look, buffer);
    let present = |height: &u64| pane.column(*height).map_or(0, |column| column.present.into());
    let sums: Vec<u64> = shape.heights.iter().map(present).collect();
    let bars = spark(&sums, shape.cells.width.into());
    if area.height > 0 {
        buffer.set_stringn(area.x, area.y, "present", area.width.into(), cx.look.faint());
        let x = shape.cells.x;
        buffer.set_stringn(x, area.y, bars, shape.cells.width.into(), cx.look.chart());
    }
}

fn draw_cells(
    pane: &Presence,
    shape: &HeatMapArea,
    chosen: Option<usize>,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let look = cx.look;
    // The newest block is at the right edge.
    let left = shape.cells.right() - (shape.heights.len() as u16).min(shape.cells.width);
    for (runner, y) in shape.runners.iter().zip(shape.names.y..) {
        let is_chosen = Some(*runner) == chosen;
        let (present, known) = pane.share(*runner);
        let percent = (present * 100).checked_div(known);
        let percent = percent.map_or_else(String::new, |percent| format!("{percent} %"));
        let width = usize::from(shape.names.width);
        let room = width.saturating_sub(7);
        let name = aligned(&cut(&cx.shared.runner(*runner), room), room, false);
        let text = format!("{name}{percent:>6} ");
        let style = if is_chosen { look.selected() } else { Style::new() };
        buffer.set_stringn(shape.names.x, y, text, width, style);
        for (height, x) in shape.heights.iter().zip(left..) {
            let is_cursor = is_chosen && pane.height() == Some(*height);
            let (symbol, style) = match (pane.cell(*height, *runner), is_cursor) {
                (PresenceCell::Present, false) => ("█", look.good()),
                (PresenceCell::Absent, false) => ("·", look.bad()),
                (PresenceCell::Unknown, false) => (" ", Style::new()),
                (PresenceCell::Present, true) => ("■", look.selected()),
                (PresenceCell::Absent, true) => ("×", look.selected()),
                (PresenceCell::Unknown, true) => ("?", look.selected()),
            };
            buffer.set_stringn(x, y, symbol, 1, style);
        }
    }
    if shape.runners.is_empty() {
        let text = match (cx.shared.runners(), &cx.shared.status) {
            (0, None) => "asking".to_owned(),
            (0, Some(_)) => {
                "no runners: cowboyctl runner register --key-file FILE, then runner start"
                    .to_owned()
            }
            (_, _) => unlike("runner", pane.absent_only.then_some("a shows all"), cx),
        };
        let area = shape.names.union(shape.cells);
        lines([Line::styled(text, look.faint())], area, buffer);
    }
}

fn draw_about(
    pane: &Presence,
    shape: &HeatMapArea,
    runner: Option<usize>,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let look = cx.look;
    let title = match (pane.height(), runner) {
        (Some(height), Some(runner)) => {
            format!("block {}, {}", grouped(height.into()), cx.shared.runner(runner))
        }
        _ => "nothing certified yet".to_owned(),
    };
    let area = section(&title, shape.about, look, buffer);
    let mut text = Vec::new();
    if let Some((height, column)) = pane.height().and_then(|h| Some((h, pane.column(h)?))) {
        let needed = match column.threshold {
            Some(threshold) => format!("{threshold} of {} votes needed", column.votes),
            None => format!("{} votes, each runner needs its own", column.votes),
        };
        text.push(Line::raw(format!(
            "block {height}: {} of {} present; {needed} ({}); certified in block {}",
            column.present, column.registry_len, column.rule, column.embedded_in,
        )));
        if let Some(runner) = runner {
            let (present, known) = pane.share(runner);
            text.push(Line::from(vec![
                Span::raw(format!("{}: ", cx.shared.runner(runner))),
                word(column.cell(runner), look),
                Span::raw(format!("; in {present} of the {known} blocks here")),
            ]));
        }
    }
    let allowed = feasibility(cx).into_iter().flatten();
    let allowed = allowed.flat_map(|said| wrapped(&said, area.width));
    text.extend(allowed.map(|line| Line::styled(line, look.faint())));
    lines(text, area, buffer);
}

fn feasibility(cx: &Cx<'_>) -> Option<[String; 2]> {
    let parameters = cx.shared.parameters.as_ref()?;
    let rule: ThresholdRule = parameters.threshold_rule.parse().ok()?;
    let validators = usize::try_from(parameters.validators).ok().filter(|count| *count > 0)?;
    let outlook = Feasibility::of(validators, rule);
    let Feasibility { to_fabricate, to_hide, .. } = outlook;
    let validators = if to_fabricate == 1 { "validator" } else { "validators" };
    let dishonest = format!(
        "{to_fabricate} dishonest {validators} can make a presence up, {to_hide} can hide one"
    );
    Some([outlook.to_string(), dishonest])
}

fn draw_detail(
    pane: &Presence,
    detail: &PresenceDetail,
    height: u64,
    runner: usize,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let look = cx.look;
    let name = cx.shared.runner(runner);
    let title = format!("{name} in block {}", grouped(height.into()));
    let area = section(&title, cx.area, look, buffer);
    let Some(votes) = &detail.votes else {
        let text = detail.refused.clone().unwrap_or_else(|| "asking for the votes".to_owned());
        return lines([Line::styled(text, look.faint())], area, buffer);
    };
    let column = pane.column(height);
    let set = votes.votes.iter().filter(|vote| bit(&vote.bytes.0.0, runner)).count();
    let needed = match column.and_then(|column| column.threshold) {
        Some(threshold) => format!("{threshold} needed"),
        None => "f + 1 of its own validators' votes needed".to_owned(),
    };
    let summary = vec![
        Line::from(vec![
            word(pane.cell(height, runner), look),
            Span::raw(format!(
                ": {set} of {} votes have its bit, {needed}; a quorum is {} of {}",
                votes.votes.len(),
                votes.quorum,
                votes.validators,
            )),
        ]),
        Line::styled("← → another block, ↑ ↓ another runner, esc back", look.faint()),
    ];
    lines(summary, area, buffer);
    let skipped = 3.min(area.height);
    let area = Rect { y: area.y + skipped, height: area.height - skipped, ..area };
    let rows = detail_rows(detail, votes, runner, cx);
    grid(&COLUMNS, &rows, None, area, look, buffer);
}

/// The votes, then the validators whose votes the certificate leaves out.
fn detail_rows(
    detail: &PresenceDetail,
    votes: &cowboy_devnet::types::Votes,
    runner: usize,
    cx: &Cx<'_>,
) -> Vec<Vec<Cell>> {
    let look = cx.look;
    let in_subset = |validator: &str| match &detail.runner {
        Some(runner) if runner.subset.iter().any(|name| name == validator) => plain("yes"),
        Some(_) => plain("no"),
        None => plain("?"),
    };
    let voted = votes.votes.iter().map(|vote| {
        let bit = match runner < vote.bit_length as usize {
            true if bit(&vote.bytes.0.0, runner) => ("█ present".to_owned(), look.good()),
            true => ("· absent".to_owned(), look.bad()),
            false => ("- not known to it".to_owned(), look.warn()),
        };
        let seen = format!("{} of {}", vote.present.len(), vote.bit_length);
        let vote_cell = plain("in the certificate");
        vec![plain(vote.validator.clone()), in_subset(&vote.validator), vote_cell, bit, plain(seen)]
    });
    let all = cx.shared.status.iter().flat_map(|status| &status.validators);
    let silent = all.filter(|v| !votes.votes.iter().any(|vote| vote.validator == v.name));
    let silent = silent.map(|validator| {
        let left_out = ("left out".to_owned(), look.faint());
        vec![
            plain(validator.name.clone()),
            in_subset(&validator.name),
            left_out,
            ("-".to_owned(), look.faint()),
            plain(""),
        ]
    });
    voted.chain(silent).collect()
}
