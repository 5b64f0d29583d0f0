//! Resolves the names of runs and jobs: an id, the beginning of one, `latest`, `RUN/NAME`.

use crate::error::{CliError, Exit, nearest};
use cowboy_lease::{
    client::Client,
    messages::{JobQuery, JobSummary, PAGE_LIMIT, PageQuery, RunSummary},
};

/// Hexadecimal digits of an id, without its prefix.
const ID_DIGITS: usize = 16;

const RUN: &str = "run_";
const JOB: &str = "job_";
const SCHEDULE: &str = "sched_";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    Run(String),
    Job(String),
}

/// Resolves a run: its id, a unique beginning of it, or `latest`.
pub async fn run(client: &Client, text: &str) -> Result<String, CliError> {
    if is_id(text, RUN) {
        return Ok(text.to_owned());
    }
    let latest = text == "latest";
    let runs = runs(client, if latest { 1 } else { PAGE_LIMIT }).await?;
    if latest {
        let none = || {
            CliError::new(Exit::NotFound, "there is no run yet")
                .hint("hand one in: cowboyctl lease submit FILE")
        };
        return runs.into_iter().next().map(|run| run.run_id).ok_or_else(none);
    }
    let ids: Vec<_> = runs.into_iter().map(|run| run.run_id).collect();
    let found = ids.iter().filter(|id| begins(id, RUN, text)).cloned();
    only("run", text, found, || meant(text, ids.iter().map(|id| (id.as_str(), id.clone()))))
}

/// Resolves a job: its id, a unique beginning of it, or `RUN/NAME`.
pub async fn job(client: &Client, text: &str) -> Result<String, CliError> {
    if is_id(text, JOB) {
        return Ok(text.to_owned());
    }
    if let Some((of, name)) = text.split_once('/') {
        let run = client.run(&run(client, of).await?).await?;
        let found = run.jobs.iter().find(|job| job.name == name);
        return found.map(|job| job.job.clone()).ok_or_else(|| {
            let names = run.jobs.iter().map(|job| job.name.as_str());
            let error =
                CliError::new(Exit::NotFound, format!("run {} has no job `{name}`", run.run_id))
                    .detail(format!("it has {}", names.clone().collect::<Vec<_>>().join(", ")));
            match nearest(name, names) {
                Some(meant) => error.hint(format!("did you mean `{of}/{meant}`?")),
                None => error,
            }
        });
    }
    let jobs = jobs(client).await?;
    only("job", text, ids(&jobs, text), || meant(text, names(&jobs)))
}

pub async fn thing(client: &Client, text: &str) -> Result<Thing, CliError> {
    if text.starts_with(JOB) || text.contains('/') {
        return job(client, text).await.map(Thing::Job);
    }
    if text.starts_with(RUN) || text == "latest" {
        return run(client, text).await.map(Thing::Run);
    }
    let runs: Vec<_> = runs(client, PAGE_LIMIT).await?.into_iter().map(|run| run.run_id).collect();
    let jobs = jobs(client).await?;
    let found = runs.iter().filter(|id| begins(id, RUN, text)).cloned().chain(ids(&jobs, text));
    let id = only("run or job", text, found, || meant(text, names(&jobs)))?;
    Ok(match id.starts_with(JOB) {
        true => Thing::Job(id),
        false => Thing::Run(id),
    })
}

/// Resolves a schedule: its id, or a unique beginning of it.
pub async fn schedule(client: &Client, text: &str) -> Result<String, CliError> {
    if is_id(text, SCHEDULE) {
        return Ok(text.to_owned());
    }
    let schedules = client.schedules().await?;
    let ids = schedules.iter().map(|schedule| &schedule.schedule);
    let found = ids.filter(|id| begins(id, SCHEDULE, text)).cloned();
    only("schedule", text, found, || None).map_err(|error| match error.exit {
        Exit::NotFound => error.hint("list them: cowboyctl lease schedule ls"),
        _ => error,
    })
}

async fn runs(client: &Client, limit: usize) -> Result<Vec<RunSummary>, CliError> {
    Ok(client.runs(&PageQuery { limit: Some(limit) }).await?)
}

async fn jobs(client: &Client) -> Result<Vec<JobSummary>, CliError> {
    let query = JobQuery { limit: Some(PAGE_LIMIT), ..JobQuery::default() };
    Ok(client.jobs(&query).await?)
}

fn ids(jobs: &[JobSummary], text: &str) -> impl Iterator<Item = String> {
    jobs.iter().map(|job| &job.job).filter(move |id| begins(id, JOB, text)).cloned()
}

/// Texts that a user may have typed for a job, including its name alone, each with the full name.
fn names(jobs: &[JobSummary]) -> impl Iterator<Item = (&str, String)> {
    let named = jobs.iter().map(|job| (job.name.as_str(), format!("{}/{}", job.run, job.name)));
    named.chain(jobs.iter().map(|job| (job.job.as_str(), job.job.clone())))
}

/// The name that was probably meant; if several are equal, the newest.
fn meant<'a>(text: &str, names: impl Iterator<Item = (&'a str, String)>) -> Option<String> {
    let names: Vec<_> = names.collect();
    let called = |wanted: &str| names.iter().find(|(name, _)| *name == wanted);
    let found =
        called(text).or_else(|| called(nearest(text, names.iter().map(|(name, _)| *name))?));
    found.map(|(_, meant)| meant.clone())
}

fn is_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|id| id.len() == ID_DIGITS && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether an id begins with `text`, which may omit the prefix of all ids.
fn begins(id: &str, prefix: &str, text: &str) -> bool {
    let digits = text.strip_prefix(prefix).unwrap_or(text);
    !digits.is_empty() && id.strip_prefix(prefix).is_some_and(|id| id.starts_with(digits))
}

/// The only id found; an error suggests the name from `meant`.
fn only(
    what: &str,
    text: &str,
    found: impl IntoIterator<Item = String>,
    meant: impl FnOnce() -> Option<String>,
) -> Result<String, CliError> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (Some(first), Some(second)) => {
            let more = found.count();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let what = format!("`{text}` begins several ids: {first}, {second}{more}");
            Err(CliError::new(Exit::Usage, what).hint("give more of its digits"))
        }
        (None, _) => {
            let error = CliError::new(Exit::NotFound, format!("there is no {what} `{text}`"));
            Err(match meant() {
                Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                None => error.hint("list them: cowboyctl lease ls; cowboyctl lease ls --runs"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_of_one_kind() {
        let check = |id: &str, prefix: &str, text: &str, expected: bool| {
            assert_eq!(begins(id, prefix, text), expected, "{id} {text}");
        };
        check("run_12ab", RUN, "12", true);
        check("run_12ab", RUN, "run_12", true);
        check("run_12ab", RUN, "run_", false);
        check("run_12ab", RUN, "", false);
        check("run_12ab", RUN, "job_12", false);
        check("run_12ab", RUN, "2a", false);
        check("job_12ab", JOB, "12ab", true);
    }

    #[test]
    fn one_of_several_is_not_guessed() {
        let found = |ids: &[&str]| {
            let ids = ids.iter().map(|id| (*id).to_owned());
            only("job", "1", ids, || None).map_err(|error| error.exit)
        };
        assert_eq!(found(&["job_1"]), Ok("job_1".to_owned()));
        assert_eq!(found(&["job_1", "job_12"]), Err(Exit::Usage));
        assert_eq!(found(&[]), Err(Exit::NotFound));
        let three = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            only("job", "x", three, || None).unwrap_err().what,
            "`x` begins several ids: a, b and 1 more"
        );
    }

    #[test]
    fn what_was_meant_is_said() {
        let names = [("unit", "run_2/unit"), ("package", "run_2/package"), ("unit", "run_1/unit")];
        let check = |typed: &str, expected: Option<&str>| {
            let names = names.map(|(name, meant)| (name, meant.to_owned()));
            assert_eq!(meant(typed, names.into_iter()).as_deref(), expected, "{typed}");
        };
        check("unit", Some("run_2/unit"));
        check("pakcage", Some("run_2/package"));
        check("something", None);
        let error = only("job", "unit", [], || Some("run_2/unit".to_owned())).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `run_2/unit`?"));
    }

    #[test]
    fn whole_ids_are_not_looked_up() {
        assert!(is_id("job_0123456789abcdef", JOB));
        assert!(!is_id("job_0123456789abcde", JOB));
        assert!(!is_id("job_0123456789abcdeg", JOB));
        assert!(!is_id("run_0123456789abcdef", JOB));
    }
}
