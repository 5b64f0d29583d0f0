//! One instance of the component: it loads a module, then it serves one call, then it is gone.
//!
//! Before that, another instance has compiled the module. The code is kept for further calls, which
//! pay for the compilation as if it were done again.

use crate::artifact::{Artifact, ArtifactError, Opened};
use crate::compiled::{Compiled, Kept};
use crate::host::{HostGone, Question, Session, add_to_linker};
use crate::limits::{CROSSING, THREAD_STACK, cut_raised};
use cowboy_engine::primitives::keccak256;
use cowboy_engine::pvm::{PvmFailure, PvmOutcome, Raised};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use wasmtime::component::{
    ComponentExportIndex, ComponentType, InstancePre, Lift, Linker, TypedFunc,
};
use wasmtime::{Engine, Error, PoolConcurrencyLimitError, Store, Trap};

#[derive(ComponentType, Lift)]
#[component(record)]
struct RaisedRecord {
    kind: String,
    message: String,
    slug: Option<String>,
    why: Option<String>,
    fix: Option<String>,
    traceback: String,
}

impl From<RaisedRecord> for Raised {
    fn from(record: RaisedRecord) -> Self {
        let RaisedRecord { kind, message, slug, why, fix, traceback } = record;
        let mut raised = Self { kind, message, slug, why, fix, traceback };
        cut_raised(&mut raised);
        raised
    }
}

type CompileFunction = TypedFunc<(String,), (Result<Vec<u8>, RaisedRecord>,)>;
type LoadFunction = TypedFunc<(String, Vec<u8>), (Result<(), RaisedRecord>,)>;
type CallFunction = TypedFunc<(String, Vec<u8>), (Result<Vec<u8>, RaisedRecord>,)>;

/// Makes instances of the component that are ready to load a module.
pub struct Instances {
    reusing: Source,
    /// For more instances at once than the other has slots for.
    fresh: Source,
    kept: Mutex<Kept>,
}

/// The component, ready to be instantiated in one of the engines.
struct Source {
    engine: Engine,
    instance: InstancePre<Session>,
    compile: ComponentExportIndex,
    load: ComponentExportIndex,
    call: ComponentExportIndex,
}

/// An instance that has done nothing yet.
struct Made {
    store: Store<Session>,
    compile: CompileFunction,
    load: LoadFunction,
    call: CallFunction,
}

/// An instance that has loaded a module.
pub struct Loaded {
    store: Store<Session>,
    call: CallFunction,
    /// Fuel that instantiation and loading took: the same for every instance of a source.
    pub fuel: u64,
}

/// How loading ended.
pub enum Load {
    Ready(Loaded),
    /// The call ends with it.
    Failed(PvmOutcome),
}

impl Loaded {
    /// Bytes of linear memory.
    pub fn memory(&self) -> usize {
        self.store.data().limits.memory
    }
}

impl Source {
    fn new(opened: &Opened) -> Result<Self, ArtifactError> {
        let failed = |error: Error| ArtifactError::Load(format!("{error:#}"));
        let mut linker = Linker::new(&opened.engine);
        add_to_linker(&mut linker).map_err(failed)?;
        let export = |name| {
            let index = opened.component.get_export_index(None, name);
            index.ok_or_else(|| ArtifactError::Load(format!("it has no function {name}")))
        };
        Ok(Self {
            engine: opened.engine.clone(),
            compile: export("compile")?,
            load: export("load")?,
            call: export("call")?,
            instance: linker.instantiate_pre(&opened.component).map_err(failed)?,
        })
    }

    fn make(&self, fuel: u64) -> Result<Made, (Store<Session>, Error)> {
        let mut store = Store::new(&self.engine, Session::default());
        store.limiter(|session| &mut session.limits);
        store.set_hostcall_fuel(CROSSING);
        // Instantiation burns fuel, too.
        store.set_fuel(fuel).expect("fuel is consumed");
        let functions = self.instance.instantiate(&mut store).and_then(|instance| {
            let compile = instance.get_typed_func(&mut store, self.compile)?;
            let load = instance.get_typed_func(&mut store, self.load)?;
            let call = instance.get_typed_func(&mut store, self.call)?;
            Ok((compile, load, call))
        });
        match functions {
            Ok((compile, load, call)) => Ok(Made { store, compile, load, call }),
            Err(error) => Err((store, error)),
        }
    }
}

impl Instances {
    pub fn new(artifact: &Artifact) -> Result<Self, ArtifactError> {
        Ok(Self {
            reusing: Source::new(&artifact.reusing)?,
            fresh: Source::new(&artifact.fresh)?,
            kept: Mutex::default(),
        })
    }

    /// An instance in memory that another had before, if there is some.
    fn make(&self, fuel: u64) -> Result<Made, PvmOutcome> {
        let made = match self.reusing.make(fuel) {
            Err((_, error)) if error.is::<PoolConcurrencyLimitError>() => self.fresh.make(fuel),
            made => made,
        };
        made.map_err(|(store, error)| {
            let text = "an instance cannot be made on this machine";
            assert!(error.is::<Trap>(), "{text}: {error:#}");
            ended(&store, fuel, error)
        })
    }

    /// The code of a module, compiled now or before.
    fn compiled(&self, source: &str, fuel: u64) -> Result<Arc<Compiled>, PvmOutcome> {
        let hash = keccak256(&[source.as_bytes()]);
        // No code panics while it holds the lock.
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kept().get(&hash) {
            return Ok(compiled);
        }
        let compiled = Arc::new(self.compile(source, fuel)?);
        kept().insert(hash, compiled.clone());
        Ok(compiled)
    }

    fn compile(&self, source: &str, fuel: u64) -> Result<Compiled, PvmOutcome> {
        let Made { mut store, compile, .. } = self.make(fuel)?;
        let before = left(&store);
        let answer = compile.call(&mut store, (source.to_owned(),));
        let (result,) = answer.map_err(|error| ended(&store, fuel, error))?;
        let left = left(&store);
        if left == 0 {
            return Err(out_of_fuel(fuel));
        }
        match result {
            Ok(code) => Ok(Compiled { code, fuel: before - left }),
            Err(raised) => {
                let result = Err(PvmFailure::Raised(Box::new(raised.into())));
                Err(PvmOutcome { fuel: fuel - left, result })
            }
        }
    }

    /// Runs a module in a fresh instance. No host function works meanwhile, so the result depends
    /// on the source and the fuel alone.
    ///
    /// Must run on a thread of [`spawn`].
    pub fn load(&self, source: &str, fuel: u64) -> Load {
        let compiled = match self.compiled(source, fuel) {
            Ok(compiled) => compiled,
            Err(outcome) => return Load::Failed(outcome),
        };
        let Some(rest @ 1..) = fuel.checked_sub(compiled.fuel) else {
            return Load::Failed(out_of_fuel(fuel));
        };
        let Made { mut store, load, call, .. } = match self.make(rest) {
            Ok(made) => made,
            Err(outcome) => return Load::Failed(PvmOutcome { fuel, ..outcome }),
        };
        let loaded = load.call(&mut store, (source.to_owned(), compiled.code.clone()));
        match loaded {
            Err(error) => return Load::Failed(ended(&store, fuel, error)),
            Ok((result,)) => {
                let left = left(&store);
                if left == 0 {
                    return Load::Failed(out_of_fuel(fuel));
                }
                if let Err(raised) = result {
                    let result = Err(PvmFailure::Raised(Box::new(raised.into())));
                    return Load::Failed(PvmOutcome { fuel: fuel - left, result });
                }
            }
        }
        let fuel = fuel - left(&store);
        Load::Ready(Loaded { store, call, fuel })
    }
}

impl Loaded {
    /// Calls a handler. `fuel` covers the loading, too, so that the outcome is the same whether
    /// the instance was loaded for this call or ahead of it. An instance serves one call only.
    ///
    /// Must run on a thread of [`spawn`].
    pub fn call(
        &mut self,
        handler: String,
        payload: Vec<u8>,
        fuel: u64,
        host: mpsc::Sender<Question>,
    ) -> PvmOutcome {
        let Some(rest @ 1..) = fuel.checked_sub(self.fuel) else { return out_of_fuel(fuel) };
        let store = &mut self.store;
        store.set_fuel(rest).expect("fuel is consumed");
        store.data_mut().host = Some(host);
        let answer = self.call.call(&mut *store, (handler, payload));
        store.data_mut().host = None;
        match answer {
            Err(error) => ended(store, fuel, error),
            Ok((result,)) => PvmOutcome {
                fuel: fuel - left(store),
                result: result.map_err(|raised| PvmFailure::Raised(Box::new(raised.into()))),
            },
        }
    }
}

fn left(store: &Store<Session>) -> u64 {
    store.get_fuel().expect("fuel is consumed")
}

fn out_of_fuel(fuel: u64) -> PvmOutcome {
    PvmOutcome { fuel, result: Err(PvmFailure::OutOfFuel) }
}

/// The outcome of a call that did not return: it is charged everything, because the point where
/// compiled code stops may differ between processors.
///
/// Panics if the operating system is the cause: other machines have another outcome then, and this
/// one must not go on with its own.
fn ended(store: &Store<Session>, fuel: u64, error: Error) -> PvmOutcome {
    assert!(!store.data().limits.starved, "the machine has too little memory: {error:#}");
    assert!(!error.is::<HostGone>(), "the host has ended");
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => out_of_fuel(fuel),
        _ => PvmOutcome { fuel, result: Err(PvmFailure::Stopped) },
    }
}

/// Runs `work` on a thread with enough stack for an instance.
///
/// Panics if the operating system gives no thread.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let thread = Builder::new().name("actor".to_owned()).stack_size(THREAD_STACK);
    thread.spawn(work).expect("the operating system gives a thread")
}
