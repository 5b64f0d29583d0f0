//! Fires of the chain's timers, as the task that follows the chain reports them to a server.
//!
//! For each fire that matches, a schedule ([`messages::Schedule`](super::messages::Schedule))
//! submits one run: the position to resume from is stored with the run. So fires may be reported
//! again, and must be reported in order.

use super::{
    fire::Fire,
    service::{Service, ServiceError},
};
use std::{future::pending, time::Duration};
use tokio::time::sleep;

/// Number of blocks without matching fires after which the position is stored. After a kill, at
/// most as many blocks are read again.
const STORED_EVERY: u64 = 256;
const PAUSE: Duration = Duration::from_secs(1);

/// Reports the events of a chain to its server. There is one per server.
#[derive(Debug)]
pub struct Schedules {
    service: Service,
    stored: u64,
}

impl Schedules {
    pub(super) fn new(service: Service) -> Self {
        service.has_chain();
        Self { service, stored: 0 }
    }

    /// Starts at `head`, the chain's height, from which on schedules can be added. Returns the
    /// height of the first block whose fires the server needs.
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

    /// The chain has reached `head`. Called before that block's fires are reported.
    pub fn reached(&self, head: u64) {
        self.service.chain_is_at(head);
    }

    /// Reports the fires of the next block, in order. Resolves once the runs for each are stored,
    /// and retries while they cannot be written.
    pub async fn block(&mut self, height: u64, fires: Vec<Fire>) {
        if !fires.is_empty() {
            self.fired(fires).await;
        }
        if height >= self.stored.saturating_add(STORED_EVERY) {
            self.followed(height, None).await;
        }
    }

    /// Reports that the blocks up to this one can no longer be read, so that their fires are
    /// unknown.
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

async fn again(error: &ServiceError) {
    if matches!(error, ServiceError::Stopping) {
        // The server is gone.
        return pending().await;
    }
    tracing::debug!(%error, "schedules wait");
    sleep(PAUSE).await;
}
