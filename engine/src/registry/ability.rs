//! Labels: names for what a job may need of a runner in addition to room and money.
//!
//! A runner registers with some of them, and tells its validators which of these it cannot do for a
//! while. Draws and rejections use the same names.

use super::{Capabilities, JobKind};
use crate::presence::view;
use std::{fmt, str::FromStr};

/// Maximum length of a label, in bytes: that of a name on the wire.
pub const MAX_LABEL_BYTES: usize = 128;

/// A runner's capability or membership. As text: `http`, `llm:MODEL`, `mcp:SERVER`, `tee`,
/// `pool:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    Kind(JobKind),
    /// `llm` jobs that name this model, for answers or embeddings.
    Model(String),
    Server(String),
    /// Jobs that require a trusted execution environment.
    Tee,
    Pool(String),
}

/// Why a text is not a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbilityError {
    #[error(
        "`{0}` is not a label: expected a kind (llm, http, mcp, eth_send, custom), llm:MODEL, \
         mcp:SERVER, tee or pool:NAME"
    )]
    Unknown(String),
    #[error("a label of {0} bytes: the maximum is {MAX_LABEL_BYTES}")]
    TooLong(usize),
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Model(model) => write!(f, "{}:{model}", JobKind::Llm),
            Self::Server(server) => write!(f, "{}:{server}", JobKind::Mcp),
            Self::Tee => f.write_str("tee"),
            Self::Pool(pool) => write!(f, "{}{pool}", view::POOL_PREFIX),
        }
    }
}

impl FromStr for Ability {
    type Err = AbilityError;

    fn from_str(text: &str) -> Result<Self, AbilityError> {
        if text.len() > MAX_LABEL_BYTES {
            return Err(AbilityError::TooLong(text.len()));
        }
        let unknown = || AbilityError::Unknown(text.to_owned());
        Ok(match text.split_once(':') {
            None if text == "tee" => Self::Tee,
            None => Self::Kind(text.parse().map_err(|_| unknown())?),
            Some((_, "")) => return Err(unknown()),
            Some(("llm", model)) => Self::Model(model.to_owned()),
            Some(("mcp", server)) => Self::Server(server.to_owned()),
            Some(("pool", pool)) => Self::Pool(pool.to_owned()),
            Some(_) => return Err(unknown()),
        })
    }
}

/// The label as validators know it.
impl From<&Ability> for view::Label {
    fn from(ability: &Ability) -> Self {
        match ability {
            Ability::Pool(pool) => Self::Entitlement(pool.clone()),
            other => Self::Capability(other.to_string()),
        }
    }
}

impl Capabilities {
    /// Whether a runner registered with these capabilities may be drawn for a job that needs
    /// `ability`. Always true for pools, which are not part of the registration.
    pub fn has(&self, ability: &Ability) -> bool {
        let named = |kind, names: &Option<Vec<String>>, name| {
            self.kinds.contains(&kind) && names.as_ref().is_none_or(|names| names.contains(name))
        };
        match ability {
            Ability::Kind(kind) => self.kinds.contains(kind),
            Ability::Model(model) => named(JobKind::Llm, &self.models, model),
            Ability::Server(server) => named(JobKind::Mcp, &self.mcp_servers, server),
            Ability::Tee => self.tee,
            Ability::Pool(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_as_it_is_written() {
        let labels = ["llm", "http", "mcp", "eth_send", "custom", "llm:a:b", "mcp:files", "tee"];
        for text in labels.into_iter().chain(["pool:eu"]) {
            assert_eq!(text.parse::<Ability>().unwrap().to_string(), text);
        }
        for text in ["", "fax", "LLM", "llm:", "pool:", "http:x", ":", "tee:", " tee"] {
            let error = text.parse::<Ability>().unwrap_err();
            assert_eq!(error, AbilityError::Unknown(text.to_owned()));
        }
        let longest = format!("llm:{}", "x".repeat(MAX_LABEL_BYTES - 4));
        assert!(longest.parse::<Ability>().is_ok());
        let long = format!("{longest}x").parse::<Ability>();
        assert_eq!(long, Err(AbilityError::TooLong(MAX_LABEL_BYTES + 1)));
    }

    #[test]
    fn names_count_where_a_runner_names_some() {
        let mut capabilities = Capabilities::of(vec![JobKind::Llm], 1);
        let check = |capabilities: &Capabilities, text: &str, expected| {
            assert_eq!(capabilities.has(&text.parse().unwrap()), expected, "{text}");
        };
        for (text, expected) in [
            ("llm", true),
            ("http", false),
            ("llm:any", true),
            ("mcp:any", false),
            ("tee", false),
            ("pool:any", true),
        ] {
            check(&capabilities, text, expected);
        }
        capabilities.models = Some(vec!["small".to_owned()]);
        capabilities.tee = true;
        for (text, expected) in [("llm:small", true), ("llm:any", false), ("tee", true)] {
            check(&capabilities, text, expected);
        }
    }
}
