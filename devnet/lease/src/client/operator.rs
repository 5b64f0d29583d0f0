//! The operator's requests: submit jobs, read their state, manage runners' tokens.

use super::{Client, ClientError, REQUEST_TIMEOUT, whole};
use crate::messages::{
    Job, JobChanged, JobEvent, JobQuery, JobSummary, LOG_BYTES_HEADER, LOG_ENDED_HEADER, LogQuery,
    NewRun, NewSchedule, NewToken, PageQuery, Run, RunSummary, RunnerSummary, Schedule, Status,
    StoredArtifact, Token, TokenQuery, TokenRequest,
};
use reqwest::{Method, RequestBuilder, Response};
use std::time::Duration;

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// The log from the offset on, as far as one answer has it.
    pub bytes: Vec<u8>,
    /// Length of the whole log so far, in bytes.
    pub total: u64,
    pub ended: bool,
}

impl Client {
    fn get(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::GET, &[&["api", "v1"], path].concat())
    }

    fn post(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::POST, &[&["api", "v1"], path].concat())
    }

    pub async fn submit(&self, run: &NewRun) -> Result<Run, ClientError> {
        self.json(self.post(&["runs"]).json(run)).await
    }

    /// Newest first.
    pub async fn runs(&self, query: &PageQuery) -> Result<Vec<RunSummary>, ClientError> {
        self.json(self.get(&["runs"]).query(query)).await
    }

    pub async fn run(&self, run: &str) -> Result<Run, ClientError> {
        self.json(self.get(&["runs", run])).await
    }

    pub async fn cancel_run(&self, run: &str) -> Result<Run, ClientError> {
        self.json(self.post(&["runs", run, "cancel"])).await
    }

    /// Newest first.
    pub async fn jobs(&self, query: &JobQuery) -> Result<Vec<JobSummary>, ClientError> {
        self.json(self.get(&["jobs"]).query(query)).await
    }

    pub async fn job(&self, job: &str) -> Result<Job, ClientError> {
        self.json(self.get(&["jobs", job])).await
    }

    /// Oldest first.
    pub async fn job_events(&self, job: &str) -> Result<Vec<JobEvent>, ClientError> {
        self.json(self.get(&["jobs", job, "events"])).await
    }

    pub async fn cancel_job(&self, job: &str) -> Result<JobChanged, ClientError> {
        self.json(self.post(&["jobs", job, "cancel"])).await
    }

    pub async fn revoke(&self, job: &str) -> Result<JobChanged, ClientError> {
        self.json(self.post(&["jobs", job, "revoke"])).await
    }

    pub async fn log(&self, job: &str, query: &LogQuery) -> Result<LogPart, ClientError> {
        let wait = Duration::from_secs(query.wait_seconds);
        let request = self.get(&["jobs", job, "log"]).query(query);
        let response = self.send(request.timeout(REQUEST_TIMEOUT + wait)).await?;
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let total = header(LOG_BYTES_HEADER).and_then(|total| total.parse().ok());
        let ended = header(LOG_ENDED_HEADER) == Some("true");
        let what = response.url().path().to_owned();
        let total = total.ok_or_else(|| ClientError::Malformed {
            what: what.clone(),
            reason: format!("no {LOG_BYTES_HEADER}"),
        })?;
        Ok(LogPart { bytes: whole(&what, response).await?, total, ended })
    }

    pub async fn artifacts(&self, job: &str) -> Result<Vec<StoredArtifact>, ClientError> {
        self.json(self.get(&["jobs", job, "artifacts"])).await
    }

    /// The body of an artifact as a response to read piece by piece, within the timeout `limit`.
    pub async fn download(
        &self,
        job: &str,
        attempt: u32,
        name: &str,
        limit: Duration,
    ) -> Result<Response, ClientError> {
        let attempt = attempt.to_string();
        let mut path = vec!["jobs", job, "attempts", &attempt, "artifacts"];
        path.extend(name.split('/'));
        self.send(self.get(&path).timeout(limit)).await
    }

    pub async fn runners(&self) -> Result<Vec<RunnerSummary>, ClientError> {
        self.json(self.get(&["runners"])).await
    }

    pub async fn tokens(&self) -> Result<Vec<Token>, ClientError> {
        self.json(self.get(&["tokens"])).await
    }

    /// Issues a runner's token and invalidates its previous one. While a runner of this name is at
    /// work, this is refused unless `replace` is set.
    pub async fn issue_token(&self, runner: &str, replace: bool) -> Result<NewToken, ClientError> {
        let request = TokenRequest { runner_id: runner.to_owned(), replace };
        self.json(self.post(&["tokens"]).json(&request)).await
    }

    /// Invalidates a runner's token; if `id` is given, only that token.
    pub async fn revoke_token(&self, runner: &str, id: Option<&str>) -> Result<Token, ClientError> {
        let request = self.request(Method::DELETE, &["api", "v1", "tokens", runner]);
        let query = TokenQuery { token_id: id.map(str::to_owned) };
        self.json(request.query(&query)).await
    }

    pub async fn add_schedule(&self, schedule: &NewSchedule) -> Result<Schedule, ClientError> {
        self.json(self.post(&["schedules"]).json(schedule)).await
    }

    /// Newest first.
    pub async fn schedules(&self) -> Result<Vec<Schedule>, ClientError> {
        self.json(self.get(&["schedules"])).await
    }

    pub async fn remove_schedule(&self, schedule: &str) -> Result<Schedule, ClientError> {
        let request = self.request(Method::DELETE, &["api", "v1", "schedules", schedule]);
        self.json(request).await
    }

    pub async fn status(&self) -> Result<Status, ClientError> {
        self.json(self.get(&["status"])).await
    }
}
