//! `chain`: blocks, transactions, events.

pub(super) mod advance;
pub(super) mod params;
pub(super) mod powers;
mod verify;

use super::{
    actor,
    proof::{self, Verify, Wanted},
    transaction::reason,
};
use crate::{
    args::{self, HeightArg},
    complete,
    context::{Context, Deadline, reach},
    error::{CliError, Exit},
    output::{
        ColumnOf, Document, Row, amount, any_rows, any_table_of, columns, data, fields, named,
        or_dash, paragraphs, short, table,
    },
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::{BlockAt, Client},
    report::RECENT_BLOCKS,
    types::{
        AmountText, Block, BlockFire, BlockNotice, BlockTransaction, Burned, Event, EventQuery,
        Fee, Head, Transaction, TransactionStatus,
    },
};
use std::{collections::BTreeSet, time::Duration};

#[derive(Debug, Subcommand)]
pub enum Chain {
    /// The newest finalized block
    Head,
    /// A block, with its transactions and events
    Block {
        /// Its height: 120, +10 (from now) or latest
        #[arg(value_name = "HEIGHT")]
        at: HeightArg,
    },
    /// A transaction and its receipt
    Tx {
        /// Its hash
        hash: String,
    },
    /// Events, block by block
    Events {
        /// Continue with new blocks until interrupted
        #[arg(long, short)]
        follow: bool,
        /// Only events with this name, such as JobAssigned
        #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::event_kinds))]
        kind: Option<String>,
        /// The first height [default: the last 100 blocks; with --follow the next one]
        #[arg(long, value_name = "HEIGHT")]
        from: Option<HeightArg>,
    },
    /// What was burned since genesis: by transactions, timers, questions to agents, callbacks
    Burned,
    /// The chain's governed parameters
    #[command(subcommand)]
    Params(params::Params),
    /// Make a number of blocks as fast as consensus allows, and wait for them
    ///
    /// After them the block time applies again. If two of these commands run at once, the higher
    /// target counts. The chain returns to its pace when the time is over at the latest, even if
    /// the command has ended.
    #[command(visible_alias = "mine")]
    Advance(advance::Advance),
    /// Give each transaction a block at once, or no longer
    ///
    /// Without transactions, blocks come at the block time: with devnet up --block-time 60s, hardly
    /// any. A devnet that starts again begins with off.
    Automine(advance::Mining),
    /// Keep the state after a new block, so that chain revert can return to it
    ///
    /// At most 16 are kept at a time. They are part of the chain: every validator keeps them.
    Snapshot(powers::KeepState),
    /// The snapshots that are kept
    Snapshots,
    /// Return to the state of a snapshot, in place: balances, actors, timers, jobs, runners
    ///
    /// The chain goes on: heights, timestamps and nonces do not go back, and what was due in five
    /// blocks is due in five blocks again. The snapshot stays; later ones are forgotten.
    Revert(powers::Revert),
    /// Forget a snapshot, and list those that are left
    Forget(powers::Forget),
    /// Move the timestamps of new blocks ahead, for a test; they never go back
    Time(powers::Time),
    /// Write a proof of the value that the state has under a key, or of its absence
    ///
    /// The proof is a file with a block's header and certificate, so that others can check it
    /// without the devnet: chain verify FILE.
    Prove {
        /// The kind: account, actor, stored, job, runner, task, presence, timer, timers or
        /// validators
        #[arg(value_parser = proof::KINDS)]
        kind: String,
        /// A name or address, an id, ACTOR/KEY for stored, FROM..TO for timers; nothing for
        /// presence and validators
        key: Option<String>,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Check a proof of chain prove without a devnet, or blocks from genesis on
    ///
    /// A file is checked from its header on: the certificate, the state root, the path from there
    /// to the value. Only the list of validators has to be trusted.
    ///
    /// Blocks are fetched with their certificates and executed here, from genesis to the end of the
    /// range, which also yields the validators. Nothing that the devnet says is trusted.
    #[command(mut_arg("file", |arg| arg
        .value_name("FILE|FROM..TO")
        .help("The proof, - for standard input; or the blocks: 1..120, 1..latest")))]
    Verify(Verify),
    /// Wait for a height
    Wait {
        /// The height: 120 or +10 (from now)
        #[arg(value_name = "HEIGHT")]
        at: HeightArg,
        /// Maximum time to wait
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
        timeout: Duration,
    },
}

impl Chain {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Params(params) => params.run(cx).await,
            Self::Advance(advance) => advance.run(cx).await,
            Self::Automine(automine) => automine.run(cx).await,
            Self::Snapshot(snapshot) => snapshot.run(cx).await,
            Self::Snapshots => cx.ui.list(&cx.client()?.state_snapshots().await?),
            Self::Revert(revert) => revert.run(cx).await,
            Self::Forget(forget) => forget.run(cx).await,
            Self::Time(time) => time.run(cx).await,
            Self::Prove { kind, key, wanted } => proof::prove(cx, &kind, key, wanted).await,
            Self::Verify(proof) => verify::run(cx, proof).await,
            Self::Head => cx.ui.document(&cx.client()?.head().await?),
            Self::Burned => cx.ui.document(&cx.client()?.burned().await?),
            Self::Block { at } => {
                let client = cx.client()?;
                let at = at.resolve(&client).await?;
                cx.ui.document(&client.block(at).await?)
            }
            Self::Tx { hash } => cx.ui.document(&cx.client()?.transaction(&hash).await?),
            Self::Events { follow, kind, from } => {
                events(cx, &cx.client()?, follow, kind, from).await
            }
            Self::Wait { at, timeout } => {
                let client = cx.client()?;
                let BlockAt::Height(height) = at.resolve(&client).await? else {
                    return Err(CliError::new(Exit::Usage, "latest is not a height to wait for")
                        .hint("say which: cowboyctl chain wait +1"));
                };
                let head = reach(cx.ui, &client, height, Deadline::after(timeout)).await?;
                cx.ui.document(&head)
            }
        }
    }
}

async fn events(
    cx: &Context,
    client: &Client,
    follow: bool,
    kind: Option<String>,
    from: Option<HeightArg>,
) -> Result<(), CliError> {
    let from = match from {
        Some(at) => Some(at.height(client).await?),
        None => None,
    };
    if follow {
        let mut blocks = client.follow(from);
        loop {
            for event in blocks.next().await?.events {
                if kind.as_ref().is_none_or(|kind| *kind == event.kind) {
                    cx.ui.record(&event)?;
                }
            }
        }
    }
    let first = match from {
        Some(height) => height,
        None => client.head().await?.height.saturating_sub(RECENT_BLOCKS),
    };
    let mut all = Vec::new();
    let mut next = Some(first);
    while let Some(from) = next {
        let query = EventQuery { from: Some(from), kind: kind.clone(), limit: None };
        let page = client.events(&query).await?;
        all.extend(page.events);
        // A page that does not advance would be requested for ever.
        next = page.next.filter(|next| *next > from);
    }
    cx.ui.list(&all)
}

impl Document for Head {
    fn text(&self) -> String {
        let finalized = self.finalized_at.map_or_else(|| "genesis".to_owned(), |at| at.to_string());
        fields(&[
            ("height", self.height.to_string()),
            ("hash", self.hash.to_string()),
            ("finalized", finalized),
        ])
    }

    fn id(&self) -> String {
        self.height.to_string()
    }
}

const TRANSACTIONS: &[ColumnOf<BlockTransaction>] = &[
    ("transaction", |transaction| transaction.hash.to_string()),
    ("kind", |transaction| transaction.kind.clone()),
    ("sender", |transaction| short(&transaction.sender)),
    ("status", |transaction| transaction.status.name().to_owned()),
];

const FIRES: &[ColumnOf<BlockFire>] = &[
    ("timer", |fire| fire.timer_id.to_string()),
    ("actor", |fire| short(&fire.actor)),
    ("handler", |fire| fire.handler.clone()),
    (">due at", |fire| fire.due_at.to_string()),
    ("status", |fire| fire.status.to_string()),
    (">cycles", |fire| fire.cycles.to_string()),
];

impl Document for Block {
    fn text(&self) -> String {
        let head = fields(&[
            ("height", self.height.to_string()),
            ("hash", self.hash.to_string()),
            ("parent", self.parent.to_string()),
            ("proposer", or_dash(self.proposer.clone())),
            ("view", self.view.to_string()),
            ("timestamp", self.timestamp.to_string()),
            ("state root", self.state_root.to_string()),
            ("executed to", self.executed_height.to_string()),
            ("certificate for", list(&self.certificate_for)),
            ("open", list(&self.open)),
            ("cycles, cells", format!("{}, {}", self.cycles_used, self.cells_used)),
            ("transactions", self.transactions.len().to_string()),
            ("timers fired", self.fires.len().to_string()),
            ("events", self.events.len().to_string()),
        ]);
        paragraphs([
            head,
            any_table_of(TRANSACTIONS, &self.transactions),
            any_table_of(FIRES, &self.fires),
            any_rows(&self.events),
        ])
    }

    fn id(&self) -> String {
        self.hash.to_string()
    }
}

/// Heights as a list; a dash if it is empty.
fn list(heights: &[u64]) -> String {
    match heights {
        [] => "-".to_owned(),
        _ => heights.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

impl Document for Transaction {
    fn text(&self) -> String {
        let mut lines = vec![
            ("hash", self.hash.to_string()),
            ("status", self.status.name().to_owned()),
            ("kind", self.kind.clone()),
            ("sender", named(self.sender_name.as_deref(), &self.sender)),
        ];
        lines.extend(self.acted_as.map(|account| ("acted as", account.to_string())));
        lines.extend([("nonce", self.nonce.to_string()), ("payload", data(&self.payload))]);
        if let Some(allowance) = &self.timer_allowance {
            lines.push(("timers may take", amount(**allowance)));
        }
        lines.extend(self.height.map(|height| ("block", height.to_string())));
        if let Some(fee) = &self.fee {
            let paid = amount(fee.burned.saturating_add(*fee.tip));
            let unused = match fee.unused {
                0 => String::new(),
                unused => format!(", {unused} of them bought and not used"),
            };
            lines.push(match self.actor {
                // Their own fields show it, and what it was used for.
                Some(_) => ("fee", paid),
                None => {
                    let Fee { cycles, cells, .. } = fee;
                    ("fee", format!("{paid} ({cycles} cycles{unused}, {cells} cells)"))
                }
            });
        }
        if let Some(reason) = reason(self.error.as_deref(), self.message.as_deref()) {
            lines.push(("error", reason));
        }
        if let Some(receipt) = &self.actor {
            let success = self.status == TransactionStatus::Success;
            lines.extend(actor::receipt_fields(receipt, success, self.fee.as_ref()));
        }
        let log = actor::receipt_log(self.actor.as_ref().map_or(&[], |receipt| &receipt.log));
        paragraphs([fields(&lines), log, any_rows(&self.events)])
    }

    fn id(&self) -> String {
        self.hash.to_string()
    }
}

impl Row for Event {
    columns! { self;
        ">height" => self.height.to_string(),
        "event" => self.kind.clone(),
        "data" => data(&self.data),
    }

    fn id(&self) -> String {
        format!("{}/{}", self.height, self.index)
    }
}

impl Row for BlockNotice {
    columns! { self;
        let kinds = self.events.iter().map(|event| event.kind.as_str());
        // Every block with a certificate has this one.
        let kinds = kinds.filter(|kind| *kind != "PresenceDerived").collect::<BTreeSet<_>>();
        ">height" => self.height.to_string(),
        "hash" => short(&self.hash),
        "proposer" => or_dash(self.proposer.clone()),
        ">view" => self.view.to_string(),
        ">transactions" => self.transactions.to_string(),
        "present" => format!("{}/{}", self.present, self.registry_len),
        "certifies" => list(&self.certificate_for),
        "events" => kinds.into_iter().collect::<Vec<_>>().join(" "),
    }

    fn id(&self) -> String {
        self.height.to_string()
    }
}

impl Document for Burned {
    fn text(&self) -> String {
        let total = self.total.get();
        let share = |part: &AmountText| {
            let per_mille = part.get().saturating_mul(1_000).checked_div(total).unwrap_or(0);
            format!("{}.{}%", per_mille / 10, per_mille % 10)
        };
        let row = |lane: &str, part: &AmountText, what: &str| {
            vec![lane.to_owned(), amount(**part), share(part), what.to_owned()]
        };
        let rows = [
            row("transactions", &self.transactions, "basefees of cycles and cells"),
            row("timers", &self.timers, "basefees of fires: cycles, lane and cells"),
            row("questions", &self.questions, "to gas bidding agents, by the owners of timers"),
            row("callbacks", &self.callbacks, "to actors, when their jobs end"),
            row("penalties", &self.penalties, "slashed from stakes, balances and bonds"),
        ];
        fields(&[
            ("after block", self.height.to_string()),
            ("burned", amount(*self.total)),
            ("lane basefee", format!("{} of timers and questions", amount(*self.lane_basefee))),
        ]) + "\n\n"
            + &table(&["lane", ">burned", ">share", "of"], rows)
    }

    fn id(&self) -> String {
        self.total.to_string()
    }
}
