//! Transactions and their results.

use super::{
    address, amount, height, hex, job,
    timer::{setting, settings},
};
use crate::types::TransactionStatus;
use cowboy_engine::{
    chain::{
        ClaimTask, CompleteTask, CreateCommitment, CreateTask, GenesisValidator, Payload,
        ReceiptStatus, ResolveCommitment, SignedTransaction,
        transaction::{
            CallActor, CancelJob, CancelTimer, CommitResult, DeployActor, Excuse, ExtendTimer,
            GrantEntitlement, RegisterRunner, RemoveValidator, ReportEquivocation, ReportFailure,
            Reveal, RevealResults, RevokeEntitlement, SetParameter, SetPhase, SignedCommitment,
            SlashRunner, SubmitResult, Transfer, UpdateRunner, UpdateTimerConfig,
        },
    },
    primitives::{Address, Hash},
    registry::Capabilities,
    speculation::RollbackReason,
    timer::{Tier, TimerRequest},
};
use serde_json::{Value, json};

pub(in crate::api) fn payload(signed: &SignedTransaction, sender: &Address) -> Value {
    match &signed.transaction.payload {
        Payload::Transfer(Transfer { to, amount: moved }) => {
            json!({ "to": address(to), "amount": amount(*moved) })
        }
        Payload::DeployActor(DeployActor { source }) => {
            let actor = Address::of_actor(sender, signed.transaction.nonce);
            json!({ "actor": address(&actor), "source": source })
        }
        Payload::CallActor(CallActor { actor, handler, payload, value }) => json!({
            "actor": address(actor),
            "handler": handler,
            "payload": hex(payload),
            "value": amount(*value),
        }),
        Payload::RegisterRunner(RegisterRunner {
            pubkey,
            stake,
            capabilities,
            price_per_second,
        }) => json!({
            "pubkey": hex(pubkey.as_bytes()),
            "stake": amount(*stake),
            "capabilities": offers(capabilities),
            "price_per_second": amount(*price_per_second),
        }),
        Payload::UpdateRunner(UpdateRunner { capabilities, price_per_second, stake }) => json!({
            "capabilities": offers(capabilities),
            "price_per_second": amount(*price_per_second),
            "stake": stake.map(amount),
        }),
        Payload::AddValidator(GenesisValidator { pubkey, consensus_key }) => json!({
            "validator": address(&pubkey.address()),
            "pubkey": hex(pubkey.as_bytes()),
            "consensus_key": hex(consensus_key),
        }),
        Payload::RemoveValidator(RemoveValidator { validator }) => {
            json!({ "validator": address(validator) })
        }
        Payload::DeregisterRunner | Payload::RunnerHeartbeat => json!({}),
        Payload::GrantEntitlement(GrantEntitlement { pool, runner, valid_until }) => json!({
            "pool": pool,
            "runner": address(runner),
            "valid_until": valid_until.map(height),
        }),
        Payload::RevokeEntitlement(RevokeEntitlement { pool, runner }) => {
            json!({ "pool": pool, "runner": address(runner) })
        }
        Payload::SubmitJob(spec) => {
            let job_id = spec.job_id(sender, signed.transaction.nonce);
            json!({ "job_id": hex(&job_id.0), "spec": job::spec(spec) })
        }
        Payload::CancelJob(CancelJob { job_id }) | Payload::SlashRunner(SlashRunner { job_id }) => {
            json!({ "job_id": hex(&job_id.0) })
        }
        Payload::CommitResult(CommitResult { job_id, runner, commitment, runner_signature }) => {
            json!({
                "job_id": hex(&job_id.0),
                "runner": address(runner),
                "commitment": hex(&commitment.0),
                "runner_signature": hex(runner_signature.as_bytes()),
            })
        }
        Payload::RevealResults(RevealResults { job_id, reveals, aggregator_signature }) => {
            let reveal = |Reveal { runner, result, runner_signature }: &Reveal| {
                json!({
                    "runner": address(runner),
                    "result": hex(result),
                    "runner_signature": hex(runner_signature.as_bytes()),
                })
            };
            json!({
                "job_id": hex(&job_id.0),
                "reveals": reveals.iter().map(reveal).collect::<Vec<_>>(),
                "aggregator_signature": aggregator_signature.map(|s| hex(s.as_bytes())),
            })
        }
        Payload::SubmitResult(SubmitResult { job_id, runner, result, runner_signature }) => json!({
            "job_id": hex(&job_id.0),
            "runner": address(runner),
            "result": hex(result),
            "runner_signature": hex(runner_signature.as_bytes()),
        }),
        Payload::ReportFailure(ReportFailure { job_id, runner, said, runner_signature }) => {
            json!({
                "job_id": hex(&job_id.0),
                "runner": address(runner),
                "rejected": matches!(said, Excuse::Rejected(_)),
                "reason": match said {
                    Excuse::Failed(reason) => reason.as_str(),
                    Excuse::Rejected(reason) => reason.as_str(),
                },
                "runner_signature": hex(runner_signature.as_bytes()),
            })
        }
        Payload::ReportEquivocation(ReportEquivocation {
            job_id,
            runner,
            deadline_block,
            first,
            second,
        }) => {
            let signed = |SignedCommitment { commitment, runner_signature }: &_| {
                json!({
                    "commitment": hex(&commitment.0),
                    "runner_signature": hex(runner_signature.as_bytes()),
                })
            };
            json!({
                "job_id": hex(&job_id.0),
                "runner": address(runner),
                "deadline_block": deadline_block.get(),
                "first": signed(first),
                "second": signed(second),
            })
        }
        Payload::ScheduleTimer(request) => timer(request),
        Payload::CancelTimer(CancelTimer { timer_id })
        | Payload::SysCancelTimer(CancelTimer { timer_id }) => {
            json!({ "timer_id": hex(&timer_id.0) })
        }
        Payload::ExtendTimer(ExtendTimer { timer_id, expires_at })
        | Payload::SysExtendTimer(ExtendTimer { timer_id, expires_at }) => {
            json!({ "timer_id": hex(&timer_id.0), "expires_at": expires_at.get() })
        }
        Payload::SysUpdateTimerConfig(UpdateTimerConfig { settings: proposed, height }) => json!({
            "settings": settings(proposed),
            "height": height.map(|height| height.get()),
        }),
        Payload::SetParameter(SetParameter { key, value }) => {
            json!({ "key": key, "value": setting(key, *value) })
        }
        Payload::SetPhase(SetPhase { phase }) => json!({ "phase": phase.name() }),
        Payload::CreateTask(CreateTask {
            task_id,
            depends_on,
            order_only,
            constraint_hash,
            requirements,
            reward,
            deadline,
        }) => json!({
            "task_id": hex(&task_id.0),
            "depends_on": hashes(depends_on),
            "order_only": hashes(order_only),
            "constraint_hash": constraint_hash.map(|hash| hex(&hash.to_bytes())),
            "requirements": requirements,
            "reward": amount(*reward),
            "deadline": deadline.get(),
        }),
        Payload::ClaimTask(ClaimTask { task_id, expires_at }) => {
            json!({ "task_id": hex(&task_id.0), "expires_at": expires_at.get() })
        }
        Payload::CreateCommitment(CreateCommitment {
            task_id,
            output_commitment,
            inputs,
            bond,
            expires_at,
        }) => {
            json!({
                "task_id": hex(&task_id.0),
                "output_commitment": hex(&output_commitment.to_bytes()),
                "inputs": hex(&inputs.0),
                "bond": amount(*bond),
                "expires_at": expires_at.map(|height| height.get()),
            })
        }
        Payload::CompleteTask(CompleteTask { task_id, parents, proof }) => json!({
            "task_id": hex(&task_id.0),
            "parents": hashes(parents),
            "proof": hex(proof),
        }),
        Payload::ResolveCommitment(ResolveCommitment { task_id, reason }) => json!({
            "task_id": hex(&task_id.0),
            "reason": reason.map(RollbackReason::name),
        }),
    }
}

pub(super) fn hashes(list: &[Hash]) -> Vec<Value> {
    list.iter().map(|hash| hex(&hash.0)).collect()
}

/// The request for a timer; null fields get a default.
fn timer(request: &TimerRequest) -> Value {
    let TimerRequest {
        actor,
        height: due,
        payload,
        handler,
        fee_payer,
        gas_limit,
        cell_limit,
        expires_at,
        max_fee_per_cycle,
        max_priority_fee_per_cycle,
        tier,
        gba,
        bid,
    } = request;
    json!({
        "actor": address(actor),
        "height": due.get(),
        "payload": hex(payload),
        "handler": handler,
        "fee_payer": fee_payer.as_ref().map(address),
        "gas_limit": gas_limit,
        "cell_limit": cell_limit,
        "expires_at": expires_at.map(height),
        "max_fee_per_cycle": max_fee_per_cycle.map(amount),
        "max_priority_fee_per_cycle": max_priority_fee_per_cycle.map(amount),
        "tier": tier.map(Tier::name),
        "gba": gba.as_ref().map(address),
        "bid": bid,
    })
}

fn offers(capabilities: &Capabilities) -> Value {
    let Capabilities { kinds, max_concurrent_jobs, tee, models, mcp_servers } = capabilities;
    json!({
        "kinds": kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "max_concurrent_jobs": max_concurrent_jobs,
        "tee": tee,
        "models": models,
        "mcp_servers": mcp_servers,
    })
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
