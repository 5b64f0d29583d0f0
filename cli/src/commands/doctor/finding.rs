//! The doctor's findings: one line each, with a fix, and sometimes a repair that `--fix` runs.

use crate::output::{DONE, Document, FAILED, Row, UNDONE};
use cowboy_devnet::{
    home::{DevnetHome, Home},
    runner::folder::RunnerFolder,
    snapshot::Snapshots,
};
use cowboy_lease::folder::LeaseFolder;
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// All is well.
    Ok,
    /// It works, but perhaps not for long or not as intended.
    Warning,
    /// Something does not work.
    Problem,
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Finding {
    /// The check, such as `ports`.
    #[cfg_attr(test, schema(value_type = String))]
    pub check: &'static str,
    /// The subject: `machine`, a devnet's name, or a path.
    pub subject: String,
    /// How bad it was when it was found.
    pub state: Severity,
    /// What was found.
    pub what: String,
    /// What to do; if it was repaired, what was done.
    pub fix: Option<String>,
    /// Whether it was repaired.
    pub fixed: bool,
    /// A repair that needs no confirmation, because it loses nothing.
    #[serde(skip)]
    pub repair: Option<Repair>,
}

/// What `--fix` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Removes other users' access to a file or folder; does not follow links.
    Mode(PathBuf, u32),
    Sweep(Home),
    /// Removes a file left behind by an ended process, under the lock that keeps another from
    /// starting.
    Remove(Owner, PathBuf),
}

/// The folder whose lock keeps other processes away during a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    Devnet(DevnetHome),
    Runner(RunnerFolder),
    Lease(LeaseFolder),
}

impl Finding {
    pub fn ok(check: &'static str, subject: impl ToString, what: impl Into<String>) -> Self {
        Self::new(check, subject, Severity::Ok, what)
    }

    pub fn warning(check: &'static str, subject: impl ToString, what: impl Into<String>) -> Self {
        Self::new(check, subject, Severity::Warning, what)
    }

    pub fn problem(check: &'static str, subject: impl ToString, what: impl Into<String>) -> Self {
        Self::new(check, subject, Severity::Problem, what)
    }

    fn new(
        check: &'static str,
        subject: impl ToString,
        state: Severity,
        what: impl Into<String>,
    ) -> Self {
        let (subject, what) = (subject.to_string(), what.into());
        Self { check, subject, state, what, fix: None, fixed: false, repair: None }
    }

    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    pub fn repair(self, repair: Repair) -> Self {
        Self { repair: Some(repair), ..self }
    }

    /// Repairs it if there is a repair, and records what was done or why it failed.
    pub fn mend(&mut self) {
        let Some(repair) = self.repair.take() else { return };
        match repair.run() {
            Ok(done) => {
                self.fix = Some(done);
                self.fixed = true;
            }
            Err(reason) => self.what += &format!("; it could not be repaired: {reason}"),
        }
    }

    pub fn is_of(&self, check: &str, subject: &str) -> bool {
        self.check == check && self.subject == subject
    }

    pub fn remains(&self) -> bool {
        self.state != Severity::Ok && !self.fixed
    }
}

impl Repair {
    fn run(self) -> Result<String, String> {
        match self {
            Self::Mode(path, mode) => {
                close(&path, mode).map_err(|error| error.to_string())?;
                Ok(format!("did: chmod {mode:o} {}", path.display()))
            }
            Self::Sweep(home) => {
                let snapshots = Snapshots::of(&home);
                let left = snapshots.sweep().and_then(|()| snapshots.leftovers());
                match left.map_err(|error| error.to_string())?.first() {
                    Some(path) => Err(format!("{} is still there", path.display())),
                    None => Ok("did: removed it".to_owned()),
                }
            }
            Self::Remove(owner, path) => {
                let busy = || "another process has taken the folder".to_owned();
                let removed = || match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
                    _ => Ok(format!("did: rm {}", path.display())),
                };
                match owner {
                    Owner::Devnet(devnet) => {
                        let _lock = devnet.lock().map_err(|error| error.to_string())?;
                        removed()
                    }
                    Owner::Runner(runner) => {
                        let lock = runner.lock().map_err(|error| error.to_string())?;
                        let _lock = lock.ok_or_else(busy)?;
                        removed()
                    }
                    Owner::Lease(lease) => {
                        let _lock = lease.lock().map_err(|error| error.to_string())?;
                        removed()
                    }
                }
            }
        }
    }
}

/// Sets the mode of a file or folder; fails for a link.
fn close(path: &Path, mode: u32) -> io::Result<()> {
    // Opening a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    match found.is_file() || found.is_dir() {
        true => file.set_permissions(Permissions::from_mode(mode)),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a folder")),
    }
}

impl Row for Finding {
    const HEADER: &'static [&'static str] = &["state", "check", "subject", "what", "fix"];

    fn cells(&self) -> Vec<String> {
        let fix = self.fix.clone().unwrap_or_default();
        let state = self.state.word().to_owned();
        vec![state, self.check.to_owned(), self.subject.clone(), self.what.clone(), fix]
    }

    fn id(&self) -> String {
        format!("{} {}", self.check, self.subject)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DoctorReport(pub Vec<Finding>);

impl DoctorReport {
    /// The report for people: each finding that is not OK, with its fix on the line below; then one
    /// line for those that are.
    pub fn draw(&self, columns: usize) -> String {
        let (good, found): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|finding| finding.state == Severity::Ok);
        let width =
            |text: fn(&Finding) -> usize| found.iter().map(|it| text(it)).max().unwrap_or(0);
        let check = width(|finding| finding.check.len());
        let subject = width(|finding| finding.subject.chars().count()).min(columns / 3);
        let mut text = String::new();
        for finding in found {
            let (style, word) = match finding.state {
                _ if finding.fixed => (DONE, "fixed"),
                Severity::Ok => (DONE, Severity::Ok.word()),
                Severity::Warning => (UNDONE, Severity::Warning.word()),
                Severity::Problem => (FAILED, Severity::Problem.word()),
            };
            let Finding { check: name, subject: whom, what, .. } = finding;
            text += &format!("{style}{word:7}{style:#}  {name:check$}  {whom:subject$}  {what}\n");
            if let Some(fix) = finding.fix.as_ref().filter(|_| finding.state != Severity::Ok) {
                text += &format!("{:7}  {:check$}  {fix}\n", "", "");
            }
        }
        if !good.is_empty() {
            let names: BTreeSet<_> = good.iter().map(|finding| finding.check).collect();
            let names: Vec<_> = names.into_iter().collect();
            let word = Severity::Ok.word();
            let count = good.len();
            text += &format!("{DONE}{word:7}{DONE:#}  {count} checks: {}\n", names.join(", "));
        }
        text.trim_end().to_owned()
    }
}

impl Document for DoctorReport {
    fn text(&self) -> String {
        anstream::adapter::strip_str(&self.draw(crate::output::COLUMNS)).to_string()
    }

    fn id(&self) -> String {
        let wrong: Vec<_> = self.0.iter().filter(|f| f.remains()).map(Row::id).collect();
        wrong.join("\n")
    }
}
