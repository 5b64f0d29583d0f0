//! The outputs of a job, which its steps write to the file that `COWBOY_OUTPUT` names.
//!
//! ```text
//! NAME=VALUE
//! NAME<<END
//! several
//! lines
//! END
//! ```
//!
//! The last value of a name wins. The job writes the file, so its contents are not trusted.

use crate::{
    check::is_output,
    messages::{MAX_OUTPUT_BYTES, MAX_OUTPUTS},
};
use cowboy_host::files::if_there;
use rustix::fs::OFlags;
use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{self, ErrorKind::NotFound, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The file's name, in the job's home.
const FILE: &str = ".cowboy-output";
/// Longest file that is read, in bytes. Values that were written again count each time.
const MAX_FILE: u64 = 64 * MAX_OUTPUT_BYTES as u64;

pub(super) fn path(home: &Path) -> PathBuf {
    home.join(FILE)
}

pub(super) fn make(home: &Path) -> io::Result<()> {
    let path = path(home);
    if_there(std::fs::remove_file(&path))?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map(drop)
}

/// The values in the file, by name. Errors: the reason why it cannot be read or is not valid.
pub(super) fn read(home: &Path) -> Result<BTreeMap<String, String>, String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened =
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path(home));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(format!("the outputs file cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !regular {
        return Err("the outputs file is no longer a regular file".to_owned());
    }
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("the outputs file cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("the outputs file has more than {MAX_FILE} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "the outputs are not UTF-8".to_owned())?;
    parse(&text)
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let (mut outputs, mut lines) = (BTreeMap::new(), (1..).zip(text.lines()));
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |what: &str| Err(format!("line {number} of the outputs: {what}"));
        let equals = line.find('=').unwrap_or(usize::MAX);
        let (name, value) = match line.split_once("<<") {
            Some((name, end)) if name.len() < equals && !end.trim().is_empty() => {
                let mut value = Vec::new();
                loop {
                    match lines.next() {
                        Some((_, line)) if line == end => break,
                        Some((_, line)) => value.push(line),
                        None => return wrong("the line that ends the value is missing"),
                    }
                }
                (name, value.join("\n"))
            }
            _ => match line.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => return wrong("expected NAME=VALUE, or NAME<<END and lines up to END"),
            },
        };
        if !is_output(name) {
            return wrong("a name has letters, digits and `_`, and begins with no digit");
        }
        if value.contains('\0') {
            return wrong("a value has no NUL");
        }
        outputs.insert(name.to_owned(), value);
    }
    Ok(outputs)
}

pub(super) fn fit(outputs: &BTreeMap<String, String>) -> bool {
    let bytes: usize = outputs.iter().map(|(name, value)| name.len() + value.len()).sum();
    outputs.len() <= MAX_OUTPUTS && bytes <= MAX_OUTPUT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn outputs_are_lines_and_pieces_of_several() {
        let check = |text: &str, expected: Result<&[(&str, &str)], &str>| {
            let expected = expected.map(|pairs| {
                pairs
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect()
            });
            assert_eq!(parse(text), expected.map_err(str::to_owned), "{text:?}");
        };
        check("", Ok(&[]));
        check("a=1\n\nb=x=y<<z\na=2", Ok(&[("a", "2"), ("b", "x=y<<z")]));
        check("a<<END\none=1\n\n END\nEND\nb=\n", Ok(&[("a", "one=1\n\n END"), ("b", "")]));
        let end = "line 2 of the outputs: the line that ends the value is missing";
        check("x=1\na<<END\nb=1", Err(end));
        let shape = "line 1 of the outputs: expected NAME=VALUE, or NAME<<END and lines up to END";
        check("version 1.2", Err(shape));
        check("a<<", Err(shape));
        let name =
            "line 1 of the outputs: a name has letters, digits and `_`, and begins with no digit";
        check("1a=b", Err(name));
        check(" a=b", Err(name));
        check("a=\0", Err("line 1 of the outputs: a value has no NUL"));
    }

    #[test]
    fn a_file_that_is_no_file_any_more_is_refused() {
        let home = tempfile::tempdir().unwrap();
        make(home.path()).unwrap();
        let path = path(home.path());
        assert_eq!(read(home.path()), Ok(BTreeMap::new()));
        fs::write(&path, "a=1").unwrap();
        assert_eq!(read(home.path()).unwrap()["a"], "1");
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert!(read(home.path()).unwrap_err().contains("cannot be read"));
        // A link that a cache brought is replaced too.
        make(home.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(read(home.path()).unwrap_err(), "the outputs file is no longer a regular file");
        fs::remove_dir(&path).unwrap();
        fs::File::create(&path).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(read(home.path()).unwrap_err().contains("more than"));
    }
}
