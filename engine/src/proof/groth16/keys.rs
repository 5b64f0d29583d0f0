//! Keys: drawn from a seed, written as bytes, read back.
//!
//! A verifying key is 768 bytes: α of G1; β, γ and δ of G2; and a point of G1 for the number one
//! and for each public input. A proving key is the verifying key, then β and δ of G1, then five
//! lists of points, whose lengths follow from the circuit. Points are as in
//! [`crate::proof::points`]; only the lists of a proving key have points at infinity.

use super::quotient::{COEFFICIENTS, Reduction};
use crate::{
    primitives::{
        Hash,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
    },
    proof::{
        circuit::{Circuit, WITNESSES},
        points::{Point, PointError},
        statement::INPUTS,
    },
};
use ark_bn254::{Bn254, Fr, G1Affine, G1Projective, G2Affine};
use ark_ec::{
    AdditiveGroup as _, AffineRepr as _, CurveGroup as _,
    pairing::{Pairing, PairingOutput},
};
use ark_ff::{BigInteger as _, PrimeField as _};
use ark_groth16::Groth16;
use rand_chacha_03::{ChaCha20Rng, rand_core::SeedableRng as _};
use std::{fmt, sync::Arc};

/// Bytes of a verifying key.
pub const VERIFYING_KEY_BYTES: usize = 64 * (2 + INPUTS) + 128 * 3;
/// Bytes of a proving key, some 400 KiB.
pub const PROVING_KEY_BYTES: usize =
    VERIFYING_KEY_BYTES + 64 * (2 + 2 * COLUMNS + COEFFICIENTS + WITNESSES) + 128 * COLUMNS;
const _: () = assert!(VERIFYING_KEY_BYTES == 768, "as this module's documentation has it");

/// Columns of the circuit's matrices: one, the public inputs, the other variables.
const COLUMNS: usize = 1 + INPUTS + WITNESSES;

/// Separates a setup's numbers from others drawn from the same seed.
const SETUP_DOMAIN: &[u8] = b"cowboy/proof/setup/v1";

/// The key that checks proofs, with everything that can be computed from it in advance: some 40 KB,
/// which clones share.
#[derive(Clone)]
pub struct VerifyingKey(pub(super) Arc<Prepared>);

pub(super) struct Prepared {
    pub(super) key: ark_groth16::VerifyingKey<Bn254>,
    pub(super) alpha_beta: PairingOutput<Bn254>,
    /// −γ, ready to be paired.
    pub(super) minus_gamma: <Bn254 as Pairing>::G2Prepared,
    /// −δ, ready to be paired.
    pub(super) minus_delta: <Bn254 as Pairing>::G2Prepared,
    /// For each set of public inputs, as bits, the sum of their points.
    sums: [G1Affine; 1 << INPUTS],
}

impl VerifyingKey {
    fn of(key: ark_groth16::VerifyingKey<Bn254>) -> Self {
        let minus = |point: G2Affine| (-point.into_group()).into_affine().into();
        let sum = |set: usize| {
            let members = (0..INPUTS).filter(|input| set >> input & 1 == 1);
            members.map(|input| key.gamma_abc_g1[1 + input]).sum::<G1Projective>().into_affine()
        };
        Self(Arc::new(Prepared {
            alpha_beta: Bn254::pairing(key.alpha_g1, key.beta_g2),
            minus_gamma: minus(key.gamma_g2),
            minus_delta: minus(key.delta_g2),
            sums: std::array::from_fn(sum),
            key,
        }))
    }

    /// The point of the number one times `one`, plus each public input's point times the input,
    /// computed bit by bit for all of them at once.
    pub(super) fn combine(&self, one: Fr, inputs: [Fr; INPUTS]) -> G1Projective {
        let inputs = inputs.map(Fr::into_bigint);
        let mut point = G1Projective::ZERO;
        for bit in (0..Fr::MODULUS_BIT_SIZE as usize).rev() {
            point.double_in_place();
            let set = (0..INPUTS).fold(0, |set, i| set | usize::from(inputs[i].get_bit(bit)) << i);
            point += self.0.sums[set];
        }
        point + self.0.key.gamma_abc_g1[0] * one
    }

    pub fn arkworks(&self) -> &ark_groth16::VerifyingKey<Bn254> {
        &self.0.key
    }

    /// The hash of the key's canonical form, which identifies the key.
    pub fn id(&self) -> Hash {
        keccak256(&[&self.to_bytes()])
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(VERIFYING_KEY_BYTES);
        self.write(&mut bytes);
        bytes
    }

    pub fn from_bytes(bytes: &[u8; VERIFYING_KEY_BYTES]) -> Result<Self, PointError> {
        Self::read(&mut &bytes[..])
    }

    fn write(&self, to: &mut Vec<u8>) {
        let key = &self.0.key;
        key.alpha_g1.write(to);
        for point in [key.beta_g2, key.gamma_g2, key.delta_g2] {
            point.write(to);
        }
        for point in &key.gamma_abc_g1 {
            point.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Result<Self, PointError> {
        Ok(Self::of(ark_groth16::VerifyingKey {
            alpha_g1: Point::read(from)?,
            beta_g2: Point::read(from)?,
            gamma_g2: Point::read(from)?,
            delta_g2: Point::read(from)?,
            gamma_abc_g1: (0..=INPUTS).map(|_| Point::read(from)).collect::<Result<_, _>>()?,
        }))
    }
}

impl PartialEq for VerifyingKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for VerifyingKey {}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", self.id())
    }
}

impl Encode for VerifyingKey {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.to_bytes());
    }
}

impl Decode for VerifyingKey {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::from_bytes(&r.array()?).map_err(invalid)
    }
}

/// The key that makes proofs. Unfit for anything but a devnet: see [`super`].
#[derive(Clone, PartialEq)]
pub struct ProvingKey {
    pub(super) key: ark_groth16::ProvingKey<Bn254>,
    verifying: VerifyingKey,
}

impl ProvingKey {
    /// The keys that follow from a seed: the same keys on every machine. They are as secret as the
    /// seed.
    pub fn setup(seed: &[u8; 32]) -> Self {
        let mut numbers = ChaCha20Rng::from_seed(keccak256(&[SETUP_DOMAIN, seed]).0);
        let key = Groth16::<Bn254, Reduction>::generate_random_parameters_with_reduction(
            Circuit::blank(),
            &mut numbers,
        );
        let key = key.expect("a blank circuit asks for no values, and the field has its domain");
        Self { verifying: VerifyingKey::of(key.vk.clone()), key }
    }

    /// The key from arkworks's form; `None` if it has another number of public inputs.
    pub(super) fn of(key: ark_groth16::ProvingKey<Bn254>) -> Option<Self> {
        let fits = key.vk.gamma_abc_g1.len() == 1 + INPUTS;
        fits.then(|| Self { verifying: VerifyingKey::of(key.vk.clone()), key })
    }

    /// Its prover must be given our [`Reduction`].
    pub fn arkworks(&self) -> &ark_groth16::ProvingKey<Bn254> {
        &self.key
    }

    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.verifying
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PROVING_KEY_BYTES);
        let key = &self.key;
        self.verifying.write(&mut bytes);
        let lists = [&key.a_query, &key.b_g1_query, &key.h_query, &key.l_query];
        for point in [&key.beta_g1, &key.delta_g1].into_iter().chain(lists.into_iter().flatten()) {
            point.write(&mut bytes);
        }
        for point in &key.b_g2_query {
            point.write(&mut bytes);
        }
        bytes
    }

    /// Reads a key from its canonical form. It need not come from a setup, but then its verifying
    /// key refuses its proofs.
    pub fn from_bytes(bytes: &[u8; PROVING_KEY_BYTES]) -> Result<Self, PointError> {
        fn list<P: Point>(from: &mut &[u8], points: usize) -> Result<Vec<P>, PointError> {
            (0..points).map(|_| P::read_any(from)).collect()
        }
        let from = &mut &bytes[..];
        let verifying = VerifyingKey::read(from)?;
        let key = ark_groth16::ProvingKey {
            vk: verifying.0.key.clone(),
            beta_g1: Point::read(from)?,
            delta_g1: Point::read(from)?,
            a_query: list(from, COLUMNS)?,
            b_g1_query: list(from, COLUMNS)?,
            h_query: list(from, COEFFICIENTS)?,
            l_query: list(from, WITNESSES)?,
            b_g2_query: list(from, COLUMNS)?,
        };
        Ok(Self { key, verifying })
    }
}

/// Shows the key's id, because the lists would fill pages.
impl fmt::Debug for ProvingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProvingKey({})", self.verifying.id())
    }
}

impl Encode for ProvingKey {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.to_bytes());
    }
}

impl Decode for ProvingKey {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = r.bytes(PROVING_KEY_BYTES)?;
        let length = DecodeError::WrongLength { got: bytes.len(), expected: PROVING_KEY_BYTES };
        Self::from_bytes(bytes.try_into().map_err(|_| length)?).map_err(invalid)
    }
}

fn invalid(why: PointError) -> DecodeError {
    DecodeError::Invalid(match why {
        PointError::CutShort => "a key that is cut short",
        PointError::Coordinate => "a key with a coordinate not below the modulus",
        PointError::OffCurve => "a key with a point that is not on its curve",
        PointError::Subgroup => "a key with a point outside of its group",
        PointError::Infinity => "a key with a point at infinity",
    })
}
