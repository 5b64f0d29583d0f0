//! A runner of the lease protocol: asks for work, does it on this machine, and says how it went.
//!
//! * [`Runner::run`] asks for a lease with long polling. Upon a grant: a fresh directory is made,
//!   the lease acked, and the job's steps run in their order with `sh -c`, as this user; those of a
//!   job with an image in a container, if the runner has an engine.
//! * While anything of a job goes on: heartbeats at the interval, each with the progress and how
//!   much of the log was sent.
//! * Every request is made again where that may help, with growing pauses, for as long as the lease
//!   can still be good.
//! * Upon `StaleLease`, or when the lease must have run out: the job's processes are killed, its
//!   directory is removed, and nothing more is sent for the lease.
//! * Upon a request to cancel: the processes are asked to end, killed if they do not, and after the
//!   last output and the artifacts that are there `CancelAck` is sent.
//! * When the job's time is over: the same within the server's grace, with a `Complete` that says
//!   so.
//! * When the runner drains, it finishes the job at hand and takes no further one.
//! * When it stops, the job is stopped as upon a cancel, but nothing is said about it. It goes back
//!   to the queue when its lease runs out.
//!
//! What a job reads and writes never has the lease's id; secrets of its environment are masked in
//! whatever is sent.
//!
//! | file | subject |
//! |---|---|
//! | [`guard()`] | the runner's process, kept from its jobs |
//! | [`folder`] | the runner's folder, and what killed runners left behind |
//! | [`job`] | one job, from its ack to its end |
//! | [`workspace`] | its directory, and the threads at work there |
//! | [`hold`] | its lease: heartbeats, expiry, reasons to stop, retries |
//! | [`step`] | one step: its shell, its processes, their output |
//! | [`container`] | the container of a job with an image |
//! | [`output`] | what steps write, masked, and the progress they tell |
//! | [`outputs`] | values for jobs that need this one |
//! | [`mask`] | secrets out of a stream |
//! | [`log`] | the log, on its way to the server |
//! | [`glob`], [`artifacts`] | the files that a job leaves behind |
//! | [`archive`], [`cache`] | the folders that jobs share |
//! | [`needs`] | the artifacts of jobs that a job needs |
//! | [`api`] | the requests |

mod api;
mod archive;
mod artifacts;
mod cache;
pub mod container;
pub mod folder;
mod glob;
mod guard;
mod hold;
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
pub use hold::Loss;
pub use job::Outcome;

use super::{
    client::{Client, ClientError},
    messages::{
        CONTAINER, LeaseGranted, LeaseRequest, LeaseTag, MAX_CAPABILITIES, MAX_WAIT_SECONDS,
    },
};
use crate::{
    executor::command::{Directories, Directory},
    spelling::Quoted,
};
use api::Api;
use container::{Containers, Engine, left};
use folder::RunnerLock;
use hold::{Pauses, is_unknown};
use std::{env::consts, io, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The longest name of a runner or of what it is capable of, in bytes.
const MAX_NAME: usize = 128;
/// An answer that there is no work comes after a wait. One that comes sooner may come again: where
/// two runners have one name, each ends the other's wait.
const SOON: Duration = Duration::from_secs(1);

/// How soon a runner is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    /// Not at all.
    Never,
    /// Once the job at hand has ended.
    Drained,
    /// At once, whatever it does.
    Now,
}

/// Says that a runner is to end.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Wish>);

impl Stopper {
    /// It finishes the job at hand, takes no further one, and ends.
    pub fn drain(&self) {
        self.raise(Wish::Drained);
    }

    /// It stops the job at hand, and ends.
    pub fn stop(&self) {
        self.raise(Wish::Now);
    }

    fn raise(&self, to: Wish) {
        self.0.send_modify(|wish| *wish = to.max(*wish));
    }
}

/// Whether a runner is to end. Without its [`Stopper`] it never is.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Wish>);

impl Stop {
    /// One that is not to end yet, and what says so.
    pub fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(Wish::Never);
        (Stopper(sender), Self(receiver))
    }

    /// Waits until the runner is to take no further job.
    async fn drained(&self) {
        self.reached(Wish::Drained).await;
    }

    /// Waits until the runner is to stop what it does.
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

/// What a runner is, and how much it does.
#[derive(Debug)]
pub struct RunnerConfig {
    /// Its name, which its token is for.
    pub name: String,
    /// What it is capable of.
    pub capabilities: Vec<String>,
    /// After how many jobs it ends; none: never by itself.
    pub max_jobs: Option<u64>,
    /// What runs the containers of jobs with an image; with one, it is capable of those too.
    pub engine: Option<Engine>,
    /// Its folder.
    pub lock: RunnerLock,
}

/// Why a runner ends.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// A name or a capability that is none.
    #[error("{what} {}: {expected}", Quoted(.given))]
    Name {
        /// `name` or `capability`.
        what: &'static str,
        /// What was given.
        given: String,
        /// What would be one.
        expected: &'static str,
    },
    /// The server does not know it, or refuses what it asks.
    #[error("{url}: {source}")]
    Refused {
        /// The server.
        url: String,
        /// What it says.
        source: ClientError,
    },
    /// This machine has no room for a job's directory.
    #[error("{what}: {source}")]
    Local {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Something that a runner's operator may want to know. Never a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The server does not answer; it is asked again.
    Unreachable(String),
    /// It answers again.
    Back,
    /// A lease was granted.
    Granted(JobNotice),
    /// The job is over for this runner.
    Ended {
        /// The job.
        job: JobNotice,
        /// What became of it.
        outcome: Outcome,
        /// How long it took.
        took: Duration,
    },
}

/// Which job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobNotice {
    /// Its id.
    pub job: String,
    /// Its run's.
    pub run: String,
    /// Its name.
    pub name: String,
    /// Which attempt.
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

/// What this machine is capable of: its system and its processor, as `linux` and `x86_64`.
pub fn capabilities() -> Vec<String> {
    vec![consts::OS.to_owned(), consts::ARCH.to_owned()]
}

/// A name that no other runner has.
pub fn random_name() -> String {
    format!("runner-{:08x}", rand::random::<u32>())
}

impl Runner {
    /// A runner that asks `client`'s server. What a killed runner left in the folder is cleared
    /// away, containers included.
    pub async fn new(config: RunnerConfig, client: Client) -> Result<Self, RunnerError> {
        let RunnerConfig { name, mut capabilities, max_jobs, engine, lock } = config;
        check("name", &name)?;
        capabilities.iter().try_for_each(|capability| check("capability", capability))?;
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
            return Err(refused(excess, "32 are the most"));
        }
        let folder = lock.folder();
        left::clear(folder.path(), &folder.jobs_path()).await.map_err(|source| {
            RunnerError::Local { what: "the folder of the jobs' containers", source }
        })?;
        let directories = Directories::in_folder(&folder.jobs_path()).map_err(|source| {
            RunnerError::Local { what: "the folder of the jobs' directories", source }
        })?;
        let runner = folder.path().to_owned();
        let containers = engine.map(|engine| Containers { engine, runner });
        let api = Api::new(client);
        Ok(Self { name, capabilities, max_jobs, api, containers, directories, _lock: lock })
    }

    /// Does jobs, one at a time, until there were enough or it is to end.
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

    /// Asks until there is work, and says when it came; `None`: the runner is to end.
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
            let answer = tokio::select! {
                biased;
                () = stop.drained() => return Ok(None),
                answer = self.api.lease(&request) => answer,
            };
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
            tokio::select! {
                () = stop.drained() => return Ok(None),
                () = sleep(pauses.next()) => {}
            }
        }
    }

    async fn directory(&self) -> Result<Directory, RunnerError> {
        let directories = self.directories.clone();
        let made = tokio::task::spawn_blocking(move || Directory::new(&directories)).await;
        made.map_err(io::Error::from)
            .flatten()
            .map_err(|source| RunnerError::Local { what: "a directory for a job", source })
    }
}

/// Whether a server takes this for a name.
fn check(what: &'static str, given: &str) -> Result<(), RunnerError> {
    let named = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    match !given.is_empty() && given.len() <= MAX_NAME && given.chars().all(named) {
        true => Ok(()),
        false => Err(RunnerError::Name {
            what,
            given: given.to_owned(),
            expected: "letters, digits and . _ : - are expected, 128 at most",
        }),
    }
}
