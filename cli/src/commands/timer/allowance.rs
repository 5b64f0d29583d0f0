//! The allowance that a transaction needs for timers that it schedules and its sender pays for.

use cowboy_devnet::{
    client::{Client, ClientError},
    types::{AddressText, AmountText, Event, HashText, LaneQuery, Setting},
};
use cowboy_engine::{
    primitives::{Address, CBY, Height, InCby, Wei},
    timer::{Governed, Key, Policy, ScheduleTerms, TimerRequest},
};
use serde::Deserialize;

/// A timer, from the event `TimerScheduled`.
#[derive(Debug, Deserialize)]
pub struct Told {
    pub timer_id: HashText,
    pub actor: AddressText,
    /// The height when it is due.
    pub height: u64,
    /// The last height at which it may fire.
    pub expires_at: u64,
    /// Maximum wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Maximum wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
    pub fee_payer: AddressText,
    /// Maximum cost of its fire, in wei.
    pub max_cost: AmountText,
}

pub fn told(events: &[Event]) -> Vec<Told> {
    let scheduled = events.iter().filter(|event| event.kind == "TimerScheduled");
    scheduled.filter_map(|event| Told::deserialize(&event.data).ok()).collect()
}

/// Maximum cost of timers to their sender together, in wei.
pub fn cost(timers: &[Told], sender: AddressText) -> Wei {
    let paid = timers.iter().filter(|timer| timer.fee_payer == sender);
    paid.fold(Wei::ZERO, |sum, timer| sum.saturating_add(*timer.max_cost))
}

/// An allowance for timers with this current cost: half more, because basefees may rise until the
/// block that schedules them, in whole thousandths of a CBY.
fn enough(cost: Wei) -> Wei {
    let step = CBY / 1_000;
    let more = cost.get().saturating_add(cost.get() / 2);
    Wei::new(more.div_ceil(step).saturating_mul(step))
}

pub fn hint(cost: Wei) -> String {
    let amount = InCby(enough(cost)).to_string();
    format!("add --timer-allowance {}cby", amount.trim_end_matches(" CBY"))
}

/// An allowance for a timer that `sender` pays for, from the prices and limits of the newest block.
/// `None` if the chain would refuse the timer, so that the chain reports why.
pub async fn for_one(
    client: &Client,
    request: &TimerRequest,
    sender: Address,
) -> Result<Wei, ClientError> {
    let parameters = client.parameters().await?;
    let lane = client.timer_fees(&LaneQuery { from: None, limit: Some(1) }).await?.pop();
    let mut governed = Governed::default();
    for parameter in client.governance().await? {
        // A key that this program does not know does not affect the computed bounds.
        match parameter.value {
            Setting::Number(number) => drop(governed.set(&parameter.key, number)),
            Setting::Word(word) if parameter.key == Key::POLICY => {
                governed.policy = Policy::named(&word).unwrap_or_default();
            }
            Setting::Word(_) => {}
        }
    }
    let Governed { policy, config, .. } = governed;
    let basefee_cycle = *parameters.cycle_basefee;
    let lane_price = match (policy, lane) {
        (Policy::Eip1559, Some(lane)) if lane.policy == policy.name() => *lane.lane_basefee,
        _ => basefee_cycle,
    };
    let terms = ScheduleTerms {
        now: Height::new(parameters.height),
        policy,
        config,
        lane_price,
        basefee_cycle,
        basefee_cell: *parameters.cell_basefee,
        // These two do not change a fire's maximum cost.
        p50: Wei::ZERO,
        takes_bid: false,
    };
    let admitted = terms.admit(request.clone(), Some(sender)).ok();
    Ok(admitted.and_then(|admitted| admitted.timer.promised).map_or(Wei::ZERO, enough))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scheduled(payer: u8, max_cost: u128) -> Event {
        let address = |byte| AddressText::from(Address([byte; 20])).to_string();
        Event {
            height: 9,
            index: 0,
            kind: "TimerScheduled".to_owned(),
            transaction: None,
            timer: None,
            job_id: None,
            timer_id: None,
            data: json!({
                "timer_id": format!("0x{:064x}", 7), "actor": address(1), "height": 12,
                "expires_at": 90, "max_fee_per_cycle": "20", "max_priority_fee_per_cycle": "2",
                "fee_payer": address(payer), "max_cost": max_cost.to_string(),
            }),
        }
    }

    #[test]
    fn the_sender_allows_what_it_pays_for_and_half_more() {
        let timers = told(&[scheduled(1, 5 * CBY), scheduled(2, CBY), scheduled(2, CBY / 10)]);
        assert_eq!(timers.len(), 3);
        let sender = AddressText::from(Address([2; 20]));
        let cost = cost(&timers, sender);
        assert_eq!(cost, Wei::new(1_100_000_000));
        assert_eq!(hint(cost), "add --timer-allowance 1.65cby");
        assert_eq!(hint(Wei::new(1)), "add --timer-allowance 0.001cby");
        assert_eq!(enough(Wei::ZERO), Wei::ZERO);
        assert!("1.65cby".parse::<Wei>().is_ok_and(|amount| amount == enough(cost)));
    }
}
