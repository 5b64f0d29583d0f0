//! The timers: the order of the lane, the cursor, a timer in full.

use super::{SMALL, block, hear, is_shown, linked, picture, press, state, tab, update};
use crate::dashboard::{
    news::{Answer, Ask, News},
    state::State,
};
use cowboy_devnet::types::{DueTimers, Fairness, LaneBlock, Timer, TimerQueue, TimerSummary};
use crossterm::event::KeyCode;
use serde_json::{Value, json};

fn id(number: u64) -> String {
    format!("0x{number:064x}")
}

fn actor(number: u64) -> String {
    format!("0x{number:040x}")
}

/// A timer with its due height, its last height and its fees.
fn timer(number: u64, owner: u64, (at, to): (u64, u64), fees: (u64, u64), status: &str) -> Value {
    json!({
        "timer_id": id(number), "actor": actor(owner), "height": at, "expires_at": to,
        "handler": "beat", "status": status, "tier": null, "fired_at": null,
        "fee_payer": actor(owner), "gas_limit": 1000, "cell_limit": 640,
        "max_fee_per_cycle": fees.0.to_string(),
        "max_priority_fee_per_cycle": fees.1.to_string(),
    })
}

fn timers(timers: &[Value]) -> News {
    let timers: Vec<TimerSummary> = serde_json::from_value(json!(timers)).unwrap();
    News::Answer(Ask::Timers, Box::new(Answer::Timers(timers)))
}

/// The lane's price under a policy, and the weights of actors, per mille.
fn lane(policy: &str, basefee: u64, weights: &[(u64, u64)]) -> [News; 2] {
    let lane: Vec<LaneBlock> = serde_json::from_value(json!([{
        "height": 100, "policy": policy, "lane_basefee": basefee.to_string(),
        "cycle_price": (1_000 + basefee).to_string(), "capacity": 4000,
        "consumed": 3000, "utilisation_per_mille": 750, "cell_capacity": 1_000_000, "cells": 900,
        "asked": 0, "questions": "0", "fired": 3, "deferred": 4, "priced_out": 1, "over_cap": 0,
        "expired": 0, "insolvent": 0, "p50_tip": "7", "least_priority": null,
    }]))
    .unwrap();
    let members = weights.iter().map(|(owner, weight)| {
        json!({"account": actor(*owner), "recent": 2, "weight_per_mille": weight})
    });
    let fairness: Fairness = serde_json::from_value(json!({
        "height": 100, "policy": policy, "scope": "actor", "window_blocks": 100,
        "twice_median": 3, "members": members.collect::<Vec<_>>(),
    }))
    .unwrap();
    [
        News::Answer(Ask::Lane, Box::new(Answer::Lane(lane))),
        News::Answer(Ask::Fairness, Box::new(Answer::Fairness(fairness))),
    ]
}

/// At height 100, with the timers shown.
fn shown() -> State {
    let mut state = state(SMALL);
    let now = state.now;
    update(&mut state, now, linked(100, 1));
    hear(&mut state, News::Block(block(100, 0)));
    tab(&mut state, "timers");
    state
}

/// The ranks and the last digits of the ids, from top to bottom.
fn order(state: &State) -> Vec<(String, String)> {
    let lines = picture(state);
    let header = lines.iter().position(|line| line.contains("RANK  TIMER")).unwrap();
    let rows = lines[header + 1..lines.len() - 1].iter().filter(|line| !line.is_empty());
    rows.map(|line| {
        let (rank, rest) = line.split_once(" 0x").unwrap();
        let end = rest.split(' ').next().unwrap();
        (rank.trim().to_owned(), end[end.len() - 1..].to_owned())
    })
    .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(rank, end)| ((*rank).to_owned(), (*end).to_owned())).collect()
}

/// Due timers as the API lists them: the number, the rank, the weight per mille, the fate.
fn due(rows: &[(u64, Option<u64>, Option<u64>, &str)]) -> News {
    let timers = rows.iter().map(|(number, rank, weight, fate)| {
        json!({
            "timer_id": id(*number), "actor": actor(1), "height": 90, "rank": rank,
            "weight_per_mille": weight, "effective_tip": null, "max_cost": "1", "agent": "none",
            "gba": null, "not_asked": null, "reason": null, "explanation": null, "next": fate,
            "outlook": "",
        })
    });
    let due: DueTimers = serde_json::from_value(json!({
        "height": 101, "policy": "eip1559", "capacity": 4000, "cell_capacity": 1_000_000,
        "cycle_price": "17", "due": 40, "ranked": 1_200, "timers": timers.collect::<Vec<_>>(),
        "next": null,
    }))
    .unwrap();
    News::Answer(Ask::Due, Box::new(Answer::Due(due)))
}

#[test]
fn the_order_of_due_timers_is_the_chains() {
    let mut state = shown();
    assert!(state.wants(false).contains(&Ask::Due));
    let listed = |number, status| timer(number, 1, (90 + number, 200), (120, 15), status);
    hear(
        &mut state,
        timers(&[
            listed(1, "due"),
            listed(2, "due"),
            listed(3, "due"),
            listed(4, "due"),
            listed(5, "due"),
            timer(6, 1, (110, 200), (500, 50), "scheduled"),
            listed(7, "fired"),
        ]),
    );
    let rest = [("in 10", "6"), ("-", "7")];
    let unknown = [("due", "1"), ("due", "2"), ("due", "3"), ("due", "4"), ("due", "5")];
    assert_eq!(order(&state), pairs(&[&unknown[..], &rest].concat()));
    // The first is not among the timers listed; the fifth is new since this answer.
    hear(
        &mut state,
        due(&[
            (9, Some(1), Some(2_000), "fires"),
            (2, Some(2), Some(1_800), "fires"),
            (1, Some(1_200), Some(1_000), "lane_full"),
            (4, None, Some(1_000), "expired"),
            (3, None, Some(1_000), "priced_out"),
        ]),
    );
    let known = [("#2", "2"), ("#1,200", "1"), ("expired", "4"), ("priced out", "3"), ("due", "5")];
    assert_eq!(order(&state), pairs(&[&known[..], &rest].concat()));
}

#[test]
fn the_cursor_goes_with_its_timer() {
    let mut state = shown();
    for news in lane("fifo", 0, &[]) {
        hear(&mut state, news);
    }
    let row = |number| timer(number, 1, (100 + number, 900), (1, 0), "scheduled");
    hear(&mut state, timers(&[row(1), row(2), row(3)]));
    press(&mut state, KeyCode::Down);
    let chosen = |state: &mut State| {
        let (pane, cx) = state.shown();
        pane.equivalent(&cx).unwrap()
    };
    assert_eq!(chosen(&mut state), format!("cowboyctl timer show {}", id(2)));
    hear(&mut state, timers(&[row(2), row(3), row(4)]));
    assert_eq!(chosen(&mut state), format!("cowboyctl timer show {}", id(2)));
    press(&mut state, KeyCode::Home);
    hear(&mut state, timers(&[row(3), row(4)]));
    assert_eq!(chosen(&mut state), format!("cowboyctl timer show {}", id(3)));
    hear(&mut state, timers(&[]));
    assert_eq!(chosen(&mut state), "cowboyctl timer queue");
    assert!(is_shown(&state, "no timers yet: cowboyctl"));
}

#[test]
fn those_that_have_ended_can_be_left_out() {
    let mut state = shown();
    let rows = [
        timer(1, 1, (110, 200), (1, 0), "scheduled"),
        timer(2, 1, (50, 200), (1, 0), "insufficient_funds"),
    ];
    hear(&mut state, timers(&rows));
    assert!(
        is_shown(&state, "timers: 0 due, 1 scheduled, 1 ended") && is_shown(&state, "no funds")
    );
    press(&mut state, KeyCode::Char('a'));
    assert!(!is_shown(&state, "no funds"));
    press(&mut state, KeyCode::Char('/'));
    for character in "nothing".chars() {
        press(&mut state, KeyCode::Char(character));
    }
    assert!(is_shown(&state, "no timer like that"));
}

#[test]
fn a_timer_says_why_it_was_deferred() {
    let mut state = shown();
    hear(&mut state, timers(&[timer(1, 1, (90, 200), (120, 15), "due")]));
    press(&mut state, KeyCode::Enter);
    let ask = Ask::Timer(id(1));
    assert!(state.wants(false).contains(&ask));
    hear(&mut state, News::Refused(ask.clone(), "it is unknown".to_owned()));
    assert!(is_shown(&state, "it is unknown"));
    let full = |status: &str| {
        let full: Timer = serde_json::from_value(json!({
            "timer_id": id(1), "actor": actor(1), "height": 90, "tier": "carry_over",
            "status": status, "scheduled_at": 80, "expires_at": 200, "fired_at": null,
            "ended_at": null, "handler": "beat", "payload": "0x", "payload_text": "",
            "fee_payer": actor(1), "gas_limit": 1000, "cell_limit": 640, "promised": null,
            "max_fee_per_cycle": "120", "max_priority_fee_per_cycle": "15", "gba": null,
            "bid": null, "max_cost": "135000", "payer_balance": "4", "deferrals": [
                {"from": 90, "to": 90, "reason": "lane_full", "explanation": "3 came first"},
                {"from": 91, "to": 100, "reason": "priced_out", "explanation": "120 is too little"},
            ],
            "deferred_blocks": 11, "charged": null, "cycles": null, "cells": null, "result": null,
            "error": null, "log": [], "events": [],
        }))
        .unwrap();
        News::Answer(ask.clone(), Box::new(Answer::Timer(full)))
    };
    hear(&mut state, full("due"));
    let lines = picture(&state);
    let find = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap();
    assert!(find("deferred in 11 blocks") < find("91 to 100"));
    // The newest is first.
    assert!(find("120 is too little") < find("3 came first"));
    assert!(is_shown(&state, "and the payer has 0.000000004 CBY"));
    // An ended timer is not requested again.
    assert!(state.wants(false).contains(&ask));
    hear(&mut state, full("expired"));
    assert!(!state.wants(false).contains(&ask));
    press(&mut state, KeyCode::Esc);
    assert!(is_shown(&state, "RANK"));
}

#[test]
fn tiers_and_fairness_are_shown() {
    let mut state = shown();
    let queue: TimerQueue = serde_json::from_value(json!({
        "height": 100, "epoch": 2, "epoch_blocks": 48, "root": id(7), "timers": 9,
        "ring": [{"at": 103, "timers": 2}, {"at": 130, "timers": 1}],
        "epochs": [{"at": 5, "timers": 4}], "overflow": 1, "carry_over": 1,
    }))
    .unwrap();
    hear(&mut state, News::Answer(Ask::TimerQueue, Box::new(Answer::TimerQueue(queue))));
    for news in lane("eip1559", 1_000, &[(3, 1250)]) {
        hear(&mut state, news);
    }
    for text in [
        "carry-over   1, due, not fired yet",
        "block ring   3, next at 103",
        "epoch queue  4, next in 44 blocks",
        "overflow     1, beyond the epochs",
        "median 1.5 in 100 blocks",
        "1,000 wei per cycle, eip1559",
        "75.0 % of 4,000 cycles",
        "3, median tip 7 wei",
        "4, 1 priced out",
    ] {
        assert!(is_shown(&state, text), "{text}: {:#?}", picture(&state));
    }
    press(&mut state, KeyCode::Char('f'));
    assert!(is_shown(&state, "1.250"));
    let (pane, cx) = state.shown();
    assert_eq!(pane.equivalent(&cx).unwrap(), "cowboyctl timer fairness");
    // There is nothing to open.
    press(&mut state, KeyCode::Enter);
    assert!(is_shown(&state, "1.250"));
}
