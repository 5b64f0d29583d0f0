//! Folders that jobs with the same key share: restored before the first step, saved after the last.
//!
//! An archive is unpacked next to the job's folders and moved there once it is complete, so that a
//! broken one leaves nothing behind. Problems become notes in the log, and the job goes on without
//! the cache.

use super::{
    api::{Api, DOWNLOAD_ATTEMPTS, DOWNLOAD_PATIENCE, DOWNLOAD_STALL},
    archive::{self, ArchiveError, HOME, LIMITS, Packed, WORK},
    artifacts::{SendError, send},
    heartbeat::{CallError, Heartbeats, unless},
    output::Output,
    workspace::{Hand, Workspace},
};
use crate::messages::CacheSpec;
use bytes::{Buf as _, Bytes};
use cowboy_host::files::if_there;
use reqwest::Response;
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, FileType},
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt as _,
    path::{Component, Path, PathBuf},
};
use tokio::{
    sync::mpsc,
    task::JoinError,
    time::{Instant, timeout},
};

/// Number of pieces that may wait to be unpacked.
const PIECES: usize = 16;

/// The reason why a cache whose key contains a secret is neither restored nor saved.
const TELLS: &str = "its key holds a secret of the job";

pub(super) struct Folders<'a> {
    pub(super) job: &'a Workspace,
    /// Where steps start, relative to the job's directory.
    pub(super) workdir: &'a Path,
}

#[derive(Debug)]
pub(super) struct Caches<'a> {
    specs: &'a [CacheSpec],
    hits: BTreeSet<&'a str>,
}

impl<'a> Caches<'a> {
    pub(super) fn new(specs: &'a [CacheSpec]) -> Self {
        Self { specs, hits: BTreeSet::new() }
    }

    /// Each key with its paths; the first entry if a key is repeated.
    fn each(
        &self,
        workdir: &Path,
    ) -> impl Iterator<Item = (&'a CacheSpec, Result<Vec<PathBuf>, String>)> + use<'a> {
        let mut keys = BTreeSet::new();
        let workdir = workdir.to_owned();
        let first = self.specs.iter().filter(move |spec| keys.insert(&spec.key));
        first.map(move |spec| (spec, paths(spec, &workdir)))
    }

    /// Restores the caches that the server has, until the job has to stop.
    pub(super) async fn restore(
        &mut self,
        folders: &Folders<'_>,
        api: &Api,
        hold: &Heartbeats,
        output: &mut Output<'_>,
    ) {
        for (spec, paths) in self.each(folders.workdir) {
            let restored = match paths {
                // The server stores keys in plain text.
                _ if output.tells(&spec.key) => Err(CacheError::Failed(TELLS.to_owned())),
                Ok(paths) => restore(spec, paths, folders.job, api, hold).await,
                Err(reason) => Err(CacheError::Failed(reason)),
            };
            let text = match restored {
                Ok(None) => "nothing saved yet".to_owned(),
                Ok(Some(entries)) => {
                    self.hits.insert(&spec.key);
                    format!("{entries} files and folders restored")
                }
                Err(CacheError::Halted) => return,
                Err(CacheError::Broken(reason)) => format!("not restored, it is broken: {reason}"),
                Err(CacheError::Failed(reason)) => format!("not restored: {reason}"),
            };
            output.note(&format!("cache {}: {text}", spec.key)).await;
        }
    }

    /// Saves the caches that the server did not have, until the job has to stop.
    pub(super) async fn save(
        &self,
        folders: &Folders<'_>,
        api: &Api,
        hold: &Heartbeats,
        output: &mut Output<'_>,
    ) {
        for (spec, paths) in self.each(folders.workdir) {
            let Ok(paths) = paths else { continue };
            if self.hits.contains(spec.key.as_str()) || output.tells(&spec.key) {
                continue;
            }
            let text = match save(spec, paths, folders.job, api, hold).await {
                Ok(Packed { entries: 0, .. }) => "not saved, because it is empty".to_owned(),
                Ok(Packed { entries, left_out: 0 }) => {
                    format!("{entries} files and folders saved")
                }
                Ok(Packed { entries, left_out }) => format!(
                    "{entries} files and folders saved, {left_out} left out that are neither or \
                     lead out of the job's folders"
                ),
                Err(CacheError::Halted) => return,
                Err(CacheError::Broken(reason) | CacheError::Failed(reason)) => {
                    format!("not saved: {reason}")
                }
            };
            output.note(&format!("cache {}: {text}", spec.key)).await;
        }
    }
}

#[derive(Debug)]
enum CacheError {
    Halted,
    Broken(String),
    Failed(String),
}

impl From<JoinError> for CacheError {
    fn from(error: JoinError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<CallError> for CacheError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Lost => Self::Halted,
            CallError::Refused(error) => Self::Failed(error.to_string()),
        }
    }
}

/// The cache's paths in the job's directory, without duplicates and without paths below others.
fn paths(spec: &CacheSpec, workdir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = BTreeSet::new();
    for path in &spec.paths {
        let (top, below) = match path.strip_prefix('~') {
            Some(below) if below.is_empty() || below.starts_with('/') => {
                (PathBuf::from(HOME), below.trim_start_matches('/'))
            }
            _ => (Path::new(WORK).join(workdir), path.as_str()),
        };
        let below = relative(Path::new(below)).ok_or_else(|| {
            format!("its path {path} leads neither below the working directory nor below ~")
        })?;
        all.insert(top.join(below));
    }
    // In this order a path comes before everything below it.
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in all {
        // Removes the trailing `/` that joining an empty path leaves.
        let path: PathBuf = path.components().collect();
        if !paths.last().is_some_and(|above| path.starts_with(above)) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// A path without `.` parts; `None` if it is absolute or has `..`.
pub(super) fn relative(path: &Path) -> Option<PathBuf> {
    let mut down = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => down.push(name),
            _ => return None,
        }
    }
    Some(down)
}

/// Downloads and unpacks a cache. Returns the number of its entries; `None` if there is no cache.
async fn restore(
    spec: &CacheSpec,
    paths: Vec<PathBuf>,
    job: &Workspace,
    api: &Api,
    hold: &Heartbeats,
) -> Result<Option<usize>, CacheError> {
    let mut attempt = 1;
    loop {
        let until = Some(Instant::now() + DOWNLOAD_PATIENCE);
        let get = hold.call(until, || api.get_cache(hold.lease(), &spec.key));
        let response = unless(hold.halted(), get).await.map_err(|_| CacheError::Halted)??;
        let Some(response) = response else { return Ok(None) };
        match receive(response, paths.clone(), job, hold).await? {
            Received::Whole(entries) => return Ok(Some(entries)),
            Received::Cut(reason) if attempt == DOWNLOAD_ATTEMPTS => {
                return Err(CacheError::Failed(reason));
            }
            Received::Cut(_) => attempt += 1,
        }
    }
}

enum Received {
    /// The cache is complete and in place, with this number of entries.
    Whole(usize),
    Cut(String),
}

async fn receive(
    mut response: Response,
    paths: Vec<PathBuf>,
    job: &Workspace,
    hold: &Heartbeats,
) -> Result<Received, CacheError> {
    let (pieces, queue) = mpsc::channel(PIECES);
    let mut unpacking = job.work(move |hand| unpack(queue, &paths, hand));
    let feed = async {
        loop {
            let chunk = match timeout(DOWNLOAD_STALL, response.chunk()).await {
                Err(_) => return Some(format!("nothing came for {} s", DOWNLOAD_STALL.as_secs())),
                Ok(Err(_)) => return Some("the connection broke".to_owned()),
                Ok(Ok(chunk)) => chunk,
            };
            // A channel that closes without the final `None` means that the download broke off.
            let last = chunk.is_none();
            if pieces.send(chunk).await.is_err() || last {
                return None;
            }
        }
    };
    let cut = unless(hold.halted(), feed).await;
    // Closing the channel ends the unpacking if it still runs.
    drop(pieces);
    let unpacked = unpacking.done().await?;
    match (cut, unpacked) {
        (Err(_), _) => Err(CacheError::Halted),
        (_, Ok(entries)) => Ok(Received::Whole(entries)),
        (Ok(Some(reason)), Err(_)) => Ok(Received::Cut(reason)),
        (Ok(None), Err(error)) => Err(CacheError::Broken(error.to_string())),
    }
}

/// A reader of pieces as they arrive. `None` is the end; a closed channel without it is an error.
struct Pieces {
    queue: mpsc::Receiver<Option<Bytes>>,
    piece: Bytes,
    ended: bool,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.ended {
            match self.queue.blocking_recv() {
                Some(Some(piece)) => self.piece = piece,
                Some(None) => self.ended = true,
                None => return Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            }
        }
        let length = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

fn unpack(
    queue: mpsc::Receiver<Option<Bytes>>,
    paths: &[PathBuf],
    hand: &Hand,
) -> Result<usize, ArchiveError> {
    let job = hand.path();
    // The temporary folder is removed with its contents in any case.
    let staging = tempfile::Builder::new().prefix("cache-").tempdir_in(job)?;
    let pieces = Pieces { queue, piece: Bytes::new(), ended: false };
    let unpacked = archive::unpack(pieces, LIMITS, staging.path())?;
    for path in paths {
        if hand.is_over() {
            return Err(over().into());
        }
        put(staging.path(), job, path)?;
    }
    unpacked.settle(job);
    Ok(unpacked.entries)
}

/// Moves `path` from one folder to the other without replacing anything.
fn put(from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    if kind(&from.join(path))?.is_none() {
        return Ok(());
    }
    let parents: Vec<_> = path.ancestors().skip(1).collect();
    for parent in parents.into_iter().rev() {
        let folder = to.join(parent);
        match kind(&folder)? {
            None => DirBuilder::new().mode(0o700).create(&folder)?,
            Some(kind) if kind.is_dir() => {}
            // Restored from another cache.
            Some(_) => return Ok(()),
        }
    }
    let (from, to) = (from.join(path), to.join(path));
    let mut left = vec![(from, to)];
    while let Some((from, to)) = left.pop() {
        match (kind(&from)?, kind(&to)?) {
            (_, None) => fs::rename(&from, &to)?,
            (Some(new), Some(old)) if new.is_dir() && old.is_dir() => {
                for entry in fs::read_dir(&from)? {
                    let entry = entry?;
                    left.push((entry.path(), to.join(entry.file_name())));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The type of the file at `path`, without following links; `None` if absent.
pub(super) fn kind(path: &Path) -> io::Result<Option<FileType>> {
    Ok(if_there(fs::symlink_metadata(path))?.map(|meta| meta.file_type()))
}

async fn save(
    spec: &CacheSpec,
    paths: Vec<PathBuf>,
    job: &Workspace,
    api: &Api,
    hold: &Heartbeats,
) -> Result<Packed, CacheError> {
    let mut packing = job.work(move |hand| {
        let file = tempfile::Builder::new().prefix("cache-").tempfile_in(hand.path())?;
        let (out, path) = file.into_parts();
        let packed = archive::pack(hand.path(), &paths, LIMITS, Until { out, hand })?;
        Ok::<_, ArchiveError>((packed, path))
    });
    let packed = unless(hold.halted(), packing.done()).await.map_err(|_| CacheError::Halted)??;
    let (packed, file) = packed.map_err(|error| CacheError::Failed(error.to_string()))?;
    if packed.entries == 0 {
        return Ok(packed);
    }
    let put = |upload| api.put_cache(hold.lease(), &spec.key, upload);
    match unless(hold.halted(), send(&file, hold, put)).await {
        Ok(Ok(())) => Ok(packed),
        Ok(Err(SendError::Failed(reason))) => Err(CacheError::Failed(reason)),
        Ok(Err(SendError::Lost)) | Err(_) => Err(CacheError::Halted),
    }
}

/// A writer that fails once the job has to stop.
struct Until<'a> {
    out: File,
    hand: &'a Hand,
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.hand.is_over() {
            return Err(over());
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn over() -> io::Error {
    io::Error::other("the job has to stop")
}
