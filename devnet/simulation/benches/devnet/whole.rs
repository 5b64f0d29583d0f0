//! A complete devnet in this process, and jobs submitted over its API.

use cowboy_devnet::{
    client::{Client, EventStream},
    orchestrator::{DevnetConfig, Notice, home::Home, run},
    topology::{Overrides, Topology},
    types::{BlockNotice, Bytes, Parameters, Text, TransactionRequest},
};
use cowboy_engine::{
    chain::{Payload, Transaction},
    job::spec::JobSpec,
    primitives::{Hash, SecretKey, codec::to_vec},
};
use futures::FutureExt as _;
use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Multiple of the basefee that a transaction may pay: full blocks raise it.
const BASEFEES: u128 = 64;

/// A running devnet.
pub struct Whole {
    pub client: Client,
    pub parameters: Parameters,
    key: SecretKey,
    nonce: u64,
    /// The newest height that [`next`](Self::next) has returned.
    pub head: u64,
    blocks: EventStream,
}

/// Runs `work` on the devnet that `topology` describes, then stops the devnet.
pub fn with<T>(topology: &str, work: impl AsyncFnOnce(&mut Whole) -> T) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    let parsed = Topology::parse(topology, "bench.yaml").expect("a topology");
    let plan = parsed.resolve(&Overrides::default(), topology, "bench.yaml").expect("a plan");
    let home = Home::at(folder.path()).devnet(&plan.name);
    let lock = home.lock().expect("no other bench holds it");
    let (ready, came) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let devnet = thread::spawn(move || {
        let observe = move |notice: Notice<'_>| {
            if let Notice::Ready(_) = notice {
                ready.send(()).expect("it is waited for");
            }
        };
        run(DevnetConfig { plan, lock, program: None }, stopped.map(drop).boxed(), observe)
    });
    came.recv().expect("it comes up");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.expect("a runtime").block_on(async {
        let client = Client::of_devnet(&home).expect("it runs");
        let account = client.account("dev-0").await.expect("there");
        let key = home.account_key(&"dev-0".parse().expect("a name")).expect("readable");
        let mut blocks = client.follow(None);
        blocks.connect().await.expect("it answers");
        let mut whole = Whole {
            parameters: client.parameters().await.expect("it answers"),
            key: key.expect("there"),
            nonce: account.next_nonce,
            head: 0,
            client,
            blocks,
        };
        whole.next().await;
        work(&mut whole).await
    });
    stop.send(()).expect("it runs");
    devnet.join().expect("no panic").expect("it ends well");
    done
}

impl Whole {
    /// Submits a job and returns its id.
    pub async fn submit(&mut self, spec: JobSpec) -> Hash {
        let job_id = spec.job_id(&self.key.address(), self.nonce);
        let parameters = &self.parameters;
        let bear = |basefee: cowboy_engine::primitives::Wei| basefee.saturating_mul(BASEFEES);
        let signed = Transaction::with_limits(
            parameters.chain_id.0.0,
            self.nonce,
            bear(*parameters.cycle_basefee),
            bear(*parameters.cell_basefee),
            Payload::SubmitJob(Arc::new(spec)),
        )
        .sign(&self.key);
        self.nonce += 1;
        let request = TransactionRequest { transaction: Text(Bytes(to_vec(&signed))) };
        self.client.submit(&request).await.expect("the account can pay");
        job_id
    }

    /// Waits for the next block.
    pub async fn next(&mut self) -> BlockNotice {
        let notice = self.blocks.next().await.expect("the chain goes on");
        self.head = notice.height;
        notice
    }
}

/// The jobs that a block verified. Panics if one failed.
pub fn verified(notice: &BlockNotice) -> impl Iterator<Item = Hash> {
    assert!(notice.events.iter().all(|event| event.kind != "JobFailed"), "{notice:#?}");
    let ends = notice.events.iter().filter(|event| event.kind == "JobVerified");
    ends.map(|event| event.job_id.expect("it is about a job").0)
}

/// The mean pause between blocks from one moment and height to another.
pub fn interval(from: (Instant, u64), to: (Instant, u64)) -> Duration {
    (to.0 - from.0) / u32::try_from(to.1 - from.1).expect("few blocks").max(1)
}
