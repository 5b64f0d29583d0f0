//! What a module's functions spend, line by line: recorded while they run, for profiles and
//! coverage. A record changes no result and no usage.
//!
//! A spot is a line of a function as part of a call stack: it has the spot of the line that called
//! the function. Each operation's cycles and cells count for the spot that it belongs to, so that
//! all spots and [`Profile::outside`] add up to the usage of the calls.

use super::{
    gas::Spent,
    syntax::{Op, Program},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

/// Spots of one record. What comes after them counts for the spots that called it.
pub const MOST_SPOTS: usize = 16_384;

/// A line of a function, as part of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The index of the spot that called the function; absent: the chain did. It is lower than this
    /// spot's.
    pub by: Option<usize>,
    pub function: String,
    pub line: u32,
    /// How often the line's first operation ran.
    pub times: u64,
    pub spent: Spent,
}

/// What calls of a module spent, by line and call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// In the order in which they were first reached.
    pub spots: Vec<Spot>,
    /// What belongs to no line: finding the handler, and its result as JSON.
    pub outside: Spent,
}

/// Identifies a spot: the spot that called, the function, the line.
type Place = (Option<u32>, u32, u32);

#[derive(Clone, Debug)]
struct Visits {
    place: Place,
    times: u64,
    spent: Spent,
}

/// What has been recorded.
#[derive(Clone, Debug, Default)]
struct LineRecord {
    spots: Vec<Visits>,
    known: BTreeMap<Place, u32>,
    /// Per conditional jump, how often execution went on behind it, and how often elsewhere.
    jumps: BTreeMap<u32, [u64; 2]>,
    /// Calls of each function.
    calls: BTreeMap<u32, u64>,
    outside: Spent,
}

impl LineRecord {
    /// The spot of a place, or the one that called if there are too many.
    fn spot(&mut self, place: Place) -> u32 {
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        match place.0 {
            Some(by) if self.spots.len() >= MOST_SPOTS => by,
            _ => {
                let index = self.spots.len() as u32;
                self.spots.push(Visits { place, times: 0, spent: Spent::default() });
                self.known.insert(place, index);
                index
            }
        }
    }

    fn spent(&mut self, at: Option<u32>) -> &mut Spent {
        match at {
            Some(spot) => &mut self.spots[spot as usize].spent,
            None => &mut self.outside,
        }
    }

    fn add(&mut self, other: Self) {
        let mut renamed = Vec::with_capacity(other.spots.len());
        for Visits { place: (by, code, line), times, spent } in other.spots {
            let by = by.map(|by: u32| renamed[by as usize]);
            let index = self.spot((by, code, line));
            renamed.push(index);
            let spot = &mut self.spots[index as usize];
            spot.times += times;
            spot.spent.add(spent);
        }
        for (jump, [on, off]) in other.jumps {
            let all = self.jumps.entry(jump).or_default();
            *all = [all[0] + on, all[1] + off];
        }
        for (code, calls) in other.calls {
            *self.calls.entry(code).or_default() += calls;
        }
        self.outside.add(other.outside);
    }
}

/// The line of each operation, and whether it is the first of its line in its function.
#[derive(Debug)]
struct Places(Vec<(u32, bool)>);

impl Places {
    fn of(program: &Program) -> Self {
        let mut places = Vec::with_capacity(program.ops.len());
        let mut seen = BTreeSet::new();
        for (pc, code) in (0..program.ops.len()).zip(program.owners()) {
            let line = program.position(pc).line;
            let first = moves(program.ops[pc]) && seen.insert((code, line));
            places.push((line, first));
        }
        Self(places)
    }
}

/// Whether an operation is on a line that the author wrote; the others are on the line where their
/// function or statement begins.
const fn moves(op: Op) -> bool {
    !matches!(op, Op::End | Op::Jump(_) | Op::EndLoop)
}

/// Whether an operation continues in one of two places.
const fn decides(op: Op) -> bool {
    matches!(
        op,
        Op::JumpIfFalse(_)
            | Op::JumpIfTrue(_)
            | Op::JumpIfFalseOrPop(_)
            | Op::JumpIfTrueOrPop(_)
            | Op::Next(_)
    )
}

/// What the calls of a module record together. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct LineRecorder {
    places: Arc<Places>,
    record: Arc<Mutex<LineRecord>>,
}

impl LineRecorder {
    pub(super) fn new(program: &Program) -> Self {
        Self { places: Arc::new(Places::of(program)), record: Arc::default() }
    }

    pub(super) fn begin(&self) -> Box<Tracker> {
        Box::new(Tracker {
            places: Arc::clone(&self.places),
            record: LineRecord::default(),
            open: Vec::new(),
            seen: Spent::default(),
            last: Last::Other,
        })
    }

    pub(super) fn end(&self, mut tracker: Tracker, spent: Spent) {
        tracker.count(spent);
        self.record.lock().unwrap_or_else(PoisonError::into_inner).add(tracker.record);
    }

    pub(super) fn profile(&self, program: &Program) -> Profile {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let spots = record.spots.iter().map(|visits| {
            let ((by, code, line), times, spent) = (visits.place, visits.times, visits.spent);
            let function = program.name(program.functions[code as usize].name).to_owned();
            Spot { by: by.map(|by| by as usize), function, line, times, spent }
        });
        Profile { spots: spots.collect(), outside: record.outside }
    }

    /// How much of some functions ran.
    pub(super) fn coverage(&self, program: &Program, of: &[u32]) -> Coverage {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let mut coverage = Coverage::default();
        for &code in of {
            let function = &program.functions[code as usize];
            coverage.functions.push(CoveredFunction {
                name: program.name(function.name).to_owned(),
                line: program.lines.position(function.offset).line,
                calls: record.calls.get(&code).copied().unwrap_or_default(),
            });
        }
        let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
        for (pc, code) in (0..).zip(program.owners()) {
            if of.contains(&code) && self.places.0[pc].1 {
                lines.entry(self.places.0[pc].0).or_default();
            }
            if of.contains(&code) && decides(program.ops[pc]) {
                let counts = record.jumps.get(&(pc as u32)).copied();
                coverage.branches.push(CoveredBranch { line: self.places.0[pc].0, counts });
            }
        }
        for visits in &record.spots {
            let (_, code, line) = visits.place;
            if of.contains(&code) {
                lines.entry(line).and_modify(|times| *times += visits.times);
            }
        }
        coverage.lines = lines.into_iter().collect();
        coverage.functions.sort_by_key(|function| function.line);
        coverage.branches.sort_by_key(|branch| branch.line);
        coverage
    }
}

/// What a machine did last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Decided(u32),
    Returned,
    Other,
}

/// Records one machine.
#[derive(Debug)]
pub(super) struct Tracker {
    places: Arc<Places>,
    record: LineRecord,
    /// Per frame, the spot that it is at.
    open: Vec<u32>,
    /// What had been spent before the last operation.
    seen: Spent,
    last: Last,
}

impl Tracker {
    /// Records that the operation at `pc` of the function `code` is next, in the innermost of
    /// `depth` frames, after `spent`.
    pub(super) fn at(
        &mut self,
        program: &Program,
        depth: usize,
        (code, pc): (u32, usize),
        spent: Spent,
    ) {
        self.count(spent);
        let op = program.ops[pc];
        if let Last::Decided(jump) = self.last {
            let elsewhere = usize::from(pc != jump as usize + 1);
            self.record.jumps.entry(jump).or_default()[elsewhere] += 1;
        }
        let begins = program.functions[code as usize].entry as usize == pc;
        if self.open.len() < depth || (begins && self.last == Last::Returned) {
            *self.record.calls.entry(code).or_default() += 1;
        }
        self.last = match op {
            Op::Return | Op::End => Last::Returned,
            op if decides(op) => Last::Decided(pc as u32),
            _ => Last::Other,
        };
        self.open.truncate(depth);
        let (line, first) = self.places.0[pc];
        if !moves(op) && self.open.len() == depth {
            return;
        }
        let by = depth.checked_sub(2).and_then(|outer| self.open.get(outer)).copied();
        let here = self.record.spot((by, code, line));
        self.open.truncate(depth.saturating_sub(1));
        self.open.push(here);
        if first {
            self.record.spots[here as usize].times += 1;
        }
    }

    /// Counts what was spent since for the spot that is open.
    fn count(&mut self, spent: Spent) {
        let since = spent.since(self.seen);
        self.seen = spent;
        self.record.spent(self.open.last().copied()).add(since);
    }

    /// Records that the outermost function has returned: what follows is outside of it.
    pub(super) fn leave(&mut self, depth: usize, spent: Spent) {
        self.count(spent);
        self.open.truncate(depth);
    }
}

/// How much of a module ran: its functions, except tests and the top level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// By line.
    pub functions: Vec<CoveredFunction>,
    /// Lines with code, in order, and how often the first operation of each ran.
    pub lines: Vec<(u32, u64)>,
    /// By line.
    pub branches: Vec<CoveredBranch>,
}

/// A function and the number of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredFunction {
    pub name: String,
    pub line: u32,
    pub calls: u64,
}

/// A place where execution continues in one of two ways: a condition, or a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredBranch {
    pub line: u32,
    /// How often it went each way: into the code that follows, and past it. Absent if it was never
    /// reached.
    pub counts: Option<[u64; 2]>,
}

/// The functions of a program that count for coverage: all but the top level and tests, and what is
/// inside those.
pub(super) fn covered(program: &Program, is_test: impl Fn(&str) -> bool) -> Vec<u32> {
    let owners: Vec<_> = program.owners().collect();
    let mut covered = Vec::new();
    let mut open = vec![0];
    while let Some(outer) = open.pop() {
        for (op, _) in program.ops.iter().zip(&owners).filter(|(_, owner)| **owner == outer) {
            let Op::Function(code) = *op else { continue };
            let name = program.name(program.functions[code as usize].name);
            if outer != 0 || !is_test(name) {
                covered.push(code);
                open.push(code);
            }
        }
    }
    covered.sort_unstable();
    covered
}
