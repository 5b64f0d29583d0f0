//! Assembles the parts of consensus, for any runtime and any network.
//!
//! ```text
//!  blocks channel ── buffer ─┐                      ┌─ votes, certificates, resolver channels
//!  backfill channel ─ resolver ─ marshal ─ Inline ─ epochs ─ reports ─→ Held, marshal
//!                                  │         └─ Application (propose, verify)
//!                                  └─ final blocks in order ─→ Ledger, then acknowledged
//! ```
//!
//! Marshal keeps the newest final blocks and their certificates, fetches missing ones from peers
//! and delivers them in order. After a restart it delivers unacknowledged ones again.

use super::{
    EngineError,
    application::{Application, TakesPart},
    archive::{self, ArchiveError},
    block::{Block, BlockConfig},
    certificate,
    channels::Endpoint,
    delivery::{Deliveries, Delivering, MAX_UNACKNOWLEDGED},
    epochs::{BUFFER, ConsensusChannels, Epochs, MAILBOX, VIEWS_KEPT},
    held::Held,
    hurry::{Hurried, Hurry},
    presence::{LocalPresence, RunnerView, Sightings},
    scheme::{MAX_PARTICIPANTS, Scheme, Schemes},
    timing::{FastForward, Timing},
};
use crate::chain::{gossip, ledger::Ledger, mempool::Mempool, reveals};
use commonware_broadcast::buffered;
use commonware_consensus::{
    marshal::{self, Start, core::Actor, resolver::p2p as resolver, standard::Inline},
    types::FixedEpocher,
};
use commonware_cryptography::{
    Digestible as _, Signer as _,
    certificate::Verifier as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_macros::select;
use commonware_p2p::{Blocker, Provider, Receiver, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::{
    Clock, Error as RuntimeError, Handle, Metrics, Spawner, Storage,
    buffer::paged::{CacheRef, page_size},
};
use commonware_storage::{
    archive::{Archive as _, prunable},
    translator::EightCap,
};
use commonware_utils::{NZDuration, NZU64, NZUsize};
use cowboy_engine::{chain, primitives};
use rand_core::CryptoRng;
use std::{num::NonZeroU64, sync::Arc, time::Duration};
use tokio::sync::watch;
use tracing::{Instrument as _, Span};

/// Blocks per peer that are kept until they are notarized.
const BLOCKS_BUFFERED: usize = 16;
/// Time limit for a previous run of the validator to close its storage.
const STORAGE_WAIT: Duration = Duration::from_secs(5);

/// The parameters of one validator's consensus.
pub struct EngineConfig {
    /// The validator's name: the prefix of its storage partitions (letters, digits, `-`, `_`).
    pub name: String,
    pub key: PrivateKey,
    pub genesis: chain::Block,
    pub timing: Timing,
    pub fast_forward: FastForward,
    /// Set while the validator is alone and its pace is lifted.
    pub hurry: Hurry,
    pub ledger: Ledger,
    pub mempool: Mempool,
    pub reveals: reveals::Port,
    pub view: Arc<dyn RunnerView>,
    /// Certificates and counters, shared with observers.
    pub held: Held,
    /// Set once the validator takes part in consensus.
    pub takes_part: TakesPart,
}

/// How long to wait for the ledger's own error when another part ends first.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Runs consensus of one validator until one of its parts fails. Aborting the task aborts all
/// parts.
pub async fn run<E, S, R, B, P>(
    context: E,
    config: EngineConfig,
    endpoint: Endpoint<S, R, B, P>,
) -> EngineError
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
    P: Provider<PublicKey = PublicKey>,
{
    let clock = context.child("end");
    let context = Hurried::new(context, config.hurry.clone());
    match start(context, config, endpoint).await {
        Ok(mut parts) => parts.first_to_end(&clock).await,
        Err(error) => error,
    }
}

struct Parts {
    ledger: Handle<Result<(), EngineError>>,
    others: Vec<(&'static str, Handle<()>)>,
}

impl Parts {
    async fn first_to_end(&mut self, clock: &impl Clock) -> EngineError {
        let others = self.others.iter_mut().map(|(part, handle)| {
            Box::pin(async move { (*part, handle.await.map_err(|error| error.to_string())) })
        });
        let others = futures::future::select_all(others);
        let ended = |part, result: Result<(), String>| EngineError::Ended {
            part,
            error: result.err().unwrap_or_else(|| "without a reason".into()),
        };
        select! {
            result = &mut self.ledger => match result {
                Ok(Err(error)) => error,
                Ok(Ok(())) => ended("ledger", Ok(())),
                Err(error) => ended("ledger", Err(error.to_string())),
            },
            first = others => {
                let first = ended(first.0.0, first.0.1);
                // A failing ledger ends other parts, which may be seen before the ledger's error.
                select! {
                    result = &mut self.ledger => match result {
                        Ok(Err(error)) => error,
                        Ok(Ok(())) | Err(_) => first,
                    },
                    () = clock.sleep(LAST_WORD) => first,
                }
            }
        }
    }
}

async fn start<E, S, R, B, P>(
    context: E,
    config: EngineConfig,
    endpoint: Endpoint<S, R, B, P>,
) -> Result<Parts, EngineError>
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
    P: Provider<PublicKey = PublicKey>,
{
    let EngineConfig {
        name,
        key,
        genesis,
        timing,
        fast_forward,
        hurry,
        ledger,
        mempool,
        reveals,
        view,
        held,
        takes_part,
    } = config;
    let Endpoint { channels, blocker, peers } = endpoint;
    let span = Span::current();
    let me = key.public_key();
    let sightings = Sightings::default();
    let source = LocalPresence::new(ledger.clone(), sightings.clone(), view);
    let head = ledger.head();
    let schemes = Schemes::new(key, Arc::new(source), &head)?;
    let known = mempool.known().clone();
    let blocks = BlockConfig { validators: MAX_PARTICIPANTS, known };
    let epoch_blocks = head.params().epoch_blocks;
    let epoch_blocks = NonZeroU64::new(epoch_blocks).expect("genesis has seen to it");
    let page_cache = CacheRef::new(page_size(4096), NZUsize!(256));
    let epocher = FixedEpocher::new(epoch_blocks);
    let genesis = Block::new(genesis).expect("the genesis proposer, all zeros, is a curve point");
    let root = genesis.digest();
    let fetch_timeout = NZDuration!(timing.fetch_timeout);
    let fetch_retry_delay = Duration::from_millis(50);

    let marshal_partition = format!("{name}-marshal");
    let metadata = metadata(&name);
    let stored = head.height().get();
    let journal = Epochs::<E, B>::journal(&name, Epochs::<E, B>::epoch_after(&epocher, stored));
    let mut partitions = vec![journal.clone(), metadata.clone()];
    partitions.extend(archive_partitions(&name, "blocks"));
    partitions.extend(archive_partitions(&name, "finalizations"));
    released(&context, &partitions).await?;

    let (resolver_receiver, resolver) = {
        let config = resolver::Config {
            public_key: me.clone(),
            peer_provider: peers.clone(),
            blocker: blocker.clone(),
            mailbox_size: MAILBOX,
            fetch_timeout,
            fetch_retry_delay,
            priority_requests: false,
            priority_responses: false,
        };
        resolver::init(context.child("backfill"), config, channels.backfill)
    };
    let (buffer_engine, buffer) = buffered::Engine::new(
        context.child("blocks"),
        buffered::Config {
            public_key: me.clone(),
            mailbox_size: MAILBOX,
            deque_size: BLOCKS_BUFFERED,
            priority: false,
            codec_config: blocks.clone(),
            peer_provider: peers,
            strategy: Sequential,
        },
    );
    let buffer_handle = buffer_engine.start(channels.blocks);

    macro_rules! archive {
        ($part:literal, $codec:expr) => {{
            let [metadata_partition, key_partition, value_partition] =
                archive_partitions(&name, $part);
            let config = prunable::Config {
                translator: EightCap,
                metadata_partition,
                key_partition,
                key_page_cache: page_cache.clone(),
                value_partition,
                compression: None,
                codec_config: $codec,
                items_per_section: archive::SECTION,
                key_write_buffer: BUFFER,
                value_write_buffer: BUFFER,
                replay_buffer: BUFFER,
            };
            let archive = prunable::Archive::init(context.child($part), config).await;
            archive.map_err(|error| failed(&format!("{name}-{}", $part), &error))?
        }};
    }
    let mut recent_certificates =
        archive!("finalizations", Scheme::certificate_codec_config_unbounded());
    let mut recent_blocks = archive!("blocks", blocks.clone());
    let mut begun = is_there(&context, &metadata).await?;
    if begun && archive::is_elsewhere(&recent_blocks, stored).await? {
        if schemes.newest().is_some_and(|scheme| scheme.committee().validators().len() == 1) {
            return Err(EngineError::Lost(primitives::Height::new(stored + 1)));
        }
        tracing::warn!(stored, "the archive does not continue this store: fetching missing blocks");
        recent_blocks.destroy().await.map_err(ArchiveError::from)?;
        recent_certificates.destroy().await.map_err(ArchiveError::from)?;
        context.remove(&metadata, None).await.map_err(|error| failed(&metadata, &error))?;
        recent_certificates =
            archive!("finalizations", Scheme::certificate_codec_config_unbounded());
        recent_blocks = archive!("blocks", blocks.clone());
        begun = false;
    }
    let finalizations = archive::Certificates::new(recent_certificates, ledger.store().clone());
    let block_archive = archive::Blocks::new(recent_blocks, ledger.store().clone());
    // If the store has blocks but consensus has no record of any, its files are lost. It then
    // resumes from the newest block that is proved final.
    let proof = archive::newest_certificate(ledger.store(), head.height())?;
    let start = match &proof {
        Some(proof) if !begun => Start::Floor(proof.clone()),
        _ => Start::Genesis(genesis.digested()),
    };
    let lost_journal = !is_there(&context, &journal).await?;
    let floor_of_epoch = proof.filter(|_| lost_journal);
    let (marshal_actor, marshal, floor) = Actor::init(
        context.child("marshal"),
        finalizations,
        block_archive,
        marshal::Config {
            provider: schemes.clone(),
            epocher: epocher.clone(),
            start,
            partition_prefix: marshal_partition,
            mailbox_size: MAILBOX,
            view_retention: VIEWS_KEPT,
            prunable_items_per_section: NZU64!(256),
            page_cache: page_cache.clone(),
            replay_buffer: BUFFER,
            key_write_buffer: BUFFER,
            value_write_buffer: BUFFER,
            block_codec_config: blocks,
            max_repair: NZUsize!(16),
            max_pending_acks: MAX_UNACKNOWLEDGED,
            strategy: Sequential,
        },
    )
    .await;

    let application = Application {
        schemes: schemes.clone(),
        held: held.clone(),
        ledger: ledger.clone(),
        mempool: mempool.clone(),
        marshal: marshal.clone(),
        sightings,
        pace: timing.pace,
        fast_forward,
        hurry: hurry.clone(),
        takes_part,
        span: span.clone(),
    };
    let inline =
        Inline::new(context.child("inline"), application, marshal.clone(), epocher.clone());
    let (deliveries, incoming) = Deliveries::new();
    let marshal_handle = marshal_actor.start(deliveries, buffer, (resolver_receiver, resolver));
    let (storing, storage) = watch::channel((stored, certificate::digest(head.head_hash())));
    let delivering = Delivering {
        ledger: ledger.clone(),
        mempool: mempool.clone(),
        marshal: marshal.clone(),
        processed: floor.processed(),
        incoming,
        schemes: schemes.clone(),
        held: held.clone(),
        stored: storing,
    };
    // On a separate thread, because it executes blocks and writes to SQLite.
    let in_span = span.clone();
    let ledger_handle = context
        .child("ledger")
        .dedicated()
        .spawn(move |context| delivering.run(context).instrument(in_span));

    let gossip = context.child("gossip").spawn({
        let (channel, span) = (channels.gossip, span.clone());
        move |context| gossip::run(context, channel, ledger, mempool).instrument(span)
    });
    let passing = context.child("reveals").spawn({
        let channel = channels.reveals;
        move |context| reveals::run(context, channel, reveals).instrument(span)
    });

    let epochs = Epochs {
        name,
        me,
        schemes,
        epocher,
        timing,
        blocker,
        automaton: inline,
        marshal,
        held,
        hurry,
        page_cache,
        stored: storage,
        begun: stored.max(floor.processed().map_or(0, |processed| processed.height().get())),
        floor: floor_of_epoch,
        genesis: root,
    };
    let consensus = ConsensusChannels {
        votes: channels.votes,
        certificates: channels.certificates,
        resolver: channels.resolver,
        start_barrier: channels.start_barrier,
    };
    let consensus = context.child("voting").spawn(move |context| async move {
        let part = epochs.run(context, consensus).await;
        tracing::error!(part, "consensus cannot continue");
    });
    Ok(Parts {
        ledger: ledger_handle,
        others: vec![
            ("marshal", marshal_handle),
            ("block buffer", buffer_handle),
            ("consensus", consensus),
            ("gossip", gossip),
            ("reveals", passing),
        ],
    })
}

/// The partitions of a validator's archives of final blocks and of their delivery progress: all
/// data that can be rebuilt from the chain. The journals of its votes are not among them.
pub fn archives(name: &str) -> Vec<String> {
    let archives = ["blocks", "finalizations"];
    let parts = archives.into_iter().flat_map(|part| archive_partitions(name, part));
    parts.chain([metadata(name)]).collect()
}

fn archive_partitions(name: &str, part: &str) -> [String; 3] {
    ["meta", "key", "value"].map(|kind| format!("{name}-{part}-{kind}"))
}

/// The consensus library defines this name.
fn metadata(name: &str) -> String {
    format!("{name}-marshal-application-metadata")
}

async fn is_there<E: Storage>(context: &E, partition: &str) -> Result<bool, EngineError> {
    match context.scan(partition).await {
        Ok(blobs) => Ok(!blobs.is_empty()),
        Err(RuntimeError::PartitionMissing(_)) => Ok(false),
        Err(error) => Err(failed(partition, &error)),
    }
}

fn failed(partition: &str, error: &impl ToString) -> EngineError {
    EngineError::Storage { partition: partition.to_owned(), error: error.to_string() }
}

/// Waits until no blob of `partitions` is open, because a stopped validator closes its files a
/// moment later.
async fn released<E: Clock + Storage>(
    context: &E,
    partitions: &[String],
) -> Result<(), EngineError> {
    let deadline = context.current() + STORAGE_WAIT;
    for partition in partitions {
        let blobs = match context.scan(partition).await {
            Ok(blobs) => blobs,
            Err(RuntimeError::PartitionMissing(_)) => continue,
            Err(error) => return Err(failed(partition, &error)),
        };
        for blob in blobs {
            // The blob's owner meets and reports other errors.
            while let Err(error @ RuntimeError::BlobAlreadyOpen(..)) =
                context.open(partition, &blob).await
            {
                if context.current() >= deadline {
                    return Err(failed(partition, &error));
                }
                context.sleep(Duration::from_millis(5)).await;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_runtime::{Runner as _, Supervisor as _, deterministic};

    /// A validator whose disk is full waits for space, but one that ends without a reason dies. The
    /// outcome must not depend on which part is seen to end first.
    #[test]
    fn a_ledgers_error_is_told_also_where_it_is_seen_last() {
        let told = |after: Duration, fails: bool| {
            deterministic::Runner::default().start(|context| async move {
                let ledger = context.child("ledger").spawn(move |context| async move {
                    context.sleep(after).await;
                    match fails {
                        true => Err(EngineError::Archive(primitives::Height::new(7))),
                        false => Ok(()),
                    }
                });
                let other = context.child("other").spawn(|_| async {});
                let mut parts = Parts { ledger, others: vec![("other", other)] };
                parts.first_to_end(&context.child("end")).await
            })
        };
        for after in [Duration::ZERO, LAST_WORD / 2] {
            assert!(matches!(told(after, true), EngineError::Archive(_)), "{after:?}");
        }
        let ended = |error| matches!(error, EngineError::Ended { part: "other", .. });
        assert!(ended(told(LAST_WORD / 2, false)));
        assert!(ended(told(2 * LAST_WORD, true)));
    }
}
