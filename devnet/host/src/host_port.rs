//! A host and a port: `127.0.0.1:9000`, `[::1]:9000` or `node-0.example:9000`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    fmt, io,
    net::{SocketAddr, ToSocketAddrs as _},
    str::FromStr,
    thread,
    time::Duration,
};
use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};

/// The longest name of a host, by RFC 1035.
const LONGEST_NAME: usize = 253;
/// The longest part of a name between two dots.
const LONGEST_LABEL: usize = 63;
const LOOKUP: Duration = Duration::from_secs(5);
/// Maximum number of lookups at a time.
const LOOKUPS: usize = 128;

/// The place of a listener on a network, by address or by the name of its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPort {
    Address(SocketAddr),
    Name(String, u16),
}

/// Why a text is not a host and a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPortError {
    #[error("a port is missing: expected HOST:PORT, such as 127.0.0.1:9000 or node-0.example:9000")]
    NoPort,
    #[error("`{0}` is not a port: expected a number from 1 to 65535")]
    Port(String),
    #[error("`{0}` is not the name of a host: expected letters, digits, `-` and `.`")]
    Host(String),
}

impl HostPort {
    /// The address that the name has now, or the address itself.
    pub async fn resolve(&self) -> io::Result<SocketAddr> {
        let (name, port) = match self {
            Self::Address(address) => return Ok(*address),
            Self::Name(name, port) => (name.as_str(), *port),
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer about its name");
        let mut found = timeout(LOOKUP, look_up(name, port)).await.map_err(late)??;
        // The same choice each time, so that a name with several addresses does not seem to move.
        found.sort_by_key(|address| (address.is_ipv6(), *address));
        let none = || io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        found.first().copied().ok_or_else(none)
    }

    pub const fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(_, port) => *port,
        }
    }
}

/// Asks the system for the addresses of a host. That may take many seconds and cannot be ended, so
/// it has a thread of its own: a runtime would wait for it when it ends.
pub async fn look_up(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    static ROOM: Semaphore = Semaphore::const_new(LOOKUPS);
    let place = ROOM.acquire().await.map_err(io::Error::other)?;
    let (told, answer) = oneshot::channel();
    let name = name.to_owned();
    thread::Builder::new().name("lookup".to_owned()).spawn(move || {
        let found = (name.as_str(), port).to_socket_addrs();
        // The one who asked may no longer wait.
        let _ = told.send(found.map(Iterator::collect));
        drop(place);
    })?;
    answer.await.map_err(io::Error::other)?
}

impl From<SocketAddr> for HostPort {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

fn is_name(host: &str) -> bool {
    let label = |label: &str| {
        let inside = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.chars().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= LONGEST_NAME
        && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
        // Numbers with dots are a mistyped address.
        && !host.chars().all(|char| char.is_ascii_digit() || char == '.')
}

impl FromStr for HostPort {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(HostPortError::Port("0".to_owned())),
                _ => Ok(Self::Address(address)),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or(HostPortError::NoPort)?;
        let shown = |text: &str| text.chars().take(80).collect();
        let number = port.parse().ok().filter(|number| *number != 0 && !port.starts_with('+'));
        let number = number.ok_or_else(|| HostPortError::Port(shown(port)))?;
        if !is_name(host) {
            return Err(HostPortError::Host(shown(host)));
        }
        Ok(Self::Name(host.to_owned(), number))
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl Serialize for HostPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_read_as_they_are_written() {
        for text in ["127.0.0.1:9000", "[::1]:1", "node-0.example:65535", "a_b.c-d:1", "x.:7"] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_is_wrong() {
        let check = |text: &str, says: &str| {
            let error = text.parse::<HostPort>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        };
        check("", "a port is missing");
        check("localhost", "a port is missing");
        check("localhost:", "`` is not a port");
        check("localhost:0", "`0` is not a port");
        check("127.0.0.1:x", "`x` is not a port");
        check("127.0.0.1:0", "`0` is not a port");
        check("localhost:65536", "`65536` is not a port");
        check("localhost:+5", "`+5` is not a port");
        check("::1:9000", "`::1` is not the name");
        check("127.0.0:9000", "`127.0.0` is not the name");
        check("http://a:9000", "is not the name of a host");
        check("a..b:9000", "`a..b` is not the name");
        check("-a:9000", "`-a` is not the name");
        check(&format!("{}:1", "a".repeat(64)), "is not the name");
        check(&format!("{}:1", ["a"; 128].join(".")), "is not the name");
    }

    #[tokio::test]
    async fn an_address_is_its_own_and_localhost_has_one() {
        let address: SocketAddr = "127.0.0.1:9000".parse().unwrap();
        assert_eq!(HostPort::from(address).resolve().await.unwrap(), address);
        let named: HostPort = "localhost:9000".parse().unwrap();
        let found = named.resolve().await.unwrap();
        assert!(found.ip().is_loopback() && found.port() == 9000, "{found}");
    }
}
