//! The runners of a devnet: in this process, each with its own socket, by which faults tell them
//! apart; or in processes or containers of their own.

use super::NodesConfig;
use crate::{
    api::{
        backend::Backend,
        error::ApiError,
        steer::{Steer, Told},
    },
    client::Client,
    executor::Executor,
    faults::Tap,
    home::DevnetHome,
    orchestrator::processes::{NodeRun, ProcessEnd, RunnerLauncher},
    runner::{self, Pledges, Polling, Targets, control, heartbeat, polling},
    topology::{Name, RunnerPlan},
    transport::{quic, tls::Identity},
    types::RunnerLoad,
};
use ::tokio::sync::watch;
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, tokio};
use cowboy_engine::primitives::{Address, Hash, SecretKey};
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all, select_all},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    mem,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// A runner's process that ran for less counts as one that does not start, and is started again at
/// most [`RESTARTS`] times in a row.
const RAN: Duration = Duration::from_secs(10);
const RESTARTS: u32 = 5;

/// A runner of this devnet.
#[derive(Clone)]
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
    /// Starts them outside this process; `None`: they run in it.
    launcher: Option<RunnerLauncher>,
    pub(super) running: BTreeMap<String, RunningRunner>,
    /// How often each has died in a row soon after its start.
    deaths: BTreeMap<Name, u32>,
}

pub(super) enum RunningRunner {
    Here { address: Address, runner: runner::Runner, heartbeat: Handle<()>, tap: Tap },
    Apart { name: Name, run: NodeRun, since: Instant },
}

impl Runners {
    pub(super) fn new(
        context: &tokio::Context,
        config: &NodesConfig,
        launcher: Option<RunnerLauncher>,
        (api, executor): (Client, Executor),
        targets: Targets,
    ) -> Self {
        let (told, phase) = watch::channel(config.genesis.params.phase);
        let interval = polling::interval(config.block_time);
        if !config.runners.is_empty() && launcher.is_none() {
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
            launcher,
            running: BTreeMap::new(),
            deaths: BTreeMap::new(),
        }
    }

    /// Starts a runner again, and waits until its own process says that it runs.
    pub(super) async fn restart(&mut self, runner: &RunnerNode) -> Result<(), String> {
        self.start(runner).await?;
        let name = &runner.plan.name;
        let Some(RunningRunner::Apart { run, .. }) = self.running.get_mut(name.as_str()) else {
            return Ok(());
        };
        match run.ready().await {
            Ok(pid) => {
                tracing::info!(runner = %name, pid, "started in a process of its own");
                Ok(())
            }
            Err(error) => {
                self.kill(runner).await;
                Err(error)
            }
        }
    }

    /// Starts a runner. One in a process of its own first asks the control API, which need not
    /// answer yet.
    pub(super) async fn start(&mut self, runner: &RunnerNode) -> Result<(), String> {
        let executor = self.executor.configured(&runner.plan.executors);
        let executor = executor.map_err(|error| error.to_string())?;
        let running = match &self.launcher {
            None => self.start_here(runner, executor)?,
            Some(launcher) => {
                let (name, run) =
                    (runner.plan.name.clone(), launcher.start(&runner.plan, &runner.key).await?);
                RunningRunner::Apart { name, run, since: Instant::now() }
            }
        };
        let RunnerNode { plan: RunnerPlan { name, .. }, key } = runner;
        self.backend.set_runner_running(&key.address(), true);
        self.backend.faults().revived(name.as_str());
        self.running.insert(name.to_string(), running);
        Ok(())
    }

    fn start_here(&self, runner: &RunnerNode, executor: Executor) -> Result<RunningRunner, String> {
        let RunnerNode { plan: runner, key } = runner;
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
            by_hand: runner.executors.by_hand,
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
        Ok(RunningRunner::Here { address, runner: started, heartbeat, tap })
    }

    /// Ends a runner as a crash would: its jobs end with it, and its connections without a message.
    pub(super) async fn kill(&mut self, runner: &RunnerNode) {
        let RunnerNode { plan: RunnerPlan { name, .. }, key } = runner;
        let Some(running) = self.running.remove(name.as_str()) else { return };
        match running {
            RunningRunner::Here { runner, heartbeat, tap, .. } => {
                tap.silence();
                heartbeat.abort();
                runner.kill().await;
            }
            RunningRunner::Apart { run, .. } => run.kill().await,
        }
        self.backend.set_runner_running(&key.address(), false);
        tracing::info!(runner = %name, "killed");
    }

    /// Stops a runner: it says goodbye to its validators and gives up its jobs.
    pub(super) async fn stop_one(&mut self, runner: &RunnerNode) {
        let RunnerNode { plan: RunnerPlan { name, .. }, key } = runner;
        let Some(running) = self.running.remove(name.as_str()) else { return };
        running.stop(&self.context).await;
        self.backend.set_runner_running(&key.address(), false);
        tracing::info!(runner = %name, "stopped");
    }

    /// Stops a runner's own process in its tracks, or lets it go on. For one in this process its
    /// tap does it.
    pub(super) async fn freeze(&self, runner: &str, frozen: bool) {
        if let Some(RunningRunner::Apart { run, .. }) = self.running.get(runner) {
            run.freeze(frozen).await;
        }
    }

    /// Applies `steer` to a running runner; resolves with what it then tells its validators, or
    /// `None` if it does not run.
    pub(in crate::orchestrator) fn steer(
        &self,
        runner: &str,
        steer: Steer,
    ) -> BoxFuture<'static, Option<Result<RunnerLoad, ApiError>>> {
        let told = match (self.running.get(runner), &self.launcher) {
            (Some(RunningRunner::Apart { name, .. }), Some(launcher)) => {
                let (launcher, name) = (launcher.clone(), name.clone());
                return async move { launcher.steer(&name, &steer).await }.boxed();
            }
            (Some(RunningRunner::Here { runner: running, address, .. }), _) => {
                let told = control::steer(running, &steer).map_err(ApiError::from);
                Some(told.map(|Told { load, withdrawn }| {
                    RunnerLoad::new(runner, *address, &load, &withdrawn)
                }))
            }
            _ => None,
        };
        ready(told).boxed()
    }

    /// Resolves when a runner's own process has ended by itself, with how.
    pub(super) async fn ended(&mut self) -> (Name, ProcessEnd) {
        let ends = self.running.values_mut().filter_map(|running| match running {
            RunningRunner::Here { .. } => None,
            RunningRunner::Apart { name, run, .. } => {
                let name = name.clone();
                Some(run.ended().map(move |end| (name, end)).boxed())
            }
        });
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return std::future::pending().await;
        }
        select_all(ends).await.0
    }

    /// Clears away a runner whose process has ended by itself, and starts it again if the topology
    /// asks for that.
    pub(super) async fn bury(&mut self, runner: &RunnerNode, end: ProcessEnd) {
        let name = &runner.plan.name;
        if end.orderly {
            self.running.remove(name.as_str());
            self.backend.set_runner_running(&runner.key.address(), false);
            tracing::info!(runner = %name, "stopped by its operator");
            return;
        }
        if end.replaced {
            tracing::error!(runner = %name, how = %end.how, "died");
            self.running.remove(name.as_str());
            self.backend.set_runner_running(&runner.key.address(), false);
            if let Err(error) = self.start(runner).await {
                tracing::error!(runner = %name, %error, "does not return");
            }
            return;
        }
        let mut how = end.how;
        loop {
            let ran = match self.running.remove(name.as_str()) {
                Some(RunningRunner::Apart { since, .. }) => since.elapsed() >= RAN,
                _ => false,
            };
            self.backend.set_runner_running(&runner.key.address(), false);
            let deaths = self.deaths.entry(name.clone()).or_default();
            *deaths = if ran { 0 } else { *deaths + 1 };
            let again = runner.plan.process.restart && *deaths <= RESTARTS;
            tracing::error!(runner = %name, %how, again, "died");
            if !again {
                return;
            }
            match self.restart(runner).await {
                Ok(()) => return,
                Err(error) => how = error,
            }
        }
    }

    pub(super) async fn stop(&mut self) {
        let running = mem::take(&mut self.running).into_values();
        join_all(running.map(|running| running.stop(&self.context))).await;
    }
}

impl RunningRunner {
    /// It says goodbye to its validators and gives up its jobs.
    async fn stop(self, context: &tokio::Context) {
        match self {
            Self::Here { runner, heartbeat, .. } => {
                heartbeat.abort();
                runner.stop(context).await;
            }
            Self::Apart { run, .. } => run.stop().await,
        }
    }
}
