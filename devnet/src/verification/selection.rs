//! Checks whether a job's runners were drawn correctly, and whether all of a node's answers agree.

use super::{
    difference::differences,
    names::Names,
    replay::ReplayedBlock,
    report::{Filters, SelectionCheck},
    root::Root,
    walk::{VerificationError, Walk},
};
use crate::{
    api::convert::{
        self, count,
        draw::{Ballots, Scene},
    },
    client::{Client, ClientError},
    types::{Candidate, Draw, Explanation, ExplanationQuery, HashText, Job, Text, UnderRule},
};
use cowboy_engine::{
    chain::{DrawRecord, State, transition::candidates_root},
    job::{
        filter::Verdict,
        selection::{self, Favoured},
        spec::Assignment,
    },
    primitives::{Address, Hash, Height, Wei},
};
use std::collections::{BTreeMap, BTreeSet};

/// Filters and draws a job's newest committee again, and compares that with the node's answers. If
/// the node no longer has the blocks from genesis on, only the draw is repeated, from the node's
/// records. `progress` is called with the newest verified block.
pub async fn check(
    client: &Client,
    root: &Root,
    job: &str,
    progress: impl Fn(u64),
) -> Result<SelectionCheck, VerificationError> {
    let job = client.job(job).await?;
    let (id, Some(height)) = (*job.job_id, job.assigned_at) else {
        let (job, status) = (job.job_id.to_string(), job.status.to_string());
        return Err(VerificationError::NoCommittee { job, status });
    };
    let mut found = SelectionFindings { names: &root.names, mismatches: Vec::new() };
    let said = explanation(client, &job, height).await?;
    let mut report = SelectionCheck {
        job_id: job.job_id,
        valid: false,
        filters: Filters::Redone,
        height,
        attempt: said.as_ref().map_or(0, |said| said.attempt),
        recomputed_root: HashText::default(),
        stored_root: HashText::default(),
        recomputed: Vec::new(),
        stored: job.committee_addresses.clone(),
        mismatches: Vec::new(),
        replayed: 0,
        trusted: root.trusted.clone(),
    };
    let Some(said) = said else {
        found.add(format!("the node explains no draw of block {height}, which it says assigned"));
        report.mismatches = found.mismatches;
        return Ok(report);
    };
    report.stored_root = said.candidates_root.unwrap_or_default();
    let mut walk = Walk::new(client, root)?;
    let drawn = match drawn(&mut walk, id, Height::new(height), progress).await {
        Ok(Some(drawn)) => {
            found.said(&drawn, &said, &job);
            Some((drawn.root, drawn.record.selection.committee))
        }
        Ok(None) => {
            found.add(format!("block {height} does not draw for this job"));
            None
        }
        Err(VerificationError::Fault(fault)) => {
            found.add(fault.to_string());
            None
        }
        Err(VerificationError::Gone(_)) => {
            report.filters = Filters::RecordedOnly;
            let first = match said.attempt {
                0 | 1 => None,
                _ => {
                    let query = ExplanationQuery { attempt: Some(1) };
                    Some(client.explain(&id.to_string(), &query).await?)
                }
            };
            Some(found.recorded(&said, first.as_ref(), &job))
        }
        Err(error) => return Err(error),
    };
    if let Some((root, committee)) = drawn {
        report.recomputed_root = root.into();
        report.recomputed = committee.into_iter().map(Text).collect();
    }
    report.valid = found.mismatches.is_empty() && report.filters == Filters::Redone;
    report.mismatches = found.mismatches;
    report.replayed = walk.height().get();
    Ok(report)
}

/// The node's explanation of the draw that produced the job's committee: of the last attempt, or of
/// an earlier one if later draws found no runner.
async fn explanation(
    client: &Client,
    job: &Job,
    height: u64,
) -> Result<Option<Explanation>, ClientError> {
    let id = job.job_id.to_string();
    let mut said = client.explain(&id, &ExplanationQuery::default()).await?;
    // There are few attempts, because retries are bounded.
    for attempt in (1..said.attempt.min(16)).rev() {
        if said.height == height {
            break;
        }
        said = client.explain(&id, &ExplanationQuery { attempt: Some(attempt) }).await?;
    }
    Ok((said.height == height).then_some(said))
}

struct Drawn {
    record: DrawRecord,
    attempt: u32,
    root: Hash,
    assignment: Option<Assignment>,
    wanted: u32,
    /// The runners that passed the filters and left the registry in the block that drew.
    gone: BTreeSet<Address>,
    state: State,
    /// The votes behind the P(h) that the draw used.
    ballots: Option<Ballots>,
}

impl Drawn {
    fn scene(&self) -> Scene<'_> {
        Scene {
            state: &self.state,
            height: self.state.height(),
            draw: &self.record,
            wanted: self.wanted,
            gone: &self.gone,
            ballots: self.ballots.as_ref(),
        }
    }
}

/// Walks to the block at `height`; returns the job's draw in it, if there is one.
async fn drawn(
    walk: &mut Walk<'_>,
    id: Hash,
    height: Height,
    progress: impl Fn(u64),
) -> Result<Option<Drawn>, VerificationError> {
    let (mut attempt, mut drawn, mut newest) = (1, None, None);
    while walk.height() < height {
        for step in walk.next().await? {
            let at = step.block.header.height;
            progress(at.get());
            newest = made_known(&step).or(newest);
            let state = step.execution.state;
            let record = step.execution.draws.into_iter().find(|draw| draw.job_id == id);
            let Some(record) = record.filter(|_| at <= height) else { continue };
            if at == height {
                drawn = Some(of(record, attempt, &id, &state, newest.clone()));
            } else if !record.selection.committee.is_empty() {
                // Draws that found no runner do not count as attempts.
                attempt += 1;
            }
        }
    }
    Ok(drawn)
}

/// The votes of the newest P(h) that a block makes known: certificates ascend along the chain.
fn made_known(step: &ReplayedBlock) -> Option<Ballots> {
    let derived = step.execution.derived.last()?;
    Some(Ballots {
        height: derived.height,
        embedded_in: step.block.header.height,
        certificate: step.block.certificates[derived.certificate].clone(),
        order: derived.order.clone(),
    })
}

fn of(
    record: DrawRecord,
    attempt: u32,
    id: &Hash,
    state: &State,
    newest: Option<Ballots>,
) -> Drawn {
    let left = |runner: &Address| state.registry().get(runner).is_none_or(|r| r.deregistered);
    let passed = record.verdicts.iter().filter(|verdict| verdict.dropped_by.is_none());
    let (gone, stayed): (Vec<_>, Vec<_>) = passed.partition(|verdict| left(&verdict.runner));
    let candidates: Vec<_> = stayed.iter().map(|verdict| (verdict.runner, verdict.stake)).collect();
    let gone = gone.iter().map(|verdict| verdict.runner).collect();
    let job = state.job(id);
    Drawn {
        attempt,
        root: candidates_root(&candidates),
        assignment: job.and_then(|job| job.status.assignment().cloned()),
        wanted: job.map_or(0, |job| job.spec.verification.runners),
        gone,
        state: state.clone(),
        ballots: newest.filter(|ballots| record.presence == Some(ballots.height)),
        record,
    }
}

struct SelectionFindings<'a> {
    names: &'a Names,
    mismatches: Vec<String>,
}

impl SelectionFindings<'_> {
    fn add(&mut self, detail: String) {
        self.mismatches.push(detail);
    }

    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.add(otherwise());
        }
    }

    fn named(&self, runners: &[Address]) -> String {
        runners.iter().map(|runner| self.names.name(runner)).collect::<Vec<_>>().join(", ")
    }

    fn said(&mut self, drawn: &Drawn, said: &Explanation, job: &Job) {
        let Drawn { record, attempt, root, assignment, wanted, .. } = drawn;
        let height = said.height;
        self.expect(*said.block_hash == record.parent, || {
            let (got, parent) = (said.block_hash, record.parent);
            format!("the seed was made of {got}, block {height} has parent {parent}")
        });
        self.expect(*said.seed == record.seed, || {
            let (got, seed) = (said.seed, record.seed);
            format!("the draw's seed is {got}, the chain gives {seed}")
        });
        self.read(&drawn.scene(), said);
        self.expect(said.attempt == *attempt, || {
            format!("it was attempt {}, should be {attempt}", said.attempt)
        });
        self.expect(said.wanted == *wanted, || {
            format!("the job wants {} runners, should be {wanted}", said.wanted)
        });
        self.expect(said.job_id == job.job_id, || {
            format!("the draw explained is that of job {}", said.job_id)
        });
        self.candidates(&drawn.scene(), said);
        self.mru(record.favoured(drawn.state.height()), said);
        self.draws(&record.selection, said);
        let said_root = said.candidates_root.map(|root| *root);
        self.expect(said_root == Some(*root), || {
            let got = said_root.map_or("absent".to_owned(), |root| root.to_string());
            format!("the job's candidates have root {got}, should be {root}")
        });
        let committee = assignment.as_ref().map_or(&[][..], |drawn| &drawn.committee);
        self.committee(committee, job);
    }

    fn read(&mut self, scene: &Scene<'_>, said: &Explanation) {
        let told = said.mru_record.as_ref().map(|read| read.runner.as_str());
        let listed = |place: usize, present: bool| {
            let rule = said.under_other_rules.get(place);
            let list = |rule: &'_ UnderRule| match present {
                true => rule.present.clone(),
                false => rule.committee.clone(),
            };
            rule.map(list).unwrap_or_default()
        };
        let outcomes = scene.outcomes().into_iter().enumerate().map(|(place, outcome)| {
            let present = self.names.listed(&outcome.present, &listed(place, true));
            let committee = self.names.listed(&outcome.committee, &listed(place, false));
            outcome.named(present, committee)
        });
        let expected = Explanation {
            seed_source: Some(scene.seed_source()),
            phase: Some(scene.draw.phase.to_string()),
            presence: scene.presence(),
            mru_record: scene.mru(|runner| self.names.shown(runner, told)),
            under_other_rules: outcomes.collect(),
            ..said.clone()
        };
        for difference in differences(said, &expected, &[]) {
            self.add(difference);
        }
    }

    fn candidates(&mut self, scene: &Scene<'_>, said: &Explanation) {
        let (record, gone) = (scene.draw, scene.gone);
        let mut told: BTreeMap<Address, &Candidate> = BTreeMap::new();
        for candidate in &said.candidates {
            if told.insert(*candidate.address, candidate).is_some() {
                self.add(format!("{} was judged twice", candidate.address));
            }
        }
        for verdict in &record.verdicts {
            let recorded = told.remove(&verdict.runner);
            let expected = self.judged(verdict, scene, recorded);
            let runner = self.names.name(&verdict.runner);
            match recorded {
                None => self.add(format!("{runner} was not judged, should be {}", fate(&expected))),
                Some(said) if *said != expected => {
                    let (got, should) = (fate(said), fate(&expected));
                    self.add(match got == should {
                        true => {
                            let differing = differences(said, &expected, &[]).join("; ");
                            format!("{runner}: {differing}")
                        }
                        false => format!("{runner} was {got}, should be {should}"),
                    });
                }
                Some(_) => {}
            }
        }
        for stranger in told.into_keys() {
            let runner = self.names.name(&stranger);
            self.add(format!("{runner} was judged, the registry did not have it"));
        }
        let survivors = record.verdicts.iter().filter(|verdict| verdict.dropped_by.is_none());
        let passed = count(survivors.filter(|v| !gone.contains(&v.runner)).count());
        self.expect(said.passed == passed, || {
            format!("{} runners passed the filters, should be {passed}", said.passed)
        });
    }

    fn judged(&self, verdict: &Verdict, scene: &Scene<'_>, said: Option<&Candidate>) -> Candidate {
        let told = said.map(|said| said.runner.as_str());
        let name = self.names.shown(&verdict.runner, told);
        convert::job::candidate(verdict, scene.gone, scene.favoured(), name)
    }

    fn mru(&mut self, expected: Option<Favoured>, said: &Explanation) {
        let got = said.mru.as_deref();
        let should = expected.map(|favoured| self.names.shown(&favoured.runner, got));
        self.expect(said.mru == should, || {
            let name = |runner: Option<&str>| runner.unwrap_or("no runner").to_owned();
            format!("{} was favoured by MRU, should be {}", name(got), name(should.as_deref()))
        });
    }

    fn draws(&mut self, expected: &selection::Selection, said: &Explanation) {
        let told = said.draws.iter().map(|draw| Some(draw.picked.as_str()));
        let told = told.chain(std::iter::repeat(None));
        let expected: Vec<_> = expected
            .draws
            .iter()
            .zip(told)
            .map(|(drawn, told)| Draw {
                draw: drawn.draw,
                r: drawn.r,
                total: drawn.total,
                picked: self.names.shown(&drawn.picked, told),
                picked_address: drawn.picked.into(),
            })
            .collect();
        self.expect(said.draws == expected, || {
            "the recorded draws are not those of the seed".to_owned()
        });
    }

    fn committee(&mut self, expected: &[Address], job: &Job) {
        let got: Vec<Address> = job.committee_addresses.iter().map(|runner| **runner).collect();
        if got != expected {
            let (got, expected) = (self.named(&got), self.named(expected));
            self.add(format!("the job's committee is {got}; the draw gives {expected}"));
        }
        let names = self.names.listed(&got, &job.committee);
        self.expect(names == job.committee, || {
            format!("the job's committee is called {}", job.committee.join(", "))
        });
    }

    /// Returns the candidates' root and the committee.
    fn recorded(
        &mut self,
        said: &Explanation,
        first: Option<&Explanation>,
        job: &Job,
    ) -> (Hash, Vec<Address>) {
        let survivors = said.candidates.iter().filter(|candidate| candidate.filter.is_none());
        let candidates: Vec<(Address, Wei)> =
            survivors.map(|candidate| (*candidate.address, stake(candidate))).collect();
        let first = first.unwrap_or(said);
        let digest = first.seed_source.as_ref().and_then(|source| source.digest);
        let made_of = digest.unwrap_or(first.block_hash);
        let seed = selection::seed(*made_of, *job.job_id, Height::new(job.submitted_at));
        let seed = match said.attempt.saturating_sub(1) {
            0 => seed,
            retry => selection::retry_seed(seed, retry),
        };
        self.expect(*said.seed == seed, || {
            format!("the draw's seed is {}, its source gives {seed}", said.seed)
        });
        for candidate in said.candidates.iter().filter(|candidate| candidate.filter.is_none()) {
            let weight = selection::stake_to_weight(stake(candidate));
            self.expect(candidate.weight == Some(weight), || {
                let (runner, got) = (&candidate.runner, candidate.weight.unwrap_or_default());
                format!("{runner} has weight {got}, its stake gives {weight}")
            });
        }
        let called = |name: &&String| {
            let named = said.candidates.iter().find(|candidate| candidate.runner == **name);
            named.map(|candidate| *candidate.address)
        };
        let mru = said.mru.as_ref().filter(|name| called(name).is_some());
        let mru = mru.and_then(|name| {
            let multiplier = said.mru_record.as_ref()?.multiplier;
            Some(Favoured { runner: called(&name)?, multiplier })
        });
        let drawn = selection::committee(&candidates, seed, said.wanted as usize, mru);
        let root = candidates_root(&candidates);
        self.expect(said.candidates_root.is_none_or(|said| *said == root), || {
            let got = said.candidates_root.unwrap_or_default();
            format!("the job's candidates have root {got}, should be {root}")
        });
        self.draws(&drawn, said);
        self.committee(&drawn.committee, job);
        (root, drawn.committee)
    }
}

fn stake(candidate: &Candidate) -> Wei {
    candidate.stake.map_or(Wei::ZERO, |stake| *stake)
}

fn fate(candidate: &Candidate) -> String {
    let stake = stake(candidate);
    match (&candidate.filter, candidate.weight) {
        (None, Some(weight)) => format!("a candidate with weight {weight} (stake {stake} wei)"),
        (None, None) => format!("a candidate without weight (stake {stake} wei)"),
        (Some(filter), _) => {
            let reason = candidate.reason.as_deref().unwrap_or_default();
            format!("dropped by {filter} ({reason}; stake {stake} wei)")
        }
    }
}
