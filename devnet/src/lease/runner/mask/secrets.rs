//! The secrets of a job, as an automaton after Aho and Corasick: its state is the longest beginning
//! of a secret that the bytes so far end with.

use std::{collections::VecDeque, fmt};

/// Bytes of the shortest line of a secret of several lines that is one by itself: without each `}`
/// no log could be read.
const MIN_LINE: usize = 4;

/// A state of [`Secrets`]; [`ROOT`] is that of no beginning.
type State = u32;
const ROOT: State = 0;

/// Texts that a log must not show.
pub(in super::super) struct Secrets {
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
    /// The length of the longest secret that it ends with, or 0.
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
    pub(in super::super) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
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

    /// Whether there is nothing to hide.
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
}

/// How far one reading of a stream has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    state: State,
    /// Where, in the stream, each byte of the state's beginning was read from.
    starts: VecDeque<usize>,
}

/// Bytes that were read, and where the first of them was read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) length: usize,
    pub(super) start: usize,
}

impl Cursor {
    /// Takes a byte that was read from `start` on: the longest secret that ends with it.
    #[inline]
    pub(super) fn step(&mut self, secrets: &Secrets, byte: u8, start: usize) -> Option<Run> {
        if self.state == ROOT && secrets.first[usize::from(byte)] == ROOT {
            return None;
        }
        self.go_on(secrets, byte, start)
    }

    fn go_on(&mut self, secrets: &Secrets, byte: u8, start: usize) -> Option<Run> {
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

    /// The longest beginning of a secret that goes on.
    pub(super) fn open(&self, secrets: &Secrets) -> Option<Run> {
        let node = &secrets.nodes[self.state as usize];
        self.run(node.depth, node.open)
    }

    fn run(&self, depth: usize, length: usize) -> Option<Run> {
        (length > 0).then(|| Run { length, start: self.starts[depth - length] })
    }

    /// Whether no secret may have begun.
    pub(super) fn is_fresh(&self) -> bool {
        self.state == ROOT
    }

    /// Begins again.
    pub(super) fn reset(&mut self) {
        self.state = ROOT;
        self.starts.clear();
    }
}
