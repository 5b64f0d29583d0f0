//! `pvm`: the machine that runs actors in Python on this host's devnets.

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, Row, columns, fields},
};
use clap::Subcommand;
use cowboy_devnet::{
    client::Client,
    machines::{self, Installed, MachineError},
    types::{HashText, Text},
};
use cowboy_pvm::build::{BuildError, build};
use serde::Serialize;
use std::{ffi::OsString, fs, path::Path};

#[derive(Debug, Subcommand)]
pub enum Pvm {
    /// Build the machine from the official SDK: takes about a minute, and packages from where pip
    /// takes them
    Install {
        /// The Python that builds it, 3.11 or later
        #[arg(long, value_name = "PROGRAM", default_value = "python3")]
        python: OsString,
        /// Copy the machine of this devnet or node instead, such as http://127.0.0.1:20123; two
        /// builds are two machines, and the nodes of a chain need the same one
        #[arg(long, value_name = "URL")]
        from: Option<String>,
    },
    /// The machines that are installed, the newest first; new devnets take the first
    Status,
    /// Check every file of a machine
    Verify {
        /// The machine: its id or enough of its beginning [default: the newest]
        machine: Option<String>,
    },
    /// Delete a machine; devnets whose chain names it no longer start
    Rm {
        /// The machine: its id or enough of its beginning
        machine: String,
    },
}

/// A machine that is installed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct InstalledMachine {
    /// Its id: keccak256 of everything that results and fuel depend on. A chain's genesis has it.
    machine: HashText,
    /// Bytes that its files take.
    bytes: u64,
    /// Its folder.
    folder: String,
}

impl InstalledMachine {
    fn of(installed: &Installed) -> Result<Self, CliError> {
        let mut bytes = 0;
        let at = |error| MachineError::Io { path: installed.folder.clone(), error };
        for entry in fs::read_dir(&installed.folder).map_err(at)? {
            bytes += entry.and_then(|entry| entry.metadata()).map_err(at)?.len();
        }
        let folder = installed.folder.display().to_string();
        Ok(Self { machine: Text(installed.tuple), bytes, folder })
    }
}

impl Pvm {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let folder = machines::folder()?;
        match self {
            Self::Install { from: Some(url), .. } => copy(cx, &url, &folder).await,
            Self::Install { python, from: None } => install(cx, python, &folder).await,
            Self::Status => {
                let installed = machines::installed(&folder)?;
                let machines = installed.iter().map(InstalledMachine::of);
                cx.ui.list(&machines.collect::<Result<Vec<_>, _>>()?)
            }
            Self::Verify { machine } => {
                let installed = find(&folder, machine.as_deref())?;
                machines::check(&installed.tuple)
                    .map_err(|error| CliError::new(Exit::Invalid, error.to_string()))?;
                cx.ui.document(&InstalledMachine::of(&installed)?)
            }
            Self::Rm { machine } => {
                let installed = find(&folder, Some(&machine))?;
                let gone = InstalledMachine::of(&installed)?;
                fs::remove_dir_all(&installed.folder)
                    .map_err(|error| MachineError::Io { path: installed.folder, error })?;
                cx.ui.document(&gone)
            }
        }
    }
}

async fn install(cx: &Context, python: OsString, folder: &Path) -> Result<(), CliError> {
    let (ui, cache) = (cx.ui, folder.to_owned());
    let built = tokio::task::spawn_blocking(move || {
        build(&python, &cache, |step| ui.note(&format!("{step} …")))
    });
    let place = built.await.map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
    let place = place.map_err(|error| match error {
        BuildError::NotStarted { .. } | BuildError::OldPython { .. } => {
            CliError::new(Exit::Failed, error.to_string())
                .hint("name another with --python PROGRAM")
        }
        other => CliError::new(Exit::Failed, other.to_string()),
    })?;
    let installed = machines::installed(folder)?;
    let installed = installed.into_iter().find(|one| one.folder == place);
    let installed = installed.ok_or_else(|| MachineError::NoneInstalled(folder.to_owned()))?;
    cx.ui.document(&InstalledMachine::of(&installed)?)
}

/// Copies a chain's machine from a node of it.
async fn copy(cx: &Context, url: &str, folder: &Path) -> Result<(), CliError> {
    let client = Client::new(url)?;
    let Some(python) = client.parameters().await?.python else {
        let what = format!("the chain at {url} has no machine for actors in Python");
        return Err(CliError::new(Exit::NotFound, what));
    };
    let tuple = *python.machine;
    if machines::check(&tuple).is_err() {
        cx.ui.note("copy the component …");
        let component = client.machine().await?;
        cx.ui.note("compile it …");
        let compiled = tokio::task::spawn_blocking(move || machines::install(&component, &tuple));
        compiled.await.map_err(|error| CliError::new(Exit::Failed, error.to_string()))??;
    }
    cx.ui.document(&InstalledMachine::of(&find(folder, Some(&tuple.to_string()))?)?)
}

/// The machine whose id begins with `text`, or the newest.
fn find(folder: &Path, text: Option<&str>) -> Result<Installed, CliError> {
    let installed = machines::installed(folder)?;
    let Some(text) = text else {
        let newest = installed.into_iter().next();
        return Ok(newest.ok_or_else(|| MachineError::NoneInstalled(folder.to_owned()))?);
    };
    let mut found: Vec<_> =
        installed.into_iter().filter(|one| one.tuple.to_string().starts_with(text)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => {
            Err(CliError::new(Exit::Usage, format!("several machines begin with {text}")))
        }
        (None, _) => Err(CliError::new(Exit::NotFound, format!("no machine {text} is installed"))
            .hint("see them: cowboyctl pvm status")),
    }
}

impl From<MachineError> for CliError {
    fn from(error: MachineError) -> Self {
        let exit = match error {
            MachineError::NoneInstalled(_) | MachineError::NotInstalled { .. } => Exit::NotFound,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl Document for InstalledMachine {
    fn text(&self) -> String {
        fields(&[
            ("machine", self.machine.to_string()),
            ("size", format!("{} MB", self.bytes / 1_000_000)),
            ("folder", self.folder.clone()),
        ])
    }

    fn id(&self) -> String {
        self.machine.to_string()
    }
}

impl Row for InstalledMachine {
    columns! { self;
        "machine" => self.machine.to_string(),
        "size" => format!("{} MB", self.bytes / 1_000_000),
        "folder" => self.folder.clone(),
    }

    fn id(&self) -> String {
        self.machine.to_string()
    }
}
