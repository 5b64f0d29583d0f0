//! Runners that wait for work, in the order of their arrival.

use super::Reply;
use crate::{machine::RunnerId, messages::LeaseGranted};
use std::collections::{BTreeMap, BTreeSet};

const MAX_WAITING: usize = 10_000;

pub(super) struct Waiter {
    pub runner: RunnerId,
    pub capabilities: BTreeSet<String>,
    pub until: u64,
    /// Receives the grant; `None` when the wait is over.
    pub reply: Reply<Option<LeaseGranted>>,
}

/// All waiting runners; each at most once.
#[derive(Default)]
pub(super) struct Waiters {
    all: BTreeMap<u64, Waiter>,
    next: u64,
    runners: BTreeMap<RunnerId, u64>,
    deadlines: BTreeSet<(u64, u64)>,
}

impl Waiters {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn push(&mut self, waiter: Waiter) -> Result<(), Waiter> {
        if self.all.len() >= MAX_WAITING {
            let gone = self.all.iter().filter(|(_, waiter)| waiter.reply.is_closed());
            for ticket in gone.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
                self.take(ticket);
            }
        }
        if self.all.len() >= MAX_WAITING {
            return Err(waiter);
        }
        let ticket = self.next;
        self.next += 1;
        self.deadlines.insert((waiter.until, ticket));
        self.runners.insert(waiter.runner.clone(), ticket);
        self.all.insert(ticket, waiter);
        Ok(())
    }

    fn take(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.all.remove(&ticket)?;
        self.deadlines.remove(&(waiter.until, ticket));
        self.runners.remove(&waiter.runner);
        Some(waiter)
    }

    /// Removes and returns the runner's request.
    pub fn of(&mut self, runner: &RunnerId) -> Option<Waiter> {
        let ticket = *self.runners.get(runner)?;
        self.take(ticket)
    }

    pub fn has(&self, runner: &RunnerId) -> bool {
        let waiter = self.runners.get(runner).and_then(|ticket| self.all.get(ticket));
        waiter.is_some_and(|waiter| !waiter.reply.is_closed())
    }

    /// Removes and returns the first runner that can do a job with these requirements and is still
    /// connected.
    pub fn able(&mut self, requires: &[String]) -> Option<Waiter> {
        let able = |waiter: &Waiter| {
            requires.iter().all(|required| waiter.capabilities.contains(required))
                && !waiter.reply.is_closed()
        };
        let ticket = self.all.iter().find(|(_, waiter)| able(waiter)).map(|(ticket, _)| *ticket)?;
        self.take(ticket)
    }

    /// Removes and returns the next runner whose wait is over.
    pub fn late(&mut self, now: u64) -> Option<Waiter> {
        let (until, ticket) = *self.deadlines.first()?;
        if until <= now { self.take(ticket) } else { None }
    }

    /// Removes and returns the runner that has waited longest.
    pub fn any(&mut self) -> Option<Waiter> {
        let ticket = *self.all.first_key_value()?.0;
        self.take(ticket)
    }

    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(until, _)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    type Answer = oneshot::Receiver<Result<Option<LeaseGranted>, super::super::ServiceError>>;

    fn waiter(runner: &str, capabilities: &[&str], until: u64) -> (Waiter, Answer) {
        let (reply, answer) = oneshot::channel();
        let capabilities = capabilities.iter().map(ToString::to_string).collect();
        (Waiter { runner: runner.into(), capabilities, until, reply }, answer)
    }

    fn name(waiter: Option<Waiter>) -> Option<String> {
        waiter.map(|waiter| waiter.runner.0)
    }

    #[test]
    fn who_came_first_is_served_first_if_it_is_able_and_there() {
        let mut waiters = Waiters::default();
        let mut answers = Vec::new();
        for (runner, capabilities, until) in
            [("a", &["gpu"][..], 5), ("b", &[], 9), ("c", &["gpu"], 7), ("d", &[], 6)]
        {
            let (waiter, answer) = waiter(runner, capabilities, until);
            assert!(waiters.push(waiter).is_ok());
            answers.push(answer);
        }
        assert_eq!(name(waiters.able(&["tpu".to_owned()])), None);
        drop(answers.remove(0));
        assert_eq!(name(waiters.able(&["gpu".to_owned()])), Some("c".to_owned()), "a is gone");
        assert_eq!(name(waiters.able(&[])), Some("b".to_owned()));
        assert_eq!((waiters.len(), waiters.next_deadline()), (2, Some(5)));
        assert_eq!(name(waiters.late(4)), None);
        assert_eq!(name(waiters.late(5)), Some("a".to_owned()));
        assert_eq!(name(waiters.of(&"a".into())), None);
        assert_eq!(name(waiters.of(&"d".into())), Some("d".to_owned()));
        assert_eq!((waiters.len(), waiters.next_deadline()), (0, None));
        assert_eq!(name(waiters.any()), None);
    }

    #[test]
    fn those_that_are_gone_make_room() {
        let mut waiters = Waiters::default();
        let mut answers = Vec::new();
        for n in 0..MAX_WAITING {
            let (waiter, answer) = waiter(&n.to_string(), &[], 1);
            assert!(waiters.push(waiter).is_ok());
            answers.push(answer);
        }
        assert!(waiters.push(waiter("one more", &[], 1).0).is_err());
        drop(answers.drain(..10));
        assert!(waiters.push(waiter("one more", &[], 1).0).is_ok());
        assert_eq!(waiters.len(), MAX_WAITING - 9);
    }
}
