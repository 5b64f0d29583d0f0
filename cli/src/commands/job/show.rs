//! What people see of jobs and draws.

use super::submit::progress;
use crate::{
    commands::{
        chain::{data, named},
        trust,
    },
    output::{Document, Row, amount, fields, listed, millis, table},
};
use cowboy_devnet::{
    api::types::{AddressText, Explanation, Job, JobDispatch, JobResult, JobStatus, JobSummary},
    verification::{Filters, SelectionCheck},
};

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

impl Row for JobSummary {
    const HEADER: &'static [&'static str] =
        &["job", "kind", "submitter", "status", "runners", ">submitted at", ">final at"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.job_id.to_string(),
            self.kind.clone(),
            self.submitter_name.clone().unwrap_or_else(|| self.submitter.to_string()),
            self.status.to_string(),
            listed(&self.committee),
            self.submitted_at.to_string(),
            or_dash(self.final_at),
        ]
    }

    fn id(&self) -> String {
        self.job_id.to_string()
    }
}

impl Row for JobDispatch {
    const HEADER: &'static [&'static str] =
        &[">assigned at", "runner", "validator", "outcome", ">answered after", ">done after"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.assigned_at.to_string(),
            self.runner.clone(),
            self.validator.clone(),
            self.outcome.clone(),
            or_dash(self.answered_ms.map(millis)),
            or_dash(self.done_ms.map(millis)),
        ]
    }

    fn id(&self) -> String {
        self.validator.clone()
    }
}

impl Document for Job {
    fn text(&self) -> String {
        let mut lines = vec![
            ("job", self.job_id.to_string()),
            ("kind", self.kind.clone()),
            ("submitter", named(self.submitter_name.as_deref(), &self.submitter)),
            ("status", self.status.to_string()),
            ("runners", self.committee.join(", ")),
            ("attempts", self.attempts.to_string()),
            ("submitted at", self.submitted_at.to_string()),
            ("assigned at", or_dash(self.assigned_at)),
            ("deadline", self.deadline.to_string()),
            ("final at", or_dash(self.final_at)),
            ("latency", or_dash(self.latency_ms.map(millis))),
            ("price at most", amount(*self.max_price)),
            ("paid", or_dash(self.paid.map(|paid| amount(*paid)))),
        ];
        if !self.progress.is_empty() {
            let progress: Vec<_> = self.progress.iter().map(progress).collect();
            lines.push(("progress", progress.join("; ")));
        }
        if let Some(error) = &self.error {
            lines.push(("error", error.clone()));
        }
        if let Some(result) = &self.result {
            let text = self.result_text.clone().unwrap_or_else(|| result.to_string());
            lines.push(("result", text.trim_end().to_owned()));
        }
        let rows = self.events.iter().map(|event| {
            let mut about = event.data.clone();
            // The job is the one shown.
            about.as_object_mut().and_then(|fields| fields.remove("job_id"));
            vec![event.height.to_string(), event.event.clone(), data(&about)]
        });
        format!("{}\n\n{}", fields(&lines), table(&[">height", "event", "data"], rows))
    }

    fn id(&self) -> String {
        self.status.to_string()
    }
}

impl Document for JobResult {
    fn text(&self) -> String {
        self.result_text.clone().unwrap_or_else(|| self.result.to_string())
    }

    fn id(&self) -> String {
        self.result.to_string()
    }
}

/// Who was drawn, or what the job waits for.
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

impl Document for Explanation {
    fn text(&self) -> String {
        let head = fields(&[
            ("job", self.job_id.to_string()),
            ("drawn at", format!("{} (attempt {})", self.height, self.attempt)),
            ("committee", committee(self)),
            ("block hash", self.block_hash.to_string()),
            ("seed", self.seed.to_string()),
            ("MRU runner", or_dash(self.mru.clone())),
            ("candidates root", or_dash(self.candidates_root)),
        ]);
        let candidates = self.candidates.iter().map(|candidate| {
            vec![
                candidate.runner.clone(),
                candidate.address.to_string(),
                or_dash(candidate.weight),
                candidate.filter.clone().unwrap_or_else(|| "passed".to_owned()),
                candidate.reason.clone().unwrap_or_default(),
            ]
        });
        let draws = self.draws.iter().map(|draw| {
            let point = format!("{} of {}", draw.r, draw.total);
            vec![draw.draw.to_string(), point, draw.picked.clone()]
        });
        let columns = ["candidate", "address", ">weight", "filter", "reason"];
        let mut shown = format!("{head}\n\n{}", table(&columns, candidates));
        if !self.draws.is_empty() {
            shown += &format!("\n\n{}", table(&[">draw", "point", "picked"], draws));
        }
        if !self.withdrawn.is_empty() {
            let said = self.withdrawn.iter();
            let said = said.map(|said| vec![said.runner.clone(), said.labels.join(", ")]);
            shown += &format!("\n\n{}", table(&["runner", "withdrawn now"], said));
        }
        shown
    }

    fn id(&self) -> String {
        self.draws.iter().map(|draw| draw.picked.clone()).collect::<Vec<_>>().join("\n")
    }
}

impl Document for SelectionCheck {
    fn text(&self) -> String {
        let committee = |addresses: &[AddressText]| {
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (filters, verdict) = match (self.filters, self.valid, self.mismatches.is_empty()) {
            (Filters::Redone, true, _) => ("redone", "valid"),
            (Filters::Redone, false, _) => ("redone", "INVALID"),
            (Filters::RecordedOnly, _, true) => ("recorded only", "not verified"),
            (Filters::RecordedOnly, _, false) => ("recorded only", "INVALID"),
        };
        let mut lines = vec![
            ("job", self.job_id.to_string()),
            ("selection", verdict.to_owned()),
            ("filters", filters.to_owned()),
            ("drawn at", format!("{} (attempt {})", self.height, self.attempt)),
            ("root recomputed", self.recomputed_root.to_string()),
            ("root stored", self.stored_root.to_string()),
            ("recomputed", committee(&self.recomputed)),
            ("stored", committee(&self.stored)),
            ("replayed", format!("{} blocks", self.replayed)),
            ("trusted", trust::trusted(&self.trusted)),
        ];
        if !self.mismatches.is_empty() {
            lines.push(("mismatches", self.mismatches.join("\n")));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.valid.to_string()
    }
}
