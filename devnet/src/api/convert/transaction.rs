//! Transactions and their results.

use super::{ToJson, actor, timer::setting};
use crate::types::TransactionStatus;
use cowboy_engine::{
    chain::{
        ClaimTask, CompleteTask, CreateCommitment, CreateTask, GenesisValidator, Language, Payload,
        ReceiptStatus, ResolveCommitment, SignedTransaction,
        transaction::{
            ActAs, AdvanceTime, CallActor, CancelJob, CancelTimer, CommitResult, DeployActor,
            DeployPython, Excuse, ExtendTimer, ForgetMark, GrantEntitlement, InitCall,
            RegisterRunner, RemoveValidator, ReportEquivocation, ReportFailure, ReturnToMark,
            Reveal, RevealResults, RevokeEntitlement, SetBalance, SetCode, SetParameter, SetPhase,
            SetState, SignedCommitment, SlashRunner, SubmitResult, Transfer, TransferOwnership,
            UpdateRunner, UpdateTimerConfig,
        },
    },
    primitives::Address,
    registry::Capabilities,
    timer::TimerRequest,
};
use serde_json::{Value, json};

/// The payload's fields. Those of calls are shown as the language of their actor reads them.
pub(in crate::api) fn payload(
    signed: &SignedTransaction,
    sender: &Address,
    language: impl Fn(&Address) -> Language,
) -> Value {
    body(&signed.transaction.payload, (sender, Some(signed.transaction.nonce)), &language)
}

/// What a payload makes has an address or an id only with the nonce, which an act for another
/// account takes when it is executed.
fn body(
    payload: &Payload,
    (sender, nonce): (&Address, Option<u64>),
    language: &dyn Fn(&Address) -> Language,
) -> Value {
    match payload {
        Payload::Transfer(it) => it.to_json(),
        Payload::DeployActor(DeployActor { source }) => {
            let actor = &nonce.map(|nonce| Address::of_actor(sender, nonce));
            fields!(actor, source)
        }
        Payload::DeployPython(deployment) => {
            let DeployPython { source, salt, value, init } = deployment;
            let actor = &nonce.map(|nonce| deployment.address(sender, nonce));
            fields!(actor, source, salt, value, init)
        }
        Payload::TransferOwnership(it) => it.to_json(),
        Payload::CallActor(it) if language(&it.actor) == Language::Python => {
            let mut json = it.to_json();
            json["payload_bytes"] = it.payload.to_json();
            json["payload"] = actor::payload(&it.payload);
            json
        }
        Payload::CallActor(it) => it.to_json(),
        Payload::RegisterRunner(it) => it.to_json(),
        Payload::UpdateRunner(it) => it.to_json(),
        Payload::AddValidator(GenesisValidator { pubkey, consensus_key }) => {
            let validator = &pubkey.address();
            fields!(validator, pubkey, consensus_key)
        }
        Payload::RemoveValidator(it) => it.to_json(),
        Payload::DeregisterRunner | Payload::RunnerHeartbeat | Payload::MarkState => fields!(),
        Payload::GrantEntitlement(it) => it.to_json(),
        Payload::RevokeEntitlement(it) => it.to_json(),
        Payload::SubmitJob(spec) => {
            let job_id = &nonce.map(|nonce| spec.job_id(sender, nonce));
            let spec = &**spec;
            fields!(job_id, spec)
        }
        Payload::CancelJob(it) => it.to_json(),
        Payload::SlashRunner(it) => it.to_json(),
        Payload::CommitResult(it) => it.to_json(),
        Payload::RevealResults(it) => it.to_json(),
        Payload::SubmitResult(it) => it.to_json(),
        Payload::ReportFailure(ReportFailure { job_id, runner, said, runner_signature }) => {
            let (rejected, reason) = match said {
                Excuse::Failed(reason) => (&false, &reason.as_str().to_owned()),
                Excuse::Rejected(reason) => (&true, &reason.as_str().to_owned()),
            };
            fields!(job_id, runner, rejected, reason, runner_signature)
        }
        Payload::ReportEquivocation(it) => it.to_json(),
        Payload::ScheduleTimer(it) => it.to_json(),
        Payload::CancelTimer(it) | Payload::SysCancelTimer(it) => it.to_json(),
        Payload::ExtendTimer(it) | Payload::SysExtendTimer(it) => it.to_json(),
        Payload::SysUpdateTimerConfig(it) => it.to_json(),
        Payload::SetParameter(SetParameter { key, value }) => {
            json!({ "key": key, "value": setting(key, *value) })
        }
        Payload::SetPhase(it) => it.to_json(),
        Payload::CreateTask(it) => it.to_json(),
        Payload::ClaimTask(it) => it.to_json(),
        Payload::CreateCommitment(it) => it.to_json(),
        Payload::CompleteTask(it) => it.to_json(),
        Payload::ResolveCommitment(it) => it.to_json(),
        Payload::SetBalance(it) => it.to_json(),
        Payload::SetCode(SetCode { actor, language, source }) => {
            let language = &language.name().to_owned();
            fields!(actor, language, source)
        }
        Payload::SetState(SetState { actor, key, value }) => {
            let (key, value_bytes) = (&key.to_string(), value);
            let decode = |value: &Vec<u8>| actor::shown(language(actor), value);
            json!({
                "actor": actor.to_json(),
                "key": key,
                "value": value.as_ref().map(decode),
                "value_bytes": value_bytes.to_json(),
            })
        }
        Payload::ActAs(ActAs { account, payload }) => json!({
            "account": account.to_json(),
            "kind": payload.0.name(),
            "payload": body(&payload.0, (account, None), language),
        }),
        Payload::AdvanceTime(it) => it.to_json(),
        Payload::ReturnToMark(it) => it.to_json(),
        Payload::ForgetMark(it) => it.to_json(),
    }
}

records! {
    InitCall { handler, payload }
    TransferOwnership { actor, owner }
    Transfer { to, amount }
    CallActor { actor, handler, payload, value }
    RegisterRunner { pubkey, stake, capabilities, price_per_second }
    UpdateRunner { capabilities, price_per_second, stake }
    Capabilities { kinds, max_concurrent_jobs, tee, models, mcp_servers }
    RemoveValidator { validator }
    GrantEntitlement { pool, runner, valid_until }
    RevokeEntitlement { pool, runner }
    CancelJob { job_id }
    SlashRunner { job_id }
    CommitResult { job_id, runner, commitment, runner_signature }
    RevealResults { job_id, reveals, aggregator_signature }
    Reveal { runner, result, runner_signature }
    SubmitResult { job_id, runner, result, runner_signature }
    ReportEquivocation { job_id, runner, deadline_block, first, second }
    SignedCommitment { commitment, runner_signature }
    TimerRequest {
        actor, height, payload, handler, fee_payer, gas_limit, cell_limit, expires_at,
        max_fee_per_cycle, max_priority_fee_per_cycle, tier, gba, bid
    }
    CancelTimer { timer_id }
    ExtendTimer { timer_id, expires_at }
    UpdateTimerConfig { settings, height }
    SetPhase { phase }
    SetBalance { account, balance, counterpart }
    AdvanceTime { ms }
    ReturnToMark { mark }
    ForgetMark { mark }
    CreateTask {
        task_id, depends_on, order_only, constraint_hash, requirements, reward, deadline
    }
    ClaimTask { task_id, expires_at }
    CreateCommitment { task_id, output_commitment, inputs, bond, expires_at }
    CompleteTask { task_id, parents, proof }
    ResolveCommitment { task_id, reason }
}

pub(in crate::api) const fn status(status: &ReceiptStatus) -> TransactionStatus {
    match status {
        ReceiptStatus::Success => TransactionStatus::Success,
        ReceiptStatus::Failed(_) => TransactionStatus::Failed,
        ReceiptStatus::Skipped(_) => TransactionStatus::Skipped,
    }
}

/// Splits a failure's text into the error's name at its start and the rest.
pub(in crate::api) fn failure(text: &str) -> (String, String) {
    match text.split_once(": ") {
        Some((name, message)) => (name.to_owned(), message.to_owned()),
        None => (text.to_owned(), text.to_owned()),
    }
}
