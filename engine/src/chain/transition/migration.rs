//! The migration phase, set by system deployers (spec connectivity.md §7).

use super::{Run, TransactionFailure};
use crate::{
    chain::{event::PhaseChanged, transaction::SetPhase},
    presence::Migration,
    primitives::Address,
};

impl Run<'_> {
    /// Sets the phase from the next block on; setting the present phase has no effect. This block's
    /// draws use the parent's phase.
    pub(super) fn set_phase(
        &mut self,
        sender: Address,
        SetPhase { phase }: SetPhase,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let from = self.state.phase();
        if phase != from {
            let since = self.height().next();
            self.state.migration = Migration { phase, since };
            self.emit(PhaseChanged { from, to: phase });
        }
        Ok(())
    }
}
