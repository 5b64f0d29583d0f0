//! Runs and jobs for the shell to complete, of the server of this machine. Whatever fails completes
//! nothing.

use super::connect::Server;
use crate::{
    context::Context,
    output::{Format, Ui},
};
use clap_complete::CompletionCandidate;
use cowboy_devnet::lease::{
    client::Client,
    messages::{JobQuery, PageQuery},
};
use std::{env, time::Duration};
use tokio::time::timeout;

/// How long a completion may ask a server.
const PATIENCE: Duration = Duration::from_millis(300);

/// The newest jobs.
pub fn jobs() -> Vec<CompletionCandidate> {
    let jobs = ask(async |client| client.jobs(&JobQuery::default()).await.ok());
    let jobs = jobs.unwrap_or_default().into_iter().map(|job| {
        CompletionCandidate::new(job.job).help(Some(format!("{} {}", job.name, job.state).into()))
    });
    jobs.collect()
}

/// The newest runs.
pub fn runs() -> Vec<CompletionCandidate> {
    let runs = ask(async |client| client.runs(&PageQuery::default()).await.ok());
    let latest = CompletionCandidate::new("latest").help(Some("the newest".into()));
    let named = runs.unwrap_or_default().into_iter().map(|run| {
        let name = run.name.unwrap_or_default();
        CompletionCandidate::new(run.run_id).help(Some(format!("{name} {}", run.state).into()))
    });
    [latest].into_iter().chain(named).collect()
}

/// The newest runs and jobs.
pub fn things() -> Vec<CompletionCandidate> {
    runs().into_iter().chain(jobs()).collect()
}

/// Runners that have a token.
pub fn runners() -> Vec<CompletionCandidate> {
    let tokens = ask(async |client| client.tokens().await.ok()).unwrap_or_default();
    tokens.into_iter().map(|token| CompletionCandidate::new(token.runner_id)).collect()
}

/// What the current server answers. The command line is not known here, its variables are.
fn ask<T>(question: impl AsyncFnOnce(Client) -> Option<T>) -> Option<T> {
    let devnet = env::var("COWBOYCTL_DEVNET").ok().and_then(|name| name.parse().ok());
    let cx = Context { ui: Ui::new(Format::Table, true), devnet, node: None };
    let path = |name| env::var_os(name).map(Into::into);
    let server = Server {
        server: env::var("COWBOYCTL_SERVER").ok(),
        token_file: path("COWBOYCTL_TOKEN_FILE"),
        ca: path("COWBOYCTL_CA"),
        identity: path("COWBOYCTL_IDENTITY"),
    };
    let client = server.client(&cx).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async { timeout(PATIENCE, question(client)).await.ok()? })
}
