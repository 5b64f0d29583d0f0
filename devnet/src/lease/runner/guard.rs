//! What the process of a runner does to itself before it knows any secret.
//!
//! Steps run as the runner's user. They could read the lease's id and the runner's token where the
//! runner keeps them, in its memory and its open files, and leave processes behind that outlive
//! the job. Linux can prevent both:
//!
//! * A process that cannot be dumped (`PR_SET_DUMPABLE`) cannot be read or traced by its own user
//!   either, whichever job asks. What a runner starts can be, as before. Root may read everything.
//! * Orphans fall to the runner (`PR_SET_CHILD_SUBREAPER`), which ends them with their step.
//!
//! Everywhere the runner leaves no core file behind; nor does a step, unless it asks for that.

use crate::executor::command::adopt_orphans;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Keeps this process from what it will start. For one that does nothing but run a
/// [`Runner`](super::Runner), before it reads a token: every process that it starts, and every one
/// that falls to it, ends with the step that it belongs to.
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
