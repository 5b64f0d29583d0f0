//! Who is reachable: what votes say about it and what the chain concludes (spec connectivity.md
//! §1, §3–5).
//!
//! What a validator sees by itself is its [`LocalView`]. Each finalization vote carries a
//! [`Bitmap`] of it over the registry; [`canonical`] counts the votes of one certificate into
//! P(H), the bitmap that every validator derives alike and nobody stores. Which validators a
//! runner is connected to is [`subset`]'s to say, and what presence is used for [`Phase`]'s. How
//! long each thing counts is governed: [`Connectivity`].

pub mod bitmap;
pub mod connectivity;
pub mod feasibility;
pub mod phase;
pub mod subset;
mod tally;
pub mod threshold;
pub mod view;

pub use bitmap::{Bitmap, BitmapError, CAPACITY};
pub use connectivity::Connectivity;
pub use phase::{Migration, Phase, PhaseError};
pub use threshold::{ThresholdRule, canonical};
pub use view::{LocalView, Unmet};
