//! The list of jobs, and one of them with the draw of its runners.

use super::{Jobs, OpenedJob};
use crate::{
    dashboard::{
        arrangement::SortKey,
        drawing::{
            Cell, Column, Page, beneath, lines, list_grid, list_rows, plain, section, unlike,
        },
        look::Look,
        pane::Cx,
        panes::events::happened,
    },
    output::{amount, callback, grouped, millis, or_dash, progress, share},
};
use cowboy_devnet::types::{Candidate, Draw, Explanation, Job, JobStatus, JobSummary};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};

/// The minimum width to show the draw next to the job, instead of below.
const WIDE: u16 = 150;

const GAP: u16 = 2;

/// Width of a bar in characters.
const BAR: usize = 20;

const RESULT: usize = 12;

pub const COLUMNS: [Column; 8] = [
    Column::long("job"),
    Column::text("kind"),
    Column::text("status"),
    Column::number("block"),
    Column::number("took"),
    Column::long("by"),
    Column::long("runners"),
    Column::long("progress"),
];

const CANDIDATES: [Column; 5] = [
    Column::text("runner"),
    Column::number("weight"),
    Column::number("share"),
    Column::text("filter"),
    Column::long("reason"),
];

const DRAWS: [Column; 4] = [
    Column::number("draw"),
    Column::text("picked"),
    Column::long("among the weights"),
    Column::number("point"),
];

pub fn style(status: JobStatus, look: Look) -> Style {
    match status {
        JobStatus::Pending => look.warn(),
        JobStatus::Assigned | JobStatus::Running | JobStatus::Committed => look.busy(),
        JobStatus::Verified => look.good(),
        JobStatus::Failed => look.bad(),
        JobStatus::Cancelled => look.faint(),
    }
}

pub fn draw(pane: &Jobs, cx: &Cx<'_>, buffer: &mut Buffer) {
    if let Some(opened) = &pane.opened {
        return draw_job(opened, cx.area, cx, buffer);
    }
    let accepted = pane.accepted(cx);
    let (list, below) = beneath(cx.area, accepted.len());
    if let Some(preview) = pane.preview(cx).filter(|_| below.height > 0) {
        draw_job(preview, below, cx, buffer);
    }
    let area = section(&title(pane, cx), list, cx.look, buffer);
    let (seen, selected) = pane.cursor(&accepted).seen(&accepted, list_rows(list));
    let shown: Vec<_> = seen.iter().map(|job| row(pane, job, cx)).collect();
    if shown.is_empty() {
        let text = match (pane.all(), &pane.refused) {
            (_, Some(reason)) => reason.clone(),
            (None, None) => "asking for the jobs".to_owned(),
            (Some([]), None) => {
                "no jobs yet: cowboyctl job submit custom --wait -- sh -c 'echo hi'".to_owned()
            }
            (Some(_), None) => unlike("job", pane.open_only.then_some("o shows all"), cx),
        };
        return lines([Line::styled(text, cx.look.faint())], area, buffer);
    }
    // Most jobs end before a runner reports progress.
    let said = shown.iter().any(|row| row.last().is_some_and(|(text, _)| !text.is_empty()));
    let columns = if said { &COLUMNS[..] } else { &COLUMNS[..COLUMNS.len() - 1] };
    list_grid(columns, columns.len(), &shown, selected, area, cx, buffer);
}

fn draw_job(opened: &OpenedJob, area: Rect, cx: &Cx<'_>, buffer: &mut Buffer) {
    let area = section(&format!("job {}", opened.job.key), area, cx.look, buffer);
    let mut x = area.x;
    for page in pages(opened, cx) {
        let width = page.width();
        page.draw(opened.job.first, Rect { x, width, ..area }, buffer);
        x += width + GAP;
    }
}

/// A job's value in a column.
pub fn key(job: &JobSummary, column: usize, cx: &Cx<'_>) -> SortKey {
    let end = job.final_at.unwrap_or(cx.shared.height);
    match COLUMNS[column].name {
        "job" => SortKey::text(job.job_id),
        "kind" => SortKey::text(&job.kind),
        "status" => SortKey::text(job.status),
        "block" => SortKey::number(job.submitted_at),
        "took" => SortKey::number(end.saturating_sub(job.submitted_at)),
        "by" => SortKey::text(by(job)),
        "runners" => SortKey::text(job.committee.join(" ")),
        _ => SortKey::Nothing,
    }
}

fn by(job: &JobSummary) -> String {
    job.submitter_name.clone().unwrap_or_else(|| job.submitter.to_string())
}

fn title(pane: &Jobs, cx: &Cx<'_>) -> String {
    let all = pane.all().unwrap_or_default();
    let accepted = pane.accepted(cx).len();
    let mut title = match accepted == all.len() {
        true => format!("jobs: {}", grouped(all.len() as u128)),
        false => format!("jobs: {} of {}", grouped(accepted as u128), grouped(all.len() as u128)),
    };
    for status in JobStatus::ALL {
        match all.iter().filter(|job| job.status == status).count() {
            0 => {}
            count => title += &format!(", {count} {}", status.to_string().to_lowercase()),
        }
    }
    title
}

fn row(pane: &Jobs, job: &JobSummary, cx: &Cx<'_>) -> Vec<Cell> {
    let took = match job.final_at {
        Some(end) => blocks(end.saturating_sub(job.submitted_at)),
        None => blocks(cx.shared.height.saturating_sub(job.submitted_at)),
    };
    let style_of_took = if job.status.is_final() { Style::new() } else { cx.look.busy() };
    let progress: Vec<_> = pane.progress(job).iter().map(progress).collect();
    vec![
        plain(job.job_id.to_string()),
        plain(job.kind.clone()),
        (job.status.to_string(), style(job.status, cx.look)),
        plain(grouped(job.submitted_at.into())),
        (took, style_of_took),
        plain(by(job)),
        plain(job.committee.join(" ")),
        (progress.join("; "), cx.look.busy()),
    ]
}

fn blocks(count: u64) -> String {
    match count {
        1 => "1 block".to_owned(),
        count => format!("{} blocks", grouped(count.into())),
    }
}

fn bar(part: u64, whole: u64) -> String {
    let full = u128::from(part.min(whole)) * BAR as u128 / u128::from(whole.max(1));
    let full = full as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// The position of a point below `total`: `───●────`.
fn place(point: u64, total: u64) -> String {
    let at = u128::from(point) * BAR as u128 / u128::from(total.max(1));
    let at = (at as usize).min(BAR - 1);
    format!("{}●{}", "─".repeat(at), "─".repeat(BAR - 1 - at))
}

/// Number of positions that a job's page can be scrolled to, if `fit` lines fit.
pub fn places(opened: &OpenedJob, cx: &Cx<'_>, fit: usize) -> usize {
    pages(opened, cx).iter().map(|page| page.places(fit)).max().unwrap_or(1)
}

/// The page of a job: its history, and the draw of its runners next to it or below.
fn pages(opened: &OpenedJob, cx: &Cx<'_>) -> Vec<Page> {
    let width = cx.area.width;
    if width < WIDE {
        let mut page = Page::new(width, cx.look);
        job(opened, &mut page, cx.look);
        page.title("how its runners were drawn");
        explained(opened, &mut page, cx.look);
        history(opened, &mut page);
        return vec![page];
    }
    let half = (width - GAP) / 2;
    let mut left = Page::new(half, cx.look);
    job(opened, &mut left, cx.look);
    history(opened, &mut left);
    let mut right = Page::new(width - GAP - half, cx.look);
    explained(opened, &mut right, cx.look);
    vec![left, right]
}

fn job(opened: &OpenedJob, page: &mut Page, look: Look) {
    let Some(job) = &opened.job.known else {
        let text = opened.job.refused.as_deref().unwrap_or("asking for the job");
        return page.text(text, look.faint());
    };
    page.fact("status", &job.status.to_string(), style(job.status, look));
    if let Some(error) = &job.error {
        page.fact("error", error, look.bad());
    }
    for said in &job.progress {
        let text = format!("{} {}", bar(said.percent.into(), 100), progress(said));
        page.fact("progress", &text, look.busy());
    }
    page.plain("id", &job.job_id.to_string());
    page.plain("kind", &job.kind);
    let name = job.submitter_name.as_ref().map_or_else(String::new, |name| format!("{name} "));
    page.plain("submitter", &format!("{name}{}", job.submitter));
    let runners = match (job.committee.as_slice(), job.status.is_final()) {
        ([], true) => "none".to_owned(),
        ([], false) => "none yet".to_owned(),
        (names, _) => names.join(" "),
    };
    page.plain("runners", &runners);
    page.plain("attempts", &job.attempts.to_string());
    page.plain("blocks", &heights(job));
    if let Some(latency) = job.latency_ms {
        page.plain("latency", &millis(latency));
    }
    if let Some(callback) = callback(&job.spec) {
        page.plain("calls then", &callback);
    }
    let paid = job.paid.map_or_else(String::new, |paid| format!(", {} paid", amount(*paid)));
    page.plain("price", &format!("at most {}{paid}", amount(*job.max_price)));
    if let Some(result) = &job.result {
        let text = job.result_text.clone().unwrap_or_else(|| result.to_string());
        let by = job.runner.as_ref().map_or_else(String::new, |runner| format!(" of {runner}"));
        page.title(&format!("result{by}: {} bytes", grouped(result.0.0.len() as u128)));
        let all: Vec<_> = text.trim_end().lines().map(printable).collect();
        page.text(&all[..all.len().min(RESULT)].join("\n"), Style::new());
        if all.len() > RESULT {
            let more = format!("and {} more lines", all.len() - RESULT);
            page.text(&more, look.faint());
        }
    }
}

/// Text from others, without control characters.
fn printable(text: &str) -> String {
    text.replace('\t', "    ").replace(char::is_control, "\u{fffd}")
}

fn heights(job: &Job) -> String {
    let at = |word: &str, height: u64| format!("{word} in {}", grouped(height.into()));
    let mut parts = vec![at("submitted", job.submitted_at)];
    parts.extend(job.assigned_at.map(|height| at("drawn", height)));
    match job.final_at {
        Some(height) => parts.push(at("final", height)),
        None => parts.push(format!("the attempt ends with {}", grouped(job.deadline.into()))),
    }
    parts.join(", ")
}

fn explained(opened: &OpenedJob, page: &mut Page, look: Look) {
    let Some(explanation) = &opened.explanation else {
        let text = opened.unexplained.as_deref().unwrap_or("asking how its runners were drawn");
        return page.text(text, look.faint());
    };
    let Explanation { height, attempt, wanted, passed, candidates, draws, .. } = explanation;
    let total = candidates.len();
    let tried = if draws.is_empty() { "tried" } else { "drawn" };
    page.plain(tried, &format!("in block {}, attempt {attempt}", grouped((*height).into())));
    let outcome = match draws.is_empty() {
        false => format!("{passed} of {total} runners pass, {wanted} wanted"),
        true => format!(
            "none: {passed} of {total} runners pass, {wanted} wanted; {}",
            next(explanation)
        ),
    };
    let enough = !draws.is_empty();
    page.fact("committee", &outcome, if enough { look.good() } else { look.bad() });
    page.plain("seed", &explanation.seed.to_string());
    page.plain("parent block", &explanation.block_hash.to_string());
    let mru = explanation.mru.as_deref();
    page.plain(
        "favoured",
        &mru.map_or_else(
            || "none: every weight counts once".to_owned(),
            |mru| {
                // Recordings of earlier versions lack this.
                let read = explanation.mru_record.as_ref();
                let times = read.map(|read| format!("{} times", read.multiplier));
                let times = times.as_deref().unwrap_or("several times");
                format!("{mru}, most recently used: it counts {times} in draw 0")
            },
        ),
    );
    if let Some(root) = &explanation.candidates_root {
        page.plain("candidates", &root.to_string());
    }
    page.text(" ", Style::new());
    page.table(&CANDIDATES, &candidates_of(explanation, look));
    if !draws.is_empty() {
        page.text(" ", Style::new());
        page.table(&DRAWS, &draws.iter().map(draw_row).collect::<Vec<_>>());
    }
}

/// The future of a job without runners.
fn next(explanation: &Explanation) -> String {
    match explanation.status {
        JobStatus::Pending => {
            format!("drawn again with each block up to {}", grouped(explanation.deadline.into()))
        }
        JobStatus::Failed => "the job failed".to_owned(),
        JobStatus::Cancelled => "the job was cancelled".to_owned(),
        status => format!("the job is {}", status.to_string().to_lowercase()),
    }
}

fn candidates_of(explanation: &Explanation, look: Look) -> Vec<Vec<Cell>> {
    let sum: u64 = explanation.candidates.iter().filter_map(|candidate| candidate.weight).sum();
    let picked = |runner: &str| explanation.draws.iter().any(|draw| draw.picked == runner);
    let row = |candidate: &Candidate| {
        let share = candidate.weight.map(|weight| share(weight, sum));
        let (verdict, style) = match &candidate.filter {
            Some(filter) => (filter.clone(), look.bad()),
            None if picked(&candidate.runner) => ("passed, drawn".to_owned(), look.good()),
            None => ("passed".to_owned(), Style::new()),
        };
        vec![
            plain(candidate.runner.clone()),
            plain(or_dash(candidate.weight.map(|weight| grouped(weight.into())))),
            plain(or_dash(share)),
            (verdict, style),
            plain(candidate.reason.clone().unwrap_or_default()),
        ]
    };
    explanation.candidates.iter().map(row).collect()
}

fn draw_row(draw: &Draw) -> Vec<Cell> {
    vec![
        plain(draw.draw.to_string()),
        plain(draw.picked.clone()),
        plain(place(draw.r, draw.total)),
        plain(format!("{} of {}", grouped(draw.r.into()), grouped(draw.total.into()))),
    ]
}

fn history(opened: &OpenedJob, page: &mut Page) {
    let Some(job) = &opened.job.known else { return };
    page.title("what happened");
    let mut events = job.events.clone();
    for event in &mut events {
        // The job is shown already.
        event.data.as_object_mut().and_then(|fields| fields.remove("job_id"));
    }
    happened(page, events.iter().map(|event| (event.height, &*event.event, &event.data)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_shares_and_places() {
        assert_eq!(bar(0, 100), "░".repeat(BAR));
        assert_eq!(bar(50, 100), format!("{}{}", "█".repeat(BAR / 2), "░".repeat(BAR / 2)));
        assert_eq!(bar(200, 100), "█".repeat(BAR));
        assert_eq!(bar(1, 0), "░".repeat(BAR));
        assert!(place(0, 10).starts_with('●'));
        assert!(place(9, 10).ends_with("●─"));
        assert!(place(10, 10).ends_with('●'));
        assert_eq!(place(u64::MAX, 0).chars().count(), BAR);
    }
}
