//! Output of the fault commands: what is cut or healed, and a report that cannot be written.

use crate::{
    answers::{self, answer, hash},
    support::{Answer, Fake, Request},
    terminal::on_terminal,
};
use cowboy_devnet::types::{ErrorCode, Event, Fault, FaultSpec, Transaction, TransactionStatus};
use serde_json::json;

fn nodes(list: &str) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

fn fault(id: u64, fault: FaultSpec) -> Fault {
    Fault {
        id,
        fault,
        seed: 7,
        since: 12,
        until_height: None,
        until: None,
        dropped: 1_234,
        delayed: 0,
        lies: 0,
        others: Vec::new(),
    }
}

fn partition() -> Fault {
    let groups = vec![nodes("validator-0,validator-1"), nodes("validator-10")];
    let others = nodes("validator-2,validator-3,runner-0,runner-1,runner-2,runner-3");
    Fault { others, ..fault(3, FaultSpec::Partition { groups }) }
}

fn paused() -> Fault {
    fault(4, FaultSpec::Pause { at: "runner-1".to_owned() })
}

fn broken(request: &Request) -> Answer {
    match request.line.as_str() {
        "GET /v1/faults" | "DELETE /v1/faults" => Answer::json(&[partition(), paused()]),
        "DELETE /v1/faults/validator-2" => Answer::json(&Vec::<Fault>::new()),
        "DELETE /v1/faults/9" => {
            Answer::error(ErrorCode::NotFound, None, "there is no fault 9 in force")
        }
        "POST /v1/faults" => Answer::json(&partition()),
        _ => answer(request),
    }
}

fn whole(request: &Request) -> Answer {
    match request.line.contains("/v1/faults") {
        true => Answer::json(&Vec::<Fault>::new()),
        false => answer(request),
    }
}

#[test]
fn a_partition_has_all_its_groups() {
    let fake = Fake::new(broken);
    let mut all = String::new();
    for args in
        [&["fault", "partition", "validator-0,validator-1", "validator-10"][..], &["fault", "ls"]]
    {
        all += &format!("$ cowboyctl {}\n{}\n", args.join(" "), fake.folder.prints(args));
        let shown = on_terminal(&mut fake.folder.command(args), 80, true);
        all += &format!("$ cowboyctl {}   # 80\n{}\n", args.join(" "), shown.text);
    }
    insta::assert_snapshot!(all);
    let json = fake.folder.prints(&["fault", "ls", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["groups"][1], json!(["validator-10"]));
    assert_eq!(json[0]["others"][0], "validator-2");
    assert_eq!(json[1].get("others"), None);
}

#[test]
fn healing_says_what_was_healed() {
    let fake = Fake::new(broken);
    insta::assert_snapshot!(fake.folder.prints(&["fault", "heal"]), @"
    HEALED  WHAT       WHERE                                                                                                 SINCE BLOCK
         3  partition  validator-0,validator-1 | validator-10 | validator-2,validator-3,runner-0,runner-1,runner-2,runner-3           12
         4  pause      runner-1                                                                                                       12
    ");
    assert_eq!(fake.folder.prints(&["-q", "fault", "heal"]), "3\n4\n");
    fake.folder.fails(3, &["fault", "heal", "9"]);
}

#[test]
fn nothing_to_heal_is_no_failure() {
    let check = |fake: &Fake, args: &[&str], note: &str| {
        let outcome = fake.folder.run(&[&["fault", "heal"], args].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""), "{outcome:?}");
        assert_eq!(outcome.stderr, note);
        let json = fake.folder.run(&[&["fault", "heal", "-o", "json"], args].concat());
        assert_eq!((json.code, json.stdout.trim()), (0, "[]"), "{json:?}");
    };
    let fine = Fake::new(whole);
    check(&fine, &[], "nothing to heal: no fault is in force\n");
    let node = "nothing to heal: no fault is laid on `validator-2`\n";
    check(&fine, &["validator-2"], node);
    let parted = "a partition concerns all nodes: cowboyctl fault heal 3\n";
    check(&Fake::new(broken), &["validator-2"], &format!("{node}{parted}"));
}

#[test]
fn a_report_into_a_folder_that_is_not_there_is_told_how() {
    let fake = Fake::new(answer);
    insta::assert_snapshot!(fake.folder.fails(3, &["devnet", "report", "no/such/a.tar.zst"]), @"
    error: no/such: no such folder
      the report was to be no/such/a.tar.zst
      make it: mkdir -p no/such
    ");
    assert!(!fake.folder.path("no").exists());
}

#[test]
fn amounts_and_payloads_are_for_people_in_text_and_for_programs_in_json() {
    let sent = Transaction {
        payload: json!({
            "actor": format!("0x{}", "ac".repeat(20)),
            "handler": "bump",
            "payload": "0x83010203",
            "value": "1500000000",
        }),
        ..transaction()
    };
    let shown = sent.clone();
    let fake =
        Fake::new(move |request| match request.line.starts_with("GET /v1/chain/transactions/") {
            true => Answer::json(&shown),
            false => answer(request),
        });
    let id = hash(9).to_string();
    let text = fake.folder.prints(&["chain", "tx", &id]);
    assert!(text.contains(" payload=[1,2,3] value=1.5 CBY\n"), "{text}");
    assert!(text.contains("stake=10,000 CBY"), "{text}");
    let json = fake.folder.prints(&["chain", "tx", &id, "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["payload"], sent.payload);
    assert_eq!(json["events"][0]["data"]["stake"], "10000000000000");
}

fn transaction() -> Transaction {
    let event = Event {
        height: 43,
        index: 0,
        kind: "RunnerUpdated".to_owned(),
        transaction: None,
        timer: None,
        job_id: None,
        timer_id: None,
        data: json!({ "stake": "10000000000000" }),
    };
    Transaction { events: vec![event], ..answers::transaction(hash(9), TransactionStatus::Success) }
}
