//! Commands about timers and governed parameters against a devnet's answers.

use crate::{
    answers::{self, account, answer, hash, sender, transaction},
    shape,
    support::{Answer, Fake, Folder, Request},
};
use cowboy_devnet::{topology::field_of, types::*};
use cowboy_engine::{
    chain::transaction::{Payload, SetPhase, SignedTransaction},
    presence::Phase,
    primitives::{Address, CBY, Height, Wei},
    timer::{ProposedValue, Tier, TimerRequest},
};
use serde_json::{Value, json};
use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

fn actor() -> Address {
    Address([0xac; 20])
}

fn wei(amount: u128) -> AmountText {
    Text(Wei::new(amount))
}

fn shown_actor() -> Actor {
    let handler = |name: &str, line| Handler {
        name: name.to_owned(),
        parameters: vec!["ctx".to_owned(), "payload".to_owned()],
        line,
    };
    Actor {
        actor: Text(actor()),
        name: Some("beat".to_owned()),
        deployer: account("dev-0").address,
        deployer_name: Some("dev-0".to_owned()),
        code: hash(7),
        language: "starlark".to_owned(),
        owner: account("dev-0").address,
        deployed_at: 12,
        balance: wei(CBY / 2),
        retained: 96,
        handlers: vec![handler("handle_timer", 1), handler("handle_every", 9)],
        continuations: Vec::new(),
        state: vec![],
        next: None,
        source: String::new(),
    }
}

fn event(height: u64, index: u32, kind: &str, data: Value) -> Event {
    Event { timer_id: Some(hash(1)), ..answers::event(height, index, kind, data) }
}

fn scheduled_event(height: u64) -> Event {
    let data = json!({
        "timer_id": hash(1),
        "actor": Text(actor()).to_string(),
        "height": 50,
        "expires_at": 1_050,
        "max_fee_per_cycle": "2000",
        "max_priority_fee_per_cycle": "7",
        "fee_payer": Text(actor()).to_string(),
        "max_cost": "1050000000",
    });
    event(height, 0, "TimerScheduled", data)
}

/// A timer that was passed over in a few blocks.
fn timer(status: TimerStatus) -> Timer {
    let fired = matches!(status, TimerStatus::Fired | TimerStatus::Failed);
    let waits = matches!(status, TimerStatus::Scheduled | TimerStatus::Due);
    let deferral = |from, to, reason, explanation: &str| Deferral {
        from,
        to,
        reason,
        explanation: explanation.to_owned(),
    };
    let scheduled = status == TimerStatus::Scheduled;
    let mut events = vec![scheduled_event(43)];
    if fired {
        events.push(event(56, 1, "TimerFired", json!({"cycles": 1_200, "success": true})));
    }
    if status == TimerStatus::InsufficientFunds {
        let (required, available) = (wei(CBY + CBY / 20), wei(CBY / 2));
        let data = json!({"required": required, "available": available});
        events.push(event(56, 1, "TimerCancelledInsufficientFunds", data));
    }
    Timer {
        timer_id: hash(1),
        name: None,
        actor: Text(actor()),
        actor_name: None,
        height: 50,
        tier: waits.then_some(if scheduled { TimerTier::Ring } else { TimerTier::CarryOver }),
        status,
        scheduled_at: 43,
        expires_at: 1_050,
        fired_at: fired.then_some(56),
        ended_at: (!waits).then_some(56),
        handler: "handle_timer".to_owned(),
        payload: Text(Bytes(b"hello".to_vec())),
        payload_text: Some("hello".to_owned()),
        fee_payer: Text(actor()),
        gas_limit: 250_000,
        cell_limit: 50_048,
        promised: None,
        max_fee_per_cycle: wei(2_000),
        max_priority_fee_per_cycle: wei(7),
        gba: None,
        bid: None,
        max_cost: waits.then(|| wei(CBY / 4)),
        payer_balance: wei(CBY / 2),
        deferrals: if scheduled {
            vec![]
        } else {
            vec![
                deferral(50, 50, DeferralReason::LaneFull, "its priority of 7 wei was below 9"),
                deferral(
                    51,
                    55,
                    DeferralReason::PricedOut,
                    "a cycle cost 2,100 wei, its cap is 2,000",
                ),
            ]
        },
        deferred_blocks: if scheduled { 0 } else { 6 },
        charged: fired.then(|| TimerCharge {
            burned_cycle: wei(1_200_000),
            burned_lane: wei(2_280_000),
            tip: wei(8_400),
            cells: wei(40_000),
            refunded: wei(CBY / 5),
        }),
        cycles: fired.then_some(1_200),
        cells: fired.then_some(40),
        result: (status == TimerStatus::Fired).then(|| json!({"n": 1})),
        result_bytes: None,
        error: (status == TimerStatus::Failed).then(|| "ActorError: no (at 3:5)".to_owned()),
        log: vec![],
        events,
    }
}

fn summary(id: u8, status: TimerStatus) -> TimerSummary {
    let timer = timer(status);
    TimerSummary {
        timer_id: hash(id),
        name: (id == 1).then(|| "nightly".to_owned()),
        actor: timer.actor,
        actor_name: (id == 1).then(|| "beat".to_owned()),
        height: timer.height,
        expires_at: timer.expires_at,
        handler: timer.handler,
        status,
        tier: timer.tier,
        fired_at: timer.fired_at,
        fee_payer: timer.fee_payer,
        gas_limit: timer.gas_limit,
        cell_limit: timer.cell_limit,
        max_fee_per_cycle: timer.max_fee_per_cycle,
        max_priority_fee_per_cycle: timer.max_priority_fee_per_cycle,
    }
}

fn lane(height: u64) -> LaneBlock {
    LaneBlock {
        height,
        policy: "eip1559".to_owned(),
        cycle_price: wei(2_000 + 125 * u128::from(height - 40)),
        lane_basefee: wei(1_000 + 125 * u128::from(height - 40)),
        capacity: 200_000,
        consumed: 187_500,
        utilisation_per_mille: 937,
        cell_capacity: 1_000_000,
        cells: 4_000,
        asked: 3,
        questions: wei(60_000),
        fired: 12,
        deferred: 30,
        priced_out: 2,
        over_cap: 1,
        expired: 0,
        insolvent: 1,
        p50_tip: wei(7),
        least_priority: Some(wei(5)),
    }
}

fn queue() -> TimerQueue {
    let bucket = |at, timers| TimerBucket { at, timers };
    TimerQueue {
        height: 42,
        epoch: 0,
        epoch_blocks: 3_600,
        root: hash(8),
        timers: 133,
        ring: (50..75).map(|height| bucket(height, 4)).collect(),
        epochs: vec![bucket(2, 3), bucket(700, 1)],
        overflow: 2,
        carry_over: 27,
    }
}

fn due() -> DueTimers {
    let timer = |n, rank, next, outlook: &str| DueTimer {
        timer_id: hash(n),
        actor: Text(actor()),
        height: 40,
        rank,
        weight_per_mille: Some(1_500),
        effective_tip: Some(wei(7)),
        max_cost: wei(90_000_000),
        agent: AgentState::NotAsked,
        gba: Some(Text(Address([0xad; 20]))),
        not_asked: rank.is_none().then(|| "the timer's payer cannot pay for the fire".to_owned()),
        reason: Some(DeferralReason::LaneFull),
        explanation: Some("12 others came first".to_owned()),
        next,
        outlook: outlook.to_owned(),
    };
    DueTimers {
        height: 43,
        policy: "gba-auction".to_owned(),
        capacity: 200_000,
        cell_capacity: 1_000_000,
        cycle_price: wei(1_000),
        due: 31,
        ranked: 30,
        timers: vec![
            timer(1, Some(1), DueFate::Fires, "there is room for it"),
            timer(2, None, DueFate::InsufficientFunds, "its payer has 0 CBY: it waits for funds"),
        ],
        next: Some(2),
    }
}

fn quote() -> TimerQuote {
    TimerQuote {
        timer_id: hash(1),
        actor: Text(actor()),
        gba: Text(Address([0xad; 20])),
        height: 43,
        policy: "eip1559".to_owned(),
        not_asked: Some("the timer is not due in that block".to_owned()),
        context: GbaContext {
            trigger_block_height: 50,
            current_block_height: 43,
            basefee_cycle: wei(1_000),
            basefee_cell: wei(1_000),
            basefee_lane_timer: wei(400),
            last_block_cycle_usage: 21_000,
            previous_block_p50_priority_tip_per_cycle: wei(7),
            owner_actor_balance: wei(5_000_000_000),
        },
        success: false,
        error: Some("ActorError: fail: no bid today (at 3:9)".to_owned()),
        bid: TimerBid {
            max_fee_per_cycle: wei(800),
            max_priority_fee_per_cycle: wei(7),
            failed: true,
        },
        cycles: 340,
        paid_cycles: 1_000,
        cost: wei(1_400_000),
        cycle_price: wei(1_400),
        effective_tip: Some(wei(7)),
        weight_per_mille: Some(2_000),
        rank: Some(3),
        ranked: 12,
        max_cost: wei(90_000_000),
        next: DueFate::Fires,
        outlook: "there is room for it".to_owned(),
    }
}

fn burned() -> Burned {
    Burned {
        height: 42,
        total: wei(2_000_000_000),
        transactions: wei(1_500_000_000),
        timers: wei(400_000_000),
        questions: wei(100_000_000),
        callbacks: wei(0),
        penalties: wei(0),
        lane_basefee: wei(200_000_000),
    }
}

fn fairness() -> Fairness {
    let member = |byte, recent, weight_per_mille| FairnessMember {
        account: Text(Address([byte; 20])),
        recent,
        weight_per_mille,
    };
    Fairness {
        height: 42,
        policy: "eip1559".to_owned(),
        scope: "actor".to_owned(),
        window_blocks: 1_000,
        twice_median: 15,
        members: vec![member(0xac, 12, 1_000), member(0xad, 3, 1_600)],
    }
}

fn parameter(key: &str, value: u64) -> GovernedParameter {
    GovernedParameter {
        key: key.to_owned(),
        name: field_of(key),
        value: Setting::Number(value),
        genesis: Setting::Number(2_000_000),
        unit: "cycles".to_owned(),
        source: "CIP-5".to_owned(),
        min: Some(1),
        max: Some(1_000_000_000),
        choices: Vec::new(),
        since: None,
        pending: Vec::new(),
        about: "cycles per block for firing timers".to_owned(),
    }
}

fn phase() -> GovernedParameter {
    let word = |word: &str| Setting::Word(word.to_owned());
    GovernedParameter {
        key: "migration.phase".to_owned(),
        name: field_of("migration.phase"),
        value: word("shadow"),
        genesis: word("hot-path"),
        unit: "word".to_owned(),
        source: "CIP-11 §14".to_owned(),
        min: None,
        max: None,
        choices: ["shadow", "hot-path", "sunset"].map(str::to_owned).to_vec(),
        since: Some(12),
        pending: Vec::new(),
        about: "the role of presence and polling: shadow, hot-path or sunset".to_owned(),
    }
}

fn policy() -> GovernedParameter {
    let word = |word: &str| Setting::Word(word.to_owned());
    let pending = |height, to: &str| PendingSetting { height, value: word(to), by: None };
    GovernedParameter {
        key: "system:cip1:policy".to_owned(),
        name: field_of("system:cip1:policy"),
        value: word("eip1559"),
        source: "CIP-1".to_owned(),
        genesis: word("eip1559"),
        choices: ["eip1559", "fifo", "gba-auction"].map(str::to_owned).to_vec(),
        since: Some(0),
        pending: vec![pending(60, "fifo"), pending(90, "gba-auction")],
        about: "how due timers compete".to_owned(),
        ..phase()
    }
}

fn parameters() -> Vec<GovernedParameter> {
    [
        ("system:cip1:priority_tier_multipliers.fast", 1_500),
        ("system:cip5:lane_timer_cycles", 400_000),
        ("system:cip5:max_cycles_per_fire", 550_000),
        ("system:other:max_cycles_per_fire", 1),
    ]
    .map(|(key, value)| parameter(key, value))
    .into_iter()
    .chain([policy(), phase()])
    .collect()
}

/// The API of a devnet with an actor whose timer has this status.
fn with_timer(request: &Request, status: TimerStatus) -> Answer {
    let line = request.line.as_str();
    let id = hash(1).to_string();
    let (one, short) = (format!("GET /v1/timers/{id}"), format!("GET /v1/timers/{}", &id[..10]));
    let full = format!("GET /v1/actors/{}?limit=1", Text(actor()));
    match line {
        "POST /v1/transactions" => {
            let body: TransactionRequest = serde_json::from_str(&request.body).unwrap();
            let signed = SignedTransaction::from_bytes(&body.transaction).unwrap();
            Answer::json(&TransactionAccepted { hash: Text(signed.hash()), known: false })
        }
        "GET /v1/actors/0xac?limit=1" => Answer::json(&shown_actor()),
        _ if line == full => Answer::json(&shown_actor()),
        "GET /v1/timers?limit=100" => {
            Answer::json(&[summary(1, TimerStatus::Due), summary(2, TimerStatus::Scheduled)])
        }
        "GET /v1/timers?all=true&limit=5&status=fired&actor=0xac"
        | "GET /v1/timers?actor=0xac&all=true&limit=5&status=fired" => {
            Answer::json(&[summary(3, TimerStatus::Fired)])
        }
        _ if line == one || line == short => Answer::json(&timer(status)),
        "GET /v1/timers/queue" => Answer::json(&queue()),
        "GET /v1/timers/due?limit=20&offset=0" => Answer::json(&due()),
        _ if line == format!("{one}/bid") => Answer::json(&quote()),
        "GET /v1/chain/burned" => Answer::json(&burned()),
        "GET /v1/timers/fees?limit=60" => Answer::json(&[lane(40), lane(41), lane(42)]),
        "GET /v1/timers/fees?from=41&limit=1" => Answer::json(&[lane(41)]),
        "GET /v1/timers/fairness" => Answer::json(&fairness()),
        "GET /v1/chain/governance" => Answer::json(&parameters()),
        _ if line.starts_with("GET /v1/accounts/0x") => Answer::json(&account("governance")),
        _ => match line.strip_prefix("GET /v1/chain/transactions/") {
            Some(hash) => Answer::json(&Transaction {
                kind: "schedule_timer".to_owned(),
                events: vec![scheduled_event(43)],
                ..transaction(hash.parse().unwrap(), TransactionStatus::Success)
            }),
            None => answer(request),
        },
    }
}

pub fn fake(status: TimerStatus) -> Fake {
    Fake::new(move |request| with_timer(request, status))
}

fn sent(fake: &Fake) -> SignedTransaction {
    let posted = fake.requests().into_iter().rfind(|r| r.line == "POST /v1/transactions").unwrap();
    let body: TransactionRequest = serde_json::from_str(&posted.body).unwrap();
    SignedTransaction::from_bytes(&body.transaction).unwrap()
}

fn scheduled(fake: &Fake) -> TimerRequest {
    let signed = sent(fake);
    assert_eq!(signed.sender().unwrap(), sender(), "the actor's deployer");
    let Payload::ScheduleTimer(request) = &signed.transaction.payload else { panic!("{signed:?}") };
    (**request).clone()
}

#[test]
fn tables_read_well() {
    let id = hash(1).to_string();
    let mut all = String::new();
    for (status, args) in [
        (TimerStatus::Due, &["timer", "ls"][..]),
        (TimerStatus::Due, &["timer", "show", &id]),
        (TimerStatus::Fired, &["timer", "show", &id[..10]]),
        (TimerStatus::Due, &["timer", "queue"]),
        (TimerStatus::Due, &["timer", "bid", &id]),
        (TimerStatus::Due, &["chain", "burned"]),
        (TimerStatus::Due, &["timer", "fees"]),
        (TimerStatus::Due, &["timer", "fairness"]),
        (TimerStatus::Scheduled, &["timer", "schedule", "0xac", "--in", "7"]),
        (TimerStatus::Fired, &["timer", "schedule", "0xac", "--in", "7", "--wait"]),
        (TimerStatus::Scheduled, &["timer", "extend", &id, "+100"]),
        (TimerStatus::Fired, &["timer", "watch", &id]),
        (TimerStatus::Due, &["chain", "params", "get"]),
        (TimerStatus::Due, &["chain", "params", "get", "fast"]),
        (TimerStatus::Due, &["chain", "params", "get", "migration.phase"]),
        (TimerStatus::Due, &["chain", "params", "get", "policy"]),
        (TimerStatus::Due, &["chain", "params", "set", "lane_timer_cycles", "300000"]),
        (TimerStatus::Due, &["chain", "params", "set", "fast=9", "policy=fifo", "--at", "60"]),
    ] {
        let printed = fake(status).folder.prints(args);
        // A transaction's hash is deterministic because every run has the same key.
        all += &format!("$ cowboyctl {}\n{printed}\n", args.join(" "));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn documents_have_the_fields_that_scripts_rely_on() {
    let id = hash(1).to_string();
    let json = |status, args: &[&str]| -> Value {
        let text = fake(status).folder.prints(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap()
    };
    let check = |value: &Value, fields: &str| {
        for field in fields.split(' ') {
            assert!(value.get(field).is_some(), "no {field} in {value}");
        }
    };
    let told = json(TimerStatus::Scheduled, &["timer", "schedule", "0xac", "--at", "50"]);
    let fields = "timer_id height expires_at max_fee_per_cycle max_priority_fee_per_cycle";
    check(&told, fields);
    assert_eq!(
        (&told["timer_id"], &told["max_fee_per_cycle"]),
        (&id.clone().into(), &"2000".into())
    );
    assert!(told.get("status").is_none(), "{told}");
    let waited = json(TimerStatus::Fired, &["timer", "schedule", "0xac", "--at", "50", "--wait"]);
    check(&waited, fields);
    shape::seen(&["timer schedule"]);
    assert_eq!((&waited["status"], &waited["fired_at"]), (&"fired".into(), &56.into()));
    let shown = json(TimerStatus::Fired, &["timer", "show", &id]);
    check(&shown, "timer_id actor height tier status fired_at deferrals charged");
    check(&shown["charged"], "burned_cycle burned_lane tip cells refunded");
    let fees = json(TimerStatus::Due, &["timer", "fees"]);
    let fields =
        "height lane_basefee consumed utilisation_per_mille fired deferred expired p50_tip";
    check(&fees[0], fields);
}

#[test]
fn quiet_prints_what_a_script_needs() {
    let fake = fake(TimerStatus::Scheduled);
    let folder = &fake.folder;
    let id = hash(1).to_string();
    let line = format!("{id}\n");
    assert_eq!(folder.prints(&["-q", "timer", "schedule", "0xac", "--in", "9"]), line);
    assert_eq!(folder.prints(&["-q", "timer", "ls"]), format!("{id}\n{}\n", hash(2)));
    assert_eq!(folder.prints(&["-q", "timer", "show", &id]), line);
    assert_eq!(folder.prints(&["-q", "timer", "cancel", &id[..10]]), line);
    let args = ["-q", "chain", "params", "get", "lane_timer_cycles"];
    assert_eq!(folder.prints(&args), "400000\n");
    let args = ["timer", "ls", "--actor", "0xac", "--status", "fired", "--all", "--limit", "5"];
    assert_eq!(folder.prints(&[&["-q"], &args[..]].concat()), format!("{}\n", hash(3)));
    assert_eq!(folder.prints(&["-q", "timer", "fees", "--from", "41", "--limit", "1"]), "41\n");
}

#[test]
fn what_is_left_out_is_the_chains_to_fill() {
    let fake = fake(TimerStatus::Scheduled);
    fake.folder.prints(&["timer", "schedule", "0xac", "--in", "7"]);
    let expected =
        TimerRequest { actor: actor(), height: Height::new(50), ..TimerRequest::default() };
    assert_eq!(scheduled(&fake), expected, "the head is 42, the next block schedules");
}

#[test]
fn a_transaction_that_came_too_late_is_sent_again_for_a_later_block() {
    let late = |hash: HashText| Transaction {
        error: Some("HeightNotInFuture".to_owned()),
        message: Some("HeightNotInFuture: a timer fires at 51 at the earliest".to_owned()),
        ..transaction(hash, TransactionStatus::Failed)
    };
    let asked = AtomicUsize::new(0);
    let fake =
        Fake::new(move |request| match request.line.strip_prefix("GET /v1/chain/transactions/") {
            Some(hash) if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
                Answer::json(&late(hash.parse().unwrap()))
            }
            _ => with_timer(request, TimerStatus::Scheduled),
        });
    fake.folder.prints(&["timer", "schedule", "0xac", "--in", "7"]);
    assert_eq!(scheduled(&fake).height, Height::new(51));
    let sent = fake.requests().into_iter().filter(|r| r.line == "POST /v1/transactions").count();
    assert_eq!(sent, 2);
}

#[test]
fn every_option_is_said_to_the_chain() {
    let fake = fake(TimerStatus::Scheduled);
    fs::write(fake.folder.path("payload"), [0, 255]).unwrap();
    fake.folder.prints(&[
        "timer",
        "schedule",
        "0xac",
        "--at",
        "+9",
        "--payload",
        "@payload",
        "--handler",
        "handle_every",
        "--gas-limit",
        "5000",
        "--payer",
        "sender",
        "--expires",
        "+20",
        "--max-fee",
        "3000",
        "--tier",
        "urgent",
        "--gba",
        "0xac",
        "--cells",
        "6400",
        "--timer-allowance",
        "2cby",
        "--from",
        "dev-0",
    ]);
    assert_eq!(sent(&fake).transaction.timer_allowance, Some(Wei::cby(2)));
    let expected = TimerRequest {
        actor: actor(),
        height: Height::new(51),
        payload: vec![0, 255],
        handler: Some("handle_every".to_owned()),
        fee_payer: Some(sender()),
        gas_limit: Some(5_000),
        cell_limit: Some(6_400),
        expires_at: Some(Height::new(62)),
        max_fee_per_cycle: Some(Wei::new(3_000)),
        max_priority_fee_per_cycle: None,
        tier: Some(Tier::Urgent),
        gba: Some(actor()),
        bid: false,
    };
    assert_eq!(scheduled(&fake), expected);
}

#[test]
fn a_timer_that_comes_again_says_how_often() {
    let fake = fake(TimerStatus::Scheduled);
    fake.folder.prints(&["timer", "schedule", "0xac", "--every", "5", "--payload", "thump"]);
    let request = scheduled(&fake);
    assert_eq!(request.height, Height::new(48));
    assert_eq!(request.handler.as_deref(), Some("handle_every"));
    let terms: Value = serde_json::from_slice(&request.payload).unwrap();
    assert_eq!(terms, json!({"every": 5, "payload": "thump"}));
}

#[test]
fn what_cannot_be_is_refused_before_it_costs_a_fee() {
    let fake = fake(TimerStatus::Scheduled);
    let folder = &fake.folder;
    let args = ["timer", "schedule", "0xac", "--in", "5", "--handler", "tick"];
    insta::assert_snapshot!(folder.fails(3, &args), @r"
    error: actor 0xacacacacacacacacacacacacacacacacacacacac has no handler `tick`
      it has: handle_timer, handle_every
      say which is to be called: --handler NAME
    ");
    let args = ["timer", "schedule", "0xac", "--every", "5", "--handler", "tick"];
    insta::assert_snapshot!(folder.fails(3, &args), @r"
    error: actor 0xacacacacacacacacacacacacacacacacacacacac has no handler `tick`
      a timer fires once: to come again, its handler has to schedule the next one
      how: examples/actors/heartbeat.star; or name another with --handler
    ");
    // The handler that an envelope selects has to exist, too.
    let envelope = r#"{"_handler": "tock", "_payload": "aGVsbG8="}"#;
    let args = ["timer", "schedule", "0xac", "--in", "5", "--payload", envelope];
    assert!(folder.fails(3, &args).contains("has no handler `tock`"));
    let args = ["chain", "params", "set", "lane_timer_cycles", "0"];
    insta::assert_snapshot!(folder.fails(6, &args), @"
    error: ParameterOutOfRange: system:cip5:lane_timer_cycles is from 1 to 1000000000, not 0
    ");
    insta::assert_snapshot!(folder.fails(2, &["chain", "params", "get", "max_cycles_per_fire"]), @r"
    error: several parameters end with `max_cycles_per_fire`: system:cip5:max_cycles_per_fire, system:other:max_cycles_per_fire
      give more of the key
    ");
    insta::assert_snapshot!(folder.fails(3, &["chain", "params", "get", "cycles"]), @"
    error: UnknownParameter: no parameter is or ends with `cycles`
      known: timers.priority_tier_multipliers.fast, timers.lane_timer_cycles, timers.max_cycles_per_fire, timers.max_cycles_per_fire, timers.policy, migration.phase
      list them: cowboyctl chain params get
    ");
    assert!(fake.requests().iter().all(|r| r.line != "POST /v1/transactions"));
    for args in [
        &["timer", "schedule", "0xac"][..],
        &["timer", "schedule", "0xac", "--in", "0"],
        &["timer", "schedule", "0xac", "--in", "1", "--at", "9"],
        &["timer", "schedule", "0xac", "--in", "1", "--tier", "fast", "--max-priority", "1"],
        &["timer", "schedule", "0xac", "--in", "1", "--payer", "nobody"],
        &["timer", "watch", "0x01", "--actor", "0xac"],
        &["timer", "ls", "--status", "gone"],
    ] {
        folder.fails(2, args);
    }
}

#[test]
fn a_deployer_without_a_key_here_is_named() {
    let fake = Fake::new(|request| match request.line.as_str() {
        "GET /v1/actors/0xac?limit=1" => {
            let deployer = Text(Address([0xdd; 20]));
            Answer::json(&Actor { deployer, deployer_name: None, ..shown_actor() })
        }
        _ => with_timer(request, TimerStatus::Scheduled),
    });
    let refused = fake.folder.fails(3, &["timer", "schedule", "0xac", "--in", "5"]);
    let begin = "error: the key of the actor's deployer 0xdddddddddddddddddddddddddddddddddddddddd";
    assert!(refused.starts_with(begin), "{refused}");
}

#[test]
fn what_a_payer_lacks_is_said_at_once() {
    let fake = Fake::new(|request| {
        let id = format!("GET /v1/timers/{}", hash(1));
        match request.line.as_str() {
            line if line == id => {
                Answer::json(&Timer { payer_balance: wei(5), ..timer(TimerStatus::Scheduled) })
            }
            _ => with_timer(request, TimerStatus::Scheduled),
        }
    });
    let outcome = fake.folder.run(&["-q", "timer", "schedule", "0xac", "--in", "5"]);
    assert_eq!((outcome.code, outcome.stdout), (0, format!("{}\n", hash(1))));
    assert!(
        outcome.stderr.lines().count() == 1
            && outcome.stderr.contains("may cost 0.25 CBY")
            && outcome.stderr.contains("cowboyctl account fund 0xacacacac"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_timer_that_no_lane_has_room_for_is_told_of() {
    let fake = Fake::new(|request| match request.line.as_str() {
        "GET /v1/chain/governance" => {
            Answer::json(&[parameter("system:cip5:lane_timer_cycles", 100_000)])
        }
        _ => with_timer(request, TimerStatus::Scheduled),
    });
    let outcome = fake.folder.run(&["-q", "timer", "schedule", "0xac", "--in", "5"]);
    assert_eq!((outcome.code, outcome.stdout), (0, format!("{}\n", hash(1))));
    let told = "it asks for 250000 cycles, and the lane has 100000 a block";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

#[test]
fn a_wait_ends_as_the_timer_does() {
    let args = ["-q", "timer", "schedule", "0xac", "--in", "5", "--wait"];
    let id = hash(1);
    let check = |status, code, what: &str| {
        let error = fake(status).folder.fails(code, &args);
        // The wait may end before the payer's balance is read.
        let poor = error.contains("may cost 1.05 CBY: it would be removed when it is due");
        assert_eq!(poor, status == TimerStatus::InsufficientFunds, "{error}");
        let more = match poor {
            true => format!(
                "0.55 CBY are missing\n  give it some: cowboyctl account fund {} 2cby",
                Text(actor())
            ),
            false => format!("see why: cowboyctl timer show {id}"),
        };
        assert!(error.ends_with(&format!("error: {what}\n  {more}\n")), "{error}");
        assert_eq!(error.lines().count(), 2 + 2 * usize::from(poor), "{error}");
    };
    check(TimerStatus::Failed, 6, "ActorError: no (at 3:5)");
    check(TimerStatus::Expired, 6, "TimerExpired: it did not fire by 1050");
    let poor =
        format!("TimerCancelledInsufficientFunds: {} could not pay for the fire", Text(actor()));
    check(TimerStatus::InsufficientFunds, 6, &poor);
    check(TimerStatus::Cancelled, 1, "it was cancelled");
    let fake = fake(TimerStatus::Due);
    let late = fake.folder.fails(5, &[&args[..], &["--timeout", "300ms"]].concat());
    assert!(late.contains("last seen: due since 50, priced out in block 55"), "{late}");
}

#[test]
fn governors_cancel_any_timer() {
    let fake = fake(TimerStatus::Due);
    let id = hash(1).to_string();
    fake.folder.prints(&["timer", "cancel", &id, "--system"]);
    let signed = sent(&fake);
    assert!(matches!(signed.transaction.payload, Payload::SysCancelTimer(_)), "{signed:?}");
    assert_eq!(signed.sender().unwrap(), *account("governance").address);
    fake.folder.prints(&["timer", "extend", &id, "99", "--system"]);
    let signed = sent(&fake);
    let Payload::SysExtendTimer(extend) = &signed.transaction.payload else { panic!("{signed:?}") };
    assert_eq!(extend.expires_at, Height::new(99));
    fake.folder.prints(&["timer", "cancel", &id]);
    assert!(matches!(sent(&fake).transaction.payload, Payload::CancelTimer(_)));
    fake.folder.prints(&["chain", "params", "set", "fast", "1600"]);
    let signed = sent(&fake);
    let Payload::SetParameter(set) = &signed.transaction.payload else { panic!("{signed:?}") };
    assert_eq!(
        (set.key.as_str(), set.value),
        ("system:cip1:priority_tier_multipliers.fast", 1_600)
    );
    fake.folder.prints(&["chain", "params", "set", "phase", "sunset"]);
    let signed = sent(&fake);
    assert_eq!(signed.transaction.payload, Payload::SetPhase(SetPhase { phase: Phase::Sunset }));
    let refused = fake.folder.fails(2, &["chain", "params", "set", "migration.phase", "dusk"]);
    assert!(refused.contains("`dusk` is not a migration phase"), "{refused}");
    let args =
        ["chain", "params", "set", "policy=gba-auction", "lane_timer_cycles=7", "--at", "+9"];
    let set: Value =
        serde_json::from_str(&fake.folder.prints(&[&args[..], &["-o", "json"]].concat())).unwrap();
    assert_eq!(set["changes"][0]["value"], "gba-auction");
    assert_eq!(set["changes"][1]["before"], 400_000);
    let Payload::SysUpdateTimerConfig(update) = sent(&fake).transaction.payload.clone() else {
        panic!("{set}")
    };
    assert_eq!((update.height.map(Height::get), update.settings.len()), (set["from"].as_u64(), 2));
    assert_eq!(
        update.settings[0],
        ProposedValue { key: "system:cip1:policy".to_owned(), value: 2 }
    );
    let refused = fake.folder.fails(2, &["chain", "params", "set", "fast", "more"]);
    assert!(refused.contains("expected a number"), "{refused}");
}

#[test]
fn topologies_of_the_examples_hold() {
    let folder = Folder::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/topologies");
    let mut files: Vec<_> = fs::read_dir(examples).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 8);
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let plan = folder.prints(&["devnet", "validate", file.to_str().unwrap(), "-o", "json"]);
        let plan: Value = serde_json::from_str(&plan).unwrap();
        assert_eq!(plan["name"], name, "{plan}");
        // All but three topologies have competing timers.
        let others = ["ahead", "jobs", "speculation"].contains(&name.as_str());
        let lane = if others { 2_000_000 } else { 200_000 };
        assert_eq!(plan["timers"]["lane_timer_cycles"], lane, "{plan}");
    }
}
