//! Runners: the registry, and their connections.

use crate::{
    api::{
        error::ApiError,
        route::{Route, many, one},
        view::{Glance, View},
    },
    types::{
        ConnectedRunner, PresenceCondition, PresenceStanding, ReputationStep, Runner,
        RunnerConnection, RunnerPresence, RunnerState, RunnerStatus, UnmetPresence,
    },
};
use cowboy_engine::{
    chain::{State, event::ReputationChanged},
    primitives::{Address, Height, InCby, Wei},
    registry::{self, MIN_STAKE},
    wire::GoodbyeReason,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const REPUTATION_STEPS: usize = 20;

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/runners", "The runners, in registry order", list),
        one(
            "/v1/runners/{runner}",
            "A registered runner and its connections",
            |glance: &Glance, runner: String| show(glance, &runner),
        ),
    ]
}

/// The required and the actual connections, collected once per request.
pub(super) struct Connections {
    /// Per registered runner, in registry order: the validators of its subset, nearest first.
    subsets: Vec<(Address, Vec<Address>)>,
    /// Per running validator: the connections it holds, by runner.
    links: BTreeMap<Address, BTreeMap<Address, ConnectedRunner>>,
    pub highest: Height,
    /// The time since the newest block, if the chain has halted.
    halted: Option<Duration>,
}

impl Connections {
    pub fn of(glance: &Glance) -> Self {
        let (registry, state) = (glance.state.registry(), &glance.state);
        let subset = |runner: &Address| {
            let record = registry.get(runner)?;
            let subset = state.subsets_of(&record.pubkey);
            Some((*runner, subset.iter().map(|validator| validator.pubkey.address()).collect()))
        };
        let subsets = registry.order().as_slice().iter().filter_map(subset).collect();
        let links = glance
            .backend
            .slots()
            .iter()
            .filter_map(|slot| {
                let links = slot.running()?.node.links();
                Some((
                    slot.address(),
                    links.into_iter().map(|link| (link.runner.0, link)).collect(),
                ))
            })
            .collect();
        let (highest, halted) = (glance.backend.newest().height(), glance.backend.halted());
        Self { subsets, links, highest, halted }
    }

    /// The runners that have to be connected to a validator, in registry order.
    pub fn expected_at<'a>(&'a self, validator: &'a Address) -> impl Iterator<Item = &'a Address> {
        let expected = self.subsets.iter().filter(|(_, subset)| subset.contains(validator));
        expected.map(|(runner, _)| runner)
    }

    /// The runners connected to a validator, in registry order; those no longer registered come
    /// last.
    pub fn connected_to(&self, validator: &Address) -> Vec<&Address> {
        let mut connected: Vec<_> =
            self.links.get(validator).into_iter().flat_map(BTreeMap::keys).collect();
        let place = |runner: &Address| self.subsets.iter().position(|(one, _)| one == runner);
        connected.sort_by_key(|runner| place(runner).unwrap_or(usize::MAX));
        connected
    }

    fn subset(&self, runner: &Address) -> &[Address] {
        let found = self.subsets.iter().find(|(address, _)| address == runner);
        found.map_or(&[], |(_, subset)| subset)
    }

    fn link(&self, validator: &Address, runner: &Address) -> Option<&ConnectedRunner> {
        self.links.get(validator)?.get(runner)
    }

    /// The condition that keeps a validator from counting a runner as present; `None` if there is
    /// no such condition, or the validator does not run.
    fn unmet(&self, validator: &Address, runner: &Address) -> Option<PresenceCondition> {
        let Some(link) = self.links.get(validator)?.get(runner) else {
            return Some(PresenceCondition::NotConnected);
        };
        link.unmet
    }
}

fn list(glance: &Glance) -> Result<Vec<Runner>, ApiError> {
    let (network, registry) = (Connections::of(glance), glance.state.registry());
    let indexed = (0..).zip(&network.subsets);
    Ok(indexed
        .filter_map(|(index, (address, subset))| {
            Some(describe(glance, &network, index, address, subset, registry.get(address)?))
        })
        .collect())
}

fn show(glance: &Glance, text: &str) -> Result<Runner, ApiError> {
    let address = glance.resolve("runner", text)?;
    let registry = glance.state.registry();
    let record = registry.get(&address).ok_or_else(|| {
        ApiError::not_found(format!("{} is not registered as a runner", glance.name(&address)))
    })?;
    let index = registry.order().index(&address).ok_or_else(|| {
        ApiError::not_found(format!("runner {} has left the registry", glance.name(&address)))
    })?;
    let network = Connections::of(glance);
    let mut shown = describe(glance, &network, index, &address, network.subset(&address), record);
    for connection in &mut shown.connections {
        let slots = glance.backend.slots();
        let slot = slots.iter().find(|slot| slot.address() == connection.validator_address.0);
        let running = slot.and_then(|slot| slot.running());
        connection.last_end = running.and_then(|running| running.node.last_end(&address));
    }
    // Without a running validator there are no events.
    let steps = match View::of(glance.backend.clone(), None) {
        Ok(view) => view.store().reputation_of(&address, view.head(), REPUTATION_STEPS)?,
        Err(_) => Vec::new(),
    };
    shown.reputation_history = steps
        .into_iter()
        .map(|(height, ReputationChanged { job_id, before, after, .. })| ReputationStep {
            height: height.get(),
            job_id: job_id.into(),
            before,
            after,
        })
        .collect();
    Ok(shown)
}

fn describe(
    glance: &Glance,
    network: &Connections,
    index: u32,
    address: &Address,
    subset: &[Address],
    record: &registry::Runner,
) -> Runner {
    let state = &glance.state;
    let presence = presence(state, network.halted, address);
    let connection = |validator: &Address| {
        let link = network.link(validator, address);
        let unmet = network.unmet(validator, address);
        RunnerConnection {
            validator: glance.name(validator),
            validator_address: (*validator).into(),
            connected: link.is_some(),
            locally_present: link.is_some() && unmet.is_none(),
            unmet,
            load: link.and_then(|link| link.load.clone()),
            last_ping: link.and_then(|link| link.last_ping),
            last_end: None,
            withdrawn: link.map_or_else(Vec::new, |link| link.withdrawn.clone()),
        }
    };
    Runner {
        name: glance.name(address),
        address: (*address).into(),
        pubkey: record.pubkey.clone().into(),
        index,
        stake: record.stake.into(),
        reputation: record.reputation,
        kinds: record.capabilities.kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        models: record.capabilities.models.clone(),
        mcp_servers: record.capabilities.mcp_servers.clone(),
        tee: record.capabilities.tee,
        price_per_second: record.price_per_second.into(),
        active_jobs: record.active_jobs,
        max_concurrent_jobs: record.capabilities.max_concurrent_jobs,
        status: record
            .health(state.height(), state.phase(), state.connectivity().stale_heartbeat_blocks)
            .into(),
        registered_at: record.registered_at.get(),
        last_heartbeat: record.last_heartbeat.get(),
        subset: glance.named(subset),
        connections: subset.iter().map(connection).collect(),
        present: presence.standing == PresenceStanding::Present,
        unmet: unmet(glance, network, address, subset, &presence),
        presence: Some(presence),
        reputation_history: Vec::new(),
    }
}

/// A runner's presence as a draw in the child of this state's block would read it.
fn presence(state: &State, halted: Option<Duration>, runner: &Address) -> RunnerPresence {
    let next = state.height().next();
    let known = state.known_presence();
    let halted = halted.filter(|_| known.is_some());
    let standing = match (known, halted, state.present_at(next)) {
        (None, ..) => PresenceStanding::Unknown,
        (_, Some(_), _) => PresenceStanding::Halted,
        (_, _, None) => PresenceStanding::Stale,
        (_, _, Some(present)) => match present.binary_search(runner) {
            Ok(_) => PresenceStanding::Present,
            Err(_) => PresenceStanding::Absent,
        },
    };
    RunnerPresence {
        standing,
        of: known.map(|known| known.height.get()),
        for_block: next.get(),
        halted_ms: halted.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// The condition that keeps a runner from being present: one of the chain's, else the one that most
/// of its validators report. `None` if it is present and some validator counts it, or if no
/// validator of its subset runs.
fn unmet(
    glance: &Glance,
    network: &Connections,
    runner: &Address,
    subset: &[Address],
    presence: &RunnerPresence,
) -> Option<UnmetPresence> {
    use PresenceCondition::{
        Deregistered, InsufficientStake, NoRecentPing, NotConnected, NotInSubset, TakesNoJobs,
        TooFewVotes, WithdrewWhatIsNeeded,
    };

    if let Err(reason) = glance.state.in_service(runner) {
        let stake = glance.state.registry().get(runner).map_or(Wei::ZERO, |record| record.stake);
        return Some(match reason {
            GoodbyeReason::InsufficientStake => UnmetPresence {
                condition: InsufficientStake,
                detail: format!("it has locked {}, {} are needed", InCby(stake), InCby(MIN_STAKE)),
            },
            _ => UnmetPresence {
                condition: Deregistered,
                detail: "it has left the registry".to_owned(),
            },
        });
    }
    let running: Vec<_> = subset.iter().filter(|at| network.links.contains_key(at)).collect();
    let mut found = BTreeMap::<PresenceCondition, Vec<&Address>>::new();
    for validator in &running {
        if let Some(condition) = network.unmet(validator, runner) {
            found.entry(condition).or_default().push(validator);
        }
    }
    let missed: usize = found.values().map(Vec::len).sum();
    if running.is_empty()
        || (presence.standing == PresenceStanding::Present && missed < running.len())
    {
        return None;
    }
    // Among conditions reported by equally many validators, the first in order wins.
    let most = found.iter().rev().max_by_key(|(_, named)| named.len());
    let Some((condition, named)) = most else {
        let of = presence.of.filter(|_| presence.standing == PresenceStanding::Absent)?;
        let detail = format!(
            "{} count it, and too few votes in the certificate of P({of}) do",
            glance.named(running).join(", ")
        );
        return Some(UnmetPresence { condition: TooFewVotes, detail });
    };
    let links = || named.iter().filter_map(|validator| network.link(validator, runner));
    let at = glance.named(named.iter().copied()).join(", ");
    let detail = match condition {
        NotConnected => format!("it has no connection to {at}"),
        NoRecentPing => {
            let blocks = glance.state.connectivity().presence_timeout_blocks;
            format!("{at} had no valid ping within {blocks} blocks")
        }
        TakesNoJobs => {
            let told = links().find_map(|link| link.load.as_ref());
            let reason =
                told.and_then(|told| told.reason.as_ref()).map_or("", |text| text.as_str());
            let jobs = told.map_or((0, 0), |told| (told.active_jobs, told.max_concurrent));
            format!("it told {at} that it takes no jobs: {reason}, {} of {}", jobs.0, jobs.1)
        }
        WithdrewWhatIsNeeded => {
            let labels: BTreeSet<&str> =
                links().flat_map(|link| &link.withdrawn).map(String::as_str).collect();
            let labels = Vec::from_iter(labels).join(", ");
            format!("it withdrew {labels}, and a job in the mempool of {at} needs some of it")
        }
        NotInSubset => format!("{at} left its subset"),
        InsufficientStake | Deregistered | TooFewVotes => {
            format!("{at} has not seen the newest block")
        }
    };
    Some(UnmetPresence { condition: *condition, detail })
}

/// The runners at a glance, in registry order.
pub(super) fn statuses(glance: &Glance, network: &Connections) -> Vec<RunnerStatus> {
    let committee: Vec<_> =
        glance.state.committee().iter().map(|validator| validator.pubkey.address()).collect();
    let place = |at: &&Address| committee.iter().position(|one| one == *at);
    let status = |(runner, subset): &(Address, Vec<Address>)| {
        let holds = |links: &BTreeMap<Address, ConnectedRunner>| links.contains_key(runner);
        let mut holders: Vec<_> =
            network.links.iter().filter(|(_, links)| holds(links)).map(|(at, _)| at).collect();
        holders.sort_by_key(|at| place(at).unwrap_or(usize::MAX));
        let presence = presence(&glance.state, network.halted, runner);
        // Where other processes run all of its validators, the chain says whether they see it.
        let here = subset.iter().any(|at| glance.backend.slot_at(at).is_some());
        let seen = !here && presence.standing == PresenceStanding::Present;
        let runs = glance.backend.runner_runs(runner).unwrap_or(!holders.is_empty() || seen);
        // A stopped validator holds no connection and misses none.
        let complete = subset.iter().all(|at| network.links.get(at).is_none_or(holds));
        RunnerStatus {
            name: glance.name(runner),
            address: (*runner).into(),
            status: match runs {
                false => RunnerState::Stopped,
                true if complete && (!holders.is_empty() || seen) => RunnerState::Connected,
                true => RunnerState::Connecting,
            },
            connected_validators: glance.named(holders),
            unmet: unmet(glance, network, runner, subset, &presence),
        }
    };
    network.subsets.iter().map(status).collect()
}
