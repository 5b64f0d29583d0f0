//! `lease artifacts`: lists or downloads a job's artifacts.

use super::{complete, connect::ServerChoice, find, show::printable};
use crate::{
    args,
    context::Context,
    error::{CliError, Exit},
    output::Row,
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_lease::{client::Client, files::ArtifactName, messages::StoredArtifact};
use serde::Serialize;
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::NamedTempFile;
use tokio::time::Instant;

/// `lease artifacts`.
#[derive(Debug, Args)]
pub struct Artifacts {
    /// The job: an id, the beginning of one, or RUN/NAME
    #[arg(add = ArgValueCandidates::new(complete::jobs))]
    job: String,
    /// Only artifacts with these names
    names: Vec<String>,
    /// Only those of this attempt, from 1 [default: all; with --download the last one that has any]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Download them into this folder; files with the same names are replaced
    #[arg(long, value_name = "FOLDER")]
    download: Option<PathBuf>,
    /// With --download: maximum time
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "10m")]
    timeout: Duration,
    #[command(flatten)]
    server: ServerChoice,
}

/// A downloaded artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Downloaded {
    attempt: u32,
    name: String,
    bytes: u64,
    #[cfg_attr(test, schema(value_type = String))]
    path: PathBuf,
}

impl Row for Downloaded {
    const HEADER: &'static [&'static str] = &[">attempt", "name", ">bytes", "=path"];
    const LEAST: &'static [&'static str] = &["bytes", "name"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.attempt.to_string(),
            self.name.clone(),
            self.bytes.to_string(),
            self.path.display().to_string(),
        ]
    }

    fn id(&self) -> String {
        self.path.display().to_string()
    }
}

impl Artifacts {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = self.server.client(cx)?;
        let job = find::job(&client, &self.job).await?;
        let artifacts = self.chosen(client.artifacts(&job).await?, &job)?;
        let Some(folder) = &self.download else { return cx.ui.list(&artifacts) };
        // Check every name before writing the first file.
        let targets = artifacts.iter().map(|artifact| Ok((artifact, target(folder, artifact)?)));
        let targets = targets.collect::<Result<Vec<_>, CliError>>()?;
        let deadline = Instant::now() + self.timeout;
        let mut downloaded = Vec::new();
        for (artifact, path) in targets {
            let progress = cx.ui.progress(printable(&artifact.name));
            download(&client, &job, artifact, &path, deadline).await?;
            drop(progress);
            downloaded.push(Downloaded {
                attempt: artifact.attempt,
                name: artifact.name.clone(),
                bytes: artifact.bytes,
                path,
            });
        }
        cx.ui.list(&downloaded)
    }

    fn chosen(
        &self,
        mut artifacts: Vec<StoredArtifact>,
        job: &str,
    ) -> Result<Vec<StoredArtifact>, CliError> {
        let last = artifacts.iter().map(|artifact| artifact.attempt).max();
        let attempt = self.attempt.or(last.filter(|_| self.download.is_some()));
        artifacts.retain(|artifact| attempt.is_none_or(|attempt| artifact.attempt == attempt));
        if self.names.is_empty() {
            return Ok(artifacts);
        }
        if let Some(name) =
            self.names.iter().find(|name| artifacts.iter().all(|artifact| artifact.name != **name))
        {
            let of = attempt.map_or_else(String::new, |attempt| format!(" in attempt {attempt}"));
            let what = format!("{job} has no artifact `{name}`{of}");
            return Err(CliError::new(Exit::NotFound, what)
                .hint(format!("list its artifacts: cowboyctl lease artifacts {job}")));
        }
        artifacts.retain(|artifact| self.names.contains(&artifact.name));
        Ok(artifacts)
    }
}

/// The path of an artifact: below the folder, whatever the server names it.
fn target(folder: &Path, artifact: &StoredArtifact) -> Result<PathBuf, CliError> {
    let name = printable(&artifact.name);
    let name: ArtifactName = artifact.name.parse().map_err(|error| {
        CliError::new(Exit::Invalid, format!("the server has an artifact `{name}`: {error}"))
            .hint("nothing was written; name the artifacts that you want")
    })?;
    Ok(folder.join(name.as_str()))
}

/// The file gets its name only when it is complete.
async fn download(
    client: &Client,
    job: &str,
    artifact: &StoredArtifact,
    path: &Path,
    deadline: Instant,
) -> Result<(), CliError> {
    let io = |error: std::io::Error| CliError::file(Exit::Failed, path, &error);
    let name = printable(&artifact.name);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(io)?;
    let mut file = NamedTempFile::new_in(folder).map_err(io)?;
    let left = deadline.saturating_duration_since(Instant::now());
    let response = client.download(job, artifact.attempt, &artifact.name, left).await;
    let mut response = response?;
    let mut bytes = 0;
    let broken = |reason: String| CliError::failed(format!("artifact `{name}`: {reason}"));
    while let Some(chunk) = response.chunk().await.map_err(|error| match error.is_timeout() {
        true => CliError::new(Exit::TimedOut, format!("artifact `{name}`: not in time"))
            .detail(format!("last seen: {bytes} of {} bytes", artifact.bytes))
            .hint("give it longer with --timeout"),
        false => broken("the connection broke".to_owned()),
    })? {
        bytes += chunk.len() as u64;
        if bytes > artifact.bytes {
            break;
        }
        file.write_all(&chunk).map_err(io)?;
    }
    if bytes != artifact.bytes {
        return Err(broken(format!("{bytes} bytes arrived, it has {}", artifact.bytes)));
    }
    file.persist(path).map_err(|error| io(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        let check = |name: &str, expected: Option<&str>| {
            let artifact =
                StoredArtifact { attempt: 1, name: name.to_owned(), bytes: 0, uri: String::new() };
            let target = target(Path::new("out"), &artifact);
            assert_eq!(target.ok(), expected.map(PathBuf::from), "{name}");
        };
        check("a.txt", Some("out/a.txt"));
        check("reports/a.xml", Some("out/reports/a.xml"));
        for bad in ["", "..", "../a", "/etc/passwd", "a/../../b", "a//b", "./a", "a\\b", "a\nb"] {
            check(bad, None);
        }
    }
}
