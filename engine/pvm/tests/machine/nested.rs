//! Actors that call actors.

use crate::world::{MAX_DEPTH, Request, World};
use crate::{RELAY, machine};
use cowboy_engine::primitives::Address;
use cowboy_engine::pvm::PvmFailure;

const A: Address = Address([1; 20]);
const B: Address = Address([2; 20]);
const C: Address = Address([3; 20]);

fn three() -> World {
    World::with(&[(A, RELAY), (B, RELAY), (C, RELAY)])
}

/// The payload of the relay: what to do at the end of a chain of calls.
fn path(ending: &str, limit: u64, targets: &[Address]) -> Vec<u8> {
    let targets: Vec<String> = targets.iter().map(|target| hex::encode(target.0)).collect();
    serde_json::json!([ending, limit, targets]).to_string().into_bytes()
}

fn caught(world: &World, actor: Address) -> String {
    String::from_utf8_lossy(world.get(actor, b"caught").unwrap_or_default()).into_owned()
}

#[test]
fn three_actors_share_one_budget() {
    let Some(machine) = machine(0) else { return };
    let mut world = three();
    let request = Request::own(A, "relay", &path("write", 0, &[B, C]));
    let outcome = world.call(&machine, &request);
    assert_eq!(outcome.result, Ok(b">>written".to_vec()));
    assert!([A, B, C].iter().all(|&actor| world.get(actor, b"seen").is_some()));
    let alone = three().call(&machine, &Request::own(C, "relay", &path("write", 0, &[])));
    assert!(outcome.fuel > 3 * alone.fuel, "{} and {}", outcome.fuel, alone.fuel);
}

#[test]
fn the_deepest_nesting_works() {
    let Some(machine) = machine(0) else { return };
    let line: Vec<Address> = (0..=MAX_DEPTH as u8).map(|byte| Address([byte + 9; 20])).collect();
    let actors: Vec<_> = line.iter().map(|&address| (address, RELAY)).collect();
    let mut world = World::with(&actors);
    let whole = path("write", 0, &line[1..MAX_DEPTH]);
    let outcome = world.call(&machine, &Request::own(line[0], "relay", &whole));
    assert!(outcome.result.unwrap().ends_with(b">written"));
    let mut world = World::with(&actors);
    let outcome =
        world.call(&machine, &Request::own(line[0], "relay", &path("write", 0, &line[1..])));
    assert!(outcome.result.unwrap().ends_with(b">caught"));
    assert_eq!(caught(&world, line[MAX_DEPTH - 1]), "5 forbidden: calls are nested too deep");
}

#[test]
fn an_actor_is_not_entered_twice() {
    let Some(machine) = machine(0) else { return };
    let mut world = three();
    let outcome = world.call(&machine, &Request::own(A, "relay", &path("write", 0, &[B, A])));
    assert_eq!(outcome.result, Ok(b">caught".to_vec()));
    assert_eq!(caught(&world, B), "5 forbidden: an actor cannot be entered twice");
}

#[test]
fn a_caller_survives_its_callee() {
    let Some(machine) = machine(0) else { return };
    for (ending, limit, expected) in [
        ("burn", 100_000_000, "1 out_of_gas: OutOfCycles: the call used all of its fuel"),
        ("overflow", 2_000_000_000, "6 internal: Stopped: the machine stopped the call"),
        ("broken", 100_000_000, "6 internal: Stopped: the machine stopped the call"),
    ] {
        let mut world = three();
        let request = Request::own(A, "relay", &path(ending, limit, &[B, C]));
        let outcome = world.call(&machine, &request);
        assert_eq!(outcome.result, Ok(b">caught".to_vec()), "{ending}");
        assert!(outcome.fuel > limit, "{ending}: the limit was not charged");
        assert_eq!(caught(&world, B), expected);
        assert!(world.get(C, b"seen").is_none() && world.get(C, b"half").is_none());
        assert!(world.get(A, b"seen").is_some() && world.get(B, b"seen").is_some());
    }
    let mut world = three();
    let request = Request::own(A, "relay", &path("fail", 0, &[B, C]));
    let outcome = world.call(&machine, &request);
    assert_eq!(outcome.result, Ok(b">caught".to_vec()));
    assert_eq!(caught(&world, B), "6 internal: ValueError: no");
}

#[test]
fn without_a_limit_all_callers_are_out_of_fuel() {
    let Some(machine) = machine(0) else { return };
    let mut world = three();
    let request =
        Request { fuel: 200_000_000, ..Request::own(A, "relay", &path("burn", 0, &[B, C])) };
    let outcome = world.call(&machine, &request);
    assert_eq!((outcome.result, outcome.fuel), (Err(PvmFailure::OutOfFuel), request.fuel));
    assert_eq!(world.ledger, three().ledger);
}
