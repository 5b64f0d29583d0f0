//! The heartbeats of both versions.

use super::*;

#[test]
fn there_is_one_ping_and_one_pong_per_block() {
    let signed = (HeartbeatPing::KIND, HeartbeatPong::KIND);
    let keyed = (KeyedPing::KIND, KeyedPong::KIND);
    check_heartbeats(Pair::established(), signed, keyed);
    check_heartbeats(Pair::keyed(), keyed, signed);
}

/// Checks the pings and pongs of 100 blocks, of these types and not of the others.
fn check_heartbeats(mut pair: Pair, (ping, pong): (u8, u8), others: (u8, u8)) {
    let (pings, pongs) = (pair.frames(ping), pair.frames(pong));
    assert_eq!((pings, pongs), (1, 1));
    for height in 11..=110 {
        pair.head(height);
        // Other validators tell the runner the same height, and the validator receives it twice.
        pair.runner.handle_head(Height::new(height));
        pair.head(height);
        let height = Height::new(height);
        assert_eq!(
            pair.validator_said(),
            [ValidatorOutput::Event(ValidatorEvent::Pinged { height })]
        );
        assert_eq!(pair.runner_said(), [RunnerOutput::Event(RunnerEvent::Told { head: height })]);
    }
    assert_eq!(pair.frames(ping) - pings, 100);
    assert_eq!(pair.frames(pong) - pongs, 100);
    assert_eq!((pair.frames(others.0), pair.frames(others.1)), (0, 0));
}

#[test]
fn a_connection_has_heartbeats_of_its_version_only() {
    let hello = |version, name, role| Hello { version, ..hello(name, role) }.to_frame();
    let ack = |version, name: &str, role, challenge| {
        HelloAck::signed(CHAIN, &key(name), (version, role), HEAD, &challenge).to_frame()
    };
    let replayed = Some(GoodbyeReason::ReplayedNonce);
    let malformed = Some(GoodbyeReason::MalformedFrame);
    let forged = Some(GoodbyeReason::BadSignature);
    let other = HeartbeatKey([9; 32]);

    let check = |frames: &[Vec<u8>], expected| {
        let shake =
            [hello(2, "runner", Role::Runner), ack(2, "runner", Role::Runner, VALIDATOR_NONCE)];
        let frames = [&shake, frames].concat();
        assert_eq!(goodbye_of_validator(validator_with(KEYED), &frames), expected);
    };
    let ping = |key, nonce| KeyedPing::with_mac(CHAIN, key, HEAD, nonce).to_frame();
    check(&[ping(&HEARTBEAT_KEY, 5), ping(&HEARTBEAT_KEY, 6)], None);
    check(&[ping(&HEARTBEAT_KEY, 5), ping(&HEARTBEAT_KEY, 5)], replayed);
    check(&[ping(&other, 5)], forged);
    check(&[KeyedPing::with_mac(CHAIN + 1, &HEARTBEAT_KEY, HEAD, 5).to_frame()], forged);
    check(&[Heartbeats::Signed.ping(CHAIN, &key("runner"), HEAD, 5)], malformed);
    check(&[KeyedPong::with_mac(CHAIN, &HEARTBEAT_KEY, HEAD).to_frame()], malformed);
    let old = [hello(1, "runner", Role::Runner)];
    let unsupported = Some(GoodbyeReason::UnsupportedVersion);
    assert_eq!(goodbye_of_validator(validator_with(KEYED), &old), unsupported);
    assert_eq!(validator_hears(&[hello(2, "runner", Role::Runner)]), unsupported);

    let check = |frames: &[Vec<u8>], expected| {
        let shake = [
            hello(2, "validator", Role::Validator),
            ack(2, "validator", Role::Validator, RUNNER_NONCE),
        ];
        let frames = [&shake, frames].concat();
        assert_eq!(goodbye_to(&mut runner_with(KEYED), &frames, |_, _| ()), expected);
    };
    let pong = |key, height| KeyedPong::with_mac(CHAIN, key, height).to_frame();
    check(&[pong(&HEARTBEAT_KEY, HEAD), pong(&HEARTBEAT_KEY, HEAD.next())], None);
    check(&[pong(&other, HEAD)], forged);
    check(&[pong(&HEARTBEAT_KEY, HEAD), pong(&other, HEAD.next())], forged);
    let signed =
        Heartbeats::Signed.pong(CHAIN, &key("validator"), HEAD, &key("runner").public_key());
    check(&[signed], malformed);
    check(&[ping(&HEARTBEAT_KEY, 5)], malformed);
    assert_eq!(
        goodbye_to(&mut runner(), &[hello(2, "validator", Role::Validator)], |_, _| ()),
        unsupported
    );
}
