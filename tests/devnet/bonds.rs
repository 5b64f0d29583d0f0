//! Bonds and slashing on real devnets: the chain requires and slashes bonds, and the agent's books
//! are the sum of the chain's events. Also completions that build on an output other than the
//! completed one.

use crate::{
    shape,
    speculation::{ended, rollbacks, submit, task, until_task, wei},
    support::{Home, list, wait_until},
};
use cowboy_devnet::{
    client::Client,
    orchestrator::genesis::proof_seed,
    types::{Bytes, EventQuery, Text, TransactionRequest},
};
use cowboy_engine::{
    chain::{
        Payload, Transaction, inputs_digest, statement_agent, statement_task,
        tasks::{ClaimTask, CompleteTask, CreateCommitment, CreateTask, ResolveCommitment},
    },
    primitives::{Hash, Height, SecretKey, Wei, keccak256},
    proof::{Element, Statement, Witness, mock},
    speculation::RollbackReason,
};
use serde_json::{Value, json};

/// A devnet of this topology.
fn devnet(topology: &Value) -> Home {
    let home = Home::new();
    home.up_with(topology);
    home
}

/// An account's bonds of failed commitments according to the chain's events, in wei: slashed and
/// released.
fn resolved(home: &Home, agent: &str) -> (u128, u128) {
    let devnet = home.devnet("local");
    let client = Client::of_devnet(&devnet).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let page = runtime.block_on(client.events(&EventQuery {
        from: Some(1),
        kind: Some("CommitmentResolved".to_owned()),
        limit: Some(1_000),
    }));
    let page = page.unwrap();
    assert!(page.next.is_none(), "all of them");
    let events = page.events.iter().map(|event| &event.data);
    let failed = events.filter(|data| data["agent"] == agent && !data["reason"].is_null());
    failed.fold((0, 0), |(slashed, released), data| {
        (slashed + wei(&data["slashed"]), released + wei(&data["released"]))
    })
}

/// Compares the agent's books with the chain's events; returns the sum slashed, in wei.
fn books_agree(home: &Home) -> u128 {
    let key = home.devnet("local").account_key(&"agent".parse().unwrap()).unwrap().unwrap();
    let agent = key.address().to_string();
    wait_until("every bond is resolved on the chain", || {
        home.json(&["devnet", "status"])["supply"]["bonds"] == "0"
    });
    let mut status = Value::Null;
    let mut of_chain = (0, 0);
    wait_until("the agent has seen the last block with a resolution", || {
        status = home.json(&["speculation", "status"]);
        of_chain = resolved(home, &agent);
        wei(&status["stake_slashed"]) == of_chain.0
    });
    let deposit = wei(&status["stake_available"]) + wei(&status["stake_slashed"]);
    assert_eq!((deposit, &status["stake_locked"]), (100_000_000_000_000, &json!("0")), "{status}");
    let rows = home.json(&["speculation", "rollbacks", "--limit", "1000"]);
    let sum = |field: &str| list(&rows).iter().map(|row| wei(&row[field])).sum::<u128>();
    assert_eq!((sum("slashed"), sum("released")), of_chain, "{rows}");
    // The chain has slashed nothing else.
    let burned = home.json(&["chain", "burned"]);
    assert_eq!(wei(&burned["penalties"]), of_chain.0, "{burned}");
    of_chain.0
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Tasks with faults and random dependencies on earlier tasks.
fn random(seed: u64) -> Value {
    let mut random = Random(seed);
    let task = |at: u64| {
        let mut parents: Vec<Value> = Vec::new();
        for parent in 0..at {
            if random.below(4) == 0 {
                let order_only = random.below(3) == 0;
                parents.push(json!({ "task": format!("t{parent}"), "order_only": order_only }));
            }
        }
        let command = match random.below(9) {
            0 => json!(["false"]),
            // The output differs in each run.
            1 | 2 => json!(["sh", "-c", "date +%s%N"]),
            _ => json!(["sh", "-c", "cat; echo x"]),
        };
        let mut task = json!({
            "id": format!("t{at}"),
            "depends_on": parents,
            "command": command,
            "attempts": 1 + random.below(2),
            "checkpoint": random.below(2) == 0,
        });
        match random.below(6) {
            0 | 1 => task["fault"] = json!("wrong_proof"),
            2 => task["fault"] = json!("crash"),
            _ => {}
        }
        task
    };
    Value::Array((0..9).map(task).collect())
}

/// The audit's case, and random pipelines under odd parameters with kills and cancellations: the
/// agent's books are the sum of the chain's events, to the wei.
#[test]
fn the_agents_books_are_the_sum_of_the_chains_events() {
    let tasks = json!({
        "bond_base": 100_000_000_003_u64,
        "bond_per_depth": 49_999_999_999_u64,
        "slash_proof_failed": 5_000,
        "slash_proof_timeout": 411,
        "slash_ancestor_failed": 3,
        "slash_claim_expired": 777,
        "slash_manual_cancel": 199,
        "slash_commitment_expired": 1,
    });
    let home = devnet(&json!({
        "name": "local",
        "chain": { "block_time": "250ms" },
        "tasks": tasks,
        "speculation": {
            "enabled": true,
            "proof": { "generator": "mock", "timeoutMs": 2_000 },
            "breaker": { "threshold": 1_000 },
        },
    }));
    // Half of the bond, by the chain's parameters and not by the agent's options.
    let wrong = json!([{ "id": "a", "command": ["echo", "1"], "fault": "wrong_proof" }]);
    let number = submit(&home, &wrong);
    ended(&home, &number, "failed");
    assert_eq!(books_agree(&home), 50_000_000_001, "rounded down");
    let rows = rollbacks(&home, &number);
    assert_eq!(rows[0]["slashed"], "50000000001", "{rows:?}");
    assert_eq!(rows[0]["released"], "50000000002", "{rows:?}");
    for option in ["slash.proofFailed=0.5", "stake.slashPercentage=0.2"] {
        let refused = home.fails(2, &["speculation", "config", "set", option]);
        assert!(refused.contains("the chain says that, not its agents"), "{refused}");
        assert!(refused.contains("chain params get slash_proof_failed"), "{refused}");
    }
    // A cancellation with an open commitment is not free.
    let slow = json!([
        { "id": "slow", "command": ["echo", "1"], "fault": { "slow_ms": 1_500 } },
        { "id": "after", "depends_on": ["slow"], "command": ["cat"] },
    ]);
    let number = submit(&home, &slow);
    until_task(&home, &number, "after", |task| task["status"] == "proved");
    wait_until("both have committed", || {
        let bonds = home.json(&["devnet", "status"])["supply"]["bonds"].clone();
        wei(&bonds) == 2 * 100_000_000_003 + 50_000_000_000
    });
    let refused = home.fails(8, &["speculation", "retry", &number, "slow"]);
    assert!(refused.contains("task `slow` is proving: the pipeline still runs it"), "{refused}");
    home.json(&["speculation", "cancel", &number, "slow"]);
    ended(&home, &number, "cancelled");
    books_agree(&home);
    let rows = rollbacks(&home, &number);
    let refused = home.fails(8, &["speculation", "retry", &number]);
    assert!(refused.contains("nothing can be retried"), "{refused}");
    let cancelled = 100_000_000_003 * 199 / 10_000;
    let cascade = 150_000_000_003_u128 * 3 / 10_000;
    assert_eq!(wei(&rows[0]["slashed"]), cancelled + cascade, "{rows:?}");

    retried(&home);

    for (seed, policy) in [(1, "cascade"), (2, "checkpoint"), (3, "selective"), (4, "cascade")] {
        let policy = format!("rollbackPolicy={policy}");
        home.json(&["speculation", "config", "set", &policy]);
        let numbers = [submit(&home, &random(seed)), submit(&home, &random(seed + 100))];
        if seed == 2 {
            home.kill("local");
            home.up(&[]);
        }
        for number in numbers {
            wait_until("the pipeline has ended", || {
                home.json(&["speculation", "show", &number])["status"] != "running"
            });
        }
        assert!(books_agree(&home) > 0);
    }
    let cascades = home.json(&["chain", "events", "--from", "1", "--kind", "CommitmentResolved"]);
    assert!(cascades.to_string().contains("ancestor_failed"), "a cascade is called so");
    shape::seen(&["speculation rollbacks", "speculation status", "speculation retry"]);
}

/// Retries a task that failed for good and its descendants, across a kill; the books agree before
/// and after.
fn retried(home: &Home) {
    let tasks = json!([
        { "id": "root", "command": ["echo", "1"], "fault": "wrong_proof" },
        { "id": "middle", "depends_on": ["root"], "command": ["cat"] },
        { "id": "leaf", "depends_on": ["middle"], "command": ["cat"] },
        { "id": "other", "command": ["echo", "2"] },
    ]);
    let number = submit(home, &tasks);
    ended(home, &number, "failed");
    let slashed = books_agree(home);
    let retry = ["speculation", "retry", &number];
    home.fails(3, &[&retry[..], &["nothing"]].concat());
    let refused = home.fails(8, &[&retry[..], &["middle"]].concat());
    assert!(refused.contains("task `middle` depends on `root`, which is failed"), "{refused}");
    let refused = home.fails(8, &[&retry[..], &["root", "other"]].concat());
    assert!(refused.contains("task `other` is confirmed"), "{refused}");
    let again = home.json(&[&retry[..], &["root"]].concat());
    assert_eq!(again["tasks"], json!(["root", "middle", "leaf"]), "{again}");
    home.kill("local");
    home.up(&[]);
    let shown = ended(home, &number, "completed");
    assert_eq!(task(&shown, "root")["attempt"], 2, "{shown}");
    assert_eq!(task(&shown, "other")["attempt"], 1, "{shown}");
    assert!(shown["synchronous_ms"].is_null(), "it waited for people: {shown}");
    assert_eq!(books_agree(home), slashed, "nothing failed at the second attempt");
    let refused = home.fails(8, &retry);
    assert!(refused.contains("has no failed task"), "{refused}");
}

#[test]
fn bonds_are_parameters_of_the_chain() {
    let home = devnet(&json!({
        "name": "local",
        "tasks": { "bond_base": 60_000_000_000_u64 },
        "speculation": { "enabled": true, "mode": "aggressive", "proof": { "generator": "mock" } },
    }));
    let get = |key: &str| home.json(&["chain", "params", "get", key]);
    let base = get("bond_base");
    assert_eq!((&base["value"], &base["unit"]), (&60_000_000_000_u64.into(), &"wei".into()));
    assert_eq!((&base["source"], &base["min"]), (&"AgenC §4.4".into(), &1.into()), "{base}");
    assert_eq!(get("slash_manual_cancel")["value"], 200);
    let set = |setting: &str| ["chain", "params", "set", setting].map(str::to_owned);
    let refused = |setting: &str| {
        let args = set(setting);
        home.fails(6, &args.each_ref().map(String::as_str))
    };
    assert!(refused("bond_base=0").contains("ParameterOutOfRange"));
    assert!(refused("slash_proof_failed=5001").contains("is from 0 to 5000, not 5001"));

    // The agent's options require 50 CBY, the chain 60.
    let one = |n: u32| json!([{ "id": format!("t{n}"), "command": ["echo", "1"] }]);
    let bond = |number: &str| {
        let shown = ended(&home, number, "completed");
        wei(&list(&shown["graph"])[0]["bond"])
    };
    let number = submit(&home, &one(1));
    assert_eq!(bond(&number), 60_000_000_000);
    // The change has a height: tasks that were accepted before it are committed with higher bonds.
    let args = ["chain", "params", "set", "bond_base=70000000001", "slash_manual_cancel=0"];
    let at = home.json(&[&args[..], &["--at", "+20"]].concat())["from"].as_u64().unwrap();
    let numbers: Vec<String> = (2..8).map(|n| submit(&home, &one(n))).collect();
    home.wait_height(at + 1);
    for number in &numbers {
        assert!([60_000_000_000, 70_000_000_001].contains(&bond(number)), "{number}");
    }
    let number = submit(&home, &one(9));
    assert_eq!(bond(&number), 70_000_000_001);
    let events = ["chain", "events", "--from", "0", "--kind", "TaskTermsActivated"];
    let events = home.json(&events);
    assert_eq!(list(&events)[0]["height"], at, "{events}");
    books_agree(&home);
    shape::seen(&["chain params get", "chain params set"]);
}

/// An account that sends its own transactions, without the agent.
struct Hand {
    client: Client,
    key: SecretKey,
    name: &'static str,
}

impl Hand {
    fn of(home: &Home, name: &'static str) -> Self {
        let devnet = home.devnet("local");
        let key = devnet.account_key(&name.parse().unwrap()).unwrap().unwrap();
        Self { client: Client::of_devnet(&devnet).unwrap(), key, name }
    }

    /// Sends a transaction and waits until it is in a block; returns its error if it failed.
    fn send(&self, home: &Home, payload: Payload) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let hash = runtime.block_on(async {
            let parameters = self.client.parameters().await.unwrap();
            let transaction = Transaction::with_limits(
                parameters.chain_id.0.0,
                self.client.account(self.name).await.unwrap().next_nonce,
                *parameters.cycle_basefee,
                *parameters.cell_basefee,
                payload,
            );
            let transaction = Text(Bytes(transaction.sign(&self.key).to_bytes()));
            self.client.submit(&TransactionRequest { transaction }).await.unwrap().hash
        });
        let mut shown = Value::Null;
        let hash = hash.to_string();
        wait_until("the transaction is in a block", || {
            let outcome = home.run(&["chain", "tx", &hash, "-o", "json"]);
            shown = serde_json::from_str(&outcome.stdout).unwrap_or_default();
            shown["status"].is_string() && shown["status"] != "pending"
        });
        shown["error"].as_str().map(str::to_owned)
    }

    fn done(&self, home: &Home, payload: Payload) {
        assert_eq!(self.send(home, payload), None);
    }

    fn refused(&self, home: &Home, payload: Payload, error: &str) {
        let text = self.send(home, payload).unwrap();
        assert_eq!(text, error);
    }
}

fn witness(output: u64) -> Witness {
    Witness { output: [output, 2, 3, 4].map(Element::from), salt: Element::from(5) }
}

/// The chain protects itself from any agent: it completes no child of an abandoned output, accepts
/// no bond below the minimum, and allows a cascade only after a failure.
#[test]
fn the_chain_refuses_what_was_built_on_another_output() {
    let home = devnet(&json!({
        "name": "local",
        "chain": { "block_time": "250ms" },
        "speculation": { "proof": { "generator": "mock" } },
    }));
    let file = home.path("topology.yaml");
    let plan = home.json(&["devnet", "validate", file.to_str().unwrap()]);
    let seed = proof_seed(plan["seed"].as_u64().unwrap());
    let (bob, carol) = (Hand::of(&home, "dev-0"), Hand::of(&home, "dev-1"));
    let (parent, child) = (keccak256(&[b"parent"]), keccak256(&[b"child"]));
    let last = Height::new(home.height() + 10_000);
    let create = |task_id, depends_on| {
        let (order_only, constraint_hash, reward) = (vec![], None, Wei::cby(1));
        let deadline = last;
        Payload::CreateTask(CreateTask {
            task_id,
            depends_on,
            order_only,
            constraint_hash,
            requirements: vec![],
            reward,
            deadline,
        })
    };
    let claim = |task_id| Payload::ClaimTask(ClaimTask { task_id, expires_at: last });
    let commit = |task_id, output: u64, inputs, bond| {
        let output_commitment = witness(output).output_commitment();
        Payload::CreateCommitment(CreateCommitment {
            task_id,
            output_commitment,
            inputs,
            bond,
            expires_at: None,
        })
    };
    let complete = |hand: &Hand, task_id: Hash, parents: Vec<Hash>, output: u64, inputs: &Hash| {
        let agent = statement_agent(&hand.key.address());
        let task = statement_task(&task_id, inputs);
        let proof = mock::prove(&seed, &Statement::of(&task, &agent, &witness(output)));
        Payload::CompleteTask(CompleteTask { task_id, parents, proof: proof.to_vec() })
    };
    let resolve = |task_id, reason| {
        Payload::ResolveCommitment(ResolveCommitment { task_id, reason: Some(reason) })
    };
    let none = inputs_digest([]);
    let of = |output: u64| inputs_digest([(parent, witness(output).output_commitment())]);
    let bond = Wei::cby(75);

    bob.done(&home, create(parent, vec![]));
    bob.done(&home, create(child, vec![parent]));
    bob.done(&home, claim(parent));
    carol.done(&home, claim(child));
    carol.refused(&home, commit(child, 7, of(1), bond), "ParentNotCommitted");
    bob.refused(&home, commit(parent, 1, none, Wei::ZERO), "BondTooLow");
    bob.done(&home, commit(parent, 1, none, bond));
    carol.refused(&home, commit(child, 7, of(1), Wei::cby(74)), "BondTooLow");
    carol.done(&home, commit(child, 7, of(1), bond));
    carol.refused(&home, resolve(child, RollbackReason::AncestorFailed), "NoAncestorFailed");
    // A refused proof removes the commitment in the same block.
    bob.refused(&home, complete(&bob, parent, vec![], 9, &none), "BadProof");
    assert_eq!(wei(&home.json(&["devnet", "status"])["supply"]["bonds"]), bond.get());
    bob.refused(&home, resolve(parent, RollbackReason::ManualCancel), "NotClaimed");
    // The parent is done again, with another output.
    bob.done(&home, claim(parent));
    bob.done(&home, commit(parent, 2, none, bond));
    bob.done(&home, complete(&bob, parent, vec![], 2, &none));
    carol.refused(&home, complete(&carol, child, vec![parent], 7, &of(1)), "StaleInputs");
    carol.done(&home, resolve(child, RollbackReason::AncestorFailed));
    carol.done(&home, claim(child));
    carol.refused(&home, commit(child, 7, of(1), bond), "StaleInputs");
    carol.done(&home, commit(child, 8, of(2), bond));
    carol.done(&home, complete(&carol, child, vec![parent], 8, &of(2)));
}
