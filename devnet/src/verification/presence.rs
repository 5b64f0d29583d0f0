//! Checks whether P(H) follows from the votes on block H, and whether all of a node's answers
//! agree.

use super::{
    difference::differences,
    names::Names,
    replay::ReplayedBlock,
    report::{Mismatch, MismatchKind, PresenceCheck},
    root::Root,
    walk::{VerificationError, Walk},
};
use crate::{
    api::convert::{count, evidence},
    client::{BlockAt, Client, ClientError},
    consensus::{
        certificate::{self, CertificateError},
        scheme::Committee,
    },
    types::{
        AbsentRunner, Bytes, BytesText, ErrorCode, Evidence, Presence, PresenceEvidence, Vote,
        Votes,
    },
};
use cowboy_engine::{
    chain::{Block, Certificate, Derived, State},
    presence::{Bitmap, ThresholdRule, canonical},
    primitives::{
        Height,
        codec::{from_slice, to_vec},
    },
};

/// Verifies P(H), or the newest P(h) that the node knows, and the node's answers about it.
/// `progress` is called with the newest verified block.
pub async fn check(
    client: &Client,
    root: &Root,
    at: BlockAt,
    progress: impl Fn(u64),
) -> Result<PresenceCheck, VerificationError> {
    let mut found = PresenceFindings { names: &root.names, mismatches: Vec::new() };
    let (height, said) = match (at, client.presence(at).await) {
        (BlockAt::Height(height), said) => (height, said),
        (BlockAt::Latest, Ok(said)) => (said.height, Ok(said)),
        // The record is damaged, so the height must be given.
        (BlockAt::Latest, Err(error)) => return Err(error.into()),
    };
    let at = BlockAt::Height(height);
    let said = found.answer(said)?;
    let votes = found.answer(client.votes(at).await)?;
    let evidence = found.answer(client.evidence(at).await)?;
    let mut report = PresenceCheck {
        height,
        valid: false,
        certificate_valid: false,
        recomputed: BytesText::default(),
        stored: said.as_ref().map(|said| said.bitmap.clone()).unwrap_or_default(),
        mismatches: Vec::new(),
        replayed: 0,
        trusted: root.trusted.clone(),
    };
    let mut walk = Walk::new(client, root)?;
    let stored = evidence.as_ref().and_then(|evidence| evidence.presence.as_ref());
    let told = said.as_ref().map(|said| said.embedded_in);
    let told = told.or(stored.map(|stored| stored.embedded_in)).unwrap_or(u64::MAX);
    let embedded_in = told.min(client.head().await?.height);
    match certified(&mut walk, Height::new(height), embedded_in, progress).await? {
        Ok(Some(chain)) => {
            report.recomputed = bytes(chain.bitmap());
            if let Some(evidence) = &evidence {
                report.certificate_valid = found.evidence(&chain, evidence);
            }
            match (&said, stored) {
                (Some(said), stored) => found.presence(&chain, said, stored),
                (None, Some(stored)) => {
                    report.stored = stored.bitmap.clone();
                    found.bits(&chain, stored.bit_length, &stored.bitmap);
                }
                (None, None) => {}
            }
            if let Some(votes) = &votes {
                found.votes(&chain, votes);
            }
        }
        Ok(None) => {
            let detail =
                format!("no block up to {embedded_in} embeds a certificate of block {height}");
            found.add(MismatchKind::Certificate, detail);
        }
        Err(fault) => found.add(MismatchKind::Chain, fault.to_string()),
    }
    report.valid = found.mismatches.is_empty();
    report.mismatches = found.mismatches;
    report.replayed = walk.height().get();
    Ok(report)
}

struct Certified {
    /// Block H, executed.
    block: ReplayedBlock,
    embedding: Block,
    /// The presence that the certificate made known.
    derived: Derived,
    state: State,
}

impl Certified {
    fn height(&self) -> Height {
        self.derived.height
    }

    fn certificate(&self) -> &Certificate {
        &self.embedding.certificates[self.derived.certificate]
    }

    fn bitmap(&self) -> &Bitmap {
        &self.derived.bitmap
    }

    fn epoch(&self) -> u64 {
        self.state.epoch_at(self.height())
    }
}

/// Walks until a block up to `last` embeds the certificate of block `height`. The inner error is a
/// fault of the chain.
async fn certified(
    walk: &mut Walk<'_>,
    height: Height,
    last: u64,
    progress: impl Fn(u64),
) -> Result<Result<Option<Certified>, super::Fault>, VerificationError> {
    let mut block = None;
    while walk.height().get() < last {
        let steps = match walk.next().await {
            Ok(steps) => steps,
            Err(VerificationError::Fault(fault)) => return Ok(Err(fault)),
            Err(error) => return Err(error),
        };
        for mut step in steps {
            progress(step.block.header.height.get());
            let place = step.execution.derived.iter().position(|derived| derived.height == height);
            if let Some((place, block)) = place.zip(block.take_if(|_| place.is_some())) {
                let derived = step.execution.derived.swap_remove(place);
                let ReplayedBlock { block: embedding, execution, .. } = step;
                let state = execution.state;
                return Ok(Ok(Some(Certified { block, embedding, derived, state })));
            }
            if step.block.header.height == height {
                block = Some(step);
            }
        }
    }
    Ok(Ok(None))
}

struct PresenceFindings<'a> {
    names: &'a Names,
    mismatches: Vec<Mismatch>,
}

impl PresenceFindings<'_> {
    fn add(&mut self, kind: MismatchKind, detail: String) {
        self.mismatches.push(Mismatch { kind, validator: None, runner: None, bit: None, detail });
    }

    /// Unwraps an answer; `None` when the node's stored data is damaged.
    fn answer<T>(
        &mut self,
        answer: Result<T, ClientError>,
    ) -> Result<Option<T>, VerificationError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(ClientError::Refused(detail)) if detail.code == ErrorCode::Internal => {
                if self.mismatches.iter().all(|known| known.detail != detail.message) {
                    self.add(MismatchKind::Malformed, detail.message);
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn voter(&self, chain: &Certified, index: u32, said: Option<&str>) -> String {
        let committee = chain.state.committee_in(chain.epoch());
        let member = committee.get(index as usize).map(|v| v.pubkey.address());
        member.map_or_else(|| format!("#{index}"), |member| self.names.shown(&member, said))
    }

    /// Returns whether the certificate is valid.
    fn evidence(&mut self, chain: &Certified, said: &Evidence) -> bool {
        let before = self.mismatches.len();
        let served = said.certificate_bytes.as_ref();
        let served = served.map(|bytes| from_slice::<Certificate>(&bytes.0.0));
        let decoded = match served {
            Some(Ok(certificate)) => {
                self.certificate(chain, &certificate);
                Some(certificate)
            }
            Some(Err(error)) => {
                let detail = format!("the stored certificate does not decode: {error}");
                self.add(MismatchKind::Malformed, detail);
                None
            }
            None => {
                let at = chain.embedding.header.height;
                let detail = format!("the node has no certificate, block {at} embeds one");
                self.add(MismatchKind::Certificate, detail);
                None
            }
        };
        let valid = self.mismatches.len() == before;
        let ReplayedBlock { block, hash, root, .. } = &chain.block;
        let chain_id = chain.state.chain_id();
        let fields = |certificate: &Certificate| {
            let committee = chain.state.committee_in(certificate.round.epoch);
            evidence::certificate(certificate, chain_id, &committee)
        };
        let follows = Evidence {
            height: block.header.height.get(),
            hash: (*hash).into(),
            state_root: (*root).into(),
            block_bytes: Bytes(block.to_bytes()).into(),
            certificate_bytes: Some(Bytes(to_vec(chain.certificate())).into()),
            header: evidence::header(&block.header),
            transactions: block.transactions.iter().map(|signed| signed.hash().into()).collect(),
            embedded: block.certificates.iter().map(fields).collect(),
            certificate: decoded.as_ref().map(fields),
            presence: Some(PresenceEvidence {
                embedded_in: chain.embedding.header.height.get(),
                bit_length: chain.bitmap().len(),
                // The bitmap is compared bit by bit elsewhere.
                bitmap: said.presence.as_ref().map(|p| p.bitmap.clone()).unwrap_or_default(),
                registry: chain.derived.order.as_slice().iter().map(|r| (*r).into()).collect(),
            }),
        };
        // The bytes of the certificate were compared above.
        for difference in differences(said, &follows, &["certificate_bytes"]) {
            self.add(MismatchKind::Answer, format!("evidence: {difference}"));
        }
        valid
    }

    /// Checks that a certificate is a quorum of valid votes for block H and equals the one on the
    /// chain.
    fn certificate(&mut self, chain: &Certified, certificate: &Certificate) {
        let validators = chain.state.validators_in(chain.epoch());
        let committee = Committee::of(chain.state.chain_id(), validators)
            .expect("it has verified certificates before");
        for fault in certificate::faults(&committee, certificate) {
            let (kind, validator) = match &fault {
                CertificateError::Signature { validator, .. } => {
                    (MismatchKind::Signature, Some(*validator))
                }
                CertificateError::Order { validator, .. }
                | CertificateError::UnknownValidator { validator, .. } => {
                    (MismatchKind::Quorum, Some(*validator))
                }
                CertificateError::Votes { .. } => (MismatchKind::Quorum, None),
            };
            let validator = validator.map(|index| self.voter(chain, index, None));
            let detail = fault.to_string();
            self.mismatches.push(Mismatch { kind, validator, runner: None, bit: None, detail });
        }
        let (height, expected) = (chain.height(), chain.block.hash);
        if certificate.block != expected {
            let got = certificate.block;
            let detail = format!("the certificate is for {got}, block {height} is {expected}");
            self.add(MismatchKind::Block, detail);
        }
        if certificate != chain.certificate() {
            let at = chain.embedding.header.height;
            let detail = format!("block {at} embeds another certificate than the node's");
            self.add(MismatchKind::Certificate, detail);
        }
    }

    fn presence(&mut self, chain: &Certified, said: &Presence, stored: Option<&PresenceEvidence>) {
        let mut same = self.bits(chain, said.registry_len, &said.bitmap);
        if let Some(stored) = stored.filter(|stored| stored.bitmap != said.bitmap) {
            same &= self.bits(chain, stored.bit_length, &stored.bitmap);
        }
        let order = chain.derived.order.as_slice();
        let votes = ballots(chain.certificate());
        let counts = canonical::counts(&votes, chain.bitmap().len());
        let (rule, votes) = (chain.state.params().threshold_rule, count(votes.len()));
        let (present, absent): (Vec<_>, Vec<_>) =
            (0..).zip(order).zip(counts).partition(|((index, _), _)| chain.bitmap().get(*index));
        let follows = Presence {
            height: chain.height().get(),
            rule: rule.to_string(),
            votes,
            threshold: match rule {
                ThresholdRule::Committee => Some(canonical::of(validators(chain))),
                ThresholdRule::Quorum => Some(canonical::of(votes)),
                ThresholdRule::Subset => None,
            },
            registry_len: chain.bitmap().len(),
            bitmap: bytes(chain.bitmap()),
            present: self.names.listed(present.iter().map(|((_, r), _)| *r), &said.present),
            absent: (0..)
                .zip(&absent)
                .map(|(place, ((_, runner), present_count))| AbsentRunner {
                    name: {
                        let said = said.absent.get(place).map(|absent| absent.name.as_str());
                        self.names.shown(runner, said)
                    },
                    present_count: *present_count,
                })
                .collect(),
            embedded_in: chain.embedding.header.height.get(),
        };
        // A wrong bit puts its runner on the wrong list.
        let skip: &[&str] = if same { &["bitmap"] } else { &["bitmap", "present", "absent"] };
        for difference in differences(said, &follows, skip) {
            self.add(MismatchKind::Answer, format!("presence: {difference}"));
        }
    }

    /// Compares P(H) bit by bit; returns whether it is equal.
    fn bits(&mut self, chain: &Certified, len: u32, said: &BytesText) -> bool {
        let before = self.mismatches.len();
        let Ok(bitmap) = Bitmap::from_bytes(len, &said.0.0) else {
            self.add(MismatchKind::Malformed, format!("{said} is no bitmap of {len} bits"));
            return false;
        };
        let recomputed = chain.bitmap();
        if bitmap.len() != recomputed.len() {
            let (got, expected) = (bitmap.len(), recomputed.len());
            let detail = format!("the node's bitmap has {got} bits, the registry {expected}");
            self.add(MismatchKind::Malformed, detail);
        }
        for (bit, runner) in (0..).zip(chain.derived.order.as_slice()) {
            let (got, expected) = (u8::from(bitmap.get(bit)), u8::from(recomputed.get(bit)));
            if got != expected {
                let runner = self.names.name(runner);
                self.mismatches.push(Mismatch {
                    kind: MismatchKind::Bit,
                    validator: None,
                    detail: format!("bit {bit} ({runner}) is {got}, but the votes give {expected}"),
                    runner: Some(runner),
                    bit: Some(bit),
                });
            }
        }
        self.mismatches.len() == before
    }

    fn votes(&mut self, chain: &Certified, said: &Votes) {
        let order = chain.derived.order.as_slice();
        let vote = |(place, vote): (usize, &cowboy_engine::chain::Vote)| {
            let said = said.votes.get(place);
            let seen = vote.presence.ones().filter_map(|bit| order.get(bit as usize));
            Vote {
                validator: self.voter(chain, vote.validator, said.map(|s| s.validator.as_str())),
                index: vote.validator,
                bit_length: vote.presence.len(),
                bytes: bytes(&vote.presence),
                present: self.names.listed(seen, said.map_or(&[], |said| &said.present)),
            }
        };
        let follows = Votes {
            height: chain.height().get(),
            quorum: canonical::quorum(validators(chain)),
            validators: validators(chain),
            votes: chain.certificate().votes.iter().enumerate().map(vote).collect(),
            embedded_in: chain.embedding.header.height.get(),
        };
        for difference in differences(said, &follows, &[]) {
            self.add(MismatchKind::Answer, format!("votes: {difference}"));
        }
    }
}

fn ballots(certificate: &Certificate) -> Vec<(u32, &Bitmap)> {
    certificate.votes.iter().map(|vote| (vote.validator, &vote.presence)).collect()
}

fn bytes(bitmap: &Bitmap) -> BytesText {
    Bytes(bitmap.as_bytes().to_vec()).into()
}

fn validators(chain: &Certified) -> u32 {
    count(chain.state.validators_in(chain.epoch()).len())
}
