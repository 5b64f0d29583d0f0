//! What a plan is based on: a topology, the running devnet, or the defaults.

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::to_ms,
};
use cowboy_devnet::{
    client::Client,
    topology::{Options, Overrides, Plan, Topology},
    types::PipelineQuery,
};
use cowboy_engine::{
    primitives::{Address, Wei},
    speculation::Bonds,
};
use jiff::Timestamp;
use std::path::Path;

pub struct Basis {
    pub what: String,
    pub options: Options,
    pub bonds: Bonds,
    pub stake: Wei,
    pub block_ms: u64,
    pub agent: Address,
    pub number: u64,
    /// Time until the circuit breaker lets a task through, in ms.
    pub breaker_ms: Option<u64>,
    /// Number of tasks of other pipelines.
    pub others: u64,
}

impl Basis {
    /// The given topology, else the running devnet, else the defaults.
    pub async fn find(cx: &Context, topology: Option<&Path>) -> Result<Self, CliError> {
        if let Some(file) = topology {
            let (topology, text) = Topology::load(file)?;
            let shown = file.display().to_string();
            let plan = topology.resolve(&Overrides::default(), &text, &shown)?;
            return Ok(Self::of(format!("topology {shown}"), &plan));
        }
        match cx.running(None) {
            Ok(devnet) => Self::running(devnet.name().as_str(), &cx.client_of(&devnet)?).await,
            Err(error) if error.exit == Exit::NotRunning && cx.chosen()?.is_none() => {
                let plan = Topology::default().resolve(&Overrides::default(), "", "defaults")?;
                Ok(Self::of("the defaults: no devnet runs".to_owned(), &plan))
            }
            Err(error) => Err(error),
        }
    }

    fn of(what: String, plan: &Plan) -> Self {
        Self {
            what,
            options: plan.speculation.clone(),
            bonds: plan.bonds,
            stake: Wei::new(plan.speculation.deposit.into()),
            block_ms: to_ms(plan.block_time),
            agent: Address([0; 20]),
            number: 1,
            breaker_ms: None,
            others: 0,
        }
    }

    async fn running(name: &str, client: &Client) -> Result<Self, CliError> {
        let (status, options) = (client.speculation().await?, client.speculation_options().await?);
        let all = options.iter().map(|one| (one.option.as_str(), one.value.as_str()));
        let refused = |wrong: Vec<_>| {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            let wrong = wrong.join("; ");
            CliError::failed(format!("the devnet's options are of another version: {wrong}"))
        };
        let options = Options::default().with(all).map_err(refused)?;
        let parameters = client.governance().await?;
        let governed = |key: &str, default: u64| {
            let found = parameters.iter().find(|one| one.key == format!("system:tasks:{key}"));
            found.and_then(|one| one.value.number()).unwrap_or(default)
        };
        let defaults = Bonds::DEFAULT;
        let bonds = Bonds {
            base: governed("bond_base", defaults.base),
            per_depth: governed("bond_per_depth", defaults.per_depth),
            ..defaults
        };
        let query = PipelineQuery { limit: Some(1), ..PipelineQuery::default() };
        let last = client.pipelines(&query).await?.first().map_or(0, |one| one.pipeline);
        let opened = status.breaker_opened.as_ref();
        let left = |at: Timestamp| at.as_millisecond() - Timestamp::now().as_millisecond();
        let breaker_ms = opened.map(|opened| {
            // 0 while it waits for the outcome of the task that it let through: nothing else is
            // known.
            let at = opened.lets_one_through_at.map_or(0, |at| left(at.0));
            u64::try_from(at).unwrap_or(0)
        });
        Ok(Self {
            what: format!("devnet {name}, as it is now"),
            bonds,
            stake: status.stake_available.saturating_sub(*status.stake_locked),
            block_ms: client.parameters().await?.block_time_ms,
            agent: status.agent.0,
            number: last + 1,
            breaker_ms,
            others: status.tasks_live + status.tasks_waiting,
            options,
        })
    }
}
