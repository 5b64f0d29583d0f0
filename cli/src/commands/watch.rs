//! `--watch`, an option of every `ls` and `show`: runs the command again when something may have
//! changed, and shows its output when it differs from the last one.
//!
//! A devnet's chain may change with every block, so commands about one follow its blocks. Leases,
//! folders and scenarios are polled.

use super::runtime;
use crate::{
    args,
    context::Context,
    error::{CliError, Exit},
    output::{Format, captured},
};
use clap::{Arg, ArgMatches, Command};
use cowboy_devnet::{client::EventStream, orchestrator::home::DevnetHome};
use std::time::Duration;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep},
};

const WATCH: &str = "watch";

const WATCHED: [&str; 2] = ["ls", "show"];

/// Nouns about things that are not on a chain.
const ELSEWHERE: [&str; 4] = ["config", "devnet", "lease", "sim"];

/// The polling interval, if there are no blocks to follow.
const PACE: Duration = Duration::from_secs(2);

/// Time without a block after which to check whether the devnet is running.
const SILENCE: Duration = Duration::from_secs(1);

pub fn on_lists(command: Command) -> Command {
    let is_list =
        |command: &Command| WATCHED.contains(&command.get_name()) && !command.has_subcommands();
    let command = if is_list(&command) { command.arg(option()) } else { command };
    command.mut_subcommands(on_lists)
}

fn option() -> Arg {
    // Its value needs `=`, because a separate word is the command's own argument.
    Arg::new(WATCH)
        .long(WATCH)
        .short('w')
        .value_name("INTERVAL")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("0ms")
        .value_parser(args::duration)
        .help("Show it again whenever it changes, until Ctrl-C; with an interval, no more often")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// Minimum time between two runs; zero: whenever something may have changed.
    interval: Duration,
    follows_blocks: bool,
}

impl Watch {
    /// The option on the command line; `None` if the command runs only once.
    pub fn of(matches: &ArgMatches) -> Option<Self> {
        let (noun, mut at) = matches.subcommand()?;
        while let Some((_, below)) = at.subcommand() {
            at = below;
        }
        let interval = *at.try_get_one(WATCH).ok()??;
        Some(Self { interval, follows_blocks: !ELSEWHERE.contains(&noun) })
    }

    pub fn run(
        self,
        cx: &Context,
        command: impl Fn() -> Result<Result<(), CliError>, clap::Error>,
    ) -> Result<(), CliError> {
        if cx.ui.format() == Format::Json && !cx.ui.is_filtered() {
            let error = CliError::new(Exit::Usage, "--watch never ends, but json is one document");
            return Err(error.hint("use --output jsonl: a document per line, whenever it changes"));
        }
        let runtime = runtime()?;
        let mut news = ChangeNotice::begin(self, cx, &runtime)?;
        let mut before: Option<Vec<u8>> = None;
        loop {
            let (outcome, printed) = captured(&command);
            if before.as_ref() != Some(&printed) && !printed.is_empty() {
                cx.ui.again(&printed, before.as_deref())?;
                before = Some(printed);
            }
            outcome.map_err(|error| CliError::from(&error))??;
            runtime.block_on(news.next())?;
        }
    }
}

struct ChangeNotice {
    source: WatchSource,
    interval: Duration,
    /// Also catches interruptions while the command runs.
    interrupts: Signal,
}

enum WatchSource {
    Blocks { devnet: DevnetHome, stream: Box<EventStream> },
    Time(tokio::time::Interval),
}

impl ChangeNotice {
    /// Starts to observe now or earlier, so that no change is missed.
    fn begin(watch: Watch, cx: &Context, runtime: &Runtime) -> Result<Self, CliError> {
        runtime.block_on(async {
            let source = if watch.follows_blocks {
                let devnet = cx.running(None)?;
                let mut stream = cx.client_of(&devnet)?.follow(None);
                stream.connect().await?;
                WatchSource::Blocks { devnet, stream: Box::new(stream) }
            } else {
                let pace = if watch.interval.is_zero() { PACE } else { watch.interval };
                let mut ticks = interval(pace);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                // The first tick is immediate.
                ticks.tick().await;
                WatchSource::Time(ticks)
            };
            let interval = if watch.follows_blocks { watch.interval } else { Duration::ZERO };
            Ok(Self { source, interval, interrupts: signal(SignalKind::interrupt())? })
        })
    }

    async fn next(&mut self) -> Result<(), CliError> {
        let Self { source, interval, interrupts } = self;
        let news = async {
            match source {
                WatchSource::Time(ticks) => {
                    ticks.tick().await;
                    Ok(())
                }
                WatchSource::Blocks { devnet, stream } => {
                    sleep(*interval).await;
                    next_block(devnet, stream).await
                }
            }
        };
        tokio::select! {
            news = news => news,
            _ = interrupts.recv() => Err(CliError::interrupted()),
        }
    }
}

/// Waits for a block, and drains those that arrived with it.
async fn next_block(devnet: &DevnetHome, stream: &mut EventStream) -> Result<(), CliError> {
    loop {
        tokio::select! {
            block = stream.next() => {
                block?;
                break;
            }
            () = sleep(SILENCE) => {
                if devnet.state()?.is_down() {
                    let name = devnet.name();
                    return Err(CliError::new(Exit::NotRunning, format!("devnet `{name}` has stopped"))
                        .hint(format!("start it: cowboyctl devnet up --detach --name {name}")));
                }
            }
        }
    }
    loop {
        tokio::select! {
            biased;
            block = stream.next() => block?,
            () = std::future::ready(()) => return Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::command;
    use clap::Command;

    fn check(command: &Command, path: &str, found: &mut usize) {
        let options: Vec<_> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
        let is_list = matches!(command.get_name(), "ls" | "show");
        assert_eq!(options.contains(&"watch"), is_list, "{path}");
        *found += usize::from(is_list);
        for below in command.get_subcommands() {
            check(below, &format!("{path} {}", below.get_name()), found);
        }
    }

    #[test]
    fn every_list_can_be_watched() {
        let mut found = 0;
        check(&command(), "", &mut found);
        assert!(found >= 30, "{found}");
    }
}
