//! Malformed input for everything that reads untrusted bytes: frames, session machines,
//! certificates of connections, votes, blocks.
//!
//! Each test plays cases for `COWBOYCTL_HOSTILE_SECONDS`, by default two; `.ci/test` sets 15.
//! A case is derived from its number, which a failure prints: `COWBOYCTL_HOSTILE_CASE=N` plays only
//! that case.

mod decoders;
mod frames;
mod random;
mod sessions;

use random::Random;
use std::{
    env,
    time::{Duration, Instant},
};

/// Prints the case's number on drop if the test has failed.
struct Case(u64);

impl Drop for Case {
    #[expect(clippy::print_stderr, reason = "how to play the case again")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("that was COWBOYCTL_HOSTILE_CASE={}", self.0);
        }
    }
}

/// Plays one case after the other.
fn play(mut case: impl FnMut(&mut Random)) {
    let number = |name: &str| {
        env::var(name).ok().map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name}")))
    };
    let mut one = |number| {
        let _named = Case(number);
        case(&mut Random::new(number));
    };
    if let Some(number) = number("COWBOYCTL_HOSTILE_CASE") {
        return one(number);
    }
    let time = Duration::from_secs(number("COWBOYCTL_HOSTILE_SECONDS").unwrap_or(2));
    let begun = Instant::now();
    for number in 0.. {
        if begun.elapsed() >= time {
            break;
        }
        one(number);
    }
}
