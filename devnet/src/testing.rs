//! A devnet for tests in Rust. It ends with its value, and with the test's process, however that
//! ends: see `cowboyctl devnet exec`.
//!
//! ```no_run
//! use cowboy_devnet::testing::TestDevnet;
//!
//! let devnet = TestDevnet::start(&["--validators", "1", "--block-time", "100ms"])?;
//! let actor = devnet.run(&["actor", "deploy", "counter.star"])?;
//! devnet.run(&["assert", ".status.head.height > 3"])?;
//! # let _ = (actor, devnet.client()?);
//! # Ok::<(), cowboy_devnet::testing::TestingError>(())
//! ```

use crate::{
    client::{Client, ClientError},
    home::Home,
    topology::Name,
};
use serde_json::Value;
use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
};

/// The environment variable with the path of `cowboyctl`.
pub const PROGRAM: &str = "COWBOYCTL";

/// The command that has the devnet: prints where it is, and ends when its input does.
const HOLDER: &str =
    "printf '%s\\n' \"$COWBOYCTL_HOME\" \"$COWBOYCTL_DEVNET\" \"$COWBOYCTL_RPC_URL\" && exec cat";

/// Why a test has no devnet, or no answer of it.
#[derive(Debug, thiserror::Error)]
pub enum TestingError {
    #[error("{}: {error}; {PROGRAM} names the program", .program.display())]
    NotRun { program: OsString, error: io::Error },
    #[error("no devnet: {0}")]
    NotStarted(String),
    /// The exit codes are those of `cowboyctl`.
    #[error("cowboyctl {arguments}: exit code {code}: {said}")]
    Failed { arguments: String, code: i32, said: String },
    #[error("cowboyctl {arguments} does not print one JSON document: {error}")]
    NotJson { arguments: String, error: serde_json::Error },
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A running devnet of this test alone.
#[derive(Debug)]
pub struct TestDevnet {
    program: OsString,
    holder: Child,
    /// The devnet ends when it is closed.
    input: Option<ChildStdin>,
    home: PathBuf,
    name: Name,
    rpc_url: String,
}

impl TestDevnet {
    /// Starts a devnet by the program that [`PROGRAM`] names, else by `cowboyctl` in `PATH`, with
    /// options of `devnet exec`. Returns when it is ready.
    pub fn start(options: &[&str]) -> Result<Self, TestingError> {
        Self::of(&env::var_os(PROGRAM).unwrap_or_else(|| "cowboyctl".into()), options)
    }

    /// Starts a devnet by this program.
    pub fn of(program: &OsStr, options: &[&str]) -> Result<Self, TestingError> {
        let mut command = Command::new(program);
        command.args(["devnet", "exec"]).args(options).args(["--", "sh", "-c", HOLDER]);
        let started =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut holder =
            started.map_err(|error| TestingError::NotRun { program: program.to_owned(), error })?;
        let (input, output) = (holder.stdin.take(), holder.stdout.take());
        let mut lines = output.map(|output| BufReader::new(output).lines()).into_iter().flatten();
        let mut line = || lines.next().and_then(Result::ok);
        match (line(), line(), line()) {
            (Some(home), Some(name), Some(rpc_url)) => {
                let name = name.parse().map_err(|_| {
                    TestingError::NotStarted(format!("`{name}` is not a devnet's name"))
                })?;
                let (program, home) = (program.to_owned(), home.into());
                Ok(Self { program, holder, input, home, name, rpc_url })
            }
            // It has ended.
            _ => {
                let mut said = String::new();
                if let Some(mut errors) = holder.stderr.take() {
                    let _ = errors.read_to_string(&mut said);
                }
                let _ = holder.wait();
                Err(TestingError::NotStarted(said.trim().to_owned()))
            }
        }
    }

    /// The control API's URL.
    pub fn rpc_url(&self) -> &str {
        &self.rpc_url
    }

    /// A client of its control API.
    pub fn client(&self) -> Result<Client, TestingError> {
        Ok(Client::of_devnet(&Home::at(&self.home).devnet(&self.name))?)
    }

    /// A command of `cowboyctl` about this devnet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("COWBOYCTL_HOME", &self.home)
            .env("COWBOYCTL_DEVNET", self.name.as_str());
        command
    }

    /// Runs a command to its end, and returns the document that it prints.
    pub fn run(&self, arguments: &[&str]) -> Result<Value, TestingError> {
        let arguments = [&["--output", "json"], arguments].concat();
        let run = self.command(&arguments).stdin(Stdio::null()).output();
        let run =
            run.map_err(|error| TestingError::NotRun { program: self.program.clone(), error })?;
        let arguments = arguments.join(" ");
        if !run.status.success() {
            let code = run.status.code().unwrap_or(-1);
            let said = String::from_utf8_lossy(&run.stderr).trim().to_owned();
            return Err(TestingError::Failed { arguments, code, said });
        }
        serde_json::from_slice(&run.stdout)
            .map_err(|error| TestingError::NotJson { arguments, error })
    }
}

impl Drop for TestDevnet {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.holder.wait();
    }
}
