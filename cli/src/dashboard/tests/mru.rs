//! Most recently used runners: the live ones, and one of them in full.

use super::{SMALL, block, hear, is_shown, linked, picture, press, state, tab, type_in, update};
use crate::dashboard::{
    news::{Answer, Ask, News},
    state::State,
};
use cowboy_devnet::types::{JobSummary, MruRecord};
use crossterm::event::KeyCode;
use serde_json::{Value, json};

fn record(submitter: u64, kind: &str, runner: u64, (set_at, live): (u64, bool)) -> Value {
    json!({
        "submitter": format!("0x{submitter:040x}"), "submitter_name": null, "kind": kind,
        "runner": format!("runner-{runner}"), "runner_address": format!("0x{runner:040x}"),
        "set_at": set_at, "expires_at": set_at + 50, "live": live,
    })
}

fn records(records: &[Value]) -> News {
    let records: Vec<MruRecord> = serde_json::from_value(json!(records)).unwrap();
    News::Answer(Ask::Mru, Box::new(Answer::Mru(records)))
}

fn shown() -> State {
    let mut state = state(SMALL);
    let now = state.now;
    update(&mut state, now, linked(100, 1));
    hear(&mut state, News::Block(block(100, 0)));
    tab(&mut state, "mru");
    state
}

#[test]
fn those_that_count_come_first() {
    let mut state = shown();
    assert!(is_shown(&state, "asking"));
    hear(&mut state, records(&[]));
    assert!(is_shown(&state, "no record yet"));
    hear(
        &mut state,
        records(&[
            record(1, "http", 0, (40, false)),
            record(1, "llm", 1, (70, true)),
            record(2, "mcp", 2, (90, true)),
        ]),
    );
    let lines = picture(&state);
    let find = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap();
    assert!(find("2 live, 1 expired") < find("runner-2"));
    assert!(find("runner-2") < find("runner-1") && find("runner-1") < find("runner-0"));
    // 90 + 50 − 100.
    assert!(lines[find("runner-2")].contains("  40  "));
    press(&mut state, KeyCode::Char('a'));
    assert!(!is_shown(&state, "runner-0"));
    press(&mut state, KeyCode::Char('/'));
    type_in(&mut state, "LLM");
    assert!(is_shown(&state, "runner-1") && !is_shown(&state, "runner-2"));
}

#[test]
fn a_record_has_its_runner_and_its_jobs() {
    let mut state = shown();
    hear(&mut state, records(&[record(1, "llm", 1, (70, true)), record(2, "mcp", 2, (90, true))]));
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Enter);
    assert!(state.wants(false).contains(&Ask::Runner("runner-1".to_owned())));
    assert!(is_shown(&state, "none of the newest 200"));
    let job = |kind: &str, id: u64, by: u64| {
        json!({
            "job_id": format!("0x{id:064x}"), "kind": kind, "submitter": format!("0x{by:040x}"),
            "submitter_name": null, "status": "Verified", "committee": [format!("runner-{id}")],
            "submitted_at": 60, "final_at": 70,
        })
    };
    let jobs = json!([job("llm", 7, 1), job("llm", 8, 2), job("mcp", 9, 1)]);
    let jobs: Vec<JobSummary> = serde_json::from_value(jobs).unwrap();
    hear(&mut state, News::Answer(Ask::Jobs, Box::new(Answer::Jobs(jobs))));
    assert!(is_shown(&state, "runner-7"));
    assert!(!is_shown(&state, "runner-8") && !is_shown(&state, "runner-9"));
    let refused = News::Refused(Ask::Runner("runner-1".to_owned()), "it is unknown".to_owned());
    hear(&mut state, refused);
    assert!(is_shown(&state, "it is unknown"));
    let (pane, cx) = state.shown();
    let submitter = format!("0x{:040x}", 1);
    assert_eq!(pane.equivalent(&cx).unwrap(), format!("cowboyctl mru show {submitter} llm"));
    // A record of another runner may replace it.
    hear(&mut state, records(&[record(1, "llm", 3, (99, true))]));
    assert!(is_shown(&state, "runner-3 now"));
    hear(&mut state, records(&[]));
    assert!(is_shown(&state, "this record is gone"));
    press(&mut state, KeyCode::Esc);
    assert!(is_shown(&state, "no record yet"));
}
