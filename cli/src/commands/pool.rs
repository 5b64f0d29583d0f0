//! `pool`: shows and changes pools, the groups of runners for jobs with `--pool`.

use super::{
    account::Inclusion,
    transaction::{self, Author},
};
use crate::{
    complete,
    context::{Context, Deadline},
    error::CliError,
    output::{Document, Row, columns, fields, named, rows},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::{Pool as Entry, PoolMember};
use cowboy_engine::{
    chain::transaction::{GrantEntitlement, Payload, RevokeEntitlement},
    primitives::{Address, Height},
};

#[derive(Debug, Subcommand)]
pub enum Pool {
    /// Every pool
    Ls,
    /// A pool and its members
    Show {
        /// The pool
        #[arg(add = ArgValueCandidates::new(complete::pools))]
        pool: String,
    },
    /// Make a runner a member; the account that adds a pool's first member owns it
    Grant {
        /// The pool: a name of 1 to 64 bytes
        pool: String,
        /// The runner: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: String,
        /// The last block at which it is a member [default: until it is revoked]
        #[arg(long, value_name = "HEIGHT")]
        until: Option<u64>,
        #[command(flatten)]
        author: Author,
        #[command(flatten)]
        inclusion: Inclusion,
    },
    /// Remove a runner; its current jobs continue
    Revoke {
        /// The pool
        #[arg(add = ArgValueCandidates::new(complete::pools))]
        pool: String,
        /// The runner: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: String,
        #[command(flatten)]
        author: Author,
        #[command(flatten)]
        inclusion: Inclusion,
    },
}

impl Pool {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Ls => cx.ui.list(&cx.client()?.pools().await?),
            Self::Show { pool } => cx.ui.document(&cx.client()?.pool(&pool).await?),
            Self::Grant { pool, runner, until, author, inclusion } => {
                let valid_until = until.map(Height::new);
                let payload = |pool, runner| {
                    Payload::GrantEntitlement(GrantEntitlement { pool, runner, valid_until })
                };
                change(cx, (&pool, &runner), &author, inclusion, payload).await
            }
            Self::Revoke { pool, runner, author, inclusion } => {
                let payload =
                    |pool, runner| Payload::RevokeEntitlement(RevokeEntitlement { pool, runner });
                change(cx, (&pool, &runner), &author, inclusion, payload).await
            }
        }
    }
}

async fn change(
    cx: &Context,
    (pool, runner): (&str, &str),
    author: &Author,
    inclusion: Inclusion,
    payload: impl FnOnce(String, Address) -> Payload,
) -> Result<(), CliError> {
    let deadline = Deadline::after(inclusion.timeout);
    let (devnet, client) = cx.devnet_and_client()?;
    let signer = author.signer(&devnet, &client).await?;
    let runner = *client.runner(runner).await?.address;
    let payload = payload(pool.to_owned(), runner);
    transaction::execute(cx.ui, &client, &signer, payload, deadline).await?;
    cx.ui.document(&client.pool(pool).await?)
}

impl Row for Entry {
    columns! { self;
        let members = self.members.iter().filter(|member| member.live);
        let members = members.map(|member| member.runner.as_str()).collect::<Vec<_>>();
        let owner = self.owner_name.clone().unwrap_or_else(|| self.owner.to_string());
        "pool" => self.pool.clone(),
        "owner" => owner,
        "members" => members.join(", "),
    }

    fn id(&self) -> String {
        self.pool.clone()
    }
}

impl Row for PoolMember {
    columns! { self;
        let until = match (self.valid_until, self.live) {
            (None, _) => "revoked".to_owned(),
            (Some(until), true) => until.to_string(),
            (Some(until), false) => format!("{until} (over)"),
        };
        "member" => self.runner.clone(),
        "address" => self.address.to_string(),
        "until" => until,
    }
    const LEAST: &'static [&'static str] = &["address"];

    fn id(&self) -> String {
        self.runner.clone()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let head = fields(&[
            ("pool", self.pool.clone()),
            ("owner", named(self.owner_name.as_deref(), &self.owner)),
        ]);
        format!("{head}\n\n{}", rows(&self.members))
    }

    fn id(&self) -> String {
        let live = self.members.iter().filter(|member| member.live);
        live.map(|member| member.runner.clone()).collect::<Vec<_>>().join("\n")
    }
}
