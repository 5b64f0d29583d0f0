//! The processor time of the dashboard, and its reaction time to a key:
//! `cargo bench -p cowboyctl --bench dashboard`.
//!
//! It runs a real devnet of 1,000 runners on which timers make some 100 events per second, and the
//! dashboard on a terminal. For each pane it measures the processor time of the dashboard's process
//! without input, and the time from a key to its effect on the screen: `?` opens and `esc` closes
//! the list of keys. The devnet runs on the same processors, so its processor time is shown, too.
//! `COWBOYCTL_BENCH_RUNNERS` sets another number of runners.

#[path = "../../tests/devnet/terminal.rs"]
#[expect(clippy::unwrap_used, reason = "it is written for tests")]
mod terminal;

/// The terminal's requirements on its users.
mod support {
    use std::time::Duration;

    /// Time limit for a picture.
    pub const PATIENCE: Duration = Duration::from_secs(60);
}

use std::{
    env, fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};
use terminal::Terminal;

/// Actors whose timers fire in every block, with four events each. A devnet of a thousand runners
/// makes little more than one block a second on two cores.
const HEARTS: usize = 20;

/// The sizes of the terminal, in columns and rows.
const SIZES: [(u16, u16); 2] = [(200, 60), (80, 24)];

/// How long a pane is measured, and shown before that, in blocks.
const WATCHED: &str = "+15";
const SHOWN: &str = "+4";

/// Number of keys pressed on a pane.
const KEYS: usize = 40;

fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cowboyctl"));
    command.args(args).env("COWBOYCTL_HOME", home).env_remove("NO_COLOR");
    command.env("COWBOYCTL_CONFIG", "/dev/null");
    command
}

/// The output of a command.
fn told(home: &Path, args: &[&str]) -> String {
    let output = command(home, args).output().expect("the binary runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The pid of the devnet's process.
fn devnet(home: &Path) -> u32 {
    told(home, &["devnet", "status", "-o", "json", "--jq", ".pid"]).parse().expect("a pid")
}

/// The processor time that a process has used.
fn used(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("Linux tells");
    // The name may have spaces, and ends with the last parenthesis.
    let fields: Vec<_> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_millis(ticks * 1_000 / per_second)
}

/// Starts the devnet and the actors that make events.
fn boot(home: &Path, runners: &str) {
    let up = ["devnet", "up", "--detach", "--timeout", "10m", "--block-time", "250ms"];
    told(home, &[&up[..], &["--runners", runners]].concat());
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/actors/heartbeat.star");
    for _ in 0..HEARTS {
        let actor = told(home, &["--quiet", "actor", "deploy", source]);
        told(home, &["account", "fund", &actor, "10000cby"]);
        told(home, &["timer", "schedule", &actor, "--every", "1", "--wait"]);
    }
}

/// Events of a block, and blocks per second.
fn pace(home: &Path) -> (f64, f64) {
    let head = || -> u64 {
        told(home, &["chain", "head", "-o", "json", "--jq", ".height"]).parse().expect("a height")
    };
    let (start, first) = (Instant::now(), head());
    told(home, &["chain", "wait", WATCHED]);
    let last = head();
    let blocks = (last - first) as f64;
    let seconds = start.elapsed().as_secs_f64();
    let events = (first + 1..=last).map(|height| {
        let height = height.to_string();
        let args = ["chain", "block", &height, "-o", "json", "--jq", ".events | length"];
        told(home, &args).parse::<u64>().expect("a number") as f64
    });
    (events.sum::<f64>() / seconds, blocks / seconds)
}

fn per_cent(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() * 100.0 / whole.as_secs_f64()
}

#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let runners = env::var("COWBOYCTL_BENCH_RUNNERS").unwrap_or_else(|_| "1000".to_owned());
    boot(home, &runners);
    let (events, blocks) = pace(home);
    println!("{runners} runners, {events:.0} events/s in {blocks:.1} blocks/s");
    let pid = devnet(home);
    let (columns, rows) = SIZES[0];
    let mut terminal = Terminal::start(command(home, &["dashboard"]), columns, rows);
    terminal.see("1 overview");
    println!("size    pane  dashboard  devnet  key p50   p95   most");
    for (columns, rows) in SIZES {
        terminal.resize(columns, rows);
        for pane in 1..=9 {
            let figures = measure(home, &mut terminal, pane, pid);
            println!("{columns:>3}×{rows}  {pane:>4}  {figures}");
        }
    }
    terminal.keys("q");
    terminal.ended();
    told(home, &["devnet", "down"]);
}

/// The processor time for a pane, that of the devnet, and the reaction times to keys.
fn measure(home: &Path, terminal: &mut Terminal, pane: usize, devnet: u32) -> String {
    terminal.keys(&pane.to_string());
    // Everything that the pane requests first has arrived by then.
    told(home, &["chain", "wait", SHOWN]);
    let dashboard = terminal.pid().as_raw_nonzero().get() as u32;
    let (start, before, others) = (Instant::now(), used(dashboard), used(devnet));
    told(home, &["chain", "wait", WATCHED]);
    let elapsed = start.elapsed();
    let own = per_cent(used(dashboard) - before, elapsed);
    let other = per_cent(used(devnet) - others, elapsed);
    let mut times = Vec::new();
    for _ in 0..KEYS {
        let pressed = Instant::now();
        terminal.keys("?");
        terminal.see("shift-tab");
        times.push(pressed.elapsed());
        let pressed = Instant::now();
        terminal.keys("\x1b");
        terminal.lose("shift-tab");
        times.push(pressed.elapsed());
    }
    times.sort_unstable();
    let ms = |at: usize| times[at].as_secs_f64() * 1_000.0;
    let count = times.len();
    let (middle, late, last) = (ms(count / 2), ms(count * 95 / 100), ms(count - 1));
    format!("{own:>7.1} %  {other:>4.0} %  {middle:>4.1} ms  {late:>4.1}  {last:>5.1}")
}
