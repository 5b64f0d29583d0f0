//! Gas bidding agents: when a timer needs one, what it is asked, and what can be predicted.

use super::*;
use crate::chain::{
    AgentTrial, Fate, Outlook, Prospect, QuoteError, Unasked, dry_run_agent,
    event::{AgentsAsked, TimerExtended},
    outlook, quote,
};
use std::collections::BTreeMap;

fn refusal(receipt: &Receipt) -> &str {
    receipt.status.error().expect("it is refused")
}

#[test]
fn under_gba_auction_every_timer_names_an_agent() {
    let mut chain = policy(Policy::GbaAuction);
    let clock = chain.clock();
    let at = chain.here() + 20;
    let error = chain.refused("alice", Payload::ScheduleTimer(Arc::new(request(clock, at, ""))));
    assert!(error.starts_with("GbaRequired: ") && error.contains("default_gba"), "{error}");
    let call = calling(clock, "schedule", r#"{"in": 5}"#, Wei::ZERO);
    let signed = metered(&chain, "alice", call, BUDGET);
    let error = refusal(&chain.push(vec![signed]).receipts[0]).to_owned();
    assert!(error.contains("GbaRequired: ") && error.contains("schedule"), "{error}");
    assert!(chain.state.timers().is_empty());

    let agent = chain.agent(3);
    let id = chain.schedule(TimerRequest { gba: Some(agent), ..request(clock, at, "") });
    chain.call(clock, "schedule", &format!(r#"{{"in": 5, "gba": "{agent}"}}"#));
    let fires = chain.until(at);
    assert_eq!(fires.len(), 2);
    assert_eq!((fires[1].timer_id, fires[1].priority_per_cycle), (id, Wei::new(3)));
}

/// A timer that fires and schedules the next one must name the agent again.
#[test]
fn a_fire_that_schedules_without_an_agent_fails_under_gba_auction() {
    let mut chain = policy(Policy::GbaAuction);
    let (clock, agent) = (chain.clock(), chain.agent(1));
    let at = chain.here() + 4;
    chain.schedule(TimerRequest { gba: Some(agent), ..request(clock, at, "again 2") });
    let fires = chain.until(at);
    assert!(refused_fire(&fires[0]).contains("GbaRequired"), "{fires:?}");
    chain.call(clock, "bid_by", &agent.to_string());
    let at = chain.here() + 4;
    chain.schedule(TimerRequest { gba: Some(agent), ..request(clock, at, "again 2") });
    assert_eq!(chain.until(at + 4).len(), 3);
}

fn refused_fire(fire: &Fire) -> &str {
    fire.status.error().expect("its handler failed")
}

#[test]
fn timers_from_before_gba_auction_bid_their_own_fees() {
    let mut chain = with(|params| {
        params.timers.policy = Policy::Eip1559;
        let height = Height::new(20);
        params.timers.activation = Some(Activation { policy: Policy::GbaAuction, height });
    });
    let (clock, agent) = (chain.clock(), chain.agent(5));
    let own = |tip| TimerRequest {
        max_fee_per_cycle: Some(Wei::new(1_000_000)),
        max_priority_fee_per_cycle: Some(Wei::new(tip)),
        ..request(clock, 25, "own")
    };
    let [dear, cheap] = [own(9), own(1)].map(|request| chain.schedule(request));
    let asked = chain.schedule(TimerRequest { gba: Some(agent), ..request(clock, 25, "asked") });
    chain.until(20);
    let error = chain.refused("alice", Payload::ScheduleTimer(Arc::new(own(7))));
    assert!(error.starts_with("GbaRequired: "), "{error}");
    let fires = chain.until(25);
    let paid: Vec<_> =
        fires.iter().map(|fire| (fire.timer_id, fire.priority_per_cycle.get())).collect();
    assert_eq!(paid, [(dear, 9), (asked, 5), (cheap, 1)]);
}

#[test]
fn fires_under_gba_auction_count_for_fairness() {
    let mut chain = with(|params| {
        params.timers.policy = Policy::GbaAuction;
        params.timers.config.fairness_window_blocks = 10;
    });
    let (clock, agent) = (chain.clock(), chain.agent(1));
    let at = chain.here() + 5;
    for n in 0..3 {
        chain.schedule(TimerRequest { gba: Some(agent), ..request(clock, at + n, "x") });
    }
    assert_eq!(chain.until(at + 2).len(), 3);
    assert_eq!(chain.state.fairness().recent(&clock), 3);
    // Fires outside the window are forgotten.
    chain.until(at + 12);
    assert_eq!(chain.state.fairness().recent(&clock), 1);
}

#[test]
fn set_timeout_names_the_agent_and_counts_blocks() {
    for policy in [Policy::Eip1559, Policy::GbaAuction] {
        let mut chain = super::policy(policy);
        let (clock, agent) = (chain.clock(), chain.agent(2));
        let args = format!(
            r#"{{"blocks": 3, "gba": "{agent}", "payload": "later", "gas_limit": 90000,
                 "cell_limit": 640}}"#
        );
        let receipt = chain.call(clock, "timeout", &args);
        // One timer, and no read from the store.
        assert_eq!((receipt.usage.effects, receipt.usage.storage), (200, 0));
        let [timer] = chain.state.timers().iter().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((timer.gba, timer.height.get()), (Some(agent), chain.here() + 3));
        assert_eq!((timer.payload.as_slice(), timer.gas_limit), (&b"later"[..], 90_000));
        assert_eq!((timer.cell_limit, timer.fee_payer, timer.promised), (640, clock, None));
        let fires = chain.until(timer.height.get());
        assert_eq!((fires.len(), fires[0].priority_per_cycle), (1, Wei::new(2)), "{policy}");
        for (args, expected) in [
            (r#"{"blocks": 3}"#.to_owned(), "needs the agent that bids for the timer"),
            (format!(r#"{{"blocks": 0, "gba": "{agent}"}}"#), "HeightNotInFuture"),
            (format!(r#"{{"blocks": -1, "gba": "{agent}"}}"#), "blocks must be an int from 0"),
            (r#"{"blocks": 3, "gba": "0x12"}"#.to_owned(), "gba must be an address"),
            (format!(r#"{{"blocks": {}, "gba": "{agent}"}}"#, u64::MAX), "ExpiryOutOfRange"),
        ] {
            let call = calling(clock, "timeout", &args, Wei::ZERO);
            let signed = metered(&chain, "alice", call, BUDGET);
            let error = refusal(&chain.push(vec![signed]).receipts[0]).to_owned();
            assert!(error.contains(expected), "{args}: {error}");
        }
    }
}

#[test]
fn events_about_a_timer_name_its_owner() {
    let mut chain = chain();
    let clock = chain.clock();
    let at = chain.here() + 50;
    let clamped = TimerRequest {
        gas_limit: Some(300_000),
        max_priority_fee_per_cycle: Some(Wei::new(u128::from(u64::MAX))),
        ..request(clock, at, "x")
    };
    let execution = chain.one("alice", Payload::ScheduleTimer(Arc::new(clamped)));
    let id = scheduled(&execution)[0];
    let extend = transaction::ExtendTimer {
        timer_id: id,
        expires_at: chain.state.timer(&id).unwrap().expires_at.next(),
    };
    let extended = chain.one("alice", Payload::ExtendTimer(extend));
    let about = execution.events.iter().chain(&extended.events);
    let told: Vec<_> = about
        .filter(|event| event.timer_id() == Some(id))
        .map(|event| (event.kind.name(), event.actor()))
        .collect();
    let names = [
        "TimerScheduled",
        "TimerPriorityClampedAtSchedule",
        "TimerExceedsAuctionCap",
        "TimerExtended",
    ];
    assert_eq!(told, names.map(|name| (name, Some(clock))));
    let of = |event: &&Event| matches!(event.kind, EventKind::TimerExtended(TimerExtended { .. }));
    assert!(extended.events.iter().any(|event| of(&event)));
}

/// Due timers of every sort, under each policy: the outlook matches the next block.
#[test]
fn the_outlook_is_what_the_next_block_does() {
    for policy in Policy::ALL {
        let mut chain = with(|params| {
            params.timers.policy = *policy;
            params.timers.config.lane_timer_cycles = 60_000;
        });
        let (rich, poor) = (chain.clock(), chain.deploy(CLOCK));
        let agents: Vec<_> = [1u128, 4, 9].into_iter().map(|tip| chain.agent(tip)).collect();
        let stingy = chain.deploy(&AGENT.replace("2 * context.basefee_lane_timer", "1"));
        let at = chain.here() + 40;
        let with = |actor, gas_limit, gba| TimerRequest {
            gas_limit: Some(gas_limit),
            gba: Some(gba),
            ..request(actor, at, "spin")
        };
        for n in 0..9 {
            chain.schedule(with(rich, 20_000 - 100 * n, agents[n as usize % 3]));
        }
        chain.schedule(with(poor, 20_000, agents[0]));
        chain.schedule(with(rich, 20_000, stingy));
        chain.schedule(with(rich, 400_000, agents[0]));
        chain.schedule(TimerRequest {
            expires_at: Some(Height::new(at)),
            ..with(rich, 60_000, stingy)
        });
        chain.until(at - 1);
        for block in 0..6 {
            let Outlook { height, timers, .. } = outlook(&chain.state, None);
            let due = chain.state.timers().len();
            assert_eq!((timers.len(), height.get()), (due, chain.here() + 1));
            let ranks: Vec<_> = timers.iter().filter_map(|timer| timer.rank).collect();
            assert_eq!(ranks, (1..=ranks.len() as u64).collect::<Vec<_>>());
            let execution = chain.push(vec![]);
            // The first questions change bids, which then stay the same.
            if block == 0 && *policy != Policy::Fifo {
                continue;
            }
            let fate = |id: &Hash| timers.iter().find(|of| of.timer.id == *id).unwrap().fate;
            let count =
                |is: fn(&Fate) -> bool| timers.iter().filter(|of| is(&of.fate)).count() as u64;
            let lane = &execution.lane;
            assert_eq!(count(|fate| *fate == Fate::PricedOut), lane.priced_out, "{policy}");
            assert_eq!(count(|fate| *fate == Fate::OverCap), lane.over_cap, "{policy}");
            assert_eq!(count(|fate| *fate == Fate::Expired), lane.expired, "{policy}");
            let unfunded = count(|fate| matches!(fate, Fate::Unfunded { .. }));
            let gone = if *policy == Policy::GbaAuction { 0 } else { lane.insolvent };
            assert!(unfunded >= gone && (*policy == Policy::GbaAuction || unfunded == gone));
            let fired: Vec<_> = execution.fires.iter().map(|fire| fire.timer_id).collect();
            let sure = timers.iter().filter(|of| of.fate == Fate::Fires);
            assert!(sure.clone().all(|of| fired.contains(&of.timer.id)), "{policy}");
            assert!(
                fired.iter().all(|id| { matches!(fate(id), Fate::Fires | Fate::LaneFull { .. }) })
            );
            for fire in &execution.fires {
                let of = timers.iter().find(|of| of.timer.id == fire.timer_id).unwrap();
                assert_eq!(of.priority, Some(fire.priority_per_cycle), "{policy}");
            }
            if *policy != Policy::GbaAuction {
                let turn = |id: &Hash| timers.iter().position(|of| of.timer.id == *id);
                assert!(fired.iter().map(turn).is_sorted(), "{policy}");
            }
        }
        assert!(chain.state.timers().len() <= 3, "{policy}: the others have fired");
    }
}

/// A quoted bid is what the agent bids, costs and yields in the next block.
#[test]
fn a_quote_is_what_the_next_block_asks() {
    for policy in [Policy::Eip1559, Policy::GbaAuction] {
        let mut chain = super::policy(policy);
        let (clock, agent) = (chain.clock(), chain.agent(4));
        let broken = chain.deploy(AGENT);
        chain.call(broken, "fail_from_now", "");
        let at = chain.here() + 6;
        let [asks, fails] = [agent, broken]
            .map(|gba| chain.schedule(TimerRequest { gba: Some(gba), ..request(clock, at, "x") }));
        let early = quote(&chain.state, &asks).unwrap();
        assert_eq!(early.prospect.unasked, Some(Unasked::NotDue));
        assert_eq!((early.prospect.rank, early.ranked), (Some(1), 1));
        chain.until(at - 1);
        let before = chain.state.clone();
        let [good, bad] = [asks, fails].map(|id| quote(&chain.state, &id).unwrap());
        assert_eq!(chain.state.root(), before.root());
        assert_eq!((good.height.get(), good.prospect.unasked), (at, None));
        assert_eq!(good.answer.as_ref().unwrap().max_priority_fee_per_cycle, Wei::new(4));
        assert_eq!((good.prospect.fate, good.ranked), (Fate::Fires, 2));
        let error = bad.answer.as_ref().unwrap_err().to_string();
        assert!(error.contains("no bid today"), "{error}");
        assert_eq!(bad.prospect.timer.bid.map(|bid| bid.failed), Some(true));

        let execution = chain.push(vec![]);
        let bids: BTreeMap<_, _> = execution.bids.iter().copied().collect();
        let bills: Vec<_> = execution
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::AgentsAsked(AgentsAsked { actor, timers, cycles, paid }) => {
                    Some((*actor, *timers, *cycles, *paid))
                }
                _ => None,
            })
            .collect();
        let cycles = good.paid_cycles + bad.paid_cycles;
        assert_eq!(bills, [(clock, 2, cycles, good.cost.saturating_add(bad.cost))]);
        for (id, quote) in [(asks, &good), (fails, &bad)] {
            assert_eq!(bids.get(&id).copied(), quote.prospect.timer.bid, "{policy}");
            let fire = execution.fires.iter().find(|fire| fire.timer_id == id).unwrap();
            assert_eq!(Some(fire.priority_per_cycle), quote.prospect.priority, "{policy}");
        }
        assert_eq!(quote(&chain.state, &asks).unwrap_err(), QuoteError::UnknownTimer(asks));
    }
    let mut chain = chain();
    let clock = chain.clock();
    let id = chain.schedule(request(clock, chain.here() + 9, ""));
    assert_eq!(quote(&chain.state, &id).unwrap_err(), QuoteError::NoAgent(id));
}

#[test]
fn why_an_agent_is_not_asked_is_told() {
    let why = |policy: Policy, make: fn(&mut Chain, Address) -> TimerRequest| {
        let mut chain = super::policy(policy);
        let agent = chain.agent(1);
        let request = make(&mut chain, agent);
        let at = request.height.get();
        let id = chain.schedule(request);
        chain.until(at - 1);
        let Outlook { timers, .. } = outlook(&chain.state, None);
        let [Prospect { unasked, .. }] = timers.as_slice() else { panic!("one is due") };
        assert_eq!(quote(&chain.state, &id).unwrap().prospect.unasked, *unasked);
        let execution = chain.push(vec![]);
        assert_eq!(execution.bids.len(), usize::from(unasked.is_none()));
        *unasked
    };
    let due = |chain: &mut Chain, agent| {
        let clock = chain.clock();
        TimerRequest { gba: Some(agent), ..request(clock, chain.here() + 4, "x") }
    };
    assert_eq!(why(Policy::GbaAuction, due), None);
    assert_eq!(why(Policy::Fifo, due), Some(Unasked::Policy));
    let over = |chain: &mut Chain, agent| {
        let clock = chain.clock();
        let gas_limit = Some(300_000);
        TimerRequest { gba: Some(agent), gas_limit, ..request(clock, chain.here() + 4, "x") }
    };
    assert_eq!(why(Policy::Eip1559, over), Some(Unasked::OverCap));
    let poor = |chain: &mut Chain, agent| {
        let clock = chain.deploy(CLOCK);
        TimerRequest { gba: Some(agent), ..request(clock, chain.here() + 4, "x") }
    };
    assert_eq!(why(Policy::GbaAuction, poor), Some(Unasked::Payer));
    let small = |chain: &mut Chain, agent| {
        let clock = chain.deploy(CLOCK);
        chain.fund(clock, Wei::new(5_000_000));
        let (gas_limit, cell_limit) = (Some(1_000), Some(64));
        TimerRequest {
            gba: Some(agent),
            gas_limit,
            cell_limit,
            ..request(clock, chain.here() + 4, "x")
        }
    };
    assert_eq!(why(Policy::GbaAuction, small), Some(Unasked::Owner));
}

#[test]
fn an_agent_is_tried_with_any_context() {
    let mut chain = chain();
    let agent = chain.deploy(AGENT);
    let owner = key("bob").address();
    let trial = |given| AgentTrial { owner, agent, given };
    let ran = dry_run_agent(&chain.state, &trial([None; 8]));
    let lane = chain.state.lane().basefee;
    let said = String::from_utf8(ran.result.unwrap()).unwrap();
    let cell = chain.state.basefee_cell();
    assert_eq!(
        said,
        format!(
            "{{\"max_fee_per_cycle\":{},\"max_priority_fee_per_cycle\":0,\
             \"max_fee_per_cell\":{cell},\"max_priority_fee_per_cell\":0}}",
            lane.saturating_mul(2)
        )
    );
    assert!(ran.usage.cycles() > 0);
    let mut given = [None; 8];
    (given[4], given[6]) = (Some(1_000), Some(77));
    let ran = dry_run_agent(&chain.state, &trial(given));
    let said = String::from_utf8(ran.result.unwrap()).unwrap();
    assert!(said.starts_with("{\"max_fee_per_cycle\":2000,\"max_priority_fee_per_cycle\":77,"));
    chain.call(agent, "fail_from_now", "");
    let ran = dry_run_agent(&chain.state, &trial([None; 8]));
    assert!(ran.result.unwrap_err().to_string().contains("no bid today"));
}

#[test]
fn what_is_burned_is_told_by_lane() {
    let mut chain = chain();
    let (clock, agent) = (chain.clock(), chain.agent(2));
    let at = chain.here() + 5;
    chain.schedule(TimerRequest { gba: Some(agent), ..request(clock, at, "x") });
    chain.until(at - 1);
    let before = chain.state.burned();
    assert_eq!(before.total(), chain.state.supply().burned);
    assert!(before.transactions > Wei::ZERO && before.fires.is_zero());
    let execution = chain.push(vec![]);
    let after = chain.state.burned();
    assert_eq!(after.transactions, before.transactions);
    assert_eq!(after.fires, execution.fires[0].charged.burned());
    assert_eq!(after.questions, execution.lane.questions);
    assert_eq!(after.total(), chain.state.supply().burned);
}
