//! Runs of jobs that runners take by lease, from the devnet's lease server.

mod view;

use crate::dashboard::{
    lease::{LeaseJob, Leases as Known},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    rows::{Cursor, Detail, Pick},
};
use cowboy_lease::messages::{JobSummary, RunSummary};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedLease {
    pub job: Detail<String, LeaseJob>,
    /// Number of lines that its log is scrolled up from the end.
    pub back: Cursor,
    /// Whether keys move the log rather than the page.
    pub in_log: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEntry<'a> {
    Run(&'a RunSummary),
    /// A job, and whether it is the last of its run.
    Job(&'a JobSummary, bool),
}

impl LeaseEntry<'_> {
    pub fn id(&self) -> &str {
        match self {
            Self::Run(run) => &run.run_id,
            Self::Job(job, _) => &job.job,
        }
    }
}

#[derive(Debug, Default)]
pub struct Leases {
    /// The server's answers; `None` before the first one.
    pub known: Option<Known>,
    pub refused: Option<String>,
    pick: Pick<String>,
    pub runs_only: bool,
    pub opened: Option<OpenedLease>,
    /// The job under the cursor, which is shown below the list if there is room.
    preview: Option<OpenedLease>,
}

impl OpenedLease {
    fn new(id: String) -> Self {
        Self { job: Detail::new(id), back: Cursor::default(), in_log: false }
    }

    /// Whether no more changes are possible.
    fn is_settled(&self) -> bool {
        let known = self.job.known.as_ref();
        known.is_some_and(|known| known.job.summary.state.is_terminal())
    }
}

impl Leases {
    /// Runs with the jobs that the filter accepts, and runs that the filter itself accepts; newest
    /// first.
    pub fn entries(&self, cx: &Cx<'_>) -> Vec<LeaseEntry<'_>> {
        let Some(known) = &self.known else { return Vec::new() };
        let mut entries = Vec::new();
        for run in &known.runs {
            let name = run.name.as_deref().unwrap_or_default();
            let line = format!("{} {name} {}", run.run_id, run.state);
            let jobs = known.jobs.iter().filter(|job| job.run == run.run_id && !self.runs_only);
            let accepts = |job: &&JobSummary| {
                let runner = job.runner.as_deref().unwrap_or_default();
                let JobSummary { job, name, state, .. } = job;
                cx.filter.is_empty()
                    || cx.filter.accepts(&format!("{line} {job} {name} {state} {runner}"))
            };
            // The server sends the newest first; within a run the order is that of its file.
            let mut jobs: Vec<_> = jobs.filter(accepts).collect();
            jobs.reverse();
            if jobs.is_empty() && !cx.filter.accepts(&line) {
                continue;
            }
            entries.push(LeaseEntry::Run(run));
            let last = jobs.len();
            entries.extend((1..).zip(jobs).map(|(at, job)| LeaseEntry::Job(job, at == last)));
        }
        entries
    }

    pub fn cursor(&self, entries: &[LeaseEntry<'_>]) -> Cursor {
        self.pick.cursor(&ids(entries))
    }

    /// The job under the cursor, if it is known.
    pub fn preview(&self, cx: &Cx<'_>) -> Option<&OpenedLease> {
        let (chosen, _) = self.chosen(cx).filter(|(_, is_job)| *is_job)?;
        self.preview.as_ref().filter(|preview| preview.job.key == chosen)
    }

    /// The opened job, or the one under the cursor, if it has this id.
    fn shown(&mut self, id: &str, chosen: Option<&str>) -> Option<&mut OpenedLease> {
        if self.opened.is_some() {
            return self.opened.as_mut().filter(|opened| opened.job.key == id);
        }
        let chosen = chosen.filter(|chosen| *chosen == id)?;
        if self.preview.as_ref().is_none_or(|preview| preview.job.key != chosen) {
            self.preview = Some(OpenedLease::new(chosen.to_owned()));
        }
        self.preview.as_mut()
    }

    /// The entry under the cursor: its id, and whether it is a job.
    fn chosen(&self, cx: &Cx<'_>) -> Option<(String, bool)> {
        let entries = self.entries(cx);
        let entry = entries.get(self.cursor(&entries).of(entries.len()))?;
        Some((entry.id().to_owned(), matches!(entry, LeaseEntry::Job(..))))
    }
}

fn ids(entries: &[LeaseEntry<'_>]) -> Vec<String> {
    entries.iter().map(|entry| entry.id().to_owned()).collect()
}

impl Pane for Leases {
    fn name(&self) -> &'static str {
        "leases"
    }

    fn short(&self) -> &'static str {
        "lease"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = vec![Ask::Leases];
        match &self.opened {
            Some(opened) if !opened.is_settled() => {
                wants.push(Ask::LeaseJob(opened.job.key.clone()));
            }
            None if view::split_list(self.entries(cx).len(), cx).1.height > 0 => {
                let settled = self.preview(cx).is_some_and(OpenedLease::is_settled);
                let chosen = self.chosen(cx).filter(|(_, is_job)| *is_job && !settled);
                wants.extend(chosen.map(|(id, _)| Ask::LeaseJob(id)));
            }
            _ => {}
        }
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (_, Answer::Leases(leases)) => {
                self.known = Some(leases.clone());
                self.refused = None;
            }
            (Ask::LeaseJob(id), Answer::LeaseJob(job)) => {
                let chosen = self.chosen(cx).map(|(id, _)| id);
                if let Some(opened) = self.shown(id, chosen.as_deref()) {
                    opened.job.hear(job.clone());
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Leases => self.refused = Some(reason.to_owned()),
            Ask::LeaseJob(id) => {
                if let Some(opened) = self.shown(id, Some(id)) {
                    opened.job.refuse(reason);
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let rows = ids(&self.entries(cx));
        match (&mut self.opened, key.code) {
            (Some(opened), KeyCode::Char('l')) => {
                opened.in_log = !opened.in_log;
                true
            }
            (Some(opened), _) if opened.in_log => {
                let (places, fit) = view::log_places(opened, cx);
                // Up moves further back from the end.
                let mirrored = match key.code {
                    KeyCode::Up | KeyCode::Char('k') => KeyCode::Down,
                    KeyCode::Down | KeyCode::Char('j') => KeyCode::Up,
                    KeyCode::PageUp => KeyCode::PageDown,
                    KeyCode::PageDown => KeyCode::PageUp,
                    KeyCode::Home | KeyCode::Char('g') => KeyCode::End,
                    KeyCode::End | KeyCode::Char('G') => KeyCode::Home,
                    other => other,
                };
                opened.back.key(KeyEvent::from(mirrored), places, fit)
            }
            (Some(opened), _) => {
                let (places, fit) = view::page_places(opened, cx);
                opened.job.first.key(key, places, fit)
            }
            (None, KeyCode::Char('r')) => {
                self.runs_only = !self.runs_only;
                self.pick = Pick::default();
                true
            }
            (None, _) => {
                let (list, _) = view::split_list(rows.len(), cx);
                self.pick.key(key, &rows, view::rows(list))
            }
        }
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let line = at.y.checked_sub(cx.area.y + view::ABOVE);
        let rows = ids(&self.entries(cx));
        let fit = view::rows(view::split_list(rows.len(), cx).0);
        self.opened.is_none() && line.is_some_and(|line| self.pick.click(line.into(), &rows, fit))
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        if self.opened.is_some() {
            return false;
        }
        match self.chosen(cx) {
            Some((id, true)) => {
                self.pick.go(id.clone());
                let preview = self.preview.take().filter(|preview| preview.job.key == id);
                self.opened = Some(preview.unwrap_or_else(|| OpenedLease::new(id)));
                true
            }
            // A run's jobs are shown below it.
            Some((id, false)) => {
                self.runs_only = !self.runs_only;
                self.pick.go(id);
                true
            }
            None => false,
        }
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        Some(match (&self.opened, self.chosen(cx)) {
            (Some(opened), _) if opened.in_log => {
                format!("cowboyctl lease logs {}", opened.job.key)
            }
            (Some(opened), _) => format!("cowboyctl lease show {}", opened.job.key),
            (None, Some((id, _))) => format!("cowboyctl lease show {id}"),
            (None, None) => "cowboyctl lease ls".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move; at the top it follows the newest"),
            ("r", "runs without their jobs, or with them"),
            ("enter", "a job's attempts and the end of its log; of a run: as r"),
            ("l", "in a job: move its log, or its page again"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
