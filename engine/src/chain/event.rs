//! What happened in a block, for those who watch.

use crate::{
    job::spec::{FailureReason, SlashReason},
    presence::Phase,
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    proof::Element,
    record,
    registry::JobKind,
    speculation::RollbackReason,
    timer::{Policy, Setting},
};

/// The documentation of a kind of events. Texts begin with a blank, as doc comments do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindDoc {
    /// The kind's name.
    pub name: &'static str,
    /// When it happens.
    pub about: &'static str,
    /// Its fields, in order.
    pub fields: &'static [FieldDoc],
}

/// The documentation of a field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDoc {
    /// Its name.
    pub name: &'static str,
    /// Its type, as Rust has it: `Option<Height>`.
    pub ty: &'static str,
    /// What it says.
    pub about: &'static str,
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $tag:literal $name:ident {
        $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty),* $(,)?
    })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[doc = $field_doc])* pub $field: $ty,)*
            }
            record!($name { $($field),* });
        )*

        /// What happened; the variants' documentation is that of their contents.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[doc = $doc])* $name($name),)*
        }

        impl EventKind {
            /// The names of all kinds.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// What the documentation of each kind says, in the order of [`Self::NAMES`].
            pub const DOCS: &'static [KindDoc] = &[$(KindDoc {
                name: stringify!($name),
                about: concat!($($doc),*),
                fields: &[$(FieldDoc {
                    name: stringify!($field),
                    ty: stringify!($ty),
                    about: concat!($($field_doc),*),
                }),*],
            }),*];

            /// The kind's name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }
        }

        impl Encode for EventKind {
            fn encode(&self, w: &mut Writer) {
                w.list(2);
                match self {
                    $(Self::$name(body) => {
                        w.u64($tag);
                        body.encode(w);
                    })*
                }
            }
        }

        impl Decode for EventKind {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                if r.list(2)? != 2 {
                    return Err(DecodeError::Invalid("an event is a pair of kind and body"));
                }
                match r.u64()? {
                    $($tag => Decode::decode(r).map(Self::$name),)*
                    _ => Err(DecodeError::Invalid("unknown event kind")),
                }
            }
        }

        $(impl From<$name> for EventKind {
            fn from(body: $name) -> Self {
                Self::$name(body)
            }
        })*
    };
}

events! {
    /// No P(H) recent enough: nobody counts as present in this block.
    1 PresenceUnavailable {
        /// The newest height whose P is known; absent: none.
        newest: Option<Height>,
    }
    /// P(H) of an ancestor became known through the certificate in this block.
    2 PresenceDerived {
        /// The ancestor.
        certified: Height,
        /// Votes in its certificate.
        votes: u32,
        /// Runners present.
        present: u32,
        /// Runners registered at the ancestor's parent.
        registered: u32,
    }
    /// Money moved.
    3 Transferred {
        /// Whose it was.
        from: Address,
        /// Whose it is.
        to: Address,
        /// How much.
        amount: Wei,
    }
    /// A runner joined the registry.
    4 RunnerRegistered {
        /// Who.
        runner: Address,
        /// Its index.
        index: u32,
        /// What it locked.
        stake: Wei,
    }
    /// A runner changed what it offers, or locked more.
    5 RunnerUpdated {
        /// Who.
        runner: Address,
        /// What it has locked.
        stake: Wei,
    }
    /// A runner left the registry.
    6 RunnerDeregistered {
        /// Who.
        runner: Address,
        /// What it got back.
        stake: Wei,
    }
    /// A runner became a member of a pool.
    7 EntitlementGranted {
        /// The pool.
        pool: String,
        /// The member.
        runner: Address,
    }
    /// A runner left a pool.
    8 EntitlementRevoked {
        /// The pool.
        pool: String,
        /// The former member.
        runner: Address,
    }
    /// A job was recorded and its escrow taken.
    9 JobSubmitted {
        /// The job.
        job_id: Hash,
        /// Whose.
        submitter: Address,
        /// What kind.
        kind: JobKind,
    }
    /// A job found no candidate; it is drawn again in the next block.
    10 JobWaiting {
        /// The job.
        job_id: Hash,
        /// Runners registered.
        registered: u32,
    }
    /// A job's committee was drawn.
    11 JobAssigned {
        /// The job.
        job_id: Hash,
        /// Who, in draw order.
        committee: Vec<Address>,
        /// The last block whose results count.
        deadline: Height,
    }
    /// A job's verified result is final.
    12 JobVerified {
        /// The job.
        job_id: Hash,
        /// Whose result it is.
        runner: Address,
        /// keccak256 of the result.
        result_hash: Hash,
        /// Who agrees with it, in draw order.
        agreeing: Vec<Address>,
        /// What runners got in all.
        paid: Wei,
        /// What the submitter got back.
        refunded: Wei,
    }
    /// A job ended without result; the escrow went back.
    13 JobFailed {
        /// The job.
        job_id: Hash,
        /// Why.
        reason: FailureReason,
        /// What the submitter got back.
        refunded: Wei,
    }
    /// The verifier wrote an MRU record.
    14 MruUpdated {
        /// Whose jobs.
        submitter: Address,
        /// Of which kind.
        kind: JobKind,
        /// The runner that is favoured.
        runner: Address,
    }
    /// Connectivity subsets are those of a new epoch.
    15 SubsetEpochAdvanced {
        /// The epoch.
        epoch: u64,
    }
    /// An actor was deployed.
    16 ActorDeployed {
        /// The actor.
        actor: Address,
        /// Who deployed it.
        deployer: Address,
        /// keccak256 of its source.
        code: Hash,
    }
    /// A handler of an actor was called, by a transaction or by a message.
    17 ActorCalled {
        /// The actor.
        actor: Address,
        /// Who called: an account, or the actor that sent the message.
        sender: Address,
        /// The handler.
        handler: String,
        /// What came with the call.
        value: Wei,
    }
    /// An actor told something.
    18 ActorEmitted {
        /// The actor.
        actor: Address,
        /// The event's name.
        name: String,
        /// Its data, JSON.
        data: Vec<u8>,
    }
    /// A timer was scheduled.
    19 TimerScheduled {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// When it is due.
        height: Height,
        /// The last height at which it may fire.
        expires_at: Height,
        /// Most wei per cycle.
        max_fee_per_cycle: Wei,
        /// Most wei per cycle for the proposer.
        max_priority_fee_per_cycle: Wei,
        /// Who pays.
        fee_payer: Address,
        /// What the fire may cost: the most where the payer is not the actor, else the most while
        /// neither basefee is more than twice what it is now.
        max_cost: Wei,
    }
    /// A timer's priority was cut to what its fee cap leaves above the lane basefee.
    20 TimerPriorityClampedAtSchedule {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// What was asked for, wei per cycle.
        stated: Wei,
        /// What it is.
        clamped: Wei,
    }
    /// A timer asks for more cycles than a fire gets under this policy: it cannot fire before the
    /// policy or the cap changes.
    21 TimerExceedsAuctionCap {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// What it asks for.
        gas_limit: u64,
        /// The cap.
        cap: u64,
    }
    /// A timer fired.
    22 TimerFired {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// Whether its handler succeeded.
        success: bool,
        /// Cycles paid for.
        cycles: u64,
        /// What the proposer got, wei per cycle.
        priority_per_cycle: Wei,
    }
    /// A timer's time passed before it could fire.
    23 TimerExpired {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// The last height at which it could have fired.
        expires_at: Height,
    }
    /// A due timer's payer cannot pay, or has not promised to pay so much: it is gone.
    24 TimerCancelledInsufficientFunds {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// The payer.
        fee_payer: Address,
        /// The most that the fire would have cost.
        required: Wei,
        /// The payer's balance, or what it promised, whichever is less.
        available: Wei,
    }
    /// A timer was cancelled.
    25 TimerCancelled {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// Who cancelled it: the owner, its deployer, the payer, or a system deployer.
        by: Address,
    }
    /// A timer lives longer.
    26 TimerExtended {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// The last height at which it may fire.
        expires_at: Height,
    }
    /// A gas bidding agent gave no bid; the default bid stands for it. Told once, until it has
    /// given one again.
    27 GbaFailed {
        /// The timer.
        timer_id: Hash,
        /// Its owner, who pays for the question.
        actor: Address,
        /// The agent.
        gba: Address,
        /// Why.
        reason: String,
    }
    /// Governed parameters of timers and fees are to have other values from a height on.
    28 TimerConfigProposed {
        /// Who proposed it.
        by: Address,
        /// The first block with them.
        height: Height,
        /// The values, as proposed.
        settings: Vec<Setting>,
    }
    /// A governed parameter has another value from the next block on.
    29 ParameterSet {
        /// Its key.
        key: String,
        /// Its value before.
        before: u64,
        /// Its value from now on.
        after: u64,
    }
    /// Due timers compete under another policy from this block on.
    30 TimerPolicyActivated {
        /// The policy.
        policy: Policy,
    }
    /// Another migration phase begins with the next block.
    31 PhaseChanged {
        /// The phase until then.
        from: Phase,
        /// The phase from then on.
        to: Phase,
    }
    /// A validator votes from a consensus epoch on.
    32 ValidatorAdded {
        /// Who.
        validator: Address,
        /// The epoch.
        epoch: u64,
        /// Its first height.
        from: Height,
    }
    /// A validator votes no longer from a consensus epoch on.
    33 ValidatorRemoved {
        /// Who.
        validator: Address,
        /// The epoch.
        epoch: u64,
        /// Its first height.
        from: Height,
    }
    /// The first of a job's committee has committed to a result.
    34 JobRunning {
        /// The job.
        job_id: Hash,
    }
    /// A runner has committed to its result.
    35 ResultCommitted {
        /// The job.
        job_id: Hash,
        /// Who.
        runner: Address,
        /// keccak256(result ‖ signature).
        commitment: Hash,
    }
    /// No more commitments count: results are to be revealed.
    36 JobCommitted {
        /// The job.
        job_id: Hash,
        /// Who has committed, in draw order.
        committed: Vec<Address>,
        /// Who is to reveal them all.
        aggregator: Address,
        /// The first block in which runners may reveal for themselves.
        own_reveals_from: Height,
    }
    /// A runner's result was revealed.
    37 ResultRevealed {
        /// The job.
        job_id: Hash,
        /// Whose.
        runner: Address,
        /// keccak256 of the result.
        result_hash: Hash,
    }
    /// An attempt at a job came to nothing; it is drawn again.
    38 JobRetried {
        /// The job.
        job_id: Hash,
        /// The number of the retry, from 1.
        retry: u32,
        /// Why.
        reason: FailureReason,
        /// Who was silent, in draw order: excluded from now on.
        silent: Vec<Address>,
        /// The retry's last block.
        deadline: Height,
    }
    /// A job was taken back; the escrow went back.
    39 JobCancelled {
        /// The job.
        job_id: Hash,
        /// By whom.
        by: Address,
        /// What the submitter got back.
        refunded: Wei,
    }
    /// A runner was paid for a job.
    40 RunnerPaid {
        /// The job.
        job_id: Hash,
        /// Who.
        runner: Address,
        /// For its time.
        work: Wei,
        /// Its part of the tip.
        tip: Wei,
        /// For aggregating.
        aggregation: Wei,
    }
    /// A runner's reputation changed.
    41 ReputationChanged {
        /// Whose.
        runner: Address,
        /// Through which job.
        job_id: Hash,
        /// What it was.
        before: u32,
        /// What it is.
        after: u32,
    }
    /// A part of a runner's stake, or of its balance, was burned.
    42 RunnerSlashed {
        /// Whose.
        runner: Address,
        /// The job.
        job_id: Hash,
        /// How much.
        amount: Wei,
        /// Why.
        reason: SlashReason,
    }
    /// The actor that a job names was told of its end.
    43 CallbackMade {
        /// The job.
        job_id: Hash,
        /// The actor.
        actor: Address,
        /// Its handler.
        handler: String,
        /// Cycles paid for.
        cycles: u64,
        /// What was paid, all of it burned.
        charged: Wei,
        /// Why it failed; absent: it did not.
        error: Option<String>,
    }
    /// A runner said that it cannot do a job.
    44 WorkFailed {
        /// The job.
        job_id: Hash,
        /// Who.
        runner: Address,
        /// Why, in the runner's words.
        reason: String,
    }
    /// A task was put up, its reward held for it.
    45 TaskCreated {
        /// The task.
        task_id: Hash,
        /// By whom.
        creator: Address,
        /// Tasks that must be completed before it.
        depends_on: Vec<Hash>,
        /// Those of them whose outputs it does not read.
        order_only: Vec<Hash>,
        /// Tasks on the longest path above it that are not completed.
        depth: u32,
        /// hash_4 of the output that is asked for; absent: any output will do.
        constraint_hash: Option<Element>,
        /// What an agent needs, in the creator's words.
        requirements: Vec<String>,
        /// What completing it is paid.
        reward: Wei,
        /// The last block that may complete it.
        deadline: Height,
    }
    /// An agent alone may complete a task.
    46 TaskClaimed {
        /// The task.
        task_id: Hash,
        /// Who.
        agent: Address,
        /// The last block in which the claim counts.
        expires_at: Height,
    }
    /// An agent has committed to a task's output.
    47 CommitmentCreated {
        /// The task.
        task_id: Hash,
        /// Who.
        agent: Address,
        /// hash_2 of the output's hash and a salt.
        output_commitment: Element,
        /// The digest of what the output was made from.
        inputs: Hash,
        /// What is locked.
        bond: Wei,
        /// The last block that may complete the task with it; absent: that of the claim.
        expires_at: Option<Height>,
    }
    /// A task was proved and paid.
    48 TaskCompleted {
        /// The task.
        task_id: Hash,
        /// By whom.
        agent: Address,
        /// What it got.
        paid: Wei,
    }
    /// A commitment was ended, or a claim given up that had none.
    49 CommitmentResolved {
        /// The task.
        task_id: Hash,
        /// Whose it was.
        agent: Address,
        /// Why the work came to nothing; absent: it did not.
        reason: Option<RollbackReason>,
        /// What of the bond went back.
        released: Wei,
        /// What of the bond was burned.
        slashed: Wei,
    }
    /// A task was not completed by its deadline.
    50 TaskExpired {
        /// The task.
        task_id: Hash,
        /// What the creator got back.
        refunded: Wei,
    }
    /// Governed parameters of timers and fees have other values from this block on.
    55 TimerConfigActivated {
        /// Who proposed last for this height; absent: the genesis document.
        by: Option<Address>,
        /// The values, ascending by key.
        settings: Vec<Setting>,
    }
    /// Governed parameters of runners' connections are to have other values from a height on.
    56 ConnectivityProposed {
        /// Who proposed it.
        by: Address,
        /// The first block with them.
        height: Height,
        /// The values, as proposed.
        settings: Vec<Setting>,
    }
    /// Governed parameters of runners' connections have other values from this block on.
    57 ConnectivityActivated {
        /// Who proposed last for this height.
        by: Option<Address>,
        /// The values, ascending by key.
        settings: Vec<Setting>,
    }
    /// Governed parameters of tasks' bonds are to have other values from a height on.
    58 TaskTermsProposed {
        /// Who proposed it.
        by: Address,
        /// The first block with them.
        height: Height,
        /// The values, as proposed.
        settings: Vec<Setting>,
    }
    /// Governed parameters of tasks' bonds have other values from this block on.
    59 TaskTermsActivated {
        /// Who proposed last for this height.
        by: Option<Address>,
        /// The values, ascending by key.
        settings: Vec<Setting>,
    }
    /// The agents of an owner's due timers were asked for bids, and the owner paid for it.
    52 AgentsAsked {
        /// The owner.
        actor: Address,
        /// Of how many timers.
        timers: u64,
        /// Cycles paid for.
        cycles: u64,
        /// What was paid, wei: all of it is burned.
        paid: Wei,
    }
    /// A due timer asked for more than fires get since the policy or a limit changed after it had
    /// been scheduled: it gets what they get.
    51 TimerGasClamped {
        /// The timer.
        timer_id: Hash,
        /// Its owner.
        actor: Address,
        /// The cycles that it asked for.
        gas_limit: u64,
        /// The cells that it asked for.
        cell_limit: u64,
        /// The cycles that it may use now.
        gas_cap: u64,
        /// The cells that it may use now.
        cell_cap: u64,
    }
}

/// Something that happened in a block, and through what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The transaction; absent: a timer's fire, or the block itself.
    pub transaction: Option<Hash>,
    /// The timer whose fire it was.
    pub timer: Option<Hash>,
    /// What happened.
    pub kind: EventKind,
}
record!(Event { transaction, timer, kind });

impl Event {
    /// The job it is about.
    pub const fn job_id(&self) -> Option<Hash> {
        match &self.kind {
            EventKind::JobSubmitted(JobSubmitted { job_id, .. })
            | EventKind::JobWaiting(JobWaiting { job_id, .. })
            | EventKind::JobAssigned(JobAssigned { job_id, .. })
            | EventKind::JobVerified(JobVerified { job_id, .. })
            | EventKind::JobFailed(JobFailed { job_id, .. })
            | EventKind::JobRunning(JobRunning { job_id })
            | EventKind::ResultCommitted(ResultCommitted { job_id, .. })
            | EventKind::JobCommitted(JobCommitted { job_id, .. })
            | EventKind::ResultRevealed(ResultRevealed { job_id, .. })
            | EventKind::JobRetried(JobRetried { job_id, .. })
            | EventKind::JobCancelled(JobCancelled { job_id, .. })
            | EventKind::RunnerPaid(RunnerPaid { job_id, .. })
            | EventKind::ReputationChanged(ReputationChanged { job_id, .. })
            | EventKind::RunnerSlashed(RunnerSlashed { job_id, .. })
            | EventKind::CallbackMade(CallbackMade { job_id, .. })
            | EventKind::WorkFailed(WorkFailed { job_id, .. }) => Some(*job_id),
            _ => None,
        }
    }

    /// The actor it is about.
    pub const fn actor(&self) -> Option<Address> {
        match &self.kind {
            EventKind::ActorDeployed(ActorDeployed { actor, .. })
            | EventKind::ActorCalled(ActorCalled { actor, .. })
            | EventKind::ActorEmitted(ActorEmitted { actor, .. })
            | EventKind::TimerScheduled(TimerScheduled { actor, .. })
            | EventKind::TimerPriorityClampedAtSchedule(TimerPriorityClampedAtSchedule {
                actor,
                ..
            })
            | EventKind::TimerExceedsAuctionCap(TimerExceedsAuctionCap { actor, .. })
            | EventKind::TimerExtended(TimerExtended { actor, .. })
            | EventKind::TimerFired(TimerFired { actor, .. })
            | EventKind::TimerExpired(TimerExpired { actor, .. })
            | EventKind::TimerGasClamped(TimerGasClamped { actor, .. })
            | EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
                actor,
                ..
            })
            | EventKind::GbaFailed(GbaFailed { actor, .. })
            | EventKind::AgentsAsked(AgentsAsked { actor, .. })
            | EventKind::TimerCancelled(TimerCancelled { actor, .. }) => Some(*actor),
            _ => None,
        }
    }

    /// The timer it is about, or through whose fire it happened.
    pub const fn timer_id(&self) -> Option<Hash> {
        match &self.kind {
            EventKind::TimerScheduled(TimerScheduled { timer_id, .. })
            | EventKind::TimerPriorityClampedAtSchedule(TimerPriorityClampedAtSchedule {
                timer_id,
                ..
            })
            | EventKind::TimerExceedsAuctionCap(TimerExceedsAuctionCap { timer_id, .. })
            | EventKind::TimerFired(TimerFired { timer_id, .. })
            | EventKind::TimerExpired(TimerExpired { timer_id, .. })
            | EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
                timer_id,
                ..
            })
            | EventKind::TimerCancelled(TimerCancelled { timer_id, .. })
            | EventKind::TimerExtended(TimerExtended { timer_id, .. })
            | EventKind::TimerGasClamped(TimerGasClamped { timer_id, .. })
            | EventKind::GbaFailed(GbaFailed { timer_id, .. }) => Some(*timer_id),
            _ => self.timer,
        }
    }
}
