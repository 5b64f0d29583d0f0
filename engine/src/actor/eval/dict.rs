//! Reading and changing dicts and lists.

use super::Machine;
use crate::actor::{
    error::{Fault, failed},
    value::{Dict, Id, Value},
};

impl Machine<'_> {
    /// The place of a key, and its hash.
    pub(in crate::actor) fn dict_find(
        &mut self,
        dict: Id,
        key: Value,
    ) -> Result<Option<(u64, u32)>, Fault> {
        let hash = self.hash(key)?;
        self.meter.lookup(self.heap.dict(dict).len())?;
        Ok(self.place(dict, hash, key).map(|place| (hash, place)))
    }

    fn place(&self, dict: Id, hash: u64, key: Value) -> Option<u32> {
        let mut candidates = self.heap.dict(dict).candidates(hash);
        candidates.find(|(_, known)| self.same_key(*known, key)).map(|(place, _)| place)
    }

    pub(in crate::actor) fn dict_get(
        &mut self,
        dict: Id,
        key: Value,
    ) -> Result<Option<Value>, Fault> {
        let found = self.dict_find(dict, key)?;
        Ok(found.map(|(_, place)| self.heap.dict(dict).get(place)))
    }

    /// The dict, if its keys may change.
    fn dict_mut(&mut self, id: Id) -> Result<&mut Dict, Fault> {
        writable(id, "dict")?;
        match self.heap.dict_mut(id) {
            Some(dict) if dict.loops == 0 => Ok(dict),
            _ => failed("this dict is looped over and temporarily immutable"),
        }
    }

    /// Sets a key. Returns whether it was present.
    pub(in crate::actor) fn dict_put(
        &mut self,
        id: Id,
        key: Value,
        value: Value,
    ) -> Result<bool, Fault> {
        let hash = self.hash(key)?;
        self.meter.lookup(self.heap.dict(id).len())?;
        let place = self.place(id, hash, key);
        let dict = self.dict_mut(id)?;
        match place {
            Some(place) => dict.set(place, value),
            None => {
                let len = dict.len() + 1;
                self.meter.entries_fit(len)?;
                self.meter.alloc(Dict::ENTRY_COST)?;
                self.dict_mut(id)?.insert(hash, key, value);
            }
        }
        Ok(place.is_some())
    }

    pub(in crate::actor) fn dict_remove(
        &mut self,
        id: Id,
        key: Value,
    ) -> Result<Option<Value>, Fault> {
        let found = self.dict_find(id, key)?;
        let dict = self.dict_mut(id)?;
        let Some((hash, place)) = found else { return Ok(None) };
        Ok(dict.remove(hash, place).map(|(_, value)| value))
    }

    /// Removes the oldest entry.
    pub(in crate::actor) fn dict_pop_first(
        &mut self,
        id: Id,
    ) -> Result<Option<(Value, Value)>, Fault> {
        let first = self.dict_mut(id)?.from(0);
        let Some((place, key, _)) = first else { return Ok(None) };
        let hash = self.hash(key)?;
        self.meter.lookup(self.heap.dict(id).len())?;
        Ok(self.dict_mut(id)?.remove(hash, place))
    }

    pub(in crate::actor) fn dict_clear(&mut self, id: Id) -> Result<(), Fault> {
        let len = self.heap.dict(id).len();
        self.meter.elements(len)?;
        self.dict_mut(id)?.clear();
        Ok(())
    }

    pub(in crate::actor) fn dict_update(&mut self, into: Id, from: Id) -> Result<(), Fault> {
        self.dict_mut(into)?;
        let mut place = 0;
        while let Some((at, key, value)) = self.heap.dict(from).from(place) {
            self.meter.elements(1)?;
            self.dict_put(into, key, value)?;
            place = at + 1;
        }
        Ok(())
    }

    /// The items of a list, if they may change.
    pub(in crate::actor) fn list_mut(&mut self, id: Id) -> Result<&mut Vec<Value>, Fault> {
        writable(id, "list")?;
        match self.heap.list_mut(id) {
            Some(list) if list.loops == 0 => Ok(&mut list.items),
            _ => failed("this list is looped over and temporarily immutable"),
        }
    }

    pub(in crate::actor) fn list_append(&mut self, id: Id, value: Value) -> Result<(), Fault> {
        let len = self.list_mut(id)?.len() + 1;
        self.meter.entries_fit(len)?;
        self.meter.alloc(Value::COST)?;
        self.list_mut(id)?.push(value);
        Ok(())
    }

    pub(in crate::actor) fn list_extend(&mut self, id: Id, with: Value) -> Result<(), Fault> {
        let (len, more) = (self.list_mut(id)?.len(), self.count(with)?);
        self.meter.entries_fit(len.saturating_add(more))?;
        self.meter.alloc(more as u64 * Value::COST)?;
        let items = self.items(with, "extending a list")?;
        self.list_mut(id)?.extend(items);
        Ok(())
    }
}

/// Fails if a list or dict is frozen.
fn writable(id: Id, kind: &str) -> Result<(), Fault> {
    if id.is_frozen() {
        return failed(format!("this {kind} belongs to the module and is frozen"));
    }
    Ok(())
}
