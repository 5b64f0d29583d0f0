//! Tells the lease server of the timers that fire, for the runs that go by them.
//!
//! Every final block is looked at once, in order, in the store of whichever validator is furthest;
//! another one's is read where that one's cannot be. The lease server stores how far it got, and
//! after a restart says where to go on.

use crate::{
    api::{
        backend::{Backend, Running},
        executed::Executed,
    },
    lease::schedules::{Fire, Schedules},
};
use cowboy_engine::{chain::Status, primitives::Height};
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

/// Tells of the blocks from `next` on that are final.
async fn catch_up(backend: &Backend, schedules: &mut Schedules, next: &mut Option<Height>) {
    loop {
        let mut running = backend.running();
        let head = |running: &Running| running.ledger.head().height();
        running.sort_by_key(|running| Reverse(head(running)));
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
        // An error: a panic, which has been told. It is read again with the next block.
        match read.unwrap_or(Read::Broken) {
            Read::Fires(fires) => {
                schedules.block(height.get(), fires).await;
                *next = Some(height.next());
            }
            Read::Dropped(first) => {
                schedules.missed(first.get() - 1).await;
                *next = Some(first);
            }
            Read::Broken => return,
        }
    }
}

/// What the stores have of a block.
enum Read {
    /// The fires that succeeded, in order.
    Fires(Vec<Fire>),
    /// Nothing before this block, which is later.
    Dropped(Height),
    /// It cannot be read.
    Broken,
}

/// Reads the fires of a block from the first of these that has them.
fn read(running: &[Running], height: Height) -> Read {
    let (mut kept_from, mut broken) = (Vec::new(), false);
    for running in running {
        let store = running.ledger.store();
        let fires = store.fires(height);
        // Looked at last: it may have been dropped meanwhile.
        let first = store.kept_from();
        match fires {
            _ if height < first => kept_from.push(first),
            Ok(fires) => {
                let succeeded = (0..).zip(fires).filter(|(_, fire)| fire.status == Status::Success);
                let fires = succeeded.map(|(position, fire)| Fire {
                    height: height.get(),
                    position,
                    timer: fire.timer_id,
                    actor: fire.actor,
                    handler: fire.handler,
                });
                return Read::Fires(fires.collect());
            }
            Err(error) => {
                tracing::warn!(%height, %error, "fires of a block are not read for schedules");
                broken = true;
            }
        }
    }
    match kept_from.into_iter().min() {
        Some(first) if !broken => Read::Dropped(first),
        _ => Read::Broken,
    }
}
