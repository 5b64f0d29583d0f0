//! Well-behaved and badly behaved commands: time, output, families of processes.

use super::*;
use crate::executor::{Executor, Task};
use cowboy_host::process::{DIRECTORY_VARIABLE, has_members, private};
use rustix::process::Signal;
use std::{
    fs,
    future::Future,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

const LIMITS: TaskLimits =
    TaskLimits { max_return_bytes: 1024, timeout: Duration::from_secs(60), max_memory_mb: None };

fn command(program: &str, args: &[&str]) -> Command {
    Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        stdin: Vec::new(),
    }
}

fn script(text: &str) -> Command {
    command("sh", &["-c", text])
}

async fn execute(command: Command, limits: TaskLimits) -> Result<String, ExecutorError> {
    let (_keep, cancelled) = oneshot::channel();
    let output = Executor::default()
        .run(&Task::Command(command), &limits, cancelled, |_| (), |_| ())
        .await?;
    Ok(String::from_utf8(output).unwrap())
}

async fn check(command: Command, expected: Result<&str, ExecutorError>) {
    let described = format!("{command:?}");
    let result = execute(command, LIMITS).await;
    assert_eq!(result.as_deref(), expected.as_ref().map(|text| *text), "{described}");
}

/// Asserts that no process runs in the group of `leader`, given as text.
fn assert_gone(leader: &str) {
    let leader = Pid::from_raw(leader.trim().parse().unwrap()).unwrap();
    assert!(!has_members(leader));
}

/// A named pipe by which a script reports that it has reached a point.
struct Milestone {
    _directory: TempDir,
    path: PathBuf,
}

impl Milestone {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("milestone");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        Self { _directory: directory, path }
    }

    /// The script, with the pipe's path as `$MILESTONE`.
    fn script(&self, text: &str) -> Command {
        let path = self.path.to_str().unwrap().to_owned();
        Command { env: [("MILESTONE".to_owned(), path)].into(), ..script(text) }
    }

    /// What the script wrote, once it has closed the pipe.
    async fn reached(&self) -> String {
        let path = self.path.clone();
        let read = move || {
            let mut text = String::new();
            fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }
}

#[tokio::test]
async fn the_output_is_the_result_and_a_failure_is_told() {
    check(command("echo", &["a b", "c"]), Ok("a b c\n")).await;
    check(script("printf 'no end'"), Ok("no end")).await;
    check(script("exit 0"), Ok("")).await;
    let exit = |code, stderr: &str| Err(ExecutorError::Exit { code, stderr: stderr.to_owned() });
    check(script("exit 3"), exit(3, "")).await;
    check(script("echo out; echo first >&2; echo 'last one' >&2; exit 3"), exit(3, "last one"))
        .await;
    check(script("printf 'bell\\007 \\n\\n \\n' >&2; exit 1"), exit(1, "bell")).await;
    let long = "x".repeat(MAX_STDERR);
    check(script("head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1"), exit(1, &long)).await;
    let killed = ExecutorError::Signal { signal: 9, stderr: "oh".to_owned() };
    check(script("echo oh >&2; kill -9 $$"), Err(killed)).await;
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let start = |program: &str, reason: &str| {
        Err(ExecutorError::Start { program: program.to_owned(), reason: reason.to_owned() })
    };
    check(command("no-such-program", &[]), start("no-such-program", "not found in PATH")).await;
    check(command("", &[]), start("", "not found in PATH")).await;
    check(
        command("/no/such/program", &[]),
        start("/no/such/program", "No such file or directory (os error 2)"),
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    let text = text.to_str().unwrap();
    check(command(text, &[]), start(text, "Permission denied (os error 13)")).await;
    let mut strange = command("true", &[]);
    strange.env.insert("A=B".to_owned(), "C".to_owned());
    let invalid = ExecutorError::Invalid("`A=B` is not an environment variable name".to_owned());
    check(strange, Err(invalid)).await;
}

#[tokio::test]
async fn nothing_is_inherited_but_path_and_language() {
    let shown = async |given: &[(&str, &str)]| -> BTreeMap<String, String> {
        let mut show = command("env", &[]);
        show.env = given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let output = execute(show, LIMITS).await.unwrap();
        let pairs = output.lines().map(|line| line.split_once('=').unwrap());
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    // A job cannot choose its own directory.
    let mut variables = shown(&[("GIVEN", "a value"), (DIRECTORY_VARIABLE, "/")]).await;
    let directory = variables.remove(DIRECTORY_VARIABLE).unwrap();
    assert!(directory.contains("cowboy-job-"), "{directory}");
    let inherited = ["PATH", "LANG"].map(|name| (name.to_owned(), env::var(name).ok()));
    let mut expected: BTreeMap<_, _> =
        inherited.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    for name in ["HOME", "TMPDIR"] {
        expected.insert(name.to_owned(), directory.clone());
    }
    expected.insert("GIVEN".to_owned(), "a value".to_owned());
    assert_eq!(variables, expected);

    let chosen = [("HOME", "/"), ("LANG", "C"), ("PATH", "/usr/bin:/bin"), ("TMPDIR", "/tmp")];
    let variables = shown(&chosen).await;
    for (name, value) in chosen {
        assert_eq!(variables[name], value);
    }
}

#[tokio::test]
async fn standard_input_is_fed_as_far_as_it_is_read() {
    let cat = Command { stdin: b"what is fed".to_vec(), ..command("cat", &[]) };
    check(cat, Ok("what is fed")).await;
    // More than pipes hold, in both directions at once.
    let bytes = vec![b'x'; 3_000_000];
    let cat = Command { stdin: bytes.clone(), ..command("cat", &[]) };
    let limits = TaskLimits { max_return_bytes: bytes.len(), ..LIMITS };
    assert_eq!(execute(cat, limits).await.unwrap().len(), bytes.len());
    let deaf = Command { stdin: bytes, ..command("echo", &["deaf"]) };
    check(deaf, Ok("deaf\n")).await;
}

#[tokio::test]
async fn each_command_has_a_fresh_directory_that_goes_with_it() {
    let lived_in = "pwd; ls -A; mkdir -p a/b; touch a/b/c; ln -s / root; chmod 500 a/b a";
    let first = execute(script(lived_in), LIMITS).await.unwrap();
    let second = execute(script(lived_in), LIMITS).await.unwrap();
    for output in [&first, &second] {
        assert_eq!(output.lines().count(), 1, "the directory is empty: {output}");
        assert!(!Path::new(output.trim()).exists());
    }
    assert_ne!(first, second);

    let milestone = Milestone::new();
    let failing = milestone.script("touch file; pwd > \"$MILESTONE\"; exit 1");
    let (result, directory) = tokio::join!(execute(failing, LIMITS), milestone.reached());
    assert!(result.is_err());
    assert!(!Path::new(directory.trim()).exists());
}

#[tokio::test]
async fn too_much_output_ends_the_command() {
    let limits = |max_return_bytes| TaskLimits { max_return_bytes, ..LIMITS };
    let hello = || command("printf", &["hello"]);
    assert_eq!(execute(hello(), limits(5)).await.as_deref(), Ok("hello"));
    let too_much = |limit| Err(ExecutorError::TooMuchOutput { limit });
    assert_eq!(execute(hello(), limits(4)).await, too_much(4));
    assert_eq!(execute(hello(), limits(0)).await, too_much(0));
    assert_eq!(execute(command("true", &[]), limits(0)).await.as_deref(), Ok(""));

    let milestone = Milestone::new();
    let endless = milestone.script("echo $$ > \"$MILESTONE\"; exec yes");
    let (result, leader) = tokio::join!(execute(endless, limits(1_000_000)), milestone.reached());
    assert_eq!(result, too_much(1_000_000));
    assert_gone(&leader);
}

#[tokio::test]
async fn time_is_limited() {
    let limits = TaskLimits { timeout: Duration::from_millis(200), ..LIMITS };
    let result = execute(command("sleep", &["1000"]), limits).await;
    assert_eq!(result, Err(ExecutorError::TimedOut { after: limits.timeout }));
}

/// Starts a family of processes, ends it with `stop`, and looks for survivors.
async fn family_is_stopped<F: Future<Output = ()>>(
    stop: impl FnOnce(JoinHandle<Result<Vec<u8>, ExecutorError>>, oneshot::Sender<()>) -> F,
) {
    let milestone = Milestone::new();
    let family = milestone.script(
        "trap '' TERM; sleep 1000 & (sleep 1000 & sleep 1000) & echo $$ > \"$MILESTONE\"; wait",
    );
    let (cancel, cancelled) = oneshot::channel();
    let (started, has_started) = oneshot::channel();
    let running = tokio::spawn(async move {
        let started = |at| started.send(at).unwrap();
        Executor::default().run(&Task::Command(family), &LIMITS, cancelled, started, |_| ()).await
    });
    let leader = milestone.reached().await;
    assert!(has_started.await.unwrap() < Instant::now());
    assert!(has_members(Pid::from_raw(leader.trim().parse().unwrap()).unwrap()));
    stop(running, cancel).await;
    assert_gone(&leader);
}

#[tokio::test]
async fn cancelling_leaves_no_process_behind() {
    family_is_stopped(async |running, cancel| {
        cancel.send(()).unwrap();
        assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
    })
    .await;
    family_is_stopped(async |running, cancel| {
        drop(cancel);
        assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
    })
    .await;
}

#[tokio::test]
async fn dropping_the_future_leaves_neither_process_nor_file_behind() {
    family_is_stopped(async |running, _cancel| {
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    })
    .await;

    let milestone = Milestone::new();
    let busy = milestone.script(
        "for i in 1 2 3; do (while true; do touch a$i; rm a$i; done) & done; pwd > \"$MILESTONE\"; wait",
    );
    let (_keep, cancelled) = oneshot::channel();
    let running = tokio::spawn(async move {
        Executor::default().run(&Task::Command(busy), &LIMITS, cancelled, |_| (), |_| ()).await
    });
    let directory = milestone.reached().await;
    assert!(Path::new(directory.trim()).exists());
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert!(!Path::new(directory.trim()).exists());
}

#[tokio::test]
async fn what_was_cancelled_before_is_not_started() {
    let (_, cancelled) = oneshot::channel();
    let task = Task::Command(command("true", &[]));
    let started = |_| panic!("started");
    let result = Executor::default().run(&task, &LIMITS, cancelled, started, |_| ()).await;
    assert_eq!(result, Err(ExecutorError::Cancelled));
}

#[tokio::test]
async fn what_an_exited_command_left_running_goes_too() {
    let leader = execute(script("sleep 1000 & sleep 1000 & echo $$"), LIMITS).await.unwrap();
    assert_gone(&leader);
}

#[tokio::test]
async fn progress_is_told_in_lines_of_its_own() {
    let told = Mutex::new(Vec::new());
    let talking = script(
        "echo 'progress: 0' >&2; echo oh >&2; printf 'progress:  42 some\\twords \\n' >&2
         printf 'progress: 101\\nprogress: -1\\nprogress: x\\nmy progress: 3\\nprogress:\\n' >&2
         echo 'an end' >&2; printf 'progress: 100\\n\\n' >&2; exit 3",
    );
    let (_keep, cancelled) = oneshot::channel();
    let tell = |TaskProgress { percent, detail }| told.lock().unwrap().push((percent, detail));
    let task = Task::Command(talking);
    let result = Executor::default().run(&task, &LIMITS, cancelled, |_| (), tell).await;
    let words = Some("some words".to_owned());
    assert_eq!(told.into_inner().unwrap(), [(0, None), (42, words), (100, None)]);
    // Progress lines do not count as the reason of a failure.
    let reason = ExecutorError::Exit { code: 3, stderr: "an end".to_owned() };
    assert_eq!(result, Err(reason));
}

/// Whether any process has this text in its environment.
#[cfg(target_os = "linux")]
fn is_in_an_environment(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let environments =
        processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    let has = |environment: Vec<u8>| String::from_utf8_lossy(&environment).contains(text);
    environments.into_iter().any(has)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn daemons_go_with_the_command_that_started_them() {
    // In their own sessions, reparented, ignoring signals, in other directories, with the output
    // closed or held open.
    for (index, daemon) in [
        "setsid sleep 1000 & echo $$ > \"$MILESTONE\"; wait",
        "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo > \"$MILESTONE\"",
        "(cd /; trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' &)
         echo > \"$MILESTONE\"; sleep 1000",
        "(setsid sh -c '(setsid sleep 1000 &) ; exec sleep 1000' &); echo > \"$MILESTONE\"; exit 1",
    ]
    .into_iter()
    .enumerate()
    {
        let milestone = Milestone::new();
        let marker = format!("{}-{index}", milestone.path.display());
        let mut command = milestone.script(daemon);
        command.env.insert("MARKER".to_owned(), marker.clone());
        let (cancel, cancelled) = oneshot::channel();
        let running = tokio::spawn(async move {
            let task = Task::Command(command);
            Executor::default().run(&task, &LIMITS, cancelled, |_| (), |_| ()).await
        });
        milestone.reached().await;
        drop(cancel);
        // However it ended: by itself or cancelled.
        let _ = running.await.unwrap();
        assert!(!is_in_an_environment(&marker), "{daemon}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_flood_of_processes_ends_with_its_time() {
    let milestone = Milestone::new();
    let marker = milestone.path.display().to_string();
    let flood = milestone.script("(while true; do sleep 1000 & done) & exec sleep 1000");
    let limits = TaskLimits { timeout: Duration::from_millis(200), ..LIMITS };
    assert_eq!(
        execute(flood, limits).await,
        Err(ExecutorError::TimedOut { after: limits.timeout })
    );
    assert!(!is_in_an_environment(&marker));
}

#[tokio::test]
async fn a_flood_of_complaints_or_files_leaves_nothing() {
    // Far more than a pipe holds or is kept.
    let complaining = "head -c 5000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo done";
    check(script(complaining), Ok("done\n")).await;
    let milestone = Milestone::new();
    let filling = milestone.script(
        "mkdir -p $(printf 'd/%.0s' $(seq 100)); i=0
         while [ $i -lt 500 ]; do echo $i > f$i; i=$((i+1)); done; head -c 5000000 /dev/zero > big
         pwd > \"$MILESTONE\"; while true; do i=$((i+1)); echo $i > f$i; done",
    );
    let (cancel, cancelled) = oneshot::channel();
    let running = tokio::spawn(async move {
        let task = Task::Command(filling);
        Executor::default().run(&task, &LIMITS, cancelled, |_| (), |_| ()).await
    });
    let directory = milestone.reached().await;
    assert!(Path::new(directory.trim()).exists());
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
    assert!(!Path::new(directory.trim()).exists());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_a_process_beyond_reach_holds_open_is_not_waited_for() {
    let (begun, end) = (Milestone::new(), Milestone::new());
    // As long as it can be written to, it has no end.
    let written = fs::File::options().read(true).write(true).open(&end.path).unwrap();
    let (begun, end) = (begun.path.display(), end.path.display());
    let daemon = format!(": > {begun}; read nothing < {end}");
    let command = format!(
        "env -i $(command -v setsid) $(command -v sh) -c '{daemon}' & : < {begun}; echo done"
    );
    check(script(&command), Ok("done\n")).await;
    drop(written);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_is_limited() {
    let hungry = || script("x=$(head -c 50000000 /dev/zero | tr '\\0' x); echo ${#x}");
    check(hungry(), Ok("50000000\n")).await;
    let limits = TaskLimits { max_memory_mb: Some(16), ..LIMITS };
    let result = execute(hungry(), limits).await;
    assert!(
        matches!(result, Err(ExecutorError::Exit { .. } | ExecutorError::Signal { .. })),
        "{result:?}"
    );
    assert_eq!(execute(command("echo", &["modest"]), limits).await.as_deref(), Ok("modest\n"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_killed_runner_has_left_in_its_folder_is_cleared_away() {
    let home = tempfile::tempdir().unwrap();
    let (mine, others) = (home.path().join("jobs"), home.path().join("jobs-of-another"));
    let executor = Executor::default().in_folder(&mine, home.path()).unwrap();
    // Like a job of a killed runner: the executor does not know these.
    let stray = |folder: &Path| {
        let directory = fs::canonicalize(folder).unwrap().join("cowboy-job-left");
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o500)).unwrap();
        let mut command = std::process::Command::new("sleep");
        command.arg("1000").env_clear().env("PATH", env::var_os("PATH").unwrap());
        command.env(DIRECTORY_VARIABLE, directory).spawn().unwrap()
    };
    fs::create_dir(&others).unwrap();
    let (mut left, mut other) = (stray(&mine), stray(&others));

    let again = executor.in_folder(&home.path().join("jobs-of-another/../jobs"), home.path());
    let again = again.unwrap();
    assert_eq!(left.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 0);
    assert_eq!(other.try_wait().unwrap(), None, "it is another runner's");
    assert_eq!(fs::read_dir(&others).unwrap().count(), 1);
    other.kill().unwrap();
    other.wait().unwrap();

    let (_keep, cancelled) = oneshot::channel();
    let task = Task::Command(command("pwd", &[]));
    let output = again.run(&task, &LIMITS, cancelled, |_| (), |_| ()).await.unwrap();
    let directory = String::from_utf8(output).unwrap();
    assert!(Path::new(&directory).starts_with(fs::canonicalize(&mine).unwrap()), "{directory}");
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 0);
}

/// The folder of all devnets with one devnet's files, and a folder next to it.
#[cfg(target_os = "linux")]
struct Homes {
    above: TempDir,
}

#[cfg(target_os = "linux")]
impl Homes {
    fn new() -> Self {
        let above = tempfile::tempdir().unwrap();
        for folder in ["home/one/jobs/cowboy-job-of-another", "home/two", "next", "a/b"] {
            fs::create_dir_all(above.path().join(folder)).unwrap();
        }
        for file in ["home/one/token", "home/two/token", "next/file"] {
            fs::write(above.path().join(file), "content").unwrap();
        }
        std::os::unix::fs::symlink(above.path().join("home"), above.path().join("link")).unwrap();
        Self { above }
    }

    fn home(&self) -> PathBuf {
        self.above.path().join("home")
    }

    /// The output of a script that is kept out of `private`, or of no folder.
    async fn say(&self, private: Option<&str>, text: &str) -> String {
        let jobs = self.home().join("one/own-jobs");
        let mut directories = Directories::in_folder(&jobs).unwrap();
        if let Some(private) = private {
            directories = directories.keeping_out_of(&self.above.path().join(private)).unwrap();
        }
        let executor = Executor { directories, ..Executor::default() };
        let mut script = script(text);
        script.env.insert("ABOVE".to_owned(), self.above.path().to_str().unwrap().to_owned());
        let (_keep, cancelled) = oneshot::channel();
        let task = Task::Command(script);
        let output = executor.run(&task, &LIMITS, cancelled, |_| (), |_| ()).await.unwrap();
        assert_eq!(fs::read_dir(&jobs).unwrap().count(), 0, "the job's directory is gone");
        String::from_utf8(output).unwrap()
    }
}

#[cfg(target_os = "linux")]
const TRESPASS: &str = "
    cd \"$ABOVE/home/one\"
    try() { if (\"$@\") > /dev/null 2>&1; then echo \"could $*\"; fi; }
    try cat token
    try cat ../two/token
    try cat \"$COWBOY_JOB_DIRECTORY/../../token\"
    try cat \"$ABOVE/link/one/token\"
    try ls /proc/$PPID/cwd/
    try ls .
    try ls \"$ABOVE/home\"
    try ls jobs/cowboy-job-of-another
    try touch jobs/cowboy-job-of-another/file
    try truncate -s 0 token
    try mkdir new
    try mv ../two three
    try rm token
    try ln token \"$COWBOY_JOB_DIRECTORY/token\"
";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_opens_nothing_of_the_devnets_but_its_own_directory() {
    let homes = Homes::new();
    let mut trespass = TRESPASS.to_owned();
    if !rustix::process::geteuid().is_root() {
        // Root may watch any process (CAP_PERFMON), whatever its list.
        trespass += "try cat /proc/$PPID/environ\n";
    }
    let attempts = trespass.matches("try ").count();
    // Without protection every attempt works, except where an earlier one removed its target.
    let could = homes.say(None, &trespass).await;
    assert_eq!(could.lines().count(), attempts - 1, "{could}");

    for private in ["home", "link", "a/../home"] {
        let homes = Homes::new();
        let could = homes.say(Some(private), &trespass).await;
        match private::can_be_kept_out() {
            Ok(()) => assert_eq!(could, "", "out of {private}"),
            Err(_) => assert_eq!(could.lines().count(), attempts - 1, "{could}"),
        }
        assert_eq!(fs::read_to_string(homes.home().join("two/token")).is_ok(), could.is_empty());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_that_is_kept_out_does_all_it_could_do_elsewhere() {
    let homes = Homes::new();
    let work = "
        set -e
        mkdir -p a b; echo one > a/file; mv a/file b/other; ln b/other a/again; cat a/again
        cat \"$ABOVE/next/file\"; echo; echo two > \"$ABOVE/next/new\"; cat \"$ABOVE/next/new\"
        mv \"$ABOVE/next/new\" moved; ls; cat /etc/passwd > /dev/null; ls /usr > /dev/null
        pwd > /dev/null; (cd \"$ABOVE/a/b\" && touch there && ls)
        cat /proc/self/environ > /dev/null; mktemp > /dev/null; echo done
    ";
    let said = homes.say(Some("home"), work).await;
    assert_eq!(said, "one\ncontent\ntwo\na\nb\nmoved\nthere\ndone\n");
    // The private folder itself may be anywhere above.
    let said = homes.say(Some("home/one"), work).await;
    assert!(said.ends_with("done\n"), "{said}");
    // This process is not restricted.
    assert!(fs::read_dir(homes.home()).is_ok());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_cannot_be_started_leaves_no_directory_behind() {
    let homes = Homes::new();
    let jobs = homes.home().join("one/own-jobs");
    let executor = Executor::default().in_folder(&jobs, &homes.home()).unwrap();
    let (_keep, cancelled) = oneshot::channel();
    let task = Task::Command(command("/no/such/program", &[]));
    let result = executor.run(&task, &LIMITS, cancelled, |_| (), |_| ()).await;
    assert!(matches!(result, Err(ExecutorError::Start { .. })), "{result:?}");
    assert_eq!(fs::read_dir(&jobs).unwrap().count(), 0);
}
