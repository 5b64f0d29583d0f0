//! Members of committees that lie on a running devnet pay for it, and others do not.

use crate::{
    migration::{register_idle, shadow},
    support::{Home, list},
    timers::{number, text},
};
use cowboy_devnet::{
    client::{Client, ClientError},
    types::{Bytes, CommitRequest, PolledJob, ResultRequest, Text, Wanted},
};
use cowboy_engine::{
    primitives::{Hash, Height, SecretKey, Signature},
    wire::{JobCommit, JobResult, commitment},
};
use serde_json::Value;

/// Timeout of a job's attempt, in blocks.
const TIMEOUT: u64 = 24;

/// A devnet of two honest runners, and the account `dev-0`: the third member of every committee,
/// whose HTTP messages a test chooses.
struct Stage {
    home: Home,
    client: Client,
    runtime: tokio::runtime::Runtime,
    chain_id: u64,
    liar: SecretKey,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new();
        let up = shadow(&home, "2");
        register_idle(&home, &up);
        let client = Client::new(text(&up["rpc_url"])).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let chain_id = runtime.block_on(client.parameters()).unwrap().chain_id.0.0;
        let liar = SecretKey::derive(&0_u64.to_be_bytes(), "dev-0");
        Self { home, client, runtime, chain_id, liar }
    }

    /// Submits a job that prints `lie`, and returns it as the liar receives it.
    fn job(&self) -> PolledJob {
        let timeout = TIMEOUT.to_string();
        let committee =
            ["--verify", "deterministic", "--runners", "3", "--timeout-blocks", &timeout];
        let submit = ["job", "submit", "custom", "--from", "dev-1"];
        let args = [&submit[..], &committee[..], &["--", "printf", "lie"]].concat();
        let submitted = self.home.json(&args);
        let id = text(&submitted["job_id"]).to_owned();
        let polled = || {
            let told = self.runtime.block_on(self.client.polled_jobs("dev-0")).unwrap();
            told.jobs.into_iter().find(|job| job.job_id.to_string() == id)
        };
        crate::support::wait_until("the liar is drawn", || polled().is_some());
        polled().unwrap()
    }

    /// The liar commits to `bytes`, with a result's signature if there is one.
    fn commit(
        &self,
        job: &PolledJob,
        bytes: &[u8],
        signature: Option<Signature>,
    ) -> Result<Hash, ClientError> {
        let (job_id, deadline) = (job.job_id.0, Height::new(job.deadline_block));
        let hash = commitment(bytes, &signature.unwrap_or_else(|| self.signature(job_id, bytes)));
        let signed = JobCommit::signed(self.chain_id, &self.liar, job_id, deadline, hash);
        let request = CommitRequest {
            job_id: job.job_id,
            commitment: Text(hash),
            runner_signature: Text(Bytes(signed.runner_signed.as_bytes().to_vec())),
        };
        self.runtime.block_on(self.client.commit("dev-0", &request)).map(|_| hash)
    }

    /// The liar's signature on a result.
    fn signature(&self, job_id: Hash, bytes: &[u8]) -> Signature {
        self.liar.sign(&JobResult::digest(self.chain_id, &job_id, bytes))
    }

    fn reveal(&self, job: &PolledJob, bytes: &[u8], signature: Signature) -> Option<ClientError> {
        let request = ResultRequest {
            job_id: job.job_id,
            result: Text(Bytes(bytes.to_vec())),
            runner_signature: Text(Bytes(signature.as_bytes().to_vec())),
        };
        self.runtime.block_on(self.client.hand_in("dev-0", &request)).err()
    }

    /// Waits until the two honest runners' result is verified, not long after they have committed.
    fn verified(&self, job: &PolledJob) -> Value {
        let id = job.job_id.to_string();
        let done = self.home.json(&["job", "wait", &id, "--timeout", "60s"]);
        assert_eq!((&done["status"], &done["result_text"]), (&"Verified".into(), &"lie".into()));
        assert_eq!(done["attempts"], 1, "{done}");
        let events = ["chain", "events", "--from", "0", "--kind", "JobVerified"];
        let events = self.home.json(&events);
        let event = list(&events).iter().find(|event| event["data"]["job_id"] == id.as_str());
        let agreeing = event.map(|event| list(&event["data"]["agreeing"]).len());
        assert_eq!(agreeing, Some(2), "{events}");
        done
    }

    fn runner(&self) -> Value {
        self.home.json(&["runner", "show", "dev-0"])
    }

    /// The slashes of the liar's stake for a job, with their reasons.
    fn slashed(&self, job: &PolledJob) -> Vec<(u64, String)> {
        let id = job.job_id.to_string();
        let args = ["chain", "events", "--from", "0", "--kind", "RunnerSlashed"];
        let events = self.home.json(&args);
        let of_job = list(&events).iter().filter(|event| event["data"]["job_id"] == id.as_str());
        let told = |event: &Value| {
            let data = &event["data"];
            (number(&event["height"]), text(&data["reason"]).to_owned())
        };
        of_job.map(told).collect()
    }
}

#[test]
fn who_commits_and_shows_nothing_valid_pays_and_delays_no_job_for_long() {
    let stage = Stage::new();
    let stake = stage.runner()["stake"].clone();
    let begun = stage.home.height();
    // The liar reveals nothing, another result, or no signature.
    let nothing = stage.job();
    stage.commit(&nothing, b"lie", None).unwrap();
    let other = stage.job();
    stage.commit(&other, b"lie", None).unwrap();
    let unsigned = stage.job();
    let forged = Signature([7; 65]);
    stage.commit(&unsigned, b"lie", Some(forged)).unwrap();
    for job in [&nothing, &other, &unsigned] {
        let done = stage.verified(job);
        let took = number(&done["final_at"]) - number(&done["submitted_at"]);
        assert!(took < TIMEOUT / 2, "{took} blocks: {done}");
    }
    let refused = |error: Option<ClientError>| format!("{:?}", error.unwrap());
    let mine = stage.signature(other.job_id.0, b"else");
    let error = refused(stage.reveal(&other, b"else", mine));
    assert!(error.contains("CommitmentMismatch"), "{error}");
    let error = refused(stage.reveal(&unsigned, b"lie", forged));
    assert!(error.contains("BadResultSignature"), "{error}");
    let last = nothing.deadline_block.max(other.deadline_block).max(unsigned.deadline_block);
    stage.home.wait_height(last + 1);
    for job in [&nothing, &other, &unsigned] {
        let expected = [(job.deadline_block, "withheld".to_owned())];
        assert_eq!(stage.slashed(job), expected, "at the deadline, once");
    }
    let now = stage.runner();
    assert_eq!(now["reputation"], 85, "{now}");
    assert_eq!(now["stake"], stake, "its account pays: {now}");
    let honest = stage.home.json(&["runner", "show", "runner-0"]);
    assert_eq!(honest["reputation"], 100, "{honest}");
    assert!(begun < last);
}

#[test]
fn who_shows_late_what_it_committed_to_pays_nothing() {
    let stage = Stage::new();
    let stake = stage.runner()["stake"].clone();
    let job = stage.job();
    stage.commit(&job, b"lie", None).unwrap();
    stage.verified(&job);
    let told = stage.runtime.block_on(stage.client.polled_jobs("dev-0")).unwrap();
    let wants: Vec<_> = told.jobs.iter().map(|job| job.wants).collect();
    assert_eq!(wants, [Wanted::Reveal], "it is asked for what the job lacks");
    let signature = stage.signature(job.job_id.0, b"lie");
    assert!(stage.reveal(&job, b"lie", signature).is_none());
    stage.home.wait_height(job.deadline_block + 1);
    let now = stage.runner();
    assert_eq!((&now["reputation"], &now["stake"]), (&100.into(), &stake), "{now}");
    assert_eq!(stage.slashed(&job), []);
}

#[test]
fn who_signs_two_commitments_loses_the_bond_and_is_not_drawn_again() {
    let stage = Stage::new();
    let job = stage.job();
    let first = stage.commit(&job, b"lie", None).unwrap();
    let second = stage.commit(&job, b"truth", None);
    // The chain may have either of the two by then.
    assert!(second.is_err() || second.is_ok_and(|second| second != first));
    stage.verified(&job);
    crate::support::wait_until("the evidence is on the chain", || {
        stage.slashed(&job).iter().any(|(_, reason)| reason == "equivocation")
    });
    let now = stage.runner();
    assert_eq!(now["reputation"], 0, "{now}");
    let id = job.job_id.to_string();
    let slashes = stage.slashed(&job);
    let equivocations = slashes.iter().filter(|(_, reason)| reason == "equivocation").count();
    assert_eq!(equivocations, 1, "{id}: {slashes:?}");
    // Only two runners are left, so no committee of three is drawn.
    let args = ["job", "submit", "custom", "--from", "dev-1", "--verify", "deterministic"];
    let waiting = stage.home.json(&[&args[..], &["--runners", "3", "--", "true"]].concat());
    stage.home.json(&["chain", "wait", "+3"]);
    let shown = stage.home.json(&["job", "show", text(&waiting["job_id"])]);
    assert_eq!(shown["status"], "Pending", "{shown}");
}
