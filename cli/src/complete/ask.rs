//! Questions for the sake of a completion: all of them together end in time, whatever hangs, and
//! what fails has no answer.

use super::line::Line;
use crate::{
    args,
    config::Config,
    context::Context,
    output::{Format, Ui},
};
use cowboy_devnet::{
    client::{Client, ClientError},
    orchestrator::home::DevnetHome,
};
use std::{
    env,
    sync::{OnceLock, mpsc},
    thread,
    time::{Duration, Instant},
};

/// How long all questions of a completion take together at most. A tenth of a second goes by
/// unnoticed; the rest of it is the program's start and the shell's.
const PATIENCE: Duration = Duration::from_millis(80);

/// Says otherwise, as 500ms: for devnets on slow machines.
const VARIABLE: &str = "COWBOYCTL_COMPLETE_TIMEOUT";

/// When this process stops asking.
static END: OnceLock<Instant> = OnceLock::new();

/// What every question starts from: the line that is typed, and the variables.
pub fn context() -> Context {
    let line = Line::typed();
    Context {
        ui: Ui::new(Format::Table, true, false),
        devnet: line.value("devnet").and_then(|name| name.parse().ok()),
        configured: Config::load().ok().and_then(|config| config.devnet()),
        node: None,
    }
}

/// The answer to a question that may block; nothing where it takes too long.
///
/// It is asked in a thread of its own, which is left behind where it hangs: a completion's process
/// ends right after.
pub fn within<T: Default + Send + 'static>(
    question: impl FnOnce() -> Option<T> + Send + 'static,
) -> T {
    let end = *END.get_or_init(|| Instant::now() + patience());
    let (answer, answered) = mpsc::sync_channel(1);
    let asked = thread::Builder::new().spawn(move || {
        // Nobody waits for an answer that comes too late.
        let _late = answer.send(question());
    });
    let wait = || answered.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    asked.ok().and_then(|_| wait()).flatten().unwrap_or_default()
}

/// What the folder of the devnet that is meant tells, whether it runs or not.
pub fn folder<T: Default + Send + 'static>(
    question: impl FnOnce(&DevnetHome) -> Option<T> + Send + 'static,
) -> T {
    within(move || question(&context().existing(None).ok()?))
}

/// What the devnet that is meant answers.
pub fn devnet<T: Default + Send + 'static>(
    question: impl AsyncFnOnce(Client) -> Result<T, ClientError> + Send + 'static,
) -> T {
    within(move || {
        let client = context().client().ok()?;
        runtime()?.block_on(question(client)).ok()
    })
}

/// What a question over the network runs on.
pub fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()
}

fn patience() -> Duration {
    let set = env::var(VARIABLE).ok().and_then(|text| args::duration(&text).ok());
    set.unwrap_or(PATIENCE)
}
