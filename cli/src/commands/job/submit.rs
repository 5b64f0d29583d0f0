//! `job submit`: the spec from the command line, its transaction, and the wait for the result.

use crate::{
    args,
    commands::transaction::{self, Signer},
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Document, Ui, fields, millis},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::types::{BytesText, HashText, Job, JobStatus, RunnerProgress},
    client::Client,
};
use cowboy_engine::{
    chain::transaction::Payload,
    job::spec::{Bounds, CommandWork, HttpWork, JobSpec, Verification, VerificationMode, Work},
    primitives::Wei,
};
use serde::Serialize;
use std::{path::PathBuf, sync::Arc, time::Duration};

#[derive(Debug, Subcommand)]
pub enum Submit {
    /// A command, run in a fresh directory; its standard output is the result
    Custom {
        /// The command's environment
        #[arg(long = "env", value_name = "KEY=VALUE", value_parser = args::variable)]
        #[arg(env = "COWBOYCTL_ENV", hide_env_values = true)]
        variables: Vec<(String, String)>,
        /// A file that the command reads as its standard input; - for this one's
        #[arg(long, value_name = "FILE", env = "COWBOYCTL_STDIN", hide_env_values = true)]
        stdin: Option<PathBuf>,
        #[command(flatten)]
        terms: Terms,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// An HTTP request; the answer's body is the result
    Http {
        /// The address, http or https
        url: String,
        /// The request's method
        #[arg(long, default_value = "GET", env = "COWBOYCTL_METHOD", hide_env_values = true)]
        method: String,
        /// A header of the request
        #[arg(long, value_name = "NAME: VALUE", value_parser = args::header)]
        #[arg(env = "COWBOYCTL_HEADER", hide_env_values = true)]
        header: Vec<(String, String)>,
        /// The request's body
        #[arg(long, value_name = "TEXT", env = "COWBOYCTL_BODY", hide_env_values = true)]
        body: Option<String>,
        /// A JSON pointer into the answer, as /data/0; what it points at is the result
        #[arg(long, env = "COWBOYCTL_POINTER", hide_env_values = true)]
        pointer: Option<String>,
        #[command(flatten)]
        terms: Terms,
    },
}

/// What every job is submitted with.
#[derive(Debug, Args)]
pub struct Terms {
    /// The account that pays: a name, or an address whose key is in the devnet's folder
    #[arg(long, value_name = "ACCOUNT", default_value = "dev-0")]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    from: String,
    /// Wait for the result
    #[arg(long)]
    wait: bool,
    /// How long to wait at most
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
    #[arg(env = "COWBOYCTL_TIMEOUT", hide_env_values = true)]
    timeout: Duration,
    /// What the runner may charge at most: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "1cby")]
    #[arg(env = "COWBOYCTL_MAX_PRICE", hide_env_values = true)]
    max_price: Wei,
    /// What the runner gets on top: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    #[arg(env = "COWBOYCTL_TIP", hide_env_values = true)]
    tip: Wei,
    /// The blocks after which a job without result fails
    #[arg(long, value_name = "BLOCKS", default_value_t = 120)]
    #[arg(env = "COWBOYCTL_TIMEOUT_BLOCKS", hide_env_values = true)]
    timeout_blocks: u64,
    /// The longest result, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    #[arg(env = "COWBOYCTL_MAX_RETURN_BYTES", hide_env_values = true)]
    max_return_bytes: u32,
    /// How long the work may run
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
    #[arg(env = "COWBOYCTL_MAX_EXECUTION", hide_env_values = true)]
    max_execution: Duration,
    /// The most memory the work may take, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    #[arg(env = "COWBOYCTL_MAX_MEMORY", hide_env_values = true)]
    max_memory: u32,
}

impl Submit {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (work, terms) = self.parse()?;
        let devnet = cx.running(None)?;
        let client = cx.client_of(&devnet)?;
        let signer = Signer::find(&devnet, &terms.from)?;
        let deadline = Deadline::after(terms.timeout);
        let spec = terms.spec(work);
        // What the chain would refuse is refused before it costs a fee.
        spec.check().map_err(|error| CliError::new(Exit::Rejected, error.to_string()))?;
        let submitted = submit(cx.ui, &client, &signer, spec, terms.wait, deadline).await?;
        cx.ui.document(&submitted)?;
        match &submitted.job {
            Some(job) if terms.wait => succeeded(job),
            _ => Ok(()),
        }
    }

    fn parse(self) -> Result<(Work, Terms), CliError> {
        match self {
            Self::Custom { variables, stdin, terms, command } => {
                let (program, args) = command.split_first().expect("clap takes no empty command");
                let work = CommandWork {
                    program: program.clone(),
                    args: args.to_vec(),
                    env: variables,
                    stdin: stdin.map(|file| args::input(&file, INPUT_LIMIT)).transpose()?,
                };
                Ok((Work::Custom(work), terms))
            }
            Self::Http { url, method, header, body, pointer, terms } => {
                let body = body.map(String::into_bytes);
                let work = HttpWork { method, url, headers: header, body, pointer };
                Ok((Work::Http(work), terms))
            }
        }
    }
}

impl Terms {
    fn spec(&self, work: Work) -> JobSpec {
        let ms = u64::try_from(self.max_execution.as_millis()).unwrap_or(u64::MAX);
        JobSpec {
            work,
            bounds: Bounds {
                max_return_bytes: self.max_return_bytes,
                expected_execution_ms: ms,
                data_format: "bytes".to_owned(),
                max_memory_mb: self.max_memory,
            },
            verification: Verification { mode: VerificationMode::None, runners: 1 },
            max_price: self.max_price,
            tip: self.tip,
            timeout_blocks: self.timeout_blocks,
            callback: None,
            required_runner_pool: None,
            tee_required: false,
        }
    }
}

/// The longest standard input: a transaction with more would not fit a block.
const INPUT_LIMIT: u64 = 512 * 1024;

/// A job that was recorded, and its result where that was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// The job.
    pub job_id: HashText,
    /// Where it stands.
    pub status: JobStatus,
    /// The transaction that recorded it.
    pub transaction: HashText,
    /// The height that recorded it.
    pub submitted_at: Option<u64>,
    /// The runner whose result it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The runners that were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runners: Option<Vec<String>>,
    /// The verified result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<BytesText>,
    /// The result as text, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_text: Option<String>,
    /// The height that made it final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_at: Option<u64>,
    /// From the recording block's timestamp to the final block's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// All that is known of it.
    #[serde(skip)]
    pub job: Option<Job>,
}

/// Records a job on the chain and, with `wait`, waits until it is final.
pub async fn submit(
    ui: Ui,
    client: &Client,
    signer: &Signer,
    spec: JobSpec,
    wait: bool,
    deadline: Deadline,
) -> Result<Submitted, CliError> {
    let payload = Payload::SubmitJob(Arc::new(spec.clone()));
    let executed = transaction::execute(ui, client, signer, payload, deadline).await?;
    let job_id = HashText::from(spec.job_id(&signer.address(), executed.nonce));
    let id = job_id.to_string();
    let job = if wait {
        wait_until_final(ui, client, &id, deadline).await?
    } else {
        client.job(&id).await?
    };
    Ok(Submitted {
        job_id,
        status: job.status,
        transaction: executed.transaction.hash,
        submitted_at: executed.transaction.height,
        runner: job.runner.clone().filter(|_| wait),
        runners: wait.then(|| job.committee.clone()),
        result: job.result.clone().filter(|_| wait),
        result_text: job.result_text.clone().filter(|_| wait),
        final_at: job.final_at.filter(|_| wait),
        latency_ms: job.latency_ms.filter(|_| wait),
        job: Some(job),
    })
}

/// Waits until a job is final.
pub async fn wait_until_final(
    ui: Ui,
    client: &Client,
    id: &str,
    deadline: Deadline,
) -> Result<Job, CliError> {
    let awaited = format!("the result of job {id}");
    deadline
        .wait_for(ui, &awaited, async |wait| {
            let mut blocks = client.follow(None);
            blocks.connect().await?;
            loop {
                let job = client.job(id).await?;
                if job.status.is_final() {
                    return Ok(job);
                }
                wait.saw(state(&job));
                blocks.next().await?;
            }
        })
        .await
}

/// Where a job stands, in a line: with whom, and how far they are.
fn state(job: &Job) -> String {
    let progress: Vec<_> = job.progress.iter().map(progress).collect();
    match (job.committee.as_slice(), progress.as_slice()) {
        ([], _) => job.status.to_string(),
        (committee, []) => format!("{} to {}", job.status, committee.join(", ")),
        (committee, progress) => {
            format!("{} to {} ({})", job.status, committee.join(", "), progress.join("; "))
        }
    }
}

/// What a runner says of its progress.
pub fn progress(progress: &RunnerProgress) -> String {
    let RunnerProgress { runner, percent, detail, .. } = progress;
    match detail {
        Some(detail) => format!("{runner} {percent} %, {detail}"),
        None => format!("{runner} {percent} %"),
    }
}

/// A failure for a job that has ended without a result.
pub fn succeeded(job: &Job) -> Result<(), CliError> {
    if job.status == JobStatus::Verified {
        return Ok(());
    }
    let reason = job.error.clone().unwrap_or_else(|| "no result in time".to_owned());
    Err(CliError::failed(format!("job {} ended as {}: {reason}", job.job_id, job.status))
        .hint(format!("see why: cowboyctl job show {}", job.job_id)))
}

impl Document for Submitted {
    fn text(&self) -> String {
        let mut lines = vec![("job", self.job_id.to_string()), ("status", self.status.to_string())];
        if let Some(height) = self.submitted_at {
            lines.push(("submitted at", height.to_string()));
        }
        if let Some(runner) = &self.runner {
            lines.push(("runner", runner.clone()));
        }
        if let Some(height) = self.final_at {
            lines.push(("final at", height.to_string()));
        }
        if let Some(ms) = self.latency_ms {
            lines.push(("latency", millis(ms)));
        }
        if let Some(result) = &self.result {
            let text = self.result_text.clone().unwrap_or_else(|| result.to_string());
            lines.push(("result", text.trim_end().to_owned()));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.job_id.to_string()
    }
}
