//! Inputs of property tests: arguments that are generated from the types of a test's parameters.
//!
//! A generator makes a list of [choices](choices), numbers with a bound each, and reads the
//! arguments from it. All randomness is in the list: the same list gives the same arguments, and a
//! list with smaller numbers, or fewer of them, gives simpler arguments of the same types. So
//! whatever can be generated can be shrunk ([`super::property`]), and no type needs code for that.
//!
//! New choices come from a seed alone. They prefer values that break programs: zero, limits of
//! integer types and their neighbours, what the module's source itself mentions, values that
//! occurred before in the same input, empty collections, and text that needs escapes.

mod choices;
mod datum;
mod generate;
mod shape;

pub(super) use choices::Recorded;
pub use datum::TestInput;
pub(super) use generate::Vocabulary;
pub(super) use shape::{SUPPORTED, Shape};

use choices::Choices;
use generate::InputGenerator;

/// The parameters of a property test, without the context.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    /// Names and types, in their order.
    pub(super) listed: Vec<(String, Shape)>,
    pub(super) vocabulary: Vocabulary,
}

impl Parameters {
    /// A new input. Collections are at most about `size` long.
    pub(super) fn drawn(&self, seed: u64, size: u64) -> (TestInput, Recorded) {
        self.generated(Choices::new(seed), size)
    }

    /// The input that these choices give. Choices that are too large for their bound are lowered to
    /// it, and those that are missing are zero.
    pub(super) fn replayed(&self, choices: &[u128]) -> (TestInput, Recorded) {
        self.generated(Choices::replayed(choices), 0)
    }

    fn generated(&self, choices: Choices<'_>, size: u64) -> (TestInput, Recorded) {
        let mut generator = InputGenerator::new(choices, &self.vocabulary, size);
        let data = self.listed.iter().map(|(_, shape)| generator.datum(shape)).collect();
        (TestInput(data), generator.made())
    }
}

#[cfg(test)]
mod tests;
