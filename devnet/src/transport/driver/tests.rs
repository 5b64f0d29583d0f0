//! Sessions over simulated connections.

use super::{
    super::simulated::{Fabric, SimConnection, SimulatedLink},
    *,
};
use crate::transport::{Dial as _, Listen as _};
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, deterministic};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    presence::Connectivity,
    primitives::{Hash, Height, PublicKey, SecretKey},
    session::{
        runner::{Runner, RunnerConfig, RunnerEvent},
        validator::{Validator, ValidatorConfig, ValidatorEvent},
    },
    wire::{AckStatus, Body, JobResult},
};
use futures::future::join;
use std::{net::SocketAddr, sync::Arc};

type Context = deterministic::Context;

const CHAIN: u64 = 7;
const LINK: SimulatedLink = SimulatedLink {
    latency: Duration::from_millis(20),
    jitter: Duration::from_millis(10),
    loss: 0.02,
};

fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"driver tests", name)
}

fn public(name: &str) -> PublicKey {
    key(name).public_key()
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(Context) -> F) {
    let config = deterministic::Config::new().with_timeout(Some(Duration::from_secs(600)));
    deterministic::Runner::new(config).start(test);
}

/// The commands for a validator's session.
enum Told {
    Head(Height),
    Close(GoodbyeReason),
}

/// Records the events of a validator's session.
#[derive(Clone, Default)]
struct Listening(Arc<Mutex<Vec<ValidatorEvent>>>);

impl Service for Listening {
    type Session = Validator;
    type Command = Told;

    fn event(&mut self, session: &mut Validator, event: ValidatorEvent) {
        if let ValidatorEvent::Admit { .. } = event {
            session.handle_admission(Ok(()));
        }
        self.0.lock().push(event);
    }

    fn command(&mut self, session: &mut Validator, told: Told) {
        match told {
            Told::Head(head) => session.handle_head(head),
            Told::Close(reason) => session.close(reason),
        }
    }
}

/// Records the events of a runner's session, and sends results.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<Vec<RunnerEvent>>>);

impl Service for Running {
    type Session = Runner;
    type Command = JobResult;

    fn event(&mut self, session: &mut Runner, event: RunnerEvent) {
        if let RunnerEvent::Assigned { stream, .. } = event {
            session.answer(stream, AckStatus::Duplicate);
        }
        self.0.lock().push(event);
    }

    fn command(&mut self, session: &mut Runner, result: JobResult) {
        assert!(session.deliver(&result));
    }
}

struct Ends {
    validator_said: Listening,
    runner_said: Running,
    to_validator: mpsc::Sender<Told>,
    to_runner: mpsc::Sender<JobResult>,
    validator_ended: commonware_runtime::Handle<End>,
    runner_ended: commonware_runtime::Handle<End>,
}

async fn connect(
    context: &Context,
    fabric: &Fabric<Context>,
) -> (SimConnection<Context>, SimConnection<Context>) {
    let mut listener = fabric.listen(public("validator")).unwrap();
    let dialer = fabric.dialer(public("runner"));
    let address = SocketAddr::new(Fabric::<Context>::address(&public("validator")), 0);
    let validator = public("validator");
    let (dialled, accepted) = join(dialer.dial(address, &validator), listener.accept()).await;
    // Dropping a listener closes its connections.
    context.child("listener").spawn(|_| async move {
        let _listener = listener;
        std::future::pending::<()>().await;
    });
    (dialled.unwrap(), accepted.unwrap())
}

/// The validator's end of a connection.
fn session(context: &Context, accepted: &SimConnection<Context>, head: Height) -> Validator {
    let config = ValidatorConfig {
        chain_id: CHAIN,
        key: key("validator"),
        certified: accepted.peer().clone(),
        heartbeats: accepted.heartbeats(),
        nonce: [1; 32],
        head,
        connectivity: Connectivity::DEFAULT,
    };
    Validator::new(config, now_ms(context))
}

async fn ends(context: &Context, fabric: &Fabric<Context>) -> Ends {
    let (dialled, accepted) = connect(context, fabric).await;
    let (validator_said, runner_said) = (Listening::default(), Running::default());
    let (to_validator, for_validator) = mpsc::channel(8);
    let (to_runner, for_runner) = mpsc::channel(8);
    let mut service = validator_said.clone();
    let validator_ended = context.child("validator").spawn(move |context| async move {
        let session = session(&context, &accepted, Height::new(1));
        drive(&context, accepted, session, &mut service, for_validator).await
    });
    let config = RunnerConfig {
        chain_id: CHAIN,
        key: key("runner"),
        validator: public("validator"),
        certified: dialled.peer().clone(),
        heartbeats: dialled.heartbeats(),
        nonce: [2; 32],
        head: Height::GENESIS,
    };
    let mut service = runner_said.clone();
    let runner_ended = context.child("runner").spawn(move |context| async move {
        let session = Runner::new(config, now_ms(&context));
        drive(&context, dialled, session, &mut service, for_runner).await
    });
    Ends { validator_said, runner_said, to_validator, to_runner, validator_ended, runner_ended }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_goodbye_reaches_the_peer_before_the_connection_closes() {
    run(async |context| {
        let fabric = Fabric::new(context.child("net"), LINK);
        let ends = ends(&context, &fabric).await;
        context.sleep(SECOND).await;
        ends.to_validator.send(Told::Close(GoodbyeReason::Deregistered)).await.unwrap();
        let ended = (ends.validator_ended.await.unwrap(), ends.runner_ended.await.unwrap());
        let reason = GoodbyeReason::Deregistered;
        assert_eq!(ended, (End::Local(reason), End::Peer(reason)));
    });
}

#[test]
fn an_owner_that_goes_says_goodbye() {
    run(async |context| {
        let fabric = Fabric::new(context.child("net"), LINK);
        let ends = ends(&context, &fabric).await;
        context.sleep(SECOND).await;
        drop(ends.to_runner);
        let ended = (ends.validator_ended.await.unwrap(), ends.runner_ended.await.unwrap());
        let reason = GoodbyeReason::ShuttingDown;
        assert_eq!(ended, (End::Peer(reason), End::Local(reason)));
    });
}

#[test]
fn a_cut_link_is_lost_at_both_ends() {
    run(async |context| {
        let fabric = Fabric::new(context.child("net"), LINK);
        let ends = ends(&context, &fabric).await;
        context.sleep(SECOND).await;
        fabric.cut(&public("runner"), &public("validator"));
        let ended = (ends.validator_ended.await.unwrap(), ends.runner_ended.await.unwrap());
        assert_eq!(ended, (End::Lost, End::Lost));
    });
}

#[test]
fn a_silent_peer_is_dropped_after_five_seconds() {
    run(async |context| {
        let fabric = Fabric::new(context.child("net"), LINK);
        let (dialled, accepted) = connect(&context, &fabric).await;
        let begun = context.current();
        let (_commands, received) = mpsc::channel(1);
        let session = session(&context, &accepted, Height::GENESIS);
        let mut service = Listening::default();
        let end = drive(&context, accepted, session, &mut service, received).await;
        assert_eq!(end, End::HandshakeTimeout);
        let millisecond = Duration::from_millis(1);
        let after = context.current().duration_since(begun).unwrap();
        assert!((5 * SECOND - millisecond..=5 * SECOND).contains(&after), "{after:?}");
        dialled.closed().await;
    });
}

#[test]
fn the_largest_result_arrives_while_heartbeats_go_on() {
    run(async |context| {
        let fabric = Fabric::new(context.child("net"), LINK);
        let ends = ends(&context, &fabric).await;
        context.sleep(SECOND).await;
        let body = Body::new(vec![7; Body::LIMIT]).unwrap();
        let result = JobResult::signed(CHAIN, &key("runner"), Hash::ZERO, body);
        ends.to_runner.send(result.clone()).await.unwrap();
        let arrived = || {
            let said = ends.validator_said.0.lock();
            said.iter().any(|event| *event == ValidatorEvent::Result(result.clone()))
        };
        let mut head = 1;
        while !arrived() {
            head += 1;
            assert!(head < 1_000, "it does not arrive");
            ends.to_validator.send(Told::Head(Height::new(head))).await.unwrap();
            context.sleep(Duration::from_millis(250)).await;
            let newest = ValidatorEvent::Pinged { height: Height::new(head) };
            assert!(ends.validator_said.0.lock().contains(&newest), "no ping of {head}");
        }
        assert!(head > 4, "16 MiB take many round trips");
        context.sleep(SECOND).await;
        let delivered = RunnerEvent::Delivered { job_id: Hash::ZERO };
        assert!(ends.runner_said.0.lock().contains(&delivered));
    });
}

#[test]
fn noise_gets_a_goodbye() {
    let check = |bytes: &'static [u8], expected: GoodbyeReason| {
        run(async move |context| {
            let fabric = Fabric::new(context.child("net"), LINK);
            let (dialled, accepted) = connect(&context, &fabric).await;
            let noise = async {
                let (mut send, mut recv) = dialled.open().await.unwrap();
                send.write(bytes).await.unwrap();
                let mut heard = Vec::new();
                while let Ok(Some(more)) = recv.read(CHUNK).await {
                    heard.extend_from_slice(&more);
                }
                heard
            };
            let (_commands, received) = mpsc::channel(1);
            let session = session(&context, &accepted, Height::GENESIS);
            let mut service = Listening::default();
            let driven = drive(&context, accepted, session, &mut service, received);
            let (end, heard) = join(driven, noise).await;
            assert_eq!(end, End::Local(expected));
            let reason = expected.as_str().as_bytes();
            assert!(heard.windows(reason.len()).any(|part| part == reason), "{heard:?}");
        });
    };
    check(b"GET / HTTP/1.1\r\nHost: validator\r\n\r\n", GoodbyeReason::FrameTooLarge);
    check(&[0, 0, 0, 3, 0x01, 0xa0, 0xa0], GoodbyeReason::MalformedFrame);
    check(&[0, 0, 0, 0], GoodbyeReason::MalformedFrame);
    check(&[0, 0, 0, 9, 0x99, 0, 0, 0, 0, 0, 0, 0, 0], GoodbyeReason::MalformedFrame);
}
