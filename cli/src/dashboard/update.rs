//! Applies an event to the state, and returns the effects.

use super::{
    news::{Answer, Ask, News},
    output::Output,
    palette::{Palette, QUIT, words},
    pane::Proposal,
    panes::TAB_KEYS,
    rows::Cursor,
    shared::Link,
    state::{Effect, Event, Frozen, HELD, Mode, Slot, State},
    view,
};
use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use jiff::Timestamp;
use ratatui::layout::Position;

const WHEEL: usize = 3;

/// Maximum number of answered questions to remember; then those that are no longer wanted are
/// forgotten.
const ANSWERED: usize = 1_024;

pub fn update(state: &mut State, now: Timestamp, event: Event) -> Vec<Effect> {
    state.now = now;
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => {}
        Event::Key(key) => return pressed(state, key),
        Event::Mouse(mouse) => moused(state, mouse),
        Event::Resize(size) => state.size = size,
        Event::Tick => {}
        Event::News(news) => heard(state, news),
        Event::Child(run, heard) => {
            if let Mode::Output(output) = &mut state.mode
                && output.run == run
            {
                output.hear(heard);
            }
        }
        Event::Offered(offer) => {
            if let Mode::Palette(palette, _) = &mut state.mode {
                palette.offered(offer);
            }
        }
        Event::Dropped(count) => state.dropped = count,
        Event::RecordingFull => state.recording_full = true,
    }
    Vec::new()
}

/// Applies news about the devnet; a frozen picture holds it back, except for answers to its own
/// questions.
fn heard(state: &mut State, news: News) {
    let Some(frozen) = &mut state.frozen else { return apply(state, news) };
    match &news {
        News::Answer(ask, _) | News::Refused(ask, _) => {
            if frozen.settled.insert(ask.clone()) {
                apply(state, news);
            }
            return;
        }
        News::Block(block) => frozen.behind += block.events.len() as u64,
        // The link's state is not part of the picture.
        News::Linked { .. } => state.shared.link = Link::Up,
        News::Lost { reason } => state.shared.link = lost(&state.shared.link, state.now, reason),
    }
    if frozen.held.len() == HELD {
        frozen.held.pop_front();
        state.overheld += 1;
    }
    frozen.held.push_back(news);
}

/// The link to a devnet that does not answer, with the time of the first failure.
fn lost(before: &Link, now: Timestamp, reason: &str) -> Link {
    let since = match before {
        Link::Lost { since, .. } => *since,
        Link::Connecting | Link::Up => now,
    };
    Link::Lost { since, reason: reason.to_owned() }
}

fn apply(state: &mut State, news: News) {
    match news {
        News::Linked { devnet, genesis, height } => {
            let same = state.shared.genesis.is_none_or(|known| known == genesis);
            // A chain that was reset starts again, from the same genesis.
            if !same || height < state.shared.height {
                state.forget();
            }
            state.shared.devnet = devnet;
            state.shared.genesis = Some(genesis);
            state.shared.link = Link::Up;
        }
        News::Lost { reason } => state.shared.link = lost(&state.shared.link, state.now, &reason),
        News::Block(block) => {
            if state.shared.block(&block, state.now) {
                state.each(|pane, cx| pane.block(&block, cx));
            }
        }
        News::Answer(ask, answer) => {
            match answer.as_ref() {
                Answer::Status(status) => state.shared.status = Some(status.clone()),
                Answer::Parameters(parameters) => {
                    state.shared.parameters = Some(parameters.clone());
                }
                Answer::Block(block) => state.shared.measure(block.height, Some(block)),
                _ => {}
            }
            state.each(|pane, cx| pane.answer(&ask, &answer, cx));
            if state.answered.len() == ANSWERED {
                let wants = state.wants(true);
                state.answered.retain(|ask| wants.contains(ask));
            }
            state.answered.insert(ask);
        }
        News::Refused(ask, reason) => {
            if let Ask::Block(height) = ask {
                state.shared.measure(height, None);
            }
            state.each(|pane, _| pane.refused(&ask, &reason));
        }
    }
}

/// Freezes the picture, or applies the held news and continues.
fn freeze(state: &mut State) {
    match state.frozen.take() {
        Some(frozen) => frozen.held.into_iter().for_each(|news| apply(state, news)),
        None => {
            let mut settled = state.answered.clone();
            let wants = state.wants(false);
            settled.retain(|ask| wants.contains(ask));
            state.frozen = Some(Frozen { settled, ..Frozen::default() });
        }
    }
}

fn pressed(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return vec![Effect::Quit],
            KeyCode::Char('z') => return vec![Effect::Suspend],
            _ => {}
        }
    }
    match &mut state.mode {
        Mode::Panes => return in_panes(state, key),
        Mode::Filtering => filtering(state, key),
        Mode::Palette(..) => return in_palette(state, key),
        Mode::Output(output) => {
            let fit = view::overlay::lines(state.size);
            match key.code {
                KeyCode::Esc | KeyCode::Char('q') if output.ended.is_some() => {
                    state.mode = Mode::Panes;
                }
                KeyCode::Esc => return vec![Effect::Kill],
                KeyCode::Char(':') if output.ended.is_some() => {
                    state.mode = Mode::Palette(Palette::default(), None);
                }
                _ => {
                    output.key(key, fit);
                }
            }
        }
        Mode::Columns(_) => choosing(state, key),
        Mode::Question(Proposal::Run { words, .. }) if key.code == KeyCode::Char('y') => {
            let (args, line) = (words.clone(), words.join(" "));
            return vec![start(state, args, &line)];
        }
        Mode::Question(_) => state.mode = Mode::Panes,
        Mode::Help(scrolled) => match key.code {
            KeyCode::Down | KeyCode::Char('j') => *scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => *scrolled = scrolled.saturating_sub(1),
            _ => state.mode = Mode::Panes,
        },
        Mode::Equivalent(command) => match key.code {
            // The shown command can also be run.
            KeyCode::Char(':') | KeyCode::Enter => {
                let line = command.trim_start_matches("cowboyctl ");
                state.mode = Mode::Palette(Palette::of(line), None);
            }
            _ => state.mode = Mode::Panes,
        },
    }
    Vec::new()
}

fn in_panes(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let tabs = state.panes.len();
    match key.code {
        KeyCode::Char('q') => return vec![Effect::Quit],
        KeyCode::Tab => state.shown = (state.shown + 1) % tabs,
        KeyCode::BackTab => state.shown = (state.shown + tabs - 1) % tabs,
        KeyCode::Char(key) if TAB_KEYS[..tabs].contains(&key) => {
            let tab = TAB_KEYS.iter().position(|known| *known == key);
            state.shown = tab.expect("it is one of them");
        }
        KeyCode::Char('/') => state.mode = Mode::Filtering,
        KeyCode::Char(':') => state.mode = Mode::Palette(Palette::default(), None),
        KeyCode::Char(' ') => freeze(state),
        KeyCode::Char('?') | KeyCode::F(1) => state.mode = Mode::Help(0),
        KeyCode::Enter => {
            let (pane, cx) = state.shown();
            pane.enter(&cx);
        }
        KeyCode::Esc => {
            let (pane, _) = state.shown();
            // First close the opened row, then clear the filter.
            if !pane.back() {
                state.panes[state.shown].filter.set("");
            }
        }
        KeyCode::Char('y') => {
            let (pane, cx) = state.shown();
            if let Some(command) = pane.equivalent(&cx) {
                state.mode = Mode::Equivalent(command.clone());
                return vec![Effect::Copy(command)];
            }
        }
        code if arranged(state, code) => {}
        _ => {
            let replay = state.replay;
            let (pane, cx) = state.shown();
            match pane.propose(key, &cx) {
                Some(_) if replay => {
                    let reason = "a recording cannot be changed".to_owned();
                    state.mode = Mode::Question(Proposal::Nothing(reason));
                }
                Some(proposal) => state.mode = Mode::Question(proposal),
                None => {
                    pane.key(key, &cx);
                }
            }
        }
    }
    Vec::new()
}

/// Handles a key while the columns of the pane's list are chosen.
fn choosing(state: &mut State, key: KeyEvent) {
    let Mode::Columns(cursor) = &mut state.mode else { return };
    let slot = &mut state.panes[state.shown];
    let columns = slot.pane.columns().len();
    match key.code {
        KeyCode::Char(' ') | KeyCode::Enter => slot.arrangement.toggle(cursor.of(columns)),
        _ if cursor.key(key, columns, columns) => {}
        _ => state.mode = Mode::Panes,
    }
}

/// Handles a key that sorts the pane's list or chooses its columns. Returns whether it was one.
fn arranged(state: &mut State, code: KeyCode) -> bool {
    let Slot { pane, arrangement, .. } = &mut state.panes[state.shown];
    let columns = pane.columns();
    match code {
        _ if columns.is_empty() => return false,
        KeyCode::Char('s') => arrangement.next(columns),
        KeyCode::Char('S') => arrangement.reverse(),
        KeyCode::Char('c') => state.mode = Mode::Columns(Cursor::default()),
        _ => return false,
    }
    true
}

fn filtering(state: &mut State, key: KeyEvent) {
    let filter = &mut state.panes[state.shown].filter;
    match key.code {
        KeyCode::Esc => {
            filter.set("");
            state.mode = Mode::Panes;
        }
        KeyCode::Enter => state.mode = Mode::Panes,
        KeyCode::Backspace if filter.text().is_empty() => state.mode = Mode::Panes,
        KeyCode::Backspace => filter.pop(),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => filter.set(""),
        KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
            filter.push(character);
        }
        // The list can be moved while the filter is typed.
        KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => {
            let (pane, cx) = state.shown();
            pane.key(key, &cx);
        }
        _ => {}
    }
}

fn in_palette(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let Mode::Palette(palette, complaint) = &mut state.mode else { return Vec::new() };
    *complaint = None;
    match key.code {
        KeyCode::Esc => state.mode = Mode::Panes,
        KeyCode::Enter if !palette.takes(&state.commands) => return run(state),
        KeyCode::Enter | KeyCode::Tab => palette.complete(&state.commands),
        KeyCode::Down => palette.pick(&state.commands, false),
        KeyCode::Up | KeyCode::BackTab => palette.pick(&state.commands, true),
        // Nothing left to delete: close the palette.
        KeyCode::Backspace if palette.line.is_empty() => state.mode = Mode::Panes,
        KeyCode::Backspace => palette.pop(),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            *palette = Palette::default();
        }
        KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
            palette.push(character);
        }
        _ => {}
    }
    let Mode::Palette(palette, _) = &mut state.mode else { return Vec::new() };
    let unknown = palette.unknown(&state.commands);
    unknown.map(|(head, words)| Effect::Complete { head, words }).into_iter().collect()
}

fn run(state: &mut State) -> Vec<Effect> {
    let Mode::Palette(palette, complaint) = &mut state.mode else { return Vec::new() };
    let mut args = match words(&palette.line) {
        Ok(args) => args,
        Err(reason) => {
            *complaint = Some(reason);
            return Vec::new();
        }
    };
    if args.first().is_some_and(|first| first == "cowboyctl") {
        args.remove(0);
    }
    match args.first().map(String::as_str) {
        None => state.mode = Mode::Panes,
        Some(word) if QUIT.contains(&word) => return vec![Effect::Quit],
        Some("dashboard") => {
            *complaint = Some("this is already the dashboard".to_owned());
        }
        #[cfg(debug_assertions)]
        Some("panic") => panic!("asked for with :panic"),
        Some(_) => {
            let line = palette.line.trim().to_owned();
            return vec![start(state, args, &line)];
        }
    }
    Vec::new()
}

/// Runs a command and shows its output.
fn start(state: &mut State, args: Vec<String>, line: &str) -> Effect {
    state.runs += 1;
    state.mode = Mode::Output(Output::new(state.runs, format!("cowboyctl {line}")));
    Effect::Run { run: state.runs, args }
}

fn moused(state: &mut State, mouse: MouseEvent) {
    let at = Position::new(mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => {
            if !matches!(state.mode, Mode::Panes | Mode::Filtering) {
                return;
            }
            if let Some(tab) = view::tab_at(state, at) {
                state.shown = tab;
                state.mode = Mode::Panes;
                return;
            }
            let (pane, cx) = state.shown();
            if cx.area.contains(at) {
                pane.click(at, &cx);
            }
        }
        MouseEventKind::ScrollUp => wheel(state, KeyCode::Up),
        MouseEventKind::ScrollDown => wheel(state, KeyCode::Down),
        _ => {}
    }
}

/// A turn of the wheel equals several presses of a key.
fn wheel(state: &mut State, code: KeyCode) {
    if matches!(state.mode, Mode::Palette(..) | Mode::Equivalent(_) | Mode::Question(_)) {
        return;
    }
    for _ in 0..WHEEL {
        pressed(state, KeyEvent::from(code));
    }
}
