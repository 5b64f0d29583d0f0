//! A chain in memory, with nothing but the engine's transition function: a program makes its blocks
//! one after the other. No network and no clock; a thousand blocks take seconds.

use cowboy_engine::{
    actor::Budget,
    chain::{
        Block, Endowment, EventKind, Executed, Execution, Genesis, GenesisValidator, Header,
        Params, Payload, ReceiptStatus, Round, SignedTransaction, State, Transaction,
        block::{certificates_root, transactions_root},
        event::ActorDeployed,
        execute,
        transaction::{DeployActor, Transfer},
    },
    fees::meter::{MAX_BLOCK_CELLS, MAX_BLOCK_CYCLES},
    primitives::{Address, Height, SecretKey, Wei},
    timer::{self, TimerRequest},
};
use std::sync::Arc;

/// An actor whose `handle_timer` spins as often as its payload says.
const SPINNER: &str = include_str!("actors/spammer.star");
/// Limits of its deployment, or of a call of it, in addition to the intrinsic cost.
const DEPLOYMENT: Budget = Budget { cycles: 100_000, cells: 40_000 };
/// The balance of each actor; each account has a thousand times as much.
const FORTUNE: Wei = Wei::cby(1_000_000);
/// The gas limit of a spinner's timer, in cycles, and the number of turns that nearly uses it up.
pub const GAS_LIMIT: u64 = 20_000;
const TURNS: u64 = 170;

/// A chain of one validator.
pub struct Chain {
    /// The state after the newest block.
    pub state: State,
}

fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"example", name)
}

/// The address derived from an account's name.
pub fn account(name: &str) -> Address {
    key(name).address()
}

impl Chain {
    pub fn new(timers: timer::Params, accounts: &[String]) -> Self {
        let balance = FORTUNE.saturating_mul(1_000);
        let validator =
            GenesisValidator { pubkey: key("validator").public_key(), consensus_key: [1; 32] };
        let genesis = Genesis {
            name: "example".to_owned(),
            timestamp_ms: 0,
            params: Params { timers, ..Params::default() },
            validators: vec![validator],
            runners: Vec::new(),
            endowments: accounts
                .iter()
                .map(|name| Endowment { account: account(name), balance })
                .collect(),
        };
        Self { state: genesis.state().expect("every account occurs once") }
    }

    pub fn next(&self) -> u64 {
        self.state.height().get() + 1
    }

    pub fn block(&mut self, transactions: Vec<SignedTransaction>) -> Execution {
        let head = self.state.head();
        let height = head.height.next();
        let header = Header {
            height,
            parent: self.state.head_hash(),
            round: Round { epoch: 0, view: height.get(), parent_view: head.height.get() },
            proposer: [1; 32],
            timestamp_ms: head.timestamp_ms + 1_000,
            subset_epoch: self.state.childs_subset_epoch(),
            transactions_root: transactions_root(&transactions),
            certificates_root: certificates_root(&[]),
            open: head.candidates(self.state.head_hash()),
            executed: Executed { height: head.height, state_root: self.state.root() },
        };
        let block = Block { header, certificates: Vec::new(), transactions };
        let execution = execute(&self.state, &block).expect("it extends the head");
        self.state = execution.state.clone();
        execution
    }

    /// Signs a transaction of an account that comes after `ahead` others in the same block.
    pub fn sign(&self, from: &str, ahead: u64, payload: Payload) -> SignedTransaction {
        let key = key(from);
        let nonce = self.state.account(&key.address()).nonce + ahead;
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        let runs = matches!(payload, Payload::DeployActor(_) | Payload::CallActor(_));
        let chain_id = self.state.chain_id();
        let transaction = Transaction::with_limits(chain_id, nonce, cycle, cell, payload);
        if runs { transaction.buying(DEPLOYMENT) } else { transaction }.sign(&key)
    }

    /// Sends transactions of an account, in as many blocks as necessary.
    pub fn send(&mut self, from: &str, payloads: Vec<Payload>) -> Vec<Execution> {
        let mut payloads = payloads.into_iter().peekable();
        let mut executions = Vec::new();
        while payloads.peek().is_some() {
            let (mut block, mut cycles, mut cells) = (Vec::new(), 0, 0);
            while let Some(payload) = payloads.peek() {
                let signed = self.sign(from, block.len() as u64, payload.clone());
                let least = signed.reserve();
                (cycles, cells) = (cycles + least.0.get(), cells + least.1.get());
                if cycles > MAX_BLOCK_CYCLES || cells > MAX_BLOCK_CELLS {
                    break;
                }
                block.push(signed);
                payloads.next();
            }
            let execution = self.block(block);
            for receipt in &execution.receipts {
                assert_eq!(
                    receipt.status,
                    ReceiptStatus::Success,
                    "these transactions cannot fail"
                );
            }
            executions.push(execution);
        }
        executions
    }

    /// Deploys `count` spinners and gives each [`FORTUNE`].
    pub fn spinners(&mut self, deployer: &str, count: usize) -> Vec<Address> {
        let deploy = Payload::DeployActor(DeployActor { source: SPINNER.to_owned() });
        let executions = self.send(deployer, vec![deploy; count]);
        let deployed =
            executions.iter().flat_map(|execution| &execution.events).filter_map(|event| {
                match &event.kind {
                    EventKind::ActorDeployed(ActorDeployed { actor, .. }) => Some(*actor),
                    _ => None,
                }
            });
        let spinners: Vec<_> = deployed.collect();
        let fund = |to: &Address| Payload::Transfer(Transfer { to: *to, amount: FORTUNE });
        self.send(deployer, spinners.iter().map(fund).collect());
        spinners
    }
}

/// A request for a timer that spins for nearly all of [`GAS_LIMIT`].
pub fn spinning(actor: Address, height: u64, max_fee: Wei, tip: Wei) -> TimerRequest {
    TimerRequest {
        actor,
        height: Height::new(height),
        payload: TURNS.to_string().into_bytes(),
        gas_limit: Some(GAS_LIMIT),
        max_fee_per_cycle: Some(max_fee),
        max_priority_fee_per_cycle: Some(tip),
        ..TimerRequest::default()
    }
}

pub fn schedule(request: TimerRequest) -> Payload {
    Payload::ScheduleTimer(Arc::new(request))
}
