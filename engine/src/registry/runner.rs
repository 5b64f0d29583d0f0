//! Runners: their registration and their record since.

use super::{MAX_REPUTATION, MIN_STAKE};
use crate::{
    presence::{CAPACITY, Phase},
    primitives::{
        Address, Hash, Height, PublicKey, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer, to_vec, transparent, words},
        keccak256,
        merkle::{self, Map},
    },
    record,
};
use std::sync::Arc;

/// The kinds of off-chain work; MRU keys contain the discriminants (CIP-11 §9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    Llm = 0x01,
    Http = 0x02,
    /// A Model Context Protocol tool call.
    Mcp = 0x03,
    EthSend = 0x04,
    Custom = 0x05,
}

words!(JobKind, JobKindError, "a job kind", "llm, http, mcp, eth_send or custom";
    Llm = "llm",
    Http = "http",
    Mcp = "mcp",
    EthSend = "eth_send",
    Custom = "custom",
);

impl Encode for JobKind {
    fn encode(&self, w: &mut Writer) {
        w.u64(*self as u64);
    }
}

impl Decode for JobKind {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u64()?;
        Self::ALL
            .into_iter()
            .find(|kind| *kind as u64 == number)
            .ok_or(DecodeError::Invalid("unknown job kind"))
    }
}

/// A runner's capabilities, as registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Job kinds that it executes; ascending, without repeats.
    pub kinds: Vec<JobKind>,
    /// Maximum number of concurrent jobs, at least 1.
    pub max_concurrent_jobs: u32,
    /// Whether it runs in a trusted execution environment.
    pub tee: bool,
    /// Names of the models that its `llm` jobs may use; `None`: any.
    pub models: Option<Vec<String>>,
    /// Names of the servers that its `mcp` jobs may use; `None`: any.
    pub mcp_servers: Option<Vec<String>>,
}
record!(Capabilities { kinds, max_concurrent_jobs, tee, models, mcp_servers });

/// Maximum number of models, and of MCP servers, that a runner may name.
pub const MAX_NAMES: usize = 128;
/// Maximum length of the name of a model or an MCP server, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

impl Capabilities {
    /// These job kinds with any model and server, at most `max_concurrent_jobs` at once.
    pub const fn of(kinds: Vec<JobKind>, max_concurrent_jobs: u32) -> Self {
        Self { kinds, max_concurrent_jobs, tee: false, models: None, mcp_servers: None }
    }

    fn check(&self) -> Result<(), RegistryError> {
        if self.kinds.is_empty() || !self.kinds.is_sorted_by(|a, b| a < b) {
            return Err(RegistryError::Kinds);
        }
        if self.max_concurrent_jobs == 0 {
            return Err(RegistryError::Concurrency);
        }
        for (field, names) in [("models", &self.models), ("mcp_servers", &self.mcp_servers)] {
            let fits = |name: &String| (1..=MAX_NAME_BYTES).contains(&name.len());
            let names = names.as_deref().unwrap_or_default();
            if names.len() > MAX_NAMES || !names.iter().all(fits) {
                return Err(RegistryError::Names(field));
            }
        }
        Ok(())
    }
}

/// Whether a runner may be given work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Registered, and the heartbeat is not stale or does not matter.
    Healthy,
    /// Its last on-chain heartbeat is older than
    /// [`stale_heartbeat_blocks`](crate::presence::Connectivity::stale_heartbeat_blocks).
    Unhealthy,
    Deregistered,
}

record! {
    /// One runner's record.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Runner {
        pub pubkey: PublicKey,
        pub stake: Wei,
        pub capabilities: Capabilities,
        /// Rate card: price of a second of computing, in wei.
        pub price_per_second: Wei,
        /// 0 to [`MAX_REPUTATION`].
        pub reputation: u32,
        /// Height of its last on-chain heartbeat, or of its registration.
        pub last_heartbeat: Height,
        pub registered_at: Height,
        pub active_jobs: u32,
        /// Whether it left. Its record stays, so that validators can name this as the reason of a
        /// goodbye.
        pub deregistered: bool,
    }
}

impl Runner {
    /// Its health at `now`, in a block of this phase. A heartbeat is stale after `stale` blocks.
    pub fn health(&self, now: Height, phase: Phase, stale: u64) -> Health {
        if self.deregistered {
            Health::Deregistered
        } else if phase.needs_heartbeats() && now.since(self.last_heartbeat) > stale {
            Health::Unhealthy
        } else {
            Health::Healthy
        }
    }
}

/// Why the registry refuses a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("RunnerExists: {0} is registered")]
    Exists(Address),
    /// The address is not registered, or has left.
    #[error("UnknownRunner: {0} is not registered")]
    Unknown(Address),
    #[error("InsufficientStake: {got} wei locked, at least {MIN_STAKE} are needed")]
    Stake { got: Wei },
    #[error(
        "StakeLowered: {locked} wei are locked; a stake only grows, and is returned when the \
         runner deregisters"
    )]
    StakeLowered { locked: Wei },
    #[error("InvalidCapabilities: kinds must be one or more, ascending, without repeats")]
    Kinds,
    #[error("InvalidCapabilities: max_concurrent_jobs must be at least 1")]
    Concurrency,
    #[error("InvalidCapabilities: {0} may have {MAX_NAMES} names of 1 to {MAX_NAME_BYTES} bytes")]
    Names(&'static str),
    #[error("RunnerBusy: {active} jobs are assigned to {runner}; wait until they end")]
    Busy { runner: Address, active: u32 },
    #[error("RegistryFull: {CAPACITY} runners are registered, a vote carries no more")]
    Full,
}

/// Runners in order of registration: the index space of presence bitmaps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Order(Arc<Vec<Address>>);

impl Order {
    pub fn len(&self) -> u32 {
        u32::try_from(self.0.len()).expect("the registry holds at most CAPACITY runners")
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_slice(&self) -> &[Address] {
        &self.0
    }

    pub fn index(&self, runner: &Address) -> Option<u32> {
        self.0.iter().position(|a| a == runner).and_then(|i| u32::try_from(i).ok())
    }
}

transparent!(Order);

/// Every runner that is or was registered, and the order of those that are.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    runners: Map<Address, Runner>,
    order: Order,
}

impl Registry {
    /// The same, with heartbeats that came `blocks` later.
    pub fn later(mut self, blocks: u64) -> Self {
        self.runners = self.runners.map_values(|runner| Runner {
            last_heartbeat: runner.last_heartbeat.after(blocks),
            ..runner
        });
        self
    }

    /// A runner's record, even if it left.
    pub fn get(&self, runner: &Address) -> Option<&Runner> {
        self.runners.get(runner)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Address, &Runner)> {
        self.runners.iter()
    }

    /// The index space of bitmaps in votes on the next block.
    pub const fn order(&self) -> &Order {
        &self.order
    }

    /// Commits to records and order: keccak256 of [`Self::roots`].
    pub fn root(&self) -> Hash {
        let [runners, order] = self.roots();
        keccak256(&[&runners.0, &order.0])
    }

    /// The root of the records, and keccak256 of the order.
    pub fn roots(&self) -> [Hash; 2] {
        [self.runners.root(), keccak256(&[&to_vec(&self.order)])]
    }

    /// Proves a runner's record; `None` if it has no record.
    pub fn prove(&self, runner: &Address) -> Option<merkle::InclusionProof> {
        self.runners.prove(runner)
    }

    /// Proves that a runner has no record; `None` if it has one.
    pub fn prove_absent(&self, runner: &Address) -> Option<merkle::Absence> {
        self.runners.prove_absent(runner)
    }

    /// Registers a runner. The caller has locked the stake.
    pub fn register(
        &mut self,
        now: Height,
        pubkey: PublicKey,
        stake: Wei,
        capabilities: Capabilities,
        price_per_second: Wei,
    ) -> Result<Address, RegistryError> {
        let address = pubkey.address();
        capabilities.check()?;
        if stake < MIN_STAKE {
            return Err(RegistryError::Stake { got: stake });
        }
        let former = self.runners.get(&address);
        if former.is_some_and(|r| !r.deregistered) {
            return Err(RegistryError::Exists(address));
        }
        if self.order.len() >= CAPACITY {
            return Err(RegistryError::Full);
        }
        // Leaving and coming back does not reset a reputation.
        let reputation = former.map_or(MAX_REPUTATION, |r| r.reputation);
        let runner = Runner {
            pubkey,
            stake,
            capabilities,
            price_per_second,
            reputation,
            last_heartbeat: now,
            registered_at: now,
            active_jobs: 0,
            deregistered: false,
        };
        self.runners.insert(address, runner);
        Arc::make_mut(&mut self.order.0).push(address);
        Ok(address)
    }

    /// Changes a runner's capabilities and price, and its stake if `stake` is given. The stake can
    /// only grow, because a draw of the same block may rely on it. Returns the previous and the
    /// present stake; the caller moves the difference.
    pub fn update(
        &mut self,
        runner: &Address,
        capabilities: Capabilities,
        price_per_second: Wei,
        stake: Option<Wei>,
    ) -> Result<(Wei, Wei), RegistryError> {
        capabilities.check()?;
        let locked = self.active(runner)?.stake;
        let stake = match stake {
            None => locked,
            Some(got) if got < MIN_STAKE => return Err(RegistryError::Stake { got }),
            Some(got) if got < locked => return Err(RegistryError::StakeLowered { locked }),
            Some(got) => got,
        };
        self.change(runner, |r| {
            r.capabilities = capabilities;
            r.price_per_second = price_per_second;
            r.stake = stake;
        })?;
        Ok((locked, stake))
    }

    /// Deregisters a runner and returns the stake to pay back.
    pub fn deregister(&mut self, runner: &Address) -> Result<Wei, RegistryError> {
        let active = self.active(runner)?.active_jobs;
        if active > 0 {
            return Err(RegistryError::Busy { runner: *runner, active });
        }
        let mut stake = Wei::ZERO;
        self.change(runner, |r| {
            stake = std::mem::take(&mut r.stake);
            r.deregistered = true;
        })?;
        Arc::make_mut(&mut self.order.0).retain(|a| a != runner);
        Ok(stake)
    }

    pub fn heartbeat(&mut self, runner: &Address, now: Height) -> Result<(), RegistryError> {
        self.change(runner, |r| r.last_heartbeat = now)
    }

    /// Adds an active job; the caller has checked that the runner has room.
    pub fn assign(&mut self, runner: &Address) -> Result<(), RegistryError> {
        self.change(runner, |r| r.active_jobs = r.active_jobs.saturating_add(1))
    }

    pub fn release(&mut self, runner: &Address) -> Result<(), RegistryError> {
        self.change(runner, |r| r.active_jobs = r.active_jobs.saturating_sub(1))
    }

    /// Raises or lowers a reputation within its range, even of a runner that left. Returns the
    /// previous and the present value.
    pub fn repute(&mut self, runner: &Address, by: i32) -> Option<(u32, u32)> {
        let mut record = self.runners.get(runner)?.clone();
        let before = record.reputation;
        record.reputation = before.saturating_add_signed(by).min(MAX_REPUTATION);
        let after = record.reputation;
        self.runners.insert(*runner, record);
        Some((before, after))
    }

    /// Takes at most the whole stake of a runner, and returns the amount taken.
    pub fn slash(&mut self, runner: &Address, most: Wei) -> Result<Wei, RegistryError> {
        let mut taken = Wei::ZERO;
        self.change(runner, |r| {
            taken = r.stake.min(most);
            r.stake = r.stake.saturating_sub(taken);
        })?;
        Ok(taken)
    }

    fn active(&self, runner: &Address) -> Result<&Runner, RegistryError> {
        self.runners.get(runner).filter(|r| !r.deregistered).ok_or(RegistryError::Unknown(*runner))
    }

    fn change(
        &mut self,
        address: &Address,
        change: impl FnOnce(&mut Runner),
    ) -> Result<(), RegistryError> {
        let mut runner = self.active(address)?.clone();
        change(&mut runner);
        self.runners.insert(*address, runner);
        Ok(())
    }
}

/// Encodes the records and the order: a registry in snapshot form.
impl Encode for Registry {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        self.runners.encode(w);
        self.order.encode(w);
    }
}

impl Decode for Registry {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (runners, order) = Decode::decode(r)?;
        Ok(Self { runners, order })
    }
}
