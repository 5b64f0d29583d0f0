//! The machine's artifact on disk: the component, its machine code, and the tuple of both.
//!
//! | file | content |
//! |---|---|
//! | `component.wasm` | what is built once and passed between hosts; the tuple has its hash |
//! | `component.cwasm` | machine code for [`TARGET`], made on each host |
//! | `tuple.json` | the tuple, and the hash of the machine code |
//!
//! Machine code is mapped and executed, so an artifact is opened only if no other user can have
//! written it.

use crate::engine::{SLOTS, engine};
use crate::tuple::{TARGET, Tuple};
use cowboy_engine::primitives::{Hash, keccak256};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};
use wasmtime::{Engine, component::Component};

/// The file of the component in an artifact's folder.
pub const COMPONENT: &str = "component.wasm";
const CODE: &str = "component.cwasm";
const TUPLE: &str = "tuple.json";

/// What to type when an artifact cannot be used.
const REMEDY: &str = "type `cowboyctl pvm install`";

/// The reason why an artifact cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("no Python machine in {0}: {REMEDY}")]
    Missing(PathBuf),
    #[error("{path} is not a tuple ({error}): {REMEDY}")]
    Malformed { path: PathBuf, error: String },
    /// Another version of this program, or another kind of computer, made it.
    #[error("the Python machine in {folder} has {field} {got}, expected {expected}: {REMEDY}")]
    OtherTuple { folder: PathBuf, field: &'static str, got: String, expected: String },
    #[error("{path} has changed since it was made ({got}, not {expected}): {REMEDY}")]
    Changed { path: PathBuf, got: Hash, expected: Hash },
    #[error("{path} can be written by others, and its code would run here: {problem}")]
    Unsafe { path: PathBuf, problem: &'static str },
    #[error("Python actors need Linux or macOS on x86-64 or ARM64")]
    NoTarget,
    #[error("the component cannot be compiled: {0}")]
    Compile(String),
    #[error("the machine code cannot be loaded ({0}): {REMEDY}")]
    Load(String),
}

impl ArtifactError {
    fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::File { path: path.to_owned(), error }
    }
}

/// `tuple.json`. Hashes are hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TupleFile {
    component: String,
    wasmtime: String,
    flags: String,
    target: String,
    memory: u64,
    stack: u64,
    table_elements: u64,
    crossing: u64,
    interface: u32,
    /// keccak256 of the machine code, which is no part of the tuple.
    code: String,
}

/// An artifact that was verified and opened.
#[derive(Clone)]
pub struct Artifact {
    pub tuple: Tuple,
    /// Its instances use the memory of others before them.
    pub(crate) reusing: Opened,
    /// Each of its instances has fresh memory.
    pub(crate) fresh: Opened,
}

/// The component in an engine.
#[derive(Clone)]
pub struct Opened {
    pub engine: Engine,
    pub component: Component,
}

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact").field("tuple", &self.tuple).finish_non_exhaustive()
    }
}

/// Compiles a component and puts its artifact into a folder of `cache` that is named for its
/// tuple. Returns that folder. Takes some ten seconds of one processor; an unfinished artifact
/// never has the name of a whole one.
pub fn compile(component: &[u8], cache: &Path) -> Result<PathBuf, ArtifactError> {
    let tuple = Tuple::of(keccak256(&[component])).ok_or(ArtifactError::NoTarget)?;
    let folder = cache.join(hex::encode(tuple.hash().0));
    if verify(&folder).is_ok() {
        return Ok(folder);
    }
    let failed = |error: wasmtime::Error| ArtifactError::Compile(format!("{error:#}"));
    let code = engine(0).and_then(|engine| engine.precompile_component(component));
    let code = code.map_err(failed)?;
    fs::create_dir_all(cache).map_err(ArtifactError::file(cache))?;
    let unfinished = tempfile::Builder::new()
        .prefix("unfinished-")
        .tempdir_in(cache)
        .map_err(ArtifactError::file(cache))?;
    let json = serde_json::to_vec_pretty(&TupleFile::new(&tuple, keccak256(&[&code])))
        .expect("a struct of texts and numbers is JSON");
    for (name, bytes) in [(COMPONENT, component), (CODE, &code), (TUPLE, &json)] {
        let path = unfinished.path().join(name);
        fs::write(&path, bytes).map_err(ArtifactError::file(&path))?;
    }
    if folder.exists() {
        // Damaged, or it would have been returned above.
        fs::remove_dir_all(&folder).map_err(ArtifactError::file(&folder))?;
    }
    match fs::rename(unfinished.path(), &folder) {
        // Another process was faster.
        Err(_) if verify(&folder).is_ok() => Ok(folder),
        Err(error) => Err(ArtifactError::File { path: folder, error }),
        Ok(()) => Ok(folder),
    }
}

/// Checks every file of an artifact, and returns its tuple.
pub fn verify(folder: &Path) -> Result<Tuple, ArtifactError> {
    let (tuple, code) = read(folder)?;
    same(&folder.join(CODE), code)?;
    same(&folder.join(COMPONENT), tuple.component)?;
    Ok(tuple)
}

impl Artifact {
    /// Opens an artifact whose machine code is what [`compile`] wrote.
    pub fn open(folder: &Path) -> Result<Self, ArtifactError> {
        let (tuple, code) = read(folder)?;
        let path = folder.join(CODE);
        same(&path, code)?;
        let failed = |error: wasmtime::Error| ArtifactError::Load(format!("{error:#}"));
        let opened = |slots| {
            let engine = engine(slots)?;
            let component = map(&engine, &path)?;
            Ok(Opened { engine, component })
        };
        let (reusing, fresh) = (opened(SLOTS), opened(0));
        Ok(Self { tuple, reusing: reusing.map_err(failed)?, fresh: fresh.map_err(failed)? })
    }
}

#[expect(unsafe_code, reason = "machine code can be mapped in no other way")]
fn map(engine: &Engine, code: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file has the hash that `compile` recorded for its own output, and only this user
    // or root can have written either, or can write to them while they are mapped.
    unsafe { Component::deserialize_file(engine, code) }
}

/// Reads the tuple of an artifact that this program can use, and the hash of its machine code.
fn read(folder: &Path) -> Result<(Tuple, Hash), ArtifactError> {
    let path = folder.join(TUPLE);
    if !path.exists() {
        return Err(ArtifactError::Missing(folder.to_owned()));
    }
    for path in [folder, &path, &folder.join(CODE), &folder.join(COMPONENT)] {
        private(path)?;
    }
    let json = fs::read(&path).map_err(ArtifactError::file(&path))?;
    let malformed = |error: &dyn std::fmt::Display| ArtifactError::Malformed {
        path: path.clone(),
        error: error.to_string(),
    };
    let file: TupleFile = serde_json::from_slice(&json).map_err(|error| malformed(&error))?;
    let hash = |text: &str| {
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash)
            .map(|()| Hash(hash))
            .map_err(|error| malformed(&error))
    };
    let (component, code) = (hash(&file.component)?, hash(&file.code)?);
    let tuple = Tuple::of(component).ok_or(ArtifactError::NoTarget)?;
    file.compare(folder, &TupleFile::new(&tuple, code))?;
    Ok((tuple, code))
}

impl TupleFile {
    fn new(tuple: &Tuple, code: Hash) -> Self {
        Self {
            component: hex::encode(tuple.component.0),
            wasmtime: tuple.wasmtime.clone(),
            flags: tuple.flags.clone(),
            target: tuple.target.clone(),
            memory: tuple.memory,
            stack: tuple.stack,
            table_elements: tuple.table_elements,
            crossing: tuple.crossing,
            interface: tuple.interface,
            code: hex::encode(code.0),
        }
    }

    /// Finds the first field that is not the one this program works with.
    fn compare(&self, folder: &Path, expected: &Self) -> Result<(), ArtifactError> {
        let texts = [
            ("wasmtime", &self.wasmtime, &expected.wasmtime),
            ("flags", &self.flags, &expected.flags),
            ("target", &self.target, &expected.target),
        ];
        let numbers = [
            ("memory", self.memory, expected.memory),
            ("stack", self.stack, expected.stack),
            ("table elements", self.table_elements, expected.table_elements),
            ("bytes that cross", self.crossing, expected.crossing),
            ("interface", u64::from(self.interface), u64::from(expected.interface)),
        ];
        let texts =
            texts.into_iter().map(|(field, got, expected)| (field, got.clone(), expected.clone()));
        let numbers = numbers
            .into_iter()
            .map(|(field, got, expected)| (field, got.to_string(), expected.to_string()));
        for (field, got, expected) in texts.chain(numbers) {
            if got != expected {
                let folder = folder.to_owned();
                return Err(ArtifactError::OtherTuple { folder, field, got, expected });
            }
        }
        Ok(())
    }
}

/// Checks that a file has a hash.
fn same(path: &Path, expected: Hash) -> Result<(), ArtifactError> {
    let bytes = fs::read(path).map_err(ArtifactError::file(path))?;
    let got = keccak256(&[&bytes]);
    if got != expected {
        return Err(ArtifactError::Changed { path: path.to_owned(), got, expected });
    }
    Ok(())
}

/// Checks that only this user, or root, can write to a file or folder.
fn private(path: &Path) -> Result<(), ArtifactError> {
    let meta = fs::symlink_metadata(path).map_err(ArtifactError::file(path))?;
    let refuse = |problem| Err(ArtifactError::Unsafe { path: path.to_owned(), problem });
    if meta.is_symlink() {
        return refuse("it is a symbolic link");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() && meta.uid() != 0 {
        return refuse("it belongs to another user");
    }
    if meta.mode() & 0o022 != 0 {
        return refuse("its mode lets others write; take that away with `chmod go-w`");
    }
    Ok(())
}

/// Whether this computer can run Python actors at all.
pub const fn supported() -> bool {
    TARGET.is_some()
}

#[cfg(test)]
mod tests {
    use super::{Artifact, ArtifactError, CODE, COMPONENT, TUPLE, compile, verify};
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    /// The smallest component.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn made() -> (tempfile::TempDir, std::path::PathBuf) {
        let cache = tempfile::tempdir().unwrap();
        let folder = compile(EMPTY, cache.path()).unwrap();
        (cache, folder)
    }

    fn problem(folder: &Path) -> String {
        Artifact::open(folder).unwrap_err().to_string()
    }

    #[test]
    fn an_artifact_is_opened_as_it_was_made() {
        let (cache, folder) = made();
        let artifact = Artifact::open(&folder).unwrap();
        assert_eq!(artifact.tuple, verify(&folder).unwrap());
        assert_eq!(folder, cache.path().join(hex::encode(artifact.tuple.hash().0)));
        assert_eq!(compile(EMPTY, cache.path()).unwrap(), folder);
        let names: Vec<_> = fs::read_dir(cache.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "unfinished artifacts stay");
    }

    #[test]
    fn changed_files_are_found() {
        let (_cache, folder) = made();
        let code = folder.join(CODE);
        let mut bytes = fs::read(&code).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&code, &bytes).unwrap();
        assert!(problem(&folder).contains("has changed since it was made"));
        assert!(matches!(verify(&folder), Err(ArtifactError::Changed { .. })));
        let (_cache, folder) = made();
        fs::write(folder.join(COMPONENT), b"other").unwrap();
        assert!(matches!(verify(&folder), Err(ArtifactError::Changed { .. })));
    }

    #[test]
    fn another_version_says_what_to_type() {
        let (_cache, folder) = made();
        let path = folder.join(TUPLE);
        let json = fs::read_to_string(&path).unwrap();
        fs::write(&path, json.replace("48.0.8", "47.0.3")).unwrap();
        let text = problem(&folder);
        assert!(text.contains("has wasmtime 47.0.3, expected 48.0.8"), "{text}");
        assert!(text.contains("cowboyctl pvm install"), "{text}");
        fs::write(&path, "{}").unwrap();
        assert!(problem(&folder).contains("cowboyctl pvm install"));
        fs::remove_file(&path).unwrap();
        assert!(problem(&folder).contains("no Python machine in"));
    }

    #[test]
    fn what_others_can_write_is_refused() {
        for name in ["", CODE, TUPLE] {
            let (_cache, folder) = made();
            let path = folder.join(name);
            let mut mode = fs::metadata(&path).unwrap().permissions();
            mode.set_mode(mode.mode() | 0o020);
            fs::set_permissions(&path, mode).unwrap();
            assert!(problem(&folder).contains("can be written by others"), "{name}");
        }
        let (cache, folder) = made();
        fs::rename(folder.join(CODE), cache.path().join("code")).unwrap();
        std::os::unix::fs::symlink(cache.path().join("code"), folder.join(CODE)).unwrap();
        assert!(problem(&folder).contains("symbolic link"));
    }
}
