//! Actors, timers and jobs are found by name, by a prefix of an id, and by `latest`.

use crate::{
    support::{Home, list},
    timers::{HEARTBEAT, text},
};
use serde_json::Value;

#[test]
fn what_is_made_is_named_and_found_again() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "2"]);
    let actor = home.json(&["actor", "deploy", HEARTBEAT, "--name", "beat"]);
    assert_eq!(actor["name"], "beat");
    let actor = text(&actor["actor"]);
    home.json(&["account", "fund", "beat", "10cby"]);
    let schedule = ["timer", "schedule", "beat", "--in", "1000", "--handler", "beats"];
    let timer = home.json(&[&schedule[..], &["--name", "nightly"]].concat());
    assert_eq!((&timer["name"], text(&timer["actor"])), (&"nightly".into(), actor));
    let timer = text(&timer["timer_id"]);
    let submit = ["job", "submit", "custom", "--wait", "--name", "build", "--", "echo", "hi"];
    let job = home.json(&submit);
    assert_eq!((&job["name"], &job["status"]), (&"build".into(), &"Verified".into()));
    let job = text(&job["job_id"]);

    let check = |home: &Home| {
        for (noun, id, name, field) in [
            ("actor", actor, "beat", "actor"),
            ("timer", timer, "nightly", "timer_id"),
            ("job", job, "build", "job_id"),
        ] {
            for spelled in [name, id, &id[..12], "latest"] {
                let shown = home.json(&[noun, "show", spelled]);
                assert_eq!((&shown[field], &shown["name"]), (&id.into(), &name.into()), "{noun}");
            }
            let listed = home.json(&[noun, "ls"]);
            assert_eq!(list(&listed)[0]["name"], name);
            let text = home.run(&[noun, "ls"]).stdout;
            assert!(text.contains(&format!(" {name} ")), "{text}");
            let unknown = home.fails(3, &[noun, "show", "no-such-thing"]);
            assert!(unknown.contains(&format!("cowboyctl {noun} ls")), "{unknown}");
            home.fails(3, &[noun, "show", "0x0000000001"]);
        }
    };
    check(&home);
    assert_eq!(home.json(&["timer", "show", "nightly"])["actor_name"], "beat");
    // Names belong to the chain and outlive its process.
    home.json(&["devnet", "down"]);
    home.up(&["--wait", "4"]);
    check(&home);

    // Names are unique, which is checked before sending; the name of an ended job is free.
    let head = home.json(&["account", "balance", "dev-0"]);
    let again = home.fails(8, &["actor", "deploy", HEARTBEAT, "--name", "beat"]);
    assert!(again.contains("`beat` is the name of another actor"), "{again}");
    home.fails(8, &[&schedule[..], &["--name", "nightly"]].concat());
    home.fails(8, &["actor", "deploy", HEARTBEAT, "--name", "dev-1"]);
    for bad in ["latest", "0xab", "No-Capitals", "-x"] {
        home.fails(2, &["actor", "deploy", HEARTBEAT, &format!("--name={bad}")]);
    }
    assert_eq!(home.json(&["account", "balance", "dev-0"]), head, "nothing was sent");
    let next = home.json(&submit);
    assert_ne!(text(&next["job_id"]), job);
    assert_eq!(home.json(&["job", "show", "build"])["job_id"], next["job_id"]);
    assert_eq!(home.json(&["job", "show", job])["name"], Value::Null);
    let file = home.path("local/data/names.json");
    assert!(file.is_file());
    home.json(&["devnet", "reset"]);
    assert!(!file.exists());
}

/// A call and its dry run have their result in the same place.
#[test]
fn a_call_and_its_dry_run_have_one_shape() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "0"]);
    home.json(&["actor", "deploy", HEARTBEAT, "--name", "beat"]);
    let call = ["actor", "call", "beat", "beats"];
    let tried = home.json(&[&call[..], &["--dry-run"]].concat());
    let called = home.json(&call);
    assert_eq!(called["status"], "success");
    for field in ["success", "result", "log", "deliveries"] {
        assert_eq!(called[field], tried[field], "{field}: {called} {tried}");
    }
    // Missing money is reported in the same way, with the command that adds it.
    let dear = [&call[..], &["--value", "9000000000cby"]].concat();
    for more in [&["--dry-run"][..], &["--cycles", "100000", "--cells", "1000"]] {
        let poor = home.fails(6, &[&dear[..], more].concat());
        assert!(poor.contains(" CBY are missing"), "{poor}");
        assert!(poor.contains("  give it some: cowboyctl account fund "), "{poor}");
    }
    assert!(tried["result"].is_number() && called["usage"]["cycles"].is_number(), "{called}");
}
