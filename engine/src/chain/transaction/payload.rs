//! What transactions ask for.

use super::Excuse;
use crate::{
    chain::{
        actors::{ActorCode, Language, StoreKey},
        committee::GenesisValidator,
        tasks::{ClaimTask, CompleteTask, CreateCommitment, CreateTask, ResolveCommitment},
    },
    fees::meter::{self, Charge},
    job::spec::JobSpec,
    presence::Phase,
    primitives::{
        Address, Hash, Height, PublicKey, Signature, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
    },
    record,
    registry::Capabilities,
    timer,
};
use std::sync::Arc;

/// The table of payloads: tag in the encoding, name, contents, and what it costs.
macro_rules! payloads {
    (
        $($(#[$doc:meta])* $tag:literal $name:literal $kind:ident($body:ty),
            $contents:pat => $charge:expr;)*
        without a body:
        $($(#[$bare_doc:meta])* $bare_tag:literal $bare_name:literal
            $bare:ident => $bare_charge:expr;)*
    ) => {
        /// The action of a transaction.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Payload {
            $($(#[$doc])* $kind($body),)*
            $($(#[$bare_doc])* $bare,)*
        }

        impl Payload {
            /// The tag of the payload's kind in the encoding, and its name.
            const fn kind(&self) -> (u64, &'static str) {
                match self {
                    $(Self::$kind(_) => ($tag, $name),)*
                    $(Self::$bare => ($bare_tag, $bare_name),)*
                }
            }

            pub(super) fn charge(&self) -> Charge {
                match self {
                    $(Self::$kind($contents) => $charge,)*
                    $(Self::$bare => $bare_charge,)*
                }
            }
        }

        impl Encode for Payload {
            fn encode(&self, w: &mut Writer) {
                let body: Option<&dyn Encode> = match self {
                    $(Self::$kind(body) => Some(body),)*
                    $(Self::$bare => None,)*
                };
                w.list(1 + usize::from(body.is_some()));
                w.u64(self.kind().0);
                if let Some(body) = body {
                    body.encode(w);
                }
            }
        }

        impl Decode for Payload {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let len = r.list(2)?;
                match (r.u64()?, len) {
                    $(($tag, 2) => Decode::decode(r).map(Self::$kind),)*
                    $(($bare_tag, 1) => Ok(Self::$bare),)*
                    _ => Err(DecodeError::Invalid("unknown transaction kind")),
                }
            }
        }
    };
}

// Gaps are reserved for later versions; tags of system instructions are their opcodes (CIP-1 §12).
payloads! {
    1 "transfer" Transfer(Transfer), _ => meter::TRANSFER;
    /// Deploys a module as an actor.
    2 "deploy_actor" DeployActor(DeployActor), _ => meter::METERED;
    /// Calls a handler of an actor.
    3 "call_actor" CallActor(CallActor), _ => meter::METERED;
    /// Schedules a timer of an actor that the sender deployed.
    4 "schedule_timer" ScheduleTimer(Arc<timer::TimerRequest>),
        timer => meter::timer(timer.payload.len());
    /// Cancels a timer that the sender pays for, or of an actor that the sender deployed.
    5 "cancel_timer" CancelTimer(CancelTimer), _ => meter::timer(0);
    /// Extends the lifetime of a timer of an actor that the sender deployed.
    6 "extend_timer" ExtendTimer(ExtendTimer), _ => meter::timer(0);
    /// Deploys a module in Python as an actor, and runs its `init`.
    7 "deploy_python" DeployPython(DeployPython), _ => meter::METERED;
    /// Hands an actor in Python over to another owner; only its owner may.
    8 "transfer_ownership" TransferOwnership(TransferOwnership), _ => meter::TRANSFER;
    /// Registers the sender as a runner.
    16 "register_runner" RegisterRunner(RegisterRunner), _ => meter::REGISTER_RUNNER;
    /// Changes the capabilities, price or stake of the sender, a runner.
    17 "update_runner" UpdateRunner(UpdateRunner), _ => meter::UPDATE_RUNNER;
    /// Makes a runner a member of a pool.
    20 "grant_entitlement" GrantEntitlement(GrantEntitlement), _ => meter::ENTITLEMENT;
    /// Removes a runner from a pool.
    21 "revoke_entitlement" RevokeEntitlement(RevokeEntitlement), _ => meter::ENTITLEMENT;
    32 "submit_job" SubmitJob(Arc<JobSpec>), _ => meter::SUBMIT_JOB;
    /// Cancels a job of the sender's, or of an actor that it deployed.
    33 "cancel_job" CancelJob(CancelJob), _ => meter::CANCEL_JOB;
    /// Submits a committee member's commitment to its result.
    34 "commit_result" CommitResult(CommitResult), _ => meter::COMMIT_RESULT;
    /// Reveals results that were committed to.
    35 "reveal_results" RevealResults(RevealResults),
        reveal => meter::reveals(reveal.reveals.len());
    /// Submits a runner's result.
    36 "job_result_submit" SubmitResult(SubmitResult), _ => meter::SUBMIT_RESULT;
    /// Submits a runner's signed statement that it cannot do the work.
    37 "report_failure" ReportFailure(ReportFailure), _ => meter::REPORT_FAILURE;
    /// Proves that a runner signed two commitments in one attempt at a job. Any account may send
    /// it.
    38 "report_equivocation" ReportEquivocation(ReportEquivocation),
        _ => meter::REPORT_EQUIVOCATION;
    64 "create_task" CreateTask(CreateTask), task => {
        let requirements = task.requirements.iter().map(String::len).sum();
        meter::create_task(task.depends_on.len(), requirements)
    };
    65 "claim_task" ClaimTask(ClaimTask), _ => meter::CLAIM_TASK;
    /// Binds the sender to the output of a task that it has claimed.
    66 "create_commitment" CreateCommitment(CreateCommitment), _ => meter::CREATE_COMMITMENT;
    /// Proves the output of a task that the sender has committed to.
    67 "complete_task_private" CompleteTask(CompleteTask), _ => meter::COMPLETE_TASK;
    /// Ends a commitment or gives up a claim.
    68 "resolve_commitment" ResolveCommitment(ResolveCommitment), _ => meter::RESOLVE_COMMITMENT;
    /// Cancels any timer, or does nothing if it is gone; system deployers only.
    48 "sys_cancel_timer" SysCancelTimer(CancelTimer), _ => meter::SYSTEM;
    /// Proposes values of governed parameters from a height on; system deployers only.
    49 "sys_update_timer_config" SysUpdateTimerConfig(UpdateTimerConfig), _ => meter::SYSTEM;
    /// Extends the lifetime of any timer; system deployers only.
    50 "sys_extend_timer" SysExtendTimer(ExtendTimer), _ => meter::SYSTEM;
    /// Sets one governed parameter from the next block on; system deployers only.
    51 "set_parameter" SetParameter(SetParameter), _ => meter::SYSTEM;
    /// Adds a validator from the next consensus epoch on; system deployers only.
    53 "add_validator" AddValidator(GenesisValidator), _ => meter::SYSTEM;
    /// Removes a validator from the next consensus epoch on; system deployers only.
    54 "remove_validator" RemoveValidator(RemoveValidator), _ => meter::SYSTEM;
    /// Begins a new migration phase; system deployers only.
    52 "set_phase" SetPhase(SetPhase), _ => meter::SYSTEM;
    /// Slashes the bond of a runner whose result was wrong; system deployers only.
    55 "slash_runner" SlashRunner(SlashRunner), _ => meter::SYSTEM;
    /// Sets an account's balance; system deployers only, and only where genesis allows powers, like
    /// all that follow.
    56 "set_balance" SetBalance(SetBalance), _ => meter::SYSTEM;
    /// Replaces an actor's code, or makes an actor; its store stays.
    57 "set_code" SetCode(SetCode), _ => meter::METERED;
    /// Sets or removes an entry of an actor's store.
    58 "set_state" SetState(SetState), set => meter::set_state(set.bytes());
    /// Does what another account could do with this payload. The sender pays the fee.
    59 "act_as" ActAs(ActAs), act => act.payload.0.charge();
    /// Moves the clock of later blocks ahead.
    60 "advance_time" AdvanceTime(AdvanceTime), _ => meter::SYSTEM;
    /// Returns to a marked state at the end of the block.
    62 "return_to_mark" ReturnToMark(ReturnToMark), _ => meter::SYSTEM;
    /// Forgets a marked state at the end of the block.
    63 "forget_mark" ForgetMark(ForgetMark), _ => meter::SYSTEM;
    without a body:
    /// Marks the state at the end of the block.
    61 "mark_state" MarkState => meter::SYSTEM;
    18 "deregister_runner" DeregisterRunner => meter::DEREGISTER_RUNNER;
    19 "runner_heartbeat" RunnerHeartbeat => meter::RUNNER_HEARTBEAT;
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

/// See [`Payload::DeployPython`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployPython {
    pub source: String,
    /// With a salt, the address follows from sender, salt and source; without one, from sender and
    /// nonce. At most [`MAX_SALT`] bytes.
    pub salt: Option<Vec<u8>>,
    /// Paid from the sender to the actor before `init` runs.
    pub value: Wei,
    /// The call that the deployment ends with; if it fails, all of it is undone.
    pub init: Option<InitCall>,
}
record!(DeployPython { source, salt, value, init });

impl DeployPython {
    /// The address of the actor that `deployer` deploys with its transaction `nonce`.
    pub fn address(&self, deployer: &Address, nonce: u64) -> Address {
        let code = ActorCode::hash(Language::Python, &self.source);
        match &self.salt {
            Some(salt) => Address::of_salted_actor(deployer, salt, &code),
            None => Address::of_actor(deployer, nonce),
        }
    }
}

/// The longest salt of a deployment, in bytes.
pub const MAX_SALT: usize = 32;

/// See [`DeployPython::init`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitCall {
    pub handler: String,
    pub payload: Vec<u8>,
}
record!(InitCall { handler, payload });

/// See [`Payload::TransferOwnership`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferOwnership {
    pub actor: Address,
    pub owner: Address,
}
record!(TransferOwnership { actor, owner });

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
    pub phase: Phase,
}
record!(SetPhase { phase });

/// See [`Payload::SetBalance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBalance {
    pub account: Address,
    pub balance: Wei,
    /// Pays the difference, or gets it, so that no money appears or disappears.
    pub counterpart: Address,
}
record!(SetBalance { account, balance, counterpart });

/// See [`Payload::SetCode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCode {
    pub actor: Address,
    pub language: Language,
    pub source: String,
}
record!(SetCode { actor, language, source });

/// See [`Payload::SetState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetState {
    pub actor: Address,
    pub key: StoreKey,
    /// JSON, or any bytes if the actor is in Python; `None` removes the entry.
    pub value: Option<Vec<u8>>,
}
record!(SetState { actor, key, value });

impl SetState {
    fn bytes(&self) -> usize {
        self.key.as_bytes().len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// See [`Payload::ActAs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActAs {
    pub account: Address,
    pub payload: ActedPayload,
}
record!(ActAs { account, payload });

/// A payload other than [`Payload::ActAs`], so that decoding has no depth that a sender chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActedPayload(pub Box<Payload>);

impl Encode for ActedPayload {
    fn encode(&self, w: &mut Writer) {
        self.0.encode(w);
    }
}

impl Decode for ActedPayload {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut ahead = Reader::new(r.rest());
        if ahead.list(2)? > 0 && ahead.u64()? == ACT_AS {
            return Err(DecodeError::Invalid("an act within an act"));
        }
        Decode::decode(r).map(|payload| Self(Box::new(payload)))
    }
}

/// The tag of [`Payload::ActAs`].
const ACT_AS: u64 = 59;

/// See [`Payload::AdvanceTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvanceTime {
    pub ms: u64,
}
record!(AdvanceTime { ms });

/// See [`Payload::ReturnToMark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnToMark {
    /// See [`Mark::number`](crate::chain::state::Mark::number).
    pub mark: u64,
}
record!(ReturnToMark { mark });

/// See [`Payload::ForgetMark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgetMark {
    /// See [`Mark::number`](crate::chain::state::Mark::number).
    pub mark: u64,
}
record!(ForgetMark { mark });

/// See [`Payload::RegisterRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRunner {
    /// The sender's key, which its connections authenticate with.
    pub pubkey: PublicKey,
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
    pub fn commitment(&self) -> Hash {
        keccak256(&[&self.result, &self.runner_signature.0])
    }
}

/// See [`Payload::ReportFailure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFailure {
    pub job_id: Hash,
    pub runner: Address,
    pub said: Excuse,
    /// The runner's signature, as in the frame with the statement.
    pub runner_signature: Signature,
}
record!(ReportFailure { job_id, runner, said, runner_signature });

/// See [`Payload::ReportEquivocation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEquivocation {
    pub job_id: Hash,
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
            Self::CreateTask(task) if !task.depends_on.is_empty() => "create_dependent_task",
            _ => self.kind().1,
        }
    }

    /// Whether its usage is known only after it has run.
    pub(super) fn is_metered(&self) -> bool {
        match self {
            Self::DeployActor(_)
            | Self::DeployPython(_)
            | Self::CallActor(_)
            | Self::SetCode(_) => true,
            Self::ActAs(act) => act.payload.0.is_metered(),
            _ => false,
        }
    }

    /// The value that the sender's balance must hold on top of the fee.
    pub fn value(&self) -> Wei {
        match self {
            Self::Transfer(transfer) => transfer.amount,
            Self::CallActor(call) => call.value,
            Self::DeployPython(deployment) => deployment.value,
            Self::RegisterRunner(register) => register.stake,
            Self::SubmitJob(spec) => spec.escrow(),
            Self::CreateTask(task) => task.reward,
            Self::CreateCommitment(commitment) => commitment.bond,
            _ => Wei::ZERO,
        }
    }
}
