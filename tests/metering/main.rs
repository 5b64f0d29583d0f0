//! Work is paid for before it is done: compares the bytes that calls of every function allocate
//! with the cycles that they are charged. Counts of bytes depend on no clock and no machine.

mod calls;

use calls::{Group, Large, Run, groups};
use cowboy_engine::{
    actor::{
        ActorParams, Budget, Call, Error, ErrorKind, JobRequest, Module, Schedule, Seed,
        TestReport, TimerCall, World,
    },
    chain::Suite,
    primitives::{Address, Hash, Height, Wei},
};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Values of the maximum size, or nearly.
const VALUES: [Large; 7] = [
    Large { kind: "Text", made: "'x' * 1048576" },
    Large { kind: "Text", made: "'\u{e9}' * 524288" },
    Large { kind: "", made: "(1 << 4095) - 1" },
    Large { kind: "List", made: "[1] * 65536" },
    Large { kind: "List", made: "nested(60, 1)" },
    Large { kind: "Tuple", made: "(1,) * 65000" },
    Large { kind: "Dict", made: "{'k%d' % i: i for i in range(4000)}" },
];

/// Bytes that every call allocates: its stack, its world, an error and its text.
const WHATEVER: u64 = 64 << 10;

/// Enough cells, because they are not measured here.
const CELLS: u64 = 1 << 40;

/// The maximum number of findings in a failure's message.
const SHOWN: usize = 20;

/// Bytes that a call may allocate per cycle.
///
/// A cycle moves 32 bytes. Memory alone is cheapest: a KiB of heap for 10 cycles, 102 bytes for
/// one. A collection of unknown size doubles as it grows, and has then been allocated two to four
/// times; but each element pays a cycle on top of its heap. Two and a half times the rate of the
/// heap is enough for that, and a tenth of the rate of copying a value for the call's charge alone.
fn bytes_per_cycle() -> u64 {
    1024 / Schedule::default().heap_kib * 5 / 2
}

/// A call that allocates more than it pays for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    bytes_per_cycle: u64,
    bytes: u64,
    cycles: u64,
    name: String,
}

impl Finding {
    fn look(name: String, bytes: u64, cycles: u64) -> Option<Self> {
        let paid = WHATEVER + bytes_per_cycle() * cycles;
        (bytes > paid).then(|| Self { bytes_per_cycle: bytes / cycles.max(1), bytes, cycles, name })
    }
}

/// The calls of a group that allocate more than they pay for, without the lines in front of each.
fn findings(group: &Group) -> Vec<Finding> {
    let run = |suite: &Suite, function: &str, cycles: u64| {
        let budget = Budget { cycles, cells: CELLS };
        let mut report = None;
        let counted = allocation_counter::measure(|| {
            report = Some(suite.test(function, budget));
        });
        let report: TestReport = report.expect("it ran");
        (report, counted.bytes_total)
    };
    let (idle, runs) = group.play(run);
    let beyond = |run: Run<u64>| {
        let bytes = run.found.saturating_sub(idle.found);
        let cycles = run.report.usage.cycles().saturating_sub(idle.report.usage.cycles());
        Finding::look(run.name, bytes, cycles)
    };
    runs.into_iter().filter_map(beyond).collect()
}

#[test]
fn every_call_pays_for_the_memory_that_it_takes() {
    let groups = groups(&VALUES);
    for known in [
        "print(sep = V)",
        "print(P[0], sep = V)",
        "pvm_host.log(sep = V)",
        "sorted(V)",
        "pvm_host.set_state(P[0], V)",
        "r.replace(P[0], V)",
        "V + V",
    ] {
        let there = groups.iter().any(|group| group.calls.iter().any(|call| call == known));
        assert!(there, "{known} is among the calls");
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let more = findings(group);
                    found.lock().expect("no thread fails while it adds to it").extend(more);
                }
            });
        }
    });
    let mut found = found.into_inner().expect("every thread has ended well");
    found.sort_unstable();
    let line = |of: &Finding| {
        let Finding { bytes_per_cycle, bytes, cycles, name } = of;
        format!("{bytes_per_cycle} bytes a cycle: {bytes} bytes, {cycles} cycles: {name}\n")
    };
    let worst: String = found.iter().rev().take(SHOWN).map(line).collect();
    let (count, most) = (found.len(), bytes_per_cycle());
    assert!(
        found.is_empty(),
        "{count} allocate more than {most} bytes a cycle, at worst:\n{worst}"
    );
}

/// A store with one long value, whose length it knows without a copy.
struct Store(usize);

impl World for Store {
    fn state(&self, _: &str) -> Option<Vec<u8>> {
        Some(format!("\"{}\"", "x".repeat(self.0 - 2)).into_bytes())
    }

    fn state_len(&self, _: &str) -> Option<usize> {
        Some(self.0)
    }

    fn balance(&self, _: &Address) -> Wei {
        Wei::ZERO
    }

    fn mru(&self, _: &Address, _: &str) -> Option<Address> {
        None
    }

    fn timer(&self, _: &TimerCall, _: u64) -> Result<Hash, String> {
        Ok(Hash::ZERO)
    }

    fn job(&self, _: &JobRequest, _: u64) -> Result<(Hash, u64), String> {
        Ok((Hash::ZERO, 0))
    }
}

/// Calls `f` with a payload on a store with a long value: bytes allocated, cycles used, the error.
fn spent(module: &Module, payload: &[u8], cycles: u64) -> (u64, u64, Option<Error>) {
    let call = Call {
        handler: "f",
        payload,
        sender: Address::default(),
        this: Address::default(),
        value: Wei::ZERO,
        height: Height::new(1),
        timestamp_ms: 1,
        seed: Seed::Fixed(Hash::ZERO),
    };
    let (budget, store) = (Budget { cycles, cells: CELLS }, Store(1 << 20));
    let mut outcome = None;
    let counted = allocation_counter::measure(|| {
        outcome = Some(module.call(&ActorParams::default(), &call, &store, budget));
    });
    let outcome = outcome.expect("it ran");
    (counted.bytes_total, outcome.usage.cycles(), outcome.result.err())
}

#[test]
fn what_comes_from_outside_is_paid_for_before_it_is_copied() {
    let load = |source: &str| {
        let budget = Budget { cycles: 100_000, cells: CELLS };
        Module::load(source, &ActorParams::default(), budget).1.expect("it loads")
    };
    let reads = load("def f(ctx, payload):\n  pvm_host.get_state('k')\n");
    let nothing = load("def f(ctx, payload):\n  pass\n");
    let (text, bytes) = ("x".repeat(1 << 19), vec![0xff; 1 << 18]);
    for (module, payload) in
        [(&reads, [].as_slice()), (&nothing, text.as_bytes()), (&nothing, bytes.as_slice())]
    {
        let (taken, cycles, error) = spent(module, payload, 500);
        let short = error.is_some_and(|error| matches!(error.kind, ErrorKind::OutOfCycles { .. }));
        assert!(short, "500 cycles are too few");
        assert_eq!(Finding::look("with few cycles".to_owned(), taken, cycles), None);
        let (_, _, error) = spent(module, payload, 1_000_000);
        assert_eq!(error, None, "a million are enough");
    }
}
