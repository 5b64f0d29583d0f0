//! `actor repl`: a prompt inside an actor's module.
//!
//! What is typed is evaluated as a dry run of the actor with other code: its module and one more
//! function, which has the statements that were typed before and what is typed now
//! ([`assembly`]). So it sees the module's names and the store, and nothing that it does is sent.

pub mod answer;
mod assembly;
mod command;
mod editor;
mod input;
mod session;

use super::failure;
use crate::{
    commands::account::Inclusion,
    complete,
    context::Context,
    error::{CliError, Exit},
    output,
};
use assembly::{Reading, TypedPiece};
use clap::Args;
use clap_complete::ArgValueCandidates;
use editor::Read;
use input::{PromptInput, is_typed};
use session::{Next, Session};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// What is shown before the further lines of a block.
const CONTINUED: &str = "... ";

/// `actor repl`.
#[derive(Debug, Args)]
pub struct Repl {
    /// The actor: a name, its address or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// The caller: a name or an address; `:call` needs its key
    #[arg(long, value_name = "ACCOUNT", default_value = "dev-0")]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    from: String,
    /// Evaluate with the module in this file in place of the actor's own
    #[arg(long, value_name = "FILE")]
    with_code: Option<PathBuf>,
    /// Go on after a line that fails, if the lines are not typed at a terminal; the exit code is
    /// that of the first failure
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// The lines that failed.
#[derive(Debug, Default)]
struct Failures {
    first: Option<Exit>,
    count: usize,
}

impl Repl {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let is_typed = is_typed();
        let goes_on = is_typed || self.keep_going;
        // From now on a signal ends what is awaited, and not the process.
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        let mut hangups = signal(SignalKind::hangup())?;
        cx.note_if_behind().await;
        let session = Session::new(cx, &self.actor, self.from, self.inclusion, is_typed).await?;
        let input = PromptInput::start(is_typed);
        let mut prompt =
            Prompt { session, input, lines: Vec::new(), number: 0, begun: 0, is_reading: false };
        if let Some(file) = self.with_code {
            prompt.session.read(file)?;
        }
        let mut failures = Failures::default();
        loop {
            let next = tokio::select! {
                next = prompt.next() => next,
                _ = interrupts.recv() => Err(CliError::interrupted()),
                // The terminal gets its mode back.
                _ = terminations.recv() => return Err(CliError::interrupted()),
                _ = hangups.recv() => return Err(CliError::interrupted()),
            };
            let error = match next {
                Ok(Next::Line) => continue,
                Ok(Next::End) => break,
                Err(error) => error,
            };
            // A person abandons what takes too long, and goes on.
            let is_interrupted = error.exit == Exit::Interrupted;
            if (prompt.is_reading && is_interrupted) || error.exit == Exit::BrokenPipe {
                return Err(error);
            }
            let error = if is_typed { error } else { prompt.placed(error) };
            if !goes_on || (is_interrupted && !is_typed) {
                return Err(error);
            }
            output::error(&error, cx.ui.format());
            failures.first.get_or_insert(error.exit);
            failures.count += 1;
        }
        match failures {
            Failures { first: Some(exit), count } if !is_typed => {
                let lines = if count == 1 { "line" } else { "lines" };
                Err(CliError::new(exit, format!("{count} {lines} failed")))
            }
            _ => Ok(()),
        }
    }
}

/// A prompt and the lines that are not evaluated yet.
#[derive(Debug)]
struct Prompt {
    session: Session,
    input: PromptInput,
    lines: Vec<String>,
    /// The number of the last line that was read, and of the first that is not evaluated.
    number: usize,
    begun: usize,
    /// Whether a line is awaited.
    is_reading: bool,
}

impl Prompt {
    /// Reads a line, and answers if it ends something.
    async fn next(&mut self) -> Result<Next, CliError> {
        let prompt = match self.lines.is_empty() {
            true => self.session.prompt(),
            false => CONTINUED.to_owned(),
        };
        self.is_reading = true;
        let read = self.input.line(&prompt, self.session.words()).await;
        self.is_reading = false;
        self.number += 1;
        if self.lines.is_empty() {
            self.begun = self.number;
        }
        match read {
            Read::Line(line) if self.lines.is_empty() && line.trim_start().starts_with(':') => {
                self.session.command(&line).await
            }
            Read::Line(line) => {
                self.lines.push(line);
                self.evaluate(false).await?;
                Ok(Next::Line)
            }
            Read::Abandoned => {
                self.lines.clear();
                Ok(Next::Line)
            }
            Read::Refused(what) => {
                self.lines.clear();
                Err(CliError::new(Exit::Usage, what))
            }
            Read::End => {
                self.evaluate(true).await?;
                Ok(Next::End)
            }
            Read::Failed(error) => Err(error.into()),
        }
    }

    /// Evaluates the lines if they are finished.
    async fn evaluate(&mut self, ended: bool) -> Result<(), CliError> {
        let reading = TypedPiece::read(&self.lines.join("\n"), ended);
        if reading == Ok(Reading::Unfinished) {
            return Ok(());
        }
        self.lines.clear();
        match reading {
            Ok(Reading::Piece(piece)) => self.session.evaluate(piece).await,
            Ok(_) => Ok(()),
            Err(error) => Err(failure(&format!("SyntaxError: {error}"))),
        }
    }

    /// The error with the line of the input that failed.
    fn placed(&self, error: CliError) -> CliError {
        let line = format!("line {} of the input", self.begun);
        let detail = match &error.detail {
            Some(detail) => format!("{line}: {detail}"),
            None => line,
        };
        error.detail(detail)
    }
}
