//! `runner register` and `deregister`: add and remove entries of the registry.

use crate::{
    commands::{
        account::Inclusion,
        devnet::saved_plan,
        transaction::{self, Signer},
    },
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::amount,
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    orchestrator::genesis::{RUNNER_BALANCE, genesis},
    runner::key::{self, KeyFileError},
    topology::{FAUCET, MAX_CONCURRENT_JOBS, Name, load_executors},
    types::{AddressText, ErrorCode, Runner as Entry},
};
use cowboy_engine::{
    chain::{
        GenesisRunner, Payload, Transaction,
        transaction::{RegisterRunner, Transfer},
    },
    primitives::{CBY, SecretKey, Wei},
    registry::{Capabilities, JobKind, MIN_STAKE},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// The default price per second of computing, as in a topology.
const PRICE: Wei = Wei::new(CBY / 1_000);
/// The default number of jobs at a time, as in a topology.
const MAX_JOBS: u32 = 4;

/// `runner register`.
#[derive(Debug, Args)]
pub struct Register {
    /// The runner's name in the devnet's topology
    #[arg(required_unless_present = "key_file", conflicts_with = "key_file")]
    #[arg(add = ArgValueCandidates::new(complete::runners))]
    runner: Option<Name>,
    /// Register the holder of this key instead: 64 hex digits, created if the file does not exist
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The stake to lock, from its account [default: as in the topology, with a key file 10000cby]
    #[arg(long, value_name = "AMOUNT")]
    stake: Option<Wei>,
    /// The price per second of computing [default: as in the topology, with a key file 0.001cby]
    #[arg(long, value_name = "AMOUNT")]
    price: Option<Wei>,
    /// With --key-file: the kinds of jobs it takes [default: those it can execute]
    #[arg(long, value_name = "KIND,KIND", value_delimiter = ',', value_parser = kind)]
    #[arg(conflicts_with = "runner", add = ArgValueCandidates::new(complete::job_kinds))]
    kinds: Option<Vec<JobKind>>,
    /// With --key-file: a file that configures executors beyond requests and commands, as for
    /// `runner start`: the contents of `runners[].executors` in a topology
    #[arg(long, value_name = "FILE", conflicts_with = "runner")]
    executors: Option<PathBuf>,
    /// With --key-file: declare that it runs in a trusted execution environment
    #[arg(long, conflicts_with = "runner")]
    tee: bool,
    /// With --key-file: maximum number of jobs at a time [default: 4]
    #[arg(long, value_name = "N", conflicts_with = "runner")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_CONCURRENT_JOBS as i64))]
    max_jobs: Option<u32>,
    /// With --key-file: the account that pays what it lacks for stake and fees [default: faucet]
    #[arg(long, value_name = "ACCOUNT", conflicts_with = "runner")]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    from: Option<String>,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// `runner deregister`.
#[derive(Debug, Args)]
pub struct Deregister {
    #[command(flatten)]
    holder: Holder,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// The runner whose registration is meant.
#[derive(Debug, Args)]
pub struct Holder {
    /// The runner's name in the devnet's topology
    #[arg(required_unless_present = "key_file", conflicts_with = "key_file")]
    #[arg(add = ArgValueCandidates::new(complete::runners))]
    runner: Option<Name>,
    /// The holder of this key, instead of a name
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Holder {
    /// The key from the key file, or of a runner that the devnet starts.
    pub fn key(&self, cx: &Context) -> Result<SecretKey, CliError> {
        match (&self.key_file, &self.runner) {
            (Some(file), _) => key::read(file).map_err(refused),
            (None, Some(runner)) => Ok(of_topology(cx, runner)?.0),
            (None, None) => unreachable!("one of the two is required"),
        }
    }
}

impl Register {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let deadline = Deadline::after(self.inclusion.timeout);
        let (key, payload) = match (&self.key_file, &self.runner) {
            (Some(file), _) => self.of_key_file(cx, file, deadline).await?,
            (None, Some(runner)) => {
                let (key, genesis) = of_topology(cx, runner)?;
                let payload = RegisterRunner {
                    pubkey: genesis.pubkey,
                    stake: self.stake.unwrap_or(genesis.stake),
                    capabilities: genesis.capabilities,
                    price_per_second: self.price.unwrap_or(genesis.price_per_second),
                };
                (key, payload)
            }
            (None, None) => unreachable!("one of the two is required"),
        };
        send(cx, key, Payload::RegisterRunner(payload), deadline).await
    }

    /// The holder of a key file, funded with the money that it needs.
    async fn of_key_file(
        &self,
        cx: &Context,
        file: &Path,
        deadline: Deadline,
    ) -> Result<(SecretKey, RegisterRunner), CliError> {
        let capabilities = self.capabilities()?;
        // Without a devnet that answers, no key file is created either.
        let client = cx.client()?;
        client.head().await?;
        let (key, made) = key::read_or_make(file).map_err(refused)?;
        if made {
            cx.ui.note(&format!("{}: a new key, of {}", file.display(), key.address()));
        }
        let address = AddressText::from(key.address());
        match client.runner(&address.to_string()).await {
            Ok(_) => {
                let what = format!("runner {address} is registered already");
                return Err(CliError::new(Exit::Conflict, what).hint(format!(
                    "start it: cowboyctl runner start --key-file {}",
                    file.display()
                )));
            }
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        let payload = RegisterRunner {
            pubkey: key.public_key(),
            stake: self.stake.unwrap_or(MIN_STAKE),
            capabilities,
            price_per_second: self.price.unwrap_or(PRICE),
        };
        self.fund(cx, &client, &key, &payload, deadline).await?;
        Ok((key, payload))
    }

    /// The capabilities to register: the kinds that the runner can execute, and its models and
    /// servers.
    fn capabilities(&self) -> Result<Capabilities, CliError> {
        let executors = self.executors.as_deref().map(load_executors).transpose()?;
        let executors = executors.unwrap_or_default();
        let kinds: BTreeSet<JobKind> = match &self.kinds {
            Some(kinds) => kinds.iter().copied().collect(),
            None => executors.kinds(),
        };
        match kinds.iter().find_map(|kind| Some((*kind, executors.lacks(*kind)?))) {
            Some((kind, lacking)) => Err(cannot_execute(kind, lacking)),
            None => Ok(Capabilities {
                tee: self.tee,
                ..executors.capabilities(kinds, self.max_jobs.unwrap_or(MAX_JOBS))
            }),
        }
    }

    /// Pays the runner what it lacks for its stake and fees, plus a topology runner's initial
    /// balance for heartbeats.
    async fn fund(
        &self,
        cx: &Context,
        client: &Client,
        key: &SecretKey,
        payload: &RegisterRunner,
        deadline: Deadline,
    ) -> Result<(), CliError> {
        let parameters = client.parameters().await?;
        let account = client.account(&AddressText::from(key.address()).to_string()).await?;
        let transaction = Transaction::with_limits(
            parameters.chain_id.0.0,
            account.next_nonce,
            *parameters.cycle_basefee,
            *parameters.cell_basefee,
            Payload::RegisterRunner(payload.clone()),
        );
        let fees = transaction.fees;
        let cycles = fees.max_fee_per_cycle.saturating_mul(transaction.cycle_limit.get().into());
        let cells = fees.max_fee_per_cell.saturating_mul(transaction.cell_limit.get().into());
        let needed = payload.stake.saturating_add(cycles).saturating_add(cells);
        if *account.balance >= needed {
            return Ok(());
        }
        let gift = needed.saturating_add(RUNNER_BALANCE).saturating_sub(*account.balance);
        let giver = self.from.as_deref().unwrap_or(FAUCET);
        let from = Signer::find(&cx.running(None)?, giver)?;
        let transfer = Payload::Transfer(Transfer { to: key.address(), amount: gift });
        transaction::execute(cx.ui, client, &from, transfer, deadline).await?;
        cx.ui.note(&format!("{} from {giver} for stake and fees", amount(gift)));
        Ok(())
    }
}

impl Deregister {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let key = self.holder.key(cx)?;
        send(cx, key, Payload::DeregisterRunner, Deadline::after(self.inclusion.timeout)).await
    }
}

/// The error if a runner is to take jobs that it has no executor for.
pub fn cannot_execute(kind: JobKind, lacking: &str) -> CliError {
    let what = format!("the runner cannot execute jobs of kind {kind}: they need {lacking}");
    CliError::new(Exit::Usage, what)
        .hint("configure it in a file: --executors FILE; or leave the kind out: --kinds KIND,KIND")
}

pub fn kind(text: &str) -> Result<JobKind, String> {
    text.parse::<JobKind>().map_err(|error| error.to_string())
}

/// Adds what to do about a key file's error.
pub fn refused(error: KeyFileError) -> CliError {
    let what = error.to_string();
    match error {
        KeyFileError::Exposed { path, .. } => CliError::new(Exit::Usage, what).hint(format!(
            "other users may have read the key; make it private: chmod 600 {}",
            path.display()
        )),
        KeyFileError::Missing { path } => CliError::new(Exit::NotFound, what).hint(format!(
            "make and register one: cowboyctl runner register --key-file {}",
            path.display()
        )),
        KeyFileError::Malformed { .. } => CliError::new(Exit::Usage, what),
        KeyFileError::Io { .. } => CliError::failed(what),
    }
}

pub fn registered(entry: &Entry) -> Result<Capabilities, CliError> {
    let kinds: Result<BTreeSet<JobKind>, _> = entry.kinds.iter().map(|kind| kind.parse()).collect();
    let kinds = kinds.map_err(|error| CliError::failed(format!("the API's answer: {error}")))?;
    Ok(Capabilities {
        kinds: kinds.into_iter().collect(),
        max_concurrent_jobs: entry.max_concurrent_jobs,
        tee: entry.tee,
        models: entry.models.clone(),
        mcp_servers: entry.mcp_servers.clone(),
    })
}

/// A runner that the devnet starts: its key, and its registration at genesis.
fn of_topology(cx: &Context, runner: &Name) -> Result<(SecretKey, GenesisRunner), CliError> {
    let plan = saved_plan(&cx.running(None)?)?;
    let found = plan.and_then(|plan| {
        let key = plan.key(runner);
        let pubkey = key.public_key();
        let mut runners = genesis(&plan).runners.into_iter();
        Some((key, runners.find(|runner| runner.pubkey == pubkey)?))
    });
    found.ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("the devnet's topology has no runner `{runner}`"))
            .hint("for another runner use its key: --key-file FILE; see: cowboyctl runner ls")
    })
}

pub async fn send(
    cx: &Context,
    key: SecretKey,
    payload: Payload,
    deadline: Deadline,
) -> Result<(), CliError> {
    let signer = Signer::of(key);
    let outcome = transaction::execute(cx.ui, &cx.client()?, &signer, payload, deadline).await?;
    cx.ui.document(&outcome.transaction)
}
