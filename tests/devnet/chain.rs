//! Validators stop and start; the chain goes on, halts and resumes as BFT requires.

use crate::{
    shape,
    support::{Home, list, wait_until},
};

/// Share of blocks in `from..to` that carry their parent's certificate, in per cent.
fn certified_share(home: &Home, from: u64, to: u64) -> u64 {
    let certified = (from..to)
        .filter(|height| {
            let block = home.json(&["chain", "block", &height.to_string()]);
            list(&block["certificate_for"]).iter().any(|h| h.as_u64() == Some(height - 1))
        })
        .count() as u64;
    100 * certified / (to - from)
}

#[test]
fn with_one_of_four_stopped_the_chain_goes_on() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    home.json(&["validator", "stop", "validator-2"]);
    let from = home.height();
    home.wait_height(from + 12);
    let share = certified_share(&home, from, from + 12);
    assert!(share >= 70, "only {share} % of the blocks carry their parent's certificate");
    home.json(&["validator", "start", "validator-2"]);
    let target = home.height();
    // It catches up and votes again: a certificate has its vote.
    wait_until("validator-2 votes again", || {
        let head = home.height();
        (target..head.saturating_sub(2)).rev().take(5).any(|height| {
            let votes = home.run(&["--output", "json", "presence", "votes", &height.to_string()]);
            votes.code == 0
                && list(&votes.json()["votes"]).iter().any(|v| v["validator"] == "validator-2")
        })
    });
    let theirs = home.json(&["--node", "validator-2", "chain", "block", &target.to_string()]);
    assert_eq!(theirs["hash"], home.json(&["chain", "block", &target.to_string()])["hash"]);
    shape::seen(&["validator start"]);
}

#[test]
fn with_two_of_four_stopped_the_chain_halts_and_resumes() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    home.json(&["validator", "stop", "validator-1"]);
    home.json(&["validator", "stop", "validator-3"]);
    // Pending blocks may still become final; then nothing does.
    let halted = home.height() + 2;
    home.fails(5, &["chain", "wait", &(halted + 1).to_string(), "--timeout", "3s"]);
    let status = home.json(&["devnet", "status"]);
    assert_eq!(status["running"], true);
    home.json(&["validator", "start", "validator-3"]);
    home.wait_height(halted + 5);
}

#[test]
fn a_validator_starts_as_soon_as_it_has_stopped() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    for _ in 0..3 {
        home.json(&["validator", "stop", "validator-3"]);
        home.json(&["validator", "start", "validator-3"]);
    }
    let height = home.height() + 3;
    let wait = ["--node", "validator-3", "chain", "wait", &height.to_string(), "--timeout", "60s"];
    home.json(&wait);
}
