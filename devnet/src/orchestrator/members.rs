//! The validators that a devnet's process runs: those of its topology, changed by joins and leaves
//! since.
//!
//! Running and voting are separate. A validator that joins follows the chain, and votes once the
//! chain's committee includes it. One that leaves the committee keeps following until it leaves the
//! devnet.

use super::{
    home::HomeError,
    ports::{PortError, Ports},
};
use crate::{
    consensus::network::JOINING,
    runner::ValidatorAddress,
    topology::{Name, Plan},
    validator::keys::ValidatorKeys,
};
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use cowboy_host::files::{FileError, write_private};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};
use tokio::sync::watch;

/// Maximum number of validators of a devnet's process: a full committee, and as many followers.
const MOST: usize = 2 * cowboy_engine::chain::MAX_VALIDATORS;

/// Changes since the topology, in the order in which they were made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Changes {
    joined: Vec<Name>,
    left: Vec<Name>,
}

#[derive(Clone)]
pub(super) struct Member {
    pub(super) name: Name,
    pub(super) keys: ValidatorKeys,
    pub(super) p2p: SocketAddr,
    pub(super) quic: SocketAddr,
}

/// Why a validator cannot join or leave.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error("another node or account of the devnet is named `{0}`")]
    Taken(String),
    #[error("there is no validator `{0}`")]
    Unknown(String),
    #[error("validator `{0}` is in the committee of this epoch or the next")]
    Serves(String),
    #[error("{JOINING} validators have joined since the devnet was started: restart it first")]
    NoRoom,
    #[error("a devnet runs at most {MOST} validators")]
    TooMany,
    #[error(transparent)]
    Ports(#[from] PortError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("validator `{name}`: {reason}")]
    Node { name: String, reason: String },
}

impl From<FileError> for MemberError {
    fn from(error: FileError) -> Self {
        Self::Home(error.into())
    }
}

pub(super) struct Members {
    plan: Plan,
    file: PathBuf,
    changes: Changes,
    ports: Ports,
    members: Vec<Member>,
    /// Number of validators that may still join while this process runs.
    room: usize,
    addresses: watch::Sender<Vec<(PublicKey, u16)>>,
}

impl Members {
    pub(super) fn load(plan: &Plan, data: &Path) -> Result<Self, PortError> {
        let file = data.join("validators.json");
        let changes: Changes = fs::read_to_string(&file)
            .ok()
            .map_or_else(Changes::default, |text| serde_json::from_str(&text).unwrap_or_default());
        let of_plan = plan.validators.iter().map(|v| &v.name);
        let names: Vec<Name> = of_plan
            .chain(&changes.joined)
            .filter(|name| !changes.left.contains(name))
            .cloned()
            .collect();
        let texts: Vec<_> = names.iter().map(Name::to_string).collect();
        let ports = Ports::load_or_choose(
            &data.join("ports.json"),
            &texts,
            plan.api_port,
            plan.lease_port,
        )?;
        let mut all = Self {
            plan: plan.clone(),
            file,
            changes,
            ports,
            members: Vec::new(),
            room: JOINING,
            addresses: watch::Sender::new(Vec::new()),
        };
        all.members = names.iter().map(|name| all.member(name)).collect();
        all.tell();
        Ok(all)
    }

    fn member(&self, name: &Name) -> Member {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Member {
            name: name.clone(),
            keys: ValidatorKeys::from(self.plan.key(name)),
            p2p: local(self.ports.p2p[name.as_str()]),
            quic: local(self.ports.quic[name.as_str()]),
        }
    }

    pub(super) const fn lease_port(&self) -> u16 {
        self.ports.lease
    }

    pub(super) const fn api_port(&self) -> u16 {
        self.ports.api
    }

    /// All members: the topology's in its order, then the others as they joined.
    pub(super) fn all(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn get(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name.as_str() == name)
    }

    /// The consensus key and port of each member, updated as members come and go.
    pub(super) fn peers(&self) -> watch::Receiver<Vec<(PublicKey, u16)>> {
        self.addresses.subscribe()
    }

    pub(super) fn for_runners(&self) -> Vec<ValidatorAddress> {
        let address = |member: &Member| ValidatorAddress {
            key: member.keys.identity.public_key(),
            address: member.quic,
        };
        self.members.iter().map(address).collect()
    }

    /// Adds a member of this name, or of the first free name `validator-N`.
    pub(super) fn join(&mut self, name: Option<Name>) -> Result<Member, MemberError> {
        let name = match name {
            Some(name) if self.is_taken(&name) => {
                return Err(MemberError::Taken(name.to_string()));
            }
            Some(name) => name,
            None => (0..usize::MAX)
                .map(|index| Name::numbered("validator", index))
                .find(|name| !self.is_taken(name))
                .expect("names do not run out"),
        };
        if self.members.len() >= MOST {
            return Err(MemberError::TooMany);
        }
        self.room = self.room.checked_sub(1).ok_or(MemberError::NoRoom)?;
        self.ports.add(&self.file.with_file_name("ports.json"), name.as_str())?;
        self.changes.left.retain(|left| *left != name);
        if !self.plan.validators.iter().any(|v| v.name == name) {
            self.changes.joined.retain(|joined| *joined != name);
            self.changes.joined.push(name.clone());
        }
        self.save()?;
        let member = self.member(&name);
        self.members.push(member.clone());
        self.tell();
        Ok(member)
    }

    /// Gives a stopped member new ports in place of the ones that are in use.
    pub(super) fn relocate(&mut self, name: &Name) -> Result<Member, MemberError> {
        self.ports.add(&self.file.with_file_name("ports.json"), name.as_str())?;
        let moved = self.member(name);
        for member in self.members.iter_mut().filter(|member| member.name == *name) {
            *member = moved.clone();
        }
        self.tell();
        Ok(moved)
    }

    /// Its chain stays on disk.
    pub(super) fn leave(&mut self, name: &Name) -> Result<(), MemberError> {
        self.members.retain(|member| member.name != *name);
        self.changes.left.push(name.clone());
        self.save()?;
        self.tell();
        Ok(())
    }

    fn is_taken(&self, name: &Name) -> bool {
        let plan = &self.plan;
        self.get(name.as_str()).is_some()
            || plan.runners.iter().any(|runner| runner.name == *name)
            || plan.accounts.iter().any(|account| account.name == *name)
    }

    fn save(&self) -> Result<(), MemberError> {
        let json = serde_json::to_string_pretty(&self.changes).expect("names are plain data");
        Ok(write_private(&self.file, &format!("{json}\n"))?)
    }

    fn tell(&self) {
        let address = |member: &Member| (member.keys.consensus.public_key(), member.p2p.port());
        self.addresses.send_replace(self.members.iter().map(address).collect());
    }
}
