//! The panes of work: jobs, speculation and leases of a recorded devnet, where a runner is paused,
//! a pipeline and a leased job are running, and others have succeeded or failed.

use super::{SMALL, State, hear, is_shown, picture, press, tab, type_in};
use crate::dashboard::{
    look::{Look, Theme},
    news::{Answer, Ask, News},
    recording,
    state::Event,
    update::update,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::layout::Size;
use std::{fs, path::Path};

const SIZES: [Size; 3] = [SMALL, Size::new(120, 40), Size::new(200, 60)];

fn snapshot(name: &str, size: Size, lines: &[String]) {
    let Size { width, height } = size;
    insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), lines.join("\n"));
    });
}

fn recorded() -> Vec<(Timestamp, News)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/work.jsonl");
    recording::parse(fs::read(path).unwrap().as_slice()).unwrap()
}

/// A pane after a recording played like by a feed: later questions are answered from it.
struct Played {
    state: State,
    news: Vec<(Timestamp, News)>,
}

impl Played {
    fn new(size: Size, pane: &str) -> Self {
        let news = recorded();
        let mut state = State::new(String::new(), size, Look(Theme::Dark), news[0].0);
        state.replay = true;
        tab(&mut state, pane);
        for (at, news) in &news {
            update(&mut state, *at, Event::News(news.clone()));
        }
        Self { state, news }
    }

    /// Presses a key, and answers the questions that are then asked.
    fn press(&mut self, code: KeyCode) {
        press(&mut self.state, code);
        for ask in self.state.wants(false) {
            let is = |news: &&News| matches!(news, News::Answer(of, _) if *of == ask);
            let found = self.news.iter().map(|(_, news)| news).find(is);
            if let Some(news) = found.cloned() {
                hear(&mut self.state, news);
            }
        }
    }

    fn shows(&self, text: &str) -> bool {
        is_shown(&self.state, text)
    }

    fn command(&mut self) -> String {
        let (pane, cx) = self.state.shown();
        pane.equivalent(&cx).unwrap()
    }

    fn wants(&self) -> Vec<Ask> {
        self.state.wants(false)
    }

    fn filter(&mut self, text: &str) {
        press(&mut self.state, KeyCode::Char('/'));
        type_in(&mut self.state, text);
        press(&mut self.state, KeyCode::Enter);
    }

    /// Clicks on the first line with this text.
    fn click(&mut self, text: &str) {
        let row = picture(&self.state).iter().position(|line| line.contains(text)).unwrap();
        let click = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: 3,
            row: row as u16,
            modifiers: KeyModifiers::NONE,
        };
        let now = self.state.now;
        update(&mut self.state, now, Event::Mouse(click));
    }
}

/// The pictures: a name, the pane, and the keys that lead there.
fn looks() -> Vec<(&'static str, &'static str, Vec<KeyCode>)> {
    let (down, enter, end) = (KeyCode::Down, KeyCode::Enter, KeyCode::End);
    vec![
        ("work-jobs", "jobs", vec![down]),
        ("work-jobs-drawn", "jobs", vec![end, KeyCode::Up, enter]),
        ("work-jobs-failed", "jobs", vec![down, down, down, down, down, down, enter]),
        ("work-speculation", "speculation", vec![]),
        ("work-speculation-graph", "speculation", vec![enter, end]),
        ("work-speculation-task", "speculation", vec![enter, end, enter]),
        ("work-speculation-rollbacks", "speculation", vec![KeyCode::Char('r')]),
        ("work-leases", "leases", vec![down]),
        ("work-leases-job", "leases", vec![down, enter]),
    ]
}

#[test]
fn panes_of_work_at_three_sizes() {
    for size in SIZES {
        for (name, pane, keys) in looks() {
            let mut played = Played::new(size, pane);
            for key in keys {
                played.press(key);
            }
            snapshot(name, size, &picture(&played.state));
        }
    }
}

#[test]
fn an_empty_devnet_says_what_to_do() {
    let check = |pane: &str, news: &[News], text: &str| {
        let mut state = super::state(SMALL);
        tab(&mut state, pane);
        for news in news {
            hear(&mut state, news.clone());
        }
        assert!(is_shown(&state, text), "{pane}: {:#?}", picture(&state));
    };
    let refused = |ask, why: &str| News::Refused(ask, why.to_owned());
    let jobs = News::Answer(Ask::Jobs, Box::new(Answer::Jobs(Vec::new())));
    check("jobs", &[], "asking for the jobs");
    check("jobs", &[jobs], "no jobs yet: cowboyctl job submit");
    check("jobs", &[refused(Ask::Jobs, "it is too early")], "it is too early");
    let pipelines = News::Answer(Ask::Pipelines, Box::new(Answer::Pipelines(Vec::new())));
    check("speculation", &[pipelines], "no pipelines yet: cowboyctl speculation submit FILE");
    check("speculation", &[refused(Ask::Speculation, "no agent")], "no agent");
    let none = "devnet `local` has no lease server";
    check("leases", &[], "asking the lease server");
    check("leases", &[refused(Ask::Leases, none)], none);
}

#[test]
fn a_job_is_asked_for_until_it_has_ended() {
    let mut played = Played::new(SMALL, "jobs");
    let open = |wants: &[Ask]| wants.iter().filter(|ask| matches!(ask, Ask::Job(_))).count();
    // The open one is watched for its progress.
    assert_eq!(open(&played.wants()), 1);
    played.press(KeyCode::Char('o'));
    assert!(played.shows("jobs: 1 of 10"));
    let first = played.command();
    played.press(KeyCode::Enter);
    assert!(played.shows("how its runners were drawn"));
    assert!(played.wants().iter().any(|ask| matches!(ask, Ask::Explanation(_))));
    assert_eq!(played.command(), first.replace("job show", "job explain"));
    played.press(KeyCode::Esc);
    played.press(KeyCode::Char('o'));
    played.press(KeyCode::End);
    played.press(KeyCode::Enter);
    assert!(played.shows("Verified"));
    assert_eq!(played.wants().iter().filter(|ask| !matches!(ask, Ask::Jobs)).count(), 2);
}

#[test]
fn the_cursor_stays_on_its_job() {
    let mut played = Played::new(SMALL, "jobs");
    let Some(News::Answer(_, answer)) = played
        .news
        .iter()
        .map(|(_, news)| news)
        .find(|news| matches!(news, News::Answer(Ask::Jobs, _)))
    else {
        panic!("the recording has jobs")
    };
    let Answer::Jobs(mut jobs) = answer.as_ref().clone() else { panic!("they are jobs") };
    let mut newer = jobs[0].clone();
    newer.job_id = format!("0x{}", "ab".repeat(32)).parse().unwrap();
    jobs.insert(0, newer);
    played.press(KeyCode::Down);
    let before = played.command();
    let news = News::Answer(Ask::Jobs, Box::new(Answer::Jobs(jobs)));
    hear(&mut played.state, news.clone());
    assert_eq!(played.command(), before);
    // At the top it follows the newest.
    played.press(KeyCode::Home);
    hear(&mut played.state, news);
    assert!(played.command().contains("0xabab"));
}

#[test]
fn a_job_is_found_by_any_of_its_words() {
    let mut played = Played::new(SMALL, "jobs");
    played.filter("cancelled dev-0");
    assert!(played.shows("jobs: 1 of "));
    played.press(KeyCode::Esc);
    played.filter("nothing like it");
    assert!(played.shows("no job like that"));
    played.press(KeyCode::Enter);
    assert!(played.command() == "cowboyctl job ls");
}

#[test]
fn a_pipeline_leads_to_its_tasks_and_back() {
    let mut played = Played::new(SMALL, "speculation");
    assert_eq!(played.command(), "cowboyctl speculation graph 5");
    played.press(KeyCode::Enter);
    assert!(played.wants().contains(&Ask::Pipeline(5)), "it runs");
    played.press(KeyCode::End);
    assert!(played.shows("doubled.again, powers (order only)"));
    played.press(KeyCode::Enter);
    assert_eq!(played.command(), "cowboyctl speculation show 5 done");
    assert!(played.wants().contains(&Ask::Task(5, "done".to_owned())));
    played.press(KeyCode::Esc);
    assert_eq!(played.command(), "cowboyctl speculation graph 5");
    played.press(KeyCode::Esc);
    assert!(played.shows("pipelines: 5"));
    played.filter("faults");
    assert_eq!(played.command(), "cowboyctl speculation graph 2");
    played.press(KeyCode::Enter);
    // The filter matches the pipeline's name, so its tasks are shown.
    assert!(played.shows("root") && played.shows("leaf"));
    assert!(!played.wants().contains(&Ask::Pipeline(2)), "it has ended");
    played.press(KeyCode::Esc);
    played.press(KeyCode::Char('r'));
    assert_eq!(played.command(), "cowboyctl speculation rollbacks");
    played.press(KeyCode::Esc);
    assert!(played.shows("pipelines: 1 of 5"));
}

#[test]
fn a_pipeline_that_is_not_told_says_why() {
    let mut played = Played::new(SMALL, "speculation");
    played.press(KeyCode::Down);
    played.press(KeyCode::Enter);
    assert!(played.shows("asking for its tasks"));
    hear(&mut played.state, News::Refused(Ask::Pipeline(4), "it is gone".to_owned()));
    assert!(played.shows("it is gone"));
}

#[test]
fn rows_are_chosen_by_the_mouse() {
    let mut played = Played::new(SIZES[1], "speculation");
    played.click("faults");
    assert_eq!(played.command(), "cowboyctl speculation graph 2");
    played.press(KeyCode::Enter);
    played.click("leaf");
    played.press(KeyCode::Enter);
    assert_eq!(played.command(), "cowboyctl speculation show 2 leaf");
    let mut played = Played::new(SMALL, "jobs");
    played.click("Cancelled");
    let cancelled = played.command();
    played.filter("cancelled");
    assert_eq!(played.command(), cancelled);
    let mut played = Played::new(SMALL, "leases");
    played.click("flaky");
    played.press(KeyCode::Enter);
    assert!(played.shows("log of attempt 2"));
}

#[test]
fn a_leased_job_shows_the_end_of_its_log() {
    let mut played = Played::new(SMALL, "leases");
    assert!(played.command().starts_with("cowboyctl lease show run_"));
    played.press(KeyCode::Enter);
    assert!(!played.shows("soak"), "runs without their jobs");
    played.press(KeyCode::Enter);
    played.press(KeyCode::Down);
    played.press(KeyCode::Enter);
    assert!(played.shows("log of attempt 1") && played.shows("round 2 of 20"));
    assert!(played.command().starts_with("cowboyctl lease show job_"));
    assert!(played.wants().iter().any(|ask| matches!(ask, Ask::LeaseJob(_))), "it runs");
    played.press(KeyCode::Char('l'));
    assert!(played.command().starts_with("cowboyctl lease logs job_"));
    let job = match played.wants().pop() {
        Some(Ask::LeaseJob(job)) => job,
        other => panic!("{other:?}"),
    };
    // A longer log: its end is visible, and Home leads to its beginning.
    let ask = Ask::LeaseJob(job);
    let is = |news: &News| matches!(news, News::Answer(of, _) if *of == ask);
    let found = played.news.iter().map(|(_, news)| news.clone()).find(is);
    let Some(News::Answer(_, answer)) = found else { panic!("the recording has the job") };
    let Answer::LeaseJob(mut longer) = *answer else { panic!("it is a job") };
    longer.log = (1..=100).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    longer.skipped = 7;
    hear(&mut played.state, News::Answer(ask, Box::new(Answer::LeaseJob(longer))));
    assert!(played.shows("line 100") && !played.shows("line 9 "));
    let now = played.state.now;
    update(&mut played.state, now, Event::Key(KeyEvent::from(KeyCode::Up)));
    assert!(played.shows("line 99") && !played.shows("line 100"));
    update(&mut played.state, now, Event::Key(KeyEvent::from(KeyCode::Home)));
    assert!(played.shows("… 7 bytes before that") && !played.shows("line 99"));
}

#[test]
fn no_lease_is_named() {
    for (_, pane, keys) in looks().into_iter().filter(|(_, pane, _)| *pane == "leases") {
        let mut played = Played::new(SIZES[2], pane);
        for key in keys {
            played.press(key);
        }
        assert!(!played.shows("lease_") && !played.shows("hunter2"));
    }
}

/// Presses keys in a pseudo-random order that is always the same.
#[test]
fn no_key_at_no_size_breaks_a_pane_of_work() {
    let codes: Vec<KeyCode> = " /?yjkgGolrxe"
        .chars()
        .map(KeyCode::Char)
        .chain([KeyCode::Enter, KeyCode::Enter, KeyCode::Enter, KeyCode::Esc, KeyCode::Home])
        .chain([KeyCode::Up, KeyCode::Down, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown])
        .chain([KeyCode::End, KeyCode::Backspace])
        .collect();
    let sizes = [(80, 24), (81, 25), (200, 60), (150, 24), (300, 24), (80, 100), (10, 3), (0, 0)];
    for pane in ["jobs", "speculation", "leases"] {
        let mut played = Played::new(SMALL, pane);
        let mut seed = 7_u64;
        for step in 0..600 {
            let odd = 6_364_136_223_846_793_005_u64;
            seed = seed.wrapping_mul(odd).wrapping_add(1_442_695_040_888_963_407);
            let pick = (seed >> 33) as usize;
            if step % 10 == 0 {
                let (width, height) = sizes[pick % sizes.len()];
                let now = played.state.now;
                update(&mut played.state, now, Event::Resize(Size::new(width, height)));
            }
            let code = codes[pick % codes.len()];
            match code {
                // In a filter the key is text; elsewhere news follows the key.
                KeyCode::Char('/' | 'x' | 'e') => {
                    let now = played.state.now;
                    update(&mut played.state, now, Event::Key(KeyEvent::from(code)));
                }
                code => played.press(code),
            }
            let rows = usize::from(played.state.size.height);
            let drawn = picture(&played.state).len();
            assert_eq!(drawn, rows * usize::from(played.state.size.width > 0));
        }
    }
}
