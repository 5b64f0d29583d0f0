//! Jobs as people and actors write them: a JSON object that becomes a [`JobSpec`] (spec jobs.md
//! §2).
//!
//! ```json
//! {
//!   "kind": "http",
//!   "work": { "url": "http://127.0.0.1:8080/price", "pointer": "/usd" },
//!   "verification": { "mode": "majority_vote", "runners": 3, "vote_field": "" },
//!   "max_price": "2cby"
//! }
//! ```
//!
//! Only `kind` and `work` are required. Amounts are texts with a unit, or wei; bytes are 0x-hex, or
//! plain text. An unknown field or a value of the wrong type is an error that names the field.
//! [`JobSpec::check`] validates the values.

use super::{
    decimal::Decimal,
    json::Json,
    specification::{Bounds, Callback, JobSpec, MAX_RETURN_BYTES},
    verification::{Check, Similarity, Verification},
    work::{
        CommandDelivery, CommandWork, EthSendWork, HttpWork, LlmMessage, LlmWork, McpWork, Work,
    },
};
use crate::{
    primitives::{Address, Wei},
    registry::JobKind,
};
use std::{collections::BTreeMap, str::FromStr};

/// Default maximum result, in bytes.
pub const RETURN_BYTES: u32 = 65_536;
/// Default maximum duration of the work, in ms.
pub const EXECUTION_MS: u64 = 30_000;
/// Default memory, in MiB.
pub const MEMORY_MB: u32 = 256;
/// Default maximum price of the work.
pub const MAX_PRICE: Wei = Wei::cby(1);
/// Default timeout of an attempt, in blocks.
pub const TIMEOUT_BLOCKS: u64 = 120;

/// The error for an invalid document. The text starts with the field's path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DocumentError {
    /// The path of the field, such as `verification.checks.0.within`; `job` for the document
    /// itself.
    pub place: String,
    pub problem: String,
}

type Read<T> = Result<T, DocumentError>;

/// Reads the job that a document describes.
pub fn read(document: Json) -> Read<JobSpec> {
    let mut job = ObjectFields::of(document, "")?;
    let kind: JobKind = job.parsed("kind")?.ok_or_else(|| job.missing("kind"))?;
    let work = work(kind, job.object("work")?.ok_or_else(|| job.missing("work"))?)?;
    let verification = match job.object("verification")? {
        Some(fields) => verification(fields)?,
        None => Verification::none(),
    };
    let bounds = bounds(job.object("bounds")?, verification.runners)?;
    let callback = job.object("callback")?.map(callback).transpose()?;
    let spec = JobSpec {
        work,
        bounds,
        verification,
        max_price: job.parsed("max_price")?.unwrap_or(MAX_PRICE),
        tip: job.parsed("tip")?.unwrap_or(Wei::ZERO),
        timeout_blocks: job.number("timeout_blocks")?.unwrap_or(TIMEOUT_BLOCKS),
        callback,
        required_runner_pool: job.text("required_runner_pool")?,
        tee_required: job.flag("tee_required")?.unwrap_or(false),
    };
    job.end()?;
    Ok(spec)
}

fn bounds(fields: Option<ObjectFields>, runners: u32) -> Read<Bounds> {
    // The results that a committee reveals together have to fit into a block.
    let each = RETURN_BYTES.min(MAX_RETURN_BYTES / runners.max(1));
    let mut fields = fields.unwrap_or_default();
    let bounds = Bounds {
        max_return_bytes: fields.small("max_return_bytes")?.unwrap_or(each),
        expected_execution_ms: fields.number("expected_execution_ms")?.unwrap_or(EXECUTION_MS),
        data_format: fields.text("data_format")?.unwrap_or_else(|| "bytes".into()),
        max_memory_mb: fields.small("max_memory_mb")?.unwrap_or(MEMORY_MB),
    };
    fields.end()?;
    Ok(bounds)
}

fn callback(mut fields: ObjectFields) -> Read<Callback> {
    let actor: Address = fields.parsed("actor")?.ok_or_else(|| fields.missing("actor"))?;
    let handler = fields.text("handler")?.ok_or_else(|| fields.missing("handler"))?;
    fields.end()?;
    Ok(Callback { actor, handler, resume: None })
}

fn work(kind: JobKind, mut fields: ObjectFields) -> Read<Work> {
    let work = match kind {
        JobKind::Llm => Work::Llm(LlmWork {
            model: fields.needed("model")?,
            messages: fields
                .list("messages")?
                .unwrap_or_default()
                .into_iter()
                .map(|mut message| {
                    let (role, content) = (message.needed("role")?, message.needed("content")?);
                    message.end()?;
                    Ok(LlmMessage { role, content })
                })
                .collect::<Read<_>>()?,
            max_tokens: fields.small("max_tokens")?,
            temperature_milli: fields.small("temperature_milli")?,
            seed: fields.number("seed")?,
            embedding_model: fields.text("embedding_model")?,
            response_schema: fields.json("response_schema")?,
        }),
        JobKind::Http => Work::Http(HttpWork {
            method: fields.text("method")?.unwrap_or_else(|| "GET".into()),
            url: fields.needed("url")?,
            headers: fields.pairs("headers")?,
            body: fields.bytes("body")?,
            pointer: fields.text("pointer")?,
        }),
        JobKind::Mcp => Work::Mcp(McpWork {
            server: fields.needed("server")?,
            tool: fields.needed("tool")?,
            arguments: fields.json("arguments")?.unwrap_or_else(|| "{}".into()),
        }),
        JobKind::EthSend => Work::EthSend(EthSendWork {
            transaction: fields
                .bytes("transaction")?
                .ok_or_else(|| fields.missing("transaction"))?,
            confirmations: fields.small("confirmations")?.unwrap_or(1),
        }),
        JobKind::Custom => Work::Custom(CommandWork {
            program: fields.needed("program")?,
            args: fields.texts("args")?,
            env: fields.pairs("env")?,
            stdin: fields.bytes("stdin")?,
            delivery: match fields.text("delivery")?.as_deref() {
                None | Some("push") => None,
                Some(name) => Some(CommandDelivery::named(name).ok_or_else(|| {
                    fields.problem("delivery", format!("is `{name}`; expected push or lease"))
                })?),
            },
        }),
    };
    fields.end()?;
    Ok(work)
}

fn verification(mut fields: ObjectFields) -> Read<Verification> {
    let mode = fields.parsed("mode")?.ok_or_else(|| fields.missing("mode"))?;
    let runners = fields.small("runners")?.unwrap_or(1);
    let mut verification = Verification::of(mode, runners);
    verification.threshold = fields.small("threshold")?;
    verification.vote_field = fields.text("vote_field")?;
    let checks = fields.list("checks")?.unwrap_or_default();
    verification.checks = checks.into_iter().map(one_check).collect::<Read<_>>()?;
    if let Some(mut similarity) = fields.object("similarity")? {
        verification.similarity = Some(Similarity {
            model: similarity.needed("model")?,
            least_permille: similarity
                .small("least_permille")?
                .ok_or_else(|| similarity.missing("least_permille"))?,
        });
        similarity.end()?;
    }
    fields.end()?;
    Ok(verification)
}

/// Reads one check of `structured_match`: an object with the check's name as its only key.
pub fn check(document: Json) -> Read<Check> {
    one_check(ObjectFields::of(document, "")?)
}

fn one_check(mut fields: ObjectFields) -> Read<Check> {
    let found = if let Some(schema) = fields.json("schema")? {
        Check::Schema(schema)
    } else if let Some(field) = fields.text("equal")? {
        Check::Equal(field)
    } else if let Some(field) = fields.text("majority")? {
        Check::Majority(field)
    } else if let Some(mut tolerance) = fields.object("tolerance")? {
        let (field, within) = (tolerance.needed("field")?, tolerance.decimal("within")?);
        tolerance.end()?;
        Check::Tolerance { field, within }
    } else if let Some(mut range) = fields.object("range")? {
        let field = range.needed("field")?;
        let (least, most) = (range.decimal("least")?, range.decimal("most")?);
        range.end()?;
        Check::Range { field, least, most }
    } else {
        let problem = "names no check; expected schema, equal, tolerance, range or majority";
        return Err(fields.problem("", problem.into()));
    };
    fields.end()?;
    Ok(found)
}

/// An object's fields, which are taken out one by one.
#[derive(Default)]
struct ObjectFields {
    /// The path of the object, with a trailing dot.
    place: String,
    fields: BTreeMap<String, Json>,
    known: Vec<&'static str>,
}

impl ObjectFields {
    fn of(json: Json, place: &str) -> Read<Self> {
        let object = Self { place: place.to_owned(), ..Self::default() };
        match json {
            Json::Object(fields) => Ok(Self { fields, ..object }),
            _ => Err(object.problem("", "is not an object".into())),
        }
    }

    fn problem(&self, name: &str, problem: String) -> DocumentError {
        let place = format!("{}{name}", self.place);
        let place = place.trim_end_matches('.');
        let place = if place.is_empty() { "job" } else { place };
        DocumentError { place: place.to_owned(), problem }
    }

    fn missing(&self, name: &str) -> DocumentError {
        self.problem(name, "is missing".into())
    }

    /// Null counts as absent.
    fn take(&mut self, name: &'static str) -> Option<Json> {
        self.known.push(name);
        self.fields.remove(name).filter(|value| *value != Json::Null)
    }

    fn shaped<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        shape: impl FnOnce(Json) -> Option<T>,
    ) -> Read<Option<T>> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match shape(value) {
                Some(shaped) => Ok(Some(shaped)),
                None => Err(self.problem(name, format!("is not {expected}"))),
            },
        }
    }

    fn text(&mut self, name: &'static str) -> Read<Option<String>> {
        self.shaped(name, "a string", |value| match value {
            Json::Text(text) => Some(text),
            _ => None,
        })
    }

    fn needed(&mut self, name: &'static str) -> Read<String> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    fn flag(&mut self, name: &'static str) -> Read<Option<bool>> {
        self.shaped(name, "true or false", |value| match value {
            Json::Bool(flag) => Some(flag),
            _ => None,
        })
    }

    fn number(&mut self, name: &'static str) -> Read<Option<u64>> {
        self.shaped(name, "a whole number from 0 to 2^64 - 1", |value| match value {
            Json::Number(number) => number.to_u64(),
            _ => None,
        })
    }

    fn small(&mut self, name: &'static str) -> Read<Option<u32>> {
        self.shaped(name, "a whole number from 0 to 2^32 - 1", |value| match value {
            Json::Number(number) => number.to_u64().and_then(|number| number.try_into().ok()),
            _ => None,
        })
    }

    /// A number, or a text that is a number in JSON's notation.
    fn decimal(&mut self, name: &'static str) -> Read<String> {
        let number = self.shaped(name, "a number", |value| match value {
            Json::Number(number) => Some(number.to_string()),
            Json::Text(text) => Decimal::from_str(&text).ok().map(|number| number.to_string()),
            _ => None,
        })?;
        number.ok_or_else(|| self.missing(name))
    }

    /// A text or a whole number that is parsed as `T`.
    fn parsed<T>(&mut self, name: &'static str) -> Read<Option<T>>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let text = match self.take(name) {
            None => return Ok(None),
            Some(Json::Text(text)) => text,
            Some(Json::Number(number)) => number.to_string(),
            Some(_) => return Err(self.problem(name, "is not a string".into())),
        };
        text.parse().map(Some).map_err(|error: T::Err| self.problem(name, error.to_string()))
    }

    /// Bytes from 0x-hex, or from plain text.
    fn bytes(&mut self, name: &'static str) -> Read<Option<Vec<u8>>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.strip_prefix("0x") {
            None => Ok(Some(text.into_bytes())),
            Some(digits) => hex::decode(digits)
                .map(Some)
                .map_err(|error| self.problem(name, format!("is not 0x-hex: {error}"))),
        }
    }

    /// Any JSON, or a text that contains it, as text.
    fn json(&mut self, name: &'static str) -> Read<Option<String>> {
        Ok(self.take(name).map(|value| match value {
            Json::Text(text) => text,
            other => other.to_string(),
        }))
    }

    fn object(&mut self, name: &'static str) -> Read<Option<Self>> {
        let place = format!("{}{name}.", self.place);
        self.take(name).map(|value| Self::of(value, &place)).transpose()
    }

    fn list(&mut self, name: &'static str) -> Read<Option<Vec<Self>>> {
        let place = format!("{}{name}.", self.place);
        let Some(values) = self.values(name)? else { return Ok(None) };
        let of = |(index, value)| Self::of(value, &format!("{place}{index}."));
        values.into_iter().enumerate().map(of).collect::<Read<_>>().map(Some)
    }

    fn values(&mut self, name: &'static str) -> Read<Option<Vec<Json>>> {
        self.shaped(name, "a list", |value| match value {
            Json::List(values) => Some(values),
            _ => None,
        })
    }

    fn texts(&mut self, name: &'static str) -> Read<Vec<String>> {
        let values = self.values(name)?.unwrap_or_default();
        let text = |value| match value {
            Json::Text(text) => Ok(text),
            Json::Number(number) => Ok(number.to_string()),
            _ => Err(self.problem(name, "is not a list of strings".into())),
        };
        values.into_iter().map(text).collect()
    }

    /// Names and values: an object, or a list of pairs in order.
    fn pairs(&mut self, name: &'static str) -> Read<Vec<(String, String)>> {
        let refused = |fields: &Self| {
            fields.problem(name, "is neither an object of strings nor a list of pairs".into())
        };
        let pairs: Option<Vec<(String, String)>> = match self.take(name) {
            None => Some(Vec::new()),
            Some(Json::Object(fields)) => fields
                .into_iter()
                .map(|(name, value)| match value {
                    Json::Text(text) => Some((name, text)),
                    _ => None,
                })
                .collect(),
            Some(Json::List(pairs)) => pairs
                .into_iter()
                .map(|pair| match pair {
                    Json::List(pair) => match <[Json; 2]>::try_from(pair) {
                        Ok([Json::Text(name), Json::Text(value)]) => Some((name, value)),
                        _ => None,
                    },
                    _ => None,
                })
                .collect(),
            Some(_) => None,
        };
        pairs.ok_or_else(|| refused(self))
    }

    fn end(self) -> Read<()> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let known = self.known.join(", ");
        Err(self.problem(name, format!("is unknown; expected one of {known}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::verification::VerificationMode;

    fn job(text: &str) -> Read<JobSpec> {
        read(Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_short_document_has_defaults() {
        let spec = job(r#"{"kind": "http", "work": {"url": "http://a/"}}"#).unwrap();
        assert_eq!(spec.check(), Ok(()));
        assert_eq!(spec.verification, Verification::none());
        assert_eq!((spec.max_price, spec.timeout_blocks), (Wei::cby(1), 120));
        assert_eq!(spec.bounds.max_return_bytes, 65_536);
        let Work::Http(work) = spec.work else { panic!() };
        assert_eq!(work.method, "GET");
    }

    #[test]
    fn every_field_is_read() {
        let spec = job(r#"{"kind": "custom",
            "work": {"program": "sh", "args": ["-c", 7], "env": [["A", "b"]], "stdin": "0x6869"},
            "bounds": {"max_return_bytes": 9, "expected_execution_ms": 8, "data_format": "json",
                "max_memory_mb": 7},
            "verification": {"mode": "structured_match", "runners": 4, "threshold": 3, "checks": [
                {"schema": {"type": "object"}}, {"equal": "/a"}, {"majority": "/b"},
                {"tolerance": {"field": "/c", "within": 0.5}},
                {"range": {"field": "/c", "least": "-1", "most": 1e2}}]},
            "max_price": "2.5cby", "tip": 7, "timeout_blocks": 20,
            "callback": {"actor": "0x0101010101010101010101010101010101010101", "handler": "h"},
            "required_runner_pool": "p", "tee_required": true}"#)
        .unwrap();
        assert_eq!(spec.check(), Ok(()));
        assert_eq!(spec.max_price, Wei::new(2_500_000_000));
        assert_eq!((spec.tip, spec.timeout_blocks, spec.tee_required), (Wei::new(7), 20, true));
        assert_eq!(spec.callback.unwrap().actor, Address([1; 20]));
        assert_eq!(spec.verification.mode, VerificationMode::StructuredMatch);
        assert_eq!(spec.verification.checks.len(), 5);
        let Work::Custom(work) = spec.work else { panic!() };
        assert_eq!(work.delivery, None);
        let by = |way: &str| {
            job(&format!(
                r#"{{"kind": "custom", "work": {{"program": "sh", "delivery": "{way}"}}}}"#
            ))
        };
        let Work::Custom(lease) = by("lease").unwrap().work else { panic!() };
        assert_eq!(lease.delivery, Some(CommandDelivery::Lease));
        assert_eq!(
            by("post").unwrap_err().to_string(),
            "work.delivery: is `post`; expected push or lease"
        );
        assert_eq!((work.args[1].as_str(), work.stdin.as_deref()), ("7", Some(&b"hi"[..])));
        assert_eq!(work.env, [("A".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn the_other_kinds_are_read() {
        let check = |text: &str, kind: JobKind| {
            let spec = job(text).unwrap();
            assert_eq!((spec.work.kind(), spec.check()), (kind, Ok(())), "{text}");
        };
        check(
            r#"{"kind": "llm", "work": {"model": "m", "seed": 1, "max_tokens": 9,
                "messages": [{"role": "user", "content": "hi"}]}}"#,
            JobKind::Llm,
        );
        check(
            r#"{"kind": "mcp", "work": {"server": "s", "tool": "t", "arguments": {"a": 1}}}"#,
            JobKind::Mcp,
        );
        check(r#"{"kind": "eth_send", "work": {"transaction": "0x02aa"}}"#, JobKind::EthSend);
    }

    #[test]
    fn errors_name_the_field() {
        let check = |text: &str, expected: &str| {
            let error = job(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check("[]", "job: is not an object");
        check("{}", "kind: is missing");
        check(r#"{"kind": "dance"}"#, "kind: `dance` is not a job kind");
        check(r#"{"kind": "http"}"#, "work: is missing");
        check(r#"{"kind": "http", "work": {}}"#, "work.url: is missing");
        check(r#"{"kind": "http", "work": {"url": 1}}"#, "work.url: is not a string");
        check(
            r#"{"kind": "http", "work": {"url": "http://a", "verb": "x"}}"#,
            "work.verb: is unknown; expected one of method, url,",
        );
        check(r#"{"kind": "http", "work": {"url": "a"}, "fee": 1}"#, "fee: is unknown");
        let with = |verification: &str| {
            format!(
                r#"{{"kind": "http", "work": {{"url": "http://a"}}, "verification": {verification}}}"#
            )
        };
        check(&with(r#"{"mode": "votes"}"#), "verification.mode: ");
        check(&with(r#"{"mode": "none", "runners": -1}"#), "verification.runners: is not a whole");
        check(
            &with(r#"{"mode": "structured_match", "checks": [{"close": 1}]}"#),
            "verification.checks.0: names no check",
        );
        check(
            &with(
                r#"{"mode": "structured_match", "checks": [{"range": {"field": "", "least": "x"}}]}"#,
            ),
            "verification.checks.0.range.least: is not a number",
        );
    }
}
