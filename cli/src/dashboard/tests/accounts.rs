//! Blocks, accounts, actors and presence of a devnet with actors and faults, recorded:
//! `recordings/accounts.jsonl`.

use super::{
    Event, congested::fill, is_shown, picture, pictures::SIZES, pictures::snapshot, press,
    recorded, replayed_from, tab, type_in, update,
};
use crate::dashboard::{look::Theme, news::Ask, state::Mode, state::State};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Size;

pub const NAME: &str = "accounts.jsonl";

const MEDIUM: Size = Size::new(120, 40);

/// The pane of a name after the whole recording.
fn shown(size: Size, pane: &str) -> State {
    let mut state = replayed_from(NAME, size, Theme::Dark);
    tab(&mut state, pane);
    state
}

/// Filters the pane by a word, opens the row under the cursor, and answers its questions.
fn open(state: &mut State, word: &str) {
    press(state, KeyCode::Char('/'));
    type_in(state, word);
    press(state, KeyCode::Enter);
    press(state, KeyCode::Enter);
    fill(state, &recorded(NAME));
    fill(state, &recorded(NAME));
}

/// The cells of a column of the first list, by the column's name.
fn column(state: &State, name: &str) -> Vec<String> {
    let picture = picture(state);
    let header = picture.iter().position(|line| line.contains(name)).unwrap();
    let end = picture[header].find(name).unwrap() + name.len();
    let end = picture[header][..end].chars().count();
    let rows = picture[header + 1..].iter().take_while(|line| !line.is_empty());
    let rows = rows.take_while(|line| !line.starts_with('─'));
    let cell = |line: &String| -> String {
        let part: String = line.chars().take(end).collect();
        part.rsplit(' ').next().unwrap_or_default().to_owned()
    };
    rows.map(cell).collect()
}

#[test]
fn what_is_opened_at_three_sizes() {
    for size in SIZES {
        let mut state = shown(size, "blocks");
        open(&mut state, "0x23687e8b1d9a");
        snapshot("accounts-block", size, &picture(&state));
        press(&mut state, KeyCode::End);
        press(&mut state, KeyCode::Enter);
        snapshot("accounts-transaction", size, &picture(&state));
        let mut state = shown(size, "accounts");
        open(&mut state, "counter");
        snapshot("accounts-actor", size, &picture(&state));
        let mut state = shown(size, "accounts");
        open(&mut state, "dev-0");
        snapshot("accounts-account", size, &picture(&state));
        let mut state = shown(size, "presence");
        press(&mut state, KeyCode::Enter);
        snapshot("accounts-votes", size, &picture(&state));
        let state = shown(size, "overview");
        snapshot("accounts-overview", size, &picture(&state));
    }
}

#[test]
fn a_block_leads_to_its_transactions_and_their_receipts() {
    let mut state = shown(MEDIUM, "blocks");
    open(&mut state, "0x23687e8b1d9a");
    assert!(is_shown(&state, "transactions of block 40: 3"));
    let command = |state: &mut State| {
        let (pane, cx) = state.shown();
        pane.equivalent(&cx).unwrap()
    };
    assert!(command(&mut state).starts_with("cowboyctl chain tx 0x23d57df3"));
    press(&mut state, KeyCode::End);
    press(&mut state, KeyCode::Enter);
    assert!(is_shown(&state, "only the owner resets") && is_shown(&state, "handler: reset"));
    press(&mut state, KeyCode::Esc);
    // Another block is asked for.
    press(&mut state, KeyCode::Left);
    assert!(state.wants(false).contains(&Ask::Block(39)));
    assert_eq!(command(&mut state), "cowboyctl chain block 39");
    press(&mut state, KeyCode::Right);
    press(&mut state, KeyCode::Right);
    assert!(state.wants(false).contains(&Ask::Block(41)));
    press(&mut state, KeyCode::Esc);
    assert!(is_shown(&state, "of the newest"));
}

#[test]
fn an_actor_is_asked_again_after_a_call() {
    let mut state = shown(SIZES[0], "accounts");
    let asks = |state: &State| {
        let wants = state.wants(false).into_iter();
        wants.filter(|ask| matches!(ask, Ask::Actor(_))).collect::<Vec<_>>()
    };
    fill(&mut state, &recorded(NAME));
    assert_eq!(asks(&state), []);
    let height = state.shared.height + 1;
    let called = serde_json::json!({
        "height": height, "index": 0, "kind": "ActorCalled",
        "data": {"actor": "0xd293685d0b6740e4f7194288086585b45b22761a"},
    });
    let mut block = super::block(height, 0);
    block.events.push(serde_json::from_value(called).unwrap());
    let now = state.now;
    update(&mut state, now, Event::News(super::News::Block(block)));
    assert_eq!(asks(&state).len(), 1);
    press(&mut state, KeyCode::Char('a'));
    assert!(is_shown(&state, "─ 2 actors"));
    press(&mut state, KeyCode::Char('a'));
    assert!(is_shown(&state, "─ 22 accounts") && !is_shown(&state, "starlark"));
}

#[test]
fn lists_are_sorted_and_columns_chosen() {
    let mut state = shown(MEDIUM, "blocks");
    let numbers = |state: &State, name: &str| -> Vec<u64> {
        column(state, name).iter().map(|cell| cell.parse().unwrap()).collect()
    };
    assert!(numbers(&state, "BLOCK").is_sorted_by(|a, b| a > b));
    for _ in 0..4 {
        press(&mut state, KeyCode::Char('s'));
    }
    assert!(is_shown(&state, "TXS▼"));
    let txs = numbers(&state, "TXS▼");
    assert!(txs.is_sorted_by(|a, b| a >= b) && txs[0] == 3, "{txs:?}");
    press(&mut state, KeyCode::Char('S'));
    assert!(is_shown(&state, "TXS▲"));
    assert!(numbers(&state, "TXS▲").is_sorted());
    // The list of another pane is not changed.
    tab(&mut state, "accounts");
    assert!(!is_shown(&state, "▲"));
    tab(&mut state, "blocks");
    press(&mut state, KeyCode::Char('c'));
    assert!(is_shown(&state, "columns of blocks"));
    for _ in 0..3 {
        press(&mut state, KeyCode::Down);
    }
    press(&mut state, KeyCode::Char(' '));
    assert!(is_shown(&state, "· txs"));
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.mode, Mode::Panes);
    // Without its column the list has its own order again.
    assert!(!is_shown(&state, "TXS"));
    assert!(numbers(&state, "BLOCK").is_sorted_by(|a, b| a > b));
}

#[test]
fn names_with_numbers_are_sorted_by_the_numbers() {
    let mut state = shown(MEDIUM, "accounts");
    press(&mut state, KeyCode::Char('a'));
    press(&mut state, KeyCode::Char('a'));
    press(&mut state, KeyCode::Char('s'));
    let names = column(&state, "NAME▲");
    let first: Vec<_> = names.iter().map(String::as_str).take(3).collect();
    assert_eq!(first, ["agent", "dev-0", "dev-1"]);
    // A key that sorts does so only in lists.
    let now = state.now;
    tab(&mut state, "events");
    update(&mut state, now, Event::Key(KeyEvent::from(KeyCode::Char('c'))));
    assert_eq!(state.mode, Mode::Panes);
}

/// Every column of every list sorts, and none of them loses a row.
#[test]
fn every_column_sorts() {
    for recording in [NAME, "devnet.jsonl", "congested.jsonl", "work.jsonl"] {
        let mut state = replayed_from(recording, Size::new(210, 26), Theme::Dark);
        for index in 0..state.panes.len() {
            state.shown = index;
            let columns = state.panes[index].pane.columns();
            let mut before = picture(&state);
            before.sort_unstable();
            for column in columns {
                press(&mut state, KeyCode::Char('s'));
                let sign = if column.right { "▼" } else { "▲" };
                let name = format!("{}{sign}", column.name.to_uppercase());
                let rows = picture(&state);
                if rows.iter().any(|line| line.contains(&column.name.to_uppercase())) {
                    assert!(rows.iter().any(|line| line.contains(&name)), "{name} in {rows:#?}");
                }
                press(&mut state, KeyCode::Char('S'));
            }
            if !columns.is_empty() {
                press(&mut state, KeyCode::Char('s'));
            }
            let mut after = picture(&state);
            after.sort_unstable();
            assert_eq!(before, after, "the last column is followed by the list's own order");
        }
    }
}
