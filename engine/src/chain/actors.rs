//! Actors as the chain keeps them: who deployed them, their code, their stores (spec chain.md,
//! "Actors").
//!
//! Code is kept by its hash, so that actors with equal source share it. A state holds sources and
//! commits to them; the module of a source is loaded where it is first called, and what that gives
//! follows from the source and the chain's parameters alone.
//!
//! Loading costs what it cost at deployment, and is paid for again by whoever first calls an actor
//! after [`RELOAD_BLOCKS`], whatever a validator has in memory. So one that starts anew loads no
//! more, uncharged, than was paid for in that many blocks, and small modules: those stay loaded as
//! long as they are called, so that an actor that runs often needs cycles for its work alone.

use super::state::State;
use crate::{
    actor::{self, Budget, Error, ErrorKind, Module, Usage},
    primitives::{
        Address, Hash, Height,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
    },
    record,
};
use std::sync::{Arc, OnceLock};

/// A deployed actor. Its balance is that of its account, its store [`State::stored`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Who deployed it.
    pub deployer: Address,
    /// keccak256 of its source: where [`State::code`] has it.
    pub code: Hash,
    /// The block that deployed it.
    pub deployed_at: Height,
    /// Bytes of heap that its module's globals keep, paid for as cells at deployment.
    pub retained: u64,
    /// Cycles that loading its module takes.
    pub loading: u64,
    /// The last block in which loading it was paid for, or in which it was kept loaded.
    pub loaded_at: Height,
}
record!(Actor { deployer, code, deployed_at, retained, loading, loaded_at });

/// Blocks after which loading a module is paid for again.
pub const RELOAD_BLOCKS: u64 = 256;

/// Cycles of loading up to which a module stays loaded as long as it is called.
pub const SMALL_LOADING: u64 = 50_000;

impl Actor {
    /// The same after a call at `height`, where that changes it.
    pub const fn called_at(self, height: Height) -> Option<Self> {
        let since = height.since(self.loaded_at);
        let kept = self.loading <= SMALL_LOADING && since >= RELOAD_BLOCKS / 2;
        match kept || since >= RELOAD_BLOCKS {
            true => Some(Self { loaded_at: height, ..self }),
            false => None,
        }
    }

    /// Cycles that a call at `height` pays for loading the module.
    pub const fn loading_at(&self, height: Height) -> u64 {
        match height.since(self.loaded_at) < RELOAD_BLOCKS {
            true => 0,
            false => self.loading,
        }
    }
}

/// The source of actors, and their module once one of them was called. Cloning shares both.
#[derive(Clone, Debug)]
pub struct Code(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    source: String,
    module: OnceLock<Result<Module, Error>>,
}

impl Code {
    /// A source whose module is loaded where it is first needed.
    pub(super) fn new(source: String) -> Self {
        Self(Arc::new(Loaded { source, module: OnceLock::new() }))
    }

    /// A source and its module.
    pub(super) fn loaded(source: &str, module: Module) -> Self {
        let module = OnceLock::from(Ok(module));
        Self(Arc::new(Loaded { source: source.to_owned(), module }))
    }

    /// What a source is kept by: its keccak256.
    pub fn hash(source: &str) -> Hash {
        keccak256(&[source.as_bytes()])
    }

    /// The source as it was deployed.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The module. An error only where the source did not come through a deployment under these
    /// parameters, as in a snapshot that was tampered with.
    pub fn module(&self, params: &actor::Params) -> Result<&Module, &Error> {
        let unlimited = Budget { cycles: u64::MAX, cells: u64::MAX };
        self.0.module.get_or_init(|| Module::load(&self.0.source, params, unlimited).1).as_ref()
    }
}

impl Encode for Code {
    fn encode(&self, w: &mut Writer) {
        w.text(&self.0.source);
    }
}

impl Decode for Code {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.text(usize::MAX).map(|source| Self::new(source.to_owned()))
    }
}

/// Loads a module as a deployment does, and says what that uses: the work of loading, and a cell
/// per byte that the module keeps.
pub fn load(
    source: &str,
    params: &actor::Params,
    budget: Budget,
) -> (Usage, Result<Module, Error>) {
    let (mut usage, loaded) = Module::load(source, params, budget);
    let loaded = loaded.and_then(|module| {
        let cells = usage.cells.saturating_add(module.retained());
        match cells.checked_sub(budget.cells) {
            None | Some(0) => {
                usage.cells = cells;
                Ok(module)
            }
            Some(short) => Err(ErrorKind::OutOfCells { limit: budget.cells, short }.into()),
        }
    });
    (usage, loaded)
}

impl State {
    /// Every actor, by address.
    pub fn actors(&self) -> impl Iterator<Item = (&Address, &Actor)> {
        self.actors.iter()
    }

    /// The actors from an address on, itself included, by address.
    pub fn actors_from(&self, from: &Address) -> impl Iterator<Item = (&Address, &Actor)> {
        self.actors.range_from(from)
    }

    /// An actor.
    pub fn actor(&self, address: &Address) -> Option<&Actor> {
        self.actors.get(address)
    }

    /// The code of this hash.
    pub fn code(&self, hash: &Hash) -> Option<&Code> {
        self.code.get(hash)
    }

    /// The store of an actor from the key `from` on, itself included, in ascending order of the
    /// keys' bytes. Values are JSON.
    pub fn stored(&self, actor: &Address, from: &str) -> impl Iterator<Item = (&str, &[u8])> {
        let actor = *actor;
        self.storage
            .range_from(&(actor, from.to_owned()))
            .take_while(move |((of, _), _)| *of == actor)
            .map(|((_, key), value)| (key.as_str(), value.as_slice()))
    }

    /// What an actor keeps under a key, JSON.
    pub fn stored_at(&self, actor: &Address, key: &str) -> Option<&[u8]> {
        self.storage.get(&(*actor, key.to_owned())).map(Vec::as_slice)
    }
}
