//! Mode `structured_match`: tests that each result must pass, and when two results match.

use super::{Check, check::pointer, digest, field, parse};
use crate::{
    job::{
        decimal::Decimal,
        json::{Json, Pointer},
        schema::{Schema, Steps},
    },
    primitives::Hash,
};
use std::collections::BTreeMap;

pub(super) struct Tests(Vec<Test>);

enum Test {
    Schema(Schema),
    Equal(Pointer),
    Tolerance { field: Pointer, within: Decimal },
    Range { field: Pointer, least: Decimal, most: Decimal },
    Majority(Pointer),
}

/// The part of a passing result that one check reads; nothing else of the result is kept.
pub(super) enum Reading {
    Nothing,
    Value(Hash),
    Number(Decimal),
}

impl Tests {
    /// Compiles checks. The error names the first invalid one by its index, from 0.
    pub(super) fn compile(checks: &[Check]) -> Result<Self, String> {
        let compiled = checks.iter().enumerate().map(|(at, check)| {
            Test::compile(check).map_err(|problem| format!("[{at}].{}: {problem}", check.name()))
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// The readings of a result, one per check; the error is the reason why it does not pass. Every
    /// value that a check compares must be present.
    pub(super) fn read(&self, result: &[u8]) -> Result<Vec<Reading>, String> {
        let json = parse(result)?;
        let mut steps = Steps::for_document(result.len());
        self.0.iter().map(|test| test.read(&json, &mut steps)).collect()
    }

    /// For each check of kind [`Check::Majority`], the value of more than half of the passing
    /// results.
    pub(super) fn majority<'r>(
        &self,
        passing: impl Iterator<Item = &'r Vec<Reading>> + Clone,
    ) -> Vec<Option<Hash>> {
        let of = |at: usize| {
            let mut votes: BTreeMap<Hash, usize> = BTreeMap::new();
            for readings in passing.clone() {
                if let Reading::Value(value) = readings[at] {
                    *votes.entry(value).or_default() += 1;
                }
            }
            let half = passing.clone().count() / 2;
            votes.into_iter().find(|(_, count)| *count > half).map(|(value, _)| value)
        };
        let tests = self.0.iter().enumerate();
        tests
            .map(|(at, test)| matches!(test, Test::Majority(_)).then(|| of(at)).flatten())
            .collect()
    }

    /// Whether two passing results match, given the `majority` value of each check.
    pub(super) fn match_each_other(
        &self,
        majority: &[Option<Hash>],
        a: &[Reading],
        b: &[Reading],
    ) -> bool {
        self.0.iter().zip(majority).zip(a.iter().zip(b)).all(|((test, majority), pair)| {
            match (test, pair) {
                (Test::Equal(_), (Reading::Value(a), Reading::Value(b))) => a == b,
                (Test::Tolerance { within, .. }, (Reading::Number(a), Reading::Number(b))) => {
                    a.is_within(b, within)
                }
                (Test::Majority(_), (Reading::Value(a), Reading::Value(b))) => {
                    Some(*a) == *majority && a == b
                }
                _ => true,
            }
        })
    }
}

impl Test {
    fn compile(check: &Check) -> Result<Self, String> {
        let number = |what: &str, text: &str| {
            text.parse::<Decimal>().map_err(|error| format!("{what} is {error}"))
        };
        Ok(match check {
            Check::Schema(text) => {
                Self::Schema(Schema::compile(text).map_err(|error| error.to_string())?)
            }
            Check::Equal(field) => Self::Equal(pointer(field)?),
            Check::Tolerance { field, within } => {
                let within = number("within", within)?;
                if within < Decimal::ZERO {
                    return Err(format!("within is {within}; it must be 0 or more"));
                }
                Self::Tolerance { field: pointer(field)?, within }
            }
            Check::Range { field, least, most } => {
                let (least, most) = (number("least", least)?, number("most", most)?);
                if least > most {
                    return Err(format!("least is {least} and most {most}: the range is empty"));
                }
                Self::Range { field: pointer(field)?, least, most }
            }
            Check::Majority(field) => Self::Majority(pointer(field)?),
        })
    }

    fn read(&self, json: &Json, steps: &mut Steps) -> Result<Reading, String> {
        match self {
            Self::Schema(schema) => {
                schema.check(json, steps).map_err(|violation| violation.to_string())?;
                Ok(Reading::Nothing)
            }
            Self::Equal(pointer) | Self::Majority(pointer) => {
                let text = field(json, pointer)?.to_string();
                // Fields may contain one another, so each is charged for the bytes that are hashed.
                steps.take(text.len()).map_err(|exhausted| exhausted.to_string())?;
                Ok(Reading::Value(digest(&text)))
            }
            Self::Tolerance { field: pointer, .. } => number(json, pointer).map(Reading::Number),
            Self::Range { field: pointer, least, most } => {
                let got = number(json, pointer)?;
                if got < *least || got > *most {
                    return Err(format!("has {got} at `{pointer}`; expected {least} to {most}"));
                }
                Ok(Reading::Nothing)
            }
        }
    }
}

fn number(json: &Json, pointer: &Pointer) -> Result<Decimal, String> {
    match field(json, pointer)? {
        Json::Number(number) => Ok(*number),
        _ => Err(format!("has no number at `{pointer}`")),
    }
}
