//! Runs for fires: each once, across restarts and failing writes.

use super::*;
use crate::{
    fire::Fire,
    messages::{EnvValue, MAX_SCHEDULES, NewSchedule, Schedule, ScheduledRun},
};
use cowboy_engine::primitives::{Address, Hash};

const ACTOR: Address = Address([7; 20]);
const OTHER: Address = Address([8; 20]);

fn fire(height: u64, position: u32) -> Fire {
    let timer = Hash([u8::try_from(height).unwrap(); 32]);
    Fire { height, position, timer, actor: ACTOR, handler: "beat".to_owned() }
}

fn schedule(handler: Option<&str>, run: NewRun) -> NewSchedule {
    NewSchedule { actor: ACTOR.to_string(), handler: handler.map(str::to_owned), run }
}

/// Reports fires to a service as the task that follows the chain does.
async fn tell(service: &Service, fires: Vec<Fire>) -> usize {
    let due = service.due_schedules(fires).await.unwrap();
    let count = due.len();
    for (id, fire) in due {
        service.scheduled(id, fire).await.unwrap();
    }
    count
}

async fn schedules(service: &Service) -> Vec<Schedule> {
    service.read(|reader| reader.schedules()).await.unwrap()
}

/// The block and the timer of each scheduled run, oldest first.
async fn made(service: &Service) -> Vec<(u64, String)> {
    let runs = service.read(|reader| reader.runs(1_000)).await.unwrap();
    let by = runs.into_iter().rev().filter_map(|run| run.by_schedule);
    by.map(|by| (by.height, by.timer_id)).collect()
}

#[tokio::test]
async fn a_fire_makes_one_run_however_often_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1_000, Clock::system());
    let (service, owner) = start().unwrap();
    let add = |service: &Service, handler: Option<&'static str>| {
        let service = service.clone();
        async move { service.add_schedule(schedule(handler, run(&["j"]))).await }
    };
    assert!(matches!(add(&service, None).await, Err(ServiceError::NoChain)));
    service.has_chain();
    assert!(matches!(add(&service, None).await, Err(ServiceError::ChainBegins)));
    service.chain_is_at(10);
    let beats = add(&service, Some("beat")).await.unwrap();
    let all = add(&service, None).await.unwrap();
    let fires = vec![
        // A fire before the schedules were added.
        fire(9, 0),
        fire(10, 3),
        fire(11, 0),
        Fire { actor: OTHER, ..fire(11, 1) },
        Fire { handler: "start".to_owned(), ..fire(11, 2) },
    ];
    assert_eq!(tell(&service, fires.clone()).await, 3);
    assert_eq!(tell(&service, fires.clone()).await, 0);
    // Fires that were found due earlier are not processed again either.
    service.scheduled(all.clone(), fire(11, 0)).await.unwrap();
    let timer = |height| fire(height, 0).timer.to_string();
    let expected = [(11, timer(11)), (11, timer(11)), (11, timer(11))];
    assert_eq!(made(&service).await, expected);
    assert_eq!(service.schedules_go_on_at().await.unwrap(), Some(11));

    owner.killed().await;
    let (service, owner) = start().unwrap();
    assert_eq!(service.schedules_go_on_at().await.unwrap(), Some(11));
    assert_eq!(tell(&service, fires).await, 0, "each was written with its run");
    assert_eq!(tell(&service, vec![fire(11, 3), fire(12, 0)]).await, 4);
    let shown = schedules(&service).await;
    let counts: Vec<_> = shown.iter().map(|s| (&s.schedule, s.runs, s.skipped, s.since)).collect();
    assert_eq!(counts, [(&all, 4, 0, 10), (&beats, 3, 0, 10)]);
    let last = shown[0].last_run.clone().unwrap();
    let run = service.read({
        let id = last.run_id.clone();
        move |reader| reader.run(&id)
    });
    let run = run.await.unwrap().expect("the last run");
    let by = run.by_schedule.expect("it says who made it");
    assert_eq!((by.schedule, by.height, by.timer_id), (all.clone(), 12, timer(12)));
    assert_eq!(last, ScheduledRun { run_id: run.run_id, height: 12, timer_id: timer(12) });

    // A removed schedule submits no runs, even if it was found due before.
    let due = service.due_schedules(vec![fire(13, 0)]).await.unwrap();
    service.remove_schedule(all.clone()).await.unwrap();
    for (id, fire) in due {
        service.scheduled(id, fire).await.unwrap();
    }
    assert_eq!(made(&service).await.len(), 8);
    let none = service.remove_schedule(all).await;
    assert!(matches!(none, Err(ServiceError::Refused(Refusal::NotFound))));
    assert!(owner.stop(Duration::from_secs(30)).await);
}

#[tokio::test]
async fn runs_have_the_secrets_that_go_with_the_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1_000, Clock::system());
    let (service, owner) = start().unwrap();
    service.has_chain();
    service.chain_is_at(1);
    let mut new = schedule(None, run(&["a", "b"]));
    let secret = EnvValue::Secret { secret: "hunter2".to_owned() };
    new.run.jobs[0].env.insert("KEY".to_owned(), secret);
    new.run.jobs[0].env.insert("OPEN".to_owned(), EnvValue::Plain("o".to_owned()));
    let id = service.add_schedule(new).await.unwrap();
    let file = rusqlite::Connection::open(&path).unwrap();
    let text = |sql: &str| file.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert!(!text("SELECT run FROM schedule").contains("hunter2"));
    assert!(owner.stop(Duration::from_secs(30)).await);

    let (service, _owner) = start().unwrap();
    assert_eq!(tell(&service, vec![fire(2, 0), fire(3, 0)]).await, 2);
    for _ in 0..2 {
        let granted = service.lease("r".into(), asks("r", 0)).await.unwrap().expect("a job");
        assert_eq!(granted.job_spec.env["KEY"], "hunter2");
        assert_eq!(granted.job_spec.env["OPEN"], "o");
        assert_eq!(granted.job_spec.secret_env, ["KEY"]);
        service.lease("r".into(), asks("r", 0)).await.unwrap().expect("the other of the run");
    }
    service.remove_schedule(id).await.unwrap();
    assert_eq!(text("SELECT count(*) || '' FROM schedule_secret"), "0");
}

#[tokio::test]
async fn a_run_that_is_refused_is_skipped_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let (service, _owner) = start(&path, Config::default(), 1_000, Clock::system()).unwrap();
    service.has_chain();
    service.chain_is_at(1);
    let mut new = run(&["j"]);
    new.jobs[0].requires = vec!["special".to_owned()];
    service.add_schedule(schedule(None, new)).await.unwrap();
    // As many sets of requirements as the queue accepts.
    let names: Vec<_> = (0..1_000).map(|n| format!("j{n}")).collect();
    let mut crowd = run(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for job in &mut crowd.jobs {
        job.requires = vec![job.name.clone()];
    }
    let crowd = service.submit(crowd).await.unwrap();
    assert_eq!(tell(&service, vec![fire(2, 0)]).await, 1);
    assert_eq!(made(&service).await, []);
    let shown = schedules(&service).await.remove(0);
    let failure = shown.last_failure.expect("it is told");
    assert_eq!((shown.runs, shown.skipped, failure.height), (0, 1, 2));
    assert_eq!(failure.timer_id, Some(fire(2, 0).timer.to_string()));
    assert!(failure.reason.starts_with("jobs[0].requires: "), "{}", failure.reason);
    // This fire is skipped, and the next one is processed.
    service.cancel_run(crowd).await.unwrap();
    assert_eq!(tell(&service, vec![fire(2, 0), fire(3, 0)]).await, 1);
    assert_eq!(made(&service).await, [(3, fire(3, 0).timer.to_string())]);
    let shown = schedules(&service).await.remove(0);
    assert_eq!((shown.runs, shown.skipped), (1, 1));
}

#[test]
fn a_run_that_cannot_be_written_is_not_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (mut core, shared) = core_at(&folder, Clock::manual(START).0);
    *shared.chain.lock().unwrap() = ChainHead::At(1);
    let (add, mut added) = command(|core| core.add_schedule(ACTOR, schedule(None, run(&["j"]))));
    core.turn([add].into_iter());
    let id = added.try_recv().unwrap().unwrap();
    let refuse = "CREATE TRIGGER full BEFORE UPDATE ON schedule
        BEGIN SELECT RAISE(ABORT, 'full'); END";
    let other = refusing(&folder, refuse);
    let told = |core: &mut Core| {
        let id = id.clone();
        let (tell, mut told) = command(move |core| core.scheduled(&id, fire(2, 0)));
        core.turn([tell].into_iter());
        told.try_recv().unwrap()
    };
    let runs = || -> u64 { other.query_row("SELECT count(*) FROM run", [], |r| r.get(0)).unwrap() };
    for _ in 0..2 {
        assert!(matches!(told(&mut core), Err(ServiceError::Failed)));
        assert_eq!((runs(), core.schedules_go_on_at()), (0, Some(2)));
    }
    other.execute_batch("DROP TRIGGER full").unwrap();
    for _ in 0..2 {
        told(&mut core).unwrap();
        let counts = core.counts().states;
        assert_eq!((runs(), counts), (1, BTreeMap::from([("QUEUED".into(), 1)])));
    }
}

#[tokio::test]
async fn blocks_without_fires_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1_000, Clock::system());
    let (service, owner) = start().unwrap();
    service.has_chain();
    service.chain_is_at(5);
    assert_eq!(service.schedules_go_on_at().await.unwrap(), None);
    for _ in 0..MAX_SCHEDULES {
        service.add_schedule(schedule(None, run(&["j"]))).await.unwrap();
    }
    let more = service.add_schedule(schedule(None, run(&["j"]))).await;
    assert!(matches!(more, Err(ServiceError::SchedulesFull)));
    service.followed(300, None).await.unwrap();
    // A late report does not move the position back.
    service.followed(200, None).await.unwrap();
    owner.killed().await;
    let (service, _owner) = start().unwrap();
    assert_eq!(service.schedules_go_on_at().await.unwrap(), Some(301));
    assert_eq!(schedules(&service).await.len(), MAX_SCHEDULES);
    assert!(schedules(&service).await.iter().all(|one| one.last_failure.is_none()));
    service.followed(400, Some("they are gone")).await.unwrap();
    for one in schedules(&service).await {
        let failure = one.last_failure.unwrap();
        assert_eq!((failure.height, &*failure.reason), (400, "they are gone"));
        assert_eq!((failure.timer_id, one.skipped), (None, 0));
    }
    assert_eq!(service.schedules_go_on_at().await.unwrap(), Some(401));
}

#[tokio::test]
async fn a_schedule_of_a_run_that_no_queue_takes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let (service, _owner) = start(&path, Config::default(), 1_000, Clock::system()).unwrap();
    service.has_chain();
    service.chain_is_at(1);
    let refused = async |change: fn(&mut NewSchedule)| {
        let mut new = schedule(None, run(&["a", "b"]));
        change(&mut new);
        match service.add_schedule(new).await {
            Err(ServiceError::Fault(fault)) => fault.field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|new| new.actor = "0x12".to_owned()).await, "actor");
    assert_eq!(refused(|new| new.handler = Some(String::new())).await, "handler");
    let needs_itself: fn(&mut NewSchedule) = |new| new.run.jobs[0].needs = vec!["a".to_owned()];
    assert_eq!(refused(needs_itself).await, "run.jobs[0].needs");
    let unknown: fn(&mut NewSchedule) = |new| new.run.jobs[1].artifacts_of = vec!["x".to_owned()];
    assert_eq!(refused(unknown).await, "run.jobs[1].artifacts_of[0]");
    assert_eq!(schedules(&service).await, []);
}

#[tokio::test]
async fn a_file_of_the_third_format_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.db");
    let start = || start(&path, Config::default(), 1_000, Clock::system());
    let (service, owner) = start().unwrap();
    let id = service.submit(run(&["j"])).await.unwrap();
    assert!(owner.stop(Duration::from_secs(30)).await);
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(&format!("{TO_3} PRAGMA user_version = 3;")).unwrap();
    drop(file);
    let (service, _owner) = start().unwrap();
    let kept = service.read(move |reader| reader.run(&id)).await.unwrap().expect("the run");
    assert_eq!((kept.jobs.len(), kept.by_schedule), (1, None));
    service.has_chain();
    service.chain_is_at(1);
    service.add_schedule(schedule(None, run(&["j"]))).await.unwrap();
    assert_eq!(tell(&service, vec![fire(2, 0)]).await, 1);
}
