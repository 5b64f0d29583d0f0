//! Actors that attack the machine: deep structures, endless work, ways out.

use crate::{machine, run};
use cowboy_engine::pvm::{PvmFailure, PvmOutcome};

/// Structures that end a native stack of a few megabytes, when they are made or freed.
const DEEP: &str = include_str!("cases/deep.json");
/// Endless work, big data, and what the component has no access to.
const HOSTILE: &str = include_str!("cases/hostile.json");

fn cases(json: &str) -> Vec<(String, String)> {
    serde_json::from_str(json).expect("a list of names and sources")
}

fn show(outcome: &PvmOutcome) -> String {
    let text = match &outcome.result {
        Ok(bytes) => format!("ok {}", String::from_utf8_lossy(&bytes[..bytes.len().min(20)])),
        Err(PvmFailure::Raised(raised)) => raised.to_string().chars().take(60).collect(),
        Err(other) => other.to_string(),
    };
    format!("{text} {:.1} M fuel", outcome.fuel as f64 / 1e6)
}

/// The interpreter's own stack, inside the component's memory, ends at the same place everywhere:
/// one case traps there. None may reach the end of the native stack, whose place depends on the
/// compiler and the processor.
#[test]
fn deep_structures_do_not_end_the_native_stack() {
    let Some(machine) = machine(0) else { return };
    let cases = cases(DEEP);
    assert_eq!(cases.len(), 50);
    let mut stopped = Vec::new();
    for (name, source) in &cases {
        let (_, outcome) = run(&machine, source, "f", b"");
        println!("{name:26} {}", show(&outcome));
        if outcome.result == Err(PvmFailure::Stopped) {
            stopped.push(name.as_str());
        }
    }
    assert_eq!(stopped, ["map chain"]);
}

#[test]
fn hostile_actors_harm_themselves_alone() {
    let Some(machine) = machine(0) else { return };
    let cases = cases(HOSTILE);
    let mut reached = Vec::new();
    for (name, source) in &cases {
        let (world, outcome) = run(&machine, source, "f", b"");
        println!("{name:34} {}", show(&outcome));
        assert_eq!(world.ledger, crate::world::Ledger::default(), "{name}");
        let outside = ["os", "socket", "threading", "ctypes", "time", "open", "random"];
        if outcome.result.is_ok() && outside.iter().any(|word| name.contains(word)) {
            reached.push(name.as_str());
        }
    }
    assert!(reached.is_empty(), "{reached:?}");
}
