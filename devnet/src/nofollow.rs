//! Files and directories opened by names that no link is followed for.
//!
//! What a job, a snapshot or a stranger may have put a link in the place of is reached from an open
//! directory, one name at a time.

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, Dir, FileType, Mode, OFlags},
    path::Arg,
};
use std::{ffi::CString, fs::File, io};

/// Opens a real directory.
pub(crate) fn directory(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a file, and nothing else, to read it.
pub(crate) fn file(at: impl AsFd, name: impl Arg) -> io::Result<File> {
    // Opening a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(at, name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
    }
}

/// The names in an open directory, and what has each: without `.` and `..`, in no order.
pub(crate) fn entries(
    directory: &OwnedFd,
) -> rustix::io::Result<impl Iterator<Item = rustix::io::Result<(CString, FileType)>> + '_> {
    let named = Dir::read_from(directory)?.filter(|entry| {
        !entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    });
    Ok(named.map(move |entry| {
        let entry = entry?;
        let name = entry.file_name().to_owned();
        let kind = match entry.file_type() {
            // A file system that does not say.
            FileType::Unknown => {
                let found = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        Ok((name, kind))
    }))
}
