//! The advantage of an owner who spreads timers over a hundred actors, when fairness is counted by
//! actor and when it is counted by deployer.
//!
//! ```text
//! cargo run --locked -p cowboy-examples --example fragmentation
//! ```
//!
//! Ten honest owners together ask for the whole lane, and a greedy one asks for as much again, so
//! the demand is twice the lane; all pay the same price. Fairness favours those that fired less.
//! One actor that fires much loses to the honest ones; a hundred actors that fire little each
//! always count as newcomers, unless they count as their one owner.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod chain;

use chain::{Chain, GAS_LIMIT, schedule, spinning};
use cowboy_engine::{
    chain::Payload,
    primitives::{Address, Height, Wei},
    timer::{FairnessScope, Params, TimerConfig, TimerRequest},
};
use std::collections::BTreeSet;

/// Fires that fit a block, and number of honest owners.
const ROOM: usize = 10;
/// The fairness window in blocks. The measurement takes as many blocks, after a first window.
const WINDOW: u64 = 50;
/// Blocks that a timer waits before it expires.
const PATIENCE: u64 = 10;

/// The greedy owner's share of the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    fires: u64,
    of: u64,
}

impl Share {
    fn per_mille(self) -> u64 {
        self.fires * 1_000 / self.of.max(1)
    }
}

fn run(scope: FairnessScope, actors: usize) -> Share {
    let config = TimerConfig {
        lane_timer_cycles: ROOM as u64 * GAS_LIMIT,
        fairness_window_blocks: WINDOW,
        max_timers_per_actor: 100_000,
        ..TimerConfig::default()
    };
    let honest: Vec<String> = (0..ROOM).map(|owner| format!("honest-{owner}")).collect();
    let owners = [honest.as_slice(), &["greedy".to_owned()]].concat();
    let mut chain = Chain::new(Params { scope, config, ..Params::default() }, &owners);
    let spread = chain.spinners("greedy", actors);
    let theirs: Vec<_> = honest.iter().map(|owner| chain.spinners(owner, 1)[0]).collect();

    let first = chain.next() + 2 * (ROOM as u64 + 1);
    let due: Vec<u64> = (first..first + 2 * WINDOW).collect();
    let timer = |actor: Address, height: u64| {
        let price = Wei::new(1_000_000_000);
        let expires_at = Some(Height::new(height + PATIENCE));
        schedule(TimerRequest { expires_at, ..spinning(actor, height, price, Wei::new(100)) })
    };
    for (owner, actor) in honest.iter().zip(&theirs) {
        chain.send(owner, due.iter().map(|height| timer(*actor, *height)).collect());
    }
    // As many per block as fit, in turn from each actor.
    let mut turn = spread.iter().cycle();
    let mut payloads: Vec<Payload> = Vec::new();
    for height in &due {
        let actors = turn.by_ref().take(ROOM);
        payloads.extend(actors.map(|actor| timer(*actor, *height)));
    }
    chain.send("greedy", payloads);
    assert!(chain.next() <= first, "all is scheduled before the first is due");

    let spread: BTreeSet<_> = spread.into_iter().collect();
    let mut share = Share { fires: 0, of: 0 };
    while chain.next() < first + 2 * WINDOW {
        let execution = chain.block(Vec::new());
        // The window has to be full before it is meaningful.
        if execution.state.height().get() >= first + WINDOW {
            let fires = execution.fires.iter();
            share.fires += fires.filter(|fire| spread.contains(&fire.actor)).count() as u64;
            share.of += execution.fires.len() as u64;
        }
    }
    share
}

fn main() {
    println!("The greedy owner asks for as many fires as the ten honest ones together.\n");
    println!(
        "  {:<20}  {:>9}  {:>10}  {:>9}",
        "fairness counted by", "one actor", "100 actors", "advantage"
    );
    for scope in FairnessScope::ALL {
        let [one, many] = [1, 100].map(|actors| run(*scope, actors).per_mille());
        let gain = many * 100 / one.max(1);
        println!(
            "  {:<20}  {:>7}.{}%  {:>8}.{}%  {:>7}.{:02}x",
            scope.name(),
            one / 10,
            one % 10,
            many / 10,
            many % 10,
            gain / 100,
            gain % 100,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_pays_where_actors_count_and_not_where_deployers_do() {
        let share = |scope, actors| {
            let share = run(scope, actors);
            assert_eq!(share.of, ROOM as u64 * WINDOW, "the lane is full all the time");
            share.per_mille()
        };
        let one = share(FairnessScope::Actor, 1);
        assert!(one <= 120, "one among eleven: {one}");
        let many = share(FairnessScope::Actor, 100);
        assert!(many > 5 * one, "a hundred newcomers: {many} after {one}");
        let [one, many] = [1, 100].map(|actors| share(FairnessScope::Deployer, actors));
        assert!(one <= 120 && many <= one, "nothing is gained: {many} after {one}");
    }
}
