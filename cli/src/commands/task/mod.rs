//! `task`: work between parties on the chain, paid by its creator once an agent has proved it.

mod create;
mod show;
mod work;

use crate::{
    args,
    commands::{
        account::Inclusion,
        transaction::{self, Author, Signer},
    },
    complete,
    context::{Context, Deadline},
    error::CliError,
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    home::DevnetHome,
    types::{ChainTask, ChainTaskQuery, ChainTaskStatus},
};
use cowboy_engine::{chain::Payload, primitives::Hash};
use create::Create;
use work::{Claim, Commit, Complete, Resolve};

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Create a task, together with its reward
    ///
    /// The reward is taken from the account at once. It goes to the agent that completes the task,
    /// or back if the deadline passes first.
    Create(Box<Create>),
    /// Claim a task, so that no other account may complete it until a given height
    ///
    /// The task must be open, or its claim must have expired. Claiming your own task again extends
    /// the claim.
    Claim(Claim),
    /// Lock a bond for a task's output, without revealing the output
    ///
    /// The commitment names, as its inputs, the outputs that the tasks it reads have committed to
    /// now.
    Commit(Commit),
    /// Prove that you have the output you committed to, and collect the reward
    ///
    /// All tasks that it depends on must be completed. The proof is checked here before it is sent,
    /// because a proof that the chain refuses costs a share of the bond.
    Complete(Complete),
    /// End a commitment: confirm it for a completed task, or give up a claimed task
    Resolve(Resolve),
    /// Tasks, newest first
    Ls {
        /// Only tasks with this status: open, claimed, completed or expired
        #[arg(long, value_parser = args::named("status", ChainTaskStatus::ALL))]
        #[arg(add = ArgValueCandidates::new(|| complete::all(ChainTaskStatus::ALL)))]
        status: Option<ChainTaskStatus>,
        /// Only tasks of this account: a name or an address
        #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
        creator: Option<String>,
        /// Only tasks that this account has claimed or completed: a name or an address
        #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
        agent: Option<String>,
        /// Only tasks of this depth: uncompleted tasks on the longest path above, at creation
        #[arg(long, value_name = "N")]
        depth: Option<u32>,
        /// Only tasks with an open commitment, or with false those without
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
        #[arg(require_equals = true)]
        committed: Option<bool>,
        /// Only tasks whose agent has committed to this, even if it is already proved: 0x-hex
        #[arg(long, value_name = "HASH")]
        commitment: Option<String>,
        /// Only tasks that require this label
        #[arg(long, value_name = "LABEL")]
        requires: Option<String>,
        /// Only tasks whose deadline is this height at the latest
        #[arg(long, value_name = "HEIGHT")]
        deadline_by: Option<u64>,
        /// Maximum number of tasks
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a task: what it requires, who has claimed it, what was committed to
    Show {
        /// The task: its id or enough of its beginning, or latest
        #[arg(add = ArgValueCandidates::new(complete::tasks))]
        task: String,
    },
}

impl Task {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Create(create) => create.run(cx).await,
            Self::Claim(claim) => claim.run(cx).await,
            Self::Commit(commit) => commit.run(cx).await,
            Self::Complete(complete) => complete.run(cx).await,
            Self::Resolve(resolve) => resolve.run(cx).await,
            Self::Ls {
                status,
                creator,
                agent,
                depth,
                committed,
                commitment,
                requires,
                deadline_by,
                limit,
            } => {
                let limit = Some(limit);
                let query = ChainTaskQuery {
                    status,
                    creator,
                    agent,
                    depth,
                    committed,
                    commitment,
                    requires,
                    deadline_by,
                    limit,
                };
                cx.ui.list(&cx.client()?.chain_tasks(&query).await?)
            }
            Self::Show { task } => cx.ui.document(&cx.client()?.chain_task(&task).await?),
        }
    }
}

async fn send(
    cx: &Context,
    (client, signer): (&Client, &Signer),
    (task_id, payload): (Hash, Payload),
    deadline: Deadline,
) -> Result<(), CliError> {
    transaction::execute(cx.ui, client, signer, payload, deadline).await?;
    cx.ui.document(&client.chain_task(&task_id.to_string()).await?)
}

/// The account that signs, and the time limit.
#[derive(Debug, clap::Args)]
struct Sender {
    #[command(flatten)]
    author: Author,
    #[command(flatten)]
    inclusion: Inclusion,
}

struct Begun {
    deadline: Deadline,
    devnet: DevnetHome,
    client: Client,
    signer: Signer,
    task: ChainTask,
}

impl Sender {
    fn deadline(&self) -> Deadline {
        Deadline::after(self.inclusion.timeout)
    }

    async fn begin(&self, cx: &Context, task: &str) -> Result<Begun, CliError> {
        let deadline = self.deadline();
        let (devnet, client) = cx.devnet_and_client()?;
        let signer = self.author.signer(&devnet, &client).await?;
        let task = client.chain_task(task).await?;
        Ok(Begun { deadline, devnet, client, signer, task })
    }
}
