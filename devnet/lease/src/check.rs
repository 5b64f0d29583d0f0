//! Limits on runs, messages and their parts that their types do not express.
//!
//! Lengths are in characters, as a JSON schema counts them.

use super::{
    messages::{
        AckLease, Artifact, ArtifactSpec, AwaitCancel, CacheSpec, CancelAck, Complete,
        CompleteStatus, Concurrency, EnvValue, Heartbeat, JobSpec, LeaseRequest, MAX_ARTIFACTS,
        MAX_CAPABILITIES, MAX_KIND, MAX_NAME, MAX_OUTPUT_BYTES, MAX_OUTPUTS, MAX_PATH,
        MAX_REFERENCES, MAX_STEPS, MAX_TEXT, MAX_WAIT_SECONDS, NewRun, NewSchedule, Progress,
        Timings,
    },
    template::{self, Part},
};
use crate::machine::{
    board::MAX_RUN_JOBS,
    config::{MAX_ATTEMPTS, MAX_BACKOFF_SECONDS, MAX_SECONDS},
};
use cowboy_engine::{actor::effect::MAX_HANDLER_BYTES, primitives::Address};
use jiff::civil::Date;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of artifacts or caches of a job, and of paths of a cache.
const MAX_SPECS: usize = 32;
/// Largest integer that every JSON implementation represents exactly.
pub(super) const MAX_WHOLE: u64 = (1 << 53) - 1;
/// Longest time that a client sends, in bytes.
const MAX_TIME: usize = 1_024;
/// Longest address of an artifact, in characters.
const MAX_URI: usize = 2_048;

/// A value that is not valid, with its path and the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Fault {
    /// Path of the field, such as `jobs[0].steps`.
    pub field: String,
    pub problem: &'static str,
    pub kind: FaultKind,
}

/// Whether a value is wrong by itself or together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    Value,
    /// The value conflicts with other jobs of the run.
    Contradiction,
}

impl Fault {
    /// A value that would be valid in a run with other jobs.
    pub const fn contradiction(field: String, problem: &'static str) -> Self {
        Self { field, problem, kind: FaultKind::Contradiction }
    }

    pub fn within(self, field: &str) -> Self {
        Self { field: format!("{field}.{}", self.field), ..self }
    }
}

type Checked = Result<(), Fault>;

fn fault(field: impl Into<String>, problem: &'static str) -> Checked {
    Err(Fault { field: field.into(), problem, kind: FaultKind::Value })
}

fn ensure(holds: bool, field: impl Into<String>, problem: &'static str) -> Checked {
    if holds { Ok(()) } else { fault(field, problem) }
}

/// Whether a text has between `least` and `most` characters and no NUL.
fn text(value: &str, least: usize, most: usize) -> bool {
    let count = value.chars().take(most + 1).count();
    (least..=most).contains(&count) && !value.contains('\0')
}

fn is_id(value: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    (1..=MAX_NAME).contains(&value.len()) && value.bytes().all(fits)
}

const ID: &str = "expected 1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `:` and `-`";

/// Checks a runner's id: 1 to 128 letters, digits, `.`, `_`, `:` and `-`.
pub fn runner_id(id: &str) -> Checked {
    ensure(is_id(id), "runner_id", ID)
}

fn tags(field: &str, tags: &[String]) -> Checked {
    ensure(tags.len() <= MAX_CAPABILITIES, field, "expected at most 32")?;
    match tags.iter().position(|tag| !is_id(tag)) {
        Some(at) => fault(format!("{field}[{at}]"), ID),
        None => Ok(()),
    }
}

const WAIT: &str = "expected at most 30";

/// Checks a request for work.
pub fn lease_request(request: &LeaseRequest) -> Checked {
    runner_id(&request.runner_id)?;
    tags("capabilities", &request.capabilities)?;
    ensure(request.wait_seconds <= MAX_WAIT_SECONDS, "wait_seconds", WAIT)
}

/// Checks a wait for a cancel request.
pub fn await_cancel(message: &AwaitCancel) -> Checked {
    runner_id(&message.runner_id)?;
    lease_id(&message.lease_id)?;
    ensure(message.wait_seconds <= MAX_WAIT_SECONDS, "wait_seconds", WAIT)
}

/// Checks a token's id: 1 to 128 visible characters of ASCII.
pub fn token_id(id: &str) -> Checked {
    named_id("token_id", id)
}

/// Checks the id of a lease in a message for length and characters only.
pub fn lease_id(id: &str) -> Checked {
    named_id("lease_id", id)
}

fn named_id(field: &str, id: &str) -> Checked {
    let fits = (1..=MAX_NAME).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    ensure(fits, field, "expected 1 to 128 visible characters of ASCII")
}

/// Checks a cache's key: 1 to 512 characters, without NUL.
pub fn cache_key(key: &str) -> Checked {
    ensure(text(key, 1, MAX_PATH), "key", "expected 1 to 512 characters, none of them NUL")
}

/// Checks an acknowledgement of a lease.
pub fn ack(message: &AckLease) -> Checked {
    runner_id(&message.runner_id)?;
    lease_id(&message.lease_id)?;
    named_id("job_id", &message.job_id)?;
    client_time("accepted_at", message.accepted_at.as_ref())
}

/// Checks a runner's report that it has stopped.
pub fn cancel_ack(message: &CancelAck) -> Checked {
    runner_id(&message.runner_id)?;
    lease_id(&message.lease_id)?;
    client_time("ts", message.ts.as_ref())?;
    outcome(&message.artifacts, message.summary.as_ref())
}

/// Checks an optional RFC 3339 time of a client; `field` names it in the error.
pub fn client_time(field: &str, time: Option<&String>) -> Checked {
    ensure(
        time.is_none_or(|time| is_time(time)),
        field,
        "expected an RFC 3339 time, such as 2026-01-04T08:00:00Z",
    )
}

/// Whether a text is an RFC 3339 time, in any year.
fn is_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_at_checked(10) else { return false };
    let Some(rest) = rest.strip_prefix(['T', 't']) else { return false };
    let (clock, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => rest.split_at(at),
        None => return false,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Two-digit numbers, separated by one sign each.
    let pair = |text: &str, below: u8| {
        text.len() == 2 && digits(text) && text.parse().is_ok_and(|n: u8| n < below)
    };
    let date_fits = date.as_bytes()[4] == b'-'
        && date.as_bytes()[7] == b'-'
        && digits(&date.replace('-', ""))
        && date.parse::<Date>().is_ok();
    let clock: Vec<_> = clock.split(':').collect();
    // Leap seconds are valid.
    let clock_fits = matches!(clock[..], [h, m, s] if pair(h, 24) && pair(m, 60) && pair(s, 61));
    let offset_fits = match offset.strip_prefix(['+', '-']) {
        Some(offset) => offset.split_once(':').is_some_and(|(h, m)| pair(h, 24) && pair(m, 60)),
        None => offset.len() == 1,
    };
    date_fits && clock_fits && digits(fraction) && offset_fits && text.len() <= MAX_TIME
}

const LONG: &str = "expected at most 65,536 characters";

fn long(field: &str, value: Option<&String>) -> Checked {
    ensure(value.is_none_or(|value| value.chars().count() <= MAX_TEXT), field, LONG)
}

/// Checks a heartbeat; its progress may be absent.
pub fn heartbeat(message: &Heartbeat) -> Checked {
    runner_id(&message.runner_id)?;
    lease_id(&message.lease_id)?;
    if let Some(Progress { percent, current_step, step_index: _, message }) = &message.progress {
        let percent = percent.is_none_or(|percent| percent <= 100);
        ensure(percent, "progress.percent", "expected at most 100")?;
        long("progress.current_step", current_step.as_ref())?;
        long("progress.message", message.as_ref())?;
    }
    let sent = message.log_cursor.is_none_or(|cursor| cursor.bytes_sent <= MAX_WHOLE);
    ensure(sent, "log_cursor.bytes_sent", "expected at most 9,007,199,254,740,991")?;
    client_time("ts", message.ts.as_ref())
}

/// Checks a completion, with its artifacts and outputs.
pub fn complete(message: &Complete) -> Checked {
    runner_id(&message.runner_id)?;
    lease_id(&message.lease_id)?;
    if let Some(Timings { started_at, finished_at }) = &message.timings {
        client_time("timings.started_at", started_at.as_ref())?;
        client_time("timings.finished_at", finished_at.as_ref())?;
    }
    let failed = message.status == CompleteStatus::Failed;
    ensure(failed || !message.timed_out, "timed_out", "allowed only with the status FAILED")?;
    client_time("started_at", message.started_at.as_ref())?;
    client_time("finished_at", message.finished_at.as_ref())?;
    let Complete { outputs, .. } = message;
    ensure(outputs.len() <= MAX_OUTPUTS, "outputs", "expected at most 64")?;
    ensure(outputs.keys().all(|name| is_output(name)), "outputs", OUTPUT)?;
    let bytes: usize = outputs.iter().map(|(name, value)| name.len() + value.len()).sum();
    ensure(bytes <= MAX_OUTPUT_BYTES, "outputs", "expected at most 16,384 bytes in total")?;
    let nul = outputs.values().any(|value| value.contains('\0'));
    ensure(!nul, "outputs", "expected values without NUL")?;
    outcome(&message.artifacts, message.summary.as_ref())
}

const OUTPUT: &str = "expected 1 to 128 of A-Z, a-z, 0-9 and `_`, not beginning with a digit";

/// Whether a text can name an output: a variable's name of at most 128 bytes.
pub fn is_output(name: &str) -> bool {
    is_variable(name) && name.len() <= MAX_NAME
}

/// Checks the artifacts and the summary of a report.
pub fn outcome(artifacts: &[Artifact], summary: Option<&String>) -> Checked {
    ensure(artifacts.len() <= MAX_ARTIFACTS, "artifacts", "expected at most 1,000")?;
    for (at, Artifact { kind, uri }) in artifacts.iter().enumerate() {
        ensure(text(kind, 1, MAX_KIND), format!("artifacts[{at}].type"), KIND)?;
        let problem = "expected 1 to 2,048 characters";
        ensure(text(uri, 1, MAX_URI), format!("artifacts[{at}].uri"), problem)?;
    }
    long("summary", summary)
}

const KIND: &str = "expected 1 to 64 characters";

/// Checks a submitted run and each of its jobs.
pub fn new_run(run: &NewRun) -> Checked {
    let named = run.name.as_ref().is_none_or(|name| text(name, 1, MAX_NAME));
    ensure(named, "name", "expected 1 to 128 characters, none of them NUL")?;
    concurrency("concurrency", run.concurrency.as_ref())?;
    let count = (1..=MAX_RUN_JOBS).contains(&run.jobs.len());
    ensure(count, "jobs", "expected 1 to 1,000 jobs")?;
    let mut names = BTreeSet::new();
    for (at, job) in run.jobs.iter().enumerate() {
        job_spec(&format!("jobs[{at}]"), job)?;
        let problem = "another job of the run has this name";
        if !names.insert(&job.name) {
            return Err(Fault::contradiction(format!("jobs[{at}].name"), problem));
        }
    }
    for (at, job) in run.jobs.iter().enumerate() {
        let unknown = job.needs.iter().position(|need| !names.contains(need));
        if let Some(need) = unknown {
            let field = format!("jobs[{at}].needs[{need}]");
            return Err(Fault::contradiction(field, "the run has no job of this name"));
        }
    }
    let jobs: BTreeMap<_, _> = run.jobs.iter().map(|job| (job.name.as_str(), job)).collect();
    for (at, job) in run.jobs.iter().enumerate() {
        let needs: BTreeSet<_> = job.needs.iter().map(String::as_str).collect();
        for (name, value) in &job.env {
            let EnvValue::FromNeeds { from_needs } = value else { continue };
            let parts = template::parts(from_needs).unwrap_or_default();
            if let Some(problem) = parts.iter().find_map(|part| unmet(part, &jobs, &needs, job)) {
                return Err(Fault::contradiction(format!("jobs[{at}].env.{name}"), problem));
            }
        }
    }
    Ok(())
}

fn unmet(
    part: &Part<'_>,
    jobs: &BTreeMap<&str, &JobSpec>,
    needs: &BTreeSet<&str>,
    job: &JobSpec,
) -> Option<&'static str> {
    let of = part.job()?;
    if !needs.contains(of) {
        // The name may be that of a job of another run.
        return job.artifacts_of.is_empty().then_some("the job needs no job of this name");
    }
    match part {
        Part::Output { name, .. } if !jobs[of].outputs.iter().any(|known| known == name) => {
            Some("the needed job has no such output")
        }
        _ => None,
    }
}

fn concurrency(at: &str, concurrency: Option<&Concurrency>) -> Checked {
    let fits = concurrency.is_none_or(|own| text(&own.group, 1, MAX_NAME));
    ensure(fits, format!("{at}.group"), "expected 1 to 128 characters, none of them NUL")
}

/// Checks a schedule and returns the address of its actor.
pub fn new_schedule(schedule: &NewSchedule) -> Result<Address, Fault> {
    let NewSchedule { actor, handler, run } = schedule;
    let problem = "expected the address of an actor: 0x and 40 hex digits";
    let no_address = |_| Fault { field: "actor".to_owned(), problem, kind: FaultKind::Value };
    let actor = actor.parse().map_err(no_address)?;
    if let Some(handler) = handler {
        let fits = handler.len() <= MAX_HANDLER_BYTES && is_variable(handler);
        let problem = "expected 1 to 256 of A-Z, a-z, 0-9 and `_`, not beginning with a digit";
        ensure(fits, "handler", problem)?;
    }
    new_run(run).map_err(|fault| fault.within("run"))?;
    Ok(actor)
}

fn job_spec(at: &str, job: &JobSpec) -> Checked {
    let JobSpec {
        name,
        steps,
        env,
        workdir,
        image,
        needs,
        requires,
        artifacts,
        caches,
        max_runtime_seconds,
        retry,
        artifacts_of,
        run_if: _,
        allow_failure: _,
        concurrency: group,
        outputs,
    } = job;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let named = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits);
    let problem = "expected 1 to 128 of A-Z, a-z, 0-9, `.`, `_` and `-`";
    ensure(named, format!("{at}.name"), problem)?;
    let count = (1..=MAX_STEPS).contains(&steps.len());
    ensure(count, format!("{at}.steps"), "expected 1 to 256 steps")?;
    if let Some(step) = steps.iter().position(|step| !text(step, 1, MAX_TEXT)) {
        let problem = "expected 1 to 65,536 characters, none of them NUL";
        return fault(format!("{at}.steps[{step}]"), problem);
    }
    environment(&format!("{at}.env"), env)?;
    let inside = |path: &String| relative(path) && text(path, 1, MAX_PATH);
    let placed = workdir.as_ref().is_none_or(inside);
    ensure(placed, format!("{at}.workdir"), "expected a relative path without `..`")?;
    let image_fits = image.as_ref().is_none_or(|image| text(image, 1, MAX_PATH));
    ensure(image_fits, format!("{at}.image"), "expected 1 to 512 characters")?;
    ensure(needs.len() <= MAX_RUN_JOBS, format!("{at}.needs"), "expected at most 1,000")?;
    ensure(
        artifacts_of.len() <= MAX_RUN_JOBS,
        format!("{at}.artifacts_of"),
        "expected at most 1,000",
    )?;
    for (n, job) in artifacts_of.iter().enumerate() {
        named_id(&format!("{at}.artifacts_of[{n}]"), job)?;
    }
    concurrency(&format!("{at}.concurrency"), group.as_ref())?;
    ensure(outputs.len() <= MAX_OUTPUTS, format!("{at}.outputs"), "expected at most 64")?;
    if let Some(n) = outputs.iter().position(|name| !is_output(name)) {
        return fault(format!("{at}.outputs[{n}]"), OUTPUT);
    }
    tags(&format!("{at}.requires"), requires)?;
    let few = "expected at most 32";
    ensure(artifacts.len() <= MAX_SPECS, format!("{at}.artifacts"), few)?;
    for (n, ArtifactSpec { kind, path_glob }) in artifacts.iter().enumerate() {
        let at = format!("{at}.artifacts[{n}]");
        ensure(text(kind, 1, MAX_KIND), format!("{at}.type"), KIND)?;
        ensure(inside(path_glob), format!("{at}.path_glob"), PATH)?;
    }
    ensure(caches.len() <= MAX_SPECS, format!("{at}.caches"), few)?;
    for (n, cache) in caches.iter().enumerate() {
        cache_spec(&format!("{at}.caches[{n}]"), cache)?;
    }
    let runtime = max_runtime_seconds.is_none_or(|s| (1..=MAX_SECONDS).contains(&s));
    ensure(runtime, format!("{at}.max_runtime_seconds"), "expected 1 to 31,536,000")?;
    let attempts = retry.as_ref().and_then(|retry| retry.max_attempts);
    let attempts = attempts.is_none_or(|n| (1..=MAX_ATTEMPTS).contains(&n));
    ensure(attempts, format!("{at}.retry.max_attempts"), "expected 1 to 100")?;
    let backoff = retry.as_ref().and_then(|retry| retry.backoff_seconds);
    let backoff = backoff.is_none_or(|seconds| (1..=MAX_BACKOFF_SECONDS).contains(&seconds));
    ensure(backoff, format!("{at}.retry.backoff_seconds"), "expected 1 to 3,600")
}

const PATH: &str = "expected a relative path of 1 to 512 characters without `..`";

pub(crate) fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    begins && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn environment(at: &str, env: &BTreeMap<String, EnvValue>) -> Checked {
    let mut references = 0;
    for (name, value) in env {
        let problem = "expected names of A-Z, a-z, 0-9 and `_`, not beginning with a digit";
        ensure(is_variable(name), at, problem)?;
        if let EnvValue::FromNeeds { from_needs } = value {
            let problem = "expected ${{ needs.JOB.outputs.NAME }} or ${{ needs.JOB.result }}";
            let parts = template::parts(from_needs);
            ensure(parts.is_ok(), format!("{at}.{name}"), problem)?;
            let parts = parts.unwrap_or_default();
            references += parts.iter().filter(|part| part.job().is_some()).count();
            let problem = "expected at most 64 references to needed jobs in total";
            ensure(references <= MAX_REFERENCES, format!("{at}.{name}"), problem)?;
        }
        let (value, least, problem) = match value {
            EnvValue::Plain(value) => (value, 0, "expected no NUL"),
            EnvValue::Secret { secret } => (secret, 1, "expected a value, without NUL"),
            EnvValue::FromNeeds { from_needs } => (from_needs, 1, "expected a text, without NUL"),
        };
        ensure(text(value, least, usize::MAX - 1), format!("{at}.{name}"), problem)?;
    }
    Ok(())
}

fn cache_spec(at: &str, cache: &CacheSpec) -> Checked {
    let CacheSpec { kind, key, paths } = cache;
    ensure(text(kind, 0, MAX_KIND), format!("{at}.type"), "expected at most 64 characters")?;
    let problem = "expected 1 to 512 characters, none of them NUL";
    ensure(text(key, 1, MAX_PATH), format!("{at}.key"), problem)?;
    let count = (1..=MAX_SPECS).contains(&paths.len());
    ensure(count, format!("{at}.paths"), "expected 1 to 32 paths")?;
    // A leading `~/` means the job's own home.
    let fits = |path: &String| {
        text(path, 1, MAX_PATH) && relative(path.strip_prefix("~/").unwrap_or(path))
    };
    match paths.iter().position(|path| !fits(path)) {
        Some(path) => fault(format!("{at}.paths[{path}]"), PATH),
        None => Ok(()),
    }
}

fn relative(path: &str) -> bool {
    !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_rfc_3339() {
        for time in [
            "2026-01-04T08:00:00Z",
            "2026-01-04t08:00:00.123456789z",
            "0000-02-29T23:59:60+23:59",
            "9999-12-31T23:59:59-23:59",
        ] {
            assert!(is_time(time), "{time}");
        }
        for time in [
            "",
            "2026-01-04",
            "2026-01-04 08:00:00Z",
            "2026-01-04T08:00:00",
            "2026-01-04T08:00Z",
            "2026-01-04T08:00:00.Z",
            "2026-02-29T08:00:00Z",
            "2026-01-04T24:00:00Z",
            "2026-01-04T08:00:00+1:00",
            "2026-01-04T08:00:00Z[UTC]",
            "20260104T080000Z",
            "-2026-1-04T08:00:00Z",
            "2026-01-04T08:00:00ZZ",
            "ääääää",
        ] {
            assert!(!is_time(time), "{time}");
        }
    }

    #[test]
    fn paths_lead_down() {
        for path in ["a", ".", "./a", "a/..b", "a/..."] {
            assert!(relative(path), "{path}");
        }
        for path in ["/", "/a", "..", "a/..", "../a", "a/../b"] {
            assert!(!relative(path), "{path}");
        }
    }
}
