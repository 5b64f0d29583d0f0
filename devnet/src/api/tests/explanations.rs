//! Presence, weights and seeds in explanations of draws.

use super::fixture::*;
use crate::{types::ExplanationQuery, verification::Filters};
use cowboy_engine::{
    chain::Payload,
    job::{SeedCertificate, SeedRule},
    presence::Phase,
    primitives::{Hash, Height, codec::to_vec},
};
use rusqlite::params;

/// Three votes, of which one has runner 1: the present and the drawn runners under each rule.
#[tokio::test]
async fn the_same_votes_are_counted_under_every_rule() {
    for phase in [Phase::HotPath, Phase::Shadow] {
        let mut devnet = Devnet::of(|params| params.phase = phase).await;
        devnet.push(vec![]);
        let certificate = devnet.certificate_by([&[0], &[0, 1], &[0]]);
        let id = spec().job_id(&address("dev-0"), 0);
        let signed = devnet.sign("dev-0", Payload::SubmitJob(spec().into()));
        devnet.push_to(&[0, 1], vec![certificate], vec![signed]);
        let text = id.to_string();
        let explained = devnet.client.explain(&text, &ExplanationQuery::default()).await.unwrap();
        let rules = &explained.under_other_rules;
        let of = |rule: &str| rules.iter().find(|under| under.rule == rule).unwrap();
        let subset = devnet.state.subset_of(&key("runner-1").public_key());
        let member = subset.iter().any(|v| v.pubkey == devnet.state.committee()[1].pubkey);
        assert_eq!(of("committee").present, ["runner-0"]);
        assert_eq!(of("committee").committee, ["runner-0"]);
        assert_eq!(of("quorum").present, ["runner-0", "runner-1"]);
        assert_eq!(of("subset").present.len(), if member { 2 } else { 1 });
        assert_eq!(of("shadow").present, ["runner-0"]);
        let in_force: Vec<_> = rules.iter().filter(|under| under.in_force).collect();
        let expected = if phase == Phase::Shadow { "shadow" } else { "committee" };
        assert_eq!((in_force.len(), in_force[0].rule.as_str()), (1, expected));
        assert!(in_force[0].same, "{in_force:?}");
        let drawn: Vec<_> = explained.draws.iter().map(|draw| draw.picked.clone()).collect();
        assert_eq!(in_force[0].committee, drawn);
        devnet.push_empty(1);
        let check = devnet.verify_selection(&text).await.unwrap();
        assert!(check.valid, "{check:?}");

        // Without the votes the draw is still explained, but not its results under other rules.
        devnet.alter("DELETE FROM presence WHERE height = ?", params![1]);
        let node = devnet.at("validator-0");
        let without = node.explain(&text, &ExplanationQuery::default()).await.unwrap();
        assert_eq!((without.under_other_rules, &without.draws), (vec![], &explained.draws));
        let read = without.presence.unwrap();
        assert_eq!((read.height, read.block_hash, read.votes), (1, None, None));
    }
}

#[tokio::test]
async fn weights_are_told_before_and_after_the_record_of_the_runner_used_last() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let id = devnet.submit(spec());
    devnet.finish(&id, b"x");
    let served = devnet.client.job(&id.to_string()).await.unwrap().runner.unwrap();
    devnet.push_empty(1);
    let id = devnet.submit(spec()).to_string();
    let explained = devnet.client.explain(&id, &ExplanationQuery::default()).await.unwrap();
    let read = explained.mru_record.as_ref().unwrap();
    assert_eq!((&read.runner, read.set_at, read.age, read.applied), (&served, 4, 2, true));
    assert_eq!((read.ttl_blocks, read.multiplier), (256, 4));
    assert_eq!(explained.mru, Some(served.clone()));
    for candidate in &explained.candidates {
        let first = if candidate.runner == served { 8 } else { 2 };
        assert_eq!((candidate.weight, candidate.first_weight), (Some(2), Some(first)));
    }
    assert_eq!(explained.draws[0].total, 12);
    devnet.push_empty(1);
    assert!(devnet.verify_selection(&id).await.unwrap().valid);

    // An expired record is listed, and has no effect on weights.
    devnet.push_empty(257);
    let id = devnet.submit(spec()).to_string();
    let explained = devnet.client.explain(&id, &ExplanationQuery::default()).await.unwrap();
    let read = explained.mru_record.as_ref().unwrap();
    assert_eq!((read.age > read.ttl_blocks, read.applied, &explained.mru), (true, false, &None));
    assert!(explained.candidates.iter().all(|c| c.first_weight == c.weight));
}

#[tokio::test]
async fn a_draw_seeded_by_a_certificate_is_verified_from_the_votes() {
    let mut devnet = Devnet::of(|params| params.selection_seed = SeedRule::Certificate).await;
    devnet.push_empty(2);
    // Block 3 embeds the certificate of block 2; its proposer is the first of the committee.
    let certificate = devnet.certificate(&[0, 1, 2]);
    let digest = certificate.seed_digest(Some(0));
    devnet.push_to(&[0, 1], vec![certificate], vec![]);
    let id = devnet.submit(spec());
    let text = id.to_string();
    let explained = devnet.client.explain(&text, &ExplanationQuery::default()).await.unwrap();
    let source = explained.seed_source.as_ref().unwrap();
    assert_eq!((source.rule.as_str(), source.certificate_of), ("certificate", Some(2)));
    assert_eq!(source.digest.map(|digest| *digest), Some(digest));
    devnet.push_empty(1);
    let check = devnet.verify_selection(&text).await.unwrap();
    assert!(check.valid && check.filters == Filters::Redone, "{check:?}");

    let mut draw = devnet.store(1).draws_of(&id).unwrap().pop().unwrap().draw;
    draw.certificate = Some(SeedCertificate { height: Height::new(2), digest: Hash([9; 32]) });
    devnet.alter("UPDATE draw SET body = ?", params![to_vec(&draw)]);
    let check = devnet.verify_selection(&text).await.unwrap();
    let found = check.mismatches.join("\n");
    assert!(!check.valid && found.contains("seed_source.digest is \"0x0909"), "{found}");
}
