//! The form of the files of cases: operations one after the other, and what must hold after them.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A file, but for what is there to be read by people.
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
