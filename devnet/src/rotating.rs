//! A log file with a maximum length: when it is full, a new one starts and the full one is kept
//! under another name.

use crate::home::part_before;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Maximum bytes of a log file. With the part before it, a log takes twice as many.
const LIMIT: u64 = 64 << 20;

/// An open log file that begins again when it is full.
#[derive(Debug)]
pub struct Rotating {
    path: PathBuf,
    file: File,
    written: u64,
    limit: u64,
}

impl Rotating {
    /// Continues the log at `path`, or creates it.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        Self::with_limit(path, LIMIT)
    }

    fn with_limit(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = append(&path)?;
        let written = file.metadata()?.len();
        Ok(Self { path, file, written, limit })
    }

    fn rotate(&mut self) -> io::Result<()> {
        match fs::rename(&self.path, part_before(&self.path)) {
            // The file is missing if the last rotation renamed it and failed to create a new one.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let fresh = append(&self.path)?;
        // In the background the standard streams go to the log, too; panics are printed there.
        let ours = identity(&self.file)?;
        if identity(rustix::stdio::stderr()).is_ok_and(|stream| stream == ours) {
            rustix::stdio::dup2_stderr(&fresh)?;
        }
        if identity(rustix::stdio::stdout()).is_ok_and(|stream| stream == ours) {
            rustix::stdio::dup2_stdout(&fresh)?;
        }
        self.file = fresh;
        self.written = 0;
        Ok(())
    }
}

impl Write for Rotating {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let after = self.written.saturating_add(bytes.len() as u64);
        if after > self.limit && self.written > 0 {
            // If rotation fails, for example on a full disk, the log continues in the same file.
            let _ = self.rotate();
        }
        let written = self.file.write(bytes)?;
        self.written = self.written.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn identity(file: impl rustix::fd::AsFd) -> io::Result<(u64, u64)> {
    let file = File::from(file.as_fd().try_clone_to_owned()?);
    let about = file.metadata()?;
    Ok((about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_begins_again_and_keeps_the_part_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("devnet.log");
        fs::write(&path, "of an earlier run\n").unwrap();
        let mut log = Rotating::with_limit(path.clone(), 40).unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        log.write_all(b"first\n").unwrap();
        assert_eq!(read(&path), "of an earlier run\nfirst\n");
        log.write_all(b"a line that is too long\n").unwrap();
        assert_eq!(read(&part_before(&path)), "of an earlier run\nfirst\n");
        assert_eq!(read(&path), "a line that is too long\n");
        let long = format!("{}\n", "x".repeat(100));
        log.write_all(long.as_bytes()).unwrap();
        assert_eq!(read(&path), long, "a line is never cut");
        log.write_all(b"last\n").unwrap();
        assert_eq!(read(&part_before(&path)), long);
        assert_eq!(read(&path), "last\n");
    }
}
