//! Checks a proof offline: from its header, with keys that the user trusts.

use super::{about, standing, value};
use crate::{
    args::{self, HeightArg},
    commands::trust::{consensus_keys, document_of},
    context::Context,
    error::{CliError, Exit},
    output::{Document, any_table, fields, known, paragraphs},
};
use clap::Args;
use cowboy_devnet::{
    consensus::{certificate, scheme::Committee},
    types::{Bytes, BytesText, ChainId, ChainIdText, HashText},
};
use cowboy_engine::chain::{Found, MAX_PROOF_BYTES, StateProof, Subject};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// `timer verify` and `chain verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The proof; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Refuse a proof of another key: the whole id or address, or 120..150 for timers
    #[arg(long, value_name = "KEY")]
    about: Option<String>,
    /// The consensus key of a validator of the header's epoch; repeat it for each of them [default:
    /// the initial validators of the devnet's topology]
    #[arg(long, value_name = "KEY", requires = "chain_id", value_delimiter = ',')]
    validator: Vec<BytesText>,
    /// The chain that those validators vote on
    #[arg(long, value_name = "ID", requires = "validator")]
    chain_id: Option<ChainIdText>,
}

/// A valid proof.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Verified {
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
    /// The value, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The value's bytes in the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_bytes: Option<BytesText>,
    /// All timers in the range, by height and id, if the subject is timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    timers: Option<Vec<ShownTimer>>,
    /// The block whose header names the root.
    header_height: u64,
    /// That block's hash.
    header_hash: HashText,
    /// Votes of its certificate, each with a valid signature.
    votes: u32,
    /// The trusted validators that all of it rests on.
    trusted: Trusted,
}

/// A timer in a range.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ShownTimer {
    /// The height that it waits for.
    height: u64,
    /// Its id.
    timer_id: HashText,
}

/// The validators whose signatures count.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Trusted {
    /// Where they come from: `command line`, or the devnet whose topology names them.
    source: String,
    /// The chain.
    chain_id: ChainIdText,
    /// The validators' consensus keys, of which more than two thirds are honest.
    validators: Vec<BytesText>,
}

impl Verify {
    /// The range of blocks in the argument, if it is one and no file has that name.
    pub fn blocks(&self) -> Result<Option<(HeightArg, HeightArg)>, CliError> {
        let range = self.file.to_str().and_then(|text| text.split_once(".."));
        let Some((Ok(from), Ok(to))) = range.map(|(from, to)| (from.parse(), to.parse())) else {
            return Ok(None);
        };
        if self.file.exists() {
            return Ok(None);
        }
        if self.about.is_some() || !self.validator.is_empty() {
            let what = "blocks are verified from genesis: --about and --validator are for proofs";
            return Err(CliError::new(Exit::Usage, what));
        }
        Ok(Some((from, to)))
    }

    /// With `timers`, proofs about other subjects are refused.
    pub fn run(self, cx: &Context, timers: bool) -> Result<(), CliError> {
        let bytes = args::input(&self.file, MAX_PROOF_BYTES as u64)?;
        let shown = args::shown(&self.file);
        let fails = |check: String| CliError::new(Exit::Invalid, format!("{shown}: {check}"));
        let proof = StateProof::from_bytes(&bytes).map_err(|error| fails(error.to_string()))?;
        let (kind, subject) = (proof.subject.kind(), proof.subject.to_string());
        if timers && !matches!(proof.subject, Subject::Timer(_) | Subject::Timers { .. }) {
            return Err(CliError::new(Exit::Usage, format!("{shown}: it proves {subject}"))
                .hint(format!("check it with: cowboyctl chain verify {shown}")));
        }
        let key = subject.split_once(' ').map_or("", |(_, key)| key).to_owned();
        if let Some(asked) = self.about.as_ref().filter(|asked| !asked.eq_ignore_ascii_case(&key)) {
            return Err(fails(format!("question: it proves {subject}, not {asked}")));
        }
        let statement = proof.check().map_err(|error| fails(error.to_string()))?;
        let (trusted, committee) = self.trusted(cx)?;
        certificate::verify(&committee, &proof.certificate).map_err(|error| {
            let hint = match self.validator.is_empty() {
                true => {
                    "these are the first validators of the devnet; if others serve now, name them: \
                     --validator KEY --chain-id ID (cowboyctl validator ls -o json)"
                }
                false => "name every validator of the header's epoch, and no others",
            };
            fails(format!("certificate: {error}"))
                .detail(format!("trusted: {}", trusted.text()))
                .hint(hint)
        })?;
        let mut verified = Verified {
            kind: kind.to_owned(),
            key,
            height: statement.height.get(),
            state_root: statement.state_root.into(),
            present: statement.found != Found::Nothing,
            value: None,
            value_bytes: None,
            timers: None,
            header_height: proof.header.height.get(),
            header_hash: proof.certificate.block.into(),
            votes: u32::try_from(proof.certificate.votes.len()).unwrap_or(u32::MAX),
            trusted,
        };
        match statement.found {
            Found::Nothing => {}
            Found::Value(bytes) => {
                verified.value = value::json(&proof.subject, bytes);
                verified.value_bytes = Some(Bytes(bytes.to_vec()).into());
            }
            Found::Timers(timers) => {
                verified.present = !timers.is_empty();
                let shown = timers
                    .into_iter()
                    .map(|(height, id)| ShownTimer { height: height.get(), timer_id: id.into() });
                verified.timers = Some(shown.collect());
            }
            Found::Validators(roster) => verified.value = Some(value::roster(&roster)),
        }
        cx.ui.document(&verified)
    }

    /// The validators whose signatures count: those given, else the initial ones of the devnet's
    /// topology.
    fn trusted(&self, cx: &Context) -> Result<(Trusted, Committee), CliError> {
        let (source, chain_id, keys) = match self.chain_id {
            Some(chain_id) => {
                let keys = consensus_keys(&self.validator)?;
                ("command line".to_owned(), chain_id.0.0, keys)
            }
            None => {
                let devnet = cx.existing(None).map_err(|error| {
                    let hint = "name the validators instead: --validator KEY --chain-id ID";
                    error.hint(hint)
                })?;
                let (document, source) = document_of(&devnet)?.ok_or_else(|| {
                    let what = format!("devnet `{}` has no topology yet", devnet.name());
                    CliError::new(Exit::NotFound, what).hint("start it once, or name validators")
                })?;
                let genesis = document.genesis;
                let keys = genesis.validators.iter().map(|v| v.consensus_key).collect();
                (source, genesis.chain_id(), keys)
            }
        };
        let committee = Committee::of_keys(chain_id, &keys)
            .map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
        let validators = keys.iter().map(|key| Bytes(key.to_vec()).into()).collect();
        Ok((Trusted { source, chain_id: ChainId(chain_id).into(), validators }, committee))
    }
}

impl Trusted {
    fn text(&self) -> String {
        let n = self.validators.len();
        format!("{n} validators of {}, on chain {}", self.source, self.chain_id)
    }
}

impl Document for Verified {
    fn text(&self) -> String {
        let timers = self.timers.as_ref().map(|timers| timers.len() as u64);
        let mut lines = vec![
            ("proves", about(&self.kind, &self.key)),
            ("found", standing(self.present, timers)),
            ("state", format!("after block {}, root {}", self.height, self.state_root)),
            ("header", format!("of block {}, {}", self.header_height, self.header_hash)),
            ("votes", format!("{} of {}", self.votes, self.trusted.validators.len())),
            ("trusted", self.trusted.text()),
        ];
        let named;
        match &self.value {
            Some(Value::Object(value)) => {
                let text = |(name, value): (&String, &Value)| {
                    let plain = || match value {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    (name.replace('_', " "), known(name, value).unwrap_or_else(plain))
                };
                named = value.iter().map(text).collect::<Vec<_>>();
                lines.extend(named.iter().map(|(name, value)| (name.as_str(), value.clone())));
            }
            Some(value) => lines.push(("value", value.to_string())),
            None => {}
        }
        let timers = self.timers.iter().flatten();
        let rows = timers.map(|timer| vec![timer.height.to_string(), timer.timer_id.to_string()]);
        paragraphs([fields(&lines), any_table(&[">height", "timer"], rows)])
    }

    fn id(&self) -> String {
        match &self.timers {
            Some(timers) => {
                let ids: Vec<_> = timers.iter().map(|timer| timer.timer_id.to_string()).collect();
                ids.join("\n")
            }
            None => self.present.to_string(),
        }
    }
}
