//! Blocks of signed transactions, for benches of several packages.

use cowboy_engine::{
    actor::Budget,
    chain::{
        Block, Header, Payload, SignedTransaction, State, Transaction, block::transactions_root,
    },
    primitives::SecretKey,
};

/// The next block of a chain.
pub fn child(state: &State, transactions: Vec<SignedTransaction>) -> Block {
    let header = Header {
        height: state.height().next(),
        parent: state.head_hash(),
        transactions_root: transactions_root(&transactions),
        proposer: [1; 32],
        ..state.head().clone()
    };
    Block { header, certificates: vec![], transactions }
}

pub fn signed(
    state: &State,
    (key, nonce): (&SecretKey, u64),
    payload: Payload,
    bought: Budget,
) -> SignedTransaction {
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload).buying(bought).sign(key)
}
