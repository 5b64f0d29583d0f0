//! `runner update`: changes a runner's registration.

use super::registration::{Holder, kind, registered, send};
use crate::{
    commands::account::Inclusion,
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
};
use clap::{Args, builder::BoolishValueParser};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{topology::MAX_CONCURRENT_JOBS, types::AddressText};
use cowboy_engine::{
    chain::{Payload, transaction::UpdateRunner},
    primitives::Wei,
    registry::{Capabilities, JobKind},
};
use std::collections::BTreeSet;

/// `runner update`.
#[derive(Debug, Args)]
pub struct Update {
    #[command(flatten)]
    holder: Holder,
    #[command(flatten)]
    changes: RunnerChanges,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// The registration's changes.
#[derive(Debug, Default, Args)]
#[group(id = "changes", required = true, multiple = true)]
struct RunnerChanges {
    /// Kinds of jobs that it takes
    #[arg(long, value_name = "KIND,KIND", value_delimiter = ',', value_parser = kind)]
    #[arg(add = ArgValueCandidates::new(complete::job_kinds))]
    kinds: Option<Vec<JobKind>>,
    /// Models of `llm` jobs that it takes
    #[arg(long, alias = "model", value_name = "MODEL,MODEL", value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// Servers of `mcp` jobs that it takes
    #[arg(long, alias = "mcp-server", value_name = "SERVER,SERVER", value_delimiter = ',')]
    mcp_servers: Option<Vec<String>>,
    /// Whether it declares that it runs in a trusted execution environment
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    #[arg(require_equals = true, value_parser = BoolishValueParser::new())]
    tee: Option<bool>,
    /// Maximum number of jobs at a time
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_CONCURRENT_JOBS as i64))]
    max_jobs: Option<u32>,
    /// Price per second of computing
    #[arg(long, value_name = "AMOUNT")]
    price: Option<Wei>,
    /// Total stake from then on, from its account: no less than now
    #[arg(long, value_name = "AMOUNT")]
    stake: Option<Wei>,
}

impl Update {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let deadline = Deadline::after(self.inclusion.timeout);
        let key = self.holder.key(cx)?;
        let address = AddressText::from(key.address());
        let entry = cx.client()?.runner(&address.to_string()).await?;
        let capabilities = self.changes.of(registered(&entry)?)?;
        let payload = UpdateRunner {
            capabilities,
            price_per_second: self.changes.price.unwrap_or(*entry.price_per_second),
            stake: self.changes.stake,
        };
        send(cx, key, Payload::UpdateRunner(payload), deadline).await
    }
}

impl RunnerChanges {
    fn of(&self, now: Capabilities) -> Result<Capabilities, CliError> {
        let kinds: BTreeSet<JobKind> = match &self.kinds {
            Some(kinds) => kinds.iter().copied().collect(),
            None => now.kinds.iter().copied().collect(),
        };
        // Names for a kind that the runner does not take would be misleading.
        let names =
            |option: &str, kind, named: &Option<Vec<String>>, now: Option<Vec<String>>| match (
                kinds.contains(&kind),
                named,
            ) {
                (true, Some(named)) => Ok(Some(named.clone())),
                (true, None) => Ok(now),
                (false, None) => Ok(None),
                (false, Some(_)) => {
                    let what = format!("{option}: the runner takes no jobs of kind {kind}");
                    Err(CliError::new(Exit::Usage, what)
                        .hint(format!("name the kind as well: --kinds {kind},…")))
                }
            };
        Ok(Capabilities {
            models: names("--models", JobKind::Llm, &self.models, now.models)?,
            mcp_servers: names("--mcp-servers", JobKind::Mcp, &self.mcp_servers, now.mcp_servers)?,
            max_concurrent_jobs: self.max_jobs.unwrap_or(now.max_concurrent_jobs),
            tee: self.tee.unwrap_or(now.tee),
            kinds: kinds.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays() {
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let now = Capabilities {
            models: names(&["small"]),
            tee: true,
            ..Capabilities::of(vec![JobKind::Llm, JobKind::Http], 4)
        };
        let check = |changes: RunnerChanges, expected: Capabilities| {
            assert_eq!(changes.of(now.clone()).unwrap(), expected, "{changes:?}");
        };
        check(RunnerChanges::default(), now.clone());
        check(RunnerChanges { tee: Some(false), ..RunnerChanges::default() }, {
            Capabilities { tee: false, ..now.clone() }
        });
        let http = Some(vec![JobKind::Http, JobKind::Http]);
        check(RunnerChanges { kinds: http.clone(), ..RunnerChanges::default() }, {
            Capabilities { kinds: vec![JobKind::Http], models: None, ..now.clone() }
        });
        check(
            RunnerChanges {
                models: names(&["a", "b"]),
                max_jobs: Some(2),
                ..RunnerChanges::default()
            },
            Capabilities { models: names(&["a", "b"]), max_concurrent_jobs: 2, ..now.clone() },
        );
        let refused =
            RunnerChanges { kinds: http, models: names(&["a"]), ..RunnerChanges::default() };
        let error = refused.of(now.clone()).unwrap_err().to_string();
        assert!(error.starts_with("--models: the runner takes no jobs of kind llm"), "{error}");
    }
}
