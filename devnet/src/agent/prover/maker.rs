//! A proof generator, in any process: Groth16 with the devnet's key, or `mock`.

use cowboy_engine::{
    chain::Scheme,
    primitives::Hash,
    proof::{PROOF_BYTES, Prover, ProvingKey, Statement, Witness, mock},
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secret {
    Groth16([u8; 32]),
    Mock([u8; 32]),
}

impl Secret {
    /// The secret for a chain with this scheme, whose keys were drawn from `seed`.
    pub(super) fn of(scheme: &Scheme, seed: [u8; 32]) -> Self {
        match scheme {
            Scheme::Groth16(_) => Self::Groth16(seed),
            Scheme::Mock(key) => Self::Mock(*key),
        }
    }
}

pub(super) enum Maker {
    Groth16(Box<Prover>),
    Mock([u8; 32]),
}

impl Maker {
    /// Prepares the generator, which takes about 500 ms.
    pub(super) fn new(secret: Secret) -> Self {
        match secret {
            Secret::Groth16(seed) => Self::Groth16(Box::new(Prover::new(ProvingKey::setup(&seed)))),
            Secret::Mock(key) => Self::Mock(key),
        }
    }

    /// The generator as bytes, which are as secret as the input of [`Maker::new`].
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (generator, bytes) = match self {
            Self::Groth16(prover) => (0, prover.to_tables()),
            Self::Mock(key) => (1, key.to_vec()),
        };
        [&[generator], &bytes[..]].concat()
    }

    /// Decodes a generator in a few milliseconds, trusting the bytes. `None` if the generator is
    /// unknown or the length is wrong.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (0, tables) => Some(Self::Groth16(Box::new(Prover::from_tables(tables)?))),
            (1, key) => Some(Self::Mock(key.try_into().ok()?)),
            _ => None,
        }
    }

    pub(super) fn key(&self) -> Hash {
        match self {
            Self::Groth16(prover) => prover.key().verifying_key().id(),
            Self::Mock(key) => Scheme::Mock(*key).key_id(),
        }
    }

    pub(super) fn prove(
        &self,
        task: &[u8; 32],
        agent: &[u8; 32],
        witness: &Witness,
        seed: &[u8; 32],
    ) -> [u8; PROOF_BYTES] {
        match self {
            Self::Groth16(prover) => prover.prove(task, agent, witness, seed).to_bytes(),
            Self::Mock(key) => mock::prove(key, &Statement::of(task, agent, witness)),
        }
    }
}
