//! What a view counts as present.

use super::{super::Connectivity, *};

const RUNNER: Address = Address([1; 20]);
const OTHER: Address = Address([2; 20]);
const TIMEOUT: u64 = Connectivity::DEFAULT.presence_timeout_blocks;

fn at(height: u64) -> Height {
    Height::new(height)
}

/// Connected and pinged at height 10.
fn present() -> LocalView {
    let mut view = LocalView::default();
    view.opened(RUNNER);
    view.pinged(&RUNNER, at(10));
    view
}

fn check(change: impl FnOnce(&mut LocalView), expected: Option<Unmet>) {
    let mut view = present();
    change(&mut view);
    assert_eq!(view.unmet(&RUNNER, at(10), TIMEOUT), expected);
}

#[test]
fn each_condition_alone_makes_a_runner_absent() {
    check(|_| {}, None);
    check(|view| view.opened(RUNNER), Some(Unmet::Ping));
    check(|view| view.lost(&RUNNER), Some(Unmet::Connection));
    check(|view| view.failed(&RUNNER), Some(Unmet::Ping));
    check(|view| view.accepting(&RUNNER, false), Some(Unmet::Work));
}

#[test]
fn a_ping_counts_for_as_many_blocks_as_is_said() {
    let view = present();
    let presence = |timeout, heads: [u64; 4]| {
        heads.map(|head| view.unmet(&RUNNER, at(head), timeout).is_none())
    };
    assert_eq!(presence(TIMEOUT, [9, 10, 13, 14]), [true, true, true, false]);
    assert_eq!(presence(2, [10, 11, 12, 13]), [true, true, true, false]);
    assert_eq!(presence(7, [10, 16, 17, 18]), [true, true, true, false]);
}

#[test]
fn a_ping_heals_a_hard_failure_and_nothing_else() {
    let ping = |view: &mut LocalView| view.pinged(&RUNNER, at(10));
    let healed = |change: fn(&mut LocalView), expected| {
        check(
            |view| {
                change(view);
                ping(view);
            },
            expected,
        );
    };
    healed(|view| view.failed(&RUNNER), None);
    healed(|view| view.lost(&RUNNER), Some(Unmet::Connection));
    healed(|view| view.accepting(&RUNNER, false), Some(Unmet::Work));
}

#[test]
fn what_a_runner_withdrew_matters_while_a_job_needs_it() {
    let http = || Label::Capability("http".into());
    let pool = || Label::Entitlement("http".into());
    check(|view| view.changed(&RUNNER, [], [http()]), None);
    check(|view| view.needed([http()].into()), None);
    let both = |view: &mut LocalView| {
        view.changed(&RUNNER, [], [http()]);
        view.needed([http()].into());
    };
    check(both, Some(Unmet::Label));
    check(
        |view| {
            both(view);
            view.changed(&RUNNER, [http()], []);
        },
        None,
    );
    check(
        |view| {
            both(view);
            view.needed([pool()].into());
        },
        None,
    );
    let many = (0..MAX_WITHDRAWN).map(|i| Label::Capability(i.to_string()));
    check(
        |view| {
            view.changed(&RUNNER, [], many);
            both(view);
        },
        None,
    );
}

#[test]
fn bits_follow_the_order_of_registration() {
    let view = present();
    let bits = |registry: &[Address]| {
        view.bitmap(registry, at(10), TIMEOUT, |_| true).ones().collect::<Vec<_>>()
    };
    assert_eq!(bits(&[RUNNER, OTHER]), [0]);
    assert_eq!(bits(&[OTHER, RUNNER]), [1]);
    assert_eq!(bits(&[OTHER]), [0; 0]);
    assert_eq!(bits(&[]), [0; 0]);
}

#[test]
fn a_bit_needs_the_chains_leave() {
    let mut view = present();
    view.opened(OTHER);
    view.pinged(&OTHER, at(9));
    let bits = |may: fn(&Address) -> bool| {
        view.bitmap(&[RUNNER, OTHER], at(10), TIMEOUT, may).ones().collect::<Vec<_>>()
    };
    assert_eq!(bits(|_| true), [0, 1]);
    assert_eq!(bits(|runner| *runner != RUNNER), [1]);
    assert_eq!(bits(|_| false), [0; 0]);
}
