//! A runner of the lease protocol: asks for work, does it on this machine, and reports the result.
//!
//! * [`Runner::run`] asks for a lease with long polling. Upon a grant: a new directory is made, the
//!   lease is acked, and the job's steps run in order with `sh -c` as this user; the steps of a job
//!   with an image run in a container, if the runner has an engine.
//! * While a job is in progress: heartbeats at the interval, each with the progress and the length
//!   of the log sent so far.
//! * Requests are retried if that may help, with growing pauses, for as long as the lease may be
//!   valid.
//! * Upon `StaleLease`, or when the lease must have expired: the job's processes are killed, its
//!   directory is removed, and nothing more is sent for the lease.
//! * Upon a cancel request: the processes are asked to end and killed if they do not; after the
//!   last output and the artifacts so far, `CancelAck` is sent.
//! * When the job's time is over: the same within the server's grace, with a `Complete` that says
//!   so.
//! * When the runner drains: it finishes its current job and takes no further one.
//! * When the runner stops: the job is stopped as for a cancel, but nothing is reported. The job
//!   goes back to the queue when its lease expires.
//!
//! The input and output of a job never contain the lease's id. Secrets of its environment are
//! masked in everything that is sent.
//!
//! | file | subject |
//! |---|---|
//! | [`guard()`] | the protection of the runner's process from its jobs |
//! | [`folder`] | the runner's folder, and what killed runners left behind |
//! | [`job`] | one job, from its ack to its end |
//! | [`workspace`] | its directory, and the threads that work there |
//! | [`heartbeat`] | its lease: heartbeats, expiry, reasons to stop, retries |
//! | [`step`] | one step: its shell, its processes, their output |
//! | [`container`] | the container of a job with an image |
//! | [`output`] | the masked output of steps, and their progress |
//! | [`outputs`] | values for jobs that need this one |
//! | [`mask`] | the removal of secrets from a stream |
//! | [`log`] | the log, on its way to the server |
//! | [`glob`], [`artifacts`] | the artifacts of a job |
//! | [`archive`], [`cache`] | the folders that jobs share |
//! | [`needs`] | the artifacts of needed jobs |
//! | [`api`] | the requests |

mod api;
mod archive;
mod artifacts;
mod attend;
mod cache;
pub mod container;
pub mod folder;
mod glob;
mod guard;
mod heartbeat;
mod job;
mod log;
mod mask;
mod needs;
mod output;
mod outputs;
mod step;
#[cfg(test)]
mod tests;
mod workspace;

pub use guard::guard;
pub use heartbeat::Loss;
pub use job::Outcome;

use super::{
    check,
    client::{Client, ClientError},
    messages::{
        CONTAINER, LeaseGranted, LeaseRequest, LeaseTag, MAX_CAPABILITIES, MAX_WAIT_SECONDS,
    },
};
use api::Api;
use container::{Containers, Engine, left};
use cowboy_host::{
    process::{Directories, Directory},
    spelling::Quoted,
};
use folder::RunnerLock;
use heartbeat::{Pauses, is_unknown, unless};
use std::{env::consts, io, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The shell that runs a step, on the host and in a container.
const SHELL: &str = "/bin/sh";
/// An answer that there is no work comes after a wait. An earlier one is retried with a pause: when
/// two runners have the same name, each ends the other's wait.
const SOON: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Never,
    Drained,
    Now,
}

/// Tells a runner to end.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Wish>);

impl Stopper {
    /// Makes the runner finish its current job, take no further one, and end.
    pub fn drain(&self) {
        self.raise(Wish::Drained);
    }

    pub fn stop(&self) {
        self.raise(Wish::Now);
    }

    fn raise(&self, to: Wish) {
        self.0.send_modify(|wish| *wish = to.max(*wish));
    }
}

/// Whether a runner should end. Without its [`Stopper`] it never should.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Wish>);

impl Stop {
    pub fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(Wish::Never);
        (Stopper(sender), Self(receiver))
    }

    async fn drained(&self) {
        self.reached(Wish::Drained).await;
    }

    async fn requested(&self) {
        self.reached(Wish::Now).await;
    }

    async fn reached(&self, wish: Wish) {
        let mut wishes = self.0.clone();
        if wishes.wait_for(|now| *now >= wish).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The identity and the limits of a runner.
#[derive(Debug)]
pub struct RunnerConfig {
    pub name: String,
    pub capabilities: Vec<String>,
    /// Number of jobs after which the runner ends; `None` for no limit.
    pub max_jobs: Option<u64>,
    /// The container engine for jobs with an image; with one, the runner has that capability too.
    pub engine: Option<Engine>,
    pub lock: RunnerLock,
}

/// The reason why a runner ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("{what} {}: {expected}", Quoted(.given))]
    Name {
        /// `name` or `capability`.
        what: &'static str,
        given: String,
        expected: &'static str,
    },
    #[error("{url}: {source}")]
    Refused { url: String, source: ClientError },
    #[error("{what}: {source}")]
    Local { what: &'static str, source: io::Error },
}

/// An event for the runner's operator. It never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Unreachable(String),
    Back,
    Granted(JobNotice),
    Ended { job: JobNotice, outcome: Outcome, took: Duration },
}

/// A job that this runner starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobNotice {
    pub job: String,
    pub run: String,
    pub name: String,
    pub attempt: u32,
}

/// A runner of the lease protocol.
pub struct Runner {
    name: String,
    capabilities: Vec<String>,
    max_jobs: Option<u64>,
    api: Api,
    containers: Option<Containers>,
    directories: Directories,
    _lock: RunnerLock,
}

/// The default capabilities of this machine: its system and its processor, such as `linux` and
/// `x86_64`.
pub fn capabilities() -> Vec<String> {
    vec![consts::OS.to_owned(), consts::ARCH.to_owned()]
}

/// A random name, for a runner without one.
pub fn random_name() -> String {
    format!("runner-{:08x}", rand::random::<u32>())
}

impl Runner {
    /// A runner for the server that `client` talks to. Removes what a killed runner left in the
    /// folder, including containers.
    pub async fn new(config: RunnerConfig, client: Client) -> Result<Self, RunnerError> {
        let RunnerConfig { name, mut capabilities, max_jobs, engine, lock } = config;
        check_id("name", &name)?;
        capabilities.iter().try_for_each(|capability| check_id("capability", capability))?;
        let refused = |given: &str, expected| RunnerError::Name {
            what: "capability",
            given: given.to_owned(),
            expected,
        };
        match (&engine, capabilities.iter().any(|capability| capability == CONTAINER)) {
            (None, true) => return Err(refused(CONTAINER, "this runner has no container engine")),
            (Some(_), false) => capabilities.push(CONTAINER.to_owned()),
            _ => {}
        }
        if let Some(excess) = capabilities.get(MAX_CAPABILITIES) {
            return Err(refused(excess, "at most 32 are allowed"));
        }
        let folder = lock.folder();
        let cleared = left::clear(folder.path(), &folder.jobs_path()).await;
        cleared.map_err(local("the folder of the jobs' containers"))?;
        let directories = Directories::in_folder(&folder.jobs_path());
        let directories = directories.map_err(local("the folder of the jobs' directories"))?;
        let runner = folder.path().to_owned();
        let containers = engine.map(|engine| Containers { engine, runner });
        let api = Api::new(client);
        Ok(Self { name, capabilities, max_jobs, api, containers, directories, _lock: lock })
    }

    /// Runs jobs, one at a time, until the maximum is reached or the runner should end.
    pub async fn run(self, stop: Stop, tell: impl Fn(Notice)) -> Result<(), RunnerError> {
        let mut done = 0;
        while self.max_jobs.is_none_or(|most| done < most) {
            let Some((granted, at)) = self.ask(&stop, &tell).await? else { return Ok(()) };
            let directory = self.directory().await?;
            let job = JobNotice {
                job: granted.job_id.clone(),
                run: granted.run_id.clone(),
                name: granted.job_spec.name.clone(),
                attempt: granted.attempt,
            };
            tell(Notice::Granted(job.clone()));
            let stop = stop.clone();
            let (api, containers) = (&self.api, self.containers.as_ref());
            let job_run = job::run(&granted, at, &self.name, api, containers, directory, stop);
            let outcome = job_run.await;
            tell(Notice::Ended { job, outcome, took: at.elapsed() });
            done += 1;
        }
        Ok(())
    }

    /// Asks until there is work, and returns it with the time at which it came; `None` if the
    /// runner should end.
    async fn ask(
        &self,
        stop: &Stop,
        tell: &impl Fn(Notice),
    ) -> Result<Option<(LeaseGranted, Instant)>, RunnerError> {
        let request = LeaseRequest {
            tag: LeaseTag::default(),
            runner_id: self.name.clone(),
            capabilities: self.capabilities.clone(),
            wait_seconds: MAX_WAIT_SECONDS,
        };
        let (mut pauses, mut answers) = (Pauses::default(), true);
        loop {
            let asked = Instant::now();
            let answer = unless(stop.drained(), self.api.lease(&request)).await;
            let Ok(answer) = answer else { return Ok(None) };
            match answer {
                Ok(granted) => {
                    if !answers {
                        tell(Notice::Back);
                        answers = true;
                    }
                    if let Some(granted) = granted {
                        return Ok(Some((granted, Instant::now())));
                    }
                    if asked.elapsed() >= SOON {
                        pauses = Pauses::default();
                        continue;
                    }
                }
                Err(error) if is_unknown(&error) || !error.is_transient() => {
                    let url = self.api.url().to_owned();
                    return Err(RunnerError::Refused { url, source: error });
                }
                Err(error) => {
                    if answers {
                        tell(Notice::Unreachable(error.to_string()));
                        answers = false;
                    }
                }
            }
            if unless(stop.drained(), sleep(pauses.next())).await.is_err() {
                return Ok(None);
            }
        }
    }

    async fn directory(&self) -> Result<Directory, RunnerError> {
        let directories = self.directories.clone();
        let made = tokio::task::spawn_blocking(move || Directory::new(&directories)).await;
        made.map_err(io::Error::from).flatten().map_err(local("a directory for a job"))
    }
}

fn local(what: &'static str) -> impl FnOnce(io::Error) -> RunnerError {
    move |source| RunnerError::Local { what, source }
}

fn check_id(what: &'static str, given: &str) -> Result<(), RunnerError> {
    check::runner_id(given).map_err(|_| RunnerError::Name {
        what,
        given: given.to_owned(),
        expected: "expected letters, digits and . _ : -, at most 128",
    })
}
