//! A devnet without consensus: tests write the blocks, with real signatures on votes, and two of
//! the four validators run.

mod node;

use self::node::FixtureNode;
use crate::{
    api::{
        Backend, BackendConfig, Hooks, Running, Serving, Switch,
        backend::{Elsewhere, Membership, MembershipError, SaveError},
        bind,
        labels::Labels,
        server::{ServerLimits, start_within},
        start,
        steer::Steer,
    },
    chain::{known::Known, ledger::Ledger, mempool::Mempool},
    client::{BlockAt, Client},
    consensus::{
        Digest, Finalization,
        certificate::{self, from_finalization},
        scheme::{BitmapSource, Committee, Scheme},
    },
    faults::Faults,
    sample,
    storage::{Keep, ValidatorStore},
    topology::Name,
    types::{Bytes, ChainId, RunnerLoad, Snapshot, Text, TransactionRequest},
    validator::gateway::Submission,
    verification::{PresenceCheck, Root, SelectionCheck, VerificationError, presence, selection},
};
use commonware_consensus::{
    simplex::types::{Finalize, Proposal},
    types::{Epoch, Round, View},
};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
use commonware_parallel::Sequential;
use commonware_utils::non_empty;
use cowboy_engine::{
    chain::{
        self, Block, Certificate, Endowment, Executed, Genesis, GenesisRunner, GenesisValidator,
        Header, Params, Payload, SignedTransaction, State, Transaction,
        block::{certificates_root, certify, transactions_root},
        transaction::{SubmitResult, Transfer},
    },
    job::spec::{CommandWork, JobSpec, Work},
    presence::{Bitmap, ThresholdRule},
    primitives::{Address, Hash, Height, SecretKey, Wei},
    registry::{Capabilities, JobKind, MIN_STAKE},
    session::jobs::JobTable,
    wire::JobResult,
};
use futures::{FutureExt as _, future::pending};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc},
};

pub(super) const TOKEN: &str = "5ecret";
/// The time of block 0, Unix ms; block H is half a second after its parent.
pub(super) const START_MS: u64 = 1_790_000_000_000;
const VALIDATORS: u32 = 4;
const RUNNERS: u32 = 3;
/// Maximum number of results that wait in the fixture.
const HANDED_IN: usize = 2;

/// The key of an account or node.
pub(super) fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"api", name)
}

pub(super) fn address(name: &str) -> Address {
    key(name).address()
}

fn file(folder: &TempDir, validator: usize) -> PathBuf {
    folder.path().join(format!("{validator}.db"))
}

fn named(prefix: &str, count: u32) -> Vec<(String, Address)> {
    (0..count).map(|i| format!("{prefix}-{i}")).map(|name| (name.clone(), address(&name))).collect()
}

fn consensus_key(validator: u32) -> PrivateKey {
    PrivateKey::from_seed(validator.into())
}

fn validator(i: u32) -> GenesisValidator {
    GenesisValidator {
        pubkey: key(&format!("validator-{i}")).public_key(),
        consensus_key: consensus_key(i).public_key().as_ref().try_into().expect("32 bytes"),
    }
}

fn genesis(change: impl FnOnce(&mut Params)) -> Genesis {
    let mut params = Params::default();
    change(&mut params);
    let runner = |i: u32| GenesisRunner {
        pubkey: key(&format!("runner-{i}")).public_key(),
        stake: MIN_STAKE,
        capabilities: Capabilities::of(vec![JobKind::Http, JobKind::Custom], 2),
        price_per_second: Wei::cby(1),
    };
    Genesis {
        name: "api".into(),
        timestamp_ms: START_MS,
        params,
        validators: (0..VALIDATORS).map(validator).collect(),
        runners: (0..RUNNERS).map(runner).collect(),
        endowments: ["faucet", "dev-0", "runner-0"]
            .map(|name| Endowment { account: address(name), balance: Wei::cby(1_000_000) })
            .to_vec(),
    }
}

/// The answer of the process that saves a snapshot.
fn snapshot(name: &str) -> Snapshot {
    Snapshot {
        format: 1,
        snapshot: name.to_owned(),
        devnet: "api".to_owned(),
        chain_id: Text(ChainId(7)),
        height: 7,
        hash: Text(Hash([7; 32])),
        created_at: Text(Timestamp::from_millisecond(START_MS as i64).unwrap()),
        version: "0.0.0".to_owned(),
        files: 3,
        bytes: 4_096,
        halted_ms: Some(12),
    }
}

/// The presence that every validator votes for.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Option<Bitmap>>>);

impl BitmapSource for Seen {
    fn presence(&self, _: &[u8]) -> Bitmap {
        self.0.lock().unwrap().clone().expect("set before the first vote")
    }
}

/// A devnet, its API and a client with its token.
pub(super) struct Devnet {
    pub backend: Arc<Backend>,
    pub client: Client,
    pub url: String,
    /// Notified when a request asks for the devnet's end.
    pub shutdown: Arc<Notify>,
    /// The state after the newest block.
    pub state: State,
    /// The state's root after each block.
    roots: BTreeMap<Height, Hash>,
    genesis: Genesis,
    pub serving: Serving,
    /// The validators that can run, by number.
    parts: Arc<[Running; 2]>,
    /// The results that runners submitted to either validator.
    pub handed_in: mpsc::Receiver<Submission>,
    /// In the order of the validators' indices in votes.
    schemes: Vec<Scheme>,
    seen: Seen,
    /// The time of the API's clock, in Unix milliseconds.
    pub now_ms: Arc<AtomicU64>,
    /// The folder of the validators' stores.
    folder: TempDir,
}

impl Devnet {
    /// Validators 0 and 1 run; there is no block yet.
    pub async fn new() -> Self {
        Self::with_rule(ThresholdRule::Committee).await
    }

    pub async fn with_rule(rule: ThresholdRule) -> Self {
        Self::with(|params| params.threshold_rule = rule, Keep::default(), start).await
    }

    /// A devnet with other limits in its API.
    pub async fn within(limits: ServerLimits) -> Self {
        let start = |listener, backend| start_within(limits, listener, backend);
        Self::with(|_| (), Keep::default(), start).await
    }

    /// A devnet with other parameters.
    pub async fn of(change: impl FnOnce(&mut Params)) -> Self {
        Self::with(change, Keep::default(), start).await
    }

    /// A devnet whose validators drop old blocks.
    pub async fn keeping(keep: Keep) -> Self {
        Self::with(|_| (), keep, start).await
    }

    async fn with(
        change: impl FnOnce(&mut Params),
        keep: Keep,
        start: impl FnOnce(TcpListener, Arc<Backend>) -> Serving,
    ) -> Self {
        let genesis = genesis(change);
        let (state, seen) = (genesis.state().unwrap(), Seen::default());
        let committee = Arc::new(Committee::of(genesis.chain_id(), &genesis.validators).unwrap());
        let mut keys: Vec<_> = (0..VALIDATORS).map(consensus_key).collect();
        keys.sort_by_key(PrivateKey::public_key);
        let scheme = |key| Scheme::new(committee.clone(), key, Arc::new(seen.clone()));
        let folder = tempfile::tempdir().unwrap();
        let (results, handed_in) = mpsc::channel(HANDED_IN);
        let parts = Arc::new([0, 1].map(|validator| {
            let path = file(&folder, validator);
            let store = ValidatorStore::open(&path, genesis.chain_id()).unwrap();
            let store = Arc::new(store.keeping(keep));
            let ledger = Ledger::open(&genesis, store).unwrap();
            let (node, mempool) =
                (FixtureNode { validator, results: results.clone() }, Known::default());
            Running {
                ledger,
                reached: None,
                mempool: Mempool::new(mempool),
                node: Arc::new(node),
                process: None,
                quic: ([127, 0, 0, 1], 29_001).into(),
                p2p: ([127, 0, 0, 1], 29_002).into(),
            }
        }));
        let shutdown = Arc::new(Notify::new());
        let now_ms = Arc::new(AtomicU64::new(START_MS));
        let clock = now_ms.clone();
        let backend = Arc::new_cyclic(|backend: &std::sync::Weak<Backend>| {
            let (backend, parts, wake) = (backend.clone(), parts.clone(), shutdown.clone());
            let steered = backend.clone();
            let steer = move |name: &str, steer: Steer| {
                let backend = steered.upgrade().expect("the API holds it");
                let runs = backend.runner_runs(&address(name)) == Some(true);
                let max_concurrent = if let Steer::Limit(most) = steer { most } else { 2 };
                let load = JobTable::new(max_concurrent).signal(steer == Steer::Pause);
                let withdrawn =
                    if let Steer::Change(_, remove) = steer { remove } else { BTreeSet::new() };
                let told =
                    runs.then(|| Ok(RunnerLoad::new(name, address(name), &load, &withdrawn)));
                async { told }.boxed()
            };
            let switch = move |name: &str, wanted: Switch| {
                let backend = backend.upgrade().expect("the API holds it");
                let Some(slot) = backend.slot(name) else {
                    backend.set_runner_running(&address(name), wanted == Switch::Start);
                    if wanted == Switch::Start {
                        backend.faults().revived(name);
                    }
                    return async { Ok(()) }.boxed();
                };
                if wanted == Switch::Start {
                    backend.faults().revived(name);
                }
                match (wanted, name) {
                    (Switch::Stop | Switch::Kill, _) => slot.set_stopped(),
                    (_, "validator-0") => slot.set_running(parts[0].clone()),
                    (_, "validator-1") => slot.set_running(parts[1].clone()),
                    (_, "validator-3") => return pending().boxed(),
                    _ => return async { Err("its port is taken".to_owned()) }.boxed(),
                }
                async { Ok(()) }.boxed()
            };
            Backend::new(BackendConfig {
                name: "api".into(),
                genesis: genesis.clone(),
                block_time: Duration::from_millis(500),
                clock: Box::new(move || clock.load(Ordering::Relaxed)),
                pid: 42,
                started_at: Timestamp::from_millisecond(START_MS as i64).unwrap(),
                token: TOKEN.into(),
                accounts: ["faucet", "dev-0"].map(|name| (name.to_owned(), address(name))).into(),
                validators: (0..VALIDATORS)
                    .map(|index| (format!("validator-{index}"), validator(index)))
                    .collect(),
                runners: named("runner", RUNNERS),
                elsewhere: Elsewhere::default(),
                labels: Labels::new("", Box::new(|_| Ok(()))).unwrap(),
                compat: true,
                faults: Faults::new(7),
                speculation: None,
                hooks: Hooks {
                    switch: Box::new(switch),
                    steer: Box::new(steer),
                    membership: Box::new(|change| {
                        let answer = match change {
                            Membership::Join(Some(name)) if name.as_str() == "taken" => {
                                Err(MembershipError::Conflict("`taken` is taken".to_owned()))
                            }
                            Membership::Join(_) => Ok("validator-0".to_owned()),
                            Membership::Leave(name) => Ok(name),
                        };
                        async { answer }.boxed()
                    }),
                    peers: Box::new(|_| Ok(())),
                    upgrade: Box::new(|_, _| async { Ok(()) }.boxed()),
                    carry_out: Box::new(|| async { Ok(()) }.boxed()),
                    save: Box::new(|name| {
                        let answer = match name {
                            Some(name) if name.as_str() == "taken" => {
                                Err(SaveError::Conflict("there is a snapshot `taken`".to_owned()))
                            }
                            name => Ok(snapshot(name.as_ref().map_or("api-7", Name::as_str))),
                        };
                        async {
                            if answer.as_ref().is_ok_and(|saved| saved.snapshot == "large") {
                                // This is longer than other requests may take in tests of limits.
                                let takes = Duration::from_millis(200);
                                let _over = tokio::time::timeout(takes, pending::<()>()).await;
                            }
                            answer
                        }
                        .boxed()
                    }),
                    shutdown: Box::new(move || wake.notify_one()),
                },
            })
            .unwrap()
        });
        for (slot, running) in backend.slots().iter().zip(parts.iter()) {
            slot.set_running(running.clone());
        }
        for (_, runner) in named("runner", RUNNERS) {
            backend.set_runner_running(&runner, true);
        }
        let listener = bind(None).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = start(listener, backend.clone());
        let client = Client::new(&url).unwrap().with_token(TOKEN.to_owned());
        let schemes = keys.into_iter().map(scheme).collect();
        Self {
            backend,
            client,
            url,
            shutdown,
            roots: BTreeMap::from([(Height::GENESIS, state.root())]),
            genesis,
            state,
            serving,
            parts,
            handed_in,
            schemes,
            seen,
            now_ms,
            folder,
        }
    }

    /// The root of trust for its clients' verifications.
    pub fn root(&self) -> Root {
        let accounts = ["faucet", "dev-0"].map(|name| (name.to_owned(), address(name)));
        let nodes = named("validator", VALIDATORS).into_iter().chain(named("runner", RUNNERS));
        let names = accounts.into_iter().chain(nodes).collect();
        Root::new(self.genesis.clone(), names, "a fixture".to_owned()).unwrap()
    }

    /// P(H) as a client of this validator verifies it.
    pub async fn verify_presence(
        &self,
        validator: &str,
        at: BlockAt,
    ) -> Result<PresenceCheck, VerificationError> {
        presence::check(&self.at(validator), &self.root(), at, |_| ()).await
    }

    /// A job's draw as a client of validator 0 verifies it.
    pub async fn verify_selection(&self, job: &str) -> Result<SelectionCheck, VerificationError> {
        selection::check(&self.at("validator-0"), &self.root(), job, |_| ()).await
    }

    /// A client that reads from this validator.
    pub fn at(&self, validator: &str) -> Client {
        self.client.clone().with_node(Some(validator.to_owned()))
    }

    pub fn store(&self, validator: usize) -> &ValidatorStore {
        self.parts[validator].ledger.store()
    }

    /// Changes one row of validator 0's store behind its back.
    pub fn alter(&self, sql: &str, values: impl rusqlite::Params) {
        let connection = rusqlite::Connection::open(file(&self.folder, 0)).unwrap();
        assert_eq!(connection.execute(sql, values).unwrap(), 1, "{sql}");
    }

    pub fn mempool(&self, validator: usize) -> &Mempool {
        &self.parts[validator].mempool
    }

    /// A certificate of the newest block by the first three validators, which see `present`.
    pub fn certificate(&self, present: &[u32]) -> Certificate {
        self.certificate_by([present; 3])
    }

    /// A certificate of the newest block in which each of the three sees other runners.
    pub fn certificate_by(&self, present: [&[u32]; 3]) -> Certificate {
        let head = self.state.head();
        let len = self.state.order_for_votes_on(head.height).unwrap().len();
        let proposal = Proposal::<Digest>::new(
            Round::new(Epoch::new(head.round.epoch), View::new(head.round.view)),
            View::new(head.round.parent_view),
            certificate::digest(self.state.head_hash()),
        );
        let sign = |(scheme, present): (_, &[u32])| {
            *self.seen.0.lock().unwrap() = Some(Bitmap::from_fn(len, |i| present.contains(&i)));
            Finalize::sign(scheme, proposal.clone()).unwrap()
        };
        let votes: Vec<_> = self.schemes[..3].iter().zip(present).map(sign).collect();
        let finalization: Finalization =
            Finalization::from_finalizes(&self.schemes[0], non_empty![@&votes], &Sequential)
                .unwrap();
        from_finalization(&finalization)
    }

    /// A child of the newest block.
    fn block(&self, certificates: Vec<Certificate>, transactions: Vec<SignedTransaction>) -> Block {
        let head = self.state.head();
        let candidates = head.candidates(self.state.head_hash());
        let (certified, open) = certify(&candidates, certificates.iter().map(|c| c.block)).unwrap();
        let height = head.height.next();
        let newest = certified.last().filter(|height| **height > head.executed.height);
        let executed = newest.map_or(head.executed, |height| Executed {
            height: *height,
            state_root: self.roots[height],
        });
        let header = Header {
            height,
            parent: self.state.head_hash(),
            round: chain::Round {
                epoch: self.state.epoch_at(height),
                view: 2 * height.get(),
                parent_view: head.round.view,
            },
            proposer: self.state.committee()[0].consensus_key,
            timestamp_ms: head.timestamp_ms + 500,
            subset_epoch: self.state.childs_subset_epoch(),
            transactions_root: transactions_root(&transactions),
            certificates_root: certificates_root(&certificates),
            open,
            executed,
        };
        Block { header, certificates, transactions }
    }

    /// Makes the next block final on the running validators with these numbers.
    pub fn push_to(
        &mut self,
        validators: &[usize],
        certificates: Vec<Certificate>,
        transactions: Vec<SignedTransaction>,
    ) {
        let block = Arc::new(self.block(certificates, transactions));
        self.now_ms.store(block.header.timestamp_ms + 20, Ordering::Relaxed);
        for validator in validators {
            let ledger = &self.parts[*validator].ledger;
            let executed = ledger.commit(&block, block.header.timestamp_ms + 20).unwrap();
            self.state = executed.expect("a new block").execution.state.clone();
        }
        self.roots.insert(self.state.height(), self.state.root());
    }

    /// Makes the other validator's blocks final on this one.
    pub fn catch_up(&self, validator: usize) {
        let (behind, ahead) = (&self.parts[validator].ledger, &self.parts[1 - validator].ledger);
        for height in behind.head().height().get() + 1..=ahead.head().height().get() {
            let block = Arc::new(ahead.store().block(Height::new(height)).unwrap().unwrap());
            behind.commit(&block, block.header.timestamp_ms + 20).unwrap();
        }
    }

    /// A block with its parent's certificate, in which every runner is present.
    pub fn push(&mut self, transactions: Vec<SignedTransaction>) {
        let everybody: Vec<u32> = (0..RUNNERS).collect();
        let certified = self.state.height() > Height::GENESIS;
        let certificates = Vec::from_iter(certified.then(|| self.certificate(&everybody)));
        self.push_to(&[0, 1], certificates, transactions);
    }

    /// Blocks without transactions.
    pub fn push_empty(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.push(vec![]);
        }
    }

    /// A transaction of the account's next nonce.
    pub fn sign(&self, name: &str, payload: Payload) -> SignedTransaction {
        self.sign_at(name, self.state.account(&address(name)).nonce, payload)
    }

    pub fn sign_at(&self, name: &str, nonce: u64, payload: Payload) -> SignedTransaction {
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        Transaction::with_limits(self.state.chain_id(), nonce, cycle, cell, payload)
            .sign(&key(name))
    }

    /// Records and draws a job of `dev-0`.
    pub fn submit(&mut self, spec: JobSpec) -> Hash {
        let nonce = self.state.account(&address("dev-0")).nonce;
        let id = spec.job_id(&address("dev-0"), nonce);
        let signed = self.sign("dev-0", Payload::SubmitJob(Arc::new(spec)));
        self.push(vec![signed]);
        id
    }

    /// The runners drawn for a job.
    pub fn committee(&self, job: &Hash) -> Vec<Address> {
        self.state.job(job).unwrap().status.assignment().unwrap().committee.clone()
    }

    /// Makes the drawn runner's result final.
    pub fn finish(&mut self, job: &Hash, result: &[u8]) {
        let runner = self.committee(job)[0];
        let signer = (0..RUNNERS).map(|i| format!("runner-{i}")).find(|n| address(n) == runner);
        let digest = JobResult::digest(self.state.chain_id(), job, result);
        let payload = Payload::SubmitResult(SubmitResult {
            job_id: *job,
            runner,
            result: result.to_vec(),
            runner_signature: key(&signer.expect("a runner of this devnet")).sign(&digest),
        });
        let signed = self.sign("faucet", payload);
        self.push(vec![signed]);
    }

    /// Sends a GET request without the typed client.
    pub async fn get(&self, path: &str) -> reqwest::Response {
        reqwest::Client::builder()
            .no_proxy()
            .build()
            .unwrap()
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap()
    }
}

pub(super) fn transfer(to: &str, amount: Wei) -> Payload {
    Payload::Transfer(Transfer { to: address(to), amount })
}

/// The job `echo hi`, which every runner takes.
pub(super) fn spec() -> JobSpec {
    let mut spec = sample::spec(4);
    spec.work = Work::Custom(CommandWork {
        program: "echo".into(),
        args: vec!["hi".into()],
        env: vec![("A".into(), "1".into())],
        stdin: Some(vec![0xff]),
        delivery: None,
    });
    spec
}

/// A transaction as a request's body.
pub(super) fn request(signed: &SignedTransaction) -> TransactionRequest {
    TransactionRequest { transaction: Text(Bytes(signed.to_bytes())) }
}
