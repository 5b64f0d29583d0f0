//! `devnet export`: files that run a topology's nodes elsewhere.

use crate::{
    commands::to_end,
    context::Context,
    error::{CliError, Exit},
    output::{Document, fields},
};
use clap::{Args, Subcommand};
use cowboy_devnet::{
    handout::{
        ClusterSite, ComposeSite, ContainerDevnet, GenesisDocument, ManifestError, Peers,
        ValidatorPlace,
    },
    home::new_token,
    orchestrator::{
        genesis::genesis,
        ports::{self, NodePorts},
    },
    runner::key,
    topology::{Hosts, Name, Overrides, Plan, Topology},
    types::{ChainId, ChainIdText, Text},
};
use cowboy_host::files::{create_private_dir, entries, write_private};
use cowboy_lease::runner::container::{Choice, Engine};
use serde::Serialize;
use std::{
    env, fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

#[derive(Debug, Subcommand)]
pub enum Export {
    /// Write what each node needs to run in a process of its own
    ///
    /// genesis.json and peers.yaml are for all nodes; each validator and runner has a key file, and
    /// so has each account. Validators get free ports of this machine; to run one on another host,
    /// change its addresses in peers.yaml. Start them with `node run` and `runner start`.
    Nodes(Exporting),
    /// Write a compose.yaml with a container for each node
    ///
    /// The file and what it refers to are for `docker compose` or `podman-compose`. `devnet up`
    /// with `hosts: compose` writes and runs such files itself.
    Compose(Exporting),
    /// Write manifests for a Kubernetes cluster
    ///
    /// They are for `kubectl apply`: a StatefulSet of validators and one of runners, with all that
    /// these need. Every pod runs the topology's image. `devnet up` with `hosts: kubernetes` writes
    /// and applies such manifests itself.
    Kubernetes(Exporting),
}

/// What is exported, and where to.
#[derive(Debug, Args)]
pub struct Exporting {
    /// The folder to write; it must be empty or absent
    dir: PathBuf,
    /// The topology file [default: 4 validators, 4 runners]
    #[arg(long, short)]
    file: Option<PathBuf>,
}

/// The exported files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ExportedNodes {
    /// The folder.
    #[cfg_attr(test, schema(value_type = String))]
    dir: PathBuf,
    /// The devnet's name.
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    chain_id: ChainIdText,
    /// Number of validators.
    validators: usize,
    /// Number of runners.
    runners: usize,
}

impl Export {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let (Self::Nodes(exporting) | Self::Compose(exporting) | Self::Kubernetes(exporting)) =
            &self;
        // Only nodes in containers may say how they are run.
        let hosts = (!matches!(self, Self::Nodes(_))).then_some(Hosts::Compose);
        let (plan, document) = exporting.prepare(&Overrides { hosts, ..Overrides::default() })?;
        let dir = &exporting.dir;
        match self {
            Self::Nodes(_) => write_nodes(&plan, &document, dir)?,
            Self::Compose(_) => {
                let devnet = ContainerDevnet::of(&plan, &document);
                let dir = fs::canonicalize(dir)?;
                let nodes = dir.join("nodes");
                let site = ComposeSite::new(dir, nodes, &plan.name, &to_end(user())?);
                site.write(&devnet).map_err(|error| CliError::failed(error.to_string()))?;
            }
            Self::Kubernetes(_) => {
                let devnet = ContainerDevnet::of(&plan, &document);
                let site = ClusterSite::new(&devnet, dir.clone());
                site.write(&devnet).map_err(|error| match error {
                    ManifestError::Files(_) => CliError::failed(error.to_string()),
                    _ => CliError::new(Exit::Usage, error.to_string()),
                })?;
            }
        }
        let accounts = plan.accounts.iter().map(|account| &account.name);
        write_keys(&plan, &dir.join("accounts"), accounts)?;
        cx.ui.document(&ExportedNodes {
            dir: dir.clone(),
            devnet: plan.name.clone(),
            chain_id: Text(ChainId(document.genesis.chain_id())),
            validators: plan.validators.len(),
            runners: plan.runners.len(),
        })
    }
}

impl Exporting {
    /// Resolves the topology, and makes the folder.
    fn prepare(&self, overrides: &Overrides) -> Result<(Plan, GenesisDocument), CliError> {
        let plan = match &self.file {
            Some(file) => {
                let (topology, text) = Topology::load(file)?;
                topology.resolve(overrides, &text, &file.display().to_string())?
            }
            None => Topology::default().resolve(overrides, "", "command line")?,
        };
        if !entries(&self.dir)?.is_empty() {
            let what = format!("{} is not empty", self.dir.display());
            return Err(CliError::new(Exit::Conflict, what).hint("name a folder that is not there"));
        }
        create_private_dir(&self.dir)?;
        let document = GenesisDocument::of(&plan, genesis(&plan));
        Ok((plan, document))
    }
}

/// The options with which this machine's engine gives a container the rights of this user.
async fn user() -> Result<Vec<String>, CliError> {
    let mark = env::temp_dir();
    for choice in [Choice::Docker, Choice::Podman] {
        // Without an engine the files are for another machine.
        if let Ok(Some(engine)) = Engine::find(choice, &mark).await {
            return Ok(engine.user().to_vec());
        }
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    Ok(vec!["--user".to_owned(), format!("{}:{}", user.as_raw(), group.as_raw())])
}

fn write_nodes(plan: &Plan, document: &GenesisDocument, dir: &Path) -> Result<(), CliError> {
    write_private(&dir.join("genesis.json"), &document.to_json())?;
    write_private(&dir.join("peers.yaml"), &peers(plan)?.to_yaml())?;
    let validators = plan.validators.iter().map(|validator| &validator.name);
    write_keys(plan, &dir.join("validators"), validators)?;
    write_keys(plan, &dir.join("runners"), plan.runners.iter().map(|r| &r.name))?;
    write_private(&dir.join("api.token"), &format!("{}\n", new_token()))?;
    for runner in &plan.runners {
        let file = dir.join("runners").join(format!("{}.yaml", runner.name));
        let yaml = serde_yaml::to_string(&runner.executors).expect("settings are plain data");
        write_private(&file, &yaml)?;
    }
    Ok(())
}

/// The places of the plan's validators: free ports of the loopback.
fn peers(plan: &Plan) -> Result<Peers, CliError> {
    let names: Vec<_> = plan.validators.iter().map(|validator| validator.name.clone()).collect();
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let place = |(name, ports): (Name, NodePorts)| ValidatorPlace {
        name,
        p2p: local(ports.p2p).into(),
        quic: local(ports.quic).into(),
        api: Some(format!("http://{}", local(ports.api))),
        keys: None,
    };
    let ports = ports::of_nodes(names.len())
        .map_err(|error| CliError::new(Exit::Conflict, error.to_string()))?;
    let validators = names.into_iter().zip(ports).map(place).collect();
    Ok(Peers { validators, left: Vec::new() })
}

fn write_keys<'a>(
    plan: &Plan,
    folder: &Path,
    names: impl Iterator<Item = &'a Name>,
) -> Result<(), CliError> {
    create_private_dir(folder)?;
    for name in names {
        key::write(&folder.join(format!("{name}.key")), &plan.key(name))
            .map_err(|error| CliError::failed(error.to_string()))?;
    }
    Ok(())
}

impl Document for ExportedNodes {
    fn text(&self) -> String {
        fields(&[
            ("folder", self.dir.display().to_string()),
            ("devnet", self.devnet.to_string()),
            ("chain", self.chain_id.to_string()),
            ("nodes", format!("{} validators, {} runners", self.validators, self.runners)),
        ])
    }

    fn id(&self) -> String {
        self.dir.display().to_string()
    }
}
