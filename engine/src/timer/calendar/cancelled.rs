//! Cancelled timers whose entries are still in a bucket: one bit each.
//!
//! To remove an entry from its bucket, it would have to be searched, or its place kept per timer. A
//! mark costs one bit, and a reader of the bucket skips marked entries.

use std::collections::VecDeque;

const WORDS: usize = 64;
/// Timers per chunk.
const CHUNK: u64 = 64 * WORDS as u64;

#[derive(Default)]
pub(super) struct Cancelled {
    first: u64,
    chunks: VecDeque<Option<Box<Chunk>>>,
    len: usize,
}

struct Chunk {
    words: [u64; WORDS],
    marked: u32,
}

impl Cancelled {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn insert(&mut self, seq: u64) {
        let number = seq / CHUNK;
        if self.chunks.is_empty() {
            self.first = number;
        }
        while number < self.first {
            self.chunks.push_front(None);
            self.first -= 1;
        }
        let index = (number - self.first) as usize;
        if index >= self.chunks.len() {
            self.chunks.resize_with(index + 1, || None);
        }
        let empty = || Box::new(Chunk { words: [0; WORDS], marked: 0 });
        let chunk = self.chunks[index].get_or_insert_with(empty);
        let (word, bit) = place(seq);
        if chunk.words[word] & bit == 0 {
            chunk.words[word] |= bit;
            chunk.marked += 1;
            self.len += 1;
        }
    }

    /// Unmarks a timer; returns whether it was marked.
    pub(super) fn remove(&mut self, seq: u64) -> bool {
        let index = (seq / CHUNK).checked_sub(self.first).map(|index| index as usize);
        let Some(slot) = index.and_then(|index| self.chunks.get_mut(index)) else { return false };
        let Some(chunk) = slot else { return false };
        let (word, bit) = place(seq);
        if chunk.words[word] & bit == 0 {
            return false;
        }
        chunk.words[word] &= !bit;
        chunk.marked -= 1;
        self.len -= 1;
        if chunk.marked == 0 {
            *slot = None;
            while self.chunks.pop_front_if(|chunk| chunk.is_none()).is_some() {
                self.first += 1;
            }
            while self.chunks.pop_back_if(|chunk| chunk.is_none()).is_some() {}
        }
        true
    }
}

fn place(seq: u64) -> (usize, u64) {
    ((seq % CHUNK / 64) as usize, 1 << (seq % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_once_and_leave_nothing() {
        let mut cancelled = Cancelled::default();
        let seqs = [70_000, 3, 4_095, 4_096, 1_000_000, 70_001];
        for seq in seqs {
            assert!(!cancelled.remove(seq));
            cancelled.insert(seq);
            cancelled.insert(seq);
        }
        assert_eq!(cancelled.len, seqs.len());
        for seq in seqs {
            assert!(cancelled.remove(seq) && !cancelled.remove(seq), "{seq}");
        }
        assert!(cancelled.is_empty() && cancelled.chunks.is_empty());
    }
}
