//! Depths, and how they fall when tasks above are resolved.

use super::{COUNTED, DependencyStatus, Edge, Graph};
use crate::speculation::table::{EdgeAt, TaskIndex};

impl Graph {
    /// The minimum depth of the task's children, capped at [`COUNTED`].
    pub(super) fn weight(&self, task: TaskIndex) -> u8 {
        let node = &self.nodes[task];
        match node.status {
            DependencyStatus::Confirmed => 0,
            _ => (node.depth + 1).min(COUNTED),
        }
    }

    /// Computes a task's depth and counts from its parents.
    pub(super) fn look_up(&mut self, task: TaskIndex) {
        let (mut depth, mut deepest, mut unconfirmed) = (0, 0, 0);
        let mut at = self.nodes[task].first_parent;
        while at != EdgeAt::NONE {
            let edge = &self.edges[at];
            at = edge.next_parent;
            match self.weight(edge.parent) {
                0 => continue,
                weight if weight > depth => (depth, deepest) = (weight, 1),
                weight => deepest += u32::from(weight == depth),
            }
            unconfirmed += 1;
        }
        let node = &mut self.nodes[task];
        (node.depth, node.deepest, node.unconfirmed) = (depth, deepest, unconfirmed);
    }

    /// Updates the children of a task whose weight was `before` and has changed.
    pub(super) fn tell_children(&mut self, task: TaskIndex, before: u8) {
        let now = self.weight(task);
        if now == before {
            return;
        }
        let mut at = self.nodes[task].first_child;
        while at != EdgeAt::NONE {
            let Edge { child, next_child, .. } = self.edges[at];
            at = next_child;
            let node = &mut self.nodes[child];
            if now == 0 {
                node.unconfirmed -= 1;
            }
            // Its depth will be recomputed from all its parents anyway.
            if node.deepest == 0 {
                continue;
            }
            if before == node.depth {
                node.deepest -= 1;
            }
            if now == node.depth {
                node.deepest += 1;
            } else if now > node.depth {
                node.deepest = 0;
            }
            if node.deepest == 0 {
                self.fallen.push(child);
            }
        }
    }

    pub(super) fn settle_depths(&mut self) {
        while let Some(task) = self.fallen.pop() {
            let before = self.weight(task);
            self.look_up(task);
            self.tell_children(task, before);
        }
    }
}
