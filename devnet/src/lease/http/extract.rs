//! What is taken from a request: the token, the body, parameters.

use super::{
    super::{
        check,
        messages::{ErrorCode, LEASE_HEADER, MAX_MESSAGE, PAGE, PAGE_LIMIT},
    },
    Context,
    error::Refused,
};
use crate::api::shows_token;
use axum::{
    body::{Body, Bytes},
    extract::Query,
    http::{HeaderMap, StatusCode, Uri, header::AUTHORIZATION},
};
use cowboy_engine::lease::RunnerId;
use futures::StreamExt as _;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{mem::discriminant, str::FromStr, time::Duration};
use tokio::time::timeout;

/// The longest body that is read, and thrown away, for the sake of an answer: a client that is told
/// too early sees a broken connection instead.
const DRAIN_LIMIT: usize = 16 << 20;
/// The same of a body that is refused whatever it has.
const UNWANTED_LIMIT: usize = 4 << 20;
/// How long a message may take to come.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How long what is refused is read.
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// The longest path of a field that is told.
const MAX_FIELD: usize = 256;
/// The largest whole number that JSON's numbers are good for everywhere: 2^53 - 1.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;
const BEARER: &[u8] = b"bearer ";

/// Whose token a route wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// None.
    Anybody,
    /// A runner's own.
    Runner,
    /// The operator's.
    Operator,
}

/// What a route does with the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// It is there at once, and not too long.
    Message,
    /// It comes piece by piece.
    Upload,
}

/// A request that has shown the token that its route wants.
pub(super) struct Asked {
    /// Whose token it has shown, where it is a runner's.
    pub runner: Option<RunnerId>,
    /// What stands for the parameters of the path.
    pub path: Vec<(String, String)>,
    /// Those after the `?`.
    pub query: Vec<(String, String)>,
    /// Its headers.
    pub headers: HeaderMap,
    /// The body, where it is a message.
    pub message: Bytes,
    /// The body, where it is an upload.
    pub upload: Body,
}

/// Whose token a request shows, where it is a runner's; a refusal if it is not good for the route.
pub(super) fn authorize(
    context: &Context,
    access: Access,
    headers: &HeaderMap,
) -> Result<Option<RunnerId>, Refused> {
    if access == Access::Anybody {
        return Ok(None);
    }
    let refused = |message: &'static str| {
        Refused::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
    };
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Err(refused("send `Authorization: Bearer <token>`"));
    };
    let (scheme, token) = header.as_bytes().split_at(header.len().min(BEARER.len()));
    if !scheme.eq_ignore_ascii_case(BEARER) {
        return Err(refused("send `Authorization: Bearer <token>`"));
    }
    match access {
        Access::Operator if shows_token(&context.operator_token, token) => Ok(None),
        Access::Operator => Err(refused("this is not the operator's token")),
        _ => match context.service.holder(token) {
            Some(runner) => Ok(Some(runner)),
            None => Err(refused("this is no runner's token")),
        },
    }
}

/// Reads a message to its end.
pub(super) async fn receive(body: Body) -> Result<Bytes, Refused> {
    let received = timeout(BODY_TIME, take(body, MAX_MESSAGE, DRAIN_LIMIT)).await;
    let slow = || {
        let message = "the body did not come in time";
        Refused::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::Timeout, message)
    };
    let broken = || {
        let message = "the body breaks off";
        Refused::new(StatusCode::BAD_REQUEST, ErrorCode::MalformedJson, message)
    };
    match received.map_err(|_| slow())? {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(Refused::too_large(
            ErrorCode::BodyTooLarge,
            format!("the body is longer than {MAX_MESSAGE} bytes"),
        )),
        Err(_) => Err(broken()),
    }
}

/// Reads what nobody wants, and throws it away.
pub(super) async fn drain(body: Body) {
    // However it ends, the answer is the same.
    let _ = timeout(DRAIN_TIME, take(body, 0, UNWANTED_LIMIT)).await;
}

/// A body, if it is not longer than `limit`; it is read on until `drained`.
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

/// The parameters after a request's `?`.
pub(super) fn query(uri: &Uri) -> Result<Vec<(String, String)>, Refused> {
    let query = Query::try_from_uri(uri).map_err(|_| {
        Refused::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidField, "the query is none")
    })?;
    Ok(query.0)
}

impl Asked {
    /// The message, as JSON.
    pub fn json<T: DeserializeOwned + Serialize>(&self) -> Result<T, Refused> {
        decode(&self.message)
    }

    /// The runner whose token was shown, which `runner_id` must name.
    pub fn runner_named(&self, runner_id: &str) -> Result<RunnerId, Refused> {
        let runner = self.runner()?;
        if runner.0 != runner_id {
            return Err(Refused::wrong_runner("runner_id is not the one whose token this is"));
        }
        Ok(runner)
    }

    /// The runner whose token was shown.
    pub fn runner(&self) -> Result<RunnerId, Refused> {
        // A route that wants a runner's token has one.
        self.runner.clone().ok_or_else(Refused::internal)
    }

    /// The lease that a header names.
    pub fn lease_id(&self) -> Result<String, Refused> {
        let Some(value) = self.headers.get(LEASE_HEADER) else {
            let message = "expected the lease in this header";
            return Err(Refused::field(ErrorCode::MissingField, LEASE_HEADER, message));
        };
        let lease_id = value.to_str().unwrap_or_default();
        let problem = |_| Refused::invalid(LEASE_HEADER, "expected 1 to 128 characters");
        check::lease_id(lease_id).map_err(problem)?;
        Ok(lease_id.to_owned())
    }

    /// A parameter of the path.
    pub fn segment(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// A parameter of the query; of several of one name the last.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().rev().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| &**value)
    }

    /// A number in the query, within a range.
    pub fn number<T: FromStr + PartialOrd>(
        &self,
        name: &'static str,
        least: T,
        most: T,
        problem: &'static str,
    ) -> Result<Option<T>, Refused> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        // `parse` takes a sign, which a schema does not.
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(Refused::invalid(name, problem)),
        }
    }

    /// How many of a list.
    pub fn limit(&self) -> Result<usize, Refused> {
        let limit = self.number("limit", 1, PAGE_LIMIT, "expected 1 to 10,000")?;
        Ok(limit.unwrap_or(PAGE))
    }
}

/// A message, as JSON. What is wrong is told by its place, in fixed words.
fn decode<T: DeserializeOwned + Serialize>(body: &[u8]) -> Result<T, Refused> {
    let malformed = |_| {
        let message = "the body is no JSON document, or more than one";
        Refused::new(StatusCode::BAD_REQUEST, ErrorCode::MalformedJson, message)
    };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let typed = serde_path_to_error::deserialize(&mut deserializer);
    // A body that is no JSON is that, wherever its fields were first found to be wrong.
    let mut sent: Value = serde_json::from_slice(body).map_err(malformed)?;
    let typed: T = match typed {
        Ok(typed) => typed,
        // Of two of one name a value would have kept one.
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

const MISFIT: &str = "not of the type, or none of the values, that /openapi.json has here";

/// Where JSON is not what a message has there.
fn misfit(error: &serde_path_to_error::Error<serde_json::Error>) -> Refused {
    let path = match error.path().to_string() {
        path if path == "." => String::new(),
        path => path,
    };
    // serde says in its text only which field it is.
    let text = error.inner().to_string();
    let (code, name, message) = match named(&text, "missing field `") {
        Some(name) => (ErrorCode::MissingField, Some(name), "this field must be there"),
        None => (ErrorCode::InvalidField, named(&text, "duplicate field `"), MISFIT),
    };
    let field = match (path.is_empty(), name) {
        (true, name) => name.unwrap_or_default().to_owned(),
        (false, Some(name)) if !path.ends_with(name) => format!("{path}.{name}"),
        (false, _) => path,
    };
    Refused::field(code, told(field), message)
}

/// The path of a field, as far as it is told.
fn told(field: String) -> String {
    field.chars().take(MAX_FIELD).filter(|c| !c.is_control()).collect()
}

/// Makes 1.0 what it is in JSON: the number 1.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= MAX_WHOLE);
            if let Some(whole) = whole.filter(|_| number.is_f64()) {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}

/// Where something was sent that is of another kind than what was understood: serde takes a list
/// for an object of as many fields, and an object for a word.
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

/// The name between a prefix and a backtick.
fn named<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    text.strip_prefix(prefix)?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::messages::{Complete, Heartbeat, NewRun};

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
