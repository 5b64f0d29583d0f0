//! The rules for accepting a result as verified (spec jobs.md §5).
//!
//! A committee of M runners does the work. Each mode defines which results agree, and how many of M
//! have to. [`Verification::agree`] decides from the results' bytes alone:
//!
//! | mode | M | results agree if |
//! |---|---|---|
//! | `none`, `economic_bond` | 1 | (the only result is accepted) |
//! | `majority_vote` | ≥ 3 | their values at `vote_field` are equal |
//! | `structured_match` | ≥ 2 | all checks hold, for each alone and in pairs |
//! | `deterministic` | ≥ 2 | their bytes are equal |
//! | `semantic_similarity` | ≥ 3 | their embeddings point in nearly the same direction |
//!
//! More than half of M must agree whatever the threshold is, so that no two results can both be
//! verified. Numbers are exact decimals and integers, so rounding cannot make validators disagree.
//! Time grows with the results' bytes: each is read once, for `structured_match` within the
//! [`Steps`](super::schema::Steps) of its length, and pairs compare hashes, numbers or vectors. 64
//! embeddings of 4,096 dimensions take 8 million multiplications of 64-bit integers.

mod check;
mod similarity;
mod structured;

pub use check::Check;
pub use similarity::{MAX_DIMENSIONS, Similarity};

use super::json::{Json, Pointer};
use crate::primitives::{
    Hash,
    codec::{Decode, DecodeError, Encode, Reader, Writer, words},
    keccak256,
};

/// Maximum size of a committee.
pub const MAX_COMMITTEE: u32 = 64;
/// Maximum number of checks of a `structured_match`.
pub const MAX_CHECKS: usize = 32;
/// Maximum length of a JSON pointer, in bytes.
pub const MAX_POINTER: usize = 1_024;
/// Maximum length of a reason that people read, in characters.
const MAX_REASON: usize = 300;

/// The rule by which a result is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationMode {
    /// The only runner's result is accepted.
    None,
    /// The only runner's result is accepted; a wrong one is slashable.
    EconomicBond,
    /// Results vote by the value of one of their fields.
    MajorityVote,
    /// Results pass checks and match one another.
    StructuredMatch,
    /// Results are the same bytes.
    Deterministic,
    /// Results' embeddings are close.
    SemanticSimilarity,
}

words!(VerificationMode, VerificationModeError, "a verification mode",
    "none, economic_bond, majority_vote, structured_match, deterministic or semantic_similarity",
    32, "unknown verification mode";
    None = "none",
    EconomicBond = "economic_bond",
    MajorityVote = "majority_vote",
    StructuredMatch = "structured_match",
    Deterministic = "deterministic",
    SemanticSimilarity = "semantic_similarity",
);

impl VerificationMode {
    pub const fn least_runners(self) -> u32 {
        match self {
            Self::None | Self::EconomicBond => 1,
            Self::StructuredMatch | Self::Deterministic => 2,
            Self::MajorityVote | Self::SemanticSimilarity => 3,
        }
    }

    /// Whether one runner's result is accepted as it is.
    pub const fn takes_one(self) -> bool {
        matches!(self, Self::None | Self::EconomicBond)
    }
}

/// The verification that a submitter asks for. [`check`](Self::check) defines the fields of each
/// mode and their limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    pub mode: VerificationMode,
    /// M, the size of the committee.
    pub runners: u32,
    /// Number of results of M that must agree; `None`: more than half.
    pub threshold: Option<u32>,
    /// `majority_vote`: JSON pointer to the value that is the vote.
    pub vote_field: Option<String>,
    /// `structured_match`: the checks that have to hold.
    pub checks: Vec<Check>,
    /// `semantic_similarity`: the model and the required closeness.
    pub similarity: Option<Similarity>,
}

/// The results that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The index of the verified result among the results.
    pub winner: usize,
    /// The indices of all results that agree with it, itself included, ascending: the first is the
    /// first in draw order.
    pub agreeing: Vec<usize>,
}

impl Verification {
    pub const fn none() -> Self {
        Self::of(VerificationMode::None, 1)
    }

    pub const fn of(mode: VerificationMode, runners: u32) -> Self {
        Self {
            mode,
            runners,
            threshold: None,
            vote_field: None,
            checks: Vec::new(),
            similarity: None,
        }
    }

    /// Number of results that must agree: the threshold, or the smallest strict majority of M.
    pub const fn needed(&self) -> u32 {
        match self.threshold {
            Some(threshold) => threshold,
            None => self.runners / 2 + 1,
        }
    }

    /// Checks all fields. The error is the first invalid field and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_numbers()?;
        let stray = |field, given: bool, mode: VerificationMode| match given && self.mode != mode {
            true => Err((field, format!("is given; mode {} has none", self.mode))),
            false => Ok(()),
        };
        use VerificationMode::{MajorityVote, SemanticSimilarity, StructuredMatch};
        stray("verification.vote_field", self.vote_field.is_some(), MajorityVote)?;
        stray("verification.checks", !self.checks.is_empty(), StructuredMatch)?;
        stray("verification.similarity", self.similarity.is_some(), SemanticSimilarity)?;
        match self.mode {
            MajorityVote => {
                let field = "verification.vote_field";
                let Some(pointer) = &self.vote_field else {
                    return Err((field, "is missing; mode majority_vote votes with it".into()));
                };
                check::pointer(pointer).map(drop).map_err(|problem| (field, problem))
            }
            StructuredMatch => {
                let field = "verification.checks";
                let count = self.checks.len();
                if !(1..=MAX_CHECKS).contains(&count) {
                    return Err((field, format!("has {count}; there must be 1..={MAX_CHECKS}")));
                }
                structured::Tests::compile(&self.checks)
                    .map(drop)
                    .map_err(|problem| (field, shortened(&problem)))
            }
            SemanticSimilarity => {
                let field = "verification.similarity";
                let Some(similarity) = &self.similarity else {
                    let problem = "is missing; mode semantic_similarity pins a model with it";
                    return Err((field, problem.into()));
                };
                similarity.check().map_err(|problem| (field, problem))
            }
            _ => Ok(()),
        }
    }

    fn check_numbers(&self) -> Result<(), (&'static str, String)> {
        let Self { mode, runners, threshold, .. } = self;
        let field = "verification.runners";
        if mode.takes_one() && *runners != 1 {
            return Err((field, format!("is {runners}; mode {mode} takes exactly 1")));
        }
        let least = mode.least_runners();
        if !(least..=MAX_COMMITTEE).contains(runners) {
            let problem = format!("is {runners}; mode {mode} takes {least}..={MAX_COMMITTEE}");
            return Err((field, problem));
        }
        let field = "verification.threshold";
        let Some(threshold) = threshold else { return Ok(()) };
        if mode.takes_one() {
            return Err((field, format!("is given; mode {mode} has none")));
        }
        let majority = runners / 2 + 1;
        if !(majority..=*runners).contains(threshold) {
            let problem = format!(
                "is {threshold}; of {runners} runners {majority}..={runners} must agree, or two \
                 different results could both be verified"
            );
            return Err((field, problem));
        }
        Ok(())
    }

    /// The verified result and those that agree with it; `None` if too few agree.
    ///
    /// `results` are in draw order, without those never revealed; results beyond M are ignored. A
    /// verification that [`check`](Self::check) refuses verifies nothing.
    pub fn agree(&self, results: &[&[u8]]) -> Option<Agreement> {
        let most = self.runners.min(MAX_COMMITTEE) as usize;
        let results = &results[..results.len().min(most)];
        match self.mode {
            VerificationMode::None | VerificationMode::EconomicBond => {
                (!results.is_empty()).then(|| Agreement { winner: 0, agreeing: vec![0] })
            }
            VerificationMode::Deterministic => self.largest(members(results, Some), |a, b| a == b),
            VerificationMode::MajorityVote => {
                let pointer = check::pointer(self.vote_field.as_ref()?).ok()?;
                let votes = members(results, |result| vote(&pointer, result).ok());
                self.largest(votes, |a, b| a == b)
            }
            VerificationMode::StructuredMatch => {
                let tests = structured::Tests::compile(&self.checks).ok()?;
                let read = members(results, |result| tests.read(result).ok());
                let majority = tests.majority(read.iter().map(|(_, readings)| readings));
                self.largest(read, |a, b| tests.match_each_other(&majority, a, b))
            }
            VerificationMode::SemanticSimilarity => {
                let similarity = self.similarity.as_ref()?;
                let read = members(results, |result| similarity.read(result).ok());
                self.largest(read, |a, b| similarity.is_close(a, b))
            }
        }
    }

    /// Why a result cannot agree with any other; `None` if it may.
    pub fn why_not(&self, result: &[u8]) -> Option<String> {
        let read = match self.mode {
            VerificationMode::None
            | VerificationMode::EconomicBond
            | VerificationMode::Deterministic => Ok(()),
            VerificationMode::MajorityVote => check::pointer(self.vote_field.as_ref()?)
                .and_then(|pointer| vote(&pointer, result).map(drop)),
            VerificationMode::StructuredMatch => structured::Tests::compile(&self.checks)
                .and_then(|tests| tests.read(result).map(drop)),
            VerificationMode::SemanticSimilarity => {
                self.similarity.as_ref()?.read(result).map(drop)
            }
        };
        read.err().map(|reason| shortened(&reason))
    }

    /// The largest group of results that agree with one member, the first such group on a tie, if
    /// it is large enough. Members agree with themselves; `agree` is called once for each pair of
    /// others.
    fn largest<T>(
        &self,
        members: Vec<(usize, T)>,
        agree: impl Fn(&T, &T) -> bool,
    ) -> Option<Agreement> {
        let mut groups: Vec<Vec<usize>> = members.iter().map(|(index, _)| vec![*index]).collect();
        for (a, (index_a, member_a)) in members.iter().enumerate() {
            for (b, (index_b, member_b)) in members.iter().enumerate().skip(a + 1) {
                if agree(member_a, member_b) {
                    groups[a].push(*index_b);
                    groups[b].push(*index_a);
                }
            }
        }
        // In reverse order `max_by_key` returns the first of the largest groups.
        let best = (0..groups.len()).rev().max_by_key(|&at| groups[at].len())?;
        let mut agreeing = groups.swap_remove(best);
        agreeing.sort_unstable();
        let winner = members[best].0;
        (agreeing.len() >= self.needed() as usize).then_some(Agreement { winner, agreeing })
    }
}

/// The results that can agree with others, with their indices and the parts that `read` extracts.
fn members<'r, T>(results: &[&'r [u8]], read: impl Fn(&'r [u8]) -> Option<T>) -> Vec<(usize, T)> {
    let results = results.iter().enumerate();
    results.filter_map(|(index, &result)| Some((index, read(result)?))).collect()
}

fn vote(pointer: &Pointer, result: &[u8]) -> Result<Hash, String> {
    let json = parse(result)?;
    Ok(digest(&field(&json, pointer)?.to_string()))
}

fn parse(result: &[u8]) -> Result<Json, String> {
    Json::parse(result).map_err(|error| format!("is not JSON: {error}"))
}

fn field<'j>(json: &'j Json, pointer: &Pointer) -> Result<&'j Json, String> {
    json.at(pointer).ok_or_else(|| format!("has nothing at `{pointer}`"))
}

/// The digest of a value's canonical text, in place of the value, which may be of any size.
fn digest(text: &str) -> Hash {
    keccak256(&[text.as_bytes()])
}

/// Truncates a reason for people, because it may quote text from strangers.
fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

/// A record without the fields that are not given; an empty list of checks is left out.
impl Encode for Verification {
    fn encode(&self, w: &mut Writer) {
        struct Given<'a>(&'a Vec<Check>);

        impl Encode for Given<'_> {
            fn encode(&self, w: &mut Writer) {
                self.0.encode(w);
            }

            fn is_absent(&self) -> bool {
                self.0.is_empty()
            }
        }

        w.record(&[
            ("mode", &self.mode),
            ("checks", &Given(&self.checks)),
            ("runners", &self.runners),
            ("threshold", &self.threshold),
            ("similarity", &self.similarity),
            ("vote_field", &self.vote_field),
        ]);
    }
}

impl Decode for Verification {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut mode, mut runners, mut read) = (None, None, Self::none());
        r.record(|key, r| {
            match key {
                "mode" => mode = Some(Decode::decode(r)?),
                "runners" => runners = Some(Decode::decode(r)?),
                "threshold" => read.threshold = Some(Decode::decode(r)?),
                "vote_field" => read.vote_field = Some(Decode::decode(r)?),
                "checks" => read.checks = Decode::decode(r)?,
                "similarity" => read.similarity = Some(Decode::decode(r)?),
                other => return Err(DecodeError::UnknownField(other.to_owned())),
            }
            Ok(())
        })?;
        read.mode = mode.ok_or(DecodeError::MissingField("mode"))?;
        read.runners = runners.ok_or(DecodeError::MissingField("runners"))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
