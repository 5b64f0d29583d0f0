//! Proofs of a real devnet, written and checked through the command line, and checked again after
//! the devnet is gone.

use crate::{
    shape,
    support::{Home, list},
    timers::{HEARTBEAT, number, text},
};
use std::fs;

#[test]
fn what_a_devnet_proves_is_checked_without_it() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "1"]);
    let actor = home.json(&["actor", "deploy", HEARTBEAT]);
    let actor = text(&actor["actor"]);
    home.json(&["account", "fund", actor, "10cby"]);
    let schedule = |blocks: &str| {
        let args = ["timer", "schedule", actor, "--in", blocks, "--handler", "beats"];
        home.json(&args)
    };
    let far = schedule("5000");
    let (id, due) = (text(&far["timer_id"]), number(&far["height"]));
    let other = schedule("6000");
    let scheduled = home.height();
    home.wait_height(scheduled + 3);

    let path = |name: &str| home.path(name).display().to_string();
    let prove = |args: &[&str], name: &str| {
        let file = path(name);
        let proved = home.json(&[args, &["--out", &file]].concat());
        assert_eq!(proved["file"], file.as_str());
        assert_eq!(fs::metadata(&file).unwrap().len(), number(&proved["bytes"]));
        proved
    };
    let proved = prove(&["timer", "prove", &id[..14]], "timer");
    assert_eq!((&proved["key"], &proved["present"]), (&id.into(), &true.into()), "{proved}");
    assert!(number(&proved["height"]) >= scheduled);
    let absent = format!("0x{}", "77".repeat(32));
    assert_eq!(prove(&["timer", "prove", &absent], "absent")["present"], false);
    let heights = format!("{due}..{}", due + 10);
    let range = prove(&["timer", "prove", "--heights", &heights], "range");
    assert_eq!(range["timers"], 1, "{range}");
    assert_eq!(prove(&["chain", "prove", "account", "dev-0"], "account")["present"], true);
    prove(&["chain", "prove", "presence"], "presence");
    let at = proved["height"].to_string();
    let again = prove(&["chain", "prove", "actor", actor, "--at", &at], "at");
    assert_eq!(again["state_root"], proved["state_root"], "the same state");

    // First as a stranger, with the keys that the devnet reports.
    let chain_id = home.json(&["devnet", "status"])["chain_id"].clone();
    let validators = home.json(&["validator", "ls"]);
    let keys: Vec<_> = list(&validators).iter().map(|v| text(&v["consensus_key"])).collect();
    home.json(&["devnet", "down"]);
    let verify = |name: &str| home.json(&["timer", "verify", &path(name)]);
    let verified = verify("timer");
    assert_eq!((&verified["present"], &verified["votes"]), (&true.into(), &3.into()));
    assert_eq!(verified["state_root"], proved["state_root"]);
    assert_eq!(
        (&verified["value"]["height"], &verified["value"]["actor"]),
        (&due.into(), &actor.into())
    );
    let trusted = &verified["trusted"];
    assert!(text(&trusted["source"]).starts_with("the topology of devnet"), "{trusted}");
    assert_eq!(verify("absent")["present"], false);
    let range = verify("range");
    assert_eq!(range["timers"], serde_json::json!([{ "height": due, "timer_id": id }]));
    assert_ne!(range["timers"][0]["timer_id"], other["timer_id"]);
    let account = home.json(&["chain", "verify", &path("account")]);
    assert!(text(&account["value"]["balance"]).parse::<u128>().unwrap() > 0, "{account}");
    assert!(home.json(&["chain", "verify", &path("presence")])["value"]["height"].is_u64());
    let mut named = vec!["chain".to_owned(), "verify".to_owned(), path("at")];
    named.extend(["--chain-id".to_owned(), text(&chain_id).to_owned()]);
    named.extend(keys.iter().flat_map(|key| ["--validator".to_owned(), (*key).to_owned()]));
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let by_name = home.json(&named);
    assert_eq!(by_name["trusted"]["source"], "command line");
    assert_eq!(number(&by_name["value"]["deployed_at"]), number(&by_name["value"]["loaded_at"]));

    // The error of an invalid proof names the failed check.
    let refused = home.fails(7, &["timer", "verify", &path("timer"), "--about", &absent]);
    assert!(refused.contains(": question: it proves timer 0x"), "{refused}");
    let mut elsewhere = named.clone();
    elsewhere[4] = "0x0000000000000001";
    let refused = home.fails(7, &elsewhere);
    assert!(refused.contains(": certificate: the vote of validator "), "{refused}");
    let refused = home.fails(2, &["timer", "verify", &path("account")]);
    assert!(refused.contains("cowboyctl chain verify"), "{refused}");
    let bytes = fs::read(path("timer")).unwrap();
    for (at, what) in [(0, ": form: "), (bytes.len() - 1, ": timer: ")] {
        let mut forged = bytes.clone();
        forged[at] ^= 1;
        fs::write(path("forged"), forged).unwrap();
        let refused = home.fails(7, &["timer", "verify", &path("forged")]);
        assert!(refused.contains(what), "{refused}");
    }
    shape::seen(&["timer prove", "timer verify", "chain prove", "chain verify"]);
}
