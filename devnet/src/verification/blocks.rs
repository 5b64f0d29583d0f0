//! Is a range of blocks what genesis leads to?

use super::{
    report::{BlocksCheck, ServingCommittee},
    root::Root,
    walk::{VerificationError, Walk},
};
use crate::{
    api::types::{Bytes, HashText},
    client::Client,
};
use cowboy_engine::{chain::State, primitives::Height};

/// Verifies the blocks up to `to`, and tells of those from `from` on. `progress` is told the newest
/// block that is verified.
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
                serving(&step.state, height, &mut report.committees);
            }
        }
    }
    let told = walk.replay().faults().iter().filter(|fault| fault.height.get() <= to);
    // Those before the range are of no account: what is final does not rest on them.
    let told = told.filter(|fault| fault.height.get() >= from);
    report.mismatches = told.chain(&fatal).map(ToString::to_string).collect();
    report.valid = report.mismatches.is_empty();
    report.replayed = walk.height().get();
    report.signatures = walk.replay().signatures();
    Ok(report)
}

/// Notes the committee that votes on the block at `height`, where it is another one than before.
fn serving(state: &State, height: u64, committees: &mut Vec<ServingCommittee>) {
    let committee = state.committee_in(state.epoch_at(Height::new(height)));
    let key = |v: &&cowboy_engine::chain::Validator| Bytes(v.consensus_key.to_vec()).into();
    let validators = committee.iter().map(key).collect();
    if committees.last().is_none_or(|last| last.validators != validators) {
        committees.push(ServingCommittee { from: height, validators });
    }
}
