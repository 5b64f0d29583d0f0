//! What a runner in a process of its own asks the control API, again and again: where its
//! validators listen, who votes, and in which phase the chain is.
//!
//! A devnet may end and come back, and answer elsewhere then. Meanwhile nobody is dialled, so that
//! the first attempt after that is made at once and not when a long back-off is over. What comes
//! back has to be the same chain: two chains of one topology share their id and genesis, so that
//! the first block tells them apart.

use super::{Known, ValidatorAddress};
use crate::{
    api::types::{AddressText, ErrorCode, HashText, Parameters, Runner},
    client::{BlockAt, Client, ClientError},
    home::{DevnetHome, State},
    spelling::Quoted,
};
use commonware_runtime::Clock;
use cowboy_engine::{
    presence::Phase,
    primitives::{Address, Hash, PublicKey},
};
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};
use tokio::sync::watch;

/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks, on chains however fast and slow.
const LOOK_AT_LEAST: Duration = Duration::from_millis(500);
const LOOK_AT_MOST: Duration = Duration::from_secs(5);

/// Where the control API is.
#[derive(Debug, Clone)]
pub enum Api {
    /// Where this devnet's record says.
    Devnet(DevnetHome),
    /// At this address, as `http://127.0.0.1:20123`.
    Url(String),
}

/// Why nothing was learnt.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The devnet does not answer, or not with what is needed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The chain has no block yet.
    #[error("the chain has no block yet")]
    Empty,
    /// The API speaks of phases or addresses that are none.
    #[error("the API's answer makes no sense: {0}")]
    Answer(String),
    /// The runner is not in the registry.
    #[error("runner {0} is not registered")]
    NotRegistered(Address),
    /// It is not the chain that the runner joined.
    #[error(
        "{place} runs another chain than the one that the runner joined: its first block is {got}, \
         expected {expected}"
    )]
    OtherChain {
        /// Which devnet.
        place: String,
        /// The hash of that chain's first block, or the chain's id.
        got: String,
        /// The same of the one that the runner joined.
        expected: String,
    },
}

/// What a look found.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub parameters: Parameters,
    pub phase: Phase,
    /// The registry entry.
    pub entry: Runner,
    /// The consensus epoch of the next block.
    pub epoch: u64,
    /// Who votes in it: ed25519 keys.
    pub committee: Vec<[u8; 32]>,
    pub targets: Vec<ValidatorAddress>,
}

/// What tells the chain from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chain {
    id: String,
    first_block: HashText,
}

/// Whether the last look found what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Known,
    Unregistered,
    Away,
}

/// Asks about one runner.
pub(super) struct Follower {
    api: Api,
    client: Client,
    runner: Address,
    chain: Option<Chain>,
}

impl Follower {
    pub fn new(api: Api, runner: Address) -> Result<Self, ClientError> {
        let client = match &api {
            Api::Devnet(home) => Client::of_devnet(home)?,
            Api::Url(url) => Client::new(url)?,
        };
        Ok(Self { api, client: client.with_timeout(REQUEST_TIMEOUT), runner, chain: None })
    }

    /// The client that goes where the API goes.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The hash of the chain's first block; `None`: it has not looked yet.
    pub fn first_block(&self) -> Option<Hash> {
        self.chain.as_ref().map(|chain| chain.first_block.0)
    }

    /// One look.
    pub async fn look(&mut self) -> Result<Seen, FollowError> {
        if let Api::Devnet(home) = &self.api {
            self.client.move_to(&answers_at(home)?)?;
        }
        let parameters = self.client.parameters().await?;
        self.recognize(&parameters).await?;
        let address = AddressText::from(self.runner).to_string();
        let entry = match self.client.runner(&address).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(FollowError::NotRegistered(self.runner));
            }
            other => other?,
        };
        let mut listening = BTreeMap::new();
        let mut committee = Vec::new();
        for validator in self.client.validators().await? {
            if validator.index.is_some() {
                let key = validator.consensus_key.0.0.as_slice().try_into();
                committee.push(key.map_err(|_| {
                    answer(&format_args!("consensus key {}", validator.consensus_key))
                })?);
            }
            if let Some(quic) = validator.quic {
                let address: SocketAddr = parsed(&quic)?;
                listening.insert(validator.address, (validator.pubkey.0, address));
            }
        }
        let target = |address: &AddressText| {
            let (key, address) = listening.get(address)?;
            Some(ValidatorAddress { key: PublicKey::clone(key), address: *address })
        };
        let subset = entry.connections.iter().map(|connection| &connection.validator_address);
        let targets = subset.filter_map(target).collect();
        let phase = parameters.phase.parse().map_err(|error| answer(&error))?;
        let epoch = parameters.height.checked_div(parameters.epoch_blocks);
        let epoch = epoch.ok_or_else(|| answer(&"an epoch of no block"))?;
        Ok(Seen { parameters, phase, entry, epoch, committee, targets })
    }

    /// Remembers the chain at the first look, and refuses another one later.
    async fn recognize(&mut self, parameters: &Parameters) -> Result<(), FollowError> {
        let first_block = match self.client.block(BlockAt::Height(1)).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(FollowError::Empty);
            }
            other => other?.hash,
        };
        let got = Chain { id: parameters.chain_id.to_string(), first_block };
        let expected = self.chain.get_or_insert_with(|| got.clone());
        if *expected == got {
            return Ok(());
        }
        let place = match &self.api {
            Api::Devnet(home) => format!("devnet `{}`", home.name()),
            Api::Url(url) => format!("the devnet at {url}"),
        };
        let (got, expected) = match expected.id == got.id {
            true => (got.first_block.to_string(), expected.first_block.to_string()),
            false => (format!("of chain {}", got.id), format!("that of {}", expected.id)),
        };
        Err(FollowError::OtherChain { place, got, expected })
    }

    /// Looks until the chain is another one, and passes on what changes. `connected` is how many
    /// validators the runner is connected to.
    pub async fn follow(
        mut self,
        clock: impl Clock,
        first: Seen,
        known: watch::Sender<Known>,
        phase: watch::Sender<Phase>,
        connected: watch::Receiver<usize>,
    ) -> FollowError {
        let mut pause = pause(&first.parameters);
        let mut standing = Standing::Known;
        loop {
            clock.sleep(pause).await;
            let (now, wanted) = match self.look().await {
                Ok(seen) => {
                    known.send_if_modified(|known| {
                        let before = known.committees.get(&seen.epoch);
                        let differs = before != Some(&seen.committee);
                        if differs {
                            known.learn(seen.epoch, seen.committee.clone());
                        }
                        differs
                    });
                    pause = self::pause(&seen.parameters);
                    phase.send_if_modified(|known| {
                        std::mem::replace(known, seen.phase) != seen.phase
                    });
                    if standing != Standing::Known {
                        tracing::info!(validators = seen.targets.len(), "the devnet is back");
                    }
                    (Standing::Known, Some(seen.targets))
                }
                Err(error @ FollowError::OtherChain { .. }) => return error,
                Err(error @ FollowError::NotRegistered(_)) => {
                    if standing != Standing::Unregistered {
                        tracing::warn!(%error, "waiting until it is registered again");
                    }
                    (Standing::Unregistered, Some(Vec::new()))
                }
                Err(error) => {
                    if standing != Standing::Away {
                        tracing::warn!(%error, "the devnet does not answer; asked again");
                    }
                    // An answer may come late while the connections are fine: they stay.
                    let alone = *connected.borrow() == 0;
                    (Standing::Away, alone.then(Vec::new))
                }
            };
            standing = now;
            if let Some(wanted) = wanted {
                known.send_if_modified(|known| {
                    let differs = known.targets != wanted;
                    known.targets = wanted;
                    differs
                });
            }
        }
    }
}

/// Where a devnet's API answers now.
fn answers_at(home: &DevnetHome) -> Result<String, ClientError> {
    match home.state()? {
        State::Running(record) => Ok(record.rpc_url),
        State::Starting { .. } => Err(ClientError::Starting(home.name().clone())),
        State::Absent | State::Stopped => Err(ClientError::NotRunning(home.name().clone())),
    }
}

/// About a block's time.
fn pause(parameters: &Parameters) -> Duration {
    Duration::from_millis(parameters.block_time_ms).clamp(LOOK_AT_LEAST, LOOK_AT_MOST)
}

fn parsed(address: &str) -> Result<SocketAddr, FollowError> {
    address.parse().map_err(|error| answer(&format_args!("{}: {error}", Quoted(address))))
}

pub(super) fn answer(error: &dyn std::fmt::Display) -> FollowError {
    FollowError::Answer(error.to_string())
}
