//! One run of a node outside this process.

use super::{
    child::{Child, NodeReport, ProcessEnd, RunnerReport},
    pod_run::PodRun,
};

/// A node that runs as a process of this machine, in a container or in a pod.
pub(in crate::orchestrator) enum NodeRun {
    Child(Child),
    Pod(PodRun),
}

impl NodeRun {
    /// Waits until a validator's API answers.
    pub(super) async fn answers(&mut self) -> Result<NodeReport, String> {
        match self {
            Self::Child(child) => child.ready().await,
            Self::Pod(pod) => pod.answers().await,
        }
    }

    /// Waits until a runner runs. Returns its process, if that is one of this machine.
    pub(in crate::orchestrator) async fn ready(&mut self) -> Result<Option<u32>, String> {
        match self {
            Self::Child(child) => Ok(Some(child.ready::<RunnerReport>().await?.pid)),
            Self::Pod(pod) => pod.ready().await.map(|()| None),
        }
    }

    /// Resolves when the node has ended. Dropping the future loses nothing.
    pub(in crate::orchestrator) async fn ended(&mut self) -> ProcessEnd {
        match self {
            Self::Child(child) => child.ended().await,
            Self::Pod(pod) => pod.ended().await,
        }
    }

    /// Ends it as a crash would.
    pub(in crate::orchestrator) async fn kill(self) {
        match self {
            Self::Child(child) => child.kill().await,
            Self::Pod(pod) => pod.kill().await,
        }
    }

    /// Asks it to end, and kills it if it does not.
    pub(in crate::orchestrator) async fn stop(self) {
        match self {
            Self::Child(child) => child.stop().await,
            Self::Pod(pod) => pod.stop().await,
        }
    }

    /// Stops it in its tracks, or lets it go on.
    pub(in crate::orchestrator) async fn freeze(&self, frozen: bool) {
        match self {
            Self::Child(child) => child.freeze(frozen).await,
            Self::Pod(pod) => pod.freeze(frozen).await,
        }
    }
}
