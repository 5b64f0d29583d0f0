//! `quickstart`: boots a devnet, runs a job on it, and shows what the protocol did, each step with
//! its command.

use super::{
    devnet::{self, DevnetOptions, Up, UpReport},
    job::{self, Submitted},
    naming::Naming,
    transaction::Signer,
};
use crate::{
    args,
    context::{self, Context, Deadline},
    error::{CliError, Exit},
    output::Document,
};
use clap::Args;
use cowboy_devnet::{
    client::{BlockAt, Client},
    orchestrator::home::{DevnetHome, DevnetState},
    topology::Name,
    types::{Explanation, ExplanationQuery, JobResult, MruRecord, Presence},
};
use cowboy_engine::{
    job::spec::{Bounds, CommandWork, JobSpec, Verification, Work},
    primitives::Wei,
};
use serde::Serialize;
use std::time::{Duration, Instant};

const NAME: &str = "quickstart";

const STOPPING: Duration = Duration::from_secs(20);

/// `quickstart`.
#[derive(Debug, Args)]
pub struct Quickstart {
    /// Stop the devnet at the end
    #[arg(long)]
    down: bool,
    /// Maximum time for everything
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
    timeout: Duration,
}

/// The documents of all steps.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct QuickstartReport {
    /// The devnet.
    devnet: UpReport,
    /// The runners that are present.
    presence: Presence,
    /// The job.
    job: Submitted,
    /// The draw of its runner.
    explanation: Explanation,
    /// Its result.
    result: JobResult,
    /// The runner that the next job of this submitter favours.
    mru: MruRecord,
}

impl Document for QuickstartReport {
    fn text(&self) -> String {
        self.result.text()
    }

    fn id(&self) -> String {
        self.job.job_id.to_string()
    }
}

impl Quickstart {
    /// Booting handles interruptions itself, so that no process is left behind.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let started = Instant::now();
        let deadline = Deadline::after(self.timeout);
        let name: Name = NAME.parse().expect("the name is a name");
        let devnet = context::home()?.devnet(&name);

        let up = Up {
            asked: DevnetOptions {
                name: Some(name.clone()),
                validators: Some(4),
                runners: Some(4),
                block_time: Some("250ms".parse().expect("it is a duration")),
                ..DevnetOptions::default()
            },
            detach: true,
            timeout: self.timeout,
            ..Up::default()
        };
        let report = boot(cx, &up, &devnet, started).await?;
        tokio::select! {
            outcome = self.show(cx, &devnet, report, deadline) => outcome,
            _ = tokio::signal::ctrl_c() => Err(CliError::interrupted()),
        }
    }

    async fn show(
        &self,
        cx: &Context,
        devnet: &DevnetHome,
        report: UpReport,
        deadline: Deadline,
    ) -> Result<(), CliError> {
        let booted = "cowboyctl devnet up --detach --name quickstart --block-time 250ms";
        step(cx, "a devnet of four validators and four runners", booted, &report)?;
        let client = cx.client_of(devnet)?;
        // When other devnets are running, commands have to name the devnet.
        let alone = cx.running(None).is_ok_and(|only| only == *devnet);
        let to_it = if alone { "" } else { " --devnet quickstart" };

        let presence = client.presence(BlockAt::Latest).await?;
        let command = format!("cowboyctl presence show latest{to_it}");
        step(cx, "which runners the validators vote present", &command, &presence)?;

        let signer = Signer::find(devnet, "dev-0")?;
        let job =
            job::submit(cx.ui, &client, &signer, greeting(), (true, &Naming::default()), deadline)
                .await?;
        let command = format!(
            "cowboyctl job submit custom --wait{to_it} -- sh -c 'echo hello from the devnet'"
        );
        step(cx, "a command as a job, run by one of them", &command, &job)?;
        let id = job.job_id.to_string();
        if let Some(job) = &job.job {
            job::succeeded(job)?;
        }

        let explanation = client.explain(&id, &ExplanationQuery::default()).await?;
        let command = format!("cowboyctl job explain {id}{to_it}");
        step(cx, "how that runner was drawn", &command, &explanation)?;

        let result = client.job_result(&id).await?;
        let command = format!("cowboyctl job result {id}{to_it}");
        step(cx, "the verified result", &command, &result)?;

        let mru = client.mru("dev-0", "custom").await?;
        let command = format!("cowboyctl mru show dev-0 custom{to_it}");
        step(cx, "the runner that the next job favours", &command, &mru)?;

        if !cx.ui.is_for_people() {
            cx.ui.document(&QuickstartReport {
                devnet: report,
                presence,
                job,
                explanation,
                result,
                mru,
            })?;
        }
        if self.down {
            devnet::stop(devnet, STOPPING).await?;
            cx.ui.note("the devnet is stopped; its chain is kept");
        } else {
            cx.ui.note(
                "the devnet keeps running. explore: cowboyctl --help; \
                 stop it: cowboyctl devnet down quickstart",
            );
        }
        Ok(())
    }
}

fn step(cx: &Context, about: &str, command: &str, shown: &impl Document) -> Result<(), CliError> {
    cx.ui.transcript(&format!("# {about}\n$ {command}"), shown)
}

async fn boot(
    cx: &Context,
    up: &Up,
    devnet: &DevnetHome,
    started: Instant,
) -> Result<UpReport, CliError> {
    let DevnetState::Running(record) = devnet.state()? else {
        return devnet::detached(cx, up).await;
    };
    cx.ui.note("devnet quickstart is already running, and is used unchanged");
    let client = Client::of_devnet(devnet)?;
    let status = client.status().await?;
    let head = status.head.ok_or_else(|| {
        CliError::new(Exit::NotRunning, "devnet `quickstart` is running and has no block yet")
    })?;
    let nodes = (status.validators.len(), status.runners.len());
    Ok(UpReport::new(record, devnet.path().to_owned(), head, nodes, started.elapsed()))
}

/// The job that the command line of the step describes, with `job submit`'s defaults.
fn greeting() -> JobSpec {
    let words = ["sh", "-c", "echo hello from the devnet"];
    JobSpec {
        work: Work::Custom(CommandWork {
            program: words[0].to_owned(),
            args: words[1..].iter().map(|word| (*word).to_owned()).collect(),
            env: Vec::new(),
            stdin: None,
            delivery: None,
        }),
        bounds: Bounds {
            max_return_bytes: 65_536,
            expected_execution_ms: 30_000,
            data_format: "bytes".to_owned(),
            max_memory_mb: 256,
        },
        verification: Verification::none(),
        max_price: Wei::cby(1),
        tip: Wei::ZERO,
        timeout_blocks: 120,
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    }
}
