//! The table of events.

use crate::{
    chain::event::{FieldDoc, KindDoc},
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
    timer::{Policy, ProposedValue},
};

events! {
    /// No P(H) is recent enough: no runner counts as present in this block.
    1 PresenceUnavailable {
        /// The newest height whose P is known; absent: none.
        newest: Option<Height>,
    }
    /// P(H) of an ancestor was derived from the certificate in this block.
    2 PresenceDerived {
        /// Height of the ancestor.
        certified: Height,
        /// Number of votes in its certificate.
        votes: u32,
        /// Number of runners present.
        present: u32,
        /// Number of runners registered at the ancestor's parent.
        registered: u32,
    }
    /// Money moved between accounts.
    3 Transferred {
        /// The sender.
        from: Address,
        /// The recipient.
        to: Address,
        /// The amount transferred.
        amount: Wei,
    }
    /// A runner joined the registry.
    4 RunnerRegistered {
        /// The runner's address.
        runner: Address,
        /// Its registry index.
        index: u32,
        /// The stake it locked.
        stake: Wei,
    }
    /// A runner changed its capabilities or price, or locked more stake.
    5 RunnerUpdated {
        /// The runner's address.
        runner: Address,
        /// The stake it has locked now.
        stake: Wei,
    }
    /// A runner left the registry.
    6 RunnerDeregistered {
        /// The runner's address.
        runner: Address,
        /// The stake it got back.
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
        /// Id of the job.
        job_id: Hash,
        /// The submitter's address.
        submitter: Address,
        /// The job's kind.
        kind: JobKind,
    }
    /// A job found no candidate; it is drawn again in the next block.
    10 JobWaiting {
        /// Id of the job.
        job_id: Hash,
        /// Number of runners registered.
        registered: u32,
    }
    /// A job's committee was drawn.
    11 JobAssigned {
        /// Id of the job.
        job_id: Hash,
        /// The runners drawn, in draw order.
        committee: Vec<Address>,
        /// The last block whose results count.
        deadline: Height,
    }
    /// A job's verified result is final.
    12 JobVerified {
        /// Id of the job.
        job_id: Hash,
        /// The runner whose result was taken.
        runner: Address,
        /// keccak256 of the result.
        result_hash: Hash,
        /// Runners that agree with the result, in draw order.
        agreeing: Vec<Address>,
        /// Total paid to runners.
        paid: Wei,
        /// Returned to the submitter.
        refunded: Wei,
    }
    /// A job ended without a result; the escrow was returned.
    13 JobFailed {
        /// Id of the job.
        job_id: Hash,
        /// Why it failed.
        reason: FailureReason,
        /// Returned to the submitter.
        refunded: Wei,
    }
    /// The verifier wrote an MRU record.
    14 MruUpdated {
        /// The submitter that the record is for.
        submitter: Address,
        /// The job kind that the record is for.
        kind: JobKind,
        /// The runner that is favoured from now on.
        runner: Address,
    }
    /// The connectivity subsets of a new epoch apply from this block on.
    15 SubsetEpochAdvanced {
        /// Number of the new epoch.
        epoch: u64,
    }
    /// An actor was deployed.
    16 ActorDeployed {
        /// Address of the actor.
        actor: Address,
        /// The deployer's address.
        deployer: Address,
        /// keccak256 of its source.
        code: Hash,
    }
    /// A handler of an actor was called, by a transaction or by a message.
    17 ActorCalled {
        /// Address of the actor.
        actor: Address,
        /// The caller: an account, or the actor that sent the message.
        sender: Address,
        /// Name of the handler.
        handler: String,
        /// Value sent with the call.
        value: Wei,
    }
    /// An actor emitted an event.
    18 ActorEmitted {
        /// Address of the actor.
        actor: Address,
        /// The event's name.
        name: String,
        /// Its data, as JSON.
        data: Vec<u8>,
    }
    /// An actor in Python emitted an event.
    60 PythonEmitted {
        /// Address of the actor.
        actor: Address,
        /// The event's name.
        name: String,
        /// Its data: CBOR, unless the actor gave bytes. The field `data_bytes` has it as bytes.
        data: Vec<u8>,
        /// The id of the schema that the actor gave.
        schema: Option<Hash>,
    }
    /// A message of an actor in Python was delivered.
    61 MessageDelivered {
        /// The actor that sent it.
        sender: Address,
        /// The actor that it was for.
        actor: Address,
        /// Cycles used.
        cycles: u64,
        /// The amount paid by the sender in wei, all of it burned.
        charged: Wei,
        /// Why the delivery failed and was undone; absent: it succeeded.
        error: Option<String>,
    }
    /// An actor in Python was handed over to another owner.
    62 OwnershipTransferred {
        /// Address of the actor.
        actor: Address,
        /// The owner until now.
        from: Address,
        /// The owner from now on.
        to: Address,
    }
    /// A timer was scheduled.
    19 TimerScheduled {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// Height at which it is due.
        height: Height,
        /// The last height at which it may fire.
        expires_at: Height,
        /// Maximum fee, in wei per cycle.
        max_fee_per_cycle: Wei,
        /// Maximum priority fee for the proposer, in wei per cycle.
        max_priority_fee_per_cycle: Wei,
        /// The account that pays for the fire.
        fee_payer: Address,
        /// Cost bound of the fire. If the payer is not the actor: the most it may cost. Otherwise:
        /// the most while neither basefee exceeds twice its present value.
        max_cost: Wei,
    }
    /// A timer's priority was reduced to what its fee cap leaves above the lane basefee.
    20 TimerPriorityClampedAtSchedule {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// The priority asked for, in wei per cycle.
        stated: Wei,
        /// The priority after the reduction, in wei per cycle.
        clamped: Wei,
    }
    /// A timer asks for more cycles than a fire gets under this policy: it cannot fire before the
    /// policy or the cap changes.
    21 TimerExceedsAuctionCap {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// Cycles that it asks for.
        gas_limit: u64,
        /// Maximum cycles of a fire.
        cap: u64,
    }
    /// A timer fired.
    22 TimerFired {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// Whether its handler succeeded.
        success: bool,
        /// Cycles paid for.
        cycles: u64,
        /// Priority paid to the proposer, in wei per cycle.
        priority_per_cycle: Wei,
    }
    /// A timer's lifetime ended before it could fire.
    23 TimerExpired {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// The last height at which it could have fired.
        expires_at: Height,
    }
    /// A due timer was removed because its payer cannot pay, or has not promised enough.
    24 TimerCancelledInsufficientFunds {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// The account that pays for the fire.
        fee_payer: Address,
        /// The most that the fire could have cost.
        required: Wei,
        /// The payer's balance, or what it promised, whichever is less.
        available: Wei,
    }
    /// A timer was cancelled.
    25 TimerCancelled {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// The account that cancelled it: the owner, its deployer, the payer, or a system deployer.
        by: Address,
    }
    /// A timer's lifetime was extended.
    26 TimerExtended {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// The last height at which it may fire.
        expires_at: Height,
    }
    /// A gas bidding agent gave no bid, so the default bid applies. Not repeated until the agent
    /// has given a bid again.
    27 GbaFailed {
        /// Id of the timer.
        timer_id: Hash,
        /// The timer's owner, which pays for the question.
        actor: Address,
        /// Address of the agent.
        gba: Address,
        /// Why it gave no bid.
        reason: String,
    }
    /// Other values of governed timer and fee parameters were proposed.
    28 TimerConfigProposed {
        /// The proposer of the values.
        by: Address,
        /// The first block with these values.
        height: Height,
        /// The values, as proposed.
        settings: Vec<ProposedValue>,
    }
    /// A governed parameter changes with the next block.
    29 ParameterSet {
        /// Key of the parameter.
        key: String,
        /// Its value until now.
        before: u64,
        /// Its value from the next block on.
        after: u64,
    }
    /// Due timers compete under a new policy from this block on.
    30 TimerPolicyActivated {
        /// The policy.
        policy: Policy,
    }
    /// A new migration phase begins with the next block.
    31 PhaseChanged {
        /// The phase until now.
        from: Phase,
        /// The phase from the next block on.
        to: Phase,
    }
    /// A validator joins the committee with a consensus epoch.
    32 ValidatorAdded {
        /// Address of the validator.
        validator: Address,
        /// The consensus epoch.
        epoch: u64,
        /// First height of the epoch.
        from: Height,
    }
    /// A validator leaves the committee with a consensus epoch.
    33 ValidatorRemoved {
        /// Address of the validator.
        validator: Address,
        /// The consensus epoch.
        epoch: u64,
        /// First height of the epoch.
        from: Height,
    }
    /// The first member of a job's committee has committed to a result.
    34 JobRunning {
        /// Id of the job.
        job_id: Hash,
    }
    /// A runner has committed to its result.
    35 ResultCommitted {
        /// Id of the job.
        job_id: Hash,
        /// The runner's address.
        runner: Address,
        /// keccak256(result ‖ signature).
        commitment: Hash,
    }
    /// A job's commitments are closed: results are to be revealed.
    36 JobCommitted {
        /// Id of the job.
        job_id: Hash,
        /// Runners that have committed, in draw order.
        committed: Vec<Address>,
        /// The runner that is to reveal all results.
        aggregator: Address,
        /// The first block in which runners may reveal for themselves.
        own_reveals_from: Height,
    }
    /// A runner's result was revealed.
    37 ResultRevealed {
        /// Id of the job.
        job_id: Hash,
        /// The runner whose result it is.
        runner: Address,
        /// keccak256 of the result.
        result_hash: Hash,
    }
    /// An attempt at a job failed; a new committee is drawn.
    38 JobRetried {
        /// Id of the job.
        job_id: Hash,
        /// Number of the retry, from 1.
        retry: u32,
        /// Why the attempt failed.
        reason: FailureReason,
        /// Runners that were silent, in draw order; they are excluded from now on.
        silent: Vec<Address>,
        /// The last block whose results count for the retry.
        deadline: Height,
    }
    /// A job was cancelled; the escrow was returned.
    39 JobCancelled {
        /// Id of the job.
        job_id: Hash,
        /// The account that cancelled it.
        by: Address,
        /// Returned to the submitter.
        refunded: Wei,
    }
    /// A runner was paid for a job.
    40 RunnerPaid {
        /// Id of the job.
        job_id: Hash,
        /// The runner's address.
        runner: Address,
        /// Paid for its time.
        work: Wei,
        /// Its share of the tip.
        tip: Wei,
        /// Paid for aggregating.
        aggregation: Wei,
    }
    /// A runner's reputation changed.
    41 ReputationChanged {
        /// The runner's address.
        runner: Address,
        /// Id of the job that caused the change.
        job_id: Hash,
        /// Its reputation before.
        before: u32,
        /// Its reputation after.
        after: u32,
    }
    /// Part of a runner's stake or balance was burned.
    42 RunnerSlashed {
        /// The runner's address.
        runner: Address,
        /// Id of the job.
        job_id: Hash,
        /// The amount burned.
        amount: Wei,
        /// Why it was burned.
        reason: SlashReason,
    }
    /// The actor that a job names was notified of the job's end.
    43 CallbackMade {
        /// Id of the job.
        job_id: Hash,
        /// Address of the actor.
        actor: Address,
        /// Name of its handler.
        handler: String,
        /// Cycles paid for.
        cycles: u64,
        /// The amount paid, all of it burned.
        charged: Wei,
        /// Why the call failed; absent if it succeeded.
        error: Option<String>,
    }
    /// A runner reported that it cannot do a job.
    44 WorkFailed {
        /// Id of the job.
        job_id: Hash,
        /// The runner's address.
        runner: Address,
        /// Why, in the runner's words.
        reason: String,
    }
    /// A task was created and its reward held in escrow.
    45 TaskCreated {
        /// Id of the task.
        task_id: Hash,
        /// The creator's address.
        creator: Address,
        /// Tasks that must be completed before it.
        depends_on: Vec<Hash>,
        /// The tasks in `depends_on` whose outputs it does not read.
        order_only: Vec<Hash>,
        /// Number of uncompleted tasks on the longest path above it.
        depth: u32,
        /// hash_4 of the required output; absent: any output will do.
        constraint_hash: Option<Element>,
        /// What the creator requires of an agent: labels of its choice.
        requirements: Vec<String>,
        /// Paid for completing it.
        reward: Wei,
        /// The last block in which it can be completed.
        deadline: Height,
    }
    /// An agent claimed a task: only this agent may complete it.
    46 TaskClaimed {
        /// Id of the task.
        task_id: Hash,
        /// Address of the agent.
        agent: Address,
        /// The last block in which the claim counts.
        expires_at: Height,
    }
    /// An agent has committed to a task's output.
    47 CommitmentCreated {
        /// Id of the task.
        task_id: Hash,
        /// Address of the agent.
        agent: Address,
        /// hash_2 of the output's hash and a salt.
        output_commitment: Element,
        /// Digest of the inputs that the output was made from.
        inputs: Hash,
        /// The bond locked.
        bond: Wei,
        /// The last block in which it can complete the task; absent: that of the claim.
        expires_at: Option<Height>,
    }
    /// A task was proved and its reward paid.
    48 TaskCompleted {
        /// Id of the task.
        task_id: Hash,
        /// The agent that completed it.
        agent: Address,
        /// The reward paid to the agent.
        paid: Wei,
    }
    /// A commitment was resolved, or a claim without one was given up.
    49 CommitmentResolved {
        /// Id of the task.
        task_id: Hash,
        /// The agent that made it.
        agent: Address,
        /// Why the work failed; absent if it did not.
        reason: Option<RollbackReason>,
        /// The part of the bond that was returned.
        released: Wei,
        /// The part of the bond that was burned.
        slashed: Wei,
    }
    /// A task was not completed by its deadline.
    50 TaskExpired {
        /// Id of the task.
        task_id: Hash,
        /// Returned to the creator.
        refunded: Wei,
    }
    /// Proposed values of governed timer and fee parameters apply from this block on.
    55 TimerConfigActivated {
        /// The last account to propose for this height; absent: the genesis document.
        by: Option<Address>,
        /// The values, ascending by key.
        settings: Vec<ProposedValue>,
    }
    /// Other values of governed connectivity parameters were proposed.
    56 ConnectivityProposed {
        /// The proposer of the values.
        by: Address,
        /// The first block with these values.
        height: Height,
        /// The values, as proposed.
        settings: Vec<ProposedValue>,
    }
    /// Proposed values of governed connectivity parameters apply from this block on.
    57 ConnectivityActivated {
        /// The last account to propose for this height.
        by: Option<Address>,
        /// The values, ascending by key.
        settings: Vec<ProposedValue>,
    }
    /// Other values of governed bond parameters were proposed.
    58 TaskTermsProposed {
        /// The proposer of the values.
        by: Address,
        /// The first block with these values.
        height: Height,
        /// The values, as proposed.
        settings: Vec<ProposedValue>,
    }
    /// Proposed values of governed bond parameters apply from this block on.
    59 TaskTermsActivated {
        /// The last account to propose for this height.
        by: Option<Address>,
        /// The values, ascending by key.
        settings: Vec<ProposedValue>,
    }
    /// The gas bidding agents of an owner's due timers were asked for bids; the owner paid for it.
    52 AgentsAsked {
        /// The actor that owns the timers.
        actor: Address,
        /// Number of timers.
        timers: u64,
        /// Cycles paid for.
        cycles: u64,
        /// The amount paid in wei, all of it burned.
        paid: Wei,
    }
    /// A due timer asks for more than a fire gets, because the policy or a limit changed after it
    /// was scheduled; its limits were reduced.
    51 TimerGasClamped {
        /// Id of the timer.
        timer_id: Hash,
        /// The actor that owns it.
        actor: Address,
        /// Cycles that it asked for.
        gas_limit: u64,
        /// Cells that it asked for.
        cell_limit: u64,
        /// Cycles that it may use now.
        gas_cap: u64,
        /// Cells that it may use now.
        cell_cap: u64,
    }
    /// A system deployer set an account's balance.
    63 BalanceSet {
        /// The account.
        account: Address,
        /// Its balance before, in wei.
        before: Wei,
        /// Its balance after, in wei.
        after: Wei,
        /// The account that paid the difference, or got it.
        counterpart: Address,
    }
    /// A system deployer set or removed an entry of an actor's store.
    64 StateSet {
        /// The actor.
        actor: Address,
        /// The key; 0x and hexadecimal digits if it is not text.
        key: String,
        /// Bytes of the value; absent: the entry was removed.
        bytes: Option<u64>,
    }
    /// A system deployer acted as another account.
    65 ActedAs {
        /// The account.
        account: Address,
        /// The system deployer.
        by: Address,
    }
    /// A system deployer moved the clock of later blocks ahead.
    66 TimeAdvanced {
        /// By how much, in milliseconds.
        ms: u64,
        /// How far it is ahead now, in milliseconds.
        total: u64,
    }
    /// A system deployer marked the state at the end of this block.
    67 StateMarked {
        /// The mark's number.
        mark: u64,
    }
    /// A system deployer returned to a marked state at the end of this block.
    68 StateReturned {
        /// The mark's number.
        mark: u64,
        /// The block that it marks.
        height: Height,
    }
    /// A system deployer forgot a marked state at the end of this block.
    69 StateForgotten {
        /// The mark's number.
        mark: u64,
    }
}
