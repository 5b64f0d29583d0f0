//! A subset of JSON Schema (draft 2020-12), compiled once and strictly, because all validators have
//! to agree on its verdicts.
//!
//! A keyword that is in neither [`KEYWORDS`] nor [`IGNORED`] does not compile: a schema that is
//! weaker than it reads would verify results that its author meant to refuse. There are no
//! references, so that a schema is a finite tree, and no patterns. `integer` accepts 1.0, as in the
//! standard; lengths of texts count code points; `uniqueItems`, `enum` and `const` compare values,
//! not notation.
//!
//! A check costs [`Steps`], about one per keyword that is tested on a value. The number available
//! follows from the document's length alone: no schema makes a document cost more than that.

use super::{
    decimal::Decimal,
    json::{Json, JsonError, token},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Maximum length of a schema's text, in bytes.
pub const MAX_BYTES: usize = 16 * 1024;
/// Maximum nesting of schemas, including the outermost.
pub const MAX_DEPTH: usize = 32;
/// Maximum number of schemas in a schema, including itself.
pub const MAX_NODES: usize = 4_096;

/// The supported keywords, in the order in which they are checked.
pub const KEYWORDS: [&str; 23] = [
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];

/// Keywords that do not constrain values; their contents are ignored.
pub const IGNORED: [&str; 4] = ["$schema", "$comment", "title", "description"];

/// Why a text is not a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("is {0} bytes long; the maximum is {MAX_BYTES}")]
    TooLong(usize),
    #[error("is not JSON: {0}")]
    NotJson(#[from] JsonError),
    #[error("{problem}, at `{at}`")]
    Refused {
        /// JSON pointer to the place.
        at: String,
        /// The problem and the expected value.
        problem: String,
    },
}

/// Why a document does not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("breaks `{keyword}` of its schema at `{at}`")]
    Broken {
        keyword: &'static str,
        /// JSON pointer to the value in the document, or to the missing value's place.
        at: String,
    },
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// The error when no [`Steps`] are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("takes more steps to check than a result of its length may")]
pub struct Exhausted;

/// The number of steps that checks of one document may still take.
#[derive(Debug)]
pub struct Steps(u64);

impl Steps {
    /// For a document of `len` bytes: 65,536 steps plus 8 per byte. The densest document has one
    /// value per two bytes, so about fifteen keywords can be tested on each value.
    pub const fn for_document(len: usize) -> Self {
        Self(65_536 + 8 * len as u64)
    }

    pub fn take(&mut self, count: usize) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(count as u64).ok_or(Exhausted)?;
        Ok(())
    }
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(SchemaNode);

impl Schema {
    /// Compiles a schema from its text, JSON of at most [`MAX_BYTES`] bytes.
    pub fn compile(text: &str) -> Result<Self, SchemaError> {
        if text.len() > MAX_BYTES {
            return Err(SchemaError::TooLong(text.len()));
        }
        let json = Json::parse(text.as_bytes())?;
        let mut compiler = SchemaCompiler { nodes: 0, at: String::new() };
        compiler.node("false", &json, 1).map(Self)
    }

    pub fn check(&self, document: &Json, steps: &mut Steps) -> Result<(), Violation> {
        self.0.check(document, steps).map_err(|stop| match stop {
            Stop::Exhausted(exhausted) => exhausted.into(),
            Stop::Broken { keyword, path } => {
                let mut at = String::new();
                for segment in path.iter().rev() {
                    let written = match segment {
                        Segment::Name(name) => write!(at, "/{}", token(name)),
                        Segment::Index(index) => write!(at, "/{index}"),
                    };
                    written.expect("writing to a string never fails");
                }
                Violation::Broken { keyword, at }
            }
        })
    }
}

/// A schema as a list of rules. Without rules it accepts everything.
#[derive(Debug)]
struct SchemaNode(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    keyword: &'static str,
    test: SchemaTest,
}

#[derive(Debug)]
enum SchemaTest {
    /// `false`: nothing passes.
    Never,
    Types(Vec<SchemaType>),
    Among(BTreeSet<Json>),
    /// A number that compares so with this one.
    Number(fn(&Decimal, &Decimal) -> bool, Decimal),
    Multiple(Decimal),
    /// A text whose number of code points compares so with this number.
    Length(fn(&u64, &u64) -> bool, u64),
    /// A list whose number of items compares so with this number.
    Items(fn(&u64, &u64) -> bool, u64),
    /// An object whose number of members compares so with this number.
    Members(fn(&u64, &u64) -> bool, u64),
    Required(Vec<String>),
    /// Members that must pass if they are present.
    Properties(BTreeMap<String, SchemaNode>),
    /// The schema of all members except these.
    Others(BTreeSet<String>, SchemaNode),
    Each(SchemaNode),
    Unique,
    All(Vec<SchemaNode>),
    Any(Vec<SchemaNode>),
    One(Vec<SchemaNode>),
    Not(SchemaNode),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaType {
    Null,
    Boolean,
    Number,
    Integer,
    Text,
    List,
    Object,
}

impl SchemaType {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "string" => Self::Text,
            "array" => Self::List,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn takes(self, value: &Json) -> bool {
        match value {
            Json::Null => self == Self::Null,
            Json::Bool(_) => self == Self::Boolean,
            Json::Number(number) => {
                self == Self::Number || self == Self::Integer && number.is_integer()
            }
            Json::Text(_) => self == Self::Text,
            Json::List(_) => self == Self::List,
            Json::Object(_) => self == Self::Object,
        }
    }
}

enum Stop<'a> {
    /// A keyword is violated; the path to the value, last step first.
    Broken {
        keyword: &'static str,
        path: Vec<Segment<'a>>,
    },
    Exhausted(Exhausted),
}

enum Segment<'a> {
    Name(&'a str),
    Index(usize),
}

impl From<Exhausted> for Stop<'_> {
    fn from(exhausted: Exhausted) -> Self {
        Self::Exhausted(exhausted)
    }
}

impl<'a> Stop<'a> {
    fn below(mut self, segment: Segment<'a>) -> Self {
        if let Self::Broken { path, .. } = &mut self {
            path.push(segment);
        }
        self
    }
}

impl SchemaNode {
    fn check<'a>(&'a self, value: &'a Json, steps: &mut Steps) -> Result<(), Stop<'a>> {
        steps.take(1)?;
        for Rule { keyword, test } in &self.0 {
            steps.take(1)?;
            if !test.holds(value, steps)? {
                return Err(Stop::Broken { keyword, path: Vec::new() });
            }
        }
        Ok(())
    }

    /// Whether the value passes, in a place where a failure is not yet a violation.
    fn takes(&self, value: &Json, steps: &mut Steps) -> Result<bool, Exhausted> {
        match self.check(value, steps) {
            Ok(()) => Ok(true),
            Err(Stop::Broken { .. }) => Ok(false),
            Err(Stop::Exhausted(exhausted)) => Err(exhausted),
        }
    }
}

impl SchemaTest {
    /// Whether the test itself holds; an error is a violation of a nested schema. A test for one
    /// type accepts values of all other types.
    fn holds<'a>(&'a self, value: &'a Json, steps: &mut Steps) -> Result<bool, Stop<'a>> {
        match (self, value) {
            (Self::Never, _) => return Ok(false),
            (Self::Types(types), _) => return Ok(types.iter().any(|kind| kind.takes(value))),
            (Self::Among(values), _) => return Ok(values.contains(value)),
            (Self::Number(holds, limit), Json::Number(number)) => return Ok(holds(number, limit)),
            (Self::Multiple(step), Json::Number(number)) => {
                // It divides two integers of some hundred digits.
                steps.take(16)?;
                return Ok(number.is_multiple_of(step));
            }
            (Self::Length(holds, limit), Json::Text(text)) => {
                steps.take(text.len() / 64)?;
                return Ok(holds(&(text.chars().count() as u64), limit));
            }
            (Self::Items(holds, limit), Json::List(items)) => {
                return Ok(holds(&(items.len() as u64), limit));
            }
            (Self::Members(holds, limit), Json::Object(members)) => {
                return Ok(holds(&(members.len() as u64), limit));
            }
            (Self::Required(names), Json::Object(members)) => {
                steps.take(names.len())?;
                if let Some(name) = names.iter().find(|name| !members.contains_key(*name)) {
                    let path = vec![Segment::Name(name)];
                    return Err(Stop::Broken { keyword: "required", path });
                }
            }
            (Self::Properties(nodes), Json::Object(members)) => {
                steps.take(nodes.len())?;
                for (name, node) in nodes {
                    if let Some(value) = members.get(name) {
                        node.check(value, steps).map_err(|s| s.below(Segment::Name(name)))?;
                    }
                }
            }
            (Self::Others(known, node), Json::Object(members)) => {
                steps.take(members.len())?;
                for (name, value) in members.iter().filter(|(name, _)| !known.contains(*name)) {
                    node.check(value, steps).map_err(|s| s.below(Segment::Name(name)))?;
                }
            }
            (Self::Each(node), Json::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    node.check(item, steps).map_err(|s| s.below(Segment::Index(index)))?;
                }
            }
            (Self::Unique, Json::List(items)) => return Ok(is_unique(items, steps)?),
            (Self::All(nodes), _) => {
                for node in nodes {
                    node.check(value, steps)?;
                }
            }
            (Self::Any(nodes), _) => {
                for node in nodes {
                    if node.takes(value, steps)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
            (Self::One(nodes), _) => {
                let mut taking = 0;
                for node in nodes {
                    taking += usize::from(node.takes(value, steps)?);
                }
                return Ok(taking == 1);
            }
            (Self::Not(node), _) => return Ok(!node.takes(value, steps)?),
            _ => {}
        }
        Ok(true)
    }
}

/// Whether no two items are equal: after sorting, equal items are adjacent.
fn is_unique(items: &[Json], steps: &mut Steps) -> Result<bool, Exhausted> {
    let levels = items.len().checked_ilog2().unwrap_or(0) as usize;
    for item in items {
        let weight = weigh(item, steps)?;
        steps.take(weight * levels / 4)?;
    }
    let mut sorted: Vec<&Json> = items.iter().collect();
    sorted.sort_unstable();
    Ok(sorted.windows(2).all(|pair| pair[0] != pair[1]))
}

/// The cost of comparing a value: one per value in it, plus one per 64 bytes of text.
fn weigh(value: &Json, steps: &mut Steps) -> Result<usize, Exhausted> {
    steps.take(1)?;
    let mut weight = 1;
    match value {
        Json::Text(text) => weight += text.len() / 64,
        Json::List(items) => {
            for item in items {
                weight += weigh(item, steps)?;
            }
        }
        Json::Object(members) => {
            for (name, value) in members {
                weight += name.len() / 64 + weigh(value, steps)?;
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
    Ok(weight)
}

struct SchemaCompiler {
    nodes: usize,
    at: String,
}

impl SchemaCompiler {
    fn refuse<T>(&self, problem: impl Into<String>) -> Result<T, SchemaError> {
        Err(SchemaError::Refused { at: self.at.clone(), problem: problem.into() })
    }

    fn below<T>(
        &mut self,
        name: &str,
        what: impl FnOnce(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<T, SchemaError> {
        let above = self.at.len();
        self.at.push('/');
        self.at.push_str(&token(name));
        let done = what(self)?;
        self.at.truncate(above);
        Ok(done)
    }

    /// Compiles a schema under `keyword`, `depth` schemas deep.
    fn node(
        &mut self,
        keyword: &'static str,
        from: &Json,
        depth: usize,
    ) -> Result<SchemaNode, SchemaError> {
        if depth > MAX_DEPTH {
            return self.refuse(format!("schemas nested deeper than {MAX_DEPTH}"));
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return self.refuse(format!("more than {MAX_NODES} schemas"));
        }
        let members = match from {
            Json::Object(members) => members,
            Json::Bool(true) => return Ok(SchemaNode(Vec::new())),
            Json::Bool(false) => {
                return Ok(SchemaNode(vec![Rule { keyword, test: SchemaTest::Never }]));
            }
            _ => return self.refuse("a schema is expected: an object, true or false"),
        };
        let known =
            |name: &&String| KEYWORDS.contains(&name.as_str()) || IGNORED.contains(&name.as_str());
        if let Some(name) = members.keys().find(|name| !known(name)) {
            let problem = format!("`{name}` is not a supported keyword");
            return self.below(name, |c| c.refuse(problem));
        }
        let mut rules = Vec::new();
        for keyword in KEYWORDS {
            if let Some(value) = members.get(keyword) {
                let test = self.below(keyword, |c| c.test(keyword, value, members, depth))?;
                rules.extend(test.map(|test| Rule { keyword, test }));
            }
        }
        Ok(SchemaNode(rules))
    }

    /// The test of a keyword; `None` if it constrains nothing.
    fn test(
        &mut self,
        keyword: &'static str,
        value: &Json,
        siblings: &BTreeMap<String, Json>,
        depth: usize,
    ) -> Result<Option<SchemaTest>, SchemaError> {
        Ok(Some(match keyword {
            "type" => SchemaTest::Types(self.types(value)?),
            "const" => SchemaTest::Among(BTreeSet::from([value.clone()])),
            "enum" => SchemaTest::Among(self.list(value)?.iter().cloned().collect()),
            "minimum" => SchemaTest::Number(Decimal::ge, self.number(value)?),
            "maximum" => SchemaTest::Number(Decimal::le, self.number(value)?),
            "exclusiveMinimum" => SchemaTest::Number(Decimal::gt, self.number(value)?),
            "exclusiveMaximum" => SchemaTest::Number(Decimal::lt, self.number(value)?),
            "multipleOf" => match self.number(value)? {
                step if step > Decimal::ZERO => SchemaTest::Multiple(step),
                _ => return self.refuse("a number above 0 is expected"),
            },
            "minLength" => SchemaTest::Length(u64::ge, self.count(value)?),
            "maxLength" => SchemaTest::Length(u64::le, self.count(value)?),
            "minItems" => SchemaTest::Items(u64::ge, self.count(value)?),
            "maxItems" => SchemaTest::Items(u64::le, self.count(value)?),
            "minProperties" => SchemaTest::Members(u64::ge, self.count(value)?),
            "maxProperties" => SchemaTest::Members(u64::le, self.count(value)?),
            "required" => SchemaTest::Required(self.names(value)?),
            "properties" => {
                let mut nodes = BTreeMap::new();
                for (name, value) in self.object(value)? {
                    let node = self.below(name, |c| c.node(keyword, value, depth + 1))?;
                    nodes.insert(name.clone(), node);
                }
                SchemaTest::Properties(nodes)
            }
            "additionalProperties" => {
                let known = match siblings.get("properties") {
                    Some(Json::Object(members)) => members.keys().cloned().collect(),
                    _ => BTreeSet::new(),
                };
                SchemaTest::Others(known, self.node(keyword, value, depth + 1)?)
            }
            "items" => SchemaTest::Each(self.node(keyword, value, depth + 1)?),
            "uniqueItems" => match value {
                Json::Bool(true) => SchemaTest::Unique,
                Json::Bool(false) => return Ok(None),
                _ => return self.refuse("true or false is expected"),
            },
            "allOf" => SchemaTest::All(self.nodes(keyword, value, depth)?),
            "anyOf" => SchemaTest::Any(self.nodes(keyword, value, depth)?),
            "oneOf" => SchemaTest::One(self.nodes(keyword, value, depth)?),
            "not" => SchemaTest::Not(self.node(keyword, value, depth + 1)?),
            other => unreachable!("{other} is in the list of keywords but not handled here"),
        }))
    }

    fn nodes(
        &mut self,
        keyword: &'static str,
        value: &Json,
        depth: usize,
    ) -> Result<Vec<SchemaNode>, SchemaError> {
        let items = self.list(value)?.iter().enumerate();
        items
            .map(|(at, item)| self.below(&at.to_string(), |c| c.node(keyword, item, depth + 1)))
            .collect()
    }

    fn types(&self, value: &Json) -> Result<Vec<SchemaType>, SchemaError> {
        let names = match value {
            Json::Text(name) => vec![name.clone()],
            _ => self.names(value)?,
        };
        let Some(types) =
            names.iter().map(|name| SchemaType::named(name)).collect::<Option<Vec<_>>>()
        else {
            return self.refuse(
                "a type is expected: null, boolean, number, integer, string, array or object",
            );
        };
        if types.is_empty() {
            return self.refuse("at least one type is expected");
        }
        Ok(types)
    }

    /// A list of distinct texts.
    fn names(&self, value: &Json) -> Result<Vec<String>, SchemaError> {
        let expected = "a list of strings is expected, none of them twice";
        let Json::List(items) = value else { return self.refuse(expected) };
        let mut names = BTreeSet::new();
        for item in items {
            match item {
                Json::Text(name) if names.insert(name.clone()) => {}
                _ => return self.refuse(expected),
            }
        }
        Ok(names.into_iter().collect())
    }

    fn list<'a>(&self, value: &'a Json) -> Result<&'a [Json], SchemaError> {
        match value {
            Json::List(items) if !items.is_empty() => Ok(items),
            _ => self.refuse("a list of at least one is expected"),
        }
    }

    fn object<'a>(&self, value: &'a Json) -> Result<&'a BTreeMap<String, Json>, SchemaError> {
        match value {
            Json::Object(members) => Ok(members),
            _ => self.refuse("an object of schemas is expected"),
        }
    }

    fn number(&self, value: &Json) -> Result<Decimal, SchemaError> {
        match value {
            Json::Number(number) => Ok(*number),
            _ => self.refuse("a number is expected"),
        }
    }

    fn count(&self, value: &Json) -> Result<u64, SchemaError> {
        match self.number(value)?.to_u64() {
            Some(count) => Ok(count),
            None => self.refuse("an integer of at least 0 is expected"),
        }
    }
}

#[cfg(test)]
mod tests;
