//! Requests what the panes want from a devnet, at most once per block, and reconnects if the devnet
//! was away; or plays a recording instead.

use super::{
    lease::LeaseServer,
    log::{self, LogPiece},
    news::{Answer, Ask, News, Source},
    recording::Recorder,
};
use cowboy_devnet::{
    client::{Client, ClientError},
    home::DevnetHome,
    types::Head,
};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// Maximum number of news items queued for the picture.
pub const QUEUE: usize = 1_024;

const AT_ONCE: usize = 4;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The minimum pause between two identical requests, however fast blocks are made.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause between two attempts to reach the devnet.
const RETRY: Duration = Duration::from_millis(500);

/// Time without news after which to check that the devnet is still there.
const QUIET: Duration = Duration::from_secs(1);

const HISTORY: u64 = 120;

/// The destinations of news: the picture, and a recording if there is one.
#[derive(Debug)]
pub struct Outbox {
    pub sender: mpsc::Sender<(Timestamp, News)>,
    pub counters: Arc<Counters>,
    pub recorder: Option<Recorder>,
}

#[derive(Debug, Default)]
pub struct Counters {
    /// News that was dropped because the queue was full.
    pub dropped: AtomicU64,
    pub full: AtomicBool,
}

impl Outbox {
    /// Sends news; if the queue is full, counts it as dropped.
    fn send(&mut self, at: Timestamp, news: News) {
        if let Some(recorder) = &mut self.recorder
            && !recorder.write(at, &news)
        {
            self.counters.full.store(true, Ordering::Relaxed);
        }
        if self.sender.try_send((at, news)).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn now(&mut self, news: News) {
        self.send(Timestamp::now(), news);
    }
}

/// Follows a devnet until the receiver is gone.
pub async fn follow(
    home: DevnetHome,
    node: Option<String>,
    mut wants: watch::Receiver<Vec<Ask>>,
    mut outbox: Outbox,
) {
    let mut last = 0;
    let mut told = None;
    let mut said = None;
    loop {
        let reason = match link(&home, node.as_deref()).await {
            Ok((source, news, head)) => {
                told = None;
                if head < last {
                    last = 0;
                }
                outbox.now(news);
                let from = if last > 0 { last + 1 } else { head.saturating_sub(HISTORY) };
                match linked(&source, from, &mut last, &mut wants, &mut outbox).await {
                    Some(reason) => reason,
                    None => return,
                }
            }
            Err(error) => error.to_string(),
        };
        if told.as_ref() != Some(&reason) {
            outbox.now(News::Lost { reason: reason.clone() });
            told = Some(reason);
        }
        last_words(&home, &wants, &mut said, &mut outbox).await;
        if wants.has_changed().is_err() {
            return;
        }
        sleep(RETRY).await;
    }
}

/// The last lines in the log of a devnet that does not answer, which may tell why.
async fn last_words(
    home: &DevnetHome,
    wants: &watch::Receiver<Vec<Ask>>,
    said: &mut Option<LogPiece>,
    outbox: &mut Outbox,
) {
    let wanted = wants.borrow().iter().find(|ask| matches!(ask, Ask::Log(_))).cloned();
    let Some(ask @ Ask::Log(after)) = wanted else { return };
    if let Ok(piece) = log::read(home, after).await
        && said.as_ref() != Some(&piece)
    {
        *said = Some(piece.clone());
        outbox.now(News::Answer(ask, Box::new(Answer::Log(piece))));
    }
}

/// Connects to the devnet: the source of answers, the first news, and the head's height.
async fn link(home: &DevnetHome, node: Option<&str>) -> Result<(Source, News, u64), ClientError> {
    let client = Client::of_devnet(home)?.with_timeout(TIMEOUT).with_node(node.map(str::to_owned));
    let genesis = client.parameters().await?.genesis;
    let Head { height, .. } = client.head().await?;
    let devnet = home.name().to_string();
    let source = Source { home: home.clone(), client, lease_server: LeaseServer::default() };
    Ok((source, News::Linked { devnet, genesis, height }, height))
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Instant,
    /// The newest block when it was made.
    block: u64,
    running: bool,
}

/// Follows a connected devnet until it stops answering, and returns why; `None` if the receiver is
/// gone.
async fn linked(
    source: &Source,
    from: u64,
    last: &mut u64,
    wants: &mut watch::Receiver<Vec<Ask>>,
    outbox: &mut Outbox,
) -> Option<String> {
    let mut blocks = source.client.follow(Some(from));
    if let Err(error) = blocks.connect().await {
        return Some(error.to_string());
    }
    let mut asked: BTreeMap<Ask, Asked> = BTreeMap::new();
    let mut running: JoinSet<(Ask, Result<Answer, ClientError>)> = JoinSet::new();
    let mut heard = Instant::now();
    loop {
        let due = start(source, &wants.borrow_and_update(), *last, &mut asked, &mut running);
        tokio::select! {
            block = blocks.next() => match block {
                Ok(block) => {
                    heard = Instant::now();
                    *last = block.height;
                    outbox.now(News::Block(block));
                }
                Err(error) => return Some(error.to_string()),
            },
            Some(done) = running.join_next() => {
                let Ok((ask, answer)) = done else { continue };
                if let Some(asked) = asked.get_mut(&ask) {
                    asked.running = false;
                }
                if !wants.borrow().contains(&ask) {
                    asked.remove(&ask);
                }
                match answer {
                    Ok(answer) => outbox.now(News::Answer(ask, Box::new(answer))),
                    Err(error @ ClientError::Unreachable { .. }) => return Some(error.to_string()),
                    Err(error) => outbox.now(News::Refused(ask, error.to_string())),
                }
            }
            changed = wants.changed() => {
                if changed.is_err() {
                    return None;
                }
                let wanted = wants.borrow();
                // Forget questions that are no longer wanted, so that they are asked at once when
                // wanted again.
                asked.retain(|ask, asked| asked.running || wanted.contains(ask));
            }
            () = sleep_until(due.unwrap_or(heard + QUIET)), if due.is_some() => {}
            () = sleep_until(heard + QUIET) => {
                heard = Instant::now();
                // Any answer, even an error, means that it is there.
                if let Err(error) = source.client.head().await
                    && is_away(&error)
                {
                    return Some(error.to_string());
                }
            }
        }
    }
}

const fn is_away(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { .. } | ClientError::Timeout { .. })
}

/// Starts the requests that are due, up to `AT_ONCE`: wanted questions that were not asked since
/// the newest block. Returns when the next request is due that waits only for its pause.
fn start(
    source: &Source,
    wants: &[Ask],
    block: u64,
    asked: &mut BTreeMap<Ask, Asked>,
    running: &mut JoinSet<(Ask, Result<Answer, ClientError>)>,
) -> Option<Instant> {
    let now = Instant::now();
    let mut next: Option<Instant> = None;
    for ask in wants {
        if running.len() == AT_ONCE {
            break;
        }
        match asked.get(ask) {
            Some(asked) if asked.running || asked.block == block && !ask.is_apart() => continue,
            Some(asked) if now < asked.at + PAUSE => {
                let due = asked.at + PAUSE;
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            _ => {}
        }
        asked.insert(ask.clone(), Asked { at: now, block, running: true });
        let (source, ask) = (source.clone(), ask.clone());
        running.spawn(async move {
            let answer = source.ask(&ask).await;
            (ask, answer)
        });
    }
    next
}

/// Plays a recording at its original pace, then waits until the receiver is gone. A wanted question
/// is answered with any answer in the recording.
pub async fn play(
    news: Vec<(Timestamp, News)>,
    mut wants: watch::Receiver<Vec<Ask>>,
    mut outbox: Outbox,
) {
    let mut answers: BTreeMap<Ask, Answer> = BTreeMap::new();
    for (_, news) in &news {
        if let News::Answer(ask, answer) = news {
            answers.insert(ask.clone(), (**answer).clone());
        }
    }
    let started = Instant::now();
    let first = news.first().map_or(Timestamp::UNIX_EPOCH, |(at, _)| *at);
    let mut news = news.into_iter().peekable();
    let mut before: Vec<Ask> = Vec::new();
    let mut now = first;
    loop {
        let due = news.peek().map(|(at, _)| {
            started + Duration::try_from(at.duration_since(first)).unwrap_or_default()
        });
        tokio::select! {
            changed = wants.changed() => {
                if changed.is_err() {
                    return;
                }
                let wanted = wants.borrow_and_update().clone();
                for ask in wanted.iter().filter(|ask| !before.contains(ask)) {
                    let news = match answers.get(ask) {
                        Some(answer) => News::Answer(ask.clone(), Box::new(answer.clone())),
                        None => News::Refused(ask.clone(), "not in the recording".to_owned()),
                    };
                    outbox.send(now, news);
                }
                before = wanted;
            }
            () = sleep_until(due.unwrap_or(started)), if due.is_some() => {
                if let Some((at, news)) = news.next() {
                    now = at;
                    outbox.send(at, news);
                }
            }
        }
    }
}
