//! One scenario under the three policies of timers, block by block: which timers fire, and what
//! they pay.
//!
//! ```text
//! cargo run --locked -p cowboy-examples --example policies
//! ```
//!
//! Three actors have timers that are due in the same block: `early` scheduled first and pays
//! little, `spammer` has the most timers, `keen` scheduled last and pays well. The lane has room
//! for ten fires per block.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod chain;

use chain::{Chain, GAS_LIMIT, account, schedule, spinning};
use cowboy_engine::{
    chain::{
        Charged, EventKind, Payload,
        transaction::{CallActor, Transfer},
    },
    primitives::{Address, Wei},
    timer::{Params, Policy, TimerConfig, TimerRequest},
};

/// Fires that fit a block.
const ROOM: u64 = 10;
/// Name, number of timers, priority in wei per cycle; [`run`] sets the fee caps.
const ACTORS: [(&str, usize, u128); 3] = [("early", 8, 10), ("spammer", 20, 50), ("keen", 4, 500)];

/// The lane in one block.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    height: u64,
    /// Wei per cycle.
    basefee: u128,
    /// The actors' initials in the order of fires.
    fired: String,
    waiting: u64,
    priced_out: u64,
}

/// The totals of an actor's timers.
#[derive(Debug, Default)]
struct Account {
    fires: u64,
    cycles: u128,
    /// Sum of the blocks that each timer waited.
    waited: u64,
    charged: Charged,
}

struct Outcome {
    lines: Vec<Line>,
    accounts: [Account; 3],
    /// Whether the timers came before the block's transaction.
    timers_first: bool,
}

fn run(policy: Policy) -> Outcome {
    let config = TimerConfig { lane_timer_cycles: ROOM * GAS_LIMIT, ..TimerConfig::default() };
    let genesis_lane_basefee = Wei::new(20_000);
    let params = Params { policy, genesis_lane_basefee, config, ..Params::default() };
    let mut chain = Chain::new(params, &["owner".to_owned()]);
    let actors = chain.spinners("owner", ACTORS.len());

    // All are scheduled in one block and due in the next one. Under the auction each actor bids for
    // its own timers.
    let price = chain.state.lane().basefee;
    let auction = policy == Policy::GbaAuction;
    let due = chain.next() + 1 + u64::from(auction);
    let (mut bids, mut payloads) = (Vec::new(), Vec::new());
    for (actor, (name, timers, tip)) in actors.iter().zip(ACTORS) {
        // The cap of `early` is only today's price plus its tip.
        let most = if name == "early" {
            price.saturating_add(Wei::new(tip))
        } else {
            price.saturating_mul(10)
        };
        let gba = auction.then_some(*actor);
        let one = schedule(TimerRequest { gba, ..spinning(*actor, due, most, Wei::new(tip)) });
        payloads.extend(std::iter::repeat_n(one, timers));
        bids.extend(auction.then(|| bidding(*actor, most, Wei::new(tip))));
    }
    chain.send("owner", bids);
    chain.send("owner", payloads);

    let mut lines = Vec::new();
    let mut accounts = [(); 3].map(|()| Account::default());
    let mut timers_first = false;
    let place = |of: &Address| actors.iter().position(|actor| actor == of).expect("one of ours");
    while !chain.state.timers().is_empty() {
        let pay = Transfer { to: account("somebody"), amount: Wei::new(1) };
        let transaction = chain.sign("owner", 0, Payload::Transfer(pay));
        let execution = chain.block(vec![transaction]);
        let height = execution.state.height().get();
        let first =
            |is: fn(&EventKind) -> bool| execution.events.iter().position(|event| is(&event.kind));
        if height == due {
            timers_first = first(|kind| matches!(kind, EventKind::TimerFired(_)))
                < first(|kind| matches!(kind, EventKind::Transferred(_)));
        }
        let mut fired = String::new();
        for fire in &execution.fires {
            let place = place(&fire.actor);
            fired.push(ACTORS[place].0.as_bytes()[0].into());
            let account = &mut accounts[place];
            account.fires += 1;
            account.cycles += u128::from(fire.cycles.get());
            account.waited += height - due;
            let (sum, one) = (&mut account.charged, &fire.charged);
            sum.burned_cycle = sum.burned_cycle.saturating_add(one.burned_cycle);
            sum.burned_lane = sum.burned_lane.saturating_add(one.burned_lane);
            sum.tip = sum.tip.saturating_add(one.tip);
        }
        let lane = execution.lane;
        lines.push(Line {
            height,
            basefee: lane.basefee.get(),
            fired,
            waiting: lane.deferred,
            priced_out: lane.priced_out,
        });
    }
    Outcome { lines, accounts, timers_first }
}

fn bidding(actor: Address, max_fee: Wei, tip: Wei) -> Payload {
    let payload = format!("{{\"max_fee\": {max_fee}, \"tip\": {tip}}}").into_bytes();
    Payload::CallActor(CallActor { actor, handler: "bid".to_owned(), payload, value: Wei::ZERO })
}

fn print(policy: Policy, outcome: &Outcome) {
    let place = if outcome.timers_first { "before" } else { "after" };
    println!("{}: timers fire {place} the transactions of their block\n", policy.name());
    println!(
        "  {:>6}  {:>12}  {:<10}  {:>7}  {:>10}",
        "block", "lane basefee", "fired", "waiting", "priced out"
    );
    for Line { height, basefee, fired, waiting, priced_out } in &outcome.lines {
        println!("  {height:>6}  {basefee:>12}  {fired:<10}  {waiting:>7}  {priced_out:>10}");
    }
    println!(
        "\n  {:<8}  {:>5}  {:>11}  {:>27}",
        "", "fires", "blocks late", "wei per cycle, burned and tip"
    );
    for (account, (name, ..)) in outcome.accounts.iter().zip(ACTORS) {
        let per_cycle = |amount: Wei| amount.get() / account.cycles.max(1);
        let Charged { burned_cycle, burned_lane, tip, .. } = account.charged;
        let late = account.waited * 10 / account.fires.max(1);
        println!(
            "  {name:<8}  {:>5}  {:>9}.{}  {:>7} + {:>6} lane + {:>4}",
            account.fires,
            late / 10,
            late % 10,
            per_cycle(burned_cycle),
            per_cycle(burned_lane),
            per_cycle(tip),
        );
    }
    println!();
}

fn main() {
    println!(
        "Each letter is a fire: e(arly, pays little), s(pammer, most timers), k(een, pays well).\n"
    );
    for policy in Policy::ALL {
        print(*policy, &run(*policy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: Policy, expected: [&str; 4], timers_first: bool) -> Outcome {
        let outcome = run(policy);
        let fired: Vec<_> = outcome.lines.iter().map(|line| line.fired.as_str()).collect();
        assert_eq!(fired, expected, "{policy:?}");
        assert_eq!(outcome.timers_first, timers_first, "{policy:?}");
        outcome
    }

    /// The highest price fires first. The price of a full lane rises until low caps are priced out,
    /// and then falls to them again.
    #[test]
    fn eip1559_goes_by_price() {
        let fired = ["kkkkssssss", "ssssssssss", "ssss", "eeeeeeee"];
        let outcome = check(Policy::Eip1559, fired, false);
        let priced_out: Vec<_> = outcome.lines.iter().map(|line| line.priced_out).collect();
        assert_eq!(priced_out, [0, 0, 8, 0]);
        let basefees: Vec<_> = outcome.lines.iter().map(|line| line.basefee).collect();
        assert!(basefees[..3].is_sorted() && basefees[3] < basefees[2], "{basefees:?}");
        for (account, (_, _, tip)) in outcome.accounts.iter().zip(ACTORS) {
            assert_eq!(account.charged.tip.get(), tip * account.cycles);
            assert!(account.charged.burned_lane > account.charged.burned_cycle);
        }
    }

    /// First come, first served; offers have no effect.
    #[test]
    fn fifo_goes_by_insertion() {
        let outcome = check(Policy::Fifo, ["eeeeeeeess", "ssssssssss", "sssssssskk", "kk"], false);
        for account in outcome.accounts {
            assert_eq!((account.charged.tip, account.charged.burned_lane), (Wei::ZERO, Wei::ZERO));
        }
    }

    /// The best bids fire first, but no actor gets more than its slice before all have had theirs:
    /// a third each for three actors, then a half each for two.
    #[test]
    fn the_auction_goes_by_bid_within_slices() {
        let fired = ["kkkssseeek", "ssssseeeee", "ssssssssss", "ss"];
        let outcome = check(Policy::GbaAuction, fired, true);
        for (account, (_, _, tip)) in outcome.accounts.iter().zip(ACTORS) {
            assert_eq!(account.charged.burned_lane, Wei::ZERO);
            assert_eq!(account.charged.tip.get(), tip * account.cycles);
        }
    }
}
