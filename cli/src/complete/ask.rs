//! Requests for a completion: all of them together end in time, even if something hangs, and a
//! failed request has no answer.

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

/// Time limit of all requests of a completion together. A tenth of a second goes unnoticed; the
/// rest of it is needed for the start of the program and of the shell.
const PATIENCE: Duration = Duration::from_millis(80);

/// Overrides the limit, for example 500ms: for devnets on slow machines.
const VARIABLE: &str = "COWBOYCTL_COMPLETE_TIMEOUT";

/// The time when this process stops asking.
static END: OnceLock<Instant> = OnceLock::new();

/// The context of every request: the typed line, and the variables.
pub fn context() -> Context {
    let line = Line::typed();
    Context {
        ui: Ui::new(Format::Table, true, false),
        devnet: line.value("devnet").and_then(|name| name.parse().ok()),
        configured: Config::load().ok().and_then(|config| config.devnet()),
        node: None,
    }
}

/// The answer to a request that may block; empty if it takes too long.
///
/// The request runs on a separate thread, which is abandoned if it hangs, because a completion's
/// process ends right afterwards.
pub fn within<T: Default + Send + 'static>(
    question: impl FnOnce() -> Option<T> + Send + 'static,
) -> T {
    let end = *END.get_or_init(|| Instant::now() + patience());
    let (answer, answered) = mpsc::sync_channel(1);
    let asked = thread::Builder::new().spawn(move || {
        // An answer that comes too late has no receiver.
        let _late = answer.send(question());
    });
    let wait = || answered.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    asked.ok().and_then(|_| wait()).flatten().unwrap_or_default()
}

/// Information from the folder of the selected devnet, running or not.
pub fn folder<T: Default + Send + 'static>(
    question: impl FnOnce(&DevnetHome) -> Option<T> + Send + 'static,
) -> T {
    within(move || question(&context().existing(None).ok()?))
}

pub fn devnet<T: Default + Send + 'static>(
    question: impl AsyncFnOnce(Client) -> Result<T, ClientError> + Send + 'static,
) -> T {
    within(move || {
        let client = context().client().ok()?;
        runtime()?.block_on(question(client)).ok()
    })
}

pub fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()
}

fn patience() -> Duration {
    let set = env::var(VARIABLE).ok().and_then(|text| args::duration(&text).ok());
    set.unwrap_or(PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_an_answer_is_given_up() {
        // All of them have one limit.
        for _ in 0..2 {
            let (unanswered, answer) = mpsc::channel::<String>();
            assert_eq!(within(move || answer.recv().ok()), "");
            drop(unanswered);
        }
    }
}
