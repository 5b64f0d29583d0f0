//! Walks over the graph: ancestors, descendants, orders. Each keeps its own stack, so that even the
//! longest chain does not overflow the call stack.

use super::{
    TaskId,
    graph::{COUNTED, DependencyStatus, Edge, Graph, ParentLink},
    table::{EdgeAt, TaskIndex},
};
use std::collections::{BTreeMap, VecDeque};

struct SeenTasks(Vec<u64>);

impl SeenTasks {
    fn none_of(tasks: usize) -> Self {
        Self(vec![0; tasks.div_ceil(64)])
    }

    /// Adds a task; returns whether it is new.
    fn add(&mut self, task: TaskIndex) -> bool {
        let new = !self.has(task);
        self.0[task.0 as usize / 64] |= 1 << (task.0 % 64);
        new
    }

    fn has(&self, task: TaskIndex) -> bool {
        (self.0[task.0 as usize / 64] >> (task.0 % 64)) & 1 == 1
    }
}

impl Graph {
    /// Number of unconfirmed tasks on the longest path up from the task.
    pub fn depth(&self, id: &TaskId) -> Option<u32> {
        self.find(id).map(|task| self.exact_depth(task))
    }

    /// All ancestors, nearest first.
    pub fn ancestors(&self, id: &TaskId) -> Vec<TaskId> {
        self.above(id, |_| true)
    }

    /// The unconfirmed ancestors, nearest first.
    pub fn unconfirmed_ancestors(&self, id: &TaskId) -> Vec<TaskId> {
        self.above(id, |status| status != DependencyStatus::Confirmed)
    }

    /// All tasks below the task, leaves first.
    pub fn descendants(&self, id: &TaskId) -> Vec<TaskId> {
        let Some(task) = self.find(id) else { return Vec::new() };
        let mut below = self.below(task);
        below.pop();
        self.ids_of(&below)
    }

    /// Tasks without parents, by id.
    pub fn roots(&self) -> Vec<TaskId> {
        self.filtered(|graph, task| graph.nodes[task].first_parent == EdgeAt::NONE)
    }

    /// Tasks without children, by id.
    pub fn leaves(&self) -> Vec<TaskId> {
        self.filtered(|graph, task| graph.nodes[task].first_child == EdgeAt::NONE)
    }

    /// All tasks, each after its parents.
    pub fn topological_order(&self) -> Vec<TaskId> {
        let mut missing: BTreeMap<TaskIndex, usize> = BTreeMap::new();
        let mut queue = VecDeque::new();
        for task in self.places() {
            match self.parent_edges(task).count() {
                0 => queue.push_back(task),
                parents => drop(missing.insert(task, parents)),
            }
        }
        let mut order = Vec::with_capacity(self.len());
        while let Some(task) = queue.pop_front() {
            order.push(self.id(task));
            for edge in self.child_edges(task) {
                let left = missing.get_mut(&edge.child).expect("an edge leads to a counted task");
                *left -= 1;
                if *left == 0 {
                    queue.push_back(edge.child);
                }
            }
        }
        order
    }

    pub fn would_cycle(&self, child: &TaskId, parent: &TaskId) -> bool {
        child == parent
            || self
                .find(child)
                .zip(self.find(parent))
                .is_some_and(|(child, parent)| self.leads_up(parent, child, |_| true))
    }

    /// The depth of the deepest live task.
    pub fn max_depth(&self) -> u32 {
        let live = self.places().filter(|&task| self.status_of(task).is_live());
        live.map(|task| self.exact_depth(task)).max().unwrap_or(0)
    }

    /// Whether `task` is the unconfirmed `ancestor` or depends on it.
    pub(super) fn waits_for(&self, task: TaskIndex, ancestor: TaskIndex) -> bool {
        // All ancestors of a confirmed task are confirmed.
        self.leads_up(task, ancestor, |status| status != DependencyStatus::Confirmed)
    }

    /// Whether `ancestor` is `task` or above it, through tasks of a `wanted` status.
    fn leads_up(
        &self,
        task: TaskIndex,
        ancestor: TaskIndex,
        wanted: impl Fn(DependencyStatus) -> bool,
    ) -> bool {
        let mut seen = SeenTasks::none_of(self.nodes.len());
        let mut stack = vec![task];
        while let Some(task) = stack.pop() {
            if task == ancestor {
                return true;
            }
            if wanted(self.status_of(task)) && seen.add(task) {
                stack.extend(self.parent_edges(task).map(|edge| edge.parent));
            }
        }
        false
    }

    /// The tasks that the failure of a live task undoes, leaves first, itself last: every live task
    /// below it, or, with `selective`, those that read an undone output.
    pub(super) fn affected(&self, task: TaskIndex, selective: bool) -> Vec<TaskIndex> {
        let live = |edge: &Edge| self.status_of(edge.child).is_live();
        let mut below = self.postorder(task, live);
        if !selective {
            return below;
        }
        // A task that only comes after another is still undone before it, if both are undone.
        let mut undone = SeenTasks::none_of(self.nodes.len());
        undone.add(task);
        for &one in below.iter().rev() {
            if undone.has(one) {
                let reads = |edge: &&Edge| live(edge) && edge.link == ParentLink::Reads;
                for edge in self.child_edges(one).filter(reads) {
                    undone.add(edge.child);
                }
            }
        }
        below.retain(|&one| undone.has(one));
        below
    }

    /// A task and all below it, leaves first.
    pub(super) fn below(&self, task: TaskIndex) -> Vec<TaskIndex> {
        self.postorder(task, |_| true)
    }

    pub(super) fn ids_of(&self, tasks: &[TaskIndex]) -> Vec<TaskId> {
        tasks.iter().map(|&task| self.id(task)).collect()
    }

    fn exact_depth(&self, task: TaskIndex) -> u32 {
        let counted = |task: TaskIndex| self.counted_depth(task);
        if counted(task) < COUNTED {
            return counted(task).into();
        }
        // Greater depths, parents before children: each task is one level below its deepest parent.
        let mut exact: BTreeMap<TaskIndex, u32> = BTreeMap::new();
        let mut stack = vec![(task, false)];
        while let Some((task, entered)) = stack.pop() {
            if exact.contains_key(&task) {
                continue;
            }
            let parents = self.parent_edges(task).map(|edge| edge.parent);
            let mut parents =
                parents.filter(|&one| self.status_of(one) != DependencyStatus::Confirmed);
            if entered {
                let depth =
                    |one: TaskIndex| exact.get(&one).copied().unwrap_or(counted(one).into());
                let depth = parents.by_ref().map(depth).max().map_or(0, |deepest| deepest + 1);
                exact.insert(task, depth);
                continue;
            }
            stack.push((task, true));
            stack.extend(parents.filter(|&one| counted(one) == COUNTED).map(|one| (one, false)));
        }
        exact[&task]
    }

    fn above(&self, id: &TaskId, wanted: impl Fn(DependencyStatus) -> bool) -> Vec<TaskId> {
        let Some(task) = self.find(id) else { return Vec::new() };
        let mut seen = SeenTasks::none_of(self.nodes.len());
        let mut found = Vec::new();
        let mut next = 0;
        let mut from = task;
        loop {
            for edge in self.parent_edges(from) {
                if wanted(self.status_of(edge.parent)) && seen.add(edge.parent) {
                    found.push(edge.parent);
                }
            }
            let Some(&task) = found.get(next) else { return self.ids_of(&found) };
            (from, next) = (task, next + 1);
        }
    }

    fn postorder(&self, task: TaskIndex, down: impl Fn(&Edge) -> bool) -> Vec<TaskIndex> {
        let mut seen = SeenTasks::none_of(self.nodes.len());
        let mut order = Vec::new();
        let mut stack = vec![(task, self.nodes[task].first_child)];
        while let Some((task, at)) = stack.last_mut() {
            if *at == EdgeAt::NONE {
                order.push(*task);
                stack.pop();
                continue;
            }
            let edge = &self.edges[*at];
            *at = edge.next_child;
            if down(edge) && seen.add(edge.child) {
                stack.push((edge.child, self.nodes[edge.child].first_child));
            }
        }
        order
    }

    fn filtered(&self, wanted: impl Fn(&Self, TaskIndex) -> bool) -> Vec<TaskId> {
        self.places().filter(|&task| wanted(self, task)).map(|task| self.id(task)).collect()
    }
}
