//! Jobs of actors in Python (spec pvm.md §4): the message to the dispatcher that a continuation
//! sends, and the reply that resumes it.

use crate::{
    fees::meter::{CALLBACK_CELLS, CALLBACK_CYCLES, MAX_RESUME_CELLS, MAX_RESUME_CYCLES},
    job::{
        document::{EXECUTION_MS, MAX_PRICE, MEMORY_MB, RETURN_BYTES},
        json::{Json, Pointer, token},
        schema::{Schema, Steps},
        spec::{
            Bounds, Callback, Check, Continuation, Failure, FailureReason, HttpWork, Job, JobSpec,
            JobStatus, LlmMessage, LlmWork, McpWork, Verification, VerificationMode, Work,
        },
        specification::MAX_RETURN_BYTES,
        state::MAX_RETRIES,
    },
    primitives::{
        Address, Hash, Wei,
        cbor::{self, CborValue},
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
/// Arguments that every `runner` function takes, and that no executor here knows.
const ABSENT: [&str; 3] = ["secrets", "volumes", "hire"];
/// The bounds of a structured answer: those that the SDK's tests put to it.
const MAX_SCHEMA_BYTES: usize = 8 * 1_024;
const MAX_DEPTH: usize = 10;
const MAX_NODES: usize = 4_091;
const MAX_INTEGER: i64 = (1 << 53) - 1;
/// Bytes of a continuation's id.
const CID_BYTES: usize = 32;

/// The job that `actor` asks for with a message to the dispatcher, or why the message asks for no
/// job.
pub(super) fn read(actor: Address, payload: &[u8]) -> Result<JobSpec, String> {
    let request = cbor::decode(payload).map_err(|error| format!("a runner job: {error}"))?;
    let field = |name: &str| field(&request, name);
    match field("kind") {
        Some(CborValue::Text(kind)) if kind == "runner_job" => {}
        _ => return Err("the dispatcher takes messages of kind `runner_job` only".into()),
    }
    let Some(CborValue::Text(job_type)) = field("job_type") else {
        return Err("a runner job needs a `job_type`".into());
    };
    let Some(CborValue::Text(handler)) = field("reply_handler") else {
        return Err("a runner job needs a `reply_handler`".into());
    };
    let cid = match field("cid") {
        Some(CborValue::Bytes(cid)) if cid.len() == CID_BYTES => cid.clone(),
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
    for name in ABSENT {
        if call.named(name).is_some() {
            return Err(format!("this devnet has no `{name}` for runner jobs"));
        }
    }
    let verification = call.verification()?;
    let cycles = call.within("resume_cycles", CALLBACK_CYCLES, MAX_RESUME_CYCLES)?;
    let cells = call.within("resume_cells", CALLBACK_CELLS, MAX_RESUME_CELLS)?;
    let resume = Some(Continuation { cid, cycles, cells });
    let work = match job_type.as_str() {
        "llm" => Work::Llm(call.llm()?),
        "http" => Work::Http(call.http()?),
        "mcp" => Work::Mcp(call.mcp()?),
        other => return Err(format!("this devnet has no runner jobs of type `{other}`")),
    };
    let spec = JobSpec {
        work,
        bounds: Bounds {
            max_return_bytes: RETURN_BYTES.min(MAX_RETURN_BYTES / verification.runners.max(1)),
            expected_execution_ms: EXECUTION_MS,
            data_format: "text".into(),
            max_memory_mb: MEMORY_MB,
        },
        verification,
        max_price: MAX_PRICE,
        tip: Wei::ZERO,
        timeout_blocks,
        callback: Some(Callback { actor, handler: handler.clone(), resume }),
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
    let text = |text: &str| CborValue::Text(text.to_owned());
    let handler = job.spec.callback.as_ref().map_or("", |callback| &callback.handler);
    let mut reply = vec![
        (text("cid"), CborValue::Text(hex::encode(cid))),
        (text("reply_handler"), text(handler)),
        (text("correlation_id"), CborValue::Null),
    ];
    match &job.status {
        JobStatus::Failed(Failure { reason, .. }) => {
            let reason = match reason {
                FailureReason::NoCandidates => "no_replacement_available",
                _ => "retries_exhausted",
            };
            let failure = [
                ("kind", text("failure")),
                ("v", CborValue::Int(1.into())),
                ("job_id", CborValue::Text(job_id.to_string())),
                ("reason", text(reason)),
                ("attempts", CborValue::Int((job.attempt.number.min(MAX_RETRIES) + 1).into())),
            ];
            let failure = failure.map(|(name, value)| (text(name), value)).to_vec();
            reply.push((text("failure"), CborValue::Map(failure)));
        }
        _ => {
            let result = match (&job.spec.work, std::str::from_utf8(result)) {
                (Work::Llm(LlmWork { model, response_schema: Some(schema), .. }), answer) => {
                    structured(model, schema, answer.unwrap_or_default())
                }
                (_, Ok(result)) => text(result),
                (_, Err(_)) => CborValue::Bytes(result.to_vec()),
            };
            reply.push((text("result"), result));
        }
    }
    cbor::encode(&CborValue::Map(reply)).expect("its keys differ and it is not deep")
}

/// The result of a call with a `response_schema`: the value that the model answered with, or that
/// its answer is no such value.
fn structured(model: &str, schema: &str, answer: &str) -> CborValue {
    let text = |text: &str| CborValue::Text(text.to_owned());
    let fits = |value: &CborValue| {
        let schema = Schema::compile(schema).ok()?;
        let json = Json::parse(answer.as_bytes()).ok()?;
        schema.check(&json, &mut Steps::for_document(answer.len())).ok()?;
        is_bounded(value, &mut 0, 1).then_some(())
    };
    let value = cbor::from_json(answer).ok().filter(|value| fits(value).is_some());
    let (status, last) = match value {
        Some(value) => ("ok", ("value", value)),
        None => ("non_success", ("code", text("invalid_structured_output"))),
    };
    let entries = [
        ("kind", text("llm_structured")),
        ("model", text(model)),
        ("status", text(status)),
        ("v", CborValue::Int(1.into())),
        last,
    ];
    CborValue::Map(entries.map(|(name, value)| (text(name), value)).to_vec())
}

fn is_bounded(value: &CborValue, nodes: &mut usize, depth: usize) -> bool {
    *nodes += 1;
    let here = *nodes <= MAX_NODES && depth <= MAX_DEPTH;
    here && match value {
        CborValue::Int(number) => number.magnitude() <= &MAX_INTEGER.unsigned_abs().into(),
        CborValue::List(list) => list.iter().all(|item| is_bounded(item, nodes, depth + 1)),
        CborValue::Map(entries) => {
            entries.iter().all(|(_, value)| is_bounded(value, nodes, depth + 1))
        }
        _ => true,
    }
}

fn field<'a>(value: &'a CborValue, name: &str) -> Option<&'a CborValue> {
    let CborValue::Map(entries) = value else { return None };
    let named =
        |(key, _): &&(CborValue, CborValue)| matches!(key, CborValue::Text(text) if text == name);
    entries.iter().find(named).map(|(_, value)| value)
}

/// The arguments of a `runner` function as the actor wrote them.
struct Arguments<'a> {
    args: &'a [CborValue],
    kwargs: &'a CborValue,
}

impl<'a> Arguments<'a> {
    fn of(call: &'a CborValue) -> Result<Self, String> {
        match (field(call, "args"), field(call, "kwargs")) {
            (Some(CborValue::List(args)), Some(kwargs @ CborValue::Map(_))) => {
                Ok(Self { args, kwargs })
            }
            _ => Err("a runner job's `payload` has a list `args` and a map `kwargs`".into()),
        }
    }

    /// The argument with a name; an argument without one has a place. `None` counts as absent.
    fn given(&self, name: &str, place: usize) -> Option<&'a CborValue> {
        let given = field(self.kwargs, name).or_else(|| self.args.get(place));
        given.filter(|given| **given != CborValue::Null)
    }

    fn named(&self, name: &str) -> Option<&'a CborValue> {
        self.given(name, usize::MAX)
    }

    fn text(&self, name: &str, place: usize) -> Result<Option<String>, String> {
        match self.given(name, place) {
            None => Ok(None),
            Some(CborValue::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{name}` must be text")),
        }
    }

    fn needed(&self, name: &str, place: usize) -> Result<String, String> {
        self.text(name, place)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.named(name) {
            None => Ok(None),
            Some(CborValue::Int(number)) => {
                let number = number.to_u64();
                number.map(Some).ok_or_else(|| format!("`{name}` must be from 0 to 2^64 - 1"))
            }
            Some(_) => Err(format!("`{name}` must be an int")),
        }
    }

    fn within(&self, name: &str, default: u64, most: u64) -> Result<u64, String> {
        match self.number(name)?.unwrap_or(default) {
            number if number <= most => Ok(number),
            number => Err(format!("`{name}` is at most {most}, not {number}")),
        }
    }

    /// What the SDK's `VerifyBuilder` makes.
    fn verification(&self) -> Result<Verification, String> {
        let Some(verify) = self.named("verify") else { return Ok(Verification::none()) };
        let config = Arguments { args: &[], kwargs: verify };
        let small = |name: &str| {
            let number = config.number(name)?.unwrap_or(1);
            u32::try_from(number).map_err(|_| format!("`verify`: `{name}` is too large"))
        };
        let (runners, threshold) = (small("runners")?, small("threshold")?);
        let checks = match config.named("checks") {
            None => Vec::new(),
            Some(CborValue::List(checks)) => {
                let checks: Result<Vec<_>, String> = checks.iter().map(check).collect();
                checks?.into_iter().flatten().collect()
            }
            Some(_) => return Err("`verify`: `checks` must be a list".into()),
        };
        let mode = config.text("mode", usize::MAX)?.unwrap_or_else(|| "none".into());
        let mode = match (mode.as_str(), checks.is_empty()) {
            ("none", true) => return Ok(Verification::none()),
            ("consensus" | "deterministic", true) => VerificationMode::Deterministic,
            ("consensus", false) => VerificationMode::StructuredMatch,
            ("none" | "deterministic", false) => {
                return Err(format!("`verify`: mode {mode} takes no checks here; use consensus"));
            }
            _ => {
                let what = "this devnet has none, consensus and deterministic";
                return Err(format!("`verify`: {what}, not mode {mode}"));
            }
        };
        let threshold = Some(threshold);
        Ok(Verification { threshold, checks, ..Verification::of(mode, runners) })
    }

    fn schema(&self) -> Result<Option<String>, String> {
        let Some(schema) = self.text("response_schema", usize::MAX)? else { return Ok(None) };
        if schema.len() > MAX_SCHEMA_BYTES {
            return Err(format!("`response_schema` has at most {MAX_SCHEMA_BYTES} bytes"));
        }
        Schema::compile(&schema).map_err(|error| format!("`response_schema`: {error}"))?;
        Ok(Some(schema))
    }

    fn llm(&self) -> Result<LlmWork, String> {
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
            response_schema: self.schema()?,
        })
    }

    /// A number in thousandths, rounded down, from the shortest decimals that give it.
    fn thousandths(&self, name: &str) -> Result<Option<u32>, String> {
        let decimals = match self.named(name) {
            None => return Ok(None),
            Some(CborValue::Int(number)) => number.to_string(),
            Some(CborValue::Float(number)) => number.to_string(),
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
            Some(CborValue::Map(entries)) => {
                let header = |(name, value): &(CborValue, CborValue)| match (name, value) {
                    (CborValue::Text(name), CborValue::Text(value)) => {
                        Ok((name.clone(), value.clone()))
                    }
                    _ => Err("`headers` must be a map of texts".to_owned()),
                };
                entries.iter().map(header).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("`headers` must be a map of texts".into()),
        };
        let body = match self.named("body") {
            None => None,
            Some(CborValue::Text(text)) => Some(text.clone().into_bytes()),
            Some(CborValue::Bytes(bytes)) => Some(bytes.clone()),
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
        let CborValue::Map(entries) = self.kwargs else { return Err("`kwargs` is no map".into()) };
        let own = ["server", "tool", "timeout_blocks"];
        let others = entries.iter().filter(
            |(key, _)| !matches!(key, CborValue::Text(name) if own.contains(&name.as_str())),
        );
        let arguments = CborValue::Map(others.cloned().collect()).to_json();
        let arguments = arguments.ok_or("a tool's arguments are JSON, without bytes")?;
        Json::parse(arguments.as_bytes()).map_err(|error| format!("the arguments: {error}"))?;
        Ok(McpWork { server: self.needed("server", 0)?, tool: self.needed("tool", 1)?, arguments })
    }
}

/// The checks of this chain that do what one of the SDK's 17 checkers does.
fn check(checker: &CborValue) -> Result<Vec<Check>, String> {
    let checker = Arguments { args: &[], kwargs: checker };
    let text = |name: &str| checker.needed(name, usize::MAX);
    let pointer = |name: &str| Ok::<_, String>(format!("/{}", token(&text(name)?)));
    let decimal = |name: &str| match checker.named(name) {
        Some(number @ (CborValue::Int(_) | CborValue::Float(_))) => Ok(number.to_string()),
        _ => Err(format!("`verify`: `{name}` must be a number")),
    };
    let kind = text("kind")?;
    Ok(match kind.as_str() {
        "exact_match" if checker.named("value").is_none() => vec![Check::Equal(String::new())],
        "json_schema_valid" => {
            let schema = checker.named("schema").and_then(CborValue::to_json);
            vec![Check::Schema(schema.ok_or("`verify`: a schema is JSON")?)]
        }
        "structured_match" => {
            let Some(CborValue::List(fields)) = checker.named("fields") else {
                return Err("`verify`: `fields` must be a list".into());
            };
            let equal = |field: &CborValue| match field {
                CborValue::Text(name) => Ok(Check::Equal(format!("/{}", token(name)))),
                _ => Err("`verify`: a field's name is text".to_owned()),
            };
            fields.iter().map(equal).collect::<Result<_, _>>()?
        }
        "numeric_tolerance" => {
            vec![Check::Tolerance { field: pointer("field")?, within: decimal("tolerance")? }]
        }
        "numeric_range" => {
            let (least, most) = (decimal("min")?, decimal("max")?);
            vec![Check::Range { field: pointer("field")?, least, most }]
        }
        other => return Err(format!("`verify`: this devnet has no check `{other}`")),
    })
}
