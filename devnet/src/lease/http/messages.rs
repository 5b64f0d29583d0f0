//! What runners say: the five messages of the protocol.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked},
    json,
};
use crate::lease::{
    check,
    messages::{
        AckLease, AckLeaseAck, AckLeaseAckTag, CancelAck, CancelAckAck, CancelAckAckTag, Complete,
        CompleteAck, CompleteAckTag, Heartbeat, HeartbeatAck, HeartbeatAckTag, LeaseRequest,
    },
};
use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse as _, Response},
};
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/api/v1/internal/lease", Access::Runner, lease),
        Route::new(Method::POST, "/api/v1/internal/ack-lease", Access::Runner, ack),
        Route::new(Method::POST, "/api/v1/internal/heartbeat", Access::Runner, heartbeat),
        Route::new(Method::POST, "/api/v1/internal/complete", Access::Runner, complete),
        Route::new(Method::POST, "/api/v1/internal/cancel-ack", Access::Runner, cancel_ack),
    ]
}

async fn lease(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let mut message: LeaseRequest = asked.json()?;
    check::lease_request(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let _place = context.waits.try_acquire().inspect_err(|_| message.wait_seconds = 0);
    match context.service.lease(runner, message).await? {
        Some(granted) => Ok(json(&granted)),
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
