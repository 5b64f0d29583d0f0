//! The most recently used runner of a submitter (spec jobs.md §4).

use super::selection::Favoured;
use crate::{
    primitives::{
        Address, Height,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};

/// The runner that last won a verified job of one submitter and job kind.
///
/// Stored in 28 bytes: runner\[20\] ‖ set_at\[8 BE\]. An expired record is removed on the next
/// read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MruRecord {
    /// The winner: first committee member, in draw order, whose result agreed.
    pub runner: Address,
    /// The block that made its result final.
    pub set_at: Height,
}

impl MruRecord {
    /// Whether the record still favours its runner at `now`. It counts through `ttl` blocks, the
    /// last included.
    pub const fn is_live(&self, now: Height, ttl: u64) -> bool {
        now.since(self.set_at) <= ttl
    }

    /// The same record, set `blocks` later.
    pub const fn later(self, blocks: u64) -> Self {
        Self { set_at: self.set_at.after(blocks), ..self }
    }

    pub fn to_bytes(&self) -> [u8; 28] {
        let mut bytes = [0; 28];
        let (runner, set_at) = bytes.split_at_mut(20);
        runner.copy_from_slice(self.runner.as_bytes());
        set_at.copy_from_slice(&self.set_at.to_be_bytes());
        bytes
    }

    /// Reads the stored form; any 28 bytes are valid.
    pub fn from_bytes(bytes: &[u8; 28]) -> Self {
        let (runner, set_at) = bytes.split_first_chunk().expect("20 of 28 bytes");
        let set_at = set_at.first_chunk().expect("the other 8");
        Self { runner: Address(*runner), set_at: Height::new(u64::from_be_bytes(*set_at)) }
    }
}

/// The stored form, as a byte string.
impl Encode for MruRecord {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.to_bytes());
    }
}

impl Decode for MruRecord {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self::from_bytes(&bytes))
    }
}

/// The record as a draw read it, with the rules that applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MruRead {
    pub runner: Address,
    pub set_at: Height,
    pub ttl_blocks: u64,
    /// The factor on the runner's weight in draw 0.
    pub multiplier: u64,
}
record!(MruRead { runner, set_at, ttl_blocks, multiplier });

impl MruRead {
    /// The runner and its multiplier, if the record had not expired in the block at `height`.
    pub fn live_at(&self, height: Height) -> Option<Favoured> {
        let Self { runner, set_at, ttl_blocks, multiplier } = *self;
        let live = MruRecord { runner, set_at }.is_live(height, ttl_blocks);
        live.then_some(Favoured { runner, multiplier })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::codec::{from_slice, to_vec};

    const RECORD: MruRecord =
        MruRecord { runner: Address([0xab; 20]), set_at: Height::new(0x0102_0304) };

    #[test]
    fn lives_through_its_last_block() {
        let check = |ttl: u64, blocks: u64, live: bool| {
            let now = RECORD.set_at.after(blocks);
            assert_eq!(RECORD.is_live(now, ttl), live, "{blocks} blocks on of {ttl}");
        };
        check(256, 0, true);
        check(256, 1, true);
        check(256, 256, true);
        check(256, 257, false);
        check(256, u64::MAX, false);
        check(8, 8, true);
        check(8, 9, false);
    }

    #[test]
    fn a_read_record_favours_by_what_was_read() {
        let read =
            MruRead { runner: RECORD.runner, set_at: RECORD.set_at, ttl_blocks: 8, multiplier: 4 };
        let favoured = Favoured { runner: RECORD.runner, multiplier: 4 };
        assert_eq!(read.live_at(RECORD.set_at.after(8)), Some(favoured));
        assert_eq!(read.live_at(RECORD.set_at.after(9)), None);
    }

    #[test]
    fn the_stored_form_is_frozen() {
        let form = format!("{}0000000001020304", "ab".repeat(20));
        assert_eq!(hex::encode(RECORD.to_bytes()), form);
        assert_eq!(MruRecord::from_bytes(&RECORD.to_bytes()), RECORD);
        assert_eq!(hex::encode(to_vec(&RECORD)), format!("581c{form}"));
        assert_eq!(from_slice(&to_vec(&RECORD)), Ok(RECORD));
    }
}
