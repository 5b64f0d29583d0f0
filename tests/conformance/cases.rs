//! The format of case files: a sequence of operations, and the expected state after them.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A file without the fields that are meant for people.
#[derive(Deserialize)]
pub struct Cases<Op, Then> {
    pub cases: Vec<Case<Op, Then>>,
    pub defaults: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case<Op, Then> {
    pub id: String,
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    pub given: Given<Op>,
    pub then: Then,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given<Op> {
    pub config: Map<String, Value>,
    pub ops: Vec<Op>,
}
