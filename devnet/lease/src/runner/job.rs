//! A granted job from its ack to its end.
//!
//! ```text
//! ack ─▶ caches restored ─▶ container ─▶ steps ─▶ artifacts ─▶ caches saved ─▶ Complete
//!                 └────────────┴─────────┴──────────┴─────────────┴─ canceled ─▶ what there is
//!                                                                               ─▶ CancelAck
//! ```
//!
//! During all of this, heartbeats keep the lease and the log is sent. When the lease is lost,
//! nothing more is sent. When the job's time is over, the results so far are sent within the
//! server's grace, then a Complete that says so. When the runner ends, the output so far is sent,
//! and the lease is left to expire.

use super::{
    Stop,
    api::{Api, log_artifact},
    archive::{HOME, WORK},
    artifacts::Artifacts,
    attend::{End, exit_code},
    cache::{Caches, Folders, relative},
    container::{self, Container, Containers, Unmade},
    heartbeat::{CallError, Halt, Heartbeats, Loss, Said, unless},
    log::{Log, Lost},
    mask::Secrets,
    needs::{self, NeedError},
    output::{Output, Position},
    outputs,
    step::{self, StepContext},
    workspace::Workspace,
};
use crate::messages::{
    AckLease, AckLeaseTag, Artifact, CancelAck, CancelAckTag, Complete, CompleteStatus,
    CompleteTag, FinalStatus, LeaseGranted, LogCursor, MAX_OUTPUT_BYTES, MAX_OUTPUTS, StaleReason,
    Timings,
};
use cowboy_host::{
    process::{DIRECTORY_VARIABLE, Directory},
    spelling::Quoted,
};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs::DirBuilder,
    os::unix::{fs::DirBuilderExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// Longest summary, in bytes.
const MAX_SUMMARY: usize = 4 << 10;

/// The outcome of a job on this runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Failed(String),
    Canceled,
    TimedOut,
    Lost(Loss),
    Stopped,
    Refused(String),
}

enum Worked {
    Done,
    Failed { exit_code: Option<i32>, summary: String },
    Halted(Halt, Stopped),
}

#[derive(Default)]
struct Stopped {
    /// The first line of the running step; `None` between two steps.
    step: Option<String>,
    /// The exit code of that step, or of one that had failed before.
    exit_code: Option<i32>,
}

struct Job<'a> {
    granted: &'a LeaseGranted,
    runner: &'a str,
    api: &'a Api,
    hold: &'a Heartbeats,
    log: &'a Log,
    position: &'a Position,
    output: Output<'a>,
    artifacts: Artifacts,
    /// Values for the jobs that need this one.
    outputs: BTreeMap<String, String>,
    timings: Timings,
}

struct Prepared {
    /// Where steps start, relative to the job's `work`.
    workdir: PathBuf,
    env: BTreeMap<String, OsString>,
}

/// Runs the job that was granted at `at` in `directory`, which is removed afterwards. A job with an
/// image runs in one of `containers`, if the runner has any.
pub(super) async fn run(
    granted: &LeaseGranted,
    at: Instant,
    runner: &str,
    api: &Api,
    containers: Option<&Containers>,
    directory: Directory,
    stop: Stop,
) -> Outcome {
    let hold = Heartbeats::new(granted, runner, at);
    let workspace = Workspace::new(directory);
    let mut container = Container::new(containers, workspace.path());
    let work = work(granted, runner, api, &hold, &workspace, &mut container, stop);
    let outcome = Box::pin(work).await;
    container.remove().await;
    workspace.close().await;
    outcome
}

async fn work(
    granted: &LeaseGranted,
    runner: &str,
    api: &Api,
    hold: &Heartbeats,
    workspace: &Workspace,
    container: &mut Container<'_>,
    stop: Stop,
) -> Outcome {
    let acked = Instant::now();
    if let Err(outcome) = ack(granted, runner, api, hold, &stop).await {
        return outcome;
    }
    let spec = &granted.job_spec;
    let secrets = spec.secret_env.iter().filter_map(|name| spec.env.get(name));
    let secrets = Arc::new(Secrets::new(secrets.map(String::as_str)));
    let (log, position) = (Log::new(), Position::new(spec.steps.len()));
    let job = Job {
        granted,
        runner,
        api,
        hold,
        log: &log,
        position: &position,
        output: Output::new(&log, &position, secrets),
        artifacts: Artifacts::default(),
        outputs: BTreeMap::new(),
        timings: Timings { started_at: None, finished_at: None },
    };
    let told = || (position.get(), LogCursor { bytes_sent: log.sent() });
    let end = acked + Duration::from_secs(granted.max_runtime_seconds);
    let background = async {
        tokio::join!(hold.keep(api, told, end, stop), log.deliver(api, hold));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = job.run(workspace, container) => outcome,
        () = background => unreachable!("it never ends"),
    }
}

async fn ack(
    granted: &LeaseGranted,
    runner: &str,
    api: &Api,
    hold: &Heartbeats,
    stop: &Stop,
) -> Result<(), Outcome> {
    let message = AckLease {
        tag: AckLeaseTag::default(),
        job_id: granted.job_id.clone(),
        lease_id: granted.lease_id.clone(),
        runner_id: runner.to_owned(),
        accepted_at: Some(Timestamp::now().to_string()),
    };
    let acked = tokio::select! {
        biased;
        () = hold.expire() => Err(CallError::Lost),
        () = stop.requested() => return Err(Outcome::Stopped),
        acked = hold.call(None, || api.ack(&message)) => acked.map(drop),
    };
    match acked {
        Ok(()) => Ok(()),
        Err(CallError::Lost) => Err(Outcome::Lost(hold.lost().await)),
        Err(CallError::Refused(error)) => Err(Outcome::Refused(error.to_string())),
    }
}

/// Waits for `work`, at most until the deadline of a job that has to stop.
async fn in_time(hold: &Heartbeats, work: impl Future<Output = ()>) {
    let _ = unless(hold.cutoff(), work).await;
}

impl Job<'_> {
    async fn run(mut self, workspace: &Workspace, container: &mut Container<'_>) -> Outcome {
        let (api, hold, directory) = (self.api, self.hold, workspace.path());
        let spec = &self.granted.job_spec;
        let prepared = match self.prepare(directory, container) {
            Ok(prepared) => prepared,
            Err(summary) => {
                let worked = self.fails(summary).await;
                return self.end(worked, directory).await;
            }
        };
        let folders = Folders { job: workspace, workdir: &prepared.workdir };
        let workdir = directory.join(WORK).join(&prepared.workdir);
        let mut caches = Caches::new(&spec.caches);
        if !spec.caches.is_empty() {
            self.position.done(0, "restoring caches");
            in_time(hold, caches.restore(&folders, api, hold, &mut self.output)).await;
        }
        if let Some(ended) = self.bring_needs(&workdir).await {
            return self.end(ended, &workdir).await;
        }
        let home = directory.join(HOME);
        if let Err(error) = outputs::make(&home) {
            let summary = format!("the outputs file cannot be made: {error}");
            let worked = Worked::Failed { exit_code: None, summary };
            return self.end(worked, &workdir).await;
        }
        if let Some(ended) = self.make(container, &prepared.env).await {
            return self.end(ended, &workdir).await;
        }
        self.timings.started_at = Some(Timestamp::now().to_string());
        let within = spec.image.as_ref().map(|_| &*container);
        let env = &prepared.env;
        let place = StepContext { job: directory, workdir: &workdir, env, container: within };
        let worked = self.steps(&place).await;
        self.timings.finished_at = Some(Timestamp::now().to_string());
        in_time(hold, container.kill()).await;
        let worked = self.read_outputs(&home, worked).await;
        if !matches!(worked, Worked::Halted(..)) {
            let _ = unless(hold.halted(), self.upload(&workdir)).await;
        }
        if matches!(worked, Worked::Done) && !spec.caches.is_empty() {
            self.position.done(self.position.steps(), "saving caches");
            in_time(hold, caches.save(&folders, api, hold, &mut self.output)).await;
        }
        self.end(worked, &workdir).await
    }

    fn prepare(&self, directory: &Path, within: &Container<'_>) -> Result<Prepared, String> {
        let spec = &self.granted.job_spec;
        let workdir = relative(Path::new(&spec.workdir)).ok_or_else(|| {
            format!("workdir {} does not lead below the job's directory", spec.workdir)
        })?;
        if let Some(name) = spec.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err(format!("{} is not an environment variable name", Quoted(name)));
        }
        let home = directory.join(HOME);
        let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder);
        make(&home)
            .and_then(|()| make(&directory.join(WORK).join(&workdir)))
            .map_err(|error| format!("the job's folders cannot be made: {error}"))?;
        // Every path that is passed to a step is translated by this.
        let seen = |path: &Path| match spec.image {
            None => path.to_owned(),
            Some(_) => container::inside(directory, path),
        };
        let mut env: BTreeMap<String, OsString> = BTreeMap::new();
        if spec.image.is_none() {
            env.insert("PATH".to_owned(), env::var_os("PATH").unwrap_or_default());
        }
        env.insert("HOME".to_owned(), seen(&home).into());
        env.extend(spec.env.iter().map(|(name, value)| (name.clone(), value.into())));
        env.insert("COWBOY_OUTPUT".to_owned(), seen(&outputs::path(&home)).into());
        let own = [
            ("COWBOY_RUN_ID", self.granted.run_id.clone()),
            ("COWBOY_JOB_ID", self.granted.job_id.clone()),
            ("COWBOY_JOB_NAME", spec.name.clone()),
            ("COWBOY_ATTEMPT", self.granted.attempt.to_string()),
        ];
        env.extend(own.map(|(name, value)| (name.to_owned(), value.into())));
        if let Some(image) = &spec.image {
            env.insert(DIRECTORY_VARIABLE.to_owned(), seen(directory).into());
            within.check(image, &env)?;
        }
        Ok(Prepared { workdir, env })
    }

    async fn steps(&mut self, place: &StepContext<'_>) -> Worked {
        let hold = self.hold;
        let steps = &self.granted.job_spec.steps;
        for (index, script) in (0..).zip(steps) {
            if let Some(halt) = hold.is_halted() {
                return Worked::Halted(halt, Stopped::default());
            }
            let line = self.output.first_line(script);
            in_time(hold, self.output.begin(index, &line)).await;
            let (exit_code, what) = match step::run(place, script, hold, &mut self.output).await {
                Ok(End::Halted(halt, status)) => {
                    let exit_code = Some(exit_code(status));
                    return Worked::Halted(halt, Stopped { step: Some(line), exit_code });
                }
                Ok(End::Exited(status)) if status.success() => continue,
                Ok(End::Exited(status)) => {
                    let what = match status.signal() {
                        Some(signal) => format!("was killed by signal {signal}"),
                        None => format!("failed with exit code {}", exit_code(status)),
                    };
                    (Some(exit_code(status)), what)
                }
                Err(error) => (None, format!("cannot be run: {error}")),
            };
            let what = format!("step {} of {} {what}", index + 1, steps.len());
            in_time(hold, self.output.note(&what)).await;
            return Worked::Failed { exit_code, summary: format!("{what}: {line}") };
        }
        Worked::Done
    }

    /// Puts the artifacts of the needed jobs into the working directory. Returns how the job ends
    /// if this is not possible.
    async fn bring_needs(&mut self, workdir: &Path) -> Option<Worked> {
        if self.granted.job_spec.needs.is_empty() {
            return None;
        }
        self.position.done(0, "getting artifacts of needed jobs");
        match needs::bring(workdir, self.api, self.hold).await {
            Ok(0) | Err(NeedError::Halted) => None,
            Ok(count) => {
                let text = format!("artifacts of the jobs that it needs: {count}");
                in_time(self.hold, self.output.note(&text)).await;
                None
            }
            Err(NeedError::Failed(summary)) => {
                let summary = self.output.mask(&summary);
                Some(self.fails(summary).await)
            }
        }
    }

    /// Fails for a reason that its log tells.
    async fn fails(&mut self, summary: String) -> Worked {
        in_time(self.hold, self.output.note(&summary)).await;
        Worked::Failed { exit_code: None, summary }
    }

    /// Reads the outputs that the steps wrote. If they cannot be read, a successful job fails.
    async fn read_outputs(&mut self, home: &Path, worked: Worked) -> Worked {
        let all = match outputs::read(home) {
            Ok(all) => self.declared(all).await,
            Err(summary) => Err(self.output.mask(&summary)),
        };
        let failed = match all {
            Ok(all) => {
                self.outputs = all;
                return worked;
            }
            Err(summary) => self.fails(summary).await,
        };
        if matches!(worked, Worked::Done) { failed } else { worked }
    }

    /// The outputs that the job declares and that hold no secret, if they are not too long.
    async fn declared(
        &mut self,
        mut all: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, String> {
        let declared = &self.granted.job_spec.outputs;
        let mut dropped = Vec::new();
        all.retain(|name, value| {
            let why = match (declared.contains(name), self.output.tells(value)) {
                (true, false) => return true,
                (true, true) => "it has a secret in it",
                (false, _) => "the job has no such output",
            };
            dropped.push(format!("output {name} is left out: {why}"));
            false
        });
        for text in dropped.iter().take(MAX_OUTPUTS) {
            in_time(self.hold, self.output.note(text)).await;
        }
        match outputs::fit(&all) {
            true => Ok(all),
            false => Err(format!("the outputs have more than {MAX_OUTPUT_BYTES} bytes")),
        }
    }

    /// Creates the container of a job with an image. Returns how the job ends if that fails.
    async fn make(
        &mut self,
        container: &mut Container<'_>,
        env: &BTreeMap<String, OsString>,
    ) -> Option<Worked> {
        let (image, hold) = (self.granted.job_spec.image.as_ref()?, self.hold);
        self.position.done(0, "making its container");
        match container.start(image, env, hold, &mut self.output).await {
            Ok(()) => None,
            Err(Unmade::Halted(halt)) => Some(Worked::Halted(halt, Stopped::default())),
            Err(Unmade::Failed(summary)) => {
                let summary = self.output.mask(&summary);
                Some(self.fails(summary).await)
            }
        }
    }

    async fn upload(&mut self, workdir: &Path) {
        let specs = &self.granted.job_spec.artifacts;
        self.artifacts.upload(specs, workdir, self.api, self.hold, &mut self.output).await;
    }

    async fn end(self, worked: Worked, workdir: &Path) -> Outcome {
        let hold = self.hold;
        let _ = unless(hold.halted(), self.log.flush()).await;
        let worked = match (worked, hold.is_halted()) {
            (Worked::Halted(halt, stopped), _) => return self.halt(halt, stopped, workdir).await,
            (Worked::Failed { exit_code, .. }, Some(halt)) => {
                return self.halt(halt, Stopped { step: None, exit_code }, workdir).await;
            }
            (Worked::Done, Some(halt)) => {
                return self.halt(halt, Stopped::default(), workdir).await;
            }
            (worked, None) => worked,
        };
        let steps = self.granted.job_spec.steps.len();
        let (status, exit_code, summary) = match worked {
            Worked::Failed { exit_code, summary } => (CompleteStatus::Failed, exit_code, summary),
            _ => {
                (CompleteStatus::Succeeded, Some(0), format!("{steps} of {steps} steps succeeded"))
            }
        };
        let complete = self.complete(status, exit_code, &summary);
        let send = || self.api.complete(&complete);
        match hold.last_word(StaleReason::LeaseCompleted, send).await {
            Said::Accepted if status == CompleteStatus::Succeeded => Outcome::Succeeded,
            Said::Accepted => Outcome::Failed(self.summary(&summary)),
            Said::Canceled(halt) => self.halt(halt, Stopped::default(), workdir).await,
            Said::Lost(loss) => Outcome::Lost(loss),
            Said::Refused(error) => Outcome::Refused(error.to_string()),
        }
    }

    /// Sends the last messages about a job that had to stop and whose processes have ended.
    async fn halt(mut self, halt: Halt, stopped: Stopped, workdir: &Path) -> Outcome {
        let hold = self.hold;
        let at = match &stopped.step {
            Some(line) => format!("during step: {line}"),
            None => "between steps".to_owned(),
        };
        let (summary, outcome) = match halt {
            Halt::Lost(loss) => return Outcome::Lost(loss),
            Halt::Canceled { .. } => (format!("Canceled {at}"), Outcome::Canceled),
            Halt::TimedOut { .. } => {
                let limit = self.granted.max_runtime_seconds;
                (format!("Not done within {limit} s, stopped {at}"), Outcome::TimedOut)
            }
            Halt::Stopped => (format!("The runner ends, stopped {at}"), Outcome::Stopped),
        };
        let last = async {
            self.output.note(&summary).await;
            self.log.flush().await;
            if outcome != Outcome::Stopped {
                self.upload(workdir).await;
                self.log.flush().await;
            }
        };
        in_time(hold, last).await;
        match outcome {
            Outcome::Canceled => self.cancel_ack(&summary).await,
            Outcome::TimedOut => {
                let exit_code = stopped.exit_code;
                let complete = self.complete(CompleteStatus::Failed, exit_code, &summary);
                let complete = Complete { timed_out: true, ..complete };
                let send = || self.api.complete(&complete);
                match hold.last_word(StaleReason::LeaseCompleted, send).await {
                    // After the end of the grace, the server already knows how the job ended.
                    Said::Accepted | Said::Lost(_) => Outcome::TimedOut,
                    Said::Canceled(_) => self.cancel_ack(&summary).await,
                    Said::Refused(error) => Outcome::Refused(error.to_string()),
                }
            }
            outcome => outcome,
        }
    }

    async fn cancel_ack(&self, summary: &str) -> Outcome {
        let ack = CancelAck {
            tag: CancelAckTag::default(),
            lease_id: self.granted.lease_id.clone(),
            runner_id: self.runner.to_owned(),
            final_status: FinalStatus::Canceled,
            ts: Some(Timestamp::now().to_string()),
            artifacts: self.kept(),
            summary: Some(self.summary(summary)),
        };
        let send = || self.api.cancel_ack(&ack);
        match self.hold.last_word(StaleReason::LeaseCanceled, send).await {
            Said::Accepted | Said::Canceled(_) => Outcome::Canceled,
            Said::Lost(loss) => Outcome::Lost(loss),
            Said::Refused(error) => Outcome::Refused(error.to_string()),
        }
    }

    fn complete(&self, status: CompleteStatus, exit_code: Option<i32>, summary: &str) -> Complete {
        Complete {
            tag: CompleteTag::default(),
            lease_id: self.granted.lease_id.clone(),
            runner_id: self.runner.to_owned(),
            status,
            timed_out: false,
            exit_code,
            timings: Some(self.timings.clone()),
            started_at: None,
            finished_at: None,
            artifacts: self.kept(),
            outputs: self.outputs.clone(),
            summary: Some(self.summary(summary)),
        }
    }

    /// The artifacts of the job, its log first.
    fn kept(&self) -> Vec<Artifact> {
        let log = log_artifact(&self.granted.job_id, self.granted.attempt);
        [log].into_iter().chain(self.artifacts.kept().iter().cloned()).collect()
    }

    /// A summary without secrets, with a note if the log was cut off.
    fn summary(&self, text: &str) -> String {
        let mut summary = self.output.mask(text);
        match self.log.lost() {
            None => {}
            Some(Lost::Full) => summary.push_str(" (the log is cut off: the server's limit)"),
            Some(Lost::Refused(reason)) => {
                summary.push_str(&format!(" (the log is cut off: {reason})"));
            }
        }
        summary.truncate(summary.floor_char_boundary(MAX_SUMMARY));
        summary
    }
}
