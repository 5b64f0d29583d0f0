//! Hardening of the runner's process before it knows any secret.
//!
//! Steps run as the runner's user. They could read the lease's id and the runner's token from the
//! runner's memory and open files, and leave processes behind that outlive the job. Linux can
//! prevent both:
//!
//! * A process that cannot be dumped (`PR_SET_DUMPABLE`) cannot be read or traced by its own user
//!   either, so that no job can do it. Processes that a runner starts are not affected. Root may
//!   read everything.
//! * Orphans are reparented to the runner (`PR_SET_CHILD_SUBREAPER`), which ends them with their
//!   step.
//!
//! On every system the runner writes no core file; nor does a step, unless it raises the limit.

use cowboy_host::process::adopt_orphans;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Hardens this process. Only for a process that does nothing but run a [`Runner`](super::Runner),
/// and before it reads a token: every process that it starts or adopts ends with its step.
pub fn guard() -> io::Result<()> {
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    setrlimit(Resource::Core, limit)?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    adopt_orphans()
}
