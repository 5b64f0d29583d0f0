//! `chain advance` and `chain automine`: make blocks without waiting for the block time.

use crate::{
    args,
    context::{Context, Deadline, reach},
    error::{CliError, Exit},
    output::{Document, fields, millis, to_ms},
};
use clap::{Args, ValueEnum};
use cowboy_devnet::types::Automine;
use serde::Serialize;
use std::time::{Duration, Instant};

/// `chain advance`.
#[derive(Debug, Args)]
pub struct Advance {
    /// Number of blocks beyond the head: 1 to 100000
    #[arg(value_name = "COUNT", required_unless_present = "blocks")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    count: Option<u64>,
    /// The same as COUNT
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    blocks: Option<u64>,
    /// Maximum time; after it the block time applies again
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    timeout: Duration,
}

/// Blocks that were made without waiting for the block time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Advanced {
    /// The head before the first of them.
    from: u64,
    /// The last of these blocks.
    to: u64,
    /// Number of blocks.
    blocks: u64,
    /// The time they took, in milliseconds.
    elapsed_ms: u64,
}

impl Advance {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let Some(blocks) = self.count.or(self.blocks) else {
            return Err(CliError::new(Exit::Usage, "how many blocks?")
                .hint("for example: chain advance 70"));
        };
        let client = cx.client()?;
        let (started, deadline) = (Instant::now(), Deadline::after(self.timeout));
        let advance = client.advance(blocks, self.timeout).await?;
        reach(cx.ui, &client, advance.to, deadline).await?;
        cx.ui.document(&Advanced {
            from: advance.from,
            to: advance.to,
            blocks: advance.to - advance.from,
            elapsed_ms: to_ms(started.elapsed()),
        })
    }
}

impl Document for Advanced {
    fn text(&self) -> String {
        let Self { from, to, blocks, elapsed_ms } = self;
        let rate = blocks * 1_000 / (*elapsed_ms).max(1);
        fields(&[
            ("from", from.to_string()),
            ("to", to.to_string()),
            ("blocks", format!("{blocks} in {}, {rate} a second", millis(*elapsed_ms))),
        ])
    }

    fn id(&self) -> String {
        self.to.to_string()
    }
}

/// `chain automine`.
#[derive(Debug, Args)]
pub struct Mining {
    /// Whether transactions get blocks at once
    #[arg(value_enum)]
    state: OnOrOff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOrOff {
    On,
    Off,
}

impl Mining {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        cx.ui.document(&cx.client()?.automine(self.state == OnOrOff::On).await?)
    }
}

impl Document for Automine {
    fn text(&self) -> String {
        fields(&[("automine", self.id())])
    }

    fn id(&self) -> String {
        if self.on { "on" } else { "off" }.to_owned()
    }
}
