//! YAML for programs that read version 1.1, in which `no` is a truth value and `0:0` a number. Only
//! texts that every version reads as texts are written without quotes.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// Words that some version does not read as a text.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A document without comments.
pub(super) fn yaml(document: &impl Serialize) -> String {
    let value = serde_json::to_value(document).expect("a document is plain data");
    let mut text = String::new();
    write(&mut text, &value, 0);
    text
}

/// Writes the lines of a value at an indentation, the first of which is already indented.
fn write(text: &mut String, value: &Value, indent: usize) {
    let line = |text: &mut String, first: bool| {
        if !first {
            text.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (key, value)) in fields.iter().enumerate() {
                line(text, at == 0);
                text.push_str(&scalar(key));
                text.push(':');
                below(text, value, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                line(text, at == 0);
                text.push_str("- ");
                write(text, item, indent + 2);
            }
        }
        Value::String(word) => {
            let _ = writeln!(text, "{}", scalar(word));
        }
        // Numbers, truth values, `null`, `{}` and `[]` are the same in JSON.
        other => {
            let _ = writeln!(text, "{other}");
        }
    }
}

/// Writes the value of a key.
fn below(text: &mut String, value: &Value, indent: usize) {
    let is_block = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(lines) if lines.ends_with('\n') && is_plain_block(lines) => {
            text.push_str(" |\n");
            for line in lines.lines() {
                text.extend(std::iter::repeat_n(' ', if line.is_empty() { 0 } else { indent + 2 }));
                text.push_str(line);
                text.push('\n');
            }
            return;
        }
        _ => false,
    };
    if is_block {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent + 2));
        write(text, value, indent + 2);
    } else {
        text.push(' ');
        write(text, value, indent);
    }
}

/// Whether the lines of a text can be written as they are.
fn is_plain_block(lines: &str) -> bool {
    let printable = |char: char| char == '\n' || !char.is_control();
    !lines.starts_with([' ', '\n']) && !lines.ends_with("\n\n") && lines.chars().all(printable)
}

fn scalar(text: &str) -> String {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let plain = |char: char| char.is_ascii_alphanumeric() || "_./-".contains(char);
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    match begins && !is_word && text.chars().all(plain) {
        true => text.to_owned(),
        // A text of JSON is one of YAML.
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_stay_texts_and_documents_the_same() {
        let document = json!({
            "restart": "no", "user": "0:0", "on": ["YES", "12", "1e3", "~", "", "a: b", "a#b", "- c"],
            "lines": "one\n\n  two\n", "odd": "\n\tx\u{7}\n", "none": null, "empty": {}, "list": [],
            "nested": [{ "a": { "b": [1, true, ["x"]] }, "c": "d" }], "command": ["--keep", "4GB"],
        });
        let text = yaml(&document);
        assert_eq!(serde_yaml::from_str::<Value>(&text).unwrap(), document, "{text}");
        for quoted in
            ["restart: \"no\"", "user: \"0:0\"", "\"on\":", "- \"YES\"", "- \"12\"", "- \"~\""]
        {
            assert!(text.contains(quoted), "{quoted}: {text}");
        }
        assert!(text.contains("lines: |\n  one\n\n    two\n"), "{text}");
        assert!(text.contains("nested:\n  - a:\n      b:\n        - 1\n"), "{text}");
    }
}
