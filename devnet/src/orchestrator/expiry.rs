//! Heals faults when their time is up.

use crate::api::{backend::Backend, faults};
use ::tokio::time::sleep;
use std::{sync::Arc, time::SystemTime};

/// Heals each fault when it is due. Never resolves.
pub(super) async fn watch(backend: Arc<Backend>) {
    let mut changes = backend.faults().changes();
    loop {
        changes.mark_unchanged();
        let now = SystemTime::now();
        let (due, next) = backend.faults().due(now);
        for id in due {
            if let Err(error) = faults::heal(&backend, id).await {
                tracing::warn!(fault = id, %error, "not healed in time; the fault stays");
                backend.faults().keep(id);
            }
        }
        let timer = async {
            match next {
                Some(at) => sleep(at.duration_since(now).unwrap_or_default()).await,
                None => std::future::pending().await,
            }
        };
        ::tokio::select! {
            () = timer => {}
            // The table lives as long as the devnet.
            _ = changes.changed() => {}
        }
    }
}
