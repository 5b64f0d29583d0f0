//! A node's folder as an archive that goes to its pod or comes from there.
//!
//! What a pod sends is not trusted: only folders and files come out of an archive, below one
//! folder, and at most [`MAX_BYTES`] of them.

use crate::topology::Name;
use cowboy_host::files::{create_private_dir, entries, remove_dir, remove_file};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Component, Path, PathBuf},
};
use tar::{Archive, Builder, EntryType};
use tokio::{
    process::{ChildStdin, ChildStdout},
    task::spawn_blocking,
};

/// The most that a node's folder may have, in bytes.
const MAX_BYTES: u64 = 8 << 30;
/// The most files and folders of it.
const MAX_ENTRIES: usize = 100_000;
/// A node's log, which is written here and not in its pod.
const LOG: &str = "log";

/// Replaces what a node's folder has, except for its log, by what a pod sends. An empty archive
/// changes nothing.
pub(super) async fn unpack(archive: ChildStdout, into: &Path, folder: &Name) -> Result<(), String> {
    // It ends when the process that sends it ends.
    let archive = File::from(archive.into_owned_fd().map_err(|error| error.to_string())?);
    let (into, folder) = (into.to_owned(), folder.clone());
    let unpacked = spawn_blocking(move || unpack_from(archive, &into, &folder)).await;
    unpacked.map_err(|error| error.to_string())?
}

/// Sends a node's folder to its pod.
pub(super) async fn pack(from: &Path, folder: &Name, archive: ChildStdin) -> Result<(), String> {
    let archive = File::from(archive.into_owned_fd().map_err(|error| error.to_string())?);
    let (from, folder) = (from.to_owned(), folder.clone());
    let packed = spawn_blocking(move || pack_into(archive, &from, &folder)).await;
    let packed = packed.map_err(|error| error.to_string())?;
    packed.map_err(|error| error.to_string())
}

fn unpack_from(archive: impl Read, into: &Path, folder: &Name) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let partial = into.join(format!(".{folder}.partial"));
    remove_dir(&partial).map_err(|error| told(&error))?;
    create_private_dir(&partial).map_err(|error| told(&error))?;
    let mut archive = Archive::new(archive);
    let (mut bytes, mut number) = (0, 0);
    for entry in archive.entries().map_err(|error| told(&error))? {
        let mut entry = entry.map_err(|error| told(&error))?;
        bytes += entry.size();
        number += 1;
        if bytes > MAX_BYTES || number > MAX_ENTRIES {
            return Err(format!("it has more than {MAX_BYTES} bytes or {MAX_ENTRIES} files"));
        }
        let path = entry.path().map_err(|error| told(&error))?.into_owned();
        let path = below(&path, folder).ok_or_else(|| format!("{} in it", path.display()))?;
        let path = partial.join(path);
        match entry.header().entry_type() {
            EntryType::Directory => create_private_dir(&path).map_err(|error| told(&error))?,
            EntryType::Regular => {
                let mut options = OpenOptions::new();
                let file = options.write(true).create_new(true).mode(0o600).open(&path);
                let copied = file.and_then(|mut file| io::copy(&mut entry, &mut file));
                copied.map_err(|error| format!("{}: {error}", path.display()))?;
            }
            // A lock that a killed node has left as a link, or what a job has made.
            _ => {}
        }
    }
    let own = into.join(folder.as_str());
    for new in entries(&partial).map_err(|error| told(&error))? {
        let place = own.join(new.file_name());
        if new.file_name() == LOG {
            continue;
        }
        create_private_dir(&own).map_err(|error| told(&error))?;
        match place.is_dir() {
            true => remove_dir(&place),
            false => remove_file(&place),
        }
        .map_err(|error| told(&error))?;
        fs::rename(new.path(), &place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    remove_dir(&partial).map_err(|error| told(&error))
}

/// The rest of a path in `folder`; `None` if it leads elsewhere.
fn below(path: &Path, folder: &Name) -> Option<PathBuf> {
    let rest = path.strip_prefix(folder.as_str()).ok()?;
    let plain = |part| matches!(part, Component::Normal(_));
    rest.components().all(plain).then(|| rest.to_owned())
}

fn pack_into(archive: impl Write, from: &Path, folder: &Name) -> io::Result<()> {
    let mut builder = Builder::new(archive);
    builder.follow_symlinks(false);
    builder.append_dir_all(folder.as_str(), from.join(folder.as_str()))?;
    builder.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use tar::Header;

    fn name() -> Name {
        "alpha".parse().unwrap()
    }

    #[test]
    fn a_folder_goes_there_and_back_and_its_log_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (there, here) = (folder.path().join("there"), folder.path().join("here"));
        fs::create_dir_all(there.join("alpha/data/deep")).unwrap();
        fs::write(there.join("alpha/data/deep/block"), "1").unwrap();
        fs::write(there.join("alpha/token"), "secret").unwrap();
        fs::write(there.join("alpha/log"), "of the pod").unwrap();
        symlink("/etc/passwd", there.join("alpha/link")).unwrap();
        fs::create_dir_all(here.join("alpha/data")).unwrap();
        fs::write(here.join("alpha/data/old"), "0").unwrap();
        fs::write(here.join("alpha/log"), "of this machine").unwrap();

        let mut archive = Vec::new();
        pack_into(&mut archive, &there, &name()).unwrap();
        unpack_from(&archive[..], &here, &name()).unwrap();
        let read = |path: &str| fs::read_to_string(here.join("alpha").join(path));
        assert_eq!(read("data/deep/block").unwrap(), "1");
        assert_eq!(read("log").unwrap(), "of this machine");
        assert!(read("data/old").is_err() && read("link").is_err());
        let mode = fs::metadata(here.join("alpha/token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let names: Vec<_> = fs::read_dir(&here).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["alpha"], "nothing else is left");

        // A pod without the folder sends nothing.
        unpack_from(&[][..], &here, &name()).unwrap();
        assert_eq!(read("data/deep/block").unwrap(), "1");
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        for path in ["alpha/../beta", "/etc/passwd", "beta/x", "alpha/./../../x", "../alpha/x"] {
            let folder = tempfile::tempdir().unwrap();
            let into = folder.path().join("nodes");
            fs::create_dir(&into).unwrap();
            let mut header = Header::new_gnu();
            header.set_size(3);
            header.set_entry_type(EntryType::Regular);
            // The library refuses such names.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            let mut archive = Builder::new(Vec::new());
            archive.append(&header, &b"bad"[..]).unwrap();
            let archive = archive.into_inner().unwrap();
            let refused = unpack_from(&archive[..], &into, &name()).unwrap_err();
            assert!(refused.contains("in it"), "{path}: {refused}");
            let entries = fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(entries, 1, "{path}");
        }
    }
}
