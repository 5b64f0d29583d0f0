//! The owner's interface for schedules and for the height of their chain.

use super::{ChainHead, Service, ServiceResult, ServiceShared};
use crate::{check, fire::Fire, messages::NewSchedule};
use std::sync::{MutexGuard, PoisonError};

impl ServiceShared {
    pub(super) fn chain(&self) -> MutexGuard<'_, ChainHead> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    pub fn has_chain(&self) {
        *self.shared.chain() = ChainHead::Unknown;
    }

    /// The chain has reached this height. The fires of that block are reported afterwards: they
    /// count for schedules that exist now, but not for those added from now on.
    pub fn chain_is_at(&self, height: u64) {
        let mut chain = self.shared.chain();
        let known = if let ChainHead::At(known) = *chain { known } else { 0 };
        *chain = ChainHead::At(known.max(height));
    }

    pub async fn add_schedule(&self, new: NewSchedule) -> ServiceResult<String> {
        let actor = check::new_schedule(&new)?;
        self.ask(move |core| core.add_schedule(actor, new)).await
    }

    /// The schedule's runs stay.
    pub async fn remove_schedule(&self, id: String) -> ServiceResult<()> {
        self.ask(move |core| core.remove_schedule(&id)).await
    }

    /// The first block of which a schedule has not processed all fires; `None` without a schedule.
    pub async fn schedules_go_on_at(&self) -> ServiceResult<Option<u64>> {
        self.ask(|core| Ok(core.schedules_go_on_at())).await
    }

    pub async fn due_schedules(&self, fires: Vec<Fire>) -> ServiceResult<Vec<(String, Fire)>> {
        self.ask(move |core| Ok(core.due_schedules(fires))).await
    }

    /// Submits a schedule's run for a fire, once. After an error it has not happened.
    pub async fn scheduled(&self, id: String, fire: Fire) -> ServiceResult<()> {
        self.ask(move |core| core.scheduled(&id, fire)).await
    }

    /// Marks all blocks up to this one as processed: fires that were not reported do not match or,
    /// if `missed` gives a reason, are lost.
    pub async fn followed(&self, height: u64, missed: Option<&'static str>) -> ServiceResult<()> {
        self.ask(move |core| core.followed(height, missed)).await
    }
}
