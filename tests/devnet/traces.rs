//! Traces of pipelines, as a collector on the loopback receives them from a devnet (AgenC §8.2).

use crate::{
    speculation::{ended, rollbacks, submit, task},
    support::{Home, list, wait_until},
    timers::{number, text},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value as Attribute},
    trace::v1::Span,
};
use prost::Message as _;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Decodes the spans that it receives, and answers or hangs.
struct Collector {
    address: String,
    spans: Arc<Mutex<Vec<Span>>>,
    hangs: Arc<AtomicBool>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (spans, hangs) = (Arc::<Mutex<Vec<Span>>>::default(), Arc::<AtomicBool>::default());
        let (into, hang) = (spans.clone(), hangs.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (into, hang) = (into.clone(), hang.clone());
                thread::spawn(move || serve(stream, &into, &hang));
            }
        });
        Self { address, spans, hangs }
    }

    /// Waits for the root span of a pipeline's trace; returns all spans, the root first.
    fn trace(&self, pipeline: &str) -> Vec<Span> {
        self.trace_after(pipeline, &[])
    }

    /// As [`Self::trace`], for a pipeline with earlier traces, which have these roots.
    fn trace_after(&self, pipeline: &str, before: &[&Span]) -> Vec<Span> {
        let mut found = Vec::new();
        wait_until("the collector has the pipeline's root", || {
            let spans = self.spans.lock().unwrap();
            let is = |span: &&Span| {
                value(span, "pipeline.number").as_deref() == Some(pipeline)
                    && before.iter().all(|root| root.span_id != span.span_id)
            };
            let roots: Vec<_> = spans.iter().filter(is).collect();
            let [root] = &roots[..] else { return false };
            let of = spans.iter().filter(|span| span.trace_id == root.trace_id);
            found = of.filter(|span| span.span_id != root.span_id).cloned().collect();
            found.insert(0, Span::clone(root));
            true
        });
        found
    }
}

/// Answers the requests on a connection.
fn serve(mut stream: TcpStream, spans: &Mutex<Vec<Span>>, hangs: &AtomicBool) {
    let (mut bytes, mut some) = (Vec::new(), [0; 8_192]);
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let length = head.and_then(|end| {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            assert!(head.starts_with("post /v1/traces "), "{head}");
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
        });
        let end = head.zip(length).map(|(head, length): (usize, usize)| (head + 4, length));
        if let Some((from, length)) = end.filter(|(from, length)| bytes.len() >= from + length) {
            while hangs.load(Ordering::Relaxed) {
                thread::park();
            }
            let request = ExportTraceServiceRequest::decode(&bytes[from..from + length]).unwrap();
            let scopes = request.resource_spans.into_iter().flat_map(|of| of.scope_spans);
            spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
            bytes.drain(..from + length);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
        match stream.read(&mut some) {
            Ok(0) | Err(_) => return,
            Ok(got) => bytes.extend_from_slice(&some[..got]),
        }
    }
}

fn said(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == key)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        Attribute::StringValue(text) => text.clone(),
        Attribute::IntValue(number) => number.to_string(),
        Attribute::BoolValue(flag) => flag.to_string(),
        other => panic!("{key} is {other:?}"),
    })
}

fn value(span: &Span, key: &str) -> Option<String> {
    said(&span.attributes, key)
}

/// The error of a span; asserts that the status is ERROR and has the exception's message.
fn error(span: &Span) -> Option<String> {
    let status = span.status.as_ref()?;
    let [event] = &span.events[..] else { panic!("one exception: {span:?}") };
    assert_eq!((status.code, event.name.as_str()), (2, "exception"), "{span:?}");
    assert_eq!(said(&event.attributes, "exception.message"), Some(status.message.clone()));
    Some(status.message.clone())
}

/// Asserts that all spans are below one root and within its time; returns the children by name.
fn children(trace: &[Span]) -> BTreeMap<&str, Vec<&Span>> {
    let (root, children) = trace.split_first().unwrap();
    assert!(root.parent_span_id.is_empty() && root.name == "speculation.pipeline", "{root:?}");
    let mut by_name = BTreeMap::<_, Vec<_>>::new();
    for span in children {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&root.trace_id, &root.span_id));
        assert!(span.start_time_unix_nano >= root.start_time_unix_nano, "{span:?}");
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        assert!(span.end_time_unix_nano <= root.end_time_unix_nano, "{span:?} in {root:?}");
        by_name.entry(span.name.as_str()).or_default().push(span);
    }
    for spans in by_name.values_mut() {
        spans.sort_by_key(|span| span.start_time_unix_nano);
    }
    by_name
}

/// A running `speculation events --follow`.
struct Followed(Child, Lines<BufReader<ChildStdout>>);

fn follow(home: &Home, args: &[&str]) -> Followed {
    let follow = ["speculation", "events", "--follow", "-o", "jsonl"];
    let mut command = home.command(&[&follow[..], args].concat());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Followed(child, lines)
}

impl Followed {
    /// The number of the next event.
    fn next(&mut self) -> u64 {
        let line = self.1.next().unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        number(&event["seq"])
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number of the first event that a reader of the stream receives after `last`.
fn returns(up: &Value, last: u64) -> u64 {
    let host = text(&up["rpc_url"]).trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let path = "/v1/speculation/events/stream";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nLast-Event-ID: {last}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.find_map(|line| line.strip_prefix("id:")?.trim().parse().ok()).unwrap()
}

#[test]
fn a_pipeline_is_one_trace_also_across_a_restart_and_a_collector_that_hangs_stops_nothing() {
    let collector = Collector::start();
    let home = Home::new();
    let speculation = json!({ "enabled": true, "proof": { "latency": "100ms" } });
    let telemetry = json!({ "otlp": collector.address });
    let topology = json!({ "name": "local", "speculation": speculation, "telemetry": telemetry });
    let up = home.up_with(&topology);

    let pipeline = submit(
        &home,
        &json!([
            { "id": "a", "command": ["echo", "hush"], "fault": "wrong_proof", "attempts": 2 },
            { "id": "b", "depends_on": ["a"], "command": ["cat"], "attempts": 2 },
            { "id": "c", "depends_on": ["b"], "command": ["cat"], "attempts": 2 },
        ]),
    );
    let shown = ended(&home, &pipeline, "completed");
    let id = |name: &str| text(&task(&shown, name)["task_id"]).to_owned();
    let trace = collector.trace(&pipeline);
    assert_eq!(value(&trace[0], "pipeline.status").as_deref(), Some("completed"));
    assert!(trace[0].status.is_none(), "{trace:?}");
    assert!(!format!("{trace:?}").contains("hush"), "an output: {trace:?}");
    let children = children(&trace);
    let names: Vec<_> = children.keys().copied().collect();
    let expected = ["confirm_wait", "proof_generate", "proof_submit", "rollback", "schedule"];
    assert_eq!(names, expected.map(|name| format!("speculation.{name}")));
    let of = |name: &str, task: &str| -> Vec<&Span> {
        let all = children[format!("speculation.{name}").as_str()].iter().copied();
        all.filter(|span| value(span, "task.id") == Some(id(task))).collect()
    };
    for (name, parent) in [("a", None), ("b", Some("a")), ("c", Some("b"))] {
        let accepted = |span: &&Span| value(span, "speculation.accepted").unwrap() == "true";
        let scheduled: Vec<_> = of("schedule", name).into_iter().filter(accepted).collect();
        for span in &scheduled {
            assert_eq!(value(span, "task.parent_id"), parent.map(id), "{span:?}");
            let depth: u64 = value(span, "speculation.depth").unwrap().parse().unwrap();
            let bond = 100_000_000_000 + 50_000_000_000 * depth;
            assert_eq!(value(span, "speculation.required_bond"), Some(bond.to_string()));
        }
        // The stages of the last attempt follow one another.
        let stages = ["proof_generate", "proof_submit", "confirm_wait"];
        let last = stages.map(|stage| *of(stage, name).last().unwrap());
        assert!(last.iter().all(|span| span.status.is_none()), "{last:?}");
        for [before, after] in last.array_windows() {
            assert!(before.end_time_unix_nano <= after.start_time_unix_nano, "{last:?}");
        }
        let begun = scheduled.last().unwrap().end_time_unix_nano;
        assert!(begun <= last[0].start_time_unix_nano, "{last:?}");
        let made = last[0].end_time_unix_nano - last[0].start_time_unix_nano;
        assert!(made >= 100_000_000, "as long as its latency at least: {last:?}");
    }
    // The first proof of `a` was refused, which caused the only rollback.
    let refused = error(of("confirm_wait", "a")[0]).unwrap();
    assert!(refused.contains("Proof"), "{refused}");
    let [undone] = &rollbacks(&home, &pipeline)[..] else { panic!("one rollback") };
    let [rollback] = &of("rollback", "a")[..] else { panic!("one rollback") };
    assert_eq!(value(rollback, "speculation.reason").as_deref(), Some("proof_failed"));
    let affected = value(rollback, "speculation.affected_tasks");
    assert_eq!(affected, Some(number(&undone["tasks"]).to_string()));

    // The components' events of the same pipeline.
    let events = home.json(&["speculation", "events", "--pipeline", &pipeline]);
    let told = |task: Option<&str>| -> Vec<&str> {
        let of = list(&events).iter().filter(|event| event["task"].as_str() == task);
        of.map(|event| text(&event["kind"])).collect()
    };
    let begins = [
        "graph:added",
        "stake:locked",
        "task:scheduled",
        "task:executing",
        "commitment:created",
        "graph:changed",
        "task:completed",
        "proof:queued",
        "proof:proving",
        "commitment:updated",
        "proof:ready",
        "proof:submitting",
        "commitment:updated",
        "proof:submitted",
        "proof:failed",
        "rollback:planned",
    ];
    let of_a = told(Some("a"));
    assert!(of_a.starts_with(&begins), "{of_a:?}");
    assert!(of_a.contains(&"stake:slashed") && of_a.contains(&"task:failed"), "{of_a:?}");
    for name in ["a", "b", "c"] {
        let of = told(Some(name));
        let last = of.iter().rposition(|kind| *kind == "task:confirmed");
        assert!(last.is_some(), "{name}: {of:?}");
        assert!(of.contains(&"task:executing"), "{name}: {of:?}");
    }
    assert!(!events.to_string().contains("hush"), "{events}");
    let first = number(&events[0]["seq"]);
    let only = home.json(&["speculation", "events", "--kind", "rollback:taskRolledBack"]);
    assert_eq!(list(&only).len() as u64, number(&undone["tasks"]), "{only}");
    assert_eq!(list(&only).last().unwrap()["task"], "a", "leaves first: {only}");
    // The same events as a stream from the middle, and a cursor of an earlier process.
    let mut followed = follow(&home, &["--from", &(first + 3).to_string()]);
    assert_eq!(followed.next(), number(&events[0]["seq"]) + 3);
    drop(followed);
    // A reader that reconnects resumes after the last event that it has seen.
    assert_eq!(returns(&up, first + 3), first + 4);
    let missed = home.json(&["speculation", "events", "--from", "7", "--kind", "rollback:planned"]);
    assert_eq!(missed[0]["kind"], "stream:missed", "{missed}");
    assert_eq!(missed[0]["data"]["restarted"], true, "{missed}");

    // With the breaker held open nothing runs ahead, but all tasks complete.
    let hold = |to: &str| {
        let set = format!("breaker.override={to}");
        home.json(&["speculation", "config", "set", &set]);
    };
    hold("open");
    let pair = json!([
        { "id": "x", "command": ["echo", "1"] },
        { "id": "y", "depends_on": ["x"], "command": ["cat"] },
    ]);
    let held = submit(&home, &pair);
    ended(&home, &held, "completed");
    let refused =
        home.json(&["speculation", "events", "--pipeline", &held, "--kind", "task:rejected"]);
    assert_eq!(refused[0]["data"]["reason"], "breaker_open", "{refused}");
    hold("none");
    let changed = home.json(&["speculation", "events", "--kind", "breaker:changed"]);
    let states: Vec<_> = list(&changed).iter().map(|one| text(&one["data"]["state"])).collect();
    assert_eq!(states, ["open", "closed"]);

    // The devnet stops while a proof is made, and makes it again after the restart.
    let slow = json!([{ "id": "x", "command": ["echo", "1"], "fault": { "slow_ms": 2_000 } }]);
    let pipeline = submit(&home, &slow);
    wait_until("a prover makes the proof", || {
        number(&home.json(&["speculation", "status"])["proofs_proving"]) == 1
    });
    home.json(&["devnet", "down"]);
    home.up(&[]);
    ended(&home, &pipeline, "completed");
    let later = home.json(&["speculation", "events", "--kind", "task:confirmed"]);
    assert!(number(&later[0]["seq"]) > number(&list(&events).last().unwrap()["seq"]), "{later}");
    let trace = collector.trace(&pipeline);
    let of_both = self::children(&trace);
    let proofs = &of_both["speculation.proof_generate"];
    let errors: Vec<_> = proofs.iter().map(|span| error(span)).collect();
    assert!(
        matches!(&errors[..], [Some(stops), None] if stops.contains("the devnet stopped")),
        "{errors:?}"
    );

    // A retried pipeline has a second trace.
    let fails = json!([{ "id": "x", "command": ["echo", "1"], "fault": "wrong_proof" }]);
    let pipeline = submit(&home, &fails);
    ended(&home, &pipeline, "failed");
    let first = collector.trace(&pipeline);
    assert!(error(&first[0]).unwrap().contains("failed"), "{first:?}");
    home.json(&["speculation", "retry", &pipeline]);
    ended(&home, &pipeline, "completed");
    let second = collector.trace_after(&pipeline, &[&first[0]]);
    assert_ne!(first[0].trace_id, second[0].trace_id);
    assert_eq!(value(&second[0], "pipeline.status").as_deref(), Some("completed"));
    assert!(self::children(&second).contains_key("speculation.confirm_wait"), "{second:?}");

    // The collector accepts requests and does not answer.
    collector.hangs.store(true, Ordering::Relaxed);
    let pipeline = submit(&home, &json!([{ "id": "x", "command": ["echo", "1"] }]));
    ended(&home, &pipeline, "completed");
    home.json(&["devnet", "down"]);
    let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    assert!(log.contains("spans are lost: the devnet stops"), "{log}");
}
