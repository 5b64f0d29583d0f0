//! `job explain`: shows how a job's runners were drawn, what other rules would have drawn, and how
//! much work a proposer needs to change the draw.

use super::grind::{self, Grind};
use crate::{
    complete,
    context::Context,
    error::CliError,
    output::{ColumnOf, Document, any_table, fields, or_dash, paragraphs, table_of},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::{
    Candidate, Explanation, ExplanationQuery, JobStatus, MruRead, PresenceRead, SeedSource,
};
use serde::Serialize;

/// `job explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The job: a name, its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::jobs))]
    job: String,
    /// The attempt, from 1 [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Show how much work it takes to change the draw by trying seeds, with this many tries
    ///
    /// If seeds come from the parent block, that many other hashes of it are tried here, by one
    /// thread, each with a later timestamp.
    #[arg(long, value_name = "TRIES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "100000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=grind::MOST_TRIES as i64))]
    grind: Option<u32>,
}

impl Explain {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let query = ExplanationQuery { attempt: self.attempt };
        let explanation = client.explain(&self.job, &query).await?;
        let grind = match self.grind {
            Some(tries) => Some(grind::grind(&client, &explanation, tries).await?),
            None => None,
        };
        cx.ui.document(&Explained { explanation, grind })
    }
}

/// How a job's runners were drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    /// The work that it takes to change the draw; only with --grind.
    #[serde(skip_serializing_if = "Option::is_none")]
    grind: Option<Grind>,
}

fn committee(explanation: &Explanation) -> String {
    let Explanation { draws, wanted, passed, candidates, status, deadline, .. } = explanation;
    if !draws.is_empty() {
        let picked: Vec<_> = draws.iter().map(|draw| draw.picked.as_str()).collect();
        return picked.join(", ");
    }
    let total = candidates.len();
    let then = match status {
        JobStatus::Pending => format!("drawn again with each block up to {deadline}"),
        status => format!("the job is {status}"),
    };
    format!("none: {passed} of {total} runners pass, {wanted} wanted; {then}")
}

fn presence(read: Option<&PresenceRead>) -> String {
    let Some(PresenceRead { height, age, votes, embedded_in, rule, .. }) = read else {
        return "none is recent enough: no runner counts as present".to_owned();
    };
    let age = match age {
        0 => "the parent's".to_owned(),
        1 => "1 block before the parent".to_owned(),
        age => format!("{age} blocks before the parent"),
    };
    let votes = match (votes, embedded_in) {
        (Some(votes), Some(embedded_in)) => {
            format!("{votes} votes, certificate in block {embedded_in}")
        }
        _ => "its certificate is no longer kept".to_owned(),
    };
    format!("P({height}), {age}; {votes}, rule {rule}")
}

fn source(explanation: &Explanation) -> String {
    match &explanation.seed_source {
        Some(SeedSource { certificate_of: Some(height), digest, .. }) => {
            let digest = digest.map(|digest| format!(": {digest}")).unwrap_or_default();
            format!("certificate of block {height}{digest}")
        }
        _ => format!("hash of block {}", explanation.height.saturating_sub(1)),
    }
}

fn mru(read: Option<&MruRead>) -> String {
    let Some(MruRead { runner, set_at, age, ttl_blocks, multiplier, applied, .. }) = read else {
        return "-".to_owned();
    };
    let counts = match (applied, age <= ttl_blocks) {
        (true, _) => format!("its weight counts {multiplier} times in draw 0"),
        (false, true) => "its runner was not among those drawn from".to_owned(),
        (false, false) => "past its time".to_owned(),
    };
    format!("{runner}, set at {set_at}, {age} of {ttl_blocks} blocks ago: {counts}")
}

/// Names in one cell; all of them are given as a count if there are many.
fn few(names: &[String], of: usize) -> String {
    match names.len() {
        0 => "-".to_owned(),
        all if all == of && all > 1 => format!("all {all}"),
        1..=8 => names.join(","),
        many => format!("{many} of {of}"),
    }
}

impl Document for Explained {
    fn text(&self) -> String {
        let text = self.explanation.text();
        match &self.grind {
            Some(grind) => format!("{text}\n\n{}", grind.text()),
            None => text,
        }
    }

    fn id(&self) -> String {
        self.explanation.id()
    }
}

const CANDIDATES: &[ColumnOf<Candidate>] = &[
    ("candidate", |candidate| candidate.runner.clone()),
    ("address", |candidate| candidate.address.to_string()),
    (">weight", |candidate| or_dash(candidate.weight)),
    (">in draw 0", |candidate| or_dash(candidate.first_weight.or(candidate.weight))),
    ("filter", |candidate| candidate.filter.clone().unwrap_or_else(|| "passed".to_owned())),
    ("reason", |candidate| candidate.reason.clone().unwrap_or_default()),
];

impl Document for Explanation {
    fn text(&self) -> String {
        let mut head = vec![
            ("job", self.job_id.to_string()),
            ("drawn at", format!("{} (attempt {})", self.height, self.attempt)),
            ("committee", committee(self)),
        ];
        if let Some(phase) = &self.phase {
            head.push(("phase", phase.clone()));
            head.push(("presence", presence(self.presence.as_ref())));
        }
        head.extend([
            ("block hash", self.block_hash.to_string()),
            ("seed made of", source(self)),
            ("seed", self.seed.to_string()),
            ("MRU record", mru(self.mru_record.as_ref())),
            ("candidates root", or_dash(self.candidates_root)),
        ]);
        let draws = self.draws.iter().map(|draw| {
            let point = format!("{} of {}", draw.r, draw.total);
            vec![draw.draw.to_string(), point, draw.picked.clone()]
        });
        let said = self.withdrawn.iter();
        let said = said.map(|said| vec![said.runner.clone(), said.labels.join(", ")]);
        let rules = self.under_other_rules.iter().map(|under| {
            let drawn = match under.committee.is_empty() {
                true => "none".to_owned(),
                false => under.committee.join(","),
            };
            let rule = match under.in_force {
                true => format!("{} (in force)", under.rule),
                false => under.rule.clone(),
            };
            vec![rule, few(&under.present, self.candidates.len()), drawn]
        });
        let rules = match (self.under_other_rules.is_empty(), &self.seed_source) {
            (true, Some(_)) => "under other rules: the votes are no longer kept".to_owned(),
            _ => any_table(&["under rule", "present", "drawn"], rules),
        };
        paragraphs([
            fields(&head),
            table_of(&["address"], CANDIDATES, &self.candidates),
            any_table(&[">draw", "point", "picked"], draws),
            any_table(&["runner", "withdrawn now"], said),
            rules,
        ])
    }

    fn id(&self) -> String {
        let picked = self.draws.iter().map(|draw| draw.picked.clone());
        picked.collect::<Vec<_>>().join("\n")
    }
}
