//! Tasks, their dependencies, and their depths (AgenC §4.1, §5.2).
//!
//! A task's **depth** is the number of unconfirmed tasks on the longest path from it up to a root,
//! not counting itself: 0 if every ancestor is confirmed. Failed ancestors count as long as a task
//! waits for them.
//!
//! Depths fall as ancestors are confirmed. Each task counts the parents that hold it at its depth.
//! When the last of those falls, the task recomputes its depth from its parents, and if it fell,
//! its children are updated. Depths are tracked up to [`COUNTED`] only, because no configuration
//! allows more than 20. So a task falls at most that many times, each time at the cost of its
//! edges, and confirming a chain of a million tasks costs no more per task than one of a hundred.
//! [`Graph::depth`] is still exact: greater depths are computed on request.
//!
//! Tasks are records in one table, edges are records in another: an edge is in its child's list of
//! parents and in its parent's list of children. The graph allocates no memory per task.

mod depth;
mod edges;

use super::{
    TaskId,
    table::{EdgeAt, Table, TaskIndex, tree_bytes},
};
use crate::names;
use std::collections::BTreeSet;

/// Depths below this are tracked; greater ones are computed on request.
pub const COUNTED: u8 = 32;
const _: () = assert!(COUNTED as u64 > super::config::MAX_DEPTH, "an accepted depth is kept");

names! {
    /// The status of a task (AgenC §4.1, `DependencyStatus`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum DependencyStatus {
        /// Scheduled, but its output is not known yet.
        #[default]
        Pending = "pending",
        /// Its output is known, but its proof is not confirmed.
        Speculative = "speculative",
        Confirmed = "confirmed",
        /// It failed, and its rollback undid the tasks below it.
        Failed = "failed",
        /// It was rolled back because an ancestor failed.
        RolledBack = "rolled_back",
    }
}

impl DependencyStatus {
    /// Whether the task is neither confirmed, failed nor rolled back.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Speculative)
    }
}

/// The dependency of a task on a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ParentLink {
    #[default]
    Reads,
    /// It must come after the parent, whatever the parent's output is: under the policy `selective`
    /// it survives the parent's failure and waits for the parent's next attempt.
    OrderOnly,
}

/// Why a task cannot be added to the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error("task {0} is in the graph already: schedule it again once it has failed")]
    DuplicateTask(TaskId),
    #[error("parent {0} is not in the graph: schedule parents before their children")]
    UnknownParent(TaskId),
    #[error("task {0} would wait for itself: a parent of it depends on it")]
    Cycle(TaskId),
    #[error("parent {0} has failed: schedule it again first")]
    ParentFailed(TaskId),
}

#[derive(Clone, Debug)]
pub(super) struct TaskNode {
    pub(super) id: TaskId,
    /// The place in the order of scheduling.
    pub(super) seq: u64,
    pub(super) first_parent: EdgeAt,
    pub(super) first_child: EdgeAt,
    last_child: EdgeAt,
    /// Number of parents that are not confirmed.
    pub(super) unconfirmed: u32,
    /// Number of parents that hold the task at its depth; 0 while its depth has to be recomputed.
    deepest: u32,
    pub(super) live_children: u32,
    /// Neighbours in the list of retired tasks.
    before: TaskIndex,
    after: TaskIndex,
    pub(super) status: DependencyStatus,
    pub(super) depth: u8,
}

impl Default for TaskNode {
    fn default() -> Self {
        Self {
            id: TaskId::ZERO,
            seq: 0,
            first_parent: EdgeAt::NONE,
            first_child: EdgeAt::NONE,
            last_child: EdgeAt::NONE,
            unconfirmed: 0,
            deepest: 0,
            live_children: 0,
            before: TaskIndex::NONE,
            after: TaskIndex::NONE,
            status: DependencyStatus::Pending,
            depth: 0,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    pub(super) parent: TaskIndex,
    pub(super) child: TaskIndex,
    pub(super) next_parent: EdgeAt,
    previous_child: EdgeAt,
    pub(super) next_child: EdgeAt,
    pub(super) link: ParentLink,
}

/// A task that may be added to the graph, with its parents resolved.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) id: TaskId,
    /// Its place, if there was an earlier attempt.
    pub(super) again: Option<TaskIndex>,
    pub(super) parents: Vec<(TaskIndex, ParentLink)>,
    /// Capped at [`COUNTED`].
    pub(super) depth: u8,
}

/// The graph of tasks and their dependencies.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The tasks by the first bytes of their ids, which are random and cheap to compare.
    pub(super) ids: BTreeSet<(u64, TaskIndex)>,
    pub(super) nodes: Table<TaskNode>,
    pub(super) edges: Table<Edge>,
    vacant: Vec<TaskIndex>,
    vacant_edges: Vec<EdgeAt>,
    next_seq: u64,
    live: usize,
    tips: usize,
    /// Head and tail of the list of tasks that are resolved and that no live task depends on, in
    /// the order in which they became so.
    retired: (TaskIndex, TaskIndex),
    retired_len: usize,
    /// Tasks whose depth has to be recomputed; empty between calls.
    fallen: Vec<TaskIndex>,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            ids: BTreeSet::new(),
            nodes: Table::default(),
            edges: Table::default(),
            vacant: Vec::new(),
            vacant_edges: Vec::new(),
            next_seq: 0,
            live: 0,
            tips: 0,
            retired: (TaskIndex::NONE, TaskIndex::NONE),
            retired_len: 0,
            fallen: Vec::new(),
        }
    }
}

impl Graph {
    /// Adds a task, or a failed one again, below `parents`; a parent that is named twice counts
    /// once. Returns its depth, exact below [`COUNTED`].
    pub fn add(&mut self, id: TaskId, parents: &[(TaskId, ParentLink)]) -> Result<u32, GraphError> {
        let admission = self.admit(id, parents)?;
        let depth = u32::from(admission.depth);
        self.insert(&admission);
        Ok(depth)
    }

    /// Confirms a live task whose parents are all confirmed; returns whether it did.
    pub fn confirm(&mut self, id: &TaskId) -> bool {
        match self.find(id) {
            Some(task) if self.status_of(task).is_live() && self.is_clear(task) => {
                self.resolve(task, DependencyStatus::Confirmed);
                true
            }
            _ => false,
        }
    }

    /// Marks a live task failed and all live tasks below it rolled back, whatever their links;
    /// returns their number.
    pub fn fail(&mut self, id: &TaskId) -> usize {
        let Some(task) = self.find(id).filter(|&task| self.status_of(task).is_live()) else {
            return 0;
        };
        let affected = self.affected(task, false);
        for &one in &affected {
            let status =
                if one == task { DependencyStatus::Failed } else { DependencyStatus::RolledBack };
            self.resolve(one, status);
        }
        affected.len()
    }

    /// Removes a task and all below it, whatever their status; returns their number.
    pub fn remove_subtree(&mut self, id: &TaskId) -> usize {
        let Some(task) = self.find(id) else { return 0 };
        let subtree = self.below(task);
        for &one in &subtree {
            if self.status_of(one).is_live() {
                self.resolve(one, DependencyStatus::RolledBack);
            }
            self.remove(one);
        }
        subtree.len()
    }

    pub fn status(&self, id: &TaskId) -> Option<DependencyStatus> {
        self.find(id).map(|task| self.status_of(task))
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub const fn live(&self) -> usize {
        self.live
    }

    /// Number of live tasks without a live child: a chain is one branch (speculation.md, branches).
    pub const fn branches(&self) -> usize {
        self.tips
    }

    /// The tasks in order of the first eight bytes of their ids.
    pub fn tasks(&self) -> impl Iterator<Item = (&TaskId, DependencyStatus)> {
        self.places().map(|task| (&self.nodes[task].id, self.status_of(task)))
    }

    pub fn parents(&self, id: &TaskId) -> Vec<(TaskId, ParentLink)> {
        let edges = self.find(id).into_iter().flat_map(|task| self.parent_edges(task));
        edges.map(|edge| (self.nodes[edge.parent].id, edge.link)).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        let vacant = self.vacant.capacity() + self.vacant_edges.capacity();
        self.nodes.bytes()
            + self.edges.bytes()
            + (vacant + self.fallen.capacity()) * size_of::<TaskIndex>()
            + tree_bytes::<(u64, TaskIndex)>(self.ids.len())
    }

    pub(super) fn find(&self, id: &TaskId) -> Option<TaskIndex> {
        let first = first_bytes(id);
        let from = self.ids.range((first, TaskIndex::default())..);
        let same = from.take_while(|(bytes, _)| *bytes == first);
        same.map(|&(_, task)| task).find(|&task| self.nodes[task].id == *id)
    }

    /// The tasks' places, in order of the first eight bytes of their ids.
    pub(super) fn places(&self) -> impl Iterator<Item = TaskIndex> {
        self.ids.iter().map(|&(_, task)| task)
    }

    pub(super) fn status_of(&self, task: TaskIndex) -> DependencyStatus {
        self.nodes[task].status
    }

    pub(super) fn id(&self, task: TaskIndex) -> TaskId {
        self.nodes[task].id
    }

    /// Whether every ancestor is confirmed.
    pub(super) fn is_clear(&self, task: TaskIndex) -> bool {
        self.nodes[task].unconfirmed == 0
    }

    /// The depth, capped at [`COUNTED`].
    pub(super) fn counted_depth(&self, task: TaskIndex) -> u8 {
        self.nodes[task].depth
    }

    pub(super) fn parent_edges(&self, task: TaskIndex) -> impl Iterator<Item = &Edge> {
        let edge = |at: EdgeAt| (at != EdgeAt::NONE).then(|| &self.edges[at]);
        let first = edge(self.nodes[task].first_parent);
        std::iter::successors(first, move |one| edge(one.next_parent))
    }

    pub(super) fn child_edges(&self, task: TaskIndex) -> impl Iterator<Item = &Edge> {
        let edge = |at: EdgeAt| (at != EdgeAt::NONE).then(|| &self.edges[at]);
        let first = edge(self.nodes[task].first_child);
        std::iter::successors(first, move |one| edge(one.next_child))
    }

    pub(super) fn admit(
        &self,
        id: TaskId,
        parents: &[(TaskId, ParentLink)],
    ) -> Result<Admission, GraphError> {
        let again = self.find(&id);
        if again.is_some_and(|task| {
            matches!(
                self.status_of(task),
                DependencyStatus::Pending
                    | DependencyStatus::Speculative
                    | DependencyStatus::Confirmed
            )
        }) {
            return Err(GraphError::DuplicateTask(id));
        }
        let mut found = Vec::with_capacity(parents.len());
        for &(parent, link) in parents {
            if parent == id {
                return Err(GraphError::Cycle(id));
            }
            let task = self.find(&parent).ok_or(GraphError::UnknownParent(parent))?;
            if matches!(
                self.status_of(task),
                DependencyStatus::Failed | DependencyStatus::RolledBack
            ) {
                return Err(GraphError::ParentFailed(parent));
            }
            found.push((task, link));
        }
        if found.len() > 1 {
            // `Reads` sorts first, so it wins over `OrderOnly`.
            found.sort_unstable_by_key(|&(task, link)| (self.nodes[task].seq, link));
            found.dedup_by_key(|(task, _)| *task);
        }
        // Only a task that already has children can have tasks waiting for it.
        if let Some(task) = again
            && self.nodes[task].first_child != EdgeAt::NONE
            && found.iter().any(|&(parent, _)| self.waits_for(parent, task))
        {
            return Err(GraphError::Cycle(id));
        }
        let depth = found.iter().map(|&(parent, _)| self.weight(parent)).max().unwrap_or(0);
        Ok(Admission { id, again, parents: found, depth })
    }

    /// Number of live tips after the task is added.
    pub(super) fn branches_with(&self, admission: &Admission) -> usize {
        let covered = admission.parents.iter().filter(|&&(parent, _)| self.is_tip(parent)).count();
        let survivors = admission.again.is_some_and(|task| self.nodes[task].live_children > 0);
        self.tips + usize::from(!survivors) - covered
    }

    pub(super) fn insert(&mut self, admission: &Admission) -> TaskIndex {
        let task = match admission.again {
            Some(task) => {
                self.leave_parents(task);
                self.unretire(task);
                task
            }
            None => self.allot(admission.id),
        };
        let before = self.weight(task);
        self.nodes[task].seq = self.next_seq;
        self.next_seq += 1;
        for &(parent, link) in admission.parents.iter().rev() {
            self.join(parent, task, link);
        }
        self.enter(task);
        self.look_up(task);
        if admission.again.is_some() {
            self.tell_children(task, before);
            self.settle_depths();
        }
        task
    }

    fn allot(&mut self, id: TaskId) -> TaskIndex {
        let next =
            TaskIndex(u32::try_from(self.nodes.len()).expect("fewer than 2^32 tasks fit memory"));
        let task = self.vacant.pop().unwrap_or(next);
        self.nodes.cover(task);
        self.nodes[task].id = id;
        self.ids.insert((first_bytes(&id), task));
        task
    }

    /// Marks a task whose edges exist as pending, and counts it.
    fn enter(&mut self, task: TaskIndex) {
        self.nodes[task].status = DependencyStatus::Pending;
        self.live += 1;
        self.tips += usize::from(self.nodes[task].live_children == 0);
        let mut at = self.nodes[task].first_parent;
        while at != EdgeAt::NONE {
            let parent = self.edges[at].parent;
            self.tips -= usize::from(self.is_tip(parent));
            self.nodes[parent].live_children += 1;
            self.unretire(parent);
            at = self.edges[at].next_parent;
        }
    }

    /// The output of a pending task is known.
    pub(super) fn speculate(&mut self, task: TaskIndex) {
        self.nodes[task].status = DependencyStatus::Speculative;
    }

    pub(super) fn resolve(&mut self, task: TaskIndex, status: DependencyStatus) {
        let before = self.weight(task);
        self.live -= 1;
        self.tips -= usize::from(self.is_tip(task));
        self.nodes[task].status = status;
        let mut at = self.nodes[task].first_parent;
        while at != EdgeAt::NONE {
            let parent = self.edges[at].parent;
            self.nodes[parent].live_children -= 1;
            if self.nodes[parent].live_children == 0 {
                if self.status_of(parent).is_live() {
                    self.tips += 1;
                } else {
                    self.retire(parent);
                }
            }
            at = self.edges[at].next_parent;
        }
        if self.nodes[task].live_children == 0 {
            self.retire(task);
        }
        if status == DependencyStatus::Confirmed {
            self.tell_children(task, before);
            self.settle_depths();
        }
    }

    /// The task that was retired first, if there are more than `retained`.
    pub(super) fn oldest_retired(&self, retained: u64) -> Option<TaskIndex> {
        (self.retired_len as u64 > retained).then_some(self.retired.0)
    }

    /// The retired tasks, oldest first.
    pub(super) fn retired(&self) -> impl Iterator<Item = TaskIndex> {
        let some = |task: TaskIndex| (task != TaskIndex::NONE).then_some(task);
        std::iter::successors(some(self.retired.0), move |&task| some(self.nodes[task].after))
    }

    /// Removes a task that is not live.
    pub(super) fn remove(&mut self, task: TaskIndex) {
        let before = self.weight(task);
        self.unretire(task);
        self.leave_parents(task);
        // For its children this is like a confirmation: it no longer holds their depth.
        self.nodes[task].status = DependencyStatus::Confirmed;
        self.tell_children(task, before);
        while self.nodes[task].first_child != EdgeAt::NONE {
            let at = self.nodes[task].first_child;
            self.drop_from_child(at);
            self.drop_from_parent(at);
        }
        self.settle_depths();
        self.ids.remove(&(first_bytes(&self.nodes[task].id), task));
        self.nodes[task] = TaskNode::default();
        self.vacant.push(task);
    }

    /// Rebuilds the graph from tasks in order of scheduling, with their status, and parents by
    /// their places. `None` if an id occurs twice, a place does not exist or a task waits for
    /// itself.
    pub(super) fn rebuild<'a>(
        tasks: impl Iterator<Item = (TaskId, DependencyStatus, &'a [(u32, bool)])> + Clone,
    ) -> Option<Self> {
        let mut graph = Self::default();
        for (id, status, _) in tasks.clone() {
            if graph.find(&id).is_some() {
                return None;
            }
            let task = graph.allot(id);
            graph.nodes[task].seq = graph.next_seq;
            graph.nodes[task].status = status;
            graph.next_seq += 1;
        }
        for (at, (_, status, parents)) in (0..).map(TaskIndex).zip(tasks) {
            for &(parent, order_only) in parents.iter().rev() {
                if parent as usize >= graph.nodes.len() {
                    return None;
                }
                let link = if order_only { ParentLink::OrderOnly } else { ParentLink::Reads };
                graph.join(TaskIndex(parent), at, link);
                graph.nodes[TaskIndex(parent)].live_children += u32::from(status.is_live());
            }
            graph.live += usize::from(status.is_live());
        }
        let order = graph.topological_order();
        if order.len() < graph.len() {
            return None;
        }
        for id in order {
            let task = graph.find(&id)?;
            graph.look_up(task);
            graph.tips += usize::from(graph.is_tip(task));
        }
        Some(graph)
    }

    fn is_tip(&self, task: TaskIndex) -> bool {
        self.nodes[task].live_children == 0 && self.status_of(task).is_live()
    }

    pub(super) fn retire(&mut self, task: TaskIndex) {
        let last = self.retired.1;
        let node = &mut self.nodes[task];
        (node.before, node.after) = (last, TaskIndex::NONE);
        match last {
            TaskIndex::NONE => self.retired.0 = task,
            last => self.nodes[last].after = task,
        }
        self.retired.1 = task;
        self.retired_len += 1;
    }

    fn is_retired(&self, task: TaskIndex) -> bool {
        self.nodes[task].before != TaskIndex::NONE || self.retired.0 == task
    }

    fn unretire(&mut self, task: TaskIndex) {
        if !self.is_retired(task) {
            return;
        }
        let node = &mut self.nodes[task];
        let (before, after) = (node.before, node.after);
        (node.before, node.after) = (TaskIndex::NONE, TaskIndex::NONE);
        match before {
            TaskIndex::NONE => self.retired.0 = after,
            before => self.nodes[before].after = after,
        }
        match after {
            TaskIndex::NONE => self.retired.1 = before,
            after => self.nodes[after].before = before,
        }
        self.retired_len -= 1;
    }
}
fn first_bytes(id: &TaskId) -> u64 {
    let (first, _) = id.0.split_first_chunk().expect("an id has 32 bytes");
    u64::from_be_bytes(*first)
}
