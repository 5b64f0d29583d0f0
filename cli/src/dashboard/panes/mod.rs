//! The panes: a folder for each, with its data, its questions, its keys and its picture.

mod events;
mod jobs;
mod leases;
pub mod logs;
mod mru;
mod overview;
mod presence;
mod speculation;
mod timers;

use super::pane::Pane;

/// Requests at a time for what a pane still lacks.
const AT_A_TIME: usize = 8;

/// All panes, in the order of their tabs.
pub const ALL: &[fn() -> Box<dyn Pane>] = &[
    || Box::<overview::Overview>::default(),
    || Box::<presence::Presence>::default(),
    || Box::<timers::Timers>::default(),
    || Box::<jobs::Jobs>::default(),
    || Box::<mru::Mru>::default(),
    || Box::<speculation::Speculation>::default(),
    || Box::<leases::Leases>::default(),
    || Box::<events::Events>::default(),
    || Box::<logs::Logs>::default(),
];
