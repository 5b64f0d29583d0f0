//! The routes: one table that the router, the OpenAPI document and their test are made from.
//!
//! A handler of a read is a plain function from a [`View`] (one validator's chain) or a [`Glance`]
//! (the whole devnet) and the request's parameters to the answer. It runs where it may block.

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
    server::Shared,
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
use openapi::{Answer, Operation};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;
use utoipa::IntoParams;

/// Where a devnet is saved; it takes as long as it takes.
pub(super) const SNAPSHOTS: &str = "/v1/snapshots";

/// One method of one path.
pub(super) struct Route {
    pub method: Method,
    pub path: &'static str,
    pub handler: MethodRouter<Arc<Shared>>,
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
        glance("/v1/status", "The devnet at a glance", Answer::one::<Status>(), |glance, ()| {
            validator::status(glance)
        }),
        view(
            "/v1/chain/head",
            "The newest finalized and executed block",
            Answer::one::<Head>(),
            |view, (), Nothing {}| chain::head(view),
        ),
        view(
            "/v1/chain/parameters",
            "What a signer has to know about the chain, and its limits",
            Answer::one::<Parameters>(),
            |view, (), Nothing {}| chain::parameters(view),
        ),
        view(
            "/v1/chain/governance",
            "The governed parameters",
            Answer::many::<GovernedParameter>(),
            |view, (), Nothing {}| timer::governance(view),
        ),
        view(
            "/v1/chain/burned",
            "What was burned since genesis, by what it was paid for",
            Answer::one::<Burned>(),
            |view, (), Nothing {}| Ok(chain::burned(view)),
        ),
        view(
            "/v1/chain/proofs/{subject}",
            "A proof of what the state has under a key, with header and certificate",
            Answer::one::<StateProof>(),
            |view, kind: String, query: ProofQuery| proof::prove(view, &kind, &query),
        ),
        view(
            "/v1/chain/blocks/{height}",
            "A finalized block",
            Answer::one::<Block>(),
            |view, height: String, Nothing {}| chain::block(view, &height),
        ),
        view(
            "/v1/chain/blocks/{height}/evidence",
            "A final block and its certificate, as bytes and as fields",
            Answer::one::<Evidence>(),
            |view, height: String, Nothing {}| evidence::show(view, &height),
        ),
        view(
            "/v1/chain/evidence",
            "A page of final blocks and their certificates, as bytes",
            Answer::one::<EvidencePage>(),
            |view, (), query: EvidenceQuery| evidence::page(view, &query),
        ),
        view(
            "/v1/chain/transactions/{hash}",
            "A transaction and what came of it",
            Answer::one::<Transaction>(),
            |view, hash: String, Nothing {}| chain::transaction(view, &hash),
        ),
        view(
            "/v1/chain/events",
            "A page of events, whole blocks of them",
            Answer::one::<EventPage>(),
            |view, (), query: EventQuery| chain::events(view, &query),
        ),
        Route {
            method: Method::GET,
            path: "/v1/events",
            handler: get(events::events),
            operation: Operation::new(
                "Every block as it becomes final: events of type `block`, their ids the heights; one of \
                 type `replaced` ends a stream that makes room for another",
                Answer::stream::<BlockNotice>(),
            )
            .query::<NodeQuery>()
            .query::<StreamQuery>()
            .header(
                "Last-Event-ID",
                "The height of the last block seen: the stream goes on after it",
            ),
        },
        Route {
            method: Method::POST,
            path: "/v1/chain/advance",
            handler: post(control::advance),
            operation: Operation::new(
                "Has the chain go as fast as consensus goes for a number of blocks",
                Answer::accepted::<Advance>(),
            )
            .body::<AdvanceRequest>()
            .needs_token(),
        },
        view(
            "/v1/accounts",
            "The devnet's accounts and 10,000 others at most",
            Answer::many::<Account>(),
            |view, (), Nothing {}| account::list(view),
        ),
        Route {
            method: Method::POST,
            path: "/v1/accounts",
            handler: post(control::name_account),
            operation: Operation::new(
                "Gives an account a name on this devnet",
                Answer::created::<Account>(),
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
                Answer::created::<NameRequest>(),
            )
            .body::<NameRequest>()
            .needs_token(),
        },
        view(
            "/v1/accounts/{account}",
            "An account",
            Answer::one::<Account>(),
            |view, account: String, Nothing {}| account::show(view, &account),
        ),
        Route {
            method: Method::POST,
            path: "/v1/transactions",
            handler: post(control::submit),
            operation: Operation::new(
                "Hands a signed transaction to the mempools of all validators, or of one",
                Answer::accepted::<TransactionAccepted>(),
            )
            .query::<NodeQuery>()
            .body::<TransactionRequest>()
            .needs_token(),
        },
        glance(
            "/v1/runners",
            "The runners, in registry order",
            Answer::many::<Runner>(),
            |glance, ()| runner::list(glance),
        ),
        glance(
            "/v1/runners/{runner}",
            "A registered runner and its connections",
            Answer::one::<Runner>(),
            |glance, runner: String| runner::show(glance, &runner),
        ),
        Route {
            method: Method::GET,
            path: "/v1/runners/{runner}/backpressure",
            handler: get(backpressure::show),
            operation: Operation::new(
                "What a runner of the devnet's process takes on",
                Answer::one::<RunnerLoad>(),
            ),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/backpressure",
            handler: post(backpressure::limit),
            operation: Operation::new(
                "Limits how many jobs a runner takes at a time; those in hand go on",
                Answer::one::<RunnerLoad>(),
            )
            .body::<LimitRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/capabilities",
            handler: post(backpressure::change),
            operation: Operation::new(
                "Has a runner not do some of what it is registered for, or do it again",
                Answer::one::<RunnerLoad>(),
            )
            .body::<CapabilitiesRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/pause",
            handler: post(backpressure::pause),
            operation: Operation::new(
                "Has a runner take no new jobs: it is not present",
                Answer::one::<RunnerLoad>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/resume",
            handler: post(backpressure::resume),
            operation: Operation::new(
                "Has a paused runner take jobs again",
                Answer::one::<RunnerLoad>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/start",
            handler: post(backpressure::start),
            operation: Operation::new("Starts a stopped runner", Answer::one::<RunnerLoad>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/runners/{runner}/stop",
            handler: post(backpressure::stop),
            operation: Operation::new(
                "Stops a runner: it says goodbye and gives up its jobs",
                Answer::one::<RunnerLoad>(),
            )
            .needs_token(),
        },
        glance(
            "/v1/validators",
            "The validators, in the order in which votes number them",
            Answer::many::<Validator>(),
            |glance, ()| validator::list(glance),
        ),
        glance(
            "/v1/validators/{validator}",
            "A validator, whether it runs or not",
            Answer::one::<Validator>(),
            |glance, validator: String| validator::show(glance, &validator),
        ),
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/stop",
            handler: post(control::stop),
            operation: Operation::new("Stops a running validator", Answer::one::<Validator>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/start",
            handler: post(control::start),
            operation: Operation::new("Starts a stopped validator", Answer::one::<Validator>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/resync",
            handler: post(control::resync),
            operation: Operation::new(
                "Starts a validator, running or not, without the chain that it has stored",
                Answer::one::<Validator>(),
            )
            .needs_token(),
        },
        glance(
            "/v1/faults",
            "What was broken on purpose and is in force, the oldest first",
            Answer::many::<Fault>(),
            |glance, ()| Ok(fault::list(glance)),
        ),
        Route {
            method: Method::POST,
            path: "/v1/faults",
            handler: post(fault::lay),
            operation: Operation::new(
                "Lays a fault; one of the same kind at the same place is replaced",
                Answer::one::<Fault>(),
            )
            .body::<FaultRequest>()
            .needs_token(),
        },
        Route {
            method: Method::DELETE,
            path: "/v1/faults",
            handler: delete(fault::heal_all),
            operation: Operation::new("Heals every fault", Answer::many::<Fault>()).needs_token(),
        },
        Route {
            method: Method::DELETE,
            path: "/v1/faults/{fault}",
            handler: delete(fault::heal),
            operation: Operation::new(
                "Heals the fault of a number, or those laid on a node",
                Answer::many::<Fault>(),
            )
            .needs_token(),
        },
        view(
            "/v1/tasks",
            "Tasks on the chain, newest first",
            Answer::many::<ChainTask>(),
            |view, (), query: ChainTaskQuery| task::list(view, &query),
        ),
        view(
            "/v1/tasks/{task}",
            "A task on the chain",
            Answer::one::<ChainTask>(),
            |view, id: String, Nothing {}| task::show(view, &id),
        ),
        view(
            "/v1/actors",
            "Actors, newest first",
            Answer::many::<ActorSummary>(),
            |view, (), query: ActorQuery| actor::list(view, &query),
        ),
        view(
            "/v1/actors/{actor}",
            "An actor and a page of its store",
            Answer::one::<Actor>(),
            |view, actor: String, query: StoreQuery| actor::show(view, &actor, &query),
        ),
        view(
            "/v1/actors/{actor}/logs",
            "What an actor logged and emitted, and how calls of it failed",
            Answer::one::<ActorLog>(),
            |view, actor: String, query: LogQuery| actor::logs(view, &actor, &query),
        ),
        Route {
            method: Method::POST,
            path: "/v1/actors/{actor}/dry-run",
            handler: post(actor::dry_run),
            operation: Operation::new(
                "What a call of an actor would do; changes nothing",
                Answer::one::<DryRun>(),
            )
            .query::<NodeQuery>()
            .body::<DryRunRequest>(),
        },
        view(
            "/v1/jobs",
            "Jobs, newest first",
            Answer::many::<JobSummary>(),
            |view, (), query: JobQuery| job::list(view, &query),
        ),
        view(
            "/v1/jobs/{id}",
            "A job and what happened to it",
            Answer::one::<Job>(),
            |view, id: String, Nothing {}| job::show(view, &id),
        ),
        view(
            "/v1/jobs/{id}/result",
            "A job's verified result",
            Answer::one::<JobResult>(),
            |view, id: String, Nothing {}| job::result(view, &id),
        ),
        view(
            "/v1/jobs/{id}/dispatches",
            "To whom each running validator dispatched a job, and how that went",
            Answer::many::<JobDispatch>(),
            |view, id: String, Nothing {}| job::dispatches(view, &id),
        ),
        view(
            "/v1/jobs/{id}/explain",
            "How a job's runners were drawn, or why not",
            Answer::one::<Explanation>(),
            |view, id: String, query: ExplanationQuery| selection::explain(view, &id, &query),
        ),
        view(
            "/v1/timers",
            "Timers: those that wait by height, then those that have ended, newest first",
            Answer::many::<TimerSummary>(),
            |view, (), query: TimerQuery| timer::list(view, &query),
        ),
        view(
            "/v1/timers/queue",
            "The calendar queue, tier by tier",
            Answer::one::<TimerQueue>(),
            |view, (), Nothing {}| timer::queue(view),
        ),
        view(
            "/v1/timers/due",
            "The timers that are due in the next block: rank, weight, why they wait",
            Answer::one::<DueTimers>(),
            |view, (), query: DueQuery| due::list(view, &query),
        ),
        view(
            "/v1/timers/fees",
            "What the timer lane of blocks did, the oldest first",
            Answer::many::<LaneBlock>(),
            |view, (), query: LaneQuery| timer::fees(view, &query),
        ),
        view(
            "/v1/timers/fairness",
            "Who is favoured in the next block's timer lane",
            Answer::one::<Fairness>(),
            |view, (), Nothing {}| timer::fairness(view),
        ),
        view(
            "/v1/timers/{timer}",
            "A timer, what became of it, and why it did not fire where it did not",
            Answer::one::<Timer>(),
            |view, timer: String, Nothing {}| timer::show(view, &timer),
        ),
        view(
            "/v1/timers/{timer}/bid",
            "What a timer's agent would bid in the next block, and where that would rank it",
            Answer::one::<TimerQuote>(),
            |view, timer: String, Nothing {}| due::bid(view, &timer),
        ),
        view(
            "/v1/presence/compare",
            "What draws chose, and what with the presence filter the other way round",
            Answer::one::<PresenceComparison>(),
            |view, (), query: ComparisonQuery| comparison::compare(view, &query),
        ),
        view(
            "/v1/presence/{height}",
            "Canonical presence: which runners the certificate of a block shows present",
            Answer::one::<Presence>(),
            |view, height: String, Nothing {}| presence::show(view, &height),
        ),
        view(
            "/v1/presence/{height}/votes",
            "The votes in the certificate of a block",
            Answer::one::<Votes>(),
            |view, height: String, Nothing {}| presence::votes(view, &height),
        ),
        view("/v1/pools", "Pools of runners", Answer::many::<Pool>(), |view, (), Nothing {}| {
            pool::list(view)
        }),
        view(
            "/v1/pools/{pool}",
            "A pool and its members",
            Answer::one::<Pool>(),
            |view, pool: String, Nothing {}| pool::show(view, &pool),
        ),
        view(
            "/v1/mru",
            "The most recently used runners",
            Answer::many::<MruRecord>(),
            |view, (), Nothing {}| mru::list(view),
        ),
        view(
            "/v1/mru/{submitter}/{kind}",
            "A submitter's most recently used runner for a kind of job",
            Answer::one::<MruRecord>(),
            |view, (submitter, kind): (String, String), Nothing {}| {
                mru::show(view, &submitter, &kind)
            },
        ),
        Route {
            method: Method::POST,
            path: "/v1/validators",
            handler: post(control::join),
            operation: Operation::new(
                "Starts a validator that follows the chain, and votes once the committee has it",
                Answer::created::<Validator>(),
            )
            .body::<JoinRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/validators/{validator}/leave",
            handler: post(control::leave),
            operation: Operation::new(
                "Stops a validator that the committee has let go, and forgets it",
                Answer::one::<Left>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: SNAPSHOTS,
            handler: post(control::save),
            operation: Operation::new(
                "Saves the devnet as a snapshot: its validators stop for it and start again",
                Answer::created::<Snapshot>(),
            )
            .body::<SaveRequest>()
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/shutdown",
            handler: post(control::shutdown),
            operation: Operation::new("Begins to stop the devnet", Answer::accepted::<Stopping>())
                .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/runner/{runner}/heartbeat",
            handler: post(control::heartbeat),
            operation: Operation::new(
                "A runner's heartbeat: a `runner_heartbeat` transaction that it signed",
                Answer::accepted::<TransactionAccepted>(),
            )
            .body::<TransactionRequest>(),
        },
        view(
            "/runner/{runner}/jobs",
            "The open jobs that the chain assigns to a runner, which polls; 410 in phase sunset",
            Answer::one::<PolledJobs>(),
            |view, runner: String, Nothing {}| polling::jobs(view, &runner),
        ),
        Route {
            method: Method::POST,
            path: "/runner/{runner}/job_commit",
            handler: post(polling::job_commit),
            operation: Operation::new(
                "A runner's signed commitment, where no connection takes it; 410 in phase sunset",
                Answer::accepted::<ResultAccepted>(),
            )
            .body::<CommitRequest>(),
        },
        Route {
            method: Method::POST,
            path: "/runner/{runner}/job_failure",
            handler: post(polling::job_failure),
            operation: Operation::new(
                "A runner's signed word that it cannot do a job; 410 in phase sunset",
                Answer::accepted::<ResultAccepted>(),
            )
            .body::<FailureRequest>(),
        },
        Route {
            method: Method::POST,
            path: "/runner/{runner}/job_result",
            handler: post(polling::job_result),
            operation: Operation::new(
                "A runner's signed result, where no connection takes it; 410 in phase sunset",
                Answer::accepted::<ResultAccepted>(),
            )
            .body::<ResultRequest>(),
        },
        Route {
            method: Method::GET,
            path: "/openapi.json",
            handler: get(async || ([(CONTENT_TYPE, "application/json")], openapi::text())),
            operation: Operation::new("This document", Answer::any()),
        },
    ]
}

/// No parameters of its own in the query.
#[derive(Debug, Deserialize, IntoParams)]
struct Nothing {}

/// A read of one validator's chain.
fn view<P, Q, T>(
    path: &'static str,
    summary: &'static str,
    answer: Answer,
    read: fn(&View, P, Q) -> Result<T, ApiError>,
) -> Route
where
    P: DeserializeOwned + Send + 'static,
    Q: DeserializeOwned + IntoParams + Send + 'static,
    T: Serialize + Send + 'static,
{
    let handler = async move |State(shared): State<Arc<Shared>>,
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
    answer: Answer,
    read: fn(&Glance, P) -> Result<T, ApiError>,
) -> Route
where
    P: DeserializeOwned + Send + 'static,
    T: Serialize + Send + 'static,
{
    let handler = async move |State(shared): State<Arc<Shared>>,
                              InPath(path): InPath<P>,
                              InQuery(node): InQuery<NodeQuery>| {
        let read = move |backend| read(&Glance::of(backend, node.node.as_deref())?, path);
        shared.answer(read).await
    };
    let operation = Operation::new(summary, answer).query::<NodeQuery>();
    Route { method: Method::GET, path, handler: get(handler), operation }
}
