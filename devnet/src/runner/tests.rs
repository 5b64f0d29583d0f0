//! Runners and gateways over simulated links, around a chain whose blocks the test makes.

mod abilities;
mod trust;

use super::{
    node::Activity,
    worker::{Pretended, TaskProgress, WorkCancelled},
    *,
};
use crate::{
    sample::{self, key, spec, validator_name},
    transport::simulated::{Fabric, SimulatedLink},
    validator::{
        gateway::{self, Gateway, Submission},
        limiter::BucketLimits,
    },
};
use commonware_runtime::{
    Clock as _, Handle, Runner as _, Spawner as _, Supervisor as _, deterministic,
};
use cowboy_engine::{
    chain::{
        Block, Certificate, Endowment, Executed, Genesis, GenesisValidator, Header, Payload, Round,
        SignedTransaction, State, Transaction, Vote,
        block::{certificates_root, certify, transactions_root},
        execute,
        transaction::SetPhase,
    },
    job::spec::{JobSpec, JobStatus},
    presence::{Phase, subset},
    primitives::{Hash, Height, PublicKey, Wei, codec::to_vec, keccak256},
    registry::JobKind,
    wire::CancelReason,
};
use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::sync::{broadcast, mpsc, watch};

type Context = deterministic::Context;

const BLOCK_TIME: Duration = Duration::from_millis(250);
const SHORT: SimulatedLink =
    SimulatedLink { latency: Duration::from_millis(2), jitter: Duration::ZERO, loss: 0.0 };
const LONG: SimulatedLink = SimulatedLink {
    latency: Duration::from_millis(20),
    jitter: Duration::from_millis(60),
    loss: 0.02,
};

fn public(name: &str) -> PublicKey {
    key(name).public_key()
}

/// Runs a test and returns the hash of the run's audit log.
fn run<F: Future<Output = ()>>(seed: u64, test: impl FnOnce(Context) -> F) -> String {
    let config =
        deterministic::Config::new().with_seed(seed).with_timeout(Some(Duration::from_secs(3_600)));
    deterministic::Runner::new(config).start(async |context| {
        let audit = context.child("audit");
        test(context).await;
        audit.auditor().state()
    })
}

/// The simulation's chain, with balances for validators and alice.
fn genesis(validators: usize, runners: usize) -> Genesis {
    let mut genesis = sample::genesis(validators, runners);
    let names = (0..validators).map(validator_name).chain(["alice".to_owned()]);
    genesis.endowments.extend(
        names.map(|name| Endowment { account: key(&name).address(), balance: Wei::cby(1_000_000) }),
    );
    genesis
}

/// A validator without consensus.
struct Node {
    name: String,
    gateway: Gateway,
    handed_in: mpsc::Receiver<Submission>,
    serving: Handle<()>,
}

struct Net {
    context: Context,
    fabric: Fabric<Context>,
    state: State,
    nodes: Vec<Node>,
    pending: Vec<SignedTransaction>,
}

impl Net {
    fn new(context: Context, link: SimulatedLink, genesis: &Genesis) -> Self {
        Self::limited(context, link, genesis, BucketLimits::default())
    }

    fn limited(
        context: Context,
        link: SimulatedLink,
        genesis: &Genesis,
        limits: BucketLimits,
    ) -> Self {
        let fabric = Fabric::new(context.child("net"), link);
        let state = genesis.state().unwrap();
        let mut net = Self { context, fabric, state, nodes: Vec::new(), pending: Vec::new() };
        for i in 0..genesis.validators.len() {
            let node = net.node(&format!("validator-{i}"), limits);
            net.nodes.push(node);
        }
        net
    }

    fn node(&self, name: &str, limits: BucketLimits) -> Node {
        let config = gateway::GatewayConfig { key: key(name), limits, state: self.state.clone() };
        let (gateway, handed_in) = Gateway::new(config);
        let listener = self.fabric.listen(public(name)).unwrap();
        let served = gateway.clone();
        let serving = self
            .context
            .child("gateway")
            .spawn(|context| async move { served.serve(context, listener).await });
        Node { name: name.to_owned(), gateway, handed_in, serving }
    }

    fn config(&self, name: &str) -> RunnerConfig {
        let address = |v: &GenesisValidator| ValidatorAddress {
            key: v.pubkey.clone(),
            address: SocketAddr::new(Fabric::<Context>::address(&v.pubkey), 0),
        };
        let validators: Vec<_> = self.state.validators().iter().map(address).collect();
        RunnerConfig {
            chain_id: self.state.chain_id(),
            key: key(name),
            known: targets(&key(name).public_key(), &validators),
            agents: BTreeSet::new(),
            kinds: [JobKind::Custom].into(),
            by_hand: false,
            withdrawn: [].into(),
            max_concurrent_jobs: 4,
            polling: None,
            pledges: None,
        }
    }

    /// Starts a runner whose jobs take `delay`.
    fn start(&self, name: &str, delay: Duration) -> Runner {
        self.start_with(self.config(name), delay)
    }

    fn start_with(&self, config: RunnerConfig, delay: Duration) -> Runner {
        let dialer = self.fabric.dialer(config.key.public_key());
        let worker = Pretended { clock: self.context.child("worker"), delay };
        start(self.context.child("runner"), config, dialer, worker)
    }

    /// Validators of the runner's subset, nearest first.
    fn subset(&self, runner: &str) -> Vec<usize> {
        let keys: Vec<_> = self.nodes.iter().map(|node| public(&node.name)).collect();
        subset::of(&public(runner), &keys)
    }

    fn sign(&self, name: &str, ahead: u64, payload: Payload) -> SignedTransaction {
        let nonce = self.state.account(&key(name).address()).nonce + ahead;
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        Transaction::with_limits(self.state.chain_id(), nonce, cycle, cell, payload)
            .sign(&key(name))
    }

    /// Puts a job of Alice's into the next block.
    fn submit(&mut self, spec: JobSpec) -> Hash {
        let alice = key("alice").address();
        let ahead = self.pending.len() as u64;
        let id = spec.job_id(&alice, self.state.account(&alice).nonce + ahead);
        self.pending.push(self.sign("alice", ahead, Payload::SubmitJob(Arc::new(spec))));
        id
    }

    /// Makes the next block: votes are cast, results are submitted, and every node is told.
    async fn block(&mut self) {
        self.context.sleep(BLOCK_TIME).await;
        let head = self.state.head().clone();
        let mut certificates = Vec::new();
        if let Some(order) = self.state.order_for_votes_on(head.height) {
            let votes = (0..)
                .zip(&self.nodes)
                .map(|(validator, node)| Vote {
                    validator,
                    presence: node.gateway.presence_at(head.height, &self.state, order.as_slice()),
                    signature: [0; 64],
                })
                .collect();
            certificates.push(Certificate {
                block: self.state.head_hash(),
                round: head.round,
                votes,
            });
        }
        let mut transactions = std::mem::take(&mut self.pending);
        for i in 0..self.nodes.len() {
            let name = self.nodes[i].name.clone();
            let submitted: Vec<_> =
                std::iter::from_fn(|| self.nodes[i].handed_in.try_recv().ok()).collect();
            for (ahead, handed) in (0..).zip(submitted) {
                let payload = match handed {
                    Submission::Result(result) => Payload::SubmitResult(result),
                    Submission::Failure(report) => Payload::ReportFailure(report),
                    other => panic!("{other:?}"),
                };
                transactions.push(self.sign(&name, ahead, payload));
            }
        }
        let candidates = head.candidates(self.state.head_hash());
        let (_, open) = certify(&candidates, certificates.iter().map(|c| c.block)).unwrap();
        let height = head.height.next();
        let header = Header {
            height,
            parent: self.state.head_hash(),
            round: Round { epoch: 0, view: height.get(), parent_view: head.height.get() },
            proposer: [1; 32],
            timestamp_ms: head.timestamp_ms + 250,
            subset_epoch: self.state.childs_subset_epoch(),
            transactions_root: transactions_root(&transactions),
            certificates_root: certificates_root(&certificates),
            open,
            executed: Executed { height: head.height, state_root: self.state.root() },
        };
        let block = Block { header, certificates, transactions };
        self.state = execute(&self.state, &block).unwrap().state;
        for node in &self.nodes {
            node.gateway.advance(self.state.clone());
            node.gateway.tell();
        }
    }

    async fn blocks(&mut self, count: usize) {
        for _ in 0..count {
            self.block().await;
        }
    }

    /// Makes blocks until the job is over, at most 60.
    async fn until_over(&mut self, job_id: &Hash) -> JobStatus {
        for _ in 0..60 {
            if let Some(job) = self.state.job(job_id)
                && matches!(job.status, JobStatus::Verified(..) | JobStatus::Failed(_))
            {
                return job.status.clone();
            }
            self.block().await;
        }
        panic!("job {job_id} is {:?}", self.state.job(job_id));
    }

    /// Whether each validator sees the runner.
    fn seen(&self, runner: &str) -> Vec<bool> {
        let order = [key(runner).address()];
        let height = self.state.height().next();
        let seen = |node: &Node| node.gateway.presence_at(height, &self.state, &order).get(0);
        self.nodes.iter().map(seen).collect()
    }
}

fn started(activities: &mut broadcast::Receiver<Activity>) -> Vec<Hash> {
    std::iter::from_fn(|| activities.try_recv().ok())
        .filter_map(|activity| match activity {
            Activity::Started { job_id, .. } => Some(job_id),
            _ => None,
        })
        .collect()
}

fn said(activities: &mut broadcast::Receiver<Activity>) -> Vec<Activity> {
    std::iter::from_fn(|| activities.try_recv().ok()).collect()
}

const NO_TIME: Duration = Duration::ZERO;

#[test]
fn runners_are_present_at_their_whole_subset_and_nowhere_else() {
    run(1, async |context| {
        let mut net = Net::new(context, LONG, &genesis(7, 3));
        let runners: Vec<_> = (0..3).map(|i| net.start(&format!("runner-{i}"), NO_TIME)).collect();
        net.blocks(4).await;
        for (i, runner) in runners.iter().enumerate() {
            let name = format!("runner-{i}");
            let subset = net.subset(&name);
            assert_eq!(subset.len(), 4);
            let expected: Vec<_> = (0..7).map(|v| subset.contains(&v)).collect();
            assert_eq!(net.seen(&name), expected, "{name}");
            assert_eq!(*runner.count().borrow(), 4);
        }
        net.blocks(20).await;
        // Heights travel one way, and the runner believes the lower median.
        for runner in &runners {
            assert!(runner.head() >= Height::new(22), "{:?}", runner.head());
        }
    });
}

#[test]
fn a_job_is_done_once_and_its_result_is_on_the_chain() {
    for link in [SHORT, LONG] {
        run(1, async |context| {
            let mut net = Net::new(context, link, &genesis(4, 4));
            let runners: Vec<_> =
                (0..4).map(|i| net.start(&format!("runner-{i}"), BLOCK_TIME)).collect();
            let mut activities: Vec<_> = runners.iter().map(Runner::subscribe).collect();
            net.blocks(4).await;
            let job_id = net.submit(spec(20));
            let status = net.until_over(&job_id).await;
            let JobStatus::Verified(assignment, outcome) = status else {
                panic!("the job came to {status:?}");
            };
            assert_eq!(assignment.committee, [outcome.runner]);
            let result = keccak256(&[&to_vec(&spec(20))]);
            assert_eq!(outcome.result_hash, keccak256(&[&result.0]));
            let begun: Vec<_> = activities.iter_mut().flat_map(started).collect();
            assert_eq!(begun, [job_id]);
            // Every node has heard of it, and nothing is dispatched from now on.
            net.blocks(2).await;
            for node in &net.nodes {
                assert!(node.gateway.connected().iter().all(|connected| connected.jobs == 0));
            }
        });
    }
}

#[test]
fn many_jobs_are_all_done() {
    run(1, async |context| {
        let mut net = Net::new(context, LONG, &genesis(4, 4));
        let runners: Vec<_> =
            (0..4).map(|i| net.start(&format!("runner-{i}"), BLOCK_TIME)).collect();
        net.blocks(4).await;
        let jobs: Vec<_> = (0..40).map(|_| net.submit(spec(50))).collect();
        for job_id in &jobs {
            let status = net.until_over(job_id).await;
            assert_eq!(status.name(), "Verified");
        }
        for runner in &runners {
            assert_eq!(runner.load().active_jobs, 0);
        }
    });
}

/// Fails every job at once.
struct Broken;

impl Worker for Broken {
    type Error = &'static str;

    async fn work(
        &self,
        _: &JobSpec,
        _: WorkCancelled,
        started: impl FnOnce() + Send,
        _: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, &'static str> {
        started();
        Err("out of ink")
    }
}

#[test]
fn work_that_fails_is_reported_and_another_runner_does_it() {
    for link in [SHORT, LONG] {
        run(1, async |context| {
            let mut net = Net::new(context, link, &genesis(4, 3));
            let broken = |name: &str| {
                let config = net.config(name);
                let dialer = net.fabric.dialer(config.key.public_key());
                start(net.context.child("runner"), config, dialer, Broken)
            };
            let runners = [broken("runner-0"), broken("runner-1"), net.start("runner-2", NO_TIME)];
            net.blocks(4).await;
            let jobs: Vec<_> = (0..12).map(|_| net.submit(spec(50))).collect();
            let mut reports = 0;
            for job_id in &jobs {
                let JobStatus::Verified(_, outcome) = net.until_over(job_id).await else {
                    panic!("runner-2 can do it: {:?}", net.state.job(job_id));
                };
                assert_eq!(outcome.runner, key("runner-2").address());
                let attempt = &net.state.job(job_id).unwrap().attempt;
                assert_eq!(attempt.number as usize, attempt.reported.len());
                assert!(attempt.excluded.is_empty(), "no runner was silent");
                reports += attempt.reported.len();
            }
            assert!(reports > 3, "{reports}");
            let reputations = net.state.registry().iter().map(|(_, runner)| runner.reputation);
            assert_eq!(reputations.min(), Some(100));
            net.blocks(2).await;
            assert!(runners.iter().all(|runner| runner.load().active_jobs == 0));
            for node in &net.nodes {
                assert!(node.gateway.connected().iter().all(|connected| connected.jobs == 0));
            }
        });
    }
}

/// Reports one more percent every 10 ms, up to 100.
struct Talkative(Context);

impl Worker for Talkative {
    type Error = Infallible;

    async fn work(
        &self,
        _: &JobSpec,
        _: WorkCancelled,
        started: impl FnOnce() + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, Infallible> {
        started();
        for percent in 1..=100 {
            self.0.sleep(Duration::from_millis(10)).await;
            progress(TaskProgress { percent, detail: Some(format!("page {percent}")) });
        }
        Ok(b"all".to_vec())
    }
}

#[test]
fn progress_is_told_to_one_validator_and_not_too_often() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(4, 1));
        let config = net.config("runner-0");
        let dialer = net.fabric.dialer(config.key.public_key());
        let worker = Talkative(net.context.child("worker"));
        let _runner = start(net.context.child("runner"), config, dialer, worker);
        net.blocks(4).await;
        let job_id = net.submit(spec(20));
        net.block().await;
        let height = net.state.height();
        let mut told: Vec<(Duration, u16)> = Vec::new();
        let begin = net.context.current();
        // A tick is half the time that a frame takes to arrive.
        for _ in 0..2_000 {
            net.context.sleep(Duration::from_millis(1)).await;
            let said: Vec<_> =
                net.nodes.iter().flat_map(|node| node.gateway.progress(&job_id)).collect();
            let [(runner, progress, at)] = said.as_slice() else {
                assert_eq!((said.len(), told.len()), (0, 0), "one validator is told");
                continue;
            };
            assert_eq!((*runner, *at), (key("runner-0").address(), height));
            let percent = progress.fraction.get();
            let page = (percent > 0).then(|| format!("page {percent}"));
            assert_eq!(progress.detail.as_ref().map(|detail| detail.as_str()), page.as_deref());
            if told.last().is_none_or(|(_, last)| *last != percent) {
                told.push((net.context.current().duration_since(begin).unwrap(), percent));
            }
        }
        assert_eq!(told.len(), 6, "{told:?}");
        // The start, then the first report of the work, and so on.
        assert_eq!((told[0].1, told[1].1, told[5].1), (0, 1, 100), "{told:?}");
        // Completion is reported without a pause.
        let pauses = told[1..5].windows(2).map(|pair| pair[1].0 - pair[0].0);
        assert!(pauses.into_iter().all(|pause| pause >= job::PROGRESS_PAUSE), "{told:?}");
        assert_eq!(net.until_over(&job_id).await.name(), "Verified");
        assert!(net.nodes.iter().all(|node| node.gateway.progress(&job_id).is_empty()));
    });
}

#[test]
fn in_shadow_nothing_is_pushed_until_the_phase_changes() {
    run(1, async |context| {
        let mut genesis = genesis(4, 1);
        genesis.params.phase = Phase::Shadow;
        genesis.params.system_deployers = vec![key("alice").address()];
        let mut net = Net::new(context, SHORT, &genesis);
        let runner = net.start("runner-0", NO_TIME);
        let mut activities = runner.subscribe();
        net.blocks(4).await;
        assert_eq!(net.seen("runner-0").iter().filter(|seen| **seen).count(), 3);
        let job_id = net.submit(spec(20));
        net.blocks(3).await;
        assert!(matches!(net.state.job(&job_id).unwrap().status, JobStatus::Assigned(_)));
        assert_eq!(started(&mut activities), []);
        // A new connection does not change that.
        runner.stop(&net.context).await;
        let again = net.start("runner-0", NO_TIME);
        let mut activities = again.subscribe();
        net.blocks(2).await;
        assert_eq!(started(&mut activities), []);
        let push = Payload::SetPhase(SetPhase { phase: Phase::HotPath });
        net.pending.push(net.sign("alice", 0, push));
        assert_eq!(net.until_over(&job_id).await.name(), "Verified");
        assert_eq!(started(&mut activities), [job_id]);
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let scenario = async |context: Context| {
        let mut net = Net::new(context, LONG, &genesis(4, 2));
        let _runners: Vec<_> =
            (0..2).map(|i| net.start(&format!("runner-{i}"), BLOCK_TIME)).collect();
        net.blocks(4).await;
        let job_id = net.submit(spec(20));
        net.until_over(&job_id).await;
    };
    let first = run(1, scenario);
    assert_eq!(run(1, scenario), first);
    assert_ne!(run(2, scenario), first);
}

#[test]
fn a_result_finds_its_way_when_its_validator_is_cut_off() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(4, 1));
        let runner = net.start("runner-0", 8 * BLOCK_TIME);
        net.blocks(4).await;
        let job_id = net.submit(spec(55));
        net.blocks(2).await;
        assert_eq!(runner.load().active_jobs, 1);
        // Only the last of the three validators can take the result, whichever assigned the job.
        let subset = net.subset("runner-0");
        for v in &subset[..2] {
            net.fabric.cut(&public("runner-0"), &public(&net.nodes[*v].name));
        }
        let status = net.until_over(&job_id).await;
        assert_eq!(status.name(), "Verified");
    });
}

#[test]
fn a_validator_that_forgot_a_result_gets_it_again() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(1, 1));
        let runner = net.start("runner-0", BLOCK_TIME);
        let mut activities = runner.subscribe();
        net.blocks(4).await;
        let job_id = net.submit(spec(55));
        net.block().await;
        net.context.sleep(4 * BLOCK_TIME).await;
        // It has the result, and ends before any other node does.
        assert!(net.nodes[0].handed_in.try_recv().is_ok());
        let node = net.nodes.remove(0);
        node.gateway.close(&net.context).await;
        node.serving.abort();
        let _ = node.serving.await;
        net.context.sleep(BLOCK_TIME).await;
        let node = net.node("validator-0", BucketLimits::default());
        net.nodes.push(node);
        let status = net.until_over(&job_id).await;
        assert_eq!(status.name(), "Verified");
        assert_eq!(started(&mut activities), [job_id], "done once");
    });
}

#[test]
fn a_job_past_its_deadline_is_stopped() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(4, 1));
        let runner = net.start("runner-0", 100 * BLOCK_TIME);
        let mut activities = runner.subscribe();
        net.blocks(4).await;
        let job_id = net.submit(spec(5));
        let status = net.until_over(&job_id).await;
        assert_eq!(status.name(), "Failed");
        net.blocks(2).await;
        assert_eq!(runner.load().active_jobs, 0);
        let stopped = said(&mut activities).into_iter().find_map(|activity| match activity {
            Activity::Stopped { job_id, reason } => Some((job_id, reason)),
            _ => None,
        });
        assert_eq!(stopped, Some((job_id, Some(CancelReason::Expired))));
    });
}

#[test]
fn a_paused_runner_is_absent_until_it_resumes() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(3, 1));
        let runner = net.start("runner-0", NO_TIME);
        net.blocks(3).await;
        assert_eq!(net.seen("runner-0"), [true; 3]);
        runner.pause(true);
        net.block().await;
        assert_eq!(net.seen("runner-0"), [false; 3]);
        assert_eq!(*runner.count().borrow(), 3, "connected all the same");
        runner.pause(false);
        net.block().await;
        assert_eq!(net.seen("runner-0"), [true; 3]);
        runner.stop(&net.context).await;
        net.context.sleep(BLOCK_TIME).await;
        assert_eq!(net.seen("runner-0"), [false; 3]);
        assert!(net.nodes.iter().all(|node| node.gateway.connected().is_empty()));
    });
}

/// The first reason for which a runner with this configuration is not connected.
fn refusal(limits: BucketLimits, change: impl FnOnce(&Net, &mut RunnerConfig)) -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    run(1, async move |context| {
        let mut net = Net::limited(context, SHORT, &genesis(5, 2), limits);
        let mut config = net.config("runner-0");
        change(&net, &mut config);
        let runner = net.start_with(config, NO_TIME);
        let mut activities = runner.subscribe();
        net.blocks(4).await;
        let first = said(&mut activities).into_iter().next();
        sender.send(first).unwrap();
    });
    match receiver.recv().unwrap() {
        Some(Activity::Disconnected { reason, .. }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn refusals_name_their_reason() {
    let usual = BucketLimits::default();
    let unknown = refusal(usual, |_, config| config.key = key("stranger"));
    assert_eq!(unknown, "closed by the peer: unknown_runner");

    let elsewhere = refusal(usual, |net, config| {
        let subset = net.subset("runner-0");
        let outside = (0..5).find(|v| !subset.contains(v)).unwrap();
        let key = public(&net.nodes[outside].name);
        let address = SocketAddr::new(Fabric::<Context>::address(&key), 0);
        let targets = vec![ValidatorAddress { key, address }];
        config.known = watch::channel(KnownValidators { targets, ..KnownValidators::default() }).1;
    });
    assert_eq!(elsewhere, "closed by the peer: not_in_subset");

    let limited = refusal(BucketLimits { burst: 0, per_second: 0 }, |_, _| {});
    assert_eq!(limited, "closed by the peer: rate_limited");

    let wrong_chain = refusal(usual, |_, config| config.chain_id += 1);
    assert_eq!(wrong_chain, "closed: bad_signature");
}

#[test]
fn the_newer_of_two_connections_counts() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(3, 1));
        let older = net.start("runner-0", NO_TIME);
        let mut activities = older.subscribe();
        net.blocks(3).await;
        let newer = net.start("runner-0", NO_TIME);
        net.blocks(3).await;
        assert_eq!((*older.count().borrow(), *newer.count().borrow()), (0, 3));
        assert_eq!(net.seen("runner-0"), [true; 3]);
        let reasons: Vec<_> = said(&mut activities)
            .into_iter()
            .filter_map(|activity| match activity {
                Activity::Disconnected { reason, .. } => Some(reason),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, vec!["closed by the peer: duplicate_connection"; 3]);
    });
}

#[test]
fn a_runner_returns_after_its_validator_has() {
    run(1, async |context| {
        let mut net = Net::new(context, SHORT, &genesis(1, 1));
        let runner = net.start("runner-0", NO_TIME);
        net.blocks(3).await;
        net.fabric.cut(&public("runner-0"), &public("validator-0"));
        let mut count = runner.count();
        count.wait_for(|count| *count == 0).await.unwrap();
        let lost = net.context.current();
        net.fabric.restore(&public("runner-0"), &public("validator-0"));
        count.wait_for(|count| *count == 1).await.unwrap();
        let back = net.context.current().duration_since(lost).unwrap();
        assert!(back < Duration::from_millis(200), "{back:?}");
        net.block().await;
        assert_eq!(net.seen("runner-0"), [true]);
    });
}
