//! Routes that change state: transactions, starting and stopping.

use crate::{
    api::{
        backend::{
            Backend, Membership, MembershipError, NodeAccess, SaveError, Switch, UpgradeError,
        },
        error::{ApiError, funding, shown},
        extract::{Authorized, InBody, InPath, InQuery},
        nodes,
        route::{Route, act, signed},
        routes::names,
        state::ServerState,
        view::{Glance, View},
    },
    chain::mempool::MempoolError,
    topology::{Name, NameError},
    types::{
        Account, AccountRequest, Advance, AdvanceRequest, Automine, JoinRequest, Left, NameRequest,
        NodePeers, NodeQuery, SaveRequest, Snapshot, Stopping, Text, TransactionAccepted,
        TransactionRequest, UpgradeRequest, Validator,
    },
};
use axum::{Json, extract::State, http::StatusCode};
use cowboy_engine::{
    chain::{Payload, SignedTransaction, admission::AdmissionError},
    primitives::Shortfall,
};
use cowboy_host::http::openapi::Operation;
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The route that saves a devnet, which has a longer time limit than the others.
pub(in crate::api) const SNAPSHOTS: &str = "/v1/snapshots";

/// Maximum number of blocks for which one request lifts the pace.
const MAX_ADVANCE: u64 = 100_000;
/// Maximum time, in milliseconds, for which one request lifts the pace, because its client may have
/// gone.
const MAX_ADVANCE_MS: u64 = 3_600_000;

pub(super) fn table() -> Vec<Route> {
    vec![
        act(
            "/v1/chain/advance",
            advance,
            Operation::new("Lifts the pace of the chain for a number of blocks")
                .one::<Advance>(202)
                .body::<AdvanceRequest>(),
        ),
        act(
            "/v1/chain/automine",
            automine,
            Operation::new("Has transactions get blocks at once, or no longer")
                .one::<Automine>(202)
                .body::<Automine>(),
        ),
        act(
            "/v1/accounts",
            name_account,
            Operation::new("Gives an account a name on this devnet")
                .one::<Account>(201)
                .body::<AccountRequest>(),
        ),
        act(
            "/v1/names",
            give_name,
            Operation::new("Gives an actor, a timer or a job a name on this devnet")
                .one::<NameRequest>(201)
                .body::<NameRequest>(),
        ),
        act(
            "/v1/transactions",
            submit,
            Operation::new(
                "Submits a signed transaction to the mempools of all validators, or of one",
            )
            .one::<TransactionAccepted>(202)
            .query::<NodeQuery>()
            .body::<TransactionRequest>(),
        ),
        switching("/v1/validators/{validator}/stop", "Stops a running validator", Switch::Stop),
        switching("/v1/validators/{validator}/start", "Starts a stopped validator", Switch::Start),
        switching(
            "/v1/validators/{validator}/resync",
            "Restarts a validator, running or not, without its stored chain",
            Switch::Resync,
        ),
        act(
            "/v1/peers",
            peers,
            Operation::new("Tells a node in a process of its own where its chain's validators are")
                .one::<NodePeers>(200)
                .body::<NodePeers>(),
        ),
        act(
            "/v1/validators/{validator}/upgrade",
            upgrade,
            Operation::new("Lets a validator's own process run another program")
                .one::<Validator>(200)
                .body::<UpgradeRequest>(),
        ),
        act(
            "/v1/validators",
            join,
            Operation::new(
                "Starts a validator that follows the chain, and votes once it is in the committee",
            )
            .one::<Validator>(201)
            .body::<JoinRequest>(),
        ),
        act(
            "/v1/validators/{validator}/leave",
            leave,
            Operation::new("Stops and removes a validator that has left the committee")
                .one::<Left>(200),
        ),
        act(
            SNAPSHOTS,
            save,
            Operation::new(
                "Saves the devnet as a snapshot; its validators stop meanwhile and start again",
            )
            .one::<Snapshot>(201)
            .body::<SaveRequest>(),
        ),
        act(
            "/v1/shutdown",
            shutdown,
            Operation::new("Begins to stop the devnet").one::<Stopping>(202),
        ),
        signed(
            "/runner/{runner}/heartbeat",
            "A runner's heartbeat: a signed `runner_heartbeat` transaction",
            heartbeat,
        ),
    ]
}

async fn submit(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InQuery(node): InQuery<NodeQuery>,
    InBody(request): InBody<TransactionRequest>,
) -> Result<(StatusCode, Json<TransactionAccepted>), ApiError> {
    let accepted = shared
        .blocking(move |backend| {
            let view = View::of(backend, node.node.as_deref())?;
            let signed = decode(&request)?;
            match node.node {
                Some(_) => accept_at(&view, signed),
                None => accept(&view, signed),
            }
        })
        .await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

fn heartbeat(
    view: &View,
    runner: &str,
    request: TransactionRequest,
) -> Result<TransactionAccepted, ApiError> {
    let address = view.resolve("runner", runner)?;
    let signed = decode(&request)?;
    if signed.transaction.payload != Payload::RunnerHeartbeat {
        let kind = signed.transaction.payload.name();
        return Err(ApiError::bad_request(format!(
            "transaction: a `{kind}` where a `runner_heartbeat` is expected"
        )));
    }
    let sender = signed.sender().map_err(|error| ApiError::rejected(error.to_string()))?;
    if sender != address {
        return Err(ApiError::bad_request(format!(
            "transaction: signed by {sender}, not by runner {address}"
        )));
    }
    accept(view, signed)
}

fn decode(request: &TransactionRequest) -> Result<SignedTransaction, ApiError> {
    SignedTransaction::from_bytes(&request.transaction)
        .map_err(|error| ApiError::bad_request(format!("transaction: {error}")))
}

/// Submits a transaction to the mempools of all running validators, so that it is not lost when one
/// of them is paused, isolated or killed next. The validator with the highest head decides whether
/// it is accepted; when two transactions have the same nonce, the first wins.
fn accept(view: &View, signed: SignedTransaction) -> Result<TransactionAccepted, ApiError> {
    takes_part(view)?;
    let _turn = view.backend.submissions.lock();
    let accepted = hand_in(view, signed.clone())?;
    for one in view.backend.running() {
        // It has fallen behind, or knows it already.
        let _ = one.mempool.submit(signed.clone(), &one.ledger.newest().state);
    }
    Ok(accepted)
}

/// Submits a transaction to one validator's mempool, which passes it on to the others.
fn accept_at(view: &View, signed: SignedTransaction) -> Result<TransactionAccepted, ApiError> {
    takes_part(view)?;
    if let Some(accepted) = view.running.node.submit(&signed) {
        return Ok(TransactionAccepted { hash: Text(signed.hash()), known: !accepted? });
    }
    let _turn = view.backend.submissions.lock();
    hand_in(view, signed)
}

/// Submits a transaction to a mempool. A transaction that is already in a block counts as accepted,
/// so that a client that lost the first answer gets the same answer again.
fn hand_in(view: &View, signed: SignedTransaction) -> Result<TransactionAccepted, ApiError> {
    let (taker, hash) = (&view.running, signed.hash());
    let known = match taker.mempool.submit(signed, &taker.ledger.newest().state) {
        Ok(is_new) => !is_new,
        Err(_) if taker.ledger.store().transaction(&hash)?.is_some() => true,
        Err(MempoolError::Admission(AdmissionError::InsufficientBalance(short))) => {
            return Err(insufficient(view, &short));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(TransactionAccepted { hash: Text(hash), known })
}

/// A refusal that names the payer, with a hint on how to fund that account.
fn insufficient(view: &View, short: &Shortfall) -> ApiError {
    let name = view.backend.names.get(&short.payer);
    ApiError::rejected(view.with_payer(short.to_string())).hint(funding(short, name.as_deref()))
}

/// Refuses while every running validator waits for disk space.
pub(super) fn takes_part(view: &View) -> Result<(), ApiError> {
    let slots = view.backend.slots();
    let running: Vec<_> = slots.iter().filter(|slot| slot.running().is_some()).collect();
    match running.iter().map(|slot| slot.paused()).collect::<Option<Vec<_>>>() {
        Some(reasons) if !reasons.is_empty() => {
            let message = format!("validators are paused: {}", reasons[0]);
            Err(ApiError::unavailable(message).hint(
                "free some disk space and they resume; the topology's `storage.reserve` is kept free",
            ))
        }
        _ => Ok(()),
    }
}

async fn advance(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<AdvanceRequest>,
) -> Result<(StatusCode, Json<Advance>), ApiError> {
    let AdvanceRequest { blocks, within_ms } = request;
    if !(1..=MAX_ADVANCE).contains(&blocks) {
        let what = format!("blocks: {blocks}, expected 1 to {MAX_ADVANCE}");
        return Err(ApiError::bad_request(what));
    }
    if !(1..=MAX_ADVANCE_MS).contains(&within_ms) {
        let what = format!("within_ms: {within_ms}, expected 1 to {MAX_ADVANCE_MS}");
        return Err(ApiError::bad_request(what));
    }
    let within = Duration::from_millis(within_ms);
    // This fails if no validator runs.
    let lift = move |backend| {
        let view = View::of(backend, None)?;
        let from = view.backend.newest().height();
        let now = SystemTime::now();
        view.backend.fast_forward().lift(now, from.after(blocks), now + within);
        in_processes(&view.backend, |node| node.lift(blocks, within));
        Ok(from)
    };
    let from = shared.blocking(lift).await?;
    let to = from.after(blocks);
    tracing::info!(%from, %to, "the pace is lifted");
    Ok((StatusCode::ACCEPTED, Json(Advance { from: from.get(), to: to.get() })))
}

/// Tells every validator that runs in a process of its own.
fn in_processes(backend: &Backend, tell: impl Fn(&dyn NodeAccess)) {
    for slot in &backend.slots() {
        if let Some(running) = slot.running().filter(|running| running.process.is_some()) {
            tell(&*running.node);
        }
    }
}

async fn automine(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<Automine>,
) -> Result<(StatusCode, Json<Automine>), ApiError> {
    let on = request.on;
    let switch = move |backend: Arc<Backend>| {
        backend.fast_forward().automine(on);
        in_processes(&backend, |node| node.automine(on));
        Ok(())
    };
    shared.blocking(switch).await?;
    tracing::info!(on = request.on, "automine");
    Ok((StatusCode::ACCEPTED, Json(request)))
}

async fn name_account(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<AccountRequest>,
) -> Result<(StatusCode, Json<Account>), ApiError> {
    let name = parsed(&request.name)?;
    let address = *request.address;
    shared.backend.add_account(name.as_str(), address)?;
    let show = move |backend| {
        let view = View::of(backend, None)?;
        super::account::show(&view, &address.to_string())
    };
    Ok((StatusCode::CREATED, Json(shared.blocking(show).await?)))
}

async fn give_name(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<NameRequest>,
) -> Result<(StatusCode, Json<NameRequest>), ApiError> {
    let given =
        shared.blocking(move |backend| names::give(&View::of(backend, None)?, request)).await?;
    Ok((StatusCode::CREATED, Json(given)))
}

async fn save(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<SaveRequest>,
) -> Result<(StatusCode, Json<Snapshot>), ApiError> {
    let name = request.snapshot.as_deref().map(parsed).transpose()?;
    let backend = shared.backend.clone();
    // A separate task, so that it completes even if the client no longer waits.
    let task = tokio::spawn(async move { (backend.hooks.save)(name).await });
    let saved = task.await.map_err(|error| ApiError::internal(error.to_string()))?;
    let saved = saved.map_err(|error| match error {
        SaveError::Conflict(text) => ApiError::conflict(text),
        SaveError::Unsupported(text) => ApiError::bad_request(text),
        SaveError::Failed(text) => ApiError::internal(text),
    })?;
    Ok((StatusCode::CREATED, Json(saved)))
}

fn parsed(name: &str) -> Result<Name, ApiError> {
    name.parse().map_err(|error: NameError| ApiError::bad_request(error.to_string()))
}

fn switching(path: &'static str, summary: &'static str, wanted: Switch) -> Route {
    let handler = async move |_: Authorized,
                              State(shared): State<Arc<ServerState>>,
                              InPath(validator): InPath<String>| {
        switch(shared, validator, wanted).await
    };
    act(path, handler, Operation::new(summary).one::<Validator>(200))
}

async fn switch(
    shared: Arc<ServerState>,
    validator: String,
    wanted: Switch,
) -> Result<Json<Validator>, ApiError> {
    let name = {
        let glance = Glance::of(shared.backend.clone(), None)?;
        super::validator::slot(&glance, &validator)?.name().to_owned()
    };
    nodes::switch(shared.backend.clone(), &name, wanted).await?;
    let show = move |backend| super::validator::show(&Glance::of(backend, None)?, &name);
    shared.blocking(show).await.map(Json)
}

async fn peers(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(peers): InBody<NodePeers>,
) -> Result<Json<NodePeers>, ApiError> {
    (shared.backend.hooks.peers)(&peers).map_err(ApiError::bad_request)?;
    Ok(Json(peers))
}

async fn upgrade(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(validator): InPath<String>,
    InBody(UpgradeRequest { binary }): InBody<UpgradeRequest>,
) -> Result<Json<Validator>, ApiError> {
    let path = PathBuf::from(&binary);
    if !path.is_absolute() {
        let what = format!("binary: `{}` is not an absolute path", shown(&binary));
        return Err(ApiError::bad_request(what));
    }
    let name = {
        let glance = Glance::of(shared.backend.clone(), None)?;
        super::validator::slot(&glance, &validator)?.name().to_owned()
    };
    let (backend, node) = (shared.backend.clone(), name.clone());
    // A separate task, so that it completes even if the client no longer waits.
    let task = tokio::spawn(async move { (backend.hooks.upgrade)(&node, path).await });
    let upgraded = task.await.map_err(|error| ApiError::internal(error.to_string()))?;
    upgraded.map_err(|error| match error {
        UpgradeError::Conflict(text) => ApiError::conflict(text),
        UpgradeError::Failed(text) => ApiError::internal(text),
    })?;
    let show = move |backend| super::validator::show(&Glance::of(backend, None)?, &name);
    shared.blocking(show).await.map(Json)
}

async fn join(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<JoinRequest>,
) -> Result<(StatusCode, Json<Validator>), ApiError> {
    let name = request.name.as_deref().map(parsed).transpose()?;
    if let Some(name) = name.as_ref().filter(|name| shared.backend.is_account(name.as_str())) {
        return Err(ApiError::conflict(format!("`{name}` is the name of an account"))
            .hint("choose another name, or give none for the first `validator-N` that is free"));
    }
    let validator = change(&shared, Membership::Join(name)).await?;
    let show = move |backend| super::validator::show(&Glance::of(backend, None)?, &validator);
    Ok((StatusCode::CREATED, Json(shared.blocking(show).await?)))
}

async fn leave(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(validator): InPath<String>,
) -> Result<Json<Left>, ApiError> {
    let name = {
        let glance = Glance::of(shared.backend.clone(), None)?;
        super::validator::slot(&glance, &validator)?.name().to_owned()
    };
    change(&shared, Membership::Leave(name)).await.map(|name| Json(Left { name }))
}

async fn change(shared: &Arc<ServerState>, change: Membership) -> Result<String, ApiError> {
    let backend = shared.backend.clone();
    // A separate task, so that it completes even if the client no longer waits.
    let task = tokio::spawn(async move { (backend.hooks.membership)(change).await });
    let changed = task.await.map_err(|error| ApiError::internal(error.to_string()))?;
    changed.map_err(|error| match error {
        MembershipError::NotFound(text) => ApiError::not_found(text),
        MembershipError::Conflict(text) => ApiError::conflict(text),
        MembershipError::Failed(text) => ApiError::internal(text),
    })
}

async fn shutdown(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
) -> (StatusCode, Json<Stopping>) {
    (shared.backend.hooks.shutdown)();
    (StatusCode::ACCEPTED, Json(Stopping { pid: shared.backend.pid }))
}
