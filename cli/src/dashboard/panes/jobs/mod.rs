//! Jobs: their status, their runners' progress, and the draws of their runners.

mod view;

pub use view::style;

use crate::dashboard::{
    arrangement::Column,
    drawing::{beneath, list_row_at, list_rows, page},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    rows::{Cursor, Detail, Pick},
};
use cowboy_devnet::types::{Explanation, HashText, Job, JobSummary, RunnerProgress};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};
use std::collections::BTreeMap;

/// Maximum number of visible open jobs whose progress is requested.
const WATCHED: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedJob {
    pub job: Detail<HashText, Job>,
    pub explanation: Option<Explanation>,
    pub unexplained: Option<String>,
}

impl OpenedJob {
    fn new(id: HashText) -> Self {
        Self { job: Detail::new(id), explanation: None, unexplained: None }
    }

    fn is(&self, id: &str) -> bool {
        self.job.key.to_string() == id
    }

    /// Whether no more changes are possible.
    fn is_settled(&self) -> bool {
        let ended = self.job.known.as_ref().is_some_and(|job| job.status.is_final());
        ended && (self.explanation.is_some() || self.unexplained.is_some())
    }
}

#[derive(Debug, Default)]
pub struct Jobs {
    /// Newest first; `None` before the first answer.
    known: Option<Vec<JobSummary>>,
    /// The progress that runners report of open jobs, by the job's id.
    progress: BTreeMap<String, Vec<RunnerProgress>>,
    pub refused: Option<String>,
    pick: Pick<HashText>,
    pub open_only: bool,
    pub opened: Option<OpenedJob>,
    /// The job under the cursor, which is shown below the list if there is room.
    preview: Option<OpenedJob>,
}

impl Jobs {
    /// Every job of the list, newest first; `None` before the first answer.
    pub fn all(&self) -> Option<&[JobSummary]> {
        self.known.as_deref()
    }

    pub fn accepted(&self, cx: &Cx<'_>) -> Vec<&JobSummary> {
        let all = self.known.iter().flatten();
        let accepted = all.filter(|job| !self.open_only || !job.status.is_final()).filter(|job| {
            cx.filter.is_empty()
                || cx.filter.accepts(&format!(
                    "{} {} {} {} {} {}",
                    job.job_id,
                    job.kind,
                    job.status,
                    job.submitter,
                    job.submitter_name.as_deref().unwrap_or_default(),
                    job.committee.join(" "),
                ))
        });
        let mut accepted: Vec<_> = accepted.collect();
        cx.arrangement.sort(&mut accepted, |job, column| view::key(job, column, cx));
        accepted
    }

    pub fn cursor(&self, accepted: &[&JobSummary]) -> Cursor {
        self.pick.cursor(&ids(accepted))
    }

    /// The job under the cursor, if something is known about it.
    pub fn preview(&self, cx: &Cx<'_>) -> Option<&OpenedJob> {
        let chosen = self.chosen(cx)?;
        self.preview.as_ref().filter(|preview| preview.job.key == chosen)
    }

    /// The opened job, or the one under the cursor, if it has this id.
    fn shown(&mut self, id: &str, chosen: Option<HashText>) -> Option<&mut OpenedJob> {
        if self.opened.is_some() {
            return self.opened.as_mut().filter(|opened| opened.is(id));
        }
        let chosen = chosen.filter(|chosen| chosen.to_string() == id)?;
        if self.preview.as_ref().is_none_or(|preview| preview.job.key != chosen) {
            self.preview = Some(OpenedJob::new(chosen));
        }
        self.preview.as_mut()
    }

    pub fn progress(&self, job: &JobSummary) -> &[RunnerProgress] {
        self.progress.get(&job.job_id.to_string()).map_or(&[], Vec::as_slice)
    }

    fn chosen(&self, cx: &Cx<'_>) -> Option<HashText> {
        self.pick.chosen(&ids(&self.accepted(cx)))
    }

    fn take_in(&mut self, jobs: &[JobSummary]) {
        self.known = Some(jobs.to_vec());
        self.refused = None;
        let open = |id: &String| {
            let mut open = jobs.iter().filter(|job| !job.status.is_final());
            open.any(|job| job.job_id.to_string() == *id)
        };
        self.progress.retain(|id, _| open(id));
    }
}

fn ids(jobs: &[&JobSummary]) -> Vec<HashText> {
    jobs.iter().map(|job| job.job_id).collect()
}

impl Pane for Jobs {
    fn name(&self) -> &'static str {
        "jobs"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = Vec::new();
        match &self.opened {
            Some(opened) if !opened.is_settled() => {
                wants.push(Ask::Job(opened.job.key.to_string()));
                wants.push(Ask::Explanation(opened.job.key.to_string()));
            }
            Some(_) => {}
            None => {
                let accepted = self.accepted(cx);
                let (list, below) = beneath(cx.area, accepted.len());
                if below.height > 0
                    && let Some(id) = self.chosen(cx)
                    && !self.preview(cx).is_some_and(OpenedJob::is_settled)
                {
                    wants.push(Ask::Job(id.to_string()));
                    wants.push(Ask::Explanation(id.to_string()));
                }
                let window = self.cursor(&accepted).window(accepted.len(), list_rows(list));
                let open = accepted[window].iter().filter(|job| !job.status.is_final());
                let open = open.take(WATCHED).map(|job| Ask::Job(job.job_id.to_string()));
                let open: Vec<_> = open.filter(|ask| !wants.contains(ask)).collect();
                wants.extend(open);
            }
        }
        wants.insert(0, Ask::Jobs);
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (Ask::Jobs, Answer::Jobs(jobs)) => self.take_in(jobs),
            (Ask::Job(id), Answer::Job(job)) => {
                if !job.status.is_final() {
                    self.progress.insert(id.clone(), job.progress.clone());
                }
                if let Some(opened) = self.shown(id, self.chosen(cx)) {
                    opened.job.hear(job.clone());
                }
            }
            (Ask::Explanation(id), Answer::Explanation(explanation)) => {
                if let Some(opened) = self.shown(id, self.chosen(cx)) {
                    opened.explanation = Some(explanation.clone());
                    opened.unexplained = None;
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Jobs => self.refused = Some(reason.to_owned()),
            Ask::Job(id) => {
                if let Some(opened) = self.shown(id, id.parse().ok()) {
                    opened.job.refuse(reason);
                }
            }
            Ask::Explanation(id) => {
                if let Some(opened) = self.shown(id, id.parse().ok()) {
                    opened.unexplained = Some(reason.to_owned());
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let rows = ids(&self.accepted(cx));
        match &mut self.opened {
            Some(opened) => {
                let fit = page::rows(cx.area);
                let places = view::places(opened, cx, fit);
                opened.job.first.key(key, places, fit)
            }
            None if key.code == KeyCode::Char('o') => {
                self.open_only = !self.open_only;
                self.pick = Pick::default();
                true
            }
            None => {
                let (list, _) = beneath(cx.area, rows.len());
                self.pick.key(key, &rows, list_rows(list))
            }
        }
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let rows = ids(&self.accepted(cx));
        let (list, _) = beneath(cx.area, rows.len());
        let line = list_row_at(list, at).filter(|_| self.opened.is_none());
        line.is_some_and(|line| self.pick.click(line, &rows, list_rows(list)))
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        if self.opened.is_some() {
            return false;
        }
        let Some(id) = self.chosen(cx) else { return false };
        self.pick.go(id);
        let preview = self.preview.take().filter(|preview| preview.job.key == id);
        self.opened = Some(preview.unwrap_or_else(|| OpenedJob::new(id)));
        true
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn columns(&self) -> &'static [Column] {
        if self.opened.is_some() { &[] } else { &view::COLUMNS }
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        Some(match (&self.opened, self.chosen(cx)) {
            (Some(opened), _) => format!("cowboyctl job explain {}", opened.job.key),
            (None, Some(id)) => format!("cowboyctl job show {id}"),
            (None, None) => "cowboyctl job ls".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move; at the top it follows the newest"),
            ("o", "only jobs that have not ended, or all"),
            ("enter", "what happened to the job, and how its runners were drawn"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
