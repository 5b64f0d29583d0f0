//! The system's data on processes: descendants, and members of a group.

use rustix::{
    io::Errno,
    process::{Pid, Signal},
};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _},
};

/// A process, identified by its number and start time, because the number may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownProcess {
    process: Pid,
    started: u64,
}

pub(super) struct Stat {
    pub(super) known: KnownProcess,
    pub(super) parent: i32,
    group: i32,
    /// Whether it has ended but has not been reaped.
    pub(super) dead: bool,
    /// Whether its program's environment is there, or will be: see [`environment`].
    has_environment: bool,
}

impl Stat {
    fn read(process: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name before the parenthesis may contain anything.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        // As proc_pid_stat(5) counts them.
        let field = |number: usize| fields.get(number.checked_sub(3)?).copied();
        let dead = matches!(field(3)?, "Z" | "X");
        let known = KnownProcess { process, started: field(22)?.parse().ok()? };
        // A thread of the kernel and a process that ends have no memory. Code is the last that the
        // kernel notes of a program that it starts.
        let (no_memory, starts) = (field(23)? == "0", field(26)? == "0");
        let no_environment = field(50)? == field(51)?;
        Some(Self {
            known,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            dead,
            has_environment: !dead && !no_memory && (starts || !no_environment),
        })
    }

    /// All processes; `None` if the system does not list them.
    pub(super) fn all() -> Option<impl Iterator<Item = Self>> {
        Some(numbers()?.filter_map(Self::read))
    }
}

pub(super) fn numbers() -> Option<impl Iterator<Item = Pid>> {
    let processes = fs::read_dir("/proc").ok()?;
    Some(
        processes
            .flatten()
            .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?)),
    )
}

impl KnownProcess {
    pub(super) fn process(self) -> Pid {
        self.process
    }

    /// Sends the process a signal unless it has ended or its number was reused.
    pub(super) fn signal(self, signal: Signal) {
        if self.runs() {
            // An error means that it has ended since.
            let _ = rustix::process::kill_process(self.process, signal);
        }
    }

    pub(super) fn runs(self) -> bool {
        Stat::read(self.process).is_some_and(|stat| stat.known == self && !stat.dead)
    }
}

/// The environment of the process's program; empty if it has none or is another user's. `None` at
/// the moment when it starts a program, and the environment is neither the last one nor the next.
pub(super) fn environment(process: Pid) -> Option<Vec<u8>> {
    let Ok(environment) = read_at_once(&format!("/proc/{process}/environ")) else {
        return Some(Vec::new());
    };
    let is_missing = || Stat::read(process).is_some_and(|stat| stat.has_environment);
    (!environment.is_empty() || !is_missing()).then_some(environment)
}

/// A second read might be of nothing, because the process has started a program since the first.
fn read_at_once(path: &str) -> io::Result<Vec<u8>> {
    let mut length = 1 << 14;
    loop {
        let mut environment = vec![0; length];
        let read = File::open(path)?.read(&mut environment)?;
        if read < length {
            environment.truncate(read);
            return Ok(environment);
        }
        length *= 2;
    }
}

/// All descendants of `process` that are connected to it by living processes.
pub(super) fn descendants(process: Pid) -> Vec<Stat> {
    let mut left: Vec<_> = Stat::all().into_iter().flatten().collect();
    let (mut ancestors, mut found) = (BTreeSet::from([process.as_raw_pid()]), Vec::new());
    loop {
        let (more, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|stat| ancestors.contains(&stat.parent));
        if more.is_empty() {
            return found;
        }
        ancestors.extend(more.iter().map(|stat| stat.known.process.as_raw_pid()));
        found.extend(more);
        left = others;
    }
}

/// Whether a process of the group runs. Unreaped dead processes, which may stay long in a
/// container, count only if the system does not tell them apart.
pub fn has_members(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
        return false;
    }
    let Some(mut all) = Stat::all() else { return true };
    all.any(|stat| stat.group == group.as_raw_pid() && !stat.dead)
}
