//! What a state knows about actors.

use super::State;
use crate::{
    chain::actors::{Actor, ActorCode},
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

    pub fn code(&self, hash: &Hash) -> Option<&ActorCode> {
        self.code.get(hash)
    }

    /// The entries of an actor's store from the key `from` on (inclusive), in ascending byte order
    /// of the keys. Values are JSON.
    pub fn stored(&self, actor: &Address, from: &str) -> impl Iterator<Item = (&str, &[u8])> {
        let actor = *actor;
        self.storage
            .range_from(&(actor, from.to_owned()))
            .take_while(move |((of, _), _)| *of == actor)
            .map(|((_, key), value)| (key.as_str(), value.as_slice()))
    }

    /// The JSON value under a key of an actor's store.
    pub fn stored_at(&self, actor: &Address, key: &str) -> Option<&[u8]> {
        self.storage.get(&(*actor, key.to_owned())).map(Vec::as_slice)
    }
}
