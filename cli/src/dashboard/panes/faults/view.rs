//! The list of faults, and below it the nodes.

use super::{FaultRow, Faults};
use crate::{
    dashboard::{
        arrangement::{Column, SortKey},
        drawing::{
            Cell, Page, beneath, grid, lines, list_grid, list_row_at, list_rows, plain, section,
            split, unlike, wrapped,
        },
        look::Look,
        pane::Cx,
        rows::Cursor,
        trouble::{affects, marks, place, what},
    },
    output::{grouped, or_dash, seconds_since},
};
use cowboy_devnet::types::{Fault, RunnerState, ValidatorState};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::Style,
    text::Line,
};

const FAULTS: [Column; 8] = [
    Column::number("fault"),
    Column::text("what"),
    Column::long("where"),
    Column::number("since"),
    Column::number("until"),
    Column::number("dropped"),
    Column::number("delayed"),
    Column::number("lies"),
];

pub const NODES: [Column; 6] = [
    Column::text("node"),
    Column::text("state"),
    Column::long("faults"),
    Column::number("height"),
    Column::number("connected"),
    Column::long("note"),
];

/// Rows for the faults without any: a rule and a text.
const NONE: u16 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultAreas {
    faults: Rect,
    nodes: Rect,
    /// The fault or node under the cursor, if there is room below the nodes.
    below: Rect,
}

pub fn shape(cx: &Cx<'_>) -> FaultAreas {
    let wanted = match Faults::faults(cx).len().min(1_000) as u16 {
        0 => NONE,
        count => count + 2,
    };
    let (faults, nodes) = split(cx.area, wanted.min(cx.area.height / 2));
    let (nodes, below) = beneath(nodes, Faults::nodes(cx).len());
    FaultAreas { faults, nodes, below }
}

impl FaultAreas {
    /// Number of nodes that fit.
    pub fn rows(&self) -> usize {
        list_rows(self.nodes)
    }

    /// The row at a position, among all faults and nodes.
    pub fn row_at(&self, cursor: Cursor, at: Position, cx: &Cx<'_>) -> Option<usize> {
        let (faults, nodes) = (Faults::faults(cx).len(), Faults::nodes(cx).len());
        let [of_faults, of_nodes] = cursors(cursor, faults, nodes);
        let within = |area: Rect, cursor: Option<usize>, rows: usize| {
            let line = list_row_at(area, at)?;
            let mut place = Cursor::default();
            place.go(cursor.unwrap_or(0));
            let row = place.window(rows, list_rows(area)).start + line;
            (row < rows).then_some(row)
        };
        within(self.faults, of_faults, faults)
            .or_else(|| Some(faults + within(self.nodes, of_nodes, nodes)?))
    }
}

/// The row under the cursor among the faults, or among the nodes.
fn cursors(cursor: Cursor, faults: usize, nodes: usize) -> [Option<usize>; 2] {
    let at = cursor.of(faults + nodes);
    match at.checked_sub(faults) {
        _ if faults + nodes == 0 => [None, None],
        None => [Some(at), None],
        Some(node) => [None, Some(node)],
    }
}

pub fn name<'a>(row: &FaultRow<'a>) -> &'a str {
    match row {
        FaultRow::Validator(node) => &node.name,
        FaultRow::Runner(node) => &node.name,
        FaultRow::Fault(_) => "",
    }
}

/// The state of a node, and its style.
pub fn state(row: &FaultRow<'_>, cx: &Cx<'_>) -> (&'static str, Style) {
    let look = cx.look;
    match row {
        FaultRow::Validator(node) => match node.status {
            ValidatorState::Running => ("running", look.good()),
            ValidatorState::Starting => ("starting", look.warn()),
            ValidatorState::CatchingUp => ("catching up", look.warn()),
            ValidatorState::Paused => ("paused", look.bad()),
            ValidatorState::Stopped => ("stopped", look.bad()),
            ValidatorState::Died => ("died", look.bad()),
        },
        FaultRow::Runner(node) => match node.status {
            RunnerState::Connected => ("connected", look.good()),
            RunnerState::Connecting => ("connecting", look.warn()),
            RunnerState::Stopped => ("stopped", look.bad()),
        },
        FaultRow::Fault(_) => ("", Style::new()),
    }
}

/// A node's value in a column.
pub fn key(row: &FaultRow<'_>, column: usize, cx: &Cx<'_>) -> SortKey {
    match (NODES[column].name, row) {
        ("node", _) => SortKey::text(name(row)),
        ("state", _) => SortKey::text(state(row, cx).0),
        ("faults", _) => SortKey::text(marks(cx.shared.faults(), name(row))),
        ("height", FaultRow::Validator(node)) => SortKey::number(node.height),
        ("connected", FaultRow::Runner(node)) => {
            SortKey::number(node.connected_validators.len() as u64)
        }
        ("note", _) => SortKey::text(note(row)),
        _ => SortKey::Nothing,
    }
}

fn note(row: &FaultRow<'_>) -> String {
    match row {
        FaultRow::Validator(node) => node.reason.clone().unwrap_or_default(),
        FaultRow::Runner(node) => {
            let unmet = node.unmet.as_ref().map(ToString::to_string);
            unmet.unwrap_or_else(|| node.connected_validators.join(" "))
        }
        FaultRow::Fault(_) => String::new(),
    }
}

/// Draws the fault or node under the cursor in full.
fn draw_row(row: &FaultRow<'_>, area: Rect, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    let mut page = Page::new(area.width, look);
    let (title, faults) = match row {
        FaultRow::Fault(fault) => (format!("fault {}", fault.id), vec![*fault]),
        FaultRow::Validator(_) | FaultRow::Runner(_) => {
            let here = cx.shared.faults().iter().filter(|fault| affects(fault, name(row)));
            (name(row).to_owned(), here.collect())
        }
    };
    let (word, style) = state(row, cx);
    match row {
        FaultRow::Validator(node) => {
            page.fact("state", word, style);
            page.plain("height", &grouped(node.height.into()));
            let seat = node.index.map(|index| format!("place {index} in the committee"));
            page.plain("votes", &seat.unwrap_or_else(|| "no: it follows the chain".to_owned()));
            page.plain("address", &node.address.to_string());
        }
        FaultRow::Runner(node) => {
            page.fact("state", word, style);
            page.plain("connected", &node.connected_validators.join(" "));
            page.plain("address", &node.address.to_string());
            if let Some(unmet) = &node.unmet {
                page.fact("not present", &unmet.to_string(), look.warn());
            }
        }
        FaultRow::Fault(_) => {}
    }
    for fault in faults {
        page.title(&format!("fault {}: {}", fault.id, what(&fault.fault)));
        page.plain("where", &place(fault));
        page.plain("since block", &grouped(fault.since.into()));
        page.plain("until", &until(fault, cx));
        let effects = [fault.dropped, fault.delayed, fault.lies].map(|count| grouped(count.into()));
        let [dropped, delayed, lies] = effects;
        page.plain("so far", &format!("{dropped} dropped, {delayed} delayed, {lies} lies"));
    }
    let area = section(&title, area, look, buffer);
    page.draw(Cursor::default(), area, buffer);
}

pub fn draw(pane: &Faults, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    let shape = shape(cx);
    let (faults, nodes) = (Faults::faults(cx), Faults::nodes(cx));
    let [of_faults, of_nodes] = cursors(pane.cursor(cx), faults.len(), nodes.len());
    let title = format!("faults in force: {}", cx.shared.faults().len());
    let area = section(&title, shape.faults, look, buffer);
    if faults.is_empty() {
        let text = match &cx.shared.status {
            None => "asking".to_owned(),
            Some(status) if status.faults.is_empty() => {
                "none: p pauses the node under the cursor, x kills it, :fault has more".to_owned()
            }
            Some(_) => unlike("fault", None, cx),
        };
        let text = wrapped(&text, area.width).into_iter();
        lines(text.map(|line| Line::styled(line, look.faint())), area, buffer);
    } else {
        let (seen, selected) = seen(&faults, of_faults, shape.faults);
        let rows: Vec<_> = seen.iter().map(|row| fault_row(row, cx)).collect();
        grid(&FAULTS, &rows, selected, area, look, buffer);
    }
    if let Some(row) = pane.chosen(cx).filter(|_| shape.below.height > 0) {
        draw_row(&row, shape.below, cx, buffer);
    }
    let title = format!("nodes: {}", grouped(nodes.len() as u128));
    let area = section(&title, shape.nodes, look, buffer);
    if nodes.is_empty() && cx.shared.status.is_some() {
        let text = unlike("node", None, cx);
        return lines([Line::styled(text, look.faint())], area, buffer);
    }
    let (seen, selected) = seen(&nodes, of_nodes, shape.nodes);
    let rows: Vec<_> = seen.iter().map(|row| node_row(row, cx)).collect();
    list_grid(&NODES, NODES.len(), &rows, selected, area, cx, buffer);
}

/// The visible rows of a list, and which of them is under the cursor if that is in the list.
fn seen<'a, 'b>(
    rows: &'b [FaultRow<'a>],
    at: Option<usize>,
    area: Rect,
) -> (&'b [FaultRow<'a>], Option<usize>) {
    let mut cursor = Cursor::default();
    cursor.go(at.unwrap_or(0));
    let (seen, selected) = cursor.seen(rows, list_rows(area));
    (seen, selected.filter(|_| at.is_some()))
}

fn until(fault: &Fault, cx: &Cx<'_>) -> String {
    match (fault.until_height, &fault.until) {
        (Some(height), _) => grouped(height.into()),
        (None, Some(at)) => format!("{} left", seconds_since(cx.now, (**at).max(cx.now))),
        (None, None) => "-".to_owned(),
    }
}

fn fault_row(row: &FaultRow<'_>, cx: &Cx<'_>) -> Vec<Cell> {
    let FaultRow::Fault(fault) = row else { return Vec::new() };
    let number = |value: u64| plain(grouped(value.into()));
    vec![
        plain(fault.id.to_string()),
        (what(&fault.fault), cx.look.bad()),
        plain(place(fault)),
        number(fault.since),
        plain(until(fault, cx)),
        number(fault.dropped),
        number(fault.delayed),
        number(fault.lies),
    ]
}

fn node_row(row: &FaultRow<'_>, cx: &Cx<'_>) -> Vec<Cell> {
    let (word, style) = state(row, cx);
    let height = match row {
        FaultRow::Validator(node) => Some(grouped(node.height.into())),
        FaultRow::Runner(_) | FaultRow::Fault(_) => None,
    };
    let connected = match row {
        FaultRow::Runner(node) => Some(node.connected_validators.len()),
        FaultRow::Validator(_) | FaultRow::Fault(_) => None,
    };
    vec![
        plain(name(row)),
        (word.to_owned(), style),
        (marks(cx.shared.faults(), name(row)), cx.look.bad()),
        plain(or_dash(height)),
        plain(or_dash(connected)),
        (note(row), faint(row, cx.look)),
    ]
}

/// The style of a node's note, which is highlighted if it is a reason.
fn faint(row: &FaultRow<'_>, look: Look) -> Style {
    match row {
        FaultRow::Validator(_) => look.warn(),
        FaultRow::Runner(node) if node.unmet.is_some() => look.warn(),
        _ => look.faint(),
    }
}
