//! Fires of the chain's timers, as the task that follows the chain tells a server of them.
//!
//! A schedule ([`messages::Schedule`](super::messages::Schedule)) makes a run for each of them that
//! it is about, once: where it goes on is stored with the run. So fires may be told again, and have
//! to be told in their order.

use super::service::{Service, ServiceError};
use cowboy_engine::primitives::{Address, Hash};
use std::{future::pending, time::Duration};
use tokio::time::sleep;

/// Blocks after which it is stored that they were followed, where no fire in them counted: after a
/// kill as many are read again.
const STORED_EVERY: u64 = 256;
/// The pause before the server is told again what it could not write.
const PAUSE: Duration = Duration::from_secs(1);

/// A fire of a timer whose handler succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// The block.
    pub height: u64,
    /// Its place among the fires of the block.
    pub position: u32,
    /// The timer.
    pub timer: Hash,
    /// The timer's owner.
    pub actor: Address,
    /// The handler that ran.
    pub handler: String,
}

impl Fire {
    /// Its place among all fires.
    pub(super) const fn place(&self) -> Place {
        (self.height, self.position)
    }
}

/// A block, and the number of a fire in it.
pub(super) type Place = (u64, u32);

/// Tells a server what happens on its chain. There is one for a server.
#[derive(Debug)]
pub struct Schedules {
    service: Service,
    /// The block until which it is stored what was followed.
    stored: u64,
}

impl Schedules {
    /// From now on the server has a chain.
    pub(super) fn new(service: Service) -> Self {
        service.has_chain();
        Self { service, stored: 0 }
    }

    /// The chain has got to `head`, from which schedules can be made. The first block that the
    /// server has not been told of.
    pub async fn begin(&mut self, head: u64) -> u64 {
        let next = loop {
            match self.service.schedules_go_on_at().await {
                Ok(next) => break next,
                Err(error) => again(&error).await,
            }
        };
        self.service.chain_is_at(head);
        let next = next.unwrap_or(head + 1);
        self.stored = next.saturating_sub(1);
        next
    }

    /// The chain has got to `head`. Said before anything is told of that block.
    pub fn reached(&self, head: u64) {
        self.service.chain_is_at(head);
    }

    /// The fires of the next block, in their order. Resolves once each has its runs; while they
    /// cannot be written, it waits for that.
    pub async fn block(&mut self, height: u64, fires: Vec<Fire>) {
        if !fires.is_empty() {
            self.fired(fires).await;
        }
        if height >= self.stored.saturating_add(STORED_EVERY) {
            self.followed(height, None).await;
        }
    }

    /// The blocks up to this one cannot be read any more: what fired in them is not known.
    pub async fn missed(&mut self, height: u64) {
        let reason = "the chain no longer keeps the blocks up to this one, nor what fired in them";
        tracing::warn!(height, "schedules have missed blocks that are no longer kept");
        self.followed(height, Some(reason)).await;
    }

    async fn fired(&self, fires: Vec<Fire>) {
        let due = loop {
            match self.service.due_schedules(fires.clone()).await {
                Ok(due) => break due,
                Err(error) => again(&error).await,
            }
        };
        for (schedule, fire) in due {
            while let Err(error) = self.service.scheduled(schedule.clone(), fire.clone()).await {
                again(&error).await;
            }
        }
    }

    async fn followed(&mut self, height: u64, missed: Option<&'static str>) {
        while let Err(error) = self.service.followed(height, missed).await {
            again(&error).await;
        }
        self.stored = height;
    }
}

/// Waits until the server may be told again.
async fn again(error: &ServiceError) {
    if matches!(error, ServiceError::Stopping) {
        // The server is gone.
        return pending().await;
    }
    tracing::debug!(%error, "schedules wait");
    sleep(PAUSE).await;
}
