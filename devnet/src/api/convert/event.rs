//! Events of the chain as the API tells them.

use super::{actor, address, amount, hex};
use crate::{
    api::types::{Event, Text},
    storage::StoredEvent,
};
use cowboy_engine::chain::{
    EventKind,
    event::{
        ActorCalled, ActorDeployed, ActorEmitted, EntitlementGranted, EntitlementRevoked,
        JobAssigned, JobFailed, JobSubmitted, JobVerified, JobWaiting, MruUpdated, PresenceDerived,
        PresenceUnavailable, RunnerDeregistered, RunnerRegistered, RunnerUpdated,
        SubsetEpochAdvanced, Transferred,
    },
};
use serde_json::{Value, json};

/// An event and its place.
pub(in crate::api) fn event(stored: &StoredEvent) -> Event {
    let StoredEvent { height, position, event } = stored;
    Event {
        height: height.get(),
        index: *position,
        kind: event.kind.name().to_owned(),
        transaction: event.transaction.map(Text),
        job_id: event.job_id().map(Text),
        data: data(&event.kind),
    }
}

/// An event's own fields.
pub(in crate::api) fn data(kind: &EventKind) -> Value {
    match kind {
        EventKind::PresenceUnavailable(PresenceUnavailable { newest }) => {
            json!({ "newest": newest.map(|height| height.get()) })
        }
        EventKind::PresenceDerived(PresenceDerived { certified, votes, present, registered }) => {
            json!({
                "certified": certified.get(),
                "votes": votes,
                "present": present,
                "registered": registered,
            })
        }
        EventKind::Transferred(Transferred { from, to, amount: moved }) => {
            json!({ "from": address(from), "to": address(to), "amount": amount(*moved) })
        }
        EventKind::RunnerRegistered(RunnerRegistered { runner, index, stake }) => {
            json!({ "runner": address(runner), "index": index, "stake": amount(*stake) })
        }
        EventKind::RunnerUpdated(RunnerUpdated { runner }) => json!({ "runner": address(runner) }),
        EventKind::RunnerDeregistered(RunnerDeregistered { runner, stake }) => {
            json!({ "runner": address(runner), "stake": amount(*stake) })
        }
        EventKind::EntitlementGranted(EntitlementGranted { pool, runner })
        | EventKind::EntitlementRevoked(EntitlementRevoked { pool, runner }) => {
            json!({ "pool": pool, "runner": address(runner) })
        }
        EventKind::JobSubmitted(JobSubmitted { job_id, submitter, kind }) => json!({
            "job_id": hex(&job_id.0),
            "submitter": address(submitter),
            "kind": kind.name(),
        }),
        EventKind::JobWaiting(JobWaiting { job_id, registered }) => {
            json!({ "job_id": hex(&job_id.0), "registered": registered })
        }
        EventKind::JobAssigned(JobAssigned { job_id, committee, deadline }) => json!({
            "job_id": hex(&job_id.0),
            "committee": committee.iter().map(address).collect::<Vec<_>>(),
            "deadline": deadline.get(),
        }),
        EventKind::JobVerified(JobVerified { job_id, runner, result_hash, paid, refunded }) => {
            json!({
                "job_id": hex(&job_id.0),
                "runner": address(runner),
                "result_hash": hex(&result_hash.0),
                "paid": amount(*paid),
                "refunded": amount(*refunded),
            })
        }
        EventKind::JobFailed(JobFailed { job_id, refunded }) => {
            json!({ "job_id": hex(&job_id.0), "refunded": amount(*refunded) })
        }
        EventKind::MruUpdated(MruUpdated { submitter, kind, runner }) => json!({
            "submitter": address(submitter),
            "kind": kind.name(),
            "runner": address(runner),
        }),
        EventKind::SubsetEpochAdvanced(SubsetEpochAdvanced { epoch }) => json!({ "epoch": epoch }),
        EventKind::ActorDeployed(ActorDeployed { actor, deployer, code }) => json!({
            "actor": address(actor),
            "deployer": address(deployer),
            "code": hex(&code.0),
        }),
        EventKind::ActorCalled(ActorCalled { actor, sender, handler, value }) => json!({
            "actor": address(actor),
            "sender": address(sender),
            "handler": handler,
            "value": amount(*value),
        }),
        EventKind::ActorEmitted(ActorEmitted { actor, name, data }) => json!({
            "actor": address(actor),
            "name": name,
            "data": actor::value(data),
        }),
    }
}
