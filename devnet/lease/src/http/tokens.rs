//! Routes of runners and their tokens: list, issue, revoke.

use super::{
    Context, Route, created,
    error::Refused,
    extract::{Access, Asked},
    json,
};
use crate::{
    check,
    machine::RunnerId,
    messages::{NewToken, RunnerSummary, Token, TokenQuery, TokenRequest},
};
use axum::{http::Method, response::Response};
use cowboy_host::http::openapi::Operation;
use std::{collections::BTreeMap, sync::Arc};

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Operator;
    vec![
        Route::new(Method::GET, "/api/v1/runners", operator, runners).documented(
            Operation::new("Runners that have asked for work since the server started")
                .many::<RunnerSummary>(),
        ),
        Route::new(Method::GET, "/api/v1/tokens", operator, list)
            .documented(Operation::new("Runners that have a token").many::<Token>()),
        Route::new(Method::POST, "/api/v1/tokens", operator, issue).documented(
            Operation::new("Issues a runner's token, and invalidates its previous one")
                .body::<TokenRequest>()
                .one::<NewToken>(201)
                .refuses(409),
        ),
        Route::new(Method::DELETE, "/api/v1/tokens/{runner}", operator, revoke).documented(
            Operation::new("Invalidates a runner's token").query::<TokenQuery>().one::<Token>(200),
        ),
    ]
}

async fn runners(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    let mut runners = context.service.runners().await?;
    let at_work = context.service.read(|reader| reader.at_work()).await?;
    let by_runner = at_work.into_iter().filter_map(|job| Some((job.runner.clone()?, job)));
    let mut jobs: BTreeMap<_, _> = by_runner.collect();
    for runner in &mut runners {
        runner.job = jobs.remove(&runner.runner_id);
    }
    Ok(json(&runners))
}

async fn list(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    Ok(json(&context.service.read(|reader| reader.tokens()).await?))
}

async fn issue(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    Ok(created(&context.service.issue_token(asked.json()?).await?))
}

async fn revoke(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let runner = RunnerId::from(asked.segment("runner"));
    let id = asked.parameter("token_id").map(str::to_owned);
    id.as_deref().map_or(Ok(()), check::token_id)?;
    Ok(json(&context.service.revoke_token(runner, id).await?))
}
