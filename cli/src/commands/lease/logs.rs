//! `lease logs`: prints a job's log.

use super::{
    complete,
    connect::ServerChoice,
    find,
    wait::{Patience, looks},
};
use crate::{
    args,
    context::Context,
    error::{CliError, Exit},
    output::Foreign,
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_host::duration::Plain;
use cowboy_lease::{
    client::{Client, LogPart},
    messages::{Job, LogQuery},
};
use std::time::Duration;
use tokio::time::timeout;

/// Maximum time that a request waits for more of a log, in seconds.
const WAIT_SECONDS: u64 = 20;

/// `lease logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// The job: an id, the beginning of one, or RUN/NAME
    #[arg(add = ArgValueCandidates::new(complete::jobs))]
    job: String,
    /// Continue until the job has ended, over all its attempts
    #[arg(long, short)]
    follow: bool,
    /// Only this attempt, from 1 [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// On a terminal, print the log unchanged [default: only its text and colours]
    #[arg(long)]
    raw: bool,
    /// Maximum time to continue
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "1h")]
    timeout: Duration,
    #[command(flatten)]
    server: ServerChoice,
}

#[derive(Debug)]
struct PrintedLog {
    attempt: u32,
    bytes: u64,
    to: Foreign,
}

impl PrintedLog {
    fn of(attempt: u32, raw: bool) -> Self {
        Self { attempt, bytes: 0, to: Foreign::new(raw) }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.to.print(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl Logs {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = self.server.client(cx)?;
        let id = find::job(&client, &self.job).await?;
        let mut printed = PrintedLog::of(0, self.raw);
        let work = async {
            match self.follow {
                true => self.follow(cx, &client, &id, &mut printed).await,
                false => self.print(cx, &client, &id, &mut printed).await,
            }
        };
        timeout(self.timeout, work).await.unwrap_or_else(|_| {
            let (PrintedLog { attempt, bytes, .. }, limit) = (&printed, Plain(self.timeout));
            Err(CliError::new(Exit::TimedOut, format!("the log of {id}: not within {limit}"))
                .detail(format!("last seen: {bytes} bytes of attempt {attempt}"))
                .hint("give it longer with --timeout"))
        })
    }

    async fn print(
        &self,
        cx: &Context,
        client: &Client,
        id: &str,
        printed: &mut PrintedLog,
    ) -> Result<(), CliError> {
        let job = client.job(id).await?;
        let Some(attempt) = self.wanted(&job)? else {
            cx.ui.note(&format!("{id} is {}: it has no log yet", job.summary.state));
            return Ok(());
        };
        printed.attempt = attempt;
        loop {
            let query = LogQuery { attempt: Some(attempt), offset: printed.bytes, wait_seconds: 0 };
            let part = client.log(id, &query).await?;
            printed.add(&part.bytes)?;
            if part.bytes.is_empty() || printed.bytes >= part.total {
                return Ok(());
            }
        }
    }

    /// Prints the existing log and what is added, until the job has ended.
    async fn follow(
        &self,
        cx: &Context,
        client: &Client,
        id: &str,
        printed: &mut PrintedLog,
    ) -> Result<(), CliError> {
        let first = client.job(id).await?;
        printed.attempt = self.attempt.unwrap_or_else(|| first.summary.attempt.max(1));
        loop {
            if !begun(client, id, printed.attempt).await? {
                return Ok(());
            }
            let (mut looks, mut patience) = (looks(), Patience::default());
            loop {
                let query = LogQuery {
                    attempt: Some(printed.attempt),
                    offset: printed.bytes,
                    wait_seconds: WAIT_SECONDS,
                };
                let Some(part) = patience.answer(client.log(id, &query).await)? else {
                    looks.tick().await;
                    continue;
                };
                let LogPart { bytes, total, ended } = part;
                printed.add(&bytes)?;
                if ended && printed.bytes >= total {
                    break;
                }
                if bytes.is_empty() {
                    // The server did not wait, because too many other requests do.
                    looks.tick().await;
                }
            }
            if self.attempt.is_some() {
                return Ok(());
            }
            *printed = PrintedLog::of(printed.attempt + 1, self.raw);
            if begun(client, id, printed.attempt).await? {
                cx.ui.note(&format!("attempt {}", printed.attempt));
            }
        }
    }

    fn wanted(&self, job: &Job) -> Result<Option<u32>, CliError> {
        let last = job.summary.attempt;
        match self.attempt {
            Some(attempt) if attempt > last => {
                let what = format!("{} has no attempt {attempt} yet", job.summary.job);
                Err(CliError::new(Exit::NotFound, what).detail(format!("its last is {last}")))
            }
            Some(attempt) => Ok(Some(attempt)),
            None => Ok(Some(last).filter(|last| *last > 0)),
        }
    }
}

/// Waits until an attempt has begun; false if the job ended before.
async fn begun(client: &Client, id: &str, attempt: u32) -> Result<bool, CliError> {
    let (mut looks, mut patience) = (looks(), Patience::default());
    loop {
        looks.tick().await;
        let Some(job) = patience.answer(client.job(id).await)? else { continue };
        if job.summary.attempt >= attempt {
            return Ok(true);
        }
        if job.summary.state.is_terminal() {
            return Ok(false);
        }
    }
}
