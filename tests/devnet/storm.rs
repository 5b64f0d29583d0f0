//! A thousand jobs on twenty runners while runners are killed and restarted: each job ends once, as
//! documented, money adds up, and nothing is left behind.
//!
//! ```text
//! cargo nextest run --locked -p cowboyctl --test devnet --no-capture storm
//! ```
//!
//! prints the results. Ten runners are in the devnet's process and are killed by faults; ten are in
//! separate processes, which are killed with SIGKILL. `COWBOYCTL_STORM_SEED` selects other victims.

use crate::{
    support::{Home, wait_until},
    timers::text,
};
use cowboy_devnet::{
    client::{Client, EventStream},
    home,
    runner::{folder::RunnerFolder, key},
    types::{
        BlockNotice, Bytes, Event, EventQuery, FaultRequest, FaultSpec, JobQuery, JobStatus, Text,
        TransactionRequest,
    },
};
use cowboy_engine::{
    chain::{Payload, Transaction},
    job::spec::{Bounds, CommandWork, JobSpec, Verification, VerificationMode, Work},
    primitives::{Hash, SecretKey, Wei, codec::to_vec},
};
use cowboy_host::process::DIRECTORY_VARIABLE;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    env, fs,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};
use tokio::{runtime::Runtime, task::JoinSet};

const JOBS: u64 = 1_000;
/// Number of jobs after the storm, without kills: more than a connection has streams for.
const CALM: u64 = 100;
const SUBMITTERS: u64 = 4;
/// Number of runners in the devnet's process, and in separate processes.
const INSIDE: u64 = 10;
const OUTSIDE: u64 = 10;
const RUNNERS: u32 = (INSIDE + OUTSIDE) as u32;
/// Maximum simultaneous jobs of a runner.
const AT_A_TIME: u32 = 8;
/// Blocks from one kill to the next.
const PACE: u64 = 4;
/// Maximum runners that are down at the same time.
const DOWN: usize = 5;
/// Timeouts of an attempt in blocks, which include waiting for a runner: some jobs are tried again
/// elsewhere when their runner is killed, others wait for it.
const TIMEOUTS: [u64; 2] = [60, 150];
/// Timeout in blocks of jobs that have to fail after four attempts because their runners disagree.
/// Failing work needs none, because it is reported at once.
const SHORT_TIMEOUT: u64 = 12;
/// Maximum simultaneous requests.
const REQUESTS: usize = 8;
/// Allowed difference in a devnet's sockets and pipes, before and after.
const SPARE: usize = 8;
const SEED: u64 = 6;

/// The expected result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Each runner prints the job's number.
    Number,
    /// Each runner fails, or each prints something else.
    Nothing,
}

/// The n-th job. In each ten, seven are for one runner, two for two, one for three.
fn job(number: u64) -> (JobSpec, Fate) {
    let (script, fate) = match number {
        // Three in a thousand fail, two disagree.
        41 | 341 | 641 => ("exit 3".to_owned(), Fate::Nothing),
        48 | 448 => ("echo $$".to_owned(), Fate::Nothing),
        _ => {
            let before = match number % 4 {
                // Children and daemons, which outlive the command unless they are killed.
                0 => "sleep 600 & (setsid sleep 600 &)",
                1 => "mkdir deep; for i in 1 2 3; do echo $i > deep/$i; done; chmod 500 deep",
                2 => "echo 'progress: 50 half' >&2; sleep 1",
                _ => ":",
            };
            (format!("{before}; echo '{{\"n\": {number}}}'"), Fate::Number)
        }
    };
    let verification = match number % 10 {
        0..=6 => Verification::none(),
        7 | 8 => Verification::of(VerificationMode::Deterministic, 2),
        _ => Verification {
            vote_field: Some("/n".to_owned()),
            ..Verification::of(VerificationMode::MajorityVote, 3)
        },
    };
    let spec = JobSpec {
        work: Work::Custom(CommandWork {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
            env: Vec::new(),
            stdin: None,
            delivery: None,
        }),
        bounds: Bounds {
            max_return_bytes: 64,
            expected_execution_ms: 20_000,
            data_format: "text".to_owned(),
            max_memory_mb: 512,
        },
        verification,
        max_price: Wei::cby(1),
        tip: Wei::new(7),
        timeout_blocks: match fate {
            Fate::Number => TIMEOUTS[(number / 10 % 2) as usize],
            Fate::Nothing => SHORT_TIMEOUT,
        },
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    };
    (spec, fate)
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A runner that can be killed and started again.
#[derive(Debug, Clone)]
enum Victim {
    Inside(String),
    Outside(String),
}

impl Victim {
    fn all() -> Vec<Self> {
        let inside = (0..INSIDE).map(|i| Self::Inside(format!("runner-{i}")));
        inside.chain((0..OUTSIDE).map(|i| Self::Outside(format!("own-{i}")))).collect()
    }

    fn key_file(home: &Home, name: &str) -> String {
        home.path(&format!("{name}.key")).to_str().unwrap().to_owned()
    }

    fn folder(home: &Home, name: &str) -> RunnerFolder {
        RunnerFolder::of(&devnet(home), &name.parse().unwrap())
    }

    /// Kills it, and returns the number of jobs' directories that it leaves behind.
    async fn kill(&self, home: &Home, client: &Client) -> usize {
        match self {
            Self::Inside(name) => {
                let fault = FaultSpec::Kill { at: name.clone() };
                let request = FaultRequest { fault, seed: None, for_ms: None, for_blocks: None };
                client.lay_fault(&request).await.unwrap();
                0
            }
            Self::Outside(name) => {
                let folder = Self::folder(home, name);
                let pid = folder.holder().unwrap().expect("it runs");
                let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                kill_process(pid, Signal::KILL).unwrap();
                wait_until("the killed runner is gone", || folder.holder().unwrap().is_none());
                entries(&folder.jobs_path())
            }
        }
    }

    async fn start(&self, home: &Home, client: &Client) {
        match self {
            Self::Inside(name) => drop(client.start_runner(name).await.unwrap()),
            Self::Outside(name) => start(home, name),
        }
    }
}

/// Registers a runner for a separate process.
fn register(home: &Home, name: &str, funder: &str) {
    let key = Victim::key_file(home, name);
    let at_a_time = AT_A_TIME.to_string();
    let terms = ["--kinds", "custom", "--max-jobs", &at_a_time, "--from", funder];
    home.json(&[&["runner", "register", "--key-file", &key], &terms[..]].concat());
}

fn start(home: &Home, name: &str) {
    home.json(&["runner", "start", "--key-file", &Victim::key_file(home, name), "--detach"]);
}

fn devnet(home: &Home) -> home::DevnetHome {
    home::Home::at(home.path("")).devnet(&"local".parse().unwrap())
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// The directories of jobs of this home's runners that running processes have in their environment.
pub fn at_work(home: &Home) -> BTreeSet<String> {
    let root = fs::canonicalize(home.path("")).unwrap();
    let mark = [DIRECTORY_VARIABLE.as_bytes(), b"=", root.as_os_str().as_bytes()].concat();
    let environments = fs::read_dir("/proc").unwrap().flatten();
    let environments = environments.filter_map(|p| fs::read(p.path().join("environ")).ok());
    let found = environments.filter_map(|environment| {
        let mut variables = environment.split(|byte| *byte == 0);
        let found = variables.find(|variable| variable.starts_with(&mark))?;
        Some(String::from_utf8_lossy(found).into_owned())
    });
    found.collect()
}

/// Number of open sockets, pipes and other descriptors of a devnet's process. It excludes files,
/// which come and go with the chain's height, and connections of the API, which clients keep.
fn open_ends(home: &Home) -> usize {
    let process = format!("/proc/{}", home.pid("local").as_raw_nonzero());
    let api = devnet(home).record().unwrap().expect("it runs").rpc_url;
    let port = format!(":{:04X}", api.rsplit(':').next().unwrap().parse::<u16>().unwrap());
    let connections = fs::read_to_string(format!("{process}/net/tcp")).unwrap();
    let of_api: BTreeSet<String> = connections
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[1..3].iter().any(|address| address.ends_with(&port)))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    let open = fs::read_dir(format!("{process}/fd")).unwrap().flatten();
    let ends = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    ends.filter(|end| !end.is_absolute())
        .filter(|end| end.to_str().is_none_or(|end| !of_api.contains(end)))
        .count()
}

/// Reads blocks until all runners are present.
async fn all_present(blocks: &mut EventStream) {
    while blocks.next().await.unwrap().present < RUNNERS {}
}

/// Runs `ask` on each item, [`REQUESTS`] at a time.
async fn each<T, R, F>(items: Vec<T>, ask: impl Fn(T) -> F) -> Vec<R>
where
    F: Future<Output = R> + Send + 'static,
    R: Send + 'static,
{
    let (mut asking, mut answers) = (JoinSet::new(), Vec::new());
    for item in items {
        if asking.len() >= REQUESTS {
            answers.push(asking.join_next().await.unwrap().unwrap());
        }
        asking.spawn(ask(item));
    }
    answers.extend(asking.join_all().await);
    answers
}

/// A submitted job, as its submitter knows it.
struct Submitted {
    number: u64,
    job_id: Hash,
    transaction: String,
}

/// Submits jobs as fast as they are accepted, sequentially for each submitter.
async fn submit(home: &Home, client: &Client, numbers: std::ops::Range<u64>) -> Vec<Submitted> {
    let parameters = client.parameters().await.unwrap();
    let mut submitting = JoinSet::new();
    for submitter in 0..SUBMITTERS {
        let key = account_key(home, submitter);
        let (client, parameters) = (client.clone(), parameters.clone());
        let numbers: Vec<_> = numbers.clone().filter(|n| n % SUBMITTERS == submitter).collect();
        submitting.spawn(async move {
            let account = client.account(&account(submitter)).await.unwrap();
            let mut submitted = Vec::new();
            for (nonce, number) in (account.next_nonce..).zip(numbers) {
                let spec = Arc::new(job(number).0);
                let job_id = spec.job_id(&key.address(), nonce);
                // Full blocks raise the next basefees.
                let basefees = [*parameters.cycle_basefee, *parameters.cell_basefee];
                let [cycle, cell] = basefees.map(|fee| fee.saturating_mul(64));
                let chain = parameters.chain_id.0.0;
                let payload = Payload::SubmitJob(spec);
                let signed =
                    Transaction::with_limits(chain, nonce, cycle, cell, payload).sign(&key);
                let request = TransactionRequest { transaction: Text(Bytes(to_vec(&signed))) };
                let transaction = client.submit(&request).await.unwrap().hash.to_string();
                submitted.push(Submitted { number, job_id, transaction });
            }
            submitted
        });
    }
    submitting.join_all().await.into_iter().flatten().collect()
}

fn account(submitter: u64) -> String {
    format!("dev-{submitter}")
}

fn account_key(home: &Home, submitter: u64) -> SecretKey {
    key::read(&home.path(&format!("local/accounts/{}.key", account(submitter)))).unwrap()
}

/// The sum of the submitters' balances, in wei.
async fn wealth(client: &Client) -> u128 {
    let mut sum = 0;
    for submitter in 0..SUBMITTERS {
        sum += client.account(&account(submitter)).await.unwrap().balance.get();
    }
    sum
}

/// Kills a runner every [`PACE`] blocks and starts the one that has been down longest, until `over`
/// is set; then starts all. Returns the number of kills and of jobs' directories left behind.
async fn chaos(home: Arc<Home>, client: Client, seed: u64, over: Arc<AtomicBool>) -> (u32, usize) {
    let mut blocks = client.follow(None);
    let (mut up, mut down) = (Victim::all(), VecDeque::new());
    let (mut dice, mut kills, mut left) = (Dice(seed), 0, 0);
    loop {
        for _ in 0..PACE {
            blocks.next().await.unwrap();
        }
        if over.load(Ordering::Relaxed) {
            break;
        }
        let victim = up.swap_remove(dice.below(up.len()));
        left += victim.kill(&home, &client).await;
        kills += 1;
        down.push_back(victim);
        if down.len() > DOWN {
            let back: Victim = down.pop_front().unwrap();
            back.start(&home, &client).await;
            up.push(back);
        }
    }
    for victim in down {
        victim.start(&home, &client).await;
    }
    (kills, left)
}

/// The chain's events of jobs' ends, by job.
#[derive(Default)]
struct Ends(BTreeMap<Hash, Vec<Event>>);

impl Ends {
    fn read(&mut self, events: Vec<Event>) {
        for event in events {
            if matches!(event.kind.as_str(), "JobVerified" | "JobFailed" | "JobCancelled") {
                self.0.entry(event.job_id.unwrap().0).or_default().push(event);
            }
        }
    }

    /// Follows the chain until this number of jobs has ended.
    async fn until(&mut self, blocks: &mut EventStream, jobs: usize) {
        while self.0.len() < jobs {
            let BlockNotice { events, .. } = blocks.next().await.unwrap();
            self.read(events);
        }
    }
}

/// The chain's events of a kind.
async fn events(client: &Client, kind: &str) -> Vec<Event> {
    let (mut events, mut from) = (Vec::new(), Some(0));
    while from.is_some() {
        let query = EventQuery { from, kind: Some(kind.to_owned()), limit: Some(10_000) };
        let page = client.events(&query).await.unwrap();
        events.extend(page.events);
        from = page.next;
    }
    events
}

fn amount(event: &Event, field: &str) -> u128 {
    text(&event.data[field]).parse().unwrap()
}

#[expect(clippy::print_stdout, reason = "the test shows what became of the jobs")]
fn say(what: &str) {
    println!("{what}");
}

fn boot() -> Home {
    let home = Home::new();
    let file = home.path("storm.yaml");
    let runners = (0..INSIDE).map(|i| {
        format!("  - {{name: runner-{i}, kinds: [custom], max_concurrent_jobs: {AT_A_TIME}}}\n")
    });
    let accounts = SUBMITTERS + OUTSIDE;
    let runners: String = runners.collect();
    fs::write(&file, format!("accounts:\n  count: {accounts}\nrunners:\n{runners}")).unwrap();
    home.up(&["-f", file.to_str().unwrap()]);
    thread::scope(|scope| {
        for i in 0..OUTSIDE {
            let home = &home;
            scope.spawn(move || {
                let (name, funder) = (format!("own-{i}"), account(SUBMITTERS + i));
                register(home, &name, &funder);
                start(home, &name);
            });
        }
    });
    home
}

#[test]
fn a_thousand_jobs_end_once_while_runners_are_killed() {
    let seed = env::var("COWBOYCTL_STORM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(SEED);
    say(&format!("seed {seed}"));
    let begun = Instant::now();
    let home = Arc::new(boot());
    say(&format!("{RUNNERS} runners after {:.1?}", begun.elapsed()));
    let runtime = Runtime::new().unwrap();
    runtime.block_on(storm(&home, seed));
}

async fn storm(home: &Arc<Home>, seed: u64) {
    let client = || Client::of_devnet(&devnet(home)).unwrap();
    let asking = client();
    let mut blocks = asking.follow(None);
    all_present(&mut blocks).await;
    let open_before = open_ends(home);
    let (before, supply) = (wealth(&asking).await, asking.status().await.unwrap().supply.unwrap());

    let begun = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let killing = tokio::spawn(chaos(home.clone(), client(), seed, over.clone()));
    let mut submitted = submit(home, &asking, 0..JOBS).await;
    say(&format!("{JOBS} jobs submitted after {:.1?}", begun.elapsed()));
    let mut ends = Ends::default();
    ends.until(&mut blocks, JOBS as usize).await;
    say(&format!("all ended after {:.1?}", begun.elapsed()));
    over.store(true, Ordering::Relaxed);
    let (kills, left) = killing.await.unwrap();
    say(&format!(
        "{kills} runners killed, {left} directories of jobs left by those with processes"
    ));
    all_present(&mut blocks).await;

    // The storm has not leaked any resource that jobs need.
    submitted.extend(submit(home, &asking, JOBS..JOBS + CALM).await);
    ends.until(&mut blocks, submitted.len()).await;
    say(&format!("{CALM} more ended after {:.1?}", begun.elapsed()));

    let numbers: BTreeMap<Hash, u64> = submitted.iter().map(|s| (s.job_id, s.number)).collect();
    let mut paid = 0;
    let mut verified = Vec::new();
    for (job_id, number) in &numbers {
        let [end] = &ends.0[job_id][..] else {
            panic!("job {number} ended more than once: {:#?}", ends.0[job_id]);
        };
        match (end.kind.as_str(), job(*number).1) {
            ("JobVerified", Fate::Number) => {
                paid += amount(end, "paid");
                verified.push((*job_id, *number));
            }
            // Its runners were killed four times in a row, or had no room.
            ("JobFailed", Fate::Number) if *number < JOBS => {
                say(&format!("job {number}: {}", end.data));
            }
            ("JobFailed", Fate::Nothing) => {}
            (kind, fate) => panic!("job {number} was to come to {fate:?}: {kind} {:#}", end.data),
        }
    }
    assert_eq!(ends.0.len(), numbers.len(), "only these");
    assert!(verified.len() * 10 >= numbers.len() * 9, "failing is the exception");
    let retried = events(&asking, "JobRetried").await.len();
    say(&format!("{} verified, {retried} times a job was tried again", verified.len()));
    // Stored events have each end only once, too: the stream could hide a repetition.
    let mut stored = Ends::default();
    for kind in ["JobVerified", "JobFailed", "JobCancelled"] {
        stored.read(events(&asking, kind).await);
    }
    assert!(stored.0.values().all(|ends| ends.len() == 1));
    assert!(stored.0.keys().eq(numbers.keys()));

    // The results are the jobs' numbers.
    let results = each(verified, |(job_id, number)| {
        let client = asking.clone();
        async move { (number, client.job_result(&job_id.to_string()).await.unwrap()) }
    });
    for (number, result) in results.await {
        let said = result.result_text.expect("it is text");
        assert_eq!(said, format!("{{\"n\": {number}}}\n"));
    }

    // The submitters' losses are the blocks' fees and the runners' earnings.
    let transactions = submitted.into_iter().map(|s| s.transaction).collect();
    let fees = each(transactions, |hash: String| {
        let client = asking.clone();
        async move {
            let fee = client.transaction(&hash).await.unwrap().fee.expect("it is in a block");
            fee.burned.get() + fee.tip.get()
        }
    });
    let fees: u128 = fees.await.into_iter().sum();
    assert_eq!(before - wealth(&asking).await, fees + paid);
    let earned = events(&asking, "RunnerPaid").await;
    let earned = earned.iter().map(|event| {
        ["work", "tip", "aggregation"].map(|part| amount(event, part)).iter().sum::<u128>()
    });
    assert_eq!(earned.sum::<u128>(), paid);
    let now = asking.status().await.unwrap().supply.unwrap();
    assert_eq!((now.escrow.get(), now.total, now.stakes), (0, supply.total, supply.stakes));

    nothing_is_left(home, &asking).await;
    let listing = Instant::now();
    let listed = JobQuery { limit: Some(10_000), ..JobQuery::default() };
    assert_eq!(asking.jobs(&listed).await.unwrap().len() as u64, JOBS + CALM);
    let listed = listing.elapsed();
    let (job_id, _) = numbers.first_key_value().unwrap();
    asking.job(&job_id.to_string()).await.unwrap();
    say(&format!("job ls took {listed:.1?}, job show {:.1?}", listing.elapsed() - listed));
    drop((asking, blocks));
    wait_until("the devnet has closed what it opened", || {
        open_ends(home).abs_diff(open_before) <= SPARE
    });
    say(&format!("sockets and pipes: {open_before} before, {} after", open_ends(home)));
}

/// Asserts that no job is left in a table of the chain, validators or runners, and no process or
/// file of a job.
async fn nothing_is_left(home: &Home, client: &Client) {
    let open = [JobStatus::Pending, JobStatus::Assigned, JobStatus::Running, JobStatus::Committed];
    for status in open {
        let query = JobQuery { status: Some(status), ..JobQuery::default() };
        assert_eq!(client.jobs(&query).await.unwrap(), [], "{status}");
    }
    for runner in client.runners().await.unwrap() {
        assert_eq!(runner.active_jobs, 0, "{runner:?}");
    }
    let mut blocks = client.follow(None);
    for victim in Victim::all() {
        // Runners learn of the last jobs' ends a moment later.
        loop {
            let load = match &victim {
                Victim::Inside(name) => client.runner_load(name).await.unwrap(),
                Victim::Outside(name) => {
                    let folder = Victim::folder(home, name);
                    let client = folder.client(&folder.record().unwrap().unwrap()).unwrap();
                    client.runner_load(name).await.unwrap()
                }
            };
            assert!(load.running, "{load:?}");
            if load.active_jobs == 0 {
                break;
            }
            blocks.next().await.unwrap();
        }
    }
    wait_until("no process works on a job", || at_work(home).is_empty());
    wait_until("no directory of a job is left", || {
        let own = (0..OUTSIDE).map(|i| Victim::folder(home, &format!("own-{i}")).jobs_path());
        own.chain([devnet(home).jobs_path()]).all(|folder| entries(&folder) == 0)
    });
}
