//! Routes of schedules: add, list, remove.

use super::{
    Context, Route, created,
    error::Refused,
    extract::{Access, Asked},
    json,
};
use crate::messages::{NewSchedule, Schedule};
use axum::{http::Method, response::Response};
use cowboy_host::http::openapi::Operation;
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Operator;
    vec![
        Route::new(Method::POST, "/api/v1/schedules", operator, add).documented(
            Operation::new("Adds a schedule, which submits a run for each fire of a timer")
                .body::<NewSchedule>()
                .one::<Schedule>(201)
                .refuses(409),
        ),
        Route::new(Method::GET, "/api/v1/schedules", operator, list)
            .documented(Operation::new("Schedules, newest first").many::<Schedule>()),
        Route::new(Method::DELETE, "/api/v1/schedules/{schedule}", operator, remove)
            .documented(Operation::new("Removes a schedule; its runs stay").one::<Schedule>(200)),
    ]
}

async fn add(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let id = context.service.add_schedule(asked.json()?).await?;
    let made = context.service.read(move |reader| reader.schedule(&id)).await?;
    // Another request may have removed it already.
    Ok(created(&made.ok_or_else(|| Refused::not_found(NONE))?))
}

async fn list(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    Ok(json(&context.service.read(|reader| reader.schedules()).await?))
}

async fn remove(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let id = asked.segment("schedule").to_owned();
    let known = context.service.read({
        let id = id.clone();
        move |reader| reader.schedule(&id)
    });
    let known = known.await?.ok_or_else(|| Refused::not_found(NONE))?;
    context.service.remove_schedule(id).await?;
    Ok(json(&known))
}

const NONE: &str = "there is no such schedule; GET /api/v1/schedules lists them";
