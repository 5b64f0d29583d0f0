//! Differences between a node's answer and the verified result.

use serde::Serialize;
use serde_json::Value;

/// The maximum number of differences listed per document.
const MOST: usize = 16;
/// The maximum number of characters of a value that are shown.
const SHOWN: usize = 80;

/// Describes the first [`MOST`] differences of two documents: `votes[1].bytes is "0x0f", should be
/// "0x0d"`. `skip` names top-level fields that are not compared.
pub(super) fn differences<T: Serialize>(said: &T, follows: &T, skip: &[&str]) -> Vec<String> {
    let value = |document| serde_json::to_value(document).expect("documents are plain data");
    let (mut said, mut follows) = (value(said), value(follows));
    for document in [&mut said, &mut follows] {
        if let Value::Object(fields) = document {
            fields.retain(|name, _| !skip.contains(&name.as_str()));
        }
    }
    let mut found = Vec::new();
    compare(&mut String::new(), &said, &follows, &mut found);
    found
}

fn compare(path: &mut String, said: &Value, follows: &Value, found: &mut Vec<String>) {
    if said == follows || found.len() >= MOST {
        return;
    }
    let whole = path.len();
    match (said, follows) {
        (Value::Object(ours), Value::Object(theirs)) => {
            // Both have the same type and so the same fields, except for absent ones, which are
            // left out.
            for name in ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name))) {
                let field = |fields: &serde_json::Map<String, Value>| {
                    fields.get(name).cloned().unwrap_or(Value::Null)
                };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                compare(path, &field(ours), &field(theirs), found);
                path.truncate(whole);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                path.push_str(&format!("[{index}]"));
                compare(path, ours, theirs, found);
                path.truncate(whole);
            }
        }
        _ => found.push(format!("{path} is {}, should be {}", shown(said), shown(follows))),
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => return "absent".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_told_by_their_places() {
        let check = |said: Value, follows: Value, expected: &[&str]| {
            assert_eq!(differences(&said, &follows, &["skipped"]), expected);
        };
        let votes = json!({"height": 3, "votes": [{"bytes": "0x0d"}, {"bytes": "0x0f"}]});
        check(votes.clone(), votes.clone(), &[]);
        let mut changed = votes.clone();
        changed["votes"][1]["bytes"] = "0x0d".into();
        changed["skipped"] = 7.into();
        check(changed, votes.clone(), &[r#"votes[1].bytes is "0x0d", should be "0x0f""#]);
        check(json!({"a": null, "b": 1}), json!({"b": 2}), &["b is 1, should be 2"]);
        check(json!([1]), json!([1, 2]), &[" is [1], should be [1,2]"]);
        let many = |n: u64| (0..100).map(|i| i * n).collect::<Value>();
        assert_eq!(differences(&many(1), &many(2), &[]).len(), MOST);
    }
}
