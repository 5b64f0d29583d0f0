//! On-chain heartbeats: a slow sign of life in addition to the connections (spec jobs.md §1).

use super::LOOK_AT_LEAST;
use crate::{
    client::{Client, ClientError},
    types::GovernedParameter,
};
use commonware_runtime::Clock;
use cowboy_engine::{
    chain::{Payload, Transaction},
    presence::Connectivity,
    primitives::SecretKey,
    timer::Key,
};
use std::time::Duration;

/// A heartbeat is due after one part of the time in which it becomes stale, so that three more
/// tries fit in.
const PARTS: u64 = 4;
/// Looks at the chain per part.
const LOOKS: u64 = 4;

/// Keeps the runner's heartbeat on the chain fresh for as long as the future is polled.
/// `block_time` is the chain's block time.
pub async fn keep(clock: impl Clock, client: Client, key: SecretKey, block_time: Duration) {
    let mut stale = Connectivity::DEFAULT.stale_heartbeat_blocks;
    let mut failing = false;
    loop {
        clock.sleep(pause(stale, block_time)).await;
        let outcome = match stale_after(&client).await {
            Ok(blocks) => {
                stale = blocks;
                send_if_due(&client, &key, stale / PARTS).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &outcome
            && !failing
        {
            tracing::warn!(runner = %key.address(), %error, "no heartbeat; tried again later");
        }
        failing = outcome.is_err();
    }
}

/// The pause between two looks when a heartbeat is stale after `stale` blocks.
fn pause(stale: u64, block_time: Duration) -> Duration {
    let blocks = u32::try_from(stale / PARTS / LOOKS).unwrap_or(u32::MAX);
    block_time.saturating_mul(blocks).max(LOOK_AT_LEAST)
}

/// The number of blocks after which a heartbeat is stale, according to the API. A lying API can
/// make a heartbeat late, which it can do anyway because it relays heartbeats. It cannot make the
/// runner send them more often than the parameter's minimum requires.
async fn stale_after(client: &Client) -> Result<u64, ClientError> {
    let all = client.governance().await?;
    Ok(stale_in(&all).unwrap_or(Connectivity::DEFAULT.stale_heartbeat_blocks))
}

/// The governed value, clamped to the parameter's bounds.
fn stale_in(all: &[GovernedParameter]) -> Option<u64> {
    let Key { name, min, max, .. } = Key::named(Key::STALE_HEARTBEAT).ok()?;
    let found = all.iter().find(|parameter| parameter.key == *name)?;
    Some(found.value.number()?.clamp(*min, *max))
}

async fn send_if_due(client: &Client, key: &SecretKey, due: u64) -> Result<(), ClientError> {
    let address = key.address().to_string();
    let last = client.runner(&address).await?.last_heartbeat;
    let parameters = client.parameters().await?;
    if parameters.height.saturating_sub(last) < due {
        return Ok(());
    }
    let nonce = client.account(&address).await?.next_nonce;
    let heartbeat = Transaction::with_limits(
        parameters.chain_id.0.0,
        nonce,
        parameters.cycle_basefee.0,
        parameters.cell_basefee.0,
        Payload::RunnerHeartbeat,
    )
    .sign(key);
    client.heartbeat(&address, &heartbeat).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Setting;

    fn parameter(key: &str, value: u64) -> GovernedParameter {
        GovernedParameter {
            key: key.to_owned(),
            name: String::new(),
            value: Setting::Number(value),
            genesis: Setting::Number(value),
            unit: "blocks".to_owned(),
            source: "CIP-11 §13".to_owned(),
            min: None,
            max: None,
            choices: Vec::new(),
            since: None,
            pending: Vec::new(),
            about: String::new(),
        }
    }

    #[test]
    fn what_the_api_says_is_held_to_its_bounds() {
        let said = |value| stale_in(&[parameter(Key::STALE_HEARTBEAT, value)]);
        assert_eq!(
            (said(1_024), said(0), said(u64::MAX)),
            (Some(1_024), Some(64), Some(31_536_000))
        );
        assert_eq!(stale_in(&[parameter("another", 7)]), None);
        assert_eq!(stale_in(&[]), None);
    }

    #[test]
    fn the_chain_is_looked_at_several_times_before_a_heartbeat_is_due() {
        let second = Duration::from_secs(1);
        assert_eq!(pause(1_024, second), 64 * second);
        assert_eq!(pause(64, second), 4 * second);
        assert_eq!(pause(64, Duration::ZERO), LOOK_AT_LEAST);
        assert_eq!(pause(u64::MAX, second), u32::MAX * second);
    }
}
