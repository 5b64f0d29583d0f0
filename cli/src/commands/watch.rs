//! `--watch`, which every `ls` and `show` takes: the command is run again whenever something may
//! have changed, and its output is shown when it differs from the last.
//!
//! What a devnet's chain has may change with every block, so that commands about one follow its
//! blocks. Leases, folders and scenarios are looked at from time to time.

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

/// The option's name.
const WATCH: &str = "watch";

/// Commands with it.
const WATCHED: [&str; 2] = ["ls", "show"];

/// Nouns whose things are not on a chain.
const ELSEWHERE: [&str; 4] = ["config", "devnet", "lease", "sim"];

/// How often is looked where no blocks tell.
const PACE: Duration = Duration::from_secs(2);

/// How long no block comes before it is looked whether the devnet runs.
const SILENCE: Duration = Duration::from_secs(1);

/// The command line with the option on every list.
pub fn on_lists(command: Command) -> Command {
    let is_list =
        |command: &Command| WATCHED.contains(&command.get_name()) && !command.has_subcommands();
    let command = if is_list(&command) { command.arg(option()) } else { command };
    command.mut_subcommands(on_lists)
}

fn option() -> Arg {
    // Behind `=` alone: what follows a blank is what the command is about.
    Arg::new(WATCH)
        .long(WATCH)
        .short('w')
        .value_name("INTERVAL")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("0ms")
        .value_parser(args::duration)
        .env("COWBOYCTL_WATCH")
        .hide_env_values(true)
        .help("Show it again whenever it changes, until Ctrl-C; with an interval, no more often")
}

/// What a list is watched by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// The time between two looks at least; zero: whenever something may have changed.
    interval: Duration,
    /// Whether it may change with every block.
    follows_blocks: bool,
}

impl Watch {
    /// What the command line says; nothing where the command is run once.
    pub fn of(matches: &ArgMatches) -> Option<Self> {
        let (noun, mut at) = matches.subcommand()?;
        while let Some((_, below)) = at.subcommand() {
            at = below;
        }
        let interval = *at.try_get_one(WATCH).ok()??;
        Some(Self { interval, follows_blocks: !ELSEWHERE.contains(&noun) })
    }

    /// Runs a command again and again, until it fails or is interrupted.
    pub fn run(
        self,
        cx: &Context,
        command: impl Fn() -> Result<Result<(), CliError>, clap::Error>,
    ) -> Result<(), CliError> {
        if cx.ui.format() == Format::Json && !cx.ui.is_filtered() {
            let error = CliError::new(Exit::Usage, "--watch has no end, and json is one document");
            return Err(error.hint("say --output jsonl: a document per line, whenever it changes"));
        }
        let runtime = runtime()?;
        let mut news = News::begin(self, cx, &runtime)?;
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

/// What says that something may have changed.
struct News {
    source: Source,
    /// The time between two looks at least.
    interval: Duration,
    /// Seen also while the command runs.
    interrupts: Signal,
}

enum Source {
    Blocks { devnet: DevnetHome, stream: Box<EventStream> },
    Time(tokio::time::Interval),
}

impl News {
    /// Begins no later than now.
    fn begin(watch: Watch, cx: &Context, runtime: &Runtime) -> Result<Self, CliError> {
        runtime.block_on(async {
            let source = if watch.follows_blocks {
                let devnet = cx.running(None)?;
                let mut stream = cx.client_of(&devnet)?.follow(None);
                stream.connect().await?;
                Source::Blocks { devnet, stream: Box::new(stream) }
            } else {
                let pace = if watch.interval.is_zero() { PACE } else { watch.interval };
                let mut ticks = interval(pace);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                // The first is now.
                ticks.tick().await;
                Source::Time(ticks)
            };
            let interval = if watch.follows_blocks { watch.interval } else { Duration::ZERO };
            Ok(Self { source, interval, interrupts: signal(SignalKind::interrupt())? })
        })
    }

    /// Waits until something may have changed.
    async fn next(&mut self) -> Result<(), CliError> {
        let Self { source, interval, interrupts } = self;
        let news = async {
            match source {
                Source::Time(ticks) => {
                    ticks.tick().await;
                    Ok(())
                }
                Source::Blocks { devnet, stream } => {
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

/// Waits for a block, and takes those that have come with it.
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
