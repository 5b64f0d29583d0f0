//! Requests to a loopback server that answers well, badly, slowly or not at all.

use super::*;
use crate::executor::{Config, Executor, Task, config};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Path,
    http::{HeaderMap as Headers, StatusCode},
    response::{IntoResponse, Redirect},
    routing::{any, get},
};
use futures::{StreamExt as _, future, stream};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned, crypto::aws_lc_rs, pki_types::PrivateKeyDer,
};
use std::{convert::Infallible, io::Read as _, net::SocketAddr, sync::Mutex, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::{mpsc, oneshot},
};

const LIMITS: TaskLimits =
    TaskLimits { max_return_bytes: 100, timeout: Duration::from_secs(60), max_memory_mb: None };

/// Pause of a slow server between two bytes.
const DRIP: Duration = Duration::from_millis(20);

const DOCUMENT: &str = r#"{"price": {"usd": 1.50, "eur": [1, 2]}}"#;

/// The test server, and a channel that reports each request it never answers.
async fn server() -> (SocketAddr, mpsc::Receiver<()>) {
    let (asked, silent) = mpsc::channel(1);
    let hop = async |Path(left): Path<u32>| match left {
        0 => "arrived".into_response(),
        _ => Redirect::temporary(&format!("/hop/{}", left - 1)).into_response(),
    };
    let echo = async |method: Method, headers: Headers, body: Bytes| {
        let given = headers.get_all("x-given").iter().map(|value| value.to_str().unwrap());
        format!("{method} {:?} {}", given.collect::<Vec<_>>(), String::from_utf8_lossy(&body))
    };
    let endless = async || {
        let chunk = || Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1000]));
        Body::from_stream(stream::repeat_with(chunk))
    };
    let stalling = async || {
        let start = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"a start"))]);
        Body::from_stream(start.chain(stream::pending()))
    };
    let silent_handler = async move || {
        asked.send(()).await.unwrap();
        future::pending::<()>().await;
    };
    let router = Router::new()
        .route("/echo", any(echo))
        .route("/hop/{left}", get(hop))
        .route("/loop", get(async || Redirect::temporary("/loop")))
        .route("/away", get(async || Redirect::temporary("ftp://127.0.0.1/file")))
        .route("/hundred", get(async || "x".repeat(100)))
        .route("/more", get(async || "x".repeat(101)))
        .route("/endless", get(endless))
        .route("/stalling", get(stalling))
        .route("/silent", get(silent_handler))
        .route("/missing", get(async || (StatusCode::NOT_FOUND, "not here")))
        .route("/broken", get(async || (StatusCode::BAD_GATEWAY, "not now")))
        .route("/signed", get(async || Redirect::temporary("/missing?key=s3cret")))
        .route("/json", get(async || DOCUMENT));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, silent)
}

fn request(address: SocketAddr, path: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".to_owned(),
        url: format!("http://{address}{path}"),
        headers: Vec::new(),
        body: Vec::new(),
        pointer: None,
    }
}

/// An executor that may send requests to the loopback, where the test servers listen.
fn local() -> Executor {
    let http = config::Http { allow_loopback: true };
    Executor::new(&Config { http, ..Config::default() }).unwrap()
}

async fn execute(request: HttpRequest, limits: TaskLimits) -> Result<String, ExecutorError> {
    execute_by(&local(), request, limits).await
}

async fn execute_by(
    executor: &Executor,
    request: HttpRequest,
    limits: TaskLimits,
) -> Result<String, ExecutorError> {
    let (_keep, cancelled) = oneshot::channel();
    let output = executor.run(&Task::Http(request), &limits, cancelled, |_| (), |_| ()).await?;
    Ok(String::from_utf8(output).unwrap())
}

#[tokio::test]
async fn the_loopback_is_not_asked_unless_the_operator_allows_it() {
    let (address, _) = server().await;
    let executor = Executor::default();
    let check = async |host: &str, told: &str| {
        let url = format!("http://{host}:{}/json", address.port());
        let result =
            execute_by(&executor, HttpRequest { url, ..request(address, "/") }, LIMITS).await;
        assert_eq!(result, Err(ExecutorError::Loopback { host: told.to_owned() }));
        let said = result.unwrap_err().to_string();
        assert!(said.contains("`http: {allow_loopback: true}`"), "{said}");
    };
    check("127.0.0.1", "127.0.0.1").await;
    check("127.1", "127.0.0.1").await;
    check("0.0.0.0", "0.0.0.0").await;
    check("[::1]", "[::1]").await;
    check("[::ffff:127.0.0.1]", "[::ffff:7f00:1]").await;
    // The resolved address counts.
    check("localhost", "localhost").await;
    assert_eq!(execute(request(address, "/json"), LIMITS).await.as_deref(), Ok(DOCUMENT));
}

#[tokio::test]
async fn no_redirect_leads_to_the_loopback() {
    let (address, _) = server().await;
    // The first server is on the loopback too, because the tests have no other. So this tests the
    // checks of the client itself, without the check of the first URL.
    let client = HttpClient::not_local();
    let client = client.get().await.unwrap();
    let resolved = |host: &str| format!("http://{host}:{}/json", address.port());
    let error = client.get(resolved("localhost")).send().await.unwrap_err();
    assert!(loopback::Refused::behind(&error).is_some(), "{error:?}");
    let away = async |to: &'static str| {
        let router = Router::new().route("/", get(async move || Redirect::temporary(to)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        client.get(url).send().await.unwrap_err()
    };
    for to in ["http://127.0.0.1:1/", "http://[::ffff:7f00:1]:1/", "http://localhost:1/"] {
        let error = away(to).await;
        assert!(loopback::Refused::behind(&error).is_some(), "{to}: {error:?}");
    }
    let error = away("/").await;
    assert!(error.is_redirect() && loopback::Refused::behind(&error).is_some(), "{error:?}");
}

#[tokio::test]
async fn a_request_carries_what_the_task_says() {
    let (address, _) = server().await;
    let request = HttpRequest {
        method: "PATCH".to_owned(),
        headers: [("X-Given", "one"), ("x-given", "two")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        body: b"a body".to_vec(),
        ..request(address, "/echo")
    };
    let expected = r#"PATCH ["one", "two"] a body"#;
    assert_eq!(execute(request, LIMITS).await.as_deref(), Ok(expected));
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_allowed() {
    let (address, _) = server().await;
    let get = async |path: &str| execute(request(address, path), LIMITS).await;
    assert_eq!(get("/hop/5").await.as_deref(), Ok("arrived"));
    let too_many =
        |path: &str| Err(ExecutorError::Redirects { url: format!("http://{address}{path}") });
    assert_eq!(get("/hop/6").await, too_many("/hop/6"));
    assert_eq!(get("/loop").await, too_many("/loop"));
    assert!(get("/away").await.is_err(), "no scheme but http and https");
}

#[tokio::test]
async fn other_answers_than_success_are_failures() {
    let (address, _) = server().await;
    for (path, status) in [("/missing", 404), ("/broken", 502), ("/no/such/path", 404)] {
        let url = format!("http://{address}{path}");
        let expected = Err(ExecutorError::Status { url, status });
        assert_eq!(execute(request(address, path), LIMITS).await, expected);
    }
    // The task is public, but a redirect's target is not shown.
    for (path, told) in [("/missing?key=1", "/missing?key=1"), ("/signed?key=1", "/missing")] {
        let url = format!("http://{address}{told}");
        let expected = Err(ExecutorError::Status { url, status: 404 });
        assert_eq!(execute(request(address, path), LIMITS).await, expected);
    }
}

#[tokio::test]
async fn the_body_is_bounded() {
    let (address, _) = server().await;
    let get = async |path: &str| execute(request(address, path), LIMITS).await;
    assert_eq!(get("/hundred").await.as_deref(), Ok(&*"x".repeat(100)));
    let too_much = Err(ExecutorError::TooMuchOutput { limit: 100 });
    assert_eq!(get("/more").await, too_much);
    assert_eq!(get("/endless").await, too_much);
}

#[tokio::test]
async fn progress_is_told_where_the_length_is_known() {
    let (address, _) = server().await;
    let told = async |path: &str| {
        let told = Mutex::new(Vec::new());
        let (_keep, cancelled) = oneshot::channel();
        let tell = |progress| told.lock().unwrap().push(progress);
        let task = Task::Http(request(address, path));
        let limits = TaskLimits { timeout: Duration::from_millis(200), ..LIMITS };
        let _ = local().run(&task, &limits, cancelled, |_| (), tell).await;
        told.into_inner().unwrap()
    };
    let whole = TaskProgress { percent: 100, detail: Some("100 of 100 bytes".to_owned()) };
    assert_eq!(told("/hundred").await.last(), Some(&whole));
    assert_eq!(told("/stalling").await, []);
}

#[tokio::test]
async fn time_is_limited() {
    let (address, _silent) = server().await;
    let limits = TaskLimits { timeout: Duration::from_millis(200), ..LIMITS };
    let timed_out = Err(ExecutorError::TimedOut { after: limits.timeout });
    assert_eq!(execute(request(address, "/stalling"), limits).await, timed_out);
    // On a busy machine the time is up before the request arrives.
    assert_eq!(execute(request(address, "/silent"), limits).await, timed_out);
}

#[tokio::test]
async fn a_cancelled_request_ends() {
    let (address, mut silent) = server().await;
    let (cancel, cancelled) = oneshot::channel();
    let (started, has_started) = oneshot::channel();
    let running = tokio::spawn(async move {
        let task = Task::Http(request(address, "/silent"));
        let started = |at| started.send(at).unwrap();
        local().run(&task, &LIMITS, cancelled, started, |_| ()).await
    });
    silent.recv().await.unwrap();
    assert!(has_started.await.unwrap() < Instant::now());
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
}

#[tokio::test]
async fn a_pointer_picks_from_the_response() {
    let (address, _) = server().await;
    let pick = async |path: &str, pointer: &str| {
        let pointer = Some(pointer.to_owned());
        execute(HttpRequest { pointer, ..request(address, path) }, LIMITS).await
    };
    assert_eq!(pick("/json", "/price/usd").await.as_deref(), Ok("1.50"));
    assert_eq!(pick("/json", "/price/eur/1").await.as_deref(), Ok("2"));
    assert_eq!(pick("/json", "").await.as_deref(), Ok(DOCUMENT));
    let nothing = ExecutorError::NothingThere { pointer: "/price/gbp".to_owned() };
    assert_eq!(pick("/json", "/price/gbp").await, Err(nothing));
    assert!(matches!(pick("/hundred", "/a").await, Err(ExecutorError::NotJson(_))));
}

#[tokio::test]
async fn a_task_that_makes_no_sense_is_refused_unsent() {
    let good = request(SocketAddr::from(([127, 0, 0, 1], 1)), "/");
    let with_header = |name: &str, value: &str| HttpRequest {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..good.clone()
    };
    for bad in [
        HttpRequest { method: "GE T".to_owned(), ..good.clone() },
        HttpRequest { url: "no url".to_owned(), ..good.clone() },
        HttpRequest { url: "/relative".to_owned(), ..good.clone() },
        HttpRequest { url: "file:///etc/passwd".to_owned(), ..good.clone() },
        HttpRequest { url: "ftp://127.0.0.1/".to_owned(), ..good.clone() },
        with_header("na me", "value"),
        with_header("name", "val\r\nue: x"),
        HttpRequest { pointer: Some("a".to_owned()), ..good.clone() },
    ] {
        let (_keep, cancelled) = oneshot::channel();
        let started = |_| panic!("started");
        let task = Task::Http(bad);
        let result = Executor::default().run(&task, &LIMITS, cancelled, started, |_| ()).await;
        assert!(matches!(result, Err(ExecutorError::Invalid(_))), "{task:?}: {result:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_not_what_it_should_be_is_told() {
    // A port that has just been free.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let result = execute(request(gone, "/"), LIMITS).await;
    let Err(ExecutorError::Request { reason, .. }) = &result else { panic!("{result:?}") };
    assert!(reason.contains("refused"), "{reason}");

    // The URL requires TLS, and this server does not speak it.
    let (address, _) = server().await;
    let secure = HttpRequest { url: format!("https://{address}/json"), ..request(address, "/") };
    let result = execute(secure, LIMITS).await;
    assert!(matches!(result, Err(ExecutorError::Request { .. })), "{result:?}");
}

/// A server that reads one request, writes `answer`, then repeats `again` until the client stops
/// reading. If `again` is empty it closes the connection.
async fn raw(answer: &'static str, again: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut stream = listener.accept().await.unwrap().0;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        while !again.is_empty() && stream.write_all(again.as_bytes()).await.is_ok() {}
    });
    address
}

#[tokio::test]
async fn a_server_that_goes_on_and_on_is_left() {
    let too_much = Err(ExecutorError::TooMuchOutput { limit: 100 });
    let blah = "blah blah blah blah blah blah blah blah ";
    for (answer, again) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n", blah),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n", ""),
        ("HTTP/1.0 200 OK\r\n\r\n", blah),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "5\r\nblah \r\n"),
    ] {
        let address = raw(answer, again).await;
        assert_eq!(execute(request(address, "/"), LIMITS).await, too_much, "{answer}");
    }
    for again in ["x-bomb: blah\r\n", "x-bomb-without-end-"] {
        let address = raw("HTTP/1.1 200 OK\r\n", again).await;
        let result = execute(request(address, "/"), LIMITS).await;
        assert!(matches!(result, Err(ExecutorError::Request { .. })), "{again}: {result:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_none() {
    for answer in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf of it",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nha",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n",
        "nonsense\r\n\r\n",
    ] {
        let address = raw(answer, "").await;
        let result = execute(request(address, "/"), LIMITS).await;
        assert!(matches!(result, Err(ExecutorError::Request { .. })), "{answer}: {result:?}");
    }
}

#[tokio::test]
async fn a_server_that_drips_is_left_when_the_time_is_up() {
    let drip = async || {
        let ticks = stream::unfold(tokio::time::interval(DRIP), async |mut ticks| {
            ticks.tick().await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b"x")), ticks))
        });
        Body::from_stream(ticks)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/drip", get(drip));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let limits = TaskLimits { timeout: 10 * DRIP, max_return_bytes: 1 << 20, ..LIMITS };
    let timed_out = Err(ExecutorError::TimedOut { after: limits.timeout });
    assert_eq!(execute(request(address, "/drip"), limits).await, timed_out);
}

#[tokio::test]
async fn a_certificate_that_nobody_knows_is_refused() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::task::spawn_blocking(move || {
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, listener.accept().unwrap().0);
        // The part of the request that arrives inside TLS.
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        got
    });
    let secure = HttpRequest { url: format!("https://{address}/"), ..request(address, "/") };
    let result = execute(secure, LIMITS).await;
    let Err(ExecutorError::Request { reason, .. }) = &result else { panic!("{result:?}") };
    assert!(reason.contains("certificate"), "{reason}");
    assert_eq!(serving.await.unwrap(), b"");
}
