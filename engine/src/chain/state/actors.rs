//! What a state knows about actors.

use super::State;
use crate::{
    chain::actors::{Actor, ActorCode, Language, StoreKey},
    primitives::{Address, Hash},
};

impl State {
    pub fn actors(&self) -> impl Iterator<Item = (&Address, &Actor)> {
        self.actors.iter()
    }

    /// The actors from address `from` on (inclusive), by address.
    pub fn actors_from(&self, from: &Address) -> impl Iterator<Item = (&Address, &Actor)> {
        self.actors.range_from(from)
    }

    pub fn actor(&self, address: &Address) -> Option<&Actor> {
        self.actors.get(address)
    }

    /// The language of an actor; Starlark for other addresses.
    pub fn language(&self, actor: &Address) -> Language {
        let code = self.actor(actor).and_then(|actor| self.code(&actor.code));
        code.map(ActorCode::language).unwrap_or_default()
    }

    pub fn code(&self, hash: &Hash) -> Option<&ActorCode> {
        self.code.get(hash)
    }

    /// The entries of an actor's store from the key `from` on (inclusive), in ascending byte order
    /// of the keys. Values are JSON, or any bytes if the actor is in Python.
    pub fn stored(
        &self,
        actor: &Address,
        from: impl Into<StoreKey>,
    ) -> impl Iterator<Item = (&StoreKey, &[u8])> {
        let actor = *actor;
        self.storage
            .range_from(&(actor, from.into()))
            .take_while(move |((of, _), _)| *of == actor)
            .map(|((_, key), value)| (key, value.as_slice()))
    }

    /// The value under a key of an actor's store.
    pub fn stored_at(&self, actor: &Address, key: impl Into<StoreKey>) -> Option<&[u8]> {
        self.storage.get(&(*actor, key.into())).map(Vec::as_slice)
    }
}
