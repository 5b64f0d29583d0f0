//! `timer schedule`: builds a timer from the command line, sends its transaction, and waits for its
//! fire.

use super::{
    actor_of,
    allowance::{self, Told},
    signer_of,
};
use crate::{
    args::{self, HeightArg},
    commands::{
        naming::Naming,
        timer::show::{charge_fields, standing},
        transaction::{self, Acting, Executed, Signer, TransactionLimits, reason},
    },
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit, nearest},
    output::{Document, Ui, amount, fields, named, timer::has_ended, warn, wei},
};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::funding,
    client::Client,
    types::{
        Actor, AddressText, AmountText, Event, HashText, NamedKind, Timer, TimerCharge,
        TimerStatus, Transaction,
    },
};
use cowboy_engine::{
    actor::effect::{MAX_PAYLOAD_BYTES, called},
    chain::transaction::Payload,
    primitives::{Address, Height, InCby, Shortfall, Wei},
    timer::{self, Policy, TimerRequest},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{ops::ControlFlow, sync::Arc, time::Duration};

/// The handler that `--every` calls, and that schedules its next call.
const REPEATING: &str = "handle_every";

/// Maximum number of attempts for a timer meant for a few blocks from now, if its transaction gets
/// into a block too late.
const ATTEMPTS: u64 = 3;

/// `timer schedule`.
#[derive(Debug, Args)]
pub struct Schedule {
    /// The actor: a name, its address or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// This many blocks after the block that schedules it
    #[arg(long = "in", value_name = "BLOCKS", conflicts_with = "at")]
    #[arg(required_unless_present_any = ["at", "every"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LATEST))]
    after: Option<u64>,
    /// At this height, or as soon after it as the lane has room: 120 or +10 (from now)
    #[arg(long, value_name = "HEIGHT")]
    at: Option<HeightArg>,
    /// Every this many blocks: calls `handle_every`, which schedules itself again
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u64).range(1..=LATEST))]
    every: Option<u64>,
    /// The payload: text, bytes as 0x-hex, or the contents of @FILE (@- for stdin)
    #[arg(long, value_name = "PAYLOAD", default_value = "", hide_default_value = true)]
    payload: String,
    #[command(flatten)]
    naming: Naming,
    /// The handler [default: handle_timer, or the one that the payload's envelope names]
    #[arg(long, value_name = "NAME")]
    handler: Option<String>,
    /// Maximum cycles of the fire [default: the most allowed]
    #[arg(long, value_name = "CYCLES")]
    gas_limit: Option<u64>,
    /// Maximum cells of the fire [default: 50000, or the most allowed if that is less]
    #[arg(long, value_name = "N")]
    cells: Option<u64>,
    /// The payer of the fire: the actor, or the sender of this transaction
    #[arg(long, value_enum, value_name = "WHO", default_value = "actor")]
    payer: Payer,
    /// Maximum that the fire may ever take from the sender, if the sender pays: 1.5cby, or wei
    /// [default: half more than it could cost now]
    #[arg(long, value_name = "AMOUNT")]
    timer_allowance: Option<Wei>,
    /// The last height at which it may fire: 120 or +10 (from now) [default: the latest allowed]
    #[arg(long, value_name = "HEIGHT")]
    expires: Option<HeightArg>,
    /// Maximum price of a cycle, lane basefee and priority together: wei, or cby
    #[arg(long, value_name = "AMOUNT")]
    max_fee: Option<Wei>,
    /// Maximum part of that for the proposer: wei, or cby
    #[arg(long, value_name = "AMOUNT", conflicts_with = "tier")]
    max_priority: Option<Wei>,
    /// Its urgency, which sets the priority: 0.8, 1, 1.5 or 2.5 times the median tip
    #[arg(long, value_enum)]
    tier: Option<Tier>,
    /// The actor that bids when the timer is due, instead of the two fees
    #[arg(long, value_name = "ACTOR", add = ArgValueCandidates::new(complete::actors))]
    gba: Option<String>,
    /// The account that schedules it and pays for that [default: the actor's deployer]
    #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
    from: Option<String>,
    #[command(flatten)]
    acting: Acting,
    /// Wait until it has fired, or ended otherwise
    #[arg(long)]
    wait: bool,
    /// Maximum time to wait, for the transaction's block and with --wait for the end
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
    timeout: Duration,
}

/// The end of the key of the parameter that sets the lane's size.
const LANE_KEY: &str = ":lane_timer_cycles";

/// Maximum number of blocks that a timer can be ahead: a year at one block per second.
const LATEST: u64 = 31_536_000;

/// The payer of a fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Payer {
    /// The actor.
    Actor,
    /// The account that schedules.
    Sender,
}

/// The urgency of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tier {
    /// Below the median tip.
    Economy,
    /// The median tip.
    Standard,
    /// Above the median tip.
    Fast,
    /// Far above the median tip.
    Urgent,
}

impl From<Tier> for timer::Tier {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Economy => Self::Economy,
            Tier::Standard => Self::Standard,
            Tier::Fast => Self::Fast,
            Tier::Urgent => Self::Urgent,
        }
    }
}

/// A scheduled timer, with its end if that was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Scheduled {
    timer_id: HashText,
    /// Its name, if it has one.
    name: Option<String>,
    actor: AddressText,
    /// The actor's name, if the devnet knows one.
    actor_name: Option<String>,
    handler: String,
    height: u64,
    expires_at: u64,
    max_fee_per_cycle: AmountText,
    max_priority_fee_per_cycle: AmountText,
    fee_payer: AddressText,
    /// Maximum cost of the fire: for a payer other than the actor always, for the actor while
    /// neither basefee is more than twice its value at scheduling.
    max_cost: AmountText,
    /// The transaction that scheduled it, and its block.
    transaction: HashText,
    scheduled_at: Option<u64>,
    #[serde(flatten)]
    end: Option<Waited>,
}

/// The end of a timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Waited {
    status: TimerStatus,
    fired_at: Option<u64>,
    ended_at: Option<u64>,
    deferred_blocks: u64,
    charged: Option<TimerCharge>,
    cycles: Option<u64>,
    cells: Option<u64>,
    result: Option<Value>,
    error: Option<String>,
}

impl Schedule {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let payload = args::payload(&self.payload, MAX_PAYLOAD_BYTES)?;
        let (devnet, client) = cx.devnet_and_client()?;
        let actor = actor_of(&client, &self.actor).await?;
        let gba = match &self.gba {
            Some(gba) => Some(*actor_of(&client, gba).await?.actor),
            None => None,
        };
        let (handler, payload) = self.call(&actor, payload, gba)?;
        let signer = match self.acting.signer(&devnet, &client).await? {
            Some(signer) => signer,
            None => signer_of(&devnet, self.from.as_deref(), actor.deployer)?,
        };
        let policy = client.timer_fairness().await?.policy;
        let policy = Policy::named(&policy).unwrap_or_default();
        if policy == Policy::GbaAuction {
            self.check_for_auction()?;
        }
        let deadline = Deadline::after(self.timeout);
        self.naming.check(&client, NamedKind::Timer).await?;
        let executed =
            self.send(cx.ui, &client, &signer, (*actor.actor, &payload, gba), deadline).await?;
        let transaction = executed.succeeded()?;
        let told = told(transaction)?;
        warn_of(&transaction.events);

        let id = told.timer_id.to_string();
        let name = self.naming.give(&client, NamedKind::Timer, &id).await?;
        // The timer is scheduled even if the devnet cannot report more about it.
        let mut known = client.timer(&id).await.ok();
        if let Some(timer) = &known {
            warn_of_debts(timer, told.max_cost, policy);
            warn_of_size(&client, timer).await;
        }
        if self.wait {
            let look = async || {
                let timer = client.timer(&id).await?;
                Ok(match has_ended(timer.status) {
                    true => ControlFlow::Break(timer),
                    false => ControlFlow::Continue(standing(&timer)),
                })
            };
            let awaited = format!("timer {id}");
            known = Some(deadline.until(cx.ui, &client, &awaited, look).await?);
        }
        let ended = known.filter(|_| self.wait);
        cx.ui.document(&Scheduled {
            timer_id: told.timer_id,
            name,
            actor: actor.actor,
            actor_name: actor.name,
            handler,
            height: told.height,
            expires_at: told.expires_at,
            max_fee_per_cycle: told.max_fee_per_cycle,
            max_priority_fee_per_cycle: told.max_priority_fee_per_cycle,
            fee_payer: told.fee_payer,
            max_cost: told.max_cost,
            transaction: transaction.hash,
            scheduled_at: transaction.height,
            end: ended.as_ref().map(Waited::of),
        })?;
        ended.map_or(Ok(()), |timer| fired(&timer))
    }

    /// Refuses what an auction of agents refuses, and warns about options without effect in it.
    fn check_for_auction(&self) -> Result<(), CliError> {
        if self.gba.is_none() {
            let what =
                "GbaRequired: under gba-auction every timer names the actor that bids for it";
            return Err(CliError::new(Exit::Rejected, what)
                .detail("an agent is an actor with getGasBid: examples/actors/default_gba.star")
                .hint("name it: --gba ACTOR; the actor itself may be its own agent"));
        }
        let given = [
            ("--max-fee", self.max_fee.is_some()),
            ("--max-priority", self.max_priority.is_some()),
            ("--tier", self.tier.is_some()),
        ];
        for (flag, _) in given.into_iter().filter(|(_, given)| *given) {
            warn(&format!("{flag} has no effect under gba-auction: the agent's bid counts"));
        }
        Ok(())
    }

    /// The handler that will be called, which must exist, and the payload that selects it.
    fn call(
        &self,
        actor: &Actor,
        payload: Vec<u8>,
        gba: Option<Address>,
    ) -> Result<(String, Vec<u8>), CliError> {
        let (handler, payload) = match self.every {
            None => (called(self.handler.as_deref(), &payload).0, payload),
            Some(every) => {
                let text = String::from_utf8(payload).map_err(|_| {
                    CliError::new(Exit::Usage, "the payload of a timer with --every must be text")
                })?;
                let mut terms = json!({"every": every, "payload": text});
                if let Some(gba) = gba {
                    // The handler passes it on to the next call.
                    terms["gba"] = gba.to_string().into();
                }
                let terms = terms.to_string().into_bytes();
                (self.handler.clone().unwrap_or_else(|| REPEATING.to_owned()), terms)
            }
        };
        if actor.handlers.iter().any(|known| known.name == handler) {
            return Ok((handler, payload));
        }
        let names: Vec<_> = actor.handlers.iter().map(|known| known.name.as_str()).collect();
        let what = format!("actor {} has no handler `{handler}`", actor.actor);
        let error = CliError::new(Exit::NotFound, what);
        Err(match self.every {
            Some(_) => error
                .detail(
                    "a timer fires once: to come again, its handler has to schedule the next one",
                )
                .hint("how: examples/actors/heartbeat.star; or name another with --handler"),
            None => error
                .detail(match nearest(&handler, names.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("it has: {}", names.join(", ")),
                })
                .hint("say which is to be called: --handler NAME"),
        })
    }

    /// Sends the transaction; again if it got into a block that was too late.
    async fn send(
        &self,
        ui: Ui,
        client: &Client,
        signer: &Signer,
        (actor, payload, gba): (Address, &[u8], Option<Address>),
        deadline: Deadline,
    ) -> Result<Executed, CliError> {
        let expires_at = match self.expires {
            Some(at) => Some(Height::new(at.height(client).await?)),
            None => None,
        };
        // A repeating timer first fires after one interval.
        let after = self.after.or(self.every).unwrap_or_default();
        let mut attempt = 1;
        loop {
            let head = client.head().await?.height;
            let height = match self.at {
                Some(at) => at.height(client).await?,
                None => head.saturating_add(attempt + after),
            };
            // Refuse here what the chain would refuse, before it costs a fee.
            if height <= head + 1 {
                let what = format!(
                    "HeightNotInFuture: the next block, which schedules it, is {}; {height} is not \
                     after it",
                    head + 1,
                );
                return Err(CliError::new(Exit::Rejected, what)
                    .hint("give a number of blocks from then: --in 1"));
            }
            let request = TimerRequest {
                actor,
                height: Height::new(height),
                payload: payload.to_vec(),
                handler: self.handler.clone().or(self.every.map(|_| REPEATING.to_owned())),
                fee_payer: (self.payer == Payer::Sender).then(|| signer.address()),
                gas_limit: self.gas_limit,
                cell_limit: self.cells,
                expires_at,
                max_fee_per_cycle: self.max_fee,
                max_priority_fee_per_cycle: self.max_priority,
                tier: self.tier.map(Into::into),
                gba,
                bid: false,
            };
            let timer_allowance = match (self.timer_allowance, self.payer) {
                (None, Payer::Sender) => {
                    Some(allowance::for_one(client, &request, signer.address()).await?)
                }
                (given, _) => given,
            };
            let limits = TransactionLimits { timer_allowance, ..TransactionLimits::default() };
            let payload = Payload::ScheduleTimer(Arc::new(request));
            let executed =
                transaction::settle(ui, client, signer, payload, limits, deadline).await?;
            let late = executed.transaction.error.as_deref() == Some("HeightNotInFuture");
            if !late || self.at.is_some() || attempt == ATTEMPTS {
                return Ok(executed);
            }
            attempt += 1;
        }
    }
}

fn told(transaction: &Transaction) -> Result<Told, CliError> {
    allowance::told(&transaction.events).into_iter().next().ok_or_else(|| {
        CliError::failed(format!("transaction {} has no event about a timer", transaction.hash))
            .hint("the devnet may be of another version: restart it with this cowboyctl")
    })
}

/// Prints the chain's changes to the timer, and what will keep it from firing.
fn warn_of(events: &[Event]) {
    for event in events {
        let of = |key: &str| event.data.get(key).map(plain).unwrap_or_default();
        match event.kind.as_str() {
            "TimerPriorityClampedAtSchedule" => warn(&format!(
                "its priority is {} wei per cycle, not {}: that is what its cap leaves above the \
                 lane basefee",
                of("clamped"),
                of("stated"),
            )),
            "TimerExceedsAuctionCap" => warn(&format!(
                "it cannot fire: it asks for {} cycles, a fire under this policy has {} at most",
                of("gas_limit"),
                of("cap"),
            )),
            _ => {}
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Warns if the payer's balance does not cover the fire. A timer that is due at once may already
/// have been removed for that; its cost is then `at_schedule`.
fn warn_of_debts(timer: &Timer, at_schedule: AmountText, policy: Policy) {
    let cost = match timer.status {
        TimerStatus::InsufficientFunds => Some(at_schedule),
        _ => timer.max_cost,
    };
    let Some(max_cost) = cost.filter(|cost| **cost > *timer.payer_balance) else { return };
    let then = match policy {
        Policy::GbaAuction => {
            "its agent is not asked and it waits for funds until its time is over"
        }
        Policy::Eip1559 | Policy::Fifo => "it would be removed when it is due",
    };
    warn(&format!(
        "its payer {} has {}, and the fire may cost {}: {then}; fund it: cowboyctl account fund \
         {} {}cby",
        timer.fee_payer,
        amount(*timer.payer_balance),
        amount(*max_cost),
        timer.fee_payer,
        max_cost.get() / cowboy_engine::primitives::CBY + 1,
    ));
}

/// Warns if not even an empty lane has room for the fire.
async fn warn_of_size(client: &Client, timer: &Timer) {
    let parameters = client.governance().await.unwrap_or_default();
    let lane = parameters.iter().find(|parameter| parameter.key.ends_with(LANE_KEY));
    let lane = lane.and_then(|lane| lane.value.number());
    if let Some(lane) = lane.filter(|lane| *lane < timer.gas_limit) {
        warn(&format!(
            "it cannot fire: it asks for {} cycles, and the lane has {lane} a block; \
             give it a smaller --gas-limit",
            timer.gas_limit,
        ));
    }
}

/// Fails unless the timer ended with a successful fire.
fn fired(timer: &Timer) -> Result<(), CliError> {
    let (exit, what) = match timer.status {
        TimerStatus::Scheduled | TimerStatus::Due | TimerStatus::Fired => return Ok(()),
        TimerStatus::Failed => {
            let reason = reason(None, timer.error.as_deref());
            (Exit::Rejected, reason.unwrap_or_else(|| "its handler failed".to_owned()))
        }
        TimerStatus::Expired => {
            let what = format!("TimerExpired: it did not fire by {}", timer.expires_at);
            (Exit::Rejected, what)
        }
        TimerStatus::InsufficientFunds => {
            let why = match timer.promised {
                Some(promised) if promised <= timer.payer_balance => {
                    format!("promised {} at most, and the fire could cost more", amount(*promised))
                }
                _ => "could not pay for the fire".to_owned(),
            };
            let payer = timer.fee_payer;
            (Exit::Rejected, format!("TimerCancelledInsufficientFunds: {payer} {why}"))
        }
        TimerStatus::Cancelled => (Exit::Failed, "it was cancelled".to_owned()),
    };
    let error = CliError::new(exit, what);
    Err(match shortfall(timer) {
        Some(short) => error
            .detail(format!("{} are missing", InCby(short.missing())))
            .hint(funding(&short, None)),
        None => error.hint(format!("see why: cowboyctl timer show {}", timer.timer_id)),
    })
}

/// The amount that a timer's payer lacked when the timer was removed for it. A payer that promised
/// too little may have enough.
fn shortfall(timer: &Timer) -> Option<Shortfall> {
    let removed = |event: &&Event| event.kind == "TimerCancelledInsufficientFunds";
    let data = &timer.events.iter().find(removed)?.data;
    let amount = |field: &str| data[field].as_str()?.parse::<Wei>().ok();
    let (need, have) = (amount("required")?, amount("available")?);
    let short = Shortfall { payer: *timer.fee_payer, need, have };
    (!short.missing().is_zero() && timer.payer_balance.0 < need).then_some(short)
}

impl Waited {
    fn of(timer: &Timer) -> Self {
        Self {
            status: timer.status,
            fired_at: timer.fired_at,
            ended_at: timer.ended_at,
            deferred_blocks: timer.deferred_blocks,
            charged: timer.charged.clone(),
            cycles: timer.cycles,
            cells: timer.cells,
            result: timer.result.clone(),
            error: timer.error.clone(),
        }
    }
}

impl Document for Scheduled {
    fn text(&self) -> String {
        let mut lines = vec![
            ("timer", named(self.name.as_deref(), &self.timer_id)),
            (
                "calls",
                format!("{} of {}", self.handler, named(self.actor_name.as_deref(), &self.actor)),
            ),
            ("height", self.height.to_string()),
            ("expires at", self.expires_at.to_string()),
            ("fee at most", format!("{} per cycle", wei(*self.max_fee_per_cycle))),
            ("priority", format!("{} per cycle at most", wei(*self.max_priority_fee_per_cycle))),
        ];
        if self.fee_payer != self.actor {
            lines.push(("payer", self.fee_payer.to_string()));
            lines.push(("promised", format!("{} at most", amount(*self.max_cost))));
        }
        lines.extend(self.scheduled_at.map(|height| ("scheduled at", height.to_string())));
        if let Some(end) = &self.end {
            lines.push(("status", end.status.to_string()));
            if let Some(height) = end.fired_at.or(end.ended_at) {
                let late = height.saturating_sub(self.height);
                let late = if late > 0 { format!(", {late} blocks late") } else { String::new() };
                lines.push(("ended at", format!("{height}{late}")));
            }
            lines.extend(end.result.as_ref().map(|result| ("result", result.to_string())));
            lines.extend(charge_fields(end.charged.as_ref(), end.cycles, end.cells));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.timer_id.to_string()
    }
}
