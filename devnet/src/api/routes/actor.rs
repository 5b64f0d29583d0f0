//! Actors: deployments, stores, and the effects of trial calls.

use crate::{
    api::{
        convert,
        error::{ApiError, shown},
        extract::{InBody, InPath, InQuery},
        route::{Route, many, one},
        state::ServerState,
        view::View,
    },
    chain::ledger::STATES_KEPT,
    machines,
    storage::{PAGE_BYTES, Page, StoredLine},
    types::{
        ACTOR_PAGE, ACTOR_PAGE_LIMIT, Actor, ActorLog, ActorQuery, ActorSummary, Bytes, DryRun,
        DryRunRequest, Event, Handler, LOG_PAGE, LOG_PAGE_LIMIT, LogQuery, NodeQuery, STORE_PAGE,
        STORE_PAGE_LIMIT, StateEntry, StoreQuery, Text, WaitingContinuation,
    },
};
use axum::{Json, extract::State as Extracted, http::Method};
use cowboy_engine::{
    actor::{self, Budget},
    chain::{
        self, AgentTrial, Language, StoreKey, Traced, Trial, dry_run_agent as engine_dry_run_agent,
        dry_run_on,
    },
    fees::meter,
    job::spec::Job,
    primitives::{Address, Hash, Height, Wei},
};
use cowboy_host::http::openapi::Operation;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of continuations in an answer: the SDK's for an actor.
const CONTINUATIONS: usize = 100;

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/actors", "Actors, newest first", |view: &View, (), query: ActorQuery| {
            list(view, &query)
        }),
        one(
            "/v1/actors/{actor}",
            "An actor and a page of its store",
            |view: &View, actor: String, query: StoreQuery| show(view, &actor, &query),
        ),
        one(
            "/v1/actors/{actor}/logs",
            "Lines and events from an actor, and the errors of failed calls",
            |view: &View, actor: String, query: LogQuery| logs(view, &actor, &query),
        ),
        Route::new(
            Method::POST,
            "/v1/actors/{actor}/dry-run",
            dry_run,
            Operation::new("The effects that a call of an actor would have; changes nothing")
                .one::<DryRun>(200)
                .query::<NodeQuery>()
                .body::<DryRunRequest>(),
        ),
    ]
}

fn list(view: &View, query: &ActorQuery) -> Result<Vec<ActorSummary>, ApiError> {
    let limit = query.limit.unwrap_or(ACTOR_PAGE).min(ACTOR_PAGE_LIMIT);
    let deployer =
        query.deployer.as_deref().map(|text| view.resolve("account", text)).transpose()?;
    let wanted = |actor: &chain::Actor| deployer.is_none_or(|deployer| actor.deployer == deployer);
    let mut actors: Vec<_> = view.state.actors().filter(|(_, actor)| wanted(actor)).collect();
    actors.sort_by_key(|(address, actor)| (std::cmp::Reverse(actor.deployed_at), **address));
    Ok(actors
        .into_iter()
        .take(limit)
        .map(|(address, actor)| summary(view, &view.state, address, actor))
        .collect())
}

fn summary(
    view: &View,
    state: &chain::State,
    address: &Address,
    actor: &chain::Actor,
) -> ActorSummary {
    ActorSummary {
        actor: (*address).into(),
        name: view.backend.names.get(address),
        deployer: actor.deployer.into(),
        deployer_name: view.backend.names.get(&actor.deployer),
        code: actor.code.into(),
        deployed_at: actor.deployed_at.get(),
        balance: state.account(address).balance.into(),
    }
}

pub(super) fn show(view: &View, text: &str, query: &StoreQuery) -> Result<Actor, ApiError> {
    let chosen = chosen(view, query.at)?;
    let (address, actor) = find(view, &chosen, text)?;
    let code = chosen.code(&actor.code).ok_or_else(|| {
        ApiError::internal(format!("actor {address} is of code {}, which is not there", actor.code))
    })?;
    let handlers = match code.language() {
        Language::Starlark => match code.module(&chosen.params().actors) {
            Ok(module) => module.handlers(),
            Err(error) => return Err(ApiError::internal(format!("actor {address}: {error}"))),
        },
        // Only its machine knows them.
        Language::Python => Vec::new(),
    };
    let (state, next) = stored(&chosen, &address, query);
    let summary = summary(view, &chosen, &address, &actor);
    Ok(Actor {
        actor: summary.actor,
        name: summary.name,
        deployer: summary.deployer,
        deployer_name: summary.deployer_name,
        code: summary.code,
        language: code.language().name().to_owned(),
        owner: actor.owner().into(),
        deployed_at: summary.deployed_at,
        balance: summary.balance,
        retained: actor.retained,
        handlers: handlers.into_iter().map(Handler::from).collect(),
        continuations: waiting(&chosen, &address),
        state,
        next,
        source: code.source().to_owned(),
    })
}

/// The continuations of an actor that wait for a job.
fn waiting(state: &chain::State, actor: &Address) -> Vec<WaitingContinuation> {
    let of_job = |(id, job): (&Hash, &Job)| {
        let callback = job.spec.callback.as_ref().filter(|callback| callback.actor == *actor)?;
        let resume = callback.resume.as_ref()?;
        Some(WaitingContinuation {
            cid: Text(Bytes(resume.cid.clone())),
            handler: callback.handler.clone(),
            job_id: (*id).into(),
            submitted_at: job.submitted_at.get(),
            deadline: job.deadline().get(),
        })
    };
    state.open_jobs().filter_map(of_job).take(CONTINUATIONS).collect()
}

pub(super) fn stored(
    state: &chain::State,
    actor: &Address,
    query: &StoreQuery,
) -> (Vec<StateEntry>, Option<String>) {
    let limit = query.limit.unwrap_or(STORE_PAGE).clamp(1, STORE_PAGE_LIMIT);
    let key = |text: &Option<String>| StoreKey::shown_as(text.as_deref().unwrap_or_default());
    let prefix = key(&query.prefix);
    let from = key(&query.from).max(prefix.clone());
    let (mut page, mut bytes, language) = (Vec::new(), 0, state.language(actor));
    let begins = |key: &StoreKey| key.as_bytes().starts_with(prefix.as_bytes());
    for (key, value) in state.stored(actor, from).take_while(|(key, _)| begins(key)) {
        bytes += key.as_bytes().len() + value.len();
        if page.len() >= limit || (bytes > PAGE_BYTES && !page.is_empty()) {
            return (page, Some(key.to_string()));
        }
        let value_bytes = (language == Language::Python).then(|| Text(Bytes(value.to_vec())));
        let value = convert::actor::shown(language, value);
        page.push(StateEntry { key: key.to_string(), value, value_bytes });
    }
    (page, None)
}

fn logs(view: &View, text: &str, query: &LogQuery) -> Result<ActorLog, ApiError> {
    let (actor, _) = find(view, &view.state, text)?;
    let limit = query.limit.unwrap_or(LOG_PAGE).clamp(1, LOG_PAGE_LIMIT);
    let from = query.from.map(Height::new);
    let Page { rows, more } = view.store().actor_log(&actor, from, convert::count(limit))?;
    // The store may be a block ahead of the state.
    let mut lines: Vec<StoredLine> =
        rows.into_iter().filter(|line| line.height <= view.head()).collect();
    let mut next = view.head().next().max(from.unwrap_or_default());
    if let Some(last) = lines.last().filter(|_| more && from.is_some()).map(|last| last.height) {
        // The last block may be incomplete, so it opens the next page, unless it is the only one on
        // this page.
        let whole = lines.partition_point(|line| line.height < last);
        next = if whole > 0 {
            lines.truncate(whole);
            last
        } else {
            lines = view.store().actor_log(&actor, Some(last), u32::MAX - 1)?.rows;
            lines.retain(|line| line.height == last);
            last.next()
        };
    }
    Ok(ActorLog { lines: lines.into_iter().map(convert::actor::line).collect(), next: next.get() })
}

/// `POST /v1/actors/{actor}/dry-run`: changes nothing, and so needs no token.
async fn dry_run(
    Extracted(shared): Extracted<Arc<ServerState>>,
    InPath(actor): InPath<String>,
    InQuery(node): InQuery<NodeQuery>,
    InBody(request): InBody<DryRunRequest>,
) -> Result<Json<DryRun>, ApiError> {
    let run = move |backend| try_call(&View::of(backend, node.node.as_deref())?, &actor, request);
    shared.blocking(run).await.map(Json)
}

pub(super) fn try_call(
    view: &View,
    text: &str,
    request: DryRunRequest,
) -> Result<DryRun, ApiError> {
    let DryRunRequest {
        sender,
        handler,
        payload,
        value,
        cycles,
        cells,
        timer_allowance,
        at,
        ask_agent,
        trace,
        profile,
        source: code,
    } = request;
    let state = chosen(view, at)?;
    let (actor, known) = find(view, &state, text)?;
    let sender = view.resolve("account", &sender)?;
    let asks = handler == AGENT_HANDLER && ask_agent != Some(false);
    if asks && !has_handler(&state, &known, AGENT_HANDLER) {
        if code.is_some() {
            let what =
                "a gas bidding agent is asked with its own code, and not with another source";
            return Err(ApiError::bad_request(what).hint("deploy the source, and ask that actor"));
        }
        let trial = AgentTrial { owner: sender, agent: actor, given: context(&payload.0.0)? };
        let ran = engine_dry_run_agent(&state, &trial);
        return Ok(told(ran, (actor, handler, sender), state.height()));
    }
    let most = Budget {
        cycles: meter::MAX_BLOCK_CYCLES - meter::INTRINSIC_CYCLES,
        cells: meter::MAX_BLOCK_CELLS,
    };
    let budget = Budget {
        cycles: cycles.unwrap_or(most.cycles).min(most.cycles),
        cells: cells.unwrap_or(most.cells).min(most.cells),
    };
    let (payload, value) = (payload.0.0, value.0);
    let timer_allowance = timer_allowance.map_or(Wei::new(u128::MAX), |amount| amount.0);
    let traced = match (profile, trace) {
        (Some(true), _) => Traced::Lines,
        (_, Some(true)) => Traced::Calls,
        _ => Traced::Nothing,
    };
    let trial =
        Trial { sender, actor, handler, payload, value, budget, timer_allowance, traced, code };
    let machine = machines::of(state.params());
    let machine = machine.map_err(|error| ApiError::internal(error.to_string()))?;
    // One at a time, because a call may take a gigabyte of stack.
    static TRYING: Mutex<()> = Mutex::new(());
    let turn = machine.is_some().then(|| TRYING.lock().unwrap_or_else(PoisonError::into_inner));
    let ran = dry_run_on(machines::borrowed(&machine), &state, &trial);
    drop(turn);
    Ok(told(ran, (actor, trial.handler, sender), state.height()))
}

const AGENT_HANDLER: &str = "getGasBid";

fn has_handler(state: &chain::State, actor: &chain::Actor, name: &str) -> bool {
    let code = state.code(&actor.code).filter(|code| code.language() == Language::Starlark);
    let module = code.and_then(|code| code.module(&state.params().actors).ok());
    module.is_some_and(|module| module.handlers().iter().any(|known| known.name == name))
}

/// The fields of an agent's context in a payload, which is a JSON object or empty.
fn context(payload: &[u8]) -> Result<[Option<u128>; 8], ApiError> {
    let mut given = [None; 8];
    if payload.iter().all(u8::is_ascii_whitespace) {
        return Ok(given);
    }
    let fields = actor::GBA_CONTEXT_FIELDS;
    let hint = || format!("getGasBid takes a JSON object with any of: {}", fields.join(", "));
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(payload)
        .map_err(|error| {
            ApiError::bad_request(format!("the payload is not a JSON object: {error}")).hint(hint())
        })?;
    for (name, value) in object {
        let place = fields.iter().position(|field| *field == name).ok_or_else(|| {
            let name = shown(&name);
            ApiError::bad_request(format!("GBAContext has no field `{name}`")).hint(hint())
        })?;
        let number = match &value {
            serde_json::Value::String(text) => text.parse().ok(),
            other => other.as_u64().map(u128::from),
        };
        given[place] = Some(number.ok_or_else(|| {
            let what = format!("`{name}` of the context is not an integer from 0 to 2^128 - 1");
            ApiError::bad_request(what).hint("write one beyond 2^64 as a string of digits")
        })?);
    }
    Ok(given)
}

fn told(
    ran: chain::DryRun,
    (actor, handler, sender): (Address, String, Address),
    at: Height,
) -> DryRun {
    let (result, failure) = match &ran.result {
        Ok(result) => (Some(convert::actor::returned(ran.language, result)), None),
        Err(error) => (None, Some(convert::transaction::failure(&error.to_string()))),
    };
    let bytes = ran.result.iter().find_map(|result| convert::actor::bytes_of(ran.language, result));
    let (error, message) = failure.unzip();
    DryRun {
        actor: actor.into(),
        handler,
        sender: sender.into(),
        at: at.get(),
        success: error.is_none(),
        result,
        result_bytes: bytes,
        error,
        message,
        usage: ran.usage.into(),
        deliveries: ran.deliveries,
        log: convert::actor::log(&ran.log),
        events: (0..)
            .zip(&ran.events)
            .map(|(index, kind)| Event {
                height: ran.height.get(),
                index,
                kind: kind.name().to_owned(),
                transaction: None,
                timer: None,
                job_id: None,
                timer_id: None,
                data: convert::event::data(kind),
            })
            .collect(),
        changes: ran.changes.iter().map(convert::actor::change).collect(),
        calls: ran.calls.iter().map(convert::actor::traced).collect(),
    }
}

/// The state after block `at`, or the newest.
pub(super) fn chosen(view: &View, at: Option<u64>) -> Result<chain::State, ApiError> {
    let Some(height) = at.map(Height::new) else { return Ok(view.state.clone()) };
    view.reached(height)?;
    let rooted = view.state_at(height).ok_or_else(|| {
        let oldest = (view.head().get() + 1).saturating_sub(STATES_KEPT as u64);
        ApiError::not_found(format!("the state after block {height} is no longer kept")).hint(
            format!("validators keep the last {STATES_KEPT} at most: from about block {oldest} on"),
        )
    })?;
    Ok(rooted.state.clone())
}

/// Finds an actor by name, address, unambiguous beginning of an address, or `latest`.
pub(super) fn find(
    view: &View,
    state: &chain::State,
    text: &str,
) -> Result<(Address, chain::Actor), ApiError> {
    if text == "latest" {
        let newest = state.actors_from(&Address([0; 20])).max_by_key(|(_, a)| a.deployed_at);
        return newest.map(|(address, actor)| (*address, *actor)).ok_or_else(|| {
            ApiError::not_found("there is no actor so far")
                .hint("deploy one: cowboyctl actor deploy FILE")
        });
    }
    if let Some(address) = view.backend.names.resolve(text) {
        let actor = state.actor(&address).ok_or_else(|| {
            let height = state.height();
            let message = format!("there is no actor at {} at block {height}", view.name(&address));
            ApiError::not_found(message).hint("list them: cowboyctl actor ls")
        })?;
        return Ok((address, *actor));
    }
    let shown = shown(text);
    let Some(first) = beginning(text) else {
        return Err(ApiError::not_found(format!("there is no actor `{shown}`")).hint(
            "expected a name, an address or enough of its beginning, or latest; list them: \
                 cowboyctl actor ls",
        ));
    };
    let mut found = state.actors_from(&first).take_while(|(a, _)| a.to_string().starts_with(text));
    match (found.next(), found.next()) {
        (Some((address, actor)), None) => Ok((*address, *actor)),
        (None, _) => Err(ApiError::not_found(format!("no actor's address begins with {shown}"))
            .hint("list them: cowboyctl actor ls")),
        (Some((one, _)), Some((other, _))) => Err(ApiError::bad_request(format!(
            "{shown} is the beginning of {one}, of {other} and maybe of others"
        ))
        .hint("give more of the address")),
    }
}

/// The first address that begins with `text`: 0x and at least one lower-case hex digit.
fn beginning(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x")?;
    let valid = (1..40).contains(&digits.len())
        && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !valid {
        return None;
    }
    format!("0x{digits:0<40}").parse().ok()
}
