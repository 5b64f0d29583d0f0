//! Records of most recently used runners, and one of them with its runner and jobs.

use super::{Mru, OpenedRecord, key_of};
use crate::{
    dashboard::{
        arrangement::SortKey,
        drawing::{
            Cell, Column, Page, beneath, lines, list_grid, list_rows, plain, section, unlike,
            wrapped,
        },
        look::Look,
        pane::Cx,
        panes::jobs,
    },
    output::{amount, grouped},
};
use cowboy_devnet::types::{JobSummary, MruRecord, PresenceStanding, Runner, RunnerHealth};
use ratatui::{buffer::Buffer, style::Style, text::Line};

/// The columns of the list, the most important first; narrow terminals show fewer.
pub const COLUMNS: [Column; 9] = [
    Column::long("submitter"),
    Column::text("kind"),
    Column::long("runner"),
    Column::text("state"),
    Column::number("blocks left"),
    Column::number("set at"),
    Column::number("expires at"),
    Column::long("runner's address"),
    Column::long("submitter's address"),
];

const JOBS: [Column; 4] =
    [Column::long("job"), Column::number("block"), Column::text("status"), Column::long("runners")];

pub fn draw(pane: &Mru, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    if let Some(opened) = &pane.opened {
        let area = section("most recently used runner", cx.area, look, buffer);
        return page(pane, opened, cx).draw(opened.first, area, buffer);
    }
    let accepted = pane.accepted(cx);
    let all = pane.records.iter().flatten();
    let (live, known) = (all.clone().filter(|record| record.live).count(), all.count());
    let (live, expired) = (grouped(live as u128), grouped((known - live) as u128));
    let mut title = format!("most recently used runners: {live} live, {expired} expired");
    if !cx.filter.is_empty() {
        title += &format!("; {} match", grouped(accepted.len() as u128));
    }
    let (list, below) = beneath(cx.area, accepted.len());
    if let Some(chosen) = pane.chosen(cx).filter(|_| below.height > 0) {
        let unknown = OpenedRecord::new(key_of(chosen));
        let opened = pane.preview(cx).unwrap_or(&unknown);
        let area = section("record under the cursor", below, look, buffer);
        page(pane, opened, cx).draw(opened.first, area, buffer);
    }
    let area = section(&title, list, look, buffer);
    if accepted.is_empty() {
        return lines(nothing(pane, cx), area, buffer);
    }
    let (seen, selected) = pane.cursor(&accepted).seen(&accepted, list_rows(list));
    let rows: Vec<_> = seen.iter().map(|record| row(record, cx)).collect();
    let most = match area.width {
        0..110 => 7,
        110..160 => 8,
        _ => COLUMNS.len(),
    };
    list_grid(&COLUMNS, most, &rows, selected, area, cx, buffer);
}

/// A record's value in a column.
pub fn key(record: &MruRecord, column: usize, cx: &Cx<'_>) -> SortKey {
    match COLUMNS[column].name {
        "submitter" => SortKey::text(submitter(record)),
        "kind" => SortKey::text(&record.kind),
        "runner" => SortKey::text(&record.runner),
        "state" => SortKey::number(u8::from(!record.live)),
        "blocks left" => SortKey::number(record.expires_at.saturating_sub(cx.shared.height)),
        "set at" => SortKey::number(record.set_at),
        "expires at" => SortKey::number(record.expires_at),
        "runner's address" => SortKey::text(record.runner_address),
        _ => SortKey::text(record.submitter),
    }
}

fn submitter(record: &MruRecord) -> String {
    record.submitter_name.clone().unwrap_or_else(|| record.submitter.to_string())
}

fn nothing(pane: &Mru, cx: &Cx<'_>) -> Vec<Line<'static>> {
    let text = match (&pane.records, &pane.refused) {
        (_, Some(reason)) => format!("no records: {reason}"),
        (None, None) => "asking".to_owned(),
        (Some(records), None) if records.is_empty() => {
            "no record yet: a verified job leaves one: cowboyctl job submit".to_owned()
        }
        (Some(_), None) => {
            unlike("record", pane.live_only.then_some("a shows those that have expired"), cx)
        }
    };
    let lines = wrapped(&text, cx.area.width).into_iter();
    lines.map(|line| Line::styled(line, cx.look.faint())).collect()
}

fn state(record: &MruRecord, cx: &Cx<'_>) -> (&'static str, Style, String) {
    let left = record.expires_at.saturating_sub(cx.shared.height);
    match record.live {
        true => ("live", cx.look.good(), grouped(left.into())),
        false => ("expired", cx.look.faint(), "-".to_owned()),
    }
}

fn row(record: &MruRecord, cx: &Cx<'_>) -> Vec<Cell> {
    let (word, style, left) = state(record, cx);
    vec![
        plain(submitter(record)),
        plain(record.kind.clone()),
        plain(record.runner.clone()),
        (word.to_owned(), style),
        plain(left),
        plain(grouped(record.set_at.into())),
        plain(grouped(record.expires_at.into())),
        plain(record.runner_address.to_string()),
        plain(record.submitter.to_string()),
    ]
}

pub fn page(pane: &Mru, opened: &OpenedRecord, cx: &Cx<'_>) -> Page {
    let look = cx.look;
    let mut page = Page::new(cx.area.width, look);
    let Some(record) = pane.record(&opened.key) else {
        page.text("this record is gone", look.faint());
        return page;
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
    let favour = match record.live {
        true => "the first draw of this submitter's next job of the kind favours it",
        false => "no draw favours it now",
    };
    let submitter = record.submitter_name.as_deref();
    page.plain("submitter", &named(submitter, record.submitter.to_string()));
    page.plain("kind", &record.kind);
    page.plain("runner", &named(Some(&record.runner), record.runner_address.to_string()));
    page.plain("set at", &grouped(record.set_at.into()));
    page.fact("state", &state, style);
    page.fact("", favour, look.faint());
    page.title(&format!("{} now", record.runner));
    // The record may have been replaced by another runner's meanwhile.
    let runner = opened.known.as_ref().filter(|runner| runner.name == record.runner);
    match (runner, &opened.refused) {
        (Some(runner), _) => {
            for (name, value, style) in facts(runner, look) {
                page.fact(name, &value, style);
            }
        }
        (None, Some(reason)) => page.text(reason, look.faint()),
        (None, None) => page.text("asking", look.faint()),
    }
    page.title("newest jobs that it is about");
    let job = |job: &JobSummary| -> Vec<Cell> {
        vec![
            plain(job.job_id.to_string()),
            plain(grouped(job.submitted_at.into())),
            (job.status.to_string(), jobs::style(job.status, look)),
            plain(job.committee.join(" ")),
        ]
    };
    let jobs: Vec<_> = pane.jobs(&opened.key).map(job).collect();
    match jobs.is_empty() {
        true => page.text("none of the newest 200", look.faint()),
        false => page.table(&JOBS, &jobs),
    }
    page
}

fn facts(runner: &Runner, look: Look) -> Vec<(&'static str, String, Style)> {
    let style = match runner.presence.as_ref().map(|presence| presence.standing) {
        Some(PresenceStanding::Stale | PresenceStanding::Halted) => look.warn(),
        Some(PresenceStanding::Unknown) => look.faint(),
        _ if runner.present => look.good(),
        _ => look.bad(),
    };
    let word = if runner.present { PresenceStanding::Present } else { PresenceStanding::Absent };
    let present = runner.presence.as_ref().map(ToString::to_string);
    let present = ("present", present.unwrap_or_else(|| word.word().to_owned()), style);
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
