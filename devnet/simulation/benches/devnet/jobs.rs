//! The time from a job's assignment to its start.

use crate::{
    RUNNERS, VALIDATORS,
    bare::ends,
    loopback,
    runners::{self, Gateways},
};
use commonware_runtime::{Clock as _, Spawner as _, Supervisor as _};
use cowboy_devnet::{
    runner::node::Activity,
    sample::{key, spec, validator_name},
    validator::{Services, limiter::BucketLimits},
};
use cowboy_engine::{
    chain::{Endowment, Payload, Transaction},
    job::spec::JobStatus,
    primitives::{Hash, Wei},
};
use cowboy_simulation::Setup;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::{broadcast, mpsc};

const BLOCK_TIME: Duration = Duration::from_millis(100);
/// Number of jobs before the measurement.
const WARM_UP: u64 = 20;
/// About the size of an assignment.
const MESSAGE: [u8; 400] = [7; 400];

/// The results of [`latencies`].
#[derive(Default)]
pub struct Latencies {
    /// Time from when the first validator has executed the block with the assignment until the
    /// job's process runs.
    pub starts: Vec<Duration>,
    /// Round trips of a new stream on a bare QUIC connection, between two blocks.
    pub quiet: Vec<Duration>,
    /// The same, begun when a validator has executed a block, so that the machine is as busy as
    /// when jobs are assigned.
    pub busy: Vec<Duration>,
}

/// Runs `jobs` jobs one at a time, and after each job one round trip of each sort.
pub fn latencies(jobs: u64) -> Latencies {
    let mut setup = Setup::new(VALIDATORS, RUNNERS, BLOCK_TIME);
    setup.genesis.endowments.extend((0..VALIDATORS).map(|index| Endowment {
        account: key(&validator_name(index)).address(),
        balance: Wei::cby(1_000_000),
    }));
    loopback::run(setup, async |mut devnet| {
        let serve = Gateways::default().serve(&devnet, BucketLimits::default(), BLOCK_TIME);
        devnet.start_all(Some(serve));

        let assigned: Arc<Mutex<BTreeMap<Hash, SystemTime>>> = Arc::default();
        for index in 0..VALIDATORS {
            let (services, assigned) =
                (devnet.validator(index).services().clone(), assigned.clone());
            devnet.context.child("watch").spawn(|_| watch(services, assigned));
        }
        let (started, mut starts) = mpsc::unbounded_channel();
        let running = runners::start(&devnet, RUNNERS);
        for runner in &running {
            let (activities, started) = (runner.subscribe(), started.clone());
            devnet.context.child("listen").spawn(|_| listen_to(activities, started));
        }

        let services = devnet.validator(0).services().clone();
        runners::present(&services, RUNNERS).await;
        let bare = Bare::connect().await;
        let mut latencies = Latencies::default();
        for number in 0..WARM_UP + jobs {
            let job = submit(&services, number);
            let (job_id, at) = starts.recv().await.expect("the runners go on");
            assert_eq!(job_id, job, "one job at a time");
            devnet.context.sleep(BLOCK_TIME / 2).await;
            let quiet = bare.round_trip().await;
            let mut blocks = services.ledger.subscribe();
            blocks.recv().await.expect("the chain goes on");
            let busy = bare.round_trip().await;
            // The block with the job has been executed when the job's command runs.
            let assigned = assigned.lock().expect("no other thread panics").remove(&job_id);
            let wait = at.duration_since(assigned.expect("seen")).unwrap_or_default();
            if number >= WARM_UP {
                latencies.starts.push(wait);
                latencies.quiet.push(quiet);
                latencies.busy.push(busy);
            }
        }
        for runner in running {
            runner.stop(&devnet.context).await;
        }
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        latencies
    })
}

/// Records when a validator executed a block that assigns a job, unless another validator was
/// faster.
async fn watch(services: Services, assigned: Arc<Mutex<BTreeMap<Hash, SystemTime>>>) {
    let mut blocks = services.ledger.subscribe();
    drop(services);
    while let Ok(block) = blocks.recv().await {
        let now = SystemTime::now();
        let state = &block.execution.state;
        let drawn = state.open_jobs().filter(
            |(_, job)| matches!(&job.status, JobStatus::Assigned(a) if a.height == state.height()),
        );
        let mut assigned = assigned.lock().expect("no other thread panics");
        for (job_id, _) in drawn {
            let first = assigned.entry(*job_id).or_insert(now);
            *first = now.min(*first);
        }
    }
}

async fn listen_to(
    mut activities: broadcast::Receiver<Activity>,
    started: mpsc::UnboundedSender<(Hash, SystemTime)>,
) {
    while let Ok(activity) = activities.recv().await {
        if let Activity::Started { job_id, at } = activity
            && started.send((job_id, at)).is_err()
        {
            return;
        }
    }
}

fn submit(services: &Services, number: u64) -> Hash {
    let sender = key(&format!("account-{}", number % 4));
    let state = services.ledger.head();
    let spec = Arc::new(spec(40));
    let nonce = number / 4;
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    let payload = Payload::SubmitJob(spec.clone());
    let transaction =
        Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload).sign(&sender);
    services.submit(transaction).expect("the account can pay");
    spec.job_id(&sender.address(), nonce)
}

/// A plain QUIC connection whose streams are echoed.
struct Bare {
    connection: quinn::Connection,
    _ends: (quinn::Endpoint, quinn::Endpoint),
}

impl Bare {
    async fn connect() -> Self {
        let (server, client, config) = ends();
        let address = server.local_addr().expect("it is bound");
        let accepting = server.clone();
        tokio::spawn(async move {
            let connection = accepting.accept().await.expect("a client").await.expect("connects");
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let Ok(message) = receive.read_to_end(MESSAGE.len()).await else { return };
                if send.write_all(&message).await.is_err() || send.finish().is_err() {
                    return;
                }
            }
        });
        let connecting = client.connect_with(config, address, "localhost");
        let connection = connecting.expect("an address").await.expect("it listens");
        Self { connection, _ends: (client, server) }
    }

    async fn round_trip(&self) -> Duration {
        let begun = Instant::now();
        let (mut send, mut receive) = self.connection.open_bi().await.expect("open");
        send.write_all(&MESSAGE).await.expect("open");
        send.finish().expect("open");
        let echo = receive.read_to_end(MESSAGE.len()).await.expect("an echo");
        assert_eq!(echo, MESSAGE);
        begun.elapsed()
    }
}
