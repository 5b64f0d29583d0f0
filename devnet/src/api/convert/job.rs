//! Job specifications and their states.

use super::{address, amount, optional_hex};
use crate::types::{Candidate, JobStatus};
use cowboy_engine::{
    job::{
        filter::Verdict,
        spec::{
            self, Check, CommandDelivery, CommandWork, EthSendWork, HttpWork, JobSpec, LlmMessage,
            LlmWork, McpWork, Similarity, Verification, Work,
        },
    },
    primitives::Address,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(in crate::api) fn spec(spec: &JobSpec) -> Value {
    let JobSpec {
        work,
        bounds,
        verification,
        max_price,
        tip,
        timeout_blocks,
        callback,
        required_runner_pool,
        tee_required,
    } = spec;
    json!({
        "kind": work.kind().name(),
        "work": parameters(work),
        "bounds": {
            "max_return_bytes": bounds.max_return_bytes,
            "expected_execution_ms": bounds.expected_execution_ms,
            "data_format": bounds.data_format,
            "max_memory_mb": bounds.max_memory_mb,
        },
        "verification": self::verification(verification),
        "max_price": amount(*max_price),
        "tip": amount(*tip),
        "timeout_blocks": timeout_blocks,
        "callback": callback.as_ref().map(|callback| {
            json!({ "actor": address(&callback.actor), "handler": callback.handler })
        }),
        "required_runner_pool": required_runner_pool,
        "tee_required": tee_required,
    })
}

/// The verification of the result, with only the fields that its mode uses.
fn verification(verification: &Verification) -> Value {
    let Verification { mode, runners, threshold, vote_field, checks, similarity } = verification;
    let mut shown = json!({ "mode": mode.name(), "runners": runners });
    let fields = shown.as_object_mut().expect("it is an object");
    if let Some(threshold) = threshold {
        fields.insert("threshold".into(), (*threshold).into());
    }
    if let Some(field) = vote_field {
        fields.insert("vote_field".into(), field.as_str().into());
    }
    if !checks.is_empty() {
        fields.insert("checks".into(), checks.iter().map(check).collect());
    }
    if let Some(Similarity { model, least_permille }) = similarity {
        let similarity = json!({ "model": model, "least_permille": least_permille });
        fields.insert("similarity".into(), similarity);
    }
    shown
}

fn check(check: &Check) -> Value {
    let value = match check {
        Check::Schema(text) | Check::Equal(text) | Check::Majority(text) => text.as_str().into(),
        Check::Tolerance { field, within } => json!({ "field": field, "within": within }),
        Check::Range { field, least, most } => {
            json!({ "field": field, "least": least, "most": most })
        }
    };
    json!({ check.name(): value })
}

/// The work of each kind. Headers and environment are lists of pairs because their order counts and
/// a name may occur twice.
fn parameters(work: &Work) -> Value {
    match work {
        Work::Llm(work) => {
            let LlmWork { model, messages, max_tokens, temperature_milli, seed, embedding_model } =
                work;
            let message = |LlmMessage { role, content }: &LlmMessage| json!({ "role": role, "content": content });
            json!({
                "model": model,
                "messages": messages.iter().map(message).collect::<Vec<_>>(),
                "max_tokens": max_tokens,
                "temperature_milli": temperature_milli,
                "seed": seed,
                "embedding_model": embedding_model,
            })
        }
        Work::Mcp(McpWork { server, tool, arguments }) => json!({
            "server": server,
            "tool": tool,
            "arguments": arguments,
        }),
        Work::EthSend(EthSendWork { transaction, confirmations }) => json!({
            "transaction": optional_hex(Some(transaction)),
            "confirmations": confirmations,
        }),
        Work::Http(HttpWork { method, url, headers, body, pointer }) => json!({
            "method": method,
            "url": url,
            "headers": headers,
            "body": optional_hex(body.as_ref()),
            "pointer": pointer,
        }),
        Work::Custom(CommandWork { program, args, env, stdin, delivery }) => json!({
            "program": program,
            "args": args,
            "env": env,
            "stdin": optional_hex(stdin.as_ref()),
            "delivery": delivery.map_or("push", CommandDelivery::name),
        }),
    }
}

pub(in crate::api) const fn status(status: &spec::JobStatus) -> JobStatus {
    match status {
        spec::JobStatus::Pending => JobStatus::Pending,
        spec::JobStatus::Assigned(_) => JobStatus::Assigned,
        spec::JobStatus::Running(_) => JobStatus::Running,
        spec::JobStatus::Committed(_) => JobStatus::Committed,
        spec::JobStatus::Cancelled(_) => JobStatus::Cancelled,
        spec::JobStatus::Verified(..) => JobStatus::Verified,
        spec::JobStatus::Failed(_) => JobStatus::Failed,
    }
}

/// A result as text, if it is UTF-8.
pub(in crate::api) fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// A draw's verdict on the runner with the name `runner`. `gone`: the runners that passed the
/// filters and left the registry in the block that drew. `favoured`: the MRU runner, and the factor
/// of its weight in draw 0.
pub(crate) fn candidate(
    verdict: &Verdict,
    gone: &BTreeSet<Address>,
    favoured: Option<(Address, u64)>,
    runner: String,
) -> Candidate {
    let Verdict { runner: address, stake, weight, dropped_by, reason, .. } = verdict;
    let (filter, reason) = match dropped_by {
        Some(filter) => (Some(filter.name().to_owned()), Some(reason.clone())),
        None if gone.contains(address) => {
            (Some("health".to_owned()), Some("deregistered in the block that drew".to_owned()))
        }
        None => (None, None),
    };
    Candidate {
        runner,
        address: (*address).into(),
        weight: filter.is_none().then_some(*weight),
        first_weight: filter.is_none().then(|| {
            let times = favoured.filter(|(runner, _)| runner == address).map_or(1, |(_, n)| n);
            weight.saturating_mul(times)
        }),
        stake: Some((*stake).into()),
        filter,
        reason,
    }
}
