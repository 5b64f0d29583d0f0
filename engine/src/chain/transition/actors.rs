//! Deployments and calls of actors on a state (spec chain.md, "Actors").
//!
//! A call, by a transaction or by a message, is executed as follows:
//! 1. Its value reaches the actor; it was taken from the sender when the call was made.
//! 2. The handler runs on the transaction's remaining cycles and cells, and sees the state left by
//!    all earlier calls.
//! 3. Its effects are applied in the order in which the handler asked for them. A message takes its
//!    value from the actor at once and joins the end of the queue.
//!
//! The queue is emptied within the transaction, in the order of sending, with at most
//! [`MAX_DELIVERIES`] calls and [`MAX_WAITING_BYTES`] of payloads. The transaction succeeds if
//! every delivery does; one failure undoes all of them. A message to an address without an actor
//! fails. Fee, nonce and log are kept.
//!
//! Timers are scheduled, extended and cancelled, and jobs recorded, at the end of the call that
//! asked for them. A job's escrow comes from the actor's balance.
//!
//! An actor in Python runs on a machine that the transition gets as an argument ([`python`]). Its
//! effects apply at once. Messages to it are delivered as above; messages from it wait for the next
//! block.

mod python;
mod runner_job;
mod tokens;
mod trace;

pub(super) use python::MESSAGE_HANDLER;
pub(in crate::chain) use python::deploy as deploy_python;
pub(super) use runner_job::reply;
pub use trace::{StoreChange, TracedCall};

use super::jobs::{self, JobError};
use crate::{
    actor::{
        self, Budget, Call, Effect, ErrorKind, JobRequest, Profile, Seed, TimerCall, Usage, World,
        effect::{MAX_HANDLER_BYTES, MAX_PAYLOAD_BYTES},
    },
    chain::{
        actors::{Actor, ActorCode, Language, StoreKey, load},
        event::{ActorCalled, ActorDeployed, ActorEmitted, EventKind, Transferred},
        receipt::ActorReceipt,
        state::{MoneyError, State},
        transaction::SetCode,
    },
    fees::meter,
    job::{
        document,
        json::Json,
        spec::{Callback, JobSpec, SpecError},
    },
    primitives::{Address, Hash, Height, Wei},
    pvm::{Pvm, PvmFailure},
    registry::JobKind,
    timer::{self, Ids, ScheduleTerms, Tier, TimerError, TimerRequest},
};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// Maximum number of calls of a transaction: its own and messages, sent or delivered.
pub const MAX_DELIVERIES: u32 = 1_024;
/// Maximum size of waiting payloads, in bytes: the default heap size of a call.
pub const MAX_WAITING_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub(in crate::chain) struct BlockContext<'a> {
    pub parent: Hash,
    pub height: Height,
    pub timestamp_ms: u64,
    /// The transaction, or the timer that fires.
    pub cause: Hash,
    /// The signer of the transaction; `None` for a fire.
    pub sender: Option<Address>,
    pub terms: ScheduleTerms,
    /// The machine of actors in Python.
    pub pvm: Option<&'a dyn Pvm>,
    /// Whether effects are kept, for tests of actors.
    pub watched: bool,
    pub traced: Traced,
}

/// What is recorded of calls, for dry runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traced {
    #[default]
    Nothing,
    Calls,
    /// Also what each line of modules spends.
    Lines,
}

impl BlockContext<'_> {
    pub(in crate::chain) const fn seed(&self, index: u32) -> Seed {
        Seed::OfCall { parent: self.parent, cause: self.cause, index }
    }
}

#[derive(Clone, Debug)]
pub(in crate::chain) struct PendingCall {
    pub sender: Address,
    pub to: Address,
    pub handler: String,
    pub payload: Vec<u8>,
    pub value: Wei,
}

#[derive(Debug)]
pub(in crate::chain) struct ActorEffects {
    /// The actor that was deployed or called.
    pub actor: Address,
    /// The language of that actor.
    pub language: Language,
    /// Total usage, whether or not the calls succeeded.
    pub usage: Usage,
    /// The first call's return value as JSON, or why everything is to be undone.
    pub result: Result<Vec<u8>, CallFailure>,
    /// Log lines, kept on failure.
    pub log: Vec<(Address, String)>,
    pub deliveries: u32,
    /// Ignored on failure.
    pub events: Vec<EventKind>,
    /// Keys that were written or removed.
    pub written: BTreeSet<(Address, StoreKey)>,
    /// Effects that actors asked for, except writes to their stores; only if the place is watched.
    pub effects: Vec<(Address, Effect)>,
    /// Every call in the order in which they began; only if the place is traced.
    pub calls: Vec<TracedCall>,
}

/// Why a deployment or a call fails. The text begins with the error's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}{}", .message.as_ref().map(ToString::to_string).unwrap_or_default())]
pub struct CallFailure {
    pub error: FailureKind,
    /// The message whose delivery failed; absent for the transaction's own call.
    pub message: Option<Box<FailedMessage>>,
}

/// The kinds of failure where actors run. The text begins with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureKind {
    #[error(transparent)]
    Actor(#[from] actor::Error),
    #[error(transparent)]
    Python(#[from] PvmFailure),
    #[error("NoPython: this chain has no machine for actors in Python")]
    NoPython,
    #[error("ActorExists: {0} is deployed already; use another salt")]
    ActorExists(Address),
    #[error("InitOnlyOnce: `init` runs when the actor is deployed, and never again")]
    InitOnlyOnce,
    #[error("SaltTooLong: a salt has at most {limit} bytes, this one has {got}")]
    SaltTooLong { got: usize, limit: usize },
    #[error("SourceTooLong: a source has at most {limit} bytes, this one has {got}")]
    SourceTooLong { got: u64, limit: u64 },
    #[error(transparent)]
    Money(#[from] MoneyError),
    #[error(transparent)]
    Timer(#[from] TimerError),
    #[error("UnknownActor: no actor {0}")]
    UnknownActor(Address),
    #[error("HandlerTooLong: a handler's name has at most {limit} bytes, this one has {got}")]
    HandlerTooLong { got: usize, limit: usize },
    #[error("PayloadTooLarge: a payload has at most {limit} bytes, this one has {got}")]
    PayloadTooLarge { got: usize, limit: usize },
    #[error("TooManyMessages: a transaction makes at most {MAX_DELIVERIES} calls")]
    TooManyMessages,
    #[error("MessagesTooLarge: messages that wait hold at most {MAX_WAITING_BYTES} bytes")]
    MessagesTooLarge,
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Job(#[from] JobError),
}

/// A message under delivery. Its text is appended as another line of the error's stack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\n  in message {index} from {from} to {to}, handler {handler:?}")]
pub struct FailedMessage {
    /// Number within the transaction, from 1.
    pub index: u32,
    pub from: Address,
    pub to: Address,
    pub handler: String,
}

impl From<FailureKind> for CallFailure {
    fn from(error: FailureKind) -> Self {
        Self { error, message: None }
    }
}

/// Deploys `source` as the actor created by `deployer`'s transaction `nonce`. On failure the state
/// is unchanged.
pub(in crate::chain) fn deploy(
    state: &mut State,
    height: Height,
    (deployer, nonce): (Address, u64),
    source: &str,
    budget: Budget,
) -> ActorEffects {
    let actor = Address::of_actor(&deployer, nonce);
    deploy_at(state, height, (deployer, actor), source, budget)
}

pub(in crate::chain) fn deploy_at(
    state: &mut State,
    height: Height,
    (deployer, actor): (Address, Address),
    source: &str,
    budget: Budget,
) -> ActorEffects {
    let mut done = ActorEffects::new(actor);
    let (usage, loaded) = load(source, &state.params.actors, budget);
    done.usage = usage;
    match loaded {
        Ok(module) => {
            let code = ActorCode::hash(Language::Starlark, source);
            let retained = module.retained();
            if !state.code.contains_key(&code) {
                state.code.insert(code, ActorCode::loaded(source, module));
            }
            let (loading, loaded_at) = (usage.cycles(), height);
            let deployed_at = height;
            let new_owner = None;
            let record =
                Actor { deployer, code, deployed_at, retained, loading, loaded_at, new_owner };
            state.actors.insert(actor, record);
            done.events.push(ActorDeployed { actor, deployer, code }.into());
        }
        Err(error) => done.result = Err(FailureKind::Actor(error).into()),
    }
    done
}

/// Replaces the code of an actor, which keeps its deployer, its owner and its store. Without an
/// actor, makes one that `deployer` has deployed. On failure the state is left half changed.
pub(in crate::chain) fn set_code(
    state: &mut State,
    (place, ids): (&BlockContext<'_>, &Ids),
    deployer: Address,
    SetCode { actor: address, language, source }: &SetCode,
    budget: Budget,
) -> ActorEffects {
    let before = state.actor(address).copied();
    let of = (before.map_or(deployer, |actor| actor.deployer), *address);
    let done = match language {
        Language::Starlark => deploy_at(state, place.height, of, source, budget),
        Language::Python => python::put(state, (place, ids), of, source, budget),
    };
    if let (Some(before), Some(after)) = (before, state.actor(address).copied()) {
        let new_owner = before.new_owner.filter(|_| *language == Language::Python);
        let kept = Actor { deployed_at: before.deployed_at, new_owner, ..after };
        state.actors.insert(*address, kept);
    }
    done
}

/// Calls an actor and delivers all messages that follow. On failure the state is left half changed
/// and the caller must restore the previous one.
pub(in crate::chain) fn call(
    state: &mut State,
    (place, ids): (&BlockContext<'_>, &Ids),
    first: PendingCall,
    budget: Budget,
) -> ActorEffects {
    let mut done = ActorEffects::new(first.to);
    let result = Calls::new(state, (place, ids), budget, &mut done).all(first);
    done.result = result;
    done
}

/// Like [`call`], but the actor runs `code`, if there is any. A code that does not load is the
/// call's failure.
pub(in crate::chain) fn call_on_code(
    state: &mut State,
    at: (&BlockContext<'_>, &Ids),
    code: Option<&str>,
    first: PendingCall,
    budget: Budget,
) -> ActorEffects {
    if let Some(source) = code
        && let Err(failure) = replace_code(state, at.0.height, first.to, source)
    {
        let mut done = ActorEffects::new(first.to);
        done.language = state.language(&first.to);
        done.result = Err(failure.into());
        return done;
    }
    call(state, at, first, budget)
}

/// Replaces the code of an actor and nothing else of it. Loading is bounded as in a block, and paid
/// for already. An actor in Python is loaded by its call.
fn replace_code(
    state: &mut State,
    height: Height,
    address: Address,
    source: &str,
) -> Result<(), FailureKind> {
    // The call says that there is no such actor.
    let Some(before) = state.actor(&address).copied() else { return Ok(()) };
    let language = state.language(&address);
    let code = ActorCode::hash(language, source);
    let (loaded, after) = match language {
        Language::Starlark => {
            let (cycles, cells) = (meter::MAX_BLOCK_CYCLES, meter::MAX_BLOCK_CELLS);
            let (usage, loaded) = load(source, &state.params.actors, Budget { cycles, cells });
            let module = loaded?;
            let (retained, loading) = (module.retained(), usage.cycles());
            let after = Actor { code, retained, loading, loaded_at: height, ..before };
            (ActorCode::loaded(source, module), after)
        }
        Language::Python => {
            let (got, limit) = (source.len() as u64, state.params.actors.limits.source);
            if got > limit {
                return Err(FailureKind::SourceTooLong { got, limit });
            }
            (ActorCode::new(language, source.to_owned()), Actor { code, ..before })
        }
    };
    if !state.code.contains_key(&code) {
        state.code.insert(code, loaded);
    }
    state.actors.insert(address, after);
    Ok(())
}

/// Applies the effects of a call of `actor` that ran elsewhere, and delivers all messages that
/// follow. On failure the state is left half changed.
pub(in crate::chain) fn apply(
    state: &mut State,
    (place, ids): (&BlockContext<'_>, &Ids),
    actor: Address,
    effects: Vec<Effect>,
    budget: Budget,
) -> ActorEffects {
    let mut done = ActorEffects::new(actor);
    done.deliveries = 1;
    let mut calls = Calls::new(state, (place, ids), budget, &mut done);
    let applied = effects.into_iter().try_for_each(|effect| calls.apply(actor, effect));
    let result = applied.map_err(CallFailure::from).and_then(|()| calls.rest());
    done.result = result;
    done
}

impl ActorEffects {
    pub(super) fn told(self) -> (Vec<EventKind>, ActorReceipt, Result<(), CallFailure>) {
        let Self { actor, language, usage, result, log, deliveries, events, .. } = self;
        let (result, ended) = match result {
            Ok(result) => (result, Ok(())),
            Err(failure) => (Vec::new(), Err(failure)),
        };
        (events, ActorReceipt { actor, usage, language, result, log, deliveries }, ended)
    }

    fn new(actor: Address) -> Self {
        Self {
            actor,
            language: Language::Starlark,
            usage: Usage::default(),
            result: Ok(Vec::new()),
            log: Vec::new(),
            deliveries: 0,
            events: Vec::new(),
            written: BTreeSet::new(),
            effects: Vec::new(),
            calls: Vec::new(),
        }
    }
}

struct Calls<'a> {
    state: &'a mut State,
    place: &'a BlockContext<'a>,
    ids: &'a Ids,
    budget: Budget,
    queue: VecDeque<PendingCall>,
    /// For each call in the queue, the recorded call that sent it.
    causes: VecDeque<Option<usize>>,
    /// That of the delivery that runs now.
    cause: Option<usize>,
    /// The recorded calls that run now, outermost first.
    tracing: Vec<usize>,
    /// Bytes of payloads in the queue.
    waiting: usize,
    /// What the lines of the call that ended last have spent, if that is recorded.
    profile: Option<Profile>,
    /// Spots of profiles so far.
    spots: usize,
    /// The actors whose calls run now, outermost first. None of them can be entered again.
    running: Vec<Address>,
    /// Whether the next call is that of a deployment, which alone may be of `init`.
    creating: bool,
    /// Number of events of actors in Python.
    emitted: u64,
    done: &'a mut ActorEffects,
}

impl<'a> Calls<'a> {
    fn new(
        state: &'a mut State,
        (place, ids): (&'a BlockContext<'a>, &'a Ids),
        budget: Budget,
        done: &'a mut ActorEffects,
    ) -> Self {
        Self {
            state,
            place,
            ids,
            budget,
            queue: VecDeque::new(),
            causes: VecDeque::new(),
            cause: None,
            tracing: Vec::new(),
            waiting: 0,
            profile: None,
            spots: 0,
            running: Vec::new(),
            creating: false,
            emitted: 0,
            done,
        }
    }

    fn all(&mut self, first: PendingCall) -> Result<Vec<u8>, CallFailure> {
        self.send(first)?;
        self.rest()
    }

    /// Makes the waiting calls.
    fn rest(&mut self) -> Result<Vec<u8>, CallFailure> {
        let mut result = Vec::new();
        while let Some(delivery) = self.queue.pop_front() {
            self.waiting -= delivery.payload.len();
            self.cause = self.causes.pop_front().flatten();
            let index = self.done.deliveries;
            self.done.deliveries += 1;
            let returned = self.deliver(&delivery, index).map_err(|error| {
                let PendingCall { sender: from, to, ref handler, .. } = delivery;
                let message = FailedMessage { index, from, to, handler: handler.clone() };
                CallFailure { error, message: (index > 0).then(|| Box::new(message)) }
            })?;
            if index == 0 {
                result = returned;
            }
        }
        Ok(result)
    }

    /// Takes the value from the sender and puts the call into the queue.
    fn send(&mut self, delivery: PendingCall) -> Result<(), FailureKind> {
        let (got, limit) = (delivery.handler.len(), MAX_HANDLER_BYTES);
        if got > limit {
            return Err(FailureKind::HandlerTooLong { got, limit });
        }
        let (got, limit) = (delivery.payload.len(), MAX_PAYLOAD_BYTES);
        if got > limit {
            return Err(FailureKind::PayloadTooLarge { got, limit });
        }
        let sent = u64::from(self.done.deliveries) + self.queue.len() as u64;
        if sent >= u64::from(MAX_DELIVERIES) {
            return Err(FailureKind::TooManyMessages);
        }
        if self.waiting + delivery.payload.len() > MAX_WAITING_BYTES {
            return Err(FailureKind::MessagesTooLarge);
        }
        self.state.debit(delivery.sender, delivery.value)?;
        self.waiting += delivery.payload.len();
        self.queue.push_back(delivery);
        self.causes.push_back(self.tracing.last().copied());
        Ok(())
    }

    fn deliver(&mut self, delivery: &PendingCall, index: u32) -> Result<Vec<u8>, FailureKind> {
        let PendingCall { sender, to, value, .. } = *delivery;
        self.state.actor(&to).ok_or(FailureKind::UnknownActor(to))?;
        self.state.credit(to, value)?;
        self.moved(sender, to, value);
        let left = self.left();
        let (usage, returned) = self.run(delivery, index, left);
        self.done.usage = self.done.usage.plus(&usage);
        returned
    }

    /// Runs a handler within `budget` and applies its effects. Returns the usage, except cells that
    /// are counted already, and what it returned. On failure the state is left half changed.
    fn run(
        &mut self,
        call: &PendingCall,
        index: u32,
        budget: Budget,
    ) -> (Usage, Result<Vec<u8>, FailureKind>) {
        let PendingCall { sender, to, ref handler, value, .. } = *call;
        let Some(actor) = self.state.actor(&to).copied() else {
            return (Usage::default(), Err(FailureKind::UnknownActor(to)));
        };
        let code = self.state.code(&actor.code).expect("an actor has code").clone();
        if self.done.actor == to {
            self.done.language = code.language();
        }
        let called = ActorCalled { actor: to, sender, handler: handler.clone(), value };
        self.done.events.push(called.into());
        let tracing = self.trace(call, code.language());
        self.running.push(to);
        let ran = match code.language() {
            Language::Starlark => self.run_starlark(call, (actor, &code), index, budget),
            Language::Python => self.run_python(call, code.source(), index, budget),
        };
        self.running.pop();
        self.traced(tracing, &ran);
        ran
    }

    fn run_starlark(
        &mut self,
        call: &PendingCall,
        (actor, code): (Actor, &ActorCode),
        index: u32,
        budget: Budget,
    ) -> (Usage, Result<Vec<u8>, FailureKind>) {
        let PendingCall { sender, to, ref handler, ref payload, value } = *call;
        let mut usage = Usage::default();
        if let Err(short) = self.pay_loading(to, actor, budget, &mut usage) {
            return (usage, Err(short));
        }
        let params = self.state.params.actors;
        let module = match code.module(&params) {
            Ok(module) => module,
            Err(error) => return (usage, Err(error.clone().into())),
        };
        let recorded = self.records_lines().then(|| module.recorded());
        let module = recorded.as_ref().unwrap_or(module);
        let call = Call {
            handler,
            payload,
            sender,
            this: to,
            value,
            height: self.place.height,
            timestamp_ms: self.place.timestamp_ms,
            seed: self.place.seed(index),
        };
        let asking = Some((self.place, self.ids));
        let (height, seed) = (self.place.height, self.place.seed(index));
        let seen = StateView { state: self.state, actor: to, height, seed, asking };
        let left = Budget { cycles: budget.cycles.saturating_sub(usage.cycles()), ..budget };
        let outcome = module.call(&params, &call, &seen, left);
        self.profile = module.profile();
        usage = usage.plus(&outcome.usage);
        self.done.log.extend(outcome.log.into_iter().map(|line| (to, line)));
        let applied = outcome.result.map_err(FailureKind::from).and_then(|returned| {
            outcome.effects.into_iter().try_for_each(|effect| self.apply(to, effect))?;
            Ok(returned)
        });
        (usage, applied)
    }

    /// Pays for loading a module, before it is loaded, if the last payment is too old.
    fn pay_loading(
        &mut self,
        address: Address,
        actor: Actor,
        budget: Budget,
        usage: &mut Usage,
    ) -> Result<(), FailureKind> {
        let (height, left) = (self.place.height, budget.cycles);
        let loading = actor.loading_at(height);
        if let Some(short) = loading.checked_sub(left).filter(|short| *short > 0) {
            usage.loading += left;
            let limit = self.budget.cycles;
            return Err(actor::Error::from(ErrorKind::OutOfCycles { limit, short }).into());
        }
        usage.loading += loading;
        if let Some(called) = actor.called_at(height) {
            self.state.actors.insert(address, called);
        }
        Ok(())
    }

    fn left(&self) -> Budget {
        Budget {
            cycles: self.budget.cycles.saturating_sub(self.done.usage.cycles()),
            cells: self.budget.cells.saturating_sub(self.done.usage.cells),
        }
    }

    fn moved(&mut self, from: Address, to: Address, amount: Wei) {
        if !amount.is_zero() {
            self.done.events.push(Transferred { from, to, amount }.into());
        }
    }

    fn apply(&mut self, actor: Address, effect: Effect) -> Result<(), FailureKind> {
        if self.place.watched && !matches!(effect, Effect::SetState { .. }) {
            self.done.effects.push((actor, effect.clone()));
        }
        match effect {
            Effect::SetState { key, value } => {
                let key = (actor, StoreKey::from(key));
                match value {
                    Some(value) => self.state.storage.insert(key.clone(), value),
                    None => self.state.storage.remove(&key),
                };
                self.done.written.insert(key);
            }
            Effect::Transfer { to, amount } => {
                self.state.debit(actor, amount)?;
                self.state.credit(to, amount)?;
                self.moved(actor, to, amount);
            }
            Effect::Message { to, handler, payload, value } => {
                self.send(PendingCall { sender: actor, to, handler, payload, value })?;
            }
            Effect::Emit { name, data } => {
                self.done.events.push(ActorEmitted { actor, name, data }.into());
            }
            Effect::ScheduleTimer { id, timer } => {
                let BlockContext { terms, sender, .. } = self.place;
                let admitted = terms.admit(request(actor, timer)?, *sender)?;
                self.state.schedule_timer(terms, id, admitted, &mut self.done.events)?;
            }
            Effect::CancelTimer(id) => {
                let owns = |_: &State, timer: &timer::Timer| timer.actor == actor;
                let cancelled = self.state.cancel_timer(&id, actor, owns)?;
                self.done.events.push(cancelled.into());
            }
            Effect::ExtendTimer { id, expires_at } => {
                let owns = |_: &State, timer: &timer::Timer| timer.actor == actor;
                let terms = &self.place.terms;
                let extended = self.state.extend_timer(terms, (&id, expires_at), actor, owns)?;
                self.done.events.push(extended.into());
            }
            Effect::SubmitJob { id, nonce, job } => {
                let spec = Arc::new(specification(actor, &job)?);
                let (height, events) = (self.place.height, &mut self.done.events);
                jobs::record(self.state, height, (id, actor, nonce), spec, events)?;
            }
        }
        Ok(())
    }
}

fn request(actor: Address, timer: TimerCall) -> Result<TimerRequest, TimerError> {
    let tier = match timer.tier {
        Some(name) => Some(Tier::named(&name).ok_or(TimerError::UnknownTier(name))?),
        None => None,
    };
    Ok(TimerRequest {
        actor,
        height: timer.height,
        payload: timer.payload,
        handler: timer.handler,
        fee_payer: timer.fee_payer,
        gas_limit: timer.gas_limit,
        cell_limit: timer.cell_limit,
        expires_at: timer.expires_at,
        max_fee_per_cycle: timer.max_fee_per_cycle,
        max_priority_fee_per_cycle: timer.max_priority_fee_per_cycle,
        tier,
        gba: timer.gba,
        bid: timer.bid,
    })
}

/// The job specification of an actor's call. A handler named outside the document is the actor's
/// own.
fn specification(actor: Address, job: &JobRequest) -> Result<JobSpec, SpecError> {
    let refuse = |field: String, problem| SpecError { field: field.into(), problem };
    let document =
        Json::parse(&job.spec).map_err(|error| refuse("job".into(), error.to_string()))?;
    let mut spec = document::read(document).map_err(|error| refuse(error.place, error.problem))?;
    if let Some(handler) = &job.callback {
        spec.callback = Some(Callback { actor, handler: handler.clone(), resume: None });
    }
    spec.check()?;
    Ok(spec)
}

pub(in crate::chain) struct StateView<'a> {
    pub state: &'a State,
    pub actor: Address,
    pub height: Height,
    /// Seeds the call's randomness and the nonces of its jobs.
    pub seed: Seed,
    /// The context for scheduling timers; `None` for a gas bidding agent, which may not schedule
    /// any.
    pub asking: Option<(&'a BlockContext<'a>, &'a Ids)>,
}

impl World for StateView<'_> {
    fn state(&self, key: &str) -> Option<Vec<u8>> {
        self.state.stored_at(&self.actor, key).map(<[u8]>::to_vec)
    }

    fn state_len(&self, key: &str) -> Option<usize> {
        self.state.stored_at(&self.actor, key).map(<[u8]>::len)
    }

    fn balance(&self, account: &Address) -> Wei {
        self.state.account(account).balance
    }

    fn mru(&self, submitter: &Address, kind: &str) -> Option<Address> {
        let kind: JobKind = kind.parse().ok()?;
        let record = self.state.mru.get(&(*submitter, kind))?;
        let ttl = self.state.connectivity().mru_ttl_blocks;
        record.is_live(self.height, ttl).then_some(record.runner)
    }

    fn timer(&self, timer: &TimerCall, _: u64) -> Result<Hash, String> {
        let (place, ids) = self.asking.ok_or("a gas bidding agent schedules no timers")?;
        let admit = || -> Result<Hash, TimerError> {
            // Report the error at the line that asks.
            let request = request(self.actor, timer.clone())?;
            ids.promise(&place.terms.admit(request, place.sender)?.timer)?;
            let taken = |id: &Hash| self.state.timers.queue.contains(id);
            let limit = place.terms.config.max_timers_per_actor;
            ids.next(&self.actor, timer.height, &timer.payload, taken)
                .ok_or(TimerError::TooManyTimers { actor: self.actor, limit })
        };
        admit().map_err(|error| error.to_string())
    }

    fn job(&self, job: &JobRequest, index: u64) -> Result<(Hash, u64), String> {
        self.asking.ok_or("a gas bidding agent submits no jobs")?;
        // Report the error at the line that asks.
        let spec = specification(self.actor, job).map_err(|error| error.to_string())?;
        let nonce = jobs::nonce(&self.seed.hash(), index);
        Ok((spec.job_id(&self.actor, nonce), nonce))
    }
}
