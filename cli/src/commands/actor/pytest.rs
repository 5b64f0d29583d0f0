//! `actor test FILE.py`: the author's own pytest, with the SDK's `SimulatedChain` or on a devnet.

use super::property::PropertyOptions;
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::Ui,
};
use clap::{Args, ValueEnum};
use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The plugin of pytest that puts a devnet in the place of `SimulatedChain`.
const PLUGIN: &str = include_str!("cowboyctl_devnet.py");
const PLUGIN_NAME: &str = "cowboyctl_devnet";
/// The plugin that sets how many examples Hypothesis tries.
const EXAMPLES: &str = include_str!("cowboyctl_hypothesis.py");
const EXAMPLES_NAME: &str = "cowboyctl_hypothesis";
/// The devnet's name in the folder that is made for it.
const DEVNET: &str = "test";
/// Four validators, and runners that wait for the tests' replies: a default job may take 6 s. One
/// that leaves jobs without an answer loses reputation, and the others go on. Timers have cycles
/// for actors that take long to load.
const TOPOLOGY: &str = "\
validators: 4
runners:
  - {name: hand-0, max_concurrent_jobs: 100, executors: {by_hand: true}}
  - {name: hand-1, max_concurrent_jobs: 100, executors: {by_hand: true}}
  - {name: hand-2, max_concurrent_jobs: 100, executors: {by_hand: true}}
chain: {block_time: 200ms}
timers: {max_cycles_per_fire_auction_phase: 550000}
";
/// The exit code of pytest when a test failed.
const FAILED: i32 = 1;

/// Options for tests of actors in Python.
#[derive(Debug, Args)]
#[command(next_help_heading = "Actors in Python (FILE.py or a folder)")]
pub struct PytestOptions {
    /// What the tests' `SimulatedChain` is
    #[arg(long, value_enum, value_name = "CHAIN", default_value_t = On::Mock)]
    on: On,
    /// The Python that has pytest and the SDK
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: OsString,
    /// More arguments of pytest, after --
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Where tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// The SDK's own, in memory
    Mock,
    /// A devnet of four validators that is started for the tests and removed after them
    Devnet,
}

/// A devnet in a folder of its own, which is stopped and removed when this is dropped.
struct TestDevnet {
    program: PathBuf,
    folder: TempDir,
}

impl TestDevnet {
    fn start(ui: Ui) -> Result<Self, CliError> {
        let program = env::current_exe().map_err(at(Path::new("cowboyctl")))?;
        let folder = TempDir::with_prefix("cowboyctl-test-").map_err(at(&env::temp_dir()))?;
        let devnet = Self { program, folder };
        for (name, text) in [("topology.yaml", TOPOLOGY), ("cowboyctl_devnet.py", PLUGIN)] {
            let path = devnet.folder.path().join(name);
            fs::write(&path, text).map_err(at(&path))?;
        }
        ui.note("start a devnet for the tests …");
        let topology = devnet.folder.path().join("topology.yaml");
        let up = ["devnet", "up", "--detach", "--file"].map(OsStr::new);
        devnet.run(up.into_iter().chain([topology.as_os_str()]))?;
        Ok(devnet)
    }

    fn run<'a>(&self, words: impl Iterator<Item = &'a OsStr>) -> Result<(), CliError> {
        let mut command = Command::new(&self.program);
        command.args(words).envs(self.variables()).stdin(Stdio::null()).stdout(Stdio::null());
        let output = command.stderr(Stdio::piped()).output().map_err(at(&self.program))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(CliError::failed("the devnet for the tests").detail(said.trim().to_owned()))
            }
        }
    }

    fn variables(&self) -> [(&'static str, &OsStr); 3] {
        [
            ("COWBOYCTL", self.program.as_os_str()),
            ("COWBOYCTL_HOME", self.folder.path().as_os_str()),
            ("COWBOYCTL_DEVNET", OsStr::new(DEVNET)),
        ]
    }
}

impl Drop for TestDevnet {
    fn drop(&mut self) {
        // It may have ended, or never have begun; its folder goes in any case.
        let _ = self.run(["devnet", "down"].map(OsStr::new).into_iter());
    }
}

/// The examples of Hypothesis that a run asks for.
struct Examples {
    seed: u64,
    /// How many, and the folder with the plugin that says so.
    most: Option<(u64, TempDir)>,
}

impl Examples {
    /// None if no seed is to be set; without Hypothesis there is nothing to seed.
    async fn of(
        ui: Ui,
        python: &OsStr,
        property: PropertyOptions,
    ) -> Result<Option<Self>, CliError> {
        if property.fuzz().is_none() && property.seed().is_none() {
            return Ok(None);
        }
        let mut probe = tokio::process::Command::new(python);
        probe.args(["-c", "import hypothesis"]).stdin(Stdio::null()).stdout(Stdio::null());
        let found = probe.stderr(Stdio::null()).kill_on_drop(true).status().await;
        let is_installed = found.map_err(at(Path::new(python)))?.success();
        let (campaign, is_new) = property.campaign();
        let seed = campaign.seed;
        let Some(most) = property.fuzz() else {
            return Ok(is_installed.then_some(Self { seed, most: None }));
        };
        if !is_installed {
            let python = Path::new(python).display();
            let error = CliError::failed(format!("--fuzz: {python} has no Hypothesis"));
            return Err(error.hint(
                "property tests in Python need it: pip install hypothesis; or name another Python \
                 with --python PROGRAM",
            ));
        }
        if is_new {
            ui.note(&format!("seed {seed}"));
        }
        let folder = TempDir::with_prefix("cowboyctl-test-").map_err(at(&env::temp_dir()))?;
        let path = folder.path().join(format!("{EXAMPLES_NAME}.py"));
        fs::write(&path, EXAMPLES).map_err(at(&path))?;
        Ok(Some(Self { seed, most: Some((most, folder)) }))
    }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> CliError {
    move |error| CliError::failed(format!("{}: {error}", path.display()))
}

/// What coverage.py measures, in a folder that is removed when this is dropped.
struct Measured(TempDir);

impl Measured {
    /// Makes the folder, if there is a coverage.py.
    async fn with(python: &OsStr) -> Result<Self, CliError> {
        let mut command = tokio::process::Command::new(python);
        command.args(["-c", "import coverage"]).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(at(Path::new(python)))?;
        if !output.status.success() {
            let what = format!("--coverage: {} has no coverage", python.display());
            return Err(CliError::new(Exit::Failed, what)
                .hint("pip install coverage; or name another Python with --python PROGRAM"));
        }
        let folder = TempDir::with_prefix("cowboyctl-coverage-").map_err(at(&env::temp_dir()))?;
        Ok(Self(folder))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("coverage")
    }

    /// Writes it in the format of lcov.
    async fn write(&self, python: &OsStr, to: &Path) -> Result<(), CliError> {
        let mut command = tokio::process::Command::new(python);
        command.args(["-m", "coverage", "lcov", "--quiet", "-o"]).arg(to);
        command.env("COVERAGE_FILE", self.file()).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(at(Path::new(python)))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said).trim().to_owned();
                Err(CliError::failed(format!("--coverage {}", to.display())).detail(said))
            }
        }
    }
}

/// Runs pytest on `file`, a module or a folder, and shows what it prints.
pub async fn run(
    cx: &Context,
    file: &Path,
    (filter, coverage): (Option<String>, Option<PathBuf>),
    options: PytestOptions,
    property: PropertyOptions,
) -> Result<(), CliError> {
    let PytestOptions { on, python, arguments } = options;
    if coverage.is_some() && on == On::Devnet {
        let what = "--coverage measures Python that runs here, not actors on a devnet";
        return Err(CliError::new(Exit::Usage, what).hint("leave out --on devnet"));
    }
    let measured = match &coverage {
        None => None,
        Some(_) => Some(Measured::with(&python).await?),
    };
    let examples = Examples::of(cx.ui, &python, property).await?;
    let devnet = match on {
        On::Mock => None,
        On::Devnet => Some(TestDevnet::start(cx.ui)?),
    };
    let mut command = tokio::process::Command::new(&python);
    if let Some(measured) = &measured {
        command.args(["-m", "coverage", "run", "--branch"]).env("COVERAGE_FILE", measured.file());
    }
    command.args(["-m", "pytest"]).arg(file);
    if let Some(filter) = filter {
        command.args(["-k", &filter]);
    }
    let mut folders = Vec::new();
    if let Some(devnet) = &devnet {
        folders.push(devnet.folder.path().to_owned());
        command.args(["-p", PLUGIN_NAME]).envs(devnet.variables());
    }
    if let Some(Examples { seed, most }) = &examples {
        command.arg(format!("--hypothesis-seed={seed}"));
        if let Some((most, folder)) = most {
            folders.push(folder.path().to_owned());
            command.args(["-p", EXAMPLES_NAME]).env("COWBOYCTL_MAX_EXAMPLES", most.to_string());
        }
    }
    if !folders.is_empty() {
        let paths = env::var_os("PYTHONPATH").unwrap_or_default();
        let paths = env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
        let paths = env::join_paths(folders.into_iter().chain(paths));
        let paths = paths.map_err(|error| CliError::failed(format!("PYTHONPATH: {error}")))?;
        command.env("PYTHONPATH", paths);
    }
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let hint = "it needs pytest and the SDK: pip install pytest cowboy-actor-sdk; or name another \
                with --python PROGRAM";
    let status = command.status().await;
    let status = status.map_err(|error| at(Path::new(&python))(error).hint(hint))?;
    if let (Some(measured), Some(to)) = (&measured, &coverage) {
        measured.write(&python, to).await?;
        cx.ui.note(&format!("coverage: {}", to.display()));
    }
    match status.code() {
        Some(0) => Ok(()),
        Some(FAILED) => {
            let error = CliError::failed("tests failed");
            Err(match examples {
                Some(Examples { seed, most: Some((most, _)) }) => {
                    error.hint(format!("the same examples again: --fuzz {most} --seed {seed}"))
                }
                _ => error,
            })
        }
        _ => Err(CliError::new(Exit::Failed, format!("pytest: {status}")).hint(hint)),
    }
}
