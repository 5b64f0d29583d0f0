//! Machines of actors in Python: the artifacts that are installed here, and one open machine per
//! artifact and process.
//!
//! A chain's genesis names the tuple of its machine ([`PythonTerms`]). Every place that executes
//! blocks asks for the machine of its chain; a node without it does not start.

use cowboy_engine::{
    chain::{Params, params::PythonTerms},
    primitives::{Hash, keccak256},
    pvm::Pvm,
};
use cowboy_pvm::{
    artifact::{Artifact, ArtifactError, COMPONENT, compile, verify},
    machine::Machine,
    tuple::Tuple,
};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// The environment variable that names the folder of artifacts.
pub const FOLDER: &str = "COWBOYCTL_PVM";

/// Instances that a machine keeps loaded ahead.
const POOL: usize = 2;

/// Why a chain has no machine here.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error(
        "no place for Python machines: set {FOLDER}, XDG_CACHE_HOME or HOME to an absolute path"
    )]
    NoPlace,
    #[error(
        "this chain's actors in Python run on machine {tuple}, which is not in {}: copy it with \
         `cowboyctl pvm install --from URL`",
        .folder.display()
    )]
    NotInstalled { tuple: Hash, folder: PathBuf },
    #[error(
        "what was sent is machine {got} here, and the chain's is {expected}: it was damaged, or \
         this program is another version"
    )]
    Another { got: Hash, expected: Hash },
    #[error("no Python machine in {}: type `cowboyctl pvm install`", .0.display())]
    NoneInstalled(PathBuf),
    #[error(transparent)]
    Artifact(Box<ArtifactError>),
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl From<ArtifactError> for MachineError {
    fn from(error: ArtifactError) -> Self {
        Self::Artifact(Box::new(error))
    }
}

/// The folder of artifacts: `$COWBOYCTL_PVM`, else `cowboyctl/pvm` in `$XDG_CACHE_HOME` or
/// `~/.cache`.
pub fn folder() -> Result<PathBuf, MachineError> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    if let Some(folder) = absolute(FOLDER) {
        return Ok(folder);
    }
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("cowboyctl/pvm")).ok_or(MachineError::NoPlace)
}

/// The folder of the artifact with a tuple.
fn place(folder: &Path, tuple: &Hash) -> PathBuf {
    folder.join(hex::encode(tuple.0))
}

/// An artifact that is installed here.
#[derive(Debug)]
pub struct Installed {
    pub folder: PathBuf,
    pub tuple: Hash,
    pub installed_at: SystemTime,
}

/// The artifacts in `folder`, the newest first. Folders with other names are not artifacts.
pub fn installed(folder: &Path) -> Result<Vec<Installed>, MachineError> {
    let at = |error| MachineError::Io { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at)?;
        let mut tuple = [0; 32];
        let name = entry.file_name();
        if hex::decode_to_slice(name.as_encoded_bytes(), &mut tuple).is_ok() {
            let installed_at = entry.metadata().and_then(|meta| meta.modified()).map_err(at)?;
            found.push(Installed { folder: entry.path(), tuple: Hash(tuple), installed_at });
        }
    }
    found.sort_by_key(|one| Reverse(one.installed_at));
    Ok(found)
}

/// The tuple of the artifact that was installed last; `None` before the first.
pub fn newest() -> Result<Option<Hash>, MachineError> {
    let Ok(folder) = folder() else { return Ok(None) };
    Ok(installed(&folder)?.first().map(|newest| newest.tuple))
}

/// The component of an installed machine, which another host compiles for itself.
pub fn component(tuple: &Hash) -> Result<Vec<u8>, MachineError> {
    let path = place(&folder()?, tuple).join(COMPONENT);
    fs::read(&path).map_err(|error| MachineError::Io { path, error })
}

/// Installs a machine from its component. Fails if it is not the machine with this tuple.
pub fn install(component: &[u8], tuple: &Hash) -> Result<(), MachineError> {
    let folder = folder()?;
    let got = Tuple::of(keccak256(&[component])).ok_or(ArtifactError::NoTarget)?.hash();
    if got != *tuple {
        return Err(MachineError::Another { got, expected: *tuple });
    }
    compile(component, &folder)?;
    Ok(())
}

/// Checks every file of the artifact with a tuple.
pub fn check(tuple: &Hash) -> Result<Tuple, MachineError> {
    let folder = folder()?;
    Ok(verify(&place(&folder, tuple))?)
}

/// The machines that this process has opened, by tuple. They stay open, because the devnet that
/// uses one has several validators.
static OPEN: Mutex<BTreeMap<Hash, Arc<Machine>>> = Mutex::new(BTreeMap::new());

/// The machine of a chain; `None` if its genesis names none.
pub fn of(params: &Params) -> Result<Option<Arc<Machine>>, MachineError> {
    let Some(PythonTerms { tuple, .. }) = params.python else { return Ok(None) };
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(machine) = open.get(&tuple) {
        return Ok(Some(machine.clone()));
    }
    let folder = folder()?;
    let path = place(&folder, &tuple);
    if !path.exists() {
        return Err(MachineError::NotInstalled { tuple, folder });
    }
    let machine = Arc::new(Machine::new(&Artifact::open(&path)?, POOL)?);
    if machine.tuple() != tuple {
        return Err(MachineError::NotInstalled { tuple, folder });
    }
    open.insert(tuple, machine.clone());
    Ok(Some(machine))
}

/// The machine that was installed last, for work without a chain.
pub fn local() -> Result<Machine, MachineError> {
    let folder = folder()?;
    let newest = installed(&folder)?.into_iter().next();
    let newest = newest.ok_or(MachineError::NoneInstalled(folder))?;
    Ok(Machine::new(&Artifact::open(&newest.folder)?, 0)?)
}

/// A machine as the engine takes it.
pub fn borrowed(machine: &Option<Arc<Machine>>) -> Option<&dyn Pvm> {
    machine.as_deref().map(|machine| machine as &dyn Pvm)
}
