//! Runners' tokens: issued, taken back, listed.

use super::{
    Context, Route, created,
    error::Refused,
    extract::{Access, Asked},
    json,
    openapi::Operation,
};
use crate::lease::{
    check,
    messages::{NewToken, Token, TokenRequest},
};
use axum::{http::Method, response::Response};
use cowboy_engine::lease::RunnerId;
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Operator;
    vec![
        Route::new(
            Method::GET,
            "/api/v1/tokens",
            operator,
            list,
            Operation::new("Runners that have a token").many::<Token>(),
        ),
        Route::new(
            Method::POST,
            "/api/v1/tokens",
            operator,
            issue,
            Operation::new("Makes a runner's token; what it had before is good no more")
                .body::<TokenRequest>()
                .one::<NewToken>(201),
        ),
        Route::new(
            Method::DELETE,
            "/api/v1/tokens/{runner}",
            operator,
            revoke,
            Operation::new("Makes a runner's token good no more").one::<Token>(200),
        ),
    ]
}

async fn list(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    Ok(json(&context.service.read(|reader| reader.tokens()).await?))
}

async fn issue(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let request: TokenRequest = asked.json()?;
    check::runner_id(&request.runner_id)?;
    Ok(created(&context.service.issue_token(RunnerId(request.runner_id)).await?))
}

async fn revoke(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let runner = RunnerId::from(asked.segment("runner"));
    Ok(json(&context.service.revoke_token(runner).await?))
}
