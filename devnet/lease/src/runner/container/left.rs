//! A record on disk of the containers that a runner has created, so that the next runner can remove
//! those of a killed one.
//!
//! ```text
//! <runner's folder>/containers/NAME      the path of the engine's program
//! ```
//!
//! A file exists from before its container is created until the container is removed. Names are
//! random, so that they never match another container, even if the engine is shared with other
//! machines or folders.

use super::engine::{self, AskError};
use cowboy_host::{files::if_there, process::Directories};
use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

/// Prefix of the name of a job's container; 32 hexadecimal digits follow.
const PREFIX: &str = "cowboyctl-";
const FOLDER: &str = "containers";
/// Longest path of a program, in bytes.
const MAX_PATH: u64 = 4 << 10;

pub(super) fn new_name() -> String {
    format!("{PREFIX}{:032x}", rand::random::<u128>())
}

fn is_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

pub(super) fn path(runner: &Path) -> PathBuf {
    runner.join(FOLDER)
}

/// Notes that a container with this name may exist from now on.
pub(super) fn note(runner: &Path, name: &str, program: &Path) -> io::Result<()> {
    let folder = path(runner);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(folder.join(name))?;
    file.write_all(program.as_os_str().as_bytes())
}

pub(super) fn forget(runner: &Path, name: &str) -> io::Result<()> {
    fs::remove_file(path(runner).join(name))
}

/// Removes the containers noted in the folder of a runner that no longer runs, after killing the
/// processes that work on them; `jobs` has the directories of its jobs. Returns whether nothing is
/// left: a container that cannot be removed stays noted, and the log says why.
pub(in crate::runner) async fn clear(runner: &Path, jobs: &Path) -> io::Result<bool> {
    let folder = path(runner);
    let Some(entries) = if_there(fs::read_dir(&folder))? else { return Ok(true) };
    let names = entries.collect::<Result<Vec<_>, _>>()?;
    if !names.is_empty() {
        // Otherwise a client of the engine that still runs could create a container afterwards.
        let jobs = jobs.to_owned();
        tokio::task::spawn_blocking(move || Directories::kill_left(&jobs)).await?;
    }
    let (mut all, mut silent) = (true, false);
    for entry in names {
        let (name, path) = (entry.file_name(), entry.path());
        if !is_name(&name) || !entry.file_type()?.is_file() {
            tracing::warn!(path = %path.display(), "not the name of a container, left as it is");
            all = false;
            continue;
        }
        let name = name.to_string_lossy();
        let removed = match program(&path)? {
            // An engine that did not answer is not asked again.
            _ if silent => Err(AskError::Silent),
            Some(program) => engine::remove(&program, &name, runner).await,
            // The runner was killed while noting it, so the container was never created.
            None => Ok(()),
        };
        match removed {
            Ok(()) => {
                tracing::info!(%name, "removed a container that a killed runner left");
                fs::remove_file(&path)?;
            }
            Err(error) => {
                tracing::warn!(
                    %name, %error,
                    "a container that a killed runner left cannot be removed, and is tried again \
                     when the next runner starts"
                );
                (all, silent) = (false, silent || matches!(error, AskError::Silent));
            }
        }
    }
    match all {
        true => fs::remove_dir(&folder).map(|()| true),
        false => Ok(false),
    }
}

fn program(note: &Path) -> io::Result<Option<PathBuf>> {
    let mut bytes = Vec::new();
    File::open(note)?.take(MAX_PATH).read_to_end(&mut bytes)?;
    let path = PathBuf::from(OsStr::from_bytes(&bytes));
    Ok(path.is_absolute().then_some(path))
}
