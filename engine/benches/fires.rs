//! Cost of a block's timer lane with handlers: `cargo bench -p cowboy-engine --bench fires`.
//!
//! A block of 1,000 timers whose handlers write a counter, compared with the same 1,000 handlers
//! called by messages (which have no lane, ranking, charge or receipt of their own), a block of
//! 1,000 timers that name an agent, and one whose handlers also schedule the next timer, as those
//! of the bench `devnet` do. The lane is wide enough for all of them. Each figure is the execution
//! of one block, as by a validator once the block is final, with the calendar of the block before.

use cowboy_engine::{
    actor::Budget,
    chain::{
        Block, Endowment, Genesis, GenesisValidator, Header, Params, Payload, ReceiptStatus, State,
        Transaction,
        block::transactions_root,
        execute,
        transaction::{CallActor, DeployActor, SignedTransaction, Transfer},
    },
    primitives::{Address, SecretKey, Wei},
};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const TIMERS: u64 = 1_000;
/// The height at which the timers are due.
const DUE: u64 = 20;

const ACTOR: &str = r#"
def handle_timer(ctx, payload):
    pvm_host.set_state("n", pvm_host.get_state("n", 0) + 1)

def schedule(ctx, payload):
    args = json_decode(payload)
    for n in range(250):
        pvm_host.schedule_timer(args["at"], str(n), gas_limit = 5000, gba = args["gba"])

def send(ctx, payload):
    for _ in range(1000):
        pvm_host.send_message(ctx.self, "handle_timer")

def getGasBid(context: GBAContext) -> TxFeeParams:
    return TxFeeParams(
        max_fee_per_cycle           = 2 * context.basefee_lane_timer,
        max_priority_fee_per_cycle  = context.previous_block_p50_priority_tip_per_cycle,
        max_fee_per_cell            = context.basefee_cell,
        max_priority_fee_per_cell   = 0,
    )
"#;

/// The end of a handler that schedules its next timer.
const AGAIN: &str = "\n    pvm_host.schedule_timer(ctx.height + 1, payload, gas_limit = 5000)";

/// What the timers of a bench have beyond a handler that counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timers {
    Plain,
    WithAgents,
    Again,
}

struct Chain {
    key: SecretKey,
    state: State,
}

impl Chain {
    /// A chain with an actor that has money.
    fn new(timers: Timers) -> (Self, Address) {
        let key = SecretKey::derive(b"bench", "alice");
        let mut params = Params::default();
        params.timers.config.lane_timer_cycles = 100_000_000;
        params.timers.config.max_cells_per_fire = 1_000;
        let genesis = Genesis {
            name: "bench".into(),
            timestamp_ms: 0,
            params,
            validators: vec![GenesisValidator { pubkey: key.public_key(), consensus_key: [1; 32] }],
            runners: vec![],
            endowments: vec![Endowment { account: key.address(), balance: Wei::cby(10_000_000) }],
        };
        let mut chain = Self { key, state: genesis.state().expect("a chain") };
        let source = match timers {
            Timers::Again => {
                ACTOR.replacen("\n\ndef schedule", &format!("{AGAIN}\n\ndef schedule"), 1)
            }
            Timers::Plain | Timers::WithAgents => ACTOR.to_owned(),
        };
        chain.send(Payload::DeployActor(DeployActor { source }));
        let actor = Address::of_actor(&chain.key.address(), 0);
        chain.send(Payload::Transfer(Transfer { to: actor, amount: Wei::cby(1_000_000) }));
        (chain, actor)
    }

    fn sign(&self, payload: Payload) -> SignedTransaction {
        let nonce = self.state.account(&self.key.address()).nonce;
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        Transaction::with_limits(self.state.chain_id(), nonce, cycle, cell, payload)
            .buying(Budget { cycles: 15_000_000, cells: 500_000 })
            .sign(&self.key)
    }

    fn send(&mut self, payload: Payload) {
        let block = child(&self.state, vec![self.sign(payload)]);
        let executed = execute(&self.state, &block).expect("a child");
        assert_eq!(executed.receipts[0].status, ReceiptStatus::Success);
        self.state = executed.state;
    }

    fn call(actor: Address, handler: &str, payload: String) -> Payload {
        let (handler, payload) = (handler.to_owned(), payload.into_bytes());
        Payload::CallActor(CallActor { actor, handler, payload, value: Wei::ZERO })
    }

    /// The state two blocks before the timers are due.
    fn waiting(timers: Timers) -> State {
        let (mut chain, actor) = Self::new(timers);
        let gba = match timers {
            Timers::WithAgents => format!("\"{actor}\""),
            Timers::Plain | Timers::Again => "null".to_owned(),
        };
        for _ in 0..TIMERS / 250 {
            let payload = format!("{{\"at\": {DUE}, \"gba\": {gba}}}");
            chain.send(Self::call(actor, "schedule", payload));
        }
        while chain.state.height().get() < DUE - 2 {
            chain.state =
                execute(&chain.state, &child(&chain.state, vec![])).expect("a child").state;
        }
        chain.state
    }
}

fn child(state: &State, transactions: Vec<SignedTransaction>) -> Block {
    let header = Header {
        height: state.height().next(),
        parent: state.head_hash(),
        timestamp_ms: state.head().timestamp_ms + 1_000,
        transactions_root: transactions_root(&transactions),
        proposer: [1; 32],
        ..state.head().clone()
    };
    Block { header, certificates: vec![], transactions }
}

fn fires(c: &mut Criterion) {
    let mut group = c.benchmark_group("fires");
    group.sample_size(30).throughput(Throughput::Elements(TIMERS));
    for (name, timers) in [
        ("1000 timers", Timers::Plain),
        ("1000 timers with agents", Timers::WithAgents),
        ("1000 timers that schedule the next", Timers::Again),
    ] {
        let before = Chain::waiting(timers);
        let last = child(&before, vec![]);
        let parent = || execute(&before, &last).expect("a child").state;
        let due = child(&parent(), vec![]);
        let executed = execute(&parent(), &due).expect("a child");
        assert_eq!(executed.fires.len() as u64, TIMERS);
        assert!(executed.fires.iter().all(|fire| fire.status == ReceiptStatus::Success));
        group.bench_function(name, |b| {
            b.iter_batched(parent, |parent| execute(&parent, &due), BatchSize::PerIteration);
        });
        let root = |parent: State| execute(&parent, &due).map(|executed| executed.state.root());
        group.bench_function(format!("{name}, and root"), |b| {
            b.iter_batched(
                || {
                    let parent = parent();
                    parent.root();
                    parent
                },
                root,
                BatchSize::PerIteration,
            );
        });
    }
    let (chain, actor) = Chain::new(Timers::Plain);
    let block = child(&chain.state, vec![chain.sign(Chain::call(actor, "send", String::new()))]);
    let executed = execute(&chain.state, &block).expect("a child");
    assert_eq!(executed.receipts[0].status, ReceiptStatus::Success);
    group.bench_function("1000 messages", |b| b.iter(|| execute(&chain.state, &block)));
    group.finish();
}

criterion_group!(benches, fires);
criterion_main!(benches);
