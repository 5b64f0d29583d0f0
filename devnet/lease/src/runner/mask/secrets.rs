//! The secrets of a job as an Aho-Corasick automaton: its state is the longest prefix of a secret
//! with which the bytes so far end.

use std::{collections::VecDeque, fmt};

/// Shortest line of a secret with several lines that counts as a secret by itself, in bytes: if
/// every `}` did, no log would be readable.
const MIN_LINE: usize = 4;

/// A state of [`Secrets`]; [`ROOT`] is the empty prefix.
type PrefixState = u32;
const ROOT: PrefixState = 0;

pub(in super::super) struct Secrets {
    nodes: Vec<Node>,
    /// The state for each first byte.
    first: [PrefixState; 256],
}

#[derive(Default)]
struct Node {
    /// The states after each next byte, sorted by byte.
    next: Vec<(u8, PrefixState)>,
    /// The longest other prefix with which this one ends.
    shorter: PrefixState,
    depth: usize,
    /// Length of the longest prefix with which this one ends and that goes on, possibly itself.
    open: usize,
    /// Length of the longest secret with which this prefix ends, or 0.
    found: usize,
}

/// Shows only the number of prefixes.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.nodes.len() - 1)
    }
}

impl Secrets {
    /// These values, and each line of those with several lines.
    pub(in super::super) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets = Self { nodes: vec![Node::default()], first: [ROOT; 256] };
        for value in values {
            secrets.add(value);
            // The value after a shell's `$(…)`, which removes trailing line feeds.
            secrets.add(value.trim_end_matches(['\r', '\n']));
            if value.contains('\n') {
                let lines = value.split('\n').map(|line| line.trim_end_matches('\r'));
                lines.filter(|line| line.len() >= MIN_LINE).for_each(|line| secrets.add(line));
            }
        }
        secrets.connect();
        secrets
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    fn add(&mut self, secret: &str) {
        let mut at = ROOT;
        for (depth, byte) in (1..).zip(secret.bytes()) {
            let edges = &self.nodes[at as usize].next;
            at = match edges.binary_search_by_key(&byte, |(edge, _)| *edge) {
                Ok(found) => edges[found].1,
                Err(place) => {
                    let new = PrefixState::try_from(self.nodes.len())
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

    /// Links each prefix to its longest suffix. Those of shorter prefixes are known first.
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

    fn step(&self, mut at: PrefixState, byte: u8) -> PrefixState {
        while at != ROOT {
            let node = &self.nodes[at as usize];
            match node.next.binary_search_by_key(&byte, |(edge, _)| *edge) {
                Ok(found) => return node.next[found].1,
                Err(_) => at = node.shorter,
            }
        }
        self.first[usize::from(byte)]
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    state: PrefixState,
    /// The offset from which each byte of the state's prefix was read.
    starts: VecDeque<usize>,
}

/// A range of bytes that were read: their number, and the offset of the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteRun {
    pub(super) length: usize,
    pub(super) start: usize,
}

impl Cursor {
    /// Takes a byte read at offset `start`. Returns the longest secret that ends with it.
    #[inline]
    pub(super) fn step(&mut self, secrets: &Secrets, byte: u8, start: usize) -> Option<ByteRun> {
        if self.state == ROOT && secrets.first[usize::from(byte)] == ROOT {
            return None;
        }
        self.go_on(secrets, byte, start)
    }

    fn go_on(&mut self, secrets: &Secrets, byte: u8, start: usize) -> Option<ByteRun> {
        self.state = secrets.step(self.state, byte);
        if self.state == ROOT {
            self.starts.clear();
            return None;
        }
        self.starts.push_back(start);
        let node = &secrets.nodes[self.state as usize];
        self.starts.drain(..self.starts.len() - node.depth);
        self.run(node.depth, node.found)
    }

    pub(super) fn open(&self, secrets: &Secrets) -> Option<ByteRun> {
        let node = &secrets.nodes[self.state as usize];
        self.run(node.depth, node.open)
    }

    fn run(&self, depth: usize, length: usize) -> Option<ByteRun> {
        (length > 0).then(|| ByteRun { length, start: self.starts[depth - length] })
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.state == ROOT
    }

    pub(super) fn reset(&mut self) {
        self.state = ROOT;
        self.starts.clear();
    }
}
