//! Free space on the disks that a devnet writes to.
//!
//! A validator whose disk is full cannot write its votes, and ends. To avoid that, validators pause
//! while the reserve is still free: they do not vote and write nothing until there is space again.

use super::home::DevnetHome;
use crate::topology::Size;
use rustix::fs::statvfs;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The reserve is at most one part in this many of a disk, so that small disks keep room for other
/// files.
const SHARE: u64 = 20;

/// Number of files kept in reserve on a disk that counts files (inodes): a devnet creates some
/// dozens for each validator and epoch.
const FILES: u64 = 2_000;
/// This reserve is at most one part in this many of the files that the disk can hold.
const FILES_SHARE: u64 = 5;

/// A disk with less free than the reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// A folder on the disk.
    pub path: PathBuf,
    pub of: Resource,
    pub free: u64,
    /// The reserve, in the same unit.
    pub reserve: u64,
}

/// A limited resource of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Bytes,
    Files,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.of {
            Resource::Bytes => {
                let mb = |bytes: u64| bytes / 1_000_000;
                let (free, reserve) = (mb(self.free), mb(self.reserve));
                write!(f, "{free} MB are free at {path}, and {reserve} MB are kept in reserve")
            }
            Resource::Files => {
                let Self { free, reserve, .. } = self;
                write!(f, "{free} more files fit at {path}, and {reserve} are kept in reserve")
            }
        }
    }
}

impl std::error::Error for Short {}

/// A disk of the devnet with less free than `reserve`, or than a twentieth of the disk if that is
/// less. `more` raises the required amount by this percentage, for a devnet that waits for space.
/// Folders that cannot be checked are skipped.
pub(super) fn short(home: &DevnetHome, reserve: Size, more: u64) -> Option<Short> {
    let folders = [
        home.path().to_owned(),
        home.validators_path(),
        home.nodes_path(),
        home.consensus_path(),
        home.data_path(),
        home.log_path().parent().unwrap_or(home.path()).to_owned(),
        home.jobs_path(),
        home.runners_path(),
        home.lease_path(),
    ];
    folders.into_iter().find_map(|path| of(&path, reserve, more))
}

fn of(path: &Path, Size(reserve): Size, more: u64) -> Option<Short> {
    let it = statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(it.f_frsize);
    let short = |of, free: u64, reserve: u64| {
        let wanted = reserve.saturating_add(reserve / 100 * more);
        (free < wanted).then(|| Short { path: path.to_owned(), of, free, reserve })
    };
    let room = reserve.min(bytes(it.f_blocks) / SHARE);
    // Without a space reserve there is no file reserve. A disk that does not count files reports 0.
    let files = if reserve == 0 { 0 } else { FILES.min(it.f_files / FILES_SHARE) };
    short(Resource::Bytes, bytes(it.f_bavail), room)
        .or_else(|| short(Resource::Files, it.f_favail, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_short_of_what_it_has_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path(), Size(0), 10), None);
        assert_eq!(of(&folder.path().join("none"), Size(u64::MAX), 0), None);
        let it = statvfs(folder.path()).unwrap();
        let all = it.f_blocks * it.f_frsize;
        // No disk has twice its size free.
        let short = of(folder.path(), Size(u64::MAX), 100 * SHARE * 2).unwrap();
        assert_eq!(short.reserve, all / SHARE);
        assert!(short.to_string().contains("are kept in reserve"));
    }
}
