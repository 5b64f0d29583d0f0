//! Transactions sent to a scripted node and to a real EVM.

use super::*;
use crate::executor::{Config, Executor, Task, within};
use axum::{Json, Router, extract::State, http::StatusCode, response::IntoResponse, routing::post};
use cowboy_engine::primitives::{Hash, SecretKey};
use serde_json::{Value, json};
use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, sync::oneshot};

const LIMITS: TaskLimits =
    TaskLimits { max_return_bytes: 10_000, timeout: Duration::from_secs(60), max_memory_mb: None };

/// The example of EIP-155.
const SIGNED: &str = "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3\
    a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f76\
    1aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83";

const HASH: &str = "0x33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788";

fn signed() -> Vec<u8> {
    hex::decode(SIGNED).unwrap()
}

/// A node's answer to a call.
enum Answer {
    Result(Value),
    Error(i64, &'static str),
    /// Any other response, with its status.
    Raw(u16, String),
}

use Answer::{Error, Raw, Result as Good};

type Script = Box<dyn FnMut(&str, &Value) -> Answer + Send>;

/// A node with scripted answers.
async fn node(script: impl FnMut(&str, &Value) -> Answer + Send + 'static) -> NodeEndpoint {
    async fn answer(
        State(script): State<Arc<Mutex<Script>>>,
        Json(asked): Json<Value>,
    ) -> impl IntoResponse {
        let answer = script.lock().unwrap()(asked["method"].as_str().unwrap(), &asked["params"]);
        let framed = |name: &str, value: Value| {
            json!({ "jsonrpc": "2.0", "id": asked["id"], name: value }).to_string()
        };
        let (status, body) = match answer {
            Good(value) => (200, framed("result", value)),
            Error(code, message) => {
                (200, framed("error", json!({ "code": code, "message": message })))
            }
            Raw(status, body) => (status, body),
        };
        (StatusCode::from_u16(status).unwrap(), body)
    }
    let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(Box::new(script)));
    let router = Router::new().route("/secret", post(answer)).with_state(script);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    NodeEndpoint::new(&format!("http://user:secret@{address}/secret?key=secret")).unwrap()
}

/// A node that accepts the transaction, then answers `receipts` one after another, repeating the
/// last one, while the newest block is `head`.
async fn node_with(head: u64, receipts: Vec<Answer>) -> NodeEndpoint {
    let mut receipts = receipts.into_iter();
    let mut last = None;
    node(move |method, params| match method {
        "eth_sendRawTransaction" => {
            assert_eq!(params, &json!([format!("0x{SIGNED}")]));
            Good(HASH.into())
        }
        "eth_blockNumber" => Good(format!("{head:#x}").into()),
        "eth_getTransactionReceipt" => {
            assert_eq!(params, &json!([HASH]));
            let answer = receipts.next().unwrap_or_else(|| Good(last.clone().unwrap()));
            if let Good(value) = &answer {
                last = Some(value.clone());
            }
            answer
        }
        other => panic!("{other} was not to be asked"),
    })
    .await
}

/// A receipt in block 16, in one node's form.
fn receipt() -> Value {
    json!({
        "transactionHash": HASH,
        "transactionIndex": "0x1",
        "blockHash": format!("0x{}", "ab".repeat(32)),
        "blockNumber": "0x10",
        "from": "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F",
        "to": "0x3535353535353535353535353535353535353535",
        "contractAddress": null,
        "gasUsed": "0x5208",
        "cumulativeGasUsed": "0xa410",
        "effectiveGasPrice": "0x4a817c800",
        "blobGasUsed": "0x0",
        "blobGasPrice": "0x1",
        "logsBloom": format!("0x{}", "00".repeat(256)),
        "logs": [{
            "address": "0x3535353535353535353535353535353535353535",
            "topics": [format!("0x{}", "07".repeat(32))],
            "data": "0x00ff",
            "blockNumber": "0x10",
            "blockHash": format!("0x{}", "ab".repeat(32)),
            "blockTimestamp": "0x65",
            "transactionHash": HASH,
            "transactionIndex": "0x1",
            "logIndex": "0x2",
            "removed": false
        }],
        "status": "0x1",
        "type": "0x0",
        "l1Fee": "0x17",
    })
}

/// The job's result for [`receipt`].
fn expected() -> String {
    let (block, topic, bloom) = ("ab".repeat(32), "07".repeat(32), "00".repeat(256));
    [
        &format!(r#"{{"transaction_hash":"{HASH}","receipt":{{"type":"0x0","status":"0x1","#),
        &format!(r#""transactionHash":"{HASH}","transactionIndex":"0x1","blockHash":"0x{block}","#),
        r#""blockNumber":"0x10","from":"0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f","#,
        r#""to":"0x3535353535353535353535353535353535353535","contractAddress":null,"#,
        r#""gasUsed":"0x5208","cumulativeGasUsed":"0xa410","effectiveGasPrice":"0x4a817c800","#,
        &format!(r#""logsBloom":"0x{bloom}","#),
        r#""logs":[{"address":"0x3535353535353535353535353535353535353535","#,
        &format!(r#""topics":["0x{topic}"],"data":"0x00ff","blockHash":"0x{block}","#),
        &format!(r#""blockNumber":"0x10","transactionHash":"{HASH}","transactionIndex":"0x1","#),
        r#""logIndex":"0x2","removed":false}]}}"#,
    ]
    .concat()
}

async fn execute(
    endpoint: NodeEndpoint,
    transaction: Vec<u8>,
    confirmations: u32,
    limits: TaskLimits,
) -> Result<String, ExecutorError> {
    let config = Config { eth: Some(endpoint), ..Config::default() };
    let (_keep, cancelled) = oneshot::channel();
    let task = Task::EthSend(EthereumRequest { transaction, confirmations });
    let (started, has_started) = oneshot::channel();
    let started = |at| started.send(at).unwrap();
    let result =
        Executor::new(&config).unwrap().run(&task, &limits, cancelled, started, |_| ()).await;
    assert!(has_started.await.unwrap() < Instant::now());
    if let Err(error) = &result {
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    result.map(|bytes| String::from_utf8(bytes).unwrap())
}

async fn check(endpoint: NodeEndpoint, confirmations: u32) {
    let result = execute(endpoint, signed(), confirmations, LIMITS).await;
    assert_eq!(result, Ok(expected()));
}

#[tokio::test]
async fn a_receipt_reads_the_same_whichever_node_gave_it() {
    check(node_with(16, vec![Good(receipt())]).await, 1).await;
    // Another node: a different order of fields, no extra ones, and upper case.
    let mut other = receipt();
    let fields = other.as_object_mut().unwrap();
    for name in ["l1Fee", "blobGasUsed", "blobGasPrice"] {
        fields.remove(name);
    }
    fields["logs"][0].as_object_mut().unwrap().remove("blockTimestamp");
    fields["blockHash"] = format!("0x{}", "AB".repeat(32)).into();
    check(node_with(30, vec![Good(other)]).await, 7).await;
}

#[tokio::test]
async fn a_reverted_transaction_a_new_contract_and_blobs_are_told() {
    let mut changed = receipt();
    changed["status"] = "0x0".into();
    changed["type"] = "0x3".into();
    changed["to"] = Value::Null;
    changed["contractAddress"] = "0x00000000000000000000000000000000000000AA".into();
    changed["logs"] = json!([]);
    let endpoint = node_with(16, vec![Good(changed)]).await;
    let result = execute(endpoint, signed(), 1, LIMITS).await.unwrap();
    for part in [
        r#""type":"0x3","status":"0x0","#,
        r#""to":null,"contractAddress":"0x00000000000000000000000000000000000000aa","#,
        r#""blobGasUsed":"0x0","blobGasPrice":"0x1","#,
    ] {
        assert!(result.contains(part), "{part}: {result}");
    }
}

#[tokio::test]
async fn receipts_of_older_nodes_are_read() {
    let mut older = receipt();
    let fields = older.as_object_mut().unwrap();
    fields.remove("effectiveGasPrice");
    fields.insert("gasPrice".to_owned(), "0x04a817c800".into());
    check(node_with(16, vec![Good(older.clone())]).await, 1).await;
    // From before Byzantium, and from a node that gives both the effective price and the other one.
    let root = format!("0x{}", "0e".repeat(32));
    older["effectiveGasPrice"] = "0x4a817c800".into();
    older["gasPrice"] = "0x1".into();
    older.as_object_mut().unwrap().remove("status");
    older["root"] = root.as_str().into();
    let result = execute(node_with(16, vec![Good(older)]).await, signed(), 1, LIMITS).await;
    let expected = expected().replace(r#""status":"0x1""#, &format!(r#""root":"{root}""#));
    assert_eq!(result, Ok(expected));
}

#[tokio::test]
async fn receipts_that_are_none_are_refused() {
    for (field, value, expected) in [
        ("gasUsed", json!("0x+5"), "a quantity that is not 0x-hex"),
        ("gasUsed", json!("21000"), "a quantity that is not 0x-hex"),
        ("gasUsed", json!(format!("0x1{}", "0".repeat(32))), "number too large"),
        ("from", json!("0x9d8a"), "invalid length 2, expected 20 bytes"),
        ("logsBloom", json!("00"), "bytes without 0x"),
        ("logs", Value::Null, "invalid type: null"),
    ] {
        let mut wrong = receipt();
        wrong[field] = value;
        let client = http::HttpClient::default().get().await.unwrap().clone();
        let endpoint = node(move |_, _| Good(wrong.clone())).await;
        let error = Node::new(client, &endpoint, 10_000).receipt([0; 32]).await.err().unwrap();
        let ExecutorError::Request { reason, .. } = error else { panic!("{error:?}") };
        let understood = reason.strip_prefix("its answer cannot be understood: ");
        assert!(understood.is_some_and(|reason| reason.starts_with(expected)), "{reason}");
    }
}

#[tokio::test]
async fn the_receipt_is_waited_for() {
    let nothing = || Good(Value::Null);
    check(node_with(16, vec![nothing(), nothing(), Good(receipt())]).await, 1).await;
    // From a pending block.
    let mut pending = receipt();
    pending["blockHash"] = Value::Null;
    pending["blockNumber"] = Value::Null;
    pending["transactionIndex"] = Value::Null;
    check(node_with(16, vec![Good(pending), Good(receipt())]).await, 1).await;
    // A node that fails occasionally.
    let failures = vec![
        Error(-32000, "transaction indexing is in progress"),
        Raw(502, "bad gateway".to_owned()),
        Raw(200, "{\"jsonrpc\":".to_owned()),
        Good(receipt()),
    ];
    check(node_with(16, failures).await, 1).await;
}

#[tokio::test]
async fn a_receipt_is_confirmed_where_its_block_stays() {
    // At height 20 block 16 is the first of five; before, a reorganization replaced it.
    let mut before = receipt();
    before["blockHash"] = format!("0x{}", "cd".repeat(32)).into();
    before["blockNumber"] = "0x11".into();
    check(node_with(20, vec![Good(before), Good(Value::Null), Good(receipt())]).await, 5).await;

    let endpoint = node_with(20, vec![Good(receipt())]).await;
    let limits = TaskLimits { timeout: Duration::from_millis(600), ..LIMITS };
    let timed_out = Err(ExecutorError::TimedOut { after: limits.timeout });
    assert_eq!(execute(endpoint, signed(), 6, limits).await, timed_out);
}

/// A node that refuses the transaction with `message`; `has` says whether it has it.
async fn refusing(message: &'static str, has: bool) -> NodeEndpoint {
    node(move |method, params| match method {
        "eth_sendRawTransaction" => Error(-32000, message),
        "eth_getTransactionByHash" => {
            assert_eq!(params, &json!([HASH]));
            Good(if has { json!({ "hash": HASH }) } else { Value::Null })
        }
        "eth_getTransactionReceipt" => Good(receipt()),
        other => panic!("{other} was not to be asked"),
    })
    .await
}

#[tokio::test]
async fn a_transaction_that_the_node_has_counts_as_sent() {
    for (message, has) in [
        ("already known", false),
        ("AlreadyKnown", false),
        ("Known transaction", false),
        ("nonce too low: next nonce 10, tx nonce 9", true),
        ("something new", true),
    ] {
        check(refusing(message, has).await, 1).await;
    }
    for message in ["nonce too low", "insufficient funds for gas * price + value"] {
        let result = execute(refusing(message, false).await, signed(), 1, LIMITS).await;
        let Err(ExecutorError::Node { url, code: -32000, message: said }) = result else {
            panic!("{result:?}")
        };
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        assert_eq!(said, message);
    }
}

#[tokio::test]
async fn a_node_that_breaks_the_rules_is_told() {
    let send = async |answer: Answer| {
        let mut answer = Some(answer);
        let endpoint = node(move |_, _| answer.take().unwrap()).await;
        execute(endpoint, signed(), 1, LIMITS).await.unwrap_err()
    };
    let huge = format!(r#"{{"jsonrpc":"2.0","id":0,"result":"{}"}}"#, "x".repeat(100_000));
    let too_much = ExecutorError::TooMuchOutput { limit: LIMITS.max_return_bytes };
    assert_eq!(send(Raw(200, huge)).await, too_much);
    let reason = |error| match error {
        ExecutorError::Request { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    let strange = reason(send(Raw(200, "<html>secret".to_owned())).await);
    assert!(strange.starts_with("its answer is not JSON-RPC: expected value"), "{strange}");
    let strange = reason(send(Good("secret".into())).await);
    assert!(strange.starts_with("its answer cannot be understood: "), "{strange}");
    let strange = reason(send(Raw(200, r#"{"jsonrpc":"2.0","id":0}"#.to_owned())).await);
    assert_eq!(strange, "its answer has neither a result nor an error");
    let status = send(Raw(429, "slower".to_owned())).await;
    assert!(matches!(status, ExecutorError::Status { status: 429, .. }), "{status:?}");
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoint = NodeEndpoint::new(&format!("http://user:secret@{gone}/secret")).unwrap();
    let refused = reason(execute(endpoint, signed(), 1, LIMITS).await.unwrap_err());
    assert!(refused.contains("refused"), "{refused}");

    // The error is reported with its code, whatever its HTTP status.
    let error = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"bad\nrlp"}}"#;
    let mut asked = 0;
    let endpoint = node(move |_, _| {
        asked += 1;
        if asked == 1 { Raw(400, error.to_owned()) } else { Good(Value::Null) }
    });
    let told = execute(endpoint.await, signed(), 1, LIMITS).await.unwrap_err().to_string();
    assert!(told.ends_with("answered error -32602: bad rlp"), "{told}");

    // A result that is longer than the job allows.
    let limits = TaskLimits { max_return_bytes: 500, ..LIMITS };
    let result = execute(node_with(16, vec![Good(receipt())]).await, signed(), 1, limits).await;
    assert_eq!(result, Err(ExecutorError::TooMuchOutput { limit: 500 }));
}

#[tokio::test]
async fn failures_one_after_another_end_the_wait() {
    let endpoint = node(|method, _| match method {
        "eth_sendRawTransaction" => Good(HASH.into()),
        _ => Error(-1, "not today"),
    });
    let client = http::HttpClient::default().get().await.unwrap().clone();
    let node = Node::new(client, &endpoint.await, 1000);
    let result = confirmed(&node, hash(&signed()), 1).await.map(|_| ());
    assert!(matches!(result, Err(ExecutorError::Node { code: -1, .. })), "{result:?}");
}

#[tokio::test]
async fn a_wait_for_a_receipt_can_be_cancelled() {
    let (asked, has_asked) = oneshot::channel();
    let mut asked = Some(asked);
    let endpoint = node(move |method, _| match method {
        "eth_sendRawTransaction" => Good(HASH.into()),
        _ => {
            let _ = asked.take().map(|asked| asked.send(()));
            Good(Value::Null)
        }
    });
    let endpoint = endpoint.await;
    let (cancel, cancelled) = oneshot::channel();
    let running = tokio::spawn(async move {
        let request = EthereumRequest { transaction: signed(), confirmations: 1 };
        let client = http::HttpClient::default();
        let sent = send(Some(&endpoint), &client, &request, &LIMITS, |_| ());
        within(LIMITS.timeout, cancelled, sent).await
    });
    has_asked.await.unwrap();
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
}

#[tokio::test]
async fn a_runner_without_an_endpoint_says_so() {
    let (_keep, cancelled) = oneshot::channel();
    let task = Task::EthSend(EthereumRequest { transaction: signed(), confirmations: 1 });
    let error =
        Executor::default().run(&task, &LIMITS, cancelled, |_| panic!("started"), |_| ()).await;
    let expected = "invalid task: this runner has no Ethereum endpoint (eth.url)";
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn a_configuration_is_read_written_and_shown_without_secrets() {
    let text = "url: https://user:secret@example.com:8545/secret?key=secret\n";
    let endpoint: NodeEndpoint = serde_yaml::from_str(text).unwrap();
    assert_eq!(serde_yaml::to_string(&endpoint).unwrap(), text);
    assert_eq!(format!("{endpoint:?}"), "Endpoint(https://example.com:8545/…)");
    for (bad, expected) in [
        ("url: ws://secret/", "scheme `ws`; expected http or https"),
        ("url: secret", "url is invalid: relative URL without a base"),
        ("{ url: 'http://a/', key: secret }", "unknown field `key`"),
    ] {
        let error = serde_yaml::from_str::<NodeEndpoint>(bad).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{bad}: {error}");
    }
}

/// The RLP of a list of encoded items, or of bytes.
fn rlp(offset: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let head = match content.len() {
        0..56 => vec![offset + content.len() as u8],
        _ => [&[offset + 55 + length.len() as u8], length].concat(),
    };
    [&head, content].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    rlp(0xc0, &items.concat())
}

fn bytes(content: &[u8]) -> Vec<u8> {
    match content {
        [byte] if *byte < 0x80 => vec![*byte],
        _ => rlp(0x80, content),
    }
}

fn number(number: u64) -> Vec<u8> {
    let digits = number.to_be_bytes();
    bytes(&digits[digits.iter().take_while(|byte| **byte == 0).count()..])
}

#[test]
fn blobs_do_not_count_for_a_transactions_hash() {
    assert_eq!(format!("0x{}", hex::encode(hash(&signed()))), HASH);
    let fields = [number(1), number(9), number(1), number(2), number(21_000), bytes(&[0x35; 20])];
    let rest = [number(0), bytes(&[]), list(&[]), number(1), list(&[bytes(&[1; 32])])];
    let signature = [number(1), bytes(&[0x11; 32]), bytes(&[0x22; 32])];
    let payload = list(&[&fields[..], &rest, &signature].concat());
    let alone = [&[3], &payload[..]].concat();
    let blobs = list(&[bytes(&vec![0; 131_072])]);
    let proofs = list(&[bytes(&[0xc0; 48])]);
    let sent = [&[3], &list(&[payload, blobs, proofs.clone(), proofs])[..]].concat();
    assert_eq!(hash(&sent), keccak256(&[&alone]).0);
    // The form in a block, and a truncated one: neither carries blobs.
    assert_eq!(hash(&alone), keccak256(&[&alone]).0);
    let cut = &sent[..sent.len() - 1];
    assert_eq!(hash(cut), keccak256(&[cut]).0);
    // A type that only one chain knows.
    assert_eq!(hash(&[0x7e, 1, 2]), keccak256(&[&[0x7e, 1, 2]]).0);
}

/// The process of `examples/ethereum-dev`, which ends when dropped.
struct Chain {
    child: Child,
    endpoint: NodeEndpoint,
}

/// The chain id of `examples/ethereum-dev`, and a key with funds on it.
const CHAIN_ID: u64 = 131_277_322_940_537;
const KEY: u8 = 1;

impl Chain {
    /// `None` if no Python with the required packages is installed.
    fn start() -> Option<Self> {
        let python = env::var("COWBOYCTL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut probe = Command::new(&python);
        probe.args(["-c", "import eth_tester, eth.vm"]).stdin(Stdio::null());
        probe.stderr(Stdio::null()).status().ok().filter(|status| status.success())?;
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/ethereum-dev");
        // The folder belongs to the repository, so no bytecode is written.
        let mut command = Command::new(&python);
        command.args(["-B", folder]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Some(Self { child, endpoint: NodeEndpoint::new(url.trim()).unwrap() })
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A signed legacy transaction (EIP-155).
fn sign(nonce: u64, to: &[u8], value: u64, data: &[u8]) -> Vec<u8> {
    let fields = [nonce, 10_000_000_000, 100_000].map(number);
    let fields = [&fields[..], &[bytes(to), number(value), bytes(data)]].concat();
    let unsigned = list(&[&fields[..], &[CHAIN_ID, 0, 0].map(number)].concat());
    let key = SecretKey::from_bytes(&[&[0; 31][..], &[KEY]].concat().try_into().unwrap()).unwrap();
    let signature = key.sign(&Hash(keccak256(&[&unsigned]).0)).0;
    let half = |bytes_of: &[u8]| {
        bytes(&bytes_of[bytes_of.iter().take_while(|byte| **byte == 0).count()..])
    };
    let v = number(CHAIN_ID * 2 + 35 + u64::from(signature[64]));
    list(&[&fields[..], &[v, half(&signature[..32]), half(&signature[32..64])]].concat())
}

#[tokio::test]
async fn transactions_reach_a_real_evm() {
    let Some(chain) = Chain::start() else {
        eprintln!("skipped: no Python with eth-tester and py-evm; see COWBOYCTL_PYTHON");
        return;
    };
    let run = async |transaction: Vec<u8>, confirmations| {
        let result = execute(chain.endpoint.clone(), transaction, confirmations, LIMITS).await?;
        Ok::<_, ExecutorError>(serde_json::from_str::<Value>(&result).unwrap())
    };
    let transfer = sign(0, &[0x35; 20], 5, &[]);
    let first = run(transfer.clone(), 1).await.unwrap();
    let hash = format!("0x{}", hex::encode(hash(&transfer)));
    assert_eq!(first["transaction_hash"], *hash);
    assert_eq!(first["receipt"]["transactionHash"], *hash);
    assert_eq!(first["receipt"]["status"], "0x1");
    assert_eq!(first["receipt"]["gasUsed"], "0x5208");
    assert_eq!(first["receipt"]["blockNumber"], "0x1");

    // A contract that logs 32 zeros under topic 7, and one that reverts.
    let logging = run(sign(1, &[], 0, &[0x60, 7, 0x60, 32, 0x60, 0, 0xa1]), 1).await.unwrap();
    let log = &logging["receipt"]["logs"][0];
    assert_eq!(log["topics"], json!([format!("0x{:064x}", 7)]));
    assert_eq!(log["data"], format!("0x{}", "00".repeat(32)));
    assert_eq!(log["address"], logging["receipt"]["contractAddress"]);
    let reverted = run(sign(2, &[], 0, &[0x60, 0, 0x60, 0, 0xfd]), 1).await.unwrap();
    assert_eq!(reverted["receipt"]["status"], "0x0");

    // Sent again when it is three blocks deep: the same result.
    assert_eq!(run(transfer, 3).await.unwrap(), first);
    // Fails, because another transaction used the nonce.
    let error = run(sign(0, &[0x35; 20], 6, &[]), 1).await.unwrap_err();
    assert!(matches!(error, ExecutorError::Node { code: -32000, .. }), "{error:?}");
}
