//! The journal of a validator's gateway: its dispatches, the beginnings and ends of runners'
//! connections, and the draws it saw. It is for operators; no decision of the validator depends on
//! it.

use cowboy_engine::{
    chain::DrawRecord,
    primitives::{Address, Hash, Height},
    session::{DispatchOutcome, End},
    wire::{GoodbyeReason, RejectReason},
};
use prometheus_client::metrics::histogram::Histogram;
use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

/// The maximum number of dispatches in the journal.
pub const MAX_DISPATCHES: usize = 4_096;
const MAX_RUNNERS: usize = 4_096;

/// Upper bounds of the buckets of [`Journal::answers`], in milliseconds.
const BUCKETS: [f64; 12] =
    [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 10_000.0];

/// A dispatch of a job by one validator to one runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDispatch {
    pub job_id: Hash,
    pub runner: Address,
    pub assigned_at: Height,
    /// The outcome; `None` while the runner has not answered.
    pub outcome: Option<DispatchAnswer>,
    pub answered_after: Option<Duration>,
    /// Time from the dispatch to the runner's first progress report.
    pub started_after: Option<Duration>,
    /// Time from the dispatch to the result, a commitment or a failure report.
    pub done_after: Option<Duration>,
    sent: Instant,
}

/// A runner's answer to a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DispatchAnswer {
    Accepted,
    Done,
    /// It already has the job from another validator.
    Duplicate,
    Rejected(RejectReason),
    /// It sent a frame that is not an answer.
    NoAck,
    /// It sent no frame in time.
    Silent,
}

impl DispatchAnswer {
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Done => "done",
            Self::Duplicate => "duplicate",
            Self::Rejected(reason) => reason.as_str(),
            Self::NoAck => "no_ack",
            Self::Silent => "silent",
        }
    }
}

impl From<DispatchOutcome> for DispatchAnswer {
    fn from(outcome: DispatchOutcome) -> Self {
        match outcome {
            DispatchOutcome::Success => Self::Done,
            DispatchOutcome::Duplicate => Self::Duplicate,
            DispatchOutcome::SoftFailure(Some(reason)) => Self::Rejected(reason),
            DispatchOutcome::SoftFailure(None) => Self::NoAck,
            DispatchOutcome::HardFailure => Self::Silent,
        }
    }
}

/// The effect of the MRU record of (submitter, kind) on a draw that found a committee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mru {
    /// Its runner was favoured and drawn first.
    Hit,
    /// Its runner was favoured, but another was drawn first.
    Miss,
    NotCandidate,
    Expired,
    None,
}

impl Mru {
    /// All effects of an MRU record.
    pub const ALL: [Self; 5] =
        [Self::Hit, Self::Miss, Self::NotCandidate, Self::Expired, Self::None];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::NotCandidate => "not_candidate",
            Self::Expired => "expired",
            Self::None => "none",
        }
    }

    /// The effect on a draw in the block at `height`; `None` if the draw found no committee.
    fn of(height: Height, draw: &DrawRecord) -> Option<Self> {
        let first = draw.selection.committee.first()?;
        if draw.mru.is_none() {
            return Some(Self::None);
        }
        let Some(favoured) = draw.favoured(height) else { return Some(Self::Expired) };
        if favoured.runner == *first {
            return Some(Self::Hit);
        }
        let mut verdicts = draw.verdicts.iter();
        let verdict = verdicts.find(|verdict| verdict.runner == favoured.runner);
        let candidate = verdict.is_some_and(|verdict| verdict.dropped_by.is_none());
        Some(if candidate { Self::Miss } else { Self::NotCandidate })
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parting {
    Sent(&'static str),
    Received(&'static str),
    /// The connection broke without a goodbye.
    Broken,
    HandshakeTimeout,
}

impl Parting {
    /// The side that ended it, and the reason of the goodbye, as metrics name them.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Sent(reason) => ("validator", reason),
            Self::Received(reason) => ("runner", reason),
            Self::Broken => ("none", "lost"),
            Self::HandshakeTimeout => ("none", "handshake_timeout"),
        }
    }
}

impl From<End> for Parting {
    fn from(end: End) -> Self {
        match end {
            End::Local(reason) => Self::Sent(GoodbyeReason::as_str(reason)),
            End::Peer(reason) => Self::Received(GoodbyeReason::as_str(reason)),
            End::HandshakeTimeout => Self::HandshakeTimeout,
            End::Lost => Self::Broken,
        }
    }
}

/// The end of a runner's last connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parted {
    pub how: Parting,
    /// The validator's head at that time.
    pub at: Height,
}

/// The events since the validator started.
#[derive(Debug, Clone)]
pub struct Journal {
    dispatches: VecDeque<JobDispatch>,
    pub outcomes: BTreeMap<DispatchAnswer, u64>,
    /// Number of ended connections by kind of end, including those without a complete handshake.
    pub ends: BTreeMap<Parting, u64>,
    /// Number of draws that found a committee, by effect of the MRU record.
    pub draws: BTreeMap<Mru, u64>,
    pub connected: u64,
    /// Number of completed handshakes of runners that had been connected before.
    pub reconnected: u64,
    /// Time that runners took to answer dispatches, in milliseconds. Clones share it.
    pub answers: Histogram,
    /// Time from dispatches to the start of work, in milliseconds. Clones share it.
    pub starts: Histogram,
    /// `None` while the runner's first connection has not ended.
    runners: BTreeMap<Address, Option<Parted>>,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            dispatches: VecDeque::new(),
            outcomes: BTreeMap::new(),
            ends: BTreeMap::new(),
            draws: BTreeMap::new(),
            connected: 0,
            reconnected: 0,
            answers: Histogram::new(BUCKETS),
            starts: Histogram::new(BUCKETS),
            runners: BTreeMap::new(),
        }
    }
}

impl Journal {
    pub fn dispatched(&mut self, job_id: Hash, runner: Address, assigned_at: Height) {
        if self.dispatches.len() >= MAX_DISPATCHES {
            self.dispatches.pop_front();
        }
        self.dispatches.push_back(JobDispatch {
            job_id,
            runner,
            assigned_at,
            outcome: None,
            answered_after: None,
            started_after: None,
            done_after: None,
            sent: Instant::now(),
        });
    }

    fn newest(&mut self, job_id: &Hash, runner: &Address) -> Option<&mut JobDispatch> {
        let of = |one: &&mut JobDispatch| one.job_id == *job_id && one.runner == *runner;
        self.dispatches.iter_mut().rev().find(of)
    }

    pub fn progressed(&mut self, job_id: &Hash, runner: &Address) {
        let Some(dispatch) = self.newest(job_id, runner) else { return };
        if dispatch.started_after.is_none() {
            let after = dispatch.sent.elapsed();
            dispatch.started_after = Some(after);
            self.starts.observe(after.as_secs_f64() * 1_000.0);
        }
    }

    /// Records a runner's answer, or that it missed the deadline.
    pub fn answered(&mut self, job_id: &Hash, runner: &Address, answer: DispatchAnswer) {
        let Some(dispatch) = self.newest(job_id, runner) else { return };
        let after = dispatch.sent.elapsed();
        dispatch.outcome = Some(answer);
        if answer == DispatchAnswer::Done {
            dispatch.done_after = Some(after);
        }
        if dispatch.answered_after.is_none() && answer != DispatchAnswer::Silent {
            dispatch.answered_after = Some(after);
            self.answers.observe(after.as_secs_f64() * 1_000.0);
        }
        if answer != DispatchAnswer::Accepted {
            *self.outcomes.entry(answer).or_default() += 1;
        }
    }

    pub fn drew(&mut self, height: Height, draw: &DrawRecord) {
        if let Some(mru) = Mru::of(height, draw) {
            *self.draws.entry(mru).or_default() += 1;
        }
    }

    pub fn connected(&mut self, runner: Address) {
        self.connected += 1;
        if self.runners.contains_key(&runner) {
            self.reconnected += 1;
        } else {
            while self.runners.len() >= MAX_RUNNERS {
                self.runners.pop_first();
            }
            self.runners.insert(runner, None);
        }
    }

    /// Records the end of a connection, with or without a complete handshake.
    pub fn parted(&mut self, runner: &Address, how: Parting, at: Height) {
        *self.ends.entry(how).or_default() += 1;
        if let Some(last) = self.runners.get_mut(runner) {
            *last = Some(Parted { how, at });
        }
    }

    /// The dispatches of a job, oldest first.
    pub fn dispatches_of(&self, job_id: &Hash) -> Vec<JobDispatch> {
        self.dispatches.iter().filter(|one| one.job_id == *job_id).cloned().collect()
    }

    pub fn last_of(&self, runner: &Address) -> Option<Parted> {
        *self.runners.get(runner)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{
        job::{
            MruRead, Selection,
            filter::{Filter, Verdict},
        },
        presence::Phase,
        primitives::Wei,
    };

    const ONE: Address = Address([1; 20]);
    const TWO: Address = Address([2; 20]);

    fn job(i: u32) -> Hash {
        cowboy_engine::primitives::keccak256(&[&i.to_be_bytes()])
    }

    #[test]
    fn a_dispatch_has_its_answer_and_its_end() {
        let mut journal = Journal::default();
        let at = Height::new(7);
        for runner in [ONE, TWO] {
            journal.dispatched(job(0), runner, at);
        }
        journal.answered(&job(0), &ONE, DispatchAnswer::Accepted);
        journal.answered(&job(0), &TWO, DispatchAnswer::Silent);
        journal.answered(&job(1), &ONE, DispatchAnswer::Duplicate);
        let [one, two] = journal.dispatches_of(&job(0)).try_into().unwrap();
        assert_eq!(
            (one.outcome, two.outcome),
            (Some(DispatchAnswer::Accepted), Some(DispatchAnswer::Silent))
        );
        assert!(one.answered_after.is_some() && two.answered_after.is_none());
        assert_eq!(journal.outcomes, [(DispatchAnswer::Silent, 1)].into());
        journal.progressed(&job(0), &ONE);
        let started = journal.dispatches_of(&job(0)).remove(0).started_after;
        journal.progressed(&job(0), &ONE);
        journal.progressed(&job(1), &ONE);
        assert!(started >= one.answered_after && two.started_after.is_none());
        assert_eq!(journal.dispatches_of(&job(0)).remove(0).started_after, started, "the first");
        journal.answered(&job(0), &ONE, DispatchAnswer::Done);
        let one = journal.dispatches_of(&job(0)).remove(0);
        assert!(one.done_after >= one.answered_after, "{one:?}");
        assert_eq!(
            journal.outcomes,
            [(DispatchAnswer::Done, 1), (DispatchAnswer::Silent, 1)].into()
        );
    }

    #[test]
    fn draws_are_counted_by_what_the_mru_record_did() {
        let verdict = |runner, dropped_by| Verdict {
            runner,
            stake: Wei::ZERO,
            weight: 1,
            present: true,
            dropped_by,
            else_by: dropped_by,
            reason: String::new(),
        };
        let read = |set_at| {
            let (runner, set_at) = (ONE, Height::new(set_at));
            Some(MruRead { runner, set_at, ttl_blocks: 10, multiplier: 4 })
        };
        let draw = |mru, dropped_by, committee: &[Address]| DrawRecord {
            job_id: job(0),
            parent: Hash::ZERO,
            certificate: None,
            seed: Hash::ZERO,
            mru,
            phase: Phase::HotPath,
            presence: None,
            verdicts: vec![verdict(ONE, dropped_by), verdict(TWO, None)],
            selection: Selection { committee: committee.to_vec(), draws: Vec::new() },
        };
        let mut journal = Journal::default();
        for one in [
            draw(read(99), None, &[ONE]),
            draw(read(99), None, &[TWO, ONE]),
            draw(read(99), Some(Filter::Price), &[TWO]),
            draw(read(1), None, &[ONE]),
            draw(None, None, &[ONE]),
            draw(None, None, &[]),
        ] {
            journal.drew(Height::new(100), &one);
        }
        assert_eq!(journal.draws, Mru::ALL.map(|mru| (mru, 1)).into());
    }

    #[test]
    fn it_is_bounded_and_the_oldest_goes_first() {
        let mut journal = Journal::default();
        let many = MAX_DISPATCHES as u32 + 1;
        for i in 0..many {
            journal.dispatched(job(i), ONE, Height::new(1));
            journal.connected(Address(std::array::from_fn(|at| (i >> (8 * (at % 4))) as u8)));
        }
        assert_eq!(journal.dispatches.len(), MAX_DISPATCHES);
        assert_eq!(journal.dispatches_of(&job(0)), []);
        assert_eq!(journal.dispatches_of(&job(many - 1)).len(), 1);
        assert_eq!(journal.runners.len(), MAX_RUNNERS);
    }

    #[test]
    fn connections_are_counted_by_how_they_end() {
        let mut journal = Journal::default();
        journal.connected(ONE);
        assert_eq!(journal.last_of(&ONE), None);
        let how = Parting::from(End::Peer(GoodbyeReason::ShuttingDown));
        journal.parted(&ONE, how, Height::new(3));
        journal.parted(&TWO, Parting::HandshakeTimeout, Height::new(4));
        journal.connected(ONE);
        assert_eq!(journal.last_of(&ONE), Some(Parted { how, at: Height::new(3) }));
        assert_eq!((journal.connected, journal.reconnected), (2, 1));
        assert_eq!(journal.ends, [(how, 1), (Parting::HandshakeTimeout, 1)].into());
        assert_eq!(how.names(), ("runner", "shutting_down"));
    }
}
