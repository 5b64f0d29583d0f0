//! Connections beyond the limit, demanding clients, and TLS.

use super::*;
use axum::{
    body::Bytes,
    extract::State,
    routing::{get, post},
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy, duplex, sink, split},
    sync::Notify,
};

const PATIENT: ConnectionLimits =
    ConnectionLimits { connections: 2, client: Duration::from_secs(60) };
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// A server that answers `/` at once and `/wait` when it is told to.
async fn server(
    limits: ConnectionLimits,
    tls: Option<Acceptor>,
) -> (SocketAddr, Arc<Notify>, Serving) {
    let listener = bind(None).await.unwrap();
    let address = listener.local_addr().unwrap();
    let go = Arc::new(Notify::new());
    let wait = async |State(go): State<Arc<Notify>>| {
        go.notified().await;
        "waited"
    };
    let router = Router::new().route("/", get("done")).route("/wait", get(wait));
    let router = router.with_state(go.clone());
    (address, go, start(limits, listener, tls, |_| router))
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads the answer's beginning; `None` if the connection was closed.
async fn status(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut first = [0; 12];
    let read = timeout(LONG, stream.read_exact(&mut first)).await.expect("in time");
    read.ok().map(|_| String::from_utf8_lossy(&first).into_owned())
}

#[tokio::test]
async fn a_server_that_ends_by_itself_says_so() {
    let (_, _go, mut serving) = server(PATIENT, None).await;
    serving.task.abort();
    let why = timeout(LONG, serving.ended()).await.expect("it has ended");
    assert!(why.contains("cancelled"), "{why}");
    timeout(LONG, serving.stop(LONG)).await.expect("nothing is left to be waited for");
}

#[tokio::test]
async fn the_longest_idle_connection_makes_room() {
    let (address, _go, _serving) = server(PATIENT, None).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut others = Vec::new();
    for _ in 0..20 {
        let mut next = TcpStream::connect(address).await.unwrap();
        send(&mut next, "/").await;
        assert_eq!(status(&mut next).await.as_deref(), Some("HTTP/1.1 200"));
        others.push(next);
    }
    assert_eq!(status(&mut silent).await, None);
    assert_eq!(status(&mut slow).await, None);
}

#[tokio::test]
async fn slow_bodies_and_unread_answers_keep_nobody_out() {
    let listener = bind(None).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/", get("done"))
        .route("/take", post(async |body: Bytes| body.len().to_string()))
        .route("/large", get(async || vec![0; 64 << 20]));
    let _serving = start(PATIENT, listener, None, |_| router);
    let probe = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        send(&mut stream, "/").await;
        assert_eq!(status(&mut stream).await.as_deref(), Some("HTTP/1.1 200"));
    };
    let mut slow = Vec::new();
    for _ in 0..PATIENT.connections {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n";
        stream.write_all(format!("{head}Expect: 100-continue\r\n\r\n").as_bytes()).await.unwrap();
        // From here on the server waits for the body.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).await.unwrap();
        assert_eq!(go_on, *b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"x").await.unwrap();
        slow.push(stream);
    }
    probe().await;
    assert_eq!(status(&mut slow[0]).await, None, "the first makes room");
    slow[1].write_all(b"12345678").await.unwrap();
    assert_eq!(status(&mut slow[1]).await.as_deref(), Some("HTTP/1.1 200"));

    let mut unread = Vec::new();
    for _ in 0..PATIENT.connections {
        let mut stream = TcpStream::connect(address).await.unwrap();
        send(&mut stream, "/large").await;
        // The answer has begun, and the client does not read the rest.
        assert_eq!(status(&mut stream).await.as_deref(), Some("HTTP/1.1 200"));
        unread.push(stream);
    }
    probe().await;
    let mut rest = Vec::new();
    let read = timeout(LONG, unread[0].read_to_end(&mut rest)).await.expect("in time");
    assert!(read.is_err() || rest.len() < 64 << 20, "the first makes room");
}

#[tokio::test]
async fn clients_that_always_have_another_request_keep_no_other_out() {
    let (address, _go, _serving) = server(PATIENT, None).await;
    let requests = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    for _ in 0..2 * PATIENT.connections {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut reads, mut writes) = stream.into_split();
        let requests = requests.clone();
        // Both end with the connection.
        tokio::spawn(async move { while writes.write_all(requests.as_bytes()).await.is_ok() {} });
        tokio::spawn(async move { copy(&mut reads, &mut sink()).await });
    }
    for _ in 0..10 {
        let mut probe = TcpStream::connect(address).await.unwrap();
        send(&mut probe, "/").await;
        assert_eq!(status(&mut probe).await.as_deref(), Some("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn the_next_request_waits_until_the_answers_before_it_are_read() {
    const REQUESTS: usize = 1_000;
    let answered = Arc::new(AtomicUsize::new(0));
    let count = {
        let answered = answered.clone();
        async move || {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    let router = Router::new().route("/", get(count));
    let (_close, closing) = watch::channel(false);
    let place = Arc::new(Places::new(1)).take().await;
    // The system buffers a thousand bytes for the client: about ten answers.
    let (client, stream) = duplex(1_000);
    let (mut reads, mut writes) = split(client);
    tokio::spawn(async move { talk(stream, LONG, router, closing, &place).await });
    let requests = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(REQUESTS);
    let writing = tokio::spawn(async move {
        writes.write_all(requests.as_bytes()).await.unwrap();
        writes
    });
    // All tasks share one thread and take turns, so each of them runs as far as it can.
    for _ in 0..10 * REQUESTS {
        yield_now().await;
    }
    let unread = answered.load(Ordering::Relaxed);
    assert!((1..100).contains(&unread), "{unread} answers wait for the client");
    let read = async {
        let (mut text, mut part) = (String::new(), [0; 4096]);
        while text.matches("HTTP/1.1 200").count() < REQUESTS {
            let length = reads.read(&mut part).await.unwrap();
            assert_ne!(length, 0, "the connection ended");
            text.push_str(std::str::from_utf8(&part[..length]).unwrap());
        }
    };
    timeout(LONG, read).await.expect("in time");
    assert_eq!(answered.load(Ordering::Relaxed), REQUESTS);
    writing.await.unwrap();
}

#[tokio::test]
async fn a_client_that_makes_no_progress_is_not_waited_for() {
    let listener = bind(None).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/take", post(async |body: Bytes| body.len().to_string()))
        .route("/large", get(async || vec![0; 64 << 20]));
    let limits = ConnectionLimits { client: Duration::from_millis(50), ..PATIENT };
    let _serving = start(limits, listener, None, |_| router);
    let mut slow = TcpStream::connect(address).await.unwrap();
    let head = b"POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx";
    slow.write_all(head).await.unwrap();
    assert_ne!(status(&mut slow).await.as_deref(), Some("HTTP/1.1 200"));
    let mut unread = TcpStream::connect(address).await.unwrap();
    send(&mut unread, "/large").await;
    unread.readable().await.unwrap();
    // Sending fails, or is answered by a reset, when the server has closed the connection.
    let gone = async {
        while unread.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, gone).await.expect("in time");
}

#[tokio::test]
async fn a_stop_waits_for_requests_and_for_nobody_else() {
    let listener = bind(None).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (came, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let wait = {
        let (came, go) = (came.clone(), go.clone());
        async move || {
            came.notify_one();
            go.notified().await;
            "waited"
        }
    };
    let router = Router::new().route("/wait", get(wait));
    let serving = start(ConnectionLimits { connections: 8, ..PATIENT }, listener, None, |_| router);
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut busy = TcpStream::connect(address).await.unwrap();
    send(&mut busy, "/wait").await;
    timeout(LONG, came.notified()).await.expect("the request has come");
    let stopped = tokio::spawn(serving.stop(LONG));
    assert_eq!(status(&mut slow).await, None);
    assert!(!stopped.is_finished());
    go.notify_one();
    assert_eq!(status(&mut busy).await.as_deref(), Some("HTTP/1.1 200"));
    timeout(LONG, stopped).await.expect("in time").unwrap();
}

#[tokio::test]
async fn requests_under_way_keep_their_connection() {
    let (address, go, _serving) = server(PATIENT, None).await;
    let mut busy = Vec::new();
    for _ in 0..PATIENT.connections {
        let mut stream = TcpStream::connect(address).await.unwrap();
        send(&mut stream, "/wait").await;
        busy.push(stream);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    send(&mut third, "/").await;
    let mut first = [0; 1];
    let early = timeout(Duration::from_millis(50), third.read_exact(&mut first)).await;
    assert!(early.is_err(), "answered beyond the limit");
    // Both handlers wait, or will: each is notified once.
    go.notify_one();
    go.notify_one();
    for stream in &mut busy {
        assert_eq!(status(stream).await.as_deref(), Some("HTTP/1.1 200"));
    }
    assert_eq!(status(&mut third).await.as_deref(), Some("HTTP/1.1 200"));
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

#[tokio::test]
async fn with_tls_it_is_who_its_certificate_says_and_may_ask_for_one() {
    let issuer = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let signed = |issuer: &CertifiedIssuer<'_, KeyPair>, names: &[&str]| {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, issuer).unwrap();
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    };
    let (servers, clients) = (issuer("servers"), issuer("clients"));
    let (certificate, key) = signed(&servers, &["localhost", "127.0.0.1"]);
    for client_roots in [None, Some(pem("CERTIFICATE", clients.der()).into_bytes())] {
        let asks = client_roots.is_some();
        let material = tls::Material {
            certificates: certificate.clone().into_bytes(),
            key: key.clone().into_bytes(),
            client_roots,
        };
        let acceptor = Acceptor::new(&material).unwrap();
        let (address, _go, _serving) = server(PATIENT, Some(acceptor)).await;
        let client = |identity: Option<(String, String)>| {
            let roots = reqwest::Certificate::from_der(servers.der()).unwrap();
            let client = reqwest::Client::builder().no_proxy().tls_certs_only([roots]);
            let identity = identity.map(|(certificate, key)| {
                reqwest::Identity::from_pem(format!("{certificate}{key}").as_bytes()).unwrap()
            });
            identity.into_iter().fold(client, |client, own| client.identity(own)).build().unwrap()
        };
        let url = format!("https://localhost:{}/", address.port());
        let known = client(Some(signed(&clients, &["somebody"]))).get(&url).send().await;
        assert_eq!(known.unwrap().status(), 200);
        let unknown = client(None).get(&url).send().await;
        assert_eq!(unknown.is_ok(), !asks);
        let stranger = client(Some(signed(&servers, &["somebody"]))).get(&url).send().await;
        assert_eq!(stranger.is_ok(), !asks);
        // Without TLS there is no answer.
        let mut plain = TcpStream::connect(address).await.unwrap();
        send(&mut plain, "/").await;
        assert_ne!(status(&mut plain).await.as_deref(), Some("HTTP/1.1 200"));
    }
}

#[test]
fn what_is_no_certificate_or_key_is_told_apart() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let check = |certificates: &str, key: &str, roots: Option<&str>, expected: &str| {
        let material = tls::Material {
            certificates: certificates.as_bytes().to_vec(),
            key: key.as_bytes().to_vec(),
            client_roots: roots.map(|roots| roots.as_bytes().to_vec()),
        };
        let refused = Acceptor::new(&material).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    };
    let certificate = pem("CERTIFICATE", own.cert.der());
    let [key, others] =
        [own, other].map(|own| pem("PRIVATE KEY", &own.signing_key.serialize_der()));
    check("", &key, None, "the server's are not certificates in PEM");
    check(&key, &key, None, "the server's are not certificates in PEM");
    check(&certificate, &certificate, None, "the key is not a private key in PEM");
    check(&certificate, &key, Some("x"), "the clients' roots are not certificates in PEM");
    check(&certificate, &others, None, "the certificate and its key do not match");
}
