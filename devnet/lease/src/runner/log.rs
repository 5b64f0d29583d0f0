//! A job's log on its way: kept in a bounded buffer until the server has it.
//!
//! [`Log::push`] waits while the buffer is full, and so, in the end, does the writing process.
//! [`Log::deliver`] sends pieces. Acknowledged bytes stay in the buffer while there is room, so
//! that they can be sent again to a server that lost the end of the log.

use super::{
    api::Api,
    heartbeat::{CallError, Heartbeats},
};
use crate::messages::ErrorCode;
use std::{collections::VecDeque, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Longest piece that is sent, in bytes.
const SENT_PIECE: usize = 64 << 10;
/// How long a byte waits for others at most.
const DELAY: Duration = Duration::from_millis(200);
/// Size of the buffer, in bytes.
const CAPACITY: usize = 1 << 20;
/// How often the server may lose bytes that it had acknowledged.
const MAX_REWINDS: u32 = 8;

pub(super) struct Log(watch::Sender<Buffer>);

#[derive(Default)]
struct Buffer {
    /// Offset of `bytes` in the log.
    base: u64,
    bytes: VecDeque<u8>,
    acked: usize,
    /// When the first byte after `acked` was pushed.
    since: Option<Instant>,
    urgent: bool,
    rewinds: u32,
    lost: Option<Lost>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    Full,
    Refused(String),
}

impl Buffer {
    fn take(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(CAPACITY - (self.bytes.len() - self.acked));
        let excess = (self.bytes.len() + taken).saturating_sub(CAPACITY);
        self.bytes.drain(..excess);
        self.base += excess as u64;
        self.acked -= excess;
        self.bytes.extend(&bytes[..taken]);
        if taken > 0 {
            self.since.get_or_insert_with(Instant::now);
        }
        taken
    }

    fn waiting(&self) -> usize {
        self.bytes.len() - self.acked
    }

    /// The next piece and its offset in the log.
    fn piece(&self) -> (u64, Vec<u8>) {
        let piece = self.bytes.iter().skip(self.acked).take(SENT_PIECE).copied().collect();
        (self.base + self.acked as u64, piece)
    }

    fn acknowledge(&mut self, length: u64) {
        let before = self.acked;
        match length.checked_sub(self.base) {
            Some(acked) => self.acked = self.bytes.len().min(acked as usize),
            None => return self.lose(Lost::Refused("the server has lost a part of it".to_owned())),
        }
        if self.acked <= before && self.waiting() > 0 {
            self.rewinds += 1;
            if self.rewinds > MAX_REWINDS {
                return self.lose(Lost::Refused("the server does not keep it".to_owned()));
            }
        }
        self.since = (self.waiting() > 0).then(Instant::now);
    }

    fn lose(&mut self, lost: Lost) {
        self.base += self.acked as u64;
        self.bytes.clear();
        (self.acked, self.since) = (0, None);
        self.lost.get_or_insert(lost);
    }
}

impl Log {
    pub(super) fn new() -> Self {
        Self(watch::Sender::default())
    }

    /// Appends to the log, once there is room. If the log is lost, the bytes are dropped.
    pub(super) async fn push(&self, mut bytes: &[u8]) {
        let mut buffer = self.0.subscribe();
        while !bytes.is_empty() {
            let mut taken = 0;
            self.0.send_if_modified(|buffer| {
                taken = if buffer.lost.is_some() { bytes.len() } else { buffer.take(bytes) };
                taken > 0
            });
            bytes = &bytes[taken..];
            if !bytes.is_empty() {
                // It cannot fail, because this log holds the sender.
                let _ = buffer
                    .wait_for(|buffer| buffer.waiting() < CAPACITY || buffer.lost.is_some())
                    .await;
            }
        }
    }

    pub(super) async fn flush(&self) {
        self.0.send_modify(|buffer| buffer.urgent = true);
        let mut buffer = self.0.subscribe();
        // It cannot fail, because this log holds the sender.
        let _ = buffer.wait_for(|buffer| buffer.waiting() == 0).await;
        self.0.send_modify(|buffer| buffer.urgent = false);
    }

    pub(super) fn sent(&self) -> u64 {
        let buffer = self.0.borrow();
        buffer.base + buffer.acked as u64
    }

    pub(super) fn lost(&self) -> Option<Lost> {
        self.0.borrow().lost.clone()
    }

    /// Sends pushed bytes until the lease or the log is lost.
    pub(super) async fn deliver(&self, api: &Api, hold: &Heartbeats) {
        let mut buffer = self.0.subscribe();
        loop {
            let since = match buffer.wait_for(|buffer| buffer.since.is_some()).await {
                Ok(buffer) => buffer.since.expect("it was waited for"),
                Err(_) => return,
            };
            tokio::select! {
                _ = buffer.wait_for(|buffer| buffer.urgent || buffer.waiting() >= SENT_PIECE) => {}
                () = sleep_until(since + DELAY) => {}
            }
            let (offset, piece) = buffer.borrow_and_update().piece();
            let lease = hold.lease();
            let sent = hold.call(None, || api.put_log(lease, offset, &piece)).await;
            let kept = match sent {
                Ok(kept) => Ok(kept),
                // Sends nothing at offset 0: the answer has the server's length of the log.
                Err(CallError::Refused(error)) if error.code() == Some(ErrorCode::LogGap) => {
                    hold.call(None, || api.put_log(lease, 0, &[])).await
                }
                Err(error) => Err(error),
            };
            match kept {
                Ok(kept) => {
                    if kept.cancel_requested {
                        hold.cancel(kept.cancel_deadline_seconds);
                    }
                    self.0.send_modify(|buffer| buffer.acknowledge(kept.bytes));
                }
                Err(CallError::Lost) => return,
                Err(CallError::Refused(error)) => {
                    let lost = match error.code() {
                        Some(ErrorCode::LogFull) => Lost::Full,
                        _ => Lost::Refused(error.to_string()),
                    };
                    self.0.send_modify(|buffer| buffer.lose(lost));
                    return;
                }
            }
        }
    }
}
