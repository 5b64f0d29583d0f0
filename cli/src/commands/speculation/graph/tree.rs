//! The graph as lines: roots first, children below, with the status of each task.

use super::{colour, cut};
use crate::{
    commands::speculation::show::headline,
    output::{
        FAINT, HEADING, amount, fitted,
        forest::{Forest, TreeLine},
        millis, or_dash,
        pipeline::{one_line, reached_ms},
        room,
    },
};
use cowboy_devnet::types::{Pipeline, SpeculativeTask, TaskStatus};

/// The columns after the first, and whether they are aligned to the right.
const HEADER: [(&str, bool); 5] =
    [("STATUS", false), ("DEPTH", true), ("BOND", true), ("RUNNER", false), ("AT", true)];

/// The minimum width of names, even on a narrow terminal.
const LEAST_NAME: usize = 16;

pub(in crate::commands::speculation) const GAP: &str = "  ";

/// The graph in lines of at most `columns` columns. Without a limit by a terminal, nothing is cut
/// or left out. Styled, without a line feed at the end.
pub fn tree(pipeline: &Pipeline, columns: usize) -> String {
    let tasks = &pipeline.graph;
    let forest = Forest::of(tasks);
    let lines = forest.lines();
    let cells: Vec<_> = lines.iter().map(|line| cells(&tasks[line.task])).collect();
    let mut widths = HEADER.map(|(name, _)| name.len());
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let shown = shown(&widths);
    let others: usize = widths[..shown].iter().map(|width| GAP.len() + width).sum();
    // No line ends with spaces.
    if let Some(last) = shown.checked_sub(1).filter(|last| !HEADER[*last].1) {
        widths[last] = 0;
    }
    let longest = lines.iter().map(|line| line.width(tasks)).max().unwrap_or(0);
    let least = columns.saturating_sub(others).max(LEAST_NAME);
    let name_width = longest.min(room().map_or(longest, |_| least)).max("TASK".len());

    let mut text = headline(&pipeline.summary);
    let task_width = if shown == 0 { 0 } else { name_width };
    text += &format!("\n\n{HEADING}{:task_width$}", "TASK");
    for ((name, right), width) in HEADER.into_iter().zip(widths).take(shown) {
        text += &format!("{GAP}{}", padded(name, width, right));
    }
    text += &format!("{HEADING:#}");
    for (line, row) in lines.iter().zip(&cells) {
        let task = &tasks[line.task];
        let name = cut(&task.task, name_width.saturating_sub(line.lead.chars().count()));
        let taken = line.lead.chars().count() + name.chars().count();
        let fill = if shown == 0 { 0 } else { name_width.saturating_sub(taken) };
        text += &format!("\n{FAINT}{}{FAINT:#}{name}{:fill$}", line.lead, "");
        let row = row.iter().zip(widths).zip(HEADER).take(shown);
        for (index, ((cell, width), (_, right))) in row.enumerate() {
            let cell = padded(cell, width, right);
            text += GAP;
            text += &match index {
                0 => format!("{}{cell}{:#}", colour(task.status), colour(task.status)),
                _ => cell,
            };
        }
        let Some(note) = note(&forest, line, tasks) else { continue };
        let whole = taken.max(name_width) + others;
        if whole + GAP.len() + note.chars().count() <= columns {
            text += &format!("{GAP}{FAINT}{note}{FAINT:#}");
        } else {
            let width = columns.saturating_sub(line.below.chars().count()).max(LEAST_NAME);
            for part in wrapped(&note, width) {
                text += &format!("\n{FAINT}{}{part}{FAINT:#}", line.below);
            }
        }
    }
    if tasks.iter().any(|task| task.depends_on.iter().any(|parent| parent.order_only)) {
        text +=
            &format!("\n\n{FAINT}only after: the order counts, the output is not read{FAINT:#}");
    }
    fitted(text)
}

/// Number of columns shown after the names. Those that do not fit are left out, because a cut
/// number would be a wrong number.
fn shown(widths: &[usize]) -> usize {
    let Some(mut left) = room().map(|columns| columns.saturating_sub(LEAST_NAME)) else {
        return widths.len();
    };
    let fits = |width: &&usize| match left.checked_sub(GAP.len() + **width) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    widths.iter().take_while(fits).count()
}

impl TreeLine {
    fn width(&self, tasks: &[SpeculativeTask]) -> usize {
        self.lead.chars().count() + tasks[self.task].task.chars().count()
    }
}

/// A text in lines of at most `columns` columns; a longer word gets its own line.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn padded(cell: &str, width: usize, right: bool) -> String {
    if right { format!("{cell:>width$}") } else { format!("{cell:width$}") }
}

fn cells(task: &SpeculativeTask) -> [String; 5] {
    [
        task.status.to_string(),
        or_dash(task.depth),
        or_dash(task.bond.map(|bond| amount(*bond))),
        or_dash(task.runner.clone()),
        or_dash(reached_ms(task).map(millis)),
    ]
}

/// Notes that no column shows: other parents, attempts, and why it failed.
fn note(forest: &Forest, line: &TreeLine, tasks: &[SpeculativeTask]) -> Option<String> {
    let task = &tasks[line.task];
    let mut notes = Vec::new();
    let under = forest.under[line.task];
    let parents = &forest.parents[line.task];
    let only_order = parents.iter().find(|(parent, only)| *only && Some(*parent) == under);
    if let Some((parent, _)) = only_order {
        notes.push(format!("only after {}", tasks[*parent].task));
    }
    for (order_only, word) in [(false, "+ after"), (true, "+ only after")] {
        let others = parents.iter().filter(|(at, only)| Some(*at) != under && *only == order_only);
        let others: Vec<_> = others.map(|(at, _)| tasks[*at].task.as_str()).collect();
        if !others.is_empty() {
            notes.push(format!("{word} {}", others.join(", ")));
        }
    }
    if task.attempt > 1 {
        notes.push(format!("attempt {}", task.attempt));
    }
    if let Some(reason) = task.reason.as_ref().filter(|_| task.status == TaskStatus::Failed) {
        notes.push(one_line(reason));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}
