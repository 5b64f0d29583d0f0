//! A price from three sources, one of which lies: serves them on the loopback, deploys
//! `actors/price_feed.star` on a running devnet, makes it ask, and prints the result.
//!
//! ```text
//! cowboyctl devnet up --detach -f examples/topologies/jobs.yaml
//! cargo run --locked -p cowboy-examples --example price_feed jobs
//! ```
//!
//! The devnet's runners must be allowed to request the loopback. The default devnet is `local`.
//!
//! A committee of three runners asks each source over HTTP; the result that they agree on returns
//! to the actor as a callback. `tests/devnet/jobs.rs` runs [`run`] too.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![cfg_attr(not(test), expect(clippy::print_stderr, reason = "and why it cannot"))]

use cowboy_devnet::{
    client::Client,
    home::DevnetHome,
    types::{
        Bytes, EventQuery, StoreQuery, Text, Transaction as Done, TransactionRequest,
        TransactionStatus,
    },
};
use cowboy_engine::{
    actor::Budget,
    chain::transaction::{CallActor, DeployActor, Payload, Transaction, Transfer},
    primitives::{Address, SecretKey, Wei},
};
use std::{error::Error, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const ACTOR: &str = include_str!("actors/price_feed.star");
/// Limits of its deployment, and of each call of it, in addition to the intrinsic cost.
const BUDGET: Budget = Budget { cycles: 400_000, cells: 100_000 };
/// Time limits of the whole run, and of a request.
const PATIENCE: Duration = Duration::from_secs(120);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest request that a source reads, in bytes.
const REQUEST_LIMIT: usize = 8_192;
/// The prices that the sources report. The third is false.
const SAID: [&str; 3] = ["101.25", "101.30", "4.20"];

#[cfg(not(test))]
#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let named = async || -> Result<(), Box<dyn Error>> {
        let name = std::env::args().nth(1).unwrap_or_else(|| "local".to_owned()).parse()?;
        run(&cowboy_devnet::home::Home::from_env()?.devnet(&name)).await
    };
    match named().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Runs the example on a running devnet, and prints the price.
pub async fn run(devnet: &DevnetHome) -> Result<(), Box<dyn Error>> {
    timeout(PATIENCE, find(devnet)).await.map_err(|_| "no price in two minutes")?
}

async fn find(devnet: &DevnetHome) -> Result<(), Box<dyn Error>> {
    let mut sources = Vec::new();
    for price in SAID {
        let source = serve(price).await?;
        println!("http://{source}/ says {price}");
        sources.push(source);
    }
    let user = User::of(devnet)?;
    // The address of an account's next actor is known in advance.
    let next = user.client.account("dev-0").await?.next_nonce;
    let feed = Address::of_actor(&user.key.address(), next);
    user.send(Payload::DeployActor(DeployActor { source: ACTOR.to_owned() })).await?;
    println!("deployed {feed}");
    // It pays for its jobs and their callbacks.
    user.send(Payload::Transfer(Transfer { to: feed, amount: Wei::cby(20) })).await?;
    let [a, b, c] = [0, 1, 2].map(|index| format!("\"http://{}/\"", sources[index]));
    let terms = format!("{{\"sources\": [{a}, {b}, {c}], \"pointer\": \"/price\"}}");
    user.call(feed, "setup", &terms).await?;
    let asked = user.call(feed, "ask", "").await?;
    user.decided(feed, asked.height.unwrap_or_default()).await
}

struct User {
    client: Client,
    key: SecretKey,
}

impl User {
    fn of(devnet: &DevnetHome) -> Result<Self, Box<dyn Error>> {
        // Finds the API's address and the token in the devnet's folder.
        let client = Client::of_devnet(devnet)?;
        let key = devnet.account_key(&"dev-0".parse()?)?.ok_or("there is no account dev-0")?;
        Ok(Self { client, key })
    }

    async fn call(&self, actor: Address, name: &str, with: &str) -> Result<Done, Box<dyn Error>> {
        let (handler, payload) = (name.to_owned(), with.as_bytes().to_vec());
        self.send(Payload::CallActor(CallActor { actor, handler, payload, value: Wei::ZERO })).await
    }

    async fn send(&self, payload: Payload) -> Result<Done, Box<dyn Error>> {
        let parameters = self.client.parameters().await?;
        let transaction = Transaction::with_limits(
            parameters.chain_id.0.0,
            self.client.account("dev-0").await?.next_nonce,
            *parameters.cycle_basefee,
            *parameters.cell_basefee,
            payload,
        )
        .buying(BUDGET)
        .sign(&self.key);
        // Connects before it sends, so that it cannot miss the block.
        let mut blocks = self.client.follow(None);
        blocks.connect().await?;
        let request = TransactionRequest { transaction: Text(Bytes(transaction.to_bytes())) };
        let hash = self.client.submit(&request).await?.hash.to_string();
        loop {
            blocks.next().await?;
            let done = self.client.transaction(&hash).await?;
            match done.status {
                TransactionStatus::Pending => {}
                TransactionStatus::Success => return Ok(done),
                _ => return Err(done.message.unwrap_or("it has no effect".to_owned()).into()),
            }
        }
    }

    /// Prints the actor's events from a height on, until a round has ended.
    async fn decided(&self, feed: Address, from: u64) -> Result<(), Box<dyn Error>> {
        let feed = feed.to_string();
        let mut blocks = self.client.follow(Some(from));
        loop {
            let height = blocks.next().await?.height;
            let query = EventQuery {
                from: Some(height),
                kind: Some("ActorEmitted".to_owned()),
                limit: None,
            };
            let page = self.client.events(&query).await?.events;
            for event in page.iter().filter(|event| event.height == height) {
                let data = &event.data;
                if data["actor"] != *feed {
                    continue;
                }
                let name = data["name"].as_str().unwrap_or_default();
                println!("block {height}: {name} {}", data["data"]);
                match name {
                    "price" => return self.show(&feed).await,
                    "no_price" => return Err("no two sources agree".into()),
                    _ => {}
                }
            }
        }
    }

    async fn show(&self, feed: &str) -> Result<(), Box<dyn Error>> {
        let query = StoreQuery { prefix: Some("price".to_owned()), ..StoreQuery::default() };
        let stored = self.client.actor(feed, &query).await?.state;
        let price = stored.first().and_then(|entry| entry.value["price"].as_u64());
        let price = price.ok_or("the actor has no price")?;
        println!("the price is {}.{:06}", price / 1_000_000, price % 1_000_000);
        Ok(())
    }
}

/// Starts a source that answers every request with this price and an increasing number, so that no
/// two runners see the same document.
async fn serve(price: &'static str) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        for request in 1_u64.. {
            let Ok((mut peer, _)) = listener.accept().await else { return };
            let document = format!("{{\"price\": {price}, \"request\": {request}}}");
            let answer = async move {
                read_head(&mut peer).await?;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                     Content-Length: {}\r\nConnection: close\r\n\r\n",
                    document.len()
                );
                peer.write_all(&[head.as_bytes(), document.as_bytes()].concat()).await
            };
            // A client that disconnects early does not stop the server.
            tokio::spawn(timeout(REQUEST_TIMEOUT, answer));
        }
    });
    Ok(address)
}

/// Reads a request up to the empty line after its head; the answer does not depend on it.
async fn read_head(peer: &mut TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST_LIMIT {
        let mut bytes = [0; 512];
        match peer.read(&mut bytes).await? {
            0 => break,
            count => request.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(())
}
