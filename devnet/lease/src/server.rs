//! The lease server as a whole: owner, files, routes, connections.

use super::{
    clock::Clock,
    files::{FileLimits, Files},
    http::{self, Context, Shares},
    schedules::Schedules,
    service::{self, Owner, Service, StartError},
};
use crate::machine::Config;
use cowboy_host::{
    http::{ConnectionLimits, Serving, tls::Acceptor, why_ended},
    open_files,
};
use std::{io, mem, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

/// Default number of ended runs that are kept.
pub const KEEP_RUNS: usize = 10_000;
const CONNECTIONS: usize = 4_096;
/// Time limit for a client to send the head of its next request, and for each part of a body or an
/// answer.
const CLIENT_TIME: Duration = Duration::from_secs(60);
/// Number of runs whose files are removed in one step.
const SWEEP: usize = 16;
const SWEEP_PAUSE: Duration = Duration::from_secs(60);

/// The options of a server.
pub struct Options {
    /// The server's folder, which no other process uses.
    pub folder: PathBuf,
    pub listener: TcpListener,
    /// A secret.
    pub operator_token: String,
    pub config: Config,
    /// How many ended runs are kept, the newest first. At least one.
    pub keep_runs: usize,
    pub files: FileLimits,
    pub clock: Clock,
    /// The server's TLS certificate, needed beyond the loopback interface.
    pub tls: Option<Acceptor>,
}

/// The reason why a server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{path}: {error}")]
    Files { path: PathBuf, error: io::Error },
    #[error("no address to listen on: {0}")]
    Listener(io::Error),
    #[error("keep_runs: expected at least 1")]
    KeepRuns,
}

/// A part of a server ended by itself, and the others cannot work without it.
#[derive(Debug, thiserror::Error)]
#[error("{part} ended by itself: {reason}")]
pub struct PartEnded {
    pub part: &'static str,
    pub reason: String,
}

/// A lease server; see [`Options`].
#[derive(Debug)]
pub struct Server;

impl Options {
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
    /// Starts a server in the background, on the current runtime. It accepts requests once this
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
        let limits = ConnectionLimits { connections, client: CLIENT_TIME };
        let serving = cowboy_host::http::start(limits, listener, tls, |closing| {
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

/// Maximum number of concurrent connections: a quarter of the files that the process may have open.
fn connections() -> usize {
    let files = open_files::raise_limit().unwrap_or(u64::MAX);
    usize::try_from(files / 4).unwrap_or(usize::MAX).clamp(16, CONNECTIONS)
}

/// Removes the files of forgotten runs. Files that cannot be removed are tried again later and do
/// not block others.
async fn sweep(service: Service, files: Files) {
    let (mut after, mut left) = (String::new(), false);
    loop {
        // On an error the service is ending or reports the reason itself; they are asked for later.
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
        // On an error they are found again with the next ones.
        left |= !removed.is_empty() && service.swept(removed).await.is_err();
    }
}

/// Removes the files of these runs and returns the runs for which that succeeded.
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

/// A running server. Dropping it is like killing it.
#[derive(Debug)]
pub struct Running {
    url: String,
    service: Service,
    owner: Owner,
    serving: Serving,
    sweeper: JoinHandle<()>,
}

impl Running {
    /// The server's address, such as `http://127.0.0.1:7070`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The way to report a chain's events: from now on the server accepts schedules, once it knows
    /// the chain's height.
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.service.clone())
    }

    /// Resolves when a part of the server has ended by itself, for example by a panic. It must not
    /// be called again then.
    pub async fn ended(&mut self) -> PartEnded {
        let (part, reason) = tokio::select! {
            reason = self.owner.ended() => ("the owner of the leases", reason),
            reason = self.serving.ended() => ("the HTTP server", reason),
            swept = &mut self.sweeper => ("the sweeper of files", why_ended(swept)),
        };
        PartEnded { part, reason }
    }

    /// Accepts no more connections, answers waiting requests, and gives the others at most `grace`.
    /// Returns whether all messages were answered within the same time again.
    pub async fn stop(self, grace: Duration) -> bool {
        let Self { owner, serving, sweeper, .. } = self;
        owner.close();
        serving.stop(grace).await;
        sweeper.abort();
        owner.stop(grace).await
    }

    /// Ends the server like a kill, and waits until its files are closed.
    pub async fn abort(self) {
        let Self { owner, serving, sweeper, .. } = self;
        serving.abort();
        sweeper.abort();
        owner.killed().await;
    }
}
