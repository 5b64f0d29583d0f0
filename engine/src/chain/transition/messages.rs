//! Messages of actors in Python (spec pvm.md §2): delivered in a later block, once, if what sent
//! them was not undone.
//!
//! The actor that sent a message pays for its delivery as a submitter pays for a callback, at the
//! block's basefees, and at least for the intrinsic cycles of a transaction. A block delivers
//! messages in the order of sending until their cycles exceed a quarter of its capacity; the others
//! wait.

use super::{
    MAX_ERROR_BYTES, Run,
    actors::{self, MESSAGE_HANDLER, PendingCall},
    shortened,
};
use crate::{
    actor::Budget,
    chain::{event::MessageDelivered, state::PendingMessage},
    fees::meter::{CALLBACK_CELLS, CALLBACK_CYCLES, INTRINSIC_CYCLES, MAX_BLOCK_CYCLES},
    primitives::{Cells, Cycles, Wei, keccak256},
    timer::Ids,
};
use std::sync::Arc;

impl Run<'_> {
    /// Delivers messages of earlier blocks, which are the first that wait, as far as this block has
    /// room for them. They come after its transactions, whose cycles the proposer has counted.
    pub(super) fn deliver(&mut self, waiting: &[PendingMessage]) {
        let (mut delivered, mut used) = (0, 0_u64);
        for message in waiting {
            if used > MAX_BLOCK_CYCLES / 4 {
                break;
            }
            used = used.saturating_add(self.deliver_message(delivered as u64, message));
            delivered += 1;
        }
        if delivered > 0 {
            Arc::make_mut(&mut self.state.outbox.0).drain(..delivered);
        }
    }

    /// Returns the cycles used. Each delivery has a hash of its own as its cause, so that ids that
    /// follow from it differ.
    fn deliver_message(&mut self, number: u64, message: &PendingMessage) -> u64 {
        let PendingMessage { from, to, payload, cause } = message;
        let (from, to, height) = (*from, *to, self.height().get());
        let cause =
            keccak256(&[b"message", &cause.0, &height.to_be_bytes(), &number.to_be_bytes()]);
        let most = self.parent.price(CALLBACK_CYCLES, CALLBACK_CELLS);
        let (mut cycles, mut charged) = (INTRINSIC_CYCLES, Wei::ZERO);
        let error = match self.state.debit(from, most) {
            Err(poor) => Some(poor.to_string()),
            Ok(()) => {
                let (place, ids) = (self.place(cause, None), Ids::of_fire(self.height(), cause));
                let (handler, payload) = (MESSAGE_HANDLER.to_owned(), payload.to_vec());
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
                cycles = outcome.usage.cycles().clamp(INTRINSIC_CYCLES, CALLBACK_CYCLES);
                let cells = outcome.usage.cells.min(CALLBACK_CELLS);
                charged = self.parent.price(cycles, cells);
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
