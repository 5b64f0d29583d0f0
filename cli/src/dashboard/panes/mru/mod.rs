//! The most recently used runners, which the first draw of a job favours.

mod view;

use crate::dashboard::{
    arrangement::Column,
    drawing::{beneath, list_row_at, list_rows, page},
    news::{Answer, Ask},
    palette::quoted,
    pane::{Cx, Pane},
    rows::{Cursor, Detail, Pick},
};
use cowboy_devnet::types::{AddressText, JobSummary, MruRecord, Runner};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};
use std::cmp::Reverse;

/// The key of a record: a submitter, and a kind of job.
pub type Key = (AddressText, String);

/// The key of a record.
pub fn key_of(record: &MruRecord) -> Key {
    (record.submitter, record.kind.clone())
}

fn keys(records: &[&MruRecord]) -> Vec<Key> {
    records.iter().map(|record| key_of(record)).collect()
}

/// An opened record, with the registry's entry of its runner.
pub type OpenedRecord = Detail<Key, Runner>;

#[derive(Debug, Default)]
pub struct Mru {
    /// Every record: the live ones first, the newest of them first; `None` before the first answer.
    pub records: Option<Vec<MruRecord>>,
    jobs: Vec<JobSummary>,
    pub refused: Option<String>,
    pick: Pick<Key>,
    pub live_only: bool,
    pub opened: Option<OpenedRecord>,
    /// The record under the cursor, which is shown below the list if there is room.
    preview: Option<OpenedRecord>,
}

impl Mru {
    pub fn accepted<'a>(&'a self, cx: &Cx<'_>) -> Vec<&'a MruRecord> {
        let all = self.records.iter().flatten();
        let accepted = all.filter(|record| record.live || !self.live_only).filter(|record| {
            cx.filter.accepts(&format!(
                "{} {} {} {} {} {}",
                record.submitter_name.as_deref().unwrap_or_default(),
                record.submitter,
                record.kind,
                record.runner,
                record.runner_address,
                if record.live { "live" } else { "expired" },
            ))
        });
        let mut accepted: Vec<_> = accepted.collect();
        cx.arrangement.sort(&mut accepted, |record, column| view::key(record, column, cx));
        accepted
    }

    pub fn cursor(&self, accepted: &[&MruRecord]) -> Cursor {
        self.pick.cursor(&keys(accepted))
    }

    pub fn record(&self, key: &Key) -> Option<&MruRecord> {
        self.records.iter().flatten().find(|record| key_of(record) == *key)
    }

    /// The record under the cursor, if its runner is known.
    pub fn preview(&self, cx: &Cx<'_>) -> Option<&OpenedRecord> {
        let chosen = self.chosen(cx).map(key_of)?;
        self.preview.as_ref().filter(|preview| preview.key == chosen)
    }

    /// The opened record, or the one under the cursor, if it is about this runner.
    fn shown(&mut self, runner: &str, chosen: Option<Key>) -> Option<&mut OpenedRecord> {
        let opened = self.opened.as_ref().map(|opened| opened.key.clone());
        let key = opened.or(chosen)?;
        self.record(&key).filter(|record| record.runner == runner)?;
        if self.opened.is_some() {
            return self.opened.as_mut();
        }
        if self.preview.as_ref().is_none_or(|preview| preview.key != key) {
            self.preview = Some(Detail::new(key));
        }
        self.preview.as_mut()
    }

    /// The known jobs with the submitter and kind of a record, newest first.
    pub fn jobs(&self, key: &Key) -> impl Iterator<Item = &JobSummary> {
        self.jobs.iter().filter(move |job| job.submitter == key.0 && job.kind == key.1)
    }

    /// The record under the cursor.
    pub fn chosen<'a>(&'a self, cx: &Cx<'_>) -> Option<&'a MruRecord> {
        let accepted = self.accepted(cx);
        accepted.get(self.cursor(&accepted).of(accepted.len())).copied()
    }
}

impl Pane for Mru {
    fn name(&self) -> &'static str {
        "mru"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = vec![Ask::Mru];
        let record = match &self.opened {
            Some(opened) => self.record(&opened.key),
            None if beneath(cx.area, self.accepted(cx).len()).1.height > 0 => self.chosen(cx),
            None => None,
        };
        if let Some(record) = record {
            wants.extend([Ask::Runner(record.runner.clone()), Ask::Jobs]);
        }
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (_, Answer::Mru(records)) => {
                let mut records = records.clone();
                records.sort_by_key(|record| {
                    (!record.live, Reverse(record.set_at), record.submitter, record.kind.clone())
                });
                self.records = Some(records);
                self.refused = None;
            }
            (_, Answer::Jobs(jobs)) => self.jobs = jobs.clone(),
            (Ask::Runner(name), Answer::Runner(runner)) => {
                let chosen = self.chosen(cx).map(key_of);
                if let Some(opened) = self.shown(name, chosen) {
                    opened.hear(runner.clone());
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Mru => self.refused = Some(reason.to_owned()),
            Ask::Runner(name) => {
                let previewed = self.preview.as_ref().map(|preview| preview.key.clone());
                if let Some(opened) = self.shown(name, previewed) {
                    opened.refuse(reason);
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        if let Some(opened) = &self.opened {
            let fit = page::rows(cx.area);
            let places = view::page(self, opened, cx).places(fit);
            return self.opened.as_mut().is_some_and(|opened| opened.first.key(key, places, fit));
        }
        if key.code == KeyCode::Char('a') {
            self.live_only = !self.live_only;
            return true;
        }
        let rows = keys(&self.accepted(cx));
        let (list, _) = beneath(cx.area, rows.len());
        self.pick.key(key, &rows, list_rows(list))
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let rows = keys(&self.accepted(cx));
        let (list, _) = beneath(cx.area, rows.len());
        let line = list_row_at(list, at).filter(|_| self.opened.is_none());
        line.is_some_and(|line| self.pick.click(line, &rows, list_rows(list)))
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        if self.opened.is_some() {
            return false;
        }
        let Some(key) = self.chosen(cx).map(key_of) else { return false };
        self.pick.go(key.clone());
        let preview = self.preview.take().filter(|preview| preview.key == key);
        self.opened = Some(preview.unwrap_or_else(|| Detail::new(key)));
        true
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn columns(&self) -> &'static [Column] {
        if self.opened.is_some() { &[] } else { &view::COLUMNS }
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        let chosen = match &self.opened {
            Some(opened) => self.record(&opened.key),
            None => self.chosen(cx),
        };
        Some(match chosen {
            Some(record) => {
                let address = record.submitter.to_string();
                let submitter = record.submitter_name.as_deref().unwrap_or(&address);
                format!("cowboyctl mru show {} {}", quoted(submitter), record.kind)
            }
            None => "cowboyctl mru ls".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move"),
            ("a", "only records that count now, or those that have expired, too"),
            ("enter", "a record: its runner as it is now, and the jobs that it is about"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
