//! The votes of a certificate, and the share of them that reports a runner.

use cowboy_devnet::types::{Vote, Votes};

/// A bit of a bitmap; the least significant bit of each byte comes first.
pub fn bit(bytes: &[u8], index: usize) -> bool {
    bytes.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// The votes of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenVotes {
    pub quorum: u32,
    pub validators: u32,
    pub votes: Vec<SeenVote>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenVote {
    pub validator: String,
    bits: Vec<u8>,
    /// Number of runners that the voter knew.
    pub known: u32,
    /// Number of runners whose bit is set.
    pub present: usize,
}

impl SeenVote {
    /// Whether it reports a runner as present; `None` if the voter did not know the runner.
    pub fn reports(&self, runner: usize) -> Option<bool> {
        (runner < self.known as usize).then(|| bit(&self.bits, runner))
    }
}

impl SeenVotes {
    pub fn of(votes: &Votes) -> Self {
        let vote = |vote: &Vote| SeenVote {
            validator: vote.validator.clone(),
            bits: vote.bytes.0.0.clone(),
            known: vote.bit_length,
            present: vote.present.len(),
        };
        Self {
            quorum: votes.quorum,
            validators: votes.validators,
            votes: votes.votes.iter().map(vote).collect(),
        }
    }

    /// Number of votes that report a runner as present, and number of those that could: the voters
    /// that the runner connects to, or all of them if its subset is not known.
    pub fn reported(&self, runner: usize, subset: Option<&[String]>) -> (usize, usize) {
        let could = self
            .votes
            .iter()
            .filter(|vote| subset.is_none_or(|subset| subset.contains(&vote.validator)));
        let set = could.clone().filter(|vote| vote.reports(runner) == Some(true)).count();
        (set, could.count())
    }
}

/// The share of the votes that report a runner, of those that could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VoteShade {
    None,
    Some,
    /// At least two thirds.
    Most,
    /// At least nine tenths.
    Nearly,
    All,
}

impl VoteShade {
    pub const fn of(set: usize, could: usize) -> Self {
        match (set, could) {
            (0, _) => Self::None,
            (set, could) if set >= could => Self::All,
            (set, could) if set * 10 >= could * 9 => Self::Nearly,
            (set, could) if set * 3 >= could * 2 => Self::Most,
            _ => Self::Some,
        }
    }

    pub const fn sign(self) -> &'static str {
        match self {
            Self::None => "·",
            Self::Some => "░",
            Self::Most => "▒",
            Self::Nearly => "▓",
            Self::All => "█",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_shares_of_the_votes_that_could() {
        let check = |set, could, expected: &str| {
            assert_eq!(VoteShade::of(set, could).sign(), expected, "{set} of {could}");
        };
        check(0, 0, "·");
        check(0, 3, "·");
        check(1, 3, "░");
        check(2, 3, "▒");
        check(3, 3, "█");
        check(8, 10, "▒");
        check(9, 10, "▓");
        check(99, 100, "▓");
        check(66, 100, "░");
    }
}
