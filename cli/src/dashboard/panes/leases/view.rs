//! Runs and jobs of the lease server, and a job with its attempts and the end of its log.

use super::{LeaseEntry, Leases, OpenedLease};
use crate::{
    dashboard::{
        drawing::{
            Cell, Column, Page, beneath, grid, lines, page, plain, printable, section, unlike,
            wrapped,
        },
        lease::LeaseJob,
        look::Look,
        pane::Cx,
    },
    output::{cut, grouped, millis, or_dash, seconds_since},
};
use cowboy_lease::messages::{
    Attempt, Config, EnvValue, JobSpec, JobState, JobSummary, LeaseState, Progress, RunSummary,
};
use jiff::Timestamp;
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};

/// The minimum width to show the log next to the job, instead of below.
const WIDE: u16 = 150;

/// Rows above the first entry: the rule, the server's settings, the header.
pub const ABOVE: u16 = 3;

const COLUMNS: [Column; 7] = [
    Column::long("run, job"),
    Column::text("id"),
    Column::text("state"),
    Column::number("done, try"),
    Column::long("age, runner"),
    Column::number("expires"),
    Column::text("lease"),
];

const ATTEMPTS: [Column; 9] = [
    Column::number("#"),
    Column::text("runner"),
    Column::text("lease"),
    Column::number("granted"),
    Column::number("took"),
    Column::number("heartbeat"),
    Column::number("exit"),
    Column::number("files"),
    Column::long("outcome"),
];

pub fn rows(area: Rect) -> usize {
    area.height.saturating_sub(ABOVE).into()
}

/// The areas of a list of `entries` entries, and of the job under the cursor.
pub fn split_list(entries: usize, cx: &Cx<'_>) -> (Rect, Rect) {
    // The server's settings take a line.
    beneath(cx.area, if entries == 0 { 0 } else { entries + 1 })
}

fn style(state: JobState, look: Look) -> Style {
    match state {
        JobState::Leased | JobState::Starting | JobState::Running => look.busy(),
        JobState::Queued | JobState::CancelRequested | JobState::Canceled => look.warn(),
        JobState::Skipped => look.faint(),
        JobState::Succeeded => look.good(),
        JobState::Failed | JobState::TimedOut => look.bad(),
    }
}

fn style_of(state: LeaseState, look: Look) -> Style {
    match state {
        LeaseState::Granted | LeaseState::Active => look.busy(),
        LeaseState::Completed => Style::new(),
        LeaseState::Canceled | LeaseState::Revoked => look.warn(),
        LeaseState::Expired => look.bad(),
    }
}

pub fn draw(pane: &Leases, cx: &Cx<'_>, buffer: &mut Buffer) {
    if let Some(opened) = &pane.opened {
        let keys = if opened.in_log { "keys move it, l the page" } else { "l moves it" };
        return draw_job(opened, keys, cx, buffer);
    }
    let entries = pane.entries(cx);
    let (list, below) = split_list(entries.len(), cx);
    if let Some(preview) = pane.preview(cx).filter(|_| below.height > 0) {
        draw_job(preview, "enter opens it", &Cx { area: below, ..*cx }, buffer);
    }
    let area = section(&title(pane), list, cx.look, buffer);
    let granted_with = pane.known.as_ref().map(|known| config(&known.status.config));
    let note = match (&pane.refused, granted_with) {
        (Some(reason), _) => Line::styled(reason.clone(), cx.look.bad()),
        (None, Some(config)) => Line::styled(config, cx.look.faint()),
        (None, None) => Line::styled("asking the lease server", cx.look.faint()),
    };
    lines([note], area, buffer);
    let skipped = 1.min(area.height);
    let area = Rect { y: area.y + skipped, height: area.height - skipped, ..area };
    if entries.is_empty() {
        let text = match &pane.known {
            Some(known) if !known.runs.is_empty() => {
                unlike("run or job", pane.runs_only.then_some("r shows jobs, too"), cx)
            }
            Some(_) => "no runs yet: cowboyctl lease submit FILE".to_owned(),
            None => String::new(),
        };
        return lines([Line::styled(text, cx.look.faint())], area, buffer);
    }
    let (seen, selected) = pane.cursor(&entries).seen(&entries, rows(list));
    let row = |entry: &LeaseEntry<'_>| match entry {
        LeaseEntry::Run(run) => run_row(run, cx),
        LeaseEntry::Job(job, last) => job_row(job, *last, cx),
    };
    let rows: Vec<_> = seen.iter().map(row).collect();
    grid(&COLUMNS, &rows, selected, area, cx.look, buffer);
}

fn title(pane: &Leases) -> String {
    let Some(known) = &pane.known else { return "lease server".to_owned() };
    let counted = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{} {one}s", grouped(count.into())),
    };
    let status = &known.status;
    format!(
        "lease server: {}, {}, {} can be granted, {} waiting",
        counted(known.runs.len() as u64, "run"),
        counted(status.jobs.values().sum(), "job"),
        grouped(status.queued.into()),
        counted(status.waiting_runners, "runner"),
    )
}

fn config(config: &Config) -> String {
    let seconds = |seconds: u64| millis(seconds.saturating_mul(1_000));
    format!(
        "a lease holds {} without a heartbeat, due every {}; {} attempts",
        seconds(config.lease_ttl_seconds),
        seconds(config.heartbeat_interval_seconds),
        config.max_attempts,
    )
}

fn run_row(run: &RunSummary, cx: &Cx<'_>) -> Vec<Cell> {
    let strong = cx.look.strong();
    let age = since(Some(&run.created_at), cx).map(|age| format!("{age} ago"));
    vec![
        (printable(run.name.as_deref().unwrap_or("-")), strong),
        (run.run_id.clone(), strong),
        (run.state.to_string(), style(run.state, cx.look)),
        plain(format!("{}/{} done", run.ended, run.jobs)),
        (age.unwrap_or_default(), cx.look.faint()),
        plain(""),
        plain(""),
    ]
}

fn job_row(job: &JobSummary, last: bool, cx: &Cx<'_>) -> Vec<Cell> {
    let lead = if last { "└ " } else { "├ " };
    let expires = job.expires_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    let expires = expires.map(|at| match at > cx.now {
        true => format!("in {}", seconds_since(cx.now, at)),
        false => "now".to_owned(),
    });
    let lease = match job.lease_state {
        Some(state) => (state.to_string(), style_of(state, cx.look)),
        None => plain("-"),
    };
    vec![
        plain(format!("{lead}{}", printable(&job.name))),
        plain(job.job.clone()),
        (job.state.to_string(), style(job.state, cx.look)),
        plain(job.attempt.to_string()),
        plain(or_dash(job.runner.clone())),
        plain(or_dash(expires)),
        lease,
    ]
}

fn since(at: Option<&String>, cx: &Cx<'_>) -> Option<String> {
    let at: Timestamp = at?.parse().ok()?;
    Some(seconds_since(at, cx.now))
}

/// The areas of a job's page and its log: side by side, or one above the other.
fn parts(area: Rect) -> (Rect, Rect) {
    if area.width >= WIDE {
        let half = area.width / 2 - 1;
        let page = Rect { width: half, ..area };
        return (page, Rect { x: area.x + half + 2, width: area.width - half - 2, ..area });
    }
    let above = area.height * 3 / 5;
    let log = Rect { y: area.y + above, height: area.height - above, ..area };
    (Rect { height: above, ..area }, log)
}

/// Number of positions that a job's page can be scrolled to, and number of lines that fit.
pub fn page_places(opened: &OpenedLease, cx: &Cx<'_>) -> (usize, usize) {
    let (area, _) = parts(cx.area);
    let fit = page::rows(area);
    (job(opened, area.width, cx).places(fit), fit)
}

/// Number of positions that a job's log can be scrolled to, and number of lines that fit.
pub fn log_places(opened: &OpenedLease, cx: &Cx<'_>) -> (usize, usize) {
    let (_, area) = parts(cx.area);
    let fit = page::rows(area);
    let all = opened.job.known.as_ref().map_or(0, |known| log(known, area.width).len());
    (all.saturating_sub(fit) + 1, fit)
}

/// Draws a job and its log, whose title tells which keys move it.
fn draw_job(opened: &OpenedLease, keys: &str, cx: &Cx<'_>, buffer: &mut Buffer) {
    let (above, below) = parts(cx.area);
    let name = opened.job.known.as_ref().map_or("", |known| known.job.summary.name.as_str());
    let title = format!("{} {}", printable(name), opened.job.key);
    let area = section(title.trim(), above, cx.look, buffer);
    job(opened, above.width, cx).draw(opened.job.first, area, buffer);
    let Some(known) = &opened.job.known else { return };
    let length = known.job.attempts.last().map_or(0, |attempt| attempt.log_bytes);
    let title = match known.job.attempts.last() {
        Some(last) => {
            format!("log of attempt {}: {} bytes; {keys}", last.attempt, grouped(length.into()))
        }
        None => "no log yet".to_owned(),
    };
    let area = section(&title, below, cx.look, buffer);
    let all = log(known, below.width);
    let (places, fit) = log_places(opened, cx);
    let end = all.len() - opened.back.of(places).min(all.len());
    let seen = all[end.saturating_sub(fit)..end].iter().map(|line| Line::raw(line.clone()));
    lines(seen, area, buffer);
}

fn log(known: &LeaseJob, width: u16) -> Vec<String> {
    let cut = (known.skipped > 0)
        .then(|| format!("… {} bytes before that", grouped(known.skipped.into())));
    let lines = known.log.lines().flat_map(|line| wrapped(line, width));
    cut.into_iter().chain(lines).collect()
}

fn job(opened: &OpenedLease, width: u16, cx: &Cx<'_>) -> Page {
    let look = cx.look;
    let mut page = Page::new(width, look);
    let Some(LeaseJob { job, .. }) = &opened.job.known else {
        let text = opened.job.refused.as_deref().unwrap_or("asking for the job");
        page.text(text, look.faint());
        return page;
    };
    let (summary, spec) = (&job.summary, &job.spec);
    let why = job.ended_by.map_or_else(String::new, |why| format!(", {why}"));
    page.fact("state", &format!("{}{why}", summary.state), style(summary.state, look));
    let age = since(Some(&job.created_at), cx).unwrap_or_default();
    page.plain("run", &format!("{}, handed in {age} ago", summary.run));
    page.plain("attempts", &format!("{} of {}", summary.attempt, job.max_attempts));
    let expires = job.summary.expires_at.as_ref();
    if let Some(at) = expires.and_then(|at| at.parse::<Timestamp>().ok()) {
        let left = seconds_since(cx.now, at.max(cx.now));
        page.plain("lease", &format!("expires in {left} unless a heartbeat comes"));
    }
    if let Some(position) = job.queue_position {
        page.plain("in the queue", &position.to_string());
    }
    let rows: Vec<_> = job.attempts.iter().map(|attempt| attempt_row(attempt, cx)).collect();
    if !rows.is_empty() {
        page.text(" ", Style::new());
        page.table(&ATTEMPTS, &rows);
        page.text(" ", Style::new());
    }
    for (name, value) in optional(&job.waits_for, spec) {
        if !value.is_empty() {
            page.plain(name, &value);
        }
    }
    let steps: Vec<_> = spec.steps.iter().flat_map(|step| step.lines()).map(printable).collect();
    page.plain("steps", &steps.join("\n"));
    page.plain("max runtime", &millis(job.max_runtime_seconds.saturating_mul(1_000)));
    page
}

/// Properties that only some jobs have.
fn optional(waits_for: &[String], spec: &JobSpec) -> Vec<(&'static str, String)> {
    let list = |values: &[String]| printable(&values.join(", "));
    let shown = |(name, value): (&String, &EnvValue)| match value {
        EnvValue::Plain(value) => format!("{name}={}", printable(value)),
        EnvValue::Secret { .. } => format!("{name}=***"),
        EnvValue::FromNeeds { from_needs } => format!("{name}={}", printable(from_needs)),
    };
    let environment: Vec<_> = spec.env.iter().map(shown).collect();
    vec![
        ("waits for", list(waits_for)),
        ("needs", list(&spec.needs)),
        ("requires", list(&spec.requires)),
        ("image", printable(spec.image.as_deref().unwrap_or_default())),
        ("workdir", printable(spec.workdir.as_deref().unwrap_or_default())),
        ("env", environment.join("\n")),
    ]
}

fn attempt_row(attempt: &Attempt, cx: &Cx<'_>) -> Vec<Cell> {
    let time = |at: &String| at.parse::<Timestamp>().ok();
    let granted = time(&attempt.granted_at);
    let ended = attempt.ended_at.as_ref().map_or(Some(cx.now), time);
    let took = granted.zip(ended).map(|(from, to)| seconds_since(from, to));
    let ago = |at: Option<&String>| since(at, cx).map(|age| format!("{age} ago"));
    let heartbeat = attempt.heartbeat_at.as_ref().filter(|_| attempt.ended_at.is_none());
    let exit = match attempt.exit_code {
        Some(0) => ("0".to_owned(), cx.look.good()),
        Some(code) => (code.to_string(), cx.look.bad()),
        None => plain("-"),
    };
    vec![
        plain(attempt.attempt.to_string()),
        plain(attempt.runner.clone()),
        (attempt.lease_state.to_string(), style_of(attempt.lease_state, cx.look)),
        plain(or_dash(ago(Some(&attempt.granted_at)))),
        plain(or_dash(took)),
        plain(or_dash(ago(heartbeat))),
        exit,
        plain(attempt.artifacts.len().to_string()),
        plain(outcome(attempt)),
    ]
}

fn outcome(attempt: &Attempt) -> String {
    match (&attempt.summary, &attempt.progress) {
        (Some(summary), _) => printable(summary.lines().next().unwrap_or_default()),
        (None, Some(reported)) if attempt.ended_at.is_none() => progress(reported),
        _ => String::new(),
    }
}

fn progress(progress: &Progress) -> String {
    let percent = progress.percent.map(|percent| format!("{percent} %"));
    let step = progress.current_step.as_deref().map(printable);
    let words = progress.message.as_deref().map(printable);
    let parts: Vec<_> = percent.into_iter().chain(step).chain(words).collect();
    cut(&parts.join(", "), 200)
}
