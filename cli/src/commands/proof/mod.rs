//! Proofs as files: fetched from a devnet, and checked without one.

mod value;
pub mod verify;

pub use verify::Verify;

use crate::{
    args::HeightArg,
    context::Context,
    error::{CliError, Exit},
    output::{Document, bytes, fields},
};
use clap::Args;
use cowboy_devnet::types::{HashText, ProofQuery};
use cowboy_engine::chain::{Found, ProvedStatement, StateProof};
use serde::Serialize;
use std::{fs, path::PathBuf};

/// The subjects that can be proved, as `chain prove` spells them.
pub const KINDS: [&str; 10] = [
    "account",
    "actor",
    "stored",
    "job",
    "runner",
    "task",
    "presence",
    "timer",
    "timers",
    "validators",
];

/// The file for a proof, and the block whose state it proves.
#[derive(Debug, Args)]
pub struct Wanted {
    /// The file to write [default: in this folder, named after the subject]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The block whose state is proved: 120 or +0; one of the last 256 [default: the newest]
    #[arg(long, value_name = "HEIGHT")]
    at: Option<HeightArg>,
}

/// A written proof.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Proved {
    /// The kind of its subject.
    kind: String,
    /// The key of the subject; empty for presence and validators.
    key: String,
    /// The block after which the state was this.
    height: u64,
    /// The state's root.
    state_root: HashText,
    /// Whether the key has a value.
    present: bool,
    /// Number of timers, if the subject is timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    timers: Option<u64>,
    /// The block whose header names the root.
    header_height: u64,
    /// That block's hash.
    header_hash: HashText,
    /// Length of the file in bytes.
    bytes: u64,
    /// The file.
    file: String,
}

/// Fetches a proof, checks everything but the identity of its signers, and writes it.
pub async fn prove(
    cx: &Context,
    kind: &str,
    key: Option<String>,
    wanted: Wanted,
) -> Result<(), CliError> {
    let client = cx.client()?;
    let at = HeightArg::past(wanted.at, &client).await?;
    let answer = client.prove(kind, &ProofQuery { key, at }).await?;
    let invalid = |error: String| {
        CliError::new(Exit::Invalid, format!("the devnet's proof does not hold: {error}"))
    };
    let proof = StateProof::from_bytes(&answer.proof.0.0).map_err(|e| invalid(e.to_string()))?;
    let ProvedStatement { height, state_root, found } =
        proof.check().map_err(|error| invalid(error.to_string()))?;
    let (kind, key) = (proof.subject.kind(), answer.key);
    let out = wanted.out.unwrap_or_else(|| {
        let short: String = key.chars().filter(|c| c.is_ascii_alphanumeric()).take(10).collect();
        let short = if short.is_empty() { short } else { format!("-{short}") };
        format!("{kind}{short}-{height}.proof").into()
    });
    fs::write(&out, &answer.proof.0.0)
        .map_err(|error| CliError::file(Exit::Failed, &out, &error))?;
    let timers = match &found {
        Found::Timers(timers) => Some(timers.len() as u64),
        Found::Nothing | Found::Value(_) | Found::Validators(_) => None,
    };
    cx.ui.document(&Proved {
        kind: kind.to_owned(),
        key,
        height: height.get(),
        state_root: state_root.into(),
        present: timers.map_or(found != Found::Nothing, |timers| timers > 0),
        timers,
        header_height: proof.header.height.get(),
        header_hash: proof.certificate.block.into(),
        bytes: answer.proof.0.0.len() as u64,
        file: out.display().to_string(),
    })
}

fn about(kind: &str, key: &str) -> String {
    format!("{kind} {key}").trim_end().to_owned()
}

fn standing(present: bool, timers: Option<u64>) -> String {
    match (present, timers) {
        (_, Some(1)) => "1 timer, and no other".to_owned(),
        (_, Some(n)) => format!("{n} timers, and no others"),
        (true, None) => "there".to_owned(),
        (false, None) => "not there".to_owned(),
    }
}

impl Document for Proved {
    fn text(&self) -> String {
        fields(&[
            ("proves", about(&self.kind, &self.key)),
            ("found", standing(self.present, self.timers)),
            ("state", format!("after block {}, root {}", self.height, self.state_root)),
            ("header", format!("of block {}, {}", self.header_height, self.header_hash)),
            ("size", bytes(self.bytes)),
            ("file", self.file.clone()),
        ])
    }

    fn id(&self) -> String {
        self.file.clone()
    }
}
