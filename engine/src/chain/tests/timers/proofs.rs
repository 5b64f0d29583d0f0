//! Proofs over a chain's state: subjects that exist, subjects that do not, and proofs that were
//! changed.

use super::*;
use crate::{
    chain::{
        Found, MAX_PROOF_BYTES, StateProof, StateProofError, Subject,
        state_proof::{Evidence, ProvedEntry},
        transaction::CancelTimer,
    },
    primitives::codec::{Decode as _, from_slice, to_vec},
    timer::{Timer, book},
};

/// A chain with something of each kind, one of its timers, and the subjects.
fn filled() -> (Chain, Hash, Vec<Subject>) {
    let mut chain = chain();
    let clock = chain.clock();
    let here = chain.here();
    let timers: Vec<Hash> = (0..40)
        .map(|n| {
            let payload = format!("ping {n}");
            chain.schedule(request(clock, here + 100 + n / 4, &payload))
        })
        .collect();
    let job = chain.submit(spec());
    let fire = chain.schedule(request(clock, chain.here() + 2, "now"));
    chain.until(chain.here() + 3);
    assert_eq!(chain.state.timer(&fire), None, "it has fired");
    let task = Hash([5; 32]);
    let create = CreateTask {
        task_id: task,
        depends_on: vec![],
        order_only: vec![],
        constraint_hash: None,
        requirements: vec![],
        reward: Wei::cby(1),
        deadline: Height::new(1_000),
    };
    chain.one("alice", Payload::CreateTask(create));
    let (runner, unknown) = (key("runner-0").address(), Address([0xee; 20]));
    let heights = |from, to| Subject::Timers { from: Height::new(from), to: Height::new(to) };
    let subjects = vec![
        Subject::Account(key("alice").address()),
        Subject::Account(unknown),
        Subject::Actor(clock),
        Subject::Actor(unknown),
        Subject::Stored(clock, "seen".into()),
        Subject::Stored(clock, "unseen".into()),
        Subject::Job(job),
        Subject::Job(Hash([7; 32])),
        Subject::Runner(runner),
        Subject::Runner(unknown),
        Subject::Task(task),
        Subject::Task(Hash([6; 32])),
        Subject::Presence,
        Subject::Timer(timers[11]),
        Subject::Timer(fire),
        heights(0, u64::MAX),
        heights(here + 101, here + 102),
        heights(here + 500, here + 600),
        Subject::Validators,
    ];
    (chain, timers[11], subjects)
}

impl Chain {
    /// A proof over the state, with the header of a child without real votes.
    pub(in crate::chain::tests) fn prove(&self, subject: Subject) -> StateProof {
        let header = self.block(vec![]).header;
        let vote = |validator| Vote {
            validator,
            presence: Bitmap::from_fn(1, |_| true),
            signature: [validator as u8; 64],
        };
        let (block, round) = (header.hash(), header.round);
        let certificate = Certificate { block, round, votes: (0..3).map(vote).collect() };
        StateProof::new(&self.state, subject, header, certificate).expect("it is small")
    }
}

#[test]
fn each_kind_is_shown_as_the_state_has_it() {
    let (chain, _, subjects) = filled();
    let state = &chain.state;
    for subject in subjects {
        let proof = chain.prove(subject.clone());
        let bytes = proof.to_bytes().expect("it is small");
        assert_eq!(StateProof::from_bytes(&bytes).as_ref(), Ok(&proof), "{subject}");
        let statement = proof.check().unwrap_or_else(|error| panic!("{subject}: {error}"));
        assert_eq!((statement.height, statement.state_root), (state.height(), state.root()));
        let expected = match &subject {
            Subject::Account(key) => state.accounts.get(key).map(to_vec),
            Subject::Actor(key) => state.actors.get(key).map(to_vec),
            Subject::Stored(actor, key) => state.storage.get(&(*actor, key.clone())).map(to_vec),
            Subject::Job(id) => state.job(id).map(to_vec),
            Subject::Runner(runner) => state.registry().get(runner).map(to_vec),
            Subject::Task(id) => state.tasks.by_id.get(id).map(to_vec),
            Subject::Presence => state.known_presence().map(to_vec),
            Subject::Timer(id) => state.timer(id).map(|timer| {
                let mut w = crate::primitives::codec::Writer::new();
                book::write(&timer, &mut w);
                w.finish()
            }),
            Subject::Timers { from, to } => {
                let Found::Timers(found) = statement.found else { panic!("{subject}") };
                let mut all: Vec<(Height, Hash)> =
                    state.timers().iter().map(|timer| (timer.height, timer.id)).collect();
                all.retain(|(height, _)| (from..=to).contains(&height));
                all.sort_unstable();
                assert_eq!(found, all, "{subject}");
                continue;
            }
            Subject::Validators => {
                assert_eq!(statement.found, Found::Validators(state.roster()), "{subject}");
                continue;
            }
        };
        match expected {
            Some(expected) => assert_eq!(statement.found, Found::Value(&expected), "{subject}"),
            None => assert_eq!(statement.found, Found::Nothing, "{subject}"),
        }
    }
}

#[test]
fn a_timer_s_whole_record_is_shown() {
    let (chain, id, _) = filled();
    let proof = chain.prove(Subject::Timer(id));
    let Found::Value(body) = proof.check().expect("it holds").found else { panic!("it waits") };
    let mut r = crate::primitives::codec::Reader::new(body);
    assert_eq!(book::read(id, &mut r), Ok(chain.state.timer(&id).expect("it waits")));
    let as_record = to_vec(&chain.state.timer(&id).expect("it waits"));
    assert!(from_slice::<Timer>(&as_record).is_ok_and(|timer| timer.payload == b"ping 11"));
    assert!(Timer::decode(&mut r).is_err(), "and no byte more");
}

#[test]
fn what_a_changed_byte_shows_is_nothing_or_another_thing() {
    let (chain, _, subjects) = filled();
    for subject in subjects {
        let proof = chain.prove(subject.clone());
        let bytes = proof.to_bytes().expect("it is small");
        let statement = proof.check().expect("it holds");
        for at in 0..bytes.len() {
            for change in [0x01, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let Ok(read) = StateProof::from_bytes(&changed) else { continue };
                assert_eq!(read.to_bytes().as_ref(), Ok(&changed), "one form: byte {at}");
                let Ok(got) = read.check() else { continue };
                // Votes are not checked here, and a changed question gets its own answer, which is
                // equally true.
                let only_votes = read.certificate.votes != proof.certificate.votes
                    || read.certificate.round != proof.certificate.round;
                let other_question =
                    read.subject != subject && agrees(&chain.state, &read, &got.found);
                assert!(only_votes || other_question, "{subject}: byte {at}: {got:?}");
                assert_eq!(got.state_root, statement.state_root);
            }
        }
        for end in 0..bytes.len() {
            let cut = StateProof::from_bytes(&bytes[..end]).ok();
            assert!(cut.is_none_or(|cut| cut.check().is_err()), "{subject}: cut at {end}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        let longer = StateProof::from_bytes(&longer).ok();
        assert!(longer.is_none_or(|longer| longer.check().is_err()), "{subject}: a byte more");
    }
}

/// Whether the state of a proof's subject is what the proof shows.
fn agrees(state: &State, proof: &StateProof, found: &Found<'_>) -> bool {
    let header = proof.header.clone();
    let own = StateProof::new(state, proof.subject.clone(), header, proof.certificate.clone());
    own.is_ok_and(|own| own.check().is_ok_and(|own| own.found == *found))
}

#[test]
fn each_check_has_its_name() {
    let (chain, id, _) = filled();
    let proof = chain.prove(Subject::Timer(id));
    let check = |change: &dyn Fn(&mut StateProof), expected: &str| {
        let mut changed = proof.clone();
        change(&mut changed);
        let error = changed.check().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check(&|proof| proof.header.timestamp_ms += 1, "certificate: it is for block 0x");
    check(&|proof| proof.certificate.round.epoch += 1, "certificate: its votes are of epoch 1");
    check(&|proof| proof.parts[3] = Hash::ZERO, "state root: the parts give 0x");
    check(&|proof| proof.subject = Subject::Timer(Hash::ZERO), "timer: ");
    check(&|proof| proof.subject = Subject::Job(id), "job: the evidence is not a path in a map");
    check(
        &|proof| {
            let Evidence::Queue { next_seq, .. } = &mut proof.evidence else { panic!("a timer") };
            *next_seq += 1;
        },
        "timer: the evidence gives root 0x",
    );
    let job = chain.prove(Subject::Job(Hash([9; 32])));
    let mut changed = job.clone();
    let Evidence::Entry { entry: ProvedEntry::Absent(absence), .. } = &mut changed.evidence else {
        panic!("there is no such job")
    };
    *absence = crate::primitives::merkle::Absence::Empty;
    let error = changed.check().expect_err("there is a job").to_string();
    assert!(error.starts_with("job: the evidence gives root 0x0000"), "{error}");

    let bytes = proof.to_bytes().expect("it is small");
    let refused = |bytes: &[u8]| StateProof::from_bytes(bytes).expect_err("it is not a proof");
    assert_eq!(refused(b"cbyprouf, not"), StateProofError::NoProof);
    let mut other = bytes.clone();
    other[8] = 2;
    assert_eq!(refused(&other), StateProofError::Version { got: 2, expected: 1 });
    let long = vec![0; MAX_PROOF_BYTES + 1];
    assert!(matches!(refused(&long), StateProofError::Length { .. }));
    let mut other = bytes;
    other[9] = 11;
    assert!(matches!(refused(&other), StateProofError::Form { at: 12, .. }));
}

#[test]
fn a_value_that_fits_no_proof_is_told() {
    let (mut chain, _, _) = filled();
    let clock = chain.deploy(CLOCK);
    chain.state.storage.insert((clock, "big".into()), vec![0; MAX_PROOF_BYTES]);
    let proof = chain.prove(Subject::Stored(clock, "big".into()));
    assert!(proof.check().is_ok());
    assert!(proof.to_bytes().is_err_and(|error| error.limit == MAX_PROOF_BYTES));
    let key = "k".repeat(70_000);
    assert!(chain.prove(Subject::Stored(clock, key.into())).to_bytes().is_err());
}

#[test]
fn the_trees_come_back_with_a_snapshot() {
    let (mut chain, id, _) = filled();
    let mut again = State::from_bytes(&chain.state.to_bytes()).expect("as written");
    assert_eq!(again.timers().commitment(), chain.state.timers().commitment());
    let block =
        chain.block(vec![chain.sign("alice", Payload::CancelTimer(CancelTimer { timer_id: id }))]);
    again = execute(&again, &block).expect("a child").state;
    chain.state = execute(&chain.state, &block).expect("a child").state;
    assert_eq!(again.timer(&id), None);
    assert_eq!(again.timers().commitment(), chain.state.timers().commitment());
    assert_eq!(again.root(), chain.state.root());
}
