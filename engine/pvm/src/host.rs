//! The functions that an actor can call, as the component imports them.
//!
//! An instance runs on a thread of its own, and the engine's [`PvmHost`] stays on the thread that
//! called the machine. So a host function sends a [`Question`] there and waits for its answer.
//!
//! The guest checks its arguments, but an actor can get round the guest: every value is checked
//! here again.

use crate::limits::{Limits, REFUSAL, cut};
use cowboy_engine::primitives::{Address, Hash, Height, Wei};
use cowboy_engine::pvm::{
    ActorCall, Fuel, HostCode, HostFault, MAX_SCAN, PvmHost, TimerOrder, TokenAnswer, TokenCall,
};
use std::sync::mpsc;
use wasmtime::component::{ComponentType, Lift, Linker, Lower};
use wasmtime::{StoreContextMut, Trap};

/// A call of a host function, answered on the thread of the host.
pub type Question = Box<dyn FnOnce(&mut dyn PvmHost) + Send>;

/// What a host function can reach.
#[derive(Debug, Default)]
pub struct Session {
    pub limits: Limits,
    /// Where questions go; `None` while a module is loaded.
    pub host: Option<mpsc::Sender<Question>>,
}

/// A host function was called while a module was loaded.
#[derive(Debug, thiserror::Error)]
#[error("a host function was called while the module was loaded")]
struct NotYet;

/// The host ended while one of its functions was called. It panicked, and the call has no outcome.
#[derive(Debug, thiserror::Error)]
#[error("the host has ended")]
pub struct HostGone;

/// Keys that only the SDK or the chain write.
const RESERVED: &[u8] = b"__INITIALIZED__";
const CLOSED: &[u8] = b"cowboy.offchain.image.v1";

#[derive(ComponentType, Lower)]
#[component(record)]
struct Refusal {
    code: u8,
    message: String,
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct CallContext {
    #[component(name = "tx-hash")]
    tx_hash: Vec<u8>,
    sender: Vec<u8>,
    actor: Vec<u8>,
    height: u64,
    #[component(name = "timestamp-ms")]
    timestamp_ms: u64,
    #[component(name = "chain-id")]
    chain_id: u64,
    #[component(name = "chain-instance-id")]
    chain_instance_id: Vec<u8>,
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(record)]
struct Amount {
    high: u64,
    low: u64,
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct Entry {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Amount {
    const fn get(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }

    const fn new(amount: u128) -> Self {
        Self { high: (amount >> 64) as u64, low: amount as u64 }
    }
}

type Caller<'a> = StoreContextMut<'a, Session>;
type Bytes = Vec<u8>;
type Answer<T> = wasmtime::Result<(Result<T, Refusal>,)>;

/// Defines every import of the component.
pub fn add_to_linker(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    about_the_call(linker)?;
    store(linker)?;
    cryptography(linker)?;
    effects(linker)?;
    timers(linker)?;
    tokens(linker)
}

/// Asks the host. Its prices come out of the instance's fuel.
fn ask<T: Send + 'static>(
    mut caller: Caller<'_>,
    question: impl FnOnce(&mut dyn PvmHost, &mut Fuel) -> Result<T, HostFault> + Send + 'static,
) -> Answer<T> {
    let before = caller.get_fuel()?;
    let Some(host) = &caller.data().host else { return Err(NotYet.into()) };
    let (answer, answered) = mpsc::sync_channel(1);
    let question = Box::new(move |host: &mut dyn PvmHost| {
        let mut fuel = Fuel(before);
        let result = question(host, &mut fuel);
        // The instance's thread waits for it.
        let _ = answer.send((result, fuel));
    });
    host.send(question).map_err(|_| HostGone)?;
    let (result, left) = answered.recv().map_err(|_| HostGone)?;
    caller.set_fuel(left.0.min(before))?;
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(HostFault::OutOfFuel) => Err(Trap::OutOfFuel.into()),
        Err(HostFault::Refused(refusal)) => {
            let mut message = refusal.message;
            cut(&mut message, REFUSAL);
            Ok((Err(Refusal { code: refusal.code as u8, message }),))
        }
    }
}

fn invalid(message: impl Into<String>) -> HostFault {
    HostFault::refused(HostCode::InvalidInput, message)
}

fn sized<const SIZE: usize>(bytes: &[u8]) -> Result<[u8; SIZE], HostFault> {
    bytes
        .try_into()
        .map_err(|_| invalid(format!("{} bytes where {SIZE} are expected", bytes.len())))
}

fn address(bytes: &[u8]) -> Result<Address, HostFault> {
    sized(bytes).map(Address)
}

fn id(bytes: &[u8]) -> Result<Hash, HostFault> {
    sized(bytes).map(Hash)
}

fn text(bytes: Bytes) -> Result<String, HostFault> {
    String::from_utf8(bytes).map_err(|_| invalid("a text is not UTF-8"))
}

fn writable(key: &[u8]) -> Result<(), HostFault> {
    if key == RESERVED || key == CLOSED {
        return Err(invalid("the key is reserved"));
    }
    Ok(())
}

fn about_the_call(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    let mut root = linker.root();
    root.func_wrap("context", |caller: Caller<'_>, (): ()| {
        ask(caller, |host, fuel| {
            host.context(fuel).map(|context| CallContext {
                tx_hash: context.tx_hash.0.to_vec(),
                sender: context.sender.0.to_vec(),
                actor: context.actor.0.to_vec(),
                height: context.height.get(),
                timestamp_ms: context.timestamp_ms,
                chain_id: context.chain_id,
                chain_instance_id: context.chain_instance_id.0.to_vec(),
            })
        })
    })?;
    root.func_wrap("actor-owner", |caller: Caller<'_>, (): ()| {
        ask(caller, |host, fuel| host.actor_owner(fuel).map(|owner| owner.0.to_vec()))
    })?;
    root.func_wrap("charge-gas", |caller: Caller<'_>, (cycles,): (u64,)| {
        ask(caller, move |host, fuel| host.charge_gas(fuel, cycles))
    })
}

fn store(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    let mut root = linker.root();
    root.func_wrap("get-state", |caller: Caller<'_>, (key,): (Bytes,)| {
        ask(caller, move |host, fuel| host.get_state(fuel, &key))
    })?;
    root.func_wrap("set-state", |caller: Caller<'_>, (key, value): (Bytes, Bytes)| {
        ask(caller, move |host, fuel| {
            writable(&key)?;
            host.set_state(fuel, &key, value)
        })
    })?;
    root.func_wrap("delete-state", |caller: Caller<'_>, (key,): (Bytes,)| {
        ask(caller, move |host, fuel| {
            writable(&key)?;
            host.delete_state(fuel, &key)
        })
    })?;
    root.func_wrap("set-reserved-state", |caller: Caller<'_>, (key, value): (Bytes, Bytes)| {
        ask(caller, move |host, fuel| {
            if key != RESERVED {
                return Err(invalid("the key is not reserved"));
            }
            host.set_reserved_state(fuel, &key, value)
        })
    })?;
    root.func_wrap("scan-state-prefix", |caller: Caller<'_>, (prefix, limit): (Bytes, u64)| {
        ask(caller, move |host, fuel| {
            let entries = host.scan_state_prefix(fuel, &prefix, limit.min(MAX_SCAN))?;
            let entries: Vec<Entry> =
                entries.into_iter().map(|(key, value)| Entry { key, value }).collect();
            Ok(entries)
        })
    })
}

fn cryptography(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    let mut root = linker.root();
    root.func_wrap("keccak256", |caller: Caller<'_>, (data,): (Bytes,)| {
        ask(caller, move |host, fuel| host.keccak256(fuel, &data).map(|hash| hash.0.to_vec()))
    })?;
    root.func_wrap("randomness", |caller: Caller<'_>, (domain,): (Bytes,)| {
        ask(caller, move |host, fuel| host.randomness(fuel, &domain).map(|hash| hash.0.to_vec()))
    })?;
    root.func_wrap(
        "verify-signature",
        |caller: Caller<'_>, (scheme, key, message, signature): (u64, Bytes, Bytes, Bytes)| {
            ask(caller, move |host, fuel| {
                host.verify_signature(fuel, scheme, &key, &message, &signature)
            })
        },
    )
}

fn effects(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    let mut root = linker.root();
    root.func_wrap("send-message", |caller: Caller<'_>, (target, payload): (Bytes, Bytes)| {
        ask(caller, move |host, fuel| host.send_message(fuel, address(&target)?, payload))
    })?;
    root.func_wrap(
        "emit-event",
        |caller: Caller<'_>, (name, data, schema): (String, Bytes, Option<Bytes>)| {
            ask(caller, move |host, fuel| {
                let schema = schema.as_deref().map(id).transpose()?;
                host.emit_event(fuel, &name, data, schema)
            })
        },
    )?;
    root.func_wrap("transfer-balance", |caller: Caller<'_>, (to, amount): (Bytes, Amount)| {
        ask(caller, move |host, fuel| {
            host.transfer_balance(fuel, address(&to)?, Wei::new(amount.get()))
        })
    })?;
    root.func_wrap(
        "call-actor",
        |caller: Caller<'_>,
         (target, handler, payload, cycles_limit, access_limit): (
            Bytes,
            String,
            Bytes,
            u64,
            u64,
        )| {
            ask(caller, move |host, fuel| {
                let target = address(&target)?;
                let call = ActorCall { target, handler, payload, cycles_limit, access_limit };
                host.call_actor(fuel, call)
            })
        },
    )
}

fn timers(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    type Order = (u64, Bytes, Option<Bytes>, Option<u64>, Option<u64>, Option<u64>);
    let mut root = linker.root();
    root.func_wrap(
        "schedule-timer",
        |caller: Caller<'_>,
         (height, payload, payer, gas_limit, access_limit, expires_at): Order| {
            ask(caller, move |host, fuel| {
                let timer = TimerOrder {
                    height: Height::new(height),
                    payload,
                    fee_payer: payer.as_deref().map(address).transpose()?,
                    gas_limit,
                    access_limit,
                    expires_at: expires_at.map(Height::new),
                };
                host.schedule_timer(fuel, timer).map(|id| id.0.to_vec())
            })
        },
    )?;
    root.func_wrap("cancel-timer", |caller: Caller<'_>, (timer,): (Bytes,)| {
        ask(caller, move |host, fuel| host.cancel_timer(fuel, id(&timer)?))
    })?;
    root.func_wrap("extend-timer", |caller: Caller<'_>, (timer, until): (Bytes, u64)| {
        ask(caller, move |host, fuel| host.extend_timer(fuel, id(&timer)?, Height::new(until)))
    })
}

/// A host answered one token function with the answer of another.
fn mismatch() -> HostFault {
    HostFault::refused(HostCode::Internal, "the host gave another function's answer")
}

fn order(host: &mut dyn PvmHost, fuel: &mut Fuel, call: TokenCall) -> Result<(), HostFault> {
    match host.token(fuel, call)? {
        TokenAnswer::Done => Ok(()),
        _ => Err(mismatch()),
    }
}

fn amount(
    host: &mut dyn PvmHost,
    fuel: &mut Fuel,
    call: TokenCall,
) -> Result<Option<Amount>, HostFault> {
    match host.token(fuel, call)? {
        TokenAnswer::Amount(amount) => Ok(amount.map(Amount::new)),
        _ => Err(mismatch()),
    }
}

fn tokens(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    type Creation = (Bytes, Bytes, u64, Amount, Option<Amount>, Option<Bytes>, Option<Bytes>);
    let mut root = linker.root();
    root.func_wrap(
        "token-create",
        |caller: Caller<'_>,
         (name, symbol, decimals, supply, max_supply, hook, metadata_uri): Creation| {
            ask(caller, move |host, fuel| {
                let call = TokenCall::Create {
                    name: text(name)?,
                    symbol: text(symbol)?,
                    decimals,
                    initial_supply: supply.get(),
                    max_supply: max_supply.map(Amount::get),
                    transfer_hook: hook.as_deref().map(address).transpose()?,
                    metadata_uri: metadata_uri.map(text).transpose()?,
                };
                match host.token(fuel, call)? {
                    TokenAnswer::Created(id) => Ok(id.0.to_vec()),
                    _ => Err(mismatch()),
                }
            })
        },
    )?;
    root.func_wrap(
        "token-transfer",
        |caller: Caller<'_>, (token, to, amount): (Bytes, Bytes, Amount)| {
            ask(caller, move |host, fuel| {
                let (token, to) = (id(&token)?, address(&to)?);
                order(host, fuel, TokenCall::Transfer { token, to, amount: amount.get() })
            })
        },
    )?;
    root.func_wrap(
        "token-transfer-from",
        |caller: Caller<'_>, (token, from, to, amount): (Bytes, Bytes, Bytes, Amount)| {
            ask(caller, move |host, fuel| {
                let (token, from, to) = (id(&token)?, address(&from)?, address(&to)?);
                let amount = amount.get();
                order(host, fuel, TokenCall::TransferFrom { token, from, to, amount })
            })
        },
    )?;
    root.func_wrap(
        "token-approve",
        |caller: Caller<'_>, (token, spender, amount): (Bytes, Bytes, Amount)| {
            ask(caller, move |host, fuel| {
                let (token, spender) = (id(&token)?, address(&spender)?);
                order(host, fuel, TokenCall::Approve { token, spender, amount: amount.get() })
            })
        },
    )?;
    root.func_wrap(
        "token-mint",
        |caller: Caller<'_>, (token, to, amount): (Bytes, Bytes, Amount)| {
            ask(caller, move |host, fuel| {
                let (token, to) = (id(&token)?, address(&to)?);
                order(host, fuel, TokenCall::Mint { token, to, amount: amount.get() })
            })
        },
    )?;
    root.func_wrap("token-burn", |caller: Caller<'_>, (token, amount): (Bytes, Amount)| {
        ask(caller, move |host, fuel| {
            let token = id(&token)?;
            order(host, fuel, TokenCall::Burn { token, amount: amount.get() })
        })
    })?;
    root.func_wrap("token-balance-of", |caller: Caller<'_>, (token, account): (Bytes, Bytes)| {
        ask(caller, move |host, fuel| {
            let (token, account) = (id(&token)?, address(&account)?);
            amount(host, fuel, TokenCall::BalanceOf { token, account })
        })
    })?;
    root.func_wrap("token-total-supply", |caller: Caller<'_>, (token,): (Bytes,)| {
        ask(caller, move |host, fuel| {
            amount(host, fuel, TokenCall::TotalSupply { token: id(&token)? })
        })
    })?;
    root.func_wrap(
        "token-allowance",
        |caller: Caller<'_>, (token, owner, spender): (Bytes, Bytes, Bytes)| {
            ask(caller, move |host, fuel| {
                let (token, owner, spender) = (id(&token)?, address(&owner)?, address(&spender)?);
                amount(host, fuel, TokenCall::Allowance { token, owner, spender })
            })
        },
    )
}
