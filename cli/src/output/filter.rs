//! `--jq` and `--template`, which rewrite the output for programs.
//!
//! A program runs on its own thread, on one document after the other, and sends its output piece by
//! piece: an endless one prints as it goes, and ctrl-c ends it like any command. [`FilterLimits`]
//! stop a program that takes too much memory or prints nothing for too long; the program itself
//! limits the depth of its recursion, to half of [`STACK_BYTES`].

use super::theme::bytes as size;
use crate::error::{CliError, Exit};
use cowboy_host::duration::Plain;
use std::{
    fs,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The stack of the program's thread in bytes, because filters are often recursive functions.
pub(super) const STACK_BYTES: usize = 512 << 20;

/// Maximum number of pieces of output that wait to be printed.
const QUEUE: usize = 64;

/// The time for a document before ctrl-c is watched for. Most take far less.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy)]
struct FilterLimits {
    /// Maximum time without output.
    silence: Duration,
    /// Maximum memory of the process in bytes meanwhile, if the system reports it.
    memory: u64,
}

pub(super) const ENDLESS: &str = "does it end? docs/output.md lists programs that cannot be ended";

/// Documents have 64 MB at most, and most filters take milliseconds.
const LIMITS: FilterLimits =
    FilterLimits { silence: Duration::from_secs(60), memory: 2_000_000_000 };

/// Runs on a JSON document and calls the function with each piece of output; the function returns
/// whether the receiver still exists.
pub type Program = Box<dyn FnMut(&str, &mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), CliError>>;

#[derive(Debug)]
pub struct Filter {
    documents: SyncSender<String>,
    pieces: Mutex<Receiver<Piece>>,
    /// Set by ctrl-c, once it is watched for.
    interrupted: Arc<AtomicBool>,
    watched: AtomicBool,
    /// The rest of an earlier document's output has to be discarded.
    abandoned: AtomicBool,
    limits: FilterLimits,
}

#[derive(Debug)]
enum Piece {
    Output(Vec<u8>),
    End(Result<(), CliError>),
}

impl Filter {
    /// Starts the thread of a program; the function compiles it.
    pub(super) fn of(
        source: &str,
        program: fn(&str) -> Result<Program, CliError>,
    ) -> Result<Self, CliError> {
        let source = source.to_owned();
        let (documents, documents_in) = sync_channel::<String>(1);
        let (pieces_out, pieces) = sync_channel(QUEUE);
        let run = move || {
            // Created on the thread where it runs: the language's values stay on their thread, and
            // the parser is recursive, too.
            let (mut program, outcome) = match program(&source) {
                Ok(program) => (Some(program), Ok(())),
                Err(error) => (None, Err(error)),
            };
            if pieces_out.send(Piece::End(outcome)).is_err() {
                return;
            }
            let Some(program) = &mut program else { return };
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
        match pieces.recv() {
            Ok(Piece::End(made)) => made?,
            Ok(Piece::Output(_)) | Err(_) => return Err(ended()),
        }
        Ok(Self {
            documents,
            pieces: Mutex::new(pieces),
            interrupted: Arc::default(),
            watched: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            limits: LIMITS,
        })
    }

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
        let start = Instant::now();
        let (mut heard, mut looked) = (start, start);
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        self.documents.send(document).map_err(|_| ended())?;
        loop {
            match pieces.recv_timeout(PATIENCE) {
                Ok(Piece::Output(bytes)) => {
                    print(&bytes)?;
                    heard = Instant::now();
                }
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
            if looked.elapsed() >= PATIENCE {
                looked = Instant::now();
                self.limits.check(looked.duration_since(heard))?;
            }
        }
    }

    /// Watches for ctrl-c on a separate thread: the caller's runtime is blocked meanwhile, and once
    /// anything in a process has watched for a signal, the signal no longer ends it by itself.
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
        // If this fails, the filter still runs: no reason to end a command that prints.
        let _refused = thread::Builder::new().name("signals".to_owned()).spawn(wait);
    }
}

impl FilterLimits {
    /// Stops a program that has printed nothing for too long, or uses too much memory.
    fn check(self, silent: Duration) -> Result<(), CliError> {
        if silent >= self.silence {
            let what = format!("the filter has printed nothing for {}", Plain(self.silence));
            return Err(CliError::new(Exit::TimedOut, what).hint(ENDLESS));
        }
        if memory().is_some_and(|taken| taken > self.memory) {
            let what = format!("the filter takes more than {} of memory", size(self.memory));
            return Err(CliError::failed(what).hint(ENDLESS));
        }
        Ok(())
    }
}

/// The memory of this process in bytes; only Linux reports it in a file.
fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1_024)
}

fn ended() -> CliError {
    CliError::failed("the filter ended without a result")
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
    fn what_calls_itself_without_end_is_an_error() {
        let deep = "--jq: the filter calls itself too deeply\n  \
                    does it end? docs/output.md lists programs that cannot be ended";
        for source in ["def f: 1 + f; f", "def f: [f]; f", "def f: (f | .) + 1; f"] {
            let filter = Filter::jq(source).unwrap();
            assert_eq!(apply(&filter, "1").unwrap_err().to_string(), deep, "{source}");
        }
        let filter = Filter::jq("reduce range(100000) as $i (0; [.])").unwrap();
        let what = apply(&filter, "1").unwrap_err().what;
        assert_eq!(what, "--jq: an output is nested in more than 10000 levels");
        // A filter that ends is not an error, however deep it recurses.
        let filter = Filter::jq("def f: if . == 0 then 0 else 1 + (. - 1 | f) end; f").unwrap();
        assert_eq!(apply(&filter, "5000").unwrap(), "5000\n");
        // Tail calls of a filter take no stack.
        let filter = Filter::jq("def f: if . == 0 then . else . - 1 | f end; f").unwrap();
        assert_eq!(apply(&filter, "300000").unwrap(), "0\n");
    }

    #[test]
    fn what_never_prints_is_given_up() {
        for source in ["def f: f; f", "last(repeat(1))", "last(range(infinite))"] {
            let mut filter = Filter::jq(source).unwrap();
            filter.limits.silence = Duration::from_millis(300);
            let error = apply(&filter, "1").unwrap_err();
            assert_eq!(error.exit, Exit::TimedOut, "{source}: {error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_takes_too_much_memory_is_given_up() {
        for source in ["[range(infinite)]", "[repeat(1)]", "def f: . + . | f; f"] {
            let mut filter = Filter::jq(source).unwrap();
            filter.limits.memory = memory().unwrap() + (200 << 20);
            let error = apply(&filter, "\"text\"").unwrap_err();
            assert!(error.what.starts_with("the filter takes more than "), "{source}: {error}");
        }
    }

    #[test]
    fn a_source_that_nests_deeply_is_read_or_refused() {
        let nested = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Filter::jq(&nested(10_000)).is_ok());
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
        // The next document does not get the rest of this one's output.
        assert_eq!(apply(&filter, "2").unwrap_err().exit, Exit::BrokenPipe);
    }
}
