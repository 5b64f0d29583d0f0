//! The polling of the control API by a runner in a process of its own: who validates, with a proof
//! ([`super::trust`]), where its validators listen, and the chain's migration phase.
//!
//! The API cannot choose which validators the runner trusts: the runner computes its subset itself,
//! and an address from the API leads either to the holder of the validator's key or nowhere. When a
//! proof is missing, the runner keeps the validators that it knows.
//!
//! A devnet may end and come back at another address. The runner dials no validator in the
//! meantime, so that its first attempt afterwards is immediate and does not wait out a long
//! back-off. The devnet must come back with the same chain: two chains of one topology share their
//! id and genesis, so the first block tells them apart.

use super::{
    KnownValidators, LOOK_AT_LEAST, REQUEST_TIMEOUT, ValidatorAddress,
    trust::{Remembered, Trust, TrustError, TrustRoot},
};
use crate::{
    client::{Access, BlockAt, Client, ClientError},
    consensus::PROTOCOL,
    home::{DevnetHome, DevnetState, HomeError},
    types::{AddressText, ChainId, ErrorCode, HashText, Parameters, ProofQuery, Runner, Text},
    verification::{VerificationError, Walk},
};
use commonware_runtime::Clock;
use cowboy_engine::{
    presence::Phase,
    primitives::{Address, Hash, Height, PublicKey},
};
use cowboy_host::{host_port::HostPort, spelling::Quoted};
use futures::future::join_all;
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};
use tokio::sync::watch;

const LOOK_AT_MOST: Duration = Duration::from_secs(5);
/// Number of first looks while the chain has no proof yet.
const FIRST_LOOKS: u32 = 50;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Consecutive looks without a proof before a warning is logged. A devnet that has just started has
/// no proof for some blocks, and a proof may be refused while an epoch begins.
const UNPROVED: u32 = 8;

/// The control API to follow.
#[derive(Debug, Clone)]
pub enum Api {
    Devnet(DevnetHome),
    /// The API at this address, such as `http://127.0.0.1:20123`.
    Url(String),
    Nodes(NodeApis),
}

/// Nodes in processes of their own, each with an API. The next one is asked when one does not
/// answer.
#[derive(Debug, Clone)]
pub struct NodeApis {
    /// The addresses of the APIs, at least one.
    pub urls: Vec<String>,
    /// Where validators listen for runners.
    pub listening: Vec<(PublicKey, HostPort)>,
    pub access: Access,
}

impl NodeApis {
    /// The addresses that the validators have now. One whose host is not found is left out.
    async fn listening(&self) -> BTreeMap<PublicKey, SocketAddr> {
        let found = self.listening.iter().map(async |(key, place)| {
            let address = place.resolve().await;
            if let Err(error) = &address {
                tracing::debug!(%place, %error, "a validator's host is not found");
            }
            Some((key.clone(), address.ok()?))
        });
        join_all(found).await.into_iter().flatten().collect()
    }
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The devnet does not answer, or answers without what is needed.
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the chain has no block yet")]
    Empty,
    /// The API's answer has an unknown phase or a malformed address.
    #[error("the API's answer makes no sense: {0}")]
    Answer(String),
    /// The API's proof of the validators does not follow from the trusted ones.
    #[error("the API does not prove who validates: {0}")]
    Untrusted(#[from] TrustError),
    #[error("the API's chain does not follow from genesis: {0}")]
    Verification(#[from] Box<VerificationError>),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(
        "{} has the validators of another chain, which this runner was started with first",
        .0.display()
    )]
    OtherRoot(PathBuf),
    #[error("runner {0} is not registered")]
    NotRegistered(Address),
    #[error(
        "{place} runs another chain than the one that the runner joined: its first block is {got}, \
         expected {expected}"
    )]
    OtherChain {
        place: String,
        /// The hash of its first block, or its chain id.
        got: String,
        expected: String,
    },
}

#[derive(Debug, Clone)]
pub(super) struct SeenChain {
    pub parameters: Parameters,
    pub phase: Phase,
    pub entry: Runner,
    /// The validators of its subset that listen, with their addresses.
    pub targets: Vec<ValidatorAddress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ChainFacts {
    id: u64,
    first_block: HashText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowState {
    Known,
    Unregistered,
    Away,
}

pub(super) struct Follower {
    api: Api,
    client: Client,
    runner: PublicKey,
    chain: Option<ChainFacts>,
    root: TrustRoot,
    /// The trusted validators; `None`: none are known yet.
    trust: Option<Trust>,
    memory: PathBuf,
    kept: Option<Remembered>,
    lacking: Option<FollowError>,
}

impl Follower {
    /// `memory` is the path of `validators.json`.
    pub fn new(
        api: Api,
        runner: PublicKey,
        root: TrustRoot,
        memory: PathBuf,
    ) -> Result<Self, ClientError> {
        let client = match &api {
            Api::Devnet(home) => Client::of_devnet(home)?,
            Api::Url(url) => Client::new(url)?,
            Api::Nodes(NodeApis { urls, access, .. }) => {
                Client::with_access(&urls[0], access.clone())?
            }
        };
        let client = client.of_protocol(PROTOCOL).with_timeout(REQUEST_TIMEOUT);
        let (chain, trust, kept, lacking) = (None, None, None, None);
        Ok(Self { api, client, runner, chain, root, trust, memory, kept, lacking })
    }

    /// A clone of the client, which moves along when the API moves.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The hash of the chain's first block; `None` before the first look.
    pub fn first_block(&self) -> Option<Hash> {
        self.chain.as_ref().map(|chain| chain.first_block.0)
    }

    /// Looks until it has validators to trust. It waits for a chain that has just begun. When no
    /// proof leads from the trusted validators to the current ones, it executes the chain from
    /// genesis, provided that genesis is what the runner trusts.
    pub async fn begin(&mut self, clock: &impl Clock) -> Result<SeenChain, FollowError> {
        let mut looks = 0;
        loop {
            let seen = match self.look().await {
                Err(FollowError::Empty) if looks < FIRST_LOOKS => {
                    looks += 1;
                    clock.sleep(FIRST_PAUSE).await;
                    continue;
                }
                other => other?,
            };
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

    /// Executes the chain from genesis; `error` is the reason, for the log.
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

    /// One look, at the next API when one does not answer. [`Self::lacking`] says afterwards
    /// whether it found a valid proof.
    async fn look(&mut self) -> Result<SeenChain, FollowError> {
        let apis = match &self.api {
            Api::Nodes(NodeApis { urls, .. }) => urls.len(),
            Api::Devnet(_) | Api::Url(_) => 1,
        };
        for _ in 1..apis {
            match self.look_once().await {
                Err(FollowError::Client(error)) if is_absent(&error) => self.turn(&error)?,
                other => return other,
            }
        }
        self.look_once().await
    }

    /// Asks the next node from now on.
    fn turn(&mut self, error: &ClientError) -> Result<(), FollowError> {
        if let Api::Nodes(NodeApis { urls, .. }) = &mut self.api {
            tracing::info!(%error, "a node gives no answer: the next one is asked");
            urls.rotate_left(1);
            self.client.move_to(&urls[0])?;
        }
        Ok(())
    }

    async fn look_once(&mut self) -> Result<SeenChain, FollowError> {
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
        let mut listening = match &self.api {
            Api::Nodes(nodes) => nodes.listening().await,
            Api::Devnet(_) | Api::Url(_) => BTreeMap::new(),
        };
        for validator in self.client.validators().await? {
            if let Some(quic) = validator.quic {
                let address: SocketAddr = parsed(&quic)?;
                listening.entry(validator.pubkey.0).or_insert(address);
            }
        }
        self.lacking = self.learn(parameters.chain_id.0.0).await.err();
        let targets = self.targets(&listening);
        Ok(SeenChain { parameters, phase, entry, targets })
    }

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

    fn targets(&self, listening: &BTreeMap<PublicKey, SocketAddr>) -> Vec<ValidatorAddress> {
        let Some(roster) = self.trust.as_ref().and_then(Trust::roster) else { return Vec::new() };
        let target = |key: &PublicKey| {
            let address = *listening.get(key)?;
            Some(ValidatorAddress { key: key.clone(), address })
        };
        let subset = roster.subsets_of(&self.runner);
        subset.into_iter().filter_map(|validator| target(&validator.pubkey)).collect()
    }

    pub fn chain_id(&self) -> Option<u64> {
        self.trust.as_ref().map(Trust::chain_id)
    }

    pub fn tell(&self, known: &mut KnownValidators) {
        if let Some(trust) = &self.trust {
            trust.tell(known);
        }
    }

    /// Records the chain at the first look; later fails if it is another one.
    async fn recognize(&mut self, parameters: &Parameters) -> Result<(), FollowError> {
        let first_block = match self.client.block(BlockAt::Height(1)).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(FollowError::Empty);
            }
            other => other?.hash,
        };
        let got = ChainFacts { id: parameters.chain_id.0.0, first_block };
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

    fn trusted(&mut self, chain: &ChainFacts) -> Result<Option<Trust>, FollowError> {
        let remembered = Remembered::load(&self.memory)?;
        let of_chain = |kept: &Remembered| {
            kept.chain_id.0.0 == chain.id && kept.first_block == chain.first_block
        };
        let Some((chain_id, keys)) = self.root.validators() else {
            // An API that names another chain is no reason to forget them.
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
            let expected = ChainFacts { id: chain_id, first_block: chain.first_block };
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

    fn other_chain(&self, got: &ChainFacts, expected: &ChainFacts) -> FollowError {
        let place = match &self.api {
            Api::Devnet(home) => format!("devnet `{}`", home.name()),
            Api::Url(url) => format!("the devnet at {url}"),
            Api::Nodes(NodeApis { urls, .. }) => format!("the node at {}", urls[0]),
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

    /// Looks until the chain is another one, and passes changes on. `connected` holds the number of
    /// validators that the runner is connected to.
    pub async fn follow(
        mut self,
        clock: impl Clock,
        first: SeenChain,
        known: watch::Sender<KnownValidators>,
        phase: watch::Sender<Phase>,
        connected: watch::Receiver<usize>,
    ) -> FollowError {
        let mut pause = pause(&first.parameters);
        let (mut standing, mut unproved) = (FollowState::Known, 0);
        loop {
            clock.sleep(pause).await;
            let (now, wanted) = match self.look().await {
                Ok(seen) => {
                    unproved = self.say_what_is_lacking(unproved);
                    pause = self::pause(&seen.parameters);
                    phase.send_if_modified(|known| {
                        std::mem::replace(known, seen.phase) != seen.phase
                    });
                    if standing != FollowState::Known {
                        tracing::info!(validators = seen.targets.len(), "the devnet is back");
                    }
                    (FollowState::Known, Some(seen.targets))
                }
                Err(error @ FollowError::OtherChain { .. }) => return error,
                Err(error @ FollowError::NotRegistered(_)) => {
                    if standing != FollowState::Unregistered {
                        tracing::warn!(%error, "waiting until it is registered again");
                    }
                    (FollowState::Unregistered, Some(Vec::new()))
                }
                Err(error) => {
                    if standing != FollowState::Away {
                        tracing::warn!(%error, "the devnet gives no answer; asked again");
                    }
                    // An answer may be late while the connections work: they stay.
                    let alone = *connected.borrow() == 0;
                    (FollowState::Away, alone.then(Vec::new))
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

    /// Logs once that proofs have been missing for a while, and once that they are back. `before`
    /// is the number of looks without a proof so far; returns the new number.
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

fn answers_at(home: &DevnetHome) -> Result<String, ClientError> {
    match home.state()? {
        DevnetState::Running(record) => Ok(record.rpc_url),
        DevnetState::Starting { .. } => Err(ClientError::Starting(home.name().clone())),
        DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) => {
            Err(ClientError::NotRunning(home.name().clone()))
        }
    }
}

/// Whether another node may answer instead.
const fn is_absent(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. }
        | ClientError::Timeout { .. }
        | ClientError::OtherVersion { .. } => true,
        ClientError::Refused(detail) => matches!(detail.code, ErrorCode::Unavailable),
        _ => false,
    }
}

/// About one block time.
fn pause(parameters: &Parameters) -> Duration {
    Duration::from_millis(parameters.block_time_ms).clamp(LOOK_AT_LEAST, LOOK_AT_MOST)
}

fn parsed(address: &str) -> Result<SocketAddr, FollowError> {
    address.parse().map_err(|error| answer(&format_args!("{}: {error}", Quoted(address))))
}

pub(super) fn answer(error: &dyn std::fmt::Display) -> FollowError {
    FollowError::Answer(error.to_string())
}
