//! `speculation load`: runs many pipelines at once and reports the results (AgenC §9.4).
//!
//! Up to `--parallel` chains run at a time, until all are submitted or the time is over. Chains
//! that are then still running are waited for. Options that a run needs are set before it and
//! restored after it.

use crate::{
    args, complete,
    context::Context,
    error::{CliError, Exit},
    output::{
        ColumnOf, Document, Ui, amount, fields, millis, or_dash,
        pipeline::{by_name, one_line},
        table_of, to_ms,
    },
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    speculation::{
        pipeline::{Dependency, TaskEntry},
        workload::Workload,
    },
    types::{
        AmountText, ConfigureRequest, PipelineQuery, PipelineRequest, PipelineStatus,
        SpeculationOption, SpeculationStatus,
    },
};
use cowboy_engine::primitives::Wei;
use cowboy_host::duration::Plain;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep},
};

/// Maximum length of a chain, number of tasks, and number of pipelines at a time.
const MAX_DEPTH: u64 = 64;
const MAX_TASKS: u64 = 100_000;
const MAX_PARALLEL: u64 = 128;
const MAX_DURATION: Duration = Duration::from_secs(3_600);
/// How long to wait for running chains when the time is over.
const GRACE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(100);

/// `speculation load`.
#[derive(Debug, Args)]
pub struct Load {
    /// Tasks in a chain, each of which reads the output of the previous one
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=MAX_DEPTH))]
    depth: u64,
    /// Total number of tasks
    #[arg(long, default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_TASKS))]
    tasks: u64,
    /// Chains to run at the same time
    #[arg(long, default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_PARALLEL))]
    parallel: u64,
    /// How long to submit chains, an hour at most
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    duration: Duration,
    /// With speculation on or off [default: unchanged]
    #[arg(long, value_enum)]
    speculation: Option<Switch>,
    /// With speculation on, then off: the ratio of tasks per second
    #[arg(long, conflicts_with = "speculation")]
    compare: bool,
    /// With the options of this workload: low-latency-pipelines, production-default,
    /// safety-critical or testing
    #[arg(long, value_parser = args::named("workload", Workload::ALL))]
    #[arg(add = ArgValueCandidates::new(|| complete::all(Workload::ALL)))]
    workload: Option<Workload>,
}

/// Whether tasks run before their ancestors are confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    /// Before their ancestors are confirmed.
    On,
    /// After their ancestors are confirmed.
    Off,
}

/// The results of a load.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LoadReport {
    /// Tasks in a chain.
    depth: u64,
    /// Requested number of tasks, in each run.
    tasks: u64,
    /// Chains that ran at the same time.
    parallel: u64,
    /// Maximum time for submitting chains, in ms.
    duration_ms: u64,
    /// The workload whose options were set.
    workload: Option<String>,
    /// The devnet's options that affect the figures.
    options: BTreeMap<String, String>,
    /// The runs in their order.
    runs: Vec<LoadRun>,
    /// Tasks per second with speculation on, divided by those with it off; absent unless both ran
    /// to the end.
    ratio: Option<f64>,
    /// Whether it was interrupted.
    interrupted: bool,
}

/// One run of a load.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct LoadRun {
    /// Whether tasks ran before their ancestors were confirmed.
    speculation: bool,
    /// Chains submitted.
    pipelines: u64,
    /// Tasks submitted.
    tasks: u64,
    /// Tasks confirmed.
    confirmed: u64,
    /// Tasks that failed, were rolled back or cancelled.
    undone: u64,
    /// Tasks that were not final when the run ended.
    unfinished: u64,
    /// From the first submission to the last confirmation, in ms.
    elapsed_ms: u64,
    /// Confirmed tasks a second in that time, to two decimals.
    confirmed_per_s: f64,
    /// Time from the submission of a task's chain to the task's confirmation.
    latency: Latency,
    /// Rollbacks by reason, of all pipelines.
    rollbacks: BTreeMap<String, u64>,
    /// Refusals by reason, of all pipelines; a waiting task counts again when its reason changes.
    refusals: BTreeMap<String, u64>,
    /// The maximum stake seen locked, in wei.
    #[cfg_attr(test, schema(value_type = String))]
    locked_peak: AmountText,
    /// The maximum number of proofs seen waiting for a prover.
    queued_peak: u64,
}

/// Percentiles of the time from submission to confirmation, in ms; absent if no task was confirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Latency {
    /// The median.
    p50_ms: Option<u64>,
    /// The 95th percentile.
    p95_ms: Option<u64>,
    /// The 99th percentile.
    p99_ms: Option<u64>,
}

impl Latency {
    fn of(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        let rank = |percent: usize| {
            let rank = (all.len() * percent).div_ceil(100);
            all.get(rank.saturating_sub(1)).copied()
        };
        Self { p50_ms: rank(50), p95_ms: rank(95), p99_ms: rank(99) }
    }
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[derive(Default)]
struct Counts {
    submitted: u64,
    tasks: u64,
    confirmed: u64,
    undone: u64,
    unfinished: u64,
    latencies: Vec<u64>,
    /// The first submission and the last confirmation, Unix ms.
    first: Option<i64>,
    last: Option<i64>,
    locked_peak: Wei,
    queued_peak: u64,
}

impl Counts {
    fn look(&mut self, status: &SpeculationStatus) {
        self.queued_peak = self.queued_peak.max(status.proofs_queued);
        self.locked_peak = self.locked_peak.max(*status.stake_locked);
    }

    async fn take(&mut self, client: &Client, number: u64) -> Result<(), CliError> {
        let pipeline = client.pipeline(number).await?;
        let summary = &pipeline.summary;
        let since = summary.submitted_at.as_millisecond();
        self.first = Some(self.first.map_or(since, |first| first.min(since)));
        self.confirmed += summary.confirmed;
        self.undone += summary.undone;
        self.unfinished += summary.tasks - summary.confirmed - summary.undone;
        for ms in pipeline.graph.iter().filter_map(|task| task.times.confirmed_ms) {
            self.latencies.push(ms);
            let at = since.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        Ok(())
    }
}

fn since(now: BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let more = |(name, count): (String, u64)| {
        let count = count.saturating_sub(before.get(&name).copied().unwrap_or(0));
        (count > 0).then_some((name, count))
    };
    now.into_iter().filter_map(more).collect()
}

impl Load {
    /// An interruption ends it with a partial report.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        if self.duration > MAX_DURATION {
            let what = format!("--duration {}: expected 0ms to 1h", Plain(self.duration));
            return Err(CliError::new(Exit::Usage, what));
        }
        let client = cx.client()?;
        let before = client.speculation_options().await?;
        let mut stop = Stop::new()?;
        let outcome = self.runs(cx.ui, &client, &mut stop).await;
        let restored = self.restore(&client, &before).await;
        let report = outcome?;
        cx.ui.document(&report)?;
        restored?;
        match stop.interrupted {
            true => Err(CliError::interrupted()),
            false => Ok(()),
        }
    }

    fn settings(&self, speculates: Option<bool>) -> BTreeMap<String, String> {
        let workload = self.workload.map(Workload::settings).unwrap_or_default();
        let settings =
            workload.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let switch = speculates.map(|on| ("enabled".to_owned(), on.to_string()));
        settings.chain(switch).collect()
    }

    /// The requested runs, by whether they speculate.
    fn wanted(&self) -> Vec<Option<bool>> {
        match (self.compare, self.speculation) {
            (true, _) => vec![Some(true), Some(false)],
            (false, Some(switch)) => vec![Some(switch == Switch::On)],
            (false, None) => vec![None],
        }
    }

    async fn runs(&self, ui: Ui, client: &Client, stop: &mut Stop) -> Result<LoadReport, CliError> {
        let mut runs = Vec::new();
        let mut options = BTreeMap::new();
        for speculates in self.wanted() {
            let settings = self.settings(speculates);
            if !settings.is_empty() {
                client.configure_speculation(&ConfigureRequest { options: settings }).await?;
            }
            options = telling(&client.speculation_options().await?);
            let run = self.one(ui, client, stop).await?;
            let whole = run.unfinished == 0;
            runs.push(run);
            // Chains that are still running would distort the figures of the next run.
            if stop.interrupted || !whole {
                break;
            }
        }
        let ratio = match runs.as_slice() {
            [on, off] if off.confirmed_per_s > 0.0 && !stop.interrupted => {
                Some(hundredths(on.confirmed_per_s / off.confirmed_per_s))
            }
            _ => None,
        };
        Ok(LoadReport {
            depth: self.depth,
            tasks: self.tasks,
            parallel: self.parallel,
            duration_ms: to_ms(self.duration),
            workload: self.workload.map(|workload| workload.to_string()),
            options,
            runs,
            ratio,
            interrupted: stop.interrupted,
        })
    }

    async fn one(&self, ui: Ui, client: &Client, stop: &mut Stop) -> Result<LoadRun, CliError> {
        let before = client.speculation().await?;
        let mut counts = Counts::default();
        let mut flying = BTreeSet::new();
        let progress = ui.progress("running chains".to_owned());
        let begun = Instant::now();
        loop {
            let more = !stop.interrupted && begun.elapsed() < self.duration;
            while more && counts.tasks < self.tasks && (flying.len() as u64) < self.parallel {
                let tasks = self.depth.min(self.tasks - counts.tasks);
                flying.insert(client.submit_pipeline(&chain(tasks)).await?.pipeline);
                counts.submitted += 1;
                counts.tasks += tasks;
            }
            if flying.is_empty() {
                break;
            }
            let over = begun.elapsed() > self.duration + GRACE;
            if over || stop.interrupted {
                for number in std::mem::take(&mut flying) {
                    counts.take(client, number).await?;
                }
                break;
            }
            stop.pause().await;
            counts.look(&client.speculation().await?);
            for number in ended(client, &flying).await? {
                flying.remove(&number);
                counts.take(client, number).await?;
            }
            let (done, of) = (counts.confirmed + counts.undone, self.tasks);
            progress.show(format!("{done} of {of} tasks, {} chains running", flying.len()));
        }
        let after = client.speculation().await?;
        let elapsed = counts.last.zip(counts.first).map_or(0, |(last, first)| last - first);
        let elapsed_ms = u64::try_from(elapsed).unwrap_or(0);
        let per_s = counts.confirmed as f64 * 1_000.0 / elapsed_ms.max(1) as f64;
        Ok(LoadRun {
            speculation: after.enabled,
            pipelines: counts.submitted,
            tasks: counts.tasks,
            confirmed: counts.confirmed,
            undone: counts.undone,
            unfinished: counts.unfinished,
            elapsed_ms,
            confirmed_per_s: hundredths(per_s),
            latency: Latency::of(counts.latencies),
            rollbacks: since(after.rollbacks, &before.rollbacks),
            refusals: since(after.tasks_rejected, &before.tasks_rejected),
            locked_peak: counts.locked_peak.into(),
            queued_peak: counts.queued_peak,
        })
    }

    async fn restore(&self, client: &Client, before: &[SpeculationOption]) -> Result<(), CliError> {
        let changed: BTreeMap<_, _> = self
            .wanted()
            .into_iter()
            .flat_map(|speculates| self.settings(speculates).into_keys())
            .filter_map(|name| before.iter().find(|one| one.option == name))
            .map(|one| (one.option.clone(), one.value.clone()))
            .collect();
        if !changed.is_empty() {
            client.configure_speculation(&ConfigureRequest { options: changed }).await?;
        }
        Ok(())
    }
}

fn chain(tasks: u64) -> PipelineRequest {
    let name = |at: u64| format!("t{at}");
    let task = |at: u64| TaskEntry {
        id: name(at),
        depends_on: at.checked_sub(1).map(|at| Dependency::Reads(name(at))).into_iter().collect(),
        command: match at {
            0 => vec!["echo".to_owned(), "0".to_owned()],
            _ => vec!["cat".to_owned()],
        },
        attempts: 1,
        ..TaskEntry::default()
    };
    PipelineRequest { name: "load".to_owned(), tasks: (0..tasks).map(task).collect() }
}

async fn ended(client: &Client, flying: &BTreeSet<u64>) -> Result<Vec<u64>, CliError> {
    let query =
        PipelineQuery { status: Some(PipelineStatus::Running), name: None, limit: Some(10_000) };
    let running: BTreeSet<_> =
        client.pipelines(&query).await?.into_iter().map(|one| one.pipeline).collect();
    Ok(flying.difference(&running).copied().collect())
}

fn telling(all: &[SpeculationOption]) -> BTreeMap<String, String> {
    const TELLING: [&str; 9] = [
        "mode",
        "maxDepth",
        "maxParallelBranches",
        "maxConcurrent",
        "proof.generator",
        "proof.workerThreads",
        "proof.latency",
        "confirmation.latency",
        "stake.maxStake",
    ];
    let telling = all.iter().filter(|one| TELLING.contains(&one.option.as_str()));
    telling.map(|one| (one.option.clone(), one.value.clone())).collect()
}

/// The user's signal, which may arrive during a check.
#[derive(Debug)]
struct Stop {
    signal: Signal,
    interrupted: bool,
}

impl Stop {
    fn new() -> Result<Self, CliError> {
        let signal = signal(SignalKind::interrupt())
            .map_err(|error| CliError::failed(format!("cannot wait for a signal: {error}")))?;
        Ok(Self { signal, interrupted: false })
    }

    async fn pause(&mut self) {
        tokio::select! {
            () = sleep(PAUSE) => {}
            _ = self.signal.recv() => self.interrupted = true,
        }
    }
}

impl Document for LoadReport {
    fn text(&self) -> String {
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        let options: Vec<_> = options.collect();
        let Self { depth, tasks, parallel, .. } = self;
        let mut lines = vec![
            ("load", format!("{tasks} tasks in chains of {depth}, {parallel} at a time")),
            ("for", format!("{} at most", millis(self.duration_ms))),
        ];
        lines.extend(self.workload.as_ref().map(|workload| ("workload", workload.clone())));
        lines.push(("options", one_line(&options.join(", "))));
        lines.extend(self.ratio.map(|ratio| ("ratio", format!("{ratio} × the tasks a second"))));
        if self.interrupted {
            lines.push(("interrupted", "running chains continue".to_owned()));
        }
        let least = ["locked at most", "p50", "p99", "refusals", "rollbacks", "undone"];
        format!("{}\n\n{}", fields(&lines), table_of(&least, RUNS, &self.runs))
    }

    fn id(&self) -> String {
        let rates = self.runs.iter().map(|run| run.confirmed_per_s.to_string());
        rates.collect::<Vec<_>>().join("\n")
    }
}

const RUNS: &[ColumnOf<LoadRun>] = &[
    ("speculation", |run| if run.speculation { "on" } else { "off" }.to_owned()),
    (">tasks", |run| run.tasks.to_string()),
    (">confirmed", |run| run.confirmed.to_string()),
    (">undone", |run| run.undone.to_string()),
    (">unfinished", |run| run.unfinished.to_string()),
    (">took", |run| millis(run.elapsed_ms)),
    (">a second", |run| format!("{:.2}", run.confirmed_per_s)),
    (">p50", |run| or_dash(run.latency.p50_ms.map(millis))),
    (">p95", |run| or_dash(run.latency.p95_ms.map(millis))),
    (">p99", |run| or_dash(run.latency.p99_ms.map(millis))),
    (">locked at most", |run| amount(*run.locked_peak)),
    ("rollbacks", |run| by_name(&run.rollbacks)),
    ("refusals", |run| by_name(&run.refusals)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_latencies_that_were_measured() {
        let all = |range: std::ops::RangeInclusive<u64>| Latency::of(range.rev().collect());
        let latency =
            |p50, p95, p99| Latency { p50_ms: Some(p50), p95_ms: Some(p95), p99_ms: Some(p99) };
        assert_eq!(all(1..=100), latency(50, 95, 99));
        assert_eq!(all(1..=5), latency(3, 5, 5));
        assert_eq!(Latency::of(vec![7]), latency(7, 7, 7));
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
