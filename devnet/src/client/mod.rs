//! A client of a running devnet for other processes: typed requests and a resuming event stream.
//!
//! A [`Client`] is cheap to clone and holds one connection pool. Every request ends within its
//! timeout and reads a bounded answer. Every failure is a [`ClientError`], which distinguishes a
//! devnet that is not there, one that does not answer in time, and one that refuses.

mod events;
mod speculation;

pub use crate::http::REQUEST_TIMEOUT;
pub use events::EventStream;

use crate::{
    api::types::{
        Account, AccountRequest, Actor, ActorLog, ActorQuery, ActorSummary, Advance,
        AdvanceRequest, Block, Burned, Bytes, CapabilitiesRequest, ChainTask, ChainTaskQuery,
        CommitRequest, ComparisonQuery, DryRun, DryRunRequest, DueQuery, DueTimers, ErrorBody,
        ErrorCode, ErrorDetail, EventPage, EventQuery, Evidence, EvidencePage, EvidenceQuery,
        Explanation, ExplanationQuery, FailureRequest, Fairness, Fault, FaultRequest,
        GovernedParameter, Head, Job, JobDispatch, JobQuery, JobResult, JobSummary, JoinRequest,
        LaneBlock, LaneQuery, Left, LimitRequest, LogQuery, MruRecord, NameRequest, NodeQuery,
        Parameters, PolledJobs, Pool, Presence, PresenceComparison, ProofQuery, ResultAccepted,
        ResultRequest, Runner, RunnerLoad, SaveRequest, Snapshot, StateProof, Status, Stopping,
        StoreQuery, StreamQuery, Timer, TimerQuery, TimerQueue, TimerQuote, TimerSummary,
        Transaction, TransactionAccepted, TransactionRequest, Validator, Votes,
    },
    duration::Plain,
    home::{DevnetHome, DevnetState, HomeError},
    http::ANSWER_LIMIT,
    topology::Name,
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{chain::SignedTransaction, primitives::Address};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// The time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The devnet has no folder.
    #[error("there is no devnet `{0}`")]
    NoSuchDevnet(Name),
    /// The devnet has a folder but no process.
    #[error("devnet `{0}` is not running")]
    NotRunning(Name),
    /// The devnet's process was killed.
    #[error("devnet `{name}` has died: its process {pid} was killed")]
    Died { name: Name, pid: u32 },
    /// The devnet's process has not recorded its address yet.
    #[error("devnet `{0}` is starting and does not answer yet")]
    Starting(Name),
    /// The devnet's folder cannot be read.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Nothing answers at the address.
    #[error("nothing answers at {url}: {reason}")]
    Unreachable {
        /// The address of the request.
        url: String,
        /// The system's error.
        reason: String,
    },
    /// The answer took too long.
    #[error("{what}: no answer within {}", Plain(*.after))]
    Timeout {
        /// The path of the request.
        what: String,
        /// The request's timeout.
        after: Duration,
    },
    /// The devnet answered with an error.
    #[error("{}", .0.message)]
    Refused(ErrorDetail),
    /// The answer does not follow the API.
    #[error("{what}: the answer is not an API answer: {reason}")]
    Malformed {
        /// The path of the request.
        what: String,
        /// The defect of the answer.
        reason: String,
    },
}

impl ClientError {
    /// The devnet's own code, if it answered with an error.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(detail) => Some(detail.code),
            _ => None,
        }
    }
}

/// A block to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockAt {
    /// The block of this height.
    Height(u64),
    /// The newest block with the requested data.
    Latest,
}

impl fmt::Display for BlockAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Height(height) => height.fmt(f),
            Self::Latest => f.write_str("latest"),
        }
    }
}

/// A client of one devnet.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    /// Shared by all clones.
    base: Arc<Mutex<Url>>,
    token: Option<String>,
    node: Option<String>,
    timeout: Duration,
    /// Bounds concurrent requests, shared by all clones; `None` means no bound.
    places: Option<Arc<Semaphore>>,
}

impl Client {
    /// A client for the API at `rpc_url`, as `http://127.0.0.1:20123`.
    pub fn new(rpc_url: &str) -> Result<Self, ClientError> {
        let refused = |reason: String| ClientError::Unreachable { url: rpc_url.to_owned(), reason };
        let base = base(rpc_url)?;
        let http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT);
        // Reading the system's certificates takes longer than most requests.
        let http = if base.scheme() == "http" { http.tls_certs_only([]) } else { http }
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let base = Arc::new(Mutex::new(base));
        let timeout = REQUEST_TIMEOUT;
        Ok(Self { http, base, token: None, node: None, timeout, places: None })
    }

    /// A client for the running devnet in `home`, with its token.
    pub fn of_devnet(home: &DevnetHome) -> Result<Self, ClientError> {
        let record = match home.state()? {
            DevnetState::Absent => return Err(ClientError::NoSuchDevnet(home.name().clone())),
            DevnetState::Stopped => return Err(ClientError::NotRunning(home.name().clone())),
            DevnetState::Died(record) => {
                return Err(ClientError::Died { name: home.name().clone(), pid: record.pid });
            }
            DevnetState::Starting { .. } => return Err(ClientError::Starting(home.name().clone())),
            DevnetState::Running(record) => record,
        };
        Ok(Self::new(&record.rpc_url)?.with_token(home.token()?))
    }

    /// Sends requests to this address from now on, also from all clones: a devnet may have another
    /// address after a restart.
    pub fn move_to(&self, rpc_url: &str) -> Result<(), ClientError> {
        *self.base.lock() = base(rpc_url)?;
        Ok(())
    }

    /// Shows this token with requests that change state.
    pub fn with_token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Sends reads to this validator instead of any, and transactions only to it.
    pub fn with_node(self, node: Option<String>) -> Self {
        Self { node, ..self }
    }

    /// Sets the timeout of each request.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Limits the number of concurrent requests, including those of its clones; others wait. Each
    /// request keeps its connection for the next one, and a server has a limited number of
    /// connections.
    pub fn at_most(self, requests: usize) -> Self {
        Self { places: Some(Arc::new(Semaphore::new(requests))), ..self }
    }

    /// The devnet at a glance.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.get(&["status"], &()).await
    }

    /// The newest finalized and executed block.
    pub async fn head(&self) -> Result<Head, ClientError> {
        self.get(&["chain", "head"], &()).await
    }

    /// Lifts the pace of the chain for a number of blocks, and at most for the time `within`.
    pub async fn advance(&self, blocks: u64, within: Duration) -> Result<Advance, ClientError> {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.post(&["chain", "advance"], &AdvanceRequest { blocks, within_ms }).await
    }

    /// The chain's parameters and limits that a signer has to know.
    pub async fn parameters(&self) -> Result<Parameters, ClientError> {
        self.get(&["chain", "parameters"], &()).await
    }

    /// Every governed parameter.
    pub async fn governance(&self) -> Result<Vec<GovernedParameter>, ClientError> {
        self.get(&["chain", "governance"], &()).await
    }

    /// A proof of the state's value under a key.
    pub async fn prove(&self, kind: &str, query: &ProofQuery) -> Result<StateProof, ClientError> {
        self.get(&["chain", "proofs", kind], query).await
    }

    pub async fn block(&self, at: BlockAt) -> Result<Block, ClientError> {
        self.get(&["chain", "blocks", &at.to_string()], &()).await
    }

    /// A block and its certificate, as bytes and as fields.
    pub async fn evidence(&self, at: BlockAt) -> Result<Evidence, ClientError> {
        self.get(&["chain", "blocks", &at.to_string(), "evidence"], &()).await
    }

    /// A page of blocks and their certificates, as bytes.
    pub async fn evidence_page(&self, query: &EvidenceQuery) -> Result<EvidencePage, ClientError> {
        self.get(&["chain", "evidence"], query).await
    }

    /// A transaction and its receipt, by hash.
    pub async fn transaction(&self, hash: &str) -> Result<Transaction, ClientError> {
        self.get(&["chain", "transactions", hash], &()).await
    }

    /// A page of events.
    pub async fn events(&self, query: &EventQuery) -> Result<EventPage, ClientError> {
        self.get(&["chain", "events"], query).await
    }

    /// The blocks from `from` on, or from the next one, as they become final.
    pub fn follow(&self, from: Option<u64>) -> EventStream {
        EventStream::new(self.clone(), StreamQuery { from })
    }

    pub async fn accounts(&self) -> Result<Vec<Account>, ClientError> {
        self.get(&["accounts"], &()).await
    }

    /// Gives an account a name.
    pub async fn name_account(&self, name: &str, address: Address) -> Result<Account, ClientError> {
        let request = AccountRequest { name: name.to_owned(), address: address.into() };
        self.post(&["accounts"], &request).await
    }

    /// Gives an actor, a timer or a job a name; without an id, only checks whether the name is
    /// free.
    pub async fn give_name(&self, request: &NameRequest) -> Result<NameRequest, ClientError> {
        self.post(&["names"], request).await
    }

    /// An account, by name or address.
    pub async fn account(&self, account: &str) -> Result<Account, ClientError> {
        self.get(&["accounts", account], &()).await
    }

    /// Submits a signed transaction to the mempools of all validators, or of the one set by
    /// [`Self::with_node`].
    pub async fn submit(
        &self,
        request: &TransactionRequest,
    ) -> Result<TransactionAccepted, ClientError> {
        self.post_to(&["transactions"], &NodeQuery { node: self.node.clone() }, request).await
    }

    /// Every runner, in registry order.
    pub async fn runners(&self) -> Result<Vec<Runner>, ClientError> {
        self.get(&["runners"], &()).await
    }

    /// A runner, by name or address.
    pub async fn runner(&self, runner: &str) -> Result<Runner, ClientError> {
        self.get(&["runners", runner], &()).await
    }

    /// The capacity for jobs of a runner of the devnet's process.
    pub async fn runner_load(&self, runner: &str) -> Result<RunnerLoad, ClientError> {
        let path = ["runners", runner, "backpressure"];
        // With the token, because a runner in a separate process requires it.
        let request = self.request(Method::GET, &path, &()).timeout(self.timeout);
        self.answer(&path, self.authorized(request)).await
    }

    /// Limits the number of jobs that a runner takes at a time.
    pub async fn limit_runner(&self, runner: &str, max: u32) -> Result<RunnerLoad, ClientError> {
        let request = LimitRequest { max_concurrent: max };
        self.post(&["runners", runner, "backpressure"], &request).await
    }

    /// Withdraws registered abilities of a runner for now, or restores them.
    pub async fn change_capabilities(
        &self,
        runner: &str,
        request: &CapabilitiesRequest,
    ) -> Result<RunnerLoad, ClientError> {
        self.post(&["runners", runner, "capabilities"], request).await
    }

    /// Pauses a runner, so that it takes no new jobs.
    pub async fn pause_runner(&self, runner: &str) -> Result<RunnerLoad, ClientError> {
        self.post(&["runners", runner, "pause"], &()).await
    }

    /// Resumes a paused runner.
    pub async fn resume_runner(&self, runner: &str) -> Result<RunnerLoad, ClientError> {
        self.post(&["runners", runner, "resume"], &()).await
    }

    /// Starts a stopped runner of the devnet's process.
    pub async fn start_runner(&self, runner: &str) -> Result<RunnerLoad, ClientError> {
        self.post(&["runners", runner, "start"], &()).await
    }

    /// Stops a runner.
    pub async fn stop_runner(&self, runner: &str) -> Result<RunnerLoad, ClientError> {
        self.post(&["runners", runner, "stop"], &()).await
    }

    /// Every validator, in the set's order.
    pub async fn validators(&self) -> Result<Vec<Validator>, ClientError> {
        self.get(&["validators"], &()).await
    }

    /// A validator, by name or address.
    pub async fn validator(&self, validator: &str) -> Result<Validator, ClientError> {
        self.get(&["validators", validator], &()).await
    }

    /// Stops a validator.
    pub async fn stop_validator(&self, validator: &str) -> Result<Validator, ClientError> {
        self.post(&["validators", validator, "stop"], &()).await
    }

    /// Starts a stopped validator.
    pub async fn start_validator(&self, validator: &str) -> Result<Validator, ClientError> {
        self.post(&["validators", validator, "start"], &()).await
    }

    /// Restarts a validator, running or not, without its stored chain, which it fetches from the
    /// others.
    pub async fn resync_validator(&self, validator: &str) -> Result<Validator, ClientError> {
        self.post(&["validators", validator, "resync"], &()).await
    }

    /// Starts a validator that follows the chain; `None` picks any free name.
    pub async fn add_validator(&self, name: Option<&str>) -> Result<Validator, ClientError> {
        let request = JoinRequest { name: name.map(str::to_owned) };
        self.post(&["validators"], &request).await
    }

    /// Stops and removes a validator that is in no committee.
    pub async fn remove_validator(&self, validator: &str) -> Result<Left, ClientError> {
        self.post(&["validators", validator, "leave"], &()).await
    }

    /// The faults in force, the oldest first.
    pub async fn faults(&self) -> Result<Vec<Fault>, ClientError> {
        self.get(&["faults"], &()).await
    }

    /// Injects a fault.
    pub async fn lay_fault(&self, request: &FaultRequest) -> Result<Fault, ClientError> {
        self.post(&["faults"], request).await
    }

    /// Heals every fault, the one with a number, or those on a node; returns the healed faults.
    pub async fn heal_faults(&self, which: Option<&str>) -> Result<Vec<Fault>, ClientError> {
        let path = [&["faults"], which.as_slice()].concat();
        let request = self.request(Method::DELETE, &path, &()).timeout(self.timeout);
        self.answer(&path, self.authorized(request)).await
    }

    /// Actors, newest first.
    pub async fn actors(&self, query: &ActorQuery) -> Result<Vec<ActorSummary>, ClientError> {
        self.get(&["actors"], query).await
    }

    /// An actor, by its address or the beginning of it, and a page of its store.
    pub async fn actor(&self, actor: &str, query: &StoreQuery) -> Result<Actor, ClientError> {
        self.get(&["actors", actor], query).await
    }

    /// Lines of an actor's log, the oldest first.
    pub async fn actor_log(&self, actor: &str, query: &LogQuery) -> Result<ActorLog, ClientError> {
        self.get(&["actors", actor, "logs"], query).await
    }

    /// The effects that a call of an actor would have.
    pub async fn dry_run(
        &self,
        actor: &str,
        request: &DryRunRequest,
    ) -> Result<DryRun, ClientError> {
        let node = NodeQuery { node: self.node.clone() };
        self.post_to(&["actors", actor, "dry-run"], &node, request).await
    }

    /// Jobs, newest first.
    pub async fn jobs(&self, query: &JobQuery) -> Result<Vec<JobSummary>, ClientError> {
        self.get(&["jobs"], query).await
    }

    /// A job, by its id, or `latest`.
    pub async fn job(&self, job: &str) -> Result<Job, ClientError> {
        self.get(&["jobs", job], &()).await
    }

    /// A job's verified result.
    pub async fn job_result(&self, job: &str) -> Result<JobResult, ClientError> {
        self.get(&["jobs", job, "result"], &()).await
    }

    /// The dispatches of a job by each running validator, and their outcomes.
    pub async fn job_dispatches(&self, job: &str) -> Result<Vec<JobDispatch>, ClientError> {
        self.get(&["jobs", job, "dispatches"], &()).await
    }

    /// How a job's runners were drawn.
    pub async fn explain(
        &self,
        job: &str,
        query: &ExplanationQuery,
    ) -> Result<Explanation, ClientError> {
        self.get(&["jobs", job, "explain"], query).await
    }

    /// Tasks on the chain, newest first.
    pub async fn chain_tasks(&self, query: &ChainTaskQuery) -> Result<Vec<ChainTask>, ClientError> {
        self.get(&["tasks"], query).await
    }

    /// A task on the chain, by its id, or `latest`.
    pub async fn chain_task(&self, task: &str) -> Result<ChainTask, ClientError> {
        self.get(&["tasks", task], &()).await
    }

    /// Timers: those that wait by their heights, then those that have ended, the newest end first.
    pub async fn timers(&self, query: &TimerQuery) -> Result<Vec<TimerSummary>, ClientError> {
        self.get(&["timers"], query).await
    }

    /// A timer, by its id or enough of the beginning of it, or `latest`.
    pub async fn timer(&self, timer: &str) -> Result<Timer, ClientError> {
        self.get(&["timers", timer], &()).await
    }

    /// The calendar queue, tier by tier.
    pub async fn timer_queue(&self) -> Result<TimerQueue, ClientError> {
        self.get(&["timers", "queue"], &()).await
    }

    /// A page of the timers that are due in the next block.
    pub async fn timers_due(&self, query: &DueQuery) -> Result<DueTimers, ClientError> {
        self.get(&["timers", "due"], query).await
    }

    /// The bid that a timer's agent would make in the next block.
    pub async fn timer_bid(&self, timer: &str) -> Result<TimerQuote, ClientError> {
        self.get(&["timers", timer, "bid"], &()).await
    }

    /// The wei burned since genesis, by purpose.
    pub async fn burned(&self) -> Result<Burned, ClientError> {
        self.get(&["chain", "burned"], &()).await
    }

    /// Reports of blocks' timer lanes, oldest first.
    pub async fn timer_fees(&self, query: &LaneQuery) -> Result<Vec<LaneBlock>, ClientError> {
        self.get(&["timers", "fees"], query).await
    }

    /// The weights of accounts in the next block's timer lane.
    pub async fn timer_fairness(&self) -> Result<Fairness, ClientError> {
        self.get(&["timers", "fairness"], &()).await
    }

    pub async fn presence(&self, at: BlockAt) -> Result<Presence, ClientError> {
        self.get(&["presence", &at.to_string()], &()).await
    }

    /// The votes from which P(H) is derived.
    pub async fn votes(&self, at: BlockAt) -> Result<Votes, ClientError> {
        self.get(&["presence", &at.to_string(), "votes"], &()).await
    }

    /// The choices of draws with and without the presence filter.
    pub async fn compare_presence(
        &self,
        query: &ComparisonQuery,
    ) -> Result<PresenceComparison, ClientError> {
        self.get(&["presence", "compare"], query).await
    }

    /// Every pool of runners.
    pub async fn pools(&self) -> Result<Vec<Pool>, ClientError> {
        self.get(&["pools"], &()).await
    }

    /// A pool and its members.
    pub async fn pool(&self, pool: &str) -> Result<Pool, ClientError> {
        self.get(&["pools", pool], &()).await
    }

    /// Every MRU record.
    pub async fn mru_records(&self) -> Result<Vec<MruRecord>, ClientError> {
        self.get(&["mru"], &()).await
    }

    /// The MRU record of a submitter, by name or address, for a kind of job.
    pub async fn mru(&self, submitter: &str, kind: &str) -> Result<MruRecord, ClientError> {
        self.get(&["mru", submitter, kind], &()).await
    }

    /// Submits a runner's heartbeat to the mempool. It is signed, so it needs no token.
    pub async fn heartbeat(
        &self,
        runner: &str,
        heartbeat: &SignedTransaction,
    ) -> Result<TransactionAccepted, ClientError> {
        let body = TransactionRequest { transaction: Bytes(heartbeat.to_bytes()).into() };
        self.post_signed(&["runner", runner, "heartbeat"], &body).await
    }

    /// The open jobs assigned to a runner.
    pub async fn polled_jobs(&self, runner: &str) -> Result<PolledJobs, ClientError> {
        let path = ["runner", runner, "jobs"];
        let request = self.http.get(self.url(&path)).timeout(self.timeout);
        self.answer(&path, request).await
    }

    /// Submits a runner's result. It is signed, so it needs no token.
    pub async fn hand_in(
        &self,
        runner: &str,
        result: &ResultRequest,
    ) -> Result<ResultAccepted, ClientError> {
        self.post_signed(&["runner", runner, "job_result"], result).await
    }

    /// Submits a runner's commitment to its result of a committee's job, also without a token.
    pub async fn commit(
        &self,
        runner: &str,
        commit: &CommitRequest,
    ) -> Result<ResultAccepted, ClientError> {
        self.post_signed(&["runner", runner, "job_commit"], commit).await
    }

    /// Submits a runner's report that it cannot do a job, also without a token.
    pub async fn report_failure(
        &self,
        runner: &str,
        failure: &FailureRequest,
    ) -> Result<ResultAccepted, ClientError> {
        self.post_signed(&["runner", runner, "job_failure"], failure).await
    }

    /// Posts a body that a runner has signed, without the token.
    async fn post_signed<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let json = serde_json::to_vec(body).expect("requests are plain data");
        let request = self
            .http
            .post(self.url(path))
            .timeout(self.timeout)
            .header("content-type", "application/json")
            .body(json);
        self.answer(path, request).await
    }

    /// Saves the devnet as a snapshot; `None` picks a descriptive name.
    pub async fn save(&self, snapshot: Option<&str>) -> Result<Snapshot, ClientError> {
        let request = SaveRequest { snapshot: snapshot.map(str::to_owned) };
        self.post(&["snapshots"], &request).await
    }

    /// Begins to stop the devnet.
    pub async fn shutdown(&self) -> Result<Stopping, ClientError> {
        self.post(&["shutdown"], &()).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path, query).timeout(self.timeout);
        self.answer(path, request).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.post_to(path, &(), body).await
    }

    async fn post_to<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &impl Serialize,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let json = serde_json::to_vec(body).expect("requests are plain data");
        let request = self
            .request(Method::POST, path, query)
            .timeout(self.timeout)
            .header("content-type", "application/json")
            .body(json);
        self.answer(path, self.authorized(request)).await
    }

    /// Adds the token to a request, if the client has one.
    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// A request for `/v1/<path>`, with each step escaped because it often comes from a user.
    fn request(&self, method: Method, path: &[&str], query: &impl Serialize) -> RequestBuilder {
        let mut url = self.url(&[&["v1"], path].concat());
        let query = serde_json::to_value(query).expect("queries are plain data");
        let fields = query.as_object().into_iter().flatten();
        for (name, value) in fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            url.query_pairs_mut().append_pair(name, &text);
        }
        if let Some(node) = self.node.as_ref().filter(|_| method == Method::GET) {
            url.query_pairs_mut().append_pair("node", node);
        }
        self.http.request(method, url)
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.lock().clone();
        url.path_segments_mut()
            .expect("new() accepts only addresses that have a path")
            .pop_if_empty()
            .extend(path);
        url
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        path: &[&str],
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let body = self.answered(path, request).await?;
        serde_json::from_slice(&body).map_err(|error| malformed(path, &error))
    }

    /// The body of a successful answer.
    async fn answered(
        &self,
        path: &[&str],
        request: RequestBuilder,
    ) -> Result<Vec<u8>, ClientError> {
        let _place = match &self.places {
            Some(places) => Some(places.acquire().await.expect("the semaphore is never closed")),
            None => None,
        };
        let response = request.send().await.map_err(|error| self.failure(path, &error))?;
        let response = self.accepted(path, response).await?;
        self.body(path, response).await
    }

    /// The response, if it is a success; otherwise its error.
    async fn accepted(&self, path: &[&str], response: Response) -> Result<Response, ClientError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.body(path, response).await?;
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Err(ClientError::Refused(body.error)),
            Err(_) => Err(malformed(path, &format_args!("status {status} without an error body"))),
        }
    }

    async fn body(&self, path: &[&str], mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.failure(path, &e))? {
            if body.len() + chunk.len() > ANSWER_LIMIT {
                return Err(malformed(path, &format_args!("longer than {ANSWER_LIMIT} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn failure(&self, path: &[&str], error: &reqwest::Error) -> ClientError {
        if error.is_timeout() && !error.is_connect() {
            return ClientError::Timeout { what: describe(path), after: self.timeout };
        }
        ClientError::Unreachable { url: self.base.lock().to_string(), reason: root_cause(error) }
    }
}

/// Parses the base address of requests.
fn base(rpc_url: &str) -> Result<Url, ClientError> {
    let refused = |reason: String| ClientError::Unreachable { url: rpc_url.to_owned(), reason };
    let base = Url::parse(rpc_url).map_err(|error| refused(error.to_string()))?;
    match base.cannot_be_a_base() {
        true => Err(refused("not an http address".to_owned())),
        false => Ok(base),
    }
}

fn describe(path: &[&str]) -> String {
    format!("/v1/{}", path.join("/"))
}

fn malformed(path: &[&str], reason: &dyn fmt::Display) -> ClientError {
    ClientError::Malformed { what: describe(path), reason: reason.to_string() }
}

/// The innermost error: the outer ones only repeat the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
