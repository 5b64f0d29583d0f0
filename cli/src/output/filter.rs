//! What programs see, as the user has it rewritten: `--jq` and `--template`.
//!
//! A program runs on a thread of its own, on one document after the other, and hands over what it
//! prints piece by piece: an endless one prints as it goes, and ctrl-c ends it like any command.

use super::{jq, template};
use crate::error::{CliError, Exit};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The stack of the program's thread: filters are recursive functions as often as not.
const STACK_BYTES: usize = 256 << 20;

/// Pieces of output that may wait to be printed.
const QUEUE: usize = 64;

/// How long a document may take before ctrl-c is watched for. Most are done long before.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a program is run by: takes a document in JSON and what to hand its output to, which says
/// whether anybody still takes it.
pub type Program = Box<dyn FnMut(&str, &mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), CliError>>;

/// A program that rewrites documents.
#[derive(Debug)]
pub struct Filter {
    documents: SyncSender<String>,
    pieces: Mutex<Receiver<Piece>>,
    /// Set by ctrl-c, from when it is watched for.
    interrupted: Arc<AtomicBool>,
    watched: AtomicBool,
    /// What is left of an earlier document is nobody's.
    abandoned: AtomicBool,
}

#[derive(Debug)]
enum Piece {
    Output(Vec<u8>),
    End(Result<(), CliError>),
}

impl Filter {
    /// A jq program.
    pub fn jq(source: &str) -> Result<Self, CliError> {
        Self::of(source, jq::program)
    }

    /// A template.
    pub fn template(source: &str) -> Result<Self, CliError> {
        Self::of(source, template::program)
    }

    fn of(source: &str, program: fn(&str) -> Result<Program, CliError>) -> Result<Self, CliError> {
        // Made once here for its errors: the language's values stay on the thread they begin on.
        drop(program(source)?);
        let source = source.to_owned();
        let (documents, documents_in) = sync_channel::<String>(1);
        let (pieces_out, pieces) = sync_channel(QUEUE);
        let run = move || {
            let Ok(mut program) = program(&source) else { return };
            for document in documents_in {
                let mut print = |bytes| pieces_out.send(Piece::Output(bytes)).is_ok();
                let outcome = program(&document, &mut print);
                if pieces_out.send(Piece::End(outcome)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("filter".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(run)
            .map_err(|error| CliError::failed(format!("no thread for the filter: {error}")))?;
        Ok(Self {
            documents,
            pieces: Mutex::new(pieces),
            interrupted: Arc::default(),
            watched: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
        })
    }

    /// Prints what the program makes of a document.
    pub fn apply(
        &self,
        document: String,
        print: impl FnMut(&[u8]) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(CliError::new(Exit::BrokenPipe, ""));
        }
        let outcome = self.pump(document, print);
        if outcome.is_err() {
            self.abandoned.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn pump(
        &self,
        document: String,
        mut print: impl FnMut(&[u8]) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let ended = || CliError::failed("the filter ended without a word");
        let start = Instant::now();
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        self.documents.send(document).map_err(|_| ended())?;
        loop {
            match pieces.recv_timeout(PATIENCE) {
                Ok(Piece::Output(bytes)) => print(&bytes)?,
                Ok(Piece::End(outcome)) => return outcome,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
            if start.elapsed() >= PATIENCE {
                self.watch();
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(CliError::interrupted());
            }
        }
    }

    /// Watches for ctrl-c on a thread of its own: the caller's runtime stands still meanwhile, and
    /// once anything in a process has watched for a signal, the signal no longer ends it by itself.
    fn watch(&self) {
        if self.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let interrupted = self.interrupted.clone();
        let wait = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                interrupted.store(true, Ordering::Relaxed);
            }
        };
        // Without it the filter runs on: no reason to end a command that prints.
        let _refused = thread::Builder::new().name("signals".to_owned()).spawn(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(filter: &Filter, document: &str) -> Result<String, CliError> {
        let mut printed = Vec::new();
        filter.apply(document.to_owned(), |bytes| {
            printed.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(String::from_utf8(printed).unwrap())
    }

    #[test]
    fn documents_go_through_one_after_the_other() {
        let filter = Filter::jq(".a").unwrap();
        assert_eq!(apply(&filter, r#"{"a":"x"}"#).unwrap(), "x\n");
        assert_eq!(apply(&filter, r#"{"a":[1, 2]}"#).unwrap(), "[1,2]\n");
        assert_eq!(apply(&filter, r#"{"a":null}"#).unwrap(), "null\n");
        assert_eq!(apply(&filter, "[1]").unwrap_err().exit, Exit::Failed);
    }

    #[test]
    fn endless_output_ends_when_nobody_takes_it() {
        let filter = Filter::jq("repeat(1)").unwrap();
        let mut left = 1_000;
        let outcome = filter.apply("1".to_owned(), |bytes| {
            assert_eq!(bytes, b"1\n");
            left -= 1;
            if left == 0 { Err(CliError::new(Exit::BrokenPipe, "")) } else { Ok(()) }
        });
        assert_eq!(outcome.unwrap_err().exit, Exit::BrokenPipe);
        // The next document does not get what was left of this one.
        assert_eq!(apply(&filter, "2").unwrap_err().exit, Exit::BrokenPipe);
    }
}
