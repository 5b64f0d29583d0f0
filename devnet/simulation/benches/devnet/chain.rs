//! Blocks per second.

use crate::{RUNNERS, VALIDATORS, loopback};
use cowboy_devnet::{
    sample::{key, transfer},
    validator::Services,
};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload, SignedTransaction, Transaction,
        transaction::{CallActor, DeployActor, Transfer},
    },
    primitives::{Address, Height, Wei},
};
use cowboy_simulation::{Cluster, Setup};
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    time::{Duration, Instant},
};

/// Runs in the simulator; returns blocks, wall time and transactions.
pub fn simulated(block_time: Duration, blocks: u64) -> (u64, Duration, u64) {
    cowboy_simulation::run(1, async |context| {
        let mut cluster = Cluster::new(context, Setup::new(VALIDATORS, RUNNERS, block_time))
            .await
            .expect("a cluster");
        cluster.start_all().expect("they start");
        let start = Instant::now();
        assert!(cluster.reach(blocks, Duration::from_secs(10_000)).await, "the chain is stuck");
        (blocks, start.elapsed(), 0)
    })
}

/// Runs for `blocks` blocks. Before each block, `transfers` transfers are submitted to one
/// validator. They are signed, and their senders' keys recovered, before the clock starts, because
/// those costs have a benchmark of their own (`cargo bench -p cowboy-engine execute`).
pub fn real_time(transfers: u64, blocks: u64) -> (u64, Duration, u64) {
    loopback::run(Setup::new(VALIDATORS, RUNNERS, Duration::ZERO), async |mut devnet| {
        let begun = Instant::now();
        devnet.start_all(None);
        let services = devnet.validator(0).services().clone();
        services.ledger.wait_executed(Height::new(1)).await.expect("a first block");
        let _ = writeln!(io::stdout(), "first block after {:?}", begun.elapsed());
        let state = services.ledger.newest().state;
        let signed = (0..transfers * blocks).map(|number| {
            let from = (number % 4) as usize;
            let transfer = transfer(&state, from, number / 4, (from + 1) % 4);
            transfer.sender().expect("it is signed");
            transfer
        });
        let mut signed: VecDeque<_> = signed.collect();
        let mut submit = |blocks: u64| {
            for _ in 0..transfers * blocks {
                let Some(transaction) = signed.front() else { return };
                // A full mempool has enough for the next blocks.
                if services.submit(transaction.clone()).is_err() {
                    return;
                }
                signed.pop_front();
            }
        };
        let mut executed = services.ledger.subscribe();
        let (start, mut transactions) = (Instant::now(), 0);
        submit(2);
        for _ in 0..blocks {
            let block = executed.recv().await.expect("the chain goes on, and is kept up with");
            transactions += block.block.transactions.len() as u64;
            submit(1);
        }
        let took = start.elapsed();
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        (blocks, took, transactions)
    })
}

/// Timers that count and reschedule themselves for the next block.
const BEAT: &str = r#"
def handle_timer(ctx, payload):
    pvm_host.set_state("beats", pvm_host.get_state("beats", 0) + 1)
    pvm_host.schedule_timer(ctx.height + 1, payload, gas_limit = 5000)

def begin(ctx, payload):
    for number in range(250):
        pvm_host.schedule_timer(ctx.height + 3, str(number), gas_limit = 5000)
"#;

/// The next transaction of `account-0`.
pub fn signed(services: &Services, budget: Budget, payload: Payload) -> SignedTransaction {
    let state = services.ledger.newest().state;
    let sender = key("account-0");
    let next = state.account(&sender.address()).nonce;
    let nonce = services.mempool.with(|pool| pool.next_nonce(&sender.address(), next));
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload)
        .buying(budget)
        .sign(&sender)
}

fn send(services: &Services, payload: Payload) {
    let budget = Budget { cycles: 10_000_000, cells: 500_000 };
    services.submit(signed(services, budget, payload)).expect("there is room for it");
}

/// Runs for `blocks` blocks in each of which a thousand timers fire. The lane has room for twice as
/// many, so its price stays constant.
pub fn fires(blocks: u64) -> (u64, Duration, u64) {
    const TIMERS: usize = 1_000;
    let mut setup = Setup::new(VALIDATORS, RUNNERS, Duration::ZERO);
    setup.genesis.params.timers.config.lane_timer_cycles = 2 * 5_000 * TIMERS as u64;
    loopback::run(setup, async |mut devnet| {
        devnet.start_all(None);
        let services = devnet.validator(0).services().clone();
        let mut executed = services.ledger.subscribe();
        services.ledger.wait_executed(Height::new(1)).await.expect("a first block");
        send(&services, Payload::DeployActor(DeployActor { source: BEAT.into() }));
        let actor = Address::of_actor(&key("account-0").address(), 0);
        send(&services, Payload::Transfer(Transfer { to: actor, amount: Wei::cby(100_000) }));
        for _ in 0..TIMERS / 250 {
            let (handler, payload) = ("begin".to_owned(), Vec::new());
            let call = CallActor { actor, handler, payload, value: Wei::ZERO };
            send(&services, Payload::CallActor(call));
        }
        let mut fires = 0;
        for _ in 0..100 {
            fires = executed.recv().await.expect("the chain goes on").execution.fires.len();
            if fires == TIMERS {
                break;
            }
        }
        assert_eq!(fires, TIMERS, "all timers are there");
        let (start, mut fired) = (Instant::now(), 0);
        for _ in 0..blocks {
            let block = executed.recv().await.expect("the chain goes on, and is kept up with");
            fired += block.execution.fires.len() as u64;
        }
        let took = start.elapsed();
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        (blocks, took, fired)
    })
}
