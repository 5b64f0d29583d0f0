//! Effects and costs of attacks on the timers' lane and on blocks.

use crate::{RUNNERS, VALIDATORS, chain::signed, loopback};
use cowboy_devnet::{sample::key, validator::Services};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload, State,
        transaction::{CallActor, DeployActor, Transfer},
    },
    primitives::{Address, Height, Wei},
    timer::Policy,
};
use cowboy_simulation::Setup;
use std::time::{Duration, Instant};

/// Ten seconds of this are fifty blocks.
const BLOCK_TIME: Duration = Duration::from_millis(200);
/// Length of the measurement.
const SPAN: Duration = Duration::from_secs(10);
/// Funds of each timer's owner, in CBY.
const FUNDS: u128 = 100_000;

/// An attack by one account and one actor.
pub struct Attack {
    /// Its name in the output.
    pub name: &'static str,
    policy: Policy,
    source: &'static str,
    /// Number of calls of `begin` before the measurement.
    begin: u64,
    /// Number of calls of `again` for each measured block, and the cycles that each of them buys.
    again: (u64, u64),
}

/// The outcome of an attack.
pub struct Outcome {
    /// Number of blocks in [`SPAN`].
    pub blocks: u64,
    /// Number of fires in those blocks.
    pub fires: u64,
    /// Number of transactions in those blocks.
    pub transactions: u64,
    /// Wei that the attacker's account and actor paid in [`SPAN`].
    pub paid: Wei,
}

/// Each attack as it was made on a running devnet, as often as the chain accepts it.
pub const ATTACKS: [Attack; 6] = [
    Attack {
        name: "idle",
        policy: Policy::Eip1559,
        source: "def begin(ctx, payload):\n    pass\n",
        begin: 0,
        again: (0, 0),
    },
    Attack {
        name: "timers whose agent fails",
        policy: Policy::GbaAuction,
        source: r"
def getGasBid(context):
    fail('no bid')

def handle_timer(ctx, payload):
    pass

def begin(ctx, payload):
    for number in range(250):
        pvm_host.schedule_timer(
            ctx.height + 12, payload + str(number), gba = ctx.self, gas_limit = 5000)
",
        begin: 4,
        again: (0, 0),
    },
    Attack {
        name: "fires that write",
        policy: Policy::Eip1559,
        source: r"
def handle_timer(ctx, payload):
    for part in range(48):
        pvm_host.set_state(str(ctx.height) + payload + str(part), 'x' * 1000)
    pvm_host.schedule_timer(ctx.height + 1, payload, gas_limit = 100000, cell_limit = 100032)

def begin(ctx, payload):
    for number in range(100):
        pvm_host.schedule_timer(
            ctx.height + 12, payload + str(number), gas_limit = 100000, cell_limit = 100032)
",
        begin: 1,
        again: (0, 0),
    },
    Attack {
        name: "fires that copy",
        policy: Policy::Eip1559,
        source: r"
def handle_timer(ctx, payload):
    pvm_host.schedule_timer(ctx.height + 1, payload, gas_limit = 250000)
    long = 'x' * 100000
    often = range(1000000)
    for _ in often:
        print('a', 'b', sep = long)

def begin(ctx, payload):
    for number in range(100):
        pvm_host.schedule_timer(ctx.height + 12, payload + str(number), gas_limit = 250000)
",
        begin: 1,
        again: (0, 0),
    },
    Attack {
        name: "room bought, not used",
        policy: Policy::Eip1559,
        source: r"
def begin(ctx, payload):
    pass

def again(ctx, payload):
    pass
",
        begin: 0,
        again: (2, 20_000_000),
    },
    Attack {
        name: "calls that compute",
        policy: Policy::Eip1559,
        source: r"
def begin(ctx, payload):
    pass

def again(ctx, payload):
    total = 0
    for number in range(100000000):
        total += number
",
        begin: 0,
        again: (2, 10_000_000),
    },
];

/// Runs four validators on the loopback for [`SPAN`] under `attack`.
pub fn outcome(attack: &Attack) -> Outcome {
    let mut setup = Setup::new(VALIDATORS, RUNNERS, BLOCK_TIME);
    setup.genesis.params.timers.policy = attack.policy;
    loopback::run(setup, async |mut devnet| {
        devnet.start_all(None);
        let services = devnet.validator(0).services().clone();
        let mut executed = services.ledger.subscribe();
        services.ledger.wait_executed(Height::new(1)).await.expect("a first block");
        let sender = key("account-0").address();
        let actor =
            Address::of_actor(&sender, services.ledger.newest().state.account(&sender).nonce);
        send(
            &services,
            10_000_000,
            Payload::DeployActor(DeployActor { source: attack.source.into() }),
        );
        send(&services, 50_000, Payload::Transfer(Transfer { to: actor, amount: Wei::cby(FUNDS) }));
        for number in 0..attack.begin {
            send(&services, 10_000_000, call(actor, "begin", number));
        }
        // The timers scheduled by `begin` are due after this.
        for _ in 0..14 {
            executed.recv().await.expect("the chain goes on");
        }
        let before = wealth(&services.ledger.newest().state, &[sender, actor]);
        let (start, mut outcome) =
            (Instant::now(), Outcome { blocks: 0, fires: 0, transactions: 0, paid: Wei::ZERO });
        let mut number = attack.begin;
        while let Some(left) = SPAN.checked_sub(start.elapsed()) {
            let (calls, cycles) = attack.again;
            for _ in 0..calls {
                number += 1;
                send(&services, cycles, call(actor, "again", number));
            }
            let Ok(block) = tokio::time::timeout(left, executed.recv()).await else { break };
            let block = block.expect("the chain goes on, and is kept up with");
            outcome.blocks += 1;
            outcome.fires += block.execution.fires.len() as u64;
            outcome.transactions += block.block.transactions.len() as u64;
        }
        let after = wealth(&services.ledger.newest().state, &[sender, actor]);
        outcome.paid = before.saturating_sub(after);
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        outcome
    })
}

fn wealth(state: &State, accounts: &[Address]) -> Wei {
    accounts
        .iter()
        .fold(Wei::ZERO, |sum, account| sum.saturating_add(state.account(account).balance))
}

fn call(actor: Address, handler: &str, number: u64) -> Payload {
    let payload = format!("{number}.").into_bytes();
    Payload::CallActor(CallActor { actor, handler: handler.into(), payload, value: Wei::ZERO })
}

/// Submits a transaction that buys `cycles` cycles. A full mempool refuses it, which is fine
/// because the mempool then has enough for the next blocks.
fn send(services: &Services, cycles: u64, payload: Payload) {
    let transaction = signed(services, Budget { cycles, cells: 500_000 }, payload);
    let _ = services.submit(transaction);
}
