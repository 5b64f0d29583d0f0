//! Tasks on the chain.

use crate::{
    api::{
        error::ApiError,
        ids,
        route::{Route, many, one},
        view::View,
    },
    types::{
        ChainTask, ChainTaskClaim, ChainTaskCommitment, ChainTaskQuery, ChainTaskStatus, HashText,
        TASK_PAGE, TASK_PAGE_LIMIT, Text,
    },
};
use cowboy_engine::{
    chain::tasks::{Task, TaskClaim, TaskCommitment, TaskStatus},
    primitives::{Address, Hash},
    proof::Element,
};
use std::cmp::Reverse;

pub(super) fn table() -> Vec<Route> {
    vec![
        many(
            "/v1/tasks",
            "Tasks on the chain, newest first",
            |view: &View, (), query: ChainTaskQuery| list(view, &query),
        ),
        one("/v1/tasks/{task}", "A task on the chain", |view: &View, id: String| show(view, &id)),
    ]
}

/// `GET /v1/tasks`: newest first.
fn list(view: &View, query: &ChainTaskQuery) -> Result<Vec<ChainTask>, ApiError> {
    let limit = query.limit.unwrap_or(TASK_PAGE).min(TASK_PAGE_LIMIT);
    let account = |text: &Option<String>| {
        text.as_deref().map(|text| view.resolve("account", text)).transpose()
    };
    let (creator, agent) = (account(&query.creator)?, account(&query.agent)?);
    let hash = |text: &String| ids::hash("output commitment", text);
    let commitment = query.commitment.as_ref().map(hash).transpose()?;
    let has_committed_to = |task: &Task, wanted: Hash| {
        let open = task.commitment.map(|commitment| commitment.output_commitment);
        open.or(task.output).is_some_and(|output| Hash(output.to_bytes()) == wanted)
    };
    let wanted = |task: &Task| {
        query.status.is_none_or(|status| ChainTaskStatus::from(task.status) == status)
            && creator.is_none_or(|creator| task.creator == creator)
            && agent.is_none_or(|agent| task.claim.is_some_and(|claim| claim.agent == agent))
            && query.depth.is_none_or(|depth| task.speculation_depth == depth)
            && query.committed.is_none_or(|committed| task.commitment.is_some() == committed)
            && commitment.is_none_or(|commitment| has_committed_to(task, commitment))
            && query.deadline_by.is_none_or(|height| task.deadline.get() <= height)
            && query.requires.as_ref().is_none_or(|label| task.requirements.contains(label))
    };
    let mut tasks: Vec<_> = view.state.tasks().filter(|(_, task)| wanted(task)).collect();
    tasks.sort_by_key(|(id, task)| (Reverse(task.created_at), **id));
    Ok(tasks.into_iter().take(limit).map(|(id, task)| describe(view, id, task)).collect())
}

fn show(view: &View, id: &str) -> Result<ChainTask, ApiError> {
    let id = match id {
        "latest" => {
            let tasks = view.state.tasks();
            let newest = tasks.min_by_key(|(id, task)| (Reverse(task.created_at), **id));
            newest.map(|(id, _)| *id).ok_or_else(|| {
                ApiError::not_found("there is no task so far")
                    .hint("create one: cowboyctl task create --reward 1cby")
            })?
        }
        id => ids::only("task", id, view.state.tasks().map(|(id, _)| id))?,
    };
    let task = view.state.task(&id).ok_or_else(|| {
        ApiError::not_found(format!("there is no task {id}")).hint("list them: cowboyctl task ls")
    })?;
    Ok(describe(view, &id, task))
}

fn element(element: Element) -> HashText {
    Text(Hash(element.to_bytes()))
}

fn describe(view: &View, id: &Hash, task: &Task) -> ChainTask {
    let name = |address: &Address| view.backend.names.get(address);
    let next = view.head().next();
    let hashes = |ids: &[Hash]| ids.iter().copied().map(Text).collect();
    let claim = |claim: TaskClaim| ChainTaskClaim {
        agent: claim.agent.into(),
        agent_name: name(&claim.agent),
        expires_at: claim.expires_at.get(),
        counts: task.status == TaskStatus::Completed || !claim.is_past(next),
    };
    let commitment = |commitment: TaskCommitment| ChainTaskCommitment {
        agent: commitment.agent.into(),
        output_commitment: element(commitment.output_commitment),
        inputs: commitment.inputs.into(),
        bond: commitment.bond.into(),
        depth: commitment.depth,
        created_at: commitment.created_at.get(),
        expires_at: commitment.expires_at.map(|height| height.get()),
    };
    ChainTask {
        task_id: (*id).into(),
        creator: task.creator.into(),
        creator_name: name(&task.creator),
        status: task.status.into(),
        reward: task.reward.into(),
        deadline: task.deadline.get(),
        requirements: task.requirements.clone(),
        depends_on: hashes(&task.depends_on),
        order_only: hashes(&task.order_only),
        depth: task.speculation_depth,
        constraint_hash: task.constraint_hash.map(element),
        claim: task.claim.map(claim),
        commitment: task.commitment.map(commitment),
        output_commitment: task.output.map(element),
        least_bond: match task.has_ended() {
            true => None,
            false => view.state.least_bond(id).map(Into::into),
        },
        failed_at: task.failed_at.map(|height| height.get()),
        created_at: task.created_at.get(),
        completed_at: task.completed_at.map(|height| height.get()),
    }
}
