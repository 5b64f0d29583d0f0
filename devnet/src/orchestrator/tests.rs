//! A devnet's whole life in this process.

use super::{DevnetConfig, Notice, genesis::genesis, home::Home, run};
use crate::{
    client::Client,
    topology::{Name, Overrides, Topology},
    types::{Bytes, JobStatus, TransactionRequest},
    verification::{Root, selection},
};
use cowboy_engine::{
    chain::{Payload, Transaction},
    job::spec::{Bounds, CommandWork, JobSpec, Verification, Work},
    primitives::Wei,
};
use futures::FutureExt as _;
use std::{
    sync::{Arc, mpsc},
    thread,
};

fn echo() -> JobSpec {
    let args = ["-c", "echo hi"].map(str::to_owned).to_vec();
    JobSpec {
        work: Work::Custom(CommandWork {
            program: "sh".into(),
            args,
            env: vec![],
            stdin: None,
            delivery: None,
        }),
        bounds: Bounds {
            max_return_bytes: 1_024,
            expected_execution_ms: 10_000,
            data_format: "text".into(),
            max_memory_mb: 256,
        },
        verification: Verification::none(),
        max_price: Wei::cby(10),
        tip: Wei::ZERO,
        timeout_blocks: 100,
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    }
}

#[test]
fn a_devnet_boots_runs_a_job_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let name: Name = "test".parse().unwrap();
    let home = Home::at(folder.path()).devnet(&name);
    let text = "name: test\nchain: { block_time: 50ms }\n";
    let topology = Topology::parse(text, "test.yaml").unwrap();
    let plan = topology.resolve(&Overrides::default(), text, "test.yaml").unwrap();
    let root = Root::of_plan(genesis(&plan), &plan, "a test".to_owned()).unwrap();
    let lock = home.lock().unwrap();
    let (ready, came) = mpsc::channel();
    let devnet = thread::spawn(move || {
        let observe = move |notice: Notice<'_>| {
            if let Notice::Ready(up) = notice {
                ready.send(up.clone()).unwrap();
            }
        };
        run(DevnetConfig { plan, lock, program: None }, std::future::pending().boxed(), observe)
    });
    let up = came.recv().unwrap();
    let dev: Name = "dev-0".parse().unwrap();
    let key = home.account_key(&dev).unwrap().unwrap();
    let client = Client::of_devnet(&home).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let status = client.status().await.unwrap();
        assert_eq!(status.validators.len(), 4);
        let runners = client.runners().await.unwrap();
        assert!(runners.iter().all(|r| r.present), "{runners:#?}");
        let parameters = client.parameters().await.unwrap();
        let spec = echo();
        let nonce = client.account("dev-0").await.unwrap().next_nonce;
        let id = spec.job_id(&key.address(), nonce).to_string();
        let signed = Transaction::with_limits(
            up.record.chain_id.0.0,
            nonce,
            parameters.cycle_basefee.0,
            parameters.cell_basefee.0,
            Payload::SubmitJob(Arc::new(spec)),
        )
        .sign(&key);
        let mut events = client.follow(None);
        let request = TransactionRequest { transaction: Bytes(signed.to_bytes()).into() };
        client.submit(&request).await.unwrap();
        loop {
            let block = events.next().await.unwrap();
            if block.events.iter().any(|e| e.kind == "JobVerified") {
                break;
            }
            assert!(block.events.iter().all(|e| e.kind != "JobFailed"), "{block:#?}");
        }
        let job = client.job(&id).await.unwrap();
        assert_eq!(job.status, JobStatus::Verified);
        let result = client.job_result(&id).await.unwrap();
        assert_eq!(result.result.0.0, b"hi\n");
        let check = selection::check(&client, &root, &id, |_| ()).await.unwrap();
        assert!(check.valid, "{check:?}");
        client.shutdown().await.unwrap();
    });
    devnet.join().unwrap().unwrap();
    assert!(!home.record_path().exists());
}
