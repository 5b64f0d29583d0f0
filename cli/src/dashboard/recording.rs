//! Records news in a file, one JSON document per line, and reads such a file.

use super::news::News;
use crate::error::{CliError, Exit};
use cowboy_devnet::types::TimeText;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read as _, Write as _},
    path::Path,
};

/// Maximum bytes of a recording: hours of a small devnet, minutes of one with a thousand runners.
pub const LIMIT: u64 = 256 << 20;

/// A line: written with borrowed news, read with owned ones.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded<N> {
    at: TimeText,
    news: N,
}

#[derive(Debug)]
pub struct Recorder {
    file: BufWriter<File>,
    written: u64,
}

impl Recorder {
    /// Creates the file, which must not exist.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let file = File::create_new(path).map_err(|error| {
            let what = format!("--record {}: {error}", path.display());
            match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    CliError::new(Exit::Conflict, what).hint("name a file that does not exist yet")
                }
                _ => CliError::failed(what),
            }
        })?;
        Ok(Self { file: BufWriter::new(file), written: 0 })
    }

    /// Writes a line and returns whether that worked. After a failure, or when the file is full,
    /// nothing more is written.
    pub fn write(&mut self, at: Timestamp, news: &News) -> bool {
        let line = serde_json::to_vec(&Recorded { at: at.into(), news });
        let mut line = line.expect("news are plain data");
        line.push(b'\n');
        let length = line.len() as u64;
        if self.written + length > LIMIT {
            self.written = LIMIT;
            return false;
        }
        self.written += length;
        let done = self.file.write_all(&line).and_then(|()| self.file.flush()).is_ok();
        if !done {
            self.written = LIMIT;
        }
        done
    }
}

/// Reads a recording: news with the times at which they arrived, ascending.
pub fn read(path: &Path) -> Result<Vec<(Timestamp, News)>, CliError> {
    let named = |what: &dyn std::fmt::Display| format!("--replay {}: {what}", path.display());
    let file = File::open(path).map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        CliError::new(exit, named(&error))
    })?;
    parse(BufReader::new(file.take(LIMIT))).map_err(|(line, reason)| {
        let what = named(&format_args!("line {line} is not a piece of news: {reason}"));
        CliError::new(Exit::Usage, what).hint("write one with: cowboyctl dashboard --record FILE")
    })
}

/// Parses lines; an error contains the line's number.
pub fn parse(lines: impl io::BufRead) -> Result<Vec<(Timestamp, News)>, (usize, String)> {
    let mut all: Vec<(Timestamp, News)> = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line.map_err(|error| (number, error.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let Recorded { at, news } =
            serde_json::from_str(&line).map_err(|error| (number, error.to_string()))?;
        // Times must not go backwards.
        let at = all.last().map_or(at.0, |(last, _)| at.0.max(*last));
        all.push((at, news));
    }
    match all.is_empty() {
        true => Err((1, "the file is empty".to_owned())),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut recorder = Recorder::create(&path).unwrap();
        let lost = |reason: &str| News::Lost { reason: reason.to_owned() };
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(recorder.write(at(2), &lost("a")));
        assert!(recorder.write(at(1), &lost("b")));
        assert_eq!(read(&path).unwrap(), [(at(2), lost("a")), (at(2), lost("b"))]);
        assert_eq!(Recorder::create(&path).unwrap_err().exit, Exit::Conflict);
    }

    #[test]
    fn what_is_no_news_is_named_by_its_line() {
        let check = |text: &str, line, part: &str| {
            let (number, reason) = parse(text.as_bytes()).unwrap_err();
            assert_eq!(number, line);
            assert!(reason.contains(part), "{reason}");
        };
        check("", 1, "empty");
        check("\n{}\n", 2, "missing field `at`");
        let good = r#"{"at":"2026-01-01T00:00:00Z","news":{"lost":{"reason":"x"}}}"#;
        check(&format!("{good}\nx"), 2, "expected value");
        assert_eq!(parse(good.as_bytes()).unwrap().len(), 1);
    }
}
