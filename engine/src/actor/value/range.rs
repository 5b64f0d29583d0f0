//! Sequences of integers that are not stored.

/// `start, start + step, …` up to `stop`, which is not part of it. Bounds and step have 32 bits,
/// so that nothing here overflows.
#[derive(Clone, Copy, Debug)]
pub(in crate::actor) struct Range {
    pub(in crate::actor) start: i64,
    pub(in crate::actor) stop: i64,
    pub(in crate::actor) step: i64,
}

impl Range {
    pub(in crate::actor) const fn len(&self) -> i64 {
        let span = if self.step > 0 { self.stop - self.start } else { self.start - self.stop };
        if span <= 0 {
            return 0;
        }
        let step = self.step.abs();
        (span + step - 1) / step
    }

    /// The element at `index`, which must be in range.
    pub(in crate::actor) const fn at(&self, index: i64) -> i64 {
        self.start + index * self.step
    }

    pub(in crate::actor) const fn contains(&self, value: i64) -> bool {
        let within = if self.step > 0 {
            value >= self.start && value < self.stop
        } else {
            value <= self.start && value > self.stop
        };
        within && (value - self.start) % self.step == 0
    }

    pub(in crate::actor) const fn same(&self, other: &Self) -> bool {
        let len = self.len();
        len == other.len()
            && (len == 0 || self.start == other.start)
            && (len <= 1 || self.step == other.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listed(range: Range) -> Vec<i64> {
        let mut all = Vec::new();
        let mut x = range.start;
        while if range.step > 0 { x < range.stop } else { x > range.stop } {
            all.push(x);
            x += range.step;
        }
        all
    }

    proptest! {
        #[test]
        fn is_the_sequence_it_stands_for(
            start in -50i64..50, stop in -50i64..50, step in -7i64..7, other in -7i64..7,
        ) {
            prop_assume!(step != 0 && other != 0);
            let range = Range { start, stop, step };
            let all = listed(range);
            prop_assert_eq!(range.len(), all.len() as i64);
            prop_assert!((0..).zip(&all).all(|(i, x)| range.at(i) == *x));
            prop_assert!((-60..60).all(|x| range.contains(x) == all.contains(&x)));
            let second = Range { start, stop, step: other };
            prop_assert_eq!(range.same(&second), all == listed(second));
        }
    }
}
