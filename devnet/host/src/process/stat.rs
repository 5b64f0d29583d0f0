//! The system's data on processes: descendants, and members of a group.

use rustix::{
    io::Errno,
    process::{Pid, Signal},
};
use std::{collections::BTreeSet, fs};

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
}

impl Stat {
    fn read(process: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name before the parenthesis may contain anything. After it come state, parent and
        // group; the start time is the twentieth field.
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let dead = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Self { known: KnownProcess { process, started }, parent, group, dead })
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
