//! Commands of jobs on the chain that a pool of runners does by lease.
//!
//! A command becomes a run of one job: a step that runs it, with its standard output in a file that
//! is kept as an artifact. The result is that of the attempt whose completion was accepted, and of
//! no other: the lease is its fence. Whoever no longer waits for the result has the run canceled.

use super::{
    client::{Client, ClientError},
    messages::{
        ArtifactSpec, EnvValue, Job, JobSpec, JobState, LogQuery, MAX_TEXT, MAX_WAIT_SECONDS,
        NewRun,
    },
};
use crate::executor::{
    self, ExecutorError, Limits, Progress,
    command::{Command, MAX_STDERR, told},
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use futures::future::{BoxFuture, FutureExt as _};
use std::time::Duration;
use tokio::time::sleep;

/// The file that a command's standard output is kept in.
const RESULT: &str = ".cowboy-result";
/// The pause before a server is asked again that did not answer.
const PAUSE: Duration = Duration::from_millis(250);
/// How long the server is given to hand out a result.
const DOWNLOAD: Duration = Duration::from_secs(60);

/// The runners that a lease server has.
#[derive(Clone)]
pub struct Pool {
    client: Client,
}

impl Pool {
    /// Those of the server that `client` hands runs to.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    async fn work(
        &self,
        command: &Command,
        limits: &Limits,
        progress: &(dyn Fn(Progress) + Send + Sync),
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
        let run = NewRun { name: Some("job of the chain".to_owned()), jobs: vec![job] };
        let run = self.client.submit(&run).await.map_err(failed)?;
        let given = Given { client: self.client.clone(), run: Some(run.run_id) };
        let id = run.jobs.first().map(|job| job.job.clone()).unwrap_or_default();
        let job = self.end(&id, progress).await?;
        given.done();
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

    /// The job, once it has ended.
    async fn end(
        &self,
        id: &str,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Job, ExecutorError> {
        let (mut query, mut lines) = (LogQuery::default(), Lines::default());
        query.wait_seconds = MAX_WAIT_SECONDS;
        loop {
            // The last attempt that has begun, whose log may be a new one.
            match self.client.log(id, &query).await {
                Ok(part) if part.total < query.offset => {
                    query.offset = 0;
                    lines = Lines::default();
                }
                Ok(part) => {
                    query.offset += part.bytes.len() as u64;
                    lines.push(&part.bytes, progress);
                    if part.ended && part.bytes.is_empty() {
                        let job = self.client.job(id).await.map_err(failed)?;
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

    /// What the command wrote to its standard output.
    async fn result(&self, job: &Job, limit: usize) -> Result<Vec<u8>, ExecutorError> {
        let too_much = || ExecutorError::TooMuchOutput { limit };
        let kept = self.client.artifacts(&job.summary.job).await.map_err(failed)?;
        let of_last = |kept: &&super::messages::StoredArtifact| {
            kept.attempt == job.summary.attempt && kept.name == RESULT
        };
        let Some(kept) = kept.iter().find(of_last) else {
            let reason = "its runner kept no result".to_owned();
            return Err(ExecutorError::Local { what: WHAT, reason });
        };
        if usize::try_from(kept.bytes).map_or(true, |bytes| bytes > limit) {
            return Err(too_much());
        }
        let (id, attempt) = (&job.summary.job, job.summary.attempt);
        let response = self.client.download(id, attempt, RESULT, DOWNLOAD).await;
        let mut response = response.map_err(failed)?;
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > limit => return Err(too_much()),
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Ok(bytes),
                Err(error) => {
                    let reason = error.without_url().to_string();
                    return Err(ExecutorError::Local { what: WHAT, reason });
                }
            }
        }
    }
}

impl executor::Pool for Pool {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        limits: &'a Limits,
        progress: &'a (dyn Fn(Progress) + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<u8>, ExecutorError>> {
        self.work(command, limits, progress).boxed()
    }
}

/// The line of a log that is being written, as far as it can be one about progress.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8], progress: &(dyn Fn(Progress) + Send + Sync)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_STDERR.saturating_sub(self.0.len());
            self.0.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.0);
                let told = told(String::from_utf8_lossy(&line).trim_end());
                told.into_iter().for_each(progress);
            }
        }
    }
}

const WHAT: &str = "it cannot be had by lease";

fn failed(error: ClientError) -> ExecutorError {
    ExecutorError::Local { what: WHAT, reason: error.to_string() }
}

/// A run that somebody waits for. Dropped before it is done, it is canceled.
struct Given {
    client: Client,
    run: Option<String>,
}

impl Given {
    fn done(mut self) {
        self.run = None;
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        let client = self.client.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = client.cancel_run(&run).await {
                    tracing::warn!(%run, %error, "a run that nobody waits for goes on");
                }
            });
        }
    }
}

/// The command as a step.
fn script(command: &Command, limits: &Limits) -> Result<String, ExecutorError> {
    let words = [&command.program].into_iter().chain(&command.args);
    let words: Vec<_> = words.map(|word| quoted(word)).collect();
    let memory = limits.max_memory_mb.map(|mebibytes| {
        // As for commands that come with the job, where the system has such a limit.
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
        let problem = "a command for a pool has no zero bytes, and with its standard input";
        return Err(ExecutorError::Invalid(format!("{problem} {MAX_TEXT} bytes at most")));
    }
    Ok(script)
}

/// A word as the shell takes it for itself.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, process};

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
            let limits = Limits {
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

    #[test]
    fn what_no_step_can_be_is_refused() {
        let limits =
            Limits { max_return_bytes: 1, timeout: Duration::from_secs(1), max_memory_mb: None };
        for (program, stdin) in [("a\0b", vec![]), ("cat", vec![0; MAX_TEXT])] {
            let (args, env) = (Vec::new(), [].into());
            let command = Command { program: program.to_owned(), args, env, stdin };
            assert!(matches!(script(&command, &limits), Err(ExecutorError::Invalid(_))));
        }
    }
}
