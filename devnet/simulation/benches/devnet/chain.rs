//! Blocks per second in real time.

use crate::{RUNNERS, VALIDATORS, loopback, process::processor_time};
use cowboy_devnet::{
    chain::ledger::ExecutedBlock,
    sample::{key, transfer},
    validator::Services,
};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload, SignedTransaction, Transaction,
        transaction::{CallActor, DeployActor, Transfer},
    },
    primitives::{Address, Wei},
};
use cowboy_simulation::Setup;
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    sync::Arc,
    time::{Duration, Instant},
};

/// When the senders' keys of transfers are recovered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Before the clock starts, because it has a benchmark of its own (`cargo bench -p
    /// cowboy-engine execute`).
    Before,
    /// When they are submitted.
    Submitted,
}

/// The transfers of a run.
#[derive(Clone, Copy)]
pub struct Transfers {
    /// The number submitted before each block.
    pub each: u64,
    pub recovery: Recovery,
}

impl Transfers {
    /// A run of empty blocks.
    pub const NONE: Self = Self { each: 0, recovery: Recovery::Before };
}

/// The measured part of a run.
pub struct Run {
    pub blocks: u64,
    pub took: Duration,
    /// Processor time of the process.
    pub processor: Duration,
    /// Transactions or fires in the blocks.
    pub done: u64,
}

/// Most blocks for each that was asked for, before the transfers count as stuck.
const MOST_BLOCKS: u64 = 50;

/// Runs `validators` validators for `blocks` blocks after the first, or more until the transfers of
/// this number of blocks are final. Before each block, transfers are submitted to one validator;
/// they are signed before the clock starts. `observe` is called with every block, except those that
/// come while transfers are signed.
pub fn real_time(
    validators: usize,
    transfers: Transfers,
    blocks: u64,
    mut observe: impl FnMut(&Arc<ExecutedBlock>),
) -> Run {
    loopback::run(Setup::new(validators, RUNNERS, Duration::ZERO), async |mut devnet| {
        let begun = Instant::now();
        devnet.start_all(None);
        let services = devnet.validator(0).services().clone();
        let mut executed = services.ledger.subscribe();
        observe(&executed.recv().await.expect("a first block"));
        let _ = writeln!(io::stdout(), "first block after {:?}", begun.elapsed());
        let Transfers { each, recovery } = transfers;
        let state = services.ledger.head();
        let signed = (0..each * blocks).map(|number| {
            let from = (number % 4) as usize;
            let transfer = transfer(&state, from, number / 4, (from + 1) % 4);
            if recovery == Recovery::Before {
                transfer.sender().expect("it is signed");
            }
            transfer
        });
        let mut signed: VecDeque<_> = signed.collect();
        let mut submit = |blocks: u64| {
            for _ in 0..each * blocks {
                let Some(transaction) = signed.front() else { return };
                // A full mempool has enough for the next blocks.
                if services.submit(transaction.clone()).is_err() {
                    return;
                }
                signed.pop_front();
            }
        };
        if each > 0 {
            executed = executed.resubscribe();
        }
        let (start, spent, wanted) = (Instant::now(), processor_time(), each * blocks);
        let (mut made, mut done) = (0, 0);
        submit(2);
        while made < blocks || done < wanted {
            assert!(made < MOST_BLOCKS * blocks, "{done} of {wanted} transfers are final");
            let block = executed.recv().await.expect("the chain goes on, and is kept up with");
            made += 1;
            done += block.block.transactions.len() as u64;
            observe(&block);
            // Blocks that came during the last submission are counted first.
            if executed.is_empty() {
                submit(1);
            }
        }
        let (took, processor) = (start.elapsed(), processor_time().saturating_sub(spent));
        for index in 0..validators {
            devnet.stop(index).await;
        }
        Run { blocks: made, took, processor, done }
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
    let state = services.ledger.head();
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

/// Number of timers that fire in each block of [`fires`].
const TIMERS: usize = 1_000;

/// Validators for [`fires`]. The lane has room for twice as many timers, so its price stays
/// constant.
pub fn setup_for_fires() -> Setup {
    let mut setup = Setup::new(VALIDATORS, RUNNERS, Duration::ZERO);
    setup.genesis.params.timers.config.lane_timer_cycles = 2 * 5_000 * TIMERS as u64;
    setup
}

/// Runs for `blocks` blocks in each of which a thousand timers fire. `observe` is called with every
/// block from the first on.
pub fn fires(blocks: u64, mut observe: impl FnMut(&Arc<ExecutedBlock>)) -> Run {
    loopback::run(setup_for_fires(), async |mut devnet| {
        devnet.start_all(None);
        let services = devnet.validator(0).services().clone();
        let mut executed = services.ledger.subscribe();
        observe(&executed.recv().await.expect("a first block"));
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
            let block = executed.recv().await.expect("the chain goes on");
            observe(&block);
            fires = block.execution.fires.len();
            if fires == TIMERS {
                break;
            }
        }
        assert_eq!(fires, TIMERS, "all timers are there");
        let (start, spent, mut done) = (Instant::now(), processor_time(), 0);
        for _ in 0..blocks {
            let block = executed.recv().await.expect("the chain goes on, and is kept up with");
            done += block.execution.fires.len() as u64;
            observe(&block);
        }
        let (took, processor) = (start.elapsed(), processor_time().saturating_sub(spent));
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        Run { blocks, took, processor, done }
    })
}
