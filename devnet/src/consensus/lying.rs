//! A validator's view of the runners, of which its votes say what the devnet's faults make of it.

use super::presence::RunnerView;
use crate::faults::Tap;
use cowboy_engine::{chain::State, presence::Bitmap, primitives::Height, registry::Order};
use std::sync::Arc;

/// A view behind a validator's tap.
pub struct Lying {
    /// What the validator sees.
    pub view: Arc<dyn RunnerView>,
    /// The validator's tap.
    pub tap: Tap,
}

impl RunnerView for Lying {
    fn presence(&self, height: Height, state: &State, order: &Order) -> Bitmap {
        self.tap.vote(order, self.view.presence(height, state, order))
    }
}
