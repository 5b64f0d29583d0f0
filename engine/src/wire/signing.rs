//! The contents of each signature (spec §2): keccak256(domain ‖ fields in order), where domain =
//! `cowboy-cip11/` ‖ frame name ‖ `/v1` ‖ chain id (8 bytes BE), integers are 8 bytes BE and byte
//! strings are unchanged.
//!
//! Every field of a digest has a fixed length, or is the last one, so that different contents never
//! have the same encoding. Decided where the table leaves it open: a text counts as its bytes, a
//! rejection's as `reject(<reason>)`; a list of names (in `CapabilityDelta`, which is signed whole)
//! counts as the keccak256 of its CBOR, a list of results as [`reveals_digest`].

use super::{
    AckStatus, Body, CancelReason, CapabilityChange, CapabilityDelta, Errand, HeartbeatPing,
    HeartbeatPong, HelloAck, JobAck, JobAggregate, JobAggregated, JobAssignment, JobCancel,
    JobCommit, JobFailure, JobResult, JobReveal, Labels, Message, Reason, RevealedResult, Reveals,
    Role,
};
use crate::primitives::{Address, Hash, Height, PublicKey, SecretKey, Signature, codec, keccak256};

fn digest<M: Message>(chain_id: u64, fields: &[&[u8]]) -> Hash {
    let chain_id = chain_id.to_be_bytes();
    let domain: [&[u8]; 4] = [b"cowboy-cip11/", M::NAME.as_bytes(), b"/v1", &chain_id];
    keccak256(&[&domain, fields].concat())
}

/// The commitment of a runner before it shows a result (spec jobs.md §5): keccak256 of the result
/// and of the signature in its [`JobResult`]. Only the runner can make that signature, so a copied
/// commitment can never be revealed.
pub fn commitment(result: &[u8], runner_signed: &Signature) -> Hash {
    keccak256(&[result, &runner_signed.0])
}

/// The digest of a committee's results, in their order, that signatures over them cover: keccak256
/// of each runner's address and the keccak256 of its result, one after the other.
pub fn reveals_digest<'a>(reveals: impl IntoIterator<Item = (Address, &'a [u8])>) -> Hash {
    let mut bytes = Vec::new();
    for (runner, result) in reveals {
        bytes.extend_from_slice(&runner.0);
        bytes.extend_from_slice(keccak256(&[result]).as_bytes());
    }
    keccak256(&[&bytes])
}

impl RevealedResult {
    /// The key is recovered from the signature, so that its last byte has to be correct too.
    pub fn verify(&self, chain_id: u64, job_id: &Hash) -> bool {
        let digest = JobResult::digest(chain_id, job_id, self.result_data.as_bytes());
        let signer = self.runner_signed.signer(&digest);
        signer.is_some_and(|key| key.address() == self.runner)
    }

    pub fn commitment(&self) -> Hash {
        commitment(self.result_data.as_bytes(), &self.runner_signed)
    }
}

impl Reveals {
    pub fn digest(&self) -> Hash {
        let reveals = self.as_slice().iter();
        reveals_digest(reveals.map(|reveal| (reveal.runner, reveal.result_data.as_bytes())))
    }
}

impl HelloAck {
    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        (version, party_role): (u16, Role),
        block_height: Height,
        challenge: &[u8; 32],
    ) -> Self {
        Self {
            version,
            party_pubkey: key.public_key(),
            party_role,
            signed_challenge: key.sign(&digest::<Self>(chain_id, &[challenge])),
            block_height,
        }
    }

    pub fn verify(&self, chain_id: u64, challenge: &[u8; 32]) -> bool {
        let digest = digest::<Self>(chain_id, &[challenge]);
        self.party_pubkey.verify(&digest, &self.signed_challenge)
    }
}

impl HeartbeatPing {
    fn digest(chain_id: u64, block_height: Height, nonce: u64) -> Hash {
        digest::<Self>(chain_id, &[&block_height.to_be_bytes(), &nonce.to_be_bytes()])
    }

    pub fn signed(chain_id: u64, key: &SecretKey, block_height: Height, nonce: u64) -> Self {
        let signed = key.sign(&Self::digest(chain_id, block_height, nonce));
        Self { block_height, nonce, signed }
    }

    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        runner.verify(&Self::digest(chain_id, self.block_height, self.nonce), &self.signed)
    }
}

impl HeartbeatPong {
    fn digest(chain_id: u64, block_height: Height, runner: &PublicKey) -> Hash {
        digest::<Self>(chain_id, &[&block_height.to_be_bytes(), runner.as_bytes()])
    }

    /// Valid only for `runner`.
    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        block_height: Height,
        runner: &PublicKey,
    ) -> Self {
        let validator_signed = key.sign(&Self::digest(chain_id, block_height, runner));
        Self { block_height, validator_signed }
    }

    pub fn verify(&self, chain_id: u64, validator: &PublicKey, runner: &PublicKey) -> bool {
        let digest = Self::digest(chain_id, self.block_height, runner);
        validator.verify(&digest, &self.validator_signed)
    }
}

impl CapabilityDelta {
    fn digest(&self, chain_id: u64) -> Hash {
        let list = |labels: &Labels| keccak256(&[&codec::to_vec(labels)]);
        digest::<Self>(
            chain_id,
            &[
                &self.block_height.to_be_bytes(),
                list(&self.added_capabilities).as_bytes(),
                list(&self.removed_capabilities).as_bytes(),
                list(&self.added_entitlements).as_bytes(),
                list(&self.removed_entitlements).as_bytes(),
            ],
        )
    }

    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        block_height: Height,
        change: CapabilityChange,
    ) -> Self {
        let unsigned = Self {
            block_height,
            added_capabilities: change.added_capabilities,
            removed_capabilities: change.removed_capabilities,
            added_entitlements: change.added_entitlements,
            removed_entitlements: change.removed_entitlements,
            signed: Signature([0; 65]),
        };
        Self { signed: key.sign(&unsigned.digest(chain_id)), ..unsigned }
    }

    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        runner.verify(&self.digest(chain_id), &self.signed)
    }
}

fn assignment_digest(chain_id: u64, assignment: &JobAssignment, runner: &PublicKey) -> Hash {
    let JobAssignment { job_id, job_spec, block_height, deadline_block, .. } = assignment;
    digest::<JobAssignment>(
        chain_id,
        &[
            job_id.as_bytes(),
            keccak256(&[job_spec.as_bytes()]).as_bytes(),
            &block_height.to_be_bytes(),
            &deadline_block.to_be_bytes(),
            runner.as_bytes(),
        ],
    )
}

impl JobAssignment {
    /// A validator's assignment to `runner`: `unsigned`, whose signature is ignored, signed by
    /// `key`. The signature covers submitter and nonce through `job_id`.
    pub fn signed(chain_id: u64, key: &SecretKey, runner: &PublicKey, unsigned: Self) -> Self {
        let validator_signed = key.sign(&assignment_digest(chain_id, &unsigned, runner));
        Self { validator_signed, ..unsigned }
    }

    pub fn verify(&self, chain_id: u64, validator: &PublicKey, runner: &PublicKey) -> bool {
        validator.verify(&assignment_digest(chain_id, self, runner), &self.validator_signed)
    }
}

impl Errand {
    fn digest(chain_id: u64, id: &Hash, deadline_block: Height, runner: &PublicKey) -> Hash {
        let deadline = deadline_block.to_be_bytes();
        digest::<Self>(chain_id, &[id.as_bytes(), &deadline, runner.as_bytes()])
    }

    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        runner: &PublicKey,
        (label, errand_spec, deadline_block): (Hash, Body, Height),
    ) -> Self {
        let agent_pubkey = key.public_key();
        let errand_id = Self::id(&agent_pubkey, &label, &errand_spec);
        let agent_signed = key.sign(&Self::digest(chain_id, &errand_id, deadline_block, runner));
        Self { errand_id, agent_pubkey, label, errand_spec, deadline_block, agent_signed }
    }

    /// Whether the agent that it names signed it for `runner`.
    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        let digest = Self::digest(chain_id, &self.errand_id, self.deadline_block, runner);
        self.agent_pubkey.verify(&digest, &self.agent_signed)
    }
}

impl JobAck {
    /// What the runner signs: the chain checks the same signature in `ReportRejection`.
    pub fn digest(chain_id: u64, job_id: &Hash, deadline_block: Height, status: AckStatus) -> Hash {
        let deadline = deadline_block.to_be_bytes();
        let status = status.to_string();
        digest::<Self>(chain_id, &[job_id.as_bytes(), &deadline, status.as_bytes()])
    }

    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        (job_id, deadline_block): (Hash, Height),
        status: AckStatus,
    ) -> Self {
        let signed = key.sign(&Self::digest(chain_id, &job_id, deadline_block, status));
        Self { job_id, deadline_block, status, signed }
    }

    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        let Self { job_id, deadline_block, status, signed } = self;
        runner.verify(&Self::digest(chain_id, job_id, *deadline_block, *status), signed)
    }
}

impl JobResult {
    /// What the runner signs: the chain checks the same signature in `JobResultSubmit`.
    pub fn digest(chain_id: u64, job_id: &Hash, result_data: &[u8]) -> Hash {
        digest::<Self>(chain_id, &[job_id.as_bytes(), keccak256(&[result_data]).as_bytes()])
    }

    pub fn signed(chain_id: u64, key: &SecretKey, job_id: Hash, result_data: Body) -> Self {
        let runner_signed = key.sign(&Self::digest(chain_id, &job_id, result_data.as_bytes()));
        Self { job_id, result_data, runner_signed }
    }

    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        let digest = Self::digest(chain_id, &self.job_id, self.result_data.as_bytes());
        runner.verify_shared(&digest, &self.runner_signed)
    }

    pub fn commitment(&self) -> Hash {
        commitment(self.result_data.as_bytes(), &self.runner_signed)
    }
}

impl JobCancel {
    fn digest(chain_id: u64, job_id: &Hash, deadline_block: Height, reason: CancelReason) -> Hash {
        let deadline = deadline_block.to_be_bytes();
        digest::<Self>(chain_id, &[job_id.as_bytes(), &deadline, reason.as_str().as_bytes()])
    }

    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        (job_id, deadline_block): (Hash, Height),
        reason: CancelReason,
    ) -> Self {
        let digest = Self::digest(chain_id, &job_id, deadline_block, reason);
        Self { job_id, deadline_block, reason, validator_signed: key.sign(&digest) }
    }

    pub fn verify(&self, chain_id: u64, validator: &PublicKey) -> bool {
        let Self { job_id, deadline_block, reason, validator_signed } = self;
        let digest = Self::digest(chain_id, job_id, *deadline_block, *reason);
        validator.verify(&digest, validator_signed)
    }
}

impl JobCommit {
    /// What the runner signs: the chain checks the same signature in `CommitResult` and
    /// `ReportEquivocation`.
    pub fn digest(chain_id: u64, job_id: &Hash, deadline_block: Height, commitment: &Hash) -> Hash {
        let deadline = deadline_block.to_be_bytes();
        digest::<Self>(chain_id, &[job_id.as_bytes(), &deadline, commitment.as_bytes()])
    }

    pub fn signed(
        chain_id: u64,
        key: &SecretKey,
        job_id: Hash,
        deadline_block: Height,
        commitment: Hash,
    ) -> Self {
        let digest = Self::digest(chain_id, &job_id, deadline_block, &commitment);
        Self { job_id, deadline_block, commitment, runner_signed: key.sign(&digest) }
    }

    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        let Self { job_id, deadline_block, commitment, runner_signed } = self;
        let digest = Self::digest(chain_id, job_id, *deadline_block, commitment);
        runner.verify_shared(&digest, runner_signed)
    }
}

impl JobReveal {
    fn digest(chain_id: u64, job_id: &Hash) -> Hash {
        digest::<Self>(chain_id, &[job_id.as_bytes()])
    }

    pub fn signed(chain_id: u64, key: &SecretKey, job_id: Hash) -> Self {
        Self { job_id, validator_signed: key.sign(&Self::digest(chain_id, &job_id)) }
    }

    pub fn verify(&self, chain_id: u64, validator: &PublicKey) -> bool {
        validator.verify(&Self::digest(chain_id, &self.job_id), &self.validator_signed)
    }
}

impl JobAggregate {
    fn digest(chain_id: u64, job_id: &Hash, reveals_digest: &Hash) -> Hash {
        digest::<Self>(chain_id, &[job_id.as_bytes(), reveals_digest.as_bytes()])
    }

    pub fn signed(chain_id: u64, key: &SecretKey, job_id: Hash, reveals: Reveals) -> Self {
        let validator_signed = key.sign(&Self::digest(chain_id, &job_id, &reveals.digest()));
        Self { job_id, reveals, validator_signed }
    }

    /// The runners' signatures are not checked.
    pub fn verify(&self, chain_id: u64, validator: &PublicKey) -> bool {
        let digest = Self::digest(chain_id, &self.job_id, &self.reveals.digest());
        validator.verify(&digest, &self.validator_signed)
    }
}

impl JobAggregated {
    /// What the aggregator signs: the chain checks the same signature in `RevealResults`.
    pub fn digest(chain_id: u64, job_id: &Hash, reveals_digest: &Hash) -> Hash {
        digest::<Self>(chain_id, &[job_id.as_bytes(), reveals_digest.as_bytes()])
    }

    pub fn signed(chain_id: u64, key: &SecretKey, job_id: Hash, reveals_digest: &Hash) -> Self {
        Self { job_id, signed: key.sign(&Self::digest(chain_id, &job_id, reveals_digest)) }
    }

    pub fn verify(&self, chain_id: u64, aggregator: &PublicKey, reveals_digest: &Hash) -> bool {
        let digest = Self::digest(chain_id, &self.job_id, reveals_digest);
        aggregator.verify_shared(&digest, &self.signed)
    }
}

impl JobFailure {
    /// What the runner signs: the chain checks the same signature in `ReportFailure`.
    pub fn digest(chain_id: u64, job_id: &Hash, reason: &Reason) -> Hash {
        digest::<Self>(chain_id, &[job_id.as_bytes(), reason.as_str().as_bytes()])
    }

    pub fn signed(chain_id: u64, key: &SecretKey, job_id: Hash, reason: Reason) -> Self {
        let runner_signed = key.sign(&Self::digest(chain_id, &job_id, &reason));
        Self { job_id, reason, runner_signed }
    }

    pub fn verify(&self, chain_id: u64, runner: &PublicKey) -> bool {
        let digest = Self::digest(chain_id, &self.job_id, &self.reason);
        runner.verify_shared(&digest, &self.runner_signed)
    }
}
