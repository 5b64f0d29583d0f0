//! The containers of a devnet's nodes, by the user's own `docker compose` or `podman-compose`.

use crate::{
    api::{error::ApiError, steer::Steer},
    handout::{API_PORT, COMPOSE_FILE, ComposeSite, ContainerDevnet},
    home::DevnetHome,
    topology::Name,
    types::RunnerLoad,
};
use commonware_utils::sync::Mutex;
use cowboy_engine::registry::Ability;
use cowboy_host::{files, process::locate};
use cowboy_lease::runner::container::{AskError, Choice, Engine};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::process::Command;

/// How long a command about one container may take.
pub(super) const COMMAND_LIMIT: Duration = Duration::from_secs(20);
/// How long making or removing all containers may take.
const COMPOSE_LIMIT: Duration = Duration::from_secs(120);
/// How long a container that is asked to stop may take before the engine kills it, in seconds.
const STOP_SECS: &str = "10";

/// The engine of this machine, and its program for files with several containers.
#[derive(Debug, Clone)]
pub(super) struct ComposeEngine {
    engine: Engine,
    /// The program and its first arguments, as `docker compose`.
    compose: Vec<String>,
}

/// A devnet's containers. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Containers {
    engine: Arc<ComposeEngine>,
    site: Arc<ComposeSite>,
    home: PathBuf,
    /// The file by which the containers were made last.
    made: Arc<Mutex<Option<String>>>,
}

/// One node's container.
#[derive(Debug, Clone)]
pub(super) struct Container {
    of: Containers,
    name: String,
}

/// What an engine tells about a running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inspected {
    pub(super) pid: u32,
    pub(super) address: IpAddr,
    /// Where this machine reaches the port of the control API; `None`: it has none.
    pub(super) api: Option<SocketAddr>,
}

impl ComposeEngine {
    /// Finds the engine. `mark` is the folder that marks its processes.
    async fn find(mark: &Path) -> Result<Self, String> {
        let mut tried = Vec::new();
        for choice in [Choice::Docker, Choice::Podman] {
            match Engine::find(choice, mark).await {
                Ok(Some(engine)) => match Self::compose(&engine, mark).await {
                    Some(compose) => return Ok(Self { engine, compose }),
                    None => tried.push(format!("{} has no `compose`", engine.name())),
                },
                Ok(None) => {}
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(format!("no engine for `hosts: compose`: {}", tried.join("; ")))
    }

    async fn compose(engine: &Engine, mark: &Path) -> Option<Vec<String>> {
        let path = env::var_os("PATH").unwrap_or_default();
        let program = engine.program().display().to_string();
        let own = [program.as_str(), "compose"].map(str::to_owned).to_vec();
        let is_podman = engine.name().starts_with("podman");
        let other = if is_podman { "podman-compose" } else { "docker-compose" };
        let other = locate(other, &path).map(|at| vec![at.display().to_string()]);
        for compose in [Some(own), other].into_iter().flatten() {
            let mut args: Vec<_> = compose[1..].iter().map(String::as_str).collect();
            args.push("version");
            let said = Engine::run(Path::new(&compose[0]), &args, mark, COMMAND_LIMIT).await;
            if said.is_ok() {
                return Some(compose);
            }
        }
        None
    }
}

impl Containers {
    /// The containers of a devnet. Those of an earlier run of it are removed.
    pub(super) async fn new(home: &DevnetHome) -> Result<Self, String> {
        let engine = ComposeEngine::find(home.path()).await?;
        let (dir, nodes) = (home.compose_path(), home.nodes_path());
        let site = ComposeSite::new(dir, nodes, home.name(), engine.engine.user());
        let site = ComposeSite { supervised: true, ..site };
        let home = home.path().to_owned();
        let (engine, site, made) = (Arc::new(engine), Arc::new(site), Arc::default());
        let all = Self { engine, site, home, made };
        all.remove().await?;
        Ok(all)
    }

    /// Writes the files, and makes the containers that are new or to be other ones. They do not run
    /// yet.
    pub(super) async fn make(&self, devnet: &ContainerDevnet<'_>) -> Result<(), String> {
        let image = devnet.image.to_string();
        let known = self.engine(&["image", "inspect", "--format", "{{.Id}}", &image]).await;
        known.map_err(|error| {
            format!("there is no image `{image}`: docker build --tag {image} . makes it ({error})")
        })?;
        let file = self.site.dir.join(COMPOSE_FILE);
        self.site.write(devnet).map_err(|error| error.to_string())?;
        let now = files::read_if_there(&file).map_err(|error| error.to_string())?;
        let as_before = *self.made.lock() == now;
        if !as_before {
            self.compose(&["up", "--no-start"]).await?;
            *self.made.lock() = now;
        }
        Ok(())
    }

    /// Stops and removes all containers with their network; the nodes' data stays.
    pub(super) async fn remove(&self) -> Result<(), String> {
        let file = self.site.dir.join(COMPOSE_FILE);
        if !file.is_file() {
            return Ok(());
        }
        let down = ["down", "--volumes", "--remove-orphans", "--timeout", STOP_SECS];
        self.compose(&down).await?;
        // Without it there is nothing to remove.
        files::remove_file(&file).map_err(|error| error.to_string())
    }

    pub(super) fn of(&self, node: &Name) -> Container {
        Container { of: self.clone(), name: self.site.container(node) }
    }

    /// The certificate that the nodes' control APIs are verified with, PEM.
    pub(super) fn authority(&self) -> Result<Vec<u8>, String> {
        let path = self.site.dir.join("shared/ca.pem");
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    async fn engine(&self, args: &[&str]) -> Result<String, AskError> {
        Engine::run(self.engine.engine.program(), args, &self.home, COMMAND_LIMIT).await
    }

    async fn compose(&self, args: &[&str]) -> Result<(), String> {
        let file = self.site.dir.join(COMPOSE_FILE).display().to_string();
        let compose = &self.engine.compose;
        let mut all: Vec<_> = compose[1..].iter().map(String::as_str).collect();
        all.extend(["--project-name", &self.site.project, "--file", &file]);
        all.extend(args);
        let said = Engine::run(Path::new(&compose[0]), &all, &self.home, COMPOSE_LIMIT).await;
        said.map(drop).map_err(|error| format!("{}: {error}", compose.join(" ")))
    }
}

impl Container {
    /// The command that starts it, and has its input and output until it ends.
    pub(super) fn attached(&self) -> Command {
        let mut command = Command::new(self.of.engine.engine.program());
        command.args(["start", "--attach", "--interactive", &self.name]);
        command
    }

    async fn say(&self, args: &[&str]) {
        let args = [args, &[&self.name]].concat();
        // An error: it has ended.
        if let Err(error) = self.of.engine(&args).await {
            tracing::debug!(container = %self.name, %error, "not {}", args[0]);
        }
    }

    pub(super) async fn kill(&self) {
        self.say(&["kill"]).await;
    }

    pub(super) async fn stop(&self) {
        // A paused one does not hear.
        self.say(&["unpause"]).await;
        self.say(&["stop", "--time", STOP_SECS]).await;
    }

    pub(super) async fn freeze(&self, frozen: bool) {
        self.say(&[if frozen { "pause" } else { "unpause" }]).await;
    }

    /// Changes the capacity of the runner in it by its own command, `None` if that does not answer.
    pub(super) async fn steer(
        &self,
        devnet: &DevnetHome,
        runner: &Name,
        steer: &Steer,
    ) -> Option<Result<RunnerLoad, ApiError>> {
        if let Steer::Answer(..) = steer {
            let what = "runners in containers and pods take no answers by hand";
            let hint = "use a runner of the devnet's process, or one in a process of its own";
            return Some(Err(ApiError::conflict(what).hint(hint)));
        }
        let mut load = None;
        for command in steer_words(runner.as_str(), steer) {
            let devnet = devnet.name().as_str();
            let begin = ["exec", &self.name, "cowboyctl", "--devnet", devnet, "--output", "json"];
            let mut all = [&begin[..], &["runner"]].concat();
            all.extend(command.iter().map(String::as_str));
            match self.of.engine(&all).await {
                Ok(said) => load = serde_json::from_str(&said).ok(),
                Err(error) => return Some(Err(ApiError::conflict(error.to_string()))),
            }
        }
        load.map(Ok)
    }

    pub(super) async fn inspect(&self) -> Result<Inspected, String> {
        let told = self.of.engine(&["container", "inspect", &self.name]).await;
        inspected(&told.map_err(|error| format!("{}: {error}", self.name))?)
            .ok_or_else(|| format!("{}: the engine does not tell where it is", self.name))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ToldContainer {
    state: ToldState,
    network_settings: ToldNetworks,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ToldState {
    pid: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ToldNetworks {
    networks: BTreeMap<String, ToldNetwork>,
    #[serde(default)]
    ports: BTreeMap<String, Option<Vec<ToldPort>>>,
}

#[derive(Deserialize)]
struct ToldNetwork {
    #[serde(rename = "IPAddress")]
    address: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ToldPort {
    host_ip: String,
    host_port: String,
}

/// Reads the answer of `container inspect`.
fn inspected(text: &str) -> Option<Inspected> {
    let told = serde_json::from_str::<Vec<ToldContainer>>(text).ok()?.pop()?;
    let mut addresses = told.network_settings.networks.values();
    let address = addresses.find_map(|network| network.address.parse().ok())?;
    let ports = told.network_settings.ports.get(&format!("{API_PORT}/tcp"));
    let port = |port: &ToldPort| {
        Some(SocketAddr::new(port.host_ip.parse().ok()?, port.host_port.parse().ok()?))
    };
    let api = ports.and_then(|ports| ports.as_ref()?.iter().find_map(port));
    Some(Inspected { pid: told.state.pid, address, api })
}

/// The commands below `cowboyctl runner` that change a runner's capacity and print it.
pub(super) fn steer_words(runner: &str, steer: &Steer) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let change = |change: &str, labels: Vec<String>| {
        let begin = ["capability", change, runner].map(str::to_owned);
        begin.into_iter().chain(labels).collect()
    };
    match steer {
        Steer::Look => vec![words(&["backpressure", runner])],
        Steer::Pause => vec![words(&["pause", runner])],
        Steer::Resume => vec![words(&["resume", runner])],
        Steer::Limit(most) => vec![words(&["backpressure", runner, "--max", &most.to_string()])],
        Steer::Change(add, remove) => {
            let changes = [("add", labels(add)), ("remove", labels(remove))];
            let changes = changes.into_iter().filter(|(_, labels)| !labels.is_empty());
            changes.map(|(what, labels)| change(what, labels)).collect()
        }
        // No command gives it there.
        Steer::Answer(..) => Vec::new(),
    }
}

pub(super) fn labels(abilities: &BTreeSet<Ability>) -> Vec<String> {
    abilities.iter().map(Ability::to_string).collect()
}

/// Removes the containers that a killed devnet has left.
pub(super) async fn remove_left(home: &DevnetHome) -> Result<(), String> {
    match home.compose_path().join(COMPOSE_FILE).is_file() {
        true => Containers::new(home).await.map(drop),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_tells_where_a_container_is() {
        let text = r#"[{"State": {"Pid": 4711, "Status": "running"}, "NetworkSettings": {
            "Ports": {"9002/tcp": [{"HostIp": "127.0.0.1", "HostPort": "49153"}], "80/tcp": null},
            "Networks": {"local_default": {"IPAddress": "172.18.0.3", "Gateway": "172.18.0.1"}}}}]"#;
        let expected = Inspected {
            pid: 4_711,
            address: [172, 18, 0, 3].into(),
            api: Some(([127, 0, 0, 1], 49_153).into()),
        };
        assert_eq!(inspected(text), Some(expected));
        assert_eq!(inspected("[]"), None);
        assert_eq!(inspected(&text.replace("172.18.0.3", "")), None, "it does not run");
    }
}
