//! The effect of the presence filter on draws, over the API.

use super::fixture::*;
use crate::types::*;
use cowboy_engine::{
    chain::{Params, Payload},
    job::spec::JobSpec,
    presence::Phase,
    primitives::Hash,
};

async fn devnet(phase: Phase) -> Devnet {
    Devnet::of(|params: &mut Params| params.phase = phase).await
}

fn name_of(devnet: &Devnet, job: &Hash) -> String {
    let runner = devnet.committee(job)[0];
    let mut names = (0..3).map(|i| format!("runner-{i}"));
    names.find(|name| address(name) == runner).unwrap()
}

#[tokio::test]
async fn a_comparison_shows_what_the_filter_changes() {
    let mut devnet = devnet(Phase::Shadow).await;
    devnet.push_empty(1);
    let spec = || JobSpec { timeout_blocks: 40, ..spec() };
    // As many jobs as the three runners have room for. Each is drawn with the certificate of the
    // previous block, in which runner-1 is absent.
    let mut jobs = Vec::new();
    for nonce in 0..6 {
        let certificate = devnet.certificate(&[0, 2]);
        let signed = devnet.sign("dev-0", Payload::SubmitJob(spec().into()));
        devnet.push_to(&[0, 1], vec![certificate], vec![signed]);
        jobs.push(spec().job_id(&address("dev-0"), nonce));
    }
    let compared = devnet.client.compare_presence(&ComparisonQuery::default()).await.unwrap();
    assert_eq!((compared.from, compared.to, compared.more), (0, 7, false));
    assert_eq!((compared.compared, compared.draws.len()), (6, 6));
    let ids: Vec<_> = compared.draws.iter().map(|draw| *draw.job_id).collect();
    assert_eq!(ids, jobs);
    for draw in &compared.draws {
        assert_eq!((draw.phase.as_str(), draw.filtered), ("shadow", false));
        assert_eq!(draw.presence_of, Some(draw.height - 1));
        assert_eq!(draw.dropped, ["runner-1"]);
        let drawn = name_of(&devnet, &draw.job_id);
        assert_eq!(draw.without_filter, [drawn.as_str()]);
        assert!(!draw.with_filter.contains(&"runner-1".to_owned()));
        assert_eq!(draw.same, draw.with_filter == draw.without_filter);
        // The filter would have changed only the draws that chose an absent runner.
        assert!(draw.same || drawn == "runner-1" || draw.with_filter.len() == 1);
    }
    let changed = compared.draws.iter().filter(|draw| !draw.same).count();
    assert_eq!(compared.changed as usize, changed);
    let absent = compared.draws.iter().filter(|draw| draw.without_filter == ["runner-1"]).count();
    assert!(changed >= absent && absent > 0, "the seeds of the test draw runner-1: {compared:?}");
    // The two present runners have no room left.
    let full = compared.draws.iter().filter(|draw| draw.with_filter.is_empty()).count();
    assert_eq!(compared.would_have_waited as usize, full);

    let of = async |from, to| {
        let query = ComparisonQuery { from, to, job: None };
        devnet.client.compare_presence(&query).await
    };
    assert_eq!(of(Some(3), Some(4)).await.unwrap().compared, 2);
    assert_eq!(of(Some(1), Some(1)).await.unwrap().compared, 0);
    assert_eq!(of(Some(4), Some(3)).await.unwrap_err().code(), Some(ErrorCode::BadRequest));
    assert_eq!(of(None, Some(99)).await.unwrap_err().code(), Some(ErrorCode::NotFound));
    let one = |job: String| ComparisonQuery { job: Some(job), ..ComparisonQuery::default() };
    let only = devnet.client.compare_presence(&one(jobs[3].to_string())).await.unwrap();
    assert_eq!((only.from, only.to, only.draws), (5, 5, vec![compared.draws[3].clone()]));
    let none = devnet.client.compare_presence(&one(Hash::ZERO.to_string())).await;
    assert_eq!(none.unwrap_err().code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_draw_without_presence_would_have_waited() {
    let check = async |phase, filtered, waited| {
        let mut devnet = devnet(phase).await;
        let signed = devnet.sign("dev-0", Payload::SubmitJob(spec().into()));
        devnet.push_to(&[0, 1], vec![], vec![signed]);
        let compared = devnet.client.compare_presence(&ComparisonQuery::default()).await.unwrap();
        let draw = &compared.draws[0];
        assert_eq!((draw.filtered, draw.same, draw.presence_of), (filtered, false, None));
        assert_eq!(draw.dropped.len(), 3);
        assert_eq!((draw.with_filter.len(), draw.without_filter.len()), (0, 1));
        assert_eq!((compared.changed, compared.would_have_waited), (1, waited));
    };
    check(Phase::Shadow, false, 1).await;
    // The job waited, and without the filter a runner would have been drawn.
    check(Phase::HotPath, true, 0).await;
    check(Phase::Sunset, true, 0).await;
}
