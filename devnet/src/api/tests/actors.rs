//! Actors over the API: deployments and stores, dry runs at any recent height, logs.

use super::fixture::*;
use crate::{
    chain::ledger::STATES_KEPT,
    types::{
        Actor, ActorLineKind, ActorQuery, AmountText, Bytes, DryRunRequest, ErrorCode, LogQuery,
        StoreQuery, Text, TransactionStatus,
    },
};
use cowboy_engine::{
    actor::Budget,
    chain::{
        ActorCode, Language, Payload,
        transaction::{CallActor, DeployActor},
    },
    job::spec::{Callback, JobSpec},
    primitives::{Address, Hash, Wei},
};
use serde_json::{Value, json};

const COUNTER: &str = r#"
def bump(ctx, payload):
    n = pvm_host.get_state("n", 0) + 1
    pvm_host.set_state("n", n)
    pvm_host.log("bumped to", n)
    pvm_host.emit("bumped", {"n": n, "big": 1 << 70})
    return n

def read(ctx, payload):
    return pvm_host.get_state("n", 0)

def put(ctx, payload):
    pvm_host.set_state(payload, len(payload))

def crash(ctx, payload):
    pvm_host.log("about to fail")
    fail("no way")

def fill(ctx, payload):
    pvm_host.set_state(payload, "x" * 200000)
"#;

const BUDGET: Budget = Budget { cycles: 500_000, cells: 300_000 };

impl Devnet {
    /// Makes a metered transaction of `dev-0` final, and returns its hash.
    pub(super) fn metered(&mut self, payload: Payload) -> Hash {
        let signed = self.sign("dev-0", payload);
        let signed = signed.transaction.clone().buying(BUDGET).sign(&key("dev-0"));
        self.push(vec![signed.clone()]);
        signed.hash()
    }

    fn deploy(&mut self) -> Address {
        self.deploy_module(COUNTER)
    }

    /// Deploys an actor of `dev-0`.
    pub(super) fn deploy_module(&mut self, source: &str) -> Address {
        let nonce = self.state.account(&address("dev-0")).nonce;
        self.metered(Payload::DeployActor(DeployActor { source: source.to_owned() }));
        Address::of_actor(&address("dev-0"), nonce)
    }

    pub(super) fn call(&mut self, actor: Address, handler: &str, payload: &str) -> Hash {
        let (handler, payload) = (handler.to_owned(), payload.as_bytes().to_vec());
        let value = Wei::ZERO;
        self.metered(Payload::CallActor(CallActor { actor, handler, payload, value }))
    }
}

fn trial(handler: &str, at: Option<u64>) -> DryRunRequest {
    DryRunRequest {
        sender: "dev-0".to_owned(),
        handler: handler.to_owned(),
        payload: Text(Bytes::default()),
        value: AmountText::default(),
        cycles: None,
        cells: None,
        timer_allowance: None,
        at,
        ask_agent: None,
        trace: None,
        profile: None,
        source: None,
    }
}

fn all() -> StoreQuery {
    StoreQuery::default()
}

fn after(block: u64) -> StoreQuery {
    StoreQuery { at: Some(block), ..StoreQuery::default() }
}

#[tokio::test]
async fn actors_are_listed_and_shown() {
    let mut devnet = Devnet::new().await;
    let (first, second) = (devnet.deploy(), devnet.deploy());
    devnet.call(first, "bump", "");
    let listed = devnet.client.actors(&ActorQuery::default()).await.unwrap();
    let addresses: Vec<_> = listed.iter().map(|actor| *actor.actor).collect();
    assert_eq!(addresses, [second, first]);
    let query = |deployer: &str, limit| ActorQuery { deployer: Some(deployer.to_owned()), limit };
    assert_eq!(devnet.client.actors(&query("dev-0", Some(1))).await.unwrap(), listed[..1]);
    assert_eq!(devnet.client.actors(&query("faucet", None)).await.unwrap(), []);

    let actor = devnet.client.actor(&first.to_string(), &all()).await.unwrap();
    assert_eq!((actor.deployer_name.as_deref(), actor.deployed_at), (Some("dev-0"), 1));
    assert_eq!(
        (*actor.code, actor.source.as_str()),
        (ActorCode::hash(Language::Starlark, COUNTER), COUNTER)
    );
    let handlers: Vec<_> = actor.handlers.iter().map(|h| (h.name.as_str(), h.line)).collect();
    let expected = [("bump", 2), ("crash", 15), ("fill", 19), ("put", 12), ("read", 9)];
    assert_eq!(handlers, expected);
    assert_eq!(actor.handlers[0].parameters, ["ctx", "payload"]);
    assert_eq!(
        actor.state.iter().map(|e| (e.key.as_str(), &e.value)).collect::<Vec<_>>(),
        [("n", &json!(1))]
    );

    // The beginning of an address is enough if it is unambiguous.
    let (a, b) = (first.to_string(), second.to_string());
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!(devnet.client.actor(&a[..=common], &all()).await.unwrap(), actor);
    let error = devnet.client.actor(&a[..2], &all()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    if common > 2 {
        let error = devnet.client.actor(&a[..common], &all()).await.unwrap_err();
        assert!(error.to_string().contains("is the beginning of"), "{error}");
    }
    for unknown in ["0x", "0xzz", "counter", "dev-0", &address("faucet").to_string()] {
        let error = devnet.client.actor(unknown, &all()).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::NotFound), "{unknown}: {error}");
    }
}

#[tokio::test]
async fn a_store_is_read_in_pages() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    for key in ["b", "a/2", "a/1", "c", "a/3"] {
        devnet.call(actor, "put", key);
    }
    let page = async |prefix: Option<&str>, from: Option<&str>, limit| {
        let (prefix, from) = (prefix.map(str::to_owned), from.map(str::to_owned));
        let query = StoreQuery { prefix, from, limit, at: None };
        let shown = devnet.client.actor(&actor.to_string(), &query).await.unwrap();
        (shown.state.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), shown.next)
    };
    let next = |key: &str| Some(key.to_owned());
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_eq!(page(None, None, None).await, (keys(&["a/1", "a/2", "a/3", "b", "c"]), None));
    assert_eq!(page(None, None, Some(2)).await, (keys(&["a/1", "a/2"]), next("a/3")));
    assert_eq!(page(None, Some("a/3"), Some(2)).await, (keys(&["a/3", "b"]), next("c")));
    assert_eq!(page(Some("a/"), None, None).await, (keys(&["a/1", "a/2", "a/3"]), None));
    assert_eq!(page(Some("a/"), Some("a/3"), None).await, (keys(&["a/3"]), None));
    assert_eq!(page(Some("a/"), Some("b"), None).await, (keys(&[]), None));
    assert_eq!(page(Some("d"), None, Some(0)).await, (keys(&[]), None));
}

#[tokio::test]
async fn large_values_make_short_pages() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    for key in 10..60 {
        devnet.call(actor, "fill", &key.to_string());
    }
    let (mut from, mut sizes) = (None, Vec::new());
    loop {
        let query = StoreQuery { from, ..StoreQuery::default() };
        let page = devnet.client.actor(&actor.to_string(), &query).await.unwrap();
        sizes.push(page.state.len());
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [41, 9]);
}

#[tokio::test]
async fn a_receipt_tells_what_actors_did() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    let called = devnet.call(actor, "bump", "hi");
    let transaction = devnet.client.transaction(&called.to_string()).await.unwrap();
    assert_eq!(transaction.kind, "call_actor");
    assert_eq!(transaction.payload["payload"], "0x6869");
    let receipt = transaction.actor.unwrap();
    assert_eq!((receipt.result, receipt.deliveries), (Some(json!(1)), 1));
    assert_eq!((*receipt.actor, receipt.log[0].text.as_str()), (actor, "bumped to 1"));
    let causes = receipt.usage.by_cause;
    assert!(causes.evaluation > 0 && causes.storage > 0 && causes.effects > 0);
    // At least an eighth of the bought cycles is paid for, used or not.
    let fee = transaction.fee.unwrap();
    assert_eq!(fee.cycles, (21_000 + BUDGET.cycles) / 8);
    assert_eq!(fee.cycles - fee.unused, 21_000 + receipt.usage.cycles);
    let emitted = transaction.events.iter().find(|event| event.kind == "ActorEmitted").unwrap();
    let data = json!({"n": 1, "big": "1180591620717411303424"});
    assert_eq!(emitted.data, json!({"actor": actor.to_string(), "name": "bumped", "data": data}));

    let failed = devnet.call(actor, "crash", "");
    let transaction = devnet.client.transaction(&failed.to_string()).await.unwrap();
    assert_eq!(transaction.status, TransactionStatus::Failed);
    assert_eq!(transaction.error.as_deref(), Some("ActorError"));
    assert!(transaction.message.unwrap().contains("\n  in crash at 17:"));
    let receipt = transaction.actor.unwrap();
    assert_eq!((receipt.result, receipt.log.len()), (None, 1));
    assert!(transaction.events.is_empty() && receipt.usage.cycles > 0);

    let parameters = devnet.client.parameters().await.unwrap();
    assert_eq!(
        cowboy_engine::actor::ActorParams::from(parameters.actors),
        devnet.state.params().actors
    );
}

#[tokio::test]
async fn a_dry_run_reads_any_recent_state_and_changes_none() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    for _ in 0..3 {
        devnet.call(actor, "bump", "");
    }
    let root = devnet.state.root();
    let run = async |handler: &str, at: Option<u64>| {
        devnet.client.dry_run(&actor.to_string(), &trial(handler, at)).await
    };
    for (at, n) in [(None, 3), (Some(4), 3), (Some(3), 2), (Some(1), 0)] {
        let tried = run("read", at).await.unwrap();
        assert_eq!((tried.success, tried.result), (true, Some(json!(n))));
        assert_eq!(tried.at, at.unwrap_or(4));
    }
    let tried = run("bump", None).await.unwrap();
    assert_eq!(tried.changes.len(), 1);
    let change = &tried.changes[0];
    assert_eq!((change.before.clone(), change.after.clone()), (Some(json!(3)), Some(json!(4))));
    let kinds: Vec<_> = tried.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!((kinds, tried.deliveries), (vec!["ActorCalled", "ActorEmitted"], 1));
    assert!(tried.usage.cycles > 0 && tried.usage.cells > 0);

    let failed = run("crash", None).await.unwrap();
    assert_eq!((failed.success, failed.error.as_deref()), (false, Some("ActorError")));
    assert!(failed.message.unwrap().contains("no way"));
    assert_eq!((failed.log.len(), failed.changes.len()), (1, 0));
    let short = DryRunRequest { cycles: Some(50), ..trial("bump", None) };
    let short = devnet.client.dry_run(&actor.to_string(), &short).await.unwrap();
    assert_eq!(short.error.as_deref(), Some("OutOfCycles"));

    let check = async |error: Result<_, crate::client::ClientError>, code, text: &str| {
        let error = error.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    check(run("read", Some(9)).await, ErrorCode::NotFound, "not final yet").await;
    check(run("read", Some(0)).await, ErrorCode::NotFound, "no actor at").await;
    assert_eq!(devnet.state.root(), root);
}

#[tokio::test]
async fn a_dry_run_takes_other_code() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    devnet.call(actor, "bump", "");
    let run = async |source: &str, handler: &str| {
        let request = DryRunRequest { source: Some(source.to_owned()), ..trial(handler, None) };
        devnet.client.dry_run(&actor.to_string(), &request).await
    };
    let source = "def twice(ctx, payload):\n    return 2 * pvm_host.get_state(\"n\")\n";
    let tried = run(source, "twice").await.unwrap();
    assert_eq!((tried.result, tried.usage.by_cause.loading), (Some(json!(2)), 0));
    let gone = run(source, "bump").await.unwrap();
    assert!(gone.message.unwrap().starts_with("UnknownHandler"));
    let refused = run("def twice(ctx, payload):\n    return nothing\n", "twice").await.unwrap();
    assert_eq!(refused.error.as_deref(), Some("ModuleRefused"));
    assert!(refused.message.unwrap().contains("(at 2:12)"));
    let agent = run(source, "getGasBid").await.unwrap_err();
    assert_eq!(agent.code(), Some(ErrorCode::BadRequest), "{agent}");
    let long = run(&"#".repeat(3 << 20), "twice").await.unwrap_err();
    assert!(long.to_string().contains("the body is longer than"), "{long}");
}

#[tokio::test]
async fn a_state_that_is_too_old_is_said_to_be() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    devnet.push_empty(STATES_KEPT as u64);
    let request = trial("read", Some(1));
    let error = devnet.client.dry_run(&actor.to_string(), &request).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    assert!(error.to_string().contains("is no longer kept"), "{error}");
    let old = devnet.client.actor(&actor.to_string(), &after(1)).await.unwrap_err();
    assert_eq!(old.to_string(), error.to_string());
    let request = trial("read", Some(2));
    assert!(devnet.client.dry_run(&actor.to_string(), &request).await.is_ok());
    assert!(devnet.client.actor(&actor.to_string(), &after(2)).await.is_ok());
}

#[tokio::test]
async fn an_actor_is_shown_as_it_was() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    devnet.call(actor, "bump", "");
    devnet.call(actor, "bump", "");
    let shown = async |query: StoreQuery| devnet.client.actor(&actor.to_string(), &query).await;
    let stored = |shown: Actor| shown.state.into_iter().map(|e| e.value).collect::<Vec<_>>();
    for (at, expected) in [(1, vec![]), (2, vec![json!(1)]), (3, vec![json!(2)])] {
        assert_eq!(stored(shown(after(at)).await.unwrap()), expected, "after {at}");
    }
    for (at, says) in [(0, "there is no actor"), (4, "not final yet")] {
        let error = shown(after(at)).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::NotFound), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn a_dry_run_can_be_asked_of_a_validator() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    devnet.push_to(&[1], vec![], vec![]);
    let at = async |validator: &str| {
        let client = devnet.at(validator);
        client.dry_run(&actor.to_string(), &trial("read", None)).await.unwrap().at
    };
    assert_eq!((at("validator-0").await, at("validator-1").await), (1, 2));
}

#[tokio::test]
async fn logs_hold_lines_events_and_failures() {
    let mut devnet = Devnet::new().await;
    let (actor, other) = (devnet.deploy(), devnet.deploy());
    let called = devnet.call(actor, "bump", "");
    devnet.call(other, "bump", "");
    devnet.call(actor, "crash", "");
    devnet.call(actor, "bump", "");
    let log = async |from: Option<u64>, limit: Option<usize>| {
        let query = LogQuery { from, limit };
        let log = devnet.client.actor_log(&actor.to_string(), &query).await.unwrap();
        let lines: Vec<_> = log.lines.iter().map(|line| (line.height, line.kind)).collect();
        (lines, log)
    };
    use ActorLineKind::{Error, Event, Log};

    let all = [(3, Log), (3, Event), (5, Log), (5, Error), (6, Log), (6, Event)];
    let (lines, page) = log(None, None).await;
    assert_eq!((lines.as_slice(), page.next), (&all[..], 7));
    let [first, second, _, fourth, ..] = page.lines.as_slice() else { panic!("{page:?}") };
    assert_eq!(
        (first.text.as_deref(), first.transaction),
        (Some("bumped to 1"), Some(called.into()))
    );
    assert_eq!(second.name.as_deref(), Some("bumped"));
    assert_eq!(second.data.as_ref().map(|data| &data["n"]), Some(&Value::from(1)));
    assert!(fourth.text.as_ref().is_some_and(|text| text.starts_with("ActorError: ")));
    // Without a height, the last lines; with one, whole blocks.
    assert_eq!(log(None, Some(3)).await.0, all[3..]);
    let (lines, page) = log(Some(0), Some(3)).await;
    assert_eq!((lines.as_slice(), page.next), (&all[..2], 5));
    let (lines, page) = log(Some(5), Some(1)).await;
    assert_eq!((lines.as_slice(), page.next), (&all[2..4], 6));
    assert_eq!(log(Some(6), None).await.0, all[4..]);
    let (lines, page) = log(Some(9), None).await;
    assert_eq!((lines.len(), page.next), (0, 9));
}

#[tokio::test]
async fn the_largest_transaction_fits_a_request() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let sign = |bytes: usize| {
        let (handler, payload) = ("h".to_owned(), vec![7; bytes]);
        let (actor, value) = (address("faucet"), Wei::ZERO);
        let call = CallActor { actor, handler, payload, value };
        devnet.sign("dev-0", Payload::CallActor(call))
    };
    let largest = sign(999_000);
    assert!(largest.size() < 1_000_000);
    devnet.client.submit(&request(&largest)).await.unwrap();
    let error = devnet.client.submit(&request(&sign(1_000_000))).await.unwrap_err();
    assert!(error.to_string().starts_with("TooLarge: "), "{error}");
}

#[tokio::test]
async fn logs_hold_what_an_actor_does_when_it_is_told_of_a_job() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy();
    let mut jobs = Vec::new();
    for handler in ["bump", "crash"] {
        let callback = Some(Callback { actor, handler: handler.to_owned(), resume: None });
        let job = devnet.submit(JobSpec { callback, ..spec() });
        devnet.finish(&job, b"hi\n");
        jobs.push(job);
    }
    let log = devnet.client.actor_log(&actor.to_string(), &LogQuery::default()).await.unwrap();
    use ActorLineKind::{Error, Event, Log};

    let lines: Vec<_> = log.lines.iter().map(|line| (line.job.map(|id| *id), line.kind)).collect();
    let [first, second] = [jobs[0], jobs[1]].map(Some);
    assert_eq!(lines, [(first, Log), (first, Event), (second, Log), (second, Error)]);
    assert!(log.lines.iter().all(|line| line.transaction.is_none() && line.timer.is_none()));
    assert_eq!(log.lines[1].name.as_deref(), Some("bumped"));
}
