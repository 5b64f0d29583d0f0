//! `timer`: calls that the chain makes by itself: what is scheduled, how it ended, and the prices
//! of the lane.

pub(super) mod allowance;
pub(super) mod change;
mod chart;
mod fees;
pub(super) mod queue;
pub(super) mod schedule;
mod show;
mod watch;

use crate::{
    args::{self, HeightArg},
    commands::{
        proof::{self, Verify, Wanted},
        transaction::Signer,
    },
    complete,
    context::Context,
    error::{CliError, Exit},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    orchestrator::home::DevnetHome,
    types::{AddressText, LaneQuery, StoreQuery, TimerQuery, TimerStatus},
};

#[derive(Debug, Subcommand)]
pub enum Timer {
    /// Schedule a call of an actor's handler at a height
    ///
    /// The deployer of the actor schedules for it, and the actor pays when the timer fires; with
    /// --payer sender, the scheduling account pays, up to an allowance. Fees that are left out are
    /// the current bid of the chain's default agent.
    Schedule(schedule::Schedule),
    /// Waiting timers, by height
    Ls {
        /// Only timers of this actor: a name, its address or enough of its beginning, or latest
        #[arg(long, value_name = "ACTOR", add = ArgValueCandidates::new(complete::actors))]
        actor: Option<String>,
        /// Only timers that this account or actor pays for: a name or an address
        #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
        payer: Option<String>,
        /// Only timers with this status: scheduled, due, fired, failed, expired, cancelled or
        /// insufficient_funds
        #[arg(long, value_parser = args::timer_status)]
        #[arg(add = ArgValueCandidates::new(|| complete::all(TimerStatus::ALL)))]
        status: Option<TimerStatus>,
        /// Include ended timers, the latest end first
        #[arg(long, short)]
        all: bool,
        /// Maximum number of timers
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a timer: its status, why it did not fire in past blocks, where the money went
    Show {
        /// The timer: a name, its id or enough of its beginning, or latest
        #[arg(add = ArgValueCandidates::new(complete::timers))]
        timer: String,
    },
    /// Cancel a timer that has not fired
    ///
    /// The account that deployed its actor and the account that pays for it can cancel it.
    Cancel(change::Cancel),
    /// Extend a timer's life
    Extend(change::Extend),
    /// Print events of timers, block by block
    ///
    /// For one timer, past events are included, and it stops when the timer has ended; otherwise it
    /// continues until interrupted.
    Watch(watch::Watch),
    /// The tiers of the calendar queue, and why due timers wait
    ///
    /// For each timer that is due in the next block: its rank, its weight, its tip to the proposer,
    /// why it did not fire in the newest block, and what happens to it in the next one if no
    /// transaction runs before it.
    Queue(queue::Queue),
    /// What a timer's agent would bid in the next block
    ///
    /// Asks the agent with the state, limits and prices of that block, and sends no transaction.
    /// Shows the bid or why the agent gave none, the cost of the question, and the timer's rank
    /// among the due ones with that bid.
    Bid {
        /// The timer: a name, its id or enough of its beginning, or latest
        #[arg(add = ArgValueCandidates::new(complete::timers))]
        timer: String,
    },
    /// The price of a cycle in the timer lane, and the lane's utilisation; with a chart on a
    /// terminal
    Fees {
        /// Number of blocks
        #[arg(long, alias = "blocks", default_value_t = 60)]
        limit: usize,
        /// The first block [default: so that the newest block is the last]
        #[arg(long, value_name = "HEIGHT")]
        from: Option<HeightArg>,
    },
    /// Show how often each owner fired recently, and which ones the next block favours
    Fairness,
    /// Write a proof that a timer waits or does not, or of all timers for some heights
    ///
    /// The proof is a file with a block's header and certificate, so that others can check it
    /// without the devnet: timer verify FILE.
    Prove {
        /// The timer: a name, its id or enough of its beginning, or latest
        #[arg(required_unless_present = "heights", conflicts_with = "heights")]
        #[arg(add = ArgValueCandidates::new(complete::timers))]
        timer: Option<String>,
        /// Prove all timers that wait for these heights instead, both ends included
        #[arg(long, value_name = "FROM..TO")]
        heights: Option<String>,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Check a proof of timer prove, without a devnet
    ///
    /// The file is checked from its header: the certificate, the state root, the path from there to
    /// the timer. Only the list of validators has to be trusted.
    Verify(Verify),
}

impl Timer {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Schedule(schedule) => schedule.run(cx).await,
            Self::Ls { actor, payer, status, all, limit } => {
                let all = all.then_some(true);
                let query = TimerQuery { actor, payer, status, all, limit: Some(limit) };
                cx.ui.list(&cx.client()?.timers(&query).await?)
            }
            Self::Show { timer } => cx.ui.document(&cx.client()?.timer(&timer).await?),
            Self::Cancel(cancel) => cancel.run(cx).await,
            Self::Extend(extend) => extend.run(cx).await,
            Self::Watch(watch) => watch.run(cx).await,
            Self::Queue(queue) => queue.run(cx).await,
            Self::Bid { timer } => cx.ui.document(&cx.client()?.timer_bid(&timer).await?),
            Self::Fees { limit, from } => {
                let client = cx.client()?;
                let from = match from {
                    Some(at) => Some(at.height(&client).await?),
                    None => None,
                };
                let query = LaneQuery { from, limit: Some(limit) };
                fees::print(cx.ui, &client.timer_fees(&query).await?)
            }
            Self::Prove { timer, heights, wanted } => match heights {
                Some(heights) => proof::prove(cx, "timers", Some(heights), wanted).await,
                None => proof::prove(cx, "timer", timer, wanted).await,
            },
            Self::Verify(verify) => verify.run(cx, true),
            Self::Fairness => cx.ui.document(&cx.client()?.timer_fairness().await?),
        }
    }
}

/// An actor, without its store.
async fn actor_of(client: &Client, actor: &str) -> Result<cowboy_devnet::types::Actor, CliError> {
    let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
    Ok(client.actor(actor, &query).await?)
}

/// The key that may change the timers of an actor: the given account's, else its deployer's.
fn signer_of(
    devnet: &DevnetHome,
    named: Option<&str>,
    deployer: AddressText,
) -> Result<Signer, CliError> {
    if let Some(named) = named {
        return Signer::find(devnet, named);
    }
    let deployer = deployer.to_string();
    Signer::find(devnet, &deployer).map_err(|_| {
        CliError::new(
            Exit::NotFound,
            format!("the key of the actor's deployer {deployer} is not here"),
        )
        .detail(format!("keys are in {}", devnet.accounts_path().display()))
        .hint("only the deployer, or the actor itself, schedules and changes its timers")
    })
}
