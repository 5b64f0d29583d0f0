//! The data that answers a read: one validator's chain, or a glance at all validators.

use super::{
    backend::{Backend, Running, ValidatorSlot},
    error::{ApiError, shown},
};
use crate::{
    chain::ledger::Rooted,
    storage::ValidatorStore,
    types::{Text, TimeText},
};
use cowboy_engine::{
    chain::{Block, Header, State},
    primitives::{Address, Hash, Height, Shortfall},
};
use cowboy_host::spelling::nearest;
use jiff::Timestamp;
use std::{fmt, ops::Deref, sync::Arc};

/// The devnet as a whole, and the newest state of the requested validator or of any.
pub(super) struct Glance {
    pub backend: Arc<Backend>,
    pub state: State,
}

/// One running validator's chain. Its head stays the same through a request.
pub(super) struct View {
    glance: Glance,
    pub running: Running,
}

impl Deref for View {
    type Target = Glance;

    fn deref(&self) -> &Glance {
        &self.glance
    }
}

impl Glance {
    /// The state of validator `node`, which has to run; else the newest of all.
    pub fn of(backend: Arc<Backend>, node: Option<&str>) -> Result<Self, ApiError> {
        let state = match node {
            Some(node) => chosen(&backend, node)?.1,
            None => backend.newest(),
        };
        Ok(Self { backend, state })
    }

    /// A node's name, or its address.
    pub fn name(&self, address: &Address) -> String {
        self.backend.names.of(address)
    }

    /// Adds the account's name to an error about an account that has too little; other texts stay
    /// as they are.
    pub fn with_payer(&self, text: String) -> String {
        let payer = Shortfall::in_text(&text).map(|short| short.payer);
        match payer.and_then(|payer| Some((payer, self.backend.names.get(&payer)?))) {
            Some((payer, name)) => {
                text.replacen(&payer.to_string(), &format!("{name} ({payer})"), 1)
            }
            None => text,
        }
    }

    pub fn named<'a>(&self, addresses: impl IntoIterator<Item = &'a Address>) -> Vec<String> {
        addresses.into_iter().map(|address| self.name(address)).collect()
    }

    /// The address that a name or address in a request refers to. `what` names its kind.
    pub fn resolve(&self, what: &str, text: &str) -> Result<Address, ApiError> {
        self.backend.names.resolve(text).ok_or_else(|| {
            let hint = match self.backend.names.nearest(text, |_| true) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "expected a name of this devnet or an address: 0x and 40 hex digits".into(),
            };
            ApiError::not_found(format!("there is no {what} `{}`", shown(text))).hint(hint)
        })
    }
}

impl View {
    /// The chain of validator `node`, or of the running validator with the highest head.
    pub fn of(backend: Arc<Backend>, node: Option<&str>) -> Result<Self, ApiError> {
        let (running, state) = match node {
            Some(node) => chosen(&backend, node)?,
            None => {
                let running = furthest(&backend)?;
                let state = running.ledger.head();
                (running, state)
            }
        };
        Ok(Self { glance: Glance { backend, state }, running })
    }

    pub fn store(&self) -> &ValidatorStore {
        self.running.ledger.store()
    }

    pub fn head(&self) -> Height {
        self.state.height()
    }

    /// The state after the block at `height`, one of the last 256.
    pub fn state_at(&self, height: Height) -> Option<Arc<Rooted>> {
        self.running.ledger.at(height).filter(|rooted| rooted.state.height() <= self.head())
    }

    /// Parses a height in a request: a number, or the word `latest`, which means the argument
    /// `latest`.
    pub fn height(&self, text: &str, latest: Height) -> Result<Height, ApiError> {
        if text == "latest" {
            return Ok(latest);
        }
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        let height = number.map(Height::new).ok_or_else(|| {
            let text = shown(text);
            ApiError::bad_request(format!(
                "`{text}` is not a height: expected a number or `latest`"
            ))
        })?;
        self.reached(height)?;
        self.kept(height)?;
        Ok(height)
    }

    /// Checks that the validator still keeps the block at `height`; it always has genesis.
    pub fn kept(&self, height: Height) -> Result<(), ApiError> {
        let first = self.store().kept_from();
        if height == Height::GENESIS || height >= first {
            return Ok(());
        }
        let message = format!("Pruned: block {height} is no longer kept; the oldest is {first}");
        Err(ApiError::gone(message).hint("`storage.keep` in the topology says how much is kept"))
    }

    pub fn reached(&self, height: Height) -> Result<(), ApiError> {
        let head = self.head();
        if height <= head {
            return Ok(());
        }
        let newest = self.backend.newest().height();
        if height <= newest {
            let message =
                format!("block {height} is final, but the validator asked has only reached {head}");
            return Err(ApiError::unavailable(message).hint("ask another validator, or wait"));
        }
        let message = format!("block {height} is not final yet; the head is {newest}");
        Err(ApiError::not_found(message)
            .hint(format!("wait for it: cowboyctl chain wait {height}")))
    }

    /// A final block. `height` is at most the head.
    pub fn block(&self, height: Height) -> Result<Block, ApiError> {
        if height == Height::GENESIS {
            return Ok(self.backend.genesis.clone());
        }
        self.store().block(height)?.ok_or_else(|| self.missing(height))
    }

    /// The state root after a block, and the time at which the validator executed it (`None` for
    /// genesis).
    pub fn executed(&self, height: Height) -> Result<(Hash, Option<TimeText>), ApiError> {
        if height == Height::GENESIS {
            return Ok((self.backend.genesis_root, None));
        }
        let (root, ms) = self.store().executed(height)?.ok_or_else(|| self.missing(height))?;
        Ok((root, Some(time(ms))))
    }

    /// The error for a final block that the store does not have: pruned, or damaged.
    fn missing(&self, height: Height) -> ApiError {
        let damaged = || format!("block {height} is final, but the validator does not have it");
        self.kept(height).err().unwrap_or_else(|| ApiError::internal(damaged()))
    }

    /// The address of the validator that proposed a block; `None` for genesis.
    pub fn proposer(&self, header: &Header) -> Option<Address> {
        let validators = self.state.validators_in(header.round.epoch);
        let validator = validators.iter().find(|v| v.consensus_key == header.proposer)?;
        Some(validator.pubkey.address())
    }
}

/// A running validator and its newest state.
fn chosen(backend: &Backend, node: &str) -> Result<(Running, State), ApiError> {
    let slots = backend.slots();
    let address = backend.names.resolve(node);
    let slot = slots.iter().find(|slot| Some(slot.address()) == address);
    let slot = slot.ok_or_else(|| {
        let names: Vec<_> = slots.iter().map(|slot| slot.name()).collect();
        let hint = match nearest(node, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("expected one of {}", names.join(", ")),
        };
        ApiError::not_found(format!("there is no validator `{}`", shown(node))).hint(hint)
    })?;
    let running = slot.running().ok_or_else(|| not_running(slot))?;
    let state = running.head().ok_or_else(|| {
        let (name, height) = (slot.name(), running.height());
        let message =
            format!("validator `{name}` is at block {height}, too far behind to be asked");
        ApiError::unavailable(message).hint("ask another validator, or wait")
    })?;
    Ok((running, state))
}

/// The refusal of a request that only a running validator answers.
pub(super) fn not_running(slot: &ValidatorSlot) -> ApiError {
    let name = slot.name();
    let message = match slot.died() {
        Some(reason) => format!("validator `{name}` has died: {reason}"),
        None => format!("validator `{name}` is stopped"),
    };
    ApiError::unavailable(message).hint(format!("start it: cowboyctl validator start {name}"))
}

/// The running validator with the highest head; among equals, the first wins. So reads without
/// `node` never go back in time while a validator catches up.
fn furthest(backend: &Backend) -> Result<Running, ApiError> {
    let slots = backend.slots();
    let running = slots.iter().rev().filter_map(|slot| slot.running());
    running.max_by_key(|running| running.ledger.head().height()).ok_or_else(|| {
        ApiError::unavailable("no validator is running")
            .hint("start one: cowboyctl validator start NAME")
    })
}

/// A time from Unix milliseconds, saturating at the last representable time.
pub(super) fn time(unix_ms: u64) -> TimeText {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Text(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX))
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View at {}", self.head())
    }
}
