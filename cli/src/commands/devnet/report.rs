//! `devnet report`: packs what others need to see to help.

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, bytes, fields},
};
use clap::Args;
use cowboy_devnet::{report, topology::Name};
use jiff::Timestamp;
use serde::Serialize;
use std::{io, path::PathBuf};

const ENDING: &str = ".tar.zst";

/// `devnet report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The archive to write [default: named after the devnet and the time, in this folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// A report that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct WrittenReport {
    /// The devnet.
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    /// The archive.
    #[cfg_attr(test, schema(value_type = String))]
    file: PathBuf,
    /// Its length in bytes.
    bytes: u64,
    /// The names of its entries.
    entries: Vec<String>,
}

impl Report {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(None)?;
        let now = Timestamp::now();
        let file = self.file.unwrap_or_else(|| {
            let at = now.strftime("%Y%m%dT%H%M%SZ");
            PathBuf::from(format!("cowboyctl-report-{}-{at}{ENDING}", devnet.name()))
        });
        if !file.to_string_lossy().ends_with(ENDING) {
            let what = format!("{} does not end with {ENDING}", file.display());
            return Err(CliError::new(Exit::Usage, what)
                .detail("a report is a tar archive, compressed with Zstandard"));
        }
        let taken = || {
            CliError::new(Exit::Conflict, format!("{} already exists", file.display()))
                .hint("overwrite it with --force, or name another file")
        };
        if !self.force && file.symlink_metadata().is_ok() {
            return Err(taken());
        }
        // Checked before everything for the report is gathered.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.exists()) {
            let what = format!("{}: no such folder", folder.display());
            return Err(CliError::new(Exit::NotFound, what)
                .detail(format!("the report was to be {}", file.display()))
                .hint(format!("make it: mkdir -p {}", folder.display())));
        }
        let progress = cx.ui.progress(format!("gathering the report on devnet {}", devnet.name()));
        let report = report::Report::of(&devnet, now).await?;
        let written = report.write(&file, self.force).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => CliError::failed(format!("{}: {error}", file.display())),
        })?;
        drop(progress);
        cx.ui.document(&WrittenReport {
            devnet: devnet.name().clone(),
            bytes: written,
            entries: report.names().map(str::to_owned).collect(),
            file,
        })
    }
}

impl Document for WrittenReport {
    fn text(&self) -> String {
        fields(&[
            ("report", self.file.display().to_string()),
            ("size", format!("{} in {} files", bytes(self.bytes), self.entries.len())),
            ("read it", format!("tar --zstd -xf {}", self.file.display())),
        ])
    }

    fn id(&self) -> String {
        self.file.display().to_string()
    }
}
