//! An agent with corrupted books.

use super::super::{Agent, AgentConfig};
use crate::{
    api::backend::Speculation as _,
    topology::Options,
    types::{PipelineQuery, PipelineRequest},
};
use cowboy_engine::{
    chain::Scheme,
    primitives::SecretKey,
    speculation::{Bonds, Slashing},
};
use std::{collections::BTreeMap, path::Path, time::Duration};
use tokio::time::timeout;

fn open(path: &Path) -> Agent {
    let bonds = Bonds { base: 1, per_depth: 1, slashing: Slashing::NONE };
    Agent::open(AgentConfig {
        key: SecretKey::derive(b"seed", "agent"),
        options: Options::default(),
        scheme: Scheme::Mock([4; 32]),
        bonds,
        proof_seed: [0; 32],
        prover: None,
        chain_id: 7,
        block_time: Duration::from_secs(1),
        runners: BTreeMap::new(),
        devnet: "test".to_owned(),
        collector: None,
        path: path.to_owned(),
    })
    .unwrap()
}

fn pipeline() -> PipelineRequest {
    serde_yaml::from_str("{name: p, tasks: [{id: a, command: ['true']}]}").unwrap()
}

#[tokio::test]
async fn an_agent_whose_books_break_says_so_and_stores_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("speculation.db");
    let agent = open(&path);
    agent.submit(pipeline()).unwrap();
    let breaks = {
        let (agent, second) = (agent.clone(), pipeline().check().unwrap());
        move || {
            agent.act(|core, now| -> bool {
                assert!(core.submit(second, now).is_ok());
                panic!("half done")
            })
        }
    };
    assert!(tokio::task::spawn_blocking(breaks).await.unwrap_err().is_panic());
    timeout(Duration::from_secs(30), agent.failed()).await.expect("it says so");
    assert!(agent.submit(pipeline()).is_err(), "nothing is started after that");
    agent.stop().await;
    let agent = open(&path);
    assert_eq!(agent.pipelines(&PipelineQuery::default()).len(), 1);
    agent.stop().await;
}
