//! The directories of jobs: fresh, private, and removed with all their contents.
//!
//! Only real directories named `cowboy-job-…` are ever removed. Everything below one is reached
//! from an open directory, by a name that is opened without following links. A job may replace
//! anything that it can write to, including its own directory, by a link to anywhere.
//!
//! A directory that cannot be removed stays, for example because a container left another user's
//! files in it, or because a job mounted something there. The log names it once, and the next job
//! gets another directory.

use super::{private::Private, tree};
use crate::nofollow;
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Mode},
    io::Errno,
};
use std::{
    ffi::{CStr, CString, OsStr},
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tempfile::TempDir;

const PREFIX: &str = "cowboy-job-";

/// Maximum number of directory names held at a time while a tree is removed.
const BATCH: usize = 1024;

/// Maximum number of remaining directories that are remembered, so that the log names each once.
const MAX_TOLD: usize = 1024;

/// The parent of the job directories: the system's temporary directory, or a separate folder.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    folder: Option<Arc<Path>>,
    private: Option<Private>,
}

impl Directories {
    /// Uses `folder`, a real directory that no other runner uses. Job directories in it were left
    /// by a killed runner: their processes are killed and the directories are removed. Other
    /// entries, and directories that cannot be removed, stay and are logged.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        refuse_other_than_directory(folder)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let opened = nofollow::directory(CWD, folder)?;
        // The canonical path, because processes are found by it.
        let folder = fs::canonicalize(folder)?;
        tree::kill_left(|directory| directory.starts_with(&folder));
        for entry in nofollow::entries(&opened)? {
            let (name, kind) = entry?;
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            if kind.is_dir() && name.to_bytes().starts_with(PREFIX.as_bytes()) {
                tracing::info!(path = %path.display(), "removing a killed runner's job directory");
                remove(&opened, &name, &path);
            } else {
                tracing::warn!(path = %path.display(), "not a job directory, left as it is");
            }
        }
        Ok(Self { folder: Some(folder.into()), private: None })
    }

    /// The same directories, with commands kept out of `folder` except for their own directories,
    /// if the system supports that.
    pub fn keeping_out_of(self, folder: &Path) -> io::Result<Self> {
        Ok(Self { private: Private::new(folder)?, ..self })
    }

    /// Kills the processes left by a killed runner whose job directories are in `folder`.
    pub fn kill_left(folder: &Path) {
        // An error means that there is no such folder.
        if let Ok(folder) = fs::canonicalize(folder) {
            tree::kill_left(|directory| directory.starts_with(&folder));
        }
    }

    pub fn private(&self) -> Option<&Private> {
        self.private.as_ref()
    }
}

/// A job's directory, removed with all its contents when dropped.
pub struct Directory(Option<TempDir>);

impl Directory {
    /// Creates an empty directory that only this user can access.
    pub fn new(directories: &Directories) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
        let made = match &directories.folder {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        };
        made.map(|made| Self(Some(made)))
    }

    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("there until it is dropped").path()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let Some(path) = self.0.take().map(TempDir::keep) else { return };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let name = CString::new(name.as_bytes()).expect("it was made with this name");
        match nofollow::directory(CWD, parent) {
            Ok(parent) => remove(&parent, &name, &path),
            Err(error) => tell_of(&path, error),
        }
    }
}

/// Refuses a path that exists and is not a directory. A link to a directory is refused too.
fn refuse_other_than_directory(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "not a real directory: job directories are only made and removed in one; move it away",
        )),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `path` is the directory's path for the log.
fn remove(parent: &OwnedFd, name: &CStr, path: &Path) {
    if let Err(error) = remove_tree(parent, name) {
        tell_of(path, error);
    }
}

/// Logs a directory that stays, the first time.
fn tell_of(path: &Path, error: Errno) {
    static TOLD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.iter().any(|other| other == path) {
        return;
    }
    if told.len() < MAX_TOLD {
        told.push(path.to_owned());
    }
    tracing::warn!(
        path = %path.display(), %error,
        "a job's directory cannot be removed and is left behind: unmount what is mounted in it, and \
         remove it by hand, as root if its files are another user's"
    );
}

/// Removes the entry of this name with all its contents.
///
/// A job can nest directories deeper than there are file descriptors or bytes of stack. So the
/// subdirectories of a directory are moved to the top before it is removed, and only two
/// directories are open at a time.
fn remove_tree(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // A directory, reported as by Linux or as by POSIX.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let top = enter(parent, name)?;
    let mut numbers = 0_u64..;
    loop {
        let directories = remove_files(&top)?;
        if directories.is_empty() {
            return rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
        for directory in directories {
            let entered = enter(&top, &directory)?;
            loop {
                let below = remove_files(&entered)?;
                if below.is_empty() {
                    break;
                }
                for name in below {
                    // Changing a directory's parent requires permissions on the directory itself.
                    drop(enter(&entered, &name)?);
                    move_up(&entered, &name, &top, &mut numbers)?;
                }
            }
            rustix::fs::unlinkat(&top, &directory, AtFlags::REMOVEDIR)?;
        }
    }
}

fn move_up(
    from: &OwnedFd,
    name: &CStr,
    top: &OwnedFd,
    numbers: &mut impl Iterator<Item = u64>,
) -> rustix::io::Result<()> {
    for number in numbers {
        let free = format!(".removed-{number}");
        // An empty directory of that name is replaced, which is fine.
        match rustix::fs::renameat(from, name, top, &*free) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            done => return done,
        }
    }
    unreachable!("there are more numbers than names")
}

/// Removes everything in a directory except subdirectories, and returns the names of some of those;
/// empty once all are gone.
fn remove_files(directory: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut directories = Vec::new();
    for entry in nofollow::entries(directory)? {
        let (name, kind) = entry?;
        if kind.is_dir() {
            directories.push(name);
            if directories.len() == BATCH {
                break;
            }
        } else {
            match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(directories)
}

/// Opens a directory and makes it readable and writable if the job removed those permissions.
fn enter(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let all = Mode::RWXU;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::OFlags;

        // Changing permissions by name would follow a link, and an unreadable directory can only be
        // opened as a path.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let number = rustix::fd::AsRawFd::as_raw_fd(&found);
        rustix::fs::chmod(format!("/proc/self/fd/{number}"), all)?;
        nofollow::directory(&found, c".")
    }
    #[cfg(not(target_os = "linux"))]
    {
        rustix::fs::chmodat(parent, name, all, AtFlags::SYMLINK_NOFOLLOW)?;
        nofollow::directory(parent, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Photos(TempDir);

    impl Photos {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("summer")).unwrap();
            fs::set_permissions(folder.path().join("summer"), Permissions::from_mode(0o500))
                .unwrap();
            fs::write(folder.path().join("winter.jpg"), "snow").unwrap();
            Self(folder)
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        #[track_caller]
        fn assert_untouched(&self) {
            let mode = fs::metadata(self.path().join("summer")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o500);
            assert_eq!(fs::read_to_string(self.path().join("winter.jpg")).unwrap(), "snow");
        }
    }

    #[test]
    fn a_linked_folder_is_refused() {
        let (home, photos) = (tempfile::tempdir().unwrap(), Photos::new());
        let jobs = home.path().join("jobs");
        symlink(photos.path(), &jobs).unwrap();
        let error = Directories::in_folder(&jobs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        photos.assert_untouched();
        assert!(jobs.is_symlink());
    }

    #[test]
    fn only_job_directories_are_removed() {
        let (home, photos) = (tempfile::tempdir().unwrap(), Photos::new());
        let jobs = home.path().join("jobs");
        fs::create_dir_all(jobs.join("cowboy-job-left/below")).unwrap();
        symlink(photos.path(), jobs.join("cowboy-job-left/below/photos")).unwrap();
        symlink(photos.path(), jobs.join("cowboy-job-photos")).unwrap();
        fs::create_dir(jobs.join("mine")).unwrap();
        fs::write(jobs.join("cowboy-job-file"), "mine").unwrap();
        Directories::in_folder(&jobs).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&jobs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["cowboy-job-file", "cowboy-job-photos", "mine"]);
        photos.assert_untouched();
    }

    #[test]
    fn a_job_cannot_have_another_directory_removed() {
        let photos = Photos::new();
        let directory = Directory::new(&Directories::default()).unwrap();
        let path = directory.path().to_owned();
        fs::remove_dir(&path).unwrap();
        symlink(photos.path(), &path).unwrap();
        drop(directory);
        assert!(!path.is_symlink());
        photos.assert_untouched();

        let directory = Directory::new(&Directories::default()).unwrap();
        let path = directory.path().to_owned();
        let closed = path.join("closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        symlink(photos.path(), closed.join("photos")).unwrap();
        for folder in [closed.join("below"), closed, path.clone()] {
            fs::set_permissions(folder, Permissions::from_mode(0o000)).unwrap();
        }
        drop(directory);
        assert!(!path.exists());
        photos.assert_untouched();
    }

    #[test]
    fn deeply_nested_directories_are_removed() {
        let directory = Directory::new(&Directories::default()).unwrap();
        let path = directory.path().to_owned();
        let mut inner = nofollow::directory(CWD, &path).unwrap();
        // More than the limit of open files, and with names that the removal would choose.
        for depth in 0..1100 {
            let name = format!(".removed-{}", depth % 3);
            rustix::fs::mkdirat(&inner, &*name, Mode::RWXU).unwrap();
            inner = nofollow::directory(&inner, &*name).unwrap();
        }
        drop(inner);
        drop(directory);
        assert!(!path.exists());
    }
}
