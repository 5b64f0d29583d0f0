//! The event loop: one task owns the nodes, answers the API's requests about them, and notices when
//! one ends by itself.

use super::{
    OrchestratorError,
    nodes::{EndedNode, Nodes, NodesConfig},
    saving,
};
use crate::{
    api::{
        backend::{Hooks, Membership, MembershipError, SaveError, Switch, UpgradeError},
        error::ApiError,
        steer::Steer,
    },
    topology::Name,
    types::{RunnerLoad, Snapshot},
};
use ::tokio::{
    sync::{mpsc, oneshot, watch},
    time::MissedTickBehavior,
};
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, tokio};
use cowboy_host::{duration::Plain, last_words};
use futures::FutureExt as _;
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Maximum number of waiting requests; each comes from an API request, and the API limits those.
const REQUESTS: usize = 64;
/// Maximum number of node failures that wait to be reported; the first is the one that matters.
const FAILURES: usize = 64;
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for nodes outside this process, which do not end with it.
const STOP_TIMEOUT_APART: Duration = Duration::from_secs(60);
/// How often the clock is checked; setting it forward and back in between goes unnoticed.
const CLOCK_LOOK: Duration = Duration::from_millis(100);
const SPACE_LOOK: Duration = Duration::from_secs(1);
const STOPPING: &str = "the devnet is stopping";

/// What a steered runner then tells its validators.
type Steered = Result<RunnerLoad, ApiError>;

enum NodeRequest {
    Switch { node: String, to: Switch, reply: oneshot::Sender<Result<(), String>> },
    Steer { runner: String, steer: Steer, reply: oneshot::Sender<Option<Steered>> },
    Join { name: Option<Name>, reply: oneshot::Sender<Result<String, MembershipError>> },
    Leave { validator: String, reply: oneshot::Sender<Result<String, MembershipError>> },
    Upgrade { node: String, binary: PathBuf, reply: oneshot::Sender<Result<(), UpgradeError>> },
    CarryOut { reply: oneshot::Sender<Result<(), String>> },
    Save { name: Option<Name>, reply: oneshot::Sender<Result<Snapshot, SaveError>> },
}

/// A handle to the task that owns the nodes.
#[derive(Clone)]
pub(super) struct Supervisor {
    requests: mpsc::Sender<NodeRequest>,
    shutdown: Arc<watch::Sender<bool>>,
}

/// The task's end of a [`Supervisor`], before the task is started.
pub(super) struct Requests {
    requests: mpsc::Receiver<NodeRequest>,
    shutdown: Arc<watch::Sender<bool>>,
}

pub(super) struct Supervised {
    shutdown: Arc<watch::Sender<bool>>,
    failures: mpsc::Receiver<OrchestratorError>,
    task: Handle<()>,
    stop_timeout: Duration,
}

impl Supervisor {
    pub(super) fn channel() -> (Self, Requests) {
        let (sender, receiver) = mpsc::channel(REQUESTS);
        let shutdown = Arc::new(watch::Sender::new(false));
        let requests = Requests { requests: receiver, shutdown: shutdown.clone() };
        (Self { requests: sender, shutdown }, requests)
    }

    /// Makes a request and returns its answer; `None` when the devnet is stopping.
    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> NodeRequest) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.ok()?;
        answer.await.ok()
    }

    pub(super) fn hooks(&self) -> Hooks {
        let all = || self.clone();
        let (switching, steering, changing) = (all(), all(), all());
        let (saving, telling, upgrading) = (all(), all(), all());
        let shutdown = self.shutdown.clone();
        Hooks {
            switch: Box::new(move |node, to| {
                let (nodes, node) = (switching.clone(), node.to_owned());
                Box::pin(async move {
                    let asked = nodes.ask(|reply| NodeRequest::Switch { node, to, reply });
                    asked.await.unwrap_or_else(|| Err(STOPPING.to_owned()))
                })
            }),
            steer: Box::new(move |runner, steer| {
                let (nodes, runner) = (steering.clone(), runner.to_owned());
                Box::pin(async move {
                    // Without the task, no runner runs.
                    nodes.ask(|reply| NodeRequest::Steer { runner, steer, reply }).await?
                })
            }),
            membership: Box::new(move |change| {
                let nodes = changing.clone();
                Box::pin(async move {
                    let asked = nodes.ask(|reply| match change {
                        Membership::Join(name) => NodeRequest::Join { name, reply },
                        Membership::Leave(validator) => NodeRequest::Leave { validator, reply },
                    });
                    let stopping = || Err(MembershipError::Failed(STOPPING.to_owned()));
                    asked.await.unwrap_or_else(stopping)
                })
            }),
            peers: Box::new(|_| Err("this devnet knows its validators".to_owned())),
            upgrade: Box::new(move |node, binary| {
                let (nodes, node) = (upgrading.clone(), node.to_owned());
                Box::pin(async move {
                    let asked = nodes.ask(|reply| NodeRequest::Upgrade { node, binary, reply });
                    let stopping = || Err(UpgradeError::Failed(STOPPING.to_owned()));
                    asked.await.unwrap_or_else(stopping)
                })
            }),
            carry_out: Box::new(move || {
                let nodes = telling.clone();
                Box::pin(async move {
                    let asked = nodes.ask(|reply| NodeRequest::CarryOut { reply });
                    asked.await.unwrap_or_else(|| Err(STOPPING.to_owned()))
                })
            }),
            save: Box::new(move |name| {
                let nodes = saving.clone();
                Box::pin(async move {
                    let asked = nodes.ask(|reply| NodeRequest::Save { name, reply });
                    asked.await.unwrap_or_else(|| Err(SaveError::Failed(STOPPING.to_owned())))
                })
            }),
            shutdown: Box::new(move || {
                shutdown.send_replace(true);
            }),
        }
    }
}

impl Requests {
    pub(super) async fn start(
        self,
        context: tokio::Context,
        config: NodesConfig,
    ) -> Result<Supervised, OrchestratorError> {
        let stop_timeout = if config.handout.is_some() { STOP_TIMEOUT_APART } else { STOP_TIMEOUT };
        let nodes = Box::pin(Nodes::start_all(&context, config)).await?;
        let (failed, failures) = mpsc::channel(FAILURES);
        let shutdown = self.shutdown.clone();
        let task = context
            .child("supervisor")
            .spawn(move |_| run(nodes, self.requests, self.shutdown, failed));
        Ok(Supervised { shutdown, failures, task, stop_timeout })
    }
}

impl Supervised {
    /// Resolves when a node, or the task that owns them, ends by itself.
    pub(super) async fn failure(&mut self) -> OrchestratorError {
        let ended = || {
            let (part, reason) = ("the supervisor of the nodes", last_words::recent());
            OrchestratorError::Ended { part, reason }
        };
        self.failures.recv().await.unwrap_or_else(ended)
    }

    pub(super) async fn ended(&mut self) {
        // The task holds the sender.
        while self.failures.recv().await.is_some() {}
    }

    pub(super) fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut shutdown = self.shutdown.subscribe();
        async move {
            // The sender lives as long as the devnet.
            let _ = shutdown.wait_for(|stop| *stop).await;
        }
    }

    /// Stops every node and waits for them, for a limited time.
    pub(super) async fn stop(self) {
        self.shutdown.send_replace(true);
        if ::tokio::time::timeout(self.stop_timeout, self.task).await.is_err() {
            let within = Plain(self.stop_timeout);
            tracing::warn!("nodes did not stop within {within}; they end with the process");
        }
    }
}

async fn answer(nodes: &mut Nodes, request: NodeRequest) {
    // The requester may be gone.
    match request {
        NodeRequest::Switch { node, to, reply } => {
            let _ = reply.send(nodes.switch(&node, to).await);
        }
        NodeRequest::Steer { runner, steer, reply } => {
            let steering = nodes.runners.steer(&runner, steer);
            // A runner's process that does not answer holds up no other request.
            nodes.context.child("steer").spawn(move |_| async move {
                let _ = reply.send(steering.await);
            });
        }
        NodeRequest::Join { name, reply } => {
            let _ = reply.send(nodes.join(name).await.map_err(MembershipError::from));
        }
        NodeRequest::Leave { validator, reply } => {
            let _ = reply.send(nodes.leave(&validator).await.map_err(MembershipError::from));
        }
        NodeRequest::Upgrade { node, binary, reply } => {
            let _ = reply.send(nodes.upgrade(&node, binary).await);
        }
        NodeRequest::CarryOut { reply } => {
            let _ = reply.send(nodes.carry_out().await);
        }
        NodeRequest::Save { name, reply } => {
            let saving = saving::save(nodes, name).await;
            // The next request need not wait for the next block.
            nodes.context.child("saved").spawn(move |_| async move {
                let _ = reply.send(saving::finish(saving).await);
            });
        }
    }
}

/// The loop: takes requests, looks at the clock and the disk, and notices nodes that end.
async fn run(
    mut nodes: Nodes,
    mut requests: mpsc::Receiver<NodeRequest>,
    shutdown: Arc<watch::Sender<bool>>,
    failed: mpsc::Sender<OrchestratorError>,
) {
    let mut stop = shutdown.subscribe();
    let mut looks = ::tokio::time::interval(SPACE_LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut clock_looks = ::tokio::time::interval(CLOCK_LOOK);
    clock_looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ::tokio::select! {
            // An error: no sender is left that could stop it later.
            () = stop.wait_for(|stop| *stop).map(drop) => break,
            request = requests.recv() => {
                let Some(request) = request else { break };
                answer(&mut nodes, request).await;
            }
            _ = clock_looks.tick() => nodes.look_at_clock().await,
            _ = looks.tick() => nodes.look_at_space().await,
            ended = nodes.ended() => {
                let down = match ended {
                    EndedNode::Here(name, error) => {
                        let down = !nodes.goes_on(&name, &error).await;
                        let error = error.to_string();
                        down.then(|| nodes.died(&name, error.clone())).map(|()| (name, error))
                    }
                    EndedNode::Process(event) => nodes.process_event(event).await,
                    EndedNode::Runner(name, end) => {
                        nodes.runner_ended(&name, end).await;
                        None
                    }
                };
                if let Some((name, error)) = down.filter(|_| nodes.lacks_quorum()) {
                    let node = name.to_string();
                    // The queue is full: as many failures as validators wait already.
                    let _ = failed.try_send(OrchestratorError::Node { node, error });
                }
            }
        }
    }
    nodes.stop_all().await;
}
