//! The heat map of runners by block, and the votes behind one of its cells.

use super::{HeatMapArea, Presence, PresenceCell, SeenVotes, VoteShade};
use crate::{
    dashboard::{
        drawing::{
            Cell, Column,
            chart::{heights, spark},
            grid,
            grid::aligned,
            lines, plain, section, split, unlike, wrapped,
        },
        look::Look,
        pane::Cx,
        trouble::marks,
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
const ABOUT: u16 = 8;

/// What the shades mean.
const LEGEND: &str = "votes: █ all that could report it, ▓ 9 of 10, ▒ 2 of 3, ░ fewer, · none";

const COLUMNS: [Column; 5] = [
    Column::text("validator"),
    Column::text("in its subset"),
    Column::text("vote"),
    Column::text("bit"),
    Column::long("runners it saw"),
];

/// The minimum rows of the pane for an axis of heights, and for the votes below the map.
const AXIS: u16 = 12;
const TALL: u16 = 36;

/// The minimum rows of the votes, including their rule and header.
const VOTES: u16 = 8;

/// Maximum columns and rows of a cell.
pub const WIDEST: u16 = 3;
const HIGHEST: u16 = 3;

/// The rows of a runner's cells: several if there is room for the votes on one, too.
pub fn cell_height(area: Rect, runners: usize) -> u16 {
    let below = ABOUT + VOTES + 3;
    let runners = u16::try_from(runners).unwrap_or(u16::MAX).max(1);
    match area.height {
        0..TALL => 1,
        height => (height.saturating_sub(below) / runners).clamp(1, HIGHEST),
    }
}

/// The areas: the line of sums, the rows of `runners` runners, the heights, the text about the cell
/// under the cursor, and its votes.
pub fn parts(area: Rect, runners: usize) -> [Rect; 5] {
    let about = ABOUT.min(area.height / 3);
    let (sums, rest) = split(area, 2.min(area.height - about));
    let axis = u16::from(area.height >= AXIS);
    let room = rest.height - about - axis;
    // A short map leaves room for the votes.
    let wanted = runners.clamp(1, usize::from(room.max(1))) as u16;
    let wanted = wanted.saturating_mul(cell_height(area, runners));
    let short = area.height >= TALL && wanted + VOTES <= room;
    let (rows, rest) = split(rest, if short { wanted } else { room });
    let (axis, rest) = split(rest, axis);
    let (about, votes) = split(rest, about);
    [sums, rows, axis, about, votes]
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
    let cell = pane.height().zip(runner);
    if let Some(cell) = cell.filter(|_| pane.opened) {
        return draw_votes(pane, cell, cx.area, cx, buffer);
    }
    let shape = pane.shape(cx, &accepted);
    draw_sums(pane, &shape, accepted.len(), cx, buffer);
    draw_cells(pane, &shape, runner, cx, buffer);
    draw_about(pane, &shape, runner, cx, buffer);
    if let Some(cell) = cell.filter(|_| shape.votes.height > 0) {
        draw_votes(pane, cell, shape.votes, cx, buffer);
    }
}

fn draw_sums(pane: &Presence, shape: &HeatMapArea, rows: usize, cx: &Cx<'_>, buffer: &mut Buffer) {
    let [area, ..] = parts(cx.area, rows);
    let only = if pane.absent_only { " that were absent" } else { "" };
    let all = cx.shared.runners();
    let mut title = format!("{} of {} runners{only}", grouped(rows as u128), grouped(all as u128));
    if let (Some(first), Some(last)) = (shape.heights.first(), shape.heights.last()) {
        title += &format!(", blocks {first} to {last}");
    }
    let area = section(&title, area, cx.look, buffer);
    let present = |height: &u64| pane.column(*height).map_or(0, |column| column.present.into());
    let sums: Vec<u64> = shape.heights.iter().map(present).collect();
    let wide = usize::from(shape.cell.width);
    let sums: Vec<u64> = sums.iter().flat_map(|sum| std::iter::repeat_n(*sum, wide)).collect();
    let bars = spark(&sums, shape.cells.width.into());
    if area.height > 0 {
        let most = sums.iter().copied().max().unwrap_or(0);
        let label = format!("present max {}", grouped(most.into()));
        let room = shape.names.width.saturating_sub(1);
        buffer.set_stringn(area.x, area.y, label, room.into(), cx.look.faint());
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
    let cell = shape.cell;
    let used = (shape.heights.len() as u16 * cell.width).min(shape.cells.width);
    let left = shape.cells.right() - used;
    if let (Some(from), Some(to), true) =
        (shape.heights.first(), shape.heights.last(), shape.axis.height > 0)
    {
        let plot = Rect { x: left, width: used, ..shape.cells };
        heights(*from, *to, plot, shape.cells, look, buffer);
    }
    let rows = (shape.names.y..).step_by(cell.height.into());
    for (runner, y) in shape.runners.iter().zip(rows) {
        let is_chosen = Some(*runner) == chosen;
        let (present, known) = pane.share(*runner);
        let percent = (present * 100).checked_div(known);
        let percent = percent.map_or_else(String::new, |percent| format!("{percent} %"));
        let width = usize::from(shape.names.width);
        let room = width.saturating_sub(7);
        let name = cx.shared.runner(*runner);
        let faulty = !marks(cx.shared.faults(), &name).is_empty() || cx.shared.is_stopped(*runner);
        let mark = if faulty { "!" } else { "" };
        let name = cut(&name, room.saturating_sub(mark.len()));
        let name = aligned(&format!("{name}{mark}"), room, false);
        let text = format!("{name}{percent:>6} ");
        let style = match (is_chosen, faulty) {
            (true, _) => look.selected(),
            (false, true) => look.warn(),
            (false, false) => Style::new(),
        };
        buffer.set_stringn(shape.names.x, y, text, width, style);
        for (height, x) in shape.heights.iter().zip((left..).step_by(cell.width.into())) {
            let is_cursor = is_chosen && pane.height() == Some(*height);
            let shade = pane.shade(*height, *runner).map(VoteShade::sign);
            let (symbol, style) = match (pane.cell(*height, *runner), is_cursor) {
                (PresenceCell::Present, false) => (shade.unwrap_or("█"), look.good()),
                (PresenceCell::Absent, false) => (shade.unwrap_or("·"), look.bad()),
                (PresenceCell::Unknown, false) => (" ", Style::new()),
                (PresenceCell::Present, true) => ("■", look.selected()),
                (PresenceCell::Absent, true) => ("×", look.selected()),
                (PresenceCell::Unknown, true) => ("?", look.selected()),
            };
            let whole = symbol.repeat(cell.width.into());
            for line in 0..cell.height {
                buffer.set_stringn(x, y + line, &whole, cell.width.into(), style);
            }
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
        let of_block = format!(
            "block {height}: {} of {} present; {needed} ({}); certified in block {}",
            column.present, column.registry_len, column.rule, column.embedded_in,
        );
        if let Some(runner) = runner {
            let (present, known) = pane.share(runner);
            let name = cx.shared.runner(runner);
            let mut spans = vec![
                Span::raw(format!("{name}: ")),
                word(column.cell(runner), look),
                Span::raw(format!("; in {present} of {known} blocks")),
            ];
            if let Some(votes) = &column.certificate {
                let (set, could) = votes.reported(runner, pane.subset(runner));
                spans.push(Span::raw(format!("; {set} of {could} votes")));
            }
            let marks = marks(cx.shared.faults(), &name);
            if !marks.is_empty() {
                spans.push(Span::styled(format!("; {marks}"), look.bad()));
            }
            text.push(Line::from(spans));
        }
        text.extend(wrapped(&of_block, area.width).into_iter().map(Line::raw));
    }
    let legend = wrapped(LEGEND, area.width).into_iter();
    text.extend(legend.map(|line| Line::styled(line, look.faint())));
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

/// Draws every validator's vote on a runner in a block.
fn draw_votes(
    pane: &Presence,
    (height, runner): (u64, usize),
    area: Rect,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let look = cx.look;
    let name = cx.shared.runner(runner);
    let title = format!("votes on {name} in block {}", grouped(height.into()));
    let area = section(&title, area, look, buffer);
    let column = pane.column(height);
    let Some(votes) = column.and_then(|column| column.certificate.as_ref()) else {
        let text = pane.secret(height).map_or("asking for the votes", String::as_str);
        return lines([Line::styled(text.to_owned(), look.faint())], area, buffer);
    };
    let set = votes.votes.iter().filter(|vote| vote.reports(runner) == Some(true)).count();
    let needed = match column.and_then(|column| column.threshold) {
        Some(threshold) => format!("{threshold} needed"),
        None => "f + 1 of its own validators' votes needed".to_owned(),
    };
    let quorum = format!("a quorum is {} of {}", votes.quorum, votes.validators);
    let said = format!(": {set} of {} votes have its bit, {needed}; {quorum}", votes.votes.len());
    let mut summary =
        vec![Line::from(vec![word(pane.cell(height, runner), look), Span::raw(said)])];
    if pane.opened {
        let hint = "← → another block, ↑ ↓ another runner, esc back";
        summary.push(Line::styled(hint, look.faint()));
    }
    let (above, area) = split(area, summary.len() as u16 + u16::from(area.height > 10));
    lines(summary, above, buffer);
    let rows = vote_rows(pane, votes, runner, cx);
    grid(&COLUMNS, &rows, None, area, look, buffer);
}

/// The votes, then the validators whose votes the certificate leaves out.
fn vote_rows(pane: &Presence, votes: &SeenVotes, runner: usize, cx: &Cx<'_>) -> Vec<Vec<Cell>> {
    let look = cx.look;
    let in_subset = |validator: &str| match pane.subset(runner) {
        Some(subset) if subset.iter().any(|name| name == validator) => plain("yes"),
        Some(_) => plain("no"),
        None => plain("?"),
    };
    let voted = votes.votes.iter().map(|vote| {
        let bit = match vote.reports(runner) {
            Some(true) => ("█ present".to_owned(), look.good()),
            Some(false) => ("· absent".to_owned(), look.bad()),
            None => ("- not known to it".to_owned(), look.warn()),
        };
        let seen = format!("{} of {}", vote.present, vote.known);
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
