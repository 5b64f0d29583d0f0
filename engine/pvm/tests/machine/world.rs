//! A host in memory: actors, their stores, and what they did.

use cowboy_engine::primitives::{Address, Hash, Height, Wei, keccak256};
use cowboy_engine::pvm::{
    ActorCall, Fuel, HostCode, HostFault, Pvm, PvmCall, PvmContext, PvmFailure, PvmHost,
    PvmOutcome, StateEntries, TimerOrder, TokenAnswer, TokenCall,
};
use std::collections::BTreeMap;

/// Calls inside calls at most.
pub const MAX_DEPTH: usize = 32;

/// Fuel of every call of a host function.
pub const PRICE: u64 = 1_000;

/// Everything that calls can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub stores: BTreeMap<(Address, Vec<u8>), Vec<u8>>,
    pub messages: Vec<(Address, Vec<u8>)>,
    pub events: Vec<(String, Vec<u8>, Option<Hash>)>,
    pub timers: Vec<TimerOrder>,
    /// Other effects, in words.
    pub other: Vec<String>,
}

/// A chain of Python actors.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub code: BTreeMap<Address, String>,
    pub ledger: Ledger,
}

impl World {
    pub fn with(actors: &[(Address, &str)]) -> Self {
        let code = actors.iter().map(|(address, source)| (*address, (*source).to_owned()));
        Self { code: code.collect(), ledger: Ledger::default() }
    }

    pub fn get(&self, actor: Address, key: &[u8]) -> Option<&[u8]> {
        self.ledger.stores.get(&(actor, key.to_vec())).map(Vec::as_slice)
    }

    /// Calls an actor. A call that fails has no effects.
    pub fn call(&mut self, pvm: &dyn Pvm, request: &Request) -> PvmOutcome {
        let source = self.code[&request.actor].clone();
        let before = self.ledger.clone();
        let call = PvmCall {
            source: &source,
            handler: &request.handler,
            payload: &request.payload,
            fuel: request.fuel,
        };
        let outcome = pvm.call(&call, &mut Host { world: self, pvm, request });
        assert!(outcome.fuel <= request.fuel, "{outcome:?}");
        if outcome.result.is_err() {
            self.ledger = before;
        }
        outcome
    }
}

/// A call of an actor.
#[derive(Clone, Debug)]
pub struct Request {
    pub sender: Address,
    pub actor: Address,
    pub handler: String,
    pub payload: Vec<u8>,
    pub fuel: u64,
    /// The actors whose calls led here, outermost first.
    pub callers: Vec<Address>,
}

impl Request {
    /// A call by the actor itself.
    pub fn own(actor: Address, handler: &str, payload: &[u8]) -> Self {
        Self {
            sender: actor,
            actor,
            handler: handler.to_owned(),
            payload: payload.to_owned(),
            fuel: 5_000_000_000,
            callers: Vec::new(),
        }
    }
}

struct Host<'a> {
    world: &'a mut World,
    pvm: &'a dyn Pvm,
    request: &'a Request,
}

impl Host<'_> {
    fn other(&mut self, fuel: &mut Fuel, what: String) -> Result<(), HostFault> {
        fuel.pay(PRICE)?;
        self.world.ledger.other.push(what);
        Ok(())
    }
}

impl PvmHost for Host<'_> {
    fn context(&mut self, fuel: &mut Fuel) -> Result<PvmContext, HostFault> {
        fuel.pay(PRICE)?;
        Ok(PvmContext {
            tx_hash: Hash([0xab; 32]),
            sender: self.request.sender,
            actor: self.request.actor,
            height: Height::new(1_000),
            timestamp_ms: 1_700_000_000_000,
            chain_id: 1,
            chain_instance_id: Hash([1; 32]),
        })
    }

    fn actor_owner(&mut self, fuel: &mut Fuel) -> Result<Address, HostFault> {
        fuel.pay(PRICE)?;
        Ok(Address([0x33; 20]))
    }

    fn get_state(&mut self, fuel: &mut Fuel, key: &[u8]) -> Result<Option<Vec<u8>>, HostFault> {
        fuel.pay(PRICE)?;
        Ok(self.world.get(self.request.actor, key).map(<[u8]>::to_vec))
    }

    fn set_state(&mut self, fuel: &mut Fuel, key: &[u8], value: Vec<u8>) -> Result<(), HostFault> {
        fuel.pay(PRICE)?;
        self.world.ledger.stores.insert((self.request.actor, key.to_vec()), value);
        Ok(())
    }

    fn delete_state(&mut self, fuel: &mut Fuel, key: &[u8]) -> Result<(), HostFault> {
        fuel.pay(PRICE)?;
        self.world.ledger.stores.remove(&(self.request.actor, key.to_vec()));
        Ok(())
    }

    fn set_reserved_state(
        &mut self,
        fuel: &mut Fuel,
        key: &[u8],
        value: Vec<u8>,
    ) -> Result<(), HostFault> {
        self.set_state(fuel, key, value)
    }

    fn scan_state_prefix(
        &mut self,
        fuel: &mut Fuel,
        prefix: &[u8],
        limit: u64,
    ) -> Result<StateEntries, HostFault> {
        fuel.pay(PRICE)?;
        let own = |actor: &Address| *actor == self.request.actor;
        let entries = self.world.ledger.stores.iter();
        Ok(entries
            .filter(|((actor, key), _)| own(actor) && key.starts_with(prefix))
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .take(limit as usize)
            .collect())
    }

    fn keccak256(&mut self, fuel: &mut Fuel, data: &[u8]) -> Result<Hash, HostFault> {
        fuel.pay(PRICE)?;
        Ok(keccak256(&[data]))
    }

    fn randomness(&mut self, fuel: &mut Fuel, domain: &[u8]) -> Result<Hash, HostFault> {
        fuel.pay(PRICE)?;
        Ok(keccak256(&[b"random", domain]))
    }

    fn verify_signature(
        &mut self,
        fuel: &mut Fuel,
        scheme: u64,
        key: &[u8],
        _message: &[u8],
        signature: &[u8],
    ) -> Result<bool, HostFault> {
        fuel.pay(PRICE)?;
        Ok(scheme == 2 && key.len() == 32 && signature.len() == 64)
    }

    fn charge_gas(&mut self, fuel: &mut Fuel, cycles: u64) -> Result<(), HostFault> {
        fuel.pay(cycles)
    }

    fn send_message(
        &mut self,
        fuel: &mut Fuel,
        target: Address,
        payload: Vec<u8>,
    ) -> Result<(), HostFault> {
        fuel.pay(PRICE)?;
        self.world.ledger.messages.push((target, payload));
        Ok(())
    }

    fn emit_event(
        &mut self,
        fuel: &mut Fuel,
        name: &str,
        data: Vec<u8>,
        schema: Option<Hash>,
    ) -> Result<u64, HostFault> {
        fuel.pay(PRICE)?;
        let events = &mut self.world.ledger.events;
        events.push((name.to_owned(), data, schema));
        Ok(events.len() as u64)
    }

    fn transfer_balance(
        &mut self,
        fuel: &mut Fuel,
        to: Address,
        amount: Wei,
    ) -> Result<(), HostFault> {
        self.other(fuel, format!("{} to {to}", amount.get()))
    }

    fn call_actor(&mut self, fuel: &mut Fuel, call: ActorCall) -> Result<Vec<u8>, HostFault> {
        fuel.pay(PRICE)?;
        let callers = [&self.request.callers[..], &[self.request.actor]].concat();
        if callers.contains(&call.target) {
            return Err(HostFault::refused(
                HostCode::Forbidden,
                "an actor cannot be entered twice",
            ));
        }
        if callers.len() >= MAX_DEPTH {
            return Err(HostFault::refused(HostCode::Forbidden, "calls are nested too deep"));
        }
        if !self.world.code.contains_key(&call.target) {
            return Err(HostFault::refused(
                HostCode::NotFound,
                format!("no actor {}", call.target),
            ));
        }
        let limit = if call.cycles_limit == 0 { u64::MAX } else { call.cycles_limit };
        let request = Request {
            sender: self.request.actor,
            actor: call.target,
            handler: call.handler,
            payload: call.payload,
            fuel: fuel.0.min(limit),
            callers,
        };
        let outcome = self.world.call(self.pvm, &request);
        fuel.pay(outcome.fuel)?;
        outcome.result.map_err(|failure| {
            let code = match failure {
                PvmFailure::OutOfFuel => HostCode::OutOfGas,
                PvmFailure::Raised(_) | PvmFailure::Stopped => HostCode::Internal,
            };
            HostFault::refused(code, failure.headline())
        })
    }

    fn schedule_timer(&mut self, fuel: &mut Fuel, timer: TimerOrder) -> Result<Hash, HostFault> {
        fuel.pay(PRICE)?;
        self.world.ledger.timers.push(timer);
        Ok(Hash([7; 32]))
    }

    fn cancel_timer(&mut self, fuel: &mut Fuel, id: Hash) -> Result<(), HostFault> {
        self.other(fuel, format!("cancel {id}"))
    }

    fn extend_timer(&mut self, fuel: &mut Fuel, id: Hash, until: Height) -> Result<(), HostFault> {
        self.other(fuel, format!("extend {id} until {until}"))
    }

    fn token(&mut self, fuel: &mut Fuel, call: TokenCall) -> Result<TokenAnswer, HostFault> {
        self.other(fuel, format!("{call:?}"))?;
        Ok(match call {
            TokenCall::Create { .. } => TokenAnswer::Created(Hash([5; 32])),
            TokenCall::BalanceOf { .. } => TokenAnswer::Amount(Some((1 << 64) + 2)),
            TokenCall::TotalSupply { .. } => TokenAnswer::Amount(None),
            TokenCall::Allowance { .. } => TokenAnswer::Amount(Some(3)),
            _ => TokenAnswer::Done,
        })
    }
}
