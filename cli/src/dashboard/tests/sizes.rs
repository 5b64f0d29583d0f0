//! Every pane of every recording at every size, with and without an opened row.

use super::{picture, press, replayed_from, tab};
use crate::dashboard::{look::Theme, panes, state::Event, update::update};
use crossterm::event::KeyCode;
use ratatui::layout::Size;

#[test]
fn every_pane_is_drawn_at_every_size() {
    let sizes = || {
        let widths = [1, 20, 40, 75, 120, 160, 210];
        let heights = [1, 3, 9, 10, 18, 38, 65];
        widths.into_iter().flat_map(move |width| heights.map(|height| Size::new(width, height)))
    };
    for name in ["devnet.jsonl", "congested.jsonl", "work.jsonl", "accounts.jsonl"] {
        let mut state = replayed_from(name, Size::new(80, 24), Theme::Dark);
        let now = state.now;
        for pane in panes::ALL.iter().map(|new| new().name()) {
            tab(&mut state, pane);
            for opened in 0..3 {
                for size in sizes() {
                    update(&mut state, now, Event::Resize(size));
                    assert_eq!(picture(&state).len(), usize::from(size.height), "{pane} {size}");
                    // Keys find the same areas as the picture.
                    press(&mut state, KeyCode::PageDown);
                }
                if opened < 2 {
                    press(&mut state, KeyCode::Home);
                    press(&mut state, KeyCode::Enter);
                }
            }
        }
    }
}
