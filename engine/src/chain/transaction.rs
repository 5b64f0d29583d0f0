//! Transactions: what an account signs (spec chain.md, "Transactions").

mod excuse;

pub use excuse::Excuse;

use super::{
    genesis::Validator,
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

/// What the sender pays at most, per unit of each gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    /// Wei per cycle, basefee and priority together.
    pub max_fee_per_cycle: Wei,
    /// Wei per cycle to the proposer, within the above.
    pub max_priority_per_cycle: Wei,
    /// Wei per cell, basefee and priority together.
    pub max_fee_per_cell: Wei,
    /// Wei per cell to the proposer, within the above.
    pub max_priority_per_cell: Wei,
}
record!(Fees {
    max_fee_per_cycle,
    max_priority_per_cycle,
    max_fee_per_cell,
    max_priority_per_cell,
});

/// What a transaction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Moves money.
    Transfer(Transfer),
    /// Makes a module an actor.
    DeployActor(DeployActor),
    /// Calls a handler of an actor.
    CallActor(CallActor),
    /// Schedules a timer of an actor that the sender deployed.
    ScheduleTimer(Arc<timer::Request>),
    /// Cancels a timer of an actor that the sender deployed, or that the sender pays for.
    CancelTimer(CancelTimer),
    /// Lets a timer of an actor that the sender deployed live longer.
    ExtendTimer(ExtendTimer),
    /// Registers the sender as a runner.
    RegisterRunner(RegisterRunner),
    /// Changes what the sender, a runner, offers.
    UpdateRunner(UpdateRunner),
    /// Ends the sender's registration.
    DeregisterRunner,
    /// Says on the chain that the sender, a runner, is there.
    RunnerHeartbeat,
    /// Makes a runner a member of a pool.
    GrantEntitlement(GrantEntitlement),
    /// Takes a runner out of a pool.
    RevokeEntitlement(RevokeEntitlement),
    /// Asks for off-chain work.
    SubmitJob(Arc<JobSpec>),
    /// Takes a job of the sender's, or of an actor that it deployed, back.
    CancelJob(CancelJob),
    /// Brings a committee member's commitment to its result.
    CommitResult(CommitResult),
    /// Brings results that were committed to.
    RevealResults(RevealResults),
    /// Brings a runner's result.
    SubmitResult(SubmitResult),
    /// Brings a runner's word that it cannot do the work.
    ReportFailure(ReportFailure),
    /// Proves that a runner has signed two commitments in one attempt at a job; anybody may.
    ReportEquivocation(ReportEquivocation),
    /// Puts a task up, which may depend on others.
    CreateTask(CreateTask),
    /// Claims a task.
    ClaimTask(ClaimTask),
    /// Binds the sender to the output of a task that it has claimed.
    CreateCommitment(CreateCommitment),
    /// Proves the output of a task that the sender has committed to.
    CompleteTask(CompleteTask),
    /// Ends a commitment, or gives a claim up.
    ResolveCommitment(ResolveCommitment),
    /// Cancels anybody's timer, by a system deployer; nothing where it is gone already.
    SysCancelTimer(CancelTimer),
    /// Proposes other values of governed parameters from a height on, by a system deployer.
    SysUpdateTimerConfig(UpdateTimerConfig),
    /// Lets anybody's timer live longer, by a system deployer.
    SysExtendTimer(ExtendTimer),
    /// Gives one governed parameter another value from the next block on, by a system deployer.
    SetParameter(SetParameter),
    /// Has a validator vote from the next consensus epoch on, by a system deployer.
    AddValidator(Validator),
    /// Has a validator vote no longer from the next consensus epoch on, by a system deployer.
    RemoveValidator(RemoveValidator),
    /// Begins another migration phase, by a system deployer.
    SetPhase(SetPhase),
    /// Takes the bond of a runner whose result was wrong, by a system deployer.
    SlashRunner(SlashRunner),
}

/// See [`Payload::Transfer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The receiver.
    pub to: Address,
    /// How much.
    pub amount: Wei,
}
record!(Transfer { to, amount });

/// See [`Payload::DeployActor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployActor {
    /// The module.
    pub source: String,
}
record!(DeployActor { source });

/// See [`Payload::CallActor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallActor {
    /// The actor.
    pub actor: Address,
    /// The handler, at most [`MAX_HANDLER_BYTES`].
    pub handler: String,
    /// Its second argument, at most [`MAX_PAYLOAD_BYTES`].
    pub payload: Vec<u8>,
    /// What goes from the sender to the actor before the handler runs.
    pub value: Wei,
}
record!(CallActor { actor, handler, payload, value });

/// A handler's name is at most as long as a key of an actor's store.
pub const MAX_HANDLER_BYTES: usize = 256;
/// What a handler is given is at most as long as a string. No transaction is as large, but
/// messages may be.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// See [`Payload::CancelTimer`] and [`Payload::SysCancelTimer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelTimer {
    /// Which.
    pub timer_id: Hash,
}
record!(CancelTimer { timer_id });

/// See [`Payload::ExtendTimer`] and [`Payload::SysExtendTimer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendTimer {
    /// Which.
    pub timer_id: Hash,
    /// The last height at which it may fire from now on.
    pub expires_at: Height,
}
record!(ExtendTimer { timer_id, expires_at });

/// See [`Payload::SysUpdateTimerConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateTimerConfig {
    /// The values, each key once.
    pub settings: Vec<timer::Setting>,
    /// The first block with them; `None`: the next one.
    pub height: Option<Height>,
}
record!(UpdateTimerConfig { settings, height });

/// See [`Payload::SetParameter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetParameter {
    /// One of [`timer::Governed::KEYS`].
    pub key: String,
    /// Its value from the next block on.
    pub value: u64,
}
record!(SetParameter { key, value });

/// See [`Payload::RemoveValidator`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveValidator {
    /// Which.
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
    /// The sender's key: connections are bound to it.
    pub pubkey: PublicKey,
    /// What to lock.
    pub stake: Wei,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Its rate card.
    pub price_per_second: Wei,
}
record!(RegisterRunner { pubkey, stake, capabilities, price_per_second });

/// See [`Payload::UpdateRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateRunner {
    /// What it can do from now on.
    pub capabilities: Capabilities,
    /// Its rate card from now on.
    pub price_per_second: Wei,
    /// What it has locked from now on, no less than before; `None`: as before.
    pub stake: Option<Wei>,
}
record!(UpdateRunner { capabilities, price_per_second, stake });

/// See [`Payload::GrantEntitlement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantEntitlement {
    /// The pool.
    pub pool: String,
    /// The new member.
    pub runner: Address,
    /// The last height at which it counts; `None`: until revoked.
    pub valid_until: Option<Height>,
}
record!(GrantEntitlement { pool, runner, valid_until });

/// See [`Payload::RevokeEntitlement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokeEntitlement {
    /// The pool.
    pub pool: String,
    /// The member to take out.
    pub runner: Address,
}
record!(RevokeEntitlement { pool, runner });

/// See [`Payload::SubmitResult`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitResult {
    /// The job.
    pub job_id: Hash,
    /// Whose result it is.
    pub runner: Address,
    /// The result.
    pub result: Vec<u8>,
    /// The runner's signature, as in its `JobResult` frame (connectivity.md §2).
    pub runner_signature: Signature,
}
record!(SubmitResult { job_id, runner, result, runner_signature });

/// See [`Payload::CancelJob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelJob {
    /// The job.
    pub job_id: Hash,
}
record!(CancelJob { job_id });

/// See [`Payload::CommitResult`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitResult {
    /// The job.
    pub job_id: Hash,
    /// Who commits.
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
    /// The job.
    pub job_id: Hash,
    /// Each in the order of the committee.
    pub reveals: Vec<Reveal>,
    /// The aggregator's signature over all of them, as in its `JobAggregated` frame; `None`:
    /// runners reveal for themselves.
    pub aggregator_signature: Option<Signature>,
}
record!(RevealResults { job_id, reveals, aggregator_signature });

/// A result that its runner committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reveal {
    /// Whose.
    pub runner: Address,
    /// The result.
    pub result: Vec<u8>,
    /// The runner's signature, as in its `JobResult` frame.
    pub runner_signature: Signature,
}
record!(Reveal { runner, result, runner_signature });

impl Reveal {
    /// What its runner has committed to.
    pub fn commitment(&self) -> Hash {
        keccak256(&[&self.result, &self.runner_signature.0])
    }
}

/// See [`Payload::ReportFailure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFailure {
    /// The job.
    pub job_id: Hash,
    /// Who does not do it.
    pub runner: Address,
    /// What the runner said.
    pub said: Excuse,
    /// The runner's signature, as in the frame that said it.
    pub runner_signature: Signature,
}
record!(ReportFailure { job_id, runner, said, runner_signature });

/// See [`Payload::ReportEquivocation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEquivocation {
    /// The job.
    pub job_id: Hash,
    /// Who signed both.
    pub runner: Address,
    /// The deadline of the attempt.
    pub deadline_block: Height,
    /// One commitment, the smaller one.
    pub first: SignedCommitment,
    /// The other.
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
    /// The payload's name, as commands and JSON have it.
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

    /// The number that stands for the kind in the encoding. Gaps are kinds of later versions; those
    /// of system instructions are their opcodes (CIP-1 §12).
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

    /// Whether what it uses is only known once it has run.
    const fn is_metered(&self) -> bool {
        matches!(self, Self::DeployActor(_) | Self::CallActor(_))
    }

    /// What the sender's balance must hold beside the fee.
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

/// A transaction before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The chain it is for.
    pub chain_id: u64,
    /// The sender's count of transactions before it.
    pub nonce: u64,
    /// What the sender pays at most.
    pub fees: Fees,
    /// The most cycles it may use.
    pub cycle_limit: Cycles,
    /// The most cells it may use.
    pub cell_limit: Cells,
    /// The most that timers scheduled under it may ever take from the sender; `None`: nothing.
    pub timer_allowance: Option<Wei>,
    /// What it does.
    pub payload: Payload,
}
record!(Transaction { chain_id, nonce, fees, cycle_limit, cell_limit, timer_allowance, payload });

impl Transaction {
    /// What the sender signs.
    pub fn digest(&self) -> Hash {
        keccak256(&[b"cowboy-transaction/v1", &to_vec(self)])
    }

    /// Signs it.
    pub fn sign(self, key: &SecretKey) -> SignedTransaction {
        let signature = key.sign(&self.digest());
        SignedTransaction::new(self, signature)
    }

    /// A transaction with the least limits that will do, paying up to twice the basefees given
    /// and one wei of priority per cycle, so that it stays valid while they rise. What is metered
    /// needs more: see [`buying`](Self::buying).
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
        // Limits of the longest encoding, then the exact cost of that: never too little.
        let timer_allowance = Some(Wei::new(u128::MAX));
        let mut sized =
            Self { chain_id, nonce, fees, cycle_limit, cell_limit, timer_allowance, payload };
        let bytes = to_vec(&sized).len() + SIGNATURE_OVERHEAD;
        (sized.cycle_limit, sized.cell_limit) = meter::total(bytes, sized.payload.charge());
        sized.timer_allowance = None;
        sized
    }

    /// The same, but that timers scheduled under it may take so much from the sender.
    pub const fn allowing(mut self, timer_allowance: Wei) -> Self {
        self.timer_allowance = Some(timer_allowance);
        self
    }

    /// The same with limits raised by `budget`: what an actor's deployment or call may use, as far
    /// as a block holds it.
    pub fn buying(mut self, budget: Budget) -> Self {
        let raised = |limit: u64, by: u64, most: u64| limit.saturating_add(by).min(most);
        let cycles = raised(self.cycle_limit.get(), budget.cycles, meter::MAX_BLOCK_CYCLES);
        let cells = raised(self.cell_limit.get(), budget.cells, meter::MAX_BLOCK_CELLS);
        (self.cycle_limit, self.cell_limit) = (Cycles::new(cycles), Cells::new(cells));
        self
    }
}

/// Bytes of a signed transaction beside the transaction itself: the map, its two keys and the
/// signature's head and bytes.
const SIGNATURE_OVERHEAD: usize = 1 + 10 + 2 + 65 + 12;

/// A transaction and its sender's signature, from which the sender follows.
///
/// Cloning shares: hash, size and sender are found once for all clones, since recovering a key
/// costs more than all the rest of a transfer.
#[derive(Clone, Debug)]
pub struct SignedTransaction(Arc<Signed>);

/// What a [`SignedTransaction`] points at.
#[derive(Debug)]
pub struct Signed {
    /// What was signed.
    pub transaction: Transaction,
    /// By whom.
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

/// The signature is no signature of anybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("BadSignature: the transaction's signature recovers no key")]
pub struct BadSignature;

impl SignedTransaction {
    /// A transaction with a signature that may or may not be anybody's.
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

    /// Its length in bytes, as it travels and as cells are counted.
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

    /// The least it uses of both gases: its price where that is fixed, the intrinsic part of what
    /// is metered.
    pub fn least(&self) -> (Cycles, Cells) {
        meter::total(self.size(), self.transaction.payload.charge())
    }

    /// What of both gases is set aside for it, in its block and with its sender: its price where
    /// that is fixed, its limits where it is metered. It uses no more.
    pub fn reserve(&self) -> (Cycles, Cells) {
        match self.transaction.payload.is_metered() {
            true => (self.transaction.cycle_limit, self.transaction.cell_limit),
            false => self.least(),
        }
    }

    /// The transaction in its one form.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_vec(self)
    }

    /// Reads a transaction.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        from_slice(bytes)
    }
}
