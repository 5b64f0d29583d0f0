//! The validators that a process runs. A devnet's are those of its topology, changed by joins and
//! leaves since; a node's process has one.
//!
//! Running and voting are separate. A validator that joins follows the chain, and votes once the
//! chain's committee includes it. One that leaves the committee keeps following until it leaves the
//! devnet.

use super::{
    home::HomeError,
    ports::{PortError, Ports},
};
use crate::{
    consensus::network::{JOINING, Peer},
    runner::ValidatorAddress,
    topology::{Name, Plan},
    validator::keys::ValidatorKeys,
};
use commonware_cryptography::Signer as _;
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
    /// The address that it listens on for other validators.
    pub(super) p2p: SocketAddr,
    /// The address that it listens on for runners.
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
    #[error("this process runs one validator, which neither joins nor leaves")]
    OneOnly,
    #[error("{address} is in use")]
    InUse { address: SocketAddr },
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
    /// `None` in a node's process.
    roster: Option<Roster>,
    members: Vec<Member>,
    peers: watch::Sender<Vec<Peer>>,
}

/// The validators of a devnet, as its files have them.
struct Roster {
    plan: Plan,
    file: PathBuf,
    changes: Changes,
    ports: Ports,
    /// Number of validators that may still join while this process runs.
    room: usize,
}

impl Roster {
    fn load(plan: &Plan, data: &Path) -> Result<(Self, Vec<Member>), PortError> {
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
        let roster = Self { plan: plan.clone(), file, changes, ports, room: JOINING };
        let members = names.iter().map(|name| roster.member(name)).collect();
        Ok((roster, members))
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

    fn save(&self) -> Result<(), MemberError> {
        let json = serde_json::to_string_pretty(&self.changes).expect("names are plain data");
        Ok(write_private(&self.file, &format!("{json}\n"))?)
    }

    fn ports_file(&self) -> PathBuf {
        self.file.with_file_name("ports.json")
    }

    fn has(&self, name: &Name) -> bool {
        let plan = &self.plan;
        plan.runners.iter().any(|runner| runner.name == *name)
            || plan.accounts.iter().any(|account| account.name == *name)
    }
}

impl Members {
    /// The validators of a devnet, and the ports of its control API and its lease server.
    pub(super) fn load(plan: &Plan, data: &Path) -> Result<(Self, [u16; 2]), PortError> {
        let (roster, members) = Roster::load(plan, data)?;
        let ports = [roster.ports.api, roster.ports.lease];
        let all = Self { roster: Some(roster), members, peers: watch::Sender::new(Vec::new()) };
        all.tell();
        Ok((all, ports))
    }

    /// The one validator of a node's process. `peers` has all validators of the chain, and changes
    /// when one moves.
    pub(super) fn one(member: Member, peers: watch::Sender<Vec<Peer>>) -> Self {
        Self { roster: None, members: vec![member], peers }
    }

    /// All members: the topology's in its order, then the others as they joined.
    pub(super) fn all(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn get(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name.as_str() == name)
    }

    /// The validators that a member connects to, updated as they come, go and move.
    pub(super) fn peers(&self) -> watch::Receiver<Vec<Peer>> {
        self.peers.subscribe()
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
        let Self { roster, members, .. } = self;
        let roster = roster.as_mut().ok_or(MemberError::OneOnly)?;
        let is_taken =
            |name: &Name| roster.has(name) || members.iter().any(|member| member.name == *name);
        let name = match name {
            Some(name) if is_taken(&name) => return Err(MemberError::Taken(name.to_string())),
            Some(name) => name,
            None => (0..usize::MAX)
                .map(|index| Name::numbered("validator", index))
                .find(|name| !is_taken(name))
                .expect("names do not run out"),
        };
        if members.len() >= MOST {
            return Err(MemberError::TooMany);
        }
        roster.room = roster.room.checked_sub(1).ok_or(MemberError::NoRoom)?;
        roster.ports.add(&roster.ports_file(), name.as_str())?;
        roster.changes.left.retain(|left| *left != name);
        if !roster.plan.validators.iter().any(|v| v.name == name) {
            roster.changes.joined.retain(|joined| *joined != name);
            roster.changes.joined.push(name.clone());
        }
        roster.save()?;
        let member = roster.member(&name);
        members.push(member.clone());
        self.tell();
        Ok(member)
    }

    /// Gives a stopped member new ports in place of the ones that are in use. The addresses of a
    /// node's process are those that its operator gave.
    pub(super) fn relocate(&mut self, member: &Member) -> Result<Member, MemberError> {
        let Some(roster) = &mut self.roster else {
            return Err(MemberError::InUse { address: member.p2p });
        };
        roster.ports.add(&roster.ports_file(), member.name.as_str())?;
        let moved = roster.member(&member.name);
        for known in self.members.iter_mut().filter(|known| known.name == member.name) {
            *known = moved.clone();
        }
        self.tell();
        Ok(moved)
    }

    /// Its chain stays on disk.
    pub(super) fn leave(&mut self, name: &Name) -> Result<(), MemberError> {
        let roster = self.roster.as_mut().ok_or(MemberError::OneOnly)?;
        roster.changes.left.push(name.clone());
        roster.save()?;
        self.members.retain(|member| member.name != *name);
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        let peer = |member: &Member| Peer {
            key: member.keys.consensus.public_key(),
            address: Some(member.p2p),
        };
        self.peers.send_replace(self.members.iter().map(peer).collect());
    }
}
