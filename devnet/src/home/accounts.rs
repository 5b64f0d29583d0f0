//! The accounts' secret keys, each in a file.

use super::{DevnetHome, HomeError, entries, read_if_there, remove_file};
use crate::topology::Name;
use cowboy_engine::primitives::SecretKey;
use cowboy_host::files::FileError;
use std::io::{self, Write as _};

impl DevnetHome {
    /// The names of the accounts that have a key here, sorted.
    pub fn accounts(&self) -> Result<Vec<Name>, HomeError> {
        let mut names = Vec::new();
        for entry in entries(&self.accounts_path())? {
            let file = entry.file_name();
            names.extend(
                file.to_str().and_then(|f| f.strip_suffix(".key")).and_then(|n| n.parse().ok()),
            );
        }
        names.sort();
        Ok(names)
    }

    /// Saves the key of a new account, whether or not a process runs the devnet. Returns false if
    /// an account of this name exists.
    pub fn add_account(&self, account: &Name, key: &SecretKey) -> Result<bool, HomeError> {
        self.check_folders()?;
        let (folder, path) = (self.accounts_path(), self.account_key_path(account));
        let fresh = tempfile::NamedTempFile::new_in(&folder).and_then(|mut file| {
            writeln!(file, "{}", hex::encode(key.to_bytes()))?;
            file.as_file().sync_all()?;
            Ok(file)
        });
        // The file appears with its whole contents, and never replaces another key.
        match fresh.map_err(HomeError::io(&folder))?.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(HomeError::io(&path)(error.error)),
        }
    }

    pub fn remove_account(&self, account: &Name) -> Result<(), HomeError> {
        self.check_folders()?;
        Ok(remove_file(&self.account_key_path(account))?)
    }

    /// The secret key of an account; `None` if no account has that name.
    pub fn account_key(&self, account: &Name) -> Result<Option<SecretKey>, HomeError> {
        let path = self.account_key_path(account);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        let mut bytes = [0; 32];
        Ok(hex::decode_to_slice(text.trim(), &mut bytes)
            .ok()
            .and_then(|()| SecretKey::from_bytes(&bytes).ok())
            .map(Some)
            .ok_or(FileError::Malformed {
                path,
                reason: "not a secret key: expected 64 hex digits on one line".to_owned(),
            })?)
    }
}
