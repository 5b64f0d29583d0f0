//! The devnet's log file, read piece by piece as `devnet logs` does.

use cowboy_devnet::{
    client::ClientError,
    home::{DevnetHome, HomeError},
};
use cowboy_host::files::FileError;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Maximum bytes to read at a time, from the end of the file.
const READ_PIECE: u64 = 64 << 10;

/// Maximum characters to keep of a line.
const LINE: usize = 2_048;

/// A position in a log. A restarted devnet starts another file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPosition {
    /// The file's inode; 0 for none.
    pub file: u64,
    /// Bytes from the file's beginning.
    pub at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The position of its end in the file, in bytes.
    pub end: u64,
    /// The text, without control characters.
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPiece {
    pub from: LogPosition,
    pub lines: Vec<LogLine>,
}

/// The whole lines after a position. If there are too many, or the file is another one, only the
/// last of them.
pub async fn read(home: &DevnetHome, after: LogPosition) -> Result<LogPiece, ClientError> {
    let path = home.log_path();
    let piece = tokio::task::spawn_blocking({
        let path = path.clone();
        move || last(&path, after, READ_PIECE)
    });
    let piece = piece.await.map_err(io::Error::other).flatten();
    piece.map_err(|source| HomeError::from(FileError::Io { path, source }).into())
}

fn last(path: &Path, after: LogPosition, most: u64) -> io::Result<LogPiece> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    let (number, length) = (about.ino(), about.len());
    // A file that became shorter has been restarted.
    let wanted = match after {
        LogPosition { file, at } if file == number && at <= length => at,
        _ => 0,
    };
    let start = wanted.max(length.saturating_sub(most));
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let is_feed = |byte: &u8| *byte == b'\n';
    // The piece begins in the middle of a line, whose beginning is missing.
    let skipped = match start > wanted {
        true => bytes.iter().position(is_feed).map_or(bytes.len(), |feed| feed + 1),
        false => 0,
    };
    let from = start + skipped as u64;
    let mut end = from;
    let mut lines = Vec::new();
    for line in bytes[skipped..].split_inclusive(is_feed) {
        // The rest of the last one is still to come.
        let Some((b'\n', text)) = line.split_last() else { break };
        end += line.len() as u64;
        lines.push(LogLine { end, text: plain(text) });
    }
    Ok(LogPiece { from: LogPosition { file: number, at: from }, lines })
}

/// Text of bounded length, without control characters.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\t', "    ");
    text.chars().filter(|c| !c.is_control()).take(LINE).collect()
}

/// Whether a line has `word` as a whole word: `validator-1` is not in `validator-10`.
pub fn names(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    line.match_indices(word).any(|(start, _)| {
        let end = start + word.len();
        !line[..start].ends_with(is_part) && !line[end..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Write as _};

    fn texts(piece: &LogPiece) -> Vec<&str> {
        piece.lines.iter().map(|line| line.text.as_str()).collect()
    }

    /// The place after a piece.
    fn next(piece: &LogPiece) -> LogPosition {
        let end = piece.lines.last().map_or(piece.from.at, |line| line.end);
        LogPosition { at: end, ..piece.from }
    }

    #[test]
    fn whole_lines_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "one\ntwo\nthr").unwrap();
        let first = last(&path, LogPosition::default(), 1_000).unwrap();
        assert_eq!(texts(&first), ["one", "two"]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"ee \x1b[31m\tred\n").unwrap();
        let second = last(&path, next(&first), 1_000).unwrap();
        assert_eq!(texts(&second), ["three [31m    red"]);
        assert_eq!(second.from, next(&first));
        assert_eq!(last(&path, next(&second), 1_000).unwrap().lines, []);
    }

    #[test]
    fn of_too_many_the_last_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let piece = last(&path, LogPosition::default(), 9).unwrap();
        assert_eq!((texts(&piece), piece.from.at), (vec!["three"], 8));
        // A line that is longer than the whole piece.
        let piece = last(&path, LogPosition::default(), 4).unwrap();
        assert_eq!((piece.lines.len(), piece.from.at), (0, 14));
    }

    #[test]
    fn another_file_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "a long line\n").unwrap();
        let place = next(&last(&path, LogPosition::default(), 1_000).unwrap());
        fs::write(&path, "short\n").unwrap();
        assert_eq!(texts(&last(&path, place, 1_000).unwrap()), ["short"]);
        let other = LogPosition { file: place.file + 1, at: 2 };
        assert_eq!(texts(&last(&path, other, 1_000).unwrap()), ["short"]);
        fs::remove_file(&path).unwrap();
        assert_eq!(last(&path, place, 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
