//! The limit on this process's open files and sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to the maximum and returns it, or `None` if there is no limit. On most systems
/// a process begins with 1,024 and may raise that far higher.
pub fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // On an error the limit stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current
}
