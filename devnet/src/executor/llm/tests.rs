//! Questions to a loopback endpoint that answers well, badly, slowly or not at all.

use super::*;
use crate::executor::{Config, Executor, Task};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request as Asked,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response as Answered},
};
use futures::{StreamExt as _, future, stream};
use serde_json::json;
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};

const KEY: &str = "sk-th1s-is-s3cret";

const LIMITS: TaskLimits =
    TaskLimits { max_return_bytes: 200, timeout: Duration::from_secs(60), max_memory_mb: None };

/// A received request: path, `Authorization`, body.
type Question = (String, Option<String>, Value);

/// An endpoint that answers with `answer`, and the requests that it receives.
async fn endpoint(
    answer: impl Fn(&str) -> Answered + Clone + Send + Sync + 'static,
) -> (SocketAddr, mpsc::UnboundedReceiver<Question>) {
    let (asked, questions) = mpsc::unbounded_channel();
    let handler = async move |request: Asked| {
        let path = request.uri().path().to_owned();
        let key = request.headers().get(AUTHORIZATION);
        let key = key.map(|value| value.to_str().unwrap().to_owned());
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        // Not every test reads the requests.
        let _ = asked.send((path.clone(), key, serde_json::from_slice(&body).unwrap()));
        answer(&path)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(handler);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, questions)
}

fn executor(address: SocketAddr) -> Executor {
    let text = format!(
        "llm: {{base_url: 'http://{address}/v1', api_key_env: THE_KEY, models: {{small: real-1}}, \
         embedding_models: {{embedder: real-2}}}}"
    );
    let config: Config = serde_yaml::from_str(&text).unwrap();
    Executor::default().with_variables(&config, |_| Some(KEY.to_owned())).unwrap()
}

fn question() -> LlmRequest {
    LlmRequest {
        model: "small".to_owned(),
        messages: vec![("user".to_owned(), "say \"hi\"".to_owned())],
        max_tokens: None,
        temperature_milli: None,
        seed: None,
        embedding_model: None,
        response_schema: None,
    }
}

async fn ask(address: SocketAddr, request: LlmRequest) -> Result<String, ExecutorError> {
    let (_keep, cancelled) = oneshot::channel();
    let task = Task::Llm(request);
    let result = executor(address).run(&task, &LIMITS, cancelled, |_| (), |_| ()).await;
    if let Err(error) = &result {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    result.map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The result of a job when the endpoint always gives this answer.
async fn answered(
    answer: impl Fn(&str) -> Answered + Clone + Send + Sync + 'static,
) -> Result<String, ExecutorError> {
    ask(endpoint(answer).await.0, question()).await
}

fn events(body: impl Into<Body>) -> Answered {
    ([(CONTENT_TYPE, "text/event-stream; charset=utf-8")], body.into()).into_response()
}

fn document(status: u16, body: &Value) -> Answered {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn piece(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn finish(reason: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!("data: {chunk}\n\n")
}

fn whole(text: &str, reason: &str) -> Value {
    let message = json!({"role": "assistant", "content": text});
    json!({"choices": [{"message": message, "finish_reason": reason}]})
}

const DONE: &str = "data: [DONE]\n\n";

#[track_caller]
fn assert_broken(result: &Result<String, ExecutorError>, expected: &str) {
    let Err(ExecutorError::Request { reason, .. }) = result else { panic!("{result:?}") };
    assert!(reason.contains(expected), "{reason}");
}

#[tokio::test]
async fn an_answer_comes_in_events_or_at_once() {
    // All that may arrive: comments, the role first, a line feed within an event's text, usage.
    let first = r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#;
    let usage = r#"data: {"choices":[],"usage":{"completion_tokens":3}}"#;
    let text = [
        ": hello\n\n",
        first,
        "\r\n\r\n",
        &piece("Gr\u{fc}\u{df}"),
        &piece(" Gott\n"),
        &finish("stop"),
        usage,
        "\n\n",
        DONE,
    ]
    .concat();
    let stream = text.clone();
    assert_eq!(answered(move |_| events(stream.clone())).await.unwrap(), "Gr\u{fc}\u{df} Gott\n");
    let bytewise = move |_: &str| {
        let bytes: Vec<_> = text.bytes().map(|b| Ok::<_, Infallible>(vec![b])).collect();
        events(Body::from_stream(stream::iter(bytes)))
    };
    assert_eq!(answered(bytewise).await.unwrap(), "Gr\u{fc}\u{df} Gott\n");
    // An endpoint may leave out its [DONE].
    let short = |_: &str| events(piece("hi") + &finish("stop"));
    assert_eq!(answered(short).await.unwrap(), "hi");
    let once = |_: &str| document(200, &whole("at once", "stop"));
    assert_eq!(answered(once).await.unwrap(), "at once");
    let empty = |_: &str| document(200, &whole("", "stop"));
    assert_eq!(answered(empty).await.unwrap(), "");
}

#[tokio::test]
async fn a_question_carries_what_the_job_says_and_the_key() {
    let (address, mut questions) = endpoint(|_| document(200, &whole("hi", "stop"))).await;
    let full = LlmRequest {
        messages: vec![
            ("system".to_owned(), "be brief".to_owned()),
            ("user".to_owned(), "hello".to_owned()),
        ],
        max_tokens: Some(7),
        temperature_milli: Some(250),
        seed: Some(u64::MAX),
        ..question()
    };
    ask(address, full).await.unwrap();
    let (path, key, body) = questions.recv().await.unwrap();
    assert_eq!((path.as_str(), key), ("/v1/chat/completions", Some(format!("Bearer {KEY}"))));
    let messages = json!([
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]);
    let expected = json!({
        "model": "real-1",
        "messages": messages,
        "stream": true,
        "max_tokens": 7,
        "temperature": 0.25,
        "seed": u64::MAX,
    });
    assert_eq!(body, expected);
    ask(address, question()).await.unwrap();
    let (_, _, body) = questions.recv().await.unwrap();
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
}

#[tokio::test]
async fn models_are_those_that_are_configured() {
    let (address, mut questions) = endpoint(|_| document(200, &whole("hi", "stop"))).await;
    let unknown = LlmRequest { model: "real-1".to_owned(), ..question() };
    let expected = "invalid task: model `real-1`: expected one of small";
    assert_eq!(ask(address, unknown).await.unwrap_err().to_string(), expected);
    let unknown = LlmRequest { embedding_model: Some("small".to_owned()), ..question() };
    let expected = "invalid task: embedding model `small`: expected one of embedder";
    assert_eq!(ask(address, unknown).await.unwrap_err().to_string(), expected);
    assert!(questions.try_recv().is_err(), "no model was asked");

    let (_keep, cancelled) = oneshot::channel();
    let started = |_| panic!("started");
    let task = Task::Llm(question());
    let result = Executor::default().run(&task, &LIMITS, cancelled, started, |_| ()).await;
    assert!(matches!(result, Err(ExecutorError::Invalid(_))), "{result:?}");
}

#[tokio::test]
async fn how_an_answer_ended_decides_whether_it_counts() {
    let ended = |reason: &'static str, max_tokens| async move {
        let streamed = move |_: &str| events(piece("cut") + &finish(reason) + DONE);
        let at_once = move |_: &str| document(200, &whole("cut", reason));
        let request = || LlmRequest { max_tokens, ..question() };
        let streamed = ask(endpoint(streamed).await.0, request()).await;
        let at_once = ask(endpoint(at_once).await.0, request()).await;
        let reason = |result: &Result<String, ExecutorError>| match result {
            Err(ExecutorError::Request { reason, .. }) => Err(reason.clone()),
            other => Ok(other.clone()),
        };
        assert_eq!(reason(&streamed), reason(&at_once));
        streamed
    };
    assert_eq!(ended("length", Some(1)).await.unwrap(), "cut");
    assert_broken(&ended("length", None).await, "the job sets no max_tokens");
    assert_broken(&ended("content_filter", Some(1)).await, "`content_filter`");
    assert_broken(&ended("tool_calls", None).await, "`tool_calls`");
    let nothing = |_: &str| document(200, &json!({"choices": [{"finish_reason": "stop"}]}));
    assert_broken(&answered(nothing).await, "the answer has no text");
}

#[tokio::test]
async fn what_the_endpoint_says_of_a_failure_is_told_without_the_key() {
    let refusing = |status: u16, body: Value| async move {
        answered(move |_| document(status, &body)).await.unwrap_err().to_string()
    };
    let wrong = json!({"error": {"message": format!("Incorrect key: {KEY}"), "code": 1}});
    let told = refusing(401, wrong).await;
    assert!(told.ends_with("/v1/chat/completions answered 401"), "{told}");
    let told = refusing(429, json!({"error": "slow\ndown"})).await;
    assert!(told.ends_with("answered 429: slow down"), "{told}");
    let told = refusing(500, json!({"detail": [{"msg": "oh"}]})).await;
    assert!(told.ends_with(r#"answered 500: {"detail":[{"msg":"oh"}]}"#), "{told}");
    let told = refusing(503, json!({"message": "\u{e4}".repeat(1_000_000)})).await;
    assert!(told.len() < 700, "{told}");
    // The key at the very end of the shown part.
    let text = "x".repeat(ERROR_TOLD - 4) + KEY;
    let told = refusing(400, json!({"message": text})).await;
    assert!(told.ends_with("xxx[hid"), "{told}");

    let text = format!("no: {KEY}");
    let plain = move |_: &str| (StatusCode::CONFLICT, text.clone()).into_response();
    let told = answered(plain).await.unwrap_err().to_string();
    assert!(told.ends_with("answered 409: no: [hidden]"), "{told}");

    // Once an answer has begun, errors come without a status.
    let error = json!({"error": {"message": format!("overloaded {KEY}")}});
    let late = format!("{}data: {error}\n\n", piece("hi"));
    let told = answered(move |_| events(late.clone())).await.unwrap_err();
    let expected = "overloaded [hidden]";
    assert!(
        matches!(&told, ExecutorError::Refused { message, .. } if message == expected),
        "{told:?}"
    );
}

#[tokio::test]
async fn the_key_goes_to_no_other_host() {
    let (elsewhere, mut questions) = endpoint(|_| document(200, &whole("hi", "stop"))).await;
    let target = format!("http://{elsewhere}/v1/chat/completions");
    let away = move |_: &str| {
        let status = StatusCode::TEMPORARY_REDIRECT;
        (status, [(header::LOCATION, target.clone())]).into_response()
    };
    let result = answered(away).await;
    assert!(matches!(result, Err(ExecutorError::Answered { status: 307, .. })), "{result:?}");
    assert!(questions.try_recv().is_err());
    let shown = format!("{:?}", executor(elsewhere));
    assert!(shown.contains("redacted") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn an_answer_is_bounded() {
    let too_much = Err(ExecutorError::TooMuchOutput { limit: LIMITS.max_return_bytes });
    let endless = |_: &str| {
        let piece = || Ok::<_, Infallible>(Bytes::from(piece("blah ")));
        events(Body::from_stream(stream::repeat_with(piece)))
    };
    assert_eq!(answered(endless).await, too_much);
    let fitting = |_: &str| events(piece(&"x".repeat(200)) + &finish("stop"));
    assert_eq!(answered(fitting).await.unwrap().len(), 200);
    let long = |_: &str| document(200, &whole(&"x".repeat(201), "stop"));
    assert_eq!(answered(long).await, too_much);
    let huge = |_: &str| document(200, &whole(&"x".repeat(1_000_000), "stop"));
    assert_eq!(answered(huge).await, too_much);
    let line = |_: &str| {
        let start = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"data: ")) });
        let blanks = stream::repeat_with(|| Ok(Bytes::from_static(&[b' '; 10_000])));
        events(Body::from_stream(start.chain(blanks)))
    };
    assert_broken(&answered(line).await, "an event has more than 1048576 bytes");
}

#[tokio::test]
async fn what_is_no_answer_is_told() {
    assert_broken(&answered(|_| events("data: {nonsense\n\n")).await, "not an answer");
    assert_broken(&answered(|_| events("data: \n\n")).await, "not an answer");
    assert_broken(&answered(|_| events(piece("and then"))).await, "broke off");
    assert_broken(&answered(|_| events(DONE)).await, "broke off");
    assert_broken(&answered(|_| document(200, &json!(["hi"]))).await, "not an answer");
    let page = |_: &str| ([(CONTENT_TYPE, "text/html")], "hi").into_response();
    assert_broken(&answered(page).await, "neither application/json nor text/event-stream");
    let cut = |_: &str| {
        let pieces = [Ok(Bytes::from(piece("and"))), Err(io::Error::other("cut"))];
        events(Body::from_stream(stream::iter(pieces)))
    };
    assert_broken(&answered(cut).await, "");
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert_broken(&ask(gone, question()).await, "refused");
}

/// An endpoint that sends a piece for each message, and a receiver that closes with its connection.
async fn dripping() -> (SocketAddr, mpsc::Sender<&'static str>, mpsc::Receiver<()>) {
    let (drip, drops) = mpsc::channel::<&'static str>(1);
    let (alive, gone) = mpsc::channel(1);
    let drops = Arc::new(Mutex::new(Some((drops, alive))));
    let answer = move |_: &str| {
        let held = drops.lock().unwrap().take().expect("asked once");
        let drips = stream::unfold(held, async |(mut drops, alive)| {
            let text = drops.recv().await?;
            Some((Ok::<_, Infallible>(piece(text)), (drops, alive)))
        });
        events(Body::from_stream(drips))
    };
    (endpoint(answer).await.0, drip, gone)
}

#[tokio::test]
async fn progress_is_told_as_tokens_come() {
    let (address, drip, _gone) = dripping().await;
    let (_keep, cancelled) = oneshot::channel();
    let (told, mut progress) = mpsc::unbounded_channel();
    let running = tokio::spawn(async move {
        let task = Task::Llm(LlmRequest { max_tokens: Some(4), ..question() });
        let tell = |progress| told.send(progress).unwrap();
        executor(address).run(&task, &LIMITS, cancelled, |_| (), tell).await
    });
    let expected = [(25, "1 token"), (50, "2 tokens"), (75, "3 tokens"), (99, "4 tokens")];
    for (percent, detail) in expected {
        drip.send("x").await.unwrap();
        let expected = TaskProgress { percent, detail: Some(detail.to_owned()) };
        assert_eq!(progress.recv().await, Some(expected));
    }
    drop(drip);
    assert!(running.await.unwrap().is_err(), "no finish reason");
    assert_eq!(progress.recv().await, None);

    let (address, _) = endpoint(|_| events(piece("hi") + &finish("stop") + DONE)).await;
    let (_keep, cancelled) = oneshot::channel();
    let all = Mutex::new(Vec::new());
    let tell = |progress| all.lock().unwrap().push(progress);
    let task = Task::Llm(question());
    executor(address).run(&task, &LIMITS, cancelled, |_| (), tell).await.unwrap();
    let last = TaskProgress { percent: 100, detail: Some("1 token".to_owned()) };
    assert_eq!(all.into_inner().unwrap().last(), Some(&last));
}

#[tokio::test]
async fn a_slow_answer_ends_when_it_is_cancelled_or_out_of_time() {
    let (address, drip, mut gone) = dripping().await;
    let (cancel, cancelled) = oneshot::channel();
    let (told, mut progress) = mpsc::unbounded_channel();
    let running = tokio::spawn(async move {
        let tell = |progress| told.send(progress).unwrap();
        executor(address).run(&Task::Llm(question()), &LIMITS, cancelled, |_| (), tell).await
    });
    drip.send("it goes on").await.unwrap();
    progress.recv().await.unwrap();
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
    // The connection is closed too, so the endpoint stops as well.
    assert_eq!(gone.recv().await, None);

    let (address, _questions) = endpoint(|_| {
        let start = stream::once(async { Ok::<_, Infallible>(piece("a start")) });
        events(Body::from_stream(start.chain(stream::pending())))
    })
    .await;
    let limits = TaskLimits { timeout: Duration::from_millis(200), ..LIMITS };
    let (_keep, cancelled) = oneshot::channel();
    let task = Task::Llm(question());
    let result = executor(address).run(&task, &limits, cancelled, |_| (), |_| ()).await;
    assert_eq!(result, Err(ExecutorError::TimedOut { after: limits.timeout }));
}

#[tokio::test]
async fn an_answer_is_embedded_where_the_job_names_a_model() {
    let embedding = |text: &'static str| {
        move |path: &str| match path {
            "/v1/embeddings" => ([(CONTENT_TYPE, "application/json")], text).into_response(),
            _ => document(200, &whole("he said \"hi\"", "stop")),
        }
    };
    let request = || LlmRequest { embedding_model: Some("embedder".to_owned()), ..question() };
    let (address, mut questions) = endpoint(embedding(
        r#"{"object": "list", "data": [{"index": 0, "embedding": [0.10, -1e-3,
            2, 0.0123456789012345678901]}], "model": "real-2"}"#,
    ))
    .await;
    let expected = concat!(
        r#"{"text":"he said \"hi\"","model":"embedder","#,
        r#""embedding":[0.10,-1e-3,2,0.0123456789012345678901]}"#
    );
    assert_eq!(ask(address, request()).await.unwrap(), expected);
    questions.recv().await.unwrap();
    let (path, key, body) = questions.recv().await.unwrap();
    assert_eq!((path.as_str(), key), ("/v1/embeddings", Some(format!("Bearer {KEY}"))));
    assert_eq!(body, json!({"model": "real-2", "input": "he said \"hi\""}));

    for (bad, expected) in [
        ("{}", "no embedding: missing field `data`"),
        (r#"{"data": []}"#, "0 embeddings, expected 1"),
        (r#"{"data": [{"embedding": []}]}"#, "an embedding without numbers"),
        (r#"{"data": [{"embedding": [1, "2"]}]}"#, "values other than numbers"),
        (r#"{"data": [{"embedding": [1, null]}]}"#, "values other than numbers"),
        (r#"{"data": [{"embedding": "AAAA"}]}"#, "no embedding"),
    ] {
        assert_broken(&ask(endpoint(embedding(bad)).await.0, request()).await, expected);
    }
    let long: &'static str =
        format!(r#"{{"data": [{{"embedding": [{}1]}}]}}"#, "0.5,".repeat(100)).leak();
    let too_much = Err(ExecutorError::TooMuchOutput { limit: LIMITS.max_return_bytes });
    assert_eq!(ask(endpoint(embedding(long)).await.0, request()).await, too_much);
    let failing = |path: &str| match path {
        "/v1/embeddings" => document(404, &json!({"error": {"message": "no such model"}})),
        _ => document(200, &whole("hi", "stop")),
    };
    let told = ask(endpoint(failing).await.0, request()).await.unwrap_err().to_string();
    assert!(told.ends_with("/v1/embeddings answered 404: no such model"), "{told}");
}

#[tokio::test]
async fn an_endpoint_that_never_answers_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cancel, cancelled) = oneshot::channel();
    let asking = executor(address);
    let task = Task::Llm(question());
    let running = asking.run(&task, &LIMITS, cancelled, |_| (), |_| ());
    let silence = async {
        let _connection = listener.accept().await.unwrap();
        cancel.send(()).unwrap();
        future::pending::<()>().await;
    };
    tokio::select! {
        result = running => assert_eq!(result, Err(ExecutorError::Cancelled)),
        () = silence => {}
    }
}
