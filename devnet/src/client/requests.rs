//! The requests, one per route of the API.

use super::{BlockAt, CHANGE_TIMEOUT, Client, ClientError, EventStream, malformed};
use crate::types::{
    Account, AccountRequest, Actor, ActorLog, ActorQuery, ActorSummary, Advance, AdvanceRequest,
    AnswerRequest, Automine, Block, Burned, Bytes, CapabilitiesRequest, ChainTask, ChainTaskQuery,
    CommitRequest, ComparisonQuery, ConfigureRequest, ConnectedRunner, DryRun, DryRunRequest,
    DueQuery, DueTimers, EventPage, EventQuery, Evidence, EvidencePage, EvidenceQuery, Explanation,
    ExplanationQuery, FailureRequest, Fairness, Fault, FaultOrders, FaultRequest,
    GovernedParameter, Head, Job, JobDispatch, JobQuery, JobResult, JobSummary, JoinRequest,
    LaneBlock, LaneQuery, Left, LimitRequest, LogQuery, MruRecord, NameRequest, NodePeers,
    NodeQuery, OfPipelineQuery, Parameters, Pipeline, PipelineAccepted, PipelineQuery,
    PipelineRequest, PipelineSummary, PolledJobs, Pool, Presence, PresenceComparison, ProofQuery,
    ResultAccepted, ResultRequest, RetryRequest, Rollback, Runner, RunnerLoad, SaveRequest,
    Snapshot, SpeculationEvent, SpeculationEventPage, SpeculationEventQuery, SpeculationOption,
    SpeculationStatus, SpeculativeCommitment, SpeculativeProof, StateProof, StateSnapshot, Status,
    Stopping, StoreQuery, StreamQuery, TaskDetail, TasksCancelled, TasksRetried, Timer, TimerQuery,
    TimerQueue, TimerQuote, TimerSummary, Transaction, TransactionAccepted, TransactionRequest,
    UpgradeRequest, Validator, Votes,
};
use cowboy_engine::{chain::SignedTransaction, primitives::Address};
use reqwest::Method;
use std::time::Duration;

/// Rows `name(arguments) -> answer = method path, query or body`: a method of [`Client`] each, with
/// its path below `/v1`.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $answer:ty
        = $method:ident $path:expr, $with:expr;)*) => {
        impl Client {
            $($(#[$doc])*
            pub async fn $name(&self, $($argument: $type),*) -> Result<$answer, ClientError> {
                self.$method(&$path, $with).await
            })*
        }
    };
}

requests! {
    /// The devnet at a glance.
    status() -> Status = get ["status"], &();
    /// The newest finalized and executed block.
    head() -> Head = get ["chain", "head"], &();
    /// The chain's parameters and limits that a signer has to know.
    parameters() -> Parameters = get ["chain", "parameters"], &();
    /// Every governed parameter.
    governance() -> Vec<GovernedParameter> = get ["chain", "governance"], &();
    /// A proof of the state's value under a key.
    prove(kind: &str, query: &ProofQuery) -> StateProof = get ["chain", "proofs", kind], query;
    block(at: BlockAt) -> Block = get ["chain", "blocks", &at.to_string()], &();
    /// A block and its certificate, as bytes and as fields.
    evidence(at: BlockAt) -> Evidence = get ["chain", "blocks", &at.to_string(), "evidence"], &();
    /// A page of blocks and their certificates, as bytes.
    evidence_page(query: &EvidenceQuery) -> EvidencePage = get ["chain", "evidence"], query;
    /// A transaction and its receipt, by hash.
    transaction(hash: &str) -> Transaction = get ["chain", "transactions", hash], &();
    /// A page of events.
    events(query: &EventQuery) -> EventPage = get ["chain", "events"], query;
    accounts() -> Vec<Account> = get ["accounts"], &();
    /// Gives an account a name.
    name_account(name: &str, address: Address) -> Account
        = post ["accounts"], &AccountRequest { name: name.to_owned(), address: address.into() };
    /// Gives an actor, a timer or a job a name; without an id, only checks whether the name is
    /// free.
    give_name(request: &NameRequest) -> NameRequest = post ["names"], request;
    /// An account, by name or address.
    account(account: &str) -> Account = get ["accounts", account], &();
    /// Every runner, in registry order.
    runners() -> Vec<Runner> = get ["runners"], &();
    /// A runner, by name or address.
    runner(runner: &str) -> Runner = get ["runners", runner], &();
    /// Limits the number of jobs that a runner takes at a time.
    limit_runner(runner: &str, max: u32) -> RunnerLoad
        = post ["runners", runner, "backpressure"], &LimitRequest { max_concurrent: max };
    /// Withdraws registered abilities of a runner for now, or restores them.
    change_capabilities(runner: &str, request: &CapabilitiesRequest) -> RunnerLoad
        = post ["runners", runner, "capabilities"], request;
    /// Gives a job that waits at a runner its result.
    answer_job(runner: &str, request: &AnswerRequest) -> RunnerLoad
        = post ["runners", runner, "answer"], request;
    /// Pauses a runner, so that it takes no new jobs.
    pause_runner(runner: &str) -> RunnerLoad = post ["runners", runner, "pause"], &();
    /// Resumes a paused runner.
    resume_runner(runner: &str) -> RunnerLoad = post ["runners", runner, "resume"], &();
    /// Starts a stopped runner of the devnet's process.
    start_runner(runner: &str) -> RunnerLoad = post ["runners", runner, "start"], &();
    /// Stops a runner.
    stop_runner(runner: &str) -> RunnerLoad = post ["runners", runner, "stop"], &();
    /// Every validator, in the set's order.
    validators() -> Vec<Validator> = get ["validators"], &();
    /// A validator, by name or address.
    validator(validator: &str) -> Validator = get ["validators", validator], &();
    /// A running validator's connections to runners.
    validator_links(validator: &str) -> Vec<ConnectedRunner> = get ["validators", validator, "links"], &();
    /// Stops a validator.
    stop_validator(validator: &str) -> Validator = change ["validators", validator, "stop"], &();
    /// Starts a stopped validator.
    start_validator(validator: &str) -> Validator = change ["validators", validator, "start"], &();
    /// Restarts a validator, running or not, without its stored chain, which it fetches from the
    /// others.
    resync_validator(validator: &str) -> Validator = change ["validators", validator, "resync"], &();
    /// Tells a node in a process of its own where its chain's validators are.
    set_peers(peers: &NodePeers) -> NodePeers = post ["peers"], peers;
    /// Lets a validator's own process run the program at this absolute path.
    upgrade_validator(validator: &str, binary: &str) -> Validator
        = change ["validators", validator, "upgrade"], &UpgradeRequest { binary: binary.to_owned() };
    /// Starts a validator that follows the chain; `None` picks any free name.
    add_validator(name: Option<&str>) -> Validator
        = change ["validators"], &JoinRequest { name: name.map(str::to_owned) };
    /// Stops and removes a validator that is in no committee.
    remove_validator(validator: &str) -> Left = change ["validators", validator, "leave"], &();
    /// The faults in force, the oldest first.
    faults() -> Vec<Fault> = get ["faults"], &();
    /// Injects a fault.
    lay_fault(request: &FaultRequest) -> Fault = change ["faults"], request;
    /// Tells a node in a process of its own which faults to carry out; returns them.
    carry_out(orders: &FaultOrders) -> Vec<Fault> = post ["faults", "orders"], orders;
    /// Actors, newest first.
    actors(query: &ActorQuery) -> Vec<ActorSummary> = get ["actors"], query;
    /// An actor, by its address or the beginning of it, and a page of its store.
    actor(actor: &str, query: &StoreQuery) -> Actor = get ["actors", actor], query;
    /// Lines of an actor's log, the oldest first.
    actor_log(actor: &str, query: &LogQuery) -> ActorLog = get ["actors", actor, "logs"], query;
    /// Jobs, newest first.
    jobs(query: &JobQuery) -> Vec<JobSummary> = get ["jobs"], query;
    /// A job, by its id, or `latest`.
    job(job: &str) -> Job = get ["jobs", job], &();
    /// A job's verified result.
    job_result(job: &str) -> JobResult = get ["jobs", job, "result"], &();
    /// The dispatches of a job by each running validator, and their outcomes.
    job_dispatches(job: &str) -> Vec<JobDispatch> = get ["jobs", job, "dispatches"], &();
    /// How a job's runners were drawn.
    explain(job: &str, query: &ExplanationQuery) -> Explanation
        = get ["jobs", job, "explain"], query;
    /// Tasks on the chain, newest first.
    chain_tasks(query: &ChainTaskQuery) -> Vec<ChainTask> = get ["tasks"], query;
    /// A task on the chain, by its id, or `latest`.
    chain_task(task: &str) -> ChainTask = get ["tasks", task], &();
    /// Timers: those that wait by their heights, then those that have ended, the newest end first.
    timers(query: &TimerQuery) -> Vec<TimerSummary> = get ["timers"], query;
    /// A timer, by its id or enough of the beginning of it, or `latest`.
    timer(timer: &str) -> Timer = get ["timers", timer], &();
    /// The calendar queue, tier by tier.
    timer_queue() -> TimerQueue = get ["timers", "queue"], &();
    /// A page of the timers that are due in the next block.
    timers_due(query: &DueQuery) -> DueTimers = get ["timers", "due"], query;
    /// The bid that a timer's agent would make in the next block.
    timer_bid(timer: &str) -> TimerQuote = get ["timers", timer, "bid"], &();
    /// The states that the chain keeps to return to, the oldest first.
    state_snapshots() -> Vec<StateSnapshot> = get ["chain", "snapshots"], &();
    /// The wei burned since genesis, by purpose.
    burned() -> Burned = get ["chain", "burned"], &();
    /// Reports of blocks' timer lanes, oldest first.
    timer_fees(query: &LaneQuery) -> Vec<LaneBlock> = get ["timers", "fees"], query;
    /// The weights of accounts in the next block's timer lane.
    timer_fairness() -> Fairness = get ["timers", "fairness"], &();
    presence(at: BlockAt) -> Presence = get ["presence", &at.to_string()], &();
    /// The votes from which P(H) is derived.
    votes(at: BlockAt) -> Votes = get ["presence", &at.to_string(), "votes"], &();
    /// The choices of draws with and without the presence filter.
    compare_presence(query: &ComparisonQuery) -> PresenceComparison
        = get ["presence", "compare"], query;
    /// Every pool of runners.
    pools() -> Vec<Pool> = get ["pools"], &();
    /// A pool and its members.
    pool(pool: &str) -> Pool = get ["pools", pool], &();
    /// Every MRU record.
    mru_records() -> Vec<MruRecord> = get ["mru"], &();
    /// The MRU record of a submitter, by name or address, for a kind of job.
    mru(submitter: &str, kind: &str) -> MruRecord = get ["mru", submitter, kind], &();
    /// Submits a runner's result. It is signed, so it needs no token.
    hand_in(runner: &str, result: &ResultRequest) -> ResultAccepted
        = post_signed ["runner", runner, "job_result"], result;
    /// Submits a runner's commitment to its result of a committee's job, also without a token.
    commit(runner: &str, commit: &CommitRequest) -> ResultAccepted
        = post_signed ["runner", runner, "job_commit"], commit;
    /// Submits a runner's report that it cannot do a job, also without a token.
    report_failure(runner: &str, failure: &FailureRequest) -> ResultAccepted
        = post_signed ["runner", runner, "job_failure"], failure;
    /// Saves the devnet as a snapshot; `None` picks a descriptive name.
    save(snapshot: Option<&str>) -> Snapshot
        = post ["snapshots"], &SaveRequest { snapshot: snapshot.map(str::to_owned) };
    /// Begins to stop the devnet.
    shutdown() -> Stopping = post ["shutdown"], &();

    /// The state of speculation.
    speculation() -> SpeculationStatus = get ["speculation"], &();
    /// Submits a pipeline.
    submit_pipeline(pipeline: &PipelineRequest) -> PipelineAccepted
        = post ["speculation", "pipelines"], pipeline;
    /// Pipelines, newest first.
    pipelines(query: &PipelineQuery) -> Vec<PipelineSummary>
        = get ["speculation", "pipelines"], query;
    /// A pipeline and its graph.
    pipeline(pipeline: u64) -> Pipeline
        = get ["speculation", "pipelines", &pipeline.to_string()], &();
    /// Cancels every task of a pipeline that is not final.
    cancel_pipeline(pipeline: u64) -> TasksCancelled
        = post ["speculation", "pipelines", &pipeline.to_string(), "cancel"], &();
    /// Retries tasks of a pipeline that failed or were rolled back.
    retry_tasks(pipeline: u64, request: &RetryRequest) -> TasksRetried
        = post ["speculation", "pipelines", &pipeline.to_string(), "retry"], request;
    /// A task of a pipeline, with its output.
    task(pipeline: u64, task: &str) -> TaskDetail
        = get ["speculation", "tasks", &pipeline.to_string(), task], &();
    /// Cancels a task, and those that depend on it.
    cancel_task(pipeline: u64, task: &str) -> TasksCancelled
        = post ["speculation", "tasks", &pipeline.to_string(), task, "cancel"], &();
    /// Commitments to outputs.
    commitments(query: &OfPipelineQuery) -> Vec<SpeculativeCommitment>
        = get ["speculation", "commitments"], query;
    /// Proofs that are being made or have been made.
    proofs(query: &OfPipelineQuery) -> Vec<SpeculativeProof> = get ["speculation", "proofs"], query;
    /// Rollbacks that were carried out, newest first.
    rollbacks(query: &OfPipelineQuery) -> Vec<Rollback> = get ["speculation", "rollbacks"], query;
    /// A page of events from the components of speculation, oldest first.
    speculation_events(query: &SpeculationEventQuery) -> SpeculationEventPage
        = get ["speculation", "events"], query;
    /// Every option of speculation.
    speculation_options() -> Vec<SpeculationOption> = get ["speculation", "config"], &();
    /// Changes options of speculation, all of them or none; returns every option after the change.
    configure_speculation(request: &ConfigureRequest) -> Vec<SpeculationOption>
        = post ["speculation", "config"], request;
}

impl Client {
    /// Lifts the pace of the chain for a number of blocks, and at most for the time `within`.
    pub async fn advance(&self, blocks: u64, within: Duration) -> Result<Advance, ClientError> {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.post(&["chain", "advance"], &AdvanceRequest { blocks, within_ms }).await
    }

    /// Has transactions get blocks at once, or no longer.
    pub async fn automine(&self, on: bool) -> Result<Automine, ClientError> {
        self.post(&["chain", "automine"], &Automine { on }).await
    }

    /// The blocks from `from` on, or from the next one, as they become final.
    pub fn follow(&self, from: Option<u64>) -> EventStream {
        EventStream::new(self.clone(), StreamQuery { from })
    }

    /// Submits a signed transaction to the mempools of all validators, or of the one set by
    /// [`Self::with_node`].
    pub async fn submit(
        &self,
        request: &TransactionRequest,
    ) -> Result<TransactionAccepted, ClientError> {
        self.post_to(&["transactions"], &NodeQuery { node: self.node.clone() }, request).await
    }

    /// The capacity for jobs of a runner of the devnet's process.
    pub async fn runner_load(&self, runner: &str) -> Result<RunnerLoad, ClientError> {
        let path = ["runners", runner, "backpressure"];
        // With the token, because a runner in a separate process requires it.
        let request = self.request(Method::GET, &path, &()).timeout(self.timeout);
        self.answer(&path, self.authorized(request)).await
    }

    /// Heals every fault, the one with a number, or those on a node; returns the healed faults.
    pub async fn heal_faults(&self, which: Option<&str>) -> Result<Vec<Fault>, ClientError> {
        let path = [&["faults"], which.as_slice()].concat();
        let limit = CHANGE_TIMEOUT.max(self.timeout);
        let request = self.request(Method::DELETE, &path, &()).timeout(limit);
        self.answer(&path, self.authorized(request)).await
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

    /// Events from the components as they happen, from the number in the query or from now on.
    pub fn follow_speculation(
        &self,
        query: SpeculationEventQuery,
    ) -> EventStream<SpeculationEvent> {
        EventStream::new(self.clone(), query)
    }

    /// The component of the machine that runs the chain's actors in Python.
    pub async fn machine(&self) -> Result<Vec<u8>, ClientError> {
        let path = ["machine"];
        let limit = CHANGE_TIMEOUT.max(self.timeout);
        let request = self.request(Method::GET, &path, &()).timeout(limit);
        self.answered(&path, request).await
    }

    /// The metrics as OpenMetrics text.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let path = ["metrics"];
        let request = self.http.get(self.url(&path)).timeout(self.timeout);
        let body = self.answered(&path, request).await?;
        String::from_utf8(body).map_err(|error| malformed(&path, &error))
    }
}
