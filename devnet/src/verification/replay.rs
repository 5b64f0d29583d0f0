//! A chain executed again from genesis, from blocks that anybody may have served.
//!
//! Upon the evidence of block H, the one after the last:
//! 1. Its bytes have to be a block of that height, a child of the block before. It waits.
//! 2. It and those that wait before it are final once a certificate of it is valid: the one served,
//!    or one that a later block embeds. Nothing is executed before that, so that a node that lies
//!    decides neither what is executed nor, by transactions of its own, who validates.
//! 3. A final block is held to the rules that consensus holds it to, but for the bounds of its
//!    transactions, and its embedded certificates are verified. Then it is executed.
//!
//! A certificate is valid if a quorum of the committee of its block's epoch signed it. That of
//! epoch e follows from the state after the last block of e − 1: blocks of later epochs wait.
//!
//! What is said beside the blocks (hash, state root, a certificate) is compared and reported as a
//! [`Fault`] that ends nothing; a block that does not hold ends the replay.

use super::fault::{Fault, FaultKind};
use crate::{
    api::types::RawBlock,
    consensus::{certificate, scheme::Committee},
};
use cowboy_engine::{
    chain::{
        Block, Certificate, Derived, DrawRecord, Execution, Genesis, GenesisError, Header, State,
        block::{MAX_OPEN, certify},
        execute,
    },
    primitives::{Hash, Height, codec::from_slice},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Blocks that wait for a certificate at most. A chain under votes leaves a few, none for long.
const MAX_WAITING: usize = 1_024;
/// Bytes of them at most.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Certificates remembered as verified: those of a block and its candidates come twice.
const REMEMBERED: usize = 2 * (MAX_OPEN + 1);
/// Committees remembered: certificates are of this epoch or the one before.
const COMMITTEES: usize = 4;
/// Faults of what was said beside blocks that are kept.
pub const MAX_FAULTS: usize = 64;

/// A final block, executed.
#[derive(Debug)]
pub struct Step {
    /// The block.
    pub block: Block,
    /// Its hash.
    pub hash: Hash,
    /// The root of the state after it.
    pub root: Hash,
    /// The state after it.
    pub state: State,
    /// The P(h) that its certificates made known.
    pub derived: Vec<Derived>,
    /// Its draws.
    pub draws: Vec<DrawRecord>,
}

/// A chain executed from genesis on.
#[derive(Debug)]
pub struct Replay {
    state: State,
    /// State roots after the newest blocks, newest last: those that a child can name.
    roots: VecDeque<(Height, Hash)>,
    /// Linked to the state's head, and not shown to be final.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    committees: BTreeMap<u64, Arc<Committee>>,
    verified: VecDeque<Certificate>,
    faults: Vec<Fault>,
    signatures: u64,
}

/// A block that is not shown to be final.
#[derive(Debug)]
struct Waiting {
    block: Block,
    hash: Hash,
    size: usize,
    /// The state root that the node says.
    said_root: Hash,
    /// Certificates of it that have not been verified, and whether the node served it beside the
    /// block.
    certificates: Vec<(Certificate, bool)>,
}

impl Replay {
    /// The chain before its first block.
    pub fn new(genesis: &Genesis) -> Result<Self, GenesisError> {
        let state = genesis.state()?;
        let roots = VecDeque::from([(Height::GENESIS, state.root())]);
        Ok(Self {
            state,
            roots,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            committees: BTreeMap::new(),
            verified: VecDeque::new(),
            faults: Vec::new(),
            signatures: 0,
        })
    }

    /// The state after the newest block that is final and executed.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The height that the next evidence has to be of.
    pub fn wants(&self) -> Height {
        self.last().0.next()
    }

    /// What was said beside the blocks and does not hold, the first [`MAX_FAULTS`].
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Valid signatures of votes so far, each certificate's once.
    pub const fn signatures(&self) -> u64 {
        self.signatures
    }

    /// Takes the evidence of the next block; yields the blocks that it shows to be final, executed.
    /// After an error the replay goes no further.
    pub fn push(&mut self, said: &RawBlock) -> Result<Vec<Step>, Fault> {
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

    /// The newest block that is linked, and its hash.
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

    /// The certificate served beside the block with `hash`, where it is one of that block.
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

    /// Executes what is final of the blocks that wait.
    fn execute_final(&mut self) -> Result<Vec<Step>, Fault> {
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

    /// The place of the newest block that waits, has a valid certificate and is of an epoch whose
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
                    Ok(()) => return Ok(Some(place)),
                    Err(error @ FaultKind::Committee(_)) => {
                        return Err(Fault { height, kind: error });
                    }
                    Err(error) if served => self.note(height, error),
                    // The block that embeds it is refused when its turn comes.
                    Err(_) => {}
                }
            }
        }
        Ok(None)
    }

    /// Whether a certificate proves its block, of this epoch, final.
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

    /// The committee of an epoch, which has to be known.
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

    /// Executes a final block, the child of the state's head.
    fn execute(&mut self, waiting: Waiting) -> Result<Step, FaultKind> {
        let Waiting { block, hash, said_root, certificates, .. } = waiting;
        let height = block.header.height;
        self.check(&block)?;
        let Execution { state, derived, draws, .. } = execute(&self.state, &block)?;
        let root = state.root();
        if said_root != root {
            self.note(height, FaultKind::StateRoot { said: said_root, expected: root });
        }
        // Of a block that a later one showed to be final: its own certificate counts, too.
        for (certificate, _) in certificates.iter().filter(|(_, served)| *served) {
            if let Err(error) = self.verify(certificate, block.header.round.epoch) {
                self.note(height, error);
            }
        }
        self.roots.push_back((height, root));
        if self.roots.len() > MAX_OPEN + 2 {
            self.roots.pop_front();
        }
        self.state = state.clone();
        Ok(Step { block, hash, root, state, derived, draws })
    }

    /// The rules of blocks: what follows from the parent's state, and the embedded certificates.
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

    /// The state that a header commits to: that of the newest certified ancestor.
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
