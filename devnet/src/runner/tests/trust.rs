//! A validator of a runner's subset that lies about assignments and about their end.

use super::*;
use crate::transport::{
    Connection as _, Listen as _,
    driver::{Service, drive, now_ms},
};
use cowboy_engine::{
    job::spec::{CommandWork, Work},
    presence::Connectivity,
    primitives::{Address, Signature},
    session::{
        DispatchOutcome,
        validator::{self, ValidatorEvent},
    },
    wire::{Body, Errand, JobAssignment, RejectReason},
};

/// A validator's end of a connection that sends what it is told to, whatever the chain says.
struct Liar {
    heard: mpsc::UnboundedSender<ValidatorEvent>,
}

/// A lie to tell.
enum Word {
    Assign(Box<JobAssignment>),
    Prove(Hash, Body),
    ProveEnd(Hash, Body),
    Send(Box<Errand>),
    Cancel(Hash, Height),
}

impl Service for Liar {
    type Session = validator::Validator;
    type Command = Word;

    fn event(&mut self, session: &mut validator::Validator, event: ValidatorEvent) {
        if let ValidatorEvent::Admit { .. } = event {
            session.handle_admission(Ok(()));
        }
        // The test may have ended.
        let _ = self.heard.send(event);
    }

    fn command(&mut self, session: &mut validator::Validator, word: Word) {
        match word {
            Word::Assign(assignment) => session.assign(*assignment).unwrap(),
            Word::Prove(job_id, proof) => session.prove(&job_id, proof),
            Word::ProveEnd(job_id, proof) => session.prove_end(job_id, proof).unwrap(),
            Word::Send(errand) => session.send_errand(&errand).unwrap(),
            Word::Cancel(job_id, deadline) => {
                session.cancel(&job_id, deadline, CancelReason::Failed).unwrap();
            }
        }
    }
}

/// A runner of three validators, one of which lies.
struct Stage {
    net: Net,
    runner: Runner,
    activities: broadcast::Receiver<Activity>,
    words: mpsc::Sender<Word>,
    heard: mpsc::UnboundedReceiver<ValidatorEvent>,
}

impl Stage {
    /// Starts a runner whose jobs take `delay` and that accepts errands of `agents`.
    async fn new(context: Context, delay: Duration, agents: &[Address]) -> Self {
        let mut net = Net::new(context, SHORT, &genesis(4, 1));
        let at = net.subset("runner-0")[0];
        let node = net.nodes.remove(at);
        node.serving.abort();
        let _ = node.serving.await;
        let mut listener = net.fabric.listen(public(&node.name)).unwrap();
        let (sender, heard) = mpsc::unbounded_channel();
        let (words, given) = mpsc::channel(64);
        let (chain_id, head) = (net.state.chain_id(), net.state.height());
        net.context.child("liar").spawn(move |context| async move {
            let connection = listener.accept().await.unwrap();
            let config = validator::ValidatorConfig {
                chain_id,
                key: key(&node.name),
                certified: connection.peer().clone(),
                heartbeats: connection.heartbeats(),
                nonce: [7; 32],
                head,
                connectivity: Connectivity::DEFAULT,
            };
            let session = validator::Validator::new(config, now_ms(&context));
            drive(&context, connection, session, &mut Liar { heard: sender }, given).await
        });
        let config =
            RunnerConfig { agents: agents.iter().copied().collect(), ..net.config("runner-0") };
        let runner = net.start_with(config, delay);
        let activities = runner.subscribe();
        net.blocks(4).await;
        Self { net, runner, activities, words, heard }
    }

    async fn say(&mut self, word: Word) {
        assert!(self.words.send(word).await.is_ok());
        self.net.context.sleep(BLOCK_TIME).await;
    }

    /// The runner's new answers to the liar.
    fn answers(&mut self) -> Vec<ValidatorEvent> {
        let all = std::iter::from_fn(|| self.heard.try_recv().ok());
        all.filter(|event| {
            matches!(event, ValidatorEvent::Accepted { .. } | ValidatorEvent::Outcome { .. })
        })
        .collect()
    }

    /// An assignment that the liar invented, with the correct id for its specification.
    fn invented(&self) -> JobAssignment {
        let mut own = spec(40);
        own.work = Work::Custom(CommandWork {
            program: "steal".into(),
            args: Vec::new(),
            env: Vec::new(),
            stdin: None,
            delivery: None,
        });
        let (submitter, nonce, head) = (key("alice").address(), 7, self.net.state.height());
        JobAssignment {
            job_id: own.job_id(&submitter, nonce),
            submitter,
            nonce,
            job_spec: Body::new(to_vec(&own)).unwrap(),
            block_height: head,
            deadline_block: head.after(40),
            validator_signed: Signature([0; 65]),
        }
    }

    /// An honest validator's assignment of a job.
    fn honest(&self, job_id: &Hash) -> JobAssignment {
        let job = self.net.state.job(job_id).unwrap();
        JobAssignment {
            job_id: *job_id,
            submitter: job.submitter,
            nonce: job.nonce,
            job_spec: Body::new(to_vec(&*job.spec)).unwrap(),
            block_height: job.status.assignment().unwrap().height,
            deadline_block: job.deadline(),
            validator_signed: Signature([0; 65]),
        }
    }
}

fn refused(job_id: Hash, reason: RejectReason) -> ValidatorEvent {
    ValidatorEvent::Outcome { job_id, outcome: DispatchOutcome::SoftFailure(Some(reason)) }
}

#[test]
fn one_validator_starts_nothing_that_the_chain_has_not_assigned() {
    run(1, async |context| {
        let mut stage = Stage::new(context, NO_TIME, &[]).await;
        let invented = stage.invented();
        let id = invented.job_id;
        stage.say(Word::Assign(Box::new(invented.clone()))).await;
        assert_eq!(stage.answers(), [], "it waits for another validator, or for a proof");
        let garbage = Body::new(b"cbyproof and more".to_vec()).unwrap();
        stage.say(Word::Prove(id, garbage)).await;
        assert_eq!(stage.answers(), []);
        let mut renamed = stage.invented();
        (renamed.nonce, renamed.job_id) = (8, Hash([9; 32]));
        stage.say(Word::Assign(Box::new(renamed))).await;
        assert_eq!(stage.answers(), [refused(Hash([9; 32]), RejectReason::InvalidSpec)]);
        let content = (Hash([1; 32]), invented.job_spec, stage.net.state.height().after(40));
        let chain_id = stage.net.state.chain_id();
        let errand = Errand::signed(chain_id, &key("agent"), &public("runner-0"), content);
        let id = errand.errand_id;
        stage.say(Word::Send(Box::new(errand))).await;
        assert_eq!(stage.answers(), [refused(id, RejectReason::MissingEntitlement)]);
        stage.net.blocks(6).await;
        assert_eq!(started(&mut stage.activities), []);
        assert_eq!(stage.runner.load().active_jobs, 0);
    });
}

#[test]
fn a_swapped_specification_is_refused_and_the_jobs_own_is_done_once() {
    run(1, async |context| {
        let mut stage = Stage::new(context, 2 * BLOCK_TIME, &[]).await;
        let job_id = stage.net.submit(spec(50));
        stage.net.block().await;
        let mut swapped = stage.honest(&job_id);
        swapped.job_spec = stage.invented().job_spec;
        stage.say(Word::Assign(Box::new(swapped))).await;
        assert_eq!(stage.answers(), [refused(job_id, RejectReason::InvalidSpec)]);
        let status = stage.net.until_over(&job_id).await;
        let JobStatus::Verified(_, outcome) = status else { panic!("{status:?}") };
        let result = keccak256(&[&to_vec(&spec(50))]);
        assert_eq!(outcome.result_hash, keccak256(&[&result.0]));
        // The same again, word for word.
        let replayed = stage.honest(&job_id);
        stage.say(Word::Assign(Box::new(replayed))).await;
        stage.net.blocks(2).await;
        assert_eq!(started(&mut stage.activities), [job_id]);
    });
}

#[test]
fn one_validator_stops_nothing_and_moves_no_deadline() {
    run(1, async |context| {
        let mut stage = Stage::new(context, 6 * BLOCK_TIME, &[]).await;
        let job_id = stage.net.submit(spec(50));
        stage.net.block().await;
        stage.net.context.sleep(BLOCK_TIME).await;
        let mut later = stage.honest(&job_id);
        let deadline = later.deadline_block;
        later.deadline_block = deadline.after(100);
        stage.say(Word::Assign(Box::new(later))).await;
        assert_eq!(stage.answers(), [], "another attempt needs another assignment");
        stage.say(Word::Cancel(job_id, deadline)).await;
        for _ in 0..2 {
            let garbage = Body::new(b"cbyproof and more".to_vec()).unwrap();
            stage.say(Word::ProveEnd(job_id, garbage)).await;
        }
        assert_eq!(stage.runner.load().active_jobs, 1, "the job continues");
        assert_eq!(stage.net.until_over(&job_id).await.name(), "Verified");
        assert_eq!(started(&mut stage.activities), [job_id]);
    });
}

#[test]
fn one_validator_keeps_no_result_to_itself() {
    run(1, async |context| {
        let mut stage = Stage::new(context, NO_TIME, &[]).await;
        let honest = stage.net.subset("runner-0").into_iter().skip(1);
        let late = honest.last().map(|at| format!("validator-{at}")).unwrap();
        let job_id = stage.net.submit(spec(50));
        // The liar's assignment comes second, so the liar is given the result.
        stage.net.fabric.cut(&public("runner-0"), &public(&late));
        stage.net.block().await;
        stage.net.context.sleep(BLOCK_TIME).await;
        let assignment = stage.honest(&job_id);
        stage.say(Word::Assign(Box::new(assignment))).await;
        let taken = ValidatorEvent::Outcome { job_id, outcome: DispatchOutcome::Success };
        assert_eq!(stage.answers(), [ValidatorEvent::Accepted { job_id }, taken]);
        stage.net.fabric.restore(&public("runner-0"), &public(&late));
        stage.runner.count().wait_for(|count| *count == 3).await.unwrap();
        stage.net.blocks(2).await;
        let open = |stage: &Stage| stage.net.state.job(&job_id).unwrap().status.name();
        assert_eq!(open(&stage), "Assigned", "the liar passes nothing on");
        assert_eq!(stage.net.until_over(&job_id).await.name(), "Verified");
        assert_eq!(started(&mut stage.activities), [job_id]);
    });
}

#[test]
fn an_errand_is_done_for_an_agent_that_the_operator_has_named() {
    run(1, async |context| {
        let agent = key("agent");
        let mut stage = Stage::new(context, NO_TIME, &[agent.address()]).await;
        let body = stage.invented().job_spec;
        let until = stage.net.state.height().after(40);
        let chain_id = stage.net.state.chain_id();
        let sign = |key| {
            Errand::signed(chain_id, key, &public("runner-0"), (Hash([1; 32]), body.clone(), until))
        };
        let errand = sign(&agent);
        let id = errand.errand_id;
        let mut replaced = sign(&agent);
        replaced.errand_id = Hash([8; 32]);
        stage.say(Word::Send(Box::new(errand))).await;
        let accepted = ValidatorEvent::Accepted { job_id: id };
        let done = ValidatorEvent::Outcome { job_id: id, outcome: DispatchOutcome::Success };
        assert_eq!(stage.answers(), [accepted, done]);
        assert_eq!(started(&mut stage.activities), [id]);
        // A signature of another errand ends the connection.
        stage.say(Word::Send(Box::new(replaced))).await;
        assert_eq!((stage.answers(), started(&mut stage.activities)), (vec![], vec![]));
        assert_eq!(*stage.runner.count().borrow(), 2, "the two honest ones");
    });
}
