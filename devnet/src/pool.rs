//! Commands of jobs on the chain, run by a pool of lease runners.
//!
//! A command becomes a run of one job: a step that runs it and redirects its standard output to a
//! file, which is kept as an artifact. Only the attempt whose completion was accepted provides the
//! result: the lease is its fence. A caller that stops waiting cancels the run, at any time: the
//! run is submitted by a separate task, which cancels it if the caller is gone once the server has
//! accepted it.

use crate::executor::{self, ExecutorError, TaskLimits, command::Command};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use cowboy_host::process::{MAX_STDERR, TaskProgress};
use cowboy_lease::{
    client::{Client, ClientError},
    messages::{
        ArtifactSpec, EnvValue, Job, JobSpec, JobState, LogQuery, MAX_TEXT, MAX_WAIT_SECONDS,
        NewRun,
    },
};
use futures::future::{BoxFuture, FutureExt as _};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// File with a command's standard output.
const RESULT: &str = ".cowboy-result";
/// Pause before an unreachable server is asked again.
const PAUSE: Duration = Duration::from_millis(250);
/// Time limit for submitting a run.
const SUBMISSION: Duration = Duration::from_secs(30);
/// Time limit of one download of a result, and number of attempts.
const DOWNLOAD: Duration = Duration::from_secs(60);
const DOWNLOADS: u32 = 3;
/// Maximum number of requests to cancel a run, and the pause between them.
const CANCELS: u32 = 5;
const CANCEL_PAUSE: Duration = Duration::from_secs(2);

/// The runners of a lease server, as a [`CommandPool`](executor::CommandPool).
#[derive(Clone)]
pub struct Pool {
    client: Client,
}

impl Pool {
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    async fn work(
        &self,
        command: &Command,
        limits: &TaskLimits,
        progress: &(dyn Fn(TaskProgress) + Send + Sync),
    ) -> Result<Vec<u8>, ExecutorError> {
        let seconds = limits.timeout.as_secs() + u64::from(limits.timeout.subsec_nanos() > 0);
        let job = JobSpec {
            name: "command".to_owned(),
            steps: vec![script(command, limits)?],
            env: command
                .env
                .iter()
                .map(|(name, value)| (name.clone(), EnvValue::Plain(value.clone())))
                .collect(),
            artifacts: vec![ArtifactSpec {
                kind: "result".to_owned(),
                path_glob: RESULT.to_owned(),
            }],
            max_runtime_seconds: Some(seconds.max(1)),
            ..JobSpec::default()
        };
        let run = NewRun {
            name: Some("job of the chain".to_owned()),
            jobs: vec![job],
            ..NewRun::default()
        };
        let (given, id) = self.submit(run).await?;
        let job = self.end(&id, progress).await?;
        given.done();
        if job.summary.state == JobState::TimedOut {
            return Err(ExecutorError::TimedOut { after: limits.timeout });
        }
        if job.summary.state != JobState::Succeeded {
            let attempt = job.attempts.last();
            let said = attempt.and_then(|attempt| attempt.summary.clone());
            let code = attempt.and_then(|attempt| attempt.exit_code).filter(|code| *code != 0);
            let stderr = said.unwrap_or_else(|| format!("the job is {}", job.summary.state));
            return Err(match code {
                Some(code) => ExecutorError::Exit { code, stderr },
                None => ExecutorError::Local { what: WHAT, reason: stderr },
            });
        }
        self.result(&job, limits.max_return_bytes).await
    }

    /// Submits a run of one job. Returns the job's id.
    async fn submit(&self, run: NewRun) -> Result<(SubmittedRun, String), ExecutorError> {
        let client = self.client.clone();
        let submission = tokio::spawn(async move {
            let run = client.submit(&run).await?;
            let id = run.jobs.first().map(|job| job.job.clone()).unwrap_or_default();
            Ok((SubmittedRun { client, run: Some(run.run_id) }, id))
        });
        // If the wait is given up, here or by the caller, the task still runs to its end.
        let late = |what: &dyn std::fmt::Display| ExecutorError::Local {
            what: WHAT,
            reason: format!("submitting it: {what}"),
        };
        match timeout(SUBMISSION, submission).await {
            Ok(Ok(submitted)) => submitted.map_err(failed),
            Ok(Err(error)) => Err(late(&error)),
            Err(error) => Err(late(&error)),
        }
    }

    async fn end(
        &self,
        id: &str,
        progress: &(dyn Fn(TaskProgress) + Send + Sync),
    ) -> Result<Job, ExecutorError> {
        let (mut query, mut lines) = (LogQuery::default(), Lines::default());
        query.wait_seconds = MAX_WAIT_SECONDS;
        loop {
            // The log of the last attempt; a shorter one belongs to a new attempt.
            match self.client.log(id, &query).await {
                Ok(part) if part.total < query.offset => {
                    query.offset = 0;
                    lines = Lines::default();
                }
                Ok(part) => {
                    query.offset += part.bytes.len() as u64;
                    lines.push(&part.bytes, progress);
                    if part.ended && part.bytes.is_empty() {
                        let job = patiently(|| self.client.job(id)).await?;
                        if job.summary.state.is_terminal() {
                            return Ok(job);
                        }
                    }
                }
                Err(error) if error.is_transient() => sleep(PAUSE).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    async fn result(&self, job: &Job, limit: usize) -> Result<Vec<u8>, ExecutorError> {
        let too_much = || ExecutorError::TooMuchOutput { limit };
        let kept = patiently(|| self.client.artifacts(&job.summary.job)).await?;
        let of_last = |kept: &&cowboy_lease::messages::StoredArtifact| {
            kept.attempt == job.summary.attempt && kept.name == RESULT
        };
        let Some(kept) = kept.iter().find(of_last) else {
            let reason = "its runner kept no result".to_owned();
            return Err(ExecutorError::Local { what: WHAT, reason });
        };
        if usize::try_from(kept.bytes).map_or(true, |bytes| bytes > limit) {
            return Err(too_much());
        }
        let mut left = DOWNLOADS;
        loop {
            left -= 1;
            match self.download(&job.summary.job, job.summary.attempt, limit).await {
                Ok(Some(bytes)) => return Ok(bytes),
                Ok(None) => return Err(too_much()),
                Err(error) if left > 0 && error.is_transient() => sleep(PAUSE).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The result of an attempt; `None` if it is longer than `limit` bytes.
    async fn download(
        &self,
        job: &str,
        attempt: u32,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, ClientError> {
        let mut response = self.client.download(job, attempt, RESULT, DOWNLOAD).await?;
        let mut bytes = Vec::new();
        let broken = |error: reqwest::Error| {
            let (what, reason) = (RESULT.to_owned(), error.without_url().to_string());
            ClientError::Malformed { what, reason }
        };
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if bytes.len() + chunk.len() > limit {
                return Ok(None);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Some(bytes))
    }
}

/// Repeats a request until there is an answer. The caller of the job sets the time limit.
async fn patiently<T, F: Future<Output = Result<T, ClientError>>>(
    request: impl Fn() -> F,
) -> Result<T, ExecutorError> {
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.is_transient() => sleep(PAUSE).await,
            Err(error) => return Err(failed(error)),
        }
    }
}

impl executor::CommandPool for Pool {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        limits: &'a TaskLimits,
        progress: &'a (dyn Fn(TaskProgress) + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<u8>, ExecutorError>> {
        self.work(command, limits, progress).boxed()
    }
}

/// The incomplete last line of a log, up to the length of a progress line.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8], progress: &(dyn Fn(TaskProgress) + Send + Sync)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_STDERR.saturating_sub(self.0.len());
            self.0.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.0);
                let told = TaskProgress::reported(String::from_utf8_lossy(&line).trim_end());
                told.into_iter().for_each(progress);
            }
        }
    }
}

const WHAT: &str = "it could not be run by lease";

fn failed(error: ClientError) -> ExecutorError {
    ExecutorError::Local { what: WHAT, reason: error.to_string() }
}

/// A submitted run. Dropped before it is done, it cancels the run.
struct SubmittedRun {
    client: Client,
    run: Option<String>,
}

impl SubmittedRun {
    fn done(mut self) {
        self.run = None;
    }
}

impl Drop for SubmittedRun {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        let client = self.client.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for left in (0..CANCELS).rev() {
                    match client.cancel_run(&run).await {
                        Ok(_) => return,
                        Err(error) if left > 0 && error.is_transient() => {}
                        Err(error) => {
                            tracing::warn!(%run, %error, "an abandoned run could not be canceled");
                            return;
                        }
                    }
                    sleep(CANCEL_PAUSE).await;
                }
            });
        }
    }
}

fn script(command: &Command, limits: &TaskLimits) -> Result<String, ExecutorError> {
    let words = [&command.program].into_iter().chain(&command.args);
    let words: Vec<_> = words.map(|word| quoted(word)).collect();
    let memory = limits.max_memory_mb.map(|mebibytes| {
        // The same limit as for commands that run on this machine, if the runner's system supports
        // it.
        format!("ulimit -d {} 2>/dev/null || :\n", mebibytes.saturating_mul(1_024))
    });
    let memory = memory.unwrap_or_default();
    let words = words.join(" ");
    let script = match command.stdin.as_slice() {
        [] => format!("{memory}exec {words} </dev/null >{RESULT}"),
        stdin => {
            let text = BASE64_STANDARD.encode(stdin);
            format!("{memory}printf %s {text} | base64 -d | {words} >{RESULT}")
        }
    };
    if script.len() > MAX_TEXT || script.contains('\0') {
        let problem = "a command for a pool must have no zero bytes and, with its input,";
        return Err(ExecutorError::Invalid(format!("{problem} at most {MAX_TEXT} bytes")));
    }
    Ok(script)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Json, Router, routing::post};
    use cowboy_lease::client::Tls;
    use std::{fs, process, sync::Arc};
    use tokio::sync::Notify;

    #[test]
    fn the_shell_runs_the_command_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let check = |args: &[&str], stdin: &[u8], expected: &[u8]| {
            let command = Command {
                program: "sh".to_owned(),
                args: args.iter().map(ToString::to_string).collect(),
                env: [].into(),
                stdin: stdin.to_vec(),
            };
            let limits = TaskLimits {
                max_return_bytes: 1,
                timeout: Duration::from_secs(1),
                max_memory_mb: Some(1_024),
            };
            let script = script(&command, &limits).unwrap();
            let mut shell = process::Command::new("sh");
            let ended = shell.arg("-c").arg(script).current_dir(folder.path()).status().unwrap();
            assert!(ended.success());
            assert_eq!(fs::read(folder.path().join(RESULT)).unwrap(), expected);
        };
        check(&["-c", "printf '%s|' \"$@\"", "sh", "a b", "", "'$HOME'"], b"", b"a b||'$HOME'|");
        check(&["-c", "cat; printf %s \"$1\"", "sh", "\"*\\"], b"\0\xff'\n", b"\0\xff'\n\"*\\");
        check(&["-c", "cat"], b"", b"");
    }

    #[tokio::test]
    async fn a_run_that_nobody_waits_for_when_it_is_taken_is_canceled() {
        let [came, go, canceled] = [(); 3].map(|()| Arc::new(Notify::new()));
        let run = serde_json::json!({
            "run_id": "run_1", "name": null, "created_at": "2026-01-04T08:00:00Z",
            "state": "QUEUED", "jobs": [],
        });
        let submit = {
            let (came, go, run) = (came.clone(), go.clone(), run.clone());
            async move || {
                came.notify_one();
                go.notified().await;
                Json(run)
            }
        };
        let cancel = {
            let canceled = canceled.clone();
            async move || {
                canceled.notify_one();
                Json(run)
            }
        };
        let router = Router::new()
            .route("/api/v1/runs", post(submit))
            .route("/api/v1/runs/run_1/cancel", post(cancel));
        let listener = cowboy_host::http::bind(None).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let pool = Pool::new(Client::new(&url, "token", &Tls::default()).unwrap());
        let (args, env) = (Vec::new(), [].into());
        let command = Command { program: "true".to_owned(), args, env, stdin: Vec::new() };
        let limits = TaskLimits {
            max_return_bytes: 1,
            timeout: Duration::from_secs(60),
            max_memory_mb: None,
        };
        let waits = tokio::spawn(async move { pool.work(&command, &limits, &|_| ()).await });
        let long = Duration::from_secs(20);
        timeout(long, came.notified()).await.expect("it is handed in");
        waits.abort();
        assert!(waits.await.unwrap_err().is_cancelled());
        go.notify_one();
        timeout(long, canceled.notified()).await.expect("it is canceled");
        server.abort();
    }

    #[test]
    fn what_no_step_can_be_is_refused() {
        let limits = TaskLimits {
            max_return_bytes: 1,
            timeout: Duration::from_secs(1),
            max_memory_mb: None,
        };
        for (program, stdin) in [("a\0b", vec![]), ("cat", vec![0; MAX_TEXT])] {
            let (args, env) = (Vec::new(), [].into());
            let command = Command { program: program.to_owned(), args, env, stdin };
            assert!(matches!(script(&command, &limits), Err(ExecutorError::Invalid(_))));
        }
    }
}
