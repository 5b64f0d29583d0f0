//! Free space on the disks that a devnet writes to.
//!
//! A validator whose disk is full cannot write down its votes, and ends. Before it comes to that,
//! while the reserve is still free, validators pause: they vote for nothing and write nothing until
//! there is space again.

use super::home::DevnetHome;
use crate::topology::Size;
use rustix::fs::statvfs;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The reserve is at most this part of a disk: small ones have room for something else.
const SHARE: u64 = 20;

/// How many files of a disk are kept in reserve, on a disk that counts them: a devnet makes some
/// dozens for each validator and epoch.
const FILES: u64 = 2_000;
/// They are at most this part of those that it can hold.
const FILES_SHARE: u64 = 5;

/// A disk with less free than the reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// A folder on it.
    pub path: PathBuf,
    /// What is short.
    pub of: Resource,
    /// How much is free.
    pub free: u64,
    /// How much should be.
    pub reserve: u64,
}

/// What a disk has only so much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Room, in bytes.
    Bytes,
    /// Files that it can hold (inodes).
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

/// A disk of the devnet's with less free than `reserve`, or with less than a twentieth of it where
/// that is less. `more`: as much more has to be free, in percent of the reserve, for a devnet that
/// waits for space. A folder that cannot be asked about is none.
pub(super) fn short(home: &DevnetHome, reserve: Size, more: u64) -> Option<Short> {
    let data = home.data_path();
    let folders = [
        home.path().to_owned(),
        home.validators_path(),
        data.join("consensus"),
        data,
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
    // Without a reserve nothing is kept; a disk that counts no files says that it holds none.
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
        // No disk has more than all of its own free.
        let short = of(folder.path(), Size(u64::MAX), 100 * SHARE * 2).unwrap();
        assert_eq!(short.reserve, all / SHARE);
        assert!(short.to_string().contains("are kept in reserve"));
    }
}
