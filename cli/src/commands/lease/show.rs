//! Text output for runs, jobs, their attempts and artifacts.

use crate::output::{Document, Row, fields, table_leaving};
use cowboy_lease::messages::{
    Attempt, BySchedule, Concurrency, EnvValue, Job, JobChanged, JobEvent, JobSpec, JobSummary,
    Progress, Run, RunSummary, RunnerSummary, Schedule, StoredArtifact, Token,
};

/// The longest part of a summary or a step that a table shows, in characters.
const CELL: usize = 60;

pub fn or_dash<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// Text from others, without control characters.
pub fn printable(text: &str) -> String {
    let safe = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.trim_end().chars().map(safe).collect()
}

pub fn first_line(text: &str) -> String {
    let text = printable(text);
    let line = text.lines().next().unwrap_or_default();
    let mut start: String = line.chars().take(CELL).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

fn named(name: Option<&str>, by: Option<&BySchedule>) -> String {
    match (name.map(first_line), by) {
        (Some(name), Some(by)) => format!("{name}, by {}", by.schedule),
        (None, Some(by)) => format!("by {}", by.schedule),
        (Some(name), None) => name,
        (None, None) => "-".to_owned(),
    }
}

impl Row for RunSummary {
    const HEADER: &'static [&'static str] = &["run", "name", "state", ">ended", "created at"];
    const LEAST: &'static [&'static str] = &["created at", "ended", "name"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.run_id.clone(),
            named(self.name.as_deref(), self.by_schedule.as_ref()),
            self.state.to_string(),
            format!("{}/{}", self.ended, self.jobs),
            self.created_at.clone(),
        ]
    }

    fn id(&self) -> String {
        self.run_id.clone()
    }
}

impl Row for JobSummary {
    const HEADER: &'static [&'static str] =
        &["job", "run", "name", "state", ">attempt", "runner", "lease", "expires at"];
    const LEAST: &'static [&'static str] = &["expires at", "lease", "run", "attempt", "runner"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.job.clone(),
            self.run.clone(),
            self.name.clone(),
            self.state.to_string(),
            self.attempt.to_string(),
            or_dash(self.runner.as_ref()),
            or_dash(self.lease_state.as_ref()),
            or_dash(self.expires_at.as_ref()),
        ]
    }

    fn id(&self) -> String {
        self.job.clone()
    }
}

impl Document for Run {
    fn text(&self) -> String {
        let mut lines = vec![
            ("run", self.run_id.clone()),
            ("name", named(self.name.as_deref(), None)),
            ("state", self.state.to_string()),
            ("created at", self.created_at.clone()),
        ];
        lines.extend(self.concurrency.as_ref().map(|own| ("concurrency", concurrency(own))));
        lines.extend(self.by_schedule.as_ref().map(|by| {
            let BySchedule { schedule, height, timer_id } = by;
            ("by schedule", format!("{schedule}, timer {timer_id} in block {height}"))
        }));
        let head = fields(&lines);
        // The run is shown already.
        let without_run = |mut cells: Vec<String>| {
            cells.remove(1);
            cells
        };
        let others = |columns: &[&'static str]| {
            columns.iter().copied().filter(|column| *column != "run").collect::<Vec<_>>()
        };
        let (header, least) = (others(JobSummary::HEADER), others(JobSummary::LEAST));
        let rows = self.jobs.iter().map(|job| without_run(job.cells()));
        format!("{head}\n\n{}", table_leaving(&least, &header, rows))
    }

    fn id(&self) -> String {
        self.run_id.clone()
    }
}

/// An environment; secrets look as the server shows them.
fn environment(spec: &JobSpec) -> String {
    let shown = |(name, value): (&String, &EnvValue)| match value {
        EnvValue::Plain(value) => format!("{name}={}", first_line(value)),
        EnvValue::Secret { .. } => format!("{name}=***"),
        EnvValue::FromNeeds { from_needs } => format!("{name}={}", first_line(from_needs)),
    };
    spec.env.iter().map(shown).collect::<Vec<_>>().join("\n")
}

fn concurrency(own: &Concurrency) -> String {
    let group = first_line(&own.group);
    match own.cancel_in_progress {
        true => format!("{group}, cancels those before it"),
        false => group,
    }
}

pub fn progress(progress: &Progress) -> String {
    let percent = progress.percent.map(|percent| format!("{percent} %"));
    let step = progress.current_step.as_deref().map(first_line);
    let words = progress.message.as_deref().map(first_line);
    percent.into_iter().chain(step).chain(words).collect::<Vec<_>>().join(", ")
}

/// The outcome of an attempt, or its progress.
fn outcome(attempt: &Attempt) -> String {
    match (&attempt.summary, &attempt.progress) {
        (Some(summary), _) => first_line(summary),
        (None, Some(reported)) if attempt.ended_at.is_none() => progress(reported),
        _ => String::new(),
    }
}

impl Document for Job {
    fn text(&self) -> String {
        let Self { summary, spec, .. } = self;
        let list = |values: &[String]| values.join(", ");
        let mut lines = vec![
            ("job", summary.job.clone()),
            ("run", summary.run.clone()),
            ("name", summary.name.clone()),
            ("state", summary.state.to_string()),
        ];
        lines.extend(self.ended_by.map(|why| ("ended by", why.to_string())));
        lines.extend(self.resumes_at.as_ref().map(|at| ("tried again at", at.clone())));
        lines.extend(self.queue_position.map(|position| ("in the queue", position.to_string())));
        lines.extend(self.why_queued.as_ref().map(|why| ("waits because", printable(why))));
        lines.push(("attempts", format!("{} of {}", summary.attempt, self.max_attempts)));
        let optional = [
            ("waits for", list(&self.waits_for)),
            ("needs", list(&spec.needs)),
            ("if", spec.run_if.map(|run_if| run_if.to_string()).unwrap_or_default()),
            ("may fail", if spec.allow_failure { "yes".to_owned() } else { String::new() }),
            ("concurrency", spec.concurrency.as_ref().map(concurrency).unwrap_or_default()),
            ("requires", list(&spec.requires)),
            ("image", spec.image.as_deref().map(first_line).unwrap_or_default()),
            ("workdir", spec.workdir.as_deref().map(first_line).unwrap_or_default()),
            ("env", environment(spec)),
        ];
        lines.extend(optional.into_iter().filter(|(_, value)| !value.is_empty()));
        let steps = spec.steps.iter().map(|step| printable(step)).collect::<Vec<_>>();
        lines.extend([
            ("steps", steps.join("\n")),
            ("max runtime", format!("{} s", self.max_runtime_seconds)),
            ("created at", self.created_at.clone()),
            ("ended at", or_dash(self.ended_at.as_ref())),
        ]);
        let outputs = self.attempts.last().into_iter().flat_map(|attempt| &attempt.outputs);
        let outputs: Vec<_> =
            outputs.map(|(name, value)| format!("{name}={}", first_line(value))).collect();
        lines.extend((!outputs.is_empty()).then(|| ("outputs", outputs.join("\n"))));
        let rows = self.attempts.iter().map(|attempt| {
            vec![
                attempt.attempt.to_string(),
                attempt.runner.clone(),
                attempt.lease_state.to_string(),
                attempt.granted_at.clone(),
                or_dash(attempt.ended_at.as_ref()),
                or_dash(attempt.exit_code.as_ref()),
                attempt.log_bytes.to_string(),
                attempt.artifacts.len().to_string(),
                outcome(attempt),
            ]
        });
        let header = [
            ">attempt",
            "runner",
            "lease",
            "granted at",
            "ended at",
            ">exit",
            ">log bytes",
            ">artifacts",
            "summary",
        ];
        let head = fields(&lines);
        if self.attempts.is_empty() {
            return head;
        }
        let least = ["artifacts", "log bytes", "granted at"];
        format!("{head}\n\n{}", table_leaving(&least, &header, rows))
    }

    fn id(&self) -> String {
        self.summary.state.to_string()
    }
}

impl Row for JobEvent {
    const HEADER: &'static [&'static str] = &["at", ">attempt", "state", "lease"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.at.clone(),
            self.attempt.to_string(),
            self.state.to_string(),
            or_dash(self.lease_state.as_ref()),
        ]
    }

    fn id(&self) -> String {
        self.state.to_string()
    }
}

impl Row for RunnerSummary {
    const HEADER: &'static [&'static str] = &["runner", "doing", "seen at", "job", "capabilities"];
    const LEAST: &'static [&'static str] = &["capabilities", "seen at"];

    fn cells(&self) -> Vec<String> {
        let doing = match (&self.job, self.waits) {
            (Some(job), _) => job.state.to_string(),
            (None, true) => "waits".to_owned(),
            (None, false) => "-".to_owned(),
        };
        let job = self.job.as_ref().map(|job| format!("{}/{}", job.run, job.name));
        vec![
            self.runner_id.clone(),
            doing,
            self.seen_at.clone(),
            or_dash(job.as_ref()),
            self.capabilities.join(", "),
        ]
    }

    fn id(&self) -> String {
        self.runner_id.clone()
    }
}

impl Document for JobChanged {
    fn text(&self) -> String {
        fields(&[("job", self.job.clone()), ("state", self.state.to_string())])
    }

    fn id(&self) -> String {
        self.state.to_string()
    }
}

impl Row for StoredArtifact {
    const HEADER: &'static [&'static str] = &[">attempt", "name", ">bytes"];

    fn cells(&self) -> Vec<String> {
        vec![self.attempt.to_string(), printable(&self.name), self.bytes.to_string()]
    }

    fn id(&self) -> String {
        printable(&self.name)
    }
}

impl Row for Schedule {
    const HEADER: &'static [&'static str] =
        &["schedule", "run", "actor", "handler", ">runs", ">skipped", "last run", ">height"];
    const LEAST: &'static [&'static str] = &["height", "skipped", "handler", "run"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.schedule.clone(),
            named(self.name.as_deref(), None),
            self.actor.clone(),
            or_dash(self.handler.as_ref()),
            self.runs.to_string(),
            self.skipped.to_string(),
            or_dash(self.last_run.as_ref().map(|run| &run.run_id)),
            or_dash(self.last_run.as_ref().map(|run| &run.height)),
        ]
    }

    fn id(&self) -> String {
        self.schedule.clone()
    }
}

impl Document for Schedule {
    fn text(&self) -> String {
        let mut lines = vec![
            ("schedule", self.schedule.clone()),
            ("run", named(self.name.as_deref(), None)),
            ("jobs", self.jobs.to_string()),
            ("actor", self.actor.clone()),
            ("handler", self.handler.clone().unwrap_or_else(|| "any".to_owned())),
            ("since block", self.since.to_string()),
            ("runs", self.runs.to_string()),
            ("skipped", self.skipped.to_string()),
        ];
        lines.extend(self.last_run.as_ref().map(|last| {
            let text = format!("{}, timer {} in block {}", last.run_id, last.timer_id, last.height);
            ("last run", text)
        }));
        lines.extend(self.last_failure.as_ref().map(|last| {
            let text = format!("block {}: {}", last.height, printable(&last.reason));
            ("last failure", text)
        }));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.schedule.clone()
    }
}

impl Row for Token {
    const HEADER: &'static [&'static str] = &["runner", "created at"];

    fn cells(&self) -> Vec<String> {
        vec![self.runner_id.clone(), self.created_at.clone()]
    }

    fn id(&self) -> String {
        self.runner_id.clone()
    }
}

impl Document for Token {
    fn text(&self) -> String {
        fields(&[("runner", self.runner_id.clone()), ("created at", self.created_at.clone())])
    }

    fn id(&self) -> String {
        self.runner_id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_moves_no_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\r\nc\n"), "a\u{fffd}[2Jb\u{fffd}\nc");
        assert_eq!(first_line("one\ntwo"), "one…");
        assert_eq!(first_line(&"x".repeat(CELL)), "x".repeat(CELL));
        assert_eq!(first_line(&"x".repeat(CELL + 1)), format!("{}…", "x".repeat(CELL)));
    }

    #[test]
    fn progress_is_told_as_far_as_it_is_known() {
        let known = Progress {
            percent: Some(50),
            current_step: Some("cargo test\n--all".to_owned()),
            step_index: Some(1),
            message: None,
        };
        assert_eq!(progress(&known), "50 %, cargo test…");
        assert_eq!(progress(&Progress::default()), "");
    }
}
