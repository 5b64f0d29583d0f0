//! Text output for jobs and draws.

use crate::{
    commands::trust,
    output::{
        Document, Row, amount, callback, columns, data, decoded, fields, listed, millis, named,
        or_dash, progress, table,
    },
};
use cowboy_devnet::{
    types::{AddressText, Job, JobDispatch, JobResult, JobSummary},
    verification::{Filters, SelectionCheck},
};

impl Row for JobSummary {
    columns! { self;
        "job" => self.job_id.to_string(),
        "name" => or_dash(self.name.clone()),
        "kind" => self.kind.clone(),
        "submitter" => self.submitter_name.clone().unwrap_or_else(|| self.submitter.to_string()),
        "status" => self.status.to_string(),
        "runners" => listed(&self.committee),
        ">submitted at" => self.submitted_at.to_string(),
        ">final at" => or_dash(self.final_at),
    }
    const LEAST: &'static [&'static str] =
        &["final at", "submitted at", "submitter", "runners", "name"];

    fn id(&self) -> String {
        self.job_id.to_string()
    }
}

impl Row for JobDispatch {
    columns! { self;
        ">assigned at" => self.assigned_at.to_string(),
        "runner" => self.runner.clone(),
        "validator" => self.validator.clone(),
        "outcome" => self.outcome.clone(),
        ">answered after" => or_dash(self.answered_ms.map(millis)),
        ">started after" => or_dash(self.started_ms.map(millis)),
        ">done after" => or_dash(self.done_ms.map(millis)),
    }
    const LEAST: &'static [&'static str] = &["started after", "answered after"];

    fn id(&self) -> String {
        self.validator.clone()
    }
}

impl Document for Job {
    fn text(&self) -> String {
        let mut lines = vec![
            ("job", named(self.name.as_deref(), &self.job_id)),
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
        lines.extend(callback(&self.spec).map(|callback| ("calls then", callback)));
        if !self.progress.is_empty() {
            let progress: Vec<_> = self.progress.iter().map(progress).collect();
            lines.push(("progress", progress.join("; ")));
        }
        lines.extend(self.error.as_ref().map(|error| ("error", error.clone())));
        if let Some(result) = &self.result {
            let text = self.result_text.clone().unwrap_or_else(|| decoded(&result.0.0));
            lines.push(("result", text.trim_end().to_owned()));
        }
        let rows = self.events.iter().map(|event| {
            let mut about = event.data.clone();
            // The job is shown already.
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
        self.result_text.clone().unwrap_or_else(|| decoded(&self.result.0.0))
    }

    fn id(&self) -> String {
        self.result.to_string()
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
