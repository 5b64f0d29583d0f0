//! The specification of a job by its submitter (spec jobs.md §2).

use super::{verification::Verification, work::Work};
use crate::{
    actor::effect::MAX_HANDLER_BYTES,
    primitives::{Address, Hash, Wei, codec::to_vec, keccak256},
    record,
};
use std::borrow::Cow;

/// Maximum length of a result, in bytes: one block carries it as a transaction, with room to spare
/// (a block holds 1,000,000 cells, a byte is a cell).
pub const MAX_RETURN_BYTES: u32 = 512 * 1024;
/// Maximum timeout of a job, in blocks: about 12 hours at 1 s.
pub const MAX_TIMEOUT_BLOCKS: u64 = 43_200;
/// Maximum memory of a job, in MiB.
pub const MAX_MEMORY_MB: u32 = 65_536;

/// Minimum timeout of a committee's job, in blocks.
pub const MIN_COMMITTEE_TIMEOUT: u64 = 8;
/// The aggregator's pay, in thousandths of the runners' pay for their time.
const AGGREGATION_PERMILLE: u128 = 15;

/// The aggregator's pay on top of `gross`: 1.5 %, rounded down.
pub const fn aggregation(gross: Wei) -> Wei {
    let (whole, rest) = (gross.get() / 1_000, gross.get() % 1_000);
    Wei::new(whole * AGGREGATION_PERMILLE + rest * AGGREGATION_PERMILLE / 1_000)
}

/// Limits and format of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub max_return_bytes: u32,
    /// Maximum duration, in ms.
    pub expected_execution_ms: u64,
    /// The result's format: `json`, `text` or `bytes`. Informational: nothing checks it.
    pub data_format: String,
    /// Maximum memory, in MiB.
    pub max_memory_mb: u32,
}
record!(Bounds { max_return_bytes, expected_execution_ms, data_format, max_memory_mb });

/// Where the verified result is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    pub actor: Address,
    pub handler: String,
    /// The continuation that the result resumes, if an actor in Python asked for the job.
    pub resume: Option<Continuation>,
}
record!(Callback { actor, handler, resume });

/// A continuation of an actor in Python, and what the call that resumes it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    pub cid: Vec<u8>,
    pub cycles: u64,
    pub cells: u64,
}
record!(Continuation { cid, cycles, cells });

record! {
    /// A job as its submitter signs it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct JobSpec {
        pub work: Work,
        pub bounds: Bounds,
        pub verification: Verification,
        /// Held in escrow.
        pub max_price: Wei,
        /// On top of the price, held in escrow.
        pub tip: Wei,
        /// The job fails if it has no verified result this many blocks after its submission.
        pub timeout_blocks: u64,
        pub callback: Option<Callback>,
        /// Only members of this pool are candidates.
        pub required_runner_pool: Option<String>,
        /// Only runners in a trusted execution environment are candidates.
        pub tee_required: bool,
    }
}

/// An invalid field of a spec, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("InvalidJobSpec: {field} {problem}")]
pub struct SpecError {
    pub field: Cow<'static, str>,
    pub problem: String,
}

impl JobSpec {
    /// Checks every rule that depends only on the spec.
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
            return refuse("tip", "and max_price together exceed any balance".into());
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

    /// Whether several runners do the work and commit before they reveal.
    pub const fn is_committee(&self) -> bool {
        self.verification.runners > 1
    }

    /// The escrow of the job in wei: its maximum price, the tip, and an aggregator's maximum pay.
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
