//! Counting votes: how many of them report a runner as present, for many runners at once.
//!
//! Counts are bit-sliced: plane l holds bit l of every runner's count, and one word of it covers 64
//! runners. Votes are added eight at a time. Seven carry-save adders reduce them to the three
//! lowest planes and one carry of weight eight; carries of the same weight then wait for one
//! another and are added to their plane in pairs. So n votes take about n full adders per word,
//! whereas adding them one by one would take n log n half adders.
//!
//! The loops run over plain words without branches, so that the compiler can turn them into vector
//! instructions of the target's width. A block of runners is as long as possible with all of its
//! planes in the L1 cache.
//!
//! No count is compared with the threshold. Counts start so far below a power of two that they
//! reach that power when they reach the threshold, so the top plane is the answer.

use super::Bitmap;

/// Words per plane. A vote that fits on the wire ([`CAPACITY`](super::CAPACITY)) is one block.
const WORDS: usize = 64;

/// Number of bytes of a vote that are counted together.
pub(super) const BLOCK_BYTES: usize = WORDS * 8;

/// Number of runners that are counted together.
pub(super) const BLOCK_BITS: u32 = BLOCK_BYTES as u32 * 8;

/// Number of votes that are added at once.
const GROUP: usize = 8;

/// Number of planes with a weight below that of a group's carry.
const LOW: usize = GROUP.ilog2() as usize;

/// One bit of the count of each runner of a block.
type Plane = [u64; WORDS];

/// A plane that takes the carries of groups.
struct High {
    plane: Plane,
    /// A carry of the plane's weight that waits for another.
    held: Plane,
}

/// Counts votes, a block of runners at a time.
pub(super) struct Tally<'a> {
    votes: &'a [(u32, &'a Bitmap)],
    start: usize,
    low: [Plane; LOW],
    high: Vec<High>,
    /// Buffers for the votes of a group that end within the block.
    padded: Vec<[u8; BLOCK_BYTES]>,
}

impl<'a> Tally<'a> {
    /// Counts `votes` against a threshold of `need`, which is at most the number of votes.
    pub(super) fn new(votes: &'a [(u32, &'a Bitmap)], need: u32) -> Self {
        debug_assert!(need as usize <= votes.len(), "{need} of {} votes", votes.len());
        // The top plane's weight exceeds the number of votes: they pass it at most once.
        let top = ((usize::BITS - votes.len().leading_zeros()) as usize).max(LOW);
        Self {
            votes,
            start: (1 << top) - need as usize,
            low: [[0; WORDS]; LOW],
            high: (LOW..=top).map(|_| High { plane: [0; WORDS], held: [0; WORDS] }).collect(),
            padded: vec![[0; BLOCK_BYTES]; votes.len().min(GROUP)],
        }
    }

    /// Counts the first `words` words of block `at` in every vote, with zeros beyond a vote's end.
    /// The bits set in the answer are the runners that reach the threshold.
    pub(super) fn count(&mut self, at: usize, words: usize) -> &[u64] {
        let start = self.start;
        let high = self.high.iter_mut().map(|high| &mut high.plane);
        for (level, plane) in self.low.iter_mut().chain(high).enumerate() {
            plane[..words].fill(if start >> level & 1 == 1 { u64::MAX } else { 0 });
        }
        for (seen, group) in self.votes.chunks(GROUP).enumerate() {
            if group.len() > GROUP / 2 {
                self.add::<GROUP>(seen, group, at, words);
            } else {
                self.add::<{ GROUP / 2 }>(seen, group, at, words);
            }
        }
        let groups = self.votes.len().div_ceil(GROUP);
        let mut carry = [0; WORDS];
        for (level, high) in self.high.iter_mut().enumerate() {
            if groups >> level & 1 == 0 {
                high.held[..words].fill(0);
            }
            high.add(&mut carry, words);
        }
        &self.high.last().expect("there is at least one").plane[..words]
    }

    /// Adds a group of at most `N` votes after `seen` others.
    fn add<const N: usize>(
        &mut self,
        seen: usize,
        group: &[(u32, &Bitmap)],
        at: usize,
        words: usize,
    ) {
        let mut votes = [&[0; BLOCK_BYTES]; N];
        for ((block, (_, vote)), padded) in votes.iter_mut().zip(group).zip(&mut self.padded) {
            *block = block_of(vote.as_bytes(), at, padded);
        }
        // Level i holds a carry iff bit i of the number of groups seen is set. The group's carry
        // absorbs the held ones, level by level, and comes to rest at the first free level.
        let (held, free) = self.high.split_at_mut(seen.trailing_ones() as usize);
        let carry = &mut free[0].held;
        add_votes(votes, &mut self.low, carry, words);
        for high in held {
            high.add(carry, words);
        }
    }

    /// The count of one runner of the block counted last.
    pub(super) fn get(&self, bit: u32) -> u32 {
        let (word, bit) = ((bit / 64) as usize, bit % 64);
        let planes = self.low.iter().chain(self.high.iter().map(|high| &high.plane));
        let bits = planes.enumerate().map(|(level, plane)| (plane[word] >> bit & 1) << level);
        (bits.sum::<u64>() - self.start as u64) as u32
    }
}

impl High {
    /// Adds the held carry and `carry` to the plane; `carry` becomes that of the next plane.
    fn add(&mut self, carry: &mut Plane, words: usize) {
        let words = self.plane.iter_mut().zip(&self.held).zip(carry).take(words);
        for ((plane, held), carry) in words {
            (*plane, *carry) = full_add(*plane, *held, *carry);
        }
    }
}

/// Adds at most a group of votes to the low planes; `carry` becomes the overflow.
fn add_votes<const N: usize>(
    votes: [&[u8; BLOCK_BYTES]; N],
    low: &mut [Plane; LOW],
    carry: &mut Plane,
    words: usize,
) {
    let [ones, twos, fours] = low;
    for at in 0..words.min(WORDS) {
        let vote = |i: usize| votes.get(i).map_or(0, |vote| u64::from_le_bytes(word(vote, at)));
        let (one, two_a) = full_add(ones[at], vote(0), vote(1));
        let (one, two_b) = full_add(one, vote(2), vote(3));
        let (two, four_a) = full_add(twos[at], two_a, two_b);
        let (one, two_a) = full_add(one, vote(4), vote(5));
        let (one, two_b) = full_add(one, vote(6), vote(7));
        let (two, four_b) = full_add(two, two_a, two_b);
        (fours[at], carry[at]) = full_add(fours[at], four_a, four_b);
        (ones[at], twos[at]) = (one, two);
    }
}

fn word(block: &[u8; BLOCK_BYTES], at: usize) -> [u8; 8] {
    block.as_chunks().0[at]
}

/// The sum of three bits and its carry, 64 times.
fn full_add(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, a & b | half & c)
}

/// Block `at` of a vote; `padded` with zeros if the vote ends earlier.
fn block_of<'a>(
    vote: &'a [u8],
    at: usize,
    padded: &'a mut [u8; BLOCK_BYTES],
) -> &'a [u8; BLOCK_BYTES] {
    let rest = vote.get(at * BLOCK_BYTES..).unwrap_or_default();
    if let Some(whole) = rest.first_chunk() {
        return whole;
    }
    padded[..rest.len()].copy_from_slice(rest);
    padded[rest.len()..].fill(0);
    padded
}
