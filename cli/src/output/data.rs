//! Data of events and transactions as text for people: amounts in CBY, payloads decoded.

use super::{amount, decoded, short, wei};
use cowboy_devnet::types::BytesText;
use cowboy_engine::primitives::Wei;
use serde_json::Value;

/// The longest text shown among other values, in characters.
const TEXT_CHARS: usize = 200;

const AMOUNTS: [&str; 21] = [
    "aggregation",
    "amount",
    "available",
    "balance",
    "bond",
    "charged",
    "max_cost",
    "max_price",
    "paid",
    "price_per_second",
    "promised",
    "refunded",
    "released",
    "required",
    "reward",
    "slashed",
    "stake",
    "tip",
    "timer_allowance",
    "value",
    "work",
];

/// Names of fields that hold a price per cycle.
const PRICES: [&str; 5] =
    ["clamped", "max_fee_per_cycle", "max_priority_fee_per_cycle", "priority_per_cycle", "stated"];

/// Names of fields with bytes in a format that only their sender knows.
const PAYLOADS: [&str; 4] = ["body", "payload", "result", "stdin"];

/// Fields that an actor or a governing account filled: the names inside are their own.
const FOREIGN: [&str; 2] = ["data", "settings"];

/// A JSON object as `key=value` pairs. Long texts and byte strings are cut; JSON output has them
/// whole.
pub fn data(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let is_parameter = fields.contains_key("key");
            let pairs = fields.iter().map(|(key, value)| {
                let shown = if is_parameter { None } else { known(key, value) };
                format!("{key}={}", shown.unwrap_or_else(|| plain(key, value)))
            });
            pairs.collect::<Vec<_>>().join(" ")
        }
        other => plain("", other),
    }
}

/// Formats a value whose name tells what it is: an amount, a price per cycle, or a payload.
pub fn known(key: &str, value: &Value) -> Option<String> {
    let number = || match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Value::Number(number) => number.as_u64().map(u128::from),
        _ => None,
    };
    if AMOUNTS.contains(&key) {
        number().map(|number| amount(Wei::new(number)))
    } else if PRICES.contains(&key) {
        number().map(|number| wei(Wei::new(number)))
    } else if PAYLOADS.contains(&key) {
        let bytes: BytesText = value.as_str()?.parse().ok()?;
        Some(line(&decoded(&bytes.0.0)))
    } else {
        None
    }
}

fn line(text: &str) -> String {
    let end = text.char_indices().nth(TEXT_CHARS).map_or(text.len(), |(end, _)| end);
    let line = text[..end].lines().next().unwrap_or_default();
    if line.len() < text.len() { format!("{line}…") } else { line.to_owned() }
}

fn plain(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.starts_with("0x") => short(text),
        Value::String(text) => line(text),
        Value::Array(items) if items.iter().all(|item| !item.is_object()) => {
            items.iter().map(|item| plain(key, item)).collect::<Vec<_>>().join(",")
        }
        _ if FOREIGN.contains(&key) => value.to_string(),
        other => within(other).to_string(),
    }
}

/// The same JSON, with every known value formatted.
fn within(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let shown = match known(key, value) {
                    // By now a payload is text in quotes, or JSON.
                    Some(text) => serde_json::from_str(&text).unwrap_or_else(|_| text.into()),
                    None if FOREIGN.contains(&key.as_str()) => value.clone(),
                    None => within(value),
                };
                (key.clone(), shown)
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => items.iter().map(within).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: &Value, expected: &str) {
        assert_eq!(data(value), expected);
    }

    #[test]
    fn amounts_are_in_cby_and_prices_in_wei() {
        check(&json!({ "amount": "1500000000", "to": "0xaa" }), "amount=1.5 CBY to=0xaa");
        check(&json!({ "max_cost": "1050000000", "height": 50 }), "height=50 max_cost=1.05 CBY");
        check(&json!({ "max_fee_per_cycle": "2000" }), "max_fee_per_cycle=2,000 wei");
        check(&json!({ "stake": null }), "stake=-");
        check(&json!({ "handler": "bump", "value": "0" }), "handler=bump value=0 CBY");
        // A number of another kind keeps its digits.
        check(&json!({ "key": "lane", "value": "300000" }), "key=lane value=300000");
        check(&json!({ "work": { "url": "u" } }), r#"work={"url":"u"}"#);
    }

    #[test]
    fn payloads_are_decoded() {
        check(&json!({ "payload": "0x68656c6c6f" }), r#"payload="hello""#);
        check(&json!({ "payload": "0x" }), r#"payload="""#);
        check(&json!({ "result": "0x83010203" }), "result=[1,2,3]");
        check(&json!({ "result": "0x00ff" }), "result=0x00ff");
        // A hash is shown as it is, even when its bytes are text.
        check(&json!({ "result_hash": "0x68656c6c6f" }), "result_hash=0x68656c6c6f");
        let spec = json!({ "max_price": "1000000000", "work": { "stdin": "0x6869" } });
        let expected = r#"spec={"max_price":"1 CBY","work":{"stdin":"hi"}}"#;
        check(&json!({ "spec": spec }), expected);
        let reveals = json!([{ "result": "0x6869", "runner": "0xaa" }]);
        check(&json!({ "reveals": reveals }), r#"reveals=[{"result":"hi","runner":"0xaa"}]"#);
    }

    #[test]
    fn what_actors_say_is_theirs() {
        check(&json!({ "data": { "amount": "5" }, "name": "x" }), r#"data={"amount":"5"} name=x"#);
    }
}
