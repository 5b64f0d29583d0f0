//! One validator: chain, mempool, consensus and its service to runners, in one tree of tasks.
//!
//! The same code runs in real time and in the simulator: the runtime and the network are
//! parameters. Ending the tree is a stop and a crash alike: nothing is flushed, and a start finds
//! everything that was acknowledged.

use crate::{
    chain::{
        known::Known,
        ledger::{Ledger, LedgerError},
        mempool::{Mempool, MempoolError},
        reveals::{self, Exchange},
    },
    consensus::{
        EngineError,
        application::TakesPart,
        channels::quota,
        engine,
        held::{Counters, Held},
        hurry::Hurry,
        network::Network,
        presence::RunnerView,
        scheme::{Committee, CommitteeError},
        timing::{FastForward, Timing},
    },
};
use commonware_cryptography::ed25519::PrivateKey;
use commonware_macros::select;
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage};
use cowboy_engine::{
    chain::{Genesis, GenesisError, SignedTransaction},
    primitives::Hash,
};
use futures::future::BoxFuture;
use rand_core::CryptoRng;
use std::sync::Arc;
use tracing::Instrument as _;

/// The configuration of a validator.
pub struct ValidatorConfig<E> {
    /// Its name: the prefix of its storage partitions (letters, digits, `-`, `_`).
    pub name: String,
    pub key: PrivateKey,
    pub genesis: Arc<Genesis>,
    pub timing: Timing,
    /// Suspends the block time; validators in one process may share it.
    pub fast_forward: FastForward,
    /// For the files of the runtime that the validator is started on.
    pub hurry: Hurry,
    pub ledger: Ledger,
    /// Transactions by hash; validators in one process may share them.
    pub known: Known,
    pub view: Arc<dyn RunnerView>,
    /// The service to runners, which runs in the validator's tree of tasks.
    pub gateway: Option<RunnerService<E>>,
}

/// Serves runners until the validator ends.
pub type RunnerService<E> = Box<dyn FnOnce(E, Services) -> BoxFuture<'static, ()> + Send>;

/// A validator's interfaces for others. Clones share them.
#[derive(Clone)]
pub struct Services {
    pub name: Arc<str>,
    pub ledger: Ledger,
    pub mempool: Mempool,
    pub reveals: Exchange,
    held: Held,
    takes_part: TakesPart,
}

impl Services {
    /// Adds a transaction to the mempool and gossips it; returns its hash.
    pub fn submit(&self, transaction: SignedTransaction) -> Result<Hash, MempoolError> {
        let hash = transaction.hash();
        self.mempool.submit(transaction, &self.ledger.newest().state)?;
        Ok(hash)
    }

    pub fn counters(&self) -> Counters {
        self.held.counters()
    }

    pub fn takes_part(&self) -> bool {
        self.takes_part.get()
    }
}

/// Why a validator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Committee(#[from] CommitteeError),
}

/// A running validator.
pub struct ValidatorHandle {
    services: Services,
    task: Handle<EngineError>,
}

impl ValidatorHandle {
    pub const fn services(&self) -> &Services {
        &self.services
    }

    /// Ends the validator and waits until it has ended. It may be started again over the same
    /// storage, in this process too.
    pub async fn stop(self) {
        self.task.abort();
        // The result of an aborted task is of no interest.
        let _ = self.task.await;
    }

    /// Resolves when the validator ends on its own, which is a failure.
    pub async fn ended(&mut self) -> EngineError {
        match (&mut self.task).await {
            Ok(error) => error,
            Err(error) => EngineError::Ended { part: "validator", error: error.to_string() },
        }
    }
}

/// Starts a validator: reads its chain, then runs it in the background.
pub fn start_validator<E: Clock + CryptoRng + Spawner + Storage + Metrics, N: Network<E>>(
    context: &E,
    config: ValidatorConfig<E>,
    network: N,
) -> Result<ValidatorHandle, StartError> {
    let ValidatorConfig {
        name,
        key,
        genesis,
        timing,
        fast_forward,
        hurry,
        ledger,
        known,
        view,
        gateway,
    } = config;
    Committee::of(genesis.chain_id(), &genesis.validators)?;
    let (exchange, port) = reveals::exchange();
    let services = Services {
        name: name.as_str().into(),
        takes_part: TakesPart::default(),
        ledger,
        mempool: Mempool::new(known),
        reveals: exchange,
        held: Held::default(),
    };
    let consensus = engine::EngineConfig {
        name: name.clone(),
        key,
        genesis: genesis.block()?,
        timing,
        fast_forward,
        hurry,
        ledger: services.ledger.clone(),
        mempool: services.mempool.clone(),
        reveals: port,
        view,
        held: services.held.clone(),
        takes_part: services.takes_part.clone(),
    };
    let context = context.child("validator").with_attribute("name", &name);
    let shared = services.clone();
    // All log lines of a validator's own code name the validator.
    let span = tracing::info_span!(parent: None, "validator", %name);
    let task = context
        .spawn(move |context| run(context, consensus, network, gateway, shared).instrument(span));
    Ok(ValidatorHandle { services, task })
}

async fn run<E: Clock + CryptoRng + Spawner + Storage + Metrics, N: Network<E>>(
    context: E,
    consensus: engine::EngineConfig,
    network: N,
    gateway: Option<RunnerService<E>>,
    services: Services,
) -> EngineError {
    let endpoint = network.connect(context.child("network"), quota()).await;
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(error) => return error.into(),
    };
    let serving = async {
        match gateway {
            Some(gateway) => gateway(context.child("gateway"), services).await,
            None => std::future::pending().await,
        }
    };
    select! {
        error = engine::run(context.child("consensus"), consensus, endpoint) => error,
        () = serving => EngineError::Ended { part: "gateway", error: "it returned".into() },
    }
}
