//! Calls of a server made with the official SDK, as a process and over HTTP, and of servers that
//! break the protocol.

mod peer;

use super::*;
use crate::executor::{Config, Executor, Task};
use axum::{Router, http::StatusCode, routing::post};
use cowboy_host::process::has_members;
use peer::{PIDS, Peer};
use rmcp::{
    ServiceExt as _,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use rustix::process::Pid;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    net::TcpListener,
    sync::{mpsc as channel, oneshot},
};

const LIMITS: TaskLimits =
    TaskLimits { max_return_bytes: 1000, timeout: Duration::from_secs(60), max_memory_mb: Some(1) };

/// The environment variable that makes the test's program the server.
const SERVE: &str = "MCP_TEST_SERVE";

/// The server as a process: this test in a separate process. The harness writes its own lines to
/// the standard output, as many servers do.
#[tokio::test]
#[ignore = "the server that other tests start"]
async fn serves_over_stdio() {
    if env::var_os(SERVE).is_none() {
        return;
    }
    println!("\nready");
    eprintln!("a complaint");
    let service = Peer::default().serve(stdio()).await.unwrap();
    service.waiting().await.unwrap();
    std::process::exit(0);
}

fn this_program(extra: &[(&str, &str)]) -> Server {
    let test = "executor::mcp::tests::serves_over_stdio";
    let args = [test, "--exact", "--ignored", "--nocapture"];
    let env = [(SERVE, "1")].iter().chain(extra);
    Server::Command {
        program: env::current_exe().unwrap().to_str().unwrap().to_owned(),
        args: args.map(str::to_owned).into(),
        env: env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn script(text: &str, env: &[(&str, &str)]) -> Server {
    Server::Command {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), text.to_owned()],
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn url(text: &str) -> Server {
    let json = json!({ "url": text });
    serde_json::from_value(json).unwrap()
}

/// The server over HTTP in this process, and its events.
async fn over_http() -> (Server, channel::UnboundedReceiver<&'static str>) {
    let (events, told) = channel::unbounded_channel();
    let peer = Peer { events: Some(events) };
    let service = StreamableHttpService::new(
        move || Ok(peer.clone()),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    (serve(Router::new().nest_service("/secret-path", service)).await, told)
}

async fn serve(router: Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    url(&format!("http://{address}/secret-path"))
}

fn request(tool: &str, arguments: &Value) -> McpRequest {
    McpRequest { server: "it".to_owned(), tool: tool.to_owned(), arguments: arguments.to_string() }
}

async fn execute(
    server: &Server,
    tool: &str,
    arguments: Value,
    limits: TaskLimits,
) -> Result<String, ExecutorError> {
    let config = Config { mcp: servers(server), ..Config::default() };
    let (_keep, cancelled) = oneshot::channel();
    let task = Task::Mcp(request(tool, &arguments));
    let (started, has_started) = oneshot::channel();
    let started = |at| started.send(at).unwrap();
    let bytes =
        Executor::new(&config).unwrap().run(&task, &limits, cancelled, started, |_| ()).await?;
    assert!(has_started.await.unwrap() < Instant::now());
    Ok(String::from_utf8(bytes).unwrap())
}

fn servers(server: &Server) -> Servers {
    Servers([("it".to_owned(), server.clone())].into())
}

fn tool_error<T>(tool: &str, reason: &str) -> Result<T, ExecutorError> {
    let (server, tool) = ("it".to_owned(), tool.to_owned());
    Err(ExecutorError::Tool { server, tool, reason: reason.to_owned() })
}

/// Checks the results of any server, however it is reached.
async fn check_results(server: &Server) {
    let call = async |tool: &str, arguments: Value| execute(server, tool, arguments, LIMITS).await;
    let echo = call("echo", json!({ "text": "h\u{e9}llo\n" })).await;
    assert_eq!(echo.as_deref(), Ok("h\u{e9}llo\n\nagain: h\u{e9}llo\n"));
    let sum = call("add", json!({ "a": 2, "b": -5 })).await;
    assert_eq!(sum.as_deref(), Ok(r#"{"carry":false,"sum":-3}"#));
    let picture = concat!(
        r#"[{"type":"text","text":"a picture:"},"#,
        r#"{"type":"image","data":"AAEC","mimeType":"image/png"}]"#,
    );
    assert_eq!(call("picture", json!({})).await.as_deref(), Ok(picture));
    assert_eq!(call("nothing", json!({})).await.as_deref(), Ok(""));
    assert_eq!(call("fail", json!({})).await, tool_error("fail", "the tool failed"));
    assert_eq!(call("none", json!({})).await, tool_error("none", "error -32602: tool not found"));

    let fits = call("huge", json!({ "length": LIMITS.max_return_bytes })).await;
    assert_eq!(fits.map(|text| text.len()), Ok(LIMITS.max_return_bytes));
    let too_much = Err(ExecutorError::TooMuchOutput { limit: LIMITS.max_return_bytes });
    assert_eq!(call("huge", json!({ "length": 1001 })).await, too_much);
    assert_eq!(call("huge", json!({ "length": 10_000_000 })).await, too_much);

    let limits = TaskLimits { timeout: Duration::from_millis(500), ..LIMITS };
    let timed_out = Err(ExecutorError::TimedOut { after: limits.timeout });
    assert_eq!(execute(server, "slow", json!({}), limits).await, timed_out);
    // A zero and a maximum timeout.
    let limits = TaskLimits { timeout: Duration::ZERO, ..LIMITS };
    let timed_out = Err(ExecutorError::TimedOut { after: limits.timeout });
    assert_eq!(execute(server, "nothing", json!({}), limits).await, timed_out);
    let limits = TaskLimits { timeout: Duration::MAX, max_return_bytes: usize::MAX, ..LIMITS };
    assert_eq!(execute(server, "nothing", json!({}), limits).await.as_deref(), Ok(""));
}

#[tokio::test]
async fn a_process_answers() {
    check_results(&this_program(&[])).await;
}

#[tokio::test]
async fn a_server_at_a_url_answers() {
    let (server, _told) = over_http().await;
    check_results(&server).await;
}

#[tokio::test]
async fn a_server_hears_that_its_call_is_cancelled_and_is_heard_on_progress() {
    let (server, mut told) = over_http().await;
    let config = Config { mcp: servers(&server), ..Config::default() };
    let executor = Executor::new(&config).unwrap();
    let (cancel, cancelled) = oneshot::channel();
    let (noticed, mut notices) = channel::unbounded_channel();
    let progress = move |notice| noticed.send(notice).unwrap();
    let running = tokio::spawn(async move {
        call(&executor, &request("slow", &json!({})), &LIMITS, cancelled, |_| (), progress).await
    });
    let quarter = TaskProgress { percent: 25, detail: Some("a quarter".to_owned()) };
    assert_eq!(notices.recv().await, Some(quarter));
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
    assert_eq!(told.recv().await, Some("cancelled"));
}

/// A named pipe by which a server reports that it has reached a point.
fn fifo(directory: &Path) -> PathBuf {
    let path = directory.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

/// What was written to the pipe, once it is closed.
async fn read(pipe: PathBuf) -> String {
    tokio::task::spawn_blocking(move || fs::read_to_string(pipe).unwrap()).await.unwrap()
}

/// A server that records what it receives and answers only `initialize`.
const LISTENER: &str = r#"
    while read -r line; do
        printf '%s\n' "$line" >> "$HEARD"
        case "$line" in
        *'"method":"initialize"'*)
            printf '%s' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18",'
            printf '%s\n' '"capabilities":{},"serverInfo":{"name":"listener","version":"1"}}}' ;;
        *'"method":"tools/call"'*) echo called > "$CALLED" ;;
        esac
    done"#;

#[tokio::test]
async fn a_conversation_is_a_greeting_a_call_and_a_cancellation() {
    let directory = tempfile::tempdir().unwrap();
    let (heard, called) = (directory.path().join("heard"), fifo(directory.path()));
    let paths = [("HEARD", heard.to_str().unwrap()), ("CALLED", called.to_str().unwrap())];
    let config = Config { mcp: servers(&script(LISTENER, &paths)), ..Config::default() };
    let (cancel, cancelled) = oneshot::channel();
    let running = tokio::spawn(async move {
        let task = Task::Mcp(request("any", &json!({ "key": "value" })));
        Executor::new(&config).unwrap().run(&task, &LIMITS, cancelled, |_| (), |_| ()).await
    });
    assert_eq!(read(called).await, "called\n");
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));

    let heard = fs::read_to_string(heard).unwrap();
    let heard: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<_> = heard.iter().map(|message| message["method"].as_str().unwrap()).collect();
    let expected =
        ["initialize", "notifications/initialized", "tools/call", "notifications/cancelled"];
    assert_eq!(methods, expected);
    assert_eq!(heard[0]["params"]["clientInfo"]["name"], "cowboy-runner");
    assert_eq!(heard[2]["params"]["name"], "any");
    assert_eq!(heard[2]["params"]["arguments"], json!({ "key": "value" }));
    assert_eq!(heard[3]["params"]["requestId"], heard[2]["id"]);
    assert_eq!(heard[3]["params"]["reason"], "cancelled");
}

#[tokio::test]
async fn nothing_of_a_process_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let pids = fifo(directory.path());
    let server = this_program(&[(PIDS, pids.to_str().unwrap())]);
    let assert_gone = |told: &str| {
        let leader = Pid::from_raw(told.split(' ').next().unwrap().parse().unwrap()).unwrap();
        assert!(!has_members(leader), "{told}");
    };
    let call = execute(&server, "family", json!({ "answer": true }), LIMITS);
    let (answer, told) = tokio::join!(call, read(pids.clone()));
    assert_eq!(answer.as_deref(), Ok("born"));
    assert_gone(&told);

    let (cancel, cancelled) = oneshot::channel();
    let config = Config { mcp: servers(&server), ..Config::default() };
    let running = tokio::spawn(async move {
        let task = Task::Mcp(request("family", &json!({ "answer": false })));
        Executor::new(&config).unwrap().run(&task, &LIMITS, cancelled, |_| (), |_| ()).await
    });
    let told = read(pids).await;
    drop(cancel);
    assert_eq!(running.await.unwrap(), Err(ExecutorError::Cancelled));
    assert_gone(&told);

    let shown = execute(&server, "environment", json!({}), LIMITS).await.unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let mut names = vec!["COWBOY_JOB_DIRECTORY", "HOME", PIDS, SERVE, "PATH", "TMPDIR"];
    names.extend(env::var_os("LANG").map(|_| "LANG"));
    names.sort_unstable();
    assert_eq!(shown["names"], json!(names));
    assert_eq!(shown["files"], 0);
    assert!(!Path::new(shown["here"].as_str().unwrap()).exists());
}

#[tokio::test]
async fn a_process_that_breaks_the_rules_is_told() {
    let reason = async |server: Server| match execute(&server, "any", json!({}), LIMITS).await {
        Err(ExecutorError::Mcp { server, reason }) if server == "it" => reason,
        other => panic!("{other:?}"),
    };
    let ended = format!("ended before it answered initialize; {LOG_HINT}");
    assert_eq!(reason(script("exit 1", &[])).await, ended);
    // It closes its standard output and keeps running.
    assert_eq!(reason(script("exec >&-; sleep 600", &[])).await, ended);
    let refuses =
        r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-5,"message":"go"}}'"#;
    assert_eq!(reason(script(refuses, &[])).await, "answers initialize with error -5: go");

    let repeats =
        r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-5,"message":"no: '$KEY'"}}'"#;
    let told = reason(script(repeats, &[("KEY", "t0p-s3cret")])).await;
    assert_eq!(told, "answers initialize with error -5: no: [hidden]");

    let crashed = execute(&this_program(&[]), "crash", json!({}), LIMITS).await;
    let reason = format!("ended before it answered tools/call; {LOG_HINT}");
    assert_eq!(crashed, Err(ExecutorError::Mcp { server: "it".to_owned(), reason }));

    let too_much = Err(ExecutorError::TooMuchOutput { limit: LIMITS.max_return_bytes });
    let endless = script("cat /dev/zero | tr '\\0' x", &[]);
    assert_eq!(execute(&endless, "any", json!({}), LIMITS).await, too_much);
    // Short noise lines are ignored, and so is the standard error.
    let noise = script("yes noise & yes complaint >&2", &[]);
    let limits = TaskLimits { timeout: Duration::from_millis(300), ..LIMITS };
    let timed_out = Err(ExecutorError::TimedOut { after: limits.timeout });
    assert_eq!(execute(&noise, "any", json!({}), limits).await, timed_out);

    let missing = Server::Command {
        program: "no-such-server".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
    };
    let error = execute(&missing, "any", json!({}), LIMITS).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot start `no-such-server`: not found in PATH");
}

#[tokio::test]
async fn a_server_at_a_url_that_breaks_the_rules_is_told() {
    let answer = async |kind: &'static str, body: String| {
        let answer = move || async move { ([("content-type", kind)], body) };
        let server = serve(Router::new().route("/secret-path", post(answer))).await;
        execute(&server, "any", json!({}), LIMITS).await
    };
    let too_much = Err(ExecutorError::TooMuchOutput { limit: LIMITS.max_return_bytes });
    assert_eq!(answer("application/json", "x".repeat(100_000)).await, too_much);
    let event = format!("data: {}", "x".repeat(100_000));
    assert_eq!(answer("text/event-stream", event).await, too_much);

    let reason = |result| match result {
        Err(ExecutorError::Request { url, reason }) => {
            assert!(url.starts_with("http://127.0.0.1:") && !url.contains("secret"), "{url}");
            reason
        }
        other => panic!("{other:?}"),
    };
    let strange = reason(answer("application/json", "{}".to_owned()).await);
    assert_eq!(strange, "answered with JSON that is not a JSON-RPC message");
    let strange = reason(answer("text/html", "<p>".to_owned()).await);
    assert_eq!(strange, "answered with neither JSON nor events");

    let error = json!({"code": 7, "message": "POST /secret-path: not now"});
    let body = json!({"jsonrpc": "2.0", "id": 0, "error": error}).to_string();
    let Err(ExecutorError::Mcp { reason: told, .. }) = answer("application/json", body).await
    else {
        panic!("an error is not an answer")
    };
    assert_eq!(told, "answers initialize with error 7: POST /[hidden]: not now");

    let server = serve(Router::new().route("/secret-path", post(StatusCode::FORBIDDEN))).await;
    let refused = execute(&server, "any", json!({}), LIMITS).await;
    let Err(ExecutorError::Status { url: told, status: 403 }) = &refused else {
        panic!("{refused:?}")
    };
    assert!(!told.contains("secret"), "{told}");

    // A port that has just been free.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = url(&format!("http://user:secret-word@{gone}/secret-path-path"));
    let refused = reason(execute(&server, "any", json!({}), LIMITS).await);
    assert!(refused.contains("refused") && !refused.contains("secret"), "{refused}");
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_refused_unsent() {
    let call = async |request: McpRequest| {
        let config = Config { mcp: servers(&url("http://127.0.0.1:1/")), ..Config::default() };
        let (_keep, cancelled) = oneshot::channel();
        let started = |_| panic!("started");
        let task = Task::Mcp(request);
        let executor = Executor::new(&config).unwrap();
        let refused = executor.run(&task, &LIMITS, cancelled, started, |_| ()).await;
        refused.unwrap_err().to_string()
    };
    let unknown = McpRequest { server: "other".to_owned(), ..request("any", &json!({})) };
    assert_eq!(call(unknown).await, "invalid task: this runner has no MCP server `other`");
    for bad in [json!([]), json!("text"), Value::Null] {
        let error = call(request("any", &bad)).await;
        assert!(error.starts_with("invalid task: arguments are not a JSON object: "), "{error}");
    }
}

#[test]
fn a_configuration_is_read_written_and_shown_without_secrets() {
    let text = "\
files:
  command:
  - mcp-files
  - --token
  - secret
  env:
    TOKEN: secret
remote:
  url: https://user:secret-word@example.com/secret?key=secret
";
    let servers: Servers = serde_yaml::from_str(text).unwrap();
    assert_eq!(serde_yaml::to_string(&servers).unwrap(), text);
    let shown = format!("{servers:?}");
    assert!(shown.contains("mcp-files") && shown.contains("https://example.com"), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");

    for (bad, expected) in [
        ("x: {}", "expected either command or url"),
        ("x: { command: [a], url: 'http://a/' }", "expected either command or url"),
        ("x: { command: [] }", "command names no program"),
        ("x: { command: [''] }", "command names no program"),
        ("x: { url: 'http://a/', env: { A: b } }", "env goes with command"),
        ("x: { url: 'ftp://secret/' }", "scheme `ftp`; expected http or https"),
        ("x: { url: secret }", "url is invalid: relative URL without a base"),
        ("x: { command: [a], cwd: / }", "unknown field `cwd`"),
    ] {
        let error = serde_yaml::from_str::<Servers>(bad).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{bad}: {error}");
    }
}
