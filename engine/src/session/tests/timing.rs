//! The chain's parameters for a connection's pace, and changes to them during a connection.

use super::*;

fn with(connectivity: Connectivity) -> Pair {
    let mut pair = Pair::established();
    pair.validator.govern(connectivity);
    pair
}

fn pinged(pair: &mut Pair) -> bool {
    let is_ping = |said: &ValidatorOutput| {
        matches!(said, ValidatorOutput::Event(ValidatorEvent::Pinged { .. }))
    };
    pair.validator_said().iter().any(is_ping)
}

#[test]
fn a_ping_comes_with_each_multiple_of_what_is_governed() {
    let mut pair = with(Connectivity { heartbeat_blocks: 3, ..Connectivity::DEFAULT });
    let pings: Vec<u64> = (11..=20)
        .filter(|&height| {
            pair.head(height);
            pinged(&mut pair)
        })
        .collect();
    assert_eq!(pings, [12, 15, 18]);
    // A head that passes several multiples is announced once.
    pair.head(25);
    assert!(pinged(&mut pair));
    pair.validator.govern(Connectivity::DEFAULT);
    pair.head(26);
    assert!(pinged(&mut pair), "each block again");
}

#[test]
fn an_assignment_waits_for_as_many_blocks_as_are_governed() {
    for ack_timeout_blocks in [1, 3, 8] {
        let mut pair = with(Connectivity { ack_timeout_blocks, ..Connectivity::DEFAULT });
        dispatched(&mut pair);
        let mut failed = |blocks| {
            pair.validator.handle_head(HEAD.after(blocks));
            let mut said = std::iter::from_fn(|| pair.validator.poll_output());
            said.any(|output| output == outcome(0, DispatchOutcome::HardFailure))
        };
        assert!(!(1..=ack_timeout_blocks).any(&mut failed), "{ack_timeout_blocks}");
        assert!(failed(ack_timeout_blocks + 1), "{ack_timeout_blocks}");
    }
}

/// A shorter timeout also applies to dispatches that are under way.
#[test]
fn another_timeout_counts_for_what_is_under_way() {
    let mut pair = with(Connectivity { ack_timeout_blocks: 60, ..Connectivity::DEFAULT });
    dispatched(&mut pair);
    pair.validator.handle_head(HEAD.after(5));
    while pair.validator.poll_output().is_some() {}
    pair.validator.govern(Connectivity::DEFAULT);
    pair.validator.handle_head(HEAD.after(6));
    let said: Vec<_> = std::iter::from_fn(|| pair.validator.poll_output()).collect();
    assert!(said.contains(&outcome(0, DispatchOutcome::HardFailure)), "{said:?}");
}
