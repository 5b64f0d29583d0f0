//! Reference of all fields of a topology: accepted values, from the parser; descriptions and
//! defaults, from [`TEMPLATE`].
//!
//! A deserializer without a value ([`Probe`]) queries the parser: at the end of a path it records
//! what the type expects there, and fails. A comment in the template documents the key below it and
//! the following keys without a comment of their own. Within an example (`#   key: value`), a key
//! is documented by the comment before the example and by the comment at the end of its line:
//! `stake: 10000cby  # Its stake.`

use super::{Options, TEMPLATE, Topology};
use serde::{
    Deserialize as _, Deserializer,
    de::{
        DeserializeSeed, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use std::{collections::BTreeMap, fmt};

/// A field of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its path: `chain.block_time`. An item of a list is `[]`: `runners[].stake`.
    pub path: String,
    /// The accepted values, on one line: `a whole number from 1 to 64`.
    pub takes: String,
    /// The default as written in a topology; `None` if the field has no default or is required.
    pub default: Option<String>,
    /// Its description.
    pub about: String,
    /// Whether it has fields of its own.
    pub is_section: bool,
}

/// All fields, each section before its fields.
pub fn fields() -> Vec<Field> {
    let template = Template::read(TEMPLATE);
    let mut found = Vec::new();
    add(&mut Vec::new(), &template, &mut found);
    found
}

/// Adds the fields below `path`.
fn add(path: &mut Vec<ValueStep>, template: &Template, found: &mut Vec<Field>) {
    let Ok(Shape::Fields(names)) = shape(path) else { return };
    for name in names {
        path.push(ValueStep::Key(name));
        let text = text(path);
        let in_list = text.contains('[');
        let noted = template.notes.get(&text);
        let default = noted.and_then(|note| note.default.clone());
        // A list item's values are examples, except for runners, where they are the defaults.
        let of_runner = text.strip_prefix("runners[].").is_some_and(|field| !field.contains('.'));
        let is_default = !in_list || (of_runner && *name != "name");
        found.push(Field {
            takes: takes(path),
            default: default.filter(|_| is_default),
            about: template.about(&text).to_owned(),
            is_section: false,
            path: text,
        });
        let (index, before) = (found.len() - 1, found.len());
        add(path, template, found);
        path.push(ValueStep::Item);
        add(path, template, found);
        path.pop();
        if path[..] == [ValueStep::Key("speculation")] {
            found.extend(options());
        }
        found[index].is_section = found.len() > before;
        path.pop();
    }
}

/// The options of `speculation`, whose parser accepts any name.
fn options() -> impl Iterator<Item = Field> {
    Options::default().settings().into_iter().map(|option| Field {
        path: format!("speculation.{}", option.option),
        takes: option.range,
        default: Some(option.value),
        about: String::new(),
        is_section: false,
    })
}

/// The accepted values at `path`, in words.
fn takes(path: &mut Vec<ValueStep>) -> String {
    path.push(ValueStep::Item);
    let item = shape(path).ok();
    path.pop();
    match (shape(path), item) {
        (Ok(Shape::Fields(_)), _) => "fields".to_owned(),
        (Ok(Shape::OneOf(names)), _) => one_of(names),
        (Ok(Shape::Value(_)), Some(Shape::OneOf(names))) => format!("a list of {}", one_of(names)),
        (Ok(Shape::Value(what)), _) => match what.as_str() {
            "a boolean" => "true or false".to_owned(),
            "a string" => "a text".to_owned(),
            "a sequence" => "a list".to_owned(),
            _ => what,
        },
        (Err(refused), _) => refused,
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn text(path: &[ValueStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            ValueStep::Key(key) if text.is_empty() => text.push_str(key),
            ValueStep::Key(key) => text.extend([".", key]),
            ValueStep::Item => text.push_str("[]"),
        }
    }
    text
}

/// The comments of a template, by path.
#[derive(Debug, Default)]
struct Template {
    notes: BTreeMap<String, Note>,
}

#[derive(Debug, Default)]
struct Note {
    about: String,
    default: Option<String>,
}

impl Template {
    fn read(template: &str) -> Self {
        let mut read = Self::default();
        // The keys that enclose the line, with their indents, in the document and in the example.
        let (mut around, mut example) = (Vec::new(), Vec::new());
        let mut pending = String::new();
        let mut last: Option<(usize, String)> = None;
        for line in template.lines() {
            let indent = line.len() - line.trim_start().len();
            let Some(comment) = line.trim_start().strip_prefix('#') else {
                if let Some((path, value)) = key(line, indent, &mut around) {
                    let own = std::mem::take(&mut pending);
                    let shared = last.filter(|(at, _)| *at == indent).map(|(_, about)| about);
                    let note = read.notes.entry(path).or_default();
                    join(&mut note.about, &own);
                    if note.about.is_empty() {
                        note.about = shared.unwrap_or_default();
                    }
                    note.default = Some(value).filter(|value| !is_empty(value));
                    last = Some((indent, note.about.clone()));
                    example.clear();
                } else {
                    pending.clear();
                    last = None;
                }
                continue;
            };
            let inner = comment.len() - comment.trim_start().len();
            if inner < 3 || !is_key(comment) {
                join(&mut pending, comment.trim());
                continue;
            }
            // An example is nested in the same keys as the comment.
            let depth = around.iter().take_while(|(at, _)| *at < indent).count();
            let outer: Vec<_> = around[..depth].iter().map(|(_, key)| key.as_str()).collect();
            let (line, note) = comment.split_once("  # ").unwrap_or((comment, ""));
            let Some((path, value)) = key(line, inner, &mut example) else { continue };
            let path = outer.iter().chain([&path.as_str()]).copied().collect::<Vec<_>>().join(".");
            let entry = read.notes.entry(path).or_default();
            join(&mut entry.about, &std::mem::take(&mut pending));
            join(&mut entry.about, note.trim());
            if entry.default.is_none() {
                entry.default = Some(value).filter(|value| !is_empty(value));
            }
        }
        read
    }

    /// A field's description: its own comment, or that of the nearest enclosing field.
    fn about(&self, path: &str) -> &str {
        let mut path = path;
        loop {
            let about = self.notes.get(path).map_or("", |note| &note.about);
            match path.rfind(['.', '[']) {
                Some(end) if about.is_empty() => path = &path[..end],
                _ => return about,
            }
        }
    }
}

fn is_empty(value: &str) -> bool {
    ["", "null", "{}", "[]"].contains(&value)
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

fn is_key(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("- ").unwrap_or(line);
    let name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    line.split_once(':')
        .is_some_and(|(key, rest)| name(key) && (rest.is_empty() || rest.starts_with(' ')))
}

/// The path and the value of a line that has a key; `around` holds the enclosing keys.
fn key(line: &str, indent: usize, around: &mut Vec<(usize, String)>) -> Option<(String, String)> {
    if !is_key(line) {
        return None;
    }
    let line = line.trim_start();
    let (line, indent) = match line.strip_prefix("- ") {
        Some(item) => {
            around.retain(|(at, _)| *at < indent);
            if let Some((_, list)) = around.last_mut().filter(|(_, key)| !key.ends_with("[]")) {
                list.push_str("[]");
            }
            (item, indent + 2)
        }
        None => (line, indent),
    };
    around.retain(|(at, _)| *at < indent);
    let (name, value) = line.split_once(':')?;
    around.push((indent, name.to_owned()));
    let path: Vec<_> = around.iter().map(|(_, key)| key.as_str()).collect();
    Some((path.join("."), value.trim().to_owned()))
}

/// A step into a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueStep {
    Key(&'static str),
    Item,
}

/// The type that a parser expects.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// Fields of these names.
    Fields(&'static [&'static str]),
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// Anything else, in the parser's words.
    Value(String),
}

/// What the parser expects at `path`, or why there is no value.
fn shape(path: &[ValueStep]) -> Result<Shape, String> {
    match Topology::deserialize(Probe(path)) {
        Err(Found(outcome)) => outcome,
        Ok(_) => Err("nothing".to_owned()),
    }
}

/// A deserializer without a value: it follows a path and fails with what it finds at the end.
struct Probe<'p>(&'p [ValueStep]);

#[derive(Debug)]
struct Found(Result<Shape, String>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Found {}

impl Error for Found {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Err(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(Err(expected.to_string()))
    }
}

impl<'de> Probe<'_> {
    fn value<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        match self.0 {
            [] => Err(Found(Ok(Shape::Value((&visitor as &dyn Expected).to_string())))),
            [ValueStep::Item, ..] => visitor.visit_seq(self),
            [ValueStep::Key(_), ..] => visitor.visit_map(self),
        }
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Found;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        self.value(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Found> {
        match self.0 {
            [] => Err(Found(Ok(Shape::Fields(fields)))),
            _ => self.value(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found(if self.0.is_empty() { Ok(Shape::OneOf(variants)) } else { Err(String::new()) }))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Found> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Probe<'_> {
    type Error = Found;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Found> {
        match self.0 {
            [ValueStep::Key(key), ..] => seed.deserialize(StrDeserializer::new(key)).map(Some),
            _ => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Found> {
        seed.deserialize(Probe(&self.0[1..]))
    }
}

impl<'de> SeqAccess<'de> for Probe<'_> {
    type Error = Found;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Found> {
        seed.deserialize(Probe(&self.0[1..])).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &str) -> Field {
        let found = fields().into_iter().find(|field| field.path == path);
        found.unwrap_or_else(|| panic!("no field {path}"))
    }

    #[test]
    fn a_field_is_known_from_its_parser_and_the_template() {
        let check = |path: &str, takes: &str, default: Option<&str>, about: &str| {
            let found = field(path);
            assert_eq!(
                (found.takes.as_str(), found.default.as_deref()),
                (takes, default),
                "{path}"
            );
            assert!(found.about.starts_with(about), "{path}: {}", found.about);
        };
        check(
            "name",
            "a name: 1 to 32 of a-z, 0-9 and -, the first not -",
            Some("local"),
            "The devnet's name",
        );
        check(
            "chain.block_time",
            "a duration from 0ms to 60s, as 250ms or 1s",
            Some("1s"),
            "The pace of blocks",
        );
        check(
            "chain.epoch_blocks",
            "a whole number from 8 to 4294967296",
            Some("256"),
            "Blocks in a",
        );
        check(
            "chain.presence.threshold_rule",
            "committee, quorum or subset",
            Some("committee"),
            "How votes",
        );
        check(
            "timers.activation.height",
            "a whole number from 1 to 4294967294",
            None,
            "A switch to",
        );
        check(
            "timers.lane_basefee_max",
            "a whole number from 1 to 1000000000000000000",
            Some("1000000000000000000"),
            "Price of",
        );
        check(
            "validators",
            "a whole number from 1 to 64, or a list of that length",
            Some("4"),
            "1 to 64",
        );
        check(
            "validators[].name",
            "a name: 1 to 32 of a-z, 0-9 and -, the first not -",
            None,
            "Its name.",
        );
        check(
            "runners[].kinds",
            "a list of custom, http, llm, mcp or eth_send",
            Some("[custom, http]"),
            "The job kinds",
        );
        check(
            "runners[].stake",
            "an amount: wei as 1500, or CBY as 1.5cby",
            Some("10000cby"),
            "Its stake",
        );
        check("runners[].tee", "true or false", Some("false"), "Whether it claims");
        check("runners[].executors.llm.base_url", "a text", None, "By default it takes");
        check(
            "accounts.extra[].balance",
            "an amount: wei as 1500, or CBY as 1.5cby",
            None,
            "Its initial balance",
        );
        check("speculation.maxDepth", "1 to 20", Some("5"), "");
        assert!(field("chain").is_section && field("runners").is_section);
        assert!(field("speculation").is_section && !field("chain.seed").is_section);
    }

    #[test]
    fn every_field_is_documented_and_every_note_is_of_a_field() {
        let fields = fields();
        for field in &fields {
            assert!(field.takes.len() > 3, "{field:?}");
            let is_option = field.path.starts_with("speculation.");
            assert!(!field.about.is_empty() || is_option, "{field:?}: a comment in template.yaml");
        }
        for path in Template::read(TEMPLATE).notes.keys() {
            let is_known = fields.iter().any(|field| field.path == *path);
            // Names of MCP servers and options of speculation are free.
            let is_free = path.contains("mcp.") || path.starts_with("speculation.");
            assert!(is_known || is_free, "template.yaml documents {path}, which is no field");
        }
    }
}
