//! Pictures of a devnet whose timer lane was too small, recorded: `recordings/congested.jsonl`.

use super::{picture, pictures::SIZES, pictures::snapshot, press, replayed_from, tab, type_in};
use crate::dashboard::{
    look::Theme,
    news::{Answer, Ask, News},
    state::State,
    update::update,
};
use cowboy_devnet::types::TimerStatus;
use crossterm::event::KeyCode;
use jiff::Timestamp;
use ratatui::layout::Size;

const NAME: &str = "congested.jsonl";

/// Answers the current questions with the last recorded answers.
pub fn fill(state: &mut State, recorded: &[(Timestamp, News)]) {
    for ask in state.wants(false) {
        let answers = recorded.iter().rev().find_map(|(_, news)| match news {
            News::Answer(known, _) if *known == ask => Some(news.clone()),
            _ => None,
        });
        if let Some(news) = answers {
            let now = state.now;
            update(state, now, super::Event::News(news));
        }
    }
}

/// The first recorded timer with a status that `is` accepts.
fn timer(recorded: &[(Timestamp, News)], is: fn(TimerStatus) -> bool) -> String {
    let found = recorded.iter().find_map(|(_, news)| match news {
        News::Answer(Ask::Timer(id), answer) => match answer.as_ref() {
            Answer::Timer(timer) if is(timer.status) => Some(id.clone()),
            _ => None,
        },
        _ => None,
    });
    found.expect("the recording has one")
}

/// The pane filtered by a word, with the row under the cursor opened.
fn opened(size: Size, pane: &str, word: &str) -> State {
    let recorded = super::recorded(NAME);
    let mut state = replayed_from(NAME, size, Theme::Dark);
    tab(&mut state, pane);
    press(&mut state, KeyCode::Char('/'));
    type_in(&mut state, word);
    press(&mut state, KeyCode::Enter);
    press(&mut state, KeyCode::Enter);
    fill(&mut state, &recorded);
    state
}

#[test]
fn lists_and_what_is_in_them() {
    let recorded = super::recorded(NAME);
    let due = timer(&recorded, |status| status == TimerStatus::Due);
    let ended = timer(&recorded, |status| status == TimerStatus::Fired);
    for size in SIZES {
        let mut state = replayed_from(NAME, size, Theme::Dark);
        for name in ["timers", "mru", "logs"] {
            tab(&mut state, name);
            snapshot(&format!("congested-{name}"), size, &picture(&state));
        }
        tab(&mut state, "timers");
        press(&mut state, KeyCode::Char('f'));
        snapshot("congested-fairness", size, &picture(&state));
        snapshot("congested-timer-due", size, &picture(&opened(size, "timers", &due)));
        snapshot("congested-timer-fired", size, &picture(&opened(size, "timers", &ended)));
        snapshot("congested-mru-record", size, &picture(&opened(size, "mru", "custom")));
        snapshot("congested-logs-line", size, &picture(&opened(size, "logs", "warn")));
    }
}

/// Ids and amounts stay on their lines, whole or without their middle.
#[test]
fn what_is_opened_is_read_by_scrolling() {
    let recorded = super::recorded(NAME);
    let ended = timer(&recorded, |status| status == TimerStatus::Fired);
    let mut state = opened(SIZES[0], "timers", &ended);
    let first = picture(&state);
    press(&mut state, KeyCode::PageDown);
    assert_ne!(first, picture(&state));
    press(&mut state, KeyCode::End);
    let last = picture(&state);
    press(&mut state, KeyCode::PageDown);
    assert_eq!(last, picture(&state));
    assert!(!last[last.len() - 2].is_empty(), "the last line is at the bottom: {last:#?}");
    press(&mut state, KeyCode::Home);
    assert_eq!(first, picture(&state));
}
