//! Proofs on real devnets: false ones that only the pairing refuses, provers that are killed, and
//! proofs that a client checks itself.

use crate::{
    liar::Liar,
    shape,
    speculation::{
        configure, devnet, ended, five, passes_on, rollbacks, settled, submit, task, until_task,
        wei,
    },
    support::{Home, list, wait_until},
    timers::{number as number_of, text},
};
use cowboy_devnet::types::{Bytes, Text};
use cowboy_engine::proof::{PROOF_BYTES, Proof};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::fs;

/// The transactions with a task's proofs, the oldest first.
fn completions(home: &Home, number: &str, name: &str) -> Vec<Value> {
    let shown = home.json(&["speculation", "show", number, name]);
    let sent = list(&shown["transactions"]).iter();
    let sent = sent.filter(|sent| sent["kind"] == "complete_task_private");
    sent.map(|sent| home.json(&["chain", "tx", text(&sent["transaction"])])).collect()
}

fn proof(transaction: &Value) -> Vec<u8> {
    let Text(Bytes(proof)) = text(&transaction["payload"]["proof"]).parse().unwrap();
    proof
}

/// The faults of the roots' proofs in chains of three: the first proof is undecodable, only the
/// pairing refuses the others.
const FALSE: [&str; 4] = ["wrong_proof", "wrong_output", "other_tasks_proof", "old_proof"];

/// A pipeline of these chains, in the order of their names.
fn false_proofs() -> Value {
    let chain = |fault: &&str| {
        let of = |task: &str, parents: &[&str]| passes_on(fault, task, parents, 2);
        let mut root = of("a", &[]);
        root["command"] = json!(["echo", fault]);
        root["fault"] = json!(fault);
        [root, of("b", &["a"]), of("c", &["b"])]
    };
    FALSE.iter().flat_map(chain).collect()
}

#[test]
fn false_proofs_are_refused_by_the_pairing_and_cost_their_bond_at_once() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "300ms", "workerThreads": 12 },
        "breaker": { "threshold": 100 },
    }));
    let number = submit(&home, &false_proofs());
    let shown = ended(&home, &number, "completed");
    let undone = rollbacks(&home, &number);
    assert_eq!(undone.len(), FALSE.len(), "{undone:?}");
    let resolved = ["chain", "events", "--from", "1", "--kind", "CommitmentResolved"];
    let resolved = home.json(&resolved);
    for fault in FALSE {
        let root = format!("{fault}-a");
        assert_eq!(task(&shown, &root)["attempt"], 2, "{shown}");
        let [refused, taken] = &completions(&home, &number, &root)[..] else {
            panic!("{fault}: not two proofs");
        };
        assert_eq!((&refused["status"], &refused["error"]), (&json!("failed"), &json!("BadProof")));
        let (bytes, message) = (proof(refused), text(&refused["message"]));
        assert_eq!((bytes.len(), taken["status"] == "success"), (PROOF_BYTES, true), "{taken}");
        let decoded = Proof::from_bytes(&bytes);
        if fault == "wrong_proof" {
            assert!(decoded.is_err() && message.starts_with("malformed proof: point"), "{message}");
        } else {
            // It decodes and has the true proof's statement, but is another proof.
            let statement = Proof::from_bytes(&proof(taken)).unwrap().statement;
            assert_eq!(decoded.unwrap().statement, statement, "{fault}");
            assert_eq!(message, "the proof does not hold", "{fault}");
        }
        // The bond is slashed in the same block, without a transaction of the agent.
        let id = &task(&shown, &root)["task_id"];
        let events = list(&resolved).iter();
        let mut events = events.filter(|e| e["data"]["task_id"] == *id);
        let event = events.next().unwrap();
        assert_eq!(
            (&event["height"], &event["transaction"]),
            (&refused["height"], &refused["hash"])
        );
        assert_eq!(event["data"]["reason"], "proof_failed", "{event}");
        assert!(wei(&event["data"]["slashed"]) > 0, "{event}");
        // Its descendants are undone, leaves first.
        let row = undone.iter().find(|row| row["task"] == root.as_str()).unwrap();
        assert_eq!(row["reason"], "proof_failed", "{row}");
        let names = ["c", "b", "a"].map(|at| format!("{fault}-{at}"));
        assert_eq!(row["undone"], json!(names), "{row}");
    }
    verified(&home, &number);
}

/// Checks `speculation verify` on some of those tasks, and against an API that lies.
fn verified(home: &Home, number: &str) {
    let verify = |name: &str| home.json(&["speculation", "verify", number, name]);
    let checks = |report: &Value| {
        let all = list(&report["checks"]).iter();
        let all = all.map(|check| (text(&check["check"]).to_owned(), check["holds"] == true));
        all.collect::<Vec<_>>()
    };
    let all = [
        "block",
        "transaction",
        "sender",
        "outcome",
        "decoding",
        "task",
        "agent",
        "constraint",
        "commitment",
        "proof",
    ];
    for name in ["old_proof-a", "old_proof-c"] {
        let report = verify(name);
        let holds = all.map(|check| (check.to_owned(), true));
        assert_eq!((checks(&report), &report["valid"]), (holds.into(), &json!(true)), "{report}");
        let shown = home.json(&["speculation", "show", number, name]);
        assert_eq!(report["output_commitment"], shown["output_commitment"], "{report}");
        assert_eq!(report["task_id"], shown["task_id"], "{report}");
    }
    let table = home.run(&["speculation", "verify", number, "old_proof-c"]).stdout;
    assert!(table.contains("under key 0x"), "{table}");
    home.fails(3, &["speculation", "verify", number, "none"]);

    let [refused, taken] = &completions(home, number, "old_proof-a")[..] else { panic!("not two") };
    let other = completions(home, number, "old_proof-b").pop().unwrap();
    let hash = |transaction: &Value| text(&transaction["hash"]).to_owned();
    // The command names the first failed check, and prints the document nevertheless.
    let liar = Liar::new(home);
    let lie = |from: String, to: String, first: &str| {
        let args = ["-o", "json", "speculation", "verify", number, "old_proof-a"];
        let told = liar.run(
            home,
            &args,
            Box::new(move |_, _, document| {
                *document =
                    serde_json::from_str(&document.to_string().replace(&from, &to)).unwrap();
            }),
        );
        assert_eq!(told.code, 7, "{first}: {told:?}");
        let report = told.json();
        let mut failed = checks(&report).into_iter().filter(|(_, holds)| !holds);
        assert_eq!(failed.next(), Some((first.to_owned(), false)), "{report}");
        assert!(told.stderr.contains(&format!("{first}: ")), "{told:?}");
        report
    };
    // Another proof of the same task, which the chain refused.
    let report = lie(hash(taken), hash(refused), "outcome");
    let proof_check = list(&report["checks"]).last().unwrap();
    assert_eq!((&proof_check["check"], &proof_check["holds"]), (&json!("proof"), &json!(false)));
    assert!(text(&proof_check["detail"]).contains("the proof does not hold"), "{report}");
    // Another task's proof, in its own transaction and in this task's.
    lie(hash(taken), hash(&other), "transaction");
    let bytes = |transaction: &Value| text(&transaction["payload"]["proof"])[2..].to_owned();
    lie(bytes(taken), bytes(&other), "block");
    // A block without the transaction.
    let height = |at: u64| format!("\"height\":{at},\"index\"");
    let at = number_of(&taken["height"]);
    lie(height(at), height(at - 1), "block");
    lie(height(at), height(0), "block");
    // Another task's identifier.
    let id = |name: &str| text(&verify(name)["task_id"]).to_owned();
    lie(id("old_proof-a"), id("old_proof-b"), "transaction");
    shape::seen(&["speculation verify"]);
}

/// The running provers of a devnet.
fn provers(home: &Home) -> Vec<Pid> {
    let devnet = home.pid("local").as_raw_nonzero();
    let of = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned();
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let is_one = parent == devnet.to_string() && line.ends_with(b"\0__prover\0");
        is_one.then(|| Pid::from_raw(pid))?
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.unwrap())).collect()
}

/// Killing a prover at work costs the time of a proof, and no bond.
#[test]
fn a_proof_whose_prover_is_killed_is_made_again() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "3s", "workerThreads": 5 },
    }));
    let number = submit(&home, &five());
    wait_until("five prove", || home.json(&["speculation", "status"])["proofs_proving"] == 5);
    let killed = provers(&home);
    for pid in &killed {
        // Provers get their inputs through standard input.
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap();
        assert!(environment.is_empty());
        kill_process(*pid, Signal::KILL).unwrap();
    }
    wait_until("each proof is begun again", || {
        let shown = home.json(&["speculation", "show", &number]);
        list(&shown["graph"])
            .iter()
            .all(|task| task["reason"] == "its prover died: signal: 9 (SIGKILL), at attempt 1 of 3")
    });
    let shown = ended(&home, &number, "completed");
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(task(&shown, name)["attempt"], 1, "{shown}");
    }
    assert!(rollbacks(&home, &number).is_empty());
    settled(&home);
    let status = home.json(&["speculation", "status"]);
    assert_eq!(status["stake_slashed"], "0", "{status}");
    // The five provers of the second attempt are idle, and serve the next pipeline.
    let second = provers(&home);
    assert!(second.len() == 5 && killed.iter().all(|pid| !second.contains(pid)), "{second:?}");

    // Without another attempt the proof fails, as the rules say.
    configure(&home, &["maxRetries=1"]);
    let one = json!([{ "id": "a", "command": ["echo", "1"] }]);
    let number = submit(&home, &one);
    until_task(&home, &number, "a", |task| task["status"] == "proving");
    assert_eq!(provers(&home), second, "no new one");
    for pid in &second {
        kill_process(*pid, Signal::KILL).unwrap();
    }
    let shown = ended(&home, &number, "failed");
    let reason = text(&task(&shown, "a")["reason"]);
    assert_eq!(reason, "its prover died: signal: 9 (SIGKILL), at attempt 1 of 1", "{shown}");

    // A prover that takes too long is killed.
    configure(&home, &["proof.timeoutMs=4000"]);
    let slow = json!([{ "id": "a", "command": ["echo", "1"], "fault": { "slow_ms": 600_000 } }]);
    let number = submit(&home, &slow);
    wait_until("it proves", || home.json(&["speculation", "status"])["proofs_proving"] == 1);
    let late = provers(&home);
    assert_eq!(late.len(), 1);
    ended(&home, &number, "failed");
    assert_eq!(rollbacks(&home, &number)[0]["reason"], "proof_timeout");
    wait_until("its prover has ended", || provers(&home).is_empty());

    // A killed devnet leaves no prover.
    let number = submit(&home, &one);
    wait_until("a new one proves", || home.json(&["speculation", "status"])["proofs_proving"] == 1);
    let orphans = provers(&home);
    assert_eq!(orphans.len(), 1);
    home.kill("local");
    wait_until("its prover has ended", || test_kill_process(orphans[0]).is_err());
    home.up(&[]);
    ended(&home, &number, "completed");
}
