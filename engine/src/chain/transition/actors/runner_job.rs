//! Jobs of actors in Python (spec pvm.md §4): the message to the dispatcher that a continuation
//! sends, and the reply that resumes it.

use crate::{
    job::{
        document::{EXECUTION_MS, MAX_PRICE, MEMORY_MB, RETURN_BYTES},
        json::{Json, Pointer},
        spec::{
            Bounds, Callback, Failure, FailureReason, HttpWork, Job, JobSpec, JobStatus,
            LlmMessage, LlmWork, McpWork, Verification, Work,
        },
        state::MAX_RETRIES,
    },
    primitives::{
        Address, Hash, Wei,
        cbor::{self, Value},
        json::quoted,
    },
};
use num_traits::ToPrimitive as _;

/// Blocks that a job may take if its call says nothing, and the range of what it may say.
const TIMEOUT_BLOCKS: u64 = 30;
const TIMEOUTS: std::ops::RangeInclusive<u64> = 10..=600;
/// The most tokens that a call may ask for.
const MAX_TOKENS: u64 = 32_768;
/// The model of a call that names none.
const MODEL: &str = "default";
/// Bytes of a continuation's id.
const CID_BYTES: usize = 32;

/// The job that `actor` asks for with a message to the dispatcher, or why the message asks for no job.
pub(super) fn read(actor: Address, payload: &[u8]) -> Result<JobSpec, String> {
    let request = cbor::decode(payload).map_err(|error| format!("a runner job: {error}"))?;
    let field = |name: &str| field(&request, name);
    match field("kind") {
        Some(Value::Text(kind)) if kind == "runner_job" => {}
        _ => return Err("the dispatcher takes messages of kind `runner_job` only".into()),
    }
    let Some(Value::Text(job_type)) = field("job_type") else {
        return Err("a runner job needs a `job_type`".into());
    };
    let Some(Value::Text(handler)) = field("reply_handler") else {
        return Err("a runner job needs a `reply_handler`".into());
    };
    let cid = match field("cid") {
        Some(Value::Bytes(cid)) if cid.len() == CID_BYTES => cid.clone(),
        _ => return Err(format!("a runner job needs a `cid` of {CID_BYTES} bytes")),
    };
    let Some(call) = field("payload") else {
        return Err("a runner job needs a `payload` of args and kwargs".into());
    };
    let call = Arguments::of(call)?;
    let timeout_blocks = call.number("timeout_blocks")?.unwrap_or(TIMEOUT_BLOCKS);
    if !TIMEOUTS.contains(&timeout_blocks) {
        return Err(format!("`timeout_blocks` must be from 10 to 600, not {timeout_blocks}"));
    }
    let work = match job_type.as_str() {
        "llm" => Work::Llm(call.llm()?),
        "http" => Work::Http(call.http()?),
        "mcp" => Work::Mcp(call.mcp()?),
        other => return Err(format!("this devnet has no runner jobs of type `{other}`")),
    };
    let spec = JobSpec {
        work,
        bounds: Bounds {
            max_return_bytes: RETURN_BYTES,
            expected_execution_ms: EXECUTION_MS,
            data_format: "text".into(),
            max_memory_mb: MEMORY_MB,
        },
        verification: Verification::none(),
        max_price: MAX_PRICE,
        tip: Wei::ZERO,
        timeout_blocks,
        callback: Some(Callback { actor, handler: handler.clone(), cid: Some(cid) }),
        required_runner_pool: None,
        tee_required: false,
    };
    spec.check().map_err(|error| error.to_string())?;
    Ok(spec)
}

/// The payload of the call that resumes the continuation `cid`: what its job has come to.
pub(in crate::chain::transition) fn reply(
    (job_id, cid): (&Hash, &[u8]),
    job: &Job,
    result: &[u8],
) -> Vec<u8> {
    let text = |text: &str| Value::Text(text.to_owned());
    let handler = job.spec.callback.as_ref().map_or("", |callback| &callback.handler);
    let mut reply = vec![
        (text("cid"), Value::Text(hex::encode(cid))),
        (text("reply_handler"), text(handler)),
        (text("correlation_id"), Value::Null),
    ];
    match &job.status {
        JobStatus::Failed(Failure { reason, .. }) => {
            let reason = match reason {
                FailureReason::NoCandidates => "no_replacement_available",
                _ => "retries_exhausted",
            };
            let failure = [
                ("kind", text("failure")),
                ("v", Value::Int(1.into())),
                ("job_id", Value::Text(job_id.to_string())),
                ("reason", text(reason)),
                ("attempts", Value::Int((job.attempt.number.min(MAX_RETRIES) + 1).into())),
            ];
            let failure = failure.map(|(name, value)| (text(name), value)).to_vec();
            reply.push((text("failure"), Value::Map(failure)));
        }
        _ => {
            let result = match std::str::from_utf8(result) {
                Ok(result) => text(result),
                Err(_) => Value::Bytes(result.to_vec()),
            };
            reply.push((text("result"), result));
        }
    }
    cbor::encode(&Value::Map(reply)).expect("its keys differ and it is not deep")
}

fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(entries) = value else { return None };
    let named = |(key, _): &&(Value, Value)| matches!(key, Value::Text(text) if text == name);
    entries.iter().find(named).map(|(_, value)| value)
}

/// The arguments of a `runner` function as the actor wrote them.
struct Arguments<'a> {
    args: &'a [Value],
    kwargs: &'a Value,
}

impl<'a> Arguments<'a> {
    fn of(call: &'a Value) -> Result<Self, String> {
        match (field(call, "args"), field(call, "kwargs")) {
            (Some(Value::List(args)), Some(kwargs @ Value::Map(_))) => Ok(Self { args, kwargs }),
            _ => Err("a runner job's `payload` has a list `args` and a map `kwargs`".into()),
        }
    }

    /// The argument with a name; an argument without one has a place. `None` counts as absent.
    fn given(&self, name: &str, place: usize) -> Option<&'a Value> {
        let given = field(self.kwargs, name).or_else(|| self.args.get(place));
        given.filter(|given| **given != Value::Null)
    }

    fn named(&self, name: &str) -> Option<&'a Value> {
        self.given(name, usize::MAX)
    }

    fn text(&self, name: &str, place: usize) -> Result<Option<String>, String> {
        match self.given(name, place) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{name}` must be text")),
        }
    }

    fn needed(&self, name: &str, place: usize) -> Result<String, String> {
        self.text(name, place)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.named(name) {
            None => Ok(None),
            Some(Value::Int(number)) => {
                let number = number.to_u64();
                number.map(Some).ok_or_else(|| format!("`{name}` must be from 0 to 2^64 - 1"))
            }
            Some(_) => Err(format!("`{name}` must be an int")),
        }
    }

    fn llm(&self) -> Result<LlmWork, String> {
        if self.named("response_schema").is_some() {
            return Err("this devnet has no structured answers (`response_schema`)".into());
        }
        let mut messages = Vec::new();
        if let Some(content) = self.text("system_prompt", usize::MAX)? {
            messages.push(LlmMessage { role: "system".into(), content });
        }
        messages.push(LlmMessage { role: "user".into(), content: self.needed("prompt", 0)? });
        let max_tokens = self.number("max_tokens")?;
        if let Some(tokens) = max_tokens.filter(|tokens| *tokens > MAX_TOKENS) {
            return Err(format!("`max_tokens` is at most {MAX_TOKENS}, not {tokens}"));
        }
        Ok(LlmWork {
            model: self.text("model", usize::MAX)?.unwrap_or_else(|| MODEL.into()),
            messages,
            max_tokens: max_tokens.and_then(|tokens| u32::try_from(tokens).ok()),
            temperature_milli: self.thousandths("temperature")?,
            seed: self.number("seed")?,
            embedding_model: None,
        })
    }

    /// A number in thousandths, rounded down, from the shortest decimals that give it.
    fn thousandths(&self, name: &str) -> Result<Option<u32>, String> {
        let decimals = match self.named(name) {
            None => return Ok(None),
            Some(Value::Int(number)) => number.to_string(),
            Some(Value::Float(number)) => number.to_string(),
            Some(_) => return Err(format!("`{name}` must be a number")),
        };
        let (whole, fraction) = decimals.split_once('.').unwrap_or((&decimals, ""));
        let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
        let milli = format!("{whole}{digits}").parse();
        milli.map(Some).map_err(|_| format!("`{name}` must be from 0 to 2^32 / 1000"))
    }

    fn http(&self) -> Result<HttpWork, String> {
        let headers = match self.named("headers") {
            None => Vec::new(),
            Some(Value::Map(entries)) => {
                let header = |(name, value): &(Value, Value)| match (name, value) {
                    (Value::Text(name), Value::Text(value)) => Ok((name.clone(), value.clone())),
                    _ => Err("`headers` must be a map of texts".to_owned()),
                };
                entries.iter().map(header).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("`headers` must be a map of texts".into()),
        };
        let body = match self.named("body") {
            None => None,
            Some(Value::Text(text)) => Some(text.clone().into_bytes()),
            Some(Value::Bytes(bytes)) => Some(bytes.clone()),
            Some(_) => return Err("`body` must be text or bytes".into()),
        };
        let pointer = self.text("pointer", usize::MAX)?;
        if let Some(pointer) = &pointer {
            Pointer::parse(pointer).map_err(|error| format!("`pointer`: {error}"))?;
        }
        let method = self.text("method", usize::MAX)?.unwrap_or_else(|| "GET".into());
        Ok(HttpWork { method, url: self.needed("url", 0)?, headers, body, pointer })
    }

    fn mcp(&self) -> Result<McpWork, String> {
        let Value::Map(entries) = self.kwargs else { return Err("`kwargs` is no map".into()) };
        let own = ["server", "tool", "timeout_blocks"];
        let others = entries
            .iter()
            .filter(|(key, _)| !matches!(key, Value::Text(name) if own.contains(&name.as_str())));
        let arguments: Vec<String> = others
            .map(|(key, value)| match key {
                Value::Text(name) => Ok(format!("{}:{}", quoted(name), json(value)?)),
                _ => Err("a tool's arguments have names".to_owned()),
            })
            .collect::<Result<_, _>>()?;
        let arguments = format!("{{{}}}", arguments.join(","));
        Json::parse(arguments.as_bytes()).map_err(|error| format!("the arguments: {error}"))?;
        Ok(McpWork { server: self.needed("server", 0)?, tool: self.needed("tool", 1)?, arguments })
    }
}

/// A value as JSON; bytes have none.
fn json(value: &Value) -> Result<String, String> {
    let all = |items: Vec<Result<String, String>>| items.into_iter().collect::<Result<Vec<_>, _>>();
    Ok(match value {
        Value::Bytes(_) => return Err("bytes are no JSON: give text".into()),
        Value::List(list) => format!("[{}]", all(list.iter().map(json).collect())?.join(",")),
        Value::Map(entries) => {
            let entry = |(key, value): &(Value, Value)| match key {
                Value::Text(name) => Ok(format!("{}:{}", quoted(name), json(value)?)),
                _ => Err("keys of JSON are texts".to_owned()),
            };
            format!("{{{}}}", all(entries.iter().map(entry).collect())?.join(","))
        }
        other => other.to_string(),
    })
}
