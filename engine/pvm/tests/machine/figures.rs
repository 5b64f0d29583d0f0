//! What calls cost: `cargo test -p cowboy-pvm --test machine figures -- --ignored --nocapture`.

use crate::world::{Request, World};
use crate::{ACTOR, AGENT, COUNTER, HOWDY, LOOP, TRIVIAL, machine};
use std::time::Instant;

/// Calls of each kind.
const TIMES: u32 = 100;

/// Clock ticks of Linux in a second, for processes.
const TICKS: f64 = 100.0;

/// Milliseconds of processor that this process has used.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<u32>);
    f64::from(ticks.sum::<u32>()) * 1e3 / TICKS
}

#[test]
#[ignore = "measures; asserts nothing"]
fn figures() {
    for pool in [0, 4] {
        let Some(machine) = machine(pool) else { return };
        for (name, source, handler, payload) in [
            ("trivial", TRIVIAL, "ping", &b"x"[..]),
            ("loop", LOOP, "run", b"100000"),
            ("counter", COUNTER, "inc", b""),
            ("agent init", AGENT, "init", b"{}"),
            ("agent chat", AGENT, "chat", HOWDY),
        ] {
            let mut fuel = 0;
            let mut waiting = 0.0;
            let begun = processor();
            for _ in 0..TIMES {
                let mut world = World::with(&[(ACTOR, source)]);
                let start = Instant::now();
                let outcome = world.call(&machine, &Request::own(ACTOR, handler, payload));
                waiting += start.elapsed().as_secs_f64() * 1e3;
                fuel = outcome.fuel;
                machine.settle();
            }
            let used = (processor() - begun) / f64::from(TIMES);
            let waiting = waiting / f64::from(TIMES);
            println!("pool {pool}: {name:11} {fuel:>11} fuel {used:5.1} ms CPU {waiting:5.1} ms");
        }
    }
}
