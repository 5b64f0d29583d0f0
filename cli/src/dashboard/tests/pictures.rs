//! Pictures of a recorded devnet: every pane at five sizes, and under every key.

use super::{accounts, picture, press, replayed, replayed_from, tab, update};
use crate::dashboard::{
    look::Theme,
    palette::{Completion, Offer},
    panes,
    state::Event,
};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Size;

/// The sizes of opened pages.
pub const SIZES: [Size; 3] = [Size::new(80, 24), Size::new(120, 40), Size::new(200, 60)];

/// The sizes of panes.
pub const ALL_SIZES: [Size; 5] = [
    Size::new(40, 10),
    Size::new(80, 24),
    Size::new(120, 40),
    Size::new(160, 50),
    Size::new(200, 60),
];

pub fn snapshot(name: &str, size: Size, lines: &[String]) {
    let Size { width, height } = size;
    insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), lines.join("\n"));
    });
}

#[test]
fn every_pane_at_five_sizes() {
    for size in ALL_SIZES {
        let mut state = replayed(size, Theme::Dark);
        let mut other = replayed_from(accounts::NAME, size, Theme::Dark);
        for name in panes::ALL.iter().map(|new| new().name()) {
            let state = match name {
                "blocks" | "presence" | "accounts" | "faults" => &mut other,
                _ => &mut state,
            };
            tab(state, name);
            snapshot(name, size, &picture(state));
        }
    }
}

#[test]
fn what_lies_over_the_panes() {
    let size = SIZES[0];
    let mut state = replayed(size, Theme::Dark);
    press(&mut state, KeyCode::Char('?'));
    snapshot("help", size, &picture(&state));
    let now = state.now;
    update(&mut state, now, Event::Resize(ALL_SIZES[0]));
    snapshot("help", ALL_SIZES[0], &picture(&state));
    update(&mut state, now, Event::Resize(size));
    press(&mut state, KeyCode::Esc);
    state.commands = ["chain head", "presence show", "presence votes"]
        .map(|path| Completion { path: path.to_owned(), about: format!("About {path}") })
        .to_vec();
    press(&mut state, KeyCode::Char(':'));
    for character in "pres".chars() {
        press(&mut state, KeyCode::Char(character));
    }
    snapshot("palette", size, &picture(&state));
    press(&mut state, KeyCode::Tab);
    let hash = format!("0x{}", "5ca1ab1e".repeat(8));
    let words = [
        ("12", "the newest certified block"),
        (hash.as_str(), "a block by its hash"),
        ("--output", "How data is printed: table, json, jsonl or yaml"),
    ];
    let words =
        words.map(|(path, about)| Completion { path: path.to_owned(), about: about.to_owned() });
    let offer = Offer { head: "presence show ".to_owned(), words: words.to_vec() };
    let now = state.now;
    update(&mut state, now, Event::Offered(offer));
    snapshot("palette-words", size, &picture(&state));
}

#[test]
fn a_theme_changes_styles_and_no_text() {
    for new in panes::ALL {
        let name = new().name();
        let pictures = [Theme::Dark, Theme::Light, Theme::None].map(|theme| {
            let mut state = replayed(SIZES[0], theme);
            tab(&mut state, name);
            picture(&state)
        });
        assert_eq!(pictures[0], pictures[1]);
        assert_eq!(pictures[0], pictures[2]);
    }
}

/// Presses keys in a pseudo-random order that is always the same.
#[test]
fn no_key_at_no_size_breaks_anything() {
    let codes: Vec<KeyCode> = " /:?yjkhlgGan<>1234567890-=qsScxp\u{e9}"
        .chars()
        .map(KeyCode::Char)
        .chain([KeyCode::Enter, KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab])
        .chain([KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::PageUp])
        .chain([KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::Backspace])
        .collect();
    let sizes =
        [(40, 10), (80, 24), (81, 25), (120, 40), (160, 24), (80, 60), (10, 3), (1, 1), (0, 0)];
    let mut state = replayed(SIZES[0], Theme::Dark);
    let mut seed = 7_u64;
    for step in 0..1_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = (seed >> 33) as usize;
        let now = state.now;
        if step % 10 == 0 {
            let (width, height) = sizes[pick % sizes.len()];
            update(&mut state, now, Event::Resize(Size::new(width, height)));
        }
        update(&mut state, now, Event::Key(KeyEvent::from(codes[pick % codes.len()])));
        let drawn = picture(&state);
        let Size { width, height } = state.size;
        assert_eq!(drawn.len(), if width == 0 { 0 } else { height.into() });
    }
}
