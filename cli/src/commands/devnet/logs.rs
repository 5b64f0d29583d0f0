//! `devnet logs`: shows the log of a devnet's process.

use super::{Which, status::plan};
use crate::{
    context::Context,
    dashboard::names,
    error::{CliError, Exit},
    output::raw,
};
use clap::Args;
use cowboy_devnet::orchestrator::home::{DevnetHome, part_before};
use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    time::Duration,
};
use tokio::time::interval;

const LOOK: Duration = Duration::from_millis(100);

/// The longest line that is kept in one piece, in bytes.
const LINE_LIMIT: u64 = 1 << 20;

/// `devnet logs`.
#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    which: Which,
    /// Continue with new lines until interrupted, or until the devnet stops
    #[arg(long, short)]
    follow: bool,
    /// Number of last lines to show
    #[arg(long, short = 'n', default_value_t = 100, value_name = "COUNT")]
    lines: usize,
}

impl Logs {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(self.which.named.as_ref())?;
        let mut log = Log::open(&devnet, cx.node.as_deref())?;
        let mut last = VecDeque::new();
        if let Some(mut before) = log.part_before() {
            before.last_lines(self.lines, &mut last)?;
        }
        log.last_lines(self.lines, &mut last)?;
        for line in last {
            raw(line.as_bytes())?;
        }
        if !self.follow {
            return Ok(());
        }
        let mut looks = interval(LOOK);
        loop {
            let running = !devnet.state()?.is_down();
            // A log that was replaced does not grow, so what is read now is the rest of it.
            let replaced = log.replaced()?;
            while let Some(line) = log.line()? {
                raw(line.as_bytes())?;
            }
            if replaced {
                log.reopen()?;
                continue;
            }
            if !running {
                return Ok(());
            }
            looks.tick().await;
        }
    }
}

struct Log {
    path: PathBuf,
    file: BufReader<File>,
    inode: u64,
    partial: String,
    /// A line is shown if it contains one of these words; all lines are if this is empty.
    words: Vec<String>,
}

impl Log {
    fn open(devnet: &DevnetHome, node: Option<&str>) -> Result<Self, CliError> {
        let path = devnet.log_path();
        let file = File::open(&path).map_err(|error| {
            let exit = match error.kind() {
                io::ErrorKind::NotFound => Exit::NotFound,
                _ => Exit::Failed,
            };
            CliError::new(exit, format!("{}: {error}", path.display()))
                .hint("a devnet has a log once it has started")
        })?;
        let inode = file.metadata()?.ino();
        // Lines name a node, or give its address.
        let address = |node: &str| Some(plan(devnet)?.key(&node.parse().ok()?).address());
        let words = node.into_iter().flat_map(|node| {
            [node.to_owned()].into_iter().chain(address(node).map(|address| address.to_string()))
        });
        let words = words.collect();
        Ok(Self { path, file: BufReader::new(file), inode, partial: String::new(), words })
    }

    /// The part before this log was rotated, if it was.
    fn part_before(&self) -> Option<Self> {
        let path = part_before(&self.path);
        let file = File::open(&path).ok()?;
        let (inode, words) = (file.metadata().ok()?.ino(), self.words.clone());
        Some(Self { path, file: BufReader::new(file), inode, partial: String::new(), words })
    }

    /// Adds all available lines and keeps only the last `count`.
    fn last_lines(&mut self, count: usize, lines: &mut VecDeque<String>) -> Result<(), CliError> {
        while let Some(line) = self.line()? {
            lines.push_back(line);
            if lines.len() > count {
                lines.pop_front();
            }
        }
        Ok(())
    }

    /// The next whole line that names the node, with its line feed.
    fn line(&mut self) -> Result<Option<String>, CliError> {
        loop {
            let mut bytes = Vec::new();
            let read = self.file.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            self.partial.push_str(&String::from_utf8_lossy(&bytes));
            if !self.partial.ends_with('\n') && self.partial.len() < LINE_LIMIT as usize {
                // The rest is still to come.
                return Ok(None);
            }
            let line = std::mem::take(&mut self.partial);
            if self.words.is_empty() || self.words.iter().any(|word| names(&line, word)) {
                return Ok(Some(line));
            }
        }
    }

    /// Whether the path now names another log: a log that gets too long is rotated, and a restarted
    /// devnet starts a new one.
    fn replaced(&mut self) -> Result<bool, CliError> {
        let Ok(now) = fs::metadata(&self.path) else { return Ok(false) };
        Ok(now.ino() != self.inode || now.len() < self.file.stream_position()?)
    }

    fn reopen(&mut self) -> Result<(), CliError> {
        let file = File::open(&self.path)?;
        self.inode = file.metadata()?.ino();
        self.file = BufReader::new(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_whole_word() {
        assert!(names("INFO node{name=validator-1}: up", "validator-1"));
        assert!(names("validator-1", "validator-1"));
        assert!(names("from validator-10 to validator-1.", "validator-1"));
        assert!(!names("INFO node{name=validator-10}: up", "validator-1"));
        assert!(!names("my-validator-1", "validator-1"));
    }
}
