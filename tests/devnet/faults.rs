//! Things that go wrong around a devnet.

use crate::support::{Home, list};
use std::net::TcpListener;

#[test]
fn an_occupied_port_is_named_with_its_owner() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = home.path("taken.yaml");
    std::fs::write(&file, format!("name: taken\napi:\n  port: {port}\n")).unwrap();
    let outcome = home.run(&["devnet", "up", "--detach", "-f", file.to_str().unwrap()]);
    // The error comes with the last lines of the log.
    let error = outcome.stderr;
    assert_eq!(outcome.code, 8, "{error}");
    assert!(error.contains(&port.to_string()), "{error}");
    assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
}

#[test]
fn a_killed_devnet_is_noticed_and_started_again() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    let pid = home.json(&["devnet", "status"])["pid"].as_u64().unwrap();
    home.kill("local");
    home.fails(4, &["chain", "head"]);
    let died = format!("its process {pid} was killed");
    for _again in 0..2 {
        let listed = home.json(&["devnet", "ls"])[0].clone();
        assert_eq!((&listed["status"], &listed["running"]), (&"died".into(), &false.into()));
        let height = listed["height"].as_u64().unwrap();
        assert!(height >= 2, "{listed}");
        let shown = home.run(&["-o", "json", "devnet", "status"]);
        assert_eq!(shown.code, 4, "{shown:?}");
        assert!(shown.stderr.contains(&died), "{shown:?}");
        let shown = shown.json();
        assert_eq!(
            (&shown["died"], &shown["head"]["height"]),
            (&died.clone().into(), &height.into())
        );
        let heights = list(&shown["validators"]).iter().map(|one| one["height"].as_u64());
        assert_eq!(heights.max().unwrap(), Some(height), "{shown}");
        let text = home.run(&["devnet", "status"]).stdout;
        assert!(text.contains(&format!("status  died: {died}\n")), "{text}");
        let found = home.run(&["doctor", "--devnet", "local"]);
        assert!(found.stdout.contains(&format!("it has died: {died}")), "{found:?}");
    }
    let up = home.json(&["devnet", "up", "--detach", "--wait", "4"]);
    assert!(up["head"]["height"].as_u64().unwrap() >= 4);
    assert_eq!(home.json(&["devnet", "ls"])[0]["status"], "running");
    home.kill("local");
    home.json(&["devnet", "down"]);
    assert_eq!(home.json(&["devnet", "ls"])[0]["status"], "stopped");
}
