//! Concurrency groups: one at a time of the jobs, or of the runs, that share a group is active.
//!
//! A run joins its group when it is submitted, a job when it could be queued otherwise. Each gets a
//! ticket. The member with a group's lowest ticket has its turn until it ends; a job that is tried
//! again keeps its turn.
//!
//! Groups of runs and groups of jobs are separate, whatever their names. A run that has its turn
//! waits for nothing else, and a job joins its group only after its run has its turn. So no two
//! members can wait for each other.

use super::{JobId, RunId};
use cowboy_engine::record;
use std::collections::BTreeMap;

/// The group of a job or a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concurrency {
    pub group: String,
    /// Whether a new member cancels those that joined the group before.
    pub cancel: bool,
}
record!(Concurrency { group, cancel });

/// A job or a run with a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Job(JobId),
    Run(RunId),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    next: u64,
    jobs: BTreeMap<String, BTreeMap<u64, Member>>,
    runs: BTreeMap<String, BTreeMap<u64, Member>>,
}

impl Turns {
    fn groups(&mut self, member: &Member) -> &mut BTreeMap<String, BTreeMap<u64, Member>> {
        match member {
            Member::Job(_) => &mut self.jobs,
            Member::Run(_) => &mut self.runs,
        }
    }

    pub fn join(&mut self, group: &str, member: Member) -> u64 {
        let ticket = self.next;
        self.put(group, ticket, member);
        ticket
    }

    /// Restores a member's ticket. Returns whether the ticket was free or already the member's own.
    pub fn put(&mut self, group: &str, ticket: u64, member: Member) -> bool {
        self.next = self.next.max(ticket.saturating_add(1));
        let members = self.groups(&member).entry(group.to_owned()).or_default();
        *members.entry(ticket).or_insert_with(|| member.clone()) == member
    }

    /// Removes a member that has ended. If it had the turn, returns the member that has it now.
    pub fn leave(&mut self, group: &str, ticket: u64, member: &Member) -> Option<Member> {
        let groups = self.groups(member);
        let members = groups.get_mut(group)?;
        let was_first = members.first_key_value().is_some_and(|(first, _)| *first == ticket);
        members.remove(&ticket)?;
        let next = members.first_key_value().map(|(_, next)| next.clone());
        if next.is_none() {
            groups.remove(group);
        }
        next.filter(|_| was_first)
    }

    /// The members of this member's group with a lower ticket, lowest first.
    pub fn before(
        &self,
        group: &str,
        ticket: u64,
        member: &Member,
    ) -> impl DoubleEndedIterator<Item = &Member> {
        let groups = match member {
            Member::Job(_) => &self.jobs,
            Member::Run(_) => &self.runs,
        };
        let members = groups.get(group).into_iter();
        members.flat_map(move |members| members.range(..ticket).map(|(_, member)| member))
    }
}
