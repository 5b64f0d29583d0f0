//! Presence of runners: what votes say about it and what the chain concludes (spec connectivity.md
//! §1, §3–5).
//!
//! A validator's own observations are its [`LocalView`]. Each finalization vote carries a
//! [`Bitmap`] of it over the registry; [`canonical()`] counts the votes of one certificate into
//! P(H), a bitmap that every validator derives identically and none stores. [`subset`] determines
//! which validators a runner connects to, and [`Phase`] what presence is used for. The timeouts are
//! governed: [`Connectivity`].

mod bit_counts;
pub mod bitmap;
pub mod canonical;
pub mod connectivity;
pub mod feasibility;
pub mod phase;
pub mod subset;
pub mod view;

pub use bitmap::{Bitmap, BitmapError, CAPACITY};
pub use canonical::{ThresholdRule, canonical};
pub use connectivity::Connectivity;
pub use phase::{Migration, Phase, PhaseError};
pub use view::{LocalView, Unmet};
