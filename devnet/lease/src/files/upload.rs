//! Uploads: received into a temporary file, then given a name, then made durable.
//!
//! 1. [`Files::receive_artifact`] and [`Files::receive_cache`] read a body to its end and sync it.
//!    This takes as long as the sender takes.
//! 2. [`Ready::naming`] gives the file its name, which takes no time: the caller can do it while it
//!    knows that the lease is still valid.
//! 3. [`Ready::settle`] syncs the folders. A file that is acknowledged after this survives a crash
//!    under its name.
//!
//! Dropping a [`Ready`] removes a file that got no name.

use super::{
    ArtifactName, AttemptPlace, FileError, Files, artifacts_in, clash, entries, lock, make_parent,
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

/// Complete artifacts without a name yet. They count toward the limits of their attempt.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    next: u64,
    pub(super) of: BTreeMap<AttemptPlace, BTreeMap<u64, (ArtifactName, u64)>>,
}

#[derive(Debug)]
struct Reservation {
    files: Files,
    at: AttemptPlace,
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

/// A complete and synced upload that has no name yet.
#[derive(Debug)]
pub struct Ready {
    files: Files,
    temporary: TempPath,
    bytes: u64,
    /// The final path, and the folder up to which parent folders are synced.
    path: PathBuf,
    top: PathBuf,
    /// The artifact's share of its attempt's limits; `None` for a cache, which displaces older
    /// ones.
    reservation: Option<Reservation>,
}

impl Files {
    /// Receives an artifact that fits within the limits for one artifact and for its attempt.
    pub async fn receive_artifact(
        &self,
        at: &AttemptPlace,
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
        at: AttemptPlace,
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

    pub async fn receive_cache(&self, key: &str, body: Body) -> Result<Ready, FileError> {
        let limits = self.0.limits;
        let (temporary, bytes) = self.receive(body, limits.cache.min(limits.caches)).await?;
        let (path, top) = (self.cache_path(key), self.0.folder.join("caches"));
        Ok(Ready { files: self.clone(), temporary, bytes, path, top, reservation: None })
    }

    /// Reads a body to its end into a file that only the owner may read, and syncs it.
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

    /// Removes the least recently used caches, except the one at `newest`, until the rest is within
    /// the limit. A cache that cannot be removed is skipped.
    fn evict(&self, newest: &Path) -> io::Result<()> {
        let _evicting = lock(&self.0.evicting);
        let (mut kept, mut total) = (Vec::new(), 0);
        for entry in entries(&self.0.folder.join("caches"))? {
            // The cache has gone in the meantime.
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
    /// A closure that gives the file its name and replaces an existing file of that name. It never
    /// waits.
    pub fn naming(&self) -> impl FnOnce() -> Result<(), FileError> + Send + use<> {
        let (temporary, path) = (self.temporary.to_path_buf(), self.path.clone());
        move || {
            make_parent(&path).map_err(clash)?;
            fs::rename(temporary, path).map_err(clash)
        }
    }

    /// Makes the file's name durable. Returns its length in bytes.
    pub async fn settle(self) -> Result<u64, FileError> {
        let Self { files, temporary, bytes, path, top, reservation } = self;
        spawn_blocking(move || {
            // The file has its final name now: dropping the temporary path must not remove it.
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
