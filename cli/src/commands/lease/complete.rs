//! Shell completion of runs and jobs on this machine's server. A request that fails or takes too
//! long completes nothing.

use super::connect::ServerChoice;
use crate::complete::{
    all, and_latest,
    ask::{context, runtime, within},
    described,
    line::Line,
};
use clap_complete::CompletionCandidate;
use cowboy_lease::{
    client::{Client, ClientError},
    messages::{JobQuery, JobState, PageQuery},
};

pub fn jobs() -> Vec<CompletionCandidate> {
    let jobs = ask(async |client| client.jobs(&JobQuery::default()).await);
    jobs.iter().map(|job| described(&job.job, format!("{} {}", job.name, job.state))).collect()
}

pub fn runs() -> Vec<CompletionCandidate> {
    let runs = ask(async |client| client.runs(&PageQuery::default()).await);
    let named = runs.into_iter().map(|run| {
        described(run.run_id, format!("{} {}", run.name.unwrap_or_default(), run.state))
    });
    and_latest(named.collect())
}

pub fn things() -> Vec<CompletionCandidate> {
    runs().into_iter().chain(jobs()).collect()
}

pub fn schedules() -> Vec<CompletionCandidate> {
    let schedules = ask(async |client| client.schedules().await);
    let named = schedules.into_iter().map(|one| {
        described(one.schedule, format!("{} by {}", one.name.unwrap_or_default(), one.actor))
    });
    named.collect()
}

pub fn runners() -> Vec<CompletionCandidate> {
    let tokens = ask(async |client| client.tokens().await);
    tokens.into_iter().map(|token| CompletionCandidate::new(token.runner_id)).collect()
}

pub fn states() -> Vec<CompletionCandidate> {
    all(JobState::ALL)
}

fn ask<T: Default + Send + 'static>(
    question: impl AsyncFnOnce(Client) -> Result<T, ClientError> + Send + 'static,
) -> T {
    within(move || {
        let line = Line::typed();
        let path = |flag| line.value(flag).map(Into::into);
        let server = ServerChoice {
            server: line.value("server"),
            token_file: path("token-file"),
            ca: path("ca"),
            identity: path("identity"),
        };
        let client = server.client(&context()).ok()?;
        runtime()?.block_on(question(client)).ok()
    })
}
