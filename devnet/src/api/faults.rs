//! Injecting and healing faults, for requests and when a fault's time is up.

use super::{
    backend::{Backend, Switch},
    error::{ApiError, shown},
    nodes,
};
use crate::{
    faults::{At, Fault, Lie, MAX_DELAY, Rule, Until},
    types::{self, FaultOrder, FaultOrders, FaultRequest, FaultSpec, LieKind, Text, same},
};
use cowboy_engine::primitives::Address;
use cowboy_host::duration::Exact;
use jiff::Timestamp;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::task::spawn_blocking;

/// The maximum time, in milliseconds, after which a fault heals by itself; a permanent fault has no
/// end.
const MAX_FOR_MS: u64 = 24 * 3_600 * 1_000;

same!(LieKind = Lie: Ones, Zeros, Flip);

/// All faults in force, oldest first. May block.
pub(super) fn list(backend: &Backend) -> Vec<types::Fault> {
    listed(backend, &backend.faults().rules())
}

/// The rules with their effects at all nodes. May block.
fn listed(backend: &Backend, rules: &[Rule]) -> Vec<types::Fault> {
    let nodes = backend.running().into_iter().filter(|_| !rules.is_empty());
    let apart: Vec<_> = nodes.flat_map(|running| running.node.faults()).collect();
    let whole = |rule: &Rule| {
        let mut fault = convert(backend, rule);
        for at in apart.iter().filter(|at| at.id == fault.id) {
            fault.dropped = fault.dropped.saturating_add(at.dropped);
            fault.delayed = fault.delayed.saturating_add(at.delayed);
            fault.lies = fault.lies.saturating_add(at.lies);
        }
        fault
    };
    rules.iter().map(whole).collect()
}

/// A rule as a node in a process of its own is told of it.
pub(crate) fn order(backend: &Backend, rule: &Rule) -> FaultOrder {
    let types::Fault { id, fault, seed, .. } = convert(backend, rule);
    FaultOrder { id, fault, seed }
}

/// Replaces the faults of this node by those that its devnet has. They may be about nodes that this
/// one does not know: those have no links here.
pub(super) fn carry_out(
    backend: &Backend,
    orders: &FaultOrders,
) -> Result<Vec<types::Fault>, ApiError> {
    let known = |text: &str| Ok(nodes::find(backend, text).unwrap_or_else(|_| text.to_owned()));
    let read = |order: &FaultOrder| {
        Ok((order.id, check(backend, &order.fault, &known, &known)?, order.seed))
    };
    let rules = orders.faults.iter().map(read).collect::<Result<_, ApiError>>()?;
    backend.faults().replace(rules);
    Ok(list(backend))
}

pub(super) async fn lay(
    backend: &Arc<Backend>,
    request: &FaultRequest,
) -> Result<types::Fault, ApiError> {
    let (find, here) =
        (|text: &str| nodes::find(backend, text), |text: &str| nodes::here(backend, text));
    let fault = check(backend, &request.fault, &find, &here)?;
    let end = end(request)?;
    match &fault {
        Fault::Kill { node } => nodes::switch(backend.clone(), node, Switch::Kill).await?,
        Fault::Pause { node } => nodes::switch(backend.clone(), node, Switch::Freeze).await?,
        _ => {}
    }
    let until = end.map(|end| match end {
        HealAt::After(time) => Until::Time(SystemTime::now() + time),
        HealAt::Blocks(blocks) => {
            Until::Height(backend.newest().height().get().saturating_add(blocks))
        }
    });
    let rule = backend.faults().lay(fault, request.seed, until);
    if let Err(reason) = (backend.hooks.carry_out)().await {
        heal(backend, rule.id).await?;
        return Err(ApiError::internal(format!("the fault is not in force: {reason}")));
    }
    let until = rule.until.map(|until| until.to_string());
    tracing::info!(id = rule.id, fault = %rule.fault, until, "fault laid");
    Ok(convert(backend, &rule))
}

/// Heals every fault, the one with a number, or those on a node; returns the healed faults.
pub(super) async fn heal_some(
    backend: &Arc<Backend>,
    which: Option<&str>,
) -> Result<Vec<types::Fault>, ApiError> {
    let rules = chosen(backend, which)?;
    let reading = backend.clone();
    let shown = spawn_blocking(move || listed(&reading, &rules)).await;
    let (mut healed, mut refused) = (Vec::new(), None);
    // A fault that cannot be healed does not keep the others from being healed.
    for fault in shown.map_err(|error| ApiError::internal(error.to_string()))? {
        match heal(backend, fault.id).await {
            Ok(()) => healed.push(fault),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(healed), Err)
}

/// Heals a fault: removes the rule, and starts a node that was killed. Succeeds if the fault is
/// already gone.
pub(crate) async fn heal(backend: &Arc<Backend>, id: u64) -> Result<(), ApiError> {
    let rules = backend.faults().rules();
    let Some(rule) = rules.iter().find(|rule| rule.id == id) else { return Ok(()) };
    match &rule.fault {
        Fault::Kill { node } if !nodes::runs(backend, node) => {
            nodes::switch(backend.clone(), node, Switch::Start).await?;
        }
        Fault::Pause { node } => nodes::switch(backend.clone(), node, Switch::Thaw).await?,
        _ => {}
    }
    // A killed node that runs again has taken it away.
    let lifted = backend.faults().lift(id);
    if let Err(reason) = (backend.hooks.carry_out)().await {
        tracing::warn!(id, %reason, "a node goes on with a healed fault");
    }
    if lifted.is_some() {
        tracing::info!(id, fault = %rule.fault, "fault healed");
    }
    Ok(())
}

/// The rules that a request to heal refers to; empty if the node has no fault.
fn chosen(backend: &Backend, which: Option<&str>) -> Result<Vec<Rule>, ApiError> {
    let rules = backend.faults().rules();
    let Some(which) = which else { return Ok(rules) };
    if let Ok(id) = which.parse::<u64>() {
        let rule = rules.into_iter().find(|rule| rule.id == id);
        return rule.map(|rule| vec![rule]).ok_or_else(|| {
            ApiError::not_found(format!("there is no fault {id} in force"))
                .hint("see what is in force: cowboyctl fault ls")
        });
    }
    let node = nodes::find(backend, which)?;
    Ok(rules.into_iter().filter(|rule| rule.fault.is_laid_on(&node)).collect())
}

enum HealAt {
    After(Duration),
    Blocks(u64),
}

fn end(request: &FaultRequest) -> Result<Option<HealAt>, ApiError> {
    match (request.for_ms, request.for_blocks) {
        (None, None) => Ok(None),
        (Some(ms), None) if (1..=MAX_FOR_MS).contains(&ms) => {
            Ok(Some(HealAt::After(Duration::from_millis(ms))))
        }
        (None, Some(blocks)) if blocks > 0 => Ok(Some(HealAt::Blocks(blocks))),
        (Some(_), Some(_)) => {
            Err(ApiError::bad_request("a fault heals after a time or after blocks, not both"))
        }
        (Some(_), None) => {
            Err(ApiError::bad_request("a fault heals by itself after 1 ms to 24 hours, or stays"))
        }
        (None, Some(_)) => {
            Err(ApiError::bad_request("a fault heals by itself after one block or more, or stays"))
        }
    }
}

/// Finds a node's name by what a request calls it.
type Find<'a> = &'a dyn Fn(&str) -> Result<String, ApiError>;

/// Reads a fault. `find` finds any node, `here` one whose fault is this process' to carry out.
fn check(
    backend: &Backend,
    spec: &FaultSpec,
    find: Find<'_>,
    here: Find<'_>,
) -> Result<Fault, ApiError> {
    Ok(match spec {
        FaultSpec::Kill { at } => Fault::Kill { node: here(at)? },
        FaultSpec::Pause { at } => Fault::Pause { node: here(at)? },
        FaultSpec::Partition { groups } => {
            Fault::Partition { groups: partition(backend, groups, find)? }
        }
        FaultSpec::Latency { at, delay_us, jitter_us } => {
            let (by, jitter) =
                (Duration::from_micros(*delay_us), Duration::from_micros(*jitter_us));
            let longest = by.checked_add(jitter).unwrap_or(Duration::MAX);
            if longest > MAX_DELAY {
                let message = format!(
                    "a message is delayed by 1 µs to {}, not by {}",
                    Exact(MAX_DELAY),
                    Exact(longest)
                );
                return Err(ApiError::bad_request(message)
                    .hint("to cut a link: cowboyctl fault loss A..B 100"));
            }
            if longest.is_zero() {
                return Err(ApiError::bad_request(format!(
                    "a latency needs a delay or a jitter: expected 1 µs to {}",
                    Exact(MAX_DELAY)
                )));
            }
            Fault::Latency { at: place(backend, at, find)?, by, jitter }
        }
        FaultSpec::Loss { at, per_mille } => {
            if !(1..=1_000).contains(per_mille) {
                let message = format!("{per_mille} of a thousand cannot be lost");
                return Err(ApiError::bad_request(message).hint("expected 1 to 1000"));
            }
            Fault::Loss { at: place(backend, at, find)?, per_mille: *per_mille }
        }
        FaultSpec::Lie { at, votes, of } => {
            let node = here(at)?;
            if !nodes::is_validator(backend, &node) {
                let message = format!("`{node}` is a runner: only validators vote");
                return Err(ApiError::bad_request(message).hint("expected a validator"));
            }
            let of = of.as_deref().map(|runner| registered(backend, runner)).transpose()?;
            Fault::Lie { node, lie: (*votes).into(), of }
        }
    })
}

/// The name and the address of a runner that votes misreport: a registered one, wherever it runs.
fn registered(backend: &Backend, text: &str) -> Result<(String, Address), ApiError> {
    let state = backend.newest();
    let registered = |address: &Address| state.registry().get(address).is_some();
    let found = backend.names.resolve(text).filter(registered);
    found.map(|address| (backend.names.of(&address), address)).ok_or_else(|| {
        let hint = match backend.names.nearest(text, registered) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "see who is registered: cowboyctl runner ls".to_owned(),
        };
        ApiError::not_found(format!("no runner `{}` is registered", shown(text))).hint(hint)
    })
}

fn place(backend: &Backend, text: &str, find: Find<'_>) -> Result<At, ApiError> {
    let Some((one, other)) = text.split_once("..") else {
        return find(text).map(At::Node);
    };
    let (one, other) = (find(one)?, find(other)?);
    if one == other {
        let message = format!("`{}`: a node has no link to itself", shown(text));
        return Err(ApiError::bad_request(message).hint("expected two nodes: A..B"));
    }
    let is_runner = |node: &str| !nodes::is_validator(backend, node);
    if is_runner(&one) && is_runner(&other) {
        let message = format!("`{}`: runners have no links to one another", shown(text));
        return Err(ApiError::bad_request(message)
            .hint("expected two validators, or a runner and a validator"));
    }
    Ok(At::link(one, other))
}

fn partition(
    backend: &Backend,
    groups: &[Vec<String>],
    find: Find<'_>,
) -> Result<Vec<BTreeSet<String>>, ApiError> {
    let (mut seen, mut named) = (BTreeSet::new(), Vec::new());
    for group in groups {
        if group.is_empty() {
            return Err(ApiError::bad_request("a group of a partition has no node"));
        }
        let mut members = BTreeSet::new();
        for text in group {
            let node = find(text)?;
            if !seen.insert(node.clone()) {
                return Err(ApiError::bad_request(format!("`{node}` is in a partition twice"))
                    .hint("each node is in one group; those not named form a last one"));
            }
            members.insert(node);
        }
        named.push(members);
    }
    let rest = seen.len() < nodes::all(backend).len();
    if named.len() + usize::from(rest) < 2 {
        return Err(ApiError::bad_request("a partition needs at least two groups")
            .hint("name some of the nodes: those not named form a group too"));
    }
    Ok(named)
}

fn convert(backend: &Backend, rule: &Rule) -> types::Fault {
    let mut others = Vec::new();
    let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let fault = match &rule.fault {
        Fault::Kill { node } => FaultSpec::Kill { at: node.clone() },
        Fault::Pause { node } => FaultSpec::Pause { at: node.clone() },
        Fault::Partition { groups } => {
            let all = nodes::all(backend);
            let is_named = |node: &&String| groups.iter().any(|group| group.contains(*node));
            others = all.iter().filter(|node| !is_named(node)).cloned().collect();
            // A node that has left the devnet since then comes last.
            let place = |node: &String| all.iter().position(|one| one == node).unwrap_or(all.len());
            let in_order = |group: &BTreeSet<String>| {
                let mut group: Vec<_> = group.iter().cloned().collect();
                group.sort_by_key(place);
                group
            };
            FaultSpec::Partition { groups: groups.iter().map(in_order).collect() }
        }
        Fault::Latency { at, by, jitter } => FaultSpec::Latency {
            at: at.to_string(),
            delay_us: micros(by),
            jitter_us: micros(jitter),
        },
        Fault::Loss { at, per_mille } => {
            FaultSpec::Loss { at: at.to_string(), per_mille: *per_mille }
        }
        Fault::Lie { node, lie, of } => FaultSpec::Lie {
            at: node.clone(),
            votes: (*lie).into(),
            of: of.as_ref().map(|(runner, _)| runner.clone()),
        },
    };
    let (until_height, until) = match rule.until {
        None => (None, None),
        Some(Until::Height(height)) => (Some(height), None),
        Some(Until::Time(at)) => (None, Timestamp::try_from(at).ok().map(Text)),
    };
    types::Fault {
        id: rule.id,
        fault,
        seed: rule.seed,
        since: rule.since,
        until_height,
        until,
        dropped: rule.tally.dropped(),
        delayed: rule.tally.delayed(),
        lies: rule.tally.lies(),
        others,
    }
}
