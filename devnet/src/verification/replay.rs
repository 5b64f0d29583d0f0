//! Executes a chain again from genesis, from blocks of an untrusted source.
//!
//! The replay takes the evidence of one block H after the other:
//! 1. The bytes must be a block of that height and a child of the previous block. The block then
//!    waits.
//! 2. The block and all that wait before it are final once a certificate of it is valid: the served
//!    one, or one that a later block embeds. Nothing is executed before that, so a lying node
//!    decides neither what is executed nor, by its own transactions, who validates.
//! 3. A final block must satisfy the rules of consensus, except for the bounds of its transactions,
//!    and its embedded certificates are verified. Then it is executed.
//!
//! A certificate is valid if a quorum of the committee of its block's epoch signed it. The
//! committee of epoch e follows from the state after the last block of e − 1, so blocks of later
//! epochs wait.
//!
//! Statements that come with the blocks (hash, state root, a certificate) are compared. A wrong one
//! is reported as a [`Fault`] and does not end the replay; an invalid block does.

use super::fault::{Fault, FaultKind};
use crate::{
    consensus::{certificate, scheme::Committee},
    machines::{self, borrowed},
    types::RawBlock,
};
use cowboy_engine::{
    chain::{
        Block, Certificate, Execution, Genesis, GenesisError, Header, State,
        block::{MAX_OPEN, certify},
        execute_on,
    },
    primitives::{Hash, Height, codec::from_slice},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The maximum number of blocks that wait for a certificate. A chain under votes leaves a few
/// briefly.
const MAX_WAITING: usize = 1_024;
/// The maximum total size of those blocks.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Number of certificates remembered as verified: those of a block and its candidates come twice.
const REMEMBERED: usize = 2 * (MAX_OPEN + 1);
/// Number of committees remembered: certificates are of this epoch or the previous one.
const COMMITTEES: usize = 4;
/// Number of newest blocks whose state roots a child can name.
pub const ROOTS: usize = MAX_OPEN + 2;
/// The maximum number of faults recorded for statements that come with blocks.
pub const MAX_FAULTS: usize = 64;

/// A final block, executed.
#[derive(Debug)]
pub struct ReplayedBlock {
    pub block: Block,
    pub hash: Hash,
    pub root: Hash,
    pub execution: Execution,
    /// A valid certificate of it; `None` if only a later block's proves it final.
    pub certificate: Option<Certificate>,
}

/// A chain executed from genesis on.
#[derive(Debug)]
pub struct Replay {
    state: State,
    /// State roots after the newest blocks, newest last: the ones that a child can name.
    roots: VecDeque<(Height, Hash)>,
    /// Linked to the state's head but not yet final.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    committees: BTreeMap<u64, Arc<Committee>>,
    verified: VecDeque<Certificate>,
    faults: Vec<Fault>,
    signatures: u64,
}

/// A block that is not known to be final.
#[derive(Debug)]
struct Waiting {
    block: Block,
    hash: Hash,
    size: usize,
    said_root: Hash,
    /// Its unverified certificates, each with a flag that tells whether the node served it with the
    /// block.
    certificates: Vec<(Certificate, bool)>,
}

impl Replay {
    pub fn new(genesis: &Genesis) -> Result<Self, GenesisError> {
        let state = genesis.state()?;
        let root = state.root();
        Ok(Self::after(state, [(Height::GENESIS, root)]))
    }

    /// Goes on after a trusted state. `roots` are those of the newest [`ROOTS`] blocks or of all,
    /// the state's own last.
    pub fn after(state: State, roots: impl IntoIterator<Item = (Height, Hash)>) -> Self {
        Self {
            state,
            roots: roots.into_iter().collect(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            committees: BTreeMap::new(),
            verified: VecDeque::new(),
            faults: Vec::new(),
            signatures: 0,
        }
    }

    /// The state after the newest final block.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The height of the next evidence to pass to [`Self::push`].
    pub fn wants(&self) -> Height {
        self.last().0.next()
    }

    /// Wrong statements that came with the blocks, the first [`MAX_FAULTS`].
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Number of valid vote signatures so far, counting each certificate once.
    pub const fn signatures(&self) -> u64 {
        self.signatures
    }

    /// Takes the evidence of the next block; returns the blocks that it proves final, executed.
    /// After an error the replay must not be used.
    pub fn push(&mut self, said: &RawBlock) -> Result<Vec<ReplayedBlock>, Fault> {
        let height = self.wants();
        let fault = |kind| Fault { height, kind };
        let bytes = &said.block_bytes.0.0;
        let block = Block::from_bytes(bytes).map_err(|error| fault(FaultKind::Form(error)))?;
        if block.header.height != height {
            return Err(fault(FaultKind::Height(block.header.height)));
        }
        let (got, expected) = (block.header.parent, self.last().1);
        if got != expected {
            return Err(fault(FaultKind::Parent { got, expected }));
        }
        let epoch = self.state.epoch_at(height);
        if block.header.round.epoch != epoch {
            let got = block.header.round.epoch;
            return Err(fault(FaultKind::Epoch { got, expected: epoch }));
        }
        let hash = block.hash();
        if *said.hash != hash {
            self.note(height, FaultKind::Hash { said: *said.hash, got: hash });
        }
        for embedded in block.certificates.iter().take(MAX_OPEN + 1) {
            if let Some(certified) = self.waiting.iter_mut().find(|w| w.hash == embedded.block) {
                certified.certificates.push((embedded.clone(), false));
            }
        }
        let size = bytes.len();
        let certificates = self.served(height, hash, said);
        self.waiting_bytes = self.waiting_bytes.saturating_add(size);
        self.waiting.push_back(Waiting {
            block,
            hash,
            size,
            said_root: *said.state_root,
            certificates,
        });
        let steps = self.execute_final()?;
        if self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES {
            return Err(self.unproved().expect("there are some"));
        }
        Ok(steps)
    }

    /// The oldest block that waits for a certificate, as a fault.
    pub fn unproved(&self) -> Option<Fault> {
        let first = self.waiting.front()?;
        let kind = FaultKind::Unproved(self.waiting.len() - 1);
        Some(Fault { height: first.block.header.height, kind })
    }

    /// The height and hash of the newest linked block.
    fn last(&self) -> (Height, Hash) {
        match self.waiting.back() {
            Some(waiting) => (waiting.block.header.height, waiting.hash),
            None => (self.state.height(), self.state.head_hash()),
        }
    }

    fn note(&mut self, height: Height, kind: FaultKind) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { height, kind });
        }
    }

    /// The certificate served with the block that has `hash`, if it certifies that block.
    fn served(&mut self, height: Height, hash: Hash, said: &RawBlock) -> Vec<(Certificate, bool)> {
        let Some(bytes) = &said.certificate_bytes else { return Vec::new() };
        match from_slice::<Certificate>(&bytes.0.0) {
            Ok(certificate) if certificate.block == hash => vec![(certificate, true)],
            Ok(certificate) => {
                self.note(height, FaultKind::CertificateBlock(certificate.block));
                Vec::new()
            }
            Err(error) => {
                self.note(height, FaultKind::CertificateForm(error));
                Vec::new()
            }
        }
    }

    fn execute_final(&mut self) -> Result<Vec<ReplayedBlock>, Fault> {
        let mut steps = Vec::new();
        while let Some(last) = self.newest_final()? {
            for _ in 0..=last {
                let waiting = self.waiting.pop_front().expect("a block that waits");
                self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.size);
                let height = waiting.block.header.height;
                let step = self.execute(waiting).map_err(|kind| Fault { height, kind })?;
                steps.push(step);
            }
        }
        Ok(steps)
    }

    /// The index of the newest waiting block that has a valid certificate and whose epoch's
    /// committee is known.
    fn newest_final(&mut self) -> Result<Option<usize>, Fault> {
        let known = self.state.epoch_at(self.state.height().next());
        for place in (0..self.waiting.len()).rev() {
            let header = &self.waiting[place].block.header;
            let (height, epoch) = (header.height, header.round.epoch);
            if epoch > known {
                continue;
            }
            for (certificate, served) in std::mem::take(&mut self.waiting[place].certificates) {
                match self.verify(&certificate, epoch) {
                    Ok(()) => {
                        self.waiting[place].certificates.push((certificate, served));
                        return Ok(Some(place));
                    }
                    Err(error @ FaultKind::Committee(_)) => {
                        return Err(Fault { height, kind: error });
                    }
                    Err(error) if served => self.note(height, error),
                    // The block that embeds it is refused in its turn.
                    Err(_) => {}
                }
            }
        }
        Ok(None)
    }

    /// Fails unless a certificate proves its block, which is of this epoch, final.
    fn verify(&mut self, certificate: &Certificate, epoch: u64) -> Result<(), FaultKind> {
        let block = certificate.block;
        if certificate.round.epoch != epoch {
            let got = certificate.round.epoch;
            return Err(FaultKind::CertificateEpoch { block, got, expected: epoch });
        }
        if self.verified.contains(certificate) {
            return Ok(());
        }
        let committee = self.committee(epoch)?;
        certificate::verify(&committee, certificate)
            .map_err(|error| FaultKind::Certificate { block, error })?;
        self.signatures += certificate.votes.len() as u64;
        self.verified.push_back(certificate.clone());
        if self.verified.len() > REMEMBERED {
            self.verified.pop_front();
        }
        Ok(())
    }

    fn committee(&mut self, epoch: u64) -> Result<Arc<Committee>, FaultKind> {
        if let Some(known) = self.committees.get(&epoch) {
            return Ok(known.clone());
        }
        let validators = self.state.validators_in(epoch);
        let committee = Arc::new(Committee::of(self.state.chain_id(), validators)?);
        self.committees.insert(epoch, committee.clone());
        if self.committees.len() > COMMITTEES {
            self.committees.pop_first();
        }
        Ok(committee)
    }

    /// Executes a final block, which is the child of the state's head.
    fn execute(&mut self, waiting: Waiting) -> Result<ReplayedBlock, FaultKind> {
        let Waiting { block, hash, said_root, certificates, .. } = waiting;
        let height = block.header.height;
        self.check(&block)?;
        let machine = machines::of(self.state.params())
            .map_err(|error| FaultKind::Machine(error.to_string()))?;
        let execution = execute_on(borrowed(&machine), &self.state, &block)?;
        let root = execution.state.root();
        if said_root != root {
            self.note(height, FaultKind::StateRoot { said: said_root, expected: root });
        }
        // If a later block showed this one to be final, the served certificate still counts.
        let mut proof = None;
        for (certificate, served) in certificates {
            if !served && !self.verified.contains(&certificate) {
                continue;
            }
            match self.verify(&certificate, block.header.round.epoch) {
                Ok(()) => proof = Some(certificate),
                Err(error) => self.note(height, error),
            }
        }
        self.roots.push_back((height, root));
        if self.roots.len() > ROOTS {
            self.roots.pop_front();
        }
        self.state = execution.state.clone();
        Ok(ReplayedBlock { block, hash, root, execution, certificate: proof })
    }

    /// Checks the rules of blocks: header fields derived from the parent's state, and embedded
    /// certificates.
    fn check(&mut self, block: &Block) -> Result<(), FaultKind> {
        let (header, above) = (&block.header, self.state.head().clone());
        let validators = self.state.validators_in(header.round.epoch);
        if !validators.iter().any(|v| v.consensus_key == header.proposer) {
            return Err(FaultKind::Proposer);
        }
        if header.timestamp_ms <= above.timestamp_ms {
            return Err(FaultKind::Timestamp);
        }
        let expected = self.state.childs_subset_epoch();
        if header.subset_epoch != expected {
            return Err(FaultKind::SubsetEpoch { got: header.subset_epoch, expected });
        }
        let candidates = above.candidates(self.state.head_hash());
        let (certified, open) = certify(&candidates, block.certificates.iter().map(|c| c.block))?;
        if header.open != open {
            return Err(FaultKind::Open);
        }
        self.check_executed(header, &above, certified.last().copied())?;
        for (height, certificate) in certified.into_iter().zip(&block.certificates) {
            self.verify(certificate, self.state.epoch_at(height))?;
        }
        Ok(())
    }

    /// Checks the state that a header commits to: the state of the newest certified ancestor.
    fn check_executed(
        &self,
        header: &Header,
        above: &Header,
        certified: Option<Height>,
    ) -> Result<(), FaultKind> {
        let newest = certified.filter(|height| *height > above.executed.height);
        let expected = newest.unwrap_or(above.executed.height);
        let (of, got) = (header.executed.height, header.executed.state_root);
        if of != expected {
            return Err(FaultKind::Executed { got: of, expected });
        }
        let root = match newest {
            None => above.executed.state_root,
            Some(height) => {
                let found = self.roots.iter().find(|(at, _)| *at == height);
                found.expect("a candidate is one of the newest blocks").1
            }
        };
        if got != root {
            return Err(FaultKind::Committed { of, got, expected: root });
        }
        Ok(())
    }
}
