//! The error of a failed command: an exit code, at most three lines, and the place in a text if
//! there is one.

mod excerpt;
mod file;

pub use cowboy_host::spelling::nearest;
pub use excerpt::Excerpt;

use clap::error::ErrorKind;
use cowboy_devnet::{
    api::funding,
    client::ClientError,
    orchestrator::home::HomeError,
    types::{ErrorCode, ErrorDetail},
    verification::VerificationError,
};
use cowboy_engine::primitives::Shortfall;
use cowboy_host::files::FileError;
use cowboy_lease::{client::ClientError as LeaseError, messages::ErrorCode as LeaseCode};
use serde::Serialize;
use std::{fmt, io};

/// Exit codes, as scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The reader of the output is gone: not a failure, and there is nothing to print.
    BrokenPipe = 0,
    Failed = 1,
    /// The command line, or a file it names, asks for something invalid.
    Usage = 2,
    NotFound = 3,
    /// There is no such devnet, or it is not running.
    NotRunning = 4,
    TimedOut = 5,
    Rejected = 6,
    Invalid = 7,
    /// A name or port is in use, or the state is already what was asked for.
    Conflict = 8,
    /// Data that a verification needs is no longer available, so nothing was refuted and nothing
    /// proved.
    Unverified = 9,
    Interrupted = 130,
}

impl Exit {
    const fn code(self) -> &'static str {
        match self {
            Self::BrokenPipe => "done",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::NotRunning => "not_running",
            Self::TimedOut => "timed_out",
            Self::Rejected => "rejected",
            Self::Invalid => "invalid",
            Self::Conflict => "conflict",
            Self::Unverified => "unverified",
            Self::Interrupted => "interrupted",
        }
    }
}

#[cfg(test)]
pub const EXITS: [Exit; 11] = [
    Exit::BrokenPipe,
    Exit::Failed,
    Exit::Usage,
    Exit::NotFound,
    Exit::NotRunning,
    Exit::TimedOut,
    Exit::Rejected,
    Exit::Invalid,
    Exit::Conflict,
    Exit::Unverified,
    Exit::Interrupted,
];

/// The error of a failed command: what was wrong and where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    pub exit: Exit,
    /// The error's name on the chain or a server, such as `JobExists`.
    pub name: Option<String>,
    /// What was wrong, and where; empty if there is nothing to print.
    pub what: String,
    pub excerpt: Option<Box<Excerpt>>,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl CliError {
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, name: None, what: what.into(), excerpt: None, detail: None, hint: None }
    }

    /// An error without a more specific exit code.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    pub fn excerpt(self, excerpt: impl Into<Option<Excerpt>>) -> Self {
        Self { excerpt: excerpt.into().map(Box::new), ..self }
    }

    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Adds the name that was probably meant, as the detail.
    pub fn meant(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.detail(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }
}

/// An error for programs: what `--output json`, `jsonl` and `yaml` print to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ErrorReport {
    /// The error.
    error: ErrorFields,
}

/// The parts of an error. Texts are one line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct ErrorFields {
    /// The name of the exit code: `failed`, `usage`, `not_found`, `not_running`, `timed_out`,
    /// `rejected`, `invalid`, `conflict`, `unverified` or `interrupted`.
    code: &'static str,
    /// The exit code.
    exit: u8,
    /// The error's name on the chain or a server, such as `JobExists`.
    name: Option<String>,
    /// What was wrong, and where.
    message: String,
    /// More about it: the last thing seen, or what was probably meant.
    detail: Option<String>,
    /// What to do.
    hint: Option<String>,
}

impl From<&CliError> for ErrorReport {
    fn from(error: &CliError) -> Self {
        let CliError { exit, name, what, excerpt: _, detail, hint } = error;
        let line = |text: &Option<String>| text.as_deref().map(one_line);
        Self {
            error: ErrorFields {
                code: exit.code(),
                exit: *exit as u8,
                name: name.clone(),
                message: one_line(what),
                detail: line(detail),
                hint: line(hint),
            },
        }
    }
}

/// At most three lines and an excerpt, whatever the parts contain.
impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.what))?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        for part in [&self.detail, &self.hint].into_iter().flatten() {
            write!(f, "\n  {}", one_line(part))?;
        }
        Ok(())
    }
}

/// A text as one line, without the operating system's error numbers.
fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some((before, after)) = line.split_once(" (os error ")
        && let Some((_, after)) = after.split_once(')')
    {
        line = format!("{before}{after}");
    }
    let line = line.replace("No such file or directory", "no such file or folder");
    // It may be an actor's text.
    line.replace(char::is_control, "\u{fffd}")
}

/// Shortens clap's error from seven lines to three.
impl From<&clap::Error> for CliError {
    fn from(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut error = Self::new(Exit::Usage, "");
        for paragraph in text.trim().split("\n\n") {
            let paragraph = paragraph.trim();
            let tip = paragraph.strip_prefix("tip: ");
            if let Some(usage) = paragraph.strip_prefix("Usage: ") {
                error.hint = Some(format!("usage: {usage}"));
            } else if let Some(tip) = tip.filter(|_| error.detail.is_none()) {
                error.detail = Some(tip.to_owned());
            } else if error.what.is_empty() {
                error.what = paragraph.trim_start_matches("error: ").to_owned();
            }
        }
        error
    }
}

/// Whether clap's error is not a failure but help or the version.
pub fn is_answer(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let what = error.to_string();
        match error {
            ClientError::NoSuchDevnet(name) => Self::new(Exit::NotRunning, what)
                .hint(format!("start one: cowboyctl devnet up --detach --name {name}")),
            ClientError::NotRunning(name) => Self::new(Exit::NotRunning, what)
                .hint(format!("start it: cowboyctl devnet up --detach --name {name}")),
            ClientError::Died { name, .. } => Self::new(Exit::NotRunning, what)
                .detail(format!("what it said last: cowboyctl devnet logs {name}"))
                .hint(format!("start it again: cowboyctl devnet up --detach --name {name}")),
            ClientError::Starting(name) => Self::new(Exit::NotRunning, what)
                .hint(format!("watch it: cowboyctl devnet logs --follow {name}")),
            ClientError::Unreachable { .. } => {
                Self::new(Exit::NotRunning, what).hint("list the running ones: cowboyctl devnet ls")
            }
            ClientError::Timeout { .. } => Self::new(Exit::TimedOut, what)
                .hint("see what the devnet does: cowboyctl devnet logs"),
            ClientError::Home(error) => error.into(),
            ClientError::Refused(detail) => detail.into(),
            ClientError::OtherVersion { .. } => Self::failed(what),
            ClientError::Malformed { .. } => Self::failed(what)
                .hint("the devnet may be of another version: restart it with this cowboyctl"),
        }
    }
}

impl From<VerificationError> for CliError {
    fn from(error: VerificationError) -> Self {
        let what = error.to_string();
        match error {
            VerificationError::Client(error) => error.into(),
            VerificationError::Genesis(_) => Self::failed(what),
            VerificationError::Fault(_) => Self::new(Exit::Invalid, what),
            VerificationError::Gone(detail) => Self {
                hint: detail.hint,
                ..Self::new(Exit::Unverified, what)
                    .detail("it takes every block from genesis on to verify this")
            },
            VerificationError::Unproved(_) => Self::new(Exit::TimedOut, what)
                .hint("check whether the chain advances: cowboyctl devnet status"),
            VerificationError::NotCompleted { task, pipeline, .. } => {
                Self::new(Exit::NotFound, what)
                    .hint(format!("see cowboyctl speculation show {pipeline} {task}"))
            }
            VerificationError::NoCommittee { job, .. } => {
                Self::new(Exit::NotFound, what).hint(format!("see cowboyctl job explain {job}"))
            }
        }
    }
}

impl From<ErrorDetail> for CliError {
    fn from(detail: ErrorDetail) -> Self {
        let exit = match detail.code {
            ErrorCode::NotFound => Exit::NotFound,
            ErrorCode::Rejected => Exit::Rejected,
            ErrorCode::BadRequest => Exit::Usage,
            ErrorCode::Conflict => Exit::Conflict,
            ErrorCode::Timeout => Exit::TimedOut,
            ErrorCode::Unavailable
            | ErrorCode::Unauthorized
            | ErrorCode::Gone
            | ErrorCode::Internal => Exit::Failed,
        };
        // Scripts look for the error's name.
        let what = match &detail.name {
            Some(name) if !detail.message.contains(name) => format!("{name}: {}", detail.message),
            _ => detail.message,
        };
        let hint = detail.hint.or_else(|| {
            let short = Shortfall::in_text(&what)?;
            Some(funding(&short, None))
        });
        Self { name: detail.name, hint, ..Self::new(exit, what) }
    }
}

impl From<LeaseError> for CliError {
    fn from(error: LeaseError) -> Self {
        let what = error.to_string();
        match error {
            LeaseError::Address { .. } => Self::new(Exit::Usage, what),
            LeaseError::Unreachable { url, .. } if url.starts_with("https:") => {
                Self::new(Exit::NotRunning, what)
                    .hint("if it is running: name its CA certificates with --ca FILE")
            }
            LeaseError::Unreachable { .. } => Self::new(Exit::NotRunning, what)
                .hint("start one: cowboyctl lease serve; or name another: --server URL"),
            LeaseError::Timeout { .. } => Self::new(Exit::TimedOut, what),
            LeaseError::Stale(_) => Self::failed(what),
            LeaseError::Malformed { .. } => Self::failed(what)
                .hint("the server may be another program's, or of another version"),
            LeaseError::Refused { detail, .. } => {
                let name = Some(detail.code.to_string());
                Self { name, ..Self::refused_by_lease_server(detail.code, what) }
            }
        }
    }
}

impl CliError {
    fn refused_by_lease_server(code: LeaseCode, what: String) -> Self {
        match code {
            LeaseCode::NotFound => Self::new(Exit::NotFound, what),
            LeaseCode::MalformedJson
            | LeaseCode::MissingField
            | LeaseCode::InvalidField
            | LeaseCode::BodyTooLarge => Self::new(Exit::Usage, what),
            LeaseCode::NotAcked
            | LeaseCode::CancelRequested
            | LeaseCode::NoCancelRequested
            | LeaseCode::JobEnded
            | LeaseCode::SchedulesFull
            | LeaseCode::NotLeased => Self::new(Exit::Conflict, what),
            LeaseCode::NoChain => {
                Self::new(Exit::Conflict, what).hint("start a devnet: cowboyctl devnet up --detach")
            }
            LeaseCode::NameInUse => Self::new(Exit::Conflict, what)
                .hint("choose another name, or take it from that runner: --replace"),
            LeaseCode::Timeout => Self::new(Exit::TimedOut, what),
            LeaseCode::Unauthorized => {
                Self::failed(what).hint("name the file with its token: --token-file FILE")
            }
            LeaseCode::WrongRunner
            | LeaseCode::MethodNotAllowed
            | LeaseCode::LogGap
            | LeaseCode::LogFull
            | LeaseCode::StoreFull
            | LeaseCode::Unavailable
            | LeaseCode::Internal => Self::failed(what),
        }
    }
}

impl From<HomeError> for CliError {
    fn from(error: HomeError) -> Self {
        let what = error.to_string();
        match error {
            HomeError::InUse { name, .. } => Self::new(Exit::Conflict, what)
                .hint(format!("stop it: cowboyctl devnet down {name}")),
            HomeError::Relative(path) => {
                let here = std::env::current_dir().unwrap_or_default().join(path);
                Self::new(Exit::Usage, what).hint(format!(
                    "name a folder from / on: export COWBOYCTL_HOME={}",
                    here.display()
                ))
            }
            HomeError::NoHome => Self::failed(what),
            HomeError::File(error) => error.into(),
            HomeError::NotFolder(_) => Self::failed(what).hint(
                "move it away or remove it: a devnet's folder has real files and folders only",
            ),
        }
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        let failed = Self::failed(error.to_string());
        match error {
            FileError::Io { .. } => failed,
            FileError::Malformed { .. } => {
                failed.hint("remove the file and start the devnet again")
            }
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::BrokenPipe, "");
        }
        Self::failed(format!("output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_at_most_three_lines() {
        let error = CliError::failed("what\nwas  wrong").detail("a\nb").hint("do\nthis");
        assert_eq!(error.to_string(), "what was wrong\n  a b\n  do this");
        let error = CliError::failed("a: No such file or directory (os error 2): b");
        assert_eq!(error.to_string(), "a: no such file or folder: b");
    }

    #[test]
    fn an_excerpt_stands_below_what_is_wrong() {
        let excerpt = Excerpt::of_argument("a b", 2..3);
        let error = CliError::failed("what").excerpt(excerpt).hint("do");
        assert_eq!(error.to_string(), "what\n  a b\n    ^\n  do");
    }

    #[test]
    fn refusals_have_their_exit_codes() {
        let check = |code, name: Option<&str>, exit, what: &str| {
            let error = CliError::from(ClientError::Refused(ErrorDetail {
                code,
                name: name.map(str::to_owned),
                message: "it is so".to_owned(),
                hint: None,
            }));
            assert_eq!((error.exit, error.what.as_str()), (exit, what));
        };
        check(ErrorCode::NotFound, None, Exit::NotFound, "it is so");
        check(ErrorCode::Rejected, Some("JobExists"), Exit::Rejected, "JobExists: it is so");
        check(ErrorCode::Rejected, Some("it is"), Exit::Rejected, "it is so");
        check(ErrorCode::BadRequest, None, Exit::Usage, "it is so");
        check(ErrorCode::Conflict, None, Exit::Conflict, "it is so");
        check(ErrorCode::Timeout, None, Exit::TimedOut, "it is so");
        check(ErrorCode::Unauthorized, None, Exit::Failed, "it is so");
    }

    #[test]
    fn a_devnet_that_is_not_there_is_told_apart_from_a_failure() {
        let name = "x".parse::<cowboy_devnet::topology::Name>().unwrap();
        for error in [
            ClientError::NoSuchDevnet(name.clone()),
            ClientError::NotRunning(name.clone()),
            ClientError::Starting(name.clone()),
            ClientError::Unreachable { url: "u".to_owned(), reason: "r".to_owned() },
        ] {
            assert_eq!(CliError::from(error).exit, Exit::NotRunning);
        }
        let busy = HomeError::InUse { name, pid: Some(7) };
        let error = CliError::from(ClientError::Home(busy));
        assert_eq!(error.exit, Exit::Conflict);
        assert_eq!(error.what, "devnet `x` is in use by process 7");
    }

    /// Every code of an enum, as spelled in JSON.
    fn codes<T: utoipa::PartialSchema>() -> Vec<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        let codes = schema["enum"].as_array().expect("an enum of names");
        codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_kind_of_error_is_documented() {
        let page = include_str!("../../docs/errors.md");
        let has = |cell: String| assert!(page.contains(&cell), "docs/errors.md has no {cell}");
        for code in codes::<ErrorCode>().into_iter().chain(codes::<LeaseCode>()) {
            has(format!("| `{code}` |"));
        }
        for exit in EXITS {
            has(format!("\n| {} | ", exit as u8));
        }
    }
}
