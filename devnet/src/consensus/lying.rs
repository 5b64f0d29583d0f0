//! A validator's view of the runners, falsified in its votes as the devnet's faults require.

use super::presence::RunnerView;
use crate::faults::Tap;
use cowboy_engine::{chain::State, presence::Bitmap, primitives::Height, registry::Order};
use std::sync::Arc;

/// A view behind a validator's tap.
pub struct Lying {
    pub view: Arc<dyn RunnerView>,
    pub tap: Tap,
}

impl RunnerView for Lying {
    fn presence(&self, height: Height, state: &State, order: &Order) -> Bitmap {
        self.tap.vote(order, self.view.presence(height, state, order))
    }
}
