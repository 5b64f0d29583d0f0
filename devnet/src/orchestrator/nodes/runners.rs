//! The runners of a devnet, each with its own socket, by which faults tell them apart.

use super::NodesConfig;
use crate::{
    api::{
        backend::Backend,
        steer::{Steer, SteerError, Told},
    },
    client::Client,
    executor::Executor,
    faults::Tap,
    home::DevnetHome,
    runner::{self, Pledges, Polling, Targets, control, heartbeat, polling},
    topology::RunnerPlan,
    transport::{quic, tls::Identity},
};
use ::tokio::sync::watch;
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, tokio};
use cowboy_engine::primitives::{Address, Hash, SecretKey};
use futures::future::join_all;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    net::Ipv4Addr,
    sync::Arc,
    time::Duration,
};

/// A runner of this process.
pub(in crate::orchestrator) struct RunnerNode {
    pub(in crate::orchestrator) plan: RunnerPlan,
    pub(in crate::orchestrator) key: SecretKey,
}

pub(in crate::orchestrator) struct Runners {
    context: tokio::Context,
    backend: Arc<Backend>,
    chain_id: u64,
    block_time: Duration,
    agents: BTreeSet<Address>,
    home: DevnetHome,
    /// The control API client, for heartbeats on the chain.
    api: Client,
    executor: Executor,
    polling: Polling,
    targets: Targets,
    pub(super) running: BTreeMap<String, RunningRunner>,
}

pub(super) struct RunningRunner {
    runner: runner::Runner,
    heartbeat: Handle<()>,
    tap: Tap,
}

impl Runners {
    pub(super) fn new(
        context: &tokio::Context,
        config: &NodesConfig,
        api: Client,
        executor: Executor,
        targets: Targets,
    ) -> Self {
        let (told, phase) = watch::channel(config.genesis.params.phase);
        let interval = polling::interval(config.block_time);
        if !config.runners.is_empty() {
            let asked = api.clone();
            context
                .child("phase")
                .spawn(move |context| polling::follow_phase(context, asked, interval, told));
        }
        Self {
            context: context.child("runners"),
            backend: config.backend.clone(),
            chain_id: config.genesis.chain_id(),
            block_time: config.block_time,
            agents: config.agents.clone(),
            home: config.home.clone(),
            polling: Polling { client: api.clone(), phase, interval },
            api,
            executor,
            targets,
            running: BTreeMap::new(),
        }
    }

    pub(super) fn start(&mut self, runner: &RunnerNode) -> Result<(), String> {
        let RunnerNode { plan: runner, key } = runner;
        let executor =
            self.executor.configured(&runner.executors).map_err(|error| error.to_string())?;
        let address = key.address();
        let identity = Identity::new(key).map_err(|error| error.to_string())?;
        let tap = Tap::new(self.backend.faults().clone(), runner.name.as_str());
        let client = quic::QuicClient::bind_tapped((Ipv4Addr::LOCALHOST, 0).into(), tap.clone())
            .map_err(|error| error.to_string())?;
        // A reset empties the folder, so its contents are of this chain.
        let folder = self.home.runner_path(&runner.name).join("commitments");
        let pledges = Pledges::open(folder, Hash::ZERO).map_err(|error| error.to_string())?;
        let config = runner::RunnerConfig {
            chain_id: self.chain_id,
            key: key.clone(),
            known: self.targets.of(&key.public_key()),
            agents: self.agents.clone(),
            // The registry decides which of them the runner is drawn for.
            kinds: runner.executors.kinds(),
            withdrawn: BTreeSet::new(),
            max_concurrent_jobs: runner.max_concurrent_jobs,
            polling: Some(self.polling.clone()),
            pledges: Some(Arc::new(pledges)),
        };
        let started = runner::start(
            self.context.child("runner").with_attribute("name", &runner.name),
            config,
            client.dialer(identity),
            executor,
        );
        let (api, key, block_time) = (self.api.clone(), key.clone(), self.block_time);
        let heartbeat = self
            .context
            .child("heartbeat")
            .spawn(move |context| heartbeat::keep(context, api, key, block_time));
        self.backend.set_runner_running(&address, true);
        self.backend.faults().revived(runner.name.as_str());
        let running = RunningRunner { runner: started, heartbeat, tap };
        self.running.insert(runner.name.to_string(), running);
        Ok(())
    }

    /// Ends a runner as a crash would: its jobs end with it, and its connections without a message.
    pub(super) async fn kill(&mut self, runner: &RunnerNode) {
        let RunnerNode { plan: RunnerPlan { name, .. }, key } = runner;
        let Some(running) = self.running.remove(name.as_str()) else { return };
        running.tap.silence();
        running.heartbeat.abort();
        running.runner.kill().await;
        self.backend.set_runner_running(&key.address(), false);
        tracing::info!(runner = %name, "killed");
    }

    /// Stops a runner: it says goodbye to its validators and gives up its jobs.
    pub(super) async fn stop_one(&mut self, runner: &RunnerNode) {
        let RunnerNode { plan: RunnerPlan { name, .. }, key } = runner;
        let Some(running) = self.running.remove(name.as_str()) else { return };
        running.heartbeat.abort();
        running.runner.stop(&self.context).await;
        self.backend.set_runner_running(&key.address(), false);
        tracing::info!(runner = %name, "stopped");
    }

    /// Applies `steer` to a running runner, and returns what it then tells its validators.
    pub(in crate::orchestrator) fn steer(
        &self,
        runner: &str,
        steer: &Steer,
    ) -> Option<Result<Told, SteerError>> {
        let running = self.running.get(runner)?;
        Some(control::steer(&running.runner, steer))
    }

    pub(super) async fn stop(&mut self) {
        let running = mem::take(&mut self.running).into_values();
        join_all(running.map(|running| running.runner.stop(&self.context))).await;
    }
}
