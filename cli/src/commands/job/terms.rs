//! The terms that every job is submitted with: money, time, limits, and how its result is verified.

use crate::{
    args,
    commands::{naming::Naming, transaction::Author},
    complete,
    error::{CliError, Exit},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::AddressText;
use cowboy_engine::{
    job::{
        document,
        json::Json,
        spec::{Bounds, Callback, JobSpec, MAX_RETURN_BYTES, Verification, VerificationMode, Work},
        verification::{Check, Similarity},
    },
    primitives::Wei,
};
use std::time::Duration;

/// The paying account, and whether to wait for the result.
#[derive(Debug, Args)]
pub struct Sending {
    #[command(flatten)]
    pub author: Author,
    /// Wait for the result
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub naming: Naming,
    /// Maximum time to wait
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
    pub timeout: Duration,
}

/// The terms that every job is submitted with.
#[derive(Debug, Args)]
pub struct Terms {
    #[command(flatten)]
    pub sending: Sending,
    /// Maximum that all runners together may charge: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "1cby")]
    max_price: Wei,
    /// Amount that all runners together get on top: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    tip: Wei,
    /// Number of blocks after which an attempt without a result ends
    #[arg(long, value_name = "BLOCKS", default_value_t = document::TIMEOUT_BLOCKS)]
    timeout_blocks: u64,
    /// Maximum length of the result in bytes [default: 65536, or less for a large committee]
    #[arg(long, value_name = "BYTES")]
    max_return_bytes: Option<u32>,
    /// Maximum run time of the work
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
    max_execution: Duration,
    /// Maximum memory of the work, in MiB
    #[arg(long, value_name = "MIB", default_value_t = document::MEMORY_MB)]
    max_memory: u32,
    #[command(flatten)]
    verifying: Verifying,
    /// Draw only members of this pool
    #[arg(long, add = ArgValueCandidates::new(complete::pools))]
    pool: Option<String>,
    /// Draw only runners in a trusted execution environment
    #[arg(long)]
    tee: bool,
    /// The actor to call when the job ends, and its handler
    #[arg(long, value_name = "ACTOR:HANDLER", value_parser = callback)]
    callback: Option<Callback>,
}

/// How the result is verified.
#[derive(Debug, Args)]
struct Verifying {
    /// How the result is verified: none, economic_bond, majority_vote, structured_match,
    /// deterministic or semantic_similarity
    #[arg(long, value_name = "MODE", default_value = "none")]
    #[arg(add = ArgValueCandidates::new(|| complete::all(&VerificationMode::ALL)))]
    verify: VerificationMode,
    /// Number of runners that do the work [default: the minimum of the mode]
    #[arg(long, value_name = "N")]
    runners: Option<u32>,
    /// Number of results that must agree [default: more than half]
    #[arg(long, value_name = "N")]
    threshold: Option<u32>,
    /// majority_vote: JSON pointer to the value that votes, such as /price
    #[arg(long, value_name = "POINTER")]
    vote_field: Option<String>,
    /// structured_match: what must hold, such as '{equal: /a}' or '{tolerance: {field: /b, within:
    /// 2}}'
    #[arg(long, value_name = "CHECK", value_parser = check)]
    check: Vec<Check>,
    /// semantic_similarity: the embedding model and the minimum cosine in thousandths, such as
    /// m:900
    #[arg(long, value_name = "MODEL:PERMILLE", value_parser = similarity)]
    similarity: Option<Similarity>,
}

impl Verifying {
    fn verification(&self) -> Verification {
        let runners = self.runners.unwrap_or_else(|| self.verify.least_runners());
        Verification {
            threshold: self.threshold,
            vote_field: self.vote_field.clone(),
            checks: self.check.clone(),
            similarity: self.similarity.clone(),
            ..Verification::of(self.verify, runners)
        }
    }
}

impl Terms {
    pub fn spec(&self, work: Work) -> Result<JobSpec, CliError> {
        let ms = u64::try_from(self.max_execution.as_millis())
            .map_err(|_| CliError::new(Exit::Usage, "--max-execution: expected 0ms to 10000h"))?;
        let verification = self.verifying.verification();
        let each = document::RETURN_BYTES.min(MAX_RETURN_BYTES / verification.runners.max(1));
        Ok(JobSpec {
            work,
            bounds: Bounds {
                max_return_bytes: self.max_return_bytes.unwrap_or(each),
                expected_execution_ms: ms,
                data_format: "bytes".to_owned(),
                max_memory_mb: self.max_memory,
            },
            verification,
            max_price: self.max_price,
            tip: self.tip,
            timeout_blocks: self.timeout_blocks,
            callback: self.callback.clone(),
            required_runner_pool: self.pool.clone(),
            tee_required: self.tee,
        })
    }
}

/// Parses YAML, which includes JSON, into the engine's JSON type.
pub fn json(text: &str) -> Result<Json, String> {
    let value: serde_json::Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    Json::parse(value.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn check(text: &str) -> Result<Check, String> {
    document::check(json(text)?).map_err(|error| error.to_string())
}

fn similarity(text: &str) -> Result<Similarity, String> {
    let refused = || format!("`{text}`: expected MODEL:PERMILLE, such as m:900");
    let (model, permille) = text.rsplit_once(':').ok_or_else(refused)?;
    let least_permille = permille.parse().map_err(|_| refused())?;
    Ok(Similarity { model: model.to_owned(), least_permille })
}

fn callback(text: &str) -> Result<Callback, String> {
    let (actor, handler) = text.split_once(':').ok_or_else(|| {
        format!("`{text}`: expected ACTOR:HANDLER, the actor as 0x and 40 digits")
    })?;
    let actor: AddressText = actor.parse().map_err(|error| format!("{error}"))?;
    Ok(Callback { actor: actor.0, handler: handler.to_owned(), resume: None })
}
