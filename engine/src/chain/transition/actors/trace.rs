//! Every call that a transaction makes, recorded for dry runs.

use super::{Calls, FailureKind, PendingCall, Traced};
use crate::{
    actor::{Profile, Usage, profile::MOST_SPOTS},
    chain::{
        actors::{Language, StoreKey},
        state::State,
    },
    primitives::{Address, Wei},
};

/// Calls that are recorded; later ones are left out.
const MOST: usize = 2_048;

/// A call and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// The position of the call that made it; absent for the first one.
    pub by: Option<usize>,
    /// Whether it ran inside that call; otherwise it was a message, delivered afterwards.
    pub inside: bool,
    pub sender: Address,
    pub actor: Address,
    pub language: Language,
    pub handler: String,
    pub payload: Vec<u8>,
    pub value: Wei,
    /// With the usage of the calls inside it.
    pub usage: Usage,
    /// What it returned, or why it failed.
    pub result: Result<Vec<u8>, String>,
    /// Changes to the actor's own store; empty if the call failed, or ran inside one that failed.
    pub changes: Vec<StoreChange>,
    /// What each of its lines spent, if that is recorded; absent for actors in Python.
    pub profile: Option<Profile>,
}

/// A key of an actor's store, with its value before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreChange {
    pub actor: Address,
    pub language: Language,
    pub key: StoreKey,
    /// JSON, or any bytes if the actor is in Python; absent if the key had no value.
    pub before: Option<Vec<u8>>,
    /// Likewise; absent if the key has no value.
    pub after: Option<Vec<u8>>,
}

impl StoreChange {
    /// The change of a key between two states; `None` if its value is the same.
    pub fn between(before: &State, after: &State, actor: Address, key: &StoreKey) -> Option<Self> {
        let stored = |state: &State| state.stored_at(&actor, key.clone()).map(<[u8]>::to_vec);
        let language = after.language(&actor);
        let (before, after) = (stored(before), stored(after));
        let key = key.clone();
        (before != after).then_some(Self { actor, language, key, before, after })
    }
}

/// A recorded call that runs.
pub(super) struct Tracing {
    position: usize,
    before: State,
    /// Cells that were used before it.
    cells: u64,
}

impl Calls<'_> {
    /// Records that a call begins, if calls are recorded.
    pub(super) fn trace(&mut self, call: &PendingCall, language: Language) -> Option<Tracing> {
        if self.place.traced == Traced::Nothing || self.done.calls.len() >= MOST {
            return None;
        }
        let position = self.done.calls.len();
        let outer = self.tracing.last().copied();
        self.done.calls.push(TracedCall {
            by: outer.or(self.cause),
            inside: outer.is_some(),
            sender: call.sender,
            actor: call.to,
            language,
            handler: call.handler.clone(),
            payload: call.payload.clone(),
            value: call.value,
            usage: Usage::default(),
            result: Ok(Vec::new()),
            changes: Vec::new(),
            profile: None,
        });
        self.tracing.push(position);
        Some(Tracing { position, before: self.state.clone(), cells: self.done.usage.cells })
    }

    /// Whether the lines of the next call are recorded. The spots of all profiles of a transaction
    /// are limited as well: later calls have no profile.
    pub(super) fn records_lines(&self) -> bool {
        self.place.traced == Traced::Lines && self.spots < MOST_SPOTS
    }

    /// Records how a call ended.
    pub(super) fn traced(
        &mut self,
        tracing: Option<Tracing>,
        (usage, returned): &(Usage, Result<Vec<u8>, FailureKind>),
    ) {
        let profile = self.profile.take();
        let Some(Tracing { position, before, cells }) = tracing else { return };
        self.spots += profile.as_ref().map_or(0, |profile| profile.spots.len());
        self.tracing.pop();
        let cells = (self.done.usage.cells + usage.cells).saturating_sub(cells);
        let actor = self.done.calls[position].actor;
        let changes = match returned {
            Err(_) => {
                // What ran inside it is undone as well.
                self.done.calls[position..].iter_mut().for_each(|call| call.changes.clear());
                Vec::new()
            }
            Ok(_) => {
                let written = self.done.written.iter().filter(|(of, _)| *of == actor);
                written
                    .filter_map(|(_, key)| StoreChange::between(&before, self.state, actor, key))
                    .collect()
            }
        };
        let call = &mut self.done.calls[position];
        call.usage = Usage { cells, ..*usage };
        call.result = returned.clone().map_err(|failure| failure.to_string());
        call.changes = changes;
        call.profile = profile;
    }
}
