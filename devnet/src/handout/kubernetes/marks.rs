//! How a devnet's process starts and ends the node in a pod: files in the pod's `/tmp`, and lines
//! in its log.
//!
//! ```text
//! /tmp/go      N [ARGUMENT…]   run the node, as its run N, with these arguments more
//! /tmp/run     N [ARGUMENT…]   the run that was begun last
//! /tmp/pid     PID             the node's process
//! #run N                       the node has been started
//! #ended N CODE                the node has ended; CODE is above 128 after a signal
//! ```
//!
//! A pod waits at first, also one that replaces another.

/// What the shell of a pod tells in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMark {
    Begun { run: u64 },
    Ended { run: u64, code: i32 },
}

/// The first process of a pod's container: the node's program and arguments are its own.
pub(super) const KEEPER: &str = r##"rm -f /tmp/go /tmp/run /tmp/pid
trap 'leave=1; [ -z "$node" ] || kill -TERM "$node"' TERM
while [ -z "$leave" ]; do
    if [ ! -e /tmp/go ]; then
        sleep 0.1
        continue
    fi
    mv /tmp/go /tmp/run
    read -r run more </tmp/run
    cowboyctl "$@" $more &
    node=$!
    echo "$node" >/tmp/pid
    echo "#run $run" >&2
    wait "$node"
    code=$?
    # A trap ends a wait.
    while kill -0 "$node" 2>/dev/null; do
        wait "$node"
        code=$?
    done
    node=
    rm -f /tmp/pid
    echo "#ended $run $code" >&2
done
"##;

impl RunMark {
    /// The mark in a line of the log.
    pub fn of(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix('#')?.split(' ');
        let (word, run) = (words.next()?, words.next()?.parse().ok()?);
        let mark = match word {
            "run" => Self::Begun { run },
            "ended" => Self::Ended { run, code: words.next()?.parse().ok()? },
            _ => return None,
        };
        words.next().is_none().then_some(mark)
    }

    /// The shell command that begins a run, after the one before has ended. A shell that has just
    /// been started may remove what it is asked, and is asked again.
    pub fn begin(run: u64, more: &str) -> String {
        format!(
            "{}; for look in $(seq 100); do \
             {{ read -r run more </tmp/run; }} 2>/dev/null && [ \"$run\" = {run} ] && exit 0; \
             [ -e /tmp/go ] || {{ echo '{run} {more}' >/tmp/go.new && mv /tmp/go.new /tmp/go; }}; \
             sleep 0.1; done; echo 'the shell of the pod begins no run' >&2; exit 1",
            Self::end()
        )
    }

    /// The shell command that ends the node, and waits for that for 10 seconds.
    pub fn end() -> String {
        let (go_on, end) = (Self::signal("CONT"), Self::signal("TERM"));
        format!(
            "{go_on}; {end}; for look in $(seq 100); do [ -e /tmp/pid ] || break; sleep 0.1; done"
        )
    }

    /// The shell command that sends a signal to the node, if it runs.
    pub fn signal(name: &str) -> String {
        format!("[ ! -e /tmp/pid ] || kill -{name} \"$(cat /tmp/pid)\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

    #[test]
    fn marks_are_whole_lines() {
        assert_eq!(RunMark::of("#run 7"), Some(RunMark::Begun { run: 7 }));
        assert_eq!(RunMark::of("#ended 7 137"), Some(RunMark::Ended { run: 7, code: 137 }));
        for line in ["", "#", "#run", "#run x", "#run 7 8", "#ended 7", " #run 7", "#went 7"] {
            assert_eq!(RunMark::of(line), None, "{line}");
        }
    }

    #[test]
    fn a_pods_shell_runs_a_node_when_asked_and_ends_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display().to_string();
        let program = folder.path().join("cowboyctl");
        fs::write(&program, "#!/bin/sh\necho \"node $*\" >&2\nexec sleep 1000\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&program, mode).unwrap();
        let here = |script: &str| script.replace("/tmp/", &format!("{at}/"));
        let mut keeper = Command::new("sh")
            .args(["-c", &here(KEEPER), "cowboyctl", "node", "run"])
            .env("PATH", format!("{at}:{}", std::env::var("PATH").unwrap()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(keeper.stderr.take().unwrap()).lines();
        let mut next = |wanted: &dyn Fn(&str) -> bool| {
            lines.by_ref().map(Result::unwrap).find(|line| wanted(line)).unwrap()
        };
        let shell = |script: &str| {
            assert!(Command::new("sh").args(["-c", &here(script)]).status().unwrap().success());
        };
        for (run, signal, code) in [(1, "KILL", 137), (2, "TERM", 143)] {
            shell(&RunMark::begin(run, "--resync"));
            let words = [format!("#run {run}"), "node node run --resync".to_owned()];
            // They come from two processes, in either order.
            for _ in &words {
                next(&|line| words.iter().any(|word| word == line));
            }
            shell(&RunMark::signal(signal));
            let ended = next(&|line| line.starts_with("#ended"));
            assert_eq!(RunMark::of(&ended), Some(RunMark::Ended { run, code }));
        }
        shell(&RunMark::signal("TERM"));
        let pid = rustix::process::Pid::from_child(&keeper);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(keeper.wait().unwrap().success());
    }
}
