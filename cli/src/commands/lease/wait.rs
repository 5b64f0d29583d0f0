//! Waits for runs and jobs to end, through restarts of the server.

use crate::{
    context::Deadline,
    error::{CliError, Exit},
    output::Ui,
};
use cowboy_lease::{
    client::{Client, ClientError},
    messages::{Job, JobState, Run},
};
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// How often to look whether something has changed, or whether an absent server is back.
const LOOK: Duration = Duration::from_millis(250);

/// Maximum time without an answer from a server: a restart takes less.
const AWAY: Duration = Duration::from_secs(30);

const NAMED: usize = 4;

/// Tolerates a server that restarts while it is polled.
#[derive(Debug, Default)]
pub struct Patience {
    away_since: Option<Instant>,
}

impl Patience {
    /// The server's answer; `None` if it is away and may come back.
    pub fn answer<T>(&mut self, answer: Result<T, ClientError>) -> Result<Option<T>, CliError> {
        match answer {
            Ok(answer) => {
                self.away_since = None;
                Ok(Some(answer))
            }
            Err(error) if error.is_transient() => {
                let since = *self.away_since.get_or_insert_with(Instant::now);
                if since.elapsed() < AWAY { Ok(None) } else { Err(error.into()) }
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The times at which to look.
pub fn looks() -> Interval {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

pub async fn for_run(
    ui: Ui,
    client: &Client,
    run: &str,
    deadline: Deadline,
) -> Result<Run, CliError> {
    let ask = async || client.run(run).await;
    let ended = |run: &Run| run.jobs.iter().all(|job| job.state.is_terminal());
    until(ui, run, deadline, ask, ended, standing).await
}

pub async fn for_job(
    ui: Ui,
    client: &Client,
    job: &str,
    deadline: Deadline,
) -> Result<Job, CliError> {
    let ask = async || client.job(job).await;
    let ended = |job: &Job| job.summary.state.is_terminal();
    until(ui, job, deadline, ask, ended, |job| job.summary.state.to_string()).await
}

async fn until<T>(
    ui: Ui,
    id: &str,
    deadline: Deadline,
    ask: impl AsyncFn() -> Result<T, ClientError>,
    ended: impl Fn(&T) -> bool,
    standing: impl Fn(&T) -> String,
) -> Result<T, CliError> {
    let waited = deadline.wait_for(ui, id, async |wait| {
        let (mut looks, mut patience) = (looks(), Patience::default());
        loop {
            looks.tick().await;
            match patience.answer(ask().await)? {
                Some(answer) if ended(&answer) => return Ok(answer),
                Some(answer) => wait.saw(standing(&answer)),
                None => wait.saw("the server does not answer"),
            }
        }
    });
    waited.await.map_err(|error| match error.exit {
        Exit::TimedOut => error.hint(format!(
            "give it longer with --timeout, or see: cowboyctl lease show {id}; it continues"
        )),
        _ => error,
    })
}

fn standing(run: &Run) -> String {
    use JobState::{CancelRequested, Leased, Queued, Running, Starting};

    let ended = run.jobs.iter().filter(|job| job.state.is_terminal()).count();
    let mut parts = vec![format!("{ended} of {} ended", run.jobs.len())];
    for state in [Running, Starting, Leased, CancelRequested, Queued] {
        let mut names: Vec<&str> =
            run.jobs.iter().filter(|job| job.state == state).map(|job| job.name.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("{state}: {}{more}", names.join(", ")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_lease::messages::JobSummary;

    #[test]
    fn a_wait_says_who_is_where() {
        let states = [
            JobState::Succeeded,
            JobState::Running,
            JobState::Queued,
            JobState::Queued,
            JobState::Queued,
            JobState::Queued,
            JobState::Queued,
        ];
        let job = |(at, state): (usize, JobState)| JobSummary {
            job: format!("job_{at}"),
            run: "run_1".to_owned(),
            name: format!("j{at}"),
            state,
            allow_failure: false,
            attempt: 0,
            runner: None,
            lease_state: None,
            expires_at: None,
        };
        let run = Run {
            run_id: "run_1".to_owned(),
            name: None,
            created_at: String::new(),
            concurrency: None,
            by_schedule: None,
            state: JobState::Running,
            jobs: states.into_iter().enumerate().map(job).collect(),
        };
        assert_eq!(standing(&run), "1 of 7 ended; RUNNING: j1; QUEUED: j2, j3, j4, j5 and 1 more");
    }
}
