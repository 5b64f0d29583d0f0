//! Builds the component from the SDK, as each devnet host does once.
//!
//! Python comes from the user; the packages come from wherever the user's pip takes them, and are
//! checked against the hashes in `requirements.txt`. Two builds of the same inputs differ in
//! bytes and in fuel: nodes of one chain copy one component.

use crate::artifact::{self, ArtifactError};
use crate::guest::{FILES, REQUIREMENTS, WORLD};
use std::{
    ffi::OsStr,
    fmt, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The oldest Python that the SDK runs on.
const OLDEST: (u32, u32) = (3, 11);

/// Lines of a failed command's output that are reported.
const LAST_LINES: usize = 20;

/// Time between two looks at a running command.
const LOOK: Duration = Duration::from_millis(20);

/// A step of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Python,
    Environment,
    Packages,
    Component,
    Compile,
}

impl Step {
    /// The longest time that a step may take: several times what a slow computer needs.
    const fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Python => 20,
            Self::Environment => 120,
            // A download.
            Self::Packages => 900,
            Self::Component | Self::Compile => 600,
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "looking at Python",
            Self::Environment => "making an environment for packages",
            Self::Packages => "installing the SDK and the compiler of components",
            Self::Component => "building the component",
            Self::Compile => "compiling the component to machine code",
        })
    }
}

/// The reason why a build failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("{program} cannot be started: {error}")]
    NotStarted { program: String, error: io::Error },
    #[error("{program} is Python {got}, and the SDK needs {}.{} or later", OLDEST.0, OLDEST.1)]
    OldPython { program: String, got: String },
    #[error("{step}: failed ({status})\n{output}")]
    Failed { step: Step, status: String, output: String },
    #[error("{step}: not done after {} s\n{output}", .step.timeout().as_secs())]
    TooSlow { step: Step, output: String },
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

/// Builds an artifact into a folder of `cache` and returns that folder. `python` is a program,
/// such as `python3`; `progress` is told each step before it begins.
///
/// Everything is made in a temporary folder of `cache`, which is deleted in the end.
pub fn build(
    python: &OsStr,
    cache: &Path,
    mut progress: impl FnMut(Step),
) -> Result<PathBuf, BuildError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |error| BuildError::File { path, error }
    };
    // Commands run in another folder.
    let cache = &std::path::absolute(cache).map_err(file(cache))?;
    let python = &match Path::new(python).components().count() {
        1 => PathBuf::from(python),
        _ => std::path::absolute(python).map_err(file(Path::new(python)))?,
    };
    fs::create_dir_all(cache).map_err(file(cache))?;
    let folder =
        tempfile::Builder::new().prefix("build-").tempdir_in(cache).map_err(file(cache))?;
    let top = folder.path();

    progress(Step::Python);
    check_version(python.as_os_str(), top)?;

    progress(Step::Environment);
    let environment = top.join("environment");
    run(Step::Environment, top, Command::new(python).args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");

    progress(Step::Packages);
    let requirements = top.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).map_err(file(&requirements))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--require-hashes", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--no-input", "--disable-pip-version-check", "--no-compile", "-r"])
        .arg(&requirements);
    run(Step::Packages, top, &mut pip)?;

    progress(Step::Component);
    let (guest, world, sdk) = (top.join("guest"), top.join("wit"), top.join("sdk"));
    for folder in [&guest, &world, &sdk] {
        fs::create_dir(folder).map_err(file(folder))?;
    }
    for (name, text) in FILES {
        fs::write(guest.join(name), text).map_err(file(&guest))?;
    }
    fs::write(world.join("pvm.wit"), WORLD).map_err(file(&world))?;
    // Alone, so that nothing else of the environment gets into the component.
    let packages = packages(&python, top)?;
    copy(&packages.join("cowboy_sdk"), &sdk.join("cowboy_sdk")).map_err(file(&packages))?;
    let component = top.join(artifact::COMPONENT);
    let mut compiler = Command::new(environment.join("bin/componentize-py"));
    compiler.arg("-d").arg(&world).args(["-w", "pvm", "componentize", "app", "--stub-wasi", "-o"]);
    compiler.arg(&component).arg("-p").arg(&guest).arg("-p").arg(&sdk);
    run(Step::Component, top, &mut compiler)?;
    let bytes = fs::read(&component).map_err(file(&component))?;

    progress(Step::Compile);
    Ok(artifact::compile(&bytes, cache)?)
}

fn check_version(python: &OsStr, top: &Path) -> Result<(), BuildError> {
    let mut command = Command::new(python);
    command.args(["-c", "import sys; print(*sys.version_info[:2])"]);
    let got = run(Step::Python, top, &mut command)?;
    let mut parts = got.split_whitespace().map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= OLDEST => Ok(()),
        _ => Err(BuildError::OldPython {
            program: python.to_string_lossy().into_owned(),
            got: got.trim().replace(' ', "."),
        }),
    }
}

/// The folder of an environment's packages.
fn packages(python: &Path, top: &Path) -> Result<PathBuf, BuildError> {
    let mut command = Command::new(python);
    command.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
    run(Step::Component, top, &mut command).map(|path| PathBuf::from(path.trim_end()))
}

/// Runs a command in `top` and returns its output.
fn run(step: Step, top: &Path, command: &mut Command) -> Result<String, BuildError> {
    let log = top.join("output");
    let file = |error| BuildError::File { path: log.clone(), error };
    let output = fs::File::create(&log).map_err(file)?;
    let errors = output.try_clone().map_err(file)?;
    command
        .current_dir(top)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        // Another environment's packages would get into the component.
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME")
        .env_remove("VIRTUAL_ENV")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONHASHSEED", "0");
    let mut child = command.spawn().map_err(|error| BuildError::NotStarted {
        program: command.get_program().to_string_lossy().into_owned(),
        error,
    })?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(file)? {
            break status;
        }
        if begun.elapsed() > step.timeout() {
            // It may have ended by itself meanwhile.
            let _ = child.kill();
            child.wait().map_err(file)?;
            return Err(BuildError::TooSlow { step, output: last_lines(&log) });
        }
        thread::sleep(LOOK);
    };
    if !status.success() {
        let status = status.to_string();
        return Err(BuildError::Failed { step, status, output: last_lines(&log) });
    }
    fs::read_to_string(&log).map_err(file)
}

fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// Copies a package's sources.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "__pycache__" {
                copy(&entry.path(), &target)?;
            }
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BuildError, Command, LAST_LINES, Step, build, run};
    use std::{ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path};

    fn script(folder: &Path, text: &str) -> std::path::PathBuf {
        let path = folder.join("python");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_failed_command_shows_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "for n in $(seq 50); do echo line $n; done; echo bad >&2; exit 3"]);
        let error = run(Step::Packages, folder.path(), &mut command).unwrap_err();
        let BuildError::Failed { output, status, .. } = error else { panic!("{error}") };
        assert!(status.contains('3'), "{status}");
        assert_eq!(output.lines().count(), LAST_LINES);
        assert!(output.ends_with("line 50\nbad"), "{output}");
    }

    #[test]
    fn an_old_python_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let python = script(folder.path(), "echo 3 9");
        let cache = folder.path().join("cache");
        let mut steps = Vec::new();
        let error = build(python.as_os_str(), &cache, |step| steps.push(step)).unwrap_err();
        assert!(error.to_string().ends_with("is Python 3.9, and the SDK needs 3.11 or later"));
        assert_eq!(steps, [Step::Python]);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0, "a half-done build stays");
    }

    #[test]
    fn a_missing_python_is_named() {
        let cache = tempfile::tempdir().unwrap();
        let error = build(OsStr::new("no-such-python"), cache.path(), |_| ()).unwrap_err();
        assert!(error.to_string().starts_with("no-such-python cannot be started"), "{error}");
    }
}
