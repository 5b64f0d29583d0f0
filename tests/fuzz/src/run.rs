//! Timed loading and calling of modules, on a world that answers every request.

use cowboy_engine::actor::{
    ActorParams, Budget, Call, CallOutcome, Error, JobRequest, Module, Seed, TestReport, TimerCall,
    Usage, World,
};
use cowboy_engine::chain::{Setup, Suite};
use cowboy_engine::primitives::{Address, Hash, Height, Wei};
use std::time::{Duration, Instant};

/// Budget of a load or a call.
pub const BUDGET: Budget = Budget { cycles: 1_000_000, cells: 1_000_000 };

/// Stack of the thread that runs actors, in bytes: the default of threads.
const STACK: usize = 2 << 20;

/// A chain with some data of every kind.
#[derive(Debug)]
pub struct Fake;

impl World for Fake {
    fn state(&self, key: &str) -> Option<Vec<u8>> {
        match key.len() % 4 {
            0 => None,
            1 => Some(b"[1, {\"a\": \"\\u00e9\"}, null]".to_vec()),
            2 => Some(format!("\"{}\"", "x".repeat(1000)).into_bytes()),
            _ => Some(b"123456789012345678901234567890".to_vec()),
        }
    }

    fn balance(&self, _: &Address) -> Wei {
        Wei::new(1 << 80)
    }

    fn mru(&self, _: &Address, kind: &str) -> Option<Address> {
        (kind.len() % 2 == 0).then_some(Address([7; 20]))
    }

    fn timer(&self, timer: &TimerCall, index: u64) -> Result<Hash, String> {
        Ok(Hash([timer.height.get() as u8 ^ index as u8; 32]))
    }

    fn job(&self, _: &JobRequest, index: u64) -> Result<(Hash, u64), String> {
        Ok((Hash([index as u8; 32]), 0))
    }
}

/// Loads a module.
pub fn load(source: &str) -> (Usage, Result<Module, Error>, Duration) {
    let begun = Instant::now();
    let (usage, module) = Module::load(source, &ActorParams::default(), BUDGET);
    (usage, module, begun.elapsed())
}

/// A call of a handler.
pub fn request<'a>(handler: &'a str, payload: &'a [u8]) -> Call<'a> {
    Call {
        handler,
        payload,
        sender: Address([1; 20]),
        this: Address([2; 20]),
        value: Wei::new(5),
        height: Height::new(10),
        timestamp_ms: 10_000,
        seed: Seed::Fixed(Hash([3; 32])),
    }
}

/// Calls a handler.
pub fn call(module: &Module, handler: &str, payload: &[u8]) -> (CallOutcome, Duration) {
    let call = request(handler, payload);
    let begun = Instant::now();
    let outcome = module.call(&ActorParams::default(), &call, &Fake, BUDGET);
    (outcome, begun.elapsed())
}

/// Runs a function as a test, on a chain that is made before the clock starts.
pub fn test(module: &Module, name: &str) -> (TestReport, Duration) {
    let loaded = (&Usage::default(), module);
    let suite = Suite::new("", loaded, &Setup::default()).expect("a chain can begin so");
    let begun = Instant::now();
    let report = suite.test(name, BUDGET);
    (report, begun.elapsed())
}

/// The end of a report's line: the error, if any.
pub fn ending(error: Option<&Error>) -> String {
    let Some(error) = error else { return "ok".to_owned() };
    error.to_string().lines().next().unwrap_or_default().chars().take(90).collect()
}

/// The cause with the most cycles.
pub fn main_cause(usage: &Usage) -> &'static str {
    let most = usage.causes().into_iter().max_by_key(|(_, cycles)| *cycles);
    most.map_or("nothing", |(cause, _)| cause)
}

/// Nanoseconds per cycle.
pub fn rate(elapsed: Duration, cycles: u64) -> f64 {
    elapsed.as_nanos() as f64 / cycles.max(1) as f64
}

/// Runs `work` on a thread with the stack that threads have by default.
pub fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
    let thread = thread.expect("a thread can be started");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
