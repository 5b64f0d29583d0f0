//! A job's output on its way into the log: masked, with the runner's own lines in between. Progress
//! lines are recorded.

use super::{
    log::Log,
    mask::{Masker, Secrets},
};
use crate::messages::Progress;
use cowboy_host::process::{TaskProgress, shown};
use std::sync::{Arc, Mutex, PoisonError};

/// How much of a step's text is shown, in bytes.
pub(super) const MAX_STEP: usize = 256;
/// How much of a line is searched for progress, in bytes.
const MAX_LINE: usize = 1024;
const OWN: &str = "[runner] ";

#[derive(Debug)]
pub(super) struct Position {
    steps: u32,
    state: Mutex<Progress>,
}

impl Position {
    pub(super) fn new(steps: usize) -> Self {
        let state = Progress { percent: Some(0), ..Progress::default() };
        Self { steps: u32::try_from(steps).unwrap_or(u32::MAX).max(1), state: Mutex::new(state) }
    }

    pub(super) fn get(&self) -> Progress {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The percentage of the job when `of_step` percent of a step is done.
    fn percent(&self, step: u32, of_step: u8) -> u8 {
        let hundredths = u64::from(step) * 100 + u64::from(of_step);
        u8::try_from(hundredths / u64::from(self.steps)).unwrap_or(100).min(100)
    }

    fn begin(&self, step: u32, line: &str) {
        self.set(|state| {
            *state = Progress {
                percent: Some(self.percent(step, 0)),
                current_step: Some(line.to_owned()),
                step_index: Some(step),
                message: None,
            };
        });
    }

    fn told(&self, percent: u8, words: Option<String>) {
        self.set(|state| {
            state.percent = Some(self.percent(state.step_index.unwrap_or(0), percent));
            state.message = words;
        });
    }

    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// `steps` steps are done; `message` describes what follows.
    pub(super) fn done(&self, steps: u32, message: &str) {
        self.set(|state| {
            state.percent = Some(self.percent(steps, 0));
            state.message = Some(message.to_owned());
        });
    }
}

pub(super) struct Output<'a> {
    log: &'a Log,
    position: &'a Position,
    secrets: Arc<Secrets>,
    masker: Masker,
    masked: Vec<u8>,
    line: Vec<u8>,
    /// Whether nothing was written since the last line's end.
    fresh: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(log: &'a Log, position: &'a Position, secrets: Arc<Secrets>) -> Self {
        let masker = Masker::new(Arc::clone(&secrets));
        Self { log, position, secrets, masker, masked: Vec::new(), line: Vec::new(), fresh: true }
    }

    pub(super) fn mask(&self, text: &str) -> String {
        self.secrets.mask(text)
    }

    pub(super) fn tells(&self, text: &str) -> bool {
        self.secrets.are_in(text)
    }

    /// The first nonempty line of a step: masked, shortened, without control characters.
    pub(super) fn first_line(&self, step: &str) -> String {
        let masked = self.mask(step);
        let line = masked.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let mut line = shown(line.as_bytes());
        line.truncate(line.floor_char_boundary(MAX_STEP));
        line
    }

    pub(super) async fn begin(&mut self, index: u32, line: &str) {
        self.position.begin(index, line);
        self.own(format!("$ {line}")).await;
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.masker.push(bytes, &mut self.masked);
        self.pass().await;
    }

    pub(super) async fn end(&mut self) {
        self.masker.flush(&mut self.masked);
        self.pass().await;
    }

    pub(super) async fn note(&mut self, text: &str) {
        let text = self.mask(text);
        self.own(format!("{OWN}{}", shown(text.as_bytes()))).await;
    }

    async fn own(&mut self, line: String) {
        let before = if self.fresh { "" } else { "\n" };
        self.fresh = true;
        self.line.clear();
        self.log.push(format!("{before}{line}\n").as_bytes()).await;
    }

    async fn pass(&mut self) {
        for piece in self.masked.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.fresh = piece.ends_with(b"\n");
            if self.fresh {
                if let Some(told) = TaskProgress::reported(&shown(&self.line)) {
                    self.position.told(told.percent, told.detail);
                }
                self.line.clear();
            }
        }
        // Taken out first, so that it is cleared even if the wait for room is dropped.
        let masked = std::mem::take(&mut self.masked);
        self.log.push(&masked).await;
    }
}
