//! Faults in force, the nodes with their state, and keys that break and heal them.

mod view;

use crate::dashboard::{
    arrangement::Column,
    news::Ask,
    pane::{Cx, Pane, Proposal},
    rows::Cursor,
    trouble::{is_at, marks, place, what},
};
use cowboy_devnet::types::{
    Fault, FaultSpec, RunnerState, RunnerStatus, ValidatorState, ValidatorStatus,
};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};

/// A row: a fault in force, or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultRow<'a> {
    Fault(&'a Fault),
    Validator(&'a ValidatorStatus),
    Runner(&'a RunnerStatus),
}

/// The identity of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKey {
    Fault(u64),
    Node(String),
}

impl FaultRow<'_> {
    fn key(&self) -> FaultKey {
        match self {
            Self::Fault(fault) => FaultKey::Fault(fault.id),
            Self::Validator(node) => FaultKey::Node(node.name.clone()),
            Self::Runner(node) => FaultKey::Node(node.name.clone()),
        }
    }
}

#[derive(Debug, Default)]
pub struct Faults {
    /// The row under the cursor; the first node before the cursor has moved.
    picked: Option<FaultKey>,
    /// Its last position, for the time when it is gone.
    last: Cursor,
}

impl Faults {
    /// The faults that the filter accepts.
    pub fn faults<'a>(cx: &Cx<'a>) -> Vec<FaultRow<'a>> {
        let accepts = |fault: &&Fault| {
            cx.filter.accepts(&format!("{} {} {}", fault.id, what(&fault.fault), place(fault)))
        };
        cx.shared.faults().iter().filter(accepts).map(FaultRow::Fault).collect()
    }

    /// The nodes that the filter accepts: validators, then runners, unless the user has sorted
    /// them.
    pub fn nodes<'a>(cx: &Cx<'a>) -> Vec<FaultRow<'a>> {
        let Some(status) = &cx.shared.status else { return Vec::new() };
        let validators = status.validators.iter().map(FaultRow::Validator);
        let runners = status.runners.iter().map(FaultRow::Runner);
        let accepts = |row: &FaultRow<'_>| {
            let (name, state) = (view::name(row), view::state(row, cx).0);
            cx.filter.accepts(&format!("{name} {state} {}", marks(&status.faults, name)))
        };
        let mut nodes: Vec<_> = validators.chain(runners).filter(accepts).collect();
        // Between names with numbers, the shorter one has the smaller number.
        nodes.sort_by_key(|row| {
            let name = view::name(row);
            (matches!(row, FaultRow::Runner(_)), name.len(), name)
        });
        cx.arrangement.sort(&mut nodes, |row, column| view::key(row, column, cx));
        nodes
    }

    fn rows<'a>(cx: &Cx<'a>) -> Vec<FaultRow<'a>> {
        Self::faults(cx).into_iter().chain(Self::nodes(cx)).collect()
    }

    /// The cursor among the faults and the nodes below them.
    pub fn cursor(&self, cx: &Cx<'_>) -> Cursor {
        let mut cursor = self.last;
        match &self.picked {
            None => cursor.go(Self::faults(cx).len()),
            Some(picked) => {
                if let Some(at) = Self::rows(cx).iter().position(|row| row.key() == *picked) {
                    cursor.go(at);
                }
            }
        }
        cursor
    }

    /// Moves the cursor to a place, where it stays on its row.
    fn go(&mut self, cursor: Cursor, cx: &Cx<'_>) {
        let rows = Self::rows(cx);
        self.last = cursor;
        self.picked = rows.get(cursor.of(rows.len())).map(FaultRow::key);
    }

    /// The row under the cursor.
    pub fn chosen<'a>(&self, cx: &Cx<'a>) -> Option<FaultRow<'a>> {
        let rows = Self::rows(cx);
        rows.get(self.cursor(cx).of(rows.len())).copied()
    }
}

fn run(about: String, words: &[&str]) -> Proposal {
    Proposal::Run { about, words: words.iter().map(|word| (*word).to_owned()).collect() }
}

/// Heals the fault under the cursor, or those that are laid on the node under it.
fn heal(row: &FaultRow<'_>, faults: &[Fault]) -> Proposal {
    if let FaultRow::Fault(fault) = row {
        let about = format!("heal fault {}: {} at {}", fault.id, what(&fault.fault), place(fault));
        return run(about, &["fault", "heal", &fault.id.to_string()]);
    }
    let node = view::name(row);
    match faults.iter().filter(|fault| is_at(fault, node)).count() {
        0 => Proposal::Nothing(format!("no fault is laid on {node} itself")),
        1 => run(format!("heal the fault of {node}"), &["fault", "heal", node]),
        count => run(format!("heal the {count} faults of {node}"), &["fault", "heal", node]),
    }
}

fn heal_all(faults: &[Fault]) -> Proposal {
    match faults.len() {
        0 => Proposal::Nothing("no fault is in force".to_owned()),
        1 => run("heal the fault in force".to_owned(), &["fault", "heal", "all"]),
        count => run(format!("heal all {count} faults in force"), &["fault", "heal", "all"]),
    }
}

/// Pauses the node under the cursor, or lets it go on.
fn pause(row: &FaultRow<'_>, faults: &[Fault]) -> Proposal {
    let node = view::name(row);
    let paused =
        |fault: &&Fault| matches!(fault.fault, FaultSpec::Pause { .. }) && is_at(fault, node);
    match faults.iter().find(paused) {
        Some(fault) => run(
            format!("resume {node}: messages reach it and leave it again"),
            &["fault", "heal", &fault.id.to_string()],
        ),
        None => run(
            format!("pause {node}: no message reaches it or leaves it until it is resumed"),
            &["fault", "pause", node],
        ),
    }
}

/// Kills the node under the cursor, or starts it.
fn kill(row: &FaultRow<'_>, faults: &[Fault]) -> Proposal {
    let node = view::name(row);
    let killed =
        |fault: &&Fault| matches!(fault.fault, FaultSpec::Kill { .. }) && is_at(fault, node);
    if let Some(fault) = faults.iter().find(killed) {
        let about = format!("start {node} with what it has on disk");
        return run(about, &["fault", "heal", &fault.id.to_string()]);
    }
    match row {
        FaultRow::Validator(validator)
            if matches!(validator.status, ValidatorState::Stopped | ValidatorState::Died) =>
        {
            run(format!("start {node}: it catches up"), &["validator", "start", node])
        }
        FaultRow::Runner(runner) if runner.status == RunnerState::Stopped => {
            run(format!("start {node}"), &["runner", "start", node])
        }
        _ => run(
            format!("kill {node} at once, like a crash: it saves nothing and stays down"),
            &["fault", "kill", node],
        ),
    }
}

impl Pane for Faults {
    fn name(&self) -> &'static str {
        "faults"
    }

    fn short(&self) -> &'static str {
        "fault"
    }

    /// The devnet's status, which is always asked, has everything.
    fn wants(&self, _cx: &Cx<'_>) -> Vec<Ask> {
        Vec::new()
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let (mut cursor, rows) = (self.cursor(cx), Self::rows(cx).len());
        let moved = cursor.key(key, rows, view::shape(cx).rows());
        if moved {
            self.go(cursor, cx);
        }
        moved
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let place = view::shape(cx).row_at(self.cursor(cx), at, cx);
        if let Some(place) = place {
            let mut cursor = Cursor::default();
            cursor.go(place);
            self.go(cursor, cx);
        }
        place.is_some()
    }

    fn propose(&self, key: KeyEvent, cx: &Cx<'_>) -> Option<Proposal> {
        let faults = cx.shared.faults();
        let code = match key.code {
            KeyCode::Char('H') => return Some(heal_all(faults)),
            KeyCode::Char(code @ ('h' | 'p' | 'x')) => code,
            _ => return None,
        };
        let row = self.chosen(cx)?;
        let is_node = !matches!(row, FaultRow::Fault(_));
        Some(match code {
            'h' => heal(&row, faults),
            'p' if is_node => pause(&row, faults),
            'x' if is_node => kill(&row, faults),
            _ => Proposal::Nothing("p and x are for a node: move to one below".to_owned()),
        })
    }

    fn columns(&self) -> &'static [Column] {
        &view::NODES
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        Some(match self.chosen(cx) {
            Some(FaultRow::Validator(node)) => format!("cowboyctl validator show {}", node.name),
            Some(FaultRow::Runner(node)) => format!("cowboyctl runner show {}", node.name),
            Some(FaultRow::Fault(_)) | None => "cowboyctl fault ls".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move among faults and nodes"),
            ("h", "heal the fault under the cursor, or those of the node"),
            ("H", "heal all faults"),
            ("p", "pause the node under the cursor, or let it go on"),
            ("x", "kill the node under the cursor, or start it"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
