//! `lease token`: controls which runners may take jobs.

use super::{complete, connect::ServerChoice};
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, fields},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_lease::messages::NewToken;
use serde::Serialize;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Issue a runner's token; its earlier token becomes invalid
    ///
    /// The token is shown only once, because the server keeps only its hash. While a runner with
    /// this name is running, its token is left alone.
    Issue {
        /// The runner's id
        runner: String,
        /// Take the name from a running runner
        #[arg(long)]
        replace: bool,
        /// Write it to this file, which only its owner can read, instead of printing it
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Revoke a runner's token
    Revoke {
        /// The runner's id
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: String,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// List the runners that have a token
    Ls {
        #[command(flatten)]
        server: ServerChoice,
    },
}

/// A token, or the file that contains it.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Issued {
    runner_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(value_type = Option<String>))]
    file: Option<PathBuf>,
}

impl Document for Issued {
    fn text(&self) -> String {
        let mut lines = vec![("runner", self.runner_id.clone())];
        lines.extend(self.token.iter().map(|token| ("token", token.clone())));
        lines.extend(self.file.iter().map(|file| ("file", file.display().to_string())));
        fields(&lines)
    }

    fn id(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => self.token.clone().unwrap_or_default(),
        }
    }
}

impl Token {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Issue { runner, replace, file, server } => {
                let client = server.client(cx)?;
                // Check the file first, so that an unwritable one costs no runner its token.
                let place = file.as_deref().map(place).transpose()?;
                let made = client.issue_token(&runner, replace).await?;
                let NewToken { runner_id, token, .. } = made;
                let token = match place {
                    Some((file, path)) => {
                        write(file, path, &token)?;
                        None
                    }
                    None => Some(token),
                };
                cx.ui.document(&Issued { runner_id, token, file })
            }
            Self::Revoke { runner, server } => {
                cx.ui.document(&server.client(cx)?.revoke_token(&runner, None).await?)
            }
            Self::Ls { server } => cx.ui.list(&server.client(cx)?.tokens().await?),
        }
    }
}

/// A temporary file in the folder of `path` that only its owner can read.
fn place(path: &Path) -> Result<(NamedTempFile, &Path), CliError> {
    let refused = |error: std::io::Error| {
        CliError::new(Exit::Usage, format!("--file {}: {error}", path.display()))
    };
    if path.is_dir() {
        return Err(refused(std::io::ErrorKind::IsADirectory.into()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(refused)?;
    Ok((file, path))
}

fn write(mut file: NamedTempFile, path: &Path, token: &str) -> Result<(), CliError> {
    let io = |error: std::io::Error| CliError::file(Exit::Failed, path, &error);
    file.write_all(format!("{token}\n").as_bytes()).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist(path).map_err(|error| io(error.error))?;
    Ok(())
}
