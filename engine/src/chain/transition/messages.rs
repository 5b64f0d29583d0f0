//! Messages of actors in Python (spec pvm.md §2): delivered in a later block, once, if what sent
//! them was not undone.
//!
//! The actor that sent a message pays for its delivery as a submitter pays for a callback, at the
//! block's basefees. A block delivers messages in the order of sending until their cycles exceed a
//! quarter of its capacity; the others wait.

use super::{
    MAX_ERROR_BYTES, Run,
    actors::{self, MESSAGE_HANDLER, PendingCall},
    callbacks::{CALLBACK_CELLS, CALLBACK_CYCLES},
    shortened,
};
use crate::{
    actor::Budget,
    chain::{
        event::MessageDelivered,
        state::{PendingMessage, State},
    },
    fees::meter::MAX_BLOCK_CYCLES,
    primitives::{Cells, Cycles, Wei},
    timer::Ids,
};
use std::sync::Arc;

/// Maximum number of messages that wait, of all actors.
pub(super) const MAX_MESSAGES: usize = 65_536;

/// The most that a delivery may cost at the basefees of `state`'s next block.
pub(super) fn most(state: &State) -> Wei {
    price(state, CALLBACK_CYCLES, CALLBACK_CELLS)
}

fn price(state: &State, cycles: u64, cells: u64) -> Wei {
    let cells = state.basefee_cell.saturating_mul(u128::from(cells));
    state.basefee_cycle.saturating_mul(u128::from(cycles)).saturating_add(cells)
}

impl Run<'_> {
    /// Delivers the messages that this block has room for. Those that they cause wait for the next.
    pub(super) fn deliver_messages(&mut self) {
        let waiting = self.state.outbox.0.len();
        let mut used = 0_u64;
        for _ in 0..waiting {
            if used > MAX_BLOCK_CYCLES / 4 {
                break;
            }
            let message = Arc::make_mut(&mut self.state.outbox.0).remove(0);
            used = used.saturating_add(self.deliver_message(message));
        }
    }

    /// Returns the cycles used.
    fn deliver_message(&mut self, message: PendingMessage) -> u64 {
        let PendingMessage { from, to, payload, cause } = message;
        let most = most(self.parent);
        let (mut cycles, mut charged) = (0, Wei::ZERO);
        let error = match self.state.debit(from, most) {
            Err(poor) => Some(poor.to_string()),
            Ok(()) => {
                let (place, ids) = (self.place(cause, None), Ids::of_fire(self.height(), cause));
                let handler = MESSAGE_HANDLER.to_owned();
                let first = PendingCall { sender: from, to, handler, payload, value: Wei::ZERO };
                let budget = Budget { cycles: CALLBACK_CYCLES, cells: CALLBACK_CELLS };
                let before = self.state.clone();
                let mut done = actors::call(&mut self.state, (&place, &ids), first, budget);
                self.show(&mut done);
                let (events, outcome, ended) = done.told();
                let error = match ended {
                    Ok(()) => {
                        self.emit_all(events);
                        None
                    }
                    Err(failure) => {
                        self.state = before;
                        Some(shortened(failure.to_string(), MAX_ERROR_BYTES))
                    }
                };
                cycles = outcome.usage.cycles().min(CALLBACK_CYCLES);
                let cells = outcome.usage.cells.min(CALLBACK_CELLS);
                charged = price(self.parent, cycles, cells);
                let rest = most.saturating_sub(charged);
                self.state.credit(from, rest).expect("what was set aside fits again");
                self.state.burned.callbacks = self.state.burned.callbacks.saturating_add(charged);
                self.cycles = self.cycles.saturating_add(Cycles::new(cycles));
                self.cells = self.cells.saturating_add(Cells::new(cells));
                error
            }
        };
        self.emit(MessageDelivered { sender: from, actor: to, cycles, charged, error });
        cycles
    }
}
