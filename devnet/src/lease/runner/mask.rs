//! Secrets out of what a job writes, wherever its output is cut.
//!
//! [`Masker`] puts `***` in the place of each secret: at the leftmost place where one stands the
//! longest that stands there, then on behind it. What it does not pass on yet may be the beginning
//! of a secret: always less than the longest.
//!
//! It is an automaton after Aho and Corasick. Its state is the longest beginning of a secret that
//! the bytes so far end with.

use std::{collections::VecDeque, fmt, sync::Arc};

/// What stands in the place of a secret.
pub(super) const MASK: &[u8] = b"***";

/// Bytes of the shortest line of a secret of several lines that is one by itself: without each `}`
/// no log could be read.
const MIN_LINE: usize = 4;

/// A state of [`Secrets`]; [`ROOT`] is that of no beginning.
type State = u32;
const ROOT: State = 0;

/// Texts that nobody is to see.
pub(super) struct Secrets {
    nodes: Vec<Node>,
    /// Where each byte leads from the root.
    first: [State; 256],
}

/// A beginning of a secret.
#[derive(Default)]
struct Node {
    /// By the next byte, in order.
    next: Vec<(u8, State)>,
    /// The longest beginning that this one ends with, itself apart.
    shorter: State,
    /// Its length.
    depth: usize,
    /// The length of the longest beginning that it ends with and that goes on, maybe itself.
    open: usize,
    /// The length of the longest secret that it ends with; 0: none.
    found: usize,
}

/// How many beginnings there are.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.nodes.len() - 1)
    }
}

impl Secrets {
    /// These values; of one that has several lines, each line too.
    pub(super) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets = Self { nodes: vec![Node::default()], first: [ROOT; 256] };
        for value in values {
            secrets.add(value);
            // What a shell makes of it: `$(…)` takes the line feeds off.
            secrets.add(value.trim_end_matches(['\r', '\n']));
            if value.contains('\n') {
                let lines = value.split('\n').map(|line| line.trim_end_matches('\r'));
                lines.filter(|line| line.len() >= MIN_LINE).for_each(|line| secrets.add(line));
            }
        }
        secrets.connect();
        secrets
    }

    fn add(&mut self, secret: &str) {
        let mut at = ROOT;
        for (depth, byte) in (1..).zip(secret.bytes()) {
            let edges = &self.nodes[at as usize].next;
            at = match edges.binary_search_by_key(&byte, |(edge, _)| *edge) {
                Ok(found) => edges[found].1,
                Err(place) => {
                    let new = State::try_from(self.nodes.len())
                        .expect("an environment is far shorter than 4 GiB");
                    self.nodes[at as usize].next.insert(place, (byte, new));
                    self.nodes.push(Node { depth, ..Node::default() });
                    new
                }
            };
        }
        let node = &mut self.nodes[at as usize];
        node.found = node.depth;
    }

    /// Finds, for each beginning, the shorter ones: those of the shorter are known by then.
    fn connect(&mut self) {
        let mut queue = VecDeque::new();
        for (byte, state) in self.nodes[ROOT as usize].next.clone() {
            let node = &mut self.nodes[state as usize];
            node.open = if node.next.is_empty() { 0 } else { node.depth };
            self.first[usize::from(byte)] = state;
            queue.push_back(state);
        }
        while let Some(at) = queue.pop_front() {
            let shorter = self.nodes[at as usize].shorter;
            for (byte, state) in self.nodes[at as usize].next.clone() {
                let shorter = self.step(shorter, byte);
                let Node { open, found, .. } = self.nodes[shorter as usize];
                let node = &mut self.nodes[state as usize];
                node.shorter = shorter;
                node.open = if node.next.is_empty() { open } else { node.depth };
                if node.found == 0 {
                    node.found = found;
                }
                queue.push_back(state);
            }
        }
    }

    /// The longest beginning that is there after one more byte.
    fn step(&self, mut at: State, byte: u8) -> State {
        while at != ROOT {
            let node = &self.nodes[at as usize];
            match node.next.binary_search_by_key(&byte, |(edge, _)| *edge) {
                Ok(found) => return node.next[found].1,
                Err(_) => at = node.shorter,
            }
        }
        self.first[usize::from(byte)]
    }

    /// A text without them.
    pub(super) fn mask(self: &Arc<Self>, text: &str) -> String {
        let mut masker = Masker::new(Arc::clone(self));
        let mut masked = Vec::with_capacity(text.len());
        masker.push(text.as_bytes(), &mut masked);
        masker.flush(&mut masked);
        // A secret is whole characters, and what is between them too.
        String::from_utf8_lossy(&masked).into_owned()
    }
}

/// Takes bytes in pieces and passes them on without secrets.
#[derive(Debug)]
pub(super) struct Masker {
    secrets: Arc<Secrets>,
    /// Bytes that came; places in them are counted from the first.
    held: Vec<u8>,
    /// How many were passed on, or replaced.
    passed: usize,
    /// How many the state has seen.
    seen: usize,
    state: State,
    /// The secret that is replaced, unless one turns up that began before it or is longer: from
    /// where to where it stands.
    found: Option<(usize, usize)>,
}

impl Masker {
    pub(super) fn new(secrets: Arc<Secrets>) -> Self {
        Self { secrets, held: Vec::new(), passed: 0, seen: 0, state: ROOT, found: None }
    }

    /// Takes more bytes, and adds to `out` what is known to be no secret.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        self.scan(out);
        // No secret begins before the state's beginning but the one that was found.
        let begun = self.seen - self.secrets.nodes[self.state as usize].open;
        let safe = self.found.map_or(begun, |(start, _)| start.min(begun));
        out.extend_from_slice(&self.held[self.passed..safe]);
        self.held.drain(..safe);
        self.passed = 0;
        self.seen -= safe;
        self.found = self.found.map(|(start, end)| (start - safe, end - safe));
    }

    /// Passes on the rest: nothing follows that could belong to it.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        while self.found.is_some() {
            self.replace(out);
            self.scan(out);
        }
        out.extend_from_slice(&self.held[self.passed..]);
        self.held.clear();
        (self.passed, self.seen, self.state) = (0, 0, ROOT);
    }

    /// Reads what came, and replaces secrets whose places are settled.
    fn scan(&mut self, out: &mut Vec<u8>) {
        let secrets = Arc::clone(&self.secrets);
        while let Some(&byte) = self.held.get(self.seen) {
            self.state = secrets.step(self.state, byte);
            self.seen += 1;
            let node = &secrets.nodes[self.state as usize];
            if node.found > 0 {
                let start = self.seen - node.found;
                // Of the same beginning the later one is the longer.
                if self.found.is_none_or(|(before, _)| start <= before) {
                    self.found = Some((start, self.seen));
                }
            }
            // Nothing that began at the secret's place or before it goes on.
            if self.found.is_some_and(|(start, _)| self.seen - node.open > start) {
                self.replace(out);
            }
        }
    }

    /// Passes on what is before the secret that was found, then the mask, and goes on behind it.
    fn replace(&mut self, out: &mut Vec<u8>) {
        let Some((start, end)) = self.found.take() else { return };
        out.extend_from_slice(&self.held[self.passed..start]);
        out.extend_from_slice(MASK);
        (self.passed, self.seen, self.state) = (end, end, ROOT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masker(secrets: &[String]) -> Masker {
        Masker::new(Arc::new(Secrets::new(secrets.iter().map(String::as_str))))
    }

    /// What comes of `text` in pieces that end where `cuts` say.
    fn in_pieces(secrets: &[String], text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let (mut masker, mut out, mut from) = (masker(secrets), Vec::new(), 0);
        let longest = secrets.iter().map(String::len).max().unwrap_or(0);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.sort_unstable();
        for to in cuts.into_iter().chain([text.len()]) {
            masker.push(&text[from..to], &mut out);
            assert!(masker.held.len() < longest.max(1), "{} bytes held back", masker.held.len());
            from = to;
        }
        masker.flush(&mut out);
        out
    }

    /// The rule itself, on the whole text.
    fn naive(secrets: &[String], text: &[u8]) -> Vec<u8> {
        let (mut out, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let here = secrets.iter().filter(|secret| !secret.is_empty());
            let here = here.filter(|secret| text[at..].starts_with(secret.as_bytes()));
            match here.map(String::len).max() {
                Some(length) => {
                    out.extend_from_slice(MASK);
                    at += length;
                }
                None => {
                    out.push(text[at]);
                    at += 1;
                }
            }
        }
        out
    }

    fn check(secrets: &[&str], text: &str, expected: &str) {
        let secrets: Vec<_> = secrets.iter().map(|&secret| secret.to_owned()).collect();
        let every: Vec<_> = (0..=text.len()).collect();
        for cuts in [&[][..], &every] {
            let masked = in_pieces(&secrets, text.as_bytes(), cuts);
            assert_eq!(String::from_utf8(masked).unwrap(), expected, "{secrets:?} {text:?}");
        }
    }

    #[test]
    fn the_leftmost_and_longest_secret_is_replaced() {
        check(&[], "nothing", "nothing");
        check(&[""], "nothing", "nothing");
        check(&["key"], "a key, keykey and ke", "a ***, ****** and ke");
        check(&["abc", "abcdef"], "abcdef abcde", "*** ***de");
        check(&["bc", "abcd"], "abcd abce bc", "*** a***e ***");
        check(&["abcx", "bcd"], "abcd abcx", "a*** ***");
        check(&["aa"], "aaaaa", "******a");
        check(&["grö"], "gröber größer", "***ber ***ßer");
        // What stands in a secret's place is none.
        check(&["k*", "**"], "k****", "*******");
    }

    #[test]
    fn the_lines_of_a_secret_are_secrets_if_they_are_not_short() {
        let key = "-----BEGIN-----\nMIIabcd\nend\n}\n";
        check(&[key], "MIIabcd, end and }", "***, end and }");
        check(&[key], key, "***");
        check(&[key], key.trim_end(), "***");
        check(&["one\r\nline\r\n"], "line one", "*** one");
        check(&["x\n"], "axb", "a***b");
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        let secrets = ["secret".to_owned()];
        let text = b"\xff\xfese\xffsecre\x00secret\xc3";
        assert_eq!(in_pieces(&secrets, text, &[3, 5, 17]), b"\xff\xfese\xffsecre\x00***\xc3");
    }

    #[test]
    fn what_is_told_of_secrets_is_how_many_there_are() {
        assert_eq!(format!("{:?}", Secrets::new(["ab", "ac"])), "Secrets(3)");
        assert_eq!(Arc::new(Secrets::new(["ab"])).mask("cabs, grün"), "c***s, grün");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn pieces_make_no_difference(
            secrets in prop::collection::vec("[abc]{0,5}|[ab]{6,9}", 0..6),
            text in "([abc]|\u{e9}){0,60}",
            cuts in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            let masked = in_pieces(&secrets, text.as_bytes(), &cuts);
            prop_assert_eq!(masked, naive(&secrets, text.as_bytes()));
        }

        #[test]
        fn whatever_bytes_come_no_secret_is_left(
            secret in "[abc*]{1,4}",
            text in prop::collection::vec(prop::sample::select(b"abcd*\xff\n".as_slice()), 0..80),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            let masked = in_pieces(std::slice::from_ref(&secret), &text, &cuts);
            prop_assert_eq!(masked, naive(&[secret], &text));
        }
    }
}
