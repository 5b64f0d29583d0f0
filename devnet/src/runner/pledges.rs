//! Commitments that a runner has signed, on disk before they leave it (spec jobs.md §5).
//!
//! ```text
//! <folder>/JOB        0600: checksum[32] ‖ the commitment, its result and its heights as CBOR
//! <folder>/JOB.N.new  0600: one that is being written
//! ```
//!
//! A file is synced and has its name before the commitment is sent. After a restart the commitment
//! is delivered again, and its result is shown to validators that ask. A file goes when the chain
//! takes the job back or its deadline passes; another attempt of the job replaces it. Their number
//! and bytes are bounded as those of the job table are.
//!
//! What cannot be read, or is of another chain or runner, is removed: nothing of it was sent by
//! this runner on this chain.

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
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// The longest file: checksum and record take far less than the room beside the result.
const FILE_LIMIT: u64 = MAX_RETURN_BYTES as u64 + 4_096;
/// Bytes of the checksum.
const CHECKSUM: usize = 32;

/// A file's contents.
struct Record {
    /// Tells chains of one id apart.
    chain: Hash,
    result: JobResult,
    commit: JobCommit,
    deadline: Height,
}
record!(Record { chain, result, commit, deadline });

/// A folder of commitments.
#[derive(Debug)]
pub struct Pledges {
    folder: PathBuf,
    chain: Hash,
    /// Numbers the files that are being written.
    written: AtomicU64,
}

impl Pledges {
    /// The commitments in `folder`, which is made where there is none. `chain` is a hash that no
    /// other chain has whose commitments may be left there.
    pub fn open(folder: PathBuf, chain: Hash) -> Result<Self, HomeError> {
        home::create_private_dir(&folder)?;
        Ok(Self { folder, chain, written: AtomicU64::new(0) })
    }

    /// What is kept of this runner's. Everything else in the folder is removed.
    pub fn load(&self, chain_id: u64, runner: &PublicKey) -> io::Result<Vec<Pledge>> {
        let mut pledges = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            match self.read(&path, chain_id, runner) {
                Some(pledge) if pledges.len() < MAX_RESULTS => pledges.push(pledge),
                _ => {
                    tracing::warn!(path = %path.display(), "no commitment of this runner; removed");
                    fs::remove_file(&path)?;
                }
            }
        }
        Ok(pledges)
    }

    fn read(&self, path: &Path, chain_id: u64, runner: &PublicKey) -> Option<Pledge> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
        let (checksum, bytes) = bytes.split_at_checked(CHECKSUM)?;
        if keccak256(&[bytes]).0 != checksum {
            return None;
        }
        let Record { chain, result, commit, deadline } = from_slice(bytes).ok()?;
        let whole = chain == self.chain
            && *path == self.path(&commit.job_id)
            && result.job_id == commit.job_id
            && commit.deadline_block == deadline
            && result.commitment() == commit.commitment
            && result.verify(chain_id, runner)
            && commit.verify(chain_id, runner);
        whole.then_some(Pledge { result, commit, deadline })
    }

    /// Keeps a commitment: it is on the disk when this returns.
    pub fn write(&self, pledge: &Pledge) -> io::Result<()> {
        let Pledge { result, commit, deadline } = pledge.clone();
        let path = self.path(&commit.job_id);
        let record = Record { chain: self.chain, result, commit, deadline };
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
            // As of a full disk: the next start removes what stays.
            let _ = fs::remove_file(&fresh);
            return Err(error);
        }
        File::open(&self.folder)?.sync_all()
    }

    /// Forgets a commitment, where there is one. A file that stays is loaded after a restart, and
    /// goes then.
    pub fn remove(&self, job_id: &Hash) {
        if let Err(error) = home::remove_file(&self.path(job_id)) {
            tracing::warn!(%job_id, %error, "a commitment that is over is not removed");
        }
    }

    fn path(&self, job_id: &Hash) -> PathBuf {
        self.folder.join(hex::encode(job_id.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{primitives::SecretKey, wire::Body};
    use std::os::unix::fs::PermissionsExt as _;

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
