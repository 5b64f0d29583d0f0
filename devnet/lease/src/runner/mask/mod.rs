//! Removes secrets from a job's output, wherever the output is cut into pieces.
//!
//! [`Masker`] replaces each secret with `***`, and overlapping ones with a single `***`. It finds
//! secrets in plain text and in the forms in which programs write them: in URLs, JSON, base64 and
//! hexadecimal digits ([`readings`] has the rules). Bytes that may be the beginning of a secret are
//! held back, at most as many as the longest secret takes in the longest of these forms.
//!
//! The time is linear in the output, the memory in the secrets.

mod readings;
mod secrets;
#[cfg(test)]
mod tests;

pub(super) use secrets::Secrets;

use readings::{FoundSecrets, Readings};
use std::sync::Arc;

pub(super) const MASK: &[u8] = b"***";

impl Secrets {
    pub(super) fn mask(self: &Arc<Self>, text: &str) -> String {
        let mut masker = Masker::new(Arc::clone(self));
        let mut masked = Vec::with_capacity(text.len());
        masker.push(text.as_bytes(), &mut masked);
        masker.flush(&mut masked);
        // Secrets consist of whole characters, and so does the text between them.
        String::from_utf8_lossy(&masked).into_owned()
    }

    pub(super) fn are_in(self: &Arc<Self>, text: &str) -> bool {
        self.mask(text) != text
    }
}

/// Takes bytes in pieces and passes them on without secrets.
#[derive(Debug)]
pub(super) struct Masker {
    secrets: Arc<Secrets>,
    readings: Readings,
    held: Vec<u8>,
    /// Offset of `held` in the stream; all places here are such offsets.
    passed: usize,
    /// Ranges of secrets that are not completely passed. One that begins before `passed` already
    /// has its mask.
    found: FoundSecrets,
}

impl Masker {
    pub(super) fn new(secrets: Arc<Secrets>) -> Self {
        let (readings, held, found) = (Readings::new(), Vec::new(), FoundSecrets::new());
        Self { secrets, readings, held, passed: 0, found }
    }

    /// Takes more bytes and adds to `out` those that are known not to be secret.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.secrets.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        let from = self.passed + self.held.len();
        self.held.extend_from_slice(bytes);
        let mut found = FoundSecrets::new();
        self.readings.read(&self.secrets, from, bytes, &mut found);
        self.cover(found);
        let end = from + bytes.len();
        let open = self.readings.open(&self.secrets).unwrap_or(end);
        self.pass(open.clamp(self.passed, end), out);
    }

    /// Passes on the rest, because no more bytes follow.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let mut found = FoundSecrets::new();
        self.readings.end(&self.secrets, &mut found);
        self.cover(found);
        self.pass(self.passed + self.held.len(), out);
    }

    /// Adds ranges to the known ones. If the beginning of a secret was already passed at a line's
    /// end, only its rest is covered.
    fn cover(&mut self, found: FoundSecrets) {
        let left = found.into_iter().map(|(start, end)| (start.max(self.passed), end));
        self.found.extend(left);
        self.found.sort_unstable();
        // Overlapping ranges are merged.
        self.found.dedup_by(|later, earlier| {
            let overlap = later.0 < earlier.1;
            if overlap {
                earlier.1 = earlier.1.max(later.1);
            }
            overlap
        });
    }

    /// Passes on the bytes before `safe`; no secret that is not found yet begins there.
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
            // Otherwise another range may overlap it and share its mask.
            done += usize::from(*end <= safe);
        }
        self.found.drain(..done);
        out.extend_from_slice(&self.held[self.passed - base..safe - base]);
        self.passed = safe;
        self.held.drain(..safe - base);
    }
}
