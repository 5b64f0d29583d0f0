//! Proofs of each kind over the API, checked as a stranger would, with only header and committee.

use super::*;
use crate::{
    client::ClientError,
    consensus::{certificate, scheme::Committee},
    types::{ProofQuery, StateProof},
};
use cowboy_engine::chain::{self, Found, StateProof as Proof, Subject};

fn query(key: impl Into<Option<&'static str>>) -> ProofQuery {
    ProofQuery { key: key.into().map(str::to_owned), at: None }
}

fn of(key: &impl ToString) -> ProofQuery {
    ProofQuery { key: Some(key.to_string()), at: None }
}

impl Devnet {
    async fn proved(&self, kind: &str, query: &ProofQuery) -> (StateProof, Proof) {
        let answer = self.client.prove(kind, query).await.unwrap();
        let proof = Proof::from_bytes(&answer.proof.0.0).unwrap();
        let statement = proof.check().unwrap();
        assert_eq!(
            (answer.height, *answer.state_root),
            (statement.height.get(), statement.state_root)
        );
        assert_eq!((answer.kind.as_str(), proof.subject.kind()), (kind, kind));
        assert!(proof.subject.to_string().ends_with(&answer.key), "{}", answer.key);
        assert_eq!(answer.header_height, proof.header.height.get());
        assert_eq!(*answer.header_hash, proof.header.hash());
        let keys: Vec<_> = self.state.committee().iter().map(|v| v.consensus_key).collect();
        let committee = Committee::of_keys(self.state.chain_id(), &keys).unwrap();
        assert_eq!(certificate::verify(&committee, &proof.certificate), Ok(()));
        (answer, proof)
    }

    async fn refused_proof(&self, kind: &str, query: &ProofQuery) -> (ErrorCode, String) {
        match self.client.prove(kind, query).await {
            Err(ClientError::Refused(detail)) => (detail.code, detail.message),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn each_kind_is_proved_with_header_and_certificate() {
    let mut devnet = Devnet::new().await;
    let none_yet = devnet.refused_proof("presence", &query(None)).await;
    assert_eq!(none_yet.0, ErrorCode::Unavailable, "{none_yet:?}");
    let clock = devnet.clock(Wei::cby(1_000));
    let here = devnet.here();
    let ids = devnet.schedule((0..5).map(|n| request(clock, here + 50 + n, "later")).collect());
    let fired = devnet.schedule(vec![request(clock, here + 3, "now")])[0];
    let job = devnet.submit(spec());
    devnet.until(here + 8);

    let (answer, proof) = devnet.proved("timer", &of(&ids[2])).await;
    // No block embeds the head's certificate yet, so the block before it names the state before
    // that.
    assert_eq!((answer.height, answer.header_height), (devnet.here() - 2, devnet.here() - 1));
    let found = proof.check().unwrap().found;
    assert!(matches!(found, Found::Value(_)), "{found:?}");
    let (_, by_beginning) = devnet.proved("timer", &of(&&ids[2].to_string()[..12])).await;
    assert_eq!(by_beginning, proof);
    for gone in [fired, Hash([9; 32])] {
        let (_, proof) = devnet.proved("timer", &of(&gone)).await;
        assert_eq!(proof.check().unwrap().found, Found::Nothing);
    }
    let heights = format!("{}..{}", here + 51, here + 53);
    let (_, proof) = devnet.proved("timers", &of(&heights)).await;
    let expected = (1..4).map(|n| (Height::new(here + 50 + n as u64), ids[n])).collect();
    assert_eq!(proof.check().unwrap().found, Found::Timers(expected));

    let (_, proof) = devnet.proved("account", &query("dev-0")).await;
    assert_eq!(proof.subject, Subject::Account(address("dev-0")));
    for (kind, key, there) in [
        ("account", Address([7; 20]).to_string(), false),
        ("actor", clock.to_string(), true),
        ("actor", Address([7; 20]).to_string(), false),
        ("stored", format!("{clock}/nothing"), false),
        ("job", job.to_string(), true),
        ("job", Hash([7; 32]).to_string(), false),
        ("runner", "runner-1".to_owned(), true),
        ("runner", "dev-0".to_owned(), false),
        ("task", Hash([7; 32]).to_string(), false),
    ] {
        let (_, proof) = devnet.proved(kind, &of(&key)).await;
        let found = proof.check().unwrap().found != Found::Nothing;
        assert_eq!(found, there, "{kind} {key}");
    }
    let (_, proof) = devnet.proved("presence", &query(None)).await;
    assert!(matches!(proof.check().unwrap().found, Found::Value(_)));
    let (_, proof) = devnet.proved("validators", &query(None)).await;
    assert_eq!(proof.check().unwrap().found, Found::Validators(devnet.state.roster()));
}

#[tokio::test]
async fn a_proof_is_of_the_state_that_is_asked_for() {
    let mut devnet = Devnet::new().await;
    let clock = devnet.clock(Wei::cby(1_000));
    let before = devnet.here();
    let id = devnet.schedule(vec![request(clock, before + 50, "later")])[0];
    devnet.until(before + 5);
    for (at, there) in [(before, false), (before + 1, true), (before + 3, true)] {
        let asked = ProofQuery { at: Some(at), ..of(&id) };
        let (answer, proof) = devnet.proved("timer", &asked).await;
        assert_eq!(answer.height, at);
        assert_eq!(proof.check().unwrap().found != Found::Nothing, there, "after block {at}");
    }
    let asked = |at| ProofQuery { at: Some(at), ..of(&id) };
    let head = devnet.here();
    let (code, message) = devnet.refused_proof("timer", &asked(head)).await;
    assert_eq!(code, ErrorCode::Unavailable);
    assert!(message.contains("names the state after"), "{message}");
    let (code, _) = devnet.refused_proof("timer", &asked(head + 1)).await;
    assert_eq!(code, ErrorCode::NotFound);

    // The head's certificate never arrives, so no header names the state after the head.
    let (code, _) = devnet.refused_proof("timer", &asked(head - 1)).await;
    assert_eq!(code, ErrorCode::Unavailable);
    devnet.push_to(&[0, 1], vec![], vec![]);
    devnet.push_empty(2);
    let (code, message) = devnet.refused_proof("timer", &asked(head)).await;
    assert_eq!(code, ErrorCode::NotFound);
    assert!(message.contains("no final block with a certificate names"), "{message}");
    assert_eq!(devnet.proved("timer", &asked(head - 1)).await.0.header_height, head + 1);
}

#[tokio::test]
async fn what_is_no_question_is_refused() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(3);
    for (kind, key, message) in [
        ("nothing", "x", "nothing of kind `nothing` can be proved"),
        ("timer", "0xzz", "there is no timer `0xzz`"),
        ("timers", "9..8", "`9..8` is not a range of heights"),
        ("timers", "9", "`9` is not a range of heights"),
        ("timers", "-1..8", "`-1..8` is not a range of heights"),
        ("job", "0x12", "no job's id begins with 0x12"),
        ("stored", "n", "`n` is not a key in a store"),
        ("presence", "n", "presence has no key"),
        ("validators", "n", "validators has no key"),
        ("account", "zed", "there is no account `zed`"),
    ] {
        let (code, got) = devnet.refused_proof(kind, &query(key)).await;
        assert!(got.starts_with(message), "{kind} {key}: {got}");
        assert!(matches!(code, ErrorCode::BadRequest | ErrorCode::NotFound), "{code:?}");
    }
    let long = "k".repeat(100);
    let (_, proof) = devnet.proved("stored", &of(&format!("{}/{long}", Address([7; 20])))).await;
    assert_eq!(proof.subject, Subject::Stored(Address([7; 20]), long.into()));
    const { assert!(chain::MAX_PROOF_BYTES > 1 << 20, "a timer's payload fits") };
}
