//! What became of each transaction of a block.

use crate::{
    actor::Usage,
    primitives::{
        Address, Cells, Cycles, Hash, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did what it says.
    Success,
    /// It changed nothing but its fee and nonce; the error's name comes first in the text.
    Failed(String),
    /// It changed nothing at all: nonce, fee cap, chain or signature did not stand when its turn
    /// came.
    Skipped(String),
}

impl Status {
    /// The status's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Why it did not succeed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Success => None,
            Self::Failed(error) | Self::Skipped(error) => Some(error),
        }
    }
}

impl Encode for Status {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        w.text(self.name());
        w.text(self.error().unwrap_or_default());
    }
}

impl Decode for Status {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.list(2)? != 2 {
            return Err(DecodeError::Invalid("a status is a pair of name and error"));
        }
        let (name, error) = (r.text(16)?, r.text(usize::MAX)?.to_owned());
        match name {
            "success" if error.is_empty() => Ok(Self::Success),
            "failed" => Ok(Self::Failed(error)),
            "skipped" => Ok(Self::Skipped(error)),
            _ => Err(DecodeError::Invalid("unknown transaction status")),
        }
    }
}

/// What became of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction.
    pub transaction: Hash,
    /// Who signed it; zero where nobody did.
    pub sender: Address,
    /// How it ended.
    pub status: Status,
    /// Cycles paid for.
    pub cycles: Cycles,
    /// Cells paid for.
    pub cells: Cells,
    /// Basefees, in wei: gone.
    pub burned: Wei,
    /// Priority fees, in wei: the proposer's.
    pub tip: Wei,
    /// What actors did; absent where none was deployed or called.
    pub actor: Option<ActorReceipt>,
}
record!(Receipt { transaction, sender, status, cycles, cells, burned, tip, actor });

/// What a transaction made actors do, whether or not it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorReceipt {
    /// The actor deployed or called.
    pub actor: Address,
    /// What the deployment or all calls used beside the intrinsic part: cycles by cause, cells.
    pub usage: Usage,
    /// What the handler called by the transaction returned, JSON; empty for a deployment and for
    /// a failure.
    pub result: Vec<u8>,
    /// What actors printed and logged, each line with its actor, in order; kept on failure.
    pub log: Vec<(Address, String)>,
    /// Calls begun: the transaction's own and one per message.
    pub deliveries: u32,
}
record!(ActorReceipt { actor, usage, result, log, deliveries });
