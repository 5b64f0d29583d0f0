//! Large graphs: no recursion over the graph, and no step costs time for all of it.

use super::{
    super::{
        DependencyStatus, EngineOutput, Graph, ParentLink, RunRequest, SubmissionResult, TaskId,
    },
    CLAIM, PROOF, machine, opening,
};
use crate::primitives::Hash;

const MANY: u32 = 1_000_000;

fn id(n: u32) -> TaskId {
    let mut id = [0; 32];
    // Not in order, like hashes.
    id[..4].copy_from_slice(&n.wrapping_mul(0x9e37_79b1).to_be_bytes());
    Hash(id)
}

fn chain() -> Graph {
    let mut graph = Graph::default();
    graph.add(id(0), &[]).unwrap();
    for n in 1..MANY {
        graph.add(id(n), &[(id(n - 1), ParentLink::Reads)]).unwrap();
    }
    graph
}

#[test]
fn a_chain_of_a_million_is_added_confirmed_and_removed() {
    let mut graph = chain();
    assert_eq!(graph.depth(&id(MANY - 1)), Some(MANY - 1));
    assert_eq!((graph.live(), graph.branches()), (MANY as usize, 1));
    assert!(graph.would_cycle(&id(0), &id(MANY - 1)));
    assert_eq!(graph.ancestors(&id(MANY - 1)).len(), MANY as usize - 1);
    for n in 0..MANY {
        assert!(graph.confirm(&id(n)));
        if n == 500_000 {
            assert_eq!(graph.depth(&id(n + 10)), Some(9));
            assert_eq!(graph.depth(&id(MANY - 1)), Some(MANY - n - 2));
        }
    }
    assert_eq!(graph.live(), 0);
    assert_eq!(graph.remove_subtree(&id(0)), MANY as usize);
    assert!(graph.is_empty());
}

#[test]
fn a_chain_of_a_million_is_rolled_back() {
    let mut graph = chain();
    let descendants = graph.descendants(&id(0));
    assert_eq!((descendants.len(), descendants[0]), (MANY as usize - 1, id(MANY - 1)));
    assert_eq!(graph.fail(&id(0)), MANY as usize);
    assert_eq!(graph.status(&id(0)), Some(DependencyStatus::Failed));
    assert_eq!(graph.status(&id(MANY - 1)), Some(DependencyStatus::RolledBack));
    assert_eq!((graph.live(), graph.branches()), (0, 0));
}

#[test]
fn a_million_tasks_pass_through_the_machine_in_bounded_memory() {
    let settings = [("limits.retainedTasks", "1000"), ("limits.gcIntervalMs", "1")];
    let mut machine = machine(&settings);
    let mut most = 0;
    for n in 0..MANY {
        let now = u64::from(n);
        let parent = n.checked_sub(1).map(|n| (id(n), ParentLink::Reads));
        let parents: Vec<_> = parent.into_iter().collect();
        let request = RunRequest::new(id(n), &parents, CLAIM);
        machine.schedule(request, now).unwrap();
        machine.complete(id(n), opening(id(n)), &PROOF, now).unwrap();
        let mut answered = false;
        while let Some(output) = machine.poll_output() {
            if let EngineOutput::Submit { task, submission, .. } = output {
                machine.answer(task, submission, SubmissionResult::Confirmed, now).unwrap();
                answered = true;
            }
        }
        assert!(answered);
        if n == 10_000 {
            most = machine.memory();
        }
    }
    assert!(machine.memory() <= most, "{} bytes after {most}", machine.memory());
    assert!(machine.graph().len() <= 1_002, "{}", machine.graph().len());
    assert!(machine.stake().locked.is_zero());
}
