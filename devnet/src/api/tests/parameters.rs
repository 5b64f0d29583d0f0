//! The governed parameters of connections: their listing and their effect in the API.

use super::fixture::*;
use crate::{
    client::BlockAt,
    types::{ExplanationQuery, Setting},
};
use cowboy_engine::{
    chain::{
        Payload,
        transaction::{SetParameter, UpdateTimerConfig},
    },
    job::spec::JobSpec,
    primitives::Height,
    timer,
};

const TTL: &str = "system:cip11:mru_ttl_blocks";
const MULTIPLIER: &str = "system:cip11:mru_multiplier";

async fn governed() -> Devnet {
    Devnet::of(|params| {
        params.system_deployers = vec![address("faucet")];
        params.connectivity.subset_epoch_blocks = 64;
    })
    .await
}

impl Devnet {
    fn governs(&mut self, key: &str, value: u64) {
        let set = Payload::SetParameter(SetParameter { key: key.to_owned(), value });
        let signed = self.sign("faucet", set);
        self.push(vec![signed]);
    }
}

#[tokio::test]
async fn they_are_listed_with_unit_range_and_source() {
    let mut devnet = governed().await;
    let setting = timer::ProposedValue { key: MULTIPLIER.to_owned(), value: 9 };
    let update = UpdateTimerConfig { settings: vec![setting], height: Some(Height::new(5)) };
    let signed = devnet.sign("faucet", Payload::SysUpdateTimerConfig(update));
    let hash = signed.hash();
    devnet.push(vec![signed]);
    let listed = async |key: &str| {
        let all = devnet.client.governance().await.unwrap();
        all.into_iter().find(|parameter| parameter.key == key).unwrap()
    };
    let epoch = listed("system:cip11:subset_epoch_blocks").await;
    assert_eq!((epoch.value, epoch.genesis), (Setting::Number(64), Setting::Number(64)));
    assert_eq!((epoch.min, epoch.max), (Some(8), Some(31_536_000)));
    assert_eq!((epoch.unit.as_str(), epoch.source.as_str()), ("blocks", "CIP-11 §13"));
    let multiplier = listed(MULTIPLIER).await;
    assert_eq!((multiplier.value, multiplier.unit.as_str()), (Setting::Number(4), "times"));
    assert_eq!(
        (multiplier.pending[0].height, &multiplier.pending[0].value),
        (5, &Setting::Number(9))
    );
    let shown = devnet.client.transaction(&hash.to_string()).await.unwrap();
    assert_eq!(shown.events[0].kind, "ConnectivityProposed");
    assert_eq!(shown.events[0].data["settings"][MULTIPLIER], 9);
}

/// Subset epochs of 64 blocks change within a consensus epoch, which has 256 blocks.
#[tokio::test]
async fn a_block_tells_its_subset_epoch() {
    let mut devnet = governed().await;
    devnet.push_empty(70);
    for (height, epoch) in [(63, 0), (64, 1), (70, 1)] {
        let block = devnet.client.block(BlockAt::Height(height)).await.unwrap();
        assert_eq!(block.subset_epoch, epoch, "{height}");
    }
}

#[tokio::test]
async fn an_mru_record_expires_as_is_governed() {
    let mut devnet = governed().await;
    devnet.push_empty(2);
    devnet.governs(TTL, 8);
    devnet.governs(MULTIPLIER, 10);
    let first = devnet.submit(spec());
    devnet.finish(&first, b"hi");
    let record = devnet.client.mru("dev-0", "custom").await.unwrap();
    assert_eq!((record.expires_at - record.set_at, record.live), (8, true));
    let second = devnet.submit(JobSpec { timeout_blocks: 400, ..spec() }).to_string();
    let explained = devnet.client.explain(&second, &ExplanationQuery::default()).await.unwrap();
    let times = explained.mru_record.map(|read| read.multiplier);
    assert_eq!((explained.mru, times), (Some(record.runner), Some(10)));
    devnet.push_empty(1);
    let found = devnet.verify_selection(&second).await.unwrap();
    assert!(found.valid, "{found:?}");
    devnet.push_empty(7);
    let record = devnet.client.mru("dev-0", "custom").await.unwrap();
    assert!(!record.live, "{record:?}");
    devnet.governs(TTL, 300);
    assert!(devnet.client.mru("dev-0", "custom").await.unwrap().live);
}
