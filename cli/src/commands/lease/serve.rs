//! `lease serve`: runs a lease server without a devnet, until it is told to stop.

use crate::{
    args,
    commands::devnet::launch,
    context::{self, Context},
    error::{CliError, Exit},
    output::{Document, fields},
};
use clap::Args;
use cowboy_devnet::orchestrator::ports::{self, PortError, Transport};
use cowboy_host::http::tls::Acceptor;
use cowboy_lease::{
    folder::{FolderError, LeaseFolder, LeaseLock},
    machine::Config,
    server::{KEEP_RUNS, Options, Running, Server},
};
use serde::Serialize;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};
use tokio::net::TcpListener;

/// Time for current requests to finish after the signal to stop, and then for the work they began.
const GRACE: Duration = Duration::from_secs(5);

/// `lease serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The folder for runs, logs and the server's token [default: .lease in COWBOYCTL_HOME]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The port [default: the same as last time, else a free one]
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on; one beyond this machine needs --tls-cert
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Time that a lease is valid without a heartbeat
    #[arg(long, value_parser = seconds, value_name = "DURATION", default_value = "120s")]
    ttl: u64,
    /// Interval at which runners send heartbeats
    #[arg(long, value_parser = seconds, value_name = "DURATION", default_value = "20s")]
    heartbeat: u64,
    /// Time for a runner to accept a granted lease
    #[arg(long, value_parser = seconds, value_name = "DURATION", default_value = "30s")]
    ack_timeout: u64,
    /// Time for a runner to stop a canceled job
    #[arg(long, value_parser = seconds, value_name = "DURATION", default_value = "30s")]
    cancel_deadline: u64,
    /// Maximum time for an attempt if its job sets none
    #[arg(long, value_parser = seconds, value_name = "DURATION", default_value = "1h")]
    max_runtime: u64,
    /// Time after that for a runner to send its log, its artifacts and its end
    #[arg(long, value_parser = seconds, value_name = "DURATION", default_value = "15s")]
    grace: u64,
    /// Maximum number of attempts if a job sets none
    #[arg(long, value_name = "N", default_value_t = Config::default().max_attempts)]
    max_attempts: u32,
    /// Number of ended runs to keep; older ones are removed with their logs and artifacts
    #[arg(long, value_name = "N", default_value_t = KEEP_RUNS)]
    keep_runs: usize,
    /// The server's certificate, followed by its chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// CA certificates, PEM, that every client's certificate is verified with
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Serving {
    url: String,
    pid: u32,
    #[cfg_attr(test, schema(value_type = String))]
    dir: PathBuf,
    /// The file with the operator's token.
    #[cfg_attr(test, schema(value_type = String))]
    token_file: PathBuf,
}

impl Document for Serving {
    fn text(&self) -> String {
        fields(&[
            ("lease server", self.url.clone()),
            ("process", self.pid.to_string()),
            ("folder", self.dir.display().to_string()),
            ("token", self.token_file.display().to_string()),
        ])
    }

    fn id(&self) -> String {
        self.url.clone()
    }
}

impl Serve {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let config = self.config();
        config.check().map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
        let tls = self.tls()?;
        if tls.is_none() && !self.bind.is_loopback() {
            let what = format!("--bind {}: tokens would travel in the open", self.bind);
            return Err(CliError::new(Exit::Usage, what)
                .hint("give it a certificate: --tls-cert FILE --tls-key FILE"));
        }
        let folder = match &self.dir {
            Some(dir) => {
                let refused = |error| CliError::file(Exit::Usage, dir, &error);
                LeaseFolder::at(std::path::absolute(dir).map_err(refused)?)
            }
            None => LeaseFolder::of(context::home()?.path()),
        };
        let lock = folder.lock()?;
        launch::log_to_stderr()?;
        let stop = launch::on_signal()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CliError::failed(format!("no runtime: {error}")))?;
        runtime.block_on(async {
            let mut running = self.start(&lock, config, tls).await?;
            let record = lock.announce(&reachable(running.url()))?;
            cx.ui.document(&Serving {
                url: record.url,
                pid: record.pid,
                dir: folder.path().to_owned(),
                token_file: folder.token_path(),
            })?;
            tokio::select! {
                // The sender lives as long as the process.
                _signal = stop => {}
                ended = running.ended() => {
                    tracing::error!(%ended, "the lease server cannot continue");
                    running.abort().await;
                    return Err(CliError::failed(format!("the lease server: {ended}"))
                        .hint("start it again: everything that it acknowledged is kept"));
                }
            }
            if !running.stop(GRACE).await {
                cx.ui.note("some requests were aborted; everything acknowledged is kept");
            }
            match launch::interrupted() {
                true => {
                    Err(CliError::new(Exit::Interrupted, "interrupted; the server has stopped"))
                }
                false => Ok(()),
            }
        })
    }

    const fn config(&self) -> Config {
        Config {
            lease_ttl_seconds: self.ttl,
            heartbeat_interval_seconds: self.heartbeat,
            ack_timeout_seconds: self.ack_timeout,
            cancel_deadline_seconds: self.cancel_deadline,
            max_runtime_seconds: self.max_runtime,
            grace_seconds: self.grace,
            max_attempts: self.max_attempts,
        }
    }

    fn tls(&self) -> Result<Option<Acceptor>, CliError> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        args::tls(certificate, key, self.tls_client_ca.as_deref()).map(Some)
    }

    async fn start(
        &self,
        lock: &LeaseLock,
        config: Config,
        tls: Option<Acceptor>,
    ) -> Result<Running, CliError> {
        let folder = lock.folder().path().to_owned();
        let defaults = Options::new(folder, self.listen(lock).await?, lock.token()?);
        let options = Options { config, keep_runs: self.keep_runs, tls, ..defaults };
        Server::start(options).await.map_err(|error| CliError::failed(error.to_string()))
    }

    /// Binds the given port; else the one of the last time, which runners know; else any.
    async fn listen(&self, lock: &LeaseLock) -> Result<TcpListener, CliError> {
        let at = |port| TcpListener::bind(SocketAddr::new(self.bind, port));
        if let Some(port) = self.port {
            return at(port).await.map_err(|error| taken(self.bind, port, error));
        }
        let last = lock.folder().last_record()?;
        let last = last.and_then(|record| record.url.rsplit_once(':')?.1.parse().ok());
        if let Some(port) = last
            && let Ok(listener) = at(port).await
        {
            return Ok(listener);
        }
        at(0).await.map_err(|error| taken(self.bind, 0, error))
    }
}

/// The URL to reach a server that listens on every address, from this machine.
fn reachable(url: &str) -> String {
    url.replacen("//0.0.0.0:", "//127.0.0.1:", 1).replacen("//[::]:", "//[::1]:", 1)
}

fn taken(bind: IpAddr, port: u16, error: io::Error) -> CliError {
    let conflict = |what: String| {
        CliError::new(Exit::Conflict, what).hint("free it, or choose another: --port PORT")
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return CliError::new(Exit::Usage, format!("--bind {bind} --port {port}: {error}"));
    }
    match ports::check(Transport::Tcp, port) {
        Err(owned @ PortError::Taken { .. }) => conflict(owned.to_string()),
        _ => conflict(format!("port {port} of {bind} is taken")),
    }
}

impl From<FolderError> for CliError {
    fn from(error: FolderError) -> Self {
        let what = error.to_string();
        match error {
            FolderError::File(error) => error.into(),
            FolderError::InUse { .. } => Self::new(Exit::Conflict, what)
                .hint("stop that server, or give this one its own folder: --dir FOLDER"),
            FolderError::Token(_) => Self::failed(what),
        }
    }
}

/// A duration of whole seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let duration = args::duration(text)?;
    match duration == Duration::from_secs(duration.as_secs()) {
        true => Ok(duration.as_secs()),
        false => Err(format!("`{text}`: expected whole seconds, such as 20s or 2m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds() {
        assert_eq!(seconds("2m"), Ok(120));
        assert!(seconds("1.5s").is_err() && seconds("250ms").is_err() && seconds("20").is_err());
    }

    #[test]
    fn a_server_on_every_address_is_reached_on_the_loopback() {
        let check = |url: &str, expected: &str| assert_eq!(reachable(url), expected);
        check("https://0.0.0.0:7070", "https://127.0.0.1:7070");
        check("https://[::]:7070", "https://[::1]:7070");
        check("http://127.0.0.1:7070", "http://127.0.0.1:7070");
    }
}
