//! Verification by clients: of a devnet that tells the truth, and of one that lies about one bit.

use crate::{
    liar::{Liar, Lie, api, get},
    shape,
    support::{Home, list},
    timers::{number, text},
};
use serde_json::Value;
use std::{fs, process::Command};

/// Flips a bit of a byte string or number in answers whose path has this ending. `at` is an offset
/// in hexadecimal digits from the end.
fn flipped(path: &str, pointer: &str, at: usize) -> Lie {
    changed(path, pointer, move |value| match value {
        Value::String(text) => {
            let place = text.len() - 1 - at;
            let digit = text.as_bytes()[place] as char;
            let digit = digit.to_digit(16).unwrap() ^ 1;
            let digit = char::from_digit(digit, 16).unwrap().to_string();
            text.replace_range(place..=place, &digit);
        }
        Value::Number(number) => *value = (number.as_u64().unwrap() ^ 1).into(),
        other => panic!("{other} has no bits"),
    })
}

/// Changes a value in answers whose path has this ending.
fn changed(path: &str, pointer: &str, change: impl Fn(&mut Value) + Send + 'static) -> Lie {
    let (path, pointer) = (path.to_owned(), pointer.to_owned());
    Box::new(move |asked, _, document| {
        if asked.ends_with(&path) {
            change(document.pointer_mut(&pointer).unwrap_or_else(|| panic!("{asked}: {pointer}")));
        }
    })
}

fn replaced(path: &str, pointer: &str, with: impl Into<Value>) -> Lie {
    let with = with.into();
    changed(path, pointer, move |value| *value = with.clone())
}

#[test]
fn a_devnet_that_lies_about_a_bit_is_found_out() {
    let home = Home::new();
    home.up(&["--wait", "4"]);
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    let id = text(&job["job_id"]).to_owned();
    let drawn = number(&home.json(&["job", "show", &id])["assigned_at"]);
    let height = drawn + 1;
    home.wait_height(height + 12);
    let liar = Liar::new(&home);
    let (at, range) = (height.to_string(), format!("1..{height}"));
    let presence = ["-o", "json", "presence", "verify", at.as_str()];
    let selection = ["-o", "json", "job", "verify-selection", id.as_str()];
    let blocks = ["-o", "json", "chain", "verify", range.as_str()];

    // The API tells the truth.
    for args in [&presence, &selection, &blocks] {
        let outcome = liar.run(&home, args, Box::new(|_, _, _| ()));
        assert_eq!(outcome.code, 0, "{args:?}: {outcome:?}");
        let report = outcome.json();
        assert_eq!((&report["valid"], list(&report["mismatches"]).len()), (&true.into(), 0));
        assert!(number(&report["replayed"]) >= drawn, "{report}");
        assert!(text(&report["trusted"]["source"]).contains("devnet `local`"), "{report}");
    }

    let check = |args: &[&str], lie: Lie, expected: &str| {
        let outcome = liar.run(&home, args, lie);
        assert_eq!(outcome.code, 7, "{args:?}: expected {expected}: {outcome:?}");
        let report = outcome.json();
        assert_eq!(report["valid"], false, "{report}");
        let found = report["mismatches"].to_string();
        assert!(found.contains(expected), "expected {expected}: {found}");
        assert!(outcome.stderr.contains("not verify"), "{outcome:?}");
    };
    let page = "/v1/chain/evidence?from=1";
    let block = |field: &str| format!("/blocks/{}/{field}", height - 1);

    // P(H): a bit in the answer and in the evidence; the present runners; the votes.
    let of = |tail: &str| format!("/v1/presence/{height}{tail}");
    let shown = format!("/v1/chain/blocks/{height}/evidence");
    check(&presence, flipped(&of(""), "/bitmap", 0), "bit 0 (runner-0) is 0, but the votes give");
    check(&presence, flipped(&shown, "/presence/bitmap", 0), "bit 0 (runner-0) is 0");
    check(&presence, replaced(&of(""), "/present/0", "runner-3"), "presence: present[0] is");
    check(&presence, flipped(&of(""), "/threshold", 0), "presence: threshold is");
    check(&presence, flipped(&of(""), "/embedded_in", 0), "embed");
    check(&presence, flipped(&of("/votes"), "/votes/1/bytes", 0), "votes: votes[1].bytes is");
    check(&presence, flipped(&of("/votes"), "/quorum", 0), "votes: quorum is");
    // The certificate as bytes, with the votes at their end, and as fields.
    check(&presence, flipped(&shown, "/certificate_bytes", 60), "is not signed by it");
    let signature = "/certificate/votes/0/signature";
    check(&presence, flipped(&shown, signature, 9), "evidence: certificate.votes[0].signature");
    check(&presence, flipped(&shown, "/certificate/view", 0), "evidence: certificate.view is");
    check(&presence, flipped(&shown, "/certificate/namespace", 0), "certificate.namespace is");
    check(&presence, flipped(&shown, "/block_bytes", 40), "evidence: block_bytes is");
    check(&presence, flipped(&shown, "/presence/registry/1", 5), "presence.registry[1] is");
    check(&presence, flipped(page, &block("block_bytes"), 500), &format!("block {height}: "));

    // A draw: verdicts of filters, weights, seed, points, drawn runners.
    let explained = format!("/v1/jobs/{id}/explain");
    let told = format!("/v1/jobs/{id}");
    let candidate = |field: &str| format!("/candidates/1/{field}");
    let dropped = "was dropped by presence (; stake";
    check(&selection, replaced(&explained, &candidate("filter"), "presence"), dropped);
    check(&selection, replaced(&explained, &candidate("reason"), "because"), "runner-1: reason is");
    check(&selection, flipped(&explained, &candidate("weight"), 0), "a candidate with weight");
    check(&selection, flipped(&explained, &candidate("stake"), 0), "runner-1 was a candidate");
    check(
        &selection,
        replaced(&explained, &candidate("runner"), "runner-2"),
        "runner-1: runner is",
    );
    check(&selection, flipped(&explained, "/seed", 3), "the draw's seed is");
    check(&selection, flipped(&explained, "/block_hash", 3), "the seed was made of");
    check(&selection, replaced(&explained, "/mru", "runner-1"), "runner-1 was favoured by MRU");
    check(&selection, flipped(&explained, "/draws/0/r", 0), "not those of the seed");
    // The draw's inputs, and its results under other rules.
    let weight = flipped(&explained, &candidate("first_weight"), 0);
    check(&selection, weight, "runner-1: first_weight is");
    check(&selection, flipped(&explained, "/presence/height", 0), "presence.height is");
    check(&selection, flipped(&explained, "/presence/block_hash", 0), "presence.block_hash is");
    check(&selection, replaced(&explained, "/phase", "shadow"), "phase is");
    let digest = replaced(&explained, "/seed_source/certificate_of", 1);
    check(&selection, digest, "seed_source.certificate_of is 1, should be absent");
    let other = replaced(&explained, "/under_other_rules/1/present/0", "runner-3");
    check(&selection, other, "under_other_rules[1].present[0] is");
    let none = replaced(&explained, "/under_other_rules", Vec::<Value>::new());
    check(&selection, none, "under_other_rules is []");
    check(&selection, flipped(&explained, "/candidates_root", 0), "candidates have root");
    check(&selection, flipped(&told, "/committee_addresses/0", 0), "the job's committee is");
    let other = replaced(&told, "/assigned_at", drawn + 2);
    check(&selection, other, "explains no draw of block");
    let early = format!("/blocks/{}/block_bytes", drawn - 2);
    check(&selection, flipped(page, &early, 500), &format!("block {}: ", drawn - 1));

    // Blocks: their bytes, certificates, hashes, states, order.
    check(&blocks, flipped(page, &block("block_bytes"), 77), &format!("block {height}: "));
    check(&blocks, flipped(page, &block("certificate_bytes"), 77), &format!("block {height}: "));
    check(&blocks, flipped(page, &block("hash"), 0), "the node says 0x");
    check(&blocks, flipped(page, &block("state_root"), 0), "it left state root 0x");
    let swapped = changed(page, "/blocks", |blocks| blocks.as_array_mut().unwrap().swap(1, 2));
    check(&blocks, swapped, "block 2: its bytes are those of block 3");
    shape::seen(&["presence verify", "job verify-selection", "chain verify"]);
}

#[test]
fn what_is_no_longer_there_is_not_verified() {
    let home = Home::new();
    home.up(&["--wait", "4"]);
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    let id = text(&job["job_id"]).to_owned();
    let liar = Liar::new(&home);
    let gone = || -> Lie {
        Box::new(|path, status, document| {
            if path.starts_with("/v1/chain/evidence") {
                *status = 410;
                *document = serde_json::json!({ "error": {
                    "code": "gone",
                    "name": "Pruned",
                    "message": "Pruned: block 1 is no longer kept; the oldest is 258",
                    "hint": "`storage.keep` in the topology says how much is kept",
                }});
            }
        })
    };
    let selection = ["-o", "json", "job", "verify-selection", id.as_str()];
    let found = liar.run(&home, &selection, gone());
    assert_eq!(found.code, 9, "{found:?}");
    let report = found.json();
    assert_eq!((&report["filters"], &report["valid"]), (&"recorded only".into(), &false.into()));
    assert_eq!(list(&report["mismatches"]).len(), 0, "{report}");
    assert_eq!(report["recomputed"], report["stored"]);
    for args in [["presence", "verify", "3"], ["chain", "verify", "1..3"]] {
        let found = liar.run(&home, &args, gone());
        assert_eq!(found.code, 9, "{found:?}");
        assert!(found.stderr.contains("the oldest is 258"), "{found:?}");
    }
    // The recorded part of the draw is repeated nevertheless.
    let explained = format!("/v1/jobs/{id}/explain");
    let (gone, draw) = (gone(), flipped(&explained, "/draws/0/r", 0));
    let both: Lie = Box::new(move |path, status, document| {
        gone(path, status, document);
        draw(path, status, document);
    });
    let found = liar.run(&home, &selection, both);
    assert_eq!((found.code, &found.json()["filters"]), (7, &"recorded only".into()), "{found:?}");
}

#[test]
fn a_verifier_in_python_derives_what_the_devnet_says() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("there is no python3: nothing is compared");
        return;
    }
    let home = Home::new();
    home.up(&["--wait", "6"]);
    let record = home.devnet("local").record().unwrap().unwrap();
    let (status, evidence) = get(api(&record), "/v1/chain/blocks/4/evidence");
    assert_eq!(status, 200, "{evidence}");
    let file = home.path("evidence.json");
    fs::write(&file, evidence.to_string()).unwrap();
    let validators = home.json(&["validator", "ls"]);
    let output = Command::new("python3")
        .args(["-B", concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/formats/verify_evidence.py")])
        .arg(&file)
        .args([&record.chain_id.to_string(), "committee"])
        .args(list(&validators).iter().map(|validator| text(&validator["consensus_key"])))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let shown = home.json(&["presence", "show", "4"]);
    assert_eq!((&said["presence"], &said["votes"]), (&shown["bitmap"], &3.into()));
}

#[test]
fn ranges_of_blocks_are_verified_or_refused() {
    let home = Home::new();
    home.up(&["--wait", "5"]);
    let report = home.json(&["chain", "verify", "2..latest"]);
    assert_eq!((&report["valid"], &report["from"]), (&true.into(), &2.into()), "{report}");
    assert_eq!(report["verified"], report["to"]);
    assert_eq!(list(&report["committees"][0]["validators"]).len(), 4);
    let block = home.json(&["chain", "block", &report["to"].to_string()]);
    assert_eq!((&block["hash"], &block["state_root"]), (&report["hash"], &report["state_root"]));
    let refused = home.fails(2, &["chain", "verify", "5..2"]);
    assert!(refused.contains("ends before it begins"), "{refused}");
    let refused = home.fails(3, &["chain", "verify", "1..1000000"]);
    assert!(refused.contains("is not final yet"), "{refused}");
    let refused = home.fails(2, &["chain", "verify", "1..2", "--about", "x"]);
    assert!(refused.contains("--about"), "{refused}");
}
