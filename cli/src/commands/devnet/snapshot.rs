//! `devnet snapshot`: saves and restores a devnet's state.

use crate::{
    args, complete,
    context::{self, Context},
    error::{CliError, Exit},
    output::{Document, Row, bytes, columns, fields, millis, seconds_since, short, warn},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::{Client, ClientError},
    home::DevnetState,
    snapshot::{SnapshotError, Snapshots},
    topology::Name,
    types::{ErrorCode, HashText, Snapshot as Entry},
};
use jiff::Timestamp;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// `devnet snapshot`.
#[derive(Debug, Subcommand)]
pub enum Snapshot {
    /// Save a devnet's whole state, running or not
    ///
    /// The validators of a running devnet stop for it and start again; the answer tells how long
    /// the chain paused. A snapshot contains keys, but not the API's token or logs.
    Save(Save),
    /// Restore a snapshot; devnet up then continues from its height
    Load(LoadSnapshot),
    /// List every snapshot
    Ls,
    /// Delete snapshots
    Rm {
        /// The snapshots
        #[arg(value_name = "SNAPSHOT", required = true)]
        #[arg(add = ArgValueCandidates::new(complete::snapshots))]
        snapshots: Vec<Name>,
    },
}

/// `devnet snapshot save`.
#[derive(Debug, Args)]
pub struct Save {
    /// The snapshot's name [default: the devnet's name and height, such as local-120]
    #[arg(value_name = "SNAPSHOT")]
    snapshot: Option<Name>,
    /// Maximum time
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "10m")]
    timeout: Duration,
}

/// `devnet snapshot load`.
#[derive(Debug, Args)]
pub struct LoadSnapshot {
    /// The snapshot
    #[arg(add = ArgValueCandidates::new(complete::snapshots))]
    snapshot: Name,
    /// The devnet to load it into [default: the one it was saved from]
    #[arg(long, value_name = "DEVNET")]
    name: Option<Name>,
    /// Replace the devnet's chain
    #[arg(long)]
    force: bool,
}

/// A snapshot that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Loaded {
    /// The snapshot's name.
    snapshot: String,
    /// The devnet.
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    /// The height that its chain continues from.
    height: u64,
    /// That block's hash.
    hash: HashText,
    /// Its folder.
    #[cfg_attr(test, schema(value_type = String))]
    home: PathBuf,
    /// Whether it replaced an earlier chain.
    replaced: bool,
}

/// A snapshot that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Removed {
    /// The snapshot's name.
    #[cfg_attr(test, schema(value_type = String))]
    snapshot: Name,
}

impl Snapshot {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Save(save) => save.run(cx).await,
            Self::Load(load) => load.run(cx),
            Self::Ls => {
                let (snapshots, unreadable) = Snapshots::of(&context::home()?).list()?;
                for error in unreadable {
                    warn(&error.to_string());
                }
                cx.ui.list(&snapshots)
            }
            Self::Rm { snapshots } => {
                let all = Snapshots::of(&context::home()?);
                let mut removed = Vec::new();
                for snapshot in snapshots {
                    all.remove(&snapshot)?;
                    removed.push(Removed { snapshot });
                }
                cx.ui.list(&removed)
            }
        }
    }
}

impl Save {
    async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(None)?;
        let progress = cx.ui.progress(format!("saving devnet {}", devnet.name()));
        let snapshots = Snapshots::next_to(&devnet);
        snapshots.check_source(&devnet)?;
        let saved = match devnet.state()? {
            DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) => {
                let _lock = devnet.lock()?;
                let draft = snapshots.copy(&devnet, self.snapshot.as_ref(), Timestamp::now())?;
                draft.finish(None)?
            }
            DevnetState::Starting { .. } => {
                return Err(ClientError::Starting(devnet.name().clone()).into());
            }
            DevnetState::Running(_) => {
                let client = Client::of_devnet(&devnet)?.with_timeout(self.timeout);
                let saved = client.save(self.snapshot.as_ref().map(Name::as_str)).await;
                saved.map_err(|error| {
                    let code = error.code();
                    let late = matches!(error, ClientError::Timeout { .. });
                    let error = CliError::from(error);
                    match code {
                        Some(ErrorCode::Conflict) => {
                            error.hint("choose another name, or delete that one")
                        }
                        // The saving continues without this command.
                        code if late || code == Some(ErrorCode::Timeout) => {
                            error.hint("it is still being saved: cowboyctl devnet snapshot ls")
                        }
                        _ => error,
                    }
                })?
            }
        };
        drop(progress);
        cx.ui.document(&saved)
    }
}

impl LoadSnapshot {
    fn run(self, cx: &Context) -> Result<(), CliError> {
        let snapshots = Snapshots::of(&context::home()?);
        let progress = cx.ui.progress(format!("loading snapshot {}", self.snapshot));
        // The global --devnet names the devnet to load it into, too.
        let to = self.name.as_ref().or(cx.devnet.as_ref());
        let loaded = snapshots.load(&self.snapshot, to, self.force)?;
        drop(progress);
        cx.ui.document(&Loaded {
            snapshot: loaded.snapshot.snapshot,
            devnet: loaded.devnet.name().clone(),
            height: loaded.snapshot.height,
            hash: loaded.snapshot.hash,
            home: loaded.devnet.path().to_owned(),
            replaced: loaded.replaced,
        })
    }
}

impl From<SnapshotError> for CliError {
    fn from(error: SnapshotError) -> Self {
        let what = error.to_string();
        match error {
            SnapshotError::Home(error) => error.into(),
            SnapshotError::Topology(error) => error.into(),
            SnapshotError::Storage(_) | SnapshotError::Sqlite { .. } => Self::failed(what),
            SnapshotError::Missing(_) => {
                Self::new(Exit::NotFound, what).hint("list them: cowboyctl devnet snapshot ls")
            }
            SnapshotError::Exists(name) => Self::new(Exit::Conflict, what).hint(format!(
                "choose another name, or delete it: cowboyctl devnet snapshot rm {name}"
            )),
            SnapshotError::Unnamed(_) => {
                Self::new(Exit::Usage, what).hint("choose one: cowboyctl devnet snapshot save NAME")
            }
            SnapshotError::NoChain(name) => Self::new(Exit::NotFound, what)
                .hint(format!("start it first: cowboyctl devnet up --detach --name {name}")),
            SnapshotError::Format { .. } => Self::failed(what).hint(
                "load it with the version of cowboyctl that saved it, then save it with this one",
            ),
            SnapshotError::Strange(_) => {
                Self::new(Exit::Invalid, what).hint("move it out of the devnet's folder")
            }
            SnapshotError::Damaged { stray: Some(path), .. } => Self::new(Exit::Invalid, what)
                .hint(format!("that was not saved with it; remove it: {}", path.display())),
            SnapshotError::Damaged { name, .. } => Self::new(Exit::Invalid, what)
                .hint(format!("delete it: cowboyctl devnet snapshot rm {name}")),
            SnapshotError::Running { name, .. } => Self::new(Exit::Conflict, what).hint(format!(
                "stop it: cowboyctl devnet down {name}; or load under another name: --name NEW"
            )),
            SnapshotError::RunnerRuns { runner, .. } => Self::new(Exit::Conflict, what)
                .hint(format!("stop it: cowboyctl runner stop {runner}")),
            SnapshotError::HasChain(_) => Self::new(Exit::Conflict, what)
                .hint("replace it with --force, or load under another name: --name NEW"),
        }
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let mut lines = vec![
            ("snapshot", self.snapshot.clone()),
            ("devnet", self.devnet.clone()),
            ("head", format!("{} ({})", self.height, short(&self.hash))),
            ("size", format!("{} in {} files", bytes(self.bytes), self.files)),
        ];
        lines.extend(self.halted_ms.map(|ms| ("chain paused", millis(ms))));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.snapshot.clone()
    }
}

impl Row for Entry {
    columns! { self;
        "snapshot" => self.snapshot.clone(),
        "devnet" => self.devnet.clone(),
        ">height" => self.height.to_string(),
        ">size" => bytes(self.bytes),
        ">age" => seconds_since(*self.created_at, Timestamp::now()),
    }

    fn id(&self) -> String {
        self.snapshot.clone()
    }
}

impl Document for Loaded {
    fn text(&self) -> String {
        let name = &self.devnet;
        let mut lines = vec![
            ("devnet", name.to_string()),
            ("head", format!("{} ({})", self.height, short(&self.hash))),
        ];
        if self.replaced {
            lines.push(("replaced", "its earlier chain".to_owned()));
        }
        lines.push(("go on", format!("cowboyctl devnet up --detach --name {name}")));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.devnet.to_string()
    }
}

impl Row for Removed {
    columns! { self;
        "deleted" => self.snapshot.to_string(),
    }

    fn id(&self) -> String {
        self.snapshot.to_string()
    }
}
