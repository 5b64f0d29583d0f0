//! Five tasks, each built on the previous one, with proofs of five seconds: first ahead of the
//! chain, then one after the other. Prints both timelines, for confirmations of 2 s and of 0.4 s.
//!
//! ```text
//! cowboyctl devnet up --detach -f examples/topologies/speculation.yaml
//! cargo run --locked -p cowboy-examples --example timeline [DEVNET]
//! ```
//!
//! It takes a minute and a half. It changes the devnet's options, which stay changed until the
//! devnet stops. `tests/devnet/speculation.rs` runs [`run`] too, with all times divided by fifty.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![cfg_attr(not(test), expect(clippy::print_stderr, reason = "and why it cannot"))]

use cowboy_devnet::{
    client::Client,
    home::DevnetHome,
    speculation::pipeline::{Dependency, TaskEntry},
    types::{ConfigureRequest, Pipeline, PipelineRequest, PipelineStatus},
};
use std::{collections::BTreeMap, error::Error, time::Duration};
use tokio::time::timeout;

/// Time limit of one pipeline.
const PATIENCE: Duration = Duration::from_secs(120);
const PROOF_MS: u64 = 5_000;
const CONFIRMATION_MS: [u64; 2] = [2_000, 400];
const TASKS: [&str; 5] = ["A", "B", "C", "D", "E"];
const COLUMNS: u64 = 72;

/// One pipeline, run both ways.
#[derive(Debug)]
pub struct Compared {
    pub confirmation_ms: u64,
    /// Run ahead of the chain.
    pub speculative: Pipeline,
    /// Run one task after the other.
    pub synchronous: Pipeline,
}

#[cfg(not(test))]
#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let named = async || -> Result<(), Box<dyn Error>> {
        let name = std::env::args().nth(1).unwrap_or_else(|| "speculation".to_owned()).parse()?;
        run(&cowboy_devnet::home::Home::from_env()?.devnet(&name), 1).await.map(drop)
    };
    match named().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Runs the pipelines on a running devnet, all times divided by `scale`, and prints them.
pub async fn run(devnet: &DevnetHome, scale: u64) -> Result<Vec<Compared>, Box<dyn Error>> {
    let client = Client::of_devnet(devnet)?;
    let mut all = Vec::new();
    for confirmation_ms in CONFIRMATION_MS.map(|ms| ms / scale) {
        let proof_ms = PROOF_MS / scale;
        println!("a proof takes {proof_ms} ms, a confirmation {confirmation_ms} ms\n");
        let timed = |speculates: bool| {
            options(&[
                ("enabled", speculates.to_string()),
                ("proof.latency", format!("{proof_ms}ms")),
                ("proof.workerThreads", "8".to_owned()),
                ("confirmation.latency", format!("{confirmation_ms}ms")),
            ])
        };
        client.configure_speculation(&timed(true)).await?;
        let speculative = ended(&client).await?;
        print("ahead of the chain", &speculative);
        client.configure_speculation(&timed(false)).await?;
        let synchronous = ended(&client).await?;
        print("one after the other", &synchronous);
        let [fast, slow] = [&speculative, &synchronous].map(|p| p.summary.elapsed_ms);
        println!("fully confirmed in {fast} ms instead of {slow} ms\n");
        all.push(Compared { confirmation_ms, speculative, synchronous });
    }
    Ok(all)
}

fn options(all: &[(&str, String)]) -> ConfigureRequest {
    let options: BTreeMap<_, _> =
        all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    ConfigureRequest { options }
}

async fn ended(client: &Client) -> Result<Pipeline, Box<dyn Error>> {
    let task = |at: usize| TaskEntry {
        id: TASKS[at].to_owned(),
        depends_on: at
            .checked_sub(1)
            .map(|at| Dependency::Reads(TASKS[at].to_owned()))
            .into_iter()
            .collect(),
        command: ["sh", "-c", "cat; echo done"].map(str::to_owned).to_vec(),
        attempts: 1,
        ..TaskEntry::default()
    };
    let tasks = (0..TASKS.len()).map(task).collect();
    let request = PipelineRequest { name: "timeline".to_owned(), tasks };
    let number = client.submit_pipeline(&request).await?.pipeline;
    let mut blocks = client.follow(None);
    blocks.connect().await?;
    let wait = async {
        loop {
            let pipeline = client.pipeline(number).await?;
            if pipeline.summary.status != PipelineStatus::Running {
                return Ok::<_, Box<dyn Error>>(pipeline);
            }
            blocks.next().await?;
        }
    };
    let pipeline = timeout(PATIENCE, wait).await.map_err(|_| "not confirmed in two minutes")??;
    match pipeline.summary.status {
        PipelineStatus::Completed => Ok(pipeline),
        status => Err(format!("pipeline {number} is {status}").into()),
    }
}

/// Prints a row for each task: `x` executing, `p` being proved, `.` waiting for ancestors,
/// `c` being confirmed.
fn print(title: &str, pipeline: &Pipeline) {
    let whole = pipeline.summary.elapsed_ms.max(1);
    println!(
        "{title}: {whole} ms, the last output after {} ms",
        pipeline.summary.outputs_ms.unwrap_or(0)
    );
    let column = |at: Option<u64>| at.map_or(0, |at| at * COLUMNS / whole);
    for task in &pipeline.graph {
        let times = task.times;
        let marks = [
            (' ', column(times.scheduled_ms)),
            ('x', column(times.executed_ms)),
            ('p', column(times.proved_ms)),
            ('.', column(times.submitted_ms)),
            ('c', column(times.confirmed_ms)),
        ];
        let mut row = String::new();
        for (mark, until) in marks {
            while (row.len() as u64) < until {
                row.push(mark);
            }
        }
        println!("  {}  {row}", task.task);
    }
    println!();
}
