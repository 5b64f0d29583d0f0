//! Polling over the API: listed jobs, accepted results, and the phase without polling.

use super::fixture::*;
use crate::{types::*, validator::gateway::Submission};
use cowboy_engine::{
    chain::{
        Params, Payload,
        transaction::{SetPhase, SubmitResult},
    },
    job::spec::{JobSpec, Verification, VerificationMode},
    presence::Phase,
    primitives::{Address, Hash, codec::from_slice},
    wire::{JobCommit, JobFailure, JobResult as Frame, Reason, commitment},
};
use serde_json::json;

/// A devnet in this phase, governed by the faucet.
async fn devnet(phase: Phase) -> Devnet {
    Devnet::of(|params: &mut Params| {
        params.phase = phase;
        params.system_deployers = vec![address("faucet")];
    })
    .await
}

fn name_of(runner: &Address) -> String {
    let mut names = (0..3).map(|i| format!("runner-{i}"));
    names.find(|name| address(name) == *runner).unwrap()
}

/// A result signed by `signer`.
fn result(devnet: &Devnet, job_id: Hash, signer: &str, result: &[u8]) -> ResultRequest {
    let digest = Frame::digest(devnet.state.chain_id(), &job_id, result);
    let signature = key(signer).sign(&digest);
    ResultRequest {
        job_id: Text(job_id),
        result: Text(Bytes(result.to_vec())),
        runner_signature: Text(Bytes(signature.as_bytes().to_vec())),
    }
}

async fn refused(devnet: &Devnet, runner: &str, request: &ResultRequest) -> ErrorDetail {
    match devnet.client.hand_in(runner, request).await {
        Err(crate::client::ClientError::Refused(detail)) => detail,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_runner_is_told_its_jobs_and_nobody_elses() {
    let mut devnet = devnet(Phase::Shadow).await;
    devnet.push_empty(1);
    let id = devnet.submit(spec());
    let drawn = name_of(&devnet.committee(&id)[0]);
    for runner in ["runner-0", "runner-1", "runner-2"] {
        let told = devnet.client.polled_jobs(runner).await.unwrap();
        assert_eq!((told.height, told.phase.as_str(), told.more), (2, "shadow", false));
        assert_eq!(told.jobs.len(), usize::from(runner == drawn), "{runner}");
    }
    let told = devnet.client.polled_jobs(&address(&drawn).to_string()).await.unwrap();
    let job = &told.jobs[0];
    assert_eq!((job.job_id.0, job.assigned_at, job.wants), (id, 2, Wanted::Result));
    assert_eq!(job.deadline_block, devnet.state.job(&id).unwrap().deadline().get());
    assert_eq!(from_slice::<JobSpec>(&job.spec), Ok(spec()));
    devnet.finish(&id, b"hi\n");
    assert_eq!(devnet.client.polled_jobs(&drawn).await.unwrap().jobs, []);

    for stranger in ["dev-0", "nobody"] {
        let error = devnet.client.polled_jobs(stranger).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::NotFound));
    }
}

#[tokio::test]
async fn a_result_is_checked_like_a_frame_and_submitted() {
    let mut devnet = devnet(Phase::HotPath).await;
    devnet.push_empty(1);
    let id = devnet.submit(spec());
    let drawn = name_of(&devnet.committee(&id)[0]);
    let other = ["runner-0", "runner-1"].into_iter().find(|name| *name != drawn).unwrap();
    let limit = devnet.state.job(&id).unwrap().spec.bounds.max_return_bytes as usize;
    let good = result(&devnet, id, &drawn, b"hi\n");
    let check = async |runner: &str, request: &ResultRequest, name: &str| {
        let detail = refused(&devnet, runner, request).await;
        assert_eq!((detail.code, detail.name.as_deref()), (ErrorCode::Rejected, Some(name)));
    };
    check(&drawn, &result(&devnet, id, other, b"hi\n"), "BadResultSignature").await;
    let other_bytes = ResultRequest { result: Text(Bytes(b"ho\n".to_vec())), ..good.clone() };
    check(&drawn, &other_bytes, "BadResultSignature").await;
    check(other, &result(&devnet, id, other, b"hi\n"), "NotInCommittee").await;
    check(&drawn, &result(&devnet, id, &drawn, &vec![0; limit + 1]), "ResultTooLarge").await;
    check(&drawn, &result(&devnet, Hash::ZERO, &drawn, b"hi\n"), "UnknownJob").await;
    let short = ResultRequest { runner_signature: Text(Bytes(vec![1; 64])), ..good.clone() };
    let detail = refused(&devnet, &drawn, &short).await;
    assert_eq!(detail.code, ErrorCode::BadRequest);
    assert!(detail.message.contains("64 bytes"), "{detail:?}");
    assert_eq!(refused(&devnet, "dev-0", &good).await.code, ErrorCode::NotFound);
    assert!(devnet.handed_in.try_recv().is_err(), "nothing refused is submitted");

    // The signature is enough: there is no token and no connection.
    let accepted = devnet.client.hand_in(&drawn, &good).await.unwrap();
    assert_eq!(*accepted.job_id, id);
    let Submission::Result(handed) = devnet.handed_in.try_recv().unwrap() else {
        panic!("a result")
    };
    let SubmitResult { job_id, runner, result: bytes, .. } = handed;
    assert_eq!((job_id, runner, bytes), (id, address(&drawn), b"hi\n".to_vec()));
    // The queue of results is full.
    for _ in 0..2 {
        devnet.client.hand_in(&drawn, &good).await.unwrap();
    }
    assert_eq!(refused(&devnet, &drawn, &good).await.code, ErrorCode::Unavailable);
    // A runner that lost the answer gets it again once the result is final; another result is late.
    devnet.finish(&id, b"hi\n");
    devnet.client.hand_in(&drawn, &good).await.unwrap();
    let late = refused(&devnet, &drawn, &result(&devnet, id, &drawn, b"ho\n")).await;
    assert_eq!(late.name.as_deref(), Some("JobNotAssigned"));
}

/// A commitment to a result, both signed by `signer`.
fn committed(devnet: &Devnet, job_id: Hash, signer: &str, bytes: &[u8]) -> CommitRequest {
    let digest = Frame::digest(devnet.state.chain_id(), &job_id, bytes);
    let hash = commitment(bytes, &key(signer).sign(&digest));
    let deadline = devnet.state.job(&job_id).unwrap().deadline();
    let frame = JobCommit::signed(devnet.state.chain_id(), &key(signer), job_id, deadline, hash);
    CommitRequest {
        job_id: Text(job_id),
        commitment: Text(hash),
        runner_signature: Text(Bytes(frame.runner_signed.as_bytes().to_vec())),
    }
}

#[tokio::test]
async fn a_committee_commits_and_then_shows_what_it_has() {
    let mut devnet = devnet(Phase::Shadow).await;
    devnet.push_empty(1);
    let verification = Verification::of(VerificationMode::Deterministic, 2);
    let id = devnet.submit(JobSpec { verification, timeout_blocks: 40, ..spec() });
    let names: Vec<String> = devnet.committee(&id).iter().map(name_of).collect();
    let wants = async |devnet: &Devnet, name: &str| {
        let told = devnet.client.polled_jobs(name).await.unwrap();
        told.jobs.iter().map(|job| job.wants).collect::<Vec<_>>()
    };
    let error = async |devnet: &Devnet, name: &str, request: &CommitRequest| {
        let error = devnet.client.commit(name, request).await.unwrap_err();
        let crate::client::ClientError::Refused(detail) = error else { panic!("{error:?}") };
        detail.name.unwrap_or_default()
    };
    let early = result(&devnet, id, &names[0], b"hi\n");
    assert_eq!(refused(&devnet, &names[0], &early).await.name.as_deref(), Some("CommitFirst"));
    let foreign = committed(&devnet, id, &names[1], b"hi\n");
    assert_eq!(error(&devnet, &names[0], &foreign).await, "BadResultSignature");
    for (i, name) in names.iter().enumerate() {
        assert_eq!(wants(&devnet, name).await, [Wanted::Commitment]);
        let request = committed(&devnet, id, name, b"hi\n");
        devnet.client.commit(name, &request).await.unwrap();
        let handed = devnet.handed_in.try_recv().unwrap();
        let Submission::Commit { commit, .. } = handed else { panic!() };
        let signed = devnet.sign("dev-0", Payload::CommitResult(commit));
        devnet.push(vec![signed]);
        // A runner that lost the answer gets it again if the commitment is the same.
        devnet.client.commit(name, &request).await.unwrap();
        assert!(devnet.handed_in.try_recv().is_err());
        let other = committed(&devnet, id, name, b"ho\n");
        let name_of_error = error(&devnet, name, &other).await;
        let handed = devnet.handed_in.try_recv().unwrap();
        let Submission::Commit { commit, .. } = handed else {
            panic!("it is evidence: {handed:?}")
        };
        assert_eq!(commit.commitment, other.commitment.0);
        match i {
            0 => {
                assert_eq!(name_of_error, "AlreadyCommitted");
                assert_eq!(wants(&devnet, name).await, [Wanted::Nothing]);
            }
            _ => assert_eq!(name_of_error, "JobNotAssigned", "all have committed"),
        }
    }
    for name in &names {
        assert_eq!(wants(&devnet, name).await, [Wanted::Reveal]);
        let other = result(&devnet, id, name, b"ho\n");
        let detail = refused(&devnet, name, &other).await;
        assert_eq!(detail.name.as_deref(), Some("CommitmentMismatch"));
        devnet.client.hand_in(name, &result(&devnet, id, name, b"hi\n")).await.unwrap();
        let handed = devnet.handed_in.try_recv().unwrap();
        let Submission::Reveal { job_id, reveal } = handed else { panic!("{handed:?}") };
        assert_eq!((job_id, reveal.runner, reveal.result), (id, address(name), b"hi\n".to_vec()));
    }
}

#[tokio::test]
async fn who_cannot_do_a_job_says_so_and_the_job_says_why() {
    let mut devnet = devnet(Phase::Shadow).await;
    devnet.push_empty(1);
    let id = devnet.submit(spec());
    let failure = |devnet: &Devnet, signer: &str, reason: &str| {
        let reason = Reason::truncated(reason);
        let chain_id = devnet.state.chain_id();
        let frame = JobFailure::signed(chain_id, &key(signer), id, reason);
        FailureRequest {
            job_id: Text(id),
            reason: frame.reason.to_string(),
            runner_signature: Text(Bytes(frame.runner_signed.as_bytes().to_vec())),
        }
    };
    let mut last = String::new();
    // Three runners fail, then none is left.
    for _ in 0..3 {
        let drawn = name_of(&devnet.committee(&id)[0]);
        assert_ne!(drawn, last);
        let request = failure(&devnet, &drawn, "out\nof ink");
        let long = FailureRequest { reason: "x".repeat(257), ..request.clone() };
        let error = devnet.client.report_failure(&drawn, &long).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::BadRequest));
        let other = FailureRequest { reason: "another".into(), ..request.clone() };
        let error = devnet.client.report_failure(&drawn, &other).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Rejected));
        devnet.client.report_failure(&drawn, &request).await.unwrap();
        let Submission::Failure(report) = devnet.handed_in.try_recv().unwrap() else { panic!() };
        let signed = devnet.sign("dev-0", Payload::ReportFailure(report));
        devnet.push(vec![signed]);
        // A runner that lost the answer gets it again.
        devnet.client.report_failure(&drawn, &request).await.unwrap();
        assert!(devnet.handed_in.try_recv().is_err());
        last = drawn;
    }
    while devnet.state.open_jobs().next().is_some() {
        devnet.push_empty(1);
    }
    let job = devnet.client.job(&id.to_string()).await.unwrap();
    let error = job.error.unwrap();
    assert!(error.ends_with(&format!("; {last}: out of ink")), "{error}");
    let said = |event: &&JobEvent| event.event == "WorkFailed";
    assert_eq!(job.events.iter().filter(said).count(), 3);
    assert_eq!(job.events.iter().find(said).unwrap().data["reason"], "out\nof ink");
}

#[tokio::test]
async fn a_result_past_the_deadline_is_too_late() {
    let mut devnet = devnet(Phase::Shadow).await;
    devnet.push_empty(1);
    let id = devnet.submit(spec());
    let drawn = name_of(&devnet.committee(&id)[0]);
    // No runner submits a result, so runners are drawn again until none is left.
    while devnet.state.open_jobs().next().is_some() {
        devnet.push_empty(1);
    }
    let deadline = devnet.state.job(&id).unwrap().deadline();
    let late = refused(&devnet, &drawn, &result(&devnet, id, &drawn, b"hi\n")).await;
    assert_eq!(
        late.message,
        "JobNotAssigned: the job is Failed; results count while it is Assigned"
    );
    let hint = format!("the last block whose results counted was {deadline}");
    assert_eq!(late.hint, Some(hint));
    assert_eq!(devnet.client.polled_jobs(&drawn).await.unwrap().jobs, []);
}

#[tokio::test]
async fn in_sunset_polling_is_gone_and_heartbeats_are_taken() {
    let mut devnet = devnet(Phase::HotPath).await;
    devnet.push_empty(1);
    let id = devnet.submit(spec());
    let drawn = name_of(&devnet.committee(&id)[0]);
    let set = devnet.sign("faucet", Payload::SetPhase(SetPhase { phase: Phase::Sunset }));
    devnet.push(vec![set]);
    let parameters = devnet.client.parameters().await.unwrap();
    assert_eq!((parameters.phase.as_str(), parameters.phase_since), ("sunset", 4));

    let jobs = devnet.get(&format!("/runner/{drawn}/jobs")).await;
    let good = result(&devnet, id, &drawn, b"hi\n");
    let posted = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .post(format!("{}/runner/{drawn}/job_result", devnet.url))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&good).unwrap())
        .send()
        .await
        .unwrap();
    for response in [jobs, posted] {
        assert_eq!(response.status(), 410);
        let body: serde_json::Value = response.json().await.unwrap();
        let error = &body["error"];
        assert_eq!((&error["code"], &error["name"]), (&json!("gone"), &json!("PollingGone")));
        assert_eq!(error["message"], "PollingGone: migration phase sunset, since block 4");
        assert!(error["hint"].as_str().unwrap().contains("QUIC"), "{body}");
    }
    assert!(devnet.handed_in.try_recv().is_err());
    let heartbeat = devnet.sign("runner-0", Payload::RunnerHeartbeat);
    devnet.client.heartbeat("runner-0", &heartbeat).await.unwrap();
}
