//! Shrinking: a shorter list of choices, or smaller ones, with which the test fails in the same
//! way.
//!
//! Simpler is shorter, then lexicographically smaller ([`Recorded::is_simpler_than`]). The passes
//! repeat until none makes progress, as in Hypothesis (MacIver, Donaldson: "Test-case reduction
//! via test-case generation", ECOOP 2020): leave out elements, lower choices, swap elements, and
//! move amounts between integers that a test may add up. Every step is simpler than the last, so
//! this ends; a bound on the attempts ends it soon.

use crate::{
    actor::input::Recorded,
    primitives::{Hash, keccak256},
};
use std::{collections::BTreeSet, ops::Range};

/// Maximum number of inputs that one failure is shrunk with.
const MAX_ATTEMPTS: u32 = 2_000;
/// Numbers of neighbouring elements that are left out together.
const RUNS: [usize; 5] = [256, 64, 16, 4, 1];
/// Largest step by which an integer is lowered when halving it does not do, for tests that depend
/// on remainders.
const MAX_STEP: u128 = 8;

impl Recorded {
    /// Whether these choices are fewer, or as many and lexicographically smaller.
    pub(super) fn is_simpler_than(&self, other: &Self) -> bool {
        let (a, b) = (&self.choices, &other.choices);
        (a.len(), a) < (b.len(), b)
    }
}

/// Shrinks by means of `attempt`, which takes choices and the simplest failing input so far, and
/// returns what the choices made if that is simpler and fails in the same way.
pub(super) struct Shrinker<F> {
    best: Recorded,
    attempt: F,
    left: u32,
    shrinks: u64,
    /// Hashes of the lists that did not do.
    failed: BTreeSet<Hash>,
}

impl<F: FnMut(&[u128], &Recorded) -> Option<Recorded>> Shrinker<F> {
    pub(super) const fn new(best: Recorded, attempt: F) -> Self {
        Self { best, attempt, left: MAX_ATTEMPTS, shrinks: 0, failed: BTreeSet::new() }
    }

    /// Shrinks as far as it can. Returns the number of steps.
    pub(super) fn finish(mut self) -> u64 {
        loop {
            let before = self.shrinks;
            for run in RUNS {
                self.leave_out(run);
            }
            self.lower_each();
            self.borrow();
            self.step_down();
            self.lower_alike();
            self.swap();
            self.move_amounts();
            if self.shrinks == before || self.left == 0 {
                return self.shrinks;
            }
        }
    }

    /// Tries a list of choices, and keeps it if it is simpler and fails in the same way.
    fn keeps(&mut self, choices: &[u128]) -> bool {
        if self.left == 0 || choices == self.best.choices {
            return false;
        }
        let bytes: Vec<u8> = choices.iter().flat_map(|choice| choice.to_be_bytes()).collect();
        let hash = keccak256(&[&bytes]);
        if self.failed.contains(&hash) {
            return false;
        }
        self.left -= 1;
        match (self.attempt)(choices, &self.best) {
            Some(made) => {
                self.best = made;
                self.shrinks += 1;
                true
            }
            None => {
                self.failed.insert(hash);
                false
            }
        }
    }

    /// Tries the best choices with others at these indices.
    fn keeps_with(&mut self, changes: &[(usize, u128)]) -> bool {
        let mut choices = self.best.choices.clone();
        for (index, choice) in changes {
            match choices.get_mut(*index) {
                Some(place) => *place = *choice,
                None => return false,
            }
        }
        self.keeps(&choices)
    }

    fn at(&self, index: usize) -> u128 {
        self.best.choices.get(index).copied().unwrap_or(0)
    }

    /// Leaves out `run` elements that follow each other.
    fn leave_out(&mut self, run: usize) {
        let mut index = 0;
        while let Some(first) = self.best.elements.get(index).cloned() {
            let mut end = Some(first.end);
            let elements = &self.best.elements;
            for _ in 1..run {
                let next = |at: usize| elements.iter().find(|element| element.start == at);
                end = end.and_then(next).map(|element| element.end);
            }
            let Some(end) = end else {
                index += 1;
                continue;
            };
            let mut choices = self.best.choices.clone();
            choices.drain(first.start..end.min(choices.len()));
            // The elements that follow take the place of those that are gone.
            if !self.keeps(&choices) {
                index += 1;
            }
        }
    }

    /// Lowers each choice as far as the test fails, by halving.
    fn lower_each(&mut self) {
        let mut index = 0;
        while index < self.best.choices.len() {
            self.lower(&[index]);
            index += 1;
        }
    }

    /// Lowers choices that are equal, together.
    fn lower(&mut self, indices: &[usize]) {
        let Some(first) = indices.first().copied() else { return };
        let value = self.at(first);
        let changed = |to: u128| indices.iter().map(|index| (*index, to)).collect::<Vec<_>>();
        if value == 0 || self.keeps_with(&changed(0)) {
            return;
        }
        let (mut passes, mut fails) = (0, value);
        while fails - passes > 1 {
            let middle = passes + (fails - passes) / 2;
            if self.keeps_with(&changed(middle)) {
                fails = middle;
            } else {
                passes = middle;
            }
        }
    }

    /// Lowers the high half of integers by one, in exchange for the largest low half: of each, and
    /// of those that are equal together.
    fn borrow(&mut self) {
        for index in self.best.integers.clone() {
            let (high, low) = (self.at(index), self.at(index + 1));
            if high == 0 {
                continue;
            }
            let is_alike = |at: &usize| (self.at(*at), self.at(*at + 1)) == (high, low);
            let alike: Vec<_> = self.best.integers.iter().copied().filter(is_alike).collect();
            for highs in [vec![index], alike] {
                let lows: Vec<_> = highs.iter().map(|at| at + 1).collect();
                let lowered = highs.iter().map(|at| (*at, high - 1));
                let raised = lows.iter().map(|at| (*at, u128::MAX));
                let changes: Vec<_> = lowered.chain(raised).collect();
                if self.keeps_with(&changes) {
                    self.lower(&highs);
                    self.lower(&lows);
                    break;
                }
            }
        }
    }

    /// Lowers the low half of each integer by small steps, and by multiples of one that does.
    fn step_down(&mut self) {
        for low in self.best.integers.clone().into_iter().map(|index| index + 1) {
            for step in 1..=MAX_STEP {
                let mut stride = step;
                while self.lowers_by(low, stride) {
                    stride *= 2;
                }
                while stride > step {
                    stride /= 2;
                    self.lowers_by(low, stride);
                }
            }
        }
    }

    fn lowers_by(&mut self, index: usize, stride: u128) -> bool {
        let lower = self.at(index).checked_sub(stride);
        lower.is_some_and(|lower| self.keeps_with(&[(index, lower)]))
    }

    /// Swaps neighbouring elements, so that the simpler one comes first.
    fn swap(&mut self) {
        for first in self.best.elements.clone() {
            let follows = |element: &&Range<usize>| element.start == first.end;
            let Some(second) = self.best.elements.iter().find(follows).cloned() else { continue };
            let mut choices = self.best.choices.clone();
            if let Some(both) = choices.get_mut(first.start..second.end) {
                both.rotate_left(first.len());
                self.keeps(&choices);
            }
        }
    }

    /// Lowers choices of the same value together: a test may compare them.
    fn lower_alike(&mut self) {
        let values: BTreeSet<u128> = self.best.choices.iter().copied().filter(|v| *v > 1).collect();
        for value in values {
            let alike = |(index, choice): (usize, &u128)| (*choice == value).then_some(index);
            let indices: Vec<_> = self.best.choices.iter().enumerate().filter_map(alike).collect();
            if indices.len() > 1 {
                self.lower(&indices);
            }
        }
    }

    /// Moves as much as possible from an integer to the next one: a test may add them up.
    fn move_amounts(&mut self) {
        let pairs: Vec<_> = self.best.integers.windows(2).map(|pair| (pair[0], pair[1])).collect();
        for (from, to) in pairs {
            let small = self.at(from) == 0 && self.at(to) == 0;
            let (from, to) = (from + 1, to + 1);
            let (amount, other) = (self.at(from), self.at(to));
            let Some(sum) = amount.checked_add(other).filter(|_| small && amount > 0) else {
                continue;
            };
            if self.keeps_with(&[(from, 0), (to, sum)]) {
                continue;
            }
            let (mut passes, mut fails) = (0, amount);
            while fails - passes > 1 {
                let middle = passes + (fails - passes) / 2;
                if self.keeps_with(&[(from, middle), (to, sum - middle)]) {
                    fails = middle;
                } else {
                    passes = middle;
                }
            }
        }
    }
}
