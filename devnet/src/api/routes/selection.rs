//! Explains how a job's runners were drawn.

use super::{
    job::{find, named},
    presence,
};
use crate::{
    api::{
        convert::{
            self,
            draw::{Ballots, Scene},
        },
        error::ApiError,
        route::{Route, one},
        view::View,
    },
    storage::StoredDraw,
    types::{Draw, Explanation, ExplanationQuery, Withdrawal},
};
use cowboy_engine::{
    chain::{
        EventKind,
        event::{RunnerDeregistered, RunnerRegistered},
    },
    job::{
        filter::Verdict,
        needs, selection,
        spec::{Job, JobSpec},
    },
    primitives::{Address, Hash, Height, Wei},
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn table() -> Vec<Route> {
    vec![one(
        "/v1/jobs/{id}/explain",
        "How a job's runners were drawn, or why none were",
        |view: &View, id: String, query: ExplanationQuery| explain(view, &id, &query),
    )]
}

fn explain(view: &View, id: &str, query: &ExplanationQuery) -> Result<Explanation, ApiError> {
    let id = named(view, id)?;
    let job = find(view, &id)?;
    let (attempt, StoredDraw { height, draw }) = draw_of(view, &id, query.attempt)?;
    let gone = deregistered_in(view, height)?;
    let ballots = draw.presence.map(|of| ballots(view, of)).transpose()?.flatten();
    let wanted = job.spec.verification.runners;
    let scene = Scene {
        state: &view.state,
        height,
        draw: &draw,
        wanted,
        gone: &gone,
        ballots: ballots.as_ref(),
    };
    let favoured = scene.favoured();
    let judged = |verdict: &Verdict| {
        convert::job::candidate(verdict, &gone, favoured, view.name(&verdict.runner))
    };
    let mut candidates: Vec<_> = draw.verdicts.iter().map(judged).collect();
    // In registry order; runners that have left the registry come last.
    let order = view.state.registry().order();
    candidates.sort_by_key(|candidate| order.index(&candidate.address).unwrap_or(u32::MAX));
    let drawn = job.status.assignment().filter(|assignment| assignment.height == height);
    Ok(Explanation {
        job_id: id.into(),
        height: height.get(),
        attempt,
        wanted,
        passed: convert::count(candidates.iter().filter(|c| c.filter.is_none()).count()),
        status: convert::job::status(&job.status),
        deadline: job.deadline().get(),
        candidates,
        block_hash: draw.parent.into(),
        seed_source: Some(scene.seed_source()),
        seed: draw.seed.into(),
        phase: Some(draw.phase.to_string()),
        presence: scene.presence(),
        mru: favoured.map(|(runner, _)| view.name(&runner)),
        mru_record: scene.mru(|runner| view.name(runner)),
        draws: draw
            .selection
            .draws
            .iter()
            .map(|selection::Draw { draw, r, total, picked }| Draw {
                draw: *draw,
                r: *r,
                total: *total,
                picked: view.name(picked),
                picked_address: (*picked).into(),
            })
            .collect(),
        candidates_root: drawn.map(|assignment| assignment.candidates_root.into()),
        withdrawn: withdrawn(view, &job.spec),
        under_other_rules: scene
            .outcomes()
            .iter()
            .map(|outcome| {
                outcome.named(view.named(&outcome.present), view.named(&outcome.committee))
            })
            .collect(),
    })
}

/// The abilities that the job needs and that runners have withdrawn for now at some validator.
fn withdrawn(view: &View, spec: &JobSpec) -> Vec<Withdrawal> {
    let needed: BTreeSet<String> = needs::of(spec).map(|need| need.to_string()).collect();
    let mut said: BTreeMap<Address, BTreeSet<String>> = BTreeMap::new();
    let slots = view.backend.slots();
    for link in slots.iter().filter_map(|slot| slot.running()).flat_map(|one| one.node.links()) {
        let labels = link.withdrawn.into_iter().filter(|label| needed.contains(label));
        said.entry(link.runner.0).or_default().extend(labels);
    }
    said.retain(|_, labels| !labels.is_empty());
    said.into_iter()
        .map(|(runner, labels)| Withdrawal {
            runner: view.name(&runner),
            labels: labels.into_iter().collect(),
        })
        .collect()
}

/// The votes from which P(h) follows; `None` if they are no longer kept.
fn ballots(view: &View, height: Height) -> Result<Option<Ballots>, ApiError> {
    let Some(stored) = view.store().presence(height)? else { return Ok(None) };
    let certificate = presence::decoded(&stored)?;
    let (embedded_in, order) = (stored.embedded_at, stored.registry);
    Ok(Some(Ballots { height, embedded_in, certificate, order }))
}

pub(super) fn redraw(
    job: &Job,
    candidates: &[(Address, Wei)],
    seed: Hash,
    mru: Option<selection::Favoured>,
) -> selection::Selection {
    selection::committee(candidates, seed, job.spec.verification.runners as usize, mru)
}

/// The runners that left the registry in a block and did not return in it. The filters read the
/// parent's registry, so the draw leaves these out separately.
pub(super) fn deregistered_in(view: &View, height: Height) -> Result<BTreeSet<Address>, ApiError> {
    let mut gone = BTreeSet::new();
    for stored in view.store().events_at(height)? {
        match stored.event.kind {
            EventKind::RunnerDeregistered(RunnerDeregistered { runner, .. }) => {
                gone.insert(runner);
            }
            EventKind::RunnerRegistered(RunnerRegistered { runner, .. }) => {
                gone.remove(&runner);
            }
            _ => {}
        }
    }
    Ok(gone)
}

/// The draw of an attempt at the job, and the attempt's number from 1; the last attempt if none is
/// given.
fn draw_of(view: &View, id: &Hash, attempt: Option<u32>) -> Result<(u32, StoredDraw), ApiError> {
    let mut draws = view.store().draws_of(id)?;
    let count = convert::count(draws.len());
    let attempt = attempt.unwrap_or(count);
    if draws.is_empty() {
        return Err(no_record(view, id, find(view, id)?));
    }
    if !(1..=count).contains(&attempt) {
        let message = format!("job {id} has no attempt {attempt}: there were {count}");
        return Err(ApiError::not_found(message).hint("attempts are counted from 1"));
    }
    Ok((attempt, draws.swap_remove(attempt as usize - 1)))
}

fn no_record(view: &View, id: &Hash, job: &Job) -> ApiError {
    if let Err(pruned) = view.kept(job.submitted_at) {
        return pruned;
    }
    ApiError::internal(format!("the validator has no record of a draw for job {id}"))
}
