//! Events of the chain as JSON.

use super::{
    actor, address, amount, hex,
    timer::{setting, settings},
    transaction::hashes,
};
use crate::{
    storage::StoredEvent,
    types::{Event, Text},
};
use cowboy_engine::{
    chain::{
        EventKind,
        event::{
            ActorCalled, ActorDeployed, ActorEmitted, CallbackMade, CommitmentCreated,
            CommitmentResolved, ConnectivityActivated, ConnectivityProposed, EntitlementGranted,
            EntitlementRevoked, GbaFailed, JobAssigned, JobCancelled, JobCommitted, JobFailed,
            JobRetried, JobRunning, JobSubmitted, JobVerified, JobWaiting, MruUpdated,
            ParameterSet, PhaseChanged, PresenceDerived, PresenceUnavailable, ReputationChanged,
            ResultCommitted, ResultRevealed, RunnerDeregistered, RunnerPaid, RunnerRegistered,
            RunnerSlashed, RunnerUpdated, SubsetEpochAdvanced, TaskClaimed, TaskCompleted,
            TaskCreated, TaskExpired, TaskTermsActivated, TaskTermsProposed, TimerCancelled,
            TimerCancelledInsufficientFunds, TimerConfigActivated, TimerConfigProposed,
            TimerExceedsAuctionCap, TimerExpired, TimerExtended, TimerFired, TimerGasClamped,
            TimerPolicyActivated, TimerPriorityClampedAtSchedule, TimerScheduled, Transferred,
            ValidatorAdded, ValidatorRemoved, WorkFailed,
        },
    },
    primitives::Address,
    speculation::RollbackReason,
};
use serde_json::{Value, json};

pub(in crate::api) fn event(stored: &StoredEvent) -> Event {
    let StoredEvent { height, position, event } = stored;
    Event {
        height: height.get(),
        index: *position,
        kind: event.kind.name().to_owned(),
        transaction: event.transaction.map(Text),
        timer: event.timer.map(Text),
        job_id: event.job_id().map(Text),
        timer_id: event.timer_id().map(Text),
        data: data(&event.kind),
    }
}

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
        EventKind::RunnerUpdated(RunnerUpdated { runner, stake }) => json!({
            "runner": address(runner),
            "stake": amount(*stake),
        }),
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
            "committee": addresses(committee),
            "deadline": deadline.get(),
        }),
        EventKind::JobVerified(JobVerified {
            job_id,
            runner,
            result_hash,
            agreeing,
            paid,
            refunded,
        }) => json!({
            "job_id": hex(&job_id.0),
            "runner": address(runner),
            "result_hash": hex(&result_hash.0),
            "agreeing": addresses(agreeing),
            "paid": amount(*paid),
            "refunded": amount(*refunded),
        }),
        EventKind::JobFailed(JobFailed { job_id, reason, refunded }) => json!({
            "job_id": hex(&job_id.0),
            "reason": reason.name(),
            "refunded": amount(*refunded),
        }),
        EventKind::JobRunning(JobRunning { job_id }) => json!({ "job_id": hex(&job_id.0) }),
        EventKind::ResultCommitted(ResultCommitted { job_id, runner, commitment }) => json!({
            "job_id": hex(&job_id.0),
            "runner": address(runner),
            "commitment": hex(&commitment.0),
        }),
        EventKind::JobCommitted(JobCommitted {
            job_id,
            committed,
            aggregator,
            own_reveals_from,
        }) => json!({
            "job_id": hex(&job_id.0),
            "committed": addresses(committed),
            "aggregator": address(aggregator),
            "own_reveals_from": own_reveals_from.get(),
        }),
        EventKind::ResultRevealed(ResultRevealed { job_id, runner, result_hash }) => json!({
            "job_id": hex(&job_id.0),
            "runner": address(runner),
            "result_hash": hex(&result_hash.0),
        }),
        EventKind::JobRetried(JobRetried { job_id, retry, reason, silent, deadline }) => json!({
            "job_id": hex(&job_id.0),
            "retry": retry,
            "reason": reason.name(),
            "silent": addresses(silent),
            "deadline": deadline.get(),
        }),
        EventKind::JobCancelled(JobCancelled { job_id, by, refunded }) => json!({
            "job_id": hex(&job_id.0),
            "by": address(by),
            "refunded": amount(*refunded),
        }),
        EventKind::RunnerPaid(RunnerPaid { job_id, runner, work, tip, aggregation }) => json!({
            "job_id": hex(&job_id.0),
            "runner": address(runner),
            "work": amount(*work),
            "tip": amount(*tip),
            "aggregation": amount(*aggregation),
        }),
        EventKind::ReputationChanged(ReputationChanged { runner, job_id, before, after }) => {
            json!({
                "runner": address(runner),
                "job_id": hex(&job_id.0),
                "before": before,
                "after": after,
            })
        }
        EventKind::RunnerSlashed(RunnerSlashed { runner, job_id, amount: taken, reason }) => {
            json!({
                "runner": address(runner),
                "job_id": hex(&job_id.0),
                "amount": amount(*taken),
                "reason": reason.name(),
            })
        }
        EventKind::CallbackMade(CallbackMade {
            job_id,
            actor,
            handler,
            cycles,
            charged,
            error,
        }) => json!({
            "job_id": hex(&job_id.0),
            "actor": address(actor),
            "handler": handler,
            "cycles": cycles,
            "charged": amount(*charged),
            "error": error,
        }),
        EventKind::WorkFailed(WorkFailed { job_id, runner, reason }) => json!({
            "job_id": hex(&job_id.0),
            "runner": address(runner),
            "reason": reason,
        }),
        EventKind::MruUpdated(MruUpdated { submitter, kind, runner }) => json!({
            "submitter": address(submitter),
            "kind": kind.name(),
            "runner": address(runner),
        }),
        EventKind::SubsetEpochAdvanced(SubsetEpochAdvanced { epoch }) => json!({ "epoch": epoch }),
        EventKind::PhaseChanged(PhaseChanged { from, to }) => {
            json!({ "from": from.name(), "to": to.name() })
        }
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
        EventKind::TaskCreated(TaskCreated {
            task_id,
            creator,
            depends_on,
            order_only,
            depth,
            constraint_hash,
            requirements,
            reward,
            deadline,
        }) => json!({
            "task_id": hex(&task_id.0),
            "creator": address(creator),
            "depends_on": hashes(depends_on),
            "order_only": hashes(order_only),
            "depth": depth,
            "constraint_hash": constraint_hash.map(|hash| hex(&hash.to_bytes())),
            "requirements": requirements,
            "reward": amount(*reward),
            "deadline": deadline.get(),
        }),
        EventKind::TaskClaimed(TaskClaimed { task_id, agent, expires_at }) => json!({
            "task_id": hex(&task_id.0),
            "agent": address(agent),
            "expires_at": expires_at.get(),
        }),
        EventKind::CommitmentCreated(CommitmentCreated {
            task_id,
            agent,
            output_commitment,
            inputs,
            bond,
            expires_at,
        }) => json!({
            "task_id": hex(&task_id.0),
            "agent": address(agent),
            "output_commitment": hex(&output_commitment.to_bytes()),
            "inputs": hex(&inputs.0),
            "bond": amount(*bond),
            "expires_at": expires_at.map(|height| height.get()),
        }),
        EventKind::TaskCompleted(TaskCompleted { task_id, agent, paid }) => json!({
            "task_id": hex(&task_id.0),
            "agent": address(agent),
            "paid": amount(*paid),
        }),
        EventKind::CommitmentResolved(CommitmentResolved {
            task_id,
            agent,
            reason,
            released,
            slashed,
        }) => json!({
            "task_id": hex(&task_id.0),
            "agent": address(agent),
            "reason": reason.map(RollbackReason::name),
            "released": amount(*released),
            "slashed": amount(*slashed),
        }),
        EventKind::TaskExpired(TaskExpired { task_id, refunded }) => {
            json!({ "task_id": hex(&task_id.0), "refunded": amount(*refunded) })
        }
        timer => of_timer(timer),
    }
}

fn of_timer(kind: &EventKind) -> Value {
    match kind {
        EventKind::TimerScheduled(TimerScheduled {
            timer_id,
            actor,
            height,
            expires_at,
            max_fee_per_cycle,
            max_priority_fee_per_cycle,
            fee_payer,
            max_cost,
        }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "height": height.get(),
            "expires_at": expires_at.get(),
            "max_fee_per_cycle": amount(*max_fee_per_cycle),
            "max_priority_fee_per_cycle": amount(*max_priority_fee_per_cycle),
            "fee_payer": address(fee_payer),
            "max_cost": amount(*max_cost),
        }),
        EventKind::TimerPriorityClampedAtSchedule(TimerPriorityClampedAtSchedule {
            timer_id,
            actor,
            stated,
            clamped,
        }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "stated": amount(*stated),
            "clamped": amount(*clamped),
        }),
        EventKind::TimerExceedsAuctionCap(TimerExceedsAuctionCap {
            timer_id,
            actor,
            gas_limit,
            cap,
        }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "gas_limit": gas_limit,
            "cap": cap,
        }),
        EventKind::TimerGasClamped(TimerGasClamped {
            timer_id,
            actor,
            gas_limit,
            cell_limit,
            gas_cap,
            cell_cap,
        }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "gas_limit": gas_limit,
            "cell_limit": cell_limit,
            "gas_cap": gas_cap,
            "cell_cap": cell_cap,
        }),
        EventKind::TimerFired(TimerFired {
            timer_id,
            actor,
            success,
            cycles,
            priority_per_cycle,
        }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "success": success,
            "cycles": cycles,
            "priority_per_cycle": amount(*priority_per_cycle),
        }),
        EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
            timer_id,
            actor,
            fee_payer,
            required,
            available,
        }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "fee_payer": address(fee_payer),
            "required": amount(*required),
            "available": amount(*available),
        }),
        EventKind::TimerCancelled(TimerCancelled { timer_id, actor, by }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "by": address(by),
        }),
        EventKind::TimerExpired(TimerExpired { timer_id, actor, expires_at })
        | EventKind::TimerExtended(TimerExtended { timer_id, actor, expires_at }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "expires_at": expires_at.get(),
        }),
        EventKind::GbaFailed(GbaFailed { timer_id, actor, gba, reason }) => json!({
            "timer_id": hex(&timer_id.0),
            "actor": address(actor),
            "gba": address(gba),
            "reason": reason,
        }),
        EventKind::TimerConfigProposed(TimerConfigProposed { by, height, settings: proposed })
        | EventKind::ConnectivityProposed(ConnectivityProposed {
            by,
            height,
            settings: proposed,
        })
        | EventKind::TaskTermsProposed(TaskTermsProposed { by, height, settings: proposed }) => {
            json!({
                "by": address(by),
                "height": height.get(),
                "settings": settings(proposed),
            })
        }
        EventKind::TimerConfigActivated(TimerConfigActivated { by, settings: now })
        | EventKind::ConnectivityActivated(ConnectivityActivated { by, settings: now })
        | EventKind::TaskTermsActivated(TaskTermsActivated { by, settings: now }) => json!({
            "by": by.as_ref().map(address),
            "settings": settings(now),
        }),
        EventKind::ParameterSet(ParameterSet { key, before, after }) => json!({
            "key": key,
            "before": setting(key, *before),
            "after": setting(key, *after),
        }),
        EventKind::TimerPolicyActivated(TimerPolicyActivated { policy }) => {
            json!({ "policy": policy.name() })
        }
        EventKind::ValidatorAdded(ValidatorAdded { validator, epoch, from })
        | EventKind::ValidatorRemoved(ValidatorRemoved { validator, epoch, from }) => {
            json!({ "validator": address(validator), "epoch": epoch, "from": from.get() })
        }
        // `data` names all others.
        _ => json!({}),
    }
}

fn addresses(list: &[Address]) -> Vec<Value> {
    list.iter().map(address).collect()
}
