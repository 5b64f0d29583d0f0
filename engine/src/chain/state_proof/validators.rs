//! The committees and subset epochs that a proof of validators shows.

use super::{Found, Hash, Height, Newest, Part, Roster, StateProof, StateProofError};
use crate::{
    chain::{
        GenesisValidator, SubsetEpoch,
        committee::{COMMITTEES, Held, SUBSETS},
    },
    primitives::codec::{Decode, Encode, from_slice},
};
use std::sync::Arc;

const KIND: &str = "validators";

/// The validators in force after the block that produced the state, and the committees' part of its
/// root. The subset epochs' part is checked here.
pub(super) fn found<'a>(
    proof: &StateProof,
    [committees, subsets]: &[Newest; 2],
) -> Result<(Hash, Found<'a>), StateProofError> {
    let of_no_map = StateProofError::Steps { kind: KIND };
    let part = committees.part(COMMITTEES).ok_or(of_no_map.clone())?;
    let (got, expected) =
        (subsets.part(SUBSETS).ok_or(of_no_map)?, proof.parts[Part::Subsets as usize]);
    if got != expected {
        return Err(StateProofError::Part { kind: KIND, got, expected });
    }
    Ok((part, Found::Validators(roster(proof.header.executed.height, committees, subsets)?)))
}

/// The roster of the state after the block at `height`.
fn roster(
    height: Height,
    committees: &Newest,
    subsets: &Newest,
) -> Result<Roster, StateProofError> {
    let not_then = || StateProofError::NotThen { kind: KIND, height };
    let at = height.get();
    let epoch = at.checked_div(committees.blocks).ok_or_else(not_then)?;
    let next = epoch.saturating_add(1);
    // A later entry would be from an epoch that this state does not know.
    if committees.newest.since > next || subsets.newest.since > at {
        return Err(not_then());
    }
    let committee = |epoch| -> Result<Arc<Vec<GenesisValidator>>, StateProofError> {
        read("list of validators", committees.holding_at(epoch).ok_or_else(not_then)?)
    };
    let mut counting: Vec<SubsetEpoch> = vec![read("subset epoch", &subsets.newest)?];
    if at - subsets.newest.since < subsets.blocks
        && let Some(before) = &subsets.before
    {
        counting.push(read("subset epoch", before)?);
    }
    Ok(Roster {
        epoch,
        committee: committee(epoch)?,
        next: committee(next)?,
        next_decided: at.checked_add(1).is_some_and(|child| child / committees.blocks > epoch),
        subsets: counting,
    })
}

fn read<T: Encode + Decode>(record: &'static str, held: &Held) -> Result<T, StateProofError> {
    from_slice(&held.value).map_err(|error| StateProofError::Record { record, error })
}
