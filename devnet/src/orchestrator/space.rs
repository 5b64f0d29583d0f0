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

/// A disk with less free than the reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// A folder on it.
    pub path: PathBuf,
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that should be.
    pub reserve: u64,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes / 1_000_000;
        write!(
            f,
            "{} MB are free at {}, and {} MB are kept in reserve",
            mb(self.free),
            self.path.display(),
            mb(self.reserve)
        )
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
    let reserve = reserve.min(bytes(it.f_blocks) / SHARE);
    let wanted = reserve.saturating_add(reserve / 100 * more);
    let free = bytes(it.f_bavail);
    (free < wanted).then(|| Short { path: path.to_owned(), free, reserve })
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
