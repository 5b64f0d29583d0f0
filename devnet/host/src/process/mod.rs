//! Processes that run for a job: a directory of their own, and an end of the whole tree.
//!
//! A process leads its own process group. When it exits, fails or has to stop, the whole group is
//! killed, including background processes. On Linux, processes that moved to another group or
//! session, as daemons do, are killed too: they are found by [`DIRECTORY_VARIABLE`] in their
//! environment. A process that left its group and also cleared its environment is out of reach once
//! its parent has ended, unless this process adopts orphans ([`adopt_orphans`]). On other systems
//! every process that left its group is out of reach. The runner does not wait for the output of
//! such processes.
//!
//! A killed runner removes nothing. A runner with its own folder for jobs
//! ([`Directories::in_folder`]) removes the remains at its next start.

mod directory;
mod orphans;
mod parent;
pub mod private;
mod progress;
mod stat;
mod tree;

pub use directory::{Directories, Directory};
pub use orphans::adopt as adopt_orphans;
pub use parent::parent_ends;
pub use progress::TaskProgress;
pub use stat::has_members;
pub use tree::{END_TIMEOUT, Tree};

use std::{env, ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

/// Maximum bytes kept of the last line on a command's standard error.
pub const MAX_STDERR: usize = 1024;

/// The environment variable with the path of the command's directory. It marks the job's processes;
/// a job cannot set it.
pub const DIRECTORY_VARIABLE: &str = "COWBOY_JOB_DIRECTORY";

/// The path of `program`: itself if it is a path, otherwise found in a directory of `path`.
pub fn locate(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    env::split_paths(path).map(|directory| directory.join(program)).find(|file| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// A line without control characters, at most [`MAX_STDERR`] bytes.
pub fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String =
        text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown[..shown.floor_char_boundary(MAX_STDERR)].trim().to_owned()
}
