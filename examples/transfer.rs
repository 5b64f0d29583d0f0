//! Moves one CBY between two accounts of a running devnet, and waits until the block with the
//! transfer is final.
//!
//! ```text
//! cowboyctl devnet up --detach
//! cargo run --locked -p cowboy-examples --example transfer [DEVNET]
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use cowboy_devnet::{
    client::Client,
    orchestrator::home::Home,
    topology::Name,
    types::{Bytes, Text, TransactionRequest, TransactionStatus},
};
use cowboy_engine::{
    chain::transaction::{Payload, Transaction, Transfer},
    primitives::Wei,
};
use std::{env, error::Error, process::ExitCode};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let name: Name = env::args().nth(1).unwrap_or_else(|| "local".to_owned()).parse()?;
    let devnet = Home::from_env()?.devnet(&name);
    // Finds the API's address and the token in the devnet's folder.
    let client = Client::of_devnet(&devnet)?;

    let sender = devnet.account_key(&"dev-0".parse()?)?.ok_or("the devnet has no account dev-0")?;
    let receiver = client.account("dev-1").await?;
    let parameters = client.parameters().await?;
    let transfer = Transaction::with_limits(
        parameters.chain_id.0.0,
        client.account("dev-0").await?.next_nonce,
        *parameters.cycle_basefee,
        *parameters.cell_basefee,
        Payload::Transfer(Transfer { to: *receiver.address, amount: Wei::cby(1) }),
    )
    .sign(&sender);

    // Connects before it sends the transfer, so that it cannot miss the block.
    let mut blocks = client.follow(None);
    blocks.connect().await?;
    let request = TransactionRequest { transaction: Text(Bytes(transfer.to_bytes())) };
    let hash = client.submit(&request).await?.hash.to_string();
    println!("sent {hash}");

    loop {
        let block = blocks.next().await?;
        let transaction = client.transaction(&hash).await?;
        match transaction.status {
            TransactionStatus::Pending => println!("block {}: not in it", block.height),
            TransactionStatus::Success => break,
            _ => return Err(transaction.message.unwrap_or("it has no effect".to_owned()).into()),
        }
    }
    let (before, after) = (*receiver.balance, *client.account("dev-1").await?.balance);
    println!("dev-1 had {before} wei and has {after} wei");
    Ok(())
}
