//! Transactions about timers (spec timers.md §1, §3).
//!
//! An actor's timers are scheduled, extended and cancelled by the actor (see `actors`) and by its
//! deployer; a system deployer may cancel and extend any timer. Parameters are read once per block,
//! so a change by a transaction applies from the next block on.

use super::{Run, TransactionFailure, actors::FailureKind};
use crate::{
    chain::State,
    primitives::{Address, Hash, Height},
    timer::{Ids, Timer, TimerError, TimerRequest},
};

impl Run<'_> {
    pub(super) fn schedule_timer(
        &mut self,
        sender: Address,
        request: &TimerRequest,
        ids: &Ids,
    ) -> Result<(), TransactionFailure> {
        let actor = request.actor;
        let Some(found) = self.state.actor(&actor) else {
            return Err(TransactionFailure::Actors(FailureKind::UnknownActor(actor).into()));
        };
        if found.deployer != sender {
            return Err(TimerError::Unauthorized { who: sender, actor }.into());
        }
        let admitted = self.terms.admit(request.clone(), Some(sender))?;
        ids.promise(&admitted.timer)?;
        let taken = |id: &Hash| self.state.timers.queue.contains(id);
        let limit = self.terms.config.max_timers_per_actor;
        let id = ids
            .next(&actor, request.height, &request.payload, taken)
            .ok_or(TimerError::TooManyTimers { actor, limit })?;
        let mut events = Vec::new();
        self.state.schedule_timer(&self.terms, id, admitted, &mut events)?;
        self.emit_all(events);
        Ok(())
    }

    pub(super) fn cancel_timer(
        &mut self,
        sender: Address,
        id: &Hash,
    ) -> Result<(), TransactionFailure> {
        let may = |state: &State, timer: &Timer| {
            timer.fee_payer == sender || state.deployed(sender, timer)
        };
        let cancelled = self.state.cancel_timer(id, sender, may)?;
        self.emit(cancelled);
        Ok(())
    }

    pub(super) fn extend_timer(
        &mut self,
        sender: Address,
        id: &Hash,
        expires_at: Height,
    ) -> Result<(), TransactionFailure> {
        let may = |state: &State, timer: &Timer| state.deployed(sender, timer);
        let extended = self.state.extend_timer(&self.terms, (id, expires_at), sender, may)?;
        self.emit(extended);
        Ok(())
    }

    /// A timer that is already gone is not an error here: an emergency cancellation may come late.
    pub(super) fn system_cancel_timer(
        &mut self,
        sender: Address,
        id: &Hash,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        match self.state.cancel_timer(id, sender, |_, _| true) {
            Ok(cancelled) => self.emit(cancelled),
            Err(TimerError::UnknownTimer(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    pub(super) fn system_extend_timer(
        &mut self,
        sender: Address,
        id: &Hash,
        expires_at: Height,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let any = |_: &State, _: &Timer| true;
        let extended = self.state.extend_timer(&self.terms, (id, expires_at), sender, any)?;
        self.emit(extended);
        Ok(())
    }
}
