//! What a runner in a process of its own asks the control API, again and again: who validates, with
//! a proof ([`super::trust`]), where its validators listen, and in which phase the chain is.
//!
//! The API is believed nothing that would let it choose whom the runner believes: the subset is
//! computed here, and the addresses that the API tells lead to the holders of the validators' keys
//! or nowhere. Where a proof is lacking, the runner keeps to the validators that it knew.
//!
//! A devnet may end and come back, and answer elsewhere then. Meanwhile nobody is dialled, so that
//! the first attempt after that is made at once and not when a long back-off is over. What comes
//! back has to be the same chain: two chains of one topology share their id and genesis, so that
//! the first block tells them apart.

use super::{
    Known, ValidatorAddress,
    trust::{Remembered, Trust, TrustError, TrustRoot},
};
use crate::{
    api::types::{AddressText, ChainId, ErrorCode, HashText, Parameters, ProofQuery, Runner, Text},
    client::{BlockAt, Client, ClientError},
    home::{DevnetHome, HomeError, State},
    spelling::Quoted,
    verification::{VerificationError, Walk},
};
use commonware_runtime::Clock;
use cowboy_engine::{
    presence::Phase,
    primitives::{Address, Hash, Height, PublicKey},
};
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};
use tokio::sync::watch;

/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks, on chains however fast and slow.
const LOOK_AT_LEAST: Duration = Duration::from_millis(500);
const LOOK_AT_MOST: Duration = Duration::from_secs(5);
/// How often the first look is taken again while the chain has no proof yet.
const FIRST_LOOKS: u32 = 50;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Looks without a proof in a row before the log says so. A devnet that has just started has none
/// for some blocks, and while an epoch begins one may not be believed.
const UNPROVED: u32 = 8;

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
    /// What the API says of the validators does not follow from those that are trusted.
    #[error("the API does not prove who validates: {0}")]
    Untrusted(#[from] TrustError),
    /// Nor does the chain that it serves follow from genesis.
    #[error("the API's chain does not follow from genesis: {0}")]
    Verification(#[from] Box<VerificationError>),
    /// What was believed before cannot be read or written.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The validators that were believed first are those of another chain.
    #[error(
        "{} has the validators of another chain, which this runner was started with first",
        .0.display()
    )]
    OtherRoot(PathBuf),
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
    /// Where the validators of its subset listen that do.
    pub targets: Vec<ValidatorAddress>,
}

/// What tells the chain from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chain {
    id: u64,
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
    runner: PublicKey,
    chain: Option<Chain>,
    root: TrustRoot,
    /// What is believed; `None`: no validators have been named yet.
    trust: Option<Trust>,
    /// Where that is kept.
    memory: PathBuf,
    kept: Option<Remembered>,
    /// Why the last look found no proof that is believed.
    lacking: Option<FollowError>,
}

impl Follower {
    /// `memory` is the file of the validators that were believed last.
    pub fn new(
        api: Api,
        runner: PublicKey,
        root: TrustRoot,
        memory: PathBuf,
    ) -> Result<Self, ClientError> {
        let client = match &api {
            Api::Devnet(home) => Client::of_devnet(home)?,
            Api::Url(url) => Client::new(url)?,
        };
        let client = client.with_timeout(REQUEST_TIMEOUT);
        let (chain, trust, kept, lacking) = (None, None, None, None);
        Ok(Self { api, client, runner, chain, root, trust, memory, kept, lacking })
    }

    /// The client that goes where the API goes.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The hash of the chain's first block; `None`: it has not looked yet.
    pub fn first_block(&self) -> Option<Hash> {
        self.chain.as_ref().map(|chain| chain.first_block.0)
    }

    /// The first look: it ends with validators that are believed. A chain that has just begun is
    /// waited for; where no proof leads from the trusted validators to those of now, the chain is
    /// executed from genesis, if that is what is trusted.
    pub async fn begin(&mut self, clock: &impl Clock) -> Result<Seen, FollowError> {
        let mut looks = 0;
        loop {
            let seen = self.look().await?;
            let Some(lacking) = self.lacking.take() else {
                self.say_whom_it_believes();
                return Ok(seen);
            };
            looks += 1;
            let waits = match &lacking {
                FollowError::Client(error) => {
                    error.code() == Some(ErrorCode::Unavailable) && looks < FIRST_LOOKS
                }
                FollowError::Untrusted(TrustError::Strangers { .. }) => false,
                FollowError::Untrusted(_) => looks < UNPROVED,
                _ => false,
            };
            if waits {
                let block_time = Duration::from_millis(seen.parameters.block_time_ms);
                clock.sleep(block_time.clamp(FIRST_PAUSE, LOOK_AT_MOST)).await;
                continue;
            }
            let FollowError::Untrusted(error) = lacking else { return Err(lacking) };
            self.walk(error).await?;
            let seen = self.look().await?;
            self.say_whom_it_believes();
            return Ok(seen);
        }
    }

    /// Executes the chain from genesis; `error` is why that is needed.
    async fn walk(&mut self, error: TrustError) -> Result<(), FollowError> {
        let TrustRoot::Genesis(root) = &self.root else { return Err(error.into()) };
        let to = self.client.head().await?.height;
        tracing::info!(%error, to, "verifying the chain from genesis, to know who validates");
        let verifying = |error| FollowError::Verification(Box::new(error));
        let mut walk = Walk::new(&self.client, root).map_err(verifying)?;
        // The newest two may have no certificate yet.
        while walk.height().get().saturating_add(2) < to {
            walk.next().await.map_err(verifying)?;
        }
        let (height, roster) = (walk.height(), walk.replay().state().roster());
        let trust = self.trust.as_mut().expect("genesis is trusted from the first look on");
        trust.take(height, roster);
        self.remember()
    }

    fn say_whom_it_believes(&self) {
        let (validators, since) = self.trust.as_ref().expect("a proof was believed").voters();
        let (validators, root) = (validators.len(), &self.root);
        tracing::info!(validators, %since, %root, "knows who validates");
        if let TrustRoot::FirstUse = root {
            tracing::warn!(
                file = %self.memory.display(),
                "whether these are the chain's validators the API alone has said; start the \
                 runner with --validator and --chain-id to be sure"
            );
        }
    }

    /// One look. Whether it found a proof, [`Self::lacking`] says.
    async fn look(&mut self) -> Result<Seen, FollowError> {
        if let Api::Devnet(home) = &self.api {
            self.client.move_to(&answers_at(home)?)?;
        }
        let parameters = self.client.parameters().await?;
        self.recognize(&parameters).await?;
        let address = AddressText::from(self.runner.address()).to_string();
        let entry = match self.client.runner(&address).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(FollowError::NotRegistered(self.runner.address()));
            }
            other => other?,
        };
        let phase = parameters.phase.parse().map_err(|error| answer(&error))?;
        let mut listening = BTreeMap::new();
        for validator in self.client.validators().await? {
            if let Some(quic) = validator.quic {
                let address: SocketAddr = parsed(&quic)?;
                listening.insert(validator.pubkey.0, address);
            }
        }
        self.lacking = self.learn(parameters.chain_id.0.0).await.err();
        let targets = self.targets(&listening);
        Ok(Seen { parameters, phase, entry, targets })
    }

    /// Asks for a proof of who validates.
    async fn learn(&mut self, chain_id: u64) -> Result<(), FollowError> {
        let newest = ProofQuery { key: None, at: None };
        let answer = self.client.prove("validators", &newest).await?;
        let proof = &answer.proof.0.0;
        match &mut self.trust {
            Some(trust) => trust.believe(proof)?,
            None => self.trust = Some(Trust::on_first_use(chain_id, proof)?),
        }
        self.remember()
    }

    /// Keeps the validators that are believed, where they are others than before.
    fn remember(&mut self) -> Result<(), FollowError> {
        let (Some(trust), Some(chain)) = (&self.trust, &self.chain) else { return Ok(()) };
        let root = self.root.validators().map(|(_, keys)| keys);
        let now = Remembered::of(trust, root.as_deref(), chain.first_block);
        if self.kept.as_ref().is_none_or(|kept| !kept.has_the_validators_of(&now)) {
            now.save(&self.memory)?;
            self.kept = Some(now);
        }
        Ok(())
    }

    /// The validators that the runner is to be connected to, where they listen.
    fn targets(&self, listening: &BTreeMap<PublicKey, SocketAddr>) -> Vec<ValidatorAddress> {
        let Some(roster) = self.trust.as_ref().and_then(Trust::roster) else { return Vec::new() };
        let target = |key: &PublicKey| {
            let address = *listening.get(key)?;
            Some(ValidatorAddress { key: key.clone(), address })
        };
        let subset = roster.subsets_of(&self.runner);
        subset.into_iter().filter_map(|validator| target(&validator.pubkey)).collect()
    }

    /// The chain that is trusted.
    pub fn chain_id(&self) -> Option<u64> {
        self.trust.as_ref().map(Trust::chain_id)
    }

    /// Tells what is believed of the committees.
    pub fn tell(&self, known: &mut Known) {
        if let Some(trust) = &self.trust {
            trust.tell(known);
        }
    }

    /// Remembers the chain at the first look, and refuses another one later.
    async fn recognize(&mut self, parameters: &Parameters) -> Result<(), FollowError> {
        let first_block = match self.client.block(BlockAt::Height(1)).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(FollowError::Empty);
            }
            other => other?.hash,
        };
        let got = Chain { id: parameters.chain_id.0.0, first_block };
        let Some(expected) = &self.chain else {
            self.trust = self.trusted(&got)?;
            self.chain = Some(got);
            return Ok(());
        };
        if *expected == got {
            return Ok(());
        }
        Err(self.other_chain(&got, expected))
    }

    /// Whom the runner believes before the first proof.
    fn trusted(&mut self, chain: &Chain) -> Result<Option<Trust>, FollowError> {
        let remembered = Remembered::load(&self.memory)?;
        let of_chain = |kept: &Remembered| {
            kept.chain_id.0.0 == chain.id && kept.first_block == chain.first_block
        };
        let Some((chain_id, keys)) = self.root.validators() else {
            // Not forgotten because the API says that its chain is another one.
            return match remembered {
                Some((kept, _)) if !of_chain(&kept) => {
                    Err(FollowError::OtherRoot(self.memory.clone()))
                }
                Some((kept, trust)) => {
                    self.kept = Some(kept);
                    Ok(Some(trust))
                }
                None => Ok(None),
            };
        };
        if chain_id != chain.id {
            let expected = Chain { id: chain_id, first_block: chain.first_block };
            return Err(self.other_chain(chain, &expected));
        }
        match remembered.filter(|(kept, _)| of_chain(kept) && kept.rests_on(&keys)) {
            Some((kept, trust)) => {
                self.kept = Some(kept);
                Ok(Some(trust))
            }
            None => Ok(Some(Trust::new(chain_id, keys, Height::GENESIS))),
        }
    }

    fn other_chain(&self, got: &Chain, expected: &Chain) -> FollowError {
        let place = match &self.api {
            Api::Devnet(home) => format!("devnet `{}`", home.name()),
            Api::Url(url) => format!("the devnet at {url}"),
        };
        let (got, expected) = match expected.id == got.id {
            true => (got.first_block.to_string(), expected.first_block.to_string()),
            false => (
                format!("of chain {}", Text(ChainId(got.id))),
                format!("that of {}", Text(ChainId(expected.id))),
            ),
        };
        FollowError::OtherChain { place, got, expected }
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
        let (mut standing, mut unproved) = (Standing::Known, 0);
        loop {
            clock.sleep(pause).await;
            let (now, wanted) = match self.look().await {
                Ok(seen) => {
                    unproved = self.say_what_is_lacking(unproved);
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
                    let before = known.clone();
                    self.tell(known);
                    known.targets = wanted;
                    *known != before
                });
            }
        }
    }

    /// Says once that no proof has been believed for a while, and that one is again. `before` looks
    /// in a row were without one; returns how many are now.
    fn say_what_is_lacking(&self, before: u32) -> u32 {
        let Some(lacking) = &self.lacking else {
            if before >= UNPROVED {
                tracing::info!("it is proved again who validates");
            }
            return 0;
        };
        let unproved = before.saturating_add(1);
        if unproved == UNPROVED {
            tracing::warn!(
                error = %lacking,
                "who validates now is not proved: the runner keeps to the validators that it \
                 knows; if this goes on, start it again"
            );
        }
        unproved
    }
}

/// Where a devnet's API answers now.
fn answers_at(home: &DevnetHome) -> Result<String, ClientError> {
    match home.state()? {
        State::Running(record) => Ok(record.rpc_url),
        State::Starting { .. } => Err(ClientError::Starting(home.name().clone())),
        State::Absent | State::Stopped | State::Died(_) => {
            Err(ClientError::NotRunning(home.name().clone()))
        }
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
