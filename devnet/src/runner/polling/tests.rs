//! A runner that cannot reach any validator, and the API that it polls.

use super::Polling;
use crate::{
    client::Client,
    runner::{
        KnownValidators, Runner, RunnerConfig, ValidatorAddress,
        node::Activity,
        proof::tests::{job, known, proof},
        start,
        worker::Pretended,
    },
    sample::spec,
    transport::{Dial, TransportError, quic},
    types::{
        Bytes, CommitRequest, ErrorBody, ErrorCode, ErrorDetail, FailureRequest, PolledJob,
        PolledJobs, ResultAccepted, ResultRequest, Text, Wanted,
    },
};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use commonware_runtime::{Runner as _, Supervisor as _, tokio as runtime};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    job::spec::{HttpWork, JobSpec, Verification, VerificationMode, Work},
    presence::Phase,
    primitives::{Hash, PublicKey, SecretKey, Signature, codec::to_vec, keccak256},
    registry::JobKind,
    wire::{CancelReason, JobCommit, JobFailure, JobResult, Reason, commitment},
};
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{broadcast, mpsc, watch},
};

const CHAIN: u64 = 7;
/// The longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn key() -> SecretKey {
    SecretKey::derive(b"polling", "runner")
}

#[derive(Clone)]
struct Nowhere;

impl Dial for Nowhere {
    type Connection = quic::QuicConnection;

    async fn dial(
        &self,
        _: SocketAddr,
        _: &PublicKey,
    ) -> Result<quic::QuicConnection, TransportError> {
        Err(TransportError::Closed)
    }
}

/// A scripted API that records requests.
#[derive(Clone)]
struct Api {
    jobs: Arc<Mutex<PolledJobs>>,
    /// Codes with which the next results are refused.
    refusals: Arc<Mutex<Vec<ErrorCode>>>,
    listed: Arc<watch::Sender<u64>>,
    posted: mpsc::UnboundedSender<ResultRequest>,
    committed: mpsc::UnboundedSender<CommitRequest>,
    refused: mpsc::UnboundedSender<FailureRequest>,
}

async fn job_failure(
    State(api): State<Api>,
    Json(request): Json<FailureRequest>,
) -> Json<ResultAccepted> {
    let job_id = request.job_id;
    let _ = api.refused.send(request);
    Json(ResultAccepted { job_id })
}

async fn jobs(State(api): State<Api>, Path(runner): Path<String>) -> Json<PolledJobs> {
    assert_eq!(runner, key().address().to_string());
    let answer = api.jobs.lock().clone();
    api.listed.send_modify(|count| *count += 1);
    Json(answer)
}

async fn job_result(State(api): State<Api>, Json(request): Json<ResultRequest>) -> Response {
    let _ = api.posted.send(request.clone());
    match api.refusals.lock().pop() {
        None => Json(ResultAccepted { job_id: request.job_id }).into_response(),
        Some(code) => {
            let error = ErrorDetail { code, name: None, message: "no".into(), hint: None };
            let status = StatusCode::from_u16(code.status()).unwrap();
            (status, Json(ErrorBody { error })).into_response()
        }
    }
}

async fn job_commit(
    State(api): State<Api>,
    Json(request): Json<CommitRequest>,
) -> Json<ResultAccepted> {
    let job_id = request.job_id;
    let _ = api.committed.send(request);
    Json(ResultAccepted { job_id })
}

struct Net {
    api: Api,
    posted: mpsc::UnboundedReceiver<ResultRequest>,
    committed: mpsc::UnboundedReceiver<CommitRequest>,
    refused: mpsc::UnboundedReceiver<FailureRequest>,
    phase: watch::Sender<Phase>,
    activities: broadcast::Receiver<Activity>,
    _runner: Runner,
}

impl Net {
    /// A runner whose jobs take `delay`.
    async fn start(context: &runtime::Context, phase: Phase, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, posted) = mpsc::unbounded_channel();
        let (commits, committed) = mpsc::unbounded_channel();
        let (refuses, refused) = mpsc::unbounded_channel();
        let none = PolledJobs { height: 10, phase: "shadow".into(), jobs: Vec::new(), more: false };
        let api = Api {
            jobs: Arc::new(Mutex::new(none)),
            refusals: Arc::default(),
            listed: Arc::new(watch::Sender::new(0)),
            posted: sender,
            committed: commits,
            refused: refuses,
        };
        let router = Router::new()
            .route("/runner/{runner}/jobs", get(jobs))
            .route("/runner/{runner}/job_result", post(job_result))
            .route("/runner/{runner}/job_commit", post(job_commit))
            .route("/runner/{runner}/job_failure", post(job_failure))
            .with_state(api.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let (phase, told) = watch::channel(phase);
        let polling = Polling {
            client: Client::new(&url).unwrap(),
            phase: told,
            interval: Duration::from_millis(2),
        };
        let validator = SecretKey::derive(b"polling", "validator").public_key();
        let nowhere =
            ValidatorAddress { key: validator, address: SocketAddr::from(([127, 0, 0, 1], 1)) };
        let config = RunnerConfig {
            chain_id: CHAIN,
            key: key(),
            known: watch::channel(KnownValidators { targets: vec![nowhere], ..known() }).1,
            agents: BTreeSet::new(),
            kinds: [JobKind::Custom].into(),
            by_hand: false,
            withdrawn: [].into(),
            max_concurrent_jobs: 4,
            polling: Some(polling),
            pledges: None,
        };
        let worker = Pretended { clock: context.child("worker"), delay };
        let runner = start(context.child("runner"), config, Nowhere, worker);
        Self {
            api,
            posted,
            committed,
            refused,
            phase,
            activities: runner.subscribe(),
            _runner: runner,
        }
    }

    /// The chain assigns these jobs at `height`.
    fn assign(&self, height: u64, jobs: &[u8]) {
        self.list(height, jobs.iter().map(|id| listed(*id, height, spec(4))).collect());
    }

    /// The chain has a committee's job for the runner at `height`, and wants this of it.
    fn want(&self, height: u64, wants: Wanted) {
        let verification = Verification::of(VerificationMode::Deterministic, 3);
        let job = listed(1, height, JobSpec { verification, ..spec(40) });
        self.list(height, vec![PolledJob { wants, ..job }]);
    }

    fn list(&self, height: u64, jobs: Vec<PolledJob>) {
        let mut answer = self.api.jobs.lock();
        (answer.height, answer.jobs) = (height, jobs);
    }

    /// Waits until the runner has polled that many more times and seen the current answer.
    async fn rounds(&self, count: u64) {
        let mut listed = self.api.listed.subscribe();
        // One request may be under way.
        let until = *listed.borrow() + count + 1;
        let reached = listed.wait_for(|listed| *listed >= until);
        tokio::time::timeout(PATIENCE, reached).await.unwrap().unwrap();
    }

    async fn result(&mut self) -> ResultRequest {
        tokio::time::timeout(PATIENCE, self.posted.recv()).await.unwrap().unwrap()
    }

    /// Waits for an activity; returns all activities up to it except failed connections.
    async fn until(&mut self, last: impl Fn(&Activity) -> bool) -> Vec<Activity> {
        let mut seen = Vec::new();
        loop {
            let next = tokio::time::timeout(PATIENCE, self.activities.recv());
            let activity = next.await.unwrap().unwrap();
            if let Activity::Disconnected { .. } = activity {
                continue;
            }
            seen.push(activity);
            if last(seen.last().unwrap()) {
                return seen;
            }
        }
    }
}

/// A job as the API lists it.
fn listed(id: u8, height: u64, spec: JobSpec) -> PolledJob {
    let (job_id, job) = (Hash([id; 32]), job(spec, key().address()));
    PolledJob {
        job_id: Text(job_id),
        spec: Text(Bytes(to_vec(&*job.spec))),
        assigned_at: height,
        // For as long as it is the same attempt.
        deadline_block: job.deadline().get(),
        wants: Wanted::Result,
        proof: Some(Text(Bytes(proof(job_id, &job)))),
    }
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(runtime::Context) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let config = runtime::Config::new().with_storage_directory(folder.path());
    runtime::Runner::new(config).start(test);
}

#[test]
fn a_polled_job_runs_once_and_its_result_is_handed_in_signed() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Shadow, Duration::ZERO).await;
        // The API is unavailable at first.
        net.api.refusals.lock().push(ErrorCode::Unavailable);
        net.assign(11, &[1]);
        let first = net.result().await;
        let again = net.result().await;
        assert_eq!(first, again);
        let result = keccak256(&[&to_vec(&spec(4))]).0.to_vec();
        assert_eq!((*first.job_id, &first.result.0.0), (Hash([1; 32]), &result));
        let signature = Signature(first.runner_signature.0.0.as_slice().try_into().unwrap());
        let digest = JobResult::digest(CHAIN, &Hash([1; 32]), &result);
        assert!(key().public_key().verify(&digest, &signature));
        // A job stays listed until the chain has its result.
        net.rounds(3).await;
        net.assign(12, &[1, 2]);
        assert_eq!(*net.result().await.job_id, Hash([2; 32]));
        net.rounds(3).await;
        assert!(net.posted.try_recv().is_err(), "each is handed in once");
        let seen = net
            .until(|activity| match activity {
                Activity::Finished { job_id, .. } => *job_id == Hash([2; 32]),
                _ => false,
            })
            .await;
        let started = |a: &&Activity| matches!(a, Activity::Started { .. });
        assert_eq!(seen.iter().filter(started).count(), 2, "{seen:?}");
    });
}

#[test]
fn what_the_api_cannot_prove_is_not_done() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Shadow, Duration::ZERO).await;
        let [mut bare, mut swapped, mut forged] = [1, 2, 3].map(|id| listed(id, 11, spec(4)));
        bare.proof = None;
        swapped.proof = listed(1, 11, spec(4)).proof;
        let bytes = &mut forged.proof.as_mut().unwrap().0.0;
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        net.api.jobs.lock().jobs = vec![bare, swapped, forged, listed(4, 11, spec(4))];
        assert_eq!(*net.result().await.job_id, Hash([4; 32]));
        net.rounds(2).await;
        assert!(net.posted.try_recv().is_err());
    });
}

#[test]
fn a_polled_job_that_is_not_taken_is_said_to_be_refused_once() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Shadow, Duration::ZERO).await;
        let work = Work::Http(HttpWork {
            method: "GET".into(),
            url: "http://127.0.0.1/".into(),
            headers: Vec::new(),
            body: None,
            pointer: None,
        });
        let spec = JobSpec { work, ..spec(4) };
        net.list(11, vec![listed(1, 11, spec)]);
        let refused = tokio::time::timeout(PATIENCE, net.refused.recv()).await.unwrap().unwrap();
        assert_eq!((*refused.job_id, refused.reason.as_str()), (Hash([1; 32]), "unsupported_kind"));
        let signature = Signature(refused.runner_signature.0.0.as_slice().try_into().unwrap());
        let reason = Reason::truncated(&refused.reason);
        let digest = JobFailure::digest(CHAIN, &refused.job_id, &reason);
        assert!(key().public_key().verify(&digest, &signature));
        net.rounds(3).await;
        assert!(net.refused.try_recv().is_err(), "once");
    });
}

#[test]
fn what_is_refused_for_good_is_not_sent_again() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::HotPath, Duration::ZERO).await;
        net.api.refusals.lock().push(ErrorCode::Rejected);
        net.assign(11, &[1]);
        net.result().await;
        net.rounds(3).await;
        assert!(net.posted.try_recv().is_err());
    });
}

#[test]
fn a_job_that_is_listed_no_longer_is_stopped() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Shadow, Duration::from_secs(3_600)).await;
        net.assign(11, &[1, 2]);
        let started = |a: &Activity| matches!(a, Activity::Started { .. });
        net.until(started).await;
        net.until(started).await;
        // Neither the list of a validator that is behind nor a partial list ends the job.
        net.assign(10, &[2]);
        net.rounds(2).await;
        net.api.jobs.lock().more = true;
        net.assign(12, &[2]);
        net.rounds(2).await;
        while let Ok(activity) = net.activities.try_recv() {
            assert!(!matches!(activity, Activity::Stopped { .. }), "{activity:?}");
        }
        net.api.jobs.lock().more = false;
        net.assign(13, &[2]);
        let stopped = net.until(|a| matches!(a, Activity::Stopped { .. })).await;
        let reason = Some(CancelReason::Reassigned);
        let expected = Activity::Stopped { job_id: Hash([1; 32]), reason };
        assert_eq!(stopped.last(), Some(&expected));
        // Not even when it comes back.
        net.assign(14, &[1, 2]);
        net.rounds(2).await;
        net.assign(15, &[1]);
        let stopped = net.until(|a| matches!(a, Activity::Stopped { .. })).await;
        let expected = Activity::Stopped { job_id: Hash([2; 32]), reason };
        assert_eq!(stopped, [expected]);
    });
}

#[test]
fn in_sunset_nothing_is_asked_until_the_phase_changes() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Sunset, Duration::ZERO).await;
        net.assign(11, &[1]);
        // The runner keeps trying to connect.
        for _ in 0..2 {
            let next = tokio::time::timeout(PATIENCE, net.activities.recv()).await.unwrap();
            assert!(matches!(next, Ok(Activity::Disconnected { .. })), "{next:?}");
        }
        assert_eq!(*net.api.listed.borrow(), 0);
        net.phase.send_replace(Phase::HotPath);
        assert_eq!(*net.result().await.job_id, Hash([1; 32]));
    });
}

#[test]
fn a_committees_result_is_committed_to_and_shown_when_it_is_wanted() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Shadow, Duration::ZERO).await;
        net.want(11, Wanted::Commitment);
        let committed = tokio::time::timeout(PATIENCE, net.committed.recv()).await;
        let committed = committed.unwrap().unwrap();
        net.want(12, Wanted::Nothing);
        net.rounds(3).await;
        assert!(net.posted.try_recv().is_err(), "it must not be shown yet");
        net.want(13, Wanted::Reveal);
        let shown = net.result().await;
        let bytes = shown.result.0.0.clone();
        let signature = Signature(shown.runner_signature.0.0.as_slice().try_into().unwrap());
        assert_eq!(committed.commitment.0, commitment(&bytes, &signature));
        let own = Signature(committed.runner_signature.0.0.as_slice().try_into().unwrap());
        let (job_id, deadline) = (Hash([1; 32]), cowboy_engine::primitives::Height::new(100));
        let digest = JobCommit::digest(CHAIN, &job_id, deadline, &committed.commitment.0);
        assert!(key().public_key().verify(&digest, &own));
        // The validator that took it may have forgotten it.
        assert_eq!(net.result().await, shown);
        net.want(14, Wanted::Nothing);
        net.rounds(1).await;
        while net.posted.try_recv().is_ok() {}
        net.rounds(4).await;
        assert!(net.posted.try_recv().is_err() && net.committed.try_recv().is_err());
        let seen = net.until(|a| matches!(a, Activity::Finished { .. })).await;
        assert_eq!(seen.len(), 2, "it was done once: {seen:?}");
    });
}

#[test]
fn what_is_only_to_be_shown_is_not_done_anew() {
    run(|context| async move {
        let mut net = Net::start(&context, Phase::Shadow, Duration::ZERO).await;
        for (height, wants) in [(11, Wanted::Reveal), (12, Wanted::Nothing)] {
            net.want(height, wants);
            net.rounds(3).await;
        }
        assert!(net.posted.try_recv().is_err());
        while let Ok(activity) = net.activities.try_recv() {
            assert!(matches!(activity, Activity::Disconnected { .. }), "{activity:?}");
        }
    });
}
