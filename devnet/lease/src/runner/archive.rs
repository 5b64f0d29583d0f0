//! Folders of a job as one stream: a tar archive, compressed with Zstandard.
//!
//! Names in it begin with `work/` or `home/`, the folders of every job. Archives are untrusted:
//! everything but files, folders and links to places within these two is refused, and so is more
//! than [`LIMITS`].
//!
//! An entry has a POSIX extended header with its name, which may be long, and its modification time
//! in nanoseconds, which build tools use to detect changes.

use cowboy_host::files::if_there;
use rustix::fs::OFlags;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, DirBuilder, FileTimes, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tar::{Archive, Builder, Entry, EntryType, Header, PaxExtensions};

/// Folder of a job's files, in its directory.
pub(super) const WORK: &str = "work";
/// Folder of the job's own home, in its directory.
pub(super) const HOME: &str = "home";

pub(super) const LIMITS: Limits = Limits { entries: 100_000, bytes: 4 << 30 };

/// Longest extended header, in bytes: a name and a link's target, each as long as Linux allows.
const MAX_HEADER: u64 = 16 << 10;
/// Maximum overhead of an entry, in bytes: two header blocks, the text of the extended header, and
/// the padding of two blocks.
const ENTRY: u64 = MAX_HEADER + 4 * 512;
/// Compression level: Zstandard's default.
const LEVEL: i32 = 3;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Number of files, folders and links.
    pub(super) entries: usize,
    /// Size of all files together, in bytes.
    pub(super) bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("more than {0} files and folders")]
    Entries(usize),
    #[error("more than {0} bytes")]
    Bytes(u64),
    #[error("{name}: {reason}")]
    Entry { name: String, reason: &'static str },
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) entries: usize,
    /// Number of entries left out: links out of the job's folders, sockets, pipes, devices.
    pub(super) left_out: usize,
}

/// Packs the files and folders at `paths` in `job` that exist.
pub(super) fn pack(
    job: &Path,
    paths: &[PathBuf],
    limits: Limits,
    out: impl Write,
) -> Result<Packed, ArchiveError> {
    let mut builder = Builder::new(zstd::Encoder::new(out, LEVEL)?);
    let mut packed = Packed { entries: 0, left_out: 0 };
    let mut bytes = limits.bytes;
    let mut left: Vec<PathBuf> = paths.iter().rev().cloned().collect();
    while let Some(path) = left.pop() {
        let from = job.join(&path);
        let Some(meta) = if_there(fs::symlink_metadata(&from))? else { continue };
        let mut header = Header::new_ustar();
        header.set_mode(meta.mode() & 0o777);
        header.set_mtime(u64::try_from(meta.mtime()).unwrap_or(0));
        header.set_size(0);
        let mut link = None;
        if meta.is_dir() {
            header.set_entry_type(EntryType::Directory);
            let mut below = Vec::new();
            for entry in fs::read_dir(&from)? {
                below.push(path.join(entry?.file_name()));
                if left.len() + below.len() > limits.entries {
                    return Err(ArchiveError::Entries(limits.entries));
                }
            }
            below.sort_unstable_by(|a, b| b.cmp(a));
            left.extend(below);
        } else if meta.is_file() {
            header.set_entry_type(EntryType::Regular);
            bytes = bytes.checked_sub(meta.len()).ok_or(ArchiveError::Bytes(limits.bytes))?;
            header.set_size(meta.len());
        } else if meta.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            let to = fs::read_link(&from)?;
            if stays(&path, &to).is_err() {
                packed.left_out += 1;
                continue;
            }
            link = Some(to);
        } else {
            packed.left_out += 1;
            continue;
        }
        packed.entries += 1;
        if packed.entries > limits.entries {
            return Err(ArchiveError::Entries(limits.entries));
        }
        let time = format!("{}.{:09}", meta.mtime().max(0), meta.mtime_nsec());
        let mut records = vec![("path", path.as_os_str().as_bytes()), ("mtime", time.as_bytes())];
        records.extend(link.as_ref().map(|to| ("linkpath", to.as_os_str().as_bytes())));
        builder.append_pax_extensions(records)?;
        header.set_cksum();
        if meta.is_file() {
            // The file may have been replaced by something else: opening a pipe would wait for its
            // other end.
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&from)?;
            // A file that became shorter would shift the entries after it.
            let file = file.take(meta.len());
            builder.append(&header, Exactly { file, left: meta.len() })?;
        } else {
            builder.append(&header, io::empty())?;
        }
    }
    builder.into_inner()?.finish()?;
    Ok(packed)
}

struct Exactly<R> {
    file: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.left -= length as u64;
        if length == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter"));
        }
        Ok(length)
    }
}

#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) entries: usize,
    /// Modes and times of the folders, to be set once the folders are at their place.
    folders: BTreeMap<PathBuf, (u32, SystemTime)>,
}

impl Unpacked {
    /// Gives the folders below `top` that exist their modes and times. This comes after moving
    /// them, because a mode may forbid that.
    pub(super) fn settle(&self, top: &Path) {
        let flags = (OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32;
        // The deepest first, because a mode may hide the folders below.
        for (path, (mode, time)) in self.folders.iter().rev() {
            let mut options = OpenOptions::new();
            // If this fails, something else is there, or another user's folder.
            let Ok(folder) = options.read(true).custom_flags(flags).open(top.join(path)) else {
                continue;
            };
            let _ = folder.set_times(FileTimes::new().set_modified(*time));
            let _ = folder.set_permissions(fs::Permissions::from_mode(*mode));
        }
    }
}

/// Unpacks into the empty `folder`. After an error, parts of the archive may remain there.
pub(super) fn unpack(
    from: impl Read,
    limits: Limits,
    folder: &Path,
) -> Result<Unpacked, ArchiveError> {
    let mut archive = Archive::new(Bounded::new(zstd::Decoder::new(from)?, limits));
    let mut unpacking = Unpacking {
        folder,
        limits,
        bytes: limits.bytes,
        entries: 0,
        made: 0,
        folders: BTreeSet::new(),
    };
    let mut folders = BTreeMap::new();
    let mut extended = Extended::default();
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if entry.header().entry_type() == EntryType::XHeader {
            extended = Extended::read(&mut entry)?;
            continue;
        }
        let given = std::mem::take(&mut extended);
        unpacking.entries += 1;
        let name = given.path.unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let path = PathBuf::from(OsStr::from_bytes(&name));
        let refused = |reason| ArchiveError::Entry { name: path.display().to_string(), reason };
        if !is_inside(&path) {
            return Err(refused("not below work/ or home/"));
        }
        let mode = entry.header().mode()? & 0o777;
        let time = given.time.unwrap_or_else(|| after(entry.header().mtime().unwrap_or(0), 0));
        match entry.header().entry_type() {
            EntryType::Directory => {
                unpacking.make_folder(&path)?;
                folders.insert(path, (mode, time));
            }
            EntryType::Regular => {
                unpacking.write(&path, &mut entry, mode, time)?;
            }
            EntryType::Symlink => {
                let to = given
                    .link
                    .or_else(|| entry.header().link_name_bytes().map(|to| to.into_owned()))
                    .unwrap_or_default();
                let to = Path::new(OsStr::from_bytes(&to));
                stays(&path, to).map_err(refused)?;
                unpacking.make_parents(&path)?;
                unpacking.count()?;
                std::os::unix::fs::symlink(to, folder.join(&path))?;
            }
            _ => return Err(refused("neither a file nor a folder nor a symbolic link")),
        }
    }
    Ok(Unpacked { entries: unpacking.entries, folders })
}

/// A reader that fails once an archive is longer than its limits allow: a few compressed bytes can
/// expand to any number, even outside of entries.
struct Bounded<R> {
    archive: R,
    left: u64,
    limits: Limits,
}

impl<R> Bounded<R> {
    fn new(archive: R, limits: Limits) -> Self {
        // Two more, for the end of the archive.
        let entries = (limits.entries as u64).saturating_add(2);
        let left = limits.bytes.saturating_add(entries.saturating_mul(ENTRY));
        Self { archive, left, limits }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.archive.read(buffer)?;
        let Some(left) = self.left.checked_sub(length as u64) else {
            let Limits { entries, bytes } = self.limits;
            let what = format!("longer than {entries} files and folders with {bytes} bytes can be");
            return Err(io::Error::other(what));
        };
        self.left = left;
        Ok(length)
    }
}

#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    time: Option<SystemTime>,
}

impl Extended {
    fn read(entry: &mut Entry<'_, impl Read>) -> Result<Self, ArchiveError> {
        let broken = |reason| ArchiveError::Entry { name: "extended header".to_owned(), reason };
        if entry.header().entry_size()? > MAX_HEADER {
            return Err(broken("it is too long"));
        }
        let mut text = Vec::new();
        entry.take(MAX_HEADER).read_to_end(&mut text)?;
        let mut extended = Self::default();
        for record in PaxExtensions::new(&text) {
            let record = record?;
            let value = record.value_bytes();
            match record.key_bytes() {
                b"path" => extended.path = Some(value.to_vec()),
                b"linkpath" => extended.link = Some(value.to_vec()),
                b"mtime" => extended.time = time(value),
                // It would override the length in the entry's own header.
                b"size" => return Err(broken("it has a size")),
                _ => {}
            }
        }
        Ok(extended)
    }
}

/// A time in seconds, of which up to nine digits after the point count.
fn time(text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, rest) = text.split_once('.').unwrap_or((text, "0"));
    let nanos: String = rest.chars().chain("000000000".chars()).take(9).collect();
    Some(after(seconds.parse().ok()?, nanos.parse().ok().filter(|nanos| *nanos < 1_000_000_000)?))
}

/// The time at this distance from the epoch; the epoch itself if the system cannot represent it.
fn after(seconds: u64, nanos: u32) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanos)).unwrap_or(UNIX_EPOCH)
}

struct Unpacking<'a> {
    folder: &'a Path,
    limits: Limits,
    /// Bytes of files that may still come.
    bytes: u64,
    entries: usize,
    /// Number of created entries, including folders that no entry names.
    made: usize,
    /// The folders created here. Files are only written into these, so that no link is followed.
    folders: BTreeSet<PathBuf>,
}

impl Unpacking<'_> {
    fn count(&mut self) -> Result<(), ArchiveError> {
        self.made += 1;
        match self.made > self.limits.entries {
            true => Err(ArchiveError::Entries(self.limits.entries)),
            false => Ok(()),
        }
    }

    fn make_folder(&mut self, path: &Path) -> Result<(), ArchiveError> {
        let folders: Vec<_> = path.ancestors().collect();
        for folder in folders.into_iter().rev() {
            if !folder.as_os_str().is_empty() && !self.folders.contains(folder) {
                self.count()?;
                DirBuilder::new().mode(0o700).create(self.folder.join(folder))?;
                self.folders.insert(folder.to_owned());
            }
        }
        Ok(())
    }

    fn make_parents(&mut self, path: &Path) -> Result<(), ArchiveError> {
        path.parent().map_or(Ok(()), |parent| self.make_folder(parent))
    }

    fn write(
        &mut self,
        path: &Path,
        entry: &mut Entry<'_, impl Read>,
        mode: u32,
        time: SystemTime,
    ) -> Result<(), ArchiveError> {
        self.make_parents(path)?;
        self.count()?;
        let size = entry.header().entry_size()?;
        let left = self.bytes.checked_sub(size);
        self.bytes = left.ok_or(ArchiveError::Bytes(self.limits.bytes))?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(self.folder.join(path))?;
        if io::copy(entry, &mut file)? != size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        file.set_times(FileTimes::new().set_modified(time))?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        Ok(())
    }
}

/// Whether a path is `work`, `home` or below, judging only by its parts.
fn is_inside(path: &Path) -> bool {
    let mut parts = path.components();
    let first = parts.next();
    let inside = [WORK, HOME].iter().any(|name| first == Some(Component::Normal(name.as_ref())));
    inside && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Checks that the target of a link at `path`, which is inside, is inside too. It may only go up at
/// its beginning: after a name, which may be a link, `..` could lead anywhere.
fn stays(path: &Path, to: &Path) -> Result<(), &'static str> {
    let leads_out = "a link that leads out";
    if to.as_os_str().is_empty() {
        return Err("a link that leads nowhere");
    }
    let mut at: Vec<_> = path.parent().into_iter().flat_map(Path::components).collect();
    let mut down = false;
    for part in to.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if !down => {
                at.pop().ok_or(leads_out)?;
            }
            Component::Normal(_) => {
                down = true;
                at.push(part);
            }
            _ => return Err(leads_out),
        }
    }
    match is_inside(&at.iter().collect::<PathBuf>()) {
        true => Ok(()),
        false => Err(leads_out),
    }
}

#[cfg(test)]
mod tests;
