//! The end of the process that started this one.

use rustix::process::getppid;
use std::time::Duration;
use tokio::time::interval;

/// How often to look: no system tells a process of it without an unsafe call.
const LOOK: Duration = Duration::from_millis(100);

/// Resolves when the process that started this one has ended, however it does. Never resolves for
/// a process of the system's first process.
pub async fn parent_ends() {
    let Some(parent) = getppid().filter(|parent| !parent.is_init()) else {
        return std::future::pending().await;
    };
    let mut looks = interval(LOOK);
    // Then it has another one.
    while getppid() == Some(parent) {
        looks.tick().await;
    }
}
