//! A node's memory limit as a cgroup of its own, where this process may make one.
//!
//! * With cgroup v1: below this process' own cgroup of the memory controller.
//! * With v2: in this process' own cgroup, or in the one that this is in, if that gives its
//!   children the memory controller. A cgroup of v2 that has processes gives them none, so this is
//!   usually the one around it, as a user's `app.slice`.
//!
//! The limits of the cgroup in which it is made hold for the node as before. Elsewhere the limit is
//! `RLIMIT_DATA`, and the log says why.
//!
//! A file in the node's folder has the path of its cgroup, so that one left by a killed devnet is
//! found.

use crate::topology::Size;
use rustix::process::Pid;
use std::{
    fmt, fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The file in a node's folder that names its cgroup.
const RECORD: &str = "cgroup";
/// How long the processes of a node that has ended may take to leave its cgroup, and how often to
/// check: the kernel does not tell.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);
/// How the names of all cgroups made here begin.
const OURS: &str = "cowboyctl-node-";

/// Why no cgroup can be made.
#[derive(Debug, thiserror::Error)]
enum CgroupError {
    #[error("this process is in no cgroup with a memory controller")]
    NoController,
    #[error("{} gives its children no memory controller", .0.display())]
    NotDelegated(PathBuf),
    /// A limit there would replace those above it.
    #[error("{} has no hierarchy", .0.display())]
    Flat(PathBuf),
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |error| CgroupError::Io { path, error }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    V1,
    V2,
}

/// A place in which cgroups with a memory limit may be made.
#[derive(Debug, PartialEq, Eq)]
struct CgroupBase {
    path: PathBuf,
    version: CgroupVersion,
}

/// A mounted hierarchy: the cgroup at its root, and where it is mounted.
#[derive(Debug, PartialEq, Eq)]
struct CgroupMount<'a> {
    root: &'a str,
    point: &'a str,
}

impl CgroupMount<'_> {
    /// The mount of the memory controller of v1, or of v2, in the text of `/proc/self/mountinfo`
    /// (proc_pid_mountinfo(5)).
    fn find(mounts: &str, version: CgroupVersion) -> Option<CgroupMount<'_>> {
        mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut after = after.split(' ');
            let (kind, options) = (after.next()?, after.nth(1)?);
            let fits = match version {
                CgroupVersion::V1 => {
                    kind == "cgroup" && options.split(',').any(|option| option == "memory")
                }
                CgroupVersion::V2 => kind == "cgroup2",
            };
            let mut before = before.split(' ').skip(3);
            fits.then_some(CgroupMount { root: before.next()?, point: before.next()? })
        })
    }

    /// Where the cgroup with this path is; `None` if it is outside of what is mounted.
    fn path(&self, cgroup: &str) -> Option<PathBuf> {
        let below = Path::new(cgroup).strip_prefix(self.root).ok()?;
        Some(Path::new(self.point).join(below))
    }
}

impl CgroupBase {
    fn of_this_process() -> Result<Self, CgroupError> {
        let read = |path: &str| fs::read_to_string(path).map_err(at(Path::new(path)));
        Self::find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
    }

    /// From a process' cgroups (cgroups(7), `/proc/PID/cgroup`) and mounts.
    fn find(cgroups: &str, mounts: &str) -> Result<Self, CgroupError> {
        let own = |version| {
            let cgroup = cgroups.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                let fits = match version {
                    CgroupVersion::V1 => controllers.split(',').any(|one| one == "memory"),
                    CgroupVersion::V2 => controllers.is_empty(),
                };
                fits.then_some(path)
            });
            CgroupMount::find(mounts, version)?.path(cgroup?)
        };
        match (own(CgroupVersion::V1), own(CgroupVersion::V2)) {
            (Some(path), _) => Self::v1(path),
            (None, Some(path)) => Self::v2(&path),
            (None, None) => Err(CgroupError::NoController),
        }
    }

    fn v1(path: PathBuf) -> Result<Self, CgroupError> {
        // Without a hierarchy the limits above would not hold. Newer kernels have nothing else.
        let flat = fs::read_to_string(path.join("memory.use_hierarchy"));
        match flat.is_ok_and(|text| text.trim() == "0") {
            true => Err(CgroupError::Flat(path)),
            false => Ok(Self { path, version: CgroupVersion::V1 }),
        }
    }

    fn v2(own: &Path) -> Result<Self, CgroupError> {
        let gives = |path: &Path| {
            let children = fs::read_to_string(path.join("cgroup.subtree_control"));
            children.is_ok_and(|text| text.split_whitespace().any(|one| one == "memory"))
        };
        let around = own.parent().into_iter();
        let path = std::iter::once(own).chain(around).find(|path| gives(path));
        let path = path.ok_or_else(|| CgroupError::NotDelegated(own.to_owned()))?;
        Ok(Self { path: path.to_owned(), version: CgroupVersion::V2 })
    }

    /// The directory of a node's cgroup: one name per node's folder.
    fn of(&self, folder: &Path) -> PathBuf {
        let id = cowboy_engine::primitives::keccak256(&[folder.as_os_str().as_encoded_bytes()]);
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        self.path.join(format!("{OURS}{}-{name}", hex::encode(&id.0[..6])))
    }
}

/// Limits the memory of a node's process, which has just been started, and of those that it starts.
/// `None`, with the reason in the log: this process may make no cgroup.
pub(super) fn limit(pid: Pid, folder: &Path, size: Size) -> Option<Cgroup> {
    let node = folder.file_name().unwrap_or_default().to_string_lossy();
    let made = CgroupBase::of_this_process();
    match made.and_then(|base| Cgroup::within(&base, pid, folder, size)) {
        Ok(cgroup) => {
            tracing::info!(%node, limit = %size, by = %cgroup, "its memory is limited");
            Some(cgroup)
        }
        Err(reason) => {
            tracing::info!(%node, limit = %size, by = "RLIMIT_DATA", %reason, "its memory is limited");
            None
        }
    }
}

/// A node's cgroup. It is removed when this is dropped, if the node's processes have ended.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    version: CgroupVersion,
    /// The node's folder.
    folder: PathBuf,
    size: Size,
    /// How many processes its limit had ended before.
    killed_before: u64,
}

impl Cgroup {
    fn within(base: &CgroupBase, pid: Pid, folder: &Path, size: Size) -> Result<Self, CgroupError> {
        let Size(bytes) = size;
        let path = base.of(folder);
        let record = folder.join(RECORD);
        // One that was left elsewhere is empty: the node's former process has ended.
        if let Some(other) = recorded(folder).filter(|other| *other != path) {
            let _ = remove(&other, folder);
        }
        fs::write(&record, path.as_os_str().as_encoded_bytes()).map_err(at(&record))?;
        match fs::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                let _ = fs::remove_file(&record);
                return Err(at(&path)(error));
            }
            _ => {}
        }
        let (version, folder) = (base.version, folder.to_owned());
        let mut cgroup = Self { path, version, folder, size, killed_before: 0 };
        let (limit, swap) = match version {
            CgroupVersion::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            CgroupVersion::V2 => ("memory.max", "memory.swap.max"),
        };
        cgroup.write(limit, &bytes.to_string())?;
        // There is no such file where swap is not counted.
        let no_swap = if version == CgroupVersion::V1 { bytes } else { 0 };
        if cgroup.path.join(swap).exists() {
            let _ = cgroup.write(swap, &no_swap.to_string());
        }
        cgroup.killed_before = cgroup.killed();
        cgroup.write("cgroup.procs", &pid.as_raw_nonzero().to_string())?;
        Ok(cgroup)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), CgroupError> {
        let path = self.path.join(file);
        fs::write(&path, text).map_err(at(&path))
    }

    /// Number of processes that its limit has ended, since it was made.
    fn killed(&self) -> u64 {
        let file = match self.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Whether its limit has ended a process of the node.
    pub(super) fn has_killed(&self) -> bool {
        self.killed() > self.killed_before
    }

    pub(super) const fn size(&self) -> Size {
        self.size
    }
}

impl fmt::Display for Cgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self.version {
            CgroupVersion::V1 => "v1",
            CgroupVersion::V2 => "v2",
        };
        write!(f, "cgroup {version} {}", self.path.display())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path, &self.folder) {
            tracing::debug!(cgroup = %self.path.display(), %error, "removed at the node's next start");
        }
    }
}

fn remove(path: &Path, folder: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(folder.join(RECORD)),
    }
}

/// The cgroup that a node's folder names. The folder may have come from elsewhere, so anything else
/// is no cgroup of it.
fn recorded(folder: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(fs::read_to_string(folder.join(RECORD)).ok()?);
    let made_here = path.file_name()?.to_string_lossy().starts_with(OURS);
    (made_here && path.join("cgroup.procs").exists()).then_some(path)
}

/// Removes the cgroup that a killed devnet has left. A process that has released its files may
/// still be in it for a moment.
pub(super) async fn remove_left(folder: &Path) {
    let Some(path) = recorded(folder) else { return };
    let gone = async {
        loop {
            match remove(&path, folder) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => sleep(LOOK).await,
                other => return other,
            }
        }
    };
    let busy = || Err(ErrorKind::ResourceBusy.into());
    if let Err(error) = timeout(END_TIMEOUT, gone).await.unwrap_or_else(|_| busy()) {
        tracing::warn!(cgroup = %path.display(), %error, "a cgroup is still there");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory
31 25 0:27 /inner /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
";

    #[test]
    fn the_place_of_a_process_is_found() {
        let path = |version, cgroup: &str| {
            CgroupMount::find(MOUNTS, version).and_then(|mount| mount.path(cgroup))
        };
        let memory = PathBuf::from("/sys/fs/cgroup/memory/a/b");
        assert_eq!(path(CgroupVersion::V1, "/a/b"), Some(memory));
        let unified = PathBuf::from("/sys/fs/cgroup/unified/a");
        assert_eq!(path(CgroupVersion::V2, "/inner/a"), Some(unified));
        assert_eq!(path(CgroupVersion::V2, "/outer"), None);
        let none = CgroupBase::find("4:memory:/a\n0::/inner\n", "");
        assert!(matches!(none, Err(CgroupError::NoController)), "{none:?}");
        let own = CgroupBase::find("5:cpu,memory:/a\n0::/inner\n", MOUNTS).unwrap();
        let path = PathBuf::from("/sys/fs/cgroup/memory/a");
        assert_eq!(own, CgroupBase { path, version: CgroupVersion::V1 });
    }

    #[test]
    fn a_place_without_a_delegated_controller_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("slice/own");
        fs::create_dir_all(&own).unwrap();
        let refused = CgroupBase::v2(&own);
        assert!(matches!(refused, Err(CgroupError::NotDelegated(_))), "{refused:?}");
        fs::write(own.join("../cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        let base = CgroupBase::v2(&own).unwrap();
        assert_eq!((base.path.as_path(), base.version), (own.parent().unwrap(), CgroupVersion::V2));
        fs::write(own.join("memory.use_hierarchy"), "0\n").unwrap();
        let flat = CgroupBase::v1(own.clone());
        assert!(matches!(flat, Err(CgroupError::Flat(_))), "{flat:?}");
        fs::write(own.join("memory.use_hierarchy"), "1\n").unwrap();
        CgroupBase::v1(own).unwrap();
    }

    /// On plain files, which the kernel's behave like.
    #[tokio::test]
    async fn a_cgroup_gets_its_limit_and_says_whether_it_has_killed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("nodes/alpha");
        fs::create_dir_all(&folder).unwrap();
        let base = CgroupBase { path: root.path().to_owned(), version: CgroupVersion::V2 };
        let path = base.of(&folder);
        assert!(path.file_name().unwrap().to_str().unwrap().ends_with("-alpha"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("memory.events"), "low 0\noom_kill 2\n").unwrap();
        fs::write(path.join("memory.swap.max"), "max").unwrap();
        let pid = Pid::from_raw(7).unwrap();
        let cgroup = Cgroup::within(&base, pid, &folder, Size(1_000)).unwrap();
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap();
        assert_eq!([read("memory.max"), read("memory.swap.max")], ["1000", "0"]);
        assert_eq!(read("cgroup.procs"), "7");
        assert_eq!(fs::read_to_string(folder.join(RECORD)).unwrap(), path.to_str().unwrap());
        assert!(!cgroup.has_killed());
        fs::write(path.join("memory.events"), "low 0\noom_kill 3\n").unwrap();
        assert!(cgroup.has_killed());
        // It cannot be removed here, because the kernel's files are no obstacle and these are.
        drop(cgroup);
        assert!(folder.join(RECORD).exists());
        for entry in fs::read_dir(&path).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        fs::write(path.join("cgroup.procs"), "").unwrap();
        remove_left(&folder).await;
        assert!(path.exists() && folder.join(RECORD).exists());
        // A record that leads elsewhere removes nothing.
        fs::create_dir(root.path().join("other")).unwrap();
        fs::write(folder.join(RECORD), root.path().join("other").to_str().unwrap()).unwrap();
        remove_left(&folder).await;
        assert!(root.path().join("other").exists());
    }
}
