//! Signed commitments that a validator has seen, to prove that a runner signed two different ones
//! in one attempt at a job (spec jobs.md §5).
//!
//! Commitments come from connected runners and from the transactions of blocks, including failed
//! ones. Whatever a runner tells different validators is therefore on the chain, or both here and
//! on the chain. A commitment is kept until its attempt's deadline, up to [`MAX_SEEN`] of them, and
//! forgotten in a restart.

use cowboy_engine::{
    chain::{
        Payload, State,
        block::Block,
        transaction::{CommitResult, ReportEquivocation, SignedCommitment},
    },
    job::spec::{Job, JobStatus},
    primitives::{Address, Hash, Height},
    wire::JobCommit,
};
use std::collections::BTreeMap;

/// The maximum number of kept commitments: those of 64 of the largest committees.
const MAX_SEEN: usize = 4_096;

/// The commitments seen, one per attempt of a runner at a job.
#[derive(Debug, Default)]
pub struct Evidence {
    seen: BTreeMap<(Hash, Address), (Height, SignedCommitment)>,
}

impl Evidence {
    /// Takes the state after `block`: records the block's commitments, and forgets those that are
    /// over.
    pub fn advance(&mut self, state: &State, block: &Block) -> Vec<ReportEquivocation> {
        let height = state.height();
        self.seen.retain(|_, (deadline, _)| *deadline >= height);
        let commits = block.transactions.iter().filter_map(|signed| {
            let Payload::CommitResult(commit) = &signed.transaction.payload else { return None };
            let job = state.job(&commit.job_id)?;
            is_signed(state, job, commit).then(|| (commit.clone(), job.deadline()))
        });
        commits.filter_map(|(commit, deadline)| self.see(&commit, deadline)).collect()
    }

    /// Records a commitment that a runner signed in the attempt that ends with `deadline`. Returns
    /// the evidence if the runner signed a different one before.
    pub fn see(&mut self, commit: &CommitResult, deadline: Height) -> Option<ReportEquivocation> {
        let CommitResult { job_id, runner, commitment, runner_signature } = *commit;
        let signed = SignedCommitment { commitment, runner_signature };
        match self.seen.get(&(job_id, runner)) {
            Some((known, other)) if *known == deadline && other.commitment != commitment => {
                let (first, second) = match other.commitment < commitment {
                    true => (other.clone(), signed),
                    false => (signed, other.clone()),
                };
                let deadline_block = deadline;
                Some(ReportEquivocation { job_id, runner, deadline_block, first, second })
            }
            Some((known, _)) if *known >= deadline => None,
            known => {
                if known.is_some() || self.seen.len() < MAX_SEEN {
                    self.seen.insert((job_id, runner), (deadline, signed));
                }
                None
            }
        }
    }
}

/// Whether the runner has signed a block's commitment for the job's current attempt. The chain has
/// checked the commitments that it accepted.
fn is_signed(state: &State, job: &Job, commit: &CommitResult) -> bool {
    let CommitResult { job_id, runner, commitment, runner_signature } = commit;
    let taken = match &job.status {
        JobStatus::Running(round) | JobStatus::Committed(round) => round.commitment(runner),
        _ => None,
    };
    let digest = || JobCommit::digest(state.chain_id(), job_id, job.deadline(), commitment);
    let signed = || {
        let record = state.registry().get(runner);
        record.is_some_and(|record| record.pubkey.verify(&digest(), runner_signature))
    };
    taken.is_some_and(|taken| taken.hash == *commitment) || signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::primitives::{SecretKey, Signature};

    fn commit(runner: &str, what: u8) -> CommitResult {
        let runner = SecretKey::derive(b"evidence", runner).address();
        let [job_id, commitment] = [Hash([1; 32]), Hash([what; 32])];
        CommitResult { job_id, runner, commitment, runner_signature: Signature([what; 65]) }
    }

    #[test]
    fn two_commitments_of_one_attempt_are_evidence() {
        let mut evidence = Evidence::default();
        let [first, second] = [Height::new(20), Height::new(40)];
        assert_eq!(evidence.see(&commit("a", 5), first), None);
        assert_eq!(evidence.see(&commit("a", 5), first), None, "said again");
        assert_eq!(evidence.see(&commit("b", 6), first), None, "another validator's");
        for other in [3, 9] {
            let proof = evidence.see(&commit("a", other), first).expect("it is another one");
            assert_eq!(proof.deadline_block, first);
            let mut signed = [5, other];
            signed.sort_unstable();
            let found = [proof.first, proof.second].map(|signed| signed.commitment.0[0]);
            assert_eq!(found, signed);
        }
        assert_eq!(evidence.see(&commit("a", 7), second), None, "of another attempt");
        assert_eq!(evidence.see(&commit("a", 5), first), None, "of an attempt that is over");
        assert!(evidence.see(&commit("a", 8), second).is_some());
    }
}
