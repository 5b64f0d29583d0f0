//! What a transaction must meet before it runs (spec chain.md, "Transactions" and "Fees").
//!
//! A block skips a transaction that does not, and a mempool refuses it. The mempool knows no block
//! yet, so it has its own rules about nonces, room and the balance.

use super::{
    state::{Account, State},
    transaction::{BadSignature, SignedTransaction},
};
use crate::{
    fees::meter,
    primitives::{Address, Cells, Cycles, Shortfall, Wei},
};

/// Why a transaction is skipped or refused. The text begins with the variant's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    #[error("WrongChain: for chain {got:#x}, this is {expected:#x}")]
    WrongChain { got: u64, expected: u64 },
    #[error(transparent)]
    BadSignature(#[from] BadSignature),
    #[error("WrongNonce: {got} where {expected} is next")]
    WrongNonce { got: u64, expected: u64 },
    #[error(
        "LimitTooLow: {cycles} cycles and {cells} cells are used, {bought_cycles} and \
         {bought_cells} bought"
    )]
    LimitTooLow { cycles: Cycles, cells: Cells, bought_cycles: Cycles, bought_cells: Cells },
    #[error("BlockFull: the block's cycles or cells are used up")]
    BlockFull,
    /// `gas` is `cycle` or `cell`; the amounts are wei per unit.
    #[error("FeeBelowBasefee: a {gas} costs {basefee} wei, {got} are offered")]
    FeeBelowBasefee { gas: &'static str, basefee: Wei, got: Wei },
    #[error("FeeOverflow: the fee is beyond 2^128 wei")]
    FeeOverflow,
    #[error("{0}")]
    InsufficientBalance(Shortfall),
}

/// Checks that a transaction is for this chain.
pub fn chain(signed: &SignedTransaction, expected: u64) -> Result<(), AdmissionError> {
    let got = signed.transaction.chain_id;
    if got == expected { Ok(()) } else { Err(AdmissionError::WrongChain { got, expected }) }
}

pub(super) fn nonce(signed: &SignedTransaction, account: &Account) -> Result<(), AdmissionError> {
    let (got, expected) = (signed.transaction.nonce, account.nonce);
    if got == expected { Ok(()) } else { Err(AdmissionError::WrongNonce { got, expected }) }
}

pub(super) fn room(used: (Cycles, Cells), reserved: (Cycles, Cells)) -> Result<(), AdmissionError> {
    let (cycles, cells) = (used.0.saturating_add(reserved.0), used.1.saturating_add(reserved.1));
    if cycles.get() > meter::MAX_BLOCK_CYCLES || cells.get() > meter::MAX_BLOCK_CELLS {
        return Err(AdmissionError::BlockFull);
    }
    Ok(())
}

/// The rest of an account's balance after a fee is set aside.
pub(super) fn rest(payer: Address, account: &Account, fee: Wei) -> Result<Wei, AdmissionError> {
    let have = account.balance;
    let short = Shortfall { payer, need: fee, have };
    have.checked_sub(fee).ok_or(AdmissionError::InsufficientBalance(short))
}

/// Checks that a transaction buys the cycles and cells that it uses at least.
pub fn limits(signed: &SignedTransaction) -> Result<(), AdmissionError> {
    let (cycles, cells) = signed.least();
    let (bought_cycles, bought_cells) =
        (signed.transaction.cycle_limit, signed.transaction.cell_limit);
    if cycles > bought_cycles || cells > bought_cells {
        return Err(AdmissionError::LimitTooLow { cycles, cells, bought_cycles, bought_cells });
    }
    Ok(())
}

/// The proposer's tips per cycle and per cell, if the transaction's caps cover the basefees.
pub fn tips(signed: &SignedTransaction, state: &State) -> Result<(Wei, Wei), AdmissionError> {
    let fees = &signed.transaction.fees;
    let tip = |gas, basefee, got: Wei, priority: Wei| match got.checked_sub(basefee) {
        Some(room) => Ok(room.min(priority)),
        None => Err(AdmissionError::FeeBelowBasefee { gas, basefee, got }),
    };
    Ok((
        tip("cycle", state.basefee_cycle(), fees.max_fee_per_cycle, fees.max_priority_per_cycle)?,
        tip("cell", state.basefee_cell(), fees.max_fee_per_cell, fees.max_priority_per_cell)?,
    ))
}
