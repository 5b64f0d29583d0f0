//! The combined effect of several faults on a link.

use cowboy_simulation::{
    conditions::{Condition, is_down, travel},
    script::{Groups, Links, Node, Place, Share},
};
use std::time::Duration;

#[test]
fn faults_add_up() {
    let usual = Links {
        latency: Duration::from_millis(50),
        jitter: Duration::ZERO,
        loss: Share::per_cent(50),
    };
    let node = |text: &str| text.parse::<Node>().unwrap();
    let (a, b, r) = (node("validator-0"), node("validator-1"), node("runner-0"));
    let second = Duration::from_secs(1);
    let slow = Condition::Latency("validator-0".parse().unwrap(), second, second);
    let lossy = Condition::Loss("validator-0..validator-1".parse().unwrap(), Share::per_cent(50));
    let both = [slow.clone(), slow, lossy];
    let travels = travel(&both, usual, b, a).unwrap();
    assert_eq!(travels.latency, Duration::from_millis(2_050));
    assert_eq!((travels.jitter, travels.loss), (second * 2, Share::per_cent(75)));
    assert_eq!(travel(&both, usual, r, a).unwrap().loss, Share::per_cent(50));
    assert_eq!(travel(&both, usual, r, b), Some(usual.into()));
    let groups = Condition::Partition(Groups(vec![vec![a]]));
    assert_eq!(travel(std::slice::from_ref(&groups), usual, a, b), None);
    assert!(travel(&[groups], usual, r, b).is_some(), "both are in no group");
    assert_eq!(travel(&[Condition::Pause(r)], usual, r, b), None);
    assert_eq!(travel(&[Condition::Loss(Place::Of(a), Share::per_cent(100))], usual, a, b), None);
    assert!(is_down(&[Condition::Kill(a)], a) && !is_down(&[Condition::Pause(a)], a));
}
