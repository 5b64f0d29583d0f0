//! `SHA256SUMS`: the hash of every file of a snapshot, in the form that `sha256sum` writes.
//!
//! A snapshot is loaded by this list. Each file is hashed while it is copied. A file with another
//! hash, an unlisted name, a missing listed name, a link and a device are all refused. The list has
//! a single form for given files, so a change to any of its bytes is detected too.

use super::{DEVNET, MANIFEST, SAVED, SUMS};
use crate::home::HomeError;
use commonware_cryptography::{Hasher as _, Sha256, sha256::Digest};
use cowboy_host::{
    files::{self, FileError},
    nofollow,
};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{CWD, FileType},
    io::Errno,
    path::Arg,
};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The longest list that is written and read, in bytes: half a million files.
const MAX_LIST: u64 = 64 << 20;

const CHUNK: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub(super) enum SumsError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{0}")]
    Refused(String),
    #[error("{what}")]
    Stray { what: String, path: PathBuf },
}

impl From<FileError> for SumsError {
    fn from(error: FileError) -> Self {
        Self::Home(error.into())
    }
}

/// Hashes by path relative to the snapshot's folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sums(BTreeMap<String, Digest>);

impl Sums {
    pub(super) fn of(snapshot: &Path) -> Result<Self, SumsError> {
        let mut sums = Self::default();
        sums.add_folder(snapshot, "")?;
        Ok(sums)
    }

    fn add_folder(&mut self, folder: &Path, place: &str) -> Result<(), SumsError> {
        for entry in fs::read_dir(folder).map_err(HomeError::io(folder))? {
            let entry = entry.map_err(HomeError::io(folder))?;
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_str().filter(|name| is_listable(name)).ok_or_else(|| {
                SumsError::Refused(format!("{}: a name that cannot be listed", path.display()))
            })?;
            let place = format!("{place}{name}");
            if entry.file_type().map_err(HomeError::io(&path))?.is_dir() {
                self.add_folder(&path, &format!("{place}/"))?;
            } else {
                let mut file = File::open(&path).map_err(HomeError::io(&path))?;
                let (hash, _) = pass(&mut file, &mut io::sink()).map_err(HomeError::io(&path))?;
                self.0.insert(place, hash);
            }
        }
        Ok(())
    }

    pub(super) fn write(&self, snapshot: &Path) -> Result<(), SumsError> {
        let text = self.text();
        if text.len() as u64 > MAX_LIST {
            let files = self.0.len();
            return Err(SumsError::Refused(format!("{files} files are more than can be listed")));
        }
        Ok(files::write_private(&snapshot.join(SUMS), &text)?)
    }

    fn text(&self) -> String {
        self.0.iter().fold(String::new(), |text, (path, hash)| {
            text + &hex::encode(hash) + "  " + path + "\n"
        })
    }

    pub(super) fn read(snapshot: &Path) -> Result<Self, SumsError> {
        let path = snapshot.join(SUMS);
        let file = open_file(CWD, &path, SUMS, &path)?;
        let mut text = Vec::new();
        file.take(MAX_LIST + 1).read_to_end(&mut text).map_err(HomeError::io(&path))?;
        String::from_utf8(text)
            .ok()
            .filter(|text| text.len() as u64 <= MAX_LIST)
            .and_then(|text| Self::parse(&text))
            .ok_or_else(|| SumsError::Refused(format!("{SUMS} is not as it was written")))
    }

    /// `None` for a text that [`Self::text`] would not write.
    fn parse(text: &str) -> Option<Self> {
        let mut sums = BTreeMap::new();
        for line in text.lines() {
            let (hash, path) = line.split_once("  ")?;
            let mut bytes = [0; 32];
            hex::decode_to_slice(hash, &mut bytes).ok()?;
            sums.insert(path.to_owned(), Digest(bytes));
        }
        let sums = Self(sums);
        (sums.text() == text).then_some(sums)
    }

    pub(super) fn check(&self, path: &str, text: &str) -> Result<(), SumsError> {
        match self.0.get(path) {
            Some(hash) if *hash == Sha256::hash(&[text.as_bytes()]) => Ok(()),
            Some(_) => Err(changed(path)),
            None => Err(SumsError::Refused(format!("{SUMS} does not list {path}"))),
        }
    }

    /// Copies the devnet of a snapshot to `to`, which must not exist. After an error, files copied
    /// so far remain.
    pub(super) fn bring(&self, snapshot: &Path, to: &Path) -> Result<(), SumsError> {
        let saved = |path: &str| {
            path == MANIFEST
                || path
                    .strip_prefix(DEVNET)
                    .and_then(|path| path.strip_prefix('/'))
                    .and_then(|path| path.split('/').next())
                    .is_some_and(|part| SAVED.contains(&part))
        };
        if let Some(path) = self.0.keys().find(|path| !saved(path)) {
            return Err(SumsError::Refused(format!("{path} is not part of a snapshot")));
        }
        let top = open_folder(CWD, snapshot, "its folder", snapshot)?;
        for (name, _) in entries(&top, snapshot)? {
            if ![DEVNET, MANIFEST, SUMS].contains(&&*name) {
                return Err(unlisted(&name, "name", &snapshot.join(&name)));
            }
        }
        let folder = snapshot.join(DEVNET);
        let devnet = open_folder(&top, DEVNET, DEVNET, &folder)?;
        let mut missing: BTreeMap<&str, &Digest> =
            self.0.iter().map(|(path, hash)| (path.as_str(), hash)).collect();
        missing.remove(MANIFEST);
        bring_folder(&folder, &devnet, DEVNET, to, &mut missing)?;
        match missing.keys().next() {
            Some(path) => Err(SumsError::Refused(format!("{path} is missing"))),
            None => Ok(()),
        }
    }
}

/// Copies the contents of `from`, which is `place` in the snapshot and lies at `path`. Removes each
/// copied file from `missing`.
fn bring_folder(
    path: &Path,
    from: &OwnedFd,
    place: &str,
    to: &Path,
    missing: &mut BTreeMap<&str, &Digest>,
) -> Result<(), SumsError> {
    files::create_private_dir(to)?;
    for (name, kind) in entries(from, path)? {
        let (path, place, to) = (path.join(&name), format!("{place}/{name}"), to.join(&name));
        let below = format!("{place}/");
        let next = missing.range(below.as_str()..).next();
        let is_folder = next.is_some_and(|(path, _)| path.starts_with(&below));
        if kind.is_dir() {
            if !is_folder {
                return Err(unlisted(&place, "folder", &path));
            }
            let inner = open_folder(from, &*name, &place, &path)?;
            bring_folder(&path, &inner, &place, &to, missing)?;
        } else if kind.is_file() {
            let expected =
                missing.remove(&*place).ok_or_else(|| unlisted(&place, "file", &path))?;
            let mut file = open_file(from, &*name, &place, &path)?;
            let mut options = OpenOptions::new();
            let copy = options.write(true).create_new(true).mode(0o600).open(&to);
            let mut copy = copy.map_err(HomeError::io(&to))?;
            let (hash, _) = pass(&mut file, &mut copy).map_err(HomeError::io(&path))?;
            if hash != *expected {
                return Err(changed(&place));
            }
        } else {
            let what = if kind.is_symlink() { "a link" } else { "neither file nor folder" };
            let what = format!("{place} is {what}");
            return Err(match is_folder || missing.contains_key(&*place) {
                true => SumsError::Refused(what),
                false => SumsError::Stray { what, path },
            });
        }
    }
    Ok(())
}

fn changed(path: &str) -> SumsError {
    SumsError::Refused(format!("{path} is not what was saved"))
}

/// The error for an entry `place` of the snapshot, which lies at `path`.
fn unlisted(place: &str, what: &str, path: &Path) -> SumsError {
    let what = format!("{place} is a {what} that {SUMS} does not list");
    SumsError::Stray { what, path: path.to_owned() }
}

pub(super) fn open_folder(
    at: impl AsFd,
    name: impl Arg,
    place: &str,
    path: &Path,
) -> Result<OwnedFd, SumsError> {
    nofollow::directory(at, name).map_err(|error| match error {
        Errno::NOENT => SumsError::Refused(format!("{place} is missing")),
        Errno::NOTDIR | Errno::LOOP => SumsError::Refused(format!("{place} is not a folder")),
        _ => HomeError::io(path)(error.into()).into(),
    })
}

/// Opens the file `place` of a snapshot, which lies at `path`. Its length is not checked.
pub(super) fn open_file(
    at: impl AsFd,
    name: impl Arg,
    place: &str,
    path: &Path,
) -> Result<File, SumsError> {
    nofollow::file(at, name).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => SumsError::Refused(format!("{place} is missing")),
        // A link or socket, or something else that could be opened but is not a file.
        Some(Errno::LOOP | Errno::NXIO) | None => {
            SumsError::Refused(format!("{place} is not a file"))
        }
        Some(_) => HomeError::io(path)(error).into(),
    })
}

pub(super) fn is_listable(name: &str) -> bool {
    !name.contains(['\n', '\r', '\\'])
}

/// The entries of an open directory at `path`, sorted by name.
fn entries(directory: &OwnedFd, path: &Path) -> Result<Vec<(String, FileType)>, SumsError> {
    let failed = |error: Errno| HomeError::io(path)(error.into());
    let mut entries = Vec::new();
    for entry in nofollow::entries(directory).map_err(failed)? {
        let (name, kind) = entry.map_err(failed)?;
        let name = name.into_string().map_err(|error| {
            let name = error.into_cstring();
            let path = path.join(name.to_string_lossy().as_ref());
            SumsError::Refused(format!("{} is not a name in UTF-8", path.display()))
        })?;
        entries.push((name, kind));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

fn pass(from: &mut File, to: &mut impl io::Write) -> io::Result<(Digest, u64)> {
    let (mut hasher, mut length) = (Sha256::default(), 0);
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok((hasher.finalize().1, length));
        }
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        length += read as u64;
    }
}
