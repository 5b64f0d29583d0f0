//! The command line: a module per noun, in the order that help lists them.

mod account;
mod actor;
mod assert;
mod chain;
mod completions;
mod config;
mod dashboard;
mod devnet;
mod doctor;
mod explain;
mod fault;
mod job;
mod lease;
mod man;
mod mru;
mod naming;
mod node;
mod pool;
mod presence;
mod proof;
mod pvm;
mod quickstart;
mod refused;
mod runner;
mod sim;
mod speculation;
mod task;
mod timer;
mod transaction;
mod trust;
mod validator;
mod variables;
mod watch;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod schemas;

use crate::{
    complete,
    config::{Config, path_of},
    context::Context,
    error::{CliError, Exit, is_answer},
    output::{Filter, Format, Ui},
};
use clap::{
    ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum as _,
    parser::ValueSource,
};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::topology::Name;
use std::{env, ffi::OsString, future::Future, sync::OnceLock};
use tokio::runtime::Runtime;

const AFTER_HELP: &str = "\
    Every command works against the current devnet: --devnet NAME, else $COWBOYCTL_DEVNET, else the \
    one of `devnet use`, else that of the configuration file, else the only one running. Devnets live under $COWBOYCTL_HOME (default: ~/.local/state/cowboyctl).\n\
    \n\
    Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 no such devnet or not running, 5 timed out, \
    6 rejected by the chain, 7 a verification failed, 8 conflict, 9 can no longer be verified, \
    130 interrupted.";

/// A local devnet of the Cowboy chain, and the tools to look into it.
#[derive(Debug, Parser)]
#[command(
    name = "cowboyctl",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// The devnet [default: the one chosen with `devnet use`, else the only one running]
    #[arg(long, global = true, value_name = "NAME")]
    #[arg(add = ArgValueCandidates::new(complete::devnets))]
    devnet: Option<Name>,
    /// Send all requests to this validator
    #[arg(long, global = true, value_name = "NAME")]
    #[arg(add = ArgValueCandidates::new(complete::validators))]
    node: Option<String>,
    /// How data is printed: table, json, jsonl or yaml
    #[arg(long, short, global = true, value_name = "FORMAT", value_enum, default_value = "table")]
    #[arg(hide_possible_values = true)]
    output: Format,
    /// Print just the id that a script needs
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Filter the JSON with jq: strings are printed raw, one value per line
    #[arg(long, global = true, value_name = "FILTER", conflicts_with = "template")]
    #[arg(allow_hyphen_values = true)]
    jq: Option<String>,
    /// Render the JSON with a Jinja template, such as '{{ height }}'; a list is named this
    #[arg(long, global = true, value_name = "TEMPLATE")]
    template: Option<String>,
    /// Shorten nothing, even on a narrow terminal
    #[arg(long, global = true)]
    wide: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Boot a devnet, run a job on it, and show each step with its command
    ///
    /// The devnet is named quickstart and keeps running. A second run reuses it.
    Quickstart(quickstart::Quickstart),
    /// Start, stop and inspect devnets
    #[command(subcommand)]
    Devnet(devnet::Devnet),
    /// Run single nodes in processes of their own
    #[command(subcommand)]
    Node(node::Node),
    /// Blocks, transactions and events
    #[command(subcommand)]
    Chain(chain::Chain),
    /// Accounts and their money
    #[command(subcommand)]
    Account(account::Account),
    /// Actors: modules on the chain, their handlers, stores and logs
    #[command(subcommand)]
    Actor(actor::Actor),
    /// Timers: calls that the chain makes by itself, and the prices of their lane
    #[command(subcommand)]
    Timer(timer::Timer),
    /// Runners, their registry entries and connections
    #[command(subcommand)]
    Runner(runner::Runner),
    /// Validators
    #[command(subcommand)]
    Validator(validator::Validator),
    /// Break nodes and links on purpose, and heal them
    #[command(subcommand)]
    Fault(fault::Fault),
    /// Off-chain work and how its runners are drawn
    #[command(subcommand)]
    Job(job::Job),
    /// Tasks between parties: offered for a reward, claimed, committed to, proved
    #[command(subcommand)]
    Task(task::Task),
    /// Presence: which runners were reachable when, by the validators' votes
    #[command(subcommand)]
    Presence(presence::Presence),
    /// Most recently used runners
    #[command(subcommand)]
    Mru(mru::Mru),
    /// Pools: groups of runners that jobs can be restricted to
    #[command(subcommand)]
    Pool(pool::Pool),
    /// The machine of actors in Python: installed once per host
    #[command(subcommand)]
    Pvm(pvm::Pvm),
    /// Speculation: pipelines of tasks that run before their dependencies are confirmed
    #[command(subcommand)]
    Speculation(speculation::Speculation),
    /// Runs of jobs that runners take by lease: CI without a chain
    #[command(subcommand)]
    Lease(Box<lease::Lease>),
    /// Simulate whole devnets on a virtual clock: a scenario, a seed, and invariants
    #[command(subcommand)]
    Sim(sim::Sim),
    /// Wait until expressions about a devnet hold
    ///
    /// They are about the document that --show prints: status, events and metrics, looked at after
    /// each block. Exits with 5 if one does not hold in time, and with 1 if --timeout is 0s.
    Assert(assert::Assert),
    /// Find problems of this machine or its devnets, and how to fix them
    ///
    /// Exits with 1 if a problem remains. Without --devnet it checks every devnet.
    Doctor(doctor::Doctor),
    /// Explain a field of a topology, an event, an error or an exit code
    ///
    /// Without a name it lists the names. The texts are those of the book.
    Explain(explain::Explain),
    /// Watch a devnet in the terminal, and inspect it
    ///
    /// ? lists the keys. --replay shows a recording without a devnet.
    Dashboard(dashboard::Dashboard),
    /// The configuration file and its settings
    ///
    /// It sets defaults of options, and aliases: docs/configuration.md.
    #[command(subcommand)]
    Config(config::Config),
    /// Print the completion script of a shell
    ///
    /// For bash, for example: echo 'source <(cowboyctl completions bash)' >> ~/.bashrc
    Completions(completions::Completions),
    /// Print the help of a command
    Help(man::Help),
    /// Print or write manual pages
    ///
    /// To read one: cowboyctl man job submit | man -l -
    Man(man::Man),
}

impl Cli {
    fn ui(&self) -> Result<Ui, CliError> {
        let Global { output, quiet, jq, template, wide, .. } = &self.global;
        let filter = match (jq, template) {
            (Some(jq), _) => Filter::jq(jq)?,
            (None, Some(template)) => Filter::template(template)?,
            (None, None) => return Ok(Ui::new(*output, *quiet, *wide)),
        };
        Ok(Ui::filtered(*output, filter))
    }
}

/// Commands that only print text for people, so there is no JSON to filter.
pub const TEXT: [&str; 9] = [
    "completions",
    "dashboard",
    "devnet exec",
    "devnet init",
    "devnet logs",
    "help",
    "lease logs",
    "lease runner",
    "man",
];

pub fn command() -> clap::Command {
    variables::of_options(watch::on_lists(Cli::command()))
}

/// A parsed command line, with the configuration file's settings applied.
#[derive(Debug)]
pub struct Parsed {
    cli: Cli,
    matches: ArgMatches,
    devnet: Option<Name>,
}

static CONFIGURED_FORMAT: OnceLock<String> = OnceLock::new();

/// Reads the command line. For help and the version it prints them and ends the process.
pub fn parse() -> Result<Parsed, CliError> {
    let command = variables::without_empty(command());
    let config = Config::load().and_then(|config| {
        config.check(&command)?;
        Ok(config)
    });
    match config {
        Ok(config) => {
            if let Some(format) = config.global("output") {
                // Set once per process.
                let _set = CONFIGURED_FORMAT.set(format.to_owned());
            }
            let args = config.expand(&command, env::args_os().collect());
            let (cli, matches) = or_answer(read(found(&config, command, args)))?;
            Ok(Parsed { cli, matches, devnet: config.devnet() })
        }
        // Help and the version work without the file.
        Err(wrong) => match command.try_get_matches() {
            Err(error) if is_answer(&error) => error.exit(),
            _ => Err(wrong),
        },
    }
}

/// The command line, completed with the file's settings.
fn found(
    config: &Config,
    command: clap::Command,
    args: Vec<OsString>,
) -> Result<ArgMatches, clap::Error> {
    if config.settings.is_empty() {
        return command.try_get_matches_from(args);
    }
    let with = |given| config.applied(command.clone(), given).try_get_matches_from(&args);
    let found = with(None)?;
    // An option on the command line may exclude others that the file sets.
    if config.has_settings_of(&found) { with(Some(&found)) } else { Ok(found) }
}

/// The outcome; ends the process for help and the version.
fn or_answer<T>(outcome: Result<Result<T, CliError>, clap::Error>) -> Result<T, CliError> {
    outcome.map_err(|error| {
        if is_answer(&error) {
            error.exit();
        }
        refused::refused(&error, &command())
    })?
}

/// The output format on the command line, even if clap refuses the line.
pub fn format() -> Format {
    let asked = asked_format(env::args_os().skip(1));
    let asked = asked.or_else(|| env::var("COWBOYCTL_OUTPUT").ok().filter(|set| !set.is_empty()));
    let asked = asked.or_else(|| CONFIGURED_FORMAT.get().cloned());
    asked.and_then(|asked| Format::from_str(&asked, false).ok()).unwrap_or_default()
}

/// The value of the last `--output` or `-o`.
fn asked_format(args: impl Iterator<Item = OsString>) -> Option<String> {
    let (mut asked, mut is_next) = (None, false);
    for arg in args {
        let arg = arg.to_string_lossy();
        if std::mem::take(&mut is_next) {
            asked = Some(arg.into_owned());
        } else if arg == "--" {
            break;
        } else if arg == "--output" || arg == "-o" {
            is_next = true;
        } else if let Some(value) = arg.strip_prefix("--output=") {
            asked = Some(value.to_owned());
        } else if let Some(value) = arg.strip_prefix("-o").filter(|_| !arg.starts_with("--")) {
            asked = Some(value.trim_start_matches('=').to_owned());
        }
    }
    asked
}

/// Clap's matches for a command line; the outer error is clap's own.
fn read(
    found: Result<ArgMatches, clap::Error>,
) -> Result<Result<(Cli, ArgMatches), CliError>, clap::Error> {
    let matches = found?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    if typed("output") {
        // What is typed counts more than variables and the configuration.
        cli.global.quiet &= typed("quiet");
        cli.global.jq.take_if(|_| !typed("jq"));
        cli.global.template.take_if(|_| !typed("template"));
    }
    let may_be = |arg: OsString| arg.is_empty() || arg.as_encoded_bytes().ends_with(b"=");
    if env::args_os().any(may_be)
        && let Err(error) = refuse_empty(&command(), &matches)
    {
        return Ok(Err(error));
    }
    Ok(check_filter(&cli.global, &matches).map(|()| (cli, matches)))
}

/// Value names whose values may be empty: data, and words of another command.
const MAY_BE_EMPTY: [&str; 6] = ["PAYLOAD", "TEXT", "ARGUMENTS", "COMMAND", "FILTER", "TEMPLATE"];

/// Refuses an empty name, id or file before anything is sent.
fn refuse_empty(command: &clap::Command, matches: &ArgMatches) -> Result<(), CliError> {
    let (mut command, mut at) = (command, matches);
    loop {
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let typed = at.try_contains_id(id).is_ok_and(|there| there)
                && at.value_source(id) == Some(ValueSource::CommandLine);
            let names = arg.get_value_names().unwrap_or_default();
            if !typed || names.iter().any(|name| MAY_BE_EMPTY.contains(&name.as_str())) {
                continue;
            }
            if at.get_raw(id).is_some_and(|mut values| values.any(|value| value.is_empty())) {
                let value = names.first().map_or(id, |name| name.as_str()).to_uppercase();
                let shown = match arg.get_long() {
                    Some(long) => format!("--{long} <{value}>"),
                    None => format!("<{value}>"),
                };
                return Err(CliError::new(Exit::Usage, format!("{shown} is empty"))
                    .hint("is a variable not set? In a script: set -u"));
            }
        }
        match at.subcommand() {
            Some((name, below)) => {
                let Some(named) = command.find_subcommand(name) else { return Ok(()) };
                (command, at) = (named, below);
            }
            None => return Ok(()),
        }
    }
}

/// Refuses options that contradict a filter, which rewrites JSON. Variables of the environment are
/// only defaults and do not contradict.
fn check_filter(global: &Global, matches: &ArgMatches) -> Result<(), CliError> {
    let filter = match global {
        Global { jq: Some(_), .. } => "jq",
        Global { template: Some(_), .. } => "template",
        _ => return Ok(()),
    };
    let typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    let usage = |what: String| Err(CliError::new(Exit::Usage, what));
    if typed("output") && matches!(global.output, Format::Table | Format::Yaml) {
        let what = format!("--{filter} rewrites JSON, and --output asks for something else");
        return usage(what).map_err(|error| error.hint("omit --output, or use json or jsonl"));
    }
    if typed("quiet") && global.quiet {
        return usage(format!("--{filter} and --quiet: only one of them can say what is printed"));
    }
    let path = path_of(matches);
    if TEXT.contains(&path.as_str()) && typed(filter) {
        return usage(format!(
            "cowboyctl {path} prints text, not JSON: --{filter} has nothing to rewrite"
        ));
    }
    Ok(())
}

/// Runs a command to its end, or repeatedly with `--watch`.
pub fn run(Parsed { cli, matches, devnet }: Parsed) -> Result<(), CliError> {
    let cx = Context {
        ui: cli.ui()?,
        devnet: cli.global.devnet.clone(),
        configured: devnet,
        node: cli.global.node.clone(),
    };
    match watch::Watch::of(&matches) {
        Some(watch) => watch.run(&cx, || Ok(Cli::from_arg_matches(&matches)?.command.run(&cx))),
        None => cli.command.run(&cx),
    }
}

impl Command {
    fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Quickstart(quickstart) => to_end(quickstart.run(cx)),
            Self::Devnet(devnet) => devnet.run(cx),
            Self::Node(node) => node.run(cx),
            Self::Chain(chain) => ask(cx, chain.run(cx)),
            Self::Account(account) => ask(cx, account.run(cx)),
            Self::Actor(actor::Actor::Repl(repl)) => to_end(repl.run(cx)),
            Self::Actor(actor) => ask(cx, actor.run(cx)),
            Self::Timer(timer) => ask(cx, timer.run(cx)),
            Self::Runner(runner) => runner.run(cx),
            Self::Validator(validator) => ask(cx, validator.run(cx)),
            Self::Fault(fault) => ask(cx, fault.run(cx)),
            Self::Job(job) => ask(cx, job.run(cx)),
            Self::Task(task) => ask(cx, task.run(cx)),
            Self::Presence(presence) => ask(cx, presence.run(cx)),
            Self::Mru(mru) => ask(cx, mru.run(cx)),
            Self::Pool(pool) => ask(cx, pool.run(cx)),
            Self::Pvm(pvm) => ask(cx, pvm.run(cx)),
            Self::Speculation(speculation::Speculation::Load(load)) => to_end(load.run(cx)),
            Self::Speculation(speculation) => ask(cx, speculation.run(cx)),
            Self::Lease(lease) => lease.run(cx),
            Self::Sim(sim) => sim.run(cx),
            Self::Assert(assert) => block_on(assert.run(cx)),
            Self::Doctor(doctor) => doctor.run(cx),
            Self::Explain(explain) => explain.run(cx),
            Self::Dashboard(dashboard) => dashboard.run(cx),
            Self::Config(config) => config.run(cx),
            Self::Completions(completions) => completions.run(),
            Self::Help(help) => help.run(),
            Self::Man(man) => man.run(cx.ui),
        }
    }
}

/// Runs a command that asks a devnet. First notes if the asked validator is behind.
fn ask(cx: &Context, command: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    block_on(async {
        cx.note_if_behind().await;
        command.await
    })
}

/// Runs a command until it is done or interrupted.
fn block_on(command: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    to_end(async {
        tokio::select! {
            outcome = command => outcome,
            _ = tokio::signal::ctrl_c() => Err(CliError::interrupted()),
        }
    })
}

/// Runs a command that handles interruptions itself.
fn to_end<T>(command: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    runtime()?.block_on(command)
}

/// A single-threaded runtime, which is enough for a few requests.
fn runtime() -> Result<Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("no runtime: {error}")))
}

#[cfg(test)]
mod tests;
