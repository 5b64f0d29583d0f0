//! A run's story as one page of HTML: what `devnet report --html` and `sim run --html` write.
//!
//! The page has everything in it and opens without a server. Names, logs and errors come from
//! programs of others; the page shows them as text and never as markup.

pub mod devnet;
pub mod simulation;

use crate::error::{CliError, Exit};
use jiff::Timestamp;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Lines of the log, from its end.
const LINES: usize = 5_000;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The parts of the script, in their order.
const SCRIPT: [&str; 12] = [
    include_str!("page/tools.js"),
    include_str!("page/story.js"),
    include_str!("page/view.js"),
    include_str!("page/frame.js"),
    include_str!("page/pointer.js"),
    include_str!("page/charts.js"),
    include_str!("page/heat.js"),
    include_str!("page/rows.js"),
    include_str!("page/details.js"),
    include_str!("page/sections.js"),
    include_str!("page/logs.js"),
    include_str!("page/start.js"),
];

/// What the page shows. Times are milliseconds since the first block's.
#[derive(Debug, Default, Serialize)]
pub struct Story {
    pub title: String,
    /// `devnet` or `simulation`.
    pub kind: &'static str,
    pub version: &'static str,
    pub made_at: String,
    pub seed: Option<u64>,
    pub began_at: Option<String>,
    pub length_ms: u64,
    /// What is left out.
    pub notes: Vec<String>,
    pub verdict: Option<Verdict>,
    pub checks: Vec<CheckResult>,
    pub validators: Vec<String>,
    pub runners: Vec<NamedRunner>,
    pub cycles_limit: Option<u64>,
    pub blocks: Vec<StoryBlock>,
    pub faults: Vec<FaultSpan>,
    pub jobs: Vec<JobSpan>,
    pub speculations: Vec<SpeculationSpan>,
    /// Why the run can have no speculation.
    pub speculations_absent: Option<String>,
    pub logs: Vec<StoryLine>,
}

#[derive(Debug, Serialize)]
pub struct Verdict {
    pub passed: bool,
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct CheckResult {
    pub name: String,
    pub passed: bool,
    pub text: String,
}

impl CheckResult {
    fn holds(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), passed: true, text: text.to_owned() }
    }
}

#[derive(Debug, Serialize)]
pub struct NamedRunner {
    pub name: String,
    pub address: String,
}

#[derive(Debug, Default, Serialize)]
pub struct StoryBlock {
    pub height: u64,
    pub time: u64,
    pub hash: String,
    /// The index of the validator.
    pub proposer: Option<usize>,
    pub transactions: usize,
    pub cycles: Option<u64>,
    pub events: usize,
    /// Milliseconds until it was final.
    pub final_after: Option<u64>,
    pub views_abandoned: Option<u64>,
    /// The validators whose votes are in its certificate.
    pub voters: Option<Vec<usize>>,
    /// The runners that are present by these votes.
    pub present: Option<Vec<usize>>,
    /// Number of votes that saw each runner, by its index.
    pub certified_present: Option<BTreeMap<usize, u32>>,
    /// Number of votes that could see each runner: of validators that it connects to.
    pub certified_could: Option<BTreeMap<usize, u32>>,
    pub timers: Option<LaneCounts>,
}

/// A block's timer lane.
#[derive(Debug, Serialize)]
pub struct LaneCounts {
    pub due: u64,
    pub fired: u64,
    pub deferred: u64,
    /// The base fee of a cycle.
    pub basefee_wei: String,
}

impl LaneCounts {
    fn of(fired: u64, deferred: u64, basefee: impl ToString) -> Self {
        Self { due: fired + deferred, fired, deferred, basefee_wei: basefee.to_string() }
    }
}

#[derive(Debug, Serialize)]
pub struct FaultSpan {
    pub from: u64,
    pub to: Option<u64>,
    pub kind: String,
    pub target: String,
    pub text: String,
}

#[derive(Debug, Default, Serialize)]
pub struct JobSpan {
    pub id: String,
    pub name: Option<String>,
    pub kind: String,
    /// Heights.
    pub submitted: u64,
    pub assigned: Option<u64>,
    pub ended: Option<u64>,
    pub status: String,
    pub runners: Vec<String>,
    pub candidates: Option<u64>,
    pub text: Option<String>,
}

/// A graph of speculative tasks.
#[derive(Debug, Serialize)]
pub struct SpeculationSpan {
    pub id: String,
    pub status: String,
    pub tasks: Vec<TaskSpan>,
}

#[derive(Debug, Serialize)]
pub struct TaskSpan {
    pub name: String,
    pub from: u64,
    pub to: Option<u64>,
    pub status: String,
}

#[derive(Debug, Serialize)]
pub struct StoryLine {
    pub time: u64,
    pub node: Option<String>,
    pub level: String,
    pub text: String,
}

impl Story {
    /// The page with the story in it.
    fn page(&self) -> String {
        let json = serde_json::to_string(self).expect("a story is plain data");
        // Ends no element, whatever the texts are.
        let json = json.replace('<', "\\u003c");
        // Each part is looked for in the page alone, because the parts have texts of others.
        let script = SCRIPT.concat();
        let parts = [("/*CSS*/", STYLE), ("/*DATA*/", &json), ("/*JS*/", &script)];
        let (mut page, mut rest) = (String::new(), PAGE);
        for (mark, part) in parts {
            let (before, after) = rest.split_once(mark).expect("the page has every mark, in order");
            page.extend([before, part]);
            rest = after;
        }
        page + rest
    }

    /// Writes the page; only its owner can read it, because logs are in it. Returns its length in
    /// bytes.
    pub fn write(&self, path: &Path, replace: bool) -> Result<u64, CliError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                CliError::new(Exit::Conflict, format!("{} already exists", path.display()))
                    .hint("overwrite it with --force, or name another file")
            }
            _ => CliError::failed(format!("{}: {error}", path.display())),
        };
        let page = self.page();
        let mut options = OpenOptions::new();
        options.write(true).create(true).create_new(!replace).truncate(replace).mode(0o600);
        let mut file = options.open(path).map_err(failed)?;
        file.write_all(page.as_bytes()).map_err(failed)?;
        Ok(page.len() as u64)
    }
}

fn to_the_second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, Story, StoryLine};

    #[test]
    fn texts_of_others_stay_in_the_data() {
        let text = "</script><script>alert(1)</script>/*JS*/<!--".to_owned();
        let line = StoryLine { time: 1, node: None, level: "WARN".to_owned(), text: text.clone() };
        let story = Story { title: text.clone(), logs: vec![line], ..Story::default() };
        let page = story.page();
        assert_eq!(page.matches("alert(1)").count(), 2);
        assert!(!page.contains("<script>alert"), "the text became markup");
        let (_, data) = page.split_once("id=\"story\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let read: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(read["title"], text.as_str());
        assert!(SCRIPT.iter().all(|part| page.contains(part)), "a part of the script is left out");
    }
}
