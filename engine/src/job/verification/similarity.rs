//! Mode `semantic_similarity`: embeddings, and whether two of them are close.
//!
//! A runner returns a JSON object with `model`, the model that embedded its answer, and
//! `embedding`, the vector as a list of numbers. Numbers are read as integers in millionths,
//! rounded towards zero. The cosine of two vectors is never computed: `cos ≥ p / 1000` is `a·b > 0
//! ∧ (1000 a·b)² ≥ p² |a|² |b|²`, which integers decide exactly.

use super::parse;
use crate::{
    job::{decimal::Decimal, json::Json},
    record,
};
use num_bigint::BigInt;

/// Maximum number of dimensions of an embedding.
pub const MAX_DIMENSIONS: usize = 4_096;
/// Number of decimal places that are read.
const PLACES: u8 = 6;
/// Maximum magnitude of a number in an embedding.
const MAX_SIZE: u32 = 1_000;
/// Maximum length of a model's name, in bytes.
const MAX_MODEL: usize = 256;

/// The criterion for close embeddings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Similarity {
    /// The only embedding model whose vectors count, by its name in results.
    pub model: String,
    /// The minimum cosine in thousandths, 1 to 1,000.
    pub least_permille: u32,
}
record!(Similarity { model, least_permille });

pub(super) struct Vector {
    /// In millionths, each at most 10^9 in magnitude.
    numbers: Vec<i64>,
    /// The sum of the squares, at most 4.1 × 10^21.
    square: i128,
}

impl Similarity {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=MAX_MODEL).contains(&self.model.len()) {
            let got = self.model.len();
            return Err(format!("names a model in {got} bytes; expected 1..={MAX_MODEL}"));
        }
        if !(1..=1_000).contains(&self.least_permille) {
            let got = self.least_permille;
            return Err(format!("has least_permille {got}; it must lie in 1..=1000"));
        }
        Ok(())
    }

    /// The embedding of a result; the error is the reason why it does not count.
    pub(super) fn read(&self, result: &[u8]) -> Result<Vector, String> {
        let json = parse(result)?;
        let Json::Object(members) = &json else { return Err("is not a JSON object".into()) };
        match members.get("model") {
            Some(Json::Text(model)) if *model == self.model => {}
            Some(Json::Text(model)) => {
                return Err(format!("was embedded by `{model}`, not by `{}`", self.model));
            }
            _ => return Err("has no string `model`".into()),
        }
        let Some(Json::List(items)) = members.get("embedding") else {
            return Err("has no list `embedding`".into());
        };
        if !(1..=MAX_DIMENSIONS).contains(&items.len()) {
            let got = items.len();
            return Err(format!(
                "has an embedding of {got} numbers; expected 1..={MAX_DIMENSIONS}"
            ));
        }
        let most = Decimal::from(MAX_SIZE);
        let numbers = items.iter().enumerate().map(|(at, item)| match item {
            Json::Number(number) if number.abs() <= most => number
                .truncated(PLACES)
                .and_then(|millionths| i64::try_from(millionths).ok())
                .ok_or_else(|| format!("has {number} at `/embedding/{at}`")),
            _ => Err(format!(
                "has something other than a number from -{most} to {most} at `/embedding/{at}`"
            )),
        });
        let numbers: Vec<i64> = numbers.collect::<Result<_, _>>()?;
        let square = product(&numbers, &numbers);
        if square == 0 {
            return Err("has an embedding whose numbers are all 0".into());
        }
        Ok(Vector { numbers, square })
    }

    /// Whether the cosine of two embeddings is at least `least_permille` / 1,000.
    pub(super) fn is_close(&self, a: &Vector, b: &Vector) -> bool {
        if a.numbers.len() != b.numbers.len() {
            return false;
        }
        let dot = product(&a.numbers, &b.numbers);
        let left = BigInt::from(dot) * 1_000;
        let least = BigInt::from(self.least_permille);
        dot > 0 && &left * &left >= &least * &least * a.square * b.square
    }
}

/// The scalar product: at most 4,096 × 10^18, far within 128 bits.
fn product(a: &[i64], b: &[i64]) -> i128 {
    a.iter().zip(b).map(|(a, b)| i128::from(*a) * i128::from(*b)).sum()
}
