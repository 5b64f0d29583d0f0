//! The operator's configuration of kinds of jobs that need more than a request: in a topology as
//! `runners[].executors`, and in a file for a runner in a separate process.
//!
//! ```yaml
//! llm:
//!   base_url: http://127.0.0.1:8080/v1
//!   api_key_env: OPENAI_API_KEY
//!   models: {small: qwen2.5-0.5b-instruct}
//!   embedding_models: {embedder: nomic-embed-text}
//! http:
//!   allow_loopback: true
//! ```
//!
//! Keys are not part of it: they are in the environment, and only the variable's name is given
//! here.

#[cfg(test)]
mod tests;

use super::{ethereum, mcp, secrets::Secrets};
use cowboy_engine::registry::{Capabilities, JobKind, MAX_NAME_BYTES, MAX_NAMES};
use reqwest::{Url, header::HeaderValue};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Maximum length of a model's name, in bytes.
pub const MAX_NAME: usize = MAX_NAME_BYTES;

/// Maximum number of models of each kind for an endpoint; the registry allows twice as many, for
/// both kinds together.
pub const MAX_MODELS: usize = MAX_NAMES / 2;

/// The configuration of a runner's executors. Without its section, a kind of job is not executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `executors`")]
pub struct Config {
    #[serde(skip_serializing_if = "Http::is_default")]
    pub http: Http,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm: Option<Llm>,
    #[serde(skip_serializing_if = "mcp::Servers::is_empty")]
    pub mcp: mcp::Servers,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth: Option<ethereum::NodeEndpoint>,
    /// Whether jobs of every kind wait for a result that `job answer` gives, instead of being
    /// executed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
}

impl Config {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The kinds of jobs that can be executed: `http` and `custom` always, all of them by hand.
    pub fn kinds(&self) -> BTreeSet<JobKind> {
        if self.by_hand {
            return JobKind::ALL.into();
        }
        let llm = self.llm.is_some().then_some(JobKind::Llm);
        let mcp = (!self.mcp.is_empty()).then_some(JobKind::Mcp);
        let eth = self.eth.is_some().then_some(JobKind::EthSend);
        let always = [JobKind::Http, JobKind::Custom];
        always.into_iter().chain(llm).chain(mcp).chain(eth).collect()
    }

    /// The capabilities that a runner registers if it takes jobs of `kinds`, at most
    /// `max_concurrent_jobs` at a time. For `llm` and `mcp` they list the configured models and
    /// servers, so that it is not drawn for jobs that need others.
    pub fn capabilities(&self, kinds: BTreeSet<JobKind>, max_concurrent_jobs: u32) -> Capabilities {
        let listed = |kind, names: BTreeSet<&str>| {
            let named = kinds.contains(&kind) && !self.by_hand;
            named.then(|| names.into_iter().map(str::to_owned).collect())
        };
        let models = self.llm.iter().flat_map(Llm::names);
        Capabilities {
            models: listed(JobKind::Llm, models.collect()),
            mcp_servers: listed(JobKind::Mcp, self.mcp.names().collect()),
            ..Capabilities::of(kinds.into_iter().collect(), max_concurrent_jobs)
        }
    }

    /// The configuration that is missing for jobs of this kind; `None` if it is complete.
    pub fn lacks(&self, kind: JobKind) -> Option<&'static str> {
        if self.kinds().contains(&kind) {
            return None;
        }
        Some(match kind {
            JobKind::Llm => "an OpenAI-compatible endpoint in `llm`: base_url and models",
            JobKind::Mcp => "a server in `mcp`: its command, or its url",
            JobKind::EthSend => "an Ethereum node in `eth`: its url",
            JobKind::Http | JobKind::Custom => unreachable!("they need nothing"),
        })
    }
}

/// `http`: the hosts that jobs' requests may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `http`")]
pub struct Http {
    /// Whether requests may go to the runner's own machine, where the control API listens and other
    /// services may trust every local client.
    pub allow_loopback: bool,
}

impl Http {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// `llm`: an endpoint that speaks OpenAI's HTTP API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of `llm`")]
pub struct Llm {
    /// The URL to which `/chat/completions` and `/embeddings` are appended.
    pub base_url: BaseUrl,
    /// The environment variable with the endpoint's key; `None` if it needs no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<Variable>,
    /// Chat models by the names that jobs use, with the endpoint's own names: at least one.
    pub models: Models<1>,
    /// Embedding models, in the same form.
    #[serde(default, skip_serializing_if = "Models::is_empty")]
    pub embedding_models: Models<0>,
}

impl Llm {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.names().chain(self.embedding_models.names())
    }
}

/// An `http` or `https` URL without user, query or fragment, so that it is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    pub(super) fn join(&self, resource: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{resource}", self.0.path().trim_end_matches('/')));
        url
    }

    /// The error does not repeat the text, which may contain a key.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let url = Url::parse(text)
            .map_err(|_| "not a URL: expected one like http://127.0.0.1:8080/v1")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("neither http nor https: expected one like http://127.0.0.1:8080/v1");
        }
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || url.query().is_some() || url.fragment().is_some() {
            return Err("a URL with more than host, port and path: a key belongs into the \
                        environment, its variable into api_key_env");
        }
        Ok(Self(url))
    }
}

/// The name of an environment variable: ASCII letters, digits and `_`, at most [`MAX_NAME`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable(String);

impl Variable {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The error does not repeat the text, which may be the key itself.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let fits = text.len() <= MAX_NAME
            && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        fits.then(|| Self(text.to_owned())).ok_or(
            "not an environment variable name: expected letters, digits and _, not the key \
             itself",
        )
    }
}

/// Reads a text with `parse`, whose errors are reported at the text's position.
fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: fn(&str) -> Result<T, &'static str>,
) -> Result<T, D::Error> {
    struct ConfigText<T>(fn(&str) -> Result<T, &'static str>);

    impl<T> Visitor<'_> for ConfigText<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.0)(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(ConfigText(parse))
}

impl<'de> Deserialize<'de> for BaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, Self::parse)
    }
}

impl Serialize for BaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, Self::parse)
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Models by the names that jobs use, with the endpoint's own names: at least `MIN`, at most
/// [`MAX_MODELS`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Models<const MIN: usize>(BTreeMap<String, String>);

impl<const MIN: usize> Models<MIN> {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, const MIN: usize> Deserialize<'de> for Models<MIN> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamedServers<const MIN: usize>;

        impl<'de, const MIN: usize> Visitor<'de> for NamedServers<MIN> {
            type Value = Models<MIN>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "{MIN} to {MAX_MODELS} models: the name that jobs use, and the endpoint's, \
                     each of 1 to {MAX_NAME} bytes"
                )
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut models = BTreeMap::new();
                while let Some((name, model)) = map.next_entry::<String, String>()? {
                    if [&name, &model].iter().any(|n| !(1..=MAX_NAME).contains(&n.len())) {
                        return Err(A::Error::custom(format!(
                            "a model's name is empty or too long: expected 1 to {MAX_NAME} bytes"
                        )));
                    }
                    if models.contains_key(&name) {
                        return Err(A::Error::custom(format!("`{name}` appears twice")));
                    }
                    models.insert(name, model);
                    if models.len() > MAX_MODELS {
                        return Err(A::Error::invalid_length(models.len(), &self));
                    }
                }
                if models.len() < MIN {
                    return Err(A::Error::invalid_length(models.len(), &self));
                }
                Ok(Models(models))
            }
        }

        deserializer.deserialize_map(NamedServers)
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("llm.api_key_env: there is no environment variable {0}; set it to the endpoint's key")]
    NoKey(String),
    #[error(
        "llm.api_key_env: the value of the environment variable {0} is not a key; expected visible \
         ASCII characters without quotes and backslashes"
    )]
    NotAKey(String),
}

/// An endpoint's key. It appears only in the header that carries it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ApiKey(String);

impl ApiKey {
    pub(super) fn read(
        name: &Variable,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let name = name.as_str();
        let text = variable(name).ok_or_else(|| ConfigError::NoKey(name.to_owned()))?;
        let text = text.trim();
        // Without characters that JSON escapes, so that it is found when an endpoint repeats it.
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        match !text.is_empty() && text.bytes().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(ConfigError::NotAKey(name.to_owned())),
        }
    }

    pub(super) fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0))
            .expect("a key has visible ASCII characters alone");
        value.set_sensitive(true);
        value
    }

    pub(super) fn secret(&self) -> Secrets {
        Secrets::of_key(&self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([redacted])")
    }
}
