//! What is asked of the owner about schedules, and how far their chain is.

use super::{ChainHead, Service, ServiceError, Shared};
use crate::lease::{check, messages::NewSchedule, schedules::Fire};
use std::sync::{MutexGuard, PoisonError};

impl Shared {
    fn chain(&self) -> MutexGuard<'_, ChainHead> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the chain is.
    pub(super) fn chain_head(&self) -> ChainHead {
        *self.chain()
    }
}

impl Service {
    /// There is a chain, and soon it is told how far it is.
    pub fn has_chain(&self) {
        *self.shared.chain() = ChainHead::Unknown;
    }

    /// The chain is at this height. The fires of that block are told afterwards: a schedule
    /// that is made from then on does not count it, one that was made before does.
    pub fn chain_is_at(&self, height: u64) {
        let mut chain = self.shared.chain();
        let known = if let ChainHead::At(known) = *chain { known } else { 0 };
        *chain = ChainHead::At(known.max(height));
    }

    /// Makes a schedule. Its id.
    pub async fn add_schedule(&self, new: NewSchedule) -> Result<String, ServiceError> {
        let actor = check::new_schedule(&new)?;
        self.ask(move |core| core.add_schedule(actor, new)).await
    }

    /// Forgets a schedule. Runs that it made stay.
    pub async fn remove_schedule(&self, id: String) -> Result<(), ServiceError> {
        self.ask(move |core| core.remove_schedule(&id)).await
    }

    /// The first block that a schedule has not looked at all fires of; `None` without a schedule.
    pub async fn schedules_go_on_at(&self) -> Result<Option<u64>, ServiceError> {
        self.ask(|core| Ok(core.schedules_go_on_at())).await
    }

    /// Who makes runs for which of these fires.
    pub async fn due_schedules(
        &self,
        fires: Vec<Fire>,
    ) -> Result<Vec<(String, Fire)>, ServiceError> {
        self.ask(move |core| Ok(core.due_schedules(fires))).await
    }

    /// Hands in the run of a schedule for a fire, once. An error: it has not happened.
    pub async fn scheduled(&self, id: String, fire: Fire) -> Result<(), ServiceError> {
        self.ask(move |core| core.scheduled(&id, fire)).await
    }

    /// No fire up to this block counts that was not told; or, where `missed` says why, those that
    /// were not told are lost.
    pub async fn followed(
        &self,
        height: u64,
        missed: Option<&'static str>,
    ) -> Result<(), ServiceError> {
        self.ask(move |core| core.followed(height, missed)).await
    }
}
