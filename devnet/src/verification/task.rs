//! Checks whether a task of a pipeline was completed by a valid proof.
//!
//! The node names the transaction that completed it. The transaction and the expected statement of
//! its proof are taken from the replayed chain; the key comes from the genesis document. The node's
//! other statements are compared.

use super::{
    report::{TaskCheck, TaskVerdict},
    root::Root,
    walk::{VerificationError, Walk},
};
use crate::{
    client::Client,
    speculation::pipeline::task_id,
    topology::AGENT,
    types::{Bytes, HashText, TaskDetail, Text},
};
use cowboy_engine::{
    chain::{
        CompleteTask, Payload, Scheme, SignedTransaction, State, Task, TaskStatus, inputs_digest,
        statement_agent, statement_task,
    },
    primitives::{Address, Hash, Height},
    proof::{Element, PROOF_BYTES, Proof, Statement},
};

const NO_AGENT: Address = Address([0; 20]);
/// The name of transactions that carry proofs.
const COMPLETES: &str = "complete_task_private";

/// Verifies the proof that completed a task of a pipeline. `progress` is called with the newest
/// verified block.
pub async fn check(
    client: &Client,
    root: &Root,
    (number, name): (u64, &str),
    progress: impl Fn(u64),
) -> Result<TaskCheck, VerificationError> {
    let pipeline = client.pipeline(number).await?;
    let said = client.task(number, name).await?;
    let not_completed = || VerificationError::NotCompleted {
        task: name.to_owned(),
        pipeline: number,
        status: said.task.status.to_string(),
    };
    let sent = said.transactions.iter().rev().find(|sent| sent.kind == COMPLETES);
    let hash = sent.ok_or_else(not_completed)?.transaction;
    let height = client.transaction(&hash.to_string()).await?.height;
    let height = height.ok_or_else(not_completed)?;
    let agent = root.names.address(AGENT);
    let id =
        agent.map_or(Hash::ZERO, |agent| task_id(&agent, number, &pipeline.summary.name, name));
    let scheme = &root.genesis.params.tasks.scheme;
    let mut report = TaskCheck {
        pipeline: number,
        task: name.to_owned(),
        task_id: id.into(),
        valid: false,
        transaction: hash,
        height,
        agent: Text(agent.unwrap_or(NO_AGENT)),
        generator: scheme.generator().to_string(),
        key: scheme.key_id().into(),
        inputs: None,
        constraint_hash: None,
        output_commitment: None,
        proof: None,
        checks: Vec::new(),
        replayed: 0,
        trusted: root.trusted.clone(),
    };
    let mut checks = Checks(Vec::new());
    let mut walk = Walk::new(client, root)?;
    match at(&mut walk, Height::new(height), *hash, progress).await {
        Ok((before, after, Some(signed))) => {
            checks.holds("block", format!("block {height} has it, and follows from genesis"));
            let about = CompletionClaim { id, agent, said: &said, before, after, height, scheme };
            about.check(&signed, &mut checks, &mut report);
        }
        Ok((.., None)) => {
            let what =
                format!("block {height}, which follows from genesis, has no such transaction");
            checks.fails("block", what);
        }
        Err(VerificationError::Fault(fault)) => checks.fails("block", fault.to_string()),
        Err(error) => return Err(error),
    }
    report.valid = checks.0.iter().all(|check| check.holds);
    report.checks = checks.0;
    report.replayed = walk.height().get();
    Ok(report)
}

/// The states before and after a block of the replayed chain, and its transaction with this hash.
async fn at(
    walk: &mut Walk<'_>,
    height: Height,
    hash: Hash,
    progress: impl Fn(u64),
) -> Result<(State, State, Option<SignedTransaction>), VerificationError> {
    let mut before = walk.replay().state().clone();
    loop {
        walk.arrives()?;
        for step in walk.next().await? {
            progress(step.block.header.height.get());
            if step.block.header.height >= height {
                // No block has the height of genesis.
                let mut all = step.block.transactions.into_iter();
                let found = all.find(|signed| signed.hash() == hash);
                let here = step.block.header.height == height;
                return Ok((before, step.execution.state, found.filter(|_| here)));
            }
            before = step.execution.state;
        }
    }
}

struct Checks(Vec<TaskVerdict>);

impl Checks {
    fn add(&mut self, check: &str, holds: bool, detail: String) {
        self.0.push(TaskVerdict { check: check.to_owned(), holds, detail });
    }

    fn holds(&mut self, check: &str, detail: String) {
        self.add(check, true, detail);
    }

    fn fails(&mut self, check: &str, detail: String) {
        self.add(check, false, detail);
    }

    fn input(&mut self, check: &str, what: &str, got: Element, expected: Element) {
        match got == expected {
            true => self.holds(check, format!("{what}: {got}")),
            false => self.fails(check, format!("{what}: the proof has {got}, not {expected}")),
        }
    }
}

/// A transaction that, according to the node, completed a task.
struct CompletionClaim<'a> {
    /// The task's id, computed from the pipeline's number and both names.
    id: Hash,
    agent: Option<Address>,
    said: &'a TaskDetail,
    /// The states before and after its block.
    before: State,
    after: State,
    height: u64,
    scheme: &'a Scheme,
}

impl CompletionClaim<'_> {
    fn check(&self, signed: &SignedTransaction, checks: &mut Checks, report: &mut TaskCheck) {
        let id = self.id;
        let Payload::CompleteTask(CompleteTask { task_id, proof, .. }) =
            &signed.transaction.payload
        else {
            return checks.fails("transaction", "it does not complete a task".to_owned());
        };
        match *task_id == id && self.said.task.task_id.0 == id {
            true => checks.holds("transaction", format!("it completes task {id}")),
            false => {
                let (said, task_id) = (self.said.task.task_id, *task_id);
                let what = format!("it completes task {task_id}, the node says {said}, not {id}");
                return checks.fails("transaction", what);
            }
        }
        match (signed.sender(), self.agent) {
            (Ok(sender), Some(agent)) if sender == agent => {
                checks.holds("sender", format!("signed by {agent}"));
            }
            (Ok(sender), _) => checks.fails("sender", format!("signed by {sender}")),
            (Err(error), _) => checks.fails("sender", error.to_string()),
        }
        self.outcome(checks);
        report.proof = Some(Text(Bytes(proof.clone())));
        self.decode(proof, checks);
        let Ok(carried) = Statement::carried(proof) else { return };
        report.constraint_hash = Some(text(carried.constraint_hash));
        report.output_commitment = Some(text(carried.output_commitment));
        self.statement(&carried, checks, report);
        let key = self.scheme.key_id();
        match self.scheme.verify(&carried, proof) {
            Ok(()) => checks.holds("proof", format!("it holds under key {key} of genesis")),
            Err(error) => checks.fails("proof", format!("under key {key} of genesis: {error}")),
        }
    }

    /// Checks that the chain completed the task in this very block.
    fn outcome(&self, checks: &mut Checks) {
        let completed = self.completed().is_some();
        let what = match completed {
            true => format!("the chain has completed the task in block {}", self.height),
            false => format!("the chain has not completed the task in block {}", self.height),
        };
        checks.add("outcome", completed, what);
    }

    fn completed(&self) -> Option<&Task> {
        let task = self.after.task(&self.id)?;
        let here = task.completed_at.map(Height::get) == Some(self.height);
        (here && task.status == TaskStatus::Completed).then_some(task)
    }

    fn decode(&self, proof: &[u8], checks: &mut Checks) {
        let (got, wanted) = (proof.len(), PROOF_BYTES);
        match self.scheme {
            // A mock proof has no points to decode.
            Scheme::Mock(_) if got == wanted => {
                checks.holds("decoding", format!("{got} bytes of `mock`, which proves nothing"));
            }
            Scheme::Mock(_) => checks.fails("decoding", format!("{got} bytes, not {wanted}")),
            Scheme::Groth16(_) => match Proof::from_bytes(proof) {
                Ok(_) => checks.holds("decoding", format!("{got} bytes, in their one form")),
                Err(error) => checks.fails("decoding", error.to_string()),
            },
        }
    }

    fn statement(&self, carried: &Statement, checks: &mut Checks, report: &mut TaskCheck) {
        let (state, task) = match self.completed() {
            Some(task) => (&self.after, Some(task)),
            None => (&self.before, self.before.task(&self.id)),
        };
        let committed = task.and_then(|task| Some((task, task.output_commitment()?)));
        let Some((task, output)) = committed else {
            return checks
                .fails("commitment", "the chain had none to this task's output".to_owned());
        };
        let outputs = task.reads().map(|parent| {
            let output = state.task(parent).and_then(Task::output_commitment);
            (*parent, output.unwrap_or_default())
        });
        let inputs = inputs_digest(outputs);
        report.inputs = Some(inputs.into());
        let expected = Element::reduce(&statement_task(&self.id, &inputs));
        let what = format!("task {} with inputs {inputs}", self.id);
        checks.input("task", &what, carried.task_id, expected);
        let agent = self.agent.unwrap_or(NO_AGENT);
        let expected = Element::reduce(&statement_agent(&agent));
        checks.input("agent", &format!("agent {agent}"), carried.agent, expected);
        match task.constraint_hash {
            Some(asked) => {
                checks.input("constraint", "the output asked for", carried.constraint_hash, asked);
            }
            None => checks.holds("constraint", "any output is asked for".to_owned()),
        }
        checks.input("commitment", "the output committed to", carried.output_commitment, output);
        let said = self.said.task.output_commitment.as_ref();
        if let Some(said) = said.filter(|said| said.0.0 != output.to_bytes()) {
            checks.fails("answer", format!("the node says commitment {said}, not {output}"));
        }
    }
}

fn text(element: Element) -> HashText {
    Hash(element.to_bytes()).into()
}
