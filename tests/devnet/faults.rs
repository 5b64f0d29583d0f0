//! Things that go wrong around a devnet.

use crate::support::Home;
use std::net::TcpListener;

#[test]
fn an_occupied_port_is_named_with_its_owner() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = home.path("taken.yaml");
    std::fs::write(&file, format!("name: taken\napi:\n  port: {port}\n")).unwrap();
    let outcome = home.run(&["devnet", "up", "--detach", "-f", file.to_str().unwrap()]);
    // The last lines of the log stand beside the error.
    let error = outcome.stderr;
    assert_eq!(outcome.code, 8, "{error}");
    assert!(error.contains(&port.to_string()), "{error}");
    assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
}

#[test]
fn a_killed_devnet_is_noticed_and_started_again() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    home.kill("local");
    home.fails(4, &["chain", "head"]);
    let up = home.json(&["devnet", "up", "--detach", "--wait", "4"]);
    assert!(up["head"]["height"].as_u64().unwrap() >= 4);
}
