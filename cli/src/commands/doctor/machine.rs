//! Checks of the machine: files, cores, memory, programs, the clock.

use super::finding::Finding;
use crate::commands::devnet::saved_plan;
use cowboy_devnet::{
    home::DevnetHome,
    orchestrator::files::{memory_mib, needed},
    topology::{Overrides, Plan, Topology},
};
use cowboy_host::process::{locate, private};
use rustix::process::{Resource, getrlimit};
use std::{
    env, fs,
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime},
};

const SUBJECT: &str = "machine";

/// A step of the clock up to this size is harmless.
const STEP: Duration = Duration::from_millis(250);

/// All checks of the machine, for the largest of the devnets that will run on it.
pub fn check(devnets: &[DevnetHome]) -> Vec<Finding> {
    let stopped = devnets.iter().filter(|devnet| devnet.state().is_ok_and(|state| state.is_down()));
    let plans = stopped.filter_map(|devnet| saved_plan(devnet).ok().flatten());
    let default = || Topology::default().resolve(&Overrides::default(), "", "").ok();
    let largest = plans.max_by_key(needed).or_else(default);
    let mut findings = vec![proc(Path::new("/proc/self/stat"))];
    if let Some(plan) = &largest {
        findings.push(files(plan, getrlimit(Resource::Nofile).maximum));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        findings.push(processors(plan, cores));
        if let Ok(table) = fs::read_to_string("/proc/meminfo") {
            findings.push(memory(plan, &table));
        }
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let sh = ("jobs and steps that name it fail", "put the folder that has it into PATH");
    let python = (
        "jobs in Python fail",
        "install Python 3, or leave such jobs to runners of other machines",
    );
    findings.extend([("sh", sh), ("python3", python)].map(|(program, (what, fix))| {
        match locate(program, &path) {
            Some(_) => Finding::ok("programs", program, "found"),
            None => Finding::warning("programs", program, format!("not found: {what}")).fix(fix),
        }
    }));
    findings.push(match private::can_be_kept_out() {
        Ok(()) => Finding::ok("jobs", SUBJECT, "commands are kept out of the devnets' folder"),
        Err(reason) => {
            let what = format!("commands can open the devnets' keys and tokens: {reason}");
            Finding::warning("jobs", SUBJECT, what)
                .fix("run others' jobs on Linux 5.19 or later with Landlock only")
        }
    });
    findings
}

fn size(plan: &Plan) -> String {
    let (validators, runners) = (plan.validators.len(), plan.runners.len());
    format!("devnet `{}` ({validators} validators, {runners} runners)", plan.name)
}

/// `devnet up` raises the soft limit by itself, so only the hard limit is checked.
fn files(plan: &Plan, hard: Option<u64>) -> Finding {
    let needed = needed(plan);
    match hard {
        None => Finding::ok("files", SUBJECT, "no limit of open files"),
        Some(hard) if hard >= needed => {
            Finding::ok("files", SUBJECT, format!("{hard} open files at most"))
        }
        Some(hard) => {
            let what = format!("{hard} open files at most, {} may take {needed}", size(plan));
            Finding::problem("files", SUBJECT, what)
                .fix(format!("raise the hard limit, which is {hard}: nofile in limits.conf"))
        }
    }
}

fn processors(plan: &Plan, cores: usize) -> Finding {
    let validators = plan.validators.len();
    // A validator needs a fraction of a core; with more than 8 per core, blocks are late.
    if validators <= cores * 8 {
        return Finding::ok("cores", SUBJECT, format!("{cores} for {validators} validators"));
    }
    let what = format!("{cores} for {}: blocks will be late", size(plan));
    Finding::warning("cores", SUBJECT, what).fix("fewer validators, or a longer --block-time")
}

fn memory(plan: &Plan, table: &str) -> Finding {
    let available = table
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<u64>().ok());
    let Some(kib) = available else {
        return Finding::warning("memory", SUBJECT, "the system does not say how much is free");
    };
    let (free, needed) = (kib / 1_024, memory_mib(plan));
    if free >= needed {
        return Finding::ok("memory", SUBJECT, format!("{free} MiB are free"));
    }
    let what = format!("{free} MiB are free, {} may take {needed}", size(plan));
    Finding::warning("memory", SUBJECT, what).fix("stop what is not needed: cowboyctl devnet ls")
}

fn proc(file: &Path) -> Finding {
    match fs::read(file) {
        Ok(_) => Finding::ok("proc", SUBJECT, "/proc can be read"),
        Err(error) => {
            let what = format!("/proc cannot be read ({error}): owners of ports are not shown");
            Finding::warning("proc", SUBJECT, what).fix("mount -t proc proc /proc")
        }
    }
}

/// Detects whether the clock is set while the doctor runs.
pub struct Clock {
    steady: Instant,
    wall: SystemTime,
}

impl Clock {
    pub fn start() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    pub fn check(self) -> Finding {
        stepped(self.steady.elapsed(), self.wall.elapsed().map_err(|back| back.duration()))
    }
}

/// Compares the time that passed on the steady clock with that on the wall clock; `Err` is how far
/// the wall clock went backwards.
fn stepped(steady: Duration, wall: Result<Duration, Duration>) -> Finding {
    let step = match wall {
        Ok(wall) => wall.abs_diff(steady),
        Err(back) => back + steady,
    };
    if step <= STEP {
        return Finding::ok("clock", SUBJECT, "it was not set meanwhile");
    }
    let what = format!("it was set by {} ms meanwhile: times of blocks jump", step.as_millis());
    Finding::warning("clock", SUBJECT, what).fix("let one service set it, slowly: timedatectl")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Severity::{self, Ok as Fine, Problem, Warning};

    fn plan(text: &str) -> Plan {
        let topology = Topology::parse(text, "").unwrap();
        topology.resolve(&Overrides::default(), text, "").unwrap()
    }

    #[test]
    fn a_large_devnet_takes_more_files_than_a_small_one() {
        let small = plan("validators: 1\nrunners: 0\n");
        let large = plan("validators: 12\nrunners: 500\n");
        let check = |plan: &Plan, hard, expected: Severity| {
            let found = files(plan, hard);
            assert_eq!(
                (found.state, found.fix.is_some()),
                (expected, expected != Fine),
                "{found:?}"
            );
        };
        check(&small, Some(1_024), Fine);
        check(&small, None, Fine);
        check(&large, Some(1 << 20), Fine);
        check(&large, Some(2_048), Problem);
    }

    #[test]
    fn few_cores_and_little_memory_are_told() {
        let four = plan("");
        assert_eq!(processors(&four, 1).state, Fine);
        assert_eq!(processors(&plan("validators: 12\n"), 1).state, Warning);
        assert_eq!(memory(&four, "MemTotal: 9 kB\nMemAvailable:  8000000 kB\n").state, Fine);
        assert_eq!(memory(&four, "MemAvailable:  80000 kB\n").state, Warning);
        assert_eq!(memory(&four, "").state, Warning);
    }

    #[test]
    fn a_clock_that_jumps_is_told() {
        let second = Duration::from_secs(1);
        assert_eq!(stepped(second, Ok(second)).state, Fine);
        assert_eq!(stepped(second, Ok(second * 3)).state, Warning);
        assert_eq!(stepped(second * 3, Ok(second)).state, Warning);
        assert_eq!(stepped(second, Err(second)).state, Warning);
    }

    #[test]
    fn a_missing_proc_is_told() {
        assert_eq!(proc(Path::new("/no/such/file")).state, Warning);
    }
}
