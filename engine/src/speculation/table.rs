//! Records by dense index, in chunks of a fixed size: growing moves no records, so that no call
//! pays for the existing ones, and leaves little memory unused.

use std::ops::{Index, IndexMut};

const CHUNK: usize = 256;

/// A task's place in the tables, valid as long as the task is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TaskIndex(pub(super) u32);

impl TaskIndex {
    /// No task: the end of a list.
    pub(super) const NONE: Self = Self(u32::MAX);
}

impl From<TaskIndex> for usize {
    fn from(task: TaskIndex) -> Self {
        task.0 as Self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct EdgeAt(pub(super) u32);

impl EdgeAt {
    /// No edge: the end of a list.
    pub(super) const NONE: Self = Self(u32::MAX);
}

impl From<EdgeAt> for usize {
    fn from(edge: EdgeAt) -> Self {
        edge.0 as Self
    }
}

/// Records by dense index.
#[derive(Clone, Debug)]
pub(super) struct Table<T>(Vec<Vec<T>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> Table<T> {
    /// Extends the table so that the record at `at` and all before it exist.
    pub(super) fn cover(&mut self, at: impl Into<usize>) {
        let at = at.into();
        while self.len() <= at {
            match self.0.last_mut() {
                Some(last) if last.len() < CHUNK => last.push(T::default()),
                _ => {
                    let mut chunk = Vec::with_capacity(CHUNK);
                    chunk.push(T::default());
                    self.0.push(chunk);
                }
            }
        }
    }

    pub(super) fn get(&self, at: impl Into<usize>) -> Option<&T> {
        let at = at.into();
        self.0.get(at / CHUNK)?.get(at % CHUNK)
    }

    pub(super) fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * CHUNK + last.len())
    }

    /// Memory of the table in bytes, without memory that records own.
    pub(super) const fn bytes(&self) -> usize {
        self.0.len() * CHUNK * size_of::<T>() + self.0.capacity() * size_of::<Vec<T>>()
    }
}

impl<T, I: Into<usize>> Index<I> for Table<T> {
    type Output = T;

    fn index(&self, at: I) -> &T {
        let at = at.into();
        &self.0[at / CHUNK][at % CHUNK]
    }
}

impl<T, I: Into<usize>> IndexMut<I> for Table<T> {
    fn index_mut(&mut self, at: I) -> &mut T {
        let at = at.into();
        &mut self.0[at / CHUNK][at % CHUNK]
    }
}

/// Bytes of a B-tree of `len` entries of type `T`: nodes of eleven entries, two thirds full, plus a
/// tenth for inner nodes.
pub(super) const fn tree_bytes<T>(len: usize) -> usize {
    len * size_of::<T>() * 17 / 10 + len * 2
}
