//! Checks whether a range of blocks follows from genesis.

use super::{
    report::{BlocksCheck, ServingCommittee},
    root::Root,
    walk::{VerificationError, Walk},
};
use crate::{
    client::Client,
    types::{Bytes, HashText},
};
use cowboy_engine::{chain::State, primitives::Height};

/// Verifies the blocks up to `to`, and reports on those from `from` on. `progress` is called with
/// the newest verified block.
pub async fn check(
    client: &Client,
    root: &Root,
    (from, to): (u64, u64),
    progress: impl Fn(u64),
) -> Result<BlocksCheck, VerificationError> {
    let mut walk = Walk::new(client, root)?;
    let head = walk.replay().state();
    let mut report = BlocksCheck {
        from,
        to,
        valid: false,
        verified: 0,
        hash: head.head_hash().into(),
        state_root: HashText::from(head.root()),
        transactions: 0,
        certificates: 0,
        committees: Vec::new(),
        replayed: 0,
        signatures: 0,
        mismatches: Vec::new(),
        trusted: root.trusted.clone(),
    };
    let mut fatal = None;
    while walk.height() < Height::new(to) && fatal.is_none() {
        let steps = match walk.next().await {
            Ok(steps) => steps,
            Err(VerificationError::Fault(fault)) => {
                fatal = Some(fault);
                break;
            }
            Err(error) => return Err(error),
        };
        for step in steps {
            let height = step.block.header.height.get();
            progress(height);
            if height > to {
                break;
            }
            (report.verified, report.hash) = (height, step.hash.into());
            report.state_root = step.root.into();
            if height >= from {
                report.transactions += step.block.transactions.len() as u64;
                report.certificates += step.block.certificates.len() as u64;
                serving(&step.execution.state, height, &mut report.committees);
            }
        }
    }
    let told = walk.replay().faults().iter().filter(|fault| fault.height.get() <= to);
    // Faults before the range are left out: the finality of later blocks does not depend on them.
    let told = told.filter(|fault| fault.height.get() >= from);
    report.mismatches = told.chain(&fatal).map(ToString::to_string).collect();
    report.valid = report.mismatches.is_empty();
    report.replayed = walk.height().get();
    report.signatures = walk.replay().signatures();
    Ok(report)
}

/// Records the committee that votes on the block at `height`, if it differs from the previous one.
fn serving(state: &State, height: u64, committees: &mut Vec<ServingCommittee>) {
    let committee = state.committee_in(state.epoch_at(Height::new(height)));
    let key = |v: &&cowboy_engine::chain::GenesisValidator| Bytes(v.consensus_key.to_vec()).into();
    let validators = committee.iter().map(key).collect();
    if committees.last().is_none_or(|last| last.validators != validators) {
        committees.push(ServingCommittee { from: height, validators });
    }
}
