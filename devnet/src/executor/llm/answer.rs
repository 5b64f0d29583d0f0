//! Assembles an answer from its parts.

use super::super::{Bounded, ExecutorError};
use cowboy_host::process::TaskProgress;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A chunk of a streamed answer, or a whole answer, with the fields that are used.
#[derive(Debug, Deserialize)]
pub(super) struct ChatCompletion {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// In a chunk.
    delta: Option<Said>,
    /// In a whole answer.
    message: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Said {
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct TokenUsage {
    completion_tokens: Option<u64>,
}

impl ChatCompletion {
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| format!("not an answer: {error}"))
    }

    pub(super) fn error(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        Some(message(error).unwrap_or_else(|| error.to_string()))
    }
}

/// The message of an error document: its `message`, or the `message` in its `error`.
pub(super) fn message(error: &Value) -> Option<String> {
    let inner = error.get("error").unwrap_or(error);
    let text = inner.get("message").unwrap_or(inner).as_str()?;
    Some(text.to_owned())
}

pub(super) struct Answer {
    text: Bounded,
    max_tokens: Option<u32>,
    /// Number of text pieces so far: an endpoint sends about one per token.
    pieces: u64,
    /// Number of tokens so far, if the endpoint says.
    tokens: Option<u64>,
    finish_reason: Option<String>,
    /// Whether any text arrived, even an empty one.
    said: bool,
}

impl Answer {
    pub(super) const fn new(limit: usize, max_tokens: Option<u32>) -> Self {
        Self {
            text: Bounded::new(limit),
            max_tokens,
            pieces: 0,
            tokens: None,
            finish_reason: None,
            said: false,
        }
    }

    pub(super) fn add(&mut self, completion: ChatCompletion) -> Result<(), ExecutorError> {
        if let Some(tokens) = completion.usage.and_then(|usage| usage.completion_tokens) {
            self.tokens = Some(tokens);
        }
        // The request asks for one answer.
        let Some(choice) = completion.choices.into_iter().next() else { return Ok(()) };
        if let Some(text) = choice.delta.or(choice.message).and_then(|said| said.content) {
            self.said = true;
            self.pieces += u64::from(!text.is_empty());
            self.text.push(text.as_bytes())?;
        }
        if choice.finish_reason.is_some() {
            self.finish_reason = choice.finish_reason;
        }
        Ok(())
    }

    pub(super) fn detail(&self) -> Option<String> {
        match self.tokens.unwrap_or(self.pieces) {
            0 => None,
            1 => Some("1 token".to_owned()),
            tokens => Some(format!("{tokens} tokens")),
        }
    }

    /// Progress as a share of `max_tokens`, if known. Below 100 until the answer ends.
    pub(super) fn progress(&self) -> TaskProgress {
        let tokens = self.tokens.unwrap_or(self.pieces);
        let percent =
            self.max_tokens.map_or(0, |most| tokens.saturating_mul(100) / u64::from(most.max(1)));
        TaskProgress { percent: percent.min(99) as u8, detail: self.detail() }
    }

    /// The text, if it is complete.
    pub(super) fn end(self) -> Result<String, String> {
        let Some(reason) = self.finish_reason else {
            return Err("the answer broke off: it has no finish reason".to_owned());
        };
        match reason.as_str() {
            "stop" => {}
            "length" if self.max_tokens.is_some() => {}
            "length" => {
                return Err(
                    "the answer was cut off (finish reason `length`), and the job sets no \
                            max_tokens"
                        .to_owned(),
                );
            }
            _ => return Err(format!("the answer is not whole (finish reason `{reason}`)")),
        }
        if !self.said {
            return Err("the answer has no text".to_owned());
        }
        String::from_utf8(self.text.bytes).map_err(|error| error.to_string())
    }
}

#[derive(Deserialize)]
struct Embeddings<'a> {
    #[serde(borrow)]
    data: Vec<Embedding<'a>>,
}

#[derive(Deserialize)]
struct Embedding<'a> {
    #[serde(borrow)]
    embedding: Vec<&'a RawValue>,
}

/// The embedding in a response: a list of numbers as the endpoint wrote them, without whitespace.
pub(super) fn embedding(body: &[u8]) -> Result<Box<RawValue>, String> {
    let response: Embeddings<'_> =
        serde_json::from_slice(body).map_err(|error| format!("no embedding: {error}"))?;
    let [Embedding { embedding }] = response.data.as_slice() else {
        return Err(format!("{} embeddings, expected 1", response.data.len()));
    };
    if embedding.is_empty() {
        return Err("an embedding without numbers".to_owned());
    }
    let is_number =
        |value: &&RawValue| value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    if !embedding.iter().all(is_number) {
        return Err("an embedding of values other than numbers".to_owned());
    }
    let numbers: Vec<_> = embedding.iter().map(|value| value.get()).collect();
    RawValue::from_string(format!("[{}]", numbers.join(","))).map_err(|error| error.to_string())
}
