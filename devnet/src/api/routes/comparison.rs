//! Draws with and without the presence filter: the choice of the actual phase, and the choice that
//! the other phase would have made (spec connectivity.md §7).
//!
//! Only stored records are needed: a draw's record tells for each runner whether it was present and
//! which other filter dropped it. The draw is repeated with the same seed and the same MRU runner.

use super::{
    job::{find, named},
    selection::{deregistered_in, redraw},
};
use crate::{
    api::{
        convert::count,
        error::ApiError,
        route::{Route, one},
        view::View,
    },
    storage::{Page, StoredDraw},
    types::{COMPARED_BLOCKS, COMPARED_DRAWS, ComparedDraw, ComparisonQuery, PresenceComparison},
};
use cowboy_engine::{
    job::filter::Filter,
    primitives::{Address, Height, Wei},
};

pub(super) fn table() -> Vec<Route> {
    vec![one(
        "/v1/presence/compare",
        "The choices of draws with and without the presence filter",
        |view: &View, (), query: ComparisonQuery| compare(view, &query),
    )]
}

fn compare(view: &View, query: &ComparisonQuery) -> Result<PresenceComparison, ApiError> {
    let (from, to, Page { rows, more }) = match &query.job {
        Some(job) => of_job(view, query, job)?,
        None => of_blocks(view, query)?,
    };
    let draws = rows.iter().map(|stored| other_way(view, stored)).collect::<Result<Vec<_>, _>>()?;
    let number = |which: fn(&&ComparedDraw) -> bool| count(draws.iter().filter(which).count());
    Ok(PresenceComparison {
        from: from.get(),
        to: to.get(),
        compared: count(draws.len()),
        changed: number(|draw| !draw.same),
        would_have_waited: number(|draw| match draw.filtered {
            true => !draw.with_filter.is_empty() && draw.without_filter.is_empty(),
            false => draw.with_filter.is_empty() && !draw.without_filter.is_empty(),
        }),
        draws,
        more,
    })
}

type Range = (Height, Height, Page<StoredDraw>);

fn of_job(view: &View, query: &ComparisonQuery, job: &str) -> Result<Range, ApiError> {
    if query.from.is_some() || query.to.is_some() {
        return Err(ApiError::bad_request("job: a job has one draw, so a range does not apply")
            .hint("give the job or a range of blocks"));
    }
    let id = named(view, job)?;
    find(view, &id)?;
    let stored = view.store().draws_of(&id)?.pop().ok_or_else(|| {
        ApiError::not_found(format!("the validator has no record of a draw for job {id}"))
    })?;
    let height = stored.height;
    Ok((height, height, Page { rows: vec![stored], more: false }))
}

fn of_blocks(view: &View, query: &ComparisonQuery) -> Result<Range, ApiError> {
    let to = query.to.map_or(view.head(), Height::new);
    view.reached(to)?;
    let first = to.get().saturating_sub(COMPARED_BLOCKS - 1);
    let from = Height::new(query.from.unwrap_or(first));
    if from > to {
        return Err(ApiError::bad_request(format!("from: block {from} comes after block {to}")));
    }
    Ok((from, to, view.store().draws(from, to, COMPARED_DRAWS)?))
}

/// A draw's choice, and its choice with the presence filter switched the other way.
fn other_way(view: &View, stored: &StoredDraw) -> Result<ComparedDraw, ApiError> {
    let StoredDraw { height, draw } = stored;
    let job = find(view, &draw.job_id)?;
    let gone = deregistered_in(view, *height)?;
    let filtered = draw.phase.filters_presence();
    let candidates: Vec<(Address, Wei)> = draw
        .verdicts
        .iter()
        .filter(|v| v.dropped_where(!filtered).is_none() && !gone.contains(&v.runner))
        .map(|v| (v.runner, v.stake))
        .collect();
    let other = redraw(job, &candidates, draw.seed, draw.favoured(*height)).committee;
    let chosen = &draw.selection.committee;
    let same = *chosen == other;
    let (with, without) = if filtered { (chosen, &other) } else { (&other, chosen) };
    let absent = draw.verdicts.iter().filter(|v| v.dropped_where(true) == Some(Filter::Presence));
    Ok(ComparedDraw {
        height: height.get(),
        job_id: draw.job_id.into(),
        phase: draw.phase.to_string(),
        filtered,
        presence_of: draw.presence.map(Height::get),
        dropped: view.named(absent.map(|verdict| &verdict.runner)),
        with_filter: view.named(with),
        without_filter: view.named(without),
        same,
    })
}
