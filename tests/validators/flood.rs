//! Silent connections, as many as one address or a few can open, while runners from another address
//! connect.

use super::refusals::{PLENTY, Peer, World, admitted, fresh, run};
use commonware_runtime::{Spawner as _, Supervisor as _};
use cowboy_devnet::{
    sample::{key, validator_keys},
    transport::{Connection as _, Dial as _, TransportError, quic::QuicClient, tls::Identity},
};
use std::net::Ipv4Addr;
use tokio::sync::watch;

/// Opens silent connections from `address` until the receiver is dropped. Its value is the number
/// of connections that the validator has refused, or closed to make room.
fn flood(world: &World, address: Ipv4Addr) -> watch::Receiver<usize> {
    let client = QuicClient::bind((address, 0).into()).expect("a socket");
    let dialer = client.dialer(Identity::new(&key("flood")).expect("an identity"));
    let (validator, at) = (validator_keys(0).identity.public_key(), world.address);
    let (told, shown_out) = watch::channel(0);
    world.context.child("flood").spawn(move |_| async move {
        while !told.is_closed() {
            // An error means that the connection was refused.
            let Ok(connection) = dialer.dial(at, &validator).await else {
                told.send_modify(|shown_out| *shown_out += 1);
                continue;
            };
            let told = told.clone();
            // Keeps the connection until the validator closes it.
            tokio::spawn(async move {
                if let Err(TransportError::ClosedByPeer { reason }) = connection.accept().await
                    && reason == "rate_limited"
                {
                    told.send_modify(|shown_out| *shown_out += 1);
                }
            });
        }
    });
    shown_out
}

/// Runners from another address connect during a flood from `addresses`.
fn check(addresses: &[[u8; 4]]) {
    run(PLENTY, async |world| {
        let mut floods: Vec<_> =
            addresses.iter().map(|address| flood(&world, Ipv4Addr::from(*address))).collect();
        for flood in &mut floods {
            flood.wait_for(|shown_out| *shown_out > 0).await.expect("it goes on");
        }
        let names = (0..).map(|index| format!("runner-{index}"));
        let runners = names.filter(|name| admitted(&world.state, name).is_ok()).take(10);
        let mut connected = Vec::new();
        for (number, name) in runners.enumerate() {
            let mut peer = Peer::connect(&world, key(&name)).await;
            peer.shake_hands(fresh(number)).await;
            connected.push(peer);
        }
        assert_eq!(world.gateway.connected().len(), connected.len());
    });
}

#[test]
fn a_flood_from_one_address_keeps_no_runner_of_another_out() {
    check(&[[127, 0, 0, 2]]);
}

#[test]
fn nor_does_one_from_a_few_addresses_that_could_take_all_places() {
    check(&[[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4]]);
}
