//! Copies of files and folders as of one moment, even while some of them are being written.

use super::{SnapshotError, sums};
use crate::{home::HomeError, storage};
use cowboy_host::files::{self, FileError};
use rusqlite::{Connection, OpenFlags};
use std::{
    ffi::OsString,
    fs::{self, DirEntry, File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// A devnet's SQLite files, by path components; [`ANY`] matches any name.
const DATABASES: [&[&str]; 5] = [
    &["validators", ANY, "index.db"],
    &["nodes", ANY, "validators", ANY, "index.db"],
    &["data", "followed", "index.db"],
    &["data", "speculation.db"],
    &["lease", "lease.db"],
];
/// Uploads in progress, which a client begins again, and what a node's process makes again.
const TRANSIENT: [&[&str]; 6] = [
    &["lease", "tmp"],
    &["nodes", ANY, "lock"],
    &["nodes", ANY, "devnet.json"],
    &["nodes", ANY, "token"],
    &["nodes", ANY, "log"],
    &["nodes", ANY, "jobs"],
];
const ANY: &str = "*";
/// The files that SQLite keeps next to a database; the copy includes their contents.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyKind {
    /// Copied through SQLite, as of one moment.
    Database,
    Transient,
    Plain,
}

impl CopyKind {
    fn of(place: &[String]) -> Self {
        let is = |pattern: &[&str], place: &[String]| {
            pattern.len() == place.len()
                && pattern.iter().zip(place).all(|(wanted, name)| *wanted == ANY || wanted == name)
        };
        let bare = COMPANIONS.iter().find_map(|end| {
            let (name, folders) = place.split_last()?;
            Some([folders, &[name.strip_suffix(end)?.to_owned()]].concat())
        });
        let is_companion =
            |place: &Vec<String>| DATABASES.iter().any(|database| is(database, place));
        if DATABASES.iter().any(|database| is(database, place)) {
            Self::Database
        } else if TRANSIENT.iter().any(|part| is(part, place))
            || bare.as_ref().is_some_and(is_companion)
        {
            Self::Transient
        } else {
            Self::Plain
        }
    }
}

impl Copied {
    /// Copies a part of a devnet's folder and counts it. An entry that does not exist, or that
    /// vanishes during the copy, is no error: everything that must not change is not being written.
    pub(super) fn live(
        &mut self,
        folder: &Path,
        part: &str,
        to: &Path,
    ) -> Result<(), SnapshotError> {
        self.entry(&folder.join(part), &to.join(part), &mut vec![part.to_owned()])
    }

    /// `place` is the path within the devnet's folder.
    fn entry(
        &mut self,
        from: &Path,
        to: &Path,
        place: &mut Vec<String>,
    ) -> Result<(), SnapshotError> {
        let kind = CopyKind::of(place);
        if kind == CopyKind::Transient {
            return Ok(());
        }
        let found = files::if_there(fs::symlink_metadata(from)).map_err(HomeError::io(from))?;
        let Some(found) = found.map(|metadata| metadata.file_type()) else { return Ok(()) };
        if found.is_dir() {
            return self.folder(from, to, place);
        }
        if !found.is_file() {
            return Err(SnapshotError::Strange(from.to_owned()));
        }
        if let Some(parent) = to.parent() {
            files::create_private_dir(parent)?;
        }
        self.file(from, to, kind)
    }

    fn folder(
        &mut self,
        from: &Path,
        to: &Path,
        place: &mut Vec<String>,
    ) -> Result<(), SnapshotError> {
        let mut names: Vec<_> = files::entries(from)?.iter().map(DirEntry::file_name).collect();
        databases_first(place, &mut names);
        for name in names {
            match name.to_str().filter(|name| sums::is_listable(name)) {
                Some(name) => place.push(name.to_owned()),
                None => return Err(SnapshotError::Strange(from.join(name))),
            }
            self.entry(&from.join(&name), &to.join(&name), place)?;
            place.pop();
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path, kind: CopyKind) -> Result<(), SnapshotError> {
        if kind == CopyKind::Database {
            database(from, to)?;
        } else if files::if_there(fs::copy(from, to)).map_err(HomeError::io(from))?.is_none() {
            return Ok(());
        }
        self.files += 1;
        self.bytes += fs::metadata(to).map_err(HomeError::io(to))?.len();
        Ok(())
    }
}

/// Sorts a folder's databases first. A file is complete before a database names it, so every file
/// that the database's copy names is still there to be copied afterwards.
fn databases_first(folder: &[String], names: &mut [OsString]) {
    names.sort_by_key(|name| {
        let place = [folder, &[name.to_string_lossy().into_owned()]].concat();
        CopyKind::of(&place) != CopyKind::Database
    });
}

pub(super) fn settle(folder: &Path) -> Result<(), HomeError> {
    for entry in fs::read_dir(folder).map_err(HomeError::io(folder))? {
        let entry = entry.map_err(HomeError::io(folder))?;
        let kind = entry.file_type().map_err(HomeError::io(&entry.path()))?;
        if kind.is_dir() {
            settle(&entry.path())?;
        } else if kind.is_file() {
            sync(&entry.path())?;
        }
    }
    sync(folder)
}

pub(super) fn sync(path: &Path) -> Result<(), HomeError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(HomeError::io(path))
}

/// Copies an SQLite file as of now, including the contents of its log.
fn database(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    // SQLite writes into an empty file, so the file is private from the start.
    let fresh = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    fresh.map_err(HomeError::io(to))?;
    let failed = |source| SnapshotError::Sqlite { path: from.to_owned(), source };
    let connection = Connection::open(from).map_err(failed)?;
    let target = to.to_str().ok_or_else(|| FileError::Malformed {
        path: to.to_owned(),
        reason: "its path is not Unicode".to_owned(),
    })?;
    connection.execute("VACUUM INTO ?1", [target]).map_err(failed)?;
    Ok(())
}

/// The faults that SQLite finds in an existing file: one line each, up to SQLite's limit. Other
/// processes may have the file open.
pub fn faults_of(database: &Path) -> Vec<String> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let faults = connection.and_then(|connection| storage::integrity(&connection));
    faults.unwrap_or_else(|error| vec![error.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_database_has_faults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let made = Connection::open(&path).unwrap();
        made.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE a (b);").unwrap();
        assert!(faults_of(&path).is_empty());
        drop(made);
        assert!(faults_of(&path).is_empty());
        fs::write(&path, "garbage".repeat(1000)).unwrap();
        assert_eq!(faults_of(&path).len(), 1);
    }

    #[test]
    fn databases_go_before_what_they_tell_of() {
        let mut names = ["artifacts", "caches", "lease.db", "logs"].map(OsString::from);
        databases_first(&["lease".to_owned()], &mut names);
        assert_eq!(names, ["lease.db", "artifacts", "caches", "logs"]);
        databases_first(&["lease".to_owned(), "artifacts".to_owned()], &mut names);
        assert_eq!(names, ["lease.db", "artifacts", "caches", "logs"], "no database in it");
    }

    #[test]
    fn only_a_devnet_s_own_databases_are_sqlite_s() {
        let check = |place: &str, expected| {
            let place: Vec<_> = place.split('/').map(str::to_owned).collect();
            assert_eq!(CopyKind::of(&place), expected, "{place:?}");
        };
        check("validators/validator-0/index.db", CopyKind::Database);
        check("validators/validator-0/index.db-wal", CopyKind::Transient);
        check("lease/lease.db", CopyKind::Database);
        check("lease/lease.db-shm", CopyKind::Transient);
        check("lease/tmp", CopyKind::Transient);
        check("data/speculation.db", CopyKind::Database);
        check("data/consensus/validator-0-blocks/00", CopyKind::Plain);
        check("lease/artifacts/run_1/job_1/1/lease.db", CopyKind::Plain);
        check("lease/artifacts/run_1/job_1/1/a-wal", CopyKind::Plain);
        check("lease/artifacts/run_1/job_1/1/tmp", CopyKind::Plain);
    }
}
