//! A devnet as manifests for `kubectl apply`: a StatefulSet of validators and one of runners, with
//! what they are given as Secrets and ConfigMaps.
//!
//! All names begin with the devnet's. Pods run without rights and without a service account. A
//! secret key is copied into memory by an init container, because a volume's file cannot belong to
//! the node's user alone.
//!
//! In the pods of a devnet that a process follows, a shell starts the node whenever that process
//! asks for it, and tells in the log of the node's start and end ([`RunMark`]).

mod marks;
mod set;

pub use marks::RunMark;

use self::set::{NodeSet, ObjectScope};
use super::{
    authority::{Authority, AuthorityError},
    containers::{ContainerDevnet, key_file},
    manifest,
};
use crate::topology::Name;
use cowboy_host::files::{self, FileError, create_private_dir, write_private};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use std::{collections::BTreeMap, net::Ipv4Addr, path::PathBuf};

/// The label of everything that a devnet's process has made, by which it finds and removes it.
pub const OWNER: &str = "cowboyctl-owner";

/// The most that a ConfigMap or a Secret may hold, in bytes.
const MAX_MAP_BYTES: usize = 1 << 20;
/// The certificate of the authority that signs those of the control APIs, in a folder of keys.
const AUTHORITY_FILE: &str = "ca.pem";
const TOKEN_FILE: &str = "api.token";

/// Why there are no manifests of a devnet.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error(transparent)]
    Files(#[from] AuthorityError),
    #[error(
        "{what}: {bytes} bytes, of which an object of Kubernetes holds at most {MAX_MAP_BYTES}"
    )]
    TooLarge { what: &'static str, bytes: usize },
    #[error("`{node}` has {field}, which a pod does not have")]
    NotForPods { node: Name, field: &'static str },
    #[error("`{one}` and `{other}` are run differently, but all pods of a set are alike")]
    Unlike { one: Name, other: Name },
}

impl From<FileError> for ManifestError {
    fn from(error: FileError) -> Self {
        Self::Files(error.into())
    }
}

/// Where a devnet's pods are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSite {
    /// The folder of the manifests.
    pub dir: PathBuf,
    /// The devnet's name.
    pub devnet: Name,
    /// The validators and the runners by the number of their pod. One that has left keeps its
    /// number.
    pub validators: Vec<Name>,
    pub runners: Vec<Name>,
    /// Whether a devnet's process starts the nodes and follows them.
    pub supervision: Option<Supervision>,
}

/// How a devnet's process knows its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervision {
    /// The value of the label [`OWNER`].
    pub owner: String,
    /// The folder with the API's token, and the authority of its certificates.
    pub keys: PathBuf,
}

/// What is secret about a devnet's control APIs.
struct ApiSecrets {
    authority: Authority,
    token: String,
}

impl Supervision {
    /// The certificate that these APIs are verified with, PEM.
    pub fn authority(&self) -> Result<Vec<u8>, FileError> {
        let pem = files::read_if_there(&self.keys.join(AUTHORITY_FILE))?;
        Ok(pem.unwrap_or_default().into_bytes())
    }

    fn secrets(&self) -> Result<ApiSecrets, AuthorityError> {
        create_private_dir(&self.keys)?;
        let authority = Authority::load_or_make(&self.keys, &self.keys.join(AUTHORITY_FILE))?;
        let path = self.keys.join(TOKEN_FILE);
        let token = match files::read_if_there(&path)? {
            Some(token) => token,
            None => crate::home::new_token(),
        };
        write_private(&path, &token)?;
        Ok(ApiSecrets { authority, token })
    }
}

impl ClusterSite {
    /// A site for the nodes of a devnet, which no process follows.
    pub fn new(devnet: &ContainerDevnet<'_>, dir: PathBuf) -> Self {
        Self {
            dir,
            devnet: devnet.document.name.clone(),
            validators: devnet.validators.iter().map(|one| one.name.clone()).collect(),
            runners: devnet.runners.iter().map(|one| one.name.clone()).collect(),
            supervision: None,
        }
    }

    /// The name of a node's pod.
    pub fn pod(&self, node: &Name) -> Option<String> {
        let place = |nodes: &[Name]| nodes.iter().position(|one| one == node);
        let validator = place(&self.validators).map(|at| self.name("validator", at));
        validator.or_else(|| place(&self.runners).map(|at| self.name("runner", at)))
    }

    fn name(&self, kind: &str, at: usize) -> String {
        format!("{}-{kind}-{at}", self.devnet)
    }

    /// The host name of a validator's pod among the pods.
    pub fn host(&self, validator: &Name) -> Option<String> {
        self.pod(validator).map(|pod| format!("{pod}.{}-validator", self.devnet))
    }

    /// Writes the manifests, one file for each kind of object. Without a process that follows the
    /// nodes, the certificates are signed by an authority whose key is not kept.
    pub fn write(&self, devnet: &ContainerDevnet<'_>) -> Result<(), ManifestError> {
        let name = self.devnet.as_str();
        let owner = self.supervision.as_ref().map(|supervision| supervision.owner.as_str());
        let scope = ObjectScope { devnet: name, owner };
        let of_validators = devnet.validators.iter().map(|node| (&node.name, &node.process));
        let count = self.validators.len();
        let validators = NodeSet::of(devnet, &scope, "validator", count, of_validators.collect())?;
        let of_runners = devnet.runners.iter().map(|node| (&node.name, &node.process));
        let count = self.runners.len();
        let runners = NodeSet::of(devnet, &scope, "runner", count, of_runners.collect())?;

        let ApiSecrets { authority, token } = match &self.supervision {
            Some(supervision) => supervision.secrets()?,
            None => ApiSecrets { authority: Authority::new()?, token: crate::home::new_token() },
        };
        let pod = |node: &Name| self.pod(node).unwrap_or_default();
        let host = |node: &Name| self.host(node).unwrap_or_default();
        let chain = BTreeMap::from([
            ("genesis.json".to_owned(), devnet.document.to_json()),
            ("peers.yaml".to_owned(), devnet.peers(host).to_yaml()),
            ("ca.pem".to_owned(), authority.certificate().to_owned()),
        ]);
        let mut keys = BTreeMap::new();
        for validator in &devnet.validators {
            let local = [Ipv4Addr::LOCALHOST.to_string(), "localhost".to_owned()];
            let names = [host(&validator.name), format!("{name}-validator")].into_iter();
            let certified = authority.certify(names.chain(local).collect())?;
            let pod = pod(&validator.name);
            keys.insert(format!("{pod}.key"), key_file(&validator.key));
            keys.insert(format!("{pod}.tls.key"), certified.key);
            keys.insert(format!("{pod}.tls.crt"), certified.certificate);
        }
        let of_runners = devnet.runners.iter();
        let of_runners =
            of_runners.map(|one| (format!("{}.key", pod(&one.name)), key_file(&one.key)));
        let executors = devnet.runners.iter().map(|runner| {
            let yaml = serde_yaml::to_string(&runner.executors).expect("settings are plain data");
            (format!("{}.yaml", pod(&runner.name)), yaml)
        });
        let token = BTreeMap::from([("api.token".to_owned(), format!("{token}\n"))]);

        create_private_dir(&self.dir.join("monitoring"))?;
        let config = |what, data: BTreeMap<String, String>, about| -> Result<_, ManifestError> {
            fits(about, &data)?;
            let metadata = scope.meta(what);
            Ok(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })
        };
        let secret = |what, data: BTreeMap<String, String>, about| -> Result<_, ManifestError> {
            fits(about, &data)?;
            let metadata = scope.meta(what);
            Ok(Secret { metadata, string_data: Some(data), ..Secret::default() })
        };
        let write = |file: &str, objects: &[String]| {
            let about = match self.supervision {
                Some(_) => "It is written and applied by `cowboyctl devnet up`.",
                None => "kubectl apply -f .",
            };
            let text = format!("# Devnet `{name}`. {about}\n{}", objects.join("---\n"));
            write_private(&self.dir.join(file), &text)
        };
        let executors = config("executors", executors.collect(), "the runners' executors")?;
        write(
            "10-config.yaml",
            &[
                manifest::yaml(&config("chain", chain, "the genesis document and the peers")?),
                manifest::yaml(&executors),
            ],
        )?;
        write(
            "20-secrets.yaml",
            &[
                manifest::yaml(&secret("api", token, "the API's token")?),
                manifest::yaml(&secret("validator", keys, "the validators' keys")?),
                manifest::yaml(&secret("runner", of_runners.collect(), "the runners' keys")?),
            ],
        )?;
        write(
            "30-services.yaml",
            &[validators.service(), runners.service()].map(|service| manifest::yaml(&service)),
        )?;
        write("40-validators.yaml", &[manifest::yaml(&validators.set())])?;
        write("50-runners.yaml", &[manifest::yaml(&runners.set())])?;
        write("60-disruption.yaml", &[manifest::yaml(&validators.disruption())])?;
        let policies = [validators.network(), runners.network()];
        write("70-network.yaml", &policies.map(|policy| manifest::yaml(&policy)))?;
        write("monitoring/servicemonitor.yaml", &[manifest::yaml(&validators.monitor())])?;
        Ok(())
    }
}

fn fits(what: &'static str, data: &BTreeMap<String, String>) -> Result<(), ManifestError> {
    let bytes = data.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_MAP_BYTES { Err(ManifestError::TooLarge { what, bytes }) } else { Ok(()) }
}
