//! The jobs that can be granted, by requirements.
//!
//! A request for work looks at each set of requirements once, however many jobs wait: the jobs of
//! one set are in order of their positions, and a runner can run all of them or none. The number of
//! sets that open jobs may have is limited when jobs are submitted ([`MAX_SETS`]).

use super::{JobId, NewJob};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of sets of requirements among open jobs. A request for work looks at each of
/// them: at this limit it takes a fraction of a millisecond.
pub const MAX_SETS: usize = 1_000;

/// A queue for each set of requirements that open jobs have.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    sets: BTreeMap<Vec<String>, Alike>,
    back: u64,
}

#[derive(Clone, Debug, Default)]
struct Alike {
    open: usize,
    queued: BTreeMap<u64, JobId>,
}

impl Queue {
    /// The first of these jobs whose requirements would exceed [`MAX_SETS`].
    pub fn excess<'a>(&self, jobs: &'a [NewJob]) -> Option<&'a JobId> {
        let mut new = BTreeSet::new();
        let mut other = jobs.iter().filter(|job| !self.sets.contains_key(&job.rules.requires));
        let excess = other
            .find(|job| new.insert(&job.rules.requires) && self.sets.len() + new.len() > MAX_SETS);
        excess.map(|job| &job.id)
    }

    /// Counts one more open job with these requirements.
    pub fn open(&mut self, requires: &[String]) {
        self.sets.entry(requires.to_vec()).or_default().open += 1;
    }

    /// Counts one fewer open job with these requirements.
    pub fn close(&mut self, requires: &[String]) {
        if let Some(alike) = self.sets.get_mut(requires) {
            alike.open -= 1;
            if alike.open == 0 {
                self.sets.remove(requires);
            }
        }
    }

    pub fn push(&mut self, requires: &[String], job: JobId) -> u64 {
        let position = self.back;
        self.put(requires, position, job);
        position
    }

    pub fn put(&mut self, requires: &[String], position: u64, job: JobId) {
        self.back = self.back.max(position.saturating_add(1));
        if let Some(alike) = self.sets.get_mut(requires) {
            alike.queued.insert(position, job);
        }
    }

    pub fn remove(&mut self, requires: &[String], position: u64) {
        if let Some(alike) = self.sets.get_mut(requires) {
            alike.queued.remove(&position);
        }
    }

    pub fn heads(&self) -> impl Iterator<Item = (&[String], u64, &JobId)> {
        self.sets.iter().filter_map(|(requires, alike)| {
            let (position, job) = alike.queued.first_key_value()?;
            Some((&**requires, *position, job))
        })
    }

    pub fn head(&self, requires: &[String]) -> Option<u64> {
        let (position, _) = self.sets.get(requires)?.queued.first_key_value()?;
        Some(*position)
    }

    pub fn first(&self, capabilities: &BTreeSet<String>) -> Option<&JobId> {
        let able = self.heads().filter(|(requires, ..)| {
            requires.iter().all(|required| capabilities.contains(required))
        });
        able.min_by_key(|(_, position, _)| *position).map(|(.., job)| job)
    }

    pub fn count(&self) -> usize {
        self.sets.values().map(|alike| alike.queued.len()).sum()
    }

    /// All jobs with their positions, set by set.
    pub fn all(&self) -> impl Iterator<Item = (u64, &JobId)> {
        let queued = self.sets.values().flat_map(|alike| &alike.queued);
        queued.map(|(position, job)| (*position, job))
    }
}
