//! Makes proofs, at most `proof.workerThreads` at a time, each in a separate process: a killed
//! prover affects no other, and its proof is made again.
//!
//! Processes are started on demand and make one proof after another. Their proving key is computed
//! once, here, and handed to each. Proofs are made in threads of this process when there is no
//! program to start, as in a library user's process, or when it cannot be started.

mod maker;
pub(super) mod process;

use self::{
    maker::{Maker, Secret},
    process::{Lost, Process, ProofRequest, ProverStartError},
};
use super::{MAX_WORKERS, core::ToProve};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{Scheme, statement_agent},
    primitives::{Address, Hash},
    proof::PROOF_BYTES,
};
use std::{
    io,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::spawn_blocking,
    time::Instant,
};

pub(super) struct Provers {
    scheme: Scheme,
    secret: Secret,
    maker: OnceCell<Vec<u8>>,
    agent: [u8; 32],
    /// The program to start as a prover; `None` once it may not be started.
    program: Mutex<Option<PathBuf>>,
    idle: Mutex<Vec<Process>>,
    here: Arc<OnceLock<Maker>>,
    places: Arc<Semaphore>,
    workers: Mutex<usize>,
}

pub(super) struct Order {
    pub(super) task: Hash,
    pub(super) what: Box<ToProve>,
    pub(super) seed: [u8; 32],
    pub(super) latency: Duration,
    /// Whether the prover dies unnoticed in the middle of its work.
    pub(super) crash: bool,
    pub(super) attempts: u64,
}

impl Provers {
    /// A pool without processes. `program` is started with [`process::ARGUMENT`].
    pub(super) fn new(
        scheme: Scheme,
        seed: [u8; 32],
        agent: &Address,
        program: Option<PathBuf>,
        workers: u64,
    ) -> Self {
        let this = Self {
            secret: Secret::of(&scheme, seed),
            scheme,
            maker: OnceCell::new(),
            agent: statement_agent(agent),
            program: Mutex::new(program),
            idle: Mutex::default(),
            here: Arc::default(),
            places: Arc::new(Semaphore::new(0)),
            workers: Mutex::new(0),
        };
        this.set_workers(workers);
        this
    }

    /// The name of the proof generator; `mock` proves nothing.
    pub(super) const fn generator(&self) -> &'static str {
        match self.scheme {
            Scheme::Groth16(_) => "groth16",
            Scheme::Mock(_) => "mock",
        }
    }

    /// Changes the number of proofs made at a time; running ones are finished.
    pub(super) fn set_workers(&self, workers: u64) {
        let wanted = usize::try_from(workers).unwrap_or(MAX_WORKERS).clamp(1, MAX_WORKERS);
        let mut workers = self.workers.lock();
        if wanted > *workers {
            self.places.add_permits(wanted - *workers);
        } else if wanted < *workers {
            let (places, fewer) = (self.places.clone(), *workers - wanted);
            // Permits are removed as they become free.
            tokio::spawn(async move {
                let fewer = u32::try_from(fewer).unwrap_or(u32::MAX);
                if let Ok(taken) = places.acquire_many_owned(fewer).await {
                    taken.forget();
                }
            });
        }
        *workers = wanted;
        self.idle.lock().truncate(wanted);
    }

    /// Ends all idle processes; the others end with their proofs.
    pub(super) fn close(&self) {
        self.program.lock().take();
        self.idle.lock().clear();
    }

    /// The proof's bytes and how long it took, in ms; `None` if its prover has died unnoticed.
    /// Dropping the future kills the prover. `begins` is called when a prover is free, `lost` with
    /// each attempt whose prover has died.
    pub(super) async fn prove(
        &self,
        order: Order,
        begins: impl FnOnce(),
        lost: impl Fn(u64, &str),
    ) -> Option<Result<(Vec<u8>, u64), String>> {
        let Ok(_place) = self.places.acquire().await else { return None };
        let Order { task, what, seed, latency, crash, attempts } = order;
        if crash {
            begins();
            tokio::time::sleep(latency / 2).await;
            tracing::warn!(%task, "the prover dies, because its task has the fault `crash`");
            return None;
        }
        let request = ProofRequest::of(&what, self.agent, seed, latency);
        let first = self.process().await;
        begins();
        let (begun, mut attempt, mut process) = (Instant::now(), 1, first);
        let mut made = loop {
            let outcome = match process {
                Ok(Some(prover)) => self.prove_with(prover, &request).await,
                Ok(None) => {
                    let made = self.prove_here(request).await;
                    tokio::time::sleep_until(begun + latency).await;
                    break made;
                }
                Err(error) => Err(error),
            };
            let error = match outcome {
                Ok(proof) => break Ok(proof),
                Err(error) => error,
            };
            lost(attempt, &error.to_string());
            if attempt >= attempts {
                break Err(format!("{error}, at attempt {attempt} of {attempts}"));
            }
            attempt += 1;
            process = self.process().await;
        };
        if let (Ok(proof), Some(says)) = (&mut made, what.says) {
            says.put_into(proof);
        }
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(made.map(|proof| (proof.to_vec(), took)))
    }

    /// Has a process make a proof, and keeps the process for the next one.
    async fn prove_with(
        &self,
        mut prover: Process,
        request: &ProofRequest,
    ) -> Result<[u8; PROOF_BYTES], Lost> {
        let proof = prover.prove(request).await?;
        let (workers, open) = (*self.workers.lock(), self.program.lock().is_some());
        let mut idle = self.idle.lock();
        if open && idle.len() < workers {
            idle.push(prover);
        }
        Ok(proof)
    }

    /// An idle process or a new one. `None`: proofs are made in this process.
    async fn process(&self) -> Result<Option<Process>, Lost> {
        while let Some(mut idle) = self.idle.lock().pop() {
            if idle.is_alive() {
                return Ok(Some(idle));
            }
        }
        let Some(program) = self.program.lock().clone() else { return Ok(None) };
        let secret = self.secret;
        let made =
            self.maker.get_or_try_init(|| spawn_blocking(move || Maker::new(secret).to_bytes()));
        let started = match made.await {
            Ok(maker) => Process::start(&program, maker, &self.scheme.key_id()).await,
            Err(error) => Err(io::Error::other(error).into()),
        };
        match started {
            Ok(started) => Ok(Some(started)),
            Err(ProverStartError::Lost(lost)) => Err(lost),
            Err(error) => {
                if self.program.lock().take().is_some() {
                    tracing::warn!(
                        program = %program.display(), %error,
                        "no prover can be started: proofs are made in the devnet's own process"
                    );
                }
                Ok(None)
            }
        }
    }

    async fn prove_here(&self, request: ProofRequest) -> Result<[u8; PROOF_BYTES], String> {
        let (here, secret) = (self.here.clone(), self.secret);
        let made = spawn_blocking(move || {
            let ProofRequest { task, agent, witness, seed, .. } = request;
            here.get_or_init(|| Maker::new(secret)).prove(&task, &agent, &witness, &seed)
        });
        made.await.map_err(|error| format!("the prover failed: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{
        chain::statement_task,
        proof::{Element, Statement, Witness},
    };

    #[tokio::test]
    async fn without_a_program_proofs_are_made_here() {
        let (scheme, agent) = (Scheme::Mock([4; 32]), Address([2; 20]));
        for program in [None, Some("/nowhere/prover".into())] {
            let provers = Provers::new(scheme.clone(), [0; 32], &agent, program, 1);
            let witness = Witness { output: [5, 6, 7, 8].map(Element::from), salt: 9.into() };
            let task = statement_task(&Hash([1; 32]), &Hash([3; 32]));
            let order = Order {
                task: Hash([1; 32]),
                what: Box::new(ToProve { task, witness, says: None }),
                seed: [6; 32],
                latency: Duration::ZERO,
                crash: false,
                attempts: 3,
            };
            let lost = |_: u64, error: &str| panic!("{error}");
            let proof = provers.prove(order, || (), lost).await.unwrap().unwrap().0;
            let statement = Statement::of(&task, &statement_agent(&agent), &witness);
            assert_eq!(scheme.verify(&statement, &proof), Ok(()));
        }
    }
}
