//! Recomputes everything that the machine stores but could derive.

use super::super::{
    CommitmentStatus, DependencyStatus, ParentLink, ProofStatus, Speculation, TaskId,
    deadlines::NEVER,
    table::{EdgeAt, TaskIndex},
};
use std::collections::{BTreeMap, BTreeSet};

/// Panics if the machine contradicts itself or the rules.
pub fn check(machine: &Speculation) {
    let graph = &machine.graph;
    let order: Vec<TaskIndex> =
        graph.topological_order().iter().map(|id| graph.find(id).unwrap()).collect();
    assert_eq!(order.len(), graph.len(), "a cycle");

    let mut depths: BTreeMap<TaskIndex, u32> = BTreeMap::new();
    let mut live_children: BTreeMap<TaskIndex, u32> = BTreeMap::new();
    let (mut live, mut tips, mut bonds, mut in_flight) = (0, 0, 0, 0);
    let (mut open, mut proofs, mut commitments, mut held) = (0, 0, 0, 0);
    let mut deadlines = BTreeSet::new();
    let mut ready = 0;
    for &task in &order {
        let node = &graph.nodes[task];
        let status = node.status;
        assert_eq!(graph.find(&node.id), Some(task));
        let mut unconfirmed = 0;
        let mut depth = 0;
        for edge in graph.parent_edges(task) {
            assert_eq!(edge.child, task);
            let parent = graph.status_of(edge.parent);
            if status.is_live() {
                *live_children.entry(edge.parent).or_default() += 1;
                let outlived =
                    matches!(parent, DependencyStatus::Failed | DependencyStatus::RolledBack);
                assert!(
                    !outlived || edge.link == ParentLink::OrderOnly,
                    "outlived {:?}",
                    edge.parent
                );
            }
            if parent != DependencyStatus::Confirmed {
                unconfirmed += 1;
                depth = depth.max(depths[&edge.parent] + 1);
            }
        }
        depths.insert(task, depth);
        assert_eq!(node.unconfirmed, unconfirmed, "unconfirmed parents of {}", node.id);
        assert_eq!(u32::from(node.depth), depth, "depth of {}", node.id);
        assert_eq!(graph.depth(&node.id), Some(depth));
        assert!(
            status != DependencyStatus::Confirmed || unconfirmed == 0,
            "{} confirmed early",
            node.id
        );

        let terms = &machine.terms[task];
        let entry = machine.deferral.get(task);
        let commitment = machine.ledger.get(task);
        assert!(!terms.held || status.is_live() && unconfirmed > 0, "held {}", node.id);
        live += usize::from(status.is_live());
        bonds += if status.is_live() { u128::from(terms.bond) } else { 0 };
        in_flight += usize::from(entry.status == ProofStatus::Submitting);
        ready += usize::from(entry.status == ProofStatus::Ready);
        held += usize::from(entry.status == ProofStatus::Held);
        commitments += usize::from(commitment.is_some());
        open += usize::from(commitment.is_some_and(|one| one.status.is_open()));
        proofs += usize::from(commitment.is_some_and(|one| one.proof.is_some()));

        let proved = commitment.is_some_and(|one| one.proof.is_some());
        let created = commitment.is_some_and(|one| one.status == CommitmentStatus::Created);
        let clear = unconfirmed == 0;
        let fits = match (status, entry.status) {
            (DependencyStatus::Pending, ProofStatus::None) => commitment.is_none(),
            (DependencyStatus::Speculative, ProofStatus::Held) => created && !clear,
            (DependencyStatus::Speculative, ProofStatus::Queued | ProofStatus::Proving) => created,
            (DependencyStatus::Speculative, ProofStatus::Waiting) => proved && !clear,
            (
                DependencyStatus::Speculative,
                ProofStatus::Ready | ProofStatus::BackOff | ProofStatus::Submitting,
            ) => proved && clear,
            (DependencyStatus::Confirmed, ProofStatus::Confirmed)
            | (DependencyStatus::Failed | DependencyStatus::RolledBack, ProofStatus::Cancelled) => {
                !proved
            }
            _ => false,
        };
        assert!(fits, "{status}, {}, {commitment:?}", entry.status);

        let expiry = commitment.map_or(NEVER, |one| one.expires_at);
        let first = terms.claim_expires_at.min(expiry).min(entry.until);
        let watched = status.is_live() && !terms.held && first != NEVER;
        assert_eq!(terms.deadline, if watched { first } else { NEVER }, "deadline of {}", node.id);
        if watched {
            deadlines.insert((first, task));
        }
    }
    let mut retired = BTreeSet::new();
    for &task in &order {
        let node = &graph.nodes[task];
        let children = live_children.get(&task).copied().unwrap_or(0);
        assert_eq!(node.live_children, children, "live children of {}", node.id);
        tips += usize::from(node.status.is_live() && children == 0);
        if !node.status.is_live() && children == 0 {
            retired.insert(task);
        }
        let last = graph.child_edges(task).last().map(|edge| edge.child);
        assert_eq!(last.is_none(), node.first_child == EdgeAt::NONE);
    }
    assert_eq!(graph.retired().collect::<BTreeSet<_>>(), retired);
    assert_eq!((graph.live(), graph.branches()), (live, tips));
    assert_eq!(machine.stake.locked.get(), bonds);
    assert_eq!(machine.deferral.in_flight(), in_flight);
    assert_eq!(machine.deferral.ready(), ready);
    let ledger = &machine.ledger;
    assert_eq!((ledger.len(), ledger.open(), ledger.proofs()), (commitments, open, proofs));
    // Every open commitment is held, or its proof is requested or made.
    assert_eq!(machine.deferral.pending(), open - held);
    assert_eq!(machine.deadlines, deadlines);
    let away = machine.away.is_some();
    assert!(
        away || deadlines.first().is_none_or(|&(at, _)| at > machine.now),
        "something is overdue"
    );
    let probe = machine.breaker.probe().map(|probe| graph.status(&probe));
    assert!(
        probe.is_none_or(|status| status.is_some_and(DependencyStatus::is_live)),
        "the probe is gone"
    );
    assert!(
        away || ready == 0 || in_flight as u64 >= machine.config.max_concurrent,
        "a slot is free"
    );
}

/// The values that must not change from one operation to the next.
#[derive(Default)]
pub struct Past {
    tasks: BTreeMap<TaskId, (u32, DependencyStatus, u32)>,
}

impl Past {
    /// Panics if a final status changed, or if a depth rose other than for tasks that wait for a
    /// failed one; then remembers the current values.
    pub fn check(&mut self, machine: &Speculation, waits: bool) {
        let mut tasks = BTreeMap::new();
        for task in machine.graph.places() {
            let id = &machine.graph.id(task);
            let node = &machine.graph.nodes[task];
            let now = (machine.terms[task].attempt, node.status, u32::from(node.depth));
            if let Some(&(attempt, status, depth)) = self.tasks.get(id)
                && attempt == now.0
            {
                assert!(status.is_live() || status == now.1, "{id} was {status}");
                assert!(waits || !now.1.is_live() || now.2 <= depth, "{id} is deeper than before");
            }
            tasks.insert(*id, now);
        }
        self.tasks = tasks;
    }
}
