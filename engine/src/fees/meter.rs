//! The cost of each kind of transaction in cycles and cells (spec chain.md, "Fees"), and the
//! capacity of a block.

use crate::primitives::{Cells, Cycles};

/// Cycles of a block at which the basefee does not change.
pub const TARGET_CYCLES: u64 = 10_000_000;
/// Cells of a block at which the basefee does not change.
pub const TARGET_CELLS: u64 = 500_000;
/// The maximum number of cycles in a block.
pub const MAX_BLOCK_CYCLES: u64 = 2 * TARGET_CYCLES;
/// The maximum number of cells in a block, and so of bytes of transactions.
pub const MAX_BLOCK_CELLS: u64 = 2 * TARGET_CELLS;
/// Both basefees at genesis, in wei.
pub const GENESIS_BASEFEE: u128 = 1_000;
/// Cycles that every transaction pays, in addition to a cell per byte.
pub const INTRINSIC_CYCLES: u64 = 21_000;

/// The maximum number of cycles of a call that the chain makes: a callback, or the delivery of a
/// message.
pub const CALLBACK_CYCLES: u64 = 1_000_000;
/// The maximum number of cells of such a call.
pub const CALLBACK_CELLS: u64 = 100_000;

/// The most cycles that a continuation can ask for: as many as a block has for all callbacks.
pub const MAX_RESUME_CYCLES: u64 = MAX_BLOCK_CYCLES / 4;
/// The most cells that a continuation can ask for.
pub const MAX_RESUME_CELLS: u64 = MAX_BLOCK_CELLS / 4;

/// The cost of a kind of transaction beyond the intrinsic part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    pub cycles: u64,
    pub cells: u64,
}

/// A transfer, as the spec has it.
pub const TRANSFER: Charge = Charge { cycles: 5_000, cells: 500 };
/// Deploying and calling actors is metered as it runs.
pub const METERED: Charge = Charge { cycles: 0, cells: 0 };
/// Scheduling, extending or cancelling a timer: its place in the queue, and a cell per byte of
/// `payload` (timers.md §1).
pub const fn timer(payload: usize) -> Charge {
    Charge { cycles: 200, cells: payload as u64 }
}
/// A system instruction: a record or a parameter.
pub const SYSTEM: Charge = Charge { cycles: 5_000, cells: 100 };

/// A system instruction that writes this many bytes to a store.
pub const fn set_state(bytes: usize) -> Charge {
    Charge { cells: SYSTEM.cells + bytes as u64, ..SYSTEM }
}
/// A registration: a record of a few hundred bytes and a place in the order.
pub const REGISTER_RUNNER: Charge = Charge { cycles: 50_000, cells: 1_000 };
/// A change of a registration: its record, rewritten.
pub const UPDATE_RUNNER: Charge = Charge { cycles: 20_000, cells: 500 };
/// The end of a registration: a flag of its record, and its place in the order, which is freed.
pub const DEREGISTER_RUNNER: Charge = Charge { cycles: 20_000, cells: 0 };
/// A heartbeat: one field of a record.
pub const RUNNER_HEARTBEAT: Charge = Charge { cycles: 5_000, cells: 100 };
/// A grant or a revocation of a pool membership.
pub const ENTITLEMENT: Charge = Charge { cycles: 10_000, cells: 200 };
/// A job: its record, and the filters and draw that follow.
pub const SUBMIT_JOB: Charge = Charge { cycles: 50_000, cells: 1_000 };
/// A result: a signature check, the record, the MRU entry.
pub const SUBMIT_RESULT: Charge = Charge { cycles: 30_000, cells: 500 };
/// The cancellation of a job: its record.
pub const CANCEL_JOB: Charge = Charge { cycles: 20_000, cells: 200 };
/// A commitment: a signature check, a field of the job's record.
pub const COMMIT_RESULT: Charge = Charge { cycles: 30_000, cells: 200 };
/// A report of failed work: a signature check, a field of the job's record.
pub const REPORT_FAILURE: Charge = Charge { cycles: 30_000, cells: 200 };
/// Evidence against a runner: two signature checks, a field of the job's record, the runner's.
pub const REPORT_EQUIVOCATION: Charge = Charge { cycles: 60_000, cells: 400 };
/// Reveals: a signature check and a field of the record for each, and their comparison.
pub const fn reveals(count: usize) -> Charge {
    Charge { cycles: 30_000 * (count as u64 + 1), cells: 500 }
}
/// A task: its record and its place among the deadlines, and a lookup of each task it depends on.
pub const fn create_task(parents: usize, requirements: usize) -> Charge {
    Charge { cycles: 20_000 + 1_000 * parents as u64, cells: 500 + requirements as u64 }
}
/// A claim: a field of the task's record, perhaps the end of an earlier claim.
pub const CLAIM_TASK: Charge = Charge { cycles: 20_000, cells: 200 };
/// A commitment: a field of the task's record.
pub const CREATE_COMMITMENT: Charge = Charge { cycles: 20_000, cells: 200 };
/// The end of a commitment or a claim: fields of the task's record.
pub const RESOLVE_COMMITMENT: Charge = Charge { cycles: 20_000, cells: 0 };
/// The maximum number of proofs in a block. Checking them takes 27.6 ms if all hold and 98 ms if
/// one does not (docs/performance.md), of the 500 ms or so that a block has.
pub const MAX_BLOCK_PROOFS: u64 = 64;
/// A completion: a proof to check, 1.2 ms by itself, which outweighs everything else. It costs as
/// large a share of a block's cycles as one proof is of a block's proofs.
pub const COMPLETE_TASK: Charge =
    Charge { cycles: MAX_BLOCK_CYCLES / MAX_BLOCK_PROOFS - INTRINSIC_CYCLES, cells: 200 };
const _: () = assert!(
    MAX_BLOCK_CYCLES / (INTRINSIC_CYCLES + COMPLETE_TASK.cycles) == MAX_BLOCK_PROOFS,
    "one proof more does not fit"
);

/// Cycles and cells of a transaction of `bytes` bytes.
pub const fn total(bytes: usize, charge: Charge) -> (Cycles, Cells) {
    let cells = (bytes as u64).saturating_add(charge.cells);
    (Cycles::new(INTRINSIC_CYCLES + charge.cycles), Cells::new(cells))
}
