//! `lease runner`: runs jobs of a lease server on this machine, until it is told to end.

use super::connect::ServerChoice;
use crate::{
    commands::{devnet::launch, to_end},
    context::{self, Context},
    error::{CliError, Exit},
    output::{Ui, millis},
};
use clap::{Args, ValueEnum};
use cowboy_lease::{
    client::Client,
    messages::ErrorCode,
    runner::{
        self, JobNotice, Notice, Outcome, Runner as Work, RunnerConfig, RunnerError, Stop,
        container::{Choice, Engine, EngineError},
        folder::{RunnerFolder, RunnerFolderError, RunnerLock},
    },
};
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// `lease runner`.
#[derive(Debug, Args)]
pub struct Runner {
    /// Its name, which its token is issued for [default: a random one]
    #[arg(long, value_name = "ID")]
    name: Option<String>,
    /// Capabilities besides its system and processor, which are added (linux, x86_64); may be given
    /// several times
    #[arg(long = "capability", value_name = "TAG", value_delimiter = ',')]
    capabilities: Vec<String>,
    /// The engine that runs jobs with an image
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = Containers::Auto)]
    containers: Containers,
    /// End after one job
    #[arg(long, conflicts_with = "max_jobs")]
    once: bool,
    /// End after this many jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_jobs: Option<u64>,
    /// Take the name from a running runner
    #[arg(long, conflicts_with = "token_file")]
    replace: bool,
    /// The folder for its jobs, which nothing else may use [default: one in COWBOYCTL_HOME]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    server: ServerChoice,
}

/// The engine that runs a runner's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Containers {
    /// podman or docker, the first that works; without one, it takes no jobs with an image.
    Auto,
    /// docker, which must work.
    Docker,
    /// podman, which must work.
    Podman,
    /// None: it takes no jobs with an image.
    Off,
}

impl From<Containers> for Choice {
    fn from(containers: Containers) -> Self {
        match containers {
            Containers::Auto => Self::Auto,
            Containers::Docker => Self::Docker,
            Containers::Podman => Self::Podman,
            Containers::Off => Self::Off,
        }
    }
}

enum Access {
    /// A given token.
    Given(Client),
    /// A token that was issued for it, and is revoked when it ends.
    Made { runner: Client, operator: Client, token_id: String },
}

impl Runner {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        if self.server.token_file.is_some() && self.name.is_none() {
            return Err(CliError::new(Exit::Usage, "--token-file: whose token is it?")
                .hint("say which runner it was made for: --name ID"));
        }
        // Before the process holds a token or a lease.
        runner::guard().map_err(|error| {
            CliError::failed(format!("this process cannot be kept from its jobs: {error}"))
        })?;
        launch::log_to_stderr()?;
        let mut signals = launch::on_signals()?;
        let ((stopper, stop), at_hand) = (Stop::new(), Mutex::new(None));
        to_end(async {
            tokio::select! {
                outcome = self.work(cx, stop, &at_hand) => outcome,
                never = async {
                    // The sender lives as long as the process.
                    let _first = signals.recv().await;
                    stopper.drain();
                    cx.ui.note(&match known(&at_hand) {
                        None => "the runner ends".to_owned(),
                        Some(job) => format!(
                            "the runner ends after {}; the next signal stops the job",
                            named(&job)
                        ),
                    });
                    let _second = signals.recv().await;
                    stopper.stop();
                    std::future::pending().await
                } => never,
            }
        })
    }

    async fn work(
        &self,
        cx: &Context,
        stop: Stop,
        at_hand: &Mutex<Option<JobNotice>>,
    ) -> Result<(), CliError> {
        let name = self.name.clone().unwrap_or_else(runner::random_name);
        let lock = self.lock(&name).await?;
        let engine = Engine::find(self.containers.into(), lock.folder().path()).await?;
        let engine_name = engine.as_ref().map(Engine::name);
        let (access, stopped) = (self.access(cx, &name).await?, Mutex::new(None));
        let config = RunnerConfig {
            name: name.clone(),
            capabilities: self.capable(),
            max_jobs: if self.once { Some(1) } else { self.max_jobs },
            engine,
            lock,
        };
        let client = match &access {
            Access::Given(runner) | Access::Made { runner, .. } => runner.clone(),
        };
        let (ui, own) = (cx.ui, self.dir.is_none());
        let tell = |notice: Notice| {
            match &notice {
                Notice::Granted(job) => set(at_hand, Some(job)),
                Notice::Ended { job, outcome, .. } => {
                    set(at_hand, None);
                    if *outcome == Outcome::Stopped {
                        set(&stopped, Some(job));
                    }
                }
                _ => {}
            }
            told(ui, &notice);
        };
        let outcome = match Work::new(config, client).await {
            Ok(runner) => {
                let at = self.server.server.as_deref().unwrap_or("the lease server");
                let engine = engine_name.map(|engine| format!("; containers: {engine}"));
                let engine = engine.unwrap_or_default();
                ui.note(&format!("runner {name} asks {at} for jobs{engine}"));
                Box::pin(runner.run(stop, tell)).await
            }
            Err(error) => Err(error),
        };
        let stopped = known(&stopped);
        let (mut own_token, mut queued) = (false, false);
        if let Access::Made { operator, token_id, .. } = access {
            own_token = true;
            if let Some(job) = &stopped {
                queued = give_back(&operator, job, &name).await;
            }
            match operator.revoke_token(&name, Some(&token_id)).await {
                // Another runner has the name by now.
                Err(error) if error.code() == Some(ErrorCode::NotFound) => {}
                Err(error) => {
                    ui.note(&format!("the token of runner {name} is still valid: {error}"));
                }
                Ok(_) => {}
            }
        }
        if own
            && let Ok(lock) = RunnerFolder::of(context::home()?.path(), &name).lock()
            && let Err(error) = lock.remove().await
        {
            ui.note(&format!("the runner's folder is left behind: {error}"));
        }
        outcome.map_err(|error| failure(error, &name, own_token))?;
        let Some(JobNotice { job, .. }) = stopped else { return Ok(()) };
        let what = format!("interrupted; the runner has stopped, and job {job} with it");
        Err(CliError::new(Exit::Interrupted, what).hint(match queued {
            true => "it is back in the queue".to_owned(),
            false => format!(
                "it goes back to the queue when its lease runs out, at once with: cowboyctl lease \
                 revoke {job}"
            ),
        }))
    }

    fn capable(&self) -> Vec<String> {
        let mut all = runner::capabilities();
        for more in &self.capabilities {
            if !all.contains(more) {
                all.push(more.clone());
            }
        }
        all
    }

    /// Locks a folder for the runner. Removes what killed runners have left in the home.
    async fn lock(&self, name: &str) -> Result<RunnerLock, CliError> {
        let Some(dir) = &self.dir else {
            let home = context::home()?;
            // The runner's own folder is not swept: it reports leftovers there when it starts.
            let lock = RunnerFolder::of(home.path(), name).lock()?;
            RunnerFolder::sweep(home.path()).await?;
            return Ok(lock);
        };
        let absolute = std::path::absolute(dir).map_err(|error| {
            CliError::new(Exit::Usage, format!("--dir {}: {error}", dir.display()))
        })?;
        Ok(RunnerFolder::at(absolute).lock()?)
    }

    async fn access(&self, cx: &Context, name: &str) -> Result<Access, CliError> {
        let client = self.server.client(cx)?;
        if self.server.token_file.is_some() {
            return Ok(Access::Given(client));
        }
        let made = client.issue_token(name, self.replace).await?;
        let runner = Client::new(client.url().as_str(), &made.token, &self.server.tls()?)?;
        Ok(Access::Made { runner, operator: client, token_id: made.token_id })
    }
}

fn set(place: &Mutex<Option<JobNotice>>, job: Option<&JobNotice>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = job.cloned();
}

fn known(place: &Mutex<Option<JobNotice>>) -> Option<JobNotice> {
    place.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Revokes the lease of a job that this runner has stopped, and tells whether that worked. The
/// lease may have expired by now, and another runner may have the job.
async fn give_back(operator: &Client, stopped: &JobNotice, name: &str) -> bool {
    let Ok(job) = operator.job(&stopped.job).await else { return false };
    let summary = job.summary;
    let own = summary.runner.as_deref() == Some(name) && summary.attempt == stopped.attempt;
    own && operator.revoke(&stopped.job).await.is_ok()
}

fn told(ui: Ui, notice: &Notice) {
    match notice {
        Notice::Unreachable(reason) => ui.note(&format!("the server does not answer: {reason}")),
        Notice::Back => ui.note("the server answers again"),
        Notice::Granted(job) => ui.note(&format!("{}: granted", named(job))),
        Notice::Ended { job, outcome, took } => {
            ui.note(&format!("{}: {}", named(job), ended(outcome, *took)));
        }
    }
}

fn named(job: &JobNotice) -> String {
    format!("job {} ({}, attempt {})", shown(&job.name), shown(&job.job), job.attempt)
}

fn ended(outcome: &Outcome, took: Duration) -> String {
    let took = format!("after {}", millis(took.as_millis() as u64));
    match outcome {
        Outcome::Succeeded => format!("succeeded {took}"),
        Outcome::Failed(summary) => format!("failed {took}: {}", shown(summary)),
        Outcome::Canceled => format!("canceled {took}"),
        Outcome::TimedOut => format!("timed out {took}"),
        Outcome::Lost(loss) => format!("given up {took}: {}", shown(&loss.to_string())),
        Outcome::Stopped => format!("stopped {took}: the runner ends"),
        Outcome::Refused(reason) => {
            format!("given up {took}: the server refuses: {}", shown(reason))
        }
    }
}

/// A server's text on one line, without control characters.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl From<RunnerFolderError> for CliError {
    fn from(error: RunnerFolderError) -> Self {
        let what = error.to_string();
        match error {
            RunnerFolderError::File(error) => error.into(),
            RunnerFolderError::InUse { .. } => Self::new(Exit::Conflict, what)
                .hint("give this one another name or folder: --name ID, --dir FOLDER"),
            RunnerFolderError::Strange(_) => Self::new(Exit::Usage, what)
                .hint("name an empty folder, or one that is not there: --dir FOLDER"),
        }
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        Self::failed(error.to_string())
            .hint("start it, or do without jobs that have an image: --containers off")
    }
}

/// The error for a runner that ended; `own_token`: whether its token was issued for it at the
/// start.
fn failure(error: RunnerError, name: &str, own_token: bool) -> CliError {
    let what = error.to_string();
    match error {
        RunnerError::Name { .. } => CliError::new(Exit::Usage, what),
        RunnerError::Local { .. } => CliError::failed(what),
        RunnerError::Refused { source, .. } => match source.code() {
            Some(ErrorCode::Unauthorized) if own_token => {
                let what = format!("another runner took the name {name}, or its token was revoked");
                CliError::new(Exit::Conflict, what)
                    .hint("runners that work at the same time have different names: --name ID")
            }
            Some(ErrorCode::Unauthorized | ErrorCode::WrongRunner) => CliError::failed(what)
                .hint(format!("make a token: cowboyctl lease token issue {name} --file FILE")),
            _ => CliError { what, ..source.into() },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_end_is_told_in_one_line_without_control_characters() {
        let took = Duration::from_millis(1_500);
        let job = JobNotice {
            job: "job_1".to_owned(),
            run: "run_1".to_owned(),
            name: "build\u{1b}[2J".to_owned(),
            attempt: 2,
        };
        assert_eq!(named(&job), "job build [2J (job_1, attempt 2)");
        let failed = Outcome::Failed("step 1\nof 2".to_owned());
        assert_eq!(ended(&failed, took), "failed after 1.5 s: step 1 of 2");
        assert_eq!(ended(&Outcome::Succeeded, took), "succeeded after 1.5 s");
    }
}
