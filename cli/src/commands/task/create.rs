//! `task create`: puts a task on the chain.

use super::{Sender, send};
use crate::{
    args::{self, HeightArg},
    complete,
    context::Context,
    error::{CliError, Exit},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::{BlockAt, Client},
    speculation::pipeline,
    types::HashText,
};
use cowboy_engine::{
    chain::{Payload, tasks::CreateTask},
    job::spec::MAX_RETURN_BYTES,
    primitives::{Hash, Height, Wei, keccak256},
    proof::hash_4,
};

/// `task create`.
#[derive(Debug, Args)]
pub struct Create {
    /// Its id: 0x and 64 hex digits [default: derived from the account and its next nonce]
    #[arg(long, value_name = "ID")]
    id: Option<HashText>,
    /// The reward for the agent that completes it
    #[arg(long, value_name = "AMOUNT")]
    reward: Wei,
    /// The last block that may complete it: 120, or +100 from now
    #[arg(long, value_name = "HEIGHT", default_value = "+1000")]
    deadline: HeightArg,
    /// Tasks that must be completed before it, whose outputs it reads
    #[arg(long, value_name = "TASK,TASK", value_delimiter = ',')]
    #[arg(add = ArgValueCandidates::new(complete::tasks))]
    depends_on: Vec<String>,
    /// Tasks that must be completed before it, whose outputs it does not read
    #[arg(long, value_name = "TASK,TASK", value_delimiter = ',')]
    #[arg(add = ArgValueCandidates::new(complete::tasks))]
    after: Vec<String>,
    /// The only accepted output: text, 0x-hex or @FILE [default: any]
    #[arg(long, value_name = "OUTPUT")]
    expect: Option<String>,
    /// Requirements for agents to read: labels such as gpu or model:small
    #[arg(long, value_name = "LABEL,LABEL", value_delimiter = ',')]
    requires: Vec<String>,
    #[command(flatten)]
    sender: Sender,
}

impl Create {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let until = self.sender.deadline();
        let (devnet, client) = cx.devnet_and_client()?;
        let signer = self.sender.author.signer(&devnet, &client).await?;
        let expected = self.expect.as_deref();
        let expected =
            expected.map(|text| args::payload(text, MAX_RETURN_BYTES as usize)).transpose()?;
        let depends_on = ids(&client, &self.depends_on).await?;
        let order_only = ids(&client, &self.after).await?;
        let task_id = match self.id {
            Some(id) => *id,
            None => {
                let address = signer.address();
                let nonce = client.account(&address.to_string()).await?.next_nonce;
                keccak256(&[b"cowboy/task-id/v1", &address.0, &nonce.to_be_bytes()])
            }
        };
        let deadline = match self.deadline.resolve(&client).await? {
            BlockAt::Height(height) => Height::new(height),
            BlockAt::Latest => {
                let what = "--deadline: `latest` will have passed when the task is created";
                return Err(CliError::new(Exit::Usage, what).hint("a height, or +100"));
            }
        };
        let create = CreateTask {
            task_id,
            depends_on: [depends_on, order_only.clone()].concat(),
            order_only,
            constraint_hash: expected.map(|output| hash_4(pipeline::elements(&output))),
            requirements: self.requires,
            reward: self.reward,
            deadline,
        };
        send(cx, (&client, &signer), (task_id, Payload::CreateTask(create)), until).await
    }
}

async fn ids(client: &Client, named: &[String]) -> Result<Vec<Hash>, CliError> {
    let mut ids = Vec::with_capacity(named.len());
    for task in named {
        ids.push(*client.chain_task(task).await?.task_id);
    }
    Ok(ids)
}
