//! `suite`: the language's published conformance files. Each chunk between lines of `---` is a
//! separate module; `### message` says that a chunk fails with this message.

use crate::run;
use cowboy_engine::actor::{ActorParams, Budget, Error, ErrorKind, Module};
use std::{collections::BTreeMap, fs, path::Path};

/// Functions that the files expect.
const PRELUDE: &str = "\
def assert_eq(x, y):
  if x != y: fail('ASSERT %r != %r' % (x, y))
def assert_ne(x, y):
  if x == y: fail('ASSERT %r == %r' % (x, y))
def assert_(cond, msg='assertion failed'):
  if not cond: fail('ASSERT ' + msg)
";

/// Names that this dialect does not have.
const ABSENT: &[&str] =
    &["float", "set", "bytes", "struct", "json", "freeze", "assert_fails", "module", "matches"];

const BUDGET: Budget = Budget { cycles: 200_000_000, cells: 10_000_000 };

/// The outcome of a chunk.
enum End {
    Passed,
    /// It failed as expected, but with another message.
    OtherMessage(String),
    Skipped(String),
    Failed(String),
}

struct Chunk {
    line: usize,
    code: String,
    expected: Option<String>,
}

fn chunks(text: &str) -> Vec<Chunk> {
    let empty = |line| Chunk { line, code: String::new(), expected: None };
    let mut chunks = vec![empty(1)];
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line == "---" {
            chunks.push(empty(index + 2));
            continue;
        }
        let Some(chunk) = chunks.last_mut() else { continue };
        let (code, message) = line.split_once("###").map_or((line, None), |(c, m)| (c, Some(m)));
        if let Some(message) = message {
            let message = message.trim_start();
            let own = ["go:", "java:"].iter().all(|other| !message.starts_with(other));
            if own {
                let message = message.strip_prefix("rust:").unwrap_or(message).trim();
                chunk.expected = Some(message.to_owned());
            }
        }
        chunk.code.push_str(code);
        chunk.code.push('\n');
    }
    chunks
}

/// The texts that a simple pattern describes: one for each alternative of its groups.
fn expand(pattern: &str) -> Vec<String> {
    let Some(open) = pattern.find('(').filter(|at| !pattern[..*at].ends_with('\\')) else {
        return vec![pattern.to_owned()];
    };
    let Some(close) = pattern[open..].find(')').map(|at| at + open) else {
        return vec![pattern.to_owned()];
    };
    let alternatives = pattern[open + 1..close].split('|');
    let joined = |one: &str| format!("{}{one}{}", &pattern[..open], &pattern[close + 1..]);
    alternatives.flat_map(|one| expand(&joined(one))).collect()
}

fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let fits = |pattern: &str| {
        let mut rest = text.as_str();
        pattern.replace('\\', "").split(".*").all(|piece| match rest.find(piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    };
    text.contains(&pattern) || expand(&pattern).iter().any(|one| one.split('|').any(fits))
}

fn load(code: &str) -> Result<(), Error> {
    let source = format!("{PRELUDE}{code}");
    Module::load(&source, &ActorParams::default(), BUDGET).1.map(drop)
}

/// Wraps statements that are not allowed at the top level in a function.
fn wrapped(code: &str) -> String {
    let body = code.lines().map(|line| format!("  {line}\n")).collect::<String>();
    format!("def chunk():\n{body}  pass\nchunk()\n")
}

/// The reason to skip a chunk that uses features outside this dialect.
fn skip(error: &Error) -> Option<String> {
    let ErrorKind::Refused(message) = &error.kind else { return None };
    if let Some(name) = message.strip_prefix("undefined name ") {
        return ABSENT.contains(&name).then(|| format!("no {name}"));
    }
    let absent =
        ["there are no floats", "there is no load", "there are no bytes", "there are no f-strings"];
    absent.iter().find(|start| message.starts_with(**start)).map(|start| (*start).to_owned())
}

fn run(chunk: &Chunk) -> End {
    let mut result = load(&chunk.code);
    let at_top = |error: &Error| {
        let text = error.to_string();
        text.contains("outside a `def`") || text.contains("top level") || text.contains("top-level")
    };
    if result.as_ref().is_err_and(at_top) {
        result = load(&wrapped(&chunk.code));
    }
    match (result, &chunk.expected) {
        (Err(error), expected) if skip(&error).is_some() => {
            let reason = skip(&error).unwrap_or_default();
            match expected {
                Some(message) if matches(message, &error.to_string()) => End::Passed,
                _ => End::Skipped(reason),
            }
        }
        (Ok(()), None) => End::Passed,
        (Ok(()), Some(expected)) => End::Failed(format!("no error; expected: {expected}")),
        (Err(error), None) => End::Failed(error.to_string()),
        (Err(error), Some(_)) if error.to_string().contains("ASSERT") => {
            End::Failed(error.to_string())
        }
        (Err(error), Some(expected)) if matches(expected, &error.to_string()) => End::Passed,
        (Err(error), Some(expected)) => {
            let got = run::ending(Some(&error));
            End::OtherMessage(format!("got: {got}; expected: {expected}"))
        }
    }
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "star") {
            found.push(path);
        }
    }
}

/// Runs all files below a folder; returns the number of failed chunks.
pub fn suite(folder: &str, verbose: bool) -> usize {
    let mut found = Vec::new();
    files(Path::new(folder), &mut found);
    let (mut passed, mut other, mut failed) = (0, 0, 0);
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for path in &found {
        let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
        let Ok(text) = fs::read_to_string(path) else { continue };
        let mut of_file = [0; 4];
        let mut lines = Vec::new();
        for chunk in chunks(&text) {
            let at = format!("  {name}:{}", chunk.line);
            match run::on_a_thread({
                let chunk =
                    Chunk { code: chunk.code.clone(), expected: chunk.expected.clone(), ..chunk };
                move || run(&chunk)
            }) {
                End::Passed => of_file[0] += 1,
                End::OtherMessage(why) => {
                    of_file[1] += 1;
                    if verbose {
                        lines.push(format!("{at} other message: {why}"));
                    }
                }
                End::Skipped(reason) => {
                    of_file[2] += 1;
                    if verbose {
                        lines.push(format!("{at} skipped: {reason}"));
                    }
                    *skipped.entry(reason).or_default() += 1;
                }
                End::Failed(why) => {
                    of_file[3] += 1;
                    lines.push(format!("{at} FAILED: {}", why.lines().next().unwrap_or_default()));
                }
            }
        }
        println!(
            "{name:<40} {:>4} passed, {:>3} with another message, {:>3} skipped, {:>3} failed",
            of_file[0], of_file[1], of_file[2], of_file[3]
        );
        lines.iter().for_each(|line| println!("{line}"));
        passed += of_file[0];
        other += of_file[1];
        failed += of_file[3];
    }
    let all: usize = skipped.values().sum();
    println!("{passed} passed, {other} with another message, {all} skipped, {failed} failed");
    for (reason, count) in skipped {
        println!("  skipped {count}: {reason}");
    }
    failed
}
