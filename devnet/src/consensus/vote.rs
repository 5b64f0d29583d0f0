//! The bytes of votes and certificates on the consensus channels and in marshal's archives.
//!
//! ```text
//! vote signature = bit_length u32 | bitmap, zero-padded to 512 bytes | ed25519 signature (64)
//! certificate    = count varint | count × vote, ascending by validator
//! vote           = validator varint | bit_length varint | bitmap | signature (64)
//! bitmap         = ceil(bit_length / 8) bytes
//! ```
//!
//! Simplex requires all vote signatures to have the same size, so each vote of each kind pays for
//! the bitmap's capacity. A certificate holds bitmaps at their exact length. Decoding accepts one
//! form per value and copies the data out of the network's buffers, which are much larger than a
//! bitmap.

use bytes::BufMut;
use commonware_codec::{
    Buf, Encode as _, EncodeSize, Error, FixedSize, RangeCfg, Read, ReadExt, Write, varint::UInt,
};
use cowboy_engine::{
    chain::Vote,
    presence::{Bitmap, CAPACITY},
};
use std::hash::{Hash, Hasher};

/// Bytes reserved for the bitmap in each vote.
pub const BITMAP_BYTES: usize = CAPACITY as usize / 8;
const _: () = assert!(CAPACITY.is_multiple_of(8));

/// Bytes of an ed25519 signature.
const SIGNATURE: usize = 64;

/// Maximum bytes of one vote in a certificate: two five-byte varints, bitmap, signature.
pub(super) const MAX_VOTE: usize = 5 + 5 + BITMAP_BYTES + SIGNATURE;

/// One validator's signature together with the bitmap it covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoteSignature {
    /// The runners that the voter sees; empty in votes that are not finalize votes.
    pub presence: Bitmap,
    /// Over the subject and the bitmap (see [`super::scheme`]).
    pub signature: [u8; SIGNATURE],
}

impl FixedSize for VoteSignature {
    const SIZE: usize = u32::SIZE + BITMAP_BYTES + SIGNATURE;
}

impl Hash for VoteSignature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encode().hash(state);
    }
}

impl Write for VoteSignature {
    fn write(&self, buf: &mut impl BufMut) {
        let bitmap = self.presence.as_bytes();
        self.presence.len().write(buf);
        buf.put_slice(bitmap);
        buf.put_bytes(0, BITMAP_BYTES - bitmap.len());
        buf.put_slice(&self.signature);
    }
}

impl Read for VoteSignature {
    type Cfg = ();

    fn read_cfg(buf: &mut impl Buf, (): &()) -> Result<Self, Error> {
        let len = u32::read(buf)?;
        let padded = <[u8; BITMAP_BYTES]>::read(buf)?;
        let bytes = bitmap_bytes(len)?;
        if padded[bytes..].iter().any(|byte| *byte != 0) {
            return Err(Error::Invalid("VoteSignature", "padding is not zero"));
        }
        Ok(Self { presence: bitmap(len, &padded[..bytes])?, signature: ReadExt::read(buf)? })
    }
}

/// A quorum's votes, ascending by validator, each with its own bitmap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Votes(pub Vec<Vote>);

impl Hash for Votes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encode().hash(state);
    }
}

impl Write for Votes {
    fn write(&self, buf: &mut impl BufMut) {
        self.0.len().write(buf);
        for vote in &self.0 {
            UInt(vote.validator).write(buf);
            UInt(vote.presence.len()).write(buf);
            buf.put_slice(vote.presence.as_bytes());
            buf.put_slice(&vote.signature);
        }
    }
}

impl EncodeSize for Votes {
    fn encode_size(&self) -> usize {
        let vote = |vote: &Vote| {
            UInt(vote.validator).encode_size()
                + UInt(vote.presence.len()).encode_size()
                + vote.presence.as_bytes().len()
                + SIGNATURE
        };
        self.0.len().encode_size() + self.0.iter().map(vote).sum::<usize>()
    }
}

impl Read for Votes {
    /// The maximum size of the committee.
    type Cfg = usize;

    fn read_cfg(buf: &mut impl Buf, validators: &usize) -> Result<Self, Error> {
        let count = usize::read_cfg(buf, &RangeCfg::from(1..=*validators))?;
        // The count is unverified, so capacity grows with the votes that really arrive.
        let mut votes: Vec<Vote> = Vec::new();
        for _ in 0..count {
            let validator = u32::from(UInt::<u32>::read(buf)?);
            if votes.last().is_some_and(|last| last.validator >= validator) {
                return Err(Error::Invalid("Votes", "validators do not ascend"));
            }
            let len = u32::from(UInt::<u32>::read(buf)?);
            let mut bytes = [0; BITMAP_BYTES];
            let bytes = &mut bytes[..bitmap_bytes(len)?];
            if buf.remaining() < bytes.len() {
                return Err(Error::EndOfBuffer);
            }
            buf.copy_to_slice(bytes);
            votes.push(Vote {
                validator,
                presence: bitmap(len, bytes)?,
                signature: ReadExt::read(buf)?,
            });
        }
        Ok(Self(votes))
    }
}

/// Bytes of a bitmap of `len` bits; fails above the capacity.
fn bitmap_bytes(len: u32) -> Result<usize, Error> {
    if len > CAPACITY {
        return Err(Error::Invalid("Bitmap", "longer than a vote's capacity"));
    }
    Ok((len as usize).div_ceil(8))
}

fn bitmap(len: u32, bytes: &[u8]) -> Result<Bitmap, Error> {
    Bitmap::from_bytes(len, bytes).map_err(|_| Error::Invalid("Bitmap", "padding is not zero"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use commonware_codec::{Decode as _, DecodeExt as _};

    fn signature(len: u32) -> VoteSignature {
        let presence = Bitmap::from_fn(len, |i| i % 3 == 0);
        VoteSignature { presence, signature: [7; SIGNATURE] }
    }

    fn votes() -> Votes {
        let vote = |validator, len| Vote {
            validator,
            presence: Bitmap::from_fn(len, |i| i % 2 == 1),
            signature: [validator as u8; SIGNATURE],
        };
        Votes(vec![vote(0, 0), vote(2, 9), vote(3, CAPACITY)])
    }

    #[test]
    fn every_vote_signature_has_one_size_and_one_form() {
        for len in [0, 1, 8, 9, CAPACITY] {
            let bytes = signature(len).encode();
            assert_eq!(bytes.len(), VoteSignature::SIZE);
            assert_eq!(bytes.len(), 580, "docs/presence.md");
            assert_eq!(VoteSignature::decode(bytes).expect("as written"), signature(len));
        }
    }

    #[test]
    fn a_vote_signature_with_stray_bits_is_refused() {
        let check = |len: u32, byte: usize| {
            let mut bytes = signature(len).encode().to_vec();
            bytes[4 + byte] |= 0x80;
            assert!(VoteSignature::decode(Bytes::from(bytes)).is_err(), "{len} bits, byte {byte}");
        };
        check(0, 0);
        check(9, 1);
        check(9, 2);
        check(9, BITMAP_BYTES - 1);
        let mut bytes = signature(0).encode().to_vec();
        bytes[..4].copy_from_slice(&(CAPACITY + 1).to_be_bytes());
        assert!(VoteSignature::decode(Bytes::from(bytes)).is_err());
    }

    #[test]
    fn certificates_survive_a_round_trip_within_their_bounds() {
        let bytes = votes().encode();
        assert_eq!(bytes.len(), votes().encode_size());
        assert!(bytes.len() <= 5 + 3 * MAX_VOTE);
        assert_eq!(Votes::decode_cfg(bytes.clone(), &4).expect("as written"), votes());
        assert!(Votes::decode_cfg(bytes.clone(), &2).is_err(), "more votes than validators");
        for end in 0..bytes.len() {
            assert!(Votes::decode_cfg(bytes.slice(..end), &4).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn certificates_name_each_validator_once_in_order() {
        let mut twice = votes();
        twice.0[1].validator = 0;
        assert!(Votes::decode_cfg(twice.encode(), &4).is_err());
        assert!(Votes::decode_cfg(Votes(Vec::new()).encode(), &4).is_err());
    }
}
