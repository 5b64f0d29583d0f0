//! Stored, voted and verified presence, sound and damaged.

use super::fixture::*;
use crate::{
    client::{BlockAt, ClientError},
    types::{Presence, PresenceStanding, RunnerPresence},
    verification::{Mismatch, MismatchKind, VerificationError},
};
use cowboy_engine::{
    chain::Certificate,
    presence::ThresholdRule,
    primitives::{Hash, codec::to_vec},
};
use rusqlite::params;
use std::sync::atomic::Ordering;

/// A devnet in which block 1 shows runners 0 and 2 as present, and blocks 2 and 3 show all runners.
async fn devnet() -> Devnet {
    let mut devnet = Devnet::new().await;
    devnet.push(vec![]);
    let certificate = devnet.certificate(&[0, 2]);
    devnet.push_to(&[0, 1], vec![certificate], vec![]);
    devnet.push_empty(2);
    devnet
}

#[tokio::test]
async fn every_validator_shows_the_same_presence() {
    let devnet = devnet().await;
    let presence = devnet.client.presence(BlockAt::Height(1)).await.unwrap();
    let Presence { height, rule, votes, threshold, registry_len, bitmap, present, .. } = &presence;
    assert_eq!((*height, rule.as_str(), *votes), (1, "committee", 3));
    assert_eq!((*threshold, *registry_len, bitmap.to_vec()), (Some(2), 3, vec![0b101]));
    assert_eq!(*present, ["runner-0", "runner-2"]);
    let absent: Vec<_> =
        presence.absent.iter().map(|a| (a.name.as_str(), a.present_count)).collect();
    assert_eq!((absent, presence.embedded_in), (vec![("runner-1", 0)], 2));
    for validator in ["validator-0", "validator-1"] {
        let at = devnet.at(validator);
        assert_eq!(at.presence(BlockAt::Height(1)).await.unwrap(), presence);
    }
    let latest = devnet.client.presence(BlockAt::Latest).await.unwrap();
    assert_eq!((latest.height, latest.present.len()), (3, 3));

    let votes = devnet.client.votes(BlockAt::Height(1)).await.unwrap();
    assert_eq!((votes.quorum, votes.validators, votes.embedded_in), (3, 4, 2));
    for (index, vote) in votes.votes.iter().enumerate() {
        let member = devnet.state.committee()[index].pubkey.address();
        assert_eq!(vote.validator, devnet.backend.slot_at(&member).unwrap().name());
        assert_eq!((vote.index as usize, vote.bit_length), (index, 3));
        assert_eq!((vote.bytes.to_vec(), vote.present.len()), (vec![0b101], 2));
    }
    for rule in ThresholdRule::ALL {
        let mut devnet = Devnet::with_rule(rule).await;
        devnet.push_empty(3);
        let presence = devnet.client.presence(BlockAt::Height(2)).await.unwrap();
        assert_eq!((presence.rule, presence.present.len()), (rule.to_string(), 3));
        let expected = match rule {
            ThresholdRule::Committee => Some(2),
            ThresholdRule::Quorum => Some(1),
            ThresholdRule::Subset => None,
        };
        assert_eq!(presence.threshold, expected);
        devnet.push_empty(1);
        let check = devnet.verify_presence("validator-1", BlockAt::Height(2)).await.unwrap();
        assert!(check.valid && check.certificate_valid, "{check:?}");
    }
}

/// The list of runners shows each runner's presence as a draw in the next block would read it.
#[tokio::test]
async fn runners_are_as_present_as_the_next_draw_finds_them() {
    use PresenceStanding::{Absent, Halted, Present, Stale, Unknown};

    let mut devnet = Devnet::new().await;
    let check = async |devnet: &Devnet, expected: [PresenceStanding; 3], of, for_block| {
        let runners = devnet.client.runners().await.unwrap();
        for (runner, standing) in runners.iter().zip(expected) {
            let presence = runner.presence.clone().unwrap();
            let found = (presence.standing, presence.of, presence.for_block, runner.present);
            assert_eq!(found, (standing, of, for_block, standing == Present));
            assert_eq!(presence.halted_ms.is_some(), standing == Halted);
            assert_eq!(devnet.client.runner(&runner.name).await.unwrap().presence, Some(presence));
        }
    };
    // The age of genesis does not count: no chain has started that could halt.
    devnet.now_ms.fetch_add(1_000_000, Ordering::Relaxed);
    check(&devnet, [Unknown; 3], None, 1).await;
    devnet.push(vec![]);
    check(&devnet, [Unknown; 3], None, 2).await;
    let certificate = devnet.certificate(&[0, 2]);
    devnet.push_to(&[0, 1], vec![certificate], vec![]);
    check(&devnet, [Present, Absent, Present], Some(1), 3).await;
    // Blocks without certificates: P(1) is read by draws up to block 5.
    for for_block in 4..=5 {
        devnet.push_to(&[0, 1], vec![], vec![]);
        check(&devnet, [Present, Absent, Present], Some(1), for_block).await;
    }
    devnet.push_to(&[0, 1], vec![], vec![]);
    check(&devnet, [Stale; 3], Some(1), 6).await;
    devnet.push(vec![]);
    check(&devnet, [Present; 3], Some(5), 7).await;
    // After ten seconds without a block nothing is drawn, regardless of the newest P(h).
    devnet.now_ms.fetch_add(9_000, Ordering::Relaxed);
    check(&devnet, [Present; 3], Some(5), 7).await;
    devnet.now_ms.fetch_add(1_000, Ordering::Relaxed);
    check(&devnet, [Halted; 3], Some(5), 7).await;
    devnet.push(vec![]);
    check(&devnet, [Present; 3], Some(6), 8).await;
}

#[test]
fn presence_is_told_in_words() {
    let check = |standing, halted_ms, expected: &str| {
        let presence = RunnerPresence { standing, of: Some(41), for_block: 43, halted_ms };
        assert_eq!(presence.to_string(), expected);
    };
    check(PresenceStanding::Present, None, "yes: by P(41), for a draw in block 43");
    check(PresenceStanding::Absent, None, "no: by P(41), for a draw in block 43");
    let stale = "stale: P(41) is the newest, too old for a draw in block 43, in which no runner \
                 is present";
    check(PresenceStanding::Stale, None, stale);
    let halted = "halted: there has been no block for 24 s, so nothing is drawn";
    check(PresenceStanding::Halted, Some(24_900), halted);
    check(PresenceStanding::Unknown, None, "unknown: no P(h) is on the chain yet");
}

#[tokio::test]
async fn a_height_without_certificate_says_why() {
    let mut devnet = Devnet::new().await;
    let check = async |devnet: &Devnet, at: BlockAt, message: &str| {
        let (client, mut errors) = (&devnet.client, Vec::<ClientError>::new());
        errors.extend(client.presence(at).await.err());
        errors.extend(client.votes(at).await.err());
        match devnet.verify_presence("validator-0", at).await {
            Err(VerificationError::Client(error)) => errors.push(error),
            other => panic!("{other:?}"),
        }
        assert_eq!(errors.len(), 3, "{at}");
        for error in errors {
            assert!(error.to_string().contains(message), "{at}: {error}");
        }
    };
    check(&devnet, BlockAt::Latest, "no block of this chain has a certificate").await;
    check(&devnet, BlockAt::Height(0), "no validator votes on it").await;
    check(&devnet, BlockAt::Height(1), "not final yet").await;
    devnet.push_to(&[0, 1], vec![], vec![]);
    check(&devnet, BlockAt::Height(1), "no block up to the head 1 embeds its certificate").await;
    for _ in 2..=10 {
        devnet.push_to(&[0, 1], vec![], vec![]);
    }
    check(&devnet, BlockAt::Height(1), "final through its descendants only").await;
    check(&devnet, BlockAt::Height(3), "no block up to the head 10 embeds").await;
}

/// Verifies P(1) after `change` has altered validator 0's record of it.
async fn verify(change: impl FnOnce(&Devnet, Certificate)) -> (bool, Vec<Mismatch>) {
    let devnet = devnet().await;
    let verify = async |validator: &str| {
        devnet.verify_presence(validator, BlockAt::Height(1)).await.unwrap()
    };
    let sound = verify("validator-0").await;
    assert!(sound.valid && sound.certificate_valid, "{sound:?}");
    assert_eq!((sound.recomputed.to_vec(), sound.stored.to_vec()), (vec![0b101], vec![0b101]));
    let height = cowboy_engine::primitives::Height::new(1);
    let stored = devnet.store(0).presence(height).unwrap().unwrap();
    change(&devnet, stored.certificate().unwrap());
    let other = verify("validator-1").await;
    assert!(other.valid, "another validator has its own copy");
    let check = verify("validator-0").await;
    assert_eq!(check.valid, check.mismatches.is_empty());
    (check.certificate_valid, check.mismatches)
}

fn replace(devnet: &Devnet, certificate: &Certificate) {
    devnet.alter(
        "UPDATE presence SET certificate = ? WHERE height = 1",
        params![to_vec(certificate)],
    );
}

fn kinds(mismatches: &[Mismatch]) -> Vec<MismatchKind> {
    mismatches.iter().map(|mismatch| mismatch.kind).collect()
}

fn details(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(|mismatch| mismatch.detail.as_str()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_flipped_bit_is_found_and_named() {
    use MismatchKind::{Bit, Certificate, Signature};

    let mut voter = String::new();
    let (valid, found) = verify(|devnet, mut certificate| {
        certificate.votes[1].signature[7] ^= 4;
        let member = devnet.state.committee()[1].pubkey.address();
        voter = devnet.backend.slot_at(&member).unwrap().name().to_owned();
        replace(devnet, &certificate);
    })
    .await;
    assert_eq!((valid, kinds(&found)), (false, vec![Signature, Certificate]));
    assert_eq!(found[0].validator.as_ref(), Some(&voter));

    let (valid, found) = verify(|devnet, mut certificate| {
        certificate.votes[0].presence.set(1, true);
        replace(devnet, &certificate);
    })
    .await;
    assert_eq!((valid, &kinds(&found)[..2]), (false, &[Signature, Certificate][..]));
    let told = details(&found);
    assert!(told.contains("presence: absent[0].present_count is 1, should be 0"), "{told}");
    assert!(told.contains(r#"votes: votes[0].bytes is "0x07", should be "0x05""#), "{told}");

    let (valid, found) = verify(|devnet, _| {
        devnet.alter("UPDATE presence SET bitmap = ? WHERE height = 1", params![[0b111u8]]);
    })
    .await;
    assert_eq!((valid, kinds(&found)), (true, vec![Bit]));
    assert_eq!((found[0].bit, found[0].runner.as_deref()), (Some(1), Some("runner-1")));
    assert_eq!(found[0].detail, "bit 1 (runner-1) is 1, but the votes give 0");
}

#[tokio::test]
async fn other_damage_is_found_too() {
    use MismatchKind::{Answer, Bit, Block, Certificate, Malformed, Quorum, Signature};

    let (valid, found) = verify(|devnet, mut certificate| {
        certificate.votes.pop();
        replace(devnet, &certificate);
    })
    .await;
    assert_eq!((valid, &kinds(&found)[..2]), (false, &[Quorum, Certificate][..]));
    assert!(details(&found).contains("presence: votes is 2, should be 3"), "{found:?}");

    let (valid, found) = verify(|devnet, mut certificate| {
        certificate.votes[2] = certificate.votes[0].clone();
        replace(devnet, &certificate);
    })
    .await;
    assert_eq!((valid, &kinds(&found)[..2]), (false, &[Quorum, Certificate][..]));

    let (_, found) = verify(|devnet, mut certificate| {
        certificate.block = Hash([7; 32]);
        replace(devnet, &certificate);
    })
    .await;
    let expected = [Signature, Signature, Signature, Block, Certificate];
    assert_eq!(kinds(&found), expected);

    let check = async |column: &str, value: &[u8], expected: &[MismatchKind]| {
        let sql = format!("UPDATE presence SET {column} = ? WHERE height = 1");
        let (_, found) = verify(|devnet, _| devnet.alter(&sql, params![value])).await;
        assert_eq!(kinds(&found), expected, "{column}: {found:?}");
    };
    check("certificate", b"\x81", &[Malformed, Malformed]).await;
    check("bitmap", &[0b1000_0101], &[Malformed, Malformed]).await;
    check("bitmap", &[0b101, 0], &[Malformed, Malformed]).await;
    check("bitmap", &[0], &[Bit, Bit]).await;
    check("registry", b"", &[Malformed, Certificate, Answer]).await;
    let strangers = to_vec(&[address("runner-0"); 3].to_vec());
    let (_, found) = verify(|devnet, _| {
        let sql = "UPDATE presence SET registry = ? WHERE height = 1";
        devnet.alter(sql, params![strangers]);
    })
    .await;
    assert!(details(&found).contains("evidence: presence.registry[1] is"), "{found:?}");
    assert!(kinds(&found).iter().all(|kind| *kind == Answer), "{found:?}");

    let devnet = devnet().await;
    devnet.alter("UPDATE presence SET certificate = x'81' WHERE height = 1", params![]);
    let error = devnet.at("validator-0").presence(BlockAt::Height(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "the stored certificate of block 1 is damaged");
}
