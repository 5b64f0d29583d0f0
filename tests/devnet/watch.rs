//! Commands that watch a running devnet: all timers, an actor's timers, one timer until it ends,
//! and presence.

use crate::{
    shape,
    support::{Home, PATIENCE, list, wait_until},
    timers::{HEARTBEAT, number, text},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
};

/// A command that watches; dropping it ends it.
pub struct Watch {
    child: Child,
    lines: Receiver<Value>,
    /// The lines read so far.
    seen: Vec<Value>,
}

impl Watch {
    pub fn start(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command(&[&["-o", "jsonl"], args].concat());
        let words: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // The thread ends with the command.
        thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap();
                let args: Vec<_> = words.iter().map(String::as_str).collect();
                shape::check(&[&["-o", "jsonl"], &args[..]].concat(), &line);
                let line = serde_json::from_str(&line).unwrap();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Whether a line has arrived since the last call.
    fn has_more(&mut self) -> bool {
        let before = self.seen.len();
        self.seen.extend(self.lines.try_iter());
        self.seen.len() > before
    }

    /// Reads until a line matches.
    pub fn until_line(&mut self, what: &str, is: impl Fn(&Value) -> bool) {
        while !self.seen.iter().any(&is) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("no {what}: {error}\n{:#?}", self.seen),
            }
        }
    }

    /// Reads until a line has this event of a timer.
    fn until(&mut self, timer: &str, kind: &str) {
        let is = |line: &Value| line["timer_id"] == timer && line["kind"] == kind;
        self.until_line(&format!("{kind} of {timer}"), is);
    }

    /// Reads until the command ends by itself, and returns all lines.
    fn end(mut self) -> Vec<Value> {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it goes on: {:#?}", self.seen),
            }
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        std::mem::take(&mut self.seen)
    }

    /// Interrupts the command, as ctrl-c does, and returns all lines.
    pub fn interrupt(mut self) -> Vec<Value> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let error: Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!(error["error"]["code"], "interrupted", "{error}");
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn heart(home: &Home) -> String {
    text(&home.json(&["actor", "deploy", HEARTBEAT])["actor"]).to_owned()
}

/// Schedules a timer and returns its id.
fn schedule(home: &Home, args: &[&str]) -> String {
    text(&home.json(&[&["timer", "schedule"], args].concat())["timer_id"]).to_owned()
}

/// The kinds of a timer's events, in order.
fn kinds<'a>(lines: &'a [Value], timer: &str) -> Vec<&'a str> {
    let of_timer = |line: &&Value| line["timer_id"] == timer;
    lines.iter().filter(of_timer).map(|line| text(&line["kind"])).collect()
}

/// The height and index of each event.
fn places<'a>(events: impl IntoIterator<Item = &'a Value>) -> Vec<(u64, u64)> {
    events.into_iter().map(|event| (number(&event["height"]), number(&event["index"]))).collect()
}

#[test]
fn a_watch_shows_what_happens_to_an_actors_timers_and_no_others() {
    let home = Home::new();
    home.up(&["--wait", "2", "--validators", "1", "--runners", "0"]);
    let (mine, other) = (heart(&home), heart(&home));
    home.json(&["account", "fund", &other, "10cby"]);
    // A watch that begins later knows this timer, although only its first and last event name the
    // actor.
    let far = ["--at", "+5000", "--expires", "+5100", "--handler", "beats"];
    let early = schedule(&home, &[&[mine.as_str()], &far[..]].concat());
    let mut everybody = Watch::start(&home, &["timer", "watch"]);
    let mut of_mine = Watch::start(&home, &["timer", "watch", "--actor", &mine[..10]]);
    let mut until = number(&home.json(&["timer", "show", &early])["expires_at"]);
    wait_until("both watch", || {
        until += 1;
        home.json(&["timer", "extend", &early, &until.to_string()]);
        let (one, two) = (everybody.has_more(), of_mine.has_more());
        one && two
    });
    let from = home.height() + 1;

    let poor = schedule(&home, &[&mine, "--in", "2", "--handler", "beats"]);
    of_mine.until(&poor, "TimerCancelledInsufficientFunds");
    home.json(&["account", "fund", &mine, "10cby"]);
    let fires = schedule(&home, &[&mine, "--in", "2", "--handler", "beats"]);
    let theirs = schedule(&home, &[&other, "--in", "2", "--handler", "beats"]);
    let fails = schedule(&home, &[&mine, "--in", "2", "--handler", "stop"]);
    // It fails, because no heartbeat is running that it could stop.
    of_mine.until(&fails, "TimerFired");
    let begun = home.json(&["actor", "call", &mine, "start", r#"{"every": 2, "times": 2}"#]);
    let scheduled = |events: &Value, by: Option<&str>| -> String {
        let begins =
            |event: &&Value| event["kind"] == "TimerScheduled" && event["timer"].as_str() == by;
        text(&list(events).iter().find(begins).unwrap()["timer_id"]).to_owned()
    };
    let first = scheduled(&begun["events"], None);
    of_mine.until(&first, "TimerFired");
    let second = scheduled(&home.json(&["timer", "show", &first])["events"], Some(&first));
    of_mine.until(&second, "TimerFired");
    // The lane has no room until the timer expires.
    home.json(&["chain", "params", "set", "lane_timer_cycles", "1000"]);
    let late = ["--in", "2", "--expires", "+4", "--handler", "beats"];
    let expires = schedule(&home, &[&[mine.as_str()], &late[..]].concat());
    of_mine.until(&expires, "TimerExpired");
    home.json(&["timer", "cancel", &early]);
    of_mine.until(&early, "TimerCancelled");
    everybody.until(&early, "TimerCancelled");
    let (all, own) = (everybody.interrupt(), of_mine.interrupt());

    let check = |timer: &str, expected: &[&str]| {
        assert_eq!(kinds(&own, timer), expected, "{own:#?}");
    };
    check(&poor, &["TimerScheduled", "TimerCancelledInsufficientFunds"]);
    check(&fires, &["TimerScheduled", "ActorCalled", "TimerFired"]);
    check(&theirs, &[]);
    check(&fails, &["TimerScheduled", "TimerFired"]);
    let failed = own.iter().rfind(|line| line["timer_id"] == fails.as_str()).unwrap();
    assert_eq!(failed["data"]["success"], false);
    // The events of a beat belong to its timer.
    let beat = ["TimerScheduled", "ActorCalled", "ActorEmitted", "TimerFired"];
    check(&first, &beat);
    check(&second, &beat);
    check(&expires, &["TimerScheduled", "TimerExpired"]);
    assert_eq!(kinds(&own, &early).last(), Some(&"TimerCancelled"));
    assert!(own.iter().all(|line| line["kind"] != "Transferred"), "{own:#?}");

    // The lines have every event about timers of these blocks, each once.
    let since = |lines: &[Value]| -> Vec<Value> {
        lines.iter().filter(|line| number(&line["height"]) >= from).cloned().collect()
    };
    let chain = home.json(&["chain", "events", "--from", &from.to_string()]);
    let of_timers = list(&chain).iter().filter(|event| event["timer_id"].is_string());
    assert_eq!(places(&since(&all)), places(of_timers));
    let (all, own) = (since(&all), since(&own));
    let not_theirs = all.iter().filter(|line| line["timer_id"] != theirs.as_str());
    assert_eq!(places(&own), places(not_theirs));
}

#[test]
fn a_watch_of_a_timer_ends_with_it() {
    let home = Home::new();
    home.up(&["--wait", "2", "--validators", "1", "--runners", "0"]);
    let mine = heart(&home);
    home.json(&["account", "fund", &mine, "10cby"]);

    let far = ["--at", "+5000", "--expires", "+5100", "--handler", "beats"];
    let cancelled = schedule(&home, &[&[mine.as_str()], &far[..]].concat());
    let mut watch = Watch::start(&home, &["timer", "watch", &cancelled[..12]]);
    watch.until(&cancelled, "TimerScheduled");
    home.json(&["timer", "extend", &cancelled, "+5200"]);
    watch.until(&cancelled, "TimerExtended");
    home.json(&["timer", "cancel", &cancelled]);
    let lines = watch.end();
    assert_eq!(
        kinds(&lines, &cancelled),
        ["TimerScheduled", "TimerExtended", "TimerCancelled"],
        "{lines:#?}"
    );

    // Watching a timer live shows the same as watching it afterwards.
    let beats = schedule(&home, &[&mine, "--every", "20"]);
    let live = Watch::start(&home, &["timer", "watch", &beats]).end();
    let replayed = Watch::start(&home, &["timer", "watch", &beats]).end();
    let kinds: Vec<_> = replayed.iter().map(|line| text(&line["kind"])).collect();
    assert_eq!(
        kinds,
        ["TimerScheduled", "ActorCalled", "ActorEmitted", "TimerScheduled", "TimerFired"]
    );
    assert_eq!(live, replayed);
}

#[test]
fn a_watch_of_what_is_not_there_says_so() {
    let home = Home::new();
    let check = |args: &[&str], code, begin: &str| {
        let refused = home.fails(code, &[&["timer", "watch"], args].concat());
        assert!(refused.starts_with(begin), "{args:?}: {refused}");
    };
    check(&[], 4, "error: no devnet is running\n");
    home.up(&["--wait", "2", "--validators", "1", "--runners", "0"]);
    check(&["0x1234567890"], 3, "error: no timer's id begins with 0x1234567890\n");
    check(&["soon"], 3, "error: there is no timer `soon`\n");
    let absent = "error: no actor's address begins with 0x1234567890\n";
    check(&["--actor", "0x1234567890"], 3, absent);
    check(&["--actor", "dev-0"], 3, "error: there is no actor at dev-0 at block ");
}

#[test]
fn a_watch_of_presence_shows_everybody_and_then_what_changes() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "3"]);
    let mut watch = Watch::start(&home, &["presence", "watch"]);
    watch.until_line("line with all runners", |line| line["present"] == 3);
    home.wait_height(home.height() + 3);
    let lines = watch.interrupt();
    let mut present = BTreeSet::new();
    let mut last = 0;
    for line in &lines {
        let (came, went) = (list(&line["appeared"]), list(&line["vanished"]));
        assert!(!came.is_empty() || !went.is_empty() || last == 0, "nothing new: {lines:#?}");
        last = number(&line["height"]);
        for name in came {
            assert!(present.insert(text(name)), "{lines:#?}");
        }
        for name in went {
            assert!(present.remove(text(name)), "{lines:#?}");
        }
        assert_eq!(number(&line["present"]), present.len() as u64, "{lines:#?}");
        assert_eq!(line["registry_len"], 3);
        let shown = home.json(&["presence", "show", &last.to_string()]);
        let shown: BTreeSet<_> = list(&shown["present"]).iter().map(text).collect();
        assert_eq!(present, shown, "block {last}");
    }
}

#[test]
fn a_list_is_watched_until_its_devnet_stops() {
    let home = Home::new();
    home.up(&["--wait", "2", "--validators", "1", "--runners", "0"]);
    let mut watch = Watch::start(&home, &["validator", "ls", "--watch"]);
    let height = home.height();
    let is_later = |line: &Value| line[0]["height"].as_u64() > Some(height);
    watch.until_line("line of a later block", is_later);
    home.json(&["devnet", "down"]);
    let mut stderr = String::new();
    watch.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(watch.child.wait().unwrap().code(), Some(4), "{stderr}");
    let error: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(error["error"]["code"], "not_running", "{error}");
}
