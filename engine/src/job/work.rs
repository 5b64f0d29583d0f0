//! The work that runners are asked to do (spec jobs.md §2, §7).

use super::json::{Json, Pointer};
use crate::{
    names,
    primitives::codec::{Decode, DecodeError, Encode, Reader, Writer},
    record,
    registry::JobKind,
};

/// Maximum number of blocks that a receipt may wait for: an hour of Ethereum.
pub const MAX_CONFIRMATIONS: u32 = 300;

/// The work, one variant per job kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    Llm(LlmWork),
    Http(HttpWork),
    /// The answer of a tool that is called through the Model Context Protocol.
    Mcp(McpWork),
    /// An Ethereum transaction, signed elsewhere.
    EthSend(EthSendWork),
    /// A command in a fresh directory; its standard output is the result.
    Custom(CommandWork),
}

impl Work {
    /// The kind, for which runners register and by which MRU records are kept.
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Llm(_) => JobKind::Llm,
            Self::Http(_) => JobKind::Http,
            Self::Mcp(_) => JobKind::Mcp,
            Self::EthSend(_) => JobKind::EthSend,
            Self::Custom(_) => JobKind::Custom,
        }
    }
}

/// Parameters of an `llm` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmWork {
    /// The model, by a name that runners register.
    pub model: String,
    pub messages: Vec<LlmMessage>,
    /// Maximum number of tokens in the answer; `None`: the endpoint's default.
    pub max_tokens: Option<u32>,
    /// Sampling temperature in thousandths; `None`: the endpoint's default.
    pub temperature_milli: Option<u32>,
    /// The endpoint's sampling seed, if it takes one.
    pub seed: Option<u64>,
    /// The model that embeds the answer. With it the result is a JSON object of `text`, `model` and
    /// `embedding`, without it the answer's text.
    pub embedding_model: Option<String>,
    /// The JSON Schema of the answer, which the endpoint is asked to keep to.
    pub response_schema: Option<String>,
}
record!(LlmWork {
    model,
    messages,
    max_tokens,
    temperature_milli,
    seed,
    embedding_model,
    response_schema
});

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmMessage {
    /// `system`, `user` or `assistant`.
    pub role: String,
    pub content: String,
}
record!(LlmMessage { role, content });

/// Parameters of an `http` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpWork {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// A JSON pointer (RFC 6901) into the answer; the value at it is the result.
    pub pointer: Option<String>,
}
record!(HttpWork { method, url, headers, body, pointer });

/// Parameters of an `mcp` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpWork {
    /// The server, by a name that runners register.
    pub server: String,
    pub tool: String,
    /// The tool's arguments: a JSON object.
    pub arguments: String,
}
record!(McpWork { server, tool, arguments });

/// Parameters of an `eth_send` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthSendWork {
    /// The signed transaction, as `eth_sendRawTransaction` takes it (EIP-2718).
    pub transaction: Vec<u8>,
    /// Number of blocks that the receipt waits for, including its own; at least 1.
    pub confirmations: u32,
}
record!(EthSendWork { transaction, confirmations });

/// Parameters of a `custom` job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWork {
    /// The program, found through the runner's PATH.
    pub program: String,
    pub args: Vec<String>,
    /// Environment variables in addition to the runner's PATH.
    pub env: Vec<(String, String)>,
    pub stdin: Option<Vec<u8>>,
    /// How the command reaches its executor; `None`: with the job.
    pub delivery: Option<CommandDelivery>,
}
record!(CommandWork { program, args, env, stdin, delivery });

/// A delivery of the command other than with the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandDelivery {
    /// The job's runner hands the command to a pool that works by leases, and is liable for the
    /// result.
    Lease,
}

names!(CommandDelivery: Lease = "lease");

impl Encode for Work {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        self.kind().encode(w);
        match self {
            Self::Llm(work) => work.encode(w),
            Self::Http(work) => work.encode(w),
            Self::Mcp(work) => work.encode(w),
            Self::EthSend(work) => work.encode(w),
            Self::Custom(work) => work.encode(w),
        }
    }
}

impl Decode for Work {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.list(2)? != 2 {
            return Err(DecodeError::Invalid("work is a pair of kind and parameters"));
        }
        match JobKind::decode(r)? {
            JobKind::Llm => Decode::decode(r).map(Self::Llm),
            JobKind::Http => Decode::decode(r).map(Self::Http),
            JobKind::Mcp => Decode::decode(r).map(Self::Mcp),
            JobKind::EthSend => Decode::decode(r).map(Self::EthSend),
            JobKind::Custom => Decode::decode(r).map(Self::Custom),
        }
    }
}

impl Work {
    /// Checks all fields. The error is the first invalid field and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let named = |field, name: &str, expected: &str| match name.is_empty() {
            true => Err((field, format!("is empty; expected {expected}"))),
            false => Ok(()),
        };
        match self {
            Self::Llm(work) => {
                named("work.model", &work.model, "a model's name")?;
                if work.messages.is_empty() {
                    return Err(("work.messages", "is empty; expected at least one".into()));
                }
                let roles = ["system", "user", "assistant"];
                let strange = work.messages.iter().find(|m| !roles.contains(&m.role.as_str()));
                if let Some(LlmMessage { role, .. }) = strange {
                    let problem = format!("has role `{role}`; expected system, user or assistant");
                    return Err(("work.messages", problem));
                }
                if work.max_tokens == Some(0) {
                    return Err(("work.max_tokens", "is 0; expected at least 1".into()));
                }
                match &work.embedding_model {
                    Some(model) => named("work.embedding_model", model, "a model's name"),
                    None => Ok(()),
                }
            }
            Self::Http(work) => {
                if !work.url.starts_with("http://") && !work.url.starts_with("https://") {
                    let problem = format!("is `{}`; expected http:// or https://", work.url);
                    return Err(("work.url", problem));
                }
                if let Some(Err(error)) = work.pointer.as_deref().map(Pointer::parse) {
                    let problem = format!("`{}` {error}", work.pointer.as_deref().unwrap_or(""));
                    return Err(("work.pointer", problem));
                }
                named("work.method", &work.method, "GET, POST, …")
            }
            Self::Mcp(work) => {
                named("work.server", &work.server, "a server's name")?;
                named("work.tool", &work.tool, "a tool's name")?;
                match Json::parse(work.arguments.as_bytes()) {
                    Ok(Json::Object(_)) => Ok(()),
                    Ok(_) => Err(("work.arguments", "is not a JSON object".into())),
                    Err(error) => Err(("work.arguments", format!("is not a JSON object: {error}"))),
                }
            }
            Self::EthSend(work) => {
                if work.transaction.is_empty() {
                    return Err(("work.transaction", "is empty; expected signed bytes".into()));
                }
                if !(1..=MAX_CONFIRMATIONS).contains(&work.confirmations) {
                    let got = work.confirmations;
                    let problem = format!("is {got}; it must lie in 1..={MAX_CONFIRMATIONS}");
                    return Err(("work.confirmations", problem));
                }
                Ok(())
            }
            Self::Custom(work) => named("work.program", &work.program, "a command"),
        }
    }
}
