//! What timers cost to keep: `cargo bench -p cowboy-engine --bench timers -- [MOST] [ONLY]`, with
//! at most so many timers, and `memory`, `commitment` or a structure's name alone.
//!
//! Three things are measured, each printed as a table. Every figure is the least of some runs in
//! this process, two where there are ten million timers: criterion's repetitions would take hours
//! at that size.
//!
//! * **Places**: nanoseconds per timer to schedule n of them, to cancel all in random order, to
//!   cancel all and go through all blocks, and to fire all block by block; over an hour and over
//!   30 days. The third is there because some only mark what is cancelled and leave the rest of
//!   the work, and the memory, to the blocks that go by. All structures are given the same timers
//!   in the same order, keep the same 48 bytes for each (but for `vectors 16`), and hand them out
//!   at their heights. What is fired is summed up; ours is also taken out of the carry-over. The
//!   calendar is without the commitment, but gives accounts their numbers as on a chain.
//!   - `btree`: `BTreeMap` from height and order to entry.
//!   - `wheel`: the cancellable hierarchical wheel of `hierarchical_hash_wheel_timer`, which looks
//!     ids up in a hash map.
//!   - `delay queue`: that of `tokio-util`, on a clock that is moved to the end before firing, so
//!     that it has no blocks to go through.
//!   - `vectors 48`, `vectors 16`: a bare `Vec` per height, with whole entries or with an id and a
//!     height alone. They cannot cancel, and no chain could keep one per height.
//! * **Commitment**: microseconds per changed timer where each block schedules 100, removes 100 and
//!   asks for the root: the queue, and the Merkle map that the rest of the state is made of.
//! * **Memory**: resident bytes per timer of queue and calendar together, without the payload, in
//!   a process of their own.

use cowboy_engine::{
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Encode, Writer},
        keccak256,
        merkle::Map,
    },
    timer::{Calendar, Due, Notice, Position, Queue, Timer},
};
use hierarchical_hash_wheel_timer::wheels::{
    TimerEntryWithDelay,
    cancellable::{CancellableTimerEntry, QuadWheelWithOverflow},
};
use std::{
    collections::BTreeMap,
    env, fs,
    future::poll_fn,
    hint::black_box,
    io::{self, Write, stdout},
    mem,
    process::Command,
    time::{Duration, Instant},
};
use tokio_util::time::{DelayQueue, delay_queue};

/// Blocks of an hour and of 30 days, at a block a second.
const SPANS: [(&str, u64); 2] = [("an hour", 3_600), ("30 days", 2_592_000)];
const SIZES: [usize; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Actors that so many timers are spread over: about as few as the limit of 1,024 each allows.
fn actors(timers: usize) -> Vec<Address> {
    (0..(timers as u64 / 1_000).max(1_000)).map(address).collect()
}

const PAYLOAD_BYTES: usize = 32;

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
        expires_at: Height::new(2_592_000),
        max_fee_per_cycle: Wei::new(2_000),
        max_priority_fee_per_cycle: Wei::new(u128::from(n % 1_000)),
        scheduled_at: Height::GENESIS,
        gba: None,
        bid: None,
    }
}

/// What a structure is told of a timer that it is to cancel.
struct Named {
    id: u64,
    position: Position,
}

/// What a structure that finds timers by height does.
trait Places {
    fn new(span: u64) -> Self;
    fn schedule(&mut self, notice: &Notice);
    /// Yields a sum over what fired by the end.
    fn fire(&mut self, span: u64) -> u64;
    /// `None` where it cannot.
    fn cancel(&mut self, timer: &Named) -> Option<()>;
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
                    sum ^= entry.id;
                    self.0.kill(index as u32);
                }
            }
        }
        sum
    }

    fn cancel(&mut self, timer: &Named) -> Option<()> {
        self.0.cancel(&timer.position);
        Some(())
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
                sum ^= first.remove().id;
            }
        }
        sum
    }

    fn cancel(&mut self, timer: &Named) -> Option<()> {
        self.remove(&(timer.position.height.get(), timer.position.seq)).map(drop)
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
        let entry = Entry { id: notice.due.id, delay, due: notice.due };
        self.insert(entry).expect("its height is to come");
    }

    fn fire(&mut self, span: u64) -> u64 {
        (1..=span).fold(0, |sum, _| self.tick().iter().fold(sum, |sum, entry| sum ^ entry.due.id))
    }

    fn cancel(&mut self, timer: &Named) -> Option<()> {
        self.cancel(&timer.id).ok()
    }
}

/// A delay queue, and its keys by the timers' order.
struct Delays {
    runtime: tokio::runtime::Runtime,
    queue: DelayQueue<Due>,
    start: tokio::time::Instant,
    keys: Vec<delay_queue::Key>,
}

impl Places for Delays {
    fn new(_: u64) -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime of one thread starts");
        let (queue, start) =
            runtime.block_on(async { (DelayQueue::new(), tokio::time::Instant::now()) });
        Self { runtime, queue, start, keys: Vec::new() }
    }

    fn schedule(&mut self, notice: &Notice) {
        let _entered = self.runtime.enter();
        let when = self.start + Duration::from_millis(notice.position.height.get());
        self.keys.push(self.queue.insert_at(notice.due, when));
    }

    fn fire(&mut self, span: u64) -> u64 {
        let Self { runtime, queue, .. } = self;
        runtime.block_on(async {
            tokio::time::advance(Duration::from_millis(span + 1)).await;
            // Without a budget, after which a task yields to others.
            let drained = tokio::task::unconstrained(async {
                let mut sum = 0;
                while let Some(expired) = poll_fn(|context| queue.poll_expired(context)).await {
                    sum ^= expired.get_ref().id;
                }
                sum
            });
            drained.await
        })
    }

    fn cancel(&mut self, timer: &Named) -> Option<()> {
        let _entered = self.runtime.enter();
        self.queue.try_remove(&self.keys[timer.position.seq as usize]).map(drop)
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
        self.id
    }
}

impl Kept for (u64, u64) {
    fn of(notice: &Notice) -> Self {
        (notice.due.id, notice.position.height.get())
    }

    fn id(&self) -> u64 {
        self.0
    }
}

impl<T: Kept> Places for Vectors<T> {
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

    fn cancel(&mut self, _: &Named) -> Option<()> {
        None
    }
}

/// Whatever else the machine does only adds to a time.
fn least(times: Vec<Duration>) -> Duration {
    times.into_iter().min().unwrap_or_default()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = black_box(work());
    (start.elapsed(), result)
}

/// Nanoseconds per timer to schedule, to cancel, to cancel and be rid of, to fire.
type Figures = [Option<f64>; 4];

fn measure<P: Places>(notices: &[Notice], shuffled: &[Named], span: u64) -> Figures {
    let runs = (5_000_000 / notices.len()).clamp(2, 50);
    let mut times = [const { Vec::new() }; 4];
    let expected = notices.iter().fold(0, |sum, notice| sum ^ notice.due.id);
    for _ in 0..runs {
        for cancels in [false, true] {
            let mut places = P::new(span);
            let (time, ()) = timed(|| notices.iter().for_each(|n| places.schedule(n)));
            times[0].push(time);
            if cancels {
                let cancel = |timer| places.cancel(timer);
                let (time, cancelled) = timed(|| shuffled.iter().map_while(cancel).count());
                if cancelled > 0 {
                    assert_eq!(cancelled, notices.len());
                    let (after, sum) = timed(|| places.fire(span));
                    assert_eq!(sum, 0, "none fires");
                    times[1].push(time);
                    times[2].push(time + after);
                }
            } else {
                let (time, sum) = timed(|| places.fire(span));
                assert_eq!(sum, expected, "each fires once");
                times[3].push(time);
            }
        }
    }
    times.map(|times| {
        (!times.is_empty()).then(|| least(times).as_secs_f64() * 1e9 / notices.len() as f64)
    })
}

type Measure = fn(&[Notice], &[Named], u64) -> Figures;

const STRUCTURES: [(&str, Measure); 6] = [
    ("calendar", measure::<Ours>),
    ("btree", measure::<Tree>),
    ("wheel", measure::<QuadWheelWithOverflow<Entry>>),
    ("delay queue", measure::<Delays>),
    ("vectors 48", measure::<Vectors<Due>>),
    ("vectors 16", measure::<Vectors<(u64, u64)>>),
];

/// `only`: what a structure's name contains.
fn places(out: &mut impl Write, most: usize, only: &str) -> io::Result<()> {
    for (name, span) in SPANS {
        writeln!(
            out,
            "\nplaces over {name}, ns per timer: schedule, cancel, cancel and pass, fire"
        )?;
        for size in SIZES.into_iter().filter(|size| *size <= most) {
            let actors = actors(size);
            let notices: Vec<Notice> =
                (0..size as u64).map(|n| Notice::of(&timer(n, span, &actors))).collect();
            let named =
                |Notice { due, position, .. }: &Notice| Named { id: due.id, position: *position };
            let mut shuffled: Vec<Named> = notices.iter().map(named).collect();
            shuffled.sort_unstable_by_key(|timer| random(timer.position.seq << 20));
            for (structure, measure) in STRUCTURES.iter().filter(|(name, _)| name.contains(only)) {
                let figures = measure(&notices, &shuffled, span)
                    .map(|figure| figure.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.1}")));
                let [schedule, cancel, pass, fire] = figures;
                let figures = format!("{schedule:>9} {cancel:>9} {pass:>9} {fire:>9}");
                writeln!(out, "{size:>10} {structure:<12} {figures}")?;
            }
        }
    }
    Ok(())
}

/// Bytes of a timer as the Merkle map's value.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Encode for Bytes {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.0);
    }
}

fn commitment(out: &mut impl Write, most: usize) -> io::Result<()> {
    const CHANGES: u64 = 100;
    const BLOCKS: u64 = 20;
    writeln!(out, "\ncommitment, µs per changed timer: queue, Merkle map")?;
    for size in [10_000, 1_000_000].into_iter().filter(|size| *size <= most) {
        let actors = actors(size);
        let make = |n| timer(n, 2_592_000, &actors);
        // The same bytes as the queue's records have, about.
        let bytes =
            |timer: &Timer| Bytes([timer.id.0.as_slice(), &[7; 64], &timer.payload].concat());
        let (mut queue, mut map) = (Queue::default(), Map::new());
        let mut calendar = Calendar::rebuild(&mut queue, Height::GENESIS);
        for n in 0..size as u64 {
            let timer = make(n);
            map.insert(timer.id, bytes(&timer));
            queue.schedule(timer);
        }
        calendar.apply(&mut queue);
        black_box((queue.root(), map.root()));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for block in 0..BLOCKS {
            let old: Vec<_> = (block * CHANGES..).take(CHANGES as usize).map(make).collect();
            let new: Vec<_> =
                (size as u64 + block * CHANGES..).take(CHANGES as usize).map(make).collect();
            // A state is forked before each block.
            let before = (queue.clone(), map.clone());
            ours.push(
                timed(|| {
                    for (old, new) in old.iter().zip(&new) {
                        queue.remove(&old.id);
                        queue.schedule(new.clone());
                    }
                    queue.root()
                })
                .0,
            );
            theirs.push(
                timed(|| {
                    for (old, new) in old.iter().zip(&new) {
                        map.remove(&old.id);
                        map.insert(new.id, bytes(new));
                    }
                    map.root()
                })
                .0,
            );
            drop(before);
            calendar.apply(&mut queue);
        }
        let [ours, theirs] =
            [ours, theirs].map(|times| least(times).as_secs_f64() * 1e6 / (2 * CHANGES) as f64);
        writeln!(out, "{size:>10} {ours:>9.2} {theirs:>9.2}")?;
    }
    Ok(())
}

/// Bytes that the process has in memory.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// The child process that [`memory`] starts: prints bytes per timer of the queue, of the calendar
/// and of both.
fn weigh(out: &mut impl Write, size: usize) -> io::Result<()> {
    let actors = actors(size);
    let timers = || (0..size as u64).map(|n| timer(n, 2_592_000, &actors));
    let start = resident();
    // One by itself: what is freed does not always leave the process.
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
    writeln!(out, "{size:>10} {:>9.1} {calendar:>9.1} {both:>9.1}", both - calendar)
}

fn memory(out: &mut impl Write, most: usize) -> io::Result<()> {
    writeln!(out, "\nmemory, bytes per timer beside a payload of 32: queue, calendar, both")?;
    out.flush()?;
    for size in SIZES.into_iter().filter(|size| *size <= most) {
        Command::new(env::current_exe()?).args(["--weigh", &size.to_string()]).status()?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut out = stdout().lock();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let size = arguments.iter().find_map(|argument| argument.parse::<usize>().ok());
    if arguments.iter().any(|argument| argument == "--weigh") {
        return weigh(&mut out, size.unwrap_or(SIZES[0]));
    }
    if arguments.iter().any(|argument| argument == "--list") {
        // It has no tests.
        return Ok(());
    }
    // Without `--bench` it only has to run.
    let benches = arguments.iter().any(|argument| argument == "--bench");
    let most = size.unwrap_or(if benches { SIZES[3] } else { SIZES[0] });
    let only = arguments.iter().find(|argument| argument.starts_with(|c: char| c.is_alphabetic()));
    match only.map(String::as_str) {
        Some("memory") => memory(&mut out, most),
        Some("commitment") => commitment(&mut out, most),
        Some(structure) => places(&mut out, most, structure),
        None => {
            memory(&mut out, most)?;
            commitment(&mut out, most)?;
            places(&mut out, most, "")
        }
    }
}
