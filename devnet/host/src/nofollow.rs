//! Opens files and directories by names without following links.
//!
//! Paths in which a job, a snapshot or a stranger may have placed a link are opened from an open
//! directory, one name at a time.

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags},
    io::Errno,
    path::Arg,
};
use std::{
    ffi::{CString, OsStr},
    fs::File,
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// The maximum depth and total number of entries that [`stranger`] visits: far more than a devnet
/// has.
const MAX_NESTING: usize = 32;
const MAX_NAMES: usize = 1 << 20;

/// Opens a directory that is not a link.
pub fn directory(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a regular file for reading.
pub fn file(at: impl AsFd, name: impl Arg) -> io::Result<File> {
    // Without this, opening a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(at, name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
    }
}

/// The names in an open directory with their types, without `.` and `..`, unsorted.
pub fn entries(
    directory: &OwnedFd,
) -> rustix::io::Result<impl Iterator<Item = rustix::io::Result<(CString, FileType)>> + '_> {
    let named = Dir::read_from(directory)?.filter(|entry| {
        !entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    });
    Ok(named.map(move |entry| {
        let entry = entry?;
        let name = entry.file_name().to_owned();
        let kind = match entry.file_type() {
            // This file system does not report types.
            FileType::Unknown => {
                let found = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        Ok((name, kind))
    }))
}

/// Finds a path below `top`, or `top` itself, that is neither a real file nor a real directory.
/// Does not enter directories whose path relative to `top` satisfies `is_others`. An entry that is
/// removed during the walk is not an error. An error comes with its path.
pub fn stranger(
    top: &Path,
    is_others: impl Fn(&Path) -> bool,
) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
    let mut names = 0;
    let mut directories = vec![(top.to_owned(), 0)];
    while let Some((path, depth)) = directories.pop() {
        let opened = match directory(CWD, &path) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => continue,
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Some(path)),
            Err(error) => return Err((path, error.into())),
        };
        let entries = match entries(&opened) {
            Ok(entries) => entries,
            Err(error) => return Err((path, error.into())),
        };
        for entry in entries {
            let (name, kind) = match entry {
                Ok(entry) => entry,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err((path, error.into())),
            };
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            names += 1;
            if names > MAX_NAMES || depth == MAX_NESTING {
                let error = io::Error::other("more files and folders than a devnet has");
                return Err((below, error));
            }
            if kind.is_dir() {
                if !is_others(below.strip_prefix(top).unwrap_or(&below)) {
                    directories.push((below, depth + 1));
                }
            } else if !kind.is_file() {
                return Ok(Some(below));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn whatever_is_neither_file_nor_directory_is_a_stranger() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::create_dir_all(top.join("others")).unwrap();
        fs::write(top.join("a/file"), "").unwrap();
        symlink(folder.path(), top.join("others/link")).unwrap();
        let stranger = |top: &Path| stranger(top, |path| path == Path::new("others")).unwrap();
        assert_eq!(stranger(&top), None);
        assert_eq!(stranger(&folder.path().join("absent")), None);

        for place in ["link", "a/link", "a/b/c/link"] {
            symlink(folder.path(), top.join(place)).unwrap();
            assert_eq!(stranger(&top), Some(top.join(place)));
            fs::remove_file(top.join(place)).unwrap();
        }
        let (pipe, mode) = (top.join("a/pipe"), Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        assert_eq!(stranger(&top), Some(pipe));
        let linked = folder.path().join("linked");
        symlink(&top, &linked).unwrap();
        assert_eq!(stranger(&linked), Some(linked));
    }

    #[test]
    fn a_bottomless_tree_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut path = folder.path().to_owned();
        path.extend((0..=MAX_NESTING).map(|_| "d"));
        fs::create_dir_all(&path).unwrap();
        let (_, error) = stranger(folder.path(), |_| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
    }
}
