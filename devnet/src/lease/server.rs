//! The lease server as a whole: owner, files, routes, connections.

use super::{
    clock::Clock,
    files::{FileLimits, Files},
    http::{self, Context},
    service::{self, Owner, Service, StartError},
};
use cowboy_engine::lease::Config;
use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

/// Ended runs that are kept where nothing else is said.
pub const KEEP_RUNS: usize = 10_000;
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

/// Starts servers.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts a server in the background, on the runtime this is called on. It answers once this
    /// returns.
    pub async fn start(options: Options) -> Result<Running, ServerError> {
        let Options { folder, listener, operator_token, config, keep_runs, files, clock } = options;
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
        let (close, closing) = watch::channel(false);
        let sweeper = tokio::spawn(sweep(service.clone(), files.clone()));
        let context = Context { service, files, operator_token, closing: closing.clone() };
        let router = http::router(Arc::new(context));
        let serving = tokio::spawn(serve(listener, router, closing));
        Ok(Running { url: format!("http://{address}"), owner, close, serving, sweeper })
    }
}

async fn serve(listener: TcpListener, router: axum::Router, mut closing: watch::Receiver<bool>) {
    let closed = async move {
        let _ = closing.wait_for(|closing| *closing).await;
    };
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(closed).await {
        tracing::error!(%error, "the lease server ended");
    }
}

/// Removes the files of runs that were forgotten.
async fn sweep(service: Service, files: Files) {
    loop {
        // An error: the service ends, or says itself what is wrong.
        let runs = service.forgotten(SWEEP).await.unwrap_or_default();
        if runs.is_empty() {
            service.runs_forgotten().await;
            continue;
        }
        let files = files.clone();
        let removed = spawn_blocking(move || {
            runs.iter().try_for_each(|run| files.forget(run)).map(|()| runs)
        });
        let pause = match removed.await.map_err(io::Error::from).flatten() {
            Ok(runs) => service.swept(runs).await.is_err(),
            Err(error) => {
                tracing::warn!(%error, "files of a forgotten run could not be removed");
                true
            }
        };
        if pause {
            sleep(SWEEP_PAUSE).await;
        }
    }
}

/// A server that runs. Dropping it is like a kill.
#[derive(Debug)]
pub struct Running {
    url: String,
    owner: Owner,
    close: watch::Sender<bool>,
    serving: JoinHandle<()>,
    sweeper: JoinHandle<()>,
}

impl Running {
    /// Where it answers, as `http://127.0.0.1:7070`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes no more connections, answers whoever waits, and gives what is under way at most
    /// `grace`, twice. Whether all of it ended in that time.
    pub async fn stop(self, grace: Duration) -> bool {
        let Self { owner, close, mut serving, sweeper, .. } = self;
        owner.close();
        close.send_replace(true);
        let served = timeout(grace, &mut serving).await.is_ok();
        serving.abort();
        sweeper.abort();
        owner.stop(grace).await && served
    }

    /// Ends it as a kill would, and waits until nobody has its files any more.
    pub async fn abort(self) {
        let Self { owner, close, serving, sweeper, .. } = self;
        serving.abort();
        sweeper.abort();
        let _ = (serving.await, sweeper.await);
        drop(close);
        owner.killed().await;
    }
}
