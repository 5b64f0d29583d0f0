//! The chain's record of actors: deployer, code and store (spec chain.md, "Actors").
//!
//! Code is keyed by its hash, so actors with equal source share it. A state holds sources and
//! commits to them. A source's module is loaded on the first call; the result depends only on the
//! source and the chain's parameters.
//!
//! Loading costs the same as at deployment. The first call of an actor after [`RELOAD_BLOCKS`] pays
//! for it again, regardless of what a validator has in memory. A validator that restarts therefore
//! loads, uncharged, at most the modules paid for in that many blocks, and small modules: those
//! stay loaded while they are called, so that an actor that runs often pays only for its own work.

mod key;

pub use key::StoreKey;

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

/// A deployed actor. Its account holds the balance, [`State::stored`](super::State::stored) its
/// store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    pub deployer: Address,
    /// keccak256 of the source: its key in [`State::code`](super::State::code).
    pub code: Hash,
    pub deployed_at: Height,
    /// Bytes of heap that the module's globals retain, paid for as cells at deployment.
    pub retained: u64,
    /// Cycles to load the module.
    pub loading: u64,
    /// The last block in which loading was paid for, or renewed for free.
    pub loaded_at: Height,
    /// The owner of an actor in Python, if it is no longer the deployer.
    pub new_owner: Option<Address>,
}
record!(Actor { deployer, code, deployed_at, retained, loading, loaded_at, new_owner });

/// Number of blocks after which loading a module is paid for again.
pub const RELOAD_BLOCKS: u64 = 256;

/// Maximum loading cost, in cycles, of a module that stays loaded while it is called.
pub const SMALL_LOADING: u64 = 50_000;

impl Actor {
    /// The owner: the deployer, until it hands the actor over.
    pub fn owner(&self) -> Address {
        self.new_owner.unwrap_or(self.deployer)
    }

    /// The same actor, with its loading paid for `blocks` later.
    pub const fn later(self, blocks: u64) -> Self {
        Self { loaded_at: self.loaded_at.after(blocks), ..self }
    }

    /// The actor after a call at `height`; `None` if the call does not change it.
    pub const fn called_at(self, height: Height) -> Option<Self> {
        let since = height.since(self.loaded_at);
        let kept = self.loading <= SMALL_LOADING && since >= RELOAD_BLOCKS / 2;
        match kept || since >= RELOAD_BLOCKS {
            true => Some(Self { loaded_at: height, ..self }),
            false => None,
        }
    }

    /// Cycles that a call at `height` pays to load the module.
    pub const fn loading_at(&self, height: Height) -> u64 {
        match height.since(self.loaded_at) < RELOAD_BLOCKS {
            true => 0,
            false => self.loading,
        }
    }
}

/// The source of an actor, and its module after the first call. Clones share both.
#[derive(Clone, Debug)]
pub struct ActorCode(Arc<LoadedCode>);

#[derive(Debug)]
struct LoadedCode {
    language: Language,
    source: String,
    module: OnceLock<Result<Module, Error>>,
}

/// The language of an actor, which decides the machine that runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// The dialect that the engine evaluates itself.
    #[default]
    Starlark,
    /// Python with the official SDK, which a [`Pvm`](crate::pvm::Pvm) runs.
    Python,
}

impl Language {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starlark => "starlark",
            Self::Python => "python",
        }
    }
}

/// Left out of a record for Starlark.
impl Encode for Language {
    fn encode(&self, w: &mut Writer) {
        w.text(self.name());
    }

    fn is_absent(&self) -> bool {
        *self == Self::Starlark
    }
}

impl Decode for Language {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.text(16)? {
            "python" => Ok(Self::Python),
            _ => Err(DecodeError::Invalid("unknown language of an actor")),
        }
    }

    fn absent(_: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::Starlark)
    }
}

impl ActorCode {
    pub(super) fn new(language: Language, source: String) -> Self {
        Self(Arc::new(LoadedCode { language, source, module: OnceLock::new() }))
    }

    pub(super) fn loaded(source: &str, module: Module) -> Self {
        let module = OnceLock::from(Ok(module));
        let (language, source) = (Language::Starlark, source.to_owned());
        Self(Arc::new(LoadedCode { language, source, module }))
    }

    /// The key of a source: its keccak256, so the same text has two keys in two languages.
    pub fn hash(language: Language, source: &str) -> Hash {
        match language {
            Language::Starlark => keccak256(&[source.as_bytes()]),
            Language::Python => keccak256(&[b"cowboy-python-code/v1", source.as_bytes()]),
        }
    }

    pub fn language(&self) -> Language {
        self.0.language
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The module of a Starlark actor. Fails only if the source was not deployed under these
    /// parameters, as in a snapshot that was tampered with.
    pub fn module(&self, params: &actor::ActorParams) -> Result<&Module, &Error> {
        let unlimited = Budget { cycles: u64::MAX, cells: u64::MAX };
        self.0.module.get_or_init(|| Module::load(&self.0.source, params, unlimited).1).as_ref()
    }
}

/// Text in Starlark, bytes in Python.
impl Encode for ActorCode {
    fn encode(&self, w: &mut Writer) {
        match self.0.language {
            Language::Starlark => w.text(&self.0.source),
            Language::Python => w.bytes(self.0.source.as_bytes()),
        }
    }
}

impl Decode for ActorCode {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.is_text() {
            let source = r.text(usize::MAX)?.to_owned();
            return Ok(Self::new(Language::Starlark, source));
        }
        let source = String::from_utf8(r.bytes(usize::MAX)?.to_vec());
        let source = source.map_err(|_| DecodeError::Invalid("a source that is not UTF-8"))?;
        Ok(Self::new(Language::Python, source))
    }
}

/// Loads a module as a deployment does, and returns the usage: cycles for loading, and one cell per
/// byte that the module retains.
pub fn load(
    source: &str,
    params: &actor::ActorParams,
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
