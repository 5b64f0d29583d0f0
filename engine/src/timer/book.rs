//! Timers by id: the committed form, in little memory.
//!
//! A timer is a record of [pages](super::pages) under its id. Its body is a CBOR list by position,
//! not a map by names as in other encodings, because there may be ten million timers. An absent
//! field is an empty list, a present one is a list of its parts, and the payer is absent if it is
//! the actor.

use super::{
    Bid, Due, Timer,
    pages::{
        Pages,
        proof::{self, Oversize, Shown, TreeError},
    },
};
use crate::primitives::{
    Hash,
    codec::{Decode, DecodeError, Encode, Reader, Writer},
};

/// Number of fields in a body.
const FIELDS: usize = 15;
const KEY_BYTES: usize = 32;
/// Maximum bytes of several timers in one page.
const PAGE_BYTES: usize = 1_024;

/// Timers by id. Clones are O(1) and independent; lookups and changes are O(log n).
#[derive(Clone, Default)]
pub struct Book(Pages<KEY_BYTES, PAGE_BYTES>);

impl Book {
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash over all timers; [`Hash::ZERO`] if it is empty.
    pub fn root(&self) -> Hash {
        self.0.root()
    }

    pub fn get(&self, id: &Hash) -> Option<Timer> {
        self.0.get(id.as_bytes()).map(|body| timer(id.as_bytes(), body))
    }

    pub fn contains(&self, id: &Hash) -> bool {
        self.0.get(id.as_bytes()).is_some()
    }

    /// The timer of an entry: its id begins with the entry's bytes, and its place in the order of
    /// insertion ends with the entry's bits.
    pub fn find(&self, due: &Due) -> Option<Timer> {
        let [prefix @ .., _, _] = due.id().to_be_bytes();
        let (alike, seq) = (self.0.with_prefix(prefix), due.seq);
        alike.map(|(id, body)| timer(id, body)).find(|timer| timer.seq as u32 == seq)
    }

    /// Inserts a timer under its id and returns the one it replaces.
    pub fn insert(&mut self, timer: &Timer) -> Option<Timer> {
        let mut w = Writer::new();
        write(timer, &mut w);
        let id = timer.id.as_bytes();
        self.0.insert(id, &w.finish()).map(|body| self::timer(id, &body))
    }

    pub fn remove(&mut self, id: &Hash) -> Option<Timer> {
        self.0.remove(id.as_bytes()).map(|body| timer(id.as_bytes(), &body))
    }

    /// Proves the timer `id` or its absence, in at most `limit` bytes.
    pub fn prove(&self, id: &Hash, limit: usize) -> Result<Vec<u8>, Oversize> {
        self.0.prove(&id.0, &id.0, limit)
    }

    /// The timers from an id on, inclusive, in order of id.
    pub fn range_from(&self, id: &Hash) -> impl Iterator<Item = Timer> {
        self.0.range_from(id.0).map(|(id, body)| timer(id, body))
    }

    /// All timers, by id.
    pub fn iter(&self) -> impl Iterator<Item = Timer> {
        self.0.iter().map(|(id, body)| timer(id, body))
    }
}

/// Checks a proof from [`Book::prove`]. Returns the proof's root and the body of the timer `id`,
/// `None` if there is no such timer.
pub fn check<'a>(tree: &'a [u8], id: &Hash) -> Result<(Hash, Option<&'a [u8]>), TreeError> {
    let Shown { root, records } = proof::check::<KEY_BYTES>(tree, &id.0, &id.0)?;
    // Keys ascend: at most one record has this key.
    Ok((root, records.first().map(|(_, body)| *body)))
}

fn timer(id: &[u8; KEY_BYTES], body: &[u8]) -> Timer {
    read(Hash(*id), &mut Reader::new(body)).expect("the book has what it wrote")
}

/// Appends a timer's body.
pub fn write(timer: &Timer, w: &mut Writer) {
    w.list(FIELDS);
    timer.seq.encode(w);
    timer.actor.encode(w);
    timer.height.encode(w);
    timer.payload.encode(w);
    optional(timer.handler.as_ref(), w);
    optional(Some(&timer.fee_payer).filter(|payer| **payer != timer.actor), w);
    timer.gas_limit.encode(w);
    timer.cell_limit.encode(w);
    optional(timer.promised.as_ref(), w);
    timer.expires_at.encode(w);
    timer.max_fee_per_cycle.encode(w);
    timer.max_priority_fee_per_cycle.encode(w);
    timer.scheduled_at.encode(w);
    optional(timer.gba.as_ref(), w);
    w.list(if timer.bid.is_some() { 3 } else { 0 });
    if let Some(bid) = &timer.bid {
        bid.max_fee_per_cycle.encode(w);
        bid.max_priority_fee_per_cycle.encode(w);
        bid.failed.encode(w);
    }
}

/// Reads the body of the timer `id`.
pub fn read(id: Hash, r: &mut Reader<'_>) -> Result<Timer, DecodeError> {
    if r.list(FIELDS)? != FIELDS {
        return Err(DecodeError::Invalid("a timer has 15 fields"));
    }
    let seq = Decode::decode(r)?;
    let actor = Decode::decode(r)?;
    Ok(Timer {
        id,
        seq,
        actor,
        height: Decode::decode(r)?,
        payload: Decode::decode(r)?,
        handler: read_optional(r)?,
        fee_payer: read_optional(r)?.unwrap_or(actor),
        gas_limit: Decode::decode(r)?,
        cell_limit: Decode::decode(r)?,
        promised: read_optional(r)?,
        expires_at: Decode::decode(r)?,
        max_fee_per_cycle: Decode::decode(r)?,
        max_priority_fee_per_cycle: Decode::decode(r)?,
        scheduled_at: Decode::decode(r)?,
        gba: read_optional(r)?,
        bid: match r.list(3)? {
            0 => None,
            3 => Some(Bid {
                max_fee_per_cycle: Decode::decode(r)?,
                max_priority_fee_per_cycle: Decode::decode(r)?,
                failed: Decode::decode(r)?,
            }),
            _ => return Err(DecodeError::Invalid("a bid has 3 parts")),
        },
    })
}

fn optional<T: Encode>(value: Option<&T>, w: &mut Writer) {
    w.list(usize::from(value.is_some()));
    if let Some(value) = value {
        value.encode(w);
    }
}

fn read_optional<T: Decode>(r: &mut Reader<'_>) -> Result<Option<T>, DecodeError> {
    (r.list(1)? == 1).then(|| T::decode(r)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::{Address, Height, Wei, keccak256};

    fn sample(n: u64) -> Timer {
        let id = keccak256(&[&n.to_be_bytes()]);
        let actor = Address([n as u8; 20]);
        Timer {
            id,
            seq: n,
            actor,
            height: Height::new(n + 1),
            payload: vec![0; n as usize % 40],
            handler: (n % 2 == 1).then(|| "tick".to_owned()),
            fee_payer: if n % 3 == 1 { Address([255; 20]) } else { actor },
            gas_limit: 100_000,
            cell_limit: 64 * n,
            promised: (n % 3 == 1).then_some(Wei::new(u128::from(n) << 40)),
            expires_at: Height::new(n + 1_000),
            max_fee_per_cycle: Wei::new(u128::from(n) << 30),
            max_priority_fee_per_cycle: Wei::new(7),
            scheduled_at: Height::new(n),
            gba: (n % 5 == 1).then_some(Address([9; 20])),
            bid: (n % 10 == 1).then_some(Bid {
                max_fee_per_cycle: Wei::new(1 << 100),
                max_priority_fee_per_cycle: Wei::ZERO,
                failed: n % 20 == 1,
            }),
        }
    }

    #[test]
    fn timers_come_back_as_they_went_in() {
        let mut book = Book::default();
        for n in 0..100 {
            assert_eq!(book.insert(&sample(n)), None);
        }
        for n in 0..100 {
            let timer = sample(n);
            let id_and_cells = Due::id_and_cells(&timer.id, timer.cell_limit);
            let due = Due { id_and_cells, seq: n as u32, ..Due::default() };
            assert_eq!(due.cell_limit(), timer.cell_limit);
            assert_eq!(book.get(&timer.id), Some(timer.clone()));
            assert_eq!(book.find(&due), Some(timer.clone()));
            assert_eq!(book.find(&Due { seq: n as u32 + 1, ..due }), None);
        }
        let mut expected: Vec<_> = (0..100).map(sample).collect();
        expected.sort_unstable_by_key(|timer| timer.id);
        assert_eq!(book.iter().collect::<Vec<_>>(), expected);

        let extended = Timer { expires_at: Height::new(5_000), ..sample(7) };
        assert_eq!(book.insert(&extended), Some(sample(7)));
        assert_eq!(book.remove(&extended.id), Some(extended));
        assert_eq!((book.len(), book.get(&sample(7).id)), (99, None));
    }
}
