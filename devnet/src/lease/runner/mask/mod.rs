//! Secrets out of what a job writes, wherever its output is cut.
//!
//! [`Masker`] puts `***` in the place of each secret, and one in that of several that overlap. It
//! looks for secrets as they are and as programs write them: in URLs, in JSON, in base64, in
//! hexadecimal digits ([`readings`] has the rules). What it does not pass on yet may be the
//! beginning of a secret: never more than the longest takes in the longest of these forms.
//!
//! Time is linear in what is written, memory in the secrets.

mod readings;
mod secrets;
#[cfg(test)]
mod tests;

pub(super) use secrets::Secrets;

use readings::{Found, Readings};
use std::sync::Arc;

/// What replaces a secret.
pub(super) const MASK: &[u8] = b"***";

impl Secrets {
    /// A text without them.
    pub(super) fn mask(self: &Arc<Self>, text: &str) -> String {
        let mut masker = Masker::new(Arc::clone(self));
        let mut masked = Vec::with_capacity(text.len());
        masker.push(text.as_bytes(), &mut masked);
        masker.flush(&mut masked);
        // A secret is whole characters, and what is between them too.
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Whether a text has one.
    pub(super) fn are_in(self: &Arc<Self>, text: &str) -> bool {
        self.mask(text) != text
    }
}

/// Takes bytes in pieces and passes them on without secrets.
#[derive(Debug)]
pub(super) struct Masker {
    secrets: Arc<Secrets>,
    readings: Readings,
    /// Bytes that came and were not passed on yet.
    held: Vec<u8>,
    /// Where `held` begins in the stream, as every place here is meant.
    passed: usize,
    /// From where to where secrets are that were not wholly passed. One that begins before
    /// `passed` has its mask already.
    found: Found,
}

impl Masker {
    pub(super) fn new(secrets: Arc<Secrets>) -> Self {
        let (readings, held, found) = (Readings::new(), Vec::new(), Found::new());
        Self { secrets, readings, held, passed: 0, found }
    }

    /// Takes more bytes, and adds to `out` what is known to be no secret.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.secrets.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        let from = self.passed + self.held.len();
        self.held.extend_from_slice(bytes);
        let mut found = Found::new();
        self.readings.read(&self.secrets, from, bytes, &mut found);
        self.cover(found);
        let end = from + bytes.len();
        let open = self.readings.open(&self.secrets).unwrap_or(end);
        self.pass(open.clamp(self.passed, end), out);
    }

    /// Passes on the rest: nothing follows that could belong to it.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let mut found = Found::new();
        self.readings.end(&self.secrets, &mut found);
        self.cover(found);
        self.pass(self.passed + self.held.len(), out);
    }

    /// Adds places to those that are known. A beginning that a line's end had cut off was not held
    /// back: of that secret the rest is left.
    fn cover(&mut self, found: Found) {
        let left = found.into_iter().map(|(start, end)| (start.max(self.passed), end));
        self.found.extend(left);
        self.found.sort_unstable();
        // Those that overlap are one.
        self.found.dedup_by(|later, earlier| {
            let overlap = later.0 < earlier.1;
            if overlap {
                earlier.1 = earlier.1.max(later.1);
            }
            overlap
        });
    }

    /// Passes on what is before `safe`, where no secret begins that is still to be found.
    fn pass(&mut self, safe: usize, out: &mut Vec<u8>) {
        let (base, mut done) = (self.passed, 0);
        for (start, end) in &self.found {
            if *start >= safe {
                break;
            }
            if *start >= self.passed {
                out.extend_from_slice(&self.held[self.passed - base..start - base]);
                out.extend_from_slice(MASK);
            }
            self.passed = safe.min(*end);
            // Otherwise another may overlap it, and share its mask.
            done += usize::from(*end <= safe);
        }
        self.found.drain(..done);
        out.extend_from_slice(&self.held[self.passed - base..safe - base]);
        self.passed = safe;
        self.held.drain(..safe - base);
    }
}
