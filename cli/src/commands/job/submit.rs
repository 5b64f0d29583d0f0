//! `job submit`: builds the spec from the command line, sends its transaction, and waits for the
//! result.

use super::terms::{self, Sending, Terms};
use crate::{
    args,
    commands::{
        naming::Naming,
        transaction::{self, Signer},
    },
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Document, Ui, decoded, fields, millis, named, progress},
};
use clap::{Args, Subcommand, ValueEnum};
use cowboy_devnet::{
    client::Client,
    types::{BytesText, HashText, Job, JobEvent, JobStatus, NamedKind},
};
use cowboy_engine::{
    chain::transaction::Payload,
    job::{
        document,
        spec::{
            CommandDelivery, CommandWork, EthSendWork, HttpWork, JobSpec, LlmMessage, LlmWork,
            McpWork, Work,
        },
    },
};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// `job submit`: a kind of work with its flags, or a file.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Submit {
    #[command(subcommand)]
    kind: Option<Kind>,
    /// A job in YAML or JSON, as described in docs/jobs.md; - for standard input
    #[arg(short, long, value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    sending: Sending,
}

/// How a command reaches its executor.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum SubmitBy {
    #[default]
    Push,
    Lease,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// A command, run in a fresh directory; its standard output is the result
    Custom {
        /// The command's environment
        #[arg(long = "env", value_name = "KEY=VALUE", value_parser = args::variable)]
        variables: Vec<(String, String)>,
        /// A file that the command reads as its standard input; - for this command's
        #[arg(long, value_name = "FILE")]
        stdin: Option<PathBuf>,
        /// How the command reaches its executor: with the job, or from its runner to a pool that
        /// works by leases
        #[arg(long, value_enum, default_value_t)]
        delivery: SubmitBy,
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
        #[arg(long, default_value = "GET")]
        method: String,
        /// A header of the request
        #[arg(long, value_name = "NAME: VALUE", value_parser = args::header)]
        header: Vec<(String, String)>,
        /// The request's body
        #[arg(long, value_name = "TEXT")]
        body: Option<String>,
        /// A JSON pointer into the answer, such as /data/0; the value that it points to is the
        /// result
        #[arg(long)]
        pointer: Option<String>,
        #[command(flatten)]
        terms: Terms,
    },
    /// A question to a language model; its answer is the result
    Llm {
        /// The question
        prompt: String,
        /// The model, by the name that runners register
        #[arg(long)]
        model: String,
        /// The system prompt
        #[arg(long, value_name = "TEXT")]
        system: Option<String>,
        /// Maximum tokens of the answer
        #[arg(long, value_name = "N")]
        max_tokens: Option<u32>,
        /// Sampling temperature in thousandths
        #[arg(long, value_name = "N")]
        temperature_milli: Option<u32>,
        /// The seed for sampling, if the model takes one
        #[arg(long, value_name = "N")]
        sampling_seed: Option<u64>,
        /// The model that embeds the answer; the result is then JSON
        #[arg(long, value_name = "MODEL")]
        embedding_model: Option<String>,
        #[command(flatten)]
        terms: Terms,
    },
    /// A call of a tool through the Model Context Protocol; its answer is the result
    Mcp {
        /// The server, by the name that runners register
        server: String,
        /// The tool
        tool: String,
        /// The tool's arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        terms: Terms,
    },
    /// A signed Ethereum transaction to be sent; its hash and receipt are the result
    EthSend {
        /// The signed transaction, 0x-hex
        transaction: BytesText,
        /// Blocks, including its own, to wait for before the receipt
        #[arg(long, value_name = "N", default_value_t = 1)]
        confirmations: u32,
        #[command(flatten)]
        terms: Terms,
    },
}

impl Submit {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (spec, sending) = match (self.kind, self.file) {
            (Some(kind), _) => kind.parse()?,
            (None, Some(file)) => (document(&file)?, self.sending),
            (None, None) => unreachable!("clap requires one of them"),
        };
        let (devnet, client) = cx.devnet_and_client()?;
        let signer = sending.author.signer(&devnet, &client).await?;
        let deadline = Deadline::after(sending.timeout);
        // Refuse here what the chain would refuse, before it costs a fee.
        spec.check().map_err(|error| CliError::new(Exit::Rejected, error.to_string()))?;
        let submitted =
            submit(cx.ui, &client, &signer, spec, (sending.wait, &sending.naming), deadline)
                .await?;
        cx.ui.document(&submitted)?;
        match &submitted.job {
            Some(job) if sending.wait => succeeded(job),
            _ => Ok(()),
        }
    }
}

impl Kind {
    fn parse(self) -> Result<(JobSpec, Sending), CliError> {
        let (work, terms) = match self {
            Self::Custom { variables, stdin, delivery, terms, command } => {
                let (program, args) = command.split_first().expect("clap takes no empty command");
                let work = CommandWork {
                    program: program.clone(),
                    args: args.to_vec(),
                    env: variables,
                    stdin: stdin.map(|file| args::input(&file, INPUT_LIMIT)).transpose()?,
                    delivery: match delivery {
                        SubmitBy::Push => None,
                        SubmitBy::Lease => Some(CommandDelivery::Lease),
                    },
                };
                (Work::Custom(work), terms)
            }
            Self::Http { url, method, header, body, pointer, terms } => {
                let body = body.map(String::into_bytes);
                let work = HttpWork { method, url, headers: header, body, pointer };
                (Work::Http(work), terms)
            }
            Self::Llm {
                prompt,
                model,
                system,
                max_tokens,
                temperature_milli,
                sampling_seed: seed,
                embedding_model,
                terms,
            } => {
                let message = |role: &str, content| LlmMessage { role: role.to_owned(), content };
                let system = system.map(|content| message("system", content));
                let messages = system.into_iter().chain([message("user", prompt)]).collect();
                let work = LlmWork {
                    model,
                    messages,
                    max_tokens,
                    temperature_milli,
                    seed,
                    embedding_model,
                    response_schema: None,
                };
                (Work::Llm(work), terms)
            }
            Self::Mcp { server, tool, arguments, terms } => {
                (Work::Mcp(McpWork { server, tool, arguments }), terms)
            }
            Self::EthSend { transaction, confirmations, terms } => {
                let transaction = transaction.0.0;
                (Work::EthSend(EthSendWork { transaction, confirmations }), terms)
            }
        };
        Ok((terms.spec(work)?, terms.sending))
    }
}

fn document(file: &Path) -> Result<JobSpec, CliError> {
    let bytes = args::input(file, INPUT_LIMIT)?;
    let text = args::text(file, bytes)?;
    let refused = |problem: String| {
        CliError::yaml(Exit::Usage, &args::shown(file), &text, &problem)
            .hint("this is not a job; its fields are listed in docs/jobs.md")
    };
    terms::json(&text)
        .and_then(|json| document::read(json).map_err(|e| e.to_string()))
        .map_err(refused)
}

/// The longest standard input in bytes: a transaction with more would not fit in a block.
const INPUT_LIMIT: u64 = 512 * 1024;

/// A recorded job, with its result if that was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Submitted {
    /// The job.
    pub job_id: HashText,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its status.
    pub status: JobStatus,
    /// The transaction that recorded it.
    pub transaction: HashText,
    /// The height of the block that recorded it.
    pub submitted_at: Option<u64>,
    /// The runner that delivered the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The runners that were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runners: Option<Vec<String>>,
    /// The verified result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<BytesText>,
    /// The result as text, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_text: Option<String>,
    /// The height of the block that made it final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_at: Option<u64>,
    /// Milliseconds from the recording block's timestamp to the final block's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Everything known about it.
    #[serde(skip)]
    pub job: Option<Job>,
}

/// Records a job on the chain, gives it its name and, if asked to, waits until it is final.
pub async fn submit(
    ui: Ui,
    client: &Client,
    signer: &Signer,
    spec: JobSpec,
    (wait, naming): (bool, &Naming),
    deadline: Deadline,
) -> Result<Submitted, CliError> {
    naming.check(client, NamedKind::Job).await?;
    let payload = Payload::SubmitJob(Arc::new(spec.clone()));
    let executed = transaction::execute(ui, client, signer, payload, deadline).await?;
    let job_id = HashText::from(spec.job_id(&signer.address(), executed.nonce));
    let id = job_id.to_string();
    let name = naming.give(client, NamedKind::Job, &id).await?;
    let job = if wait {
        wait_until_final(ui, client, &id, deadline).await?
    } else {
        client.job(&id).await?
    };
    Ok(Submitted {
        job_id,
        name,
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

/// Waits until a job is final; `latest` is the newest job at the time of the call. Meanwhile prints
/// on stderr each runner that reports that it cannot do the work, with its reason.
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
            let (mut id, mut told) = (id.to_owned(), 0);
            loop {
                let job = client.job(&id).await?;
                id = job.job_id.to_string();
                let reports = job.events.iter().filter(|event| event.event == "WorkFailed");
                for report in reports.skip(told) {
                    tell_failure(ui, client, report).await;
                    told += 1;
                }
                if job.status.is_final() {
                    return Ok(job);
                }
                wait.saw(state(&job));
                wait.next(client, &mut blocks).await?;
            }
        })
        .await
}

/// Prints a runner's reason, which is any text, on one line and without control characters.
async fn tell_failure(ui: Ui, client: &Client, report: &JobEvent) {
    let text = |field: &str| report.data[field].as_str().unwrap_or_default();
    let address = text("runner");
    // The runner may have left in the meantime.
    let runner = client.runner(address).await.map_or(address.to_owned(), |runner| runner.name);
    let reason = text("reason").replace(char::is_control, " ");
    ui.note(&format!("block {}: {runner} cannot do it: {reason}", report.height));
}

fn state(job: &Job) -> String {
    let progress: Vec<_> = job.progress.iter().map(progress).collect();
    match (job.committee.as_slice(), progress.as_slice()) {
        ([], _) => format!("{}: too few runners qualify, see job explain", job.status),
        (committee, []) => format!("{} to {}", job.status, committee.join(", ")),
        (committee, progress) => {
            format!("{} to {} ({})", job.status, committee.join(", "), progress.join("; "))
        }
    }
}

/// Fails if the job has ended without a result.
pub fn succeeded(job: &Job) -> Result<(), CliError> {
    if job.status == JobStatus::Verified {
        return Ok(());
    }
    let reason = job.error.clone().unwrap_or_else(|| "no result in time".to_owned());
    Err(CliError::failed(format!("job {} ended as {}: {reason}", job.job_id, job.status)).hint(
        format!(
            "see why: cowboyctl job show {}; what runners say: cowboyctl devnet logs",
            job.job_id
        ),
    ))
}

impl Document for Submitted {
    fn text(&self) -> String {
        let mut lines = vec![
            ("job", named(self.name.as_deref(), &self.job_id)),
            ("status", self.status.to_string()),
        ];
        lines.extend(self.submitted_at.map(|height| ("submitted at", height.to_string())));
        lines.extend(self.runner.as_ref().map(|runner| ("runner", runner.clone())));
        lines.extend(self.final_at.map(|height| ("final at", height.to_string())));
        lines.extend(self.latency_ms.map(|ms| ("latency", millis(ms))));
        if let Some(result) = &self.result {
            let text = self.result_text.clone().unwrap_or_else(|| decoded(&result.0.0));
            lines.push(("result", text.trim_end().to_owned()));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.job_id.to_string()
    }
}
