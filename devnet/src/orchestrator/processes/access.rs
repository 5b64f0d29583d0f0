//! What the API asks of a validator in a process of its own, over that process' API.

use crate::{
    api::{
        backend::{Backend, NodeAccess, ObservedDispatch, ReportedProgress},
        error::ApiError,
    },
    client::{Client, ClientError},
    topology::Name,
    types::{
        self, Bytes, CommitRequest, ConnectedRunner, ConnectionEnd, FailureRequest, JobDispatch,
        ResultRequest, Text, TransactionRequest, ValidatorState,
    },
    validator::{gateway::Submission, journal::Journal},
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::SignedTransaction,
    primitives::{Address, Hash, Height, Signature},
};
use std::{
    sync::{
        Weak,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use tokio::runtime::Handle;

/// How long a request waits for a node. One that is frozen or overloaded does not hold up others.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long an answer about a pause counts. It is asked for every transaction.
const FRESH: Duration = Duration::from_millis(500);

/// A validator in a process of its own.
pub(super) struct Remote {
    pub(super) name: Name,
    pub(super) client: Client,
    pub(super) backend: Weak<Backend>,
    pub(super) runtime: Handle,
    /// It is stopped in its tracks and answers nothing.
    pub(super) frozen: AtomicBool,
    /// Why it was paused when it was last asked, and when that was.
    pub(super) pause: Mutex<Option<(Instant, Option<String>)>>,
}

impl Remote {
    /// Waits for an answer on this thread, which may block.
    fn ask<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    ) -> Result<T, ClientError> {
        let late = || ClientError::Timeout { what: self.name.to_string(), after: PATIENCE };
        if self.frozen.load(Ordering::Relaxed) {
            return Err(late());
        }
        let (answer, answered) = mpsc::sync_channel(1);
        let asking = self.runtime.spawn(async move {
            // The one who asked may no longer wait.
            let _ = answer.try_send(request.await);
        });
        answered.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            asking.abort();
            Err(late())
        })
    }

    /// The answer, or an empty one if the node gives none.
    fn told<T: Send + Default + 'static>(
        &self,
        request: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    ) -> T {
        self.ask(request).unwrap_or_else(|error| {
            tracing::debug!(validator = %self.name, %error, "does not answer");
            T::default()
        })
    }

    fn address(&self, name: &str) -> Option<Address> {
        self.backend.upgrade()?.address_of(name)
    }

    /// A client for a request of its own.
    fn client(&self) -> Client {
        self.client.clone()
    }
}

impl NodeAccess for Remote {
    fn links(&self) -> Vec<ConnectedRunner> {
        let (client, name) = (self.client(), self.name.clone());
        self.told(async move { client.validator_links(name.as_str()).await })
    }

    fn progress(&self, job_id: &Hash) -> Vec<ReportedProgress> {
        let (client, id) = (self.client(), Text(*job_id).to_string());
        let told = self.told(async move { Ok(client.job(&id).await?.progress) });
        let read = |said: types::RunnerProgress| {
            Some(ReportedProgress {
                runner: self.address(&said.runner)?,
                percent: said.percent,
                detail: said.detail,
                height: Height::new(said.height),
            })
        };
        told.into_iter().filter_map(read).collect()
    }

    fn dispatches(&self, job_id: &Hash) -> Vec<ObservedDispatch> {
        let (client, id) = (self.client(), Text(*job_id).to_string());
        let told = self.told(async move { client.job_dispatches(&id).await });
        let read = |said: JobDispatch| {
            Some(ObservedDispatch {
                runner: self.address(&said.runner)?,
                assigned_at: Height::new(said.assigned_at),
                outcome: said.outcome,
                answered_ms: said.answered_ms,
                started_ms: said.started_ms,
                done_ms: said.done_ms,
            })
        };
        told.into_iter().filter_map(read).collect()
    }

    fn last_end(&self, runner: &Address) -> Option<ConnectionEnd> {
        let (client, id) = (self.client(), Text(*runner).to_string());
        let connections = self.told(async move { Ok(client.runner(&id).await?.connections) });
        let mut own = connections.into_iter().filter(|one| one.validator == self.name.as_str());
        own.next()?.last_end
    }

    fn journal(&self) -> Option<(Journal, usize)> {
        None
    }

    fn paused(&self) -> Option<String> {
        let mut known = self.pause.lock();
        if let Some((at, reason)) = &*known
            && at.elapsed() < FRESH
        {
            return reason.clone();
        }
        let (client, name) = (self.client(), self.name.clone());
        let reason = self.told(async move {
            let told = client.validator(name.as_str()).await?;
            Ok(told.reason.filter(|_| told.status == ValidatorState::Paused))
        });
        *known = Some((Instant::now(), reason.clone()));
        reason
    }

    fn metrics(&self) -> Option<String> {
        let client = self.client();
        self.told(async move { client.metrics().await.map(Some) })
    }

    fn faults(&self) -> Vec<types::Fault> {
        let client = self.client();
        self.told(async move { client.faults().await })
    }

    fn lift(&self, blocks: u64, within: Duration) {
        let client = self.client();
        self.told(async move { client.advance(blocks, within).await.map(drop) });
    }

    fn automine(&self, on: bool) {
        let client = self.client();
        self.told(async move { client.automine(on).await.map(drop) });
    }

    fn hand_in(&self, submission: Submission) -> Result<(), ApiError> {
        let client = self.client();
        let signed = |signature: &Signature| Text(Bytes(signature.0.to_vec()));
        let deliver = |job_id: Hash, runner: Address, result: Vec<u8>, signature: Signature| {
            let (result, runner_signature) = (Text(Bytes(result)), signed(&signature));
            let request = ResultRequest { job_id: job_id.into(), result, runner_signature };
            let (client, runner) = (self.client(), Text(runner).to_string());
            self.ask(async move { client.hand_in(&runner, &request).await })
        };
        let accepted = match submission {
            Submission::Result(result) => {
                deliver(result.job_id, result.runner, result.result, result.runner_signature)
            }
            Submission::Reveal { job_id, reveal } => {
                deliver(job_id, reveal.runner, reveal.result, reveal.runner_signature)
            }
            Submission::Commit { commit, .. } => {
                let request = CommitRequest {
                    job_id: commit.job_id.into(),
                    commitment: commit.commitment.into(),
                    runner_signature: signed(&commit.runner_signature),
                };
                let runner = Text(commit.runner).to_string();
                self.ask(async move { client.commit(&runner, &request).await })
            }
            Submission::Failure(report) => {
                let request = FailureRequest {
                    job_id: report.job_id.into(),
                    reason: report.said.to_string(),
                    runner_signature: signed(&report.runner_signature),
                };
                let runner = Text(report.runner).to_string();
                self.ask(async move { client.report_failure(&runner, &request).await })
            }
            Submission::Aggregated { .. } => {
                return Err(ApiError::bad_request("an aggregate comes over a connection"));
            }
        };
        accepted.map(drop).map_err(|error| refused(&self.name, error))
    }

    fn submit(&self, transaction: &SignedTransaction) -> Option<Result<bool, ApiError>> {
        let request = TransactionRequest { transaction: Text(Bytes(transaction.to_bytes())) };
        let client = self.client();
        let accepted = self.ask(async move { client.submit(&request).await });
        let accepted = accepted.map(|accepted| !accepted.known);
        Some(accepted.map_err(|error| refused(&self.name, error)))
    }
}

fn refused(name: &Name, error: ClientError) -> ApiError {
    match error {
        ClientError::Refused(detail) => ApiError::from(detail),
        other => ApiError::unavailable(format!("validator `{name}`: {other}")),
    }
}
