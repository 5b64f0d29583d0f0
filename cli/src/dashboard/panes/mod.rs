//! The panes: a folder for each, with its data, its questions, its keys and its picture.

mod accounts;
mod blocks;
mod events;
mod faults;
mod jobs;
mod leases;
pub mod logs;
mod mru;
mod overview;
mod presence;
mod speculation;
mod timers;

use super::pane::Pane;

/// The keys of the tabs, in their order: those of a keyboard's upper row.
pub const TAB_KEYS: [char; 12] = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '0', '-', '='];

/// All panes, in the order of their tabs.
pub const ALL: &[fn() -> Box<dyn Pane>] = &[
    || Box::<overview::Overview>::default(),
    || Box::<blocks::NewestBlocks>::default(),
    || Box::<presence::Presence>::default(),
    || Box::<jobs::Jobs>::default(),
    || Box::<timers::Timers>::default(),
    || Box::<accounts::Accounts>::default(),
    || Box::<faults::Faults>::default(),
    || Box::<speculation::Speculation>::default(),
    || Box::<leases::Leases>::default(),
    || Box::<mru::Mru>::default(),
    || Box::<events::Events>::default(),
    || Box::<logs::Logs>::default(),
];
