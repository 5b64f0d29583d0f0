//! Pseudo-random numbers from a seed, and nearly valid bytes.

/// Pseudo-random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound` − 1.
    pub const fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub const fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// An entry of a corpus with a few random changes.
    pub fn mutated(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.pick(corpus).clone();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(9) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = self.next() as u8,
                // Boundary values of lengths, tags and counts.
                2 if at < bytes.len() => {
                    bytes[at] = *self.pick(&[0x00, 0x7f, 0x80, 0xff, 0x1b, 0x5b, 0x9f, 0xbf]);
                }
                3 => bytes.insert(at, self.next() as u8),
                4 if at < bytes.len() => drop(bytes.remove(at)),
                5 => bytes.truncate(at),
                6 => {
                    let end = at + self.below(bytes.len() - at + 1);
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
                7 => {
                    let other = self.pick(corpus).clone();
                    let from = self.below(other.len() + 1);
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                }
                _ => {
                    let many = self.below(64);
                    let some = self.bytes(many);
                    bytes.splice(at..at, some);
                }
            }
        }
        bytes
    }
}
