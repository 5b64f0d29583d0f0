//! The latest events of the components of speculation (AgenC §4), for readers that follow them.
//!
//! Events are numbered in the order in which they happened. A process starts its numbers from its
//! start time, so that they keep growing across a restart and a returning reader can resume. The
//! last [`KEPT`] are kept, in memory only; a reader that comes too late is told how many it missed.

use crate::types::{EVENTS_MISSED, SpeculationEvent, SpeculationEventPage, SpeculationEventQuery};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

pub(super) const KEPT: usize = 20_000;
/// Events in a page: by default, and at most.
const PAGE: usize = 1_000;
const MAX_PAGE_EVENTS: usize = 10_000;
/// Numbers reserved per ms that a process runs, so that numbers never overlap across restarts.
const PER_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Journal {
    events: VecDeque<SpeculationEvent>,
    first: u64,
    next: u64,
}

#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) pipeline: Option<u64>,
    pub(super) task: Option<String>,
    pub(super) task_id: Option<crate::types::HashText>,
}

impl Journal {
    /// A journal without events, of a process that began at `now`, Unix ms.
    pub(super) fn new(now: u64) -> Self {
        let first = now.saturating_mul(PER_MS);
        Self { events: VecDeque::new(), first, next: first }
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Records an event that happened at `at`, Unix ms.
    pub(super) fn push(&mut self, kind: &str, at: u64, about: About, data: Map<String, Value>) {
        if self.events.len() >= KEPT {
            self.events.pop_front();
        }
        let About { pipeline, task, task_id } = about;
        let (seq, at) = (self.next, super::time(at));
        let data = Value::Object(data);
        let kind = kind.to_owned();
        self.events.push_back(SpeculationEvent { seq, at, kind, pipeline, task, task_id, data });
        self.next += 1;
    }

    /// The events that match a query, from its number on. If some were missed, the first event says
    /// how many.
    pub(super) fn page(&self, query: &SpeculationEventQuery) -> SpeculationEventPage {
        let limit = query.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE_EVENTS);
        let oldest = self.next - self.events.len() as u64;
        let from = query.from.unwrap_or(oldest);
        let mut events = Vec::new();
        if from < oldest {
            // The number of events of earlier processes is unknown.
            let restarted = from < self.first;
            let missed = oldest - from.max(self.first);
            if missed > 0 || restarted {
                events.push(SpeculationEvent {
                    seq: oldest - 1,
                    at: crate::types::Text(Timestamp::now()),
                    kind: EVENTS_MISSED.to_owned(),
                    pipeline: None,
                    task: None,
                    task_id: None,
                    data: json!({ "missed": missed, "restarted": restarted }),
                });
            }
        }
        // A number beyond the next one belongs to another devnet: the reader starts from now.
        let from = from.clamp(oldest, self.next);
        let skip = usize::try_from(from - oldest).unwrap_or(usize::MAX);
        let mut next = self.next;
        for event in self.events.iter().skip(skip) {
            if !query.wants(event) {
                continue;
            }
            if events.len() >= limit {
                next = event.seq;
                break;
            }
            events.push(event.clone());
        }
        SpeculationEventPage { events, next, more: next < self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(events: u64) -> Journal {
        let mut journal = Journal::new(5);
        for at in 0..events {
            let pipeline = Some(at % 2);
            let kind = if at % 3 == 0 { "task:scheduled" } else { "proof:ready" };
            journal.push(kind, at, About { pipeline, ..About::default() }, Map::new());
        }
        journal
    }

    fn seqs(page: &SpeculationEventPage) -> Vec<u64> {
        page.events.iter().map(|event| event.seq).collect()
    }

    fn query(from: Option<u64>) -> SpeculationEventQuery {
        SpeculationEventQuery { from, ..SpeculationEventQuery::default() }
    }

    #[test]
    fn pages_go_on_where_the_last_one_ended() {
        let journal = journal(7);
        let all = journal.page(&query(None));
        assert_eq!((seqs(&all), all.next, all.more), ((5_000..5_007).collect(), 5_007, false));
        let some = SpeculationEventQuery { limit: Some(2), pipeline: Some(1), ..query(None) };
        let page = journal.page(&some);
        assert_eq!((seqs(&page), page.next, page.more), (vec![5_001, 5_003], 5_005, true));
        let page = journal.page(&SpeculationEventQuery { from: Some(page.next), ..some });
        assert_eq!((seqs(&page), page.next, page.more), (vec![5_005], 5_007, false));
        for (kind, expected) in
            [("task:scheduled", vec![5_000, 5_003, 5_006]), ("task", vec![5_000, 5_003, 5_006])]
        {
            let kind = Some(kind.to_owned());
            assert_eq!(
                seqs(&journal.page(&SpeculationEventQuery { kind, ..query(None) })),
                expected
            );
        }
        let later = journal.page(&query(Some(u64::MAX)));
        assert_eq!((seqs(&later), later.next), (vec![], 5_007));
    }

    #[test]
    fn who_comes_too_late_is_told_how_many_events_were_missed() {
        let journal = journal(KEPT as u64 + 10);
        let page = |from| {
            let page = journal.page(&SpeculationEventQuery { limit: Some(2), ..query(Some(from)) });
            (page.events[0].kind.clone(), page.events[0].data.clone(), seqs(&page))
        };
        let missed = json!({ "missed": 7, "restarted": false });
        assert_eq!(page(5_003), (EVENTS_MISSED.to_owned(), missed, vec![5_009, 5_010]));
        // A number of an earlier process.
        let missed = json!({ "missed": 10, "restarted": true });
        assert_eq!(page(17), (EVENTS_MISSED.to_owned(), missed, vec![5_009, 5_010]));
        assert_eq!(page(5_010).2, [5_010, 5_011]);
        let page = self::journal(0).page(&query(Some(17)));
        assert_eq!(page.events[0].data, json!({ "missed": 0, "restarted": true }));
    }
}
