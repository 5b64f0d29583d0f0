//! The runner with a lease server that has default settings.

use super::*;
use crate::{
    messages::{
        ArtifactSpec, Concurrency, EndReason, EnvValue, Job, JobSpec, JobState, LeaseState,
        LogQuery, NewRun,
    },
    server::{Options, Running as Serving, Server},
};
use cowboy_host::http::bind;

const OPERATOR: &str = "operator";

/// A lease server and its operator.
struct Site {
    serving: Serving,
    operator: Client,
    home: TempDir,
}

impl Site {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("server");
        std::fs::create_dir(&folder).unwrap();
        let options = Options::new(folder, bind(None).await.unwrap(), OPERATOR.to_owned());
        let serving = Server::start(options).await.unwrap();
        let operator = Client::new(serving.url(), OPERATOR, &Tls::default()).unwrap();
        Self { serving, operator, home }
    }

    /// Submits a job with one step. Returns its id.
    async fn submit(&self, step: &str, more: JobSpec) -> String {
        let job = JobSpec { name: "job".to_owned(), steps: vec![step.to_owned()], ..more };
        let run =
            self.operator.submit(&NewRun { jobs: vec![job], ..NewRun::default() }).await.unwrap();
        run.jobs[0].job.clone()
    }

    /// Starts a runner that ends after one job.
    async fn start(&self) -> Running {
        let made = self.operator.issue_token("tested", false).await.unwrap();
        let client = Client::new(self.serving.url(), &made.token, &Tls::default()).unwrap();
        let config = RunnerConfig {
            name: "tested".to_owned(),
            capabilities: capabilities(),
            max_jobs: Some(1),
            engine: None,
            lock: folder::RunnerFolder::of(self.home.path(), "tested").lock().unwrap(),
        };
        let (stopper, stop) = Stop::new();
        let runner = Runner::new(config, client).await.unwrap();
        Running { stopper, task: tokio::spawn(runner.run(stop, |_| ())) }
    }

    /// A job's log until it contains this text, or until the job has ended.
    async fn log(&self, job: &str, until: Option<&str>) -> String {
        let mut query = LogQuery { wait_seconds: MAX_WAIT_SECONDS, ..LogQuery::default() };
        let mut text = String::new();
        let follow = async {
            loop {
                let part = self.operator.log(job, &query).await.unwrap();
                text += &String::from_utf8(part.bytes).unwrap();
                query.offset = text.len() as u64;
                if part.ended || until.is_some_and(|until| text.contains(until)) {
                    return;
                }
            }
        };
        timeout(LIMIT, follow).await.expect("the log goes on");
        text
    }

    /// Waits for a job's end. Returns it and its log.
    async fn end(&self, job: &str) -> (Job, String) {
        let log = self.log(job, None).await;
        (self.operator.job(job).await.unwrap(), log)
    }
}

#[tokio::test]
async fn a_job_that_takes_too_long_leaves_what_a_job_leaves() {
    let site = Site::new().await;
    let step = "trap 'echo cleaned; exit 3' TERM; echo part > part; echo ready; sleep 600 & wait";
    let artifacts = vec![ArtifactSpec { kind: "x".to_owned(), path_glob: "part".to_owned() }];
    let more = JobSpec { artifacts, max_runtime_seconds: Some(2), ..JobSpec::default() };
    let job = site.submit(step, more).await;
    site.start().await.end().await.unwrap();
    let (job, log) = site.end(&job).await;
    assert!(log.contains("\nready\ncleaned\n[runner] Not done within 2 s"), "{log}");
    assert_eq!(
        (job.summary.state, job.ended_by),
        (JobState::TimedOut, Some(EndReason::MaxRuntime))
    );
    let attempt = &job.attempts[0];
    assert_eq!((attempt.lease_state, attempt.exit_code), (LeaseState::Completed, Some(3)));
    let summary = format!("Not done within 2 s, stopped during step: {step}");
    assert_eq!(attempt.summary.as_deref(), Some(&*summary));
    assert!(attempt.timings.is_some() && attempt.runner_accepted_at.is_some());
    assert_eq!(attempt.log_cursor.map(|cursor| cursor.bytes_sent), Some(0), "the only heartbeat");
    let kept = site.operator.artifacts(&job.summary.job).await.unwrap();
    assert_eq!(kept.iter().map(|kept| &*kept.name).collect::<Vec<_>>(), ["part"]);
    assert_eq!(attempt.artifacts.len(), 2, "the log and the file");
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_tried_again_where_it_asks_for_that() {
    let site = Site::new().await;
    let retry = crate::messages::Retry {
        on: Some(vec![crate::messages::RetryOn::Timeout]),
        max_attempts: Some(2),
        backoff_seconds: Some(1),
    };
    let more = JobSpec { max_runtime_seconds: Some(1), retry: Some(retry), ..JobSpec::default() };
    let job = site.submit("test $COWBOY_ATTEMPT = 2 || exec sleep 600", more).await;
    for _ in 0..2 {
        site.start().await.end().await.unwrap();
        // Frees the name for the next runner.
        site.operator.revoke_token("tested", None).await.unwrap();
    }
    let (job, _) = site.end(&job).await;
    assert_eq!((job.summary.state, job.summary.attempt), (JobState::Succeeded, 2));
    assert_eq!(job.attempts[0].exit_code, Some(128 + 15), "asked to end");
}

#[tokio::test]
async fn a_cancel_of_a_quiet_job_takes_no_heartbeat() {
    let site = Site::new().await;
    let job = site.submit("echo ready; sleep 600", JobSpec::default()).await;
    let running = site.start().await;
    site.log(&job, Some("\nready\n")).await;
    let heartbeat_at =
        async || site.operator.job(&job).await.unwrap().attempts.remove(0).heartbeat_at;
    // The first one is sent at once, and may come after the log.
    let first = async {
        loop {
            if let Some(at) = heartbeat_at().await {
                return at;
            }
        }
    };
    let first = timeout(LIMIT, first).await.expect("a heartbeat comes");
    site.operator.cancel_job(&job).await.unwrap();
    let (job, _) = site.end(&job).await;
    assert_eq!(job.attempts[0].lease_state, LeaseState::Canceled, "the runner said so");
    assert_eq!(job.attempts[0].heartbeat_at, Some(first), "and took no other");
    running.end().await.unwrap();
}

#[tokio::test]
async fn artifacts_of_the_jobs_that_it_needs_are_in_a_jobs_working_directory() {
    let site = Site::new().await;
    let job = |name: &str, step: &str, needs: &[&str]| JobSpec {
        name: name.to_owned(),
        steps: vec![step.to_owned()],
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        workdir: Some("below".to_owned()),
        artifacts: vec![ArtifactSpec { kind: "x".to_owned(), path_glob: "**".to_owned() }],
        ..JobSpec::default()
    };
    let mut broken = job("broken", "mkdir -p out/deep; echo built > out/deep/it; exit 1", &[]);
    broken.allow_failure = true;
    let jobs = vec![
        broken,
        job("other", "echo other > other", &[]),
        job("use", "cat out/deep/it; ls; echo seen > out/seen", &["broken"]),
        job("then", "cat out/seen; test ! -e other", &["use"]),
    ];
    let run = run(&site, jobs).await;
    let states: Vec<_> = run.jobs.iter().map(|job| job.state).collect();
    let succeeded = JobState::Succeeded;
    assert_eq!(states, [JobState::Failed, succeeded, succeeded, succeeded]);
    assert_eq!(run.state, JobState::Succeeded, "the failure is allowed");
    let (_, log) = site.end(&run.jobs[2].job).await;
    assert!(log.contains("artifacts of the jobs that it needs: 1\n"), "{log}");
    assert!(log.contains("\nbuilt\nout\n"), "{log}");
}

#[tokio::test]
async fn outputs_and_results_of_the_jobs_that_it_needs_are_in_a_jobs_environment() {
    let site = Site::new().await;
    let job = |name: &str, steps: &[&str], needs: &[&str]| JobSpec {
        name: name.to_owned(),
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        ..JobSpec::default()
    };
    let first = "echo version=1.2 >> $COWBOY_OUTPUT; echo other=x >> $COWBOY_OUTPUT";
    let second = "echo version=1.3 >> $COWBOY_OUTPUT; printf 'notes<<E\na\nb\nE\n' >> $COWBOY_OUTPUT; \
                  echo key=$KEY >> $COWBOY_OUTPUT";
    let mut build = job("build", &[first, second], &[]);
    build.outputs = ["version", "notes", "key", "never"].map(str::to_owned).to_vec();
    let secret = EnvValue::Secret { secret: "hunter2hunter2".to_owned() };
    build.env.insert("KEY".to_owned(), secret);
    let mut wrong = job("wrong", &["echo no output >> $COWBOY_OUTPUT"], &[]);
    wrong.allow_failure = true;
    let see = "echo \"[$V][$NOTES][$KEY][$NEVER][$WRONG]\"";
    let mut see = job("see", &[see], &["build", "wrong"]);
    let values = [
        ("V", "v${{ needs.build.outputs.version }}-rc"),
        ("NOTES", "${{ needs.build.outputs.notes }}"),
        ("KEY", "${{ needs.build.outputs.key }}"),
        ("NEVER", "${{ needs.build.outputs.never }}"),
        ("WRONG", "${{ needs.wrong.result }}"),
    ];
    for (name, from_needs) in values {
        let value = EnvValue::FromNeeds { from_needs: from_needs.to_owned() };
        see.env.insert(name.to_owned(), value);
    }
    let run = run(&site, vec![build, wrong, see]).await;
    let (build, log) = site.end(&run.jobs[0].job).await;
    let kept = &build.attempts[0].outputs;
    let expected = [("notes", "a\nb"), ("version", "1.3")];
    assert!(kept.iter().map(|(name, value)| (&**name, &**value)).eq(expected), "{kept:?}");
    assert!(log.contains("[runner] output key is left out: it has a secret in it\n"), "{log}");
    assert!(log.contains("[runner] output other is left out: the job has no such output"), "{log}");
    let (wrong, _) = site.end(&run.jobs[1].job).await;
    let summary = "line 1 of the outputs: expected NAME=VALUE, or NAME<<END and lines up to END";
    assert_eq!(wrong.attempts[0].summary.as_deref(), Some(summary));
    let (_, log) = site.end(&run.jobs[2].job).await;
    assert!(log.contains("\n[v1.3-rc][a\nb][][][FAILED]\n"), "{log}");
}

#[tokio::test]
async fn a_later_run_of_a_group_takes_the_place_of_the_one_at_work() {
    let site = Site::new().await;
    let submit = async |step: &str| {
        let job =
            JobSpec { name: "job".to_owned(), steps: vec![step.to_owned()], ..JobSpec::default() };
        let concurrency = Some(Concurrency { group: "main".to_owned(), cancel_in_progress: true });
        let run = NewRun { concurrency, jobs: vec![job], ..NewRun::default() };
        site.operator.submit(&run).await.unwrap()
    };
    let first = submit("echo ready; sleep 600").await;
    let running = site.start().await;
    site.log(&first.jobs[0].job, Some("\nready\n")).await;
    let second = submit("true").await;
    let why = site.operator.job(&second.jobs[0].job).await.unwrap().why_queued;
    if let Some(why) = why {
        assert_eq!(why, format!("{} has the turn of concurrency group main", first.run_id));
    }
    let (first, _) = site.end(&first.jobs[0].job).await;
    assert_eq!(first.ended_by, Some(EndReason::Superseded));
    running.end().await.unwrap();
    site.operator.revoke_token("tested", None).await.unwrap();
    site.start().await.end().await.unwrap();
    let (second, _) = site.end(&second.jobs[0].job).await;
    assert_eq!(second.summary.state, JobState::Succeeded);
}

/// Submits jobs and runs each with a new runner.
async fn run(site: &Site, jobs: Vec<JobSpec>) -> crate::messages::Run {
    let count = jobs.len();
    let run = site.operator.submit(&NewRun { jobs, ..NewRun::default() }).await.unwrap();
    for _ in 0..count {
        site.start().await.end().await.unwrap();
        // Frees the name for the next runner.
        site.operator.revoke_token("tested", None).await.unwrap();
    }
    site.operator.run(&run.run_id).await.unwrap()
}
