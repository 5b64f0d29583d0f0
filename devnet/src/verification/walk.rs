//! A walk from genesis along the chain that a node serves.

use super::{
    fault::Fault,
    replay::{Replay, ReplayedBlock},
    root::Root,
};
use crate::{
    client::{Client, ClientError, EventStream},
    types::{ErrorCode, ErrorDetail, EvidenceQuery, RawBlock},
};
use cowboy_engine::{chain::GenesisError, primitives::Height};
use std::{collections::VecDeque, time::Duration};
use tokio::time::timeout;

/// How long a walk waits for a block that proves the last one final.
const PATIENCE: Duration = Duration::from_secs(20);
/// Consecutive requests at the head without a new block.
const WAITS: u32 = 32;

/// Why a verification failed. A lie of the node is a [`Fault`].
#[derive(Debug, thiserror::Error)]
pub enum VerificationError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("{}", .0.message)]
    Gone(ErrorDetail),
    #[error("{0}, within {secs} s", secs = PATIENCE.as_secs())]
    Unproved(Fault),
    #[error("task `{task}` of pipeline {pipeline} is {status}: no block has a proof of it")]
    NotCompleted { task: String, pipeline: u64, status: String },
    #[error("job {job} has no committee: it is {status}")]
    NoCommittee { job: String, status: String },
}

/// A walk along the chain of one node, from genesis.
#[derive(Debug)]
pub struct Walk<'a> {
    client: &'a Client,
    replay: Replay,
    page: VecDeque<RawBlock>,
    blocks: Option<EventStream>,
    /// Consecutive answers without a block.
    empty: u32,
    /// All answers without a block.
    waited: u32,
}

impl<'a> Walk<'a> {
    pub fn new(client: &'a Client, root: &Root) -> Result<Self, VerificationError> {
        let replay = Replay::new(&root.genesis)?;
        Ok(Self { client, replay, page: VecDeque::new(), blocks: None, empty: 0, waited: 0 })
    }

    pub const fn replay(&self) -> &Replay {
        &self.replay
    }

    pub fn height(&self) -> Height {
        self.replay.state().height()
    }

    /// Takes the evidence of one more block; returns the blocks that it proves final. At the head
    /// it waits for the next block.
    pub async fn next(&mut self) -> Result<Vec<ReplayedBlock>, VerificationError> {
        loop {
            if let Some(raw) = self.page.pop_front() {
                return Ok(self.replay.push(&raw)?);
            }
            let wants = self.replay.wants().get();
            let query = EvidenceQuery { from: Some(wants), limit: None };
            match self.client.evidence_page(&query).await {
                Ok(page) if !page.blocks.is_empty() => {
                    self.page = page.blocks.into();
                    self.empty = 0;
                }
                Ok(_) => self.wait().await?,
                Err(ClientError::Refused(detail)) => match detail.code {
                    // It is not final yet, at this node or any other.
                    ErrorCode::NotFound | ErrorCode::Unavailable => self.wait().await?,
                    ErrorCode::Gone => return Err(VerificationError::Gone(detail)),
                    _ => return Err(ClientError::Refused(detail).into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn wait(&mut self) -> Result<(), VerificationError> {
        self.empty += 1;
        self.waited = self.waited.saturating_add(1);
        let blocks = self.blocks.get_or_insert_with(|| self.client.follow(None));
        match timeout(PATIENCE, blocks.next()).await {
            Ok(notice) if self.empty <= WAITS => notice.map(drop).map_err(Into::into),
            _ => Err(self.unproved()),
        }
    }

    fn unproved(&self) -> VerificationError {
        let height = self.replay.wants();
        let fault = self.replay.unproved();
        let kind = super::FaultKind::Unproved(0);
        VerificationError::Unproved(fault.unwrap_or(Fault { height, kind }))
    }

    /// Fails when a block that the node calls final has not come after more than [`WAITS`] waits:
    /// the node lies, and the walk would follow the chain for as long as it grows.
    pub(super) fn arrives(&self) -> Result<(), VerificationError> {
        if self.waited > WAITS { Err(self.unproved()) } else { Ok(()) }
    }
}
