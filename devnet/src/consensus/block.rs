//! The chain's blocks in the form that the consensus library needs.
//!
//! On the wire and in archives a block is the length of its deterministic CBOR form, then that
//! form. Decoding checks that the header commits to the certificates and transactions and that the
//! proposer is a valid key.

use super::{Context, Digest, certificate, vote::BITMAP_BYTES};
use crate::chain::known::Known;
use bytes::{BufMut, Bytes};
use commonware_codec::{Buf, Copying, DecodeExt as _, EncodeSize, Error, RangeCfg, Read, Write};
use commonware_consensus::{
    BoundedBlock, CertifiableBlock, Heightable,
    types::{Epoch, Height, Round, View},
};
use commonware_cryptography::{Digested, Digestible, ed25519::PublicKey};
use cowboy_engine::{
    chain::{self, block::MAX_OPEN},
    fees::meter,
};
use std::sync::Arc;

/// Maximum number of certificates in a block: its parent's and those of all open ancestors.
const MAX_CERTIFICATES: usize = MAX_OPEN + 1;
/// Maximum length of a header: eight open ancestors of about 60 bytes and a dozen small fields.
const MAX_HEADER: usize = 2_048;
/// Maximum length of a vote in a block without its bitmap: signature, index, length, field names.
const VOTE_OVERHEAD: usize = 192;
/// Maximum length of a certificate without its votes: hash, round, field names.
const CERTIFICATE_OVERHEAD: usize = 256;

/// Maximum bytes of transactions in a block: each byte is a cell.
pub const MAX_TRANSACTION_BYTES: usize = meter::MAX_BLOCK_CELLS as usize;

/// A proposer key that is not an ed25519 public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proposer's key is not an ed25519 public key")]
pub struct BadProposer;

/// A block with its digest, consensus context and encoded form. Clones share it.
#[derive(Clone, Debug)]
pub struct Block(Arc<BlockInner>);

#[derive(Debug)]
struct BlockInner {
    block: Arc<chain::Block>,
    digest: Digest,
    context: Context,
    bytes: Bytes,
}

/// The limits for decoding a block.
#[derive(Clone, Debug)]
pub struct BlockConfig {
    /// Maximum size of a committee, and so of a certificate's votes.
    pub validators: u32,
    /// Known transactions, whose copies replace those of a decoded block.
    pub known: Known,
}

impl Block {
    pub fn new(block: chain::Block) -> Result<Self, BadProposer> {
        let bytes = block.to_bytes().into();
        Self::from_parts(block, bytes)
    }

    fn from_parts(block: chain::Block, bytes: Bytes) -> Result<Self, BadProposer> {
        let header = &block.header;
        let leader = PublicKey::decode(Copying(&header.proposer)).map_err(|_| BadProposer)?;
        let context = Context {
            round: Round::new(Epoch::new(header.round.epoch), View::new(header.round.view)),
            leader,
            parent: (View::new(header.round.parent_view), certificate::digest(header.parent)),
        };
        let digest = certificate::digest(block.hash());
        Ok(Self(Arc::new(BlockInner { block: Arc::new(block), digest, context, bytes })))
    }

    pub fn chain(&self) -> &Arc<chain::Block> {
        &self.0.block
    }

    pub fn header(&self) -> &chain::Header {
        &self.0.block.header
    }

    /// The block together with its digest, as the library passes blocks around.
    pub fn digested(self) -> Digested<Self> {
        let digest = self.0.digest;
        Digested::precomputed(self, digest)
    }
}

impl Write for Block {
    fn write(&self, buf: &mut impl BufMut) {
        self.0.bytes.len().write(buf);
        buf.put_slice(&self.0.bytes);
    }
}

impl EncodeSize for Block {
    fn encode_size(&self) -> usize {
        self.0.bytes.len().encode_size() + self.0.bytes.len()
    }
}

impl Read for Block {
    type Cfg = BlockConfig;

    fn read_cfg(buf: &mut impl Buf, config: &BlockConfig) -> Result<Self, Error> {
        let len = usize::read_cfg(buf, &RangeCfg::from(0..=max_bytes(config)))?;
        if buf.remaining() < len {
            return Err(Error::EndOfBuffer);
        }
        // Copied, so that the block does not keep a network buffer alive.
        let mut bytes = vec![0; len];
        buf.copy_to_slice(&mut bytes);
        let block = chain::Block::from_bytes_with(&bytes, &config.known)
            .map_err(|error| Error::Wrapped("Block", Box::new(error)))?;
        Self::from_parts(block, bytes.into())
            .map_err(|error| Error::Wrapped("Block", Box::new(error)))
    }
}

impl Digestible for Block {
    type Digest = Digest;

    fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl Heightable for Block {
    fn height(&self) -> Height {
        Height::new(self.header().height.get())
    }
}

impl commonware_consensus::Block for Block {
    fn parent(&self) -> Digest {
        certificate::digest(self.header().parent)
    }
}

impl CertifiableBlock for Block {
    type Context = Context;

    fn context(&self) -> Context {
        self.0.context.clone()
    }
}

impl BoundedBlock for Block {
    fn max_encode_size(config: &BlockConfig) -> usize {
        // The length prefix takes at most five bytes.
        5 + max_bytes(config)
    }
}

const fn max_bytes(config: &BlockConfig) -> usize {
    let certificate =
        CERTIFICATE_OVERHEAD + config.validators as usize * (BITMAP_BYTES + VOTE_OVERHEAD);
    MAX_HEADER + MAX_CERTIFICATES * certificate + MAX_TRANSACTION_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use commonware_codec::{Decode as _, Encode as _};
    use cowboy_engine::{
        chain::{
            Certificate, Executed, Header, OpenAncestor, SignedTransaction, Vote, block,
            transaction::{KnownTransactions as _, Signed},
        },
        presence::{Bitmap, CAPACITY},
        primitives::{self, Hash},
    };

    const VALIDATORS: u32 = 100;

    fn config() -> BlockConfig {
        BlockConfig { validators: VALIDATORS, known: Known::default() }
    }

    /// The longest header and certificates that the rules admit.
    fn largest() -> chain::Block {
        let hash = Hash([0xff; 32]);
        let height = primitives::Height::new(u64::MAX);
        let round = chain::Round { epoch: u64::MAX, view: u64::MAX, parent_view: u64::MAX };
        let vote = |validator| Vote {
            validator: u32::MAX - validator,
            presence: Bitmap::from_fn(CAPACITY, |_| true),
            signature: [0xff; 64],
        };
        let votes: Vec<_> = (0..VALIDATORS).map(vote).collect();
        let certificates = vec![Certificate { block: hash, round, votes }; MAX_CERTIFICATES];
        let header = Header {
            height,
            parent: hash,
            round,
            proposer: [0; 32],
            timestamp_ms: u64::MAX,
            subset_epoch: u64::MAX,
            transactions_root: block::transactions_root(&[]),
            certificates_root: block::certificates_root(&certificates),
            open: vec![OpenAncestor { height, hash }; MAX_OPEN],
            executed: Executed { height, state_root: hash },
        };
        chain::Block { header, certificates, transactions: Vec::new() }
    }

    #[test]
    fn the_largest_block_stays_within_its_bound() {
        let block = Block::new(largest()).expect("zeros are a point");
        let bytes = block.encode();
        assert_eq!(bytes.len(), block.encode_size());
        assert!(bytes.len() + MAX_TRANSACTION_BYTES <= Block::max_encode_size(&config()));
        let read = Block::decode_cfg(bytes, &config()).expect("as written");
        assert_eq!(read.chain(), block.chain());
        assert_eq!((read.digest(), read.context()), (block.digest(), block.context()));
    }

    #[test]
    fn copies_of_a_transaction_are_one_and_others_stay_as_they_are() {
        let state = sample::genesis(4, 1).state().unwrap();
        let transactions =
            vec![sample::transfer(&state, 0, 0, 1), sample::transfer(&state, 1, 0, 2)];
        let transactions_root = block::transactions_root(&transactions);
        let header = Header { transactions_root, ..largest().header };
        let certificates = largest().certificates;
        let block = chain::Block { header, certificates, transactions };
        let bytes = Block::new(block.clone()).expect("zeros are a point").encode();
        let config = config();
        let read = || Block::decode_cfg(bytes.clone(), &config).expect("as written");
        let (one, other) = (read(), read());
        assert_eq!(one.chain().transactions, block.transactions);
        for (one, other) in one.chain().transactions.iter().zip(&other.chain().transactions) {
            let (one, other): (&Signed, &Signed) = (one, other);
            assert!(std::ptr::eq(one, other));
        }
        // A lie with a known signature does not take the place of what it was copied from.
        let mut lie = block.transactions[0].transaction.clone();
        lie.nonce = 9;
        let lie = SignedTransaction::new(lie, block.transactions[0].signature);
        assert_eq!(config.known.copy_of(lie.clone()), lie);
        assert_eq!(config.known.copy_of(block.transactions[0].clone()), block.transactions[0]);
    }

    #[test]
    fn what_the_header_does_not_commit_to_is_refused() {
        let mut block = largest();
        block.certificates.pop();
        let bytes = Block::new(block).expect("zeros are a point").encode();
        assert!(Block::decode_cfg(bytes, &config()).is_err());
    }

    #[test]
    fn a_claimed_length_beyond_the_bound_is_refused() {
        let bytes = Block::new(largest()).expect("zeros are a point").encode();
        assert!(Block::decode_cfg(bytes.slice(..bytes.len() - 1), &config()).is_err());
        let mut claim = Vec::new();
        (max_bytes(&config()) + 1).write(&mut claim);
        assert!(Block::decode_cfg(claim, &config()).is_err());
    }
}
