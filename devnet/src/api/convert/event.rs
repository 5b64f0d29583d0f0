//! Events of the chain as JSON.

use super::{ToJson, actor, timer::setting};
use crate::{
    storage::StoredEvent,
    types::{Event, Text},
};
use cowboy_engine::chain::{
    EventKind, Language,
    event::{self, ActorEmitted, ParameterSet, PythonEmitted},
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

/// The data of an event: first the arms of events that need more than [`fields`], then all others.
macro_rules! data {
    ($kind:ident: $($event:pat => $data:expr),*; $($name:ident { $($field:ident),* })*) => {
        match $kind {
            $($event => $data,)*
            $(EventKind::$name(event::$name { $($field),* }) => fields!($($field),*),)*
        }
    };
}

pub(in crate::api) fn data(kind: &EventKind) -> Value {
    data! {
        kind:
        EventKind::PythonEmitted(PythonEmitted { actor, name, data, schema }) => {
            let schema = schema.map(|schema| schema.to_string());
            let bytes = format!("0x{}", hex::encode(data));
            let data = actor::shown(Language::Python, data);
            json!({
                "actor": actor.to_json(),
                "name": name,
                "data": data,
                "data_bytes": bytes,
                "schema": schema,
            })
        },
        EventKind::ActorEmitted(ActorEmitted { actor, name, data }) => {
            json!({ "actor": actor.to_json(), "name": name, "data": actor::value(data) })
        },
        EventKind::ParameterSet(ParameterSet { key, before, after }) => {
            json!({ "key": key, "before": setting(key, *before), "after": setting(key, *after) })
        };

        PresenceUnavailable { newest }
        PresenceDerived { certified, votes, present, registered }
        Transferred { from, to, amount }
        RunnerRegistered { runner, index, stake }
        RunnerUpdated { runner, stake }
        RunnerDeregistered { runner, stake }
        EntitlementGranted { pool, runner }
        EntitlementRevoked { pool, runner }
        JobSubmitted { job_id, submitter, kind }
        JobWaiting { job_id, registered }
        JobAssigned { job_id, committee, deadline }
        JobVerified { job_id, runner, result_hash, agreeing, paid, refunded }
        JobFailed { job_id, reason, refunded }
        MruUpdated { submitter, kind, runner }
        SubsetEpochAdvanced { epoch }
        ActorDeployed { actor, deployer, code }
        MessageDelivered { sender, actor, cycles, charged, error }
        OwnershipTransferred { actor, from, to }
        ActorCalled { actor, sender, handler, value }
        TimerScheduled {
            timer_id, actor, height, expires_at, max_fee_per_cycle, max_priority_fee_per_cycle,
            fee_payer, max_cost
        }
        TimerPriorityClampedAtSchedule { timer_id, actor, stated, clamped }
        TimerExceedsAuctionCap { timer_id, actor, gas_limit, cap }
        TimerFired { timer_id, actor, success, cycles, priority_per_cycle }
        TimerExpired { timer_id, actor, expires_at }
        TimerCancelledInsufficientFunds { timer_id, actor, fee_payer, required, available }
        TimerCancelled { timer_id, actor, by }
        TimerExtended { timer_id, actor, expires_at }
        AgentsAsked { actor, timers, cycles, paid }
        GbaFailed { timer_id, actor, gba, reason }
        TimerConfigProposed { by, height, settings }
        TimerPolicyActivated { policy }
        PhaseChanged { from, to }
        ValidatorAdded { validator, epoch, from }
        ValidatorRemoved { validator, epoch, from }
        JobRunning { job_id }
        ResultCommitted { job_id, runner, commitment }
        JobCommitted { job_id, committed, aggregator, own_reveals_from }
        ResultRevealed { job_id, runner, result_hash }
        JobRetried { job_id, retry, reason, silent, deadline }
        JobCancelled { job_id, by, refunded }
        RunnerPaid { job_id, runner, work, tip, aggregation }
        ReputationChanged { runner, job_id, before, after }
        RunnerSlashed { runner, job_id, amount, reason }
        CallbackMade { job_id, actor, handler, cycles, charged, error }
        WorkFailed { job_id, runner, reason }
        TaskCreated {
            task_id, creator, depends_on, order_only, depth, constraint_hash, requirements, reward,
            deadline
        }
        TaskClaimed { task_id, agent, expires_at }
        CommitmentCreated { task_id, agent, output_commitment, inputs, bond, expires_at }
        TaskCompleted { task_id, agent, paid }
        CommitmentResolved { task_id, agent, reason, released, slashed }
        TaskExpired { task_id, refunded }
        TimerConfigActivated { by, settings }
        ConnectivityProposed { by, height, settings }
        ConnectivityActivated { by, settings }
        TaskTermsProposed { by, height, settings }
        TaskTermsActivated { by, settings }
        TimerGasClamped { timer_id, actor, gas_limit, cell_limit, gas_cap, cell_cap }
        BalanceSet { account, before, after, counterpart }
        StateSet { actor, key, bytes }
        ActedAs { account, by }
        TimeAdvanced { ms, total }
        StateMarked { mark }
        StateReturned { mark, height }
        StateForgotten { mark }
    }
}
