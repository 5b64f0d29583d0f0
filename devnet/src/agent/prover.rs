//! Makes proofs, so many at a time (`proof.workerThreads`).

use super::{MAX_WORKERS, core::ToProve};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{Scheme, statement_agent},
    primitives::{Address, Hash},
    proof::{Prover, ProvingKey, Statement, mock},
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};

/// A pool of provers.
pub(super) struct Provers {
    /// As the chain has it.
    scheme: Scheme,
    seed: [u8; 32],
    agent: [u8; 32],
    prover: Arc<OnceLock<Prover>>,
    places: Arc<Semaphore>,
    workers: Mutex<usize>,
}

/// A proof to be made.
pub(super) struct Order {
    pub(super) task: Hash,
    pub(super) what: Box<ToProve>,
    /// What blinds it.
    pub(super) seed: [u8; 32],
    /// How long it takes beside the time to make it.
    pub(super) latency: Duration,
    /// Whether the prover dies in the middle of its work.
    pub(super) crash: bool,
}

impl Provers {
    pub(super) fn new(scheme: Scheme, seed: [u8; 32], agent: &Address, workers: u64) -> Self {
        let this = Self {
            scheme,
            seed,
            agent: statement_agent(agent),
            prover: Arc::default(),
            places: Arc::new(Semaphore::new(0)),
            workers: Mutex::new(0),
        };
        this.set_workers(workers);
        this
    }

    /// What makes the proofs: `mock` proves nothing.
    pub(super) const fn generator(&self) -> &'static str {
        match self.scheme {
            Scheme::Groth16(_) => "groth16",
            Scheme::Mock(_) => "mock",
        }
    }

    /// Changes how many proofs are made at a time; those under way are finished.
    pub(super) fn set_workers(&self, workers: u64) {
        let wanted = usize::try_from(workers).unwrap_or(MAX_WORKERS).clamp(1, MAX_WORKERS);
        let mut workers = self.workers.lock();
        if wanted > *workers {
            self.places.add_permits(wanted - *workers);
        } else if wanted < *workers {
            let (places, fewer) = (self.places.clone(), *workers - wanted);
            // Taken for good as they come free.
            tokio::spawn(async move {
                let fewer = u32::try_from(fewer).unwrap_or(u32::MAX);
                if let Ok(taken) = places.acquire_many_owned(fewer).await {
                    taken.forget();
                }
            });
        }
        *workers = wanted;
    }

    /// The proof's bytes and how long it took, in ms; `None`: its prover has died. `begins` is
    /// called when one has time for it.
    pub(super) async fn prove(
        &self,
        order: Order,
        begins: impl FnOnce(),
    ) -> Option<Result<(Vec<u8>, u64), String>> {
        let Ok(_place) = self.places.acquire().await else { return None };
        begins();
        let begun = Instant::now();
        if order.crash {
            tokio::time::sleep(order.latency / 2).await;
            tracing::warn!(task = %order.task, "the prover dies, as its pipeline wants");
            return None;
        }
        let (seed, agent, prover) = (self.seed, self.agent, self.prover.clone());
        let mock_key = match &self.scheme {
            Scheme::Mock(key) => Some(*key),
            Scheme::Groth16(_) => None,
        };
        let (ToProve { task, witness, says }, blinding) = (*order.what, order.seed);
        let made = spawn_blocking(move || match mock_key {
            Some(key) => mock::prove(&key, &Statement::of(&task, &agent, &witness)),
            None => {
                let prover = prover.get_or_init(|| Prover::new(ProvingKey::setup(&seed)));
                prover.prove(&task, &agent, &witness, &blinding).to_bytes()
            }
        });
        let mut made = made.await.map_err(|error| format!("the prover failed: {error}"));
        if let (Ok(proof), Some(says)) = (&mut made, says) {
            says.put_into(proof);
        }
        tokio::time::sleep_until(begun + order.latency).await;
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(made.map(|proof| (proof.to_vec(), took)))
    }
}
