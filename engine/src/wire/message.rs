//! The table of frames (spec §2): one struct each, with the fields in the table's order and names.

use super::{
    Channel,
    frame::{FrameError, RawFrame, enclose},
    value::{
        AckStatus, Body, CancelReason, GoodbyeReason, JobIds, Labels, Percent, Reason,
        RejectReason, Reveals, Role, StatusText, Text,
    },
};
use crate::{
    primitives::{
        Address, Hash, Height, PublicKey, Signature,
        codec::{self, Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
    },
    record,
};

/// The record in the payload of one type of frame.
pub trait Message: Encode + Decode {
    const KIND: u8;
    /// The name in the table, which is part of the signature's domain.
    const NAME: &'static str;
    const CHANNEL: Channel;

    fn to_frame(&self) -> Vec<u8> {
        enclose(Self::KIND, &codec::to_vec(self))
    }

    /// Decodes the record in a frame's payload, which must be in canonical form.
    fn from_payload(payload: &[u8]) -> Result<Self, FrameError> {
        codec::from_slice(payload)
            .map_err(|source| FrameError::Payload { frame: Self::NAME, source })
    }
}

macro_rules! message {
    ($kind:literal $channel:ident $name:ident) => {
        impl Message for $name {
            const KIND: u8 = $kind;
            const NAME: &'static str = stringify!($name);
            const CHANNEL: Channel = Channel::$channel;
        }
    };
    ($kind:literal $channel:ident $name:ident { $($field:ident),* $(,)? }) => {
        record!($name { $($field),* });
        message!($kind $channel $name);
    };
}

/// The first frame of each side on a connection; the runner sends first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The one that TLS agreed on, see [`heartbeat`](crate::session::heartbeat).
    pub version: u16,
    /// The sender's on-chain key, to which its certificate is bound.
    pub party_pubkey: PublicKey,
    pub party_role: Role,
    pub block_height: Height,
    /// The challenge that the peer signs in its `HelloAck`; fresh for each connection.
    pub challenge_nonce: [u8; 32],
}
message!(0x01 Control Hello { version, party_pubkey, party_role, block_height, challenge_nonce });

/// The answer to a `Hello`: proves that its sender holds the key it named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloAck {
    pub version: u16,
    pub party_pubkey: PublicKey,
    pub party_role: Role,
    /// The signature over the nonce of the peer's `Hello`.
    pub signed_challenge: Signature,
    pub block_height: Height,
}
message!(0x02 Control HelloAck {
    version, party_pubkey, party_role, signed_challenge, block_height
});

/// Shows that a runner is alive at a height it has observed: at most one per block and connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatPing {
    pub block_height: Height,
    /// Strictly increasing within a connection.
    pub nonce: u64,
    /// The runner's signature over height and nonce.
    pub signed: Signature,
}
message!(0x10 Control HeartbeatPing { block_height, nonce, signed });

/// A validator's head, announced to a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatPong {
    pub block_height: Height,
    /// The validator's signature over the height and the runner's key.
    pub validator_signed: Signature,
}
message!(0x11 Control HeartbeatPong { block_height, validator_signed });

/// [`HeartbeatPing`] in version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedPing {
    pub block_height: Height,
    /// Strictly increasing within a connection.
    pub nonce: u64,
    /// The MAC of height and nonce under the connection's key.
    pub mac: Hash,
}
message!(0x15 Control KeyedPing { block_height, nonce, mac });

/// [`HeartbeatPong`] in version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedPong {
    pub block_height: Height,
    /// The MAC of the height under the connection's key.
    pub mac: Hash,
}
message!(0x16 Control KeyedPong { block_height, mac });

/// A runner's load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackpressureSignal {
    pub active_jobs: u32,
    pub max_concurrent: u32,
    /// Whether it takes more jobs; if not, it is not present (spec §3).
    pub accepting_new: bool,
    pub reason: Option<Text>,
}
message!(0x12 Control BackpressureSignal { active_jobs, max_concurrent, accepting_new, reason });

record! {
    /// A temporary change of what a runner can serve, relative to its registration; advisory.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CapabilityDelta {
        pub block_height: Height,
        pub added_capabilities: Labels,
        /// Not served until added again.
        pub removed_capabilities: Labels,
        pub added_entitlements: Labels,
        /// Not held until added again.
        pub removed_entitlements: Labels,
        /// The runner's signature over all fields above.
        pub signed: Signature,
    }
}
message!(0x13 Control CapabilityDelta);

/// The contents of a [`CapabilityDelta`], before it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapabilityChange {
    pub added_capabilities: Labels,
    pub removed_capabilities: Labels,
    pub added_entitlements: Labels,
    pub removed_entitlements: Labels,
}

/// The jobs that a runner works on or has a result of: sent once, when the connection is
/// established. The validator cancels those that the chain no longer assigns to the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenJobs {
    pub job_ids: JobIds,
}
message!(0x14 Control OpenJobs { job_ids });

/// A job for the runner, the first frame of a stream that the validator opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAssignment {
    /// keccak256(submitter ‖ nonce\[8 BE\] ‖ keccak256(`job_spec`)).
    pub job_id: Hash,
    /// The account or actor that submitted it.
    pub submitter: Address,
    pub nonce: u64,
    /// In canonical form.
    pub job_spec: Body,
    /// The block that assigned it.
    pub block_height: Height,
    /// The last block that may include the result. It identifies the attempt at the job.
    pub deadline_block: Height,
    /// The validator's signature over all fields above and the runner's key.
    pub validator_signed: Signature,
}
message!(0x20 Job JobAssignment {
    job_id, submitter, nonce, job_spec, block_height, deadline_block, validator_signed
});

impl JobAssignment {
    /// Whether `job_id` is the id for this specification, submitter and nonce.
    pub fn is_of_its_job(&self) -> bool {
        let spec = keccak256(&[self.job_spec.as_bytes()]);
        let id = keccak256(&[&self.submitter.0, &self.nonce.to_be_bytes(), &spec.0]);
        id == self.job_id
    }
}

/// Whether the runner takes an assignment. On the wire `status` is `accepted`, `duplicate` or
/// `reject`, and `reason` is present only with `reject`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAck {
    pub job_id: Hash,
    pub deadline_block: Height,
    pub status: AckStatus,
    /// The runner's signature over job, attempt and status. A rejection is evidence on the chain.
    pub signed: Signature,
}
message!(0x21 Job JobAck);

struct JobAckRecord {
    job_id: Hash,
    deadline_block: Height,
    status: StatusText,
    reason: Option<RejectReason>,
    signed: Signature,
}
record!(JobAckRecord { job_id, deadline_block, status, reason, signed });

impl Encode for JobAck {
    fn encode(&self, w: &mut Writer) {
        let (status, reason) = match self.status {
            AckStatus::Accepted => (StatusText::Accepted, None),
            AckStatus::Duplicate => (StatusText::Duplicate, None),
            AckStatus::Reject(reason) => (StatusText::Reject, Some(reason)),
        };
        let Self { job_id, deadline_block, signed, .. } = *self;
        JobAckRecord { job_id, deadline_block, status, reason, signed }.encode(w);
    }
}

impl Decode for JobAck {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let JobAckRecord { job_id, deadline_block, status, reason, signed } =
            JobAckRecord::decode(r)?;
        let status = match (status, reason) {
            (StatusText::Accepted, None) => AckStatus::Accepted,
            (StatusText::Duplicate, None) => AckStatus::Duplicate,
            (StatusText::Reject, Some(reason)) => AckStatus::Reject(reason),
            _ => return Err(DecodeError::Invalid("`reject` needs a reason, other statuses none")),
        };
        Ok(Self { job_id, deadline_block, status, signed })
    }
}

/// Progress of an accepted job; informational.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProgress {
    pub job_id: Hash,
    pub fraction: Percent,
    pub detail: Option<Text>,
}
message!(0x22 Job JobProgress { job_id, fraction, detail });

/// A job's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    pub job_id: Hash,
    pub result_data: Body,
    /// The runner's signature over the job and the result's hash.
    pub runner_signed: Signature,
}
message!(0x23 Job JobResult { job_id, result_data, runner_signed });

/// The chain no longer assigns the job to the runner. On the stream of the assignment, or the first
/// frame of a stream that the validator opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCancel {
    pub job_id: Hash,
    /// The last block of the attempt: this attempt and earlier ones are over.
    pub deadline_block: Height,
    pub reason: CancelReason,
    /// The validator's signature over job, attempt and reason.
    pub validator_signed: Signature,
}
message!(0x24 Job JobCancel { job_id, deadline_block, reason, validator_signed });

/// A proof that the chain assigns the job to the runner, on the stream of an assignment that has
/// not been answered. It helps a runner that is connected to too few of its validators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProof {
    pub job_id: Hash,
    /// A [`StateProof`](crate::chain::StateProof) of the job.
    pub proof: Body,
}
message!(0x25 Job JobProof { job_id, proof });

/// Work for an agent, unknown to the chain: the first frame of a stream that a validator opens. The
/// runner answers and works as for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// keccak256("cowboy/errand/v1" ‖ agent's key ‖ label ‖ keccak256(specification)): never the id
    /// of a job. All other frames on the stream use it as `job_id`.
    pub errand_id: Hash,
    /// Runners refuse errands of agents that their operator has not named.
    pub agent_pubkey: PublicKey,
    /// Unique per errand.
    pub label: Hash,
    /// The work: the canonical form of a job's specification.
    pub errand_spec: Body,
    /// The runner refuses the errand if its head is higher, and abandons it when its head passes
    /// it.
    pub deadline_block: Height,
    /// The agent's signature over errand, deadline and the runner's key.
    pub agent_signed: Signature,
}
message!(0x26 Job Errand {
    errand_id, agent_pubkey, label, errand_spec, deadline_block, agent_signed
});

impl Errand {
    pub fn id(agent: &PublicKey, label: &Hash, spec: &Body) -> Hash {
        let spec = keccak256(&[spec.as_bytes()]);
        keccak256(&[b"cowboy/errand/v1", agent.as_bytes(), &label.0, &spec.0])
    }

    pub fn has_its_id(&self) -> bool {
        self.errand_id == Self::id(&self.agent_pubkey, &self.label, &self.errand_spec)
    }
}

/// A committee's runner announces that it has a result, without showing it (spec jobs.md §5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommit {
    pub job_id: Hash,
    pub deadline_block: Height,
    /// The [`commitment`](super::commitment) to the result that the runner will reveal.
    pub commitment: Hash,
    /// The runner's signature over job, deadline and commitment.
    pub runner_signed: Signature,
}
message!(0x80 Job JobCommit { job_id, deadline_block, commitment, runner_signed });

/// A request to show a result after a committee has committed. The first frame of a stream that the
/// validator opens; the answer is the runner's [`JobResult`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReveal {
    pub job_id: Hash,
    /// The validator's signature over the job.
    pub validator_signed: Signature,
}
message!(0x81 Job JobReveal { job_id, validator_signed });

/// A request to a committee's aggregator to sign all results. The first frame of a stream that the
/// validator opens; the answer is a [`JobAggregated`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAggregate {
    pub job_id: Hash,
    /// The results of the runners that committed, in the committee's order.
    pub reveals: Reveals,
    /// The validator's signature over job and [`reveals_digest`](super::reveals_digest).
    pub validator_signed: Signature,
}
message!(0x82 Job JobAggregate { job_id, reveals, validator_signed });

/// The aggregator confirms that each result of a [`JobAggregate`] is from its runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAggregated {
    pub job_id: Hash,
    /// The aggregator's signature over job and [`reveals_digest`](super::reveals_digest).
    pub signed: Signature,
}
message!(0x83 Job JobAggregated { job_id, signed });

/// The runner cannot do the job, so there will be no result (spec jobs.md §7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFailure {
    pub job_id: Hash,
    pub reason: Reason,
    /// The runner's signature over job and reason.
    pub runner_signed: Signature,
}
message!(0x84 Job JobFailure { job_id, reason, runner_signed });

/// The last frame of a side, which then ends the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goodbye {
    pub reason: GoodbyeReason,
}
message!(0xf0 Control Goodbye { reason });

macro_rules! frames {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($frame:ident),)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($variant($frame),)*
        }

        impl $name {
            /// Decodes a frame of a known type; `None` for any other.
            fn known(frame: &RawFrame) -> Option<Result<Self, FrameError>> {
                Some(match frame.kind() {
                    $($frame::KIND => $frame::from_payload(frame.payload()).map(Self::$variant),)*
                    _ => return None,
                })
            }
        }
    };
}

frames! {
    /// A frame of the control stream.
    Control {
        Hello(Hello),
        HelloAck(HelloAck),
        Ping(HeartbeatPing),
        Pong(HeartbeatPong),
        KeyedPing(KeyedPing),
        KeyedPong(KeyedPong),
        Backpressure(BackpressureSignal),
        Capabilities(CapabilityDelta),
        OpenJobs(OpenJobs),
        Goodbye(Goodbye),
    }
}

impl Control {
    pub fn decode(frame: &RawFrame) -> Result<Self, FrameError> {
        let (kind, channel) = (frame.kind(), Channel::Control);
        Self::known(frame).unwrap_or(Err(FrameError::UnexpectedType { kind, channel }))
    }
}

frames! {
    /// A frame of a job stream.
    JobFrame {
        Assignment(JobAssignment),
        Ack(JobAck),
        Progress(JobProgress),
        Result(JobResult),
        Cancel(JobCancel),
        Proof(JobProof),
        Errand(Errand),
        Commit(JobCommit),
        Reveal(JobReveal),
        Aggregate(JobAggregate),
        Aggregated(JobAggregated),
        Failure(JobFailure),
    }
}

impl JobFrame {
    /// The first type on job streams that receivers ignore if they do not know it. The frames of
    /// committees and of failed work were added later and are in this range.
    pub const EXTENSIONS: u8 = 0x80;

    pub const fn job_id(&self) -> Hash {
        match self {
            Self::Assignment(frame) => frame.job_id,
            Self::Ack(frame) => frame.job_id,
            Self::Progress(frame) => frame.job_id,
            Self::Result(frame) => frame.job_id,
            Self::Cancel(frame) => frame.job_id,
            Self::Proof(frame) => frame.job_id,
            Self::Errand(frame) => frame.errand_id,
            Self::Commit(frame) => frame.job_id,
            Self::Reveal(frame) => frame.job_id,
            Self::Aggregate(frame) => frame.job_id,
            Self::Aggregated(frame) => frame.job_id,
            Self::Failure(frame) => frame.job_id,
        }
    }

    /// Decodes a frame of a job stream; `None` for an unknown extension, which is ignored.
    pub fn decode(frame: &RawFrame) -> Result<Option<Self>, FrameError> {
        match (Self::known(frame), frame.kind()) {
            (Some(known), _) => known.map(Some),
            (None, Self::EXTENSIONS..) => Ok(None),
            (None, kind) => Err(FrameError::UnexpectedType { kind, channel: Channel::Job }),
        }
    }
}
