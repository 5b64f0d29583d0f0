//! `task claim`, `task commit`, `task complete` and `task resolve`: the commands of an agent.
//!
//! Nothing is stored between them: the salt of a commitment is derived from the agent's key, the
//! task and the output, so key and output are enough to prove the commitment.

use super::{Begun, Sender, send};
use crate::{
    args::{self, HeightArg},
    commands::{devnet::saved_plan, transaction::Signer},
    complete,
    context::Context,
    error::{CliError, Exit},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::{BlockAt, Client},
    home::DevnetHome,
    orchestrator::genesis::{genesis, proof_seed},
    speculation::pipeline,
    types::{ChainTask, HashText},
};
use cowboy_engine::{
    chain::{
        Payload, Scheme,
        tasks::{
            ClaimTask, CompleteTask, CreateCommitment, ResolveCommitment, inputs_digest,
            statement_agent, statement_task,
        },
    },
    job::spec::MAX_RETURN_BYTES,
    primitives::{Hash, Height, Wei, keccak256},
    proof::{Element, Prover, ProvingKey, Statement, Witness, mock},
    speculation::RollbackReason,
};

/// `task claim`.
#[derive(Debug, Args)]
pub struct Claim {
    /// The task: its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// The last block in which the claim is valid: 120, or +100 from now; at most the task's
    /// deadline
    #[arg(long, value_name = "HEIGHT", default_value = "+100")]
    until: HeightArg,
    #[command(flatten)]
    sender: Sender,
}

impl Claim {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let Begun { deadline, client, signer, task, .. } =
            self.sender.begin(cx, &self.task).await?;
        let ahead = matches!(self.until, HeightArg::Ahead(_));
        let expires_at = until(&client, "--until", self.until, (ahead, task.deadline)).await?;
        let task_id = *task.task_id;
        let payload = Payload::ClaimTask(ClaimTask { task_id, expires_at });
        send(cx, (&client, &signer), (task_id, payload), deadline).await
    }
}

/// `task commit`.
#[derive(Debug, Args)]
pub struct Commit {
    /// The task: its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Its output: text, 0x-hex, @FILE or @-
    result: String,
    /// The bond, locked until the commitment is resolved [default: the chain's minimum]
    #[arg(long, value_name = "AMOUNT")]
    bond: Option<Wei>,
    /// The last block that may complete the task with it: 120, or +100 from now [default: the
    /// claim's]
    #[arg(long, value_name = "HEIGHT")]
    until: Option<HeightArg>,
    #[command(flatten)]
    sender: Sender,
}

impl Commit {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let Begun { deadline, client, signer, task, .. } =
            self.sender.begin(cx, &self.task).await?;
        let task_id = *task.task_id;
        let output = args::payload(&self.result, MAX_RETURN_BYTES as usize)?;
        let expires_at = match self.until {
            Some(at) => Some(until(&client, "--until", at, (false, task.deadline)).await?),
            None => None,
        };
        let inputs = inputs(&client, &task).await?;
        let statement = statement(&signer, &task_id, &inputs, &witness(&signer, &task_id, &output));
        let commitment = CreateCommitment {
            task_id,
            output_commitment: statement.output_commitment,
            inputs,
            bond: self.bond.or(task.least_bond.map(|least| *least)).unwrap_or(Wei::ZERO),
            expires_at,
        };
        let payload = Payload::CreateCommitment(commitment);
        send(cx, (&client, &signer), (task_id, payload), deadline).await
    }
}

/// `task complete`.
#[derive(Debug, Args)]
pub struct Complete {
    /// The task: its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// The output that was committed to: text, 0x-hex, @FILE or @-
    result: String,
    #[command(flatten)]
    sender: Sender,
}

impl Complete {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let Begun { deadline, devnet, client, signer, task } =
            self.sender.begin(cx, &self.task).await?;
        let task_id = *task.task_id;
        let output = args::payload(&self.result, MAX_RETURN_BYTES as usize)?;
        let Some(commitment) = &task.commitment else {
            let what = format!("task {task_id} has no commitment to complete");
            return Err(CliError::new(Exit::Rejected, what)
                .hint(format!("cowboyctl task commit {task_id} RESULT")));
        };
        let witness = witness(&signer, &task_id, &output);
        let inputs = *commitment.inputs;
        let statement = statement(&signer, &task_id, &inputs, &witness);
        let committed = element(statement.output_commitment);
        if commitment.agent.0 != signer.address() || committed != commitment.output_commitment {
            let what = format!("the output does not match the commitment of task {task_id}");
            return Err(CliError::new(Exit::Rejected, what)
                .detail(format!(
                    "{} has committed to {}, {} and this output give {committed}",
                    commitment.agent,
                    commitment.output_commitment,
                    self.sender.author.account()
                ))
                .hint("the same RESULT and --from as with `task commit`"));
        }
        if task.constraint_hash.is_some_and(|wanted| wanted != element(statement.constraint_hash)) {
            let what = format!("task {task_id} asks for another output");
            return Err(CliError::new(Exit::Rejected, what)
                .hint(format!("give it up: cowboyctl task resolve {task_id} manual_cancel")));
        }
        let scheme = scheme(&devnet, &client).await?;
        let progress = cx.ui.progress("making the proof".to_owned());
        let proof = prove(&scheme, &signer, (&task_id, &inputs), &witness, &statement)?;
        drop(progress);
        let parents = task.depends_on.iter().map(|parent| **parent).collect();
        let payload = Payload::CompleteTask(CompleteTask { task_id, parents, proof });
        send(cx, (&client, &signer), (task_id, payload), deadline).await
    }
}

/// `task resolve`.
#[derive(Debug, Args)]
pub struct Resolve {
    /// The task: its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Why the work failed [default: it did not, the task is completed]
    #[arg(value_parser = args::named("reason", RollbackReason::ALL))]
    #[arg(add = ArgValueCandidates::new(|| complete::all(RollbackReason::ALL)))]
    reason: Option<RollbackReason>,
    #[command(flatten)]
    sender: Sender,
}

impl Resolve {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let Begun { deadline, client, signer, task, .. } =
            self.sender.begin(cx, &self.task).await?;
        let task_id = *task.task_id;
        let resolve = ResolveCommitment { task_id, reason: self.reason };
        let payload = Payload::ResolveCommitment(resolve);
        send(cx, (&client, &signer), (task_id, payload), deadline).await
    }
}

/// Resolves a height; one relative to now is capped at the last possible one.
async fn until(
    client: &Client,
    option: &str,
    at: HeightArg,
    (clamp, last): (bool, u64),
) -> Result<Height, CliError> {
    match at.resolve(client).await? {
        BlockAt::Height(height) if clamp => Ok(Height::new(height.min(last))),
        BlockAt::Height(height) => Ok(Height::new(height)),
        BlockAt::Latest => {
            Err(CliError::new(Exit::Usage, format!("{option}: `latest` has passed"))
                .hint("a height, or +100"))
        }
    }
}

fn element(element: Element) -> HashText {
    HashText::from(Hash(element.to_bytes()))
}

/// The witness for a proof; its salt is derived from the signer's key.
fn witness(signer: &Signer, task_id: &Hash, output: &[u8]) -> Witness {
    let digest = keccak256(&[output]);
    let salt = signer.derive(b"cowboy/task-salt/v1", &[&task_id.0, &digest.0]);
    Witness { output: pipeline::elements(output), salt: Element::reduce(&salt.0) }
}

fn statement(signer: &Signer, task_id: &Hash, inputs: &Hash, witness: &Witness) -> Statement {
    let agent = statement_agent(&signer.address());
    Statement::of(&statement_task(task_id, inputs), &agent, witness)
}

/// The digest of the current commitments of the tasks that a task reads.
async fn inputs(client: &Client, task: &ChainTask) -> Result<Hash, CliError> {
    let mut parents = Vec::new();
    for id in task.depends_on.iter().filter(|id| !task.order_only.contains(id)) {
        let parent = client.chain_task(&id.to_string()).await?;
        let committed = parent.commitment.as_ref().map(|commitment| commitment.output_commitment);
        let output = parent.output_commitment.or(committed);
        let output =
            output.and_then(|output| Element::from_bytes(&output.0.0)).ok_or_else(|| {
                let what =
                    format!("task {} reads the output of {id}, which has no output", task.task_id);
                CliError::new(Exit::Rejected, what)
                    .hint(format!("an agent commits to it first: cowboyctl task show {id}"))
            })?;
        parents.push((**id, output));
    }
    Ok(inputs_digest(parents))
}

/// The proof scheme of the devnet's chain, from the devnet's own plan, which must be that chain's.
async fn scheme(devnet: &DevnetHome, client: &Client) -> Result<(Scheme, u64), CliError> {
    let foreign = || {
        let what = format!("the keys of {}'s proofs are not available", devnet.name());
        CliError::new(Exit::NotFound, what)
            .detail("they follow from the seed in its topology file, which is another chain's")
    };
    let plan = saved_plan(devnet)?.ok_or_else(foreign)?;
    let genesis = genesis(&plan);
    match client.parameters().await?.chain_id.0.0 == genesis.chain_id() {
        true => Ok((genesis.params.tasks.scheme, plan.seed)),
        false => Err(foreign()),
    }
}

/// A proof, checked with the chain's key.
fn prove(
    (scheme, seed): &(Scheme, u64),
    signer: &Signer,
    (task_id, inputs): (&Hash, &Hash),
    witness: &Witness,
    statement: &Statement,
) -> Result<Vec<u8>, CliError> {
    let proof = match scheme {
        Scheme::Mock(key) => mock::prove(key, statement).to_vec(),
        Scheme::Groth16(_) => {
            let prover = Prover::new(ProvingKey::setup(&proof_seed(*seed)));
            let blinding = signer.derive(b"cowboy/task-proof/v1", &[&task_id.0]);
            let agent = statement_agent(&signer.address());
            let task = statement_task(task_id, inputs);
            prover.prove(&task, &agent, witness, &blinding.0).to_bytes().to_vec()
        }
    };
    scheme.verify(statement, &proof).map_err(|error| {
        CliError::new(Exit::Failed, format!("the proof that was made does not hold: {error}"))
    })?;
    Ok(proof)
}
