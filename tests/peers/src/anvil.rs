//! `anvil`: blocks of 500 transfers made by one anvil node, and by our validators.

use crate::{
    chain::{Recovery, Run, Transfers, real_time},
    figures::Figures,
    transfer::{self, Payment},
};
use cowboy_devnet::{
    orchestrator::ports::{PortError, Ports},
    sample,
};
use serde_json::{Value, json};
use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

/// Transfers in a block.
const EACH: u64 = 500;
const SENDERS: u64 = 4;
const CHAIN_ID: u64 = 31_337;
/// Far above the base fee, which begins at zero and rises by an eighth with each full block.
const GAS_PRICE: u64 = 1_000_000_000_000_000;
/// Wei of each sender: more than all its transfers can cost.
const BALANCE: &str = "0x4b3b4ca85a86c47a098a224000000000";
/// Limit for the node's start.
const START: Duration = Duration::from_secs(20);
/// Limit for one answer.
const ANSWER: Duration = Duration::from_secs(60);

/// Why there are no figures of anvil.
#[derive(Debug, thiserror::Error)]
pub enum AnvilError {
    #[error("{program}: {error}; install the npm package `@foundry-rs/anvil` and name its program")]
    Program { program: PathBuf, error: io::Error },
    #[error("a runtime or a folder in $TMPDIR: {0}")]
    System(#[from] io::Error),
    #[error("no port for anvil: {0}")]
    Port(#[from] PortError),
    #[error("anvil did not answer within {START:?}: {0}")]
    Start(reqwest::Error),
    #[error("a request to anvil failed: {0}")]
    Request(#[from] reqwest::Error),
    #[error("anvil refused a request: {0}")]
    Refused(Value),
    #[error("block {block} of anvil has {got} transfers, not {EACH}")]
    Transfers { block: u64, got: u64 },
}

/// Prints blocks and transfers per second of anvil and of our validators.
pub fn compare(program: &Path, blocks: u64, rounds: u64) -> Result<(), AnvilError> {
    let ours = |validators, recovery| {
        let transfers = Transfers { each: EACH, recovery };
        let Run { blocks, took, done, .. } = real_time(validators, transfers, blocks, |_| {});
        (blocks as f64 / took.as_secs_f64(), done as f64 / took.as_secs_f64())
    };
    let mut rows = [
        ("anvil, one node: requests, keys and blocks", Rates::default()),
        ("anvil, one node: blocks from a full pool", Rates::default()),
        ("devnet, one validator: keys and blocks", Rates::default()),
        ("devnet, four validators: keys and blocks", Rates::default()),
        ("devnet, one validator: blocks", Rates::default()),
        ("devnet, four validators: blocks", Rates::default()),
    ];
    for _ in 0..rounds {
        let submitted = run(program, blocks, Submission::Timed)?;
        let full = run(program, blocks, Submission::Before)?;
        let rates = [
            submitted,
            full,
            ours(1, Recovery::Submitted),
            ours(4, Recovery::Submitted),
            ours(1, Recovery::Before),
            ours(4, Recovery::Before),
        ];
        for ((_, row), (blocks, transfers)) in rows.iter_mut().zip(rates) {
            row.blocks.push(blocks);
            row.transfers.push(transfers);
        }
    }
    println!("the transfers of {blocks} blocks of {EACH}, {rounds} rounds");
    println!("{:<44} {:<24} {:<24} in a block", "", "blocks/s", "transfers/s");
    for (name, Rates { blocks, transfers }) in &rows {
        let each = transfers.median() / blocks.median();
        println!("{name:<44} {:<24} {:<24} {each:.0}", blocks.range(1), transfers.range(0));
    }
    Ok(())
}

#[derive(Default)]
struct Rates {
    blocks: Figures,
    transfers: Figures,
}

/// When transfers are submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Submission {
    /// Those of two blocks at first, then those of the next block while a block is made.
    Timed,
    /// All before the clock starts.
    Before,
}

/// Blocks and transfers per second of one node, which ends before this returns.
fn run(program: &Path, blocks: u64, submission: Submission) -> Result<(f64, f64), AnvilError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut node = Node::start(program).await?;
        let took = node.blocks(blocks, submission).await;
        node.process.kill().await?;
        let per_second = blocks as f64 / took?.as_secs_f64();
        Ok((per_second, per_second * EACH as f64))
    })
}

struct Node {
    process: Child,
    http: reqwest::Client,
    url: String,
}

impl Node {
    async fn start(program: &Path) -> Result<Self, AnvilError> {
        let folder = tempfile::tempdir()?;
        let port = Ports::load_or_choose(&folder.path().join("ports"), &[], None, None)?.api;
        // It makes a block when it is told to: neither a block for each transfer nor an interval
        // gives blocks of 500 at its full speed.
        let process = Command::new(program)
            .args(["--no-mining", "--quiet", "--accounts", "1", "--base-fee", "0"])
            .args(["--port", &port.to_string(), "--chain-id", &CHAIN_ID.to_string()])
            .args(["--gas-limit", &(EACH * transfer::GAS).to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| AnvilError::Program { program: program.to_owned(), error })?;
        let http = reqwest::Client::builder().timeout(ANSWER).no_proxy().build()?;
        let node = Self { process, http, url: format!("http://127.0.0.1:{port}") };
        let begun = Instant::now();
        loop {
            match node.call("eth_chainId", json!([])).await {
                Ok(_) => return Ok(node),
                Err(AnvilError::Request(error)) if begun.elapsed() > START => {
                    return Err(AnvilError::Start(error));
                }
                Err(AnvilError::Request(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn blocks(&self, blocks: u64, submission: Submission) -> Result<Duration, AnvilError> {
        let keys: Vec<_> = (0..SENDERS).map(|at| sample::key(&format!("account-{at}"))).collect();
        for key in &keys {
            let address = format!("0x{}", hex::encode(key.address().0));
            self.call("anvil_setBalance", json!([address, BALANCE])).await?;
        }
        let transfer = |number: u64| {
            let from = (number % SENDERS) as usize;
            let payment = Payment {
                nonce: number / SENDERS,
                gas_price: GAS_PRICE,
                to: keys[(from + 1) % keys.len()].address(),
                wei: 1,
                chain_id: CHAIN_ID,
            };
            payment.signed(&keys[from])
        };
        let batch = |block: u64| {
            let requests = (block * EACH..(block + 1) * EACH).map(|number| {
                let params = [transfer(number)];
                request("eth_sendRawTransaction", &json!(params), number)
            });
            Value::Array(requests.collect()).to_string()
        };
        let mut batches = (0..blocks).map(batch).collect::<Vec<_>>().into_iter();
        let ahead = match submission {
            Submission::Timed => 2,
            Submission::Before => batches.len(),
        };
        let mut start = Instant::now();
        for batch in batches.by_ref().take(ahead) {
            self.submit(batch).await?;
        }
        if submission == Submission::Before {
            start = Instant::now();
        }
        for _ in 0..blocks {
            let mine = self.call("evm_mine", json!([]));
            match batches.next() {
                Some(batch) => {
                    let (mined, submitted) = tokio::join!(mine, self.submit(batch));
                    mined?;
                    submitted?;
                }
                None => {
                    mine.await?;
                }
            }
        }
        let took = start.elapsed();
        for block in 1..=blocks {
            let height = json!([format!("{block:#x}")]);
            let count = self.call("eth_getBlockTransactionCountByNumber", height).await?;
            let count = count.as_str().and_then(|text| text.strip_prefix("0x"));
            let got = count.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let got = got.unwrap_or_default();
            if got != EACH {
                return Err(AnvilError::Transfers { block, got });
            }
        }
        Ok(took)
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, AnvilError> {
        let mut answer = self.post(request(method, &params, 0).to_string()).await?;
        match answer.get("error") {
            Some(error) => Err(AnvilError::Refused(error.clone())),
            None => Ok(answer["result"].take()),
        }
    }

    /// Submits a batch; all of it must be accepted.
    async fn submit(&self, batch: String) -> Result<(), AnvilError> {
        let answer = self.post(batch).await?;
        let refused = match &answer {
            Value::Array(answers) => answers.iter().find(|answer| answer.get("error").is_some()),
            other => Some(other),
        };
        refused.map_or(Ok(()), |refused| Err(AnvilError::Refused(refused.clone())))
    }

    async fn post(&self, body: String) -> Result<Value, AnvilError> {
        let request = self.http.post(&self.url).header("content-type", "application/json");
        Ok(request.body(body).send().await?.error_for_status()?.json().await?)
    }
}

fn request(method: &str, params: &Value, id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
