//! What a submitter asks for (spec jobs.md §2).

pub use super::{
    state::{
        Assignment, Attempt, Cancellation, Closing, Commitment, Failure, FailureReason, Job,
        JobStatus, Outcome, Reported, Round, SlashReason, Withheld,
    },
    verification::{Agreement, Check, Similarity, Verification, VerificationMode},
    work::{CommandWork, Delivery, EthSendWork, HttpWork, LlmMessage, LlmWork, McpWork, Work},
};
use crate::{
    primitives::{Address, Hash, Wei, codec::to_vec, keccak256},
    record,
};
use std::borrow::Cow;

/// The most a result may hold: one block carries it as a transaction, with room to spare
/// (a block holds 1,000,000 cells, a byte is a cell).
pub const MAX_RETURN_BYTES: u32 = 512 * 1024;
/// The longest a job may wait for its result, in blocks: about 12 hours at 1 s.
pub const MAX_TIMEOUT_BLOCKS: u64 = 43_200;
/// The most memory a job may ask for, in MiB.
pub const MAX_MEMORY_MB: u32 = 65_536;

/// The shortest time of a job that a committee does, in blocks.
pub const MIN_COMMITTEE_TIMEOUT: u64 = 8;
/// A handler's name is at most as long as a key of an actor's store.
const MAX_HANDLER_BYTES: usize = 256;
/// What an aggregator gets, in thousandths of what runners are paid for their time.
const AGGREGATION_PERMILLE: u128 = 15;

/// What an aggregator gets on top of `gross`: 1.5 %, rounded down.
pub const fn aggregation(gross: Wei) -> Wei {
    let (whole, rest) = (gross.get() / 1_000, gross.get() % 1_000);
    Wei::new(whole * AGGREGATION_PERMILLE + rest * AGGREGATION_PERMILLE / 1_000)
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
    pub field: Cow<'static, str>,
    /// What is wrong and what would do.
    pub problem: String,
}

impl JobSpec {
    /// Checks every rule that needs the spec alone.
    pub fn check(&self) -> Result<(), SpecError> {
        let refuse =
            |field: &'static str, problem: String| Err(SpecError { field: field.into(), problem });
        let within = |field: &'static str, got: u64, most: u64| {
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
        if self.escrow() == Wei::new(u128::MAX) {
            return refuse("tip", "and max_price together are beyond any balance".into());
        }
        within("timeout_blocks", self.timeout_blocks, MAX_TIMEOUT_BLOCKS)?;
        if let Err((field, problem)) = self.verification.check() {
            return refuse(field, problem);
        }
        if self.is_committee() {
            let runners = self.verification.runners;
            if self.timeout_blocks < MIN_COMMITTEE_TIMEOUT {
                let got = self.timeout_blocks;
                let problem = format!(
                    "is {got}; a committee needs {MIN_COMMITTEE_TIMEOUT}: half of it to commit"
                );
                return refuse("timeout_blocks", problem);
            }
            let each = MAX_RETURN_BYTES / runners;
            if self.bounds.max_return_bytes > each {
                let got = self.bounds.max_return_bytes;
                let problem =
                    format!("is {got}; {runners} results are revealed together: {each} at most");
                return refuse("bounds.max_return_bytes", problem);
            }
        }
        if let Some(Callback { handler, .. }) = &self.callback
            && !(1..=MAX_HANDLER_BYTES).contains(&handler.len())
        {
            let got = handler.len();
            let problem = format!("has {got} bytes; it must have 1 to {MAX_HANDLER_BYTES}");
            return refuse("callback.handler", problem);
        }
        if let Err((field, problem)) = self.work.check() {
            return refuse(field, problem);
        }
        Ok(())
    }

    /// Whether several runners do the work, and commit before they reveal.
    pub const fn is_committee(&self) -> bool {
        self.verification.runners > 1
    }

    /// What escrow holds for the job: its price at most, the tip, and what an aggregator may get.
    pub const fn escrow(&self) -> Wei {
        let aggregation = match self.is_committee() {
            true => aggregation(self.max_price),
            false => Wei::ZERO,
        };
        self.max_price.saturating_add(self.tip).saturating_add(aggregation)
    }

    /// keccak256(submitter ‖ nonce\[8 BE\] ‖ keccak256(canonical spec)).
    pub fn job_id(&self, submitter: &Address, nonce: u64) -> Hash {
        let spec = keccak256(&[&to_vec(self)]);
        keccak256(&[&submitter.0, &nonce.to_be_bytes(), &spec.0])
    }
}

#[cfg(test)]
mod tests;
