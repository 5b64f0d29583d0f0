//! What a submitter asks for, and what the chain records of it (spec jobs.md §2).

use crate::{
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer, to_vec},
        keccak256,
    },
    record,
    registry::JobKind,
};
use std::sync::Arc;

/// The most a result may hold: one block carries it as a transaction, with room to spare
/// (a block holds 1,000,000 cells, a byte is a cell).
pub const MAX_RETURN_BYTES: u32 = 512 * 1024;
/// The longest a job may wait for its result, in blocks: about 12 hours at 1 s.
pub const MAX_TIMEOUT_BLOCKS: u64 = 43_200;
/// The most memory a job may ask for, in MiB.
pub const MAX_MEMORY_MB: u32 = 65_536;

/// The work itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// An HTTP request.
    Http(HttpWork),
    /// A command in a fresh directory; its standard output is the result.
    Custom(CommandWork),
}

impl Work {
    /// The kind that runners register for and MRU records are kept by.
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Http(_) => JobKind::Http,
            Self::Custom(_) => JobKind::Custom,
        }
    }
}

/// Parameters of an `http` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpWork {
    /// GET, POST, …
    pub method: String,
    /// http or https.
    pub url: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Option<Vec<u8>>,
    /// A JSON pointer (RFC 6901) into the answer; what it points at is the result.
    pub pointer: Option<String>,
}
record!(HttpWork { method, url, headers, body, pointer });

/// Parameters of a `custom` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWork {
    /// The program, found through the runner's PATH.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment, beside the runner's PATH.
    pub env: Vec<(String, String)>,
    /// Standard input.
    pub stdin: Option<Vec<u8>>,
}
record!(CommandWork { program, args, env, stdin });

impl Encode for Work {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        self.kind().encode(w);
        match self {
            Self::Http(work) => work.encode(w),
            Self::Custom(work) => work.encode(w),
        }
    }
}

impl Decode for Work {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.list(2)? != 2 {
            return Err(DecodeError::Invalid("work is a pair of kind and parameters"));
        }
        match JobKind::decode(r)? {
            JobKind::Http => Decode::decode(r).map(Self::Http),
            JobKind::Custom => Decode::decode(r).map(Self::Custom),
            _ => Err(DecodeError::Invalid("no work of this kind can be submitted")),
        }
    }
}

/// What the work may take and give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Longest result, in bytes.
    pub max_return_bytes: u32,
    /// How long it may run, in ms.
    pub expected_execution_ms: u64,
    /// What the result is: `json`, `text` or `bytes`; for readers, nothing checks it.
    pub data_format: String,
    /// Memory, in MiB.
    pub max_memory_mb: u32,
}
record!(Bounds { max_return_bytes, expected_execution_ms, data_format, max_memory_mb });

/// How a result becomes the verified one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationMode {
    /// The one runner's result is taken.
    None,
    /// The one runner's result is taken; a wrong one is slashable.
    EconomicBond,
}

impl VerificationMode {
    /// The mode's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EconomicBond => "economic_bond",
        }
    }
}

impl Encode for VerificationMode {
    fn encode(&self, w: &mut Writer) {
        w.text(self.name());
    }
}

impl Decode for VerificationMode {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.text(32)? {
            "none" => Ok(Self::None),
            "economic_bond" => Ok(Self::EconomicBond),
            _ => Err(DecodeError::Invalid("unknown verification mode")),
        }
    }
}

/// Verification asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// How.
    pub mode: VerificationMode,
    /// M, the size of the committee. Both modes here take exactly 1.
    pub runners: u32,
}
record!(Verification { mode, runners });

/// Where the verified result is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// The actor.
    pub actor: Address,
    /// Its handler.
    pub handler: String,
}
record!(Callback { actor, handler });

/// A job as its submitter signs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// The work.
    pub work: Work,
    /// Its limits.
    pub bounds: Bounds,
    /// How its result is verified.
    pub verification: Verification,
    /// The most the work may cost, held in escrow.
    pub max_price: Wei,
    /// What the runner gets on top, held in escrow.
    pub tip: Wei,
    /// The job fails where it has no verified result this many blocks after its submission.
    pub timeout_blocks: u64,
    /// Who is told of the result.
    pub callback: Option<Callback>,
    /// Only members of this pool are candidates.
    pub required_runner_pool: Option<String>,
    /// Only runners in a trusted execution environment are candidates.
    pub tee_required: bool,
}
record!(JobSpec {
    work,
    bounds,
    verification,
    max_price,
    tip,
    timeout_blocks,
    callback,
    required_runner_pool,
    tee_required,
});

/// Which field of a spec cannot stand, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("InvalidJobSpec: {field} {problem}")]
pub struct SpecError {
    /// The field's name.
    pub field: &'static str,
    /// What is wrong and what would do.
    pub problem: String,
}

impl JobSpec {
    /// Checks every rule that needs the spec alone.
    pub fn check(&self) -> Result<(), SpecError> {
        let refuse = |field, problem: String| Err(SpecError { field, problem });
        let within = |field, got: u64, most: u64| {
            if (1..=most).contains(&got) {
                return Ok(());
            }
            refuse(field, format!("is {got}; it must lie in 1..={most}"))
        };
        within(
            "bounds.max_return_bytes",
            u64::from(self.bounds.max_return_bytes),
            u64::from(MAX_RETURN_BYTES),
        )?;
        within("bounds.expected_execution_ms", self.bounds.expected_execution_ms, 86_400_000)?;
        within(
            "bounds.max_memory_mb",
            u64::from(self.bounds.max_memory_mb),
            u64::from(MAX_MEMORY_MB),
        )?;
        if !matches!(self.bounds.data_format.as_str(), "json" | "text" | "bytes") {
            let got = &self.bounds.data_format;
            return refuse(
                "bounds.data_format",
                format!("is `{got}`; expected json, text or bytes"),
            );
        }
        if self.max_price.is_zero() {
            return refuse("max_price", "is 0; runners work for money".into());
        }
        if self.max_price.checked_add(self.tip).is_none() {
            return refuse("tip", "and max_price together are beyond any balance".into());
        }
        within("timeout_blocks", self.timeout_blocks, MAX_TIMEOUT_BLOCKS)?;
        if self.verification.runners != 1 {
            let (got, mode) = (self.verification.runners, self.verification.mode.name());
            return refuse(
                "verification.runners",
                format!("is {got}; mode {mode} takes exactly 1"),
            );
        }
        if self.callback.is_some() {
            return refuse("callback", "names an actor, and this chain has none yet".into());
        }
        match &self.work {
            Work::Http(http) => {
                if !http.url.starts_with("http://") && !http.url.starts_with("https://") {
                    return refuse(
                        "work.url",
                        format!("is `{}`; expected http:// or https://", http.url),
                    );
                }
                if http.method.is_empty() {
                    return refuse("work.method", "is empty; expected GET, POST, …".into());
                }
            }
            Work::Custom(command) => {
                if command.program.is_empty() {
                    return refuse("work.program", "is empty; expected a command".into());
                }
            }
        }
        Ok(())
    }

    /// What escrow holds for the job: its price at most, and the tip.
    pub const fn escrow(&self) -> Wei {
        self.max_price.saturating_add(self.tip)
    }

    /// keccak256(submitter ‖ nonce\[8 BE\] ‖ keccak256(canonical spec)).
    pub fn job_id(&self, submitter: &Address, nonce: u64) -> Hash {
        let spec = keccak256(&[&to_vec(self)]);
        keccak256(&[&submitter.0, &nonce.to_be_bytes(), &spec.0])
    }
}

/// Where a job stands. Every change is an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// Recorded; fewer candidates than it asks for, drawn again each block.
    Pending,
    /// A committee was drawn.
    Assigned(Assignment),
    /// A verified result is final.
    Verified(Assignment, Outcome),
    /// No result in time; the escrow went back.
    Failed(Option<Assignment>),
}

/// A draw that found a committee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The block that drew.
    pub height: Height,
    /// Its timestamp, from which the runner's time counts.
    pub timestamp_ms: u64,
    /// The draw's seed.
    pub seed: Hash,
    /// Root of the map from each candidate's address to its stake.
    pub candidates_root: Hash,
    /// Who was drawn, in draw order.
    pub committee: Vec<Address>,
}
record!(Assignment { height, timestamp_ms, seed, candidates_root, committee });

/// A final result. Its bytes are those of the transaction that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The block that made it final.
    pub height: Height,
    /// Whose result it is.
    pub runner: Address,
    /// keccak256 of the result.
    pub result_hash: Hash,
    /// What the runner was paid, tip included.
    pub paid: Wei,
}
record!(Outcome { height, runner, result_hash, paid });

impl JobStatus {
    /// The state's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Assigned(_) => "Assigned",
            Self::Verified(..) => "Verified",
            Self::Failed(_) => "Failed",
        }
    }

    /// The draw that stands, where there was one.
    pub const fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Pending => None,
            Self::Assigned(a) | Self::Verified(a, _) => Some(a),
            Self::Failed(a) => a.as_ref(),
        }
    }
}

impl Encode for JobStatus {
    fn encode(&self, w: &mut Writer) {
        match self {
            Self::Pending => {
                w.list(1);
                w.u64(0);
            }
            Self::Assigned(assignment) => {
                w.list(2);
                w.u64(1);
                assignment.encode(w);
            }
            Self::Verified(assignment, outcome) => {
                w.list(3);
                w.u64(2);
                assignment.encode(w);
                outcome.encode(w);
            }
            Self::Failed(None) => {
                w.list(1);
                w.u64(3);
            }
            Self::Failed(Some(assignment)) => {
                w.list(2);
                w.u64(3);
                assignment.encode(w);
            }
        }
    }
}

impl Decode for JobStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(3)?;
        match (r.u64()?, len) {
            (0, 1) => Ok(Self::Pending),
            (1, 2) => Decode::decode(r).map(Self::Assigned),
            (2, 3) => Ok(Self::Verified(Decode::decode(r)?, Decode::decode(r)?)),
            (3, 1) => Ok(Self::Failed(None)),
            (3, 2) => Ok(Self::Failed(Some(Decode::decode(r)?))),
            _ => Err(DecodeError::Invalid("unknown job status")),
        }
    }
}

/// A job as the dispatcher (0x02) keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What was asked for.
    pub spec: Arc<JobSpec>,
    /// By whom.
    pub submitter: Address,
    /// In which block.
    pub submitted_at: Height,
    /// Where it stands.
    pub status: JobStatus,
}
record!(Job { spec, submitter, submitted_at, status });

impl Job {
    /// The last block whose results count.
    pub fn deadline(&self) -> Height {
        self.submitted_at.after(self.spec.timeout_blocks)
    }
}
