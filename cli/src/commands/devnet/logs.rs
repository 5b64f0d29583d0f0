//! `devnet logs`: shows the logs of a devnet's processes.

use super::{Which, status::plan};
use crate::{
    context::Context,
    dashboard::names,
    error::{CliError, Exit},
    output::raw,
};
use clap::Args;
use cowboy_devnet::{
    orchestrator::home::{DevnetHome, Home, part_before},
    runner::folder::RunnerFolder,
};
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
    /// Show the logs of all its processes, by time, with the name of the node on each line
    #[arg(long)]
    all: bool,
    /// Continue with new lines until interrupted, or until the devnet stops
    #[arg(long, short)]
    follow: bool,
    /// Number of last lines to show
    #[arg(long, short = 'n', default_value_t = 100, value_name = "COUNT")]
    lines: usize,
}

/// A line with the time at its beginning. A line without one belongs to the line before it.
type TimedLine = (String, String);

impl Logs {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(self.which.named.as_ref())?;
        let mut logs = self.open(&devnet, cx.node.as_deref())?;
        let mut last = Vec::new();
        for log in &mut logs {
            last.append(&mut log.last_lines(self.lines)?);
        }
        last.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, line) in last.split_off(last.len().saturating_sub(self.lines)) {
            raw(line.as_bytes())?;
        }
        if !self.follow {
            return Ok(());
        }
        let mut looks = interval(LOOK);
        loop {
            let running = !devnet.state()?.is_down();
            let (mut new, mut replaced) = (Vec::new(), false);
            for log in &mut logs {
                replaced |= log.new_lines(&mut new)?;
            }
            new.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (_, line) in new {
                raw(line.as_bytes())?;
            }
            if replaced {
                continue;
            }
            if !running {
                return Ok(());
            }
            looks.tick().await;
        }
    }

    /// The logs to show: the devnet's, with `--all` those of all nodes in processes of their own,
    /// and otherwise that of the node in question.
    fn open(&self, devnet: &DevnetHome, node: Option<&str>) -> Result<Vec<Log>, CliError> {
        // Lines name a node, or give its address.
        let address = |node: &str| Some(plan(devnet)?.key(&node.parse().ok()?).address());
        let words = node.into_iter().flat_map(|node| {
            [node.to_owned()].into_iter().chain(address(node).map(|address| address.to_string()))
        });
        let mut sources = vec![(devnet.name().to_string(), devnet.log_path(), words.collect())];
        let nodes = Home::at(devnet.nodes_path()).list()?;
        let nodes = nodes.iter().map(|node| (node.name().to_string(), node.log_path()));
        let runners = RunnerFolder::supervised_at(devnet)?;
        let runners = runners.iter().map(|runner| (runner.name().to_string(), runner.log_path()));
        let wanted = |name: &str| node.map_or(self.all, |node| node == name);
        for (name, log) in nodes.chain(runners).filter(|(name, _)| wanted(name)) {
            sources.push((name, log, Vec::new()));
        }
        let width = sources.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
        let log = |(name, path, words): (String, PathBuf, Vec<String>)| {
            let prefix = if self.all { format!("{name:width$} | ") } else { String::new() };
            Log::open(path, words, prefix)
        };
        sources.into_iter().map(log).collect()
    }
}

struct Log {
    path: PathBuf,
    file: BufReader<File>,
    inode: u64,
    partial: String,
    /// A line is shown if it contains one of these words; all lines are if this is empty.
    words: Vec<String>,
    /// What is shown before each line.
    prefix: String,
    /// The time of the last line that has one.
    time: String,
}

impl Log {
    fn open(path: PathBuf, words: Vec<String>, prefix: String) -> Result<Self, CliError> {
        let file = File::open(&path).map_err(|error| {
            let exit = match error.kind() {
                io::ErrorKind::NotFound => Exit::NotFound,
                _ => Exit::Failed,
            };
            CliError::new(exit, format!("{}: {error}", path.display()))
                .hint("a devnet has a log once it has started")
        })?;
        let (inode, file) = (file.metadata()?.ino(), BufReader::new(file));
        let (partial, time) = (String::new(), String::new());
        Ok(Self { path, file, inode, partial, words, prefix, time })
    }

    /// The part before this log was rotated, if it was.
    fn part_before(&self) -> Option<Self> {
        let path = part_before(&self.path);
        Self::open(path, self.words.clone(), self.prefix.clone()).ok()
    }

    /// The last `count` lines, including those before the log was rotated.
    fn last_lines(&mut self, count: usize) -> Result<Vec<TimedLine>, CliError> {
        let mut lines = VecDeque::new();
        let mut before = self.part_before();
        for part in before.iter_mut().chain([self]) {
            while let Some(line) = part.line()? {
                lines.push_back(line);
                if lines.len() > count {
                    lines.pop_front();
                }
            }
        }
        Ok(lines.into())
    }

    /// Adds the lines that have come; returns whether there is another log by now.
    fn new_lines(&mut self, lines: &mut Vec<TimedLine>) -> Result<bool, CliError> {
        // A log that was replaced does not grow, so what is read now is the rest of it.
        let replaced = self.replaced()?;
        while let Some(line) = self.line()? {
            lines.push(line);
        }
        if replaced {
            self.reopen()?;
        }
        Ok(replaced)
    }

    /// The next whole line that names the node, with its line feed.
    fn line(&mut self) -> Result<Option<TimedLine>, CliError> {
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
            if let Some(time) = time_of(&line) {
                time.clone_into(&mut self.time);
            }
            if self.words.is_empty() || self.words.iter().any(|word| names(&line, word)) {
                return Ok(Some((self.time.clone(), format!("{}{line}", self.prefix))));
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

/// The time at the beginning of a line, as the log writes it: in UTC, all of one length.
fn time_of(line: &str) -> Option<&str> {
    let (time, _) = line.split_once(' ')?;
    let is_time = time.len() > 20 && time.ends_with('Z') && time.as_bytes().get(10) == Some(&b'T');
    is_time.then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_its_time() {
        let line = "2026-01-02T03:04:05.000006Z  INFO cowboy_devnet: up";
        assert_eq!(time_of(line), Some("2026-01-02T03:04:05.000006Z"));
        assert_eq!(time_of("thread 'main' panicked at src/lib.rs:1:2:"), None);
    }

    #[test]
    fn a_node_is_a_whole_word() {
        assert!(names("INFO node{name=validator-1}: up", "validator-1"));
        assert!(names("validator-1", "validator-1"));
        assert!(names("from validator-10 to validator-1.", "validator-1"));
        assert!(!names("INFO node{name=validator-10}: up", "validator-1"));
        assert!(!names("my-validator-1", "validator-1"));
    }
}
