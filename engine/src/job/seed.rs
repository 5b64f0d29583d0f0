//! The seeds of draws (spec jobs.md §4): the parameter `selection.seed`.
//!
//! A draw in block H is seeded by
//! * `parent`: the hash of block H − 1, whose proposer can try as many hashes as it likes;
//! * `certificate`: the newest certificate on the chain as of H − 1. The proposer that embeds it
//!   can choose among sets of votes, but nothing else.
//!
//! `certificate` leaves out the vote of the proposer that embeds the certificate: an Ed25519 key
//! can make many valid signatures of one message, so a proposer could otherwise try its own
//! signatures as it can try hashes.

use crate::{
    primitives::{Hash, Height, codec::words},
    record,
};

/// The source of a chain's draw seeds; fixed at genesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedRule {
    /// The parent block's hash, as in the source.
    #[default]
    Parent,
    /// The votes' signatures in the newest certificate that the parent or an earlier block embeds.
    /// Until the first certificate, the parent's hash.
    Certificate,
}

words!(SeedRule, SeedRuleError, "a seed rule", "parent or certificate":
    Parent = "parent", Certificate = "certificate");

impl SeedRule {
    /// The parameter's key.
    pub const KEY: &'static str = "selection.seed";
}

/// The certificate that seeds the draws of the next blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedCertificate {
    pub height: Height,
    /// Its contribution to seeds (`Certificate::seed_digest`).
    pub digest: Hash,
}
record!(SeedCertificate { height, digest });

/// Number of certificates among which a proposer that has all `n` votes can choose, plus 1 for
/// embedding none: n over `quorum`, plus 1. `None` on overflow of a u128.
pub fn choices(n: u32, quorum: u32) -> Option<u128> {
    let few = quorum.min(n.checked_sub(quorum)?);
    // After step i the value is n over i + 1: each division is exact.
    let sets = (0..few).try_fold(1u128, |value, i| {
        value.checked_mul(u128::from(n - i)).map(|product| product / u128::from(i + 1))
    });
    sets?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::codec::{from_slice, to_vec};

    #[test]
    fn rules_have_names() {
        for rule in SeedRule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(rule));
            assert_eq!(from_slice(&to_vec(&rule)), Ok(rule));
        }
        let error = "beacon".parse::<SeedRule>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`beacon` is not a seed rule: expected parent or certificate"
        );
    }

    #[test]
    fn certificates_to_choose_among_are_sets_of_votes_and_none() {
        let rows = [(1, 1), (3, 3), (4, 3), (7, 5), (10, 7), (16, 11)];
        assert_eq!(rows.map(|(n, quorum)| choices(n, quorum).unwrap()), [2, 2, 5, 22, 121, 4_369]);
        assert_eq!(choices(3, 4), None);
        assert_eq!(choices(u32::MAX, 2_863_311_531), None);
    }
}
