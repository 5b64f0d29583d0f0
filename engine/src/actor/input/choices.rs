//! Choices: the numbers that an input is made of, drawn from a seed or repeated from a list.

use std::ops::Range;

/// Maximum number of choices that an input keeps. Any further one is zero, with which every
/// collection ends.
const MAX_CHOICES: usize = 8_192;

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
#[derive(Clone, Debug)]
pub(super) struct Splitmix(u64);

impl Splitmix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let len = list.len() as u64;
        if len == 0 { None } else { list.get(self.below(len) as usize) }
    }
}

/// The choices of an input, and which of them belong together.
#[derive(Clone, Debug, Default)]
pub(in crate::actor) struct Recorded {
    pub(in crate::actor) choices: Vec<u128>,
    /// Choices of an element of a collection, which can be left out: from the one that says that an
    /// element follows to the element's last.
    pub(in crate::actor) elements: Vec<Range<usize>>,
    /// Indices of integers: of the high half of each, which the low half and the sign follow.
    pub(in crate::actor) integers: Vec<usize>,
}

/// A source of choices, which records those that it gives.
#[derive(Debug)]
pub(super) struct Choices<'a> {
    /// Absent when choices are repeated.
    random: Option<Splitmix>,
    repeated: &'a [u128],
    pub(super) made: Recorded,
}

impl<'a> Choices<'a> {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Some(Splitmix(seed)), repeated: &[], made: Recorded::default() }
    }

    pub(super) fn replayed(choices: &'a [u128]) -> Self {
        Self { random: None, repeated: choices, made: Recorded::default() }
    }

    /// Randomness for suggestions, if the input is new.
    pub(super) const fn random(&mut self) -> Option<&mut Splitmix> {
        self.random.as_mut()
    }

    /// The next choice, from 0 to `most`: `suggested` if the input is new.
    pub(super) fn choose(&mut self, most: u128, suggested: u128) -> u128 {
        let index = self.made.choices.len();
        if index >= MAX_CHOICES {
            return 0;
        }
        let choice = match self.random {
            Some(_) => suggested,
            None => self.repeated.get(index).copied().unwrap_or(0),
        };
        self.made.choices.push(choice.min(most));
        choice.min(most)
    }

    pub(super) const fn count(&self) -> usize {
        self.made.choices.len()
    }
}
