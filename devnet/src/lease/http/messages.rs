//! What runners say: the five messages of the protocol.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked},
    json,
    openapi::Operation,
};
use crate::lease::{
    check,
    messages::{
        AckLease, AckLeaseAck, AckLeaseAckTag, CancelAck, CancelAckAck, CancelAckAckTag, Complete,
        CompleteAck, CompleteAckTag, Heartbeat, HeartbeatAck, HeartbeatAckTag, LeaseGranted,
        LeaseRequest,
    },
    service::ServiceError,
};
use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse as _, Response},
};
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    let (runner, post) = (Access::Runner, Method::POST);
    vec![
        Route::new(
            post.clone(),
            "/api/v1/internal/lease",
            runner,
            lease,
            Operation::new("Asks for work, and waits for it as long as it says")
                .body::<LeaseRequest>()
                .one::<LeaseGranted>(200)
                .nothing(204, "There is no work"),
        ),
        Route::new(
            post.clone(),
            "/api/v1/internal/ack-lease",
            runner,
            ack,
            Operation::new("Accepts a lease")
                .body::<AckLease>()
                .one::<AckLeaseAck>(200)
                .refuses(409),
        ),
        Route::new(
            post.clone(),
            "/api/v1/internal/heartbeat",
            runner,
            heartbeat,
            Operation::new("Says that the runner lives, which the lease's time begins anew with")
                .body::<Heartbeat>()
                .one::<HeartbeatAck>(200)
                .refuses(409),
        ),
        Route::new(
            post.clone(),
            "/api/v1/internal/complete",
            runner,
            complete,
            Operation::new("Says how the job ended")
                .body::<Complete>()
                .one::<CompleteAck>(200)
                .refuses(409),
        ),
        Route::new(
            post,
            "/api/v1/internal/cancel-ack",
            runner,
            cancel_ack,
            Operation::new("Says that the job was stopped, as was asked")
                .body::<CancelAck>()
                .one::<CancelAckAck>(200)
                .refuses(409),
        ),
    ]
}

async fn lease(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let mut message: LeaseRequest = asked.json()?;
    check::lease_request(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let place = context.waits.try_acquire().ok();
    let crowded = message.wait_seconds > 0 && place.is_none();
    if crowded {
        message.wait_seconds = 0;
    }
    match context.service.lease(runner, message).await? {
        Some(granted) => Ok(json(&granted)),
        None if crowded => Err(ServiceError::Full.into()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

async fn ack(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let message: AckLease = asked.json()?;
    check::ack(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let lease_id = message.lease_id.clone();
    let done = context.service.ack(runner, message).await;
    done.map_err(|error| Refused::of_lease(error, &lease_id))?;
    Ok(json(&AckLeaseAck { tag: AckLeaseAckTag::default(), lease_id, accepted: true }))
}

async fn heartbeat(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let message: Heartbeat = asked.json()?;
    check::heartbeat(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let lease_id = message.lease_id.clone();
    let done = context.service.heartbeat(runner, message).await;
    let left = done.map_err(|error| Refused::of_lease(error, &lease_id))?;
    Ok(json(&HeartbeatAck {
        tag: HeartbeatAckTag::default(),
        lease_id,
        extend_lease: true,
        new_lease_ttl_seconds: context.service.config().lease_ttl_seconds,
        cancel_requested: left.is_some(),
        // Whole seconds: a runner that takes them all is not late.
        cancel_deadline_seconds: left.unwrap_or(0) / 1_000,
    }))
}

async fn complete(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let message: Complete = asked.json()?;
    check::complete(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let lease_id = message.lease_id.clone();
    let done = context.service.complete(runner, message).await;
    done.map_err(|error| Refused::of_lease(error, &lease_id))?;
    Ok(json(&CompleteAck { tag: CompleteAckTag::default(), lease_id, accepted: true }))
}

async fn cancel_ack(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let message: CancelAck = asked.json()?;
    check::cancel_ack(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let lease_id = message.lease_id.clone();
    let done = context.service.cancel_ack(runner, message).await;
    done.map_err(|error| Refused::of_lease(error, &lease_id))?;
    Ok(json(&CancelAckAck { tag: CancelAckAckTag::default(), lease_id, accepted: true }))
}
