//! Parts of a request: the token, the body, the parameters.

use super::{
    super::{
        check::{self, MAX_WHOLE},
        messages::{ErrorCode, LEASE_HEADER, MAX_MESSAGE, PAGE, PAGE_LIMIT},
    },
    Context,
    error::Refused,
};
use crate::machine::RunnerId;
use axum::{
    body::{Body, Bytes},
    extract::Query,
    http::{HeaderMap, StatusCode, Uri},
};
use cowboy_host::http::bearer::{bearer, is_token};
use futures::StreamExt as _;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{mem::discriminant, str::FromStr, time::Duration};
use tokio::time::timeout;

/// How many bytes of an overlong body are read and discarded before the refusal. A client that is
/// answered too early sees a broken connection instead of the answer.
const DRAIN_LIMIT: usize = 16 << 20;
/// The same for a body that is refused whatever it contains.
const UNWANTED_LIMIT: usize = 4 << 20;
const BODY_TIME: Duration = Duration::from_secs(30);
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// Longest field path in an answer, in characters.
const MAX_FIELD: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Public,
    Runner,
    Operator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// At once, with a length limit.
    Message,
    Upload,
}

pub(super) struct Asked {
    /// The runner whose token was sent; `None` for the operator's token or none.
    pub runner: Option<RunnerId>,
    pub path: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub message: Bytes,
    pub upload: Body,
}

/// The runner whose token a request has, if it is a runner's. Refuses a token that the route does
/// not accept.
pub(super) fn authorize(
    context: &Context,
    access: Access,
    headers: &HeaderMap,
) -> Result<Option<RunnerId>, Refused> {
    if access == Access::Public {
        return Ok(None);
    }
    let refused = |message: &'static str| {
        Refused::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
    };
    let Some(token) = bearer(headers) else {
        return Err(refused("send `Authorization: Bearer <token>`"));
    };
    match access {
        Access::Operator if is_token(&context.operator_token, token) => Ok(None),
        Access::Operator => Err(refused("this is not the operator's token")),
        _ => {
            let holder = context.service.holder(token);
            holder.map(Some).ok_or_else(|| refused("this is not a runner's token"))
        }
    }
}

pub(super) async fn receive(body: Body) -> Result<Bytes, Refused> {
    let (status, code, message) = match timeout(BODY_TIME, take(body, MAX_MESSAGE, DRAIN_LIMIT))
        .await
    {
        Ok(Ok(Some(bytes))) => return Ok(bytes),
        Ok(Ok(None)) => {
            let message = format!("the body is longer than {MAX_MESSAGE} bytes");
            return Err(Refused::too_large(ErrorCode::BodyTooLarge, message));
        }
        Ok(Err(_)) => (StatusCode::BAD_REQUEST, ErrorCode::MalformedJson, "the body ended early"),
        Err(_) => {
            (StatusCode::REQUEST_TIMEOUT, ErrorCode::Timeout, "the body did not come in time")
        }
    };
    Err(Refused::new(status, code, message))
}

pub(super) async fn drain(body: Body) {
    // The answer does not depend on the outcome.
    let _ = timeout(DRAIN_TIME, take(body, 0, UNWANTED_LIMIT)).await;
}

/// The body, or `None` if it is longer than `limit` bytes; at most `drained` bytes are read.
async fn take(body: Body, limit: usize, drained: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut chunks = body.into_data_stream();
    let (mut kept, mut length) = (Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        length += chunk.len();
        if length > drained {
            break;
        }
        if length > limit {
            kept = Vec::new();
        } else {
            kept.extend_from_slice(&chunk);
        }
    }
    Ok((length <= limit).then(|| kept.into()))
}

pub(super) fn query(uri: &Uri) -> Result<Vec<(String, String)>, Refused> {
    let query = Query::try_from_uri(uri).map_err(|_| {
        Refused::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidField, "malformed query")
    })?;
    Ok(query.0)
}

impl Asked {
    pub fn json<T: DeserializeOwned + Serialize>(&self) -> Result<T, Refused> {
        decode(&self.message)
    }

    /// Refuses if `runner_id` is not the runner whose token was sent.
    pub fn runner_named(&self, runner_id: &str) -> Result<RunnerId, Refused> {
        let runner = self.runner()?;
        if runner.0 != runner_id {
            return Err(Refused::wrong_runner("runner_id is not the token's runner"));
        }
        Ok(runner)
    }

    pub fn runner(&self) -> Result<RunnerId, Refused> {
        // Routes for runners always have one.
        self.runner.clone().ok_or_else(Refused::internal)
    }

    pub fn lease_id(&self) -> Result<String, Refused> {
        let Some(value) = self.headers.get(LEASE_HEADER) else {
            let message = "expected the lease id in this header";
            return Err(Refused::field(ErrorCode::MissingField, LEASE_HEADER, message));
        };
        let lease_id = value.to_str().unwrap_or_default();
        let problem = |_| Refused::invalid(LEASE_HEADER, "expected 1 to 128 characters");
        check::lease_id(lease_id).map_err(problem)?;
        Ok(lease_id.to_owned())
    }

    pub fn segment(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The last value if the parameter is repeated.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().rev().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| &**value)
    }

    pub fn number<T: FromStr + PartialOrd>(
        &self,
        name: &'static str,
        least: T,
        most: T,
        problem: &'static str,
    ) -> Result<Option<T>, Refused> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        // `parse` accepts a sign, but the schema does not.
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(Refused::invalid(name, problem)),
        }
    }

    pub fn limit(&self) -> Result<usize, Refused> {
        let limit = self.number("limit", 1, PAGE_LIMIT, "expected 1 to 10,000")?;
        Ok(limit.unwrap_or(PAGE))
    }
}

/// Decodes a message from JSON. Errors name the field and use fixed texts.
fn decode<T: DeserializeOwned + Serialize>(body: &[u8]) -> Result<T, Refused> {
    let malformed = |_| {
        let message = "the body is not a single JSON document";
        Refused::new(StatusCode::BAD_REQUEST, ErrorCode::MalformedJson, message)
    };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let typed = serde_path_to_error::deserialize(&mut deserializer);
    // Malformed JSON takes precedence over wrong fields.
    let mut sent: Value = serde_json::from_slice(body).map_err(malformed)?;
    let typed: T = match typed {
        Ok(typed) => typed,
        // A `Value` keeps only one of two fields of the same name.
        Err(error) if error.inner().to_string().starts_with("duplicate field") => {
            return Err(misfit(&error));
        }
        Err(error) => {
            whole_numbers(&mut sent);
            T::deserialize(&sent).map_err(|_| misfit(&error))?
        }
    };
    let meant = serde_json::to_value(&typed).unwrap_or_default();
    match mismatch(&sent, &meant, String::new()) {
        Some(field) => Err(Refused::invalid(told(field), MISFIT)),
        None => Ok(typed),
    }
}

const MISFIT: &str = "not a value that /openapi.json allows here";

fn misfit(error: &serde_path_to_error::Error<serde_json::Error>) -> Refused {
    let path = match error.path().to_string() {
        path if path == "." => String::new(),
        path => path,
    };
    // The name of the field is only in the text of serde's error.
    let text = error.inner().to_string();
    let (code, name, message) = match named(&text, "missing field `") {
        Some(name) => (ErrorCode::MissingField, Some(name), "this field is required"),
        None => (ErrorCode::InvalidField, named(&text, "duplicate field `"), MISFIT),
    };
    let field = match (path.is_empty(), name) {
        (true, name) => name.unwrap_or_default().to_owned(),
        (false, Some(name)) if !path.ends_with(name) => format!("{path}.{name}"),
        (false, _) => path,
    };
    Refused::field(code, told(field), message)
}

/// A field's path for an answer: without control characters, at most [`MAX_FIELD`] characters.
fn told(field: String) -> String {
    field.chars().take(MAX_FIELD).filter(|c| !c.is_control()).collect()
}

/// Turns whole floats such as 1.0 into integers, because JSON does not distinguish them.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= MAX_WHOLE as f64);
            if let Some(whole) = whole.filter(|_| number.is_f64()) {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}

/// The path of the first value whose JSON kind differs from what serde understood: serde accepts an
/// array for a struct with that many fields, and an object for a unit variant.
fn mismatch(sent: &Value, meant: &Value, path: String) -> Option<String> {
    match (sent, meant) {
        (Value::Object(sent), Value::Object(meant)) => meant.iter().find_map(|(name, meant)| {
            let dot = if path.is_empty() { "" } else { "." };
            mismatch(sent.get(name)?, meant, format!("{path}{dot}{name}"))
        }),
        (Value::Array(sent), Value::Array(meant)) => {
            let mut items = sent.iter().zip(meant).enumerate();
            items.find_map(|(at, (sent, meant))| mismatch(sent, meant, format!("{path}[{at}]")))
        }
        _ => (discriminant(sent) != discriminant(meant)).then_some(path),
    }
}

fn named<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    text.strip_prefix(prefix)?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Complete, Heartbeat, NewRun};

    fn check<T: DeserializeOwned + Serialize>(body: &str, code: ErrorCode, field: Option<&str>) {
        match decode::<T>(body.as_bytes()) {
            Err(Refused::Error(status, detail)) => {
                assert_eq!(status, StatusCode::BAD_REQUEST);
                assert_eq!((detail.code, detail.field.as_deref()), (code, field), "{body}");
            }
            Err(Refused::Stale { .. }) => panic!("{body}: stale"),
            Ok(_) => panic!("{body}: decoded"),
        }
    }

    #[test]
    fn what_is_wrong_with_a_message_is_told_by_its_place() {
        use ErrorCode::{InvalidField, MalformedJson, MissingField};

        for body in ["", "{", "{}x", "{} {}", "nul", "\u{feff}{}", "{\"lease_id\":\"\\ud800\"}"] {
            check::<Heartbeat>(body, MalformedJson, None);
        }
        for body in ["[]", "5", r#"["Heartbeat","l","r"]"#] {
            check::<Heartbeat>(body, InvalidField, Some(""));
        }
        check::<Heartbeat>("{}", MissingField, Some("lease_id"));
        let beat = |rest: &str| format!(r#"{{"lease_id":"l","runner_id":"r"{rest}}}"#);
        check::<Heartbeat>(&beat(r#","runner_id":"r""#), InvalidField, Some("runner_id"));
        check::<Heartbeat>(&beat(r#","type":"Lease""#), InvalidField, Some("type"));
        check::<Heartbeat>(
            &beat(r#","log_cursor":{}"#),
            MissingField,
            Some("log_cursor.bytes_sent"),
        );
        let percent = r#","progress":{"percent":300}"#;
        check::<Heartbeat>(&beat(percent), InvalidField, Some("progress.percent"));
        check::<Complete>(&beat(r#","status":"CANCELED""#), InvalidField, Some("status"));
        check::<NewRun>(r#"{"jobs":[{"name":"a"}]}"#, MissingField, Some("jobs[0].steps"));
        let env = r#"{"jobs":[{"name":"a","steps":["b"],"env":{"A":1}}]}"#;
        check::<NewRun>(env, InvalidField, Some("jobs[0].env.A"));
        let list = beat(r#","progress":[40,"make",0,"on it"]"#);
        check::<Heartbeat>(&list, InvalidField, Some("progress"));
        let word = beat(r#","type":{"Heartbeat":null}"#);
        check::<Heartbeat>(&word, InvalidField, Some("type"));
        let retry = r#"{"jobs":[{"name":"a","steps":["b"],"retry":[null,3]}]}"#;
        check::<NewRun>(retry, InvalidField, Some("jobs[0].retry"));
        check::<Heartbeat>(
            &beat(r#","progress":{"percent":4.5}"#),
            InvalidField,
            Some("progress.percent"),
        );
        let whole = decode::<Heartbeat>(beat(r#","progress":{"percent":4.0}"#).as_bytes());
        assert_eq!(whole.ok().and_then(|beat| beat.progress?.percent), Some(4));
        let extra = beat(r#","more":[1,{"x":null}]"#);
        assert!(decode::<Heartbeat>(extra.as_bytes()).is_ok(), "unknown fields are tolerated");
    }
}
