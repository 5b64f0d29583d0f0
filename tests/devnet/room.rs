//! Cycles of blocks that are bought and not used, on a real chain.

use crate::{
    support::{Home, wait_until},
    timers::{number, text},
};
use std::{collections::BTreeSet, fs, thread};

/// An actor that uses almost none of the cycles that are bought for it.
const IDLE: &str = "def nothing(ctx, payload):\n    pass\n";
/// All cycles of a block except those of the transaction itself.
const ALL: &str = "19979000";
const CALLS: usize = 14;

fn next_nonce(home: &Home, account: &str) -> u64 {
    number(&home.json(&["account", "balance", account])["next_nonce"])
}

#[test]
fn whole_blocks_bought_and_not_used_are_paid_for_and_delay_no_transfer() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let source = home.path("idle.star");
    fs::write(&source, IDLE).unwrap();
    let deployed = home.json(&["actor", "deploy", &source.to_string_lossy()]);
    let actor = text(&deployed["actor"]).to_owned();

    // While no block is made, the attacker first sends enough calls to fill fourteen blocks.
    for validator in ["validator-2", "validator-3"] {
        home.json(&["fault", "pause", validator]);
    }
    let call = ["actor", "call", &actor, "nothing", "--from", "dev-1", "--cycles", ALL];
    let call = [&call[..], &["--cells", "1000"]].concat();
    let transfer = ["account", "transfer", "dev-2", "dev-3", "1cby"];
    let (receipts, transferred) = thread::scope(|scope| {
        let mut calls = Vec::new();
        for sent in next_nonce(&home, "dev-1").. {
            if calls.len() == CALLS {
                break;
            }
            calls.push(scope.spawn(|| home.json(&call)));
            wait_until("the call is in the mempool", || next_nonce(&home, "dev-1") == sent + 1);
        }
        let nonce = next_nonce(&home, "dev-2");
        let transfer = scope.spawn(|| home.json(&transfer));
        wait_until("the transfer is in the mempool", || next_nonce(&home, "dev-2") == nonce + 1);
        home.json(&["fault", "heal", "all"]);
        let receipts: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
        (receipts, transfer.join().unwrap())
    });

    let heights: Vec<_> = receipts.iter().map(|receipt| number(&receipt["height"])).collect();
    let before = heights.iter().filter(|height| **height < number(&transferred["height"])).count();
    assert!(before <= 2, "{before} of {CALLS} calls came first: {heights:?} {transferred}");
    for receipt in &receipts {
        let fee = &receipt["fee"];
        assert_eq!(receipt["status"], "success", "{receipt}");
        assert_eq!(number(&fee["cycles"]), 20_000_000 / 8, "{receipt}");
        assert!(number(&fee["unused"]) > 2_400_000, "{receipt}");
    }
    // A block has room for one of these calls.
    assert_eq!(heights.iter().collect::<BTreeSet<_>>().len(), CALLS, "{heights:?}");
}
