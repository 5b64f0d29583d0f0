//! The pane of faults: what its keys propose, and what happens after the answer.

use super::{Event, at, hear, is_shown, press, state, tab, update};
use crate::dashboard::{
    news::{Answer, Ask, News},
    output::{EndedCommand, Heard},
    state::{Effect, Mode, State},
};
use crossterm::event::KeyCode;
use ratatui::layout::Size;
use serde_json::{Value, json};

/// The devnet's status with these faults.
fn status(faults: &Value) -> News {
    let validator = |index: u32| {
        json!({
            "name": format!("validator-{index}"), "address": format!("0x{index:040x}"),
            "index": index, "height": 12, "status": if index == 3 { "stopped" } else { "running" },
            "reason": null,
        })
    };
    let runner = |index: u32| {
        json!({
            "name": format!("runner-{index}"), "address": format!("0x{:040x}", 100 + index),
            "status": if index == 1 { "stopped" } else { "connected" },
            "connected_validators": ["validator-0", "validator-1"],
        })
    };
    let status = json!({
        "name": "local", "running": true, "ready": true, "chain_id": null, "head": null,
        "kept_from": null, "validators": (0..4).map(validator).collect::<Vec<_>>(),
        "runners": (0..2).map(runner).collect::<Vec<_>>(), "faults": faults, "supply": null,
        "pid": 1, "started_at": null,
    });
    let status = serde_json::from_value(status).unwrap();
    News::Answer(Ask::Status, Box::new(Answer::Status(status)))
}

fn fault(id: u64, spec: Value) -> Value {
    let mut fault = json!({
        "id": id, "seed": 0, "since": 12, "until_height": null, "until": null, "dropped": 1_234,
        "delayed": 0, "lies": 0,
    });
    fault.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    fault
}

fn shown(faults: &Value) -> State {
    let mut state = state(Size::new(120, 40));
    tab(&mut state, "faults");
    hear(&mut state, status(faults));
    state
}

fn paused() -> Value {
    json!([fault(7, json!({"kind": "pause", "at": "validator-0"}))])
}

/// Presses a key and agrees; returns the words of the command.
fn agreed(state: &mut State, key: char) -> Vec<String> {
    assert_eq!(press(state, KeyCode::Char(key)), []);
    let effects = press(state, KeyCode::Char('y'));
    let [Effect::Run { args, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    state.mode = Mode::Panes;
    args.clone()
}

#[test]
fn a_change_is_made_only_after_a_yes() {
    let mut state = shown(&json!([]));
    assert!(is_shown(&state, "faults in force: 0"));
    press(&mut state, KeyCode::Char('x'));
    assert!(is_shown(&state, "kill validator-0 at once"));
    assert!(is_shown(&state, "cowboyctl fault kill validator-0"));
    for no in [KeyCode::Char('n'), KeyCode::Enter, KeyCode::Esc, KeyCode::Char('x')] {
        press(&mut state, KeyCode::Char('x'));
        assert_eq!(press(&mut state, no), []);
        assert_eq!(state.mode, Mode::Panes);
    }
    press(&mut state, KeyCode::Char('x'));
    let args = ["fault", "kill", "validator-0"].map(str::to_owned).to_vec();
    assert_eq!(press(&mut state, KeyCode::Char('y')), [Effect::Run { run: 1, args }]);
    update(&mut state, at(0), Event::Child(1, Heard::Line("no such node".to_owned())));
    update(&mut state, at(0), Event::Child(1, Heard::Ended(EndedCommand::Code(3))));
    assert!(is_shown(&state, "no such node") && is_shown(&state, "exit code 3"));
    // The pane stays in view.
    assert!(is_shown(&state, "nodes: 6"));
}

#[test]
fn keys_do_what_the_row_needs() {
    let mut state = shown(&json!([]));
    assert_eq!(agreed(&mut state, 'p'), ["fault", "pause", "validator-0"]);
    press(&mut state, KeyCode::Char('h'));
    assert!(is_shown(&state, "no fault is laid on validator-0 itself"));
    press(&mut state, KeyCode::Esc);
    // The cursor stays on its node when the fault appears above it.
    hear(&mut state, status(&paused()));
    assert!(is_shown(&state, "1,234"));
    assert_eq!(agreed(&mut state, 'p'), ["fault", "heal", "7"]);
    assert_eq!(agreed(&mut state, 'h'), ["fault", "heal", "validator-0"]);
    assert_eq!(agreed(&mut state, 'H'), ["fault", "heal", "all"]);
    press(&mut state, KeyCode::Up);
    assert_eq!(agreed(&mut state, 'h'), ["fault", "heal", "7"]);
    press(&mut state, KeyCode::Char('x'));
    assert!(is_shown(&state, "p and x are for a node"));
    press(&mut state, KeyCode::Esc);
    // When the fault is healed, the cursor is on the row in its place.
    hear(&mut state, status(&json!([])));
    assert_eq!(agreed(&mut state, 'p'), ["fault", "pause", "validator-0"]);
}

#[test]
fn what_is_down_is_started() {
    let mut state = shown(&json!([fault(9, json!({"kind": "kill", "at": "runner-0"}))]));
    press(&mut state, KeyCode::End);
    assert_eq!(agreed(&mut state, 'x'), ["runner", "start", "runner-1"]);
    press(&mut state, KeyCode::Up);
    assert_eq!(agreed(&mut state, 'x'), ["fault", "heal", "9"]);
    press(&mut state, KeyCode::Up);
    assert_eq!(agreed(&mut state, 'x'), ["validator", "start", "validator-3"]);
}

#[test]
fn a_recording_is_not_changed() {
    let mut state = shown(&paused());
    state.replay = true;
    press(&mut state, KeyCode::Char('p'));
    assert!(is_shown(&state, "a recording cannot be changed"));
    assert_eq!(press(&mut state, KeyCode::Char('y')), []);
    assert_eq!(state.mode, Mode::Panes);
}
