//! Uploads the artifacts of a job to the server.

use super::{
    api::{Api, Upload},
    glob::{Globs, Search},
    heartbeat::{CallError, Heartbeats},
    output::Output,
};
use crate::{
    client::ClientError,
    messages::{Artifact, ArtifactSpec, MAX_ARTIFACTS, MAX_MESSAGE},
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// Maximum number of files that are sent; the log is an artifact too.
const MAX_FILES: usize = MAX_ARTIFACTS - 1;
/// Size of the artifacts' names in the final message, in bytes of JSON. The rest of the message
/// needs far less than the other half.
const MAX_NAMED: usize = MAX_MESSAGE / 2;
/// How long sending a file is retried.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(super) struct Artifacts {
    /// Path of each file, by its name on the server, which contains no secrets.
    paths: BTreeMap<String, String>,
    kept: Vec<Artifact>,
    /// Size of `kept`, in bytes of JSON.
    bytes: usize,
}

impl Artifacts {
    pub(super) fn kept(&self) -> &[Artifact] {
        &self.kept
    }

    /// Sends the files that were not sent before. Problems become notes in the log. If this is cut
    /// off, the files sent so far count.
    pub(super) async fn upload(
        &mut self,
        specs: &[ArtifactSpec],
        folder: &Path,
        api: &Api,
        hold: &Heartbeats,
        output: &mut Output<'_>,
    ) {
        let Some(search) = search(specs, folder, output).await else { return };
        for (index, spec) in specs.iter().enumerate() {
            if !search.files.iter().any(|file| file.patterns.contains(&index)) {
                output.note(&format!("no file matches {}", spec.path_glob)).await;
            }
        }
        let (mut left_out, mut unnamed) = (0, 0);
        for file in search.files {
            let name = output.mask(&file.name);
            match self.paths.get(&name) {
                None => {}
                Some(path) if *path == file.name => continue,
                Some(_) => {
                    let text = format!("artifact {name} is not kept: another has this name");
                    output.note(&text).await;
                    continue;
                }
            }
            let kinds = file.patterns.iter().map(|pattern| specs[*pattern].kind.clone());
            if self.kept.len() + file.patterns.len() > MAX_FILES {
                left_out += 1;
                continue;
            }
            let put = |upload| api.put_artifact(hold.lease(), &name, upload);
            match send(&folder.join(&file.name), hold, put).await {
                Ok(uri) => {
                    let named = kinds.map(|kind| Artifact { kind, uri: uri.clone() });
                    if !self.name(named.collect()) {
                        unnamed += 1;
                    }
                    self.paths.insert(name, file.name);
                }
                Err(SendError::Lost) => return,
                Err(SendError::Failed(reason)) => {
                    output.note(&format!("artifact {name} is not kept: {reason}")).await;
                }
            }
        }
        if left_out > 0 {
            let text = format!("{left_out} artifacts are not kept: the maximum is {MAX_FILES}");
            output.note(&text).await;
        }
        if unnamed > 0 {
            let text = format!(
                "{unnamed} artifacts are kept, but not named at the end of the job: their names \
                 have more than {MAX_NAMED} bytes"
            );
            output.note(&text).await;
        }
        if search.nameless > 0 {
            let count = search.nameless;
            let text = format!("{count} artifacts are not kept: their names are not UTF-8");
            output.note(&text).await;
        }
        if search.cut {
            output.note("not all files were searched for artifacts: there are too many").await;
        }
    }

    fn name(&mut self, artifacts: Vec<Artifact>) -> bool {
        // Each with a comma or a bracket.
        let json = serde_json::to_vec(&artifacts).map_or(usize::MAX, |json| json.len());
        let bytes = self.bytes.saturating_add(json);
        if bytes > MAX_NAMED {
            return false;
        }
        self.bytes = bytes;
        self.kept.extend(artifacts);
        true
    }
}

async fn search(specs: &[ArtifactSpec], folder: &Path, output: &mut Output<'_>) -> Option<Search> {
    if specs.is_empty() {
        return None;
    }
    let globs = match Globs::new(specs.iter().map(|spec| spec.path_glob.as_str())) {
        Ok(globs) => globs,
        Err(error) => {
            output.note(&format!("no artifacts are kept: {error}")).await;
            return None;
        }
    };
    let folder = PathBuf::from(folder);
    let found = tokio::task::spawn_blocking(move || globs.search(&folder)).await;
    match found.map_err(io::Error::from).flatten() {
        Ok(search) => Some(search),
        Err(error) => {
            output.note(&format!("no artifacts are kept: the working directory: {error}")).await;
            None
        }
    }
}

#[derive(Debug)]
pub(super) enum SendError {
    Lost,
    Failed(String),
}

/// Sends a file, with retries until [`PATIENCE`] from now.
pub(super) async fn send<T, F: Future<Output = Result<T, ClientError>>>(
    path: &Path,
    hold: &Heartbeats,
    put: impl Fn(Upload) -> F,
) -> Result<T, SendError> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || Upload::open(&path)).await;
    let upload = opened
        .map_err(io::Error::from)
        .flatten()
        .map_err(|error| SendError::Failed(error.to_string()))?;
    let until = Some(Instant::now() + PATIENCE);
    hold.call(until, || put(upload.clone())).await.map_err(|error| match error {
        CallError::Lost => SendError::Lost,
        CallError::Refused(error) => SendError::Failed(error.to_string()),
    })
}
