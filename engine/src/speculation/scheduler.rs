//! Which tasks are accepted, and why others are refused (AgenC §4.5, §5.2 to §5.4).
//!
//! A request is refused by the first rule that it breaks, in the order of [`Reason`].

use super::{
    GraphError, Opening, ParentLink, Speculation, TaskId,
    deadlines::{NEVER, TaskTerms},
    event::SpeculationEventKind,
    reason::Reason,
    stake::WHOLE,
    view::Counters,
};
use crate::primitives::{Hash, Wei};
use std::fmt;

/// A request to schedule a task.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'a> {
    pub task: TaskId,
    /// The tasks it depends on; a parent that is named twice counts once.
    pub parents: &'a [(TaskId, ParentLink)],
    /// Time at which the agent's claim on it expires, in milliseconds.
    pub claim_expires_at: u64,
    /// The digest of the outputs that it reads: an output kept from an earlier attempt is reused
    /// only if that attempt read the same outputs.
    pub inputs: Hash,
    /// The reason of the last refusal, if it was refused before: the same reason is not counted
    /// again.
    pub refused: Option<Reason>,
}

impl<'a> RunRequest<'a> {
    /// The first request for a task, which reads no outputs.
    pub const fn new(
        task: TaskId,
        parents: &'a [(TaskId, ParentLink)],
        claim_expires_at: u64,
    ) -> Self {
        Self { task, parents, claim_expires_at, inputs: Hash::ZERO, refused: None }
    }
}

/// A task that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Number of unconfirmed tasks above it on the longest path.
    pub depth: u32,
    /// The locked bond: `minStake`, and `stakePerDepth` for each level.
    pub bond: Wei,
    /// 1 for a new task, plus 1 each time it is scheduled again.
    pub attempt: u32,
    /// The output of an earlier attempt, if a checkpoint kept it and that attempt read the same
    /// outputs.
    pub checkpoint: Option<Opening>,
}

impl From<GraphError> for Reason {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::DuplicateTask(_) => Self::DuplicateTask,
            GraphError::UnknownParent(_) => Self::UnknownParent,
            GraphError::Cycle(_) => Self::Cycle,
            GraphError::ParentFailed(_) => Self::ParentFailed,
        }
    }
}

/// A refusal; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub reason: Reason,
    pub graph: Option<GraphError>,
    /// The depth that it would have had, if known.
    pub depth: Option<u32>,
    /// The bond that it would have needed, if known.
    pub bond: Option<Wei>,
}

impl Refused {
    pub(super) const fn new(reason: Reason) -> Self {
        Self { reason, graph: None, depth: None, bond: None }
    }
}

impl From<GraphError> for Refused {
    fn from(error: GraphError) -> Self {
        Self { graph: Some(error), ..Self::new(error.into()) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.graph {
            return error.fmt(f);
        }
        write!(f, "refused, {}", self.reason)?;
        if let Some(depth) = self.depth {
            write!(f, ", at depth {depth}")?;
        }
        if let Some(bond) = self.bond {
            write!(f, ", with a bond of {bond} wei")?;
        }
        f.write_str(match self.reason {
            reason if reason.is_about_speculation() => ": wait until its ancestors are confirmed",
            Reason::ClaimTooSoon => ": claim the task for longer than `claimBufferMs`",
            Reason::Paused => ": the chain cannot be reached; wait until it makes blocks again",
            Reason::InsufficientStake => {
                ": wait until bonds come back, or raise the deposit or `stake.maxStake`"
            }
            _ => ": wait until tasks on their way are resolved, or raise the limit",
        })
    }
}

impl std::error::Error for Refused {}

impl Speculation {
    /// Accepts a task, or returns the rule that it breaks; either is counted and told.
    pub(super) fn accept_or_refuse(
        &mut self,
        request: RunRequest<'_>,
    ) -> Result<Scheduled, Refused> {
        let accepted = self.accept(request);
        match &accepted {
            Ok(Scheduled { depth, bond, attempt, .. }) => {
                self.counters.tasks_scheduled += 1;
                let (depth, bond, attempt) = (*depth, *bond, *attempt);
                let kind = SpeculationEventKind::TaskScheduled { depth, bond, attempt };
                self.tell_of(Some(request.task), kind);
            }
            Err(refused) if request.refused == Some(refused.reason) => {}
            Err(Refused { reason, depth, bond, .. }) => {
                Counters::count(&mut self.counters.tasks_rejected, *reason as usize);
                let (reason, depth, bond) = (*reason, *depth, *bond);
                let kind = SpeculationEventKind::TaskRejected { reason, depth, bond };
                self.tell_of(Some(request.task), kind);
            }
        }
        accepted
    }

    fn accept(&mut self, request: RunRequest<'_>) -> Result<Scheduled, Refused> {
        let config = &self.config;
        let admission = self.graph.admit(request.task, request.parents)?;
        if self.away.is_some_and(|away| away.is_paused()) {
            return Err(Refused::new(Reason::Paused));
        }
        let depth = u64::from(admission.depth);
        let at_depth = |reason| Refused { depth: Some(depth as u32), ..Refused::new(reason) };
        if depth > 0 {
            self.may_speculate(&request.task).map_err(at_depth)?;
        }
        if depth > config.max_depth {
            return Err(at_depth(Reason::DepthExceeded));
        }
        let bond = self.price(depth);
        let needed = Wei::new(bond.map_or(u128::MAX, u128::from));
        let at_price = |reason| Refused { bond: Some(needed), ..at_depth(reason) };
        let free = self.stake.free(Wei::new(config.max_stake.into()));
        let Some(bond) = bond.filter(|_| needed <= free) else {
            return Err(at_price(Reason::InsufficientStake));
        };
        if request.claim_expires_at.saturating_sub(self.now) <= config.claim_buffer_ms {
            return Err(at_price(Reason::ClaimTooSoon));
        }
        if self.graph.branches_with(&admission) as u64 > config.branches() {
            return Err(at_price(Reason::TooManyBranches));
        }
        self.within_limits().map_err(at_price)?;

        if depth > 0 {
            let before = self.breaker.probe();
            self.breaker.proceed(config.breaker, self.now, request.task);
            if self.breaker.probe() != before {
                self.tell_of(Some(request.task), SpeculationEventKind::BreakerProbe);
            }
        }
        let at = self.graph.insert(&admission);
        let parents = u32::try_from(admission.parents.len()).unwrap_or(u32::MAX);
        self.tell(at, SpeculationEventKind::NodeAdded { parents });
        self.ledger.remove(at);
        self.deferral.forget(at);
        self.terms.cover(at);
        let attempt = self.terms[at].attempt.saturating_add(1);
        let claim_expires_at = request.claim_expires_at;
        self.terms[at] = TaskTerms {
            bond,
            inputs: request.inputs,
            accepted_at: self.now,
            claim_expires_at,
            deadline: NEVER,
            attempt,
            held: false,
        };
        self.stake.lock(needed);
        self.tell(at, SpeculationEventKind::StakeLocked { amount: needed });
        self.watch(at);
        Ok(Scheduled {
            depth: depth as u32,
            bond: needed,
            attempt,
            checkpoint: self.take_checkpoint(&request),
        })
    }

    /// Whether a task with unconfirmed ancestors may run.
    fn may_speculate(&self, task: &TaskId) -> Result<(), Reason> {
        // Ids are hashes: their first bytes are random.
        let [first, second, ..] = task.0;
        let drawn = (u64::from(u16::from_be_bytes([first, second])) * WHOLE) >> 16;
        if !self.config.enabled {
            Err(Reason::Disabled)
        } else if drawn >= self.config.rollout {
            Err(Reason::NotRolledOut)
        } else if !self.can_proceed() {
            Err(Reason::BreakerOpen)
        } else if self.now < self.cooldown_until {
            Err(Reason::Cooldown)
        } else {
            Ok(())
        }
    }

    fn within_limits(&self) -> Result<(), Reason> {
        let most_memory = self.config.max_memory_mb.saturating_mul(1 << 20);
        if self.graph.live() as u64 >= self.config.max_pending_operations {
            Err(Reason::MaxPendingOperations)
        } else if self.ledger.open() as u64 >= self.config.queue_size {
            Err(Reason::QueueSize)
        } else if self.memory() >= most_memory {
            Err(Reason::MaxMemoryMb)
        } else {
            Ok(())
        }
    }

    /// Takes the output kept for a task, if it was computed from the same inputs; drops any other.
    fn take_checkpoint(&mut self, request: &RunRequest<'_>) -> Option<Opening> {
        let kept = self.checkpoints.iter().position(|one| one.task == request.task)?;
        let kept = self.checkpoints.remove(kept)?;
        (kept.inputs == request.inputs).then_some(kept.opening)
    }
}
