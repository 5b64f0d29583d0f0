//! The dashboard as a whole: events in, pictures and effects out.

use super::{
    look::{Look, Theme},
    news::News,
    output::{EndedCommand, Heard},
    palette::{Completion, Offer},
    recording,
    shared::Link,
    state::{Effect, Event, HELD, Mode, State},
    update::update,
    view,
};
use cowboy_devnet::types::BlockNotice;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::{Terminal, backend::TestBackend, layout::Size};
use std::{fs, path::Path};

mod accounts;
mod congested;
mod faults;
mod logs;
mod mru;
mod pictures;
mod previews;
mod sizes;
mod timers;
mod work;

const SMALL: Size = Size::new(80, 24);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn state(size: Size) -> State {
    State::new("local".to_owned(), size, Look(Theme::Dark), at(0))
}

/// A block with `events` events.
fn block(height: u64, events: usize) -> BlockNotice {
    let event = |index| {
        serde_json::json!({
            "height": height, "index": index, "kind": "Transferred",
            "data": {"amount": "7", "to": format!("0x{height:040x}")},
        })
    };
    let events: Vec<_> = (0..events).map(event).collect();
    serde_json::from_value(serde_json::json!({
        "height": height, "hash": format!("0x{height:064x}"), "proposer": "validator-0",
        "view": height, "finalized_at": at(height as i64).to_string(), "transactions": 1,
        "fires": 0, "certificate_for": [height.saturating_sub(1)], "present": 4,
        "registry_len": 4, "events": events,
    }))
    .unwrap()
}

fn linked(height: u64, genesis: u8) -> Event {
    Event::News(News::Linked {
        devnet: "local".to_owned(),
        genesis: format!("0x{}", hex(genesis)).parse().unwrap(),
        height,
    })
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn hear(state: &mut State, news: News) {
    let now = state.now;
    assert_eq!(update(state, now, Event::News(news)), []);
}

fn press(state: &mut State, code: KeyCode) -> Vec<Effect> {
    let now = state.now;
    update(state, now, Event::Key(KeyEvent::from(code)))
}

fn type_in(state: &mut State, text: &str) {
    for character in text.chars() {
        assert_eq!(press(state, KeyCode::Char(character)), []);
    }
}

/// The lines of the picture, without trailing spaces.
fn picture(state: &State) -> Vec<String> {
    let backend = TestBackend::new(state.size.width, state.size.height);
    let mut terminal = Terminal::new(backend).unwrap();
    terminal.draw(|frame| view::draw(state, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let width = usize::from(state.size.width).max(1);
    let rows = buffer.content().chunks(width);
    rows.map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    })
    .collect()
}

fn is_shown(state: &State, text: &str) -> bool {
    picture(state).iter().any(|line| line.contains(text))
}

fn tab(state: &mut State, name: &str) {
    state.shown = state.panes.iter().position(|slot| slot.pane.name() == name).unwrap();
}

#[test]
fn tabs_are_reached_by_keys_and_by_the_mouse() {
    let mut state = state(SMALL);
    let name = |state: &State| state.panes[state.shown].pane.name();
    press(&mut state, KeyCode::Char('2'));
    assert_eq!(name(&state), "blocks");
    press(&mut state, KeyCode::Char('='));
    assert_eq!(name(&state), "logs");
    press(&mut state, KeyCode::Char('2'));
    press(&mut state, KeyCode::BackTab);
    assert_eq!(name(&state), "overview");
    press(&mut state, KeyCode::BackTab);
    let last = state.panes.len() - 1;
    assert_eq!(state.shown, last);
    press(&mut state, KeyCode::Tab);
    assert_eq!(state.shown, 0);
    let line = picture(&state)[0].clone();
    let column = line.find('2').unwrap() as u16;
    let click = |column, row| {
        Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    update(&mut state, at(0), click(column, 0));
    assert_eq!(name(&state), "blocks");
    // A click outside of everything.
    update(&mut state, at(0), click(500, 500));
    assert_eq!(name(&state), "blocks");
}

#[test]
fn a_frozen_picture_stands_still_and_counts() {
    let mut state = state(SMALL);
    update(&mut state, at(0), linked(1, 1));
    tab(&mut state, "events");
    hear(&mut state, News::Block(block(1, 2)));
    press(&mut state, KeyCode::Char(' '));
    let frozen = picture(&state);
    for height in 2..=5 {
        hear(&mut state, News::Block(block(height, 3)));
    }
    let now = picture(&state);
    let last = now.len() - 1;
    assert_eq!(frozen[..last], now[..last], "all but the footer");
    assert!(now[last].contains("frozen, 12 behind"), "{}", now[last]);
    press(&mut state, KeyCode::Char(' '));
    assert!(is_shown(&state, "events: 14"));
    assert!(!is_shown(&state, "frozen"));
    assert_eq!(state.shared.height, 5);
}

#[test]
fn a_frozen_picture_holds_only_so_much() {
    let mut state = state(SMALL);
    press(&mut state, KeyCode::Char(' '));
    for height in 1..=HELD as u64 + 3 {
        hear(&mut state, News::Block(block(height, 0)));
    }
    assert!(is_shown(&state, "3 dropped"));
    press(&mut state, KeyCode::Char(' '));
    assert_eq!(state.shared.height, HELD as u64 + 3);
}

#[test]
fn a_filter_is_of_its_pane() {
    let mut state = state(SMALL);
    tab(&mut state, "events");
    hear(&mut state, News::Block(block(1, 1)));
    hear(&mut state, News::Block(block(2, 2)));
    press(&mut state, KeyCode::Char('/'));
    // Keys with a meaning elsewhere are text here.
    type_in(&mut state, "q2");
    assert!(is_shown(&state, "events: 0 of 3"));
    press(&mut state, KeyCode::Backspace);
    press(&mut state, KeyCode::Backspace);
    type_in(&mut state, "TRANSFER 02");
    assert!(is_shown(&state, "events: 2 of 3"));
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.mode, Mode::Panes);
    press(&mut state, KeyCode::Tab);
    assert!(!is_shown(&state, "/TRANSFER"));
    press(&mut state, KeyCode::BackTab);
    assert!(is_shown(&state, "/TRANSFER 02"));
    press(&mut state, KeyCode::Esc);
    assert!(is_shown(&state, "events: 3"));
}

#[test]
fn a_list_follows_the_newest_until_it_is_read() {
    let mut state = state(SMALL);
    tab(&mut state, "events");
    hear(&mut state, News::Block(block(1, 1)));
    hear(&mut state, News::Block(block(2, 1)));
    let chosen = |state: &mut State| {
        let (pane, cx) = state.shown();
        pane.equivalent(&cx).unwrap()
    };
    assert_eq!(chosen(&mut state), "cowboyctl chain events --from 2 --kind Transferred");
    hear(&mut state, News::Block(block(3, 1)));
    assert!(chosen(&mut state).contains("--from 3 "));
    press(&mut state, KeyCode::Down);
    hear(&mut state, News::Block(block(4, 5)));
    assert!(chosen(&mut state).contains("--from 2 "));
    press(&mut state, KeyCode::Enter);
    assert!(is_shown(&state, "\"amount\": \"7\""));
    press(&mut state, KeyCode::Esc);
    press(&mut state, KeyCode::Home);
    assert!(chosen(&mut state).contains("--from 4 "));
}

#[test]
fn commands_run_and_their_output_is_shown() {
    let mut state = state(SMALL);
    press(&mut state, KeyCode::Char(':'));
    type_in(&mut state, "chain tx 'a b");
    assert_eq!(press(&mut state, KeyCode::Enter), []);
    assert!(is_shown(&state, "the quote ' is not closed"));
    type_in(&mut state, "'");
    let effects = press(&mut state, KeyCode::Enter);
    let args = ["chain", "tx", "a b"].map(str::to_owned).to_vec();
    assert_eq!(effects, [Effect::Run { run: 1, args }]);
    let now = state.now;
    update(&mut state, now, Event::Child(7, Heard::Line("of another".to_owned())));
    update(&mut state, now, Event::Child(1, Heard::Line("hello".to_owned())));
    assert!(is_shown(&state, "hello") && !is_shown(&state, "of another"));
    assert_eq!(press(&mut state, KeyCode::Esc), [Effect::Kill]);
    update(&mut state, now, Event::Child(1, Heard::Ended(EndedCommand::Code(3))));
    assert!(is_shown(&state, "exit code 3"));
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.mode, Mode::Panes);
}

#[test]
fn what_can_follow_a_command_is_asked_once_it_stands_there() {
    let mut state = state(SMALL);
    let completion =
        |(path, about): (&str, &str)| Completion { path: path.to_owned(), about: about.to_owned() };
    state.commands = [("job ls", "List jobs"), ("job show", "A job")].map(completion).to_vec();
    press(&mut state, KeyCode::Char(':'));
    type_in(&mut state, "job s");
    assert!(is_shown(&state, "A job"));
    let head = "job show ".to_owned();
    let words = ["job", "show"].map(str::to_owned).to_vec();
    let asked = Effect::Complete { head: head.clone(), words };
    assert_eq!(press(&mut state, KeyCode::Tab), [asked]);
    let words = [("0xab12", "custom Verified"), ("0xcd34", ""), ("--attempt", "Which one")];
    let words = words.map(completion).to_vec();
    let offered =
        |head: &str| Event::Offered(Offer { head: head.to_owned(), words: words.clone() });
    update(&mut state, at(0), offered("job ls "));
    assert!(!is_shown(&state, "custom Verified"), "it is about another line");
    update(&mut state, at(0), offered(&head));
    assert!(is_shown(&state, "custom Verified") && is_shown(&state, "Which one"));
    press(&mut state, KeyCode::Down);
    let effects = press(&mut state, KeyCode::Tab);
    assert!(is_shown(&state, ":job show 0xcd34 "));
    assert!(matches!(effects.as_slice(), [Effect::Complete { words, .. }] if words.len() == 3));
    type_in(&mut state, "--att");
    press(&mut state, KeyCode::Tab);
    assert!(is_shown(&state, ":job show 0xcd34 --att▏"), "nothing is offered there yet");
    // An offer that comes too late for the palette changes nothing.
    press(&mut state, KeyCode::Esc);
    assert_eq!(update(&mut state, at(0), offered(&head)), []);
    assert_eq!(state.mode, Mode::Panes);
}

#[test]
fn enter_takes_the_suggestion_and_then_runs_the_command() {
    let mut state = state(SMALL);
    let completion = |path: &str| Completion { path: path.to_owned(), about: String::new() };
    state.commands = ["chain block", "chain head", "st"].map(completion).to_vec();
    press(&mut state, KeyCode::Char(':'));
    type_in(&mut state, "chain h");
    assert!(is_shown(&state, "enter takes the suggestion"));
    let words = ["chain", "head"].map(str::to_owned).to_vec();
    let asked = Effect::Complete { head: "chain head ".to_owned(), words: words.clone() };
    assert_eq!(press(&mut state, KeyCode::Enter), [asked]);
    assert!(is_shown(&state, ":chain head ▏") && is_shown(&state, "enter runs it"));
    assert_eq!(press(&mut state, KeyCode::Enter), [Effect::Run { run: 1, args: words }]);
    // An alias is a command, too, and an empty line closes the palette.
    state.mode = Mode::Panes;
    press(&mut state, KeyCode::Char(':'));
    type_in(&mut state, "st");
    let args = vec!["st".to_owned()];
    assert_eq!(press(&mut state, KeyCode::Enter), [Effect::Run { run: 2, args }]);
    state.mode = Mode::Panes;
    press(&mut state, KeyCode::Char(':'));
    assert_eq!(press(&mut state, KeyCode::Enter), []);
    assert_eq!(state.mode, Mode::Panes);
}

#[test]
fn what_is_shown_has_its_command() {
    let mut state = state(SMALL);
    let effects = press(&mut state, KeyCode::Char('y'));
    assert_eq!(effects, [Effect::Copy("cowboyctl devnet status".to_owned())]);
    assert!(is_shown(&state, "cowboyctl devnet status"));
    press(&mut state, KeyCode::Enter);
    assert_eq!(
        press(&mut state, KeyCode::Enter),
        [Effect::Run { run: 1, args: vec!["devnet".to_owned(), "status".to_owned()] }]
    );
}

#[test]
fn a_devnet_that_is_away_keeps_its_last_picture() {
    let mut state = state(SMALL);
    update(&mut state, at(0), linked(3, 1));
    hear(&mut state, News::Block(block(3, 1)));
    hear(&mut state, News::Lost { reason: "it is gone".to_owned() });
    update(&mut state, at(9), Event::Tick);
    assert!(is_shown(&state, "reconnecting 9 s") && is_shown(&state, "it is gone"));
    assert_eq!(state.shared.blocks.len(), 1);
    update(&mut state, at(10), linked(4, 1));
    assert_eq!((state.shared.blocks.len(), &state.shared.link), (1, &Link::Up));
    // The same chain from its beginning, then another one.
    update(&mut state, at(10), linked(2, 1));
    assert!(state.shared.blocks.is_empty());
    hear(&mut state, News::Block(block(3, 1)));
    update(&mut state, at(10), linked(9, 2));
    assert!(state.shared.blocks.is_empty());
}

#[test]
fn it_says_how_much_room_it_needs() {
    for size in [Size::new(39, 10), Size::new(40, 9), Size::new(5, 1), Size::new(0, 0)] {
        let mut state = state(SMALL);
        update(&mut state, at(0), Event::Resize(size));
        assert!(picture(&state).iter().all(|line| !line.contains("overview")));
    }
    let mut state = state(SMALL);
    update(&mut state, at(0), Event::Resize(Size::new(60, 8)));
    assert_eq!(picture(&state)[..2], ["40×10 are needed,", "this is 60×8"]);
}

#[test]
fn what_was_dropped_is_counted() {
    let mut state = state(SMALL);
    update(&mut state, at(0), Event::Dropped(1_234));
    assert!(is_shown(&state, "1,234 dropped"));
}

#[test]
fn keys_end_it() {
    let mut state = state(SMALL);
    assert_eq!(press(&mut state, KeyCode::Char('q')), [Effect::Quit]);
    let control = |key| Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
    press(&mut state, KeyCode::Char(':'));
    assert_eq!(update(&mut state, at(0), control('c')), [Effect::Quit]);
    assert_eq!(update(&mut state, at(0), control('z')), [Effect::Suspend]);
}

/// A recorded devnet.
fn recorded(name: &str) -> Vec<(Timestamp, News)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name);
    let text = fs::read(path).unwrap();
    recording::parse(text.as_slice()).unwrap()
}

/// The state after a whole recording, at a terminal of this size.
fn replayed(size: Size, theme: Theme) -> State {
    replayed_from("devnet.jsonl", size, theme)
}

/// The same for another recording.
fn replayed_from(name: &str, size: Size, theme: Theme) -> State {
    let recorded = recorded(name);
    let mut state = State::new(String::new(), size, Look(theme), recorded[0].0);
    state.replay = true;
    for (at, news) in recorded {
        update(&mut state, at, Event::News(news));
    }
    state
}
