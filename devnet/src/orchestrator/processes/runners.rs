//! Runners in processes or containers of their own.

use super::{
    Site,
    child::{self, Child, NodePlace},
    containers::labels,
    pod_run::PodRun,
    run::NodeRun,
};
use crate::{
    api::{error::ApiError, steer::Steer},
    client::{Client, ClientError},
    home::DevnetHome,
    runner::{folder::RunnerFolder, key},
    topology::{Name, RunnerPlan},
    types::{AnswerRequest, Bytes, CapabilitiesRequest, RunnerLoad, Text},
};
use cowboy_engine::primitives::{Address, SecretKey};
use cowboy_host::files::write_private;
use std::{collections::BTreeSet, path::PathBuf};

/// Starts the runners of a devnet.
#[derive(Clone)]
pub(in crate::orchestrator) struct RunnerLauncher {
    pub(super) home: DevnetHome,
    /// The program, unless a runner's plan names another one.
    pub(super) program: PathBuf,
    /// The devnet's control API.
    pub(super) rpc_url: String,
    pub(super) lease_url: String,
    pub(super) agents: BTreeSet<Address>,
    pub(super) site: Site,
}

impl RunnerLauncher {
    pub(in crate::orchestrator) async fn start(
        &self,
        plan: &RunnerPlan,
        key: &SecretKey,
    ) -> Result<NodeRun, String> {
        let contained = || NodePlace {
            folder: self.home.nodes_path().join(plan.name.as_str()),
            log: RunnerFolder::contained(&self.home, &plan.name).log_path(),
        };
        match &self.site {
            Site::Containers(containers) => {
                let child = Child::attach(&containers.of(&plan.name), &contained())?;
                return Ok(NodeRun::Child(child));
            }
            Site::Cluster(cluster) => {
                let pod = cluster.pod(&plan.name).ok_or("it has no pod")?;
                return PodRun::start(pod, contained(), false).map(NodeRun::Pod);
            }
            Site::Processes => {}
        }
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let folder = RunnerFolder::of(&self.home, &plan.name);
        folder.supervise().map_err(|error| told(&error))?;
        child::end_left(&folder.lock_path(), plan.name.as_str()).await?;
        let files = self.home.handout_path();
        let key_file = files.join(format!("{}.key", plan.name));
        key::replace(&key_file, key).map_err(|error| told(&error))?;
        let executors = files.join(format!("{}.yaml", plan.name));
        write_private(&executors, &super::text(&plan.executors)).map_err(|error| told(&error))?;
        let agents: Vec<_> = self
            .agents
            .iter()
            .flat_map(|agent| ["--agent".to_owned(), agent.to_string()])
            .collect();
        let mut words = vec!["runner", "start", "--name", plan.name.as_str()];
        words.extend(["--rpc-url", &self.rpc_url, "--lease-server", &self.lease_url]);
        words.extend(agents.iter().map(String::as_str));
        let home = self.home.home();
        let mut command = child::command(&self.program, &words, home.path(), &plan.process);
        command.arg("--genesis").arg(files.join("genesis.json"));
        command.arg("--key-file").arg(key_file).arg("--executors").arg(executors);
        command.arg("--lease-token-file").arg(self.home.token_path());
        let place = NodePlace { folder: folder.path().to_owned(), log: folder.log_path() };
        Child::start(command, &place, &plan.process).map(NodeRun::Child)
    }

    /// Asks a runner's process to change its capacity. `None` if it does not run, or does not
    /// answer.
    pub(in crate::orchestrator) async fn steer(
        &self,
        runner: &Name,
        steer: &Steer,
    ) -> Option<Result<RunnerLoad, ApiError>> {
        match &self.site {
            Site::Containers(containers) => {
                return containers.of(runner).steer(&self.home, runner, steer).await;
            }
            Site::Cluster(cluster) => return cluster.pod(runner)?.steer(steer).await,
            Site::Processes => {}
        }
        let folder = RunnerFolder::of(&self.home, runner);
        let record = folder.record().ok()??;
        let client = folder.client(&record).ok()?.with_timeout(super::ANSWER_WITHIN);
        match ask(&client, runner.as_str(), steer).await {
            Ok(load) => Some(Ok(load)),
            Err(ClientError::Refused(detail)) => Some(Err(detail.into())),
            Err(error) => {
                tracing::warn!(%runner, %error, "does not answer");
                None
            }
        }
    }
}

async fn ask(client: &Client, runner: &str, steer: &Steer) -> Result<RunnerLoad, ClientError> {
    match steer {
        Steer::Look => client.runner_load(runner).await,
        Steer::Pause => client.pause_runner(runner).await,
        Steer::Resume => client.resume_runner(runner).await,
        Steer::Limit(most) => client.limit_runner(runner, *most).await,
        Steer::Change(add, remove) => {
            let request = CapabilitiesRequest { add: labels(add), remove: labels(remove) };
            client.change_capabilities(runner, &request).await
        }
        Steer::Answer(job_id, answer) => {
            let result = answer.as_ref().ok().map(|bytes| Text(Bytes(bytes.clone())));
            let failure = answer.as_ref().err().cloned();
            let request = AnswerRequest { job_id: (*job_id).into(), result, failure };
            client.answer_job(runner, &request).await
        }
    }
}
