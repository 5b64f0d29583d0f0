//! A devnet under load whose validators crash and return. Every block is checked.

use crate::{
    cluster::{Cluster, ClusterError},
    devnet::{BLOCK_TIME, Devnet},
    invariant::{Invariants, Violation},
};
use commonware_runtime::{Clock as _, Supervisor as _, deterministic::Context};
use cowboy_devnet::{
    chain::ledger::{Alarm, ExecutedBlock},
    sample::{key, spec},
    storage::StorageError,
};
use cowboy_engine::{
    chain::{Payload, transaction::Transfer},
    primitives::{Hash, Height, Wei},
};
use rand::RngExt as _;
use std::{sync::Arc, time::Duration};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};

const STEP: Duration = Duration::from_millis(125);

/// The size, length and faults of a simulated devnet.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub validators: usize,
    pub runners: usize,
    pub blocks: u64,
}

/// The outcome of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Hash over the event log of the longest-running validator: blocks, roots, receipts, events,
    /// P.
    pub log: Hash,
    /// Number of jobs with a final result.
    pub verified: usize,
    pub submitted: usize,
    /// Number of blocks with their parent's certificate, and of all blocks, from height 2 on.
    pub certified: (usize, usize),
}

/// Why a scenario failed.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Violation(#[from] Violation),
    /// There was no block for a long time although enough validators run.
    #[error("stuck at {0}")]
    Stuck(Height),
    #[error("validators disagree at {0}")]
    Disagreement(Height),
    #[error("{0} times a validator has cut off another for breaking the protocol")]
    CutOff(usize),
    #[error(transparent)]
    Alarm(#[from] Alarm),
    #[error("a validator has seen {0} contradictions between final blocks")]
    Contradictions(u64),
    #[error("job {0} is open past its deadline")]
    Overdue(Hash),
}

impl ScenarioError {
    /// The name of the broken invariant; `None` if the scenario could not be played.
    pub const fn invariant(&self) -> Option<&'static str> {
        match self {
            Self::Cluster(_) | Self::Storage(_) => None,
            Self::Violation(violation) => Some(violation.invariant()),
            Self::Stuck(_) => Some("liveness"),
            Self::Disagreement(_) => Some("agreement"),
            Self::CutOff(_) => Some("trust"),
            Self::Alarm(_) => Some("roots"),
            Self::Contradictions(_) => Some("finality"),
            Self::Overdue(_) => Some("deadlines"),
        }
    }
}

impl Scenario {
    /// Runs the scenario, with transfers and jobs all the time. One validator after another crashes
    /// at a random moment and returns, never two at once.
    pub async fn run(self, mut context: Context) -> Result<Report, ScenarioError> {
        let crash_at = context.random_range(20..120);
        let down_for = context.random_range(10..60);
        let victim = context.random_range(0..self.validators);
        let mut devnet =
            Devnet::new(context.child("devnet"), self.validators, self.runners).await?;
        let supply = devnet.cluster.genesis().state().map_err(|error| {
            ClusterError::Start(cowboy_devnet::validator::node::StartError::Genesis(error))
        })?;
        let mut invariants = Invariants::new(supply.supply().total());
        let mut watching: Vec<_> =
            (0..self.validators).map(|index| watch(&devnet.cluster, index)).collect();
        let (mut jobs, mut steps_without_block, mut height) = (Vec::new(), 0u32, Height::GENESIS);
        while height.get() < self.blocks {
            context.sleep(STEP).await;
            for (index, blocks) in watching.iter_mut().enumerate() {
                check(&mut invariants, index, blocks.as_mut())?;
            }
            let now = invariants.height();
            if now == height {
                steps_without_block += 1;
                // A minute of silence is more than a leader timeout.
                if STEP * steps_without_block > Duration::from_secs(60) {
                    return Err(ScenarioError::Stuck(height));
                }
                continue;
            }
            steps_without_block = 0;
            let passed = |at: u64| height.get() < at && at <= now.get();
            if passed(crash_at) {
                devnet.cluster.stop(victim).await;
                // It has executed more since the last check, and will not execute that again when
                // it returns.
                check(&mut invariants, victim, watching[victim].as_mut())?;
                watching[victim] = None;
            }
            if passed(crash_at + down_for) {
                devnet.cluster.start(victim)?;
                watching[victim] = watch(&devnet.cluster, victim);
            }
            height = now;
            let from = usize::try_from(height.get() % 4).unwrap_or(0);
            let to = key(&format!("account-{}", (from + 1) % 4)).address();
            devnet.send(from, Payload::Transfer(Transfer { to, amount: Wei::new(7) }));
            if height.get() + 40 < self.blocks {
                jobs.extend(devnet.submit(from, spec(60)));
            }
        }
        // Validators that are behind catch up, and all must agree.
        let end = self.blocks + 1;
        if !devnet.cluster.reach(end, BLOCK_TIME * 400).await {
            return Err(ScenarioError::Stuck(devnet.cluster.heights().0));
        }
        for (index, blocks) in watching.iter_mut().enumerate() {
            check(&mut invariants, index, blocks.as_mut())?;
        }
        if let Some(height) = devnet.cluster.disagreement()? {
            return Err(ScenarioError::Disagreement(height));
        }
        let witness = (victim + 1) % self.validators;
        let state = devnet.state(witness);
        let is_verified = |job: &&Hash| {
            state
                .as_ref()
                .and_then(|state| state.job(job))
                .is_some_and(|job| job.status.name() == "Verified")
        };
        Ok(Report {
            log: devnet.cluster.log_hash(witness)?,
            verified: jobs.iter().filter(is_verified).count(),
            submitted: jobs.len(),
            certified: devnet.cluster.parents_certified(witness)?,
        })
    }
}

/// Checks the blocks that a validator has executed since the last call.
pub fn check(
    invariants: &mut Invariants,
    validator: usize,
    blocks: Option<&mut Receiver<Arc<ExecutedBlock>>>,
) -> Result<(), Violation> {
    each(blocks, |block| invariants.check(validator, block))
}

/// Calls a function for the blocks that a validator has executed since the last call.
pub fn each(
    blocks: Option<&mut Receiver<Arc<ExecutedBlock>>>,
    mut look: impl FnMut(&Arc<ExecutedBlock>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let Some(blocks) = blocks else { return Ok(()) };
    loop {
        match blocks.try_recv() {
            Ok(block) => look(&block)?,
            // Catching up is faster than this check: missed blocks are compared at the end.
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
        }
    }
}

/// The blocks that a validator executes from now on; `None` if it is stopped.
pub fn watch(cluster: &Cluster, validator: usize) -> Option<Receiver<Arc<ExecutedBlock>>> {
    Some(cluster.validator(validator)?.services().ledger.subscribe())
}
