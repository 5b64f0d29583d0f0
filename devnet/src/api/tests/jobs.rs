//! Jobs from submission to result, the draws of their runners, and MRU.

use super::fixture::*;
use crate::{
    storage::StoredDraw,
    types::{ErrorCode, ExplanationQuery, JobQuery, JobStatus, RunnerProgress},
    verification::Filters,
};
use cowboy_engine::{
    chain::{DrawRecord, Payload},
    job::{
        MruRead, SeedCertificate,
        filter::{Filter, Verdict},
        spec::JobSpec,
    },
    presence::Phase,
    primitives::{Hash, Height, Wei, codec::to_vec},
};
use rusqlite::params;

#[tokio::test]
async fn a_job_is_shown_from_submission_to_result() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let id = devnet.submit(spec());
    let (client, text) = (devnet.client.clone(), id.to_string());
    let runner = devnet.committee(&id)[0];
    let name = client.runner(&runner.to_string()).await.unwrap().name;

    let job = client.job(&text).await.unwrap();
    assert_eq!((job.status, job.kind.as_str(), job.attempts), (JobStatus::Assigned, "custom", 1));
    assert_eq!((job.submitted_at, job.assigned_at, job.deadline), (3, Some(3), 7));
    assert_eq!((job.committee, job.committee_addresses[0].0), (vec![name.clone()], runner));
    assert_eq!((job.result, job.final_at, job.latency_ms, job.paid), (None, None, None, None));
    assert_eq!(job.submitter_name.as_deref(), Some("dev-0"));
    assert_eq!(job.spec["work"]["args"][0], "hi");
    assert_eq!(job.spec["work"]["stdin"], "0xff");
    assert_eq!(job.spec["max_price"], "10000000000");
    // Only the newest report of the job's own runner counts; runners reported to two validators.
    let (percent, height) = if name == "runner-0" { (40, 3) } else { (70, 4) };
    let detail = Some(format!("{percent} of 100 pages"));
    let progress = RunnerProgress { runner: name.clone(), percent, detail, height };
    assert_eq!(job.progress, [progress]);
    let events: Vec<_> = job.events.iter().map(|e| (e.height, e.event.as_str())).collect();
    assert_eq!(events, [(3, "JobSubmitted"), (3, "JobAssigned")]);
    let error = client.job_result(&text).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    assert!(error.to_string().ends_with("has no result: it is Assigned"), "{error}");

    devnet.push_empty(1);
    devnet.finish(&id, b"hi\n");
    let job = client.job(&text).await.unwrap();
    assert_eq!(
        (job.status, job.final_at, job.latency_ms),
        (JobStatus::Verified, Some(5), Some(1_000))
    );
    assert_eq!((job.result_text.as_deref(), job.runner), (Some("hi\n"), Some(name.clone())));
    assert_eq!(job.result.unwrap().to_vec(), b"hi\n");
    assert_eq!(job.progress, []);
    // One second at 1 CBY, and the tip.
    assert_eq!(job.paid.map(|paid| paid.0), Some(Wei::cby(2)));
    assert_eq!(job.events.last().unwrap().event, "JobVerified");
    assert_eq!(job.events.last().unwrap().timestamp.as_millisecond() as u64, START_MS + 2_500);
    let result = client.job_result(&text).await.unwrap();
    assert_eq!((result.runner, result.final_at), (name.clone(), 5));
    assert_eq!((result.result.to_vec(), result.runner_address.0), (b"hi\n".to_vec(), runner));

    let record = client.mru("dev-0", "custom").await.unwrap();
    assert_eq!((&record.runner, record.set_at, record.expires_at), (&name, 5, 261));
    assert!(record.live);
    assert_eq!(client.mru_records().await.unwrap(), [record]);
    let error = client.mru("dev-0", "http").await.unwrap_err();
    assert_eq!(error.to_string(), "dev-0 has no MRU runner for http jobs");
    let error = client.mru("dev-0", "fax").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::BadRequest));
}

#[tokio::test]
async fn results_that_are_no_text_are_bytes() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let id = devnet.submit(spec());
    devnet.finish(&id, &[0xff, 0]);
    let result = devnet.client.job_result(&id.to_string()).await.unwrap();
    assert_eq!((result.result.to_vec(), result.result_text), (vec![0xff, 0], None));
}

#[tokio::test]
async fn jobs_are_listed_newest_first() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let ids: Vec<Hash> = (0..3).map(|_| devnet.submit(spec())).collect();
    devnet.finish(&ids[1], b"done");
    let list = async |status: Option<JobStatus>, limit: Option<usize>| -> Vec<Hash> {
        let jobs =
            devnet.client.jobs(&JobQuery { status, limit, ..JobQuery::default() }).await.unwrap();
        jobs.iter().map(|job| *job.job_id).collect()
    };
    assert_eq!(list(None, None).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(list(None, Some(1)).await, [ids[2]]);
    assert_eq!(*devnet.client.job("latest").await.unwrap().job_id, ids[2]);
    assert_eq!(list(Some(JobStatus::Verified), None).await, [ids[1]]);
    assert_eq!(list(Some(JobStatus::Assigned), None).await, [ids[2], ids[0]]);
    assert_eq!(list(Some(JobStatus::Failed), None).await, []);
    let text = devnet.get("/v1/jobs?status=Lost").await.text().await.unwrap();
    assert!(text.contains("bad_request") && text.contains("Verified"), "{text}");
}

/// A draw's verdict on a runner.
fn of<'a>(draw: &'a mut DrawRecord, runner: &str) -> &'a mut Verdict {
    let found = draw.verdicts.iter_mut().find(|verdict| verdict.runner == address(runner));
    found.expect("every runner is judged")
}

#[tokio::test]
async fn a_draw_is_explained_and_done_again() {
    let mut devnet = Devnet::new().await;
    devnet.push(vec![]);
    // Runner 1 is absent from the P(h) that the draw reads.
    let certificate = devnet.certificate(&[0, 2]);
    let parent = devnet.state.head_hash();
    let id = {
        let job_spec = JobSpec { max_price: Wei::cby(10), ..spec() };
        let id = job_spec.job_id(&address("dev-0"), 0);
        let signed = devnet.sign("dev-0", Payload::SubmitJob(job_spec.into()));
        devnet.push_to(&[0, 1], vec![certificate], vec![signed]);
        id
    };
    let text = id.to_string();
    let explanation = devnet.client.explain(&text, &ExplanationQuery::default()).await.unwrap();
    assert_eq!((explanation.height, explanation.attempt), (2, 1));
    assert_eq!((*explanation.block_hash, explanation.mru), (parent, None));
    let fates: Vec<_> = explanation
        .candidates
        .iter()
        .map(|c| (c.runner.as_str(), c.filter.as_deref(), c.weight))
        .collect();
    let expected = [
        ("runner-0", None, Some(2)),
        ("runner-1", Some("presence"), None),
        ("runner-2", None, Some(2)),
    ];
    assert_eq!(fates, expected);
    assert_eq!(explanation.candidates[1].reason.as_deref(), Some("its bit in P(H-1) is 0"));
    assert_eq!(explanation.draws.len(), 1);
    assert_eq!(explanation.draws[0].total, 4);
    let source = explanation.seed_source.as_ref().unwrap();
    assert_eq!((source.rule.as_str(), source.certificate_of), ("parent", None));
    let read = explanation.presence.as_ref().unwrap();
    assert_eq!((read.height, read.age, read.votes, read.embedded_in), (1, 0, Some(3), Some(2)));
    assert_eq!(
        (read.block_hash.map(|hash| *hash), read.rule.as_str()),
        (Some(parent), "committee")
    );
    assert_eq!(explanation.phase.as_deref(), Some("hot-path"));
    assert_eq!(*explanation.draws[0].picked_address, devnet.committee(&id)[0]);

    // The next block shows that the drawing block is final.
    devnet.push_empty(1);
    let check = devnet.verify_selection(&text).await.unwrap();
    assert!(check.valid && check.filters == Filters::Redone, "{check:?}");
    assert_eq!(
        (check.recomputed_root, Some(check.stored_root)),
        (check.stored_root, explanation.candidates_root)
    );
    assert_eq!((&check.recomputed, check.recomputed.len()), (&check.stored, 1));

    // When the validator's record of the draw is wrong, the chain contradicts it.
    let sound = devnet.store(1).draws_of(&id).unwrap().pop().unwrap();
    let verify = async |change: &dyn Fn(&mut StoredDraw)| {
        let mut stored = sound.clone();
        change(&mut stored);
        devnet.alter(
            "UPDATE draw SET height = ?, body = ?",
            params![stored.height.get(), to_vec(&stored.draw)],
        );
        let check = devnet.verify_selection(&text).await.unwrap();
        assert_eq!(check.valid, check.mismatches.is_empty());
        check.mismatches.join("\n")
    };
    assert_eq!(verify(&|_| ()).await, "");
    let check = async |change: &dyn Fn(&mut DrawRecord), expected: &str| {
        let found = verify(&|stored| change(&mut stored.draw)).await;
        assert!(found.contains(expected), "{found}: expected {expected}");
    };
    let poor = "(stake 1 wei), should be a candidate";
    check(&|draw| of(draw, "runner-0").stake = Wei::new(1), poor).await;
    let heavy = "runner-0 was a candidate with weight 7";
    check(&|draw| of(draw, "runner-0").weight = 7, heavy).await;
    // A verdict that lets an absent runner in, keeps a runner out, or names another reason.
    let let_in = "runner-1 was a candidate";
    check(&|draw| of(draw, "runner-1").dropped_by = None, let_in).await;
    let kept_out = "runner-2 was dropped by pool";
    check(&|draw| of(draw, "runner-2").dropped_by = Some(Filter::Pool), kept_out).await;
    check(&|draw| of(draw, "runner-1").reason.push('!'), "its bit in P(H-1) is 0!").await;
    let runner = address("runner-2");
    let not_judged = "runner-2 was not judged";
    check(&|draw| draw.verdicts.retain(|v| v.runner != runner), not_judged).await;
    let stranger = "dev-0 was judged, the registry did not have it";
    check(&|draw| of(draw, "runner-2").runner = address("dev-0"), stranger).await;
    check(&|draw| draw.seed = Hash::ZERO, "the draw's seed is 0x0000").await;
    check(&|draw| draw.parent = Hash::ZERO, "the seed was made of 0x0000").await;
    let favoured = "runner-2 was favoured by MRU, should be no runner";
    let read = |runner: &str, set_at| {
        let (runner, set_at) = (address(runner), Height::new(set_at));
        Some(MruRead { runner, set_at, ttl_blocks: 256, multiplier: 4 })
    };
    check(&|draw| draw.mru = read("runner-2", 1), favoured).await;
    check(&|draw| draw.mru = read("runner-2", 1), "mru_record is").await;
    check(&|draw| draw.presence = None, "presence is absent, should be").await;
    check(&|draw| draw.phase = Phase::Shadow, "phase is \"shadow\"").await;
    let certificate = SeedCertificate { height: Height::new(1), digest: Hash([3; 32]) };
    let of = "seed_source.certificate_of is 1, should be absent";
    check(&|draw| draw.certificate = Some(certificate), of).await;
    let draws = "the recorded draws are not those of the seed";
    check(&|draw| draw.selection.draws[0].r ^= 1, draws).await;
    check(&|draw| draw.selection.draws[0].picked = address("runner-1"), draws).await;
    devnet.alter("UPDATE draw SET height = 1", []);
    let found = devnet.verify_selection(&text).await.unwrap();
    assert!(found.mismatches[0].contains("explains no draw of block 2"), "{found:?}");
}

#[tokio::test]
async fn each_attempt_at_a_job_is_explained() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let id = devnet.submit(spec());
    let first = devnet.committee(&id);
    // Three runners are silent in turn, and none is left for the fourth attempt.
    while devnet.state.open_jobs().next().is_some() {
        devnet.push_empty(1);
    }
    let text = id.to_string();
    let explain = async |attempt| {
        let query = ExplanationQuery { attempt };
        devnet.client.explain(&text, &query).await
    };
    let last = explain(None).await.unwrap();
    assert_eq!((last.attempt, last.draws.len()), (4, 0));
    let dropped = last.candidates.iter().filter(|c| c.filter.as_deref() == Some("exclusion"));
    assert_eq!(dropped.count(), 3, "{last:?}");
    let attempts = [explain(Some(1)).await, explain(Some(2)).await, explain(Some(3)).await];
    let attempts = attempts.map(Result::unwrap);
    assert_eq!(*attempts[0].draws[0].picked_address, first[0]);
    assert!(attempts.is_sorted_by_key(|attempt| attempt.height));
    assert!(attempts.iter().all(|attempt| attempt.draws.len() == 1));
    for attempt in [0, 5] {
        let error = explain(Some(attempt)).await.unwrap_err();
        assert!(error.to_string().contains("there were 4"), "{error}");
    }
}

#[tokio::test]
async fn a_draw_is_done_again_after_its_state_is_gone() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let id = devnet.submit(JobSpec { timeout_blocks: 400, ..spec() });
    devnet.push_empty(300);
    let check = devnet.verify_selection(&id.to_string()).await.unwrap();
    assert!(check.valid && check.height == 3, "{check:?}");
    // The record is not trusted, even for an old draw.
    let mut stored = devnet.store(0).draws_of(&id).unwrap().pop().unwrap();
    let judged = of(&mut stored.draw, "runner-0");
    (judged.reason, judged.dropped_by) = ("because".to_owned(), Some(Filter::Reputation));
    devnet.alter("UPDATE draw SET body = ?", params![to_vec(&stored.draw)]);
    let check = devnet.verify_selection(&id.to_string()).await.unwrap();
    assert!(!check.valid && check.filters == Filters::Redone, "{check:?}");
    assert!(check.mismatches[0].contains("was dropped by reputation (because"), "{check:?}");
}

#[tokio::test]
async fn a_job_without_candidates_waits_and_fails() {
    let mut devnet = Devnet::new().await;
    let id = spec().job_id(&address("dev-0"), 0);
    let signed = devnet.sign("dev-0", Payload::SubmitJob(spec().into()));
    devnet.push_to(&[0, 1], vec![], vec![signed]);
    let (client, text) = (devnet.client.clone(), id.to_string());
    let job = client.job(&text).await.unwrap();
    assert_eq!((job.status, job.attempts, job.error), (JobStatus::Pending, 0, None));
    let explanation = client.explain(&text, &ExplanationQuery::default()).await.unwrap();
    assert!(explanation.draws.is_empty() && explanation.candidates_root.is_none());
    assert!(explanation.candidates.iter().all(|c| c.filter.as_deref() == Some("presence")));
    let error = devnet.verify_selection(&text).await.unwrap_err();
    assert!(error.to_string().ends_with("has no committee: it is Pending"), "{error}");

    for _ in 2..=6 {
        devnet.push_to(&[0, 1], vec![], vec![]);
    }
    let job = client.job(&text).await.unwrap();
    assert_eq!(
        (job.status, job.final_at, job.latency_ms),
        (JobStatus::Failed, Some(5), Some(2_000))
    );
    assert!(job.error.unwrap().starts_with("no runner qualified up to block 5"));
    // It waited in blocks 1 to 4.
    let events: Vec<_> = job.events.iter().map(|e| (e.height, e.event.as_str())).collect();
    let expected = [(1, "JobSubmitted"), (1, "JobWaiting"), (4, "JobWaiting"), (5, "JobFailed")];
    assert_eq!(events, expected);
    assert_eq!(client.explain(&text, &ExplanationQuery::default()).await.unwrap().height, 4);
}

#[tokio::test]
async fn a_runner_that_leaves_in_the_drawing_block_is_no_candidate() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let id = spec().job_id(&address("dev-0"), 0);
    let leave = devnet.sign("runner-0", Payload::DeregisterRunner);
    let submit = devnet.sign("dev-0", Payload::SubmitJob(spec().into()));
    devnet.push(vec![leave, submit]);
    let explanation =
        devnet.client.explain(&id.to_string(), &ExplanationQuery::default()).await.unwrap();
    let left = explanation.candidates.iter().find(|c| c.runner == "runner-0").unwrap();
    assert_eq!(left.reason.as_deref(), Some("deregistered in the block that drew"));
    devnet.push_empty(1);
    let check = devnet.verify_selection(&id.to_string()).await.unwrap();
    assert!(check.valid, "{check:?}");
}

#[tokio::test]
async fn unknown_jobs_are_not_found() {
    let devnet = Devnet::new().await;
    let id = Hash::ZERO.to_string();
    for error in [
        devnet.client.job(&id).await.unwrap_err(),
        devnet.client.job_result(&id).await.unwrap_err(),
        devnet.client.explain(&id, &ExplanationQuery::default()).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), Some(ErrorCode::NotFound));
    }
    let error = devnet.client.job("latest").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no job so far");
    let error = devnet.client.job("7").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no job `7`");
}
