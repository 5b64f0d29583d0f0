//! `job`: off-chain work, its results, and how its runners were drawn.

mod answer;
pub(super) mod explain;
mod grind;
mod show;
pub(super) mod submit;
mod terms;

pub use submit::{Submitted, submit, succeeded};

use submit::wait_until_final;

use crate::{
    args,
    commands::{
        transaction::{self, Author, Signer},
        trust,
    },
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Format, raw},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    topology::GOVERNANCE,
    types::{HashText, JobQuery, JobStatus},
    verification::{Filters, selection},
};
use cowboy_engine::{
    chain::transaction::{CancelJob, Payload, SlashRunner},
    primitives::Hash,
};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Job {
    /// Submit a job
    Submit(Box<submit::Submit>),
    /// Cancel a job that no runner has committed to yet; its escrow is returned
    Cancel {
        #[command(flatten)]
        which: WhichJob,
        #[command(flatten)]
        author: Author,
        /// Maximum time to wait for its block
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
        timeout: Duration,
    },
    /// Slash the bond of the runner whose result was wrong, 1.5 times the job's --max-price; only
    /// for jobs with --verify economic_bond
    Slash {
        #[command(flatten)]
        which: WhichJob,
        /// The system deployer that orders it
        #[arg(long, value_name = "ACCOUNT", default_value = GOVERNANCE)]
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        from: String,
        /// Maximum time to wait for its block
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
        timeout: Duration,
    },
    /// Jobs, newest first
    Ls {
        /// Only jobs with this status: Pending, Assigned, Running, Committed, Verified, Failed or
        /// Cancelled
        #[arg(long, add = ArgValueCandidates::new(|| complete::all(&JobStatus::ALL)))]
        status: Option<JobStatus>,
        /// Only jobs of this kind: custom, http, llm, mcp or eth_send
        #[arg(long, add = ArgValueCandidates::new(complete::job_kinds))]
        kind: Option<String>,
        /// Only jobs of this account: a name or an address
        #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
        submitter: Option<String>,
        /// Only jobs whose last committee has this runner: a name or an address
        #[arg(long, add = ArgValueCandidates::new(complete::runners))]
        runner: Option<String>,
        /// Maximum number of jobs
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a job: its status, its runners and its history
    Show(WhichJob),
    /// Wait until a job is final
    Wait {
        #[command(flatten)]
        which: WhichJob,
        /// Maximum time to wait
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
        timeout: Duration,
    },
    /// A job's verified result; in table format, its raw bytes
    Result(WhichJob),
    /// Give a job that waits at runners with `executors: {by_hand: true}` its result, as they would
    Answer(answer::Answer),
    /// The runners that each validator dispatched a job to, and the outcomes
    ///
    /// Each validator remembers its last 4,096 dispatches until it stops; none of it is on the
    /// chain. For the runners' answers, see the events of `job show`.
    Dispatches(WhichJob),
    /// Explain how a job's runners were drawn: who was dropped why, seed, weights, draws
    ///
    /// It shows which P(h) decided who is present, each candidate's weight before and after its MRU
    /// record, and the outcome of the same votes under the other threshold rules and without the
    /// presence filter.
    Explain(explain::Explain),
    /// Filter and draw a job's runners again, and check everything that the devnet reports of the
    /// draw
    ///
    /// Blocks are fetched and verified here, from genesis up to the draw. Nothing that the devnet
    /// says is trusted. If it no longer has those blocks, only the draw is repeated, from what it
    /// recorded: then filters are `recorded only`, and the exit code is 9.
    VerifySelection(WhichJob),
}

/// The job that a command is about.
#[derive(Debug, Args)]
pub struct WhichJob {
    /// The job: a name, its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::jobs))]
    job: String,
}

impl Job {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Submit(submit) => submit.run(cx).await,
            Self::Cancel { which: WhichJob { job }, author, timeout } => {
                let (devnet, client) = cx.devnet_and_client()?;
                let signer = author.signer(&devnet, &client).await?;
                let payload = |job_id| Payload::CancelJob(CancelJob { job_id });
                transact(cx, (&client, &signer), &job, timeout, payload).await
            }
            Self::Slash { which: WhichJob { job }, from, timeout } => {
                let (devnet, client) = cx.devnet_and_client()?;
                let signer = Signer::find(&devnet, &from)?;
                let payload = |job_id| Payload::SlashRunner(SlashRunner { job_id });
                transact(cx, (&client, &signer), &job, timeout, payload).await
            }
            Self::Answer(answer) => answer.run(cx).await,
            Self::Explain(explain) => explain.run(cx).await,
            Self::Ls { status, kind, submitter, runner, limit } => {
                let query = JobQuery { status, kind, submitter, runner, limit: Some(limit) };
                cx.ui.list(&cx.client()?.jobs(&query).await?)
            }
            Self::Show(WhichJob { job }) => cx.ui.document(&cx.client()?.job(&job).await?),
            Self::Wait { which: WhichJob { job }, timeout } => {
                let client = cx.client()?;
                let deadline = Deadline::after(timeout);
                let job = wait_until_final(cx.ui, &client, &job, deadline).await?;
                cx.ui.document(&job)?;
                succeeded(&job)
            }
            Self::Result(WhichJob { job }) => {
                let result = cx.client()?.job_result(&job).await?;
                if cx.ui.format() == Format::Table {
                    return raw(&result.result);
                }
                cx.ui.document(&result)
            }
            Self::Dispatches(WhichJob { job }) => {
                cx.ui.list(&cx.client()?.job_dispatches(&job).await?)
            }
            Self::VerifySelection(WhichJob { job }) => {
                // A devnet that does not run is reported first.
                cx.client()?;
                let (root, client) = trust::root(cx)?;
                let progress = cx.ui.progress("verifying from genesis".to_owned());
                let check = selection::check(&client, &root, &job, trust::shown(&progress)).await?;
                drop(progress);
                cx.ui.document(&check)?;
                if check.filters == Filters::RecordedOnly && check.mismatches.is_empty() {
                    let what = format!("the filters of job {} were not verified", check.job_id);
                    return Err(CliError::new(Exit::Unverified, what)
                        .detail("the devnet no longer has the blocks that they follow from")
                        .hint("a larger `storage.keep` in the topology keeps them longer"));
                }
                let what = format!("the selection for job {} does not verify", check.job_id);
                trust::concluded(check.valid, what, check.mismatches.first().cloned())
            }
        }
    }
}

async fn transact(
    cx: &Context,
    (client, signer): (&Client, &Signer),
    job: &str,
    timeout: Duration,
    payload: impl FnOnce(Hash) -> Payload,
) -> Result<(), CliError> {
    let job_id: HashText = client.job(job).await?.job_id;
    let job = job_id.to_string();
    let payload = payload(*job_id);
    transaction::execute(cx.ui, client, signer, payload, Deadline::after(timeout)).await?;
    cx.ui.document(&client.job(&job).await?)
}
