//! Requests, and the timers or errors that they become.

use super::*;
use crate::timer::record::timer_id;
use std::collections::BTreeSet;

const ACTOR: Address = Address([0xaa; 20]);
const SENDER: Address = Address([0xbb; 20]);

fn terms(policy: Policy) -> ScheduleTerms {
    ScheduleTerms {
        now: Height::new(100),
        policy,
        config: TimerConfig { priority_tier_floor: 1, ..TimerConfig::default() },
        lane_price: Wei::new(50),
        basefee_cycle: Wei::new(30),
        basefee_cell: Wei::new(3),
        p50: Wei::new(8),
        takes_bid: false,
    }
}

fn request() -> TimerRequest {
    TimerRequest { actor: ACTOR, height: Height::new(101), ..TimerRequest::default() }
}

#[test]
fn what_is_left_out_gets_its_default() {
    let Admitted { timer, clamped_from, exceeds_cap } =
        terms(Policy::Eip1559).admit(request(), None).unwrap();
    assert_eq!((clamped_from, exceeds_cap), (None, None));
    assert_eq!(timer.fee_payer, ACTOR);
    assert_eq!(timer.gas_limit, 250_000);
    assert_eq!(timer.expires_at, Height::new(2_592_100));
    assert_eq!(timer.max_fee_per_cycle, Wei::new(100));
    assert_eq!(timer.max_priority_fee_per_cycle, Wei::new(8));
    assert_eq!(timer.scheduled_at, Height::new(100));
    let fifo = terms(Policy::Fifo).admit(request(), None).unwrap();
    assert_eq!(fifo.timer.gas_limit, 550_000);
}

#[test]
fn tiers_multiply_the_median_tip() {
    let check = |tier, expected: u128| {
        let request = TimerRequest { tier: Some(tier), ..request() };
        let admitted = terms(Policy::Eip1559).admit(request, None).unwrap();
        assert_eq!(admitted.timer.max_priority_fee_per_cycle, Wei::new(expected));
    };
    check(Tier::Economy, 6);
    check(Tier::Standard, 8);
    check(Tier::Fast, 12);
    check(Tier::Urgent, 20);
}

#[test]
fn where_nobody_tips_a_tier_is_a_floor() {
    let mut quiet = terms(Policy::Eip1559);
    (quiet.p50, quiet.config.priority_tier_floor) = (Wei::ZERO, 10);
    let check = |tier, expected: u128| {
        let request = TimerRequest { tier, ..request() };
        let admitted = quiet.admit(request, None).unwrap();
        assert_eq!(admitted.timer.max_priority_fee_per_cycle, Wei::new(expected), "{tier:?}");
    };
    check(None, 0);
    check(Some(Tier::Economy), 8);
    check(Some(Tier::Urgent), 25);
}

#[test]
fn a_sender_pays_what_it_allows_and_no_more() {
    let request = TimerRequest {
        fee_payer: Some(SENDER),
        gas_limit: Some(1_000),
        cell_limit: Some(100),
        ..request()
    };
    let timer = terms(Policy::Eip1559).admit(request, Some(SENDER)).unwrap().timer;
    assert_eq!(timer.cell_limit, 128, "in steps of 64");
    // Twice the basefee of 30 and the cap of 100, a thousand times; twice 3, 128 times.
    let cost = Wei::new(160 * 1_000 + 6 * 128);
    assert_eq!(timer.promised, Some(cost));
    let ids = Ids::of_transaction(0, Hash::ZERO, cost.saturating_mul(2));
    ids.promise(&timer).unwrap();
    ids.promise(&timer).unwrap();
    let error = ids.promise(&timer).unwrap_err().to_string();
    assert!(error.starts_with("PayerNotWilling: "), "{error}");
    assert!(error.contains("another 0 CBY"), "{error}");
    let fire = Ids::of_fire(Height::new(7), Hash::ZERO);
    assert!(fire.promise(&timer).is_err(), "a fire has no sender");
    fire.promise(&Timer { promised: None, ..timer }).unwrap();
}

#[test]
fn bounds_are_held_by_name() {
    let check = |change: &dyn Fn(&mut TimerRequest), expected: &str| {
        let mut request = request();
        change(&mut request);
        let error = terms(Policy::Eip1559).admit(request, Some(SENDER)).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    check(&|r| r.height = Height::new(100), "HeightNotInFuture: a timer fires at 101 at");
    check(&|r| r.payload = vec![0; (1 << 20) + 1], "PayloadTooLarge: ");
    check(&|r| r.handler = Some("h".repeat(257)), "HandlerNameTooLong: ");
    check(&|r| r.fee_payer = Some(Address([1; 20])), "InvalidFeePayer: ");
    check(&|r| r.cell_limit = Some(550_001), "CellLimitTooHigh: a fire uses at most 549952");
    check(&|r| r.gas_limit = Some(550_001), "GasLimitTooHigh: a fire uses at most 550000");
    check(&|r| r.expires_at = Some(Height::new(100)), "ExpiryOutOfRange: 100 is not from 101");
    check(&|r| r.expires_at = Some(Height::new(2_592_101)), "ExpiryOutOfRange: 2592101 is ");
    check(&|r| r.height = Height::new(2_592_101), "ExpiryOutOfRange: ");
    check(&|r| r.max_fee_per_cycle = Some(Wei::new(49)), "TimerRejectedBelowBasefee: ");
    check(&|r| r.bid = true, "TimerArgDeprecated: ");
    for system in [0, 1, 0x0f] {
        let mut address = Address([0; 20]);
        address.0[19] = system;
        let request = TimerRequest { fee_payer: Some(address), ..request() };
        let error = terms(Policy::Fifo).admit(request, Some(address)).unwrap_err();
        assert_eq!(error, TimerError::InvalidFeePayer(address));
    }
}

#[test]
fn the_sender_may_pay_and_a_priority_is_cut_to_what_the_cap_leaves() {
    let request = TimerRequest {
        fee_payer: Some(SENDER),
        max_fee_per_cycle: Some(Wei::new(60)),
        max_priority_fee_per_cycle: Some(Wei::new(11)),
        gas_limit: Some(250_001),
        ..request()
    };
    let Admitted { timer, clamped_from, exceeds_cap } =
        terms(Policy::Eip1559).admit(request.clone(), Some(SENDER)).unwrap();
    assert_eq!(timer.fee_payer, SENDER);
    assert_eq!(timer.max_priority_fee_per_cycle, Wei::new(10));
    assert_eq!((clamped_from, exceeds_cap), (Some(Wei::new(11)), Some(250_000)));
    let refused = terms(Policy::Eip1559).admit(request, None).unwrap_err();
    assert_eq!(refused, TimerError::InvalidFeePayer(SENDER), "a fire has no sender");
}

#[test]
fn an_expiry_moves_to_later_heights_alone() {
    let terms = terms(Policy::Eip1559);
    let mut timer = terms.admit(request(), None).unwrap().timer;
    timer.expires_at = Height::new(500);
    assert!(terms.extend(&mut timer, Height::new(499)).is_err());
    assert!(terms.extend(&mut timer, Height::new(2_592_101)).is_err());
    terms.extend(&mut timer, Height::new(700)).unwrap();
    assert_eq!(timer.expires_at, Height::new(700));
}

#[test]
fn equal_timers_of_a_transaction_are_counted_in_the_nonces_upper_bits() {
    let ids = Ids::of_transaction(7, Hash([9; 32]), Wei::ZERO);
    let height = Height::new(200);
    let next = |ids: &Ids, payload: &[u8]| ids.next(&ACTOR, height, payload, |_| false);
    let expected =
        |payload: &[u8], counter: u64| Some(timer_id(&ACTOR, height, payload, 7 | counter << 48));
    assert_eq!(next(&ids, b"a"), expected(b"a", 0));
    assert_eq!(next(&ids, b"a"), expected(b"a", 1));
    assert_eq!(next(&ids, b"b"), expected(b"b", 0));
    assert_eq!(next(&ids, b"a"), expected(b"a", 2));
}

#[test]
fn ids_of_other_transactions_are_passed_over_in_a_leap() {
    let height = Height::new(200);
    let mut taken = BTreeSet::new();
    let mut asked = 0;
    for sender in 0..300u64 {
        let hash = crate::primitives::keccak256(&[&sender.to_be_bytes()]);
        let count = Cell::new(0);
        let ids = Ids::of_transaction(7, hash, Wei::ZERO);
        let is_taken = |id: &Hash| {
            count.set(count.get() + 1);
            taken.contains(id)
        };
        let id = ids.next(&ACTOR, height, b"a", is_taken).unwrap();
        asked += count.get();
        assert!(taken.insert(id), "no id twice");
    }
    assert!(asked < 700, "{asked} ids were tried for 300 timers");
    assert_ne!(
        Ids::of_fire(Height::new(7), Hash::ZERO).next(&ACTOR, height, b"a", |_| false),
        Ids::of_transaction(7, Hash::ZERO, Wei::ZERO).next(&ACTOR, height, b"a", |_| false),
    );
}
