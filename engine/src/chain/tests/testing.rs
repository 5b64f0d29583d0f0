//! Tests of actors on a test chain: it reports the same errors as any chain, at the line that asks,
//! and has the same timers, agents and prices.

use super::{
    actors::{calling, metered},
    *,
};
use crate::{
    actor::{
        Budget, Campaign, ErrorKind, Handler, Module, Property, TestReport,
        testing::{Ending, account},
    },
    timer::Policy,
};

/// The budget of each test.
const BUDGET: Budget = Budget { cycles: 100_000_000, cells: 100_000_000 };
/// The budget of a call: most of a block.
const CALL: Budget = Budget { cycles: 15_000_000, cells: 800_000 };

/// Runs all tests of a module.
fn tested(source: &str, setup: &Setup) -> Vec<TestReport> {
    let (usage, module) = Module::load(source, &setup.params.actors, BUDGET);
    let module = module.unwrap_or_else(|error| panic!("{error}\n{source}"));
    let suite = Suite::new(source, (&usage, &module), setup).unwrap();
    let run = |test: &Handler| match Property::of(&module, test).unwrap() {
        None => suite.test(&test.name, BUDGET),
        Some(property) => {
            let campaign = Campaign { inputs: 32, seed: 0 };
            suite.property(&property, BUDGET, campaign, || false).unwrap().report
        }
    };
    module.tests().iter().map(run).collect()
}

/// Runs the only test of a module, which must pass.
fn passes(source: &str, setup: &Setup) -> TestReport {
    let mut reports = tested(source, setup);
    assert_eq!(reports.len(), 1);
    let report = reports.remove(0);
    let error = report.error.as_ref().map(ToString::to_string);
    assert_eq!(error, None, "{source}");
    report
}

fn charging(policy: Policy) -> Setup {
    let mut setup = Setup { charge: true, ..Setup::default() };
    setup.params.timers.policy = policy;
    setup
}

#[test]
fn tests_run_on_a_chain_of_their_own() {
    let source = r#"
def tick(ctx, payload):
    n = pvm_host.get_state("n", 0) + 1
    pvm_host.set_state("n", n)
    if n < 3:
        pvm_host.schedule_timer_ex(ctx.height + 2, payload, handler = "tick")
    pvm_host.emit("tick", {"n": n, "height": ctx.height})
    return n

def pay(ctx, payload):
    if ctx.value < 10:
        fail("too little")
    pvm_host.transfer(ctx.sender, ctx.value - 10)

def test_ticks():
    if mock.call(tick, "x") != 1 or len(mock.timers()) != 1:
        fail("no timer")
    mock.advance(10)
    if [e["data"]["height"] for e in mock.events()] != [1, 3, 5]:
        fail(mock.events())

def test_pays(ctx):
    alice = mock.account("alice")
    mock.fund(alice, 100)
    if "too little" not in mock.fails("pay", sender = alice, value = 9):
        fail("another error")
    if pvm_host.get_balance(alice) != 100:
        fail("a failed call keeps nothing")
    mock.call("pay", sender = alice, value = 50)
    if pvm_host.get_balance(alice) != 90:
        fail(pvm_host.get_balance(alice))

def test_fails():
    mock.fails(tick)
"#;
    let reports = tested(source, &Setup::default());
    let error = |index: usize| reports[index].error.as_ref().map(ToString::to_string);
    assert_eq!((error(0), error(1)), (None, None));
    let error = error(2).unwrap_or_default();
    let expected = "ActorError: this call was expected to fail and did not (at 34:5)";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!((reports[0].height, reports[0].fires.len()), (Height::new(11), 2));
}

/// The examples deploy, and their own tests pass.
#[test]
fn examples_pass_their_tests() {
    for (name, source) in [
        ("batcher", include_str!("../../../../examples/actors/batcher.star")),
        ("counter", include_str!("../../../../examples/actors/counter.star")),
        ("default_gba", include_str!("../../../../examples/actors/default_gba.star")),
        ("escrow", include_str!("../../../../examples/actors/escrow.star")),
        ("heartbeat", include_str!("../../../../examples/actors/heartbeat.star")),
        ("liquidator", include_str!("../../../../examples/actors/liquidator.star")),
        ("oracle", include_str!("../../../../examples/actors/oracle.star")),
        ("price_feed", include_str!("../../../../examples/actors/price_feed.star")),
        ("spammer", include_str!("../../../../examples/actors/spammer.star")),
        ("token", include_str!("../../../../examples/actors/token.star")),
    ] {
        let reports = tested(source, &Setup::default());
        assert!(reports.len() >= 3, "{name} has tests");
        for report in reports {
            let error = report.error.map(|error| error.to_string());
            assert_eq!(error, None, "{name}: {}", report.name);
        }
    }
}

/// A refused call: the policy, the handler's lines, and the beginning of the error.
type Refused = (Policy, &'static str, &'static str);

const EIP: Policy = Policy::Eip1559;
const FIFO: Policy = Policy::Fifo;
const GBA: Policy = Policy::GbaAuction;

/// An actor may have three timers.
const REFUSED: &[Refused] = &[
    (EIP, "pvm_host.schedule_timer(ctx.height, '')", "ActorError: HeightNotInFuture: "),
    (FIFO, "pvm_host.schedule_timer(0, '')", "ActorError: HeightNotInFuture: "),
    (EIP, "pvm_host.schedule_timer(-1, '')", "ActorError: height must be an int from 0"),
    (EIP, "pvm_host.schedule_timer(ctx.height + 2592001, '')", "ActorError: ExpiryOutOfRange: "),
    (EIP, "pvm_host.schedule_timer(5, ['x' * 600000] * 2)", "ActorError: PayloadTooLarge: a timer"),
    (EIP, "pvm_host.schedule_timer(5, '', handler = 'h' * 257)", "ActorError: HandlerNameTooLong"),
    (EIP, "pvm_host.schedule_timer(5, '', handler = '')", "ActorError: a handler's name must not"),
    (EIP, "pvm_host.schedule_timer(5, '', handler = 7)", "ActorError: a handler's name must be"),
    (
        EIP,
        "pvm_host.schedule_timer(5, '', fee_payer = '0x' + '99' * 20)",
        "ActorError: InvalidFeePayer: ",
    ),
    (
        EIP,
        "pvm_host.schedule_timer(5, '', fee_payer = '0x' + '00' * 19 + '02')",
        "ActorError: InvalidFeePayer: ",
    ),
    (
        EIP,
        "pvm_host.schedule_timer(5, '', fee_payer = ctx.sender)",
        "ActorError: PayerNotWilling: ",
    ),
    (EIP, "pvm_host.schedule_timer(5, '', gas_limit = 550001)", "ActorError: GasLimitTooHigh: "),
    (FIFO, "pvm_host.schedule_timer(5, '', gas_limit = 550001)", "ActorError: GasLimitTooHigh: "),
    (EIP, "pvm_host.schedule_timer(5, '', cell_limit = 550001)", "ActorError: CellLimitTooHigh: "),
    (EIP, "pvm_host.schedule_timer(5, '', expires_at = 4)", "ActorError: ExpiryOutOfRange: 4 is"),
    (
        EIP,
        "pvm_host.schedule_timer(5, '', expires_at = ctx.height + 2592001)",
        "ActorError: ExpiryOutOfRange: ",
    ),
    (
        EIP,
        "pvm_host.schedule_timer(5, '', max_fee_per_cycle = 999)",
        "ActorError: TimerRejectedBelowBasefee: a cycle of the lane costs 1000 wei, 999",
    ),
    (EIP, "pvm_host.schedule_timer(5, '', bid = 1)", "ActorError: TimerArgDeprecated: "),
    (
        EIP,
        "pvm_host.schedule_timer(5, '', priority_tier_hint = 'soon')",
        "ActorError: UnknownTier: \"soon\"",
    ),
    (EIP, "pvm_host.schedule_timer(5, '', gba = '0x12')", "ActorError: gba must be an address"),
    (EIP, "pvm_host.schedule_timer(5, '', every = 0)", "ActorError: schedule_timer() has no para"),
    (
        EIP,
        "for i in range(4): pvm_host.schedule_timer(5 + i, '')",
        "TooManyTimers: ACTOR has 3 timers",
    ),
    (EIP, "pvm_host.cancel_timer('0x' + '11' * 32)", "UnknownTimer: no timer 0x1111"),
    (EIP, "pvm_host.extend_timer('0x' + '11' * 32, 9)", "UnknownTimer: no timer 0x1111"),
    (
        EIP,
        "pvm_host.extend_timer(pvm_host.schedule_timer(5, '', expires_at = 9), 8)",
        "ExpiryOutOfRange: 8 is not from 9",
    ),
    (EIP, "pvm_host.submit_job({})", "ActorError: InvalidJobSpec: "),
    (EIP, "pvm_host.submit_job([1])", "ActorError: InvalidJobSpec: "),
    (EIP, "pvm_host.submit_job({'kind': 'magic', 'work': {}})", "ActorError: InvalidJobSpec: kind"),
    (EIP, "pvm_host.submit_job({'kind': 'http', 'work': {}})", "ActorError: InvalidJobSpec: work"),
    (
        EIP,
        "pvm_host.submit_job({'kind': 'http', 'work': {'url': 'ftp://a'}})",
        "ActorError: InvalidJobSpec: work.url",
    ),
    (EIP, "pvm_host.submit_job(dict(JOB, wages = 1))", "ActorError: InvalidJobSpec: wages"),
    (EIP, "pvm_host.submit_job(dict(JOB, max_price = '0'))", "ActorError: InvalidJobSpec: max_p"),
    (EIP, "pvm_host.submit_job(dict(JOB, timeout_blocks = 0))", "ActorError: InvalidJobSpec: tim"),
    (
        EIP,
        "pvm_host.submit_job(dict(JOB, timeout_blocks = 43201))",
        "ActorError: InvalidJobSpec: timeout_blocks",
    ),
    (
        EIP,
        "pvm_host.submit_job(dict(JOB, verification = {'mode': 'majority_vote', 'runners': 3}, \
         timeout_blocks = 7))",
        "ActorError: InvalidJobSpec: ",
    ),
    (
        EIP,
        "pvm_host.submit_job(dict(JOB, verification = {'mode': 'majority_vote', 'runners': 1}))",
        "ActorError: InvalidJobSpec: ",
    ),
    (
        EIP,
        "pvm_host.submit_job(dict(JOB, bounds = {'max_return_bytes': 524289}))",
        "ActorError: InvalidJobSpec: bounds.max_return_bytes",
    ),
    (
        EIP,
        "pvm_host.submit_job(dict(JOB, callback = {'actor': ctx.self, 'handler': ''}))",
        "ActorError: InvalidJobSpec: callback.handler",
    ),
    (EIP, "pvm_host.submit_job(JOB, callback = 'h' * 257)", "ValueTooLarge: a handler's name has"),
    (EIP, "pvm_host.submit_job(JOB)", "InsufficientBalance: "),
    (EIP, "pvm_host.transfer(ctx.sender, 1)", "ActorError: InsufficientBalance: "),
    (EIP, "pvm_host.send_message('0x' + '77' * 20, 'hello')", "UnknownActor: no actor 0x7777"),
    (EIP, "pvm_host.send_message(ctx.self, 'nothing')", "ActorError: UnknownHandler: "),
    (EIP, "pvm_host.send_message(ctx.self, 'h' * 257)", "ValueTooLarge: a handler's name has"),
    (EIP, "pvm_host.send_message(ctx.self, 'go')", "TooManyMessages: "),
    (EIP, "pvm_host.set_state('k' * 257, 1)", "ValueTooLarge: a key of the store has at most 256"),
    (EIP, "for i in range(1025): pvm_host.emit('e')", "ActorError: a call has at most 1024"),
    (EIP, "go(ctx, payload)", "StackOverflow: calls nest at most 64 deep"),
    (EIP, "for i in range(10000000): pass", "OutOfCycles: "),
    (EIP, "for i in range(9): pvm_host.set_state('k', 'x' * 100000)", "OutOfCells: "),
    (EIP, "pvm_host.send_message(ctx.self, 'go', ['x' * 600000] * 2)", "ValueTooLarge: a payload"),
    (
        GBA,
        "pvm_host.schedule_timer(5, '', gba = ctx.self, gas_limit = 550001)",
        "ActorError: GasLimitTooHigh: ",
    ),
];

/// A test's chain and an ordinary chain report the same error for each call.
#[test]
fn wrong_calls_are_refused_as_on_any_chain() {
    assert!(REFUSED.len() >= 25);
    for (policy, line, expected) in REFUSED {
        let mut setup = charging(*policy);
        setup.params.timers.config.max_timers_per_actor = 3;
        // Otherwise a string could not be longer than the maximum payload.
        setup.params.actors.limits.string = 2 << 20;

        // Deployed and called in block 1, so that prices, height and state are those of the test.
        let mut chain = Chain::new(&Genesis { params: setup.params.clone(), ..genesis(0) });
        let alice = key("alice").address();
        let actor = Address::of_actor(&alice, 0);
        let call = calling(actor, "go", "", Wei::ZERO);
        let (cycle, cell) = (chain.state.basefee_cycle(), chain.state.basefee_cell());
        let called = Transaction::with_limits(chain.state.chain_id(), 1, cycle, cell, call);
        let called = called.buying(CALL).sign(&key("alice"));
        let (cycles, cells) = called.least();
        let cycles = called.transaction.cycle_limit.get() - cycles.get();
        let cells = called.transaction.cell_limit.get() - cells.get();
        let source = format!(
            "JOB = {{'kind': 'http', 'work': {{'url': 'https://example.com/'}}}}\n\
             def go(ctx, payload):\n    {line}\n\n\
             def test_go():\n    mock.call(go, cycles = {cycles}, cells = {cells})\n"
        );
        let deployment = transaction::DeployActor { source: source.clone() };
        let deployment = Payload::DeployActor(deployment);
        let budget = Budget { cycles: 1_000_000, cells: 10_000 };
        let deployed = metered(&chain, "alice", deployment, budget);
        let execution = chain.push(vec![deployed, called]);
        let ReceiptStatus::Failed(told) = &execution.receipts[1].status else {
            panic!("{line}: {:?}", execution.receipts)
        };

        let reports = tested(&source, &setup);
        let Some(error) = reports[0].error.clone() else { panic!("{line} is not refused") };
        let test = error.stack.first().expect("the test is named");
        assert_eq!((test.function.as_str(), test.at.line), ("test_go", 6), "{line}");
        let said = match error.kind {
            ErrorKind::Undone(text) => text,
            kind => {
                let (at, stack) = (error.at, error.stack[1..].to_vec());
                assert_eq!(at.map(|at| at.line), Some(3), "{line}: {kind}");
                crate::actor::Error { kind, at, stack }.to_string()
            }
        };
        let named = |text: &str, actor: Address, sender: Address| {
            let text = text.replace(&actor.to_string(), "ACTOR");
            text.replace(&sender.to_string(), "SENDER")
        };
        let said = named(&said, account("self"), account("sender"));
        assert_eq!(said, named(told, actor, alice), "{line}");
        assert!(said.starts_with(expected), "{line}: {said}");
    }
}

/// A heartbeat whose timers have an agent: itself.
const BIDDER: &str = r#"
def getGasBid(context):
    return TxFeeParams(
        max_fee_per_cycle = 2 * context.basefee_lane_timer + 9,
        max_priority_fee_per_cycle = 7,
        max_fee_per_cell = context.basefee_cell,
        max_priority_fee_per_cell = 0,
    )

def start(ctx, payload):
    return pvm_host.schedule_timer(ctx.height + 1, payload, gba = ctx.self, gas_limit = 100000)

def handle_timer(ctx, payload):
    pvm_host.emit("beat", ctx.height)
"#;

#[test]
fn agents_are_asked_and_paid_for_as_on_any_chain() {
    for policy in [Policy::Eip1559, Policy::GbaAuction] {
        let setup = charging(policy);
        let source = format!(
            r#"{BIDDER}
def test_bids():
    mock.fund(mock.account("self"), 1000000000000000000)
    timer = mock.call(start, "x")
    waits = mock.timers()[0]
    if waits["timer_id"] != timer or waits["gba"] != mock.account("self") or waits["bid"] != None:
        fail(waits)
    mock.advance()
    fire = mock.fires()[0]
    print(fire["priority_per_cycle"], fire["charged"], 1000000000000000000 - pvm_host.get_balance())
    bid = fire["bid"]
    if fire["outcome"] != "fired" or bid["failed"] or bid["max_priority_fee_per_cycle"] != 7:
        fail(fire)
    if [event["data"] for event in mock.events()] != [2]:
        fail(mock.events())
"#
        );
        let report = passes(&source, &setup);
        let numbers: Vec<u128> =
            report.log[0].split(' ').map(|number| number.parse().unwrap()).collect();
        let [priority, charged, paid] = numbers[..] else { panic!("{:?}", report.log) };
        let question = paid - charged;

        let mut chain = Chain::new(&Genesis { params: setup.params, ..genesis(0) });
        let actor = chain.deploy(BIDDER);
        chain.push(vec![chain.sign("alice", transfer_to(actor, Wei::cby(1)))]);
        chain.call(actor, "start", "x");
        let price = chain.state.basefee_cycle().get()
            + chain.state.lane_basefee(chain.state.height().next()).get();
        let execution = chain.push(vec![]);
        let fire = &execution.fires[0];
        let asked = execution.lane.questions.get() / price;
        assert_eq!(execution.lane.asked, 1);
        assert_eq!(priority, fire.priority_per_cycle.get(), "{policy}");
        let price = match policy {
            Policy::Eip1559 => 2_000,
            Policy::Fifo | Policy::GbaAuction => 1_000,
        };
        assert_eq!(question, asked * price, "the answer takes {asked} cycles under {policy}");
        assert_eq!(report.fires[0].cycles, fire.cycles.get());
        let cells = u128::from(fire.cells.get()) * 1_000;
        assert_eq!(charged, u128::from(fire.cycles.get()) * (price + priority) + cells);
    }
}

fn transfer_to(to: Address, amount: Wei) -> Payload {
    Payload::Transfer(transaction::Transfer { to, amount })
}

#[test]
fn an_agent_that_fails_leaves_the_default_bid_and_says_why() {
    let source = r#"
def getGasBid(context):
    fail("no bid today")

def start(ctx, payload):
    pvm_host.schedule_timer(ctx.height + 1, "", gba = ctx.self)

def handle_timer(ctx, payload):
    pass

def test_falls_back():
    mock.call(start)
    mock.advance()
    if not mock.fires()[0]["bid"]["failed"]:
        fail(mock.fires())
    if "no bid today" not in mock.log()[0]:
        fail(mock.log())
"#;
    assert_eq!(passes(source, &Setup::default()).fires[0].ending, Ending::Fired);
}

/// Everything that can go wrong with timers that were scheduled correctly.
#[test]
fn a_timer_ends_as_on_any_chain() {
    let source = r#"
def start(ctx, payload):
    pvm_host.schedule_timer(ctx.height + 1, "", **json_decode(payload))

def handle_timer(ctx, payload):
    fail("as told")

def spin(ctx, payload):
    for i in range(1000000):
        pass

def outcomes():
    return [[fire["outcome"], fire["error"].split(":")[0]] for fire in mock.fires()]

def expect(got, want):
    if got != want:
        fail(got)

def test_a_handler_that_fails():
    mock.call(start, {})
    mock.advance(may_fail = True)
    expect(outcomes(), [["failed", "ActorError"]])
    mock.call(start, {"handler": "nothing"})
    mock.advance(may_fail = True)
    expect(outcomes()[1:], [["failed", "ActorError"]])
    mock.call(start, {"handler": "spin"})
    mock.advance(may_fail = True)
    expect(outcomes()[2:], [["failed", "OutOfCycles"]])

def test_a_handler_that_fails_fails_the_test():
    mock.call(start, {})
    mock.advance()

def test_a_poor_payer():
    mock.charge()
    mock.call(start, {})
    mock.advance()
    expect(outcomes(), [["unpaid", "InsufficientFunds"]])

def test_a_priced_out_timer_expires():
    mock.charge()
    mock.fund(mock.account("self"), 1000000000000000000)
    mock.call(start, {"max_fee_per_cycle": 1000, "expires_at": 3, "gas_limit": 250001})
    mock.advance(5)
    expect(outcomes(), [["expired", "TimerExpired"]])

def test_a_lane_that_is_full():
    for i in range(100):
        pvm_host.schedule_timer(2, str(i), handler = "spin", gas_limit = 250000)
    mock.advance(may_fail = True)
    expect(len(mock.fires()), 8)
    expect(len(mock.timers()), 92)
    mock.advance(may_fail = True)
    expect(len(mock.fires()), 16)

def test_a_policy():
    mock.policy("fifo")
    mock.call(start, {"bid": 1})
    expect(mock.timers()[0]["gas_limit"], 550000)
    mock.policy("eip1559")
"#;
    let reports = tested(source, &Setup::default());
    let failed = "ActorError: the timer that calls handle_timer failed at 2: ActorError: fail: as \
                  told (at 6:5)";
    let late = "ActorError: a policy is set before the first timer is scheduled (at 60:5)";
    let expected = ["", failed, "", "", "", late];
    assert_eq!(reports.len(), expected.len());
    for (report, expected) in reports.into_iter().zip(expected) {
        let error = report.error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.lines().next().unwrap_or_default(), expected, "{}", report.name);
    }
}

#[test]
fn messages_reach_other_actors_and_a_test_pays_for_all_that_it_does() {
    let source = r#"
PEER = "def hear(ctx, payload):\n  pvm_host.transfer(ctx.sender, 3)\n  print(payload)\n"

def tell(ctx, payload):
    pvm_host.send_message(payload, "hear", "hello", value = 5)

def spend(ctx, payload):
    for i in range(int(payload)):
        pass

def expect(got, want):
    if got != want:
        fail(got)

def test_tells():
    peer = mock.deploy("peer", PEER)
    expect(peer, mock.account("peer"))
    mock.fund(mock.account("self"), 7)
    mock.call(tell, peer)
    expect(mock.log(), ["hello"])
    expect([pvm_host.get_balance(), pvm_host.get_balance(peer)], [5, 2])
    expect(mock.messages()[0]["value"], 5)
    expect(mock.fails(tell, mock.account("nobody"))[:13], "UnknownActor:")
    expect(pvm_host.get_balance(), 5)

def test_deploys_nothing_that_a_chain_would_refuse():
    mock.deploy("peer", "x = (")

def test_limits_a_call():
    expect(mock.fails(spend, "1000", cycles = 5000)[:12], "OutOfCycles:")
    expect(mock.fails(spend, "100000000")[:12], "OutOfCycles:")

def test_ends_with_its_cycles():
    for i in range(100):
        mock.call(spend, "10000")
        mock.fails(spend, "no number")

def test_asks_for_a_job_that_it_cannot_pay():
    pvm_host.submit_job({"kind": "http", "work": {"url": "https://example.com/"}})
"#;
    let reports = tested(source, &Setup::default());
    let error = |index: usize| {
        let error = reports[index].error.as_ref().map(ToString::to_string);
        error.unwrap_or_default()
    };
    assert_eq!(error(0), "");
    assert!(error(1).starts_with("ModuleRefused: "), "{}", error(1));
    assert_eq!(error(2), "");
    assert!(error(3).starts_with("OutOfCycles: the limit is 100000000 cycles, "), "{}", error(3));
    assert!(error(4).starts_with("InsufficientBalance: "), "{}", error(4));
    assert!(error(4).contains("in test_asks_for_a_job_that_it_cannot_pay at 38:1"), "{}", error(4));
}

#[test]
fn a_job_without_runners_ends_and_its_callback_is_made() {
    let source = r#"
def ask(ctx, payload):
    job = {"kind": "http", "work": {"url": "https://example.com/"}, "timeout_blocks": 5}
    return pvm_host.submit_job(job, callback = "ended")

def ended(ctx, payload):
    pvm_host.emit("ended", json_decode(payload))

def test_ends():
    mock.fund(mock.account("self"), 1000000000000000000000)
    job = mock.call(ask)
    if mock.jobs()[0]["job_id"] != job:
        fail(mock.jobs())
    mock.advance(6)
    data = mock.events()[0]["data"]
    if data["job_id"] != job or data["status"] != "Failed":
        fail(data)
"#;
    passes(source, &Setup::default());
}
