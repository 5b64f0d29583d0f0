//! Asks a language model: an endpoint that speaks OpenAI's HTTP API, as its operator configured it.
//!
//! The answer is asked for as a stream of events, so that progress can be told; an endpoint that
//! answers with one JSON document instead is understood too. The result is the answer's text.
//! Where the job names an embedding model, the text is embedded in a second request, and the result
//! is a JSON object of `text`, `model` (as the job names it) and `embedding`, whose numbers are
//! written as the endpoint wrote them.
//!
//! How an answer ended decides whether it counts:
//!
//! | finish reason | |
//! |---|---|
//! | `stop` | it counts |
//! | `length` | it counts where the job set `max_tokens`, and else was cut off by the endpoint |
//! | `content_filter`, `tool_calls`, any other | it does not: text is missing |
//!
//! The key goes to the configured host alone: redirects are not followed. What the endpoint says
//! of a failure is told without the key, should it repeat it; what it says to a key that it does
//! not take is not told at all, since endpoints repeat parts of it.

mod answer;
#[cfg(test)]
mod tests;

use super::{
    Bounded, ExecutorError, Limits, Progress,
    config::{ApiKey, BaseUrl, ConfigError, Llm, Models},
    http::{self, chain},
    secrets::Secrets,
};
use crate::spelling::Quoted;
use answer::{Answer, Completion};
use reqwest::{
    Method, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use std::time::Instant;

/// The longest line of an event stream, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// What an endpoint may write around an answer in a JSON document, in bytes.
const ENVELOPE: usize = 64 << 10;

/// The most that is read of what an endpoint says of a failure, and the most that is told of it.
const ERROR_READ: usize = 16 << 10;
const ERROR_TOLD: usize = 512;

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The model, by a name that the operator configured.
    pub model: String,
    /// The conversation so far: roles and what was said.
    pub messages: Vec<(String, String)>,
    /// Tokens of the answer at most; `None`: as the endpoint has it.
    pub max_tokens: Option<u32>,
    /// Sampling temperature in thousandths; `None`: as the endpoint has it.
    pub temperature_milli: Option<u32>,
    /// What the endpoint samples with, where it takes one.
    pub seed: Option<u64>,
    /// The model that embeds the answer, by a name that the operator configured.
    pub embedding_model: Option<String>,
}

/// Where models are asked.
#[derive(Debug)]
pub(super) struct Endpoint {
    base_url: BaseUrl,
    key: Option<ApiKey>,
    secrets: Secrets,
    models: Models<1>,
    embedding_models: Models<0>,
    client: http::Client,
}

/// The body of a request for an answer.
#[derive(Serialize)]
struct Chat<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

impl<'a> Message<'a> {
    fn all(messages: &'a [(String, String)]) -> Vec<Self> {
        messages.iter().map(|(role, content)| Self { role, content }).collect()
    }
}

/// The body of a request for an embedding.
#[derive(Serialize)]
struct Embed<'a> {
    model: &'a str,
    input: &'a str,
}

/// The result of a job that names an embedding model; the order of its fields is part of it.
#[derive(Serialize)]
struct Embedded<'a> {
    text: &'a str,
    model: &'a str,
    embedding: &'a RawValue,
}

impl Endpoint {
    /// The endpoint that is configured; `variable` looks up the environment.
    pub(super) fn new(
        config: &Llm,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let Llm { base_url, api_key_env, models, embedding_models } = config.clone();
        let key = api_key_env.map(|name| ApiKey::read(&name, variable)).transpose()?;
        let client = http::Client::not_redirected();
        let secrets = key.as_ref().map(ApiKey::secret).unwrap_or_default();
        Ok(Self { base_url, key, secrets, models, embedding_models, client })
    }

    /// Asks, and reads the answer.
    pub(super) async fn ask(
        &self,
        request: &Request,
        limits: &Limits,
        started: impl FnOnce(Instant) + Send,
        progress: impl Fn(Progress) + Send + Sync,
    ) -> Result<Vec<u8>, ExecutorError> {
        let model = known("model", &self.models, &request.model)?;
        let embedder = match &request.embedding_model {
            None => None,
            Some(name) => Some((name, known("embedding model", &self.embedding_models, name)?)),
        };
        let chat = Chat {
            model,
            messages: Message::all(&request.messages),
            stream: true,
            max_tokens: request.max_tokens,
            temperature: request.temperature_milli.map(|milli| f64::from(milli) / 1_000.0),
            seed: request.seed,
        };
        // Made before the work begins: that takes a moment.
        self.client.get().await?;
        started(Instant::now());
        let mut answer = Answer::new(limits.max_return_bytes, request.max_tokens);
        let mut response = self.post("chat/completions", &chat).await?;
        if is(&response, "text/event-stream") {
            self.stream(&mut response, &mut answer, &progress).await?;
        } else {
            let body = self.document(response, limits).await?;
            let completion = Completion::parse(&body).map_err(|why| self.broken(&why))?;
            self.take(&mut answer, completion)?;
        }
        let detail = answer.detail();
        let text = answer.end().map_err(|why| self.broken(&why))?;
        let result = match embedder {
            None => text.into_bytes(),
            Some((name, model)) => self.embed(&text, (name, model), limits).await?,
        };
        progress(Progress { percent: 100, detail });
        Ok(result)
    }

    /// Reads an answer that comes in events.
    async fn stream(
        &self,
        response: &mut Response,
        answer: &mut Answer,
        progress: &(impl Fn(Progress) + Send + Sync),
    ) -> Result<(), ExecutorError> {
        let url = response.url().clone();
        let mut events = crate::sse::Parser::new(MAX_LINE);
        while let Some(bytes) = response.chunk().await.map_err(|error| failed(&url, error))? {
            let messages = events
                .feed(&bytes)
                .map_err(|_| self.broken(&format!("an event has more than {MAX_LINE} bytes")))?;
            for message in messages {
                if message.data == "[DONE]" {
                    return Ok(());
                }
                let completion =
                    Completion::parse(message.data.as_bytes()).map_err(|why| self.broken(&why))?;
                self.take(answer, completion)?;
            }
            progress(answer.progress());
        }
        Ok(())
    }

    /// Adds a part to an answer.
    fn take(&self, answer: &mut Answer, completion: Completion) -> Result<(), ExecutorError> {
        if let Some(message) = completion.error() {
            let message = self.shown(&message);
            return Err(ExecutorError::Refused { url: self.url().to_string(), message });
        }
        answer.add(completion)
    }

    /// Has a text embedded; `name` and `model` are the job's and the endpoint's for the model.
    async fn embed(
        &self,
        text: &str,
        (name, model): (&str, &str),
        limits: &Limits,
    ) -> Result<Vec<u8>, ExecutorError> {
        let response = self.post("embeddings", &Embed { model, input: text }).await?;
        let body = self.document(response, limits).await?;
        let embedding = answer::embedding(&body).map_err(|why| self.broken(&why))?;
        let embedded = Embedded { text, model: name, embedding: &embedding };
        let result = serde_json::to_vec(&embedded)
            .map_err(|error| self.broken(&format!("no embedding: {error}")))?;
        if result.len() > limits.max_return_bytes {
            return Err(ExecutorError::TooMuchOutput { limit: limits.max_return_bytes });
        }
        Ok(result)
    }

    /// Makes a request, and yields the response where it is one of success.
    async fn post(&self, what: &str, body: &impl Serialize) -> Result<Response, ExecutorError> {
        let url = self.base_url.join(what);
        let body = serde_json::to_vec(body)
            .map_err(|error| ExecutorError::Invalid(format!("no request to {url}: {error}")))?;
        let mut request = reqwest::Request::new(Method::POST, url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.header());
        }
        *request.body_mut() = Some(body.into());
        let client = self.client.get().await?;
        let response = client.execute(request).await.map_err(|error| failed(&url, error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(response);
        }
        let message = match status {
            401 | 403 => String::new(),
            _ => self.complaint(response).await,
        };
        Err(ExecutorError::Answered { url: url.to_string(), status, message })
    }

    /// The whole of a JSON response.
    async fn document(
        &self,
        mut response: Response,
        limits: &Limits,
    ) -> Result<Vec<u8>, ExecutorError> {
        let url = response.url().clone();
        if !is(&response, "application/json") {
            return Err(self.broken("neither application/json nor text/event-stream"));
        }
        let limit = limits.max_return_bytes;
        let mut body = Bounded::new(limit.saturating_add(ENVELOPE));
        while let Some(bytes) = response.chunk().await.map_err(|error| failed(&url, error))? {
            body.push(&bytes).map_err(|_| ExecutorError::TooMuchOutput { limit })?;
        }
        Ok(body.bytes)
    }

    /// What the endpoint says of a failure. What cannot be read of it is left out.
    async fn complaint(&self, mut response: Response) -> String {
        let mut body = Vec::new();
        while body.len() < ERROR_READ
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_READ - body.len())]);
        }
        let text = match serde_json::from_slice::<Value>(&body) {
            Ok(json) => answer::message(&json).unwrap_or_else(|| json.to_string()),
            Err(_) => String::from_utf8_lossy(&body).into_owned(),
        };
        self.shown(&text)
    }

    /// A text of the endpoint's, fit to be shown: without the key, one line, and not long.
    fn shown(&self, text: &str) -> String {
        self.secrets.shown(text, ERROR_TOLD)
    }

    fn broken(&self, why: &str) -> ExecutorError {
        ExecutorError::Request { url: self.url().to_string(), reason: self.shown(why) }
    }

    fn url(&self) -> Url {
        self.base_url.join("")
    }
}

/// The endpoint's name for a model that a job asks for.
fn known<'a, const MIN: usize>(
    what: &str,
    models: &'a Models<MIN>,
    name: &str,
) -> Result<&'a str, ExecutorError> {
    models.get(name).ok_or_else(|| {
        let names: Vec<_> = models.names().collect();
        ExecutorError::Invalid(match names.as_slice() {
            [] => format!("{what} {}: the runner has none", Quoted(name)),
            names => format!("{what} {}: expected one of {}", Quoted(name), names.join(", ")),
        })
    })
}

/// Whether a response says that it is of this type.
fn is(response: &Response, expected: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = given.and_then(|given| given.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(expected))
}

fn failed(url: &Url, error: reqwest::Error) -> ExecutorError {
    ExecutorError::Request { url: url.to_string(), reason: chain(&error.without_url()) }
}
