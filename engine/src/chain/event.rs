//! What happened in a block, for those who watch.

use crate::{
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
    registry::JobKind,
};

macro_rules! events {
    ($($(#[$doc:meta])* $tag:literal $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $ty,)*
            }
            record!($name { $($field),* });
        )*

        /// What happened; the variants' documentation is that of their contents.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[$doc])* $name($name),)*
        }

        impl EventKind {
            /// The names of all kinds.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

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
    /// A runner changed what it offers.
    5 RunnerUpdated {
        /// Who.
        runner: Address,
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
        /// What the runner got.
        paid: Wei,
        /// What the submitter got back.
        refunded: Wei,
    }
    /// A job ended without result; the escrow went back.
    13 JobFailed {
        /// The job.
        job_id: Hash,
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
}

/// Something that happened in a block, and through which transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The transaction; absent: the block itself.
    pub transaction: Option<Hash>,
    /// What happened.
    pub kind: EventKind,
}
record!(Event { transaction, kind });

impl Event {
    /// The job it is about.
    pub const fn job_id(&self) -> Option<Hash> {
        match &self.kind {
            EventKind::JobSubmitted(JobSubmitted { job_id, .. })
            | EventKind::JobWaiting(JobWaiting { job_id, .. })
            | EventKind::JobAssigned(JobAssigned { job_id, .. })
            | EventKind::JobVerified(JobVerified { job_id, .. })
            | EventKind::JobFailed(JobFailed { job_id, .. }) => Some(*job_id),
            _ => None,
        }
    }

    /// The actor it is about.
    pub const fn actor(&self) -> Option<Address> {
        match &self.kind {
            EventKind::ActorDeployed(ActorDeployed { actor, .. })
            | EventKind::ActorCalled(ActorCalled { actor, .. })
            | EventKind::ActorEmitted(ActorEmitted { actor, .. }) => Some(*actor),
            _ => None,
        }
    }
}
