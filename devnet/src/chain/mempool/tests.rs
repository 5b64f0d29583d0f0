//! The pool's rules, one by one, on a chain at its genesis.

use super::*;
use crate::chain::fixture::{key, state};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload, Transaction,
        transaction::{CallActor, Transfer},
    },
    primitives::Signature,
};

/// A change to a transaction that the pool would accept.
type Change = fn(&mut Transaction);

fn transfer(state: &State, sender: &str, nonce: u64, change: Change) -> SignedTransaction {
    let to = key("account-0").address();
    let payload = Payload::Transfer(Transfer { to, amount: Wei::new(1) });
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    let mut transaction = Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload);
    change(&mut transaction);
    transaction.sign(&key(sender))
}

/// A transfer whose tip per cycle is `tip` wei.
fn tipping(state: &State, sender: &str, nonce: u64, tip: u128) -> SignedTransaction {
    let plain = transfer(state, sender, nonce, |_| ());
    let mut transaction = plain.transaction.clone();
    transaction.fees.max_priority_per_cycle = Wei::new(tip);
    transaction.fees.max_fee_per_cycle = Wei::new(10_000 + tip);
    transaction.sign(&key(sender))
}

fn pick(pool: &PendingPool, state: &State) -> Vec<(Address, u64)> {
    let picked = pool.pick(state, &BTreeMap::new());
    picked.iter().map(|tx| (tx.sender().expect("signed"), tx.transaction.nonce)).collect()
}

fn names(order: &[(&str, u64)]) -> Vec<(Address, u64)> {
    order.iter().map(|(name, nonce)| (key(name).address(), *nonce)).collect()
}

#[test]
fn what_no_block_can_hold_is_refused_by_name() {
    let state = state();
    let check = |transaction: SignedTransaction, expected: &str| {
        let result = Mempool::new(Known::default()).submit(transaction, &state);
        let name = match result {
            Ok(_) => "taken".to_owned(),
            Err(error) => error.to_string().split(':').next().expect("a name").to_owned(),
        };
        assert_eq!(name, expected);
    };
    let changed = |change: Change| transfer(&state, "account-1", 0, change);
    check(changed(|_| ()), "taken");
    check(changed(|tx| tx.chain_id += 1), "WrongChain");
    check(changed(|tx| tx.nonce = PER_SENDER as u64 - 1), "taken");
    check(changed(|tx| tx.nonce = PER_SENDER as u64), "NonceTooHigh");
    check(changed(|tx| tx.fees.max_fee_per_cycle = Wei::new(999)), "FeeBelowBasefee");
    check(changed(|tx| tx.fees.max_fee_per_cell = Wei::new(999)), "FeeBelowBasefee");
    let absurd = changed(|tx| {
        tx.fees.max_fee_per_cell = Wei::new(u128::MAX);
        tx.cell_limit = Cells::new(2_000);
    });
    check(absurd, "InsufficientBalance");
    check(changed(|tx| tx.cycle_limit = Cycles::new(25_999)), "LimitTooLow");
    check(changed(|tx| tx.cell_limit = Cells::new(500)), "LimitTooLow");
    check(transfer(&state, "nobody", 0, |_| ()), "InsufficientBalance");
    let unsigned =
        SignedTransaction::new(changed(|_| ()).transaction.clone(), Signature([0xff; 65]));
    check(unsigned, "BadSignature");
}

#[test]
fn a_gap_waits_until_it_fills() {
    let state = state();
    let mut pool = PendingPool::default();
    for nonce in [2, 0] {
        assert_eq!(pool.insert(transfer(&state, "account-1", nonce, |_| ()), &state), Ok(true));
    }
    assert_eq!(pick(&pool, &state), names(&[("account-1", 0)]));
    let account = key("account-1").address();
    assert_eq!(pool.next_nonce(&account, 0), 1);
    assert_eq!(pool.insert(transfer(&state, "account-1", 1, |_| ()), &state), Ok(true));
    let all = names(&[("account-1", 0), ("account-1", 1), ("account-1", 2)]);
    assert_eq!(pick(&pool, &state), all);
    assert_eq!(pool.next_nonce(&account, 0), 3);
}

#[test]
fn a_replacement_pays_a_tenth_more() {
    let state = state();
    let mut pool = PendingPool::default();
    let first = tipping(&state, "account-1", 0, 10);
    assert_eq!(pool.insert(first.clone(), &state), Ok(true));
    assert_eq!(pool.insert(first.clone(), &state), Ok(false), "the same again");
    let raised = |factor: u128, cell: u128| {
        let mut transaction = first.transaction.clone();
        transaction.fees.max_fee_per_cycle = Wei::new(10_010 * factor / 100);
        transaction.fees.max_priority_per_cycle = Wei::new(11);
        transaction.fees.max_fee_per_cell = Wei::new(2_000 * cell / 100);
        transaction.sign(&key("account-1"))
    };
    let underpriced = Err(MempoolError::Underpriced { nonce: 0, waiting: first.hash() });
    assert_eq!(pool.insert(raised(109, 110), &state), underpriced);
    assert_eq!(pool.insert(raised(110, 109), &state), underpriced);
    let second = raised(110, 110);
    assert_eq!(pool.insert(second.clone(), &state), Ok(true));
    assert_eq!((pool.len(), pool.get(&first.hash())), (1, None));
    assert_eq!(pool.get(&second.hash()), Some(&second));
}

#[test]
fn senders_take_turns_and_the_best_tip_goes_first() {
    let state = state();
    let mut pool = PendingPool::default();
    let tips = [("account-1", 0, 1), ("account-1", 1, 9), ("account-2", 0, 5), ("account-3", 0, 7)];
    for (sender, nonce, tip) in tips {
        assert_eq!(pool.insert(tipping(&state, sender, nonce, tip), &state), Ok(true));
    }
    let order = [("account-3", 0), ("account-2", 0), ("account-1", 0), ("account-1", 1)];
    assert_eq!(pick(&pool, &state), names(&order));

    // A transaction in a block in between is not picked again.
    let in_flight = BTreeMap::from([(key("account-1").address(), 0)]);
    let picked = pool.pick(&state, &in_flight);
    let first = picked.first().map(|tx| (tx.sender().expect("signed"), tx.transaction.nonce));
    assert_eq!(first, Some((key("account-1").address(), 1)));
    assert_eq!(picked.len(), 3);
}

#[test]
fn a_block_holds_what_its_limits_hold() {
    let state = state();
    let mut pool = PendingPool::default();
    for nonce in 0..800 {
        assert_eq!(pool.insert(transfer(&state, "account-1", nonce, |_| ()), &state), Ok(true));
    }
    let picked = pool.pick(&state, &BTreeMap::new());
    assert_eq!(picked.len() as u64, meter::MAX_BLOCK_CYCLES / 26_000);
    let cells: u64 = picked.iter().map(|tx| tx.reserve().1.get()).sum();
    assert!(cells <= meter::MAX_BLOCK_CELLS);
}

/// A call by `account-1` with this budget on top of the intrinsic part.
fn call(state: &State, nonce: u64, budget: Budget) -> SignedTransaction {
    call_by(state, "account-1", nonce, budget)
}

fn call_by(state: &State, sender: &str, nonce: u64, budget: Budget) -> SignedTransaction {
    let (actor, handler, payload) = (key("account-0").address(), "h".to_owned(), vec![]);
    let payload = Payload::CallActor(CallActor { actor, handler, payload, value: Wei::new(5) });
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload)
        .buying(budget)
        .sign(&key(sender))
}

#[test]
fn a_transfer_goes_before_calls_that_fill_a_block_at_the_same_price() {
    let state = state();
    let accounts = ["account-0", "account-1", "account-2", "account-3"];
    let whole = Budget { cycles: meter::MAX_BLOCK_CYCLES, cells: 0 };
    // This holds for either order of the addresses.
    for sender in accounts {
        let mut pool = PendingPool::default();
        for caller in accounts.into_iter().filter(|caller| *caller != sender) {
            assert_eq!(pool.insert(call_by(&state, caller, 0, whole), &state), Ok(true));
        }
        assert_eq!(pool.insert(transfer(&state, sender, 0, |_| ()), &state), Ok(true));
        assert_eq!(pick(&pool, &state), names(&[(sender, 0)]));
    }
}

#[test]
fn what_is_metered_takes_its_limits_of_a_block_and_of_the_sender() {
    let state = state();
    let mut pool = PendingPool::default();
    let half = Budget { cycles: meter::MAX_BLOCK_CYCLES / 2, cells: 0 };
    for nonce in 0..2 {
        assert_eq!(pool.insert(call(&state, nonce, half), &state), Ok(true));
    }
    assert_eq!(pick(&pool, &state), names(&[("account-1", 0)]));

    let refused = |change: Change| {
        let mut transaction = call(&state, 2, half).transaction.clone();
        change(&mut transaction);
        let refused = PendingPool::default().insert(transaction.sign(&key("account-1")), &state);
        refused.expect_err("refused")
    };
    let check = |error: MempoolError, name: &str| {
        assert!(error.to_string().starts_with(name), "{error}");
    };
    check(refused(|tx| tx.cycle_limit = Cycles::new(20_999)), "LimitTooLow");
    check(refused(|tx| tx.cell_limit = Cells::new(100)), "LimitTooLow");
    check(refused(|tx| tx.cycle_limit = Cycles::new(20_000_001)), "TooLarge");
    check(refused(|tx| tx.cell_limit = Cells::new(1_000_001)), "TooLarge");
    // The sender has 10^15 wei, and the whole limit is reserved.
    check(refused(|tx| tx.fees.max_fee_per_cycle = Wei::new(100_000_001)), "InsufficientBalance");
}

#[test]
fn what_waits_for_gossip_is_bounded_in_bytes() {
    let state = state();
    let mut outbox = Outbox::default();
    let large = |nonce: u64| {
        let mut transaction =
            call(&state, nonce, Budget { cycles: 0, cells: 0 }).transaction.clone();
        let Payload::CallActor(call) = &mut transaction.payload else { unreachable!("a call") };
        call.payload = vec![7; 900_000];
        transaction.sign(&key("account-1"))
    };
    let sent: Vec<_> = (0..20).map(large).collect();
    for transaction in &sent {
        outbox.push(transaction.clone());
    }
    // The oldest was dropped. At least one is taken, however small the batch.
    let kept = OUTBOX_BYTES / sent[0].size();
    assert_eq!(outbox.queue.len(), kept);
    assert_eq!(outbox.take(1), sent[20 - kept..=20 - kept]);
    assert_eq!(outbox.take(2_000_000), sent[21 - kept..23 - kept]);
    while outbox.pop().is_some() {}
    assert_eq!((outbox.bytes, outbox.take(1_000)), (0, vec![]));
}

#[test]
fn a_senders_balance_covers_all_that_is_picked() {
    let state = state();
    let mut pool = PendingPool::default();
    let rich = state.account(&key("account-1").address()).balance;
    let half = Payload::Transfer(Transfer {
        to: key("account-0").address(),
        amount: Wei::new(rich.get() / 2),
    });
    for nonce in 0..2 {
        let mut transaction = transfer(&state, "account-1", nonce, |_| ()).transaction.clone();
        transaction.payload = half.clone();
        transaction.cell_limit = Cells::new(2_000);
        assert_eq!(pool.insert(transaction.sign(&key("account-1")), &state), Ok(true));
    }
    assert_eq!(pick(&pool, &state), names(&[("account-1", 0)]));
}

#[test]
fn a_full_queue_takes_no_more_and_replacements_still() {
    let state = state();
    let mut pool = PendingPool::default();
    let sign = |nonce: u64| tipping(&state, "account-1", nonce, 10);
    for nonce in 0..PER_SENDER as u64 {
        assert_eq!(pool.insert(sign(nonce), &state), Ok(true));
    }
    let full =
        Err(MempoolError::NonceTooHigh { expected: 0, got: PER_SENDER as u64, limit: PER_SENDER });
    assert_eq!(pool.insert(sign(PER_SENDER as u64), &state), full);
    let mut transaction = sign(7).transaction.clone();
    for price in [
        &mut transaction.fees.max_fee_per_cycle,
        &mut transaction.fees.max_priority_per_cycle,
        &mut transaction.fees.max_fee_per_cell,
    ] {
        *price = price.saturating_mul(2);
    }
    assert_eq!(pool.insert(transaction.sign(&key("account-1")), &state), Ok(true));
    assert_eq!(pool.len(), PER_SENDER);
}
