//! Pruned blocks: status 410 with the oldest kept block, never a wrong answer.

use super::fixture::*;
use crate::{
    client::BlockAt,
    storage::Keep,
    types::{ErrorCode, EventQuery},
    verification::{Filters, VerificationError},
};
use cowboy_engine::primitives::codec::to_vec;
use rusqlite::params;
use serde_json::Value;

#[tokio::test]
async fn what_is_no_longer_kept_is_gone_and_the_rest_is_as_before() {
    let mut devnet = Devnet::keeping(Keep::Blocks(600)).await;
    let job = devnet.submit(spec());
    devnet.push_empty(1);
    devnet.finish(&job, b"done");
    let early = devnet.client.block(BlockAt::Height(1)).await.unwrap();
    let transaction = early.transactions[0].hash.to_string();
    let result = devnet.client.job_result(&job.to_string()).await.unwrap();
    assert_eq!(result.result_text.as_deref(), Some("done"));
    assert_eq!(devnet.client.status().await.unwrap().kept_from, Some(1));
    devnet.push_empty(1_020);

    // 1,023 blocks: those up to 384 are beyond the 600 that are kept.
    let oldest = 2 * 128 + 2;
    assert_eq!(devnet.client.status().await.unwrap().kept_from, Some(oldest));
    for path in [
        "/v1/chain/blocks/1".to_owned(),
        format!("/v1/chain/blocks/{}", oldest - 1),
        "/v1/presence/2".to_owned(),
        "/v1/presence/2/votes".to_owned(),
        "/v1/chain/blocks/2/evidence".to_owned(),
        "/v1/chain/evidence".to_owned(),
        "/v1/chain/events?from=3".to_owned(),
        "/v1/events?from=3".to_owned(),
        format!("/v1/jobs/{job}"),
        format!("/v1/jobs/{job}/result"),
    ] {
        let response = devnet.get(&path).await;
        assert_eq!(response.status(), 410, "{path}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["name"], "Pruned", "{path}: {body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("the oldest is {oldest}")), "{path}: {body}");
    }
    let error = devnet.client.transaction(&transaction).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));

    for height in [0, oldest, oldest + 1, 700, 1_023] {
        let block = devnet.client.block(BlockAt::Height(height)).await.unwrap();
        assert_eq!(block.height, height);
    }
    let presence = devnet.client.presence(BlockAt::Height(oldest)).await.unwrap();
    assert_eq!(presence.present.len(), 3);
    // A chain from genesis can no longer be verified.
    let error = devnet.verify_presence("validator-0", BlockAt::Height(oldest)).await.unwrap_err();
    assert!(matches!(error, VerificationError::Gone(_)), "{error}");
    let all = EventQuery { from: None, kind: None, limit: Some(1) };
    assert_eq!(devnet.client.events(&all).await.unwrap().events[0].height, oldest);
    // When the blocks from genesis are gone, only the draw itself is repeated, not its filters.
    let late = devnet.submit(spec()).to_string();
    let check = devnet.verify_selection(&late).await.unwrap();
    assert_eq!((check.filters, check.valid), (Filters::RecordedOnly, false), "{check:?}");
    assert_eq!((check.mismatches.len(), &check.recomputed), (0, &check.stored), "{check:?}");
    assert_eq!(check.recomputed_root, check.stored_root);
    let mut stored = devnet.store(0).draws_of(&check.job_id).unwrap().pop().unwrap();
    stored.draw.selection.draws[0].r ^= 1;
    devnet.alter(
        "UPDATE draw SET body = ? WHERE height = ?",
        params![to_vec(&stored.draw), stored.height.get()],
    );
    let check = devnet.verify_selection(&late).await.unwrap();
    assert_eq!(check.mismatches, ["the recorded draws are not those of the seed"]);
}
