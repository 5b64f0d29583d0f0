//! Uploads: received into a file without a name, then given one, then kept over a crash.
//!
//! 1. [`Files::receive_artifact`] and [`Files::receive_cache`] take a body to its end and sync it.
//!    That takes as long as the sender does.
//! 2. [`Ready::naming`] gives the file its name, which takes no time: whoever knows that the lease
//!    is still good can do both at one moment.
//! 3. [`Ready::settle`] syncs the folders. Whoever is answered after that finds the file under its
//!    name whatever happens.
//!
//! A file that gets no name is gone with its [`Ready`].

use super::{
    ArtifactName, FileError, Files, Place, artifacts_in, clash, entries, lock, make_parent,
};
use axum::body::Body;
use futures::StreamExt as _;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};
use tempfile::{NamedTempFile, TempPath};
use tokio::{fs::File, io::AsyncWriteExt as _, task::spawn_blocking};

/// Artifacts that are whole and have no name yet: they take their part of what an attempt may
/// leave.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    next: u64,
    pub(super) of: BTreeMap<Place, BTreeMap<u64, (ArtifactName, u64)>>,
}

/// One of them.
#[derive(Debug)]
struct Reservation {
    files: Files,
    at: Place,
    number: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = lock(&self.files.0.reserved);
        if let Some(of) = reserved.of.get_mut(&self.at) {
            of.remove(&self.number);
            if of.is_empty() {
                reserved.of.remove(&self.at);
            }
        }
    }
}

/// An upload that is whole and on the disk, and may have its name.
#[derive(Debug)]
pub struct Ready {
    files: Files,
    temporary: TempPath,
    bytes: u64,
    /// Where it is to be, below which folder.
    path: PathBuf,
    top: PathBuf,
    /// What it takes of its attempt's part; a cache takes that of older ones.
    reservation: Option<Reservation>,
}

impl Files {
    /// Takes an artifact that may be kept: within the limits of one, and with the others of its
    /// attempt.
    pub async fn receive_artifact(
        &self,
        at: &Place,
        name: &ArtifactName,
        body: Body,
    ) -> Result<Ready, FileError> {
        let (temporary, bytes) = self.receive(body, self.0.limits.artifact).await?;
        let (files, at, name) = (self.clone(), at.clone(), name.clone());
        spawn_blocking(move || {
            let folder = files.artifacts_path(&at);
            let (path, top) = (folder.join(name.as_str()), files.0.folder.join("artifacts"));
            let reservation = Some(files.reserve(at, name, &folder, bytes)?);
            Ok(Ready { files, temporary, bytes, path, top, reservation })
        })
        .await?
    }

    fn reserve(
        &self,
        at: Place,
        name: ArtifactName,
        folder: &Path,
        bytes: u64,
    ) -> Result<Reservation, FileError> {
        let limits = self.0.limits;
        let mut reserved = lock(&self.0.reserved);
        let mut others: BTreeMap<_, _> = artifacts_in(folder)?.into_iter().collect();
        for (other, bytes) in reserved.of.get(&at).into_iter().flat_map(BTreeMap::values) {
            let longest = others.entry(other.clone()).or_default();
            *longest = (*longest).max(*bytes);
        }
        others.remove(&name);
        if others.len() >= limits.artifact_count {
            return Err(FileError::Full { limit: limits.artifact_count as u64 });
        }
        if others.values().sum::<u64>() + bytes > limits.artifacts {
            return Err(FileError::Full { limit: limits.artifacts });
        }
        let number = reserved.next;
        reserved.next += 1;
        reserved.of.entry(at.clone()).or_default().insert(number, (name, bytes));
        drop(reserved);
        Ok(Reservation { files: self.clone(), at, number })
    }

    /// Takes a cache.
    pub async fn receive_cache(&self, key: &str, body: Body) -> Result<Ready, FileError> {
        let limits = self.0.limits;
        let (temporary, bytes) = self.receive(body, limits.cache.min(limits.caches)).await?;
        let (path, top) = (self.cache_path(key), self.0.folder.join("caches"));
        Ok(Ready { files: self.clone(), temporary, bytes, path, top, reservation: None })
    }

    /// Takes a body up to its end into a file of the owner's alone, and syncs it.
    async fn receive(&self, body: Body, limit: u64) -> Result<(TempPath, u64), FileError> {
        let folder = self.0.folder.join("tmp");
        let (file, temporary) =
            spawn_blocking(move || NamedTempFile::new_in(folder)).await??.into_parts();
        let mut file = File::from_std(file);
        let mut length = 0;
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| FileError::Broken)?;
            length += chunk.len() as u64;
            if length > limit {
                return Err(FileError::TooLarge { limit });
            }
            file.write_all(&chunk).await?;
        }
        file.flush().await?;
        file.sync_all().await?;
        Ok((temporary, length))
    }

    /// Removes the caches that were not used for longest, but for the one at `newest`, until the
    /// rest is within the limit. One that cannot be removed keeps none of the others.
    fn evict(&self, newest: &Path) -> io::Result<()> {
        let _evicting = lock(&self.0.evicting);
        let (mut kept, mut total) = (Vec::new(), 0);
        for entry in entries(&self.0.folder.join("caches"))? {
            // An error: it has gone meanwhile.
            let Ok(meta) = entry.metadata() else { continue };
            total += meta.len();
            if entry.path() != newest {
                let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                kept.push((used, meta.len(), entry.path()));
            }
        }
        kept.sort();
        for (_, bytes, oldest) in kept {
            if total <= self.0.limits.caches {
                break;
            }
            match fs::remove_file(&oldest) {
                Ok(()) => total -= bytes,
                Err(error) => {
                    let path = oldest.display();
                    tracing::warn!(%path, %error, "an old cache could not be removed");
                }
            }
        }
        Ok(())
    }
}

impl Ready {
    /// Gives the file its name; a file that has it is replaced. What does it has nothing to wait
    /// for.
    pub fn naming(&self) -> impl FnOnce() -> Result<(), FileError> + Send + use<> {
        let (temporary, path) = (self.temporary.to_path_buf(), self.path.clone());
        move || {
            make_parent(&path).map_err(clash)?;
            fs::rename(temporary, path).map_err(clash)
        }
    }

    /// Keeps the name that the file was given. The file's length.
    pub async fn settle(self) -> Result<u64, FileError> {
        let Self { files, temporary, bytes, path, top, reservation } = self;
        spawn_blocking(move || {
            // It has another name: under this one nothing is to be removed.
            temporary.keep().map_err(|error| error.error)?;
            for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&top)) {
                fs::File::open(folder)?.sync_all()?;
            }
            match reservation {
                Some(reservation) => drop(reservation),
                None => files.evict(&path)?,
            }
            Ok(bytes)
        })
        .await?
    }
}
