//! One run of a node in its pod: it begins when the pod's shell is asked for it, and ends with the
//! node, or with the pod.

use super::{
    child::{
        END_TIMEOUT, KILL_TIMEOUT, MAX_LINE, NodePlace, NodeReport, ProcessEnd, START_TIMEOUT,
        last_words,
    },
    cluster::Pod,
    pods::{AGAIN, SeenPods},
};
use crate::{
    client::{Access, Client},
    handout::{API_PORT, RunMark, Versions},
    rotating::Rotating,
};
use cowboy_host::{duration::Plain, files::create_private_dir};
use jiff::Timestamp;
use std::{
    io::Write as _,
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    sync::watch,
    task::AbortHandle,
    time::{sleep, timeout},
};

/// How long a pod may take until its container runs: it may have to fetch the image.
const POD_TIMEOUT: Duration = Duration::from_secs(300);
/// How long it may be in trouble meanwhile.
const TROUBLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before an API that does not answer yet is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A node that a pod's shell has been asked to run. The node goes on when this is dropped.
pub(in crate::orchestrator) struct PodRun {
    pod: Pod,
    place: NodePlace,
    log_from: u64,
    state: watch::Receiver<RunState>,
    following: AbortHandle,
    /// Its control API's port on this machine, for a validator.
    forwarded: Option<(watch::Receiver<Option<u16>>, AbortHandle)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RunState {
    Waiting,
    Running,
    Ended { how: String, orderly: bool, replaced: bool },
}

impl Drop for PodRun {
    fn drop(&mut self) {
        self.following.abort();
        if let Some((_, forwarding)) = &self.forwarded {
            forwarding.abort();
        }
    }
}

impl PodRun {
    /// Asks for a run of the pod's node once the pod is there, without its stored chain if it is to
    /// fetch it again.
    pub(super) fn start(pod: Pod, place: NodePlace, afresh: bool) -> Result<Self, String> {
        for folder in [place.folder.as_path(), place.log.parent().unwrap_or(&place.folder)] {
            create_private_dir(folder).map_err(|error| error.to_string())?;
        }
        let log = Rotating::open(place.log.clone());
        let log = log.map_err(|error| format!("{}: {error}", place.log.display()))?;
        let log_from = place.log.metadata().map_or(0, |metadata| metadata.len());
        let (state, states) = watch::channel(RunState::Waiting);
        let follower = RunFollower { pod: pod.clone(), number: pod.cluster.next_run(), state };
        let following = tokio::spawn(follower.follow(log, afresh)).abort_handle();
        let forwarded = pod.is_validator.then(|| {
            let (sender, port) = watch::channel(None);
            (port, tokio::spawn(forward(pod.clone(), sender)).abort_handle())
        });
        Ok(Self { pod, place, log_from, state: states, following, forwarded })
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.pod.cluster.pods().borrow().get(&self.pod.name)?.address
    }

    /// What a client of the node's control API trusts.
    pub(super) fn access(&self) -> Result<Access, String> {
        Ok(Access { token: None, roots: Some(self.pod.cluster.authority()?) })
    }

    /// The token of the node's control API.
    pub(super) async fn token(&self) -> Result<String, String> {
        let token = format!("cat \"$HOME/{}/token\"", self.pod.node);
        self.pod.shell(&token).await.map_err(|error| error.to_string())
    }

    /// Waits until the node runs.
    pub(in crate::orchestrator) async fn ready(&mut self) -> Result<(), String> {
        let begun = self.state.wait_for(|state| *state != RunState::Waiting);
        if timeout(POD_TIMEOUT + TROUBLE_TIMEOUT, begun).await.is_err() {
            return Err(format!("it does not run within {}", Plain(POD_TIMEOUT)));
        }
        match self.has_ended(Duration::ZERO).await {
            true => Err(self.ended().await.how),
            false => Ok(()),
        }
    }

    /// Waits until the control API of a validator answers.
    pub(super) async fn answers(&mut self) -> Result<NodeReport, String> {
        self.ready().await?;
        let since = Instant::now();
        let version = ["cowboyctl", "node", "version", "--output", "json"];
        let told = self.pod.exec(&version).await.map_err(|error| error.to_string())?;
        let versions: Versions = serde_json::from_str(&told)
            .map_err(|_| "its image tells no versions, as `cowboyctl node version` does")?;
        let mut reason = "its port is not forwarded".to_owned();
        while since.elapsed() < START_TIMEOUT && !self.has_ended(Duration::ZERO).await {
            match self.ask().await {
                Ok(rpc_url) => return Ok(NodeReport { rpc_url, versions }),
                Err(error) => reason = error,
            }
            sleep(ASK_AGAIN).await;
        }
        if self.has_ended(Duration::ZERO).await {
            return Err(self.ended().await.how);
        }
        Err(format!("its API does not answer within {}: {reason}", Plain(START_TIMEOUT)))
    }

    async fn ask(&self) -> Result<String, String> {
        let port = self.forwarded.as_ref().and_then(|(port, _)| *port.borrow());
        let port = port.ok_or("its port is not forwarded")?;
        let rpc_url = format!("https://{}:{port}", Ipv4Addr::LOCALHOST);
        let client = Client::with_access(&rpc_url, self.access()?);
        let client = client.map_err(|error| error.to_string())?;
        let client = client.with_token(self.token().await?).with_timeout(START_TIMEOUT);
        client.head().await.map_err(|error| error.to_string())?;
        Ok(rpc_url)
    }

    /// Resolves when the node has ended. Dropping the future loses nothing.
    pub(in crate::orchestrator) async fn ended(&mut self) -> ProcessEnd {
        let ended = self.state.wait_for(|state| matches!(state, RunState::Ended { .. })).await;
        let (how, orderly, replaced) = match ended.as_deref() {
            Ok(RunState::Ended { how, orderly, replaced }) => (how.clone(), *orderly, *replaced),
            _ => ("what follows it has ended".to_owned(), false, false),
        };
        let how = match last_words(&self.place.log, self.log_from) {
            Some(words) => format!("{how}; last words: {words}"),
            None => how,
        };
        ProcessEnd { how, orderly, replaced }
    }

    async fn has_ended(&mut self, within: Duration) -> bool {
        let ended = self.state.wait_for(|state| matches!(state, RunState::Ended { .. }));
        timeout(within, ended).await.is_ok()
    }

    async fn signal(&self, name: &str) {
        // An error: there is no pod, and so no node.
        if let Err(error) = self.pod.shell(&RunMark::signal(name)).await {
            tracing::debug!(pod = %self.pod.name, %error, "not signalled");
        }
    }

    pub(in crate::orchestrator) async fn kill(mut self) {
        self.signal("KILL").await;
        self.has_ended(KILL_TIMEOUT).await;
    }

    pub(in crate::orchestrator) async fn stop(mut self) {
        // A frozen process does not hear.
        self.signal("CONT").await;
        self.signal("TERM").await;
        if !self.has_ended(END_TIMEOUT).await {
            let (pod, within) = (&self.pod.name, Plain(END_TIMEOUT));
            tracing::warn!(%pod, "a node did not end within {within}: killed");
            self.kill().await;
        }
    }

    pub(in crate::orchestrator) async fn freeze(&self, frozen: bool) {
        self.signal(if frozen { "STOP" } else { "CONT" }).await;
    }
}

/// Keeps a port of this machine forwarded to a pod's control API, always the same one.
async fn forward(pod: Pod, ports: watch::Sender<Option<u16>>) {
    loop {
        let port = *ports.borrow();
        if let Ok(mut process) = pod.forward(port, API_PORT).spawn()
            && let Some(stdout) = process.stdout.take()
        {
            let mut lines = BufReader::new(stdout);
            while let Some(line) = next_line(&mut lines).await {
                // `Forwarding from 127.0.0.1:40123 -> 9002`
                let from = line.strip_prefix("Forwarding from 127.0.0.1:");
                let from = from.and_then(|rest| rest.split(' ').next()?.parse().ok());
                if port.is_none() && from.is_some() {
                    ports.send_replace(from);
                }
            }
        }
        sleep(AGAIN).await;
    }
}

/// The next line, without its end, or as much of it as is read at a time.
async fn next_line(lines: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    lines.take(MAX_LINE).read_until(b'\n', &mut line).await.ok().filter(|read| *read > 0)?;
    Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
}

/// Begins one run and follows it to its end.
struct RunFollower {
    pod: Pod,
    number: u64,
    state: watch::Sender<RunState>,
}

impl RunFollower {
    async fn follow(self, log: Rotating, afresh: bool) {
        let ended = |how, replaced| RunState::Ended { how, orderly: false, replaced };
        let end = match self.begin(afresh).await {
            Err(how) => ended(how, false),
            Ok(life) => {
                let mut pods = self.pod.cluster.pods();
                let name = &self.pod.name;
                let is_other = |pods: &SeenPods| pods.get(name).is_none_or(|pod| pod.life != life);
                tokio::select! {
                    end = self.read(log) => end,
                    told = pods.wait_for(is_other) => {
                        let replaced = told.is_ok();
                        let how = match told {
                        Ok(pods) => match pods.get(name).filter(|pod| pod.life.0 == life.0) {
                            Some(pod) => {
                                let how = pod.ended.as_deref().unwrap_or("for an unknown reason");
                                format!("its container ended: {how}")
                            }
                            None => "its pod is gone".to_owned(),
                        },
                            Err(_) => "its cluster is no longer followed".to_owned(),
                        };
                        ended(how, replaced)
                    }
                }
            }
        };
        self.state.send_replace(end);
    }

    /// Waits for the pod, gives it the node's data, and asks for the run. Returns the pod's life.
    async fn begin(&self, afresh: bool) -> Result<(String, u32), String> {
        let life = self.running_pod().await?;
        if !afresh {
            self.pod.restore().await?;
        }
        let begin = RunMark::begin(self.number, if afresh { "--resync" } else { "" });
        self.pod.shell(&begin).await.map_err(|error| error.to_string())?;
        Ok(life)
    }

    async fn running_pod(&self) -> Result<(String, u32), String> {
        let name = &self.pod.name;
        let (mut pods, since) = (self.pod.cluster.pods(), Instant::now());
        let mut trouble: Option<(Instant, String)> = None;
        loop {
            let pod = pods.borrow_and_update().get(name).cloned();
            if let Some(pod) = pod.as_ref().filter(|pod| pod.running) {
                return Ok(pod.life.clone());
            }
            let now = pod.and_then(|pod| pod.trouble);
            let begun = trouble.map_or_else(Instant::now, |(begun, _)| begun);
            trouble = now.map(|reason| (begun, reason));
            let left = match &trouble {
                Some((begun, _)) => TROUBLE_TIMEOUT.saturating_sub(begun.elapsed()),
                None => POD_TIMEOUT.saturating_sub(since.elapsed()),
            };
            if !matches!(timeout(left, pods.changed()).await, Ok(Ok(()))) {
                return Err(match trouble {
                    Some((_, reason)) => format!("pod {name}: {reason}"),
                    None => format!("pod {name} does not run within {}", Plain(POD_TIMEOUT)),
                });
            }
        }
    }

    /// Copies the run's log, and returns how the run ends.
    async fn read(&self, mut log: Rotating) -> RunState {
        let mut begun = false;
        let mut newest: Option<(Timestamp, String)> = None;
        loop {
            let before = newest.clone();
            let since = before.as_ref().map(|(_, text)| text.as_str());
            if let Ok(mut process) = self.pod.log(since).spawn()
                && let Some(stdout) = process.stdout.take()
            {
                let mut lines = BufReader::new(stdout);
                while let Some(line) = next_line(&mut lines).await {
                    let (time, text) = line.split_once(' ').unwrap_or(("", &line));
                    if let Ok(at) = time.parse::<Timestamp>() {
                        // A log that is opened again begins with lines that were read.
                        if before.as_ref().is_some_and(|(before, _)| at <= *before) {
                            continue;
                        }
                        newest = Some((at, time.to_owned()));
                    }
                    match RunMark::of(text) {
                        Some(RunMark::Begun { run }) if run == self.number => {
                            begun = true;
                            self.state.send_replace(RunState::Running);
                        }
                        Some(RunMark::Ended { run, code }) if run == self.number => {
                            let how = match code {
                                129.. => format!("its process was ended by signal {}", code - 128),
                                _ => format!("its process ended with code {code}"),
                            };
                            return RunState::Ended { how, orderly: code == 0, replaced: false };
                        }
                        _ if begun => {
                            // A full disk does not end the node.
                            let _ = writeln!(log, "{text}");
                        }
                        _ => {}
                    }
                }
            }
            sleep(AGAIN).await;
        }
    }
}
