//! Reports fired timers to the lease server, for the runs that they schedule.
//!
//! Every final block is read once, in order, from the store of the validator with the highest head,
//! or from another one if that fails. The lease server stores its position and resumes from it
//! after a restart.

use crate::api::{
    backend::{Backend, Running},
    executed::Executed,
};
use cowboy_engine::{chain::ReceiptStatus, primitives::Height};
use cowboy_lease::{fire::Fire, schedules::Schedules};
use std::{cmp::Reverse, sync::Arc};
use tokio::task::spawn_blocking;

/// Follows the chain. Never resolves.
pub(super) async fn follow(backend: Arc<Backend>, mut schedules: Schedules) {
    let (mut executed, mut next) = (Executed::new(backend.clone(), None), None);
    loop {
        catch_up(&backend, &mut schedules, &mut next).await;
        executed.next().await;
    }
}

/// Reports the final blocks from `next` on.
async fn catch_up(backend: &Backend, schedules: &mut Schedules, next: &mut Option<Height>) {
    loop {
        let mut running = backend.running();
        let head = |running: &Running| running.ledger.head().height();
        furthest_first(&mut running, head);
        let Some(furthest) = running.first().map(head) else { return };
        let height = match *next {
            Some(next) => next,
            None => *next.insert(Height::new(schedules.begin(furthest.get()).await)),
        };
        schedules.reached(furthest.get());
        running.retain(|running| head(running) >= height);
        if running.is_empty() {
            return;
        }
        let read = spawn_blocking(move || read(&running, height)).await;
        // A panic, which is reported already. The block is read again after the next one.
        match read.unwrap_or(ReadFires::Broken) {
            ReadFires::Fires(fires) => {
                schedules.block(height.get(), fires).await;
                *next = Some(height.next());
            }
            ReadFires::Dropped(first) => {
                schedules.missed(first.get() - 1).await;
                *next = Some(first);
            }
            ReadFires::Broken => return,
        }
    }
}

/// Sorts by heights, which may grow meanwhile: each is read once.
fn furthest_first<T>(all: &mut [T], height: impl Fn(&T) -> Height) {
    all.sort_by_cached_key(|one| Reverse(height(one)));
}

enum ReadFires {
    /// The successful fires, in order.
    Fires(Vec<Fire>),
    /// All stores have dropped the block; the first one kept is this later one.
    Dropped(Height),
    Broken,
}

/// Reads a block's fires from the first store that has them.
fn read(running: &[Running], height: Height) -> ReadFires {
    let (mut kept_from, mut broken) = (Vec::new(), false);
    for running in running {
        let store = running.ledger.store();
        let fires = store.fires(height);
        // Read after the fires, because the block may be dropped in between.
        let first = store.kept_from();
        match fires {
            _ if height < first => kept_from.push(first),
            Ok(fires) => {
                let succeeded =
                    (0..).zip(fires).filter(|(_, fire)| fire.status == ReceiptStatus::Success);
                let fires = succeeded.map(|(position, fire)| Fire {
                    height: height.get(),
                    position,
                    timer: fire.timer_id,
                    actor: fire.actor,
                    handler: fire.handler,
                });
                return ReadFires::Fires(fires.collect());
            }
            Err(error) => {
                tracing::warn!(%height, %error, "a block's fires cannot be read for schedules");
                broken = true;
            }
        }
    }
    match kept_from.into_iter().min() {
        Some(first) if !broken => ReadFires::Dropped(first),
        _ => ReadFires::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn heights_that_grow_while_they_are_compared_are_sorted() {
        // Sorting more than twenty notices an order that contradicts itself, and panics.
        let (mut all, reads) = ((0..64_u64).collect::<Vec<_>>(), Cell::new(0));
        furthest_first(&mut all, |one| {
            reads.set(reads.get() + 1);
            Height::new(one.wrapping_mul(reads.get()) % 7)
        });
        assert_eq!(reads.get(), 64);
    }
}
