//! secp256k1 identities: keys, recoverable signatures over keccak256 digests.

use super::{
    Address, Hash,
    codec::{Decode, DecodeError, Encode, Reader, Writer, transparent},
    hash::hex_text,
    keccak256,
};
use secp256k1::{
    Keypair, Message, ecdsa,
    ecdsa::{RecoverableSignature, RecoveryId},
};
use std::{cmp::Ordering, fmt, hash};

mod recovered;

/// The reason why bytes are not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("not a compressed secp256k1 public key (33 bytes, on the curve)")]
    PublicKey,
    #[error("not a secp256k1 secret key (32 bytes, neither zero nor beyond the order)")]
    SecretKey,
}

/// A public key on the curve, kept both compressed and parsed: verification never parses.
#[derive(Clone)]
pub struct PublicKey {
    compressed: [u8; 33],
    parsed: secp256k1::PublicKey,
}

impl PublicKey {
    /// Parses a compressed point (33 bytes).
    pub fn from_bytes(bytes: &[u8; 33]) -> Result<Self, KeyError> {
        secp256k1::PublicKey::from_byte_array_compressed(*bytes)
            .map(|parsed| Self { compressed: *bytes, parsed })
            .map_err(|_| KeyError::PublicKey)
    }

    fn from_parsed(parsed: secp256k1::PublicKey) -> Self {
        Self { compressed: parsed.serialize(), parsed }
    }

    pub const fn as_bytes(&self) -> &[u8; 33] {
        &self.compressed
    }

    /// The account this key controls.
    pub fn address(&self) -> Address {
        Address::of_digest(&keccak256(&[&self.parsed.serialize_uncompressed()[1..]]))
    }

    pub fn verify(&self, digest: &Hash, signature: &Signature) -> bool {
        signature.parse().is_some_and(|signature| {
            ecdsa::verify(&signature.to_standard(), message(digest), &self.parsed).is_ok()
        })
    }

    /// [`Self::verify`] for a signature that goes onto the chain, which every validator checks
    /// several times: it costs one recovery per process, see [`Signature::signer`].
    pub fn verify_shared(&self, digest: &Hash, signature: &Signature) -> bool {
        // A key that is not recovered may still have signed: only recovery depends on v.
        signature.signer(digest).is_some_and(|signer| signer == *self)
            || self.verify(digest, signature)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.compressed == other.compressed
    }
}

impl Eq for PublicKey {}

impl PartialOrd for PublicKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PublicKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compressed.cmp(&other.compressed)
    }
}

impl hash::Hash for PublicKey {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.compressed.hash(state);
    }
}

hex_text!(PublicKey, as_bytes);

impl Encode for PublicKey {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.compressed);
    }
}

impl Decode for PublicKey {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::from_bytes(&r.array()?).map_err(|_| DecodeError::Invalid("public key off the curve"))
    }
}

/// A secret key. It is never printed, encoded or compared.
#[derive(Clone)]
pub struct SecretKey(Keypair);

impl SecretKey {
    /// Parses a scalar (32 bytes, big-endian).
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        Keypair::from_secret_bytes(*bytes).map(Self).map_err(|_| KeyError::SecretKey)
    }

    /// The key of `name` on the devnet with this `seed`: keccak256(seed ‖ "/" ‖ name), hashed again
    /// until it is a scalar (once in 2^128 it is not).
    pub fn derive(seed: &[u8], name: &str) -> Self {
        let mut digest = keccak256(&[seed, b"/", name.as_bytes()]);
        loop {
            match Self::from_bytes(&digest.0) {
                Ok(key) => return key,
                Err(_) => digest = keccak256(&[&digest.0]),
            }
        }
    }

    /// The scalar, for a key file that only its owner reads.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_secret_bytes()
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey::from_parsed(self.0.public_key())
    }

    pub fn address(&self) -> Address {
        self.public_key().address()
    }

    /// A deterministic (RFC 6979) low-s recoverable signature over `digest`.
    pub fn sign(&self, digest: &Hash) -> Signature {
        let secret = self.0.secret_key();
        let signature = RecoverableSignature::sign_ecdsa_recoverable(message(digest), &secret);
        let (recovery, rs) = signature.serialize_compact();
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&rs);
        bytes[64] = recovery.to_u8();
        Signature(bytes)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// r ‖ s ‖ v: 65 bytes, low s, v 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 65]);

impl Signature {
    pub const fn as_bytes(&self) -> &[u8; 65] {
        &self.0
    }

    /// The key that signed `digest`; `None` if the bytes are not a canonical signature.
    pub fn recover(&self, digest: &Hash) -> Option<PublicKey> {
        self.parse()?.recover_ecdsa(message(digest)).ok().map(PublicKey::from_parsed)
    }

    /// [`Self::recover`], remembered for the newest of these calls in this process.
    pub fn signer(&self, digest: &Hash) -> Option<PublicKey> {
        recovered::signer(digest, self)
    }

    /// `None` for a form that is not canonical: a signature has one spelling.
    fn parse(&self) -> Option<RecoverableSignature> {
        let recovery = match self.0[64] {
            0 => RecoveryId::Zero,
            1 => RecoveryId::One,
            _ => return None,
        };
        let signature = RecoverableSignature::from_compact(&self.0[..64], recovery).ok()?;
        let rs = signature.to_standard();
        let mut low = rs;
        low.normalize_s();
        (low == rs).then_some(signature)
    }
}

fn message(digest: &Hash) -> Message {
    Message::from_digest(digest.0)
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.0))
    }
}

transparent!(Signature);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_recovers_its_key_and_only_its_digest() {
        let key = SecretKey::derive(b"seed", "alice");
        let digest = keccak256(&[b"message"]);
        let signature = key.sign(&digest);
        assert_eq!(signature.recover(&digest), Some(key.public_key()));
        assert!(key.public_key().verify(&digest, &signature));
        let other = keccak256(&[b"massage"]);
        assert_ne!(signature.recover(&other), Some(key.public_key()));
        assert!(!key.public_key().verify(&other, &signature));
    }

    #[test]
    fn a_high_s_or_odd_v_is_refused() {
        let key = SecretKey::derive(b"seed", "alice");
        let digest = keccak256(&[b"message"]);
        let mut signature = key.sign(&digest);
        signature.0[64] |= 2;
        assert_eq!(signature.recover(&digest), None);
        assert!(!key.public_key().verify(&digest, &signature));
        let mut high = key.sign(&digest);
        // s -> n - s is the same signature in its other, malleable form.
        let order = hex::decode("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
            .unwrap();
        let mut borrow = 0i16;
        for i in (0..32).rev() {
            let d = i16::from(order[i]) - i16::from(high.0[32 + i]) - borrow;
            borrow = i16::from(d < 0);
            high.0[32 + i] = d.rem_euclid(256) as u8;
        }
        assert_eq!(high.recover(&digest), None);
        assert!(!key.public_key().verify(&digest, &high));
    }

    #[test]
    fn a_shared_check_gives_what_a_check_of_its_own_gives() {
        let key = SecretKey::derive(b"seed", "shared");
        let (own, other) = (key.public_key(), SecretKey::derive(b"seed", "other").public_key());
        let (digest, massage) = (keccak256(&[b"shared"]), keccak256(&[b"massage"]));
        let signature = key.sign(&digest);
        let mut flipped = signature;
        flipped.0[64] ^= 1;
        let mut malformed = signature;
        malformed.0[64] |= 2;
        let mut zero = signature;
        zero.0[..32].fill(0);
        // Each twice: from the first time on it is remembered.
        for _ in 0..2 {
            for signature in [signature, flipped, malformed, zero] {
                for (key, digest) in [(&own, &digest), (&other, &digest), (&own, &massage)] {
                    let expected = key.verify(digest, &signature);
                    assert_eq!(key.verify_shared(digest, &signature), expected);
                }
                assert_eq!(signature.signer(&digest), signature.recover(&digest));
            }
        }
        assert!(own.verify_shared(&digest, &flipped), "v does not count");
    }

    #[test]
    fn secrets_do_not_print() {
        let key = SecretKey::derive(b"seed", "alice");
        assert_eq!(format!("{key:?}"), "SecretKey(..)");
    }
}
