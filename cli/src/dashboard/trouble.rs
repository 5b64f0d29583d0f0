//! Injected faults in words, and the nodes that they affect.

use cowboy_devnet::types::{Fault, FaultSpec, LieKind};
use cowboy_host::duration::Plain;
use std::time::Duration;

/// What goes wrong: `latency 50 ms`.
pub fn what(fault: &FaultSpec) -> String {
    let time = |micros: u64| Plain(Duration::from_micros(micros)).to_string();
    match fault {
        FaultSpec::Kill { .. } => "killed".to_owned(),
        FaultSpec::Pause { .. } => "paused".to_owned(),
        FaultSpec::Partition { .. } => "partition".to_owned(),
        FaultSpec::Latency { delay_us, jitter_us: 0, .. } => format!("latency {}", time(*delay_us)),
        FaultSpec::Latency { delay_us, jitter_us, .. } => {
            let most = delay_us.saturating_add(*jitter_us);
            format!("latency {} to {}", time(*delay_us), time(most))
        }
        FaultSpec::Loss { per_mille, .. } => match per_mille % 10 {
            0 => format!("loss {} %", per_mille / 10),
            tenth => format!("loss {}.{tenth} %", per_mille / 10),
        },
        FaultSpec::Lie { votes, of, .. } => {
            let votes = match votes {
                LieKind::Ones => "ones",
                LieKind::Zeros => "zeros",
                LieKind::Flip => "flip",
            };
            let of = of.as_ref().map(|runner| format!(" of {runner}")).unwrap_or_default();
            format!("lies {votes}{of}")
        }
    }
}

/// Where: a node, a link, or the groups of a partition.
pub fn place(fault: &Fault) -> String {
    match &fault.fault {
        FaultSpec::Partition { groups } => {
            let others = Some(&fault.others).filter(|others| !others.is_empty());
            let groups = groups.iter().chain(others).map(|group| group.join(","));
            groups.collect::<Vec<_>>().join(" | ")
        }
        FaultSpec::Kill { at }
        | FaultSpec::Pause { at }
        | FaultSpec::Latency { at, .. }
        | FaultSpec::Loss { at, .. }
        | FaultSpec::Lie { at, .. } => at.clone(),
    }
}

/// Whether a fault is laid on this node itself, not on a link of it or on all nodes.
pub fn is_at(fault: &Fault, node: &str) -> bool {
    !matches!(fault.fault, FaultSpec::Partition { .. }) && place(fault) == node
}

/// Whether a fault concerns a node.
pub fn affects(fault: &Fault, node: &str) -> bool {
    match &fault.fault {
        FaultSpec::Partition { .. } => true,
        _ => place(fault).split("..").any(|end| end == node),
    }
}

/// The faults that concern a node, in a few words; empty without any.
pub fn marks(faults: &[Fault], node: &str) -> String {
    let here = faults.iter().filter(|fault| affects(fault, node));
    here.map(|fault| what(&fault.fault)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(spec: serde_json::Value) -> Fault {
        let mut fault = serde_json::json!({
            "id": 3, "seed": 0, "since": 12, "until_height": null, "until": null, "dropped": 0,
            "delayed": 0, "lies": 0, "others": ["c"],
        });
        fault.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(fault).unwrap()
    }

    #[test]
    fn faults_are_told_in_words() {
        let check = |spec: serde_json::Value, expected: [&str; 4]| {
            let fault = fault(spec);
            let marks = ["a", "b"].map(|node| marks(std::slice::from_ref(&fault), node));
            let told = [what(&fault.fault), place(&fault), marks[0].clone(), marks[1].clone()];
            assert_eq!(told, expected);
        };
        check(serde_json::json!({"kind": "pause", "at": "a"}), ["paused", "a", "paused", ""]);
        check(serde_json::json!({"kind": "kill", "at": "b"}), ["killed", "b", "", "killed"]);
        check(
            serde_json::json!({"kind": "latency", "at": "a..b", "delay_us": 50_000}),
            ["latency 50 ms", "a..b", "latency 50 ms", "latency 50 ms"],
        );
        check(
            serde_json::json!({"kind": "loss", "at": "a", "per_mille": 55}),
            ["loss 5.5 %", "a", "loss 5.5 %", ""],
        );
        check(
            serde_json::json!({"kind": "lie", "at": "b", "votes": "ones", "of": "runner-1"}),
            ["lies ones of runner-1", "b", "", "lies ones of runner-1"],
        );
        check(
            serde_json::json!({"kind": "partition", "groups": [["a"], ["b"]]}),
            ["partition", "a | b | c", "partition", "partition"],
        );
    }
}
