//! The log: pieces that join, lines that are read and lines that are followed.

use super::{SMALL, block, hear, is_shown, picture, press, state, tab, type_in};
use crate::dashboard::{
    log::{LogLine, LogPiece, LogPosition},
    news::{Answer, Ask, News},
    panes::logs::{LogEntry, LogLevel},
    state::State,
};
use crossterm::event::KeyCode;

/// Lines of 10 bytes each, from a position on.
fn piece(file: u64, from: u64, texts: &[&str]) -> News {
    let ends = (1..).map(|line| from + line * 10);
    let lines = ends.zip(texts).map(|(end, text)| LogLine { end, text: (*text).to_owned() });
    let from = LogPosition { file, at: from };
    let piece = LogPiece { from, lines: lines.collect() };
    News::Answer(Ask::Log(LogPosition::default()), Box::new(Answer::Log(piece)))
}

fn shown() -> State {
    let mut state = state(SMALL);
    tab(&mut state, "logs");
    state
}

fn asked(state: &State) -> LogPosition {
    let asks = state.wants(false);
    let place = asks.iter().find_map(|ask| match ask {
        Ask::Log(place) => Some(*place),
        _ => None,
    });
    place.unwrap()
}

#[test]
fn lines_are_taken_apart() {
    let check = |text: &str, time, level, message| {
        let entry = LogEntry::of(text.to_owned());
        assert_eq!(
            (entry.time.as_str(), entry.level, entry.message.as_str()),
            (time, level, message)
        );
    };
    let info = Some(LogLevel::Info);
    check("2026-01-02T03:04:05.678901Z  INFO a::b: up", "03:04:05.678", info, "a::b: up");
    check("2026-01-02T03:04:05.678901Z ERROR x", "03:04:05.678", Some(LogLevel::Error), "x");
    check("thread 'main' panicked at x.rs:1", "", None, "thread 'main' panicked at x.rs:1");
    check(
        "2026-01-02T03:04:05.678901Z SOMETHING x",
        "",
        None,
        "2026-01-02T03:04:05.678901Z SOMETHING x",
    );
    check("äöüäöüäöüäöüäöüäöüäöüäöü INFO x", "", None, "äöüäöüäöüäöüäöüäöüäöüäöü INFO x");
    check("", "", None, "");
}

#[test]
fn pieces_join() {
    let mut state = shown();
    assert!(is_shown(&state, "nothing said yet"));
    hear(&mut state, piece(7, 0, &["one", "two"]));
    assert!(is_shown(&state, "log: 2 lines, following"));
    assert_eq!(asked(&state), LogPosition { file: 7, at: 20 });
    // The requested position moves with the blocks, so lines may come twice.
    hear(&mut state, piece(7, 20, &["three"]));
    hear(&mut state, piece(7, 20, &["three", "four"]));
    assert_eq!(asked(&state), LogPosition { file: 7, at: 20 });
    hear(&mut state, News::Block(block(1, 0)));
    assert_eq!(asked(&state), LogPosition { file: 7, at: 40 });
    assert!(is_shown(&state, "log: 4 lines"));
    // Lines that exceed a piece are missing, and the gap is reported.
    hear(&mut state, piece(7, 100, &["ten"]));
    assert!(is_shown(&state, "60 bytes of the log are left out here"));
    hear(&mut state, piece(8, 0, &["first"]));
    assert!(is_shown(&state, "started again: a new log"));
    let lines = picture(&state);
    let rows: Vec<_> =
        lines[3..11].iter().map(|line| line.trim_start_matches([' ', '-'])).collect();
    assert_eq!(&rows[..4], ["one", "two", "three", "four"]);
    assert_eq!((rows[5], rows[7]), ("ten", "first"));
}

#[test]
fn a_log_is_followed_until_it_is_read() {
    let mut state = shown();
    let texts: Vec<_> = (0..100).map(|line| format!("line {line}.")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    hear(&mut state, piece(1, 0, &texts));
    assert!(is_shown(&state, "line 99.") && !is_shown(&state, "line 0."));
    press(&mut state, KeyCode::Home);
    assert!(is_shown(&state, "line 0.") && !is_shown(&state, "following"));
    hear(&mut state, piece(1, 1_000, &["more"]));
    assert!(is_shown(&state, "line 0.") && !is_shown(&state, "more"));
    press(&mut state, KeyCode::Enter);
    assert!(is_shown(&state, "line of the log") && is_shown(&state, "line 0."));
    press(&mut state, KeyCode::Esc);
    press(&mut state, KeyCode::End);
    assert!(is_shown(&state, "more") && is_shown(&state, "following"));
}

#[test]
fn only_so_many_lines_are_kept() {
    let mut state = shown();
    hear(&mut state, piece(1, 0, &["first", "second", "third"]));
    press(&mut state, KeyCode::Home);
    press(&mut state, KeyCode::Down);
    let (mut at, many) = (30, vec!["x"; 1_000]);
    for _ in 0..4 {
        hear(&mut state, piece(1, at, &many));
        at += 10_000;
    }
    hear(&mut state, piece(1, at, &many[..998]));
    assert!(is_shown(&state, "log: 5,000 lines"));
    assert!(!is_shown(&state, "first") && is_shown(&state, "second"));
    press(&mut state, KeyCode::Enter);
    assert!(is_shown(&state, "second"), "the cursor stays on its line");
}

#[test]
fn level_and_words_narrow_it() {
    let mut state = shown();
    let line = |level: &str, text: &str| format!("2026-01-02T03:04:05.678901Z {level:>5} {text}");
    let lines = [
        line("INFO", "validator{name=validator-1}: up"),
        line("WARN", "validator{name=validator-10}: slow"),
        line("ERROR", "runner lost runner=runner-0"),
        "a panic".to_owned(),
    ];
    let texts: Vec<_> = lines.iter().map(String::as_str).collect();
    hear(&mut state, piece(1, 0, &texts));
    assert!(is_shown(&state, "log: 4 lines"));
    for _ in 0..3 {
        press(&mut state, KeyCode::Char('l'));
    }
    assert!(is_shown(&state, "log: 3 of 4 lines, WARN and above"));
    assert!(is_shown(&state, "a panic") && !is_shown(&state, ": up"));
    press(&mut state, KeyCode::Char('l'));
    press(&mut state, KeyCode::Char('l'));
    press(&mut state, KeyCode::Char('/'));
    type_in(&mut state, "validator-1}");
    assert!(is_shown(&state, "log: 1 of 4 lines"));
}

#[test]
fn a_frozen_log_stands_still() {
    let mut state = shown();
    hear(&mut state, piece(1, 0, &["one"]));
    let ask = Ask::Log(asked(&state));
    let answer = |texts: &[&str]| match piece(1, 10, texts) {
        News::Answer(_, answer) => News::Answer(ask.clone(), answer),
        other => other,
    };
    hear(&mut state, answer(&["two"]));
    press(&mut state, KeyCode::Char(' '));
    hear(&mut state, News::Block(block(1, 0)));
    hear(&mut state, answer(&["two", "three"]));
    assert!(is_shown(&state, "two") && !is_shown(&state, "three"));
    press(&mut state, KeyCode::Char(' '));
    hear(&mut state, answer(&["two", "three"]));
    assert!(is_shown(&state, "log: 3 lines"));
}

#[test]
fn without_a_log_it_says_why() {
    let mut state = shown();
    hear(
        &mut state,
        News::Refused(Ask::Log(LogPosition::default()), "devnet.log: gone".to_owned()),
    );
    assert!(is_shown(&state, "no log: devnet.log: gone"));
    hear(&mut state, piece(1, 0, &["one"]));
    assert!(!is_shown(&state, "gone"));
}
