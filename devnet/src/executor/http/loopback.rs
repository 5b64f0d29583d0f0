//! Keeps jobs' requests off the runner's own machine.
//!
//! The control API listens on the loopback, and so may other services that trust every local
//! client. A job's request does not go there unless the runner's operator allows it
//! (`http.allow_loopback`, [`config`](crate::executor::config)).
//!
//! An address in a URL or a redirect is checked before it is used. A name's addresses are checked
//! when it is resolved for a connection, and the connection uses a checked address. What the name
//! resolves to at another time does not matter.

use crate::executor::ExecutorError;
use cowboy_host::{host_port::look_up, spelling::Quoted};
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use std::{
    error::Error,
    iter,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is on the loopback", Quoted(.0))]
pub(super) struct Refused(String);

impl Refused {
    /// The refusal that caused an error, if any.
    pub(super) fn behind<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        iter::successors(Some(error), |&error| error.source())
            .find_map(|error| error.downcast_ref::<Self>())
    }
}

impl From<Refused> for ExecutorError {
    fn from(Refused(host): Refused) -> Self {
        Self::Loopback { host }
    }
}

/// Whether this address leads to the machine itself: `127.0.0.0/8` and `::1`, and `0.0.0.0/8` and
/// `::`, which the system treats like them. IPv4 addresses embedded in IPv6 count too.
fn is_loopback(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(address) => embedded(address),
    };
    address.is_some_and(|address| address.is_loopback() || address.octets()[0] == 0)
}

/// The IPv4 address embedded in an IPv6 address. The first form also matches `::` and `::1`, as
/// `0.0.0.0` and `0.0.0.1`.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    // IPv4-compatible and -mapped (RFC 4291 section 2.5.5), IPv4-translated (RFC 2765 section 2.1),
    // NAT64 (RFC 6052 section 2.1) and its local prefix (RFC 8215), 6to4 (RFC 3056 section 2).
    let ([0, 0, 0, 0, 0, 0 | 0xffff, high, low]
    | [0, 0, 0, 0, 0xffff, 0, high, low]
    | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
    | [0x64, 0xff9b, 1, _, _, _, high, low]
    | [0x2002, high, low, ..]) = address.segments()
    else {
        return None;
    };
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

/// Why a URL is refused; `None` if the URL itself is allowed. Names are checked by [`Resolver`].
pub(super) fn refused(url: &Url) -> Option<Refused> {
    let host = url.host_str()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address: IpAddr = bare.parse().ok()?;
    is_loopback(address).then(|| Refused(host.to_owned()))
}

/// The same policy, except that it refuses redirects to the loopback.
pub(super) fn guarded(policy: Policy) -> Policy {
    Policy::custom(move |attempt| match refused(attempt.url()) {
        Some(refused) => attempt.error(refused),
        None => policy.redirect(attempt),
    })
}

/// The system's resolver without loopback addresses.
pub(super) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = look_up(name.as_str(), 0).await?;
            Ok(remote(name.as_str(), found)?)
        })
    }
}

fn remote(name: &str, found: Vec<SocketAddr>) -> Result<Addrs, Refused> {
    let (local, remote): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|address| is_loopback(address.ip()));
    match remote.is_empty() && !local.is_empty() {
        true => Err(Refused(name.to_owned())),
        false => Ok(Box::new(remote.into_iter())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_to_the_machine_itself_are_refused_however_they_are_written() {
        let check = |url: &str, host: Option<&str>| {
            let refused = refused(&Url::parse(url).unwrap());
            assert_eq!(refused, host.map(|host| Refused(host.to_owned())), "{url}");
        };
        check("http://127.0.0.1:8000/", Some("127.0.0.1"));
        check("http://127.9.9.9/", Some("127.9.9.9"));
        check("http://127.1/", Some("127.0.0.1"));
        check("http://2130706433/", Some("127.0.0.1"));
        check("http://0x7f.0.0.1./", Some("127.0.0.1"));
        check("http://0.0.0.0/", Some("0.0.0.0"));
        check("http://0/", Some("0.0.0.0"));
        check("http://0.0.0.7/", Some("0.0.0.7"));
        check("https://[::1]/", Some("[::1]"));
        check("http://[::]:1/", Some("[::]"));
        check("http://[::ffff:127.0.0.1]/", Some("[::ffff:7f00:1]"));
        check("http://[::ffff:0.0.0.0]/", Some("[::ffff:0:0]"));
        check("http://[::127.0.0.1]/", Some("[::7f00:1]"));
        check("http://[::ffff:0:127.0.0.1]/", Some("[::ffff:0:7f00:1]"));
        check("http://[64:ff9b::7f00:1]/", Some("[64:ff9b::7f00:1]"));
        check("http://[64:ff9b::0.0.0.0]/", Some("[64:ff9b::]"));
        check("http://[64:ff9b:1::127.9.9.9]/", Some("[64:ff9b:1::7f09:909]"));
        check("http://[2002:7f00:1::]/", Some("[2002:7f00:1::]"));
        check("http://[2002:7f09:909::5:6]/", Some("[2002:7f09:909::5:6]"));
        check("http://user@127.0.0.1/", Some("127.0.0.1"));
        check("http://128.0.0.1/", None);
        check("http://192.168.0.1/", None);
        check("http://[2001:db8::1]/", None);
        check("http://[2001:db8::127.0.0.1]/", None);
        check("http://[::192.0.2.1]/", None);
        check("http://[::ffff:192.0.2.1]/", None);
        check("http://[::ffff:0:192.0.2.1]/", None);
        check("http://[64:ff9b::192.0.2.1]/", None);
        check("http://[2002:c000:201::127.0.0.1]/", None);
        // Decided when the name is resolved.
        check("http://localhost/", None);
    }

    #[test]
    fn a_name_is_worth_its_addresses_off_the_loopback() {
        let check = |found: &[&str], expected: Option<&[&str]>| {
            let parse = |addresses: &[&str]| -> Vec<SocketAddr> {
                addresses.iter().map(|address| address.parse().unwrap()).collect()
            };
            let remote = remote("a.example", parse(found)).ok().map(Iterator::collect::<Vec<_>>);
            assert_eq!(remote, expected.map(parse), "{found:?}");
        };
        check(&["127.0.0.1:0"], None);
        check(&["[::1]:0", "127.0.0.1:0"], None);
        check(&["0.0.0.0:0", "[::ffff:127.0.0.1]:0"], None);
        check(&["[64:ff9b::127.0.0.1]:0", "[2002:7f00:1::]:0"], None);
        check(&["127.0.0.1:0", "192.0.2.1:0"], Some(&["192.0.2.1:0"]));
        check(&["192.0.2.1:0"], Some(&["192.0.2.1:0"]));
        check(&[], Some(&[]));
    }
}
