//! Chains for tests of actors (docs/actors.md, "Tests"): a state with one validator, on which calls
//! run as in transactions and the transition executes blocks.
//!
//! Calls are not signed, pay no fee and may each use the maximum of a block. There is no consensus,
//! no storage and no runner. A call runs after the timers of the newest block and sees that block's
//! height and time. The basefees stay at zero unless the chain [charges](Setup::charge).

use super::{
    actors::{ActorCode, Language},
    block::{Block, Header, Round, certificates_root, transactions_root},
    committee::GenesisValidator,
    event::EventKind,
    genesis::{Genesis, GenesisError},
    params::Params,
    receipt::ReceiptStatus,
    state::State,
    timers::{Desk, Parked},
    transition::{
        CallFailure, FailureKind,
        actors::{self, ActorEffects, BlockContext, PendingCall, StateView, Traced},
        execute_watched,
    },
};
use crate::{
    actor::{
        Budget, Campaign, Coverage, Effect, Error, ErrorKind, JobRequest, Module, Property,
        PropertyReport, Seed, TestInput, TestReport, TimerCall, Usage, World,
        testing::{Advanced, Chain, Ending, Fired, Ran, TestBid, TestCall, Waiting, account},
    },
    fees::meter,
    primitives::{Address, Hash, Height, SecretKey, Wei, keccak256},
    timer::{Bid, Calendar, Ids, Policy, lane::Buffers},
};
use std::collections::BTreeMap;

const BLOCK_MS: u64 = 1_000;
/// The validator's key; it proposes every block.
const PROPOSER: [u8; 32] = [1; 32];
/// Maximum usage of a call: what a block has room for.
const BLOCK: Budget = Budget {
    cycles: meter::MAX_BLOCK_CYCLES - meter::INTRINSIC_CYCLES,
    cells: meter::MAX_BLOCK_CELLS,
};

/// The state that tests start from.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub params: Params,
    /// Whether cycles and cells have the prices in `params`; otherwise their basefees are zero.
    pub charge: bool,
    pub balance: Wei,
}

/// The tests of a module. Each test runs on its own chain, which starts at height 1.
#[derive(Clone, Debug)]
pub struct Suite {
    module: Module,
    /// The state after block 1, with the actor.
    start: State,
    charge: bool,
}

impl Suite {
    /// A suite for the module of this source; `usage` is that of loading it.
    pub fn new(
        source: &str,
        (usage, module): (&Usage, &Module),
        setup: &Setup,
    ) -> Result<Self, GenesisError> {
        let validator = SecretKey::derive(b"actor-test", "validator").public_key();
        let genesis = Genesis {
            name: "actor-test".into(),
            timestamp_ms: 0,
            params: setup.params.clone(),
            validators: vec![GenesisValidator { pubkey: validator, consensus_key: PROPOSER }],
            runners: Vec::new(),
            endowments: Vec::new(),
        };
        let mut start = TestChain::new(genesis.state()?, setup.charge);
        start.advance();
        match setup.charge {
            true => start.charge(),
            false => start.hold_prices(),
        }
        let (deployer, hash) = (account("sender"), ActorCode::hash(Language::Starlark, source));
        start.state.code.insert(hash, ActorCode::loaded(source, module.clone()));
        let (height, loading) = (start.height(), usage.cycles());
        let actor = super::Actor {
            deployer,
            code: hash,
            deployed_at: height,
            retained: module.retained(),
            loading,
            loaded_at: height,
            new_owner: None,
        };
        start.state.actors.insert(account("self"), actor);
        start.fund(account("self"), setup.balance).expect("nothing was there before");
        Ok(Self { module: module.clone(), start: start.state, charge: setup.charge })
    }

    /// How much of the module the tests so far have run; `None` if its calls are not recorded.
    pub fn coverage(&self) -> Option<Coverage> {
        self.module.coverage()
    }

    /// Runs a test that takes nothing but the context.
    pub fn test(&self, name: &str, budget: Budget) -> TestReport {
        self.run((name, None), budget)
    }

    /// Runs a test on inputs until one fails; each has the budget, and a chain of its own. Ends
    /// without a report once `is_stopped`.
    pub fn property(
        &self,
        property: &Property,
        budget: Budget,
        campaign: Campaign,
        is_stopped: impl Fn() -> bool,
    ) -> Option<PropertyReport> {
        property.check(campaign, |input| {
            let go_on = !is_stopped();
            go_on.then(|| self.run((property.name(), Some(input)), budget))
        })
    }

    fn run(&self, test: (&str, Option<&TestInput>), budget: Budget) -> TestReport {
        let (mut state, height) = (self.start.clone(), self.start.height());
        // Clones share the desk, so each test gets its own.
        let calendar = Calendar::rebuild(&mut state.timers.queue, height);
        let desk = Desk { calendar, buffers: Buffers::default() };
        state.timers.desk = Parked::new(Box::new(desk));
        let mut chain = TestChain::new(state, self.charge);
        self.module.test(&self.start.params().actors, test, budget, &mut chain)
    }
}

#[derive(Debug)]
struct TestChain {
    state: State,
    charge: bool,
    /// Number of calls made so far: the nonce of the present one.
    transactions: u64,
    ids: Ids,
}

impl TestChain {
    fn new(state: State, charge: bool) -> Self {
        let ids = Ids::of_transaction(0, Hash::ZERO, Wei::ZERO);
        let mut chain = Self { state, charge, transactions: 0, ids };
        chain.begin();
        chain
    }

    fn begin(&mut self) {
        self.transactions += 1;
        self.ids = self.next_ids(Wei::ZERO);
    }

    /// Replaces the hash of a transaction.
    fn cause(&self) -> Hash {
        keccak256(&[b"cowboy-actor-test/v1", &self.transactions.to_be_bytes()])
    }

    fn next_ids(&self, allowance: Wei) -> Ids {
        Ids::of_transaction(self.transactions, self.cause(), allowance)
    }

    /// The place of a transaction of `sender`: in the newest block, after its timers.
    fn place(&self, sender: Address) -> BlockContext<'static> {
        let head = self.state.head();
        BlockContext {
            parent: head.parent,
            height: head.height,
            timestamp_ms: head.timestamp_ms,
            cause: self.cause(),
            sender: Some(sender),
            terms: self.state.timer_terms(head.height),
            pvm: None,
            watched: true,
            traced: Traced::Nothing,
        }
    }

    /// Keeps the effects of actors, unless the call failed.
    fn ran(&mut self, done: ActorEffects, after: State) -> Ran {
        let ActorEffects { usage, result, log, effects, .. } = done;
        self.begin();
        let log = log.into_iter().map(|(_, line)| line).collect();
        match result {
            Ok(result) => {
                self.state = after;
                Ran { usage, result: Ok(result), effects: own(effects), log }
            }
            Err(failure) => Ran { usage, result: Err(error_of(failure)), effects: Vec::new(), log },
        }
    }

    /// Sets the basefees to zero, unless the chain charges.
    fn hold_prices(&mut self) {
        if !self.charge {
            let state = &mut self.state;
            (state.basefee_cycle, state.basefee_cell) = (Wei::ZERO, Wei::ZERO);
            state.timers.lane.basefee = Wei::ZERO;
        }
    }

    fn seen(&self) -> StateView<'_> {
        let (state, actor, height) = (&self.state, account("self"), self.state.height());
        StateView { state, actor, height, seed: Seed::Fixed(Hash::ZERO), asking: None }
    }
}

fn own(effects: Vec<(Address, Effect)>) -> Vec<Effect> {
    let tested = account("self");
    effects.into_iter().filter(|(of, _)| *of == tested).map(|(_, effect)| effect).collect()
}

/// A failure as an error, with its position if that is in the tested module.
fn error_of(failure: CallFailure) -> Error {
    match failure {
        CallFailure { error: FailureKind::Actor(error), message: None } => error,
        failure => ErrorKind::Undone(failure.to_string()).into(),
    }
}

fn test_bid(bid: Bid) -> TestBid {
    let Bid { max_fee_per_cycle, max_priority_fee_per_cycle, failed } = bid;
    TestBid { max_fee_per_cycle, max_priority_fee_per_cycle, failed }
}

impl World for TestChain {
    fn state(&self, key: &str) -> Option<Vec<u8>> {
        self.seen().state(key)
    }

    fn state_len(&self, key: &str) -> Option<usize> {
        self.seen().state_len(key)
    }

    fn balance(&self, account: &Address) -> Wei {
        self.seen().balance(account)
    }

    fn mru(&self, submitter: &Address, kind: &str) -> Option<Address> {
        self.seen().mru(submitter, kind)
    }

    fn timer(&self, timer: &TimerCall, index: u64) -> Result<Hash, String> {
        let place = self.place(account("sender"));
        StateView { asking: Some((&place, &self.ids)), ..self.seen() }.timer(timer, index)
    }

    fn job(&self, job: &JobRequest, index: u64) -> Result<(Hash, u64), String> {
        let place = self.place(account("sender"));
        let (seed, asking) = (place.seed(0), Some((&place, &self.ids)));
        StateView { seed, asking, ..self.seen() }.job(job, index)
    }
}

impl Chain for TestChain {
    fn height(&self) -> Height {
        self.state.height()
    }

    fn timestamp_ms(&self) -> u64 {
        self.state.head().timestamp_ms
    }

    fn most(&self) -> Budget {
        BLOCK
    }

    fn apply(&mut self, effects: Vec<Effect>, budget: Budget) -> Ran {
        let (place, mut after) = (self.place(account("sender")), self.state.clone());
        let asking = (&place, &self.ids);
        let done = actors::apply(&mut after, asking, account("self"), effects, budget);
        self.ran(done, after)
    }

    fn call(&mut self, call: TestCall, budget: Budget) -> Ran {
        let TestCall { sender, handler, payload, value, timer_allowance } = call;
        let (place, ids) = (self.place(sender), self.next_ids(timer_allowance));
        let first = PendingCall { sender, to: account("self"), handler, payload, value };
        let mut after = self.state.clone();
        let done = actors::call(&mut after, (&place, &ids), first, budget);
        self.ran(done, after)
    }

    fn advance(&mut self) -> Advanced {
        let (head, parent) = (self.state.head(), self.state.head_hash());
        let height = head.height.next();
        let header = Header {
            height,
            parent,
            round: Round { epoch: 0, view: height.get(), parent_view: head.height.get() },
            proposer: PROPOSER,
            timestamp_ms: height.get().saturating_mul(BLOCK_MS),
            subset_epoch: self.state.childs_subset_epoch(),
            transactions_root: transactions_root(&[]),
            certificates_root: certificates_root(&[]),
            open: Vec::new(),
            executed: head.executed,
        };
        let block = Block { header, certificates: Vec::new(), transactions: Vec::new() };
        let executed = execute_watched(&self.state, &block);
        let (execution, watch) = executed.expect("the block is the head's child");
        self.state = execution.state;
        self.hold_prices();
        self.begin();
        let mut done = Advanced { effects: own(watch.effects), ..Advanced::default() };
        let mut add = |usage: Usage| done.usage = done.usage.plus(&usage);
        let bids: BTreeMap<_, _> = execution.bids.into_iter().collect();
        for fire in execution.fires {
            add(fire.outcome.usage);
            done.log.extend(fire.outcome.log.into_iter().map(|(_, line)| line));
            let (ending, error) = match fire.status {
                ReceiptStatus::Failed(error) => (Ending::Failed, error),
                _ => (Ending::Fired, String::new()),
            };
            done.fires.push(Fired {
                timer_id: fire.timer_id,
                actor: fire.actor,
                handler: fire.handler,
                height,
                ending,
                error,
                cycles: fire.cycles.get(),
                cells: fire.cells.get(),
                priority_per_cycle: fire.priority_per_cycle,
                charged: fire.charged.total(),
                bid: bids.get(&fire.timer_id).copied().map(test_bid),
            });
        }
        for told in execution.told {
            add(told.outcome.usage);
            done.log.extend(told.outcome.log.into_iter().map(|(_, line)| line));
            done.failed_callbacks.extend(told.error);
        }
        for event in execution.events {
            let (timer_id, actor, ending, error) = match event.kind {
                EventKind::AgentsAsked(asked) => {
                    add(Usage { evaluation: asked.cycles, ..Usage::default() });
                    continue;
                }
                EventKind::GbaFailed(failed) => {
                    done.log.push(format!("agent {} failed: {}", failed.gba, failed.reason));
                    continue;
                }
                EventKind::TimerExpired(gone) => {
                    let error = format!("TimerExpired: it lived until {}", gone.expires_at);
                    (gone.timer_id, gone.actor, Ending::Expired, error)
                }
                EventKind::TimerCancelledInsufficientFunds(gone) => {
                    let (required, available) = (gone.required, gone.available);
                    let error = format!(
                        "InsufficientFunds: a fire costs {required} wei at most, {available} are \
                         there"
                    );
                    (gone.timer_id, gone.actor, Ending::Unpaid, error)
                }
                _ => continue,
            };
            done.fires.push(Fired {
                timer_id,
                actor,
                handler: String::new(),
                height,
                ending,
                error,
                cycles: 0,
                cells: 0,
                priority_per_cycle: Wei::ZERO,
                charged: Wei::ZERO,
                bid: bids.get(&timer_id).copied().map(test_bid),
            });
        }
        done
    }

    fn fund(&mut self, account: Address, amount: Wei) -> Result<(), String> {
        self.state.credit(account, amount).map_err(|error| error.to_string())
    }

    fn deploy(&mut self, at: Address, source: &str, budget: Budget) -> Ran {
        let (mut after, height) = (self.state.clone(), self.state.height());
        if self.state.actor(&at).is_some() {
            let error = ErrorKind::Undone(format!("AddressTaken: there is an actor at {at}"));
            let (usage, effects, log) = (Usage::default(), Vec::new(), Vec::new());
            return Ran { usage, result: Err(error.into()), effects, log };
        }
        let by = account("sender");
        let done = actors::deploy_at(&mut after, height, (by, at), source, budget);
        let ran = self.ran(done, after);
        // The error's positions are in another source than the test's.
        let elsewhere = |error: Error| ErrorKind::Undone(error.to_string()).into();
        Ran { result: ran.result.map_err(elsewhere), ..ran }
    }

    fn set_policy(&mut self, name: &str) -> Result<(), String> {
        let Some(policy) = Policy::named(name) else {
            let known: Vec<_> = Policy::ALL.iter().map(|policy| policy.name()).collect();
            return Err(format!("no such policy; there are {}", known.join(", ")));
        };
        if self.state.timers.queue.iter().next().is_some() {
            return Err("a policy is set before the first timer is scheduled".into());
        }
        let lane = &mut self.state.timers.lane;
        lane.policy = policy;
        lane.pending.clear();
        Ok(())
    }

    fn charge(&mut self) {
        let params = self.state.params.clone();
        let state = &mut self.state;
        (state.basefee_cycle, state.basefee_cell) =
            (params.genesis_basefee, params.genesis_basefee);
        state.timers.lane.basefee = params.timers.genesis_lane_basefee;
        self.charge = true;
    }

    fn timers(&self) -> Vec<Waiting> {
        let mut timers: Vec<_> = self.state.timers.queue.iter().collect();
        timers.sort_unstable_by_key(|timer| timer.seq);
        let waiting = |timer: crate::timer::Timer| {
            let (handler, payload) = self.state.called_by(&timer);
            Waiting {
                timer_id: timer.id,
                actor: timer.actor,
                height: timer.height,
                expires_at: timer.expires_at,
                payload,
                handler,
                fee_payer: timer.fee_payer,
                gas_limit: timer.gas_limit,
                cell_limit: timer.cell_limit,
                max_fee_per_cycle: timer.max_fee_per_cycle,
                max_priority_fee_per_cycle: timer.max_priority_fee_per_cycle,
                gba: timer.gba,
                bid: timer.bid.map(test_bid),
            }
        };
        timers.into_iter().map(waiting).collect()
    }
}
