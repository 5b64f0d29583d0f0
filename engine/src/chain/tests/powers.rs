//! Powers of system deployers: each does what it says, no other account has it, and money is
//! conserved. A chain that returns to a mark continues as it did after the marked block.

use super::{
    actors::{COUNTER, calling, metered},
    *,
};
use crate::{
    actor::Budget,
    chain::{
        params::Powers,
        state::MAX_MARKS,
        transaction::{
            ActAs, ActedPayload, AdvanceTime, ForgetMark, ReturnToMark, SetBalance, SetCode,
            SetState,
        },
    },
    primitives::codec::{from_slice, to_vec},
    timer::TimerRequest,
};
use event::{BalanceSet, StateReturned};

const BUDGET: Budget = Budget { cycles: 2_000_000, cells: 100_000 };

/// `bob` has the powers.
fn chain() -> Chain {
    let mut genesis = genesis(3);
    genesis.params.system_deployers = vec![key("bob").address()];
    Chain::new(&genesis)
}

fn set_balance(account: &str, balance: Wei) -> Payload {
    let (account, counterpart) = (key(account).address(), key("alice").address());
    Payload::SetBalance(SetBalance { account, balance, counterpart })
}

fn set_state(actor: Address, key: &str, value: Option<&str>) -> Payload {
    let value = value.map(|value| value.as_bytes().to_vec());
    Payload::SetState(SetState { actor, key: key.into(), value })
}

fn set_code(actor: Address, source: &str) -> Payload {
    let (language, source) = (Language::Starlark, source.to_owned());
    Payload::SetCode(SetCode { actor, language, source })
}

fn acting(account: &str, payload: Payload) -> Payload {
    let (account, payload) = (key(account).address(), ActedPayload(Box::new(payload)));
    Payload::ActAs(ActAs { account, payload })
}

fn back_to(mark: u64) -> Payload {
    Payload::ReturnToMark(ReturnToMark { mark })
}

impl Chain {
    /// Executes bob's payload in a block of its own.
    fn power(&mut self, payload: Payload) -> (Receipt, Vec<EventKind>) {
        let signed = metered(self, "bob", payload, BUDGET);
        let Execution { mut receipts, events, .. } = self.push(vec![signed]);
        let receipt = receipts.remove(0);
        let own = |event: &Event| event.transaction == Some(receipt.transaction);
        let kinds = events.into_iter().filter(own).map(|event| event.kind).collect();
        (receipt, kinds)
    }

    fn empowered(&mut self, payload: Payload) -> Vec<EventKind> {
        let (receipt, events) = self.power(payload);
        assert_eq!(receipt.status, ReceiptStatus::Success);
        events
    }

    fn powerless(&mut self, payload: Payload) -> String {
        let (receipt, events) = self.power(payload);
        assert!(events.is_empty(), "{events:?}");
        receipt.status.error().expect("it is refused").to_owned()
    }

    fn read(&mut self, actor: Address) -> String {
        String::from_utf8(self.call(actor, "read", "").result).unwrap()
    }
}

#[test]
fn a_balance_is_set_at_a_counterparts_expense() {
    let mut chain = chain();
    let (carol, alice) = (key("carol").address(), key("alice").address());
    let check = |chain: &mut Chain, before: Wei, after: Wei| {
        let of_both = Wei::cby(1_000_000);
        let expected = BalanceSet { account: carol, before, after, counterpart: alice };
        assert_eq!(chain.empowered(set_balance("carol", after)), [expected.into()]);
        assert_eq!(chain.balance("carol"), after);
        assert_eq!(chain.balance("alice"), of_both.checked_sub(after).unwrap());
    };
    check(&mut chain, Wei::ZERO, Wei::cby(700));
    check(&mut chain, Wei::cby(700), Wei::new(1));
    check(&mut chain, Wei::new(1), Wei::new(1));
    check(&mut chain, Wei::new(1), Wei::ZERO);
    let error = chain.powerless(set_balance("carol", Wei::cby(1_000_001)));
    assert!(error.starts_with("InsufficientBalance: "), "{error}");
    let error = chain.powerless(set_balance("carol", Wei::new(u128::MAX)));
    assert!(error.starts_with("InsufficientBalance: "), "{error}");
    let error = chain.powerless(set_balance("alice", Wei::ZERO));
    assert!(error.starts_with("SameAccount: "), "{error}");
    // The sender's own balance, while its fee is set aside.
    let everything = chain.balance("alice");
    let own = Payload::SetBalance(SetBalance {
        account: key("bob").address(),
        balance: chain.balance("bob").checked_add(everything).unwrap(),
        counterpart: alice,
    });
    assert!(chain.powerless(own).starts_with("InsufficientBalance: "));
}

#[test]
fn others_have_no_powers_and_a_genesis_can_refuse_them() {
    let actor = key("no actor").address();
    let all = || {
        [
            set_balance("carol", Wei::new(5)),
            set_code(actor, COUNTER),
            set_state(actor, "n", None),
            acting("alice", transfer("carol", Wei::new(5))),
            Payload::AdvanceTime(AdvanceTime { ms: 5 }),
            Payload::MarkState,
            back_to(1),
            Payload::ForgetMark(ForgetMark { mark: 1 }),
        ]
    };
    let mut chain = chain();
    let before = chain.state.parts();
    for payload in all() {
        let signed = metered(&chain, "alice", payload, BUDGET);
        let execution = chain.push(vec![signed]);
        let error = execution.receipts[0].status.error().unwrap();
        assert!(error.starts_with("Unauthorized: "), "{error}");
        // By way of an account that has powers, which only that account opens.
        let inside = acting("bob", Payload::MarkState);
        let execution = chain.one("alice", inside);
        assert!(execution.receipts[0].status.error().unwrap().starts_with("Unauthorized: "));
    }
    let after = chain.state.parts();
    assert_eq!(before[1..16], after[1..16], "all but balances and what consensus adds");
    let mut genesis = genesis(3);
    genesis.params.system_deployers = vec![key("bob").address()];
    genesis.params.powers = Powers::Refused;
    let mut chain = Chain::new(&genesis);
    for payload in all() {
        let error = chain.powerless(payload);
        assert!(error.starts_with("NoPowers: "), "{error}");
    }
    assert_eq!(from_slice(&to_vec(&genesis)), Ok(genesis));
}

#[test]
fn a_store_is_set_within_the_limits_of_actors() {
    let mut chain = chain();
    let counter = chain.deploy(COUNTER);
    chain.call(counter, "bump", "");
    chain.empowered(set_state(counter, "n", Some("41")));
    assert_eq!(chain.call(counter, "bump", "").result, b"42");
    chain.empowered(set_state(counter, "n", None));
    chain.empowered(set_state(counter, "never there", None));
    assert_eq!(chain.read(counter), "0");
    let check = |chain: &mut Chain, payload: Payload, says: &str| {
        let error = chain.powerless(payload);
        assert!(error.starts_with(says), "{error}");
    };
    let at_most = "k".repeat(256);
    chain.empowered(set_state(counter, &at_most, Some("{\"a\": [1, 2]}")));
    check(&mut chain, set_state(counter, &(at_most + "k"), Some("1")), "KeyTooLong: ");
    check(&mut chain, set_state(counter, "n", Some("forty")), "ValueNotJson: ");
    check(&mut chain, set_state(counter, "n", Some("")), "ValueNotJson: ");
    check(&mut chain, set_state(key("carol").address(), "n", Some("1")), "UnknownActor: ");
    let not_text = SetState { actor: counter, key: (&[0xff][..]).into(), value: None };
    check(&mut chain, Payload::SetState(not_text), "KeyNotText: ");
    assert_eq!(chain.read(counter), "0");
}

#[test]
fn code_is_replaced_and_the_store_stays() {
    let mut chain = chain();
    let counter = chain.deploy(COUNTER);
    chain.call(counter, "bump", "");
    let before = *chain.state.actor(&counter).unwrap();
    let other = "def read(ctx, payload):\n    return pvm_host.get_state(\"n\") * 100\n";
    chain.empowered(set_code(counter, other));
    assert_eq!(chain.read(counter), "100");
    let after = *chain.state.actor(&counter).unwrap();
    assert_eq!((after.deployer, after.deployed_at), (before.deployer, before.deployed_at));
    assert_ne!(after.code, before.code);
    // A source that does not load changes nothing.
    let error = chain.powerless(set_code(counter, "def read(:"));
    assert!(error.starts_with("ModuleRefused: "), "{error}");
    assert_eq!(chain.state.actor(&counter), Some(&after));
    let (nowhere, bob) = (key("carol").address(), key("bob").address());
    chain.empowered(set_code(nowhere, COUNTER));
    assert_eq!(chain.read(nowhere), "0");
    assert_eq!(chain.state.actor(&nowhere).unwrap().deployer, bob);
}

#[test]
fn an_account_acts_without_its_key_and_the_receipt_says_so() {
    let mut chain = chain();
    let (alice, bob) = (key("alice").address(), key("bob").address());
    let counter = chain.deploy(COUNTER);
    let (nonce, before) = (chain.state.account(&alice).nonce, chain.balance("alice"));
    let act = acting("alice", calling(counter, "where", "", Wei::new(9)));
    let (receipt, events) = chain.power(act);
    assert_eq!(receipt.status, ReceiptStatus::Success);
    assert_eq!((receipt.sender, receipt.acted_as), (bob, Some(alice)));
    let names: Vec<_> = events.iter().map(EventKind::name).collect();
    assert_eq!(names, ["ActedAs", "Transferred", "ActorCalled"]);
    let result = String::from_utf8(receipt.actor.unwrap().result).unwrap();
    assert!(result.contains(&alice.to_string()), "{result}");
    assert_eq!(
        chain.balance("alice"),
        before.checked_sub(Wei::new(9)).unwrap(),
        "bob pays the fee"
    );
    assert_eq!(chain.state.account(&alice).nonce, nonce + 1);
    // What it deploys is where its own transaction would have put it.
    let source = COUNTER.to_owned();
    let deploy = Payload::DeployActor(transaction::DeployActor { source });
    let (receipt, _) = chain.power(acting("alice", deploy));
    assert_eq!(receipt.actor.unwrap().actor, Address::of_actor(&alice, nonce + 1));
    // A failure leaves the account as it was, and is marked all the same.
    let (receipt, _) = chain.power(acting("alice", transfer("carol", Wei::cby(2_000_000))));
    assert_eq!((receipt.status.name(), receipt.acted_as), ("failed", Some(alice)));
    assert_eq!(chain.state.account(&alice).nonce, nonce + 2);
    // An act within an act is no payload.
    let nested = acting("alice", acting("carol", Payload::MarkState));
    assert!(from_slice::<Payload>(&to_vec(&nested)).is_err());
    let flat = acting("alice", Payload::MarkState);
    assert_eq!(from_slice::<Payload>(&to_vec(&flat)), Ok(flat));
}

#[test]
fn time_is_moved_ahead_up_to_a_limit() {
    let mut chain = chain();
    let advance = |ms| Payload::AdvanceTime(AdvanceTime { ms });
    let root = chain.state.parts()[18];
    chain.empowered(advance(3_600_000));
    chain.empowered(advance(1));
    assert_eq!(chain.state.ahead_ms(), 3_600_001);
    assert_ne!(chain.state.parts()[18], root);
    for ms in [u64::MAX, 100 * 365 * 86_400_000 - 3_600_000] {
        assert!(chain.powerless(advance(ms)).starts_with("TimeTooFar: "));
    }
    assert_eq!(chain.state.ahead_ms(), 3_600_001);
}

/// What a test sees of a state, apart from heights of the chain itself.
fn seen(chain: &Chain, counter: Address) -> String {
    let state = &chain.state;
    let (now, accounts) = (state.height(), ["alice", "carol"].map(|name| chain.balance(name)));
    let timers = state.timers().iter().map(|timer| {
        let (due, ends) = (timer.height.since(now), timer.expires_at.since(now));
        (timer.id, due, ends, now.since(timer.scheduled_at), timer.seq)
    });
    let jobs = state.jobs().map(|(id, job)| {
        let open = job.status.ended_at().is_none();
        (id, job.status.name(), open.then(|| job.deadline().since(now)))
    });
    let due = state.open_jobs.iter().map(|(id, due)| (id, due.since(now)));
    let mru = state.mru().map(|(who, _, record)| (who, record.runner, now.since(record.set_at)));
    let runners = state.registry().iter().map(|(address, runner)| {
        (address, runner.stake, runner.active_jobs, now.since(runner.last_heartbeat))
    });
    let actor = state.actor(&counter).map(|actor| actor.loading_at(now.after(255)));
    format!(
        "{accounts:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {actor:?} {:?} {:?}",
        state.stored_at(&counter, "n"),
        timers.collect::<Vec<_>>(),
        jobs.collect::<Vec<_>>(),
        due.collect::<Vec<_>>(),
        mru.collect::<Vec<_>>(),
        runners.collect::<Vec<_>>(),
        state.basefee_cycle(),
        state.burned(),
        state.fairness().iter().collect::<Vec<_>>(),
    )
}

#[test]
fn a_chain_that_returns_continues_as_after_the_mark() {
    let mut chain = chain();
    let counter = chain.deploy(COUNTER);
    chain.call(counter, "bump", "");
    let fund = Payload::Transfer(transaction::Transfer { to: counter, amount: Wei::cby(100) });
    chain.one("alice", fund);
    // A job with a result, whose runner is the most recently used one.
    let done = chain.submit(spec());
    let runner = chain.committee(&done)[0];
    let result = chain.result(done, &name_of(&runner), &runner, b"hi");
    chain.one("bob", result);
    assert_eq!(chain.state.job(&done).unwrap().status.name(), "Verified");
    // A timer that is due in six blocks, and an open job.
    let timer = |chain: &Chain, blocks: u64| {
        let height = chain.state.height().after(blocks);
        let handler = Some("bump".to_owned());
        let request = TimerRequest { actor: counter, height, handler, ..TimerRequest::default() };
        Payload::ScheduleTimer(Arc::new(request))
    };
    let soon = timer(&chain, 9);
    assert_eq!(chain.one("alice", soon).receipts[0].status, ReceiptStatus::Success);
    let open = chain.submit(JobSpec { timeout_blocks: 40, ..spec() });
    chain.empowered(Payload::MarkState);
    let [mark] = chain.state.marks() else { panic!("one mark") };
    let (number, marked) = (mark.number, seen(&chain, counter));
    assert_eq!((number, mark.height), (1, chain.state.height()));

    let play = |chain: &mut Chain| -> Vec<String> {
        let mut seens = Vec::new();
        let mut note = |chain: &Chain| seens.push(seen(chain, counter));
        chain.push(vec![]);
        note(chain);
        chain.call(counter, "bump", "");
        note(chain);
        let runner = chain.committee(&open)[0];
        let result = chain.result(open, &name_of(&runner), &runner, b"hi");
        chain.one("alice", result);
        note(chain);
        for _ in 0..8 {
            chain.push(vec![]);
            note(chain);
        }
        seens
    };
    let first = play(&mut chain);
    assert!(chain.state.timers().is_empty(), "it has fired");
    // Things of which nothing must remain.
    chain.deploy(COUNTER);
    let later = timer(&chain, 500);
    chain.one("alice", later);
    chain.submit(spec());
    chain.one("alice", transfer("carol", Wei::cby(3)));
    chain.empowered(Payload::MarkState);
    for round in 0..3 {
        let (nonce, here) = (chain.state.account(&key("alice").address()).nonce, chain.here());
        let events = chain.empowered(back_to(1));
        let height = Height::new(chain.state.marks()[0].height.get());
        assert_eq!(events, [StateReturned { mark: 1, height }.into()]);
        assert_eq!(seen(&chain, counter), marked, "round {round}");
        assert_eq!(chain.state.account(&key("alice").address()).nonce, nonce, "nonces go on");
        assert_eq!(chain.here(), here + 1, "heights go on");
        assert_eq!(chain.state.marks().len(), 1, "later marks are forgotten");
        assert_eq!(play(&mut chain), first, "round {round}");
    }
    // The number of the forgotten mark is not used again.
    chain.empowered(Payload::MarkState);
    assert_eq!(chain.state.marks().last().unwrap().number, 3);
    assert!(chain.powerless(back_to(2)).starts_with("UnknownMark: "));
}

#[test]
fn marks_are_few_and_a_block_makes_one_move() {
    let mut chain = chain();
    for _ in 0..MAX_MARKS {
        chain.empowered(Payload::MarkState);
    }
    assert!(chain.powerless(Payload::MarkState).starts_with("TooManyMarks: "));
    chain.empowered(Payload::ForgetMark(ForgetMark { mark: 2 }));
    let numbers: Vec<_> = chain.state.marks().iter().map(|mark| mark.number).collect();
    assert_eq!((numbers.len(), &numbers[..2]), (MAX_MARKS - 1, &[1, 3][..]));
    let forgotten = Payload::ForgetMark(ForgetMark { mark: 2 });
    assert!(chain.powerless(forgotten).starts_with("UnknownMark: "));
    chain.empowered(back_to(1));
    assert_eq!(chain.state.marks().len(), 1);
    let nonce = chain.state.account(&key("bob").address()).nonce;
    let both = [Payload::MarkState, back_to(1)];
    let both = (0..).zip(both).map(|(n, payload)| chain.sign_at("bob", nonce + n, payload));
    let both = both.collect();
    let execution = chain.push(both);
    let names: Vec<_> = execution.receipts.iter().map(|r| r.status.name()).collect();
    assert_eq!(names, ["success", "failed"]);
    assert!(execution.receipts[1].status.error().unwrap().starts_with("OneMarkPerBlock: "));
    assert_eq!(chain.state.marks().len(), 2);
    // A state that was stored and read continues alike.
    let stored = State::from_bytes(&chain.state.to_bytes()).unwrap();
    let signed = chain.sign("bob", back_to(1));
    let block = chain.block(vec![signed]);
    let [one, other] = [&chain.state, &stored].map(|state| execute(state, &block).unwrap().state);
    assert_eq!(one.root(), other.root());
}

#[test]
fn what_else_a_block_does_is_undone_too() {
    let mut chain = chain();
    chain.empowered(Payload::MarkState);
    let pay = chain.sign("alice", transfer("carol", Wei::cby(3)));
    let back = chain.sign("bob", back_to(1));
    let execution = chain.push(vec![pay, back]);
    assert!(execution.receipts.iter().all(|r| r.status == ReceiptStatus::Success));
    assert_eq!(chain.balance("carol"), Wei::ZERO);
    assert_eq!(chain.state.account(&key("alice").address()).nonce, 1);
}
