//! What an operator configures of a runner's executors.

use super::{ethereum, mcp};
use serde::{Deserialize, Serialize};

/// The servers that jobs may use. Nothing is configured by default: a runner without an MCP server
/// or an Ethereum endpoint fails such jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// MCP servers, by the names that jobs call them.
    pub mcp: mcp::Servers,
    /// The Ethereum node that transactions are sent to.
    pub eth: Option<ethereum::Endpoint>,
}
