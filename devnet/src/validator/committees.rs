//! The results that committees have revealed, and requests for the missing ones (spec jobs.md §5).
//!
//! The validators of a runner's subset take turns, because one question or transaction is enough:
//! the nearest asks first and the others a block later, which is soon enough to be paid for a
//! result that only the last of them can get. From the block in which a committee's commitments are
//! complete:
//! * a connected runner that has committed and whose result is missing is asked for it, even when
//!   the job was verified without it;
//! * once all results are here, or from the block on in which enough of them suffice, the
//!   aggregator is asked to sign them if it is connected;
//! * from the block on in which runners' own reveals count, each result that is here but not on the
//!   chain is submitted alone, by each validator a block after the one before it.
//!
//! When a result arrives from a runner or from another validator:
//! * it is kept if the chain would accept it. A result from a runner is passed on to all
//!   validators, and again every [`PASS_AGAIN`] blocks while the chain lacks it, because a
//!   validator that needs it may have started since.
//!
//! When the aggregator's signature arrives:
//! * all results are submitted with it.
//!
//! All of this is forgotten in a restart and requested again with the next block. It is bounded by
//! [`MAX_BYTES`], and each result is from a runner that has committed to it.

use crate::chain::reveals::Revealed;
use cowboy_engine::{
    chain::{
        State,
        transaction::{Reveal, RevealResults},
        transition::{check_reveal, check_reveals},
    },
    job::spec::{Commitment, CommitteeRound, Job, JobStatus},
    primitives::{Address, Hash, Height, PublicKey, Signature},
    wire::{self, Body, Reveals, reveals_digest},
};
use std::{collections::BTreeMap, sync::Arc};

/// The maximum size of all kept results, in bytes: a hundred committees with the longest results.
pub const MAX_BYTES: usize = 64 << 20;
/// The maximum number and size in bytes of results from other validators that are kept until this
/// validator has the block that they follow.
const MAX_EARLY: usize = 4_096;
const MAX_EARLY_BYTES: usize = 16 << 20;
/// Number of blocks after which a result is passed on again.
const PASS_AGAIN: u64 = 4;
/// Number of blocks after which the aggregator is asked again: by then, a transaction that another
/// validator has submitted would be on the chain.
const ASK_AGAIN: u64 = 2;

/// An action for the caller to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitteeAction {
    AskReveal {
        runner: Address,
        job_id: Hash,
    },
    /// Ask the aggregator to sign what [`Committees::reveals`] has.
    AskAggregate {
        aggregator: Address,
        job_id: Hash,
    },
    Pass(Arc<Revealed>),
    Submit(RevealResults),
}

/// The source of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSource {
    Runner,
    Validator,
}

/// A validator's knowledge of committees that reveal.
#[derive(Debug)]
pub struct Committees {
    /// The validator's runner-facing key.
    public: PublicKey,
    jobs: BTreeMap<Hash, Collected>,
    /// Size of all kept results.
    bytes: usize,
    /// Results that arrived before the block that they follow.
    early: Vec<Arc<Revealed>>,
    early_bytes: usize,
}

#[derive(Debug)]
struct Collected {
    /// The block that closed its commitments, which distinguishes a job's attempts.
    closed: Height,
    held: BTreeMap<Address, HeldResult>,
    /// The block in which the first validator could ask the aggregator.
    ready: Option<Height>,
    /// The block in which the aggregator was last asked, and the runners whose results it was asked
    /// to sign.
    asked: Option<(Height, Vec<Address>)>,
    /// Whether a transaction with the aggregator's signature has been submitted.
    signed: bool,
}

#[derive(Debug)]
struct HeldResult {
    revealed: Arc<Revealed>,
    /// The block in which it was last passed on; `None`: other validators pass it on.
    passed: Option<Height>,
    /// Whether it has been submitted alone.
    submitted: bool,
}

impl Committees {
    /// `public` is the validator's runner-facing key.
    pub const fn new(public: PublicKey) -> Self {
        Self { public, jobs: BTreeMap::new(), bytes: 0, early: Vec::new(), early_bytes: 0 }
    }

    pub fn advance(&mut self, state: &State) -> Vec<CommitteeAction> {
        let mut actions = Vec::new();
        self.forget(state);
        self.early_bytes = 0;
        for revealed in std::mem::take(&mut self.early) {
            self.keep(state, revealed, ResultSource::Validator);
        }
        let verified = state.withheld().map(|(job_id, _)| job_id);
        for job_id in state.open_jobs().map(|(job_id, _)| job_id).chain(verified) {
            let Some(job) = state.job(job_id) else { continue };
            let Some((commitments, closed)) = awaited(state, job_id) else { continue };
            let collected = self.jobs.get_mut(job_id);
            for commitment in commitments.iter().filter(|c| c.result.is_none()) {
                let runner = commitment.runner;
                let held = collected.as_ref().is_some_and(|c| c.held.contains_key(&runner));
                if !held && has_turn(state, &runner, &self.public, closed) {
                    actions.push(CommitteeAction::AskReveal { runner, job_id: *job_id });
                }
            }
            if let Some(collected) = collected {
                collected.pass_again(state.height(), &mut actions);
                collected.submit_alone(state, job, &self.public, &mut actions);
                actions.extend(collected.ask_aggregate(state, *job_id, job, &self.public));
            }
        }
        actions
    }

    pub fn revealed(
        &mut self,
        state: &State,
        revealed: Arc<Revealed>,
        source: ResultSource,
    ) -> Vec<CommitteeAction> {
        let job_id = revealed.job_id;
        let Some(job) = state.job(&job_id) else { return Vec::new() };
        if awaited(state, &job_id).is_none() {
            let waits = matches!(job.status, JobStatus::Assigned(_) | JobStatus::Running(_));
            if source == ResultSource::Validator && waits {
                self.keep_early(revealed);
            }
            return Vec::new();
        }
        let mut actions = Vec::new();
        if self.keep(state, revealed.clone(), source) {
            if source == ResultSource::Runner {
                actions.push(CommitteeAction::Pass(revealed));
            }
            let collected = self.jobs.get_mut(&job_id);
            let ask = |c: &mut Collected| c.ask_aggregate(state, job_id, job, &self.public);
            actions.extend(collected.and_then(ask));
        }
        actions
    }

    /// The results that a committee's aggregator was last asked for; `None` if some are missing or
    /// they are too long for a frame, which no job's results are.
    pub fn reveals(&self, job_id: &Hash) -> Option<Reveals> {
        let reveal = |reveal: &Reveal| {
            let Reveal { runner, result, runner_signature } = reveal;
            let result_data = Body::new(result.clone()).ok()?;
            Some(wire::RevealedResult {
                runner: *runner,
                result_data,
                runner_signed: *runner_signature,
            })
        };
        let all = self.asked(job_id)?;
        Reveals::new(all.iter().map(|found| reveal(found)).collect::<Option<_>>()?).ok()
    }

    pub fn aggregated(
        &mut self,
        state: &State,
        job_id: Hash,
        digest: &Hash,
        signature: Signature,
    ) -> Vec<CommitteeAction> {
        let Some(all) = self.asked(&job_id) else { return Vec::new() };
        let results = all.iter().map(|reveal| (reveal.runner, reveal.result.as_slice()));
        if reveals_digest(results) != *digest {
            // Signed for another attempt, or requested before more results came.
            return Vec::new();
        }
        let reveals = all.into_iter().cloned().collect();
        let submit = RevealResults { job_id, reveals, aggregator_signature: Some(signature) };
        if check_reveals(state, state.height().next(), &submit).is_err() {
            return Vec::new();
        }
        let collected = self.jobs.get_mut(&job_id);
        let first = collected.is_some_and(|c| !std::mem::replace(&mut c.signed, true));
        if first { vec![CommitteeAction::Submit(submit)] } else { Vec::new() }
    }

    /// The results that the aggregator was last asked to sign, in the committee's order.
    fn asked(&self, job_id: &Hash) -> Option<Vec<&Reveal>> {
        let Collected { held, asked, .. } = self.jobs.get(job_id)?;
        let (_, runners) = asked.as_ref()?;
        let reveal = |runner| held.get(runner).map(|held| &held.revealed.reveal);
        runners.iter().map(reveal).collect()
    }

    /// Keeps a result that the chain would accept; false when it is known, invalid or exceeds the
    /// limit.
    fn keep(&mut self, state: &State, revealed: Arc<Revealed>, source: ResultSource) -> bool {
        let Revealed { job_id, reveal } = &*revealed;
        let Some((_, closed)) = awaited(state, job_id) else { return false };
        let known = self.jobs.get(job_id);
        if known.is_some_and(|collected| collected.held.contains_key(&reveal.runner)) {
            return false;
        }
        let bytes = reveal.result.len();
        if self.bytes.saturating_add(bytes) > MAX_BYTES {
            tracing::warn!(%job_id, runner = %reveal.runner, "result not kept: no room");
            return false;
        }
        if let Err(error) = check_reveal(state, job_id, reveal) {
            tracing::debug!(%job_id, runner = %reveal.runner, %error, "result not kept");
            return false;
        }
        // The aggregator does not know the keys: it recovers them from the signatures.
        if !is_recoverable(state.chain_id(), job_id, reveal) {
            tracing::debug!(%job_id, runner = %reveal.runner, "its signature has a wrong last byte");
            return false;
        }
        let collected = self.jobs.entry(*job_id).or_insert_with(|| Collected {
            closed,
            held: BTreeMap::new(),
            ready: None,
            asked: None,
            signed: false,
        });
        let passed = (source == ResultSource::Runner).then(|| state.height());
        let runner = reveal.runner;
        collected.held.insert(runner, HeldResult { revealed, passed, submitted: false });
        self.bytes += bytes;
        true
    }

    /// Keeps a result until the next block. A result that finds no room is sent again.
    fn keep_early(&mut self, revealed: Arc<Revealed>) {
        let bytes = self.early_bytes + revealed.reveal.result.len();
        if self.early.len() < MAX_EARLY && bytes <= MAX_EARLY_BYTES {
            self.early_bytes = bytes;
            self.early.push(revealed);
        }
    }

    fn forget(&mut self, state: &State) {
        self.jobs.retain(|job_id, collected| {
            awaited(state, job_id).is_some_and(|(_, closed)| closed == collected.closed)
        });
        let held = self.jobs.values().flat_map(|collected| collected.held.values());
        self.bytes = held.map(|held| held.revealed.reveal.result.len()).sum();
    }
}

impl Collected {
    fn ask_aggregate(
        &mut self,
        state: &State,
        job_id: Hash,
        job: &Job,
        validator: &PublicKey,
    ) -> Option<CommitteeAction> {
        let head = state.height();
        let JobStatus::Committed(CommitteeRound { commitments, closing: Some(closing), .. }) =
            &job.status
        else {
            return None;
        };
        let missing = commitments.iter().filter(|commitment| commitment.result.is_none());
        let here: Vec<Address> = missing
            .map(|commitment| commitment.runner)
            .filter(|runner| self.held.contains_key(runner))
            .collect();
        let shown = commitments.iter().filter(|commitment| commitment.result.is_some()).count();
        let all = here.len() == commitments.len();
        let enough = here.len() + shown >= job.spec.verification.needed() as usize
            && job.partial_reveals_from().is_some_and(|from| head.next() >= from);
        let lately = self.asked.as_ref().is_some_and(|(asked, runners)| {
            head.since(*asked) < ASK_AGAIN && (!all || *runners == here)
        });
        if !(all || enough) || here.is_empty() || self.signed || lately {
            return None;
        }
        let ready = *self.ready.get_or_insert(head);
        if !has_turn(state, &closing.aggregator, validator, ready) {
            return None;
        }
        self.asked = Some((head, here));
        Some(CommitteeAction::AskAggregate { aggregator: closing.aggregator, job_id })
    }

    fn pass_again(&mut self, head: Height, actions: &mut Vec<CommitteeAction>) {
        for held in self.held.values_mut() {
            if let Some(passed) = &mut held.passed
                && head.since(*passed) >= PASS_AGAIN
            {
                *passed = head;
                actions.push(CommitteeAction::Pass(held.revealed.clone()));
            }
        }
    }

    /// Submits the results that runners may reveal on their own by now.
    fn submit_alone(
        &mut self,
        state: &State,
        job: &Job,
        validator: &PublicKey,
        actions: &mut Vec<CommitteeAction>,
    ) {
        // A result that a verified job lacks is submitted at once.
        let from = job.own_reveals_from().unwrap_or(self.closed);
        let next = state.height().next();
        for held in self.held.values_mut().filter(|held| !held.submitted) {
            let Revealed { job_id, reveal } = &*held.revealed;
            let turn = turn(state, &reveal.runner, validator);
            // However short the time is, every validator gets its turn.
            let last = Height::new(job.deadline().get().saturating_sub(1)).max(from);
            if turn.is_none_or(|turn| next < from.after(turn).min(last)) {
                continue;
            }
            let reveals = vec![reveal.clone()];
            let alone = RevealResults { job_id: *job_id, reveals, aggregator_signature: None };
            if check_reveals(state, next, &alone).is_ok() {
                held.submitted = true;
                actions.push(CommitteeAction::Submit(alone));
            }
        }
    }
}

/// A committee's commitments whose results still count, and the block that closed them.
fn awaited<'a>(state: &'a State, job_id: &Hash) -> Option<(&'a [Commitment], Height)> {
    let closed = match &state.job(job_id)?.status {
        JobStatus::Committed(round) => round.closing?.height,
        _ => state.withheld_of(job_id)?.closed,
    };
    Some((state.commitments(job_id)?, closed))
}

/// The validator's position in the runner's subset; `None` if it is not in it.
fn turn(state: &State, runner: &Address, validator: &PublicKey) -> Option<u64> {
    let record = state.registry().get(runner)?;
    let subset = state.subsets_of(&record.pubkey);
    let place = subset.iter().position(|member| member.pubkey == *validator)?;
    u64::try_from(place).ok()
}

/// Whether the validator may ask the runner by now, if the nearest validator may since `from`.
fn has_turn(state: &State, runner: &Address, validator: &PublicKey, from: Height) -> bool {
    turn(state, runner, validator).is_some_and(|turn| state.height() >= from.after(turn.min(1)))
}

fn is_recoverable(chain_id: u64, job_id: &Hash, reveal: &Reveal) -> bool {
    let digest = wire::JobResult::digest(chain_id, job_id, &reveal.result);
    let signer = reveal.runner_signature.signer(&digest);
    signer.is_some_and(|key| key.address() == reveal.runner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample,
        storage::{ValidatorStore, tests},
    };

    #[test]
    fn the_nearest_validator_asks_a_block_before_the_others() {
        let mut genesis = tests::genesis();
        genesis.validators = (0..4).map(|index| sample::validator_keys(index).public()).collect();
        let mut state = genesis.state().unwrap();
        let (runner, record) = state.registry().iter().next().unwrap();
        let (runner, nearest_first) = (*runner, state.subsets_of(&record.pubkey));
        let subset: Vec<PublicKey> =
            nearest_first.iter().map(|member| member.pubkey.clone()).collect();
        assert!(subset.len() > 2);
        let asking = |state: &State, from: Height| {
            let may = |key: &&PublicKey| has_turn(state, &runner, key, from);
            subset.iter().filter(may).cloned().collect::<Vec<_>>()
        };
        assert_eq!(asking(&state, Height::GENESIS), subset[..1]);
        tests::extend(&ValidatorStore::in_memory(state.chain_id()).unwrap(), &mut state, 1);
        assert_eq!(asking(&state, Height::GENESIS), subset);
        assert_eq!(asking(&state, Height::new(1)), subset[..1]);
        assert!(asking(&state, Height::new(2)).is_empty());
    }
}
