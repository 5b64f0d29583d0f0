//! Turns, waiters, failing writes.

mod schedules;

use super::{super::store::Store, *};
use crate::messages::{JobSpec, LeaseRequest};
use tempfile::TempDir;

const START: u64 = 1_000_000;

fn job(name: &str) -> JobSpec {
    let steps = vec!["true".to_owned()];
    JobSpec { name: name.to_owned(), steps, ..JobSpec::default() }
}

fn run(names: &[&str]) -> NewRun {
    NewRun { jobs: names.iter().map(|name| job(name)).collect(), ..NewRun::default() }
}

fn asks(runner: &str, wait_seconds: u64) -> LeaseRequest {
    let (tag, capabilities) = (crate::messages::LeaseTag::default(), Vec::new());
    LeaseRequest { tag, runner_id: runner.to_owned(), capabilities, wait_seconds }
}

/// The thread's state without the thread.
fn core(folder: &TempDir) -> Core {
    core_at(folder, Clock::manual(START).0).0
}

fn core_at(folder: &TempDir, clock: Clock) -> (Core, Arc<ServiceShared>) {
    let store = Store::open(&folder.path().join("lease.db")).unwrap();
    let reader = store.reader().unwrap();
    let shared = Arc::new(ServiceShared::new(Config::default(), clock, reader));
    (Core::new(store, 10, shared.clone()).ok().expect("a new file"), shared)
}

/// A message whose outcome goes to the returned receiver.
fn command<T: Send + 'static>(
    act: impl FnOnce(&mut Core) -> ServiceResult<T> + Send + 'static,
) -> (Command, oneshot::Receiver<Result<T, ServiceError>>) {
    let (reply, answer) = oneshot::channel();
    let command: Command = Box::new(move |core| {
        let outcome = core.act(act);
        core.answer(reply, outcome);
    });
    (command, answer)
}

type Granted = oneshot::Receiver<Result<Option<LeaseGranted>, ServiceError>>;

fn ask(runner: &'static str, wait_seconds: u64) -> (Command, Granted) {
    let (reply, answer) = oneshot::channel();
    let command: Command =
        Box::new(move |core| core.lease(runner.into(), asks(runner, wait_seconds), reply));
    (command, answer)
}

#[test]
fn a_lease_that_nobody_hears_of_goes_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut core = core(&folder);
    let (submit, mut submitted) = command(|core| core.submit(run(&["j"])));
    let (first, heard) = ask("a", 30);
    let (second, mut other) = ask("b", 30);
    core.turn([first, second].into_iter());
    // The runner that waits first disappears at the moment when its answer is written.
    let gone: Command = Box::new(move |_| drop(heard));
    core.turn([submit, gone].into_iter());
    assert!(submitted.try_recv().unwrap().is_ok());
    let granted = other.try_recv().unwrap().unwrap().expect("the job");
    assert_eq!((granted.job_spec.name.as_str(), granted.attempt), ("j", 2));
}

#[test]
fn what_could_not_be_written_has_not_happened() {
    let folder = tempfile::tempdir().unwrap();
    let mut core = core(&folder);
    let (submit, _submitted) = command(|core| core.submit(run(&["a", "b"])));
    core.turn([submit].into_iter());
    let (waits, mut waiting) = ask("waits", 30);
    let (takes, mut taken) = ask("takes", 0);
    let (takes_too, mut taken_too) = ask("takes too", 0);
    core.turn([takes, takes_too, waits].into_iter());
    let [a, _b] = [&mut taken, &mut taken_too]
        .map(|taken| taken.try_recv().unwrap().unwrap().expect("a job"));
    let other = rusqlite::Connection::open(folder.path().join("lease.db")).unwrap();
    let refuse = "CREATE TRIGGER full BEFORE UPDATE ON job BEGIN SELECT RAISE(ABORT, 'full'); END";
    other.execute_batch(refuse).unwrap();
    let job = a.job_id.clone();
    let (revoke, mut revoked) = command(move |core| core.revoke(&job));
    let (submit, mut submitted) = command(|core| core.submit(run(&["c"])));
    core.turn([revoke, submit].into_iter());
    // The whole turn failed, and no runner was granted the revoked job.
    assert!(matches!(revoked.try_recv().unwrap(), Err(ServiceError::Failed)));
    assert!(matches!(submitted.try_recv().unwrap(), Err(ServiceError::Failed)));
    match waiting.try_recv() {
        Err(_) | Ok(Err(ServiceError::Failed)) => {}
        Ok(outcome) => panic!("granted: {:?}", outcome.is_ok()),
    }
    let (active, mut placed) = command(move |core| core.active(&"takes".into(), &a.lease_id));
    core.turn([active].into_iter());
    let refused = placed.try_recv().unwrap();
    assert!(matches!(refused, Err(ServiceError::Refused(Refusal::NotAcked))));
    other.execute_batch("DROP TRIGGER full").unwrap();
    let (revoke, mut revoked) = command({
        let job = a.job_id.clone();
        move |core| core.revoke(&job)
    });
    core.turn([revoke].into_iter());
    assert_eq!(revoked.try_recv().unwrap().unwrap(), JobState::Queued);
    let kept: u64 = other.query_row("SELECT count(*) FROM job", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 2);
}

/// Makes the file refuse a change, through another connection, until the trigger is dropped.
fn refusing(folder: &TempDir, trigger: &str) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(folder.path().join("lease.db")).unwrap();
    other.execute_batch(trigger).unwrap();
    other
}

#[test]
fn with_one_message_all_of_its_turn_has_not_happened() {
    for trigger in [
        // A change that fails.
        "CREATE TRIGGER full BEFORE UPDATE ON attempt BEGIN SELECT RAISE(ABORT, 'full'); END",
        // A commit that fails without an error before it.
        "CREATE TABLE parent (id INTEGER PRIMARY KEY);
         CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER full AFTER UPDATE ON attempt BEGIN INSERT INTO child VALUES (1); END",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut core = core(&folder);
        let (submit, _submitted) = command(|core| core.submit(run(&["a"])));
        let (takes, mut taken) = ask("takes", 0);
        core.turn([submit, takes].into_iter());
        let a = taken.try_recv().unwrap().unwrap().expect("a job");
        let other = refusing(&folder, trigger);
        let (submit, mut submitted) = command(|core| core.submit(run(&["b"])));
        let (token, mut issued) = command(|core| {
            core.issue_token(TokenRequest { runner_id: "r".to_owned(), replace: false })
        });
        let revoke = |job: &str| {
            let job = job.to_owned();
            command(move |core| core.revoke(&job))
        };
        let (revokes, mut revoked) = revoke(&a.job_id);
        core.turn([submit, token, revokes].into_iter());
        assert!(matches!(submitted.try_recv().unwrap(), Err(ServiceError::Failed)));
        assert!(matches!(issued.try_recv().unwrap(), Err(ServiceError::Failed)));
        assert!(matches!(revoked.try_recv().unwrap(), Err(ServiceError::Failed)));
        let count = |table: &str| -> u64 {
            let sql = format!("SELECT count(*) FROM {table}");
            other.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("job"), count("token")), (1, 0), "{trigger}");
        // The board has no such change either: the lease is valid, and the other job is not
        // granted.
        other.execute_batch("DROP TRIGGER full").unwrap();
        let (takes, mut taken) = ask("takes", 0);
        let (revokes, mut revoked) = revoke(&a.job_id);
        core.turn([takes, revokes].into_iter());
        assert!(taken.try_recv().unwrap().unwrap().is_none());
        assert_eq!(revoked.try_recv().unwrap().unwrap(), JobState::Queued);
    }
}

#[test]
fn while_writes_fail_one_is_tried_a_second_and_time_does_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, hands) = Clock::manual(START);
    let (mut core, shared) = core_at(&folder, clock);
    let turn = |core: &mut Core| core.turn(std::iter::empty());
    let (submit, _submitted) = command(|core| core.submit(run(&["a"])));
    let (takes, mut taken) = ask("takes", 0);
    core.turn([submit, takes].into_iter());
    assert!(taken.try_recv().unwrap().unwrap().is_some());
    let refuse = "CREATE TRIGGER full BEFORE UPDATE ON job BEGIN SELECT RAISE(ABORT, 'full'); END";
    let other = refusing(&folder, refuse);
    // Revoking the expired lease cannot be written.
    let late = START + 3_600_000;
    hands.advance(Duration::from_secs(3_600));
    assert!(core.next_wake().is_some_and(|at| at <= late));
    let trouble = || *shared.trouble.lock().unwrap();
    for second in 1..=3 {
        turn(&mut core);
        assert_eq!(core.next_wake(), Some(late + 1_000 * second), "not at once, though it is due");
        assert_eq!(trouble(), Some(Trouble::WritesFail));
        hands.advance(Duration::from_secs(1));
    }
    other.execute_batch("DROP TRIGGER full").unwrap();
    turn(&mut core);
    assert_eq!((trouble(), core.next_wake()), (None, None));

    // A write is tried even if there is nothing else to write.
    let other = refusing(&folder, refuse);
    let (cancel, mut canceled) = command({
        let job: String = other.query_row("SELECT id FROM job", [], |row| row.get(0)).unwrap();
        move |core| core.cancel(&job)
    });
    core.turn([cancel].into_iter());
    assert!(matches!(canceled.try_recv().unwrap(), Err(ServiceError::Failed)));
    turn(&mut core);
    assert_eq!(trouble(), Some(Trouble::WritesFail), "a second has not passed");
    hands.advance(Duration::from_secs(1));
    turn(&mut core);
    assert_eq!(trouble(), None);
}

#[tokio::test]
async fn an_owner_that_panics_says_so_and_answers_nothing_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let (service, owner) = start(&path, Config::default(), 1, Clock::system()).unwrap();
    assert_eq!(service.trouble(), None);
    let asked = service.ask(|_| -> ServiceResult<()> { panic!("the {}th", 13) }).await;
    assert!(matches!(asked, Err(ServiceError::Stopping)));
    assert_eq!(owner.ended().await, "a panic: the 13th");
    assert_eq!(service.trouble(), Some(Trouble::Stopped));
    assert!(matches!(service.submit(run(&["j"])).await, Err(ServiceError::Stopping)));
    assert!(owner.stop(Duration::from_secs(30)).await, "it has ended");
}

#[test]
fn what_is_refused_changes_nothing_for_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut core = core(&folder);
    let (none, mut refused) = command(|core| core.revoke("none"));
    let (submit, mut submitted) = command(|core| core.submit(run(&["a"])));
    let (none_too, mut refused_too) = command(|core| core.cancel("none"));
    core.turn([none, submit, none_too].into_iter());
    let not_found = |outcome| matches!(outcome, Err(ServiceError::Refused(Refusal::NotFound)));
    assert!(not_found(refused.try_recv().unwrap()));
    assert!(not_found(refused_too.try_recv().unwrap()));
    assert!(submitted.try_recv().unwrap().is_ok());
}

#[tokio::test]
async fn a_file_of_the_first_format_is_taken_over_with_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1, Clock::system());
    let (service, owner) = start().unwrap();
    let mut new = run(&["j"]);
    let secret = crate::messages::EnvValue::Secret { secret: "hunter2".to_owned() };
    new.jobs[0].env.insert("KEY".to_owned(), secret);
    service.submit(new).await.unwrap();
    assert!(owner.stop(Duration::from_secs(30)).await);
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(
        "ALTER TABLE spec ADD COLUMN secrets TEXT;
         UPDATE spec SET secrets = (SELECT secrets FROM secret WHERE secret.job = spec.job);
         DROP TABLE secret; PRAGMA user_version = 1;",
    )
    .unwrap();
    file.execute_batch(&format!("{TO_3} {TO_2}")).unwrap();
    drop(file);
    let (service, _owner) = start().unwrap();
    let granted = service.lease("r".into(), asks("r", 0)).await.unwrap().expect("the job");
    assert_eq!(granted.job_spec.env["KEY"], "hunter2");
}

/// Removes from a file what format 4 added to format 3.
const TO_3: &str = "
    ALTER TABLE attempt DROP COLUMN outputs;
    ALTER TABLE run DROP COLUMN concurrency;
    DROP TABLE schedule;
    DROP TABLE schedule_secret;
    ALTER TABLE run DROP COLUMN schedule;
    ALTER TABLE run DROP COLUMN fire_height;
    ALTER TABLE run DROP COLUMN fire_timer;";

/// Removes from a file what format 3 added to format 2.
const TO_2: &str = "
    ALTER TABLE attempt DROP COLUMN runner_accepted_at;
    ALTER TABLE attempt DROP COLUMN runner_heartbeat_at;
    ALTER TABLE attempt DROP COLUMN log_cursor;
    ALTER TABLE job DROP COLUMN allow_failure;";

#[tokio::test]
async fn a_file_of_the_second_format_is_taken_over_with_its_leases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1, Clock::system());
    let (service, owner) = start().unwrap();
    service.submit(run(&["j"])).await.unwrap();
    let granted = service.lease("r".into(), asks("r", 0)).await.unwrap().expect("the job");
    assert!(owner.stop(Duration::from_secs(30)).await);
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(&format!("{TO_3} {TO_2} PRAGMA user_version = 2;")).unwrap();
    drop(file);
    let (service, _owner) = start().unwrap();
    let ack = AckLease {
        tag: crate::messages::AckLeaseTag::default(),
        job_id: granted.job_id.clone(),
        lease_id: granted.lease_id.clone(),
        runner_id: "r".to_owned(),
        accepted_at: Some("2026-01-04T08:00:00Z".to_owned()),
    };
    service.ack("r".into(), ack).await.unwrap();
    let job = service.read(move |reader| reader.job(&granted.job_id)).await.unwrap();
    let said = job.expect("the job").attempts[0].runner_accepted_at.clone();
    assert_eq!(said.as_deref(), Some("2026-01-04T08:00:00Z"));
}

/// However many jobs are queued, waiting runners are offered each set of requirements.
#[test]
fn jobs_go_to_who_waits_by_their_position_whatever_they_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut core = core(&folder);
    let waits = ["a", "b", "c", "d"].map(|runner| ask(runner, 30));
    let (asks, mut answers): (Vec<_>, Vec<_>) = waits.into_iter().unzip();
    core.turn(asks.into_iter());
    let mut run = run(&["1", "2", "3", "4", "5"]);
    run.jobs[0].requires = vec!["gpu".to_owned()];
    run.jobs[2].requires = vec!["gpu".to_owned(), "linux".to_owned()];
    let (submit, mut submitted) = command(move |core| core.submit(run));
    core.turn([submit].into_iter());
    assert!(submitted.try_recv().unwrap().is_ok());
    let got = answers.iter_mut().map(|answer| {
        let granted = answer.try_recv().ok()?.unwrap().expect("a job");
        Some(granted.job_spec.name)
    });
    let got: Vec<_> = got.collect();
    assert_eq!(got, [Some("2"), Some("4"), Some("5"), None].map(|name| name.map(str::to_owned)));
    let counts = core.counts();
    assert_eq!(counts.queued, 2);
    assert_eq!(counts.states, BTreeMap::from([("LEASED".into(), 3), ("QUEUED".into(), 2)]));
}

#[tokio::test]
async fn a_file_of_another_format_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1, Clock::system());
    let (service, owner) = start().unwrap();
    service.submit(run(&["j"])).await.unwrap();
    assert!(owner.stop(Duration::from_secs(30)).await);
    assert!(matches!(service.submit(run(&["j"])).await, Err(ServiceError::Stopping)));
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = start().unwrap_err().to_string();
    assert!(refused.contains("has format 99, this program reads 4"), "{refused}");
    file.execute_batch("PRAGMA user_version = 4").unwrap();
    file.execute_batch("UPDATE job SET machine = x'00'").unwrap();
    let refused = start().unwrap_err().to_string();
    assert!(refused.contains("is damaged"), "{refused}");
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1, Clock::system());
    let (service, owner) = start().unwrap();
    let id = service.submit(run(&["j"])).await.unwrap();
    assert!(owner.stop(Duration::from_secs(30)).await);
    let (service, _owner) = start().unwrap();
    let kept = service.read(move |reader| reader.run(&id)).await.unwrap();
    assert_eq!(kept.expect("the run").jobs.len(), 1);
}

#[tokio::test]
async fn without_its_owner_nobody_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let (service, owner) = start(&path, Config::default(), 1, Clock::system()).unwrap();
    let waits = tokio::spawn({
        let service = service.clone();
        async move { service.lease("r".into(), asks("r", 30)).await }
    });
    while service.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    drop(owner);
    assert!(matches!(waits.await.unwrap(), Err(ServiceError::Stopping)));
}

#[test]
fn times_that_cannot_be_kept_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let config = Config { lease_ttl_seconds: 20, ..Config::default() };
    let refused = start(&path, config, 1, Clock::system()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, StartError::Config(_)), "{refused}");
    assert!(!path.exists());
}
