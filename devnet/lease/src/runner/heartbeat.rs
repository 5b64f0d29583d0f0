//! A lease from its holder's view: how long it is valid, and why its job has to stop.
//!
//! * Upon the answer to a heartbeat: the lease is valid for its duration, counted from before the
//!   heartbeat was sent.
//! * Upon no answer to a heartbeat for that duration, or an answer that the lease is stale or that
//!   the runner's token is not valid: the lease is lost at once, and nothing more is sent for it.
//! * Upon a cancel request, the end of the job's time, or the end of the runner: the job has to
//!   stop, and has a deadline for its last messages.
//!
//! A cancel request arrives by the first of three ways: a separate request that waits for it at the
//! server ([`Heartbeats::keep`]), and the answers to log pieces and to heartbeats.

use super::{SOON, Stop, api::Api};
use crate::{
    client::{ClientError, REQUEST_TIMEOUT},
    messages::{
        AwaitCancel, AwaitCancelTag, ErrorCode, Heartbeat, HeartbeatTag, LeaseGranted, LogCursor,
        MAX_WAIT_SECONDS, Progress, StaleReason,
    },
};
use cowboy_engine::session::backoff;
use jiff::Timestamp;
use std::{fmt, time::Duration};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep, sleep_until, timeout_at},
};

/// Time for a job's last output when its runner ends.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Deadline of a cancel for which the server did not set one.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);
/// Longest part of a cancel's deadline that is reserved for reporting its end.
const MAX_RESERVE: Duration = Duration::from_secs(2);
/// Number of retries after which the pause no longer grows: about six seconds.
const MAX_BACKOFF: u32 = 6;
const LEAST_LIMIT: Duration = Duration::from_millis(500);

pub(super) struct Heartbeats {
    lease: String,
    runner: String,
    interval: Duration,
    /// How long after the job's time its end may be reported.
    grace: Duration,
    state: watch::Sender<HeartbeatState>,
    /// Held for each heartbeat and each final message, so that neither overtakes the other.
    wire: Mutex<()>,
}

#[derive(Clone)]
struct HeartbeatState {
    until: Instant,
    halt: Option<(Halt, Instant)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Halt {
    Lost(Loss),
    Canceled {
        /// When the server considers the job canceled without the runner's report.
        by: Instant,
    },
    TimedOut {
        /// Until when the server accepts the job's end.
        by: Instant,
    },
    Stopped,
}

/// The reason why a lease is no longer valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    Stale(StaleReason),
    Expired,
    Refused(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(reason) => write!(f, "{reason}"),
            Self::Expired => f.write_str("no heartbeat came through"),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

#[derive(Debug)]
pub(super) enum CallError {
    Lost,
    Refused(ClientError),
}

#[derive(Debug)]
pub(super) enum Said {
    Accepted,
    /// A cancel was requested, which must be acknowledged instead.
    Canceled(Halt),
    Lost(Loss),
    Refused(ClientError),
}

/// Pauses between attempts, each longer than the last.
#[derive(Default)]
pub(super) struct Pauses(u32);

impl Pauses {
    pub(super) fn next(&mut self) -> Duration {
        let pause = backoff::delay_ms(self.0.min(MAX_BACKOFF), rand::random());
        self.0 = self.0.saturating_add(1);
        Duration::from_millis(pause)
    }
}

/// The result of `work`, unless `stop` comes first.
pub(super) fn unless<S, T>(
    stop: impl Future<Output = S>,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, S>> {
    // Some are large, and would have a place here and in the caller.
    let work = Box::pin(work);
    async {
        tokio::select! {
            biased;
            stop = stop => Err(stop),
            done = work => Ok(done),
        }
    }
}

impl Heartbeats {
    pub(super) fn new(granted: &LeaseGranted, runner: &str, at: Instant) -> Self {
        let until = at + Duration::from_secs(granted.lease_ttl_seconds);
        Self {
            lease: granted.lease_id.clone(),
            runner: runner.to_owned(),
            interval: Duration::from_secs(granted.heartbeat_interval_seconds.max(1)),
            grace: Duration::from_secs(granted.grace_seconds),
            state: watch::Sender::new(HeartbeatState { until, halt: None }),
            wire: Mutex::new(()),
        }
    }

    /// A secret.
    pub(super) fn lease(&self) -> &str {
        &self.lease
    }

    /// Makes the job stop. The first reason counts, unless the lease is lost.
    fn halt(&self, halt: Halt) {
        self.state.send_if_modified(|state| {
            let counts = match (&state.halt, &halt) {
                (None, _) => true,
                (Some((Halt::Lost(_), _)), _) => false,
                (Some(_), halt) => matches!(halt, Halt::Lost(_)),
            };
            if counts {
                state.halt = Some((halt, Instant::now()));
            }
            counts
        });
    }

    /// Makes the job stop, because a cancel was requested; the deadline is `seconds` from now.
    pub(super) fn cancel(&self, seconds: u64) {
        self.halt(Halt::Canceled { by: Instant::now() + Duration::from_secs(seconds) });
    }

    pub(super) fn is_halted(&self) -> Option<Halt> {
        self.state.borrow().halt.as_ref().map(|(halt, _)| halt.clone())
    }

    pub(super) async fn halted(&self) -> Halt {
        self.when(|halt| Some(halt.clone())).await
    }

    pub(super) async fn lost(&self) -> Loss {
        let lost = |halt: &Halt| match halt {
            Halt::Lost(loss) => Some(loss.clone()),
            _ => None,
        };
        self.when(lost).await
    }

    async fn when<T>(&self, found: impl Fn(&Halt) -> Option<T>) -> T {
        let find = |state: &HeartbeatState| state.halt.as_ref().and_then(|(halt, _)| found(halt));
        let mut states = self.state.subscribe();
        loop {
            let now = find(&states.borrow_and_update());
            match now {
                Some(value) => return value,
                None => states.changed().await.expect("the sender is this lease's own"),
            }
        }
    }

    /// Waits until a job that has to stop must abandon its remaining work.
    pub(super) async fn cutoff(&self) {
        let halt = self.halted().await;
        let since = self.state.borrow().halt.as_ref().map_or_else(Instant::now, |(_, at)| *at);
        let last = match halt {
            Halt::Lost(_) => return,
            Halt::Canceled { by } | Halt::TimedOut { by } => {
                by - (by.saturating_duration_since(since) / 8).min(MAX_RESERVE)
            }
            Halt::Stopped => since + LAST_WORDS,
        };
        let _ = unless(self.lost(), sleep_until(last)).await;
    }

    /// Repeats a request until there is an answer, while the lease is valid and until `until`.
    pub(super) async fn call<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        until: Option<Instant>,
        request: impl Fn() -> F,
    ) -> Result<T, CallError> {
        let mut pauses = Pauses::default();
        loop {
            let error = match unless(self.lost(), request()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => return Err(CallError::Lost),
            };
            if self.loses(&error) {
                return Err(CallError::Lost);
            }
            if !error.is_transient() || until.is_some_and(|until| until <= Instant::now()) {
                return Err(CallError::Refused(error));
            }
            tracing::debug!(%error, "asked again");
            let paused = unless(self.lost(), sleep(pauses.next())).await;
            paused.map_err(|_| CallError::Lost)?;
        }
    }

    /// Sends the final message about the job until the server accepts it. `done` is the reason for
    /// which a lease is stale after that message.
    pub(super) async fn last_word<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        done: StaleReason,
        request: impl Fn() -> F,
    ) -> Said {
        let mut pauses = Pauses::default();
        let lost = |loss| match loss {
            // Only this runner can have sent it: the answer got lost.
            Loss::Stale(reason) if reason == done => Said::Accepted,
            loss => Said::Lost(loss),
        };
        loop {
            let attempt = async {
                let _wire = self.wire.lock().await;
                request().await
            };
            match unless(self.lost(), attempt).await {
                Err(loss) => return lost(loss),
                Ok(Ok(_)) => return Said::Accepted,
                Ok(Err(error)) if error.code() == Some(ErrorCode::CancelRequested) => {
                    let halt = Halt::Canceled { by: Instant::now() + CANCEL_DEADLINE };
                    self.halt(halt.clone());
                    return Said::Canceled(halt);
                }
                Ok(Err(error)) if self.loses(&error) => return lost(self.lost().await),
                Ok(Err(error)) if !error.is_transient() => return Said::Refused(error),
                Ok(Err(error)) => tracing::debug!(%error, "said again"),
            }
            if let Err(loss) = unless(self.lost(), sleep(pauses.next())).await {
                return lost(loss);
            }
        }
    }

    fn loses(&self, error: &ClientError) -> bool {
        let loss = match error {
            ClientError::Stale(reason) => Loss::Stale(*reason),
            error if is_unknown(error) => Loss::Refused(error.to_string()),
            _ => return false,
        };
        self.halt(Halt::Lost(loss));
        true
    }

    /// Keeps the lease for as long as possible, and makes the job stop at `end` or upon `stop`.
    /// Never returns.
    pub(super) async fn keep(
        &self,
        api: &Api,
        told: impl Fn() -> (Progress, LogCursor),
        end: Instant,
        stop: Stop,
    ) {
        tokio::join!(
            self.beat(api, told),
            self.watch(api),
            self.expire(),
            async {
                sleep_until(end).await;
                self.halt(Halt::TimedOut { by: end + self.grace });
            },
            async {
                stop.requested().await;
                self.halt(Halt::Stopped);
            }
        );
    }

    /// Waits at the server for a cancel request until the job has to stop. A server without this
    /// wait reports it in answers to heartbeats.
    async fn watch(&self, api: &Api) {
        let message = AwaitCancel {
            tag: AwaitCancelTag::default(),
            lease_id: self.lease.clone(),
            runner_id: self.runner.clone(),
            wait_seconds: MAX_WAIT_SECONDS,
        };
        let mut pauses = Pauses::default();
        loop {
            let asked = Instant::now();
            let answer = unless(self.halted(), api.await_cancel(&message)).await;
            let Ok(answer) = answer else { return };
            match answer {
                Ok(Some(requested)) => return self.cancel(requested.deadline_seconds),
                Ok(None) if asked.elapsed() >= SOON => {
                    pauses = Pauses::default();
                    continue;
                }
                Ok(None) => {}
                Err(error) if self.loses(&error) || !error.is_transient() => return,
                Err(error) => tracing::debug!(%error, "no answer to a wait for a cancel"),
            }
            if unless(self.halted(), sleep(pauses.next())).await.is_err() {
                return;
            }
        }
    }

    /// Sends heartbeats at the interval, starting at once, until the lease is lost.
    async fn beat(&self, api: &Api, told: impl Fn() -> (Progress, LogCursor)) {
        let (mut next, mut pauses) = (Instant::now(), Pauses::default());
        loop {
            if unless(self.lost(), sleep_until(next)).await.is_err() {
                return;
            }
            let attempt = async {
                let _wire = self.wire.lock().await;
                let until = self.state.borrow().until;
                let sent = Instant::now();
                let limit = (until - sent) / 3;
                let limit = limit.clamp(LEAST_LIMIT, REQUEST_TIMEOUT);
                let (progress, cursor) = told();
                let heartbeat = Heartbeat {
                    tag: HeartbeatTag::default(),
                    lease_id: self.lease.clone(),
                    runner_id: self.runner.clone(),
                    progress: Some(progress),
                    log_cursor: Some(cursor),
                    ts: Some(Timestamp::now().to_string()),
                };
                (sent, timeout_at(until, api.heartbeat(&heartbeat, limit)).await)
            };
            let Ok((sent, answer)) = unless(self.lost(), attempt).await else { return };
            next = match answer {
                Ok(Ok(ack)) if ack.extend_lease => {
                    pauses = Pauses::default();
                    let ttl = Duration::from_secs(ack.new_lease_ttl_seconds);
                    self.state.send_modify(|state| state.until = sent + ttl);
                    if ack.cancel_requested {
                        let left = Duration::from_secs(ack.cancel_deadline_seconds);
                        self.halt(Halt::Canceled { by: sent + left });
                    }
                    if let Some(left) = ack.grace_left_seconds {
                        self.halt(Halt::TimedOut { by: sent + Duration::from_secs(left) });
                    }
                    sent + self.interval
                }
                Ok(Ok(_)) => return self.halt(Halt::Lost(Loss::Stale(StaleReason::LeaseExpired))),
                Ok(Err(error)) if self.loses(&error) => return,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "no answer to a heartbeat");
                    Instant::now() + pauses.next().min(self.interval)
                }
                // Timed out: `expire` handles it.
                Err(_) => sent + self.interval,
            };
        }
    }

    pub(super) async fn expire(&self) {
        let mut states = self.state.subscribe();
        loop {
            let until = states.borrow_and_update().until;
            tokio::select! {
                changed = states.changed() => changed.expect("the sender is this lease's own"),
                () = sleep_until(until) => return self.halt(Halt::Lost(Loss::Expired)),
            }
        }
    }
}

/// Whether the server does not know the runner, or takes it for another one.
pub(super) fn is_unknown(error: &ClientError) -> bool {
    matches!(error.code(), Some(ErrorCode::Unauthorized | ErrorCode::WrongRunner))
}
