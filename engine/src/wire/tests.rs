//! Frozen formats, round trips, and malformed frames of every kind.

use super::*;
use crate::primitives::{
    Hash, Height, SecretKey, Signature,
    codec::{self, DecodeError},
    keccak256,
};

const CHAIN: u64 = 0x0102_0304_0506_0708;
const HEARTBEAT_KEY: HeartbeatKey = HeartbeatKey([3; 32]);

fn runner() -> SecretKey {
    SecretKey::derive(b"wire", "runner-0")
}

fn validator() -> SecretKey {
    SecretKey::derive(b"wire", "validator-0")
}

fn job_id() -> Hash {
    keccak256(&[b"job"])
}

fn body(bytes: &[u8]) -> Body {
    Body::new(bytes.to_vec()).unwrap()
}

/// A result of the runner named `name`.
fn reveal(name: &str, bytes: &[u8]) -> RevealedResult {
    let key = SecretKey::derive(b"wire", name);
    let JobResult { result_data, runner_signed, .. } =
        JobResult::signed(CHAIN, &key, job_id(), body(bytes));
    RevealedResult { runner: key.public_key().address(), result_data, runner_signed }
}

fn reveals() -> Reveals {
    Reveals::new(vec![reveal("runner-0", b"result"), reveal("runner-1", b"other")]).unwrap()
}

fn failure(reason: &str) -> JobFailure {
    JobFailure::signed(CHAIN, &runner(), job_id(), Reason::truncated(reason))
}

/// A job of validator-0's account, with its id; unsigned.
fn assignment() -> JobAssignment {
    let (submitter, nonce, spec) = (validator().address(), 7_u64, body(b"spec"));
    let hash = keccak256(&[spec.as_bytes()]);
    JobAssignment {
        job_id: keccak256(&[&submitter.0, &nonce.to_be_bytes(), &hash.0]),
        submitter,
        nonce,
        job_spec: spec,
        block_height: Height::new(300),
        deadline_block: Height::new(364),
        validator_signed: Signature([0; 65]),
    }
}

fn errand() -> Errand {
    let content = (keccak256(&[b"label"]), body(b"spec"), Height::new(364));
    Errand::signed(CHAIN, &validator(), &runner().public_key(), content)
}

/// A sample of every frame: name, channel, bytes.
fn samples() -> Vec<(&'static str, Channel, Vec<u8>)> {
    fn sample<M: Message>(message: M) -> (&'static str, Channel, Vec<u8>) {
        (M::NAME, M::CHANNEL, message.to_frame())
    }
    let (r, v) = (runner(), validator());
    let change = CapabilityChange {
        added_capabilities: Labels::new(["http"]).unwrap(),
        removed_capabilities: Labels::new(["llm", "mcp"]).unwrap(),
        removed_entitlements: Labels::new(["pool-7"]).unwrap(),
        ..CapabilityChange::default()
    };
    let rejected = AckStatus::Reject(RejectReason::AtCapacity);
    vec![
        sample(Hello {
            version: 1,
            party_pubkey: r.public_key(),
            party_role: Role::Runner,
            block_height: Height::new(24),
            challenge_nonce: [7; 32],
        }),
        sample(HelloAck::signed(CHAIN, &v, (1, Role::Validator), Height::new(24), &[7; 32])),
        sample(HeartbeatPing::signed(CHAIN, &r, Height::new(300), 1)),
        sample(HeartbeatPong::signed(CHAIN, &v, Height::new(300), &r.public_key())),
        sample(KeyedPing::with_mac(CHAIN, &HEARTBEAT_KEY, Height::new(300), 1)),
        sample(KeyedPong::with_mac(CHAIN, &HEARTBEAT_KEY, Height::new(300))),
        sample(BackpressureSignal {
            active_jobs: 4,
            max_concurrent: 4,
            accepting_new: false,
            reason: Some(Text::truncated("full")),
        }),
        sample(CapabilityDelta::signed(CHAIN, &r, Height::new(300), change)),
        sample(OpenJobs { job_ids: JobIds::first([job_id()]) }),
        sample(JobAssignment::signed(CHAIN, &v, &r.public_key(), assignment())),
        sample(JobAck::signed(CHAIN, &r, (job_id(), Height::new(364)), AckStatus::Accepted)),
        sample(JobAck::signed(CHAIN, &r, (job_id(), Height::new(364)), rejected)),
        sample(JobProgress { job_id: job_id(), fraction: Percent::new(50).unwrap(), detail: None }),
        sample(JobResult::signed(CHAIN, &r, job_id(), body(b"result"))),
        sample(JobCancel::signed(
            CHAIN,
            &v,
            (job_id(), Height::new(364)),
            CancelReason::Reassigned,
        )),
        sample(JobProof { job_id: job_id(), proof: body(b"proof") }),
        sample(errand()),
        sample(JobCommit::signed(
            CHAIN,
            &r,
            job_id(),
            Height::new(120),
            keccak256(&[b"commitment"]),
        )),
        sample(JobReveal::signed(CHAIN, &v, job_id())),
        sample(JobAggregate::signed(CHAIN, &v, job_id(), reveals())),
        sample(JobAggregated::signed(CHAIN, &r, job_id(), &reveals().digest())),
        sample(failure("exited with 3")),
        sample(Goodbye { reason: GoodbyeReason::ShuttingDown }),
    ]
}

/// Change a line only with a new protocol version: other implementations read these bytes.
const FORMATS: [(&str, &str); 23] = [
    ("Hello", "0x87471107d5495d7c54157f6b41cda245b222c948da8260b844b7e375e57cf744"),
    ("HelloAck", "0x238853c64550b86b14332567235e410f62db90870dfa19ccf69f513d1308bcfd"),
    ("HeartbeatPing", "0x67923e89c16cd2f52f11491c0d2b5c580e5e9c16b579a8938dd3feb69c70e98e"),
    ("HeartbeatPong", "0x1efedbe95bff475e86f1f715f1cb93bf22215f9697dd113f76c3e1944d7f90cf"),
    ("KeyedPing", "0xbc23129ff222ae0016b0bfdf60f4bbee4b174525ca655a73d0f489660feaad69"),
    ("KeyedPong", "0xba953b36155fcf0c11b155443725e07f3d6501a39b4eb04211d97bf72268f1e1"),
    ("BackpressureSignal", "0xb37c9ff049eb80bb1503a6d852b0862dab50c212b371c735a6f3d5fd232bde76"),
    ("CapabilityDelta", "0x9ac85e687463f1156b186c2296b24ee7087571dd38193a25f4a907ae1c33f558"),
    ("OpenJobs", "0xe139bc111e294ef23e9002a51c496df63dab5ec45d491846f664483e373ffc88"),
    ("JobAssignment", "0x840691a285a8e3742c5776bdaa40c3a39f50b6f0916ca18d1b4f3488d5266cc7"),
    ("JobAck", "0x3beebe951ea53f11a1effcf195b496465f62f3f22a65741025398ce9b9ca1aa8"),
    ("JobAck", "0x69eb45f9a69fee2a87ca900452606bce5cda04e38e4a89dae47fb2b71606f858"),
    ("JobProgress", "0xbb77b4b870e0e1f7c8d39aef220c231490651caeeb30ee8d8dd1b25a1fe7a674"),
    ("JobResult", "0x33734f3ae641c60f3273da5f1f77077f3cc34f63eecae045d3637e710fb8de51"),
    ("JobCancel", "0x69b527b26fe1c9fd87f4488e3831a35ade78fee4db5cda54010aa582b7299142"),
    ("JobProof", "0x45c4593083f0cfbbb06bbbba13e45d1f9cad32270ab1dc73882153767dde21f3"),
    ("Errand", "0x2304c85c12a9ab0425b34bf9e7ffa2ccc80d2fde8d744707cc02e0d91666e415"),
    ("JobCommit", "0x9b1bcdef0e1a3bda7940a0234d1ec90ca6aba9ad691c94ccc1e6b1723bca5023"),
    ("JobReveal", "0x93b0035b3997ae92f80b52b03bd354399c0a1492c16d5ef888e8f99f3c90ad02"),
    ("JobAggregate", "0xf426ac683f138be6d35aa53cb181773e2a19b4cf797f927f1258a8672cb8f0c1"),
    ("JobAggregated", "0x08216fa40586e5c31c1bad39c135e990d3a39998d96cff52a2084aff8184773b"),
    ("JobFailure", "0x57c1837fb549fea572e0ac81a83403108a34429b08bedd409cabf8576d0e46c4"),
    ("Goodbye", "0x228156c2b7d52e3d228971e845bc2e796cbf2654b13f50b1f3a83986effe4b67"),
];

#[test]
fn formats_are_frozen() {
    let hashes: Vec<_> =
        samples().iter().map(|(name, _, bytes)| (*name, keccak256(&[bytes]).to_string())).collect();
    let frozen: Vec<_> = FORMATS.iter().map(|(name, hash)| (*name, (*hash).to_owned())).collect();
    assert_eq!(hashes, frozen);
}

#[test]
fn a_frame_reads_as_the_table_says() {
    let goodbye = Goodbye { reason: GoodbyeReason::ShuttingDown }.to_frame();
    assert_eq!(&goodbye[..5], [0, 0, 0, 22 + 1, 0xf0]);
    assert_eq!(&goodbye[5..8], [0xa1, 0x66, b'r']);
    let ack = JobAck::signed(CHAIN, &runner(), (job_id(), Height::new(364)), AckStatus::Duplicate)
        .to_frame();
    assert!(ack.windows(9).any(|part| part == b"duplicate"));
}

/// Decodes a frame and encodes it again.
fn again(channel: Channel, frame: &RawFrame) -> Result<Vec<u8>, FrameError> {
    Ok(match channel {
        Channel::Control => match Control::decode(frame)? {
            Control::Hello(m) => m.to_frame(),
            Control::HelloAck(m) => m.to_frame(),
            Control::Ping(m) => m.to_frame(),
            Control::Pong(m) => m.to_frame(),
            Control::KeyedPing(m) => m.to_frame(),
            Control::KeyedPong(m) => m.to_frame(),
            Control::Backpressure(m) => m.to_frame(),
            Control::Capabilities(m) => m.to_frame(),
            Control::OpenJobs(m) => m.to_frame(),
            Control::Goodbye(m) => m.to_frame(),
        },
        Channel::Job => match JobFrame::decode(frame)?.expect("no sample is an extension") {
            JobFrame::Assignment(m) => m.to_frame(),
            JobFrame::Ack(m) => m.to_frame(),
            JobFrame::Progress(m) => m.to_frame(),
            JobFrame::Result(m) => m.to_frame(),
            JobFrame::Cancel(m) => m.to_frame(),
            JobFrame::Proof(m) => m.to_frame(),
            JobFrame::Errand(m) => m.to_frame(),
            JobFrame::Commit(m) => m.to_frame(),
            JobFrame::Reveal(m) => m.to_frame(),
            JobFrame::Aggregate(m) => m.to_frame(),
            JobFrame::Aggregated(m) => m.to_frame(),
            JobFrame::Failure(m) => m.to_frame(),
        },
    })
}

fn read(channel: Channel, mut bytes: &[u8]) -> Result<Option<RawFrame>, FrameError> {
    FrameReader::new(channel).feed(&mut bytes)
}

#[test]
fn every_frame_survives_the_way_whole_and_byte_by_byte() {
    for (name, channel, bytes) in samples() {
        let frame = read(channel, &bytes).unwrap().unwrap();
        assert_eq!(again(channel, &frame).as_ref(), Ok(&bytes), "{name}");

        let mut reader = FrameReader::new(channel);
        let twice = [bytes.clone(), bytes.clone()].concat();
        let mut found = Vec::new();
        for byte in &twice {
            let mut chunk = std::slice::from_ref(byte);
            found.extend(reader.feed(&mut chunk).unwrap());
            assert!(chunk.is_empty());
        }
        assert_eq!(found, [frame.clone(), frame], "{name}");
    }
}

#[test]
fn a_frame_cut_short_waits_and_a_payload_cut_short_is_refused() {
    for (name, channel, bytes) in samples() {
        for end in 0..bytes.len() {
            assert_eq!(read(channel, &bytes[..end]), Ok(None), "{name} cut at {end}");
        }
        for end in 5..bytes.len() {
            let mut short = bytes[..end].to_vec();
            short[..4].copy_from_slice(&(end as u32 - 4).to_be_bytes());
            let frame = read(channel, &short).unwrap().unwrap();
            let error = again(channel, &frame).unwrap_err();
            assert_eq!(error.reason(), GoodbyeReason::MalformedFrame, "{name} cut at {end}");
        }
        let mut long = [&bytes[..], &[0]].concat();
        long[..4].copy_from_slice(&(bytes.len() as u32 - 3).to_be_bytes());
        let frame = read(channel, &long).unwrap().unwrap();
        assert!(again(channel, &frame).is_err(), "{name} with a byte too many");
    }
}

#[test]
fn a_frame_on_the_other_kind_of_stream_is_malformed_or_an_extension() {
    for (name, channel, bytes) in samples() {
        let frame = read(channel, &bytes).unwrap().unwrap();
        let other = match channel {
            Channel::Control => JobFrame::decode(&frame).map(|frame| frame.is_none()),
            Channel::Job => Control::decode(&frame).map(|_| false),
        };
        let expected = if name == Goodbye::NAME {
            Ok(true)
        } else {
            let channel = if channel == Channel::Control { Channel::Job } else { Channel::Control };
            Err(FrameError::UnexpectedType { kind: frame.kind(), channel })
        };
        assert_eq!(other, expected, "{name}");
    }
    for (kind, extension) in [(0x00, false), (0x7f, false), (0x85, true), (0xff, true)] {
        let frame = read(Channel::Job, &[0, 0, 0, 2, kind, 0xff]).unwrap().unwrap();
        assert_eq!(JobFrame::decode(&frame) == Ok(None), extension, "{kind:#x}");
        assert!(Control::decode(&frame).is_err(), "{kind:#x}");
    }
}

#[test]
fn lengths_are_checked_before_anything_is_stored() {
    for channel in [Channel::Control, Channel::Job] {
        let limit = channel.limit();
        let head = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
        let mut reader = FrameReader::new(channel);
        assert_eq!(reader.feed(&mut &head(limit)[..]), Ok(None));
        assert_eq!(read(channel, &head(0)), Err(FrameError::Empty));
        for got in [limit + 1, u32::MAX as usize] {
            let error = read(channel, &head(got)).unwrap_err();
            assert_eq!(error, FrameError::TooLarge { got: got as u32, limit });
            assert_eq!(error.reason(), GoodbyeReason::FrameTooLarge);
        }
    }
}

#[test]
fn the_largest_bodies_fit_their_frame() {
    assert_eq!(Body::new(vec![0; Body::LIMIT + 1]), Err(BodyError(Body::LIMIT + 1)));
    let largest = body(&vec![0; Body::LIMIT]);
    let result = JobResult::signed(CHAIN, &runner(), job_id(), largest).to_frame();
    assert!(read(Channel::Job, &result).unwrap().is_some());

    let empty = reveal("runner-0", b"");
    let long = |bytes| RevealedResult { result_data: body(&vec![0; bytes]), ..empty.clone() };
    let mut most = vec![empty.clone(); Reveals::LIMIT - 1];
    most.push(long(Reveals::MAX_BYTES));
    let most = Reveals::new(most).unwrap();
    let frame = JobAggregate::signed(CHAIN, &validator(), job_id(), most).to_frame();
    assert!(read(Channel::Job, &frame).unwrap().is_some());
    let too_many = Reveals::new(vec![empty.clone(); Reveals::LIMIT + 1]);
    assert_eq!(too_many, Err(RevealsError::TooMany(Reveals::LIMIT + 1)));
    let too_long = vec![long(Reveals::MAX_BYTES), long(1)];
    assert!(codec::from_slice::<Reveals>(&codec::to_vec(&too_long)).is_err());
    assert_eq!(Reveals::new(too_long), Err(RevealsError::TooLong(Reveals::MAX_BYTES + 1)));
}

#[test]
fn what_a_field_cannot_hold_is_refused() {
    /// Checks the error for the payload of a Goodbye.
    fn check(hex_payload: &str, expected: DecodeError) {
        let payload = hex::decode(hex_payload).unwrap();
        let error = Goodbye::from_payload(&payload).unwrap_err();
        assert_eq!(error, FrameError::Payload { frame: "Goodbye", source: expected });
    }
    check("a0", DecodeError::MissingField("reason"));
    check("a166726561736f6e626869", DecodeError::Invalid("not a GoodbyeReason"));
    check("a166726561736f6e784d", DecodeError::Malformed("end of input bytes".into()));
    // The right text with a two-byte length.
    let long_form = ["a166726561736f6e780d", &hex::encode("shutting_down")].concat();
    check(&long_form, DecodeError::NotDeterministic);

    let reason_missing =
        JobAck::signed(CHAIN, &runner(), (job_id(), Height::new(364)), AckStatus::Accepted);
    let bytes = reason_missing.to_frame();
    let accepted = bytes.windows(8).position(|part| part == b"accepted").unwrap();
    let rejected = [&bytes[5..accepted - 1], b"\x66reject", &bytes[accepted + 8..]].concat();
    assert!(JobAck::from_payload(&rejected).is_err());

    assert_eq!(Percent::new(101), Err(PercentError(101)));
    assert_eq!(Text::truncated(&"ä".repeat(100)).as_str(), "ä".repeat(64));
    assert_eq!(Text::truncated(&format!("x{}", "ä".repeat(100))).as_str().len(), 127);
    assert_eq!(Reason::truncated(&"ä".repeat(200)).as_str(), "ä".repeat(128));
    assert_eq!(Labels::new(vec!["x"; 65]), Err(LabelsError::TooMany(65)));
    assert_eq!(Labels::new([&*"x".repeat(129)]), Err(LabelsError::NameTooLong(129)));
}

#[test]
fn a_signature_covers_its_fields_its_frame_and_its_chain() {
    let (r, v) = (runner(), validator());
    let (rk, vk) = (r.public_key(), v.public_key());
    let other = SecretKey::derive(b"wire", "other").public_key();

    let ack = HelloAck::signed(CHAIN, &r, (1, Role::Runner), Height::new(1), &[1; 32]);
    assert!(ack.verify(CHAIN, &[1; 32]));
    assert!(!ack.verify(CHAIN, &[2; 32]));
    assert!(!ack.verify(CHAIN + 1, &[1; 32]));
    assert!(!HelloAck { party_pubkey: other.clone(), ..ack }.verify(CHAIN, &[1; 32]));

    let ping = HeartbeatPing::signed(CHAIN, &r, Height::new(5), 6);
    assert!(ping.verify(CHAIN, &rk));
    assert!(!ping.verify(CHAIN + 1, &rk));
    assert!(!ping.verify(CHAIN, &other));
    assert!(!HeartbeatPing { nonce: 7, ..ping.clone() }.verify(CHAIN, &rk));
    assert!(!HeartbeatPing { block_height: Height::new(6), ..ping }.verify(CHAIN, &rk));

    let pong = HeartbeatPong::signed(CHAIN, &v, Height::new(5), &rk);
    assert!(pong.verify(CHAIN, &vk, &rk));
    assert!(!pong.verify(CHAIN, &vk, &other));
    assert!(!HeartbeatPong { block_height: Height::new(6), ..pong }.verify(CHAIN, &vk, &rk));

    let other_connection = HeartbeatKey([9; 32]);
    let ping = KeyedPing::with_mac(CHAIN, &HEARTBEAT_KEY, Height::new(5), 1);
    assert!(ping.verify(CHAIN, &HEARTBEAT_KEY));
    assert!(!ping.verify(CHAIN + 1, &HEARTBEAT_KEY));
    assert!(!ping.verify(CHAIN, &other_connection));
    assert!(!KeyedPing { nonce: 2, ..ping.clone() }.verify(CHAIN, &HEARTBEAT_KEY));
    assert!(!KeyedPing { block_height: Height::new(6), ..ping }.verify(CHAIN, &HEARTBEAT_KEY));
    let pong = KeyedPong::with_mac(CHAIN, &HEARTBEAT_KEY, Height::new(5));
    assert!(pong.verify(CHAIN, &HEARTBEAT_KEY));
    assert!(!pong.verify(CHAIN + 1, &HEARTBEAT_KEY));
    assert!(!pong.verify(CHAIN, &other_connection));
    assert!(!KeyedPong { block_height: Height::new(6), ..pong }.verify(CHAIN, &HEARTBEAT_KEY));

    let labels = |names: &[&str]| Labels::new(names.iter().copied()).unwrap();
    let change =
        CapabilityChange { added_capabilities: labels(&["a", "b"]), ..CapabilityChange::default() };
    let delta = CapabilityDelta::signed(CHAIN, &r, Height::new(5), change);
    assert!(delta.verify(CHAIN, &rk));
    let moved = CapabilityDelta {
        added_capabilities: labels(&["a"]),
        removed_capabilities: labels(&["b"]),
        ..delta.clone()
    };
    assert!(!moved.verify(CHAIN, &rk));
    assert!(!CapabilityDelta { added_capabilities: labels(&["ab"]), ..delta }.verify(CHAIN, &rk));

    let signed = JobAssignment::signed(CHAIN, &v, &rk, assignment());
    assert!(signed.is_of_its_job() && signed.verify(CHAIN, &vk, &rk));
    assert!(!signed.verify(CHAIN, &vk, &other) && !signed.verify(CHAIN, &other, &rk));
    let changed = [
        JobAssignment { deadline_block: Height::new(365), ..signed.clone() },
        JobAssignment { block_height: Height::new(301), ..signed.clone() },
        JobAssignment { job_spec: body(b"another"), ..signed.clone() },
        JobAssignment { job_id: job_id(), ..signed.clone() },
    ];
    assert!(changed.iter().all(|changed| !changed.verify(CHAIN, &vk, &rk)));
    let of_another_job = [
        JobAssignment { submitter: r.address(), ..signed.clone() },
        JobAssignment { nonce: 8, ..signed.clone() },
        JobAssignment { job_spec: body(b"another"), ..signed },
    ];
    assert!(of_another_job.iter().all(|changed| !changed.is_of_its_job()));

    let sent = errand();
    assert!(sent.has_its_id() && sent.verify(CHAIN, &rk) && !sent.verify(CHAIN, &other));
    assert!(!Errand { deadline_block: Height::new(9), ..sent.clone() }.verify(CHAIN, &rk));
    assert!(!Errand { agent_pubkey: rk.clone(), ..sent.clone() }.verify(CHAIN, &rk));
    assert!(!Errand { errand_spec: body(b"another"), ..sent }.has_its_id());

    let reject =
        |reason| JobAck::signed(CHAIN, &r, (job_id(), Height::new(364)), AckStatus::Reject(reason));
    let ack = reject(RejectReason::AtCapacity);
    assert!(ack.verify(CHAIN, &rk));
    let status = AckStatus::Reject(RejectReason::InvalidSpec);
    assert!(!JobAck { status, ..ack }.verify(CHAIN, &rk));

    let result = JobResult::signed(CHAIN, &r, job_id(), body(b"result"));
    assert!(result.verify(CHAIN, &rk));
    assert!(!JobResult { result_data: body(b"results"), ..result.clone() }.verify(CHAIN, &rk));
    assert!(!JobResult { job_id: Hash::ZERO, ..result }.verify(CHAIN, &rk));

    let failed = failure("exited with 3");
    assert!(failed.verify(CHAIN, &rk) && !failed.verify(CHAIN + 1, &rk));
    assert!(!JobFailure { reason: Reason::truncated("no"), ..failed.clone() }.verify(CHAIN, &rk));
    assert!(!JobFailure { job_id: Hash::ZERO, ..failed }.verify(CHAIN, &rk));

    let cancel = JobCancel::signed(CHAIN, &v, (job_id(), Height::new(364)), CancelReason::Expired);
    assert!(cancel.verify(CHAIN, &vk));
    assert!(!JobCancel { deadline_block: Height::new(9), ..cancel.clone() }.verify(CHAIN, &vk));
    assert!(!JobCancel { reason: CancelReason::Failed, ..cancel }.verify(CHAIN, &vk));
}

#[test]
fn what_a_committee_signs_cannot_be_taken_for_something_else() {
    let (r, v) = (runner(), validator());
    let (rk, vk) = (r.public_key(), v.public_key());
    let result = JobResult::signed(CHAIN, &r, job_id(), body(b"result"));
    let commit = JobCommit::signed(CHAIN, &r, job_id(), Height::new(120), result.commitment());
    assert!(commit.verify(CHAIN, &rk) && !commit.verify(CHAIN + 1, &rk));
    assert!(!JobCommit { commitment: Hash::ZERO, ..commit.clone() }.verify(CHAIN, &rk));
    assert!(!JobCommit { deadline_block: Height::new(121), ..commit.clone() }.verify(CHAIN, &rk));
    assert!(!JobCommit { job_id: Hash::ZERO, ..commit }.verify(CHAIN, &rk));
    let other = JobResult::signed(CHAIN, &v, job_id(), body(b"result"));
    assert_ne!(other.commitment(), result.commitment(), "a copy is useless to another runner");

    let asked = JobReveal::signed(CHAIN, &v, job_id());
    assert!(asked.verify(CHAIN, &vk) && !asked.verify(CHAIN, &rk));
    assert!(!JobReveal { job_id: Hash::ZERO, ..asked }.verify(CHAIN, &vk));

    let request = JobAggregate::signed(CHAIN, &v, job_id(), reveals());
    assert!(request.verify(CHAIN, &vk));
    let mut turned = reveals().as_slice().to_vec();
    turned.reverse();
    let turned = Reveals::new(turned).unwrap();
    assert!(!JobAggregate { reveals: turned.clone(), ..request.clone() }.verify(CHAIN, &vk));
    let answer = JobAggregated::signed(CHAIN, &r, job_id(), &reveals().digest());
    assert!(answer.verify(CHAIN, &rk, &reveals().digest()));
    assert!(!answer.verify(CHAIN, &rk, &turned.digest()));
    let own = reveal("runner-0", b"result");
    assert!(own.verify(CHAIN, &job_id()));
    assert!(!own.verify(CHAIN, &Hash::ZERO));
    let runner = reveal("runner-1", b"").runner;
    assert!(!RevealedResult { runner, ..own.clone() }.verify(CHAIN, &job_id()));
    assert!(!RevealedResult { result_data: body(b"another"), ..own }.verify(CHAIN, &job_id()));
    // Each signature is valid only for its own frame.
    let signed = request.validator_signed;
    assert!(!JobAggregated { signed, ..answer }.verify(CHAIN, &vk, &reveals().digest()));
}

#[test]
fn a_digest_is_the_one_the_specification_spells() {
    let chain_id = CHAIN.to_be_bytes();
    let (height, nonce) = (300u64.to_be_bytes(), 9u64.to_be_bytes());
    let spelled = keccak256(&[b"cowboy-cip11/HeartbeatPing/v1", &chain_id, &height, &nonce]);
    let ping = HeartbeatPing::signed(CHAIN, &runner(), Height::new(300), 9);
    assert_eq!(ping.signed, runner().sign(&spelled));

    let job = job_id();
    let data = keccak256(&[b"result"]);
    let spelled = keccak256(&[b"cowboy-cip11/JobResult/v1", &chain_id, &job.0, &data.0]);
    assert_eq!(JobResult::digest(CHAIN, &job, b"result"), spelled);

    let spelled =
        keccak256(&[b"cowboy-cip11/JobAck/v1", &chain_id, &job.0, &height, b"reject(at_capacity)"]);
    let status = AckStatus::Reject(RejectReason::AtCapacity);
    let attempt = (job, Height::new(300));
    assert_eq!(JobAck::signed(CHAIN, &runner(), attempt, status).signed, runner().sign(&spelled));

    let spelled = keccak256(&[b"cowboy-cip11/JobFailure/v1", &chain_id, &job.0, b"exited with 3"]);
    let reason = Reason::truncated("exited with 3");
    assert_eq!(JobFailure::digest(CHAIN, &job, &reason), spelled);

    let signature = Signature([7; 65]);
    let commitment = commitment(b"result", &signature);
    assert_eq!(commitment, keccak256(&[b"result", &[7; 65]]));
    let deadline = 120u64.to_be_bytes();
    let domain = b"cowboy-cip11/JobCommit/v1";
    let spelled = keccak256(&[domain, &chain_id, &job.0, &deadline, &commitment.0]);
    assert_eq!(JobCommit::digest(CHAIN, &job, Height::new(120), &commitment), spelled);
    let [first, second] = [reveal("runner-0", b"result"), reveal("runner-1", b"other")];
    let hashes = [keccak256(&[b"result"]), keccak256(&[b"other"])];
    let list = [&first.runner.0[..], &hashes[0].0, &second.runner.0, &hashes[1].0];
    let digest = keccak256(&list);
    assert_eq!(reveals().digest(), digest);
    let spelled = keccak256(&[b"cowboy-cip11/JobAggregated/v1", &chain_id, &job.0, &digest.0]);
    assert_eq!(JobAggregated::digest(CHAIN, &job, &digest), spelled);
}

#[test]
fn a_key_off_the_curve_is_no_key() {
    let hello = Hello {
        version: 1,
        party_pubkey: runner().public_key(),
        party_role: Role::Runner,
        block_height: Height::new(1),
        challenge_nonce: [7; 32],
    };
    let bytes = hello.to_frame();
    let key = hello.party_pubkey.as_bytes();
    let at = bytes.windows(33).position(|part| part == key).unwrap();
    let mut broken = bytes[5..].to_vec();
    broken[at - 5] = 0x05;
    assert!(Hello::from_payload(&broken).is_err());
}
