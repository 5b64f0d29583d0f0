//! How a job's runners were drawn, explained and done again.

use super::job::{attempts, find, named};
use crate::{
    api::{
        convert,
        error::ApiError,
        types::{Candidate, Draw, Explanation, ExplanationQuery, SelectionCheck, Text},
        view::View,
    },
    storage::{StoredDraw, StoredEvent},
};
use cowboy_engine::{
    chain::{
        DrawRecord, EventKind,
        event::{RunnerDeregistered, RunnerRegistered},
        execute,
        transition::candidates_root,
    },
    job::{
        filter::Verdict,
        selection,
        spec::{Assignment, Job},
    },
    primitives::{Address, Hash, Height, Wei},
};
use std::collections::BTreeSet;

/// `GET /v1/jobs/{id}/explain`
pub(super) fn explain(
    view: &View,
    id: &str,
    query: &ExplanationQuery,
) -> Result<Explanation, ApiError> {
    let id = named(view, id)?;
    let job = find(view, &id)?;
    let (attempt, StoredDraw { height, draw }) = draw_of(view, &id, query.attempt)?;
    let gone = deregistered_in(view, height)?;
    let mut candidates: Vec<_> =
        draw.verdicts.iter().map(|verdict| candidate(view, verdict, &gone)).collect();
    // The registry's order; who has left it since comes last.
    let order = view.state.registry().order();
    candidates.sort_by_key(|candidate| order.index(&candidate.address).unwrap_or(u32::MAX));
    let drawn = job.status.assignment().filter(|assignment| assignment.height == height);
    Ok(Explanation {
        job_id: id.into(),
        height: height.get(),
        attempt,
        wanted: job.spec.verification.runners,
        passed: convert::count(candidates.iter().filter(|c| c.filter.is_none()).count()),
        status: convert::job::status(&job.status),
        deadline: job.deadline().get(),
        candidates,
        block_hash: draw.parent.into(),
        seed: draw.seed.into(),
        mru: draw.mru.map(|runner| view.name(&runner)),
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
    })
}

fn candidate(view: &View, verdict: &Verdict, gone: &BTreeSet<Address>) -> Candidate {
    let Verdict { runner, weight, dropped_by, reason, .. } = verdict;
    let (filter, reason) = match dropped_by {
        Some(filter) => (Some(filter.name().to_owned()), Some(reason.clone())),
        None if gone.contains(runner) => {
            (Some("health".to_owned()), Some("deregistered in the block that drew".to_owned()))
        }
        None => (None, None),
    };
    Candidate {
        runner: view.name(runner),
        address: (*runner).into(),
        weight: filter.is_none().then_some(*weight),
        filter,
        reason,
    }
}

/// `GET /v1/jobs/{id}/verify-selection`
pub(super) fn verify(view: &View, id: &str) -> Result<SelectionCheck, ApiError> {
    let id = named(view, id)?;
    let job = find(view, &id)?;
    let Some(assignment) = job.status.assignment() else {
        let message = format!("job {id} has no committee: it is {}", job.status.name());
        return Err(ApiError::not_found(message).hint(format!("see cowboyctl job explain {id}")));
    };
    let draws = (1..).zip(view.store().draws_of(&id)?);
    let mut of_committee = draws.filter(|(_, stored)| stored.height == assignment.height);
    let (attempt, StoredDraw { height, draw }) =
        of_committee.next().ok_or_else(|| no_record(view, &id, job))?;
    let mut mismatches = Vec::new();
    let mut expect = |holds: bool, otherwise: &dyn Fn() -> String| {
        if !holds {
            mismatches.push(otherwise());
        }
    };

    let parent = view.block(height)?.header.parent;
    expect(draw.parent == parent, &|| {
        format!("the seed was made of {}, block {height} has parent {parent}", draw.parent)
    });
    let seed = expected_seed(view, &id, job, height)?;
    for (whose, got) in [("draw's", draw.seed), ("job's", assignment.seed)] {
        expect(got == seed, &|| {
            format!("the {whose} seed is {got}, from the parent follows {seed}")
        });
    }

    // Where the parent's state is still known, the filters are applied anew, to all of it.
    let again = match draws_again(view, height)? {
        Some(draws) => {
            let again = draws.into_iter().find(|draw| draw.job_id == id);
            expect(again.is_some(), &|| format!("block {height} does not draw for this job"));
            again
        }
        None => None,
    };
    if let Some(again) = &again {
        for verdict in &again.verdicts {
            let recorded = draw.verdicts.iter().find(|other| other.runner == verdict.runner);
            expect(recorded == Some(verdict), &|| judged(view, verdict, recorded));
        }
        expect(draw.verdicts.len() == again.verdicts.len(), &|| {
            let (got, expected) = (draw.verdicts.len(), again.verdicts.len());
            format!("{got} runners were judged, the registry had {expected}")
        });
        expect((draw.phase, draw.presence) == (again.phase, again.presence), &|| {
            let of = |draw: &DrawRecord| match draw.presence {
                Some(height) => format!("{} by P({height})", draw.phase),
                None => format!("{} without a recent P", draw.phase),
            };
            format!("the draw was in phase {}, should be {}", of(&draw), of(again))
        });
        expect(draw.mru == again.mru, &|| {
            let name = |runner: Option<Address>| runner.map_or("nobody".into(), |r| view.name(&r));
            format!("{} was favoured by MRU, should be {}", name(draw.mru), name(again.mru))
        });
    }
    let evidence = again.as_ref().unwrap_or(&draw);
    let candidates = survivors(evidence, &deregistered_in(view, height)?);
    let root = candidates_root(&candidates);
    expect(assignment.candidates_root == root, &|| {
        format!("the job's candidates have root {}, should be {root}", assignment.candidates_root)
    });
    let recomputed = redraw(job, &candidates, seed, evidence.mru);
    expect(assignment.committee == recomputed.committee, &|| {
        let names = |runners: &[Address]| view.named(runners).join(", ");
        let (got, expected) = (names(&assignment.committee), names(&recomputed.committee));
        format!("the job's committee is {got}; the draw gives {expected}")
    });
    expect(draw.selection == recomputed, &|| "the recorded draws are not those of the seed".into());

    let Assignment { candidates_root: stored_root, committee, .. } = assignment;
    Ok(SelectionCheck {
        job_id: id.into(),
        valid: mismatches.is_empty(),
        height: height.get(),
        attempt,
        recomputed_root: root.into(),
        stored_root: (*stored_root).into(),
        recomputed: recomputed.committee.into_iter().map(Text).collect(),
        stored: committee.iter().copied().map(Text).collect(),
        mismatches,
    })
}

fn judged(view: &View, verdict: &Verdict, recorded: Option<&Verdict>) -> String {
    let runner = view.name(&verdict.runner);
    let fate = |verdict: &Verdict| {
        let seen = if verdict.present { "present" } else { "absent" };
        match verdict.dropped_by {
            Some(filter) => format!("dropped by {filter} ({}), {seen}", verdict.reason),
            None => format!("a candidate with weight {}, {seen}", verdict.weight),
        }
    };
    match recorded {
        Some(recorded) => format!("{runner} was {}, should be {}", fate(recorded), fate(verdict)),
        None => format!("{runner} was not judged, should be {}", fate(verdict)),
    }
}

pub(super) fn redraw(
    job: &Job,
    candidates: &[(Address, Wei)],
    seed: Hash,
    mru: Option<Address>,
) -> selection::Selection {
    selection::committee(candidates, seed, job.spec.verification.runners as usize, mru)
}

/// The candidates that a draw was made from.
fn survivors(draw: &DrawRecord, gone: &BTreeSet<Address>) -> Vec<(Address, Wei)> {
    let survivors = draw.verdicts.iter().filter(|verdict| verdict.dropped_by.is_none());
    survivors.map(|v| (v.runner, v.stake)).filter(|(runner, _)| !gone.contains(runner)).collect()
}

/// The draws that executing a block again makes; `None` where the parent's state is too old.
fn draws_again(view: &View, height: Height) -> Result<Option<Vec<DrawRecord>>, ApiError> {
    let Some(parent) = height.previous().and_then(|parent| view.state_at(parent)) else {
        return Ok(None);
    };
    let execution = execute(&parent.state, &view.block(height)?).map_err(|error| {
        ApiError::internal(format!("block {height} cannot be executed again: {error}"))
    })?;
    Ok(Some(execution.draws))
}

/// The runners that left the registry in a block and did not come back in it: the filters read the
/// parent's registry, and the draw leaves these out.
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

/// The draw of an attempt at the job, from 1, and which one it was; of the last where none is
/// named.
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

/// The seed that a draw at `height` has to have: of the job's first draw that found a committee
/// what its parent gives, of retries what follows from that.
fn expected_seed(view: &View, id: &Hash, job: &Job, height: Height) -> Result<Hash, ApiError> {
    view.kept(job.submitted_at)?;
    let events = view.store().events_of(id)?;
    let assigned = |stored: &&StoredEvent| matches!(stored.event.kind, EventKind::JobAssigned(_));
    let first = events.iter().find(assigned).map_or(height, |stored| stored.height);
    let seed = selection::seed(view.block(first)?.header.parent, *id, job.submitted_at);
    let retries = attempts(&events, height).saturating_sub(1);
    Ok(if retries == 0 { seed } else { selection::retry_seed(seed, retries) })
}
