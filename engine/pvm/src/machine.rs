//! The machine: calls of actors, each in a fresh instance on a thread of its own.

use crate::artifact::{Artifact, ArtifactError};
use crate::host::Question;
use crate::instance::{Instances, Load, Loaded, spawn};
use crate::pool::Pool;
use cowboy_engine::primitives::{Hash, keccak256};
use cowboy_engine::pvm::{Pvm, PvmCall, PvmHost, PvmOutcome};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, mpsc};

/// Runs Python actors.
///
/// A call starts a thread with a large stack for its instance and answers the instance's host
/// functions meanwhile. When one of them is `call_actor`, the host calls the machine again, from
/// within: so each level of nesting has the whole stack.
///
/// # Panics
///
/// [`call`](Pvm::call) panics if the operating system gives no thread or less memory than the
/// limits allow. Such a call has no outcome that other nodes would agree on.
pub struct Machine {
    instances: Arc<Instances>,
    pool: Pool,
    tuple: Hash,
}

impl Machine {
    /// A machine that keeps at most `pool` instances loaded ahead.
    pub fn new(artifact: &Artifact, pool: usize) -> Result<Self, ArtifactError> {
        let instances = Arc::new(Instances::new(artifact)?);
        let pool = Pool::new(instances.clone(), pool);
        Ok(Self { instances, pool, tuple: artifact.tuple.hash() })
    }

    /// Runs a handler of a trusted program. Panics if it calls a host function.
    pub fn compute(&self, call: &PvmCall<'_>) -> PvmOutcome {
        let PvmCall { source, handler, payload, fuel } = *call;
        let (source, handler, payload) = (source.into(), handler.into(), payload.into());
        let order = Order { source, handler, payload, fuel, ahead: None };
        let (asking, _) = mpsc::channel();
        let instances = self.instances.clone();
        let thread = spawn(move || order.run(&instances, asking).0);
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Number of instances that are loaded ahead and ready.
    pub fn ready(&self) -> usize {
        self.pool.ready()
    }

    /// Waits until every instance that is to be loaded ahead is ready.
    pub fn settle(&self) {
        self.pool.settle();
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("tuple", &self.tuple).finish_non_exhaustive()
    }
}

/// What an instance's thread needs of a call.
struct Order {
    source: String,
    handler: String,
    payload: Vec<u8>,
    fuel: u64,
    ahead: Option<Loaded>,
}

impl Order {
    /// Runs the call. Returns the fuel of the load as well, if it succeeded.
    fn run(self, instances: &Instances, host: mpsc::Sender<Question>) -> (PvmOutcome, Option<u64>) {
        let loaded = match self.ahead {
            Some(loaded) => Load::Ready(loaded),
            None => instances.load(&self.source, self.fuel),
        };
        match loaded {
            Load::Ready(loaded) => {
                let load = loaded.fuel;
                (loaded.call(self.handler, self.payload, self.fuel, host), Some(load))
            }
            Load::Failed(outcome) => (outcome, None),
        }
    }
}

impl Pvm for Machine {
    fn tuple(&self) -> Hash {
        self.tuple
    }

    fn load(&self, source: &str, fuel: u64) -> PvmOutcome {
        let (instances, source) = (self.instances.clone(), source.to_owned());
        let thread = spawn(move || match instances.load(&source, fuel) {
            Load::Ready(loaded) => PvmOutcome { fuel: loaded.fuel, result: Ok(Vec::new()) },
            Load::Failed(outcome) => outcome,
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn call(&self, call: &PvmCall<'_>, host: &mut dyn PvmHost) -> PvmOutcome {
        let _running = self.pool.running();
        let hash = (!self.pool.is_off()).then(|| keccak256(&[call.source.as_bytes()]));
        let order = Order {
            source: call.source.to_owned(),
            handler: call.handler.to_owned(),
            payload: call.payload.to_owned(),
            fuel: call.fuel,
            ahead: hash.and_then(|hash| self.pool.take(hash)),
        };
        let (asking, questions) = mpsc::channel();
        let instances = self.instances.clone();
        let thread = spawn(move || order.run(&instances, asking));
        // Until the thread drops its end.
        for question in questions {
            question(host);
        }
        let (outcome, load) = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        if let (Some(hash), Some(load)) = (hash, load) {
            self.pool.wish(hash, call.source, load);
        }
        outcome
    }
}
