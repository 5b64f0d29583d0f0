//! The position of a field in a YAML text, and YAML errors in the form of a [`TopologyError`].

use super::{FilePlace, TopologyError};
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// One step of a field's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into the value of a key.
    Key(&'static str),
    /// Into an item of a list, from 0.
    Item(usize),
}

/// A path in the notation of YAML errors: `runners[1].name`.
pub(super) fn path_text(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Key(key) if text.is_empty() => text.push_str(key),
            PathStep::Key(key) => text.extend([".", key]),
            PathStep::Item(index) => text.extend(["[", &index.to_string(), "]"]),
        }
    }
    text
}

/// The position of the value at `path`, or of the nearest enclosing value that is written.
pub(super) fn place_of(text: &str, path: &[PathStep]) -> Option<FilePlace> {
    (0..=path.len()).rev().find_map(|len| {
        // The walk fails on purpose at its destination, because only errors carry a position.
        let walk = FieldWalk(&path[..len]);
        let error = walk.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
        place(&error, text)
    })
}

/// The position in a YAML error.
fn place(error: &serde_yaml::Error, text: &str) -> Option<FilePlace> {
    let location = error.location()?;
    let line = location.line();
    let text = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
    Some(FilePlace { line, column: location.column(), text })
}

/// Splits a YAML error into position, field and message.
pub(super) fn describe(error: &serde_yaml::Error, text: &str, file: &str) -> TopologyError {
    let mut message = error.to_string();
    let place = place(error, text);
    if let Some(FilePlace { line, column, .. }) = place {
        message = message.replace(&format!(" at line {line} column {column}"), "");
    }
    // The error may begin with the field's path.
    let is_path = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.[]-".contains(&b))
    };
    let (field, message) = match message.split_once(": ") {
        Some((path, rest)) if is_path(path) => (path.to_owned(), rest.to_owned()),
        _ => (String::new(), message),
    };
    TopologyError { file: file.to_owned(), place, field, message }
}

struct FieldWalk<'a>(&'a [PathStep]);

impl<'de> DeserializeSeed<'de> for FieldWalk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.is_empty() {
            deserializer.deserialize_any(Arrived)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for FieldWalk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.0 {
                [PathStep::Key(wanted), rest @ ..] if *wanted == key => {
                    map.next_value_seed(FieldWalk(rest))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let more = match self.0 {
                [PathStep::Item(wanted), rest @ ..] if *wanted == index => {
                    seq.next_element_seed(FieldWalk(rest))?.is_some()
                }
                _ => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                return Ok(());
            }
            index += 1;
        }
    }
}

/// Rejects every value: the walk has reached its destination.
struct Arrived;

impl Visitor<'_> for Arrived {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}
