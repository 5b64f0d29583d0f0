//! Steering a runner while it runs: pausing it, limiting it, changing its abilities, ending it. A
//! runner in a process of its own is steered over HTTP on the loopback, with a token, by the same
//! requests that the devnet's API takes for the runners of its own process.

use super::Runner;
use crate::{
    api::{
        error::ApiError,
        extract::authorize,
        steer::{Steer, SteerError, Told},
    },
    types::{AnswerRequest, CapabilitiesRequest, LimitRequest, RunnerLoad},
};
use axum::{
    Json, Router,
    extract::{Path, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};
use cowboy_engine::primitives::Address;
use tokio::sync::{mpsc, oneshot};

/// Applies `steer` to a runner; returns what its validators are told as a result.
pub fn steer(runner: &Runner, steer: &Steer) -> Result<Told, SteerError> {
    match steer {
        Steer::Look => {}
        Steer::Pause => runner.pause(true),
        Steer::Resume => runner.pause(false),
        Steer::Limit(max_concurrent) => runner.limit(*max_concurrent),
        Steer::Change(add, remove) => runner.change(add, remove)?,
        Steer::Answer(job_id, answer) => runner.answer(*job_id, answer.clone())?,
    }
    Ok(Told { load: runner.load(), withdrawn: runner.withdrawn() })
}

pub(super) enum Wish {
    Steer(Steer, oneshot::Sender<Result<Told, SteerError>>),
    /// Ends the runner. The answer goes out before the runner has ended.
    Stop,
}

/// The runner that requests are about, and the channel to the task that carries them out.
#[derive(Clone)]
pub(super) struct ControlDesk {
    pub name: String,
    pub address: Address,
    pub token: String,
    pub wishes: mpsc::Sender<Wish>,
}

type ControlAnswer = Result<Json<RunnerLoad>, ApiError>;

/// The routes of a runner in a process of its own. Every request needs the token.
pub(super) fn router(desk: ControlDesk) -> Router {
    let guard = middleware::from_fn_with_state(desk.clone(), guard);
    let steer = |wanted: Steer| {
        async move |State(desk): State<ControlDesk>, Path(runner): Path<String>| {
            desk.steer(&runner, wanted).await
        }
    };
    Router::new()
        .route("/v1/runners/{runner}/backpressure", get(steer(Steer::Look)).post(limit))
        .route("/v1/runners/{runner}/answer", post(answer))
        .route("/v1/runners/{runner}/capabilities", post(change))
        .route("/v1/runners/{runner}/pause", post(steer(Steer::Pause)))
        .route("/v1/runners/{runner}/resume", post(steer(Steer::Resume)))
        .route("/v1/runners/{runner}/stop", post(stop))
        .layer(guard)
        .with_state(desk)
}

async fn guard(
    State(desk): State<ControlDesk>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    authorize(request.headers(), &desk.token)?;
    Ok(next.run(request).await)
}

async fn limit(
    State(desk): State<ControlDesk>,
    Path(runner): Path<String>,
    Json(request): Json<LimitRequest>,
) -> ControlAnswer {
    desk.steer(&runner, request.steer()?).await
}

async fn change(
    State(desk): State<ControlDesk>,
    Path(runner): Path<String>,
    Json(request): Json<CapabilitiesRequest>,
) -> ControlAnswer {
    desk.steer(&runner, request.steer()?).await
}

async fn answer(
    State(desk): State<ControlDesk>,
    Path(runner): Path<String>,
    Json(request): Json<AnswerRequest>,
) -> ControlAnswer {
    desk.steer(&runner, request.steer()?).await
}

async fn stop(State(desk): State<ControlDesk>, Path(runner): Path<String>) -> ControlAnswer {
    desk.check(&runner)?;
    desk.wishes.send(Wish::Stop).await.map_err(|_| ending())?;
    Ok(Json(RunnerLoad::stopped(&desk.name, desk.address)))
}

impl ControlDesk {
    /// Fails with `not_found` unless the request names this process's runner.
    fn check(&self, runner: &str) -> Result<(), ApiError> {
        match runner == self.name {
            true => Ok(()),
            false => Err(ApiError::not_found(format!("this process runs `{}`", self.name))),
        }
    }

    async fn steer(&self, runner: &str, steer: Steer) -> ControlAnswer {
        self.check(runner)?;
        let (reply, told) = oneshot::channel();
        self.wishes.send(Wish::Steer(steer, reply)).await.map_err(|_| ending())?;
        let Told { load, withdrawn } = told.await.map_err(|_| ending())??;
        Ok(Json(RunnerLoad::new(&self.name, self.address, &load, &withdrawn)))
    }
}

fn ending() -> ApiError {
    ApiError::unavailable("the runner is ending")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::server, client::Client, types::ErrorCode};
    use cowboy_engine::{
        primitives::SecretKey,
        registry::{Ability, JobKind},
        session::jobs::JobTable,
    };
    use cowboy_host::http;
    use std::collections::BTreeSet;

    /// Applies wishes to a job table in place of a runner, until one of them is `Stop`.
    async fn serve(mut wishes: mpsc::Receiver<Wish>) {
        let (mut table, mut paused) = (JobTable::new(3), false);
        let mut withdrawn = BTreeSet::new();
        while let Some(Wish::Steer(steer, reply)) = wishes.recv().await {
            match steer {
                Steer::Look => {}
                Steer::Pause => paused = true,
                Steer::Resume => paused = false,
                Steer::Limit(most) => table.limit(most),
                Steer::Change(add, _) if add.contains(&Ability::Kind(JobKind::Llm)) => {
                    reply.send(Err(SteerError::CannotExecute(JobKind::Llm))).unwrap();
                    continue;
                }
                Steer::Change(_, remove) => withdrawn = remove,
                Steer::Answer(job_id, answer) => {
                    if answer.is_err() {
                        reply.send(Err(SteerError::NotWaiting(job_id))).unwrap();
                        continue;
                    }
                }
            }
            let load = table.signal(paused);
            reply.send(Ok(Told { load, withdrawn: withdrawn.clone() })).unwrap();
        }
    }

    #[tokio::test]
    async fn only_who_shows_the_token_steers_and_only_this_runner() {
        let (sender, wishes) = mpsc::channel(1);
        let address = SecretKey::derive(b"control", "own").address();
        let desk =
            ControlDesk { name: "own".into(), address, token: "5ecret".into(), wishes: sender };
        let listener = http::bind(None).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = server::start_router(listener, router(desk));
        let served = tokio::spawn(serve(wishes));

        let stranger = Client::new(&url).unwrap();
        for stranger in [stranger.clone(), stranger.clone().with_token("5ecre".to_owned())] {
            for error in [
                stranger.runner_load("own").await.unwrap_err(),
                stranger.pause_runner("own").await.unwrap_err(),
                stranger.stop_runner("own").await.unwrap_err(),
            ] {
                assert_eq!(error.code(), Some(ErrorCode::Unauthorized), "{error}");
            }
        }
        let client = stranger.with_token("5ecret".to_owned());
        assert_eq!(client.pause_runner("own").await.unwrap().reason.as_deref(), Some("paused"));
        assert!(client.resume_runner("own").await.unwrap().accepting_new);
        assert_eq!(client.limit_runner("own", 2).await.unwrap().max_concurrent, 2);
        let zero = client.limit_runner("own", 0).await.unwrap_err();
        assert_eq!(zero.code(), Some(ErrorCode::BadRequest));
        let change = async |add: &[&str], remove: &[&str]| {
            let labels = |of: &[&str]| of.iter().map(|label| (*label).to_owned()).collect();
            let request = CapabilitiesRequest { add: labels(add), remove: labels(remove) };
            client.change_capabilities("own", &request).await
        };
        assert_eq!(change(&[], &["tee", "http"]).await.unwrap().withdrawn, ["http", "tee"]);
        for (label, code) in [("fax", ErrorCode::BadRequest), ("llm", ErrorCode::Conflict)] {
            let refused = change(&[label], &[]).await.unwrap_err();
            assert_eq!(refused.code(), Some(code), "{refused}");
        }
        let other = client.pause_runner("other").await.unwrap_err();
        assert_eq!(other.code(), Some(ErrorCode::NotFound));
        let status = client.status().await.unwrap_err();
        assert_eq!(status.code(), Some(ErrorCode::NotFound), "not a route of the devnet");

        assert!(!client.stop_runner("own").await.unwrap().running);
        served.await.unwrap();
        let late = client.pause_runner("own").await.unwrap_err();
        assert_eq!(late.code(), Some(ErrorCode::Unavailable), "{late}");
        serving.stop(std::time::Duration::ZERO).await;
    }
}
