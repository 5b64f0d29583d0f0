//! What the system says of its processes: who descends from whom, and who belongs to a group.

use rustix::{
    io::Errno,
    process::{Pid, Signal},
};
use std::{collections::BTreeSet, fs};

/// A process, known by its number and the time of its start: the number alone may be another's
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    process: Pid,
    started: u64,
}

/// A process as it is in `/proc`.
pub(super) struct Stat {
    pub(super) known: Known,
    pub(super) parent: i32,
    group: i32,
    /// It has ended, and its parent has not reaped it.
    pub(super) dead: bool,
}

impl Stat {
    fn read(process: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name before the parenthesis may hold anything; after it: state, parent, group, and
        // as the twentieth the start.
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let dead = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Self { known: Known { process, started }, parent, group, dead })
    }

    /// Of every process that there is; `None`: the system does not tell.
    pub(super) fn all() -> Option<impl Iterator<Item = Self>> {
        Some(numbers()?.filter_map(Self::read))
    }
}

/// The numbers of all processes.
pub(super) fn numbers() -> Option<impl Iterator<Item = Pid>> {
    let processes = fs::read_dir("/proc").ok()?;
    Some(
        processes
            .flatten()
            .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?)),
    )
}

impl Known {
    /// Its number.
    pub(super) fn process(self) -> Pid {
        self.process
    }

    /// Sends the process a signal, if it is still this one.
    pub(super) fn signal(self, signal: Signal) {
        if self.runs() {
            // An error: it has ended meanwhile.
            let _ = rustix::process::kill_process(self.process, signal);
        }
    }

    /// Whether it has not ended.
    pub(super) fn runs(self) -> bool {
        Stat::read(self.process).is_some_and(|stat| stat.known == self && !stat.dead)
    }
}

/// The processes that `process` started, and those that they did, as long as whoever started them
/// has not ended.
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

/// Whether a process of the group runs. The dead that nobody has reaped, which may take long in a
/// container, count only where the system does not tell them apart.
pub(in crate::executor) fn has_members(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
        return false;
    }
    let Some(mut all) = Stat::all() else { return true };
    all.any(|stat| stat.group == group.as_raw_pid() && !stat.dead)
}
