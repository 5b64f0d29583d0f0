//! Records of most recently used runners, and one of them with its runner and jobs.

use super::{
    grid::{Cell, Column, grid, plain},
    lines as draw_lines, section, wrapped,
};
use crate::{
    dashboard::{
        look::Look,
        panes::{Cx, Mru, MruOpened as Opened},
        text::fit,
    },
    output::{amount, grouped},
};
use cowboy_devnet::api::types::{JobStatus, MruRecord, Runner, RunnerHealth};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

/// The columns of the list, the most important first: how many are shown depends on the width.
const COLUMNS: [Column; 8] = [
    Column::long("submitter"),
    Column::text("kind"),
    Column::long("runner"),
    Column::text("state"),
    Column::number("blocks left"),
    Column::number("set at"),
    Column::number("expires at"),
    Column::long("runner's address"),
];

/// The width of the names of facts.
const NAME: usize = 14;

/// Rows that fit into an area, below the rule and the header.
pub fn rows(area: Rect) -> usize {
    area.height.saturating_sub(2).into()
}

/// Draws the pane.
pub fn draw(pane: &Mru, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    if let Some(opened) = &pane.opened {
        let area = section("most recently used runner", cx.area, look, buffer);
        let all = lines(pane, opened, cx);
        let last = all.len().saturating_sub(rows(cx.area));
        return draw_lines(all.into_iter().skip(opened.first.of(last + 1)), area, buffer);
    }
    let accepted = pane.accepted(cx);
    let all = pane.records.iter().flatten();
    let (live, known) = (all.clone().filter(|record| record.live).count(), all.count());
    let (live, expired) = (grouped(live as u128), grouped((known - live) as u128));
    let mut title = format!("most recently used runners: {live} live, {expired} expired");
    if !cx.filter.is_empty() {
        title += &format!("; {} match", grouped(accepted.len() as u128));
    }
    let area = section(&title, cx.area, look, buffer);
    if accepted.is_empty() {
        return draw_lines(nothing(pane, area.width, look), area, buffer);
    }
    let cursor = pane.cursor(&accepted);
    let window = cursor.window(accepted.len(), rows(cx.area));
    let selected = cursor.of(accepted.len()).checked_sub(window.start);
    let rows: Vec<_> = accepted[window].iter().map(|record| row(record, cx)).collect();
    let columns = if area.width < 110 { &COLUMNS[..7] } else { &COLUMNS };
    grid(columns, &rows, selected, area, look, buffer);
}

fn nothing(pane: &Mru, width: u16, look: Look) -> Vec<Line<'static>> {
    let text = match (&pane.records, &pane.refused) {
        (_, Some(reason)) => format!("no records: {reason}"),
        (None, None) => "asking".to_owned(),
        (Some(records), None) if records.is_empty() => {
            "no record yet: a verified job leaves one: cowboyctl job submit".to_owned()
        }
        (Some(_), None) => "no record like that".to_owned(),
    };
    wrapped(&text, width).into_iter().map(|line| Line::styled(line, look.faint())).collect()
}

/// Whether a record counts, and for how many blocks it still does.
fn state(record: &MruRecord, cx: &Cx<'_>) -> (&'static str, Style, String) {
    let left = record.expires_at.saturating_sub(cx.shared.height);
    match record.live {
        true => ("live", cx.look.good(), grouped(left.into())),
        false => ("expired", cx.look.faint(), "-".to_owned()),
    }
}

fn row(record: &MruRecord, cx: &Cx<'_>) -> Vec<Cell> {
    let (word, style, left) = state(record, cx);
    let submitter = record.submitter_name.clone().unwrap_or_else(|| record.submitter.to_string());
    vec![
        plain(submitter),
        plain(record.kind.clone()),
        plain(record.runner.clone()),
        (word.to_owned(), style),
        plain(left),
        plain(grouped(record.set_at.into())),
        plain(grouped(record.expires_at.into())),
        plain(record.runner_address.to_string()),
    ]
}

/// A record in full, in lines.
pub fn lines(pane: &Mru, opened: &Opened, cx: &Cx<'_>) -> Vec<Line<'static>> {
    let look = cx.look;
    let Some(record) = pane.record() else {
        return vec![Line::styled("this record is gone", look.faint())];
    };
    let width = usize::from(cx.area.width).saturating_sub(NAME);
    let fact = |name: &str, value: String, style: Style| {
        let name = Span::styled(format!("{name:<NAME$}"), look.faint());
        Line::from(vec![name, Span::styled(fit(&value, width), style)])
    };
    let named = |name: Option<&str>, address: String| match name {
        Some(name) if name != address => format!("{name} ({address})"),
        _ => address,
    };
    let (word, style, left) = state(record, cx);
    let state = match record.live {
        true => format!("{word} for {left} more blocks, to {}", grouped(record.expires_at.into())),
        false => format!("{word} at {}", grouped(record.expires_at.into())),
    };
    let submitter = named(record.submitter_name.as_deref(), record.submitter.to_string());
    let mut text = vec![
        fact("submitter", submitter, Style::new()),
        fact("kind", record.kind.clone(), Style::new()),
        fact(
            "runner",
            named(Some(&record.runner), record.runner_address.to_string()),
            Style::new(),
        ),
        fact("set at", grouped(record.set_at.into()), Style::new()),
        fact("state", state, style),
    ];
    let favour = match record.live {
        true => "the first draw of this submitter's next job of the kind favours it",
        false => "no draw favours it any more",
    };
    text.push(fact("", favour.to_owned(), look.faint()));
    text.push(Line::default());
    text.push(Line::styled(format!("{} now", record.runner), look.title()));
    // The record may have become one of another runner since.
    let runner = opened.runner.as_ref().filter(|runner| runner.name == record.runner);
    match (runner, &opened.refused) {
        (Some(runner), _) => {
            text.extend(
                facts(runner, look)
                    .into_iter()
                    .map(|(name, value, style)| fact(name, value, style)),
            );
        }
        (None, Some(reason)) => text.push(Line::styled(reason.clone(), look.faint())),
        (None, None) => text.push(Line::styled("asking", look.faint())),
    }
    text.push(Line::default());
    text.push(Line::styled("newest jobs that it is about", look.title()));
    let before = text.len();
    text.extend(pane.jobs(&opened.key).map(|job| {
        let style = match job.status {
            JobStatus::Verified => look.good(),
            JobStatus::Failed => look.bad(),
            JobStatus::Cancelled => look.warn(),
            _ => look.busy(),
        };
        let id = fit(&job.job_id.to_string(), 18);
        let about = format!("{id:<19} at {:<10}", grouped(job.submitted_at.into()));
        let room = usize::from(cx.area.width).saturating_sub(46);
        Line::from(vec![
            Span::raw(about),
            Span::styled(format!(" {:<10} ", job.status), style),
            Span::raw(fit(&job.committee.join(" "), room)),
        ])
    }));
    if text.len() == before {
        text.push(Line::styled("none of the newest 200", look.faint()));
    }
    text
}

/// What the registry says of a runner now.
fn facts(runner: &Runner, look: Look) -> Vec<(&'static str, String, Style)> {
    let present = match runner.present {
        true => ("present", "yes: the newest certified block has it".to_owned(), look.good()),
        false => ("present", "no: the newest certified block has it not".to_owned(), look.bad()),
    };
    let status = match runner.status {
        RunnerHealth::Healthy => ("status", "healthy".to_owned(), look.good()),
        RunnerHealth::Unhealthy => ("status", "unhealthy".to_owned(), look.warn()),
        RunnerHealth::Deregistered => ("status", "deregistered".to_owned(), look.bad()),
    };
    let jobs = format!("{} of {} at a time", runner.active_jobs, runner.max_concurrent_jobs);
    vec![
        status,
        present,
        ("jobs", jobs, Style::new()),
        ("takes", runner.kinds.join(" "), Style::new()),
        ("reputation", format!("{} of 100", runner.reputation), Style::new()),
        ("stake", amount(*runner.stake), Style::new()),
    ]
}
