//! Reads the format of a validator's file without opening it as a database, so that the check
//! changes nothing and waits for no lock.

use super::schema;
use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// The format that this program reads and writes.
pub const FORMAT: u32 = schema::FORMAT as u32;

/// The first bytes of an SQLite file, and the offset of the format (`user_version`) in its header.
/// <https://www.sqlite.org/fileformat2.html#the_database_header>
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
const FORMAT_AT: usize = 60;

/// The format of the file; `None` when the file is empty or its format is only in its log.
pub fn stored_format(path: &Path) -> io::Result<Option<u32>> {
    let mut header = Vec::new();
    File::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(None);
    }
    let format = header.get(FORMAT_AT..FORMAT_AT + 4).and_then(|bytes| bytes.try_into().ok());
    match format.map(u32::from_be_bytes) {
        Some(format) if header.starts_with(MAGIC) => Ok((format != 0).then_some(format)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is not an SQLite file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn the_format_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        drop(super::super::ValidatorStore::open(&path, 7).unwrap());
        assert_eq!(stored_format(&path).unwrap(), Some(FORMAT));
        Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
        assert_eq!(stored_format(&path).unwrap(), Some(99));
        std::fs::write(&path, "").unwrap();
        assert_eq!(stored_format(&path).unwrap(), None);
        std::fs::write(&path, "text").unwrap();
        assert_eq!(stored_format(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
