//! The reasons why a message is refused.

use cowboy_engine::names;

/// Why a lease is dead (spec leases.md, Second round).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    UnknownLease,
    LeaseExpired,
    /// It was taken back.
    LeaseRevoked,
    LeaseCompleted,
    LeaseCanceled,
}

names!(Stale:
    UnknownLease = "UNKNOWN_LEASE",
    LeaseExpired = "LEASE_EXPIRED",
    LeaseRevoked = "LEASE_REVOKED",
    LeaseCompleted = "LEASE_COMPLETED",
    LeaseCanceled = "LEASE_CANCELED",
);

/// Why a message is refused and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("stale lease: {0}")]
    Stale(Stale),
    /// The lease has not been acked yet. It stays live.
    #[error("the lease was not acked yet")]
    NotAcked,
    /// The job is to be stopped and can no longer be completed. The lease stays live.
    #[error("the job is to be stopped")]
    CancelRequested,
    #[error("the lease is another runner's")]
    WrongRunner,
    #[error("the lease is for another job")]
    WrongJob,
    #[error("no cancel was requested")]
    NoCancelRequested,
    #[error("the job has ended")]
    Ended,
    #[error("the job has no live lease")]
    NotLeased,
    #[error("there is no such job or run")]
    NotFound,
}
