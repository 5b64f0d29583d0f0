//! The item under the cursor, shown below its list on tall terminals.

use super::{hear, is_shown, press, replayed, replayed_from, tab};
use crate::dashboard::{
    look::Theme,
    news::{Ask, News},
    state::State,
};
use crossterm::event::KeyCode;
use ratatui::layout::Size;

const TALL: Size = Size::new(120, 40);

/// The questions about one job, timer or lease that the shown pane asks.
fn asks(state: &State) -> Vec<Ask> {
    let is_about_one = |ask: &Ask| {
        matches!(ask, Ask::Job(_) | Ask::Explanation(_) | Ask::LeaseJob(_) | Ask::Runner(_))
    };
    state.wants(false).into_iter().filter(is_about_one).collect()
}

#[test]
fn the_job_under_the_cursor_is_asked_where_there_is_room() {
    let open = "0x71160d66f077d4a342e6f0496131b230d995f18ba08942dce59efaf1fdf9c46a".to_owned();
    let mut low = replayed(Size::new(120, 24), Theme::Dark);
    tab(&mut low, "jobs");
    // The list shows the progress of an open job.
    assert_eq!(asks(&low), [Ask::Job(open.clone())]);
    let mut state = replayed(TALL, Theme::Dark);
    tab(&mut state, "jobs");
    assert_eq!(asks(&state), [Ask::Job(open.clone()), Ask::Explanation(open.clone())]);
    assert!(is_shown(&state, &format!("─ job {open}")));
    press(&mut state, KeyCode::Down);
    let verified = "0x8d8f7e07c10d684811369badd951b3846238bf1dd71bb84eae027920954ab65d".to_owned();
    assert!(!is_shown(&state, "how its runners were drawn"), "the other one is not known yet");
    let expected = [verified.clone(), verified.clone(), open.clone()];
    let [job, explanation, progress] = expected;
    let expected = [Ask::Job(job), Ask::Explanation(explanation), Ask::Job(progress)];
    assert_eq!(asks(&state), expected);
    hear(&mut state, News::Refused(Ask::Job(verified), "it is gone".to_owned()));
    assert!(is_shown(&state, "it is gone"));
    // What is known is there at once when it is opened.
    press(&mut state, KeyCode::Up);
    let (pane, cx) = state.shown();
    assert!(pane.enter(&cx));
    assert_eq!(asks(&state), [Ask::Job(open.clone()), Ask::Explanation(open)]);
}

#[test]
fn the_lease_under_the_cursor_is_asked() {
    let mut state = replayed_from("work.jsonl", TALL, Theme::Dark);
    tab(&mut state, "leases");
    press(&mut state, KeyCode::Home);
    assert_eq!(asks(&state), [], "a run has no page");
    press(&mut state, KeyCode::Down);
    assert_eq!(asks(&state), [Ask::LeaseJob("job_b608e8a65cbeaa2e".to_owned())]);
    press(&mut state, KeyCode::Char('r'));
    assert_eq!(asks(&state), []);
}

#[test]
fn the_event_under_the_cursor_has_its_fields_below() {
    let mut state = replayed(TALL, Theme::Dark);
    tab(&mut state, "events");
    assert!(is_shown(&state, "PresenceDerived in block 37"));
    press(&mut state, KeyCode::Down);
    assert!(is_shown(&state, "TimerFired in block 36") && is_shown(&state, "\"success\": true"));
}
