//! Job specifications and their states.

use super::ToJson;
use crate::types::{Candidate, JobStatus};
use cowboy_engine::{
    job::{
        filter::Verdict,
        spec::{
            self, Bounds, Callback, Check, CommandDelivery, CommandWork, Continuation, EthSendWork,
            HttpWork, JobSpec, LlmMessage, LlmWork, McpWork, Similarity, Verification, Work,
        },
    },
    primitives::Address,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl ToJson for JobSpec {
    fn to_json(&self) -> Value {
        let Self {
            work,
            bounds,
            verification,
            max_price,
            tip,
            timeout_blocks,
            callback,
            required_runner_pool,
            tee_required,
        } = self;
        let kind = &work.kind();
        fields!(
            kind,
            work,
            bounds,
            verification,
            max_price,
            tip,
            timeout_blocks,
            callback,
            required_runner_pool,
            tee_required
        )
    }
}

/// The verification of the result, with only the fields that its mode uses.
impl ToJson for Verification {
    fn to_json(&self) -> Value {
        let Self { mode, runners, threshold, vote_field, checks, similarity } = self;
        let mut shown = json!({ "mode": mode.name(), "runners": runners });
        if let Some(threshold) = threshold {
            shown["threshold"] = (*threshold).into();
        }
        if let Some(field) = vote_field {
            shown["vote_field"] = field.as_str().into();
        }
        if !checks.is_empty() {
            shown["checks"] = checks.iter().map(check).collect();
        }
        if let Some(Similarity { model, least_permille }) = similarity {
            shown["similarity"] = json!({ "model": model, "least_permille": least_permille });
        }
        shown
    }
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

impl ToJson for Work {
    fn to_json(&self) -> Value {
        match self {
            Self::Llm(work) => work.to_json(),
            Self::Http(work) => work.to_json(),
            Self::Mcp(work) => work.to_json(),
            Self::EthSend(work) => work.to_json(),
            Self::Custom(CommandWork { program, args, env, stdin, delivery }) => {
                let delivery = &delivery.map_or("push", CommandDelivery::name).to_owned();
                fields!(program, args, env, stdin, delivery)
            }
        }
    }
}

// Headers and environment are lists of pairs because their order counts and a name may occur twice.
records! {
    Bounds { max_return_bytes, expected_execution_ms, data_format, max_memory_mb }
    Callback { actor, handler, resume }
    Continuation { cid, cycles, cells }
    LlmWork {
        model, messages, max_tokens, temperature_milli, seed, embedding_model, response_schema
    }
    LlmMessage { role, content }
    HttpWork { method, url, headers, body, pointer }
    McpWork { server, tool, arguments }
    EthSendWork { transaction, confirmations }
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
