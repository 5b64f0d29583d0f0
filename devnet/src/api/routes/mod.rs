//! The routes: one table from which the router, the OpenAPI document and their test are built.
//!
//! A handler of a read is a plain function from a [`View`] (one validator's chain) or a [`Glance`]
//! (the whole devnet) and the request's parameters to the answer. It runs on a thread that may
//! block.

mod account;
mod actor;
mod backpressure;
pub(super) mod chain;
mod comparison;
mod control;
mod deferral;
mod due;
mod evidence;
mod fault;
mod job;
mod metrics;
mod mru;
pub(super) mod names;
mod polling;
mod pool;
mod presence;
mod proof;
mod runner;
mod selection;
pub(super) mod speculation;
mod task;
mod timer;
mod validator;

use super::{
    error::ApiError,
    events,
    extract::{InPath, InQuery},
    openapi,
    server::ServerState,
    types::{
        Account, AccountRequest, Actor, ActorLog, ActorQuery, ActorSummary, Advance,
        AdvanceRequest, Block, BlockNotice, Burned, CapabilitiesRequest, ChainTask, ChainTaskQuery,
        CommitRequest, ComparisonQuery, DryRun, DryRunRequest, DueQuery, DueTimers, EventPage,
        EventQuery, Evidence, EvidencePage, EvidenceQuery, Explanation, ExplanationQuery,
        FailureRequest, Fairness, Fault, FaultRequest, GovernedParameter, Head, Job, JobDispatch,
        JobQuery, JobResult, JobSummary, JoinRequest, LaneBlock, LaneQuery, Left, LimitRequest,
        LogQuery, MruRecord, NameRequest, NodeQuery, Parameters, PolledJobs, Pool, Presence,
        PresenceComparison, ProofQuery, ResultAccepted, ResultRequest, Runner, RunnerLoad,
        SaveRequest, Snapshot, StateProof, Status, Stopping, StoreQuery, StreamQuery, Timer,
        TimerQuery, TimerQueue, TimerQuote, TimerSummary, Transaction, TransactionAccepted,
        TransactionRequest, Validator, Votes,
    },
    view::{Glance, View},
};
use axum::{
    extract::State,
    http::{Method, header::CONTENT_TYPE},
    routing::{MethodRouter, delete, get, post},
};
use openapi::{Operation, RouteAnswer};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;
use utoipa::IntoParams;

/// The route that saves a devnet, which has a longer time limit than the others.
pub(super) const SNAPSHOTS: &str = "/v1/snapshots";

/// One method of one path.
pub(super) struct Route {
    pub method: Method,
    pub path: &'static str,
    pub handler: MethodRouter<Arc<ServerState>>,
    pub operation: Operation,
}

/// Every route, in the order of the documentation.
pub(super) fn table() -> Vec<Route> {
    let mut table = speculation::table();
    table.push(metrics::route());
    table.extend(others());
    table
}

fn others() -> Vec<Route> {
    vec![
        glance(
            "/v1/status",
            "The devnet at a glance",
            RouteAnswer::one::<Status>(),
            |glance, ()| validator::status(glance),
        ),
        view(
            "/v1/chain/head",
            "The newest finalized and executed block",
            RouteAnswer::one::<Head>(),
            |view, (), Nothing {}| chain::head(view),
        ),
        view(
            "/v1/chain/parameters",
            "The chain's parameters and limits that a signer has to know",
            RouteAnswer::one::<Parameters>(),
            |view, (), Nothing {}| chain::parameters(view),
        ),
        view(
            "/v1/chain/governance",
            "The governed parameters",
            RouteAnswer::many::<GovernedParameter>(),
            |view, (), Nothing {}| timer::governance(view),
        ),
        view(
            "/v1/chain/burned",
            "The wei burned since genesis, by purpose",
            RouteAnswer::one::<Burned>(),
            |view, (), Nothing {}| Ok(chain::burned(view)),
        ),
        view(
            "/v1/chain/proofs/{subject}",
            "A proof of the state's value under a key, with header and certificate",
            RouteAnswer::one::<StateProof>(),
            |view, kind: String, query: ProofQuery| proof::prove(view, &kind, &query),
        ),
        view(
            "/v1/chain/blocks/{height}",
            "A finalized block",
            RouteAnswer::one::<Block>(),
            |view, height: String, Nothing {}| chain::block(view, &height),
        ),
        view(
            "/v1/chain/blocks/{height}/evidence",
            "A final block and its certificate, as bytes and as fields",
            RouteAnswer::one::<Evidence>(),
            |view, height: String, Nothing {}| evidence::show(view, &height),
        ),
        view(
            "/v1/chain/evidence",
            "A page of final blocks and their certificates, as bytes",
            RouteAnswer::one::<EvidencePage>(),
            |view, (), query: EvidenceQuery| evidence::page(view, &query),
        ),
        view(
            "/v1/chain/transactions/{hash}",
            "A transaction and its receipt",
            RouteAnswer::one::<Transaction>(),
            |view, hash: String, Nothing {}| chain::transaction(view, &hash),
        ),
        view(
            "/v1/chain/events",
            "A page of events; blocks are never split",
            RouteAnswer::one::<EventPage>(),
            |view, (), query: EventQuery| chain::events(view, &query),
        ),
        Route {
            method: Method::GET,
            path: "/v1/events",
            handler: get(events::events),
            operation: Operation::new(
                "Every block as it becomes final: events of type `block`, with the heights as ids; \
                 one of type `replaced` ends a stream that makes room for another",
                RouteAnswer::stream::<BlockNotice>(),
            )
            .query::<NodeQuery>()
            .query::<StreamQuery>()
            .header(
                "Last-Event-ID",
                "The height of the last block seen: the stream continues after it",
            ),
        },
        Route {
            method: Method::POST,
            path: "/v1/chain/advance",
            handler: post(control::advance),
            operation: Operation::new(
                "Lifts the pace of the chain for a number of blocks",
                RouteAnswer::accepted::<Advance>(),
            )
            .body::<AdvanceRequest>()
            .needs_token(),
        },
        view(
            "/v1/accounts",
            "The accounts, the devnet's own first, at most 10,000",
            RouteAnswer::many::<Account>(),
            |view, (), Nothing {}| account::list(view),
        ),
        Route {
            method: Method::POST,
            path: "/v1/accounts",
            handler: post(control::name_account),
            operation: Operation::new(
                "Gives an account a name on this devnet",
                RouteAnswer::created::<Account>(),
            )
            .body::<AccountRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/names",
            handler: post(control::give_name),
            operation: Operation::new(
                "Gives an actor, a timer or a job a name on this devnet",
                RouteAnswer::created::<NameRequest>(),
            )
            .body::<NameRequest>()
            .needs_token(),
        },
        view(
            "/v1/accounts/{account}",
            "An account",
            RouteAnswer::one::<Account>(),
            |view, account: String, Nothing {}| account::show(view, &account),
        ),
        Route {
            method: Method::POST,
            path: "/v1/transactions",
            handler: post(control::submit),
            operation: Operation::new(
                "Submits a signed transaction to the mempools of all validators, or of one",
                RouteAnswer::accepted::<TransactionAccepted>(),
            )
            .query::<NodeQuery>()
            .body::<TransactionRequest>()
            .needs_token(),
        },
        glance(
            "/v1/runners",
            "The runners, in registry order",
            RouteAnswer::many::<Runner>(),
            |glance, ()| runner::list(glance),
        ),
        glance(
            "/v1/runners/{runner}",
            "A registered runner and its connections",
            RouteAnswer::one::<Runner>(),
            |glance, runner: String| runner::show(glance, &runner),
        ),
        Route {
            method: Method::GET,
            path: "/v1/runners/{runner}/backpressure",
            handler: get(backpressure::show),
            operation: Operation::new(
                "The capacity for jobs of a runner of the devnet's process",
                RouteAnswer::one::<RunnerLoad>(),
            ),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/backpressure",
            handler: post(backpressure::limit),
            operation: Operation::new(
                "Limits the number of jobs that a runner takes at a time; running jobs continue",
                RouteAnswer::one::<RunnerLoad>(),
            )
            .body::<LimitRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/capabilities",
            handler: post(backpressure::change),
            operation: Operation::new(
                "Withdraws registered abilities of a runner for now, or restores them",
                RouteAnswer::one::<RunnerLoad>(),
            )
            .body::<CapabilitiesRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/pause",
            handler: post(backpressure::pause),
            operation: Operation::new(
                "Pauses a runner: it takes no new jobs and is not present",
                RouteAnswer::one::<RunnerLoad>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/resume",
            handler: post(backpressure::resume),
            operation: Operation::new("Resumes a paused runner", RouteAnswer::one::<RunnerLoad>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/start",
            handler: post(backpressure::start),
            operation: Operation::new("Starts a stopped runner", RouteAnswer::one::<RunnerLoad>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/stop",
            handler: post(backpressure::stop),
            operation: Operation::new(
                "Stops a runner: it says goodbye and gives up its jobs",
                RouteAnswer::one::<RunnerLoad>(),
            )
            .needs_token(),
        },
        glance(
            "/v1/validators",
            "The validators, in the order in which votes number them",
            RouteAnswer::many::<Validator>(),
            |glance, ()| validator::list(glance),
        ),
        glance(
            "/v1/validators/{validator}",
            "A validator, whether it runs or not",
            RouteAnswer::one::<Validator>(),
            |glance, validator: String| validator::show(glance, &validator),
        ),
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/stop",
            handler: post(control::stop),
            operation: Operation::new("Stops a running validator", RouteAnswer::one::<Validator>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/start",
            handler: post(control::start),
            operation: Operation::new(
                "Starts a stopped validator",
                RouteAnswer::one::<Validator>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/resync",
            handler: post(control::resync),
            operation: Operation::new(
                "Restarts a validator, running or not, without its stored chain",
                RouteAnswer::one::<Validator>(),
            )
            .needs_token(),
        },
        glance(
            "/v1/faults",
            "The injected faults in force, oldest first",
            RouteAnswer::many::<Fault>(),
            |glance, ()| Ok(fault::list(glance)),
        ),
        Route {
            method: Method::POST,
            path: "/v1/faults",
            handler: post(fault::lay),
            operation: Operation::new(
                "Injects a fault; one of the same kind at the same place is replaced",
                RouteAnswer::one::<Fault>(),
            )
            .body::<FaultRequest>()
            .needs_token(),
        },
        Route {
            method: Method::DELETE,
            path: "/v1/faults",
            handler: delete(fault::heal_all),
            operation: Operation::new("Heals every fault", RouteAnswer::many::<Fault>())
                .needs_token(),
        },
        Route {
            method: Method::DELETE,
            path: "/v1/faults/{fault}",
            handler: delete(fault::heal),
            operation: Operation::new(
                "Heals the fault with a number, or the faults of a node",
                RouteAnswer::many::<Fault>(),
            )
            .needs_token(),
        },
        view(
            "/v1/tasks",
            "Tasks on the chain, newest first",
            RouteAnswer::many::<ChainTask>(),
            |view, (), query: ChainTaskQuery| task::list(view, &query),
        ),
        view(
            "/v1/tasks/{task}",
            "A task on the chain",
            RouteAnswer::one::<ChainTask>(),
            |view, id: String, Nothing {}| task::show(view, &id),
        ),
        view(
            "/v1/actors",
            "Actors, newest first",
            RouteAnswer::many::<ActorSummary>(),
            |view, (), query: ActorQuery| actor::list(view, &query),
        ),
        view(
            "/v1/actors/{actor}",
            "An actor and a page of its store",
            RouteAnswer::one::<Actor>(),
            |view, actor: String, query: StoreQuery| actor::show(view, &actor, &query),
        ),
        view(
            "/v1/actors/{actor}/logs",
            "Lines and events from an actor, and the errors of failed calls",
            RouteAnswer::one::<ActorLog>(),
            |view, actor: String, query: LogQuery| actor::logs(view, &actor, &query),
        ),
        Route {
            method: Method::POST,
            path: "/v1/actors/{actor}/dry-run",
            handler: post(actor::dry_run),
            operation: Operation::new(
                "The effects that a call of an actor would have; changes nothing",
                RouteAnswer::one::<DryRun>(),
            )
            .query::<NodeQuery>()
            .body::<DryRunRequest>(),
        },
        view(
            "/v1/jobs",
            "Jobs, newest first",
            RouteAnswer::many::<JobSummary>(),
            |view, (), query: JobQuery| job::list(view, &query),
        ),
        view(
            "/v1/jobs/{id}",
            "A job and its events",
            RouteAnswer::one::<Job>(),
            |view, id: String, Nothing {}| job::show(view, &id),
        ),
        view(
            "/v1/jobs/{id}/result",
            "A job's verified result",
            RouteAnswer::one::<JobResult>(),
            |view, id: String, Nothing {}| job::result(view, &id),
        ),
        view(
            "/v1/jobs/{id}/dispatches",
            "The dispatches of a job by each running validator, and their outcomes",
            RouteAnswer::many::<JobDispatch>(),
            |view, id: String, Nothing {}| job::dispatches(view, &id),
        ),
        view(
            "/v1/jobs/{id}/explain",
            "How a job's runners were drawn, or why none were",
            RouteAnswer::one::<Explanation>(),
            |view, id: String, query: ExplanationQuery| selection::explain(view, &id, &query),
        ),
        view(
            "/v1/timers",
            "Timers: those that wait by height, then those that have ended, newest first",
            RouteAnswer::many::<TimerSummary>(),
            |view, (), query: TimerQuery| timer::list(view, &query),
        ),
        view(
            "/v1/timers/queue",
            "The calendar queue, tier by tier",
            RouteAnswer::one::<TimerQueue>(),
            |view, (), Nothing {}| timer::queue(view),
        ),
        view(
            "/v1/timers/due",
            "The timers due in the next block: rank, weight, reasons for waiting",
            RouteAnswer::one::<DueTimers>(),
            |view, (), query: DueQuery| due::list(view, &query),
        ),
        view(
            "/v1/timers/fees",
            "Reports of blocks' timer lanes, oldest first",
            RouteAnswer::many::<LaneBlock>(),
            |view, (), query: LaneQuery| timer::fees(view, &query),
        ),
        view(
            "/v1/timers/fairness",
            "The weights of accounts in the next block's timer lane",
            RouteAnswer::one::<Fairness>(),
            |view, (), Nothing {}| timer::fairness(view),
        ),
        view(
            "/v1/timers/{timer}",
            "A timer, its outcome, and the reasons why it did not fire",
            RouteAnswer::one::<Timer>(),
            |view, timer: String, Nothing {}| timer::show(view, &timer),
        ),
        view(
            "/v1/timers/{timer}/bid",
            "The bid of a timer's agent for the next block, and the timer's rank with it",
            RouteAnswer::one::<TimerQuote>(),
            |view, timer: String, Nothing {}| due::bid(view, &timer),
        ),
        view(
            "/v1/presence/compare",
            "The choices of draws with and without the presence filter",
            RouteAnswer::one::<PresenceComparison>(),
            |view, (), query: ComparisonQuery| comparison::compare(view, &query),
        ),
        view(
            "/v1/presence/{height}",
            "Canonical presence: the runners that a block's certificate shows as present",
            RouteAnswer::one::<Presence>(),
            |view, height: String, Nothing {}| presence::show(view, &height),
        ),
        view(
            "/v1/presence/{height}/votes",
            "The votes in the certificate of a block",
            RouteAnswer::one::<Votes>(),
            |view, height: String, Nothing {}| presence::votes(view, &height),
        ),
        view(
            "/v1/pools",
            "Pools of runners",
            RouteAnswer::many::<Pool>(),
            |view, (), Nothing {}| pool::list(view),
        ),
        view(
            "/v1/pools/{pool}",
            "A pool and its members",
            RouteAnswer::one::<Pool>(),
            |view, pool: String, Nothing {}| pool::show(view, &pool),
        ),
        view(
            "/v1/mru",
            "The most recently used runners",
            RouteAnswer::many::<MruRecord>(),
            |view, (), Nothing {}| mru::list(view),
        ),
        view(
            "/v1/mru/{submitter}/{kind}",
            "A submitter's most recently used runner for a kind of job",
            RouteAnswer::one::<MruRecord>(),
            |view, (submitter, kind): (String, String), Nothing {}| {
                mru::show(view, &submitter, &kind)
            },
        ),
        Route {
            method: Method::POST,
            path: "/v1/validators",
            handler: post(control::join),
            operation: Operation::new(
                "Starts a validator that follows the chain, and votes once it is in the committee",
                RouteAnswer::created::<Validator>(),
            )
            .body::<JoinRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/leave",
            handler: post(control::leave),
            operation: Operation::new(
                "Stops and removes a validator that has left the committee",
                RouteAnswer::one::<Left>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: SNAPSHOTS,
            handler: post(control::save),
            operation: Operation::new(
                "Saves the devnet as a snapshot; its validators stop meanwhile and start again",
                RouteAnswer::created::<Snapshot>(),
            )
            .body::<SaveRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/shutdown",
            handler: post(control::shutdown),
            operation: Operation::new(
                "Begins to stop the devnet",
                RouteAnswer::accepted::<Stopping>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/runner/{runner}/heartbeat",
            handler: post(control::heartbeat),
            operation: Operation::new(
                "A runner's heartbeat: a signed `runner_heartbeat` transaction",
                RouteAnswer::accepted::<TransactionAccepted>(),
            )
            .body::<TransactionRequest>(),
        },
        view(
            "/runner/{runner}/jobs",
            "The open jobs assigned to a runner that polls; 410 in phase sunset",
            RouteAnswer::one::<PolledJobs>(),
            |view, runner: String, Nothing {}| polling::jobs(view, &runner),
        ),
        Route {
            method: Method::POST,
            path: "/runner/{runner}/job_commit",
            handler: post(polling::job_commit),
            operation: Operation::new(
                "A runner's signed commitment, for lack of a connection; 410 in phase sunset",
                RouteAnswer::accepted::<ResultAccepted>(),
            )
            .body::<CommitRequest>(),
        },
        Route {
            method: Method::POST,
            path: "/runner/{runner}/job_failure",
            handler: post(polling::job_failure),
            operation: Operation::new(
                "A runner's signed report that it cannot do a job; 410 in phase sunset",
                RouteAnswer::accepted::<ResultAccepted>(),
            )
            .body::<FailureRequest>(),
        },
        Route {
            method: Method::POST,
            path: "/runner/{runner}/job_result",
            handler: post(polling::job_result),
            operation: Operation::new(
                "A runner's signed result, for lack of a connection; 410 in phase sunset",
                RouteAnswer::accepted::<ResultAccepted>(),
            )
            .body::<ResultRequest>(),
        },
        Route {
            method: Method::GET,
            path: "/openapi.json",
            handler: get(async || ([(CONTENT_TYPE, "application/json")], openapi::text())),
            operation: Operation::new("This document", RouteAnswer::any()),
        },
    ]
}

/// No further parameters in the query.
#[derive(Debug, Deserialize, IntoParams)]
struct Nothing {}

/// A read of one validator's chain.
fn view<P, Q, T>(
    path: &'static str,
    summary: &'static str,
    answer: RouteAnswer,
    read: fn(&View, P, Q) -> Result<T, ApiError>,
) -> Route
where
    P: DeserializeOwned + Send + 'static,
    Q: DeserializeOwned + IntoParams + Send + 'static,
    T: Serialize + Send + 'static,
{
    let handler = async move |State(shared): State<Arc<ServerState>>,
                              InPath(path): InPath<P>,
                              InQuery(node): InQuery<NodeQuery>,
                              InQuery(query): InQuery<Q>| {
        let read = move |backend| read(&View::of(backend, node.node.as_deref())?, path, query);
        shared.answer(read).await
    };
    let operation = Operation::new(summary, answer).query::<NodeQuery>().query::<Q>();
    Route { method: Method::GET, path, handler: get(handler), operation }
}

/// A read of the whole devnet.
fn glance<P, T>(
    path: &'static str,
    summary: &'static str,
    answer: RouteAnswer,
    read: fn(&Glance, P) -> Result<T, ApiError>,
) -> Route
where
    P: DeserializeOwned + Send + 'static,
    T: Serialize + Send + 'static,
{
    let handler = async move |State(shared): State<Arc<ServerState>>,
                              InPath(path): InPath<P>,
                              InQuery(node): InQuery<NodeQuery>| {
        let read = move |backend| read(&Glance::of(backend, node.node.as_deref())?, path);
        shared.answer(read).await
    };
    let operation = Operation::new(summary, answer).query::<NodeQuery>();
    Route { method: Method::GET, path, handler: get(handler), operation }
}
