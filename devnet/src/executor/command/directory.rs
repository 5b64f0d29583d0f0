//! The directories that jobs work in: fresh, private, and removed with all that is in them.
//!
//! Only a real directory named `cowboy-job-…` is ever removed. Everything below one is reached from
//! an open directory, by a name that no link is followed for: a job may put a link to anywhere in
//! the place of anything it may write to, its own directory included.
//!
//! A directory that cannot be removed stays: a container left files of another user in it, or a job
//! mounted something there. The log names it once, and the next job has a directory of its own.

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

/// How the name of a job's directory begins.
const PREFIX: &str = "cowboy-job-";

/// How many names of directories are held at a time while a tree is removed.
const BATCH: usize = 1024;

/// How many directories that stay are remembered, so that the log names each once.
const MAX_TOLD: usize = 1024;

/// Where the directories of jobs are made: among the system's temporary files, unless they have a
/// folder of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directories {
    folder: Option<Arc<Path>>,
    private: Option<Private>,
}

impl Directories {
    /// In `folder`, a real directory that no other runner uses. Directories of jobs that are there
    /// were left by a runner that was killed: their processes are killed too, and they are removed.
    /// Anything else is left, with a line in the log, and so is one that cannot be removed.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        refuse_other_than_directory(folder)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let opened = nofollow::directory(CWD, folder)?;
        // The same whichever way leads there: processes are known by it.
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

    /// The same, for commands that are kept out of `folder` but for their own directories, where
    /// the system can do that.
    pub(crate) fn keeping_out_of(self, folder: &Path) -> io::Result<Self> {
        Ok(Self { private: Private::new(folder)?, ..self })
    }

    /// Kills the processes that a killed runner left whose jobs' directories are in `folder`.
    pub(crate) fn kill_left(folder: &Path) {
        // An error: there is no such folder.
        if let Ok(folder) = fs::canonicalize(folder) {
            tree::kill_left(|directory| directory.starts_with(&folder));
        }
    }

    /// What commands are kept out of.
    pub(super) fn private(&self) -> Option<&Private> {
        self.private.as_ref()
    }
}

/// A job's directory, removed with all that is in it.
pub(crate) struct Directory(Option<TempDir>);

impl Directory {
    /// An empty one, which only this user can look into.
    pub(crate) fn new(directories: &Directories) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
        let made = match &directories.folder {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        };
        made.map(|made| Self(Some(made)))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
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

/// Refuses a path that something other than a directory has, a link to one included.
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

/// Removes a job's directory; `path` is where it is, for the log.
fn remove(parent: &OwnedFd, name: &CStr, path: &Path) {
    if let Err(error) = remove_tree(parent, name) {
        tell_of(path, error);
    }
}

/// Names a directory that stays, the first time.
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

/// Removes what has this name, with all that is in it.
///
/// A job can nest directories deeper than there are file descriptors or bytes of stack. So each
/// directory's own directories are moved up to the top before it is removed, and two are open at a
/// time.
fn remove_tree(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // A directory, as Linux says it and as POSIX does.
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
                    // Its own permissions count when it changes its parent.
                    drop(enter(&entered, &name)?);
                    move_up(&entered, &name, &top, &mut numbers)?;
                }
            }
            rustix::fs::unlinkat(&top, &directory, AtFlags::REMOVEDIR)?;
        }
    }
}

/// Moves a directory to the top, under a name that is free there.
fn move_up(
    from: &OwnedFd,
    name: &CStr,
    top: &OwnedFd,
    numbers: &mut impl Iterator<Item = u64>,
) -> rustix::io::Result<()> {
    for number in numbers {
        let free = format!(".removed-{number}");
        // An empty directory of that name is replaced, which is as good.
        match rustix::fs::renameat(from, name, top, &*free) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            done => return done,
        }
    }
    unreachable!("there are more numbers than names")
}

/// Removes everything in a directory but its directories, and names some of those; none: it is
/// empty.
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

/// Opens a directory, made readable and writable if the job took that away.
fn enter(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let all = Mode::RWXU;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::OFlags;

        // By its own name the permissions of what a link names would change, and a directory that
        // may not be read can be opened as a path only.
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

    /// A folder with something in it that must not be touched.
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
        // More than a process may have open, and a name that the removal would choose.
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
