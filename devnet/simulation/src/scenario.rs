//! A devnet under load whose validators crash and return, checked after every block.

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

/// How often the scenario looks at the devnet.
const STEP: Duration = Duration::from_millis(125);

/// What happens.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Validators.
    pub validators: usize,
    /// Runners.
    pub runners: usize,
    /// Blocks until it ends.
    pub blocks: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Hash over the event log of the longest-running validator: blocks, roots, receipts,
    /// events, P.
    pub log: Hash,
    /// Jobs whose result is final.
    pub verified: usize,
    /// Jobs submitted.
    pub submitted: usize,
    /// Blocks that carry their parent's certificate, of all from height 2 on.
    pub certified: (usize, usize),
}

/// Why a scenario did not hold.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It could not be set up.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A store refuses.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An invariant is broken.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// No block for a long time although enough validators run.
    #[error("stuck at {0}")]
    Stuck(Height),
    /// Two validators that run disagree.
    #[error("validators disagree at {0}")]
    Disagreement(Height),
    /// Validators have cut others off for breaking the protocol.
    #[error("{0} times a validator has cut off another for breaking the protocol")]
    CutOff(usize),
    /// What a block says of an ancestor is not what was computed.
    #[error(transparent)]
    Alarm(#[from] Alarm),
    /// A validator has seen final blocks that contradict each other.
    #[error("a validator has seen {0} contradictions between final blocks")]
    Contradictions(u64),
    /// A job has not ended although its time is over.
    #[error("job {0} is open past its deadline")]
    Overdue(Hash),
}

impl ScenarioError {
    /// The name of the invariant that does not hold; `None`: the scenario could not be played.
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
    /// Runs it: transfers and jobs all the time; one validator after the other crashes at a
    /// random moment, never two at once, and returns.
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
                // A minute of silence is no leader timeout any more.
                if STEP * steps_without_block > Duration::from_secs(60) {
                    return Err(ScenarioError::Stuck(height));
                }
                continue;
            }
            steps_without_block = 0;
            let passed = |at: u64| height.get() < at && at <= now.get();
            if passed(crash_at) {
                devnet.cluster.stop(victim).await;
                // It has executed more since the last look, which is not repeated when it returns.
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
        // Whoever is behind catches up; nobody differs.
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

/// Checks what a validator has executed since the last look.
pub fn check(
    invariants: &mut Invariants,
    validator: usize,
    blocks: Option<&mut Receiver<Arc<ExecutedBlock>>>,
) -> Result<(), Violation> {
    each(blocks, |block| invariants.check(validator, block))
}

/// Looks at what a validator has executed since the last look.
pub fn each(
    blocks: Option<&mut Receiver<Arc<ExecutedBlock>>>,
    mut look: impl FnMut(&ExecutedBlock) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let Some(blocks) = blocks else { return Ok(()) };
    loop {
        match blocks.try_recv() {
            Ok(block) => look(&block)?,
            // Catching up goes faster than looking: what was missed is compared at the end.
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
        }
    }
}

/// What a validator executes from now on; `None` where it is stopped.
pub fn watch(cluster: &Cluster, validator: usize) -> Option<Receiver<Arc<ExecutedBlock>>> {
    Some(cluster.validator(validator)?.services().ledger.subscribe())
}
