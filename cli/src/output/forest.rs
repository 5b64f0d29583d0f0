//! Graphs of tasks as lines: the parent and the position under which each task is drawn.
//!
//! A task with several parents is drawn once, under the deepest one; if several are equally deep,
//! under one whose output it reads. Among a task's children, the one with the most tasks below it
//! comes last, and the others keep the order of the file. An only child has its parent's
//! indentation, so a chain takes no more columns than its first task. The same holds for the
//! children of a last child from [`MAX_LEVEL`] on, because nothing else can follow it there. Each
//! further indentation at least halves the number of remaining tasks, so ten thousand tasks have
//! thirteen of those at most.

use cowboy_devnet::types::SpeculativeTask;
use std::collections::{BTreeMap, VecDeque};

/// How many times a last child is indented more than its parent.
const MAX_LEVEL: usize = 6;

pub struct Forest {
    /// Positions of each task's dependencies, and whether only the order matters.
    pub parents: Vec<Vec<(usize, bool)>>,
    pub under: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
}

pub struct TreeLine {
    pub task: usize,
    /// The text before its name.
    pub lead: String,
    /// The text before further lines of the task.
    pub below: String,
}

#[derive(Clone, Copy)]
enum Mark {
    Root,
    OnlyChild,
    Child,
    LastChild,
}

/// Positions of each task's dependencies, and whether only the order matters. Unknown names are
/// left out.
pub fn parents(tasks: &[SpeculativeTask]) -> Vec<Vec<(usize, bool)>> {
    let places: BTreeMap<&str, usize> =
        tasks.iter().enumerate().map(|(at, task)| (task.task.as_str(), at)).collect();
    let of = |task: &SpeculativeTask| {
        let known = task.depends_on.iter().filter_map(|parent| {
            let at = places.get(parent.task.as_str())?;
            Some((*at, parent.order_only))
        });
        known.collect()
    };
    tasks.iter().map(of).collect()
}

impl Forest {
    pub fn of(tasks: &[SpeculativeTask]) -> Self {
        let parents = parents(tasks);
        let mut missing: Vec<usize> = parents.iter().map(Vec::len).collect();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
        for (child, of_child) in parents.iter().enumerate() {
            for (parent, _) in of_child {
                readers[*parent].push(child);
            }
        }
        let mut next: VecDeque<usize> = (0..tasks.len()).filter(|at| missing[*at] == 0).collect();
        let mut levels = vec![0_usize; tasks.len()];
        let mut under = vec![None; tasks.len()];
        // Parents before children. Tasks in a cycle are never reached, and are drawn as roots.
        let mut order = Vec::with_capacity(tasks.len());
        while let Some(at) = next.pop_front() {
            order.push(at);
            let deepest = parents[at].iter().max_by_key(|(at, only)| (levels[*at], !*only));
            under[at] = deepest.map(|(parent, _)| *parent);
            levels[at] = under[at].map_or(0, |parent| levels[parent] + 1);
            for child in &readers[at] {
                missing[*child] -= 1;
                if missing[*child] == 0 {
                    next.push_back(*child);
                }
            }
        }
        let mut weights = vec![1_usize; tasks.len()];
        for at in order.iter().rev() {
            if let Some(parent) = under[*at] {
                weights[parent] += weights[*at];
            }
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
        for (at, parent) in under.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        for siblings in &mut children {
            let heaviest = (0..siblings.len()).max_by_key(|at| weights[siblings[*at]]);
            if let Some(heaviest) = heaviest {
                siblings[heaviest..].rotate_left(1);
            }
        }
        Self { parents, under, children }
    }

    pub fn lines(&self) -> Vec<TreeLine> {
        let roots = (0..self.under.len()).rev().filter(|at| self.under[*at].is_none());
        let mut left: Vec<_> = roots.map(|at| (at, Mark::Root, String::new(), 0)).collect();
        let mut lines = Vec::with_capacity(self.under.len());
        while let Some((task, mark, indent, level)) = left.pop() {
            let (inner, deeper) = match mark {
                Mark::Child => ("│ ", level + 1),
                Mark::LastChild if level < MAX_LEVEL => ("  ", level + 1),
                Mark::Root | Mark::OnlyChild | Mark::LastChild => ("", level),
            };
            let inner = indent.clone() + inner;
            let children = &self.children[task];
            for (index, child) in children.iter().enumerate().rev() {
                let mark = match index + 1 == children.len() {
                    true if children.len() == 1 => Mark::OnlyChild,
                    true => Mark::LastChild,
                    false => Mark::Child,
                };
                left.push((*child, mark, inner.clone(), deeper));
            }
            let below = inner + if children.is_empty() { "  " } else { "│ " };
            lines.push(TreeLine { task, lead: indent + mark.sign(), below });
        }
        lines
    }
}

impl Mark {
    const fn sign(self) -> &'static str {
        match self {
            Self::Root => "● ",
            Self::OnlyChild => "↓ ",
            Self::Child => "├ ",
            Self::LastChild => "└ ",
        }
    }
}
