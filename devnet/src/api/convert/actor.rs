//! Receipts, stores and logs of actors.

use crate::{
    storage::{Cause, Line, StoredLine},
    types::{
        ActorLine, ActorLineKind, ActorReceipt, Bytes, BytesText, CallProfile, LogLine,
        ProfileSpot, StateChange, Text, TracedCall,
    },
};
use cowboy_engine::{
    actor::Profile,
    chain::{self, Language, StoreChange},
    primitives::{
        Address,
        cbor::{self, CborValue},
    },
};
use serde_json::Value;

/// The largest integer that all JSON readers agree on (RFC 8259, section 6).
const SAFE_INTEGER: u64 = (1 << 53) - 1;

pub(in crate::api) fn receipt(receipt: &chain::ActorReceipt) -> ActorReceipt {
    ActorReceipt {
        actor: receipt.actor.into(),
        result: (!receipt.result.is_empty()).then(|| returned(receipt.language, &receipt.result)),
        result_bytes: bytes_of(receipt.language, &receipt.result),
        usage: receipt.usage.into(),
        deliveries: receipt.deliveries,
        log: log(&receipt.log),
    }
}

pub(in crate::api) fn log(lines: &[(Address, String)]) -> Vec<LogLine> {
    let line =
        |(actor, text): &(Address, String)| LogLine { actor: (*actor).into(), text: text.clone() };
    lines.iter().map(line).collect()
}

pub(in crate::api) fn line(stored: StoredLine) -> ActorLine {
    let StoredLine { height, cause, what, .. } = stored;
    let (transaction, timer, job) = match cause {
        Cause::Transaction(hash) => (Some(hash.into()), None, None),
        Cause::Timer(id) => (None, Some(id.into()), None),
        Cause::Job(id) => (None, None, Some(id.into())),
    };
    let (kind, text, name, data) = match what {
        Line::Log(text) => (ActorLineKind::Log, Some(text), None, None),
        Line::Event { name, data } => {
            (ActorLineKind::Event, None, Some(name), Some(value(data.as_bytes())))
        }
        Line::Error(text) => (ActorLineKind::Error, Some(text), None, None),
    };
    ActorLine { height: height.get(), transaction, timer, job, kind, text, name, data }
}

pub(in crate::api) fn change(change: &StoreChange) -> StateChange {
    StateChange {
        actor: change.actor.into(),
        key: change.key.to_string(),
        before: change.before.as_deref().map(|before| shown(change.language, before)),
        after: change.after.as_deref().map(|after| shown(change.language, after)),
    }
}

/// Bytes of a payload or a result that a traced call shows, because an answer has many calls.
const TRACED_BYTES: usize = 1_024;

pub(in crate::api) fn traced(call: &chain::TracedCall) -> TracedCall {
    let cut = |bytes: &[u8], show: &dyn Fn(&[u8]) -> Value| match bytes.len() {
        0..=TRACED_BYTES => show(bytes),
        length => {
            let begin = hex::encode(&bytes[..TRACED_BYTES]);
            format!("0x{begin}… ({length} bytes)").into()
        }
    };
    let (result, error) = match &call.result {
        Ok(result) => (Some(cut(result, &|bytes| returned(call.language, bytes))), None),
        Err(error) => (None, Some(error.clone())),
    };
    let argument = |bytes: &[u8]| match (bytes, call.language) {
        ([], _) => Value::Null,
        (_, Language::Python) => payload(bytes),
        (_, Language::Starlark) => value(bytes),
    };
    TracedCall {
        by: call.by.map(|by| by as u64),
        inside: call.inside,
        sender: call.sender.into(),
        actor: call.actor.into(),
        handler: call.handler.clone(),
        payload: cut(&call.payload, &argument),
        value: Text(call.value),
        usage: call.usage.into(),
        result,
        error,
        changes: call.changes.iter().map(change).collect(),
        profile: call.profile.as_ref().map(profile),
    }
}

fn profile(profile: &Profile) -> CallProfile {
    let spots = profile.spots.iter().map(|spot| ProfileSpot {
        by: spot.by.map(|by| by as u64),
        function: spot.function.clone(),
        line: spot.line,
        times: spot.times,
        cycles: spot.spent.cycles,
        cells: spot.spent.cells,
    });
    CallProfile {
        spots: spots.collect(),
        outside_cycles: profile.outside.cycles,
        outside_cells: profile.outside.cells,
    }
}

/// A value of an actor. Python's is CBOR, as the SDK writes it, or other bytes, shown in 0x-hex.
pub(in crate::api) fn shown(language: Language, bytes: &[u8]) -> Value {
    match language {
        Language::Starlark => value(bytes),
        Language::Python => match cbor::decode(bytes) {
            Ok(decoded) if is_shallow(&decoded, MAX_SHOWN_DEPTH) => of_cbor(&decoded),
            _ => format!("0x{}", hex::encode(bytes)).into(),
        },
    }
}

/// What a handler returned. Python's is CBOR, or the bytes of the handler: text, if people can read
/// it. A number in decimal digits may also be the CBOR of a negative one; it is shown as text.
pub(in crate::api) fn returned(language: Language, bytes: &[u8]) -> Value {
    match language {
        Language::Python if bytes.is_empty() => Value::Null,
        Language::Python if !bytes.iter().all(u8::is_ascii_digit) => payload(bytes),
        Language::Python => String::from_utf8_lossy(bytes).into(),
        Language::Starlark => shown(language, bytes),
    }
}

/// Bytes from an actor in Python.
pub(in crate::api) fn bytes_of(language: Language, bytes: &[u8]) -> Option<BytesText> {
    (language == Language::Python && !bytes.is_empty()).then(|| Text(Bytes(bytes.to_vec())))
}

/// A payload of an actor in Python: decoded CBOR, text that people can read, or 0x-hex.
pub(in crate::api) fn payload(bytes: &[u8]) -> Value {
    match text(bytes) {
        Some(text) if cbor::decode(bytes).is_err() => text.into(),
        _ => shown(Language::Python, bytes),
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    std::str::from_utf8(bytes).ok().filter(|text| text.chars().all(is_plain))
}

/// Lists and maps inside each other that are shown as JSON: clients do not read JSON of any depth.
const MAX_SHOWN_DEPTH: usize = 32;

fn is_shallow(decoded: &CborValue, levels: usize) -> bool {
    let Some(inside) = levels.checked_sub(1) else { return false };
    match decoded {
        CborValue::List(list) => list.iter().all(|item| is_shallow(item, inside)),
        CborValue::Map(entries) => entries.iter().all(|(_, value)| is_shallow(value, inside)),
        _ => true,
    }
}

/// JSON for a CBOR value: integers that readers would round as decimal strings, bytes in 0x-hex,
/// keys that are not text as people read them.
fn of_cbor(decoded: &CborValue) -> Value {
    match decoded {
        CborValue::Null => Value::Null,
        CborValue::Bool(bool) => (*bool).into(),
        CborValue::Int(number) => value(number.to_string().as_bytes()),
        CborValue::Float(float) => (*float).into(),
        CborValue::Bytes(bytes) => format!("0x{}", hex::encode(bytes)).into(),
        CborValue::Text(text) => text.as_str().into(),
        CborValue::List(list) => list.iter().map(of_cbor).collect(),
        CborValue::Map(entries) => {
            let entry = |(key, value): &(CborValue, CborValue)| {
                let name = match key {
                    CborValue::Text(text) => text.clone(),
                    other => other.to_string(),
                };
                (name, of_cbor(value))
            };
            Value::Object(entries.iter().map(entry).collect())
        }
    }
}

/// JSON from an actor. Integers that readers would round become decimal strings. Bytes that are not
/// JSON, which the engine never produces, are shown as text.
pub(in crate::api) fn value(json: &[u8]) -> Value {
    serde_json::from_slice(&with_safe_integers(json))
        .unwrap_or_else(|_| String::from_utf8_lossy(json).into_owned().into())
}

fn with_safe_integers(json: &[u8]) -> Vec<u8> {
    let mut safe = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(&byte) = rest.first() {
        let token = match byte {
            b'"' => string_len(rest),
            b'-' | b'0'..=b'9' => {
                let digits = |b: &u8| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                rest.iter().position(|b| !digits(b)).unwrap_or(rest.len())
            }
            _ => 1,
        };
        let (token, after) = rest.split_at(token);
        let digits = token.strip_prefix(b"-").unwrap_or(token);
        let number = std::str::from_utf8(digits).ok().filter(|_| byte != b'"');
        let integer = number.filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        let large = integer.is_some_and(|n| !n.parse().is_ok_and(|n: u64| n <= SAFE_INTEGER));
        if large {
            safe.push(b'"');
        }
        safe.extend_from_slice(token);
        if large {
            safe.push(b'"');
        }
        rest = after;
    }
    safe
}

/// The length in bytes of the string at the start of `json`, including its quotes.
fn string_len(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn integers_that_readers_would_round_are_text() {
        let check = |json: &str, expected: Value| assert_eq!(value(json.as_bytes()), expected);
        check("null", Value::Null);
        check("9007199254740991", json!(9_007_199_254_740_991_u64));
        check("9007199254740992", json!("9007199254740992"));
        check("-9007199254740991", json!(-9_007_199_254_740_991_i64));
        check("-9007199254740992", json!("-9007199254740992"));
        let large = "1".repeat(1_000);
        check(&large, json!(large));
        check(
            r#"{"a":[1,18446744073709551616],"99999999999999999999":"\"99999999999999999999"}"#,
            json!({
                "a": [1, "18446744073709551616"],
                "99999999999999999999": "\"99999999999999999999",
            }),
        );
    }

    #[test]
    fn what_is_no_json_is_shown_as_text() {
        for text in ["", "{", "\"", "\"\\", "-", "1e", "tru"] {
            assert_eq!(value(text.as_bytes()), json!(text), "{text}");
        }
    }
}
