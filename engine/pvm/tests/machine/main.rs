//! The machine with a real component. Each test needs a folder of artifacts in the environment
//! variable `COWBOYCTL_TEST_PVM` and says so without one; `examples/install.rs` makes one.

mod calls;
mod codec;
mod figures;
mod fuel;
mod hostile;
mod nested;
mod refusals;
mod world;

use cowboy_engine::primitives::Address;
use cowboy_engine::pvm::{PvmFailure, PvmOutcome, Raised};
use cowboy_pvm::{artifact::Artifact, machine::Machine};
use std::{fs, io::Write as _, sync::OnceLock};
use world::{Request, World};

const ACTOR: Address = Address([0x22; 20]);

const AGENT: &str = include_str!("actors/agent.py");
const COUNTER: &str = include_str!("actors/counter.py");
const LOOP: &str = include_str!("actors/loop.py");
const MIXED: &str = include_str!("actors/mixed.py");
const RELAY: &str = include_str!("actors/relay.py");
const TRIVIAL: &str = include_str!("actors/trivial.py");

/// `{"message": "Howdy"}` in CBOR.
const HOWDY: &[u8] = b"\xa1\x67message\x65Howdy";

/// A machine that loads at most `pool` instances ahead.
fn machine(pool: usize) -> Option<Machine> {
    static ARTIFACT: OnceLock<Option<Artifact>> = OnceLock::new();
    let artifact = ARTIFACT.get_or_init(|| {
        let folder = std::env::var_os("COWBOYCTL_TEST_PVM")?;
        let mut artifacts = fs::read_dir(folder).expect("COWBOYCTL_TEST_PVM is a folder").flatten();
        let artifact = artifacts.next().expect("COWBOYCTL_TEST_PVM has an artifact").path();
        Some(Artifact::open(&artifact).expect("the artifact opens"))
    });
    let Some(artifact) = artifact else {
        // Not captured, so that it is seen although the test passes.
        let _ = writeln!(std::io::stderr(), "not run: COWBOYCTL_TEST_PVM names no artifacts");
        return None;
    };
    Some(Machine::new(artifact, pool).expect("the artifact makes a machine"))
}

/// Runs a handler of one actor, called by itself.
fn run(machine: &Machine, source: &str, handler: &str, payload: &[u8]) -> (World, PvmOutcome) {
    let mut world = World::with(&[(ACTOR, source)]);
    let outcome = world.call(machine, &Request::own(ACTOR, handler, payload));
    (world, outcome)
}

fn raised(outcome: PvmOutcome) -> Raised {
    match outcome.result {
        Err(PvmFailure::Raised(raised)) => *raised,
        other => panic!("{other:?}"),
    }
}
