//! Envelopes: payloads of timers that select a handler (timers.md §1).
//!
//! A payload that is a JSON object of strings with `_handler`, and perhaps `_payload`, names a
//! handler and carries the handler's payload in base64:
//! `{"_handler": "tick", "_payload": "aGVsbG8="}`. Anything else is the payload itself, even an
//! object that is almost an envelope: a timer never fails because of how its payload is read.

use crate::primitives::cbor::{self, CborValue};
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The handler and payload that an envelope names; `None` if `payload` is not an envelope.
///
/// One pass over the bytes, without recursion, that stops at the first byte that does not fit.
pub fn open(payload: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut rest = Rest(payload.trim_ascii());
    rest.take(b'{')?;
    let (mut handler, mut inner) = (None, None);
    loop {
        let key = rest.string()?;
        rest.take(b':')?;
        let value = rest.string()?;
        match key.as_str() {
            "_handler" if handler.is_none() => handler = Some(value),
            "_payload" if inner.is_none() => inner = Some(STANDARD.decode(value).ok()?),
            _ => return None,
        }
        if rest.take(b',').is_none() {
            rest.take(b'}')?;
            break;
        }
    }
    rest.0.is_empty().then_some((handler?, inner.unwrap_or_default()))
}

/// Maximum length of a handler's name in an envelope of an actor in Python, in bytes.
const MAX_CALLED_BYTES: usize = 256;

/// As [`open`], for actors in Python (spec pvm.md §2): a map in CBOR of exactly `_handler` and
/// `_payload`, which is bytes, as the SDK makes it; or an object in JSON with `_handler`, whose
/// `_payload`, or everything else if there is no such key, is the handler's payload in JSON.
pub fn open_in_python(payload: &[u8]) -> Option<(String, Vec<u8>)> {
    if let Ok(CborValue::Map(entries)) = cbor::decode(payload) {
        return match &entries[..] {
            [
                (CborValue::Text(handler), name),
                (CborValue::Text(inner), CborValue::Bytes(bytes)),
            ] if handler == "_handler" && inner == "_payload" => {
                Some((name_of_handler(name)?, bytes.clone()))
            }
            _ => None,
        };
    }
    let CborValue::Map(mut entries) = cbor::from_json(std::str::from_utf8(payload).ok()?).ok()?
    else {
        return None;
    };
    let mut take = |name: &str| {
        let named = |(key, _): &(CborValue, CborValue)| *key == CborValue::Text(name.to_owned());
        let at = entries.iter().position(named)?;
        Some(entries.remove(at).1)
    };
    let handler = name_of_handler(&take("_handler")?)?;
    let inner = take("_payload").unwrap_or(CborValue::Map(entries));
    Some((handler, inner.to_json()?.into_bytes()))
}

fn name_of_handler(name: &CborValue) -> Option<String> {
    match name {
        CborValue::Text(name) if (1..=MAX_CALLED_BYTES).contains(&name.len()) => Some(name.clone()),
        _ => None,
    }
}

/// The bytes left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Takes `byte` and the white space before it.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(&[byte])?;
        Some(())
    }

    /// A JSON string without escapes for characters beyond the basic plane, which names and base64
    /// do not need.
    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut text = Vec::new();
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return String::from_utf8(text).ok(),
                b'\\' => {
                    let (escape, rest) = self.0.split_first()?;
                    self.0 = rest;
                    match escape {
                        b'"' | b'\\' | b'/' => text.push(*escape),
                        b'u' => {
                            let (digits, rest) = self.0.split_at_checked(4)?;
                            self.0 = rest;
                            let digits = std::str::from_utf8(digits).ok()?;
                            let code = u32::from_str_radix(digits, 16).ok()?;
                            let mut utf8 = [0; 4];
                            let char = char::from_u32(code)?.encode_utf8(&mut utf8);
                            text.extend_from_slice(char.as_bytes());
                        }
                        _ => return None,
                    }
                }
                0..=0x1f => return None,
                _ => text.push(*byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_of_actors_in_python_are_those_of_the_sdk() {
        let check = |payload: &[u8], expected: Option<(&str, &[u8])>| {
            let got = open_in_python(payload);
            let got = got.as_ref().map(|(name, inner)| (name.as_str(), inner.as_slice()));
            assert_eq!(got, expected, "{}", String::from_utf8_lossy(payload));
        };
        let text = |text: &str| CborValue::Text(text.to_owned());
        let map = |entries: &[(&str, CborValue)]| {
            let entries = entries.iter().map(|(name, value)| (text(name), value.clone()));
            cbor::encode(&CborValue::Map(entries.collect())).expect("its keys differ")
        };
        let bytes = CborValue::Bytes(vec![0xff, 0]);
        let (handler, payload) = (("_handler", text("tick")), ("_payload", bytes));
        check(&map(&[handler.clone(), payload.clone()]), Some(("tick", &[0xff, 0])));
        check(&map(std::slice::from_ref(&handler)), None);
        check(&map(&[handler.clone(), ("_payload", text("x"))]), None);
        check(&map(&[handler, payload.clone(), ("other", text("x"))]), None);
        check(&map(&[("_handler", text("")), payload.clone()]), None);
        check(&map(&[("_handler", text(&"x".repeat(257))), payload]), None);
        check(br#"{"_handler":"tick","_payload":"aGk="}"#, Some(("tick", br#""aGk=""#)));
        check(
            br#"{"b":[1, "\u00e9"],"_handler":"tick","a":1.5}"#,
            Some(("tick", "{\"a\":1.5,\"b\":[1,\"\u{e9}\"]}".as_bytes())),
        );
        check(br#"{"_payload":1}"#, None);
        check(br#"{"_handler":7}"#, None);
        check(b"[1]", None);
        check(&[0xff, 0xfe], None);
        check(b"", None);
    }

    #[test]
    fn an_envelope_names_a_handler_and_carries_a_payload() {
        let check = |payload: &str, expected: Option<(&str, &[u8])>| {
            let got = open(payload.as_bytes());
            let got = got.as_ref().map(|(name, inner)| (name.as_str(), inner.as_slice()));
            assert_eq!(got, expected, "{payload}");
        };
        check(r#"{"_handler":"tick","_payload":"aGVsbG8="}"#, Some(("tick", b"hello")));
        check(r#" { "_payload" : "aGVsbG8=" , "_handler" : "tick" } "#, Some(("tick", b"hello")));
        check(r#"{"_handler":"ti\u0063k"}"#, Some(("tick", b"")));
        check(r#"{"_payload":"aGVsbG8="}"#, None);
        check(r#"{"_handler":"tick","_payload":"aGVsbG8"}"#, None);
        check(r#"{"_handler":"tick","other":"x"}"#, None);
        check(r#"{"_handler":"tick","_handler":"tock"}"#, None);
        check(r#"{"_handler":7}"#, None);
        check(r#"{"_handler":"tick"} more"#, None);
        check(r#"{"_handler":"tick","#, None);
        check(r#"{"_handler":"tic\"#, None);
        check(r#"{"_handler":"\ud83d\ude00"}"#, None);
        check("{}", None);
        check("", None);
        check("thump", None);
    }
}
