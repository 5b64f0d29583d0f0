//! What a state knows about tasks.

use super::State;
use crate::{
    chain::tasks::{MAX_DEPTH_LOOKUPS, Task, TaskStatus},
    primitives::{Hash, Wei},
    speculation::Bonds,
};
use std::collections::BTreeSet;

impl State {
    pub fn task(&self, id: &Hash) -> Option<&Task> {
        self.tasks.by_id.get(id)
    }

    pub fn tasks(&self) -> impl Iterator<Item = (&Hash, &Task)> {
        self.tasks.by_id.iter()
    }

    /// Tasks that have not ended, by deadline, then id.
    pub fn open_tasks(&self) -> impl Iterator<Item = (&Hash, &Task)> {
        self.tasks.open.iter().filter_map(|((_, id), _)| Some((id, self.task(id)?)))
    }

    /// Number of uncompleted tasks on the longest path above a task that depends on `parents`: see
    /// [`Task::speculation_depth`].
    pub(in crate::chain) fn task_depth(&self, parents: &[Hash]) -> u32 {
        let parents = parents.iter().filter_map(|parent| self.task(parent));
        let waiting = parents.filter(|parent| parent.status != TaskStatus::Completed);
        waiting.map(|parent| parent.speculation_depth.saturating_add(1)).max().unwrap_or(0)
    }

    /// Number of tasks on the longest path above a task that are uncompleted now. Searches level by
    /// level and visits at most [`MAX_DEPTH_LOOKUPS`] tasks; the result is never too high.
    pub(in crate::chain) fn depth_now(&self, task: &Task) -> u32 {
        let (mut depth, mut looked_at) = (0, 0);
        let mut level: BTreeSet<Hash> = task.depends_on.iter().copied().collect();
        loop {
            let mut above = BTreeSet::new();
            let mut waits = false;
            for parent in level {
                if looked_at == MAX_DEPTH_LOOKUPS {
                    return if waits { depth + 1 } else { depth };
                }
                looked_at += 1;
                let parent = self.task(&parent).filter(|task| !task.has_ended());
                if let Some(parent) = parent {
                    waits = true;
                    // At most as many as can still be visited.
                    if looked_at + above.len() < MAX_DEPTH_LOOKUPS {
                        above.extend(&parent.depends_on);
                    }
                }
            }
            if !waits {
                return depth;
            }
            depth += 1;
            level = above;
        }
    }

    /// The governed bond parameters of the next block.
    pub const fn bonds(&self) -> &Bonds {
        &self.bonds
    }

    /// The least bond of a commitment to a task in the next block; `None` if there is no such task.
    pub fn least_bond(&self, task_id: &Hash) -> Option<Wei> {
        Some(self.bonds.least(self.depth_now(self.task(task_id)?)))
    }
}
