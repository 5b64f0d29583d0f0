//! Run files: the jobs of a run in YAML, as people write them.
//!
//! ```yaml
//! name: ci
//! env: { CI: true }
//! jobs:
//!   lint: { steps: [cargo fmt --check] }
//!   unit:
//!     needs: [lint]
//!     requires: [linux]
//!     env:
//!       API_KEY: { secret_env: API_KEY }
//!     steps:
//!       - cargo test
//!     artifacts: [{ type: junit, path_glob: "**/*.xml" }]
//!     caches: [{ type: deps, key: "cargo-{hash:Cargo.lock}", paths: [~/.cargo, target] }]
//!     max_runtime: 20m
//!     retry: { on: [lease_lost, failure], max_attempts: 2, backoff: 30s }
//!   report: { needs: [unit], if: always(), steps: [./report] }
//! concurrency: { group: ci, cancel_in_progress: true }
//! ```
//!
//! [`RunFile::parse`] reads a file; [`RunFile::into_run`] makes it a request to a server.
//! Everything that a server would refuse is refused here with its place: by line and column if YAML
//! knows it, else by the job's name.
//!
//! | file | subject |
//! |---|---|
//! | [`fields`] | texts and lists, and what is valid for each |
//! | [`mod@env`] | environments, and sources of secrets |
//! | [`matrix`] | a job for each combination of values |

pub mod env;
pub mod fields;
pub mod matrix;
#[cfg(test)]
mod tests;

use super::{
    messages::{
        ArtifactSpec, CacheSpec, Concurrency, EnvValue, JobSpec, MAX_CAPABILITIES, MAX_MESSAGE,
        MAX_OUTPUTS, MAX_PATH, MAX_REFERENCES, NewRun, Retry, RetryOn,
    },
    template::{self, Part},
};
use crate::machine::board::stuck;
use cowboy_engine::primitives::keccak256;
use cowboy_host::{located::Located, within::Within};
use env::EnvEntry;
use fields::{
    Cached, Capability, Condition, Field as _, Folder, Glob, Group, GroupEntry, Image, JobName,
    Kind, Named, OutputName, Pause, RunName, Runtime, Steps, Variable, shown,
};
use matrix::{Combination, Filled, Matrix};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Longest run file, in bytes: the longest body that a server accepts.
pub const MAX_FILE: u64 = MAX_MESSAGE as u64;
/// Longest file with a secret, in bytes.
pub const MAX_SECRET: u64 = 64 << 10;
/// Longest file that a cache's key may hash, in bytes.
const MAX_HASHED: u64 = 64 << 20;
const MAX_JOBS: usize = 1_000;
/// Maximum number of artifact entries of a job, of caches, and of paths of a cache.
const MAX_KEPT: usize = 32;
/// Hexadecimal digits of a file's hash in a cache's key.
const HASH_DIGITS: usize = 16;

/// The reason why a run file is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunFileError {
    #[error("{0}")]
    Syntax(Located),
    #[error("{0} jobs: a run has 1 to {MAX_JOBS}")]
    Jobs(usize),
    #[error("there is no job `{name}`: the file has {known}")]
    NoSuchJob { name: String, known: String },
    #[error("job `{}` would wait for itself: {}", .0.first().map_or("", String::as_str), .0.join(" needs "))]
    Cycle(Vec<String>),
    #[error("job `{job}`: {problem}")]
    Job { job: String, problem: String },
    #[error("env: {0}")]
    Env(String),
    #[error("the run has {0} bytes as JSON: {MAX_MESSAGE} at most")]
    Length(usize),
}

/// A run file as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a run file, with `jobs` and perhaps `name` and `env`")]
pub struct RunFile {
    name: Option<RunName>,
    concurrency: Option<GroupEntry<Group>>,
    #[serde(default)]
    env: Named<Variable, EnvEntry>,
    jobs: Named<JobName, JobEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a job, with `steps` and other fields")]
struct JobEntry {
    matrix: Option<Matrix>,
    steps: Steps,
    #[serde(default)]
    env: Named<Variable, EnvEntry>,
    #[serde(default)]
    needs: Vec<JobName>,
    #[serde(rename = "if")]
    run_if: Option<Condition>,
    #[serde(default)]
    allow_failure: bool,
    concurrency: Option<GroupEntry<Filled<Group>>>,
    #[serde(default)]
    outputs: Vec<OutputName>,
    #[serde(default)]
    requires: Vec<Filled<Capability>>,
    workdir: Option<Filled<Folder>>,
    image: Option<Filled<Image>>,
    #[serde(default)]
    artifacts: Vec<ArtifactEntry>,
    #[serde(default)]
    caches: Vec<CacheEntry>,
    max_runtime: Option<Runtime>,
    retry: Option<RetryEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactEntry {
    #[serde(rename = "type")]
    kind: Filled<Kind>,
    path_glob: Filled<Glob>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheEntry {
    #[serde(rename = "type")]
    kind: Option<Filled<Kind>>,
    key: String,
    paths: Vec<Filled<Cached>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryEntry {
    on: Option<Vec<RetryOn>>,
    max_attempts: Option<Within<1, 100>>,
    backoff: Option<Pause>,
}

/// The submitter's input to a run file.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The folder that the file's paths are relative to.
    pub folder: &'a Path,
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Variables of every job. They override those of the file, but a variable that is secret in
    /// the file stays secret.
    pub env: &'a BTreeMap<String, String>,
    /// The jobs to run, with the jobs that they need; all jobs if empty.
    pub only: &'a [String],
}

impl RunFile {
    pub fn parse(text: &str) -> Result<Self, RunFileError> {
        let syntax = |error: serde_yaml::Error| {
            RunFileError::Syntax(Located::named(&error.to_string(), text))
        };
        let mut file: Self = serde_yaml::from_str(text).map_err(syntax)?;
        env::reread(text, &mut file).map_err(syntax)?;
        file.check()?;
        Ok(file)
    }

    /// In the order of the file.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.jobs.0.iter().map(|(name, _)| name.0.as_str())
    }

    fn check(&self) -> Result<(), RunFileError> {
        if !(1..=MAX_JOBS).contains(&self.jobs.0.len()) {
            return Err(RunFileError::Jobs(self.jobs.0.len()));
        }
        let known: BTreeSet<&JobName> = self.jobs.0.iter().map(|(name, _)| name).collect();
        for (name, job) in &self.jobs.0 {
            let problem = |problem| RunFileError::Job { job: name.0.clone(), problem };
            let mut seen = BTreeSet::new();
            for need in &job.needs {
                if !known.contains(need) {
                    return Err(problem(format!(
                        "it needs `{}`, which is not in the file",
                        need.0
                    )));
                }
                if !seen.insert(need) {
                    return Err(problem(format!("it needs `{}` twice", need.0)));
                }
            }
            let bounded = [
                ("requires", job.requires.len(), MAX_CAPABILITIES),
                ("outputs", job.outputs.len(), MAX_OUTPUTS),
                ("artifacts", job.artifacts.len(), MAX_KEPT),
                ("caches", job.caches.len(), MAX_KEPT),
            ];
            if job.run_if.is_some() && job.needs.is_empty() {
                return Err(problem("`if` refers to `needs`, which is empty".to_owned()));
            }
            if let Some((field, got, most)) = bounded.iter().find(|(_, got, most)| got > most) {
                return Err(problem(format!("{field} has {got} entries: {most} at most")));
            }
            if let Some(cache) =
                job.caches.iter().find(|cache| !(1..=MAX_KEPT).contains(&cache.paths.len()))
            {
                let got = cache.paths.len();
                return Err(problem(format!(
                    "cache `{}`: {got} paths: 1 to {MAX_KEPT}",
                    cache.key
                )));
            }
        }
        match self.cycle() {
            Some(cycle) => Err(RunFileError::Cycle(cycle)),
            None => Ok(()),
        }
    }

    /// Jobs in a cycle, in which each needs the next; the last equals the first.
    fn cycle(&self) -> Option<Vec<String>> {
        let jobs = &self.jobs.0;
        let needs: BTreeMap<_, _> = jobs.iter().map(|(name, job)| (name, &job.needs)).collect();
        let stuck = stuck(&needs);
        // Each of them needs another one: following these needs leads around a cycle.
        let mut path = vec![jobs.iter().map(|(name, _)| name).find(|name| stuck.contains(name))?];
        loop {
            let next = needs[path.last()?].iter().find(|need| stuck.contains(need))?;
            let met = path.iter().position(|name| *name == next);
            path.push(next);
            if let Some(start) = met {
                return Some(path[start..].iter().map(|name| name.0.clone()).collect());
            }
        }
    }

    pub fn into_run(self, given: &Given<'_>) -> Result<NewRun, RunFileError> {
        if let Some(name) = given.env.keys().find(|name| Variable::read(name).is_none()) {
            return Err(RunFileError::Env(format!("`{name}`: expected {}", Variable::EXPECTED)));
        }
        let members = self.members()?;
        let mut by_name: BTreeMap<&JobName, Vec<&MatrixJob<'_>>> = BTreeMap::new();
        for member in &members {
            by_name.entry(member.of).or_default().push(member);
        }
        let needs = |job: &MatrixJob<'_>| {
            let needs = job.job.needs.iter().filter_map(|need| by_name.get(need));
            needs.flatten().copied().collect::<Vec<_>>()
        };
        let mut left = self.asked_for(&members, given.only)?;
        let mut wanted = BTreeSet::new();
        while let Some(member) = left.pop() {
            if wanted.insert(member.name.as_str()) {
                left.extend(needs(member));
            }
        }
        let all = values(None, &self.env, &Combination::NONE, given)?;
        let mut jobs = Vec::new();
        for member in members.iter().filter(|member| wanted.contains(member.name.as_str())) {
            let mut env = all.clone();
            env.extend(values(Some(member.of), &member.job.env, &member.values, given)?);
            for (variable, value) in given.env {
                if !matches!(env.get(variable), Some(EnvValue::Secret { .. })) {
                    env.insert(variable.clone(), EnvValue::Plain(value.clone()));
                }
            }
            let needs = needs(member);
            references(member, &env, &needs).map_err(|problem| RunFileError::Job {
                job: member.name.clone(),
                problem: format!("env: {problem}"),
            })?;
            let needs = needs.iter().map(|need| need.name.clone()).collect();
            let spec = member
                .job
                .spec(&member.values, given.folder)
                .map_err(|problem| RunFileError::Job { job: member.name.clone(), problem })?;
            jobs.push(JobSpec { name: member.name.clone(), env, needs, ..spec });
        }
        let concurrency = self.concurrency.as_ref().map(|group| {
            let GroupEntry { group: Group(group), cancel_in_progress } = group;
            Concurrency { group: group.clone(), cancel_in_progress: *cancel_in_progress }
        });
        let run = NewRun { name: self.name.map(|name| name.0), concurrency, jobs };
        let length = serde_json::to_vec(&run).expect("a run is plain data").len();
        match length > MAX_MESSAGE {
            true => Err(RunFileError::Length(length)),
            false => Ok(run),
        }
    }

    /// In the order of the file.
    fn members(&self) -> Result<Vec<MatrixJob<'_>>, RunFileError> {
        let (mut members, mut names) = (Vec::new(), BTreeSet::new());
        for (of, job) in &self.jobs.0 {
            let problem = |problem| RunFileError::Job { job: of.0.clone(), problem };
            let combinations: Vec<_> = match &job.matrix {
                Some(matrix) => matrix.combinations().collect(),
                None => vec![Combination::NONE],
            };
            for values in combinations {
                let name = values.name(of).map_err(problem)?;
                if !names.insert(name.clone()) {
                    return Err(problem(format!("two jobs of the run would be called `{name}`")));
                }
                members.push(MatrixJob { name, of, job, values });
            }
        }
        match members.len() {
            0..=MAX_JOBS => Ok(members),
            more => Err(RunFileError::Jobs(more)),
        }
    }

    /// The requested jobs, or all if none is named. A job with a matrix means all its combinations.
    fn asked_for<'a, 'b>(
        &self,
        members: &'a [MatrixJob<'b>],
        only: &[String],
    ) -> Result<Vec<&'a MatrixJob<'b>>, RunFileError> {
        if only.is_empty() {
            return Ok(members.iter().collect());
        }
        let mut asked = Vec::new();
        for name in only {
            let before = asked.len();
            asked.extend(members.iter().filter(|job| job.name == *name || job.of.0 == *name));
            if asked.len() == before {
                let known = self.names().collect::<Vec<_>>().join(", ");
                return Err(RunFileError::NoSuchJob { name: name.clone(), known });
            }
        }
        Ok(asked)
    }
}

/// A job of the run: a job of the file, or one combination of its matrix.
struct MatrixJob<'a> {
    name: String,
    of: &'a JobName,
    job: &'a JobEntry,
    values: Combination<'a>,
}

impl JobEntry {
    /// The job in this combination, without its name, environment and needs. Errors: the reason why
    /// it is not valid.
    fn spec(&self, values: &Combination<'_>, folder: &Path) -> Result<JobSpec, String> {
        let steps = self.steps.0.iter().map(|step| values.fill_own(step)).collect::<Result<_, _>>();
        let artifact = |artifact: &ArtifactEntry| {
            Ok(ArtifactSpec {
                kind: artifact.kind.with(values)?.0,
                path_glob: artifact.path_glob.with(values)?.0,
            })
        };
        let cache = |cache: &CacheEntry| {
            let kind = cache.kind.as_ref().map(|kind| kind.with(values)).transpose()?;
            let paths = cache.paths.iter().map(|path| path.with(values).map(|path| path.0));
            let key = values.fill_own(&cache.key).and_then(|written| key(&written, folder));
            Ok(CacheSpec {
                kind: kind.map(|kind| kind.0).unwrap_or_default(),
                key: key.map_err(|problem| format!("cache `{}`: {problem}", cache.key))?,
                paths: paths.collect::<Result<_, String>>()?,
            })
        };
        let workdir = self.workdir.as_ref().map(|path| path.with(values)).transpose()?;
        let image = self.image.as_ref().map(|image| image.with(values)).transpose()?;
        let requires = self.requires.iter().map(|tag| tag.with(values).map(|tag| tag.0));
        let concurrency = self.concurrency.as_ref().map(|group| {
            let GroupEntry { group, cancel_in_progress } = group;
            let Group(group) = group.with(values).map_err(|why| format!("concurrency: {why}"))?;
            Ok::<_, String>(Concurrency { group, cancel_in_progress: *cancel_in_progress })
        });
        Ok(JobSpec {
            steps: steps.map_err(|problem| format!("steps: {problem}"))?,
            workdir: workdir.map(|path| path.0),
            image: image.map(|image| image.0),
            run_if: self.run_if.map(|condition| condition.0),
            allow_failure: self.allow_failure,
            concurrency: concurrency.transpose()?,
            outputs: self.outputs.iter().map(|name| name.0.clone()).collect(),
            requires: requires
                .collect::<Result<_, _>>()
                .map_err(|problem| format!("requires: {problem}"))?,
            artifacts: self.artifacts.iter().map(artifact).collect::<Result<_, String>>()?,
            caches: self.caches.iter().map(cache).collect::<Result<_, String>>()?,
            max_runtime_seconds: self.max_runtime.map(|time| time.0),
            retry: self.retry.as_ref().map(|retry| Retry {
                on: retry.on.clone(),
                max_attempts: retry.max_attempts.map(|attempts| attempts.get() as u32),
                backoff_seconds: retry.backoff.map(|pause| pause.0),
            }),
            ..JobSpec::default()
        })
    }
}

/// An environment with its secrets: that of a job, or the one for all jobs.
fn values(
    job: Option<&JobName>,
    env: &Named<Variable, EnvEntry>,
    combination: &Combination<'_>,
    given: &Given<'_>,
) -> Result<BTreeMap<String, EnvValue>, RunFileError> {
    let value = |(Variable(variable), entry): &(Variable, EnvEntry)| {
        let problem = |problem: String| {
            let problem = format!("{variable}: {problem}");
            match job {
                Some(JobName(job)) => RunFileError::Job { job: job.clone(), problem },
                None => RunFileError::Env(problem),
            }
        };
        let secret = match (entry, given.env.get(variable)) {
            (EnvEntry::Plain(value), _) => {
                let value = combination.fill_variable(value).map_err(problem)?;
                let value = match job.is_some() && template::refers_to_needs(&value) {
                    true => EnvValue::FromNeeds { from_needs: value },
                    false => EnvValue::Plain(value),
                };
                return Ok((variable.clone(), value));
            }
            (_, Some(secret)) | (EnvEntry::Literal(secret), None) => secret.clone(),
            (EnvEntry::FromEnv(from), None) => (given.environment)(from).ok_or_else(|| {
                problem(format!("{from} is not in the environment, or is not UTF-8: export it"))
            })?,
            (EnvEntry::FromFile(path), None) => secret_in(&given.folder.join(path))
                .map_err(|error| problem(format!("secret_file {path}: {error}")))?,
        };
        if secret.is_empty() || secret.contains('\0') {
            return Err(problem("the secret is empty, or has a NUL in it".to_owned()));
        }
        Ok((variable.clone(), EnvValue::Secret { secret }))
    };
    env.0.iter().map(value).collect()
}

fn references(
    of: &MatrixJob<'_>,
    env: &BTreeMap<String, EnvValue>,
    needs: &[&MatrixJob<'_>],
) -> Result<(), String> {
    let mut count = 0;
    for (variable, value) in env {
        let EnvValue::FromNeeds { from_needs } = value else { continue };
        let problem = |problem: String| Err(format!("{variable}: {problem}"));
        let parts = match template::parts(from_needs) {
            Ok(parts) => parts,
            Err(rest) => {
                return problem(format!(
                    "`{}`: expected ${{{{ needs.JOB.outputs.NAME }}}} or ${{{{ needs.JOB.result }}}}",
                    shown(rest)
                ));
            }
        };
        for part in parts {
            let Some(job) = part.job() else { continue };
            count += 1;
            let Some(need) = needs.iter().find(|need| need.name == job) else {
                return problem(format!("{} does not need a job `{}`", of.name, shown(job)));
            };
            if let Part::Output { name, .. } = part
                && !need.job.outputs.iter().any(|known| known.0 == name)
            {
                let name = shown(name);
                return problem(format!("`{name}` is not among the outputs of job `{job}`"));
            }
        }
    }
    match count {
        0..=MAX_REFERENCES => Ok(()),
        _ => Err(format!("{count} references to needed jobs: {MAX_REFERENCES} at most")),
    }
}

/// A cache's key with each `{hash:PATH}` replaced by the hash of that file.
fn key(written: &str, folder: &Path) -> Result<String, String> {
    let (mut key, mut rest) = (String::new(), written);
    while let Some(at) = rest.find('{') {
        key.push_str(&rest[..at]);
        let inside = rest[at + 1..].split_once('}');
        let (path, after) = inside
            .and_then(|(inside, after)| Some((inside.strip_prefix("hash:")?, after)))
            .ok_or("only {hash:FILE} is allowed in braces")?;
        let bytes =
            bounded(&folder.join(path), MAX_HASHED).map_err(|error| format!("{path}: {error}"))?;
        let digits = hex::encode(keccak256(&[&bytes]).0);
        key.push_str(&digits[..HASH_DIGITS]);
        rest = after;
    }
    key.push_str(rest);
    match (1..=MAX_PATH).contains(&key.len()) && !key.contains(char::is_control) {
        true => Ok(key),
        false => Err(format!("the key has 1 to {MAX_PATH} bytes on a line")),
    }
}

/// The text of a secret's file, without the line feed at its end.
fn secret_in(path: &Path) -> Result<String, String> {
    let bytes = bounded(path, MAX_SECRET).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let line = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n'));
    Ok(line.unwrap_or(&text).to_owned())
}

fn bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(io::Error::other(format!("it is longer than {limit} bytes"))),
        false => Ok(bytes),
    }
}
