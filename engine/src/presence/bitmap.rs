//! One bit per runner, in registry order.

use crate::{
    primitives::codec::{Decode, DecodeError, Encode, Reader, Writer},
    record,
};
use bitvec::{order::Lsb0, vec::BitVec};
use std::fmt;

/// Maximum number of runners in a vote. The vote's wire form reserves 512 bytes for the bitmap
/// (CONSENSUS, "It works without a fork"); bitmaps outside votes may be longer.
pub const CAPACITY: u32 = 4_096;

const _: () =
    assert!(CAPACITY.is_multiple_of(8), "the reserved bytes have no padding of their own");

/// Why bytes are not a bitmap of the given length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BitmapError {
    #[error("{got} bytes for {len} bits, expected {expected}")]
    Length { len: u32, got: usize, expected: usize },
    #[error("last byte {byte:#04x} sets bits beyond the {len} announced")]
    Padding { len: u32, byte: u8 },
}

/// An exact number of bits: bit i lies in byte i / 8 at position i % 8, least significant first;
/// the padding of the last byte is zero (spec connectivity.md §4).
///
/// Encoded as the record {bit_length, bytes}. Decoding rejects a wrong number of bytes and set
/// padding, and allocates no more than the bytes that are there.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    // Raw bytes after the last bit stay zero: constructors ensure it, and no method writes there.
    bits: BitVec<u8, Lsb0>,
}

impl Bitmap {
    pub fn new(len: u32) -> Self {
        Self::truncated(len, vec![0; bytes_for(len)])
    }

    /// Bit i is `bit(i)`, called in ascending order.
    pub fn from_fn(len: u32, mut bit: impl FnMut(u32) -> bool) -> Self {
        let mut bitmap = Self::new(len);
        for i in 0..len {
            if bit(i) {
                bitmap.set(i, true);
            }
        }
        bitmap
    }

    /// Decodes the form that [`as_bytes`](Self::as_bytes) returns for `len` bits.
    pub fn from_bytes(len: u32, bytes: &[u8]) -> Result<Self, BitmapError> {
        let expected = bytes_for(len);
        if bytes.len() != expected {
            return Err(BitmapError::Length { len, got: bytes.len(), expected });
        }
        match bytes.last() {
            Some(&byte) if byte & !last_byte_mask(len) != 0 => {
                Err(BitmapError::Padding { len, byte })
            }
            _ => Ok(Self::truncated(len, bytes.to_vec())),
        }
    }

    /// The first `len` bits of `bytes`; later bits are cleared.
    ///
    /// # Panics
    /// If `bytes` is not exactly as long as `len` bits take.
    pub(super) fn truncated(len: u32, mut bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), bytes_for(len), "bytes for {len} bits");
        if let Some(last) = bytes.last_mut() {
            *last &= last_byte_mask(len);
        }
        let mut bits = BitVec::from_vec(bytes);
        bits.truncate(len as usize);
        Self { bits }
    }

    pub fn len(&self) -> u32 {
        self.bits.len() as u32 // built from a u32 and never grown
    }

    /// Whether the bitmap has no bits at all, set or not.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Bit `at`; false beyond the end, as for a missing bit of a vote (§4).
    pub fn get(&self, at: u32) -> bool {
        self.bits.get(at as usize).is_some_and(|bit| *bit)
    }

    /// # Panics
    /// If `at` is beyond the end.
    pub fn set(&mut self, at: u32, bit: bool) {
        self.bits.set(at as usize, bit);
    }

    pub fn count_ones(&self) -> u32 {
        self.bits.count_ones() as u32 // no more than `len`
    }

    /// Positions of the set bits, ascending.
    pub fn ones(&self) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter_ones().map(|at| at as u32)
    }

    /// The bytes, ceil(len / 8) of them.
    pub fn as_bytes(&self) -> &[u8] {
        self.bits.as_raw_slice()
    }
}

const fn bytes_for(len: u32) -> usize {
    len.div_ceil(8) as usize
}

/// A mask of the bits of the last byte that count.
const fn last_byte_mask(len: u32) -> u8 {
    match len % 8 {
        0 => 0xff,
        used => (1 << used) - 1,
    }
}

/// Prints the length, then the positions of the set bits.
impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits ", self.len())?;
        f.debug_set().entries(self.ones()).finish()
    }
}

struct Form {
    bit_length: u32,
    bytes: Vec<u8>,
}
record!(Form { bit_length, bytes });

impl Encode for Bitmap {
    fn encode(&self, w: &mut Writer) {
        Form { bit_length: self.len(), bytes: self.as_bytes().to_vec() }.encode(w);
    }
}

impl Decode for Bitmap {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let Form { bit_length, bytes } = Form::decode(r)?;
        Self::from_bytes(bit_length, &bytes).map_err(|error| match error {
            BitmapError::Length { got, expected, .. } => DecodeError::WrongLength { got, expected },
            BitmapError::Padding { .. } => DecodeError::Invalid("bits set beyond the bitmap's end"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::codec::{from_slice, to_vec};
    use proptest::prelude::*;

    #[test]
    fn bits_stand_least_significant_first() {
        let bitmap = Bitmap::from_fn(11, |i| i == 0 || i == 3 || i == 10);
        assert_eq!(bitmap.as_bytes(), [0b0000_1001, 0b0000_0100]);
        assert_eq!(bitmap.ones().collect::<Vec<_>>(), [0, 3, 10]);
        assert_eq!((bitmap.len(), bitmap.count_ones()), (11, 3));
        assert!(bitmap.get(10) && !bitmap.get(9) && !bitmap.get(11) && !bitmap.get(u32::MAX));
        assert_eq!(format!("{bitmap:?}"), "11 bits {0, 3, 10}");
    }

    #[test]
    fn lengths_and_padding_are_checked() {
        let check = |len: u32, bytes: &[u8], expected: Result<(), BitmapError>| {
            assert_eq!(Bitmap::from_bytes(len, bytes).map(|_| ()), expected, "{len} {bytes:?}");
        };
        check(0, &[], Ok(()));
        check(8, &[0xff], Ok(()));
        check(9, &[0xff, 0x01], Ok(()));
        check(0, &[0], Err(BitmapError::Length { len: 0, got: 1, expected: 0 }));
        check(9, &[0xff], Err(BitmapError::Length { len: 9, got: 1, expected: 2 }));
        check(u32::MAX, &[], Err(BitmapError::Length { len: u32::MAX, got: 0, expected: 1 << 29 }));
        check(9, &[0, 0x02], Err(BitmapError::Padding { len: 9, byte: 0x02 }));
        check(7, &[0x80], Err(BitmapError::Padding { len: 7, byte: 0x80 }));
    }

    #[test]
    fn decoding_is_strict() {
        let bytes = to_vec(&Bitmap::from_fn(9, |i| i == 8));
        assert_eq!(hex::encode(&bytes), "a26562797465734200016a6269745f6c656e67746809");
        let check = |hex_text: &str, expected: DecodeError| {
            let bytes = hex::decode(hex_text).unwrap();
            assert_eq!(from_slice::<Bitmap>(&bytes), Err(expected), "{hex_text}");
        };
        check(
            "a2656279746573420002 6a6269745f6c656e67746809".replace(' ', "").as_str(),
            DecodeError::Invalid("bits set beyond the bitmap's end"),
        );
        // 2^32 - 1 bits announced but only two bytes present: rejected, and nothing allocated.
        check(
            "a26562797465734200016a6269745f6c656e6774681affffffff",
            DecodeError::WrongLength { got: 2, expected: 1 << 29 },
        );
        check("a1656279746573420001", DecodeError::MissingField("bit_length"));
    }

    #[test]
    #[should_panic(expected = "out of")]
    fn setting_beyond_the_end_panics() {
        Bitmap::new(9).set(9, true);
    }

    proptest! {
        #[test]
        fn every_bitmap_comes_back(bits in prop::collection::vec(any::<bool>(), 0..300)) {
            let bitmap = Bitmap::from_fn(bits.len() as u32, |i| bits[i as usize]);
            prop_assert_eq!(from_slice::<Bitmap>(&to_vec(&bitmap)), Ok(bitmap.clone()));
            let again = Bitmap::from_bytes(bitmap.len(), bitmap.as_bytes());
            prop_assert_eq!(again, Ok(bitmap.clone()));
            prop_assert_eq!(bitmap.count_ones() as usize, bits.iter().filter(|b| **b).count());
        }

        #[test]
        fn setting_a_bit_back_leaves_no_trace(len in 1u32..200, at in any::<u32>()) {
            let (zeros, at) = (Bitmap::new(len), at % len);
            let mut bitmap = zeros.clone();
            bitmap.set(at, true);
            prop_assert_ne!(&bitmap, &zeros);
            bitmap.set(at, false);
            prop_assert_eq!(bitmap.as_bytes(), zeros.as_bytes());
        }
    }
}
