//! The dashboard on a terminal, with a real devnet.

use super::{
    support::{Home, wait_until},
    terminal::Terminal,
};
use rustix::process::Signal;
use std::{fs, os::unix::process::ExitStatusExt as _};

/// The number after a text on the screen.
fn number_after(screen: &str, text: &str) -> u64 {
    let rest = screen.split(text).nth(1).unwrap_or_else(|| panic!("no {text} in\n{screen}"));
    let digits = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    digits.filter(|c| *c != ',').collect::<String>().parse().unwrap()
}

fn dashboard(home: &Home, args: &[&str], columns: u16, rows: u16) -> Terminal {
    Terminal::start(home.command(&[&["dashboard"], args].concat()), columns, rows)
}

#[test]
fn from_start_to_quit() {
    let home = Home::new();
    home.up(&["--name", "a", "--validators", "4", "--runners", "4"]);
    let mut terminal = dashboard(&home, &["--devnet", "a"], 80, 24);
    terminal.see("validators: 4 of 4 running");
    terminal.see("4 of 4 present");

    // Filter.
    terminal.keys("/validator-2");
    terminal.see("validators: 1 of 1 running");
    terminal.keys("\r");
    terminal.see("? keys");
    terminal.keys("\x1b");
    terminal.see("validators: 4 of 4 running");

    // Drill down.
    terminal.keys("3");
    terminal.see("4 of 4 runners, blocks");
    terminal.see("present; in");
    terminal.keys("\r");
    terminal.see("votes have its bit");
    terminal.see("in the certificate");
    terminal.keys("y");
    terminal.see("cowboyctl presence votes");
    terminal.keys("q");
    terminal.lose("cowboyctl presence votes");
    terminal.keys("\x1b");
    terminal.see("4 of 4 runners, blocks");

    // Freeze: the displayed height stays, while the count grows.
    terminal.keys("1 ");
    let frozen = terminal.see("frozen, ");
    let later = terminal.wait("events behind", |screen| {
        let text = screen.contents();
        text.contains("frozen, ") && number_after(&text, "frozen, ") >= 5
    });
    assert_eq!(number_after(&frozen, "● "), number_after(&later, "● "));
    terminal.keys(" ");
    terminal.lose("frozen");
    terminal.wait("newer blocks", |screen| {
        let text = screen.contents();
        text.contains("● ") && number_after(&text, "● ") > number_after(&later, "● ")
    });

    // Resize.
    terminal.resize(120, 40);
    terminal.wait("the footer in the last line", |screen| {
        screen.rows(0, 120).last().is_some_and(|line| line.ends_with("q quit"))
    });
    terminal.resize(40, 9);
    terminal.see("40×10 are needed");
    terminal.resize(40, 10);
    terminal.see("validators: 4 of 4 running");
    // Keys that arrive together with the resize do not hide it.
    terminal.resize(80, 24);
    terminal.keys("jk");
    terminal.wait("the footer in the last line again", |screen| {
        screen.rows(0, 80).last().is_some_and(|line| line.ends_with("q quit"))
    });

    // A command; its suggestion is taken first.
    terminal.keys(":chain hea\r");
    terminal.see(":chain head ");
    terminal.keys("\r");
    terminal.see("done; esc closes this");
    terminal.see("finalized");
    terminal.keys("\x1b");
    terminal.lose("done; esc");
    terminal.keys(":chain wait 1000000\r");
    terminal.see("running; esc ends it");
    terminal.keys("\x1b");
    terminal.see("ended; esc closes this");
    terminal.keys("\x1b");
    terminal.lose("ended; esc closes this");

    // Blocks and accounts.
    terminal.keys("2");
    terminal.see("blocks: the newest");
    terminal.keys("\r");
    terminal.see("─ block ");
    terminal.see("state root");
    terminal.keys("\x1b");
    terminal.see("blocks: the newest");
    terminal.keys("6");
    terminal.see("accounts, 0 actors");
    terminal.see("1,000,000 CBY");

    // A fault is injected and healed, each after a question.
    terminal.keys("7");
    terminal.see("faults in force: 0");
    terminal.keys("p");
    terminal.see("pause validator-0");
    terminal.keys("n");
    terminal.lose("pause validator-0");
    terminal.keys("py");
    terminal.see("faults in force: 1");
    terminal.see("done; esc closes this");
    terminal.keys("\x1b");
    terminal.lose("done; esc");
    terminal.keys("py");
    terminal.see("faults in force: 0");
    terminal.see("done; esc closes this");
    terminal.keys("\x1b");
    terminal.lose("done; esc");
    terminal.keys("1");

    // The devnet is restarted.
    assert_eq!(home.run(&["devnet", "down", "a"]).code, 0);
    let last = terminal.see("reconnecting");
    assert!(last.contains("validators: "), "the last picture stays: {last}");
    home.up(&["--name", "a"]);
    let before = number_after(&terminal.see("● "), "● ");
    terminal.wait("blocks of the restarted devnet", |screen| {
        let text = screen.contents();
        text.contains("● ") && number_after(&text, "● ") > before
    });

    terminal.keys("q");
    let (status, _) = terminal.ended();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn the_terminal_is_given_back_whatever_ends_it() {
    let home = Home::new();
    home.up(&["--name", "a", "--validators", "1", "--runners", "1"]);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut terminal = dashboard(&home, &[], 80, 24);
        terminal.see("validators: 1 of 1 running");
        terminal.signal(signal);
        let (status, text) = terminal.ended();
        assert_eq!((status.code(), status.signal()), (Some(130), None), "{text}");
        assert!(text.contains("interrupted"), "{text}");
    }
    let mut terminal = dashboard(&home, &[], 80, 24);
    terminal.see("validators: 1 of 1 running");
    terminal.keys("\x03");
    assert_eq!(terminal.ended().0.code(), Some(0));
    // Only builds with debug assertions can panic on request.
    if cfg!(debug_assertions) {
        let mut terminal = dashboard(&home, &[], 80, 24);
        terminal.see("validators: 1 of 1 running");
        terminal.keys(":panic\r");
        let (status, text) = terminal.ended();
        assert_eq!(status.code(), Some(101), "{text}");
        assert!(text.contains("asked for with :panic"), "{text}");
    }
}

#[test]
fn it_can_be_suspended() {
    let home = Home::new();
    home.up(&["--name", "a", "--validators", "1", "--runners", "0"]);
    let mut terminal = dashboard(&home, &[], 80, 24);
    terminal.see("validators: 1 of 1 running");
    terminal.keys("\x1a");
    let stat = format!("/proc/{}/stat", terminal.pid().as_raw_nonzero());
    wait_until("the dashboard is stopped", || {
        let stat = fs::read_to_string(&stat).unwrap();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    });
    terminal.wait("the main screen", |screen| !screen.alternate_screen());
    terminal.is_as_before();
    terminal.signal(Signal::CONT);
    terminal.wait("the dashboard", |screen| {
        screen.alternate_screen() && screen.contents().contains("validators: 1 of 1 running")
    });
    terminal.keys("q");
    assert_eq!(terminal.ended().0.code(), Some(0));
}

#[test]
fn what_is_recorded_can_be_shown_without_the_devnet() {
    let home = Home::new();
    home.up(&["--name", "a", "--validators", "1", "--runners", "2"]);
    let file = home.path("news.jsonl");
    let file = file.to_str().unwrap();
    let mut terminal = dashboard(&home, &["--record", file], 80, 24);
    terminal.see("2 of 2 present");
    terminal.keys("3");
    terminal.see("present; in");
    terminal.keys("q");
    assert_eq!(terminal.ended().0.code(), Some(0));
    let mut terminal = dashboard(&home, &["--record", file], 80, 24);
    let (status, text) = terminal.ended();
    assert_eq!(status.code(), Some(8), "{text}");
    assert!(text.contains("does not exist yet"), "{text}");
    home.kill("a");
    let mut terminal = dashboard(&home, &["--replay", file], 80, 24);
    terminal.see("a recorded ");
    terminal.see("2 of 2 present");
    terminal.keys("q");
    assert_eq!(terminal.ended().0.code(), Some(0));
}

#[test]
fn it_needs_a_terminal_and_a_devnet() {
    let home = Home::new();
    let said = home.fails(4, &["dashboard"]);
    assert!(said.contains("no devnet is running"), "{said}");
    let said = home.fails(2, &["dashboard", "--replay", "news.jsonl"]);
    assert!(said.contains("needs a terminal"), "{said}");
    let mut terminal = dashboard(&home, &["--replay", "no-such-file"], 80, 24);
    let (status, text) = terminal.ended();
    assert_eq!(status.code(), Some(3), "{text}");
    let file = home.path("broken.jsonl");
    fs::write(&file, "{}\n").unwrap();
    let mut terminal = dashboard(&home, &["--replay", file.to_str().unwrap()], 80, 24);
    let (status, text) = terminal.ended();
    assert_eq!(status.code(), Some(2), "{text}");
    assert!(text.contains("line 1 is not a piece of news"), "{text}");
}
