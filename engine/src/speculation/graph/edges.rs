//! Edges between tasks: each is in a list of its child's and in one of its parent's.

use super::{Edge, Graph, ParentLink};
use crate::speculation::table::{EdgeAt, TaskIndex};

impl Graph {
    /// Adds an edge, at the front of the child's parents and at the back of the parent's children.
    pub(super) fn join(&mut self, parent: TaskIndex, child: TaskIndex, link: ParentLink) {
        let next =
            EdgeAt(u32::try_from(self.edges.len()).expect("fewer than 2^32 edges fit memory"));
        let at = self.vacant_edges.pop().unwrap_or(next);
        self.edges.cover(at);
        let last = self.nodes[parent].last_child;
        self.edges[at] = Edge {
            parent,
            child,
            next_parent: self.nodes[child].first_parent,
            previous_child: last,
            next_child: EdgeAt::NONE,
            link,
        };
        match last {
            EdgeAt::NONE => self.nodes[parent].first_child = at,
            last => self.edges[last].next_child = at,
        }
        self.nodes[parent].last_child = at;
        self.nodes[child].first_parent = at;
    }

    pub(super) fn leave_parents(&mut self, task: TaskIndex) {
        while self.nodes[task].first_parent != EdgeAt::NONE {
            let at = self.nodes[task].first_parent;
            self.nodes[task].first_parent = self.edges[at].next_parent;
            self.drop_from_parent(at);
        }
        let node = &mut self.nodes[task];
        (node.unconfirmed, node.deepest) = (0, 0);
    }

    /// Removes an edge from its parent's list and frees it.
    pub(super) fn drop_from_parent(&mut self, at: EdgeAt) {
        let Edge { parent, previous_child, next_child, .. } = self.edges[at];
        match previous_child {
            EdgeAt::NONE => self.nodes[parent].first_child = next_child,
            previous => self.edges[previous].next_child = next_child,
        }
        match next_child {
            EdgeAt::NONE => self.nodes[parent].last_child = previous_child,
            next => self.edges[next].previous_child = previous_child,
        }
        self.vacant_edges.push(at);
    }

    pub(super) fn drop_from_child(&mut self, at: EdgeAt) {
        let Edge { child, next_parent, .. } = self.edges[at];
        if self.nodes[child].first_parent == at {
            self.nodes[child].first_parent = next_parent;
            return;
        }
        let mut before = self.nodes[child].first_parent;
        while self.edges[before].next_parent != at {
            before = self.edges[before].next_parent;
        }
        self.edges[before].next_parent = next_parent;
    }
}
