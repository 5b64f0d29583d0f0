//! Errors in the texts that people write, topologies, scenarios, run files and settings: what is
//! wrong, and in which line and column.
//!
//! The YAML library knows the place of a value only while it reads, so a field that is found wrong
//! later is read again. `serde-saphyr` keeps places and draws excerpts, but its errors lack the
//! field's path and the kind of value that was found, and it would add seven crates to the build.

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// An error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    pub place: Option<FilePlace>,
    /// The field's path if it is known, the actual and the allowed value, on one line.
    pub message: String,
}

/// A position in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// The line number, from 1.
    pub line: usize,
    /// The column number, from 1.
    pub column: usize,
    /// The text of the line; empty after the last one.
    pub text: String,
}

impl Located {
    /// An error of YAML, at the place where reading stopped.
    pub fn yaml(error: &serde_yaml::Error, text: &str) -> Self {
        match place(error, text) {
            Some(place) => {
                let message = error.to_string().replace(&place.written(), "");
                Self { place: Some(place), message }
            }
            None => error.to_string().into(),
        }
    }

    /// A message that names places as YAML errors do. The last one counts: it is where something
    /// that is not closed begins.
    pub fn named(problem: &str, text: &str) -> Self {
        let found = problem.rsplit_once(" at line ").and_then(|(before, rest)| {
            let (line, rest) = rest.split_once(" column ")?;
            let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
            let (column, after) = rest.split_at(digits);
            let (line, column) = (line.parse().ok()?, column.parse().ok()?);
            Some((format!("{before}{after}"), line, column))
        });
        let Some((message, line, column)) = found else { return problem.to_owned().into() };
        let is_there = (1..=text.lines().count()).contains(&line);
        Self { place: is_there.then(|| FilePlace::new(text, line, column)), message }
    }

    /// An error of the value at `path`, or of the nearest enclosing value that is written.
    pub fn of_field(path: &[PathStep], text: &str, message: &str) -> Self {
        let place = (0..=path.len()).rev().find_map(|len| {
            // The walk fails on purpose at its destination, because only errors carry a position.
            let walk = FieldWalk(&path[..len]);
            let error = walk.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
            place(&error, text)
        });
        let field = path_text(path);
        let colon = if field.is_empty() { "" } else { ": " };
        Self { place, message: format!("{field}{colon}{message}") }
    }
}

/// An error without a place.
impl From<String> for Located {
    fn from(message: String) -> Self {
        Self { place: None, message }
    }
}

/// In the form of YAML errors, the place last.
impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.place.as_ref().map_or(Ok(()), |place| f.write_str(&place.written()))
    }
}

impl std::error::Error for Located {}

impl FilePlace {
    fn new(text: &str, line: usize, column: usize) -> Self {
        let text = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
        Self { line, column, text }
    }

    pub fn of_byte(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_at = before.rfind('\n').map_or(0, |feed| feed + 1);
        let column = before[line_at..].chars().count() + 1;
        Self::new(text, before.matches('\n').count() + 1, column)
    }

    /// As YAML errors write it.
    fn written(&self) -> String {
        format!(" at line {} column {}", self.line, self.column)
    }
}

fn place(error: &serde_yaml::Error, text: &str) -> Option<FilePlace> {
    let location = error.location()?;
    Some(FilePlace::new(text, location.line(), location.column()))
}

/// One step of a field's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep {
    Key(&'static str),
    /// Into an item of a list, from 0.
    Item(usize),
}

/// A path in the notation of YAML errors: `runners[1].name`.
pub fn path_text(path: &[PathStep]) -> String {
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
