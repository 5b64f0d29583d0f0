//! A runner's key file: 64 hex digits on one line, readable only by its owner.

use cowboy_engine::primitives::SecretKey;
use cowboy_host::files::{FileError, write_private};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// The largest key file that is read, in bytes: 64 digits and some whitespace.
const LIMIT: u64 = 256;

/// Why a key file gives no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("key file {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("there is no key file {path}")]
    Missing { path: PathBuf },
    #[error("key file {path} is open to others: its mode is {mode:03o}, expected 600")]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{path} is not a key file: expected a secret key, 64 hex digits on one line")]
    Malformed { path: PathBuf },
}

impl KeyFileError {
    fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_owned(), source }
    }
}

/// Reads the key from an existing file.
pub fn read(path: &Path) -> Result<SecretKey, KeyFileError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(KeyFileError::Missing { path: path.to_owned() });
        }
        opened => opened.map_err(KeyFileError::io(path))?,
    };
    let mode = file.metadata().map_err(KeyFileError::io(path))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    let malformed = || KeyFileError::Malformed { path: path.to_owned() };
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).map_err(KeyFileError::io(path))?;
    let mut key = [0; 32];
    hex::decode_to_slice(bytes.trim_ascii(), &mut key).map_err(|_| malformed())?;
    SecretKey::from_bytes(&key).map_err(|_| malformed())
}

/// Reads the key from a file, or creates the file with a new key. The flag says whether it was
/// created.
pub fn read_or_make(path: &Path) -> Result<(SecretKey, bool), KeyFileError> {
    match read(path) {
        Err(KeyFileError::Missing { .. }) => make(path).map(|key| (key, true)),
        other => other.map(|key| (key, false)),
    }
}

/// A new random key.
pub fn random() -> SecretKey {
    loop {
        // Four in 2^128 of all 32-byte strings are not valid keys.
        if let Ok(key) = SecretKey::from_bytes(&rand::random::<[u8; 32]>()) {
            return key;
        }
    }
}

fn make(path: &Path) -> Result<SecretKey, KeyFileError> {
    let key = random();
    write(path, &key)?;
    Ok(key)
}

/// Writes a key to a new file.
pub fn write(path: &Path, key: &SecretKey) -> Result<(), KeyFileError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        writeln!(file, "{}", hex::encode(key.to_bytes()))?;
        file.sync_all()
    });
    written.map_err(KeyFileError::io(path))
}

/// Writes a key to a file, which may exist.
pub fn replace(path: &Path, key: &SecretKey) -> Result<(), FileError> {
    write_private(path, &format!("{}\n", hex::encode(key.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn a_key_file_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        assert!(matches!(read(&path), Err(KeyFileError::Missing { .. })));
        let (key, made) = read_or_make(&path).unwrap();
        assert!(made);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (again, made) = read_or_make(&path).unwrap();
        assert_eq!((again.address(), made), (key.address(), false));
    }

    #[test]
    fn what_is_no_key_or_open_to_others_is_refused_without_showing_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.key");
        let (_, _) = read_or_make(&path).unwrap();
        let secret = fs::read_to_string(&path).unwrap();
        for mode in [0o640, 0o604, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = read_or_make(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("{mode:o}")) && error.contains("600"), "{error}");
            assert!(!error.contains(secret.trim()), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for text in ["", "00", &"0".repeat(64), &"f".repeat(64), &format!("{}x", "1".repeat(63))] {
            fs::write(&path, text).unwrap();
            assert!(matches!(read(&path), Err(KeyFileError::Malformed { .. })), "{text}");
        }
    }
}
