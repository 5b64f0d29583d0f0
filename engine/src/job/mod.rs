//! System actors 0x02 and 0x03: jobs, who may do them, who is drawn, whose result counts
//! (spec jobs.md §2–5).

pub mod decimal;
pub mod document;
pub mod filter;
pub mod json;
pub mod mru;
pub mod schema;
pub mod selection;
pub mod spec;
pub mod state;
pub mod verification;
pub mod work;

pub use mru::MruRecord;
pub use selection::{Favoured, Selection};
