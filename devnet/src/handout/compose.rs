//! A devnet as a file for `docker compose` or `podman-compose`.
//!
//! Every container runs as the user who wrote the files, which are readable by that user only. The
//! nodes reach each other by the names of their services; of the host's addresses only the loopback
//! has a port for each control API.

use super::{
    SUPERVISED,
    authority::AuthorityError,
    containers::{
        API_PORT, ContainerDevnet, ContainerRunner, ContainerValidator, HOME, OWN, SHARED,
    },
    manifest,
};
use crate::topology::{Name, ProcessPlan};
use cowboy_engine::primitives::keccak256;
use cowboy_host::files::{create_private_dir, write_private};
use serde::Serialize;
use std::{collections::BTreeMap, os::unix::ffi::OsStrExt as _, path::PathBuf};

/// The file's name.
pub const COMPOSE_FILE: &str = "compose.yaml";

/// How long a container may take to stop before it is killed.
const STOP_GRACE: &str = "10s";
/// The most that an engine keeps of a container's output.
const LOG_SIZE: &str = "16m";
const LOG_FILES: &str = "2";

/// Where a devnet's containers are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeSite {
    /// The folder of the file and of what the nodes are given.
    pub dir: PathBuf,
    /// The folder with a folder for each node's own data.
    pub nodes: PathBuf,
    /// The beginning of the containers' names.
    pub project: String,
    /// The user whose rights the containers have, as `1000:1000`.
    pub user: String,
    /// The engine's mode of mapping users; `None`: its own.
    pub user_namespaces: Option<String>,
    /// Whether a devnet's process starts the containers and follows them.
    pub supervised: bool,
}

#[derive(Serialize)]
struct ComposeFile {
    services: BTreeMap<String, ComposeService>,
}

#[derive(Serialize)]
struct ComposeService {
    image: String,
    container_name: String,
    command: Vec<String>,
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    userns_mode: Option<String>,
    init: bool,
    environment: BTreeMap<String, Option<String>>,
    volumes: Vec<Bind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<BTreeMap<String, Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    healthcheck: Option<HealthCheck>,
    restart: &'static str,
    stop_grace_period: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stdin_open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpuset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mem_limit: Option<u64>,
    ulimits: BTreeMap<&'static str, i64>,
    cap_drop: [&'static str; 1],
    security_opt: [&'static str; 1],
    logging: Logging,
}

#[derive(Serialize)]
struct Bind {
    r#type: &'static str,
    source: PathBuf,
    target: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
}

#[derive(Serialize)]
struct Condition {
    condition: &'static str,
}

#[derive(Serialize)]
struct HealthCheck {
    test: Vec<String>,
    interval: &'static str,
    timeout: &'static str,
    retries: u32,
}

#[derive(Serialize)]
struct Logging {
    options: BTreeMap<&'static str, &'static str>,
}

impl ComposeSite {
    /// A site in this folder. `options` are those of the engine that give a container the rights of
    /// this process' user.
    pub fn new(dir: PathBuf, nodes: PathBuf, devnet: &Name, options: &[String]) -> Self {
        let after = |option: &str| {
            let at = options.iter().position(|given| given == option)?;
            options.get(at + 1).cloned()
        };
        // Another folder may have a devnet of this name.
        let place = keccak256(&[dir.as_os_str().as_bytes()]);
        Self {
            project: format!("cowboyctl-{devnet}-{}", hex::encode(&place.0[..4])),
            user: after("--user").unwrap_or_else(|| "0:0".to_owned()),
            user_namespaces: after("--userns"),
            supervised: false,
            dir,
            nodes,
        }
    }

    /// The name of a node's container.
    pub fn container(&self, node: &Name) -> String {
        format!("{}-{node}", self.project)
    }

    /// Writes the file and all that it refers to.
    pub fn write(&self, devnet: &ContainerDevnet<'_>) -> Result<(), AuthorityError> {
        devnet.write(&self.dir, Name::to_string)?;
        let names = devnet.validators.iter().map(|validator| &validator.name);
        for name in names.chain(devnet.runners.iter().map(|runner| &runner.name)) {
            // The engine would make it for root.
            create_private_dir(&self.nodes.join(name.as_str()))?;
        }
        Ok(write_private(&self.dir.join(COMPOSE_FILE), &self.text(devnet))?)
    }

    fn text(&self, devnet: &ContainerDevnet<'_>) -> String {
        let validators = devnet
            .validators
            .iter()
            .map(|validator| (validator.name.to_string(), self.validator(devnet, validator)));
        let runners = devnet
            .runners
            .iter()
            .map(|runner| (runner.name.to_string(), self.runner(devnet, runner)));
        let file = ComposeFile { services: validators.chain(runners).collect() };
        let yaml = manifest::yaml(&file);
        let (name, image) = (&devnet.document.name, devnet.image);
        let about = match self.supervised {
            true => "It is written and used by `cowboyctl devnet up`.".to_owned(),
            false => format!(
                "docker compose up --detach\n\
                 # The image is built from the Dockerfile of cowboyctl: docker build --tag {image} .\n\
                 # Nodes have their data in nodes/, where `docker compose down` leaves it."
            ),
        };
        format!("# Devnet `{name}`, a container for each node. {about}\n{yaml}")
    }

    fn validator(
        &self,
        devnet: &ContainerDevnet<'_>,
        validator: &ContainerValidator,
    ) -> ComposeService {
        let name = &validator.name;
        let mut command = devnet.arguments(validator);
        if self.supervised {
            command.extend([SUPERVISED, "--output", "jsonl"].map(str::to_owned));
        }
        let ask = ["CMD", "cowboyctl", "--devnet", name.as_str(), "chain", "head", "--quiet"];
        let health = HealthCheck {
            test: ask.map(str::to_owned).into(),
            interval: "5s",
            timeout: "10s",
            retries: 12,
        };
        ComposeService {
            ports: vec![format!("127.0.0.1::{API_PORT}")],
            healthcheck: Some(health).filter(|_| !self.supervised),
            ..self.service(
                devnet,
                (name, &validator.process),
                ("validators", format!("{HOME}/{name}")),
                command,
            )
        }
    }

    fn runner(&self, devnet: &ContainerDevnet<'_>, runner: &ContainerRunner) -> ComposeService {
        let mut command = runner.arguments();
        if self.supervised {
            command.extend([SUPERVISED, "--output", "jsonl"].map(str::to_owned));
        }
        let variable = runner.executors.llm.as_ref().and_then(|llm| llm.api_key_env.as_ref());
        let place = ("runners", HOME.to_owned());
        let mut service = self.service(devnet, (&runner.name, &runner.process), place, command);
        // Its value comes from the environment of `docker compose`.
        service.environment.extend(variable.map(|name| (name.as_str().to_owned(), None)));
        let healthy = || Condition { condition: "service_healthy" };
        let after = devnet.validators.iter().map(|one| (one.name.to_string(), healthy()));
        service.depends_on = (!self.supervised).then(|| after.collect());
        service
    }

    fn service(
        &self,
        devnet: &ContainerDevnet<'_>,
        (name, process): (&Name, &ProcessPlan),
        (kind, data): (&str, String),
        command: Vec<String>,
    ) -> ComposeService {
        let bind = |source: PathBuf, target: String, read_only| Bind {
            r#type: "bind",
            source,
            target,
            read_only,
        };
        let here = PathBuf::from(".");
        let own = here.join(kind).join(name.as_str());
        let below = self.nodes.strip_prefix(&self.dir).map(|nodes| here.join(nodes));
        let nodes = below.unwrap_or_else(|_| self.nodes.clone());
        let mut volumes = vec![
            bind("./shared".into(), SHARED.to_owned(), true),
            bind(own, OWN.to_owned(), true),
            bind(nodes.join(name.as_str()), data, false),
        ];
        if let Some(binary) = &process.binary {
            volumes.push(bind(binary.clone(), "/usr/local/bin/cowboyctl".to_owned(), true));
        }
        let own = [("COWBOYCTL_HOME", HOME), ("HOME", HOME)];
        let own = own.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
        // A dollar sign begins a variable of the file.
        let given = process.env.iter().map(|(name, value)| (name, value.replace('$', "$$")));
        let given = given.map(|(name, value)| (name.clone(), Some(value)));
        let restarts = process.restart && !self.supervised;
        let core = if process.core_dumps { -1 } else { 0 };
        ComposeService {
            image: devnet.image.to_string(),
            container_name: self.container(name),
            command,
            user: self.user.clone(),
            userns_mode: self.user_namespaces.clone(),
            init: true,
            environment: own.into_iter().chain(given).collect(),
            volumes,
            ports: Vec::new(),
            depends_on: None,
            healthcheck: None,
            restart: if restarts { "on-failure" } else { "no" },
            stop_grace_period: STOP_GRACE,
            stdin_open: self.supervised,
            cpuset: process.cpus.as_ref().map(ToString::to_string),
            mem_limit: process.memory.map(|size| size.0),
            ulimits: [("core", core)].into(),
            cap_drop: ["ALL"],
            security_opt: ["no-new-privileges:true"],
            logging: Logging { options: [("max-size", LOG_SIZE), ("max-file", LOG_FILES)].into() },
        }
    }
}
