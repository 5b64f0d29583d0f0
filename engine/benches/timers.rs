//! The cost of keeping timers: `cargo bench -p cowboy-engine --bench timers -- [FILTER]`, with up
//! to a million of them; the environment variable `TIMERS_MOST=10000000` makes it ten million.
//!
//! * **Memory**, printed first unless there is a filter: resident bytes per timer of queue and
//!   calendar together, without the payload, in a process of their own.
//! * **Schedule, cancel, cancel and pass, fire**, over an hour and over 30 days: the time for n
//!   timers to schedule all, to cancel all in random order, to cancel all and go through all
//!   blocks, and to fire all block by block. The third is there because some structures only mark
//!   cancelled timers and leave the rest of the work, and the memory, to the blocks that go by. All
//!   structures are new, are given the same timers in the same order, keep the same 48 bytes for
//!   each (except `vectors 16`), and yield them at their heights. The ids of fired timers are
//!   summed up; ours are also taken out of the carry-over. The calendar runs without the
//!   commitment, but gives accounts their numbers as on a chain.
//!   - `btree`: `BTreeMap` from height and order to entry.
//!   - `wheel`: the cancellable hierarchical wheel of `hierarchical_hash_wheel_timer`, which looks
//!     ids up in a hash map.
//!   - `vectors 48`, `vectors 16`: a bare `Vec` per height, with whole entries or with an id and a
//!     height alone. They cannot cancel, and no chain could keep one per height.
//! * **Open an epoch**: the first block of an epoch to which all n timers belong.
//! * **Commitment**: blocks that schedule 100, remove 100 and ask for the root: of the queue, and
//!   of the Merkle map that the rest of the state is made of.
//!
//! The memory that glibc gives back to the system depends on what ran before, and so would the page
//! faults of each structure. So the process starts itself again with a heap that keeps its memory.

#![expect(clippy::print_stdout, reason = "memory is a table before criterion's lines")]

use cowboy_engine::{
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Encode, Writer},
        keccak256,
        merkle::Map,
    },
    timer::{Calendar, Due, EPOCH_BLOCKS, Notice, PlaceOf, Queue, RING_BUFFER_SIZE, Timer},
};
use criterion::{BatchSize, BenchmarkId, Criterion, SamplingMode, Throughput};
use hierarchical_hash_wheel_timer::wheels::{
    TimerEntryWithDelay,
    cancellable::{CancellableTimerEntry, QuadWheelWithOverflow},
};
use std::{
    cell::LazyCell,
    collections::BTreeMap,
    env, fs,
    hint::black_box,
    io, mem,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

/// Blocks in an hour and in 30 days, at one block per second.
const SPANS: [(&str, u64); 2] = [("an hour", 3_600), ("30 days", 2_592_000)];
const SIZES: [usize; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Actors for this many timers: about as few as the limit of 1,024 timers each allows.
fn actors(timers: usize) -> Vec<Address> {
    (0..timers as u64 / 1_000).map(address).collect()
}

const PAYLOAD_BYTES: usize = 32;
/// Takes all allocations from a heap that keeps freed memory.
const HEAP: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=64000000000";

/// Pseudo-random, the same in every run.
fn random(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn address(n: u64) -> Address {
    let Hash(bytes) = keccak256(&[&n.to_be_bytes()]);
    Address(*bytes.first_chunk().expect("20 of 32 bytes"))
}

fn timer(n: u64, span: u64, actors: &[Address]) -> Timer {
    let height = Height::new(1 + random(n) % span);
    let actor = actors[(random(n ^ 1 << 40) % actors.len() as u64) as usize];
    Timer {
        id: Hash(
            [0, 1, 2, 3]
                .map(|part| random(n * 4 + part).to_be_bytes())
                .concat()
                .try_into()
                .expect("4 times 8 bytes"),
        ),
        seq: n,
        actor,
        height,
        payload: vec![0; PAYLOAD_BYTES],
        handler: None,
        fee_payer: actor,
        gas_limit: 250_000,
        cell_limit: 50_048,
        promised: None,
        expires_at: Height::new(2_592_000),
        max_fee_per_cycle: Wei::new(2_000),
        max_priority_fee_per_cycle: Wei::new(u128::from(n % 1_000)),
        scheduled_at: Height::GENESIS,
        gba: None,
        bid: None,
    }
}

/// A timer to cancel, with the data that a structure needs for it.
struct Named {
    id: u64,
    position: PlaceOf,
}

/// A structure that finds timers by height.
trait Places {
    /// Whether it can cancel.
    const CANCELS: bool = true;
    fn new(span: u64) -> Self;
    fn schedule(&mut self, notice: &Notice);
    /// Fires everything up to the end. Yields a sum over the fired timers.
    fn fire(&mut self, span: u64) -> u64;
    /// Returns whether the timer was there.
    fn cancel(&mut self, timer: &Named) -> bool;
}

struct Ours(Calendar, Queue);

impl Places for Ours {
    fn new(_: u64) -> Self {
        let mut queue = Queue::default();
        Self(Calendar::rebuild(&mut queue, Height::GENESIS), queue)
    }

    fn schedule(&mut self, notice: &Notice) {
        self.0.schedule(notice);
    }

    fn fire(&mut self, span: u64) -> u64 {
        let mut sum = 0;
        for height in 1..=span {
            self.0.advance(Height::new(height), &mut self.1);
            for index in 0..self.0.due().len() {
                let entry = &self.0.due()[index];
                if entry.is_live() {
                    sum ^= entry.id();
                    self.0.kill(index as u32);
                }
            }
        }
        sum
    }

    fn cancel(&mut self, timer: &Named) -> bool {
        self.0.cancel(&timer.position);
        true
    }
}

type Tree = BTreeMap<(u64, u64), Due>;

impl Places for Tree {
    fn new(_: u64) -> Self {
        Self::new()
    }

    fn schedule(&mut self, notice: &Notice) {
        self.insert((notice.position.height.get(), notice.position.seq), notice.due);
    }

    fn fire(&mut self, span: u64) -> u64 {
        let mut sum = 0;
        for height in 1..=span {
            while let Some(first) = self.first_entry()
                && first.key().0 <= height
            {
                sum ^= first.remove().id();
            }
        }
        sum
    }

    fn cancel(&mut self, timer: &Named) -> bool {
        self.remove(&(timer.position.height.get(), timer.position.seq)).is_some()
    }
}

#[derive(Debug)]
struct Entry {
    id: u64,
    delay: Duration,
    due: Due,
}

impl TimerEntryWithDelay for Entry {
    fn delay(&self) -> Duration {
        self.delay
    }
}

impl CancellableTimerEntry for Entry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }
}

impl Places for QuadWheelWithOverflow<Entry> {
    fn new(_: u64) -> Self {
        Self::new()
    }

    fn schedule(&mut self, notice: &Notice) {
        let delay = Duration::from_millis(notice.position.height.get());
        let entry = Entry { id: notice.due.id(), delay, due: notice.due };
        self.insert(entry).expect("its height is to come");
    }

    fn fire(&mut self, span: u64) -> u64 {
        (1..=span).fold(0, |sum, _| self.tick().iter().fold(sum, |sum, entry| sum ^ entry.due.id()))
    }

    fn cancel(&mut self, timer: &Named) -> bool {
        self.cancel(&timer.id).is_ok()
    }
}

/// A vector per height.
struct Vectors<T>(Vec<Vec<T>>);

trait Kept: Copy {
    fn of(notice: &Notice) -> Self;
    fn id(&self) -> u64;
}

impl Kept for Due {
    fn of(notice: &Notice) -> Self {
        notice.due
    }

    fn id(&self) -> u64 {
        self.id()
    }
}

impl Kept for (u64, u64) {
    fn of(notice: &Notice) -> Self {
        (notice.due.id(), notice.position.height.get())
    }

    fn id(&self) -> u64 {
        self.0
    }
}

impl<T: Kept> Places for Vectors<T> {
    const CANCELS: bool = false;

    fn new(span: u64) -> Self {
        Self((0..=span).map(|_| Vec::new()).collect())
    }

    fn schedule(&mut self, notice: &Notice) {
        self.0[notice.position.height.get() as usize].push(T::of(notice));
    }

    fn fire(&mut self, span: u64) -> u64 {
        let heights = self.0[..=span as usize].iter_mut();
        heights.flat_map(mem::take).fold(0, |sum, entry| sum ^ entry.id())
    }

    fn cancel(&mut self, _: &Named) -> bool {
        false
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = black_box(work());
    (start.elapsed(), result)
}

/// The input of all structures.
struct Input {
    span: u64,
    notices: Vec<Notice>,
    /// The same timers in random order.
    shuffled: Vec<Named>,
    /// The sum over all ids.
    sum: u64,
}

impl Input {
    fn new(size: usize, span: u64) -> Self {
        let actors = actors(size);
        let notices: Vec<Notice> =
            (0..size as u64).map(|n| Notice::of(&timer(n, span, &actors))).collect();
        let named =
            |Notice { due, position, .. }: &Notice| Named { id: due.id(), position: *position };
        let mut shuffled: Vec<Named> = notices.iter().map(named).collect();
        shuffled.sort_unstable_by_key(|timer| random(timer.position.seq << 20));
        let sum = notices.iter().fold(0, |sum, notice| sum ^ notice.due.id());
        Self { span, notices, shuffled, sum }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Schedule,
    Cancel,
    CancelAndPass,
    Fire,
}

impl Work {
    const ALL: [(&str, Self); 4] = [
        ("schedule", Self::Schedule),
        ("cancel", Self::Cancel),
        ("cancel and pass", Self::CancelAndPass),
        ("fire", Self::Fire),
    ];
}

fn measure<P: Places>(input: &Input, work: Work) -> Duration {
    let mut places = P::new(input.span);
    let (schedule, ()) = timed(|| input.notices.iter().for_each(|n| places.schedule(n)));
    if work == Work::Schedule {
        return schedule;
    }
    if work == Work::Fire {
        let (fire, sum) = timed(|| places.fire(input.span));
        assert_eq!(sum, input.sum, "each fires once");
        return fire;
    }
    let (cancel, all) = timed(|| input.shuffled.iter().all(|timer| places.cancel(timer)));
    assert!(all, "all were there");
    if work == Work::Cancel {
        return cancel;
    }
    let (pass, sum) = timed(|| places.fire(input.span));
    assert_eq!(sum, 0, "none fires");
    cancel + pass
}

struct Structure {
    name: &'static str,
    cancels: bool,
    measure: fn(&Input, Work) -> Duration,
}

impl Structure {
    const fn new<P: Places>(name: &'static str) -> Self {
        Self { name, cancels: P::CANCELS, measure: measure::<P> }
    }
}

const STRUCTURES: [Structure; 5] = [
    Structure::new::<Ours>("calendar"),
    Structure::new::<Tree>("btree"),
    Structure::new::<QuadWheelWithOverflow<Entry>>("wheel"),
    Structure::new::<Vectors<Due>>("vectors 48"),
    Structure::new::<Vectors<(u64, u64)>>("vectors 16"),
];

fn places(c: &mut Criterion, most: usize) {
    for (over, span) in SPANS {
        let sizes = SIZES.into_iter().filter(|size| *size <= most);
        // Made when a benchmark first asks for it.
        let inputs: Vec<_> =
            sizes.map(|size| (size, LazyCell::new(move || Input::new(size, span)))).collect();
        for (name, work) in Work::ALL {
            let mut group = c.benchmark_group(format!("{name} over {over}"));
            group.sampling_mode(SamplingMode::Flat).sample_size(10);
            group.warm_up_time(Duration::from_millis(300));
            group.measurement_time(Duration::from_secs(1));
            let can = |structure: &&Structure| {
                structure.cancels || matches!(work, Work::Schedule | Work::Fire)
            };
            for (size, input) in &inputs {
                group.throughput(Throughput::Elements(*size as u64));
                for Structure { name, measure, .. } in STRUCTURES.iter().filter(can) {
                    group.bench_function(BenchmarkId::new(*name, size), |b| {
                        b.iter_custom(|iterations| {
                            (0..iterations).map(|_| measure(input, work)).sum()
                        });
                    });
                }
            }
        }
    }
}

/// The first block of an epoch to which all timers belong.
fn epoch(c: &mut Criterion, most: usize) {
    let mut group = c.benchmark_group("open an epoch");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for size in SIZES.into_iter().filter(|size| *size <= most) {
        let actors = actors(size);
        let notices = LazyCell::new(|| {
            let timers = (0..size as u64).map(|n| {
                // Timers of an epoch's first blocks are in the ring before.
                let timer = timer(n, 2 * EPOCH_BLOCKS - RING_BUFFER_SIZE - 1, &actors);
                Timer { height: timer.height.after(RING_BUFFER_SIZE), ..timer }
            });
            timers.map(|timer| Notice::of(&timer)).collect::<Vec<_>>()
        });
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::new("calendar", size), |b| {
            b.iter_custom(|iterations| {
                let open = |_| {
                    let mut queue = Queue::default();
                    let mut calendar = Calendar::rebuild(&mut queue, Height::GENESIS);
                    notices.iter().for_each(|notice| calendar.schedule(notice));
                    for height in 1..EPOCH_BLOCKS {
                        calendar.advance(Height::new(height), &mut queue);
                    }
                    assert_eq!(calendar.counts().epochs, size as u64, "all wait for the epoch");
                    let (time, ()) =
                        timed(|| calendar.advance(Height::new(EPOCH_BLOCKS), &mut queue));
                    time
                };
                (0..iterations).map(open).sum()
            });
        });
    }
}

/// Bytes of a timer as the Merkle map's value.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Encode for Bytes {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.0);
    }
}

fn commitment(c: &mut Criterion, most: usize) {
    const CHANGES: usize = 100;
    let mut group = c.benchmark_group("commitment");
    group.throughput(Throughput::Elements(2 * CHANGES as u64));
    // About the same bytes as the queue's records.
    let bytes = |timer: &Timer| Bytes([timer.id.0.as_slice(), &[7; 64], &timer.payload].concat());
    for size in [10_000, 1_000_000].into_iter().filter(|size| *size <= most) {
        let actors = actors(size);
        let make = |n: usize| timer(n as u64, 2_592_000, &actors);
        let old: Vec<_> = (0..CHANGES).map(make).collect();
        let new: Vec<_> = (size..size + CHANGES).map(make).collect();
        let queue = LazyCell::new(|| {
            let mut queue = Queue::default();
            for n in 0..size {
                queue.schedule(make(n));
            }
            queue.root();
            // Rebuilding takes the journal.
            drop(Calendar::rebuild(&mut queue, Height::GENESIS));
            queue
        });
        let map = LazyCell::new(|| {
            let mut map = Map::new();
            (0..size).map(make).for_each(|timer| drop(map.insert(timer.id, bytes(&timer))));
            map.root();
            map
        });
        // A state is forked before each block.
        group.bench_function(BenchmarkId::new("queue", size), |b| {
            b.iter_batched(
                || (queue.clone(), new.clone()),
                |(mut queue, new)| {
                    for (old, new) in old.iter().zip(new) {
                        queue.remove(&old.id);
                        queue.schedule(new);
                    }
                    (queue.root(), queue)
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(BenchmarkId::new("merkle map", size), |b| {
            b.iter_batched(
                || map.clone(),
                |mut map| {
                    for (old, new) in old.iter().zip(&new) {
                        map.remove(&old.id);
                        map.insert(new.id, bytes(new));
                    }
                    (map.root(), map)
                },
                BatchSize::PerIteration,
            );
        });
    }
}

/// Resident memory of the process, in bytes.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// The child process that [`memory`] starts: prints bytes per timer of the queue, of the calendar
/// and of both.
fn weigh(size: usize) {
    let actors = actors(size);
    let timers = || (0..size as u64).map(|n| timer(n, 2_592_000, &actors));
    let start = resident();
    // The calendar alone: freed memory does not always leave the process.
    let mut alone = Calendar::rebuild(&mut Queue::default(), Height::GENESIS);
    timers().for_each(|timer| alone.schedule(&Notice::of(&timer)));
    let between = resident();
    let mut queue = Queue::default();
    let mut calendar = Calendar::rebuild(&mut queue, Height::GENESIS);
    for timer in timers() {
        queue.schedule(timer);
        calendar.apply(&mut queue);
    }
    black_box((queue.root(), alone));
    let each = |bytes: u64| bytes as f64 / size as f64;
    let (calendar, both) = (each(between - start), each(resident() - between));
    let both = both - PAYLOAD_BYTES as f64;
    println!("{size:>10} {:>9.1} {calendar:>9.1} {both:>9.1}", both - calendar);
}

fn memory(most: usize) -> io::Result<()> {
    println!("memory, bytes per timer without its payload of 32: queue, calendar, both");
    for size in SIZES.into_iter().filter(|size| *size <= most) {
        Command::new(env::current_exe()?).args(["--weigh", &size.to_string()]).status()?;
    }
    println!();
    Ok(())
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [weighs, size] = arguments.as_slice()
        && weighs == "--weigh"
    {
        weigh(size.parse().map_err(io::Error::other)?);
        return Ok(ExitCode::SUCCESS);
    }
    // Without `--bench` it only has to run.
    let benches = arguments.iter().any(|argument| argument == "--bench");
    let most = match env::var("TIMERS_MOST") {
        Ok(most) => most.parse().map_err(io::Error::other)?,
        Err(_) => SIZES[if benches { 2 } else { 0 }],
    };
    if benches && env::var_os("GLIBC_TUNABLES").is_none() {
        if arguments.len() == 1 {
            memory(most)?;
        }
        let mut again = Command::new(env::current_exe()?);
        again.args(arguments).env("GLIBC_TUNABLES", HEAP);
        return Ok(if again.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut criterion = Criterion::default().configure_from_args();
    places(&mut criterion, most);
    epoch(&mut criterion, most);
    commitment(&mut criterion, most);
    criterion.final_summary();
    Ok(ExitCode::SUCCESS)
}
