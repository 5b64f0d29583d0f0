//! Prices and limits of an actor's work: one table, versioned, part of a chain's parameters (spec
//! chain.md, "Actors").

use super::{
    error::{Depth, ErrorKind, Fault},
    value::Text,
};
use crate::record;

record! {
    /// The price of each kind of work, in cycles unless noted. Changing a number changes receipts,
    /// so it takes a new [`version`](Self::version).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Schedule {
        pub version: u64 = 2,
        /// Per syntax node evaluated.
        pub node: u64 = 10,
        /// Per call, of a function or of a builtin.
        pub call: u64 = 100,
        /// Per step of a loop or a comprehension.
        pub step: u64 = 100,
        /// Bytes that are moved, compared (both sides count) or hashed per cycle. Copying or
        /// comparing an element costs a cycle. Finding a key of a dict costs a cycle, plus one per
        /// halving of the dict.
        pub data_bytes: u64 = 32,
        /// Bytes of a string that are searched for a substring per cycle; each match costs a cycle
        /// more.
        pub search_bytes: u64 = 8,
        /// Bytes of ASCII text that are read character by character per cycle: escapes, formats,
        /// JSON. Case and character classes cost twice as much. Other text costs a cycle per byte.
        pub text_bytes: u64 = 4,
        /// Products of two 64-bit words per cycle: in multiplication, division, and conversion
        /// between binary and decimal of integers beyond 64 bits.
        pub word_products: u64 = 4,
        /// Per KiB of heap allocated. Unreachable values are not given back.
        pub heap_kib: u64 = 10,
        /// Per object made from a value that is not an object: a string for each character of a
        /// string in a loop, a pair for each entry of a dict or of `enumerate` and `zip`.
        pub object: u64 = 2,
        /// Per key of the store read, plus the bytes moved.
        pub storage_read: u64 = 10,
        /// Per key of the store written or deleted, plus a cell per byte of key and value.
        pub storage_write: u64 = 50,
        /// Per message or transfer sent.
        pub message: u64 = 80,
        /// Per timer scheduled, cancelled or extended.
        pub timer: u64 = 200,
        /// Per job submitted.
        pub job: u64 = 500,
        /// Per event or line of log, plus a cell per byte.
        pub emit: u64 = 20,
        /// Per 32 bytes hashed with keccak256, and for the padding.
        pub keccak_word: u64 = 60,
        /// Per module loaded, before any of it is read.
        pub module: u64 = 1_000,
        /// Per token of a module that is parsed.
        pub token: u64 = 20,
    }
}

record! {
    /// Limits of a module and of a call of it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Heap of one call, in bytes.
        pub heap: u64 = 8 << 20,
        /// A string, in bytes.
        pub string: u64 = 1 << 20,
        /// Entries of a list, tuple or dict.
        pub entries: u64 = 65_536,
        /// An integer, in bits.
        pub bits: u64 = 4_096,
        /// Nested function calls.
        pub call_depth: u64 = 64,
        /// Nesting of data that is compared, hashed, printed, checked or turned into JSON.
        pub data_depth: u64 = 64,
        /// A key of the store, in bytes.
        pub key: u64 = 256,
        /// A value of the store, in bytes.
        pub value: u64 = 1 << 20,
        /// Effects of one call: messages, transfers, events, timers, jobs.
        pub effects: u64 = 1_024,
        /// A module's source, in bytes.
        pub source: u64 = 64 << 10,
        /// A module's tokens.
        pub tokens: u64 = 30_000,
        pub brackets: u64 = 64,
        pub blocks: u64 = 32,
        /// Nested operators from a statement to the innermost part of an expression.
        pub operators: u64 = 256,
    }
}

/// A chain's parameters for actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ActorParams {
    pub schedule: Schedule,
    pub limits: Limits,
}
record!(ActorParams { schedule, limits });

/// The kinds of work that cycles are spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Reading and compiling a module.
    Loading,
    /// Syntax nodes, calls, steps of loops.
    Evaluation,
    /// Bytes and elements moved, compared, hashed, searched; arithmetic beyond 64 bits.
    Data,
    Heap,
    Storage,
    /// Messages, transfers, timers, jobs, events, logs.
    Effects,
    Hashing,
}

/// Resources that a call used: cycles by cause, in the order of [`Cause`], and cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    pub loading: u64,
    pub evaluation: u64,
    pub data: u64,
    pub heap: u64,
    pub storage: u64,
    pub effects: u64,
    pub hashing: u64,
    /// Cells: bytes that the chain keeps.
    pub cells: u64,
}
record!(Usage { loading, evaluation, data, heap, storage, effects, hashing, cells });

impl Usage {
    pub fn cycles(&self) -> u64 {
        self.causes().iter().map(|(_, cycles)| cycles).sum()
    }

    pub const fn causes(&self) -> [(&'static str, u64); 7] {
        [
            ("loading", self.loading),
            ("evaluation", self.evaluation),
            ("data", self.data),
            ("heap", self.heap),
            ("storage", self.storage),
            ("effects", self.effects),
            ("hashing", self.hashing),
        ]
    }

    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            loading: self.loading + other.loading,
            evaluation: self.evaluation + other.evaluation,
            data: self.data + other.data,
            heap: self.heap + other.heap,
            storage: self.storage + other.storage,
            effects: self.effects + other.effects,
            hashing: self.hashing + other.hashing,
            cells: self.cells + other.cells,
        }
    }
}

/// The resources that one call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub cycles: u64,
    pub cells: u64,
}

/// Cycles and cells that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub cycles: u64,
    pub cells: u64,
}

impl Spent {
    pub(super) const fn since(self, before: Self) -> Self {
        Self { cycles: self.cycles - before.cycles, cells: self.cells - before.cells }
    }

    pub(super) const fn add(&mut self, more: Self) {
        self.cycles += more.cycles;
        self.cells += more.cells;
    }
}

/// Counts what a call uses and stops it before it exceeds its budget.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    pub(super) schedule: Schedule,
    pub(super) limits: Limits,
    budget: Budget,
    left: u64,
    /// By cause, except evaluation, which is the rest.
    spent: [u64; 7],
    cells: u64,
    heap: u64,
}

impl Meter {
    pub(super) const fn new(params: &ActorParams, budget: Budget) -> Self {
        Self {
            schedule: params.schedule,
            limits: params.limits,
            budget,
            left: budget.cycles,
            spent: [0; 7],
            cells: 0,
            heap: 0,
        }
    }

    /// Pays for evaluation.
    #[inline]
    pub(super) fn step(&mut self, cycles: u64) -> Result<(), Fault> {
        if cycles > self.left {
            return Err(self.out_of_cycles(cycles));
        }
        self.left -= cycles;
        Ok(())
    }

    /// Pays for anything else.
    #[inline]
    pub(super) fn pay(&mut self, cause: Cause, cycles: u64) -> Result<(), Fault> {
        self.step(cycles)?;
        self.spent[cause as usize] += cycles;
        Ok(())
    }

    #[cold]
    fn out_of_cycles(&self, wanted: u64) -> Fault {
        let (limit, short) = (self.budget.cycles, wanted - self.left);
        ErrorKind::OutOfCycles { limit, short }.into()
    }

    /// Pays for `bytes` moved, compared, hashed or searched.
    #[inline]
    pub(super) fn bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        self.pay(Cause::Data, (bytes as u64).div_ceil(self.schedule.data_bytes))
    }

    /// Pays for `count` elements copied or compared.
    #[inline]
    pub(super) fn elements(&mut self, count: usize) -> Result<(), Fault> {
        self.pay(Cause::Data, count as u64)
    }

    /// Pays for `count` objects made from values that are not objects, their heap excluded.
    #[inline]
    pub(super) fn objects(&mut self, count: usize) -> Result<(), Fault> {
        self.pay(Cause::Heap, (count as u64).saturating_mul(self.schedule.object))
    }

    #[inline]
    pub(super) fn search(&mut self, bytes: usize) -> Result<(), Fault> {
        self.pay(Cause::Data, (bytes as u64).div_ceil(self.schedule.search_bytes))
    }

    /// Pays for finding a key among `len`, its hash excluded.
    #[inline]
    pub(super) fn lookup(&mut self, len: usize) -> Result<(), Fault> {
        self.pay(Cause::Data, u64::from(usize::BITS - len.leading_zeros()))
    }

    /// Pays for reading a string character by character.
    #[inline]
    pub(super) fn characters(&mut self, text: &Text) -> Result<(), Fault> {
        let bytes = text.as_str().len();
        if text.is_ascii() { self.text(bytes) } else { self.elements(bytes) }
    }

    /// Pays for `bytes` of ASCII text read character by character.
    #[inline]
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.pay(Cause::Data, (bytes as u64).div_ceil(self.schedule.text_bytes))
    }

    /// Pays for multiplying integers of `a` and `b` 64-bit words.
    #[inline]
    pub(super) fn words(&mut self, a: u64, b: u64) -> Result<(), Fault> {
        self.pay(Cause::Data, a.saturating_mul(b).div_ceil(self.schedule.word_products))
    }

    pub(super) fn keccak(&mut self, bytes: usize) -> Result<(), Fault> {
        let words = bytes as u64 / 32 + 1;
        self.pay(Cause::Hashing, words.saturating_mul(self.schedule.keccak_word))
    }

    #[inline]
    pub(super) fn alloc(&mut self, bytes: u64) -> Result<(), Fault> {
        let before = self.heap;
        let after = before.saturating_add(bytes);
        if after > self.limits.heap {
            return Err(self.out_of_memory(bytes));
        }
        let rate = self.schedule.heap_kib;
        self.pay(Cause::Heap, (after * rate / 1024) - (before * rate / 1024))?;
        self.heap = after;
        Ok(())
    }

    #[cold]
    fn out_of_memory(&self, wanted: u64) -> Fault {
        let limit = self.limits.heap;
        let short = self.heap.saturating_add(wanted) - limit;
        ErrorKind::OutOfMemory { limit, short }.into()
    }

    pub(super) fn cells(&mut self, bytes: usize) -> Result<(), Fault> {
        let after = self.cells.saturating_add(bytes as u64);
        if after > self.budget.cells {
            let limit = self.budget.cells;
            return Err(ErrorKind::OutOfCells { limit, short: after - limit }.into());
        }
        self.cells = after;
        Ok(())
    }

    #[inline]
    pub(super) fn string_fits(&self, bytes: usize) -> Result<(), Fault> {
        Self::fits("a string", bytes as u64, self.limits.string)
    }

    #[inline]
    pub(super) fn entries_fit(&self, entries: usize) -> Result<(), Fault> {
        Self::fits("a list, tuple or dict", entries as u64, self.limits.entries)
    }

    #[inline]
    pub(super) fn fits(what: &'static str, got: u64, limit: u64) -> Result<(), Fault> {
        if got > limit {
            return Err(ErrorKind::ValueTooLarge { what, limit, got }.into());
        }
        Ok(())
    }

    #[inline]
    pub(super) fn bits_fit(&self, bits: u64) -> Result<(), Fault> {
        let limit = self.limits.bits;
        if bits > limit {
            return Err(ErrorKind::IntegerTooLarge { limit, got: bits }.into());
        }
        Ok(())
    }

    #[inline]
    pub(super) fn depth_fits(&self, depth: u64) -> Result<(), Fault> {
        let limit = self.limits.data_depth;
        if depth > limit {
            return Err(ErrorKind::StackOverflow { what: Depth::Data, limit }.into());
        }
        Ok(())
    }

    /// Pays for a call that was counted on its own meter.
    pub(super) fn absorb(&mut self, usage: &Usage) -> Result<(), Fault> {
        let Usage { loading, evaluation, data, heap, storage, effects, hashing, cells } = *usage;
        for (cause, cycles) in [
            (Cause::Loading, loading),
            (Cause::Data, data),
            (Cause::Heap, heap),
            (Cause::Storage, storage),
            (Cause::Effects, effects),
            (Cause::Hashing, hashing),
        ] {
            self.pay(cause, cycles)?;
        }
        self.step(evaluation)?;
        self.cells(usize::try_from(cells).unwrap_or(usize::MAX))
    }

    pub(super) const fn budget(&self) -> Budget {
        self.budget
    }

    pub(super) const fn budget_left(&self) -> Budget {
        Budget { cycles: self.left, cells: self.budget.cells.saturating_sub(self.cells) }
    }

    pub(super) const fn spent(&self) -> Spent {
        Spent { cycles: self.budget.cycles - self.left, cells: self.cells }
    }

    pub(super) const fn cycles_left(&self) -> u64 {
        self.left
    }

    pub(super) const fn heap_used(&self) -> u64 {
        self.heap
    }

    pub(super) fn usage(&self) -> Usage {
        let [loading, _, data, heap, storage, effects, hashing] = self.spent;
        let others: u64 = self.spent.iter().sum();
        Usage {
            loading,
            evaluation: self.budget.cycles - self.left - others,
            data,
            heap,
            storage,
            effects,
            hashing,
            cells: self.cells,
        }
    }
}
