//! `devnet report`: packs what others need to see to help.

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, bytes, fields},
    story,
};
use clap::Args;
use cowboy_devnet::{report, topology::Name};
use jiff::Timestamp;
use serde::Serialize;
use std::{io, path::PathBuf};

const ENDING: &str = ".tar.zst";
const PAGE: &str = ".html";

/// The entry of a report that has the log of the devnet's process.
const LOG: &str = "log/devnet.log";

/// `devnet report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The archive to write [default: named after the devnet and the time, in this folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Write the story of a running devnet instead, a page for a browser
    #[arg(long)]
    html: bool,
    /// With --html: the number of blocks to tell, up to the head
    #[arg(long, value_name = "N", requires = "html", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    blocks: u64,
}

/// A report that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct WrittenReport {
    /// The devnet.
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    /// The archive, or the page.
    #[cfg_attr(test, schema(value_type = String))]
    file: PathBuf,
    /// Its length in bytes.
    bytes: u64,
    /// The names of the archive's entries; empty for a page.
    entries: Vec<String>,
}

impl Report {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(None)?;
        let now = Timestamp::now();
        let ending = if self.html { PAGE } else { ENDING };
        let file = self.file.unwrap_or_else(|| {
            let at = now.strftime("%Y%m%dT%H%M%SZ");
            PathBuf::from(format!("cowboyctl-report-{}-{at}{ending}", devnet.name()))
        });
        if !file.to_string_lossy().ends_with(ending) {
            let what = format!("{} does not end with {ending}", file.display());
            return Err(CliError::new(Exit::Usage, what).detail(match self.html {
                true => "--html writes a page for a browser",
                false => "a report is a tar archive, compressed with Zstandard",
            }));
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
        // A page is about a running devnet.
        let client = self.html.then(|| cx.client_of(&devnet)).transpose()?;
        let report = report::Report::of(&devnet, now).await?;
        if let Some(client) = client {
            let log = String::from_utf8_lossy(report.entry(LOG).unwrap_or_default());
            let title = (devnet.name().to_string(), report.seed());
            let story = story::devnet::tell(&client, title, self.blocks, &log, now).await?;
            let written = story.write(&file, self.force)?;
            drop(progress);
            return cx.ui.document(&WrittenReport {
                devnet: devnet.name().clone(),
                bytes: written,
                entries: Vec::new(),
                file,
            });
        }
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
        let file = self.file.display();
        let (size, read) = match self.entries.len() {
            0 => (bytes(self.bytes), format!("open {file} in a browser")),
            files => (
                format!("{} in {files} files", bytes(self.bytes)),
                format!("tar --zstd -xf {file}"),
            ),
        };
        fields(&[("report", file.to_string()), ("size", size), ("read it", read)])
    }

    fn id(&self) -> String {
        self.file.display().to_string()
    }
}
