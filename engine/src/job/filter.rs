//! The candidates for a job (spec jobs.md §3): the filters, in their order.

use super::{selection::stake_to_weight, specification::JobSpec, state::Reported, work::Work};
use crate::{
    names,
    presence::Phase,
    primitives::{Address, Height, Wei},
    record,
    registry::{Capabilities, Entitlements, Health, Registry, Runner},
};

/// The minimum reputation of a candidate (jobs.md §3, filter 2).
pub const MIN_REPUTATION: u32 = 50;

/// The filters, in the order they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// 0: gave no result in an earlier attempt at the job, whether silent or with a failure report.
    Exclusion,
    /// 1: registered, heartbeat not stale; drops everyone in phase `sunset`.
    Health,
    /// 1.5: its bit in P(H − 1); drops no runner in phase `shadow`.
    Presence,
    /// 2: reputation ≥ 50.
    Reputation,
    /// 3: registered for the kind, and for the model or server that the work names.
    Capability,
    /// 4: in a trusted execution environment, if the job requires one.
    Tee,
    /// 5: price per second ≤ max_price.
    Price,
    /// 6: active jobs < max_concurrent_jobs.
    Concurrency,
    /// 7: member of the pool, if the job requires one.
    Pool,
    /// 8: stake ≥ 1.5 × max_price.
    Stake,
}

names!(Filter, 16, "unknown filter";
    Exclusion = "exclusion",
    Health = "health",
    Presence = "presence",
    Reputation = "reputation",
    Capability = "capability",
    Tee = "tee",
    Price = "price",
    Concurrency = "concurrency",
    Pool = "pool",
    Stake = "stake",
);

/// The verdict of one draw's filters on one runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub runner: Address,
    pub stake: Wei,
    /// Its weight in the draw, before any multiplier.
    pub weight: u64,
    /// Whether its bit is set in the P that the draw reads.
    pub present: bool,
    /// The first filter that dropped it; `None` for a candidate.
    pub dropped_by: Option<Filter>,
    /// The first filter other than presence that drops it; `None` if none does.
    pub else_by: Option<Filter>,
    /// The filter's finding and requirement; empty for a candidate.
    pub reason: String,
}
record!(Verdict { runner, stake, weight, present, dropped_by, else_by, reason });

impl Verdict {
    /// The first filter that drops it, with the presence filter `active` or not.
    pub fn dropped_where(&self, active: bool) -> Option<Filter> {
        self.dropped_under(active, self.present)
    }

    /// Like [`Self::dropped_where`], if the runner were `present` or absent.
    pub fn dropped_under(&self, active: bool, present: bool) -> Option<Filter> {
        match self.else_by {
            Some(Filter::Exclusion | Filter::Health) => self.else_by,
            _ if active && !present => Some(Filter::Presence),
            other => other,
        }
    }
}

/// The input of the filters.
pub struct Scene<'a> {
    pub height: Height,
    pub phase: Phase,
    /// The registry as the parent block left it.
    pub registry: &'a Registry,
    /// Number of jobs that a runner works on, including those from earlier draws of this block.
    pub active_jobs: &'a dyn Fn(&Address) -> u32,
    /// Pools as the parent block left them.
    pub entitlements: &'a Entitlements,
    /// The runners present in P(H − 1), ascending; `None` if P is unknown.
    pub present: Option<&'a [Address]>,
    /// Blocks after which the last on-chain heartbeat is stale.
    pub stale: u64,
    /// Runners that were silent in earlier attempts at the job.
    pub excluded: &'a [Address],
    /// Runners that reported a failure in earlier attempts.
    pub reported: &'a [Reported],
}

impl Scene<'_> {
    /// Judges every registered runner, in ascending order of address.
    pub fn judge(&self, spec: &JobSpec) -> Vec<Verdict> {
        let mut runners: Vec<_> = self.registry.order().as_slice().to_vec();
        runners.sort_unstable();
        runners
            .into_iter()
            .filter_map(|address| Some((address, self.registry.get(&address)?)))
            .map(|(address, runner)| {
                let absent = self.absent(&address);
                let other = self.dropped(spec, &address, runner);
                let mut verdict = Verdict {
                    runner: address,
                    stake: runner.stake,
                    weight: stake_to_weight(runner.stake),
                    present: absent.is_none(),
                    dropped_by: None,
                    else_by: other.as_ref().map(|(filter, _)| *filter),
                    reason: String::new(),
                };
                verdict.dropped_by = verdict.dropped_where(self.phase.filters_presence());
                verdict.reason = match verdict.dropped_by {
                    Some(Filter::Presence) => absent.unwrap_or_default().to_owned(),
                    _ => other.map(|(_, reason)| reason).unwrap_or_default(),
                };
                verdict
            })
            .collect()
    }

    /// Why a runner counts as absent; `None` if it is present.
    fn absent(&self, runner: &Address) -> Option<&'static str> {
        match self.present {
            None => Some("no recent P(H) is known"),
            Some(present) if present.binary_search(runner).is_err() => {
                Some("its bit in P(H-1) is 0")
            }
            Some(_) => None,
        }
    }

    /// The first filter other than presence that drops a runner, and the reason.
    fn dropped(
        &self,
        spec: &JobSpec,
        address: &Address,
        runner: &Runner,
    ) -> Option<(Filter, String)> {
        if self.excluded.contains(address) {
            return Some((
                Filter::Exclusion,
                "gave no result in an earlier attempt at this job".into(),
            ));
        }
        if let Some(said) = self.reported.iter().find(|said| said.runner == *address) {
            let reason = format!("in an earlier attempt at this job: {}", said.reason);
            return Some((Filter::Exclusion, reason));
        }
        if runner.health(self.height, self.phase, self.stale) != Health::Healthy {
            let last = runner.last_heartbeat;
            return Some((Filter::Health, format!("last on-chain heartbeat at {last}")));
        }
        if runner.reputation < MIN_REPUTATION {
            let got = runner.reputation;
            return Some((Filter::Reputation, format!("{got}, at least {MIN_REPUTATION} wanted")));
        }
        let kind = spec.work.kind();
        if !runner.capabilities.kinds.contains(&kind) {
            return Some((Filter::Capability, format!("not registered for {kind}")));
        }
        if let Some((what, name)) = lacks(&runner.capabilities, &spec.work) {
            return Some((Filter::Capability, format!("not registered for {what} `{name}`")));
        }
        if spec.tee_required && !runner.capabilities.tee {
            return Some((Filter::Tee, "runs in no trusted execution environment".into()));
        }
        if runner.price_per_second > spec.max_price {
            let (price, most) = (runner.price_per_second, spec.max_price);
            return Some((Filter::Price, format!("asks {price} wei a second, {most} at most")));
        }
        let (active, most) = ((self.active_jobs)(address), runner.capabilities.max_concurrent_jobs);
        if active >= most {
            return Some((Filter::Concurrency, format!("{active} of {most} jobs in hand")));
        }
        if let Some(pool) = &spec.required_runner_pool
            && !self.entitlements.is_member(pool, *address, self.height)
        {
            return Some((Filter::Pool, format!("not in pool `{pool}`")));
        }
        // stake ≥ 1.5 × max_price in integers; a product beyond u128 exceeds any stake.
        let covered = spec
            .max_price
            .checked_mul(3)
            .is_some_and(|thrice| runner.stake.saturating_mul(2) >= thrice);
        if !covered {
            let (stake, price) = (runner.stake, spec.max_price);
            return Some((Filter::Stake, format!("{stake} wei, 1.5 x {price} wanted")));
        }
        None
    }
}

/// The model or server that the work names and a runner lacks. A runner that names none takes any.
fn lacks<'a>(capabilities: &Capabilities, work: &'a Work) -> Option<(&'static str, &'a str)> {
    let (named, known) = match work {
        Work::Llm(work) => {
            let embedder = work.embedding_model.as_ref().map(|name| ("embedding model", name));
            ([Some(("model", &work.model)), embedder], &capabilities.models)
        }
        Work::Mcp(work) => ([Some(("MCP server", &work.server)), None], &capabilities.mcp_servers),
        Work::Http(_) | Work::EthSend(_) | Work::Custom(_) => return None,
    };
    let known = known.as_ref()?;
    let lacking = named.into_iter().flatten().find(|(_, name)| !known.contains(name));
    lacking.map(|(what, name)| (what, name.as_str()))
}
