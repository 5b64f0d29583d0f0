//! Actors in Python: the deployment, calls, and the host functions of pvm.md §3 on a state.
//!
//! * A call pays for a fresh instance, then for its fuel at the chain's rate. Host functions cost
//!   what they cost a Starlark actor, taken from the same fuel.
//! * The effect of a host function is there at once, so the actors that a call calls see it. A call
//!   of another actor that fails is undone to the state before it; its cost is not.
//! * No actor is entered again while a call of it runs, and calls nest at most
//!   [`MAX_NESTED_CALLS`] deep.

use super::{
    super::jobs, ActorEffects, BlockContext, CallFailure, Calls, FailureKind, PendingCall,
    StateView, runner_job, tokens,
};
use crate::{
    actor::{
        Budget, Effect, TimerCall, Usage, World as _,
        effect::{EVENT_BYTES, MAX_HANDLER_BYTES, MAX_PAYLOAD_BYTES},
        gas::Schedule,
    },
    chain::{
        actors::{Actor, ActorCode, Language, StoreKey},
        event::{ActorDeployed, PythonEmitted},
        params::PythonTerms,
        state::{MAX_ONE_MESSAGE_BYTES, PendingMessage, State},
        transaction::{DeployPython, InitCall, MAX_SALT},
    },
    fees::meter::{CALLBACK_CELLS, CALLBACK_CYCLES},
    primitives::{Address, Hash, Height, InCby, Wei, keccak256},
    pvm::{
        ActorCall, Fuel, HostCode, HostFault, MAX_SCAN, PvmCall, PvmContext, PvmFailure, PvmHost,
        TimerOrder, TokenAnswer, TokenCall,
    },
    timer::Ids,
};
use ed25519_dalek::{Signature, VerifyingKey};
use std::sync::Arc;

/// Maximum depth of calls of actors by actors.
pub const MAX_NESTED_CALLS: usize = 32;
/// Handler of a message from an actor in Python.
pub const MESSAGE_HANDLER: &str = "handle_message";
/// The deployment's handler, which cannot be called afterwards.
const INIT: &str = "init";
/// The longest data of an event, in bytes.
const MAX_DATA_BYTES: usize = 4_096;
/// The longest name of an event, in bytes.
const MAX_EVENT_NAME_BYTES: usize = 256;
/// Length of the longest key that a scan finds, in bytes.
const MAX_SCANNED_KEY: usize = 64;
/// Maximum number of events of a transaction.
const MAX_EVENTS: u64 = 1_024;
/// The key that only the SDK's own function may set.
const INITIALIZED: &[u8] = b"__INITIALIZED__";
/// Cycles to verify an Ed25519 signature, which takes 60 µs: as long as the dearest 2,200 cycles.
const SIGNATURE_CYCLES: u64 = 3_000;
/// Signature scheme: Ed25519.
const ED25519: u64 = 2;

/// Deploys an actor in Python and runs its `init`. On failure the state is left half changed.
pub(in crate::chain) fn deploy(
    state: &mut State,
    (place, ids): (&BlockContext<'_>, &Ids),
    (deployer, nonce): (Address, u64),
    deployment: &DeployPython,
    budget: Budget,
) -> ActorEffects {
    let DeployPython { source, salt, init, .. } = deployment;
    let address = deployment.address(&deployer, nonce);
    let mut done = ActorEffects::new(address);
    let limit = state.params.actors.limits.source;
    let (got, salt) = (source.len() as u64, salt.as_ref().map_or(0, Vec::len));
    let refused = if state.params.python.is_none() || place.pvm.is_none() {
        Some(FailureKind::NoPython)
    } else if got > limit {
        Some(FailureKind::SourceTooLong { got, limit })
    } else if salt > MAX_SALT {
        Some(FailureKind::SaltTooLong { got: salt, limit: MAX_SALT })
    } else if state.actors.contains_key(&address) {
        Some(FailureKind::ActorExists(address))
    } else {
        None
    };
    if let Some(refused) = refused {
        done.result = Err(refused.into());
        return done;
    }
    record(state, place.height, (deployer, address), source, &mut done);
    let init = init.clone().map(|InitCall { handler, payload }| PendingCall {
        sender: deployer,
        to: address,
        handler,
        payload,
        value: Wei::ZERO,
    });
    let result = Calls::new(state, (place, ids), budget, &mut done).create(
        deployer,
        address,
        deployment.value,
        init,
    );
    done.result = result;
    done
}

/// Puts an actor in Python at an address, without a call of its `init`. On failure the state is
/// left half changed.
pub(super) fn put(
    state: &mut State,
    at: (&BlockContext<'_>, &Ids),
    (deployer, address): (Address, Address),
    source: &str,
    budget: Budget,
) -> ActorEffects {
    let mut done = ActorEffects::new(address);
    let (got, limit) = (source.len() as u64, state.params.actors.limits.source);
    if got > limit {
        done.result = Err(FailureKind::SourceTooLong { got, limit }.into());
        return done;
    }
    record(state, at.0.height, (deployer, address), source, &mut done);
    let checked = Calls::new(state, at, budget, &mut done).check(address);
    done.result = checked.map(|()| Vec::new());
    done
}

fn record(
    state: &mut State,
    height: Height,
    (deployer, address): (Address, Address),
    source: &str,
    done: &mut ActorEffects,
) {
    let code = ActorCode::hash(Language::Python, source);
    if !state.code.contains_key(&code) {
        state.code.insert(code, ActorCode::new(Language::Python, source.to_owned()));
    }
    let (deployed_at, loaded_at) = (height, height);
    let actor =
        Actor { deployer, code, deployed_at, retained: 0, loading: 0, loaded_at, new_owner: None };
    state.actors.insert(address, actor);
    done.events.push(ActorDeployed { actor: address, deployer, code }.into());
}

/// The price of the work that this chain's Python actors do.
fn terms(state: &State) -> Result<PythonTerms, FailureKind> {
    state.params.python.ok_or(FailureKind::NoPython)
}

impl Calls<'_> {
    fn create(
        &mut self,
        deployer: Address,
        actor: Address,
        value: Wei,
        init: Option<PendingCall>,
    ) -> Result<Vec<u8>, CallFailure> {
        let pay = |state: &mut State| {
            state.debit(deployer, value)?;
            state.credit(actor, value)
        };
        pay(self.state).map_err(FailureKind::from)?;
        self.moved(deployer, actor, value);
        self.check(actor)?;
        match init {
            Some(init) => {
                self.done.deliveries = 1;
                self.creating = true;
                let left = self.left();
                let (usage, returned) = self.run(&init, 0, left);
                self.creating = false;
                self.done.usage = self.done.usage.plus(&usage);
                let returned = returned?;
                self.rest()?;
                Ok(returned)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Loads the module only, so that a source that does not load is not deployed, and records what
    /// loading it costs each call.
    fn check(&mut self, actor: Address) -> Result<(), CallFailure> {
        let (terms, pvm) = (terms(self.state)?, self.place.pvm.ok_or(FailureKind::NoPython)?);
        let source = self.source_of(&actor);
        let fuel = self.left().cycles.saturating_sub(terms.instance);
        let fuel = fuel.saturating_mul(terms.fuel_per_cycle);
        let outcome = pvm.load(source.source(), fuel);
        let cycles = outcome.fuel.div_ceil(terms.fuel_per_cycle);
        let loading = terms.instance.saturating_add(cycles);
        self.done.usage.loading = self.done.usage.loading.saturating_add(loading);
        outcome.result.map_err(FailureKind::from)?;
        let known = self.state.actor(&actor).copied().expect("it was deployed");
        self.state.actors.insert(actor, Actor { loading, ..known });
        Ok(())
    }

    fn source_of(&self, actor: &Address) -> ActorCode {
        let actor = self.state.actor(actor).expect("it was deployed");
        self.state.code(&actor.code).expect("an actor has code").clone()
    }

    /// Runs a handler of an actor in Python. Cells are counted as they are used.
    pub(super) fn run_python(
        &mut self,
        call: &PendingCall,
        source: &str,
        index: u32,
        budget: Budget,
    ) -> (Usage, Result<Vec<u8>, FailureKind>) {
        let unused = |failure| (Usage::default(), Err(failure));
        let terms = match terms(self.state) {
            Ok(terms) => terms,
            Err(failure) => return unused(failure),
        };
        let Some(pvm) = self.place.pvm else { return unused(FailureKind::NoPython) };
        if call.handler == INIT && !std::mem::take(&mut self.creating) {
            return unused(FailureKind::InitOnlyOnce);
        }
        let Some(cycles) = budget.cycles.checked_sub(terms.instance) else {
            let usage = Usage { loading: budget.cycles, ..Usage::default() };
            return (usage, Err(PvmFailure::OutOfFuel.into()));
        };
        let fuel = cycles.saturating_mul(terms.fuel_per_cycle);
        let (payload, handler) = (call.payload.clone(), call.handler.clone());
        let cell_limit = self.done.usage.cells.saturating_add(budget.cells);
        let mut host = PythonHost {
            terms,
            schedule: self.state.params.actors.schedule,
            sender: call.sender,
            actor: call.to,
            index,
            cell_limit,
            draws: 0,
            jobs: 0,
            calls: self,
        };
        let call = PvmCall { source, handler: &handler, payload: &payload, fuel };
        let outcome = pvm.call(&call, &mut host);
        let evaluation = outcome.fuel.div_ceil(terms.fuel_per_cycle).min(cycles);
        let usage = Usage { loading: terms.instance, evaluation, ..Usage::default() };
        (usage, outcome.result.map_err(FailureKind::from))
    }
}

/// The host of one call.
struct PythonHost<'c, 'a> {
    terms: PythonTerms,
    schedule: Schedule,
    sender: Address,
    actor: Address,
    /// Number of the call in the transaction.
    index: u32,
    /// Cells that the transaction may have used when this call ends.
    cell_limit: u64,
    /// Number of timers asked for.
    draws: u64,
    /// Number of jobs asked for.
    jobs: u64,
    calls: &'c mut Calls<'a>,
}

/// What a nested call that fails is undone to.
struct Savepoint {
    state: State,
    events: usize,
    effects: usize,
    queue: usize,
    waiting: usize,
    emitted: u64,
}

impl PythonHost<'_, '_> {
    fn pay(&self, fuel: &mut Fuel, cycles: u64) -> Result<(), HostFault> {
        fuel.pay(cycles.saturating_mul(self.terms.fuel_per_cycle))
    }

    /// Pays for bytes that are moved.
    fn pay_bytes(&self, fuel: &mut Fuel, bytes: usize) -> Result<(), HostFault> {
        self.pay(fuel, (bytes as u64).div_ceil(self.schedule.data_bytes))
    }

    fn pay_cells(&mut self, bytes: usize) -> Result<(), HostFault> {
        let usage = &mut self.calls.done.usage;
        let after = usage.cells.saturating_add(bytes as u64);
        if after > self.cell_limit {
            return refused(HostCode::OutOfGas, "the call has used all of its cells");
        }
        usage.cells = after;
        Ok(())
    }

    fn key(&self, fuel: &mut Fuel, key: &[u8]) -> Result<StoreKey, HostFault> {
        let limit = self.calls.state.params.actors.limits.key;
        if key.len() as u64 > limit {
            let what = format!("a key of the store has at most {limit} bytes");
            return refused(HostCode::InvalidInput, what);
        }
        self.pay_bytes(fuel, key.len())?;
        Ok(key.into())
    }

    fn write(
        &mut self,
        fuel: &mut Fuel,
        key: &[u8],
        value: Option<Vec<u8>>,
    ) -> Result<(), HostFault> {
        self.pay(fuel, self.schedule.storage_write)?;
        let key = self.key(fuel, key)?;
        if let Some(value) = &value {
            let limit = self.calls.state.params.actors.limits.value;
            if value.len() as u64 > limit {
                let what = format!("a value of the store has at most {limit} bytes");
                return refused(HostCode::InvalidInput, what);
            }
            self.pay_bytes(fuel, value.len())?;
            self.pay_cells(key.as_bytes().len() + value.len())?;
        }
        let key = (self.actor, key);
        match value {
            Some(value) => self.calls.state.storage.insert(key.clone(), value),
            None => self.calls.state.storage.remove(&key),
        };
        self.calls.done.written.insert(key);
        Ok(())
    }

    fn savepoint(&self) -> Savepoint {
        let done = &self.calls.done;
        Savepoint {
            state: self.calls.state.clone(),
            events: done.events.len(),
            effects: done.effects.len(),
            queue: self.calls.queue.len(),
            waiting: self.calls.waiting,
            emitted: self.calls.emitted,
        }
    }

    fn undo(&mut self, to: Savepoint) {
        let Savepoint { state, events, effects, queue, waiting, emitted } = to;
        *self.calls.state = state;
        self.calls.done.events.truncate(events);
        self.calls.done.effects.truncate(effects);
        self.calls.queue.truncate(queue);
        self.calls.waiting = waiting;
        self.calls.emitted = emitted;
    }

    /// Carries out an effect that Starlark actors have too.
    fn apply(&mut self, effect: Effect) -> Result<(), HostFault> {
        self.calls.apply(self.actor, effect).map_err(|failure| {
            let code = match failure {
                FailureKind::Money(_) => HostCode::Quota,
                _ => HostCode::InvalidInput,
            };
            HostFault::refused(code, failure.to_string())
        })
    }

    fn seen(&self) -> StateView<'_> {
        let place = self.calls.place;
        StateView {
            state: self.calls.state,
            actor: self.actor,
            height: place.height,
            seed: place.seed(self.index),
            asking: Some((place, self.calls.ids)),
        }
    }

    /// Records the job that a message to the dispatcher asks for. Its escrow comes from the actor's
    /// balance.
    fn ask_runners(&mut self, fuel: &mut Fuel, payload: &[u8]) -> Result<(), HostFault> {
        self.pay(fuel, self.schedule.job)?;
        let spec = runner_job::read(self.actor, payload);
        let spec = spec.map_err(|error| HostFault::refused(HostCode::InvalidInput, error))?;
        self.jobs += 1;
        let seed = self.calls.place.seed(self.index).hash();
        let nonce = jobs::nonce(&seed, self.jobs);
        let id = spec.job_id(&self.actor, nonce);
        let height = self.calls.place.height;
        let (state, events) = (&mut *self.calls.state, &mut self.calls.done.events);
        jobs::record(state, height, (id, self.actor, nonce), Arc::new(spec), events).map_err(
            |error| HostFault::refused(HostCode::Quota, format!("{error}: send the actor money")),
        )
    }

    /// Whether a timer is this actor's own.
    fn owns(&self, id: &Hash) -> bool {
        self.calls.state.timer(id).is_some_and(|timer| timer.actor == self.actor)
    }
}

fn refused<T>(code: HostCode, message: impl Into<String>) -> Result<T, HostFault> {
    Err(HostFault::refused(code, message))
}

fn fits(what: &str, got: usize, limit: usize) -> Result<(), HostFault> {
    if got > limit {
        return refused(HostCode::InvalidInput, format!("{what} has at most {limit} bytes"));
    }
    Ok(())
}

impl PvmHost for PythonHost<'_, '_> {
    fn context(&mut self, fuel: &mut Fuel) -> Result<PvmContext, HostFault> {
        self.pay(fuel, self.schedule.call)?;
        let (place, chain_id) = (self.calls.place, self.calls.state.chain_id());
        Ok(PvmContext {
            tx_hash: place.cause,
            sender: self.sender,
            actor: self.actor,
            height: place.height,
            timestamp_ms: place.timestamp_ms,
            chain_id,
            chain_instance_id: keccak256(&[b"cowboy-chain/v1", &chain_id.to_be_bytes()]),
        })
    }

    fn actor_owner(&mut self, fuel: &mut Fuel) -> Result<Address, HostFault> {
        self.pay(fuel, self.schedule.storage_read)?;
        let actor = self.calls.state.actor(&self.actor);
        actor.map_or_else(|| refused(HostCode::NotFound, "no such actor"), |a| Ok(a.owner()))
    }

    fn get_state(&mut self, fuel: &mut Fuel, key: &[u8]) -> Result<Option<Vec<u8>>, HostFault> {
        self.pay(fuel, self.schedule.storage_read)?;
        let key = self.key(fuel, key)?;
        let value = self.calls.state.stored_at(&self.actor, key).map(<[u8]>::to_vec);
        self.pay_bytes(fuel, value.as_ref().map_or(0, Vec::len))?;
        Ok(value)
    }

    fn set_state(&mut self, fuel: &mut Fuel, key: &[u8], value: Vec<u8>) -> Result<(), HostFault> {
        if key == INITIALIZED {
            return refused(HostCode::Forbidden, "`__INITIALIZED__` is reserved");
        }
        self.write(fuel, key, Some(value))
    }

    fn delete_state(&mut self, fuel: &mut Fuel, key: &[u8]) -> Result<(), HostFault> {
        if key == INITIALIZED {
            return refused(HostCode::Forbidden, "`__INITIALIZED__` is reserved");
        }
        self.write(fuel, key, None)
    }

    fn set_reserved_state(
        &mut self,
        fuel: &mut Fuel,
        key: &[u8],
        value: Vec<u8>,
    ) -> Result<(), HostFault> {
        if key != INITIALIZED {
            return refused(HostCode::Forbidden, "the only reserved key is `__INITIALIZED__`");
        }
        self.write(fuel, key, Some(value))
    }

    fn scan_state_prefix(
        &mut self,
        fuel: &mut Fuel,
        prefix: &[u8],
        limit: u64,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, HostFault> {
        let from = self.key(fuel, prefix)?;
        let limit = usize::try_from(limit.min(MAX_SCAN)).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for (key, value) in self.calls.state.stored(&self.actor, from) {
            if found.len() >= limit || !key.as_bytes().starts_with(prefix) {
                break;
            }
            // As the SDK has it: longer keys are stored by their hashes there.
            if key.as_bytes().len() > MAX_SCANNED_KEY {
                self.pay(fuel, 1)?;
                continue;
            }
            self.pay(fuel, self.schedule.storage_read)?;
            self.pay_bytes(fuel, key.as_bytes().len() + value.len())?;
            found.push((key.as_bytes().to_vec(), value.to_vec()));
        }
        self.pay(fuel, self.schedule.storage_read)?;
        Ok(found)
    }

    fn keccak256(&mut self, fuel: &mut Fuel, data: &[u8]) -> Result<Hash, HostFault> {
        let words = (data.len() as u64).div_ceil(32).saturating_add(1);
        self.pay(fuel, self.schedule.keccak_word.saturating_mul(words))?;
        Ok(keccak256(&[data]))
    }

    fn randomness(&mut self, fuel: &mut Fuel, domain: &[u8]) -> Result<Hash, HostFault> {
        let words = (domain.len() as u64).div_ceil(32).saturating_add(2);
        self.pay(fuel, self.schedule.keccak_word.saturating_mul(words))?;
        Ok(keccak256(&[&self.calls.place.seed(self.index).hash().0, domain]))
    }

    fn verify_signature(
        &mut self,
        fuel: &mut Fuel,
        scheme: u64,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, HostFault> {
        let words = (message.len() as u64).div_ceil(32).saturating_add(1);
        let hashing = self.schedule.keccak_word.saturating_mul(words);
        self.pay(fuel, SIGNATURE_CYCLES.saturating_add(hashing))?;
        let (Ok(key), Ok(signature)) = (key.try_into(), signature.try_into()) else {
            return refused(HostCode::InvalidInput, "a key has 32 bytes and a signature 64");
        };
        match scheme {
            ED25519 => Ok(verifies(key, message, signature)),
            _ => refused(HostCode::InvalidInput, "the only scheme is 2, Ed25519"),
        }
    }

    fn charge_gas(&mut self, fuel: &mut Fuel, cycles: u64) -> Result<(), HostFault> {
        self.pay(fuel, cycles)
    }

    fn send_message(
        &mut self,
        fuel: &mut Fuel,
        target: Address,
        payload: Vec<u8>,
    ) -> Result<(), HostFault> {
        self.pay(fuel, self.schedule.message)?;
        match target {
            Address::DISPATCHER => fits("a payload", payload.len(), MAX_PAYLOAD_BYTES)?,
            _ => fits("the payload of a message", payload.len(), MAX_ONE_MESSAGE_BYTES)?,
        }
        self.pay_bytes(fuel, payload.len())?;
        self.pay_cells(EVENT_BYTES + payload.len())?;
        if target == Address::DISPATCHER {
            return self.ask_runners(fuel, &payload);
        }
        let (from, state) = (self.actor, &mut *self.calls.state);
        let most = state.price(CALLBACK_CYCLES, CALLBACK_CELLS);
        let balance = state.account(&from).balance;
        if balance < most {
            let what = format!(
                "the actor has {} and the delivery of a message may cost {}, which the actor pays: \
                 send it money",
                InCby(balance),
                InCby(most)
            );
            return refused(HostCode::Quota, what);
        }
        let (cause, payload) = (self.calls.place.cause, Arc::new(payload));
        match state.outbox.push(PendingMessage { from, to: target, payload, cause }) {
            true => Ok(()),
            false => refused(HostCode::Quota, "too many messages wait: try in a later block"),
        }
    }

    fn emit_event(
        &mut self,
        fuel: &mut Fuel,
        name: &str,
        data: Vec<u8>,
        schema: Option<Hash>,
    ) -> Result<u64, HostFault> {
        self.pay(fuel, self.schedule.emit)?;
        fits("an event's name", name.len(), MAX_EVENT_NAME_BYTES)?;
        fits("an event's data", data.len(), MAX_DATA_BYTES)?;
        self.pay_cells(EVENT_BYTES + name.len() + data.len())?;
        if self.calls.emitted >= MAX_EVENTS {
            let what = format!("a transaction has at most {MAX_EVENTS} events");
            return refused(HostCode::Quota, what);
        }
        let (actor, name) = (self.actor, name.to_owned());
        self.calls.done.events.push(PythonEmitted { actor, name, data, schema }.into());
        self.calls.emitted += 1;
        Ok(self.calls.emitted)
    }

    fn transfer_balance(
        &mut self,
        fuel: &mut Fuel,
        to: Address,
        amount: Wei,
    ) -> Result<(), HostFault> {
        self.pay(fuel, self.schedule.message)?;
        self.pay_cells(EVENT_BYTES)?;
        self.apply(Effect::Transfer { to, amount })
    }

    fn call_actor(&mut self, fuel: &mut Fuel, call: ActorCall) -> Result<Vec<u8>, HostFault> {
        let ActorCall { target, handler, payload, cycles_limit, access_limit } = call;
        self.pay(fuel, self.schedule.message)?;
        fits("a handler's name", handler.len(), MAX_HANDLER_BYTES)?;
        fits("a payload", payload.len(), MAX_PAYLOAD_BYTES)?;
        self.pay_bytes(fuel, payload.len())?;
        self.pay_cells(EVENT_BYTES + handler.len())?;
        if self.calls.running.contains(&target) {
            return refused(HostCode::Forbidden, "an actor cannot be entered twice");
        }
        if self.calls.running.len() >= MAX_NESTED_CALLS {
            return refused(HostCode::Forbidden, "calls are nested too deep");
        }
        let Some(callee) = self.calls.state.actor(&target).copied() else {
            return refused(HostCode::NotFound, format!("no actor {target}"));
        };
        // A limit is about the handler: its author does not know what loading the module costs.
        let code = self.calls.state.code(&callee.code);
        let in_python = code.is_some_and(|code| code.language() == Language::Python);
        let loading = if in_python { callee.loading } else { 0 };
        let rate = self.terms.fuel_per_cycle;
        let all = fuel.0 / rate;
        let cycles =
            if cycles_limit == 0 { all } else { all.min(cycles_limit.saturating_add(loading)) };
        let cells = self.cell_limit.saturating_sub(self.calls.done.usage.cells);
        let cells = if access_limit == 0 { cells } else { cells.min(access_limit) };
        let index = self.calls.done.deliveries;
        self.calls.done.deliveries += 1;
        let before = self.savepoint();
        let call =
            PendingCall { sender: self.actor, to: target, handler, payload, value: Wei::ZERO };
        let (usage, returned) = self.calls.run(&call, index, Budget { cycles, cells });
        self.calls.done.usage.cells = self.calls.done.usage.cells.saturating_add(usage.cells);
        let used = usage.cycles().min(cycles);
        fuel.0 = fuel.0.saturating_sub(used.saturating_mul(rate));
        returned.map_err(|failure| {
            self.undo(before);
            match failure {
                FailureKind::Python(PvmFailure::OutOfFuel) => {
                    HostFault::refused(HostCode::OutOfGas, PvmFailure::OutOfFuel.headline())
                }
                FailureKind::Python(failure) => {
                    HostFault::refused(HostCode::Internal, failure.headline())
                }
                other => HostFault::refused(HostCode::Internal, other.to_string()),
            }
        })
    }

    fn schedule_timer(&mut self, fuel: &mut Fuel, timer: TimerOrder) -> Result<Hash, HostFault> {
        self.pay(fuel, self.schedule.timer)?;
        fits("a payload", timer.payload.len(), MAX_PAYLOAD_BYTES)?;
        self.pay_cells(timer.payload.len())?;
        let TimerOrder { height, payload, fee_payer, gas_limit, access_limit, expires_at } = timer;
        let timer = TimerCall {
            height,
            payload,
            handler: None,
            fee_payer,
            gas_limit,
            cell_limit: access_limit,
            expires_at,
            max_fee_per_cycle: None,
            max_priority_fee_per_cycle: None,
            gba: None,
            tier: None,
            bid: false,
        };
        self.draws += 1;
        let id = self.seen().timer(&timer, self.draws);
        let id = id.map_err(|error| HostFault::refused(HostCode::InvalidInput, error))?;
        self.apply(Effect::ScheduleTimer { id, timer })?;
        Ok(id)
    }

    fn cancel_timer(&mut self, fuel: &mut Fuel, id: Hash) -> Result<(), HostFault> {
        self.pay(fuel, self.schedule.timer)?;
        match self.owns(&id) {
            true => self.apply(Effect::CancelTimer(id)),
            false => Ok(()),
        }
    }

    fn extend_timer(&mut self, fuel: &mut Fuel, id: Hash, until: Height) -> Result<(), HostFault> {
        self.pay(fuel, self.schedule.timer)?;
        match self.owns(&id) {
            true => self.apply(Effect::ExtendTimer { id, expires_at: until }),
            false => Ok(()),
        }
    }

    fn token(&mut self, fuel: &mut Fuel, call: TokenCall) -> Result<TokenAnswer, HostFault> {
        let (reads, writes) = tokens::touches(&call);
        let reading = self.schedule.storage_read.saturating_mul(reads);
        let writing = self.schedule.storage_write.saturating_mul(writes);
        self.pay(fuel, reading.saturating_add(writing))?;
        let cells = tokens::cells(&call);
        self.pay_bytes(fuel, cells)?;
        self.pay_cells(cells)?;
        self.draws += 1;
        let seed = self.calls.place.seed(self.index).hash();
        let place = (self.actor, keccak256(&[b"token", &seed.0, &self.draws.to_be_bytes()]));
        tokens::apply(self.calls.state, place, call)
            .map_err(|error| HostFault::refused(error.code(), error.to_string()))
    }
}

/// Verifies an Ed25519 signature strictly: canonical encodings, and neither the key nor the
/// commitment of small order.
fn verifies(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let signature = Signature::from_bytes(signature);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

#[cfg(test)]
mod tests;
