//! Transactions: the messages that accounts sign (spec chain.md, "Transactions").

mod excuse;

pub use excuse::Excuse;

use super::{
    genesis::GenesisValidator,
    tasks::{ClaimTask, CompleteTask, CreateCommitment, CreateTask, ResolveCommitment},
};
use crate::{
    actor::Budget,
    fees::meter::{self, Charge},
    job::spec::JobSpec,
    presence::Phase,
    primitives::{
        Address, Cells, Cycles, Hash, Height, PublicKey, SecretKey, Signature, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer, from_slice, to_vec},
        keccak256,
    },
    record,
    registry::Capabilities,
    timer,
};
use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

/// The most the sender pays per unit of gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    /// Wei per cycle, including priority.
    pub max_fee_per_cycle: Wei,
    /// Wei per cycle for the proposer, included in `max_fee_per_cycle`.
    pub max_priority_per_cycle: Wei,
    /// Wei per cell, including priority.
    pub max_fee_per_cell: Wei,
    /// Wei per cell for the proposer, included in `max_fee_per_cell`.
    pub max_priority_per_cell: Wei,
}
record!(Fees {
    max_fee_per_cycle,
    max_priority_per_cycle,
    max_fee_per_cell,
    max_priority_per_cell,
});

/// The action of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    Transfer(Transfer),
    /// Deploys a module as an actor.
    DeployActor(DeployActor),
    /// Calls a handler of an actor.
    CallActor(CallActor),
    /// Schedules a timer of an actor that the sender deployed.
    ScheduleTimer(Arc<timer::TimerRequest>),
    /// Cancels a timer that the sender pays for, or of an actor that the sender deployed.
    CancelTimer(CancelTimer),
    /// Extends the lifetime of a timer of an actor that the sender deployed.
    ExtendTimer(ExtendTimer),
    /// Registers the sender as a runner.
    RegisterRunner(RegisterRunner),
    /// Changes the capabilities, price or stake of the sender, a runner.
    UpdateRunner(UpdateRunner),
    /// Ends the sender's registration.
    DeregisterRunner,
    /// Records an on-chain heartbeat of the sender, a runner.
    RunnerHeartbeat,
    /// Makes a runner a member of a pool.
    GrantEntitlement(GrantEntitlement),
    /// Removes a runner from a pool.
    RevokeEntitlement(RevokeEntitlement),
    /// Submits a job: a request for off-chain work.
    SubmitJob(Arc<JobSpec>),
    /// Cancels a job of the sender's, or of an actor that it deployed.
    CancelJob(CancelJob),
    /// Submits a committee member's commitment to its result.
    CommitResult(CommitResult),
    /// Reveals results that were committed to.
    RevealResults(RevealResults),
    /// Submits a runner's result.
    SubmitResult(SubmitResult),
    /// Submits a runner's signed statement that it cannot do the work.
    ReportFailure(ReportFailure),
    /// Proves that a runner signed two commitments in one attempt at a job. Any account may send
    /// it.
    ReportEquivocation(ReportEquivocation),
    /// Creates a task, which may depend on others.
    CreateTask(CreateTask),
    /// Claims a task.
    ClaimTask(ClaimTask),
    /// Binds the sender to the output of a task that it has claimed.
    CreateCommitment(CreateCommitment),
    /// Proves the output of a task that the sender has committed to.
    CompleteTask(CompleteTask),
    /// Ends a commitment or gives up a claim.
    ResolveCommitment(ResolveCommitment),
    /// Cancels any timer, or does nothing if it is gone; system deployers only.
    SysCancelTimer(CancelTimer),
    /// Proposes values of governed parameters from a height on; system deployers only.
    SysUpdateTimerConfig(UpdateTimerConfig),
    /// Extends the lifetime of any timer; system deployers only.
    SysExtendTimer(ExtendTimer),
    /// Sets one governed parameter from the next block on; system deployers only.
    SetParameter(SetParameter),
    /// Adds a validator from the next consensus epoch on; system deployers only.
    AddValidator(GenesisValidator),
    /// Removes a validator from the next consensus epoch on; system deployers only.
    RemoveValidator(RemoveValidator),
    /// Begins a new migration phase; system deployers only.
    SetPhase(SetPhase),
    /// Slashes the bond of a runner whose result was wrong; system deployers only.
    SlashRunner(SlashRunner),
}

/// See [`Payload::Transfer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub to: Address,
    pub amount: Wei,
}
record!(Transfer { to, amount });

/// See [`Payload::DeployActor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployActor {
    pub source: String,
}
record!(DeployActor { source });

/// See [`Payload::CallActor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallActor {
    pub actor: Address,
    /// At most [`MAX_HANDLER_BYTES`](crate::actor::effect::MAX_HANDLER_BYTES) long.
    pub handler: String,
    /// The handler's second argument, at most
    /// [`MAX_PAYLOAD_BYTES`](crate::actor::effect::MAX_PAYLOAD_BYTES) long.
    pub payload: Vec<u8>,
    /// Paid from the sender to the actor before the handler runs.
    pub value: Wei,
}
record!(CallActor { actor, handler, payload, value });

/// See [`Payload::CancelTimer`] and [`Payload::SysCancelTimer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelTimer {
    pub timer_id: Hash,
}
record!(CancelTimer { timer_id });

/// See [`Payload::ExtendTimer`] and [`Payload::SysExtendTimer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendTimer {
    pub timer_id: Hash,
    /// The new last height at which the timer may fire.
    pub expires_at: Height,
}
record!(ExtendTimer { timer_id, expires_at });

/// See [`Payload::SysUpdateTimerConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateTimerConfig {
    /// Each key at most once.
    pub settings: Vec<timer::ProposedValue>,
    /// The first block with these values; `None`: the next block.
    pub height: Option<Height>,
}
record!(UpdateTimerConfig { settings, height });

/// See [`Payload::SetParameter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetParameter {
    /// One of [`timer::Governed::KEYS`].
    pub key: String,
    /// The parameter's value from the next block on.
    pub value: u64,
}
record!(SetParameter { key, value });

/// See [`Payload::RemoveValidator`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveValidator {
    pub validator: Address,
}
record!(RemoveValidator { validator });
/// See [`Payload::SetPhase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetPhase {
    /// The phase from the next block on.
    pub phase: Phase,
}
record!(SetPhase { phase });

/// See [`Payload::RegisterRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRunner {
    /// The sender's key, which its connections authenticate with.
    pub pubkey: PublicKey,
    /// The amount to lock.
    pub stake: Wei,
    pub capabilities: Capabilities,
    pub price_per_second: Wei,
}
record!(RegisterRunner { pubkey, stake, capabilities, price_per_second });

/// See [`Payload::UpdateRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateRunner {
    pub capabilities: Capabilities,
    pub price_per_second: Wei,
    /// The new stake, at least the present one; `None`: unchanged.
    pub stake: Option<Wei>,
}
record!(UpdateRunner { capabilities, price_per_second, stake });

/// See [`Payload::GrantEntitlement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantEntitlement {
    pub pool: String,
    pub runner: Address,
    /// The last height at which the membership counts; `None`: until revoked.
    pub valid_until: Option<Height>,
}
record!(GrantEntitlement { pool, runner, valid_until });

/// See [`Payload::RevokeEntitlement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokeEntitlement {
    pub pool: String,
    pub runner: Address,
}
record!(RevokeEntitlement { pool, runner });

/// See [`Payload::SubmitResult`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitResult {
    pub job_id: Hash,
    pub runner: Address,
    pub result: Vec<u8>,
    /// The runner's signature, as in its `JobResult` frame (connectivity.md §2).
    pub runner_signature: Signature,
}
record!(SubmitResult { job_id, runner, result, runner_signature });

/// See [`Payload::CancelJob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelJob {
    pub job_id: Hash,
}
record!(CancelJob { job_id });

/// See [`Payload::CommitResult`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitResult {
    pub job_id: Hash,
    pub runner: Address,
    /// keccak256(result ‖ signature\[65\]), the signature that of the runner's `JobResult` frame.
    pub commitment: Hash,
    /// The runner's signature, as in its `JobCommit` frame.
    pub runner_signature: Signature,
}
record!(CommitResult { job_id, runner, commitment, runner_signature });

/// See [`Payload::RevealResults`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevealResults {
    pub job_id: Hash,
    /// In committee order.
    pub reveals: Vec<Reveal>,
    /// The aggregator's signature over all reveals, as in its `JobAggregated` frame; `None` when
    /// runners reveal for themselves.
    pub aggregator_signature: Option<Signature>,
}
record!(RevealResults { job_id, reveals, aggregator_signature });

/// A result that its runner committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reveal {
    pub runner: Address,
    pub result: Vec<u8>,
    /// The runner's signature, as in its `JobResult` frame.
    pub runner_signature: Signature,
}
record!(Reveal { runner, result, runner_signature });

impl Reveal {
    /// The commitment that this result belongs to.
    pub fn commitment(&self) -> Hash {
        keccak256(&[&self.result, &self.runner_signature.0])
    }
}

/// See [`Payload::ReportFailure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFailure {
    pub job_id: Hash,
    /// The runner that does not do the job.
    pub runner: Address,
    /// The runner's signed statement.
    pub said: Excuse,
    /// The runner's signature, as in the frame with the statement.
    pub runner_signature: Signature,
}
record!(ReportFailure { job_id, runner, said, runner_signature });

/// See [`Payload::ReportEquivocation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEquivocation {
    pub job_id: Hash,
    /// The runner that signed both.
    pub runner: Address,
    pub deadline_block: Height,
    /// The smaller of the two commitments.
    pub first: SignedCommitment,
    pub second: SignedCommitment,
}
record!(ReportEquivocation { job_id, runner, deadline_block, first, second });

/// A commitment as its runner signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCommitment {
    /// keccak256(result ‖ signature\[65\]).
    pub commitment: Hash,
    /// The runner's signature, as in its `JobCommit` frame.
    pub runner_signature: Signature,
}
record!(SignedCommitment { commitment, runner_signature });

/// See [`Payload::SlashRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashRunner {
    /// The job whose verified result is wrong; its mode is `economic_bond`.
    pub job_id: Hash,
}
record!(SlashRunner { job_id });

impl Payload {
    /// The payload's name in commands and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Transfer(_) => "transfer",
            Self::DeployActor(_) => "deploy_actor",
            Self::CallActor(_) => "call_actor",
            Self::ScheduleTimer(_) => "schedule_timer",
            Self::CancelTimer(_) => "cancel_timer",
            Self::ExtendTimer(_) => "extend_timer",
            Self::RegisterRunner(_) => "register_runner",
            Self::UpdateRunner(_) => "update_runner",
            Self::DeregisterRunner => "deregister_runner",
            Self::RunnerHeartbeat => "runner_heartbeat",
            Self::GrantEntitlement(_) => "grant_entitlement",
            Self::RevokeEntitlement(_) => "revoke_entitlement",
            Self::SubmitJob(_) => "submit_job",
            Self::CancelJob(_) => "cancel_job",
            Self::CommitResult(_) => "commit_result",
            Self::RevealResults(_) => "reveal_results",
            Self::SubmitResult(_) => "job_result_submit",
            Self::ReportFailure(_) => "report_failure",
            Self::ReportEquivocation(_) => "report_equivocation",
            Self::CreateTask(task) if task.depends_on.is_empty() => "create_task",
            Self::CreateTask(_) => "create_dependent_task",
            Self::ClaimTask(_) => "claim_task",
            Self::CreateCommitment(_) => "create_commitment",
            Self::CompleteTask(_) => "complete_task_private",
            Self::ResolveCommitment(_) => "resolve_commitment",
            Self::SysCancelTimer(_) => "sys_cancel_timer",
            Self::SysUpdateTimerConfig(_) => "sys_update_timer_config",
            Self::SysExtendTimer(_) => "sys_extend_timer",
            Self::SetParameter(_) => "set_parameter",
            Self::AddValidator(_) => "add_validator",
            Self::RemoveValidator(_) => "remove_validator",
            Self::SetPhase(_) => "set_phase",
            Self::SlashRunner(_) => "slash_runner",
        }
    }

    /// The tag of the payload kind in the encoding. Gaps are reserved for later versions; tags of
    /// system instructions are their opcodes (CIP-1 §12).
    const fn tag(&self) -> u64 {
        match self {
            Self::Transfer(_) => 1,
            Self::DeployActor(_) => 2,
            Self::CallActor(_) => 3,
            Self::ScheduleTimer(_) => 4,
            Self::CancelTimer(_) => 5,
            Self::ExtendTimer(_) => 6,
            Self::RegisterRunner(_) => 16,
            Self::UpdateRunner(_) => 17,
            Self::DeregisterRunner => 18,
            Self::RunnerHeartbeat => 19,
            Self::GrantEntitlement(_) => 20,
            Self::RevokeEntitlement(_) => 21,
            Self::SubmitJob(_) => 32,
            Self::CancelJob(_) => 33,
            Self::CommitResult(_) => 34,
            Self::RevealResults(_) => 35,
            Self::SubmitResult(_) => 36,
            Self::ReportFailure(_) => 37,
            Self::ReportEquivocation(_) => 38,
            Self::SysCancelTimer(_) => 48,
            Self::SysUpdateTimerConfig(_) => 49,
            Self::SysExtendTimer(_) => 50,
            Self::SetParameter(_) => 51,
            Self::AddValidator(_) => 53,
            Self::RemoveValidator(_) => 54,
            Self::SetPhase(_) => 52,
            Self::SlashRunner(_) => 55,
            Self::CreateTask(_) => 64,
            Self::ClaimTask(_) => 65,
            Self::CreateCommitment(_) => 66,
            Self::CompleteTask(_) => 67,
            Self::ResolveCommitment(_) => 68,
        }
    }

    fn charge(&self) -> Charge {
        match self {
            Self::Transfer(_) => meter::TRANSFER,
            Self::DeployActor(_) | Self::CallActor(_) => meter::METERED,
            Self::ScheduleTimer(timer) => meter::timer(timer.payload.len()),
            Self::CancelTimer(_) | Self::ExtendTimer(_) => meter::timer(0),
            Self::RegisterRunner(_) => meter::REGISTER_RUNNER,
            Self::UpdateRunner(_) => meter::UPDATE_RUNNER,
            Self::DeregisterRunner => meter::DEREGISTER_RUNNER,
            Self::RunnerHeartbeat => meter::RUNNER_HEARTBEAT,
            Self::GrantEntitlement(_) | Self::RevokeEntitlement(_) => meter::ENTITLEMENT,
            Self::SubmitJob(_) => meter::SUBMIT_JOB,
            Self::CancelJob(_) => meter::CANCEL_JOB,
            Self::CommitResult(_) => meter::COMMIT_RESULT,
            Self::RevealResults(reveal) => meter::reveals(reveal.reveals.len()),
            Self::SubmitResult(_) => meter::SUBMIT_RESULT,
            Self::ReportFailure(_) => meter::REPORT_FAILURE,
            Self::ReportEquivocation(_) => meter::REPORT_EQUIVOCATION,
            Self::CreateTask(task) => {
                let requirements = task.requirements.iter().map(String::len).sum();
                meter::create_task(task.depends_on.len(), requirements)
            }
            Self::ClaimTask(_) => meter::CLAIM_TASK,
            Self::CreateCommitment(_) => meter::CREATE_COMMITMENT,
            Self::CompleteTask(_) => meter::COMPLETE_TASK,
            Self::ResolveCommitment(_) => meter::RESOLVE_COMMITMENT,
            Self::SysCancelTimer(_)
            | Self::SysUpdateTimerConfig(_)
            | Self::SysExtendTimer(_)
            | Self::SetParameter(_)
            | Self::SetPhase(_)
            | Self::SlashRunner(_)
            | Self::AddValidator(_)
            | Self::RemoveValidator(_) => meter::SYSTEM,
        }
    }

    /// Whether its usage is known only after it has run.
    const fn is_metered(&self) -> bool {
        matches!(self, Self::DeployActor(_) | Self::CallActor(_))
    }

    /// The value that the sender's balance must hold on top of the fee.
    pub fn value(&self) -> Wei {
        match self {
            Self::Transfer(transfer) => transfer.amount,
            Self::CallActor(call) => call.value,
            Self::RegisterRunner(register) => register.stake,
            Self::SubmitJob(spec) => spec.escrow(),
            Self::CreateTask(task) => task.reward,
            Self::CreateCommitment(commitment) => commitment.bond,
            _ => Wei::ZERO,
        }
    }
}

impl Encode for Payload {
    fn encode(&self, w: &mut Writer) {
        let body: Option<&dyn Encode> = match self {
            Self::Transfer(body) => Some(body),
            Self::DeployActor(body) => Some(body),
            Self::CallActor(body) => Some(body),
            Self::ScheduleTimer(body) => Some(body),
            Self::CancelTimer(body) | Self::SysCancelTimer(body) => Some(body),
            Self::ExtendTimer(body) | Self::SysExtendTimer(body) => Some(body),
            Self::RegisterRunner(body) => Some(body),
            Self::UpdateRunner(body) => Some(body),
            Self::DeregisterRunner | Self::RunnerHeartbeat => None,
            Self::GrantEntitlement(body) => Some(body),
            Self::RevokeEntitlement(body) => Some(body),
            Self::SubmitJob(body) => Some(body),
            Self::CancelJob(body) => Some(body),
            Self::CommitResult(body) => Some(body),
            Self::RevealResults(body) => Some(body),
            Self::SubmitResult(body) => Some(body),
            Self::ReportFailure(body) => Some(body),
            Self::ReportEquivocation(body) => Some(body),
            Self::CreateTask(body) => Some(body),
            Self::ClaimTask(body) => Some(body),
            Self::CreateCommitment(body) => Some(body),
            Self::CompleteTask(body) => Some(body),
            Self::ResolveCommitment(body) => Some(body),
            Self::SysUpdateTimerConfig(body) => Some(body),
            Self::SetParameter(body) => Some(body),
            Self::AddValidator(body) => Some(body),
            Self::RemoveValidator(body) => Some(body),
            Self::SetPhase(body) => Some(body),
            Self::SlashRunner(body) => Some(body),
        };
        w.list(1 + usize::from(body.is_some()));
        w.u64(self.tag());
        if let Some(body) = body {
            body.encode(w);
        }
    }
}

impl Decode for Payload {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(2)?;
        match (r.u64()?, len) {
            (1, 2) => Decode::decode(r).map(Self::Transfer),
            (2, 2) => Decode::decode(r).map(Self::DeployActor),
            (3, 2) => Decode::decode(r).map(Self::CallActor),
            (4, 2) => Decode::decode(r).map(Self::ScheduleTimer),
            (5, 2) => Decode::decode(r).map(Self::CancelTimer),
            (6, 2) => Decode::decode(r).map(Self::ExtendTimer),
            (16, 2) => Decode::decode(r).map(Self::RegisterRunner),
            (17, 2) => Decode::decode(r).map(Self::UpdateRunner),
            (18, 1) => Ok(Self::DeregisterRunner),
            (19, 1) => Ok(Self::RunnerHeartbeat),
            (20, 2) => Decode::decode(r).map(Self::GrantEntitlement),
            (21, 2) => Decode::decode(r).map(Self::RevokeEntitlement),
            (32, 2) => Decode::decode(r).map(Self::SubmitJob),
            (33, 2) => Decode::decode(r).map(Self::CancelJob),
            (34, 2) => Decode::decode(r).map(Self::CommitResult),
            (35, 2) => Decode::decode(r).map(Self::RevealResults),
            (36, 2) => Decode::decode(r).map(Self::SubmitResult),
            (37, 2) => Decode::decode(r).map(Self::ReportFailure),
            (38, 2) => Decode::decode(r).map(Self::ReportEquivocation),
            (48, 2) => Decode::decode(r).map(Self::SysCancelTimer),
            (49, 2) => Decode::decode(r).map(Self::SysUpdateTimerConfig),
            (50, 2) => Decode::decode(r).map(Self::SysExtendTimer),
            (51, 2) => Decode::decode(r).map(Self::SetParameter),
            (53, 2) => Decode::decode(r).map(Self::AddValidator),
            (54, 2) => Decode::decode(r).map(Self::RemoveValidator),
            (52, 2) => Decode::decode(r).map(Self::SetPhase),
            (55, 2) => Decode::decode(r).map(Self::SlashRunner),
            (64, 2) => Decode::decode(r).map(Self::CreateTask),
            (65, 2) => Decode::decode(r).map(Self::ClaimTask),
            (66, 2) => Decode::decode(r).map(Self::CreateCommitment),
            (67, 2) => Decode::decode(r).map(Self::CompleteTask),
            (68, 2) => Decode::decode(r).map(Self::ResolveCommitment),
            _ => Err(DecodeError::Invalid("unknown transaction kind")),
        }
    }
}

/// An unsigned transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub chain_id: u64,
    /// Number of transactions that the sender sent before this one.
    pub nonce: u64,
    pub fees: Fees,
    /// Maximum number of cycles it may use.
    pub cycle_limit: Cycles,
    /// Maximum number of cells it may use.
    pub cell_limit: Cells,
    /// The most that timers scheduled by it may ever take from the sender; `None`: nothing.
    pub timer_allowance: Option<Wei>,
    pub payload: Payload,
}
record!(Transaction { chain_id, nonce, fees, cycle_limit, cell_limit, timer_allowance, payload });

impl Transaction {
    /// The hash that the sender signs.
    pub fn digest(&self) -> Hash {
        keccak256(&[b"cowboy-transaction/v1", &to_vec(self)])
    }

    pub fn sign(self, key: &SecretKey) -> SignedTransaction {
        let signature = key.sign(&self.digest());
        SignedTransaction::new(self, signature)
    }

    /// A transaction with the lowest sufficient limits that pays up to twice the given basefees
    /// plus one wei of priority per cycle, so that it stays valid while they rise. Metered payloads
    /// need higher limits: see [`buying`](Self::buying).
    pub fn with_limits(
        chain_id: u64,
        nonce: u64,
        basefee_cycle: Wei,
        basefee_cell: Wei,
        payload: Payload,
    ) -> Self {
        let fees = Fees {
            max_fee_per_cycle: basefee_cycle.saturating_mul(2).saturating_add(Wei::new(1)),
            max_priority_per_cycle: Wei::new(1),
            max_fee_per_cell: basefee_cell.saturating_mul(2),
            max_priority_per_cell: Wei::ZERO,
        };
        let (cycle_limit, cell_limit) = (Cycles::new(u64::MAX), Cells::new(u64::MAX));
        // Limits first encode at their longest, so the final cost is never too low.
        let timer_allowance = Some(Wei::new(u128::MAX));
        let mut sized =
            Self { chain_id, nonce, fees, cycle_limit, cell_limit, timer_allowance, payload };
        let bytes = to_vec(&sized).len() + SIGNATURE_OVERHEAD;
        (sized.cycle_limit, sized.cell_limit) = meter::total(bytes, sized.payload.charge());
        sized.timer_allowance = None;
        sized
    }

    /// The same transaction with a timer allowance of `timer_allowance`.
    pub const fn allowing(mut self, timer_allowance: Wei) -> Self {
        self.timer_allowance = Some(timer_allowance);
        self
    }

    /// The same transaction with limits raised by `budget`, the usage allowed to an actor's
    /// deployment or call, up to what fits in a block.
    pub fn buying(mut self, budget: Budget) -> Self {
        let raised = |limit: u64, by: u64, most: u64| limit.saturating_add(by).min(most);
        let cycles = raised(self.cycle_limit.get(), budget.cycles, meter::MAX_BLOCK_CYCLES);
        let cells = raised(self.cell_limit.get(), budget.cells, meter::MAX_BLOCK_CELLS);
        (self.cycle_limit, self.cell_limit) = (Cycles::new(cycles), Cells::new(cells));
        self
    }
}

/// Bytes that a signed transaction adds to its transaction: the map, its two keys and the
/// signature's head and bytes.
const SIGNATURE_OVERHEAD: usize = 1 + 10 + 2 + 65 + 12;

/// A transaction and its sender's signature, from which the sender's address is recovered.
///
/// Clones share hash, size and sender, which are computed once: recovering a key costs more than
/// all the rest of a transfer.
#[derive(Clone, Debug)]
pub struct SignedTransaction(Arc<Signed>);

/// The target of a [`SignedTransaction`].
#[derive(Debug)]
pub struct Signed {
    pub transaction: Transaction,
    pub signature: Signature,
    form: OnceLock<(Hash, usize)>,
    sender: OnceLock<Result<Address, BadSignature>>,
}

impl Deref for SignedTransaction {
    type Target = Signed;

    fn deref(&self) -> &Signed {
        &self.0
    }
}

impl PartialEq for SignedTransaction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.signature == other.signature && self.transaction == other.transaction)
    }
}

impl Eq for SignedTransaction {}

impl Encode for SignedTransaction {
    fn encode(&self, w: &mut Writer) {
        w.record(&mut [("transaction", &self.transaction), ("signature", &self.signature)]);
    }
}

impl Decode for SignedTransaction {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut transaction, mut signature) = (None, None);
        r.record(|key, r| {
            match key {
                "transaction" => transaction = Some(Decode::decode(r)?),
                "signature" => signature = Some(Decode::decode(r)?),
                other => return Err(DecodeError::UnknownField(other.to_owned())),
            }
            Ok(())
        })?;
        let transaction = transaction.ok_or(DecodeError::MissingField("transaction"))?;
        let signature = signature.ok_or(DecodeError::MissingField("signature"))?;
        Ok(Self::new(transaction, signature))
    }
}

/// The signature does not recover a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("BadSignature: the transaction's signature recovers no key")]
pub struct BadSignature;

impl SignedTransaction {
    /// A transaction with a signature that is not checked yet.
    pub fn new(transaction: Transaction, signature: Signature) -> Self {
        let (form, sender) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Signed { transaction, signature, form, sender }))
    }

    fn form(&self) -> (Hash, usize) {
        *self.form.get_or_init(|| {
            let bytes = to_vec(self);
            (keccak256(&[&bytes]), bytes.len())
        })
    }

    /// The transaction's hash.
    pub fn hash(&self) -> Hash {
        self.form().0
    }

    /// Its encoded length in bytes, which is also the basis of its cells.
    pub fn size(&self) -> usize {
        self.form().1
    }

    /// The account that signed.
    pub fn sender(&self) -> Result<Address, BadSignature> {
        *self.0.sender.get_or_init(|| {
            self.signature
                .recover(&self.transaction.digest())
                .map(|key| key.address())
                .ok_or(BadSignature)
        })
    }

    /// The least cycles and cells it uses: its exact price if that is fixed, the intrinsic part if
    /// it is metered.
    pub fn least(&self) -> (Cycles, Cells) {
        meter::total(self.size(), self.transaction.payload.charge())
    }

    /// The cycles and cells set aside for it, in its block and at its sender: its exact price if
    /// that is fixed, its limits if it is metered. It never uses more.
    pub fn reserve(&self) -> (Cycles, Cells) {
        match self.transaction.payload.is_metered() {
            true => (self.transaction.cycle_limit, self.transaction.cell_limit),
            false => self.least(),
        }
    }

    /// The canonical encoding of the transaction.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_vec(self)
    }

    /// Decodes a transaction.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        from_slice(bytes)
    }
}
