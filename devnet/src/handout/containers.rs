//! What nodes in containers are given: their keys, certificates for their control APIs, and the
//! files of their chain.
//!
//! ```text
//! shared/            for all nodes: genesis.json, peers.yaml, api.token, ca.pem
//! validators/NAME/   for that validator: key, tls.crt, tls.key
//! runners/NAME/      for that runner: key, executors.yaml
//! ca.key             signs the certificates of validators that join
//! ```

use super::{
    GenesisDocument, JoinedKeys, Peers, ValidatorPlace,
    authority::{Authority, AuthorityError},
};
use crate::{
    executor,
    storage::Keep,
    topology::{Image, Name, Plan, ProcessPlan, Reserve},
};
use cowboy_engine::primitives::SecretKey;
use cowboy_host::{
    files::{create_private_dir, write_private},
    host_port::HostPort,
};
use serde::Serialize;
use std::{net::Ipv4Addr, path::Path};

/// The port in a validator's container that other validators connect to.
pub const P2P_PORT: u16 = 9_000;
/// The port that runners connect to, UDP.
pub const QUIC_PORT: u16 = 9_001;
/// The port of the control API, with TLS.
pub const API_PORT: u16 = 9_002;

/// Where a container has the files of all nodes, and its own.
pub(super) const SHARED: &str = "/etc/cowboyctl";
pub(super) const OWN: &str = "/run/cowboyctl";
/// The folder of devnets in a container.
pub(super) const HOME: &str = "/var/lib/cowboyctl";

/// A devnet whose nodes run in containers.
pub struct ContainerDevnet<'a> {
    pub document: &'a GenesisDocument,
    pub image: &'a Image,
    pub keep: Keep,
    pub reserve: Reserve,
    pub validators: Vec<ContainerValidator>,
    /// Validators of the genesis document that have left the devnet since.
    pub left: Vec<Name>,
    pub runners: Vec<ContainerRunner>,
}

/// A validator in a container.
pub struct ContainerValidator {
    pub name: Name,
    pub key: SecretKey,
    /// Its keys, if it has joined since genesis.
    pub keys: Option<JoinedKeys>,
    pub process: ProcessPlan,
    /// Whether it starts without its stored chain.
    pub afresh: bool,
}

/// A runner in a container.
#[derive(Clone)]
pub struct ContainerRunner {
    pub name: Name,
    pub key: SecretKey,
    pub executors: executor::Config,
    pub process: ProcessPlan,
}

impl<'a> ContainerDevnet<'a> {
    /// The devnet of a plan, as it begins.
    pub fn of(plan: &'a Plan, document: &'a GenesisDocument) -> Self {
        let validators = plan.validators.iter().map(|validator| ContainerValidator {
            name: validator.name.clone(),
            key: plan.key(&validator.name),
            keys: None,
            process: validator.process.clone(),
            afresh: false,
        });
        Self {
            document,
            image: &plan.image,
            keep: plan.keep,
            reserve: plan.reserve,
            validators: validators.collect(),
            left: Vec::new(),
            runners: plan.runners.iter().map(|runner| ContainerRunner::of(plan, runner)).collect(),
        }
    }

    /// Writes the files into a folder. Certificates that are there stay. `host` gives the host name
    /// of a validator.
    pub(super) fn write(
        &self,
        dir: &Path,
        host: impl Fn(&Name) -> String,
    ) -> Result<(), AuthorityError> {
        let shared = dir.join("shared");
        create_private_dir(&shared)?;
        write_private(&shared.join("genesis.json"), &self.document.to_json())?;
        write_private(&shared.join("peers.yaml"), &self.peers(&host).to_yaml())?;
        let token = shared.join("api.token");
        if !token.is_file() {
            write_private(&token, &format!("{}\n", crate::home::new_token()))?;
        }
        let authority = Authority::load_or_make(dir, &shared.join("ca.pem"))?;
        for validator in &self.validators {
            let own = dir.join("validators").join(validator.name.as_str());
            create_private_dir(&own)?;
            write_private(&own.join("key"), &key_file(&validator.key))?;
            let certificate = own.join("tls.crt");
            if !certificate.is_file() {
                let local = [Ipv4Addr::LOCALHOST.to_string(), "localhost".to_owned()];
                let names = [host(&validator.name)].into_iter().chain(local);
                let certified = authority.certify(names.collect())?;
                write_private(&own.join("tls.key"), &certified.key)?;
                write_private(&certificate, &certified.certificate)?;
            }
        }
        for runner in &self.runners {
            let own = dir.join("runners").join(runner.name.as_str());
            create_private_dir(&own)?;
            write_private(&own.join("key"), &key_file(&runner.key))?;
            write_private(&own.join("executors.yaml"), &yaml(&runner.executors))?;
        }
        Ok(())
    }

    pub(crate) fn peers(&self, host: impl Fn(&Name) -> String) -> Peers {
        let place = |validator: &ContainerValidator| {
            let host = host(&validator.name);
            ValidatorPlace {
                name: validator.name.clone(),
                p2p: HostPort::Name(host.clone(), P2P_PORT),
                quic: HostPort::Name(host.clone(), QUIC_PORT),
                api: Some(format!("https://{host}:{API_PORT}")),
                keys: validator.keys.clone(),
            }
        };
        Peers { validators: self.validators.iter().map(place).collect(), left: self.left.clone() }
    }

    /// The arguments of a validator's program.
    pub(super) fn arguments(&self, validator: &ContainerValidator) -> Vec<String> {
        let mut arguments = vec!["node".to_owned(), "run".to_owned()];
        let files = [
            ("--genesis", format!("{SHARED}/genesis.json")),
            ("--peers", format!("{SHARED}/peers.yaml")),
            ("--key-file", format!("{OWN}/key")),
            ("--tls-cert", format!("{OWN}/tls.crt")),
            ("--tls-key", format!("{OWN}/tls.key")),
            ("--api-token-file", format!("{SHARED}/api.token")),
            ("--keep", yaml(&self.keep).trim_end().to_owned()),
            ("--reserve", yaml(&self.reserve).trim_end().to_owned()),
        ];
        arguments.extend(files.into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
        arguments.extend(validator.afresh.then(|| "--resync".to_owned()));
        arguments
    }
}

impl ContainerRunner {
    pub fn of(plan: &Plan, runner: &crate::topology::RunnerPlan) -> Self {
        Self {
            name: runner.name.clone(),
            key: plan.key(&runner.name),
            executors: runner.executors.clone(),
            process: runner.process.clone(),
        }
    }

    /// The arguments of its program.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["runner".to_owned(), "start".to_owned()];
        let options = [
            ("--name", self.name.to_string()),
            ("--genesis", format!("{SHARED}/genesis.json")),
            ("--peers", format!("{SHARED}/peers.yaml")),
            ("--key-file", format!("{OWN}/key")),
            ("--executors", format!("{OWN}/executors.yaml")),
            ("--api-token-file", format!("{SHARED}/api.token")),
            ("--api-ca", format!("{SHARED}/ca.pem")),
        ];
        arguments
            .extend(options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
        arguments
    }
}

pub(super) fn key_file(key: &SecretKey) -> String {
    format!("{}\n", hex::encode(key.to_bytes()))
}

fn yaml(value: &impl Serialize) -> String {
    serde_yaml::to_string(value).expect("settings are plain data")
}
