//! A devnet in this process: its log, its signals, and the lines about its blocks.

use super::ready::{UpReport, warn_of_dead};
use crate::{
    commands::{runtime, to_end},
    context::Context,
    error::{CliError, Exit},
    output::{COLUMNS, Format, Row, within},
};
use cowboy_devnet::{
    client::Client,
    orchestrator::{
        self, DevnetConfig, Notice, OrchestratorError, Ready,
        home::{DevnetHome, Lock, part_before},
        ports::PortError,
    },
    rotating::Rotating,
    topology::Plan,
    types::BlockNotice,
};
use cowboy_host::{files::FileError, log::Log};
use std::{
    env,
    fs::{self, File, OpenOptions},
    io,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
};
use tracing_subscriber::EnvFilter;

/// The log filter if `COWBOYCTL_LOG` is not set: the devnet's own messages, and only warnings of
/// the libraries.
pub const LOG_FILTER: &str = "warn,cowboy_devnet=info,cowboyctl=info";

/// Runs the devnet until `stop` or the API stops it. Calls `ready` once, from one of the devnet's
/// threads.
pub fn run(
    plan: Plan,
    lock: Lock,
    stop: impl Future<Output = ()> + Send + 'static,
    ready: impl FnOnce(Ready) + Send + 'static,
) -> Result<(), CliError> {
    log_to_file(lock.home().log_path())?;
    let ready = Mutex::new(Some(ready));
    let observe = move |notice: Notice<'_>| {
        if let Notice::Ready(up) = notice
            && let Some(ready) = ready.lock().ok().and_then(|mut ready| ready.take())
        {
            ready(up.clone());
        }
    };
    // Provers and nodes are this program itself: see the crate's `run`.
    let program = env::current_exe().ok();
    let config = DevnetConfig { plan, lock, program };
    orchestrator::run(config, Box::pin(stop), observe).map_err(failure)
}

/// Runs the devnet in the foreground: prints its report, then a line per block.
pub fn foreground(cx: &Context, plan: Plan, devnet: &DevnetHome) -> Result<(), CliError> {
    let lock = devnet.lock()?;
    drop(fresh_log(devnet)?);
    let counts = (plan.validators.len(), plan.runners.len());
    let progress = cx.ui.progress(format!("starting devnet {}", plan.name));
    let (cx, home) = (cx.clone(), devnet.clone());
    run(plan, lock, stop(false)?, move |ready| {
        drop(progress);
        // Printing may block, and this is one of the devnet's own threads.
        let reader = thread::Builder::new().name("blocks".to_owned());
        let print = move || report(&cx, &home, counts, &ready);
        if let Err(error) = reader.spawn(print) {
            tracing::warn!(%error, "no thread to print blocks");
        }
    })?;
    if interrupted() {
        return Err(CliError::new(Exit::Interrupted, "interrupted; the devnet has stopped"));
    }
    Ok(())
}

/// Prints the report and then each block, until the devnet stops answering or the output is closed.
fn report(cx: &Context, devnet: &DevnetHome, nodes: (usize, usize), ready: &Ready) {
    let outcome = to_end(async {
        let client = Client::of_devnet(devnet)?;
        let head = client.head().await?;
        let mut blocks = client.follow(Some(head.height.saturating_add(1)));
        warn_of_dead(&client).await?;
        let (record, home) = (ready.record.clone(), devnet.path().to_owned());
        cx.ui.document(&UpReport::new(record, home, head, nodes, ready.after))?;
        loop {
            line(cx, &blocks.next().await?)?;
        }
    });
    let Err::<(), CliError>(error) = outcome else { return };
    tracing::debug!(%error, "no more lines about blocks");
}

/// Prints a block on one line: on stderr for people, as data for programs that read lines.
fn line(cx: &Context, block: &BlockNotice) -> Result<(), CliError> {
    if cx.ui.format() == Format::Jsonl {
        return cx.ui.record(block);
    }
    let transactions = match block.transactions {
        1 => "1 transaction".to_owned(),
        count => format!("{count} transactions"),
    };
    let cells = within(Some(COLUMNS), || block.cells());
    let [height, hash, proposer, _, _, present, certified, events] = cells.as_slice() else {
        unreachable!("a block has a cell for each of its eight columns");
    };
    cx.ui.note(
        format!(
            "block {height} {hash} by {proposer}: {transactions}, {present} present, certifies \
             {certified}  {events}"
        )
        .trim_end(),
    );
    Ok(())
}

/// Starts a new log; keeps the end of the last run's log as `devnet.log.old`.
pub fn fresh_log(devnet: &DevnetHome) -> Result<File, CliError> {
    let path = devnet.log_path();
    let io = |source: io::Error| FileError::Io { path: path.clone(), source };
    let if_there = |done: io::Result<()>| match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io(error)),
        _ => Ok(()),
    };
    if_there(fs::remove_file(part_before(&path)))?;
    if_there(fs::rename(&path, path.with_extension("log.old")))?;
    Ok(OpenOptions::new().append(true).create(true).open(&path).map_err(io)?)
}

/// Logs to a file, which is rotated when it gets too long.
pub fn log_to_file(path: PathBuf) -> Result<(), CliError> {
    let log = Rotating::open(path.clone()).map_err(|source| FileError::Io { path, source })?;
    log_to(log)
}

pub fn log_to_stderr() -> Result<(), CliError> {
    log_to(io::stderr())
}

fn log_to(to: impl io::Write + Send + 'static) -> Result<(), CliError> {
    let log = Log::new(to);
    tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_ansi(false)
        .with_writer(move || log.clone())
        // Internal errors go to stderr by `eprintln!`, which panics on a full disk.
        .log_internal_errors(false)
        .try_init()
        .map_err(|error| CliError::failed(format!("the log: {error}")))
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_env("COWBOYCTL_LOG").unwrap_or_else(|_| EnvFilter::new(LOG_FILTER))
}

/// Whether the user's own signal stopped the devnet, as opposed to a request or a supervisor.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Resolves on Ctrl-C, SIGTERM or SIGHUP; one more of the first two ends the process at once.
pub fn on_signal() -> Result<oneshot::Receiver<()>, CliError> {
    let (sender, receiver) = oneshot::channel();
    let mut sender = Some(sender);
    watch_signals(1, move || {
        // The devnet may have ended by itself.
        let _ended = sender.take().map(|sender| sender.send(()));
    })?;
    Ok(receiver)
}

/// Resolves when this process is to end: as [`on_signal`], and, if it is supervised, when the
/// process that started it has ended.
pub fn stop(supervised: bool) -> Result<impl Future<Output = ()> + Send + 'static, CliError> {
    let signal = on_signal()?;
    let orphaned = supervised.then(end_of_input).transpose()?;
    Ok(async move {
        let orphaned = async {
            match orphaned {
                // An error means the same: nothing more comes.
                Some(end) => drop(end.await),
                None => std::future::pending().await,
            }
        };
        // The sender of the signal lives as long as the process.
        tokio::select! {
            _signal = signal => {}
            () = orphaned => {}
        }
    })
}

/// Resolves when standard input ends: the process at its other end has ended.
fn end_of_input() -> Result<oneshot::Receiver<()>, CliError> {
    let (ended, end) = oneshot::channel();
    let read = move || {
        // An error ends it as well.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        // The node may have ended by itself.
        let _ = ended.send(());
    };
    let thread = thread::Builder::new().name("input".to_owned()).spawn(read);
    thread.map_err(|error| CliError::failed(format!("a thread: {error}")))?;
    Ok(end)
}

/// Yields on Ctrl-C, SIGTERM or SIGHUP, and once more on one of the first two; the third ends the
/// process at once.
pub fn on_signals() -> Result<mpsc::Receiver<()>, CliError> {
    let (sender, receiver) = mpsc::channel(2);
    watch_signals(2, move || {
        // The channel has room for both; sending fails only if the receiver is gone.
        let _ended = sender.try_send(());
    })?;
    Ok(receiver)
}

/// Calls `tell` for each of the first `first` signals, and ends the process on the next one.
fn watch_signals(first: u32, mut tell: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    let io = |error: io::Error| CliError::failed(format!("signals: {error}"));
    let runtime = runtime()?;
    let (mut interrupt, mut terminate, mut hang_up) = {
        let _inside = runtime.enter();
        let on = |kind| signal(kind).map_err(io);
        (on(SignalKind::interrupt())?, on(SignalKind::terminate())?, on(SignalKind::hangup())?)
    };
    let wait = move || {
        runtime.block_on(async move {
            for number in 0..first {
                tokio::select! {
                    _ = interrupt.recv() => INTERRUPTED.store(true, Ordering::Relaxed),
                    _ = terminate.recv() => {}
                    // A terminal that closes may send several SIGHUPs.
                    _ = hang_up.recv(), if number == 0 => {}
                }
                tell();
            }
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(i32::from(Exit::Interrupted as u8));
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(io)?;
    Ok(())
}

pub fn failure(error: OrchestratorError) -> CliError {
    let what = error.to_string();
    match error {
        OrchestratorError::Home(error) | OrchestratorError::Ports(PortError::Home(error)) => {
            error.into()
        }
        OrchestratorError::Ports(PortError::Taken { .. }) => CliError::new(Exit::Conflict, what)
            .hint("free the port, or choose another in the topology: api.port"),
        OrchestratorError::NoValidator { .. } => CliError::new(Exit::NotFound, what)
            .hint("give the key file of one of its validators"),
        OrchestratorError::OfDevnet { .. } | OrchestratorError::OtherChain { .. } => {
            CliError::new(Exit::Conflict, what).hint("choose another folder: --name NAME")
        }
        OrchestratorError::Space(_) => CliError::failed(what)
            .hint("make room there, or set another reserve in the topology: storage.reserve"),
        OrchestratorError::Files { needed, .. } => CliError::failed(what).hint(format!(
            "raise the hard limit to {needed} (`ulimit -Hn`; nofile in limits.conf), or start fewer \
             nodes"
        )),
        OrchestratorError::Listen { error, .. } if error.kind() == io::ErrorKind::AddrInUse => {
            CliError::new(Exit::Conflict, what)
        }
        _ => CliError::failed(what),
    }
}
