//! `devnet export`: files that run a topology's nodes elsewhere.

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, fields},
};
use clap::{Args, Subcommand};
use cowboy_devnet::{
    handout::{GenesisDocument, Peers, ValidatorPlace},
    home::new_token,
    orchestrator::{
        genesis::genesis,
        ports::{self, NodePorts},
    },
    runner::key,
    topology::{Name, Overrides, Plan, Topology},
    types::{ChainId, ChainIdText, Text},
};
use cowboy_host::files::{create_private_dir, entries, write_private};
use serde::Serialize;
use std::{
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
    Nodes(Nodes),
}

/// `devnet export nodes`.
#[derive(Debug, Args)]
pub struct Nodes {
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
        match self {
            Self::Nodes(nodes) => nodes.run(cx),
        }
    }
}

impl Nodes {
    fn run(&self, cx: &Context) -> Result<(), CliError> {
        let plan = match &self.file {
            Some(file) => {
                let (topology, text) = Topology::load(file)?;
                topology.resolve(&Overrides::default(), &text, &file.display().to_string())?
            }
            None => Topology::default().resolve(&Overrides::default(), "", "command line")?,
        };
        if !entries(&self.dir)?.is_empty() {
            let what = format!("{} is not empty", self.dir.display());
            return Err(CliError::new(Exit::Conflict, what).hint("name a folder that is not there"));
        }
        let document = GenesisDocument::of(&plan, genesis(&plan));
        let exported = ExportedNodes {
            dir: self.dir.clone(),
            devnet: plan.name.clone(),
            chain_id: Text(ChainId(document.genesis.chain_id())),
            validators: plan.validators.len(),
            runners: plan.runners.len(),
        };
        create_private_dir(&self.dir)?;
        write_private(&self.dir.join("genesis.json"), &document.to_json())?;
        write_private(&self.dir.join("peers.yaml"), &peers(&plan)?.to_yaml())?;
        let validators = plan.validators.iter().map(|validator| &validator.name);
        write_keys(&plan, &self.dir.join("validators"), validators)?;
        write_keys(&plan, &self.dir.join("runners"), plan.runners.iter().map(|r| &r.name))?;
        write_keys(&plan, &self.dir.join("accounts"), plan.accounts.iter().map(|a| &a.name))?;
        write_private(&self.dir.join("api.token"), &format!("{}\n", new_token()))?;
        for runner in &plan.runners {
            let file = self.dir.join("runners").join(format!("{}.yaml", runner.name));
            let yaml = serde_yaml::to_string(&runner.executors).expect("settings are plain data");
            write_private(&file, &yaml)?;
        }
        cx.ui.document(&exported)
    }
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
