//! Validators, and the devnet at a glance.

use super::runner::{self, Connections};
use crate::{
    api::{
        backend::ValidatorSlot,
        error::ApiError,
        route::{Route, many, one},
        view::{self, Glance},
    },
    types::{
        BEHIND, Bytes, ChainId, ConnectedRunner, Head, RunnerState, Status, Supply, Text,
        Validator, ValidatorState, ValidatorStatus,
    },
};
use cowboy_engine::primitives::Height;
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    vec![
        one("/v1/status", "The devnet at a glance", status),
        many("/v1/validators", "The validators, in the order in which votes number them", list),
        one(
            "/v1/validators/{validator}",
            "A validator, whether it runs or not",
            |glance: &Glance, validator: String| show(glance, &validator),
        ),
        many(
            "/v1/validators/{validator}/links",
            "A running validator's connections to runners, as it sees them",
            |glance: &Glance, validator: String| links(glance, &validator),
        ),
    ]
}

fn status(glance: &Glance) -> Result<Status, ApiError> {
    let (backend, network) = (&glance.backend, Connections::of(glance));
    let runners = runner::statuses(glance, &network);
    let validators: Vec<_> = in_order(glance)
        .iter()
        .map(|slot| ValidatorStatus {
            name: slot.name().to_owned(),
            address: slot.address().into(),
            index: index(glance, slot),
            height: slot.height().get(),
            status: state(&network, slot),
            reason: slot.paused().or_else(|| slot.died()),
        })
        .collect();
    let decides = |status| matches!(status, ValidatorState::Running | ValidatorState::CatchingUp);
    let ready = validators.iter().all(|validator| decides(validator.status))
        && runners.iter().all(|runner| runner.status == RunnerState::Connected);
    Ok(Status {
        name: backend.name.clone(),
        running: true,
        ready,
        chain_id: Some(ChainId(backend.chain_id).into()),
        head: Some(head(glance)?),
        kept_from: kept_from(glance),
        validators,
        runners,
        faults: super::fault::list(glance),
        supply: Some(supply(glance)),
        pid: Some(backend.pid),
        started_at: Some(Text(backend.started_at)),
        died: None,
    })
}

fn kept_from(glance: &Glance) -> Option<u64> {
    let slots = glance.backend.slots();
    let running = slots.iter().filter_map(|slot| slot.running());
    running.map(|running| running.ledger.store().kept_from().get()).max()
}

fn supply(glance: &Glance) -> Supply {
    let supply = glance.state.supply();
    Supply {
        balances: supply.balances.into(),
        escrow: supply.escrow.into(),
        stakes: supply.stakes.into(),
        bonds: supply.bonds.into(),
        burned: supply.burned.into(),
        total: supply.total().into(),
    }
}

fn head(glance: &Glance) -> Result<Head, ApiError> {
    let height = glance.state.height();
    let mut finalized_at = None;
    for slot in glance.backend.slots().iter().filter(|_| height > Height::GENESIS) {
        let Some(running) = slot.running() else { continue };
        if let Some((_, ms)) = running.ledger.store().executed(height)? {
            finalized_at = Some(view::time(ms));
            break;
        }
    }
    Ok(Head { height: height.get(), hash: glance.state.head_hash().into(), finalized_at })
}

fn list(glance: &Glance) -> Result<Vec<Validator>, ApiError> {
    let network = Connections::of(glance);
    Ok(in_order(glance).iter().map(|slot| describe(glance, &network, slot)).collect())
}

pub(in crate::api) fn show(glance: &Glance, text: &str) -> Result<Validator, ApiError> {
    let slot = slot(glance, text)?;
    Ok(describe(glance, &Connections::of(glance), &slot))
}

fn links(glance: &Glance, text: &str) -> Result<Vec<ConnectedRunner>, ApiError> {
    let slot = slot(glance, text)?;
    let running = slot.running().ok_or_else(|| view::not_running(&slot))?;
    Ok(running.node.links())
}

pub(in crate::api) fn slot(glance: &Glance, text: &str) -> Result<Arc<ValidatorSlot>, ApiError> {
    let address = glance.resolve("validator", text)?;
    let slot = glance.backend.slot_at(&address);
    slot.ok_or_else(|| {
        ApiError::not_found(format!("{} is not a validator", glance.name(&address)))
            .hint("list them: cowboyctl validator ls")
    })
}

/// The validators by their index in votes; those outside the committee come last, in the order in
/// which they joined.
fn in_order(glance: &Glance) -> Vec<Arc<ValidatorSlot>> {
    let mut slots = glance.backend.slots();
    slots.sort_by_key(|slot| index(glance, slot).unwrap_or(u32::MAX));
    slots
}

fn index(glance: &Glance, slot: &ValidatorSlot) -> Option<u32> {
    let committee = glance.state.committee();
    (0..).zip(committee).find(|(_, v)| *v == slot.identity()).map(|(index, _)| index)
}

fn state(network: &Connections, slot: &ValidatorSlot) -> ValidatorState {
    if slot.paused().is_some() {
        return ValidatorState::Paused;
    }
    let Some(from) = slot.started_from() else {
        let died = slot.died().is_some();
        return if died { ValidatorState::Died } else { ValidatorState::Stopped };
    };
    let height = slot.height();
    if height <= from {
        ValidatorState::Starting
    } else if network.highest.since(height) > BEHIND {
        ValidatorState::CatchingUp
    } else {
        ValidatorState::Running
    }
}

fn describe(glance: &Glance, network: &Connections, slot: &ValidatorSlot) -> Validator {
    let (address, running) = (slot.address(), slot.running());
    let process = running.as_ref().and_then(|running| running.process.clone());
    Validator {
        name: slot.name().to_owned(),
        address: address.into(),
        pubkey: slot.identity().pubkey.clone().into(),
        consensus_key: Text(Bytes(slot.identity().consensus_key.to_vec())),
        index: index(glance, slot),
        status: state(network, slot),
        reason: slot.paused().or_else(|| slot.died()),
        height: slot.height().get(),
        quic: running.as_ref().map(|running| running.quic.to_string()),
        p2p: running.as_ref().map(|running| running.p2p.to_string()),
        pid: process.as_ref().and_then(|process| process.pid),
        version: process.map(|process| process.version),
        subset_of: glance.named(network.expected_at(&address)),
        connected_runners: glance.named(network.connected_to(&address)),
    }
}
