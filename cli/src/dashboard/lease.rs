//! Answers of a devnet's lease server: its status, its runs and jobs, and a job with the end of its
//! log. They never contain a lease's id.

use cowboy_devnet::{
    client::ClientError,
    home::{DevnetHome, DevnetState},
    types::{ErrorCode, ErrorDetail},
};
use cowboy_lease::{
    client::{self as server, Client, Tls},
    messages::{Job, JobQuery, JobSummary, LogQuery, PageQuery, RunSummary, Status},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum number of runs, and of jobs, to request.
const LIMIT: usize = 200;

/// Maximum bytes of a log's end: more than the tallest terminal shows.
const TAIL: u64 = 16 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leases {
    pub status: Status,
    /// Newest first.
    pub runs: Vec<RunSummary>,
    /// Newest first.
    pub jobs: Vec<JobSummary>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseJob {
    pub job: Job,
    /// The end of the log, without control characters.
    pub log: String,
    /// Bytes of the log before `log`.
    pub skipped: u64,
}

/// The lease server of a devnet, with the client that was used last. Clones share it.
#[derive(Clone, Default)]
pub struct LeaseServer(Arc<Mutex<Option<Known>>>);

struct Known {
    url: String,
    token: String,
    client: Client,
}

impl LeaseServer {
    pub async fn leases(&self, home: &DevnetHome) -> Result<Leases, ClientError> {
        let client = self.client(home)?;
        let of_jobs = JobQuery { limit: Some(LIMIT), ..JobQuery::default() };
        let of_runs = PageQuery { limit: Some(LIMIT) };
        Ok(Leases {
            status: client.status().await.map_err(told)?,
            runs: client.runs(&of_runs).await.map_err(told)?,
            jobs: client.jobs(&of_jobs).await.map_err(told)?,
        })
    }

    pub async fn job(&self, home: &DevnetHome, id: &str) -> Result<LeaseJob, ClientError> {
        let client = self.client(home)?;
        let job = client.job(id).await.map_err(told)?;
        let Some(last) = job.attempts.last() else {
            return Ok(LeaseJob { job, log: String::new(), skipped: 0 });
        };
        let skipped = last.log_bytes.saturating_sub(TAIL);
        let query = LogQuery { attempt: Some(last.attempt), offset: skipped, wait_seconds: 0 };
        let part = client.log(id, &query).await.map_err(told)?;
        let end = &part.bytes[..part.bytes.len().min(2 * TAIL as usize)];
        Ok(LeaseJob { log: printable(&String::from_utf8_lossy(end)), job, skipped })
    }

    /// A client of the devnet's lease server, as its operator; the last one if its address and
    /// token are unchanged.
    fn client(&self, home: &DevnetHome) -> Result<Client, ClientError> {
        let DevnetState::Running(record) = home.state()? else {
            return Err(ClientError::NotRunning(home.name().clone()));
        };
        let Some(url) = record.lease_url else {
            let message = format!("devnet `{}` has no lease server", home.name());
            return Err(refusal(ErrorCode::NotFound, message));
        };
        let token = home.token()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.url == url && known.token == token)
        {
            return Ok(known.client.clone());
        }
        let client = Client::new(&url, &token, &Tls::default()).map_err(told)?;
        *known = Some(Known { url, token, client: client.clone() });
        Ok(client)
    }
}

impl fmt::Debug for LeaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseServer").finish_non_exhaustive()
    }
}

/// Maps the lease server's error to a refusal, because the devnet itself may be well.
fn told(error: server::ClientError) -> ClientError {
    refusal(ErrorCode::Unavailable, format!("lease server: {error}"))
}

fn refusal(code: ErrorCode, message: String) -> ClientError {
    ClientError::Refused(ErrorDetail { code, name: None, message, hint: None })
}

/// Lines without control characters. A line overwritten with carriage returns shows its last part.
fn printable(text: &str) -> String {
    let line = |line: &str| -> String {
        let line = line.trim_end_matches('\r');
        let last = line.rsplit('\r').next().unwrap_or_default();
        anstream::adapter::strip_str(last)
            .to_string()
            .replace('\t', "    ")
            .replace(char::is_control, "\u{fffd}")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_moves_no_cursor() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected);
        check("one\ntwo\n", "one\ntwo");
        check("\u{1b}[31mred\u{1b}[0m\r\n", "red");
        check("10 %\r20 %\r30 %\n", "30 %");
        check("a\tb\u{7}\u{85}c", "a    b\u{fffd}c");
        check("", "");
    }
}
