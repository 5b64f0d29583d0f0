//! The machine: calls of actors, each in a fresh instance on a thread of its own.

use crate::artifact::{Artifact, ArtifactError};
use crate::host::Question;
use crate::instance::{Instances, Load, Loaded, spawn};
use crate::pool::Pool;
use cowboy_engine::primitives::{Hash, keccak256};
use cowboy_engine::pvm::{Pvm, PvmCall, PvmHost, PvmOutcome};
use std::panic::resume_unwind;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{fmt, mem};

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
    /// The thread of the call that returned last. It may still restore its instance's memory.
    returned: Mutex<Option<JoinHandle<()>>>,
    tuple: Hash,
}

impl Machine {
    /// A machine that keeps at most `pool` instances loaded ahead.
    pub fn new(artifact: &Artifact, pool: usize) -> Result<Self, ArtifactError> {
        let instances = Arc::new(Instances::new(artifact)?);
        let pool = Pool::new(instances.clone(), pool);
        Ok(Self { instances, pool, returned: Mutex::default(), tuple: artifact.tuple.hash() })
    }

    /// Runs a handler of a trusted program. Panics if it calls a host function.
    pub fn compute(&self, call: &PvmCall<'_>) -> PvmOutcome {
        let PvmCall { source, handler, payload, fuel } = *call;
        let (source, handler, payload) = (source.into(), handler.into(), payload.into());
        let order = Order { source, handler, payload, fuel, ahead: None };
        self.run(order, |_| {}).outcome
    }

    fn run(&self, order: Order, mut answer: impl FnMut(Question)) -> End {
        let (asking, questions) = mpsc::channel();
        let (ending, ended) = mpsc::sync_channel(1);
        let instances = self.instances.clone();
        let thread = spawn(move || order.run(&instances, asking, &ending));
        // Until the instance has no more.
        for question in questions {
            answer(question);
        }
        match ended.recv() {
            Ok(end) => {
                self.follow(Some(thread));
                end
            }
            Err(_) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => unreachable!("a thread says how its call ended"),
            },
        }
    }

    /// Number of instances that are loaded ahead and ready.
    pub fn ready(&self) -> usize {
        self.pool.ready()
    }

    /// Waits until every instance that is to be loaded ahead is ready, and those that have served
    /// their call are gone.
    pub fn settle(&self) {
        self.pool.settle();
        self.follow(None);
    }

    /// Keeps the thread of a call that has returned, and waits for the one before it: so memory is
    /// restored while the caller goes on, but never much later.
    fn follow(&self, thread: Option<JoinHandle<()>>) {
        // No code panics while it holds the lock.
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        let before = mem::replace(&mut *returned, thread);
        drop(returned);
        if let Some(before) = before {
            before.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
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

/// How a call ended.
struct End {
    outcome: PvmOutcome,
    /// Fuel of the load, if it succeeded.
    load: Option<u64>,
}

impl Order {
    /// Runs the call, says how it ended, and lets go of the instance then.
    fn run(self, instances: &Instances, host: mpsc::Sender<Question>, ended: &SyncSender<End>) {
        let loaded = match self.ahead {
            Some(loaded) => Load::Ready(loaded),
            None => instances.load(&self.source, self.fuel),
        };
        // The caller waits, or its own thread has ended.
        match loaded {
            Load::Ready(mut loaded) => {
                let outcome = loaded.call(self.handler, self.payload, self.fuel, host);
                let _ = ended.send(End { outcome, load: Some(loaded.fuel) });
            }
            Load::Failed(outcome) => {
                drop(host);
                let _ = ended.send(End { outcome, load: None });
            }
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
        let End { outcome, load } = self.run(order, |question| question(host));
        if let (Some(hash), Some(load)) = (hash, load) {
            self.pool.wish(hash, call.source, load);
        }
        outcome
    }
}
