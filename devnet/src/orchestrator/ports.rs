//! Loopback ports: free when a devnet begins, and the same after every restart.
//!
//! The system gives ports from 32768 up to outgoing connections, so a listener there may find its
//! port taken by another program's connection. Listeners therefore use lower ports.

use super::home::HomeError;
use cowboy_host::files::{FileError, write_private};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
};

const RANGE: std::ops::Range<u16> = 12_000..32_000;
/// Number of tries before giving up; if all fail, the range is nearly full.
const ATTEMPTS: u32 = 2_000;

/// The transport protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// For the control API, the lease server and p2p.
    Tcp,
    Udp,
}

/// Why a port is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    #[error("port {port} is taken{}", .owner.as_ref().map(|o| format!(" by {o}")).unwrap_or_default())]
    Taken {
        port: u16,
        /// The process that listens there, for example `name (pid 12)`, if visible.
        owner: Option<String>,
    },
    #[error("port {port} cannot be listened on: {source}")]
    Refused { port: u16, source: io::Error },
    #[error("no free port between {} and {}", RANGE.start, RANGE.end)]
    NoneFree,
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl From<FileError> for PortError {
    fn from(error: FileError) -> Self {
        Self::Home(error.into())
    }
}

/// The ports of one devnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    pub api: u16,
    #[serde(default)]
    pub lease: u16,
    /// P2p ports by validator.
    pub p2p: BTreeMap<String, u16>,
    /// QUIC ports for runners, by validator.
    pub quic: BTreeMap<String, u16>,
}

impl Ports {
    /// Loads the ports in `file` and checks that they are free, or chooses free ones and saves
    /// them.
    ///
    /// `api` and `lease` are the topology's ports for the control API and the lease server.
    pub fn load_or_choose(
        file: &Path,
        validators: &[String],
        api: Option<u16>,
        lease: Option<u16>,
    ) -> Result<Self, PortError> {
        let kept: Option<Self> =
            fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
        let ports = match kept {
            Some(mut ports) if validators.iter().all(|v| ports.knows(v)) => {
                ports.api = api.unwrap_or(ports.api);
                ports.lease = lease.unwrap_or(ports.lease);
                if ports.lease == 0 {
                    // Saved by a version without a lease server.
                    ports.lease = free_port(Transport::Tcp, &mut ports.taken())?;
                }
                ports
            }
            _ => Self::choose(validators, api, lease)?,
        };
        ports.check(validators)?;
        ports.save(file)?;
        Ok(ports)
    }

    /// Chooses free ports for one more validator, unless its previous ones are still free, and
    /// saves them in `file`.
    pub fn add(&mut self, file: &Path, validator: &str) -> Result<(), PortError> {
        let mut taken = self.taken();
        let had = |ports: &BTreeMap<String, u16>, transport| {
            let port = ports.get(validator).copied();
            port.filter(|port| is_free(transport, local(*port)))
        };
        let p2p = had(&self.p2p, Transport::Tcp)
            .map_or_else(|| free_port(Transport::Tcp, &mut taken), Ok)?;
        let quic = had(&self.quic, Transport::Udp)
            .map_or_else(|| free_port(Transport::Udp, &mut taken), Ok)?;
        self.p2p.insert(validator.to_owned(), p2p);
        self.quic.insert(validator.to_owned(), quic);
        self.save(file)
    }

    fn taken(&self) -> BTreeSet<u16> {
        let nodes = self.p2p.values().chain(self.quic.values());
        nodes.chain([&self.api, &self.lease]).copied().collect()
    }

    fn save(&self, file: &Path) -> Result<(), PortError> {
        let json = serde_json::to_string_pretty(self).expect("ports are plain data");
        Ok(write_private(file, &format!("{json}\n"))?)
    }

    fn knows(&self, validator: &str) -> bool {
        self.p2p.contains_key(validator) && self.quic.contains_key(validator)
    }

    fn choose(
        validators: &[String],
        api: Option<u16>,
        lease: Option<u16>,
    ) -> Result<Self, PortError> {
        let mut taken = api.into_iter().chain(lease).collect();
        let mut free = |transport| free_port(transport, &mut taken);
        let mut ports = Self {
            api: api.map_or_else(|| free(Transport::Tcp), Ok)?,
            lease: lease.map_or_else(|| free(Transport::Tcp), Ok)?,
            ..Self::default()
        };
        for validator in validators {
            ports.p2p.insert(validator.clone(), free(Transport::Tcp)?);
            ports.quic.insert(validator.clone(), free(Transport::Udp)?);
        }
        Ok(ports)
    }

    fn check(&self, validators: &[String]) -> Result<(), PortError> {
        check(Transport::Tcp, self.api)?;
        check(Transport::Tcp, self.lease)?;
        validators.iter().try_for_each(|validator| {
            check(Transport::Tcp, self.p2p[validator])?;
            check(Transport::Udp, self.quic[validator])
        })
    }
}

/// The ports of a validator in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePorts {
    pub api: u16,
    pub p2p: u16,
    pub quic: u16,
}

/// Free ports for `count` validators in processes of their own.
pub fn of_nodes(count: usize) -> Result<Vec<NodePorts>, PortError> {
    let mut taken = BTreeSet::new();
    let mut free = |transport| free_port(transport, &mut taken);
    let mut ports = || {
        let (api, p2p) = (free(Transport::Tcp)?, free(Transport::Tcp)?);
        Ok(NodePorts { api, p2p, quic: free(Transport::Udp)? })
    };
    (0..count).map(|_| ports()).collect()
}

fn free_port(transport: Transport, taken: &mut BTreeSet<u16>) -> Result<u16, PortError> {
    let mut rng = rand::rng();
    for _ in 0..ATTEMPTS {
        let port = rng.random_range(RANGE);
        if is_free(transport, local(port)) && taken.insert(port) {
            return Ok(port);
        }
    }
    Err(PortError::NoneFree)
}

const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Checks that `port` of the loopback can be listened on; the error names the owner of a used one.
pub fn check(transport: Transport, port: u16) -> Result<(), PortError> {
    bind(transport, local(port)).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => PortError::Taken { port, owner: owner(transport, port) },
        _ => PortError::Refused { port, source },
    })
}

/// Whether `address` can be listened on.
pub(super) fn is_free(transport: Transport, address: SocketAddr) -> bool {
    bind(transport, address).is_ok()
}

fn bind(transport: Transport, address: SocketAddr) -> io::Result<()> {
    match transport {
        Transport::Tcp => TcpListener::bind(address).map(drop),
        Transport::Udp => UdpSocket::bind(address).map(drop),
    }
}

/// The process that holds `port`, from the kernel's tables; `None` if they are unreadable or the
/// process belongs to another user.
fn owner(transport: Transport, port: u16) -> Option<String> {
    let table = match transport {
        Transport::Tcp => "/proc/net/tcp",
        Transport::Udp => "/proc/net/udp",
    };
    let inode = inode(&fs::read_to_string(table).ok()?, port)?;
    let link = format!("socket:[{inode}]");
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let holds = fs::read_dir(process.path().join("fd")).ok()?.flatten().any(|fd| {
            fs::read_link(fd.path()).is_ok_and(|target| target.as_os_str() == link.as_str())
        });
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        holds.then(|| format!("{} (pid {pid})", name.trim()))
    })
}

/// The inode of the socket with this local port, in a table of the form of `/proc/net/tcp`.
fn inode(table: &str, port: u16) -> Option<u64> {
    let local = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(1).filter(|address| address.ends_with(&local))?;
        fields.nth(7)?.parse().ok().filter(|inode| *inode != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_kept_and_differ() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ports.json");
        let names = ["a".to_owned(), "b".to_owned()];
        let first = Ports::load_or_choose(&file, &names, None, None).unwrap();
        let all: BTreeSet<_> =
            first.p2p.values().chain(first.quic.values()).chain([&first.api]).collect();
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|port| RANGE.contains(port)));
        assert_eq!(Ports::load_or_choose(&file, &names, None, None).unwrap(), first);
    }

    #[test]
    fn an_occupied_port_is_named_with_its_owner() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = check(Transport::Tcp, port).unwrap_err();
        let pid = std::process::id();
        let owner = match &error {
            PortError::Taken { port: taken, owner: Some(owner) } if *taken == port => owner,
            other => panic!("{other}"),
        };
        assert!(owner.ends_with(&format!("(pid {pid})")), "{owner}");
    }
}
