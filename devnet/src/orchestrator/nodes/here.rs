//! What the API asks of a validator in this process.

use crate::{
    api::{
        backend::{NodeAccess, ObservedDispatch, ReportedProgress},
        error::ApiError,
    },
    types::{ConnectedRunner, ConnectionEnd, ConnectionLoad, PresenceCondition},
    validator::{
        gateway::{Connected, Gateway, Submission},
        journal::{DispatchAnswer, JobDispatch, Journal},
    },
};
use cowboy_engine::{
    chain::SignedTransaction,
    primitives::{Address, Hash, Height},
    wire::{GoodbyeReason, JobProgress},
};
use std::time::Duration;

pub(super) struct Here(pub(super) Gateway);

impl NodeAccess for Here {
    fn links(&self) -> Vec<ConnectedRunner> {
        self.0.connected().into_iter().map(link).collect()
    }

    fn progress(&self, job_id: &Hash) -> Vec<ReportedProgress> {
        self.0.progress(job_id).into_iter().map(progress).collect()
    }

    fn dispatches(&self, job_id: &Hash) -> Vec<ObservedDispatch> {
        self.0.journal().dispatches_of(job_id).iter().map(dispatch).collect()
    }

    fn last_end(&self, runner: &Address) -> Option<ConnectionEnd> {
        let last = self.0.journal().last_of(runner)?;
        let (by, reason) = last.how.names();
        Some(ConnectionEnd { by: by.into(), reason: reason.into(), height: last.at.get() })
    }

    fn journal(&self) -> Option<(Journal, usize)> {
        Some((self.0.journal(), self.0.half_open()))
    }

    fn hand_in(&self, submission: Submission) -> Result<(), ApiError> {
        self.0.handed_in().try_send(submission).map_err(|_| {
            ApiError::unavailable("too many results wait to be submitted").hint("send it again")
        })
    }

    fn submit(&self, _: &SignedTransaction) -> Option<Result<bool, ApiError>> {
        None
    }
}

fn link(connected: Connected) -> ConnectedRunner {
    let unmet = match connected.refused {
        Some(GoodbyeReason::InsufficientStake) => Some(PresenceCondition::InsufficientStake),
        Some(GoodbyeReason::NotInSubset) => Some(PresenceCondition::NotInSubset),
        Some(_) => Some(PresenceCondition::Deregistered),
        None => connected.unmet.map(PresenceCondition::from),
    };
    ConnectedRunner {
        runner: connected.runner.into(),
        unmet,
        load: connected.load.map(ConnectionLoad::from),
        last_ping: connected.last_ping.map(Height::get),
        withdrawn: connected.withdrawn.iter().map(ToString::to_string).collect(),
    }
}

fn progress((runner, said, height): (Address, JobProgress, Height)) -> ReportedProgress {
    ReportedProgress {
        runner,
        percent: said.fraction.get(),
        detail: said.detail.map(|detail| detail.to_string()),
        height,
    }
}

fn dispatch(sent: &JobDispatch) -> ObservedDispatch {
    let millis = |after: Duration| after.as_millis().try_into().ok();
    ObservedDispatch {
        runner: sent.runner,
        assigned_at: sent.assigned_at,
        outcome: sent.outcome.map_or("waiting", DispatchAnswer::name).to_owned(),
        answered_ms: sent.answered_after.and_then(millis),
        started_ms: sent.started_after.and_then(millis),
        done_ms: sent.done_after.and_then(millis),
    }
}
