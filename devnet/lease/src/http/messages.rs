//! Routes of runners: the messages of the protocol.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked},
    jobs::changed,
    json,
};
use crate::{
    check,
    messages::{
        AckLease, AckLeaseAck, AckLeaseAckTag, AwaitCancel, CancelAck, CancelAckAck,
        CancelAckAckTag, CancelRequested, CancelRequestedTag, Complete, CompleteAck,
        CompleteAckTag, Heartbeat, HeartbeatAck, HeartbeatAckTag, LeaseGranted, LeaseRequest,
    },
    service::ServiceError,
    time,
};
use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse as _, Response},
};
use cowboy_host::http::openapi::Operation;
use std::{sync::Arc, time::Duration};

pub(super) fn table() -> Vec<Route> {
    let runner = Access::Runner;
    vec![
        Route::new(Method::POST, "/api/v1/internal/lease", runner, lease).documented(
            Operation::new("Asks for work, and waits for it as long as requested")
                .body::<LeaseRequest>()
                .one::<LeaseGranted>(200)
                .nothing(204, "There is no work"),
        ),
        Route::new(Method::POST, "/api/v1/internal/ack-lease", runner, ack).documented(
            Operation::new("Accepts a lease")
                .body::<AckLease>()
                .one::<AckLeaseAck>(200)
                .refuses(409),
        ),
        Route::new(Method::POST, "/api/v1/internal/heartbeat", runner, heartbeat).documented(
            Operation::new("Renews the lease")
                .body::<Heartbeat>()
                .one::<HeartbeatAck>(200)
                .refuses(409),
        ),
        Route::new(Method::POST, "/api/v1/internal/complete", runner, complete).documented(
            Operation::new("Reports how the job ended")
                .body::<Complete>()
                .one::<CompleteAck>(200)
                .refuses(409),
        ),
        Route::new(Method::POST, "/api/v1/internal/await-cancel", runner, await_cancel).documented(
            Operation::new("Waits for a cancel request, as long as requested")
                .body::<AwaitCancel>()
                .one::<CancelRequested>(200)
                .nothing(204, "The job goes on")
                .refuses(409),
        ),
        Route::new(Method::POST, "/api/v1/internal/cancel-ack", runner, cancel_ack).documented(
            Operation::new("Reports that the job was stopped as requested")
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
    let beat = done.map_err(|error| Refused::of_heartbeat(error, &lease_id))?;
    Ok(json(&HeartbeatAck {
        tag: HeartbeatAckTag::default(),
        lease_id,
        extend_lease: true,
        // In the last second of a job's grace period its lease is still valid.
        new_lease_ttl_seconds: beat.ttl.div_ceil(1_000),
        cancel_requested: beat.cancel.is_some(),
        // Rounded down, so that a runner that uses all of them is not late.
        cancel_deadline_seconds: beat.cancel.unwrap_or(0) / 1_000,
        grace_left_seconds: beat.grace.map(|left| left / 1_000),
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

/// Answers once a cancel is requested, the lease is dead, or the wait is over.
async fn await_cancel(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let message: AwaitCancel = asked.json()?;
    check::await_cancel(&message)?;
    let runner = asked.runner_named(&message.runner_id)?;
    let AwaitCancel { lease_id, wait_seconds, .. } = message;
    let may_wait = context.cancel_waits.take(&runner).zip(context.waits.try_acquire().ok());
    let clock = context.service.clock();
    let until = clock.after(Duration::from_secs(wait_seconds));
    let (mut closing, mut changes) = (context.closing.clone(), None);
    loop {
        let active = context.service.active(runner.clone(), lease_id.clone()).await;
        let active = active.map_err(|error| Refused::of_lease(error, &lease_id))?;
        if let Some((left, reason)) = active.cancel {
            return Ok(json(&CancelRequested {
                tag: CancelRequestedTag::default(),
                lease_id,
                job_id: active.place.job,
                reason,
                deadline_seconds: left / 1_000,
                ts: time(clock.now()),
            }));
        }
        if clock.now() >= until || *closing.borrow() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        if may_wait.is_none() {
            return Err(ServiceError::Full.into());
        }
        let Some(changes) = &mut changes else {
            // Changes are followed from here on; the loop checks again for one that came before.
            changes = Some(context.service.follow(&active.place.job));
            continue;
        };
        tokio::select! {
            () = changed(changes) => {}
            () = clock.reaches(until) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }
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
