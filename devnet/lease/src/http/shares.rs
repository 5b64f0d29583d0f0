//! A limit on what each runner does at the same time, so that one runner cannot use up the others'
//! share.

use crate::machine::RunnerId;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The places that each runner holds, and the maximum per runner. Clones share them.
#[derive(Debug, Clone)]
pub struct Shares {
    most: usize,
    taken: Arc<Mutex<BTreeMap<RunnerId, usize>>>,
}

/// A place that a runner holds until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    all: Shares,
    runner: RunnerId,
}

impl Shares {
    pub fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Takes a place; `None` if the runner already holds the maximum.
    pub(super) fn take(&self, runner: &RunnerId) -> Option<Share> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(runner.clone()).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share { all: self.clone(), runner: runner.clone() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.all.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.runner) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.runner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_has_so_many_at_a_time() {
        let (all, runner) = (Shares::new(8), RunnerId::from("r"));
        let mut taken: Vec<_> = (0..8).filter_map(|_| all.take(&runner)).collect();
        assert_eq!(taken.len(), 8);
        assert!(all.take(&runner).is_none());
        assert!(all.take(&RunnerId::from("other")).is_some());
        taken.pop();
        taken.extend(all.take(&runner));
        assert_eq!(taken.len(), 8);
        drop(taken);
        assert!(all.taken.lock().unwrap().is_empty());
    }
}
