//! Which containers a runner has made, on its disk, so that the next one can remove what a runner
//! that was killed has left.
//!
//! ```text
//! <runner's folder>/containers/NAME      the path of the engine's program
//! ```
//!
//! A file is there from before its container is made until it is removed. Names are random, so that
//! no other container is ever meant, whatever machine or folder the engine shares with others.

use super::engine::{self, AskError};
use crate::executor::command::Directories;
use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

/// How the name of a job's container begins; 32 hexadecimal digits follow.
const PREFIX: &str = "cowboyctl-";
/// The folder, in a runner's.
const FOLDER: &str = "containers";
/// The longest path of a program that is read, in bytes.
const MAX_PATH: u64 = 4 << 10;

/// A name that no other container has.
pub(super) fn new_name() -> String {
    format!("{PREFIX}{:032x}", rand::random::<u128>())
}

fn is_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The folder with the names, in that of a runner.
pub(super) fn path(runner: &Path) -> PathBuf {
    runner.join(FOLDER)
}

/// Notes that a container of this name may be there from now on.
pub(super) fn note(runner: &Path, name: &str, program: &Path) -> io::Result<()> {
    let folder = path(runner);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(folder.join(name))?;
    file.write_all(program.as_os_str().as_bytes())
}

/// Notes that the container is gone.
pub(super) fn forget(runner: &Path, name: &str) -> io::Result<()> {
    fs::remove_file(path(runner).join(name))
}

/// Removes the containers that are noted in a runner's folder, which no runner has, with the
/// processes that were at work on them; `jobs` has the directories of its jobs. Says whether
/// nothing is left: what cannot be removed stays noted, and the log tells why.
pub(in crate::lease::runner) async fn clear(runner: &Path, jobs: &Path) -> io::Result<bool> {
    let folder = path(runner);
    let names = match fs::read_dir(&folder) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if !names.is_empty() {
        // Or a client of the engine that goes on could make a container afterwards.
        let jobs = jobs.to_owned();
        tokio::task::spawn_blocking(move || Directories::kill_left(&jobs)).await?;
    }
    let (mut all, mut silent) = (true, false);
    for entry in names {
        let (name, path) = (entry.file_name(), entry.path());
        if !is_name(&name) || !entry.file_type()?.is_file() {
            tracing::warn!(path = %path.display(), "no container's name, left as it is");
            all = false;
            continue;
        }
        let name = name.to_string_lossy();
        let removed = match program(&path)? {
            // An engine that does not answer is asked once.
            _ if silent => Err(AskError::Silent),
            Some(program) => engine::remove(&program, &name, runner).await,
            // Its runner was killed while noting it: the container was never made.
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

/// The program that a note names.
fn program(note: &Path) -> io::Result<Option<PathBuf>> {
    let mut bytes = Vec::new();
    let file = OpenOptions::new().read(true).open(note)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_PATH), &mut bytes)?;
    let path = PathBuf::from(OsStr::from_bytes(&bytes));
    Ok(path.is_absolute().then_some(path))
}
