//! The configured MCP servers.

use super::super::{
    http::{origin, server_url},
    secrets::Secrets,
};
use cowboy_engine::registry::{MAX_NAME_BYTES, MAX_NAMES};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// MCP servers by name: at most [`MAX_NAMES`], each name of 1 to [`MAX_NAME_BYTES`] bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Server>", into = "BTreeMap<String, Server>")]
pub struct Servers(pub BTreeMap<String, Server>);

impl TryFrom<BTreeMap<String, Server>> for Servers {
    type Error = String;

    fn try_from(servers: BTreeMap<String, Server>) -> Result<Self, String> {
        if servers.len() > MAX_NAMES {
            return Err(format!("{} servers: expected at most {MAX_NAMES}", servers.len()));
        }
        if !servers.keys().all(|name| (1..=MAX_NAME_BYTES).contains(&name.len())) {
            return Err(format!(
                "a server's name is empty or too long: expected 1 to {MAX_NAME_BYTES} bytes"
            ));
        }
        Ok(Self(servers))
    }
}

impl From<Servers> for BTreeMap<String, Server> {
    fn from(servers: Servers) -> Self {
        servers.0
    }
}

impl Servers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The way to reach a server.
///
/// Written as `{ command: [PROGRAM, ARGUMENT…], env: { NAME: VALUE } }`, with an optional `env`, or
/// as `{ url: URL }`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ServerFields", into = "ServerFields")]
pub enum Server {
    /// A program, started for each job, that speaks over its standard input and output.
    Command {
        /// The program, looked up in the runner's PATH.
        program: String,
        args: Vec<String>,
        /// Its environment, in addition to PATH.
        env: BTreeMap<String, String>,
    },
    /// A running server, reached over streamable HTTP.
    Url(Url),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl TryFrom<ServerFields> for Server {
    type Error = String;

    fn try_from(fields: ServerFields) -> Result<Self, String> {
        match (fields.command, fields.url) {
            (Some(command), None) => {
                let mut words = command.into_iter();
                let program = words.next().filter(|program| !program.is_empty());
                let program = program.ok_or("command names no program")?;
                Ok(Self::Command { program, args: words.collect(), env: fields.env })
            }
            (None, Some(url)) if fields.env.is_empty() => Ok(Self::Url(server_url(&url)?)),
            (None, Some(_)) => Err("env goes with command; a server at a url has its own".into()),
            _ => Err("expected either command or url".into()),
        }
    }
}

impl From<Server> for ServerFields {
    fn from(server: Server) -> Self {
        match server {
            Server::Command { program, mut args, env } => {
                args.insert(0, program);
                Self { command: Some(args), env, url: None }
            }
            Server::Url(url) => Self { command: None, env: BTreeMap::new(), url: Some(url.into()) },
        }
    }
}

impl Server {
    pub(super) fn secrets(&self) -> Secrets {
        match self {
            Self::Command { args, env, .. } => {
                Secrets::of_values(args.iter().chain(env.values()).map(Cow::from))
            }
            Self::Url(url) => Secrets::of_url(url),
        }
    }
}

/// Shows no secrets: no arguments, environment values or URL path.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, .. } => write!(f, "Command({program:?}, …)"),
            Self::Url(url) => write!(f, "Url({}/…)", origin(url)),
        }
    }
}
