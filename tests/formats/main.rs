//! `docs/runner-protocol.md` ends with every frame and every other signed message in hexadecimal.
//! These tests generate that part and compare it; with `UPDATE_DOCS=1` they write it.

mod evidence;
mod kubernetes;
mod proofs;

use cowboy_devnet::{sample::spec, transport::tls};
use cowboy_engine::{
    chain::{Payload, Transaction, transaction::RegisterRunner},
    job::spec::{MAX_MEMORY_MB, MAX_RETURN_BYTES},
    primitives::{Hash, Height, SecretKey, Signature, Wei, codec::to_vec},
    registry::{Capabilities, JobKind, MIN_STAKE},
    timer::{Governed, Key},
    wire::{
        AckStatus, BackpressureSignal, Body, CancelReason, CapabilityChange, CapabilityDelta,
        Errand, Goodbye, GoodbyeReason, HeartbeatKey, HeartbeatPing, HeartbeatPong, Hello,
        HelloAck, JobAck, JobAggregate, JobAggregated, JobAssignment, JobCancel, JobCommit,
        JobFailure, JobIds, JobProgress, JobProof, JobResult, JobReveal, KeyedPing, KeyedPong,
        Labels, Message as _, OpenJobs, Percent, Reason, RejectReason, RevealedResult, Reveals,
        Role, Text, heartbeat::EXPORTER_LABEL,
    },
};
use std::{env, fmt::Write as _, fs};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/runner-protocol.md");
/// The line before the generated part.
const MARK: &str = "<!-- generated from here on: UPDATE_DOCS=1 cargo test -p cowboy-tests --test \
                    formats -->\n";
const CHAIN: u64 = 0x0102_0304_0506_0708;
/// The first Ed25519 key of RFC 8032 §7.1, encoded as in a certificate.
const SPKI: &str = "302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a\
                    0ee172f3daa62325af021a68f707511a";

/// A key that is public knowledge.
fn key(byte: u8) -> SecretKey {
    SecretKey::from_bytes(&[byte; 32]).expect("a number below the curve's order")
}

/// Bytes in lines of 32.
fn dump(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(hex::encode);
    lines.collect::<Vec<_>>().join("\n")
}

/// The generated part.
fn frames() -> String {
    let (runner, validator) = (key(1), key(2));
    let (runners_nonce, validators_nonce) = ([0x11; 32], [0x22; 32]);
    let height = Height::new(42);
    let spec = spec(40);
    let job_id = spec.job_id(&key(3).address(), 7);
    let mut text = String::new();
    let mut section = |title: &str, about: &str, bytes: &[u8]| {
        let _ = write!(text, "\n### {title}\n\n{about}\n\n```\n{}\n```\n", dump(bytes));
    };
    let hello = |key: &SecretKey, party_role, challenge_nonce| Hello {
        version: 1,
        party_pubkey: key.public_key(),
        party_role,
        block_height: height,
        challenge_nonce,
    };
    let frame = hello(&runner, Role::Runner, runners_nonce).to_frame();
    section(
        "0x01 Hello, of the runner",
        "At height 42, `challenge_nonce` is 32 times 0x11.",
        &frame,
    );
    let frame = hello(&validator, Role::Validator, validators_nonce).to_frame();
    section("0x01 Hello, of the validator", "`challenge_nonce` is 32 times 0x22.", &frame);
    let frame = HelloAck::signed(CHAIN, &validator, (1, Role::Validator), height, &runners_nonce);
    section("0x02 HelloAck, of the validator", "Over the runner's nonce.", &frame.to_frame());
    let frame = HelloAck::signed(CHAIN, &runner, (1, Role::Runner), height, &validators_nonce);
    section("0x02 HelloAck, of the runner", "Over the validator's nonce.", &frame.to_frame());
    let frame = HeartbeatPing::signed(CHAIN, &runner, height, 1);
    section("0x10 HeartbeatPing", "Height 42, nonce 1.", &frame.to_frame());
    let frame = HeartbeatPong::signed(CHAIN, &validator, height, &runner.public_key());
    section("0x11 HeartbeatPong", "Height 42, to the runner.", &frame.to_frame());
    let frame = BackpressureSignal {
        active_jobs: 4,
        max_concurrent: 4,
        accepting_new: false,
        reason: Some(Text::truncated("full")),
    };
    section(
        "0x12 BackpressureSignal",
        "Four of four jobs run, no more, `full`.",
        &frame.to_frame(),
    );
    let frame = BackpressureSignal { active_jobs: 0, accepting_new: true, reason: None, ..frame };
    section("0x12 BackpressureSignal, without a reason", "It is left out.", &frame.to_frame());
    let labels = |names: &[&str]| Labels::new(names.iter().copied()).expect("few short names");
    let change = CapabilityChange {
        added_capabilities: labels(&["http"]),
        removed_capabilities: labels(&["custom"]),
        ..CapabilityChange::default()
    };
    let frame = CapabilityDelta::signed(CHAIN, &runner, height, change);
    section("0x13 CapabilityDelta", "`http` again, `custom` no longer.", &frame.to_frame());
    let frame = OpenJobs { job_ids: JobIds::first([job_id]) };
    section("0x14 OpenJobs", "The job below.", &frame.to_frame());
    let heartbeat_key = HeartbeatKey([0x33; 32]);
    let frame = KeyedPing::with_mac(CHAIN, &heartbeat_key, height, 1);
    let about = "Height 42, nonce 1, the connection's key is 32 times 0x33.";
    section("0x15 KeyedPing, in version 2", about, &frame.to_frame());
    let frame = KeyedPong::with_mac(CHAIN, &heartbeat_key, height);
    section("0x16 KeyedPong, in version 2", "Height 42, the same key.", &frame.to_frame());
    let body = Body::new(to_vec(&spec)).expect("a short one");
    let deadline = Height::new(82);
    let unsigned = JobAssignment {
        job_id,
        submitter: key(3).address(),
        nonce: 7,
        job_spec: body.clone(),
        block_height: height,
        deadline_block: deadline,
        validator_signed: Signature([0; 65]),
    };
    let frame = JobAssignment::signed(CHAIN, &validator, &runner.public_key(), unsigned);
    assert!(frame.is_of_its_job(), "the example's id is that of its job");
    section(
        "0x20 JobAssignment",
        "The job `echo hi`, submitted by the account of the secret key 32 times 0x03 with nonce 7, \
         due by block 82.",
        &frame.to_frame(),
    );
    for status in
        [AckStatus::Accepted, AckStatus::Duplicate, AckStatus::Reject(RejectReason::AtCapacity)]
    {
        let frame = JobAck::signed(CHAIN, &runner, (job_id, deadline), status);
        section(&format!("0x21 JobAck: {status}"), "For the job above.", &frame.to_frame());
    }
    let fraction = Percent::new(50).expect("at most 100");
    let frame = JobProgress { job_id, fraction, detail: Some(Text::truncated("half")) };
    section("0x22 JobProgress", "Half of it.", &frame.to_frame());
    let result = Body::new(b"hi\n".to_vec()).expect("a short one");
    let frame = JobResult::signed(CHAIN, &runner, job_id, result);
    section("0x23 JobResult", "The three bytes that `echo hi` prints.", &frame.to_frame());
    let attempt = (job_id, deadline);
    let frame = JobCancel::signed(CHAIN, &validator, attempt, CancelReason::Reassigned);
    section("0x24 JobCancel", "Another runner has it.", &frame.to_frame());
    let proof = Body::new(b"cbyproof".to_vec()).expect("a short one");
    let frame = JobProof { job_id, proof };
    section("0x25 JobProof", "The first eight bytes of a proof alone.", &frame.to_frame());
    let content = (Hash([9; 32]), body, deadline);
    let frame = Errand::signed(CHAIN, &key(5), &runner.public_key(), content);
    section(
        "0x26 Errand",
        "The same work for an agent, whose secret key is 32 times 0x05, with the label 32 times 0x09.",
        &frame.to_frame(),
    );
    let reveal = |key: &SecretKey| {
        let body = Body::new(b"hi\n".to_vec()).expect("a short one");
        let result = JobResult::signed(CHAIN, key, job_id, body);
        let JobResult { result_data, runner_signed, .. } = result;
        RevealedResult { runner: key.address(), result_data, runner_signed }
    };
    let own = reveal(&runner);
    let frame = JobCommit::signed(CHAIN, &runner, job_id, Height::new(82), own.commitment());
    section("0x80 JobCommit", "To the JobResult above.", &frame.to_frame());
    let frame = JobReveal::signed(CHAIN, &validator, job_id);
    section("0x81 JobReveal", "For the job above.", &frame.to_frame());
    let reveals = Reveals::new(vec![own, reveal(&key(4))]).expect("two short ones");
    let digest = reveals.digest();
    let frame = JobAggregate::signed(CHAIN, &validator, job_id, reveals);
    section(
        "0x82 JobAggregate",
        "The JobResult above, and the same three bytes of the runner with the secret key 32 times \
         0x04.",
        &frame.to_frame(),
    );
    let frame = JobAggregated::signed(CHAIN, &runner, job_id, &digest);
    section("0x83 JobAggregated", "The answer to it.", &frame.to_frame());
    let reason = Reason::truncated("exited with 3: no such file");
    let frame = JobFailure::signed(CHAIN, &runner, job_id, reason);
    section("0x84 JobFailure", "The program exited with 3.", &frame.to_frame());
    let frame = Goodbye { reason: GoodbyeReason::NotInSubset };
    section("0xf0 Goodbye", "The validator is not one of the runner's.", &frame.to_frame());
    section(
        "A certificate's binding",
        &format!("To the runner, of a certificate whose SubjectPublicKeyInfo is `{SPKI}`."),
        &tls::binding(&runner, &hex::decode(SPKI).expect("hexadecimal digits")),
    );
    let transaction = |nonce, payload| {
        let basefee = Wei::new(1_000);
        Transaction::with_limits(CHAIN, nonce, basefee, basefee, payload).sign(&runner).to_bytes()
    };
    let register = RegisterRunner {
        pubkey: runner.public_key(),
        stake: Wei::cby(10_000),
        capabilities: Capabilities::of(vec![JobKind::Custom], 4),
        price_per_second: Wei::new(1_000_000),
    };
    section(
        "A registration",
        "The runner's, with nonce 0: 10,000 CBY, for `custom`, four jobs at a time, 1,000,000 wei \
         per second.\nIt pays at most 2,001 wei per cycle, 1 of them to the proposer, and 2,000 \
         wei per cell, none of them to\nthe proposer.",
        &transaction(0, Payload::RegisterRunner(register)),
    );
    section(
        "A heartbeat on the chain",
        "The runner's, with nonce 7 and the same fees.",
        &transaction(7, Payload::RunnerHeartbeat),
    );
    text
}

/// The generated table of the frames' parties.
fn parties() -> String {
    let line = |name: &str, byte: u8| {
        let key = key(byte);
        let bytes = hex::encode([byte; 32]);
        let public = hex::encode(key.public_key().as_bytes());
        format!("| {name} | `{bytes}` | `{public}` | `{}` |\n", key.address())
    };
    format!(
        "\n| | secret key | public key | address |\n|---|---|---|---|\n{}{}\nThe chain id is \
         `{CHAIN:#018x}`.\n",
        line("runner", 1),
        line("validator", 2),
    )
}

#[test]
fn the_runner_protocol_shows_every_frame() {
    let document = fs::read_to_string(DOCUMENT).expect("the document is there");
    let (before, _) = document.split_once(MARK).expect("it says where the generated part begins");
    let made = format!("{before}{MARK}{}{}", parties(), frames());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(DOCUMENT, made).expect("it can be written");
    } else {
        assert!(made == document, "docs/runner-protocol.md is stale: run with UPDATE_DOCS=1");
    }
}

/// Names and numbers in the prose, on which authors of runners rely.
#[test]
fn the_runner_protocol_says_what_holds() {
    let document = fs::read_to_string(DOCUMENT).expect("the document is there");
    let oid = tls::BINDING_OID.map(|arc| arc.to_string()).join(".");
    let names = [tls::ALPN[0], tls::ALPN[1], tls::NO_VERSION, EXPORTER_LABEL];
    let names = names.map(|name| std::str::from_utf8(name).expect("it is text"));
    for said in names.into_iter().chain([oid.as_str()]) {
        assert!(document.contains(&format!("`{said}`")), "{said}");
    }
    for reason in GoodbyeReason::ALL {
        assert!(document.contains(&format!("`{reason}`")), "{reason}");
    }
    for reason in RejectReason::ALL {
        assert!(document.contains(&format!("`{reason}`")), "{reason}");
    }
    for reason in CancelReason::ALL {
        assert!(document.contains(&format!("`{reason}`")), "{reason}");
    }
    // Numbers in the prose.
    assert_eq!((MAX_RETURN_BYTES, MAX_MEMORY_MB), (524_288, 65_536));
    assert_eq!((JobKind::Http as u64, JobKind::Custom as u64), (2, 5));
    assert_eq!(MIN_STAKE, Wei::cby(10_000));
}

#[test]
fn three_pages_have_every_governed_parameter() {
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let first = Governed::default();
    let subject = |key: &Key| {
        [Key::CONNECTIVITY, Key::TASKS].iter().position(|one| key.name.starts_with(one))
    };
    let pages = [("timers.md", None), ("presence.md", Some(0)), ("speculation.md", Some(1))];
    for (name, of) in pages {
        let page = fs::read_to_string(format!("{FOLDER}/{name}")).expect("the document is there");
        let listed: Vec<_> = page.lines().filter(|line| line.starts_with("| `system:")).collect();
        let keys = Governed::KEYS.iter();
        let keys = keys.filter(|key| subject(key) == of);
        let row = |key: &Key| {
            let value = first.get(key.name).expect("a known key has a value");
            let (value, bounds) = match key.word(value) {
                Some(word) => (word.to_owned(), key.words.join(", ")),
                None => (value.to_string(), format!("{} to {}", key.min, key.max)),
            };
            format!("| `{}` | {} | {value} | {bounds} |", key.name, key.unit)
        };
        assert_eq!(listed, keys.map(row).collect::<Vec<_>>(), "{name}");
    }
}
