//! The artifacts of needed jobs, which are put below the working directory before the first step.
//!
//! Names come from the server, and folders may have come from a cache: a name that leads through a
//! link or out of the working directory is refused. If any artifact cannot be downloaded, the job
//! does not begin.

use super::{
    api::{Api, DOWNLOAD_ATTEMPTS, DOWNLOAD_PATIENCE, DOWNLOAD_STALL},
    cache::{kind, relative},
    heartbeat::{CallError, Heartbeats, unless},
};
use crate::messages::{MAX_NEEDED, NeededArtifact};
use reqwest::Response;
use rustix::fs::OFlags;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};

/// Maximum size of all artifacts together, in bytes.
const MAX_BYTES: u64 = 4 << 30;

#[derive(Debug)]
pub(super) enum NeedError {
    Halted,
    Failed(String),
}

/// Downloads all artifacts of the needed jobs, until the job has to stop. Returns their number.
pub(super) async fn bring(
    workdir: &Path,
    api: &Api,
    hold: &Heartbeats,
) -> Result<usize, NeedError> {
    let all = unless(hold.halted(), list(api, hold)).await.map_err(|_| NeedError::Halted)??;
    for artifact in &all {
        match unless(hold.halted(), get(artifact, workdir, api, hold)).await {
            Ok(Ok(())) => {}
            Ok(Err(NeedError::Failed(reason))) => {
                let NeededArtifact { job, name, .. } = artifact;
                let reason = format!("artifact {name} of job {job} is not there: {reason}");
                return Err(NeedError::Failed(reason));
            }
            Ok(Err(NeedError::Halted)) | Err(_) => return Err(NeedError::Halted),
        }
    }
    Ok(all.len())
}

async fn list(api: &Api, hold: &Heartbeats) -> Result<Vec<NeededArtifact>, NeedError> {
    let until = Some(Instant::now() + DOWNLOAD_PATIENCE);
    let asked = hold.call(until, || api.needs(hold.lease())).await;
    let all = asked.map_err(|error| failed(error, "the artifacts of its needed jobs"))?;
    let bytes = all.iter().fold(0_u64, |sum, artifact| sum.saturating_add(artifact.bytes));
    if all.len() > MAX_NEEDED || bytes > MAX_BYTES {
        return Err(NeedError::Failed(format!(
            "the jobs that it needs have {} artifacts of {bytes} bytes: at most {MAX_NEEDED} \
             and {MAX_BYTES} are allowed",
            all.len()
        )));
    }
    Ok(all)
}

fn failed(error: CallError, what: &str) -> NeedError {
    match error {
        CallError::Lost => NeedError::Halted,
        CallError::Refused(error) => NeedError::Failed(format!("{what}: {error}")),
    }
}

async fn get(
    artifact: &NeededArtifact,
    workdir: &Path,
    api: &Api,
    hold: &Heartbeats,
) -> Result<(), NeedError> {
    let NeededArtifact { job, name, bytes } = artifact;
    let mut attempt = 1;
    loop {
        let until = Some(Instant::now() + DOWNLOAD_PATIENCE);
        let got = hold.call(until, || api.get_needed(hold.lease(), job, name)).await;
        let response = got.map_err(|error| failed(error, "the server"))?;
        let (folder, below) = (workdir.to_owned(), name.clone());
        let file = spawn_blocking(move || place(&folder, &below)).await;
        let file = file.map_err(io::Error::from).flatten();
        let file = file.map_err(|error| NeedError::Failed(error.to_string()))?;
        match receive(response, file, *bytes).await {
            Ok(()) => return Ok(()),
            Err(Broken::Local(error)) => return Err(NeedError::Failed(error.to_string())),
            Err(Broken::Off(reason)) if attempt == DOWNLOAD_ATTEMPTS => {
                return Err(NeedError::Failed(reason));
            }
            Err(Broken::Off(_)) => attempt += 1,
        }
    }
}

enum Broken {
    Off(String),
    Local(io::Error),
}

async fn receive(mut response: Response, mut file: File, bytes: u64) -> Result<(), Broken> {
    let mut left = bytes;
    loop {
        let piece = match timeout(DOWNLOAD_STALL, response.chunk()).await {
            Err(_) => {
                return Err(Broken::Off(format!(
                    "nothing came for {} s",
                    DOWNLOAD_STALL.as_secs()
                )));
            }
            Ok(Err(_)) => return Err(Broken::Off("the connection broke".to_owned())),
            Ok(Ok(None)) if left > 0 => return Err(Broken::Off("it is too short".to_owned())),
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(piece))) => piece,
        };
        left = left
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| Broken::Off("it is longer than announced".to_owned()))?;
        let written = spawn_blocking(move || file.write_all(&piece).map(|()| file)).await;
        file = written.map_err(io::Error::from).flatten().map_err(Broken::Local)?;
    }
}

/// Creates the file with this name below a folder, which no process changes in the meantime.
/// Follows no link and replaces an existing file.
fn place(folder: &Path, name: &str) -> io::Result<File> {
    let refused = |reason| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let path = relative(Path::new(name)).filter(|path| path.file_name().is_some());
    let path = path.ok_or_else(|| refused("its name leads out of the working directory"))?;
    let mut at = PathBuf::from(folder);
    for part in path.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match kind(&at)? {
            None => DirBuilder::new().mode(0o700).create(&at)?,
            Some(kind) if kind.is_dir() => {}
            Some(_) => return Err(refused("another file is in the place of its folder")),
        }
    }
    let at = folder.join(path);
    match kind(&at)? {
        None => {}
        Some(kind) if kind.is_dir() => return Err(refused("a folder is in its place")),
        Some(_) => fs::remove_file(&at)?,
    }
    let flags = OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_leads_below_the_folder_alone() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            place(folder.path(), name).and_then(|mut file| file.write_all(text.as_bytes()))
        };
        put("a/b/c", "first").unwrap();
        put("a/b/c", "2nd").unwrap();
        assert_eq!(fs::read(folder.path().join("a/b/c")).unwrap(), b"2nd");
        symlink(outside.path(), folder.path().join("link")).unwrap();
        symlink(outside.path().join("file"), folder.path().join("dangling")).unwrap();
        for name in ["../x", "/x", "a/../../x", "", ".", "link/x", "a", "a/b/c/d"] {
            assert!(put(name, "x").is_err(), "{name}");
        }
        // A link is replaced, not followed.
        put("dangling", "x").unwrap();
        assert_eq!(fs::read(folder.path().join("dangling")).unwrap(), b"x");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
