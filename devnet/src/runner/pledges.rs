//! Commitments that a runner has signed, on disk before they leave it (spec jobs.md §5).
//!
//! ```text
//! <folder>/JOB        0600: checksum[32] ‖ the commitment, its result and its heights as CBOR
//! <folder>/JOB.N.new  0600: a file that is being written
//! ```
//!
//! A file is synced and renamed before its commitment is sent. After a restart the commitment is
//! delivered again, and its result is shown to validators that ask. A file is removed when the
//! chain cancels the job or its deadline passes; another attempt at the job replaces it. The number
//! and size of the files are bounded like the job table.
//!
//! A file that has such a name but cannot be read, or that belongs to another chain or runner, is
//! removed: this runner sent nothing from it on this chain. Anything else in the folder, including
//! links and folders, is left alone and named in the log. A link in place of the folder itself is
//! refused.

use crate::home::{self, HomeError};
use cowboy_engine::{
    job::spec::MAX_RETURN_BYTES,
    primitives::{
        Hash, Height, PublicKey,
        codec::{from_slice, to_vec},
        keccak256,
    },
    record,
    session::jobs::{MAX_RESULTS, Pledge},
    wire::{JobCommit, JobResult},
};
use cowboy_host::{files, nofollow};
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD},
    io::Errno,
};
use std::{
    ffi::{CStr, OsStr},
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// The longest file in bytes: checksum, record and heights take far less than 4 KiB.
const FILE_LIMIT: u64 = MAX_RETURN_BYTES as u64 + 4_096;
const CHECKSUM: usize = 32;
/// Hex digits of a job's id, which is the file's name.
const JOB_DIGITS: usize = 64;

struct PledgeRecord {
    /// Tells chains with the same id apart.
    chain: Hash,
    result: JobResult,
    commit: JobCommit,
    deadline: Height,
}
record!(PledgeRecord { chain, result, commit, deadline });

/// The folder of a runner's commitments.
#[derive(Debug)]
pub struct Pledges {
    folder: PathBuf,
    chain: Hash,
    written: AtomicU64,
}

impl Pledges {
    /// Opens the commitments in `folder`, and creates the folder if it is missing. Refuses a link.
    /// `chain` is a hash that tells this chain from earlier ones whose commitments may be in the
    /// folder.
    pub fn open(folder: PathBuf, chain: Hash) -> Result<Self, HomeError> {
        home::refuse_other_than_folder(&folder)?;
        files::create_private_dir(&folder)?;
        Ok(Self { folder, chain, written: AtomicU64::new(0) })
    }

    /// Reads this runner's commitments. Removes other files that are named like commitments.
    pub fn load(&self, chain_id: u64, runner: &PublicKey) -> io::Result<Vec<Pledge>> {
        let mut pledges = Vec::new();
        let folder = nofollow::directory(CWD, &self.folder)?;
        for entry in nofollow::entries(&folder)? {
            let (name, kind) = entry?;
            let path = self.folder.join(OsStr::from_bytes(name.to_bytes()));
            if !kind.is_file() || !is_own_name(name.to_bytes()) {
                tracing::warn!(path = %path.display(), "not a commitment, left as it is");
                continue;
            }
            match self.read(&folder, &name, &path, chain_id, runner) {
                Some(pledge) if pledges.len() < MAX_RESULTS => pledges.push(pledge),
                _ => {
                    tracing::warn!(path = %path.display(), "not this runner's commitment; removed");
                    match rustix::fs::unlinkat(&folder, &*name, AtFlags::empty()) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(pledges)
    }

    fn read(
        &self,
        folder: &OwnedFd,
        name: &CStr,
        path: &Path,
        chain_id: u64,
        runner: &PublicKey,
    ) -> Option<Pledge> {
        let mut bytes = Vec::new();
        let file = nofollow::file(folder, name).ok()?;
        file.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
        let (checksum, bytes) = bytes.split_at_checked(CHECKSUM)?;
        if keccak256(&[bytes]).0 != checksum {
            return None;
        }
        let PledgeRecord { chain, result, commit, deadline } = from_slice(bytes).ok()?;
        let whole = chain == self.chain
            && *path == self.path(&commit.job_id)
            && result.job_id == commit.job_id
            && commit.deadline_block == deadline
            && result.commitment() == commit.commitment
            && result.verify(chain_id, runner)
            && commit.verify(chain_id, runner);
        whole.then_some(Pledge { result, commit, deadline })
    }

    /// Writes a commitment: it is on disk when this returns.
    pub fn write(&self, pledge: &Pledge) -> io::Result<()> {
        let Pledge { result, commit, deadline } = pledge.clone();
        let path = self.path(&commit.job_id);
        let record = PledgeRecord { chain: self.chain, result, commit, deadline };
        let bytes = to_vec(&record);
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let fresh = path.with_extension(format!("{number}.new"));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&fresh)?;
        let written = file
            .write_all(&keccak256(&[&bytes]).0)
            .and_then(|()| file.write_all(&bytes))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&fresh, &path));
        if let Err(error) = written {
            // The disk may be full, for example. The next start removes any leftover.
            let _ = fs::remove_file(&fresh);
            return Err(error);
        }
        File::open(&self.folder)?.sync_all()
    }

    /// A file that cannot be removed is loaded after a restart and removed then.
    pub fn remove(&self, job_id: &Hash) {
        if let Err(error) = files::remove_file(&self.path(job_id)) {
            tracing::warn!(%job_id, %error, "cannot remove a commitment that is over");
        }
    }

    fn path(&self, job_id: &Hash) -> PathBuf {
        self.folder.join(hex::encode(job_id.0))
    }
}

/// Whether a file name is one that this module gives: `JOB` or `JOB.N.new`.
fn is_own_name(name: &[u8]) -> bool {
    let Some((job, rest)) = name.split_at_checked(JOB_DIGITS) else { return false };
    let number = rest.strip_prefix(b".").and_then(|rest| rest.strip_suffix(b".new"));
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    job.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        && (rest.is_empty() || number.is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{primitives::SecretKey, wire::Body};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const CHAIN_ID: u64 = 7;
    const CHAIN: Hash = Hash([1; 32]);

    fn pledge(job: u8, result: &[u8]) -> Pledge {
        let key = SecretKey::derive(b"pledges", "runner");
        let (job_id, body) = (Hash([job; 32]), Body::new(result.to_vec()).unwrap());
        let result = JobResult::signed(CHAIN_ID, &key, job_id, body);
        let deadline = Height::new(20);
        let commit = JobCommit::signed(CHAIN_ID, &key, job_id, deadline, result.commitment());
        Pledge { result, commit, deadline }
    }

    fn load(folder: &Path, chain: Hash, runner: &str) -> Vec<Pledge> {
        let pledges = Pledges::open(folder.to_owned(), chain).unwrap();
        let runner = SecretKey::derive(b"pledges", runner).public_key();
        let mut loaded = pledges.load(CHAIN_ID, &runner).unwrap();
        loaded.sort_by_key(|pledge| pledge.commit.job_id);
        loaded
    }

    #[test]
    fn what_was_written_is_there_after_a_restart_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("commitments");
        let pledges = Pledges::open(path.clone(), CHAIN).unwrap();
        let [one, two] = [pledge(1, b"one"), pledge(2, b"two")];
        pledges.write(&pledge(1, b"of an attempt before")).unwrap();
        pledges.write(&one).unwrap();
        pledges.write(&two).unwrap();
        for entry in fs::read_dir(&path).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(load(&path, CHAIN, "runner"), [one, two.clone()]);
        pledges.remove(&Hash([1; 32]));
        pledges.remove(&Hash([1; 32]));
        assert_eq!(load(&path, CHAIN, "runner"), [two]);
    }

    #[test]
    fn only_files_named_as_commitments_are_removed() {
        let (folder, photos) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let photo = photos.path().join(hex::encode([9; 32]));
        fs::write(&photo, "snow").unwrap();
        let job = |digit: &str| digit.repeat(JOB_DIGITS);
        let left = [
            "winter.jpg".to_owned(),
            job("A"),
            job("1") + ".new",
            job("1") + ".x.new",
            job("1") + ".2.new.jpg",
            job("1") + "1",
        ];
        for name in &left {
            fs::write(folder.path().join(name), "snow").unwrap();
        }
        symlink(&photo, folder.path().join(job("2"))).unwrap();
        fs::create_dir(folder.path().join(job("3"))).unwrap();
        for name in [job("4"), job("5") + ".17.new"] {
            fs::write(folder.path().join(name), "snow").unwrap();
        }
        assert_eq!(load(folder.path(), CHAIN, "runner"), []);
        let has = |name: &str| folder.path().join(name).symlink_metadata().is_ok();
        for name in left.iter().chain(&[job("2"), job("3")]) {
            assert!(has(name), "{name}");
        }
        assert!(!has(&job("4")) && !has(&(job("5") + ".17.new")));

        let linked = folder.path().join("linked");
        symlink(photos.path(), &linked).unwrap();
        let error = Pledges::open(linked, CHAIN).unwrap_err();
        assert!(matches!(error, HomeError::NotFolder(_)), "{error}");
        assert_eq!(fs::read_to_string(photo).unwrap(), "snow");
    }

    #[test]
    fn what_is_damaged_unfinished_or_of_others_is_removed() {
        let check = |chain: Hash, runner: &str, damage: &dyn Fn(&Path)| {
            let folder = tempfile::tempdir().unwrap();
            let pledges = Pledges::open(folder.path().to_owned(), CHAIN).unwrap();
            pledges.write(&pledge(1, b"one")).unwrap();
            damage(&folder.path().join(hex::encode([1; 32])));
            assert_eq!(load(folder.path(), chain, runner), []);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        };
        check(Hash([2; 32]), "runner", &|_| {});
        check(CHAIN, "other", &|_| {});
        check(CHAIN, "runner", &|path| fs::write(path, "").unwrap());
        check(CHAIN, "runner", &|path| fs::rename(path, path.with_extension("0.new")).unwrap());
        for place in [0, CHECKSUM, CHECKSUM + 60] {
            check(CHAIN, "runner", &|path| {
                let mut bytes = fs::read(path).unwrap();
                bytes[place] ^= 1;
                fs::write(path, bytes).unwrap();
            });
        }
    }
}
