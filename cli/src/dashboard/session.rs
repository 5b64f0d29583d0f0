//! The loop that connects the devnet's news, the terminal and the pure parts.

use super::{
    command::{self, Running, Surroundings},
    feed::{self, Counters, Outbox},
    look::{Look, Theme},
    news::News,
    output::Heard,
    palette::{Completion, Offer},
    recording::{self, Recorder},
    screen::{self, Screen},
    state::{Effect, Event, State},
    update::update,
    view,
};
use crate::error::CliError;
use cowboy_devnet::home::DevnetHome;
use jiff::{SignedDuration, Timestamp};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};

/// The minimum pause between two pictures, except for those that a key causes.
const FRAME: Duration = Duration::from_millis(50);

/// How often ages in the picture are updated.
const TICK: Duration = Duration::from_secs(1);

const STOPPING: Duration = Duration::from_millis(300);

/// Maximum number of news items to process before the next check for keys.
const BATCH: usize = 64;

#[derive(Debug)]
pub enum Origin {
    /// A devnet, whose `node` answers requests.
    Devnet {
        home: DevnetHome,
        node: Option<String>,
    },
    Recording(PathBuf),
}

#[derive(Debug)]
pub struct Options {
    pub origin: Origin,
    pub record: Option<PathBuf>,
    pub theme: Theme,
    pub commands: Vec<Completion>,
}

/// Signals that end the dashboard, and the one that continues it.
struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
    resume: Signal,
}

impl Signals {
    fn new() -> Result<Self, CliError> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            resume: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    /// Waits for one; returns whether it ends the dashboard.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.hang_up.recv() => true,
            _ = self.interrupt.recv() => true,
            _ = self.resume.recv() => false,
        }
    }
}

/// Shows the dashboard until the user quits or a signal ends it.
pub fn run(options: Options) -> Result<(), CliError> {
    screen::check()?;
    // Answers are read on other threads than the keys.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("no runtime: {error}")))?;
    let outcome = runtime.block_on(show(options));
    // Pending requests are no longer needed.
    runtime.shutdown_background();
    outcome
}

async fn show(options: Options) -> Result<(), CliError> {
    let Options { origin, record, theme, commands } = options;
    let recorder = record.as_deref().map(Recorder::create).transpose()?;
    let recording = recorder.is_some();
    let counters = Arc::new(Counters::default());
    let (sender, mut news) = mpsc::channel(feed::QUEUE);
    let (want, wants) = watch::channel(Vec::new());
    let outbox = Outbox { sender, counters: Arc::clone(&counters), recorder };
    let (name, surroundings, offset, replay, feed) = match origin {
        Origin::Devnet { home, node } => {
            let name = home.name().to_string();
            let surroundings = Surroundings { devnet: Some(name.clone()), node: node.clone() };
            let feed = tokio::spawn(feed::follow(home, node, wants, outbox));
            (name, surroundings, SignedDuration::ZERO, false, feed)
        }
        Origin::Recording(path) => {
            let recorded = recording::read(&path)?;
            // It is shown with its own times.
            let first = recorded.first().map_or_else(Timestamp::now, |(at, _)| *at);
            let offset = first.duration_since(Timestamp::now());
            let feed = tokio::spawn(feed::play(recorded, wants, outbox));
            (String::new(), Surroundings::default(), offset, true, feed)
        }
    };
    let mut signals = Signals::new()?;
    let mut screen = Screen::take()?;
    let now = || Timestamp::now() + offset;
    let mut state = State::new(name, screen.fit()?, Look(theme), now());
    state.commands = commands;
    state.replay = replay;
    let mut session = Session {
        state,
        surroundings,
        running: None,
        heard: mpsc::channel(command::QUEUE),
        offered: mpsc::channel(command::QUEUE),
    };
    let mut keys = screen::keys();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut drawn = Instant::now();
    let mut picture = Picture::Urgent;
    loop {
        if Screen::is_lost() {
            return Err(CliError::failed("a part of the dashboard failed"));
        }
        let due = drawn + FRAME;
        if picture == Picture::Urgent || picture == Picture::Stale && Instant::now() >= due {
            screen.draw(|frame| view::draw(&session.state, frame))?;
            drawn = Instant::now();
            picture = Picture::Fresh;
        }
        let wanted = session.state.wants(recording);
        want.send_if_modified(|before| {
            let other = *before != wanted;
            *before = wanted;
            other
        });
        let mut effects = Vec::new();
        tokio::select! {
            biased;
            ends = signals.next() => {
                if ends {
                    return Err(CliError::interrupted());
                }
                let size = screen.resume()?;
                effects = update(&mut session.state, now(), Event::Resize(size));
                picture = Picture::Urgent;
            }
            key = keys.recv() => {
                // The terminal is gone.
                let Some(key) = key else { return Err(CliError::interrupted()) };
                let key = match key {
                    Event::Resize(_) => Event::Resize(screen.fit()?),
                    key => key,
                };
                effects = update(&mut session.state, now(), key);
                picture = Picture::Urgent;
            }
            Some((run, heard)) = session.heard.1.recv() => {
                effects = update(&mut session.state, now(), Event::Child(run, heard));
                picture = picture.max(Picture::Stale);
            }
            Some(offer) = session.offered.1.recv() => {
                effects = update(&mut session.state, now(), Event::Offered(offer));
                picture = picture.max(Picture::Stale);
            }
            Some((_, first)) = news.recv() => {
                take_in(&mut session.state, first, &mut news, &counters, now());
                picture = picture.max(Picture::Stale);
            }
            () = sleep_until(due), if picture == Picture::Stale => {}
            _ = tick.tick() => {
                // The terminal's library loses a resize that arrives together with a key.
                let event = match Screen::has(session.state.size) {
                    true => Event::Tick,
                    false => Event::Resize(screen.fit()?),
                };
                effects = update(&mut session.state, now(), event);
                picture = picture.max(Picture::Stale);
            }
        }
        for effect in effects {
            match effect {
                Effect::Quit => {
                    feed.abort();
                    return Ok(());
                }
                Effect::Suspend => {
                    Screen::suspend()?;
                    // The process continues here either way: after a stop, or if it was never
                    // stopped.
                    let _either = timeout(STOPPING, signals.resume.recv()).await;
                    let size = screen.resume()?;
                    update(&mut session.state, now(), Event::Resize(size));
                    picture = Picture::Urgent;
                }
                Effect::Copy(text) => screen.copy(&text)?,
                Effect::Run { run, args } => {
                    let heard = session.heard.0.clone();
                    let running = command::start(run, args, &session.surroundings, heard);
                    session.running = Some(running);
                }
                Effect::Complete { head, words } => {
                    let (offered, around) =
                        (session.offered.0.clone(), session.surroundings.clone());
                    tokio::spawn(async move {
                        let words = command::offered(words, &around).await;
                        // The receiver is gone once the dashboard ends.
                        let _gone = offered.send(Offer { head, words }).await;
                    });
                }
                Effect::Kill => session.running.iter_mut().for_each(Running::end),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Picture {
    Fresh,
    /// It is outdated, and is drawn with the next frame.
    Stale,
    /// It is outdated because of a key, and is drawn at once.
    Urgent,
}

type Said = (u64, Heard);

struct Session {
    state: State,
    surroundings: Surroundings,
    running: Option<Running>,
    /// Messages from running commands, with the numbers of their runs.
    heard: (mpsc::Sender<Said>, mpsc::Receiver<Said>),
    offered: (mpsc::Sender<Offer>, mpsc::Receiver<Offer>),
}

/// Processes a news item and those already queued, up to `BATCH`.
fn take_in(
    state: &mut State,
    first: News,
    news: &mut mpsc::Receiver<(Timestamp, News)>,
    counters: &Counters,
    now: Timestamp,
) {
    let mut next = Some(first);
    for _ in 0..BATCH {
        let Some(heard) = next else { break };
        update(state, now, Event::News(heard));
        next = news.try_recv().ok().map(|(_, news)| news);
    }
    if let Some(left) = next {
        update(state, now, Event::News(left));
    }
    update(state, now, Event::Dropped(counters.dropped.load(Ordering::Relaxed)));
    if counters.full.load(Ordering::Relaxed) {
        update(state, now, Event::RecordingFull);
    }
}
