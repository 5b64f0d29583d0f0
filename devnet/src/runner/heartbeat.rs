//! On-chain heartbeats: the slow sign of life beside the connections (spec jobs.md §1).

use crate::client::{Client, ClientError};
use commonware_runtime::Clock;
use cowboy_engine::{
    chain::{Payload, Transaction},
    primitives::SecretKey,
    registry::STALE_HEARTBEAT_BLOCKS,
};
use std::time::Duration;

/// A heartbeat is due when the last one is this many blocks old: three more chances before it is
/// stale.
const EVERY_BLOCKS: u64 = STALE_HEARTBEAT_BLOCKS / 4;
/// Between two looks at the chain, in blocks at its pace.
const LOOK_BLOCKS: u32 = 64;
/// The same on a chain without pace.
const LOOK_AT_LEAST: Duration = Duration::from_millis(500);

/// Keeps the runner's heartbeat on the chain fresh, as long as it is polled. `block_time` is the
/// chain's pace.
pub async fn keep(clock: impl Clock, client: Client, key: SecretKey, block_time: Duration) {
    let pause = (block_time * LOOK_BLOCKS).max(LOOK_AT_LEAST);
    let mut failing = false;
    loop {
        clock.sleep(pause).await;
        let outcome = send_if_due(&client, &key).await;
        if let Err(error) = &outcome
            && !failing
        {
            tracing::warn!(runner = %key.address(), %error, "no heartbeat; tried again later");
        }
        failing = outcome.is_err();
    }
}

async fn send_if_due(client: &Client, key: &SecretKey) -> Result<(), ClientError> {
    let address = key.address().to_string();
    let last = client.runner(&address).await?.last_heartbeat;
    let parameters = client.parameters().await?;
    if parameters.height.saturating_sub(last) < EVERY_BLOCKS {
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
