//! Checks the output of commands against `docs/schemas`, with a validator of the part of JSON
//! Schema that is generated there. It is stricter in one respect: it refuses a field that no schema
//! names.

use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// The commands with a document in this process that matched its schema.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Global options that take a value, in the forms that tests use.
const VALUED: [&str; 7] = ["--output", "-o", "--devnet", "--node", "--jq", "--template", "--home"];

/// The schema of a command by its words, such as `["chain", "block"]`.
pub fn schema(words: &[&str]) -> Option<Value> {
    let text = fs::read_to_string(folder().join(words.join("-") + ".json")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// The folder of the committed schemas.
pub fn folder() -> PathBuf {
    // Each package with this module is a folder at the repository's top.
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas")
}

/// Checks every document that a command line has printed. A command line that prints no JSON has
/// nothing to check.
pub fn check(args: &[&str], stdout: &str) {
    let (words, format) = read(args);
    if !matches!(format, Some("json" | "jsonl")) {
        return;
    }
    // The output comes from a job.
    if words.starts_with(&["lease", "logs"]) {
        return;
    }
    let found = (1..=words.len()).rev().find_map(|n| Some((n, schema(&words[..n])?)));
    let (count, schema) = found.unwrap_or_else(|| panic!("{args:?} prints JSON and has no schema"));
    for document in serde_json::Deserializer::from_str(stdout).into_iter::<Value>() {
        let document =
            document.unwrap_or_else(|error| panic!("{args:?}: {error}: no JSON: {stdout}"));
        let outcome = validate(&schema, &document);
        // Each line is an item of the list that the schema describes.
        let item = || validate(&schema, &Value::Array(vec![document.clone()]));
        let outcome = outcome.or_else(|error| match format {
            Some("jsonl") => item().map_err(|_| error),
            _ => Err(error),
        });
        if let Err(error) = outcome {
            panic!("{args:?} prints what docs/schemas does not say: {error}\n{document}");
        }
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(words[..count].join(" "));
    }
}

/// Asserts that this process has checked a JSON document of each of these commands. Another test
/// checks that some test names every command with a schema.
pub fn seen(commands: &[&str]) {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for command in commands {
        assert!(seen.contains(*command), "nothing of `{command}` was checked here, but {seen:?}");
    }
}

/// A command's words, and its format unless a filter rewrites the output.
fn read<'a>(args: &[&'a str]) -> (Vec<&'a str>, Option<&'a str>) {
    let (mut words, mut format) = (Vec::new(), None);
    let mut args = args.iter().copied();
    let mut rewritten = false;
    while let Some(arg) = args.next() {
        match arg {
            "--" => break,
            "-q" | "--quiet" => rewritten = true,
            "--jq" | "--template" => {
                rewritten = true;
                args.next();
            }
            "-o" | "--output" => format = args.next(),
            flag if VALUED.contains(&flag) => drop(args.next()),
            "-ojson" => format = Some("json"),
            flag if flag.starts_with('-') => {}
            word => words.push(word),
        }
    }
    (words, format.filter(|_| !rewritten))
}

/// Checks a document against its schema; the error has the place and the reason.
pub fn validate(schema: &Value, document: &Value) -> Result<(), String> {
    let root = Schema { root: schema };
    let named = root.check(schema, document, "$")?;
    named.all_of(document, "$")
}

/// The fields of an object that a schema names.
#[derive(Default)]
struct Named {
    fields: BTreeSet<String>,
    /// Whether the schema allows any field.
    any: bool,
}

impl Named {
    fn add(&mut self, other: Self) {
        self.fields.extend(other.fields);
        self.any |= other.any;
    }

    fn all_of(&self, value: &Value, at: &str) -> Result<(), String> {
        let Value::Object(fields) = value else { return Ok(()) };
        match fields.keys().find(|field| !self.any && !self.fields.contains(*field)) {
            Some(field) => Err(format!("{at}.{field} is in no schema")),
            None => Ok(()),
        }
    }
}

/// The document in which references of schemas are resolved.
struct Schema<'a> {
    root: &'a Value,
}

impl Schema<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<Named, String> {
        let keywords = match schema {
            Value::Bool(true) => return Ok(Named { any: true, ..Named::default() }),
            Value::Object(keywords) => keywords,
            other => return Err(format!("{at}: {other} is not a schema that a value can match")),
        };
        let mut named = Named::default();
        if !says_anything(keywords) {
            named.any = true;
        }
        for (keyword, wanted) in keywords {
            let refused = |what: String| Err(format!("{at}: {what}, got {value}"));
            match keyword.as_str() {
                "$ref" => {
                    let target = wanted.as_str().and_then(|text| text.strip_prefix('#')).unwrap();
                    let target = self.root.pointer(target);
                    let target = target.ok_or_else(|| format!("{at}: there is no {wanted}"))?;
                    named.add(self.check(target, value, at)?);
                }
                "type" => {
                    let types = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
                    if !types.iter().any(|name| is_a(value, name.as_str().unwrap())) {
                        return refused(format!("expected {wanted}"));
                    }
                }
                "properties" => {
                    let Value::Object(fields) = value else { continue };
                    for (name, schema) in wanted.as_object().unwrap() {
                        named.fields.insert(name.clone());
                        if let Some(field) = fields.get(name) {
                            self.closed(schema, field, &format!("{at}.{name}"))?;
                        }
                    }
                }
                "additionalProperties" => {
                    let Value::Object(fields) = value else { continue };
                    let known = keywords.get("properties").and_then(Value::as_object);
                    for (name, field) in fields {
                        if known.is_none_or(|known| !known.contains_key(name)) {
                            self.closed(wanted, field, &format!("{at}.{name}"))?;
                        }
                    }
                    named.any = true;
                }
                "required" => {
                    let Value::Object(fields) = value else { continue };
                    for name in wanted.as_array().unwrap() {
                        let name = name.as_str().unwrap();
                        if !fields.contains_key(name) {
                            return Err(format!("{at}: there is no {name}"));
                        }
                    }
                }
                "items" => {
                    let Value::Array(items) = value else { continue };
                    for (index, item) in items.iter().enumerate() {
                        self.closed(wanted, item, &format!("{at}[{index}]"))?;
                    }
                }
                "allOf" => {
                    for part in wanted.as_array().unwrap() {
                        named.add(self.check(part, value, at)?);
                    }
                }
                "anyOf" | "oneOf" => {
                    let mut refusals = Vec::new();
                    let mut kept = 0;
                    for part in wanted.as_array().unwrap() {
                        match self.check(part, value, at) {
                            Ok(of_part) => {
                                kept += 1;
                                named.add(of_part);
                            }
                            Err(refusal) => refusals.push(refusal),
                        }
                    }
                    match (keyword.as_str(), kept) {
                        (_, 0) => return Err(refusals.join("; ")),
                        ("oneOf", 2..) => return refused(format!("{kept} of oneOf hold")),
                        _ => {}
                    }
                }
                "enum" if !wanted.as_array().unwrap().contains(value) => {
                    return refused(format!("expected one of {wanted}"));
                }
                "const" if wanted != value => return refused(format!("expected {wanted}")),
                "minimum" | "exclusiveMinimum" | "maximum" => {
                    let (Some(number), Some(limit)) = (value.as_f64(), wanted.as_f64()) else {
                        continue;
                    };
                    let kept = match keyword.as_str() {
                        "minimum" => number >= limit,
                        "exclusiveMinimum" => number > limit,
                        _ => number <= limit,
                    };
                    if !kept {
                        return refused(format!("{keyword} is {wanted}"));
                    }
                }
                "minLength" | "maxLength" | "minItems" | "maxItems" | "maxProperties" => {
                    let length = match (value, keyword.ends_with("Length")) {
                        (Value::String(text), true) => text.chars().count(),
                        (Value::Array(items), false) => items.len(),
                        (Value::Object(fields), false) => fields.len(),
                        _ => continue,
                    };
                    let limit = usize::try_from(wanted.as_u64().unwrap()).unwrap();
                    let least = keyword.starts_with("min");
                    if least && length < limit || !least && length > limit {
                        return refused(format!("{keyword} is {wanted}"));
                    }
                }
                // Prose for people, or constraints on text that other tests check.
                "enum" | "const" | "description" | "title" | "format" | "pattern" | "example"
                | "examples" | "default" | "propertyNames" | "$schema" | "$defs" => {}
                other => return Err(format!("{at}: the validator does not know {other}")),
            }
        }
        Ok(named)
    }

    /// As [`Self::check`], but refuses fields that this schema does not name.
    fn closed(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        self.check(schema, value, at)?.all_of(value, at)
    }
}

/// Whether a schema restricts values at all.
fn says_anything(keywords: &Map<String, Value>) -> bool {
    let about = ["$ref", "properties", "allOf", "anyOf", "oneOf", "type", "enum", "const"];
    let is_free_object = keywords.get("type").is_some_and(|name| name == "object")
        && !keywords.contains_key("properties");
    !is_free_object && about.iter().any(|keyword| keywords.contains_key(*keyword))
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not a type of JSON Schema"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, document: Value, expected: Result<(), &str>) {
        let got = validate(schema, &document);
        assert_eq!(got.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e));
    }

    #[test]
    fn what_is_not_as_the_schema_says_is_refused() {
        let schema = json!({
            "$defs": {
                "Head": {
                    "type": "object",
                    "required": ["height"],
                    "properties": {
                        "height": { "type": "integer", "minimum": 0 },
                        "hash": { "type": ["string", "null"], "maxLength": 4 },
                    },
                },
            },
            "type": "array",
            "items": { "$ref": "#/$defs/Head" },
        });
        check(&schema, json!([]), Ok(()));
        check(&schema, json!([{ "height": 1 }, { "height": 2, "hash": null }]), Ok(()));
        check(&schema, json!({}), Err("$: expected \"array\", got {}"));
        check(&schema, json!([{}]), Err("$[0]: there is no height"));
        check(&schema, json!([{ "height": -1 }]), Err("$[0].height: minimum is 0, got -1"));
        check(
            &schema,
            json!([{ "height": 1, "hash": "0x123" }]),
            Err("$[0].hash: maxLength is 4, got \"0x123\""),
        );
        check(&schema, json!([{ "height": 1, "more": 1 }]), Err("$[0].more is in no schema"));
        check(
            &schema,
            json!([{ "height": "1" }]),
            Err("$[0].height: expected \"integer\", got \"1\""),
        );
    }

    #[test]
    fn parts_of_a_schema_hold_together() {
        let flat = json!({
            "allOf": [
                { "type": "object", "required": ["a"], "properties": { "a": {} } },
                { "type": "object", "properties": { "b": { "enum": ["x", "y"] } } },
            ],
        });
        check(&flat, json!({ "a": { "any": 1 }, "b": "x" }), Ok(()));
        check(&flat, json!({ "b": "x" }), Err("$: there is no a"));
        check(
            &flat,
            json!({ "a": 1, "b": "z" }),
            Err("$.b: expected one of [\"x\",\"y\"], got \"z\""),
        );
        check(&flat, json!({ "a": 1, "c": 1 }), Err("$.c is in no schema"));
        let either = json!({ "oneOf": [{ "type": "null" }, { "type": "integer" }] });
        check(&either, json!(null), Ok(()));
        check(&either, json!(1), Ok(()));
        assert!(validate(&either, &json!("1")).is_err());
        let both = json!({ "oneOf": [{ "type": "number" }, { "type": "integer" }] });
        check(&both, json!(1), Err("$: 2 of oneOf hold, got 1"));
        let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        check(&map, json!({ "a": 1 }), Ok(()));
        check(&map, json!({ "a": "1" }), Err("$.a: expected \"integer\", got \"1\""));
        assert!(validate(&json!({ "not": {} }), &json!(1)).is_err(), "no keyword is passed over");
    }

    #[test]
    fn command_lines_are_read() {
        let check = |line: &str, words: &str, format: Option<&str>| {
            let args: Vec<_> = line.split(' ').collect();
            let (got, found) = read(&args);
            assert_eq!((got.join(" ").as_str(), found), (words, format), "{line}");
        };
        check("--output json chain head", "chain head", Some("json"));
        check("chain events --follow -o jsonl", "chain events", Some("jsonl"));
        check("--devnet a chain head -o json --jq .height", "chain head", None);
        check("-q chain head -o json", "chain head", None);
        check("chain head", "chain head", None);
        check("job submit custom -o json -- env -o yaml", "job submit custom", Some("json"));
    }
}
