//! A validator's service to its runners, from its chain and back to it.

#[cfg(test)]
mod tests;

use super::{gateway::Gateway, node, submitter::Submitter};
use crate::transport::Listen;
use commonware_macros::select;
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{
    chain::{Payload, State, transaction::SubmitResult},
    job::spec::{JobSpec, JobStatus},
    presence::view::Label,
    primitives::SecretKey,
};
use futures::future::OptionFuture;
use rand_core::CryptoRng;
use std::{collections::BTreeSet, time::Duration};
use tokio::sync::{broadcast::error::RecvError, mpsc};

/// How long after a block the runners are told of it, at most. Each of them answers with a signed
/// ping, and what the block assigns shall not wait behind those.
const TELL_AFTER: Duration = Duration::from_millis(10);
/// The part of the block time that it may be: pings are to be in before the next block's votes.
const TELL_AFTER_PART: u32 = 10;

/// What [`ValidatorConfig::gateway`](node::ValidatorConfig::gateway) asks for: `gateway` serves
/// what `listener` yields and follows the validator's chain, and what runners deliver (`results`)
/// is submitted in the name of `key`. `block_time` is the chain's pace.
pub fn serve<E, L>(
    gateway: Gateway,
    results: mpsc::Receiver<SubmitResult>,
    key: SecretKey,
    listener: L,
    block_time: Duration,
) -> node::Gateway<E>
where
    E: Clock + Spawner + CryptoRng,
    L: Listen,
{
    Box::new(move |context, services| {
        Box::pin(async move {
            let submitter = Submitter::new(key, services.clone());
            let clock = context.child("follow");
            let tell_after = TELL_AFTER.min(block_time / TELL_AFTER_PART);
            select! {
                () = gateway.serve(context, listener) => {},
                () = follow(&clock, tell_after, &gateway, services, submitter, results) => {},
            }
        })
    })
}

/// Follows the chain until it ends.
async fn follow(
    clock: &impl Clock,
    tell_after: Duration,
    gateway: &Gateway,
    services: node::Services,
    mut submitter: Submitter,
    mut results: mpsc::Receiver<SubmitResult>,
) {
    let mut blocks = services.ledger.subscribe();
    gateway.advance(services.ledger.head());
    let mut tell = None;
    loop {
        let due = OptionFuture::from(tell.map(|at| clock.sleep_until(at)));
        tokio::select! {
            biased;
            block = blocks.recv() => {
                if let Err(RecvError::Closed) = block {
                    return;
                }
                // Also where some were missed: the newest state says it all.
                let state = services.ledger.head();
                gateway.advance(state.clone());
                tell = tell.or_else(|| Some(clock.current() + tell_after));
                submitter.settle(&state);
                if gateway.has_withdrawals() {
                    gateway.needed(needs(&services, &state));
                }
            }
            Some(result) = results.recv() => submitter.take(result),
            Some(()) = due => {
                tell = None;
                gateway.tell();
            }
        }
    }
}

/// What jobs need that have no runner yet: those in the mempool, and those that the chain draws
/// again with each block.
fn needs(services: &node::Services, state: &State) -> BTreeSet<Label> {
    let pending = state.open_jobs().filter(|(_, job)| job.status == JobStatus::Pending);
    let mut labels: BTreeSet<_> = pending.flat_map(|(_, job)| labels_of(&job.spec)).collect();
    services.mempool.with(|pool| {
        for transaction in pool.iter() {
            if let Payload::SubmitJob(spec) = &transaction.transaction.payload {
                labels.extend(labels_of(spec));
            }
        }
    });
    labels
}

fn labels_of(spec: &JobSpec) -> impl Iterator<Item = Label> {
    let kind = Label::Capability(spec.work.kind().name().to_owned());
    let pool = spec.required_runner_pool.clone().map(Label::Entitlement);
    [kind].into_iter().chain(pool)
}
