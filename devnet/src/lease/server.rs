//! The lease server as a whole: owner, files, routes, connections.

use super::{
    clock::Clock,
    files::{FileLimits, Files},
    http::{self, Context, Shares},
    schedules::Schedules,
    service::{self, Owner, Service, StartError},
};
use crate::{
    http::{Limits, Serving, tls::Acceptor, why_ended},
    open_files,
};
use cowboy_engine::lease::Config;
use std::{fmt, io, mem, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

/// Ended runs that are kept where nothing else is said.
pub const KEEP_RUNS: usize = 10_000;
/// Connections at a time at most.
const CONNECTIONS: usize = 4_096;
/// How long a client may take for the head of its next request, and for each part of a body or an
/// answer.
const CLIENT_TIME: Duration = Duration::from_secs(60);
/// Runs whose files are removed at a time.
const SWEEP: usize = 16;
/// The pause after files could not be removed.
const SWEEP_PAUSE: Duration = Duration::from_secs(60);

/// What a server is started with.
pub struct Options {
    /// Where it keeps what it keeps; nobody else uses it.
    pub folder: PathBuf,
    /// Where it answers.
    pub listener: TcpListener,
    /// What whoever hands jobs in must show: a secret.
    pub operator_token: String,
    /// What leases are granted with.
    pub config: Config,
    /// How many ended runs are kept: the newest. At least one.
    pub keep_runs: usize,
    /// How large files may get.
    pub files: FileLimits,
    /// The time that leases are measured by.
    pub clock: Clock,
    /// What it shows of itself, where it is to be more than the loopback's.
    pub tls: Option<Acceptor>,
}

/// Shows no token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The leases.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The folder's files.
    #[error("{path}: {error}")]
    Files {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The address.
    #[error("no address to answer at: {0}")]
    Listener(io::Error),
    /// It would keep nothing.
    #[error("keep_runs: 0 is not at least 1")]
    KeepRuns,
}

/// A part of a server has ended by itself, and the others are no good without it.
#[derive(Debug, thiserror::Error)]
#[error("{part} ended by itself: {reason}")]
pub struct PartEnded {
    /// Which.
    pub part: &'static str,
    /// Why.
    pub reason: String,
}

/// Starts servers.
#[derive(Debug)]
pub struct Server;

impl Options {
    /// Everything as it is where nothing else is said.
    pub fn new(folder: PathBuf, listener: TcpListener, operator_token: String) -> Self {
        Self {
            folder,
            listener,
            operator_token,
            config: Config::default(),
            keep_runs: KEEP_RUNS,
            files: FileLimits::default(),
            clock: Clock::system(),
            tls: None,
        }
    }
}

impl Server {
    /// Starts a server in the background, on the runtime this is called on. It answers once this
    /// returns.
    pub async fn start(options: Options) -> Result<Running, ServerError> {
        let Options { folder, listener, operator_token, config, keep_runs, .. } = options;
        let Options { files, clock, tls, .. } = options;
        if keep_runs == 0 {
            return Err(ServerError::KeepRuns);
        }
        let address = listener.local_addr().map_err(ServerError::Listener)?;
        let opened = spawn_blocking(move || {
            let files = Files::open(&folder, files)
                .map_err(|error| ServerError::Files { path: folder.clone(), error })?;
            let started = service::start(&folder.join("lease.db"), config, keep_runs, clock)?;
            Ok::<_, ServerError>((files, started))
        });
        let opened = opened.await.map_err(|error| ServerError::Listener(error.into()))?;
        let (files, (service, owner)) = opened?;
        let sweeper = tokio::spawn(sweep(service.clone(), files.clone()));
        let own = service.clone();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let connections = connections();
        let limits = Limits { connections, client: CLIENT_TIME };
        let serving = crate::http::start(limits, listener, tls, |closing| {
            let waits = Arc::new(Semaphore::new(connections / 2));
            let [uploads, cancel_waits] = [(); 2].map(|()| Shares::new(http::EACH));
            let context =
                Context { service, files, operator_token, uploads, cancel_waits, waits, closing };
            http::router(Arc::new(context))
        });
        let url = format!("{scheme}://{address}");
        Ok(Running { url, service: own, owner, serving, sweeper })
    }
}

/// Connections at a time: as many files as the process may have open allow, with enough of them
/// for whatever else it does.
fn connections() -> usize {
    let files = open_files::raise_limit().unwrap_or(u64::MAX);
    usize::try_from(files / 4).unwrap_or(usize::MAX).clamp(16, CONNECTIONS)
}

/// Removes the files of runs that were forgotten. What cannot be removed is tried again later; the
/// others do not wait for it.
async fn sweep(service: Service, files: Files) {
    let (mut after, mut left) = (String::new(), false);
    loop {
        // An error: the service ends, or says itself what is wrong, and they are asked for later.
        let runs = service.forgotten(after.clone(), SWEEP).await.unwrap_or_else(|_| {
            left = true;
            Vec::new()
        });
        let Some(last) = runs.last() else {
            after.clear();
            let pause = async {
                match mem::take(&mut left) {
                    true => sleep(SWEEP_PAUSE).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = service.runs_forgotten() => {}
                () = pause => {}
            }
            continue;
        };
        after = last.clone();
        let (files, count) = (files.clone(), runs.len());
        let removed = spawn_blocking(move || removed(&files, runs)).await.unwrap_or_default();
        left |= removed.len() < count;
        // An error: they are found again with the next ones.
        left |= !removed.is_empty() && service.swept(removed).await.is_err();
    }
}

/// Those of these runs whose files are gone.
fn removed(files: &Files, runs: Vec<String>) -> Vec<String> {
    let removed = runs.into_iter().filter(|run| match files.forget(run) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%run, %error, "files of a forgotten run could not be removed");
            false
        }
    });
    removed.collect()
}

/// A server that runs. Dropping it is like a kill.
#[derive(Debug)]
pub struct Running {
    url: String,
    service: Service,
    owner: Owner,
    serving: Serving,
    sweeper: JoinHandle<()>,
}

impl Running {
    /// Where it answers, as `http://127.0.0.1:7070`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What tells it of a chain: from now on it takes schedules, once it is told how far that is.
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.service.clone())
    }

    /// Resolves when a part of it has ended by itself, as by a panic. Not to be called again then.
    pub async fn ended(&mut self) -> PartEnded {
        let (part, reason) = tokio::select! {
            reason = self.owner.ended() => ("the owner of the leases", reason),
            reason = self.serving.ended() => ("the HTTP server", reason),
            swept = &mut self.sweeper => ("the sweeper of files", why_ended(swept)),
        };
        PartEnded { part, reason }
    }

    /// Takes no more connections, answers whoever waits, and gives what is under way at most
    /// `grace`. Whether all that has come was answered in as long again.
    pub async fn stop(self, grace: Duration) -> bool {
        let Self { owner, serving, sweeper, .. } = self;
        owner.close();
        serving.stop(grace).await;
        sweeper.abort();
        owner.stop(grace).await
    }

    /// Ends it as a kill would, and waits until nobody has its files any more.
    pub async fn abort(self) {
        let Self { owner, serving, sweeper, .. } = self;
        serving.abort();
        sweeper.abort();
        owner.killed().await;
    }
}
