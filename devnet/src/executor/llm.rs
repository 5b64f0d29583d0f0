//! Asks a language model through the configured endpoint, which speaks OpenAI's HTTP API.
//!
//! The answer is requested as a stream of events, so that progress can be reported; a single JSON
//! document is accepted too. The result is the answer's text. If the job names an embedding model,
//! the text is embedded in a second request, and the result is a JSON object of `text`, `model`
//! (the job's name for it) and `embedding`, with numbers as the endpoint wrote them.
//!
//! The finish reason decides whether an answer is accepted:
//!
//! | finish reason | accepted |
//! |---|---|
//! | `stop` | yes |
//! | `length` | if the job set `max_tokens`; otherwise the endpoint cut it off |
//! | `content_filter`, `tool_calls`, any other | no: text is missing |
//!
//! The key is sent only to the configured host: redirects are not followed. The endpoint's error
//! messages are shown without the key, in case they repeat it. The message for a rejected key is
//! not shown at all, because endpoints repeat parts of the key.

mod answer;
#[cfg(test)]
mod tests;

use super::{
    Bounded, ExecutorError, TaskLimits,
    config::{ApiKey, BaseUrl, ConfigError, Llm, Models},
    http::{self, chain},
    secrets::Secrets,
};
use answer::{Answer, ChatCompletion};
use cowboy_host::{process::TaskProgress, spelling::Quoted};
use reqwest::{
    Method, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use std::time::Instant;

/// Maximum length of a line in an event stream, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// Maximum bytes around the answer in a JSON document.
const ENVELOPE: usize = 64 << 10;

/// Maximum bytes of an endpoint's error message that are read, and that are shown.
const ERROR_READ: usize = 16 << 10;
const ERROR_TOLD: usize = 512;

/// A question to a model of the configured endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmRequest {
    /// The model, by a name that the operator configured.
    pub model: String,
    /// The conversation so far: roles and texts.
    pub messages: Vec<(String, String)>,
    /// Maximum tokens of the answer; `None`: the endpoint's default.
    pub max_tokens: Option<u32>,
    /// Sampling temperature in thousandths; `None`: the endpoint's default.
    pub temperature_milli: Option<u32>,
    pub seed: Option<u64>,
    /// The model that embeds the answer, by a name that the operator configured.
    pub embedding_model: Option<String>,
    /// The JSON Schema of the answer.
    pub response_schema: Option<String>,
}

#[derive(Debug)]
pub(super) struct ModelEndpoint {
    base_url: BaseUrl,
    key: Option<ApiKey>,
    secrets: Secrets,
    models: Models<1>,
    embedding_models: Models<0>,
    client: http::HttpClient,
}

#[derive(Serialize)]
struct Chat<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

/// OpenAI's structured outputs.
#[derive(Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a RawValue,
}

impl<'a> ResponseFormat<'a> {
    fn of(schema: &'a str) -> Result<Self, ExecutorError> {
        let schema = serde_json::from_str(schema)
            .map_err(|error| ExecutorError::Invalid(format!("response_schema: {error}")))?;
        let json_schema = NamedSchema { name: "answer", strict: true, schema };
        Ok(Self { kind: "json_schema", json_schema })
    }
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'a str,
    content: &'a str,
}

impl<'a> ChatMessage<'a> {
    fn all(messages: &'a [(String, String)]) -> Vec<Self> {
        messages.iter().map(|(role, content)| Self { role, content }).collect()
    }
}

#[derive(Serialize)]
struct Embed<'a> {
    model: &'a str,
    input: &'a str,
}

/// The result of a job that names an embedding model; the order of its fields is fixed.
#[derive(Serialize)]
struct Embedded<'a> {
    text: &'a str,
    model: &'a str,
    embedding: &'a RawValue,
}

impl ModelEndpoint {
    pub(super) fn new(
        config: &Llm,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let Llm { base_url, api_key_env, models, embedding_models } = config.clone();
        let key = api_key_env.map(|name| ApiKey::read(&name, variable)).transpose()?;
        let client = http::HttpClient::not_redirected();
        let secrets = key.as_ref().map(ApiKey::secret).unwrap_or_default();
        Ok(Self { base_url, key, secrets, models, embedding_models, client })
    }

    pub(super) async fn ask(
        &self,
        request: &LlmRequest,
        limits: &TaskLimits,
        started: impl FnOnce(Instant) + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, ExecutorError> {
        let model = known("model", &self.models, &request.model)?;
        let embedder = match &request.embedding_model {
            None => None,
            Some(name) => Some((name, known("embedding model", &self.embedding_models, name)?)),
        };
        let schema = request.response_schema.as_deref();
        let chat = Chat {
            model,
            messages: ChatMessage::all(&request.messages),
            stream: true,
            max_tokens: request.max_tokens,
            temperature: request.temperature_milli.map(|milli| f64::from(milli) / 1_000.0),
            seed: request.seed,
            response_format: schema.map(ResponseFormat::of).transpose()?,
        };
        // Created before the work begins, because that takes a moment.
        self.client.get().await?;
        started(Instant::now());
        let mut answer = Answer::new(limits.max_return_bytes, request.max_tokens);
        let mut response = self.post("chat/completions", &chat).await?;
        if is(&response, "text/event-stream") {
            self.stream(&mut response, &mut answer, &progress).await?;
        } else {
            let body = self.document(response, limits).await?;
            let completion = ChatCompletion::parse(&body).map_err(|why| self.broken(&why))?;
            self.take(&mut answer, completion)?;
        }
        let detail = answer.detail();
        let text = answer.end().map_err(|why| self.broken(&why))?;
        let result = match embedder {
            None => text.into_bytes(),
            Some((name, model)) => self.embed(&text, (name, model), limits).await?,
        };
        progress(TaskProgress { percent: 100, detail });
        Ok(result)
    }

    async fn stream(
        &self,
        response: &mut Response,
        answer: &mut Answer,
        progress: &(impl Fn(TaskProgress) + Send + Sync),
    ) -> Result<(), ExecutorError> {
        let url = response.url().clone();
        let mut events = cowboy_host::sse::Parser::new(MAX_LINE);
        while let Some(bytes) = response.chunk().await.map_err(|error| failed(&url, error))? {
            let messages = events
                .feed(&bytes)
                .map_err(|_| self.broken(&format!("an event has more than {MAX_LINE} bytes")))?;
            for message in messages {
                if message.data == "[DONE]" {
                    return Ok(());
                }
                let completion = ChatCompletion::parse(message.data.as_bytes())
                    .map_err(|why| self.broken(&why))?;
                self.take(answer, completion)?;
            }
            progress(answer.progress());
        }
        Ok(())
    }

    fn take(&self, answer: &mut Answer, completion: ChatCompletion) -> Result<(), ExecutorError> {
        if let Some(message) = completion.error() {
            let message = self.shown(&message);
            return Err(ExecutorError::Refused { url: self.url().to_string(), message });
        }
        answer.add(completion)
    }

    /// Embeds a text; `name` and `model` are the job's and the endpoint's names of the model.
    async fn embed(
        &self,
        text: &str,
        (name, model): (&str, &str),
        limits: &TaskLimits,
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

    /// Makes a request and returns the response if its status is a success.
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

    async fn document(
        &self,
        mut response: Response,
        limits: &TaskLimits,
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

    /// The endpoint's error message. Parts that cannot be read are left out.
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

    /// A text of the endpoint, safe to show: without the key, on one line, and short.
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

fn is(response: &Response, expected: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = given.and_then(|given| given.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(expected))
}

fn failed(url: &Url, error: reqwest::Error) -> ExecutorError {
    ExecutorError::Request { url: url.to_string(), reason: chain(&error.without_url()) }
}
