//! The files that a job leaves behind, sent to the server.

use super::{
    api::{Api, Upload},
    glob::{Globs, Search},
    hold::{CallError, Hold},
    output::Output,
};
use crate::lease::{
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

/// The most files that are sent; the log is an artifact too.
const MAX_FILES: usize = MAX_ARTIFACTS - 1;
/// What the end of a job may have of them, in bytes of JSON: the rest of the message needs far less
/// than the other half.
const MAX_NAMED: usize = MAX_MESSAGE / 2;
/// How long a file is tried to be sent again before it is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// What of a job's files the server has.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    /// Each file's path, by the name that it is kept under: that has no secrets.
    paths: BTreeMap<String, String>,
    /// As the end of the job names them.
    kept: Vec<Artifact>,
    /// How long that is, in bytes of JSON.
    bytes: usize,
}

impl Artifacts {
    /// What the server has.
    pub(super) fn kept(&self) -> &[Artifact] {
        &self.kept
    }

    /// Sends what is there and was not sent yet. Whatever goes wrong is a note in the log; cut off,
    /// what was sent counts.
    pub(super) async fn upload(
        &mut self,
        specs: &[ArtifactSpec],
        folder: &Path,
        api: &Api,
        hold: &Hold,
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
            let text = format!("{left_out} artifacts are not kept: {MAX_FILES} are the most");
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
            let text = format!("{} artifacts are not kept: no UTF-8 names", search.nameless);
            output.note(&text).await;
        }
        if search.cut {
            output.note("not all files were looked at for artifacts: there are too many").await;
        }
    }
}

impl Artifacts {
    /// Has the end of the job name these, if there is room for them.
    fn name(&mut self, artifacts: Vec<Artifact>) -> bool {
        // With a comma or a bracket each.
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

/// Why a file was not sent.
#[derive(Debug)]
pub(super) enum SendError {
    /// The lease is lost.
    Lost,
    /// This.
    Failed(String),
}

/// Sends a file, again where that may help and no later than [`PATIENCE`] from now.
pub(super) async fn send<T, F: Future<Output = Result<T, ClientError>>>(
    path: &Path,
    hold: &Hold,
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
